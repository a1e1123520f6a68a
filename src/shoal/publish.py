"""Run, render and write: from files to two folders.

`DIR` holds only what may be published; `DIR.internal` holds what compares the release with
the original. They are two transactions. The public folder is written whole and put in place, and
the budget's entry is settled; then, separately, the original is compared with it. That step may
fail, and be repeated (`report`), without touching the release.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shoal import comparison, engine, folders, internal, io, measuring, public, release
from shoal.comparison import Comparison, Selection
from shoal.core import Confidential, Noise, Policy, Progress, Release, silent
from shoal.errors import InputError, ShoalError
from shoal.folders import INTERNAL_SUFFIX, check_text, prepare, write_text
from shoal.manifest import read as read_manifest
from shoal.measures.attack import DIFFERENCE
from shoal.planning import plan
from shoal.policy import load
from shoal.public import EXTRAS
from shoal.report import evidence, html
from shoal.serialise import plain

KEPT = "results"
"""Folder of a comparison that keeps what is done."""
ENGINES = ("local", "spark")
UNFINISHED = ".unfinished"
"""Suffix of a folder that keeps a release whose place could not be written."""
_COMPARED = {KEPT, "comparison.json", "comparison.parquet", "report.html", "selection.json"}
_ROOM = 16 << 20
"""Bytes to reserve on the disk beyond twice the size of the table's file."""

__all__ = [
    "EXTRAS", "INTERNAL_SUFFIX", "Published", "check_text", "compare", "finish", "measure",
    "prepare", "protect", "report", "select", "with_ledger", "write_text",
]  # fmt: skip


@dataclass(frozen=True)
class Published:
    """Where a release was written, and what it is.

    Attributes:
        measured: what compares it with the original, if it was measured: confidential.
    """

    folder: Path
    internal: Path
    release: Release
    notes: tuple[str, ...]
    measured: measuring.Measurement | None = None


def protect(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    form: str = "parquet",
    force: bool = False,
    keep_order: bool = False,
    guard_formulas: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    ledger: Path | None = None,
    source: str | None = None,
    audience: str | None = None,
    measure: bool | None = None,
    control: Path | None = None,
    comparison: Path | None = None,
    progress: Progress = silent,
    noise: Noise | None = None,
    engine: str = "local",
    settings: Mapping[str, str] | None = None,
) -> Published:
    """Protect a file as a policy says and write the release.

    Args:
        data: the table; see `shoal.io.read`.
        policy: the policy file, or what was read from it.
        out: the folder to write; `out.internal` is written beside it.
        form: parquet, csv, sav or dta.
        force: replace an existing release.
        keep_order: release row i in place of row i.
        guard_formulas: put an apostrophe before CSV text that a spreadsheet would run.
        delimiter: of a CSV file, where it cannot be found out.
        encoding: of a CSV file, where it cannot be found out.
        ledger: the budget file, instead of the policy's.
        source: the population in the budget file, instead of the policy's.
        audience: who will get the release, instead of the policy's: open, partner or internal.
        measure: run attacks and measures of utility for the officer's report; by default on
            tables of at most `evidence.MEASURED` rows.
        control: people of the same population who are not in the table, for the attacks.
        comparison: what `shoal compare --json` printed, for the officer's report.
        progress: called with the stage and how far it is.
        noise: another source of noise, for experiments; see `shoal.protect`.
        engine: local, or spark: a Parquet file, a folder of them or a CSV file is read and
            protected on Spark, and written as a folder of Parquet files.
        settings: of Spark, by their own names.
    """
    spread = _spread(engine, form=form, measure=measure, control=control, settings=settings)
    if guard_formulas and form != "csv":
        raise InputError("--guard-formulas is for CSV releases; expected --format csv.")
    if not out.name:
        raise InputError(f"Expected a new folder for --out, found '{out}'.")
    if control is not None and measure is False:
        raise InputError("--control is for measuring; expected it without --no-measure.")
    stated = with_ledger(load(policy), ledger, source)
    planned = plan(stated, keep_order=keep_order, spread=spread, audience=audience)
    io.check_writable(form, planned.policy.schema.released)
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    alone = planned.method.noisy
    table = _opened(data, marks | {"alone": alone}, settings, spread=spread)
    others = None if control is None else io.read(control, **marks)
    evidence.check_control(others, planned.policy)
    named = None if isinstance(policy, Policy) else policy
    options: dict[str, str | bool | None] = {
        "format": None if form == "parquet" else form, "keep-order": keep_order,
        "guard-formulas": guard_formulas, "delimiter": delimiter, "encoding": encoding,
        "ledger": ledger.name if ledger else None, "source": source,
        "audience": audience, "control": control.name if control else None,
        "comparison": comparison.name if comparison else None,
        "measure": measure is True and control is None, "no-measure": measure is False,
        "engine": engine if spread else None,
    }  # fmt: skip
    facts = {
        "comparison": evidence.comparison(comparison),
        "inputs": evidence.inputs(data=data, policy=named, control=control),
        "versions": evidence.versions(),
        "again": evidence.again(data, named, out, options),
    }
    # All that can fail for reasons of the place comes before the release is paid for.
    with folders.workplace(out) as place:
        recovered = _ready(place, out, force=force)
        folders.reserve(place, 2 * data.stat().st_size + _ROOM)
        done = release.run(planned, table, progress=progress, noise=noise, note=out.name)
        progress("writing", 0, 1)
        with _keeping(done, place, out, form=form, guard_formulas=guard_formulas, spread=spread):
            folders.give_back(place)
            manifest = public.write(
                done.release,
                folders.new_folder(place),
                form=form,
                guard_formulas=guard_formulas,
                spread=spread,
            )
            folders.commit(place, out)
        release.settle(done)
        written = _compared(
            done.evidence,
            place,
            out,
            planned=planned,
            release=done.release,
            manifest=manifest,
            facts={"suppressed": manifest["suppressed"], "budget": done.account, **facts},
            measure=measure,
            control=others,
            progress=progress,
        )
    found = (f"Read as {table.found}.",) if table.found else ()
    # What became of the confidential step may tell of the table: of an epsilon release only its
    # folder says so.
    told = () if planned.method.noisy else (written.failed, written.unmeasured)
    notes = (
        *recovered,
        *found,
        *done.release.manifest["notes"],
        *done.warnings,
        *filter(None, told),
    )
    return Published(out, folders.internal_of(out), done.release, notes, written.measured)


def _ready(place: Path, out: Path, *, force: bool) -> tuple[str, ...]:
    """Mend what a killed run left, and refuse a place where a release may not be written."""
    with folders.refusing(out):
        recovered = folders.recover(place, out)
        for folder in (out, folders.internal_of(out)):
            public.refuse_place(folder, force=force)
        if out.with_name(out.name + UNFINISHED).exists():
            raise InputError(
                f"'{out.name}{UNFINISHED}' keeps a release that was paid for and not finished. Run "
                f"`shoal finish {out}`, or remove that folder."
            )
    return recovered


def _compared(secret: Confidential[Any], place: Path, out: Path, **terms: Any) -> internal.Written:
    """Compare a release that is in place with its original; say if the disk does not take it."""
    try:
        folder = folders.new_folder(place, "internal")
        written = internal.write(secret, folder, **terms)
        folders.put(folder, folders.internal_of(out))
    except OSError as error:
        reason = (error.strerror or "the disk refuses it").lower()
        raise InputError(
            f"The release is complete in '{out}', and its confidential report could not be "
            f"written: {reason}. Run `shoal report {out} DATA --policy POLICY` to make it; that "
            "spends no epsilon."
        ) from None
    return written


@contextmanager
def _keeping(done: release.Run, place: Path, out: Path, **terms: Any) -> Iterator[None]:
    """Keep a release that is paid for where its place cannot be written, and say where it is."""
    try:
        yield
    except (OSError, InputError) as error:
        reason = str(error) if isinstance(error, InputError) else (error.strerror or "").lower()
        epsilon = (done.account or {}).get("epsilon")
        spent = f"Epsilon {epsilon} counts as spent. " if epsilon else ""
        first = f"Cannot write '{out}': {reason.rstrip('.')}. {spent}"
        for folder in (out.parent, Path(tempfile.gettempdir())):
            kept = folder / (out.name + UNFINISHED)
            try:
                _keep(done, place, kept, **terms)
            except (OSError, ShoalError):
                shutil.rmtree(kept, ignore_errors=True)
                continue
            raise InputError(
                f"{first}The release itself is kept, for you alone, in '{kept}'. Make room, and "
                f"run `shoal finish {out} --kept {kept}`: that spends nothing more."
            ) from None
        raise InputError(f"{first}No other disk had room for the release: it is lost.") from None


def _keep(done: release.Run, place: Path, kept: Path, **terms: Any) -> None:
    kept.mkdir(mode=0o700)
    new = kept / "public"
    new.mkdir()
    public.write(done.release, new, **terms)
    file, entry = done.booking or (None, None)
    public.dump(kept / "booking.json", {"file": None if file is None else str(file), "id": entry})
    del place


def finish(out: Path, *, kept: Path | None = None, force: bool = False) -> Path:
    """Put a release in place that was drawn and paid for, and whose disk was full then.

    Args:
        out: the folder to write.
        kept: where the release is kept; by default beside it.
        force: replace an existing release.

    Returns:
        The folder.
    """
    kept = out.with_name(out.name + UNFINISHED) if kept is None else kept
    manifest = read_manifest(kept / "public").values
    try:
        booking = json.loads((kept / "booking.json").read_text(encoding="utf-8"))
        file, entry = booking["file"], booking["id"]
        whole = all(
            folders.digest(kept / "public" / name) == fact["sha256"]
            for name, fact in manifest["files"].items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise InputError(f"'{kept}' is damaged: it is not what an unfinished run kept there.")
    with folders.workplace(out) as place:
        with folders.refusing(out):
            folders.recover(place, out)
            for folder in (out, folders.internal_of(out)):
                public.refuse_place(folder, force=force)
            shutil.copytree(kept / "public", place / "new")
            folders.commit(place, out)
        if file is not None:
            release.settle_entry(Path(file), entry)
        shutil.rmtree(kept, ignore_errors=True)
    return out


def report(
    out: Path,
    data: Path,
    policy: Policy | Path,
    *,
    control: Path | None = None,
    comparison: Path | None = None,
    measure: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
) -> internal.Written:
    """Make the confidential folder of a release again, from its files and the original.

    It spends no epsilon and touches nothing that is public. Rows of the release are matched to
    nobody: losses row by row are known to the run that made the release, and to no other.

    Args:
        out: the release.
        data: the table that it was made of.
        policy: the policy that it was made by.
        control: people of the same population who are not in the table.
        comparison: what `shoal compare --json` printed.
        measure: run attacks and measures of utility.
        delimiter: of a CSV file.
        encoding: of a CSV file.
        progress: called with the stage and how far it is.
    """
    manifest = read_manifest(out).values
    stated = load(policy)
    if stated.digest != manifest.get("policy_digest"):
        raise InputError(f"'{out}' was made by another policy; expected the one of its manifest.")
    planned = plan(replace(stated, required={}, audience=None))
    progress("reading the files", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    raw = io.read(data, **marks, alone=planned.method.noisy)
    others = None if control is None else io.read(control, **marks)
    evidence.check_control(others, planned.policy)
    table = next((out / name for name in manifest.get("files", {}) if name.startswith("release.")),
                 None)  # fmt: skip
    if table is None or not table.is_file():
        raise InputError(f"'{out}' lacks its table, or has it in parts; expected release.parquet.")
    made = Release(io.read(table).frame, (), (), (), manifest)
    named = None if isinstance(policy, Policy) else policy
    with folders.workplace(out) as place:
        with folders.refusing(folders.internal_of(out)):
            folders.recover(place, out)
            public.refuse_place(folders.internal_of(out), force=True)
            shutil.rmtree(folders.internal_of(out), ignore_errors=True)
        return _compared(
            Confidential(_Unmatched(raw)),
            place,
            out,
            planned=planned,
            release=made,
            manifest=manifest,
            facts={
                "suppressed": manifest["suppressed"],
                "budget": None,
                "comparison": evidence.comparison(comparison),
                "inputs": evidence.inputs(data=data, policy=named, control=control),
                "versions": evidence.versions(),
                "again": evidence.again(data, named, out, {}),
            },
            measure=measure,
            control=others,
            progress=progress,
        )


@dataclass(frozen=True, eq=False)
class _Unmatched:
    """The original of a release whose rows are matched to nobody."""

    raw: io.Raw
    dropped: int = 0

    @property
    def clamped(self) -> Mapping[str, Mapping[str, int]]:
        """Not known any more."""
        return {}

    def figures(self, _columns: Any, _form: Any) -> dict[str, Any]:
        """The number of rows; nothing that compares row by row."""
        return {
            "rows": self.raw.frame.height,
            "unique_on_quasi_identifiers": {"original": None, "released": None},
            "homogeneous": {},
            "columns": [],
        }


def _spread(
    engine: str,
    *,
    form: str,
    measure: bool | None,
    control: Path | None,
    settings: Mapping[str, str] | None,
) -> bool:
    """Whether the release is made on Spark; refuse what goes with the other engine alone."""
    if engine not in ENGINES:
        raise InputError(f"Expected an engine among {', '.join(ENGINES)}, found '{engine}'.")
    if engine == "local":
        if settings:
            raise InputError("--spark-conf is for Spark; expected it with --engine spark.")
        return False
    if form != "parquet":
        raise InputError("Spark writes a folder of Parquet files; expected --format parquet.")
    if measure or control is not None:
        raise InputError(
            "A release on Spark is not attacked on the way; expected neither --measure nor "
            "--control. Use `shoal measure` on a sample of both tables."
        )
    return True


def _opened(
    data: Path, marks: Mapping[str, Any], settings: Mapping[str, str] | None, *, spread: bool
) -> engine.Source:
    if not spread:
        return engine.source(io.read(data, **marks))
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the extra 'spark': pip install 'shoal[spark]'.")
    from shoal.engine.spark import files  # noqa: PLC0415 (optional)

    return files.read(data, **marks, settings=settings)


def measure(
    original: Path,
    released: Path,
    policy: Policy | Path,
    *,
    control: Path | None = None,
    out: Path | None = None,
    force: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> measuring.Measurement:
    """Measure a release against its original, from files; all of it is confidential.

    Args:
        original: the confidential table.
        released: its release, by any tool.
        policy: the policy file, or what was read from it.
        control: people of the same population who are not in the original.
        out: where to write a report page.
        force: replace an existing page.
        delimiter: of a CSV file, where it cannot be found out.
        encoding: of a CSV file, where it cannot be found out.
        progress: called with the stage and how far it is.
        options: of `shoal.measure`.
    """
    check_text(out, force=force)
    stated = load(policy)
    progress("reading the files", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    before = io.read(original, **marks).frame
    after = io.read(released, **io.marks_of_other(released, marks | {"encoding": encoding})).frame
    others = None if control is None else io.read(control, **marks).frame
    found = measuring.measure(before, after, stated, control=others, progress=progress, **options)
    if out is not None:
        page = html.measure_report(found.facts(), found.plots(), DIFFERENCE)
        write_text(out, page, force=force, confidential=True)
    return found


def compare(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    candidates: Path | None = None,
    on_sample: Path | None = None,
    jobs: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    ledger: Path | None = None,
    source: str | None = None,
    tell: Callable[[str], None],
    progress: Progress = silent,
    **options: Any,
) -> Comparison:
    """Compare methods on a file, and write what was found: all of it confidential.

    Args:
        data: the confidential table; it is not opened where there is a sample.
        policy: the policy file, or what was read from it.
        out: the folder to write, mode 0700; results are kept in it, so that a second run costs
            nothing and an interrupted one goes on.
        candidates: a grid file.
        on_sample: a file of people who may be looked at.
        jobs: processes at a time; by default one for each core.
        delimiter: of a CSV file, where it cannot be found out.
        encoding: of a CSV file, where it cannot be found out.
        ledger: the budget file, instead of the policy's.
        source: the population in the budget file, instead of the policy's.
        tell: called before the run with what looking costs.
        progress: called with the time left and how much is done.
        options: of `shoal.compare`.
    """
    _check_compared(out)
    stated = with_ledger(load(policy), ledger, source)
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    frame = io.read(data if on_sample is None else on_sample, **marks).frame
    with folders.workplace(out) as place, folders.refusing(out):
        prepare(out)
        out.chmod(0o700)
        found = comparison.compare(
            None if on_sample is not None else frame,
            stated,
            candidates=candidates,
            on_sample=None if on_sample is None else frame,
            folder=out / KEPT,
            jobs=jobs or _cores(),
            note=out.name,
            tell=tell,
            progress=progress,
            **options,
        )
        progress("writing", 0, 1)
        page = html.comparison_report(found.facts(), found.plots())
        folder = folders.new_folder(place)
        (folder / "comparison.json").write_text(found.to_json() + "\n", encoding="utf-8")
        found.to_frame().write_parquet(
            folder / "comparison.parquet", metadata={"confidential": html.CONFIDENTIAL}
        )
        (folder / "report.html").write_text(page, encoding="utf-8")
        folders.replace_files(folder, out)
    return found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def select(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    epsilon: str,
    candidates: Path | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    ledger: Path | None = None,
    source: str | None = None,
    tell: Callable[[str], None],
    progress: Progress = silent,
) -> Selection:
    """Choose one method privately on a file, pay for it, and write the choice to `selection.json`.

    The arguments are those of `compare`; epsilon is a number as text, so that it is exact.
    """
    _check_compared(out)
    stated = with_ledger(load(policy), ledger, source)
    try:
        price = Fraction(epsilon)
    except ValueError:
        raise InputError(f"Expected an epsilon such as 0.5, found '{epsilon}'.") from None
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    frame = io.read(data, **marks, alone=True).frame
    with folders.workplace(out):
        prepare(out)
        out.chmod(0o700)
        chosen = comparison.select(
            frame,
            stated,
            epsilon=price,
            candidates=candidates,
            note=out.name,
            tell=tell,
            progress=progress,
        )
        facts = {
            "chosen": chosen.candidate.label,
            "epsilon": plain(chosen.epsilon),
            "tried_with_epsilon": plain(chosen.each),
            "among": [one.label for one in chosen.among],
            "left_out": {one.label: reason for one, reason in chosen.left_out},
        }
        write_text(out / "selection.json", json.dumps(facts, indent=2) + "\n", force=True)
    return chosen


def _check_compared(out: Path) -> None:
    """Refuse a folder that holds anything but a comparison."""
    if not out.name:
        raise InputError(f"Expected a folder for --out, found '{out}'.")
    if out.exists() and not out.is_dir():
        raise InputError(f"Cannot write the folder '{out}': a file of that name exists.")
    if out.is_dir() and not {path.name for path in out.iterdir()} <= _COMPARED:
        raise InputError(f"'{out}' holds other things than a comparison; choose another --out.")


def with_ledger(policy: Policy, file: Path | None, source: str | None) -> Policy:
    """The policy with another budget file or population, as the command line may state them."""
    if file is None and source is None:
        return policy
    stated = {**policy.ledger, **({"file": str(file)} if file else {})}
    stated |= {"source": source} if source else {}
    for key, option in (("file", "--ledger"), ("source", "--source")):
        if key not in stated:
            raise InputError(f"Expected {option}, or '{key}' under [ledger] in the policy.")
    return replace(policy, ledger=stated)

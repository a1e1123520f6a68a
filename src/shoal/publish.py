"""Run, render and write: from files to two folders, all or nothing.

`DIR` holds only what may be published; `DIR.internal` holds what compares the release with
the original. Both are written beside their place under a temporary name, flushed to disk and
renamed: errors and interrupts leave either nothing or a whole release. A run that is killed may
leave its temporary folders, mode 0700 and with a dot before their names.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shoal import comparison, inputs, io, measuring, release
from shoal.comparison import Comparison, Selection, grid
from shoal.core import Noise, Policy, Progress, Release, silent
from shoal.errors import InputError
from shoal.locking import alone
from shoal.measures.attack import DIFFERENCE
from shoal.planning import NO_PERSON, plan
from shoal.policy import load
from shoal.report import evidence, html
from shoal.serialise import plain

INTERNAL_SUFFIX = ".internal"
KEPT = "results"
"""Folder of a comparison that keeps what is done."""
ENGINES = ("local", "spark")
_COMPARED = {KEPT, "comparison.json", "comparison.parquet", "report.html", "selection.json"}
_TABLES = tuple(f"release.{form}" for form in io.FORMATS)
EXTRAS = ("measurements.parquet",)
"""Tables that methods publish beside the rows."""


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
    inputs.refuse_special(out)
    if control is not None and measure is False:
        raise InputError("--control is for measuring; expected it without --no-measure.")
    stated = with_ledger(load(policy), ledger, source)
    planned = plan(stated, keep_order=keep_order, spread=spread, audience=audience)
    io.check_writable(form, planned.policy.schema.released)
    internal = out.with_name(out.name + INTERNAL_SUFFIX)
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    alone = planned.method.noisy
    raw = _opened(data, marks | {"alone": alone}, settings, spread=spread)
    others = None if control is None else io.read(control, **marks)
    evidence.check_control(others, planned.policy)
    compared = evidence.comparison(comparison)
    files = evidence.inputs(
        data=data, policy=None if isinstance(policy, Policy) else policy, control=control
    )
    options: dict[str, str | bool | None] = {
        "format": None if form == "parquet" else form, "keep-order": keep_order,
        "guard-formulas": guard_formulas, "delimiter": delimiter, "encoding": encoding,
        "ledger": ledger.name if ledger else None, "source": source,
        "audience": audience, "control": control.name if control else None,
        "comparison": comparison.name if comparison else None,
        "measure": measure is True and control is None, "no-measure": measure is False,
        "engine": engine if spread else None,
    }  # fmt: skip
    # All that can fail for reasons of the place comes before the release is paid for.
    with _alone(out), _writing(out, internal) as (public, private):
        for folder in (out, internal):
            _check_place(folder, force=force)
        done = release.run(planned, raw, progress=progress, noise=noise, note=out.name)
        measured, unmeasured = None, evidence.ON_SPARK
        if isinstance(raw, io.Raw):
            measured, unmeasured = evidence.measured(
                planned, raw, done.release, wanted=measure, control=others, progress=progress
            )
        progress("writing", 0, 1)
        written = _written(done.release, public, form, guard_formulas=guard_formulas, spread=spread)
        manifest = {
            **done.release.manifest,
            "guard_formulas": guard_formulas,
            "files": {
                path.relative_to(public).as_posix(): {
                    "sha256": evidence.digest(path),
                    "bytes": path.stat().st_size,
                }
                for path in written
            },
        }
        _dump(public / "manifest.json", manifest)
        (public / "report.html").write_text(html.public_report(manifest), encoding="utf-8")
        figures = {
            "confidential": html.CONFIDENTIAL,
            **done.figures,
            "measured": None if measured is None else measured.facts(),
            "unmeasured": unmeasured,
            "comparison": compared,
            "inputs": files,
            "versions": evidence.versions(),
            "again": evidence.again(
                data, None if isinstance(policy, Policy) else policy, out, options
            ),
        }
        _dump(private / "figures.json", figures)
        officer = html.internal_report(manifest, figures, planned.policy.context)
        (private / "report.html").write_text(officer, encoding="utf-8")
        public.chmod(0o755)  # the internal one keeps 0700, as it was made
        _swap([(private, internal), (public, out)])
        release.settle(done)
    found = (f"Read as {raw.found}.",) if raw.found else ()
    told = (unmeasured,) if unmeasured and measure is not False else ()
    notes = (*found, *done.release.manifest["notes"], *done.warnings, *told)
    return Published(out, internal, done.release, notes, measured)


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
) -> Any:
    if not spread:
        return io.read(data, **marks)
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the extra 'spark': pip install 'shoal[spark]'.")
    from shoal.engine.spark import files  # noqa: PLC0415 (optional)

    return files.read(data, **marks, settings=settings)


def _written(
    done: Release, public: Path, form: str, *, guard_formulas: bool, spread: bool
) -> list[Path]:
    """Write the table and what goes beside it; the files."""
    table = public / f"release.{form}"
    about = NO_PERSON if NO_PERSON in done.manifest["notes"] else None
    if spread:
        from shoal.engine.spark import files  # noqa: PLC0415 (optional)

        written = files.write(done.data, table, rows=done.manifest["rows"], about=about)
        extras = {name: files.fetched(extra) for name, extra in done.extras.items()}
    else:
        io.write(done.data, table, labels=done.labels, about=about, guard_formulas=guard_formulas)
        written, extras = [table], dict(done.extras)
    for name, extra in extras.items():
        written.append(public / f"{name}.parquet")
        io.write(extra, written[-1], labels={})
    return written


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
    inputs.check_options(seed=options.get("seed"))
    stated = load(policy)
    progress("reading the files", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    before, after = (io.read(path, **marks).frame for path in (original, released))
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
    listed = None if candidates is None else grid.read(candidates)
    asked = {name: value for name, value in options.items() if name in inputs.RANGES}
    inputs.check_options(jobs=jobs, **asked)
    stated = with_ledger(load(policy), ledger, source)
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    frame = io.read(data if on_sample is None else on_sample, **marks).frame
    with _alone(out):
        prepare(out)
        out.chmod(0o700)
        found = comparison.compare(
            None if on_sample is not None else frame,
            stated,
            candidates=listed,
            on_sample=None if on_sample is None else frame,
            folder=out / KEPT,
            jobs=_cores() if jobs is None else jobs,
            note=out.name,
            tell=tell,
            progress=progress,
            **options,
        )
        progress("writing", 0, 1)
        page = html.comparison_report(found.facts(), found.plots())
        with _writing(out / KEPT / "new") as (folder,):
            (folder / "comparison.json").write_text(found.to_json() + "\n", encoding="utf-8")
            found.to_frame().write_parquet(
                folder / "comparison.parquet", metadata={"confidential": html.CONFIDENTIAL}
            )
            (folder / "report.html").write_text(page, encoding="utf-8")
            _flush(folder)
            for path in list(folder.iterdir()):
                path.replace(out / path.name)
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
    price = inputs.parse_epsilon(epsilon)
    listed = None if candidates is None else grid.read(candidates)
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    frame = io.read(data, **marks, alone=True).frame
    with _alone(out):
        prepare(out)
        out.chmod(0o700)
        chosen = comparison.select(
            frame,
            stated,
            epsilon=price,
            candidates=listed,
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


def check_text(path: Path | None, *, force: bool) -> None:
    """Refuse a place for a text file before the work for it is done."""
    if path is None:
        return
    inputs.refuse_special(path)
    if path.is_dir():
        raise InputError(f"Expected a file to write, found the folder '{path}'.")
    if path.exists() and not force:
        raise InputError(f"'{path}' exists already. Choose another --out, or add --force.")


def write_text(path: Path, text: str, *, force: bool, confidential: bool = False) -> None:
    """Write a text file, all or nothing; an existing file only if forced.

    Args:
        path: the file.
        text: its content.
        force: replace an existing file.
        confidential: only the owner may read it.
    """
    check_text(path, force=force)
    with _writing(path) as (folder,):
        new = folder / path.name
        new.write_text(text, encoding="utf-8")
        if confidential:
            new.chmod(0o600)
        _flush(folder)
        new.replace(path)


def prepare(folder: Path) -> None:
    """Make a folder to work in, or say why it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other runs from writing the same release."""
    with ExitStack() as held:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(out.parent / f".{out.name}.lock"))
        except BlockingIOError:
            raise InputError(
                f"Another run is writing '{out}'. Wait for it, or choose another --out."
            ) from None
        except OSError as error:
            raise _cannot_write(out, error) from None
        yield


def _is_release(folder: Path) -> bool:
    """Whether a folder holds what we write, and nothing else."""
    names = {path.name for path in folder.iterdir()}
    if not names <= {"manifest.json", "figures.json", "report.html", *_TABLES, *EXTRAS}:
        return False
    return _is_ours(folder)


def _is_ours(folder: Path) -> bool:
    for name, key in (("manifest.json", "shoal_version"), ("figures.json", "confidential")):
        try:
            if key in inputs.parse_json(inputs.read_text(folder / name, name)):
                return True
        except (InputError, ValueError, TypeError):
            continue
    return False


def _check_place(folder: Path, *, force: bool) -> None:
    for above in folder.absolute().parents:
        if _is_ours(above):
            raise InputError(f"'{folder}' lies inside the release '{above}'; choose another place.")
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir() or folder.is_symlink():
        raise InputError(f"Cannot write the folder '{folder}': a file of that name exists.")
    if not any(folder.iterdir()):
        return
    if not force:
        raise InputError(
            f"'{folder}' exists already. Choose another --out, or add --force to replace it."
        )
    if not _is_release(folder):
        raise InputError(f"'{folder}' is no release of Shoal, so that --force does not replace it.")


@contextmanager
def _writing(*targets: Path) -> Iterator[list[Path]]:
    """Give a temporary folder beside each target, and remove them whatever happens."""
    folders: list[Path] = []
    try:
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.append(Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)))
        yield folders
    except OSError as error:
        raise _cannot_write(targets[0], error) from None
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _cannot_write(target: Path, error: OSError) -> InputError:
    reason = (error.strerror or "the disk refuses it").lower()
    return InputError(f"Cannot write '{target}': {reason}. Nothing was written.")


def _swap(moves: list[tuple[Path, Path]]) -> None:
    """Put new folders in place of old ones; if one cannot be, put all back."""
    for new, _ in moves:
        _flush(new)
    undo: list[tuple[Path, Path]] = []
    replaced: list[Path] = []
    try:
        for new, target in moves:
            if target.exists():
                aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
                replaced.append(aside)
                target.rename(aside / target.name)
                undo.append((aside / target.name, target))
            new.rename(target)
            undo.append((target, new))
        for _, target in moves:
            _flush_folder(target.parent)
    except BaseException:
        # An interrupt is undone like an error. If this fails too, what was replaced stays in
        # its folder beside the target.
        for moved, back in reversed(undo):
            moved.rename(back)
        for aside in replaced:
            aside.rmdir()
        raise
    for aside in replaced:
        shutil.rmtree(aside, ignore_errors=True)


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _flush(path)
            continue
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dump(path: Path, value: Any) -> None:
    # Infinite numbers, which JSON lacks, become texts.
    text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")

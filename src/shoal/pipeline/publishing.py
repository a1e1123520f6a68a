"""Protect a file: the public folder first, then what compares it with the original."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shoal import engine as engines
from shoal import io
from shoal.core import Noise, Policy, Progress, Release, ReleaseForm, silent
from shoal.errors import InputError
from shoal.evaluation import evaluate
from shoal.io import folders, text_files
from shoal.io.folders import UNFINISHED
from shoal.pipeline import booking, protecting, public_folder
from shoal.pipeline.finishing import compared, in_place, keeping
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.report import evidence

ENGINES = ("local", "spark")
_ROOM = 16 << 20
"""Bytes to reserve on the disk beyond twice the size of the table's file."""


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
    measured: evaluate.Evaluation | None = None


def protect(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    file_format: str = "parquet",
    force: bool = False,
    keep_order: bool = False,
    guard_formulas: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    budget: Path | None = None,
    source: str | None = None,
    audience: str | None = None,
    evaluate: bool | None = None,
    control: Path | None = None,
    comparison: Path | None = None,
    progress: Progress = silent,
    noise: Noise | None = None,
    engine: str = "local",
    settings: Mapping[str, str] | None = None,
) -> Published:
    """Protect a file as a policy says and write the release.

    Args:
        data: the table; see `shoal.io.files.read`.
        policy: the policy file, or what was read from it.
        out: the folder to write; `out.internal` is written beside it.
        file_format: parquet, csv, sav or dta.
        force: replace an existing release.
        keep_order: release row i in place of row i.
        guard_formulas: put an apostrophe before CSV text that a spreadsheet would run; so it is
            unless false is given.
        delimiter: of a CSV file, where it cannot be found out.
        encoding: of a CSV file, where it cannot be found out.
        budget: the budget file, instead of the policy's.
        source: the population in the budget file, instead of the policy's.
        audience: who will get the release, instead of the policy's: public-use, scientific-use or
            secure-use.
        evaluate: run attacks and measures of utility for the officer's report; by default on
            tables of at most `evidence.MEASURED` rows.
        control: people of the same population who are not in the table, for the attacks.
        comparison: what `shoal compare --json` printed, for the officer's report.
        progress: called with the stage and how far it is.
        noise: another source of noise, for experiments; see `shoal.protect`.
        engine: local, or spark: a Parquet file, a folder of them or a CSV file is read and
            protected on Spark, and written as a folder of Parquet files.
        settings: of Spark, by their own names.
    """
    spread = _spread(
        engine, file_format=file_format, evaluate=evaluate, control=control, settings=settings
    )
    if guard_formulas and file_format != "csv":
        raise InputError("--guard-formulas is for CSV releases; expected --file-format csv.")
    guarded = file_format == "csv" and guard_formulas is not False
    if not out.name:
        raise InputError(f"Expected a new folder for --out, found '{out}'.")
    text_files.refuse_special(out)
    if control is not None and evaluate is False:
        raise InputError("--control is for measuring; expected it without --no-evaluate.")
    stated = booking.with_budget(load(policy), budget, source)
    planned = plan(stated, keep_order=keep_order, spread=spread, audience=audience)
    io.check_writable(file_format, planned.policy.schema.released)
    if planned.setting.release_form is ReleaseForm.TREE and file_format in io.STATS_NAMES:
        raise InputError("Boxes have columns that SPSS and Stata cannot name; expected "
                         "--file-format parquet or csv.")  # fmt: skip
    progress("reading the file", 0, 1)
    marks = io.marks(stated, delimiter=delimiter, encoding=encoding)
    alone = planned.method.noisy
    table = _opened(data, marks | {"alone": alone}, settings, spread=spread)
    others = None if control is None else io.read(control, **marks)
    evidence.check_control(others, planned.policy)
    named = None if isinstance(policy, Policy) else policy
    options: dict[str, str | bool | None] = {
        "file-format": None if file_format == "parquet" else file_format, "keep-order": keep_order,
        "no-guard-formulas": guard_formulas is False, "delimiter": delimiter, "encoding": encoding,
        "budget": budget.name if budget else None, "source": source,
        "audience": audience, "control": control.name if control else None,
        "comparison": comparison.name if comparison else None,
        "evaluate": evaluate is True and control is None, "no-evaluate": evaluate is False,
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
        done = protecting.run(planned, table, progress=progress, noise=noise, note=out.name)
        progress("writing", 0, 1)
        with keeping(done, out, file_format=file_format, guard_formulas=guarded, spread=spread):
            folders.give_back(place)
            manifest = public_folder.write(
                done.release,
                folders.new_folder(place),
                file_format=file_format,
                guard_formulas=guarded,
                spread=spread,
            )
            folders.commit(place, out)
        costs: tuple[str, ...] = ()
        with in_place(done, out):
            protecting.settle(done)
            if evaluate is not False:
                costs = booking.record_inspection(planned.policy, what="protect", note=out.name)
            written = compared(
                done.evidence,
                place,
                out,
                planned=planned,
                release=done.release,
                manifest=manifest,
                facts={"suppressed": manifest["suppressed"], "budget": done.account, **facts},
                evaluate=evaluate,
                inspected=evaluate is not False or not planned.policy.budget,
                control=others,
                progress=progress,
            )
        done.close()
    found = (f"Read as {table.found}.",) if table.found else ()
    # What became of the confidential step may tell of the table: of an epsilon release only its
    # folder says so.
    told = () if planned.method.noisy else (written.failed, written.unmeasured)
    notes = (
        *recovered,
        *found,
        *manifest["notes"],
        *done.warnings,
        *filter(None, told),
        *costs,
    )
    return Published(out, folders.internal_of(out), done.release, notes, written.measured)


def _ready(place: Path, out: Path, *, force: bool) -> tuple[str, ...]:
    """Mend what a killed run left, and refuse a place where a release may not be written."""
    with folders.refusing(out):
        recovered = folders.recover(place, out)
        for folder in (out, folders.internal_of(out)):
            public_folder.refuse_place(folder, force=force)
        if out.with_name(out.name + UNFINISHED).exists():
            raise InputError(
                f"'{out.name}{UNFINISHED}' keeps a release that was paid for and not finished. Run "
                f"`shoal finish {out}`, or remove that folder."
            )
    return recovered


def _spread(
    engine: str,
    *,
    file_format: str,
    evaluate: bool | None,
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
    if file_format != "parquet":
        raise InputError("Spark writes a folder of Parquet files; expected --file-format parquet.")
    if evaluate or control is not None:
        raise InputError(
            "A release on Spark is not attacked on the way; expected neither --evaluate nor "
            "--control. Use `shoal evaluate` on a sample of both tables."
        )
    return True


def _opened(
    data: Path, marks: Mapping[str, Any], settings: Mapping[str, str] | None, *, spread: bool
) -> engines.Source:
    if not spread:
        return engines.source(io.read(data, **marks))
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the extra 'spark': pip install 'shoal[spark]'.")
    from shoal.engine.spark import files  # noqa: PLC0415 (optional)

    return files.read(data, **marks, settings=settings)

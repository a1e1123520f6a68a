"""Protect a file: the public folder first, then the comparison with the original."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import engine as engines
from shoal import io
from shoal.core import Kind, Noise, Policy, Progress, Release, ReleaseForm, silent
from shoal.core.serialise import parse_json
from shoal.errors import LOST_SPARK, ClaimViolationError, InputError, ShoalError, is_spark_lost
from shoal.io import folders, text_files
from shoal.io.csv_files import Dialect, choose_dialect
from shoal.io.files import format_like
from shoal.io.folders import UNFINISHED
from shoal.io.text_files import read_bytes
from shoal.pipeline import booking, protect_table
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import (
    ENGINES,
    SPREADSHEETS,
    BudgetOptions,
    EngineOptions,
    EvaluationOptions,
    OutputOptions,
    ReadingOptions,
)
from shoal.pipeline.planning import Plan, plan
from shoal.pipeline.scheme_files import Applied
from shoal.publish import evidence, public_folder
from shoal.publish.confidential_folder import compare_with_original

if TYPE_CHECKING:
    from shoal.evaluation.evaluate import Evaluation

_ROOM = 16 << 20
"""Bytes to reserve on the disk beyond twice the size of the table's file."""


@dataclass(frozen=True)
class Published:
    """Where a release was written, and what it contains.

    Attributes:
        measured: what compares it with the original, if it was measured: confidential.
        warnings: the notes among them that say what it did to the budget.
    """

    folder: Path
    internal: Path
    release: Release
    notes: tuple[str, ...]
    measured: "Evaluation | None" = None
    warnings: tuple[str, ...] = ()


def protect(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    reading: ReadingOptions = ReadingOptions(),
    output: OutputOptions = OutputOptions(),
    budget: BudgetOptions = BudgetOptions(),
    evaluation: EvaluationOptions = EvaluationOptions(),
    engine: EngineOptions = EngineOptions(),
    progress: Progress = silent,
    noise: Noise | None = None,
    applied: Applied | None = None,
) -> Published:
    """Protect a file as a policy says and write the release, `out`, and `out.internal` beside it.

    For what may be read see `shoal.io.files.read`, for other noise `shoal.protect`. `applied` is
    the scheme of an earlier release, if the table is recoded the same way.
    """
    stated_format = output.file_format
    usual = "parquet" if engine.distributed else format_like(data)
    output = replace(output, file_format=stated_format or usual)
    _refuse(out, output, evaluation, engine)
    stated = budget.apply_to(policy)
    planned = plan(
        stated,
        keep_order=output.keep_order,
        distributed=engine.distributed,
        audience=output.audience,
        data=data,
        delimiter=reading.delimiter,
    )
    boxes = planned.setting.release_form is ReleaseForm.TREE
    if boxes and stated_format is None and output.file_format in io.STATS_NAMES:
        output = replace(output, file_format="parquet")
    io.check_writable(str(output.file_format), planned.policy.schema.released)
    if boxes and output.file_format in io.STATS_NAMES:
        raise InputError("A release of boxes has column names that SPSS and Stata do not allow; "
            "expected "
                         "--file-format parquet or csv.")  # fmt: skip
    progress("reading the file", 0, 1)
    marks = reading.marks(stated)
    marks_alone = marks | {"alone": planned.method.noisy}
    raw = None if engine.distributed else io.read(data, **marks_alone)
    table = _on_spark(data, marks_alone, engine) if raw is None else engines.source(raw)
    output = replace(output, dialect=_dialect(planned, reading, raw))
    control = None if evaluation.control is None else io.read(evaluation.control, **marks)
    evidence.check_control(control, planned.policy)
    options = _collect_options(reading, output, budget, evaluation, engine)
    facts = evidence.facts(data, policy, out, evaluation, alone=planned.method.noisy, **options)
    # All that can fail for reasons of the place comes before the release is paid for.
    if evaluation.evaluate is not False and not engine.distributed:
        import_module("shoal.evaluation.evaluate")
    with folders.workplace(out) as place:
        recovered = _ready(place, out, force=output.force)
        if (used := planned.policy.budget) is not None:
            booking.refuse_older_copies(used.file, out.parent, used.file.parent)
        folders.reserve(place, 2 * evidence.size_of(data) + _ROOM)
        with _keeping_stopped(out, output, distributed=engine.distributed):
            done = protect_table.run(planned, table, progress=progress, noise=noise, note=out.name,
                                     applied=applied)  # fmt: skip
        planned = done.planned
        if done.release.unexpected:
            raise InputError(f"{' '.join(done.release.unexpected)} Nothing was written.")
        progress("writing", 0, 1)
        with keeping(done, out, output, distributed=engine.distributed):
            folders.give_back(place)
            manifest = public_folder.write(
                done.release,
                folders.new_folder(place),
                output,
                distributed=engine.distributed,
                counts=done.counts,
            )
            folders.commit(place, out)
        costs: tuple[str, ...] = ()
        with in_place(done, out):
            protect_table.settle(done)
            if evaluation.evaluate is not False:
                costs = booking.record_inspection(planned.policy, what="protect", note=out.name)
            written = compare_with_original(
                done.evidence,
                place,
                out,
                planned=planned,
                release=done.release,
                manifest=manifest,
                facts={"budget": done.account, **facts},
                evaluate=evaluation.evaluate,
                control=control,
                progress=progress,
            )
        done.close()
    reading_note = (f"Read as {table.found}.",) if table.found else ()
    # What became of the confidential step may disclose something about the table: for an epsilon
    # release, only the confidential folder says so.
    remarks = (written.failed, written.unmeasured, *written.exposed)
    later = () if planned.method.noisy else filter(None, remarks)
    warnings = (*done.warnings, *costs)
    notes = (*recovered, *reading_note, *manifest.notes, *later, *warnings)
    internal = folders.internal_of(out)
    return Published(out, internal, done.release, notes, written.measured, warnings)


def _ready(place: Path, out: Path, *, force: bool) -> tuple[str, ...]:
    """Recover from a killed run, and refuse a place where a release may not be written."""
    with folders.refusing(out):
        recovered = folders.recover(place, out)
        public_folder.refuse_places(out, force=force)
        if out.with_name(out.name + UNFINISHED).exists():
            raise InputError(
                f"'{out.name}{UNFINISHED}' keeps an unfinished release whose epsilon is spent. Run "
                f"`shoal finish {out}`, or remove that folder."
            )
    return recovered


def _refuse(
    out: Path, output: OutputOptions, evaluation: EvaluationOptions, engine: EngineOptions
) -> None:
    """Refuse options that exclude each other, and a place that cannot be written."""
    if engine.name not in ENGINES:
        raise InputError(f"Expected an engine among {', '.join(ENGINES)}, found '{engine.name}'.")
    if engine.settings and not engine.distributed:
        raise InputError("--spark-conf is for Spark; expected it with --engine spark.")
    if engine.distributed and output.file_format != "parquet":
        raise InputError("Spark writes a folder of Parquet files; expected --file-format parquet.")
    if engine.distributed and (evaluation.evaluate or evaluation.control is not None):
        raise InputError(
            "A release on Spark is not evaluated while it is made; expected neither --evaluate nor "
            "--control. Use `shoal evaluate` on a sample of both tables."
        )
    if output.guard_formulas and output.file_format not in SPREADSHEETS:
        raise InputError(
            "--guard-formulas is for spreadsheets; expected --file-format csv or xlsx."
        )
    if str(out) == "-":
        raise InputError(
            "Expected a folder for --out, found -: a release is several files. Choose a folder; "
            "the table in it is the file release.*, which may be piped on."
        )
    if not out.name:
        raise InputError(f"Expected a new folder for --out, found '{out}'.")
    text_files.refuse_special(out)
    if evaluation.control is not None and evaluation.evaluate is False:
        raise InputError("--control is for the evaluation; expected it without --no-evaluate.")


def _collect_options(
    reading: ReadingOptions,
    output: OutputOptions,
    budget: BudgetOptions,
    evaluation: EvaluationOptions,
    engine: EngineOptions,
) -> dict[str, str | bool | None]:
    """Collect the given options of the command, for whoever repeats it."""
    return {
        "file-format": output.file_format,
        "keep-order": output.keep_order, "no-guard-formulas": output.guard_formulas is False,
        "delimiter": reading.delimiter, "encoding": reading.encoding, "sheet": reading.sheet,
        "header-row": reading.header_row, "skip": reading.skip,
        "budget": _name(budget.file), "source": budget.source, "audience": output.audience,
        "control": _name(evaluation.control), "comparison": _name(evaluation.comparison),
        "evaluate": evaluation.evaluate is True and evaluation.control is None,
        "no-evaluate": evaluation.evaluate is False,
        "engine": engine.name if engine.distributed else None,
    }  # fmt: skip


def _name(path: Path | None) -> str | None:
    return None if path is None else path.name


def _dialect(planned: Plan, reading: ReadingOptions, raw: io.Raw | None) -> Dialect:
    """Return how a CSV release is written: as stated, and without an epsilon as the file is.

    What the file is like is an output of a release. So beside an epsilon it is not looked at: two
    files that differ in one cell may look as if they had other delimiters or decimal marks.
    """
    policy = planned.policy
    stated = (policy.writing, vars(reading), vars(policy.reading))
    if raw is None or planned.method.noisy:
        return choose_dialect(*stated)
    numbers = [column.name for column in policy.schema.columns if column.kind is Kind.NUMERIC]
    frame = None if "decimal" in raw.reading else raw.frame
    return choose_dialect(*stated, raw.reading, names=numbers, frame=frame)


def _on_spark(data: Path, marks: Mapping[str, Any], engine: EngineOptions) -> engines.Source:
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the extra 'spark': pip install 'shoal[spark]'.")
    from shoal.engine.spark import files  # noqa: PLC0415 (optional)

    return files.read(data, **marks, settings=engine.settings)


@contextmanager
def _keeping_stopped(out: Path, output: OutputOptions, *, distributed: bool) -> Iterator[None]:
    """Keep a drawn release that fails a check in the confidential folder only."""
    try:
        yield
    except protect_table.StoppedError as stopped:
        kept = folders.internal_of(out) / "stopped"
        where = f"What was drawn is kept in '{kept}', for you alone: it is not to be published."
        try:
            kept.mkdir(mode=0o700, parents=True)
            kept.parent.chmod(0o700)
            public_folder.write(stopped.release, kept, output, distributed=distributed)
        except (OSError, ShoalError):
            shutil.rmtree(kept, ignore_errors=True)
            where = "What was drawn could not be kept."
        raise ClaimViolationError(f"{stopped} {where}") from None


@contextmanager
def in_place(done: protect_table.Run, out: Path) -> Iterator[None]:
    """Add to every error after publication that the release is in place, and what it cost."""
    try:
        yield
    except ShoalError as error:
        raise type(error)(
            f"The release is complete in '{out}'. {_describe_spending(done)}{error}"
        ) from None


def _describe_spending(done: protect_table.Run) -> str:
    epsilon = (done.account or {}).get("epsilon")
    return f"Epsilon {epsilon} counts as spent. " if epsilon else ""


@contextmanager
def keeping(
    done: protect_table.Run, out: Path, output: OutputOptions, *, distributed: bool
) -> Iterator[None]:
    """Keep a paid release whose target cannot be written, and say where it is."""
    try:
        yield
    except Exception as error:
        if is_spark_lost(error):
            raise InputError(
                f"{LOST_SPARK} {_describe_spending(done)}The release is lost."
            ) from None
        if not isinstance(error, OSError | InputError):
            raise
        reason = str(error) if isinstance(error, InputError) else (error.strerror or "").lower()
        first = f"Cannot write '{out}': {reason.rstrip('.')}. {_describe_spending(done)}"
        if not done.release.privacy_losses:  # it can be made again for nothing
            raise InputError(f"{first}Nothing was written.") from None
        for folder in (out.parent, Path(tempfile.gettempdir())):
            kept = folder / (out.name + UNFINISHED)
            try:
                _keep(done, kept, output, distributed=distributed)
            except (OSError, ShoalError):
                shutil.rmtree(kept, ignore_errors=True)
                continue
            raise InputError(
                f"{first}The release is kept in '{kept}', readable by you alone. Make room, and "
                f"run `shoal finish {out} --kept {kept}`: that spends no more epsilon."
            ) from None
        raise InputError(f"{first}No other disk had room for the release: it is lost.") from None


def _keep(done: protect_table.Run, kept: Path, output: OutputOptions, *, distributed: bool) -> None:
    kept.mkdir(mode=0o700)
    new = kept / "public"
    new.mkdir()
    public_folder.write(done.release, new, output, distributed=distributed)
    file, entry = done.booking or (None, None)
    public_folder.dump(
        kept / "booking.json", {"file": None if file is None else str(file), "id": entry}
    )


def finish(out: Path, *, kept: Path | None = None, force: bool = False) -> Path:
    """Publish a release that was drawn and paid for while the disk was full.

    It is kept beside `out`, unless `kept` says where. An existing release is replaced if forced.
    """
    kept = out.with_name(out.name + UNFINISHED) if kept is None else kept
    manifest = read_manifest(kept / "public")
    try:
        booked = parse_json(read_bytes(kept / "booking.json", "booking.json"))
        file, entry = booked["file"], booked["id"]
        complete = all(
            folders.digest(kept / "public" / name) == fact.sha256
            for name, fact in manifest.files.items()
        )
    except (OSError, InputError, ValueError, LookupError, TypeError, AttributeError):
        complete = False
    if not complete:
        raise InputError(f"'{kept}' is damaged: it is not as an unfinished run left it.")
    with folders.workplace(out) as place:
        with folders.refusing(out):
            folders.recover(place, out)
            public_folder.refuse_places(out, force=force)
            shutil.copytree(kept / "public", place / "new")
            folders.commit(place, out)
        if file is not None:
            protect_table.settle_entry(Path(file), entry)
        shutil.rmtree(kept, ignore_errors=True)
    return out

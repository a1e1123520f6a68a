"""Open a public folder that anybody may have written: what it says, and what follows from it.

Its table is read back with the types that its manifest records.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from shoal import io
from shoal import policy as policies
from shoal.core import Claim, DifferentialPrivacy, Policy, ReleaseForm, Testable
from shoal.core.manifest import Manifest
from shoal.core.serialise import parse_json
from shoal.errors import InputError, ShoalError
from shoal.io import memory
from shoal.io.column_counts import ColumnCounts
from shoal.io.csv_files import Dialect, WrittenRelease
from shoal.io.excel_files import read_excel
from shoal.io.validate import as_text
from shoal.pipeline import planning
from shoal.pipeline.manifest import MANIFEST, parse, read_raw
from shoal.pipeline.planning import Plan
from shoal.pipeline.protect_table import settle_plan
from shoal.report import released_columns

PARTS = "release.parquet/"
"""Where the files of a release lie that Spark wrote."""
MEASUREMENTS = "measurements.parquet"
LABELS = "labels.json"
"""Labels of columns and values beside a file of a format that has no room for them."""


def read_pictured(
    path: Path, manifest: Manifest, table: pl.DataFrame | ColumnCounts | None = None
) -> list[dict[str, Any]] | None:
    """Count the values that a report draws, from the released files alone.

    None where the table lies in parts, has boxes instead of rows, or cannot be drawn: a release
    that is paid for is not lost to a picture. The table is given, or its counts, if it is known.
    """
    if manifest.release_form is ReleaseForm.TREE or any(
        n.startswith(PARTS) for n in manifest.files
    ):
        return None
    try:
        table = read_table(path, manifest) if table is None else table
        return released_columns.columns(table, read_measurements(path, manifest))
    except Exception:  # noqa: BLE001 (whatever a library does with a table that it cannot take)
        return None


def read_measurements(path: Path, manifest: Manifest) -> pl.DataFrame | None:
    """Read the noisy answers that a release publishes with its rows, if it does."""
    if MEASUREMENTS not in manifest.files or not is_inside(path, MEASUREMENTS):
        return None
    return io.read(path / MEASUREMENTS).frame


def read_labels(path: Path, manifest: Manifest) -> dict[str, Any] | None:
    """Read the labels of a release; None where its format keeps a part of them only."""
    files = manifest.files
    if any(f"release.{form}" in files for form in io.STATS_NAMES) and LABELS not in files:
        return None
    kept = (path / LABELS).read_bytes() if is_inside(path, LABELS) else b"{}"
    if is_inside(path, "release.parquet"):
        kept = pl.read_parquet_metadata(path / "release.parquet").get("shoal.labels", "{}").encode()
    return dict(parse_json(kept))


def read_recorded_policy(manifest: Manifest, frame: pl.DataFrame | None) -> Policy:
    """Restore the policy in a manifest; released values stand for observed categories."""
    document = manifest.policy
    seen = {} if frame is None else {
        name: as_text(frame[name].drop_nulls().unique()).unique().sort().to_list()
        for name, column in document.get("columns", {}).items()
        if name in frame.columns and isinstance(column, Mapping) and column.get("observed")
    }  # fmt: skip
    return policies.restore_policy(document, manifest.hierarchies, seen=seen)


def as_read(table: Any, file_format: str) -> ColumnCounts | None:
    """Count the table as its file will be read, if that is certain in advance; else None.

    Whole numbers and finite floats are written with all digits that tell them apart, and plain
    words as they are. What else there may be, such as dates, which a CSV file holds as texts, and
    texts in quotes, is read again.
    """
    counts = ColumnCounts(table) if isinstance(table, pl.DataFrame) else table
    if not isinstance(counts, ColumnCounts) or file_format not in {"csv", "parquet"}:
        return None
    frame = counts.frame
    if file_format == "csv" and (frame.width < 2 or not _plain(pl.Series(frame.columns))):
        return None
    return counts if all(_is_kept_by_file(counts, name) for name in frame.columns) else None


def _is_kept_by_file(counts: ColumnCounts, name: str) -> bool:
    dtype = counts.frame.schema[name]
    if dtype == pl.String:
        return _plain(counts.cells(name)[name])
    if dtype.is_float():
        return str(dtype) in _NUMBERS and bool(np.isfinite(counts.numbers(name)[0]).all())
    return str(dtype) in _NUMBERS


def _plain(texts: pl.Series) -> bool:
    return bool(texts.drop_nulls().str.contains(_PLAIN).all())


_PLAIN = r"\A[\p{L}\p{N}]([\p{L}\p{N} ._()/&%<>-]*[\p{L}\p{N})])?\z"


def read_table(path: Path, manifest: Manifest) -> pl.DataFrame:
    """Read the released table, with the types of numbers that the manifest records."""
    single = [name for end in io.FORMATS if (name := f"release.{end}") in manifest.files]
    parts = sorted(name for name in manifest.files if name.startswith(PARTS))
    names = single or parts
    if len(single) > 1 or not names:
        raise InputError(f"{MANIFEST}, files: expected one table, found {len(single)}.")
    for name in names:
        if not is_inside(path, name):
            raise InputError(f"{name}: the file is missing.")
    if names == ["release.csv"]:
        frame = _read_csv(path / "release.csv", manifest)
    elif names == ["release.xlsx"]:
        table, rows = path / "release.xlsx", manifest.rows or None
        read = read_excel(table, None, header_row="1", rows=rows, alone=False, limit=memory.room())
        frame = _read_written(manifest, dated=True).undone(read.frame)
    else:
        frames = [io.read(path / name).frame for name in names]
        try:
            frame = pl.concat(frames)
        except (PolarsError, PanicException):
            raise InputError("release.parquet: its files have different columns.") from None
    return frame if "release.parquet" in names else _with_numbers(frame, manifest.columns)


def _with_numbers(frame: pl.DataFrame, types: Mapping[str, str]) -> pl.DataFrame:
    """Convert numbers to the types in the manifest, where a file format keeps no types."""
    for name in frame.columns:
        dtype = _NUMBERS.get(types.get(name, ""))
        typed = None if dtype is None else frame[name].cast(dtype, strict=False)
        if typed is not None and typed.null_count() == frame[name].null_count():
            frame = frame.with_columns(typed)
    return frame


_NUMBERS = {
    str(dtype): dtype
    for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
                  pl.Float32, pl.Float64)
}  # fmt: skip


def _read_written(manifest: Manifest, *, dated: bool = False) -> WrittenRelease:
    """How a manifest says that its table was written."""
    dialect = Dialect(**manifest.dialect)
    return WrittenRelease(
        manifest.guard_formulas, dialect, manifest.columns, manifest.rows, dated=dated
    )


def _read_csv(path: Path, manifest: Manifest) -> pl.DataFrame:
    """Read a CSV file written by `io.write`, whatever its column names."""
    try:
        written = _read_written(manifest)
        frame = _cells(path, written.dialect, manifest.columns)
    except (OSError, TypeError, InputError, PolarsError, PanicException, UnicodeError):
        raise InputError(f"{path.name}: it cannot be read as CSV.") from None
    return written.undone(frame)


def _cells(path: Path, dialect: Dialect, types: Mapping[str, str]) -> pl.DataFrame:
    """Read the cells of a CSV file: numbers if a whole column is numeric, else texts."""
    mark = io.check_delimiter(dialect.delimiter) or ","
    read = partial(pl.read_csv, path, infer_schema=False, glob=False, separator=mark)
    if dialect.decimal == ".":
        numbers = {name: _NUMBERS[dtype] for name, dtype in types.items() if dtype in _NUMBERS}
        with suppress(PolarsError, PanicException):
            return read(schema_overrides=numbers)
    return read()


def is_inside(path: Path, name: str) -> bool:
    """Whether a release contains a regular file of this name, within its folder."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        return False
    places = [path.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
    try:
        return places[-1].is_file() and not any(place.is_symlink() for place in places)
    except OSError:  # such as a name that is too long
        return False


ODD = (
    ShoalError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, PolarsError
)  # fmt: skip
"""What values that nobody checked can do to code that expects our own."""


@dataclass(frozen=True)
class OpenedFolder:
    """A release as it was read, and what follows from its policy.

    Attributes:
        raw: the bytes of the manifest.
        frame: the table; empty where it cannot be read.
        readable: it could be read.
        measurements: the noisy answers beside it, if any.
        planned: none where the policy cannot be planned.
        faults: why not, in sentences.
        exact: the file keeps the types of cells.
    """

    path: Path
    raw: bytes
    manifest: Manifest
    frame: pl.DataFrame
    readable: bool
    measurements: pl.DataFrame | None
    planned: Plan | None
    faults: tuple[str, ...]
    exact: bool

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that the policy allows; fewer if the noise supports none."""
        claims = () if self.planned is None else self.planned.claims
        if claims_epsilon(self.manifest):
            return claims
        return tuple(claim for claim in claims if isinstance(claim.guarantee, Testable))

    @property
    def text(self) -> bool:
        """Whether the table is a CSV file."""
        return "release.csv" in self.manifest.files

    @property
    def spreadsheet(self) -> bool:
        """Whether people open the table in a spreadsheet."""
        return self.text or "release.xlsx" in self.manifest.files

    @property
    def suppressible(self) -> Fraction:
        """The share of rows that the policy allows the method to suppress."""
        parameters = self.planned.setting.parameters if self.planned else None
        return Fraction(getattr(parameters, "record_suppression", 0))

    @property
    def drawn_rows(self) -> int | None:
        """The number of rows with their own noise, if each row draws it."""
        if self.planned is None or not self.planned.method.noise_by_row:
            return None
        return max((entry.draws for entry in self.manifest.privacy_losses), default=0)


def open_folder(path: Path) -> OpenedFolder:
    """Read manifest, table and measurements, and plan the recorded policy."""
    raw = read_raw(path)
    manifest, faults = parse(path, raw), []
    frame, measured, planned = None, None, None
    exact = "release.parquet" in manifest.files
    try:
        frame = read_table(path, manifest)
        measured = read_measurements(path, manifest)
    except InputError as error:
        faults.append(str(error))
    try:
        planned = _plan_again(manifest, frame)
    except ODD as error:
        why = (
            str(error) if isinstance(error, ShoalError) else "its values are not those of a policy."
        )
        faults.append(f"The recorded policy cannot be planned: {why}")
    shown = pl.DataFrame() if frame is None else frame
    readable = frame is not None
    return OpenedFolder(
        path, raw, manifest, shown, readable, measured, planned, tuple(faults), exact
    )


def _plan_again(manifest: Manifest, frame: pl.DataFrame | None) -> Plan:
    """Plan the release again from what the manifest records."""
    planned = planning.plan(
        read_recorded_policy(manifest, frame),
        keep_order=manifest.release_form is ReleaseForm.ROW_ALIGNED,
        distributed=any(name.startswith(PARTS) for name in manifest.files),
        audience=manifest.audience,
    )
    planned = settle_plan(planned, manifest.found)
    if planned.setting.release_form in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC}:
        return planned  # its rows are not those of the original
    return planning.with_rows(planned, manifest.rows + manifest.suppressed)


def claims_epsilon(manifest: Manifest) -> bool:
    """Whether a manifest claims an epsilon; one with fake noise does not."""
    return any(claim.guarantee.get("name") == DifferentialPrivacy.name for claim in manifest.claims)

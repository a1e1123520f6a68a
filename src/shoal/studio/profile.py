"""The profile of an uploaded file: types, shapes, missing cells, guesses and warnings.

It is made once for each way of reading the file, by a job, and kept beside the data in the
temporary folder, because it holds figures and values of the table. No rows are shown.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from shoal import io
from shoal.core import Progress, Role, silent
from shoal.errors import InputError
from shoal.io import excel_files
from shoal.io.cells import is_plain
from shoal.io.excel_files import EXCEL, UntidySheetError
from shoal.io.metadata import Metadata
from shoal.policy.column_values import ColumnValues, all_values
from shoal.policy.draft import EMPTY, from_guesses
from shoal.policy.exposure import Purpose
from shoal.policy.guess import Guess
from shoal.policy.recognise import recognise
from shoal.policy.safe_harbor import REMARKS
from shoal.studio import policy_document
from shoal.studio.private_files import read_json, write_json
from shoal.studio.shapes import Shape, shape_of

FEW = 100
"""Rows below which a table is small."""
MOST_VALUES = 20_000
"""Distinct values of a column that are kept for building a hierarchy, at most."""
DAY_FIRST = {"day": True, "month": False}
"""What a steward may say of dates whose digits fit both."""


@dataclass(frozen=True)
class ColumnProfile:
    """The profile of one column.

    Attributes:
        name: as in the file; any text.
        label: what the file says about it, or "".
        type: in words: number, text, date, truth value or other.
        missing: cells that are missing, those with a mark for it too.
        distinct: different values among the present ones.
        unique: share of the rows whose value occurs once, from 0 to 1.
        role: guessed.
        kind: guessed.
        reason: of the guess, as part of a sentence.
        values: the values that occur, where they are few: a help for stating categories. They are
            cells: show them on the page, and never keep them.
        warnings: sentences.
        shape: a picture and a range.
        marks: texts that were taken for missing.
        forms: two formats that every date fits, the guess first, where the steward has to say.
        persons: the column may number the persons, who have several rows: the steward has to say.
    """

    name: str
    label: str
    type: str
    missing: int
    distinct: int
    unique: float
    role: str
    kind: str
    reason: str
    values: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    shape: Shape = field(default=Shape("texts"))
    marks: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    persons: bool = False


@dataclass(frozen=True)
class DataProfile:
    """The profile of a table.

    Attributes:
        rows: the number of rows.
        columns: the profile of each column, in the order of the file.
        reading: how the file was read, as `[reading]` states it.
        sheets: of a workbook.
        warnings: sentences about the whole table.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    sheets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, ColumnProfile]:
        """The columns by their names."""
        return {column.name: column for column in self.columns}


_PROFILE = TypeAdapter(DataProfile)


def write(
    path: Path,
    *,
    label: str,
    reading: Mapping[str, Any] | None = None,
    limit: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Profile a file, write the profile beside it, and draft a policy.

    Categories are asked for in the studio, and not copied: the draft is that of `shoal init`
    without what was only observed. For the limit see `shoal.io.files.read`.

    Args:
        path: the file.
        label: what the steward calls it.
        reading: what the steward says of it: delimiter, encoding, sheet, decimal, missing, dates,
            the template of its draft, and what a metadata file says of its columns.
        limit: bytes of the decoded table.
        progress: told how far it is.

    Returns:
        For the server: the drafted policy as TOML text, and the names of the columns.
    """
    stated = dict(reading or {})
    try:
        raw, sheets = _read(path, stated, limit)
    except InputError as error:  # which names the file; the steward knows it by another name
        raise InputError(str(error).replace(str(path), label)) from None
    if raw.frame.height == 0:
        raise InputError(EMPTY)
    raw = Metadata(**stated["metadata"]).describe(raw) if "metadata" in stated else raw
    progress("reading the columns", 0, 1)
    marks = {"decimal": stated.get("decimal"), "missing": stated.get("missing", ())}
    values = all_values(raw, **marks)
    guesses = recognise(raw, values=values, day_first=DAY_FIRST.get(stated.get("dates", "")))
    purpose = Purpose(template=stated.get("template"))
    drafted = from_guesses(raw, guesses, values, source=label, purpose=purpose, **marks)
    text = policy_document.without_observed(drafted.text)
    progress("drawing the columns", 0, 1)
    read_as = policy_document.parse_toml(text).get("reading", {})
    seen = profile(raw, drafted.guesses, values, reading=read_as, sheets=sheets)
    if purpose.template:
        seen = replace(seen, warnings=(*seen.warnings, *REMARKS))
    write_json(_beside(path, stated), asdict(seen), durable=False)
    _write_values(_beside(path, stated, ".values"), values)
    return {"policy": text, "columns": raw.frame.columns, "rows": raw.frame.height}


def _read(
    path: Path, stated: Mapping[str, Any], limit: int | None
) -> tuple[io.Raw, tuple[str, ...]]:
    """Read a table; in a workbook the chosen sheet, or else the first one with a table."""
    if path.suffix.lower() not in EXCEL:
        delimiter, encoding = stated.get("delimiter"), stated.get("encoding")
        return io.read(path, delimiter=delimiter, encoding=encoding, limit=limit), ()
    sheets = excel_files.sheets(path)
    chosen = stated.get("sheet")
    places: dict[str, Any] = {key: stated.get(key) for key in ("header_row", "skip")}
    failed: InputError | None = None
    for sheet in (chosen,) if chosen else sheets or (None,):
        try:
            return io.read(path, sheet=sheet, limit=limit, **places), sheets
        except UntidySheetError as error:
            if error.reading:  # the page shows what was recognised, to be corrected there
                return io.read(
                    path, sheet=sheet, limit=limit, **dict[str, Any](error.reading)
                ), sheets
            failed = failed or error
        except InputError as error:
            failed = failed or error
    raise failed or InputError("The workbook has no sheet.")


def read(path: Path, reading: Mapping[str, Any] | None = None) -> DataProfile | None:
    """Read the profile of a file; None if it has not been profiled yet."""
    content = read_json(_beside(path, reading))
    return None if content is None else _PROFILE.validate_python(content)


def values_of(path: Path, reading: Mapping[str, Any], name: str) -> list[str]:
    """Return a column's values, if there are not too many; as confidential as the table."""
    file = _beside(path, reading, ".values")
    if not file.is_file():
        return []
    frame = pl.read_parquet(file).filter(pl.col("name") == name)
    return frame["values"].explode().drop_nulls().to_list() if frame.height else []


def _write_values(path: Path, values: Mapping[str, ColumnValues]) -> None:
    few = {name: column.text for name, column in values.items() if column.distinct <= MOST_VALUES}
    frame = pl.DataFrame(
        {"name": list(few), "values": [text.to_list() for text in few.values()]},
        schema={"name": pl.String, "values": pl.List(pl.String)},
    )
    path.touch(mode=0o600)
    frame.write_parquet(path)


def profile(
    raw: io.Raw,
    guesses: Mapping[str, Guess] | None = None,
    values: Mapping[str, ColumnValues] | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    sheets: Collection[str] = (),
) -> DataProfile:
    """Profile a table."""
    frame = raw.frame
    values = all_values(raw) if values is None else values
    guesses = recognise(raw, values=values) if guesses is None else guesses
    columns = tuple(
        _column(series, values.get(series.name), guesses[series.name], raw.column_labels)
        for series in frame
    )
    return DataProfile(
        rows=frame.height,
        columns=columns,
        reading=dict(reading or {}),
        sheets=tuple(sheets),
        warnings=tuple(_warnings(frame, columns)),
    )


def _column(
    series: pl.Series, values: ColumnValues | None, made: Guess, labels: Mapping[str, str]
) -> ColumnProfile:
    total = max(series.len(), 1)
    present = series.len() - series.null_count() if values is None else values.present
    distinct = 0 if values is None else values.distinct
    unique = 0.0 if values is None else int((values.counts == 1).sum()) / total
    missing = series.len() - present
    warnings = []
    if values is None:
        warnings.append("The column's cells are not single values; only the role identifier fits.")
    if series.len() and missing > series.len() / 2:
        warnings.append("More than half of the column's cells are missing.")
    if distinct == 1 and not missing:
        warnings.append("The column has only one value.")
    if values is not None and made.role is not Role.IDENTIFIER and unique > 0.5:
        warnings.append("Most of the column's values occur once: it may single people out.")
    return ColumnProfile(
        name=series.name,
        label=labels.get(series.name, ""),
        type=_type(series.dtype, values, made),
        missing=missing,
        distinct=distinct,
        unique=unique,
        role=made.role.value,
        kind=made.kind.value,
        reason=made.reason,
        values=made.categories,
        warnings=tuple(warnings),
        shape=Shape("texts") if values is None else shape_of(values, made),
        marks=made.missing if values is None else values.missing,
        forms=made.forms,
        persons=bool(made.question) and "privacy_unit" in made.flags,
    )


def _type(dtype: pl.DataType, values: ColumnValues | None, made: Guess) -> str:
    """Name the type of a column's values, whether its file has types or not."""
    if dtype == pl.Boolean:
        return "truth value"
    if dtype.is_temporal() or (values is not None and made.kind == "date"):
        return "date"
    if dtype.is_numeric() or (values is not None and made.kind == "numeric"):
        return "number"
    return "text" if is_plain(dtype) else "other"


def _warnings(frame: pl.DataFrame, columns: tuple[ColumnProfile, ...]) -> Iterator[str]:
    if frame.height < FEW:
        yield f"The table has {frame.height:,} rows; small tables lose much when protected."
    roles = {column.role for column in columns}
    if Role.QUASI_IDENTIFIER.value not in roles:
        yield "No column looks like something that others know; check the roles."
    if Role.CONFIDENTIAL.value not in roles:
        yield "No column looks confidential; check the roles."
    if all(is_plain(series.dtype) for series in frame):
        repeated = frame.height - frame.n_unique()
        if repeated:
            yield f"{repeated:,} rows repeat another one; expected one row per person."


def _beside(path: Path, reading: Mapping[str, Any] | None, end: str = ".profile") -> Path:
    """Return a file beside the table for this way of reading it, so undo finds the previous one."""
    way = json.dumps(dict(reading), sort_keys=True) if reading else ""
    mark = f".{sha256(way.encode()).hexdigest()[:12]}" if way else ""
    return path.with_name(f"{path.name}{mark}{end}")

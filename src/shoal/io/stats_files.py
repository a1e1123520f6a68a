"""Read and write SPSS, Stata and SAS files with their labels, through pyreadstat."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InputError, UnfitTableError
from shoal.io.cells import change_cells
from shoal.io.dates import in_calendar
from shoal.io.raw import Raw

STATS = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta",
         ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}  # fmt: skip
STATS_NAMES = {"sav": r"[^\W\d_][\w.$#@]{0,63}", "dta": r"[^\W\d]\w{0,31}",
               "xpt": r"(?a:[^\W\d]\w{0,31})"}  # fmt: skip
"""Which column names SPSS, Stata and SAS take."""
STATS_LABEL = {"sav": 255, "dta": 80, "xpt": 40}
"""How long the label of a column, or of the file, may be there."""
PROGRAMS = {"sav": "SPSS", "dta": "Stata", "xpt": "SAS"}
SECONDS = 86_400
START, SPSS_START = date(1960, 1, 1), date(1582, 10, 14)
"""The day from which Stata and SAS count, and that of SPSS, which counts seconds."""
TIMES = re.compile(r"DATETIME|YMDHMS|E8601DT|%tc(?!HH)", re.IGNORECASE)
"""Formats of columns that hold times of a day of the calendar."""
MEASURES = ("nominal", "ordinal", "scale")
"""How a column is measured, in the words of SPSS."""


def _library() -> Any:
    try:
        import pyreadstat  # noqa: PLC0415 (optional)
    except ImportError:
        raise InputError(
            "SPSS, Stata and SAS files need the extra 'stats': pip install 'shoal[stats]'."
        ) from None
    return pyreadstat


def read_stats(path: Path, suffix: str, *, alone: bool = False) -> Raw:
    """Read a file with its labels and measurement levels; see `files.read` for `alone`."""
    library = _library()
    read = partial(getattr(library, STATS[suffix]), str(path), output_format="polars")
    try:
        frame, meta = _read_alone(read, suffix) if alone else read()
    except (library.ReadstatError, library.PyreadstatError, LookupError, TypeError, ValueError):
        raise InputError(
            f"Cannot read '{path}': the file is damaged or of another format."
        ) from None
    # In these formats, an empty text is a missing one.
    frame = in_calendar(frame, alone=alone)
    frame = frame.with_columns(pl.col(pl.String).replace("", None))
    columns = {name: label for name, label in meta.column_names_to_labels.items() if label}
    values = {
        name: {
            # Values are written as the categories are.
            str(int(v)) if isinstance(v, float) and v.is_integer() else str(v): label
            for v, label in labels.items()
        }
        for name, labels in meta.variable_value_labels.items()
    }
    measures = {
        name: measure
        for name, measure in (getattr(meta, "variable_measure", None) or {}).items()
        if measure in MEASURES and suffix in {".sav", ".zsav", ".por"}
    }
    return Raw(frame, labels=values, column_labels=columns, measures=measures)


def _read_alone(read: Callable[..., Any], suffix: str) -> tuple[pl.DataFrame, Any]:
    """Read texts and dates cell by cell; one bad cell makes the library refuse a whole file.

    Texts come byte by byte, as Latin-1, and are decoded here; dates come as numbers. What a column
    is follows from what the file says of it.
    """
    empty, meta = read(metadataonly=True)
    frame, _ = read(encoding="ISO-8859-1", disable_datetime_conversion=True)
    frame.columns = empty.columns
    per_day = SECONDS if suffix in {".sav", ".zsav", ".por"} else 1
    start = SPSS_START if per_day > 1 else START
    columns = []
    for column in frame:
        form = str(meta.original_variable_types.get(column.name))
        if column.dtype == pl.String:
            column = _decode(column, meta.file_encoding)  # noqa: PLW2901
        elif empty.schema[column.name] == pl.Date and column.dtype.is_numeric():
            column = _days(column.cast(pl.Float64) / per_day, start)  # noqa: PLW2901
        elif TIMES.match(form) and column.dtype.is_numeric():
            unit = SECONDS * 1000 if form.startswith("%") else SECONDS
            column = _days(column.cast(pl.Float64) / unit, start)  # noqa: PLW2901
        columns.append(column)
    return pl.DataFrame(columns), meta


def _days(days: pl.Series, start: date) -> pl.Series:
    days = days.floor() + (start - date(1970, 1, 1)).days
    return days.set(~days.is_between(-(2**31), 2**31 - 1), None).cast(pl.Int32).cast(pl.Date)


def _decode(text: pl.Series, encoding: str | None) -> pl.Series:
    """Decode cells that were read as Latin-1; an undecodable byte spoils only its own cell."""

    def decode(cells: pl.Series) -> pl.Series:
        raw = [cell.encode("latin-1") for cell in cells]
        return pl.Series([cell.decode(encoding or "utf-8", "replace") for cell in raw])

    return change_cells(text, r"[^\x00-\x7f]", decode)


def check_stats_names(form: str, names: Sequence[str]) -> None:
    """Refuse column names that a format does not allow."""
    _library()
    program = PROGRAMS[form]
    for name in names:
        if not re.fullmatch(STATS_NAMES[form], name):
            raise InputError(
                f"Cannot write the release for {program}: it cannot name a column '{name}'. "
                "Rename the column, or choose --file-format parquet or csv."
            )


def write_stats(
    frame: pl.DataFrame, path: Path, kind: str, labels: Mapping[str, Any], about: str | None
) -> None:
    """Write a file with its labels, as far as the format can hold them."""
    library = _library()
    check_stats_names(kind, frame.columns)
    options: dict[str, Any] = {}
    if kind != "xpt":  # which keeps no labels of values
        values = {
            name: dict(_codes(mapping, frame.schema[name], kind))
            for name, mapping in labels.get("values", {}).items()
        }
        options["variable_value_labels"] = {name: codes for name, codes in values.items() if codes}
    if kind == "sav":
        options["variable_measure"] = {
            name: measure
            for name, measure in labels.get("measures", {}).items()
            if measure != "scale" or frame.schema[name].is_numeric()
            or frame.schema[name].is_temporal()
        }  # fmt: skip
    longest = STATS_LABEL[kind]
    columns = {name: label[:longest] for name, label in labels.get("columns", {}).items()}
    write = {"sav": library.write_sav, "dta": library.write_dta, "xpt": library.write_xport}[kind]
    try:
        write(
            frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64)),
            str(path),
            file_label=(about or "")[:longest],
            column_labels=columns,
            **options,
        )
    except (library.ReadstatError, library.PyreadstatError):
        raise UnfitTableError(
            f"Cannot write the release for {PROGRAMS[kind]}: a name or a text does not fit the "
            "format, or the disk is full. Choose --file-format parquet or csv."
        ) from None


def _codes(
    labels: Mapping[str, str], dtype: pl.DataType, kind: str
) -> Iterator[tuple[str | float, str]]:
    """Convert labelled values to their column's type; Stata labels whole numbers only."""
    for code, label in labels.items():
        if dtype == pl.String:
            if kind == "sav":
                yield code, label
        else:
            with suppress(ValueError):
                if kind == "sav" or float(code).is_integer():
                    yield float(code), label

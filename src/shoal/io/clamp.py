"""Clamp each record to public bounds without reporting it, for epsilon releases.

A table that is refused until it fits discloses something about its records; so does a type or a
category that is read off the data. Here every protected cell becomes a value of its public domain,
by a function of that cell alone: numbers outside the bounds are clamped, missing cells and those
that cannot be read become a public constant, or are missing where the method counts that as one
more value. A category that is not listed is such a cell, unless the policy states `other` for it.
How many there are is counted for the steward, and never published.

The type of a column is not a fact about a cell: one missing cell makes floats of whole numbers in
pandas, one text makes objects of them. So cells are read one by one, whatever holds them
(`CellReader`), and the type in which a column leaves follows from the policy.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl

from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError
from shoal.io import dates
from shoal.io.cells import compose, plain_column, recode_text
from shoal.io.table import Table
from shoal.io.validate import (
    LARGEST,
    check_names,
    code_extremes,
    drop_marks,
    first_days,
    fitting,
    is_number,
    leaving,
    limit,
    limits_coded,
    naive,
    parse_column,
    round_to_step,
)

CODED = "coded"
"""The sort of cells that `step`, `date_step`, `top_code` or `bottom_code` changed."""


def clamp(
    frame: pl.DataFrame,
    schema: Schema,
    *,
    columns: Sequence[str],
    decimal: str | None = None,
) -> tuple[Table, dict[str, Mapping[str, int]]]:
    """Fit the protected columns of a frame to their public domains, and count what was changed.

    Args:
        frame: columns of any type; text is parsed as the column's kind says.
        schema: every column of the frame, and no other.
        columns: what is clamped; other released columns are the same in neighbouring tables,
            and must fit as they are.
        decimal: the decimal mark of numbers in text: a point, unless stated.

    Returns:
        The table, and for each protected column how many cells were missing, unreadable,
        outside or coded: confidential.
    """
    check_names(frame, schema)
    if frame.height == 0:
        raise InputError("The table has a header but no rows; expected one row per person.")
    kept = tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER)
    counts: dict[str, Mapping[str, int]] = {}
    dtypes: dict[str, pl.DataType] = {}

    def bring(name: str) -> pl.Series:
        cells, column = frame[name], schema[name]
        if name in columns:
            cells, counts[name] = clamp_column(cells, column, decimal)
            dtypes[name] = released_type(cells.dtype, column)
            return cells
        cells = plain_column(cells)
        dtypes[name] = leaving(cells.dtype, column)
        return parse_column(cells, column, decimal)

    series = fitting(partial(bring, name) for name in frame.columns if schema[name] in kept)
    return Table(pl.DataFrame(series), Schema(kept), dtypes), counts


def released_type(dtype: pl.DataType, column: Column) -> pl.DataType:
    """Return the type in which a clamped column leaves, if its values fit, by the policy alone.

    Multiples of a whole step are whole numbers, whatever type the file holds them in.
    """
    if isinstance(dtype, pl.Enum):
        return pl.String()
    whole = column.step is not None and column.step == column.step.to_integral_value()
    return pl.Int64() if dtype.is_float() and whole else dtype


def clamp_column(
    series: pl.Series, column: Column, decimal: str | None
) -> tuple[pl.Series, Mapping[str, int]]:
    """Fit one column to its public domain, cell by cell, and count what was changed.

    Missing cells stay missing where they are values of their own (`keep_missing`).
    """
    keep = bool(column.keep_missing)
    cells = read(series, column)
    missing = int(cells.missing.sum())
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        values, unknown = _categories(cells, column)
        ends = code_extremes(values, column)
        return ends.alias(column.name), {
            "missing": missing,
            "unknown": unknown,
            CODED: int(ends.ne_missing(values).sum()),
        }
    numbers = _of_kind(cells, column, decimal)
    unreadable = numbers.null_count() - missing
    values = numbers if keep else numbers.fill_null(cast("Any", constant(column)))
    outside = 0
    if column.bounds:
        low, high = (limit(bound) for bound in column.bounds)
        outside = int((~values.is_between(low, high)).sum())
        values = values.clip(low, high)
    inside, values = values, code_extremes(values, column)
    if column.step:
        values = round_to_step(values, column.step)
    values = first_days(values, column)
    coded = int(values.ne_missing(inside).sum())
    return values, {
        "missing": missing,
        "unreadable": unreadable,
        "outside": outside,
        CODED: coded,
    }


def readable(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Read a column as numbers or dates; null where a cell is missing or cannot be read."""
    return _of_kind(read(series, column), column, decimal)


def find_filled(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Find the cells that `constant` replaces: missing, or unreadable as the column's kind."""
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        return read(series, column).missing
    return readable(series, column, decimal).is_null()


def constant(column: Column) -> Any:
    """Return the value for missing cells: the stated constant, or the middle of the bounds."""
    if column.missing_as is not None:
        return limit(column.missing_as)
    if column.bounds is None:
        return 0.0 if column.kind is Kind.NUMERIC else date(1970, 1, 1)
    low, high = (cast("Any", limit(bound)) for bound in column.bounds)
    return low + (high - low) / 2


class CellReader(NamedTuple):
    """A column's cells in four readings; each is null where the cell is not of that type.

    Attributes:
        text: texts, truth values as `true` and `false`, days as 2026-11-16.
        number: numbers, truth values as 1 and 0. Whole numbers are floats here, as pandas makes
            them floats where another cell is missing.
        day: days.
        missing: cells that are missing, or that the policy counts as missing.
    """

    text: pl.Series
    number: pl.Series
    day: pl.Series
    missing: pl.Series


def read(series: pl.Series, column: Column) -> CellReader:
    """Read each cell by itself; equal cells read equally, whatever the type of the column."""
    cells = _read(series)
    if not column.missing:
        return cells
    marks = [float(mark) for mark in column.missing if is_number(mark)]
    marked = cells.text.is_in(list(column.missing)).fill_null(value=False)
    marked |= cells.number.is_in(marks).fill_null(value=False) & cells.text.is_null()
    return cells._replace(missing=cells.missing | marked)


def texts(series: pl.Series) -> pl.Series:
    """Read a column of Python objects as texts, cell by cell; return other columns unchanged.

    Whole numbers keep all their digits, whatever other cells hold.

    A whole number keeps all its digits, whatever stands in other cells.
    """
    if isinstance(series.dtype, pl.Datetime):
        return naive(series).dt.to_string("%Y-%m-%d %H:%M:%S%.9f")
    if not isinstance(series.dtype, pl.Object):
        return series
    return pl.Series(series.name, map(_object_text, series), dtype=pl.String)


def refuse_float_ids(schema: Schema, types: Mapping[str, Any]) -> None:
    """Refuse floats from pandas as identifiers of persons or households, in any release.

    One fraction or missing cell makes floats of all whole numbers in pandas, and beyond 2^53 two
    persons become one. That is decided by the type, and by no cell.
    """
    for flag, whom in (("privacy_unit", "persons"), ("household", "households")):
        name = schema.column_with_flag(flag)
        dtype = types.get(name or "")
        if getattr(dtype, "kind", "") == "f":
            raise InputError(
                f"Column '{name}' numbers the {whom}, and pandas holds it as {dtype}, in which "
                "long numbers lose their last digits. Read it as text, or as whole numbers of type "
                "Int64."
            )


def _object_text(cell: Any) -> str | None:
    text, number, day, missing = _read_object(cell)
    if day is not None and isinstance(cell, datetime):
        time = _in_utc(cell).isoformat(" ", "microseconds")[:26]
        return f"{time}{getattr(cell, 'nanosecond', 0):03}"
    if text is None and number is None:
        return None if missing else str(cell)
    if number is None or text is not None:
        return text
    if isinstance(cell, Integral):
        return str(cell) if abs(int(cell)) < LARGEST_TEXT else hex(int(cell))
    if isinstance(cell, Decimal):
        return f"{cell:f}" if abs(cell.adjusted()) < LONGEST_TEXT else str(cell)
    return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)


def _read(series: pl.Series) -> CellReader:
    rows, dtype = series.len(), series.dtype
    text, number, day = (pl.Series([None], dtype=t).new_from_index(0, rows)
                         for t in (pl.String, pl.Float64, pl.Date))  # fmt: skip
    if isinstance(dtype, pl.Object):
        return _read_objects(series)
    if dtype.is_numeric():
        number = series.cast(pl.Float64)
        return CellReader(text, number.fill_nan(None), day, series.is_null() | number.is_nan())
    if dtype == pl.Boolean:
        number, text = series.cast(pl.Float64), series.cast(pl.String)
    elif dtype == pl.String or isinstance(dtype, pl.Enum | pl.Categorical):
        text = series.cast(pl.String)
    elif dtype == pl.Date or isinstance(dtype, pl.Datetime):
        day = series.cast(pl.Date)
        text = day.cast(pl.String)
    return CellReader(text, number, day, series.is_null())


def _read_objects(series: pl.Series) -> CellReader:
    """Read a pandas column of type object, cell by cell."""
    rows = [_read_object(cell) for cell in series]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    types = (pl.String, pl.Float64, pl.Date, pl.Boolean)
    return CellReader(
        *(pl.Series(values, dtype=t) for values, t in zip(columns, types, strict=True))
    )


def _read_object(cell: Any) -> tuple[str | None, float | None, date | None, bool]:
    if isinstance(cell, str):
        return cell.encode("utf-8", "replace").decode(), None, None, False
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell)).lower(), float(cell), None, False
    if isinstance(cell, date) and cell == cell:  # noqa: PLR0124 (NaT is a date, and not itself)
        day = _in_utc(cell).date() if isinstance(cell, datetime) else cell
        return day.isoformat(), None, day, False
    if isinstance(cell, np.datetime64) and not np.isnat(cell):
        return _read_object(cell.astype("datetime64[D]").item())
    if isinstance(cell, Real | Decimal):
        try:
            number = float(cell)
        except (OverflowError, ValueError):  # beyond every bound
            number = float("-inf") if str(cell).startswith("-") else float("inf")
        missing = np.isnan(number)
        return None, None if missing else number, None, bool(missing)
    missing = cell is None or type(cell).__name__ in {"NAType", "NaTType"}
    return None, None, None, missing or (isinstance(cell, np.datetime64) and bool(np.isnat(cell)))


def _in_utc(cell: datetime) -> datetime:
    """Convert a time with a zone to UTC, as `validate.naive` does for a column of times."""
    with suppress(OverflowError):  # outside the calendar
        return cell.astimezone(UTC) if cell.tzinfo else cell
    return cell


def _of_kind(cells: CellReader, column: Column, decimal: str | None) -> pl.Series:
    values = _days(cells, column) if column.kind is Kind.DATE else _numbers(cells, column, decimal)
    return (values.set(cells.missing, None) if column.missing else values).alias(column.name)


def _numbers(cells: CellReader, column: Column, decimal: str | None) -> pl.Series:
    values = cells.number
    if _some(cells.text):
        text = limits_coded(cells.text.str.strip_chars(), column)
        if decimal == ",":
            text = text.str.replace_many([",", "."], [".", ","])
        if decimal:
            text = drop_marks(text)
        values = _either(values, text.cast(pl.Float64, strict=False).fill_nan(None))
    if column.bounds is None:
        # An infinite value can be clamped only to a stated bound.
        values = values.set(values.is_infinite().fill_null(value=False), None)
        return values.clip(-LARGEST, LARGEST)
    return values


def _days(cells: CellReader, column: Column) -> pl.Series:
    if not _some(cells.text):
        return cells.day
    return _either(cells.day, dates.read_days(cells.text, column.date_format))


def _some(cells: pl.Series) -> bool:
    """Whether any cell could be read as this type."""
    return cells.null_count() < cells.len()


def _either(first: pl.Series, second: pl.Series) -> pl.Series:
    """Fill the nulls of the first series from the second."""
    return first.fill_null(second) if _some(first) else second


def _categories(cells: CellReader, column: Column) -> tuple[pl.Series, int]:
    categories = cast("tuple[str, ...]", column.all_categories)
    text = category_texts(cells, column)
    # A cell of another type, such as a nested one, has no text, but is not missing.
    came = cells.text.is_not_null() | cells.number.is_not_null()
    gone = cells.missing | (text.is_null() & came)
    values = text.cast(pl.Enum(categories), strict=False)
    unknown = values.is_null() & ~gone
    missing = str(column.missing_as) if column.missing_as is not None else column.unlisted
    values = values.set(unknown, column.unlisted)
    values = values.set(gone, None if column.keep_missing else missing)
    return values, int(unknown.sum())


def category_texts(cells: CellReader, column: Column) -> pl.Series:
    """Write cells as categories after `recode`; null where missing or not a category."""
    text = compose(cells.text)
    if _some(cells.number):
        text = _either(text, _codes(cells.number, column.all_categories or ()))
    if column.missing:
        text = text.set(cells.missing, None)
    return recode_text(text, column)


def _codes(numbers: pl.Series, categories: Sequence[str]) -> pl.Series:
    """Write numbers as the categories that they stand for, whole numbers without a point.

    Beyond 2^53 several whole numbers share a float. It stands for the one category with that float;
    `refuse_alike` refuses policies with two.
    """
    integral = (numbers == numbers.round()) & numbers.is_between(-LARGEST_CODE, LARGEST_CODE)
    text = numbers.cast(pl.String)
    text = text.set(integral.fill_null(value=False), None).fill_null(
        numbers.set(~integral.fill_null(value=False), None).cast(pl.Int64).cast(pl.String)
    )
    alike = {str(int(float(level))): level for level in categories if _is_long(level)}
    return text.replace(alike) if alike else text


LONGEST_TEXT = 400
LARGEST_TEXT = 10**LONGEST_TEXT
"""Whole numbers below this are written with all their digits."""
LARGEST_CODE = float(2**63 - 1024)
"""Largest whole number that a category written as a number is read as."""


def _is_long(level: str) -> bool:
    """Whether a category is a whole number too long for a float to hold exactly."""
    digits = level.removeprefix("-")
    return digits.isascii() and digits.isdigit() and 15 < len(digits) < 20 and digits[0] != "0"


def refuse_alike(column: Column) -> None:
    """Refuse categories that are different whole numbers but the same float."""
    long = [level for level in column.all_categories or () if _is_long(level)]
    if len({float(level) for level in long}) < len(long):
        raise InputError(
            f"Column '{column.name}': some of its categories are whole numbers beyond 2^53 that "
            "floating-point numbers cannot tell apart. Give them other codes, such as a letter "
            "before each."
        )

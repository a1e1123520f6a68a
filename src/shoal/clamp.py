"""Bring a frame into public bounds, record by record and in silence: for epsilon releases.

A table that is refused until it fits tells something about its records; so does a type or a
level that is read off the data. Here every protected cell becomes a value of its public domain,
by a function of that cell alone: numbers outside the bounds are clamped, unknown categories
become the level `other`, missing cells a public constant, or stay missing where the policy says so
and the method counts them as one more value. How many did is counted for the
steward, and never published.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast

import polars as pl

from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError
from shoal.intake import (
    LARGEST,
    check_names,
    coded_levels,
    composed,
    leaving,
    limit,
    marked_missing,
    refuse_odd,
    rounded,
    typed,
)
from shoal.table import Table


def adopt(
    frame: pl.DataFrame,
    schema: Schema,
    *,
    columns: Sequence[str],
    decimal: str | None = None,
    keep: bool = False,
) -> tuple[Table, dict[str, Mapping[str, int]]]:
    """Fit the protected columns of a frame to their public domains, and count what was changed.

    Args:
        frame: columns of any type; text is parsed as the column's kind says.
        schema: every column of the frame, and no other.
        columns: what is clamped; other released columns are the same in neighbouring tables,
            and must fit as they are.
        decimal: the decimal mark of numbers in text: a point, unless stated.
        keep: leave missing cells missing in columns with `keep_missing`.

    Returns:
        The table, and for each protected column how many cells were missing, unreadable or
        outside: confidential.
    """
    check_names(frame, schema)
    if frame.height == 0:
        raise InputError("The table has a header but no rows; expected one row a person.")
    kept = tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER)
    series, counts = [], {}
    dtypes: dict[str, pl.DataType] = {}
    for name in (name for name in frame.columns if schema[name] in kept):
        cells, column = refuse_odd(frame[name]), schema[name]
        dtypes[name] = leaving(cells.dtype, column)
        if name in columns:
            cells, counts[name] = clamped(cells, column, decimal, keep=keep)
            dtypes[name] = pl.String() if isinstance(cells.dtype, pl.Enum) else cells.dtype
        else:
            cells = typed(cells, column, decimal)
        series.append(cells)
    return Table(pl.DataFrame(series), Schema(kept), dtypes), counts


def clamped(
    series: pl.Series, column: Column, decimal: str | None, *, keep: bool
) -> tuple[pl.Series, Mapping[str, int]]:
    """Fit one column to its public domain, cell by cell, and count what was changed.

    Args:
        series: the column.
        column: its domain.
        decimal: the decimal mark of numbers in text.
        keep: missing cells stay missing where the policy says that they are values of their own.
    """
    keep = keep and column.keep_missing
    series = marked_missing(series, column)
    missing = series.null_count()
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        values, unknown = _categories(series, column, keep=keep)
        return values, {"missing": missing, "unknown": unknown}
    numbers = (
        _days(series, column) if column.kind is Kind.DATE else _numbers(series, column, decimal)
    )
    unreadable = numbers.null_count() - missing
    values = numbers if keep else numbers.fill_null(cast("Any", constant(column)))
    outside = 0
    if column.bounds:
        low, high = (limit(bound) for bound in column.bounds)
        outside = int((~values.is_between(low, high)).sum())
        values = values.clip(low, high)
    values = values.clip(limit(column.bottom), limit(column.top))
    if column.step:
        values = rounded(values, column.step)
    return values, {"missing": missing, "unreadable": unreadable, "outside": outside}


def constant(column: Column) -> Any:
    """What a missing cell becomes: the stated constant, or the middle of the bounds."""
    if column.missing_as is not None:
        return limit(column.missing_as)
    if column.bounds is None:
        return 0.0 if column.kind is Kind.NUMERIC else date(1970, 1, 1)
    low, high = (cast("Any", limit(bound)) for bound in column.bounds)
    return low + (high - low) / 2


def _numbers(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    if series.dtype == pl.String:
        text = series.str.strip_chars()
        if decimal == ",":
            text = text.str.replace(",", ".", literal=True)
        values = text.cast(pl.Float64, strict=False)
    elif series.dtype.is_numeric() or series.dtype in {pl.Boolean, pl.Null}:
        values = series.cast(pl.Float64)
    else:
        raise InputError(
            f"Column '{column.name}' is numeric by the policy; expected numbers, found "
            f"{series.dtype}."
        )
    if column.bounds is None:
        # Without bounds there is nothing that an infinite value could be clamped to.
        values = values.set(values.is_infinite().fill_null(value=False), None)
        return values.fill_nan(None).clip(-LARGEST, LARGEST)
    return values.fill_nan(None)


def _days(series: pl.Series, column: Column) -> pl.Series:
    if series.dtype == pl.String:
        return series.str.to_date(column.date_format or "%Y-%m-%d", strict=False)
    if series.dtype == pl.Date or isinstance(series.dtype, pl.Datetime | pl.Null):
        return series.cast(pl.Date)
    raise InputError(
        f"Column '{column.name}' is a date by the policy; expected dates, found {series.dtype}."
    )


def _categories(series: pl.Series, column: Column, *, keep: bool) -> tuple[pl.Series, int]:
    levels = cast("tuple[str, ...]", column.levels)
    text = composed(series.cast(pl.String))
    if series.dtype.is_float():
        text = text.str.replace(r"\.0$", "")  # each cell by itself
    if column.recode:
        text = text.replace({old: new or None for old, new in column.recode.items()})
    gone = text.is_null()
    values = text.cast(pl.Enum(levels), strict=False)
    unknown = values.is_null() & ~gone
    other = column.other or levels[0]
    missing = str(column.missing_as) if column.missing_as is not None else other
    values = values.set(unknown, other).set(gone, None if keep else missing)
    values = coded_levels(values, column)
    return values.alias(column.name), int(unknown.sum())

"""Keys of cells, which a discovery counts: each is a function of one cell and its column's line.

A reader is part of the mechanism: what one record holds changes the key of no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from shoal.core import Column, Kind
from shoal.core._arrays import Floats, Ints
from shoal.io import clamp
from shoal.mechanism import unknown_domains as unknown

LONGEST = 200
"""A text with more characters is no category: it counts as `other`.

Nor is one with a control character or a blank at its end, which SPSS does not keep.
"""
DATE_FORMATS = (None, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
NUMBER, ISO, DOTTED, EITHER, DAY_FIRST, MONTH_FIRST, TEXT, MISSING = range(8)


class Question(NamedTuple):
    """What is counted: the keys of a column's cells, each by itself; a null is not counted."""

    column: str
    keys: Callable[[pl.Series], pl.Series]


Count = Callable[[Sequence[Question]], Sequence[Mapping[Any, int]]]
"""Counts the keys of each question, of at most the stated number of rows of a person."""


def kind_keys(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Sort each cell: a number, a date in one of the forms, a text, or missing.

    A number that begins with a zero is a code, and so a text; so is a truth value.
    """
    cells = clamp.read(series, column)
    bare = replace(column, categories=None)
    number = clamp.readable(series, replace(bare, kind=Kind.NUMERIC), decimal).is_not_null()
    text = cells.text.is_not_null()
    code = cells.text.str.contains(r"^\s*[+-]?0\d").fill_null(value=False)
    number &= ~code & ~(text & cells.number.is_not_null())
    forms = DATE_FORMATS if column.date_format is None else (column.date_format,) * 4
    iso, dotted, day_first, month_first = (
        clamp.readable(series, replace(bare, kind=Kind.DATE, date_format=form), decimal)
        .is_not_null() for form in forms
    )  # fmt: skip
    sorts = pl.DataFrame({"text": text | cells.number.is_not_null(), "missing": cells.missing,
                          "number": number, "iso": iso, "dotted": dotted,
                          "day": day_first, "month": month_first})  # fmt: skip
    return sorts.select(
        pl.when("missing").then(MISSING)
        .when("number").then(NUMBER)
        .when("iso").then(ISO)
        .when("dotted").then(DOTTED)
        .when(pl.col("day") & pl.col("month")).then(EITHER)
        .when("day").then(DAY_FIRST)
        .when("month").then(MONTH_FIRST)
        .when("text").then(TEXT)
        .otherwise(MISSING)
        .alias("key")
    )["key"]  # fmt: skip


def text_keys(series: pl.Series, column: Column) -> pl.Series:
    """Return the category that each cell is written as; null where it has none."""
    cells = clamp.read(series, column)
    text = clamp.category_texts(cells, replace(column, categories=None))
    usable = text.str.len_chars().is_between(1, LONGEST) & ~text.str.contains(r"\p{C}|\s$")
    return text.set(~(usable.fill_null(value=False)) | cells.missing, None)


def month_keys(series: pl.Series, column: Column) -> pl.Series:
    """Return the month of each date; null where it has none."""
    days = clamp.readable(series, replace(column, bounds=None), None)
    return _keys(days.to_physical(), unknown.month_cells)


def year_keys(series: pl.Series, column: Column) -> pl.Series:
    """Return the year of each date; null where it has none."""
    return month_keys(series, column) // 12


def row_keys(series: pl.Series) -> pl.Series:
    """Return 0 for each cell, missing or not."""
    return pl.repeat(0, series.len(), dtype=pl.Int64, eager=True)


def date_keys(series: pl.Series, column: Column) -> pl.Series:
    """Return 0 for each date; null where there is none."""
    return month_keys(series, column) * 0


def magnitude_keys(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Return the magnitude of each number; null where it has none."""
    return _keys(_numbers(series, column, decimal), unknown.magnitude_cells)


def step_keys(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Return the coarsest step of each number, and the last cell for 0; null where it has none."""
    numbers = _numbers(series, column, decimal)
    steps = _keys(numbers, unknown.step_cells)
    return steps.set((numbers == 0).fill_null(value=False), len(unknown.STEPS) + 1)


def _numbers(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    return clamp.readable(series, replace(column, bounds=None), decimal)


def _keys(values: pl.Series, cells: Callable[[Floats], Ints]) -> pl.Series:
    """Return the cell of each value; null where there is none."""
    places = cells(values.fill_null(0).cast(pl.Float64).to_numpy())
    return pl.Series(places, dtype=pl.Int64).set(values.is_null(), None)


def count_keys(
    frame: pl.DataFrame, questions: Sequence[Question], rows: Ints | None = None
) -> list[dict[Any, int]]:
    """Count the keys of some questions in a frame, or in some of its rows."""
    counted = []
    for question in questions:
        keys = question.keys(frame[question.column])
        keys = keys if rows is None else keys.gather(rows)
        sums = keys.drop_nulls().rename("key").value_counts()
        counted.append(dict(zip(sums["key"].to_list(), sums["count"].to_list(), strict=True)))
    return counted

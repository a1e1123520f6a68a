"""The original that a release is compared with: the table as handed in, with types.

Missing cells are missing, and no step of the policy is taken: what a run imputes, clamps, codes,
rounds or repairs is a change, which the figures of an evaluation show. Missing marks and `recode`
are part of reading, because they say what a cell means.
"""

from dataclasses import replace
from functools import partial

import polars as pl

from shoal.core import Column, Kind, Role, Schema
from shoal.io import clamp, validate
from shoal.io.cells import plain_column
from shoal.io.table import Table


def read_original(
    frame: pl.DataFrame, schema: Schema, *, decimal: str | None, silent: bool
) -> Table:
    """Type an original for comparison; identifiers are left out.

    Args:
        frame: columns of any type, as they came.
        schema: columns of the frame.
        decimal: the decimal mark of numbers in text.
        silent: read each cell by itself, as a run with noise does: what cannot be read is missing,
            and a category that the policy does not list is one more. Otherwise such cells are
            refused, as a run without noise refuses them.
    """
    columns = tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER)
    read = _read_silently if silent else validate.parse_column
    cells = validate.fitting(
        partial(read, _cells(frame[column.name], column), without_steps(column), decimal)
        for column in columns
    )
    return Table(pl.DataFrame(cells), Schema(columns), {s.name: s.dtype for s in cells})


def _cells(series: pl.Series, column: Column) -> pl.Series:
    number = column.kind is Kind.NUMERIC and series.dtype == pl.String
    return validate.limits_coded(series, column) if number else series


def without_steps(column: Column) -> Column:
    """Drop what says how a run changes a column, and keep what says how its cells are read."""
    return replace(column, bounds=None, step=None, top_code=None, bottom_code=None, date_step=None)


def without_bounds(column: Column) -> Column:
    """Drop the bounds, which a table of other people may exceed, and keep every step."""
    return replace(column, bounds=None)


def _read_silently(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    if column.kind is None:
        return plain_column(series)
    if column.kind not in {Kind.ORDINAL, Kind.NOMINAL}:
        return clamp.readable(series, column, decimal)
    text = clamp.category_texts(clamp.read(series, column), column)
    known = column.all_categories or ()
    unlisted = sorted(set(text.drop_nulls().unique().to_list()).difference(known))
    return text.cast(pl.Enum((*known, *unlisted))).alias(column.name)

"""Leaves of a spatial tree as a table, and back: one row a box.

A box has for each quasi-identifier its lower and its upper end, and a count for each
confidential value. Numbers and dates: lower included, upper not. Categories: the first and the
last one, both included, in the public order of `level_order`; a missing cell is one more
category, the last, and written as an empty cell.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Decomposition, Kind, Schema
from shoal.errors import InputError
from shoal.partition import taxonomy_order

COUNT = "count"


def level_order(column: Column, levels: Sequence[str]) -> NDArray[np.int64]:
    """The public order of a column's levels: that of its taxonomy's branches, or the declared.

    Returns:
        Positions in `levels`, first place first.
    """
    if column.taxonomy is None or len(levels) < 2:
        return np.arange(len(levels))
    return taxonomy_order(column.taxonomy.edges())[0]


def to_frame(boxes: Decomposition, schema: Schema) -> pl.DataFrame:
    """Write boxes as a table."""
    series: list[pl.Series] = []
    for axis, name in enumerate(boxes.columns):
        lower, upper = boxes.lower[:, axis], boxes.upper[:, axis]
        column = schema[name]
        if boxes.discrete and boxes.discrete[axis]:
            levels = column.levels or ()
            named: list[str | None] = [levels[place] for place in level_order(column, levels)]
            named.append(None)
            ends = [[named[int(c)] for c in lower], [named[int(c) - 1] for c in upper]]
            series += [pl.Series(f"{name}_{side}", end, dtype=pl.String)
                       for side, end in zip(("lower", "upper"), ends, strict=True)]  # fmt: skip
            continue
        for side, end in (("lower", lower), ("upper", upper)):
            cells = pl.Series(f"{name}_{side}", end, dtype=pl.Float64)
            cells = cells.set(cells.is_infinite(), None)
            if column.kind is Kind.DATE:
                cells = cells.ceil().cast(pl.Int32).cast(pl.Date)
            series.append(cells)
    for value, count in zip(boxes.values, boxes.counts.T, strict=True):
        name = COUNT if boxes.column is None else f"{boxes.column}={value}"
        whole = np.array_equal(count, np.rint(count))
        series.append(pl.Series(name, count).cast(pl.Int64) if whole else pl.Series(name, count))
    return pl.DataFrame(series)


def from_frame(frame: pl.DataFrame, schema: Schema) -> Decomposition:
    """Read boxes back from a table that `to_frame` wrote.

    Raises:
        InputError: the table is no table of boxes by this schema.
    """
    names = tuple(name for name in schema.names if f"{name}_lower" in frame.columns)
    if not names:
        raise InputError("Expected columns such as 'age_lower' and 'age_upper', found none.")
    sides, discrete = [], []
    for name in names:
        if f"{name}_upper" not in frame.columns:
            raise InputError(f"Expected a column '{name}_upper' beside '{name}_lower', found none.")
        column = schema[name]
        categories = column.kind in {Kind.ORDINAL, Kind.NOMINAL}
        discrete.append(categories)
        ends = (frame[f"{name}_lower"], frame[f"{name}_upper"])
        sides.append(_places(ends, column) if categories else _numbers(ends))
    used = {f"{name}_{side}" for name in names for side in ("lower", "upper")}
    counts = [name for name in frame.columns if name not in used]
    counted, values = _values(counts, schema)
    return Decomposition(
        columns=names,
        lower=np.column_stack([lower for lower, _ in sides]),
        upper=np.column_stack([upper for _, upper in sides]),
        counts=frame.select(counts).cast(pl.Float64).to_numpy(),
        values=values,
        column=counted,
        discrete=tuple(discrete),
    )


def is_tree(frame: pl.DataFrame, schema: Schema) -> bool:
    """Whether a table holds boxes rather than records."""
    ends = {f"{name}_{side}" for name in schema.names for side in ("lower", "upper")}
    return bool(ends.intersection(frame.columns)) and not set(frame.columns) <= set(schema.names)


def _numbers(ends: tuple[pl.Series, pl.Series]) -> tuple[NDArray[Any], NDArray[Any]]:
    lower, upper = (
        end.cast(pl.Date).to_physical() if end.dtype.is_temporal() else end for end in ends
    )
    return (
        lower.cast(pl.Float64).fill_null(-np.inf).to_numpy(),
        upper.cast(pl.Float64).fill_null(np.inf).to_numpy(),
    )


def _places(ends: tuple[pl.Series, pl.Series], column: Column) -> tuple[NDArray[Any], NDArray[Any]]:
    levels = column.levels
    if levels is None:
        raise InputError(f"Column '{column.name}': expected categories or a taxonomy, found none.")
    place = {levels[code]: rank for rank, code in enumerate(level_order(column, levels))}
    place_of: dict[Any, int] = {**place, None: len(levels)}
    try:
        lower, upper = ([place_of[cell] for cell in end] for end in ends)
    except KeyError:
        raise InputError(f"Column '{column.name}' has a box that ends in no category.") from None
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64) + 1


def _values(counts: Sequence[str], schema: Schema) -> tuple[str | None, tuple[str, ...]]:
    if list(counts) == [COUNT]:
        return None, ("",)
    for column in schema.names:
        mark = f"{column}="
        if counts and all(name.startswith(mark) for name in counts):
            return column, tuple(name.removeprefix(mark) for name in counts)
    raise InputError(f"Expected a column '{COUNT}', or one for each confidential value.")

"""Encode columns as whole numbers on public axes, for private spatial trees, and decode them.

A column becomes cells 0, 1, ..., count - 1 by a function of one cell and the policy alone:

    categories    one cell each, in the public order: the declared one, or that of the hierarchy's
                  branches
    dates         one cell per day
    numbers       multiples of the declared `step`, one cell each; without a step the units of a
                  grid of 2^20 steps between the bounds, rounded to the nearest

A `top_code` or `bottom_code` narrows the axis. Whole numbers stay whole only if the policy declares
a step: the type of the file's numbers is not public.

Methods that follow a column's public `transform` take grids of 2^20 units on that scale, and so do
columns with more multiples of the step than that; on the way back numbers are rounded to the step.

If the policy says `keep_missing` and the method supports it, a missing cell is one more cell at
the end of the axis, as public as the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any, cast

import numpy as np

from shoal.core import Column, Kind
from shoal.core._arrays import Floats, Ints
from shoal.errors import InternalError
from shoal.io.decomposition_table import category_order
from shoal.io.table import Table
from shoal.mechanism.fixed_point import FixedPointGrid, SkewedGrid, public_grid
from shoal.mechanism.spatial_trees import SpatialAxis
from shoal.partition import hierarchy_order

_EPOCH = date(1970, 1, 1)
_MOST_MULTIPLES = 1 << 20


@dataclass(frozen=True, eq=False)
class SpatialEncoding:
    """A column's public axis.

    Attributes:
        count: number of cells.
        first: for the first cell, its day, its multiple of the step, or its rank.
        step: between cells, for numbers with a declared one.
        grid: for numbers without, and for those on a scale of their own.
        order: for categories, positions of the categories, first place first.
        heights: for a hierarchy, the heights of the borders between adjacent codes.
        gap: the last cell stands for a missing one.
    """

    column: Column
    count: int
    first: int = 0
    step: Fraction | None = None
    grid: FixedPointGrid | SkewedGrid | None = None
    order: Ints | None = None
    heights: Ints | None = None
    gap: bool = False

    @property
    def present(self) -> int:
        """Number of codes that are values."""
        return self.count - self.gap

    @property
    def axis(self) -> SpatialAxis:
        """The axis as the mechanism sees it."""
        return SpatialAxis(self.count, self.heights)

    def cells(self, table: Table) -> Ints:
        """Encode the column, each record by itself."""
        name = self.column.name
        if self.order is not None:
            codes = table.codes(name)
            gone = codes < 0
            places = np.argsort(self.order)[codes]
        else:
            numbers = table.numbers(name)
            gone = np.isnan(numbers)
            if self.gap:
                numbers = np.where(gone, 0.0, numbers)
            if self.grid is not None:
                places = self.grid.encode(numbers)
            else:
                if self.step is not None:
                    numbers = numbers * self.step.denominator / self.step.numerator
                places = np.rint(numbers).astype(np.int64)
        cells = np.clip(places - self.first, 0, self.present - 1)
        return np.where(gone, self.present, cells) if self.gap else cells

    def put(self, table: Table, cells: Ints | Floats) -> Table:
        """Return the table with new codes decoded into this column."""
        name = self.column.name
        gone = self.gap & (np.rint(cells) >= self.present)
        cells = np.where(gone, 0, cells)
        if self.order is not None:
            places = np.asarray(cells, dtype=np.int64) + self.first
            return table.with_codes(name, np.where(gone, -1, self.order[places]))
        return table.with_numbers(name, np.where(gone, np.nan, self.values(cells)))

    def values(self, cells: Ints | Floats) -> Floats:
        """Decode to numbers, days or ranks."""
        if self.grid is not None:
            numbers = self._on_grid(cells)
            if self.step is None:
                return numbers
            first, last = _multiples(Fraction(self.grid.low), Fraction(self.grid.high), self.step)
            numerator, denominator = self.step.numerator, float(self.step.denominator)
            multiples = np.rint(numbers * denominator / numerator)
            return np.clip(multiples, first, last) * numerator / denominator
        if self.step is not None:
            return (self.first + cells) * float(self.step.numerator) / self.step.denominator
        return (self.first + cells).astype(np.float64)

    def _on_grid(self, cells: Ints | Floats) -> Floats:
        grid = cast("FixedPointGrid | SkewedGrid", self.grid)
        return np.clip(grid.decode(cells), float(grid.low), float(grid.high))

    def ends(self, lower: Ints, upper: Ints) -> tuple[Floats, Floats]:
        """Convert boxes of codes to boxes of values; upper ends are not included."""
        last = self.values(upper)
        if self.grid is not None:  # to keep the upper bound itself in the last box
            last[upper == self.count] = np.nextafter(float(self.grid.high), np.inf)
        return self.values(lower), last

    def text(self, lower: int, upper: int) -> str:
        """Describe codes in text: a category, a day or number, or a range of them."""
        if self.gap and upper == self.count:
            missing = missing_label(self.column.all_categories or ())
            if lower == self.present:
                return missing
            return f"{self.text(lower, self.present)} or {missing}"
        if self.order is not None:
            categories = cast("tuple[str, ...]", self.column.all_categories)
            return categories[int(self.order[lower + self.first])]
        cells = np.array([lower, min(upper, self.present - 1)])
        start, end = self.values(cells) if self.grid is None else self._on_grid(cells)
        if self.column.kind is Kind.DATE:
            first, other = (str(_EPOCH + timedelta(days=int(days))) for days in (start, end))
        else:
            first, other = (f"{number:.15g}" for number in (start, end))
        if upper == lower + 1 and self.grid is None:
            return first
        return f"[{first}, {other}{']' if upper == self.present else ')'}"


def missing_label(categories: Sequence[str]) -> str:
    """Return the label of missing cells among counts: a text that is not a category.

    >>> missing_label(["yes", "no"]), missing_label(["yes", "missing"])
    ('missing', '(missing)')
    """
    label = "missing"
    while label in categories:
        label = f"({label})"
    return label


def spatial_encoding(
    column: Column, *, scaled: bool = False, gaps: bool = False
) -> SpatialEncoding:
    """Make the public axis of a column that has bounds or categories.

    If `scaled`, it follows the column's transform. With `gaps`, missing gets a code of its own if
    the policy keeps missing cells.
    """
    axis = _places(column, scaled=scaled)
    if not (gaps and column.keep_missing):
        return axis
    heights = axis.heights
    if heights is not None:
        heights = np.append(heights, heights.max(initial=0))
    return replace(axis, count=axis.count + 1, heights=heights, gap=True)


def _places(column: Column, *, scaled: bool) -> SpatialEncoding:
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        return _ranks(column)
    low, high = (_limit(column, bound) for bound in cast("tuple[Any, Any]", column.bounds))
    if column.kind is Kind.DATE:
        return SpatialEncoding(column, int(high - low) + 1, int(low))
    step = Fraction(column.step) if column.step else None
    first, last = (0, _MOST_MULTIPLES) if step is None else _multiples(low, high, step)
    if scaled and low < high and (column.transform or last - first > _MOST_MULTIPLES):
        scale = SkewedGrid(low, high, column.transform)
        return SpatialEncoding(column, scale.steps + 1, step=step, grid=scale)
    if step is not None:
        return SpatialEncoding(column, last - first + 1, first, step)
    if low >= high:  # top and bottom leave one number
        return SpatialEncoding(column, 1, int(low != 0), low or Fraction(1))
    grid = public_grid(low, high)
    return SpatialEncoding(column, grid.steps + 1, grid=grid)


def redrawn(table: Table, columns: Sequence[tuple[SpatialEncoding, Ints | Floats]]) -> Table:
    """Make a table of drawn rows, with only the names and types of the original columns.

    The columns are those of the table, with the new cells: whole ones, except on a grid.
    """
    made = table.take(np.zeros(len(columns[0][1]), dtype=np.int64))
    for axis, cells in columns:
        made = axis.put(made, cells)
    if {axis.column.name for axis, _ in columns} != set(table.schema.names):
        raise InternalError(
            "A column of the original table would be released beside synthetic rows."
        )
    return made


def _multiples(low: Fraction, high: Fraction, step: Fraction) -> tuple[int, int]:
    """Return the first and last multiple of a step within the bounds, or else the nearest."""
    first, last = ceil(low / step), floor(high / step)
    return (first, last) if first <= last else (round(low / step),) * 2


def _limit(column: Column, bound: Decimal | date) -> Fraction:
    """Return a bound as a number, after top- and bottom-coding."""
    number = _number(bound)
    if column.bottom_code is not None:
        number = max(number, _number(column.bottom_code))
    return number if column.top_code is None else min(number, _number(column.top_code))


def _number(value: Any) -> Fraction:
    return Fraction((value - _EPOCH).days if isinstance(value, date) else value)


def _ranks(column: Column) -> SpatialEncoding:
    categories = cast("tuple[str, ...]", column.all_categories)
    order = category_order(column, categories)
    if column.hierarchy is not None and len(categories) > 1:
        return SpatialEncoding(
            column,
            len(categories),
            order=order,
            heights=hierarchy_order(column.hierarchy.edges())[1],
        )
    first = categories.index(str(column.bottom_code)) if column.bottom_code is not None else 0
    last = (
        categories.index(str(column.top_code))
        if column.top_code is not None
        else len(categories) - 1
    )
    return SpatialEncoding(column, last - first + 1, first, order=order)

"""Spatial decompositions as tables, and back: one row per released leaf (a box).

A box has for each quasi-identifier its lower and its upper end, and a count for each confidential
value. What a box holds:

- numbers: lower <= x < upper. A column of whole numbers has whole ends, so ages 20 to 29
  are written 20 and 30. An end that is not there is infinite.
- dates: the same, in days; ends that are not whole days are written as times.
- categories: from the first to the last one, both included, in the public order
  (`category_order`). A missing cell is one more category, the last, and written as an empty cell.

A missing number has no place in a box but one that the policy states (`missing_as`): `of_tree`
refuses it. It is neither below nor above any number, and an end beyond the largest would be read as
a number.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Kind, Partition, Schema, SpatialDecomposition
from shoal.core._arrays import Floats
from shoal.core.columns import hierarchy_order
from shoal.errors import InputError, count_noun
from shoal.io.table import Table

COUNT = "count"
"""Name of the column of counts where no confidential column is counted."""

MOST_VALUES = 1000
"""Of a counted column: a box has a column for each."""

_DAY = 86_400e6
_EXACT = 2.0**53
_CATEGORIES = frozenset({Kind.ORDINAL, Kind.NOMINAL})


def category_order(column: Column, categories: Sequence[str]) -> NDArray[np.int64]:
    """Return the public order of a column's categories: as in its hierarchy, or as declared."""
    if column.hierarchy is None or len(categories) < 2:
        return np.arange(len(categories))
    order = hierarchy_order(column.hierarchy.edges())[0]
    # Categories of an original that the hierarchy lacks come last.
    return np.append(order, np.arange(order.size, len(categories)))


def of_tree(
    table: Table,
    columns: Sequence[str],
    partition: Partition,
    ends: tuple[Floats, Floats],
    *,
    count: str | None = None,
) -> SpatialDecomposition:
    """Turn the equivalence classes of Mondrian's cuts into boxes with exact counts.

    A cell above < x <= upto becomes the places after `above` up to the one after `upto`: the next
    whole number or day, the next microsecond of a time, the next number that a float can hold.
    The outer boxes end where the space ends: at the declared bounds, at the range of the table
    where none are declared, at the first and last category. So boxes cover it, each place once.

    Args:
        table: the records that were cut, none of them with a missing number in `columns`.
        columns: of the tree, one axis each; categories must be declared.
        partition: the records of each cell.
        ends: of the cells by axis, `above` and `upto`: strict cuts, by places in the order of
            `category_order`, missing last.
        count: the confidential column that is counted; None counts records. If its categories
            are declared, each has a count; otherwise each value that occurs.

    Raises:
        InputError: a number is missing, or the counted column has more than `MOST_VALUES`.
    """
    axes = [_axis(table, name) for name in columns]
    lower, upper = np.empty_like(ends[0]), np.empty_like(ends[1])
    for axis, (low, high, fineness) in enumerate(axes):
        above, upto = ends[0][:, axis], ends[1][:, axis]
        lower[:, axis] = np.where(np.isinf(above), low, _after(above, fineness))
        upper[:, axis] = np.where(np.isinf(upto), high, _after(upto, fineness))
    codes, values = _count_values(table, count)
    labels = partition.labels
    shape = (len(partition), len(values))
    flat = np.bincount(labels * shape[1] + codes, minlength=shape[0] * shape[1])
    return SpatialDecomposition(
        columns=tuple(columns),
        lower=lower,
        upper=upper,
        counts=flat.reshape(shape).astype(np.float64),
        values=values,
        column=count,
        discrete=tuple(table.schema[name].kind in _CATEGORIES for name in columns),
    )


def to_frame(boxes: SpatialDecomposition, schema: Schema) -> pl.DataFrame:
    """Write boxes as a table: `age_lower`, `age_upper`, ..., and `ill=flu`, ... or `count`.

    Whole ends are written as whole numbers, infinite ones as empty cells. Ends within a
    category's places are moved up to its end, as no record lies in between.
    """
    series: list[pl.Series] = []
    for axis, name in enumerate(boxes.columns):
        ends = (boxes.lower[:, axis], boxes.upper[:, axis])
        column = schema[name]
        if boxes.discrete and boxes.discrete[axis]:
            series += _name_ends(ends, column)
        else:
            series += _number_ends(ends, column)
    integral = np.array_equal(boxes.counts, np.rint(boxes.counts))
    for value, count in zip(boxes.values, boxes.counts.T, strict=True):
        name = COUNT if boxes.column is None else f"{boxes.column}={value}"
        series.append(pl.Series(name, count).cast(pl.Int64 if integral else pl.Float64))
    return pl.DataFrame(series)


def from_frame(frame: pl.DataFrame, schema: Schema) -> SpatialDecomposition:
    """Read boxes back from a table that `to_frame` wrote; refuse one that is not by this schema."""
    names = _axes(frame, schema)
    if not names:
        raise InputError("Expected columns such as 'age_lower' and 'age_upper', found none.")
    sides, discrete = [], []
    for name in names:
        if f"{name}_upper" not in frame.columns:
            raise InputError(f"Expected a column '{name}_upper' beside '{name}_lower', found none.")
        column = schema[name]
        categories = column.kind in _CATEGORIES
        discrete.append(categories)
        ends = (frame[f"{name}_lower"], frame[f"{name}_upper"])
        sides.append(_places(ends, column) if categories else _numbers(ends, column))
    used = {f"{name}_{side}" for name in names for side in ("lower", "upper")}
    counts = [name for name in frame.columns if name not in used]
    counted, values = _values(counts, schema)
    cells = frame.select(pl.col(counts).cast(pl.Float64, strict=False))
    if sum(cells.null_count().row(0)):
        raise InputError("Expected a number in every cell of a column of counts.")
    return SpatialDecomposition(
        columns=names,
        lower=np.column_stack([lower for lower, _ in sides]),
        upper=np.column_stack([upper for _, upper in sides]),
        counts=cells.to_numpy(),
        values=values,
        column=counted,
        discrete=tuple(discrete),
    )


def is_tree(frame: pl.DataFrame, schema: Schema) -> bool:
    """Whether a table holds boxes rather than records: a column of the schema has two ends."""
    new = set(frame.columns).difference(schema.names)
    return any({f"{name}_lower", f"{name}_upper"} <= new for name in schema.names)


def _axis(table: Table, name: str) -> tuple[float, float, float]:
    """Return where a column's axis begins and ends, and its points per unit, 0 if continuous."""
    kind, dtype = table.schema[name].kind, table.frame.schema[name]
    gone = int(table.missing(name).sum())
    if kind in _CATEGORIES:
        return 0.0, float(len(table.categories(name)) + (gone > 0)), 1.0
    if gone:
        raise InputError(
            f"Column '{name}' has {count_noun(gone, 'missing cell')}, and a missing number has no "
            "place in a box. State one by missing_as, leave such rows out, or choose another "
            "output."
        )
    integral = dtype.is_integer() or dtype == pl.Date
    fineness = 1.0 if integral else _DAY if kind is Kind.DATE else 0.0
    values = table.numbers(name)
    low, end = float(values.min()), float(_after(values.max(keepdims=True), fineness)[0])
    if table.schema[name].bounds is not None:
        # Rounding to a step may lead beyond a bound, so the table's range counts as well.
        first, last = table.limits(name)
        if integral:
            first, last = float(np.ceil(first)), float(np.floor(last))
        # A bound of a date is a day, and includes all of it.
        reach = 1.0 if kind is Kind.DATE else fineness
        low, end = min(low, first), max(end, float(_after(np.array([last]), reach)[0]))
    return low, end, fineness


def _after(places: Floats, fineness: float) -> Floats:
    """Return the next grid point after each value: where a box that includes the value ends."""
    after: Floats = np.nextafter(places, np.inf)
    if fineness:
        # Beyond 2^53 the next whole number is not a float.
        after = np.maximum(after, (np.rint(places * fineness) + 1.0) / fineness)
    return after


def _count_values(table: Table, name: str | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number the confidential value of each record, and list these values as texts."""
    if name is None:
        return np.zeros(len(table), dtype=np.int64), ("",)
    column, series = table.schema[name], table.frame[name]
    text = series.cast(pl.String)
    if column.all_categories is not None and not column.observed:
        categories = list(column.all_categories)
    else:
        categories = series.drop_nulls().unique().sort().cast(pl.String).to_list()
    if len(categories) > MOST_VALUES:
        raise InputError(
            f"Column '{name}' has {len(categories):,} values, but a tree counts at most "
            f"{MOST_VALUES:,}. Round it, or count another column."
        )
    codes = text.cast(pl.Enum(categories)).to_physical().cast(pl.Int64)
    if codes.null_count():
        if "" in categories:
            raise InputError(
                f"Column '{name}' has missing cells and empty texts, which a tree cannot tell "
                "apart. List the empty text under 'missing'."
            )
        categories.append("")
    return codes.fill_null(len(categories) - 1).to_numpy(), tuple(categories)


def _name_ends(ends: tuple[Floats, Floats], column: Column) -> list[pl.Series]:
    categories = column.all_categories or ()
    named: list[str | None] = [categories[place] for place in category_order(column, categories)]
    named.append(None)
    lower, upper = (np.ceil(np.clip(end, 0, len(named))).astype(np.int64) for end in ends)
    if not (lower < upper).all():
        raise InputError(f"Column '{column.name}' has a box that holds no category.")
    return [
        pl.Series(f"{column.name}_lower", [named[c] for c in lower], dtype=pl.String),
        pl.Series(f"{column.name}_upper", [named[c - 1] for c in upper], dtype=pl.String),
    ]


def _number_ends(ends: tuple[Floats, Floats], column: Column) -> list[pl.Series]:
    finite = np.concatenate([end[np.isfinite(end)] for end in ends])
    integral = bool(((finite == np.rint(finite)) & (np.abs(finite) < _EXACT)).all())
    written = []
    for side, end in zip(("lower", "upper"), ends, strict=True):
        unit = _DAY if column.kind is Kind.DATE and not integral else 1.0
        cells = pl.Series(f"{column.name}_{side}", end * unit, dtype=pl.Float64)
        cells = cells.set(cells.is_infinite(), None)
        if column.kind is Kind.DATE and integral:
            cells = cells.cast(pl.Int32).cast(pl.Date)
        elif column.kind is Kind.DATE:
            cells = cells.round().cast(pl.Int64).cast(pl.Datetime("us"))
        elif integral:
            cells = cells.cast(pl.Int64)
        written.append(cells)
    return written


def _axes(frame: pl.DataFrame, schema: Schema) -> tuple[str, ...]:
    """List the columns that have two ends in the table, in its order."""
    lower = [name.removesuffix("_lower") for name in frame.columns if name.endswith("_lower")]
    return tuple(name for name in lower if name in schema.names)


def _numbers(ends: tuple[pl.Series, pl.Series], column: Column) -> tuple[Floats, Floats]:
    read = []
    for end, beyond in zip(ends, (-np.inf, np.inf), strict=True):
        cells, unit = end, 1.0
        if column.kind is Kind.DATE:
            cells, unit = _days(end)
        numbers = cells.cast(pl.Float64, strict=False)
        if numbers.null_count() > end.null_count():
            raise InputError(f"Column '{column.name}' has a box whose end is not a number.")
        # NumPy divides; Polars multiplies by the reciprocal, and a box would not come back.
        read.append(numbers.fill_null(beyond).to_numpy() / unit)
    return read[0], read[1]


def _days(end: pl.Series) -> tuple[pl.Series, float]:
    """Convert a date column's end to whole numbers; also return how many make a day."""
    if end.dtype == pl.String:
        dates = end.str.to_date("%Y-%m-%d", strict=False)
        if dates.null_count() > end.null_count():
            dates = end.str.to_datetime(time_unit="us", strict=False)
        end = dates
    if end.dtype == pl.Date:
        return end.to_physical(), 1.0
    if isinstance(end.dtype, pl.Datetime):
        return end.cast(pl.Datetime("us")).to_physical(), _DAY
    return end, 1.0


def _places(ends: tuple[pl.Series, pl.Series], column: Column) -> tuple[Floats, Floats]:
    categories = column.all_categories
    if categories is None:
        raise InputError(f"Column '{column.name}': expected categories or a hierarchy, found none.")
    place = {categories[code]: rank for rank, code in enumerate(category_order(column, categories))}
    place_of: dict[Any, int] = {**place, None: len(categories)}
    try:
        lower, upper = ([place_of[cell] for cell in end.cast(pl.String)] for end in ends)
    except KeyError:
        raise InputError(f"Column '{column.name}' has a box whose end is not a category.") from None
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64) + 1


def _values(counts: Sequence[str], schema: Schema) -> tuple[str | None, tuple[str, ...]]:
    if list(counts) == [COUNT]:
        return None, ("",)
    # Where two column names fit, as 'a' and 'a=b', the longer one is meant.
    for column in sorted(schema.names, key=len, reverse=True):
        mark = f"{column}="
        if counts and all(name.startswith(mark) for name in counts):
            return column, tuple(name.removeprefix(mark) for name in counts)
    raise InputError(f"Expected a column '{COUNT}', or one for each confidential value.")

"""A table that fits its schema, and the Euclidean matrix that algorithms see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Kind, MixedRecords, Schema, Transform
from shoal.core._arrays import Ints, Unsigned64
from shoal.core.columns import top_down
from shoal.core.row_order import float_words, words_order

MISSING_DISTANCE = 2.0
"""How far a missing cell lies from the column's mean, in standard deviations, off the axis."""

_EPOCH = date(1970, 1, 1)


class ColumnScale(NamedTuple):
    """How a column's values become places of `Table.matrix`.

    Attributes:
        centre: mean of the present numbers or ranks.
        spread: their standard deviation, or 1 where they have none.
        gone: whether cells are missing, which takes one more axis.
        shares: of a nominal in place of these, share of each level, and of missing cells last.
    """

    centre: float = 0.0
    spread: float = 1.0
    gone: bool = False
    shares: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Typed columns and their schema.

    Attributes:
        frame: numbers as integers or floats, dates as dates, ordinal and nominal columns as
            enumerations in the order of their categories, everything else as it came.
        schema: the columns of the frame, identifiers left out, in the order of the policy.
        dtypes: the types that the columns came in, so they can leave in the same.
        persons: whose row each is, as numbers from 0; none where each person has one row.
        households: the household of each row, as numbers from 0; none where no column says.
    """

    frame: pl.DataFrame
    schema: Schema
    dtypes: Mapping[str, pl.DataType]
    persons: NDArray[np.int64] | None = field(default=None, kw_only=True)
    households: NDArray[np.int64] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.frame.height

    def categories(self, name: str) -> tuple[str, ...]:
        """Categories of an ordinal or nominal column, in order."""
        return tuple(cast("pl.Enum", self.frame.schema[name]).categories)

    def codes(self, name: str) -> NDArray[np.int64]:
        """An ordinal or nominal column as positions in its categories, -1 where missing."""
        return _fill_missing(self.frame[name].to_physical().cast(pl.Int64), -1)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A numeric or date column as floats, NaN where missing; dates in days."""
        series = self.frame[name]
        if self.schema[name].kind is Kind.DATE:
            unit = 1.0 if series.dtype == pl.Date else 86_400e6
            series = series.to_physical().cast(pl.Float64) / unit
        return series.to_numpy().astype(np.float64, copy=False)

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Where a column has no value."""
        return self.frame[name].is_null().to_numpy()

    def with_codes(self, name: str, codes: NDArray[np.int64]) -> "Table":
        """Replace an ordinal or nominal column, given positions in its categories."""
        physical = pl.Series(name, codes, dtype=pl.Int64)
        present = physical.set(physical < 0, None)
        categories = pl.Series(self.categories(name), dtype=self.frame.schema[name])
        return self.with_series(categories.gather(present.cast(pl.UInt32)).alias(name))

    def with_numbers(
        self, name: str, values: NDArray[np.float64], *, integers: bool = False
    ) -> "Table":
        """Replace a numeric or date column, NaN where missing.

        Dates are rounded to the day, or to the microsecond where the column has times. With
        `integers`, a column of whole numbers stays one: values are rounded, half to even.
        """
        series = pl.Series(name, values, dtype=pl.Float64, nan_to_null=True)
        dtype = self.frame.schema[name]
        if self.schema[name].kind is Kind.DATE:
            unit = 1.0 if dtype == pl.Date else 86_400e6
            physical = pl.Int32 if dtype == pl.Date else pl.Int64
            series = (series * unit).round(mode="half_to_even").cast(physical).cast(dtype)
        elif integers and dtype.is_integer():
            series = series.round(mode="half_to_even").cast(pl.Int64)
        return self.with_series(series)

    def with_series(self, series: pl.Series) -> "Table":
        """Replace a column of the same name."""
        return replace(self, frame=self.frame.with_columns(series))

    def take(self, order: NDArray[np.int64]) -> "Table":
        """Rows in another order, or some of them."""
        persons = None if self.persons is None else self.persons[order]
        homes = None if self.households is None else self.households[order]
        frame = self.frame[pl.Series(order, dtype=pl.UInt32)]
        return replace(self, frame=frame, persons=persons, households=homes)

    def canonical_order(self, columns: Sequence[str] | None = None) -> NDArray[np.int64]:
        """Sort the rows by all columns in schema order, or by some, missing first.

        Rows that are equal in every column, and of one person, are interchangeable, so
        whatever is computed on the sorted rows does not depend on the order of the file. Rows
        that are equal in the chosen columns stay in the order of the file.
        """
        names = self.schema.names if columns is None else columns
        if not names:
            return np.arange(len(self))
        frame = self.frame.select(names)
        if columns is None and self.persons is not None:
            frame = frame.with_columns(pl.Series("\0person", self.persons))
        return words_order(_sort_words(frame))

    def publishable(self) -> pl.DataFrame:
        """The frame with the columns back in the types that they came in, where they fit."""
        return pl.DataFrame(
            [as_it_came(self.frame[name], dtype) for name, dtype in self.dtypes.items()]
        )

    def raw(self, name: str) -> NDArray[np.float64]:
        """A column as floats: numbers, days, or positions in the categories; NaN where missing."""
        if self.schema[name].kind not in {Kind.ORDINAL, Kind.NOMINAL}:
            return self.numbers(name)
        codes = self.codes(name).astype(np.float64)
        codes[codes < 0] = np.nan
        return codes

    def matrix(
        self, columns: Sequence[str], scales: Sequence[ColumnScale] | None = None
    ) -> NDArray[np.float64]:
        """Place mixed records in one Euclidean space, for the k-anonymity methods.

        Each column adds variance 1, as standardised numbers do, so none dominates.
        Numbers, dates and ordinal ranks take one axis: (x - mean) / sd. A nominal takes one
        axis for each edge of its hierarchy, so squared distance is path length; a flat
        nominal is a star. A missing number lies at the mean, two standard deviations off
        the axis; a missing nominal is one more leaf at the root.

        The scale is read off the data, which no claim of differential privacy survives.

        Args:
            columns: which columns, in this order.
            scales: one per column, of the table that these rows are a part of; by default they
                are the whole table.
        """
        given = [None] * len(columns) if scales is None else scales
        return np.ascontiguousarray(np.hstack([
            place_column(self.raw(name), self.schema[name], scale, edges_of(self, name))
            for name, scale in zip(columns, given, strict=True)
        ]))  # fmt: skip

    def records(self, columns: Sequence[str]) -> MixedRecords:
        """Place mixed records as `matrix` does, a category as a code in place of one axis each."""
        n = len(self)
        numbers, codes = [np.zeros((n, 0))], [np.zeros((n, 0), np.int64)]
        weights: list[float] = []
        for name in columns:
            column = self.schema[name]
            if column.kind is Kind.NOMINAL:
                levels, weight = code_levels(self.codes(name), leaf_edges(self, name, missing=True))
                codes.append(levels)
                weights += [weight] * levels.shape[1]
            else:
                numbers.append(place_column(self.raw(name), column, None, None))
        if not weights and len(numbers) == 1:  # nothing tells the records apart
            numbers.append(np.zeros((n, 1)))
        return MixedRecords(np.hstack(numbers), np.hstack(codes), np.array(weights))

    def unit_matrix(self, columns: Sequence[str]) -> NDArray[np.float64]:
        """Place each record in the unit box, one axis per column, by public quantities alone.

        Numbers and dates: (x - low) / (high - low) by the policy's bounds. Ordinals and
        nominals: the place in the declared order over their number, a missing cell last. A
        missing number lies at the upper bound. A row depends on its own record only.
        """
        return np.column_stack([self._unit_axis(self.schema[name]) for name in columns])

    def _unit_axis(self, column: Column) -> NDArray[np.float64]:
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
            codes, count = self.codes(column.name), len(self.categories(column.name))
            return np.where(codes < 0, count, codes) / count
        low, high = self.limits(column.name)
        values = (self.numbers(column.name) - low) / (high - low)
        return np.where(np.isnan(values), 1.0, values)

    def limits(self, name: str) -> tuple[float, float]:
        """The stated bounds of a numeric or date column, in the units of `numbers`."""
        bounds = cast("tuple[Decimal | date, Decimal | date]", self.schema[name].bounds)
        low, high = (
            float(bound) if isinstance(bound, Decimal) else (bound - _EPOCH).days
            for bound in bounds
        )
        return low, high


def _fill_missing(series: pl.Series, value: float) -> NDArray[Any]:
    """A column of numbers, with a number for missing cells; a copy only if there are any."""
    return (series.fill_null(value) if series.has_nulls() else series).to_numpy()


def _sort_words(frame: pl.DataFrame) -> list[Unsigned64]:
    """Pack the columns into few words of 64 bits whose order is the order of the rows.

    Leading columns with many ties make a sort by columns slow; packed, they tie rarely.
    """
    words: list[Unsigned64] = []
    room = 0
    for series in frame:
        code, bits = _sort_code(series)
        if not words or bits > room:
            words.append(code)
            room = 64 - bits
        else:
            words[-1] <<= np.uint64(bits)
            words[-1] |= code
            room -= bits
    return words


def _sort_code(series: pl.Series) -> tuple[Unsigned64, int]:
    """Number the values of a column in their order, missing as 0; and the bits that takes."""
    if series.dtype == pl.Float64:
        return float_words(_fill_missing(series, -np.inf)), 64
    if isinstance(series.dtype, pl.Enum) or series.dtype in {pl.Int64, pl.Date}:
        physical = series.to_physical()
        low, high = (cast("int", limit or 0) for limit in (physical.min(), physical.max()))
        if low > -(2**62) and high - low < 2**62:
            integers = _fill_missing(physical.cast(pl.Int64), low - 1)
            return (integers - (low - 1)).view(np.uint64), (high - low + 1).bit_length()
    ranks = series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy(writable=True)
    return ranks.view(np.uint64), int(ranks.max(initial=0)).bit_length()


def leaf_edges(table: Table, name: str, *, missing: bool = False) -> NDArray[np.int64]:
    """Edges between each category of a nominal column and the root, padded with -1.

    A column without a hierarchy is a star: one edge a category. See `Hierarchy.edges`.
    """
    hierarchy = table.schema[name].hierarchy
    if hierarchy:
        return hierarchy.edges(missing=missing)
    return np.arange(len(table.categories(name)) + missing, dtype=np.int64)[:, None]


def edges_of(table: Table, name: str) -> NDArray[np.int64] | None:
    """`leaf_edges` of a nominal column, none for the others."""
    return leaf_edges(table, name) if table.schema[name].kind is Kind.NOMINAL else None


def place_column(
    raw: NDArray[np.float64],
    column: Column,
    scale: ColumnScale | None,
    edges: NDArray[np.int64] | None,
) -> NDArray[np.float64]:
    """Place one column of `Table.raw` on its axes, see `Table.matrix`.

    The scale is that of the whole table; None takes it from these values. Edges are those of a
    nominal, see `leaf_edges`.
    """
    if edges is not None:
        codes = np.where(np.isnan(raw), -1, raw).astype(np.int64)
        return _edges_block(codes, edges, None if scale is None else scale.shares)
    values = transform(raw, column)
    gone = np.isnan(values)
    if scale is None:
        scale = _scale_of(values[~gone], gone=bool(gone.any()))
    axis = np.where(gone, 0.0, (values - scale.centre) / scale.spread)
    if not scale.gone:
        return axis[:, None]
    return np.column_stack([axis, np.where(gone, MISSING_DISTANCE, 0.0)])


def _scale_of(present: NDArray[np.float64], *, gone: bool) -> ColumnScale:
    if present.size == 0:
        return ColumnScale()
    return ColumnScale(float(present.mean()), float(present.std()) or 1.0, gone)


def _edges_block(
    codes: NDArray[np.int64], edges: NDArray[np.int64], shares: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    count = int(edges.max(initial=-1)) + 1
    table = np.zeros((len(edges) + 1, count + 1))
    leaf, step = np.nonzero(edges >= 0)
    table[leaf, edges[leaf, step]] = 1.0
    table[-1, count] = 1.0  # a missing cell has code -1: the last row, an edge of its own
    if shares is None:
        shares = np.bincount(codes % len(table), minlength=len(table)) / max(codes.size, 1)
    means = shares @ table
    spread = float(shares @ ((table - means) ** 2).sum(axis=1))
    # An edge that all records share, or none has, adds nothing to any distance.
    used = (means > 0) & (means < 1)
    if not used.any():
        return np.zeros((codes.size, 1))
    block: NDArray[np.float64] = (table[:, used] / np.sqrt(spread))[codes]
    return block


def code_levels(codes: Ints, edges: Ints) -> tuple[Ints, float]:
    """Return a nominal as codes of its ancestors, level by level, and the weight of an edge.

    Args:
        codes: the category of each record, -1 where it is missing.
        edges: of `Hierarchy.edges`, with a last row for a missing cell.

    Returns:
        A column for each level on which records differ, from the highest; codes from 1, and 0 for
        a leaf that ends above. The weight brings the variance of the nominal to 1.
    """
    counts = np.bincount(codes % len(edges), minlength=len(edges))
    held = np.flatnonzero(counts)
    paths = top_down(edges[held])
    levels, spread = [], 0.0
    for level in paths.T:
        _, places = np.unique(np.append(-1, level), return_inverse=True)
        share = np.bincount(places[1:], counts[held])[1:] / codes.size
        spread += float((share * (1.0 - share)).sum())
        if len(set(places[1:].tolist())) > 1:
            table = np.zeros(len(edges), np.int64)
            table[held] = places[1:]
            levels.append(table[codes])
    if not levels:
        return np.zeros((codes.size, 0), np.int64), 1.0
    return np.column_stack(levels), 1.0 / spread


def transform(values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
    """Numbers after the column's public transform; others as they are."""
    if column.kind is Kind.ORDINAL:
        return values
    if column.transform is Transform.LOG:
        return np.sign(values) * np.log1p(np.abs(values))
    if column.transform is Transform.SQRT:
        return np.sign(values) * np.sqrt(np.abs(values))
    return values


def as_it_came(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Give a column back the type that it came in, where the released values still fit it."""
    if dtype in {series.dtype, pl.String} and not isinstance(series.dtype, pl.Enum):
        return series  # also text that was parsed: the new type stays
    if series.dtype == pl.String:
        return series  # generalised: an interval has no other type
    if isinstance(series.dtype, pl.Enum):
        categories = series.dtype.categories
        series = categories.gather(series.to_physical()).alias(series.name)
        if dtype == pl.Boolean:
            return series == "true"
    elif isinstance(dtype, pl.Datetime) and dtype.time_zone:
        series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    back = series.cast(dtype, strict=False)
    if dtype.is_float() or not series.dtype.is_float():
        return back if back.null_count() == series.null_count() else series
    # Whole numbers and decimals that were averaged stay fractions.
    return back if back.cast(pl.Float64).equals(series, null_equal=True) else series

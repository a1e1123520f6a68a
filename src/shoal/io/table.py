"""A table that fits its schema, and the records that algorithms see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Kind, MixedRecords, Schema, Transform
from shoal.core._arrays import Floats, Ints, Unsigned64
from shoal.core.columns import top_down
from shoal.core.row_order import float_words, words_order

MISSING_DISTANCE = 2.0
"""How far a missing cell lies from the column's mean, in standard deviations, off the axis."""

_EPOCH = date(1970, 1, 1)


class ColumnScale(NamedTuple):
    """How a column's values become numbers or codes of `Table.records`.

    Attributes:
        column: which column.
        centre: mean of the present numbers or ranks.
        spread: their standard deviation, or 1 where they have none.
        gone: whether cells are missing, which takes one more axis.
        levels: of a nominal in place of these, the code of each category on each level, and those
            of a missing cell last.
        weight: of its codes.
    """

    column: Column
    centre: float = 0.0
    spread: float = 1.0
    gone: bool = False
    levels: Ints | None = None
    weight: float = 1.0


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
    persons: Ints | None = field(default=None, kw_only=True)
    households: Ints | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.frame.height

    def categories(self, name: str) -> tuple[str, ...]:
        """Categories of an ordinal or nominal column, in order."""
        return tuple(cast("pl.Enum", self.frame.schema[name]).categories)

    def codes(self, name: str) -> Ints:
        """An ordinal or nominal column as positions in its categories, -1 where missing."""
        return _fill_missing(self.frame[name].to_physical().cast(pl.Int64), -1)

    def numbers(self, name: str) -> Floats:
        """A numeric or date column as floats, NaN where missing; dates in days."""
        series = self.frame[name]
        if self.schema[name].kind is Kind.DATE:
            unit = 1.0 if series.dtype == pl.Date else 86_400e6
            series = series.to_physical().cast(pl.Float64) / unit
        return series.to_numpy().astype(np.float64, copy=False)

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Where a column has no value."""
        return self.frame[name].is_null().to_numpy()

    def with_codes(self, name: str, codes: Ints) -> "Table":
        """Replace an ordinal or nominal column, given positions in its categories."""
        physical = pl.Series(name, codes, dtype=pl.Int64)
        present = physical.set(physical < 0, None)
        categories = pl.Series(self.categories(name), dtype=self.frame.schema[name])
        return self.with_series(categories.gather(present.cast(pl.UInt32)).alias(name))

    def with_numbers(self, name: str, values: Floats, *, integers: bool = False) -> "Table":
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

    def take(self, order: Ints) -> "Table":
        """Rows in another order, or some of them."""
        persons = None if self.persons is None else self.persons[order]
        homes = None if self.households is None else self.households[order]
        frame = self.frame[pl.Series(order, dtype=pl.UInt32)]
        return replace(self, frame=frame, persons=persons, households=homes)

    def canonical_order(self, columns: Sequence[str] | None = None) -> Ints:
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

    def raw(self, name: str) -> Floats:
        """A column as floats: numbers, days, or positions in the categories; NaN where missing."""
        if self.schema[name].kind not in {Kind.ORDINAL, Kind.NOMINAL}:
            return self.numbers(name)
        codes = self.codes(name).astype(np.float64)
        codes[codes < 0] = np.nan
        return codes

    def records(
        self, columns: Sequence[str], scales: Sequence[ColumnScale] | None = None
    ) -> MixedRecords:
        """Place mixed records where distances can be taken, for the k-anonymity methods.

        Each column adds variance 1, as standardised numbers do, so none dominates.
        Numbers, dates and ordinal ranks are numbers: (x - mean) / sd. A nominal is a code on each
        level of its hierarchy, so squared distance is path length; a flat nominal is a star. A
        missing number lies at the mean, two standard deviations off the axis; a missing nominal
        is one more leaf at the root.

        The scale is read off the data, which no claim of differential privacy survives.

        Args:
            columns: which columns, in this order.
            scales: one per column, of the table that these rows are a part of; by default they
                are the whole table.
        """
        if scales is None:
            scales = [self.scale(name, self.raw(name)) for name in columns]
        return place_records(map(self.raw, columns), scales)

    def scale(self, name: str, raw: Floats) -> ColumnScale:
        """Compute the scale of a column from its values in all records, as `raw` gives them."""
        column = self.schema[name]
        if column.kind is Kind.NOMINAL:
            return _scale_codes(_codes(raw), column, leaf_edges(self, name, missing=True))
        values = transform(raw, column)
        present = values[~np.isnan(values)]
        if not present.size:
            return ColumnScale(column)
        spread = float(present.std()) or 1.0
        return ColumnScale(column, float(present.mean()), spread, present.size < values.size)

    def unit_matrix(self, columns: Sequence[str]) -> Floats:
        """Place each record in the unit box, one axis per column, by public quantities alone.

        Numbers and dates: (x - low) / (high - low) by the policy's bounds. Ordinals and
        nominals: the place in the declared order over their number, a missing cell last. A
        missing number lies at the upper bound. A row depends on its own record only.
        """
        return np.column_stack([self._unit_axis(self.schema[name]) for name in columns])

    def _unit_axis(self, column: Column) -> Floats:
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


def leaf_edges(table: Table, name: str, *, missing: bool = False) -> Ints:
    """Edges between each category of a nominal column and the root, padded with -1.

    A column without a hierarchy is a star: one edge a category. See `Hierarchy.edges`.
    """
    hierarchy = table.schema[name].hierarchy
    if hierarchy:
        return hierarchy.edges(missing=missing)
    return np.arange(len(table.categories(name)) + missing, dtype=np.int64)[:, None]


def place_records(raws: Iterable[Floats], scales: Sequence[ColumnScale]) -> MixedRecords:
    """Place records, given the values of each column and its scale; see `Table.records`."""
    numbers: list[Floats] = []
    codes: list[Ints] = []
    weights: list[float] = []
    rows = 0
    for raw, scale in zip(raws, scales, strict=True):
        rows = len(raw)
        if scale.levels is not None:
            codes.append(scale.levels[_codes(raw)])
            weights += [scale.weight] * scale.levels.shape[1]
            continue
        values = transform(raw, scale.column)
        gone = np.isnan(values)
        numbers.append(np.where(gone, 0.0, (values - scale.centre) / scale.spread)[:, None])
        if scale.gone:
            numbers.append(np.where(gone, MISSING_DISTANCE, 0.0)[:, None])
    if not weights and not numbers:  # nothing tells the records apart
        numbers.append(np.zeros((rows, 1)))
    return MixedRecords(
        np.hstack([np.zeros((rows, 0)), *numbers]),
        np.hstack([np.zeros((rows, 0), np.int64), *codes]),
        np.array(weights),
    )


def _codes(raw: Floats) -> Ints:
    """Return the positions of a nominal's categories, -1 where missing."""
    return np.where(np.isnan(raw), -1, raw).astype(np.int64)


def _scale_codes(codes: Ints, column: Column, edges: Ints) -> ColumnScale:
    """Number a nominal's ancestors, level by level, and weigh them to a variance of 1.

    There is one level for each on which records differ, from the highest; codes from 1, and 0 for
    a leaf that ends above. The last row of `edges` is a missing cell's.
    """
    counts = np.bincount(codes % len(edges), minlength=len(edges))
    levels, spread = [], 0.0
    for level in top_down(edges).T:
        numbered = np.unique(np.append(-1, level), return_inverse=True)[1][1:]
        share = np.bincount(numbered, counts)[1:] / codes.size
        share = share[share > 0]
        spread += float((share * (1.0 - share)).sum())
        if np.unique(numbered[counts > 0]).size > 1:
            levels.append(numbered)
    table = np.column_stack([np.zeros((len(edges), 0), np.int64), *levels])
    return ColumnScale(column, levels=table, weight=1.0 / spread if levels else 1.0)


def transform(values: Floats, column: Column) -> Floats:
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

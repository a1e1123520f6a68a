"""Encode cells as numbers for cutting, and confidential values as codes.

Facts about the data, such as the largest number and the values that occur, can be passed in, so a
block is encoded as the whole table would be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.core import Distance, Kind, LDiversity, TCloseness
from shoal.core._arrays import Ints
from shoal.io.table import Table, leaf_edges
from shoal.partition import hierarchy_order


def encode(
    table: Table, columns: Sequence[str]
) -> tuple[NDArray[np.float64], dict[int, Ints] | None]:
    """Encode columns as numbers for cutting, with the allowed borders of their hierarchies."""
    encodings = [encoding_of(table, name) for name in columns]
    borders = {number: border for number, (_, border) in enumerate(encodings) if border is not None}
    return np.column_stack([place for place, _ in encodings]), borders or None


def encoding_of(table: Table, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Encode a column for cutting, missing beyond the largest; also return its borders."""
    raw = table.raw(name)
    largest = float(np.nanmax(raw, initial=0.0))
    encoded = encoding(table, name, largest=largest, gone=bool(np.isnan(raw).any()))
    return encoded.places(raw), encoded.borders


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the cells of a column are encoded for cutting.

    Attributes:
        last: the number of missing cells, beyond all others.
        order: the number of each category; None for numbers and dates, which keep theirs.
        borders: where a hierarchy may be cut.
    """

    last: float
    order: Ints | None = None
    borders: Ints | None = None

    def places(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Encode the cells of a column, given as `Table.raw`."""
        gone = np.isnan(raw)
        if self.order is None:
            return np.where(gone, self.last, raw)
        return np.append(self.order, self.last)[np.where(gone, -1, raw).astype(np.int64)]


def encoding(table: Table, name: str, *, largest: float, gone: bool) -> Encoding:
    """Make the encoding of a column.

    `table` gives the column's categories; its rows are not used. `largest` is the largest number in
    the whole table, or 0; `gone` says whether the whole table lacks cells.
    """
    column = table.schema[name]
    if column.kind not in {Kind.ORDINAL, Kind.NOMINAL}:
        return Encoding(float(np.nextafter(max(largest, 0.0), np.inf)))
    count = len(table.categories(name))
    if column.hierarchy is None or count < 2:
        return Encoding(float(count), np.arange(count))
    order, heights = hierarchy_order(leaf_edges(table, name))
    if gone:
        # The missing cell hangs from the root, as one more leaf.
        heights = np.append(heights, heights.max())
    return Encoding(float(count), np.argsort(order), heights)


@dataclass(frozen=True, eq=False)
class Values:
    """The confidential values of a table, numbered as `check_table.value_codes` does.

    Attributes:
        present: for each column, the numbers that occur; None if it has categories.
        widths: for each column, how many values it has, missing aside.
        combinations: of several columns, which combinations occur, as one number each.
        width: number of codes.
    """

    present: tuple[NDArray[np.float64] | None, ...]
    widths: tuple[int, ...]
    combinations: Ints | None
    width: int

    @classmethod
    def of(cls, raws: Sequence[NDArray[np.float64]], categories: Sequence[int | None]) -> "Values":
        """Number the combinations of values of some columns.

        The columns come as `Table.raw` gives them; each combination once is enough. `categories`
        is how many each column has, None for numbers.
        """
        present = tuple(
            np.unique(raw[~np.isnan(raw)]) if count is None else None
            for raw, count in zip(raws, categories, strict=True)
        )
        widths = tuple(
            len(values) if values is not None else int(count or 0)
            for values, count in zip(present, categories, strict=True)
        )
        if len(raws) == 1:
            return cls(present, widths, None, widths[0] + int(np.isnan(raws[0]).any()))
        bare = cls(present, widths, None, 0)
        combinations = np.unique(bare._keys(raws))
        return cls(present, widths, combinations, max(len(combinations), 1))

    def codes(self, raws: Sequence[NDArray[np.float64]]) -> Ints:
        """Number the values of some rows; missing is last in a single column."""
        keys = self._keys(raws)
        if self.combinations is None:
            return keys
        return np.searchsorted(self.combinations, keys).astype(np.int64)

    def _keys(self, raws: Sequence[NDArray[np.float64]]) -> Ints:
        keys = np.zeros(len(raws[0]), dtype=np.int64)
        for raw, present, width in zip(raws, self.present, self.widths, strict=True):
            gone = np.isnan(raw)
            code = raw if present is None else np.searchsorted(present, raw)
            keys = keys * (width + 1) + np.where(gone, width, code).astype(np.int64)
        return keys


def levels_of(table: Table, columns: Sequence[str]) -> list[int | None]:
    """Return the number of categories of each column, None for numbers and dates."""
    coded = {Kind.ORDINAL, Kind.NOMINAL}
    return [
        len(table.categories(name)) if table.schema[name].kind in coded else None
        for name in columns
    ]


def way(table: Table, guarantee: LDiversity | TCloseness, width: int) -> Ints | None:
    """Return the edges of a hierarchical distance; None for other distances."""
    if not isinstance(guarantee, TCloseness) or guarantee.distance is not Distance.HIERARCHICAL:
        return None
    name = guarantee.columns[0]
    return leaf_edges(table, name, missing=width > len(table.categories(name)))


def representatives(table: Table, columns: Sequence[str]) -> Ints:
    """Select records that contain every cell on which the cover of all depends.

    Those are the least and the largest number, each category, and a missing cell.
    """
    chosen: list[int] = []
    for name in columns:
        raw = table.raw(name)
        present = np.flatnonzero(~np.isnan(raw))
        if present.size < raw.size:
            chosen.append(int(np.flatnonzero(np.isnan(raw))[0]))
        if table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
            chosen += present[np.unique(raw[present], return_index=True)[1]].tolist()
        elif present.size:
            x = raw[present]
            chosen += [int(present[x.argmin()]), int(present[x.argmax()])]
    return np.unique(np.array(chosen, np.int64))

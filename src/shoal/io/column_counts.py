"""Value counts of the columns of a table, computed once and shared."""

from collections.abc import Callable
from typing import TypeVar

import polars as pl

from shoal.core._arrays import Floats, Ints
from shoal.core.distinct import value_counts

T = TypeVar("T")
ROWS = "\0rows"
"""The column that says how often a cell occurs."""
_FEW, _FIRST = 8, 1000
"""So many texts are counted one by one; so many rows are searched for them."""


class ColumnCounts:
    """Value counts of a table's columns, each computed when it is first needed.

    Attributes:
        frame: the table.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._numbers: dict[str, tuple[Floats, Ints]] = {}
        self._cells: dict[str, pl.DataFrame] = {}

    def numbers(self, name: str) -> tuple[Floats, Ints]:
        """Return the sorted distinct numbers of a column, and how often each occurs."""

        def count(series: pl.Series) -> tuple[Floats, Ints]:
            return value_counts(series.drop_nulls().cast(pl.Float64).to_numpy())

        return self._once(self._numbers, name, count)

    def cells(self, name: str) -> pl.DataFrame:
        """Return the distinct cells of a column, missing included, with their counts in `ROWS`."""
        return self._once(self._cells, name, _cell_counts)

    def _once(self, known: dict[str, T], name: str, count: Callable[[pl.Series], T]) -> T:
        if name not in known:
            known[name] = count(self.frame[name])
        return known[name]


def _cell_counts(series: pl.Series) -> pl.DataFrame:
    """Count cells. With few distinct texts, comparing is quicker than hashing every cell."""
    first = series.head(_FIRST if series.dtype == pl.String else 0)
    texts = first.drop_nulls().unique()
    if 0 < texts.len() <= _FEW:
        counts = [(series == text).sum() for text in texts] + [series.null_count()]
        if sum(counts) == series.len():
            counted = pl.DataFrame(
                [texts.extend_constant(None, 1), pl.Series(ROWS, counts, pl.UInt32)]
            )
            return counted.filter(counted[ROWS] > 0)
    return series.value_counts(name=ROWS)

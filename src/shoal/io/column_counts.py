"""How often the values of each column of a table occur, counted once for all who ask."""

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
    """The distinct values of the columns of a table; each column is counted when it is needed.

    Attributes:
        frame: the table.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._numbers: dict[str, tuple[Floats, Ints]] = {}
        self._cells: dict[str, pl.DataFrame] = {}

    def numbers(self, name: str) -> tuple[Floats, Ints]:
        """The present numbers of a column in order, each once, and how often each occurs."""

        def count(series: pl.Series) -> tuple[Floats, Ints]:
            return value_counts(series.drop_nulls().cast(pl.Float64).to_numpy())

        return self._once(self._numbers, name, count)

    def cells(self, name: str) -> pl.DataFrame:
        """The cells of a column, each once, missing ones too, with `ROWS` of each."""
        return self._once(self._cells, name, _cell_counts)

    def _once(self, known: dict[str, T], name: str, count: Callable[[pl.Series], T]) -> T:
        if name not in known:
            known[name] = count(self.frame[name])
        return known[name]


def _cell_counts(series: pl.Series) -> pl.DataFrame:
    """Few texts are compared with every cell, which is quicker than a hash of each."""
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

"""Value counts of the columns of a table, computed once and shared."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import polars as pl

from shoal.core._arrays import Floats, Ints

T = TypeVar("T")
ROWS = "\0rows"
"""The column that says how often a cell occurs."""


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
            values = series.drop_nulls().cast(pl.Float64).to_numpy()
            return np.unique(values + 0.0, return_counts=True)

        return self._once(self._numbers, name, count)

    def cells(self, name: str) -> pl.DataFrame:
        """Return the distinct cells of a column, missing included, with their counts in `ROWS`."""
        return self._once(self._cells, name, lambda cells: cells.value_counts(name=ROWS))

    def _once(self, known: dict[str, T], name: str, count: Callable[[pl.Series], T]) -> T:
        if name not in known:
            known[name] = count(self.frame[name])
        return known[name]

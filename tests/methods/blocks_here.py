"""Rows in blocks in one process: a fake for methods that run beyond one machine."""

from functools import reduce
from itertools import pairwise

import numpy as np
import polars as pl

from shoal.io.table import Table
from shoal.methods.distributed_rows import ReplacedColumns

RID = "\0rid"


class RowsHere:
    """A table in canonical order, cut into blocks that are visited in any order.

    Attributes:
        cells: records of each cell of the last `within`.
    """

    def __init__(self, table: Table, *, blocks: int, block_rows: int, seed: int = 0) -> None:
        self.table, self.block_rows = table, block_rows
        ends = np.linspace(0, len(table), blocks + 1).astype(int)
        parts = [np.arange(a, b) for a, b in pairwise(ends) if b > a]
        order = np.random.default_rng(seed).permutation(len(parts))
        self.parts = [parts[place] for place in order]
        self.cells: dict[int, int] = {}
        self.passes = 0

    def __len__(self) -> int:
        return len(self.table)

    @property
    def template(self) -> Table:
        return self.table.take(np.arange(1))

    def fold(self, ask, add):
        self.passes += 1
        return reduce(add, (ask(self.table.take(part), part) for part in self.parts))

    def bring(self, columns):
        return self._some(self.table, list(columns))

    def within(self, columns, route, change, *, needs=()):
        cell = np.empty(len(self), np.int64)
        for part in self.parts:
            cell[part] = route(self.table.take(part), part)
        frames = []
        for number in np.unique(cell):
            inside = np.flatnonzero(cell == number)
            self.cells[int(number)] = inside.size
            table = self.table.take(inside)
            names = list(needs or columns)
            done = change(int(number), self._some(table, names))
            frames.append(done.frame.select(columns).with_columns(pl.Series(RID, inside)))
        return ReplacedColumns(tuple(columns), pl.concat(frames).sort(RID).drop(RID))

    @staticmethod
    def _some(table: Table, names: list[str]) -> Table:
        schema = type(table.schema)(tuple(c for c in table.schema.columns if c.name in names))
        return Table(table.frame.select(names), schema, table.dtypes)

"""Blocks in memory: a twin of `shoal.engine.spark.blocks.Blocks`, to try what is built on them.

It does at once what Spark does later, on frames that went through bytes as Spark's do. Closures go
through cloudpickle, so what cannot be shipped to a worker fails here too.
"""

from functools import reduce
from itertools import chain, groupby, pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
from pyspark import cloudpickle

from shoal.engine.spark.blocks import SEQ, BlockStore, Kept, pack, unpack
from shoal.engine.spark.reading import Typed
from shoal.engine.spark.rows import Layout


class MemoryStore(BlockStore):
    def __init__(self, block_rows):
        self.block_rows = block_rows

    @property
    def tasks(self):
        return 3

    def send(self, value):
        return SimpleNamespace(value=cloudpickle.loads(cloudpickle.dumps(value)))

    def frame(self, table):
        return table


class MemoryBlocks(Kept):
    """Numbered frames in a list."""

    def __init__(self, held, rng):
        self.held, self.rng = held, rng
        self.sizes = {}
        self.notes = []

    def _shipped(self, change):
        return cloudpickle.loads(cloudpickle.dumps(change))

    def map(self, *changes):
        shipped = [self._shipped(change) for change in changes]
        made = [
            (one, unpack(pack(some)))
            for number, frame in self.held
            for change in shipped
            for one, some in ([(number, frame)] if number < 0 else change(number, frame))
        ]
        return MemoryBlocks(made, self.rng)

    def union(self, *others):
        return MemoryBlocks(list(chain(self.held, *(other.held for other in others))), self.rng)

    def gather(self, tasks, merge):
        assert tasks > 0
        merge = self._shipped(merge)
        mixed = [self.held[place] for place in self.rng.permutation(len(self.held))]
        mixed.sort(key=lambda pair: pair[0])
        made = [
            block
            for number, frames in groupby(mixed, key=lambda pair: pair[0])
            for block in merge(number, [frame for _, frame in frames])
        ]
        return MemoryBlocks(made, self.rng)

    def keep(self):
        kept = MemoryBlocks([pair for pair in self.held if pair[0] >= 0], self.rng)
        kept.sizes = {number: frame.height for number, frame in sorted(kept.held, key=_number)}
        assert len(kept.sizes) == len(kept.held)
        kept.notes = sorted((pair for pair in self.held if pair[0] < 0), key=_number)
        return kept

    def fold(self, ask, add, *, tasks):
        assert tasks > 0
        ask, add = self._shipped(ask), self._shipped(add)
        return reduce(add, (ask(*block) for block in self.fetch() if block[0] >= 0))

    def drop(self):
        pass

    def fetch(self, cells=0):
        assert cells >= 0
        return iter([self.held[place] for place in self.rng.permutation(len(self.held))])

    def frames(self):
        return [frame for _, frame in sorted(self.held, key=_number)]


def _number(pair):
    return pair[0]


def typed(table, block_rows, rng, cuts):
    """A table's rows in blocks, cut anywhere: what reading on Spark gives."""
    frame = table.frame.with_columns(pl.Series(SEQ, np.arange(len(table)) * 3))
    ends = sorted({0, len(table), *cuts})
    held = [(begin * 3, frame[begin:end]) for begin, end in pairwise(ends)]
    blocks = MemoryBlocks(held, rng).keep()
    layout = Layout(table.schema, table.dtypes, dict(table.frame.schema))
    return Typed(MemoryStore(block_rows), blocks, layout, {})

"""Compile every kernel of this package ahead of the first run."""

import numpy as np

from shoal.core import distinct
from shoal.metrics import count_queries
from shoal.metrics.attacks.linkability import linkability
from shoal.metrics.attacks.singling_out import singling_out
from shoal.metrics.boxes import WeightedBoxes


def warmup() -> None:
    """Compile all kernels and leave them in the cache for later processes."""
    rng = np.random.default_rng(0)
    words = np.arange(distinct.LONG, dtype=np.uint64)
    distinct.distinct(words, most=9)
    distinct.occurring_once(words)
    places = np.column_stack([np.arange(200.0), np.arange(200) % 3])
    kinds = (False, True)
    table = WeightedBoxes.points(places, discrete=kinds)
    queries = count_queries.half_ranges([0, 0], [200, 3], kinds, queries=10, rng=rng)
    count_queries.answers(count_queries.index(table), queries)
    wide = WeightedBoxes(table.lower, table.upper + np.array([1.5, 0.0]), table.weights, kinds)
    count_queries.answers(count_queries.index(wide), queries)
    singling_out(table.lower, table.upper, places, discrete=kinds, attributes=2, rng=rng, attacks=5)
    linkability(
        table.lower, table.upper, places, discrete=kinds, first=[0], second=[1], rng=rng, attacks=5
    )

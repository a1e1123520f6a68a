"""Compile all kernels ahead of the first run, by running what calls them on invented answers.

Nothing is read, and no noise is drawn. The kernels of groupings have `shoal.partition.warmup`.
"""

from itertools import combinations

import numpy as np

from shoal.metrics import count_queries
from shoal.metrics.attacks.linkability import linkability
from shoal.metrics.attacks.record_linkage import record_linkage
from shoal.metrics.attacks.singling_out import singling_out
from shoal.metrics.boxes import WeightedBoxes
from shoal.synthesis.adaptive_tree import Descent
from shoal.synthesis.copula import kendall
from shoal.synthesis.maxent.fit import DENSE, Target, fit_distribution
from shoal.synthesis.maxent.generate import exchange_rows


def compile_metrics() -> None:
    """Compile the kernels of metrics."""
    rng = np.random.default_rng(0)
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
    record_linkage(places, places, rng=rng, discrete=kinds)


def compile_synthesis() -> None:
    """Compile the kernels of drawn rows."""
    codes = np.arange(64) % 3
    kendall(codes, codes[::-1])
    root = np.zeros(1, dtype=np.int64)
    Descent([codes], codes[None].astype(np.int32)).descend(root, root + 1, root, 2)
    # One cell more than the dense fit allows, so particles are fitted.
    sizes = [2] * DENSE.bit_length()
    even = np.full(2, 0.5)
    targets = [Target(pair, np.full(4, 0.25), 100.0) for pair in combinations(range(3), 2)]
    targets.append(Target((3,), np.array([0.6, 0.4]), 100.0))
    rng = np.random.default_rng(0)
    fitted = fit_distribution(sizes, [even] * len(sizes), targets, tau=1.0, particles=400, rng=rng)
    exchange_rows(fitted, sizes, np.arange(400), rng)

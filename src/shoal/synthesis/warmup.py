"""Compile all kernels of this package ahead of the first run."""

from itertools import combinations

import numpy as np

from shoal.synthesis.adaptive_tree import Descent
from shoal.synthesis.copula import kendall
from shoal.synthesis.maxent.fit import DENSE, Target, fit_distribution
from shoal.synthesis.maxent.generate import exchange_rows


def warmup() -> None:
    """Compile all kernels and leave them in the cache for later processes.

    What calls them runs once on invented answers: nothing is read, and no noise is drawn.
    """
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

"""Rows from a fitted distribution: post-processing."""

from collections.abc import Sequence

import numpy as np

from shoal.core._arrays import Ints
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.maxent.fit import Fitted
from shoal.synthesis.maxent.one_way import OneWayMarginal


def generate_rows(
    fitted: Fitted, one_way: Sequence[OneWayMarginal], n: int, rng: np.random.Generator
) -> tuple[Ints, ...]:
    """N rows of groups by systematic sampling, then codes inside groups, in random order."""
    cells = np.repeat(np.arange(len(fitted.weights)), systematic(fitted.weights, n, rng))
    cells = cells[rng.permutation(n)]
    rows = []
    for j, marginal in enumerate(one_way):
        groups = fitted.groups[cells, j]
        # Rows are in random order already, and a stable sort keeps it inside a group; but
        # all columns would then share that order, so each needs one of its own.
        order = rng.permutation(n)
        order = order[np.argsort(groups[order], kind="stable")]
        totals = np.bincount(groups, minlength=marginal.size)
        parts = [marginal.fill(int(g), int(totals[g]), rng) for g in np.flatnonzero(totals)]
        column = np.empty(n, dtype=np.int64)
        column[order] = np.concatenate(parts)
        rows.append(column)
    return tuple(rows)

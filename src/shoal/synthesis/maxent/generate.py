"""Generate rows from a fitted distribution: post-processing.

Rows drawn at random follow a distribution's two-way marginals up to the noise of sampling, which
exceeds that of privacy where epsilon is large: of 27,000 rows and 200 cells a total variation of
0.03. So rows are drawn systematically, and then exchanged: each is compared with rows of the same
distribution, ten in all, and gives way to one wherever the counts of every two columns together
come nearer to what the distribution says of them, in squared distance. On two generated tables of
ten columns that improved the K-marginal score by 2 points, and three-way marginals, too; more
offers gained nothing.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from shoal.core._arrays import Ints
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.kernels import exchange
from shoal.synthesis.maxent.fit import Fitted
from shoal.synthesis.maxent.one_way import OneWayMarginal

_OFFERS, _MOST_OFFERS = 10, 10**9
"""Offers for each row, and in all times pairs."""


def generate_rows(
    fitted: Fitted, one_way: Sequence[OneWayMarginal], n: int, rng: np.random.Generator
) -> tuple[Ints, ...]:
    """Draw n rows of groups by systematic sampling, then codes within groups, in random order."""
    cells = np.repeat(np.arange(len(fitted.weights)), systematic(fitted.weights, n, rng))
    cells = cells[rng.permutation(n)]
    if len(one_way) > 1:
        exchange_rows(fitted, [marginal.size for marginal in one_way], cells, rng)
    rows = []
    for j, marginal in enumerate(one_way):
        groups = fitted.groups[cells, j]
        # Rows are in random order already, and a stable sort keeps it within a group. Each column
        # needs a separate order, or columns would be dependent within groups.
        order = rng.permutation(n)
        order = order[np.argsort(groups[order], kind="stable")]
        totals = np.bincount(groups, minlength=marginal.size)
        parts = [marginal.fill(int(g), int(totals[g]), rng) for g in np.flatnonzero(totals)]
        column = np.empty(n, dtype=np.int64)
        column[order] = np.concatenate(parts)
        rows.append(column)
    return tuple(rows)


def exchange_rows(
    fitted: Fitted, sizes: Sequence[int], chosen: Ints, rng: np.random.Generator
) -> None:
    """Exchange chosen rows for others until two-way marginals are close to the fit's."""
    pairs = list(combinations(range(len(sizes)), 2))
    surplus = []
    for a, b in pairs:
        cell = fitted.groups[:, a].astype(np.int64) * sizes[b] + fitted.groups[:, b]
        wanted = chosen.size * np.bincount(cell, fitted.weights, minlength=sizes[a] * sizes[b])
        surplus.append(np.bincount(cell[chosen], minlength=wanted.size) - wanted)
    starts = np.cumsum([0, *(part.size for part in surplus[:-1])])
    turns = min(_OFFERS * chosen.size, _MOST_OFFERS // len(pairs))
    ends = np.cumsum(fitted.weights)
    offered = np.searchsorted(ends, rng.random(turns) * ends[-1], side="right")
    exchange(
        fitted.groups,
        chosen,
        np.arange(turns) % chosen.size,
        np.minimum(offered, len(ends) - 1),
        np.array(sizes),
        starts,
        np.concatenate(surplus),
    )

"""The discretisation error of two-way marginals over groups of codes, measured with noise.

`maxent` counts two columns together over groups of their codes. What happens inside groups is
taken to be independent. Where columns nearly determine each other that loses most of what there
is to know, and nothing public says so.

For a pair of columns let c(x, y) be the records in a fine cell, C(g, h) those in the groups' cell
that has it, and u(x), v(y) the shares of x and y within their groups, as published one-way
marginals have them. The groups say C u v of a cell. The loss is

    K = sum over pairs and cells of |c - C u v|,      and K / (2 n P) the mean total variation.

Theorem (ours, unreviewed): K, floored, moves by at most 4 P if a record changes, and by at most 2 P
if one comes or goes. Proof. For a pair, a record that comes or goes moves c by 1 in one cell, and C
by 1 in one cell. Since u and v sum to 1 within groups, C u v moves by 1 in all: a pair's sum moves
by at most 2. Shares are whole multiples of 2^-10, so 2^20 K is whole and moves by at most
2 P 2^20, which floor(K) follows. A change is a removal and an addition. QED

A table without any loss still has K > 0, because people are few. Its expectation, if cells were
Poisson numbers around the product of the one-way marginals, is taken off: E|X - a| for such a
number with mean a is 2 exp(-a) a^(k+1) / k! with k = floor(a) (De Moivre). Where columns depend on
each other fewer cells are filled and that is too much: the answer errs towards "little is lost".
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import scipy

from shoal.core import Neighbours, Noise, Price, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.consistent_counts import apportion
from shoal.mechanism.noisy_answers import noisy_answers
from shoal.mechanism.records import Columns
from shoal.synthesis.domain import Measurement, Sort
from shoal.synthesis.maxent.measure import exact_marginals
from shoal.synthesis.maxent.one_way import OneWayMarginal

FINE = 64
"""About so many fine cells per column: a group's bins are joined where there are more."""
_UNIT = 1 << 10


def measure_coarseness(
    columns: Columns, one_way: Sequence[OneWayMarginal], *, n: int, price: Price, noise: Noise
) -> tuple[float, Measurement, PrivacyLoss]:
    """Measure the mean discretisation error of two-way marginals, in total variation.

    n is the number of records, or what is known of it. The noise of the mean has scale
    2 / (n epsilon), or half of that for a record that comes or goes.
    """
    pairs = comb(len(one_way), 2)
    fine = [_finer(marginal) for marginal in one_way]
    believed = [
        np.bincount(labels, marginal.projected + 1e-9).astype(np.float64)
        for labels, marginal in zip(fine, one_way, strict=True)
    ]
    nests = [_nests(*each) for each in zip(fine, one_way, believed, strict=True)]
    finer = [
        replace(marginal, members=labels, summed=masses)
        for marginal, labels, masses in zip(one_way, fine, believed, strict=True)
    ]
    sets = list(combinations(range(len(one_way)), 2))
    tables = exact_marginals(columns, tuple(enumerate(finer)), sets)
    lost, expected = 0, 0.0
    for (a, b), table in zip(sets, tables, strict=True):
        lost += _discretisation_loss(table, nests[a], nests[b])
        means = np.outer(believed[a] / believed[a].sum(), believed[b] / believed[b].sum()) * n
        expected += float(mean_deviation(means).sum())
    answer, privacy_loss = noisy_answers(
        np.array([lost // _UNIT**2]),
        reach={Neighbours.CHANGE_ONE: 4 * pairs, Neighbours.ADD_REMOVE: 2 * pairs},
        squared={
            Neighbours.CHANGE_ONE: 16 * pairs**2,
            Neighbours.ADD_REMOVE: 4 * pairs**2,
        },
        price=price,
        target="dependence lost by grouping values",
        noise=noise,
    )
    measurement = Measurement((), (), answer, privacy_loss.scale, Sort.LOSS, privacy_loss.mechanism)
    return (float(answer[0]) - expected) / (2 * n * pairs), measurement, privacy_loss


def mean_deviation(means: Floats) -> Floats:
    """Return E|X - a| of Poisson variables X with these means a.

    >>> mean_deviation(np.array([1.0])).round(4)
    array([0.7358])
    """
    means = np.maximum(means, 1e-300)
    floors = np.floor(means)
    logs = -means + (floors + 1) * np.log(means) - scipy.special.gammaln(floors + 1)
    deviation: Floats = 2 * np.exp(logs)
    return deviation


def _finer(marginal: OneWayMarginal) -> Ints:
    """Return the fine cell of each bin: itself, or a run within its group if bins are many."""
    labels = np.empty(marginal.members.size, dtype=np.int64)
    used = 0
    for group in range(marginal.size):
        bins = np.flatnonzero(marginal.members == group)
        cells = min(bins.size, max(FINE // marginal.size, 1))
        labels[bins] = used + np.arange(bins.size) * cells // max(bins.size, 1)
        used += cells
    return labels


def _nests(fine: Ints, marginal: OneWayMarginal, believed: Floats) -> tuple[Ints, Ints]:
    """Return the group of each fine cell, and its share of that group in whole units."""
    groups = np.zeros(believed.size, dtype=np.int64)
    groups[fine] = marginal.members
    shares = np.zeros(believed.size, dtype=np.int64)
    for group in range(marginal.size):
        cells = np.flatnonzero(groups == group)
        if cells.size:
            shares[cells] = apportion(believed[cells], _UNIT)
    return groups, shares


def _discretisation_loss(table: Ints, first: tuple[Ints, Ints], second: tuple[Ints, Ints]) -> int:
    """Compute the discretisation error of one pair, in units of 2^-20."""
    (rows, down), (across, right) = first, second
    coarse = np.zeros((int(rows.max()) + 1, int(across.max()) + 1), dtype=np.int64)
    np.add.at(coarse, (rows[:, None], across[None, :]), table)
    scaled = coarse[rows][:, across] * (down[:, None] * right[None, :])
    return int(np.abs(table * _UNIT**2 - scaled).sum())

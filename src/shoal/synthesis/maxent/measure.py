"""Measure noisy marginals: counts of records by the codes or groups of some columns.

A changed record leaves one cell of a marginal and enters another, so its counts move by at most 2
in all: noise of scale 2 / e costs e (`noisy_table`). An added or removed one moves them by 1, and
noise of half that scale costs as much. A column with many ordered codes is counted over the leaves
of a private tree, which costs what `adaptive_tree` proves.

`maxent` counts two columns together over groups of their codes. Within groups, columns are taken to
be independent. If columns nearly determine each other, that loses most of the information, and
nothing public shows it.

For a pair of columns let c(x, y) be the records in a fine cell, C(g, h) those in the groups' cell
that has it, and u(x), v(y) the shares of x and y within their groups, as published one-way
marginals have them. The groups say C u v of a cell. The loss is

    K = sum over pairs and cells of |c - C u v|,      and K / (2 n P) the mean total variation.

Theorem (ours, unreviewed): K, floored, moves by at most 4 P if a record changes, and by at most 2 P
if one comes or goes. Proof. For a pair, an added or removed record moves c by 1 in one cell, and C
by 1 in one cell. Since u and v sum to 1 within groups, C u v moves by 1 in all: a pair's sum moves
by at most 2. Shares are whole multiples of 2^-10, so 2^20 K is whole and moves by at most
2 P 2^20, which floor(K) follows. A change is a removal and an addition. QED

A table without any loss still has K > 0, because people are few. Its expectation, if cells were
Poisson numbers around the product of the one-way marginals, is taken off: E|X - a| for such a
number with mean a is 2 exp(-a) a^(k+1) / k! with k = floor(a) (De Moivre). Where columns depend on
each other fewer cells are filled and that is too much: the answer errs towards "little is lost".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, prod

import numpy as np
import scipy

from shoal.core import Neighbours, Noise, Price, PrivacyLoss, Progress
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.consistent_counts import apportion
from shoal.mechanism.noisy_answers import noisy_answers, noisy_table, table_counts
from shoal.mechanism.records import Columns
from shoal.synthesis.adaptive_tree import NoisyHistogram, tree_histogram
from shoal.synthesis.domain import Domain, Measurement, Sort
from shoal.synthesis.maxent.one_way import (
    JoinedCodes,
    OneWayMarginal,
    is_line,
)
from shoal.synthesis.maxent.pair_covers import Cover


def measure_one_way(
    columns: Columns,
    member: int,
    domain: Domain,
    *,
    price: Price,
    noise: Noise,
    atoms: Ints | None = None,
) -> NoisyHistogram:
    """Measure one column with noise, by category or by tree leaf, within its atoms."""
    if is_line(domain):
        breaks = () if atoms is None else tuple((np.flatnonzero(np.diff(atoms)) + 1).tolist())
        return tree_histogram(columns, member, domain, price=price, noise=noise, breaks=breaks)
    exact = columns.total(partial(_counts, member=member, size=domain.size))
    name = f"{domain.name}: counts of categories"
    counts, privacy_loss = noisy_table(exact, target=name, price=price, noise=noise)
    edges = np.arange(domain.size + 1)
    return NoisyHistogram(edges, counts, (privacy_loss,))


def measure_cover(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    cover: Cover,
    *,
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[list[Measurement], list[PrivacyLoss]]:
    """Measure the marginals of a cover over groups; each takes its share of the budget."""
    measurements: list[Measurement] = []
    privacy_losses: list[PrivacyLoss] = []
    progress("measuring marginals", 0, len(cover.blocks))
    counts = exact_marginals(columns, tuple(enumerate(one_way)), cover.blocks)
    parts = sum(cover.weights)
    for members, part, exact in zip(cover.blocks, cover.weights, counts, strict=True):
        progress("measuring marginals", len(measurements), len(cover.blocks))
        name = f"marginal of {' x '.join(domains[j].name for j in members)}"
        block_price = price * Fraction(part, parts)
        noisy, privacy_loss = noisy_table(exact, target=name, price=block_price, noise=noise)
        groups = tuple(one_way[j].groups for j in members)
        measurements.append(_make_measurement(members, groups, noisy, privacy_loss))
        privacy_losses.append(privacy_loss)
    return measurements, privacy_losses


@dataclass(frozen=True, eq=False)
class CandidateMarginal:
    """A candidate marginal for selection. Its exact counts never leave the mechanism."""

    columns: tuple[int, ...]
    axes: tuple[JoinedCodes, ...]
    exact: Ints


def measure_selected(
    selected: Sequence[CandidateMarginal], *, price: Price, noise: Noise, progress: Progress
) -> tuple[list[Measurement], list[PrivacyLoss]]:
    """Measure the selected marginals, each with an equal part of the budget."""
    measurements: list[Measurement] = []
    privacy_losses: list[PrivacyLoss] = []
    each = price / len(selected)
    for number, candidate in enumerate(selected, 1):
        progress("measuring selected marginals", number - 1, len(selected))
        name = f"selected {_WAYS[len(candidate.columns)]} marginal {number}"
        noisy, privacy_loss = noisy_table(candidate.exact, target=name, price=each, noise=noise)
        groups = tuple(axis.marginal.groups for axis in candidate.axes)
        measurements.append(_make_measurement(candidate.columns, groups, noisy, privacy_loss))
        privacy_losses.append(privacy_loss)
    return measurements, privacy_losses


_WAYS = {2: "two-way", 3: "three-way"}


def _make_measurement(
    columns: tuple[int, ...], groups: tuple[Ints, ...], noisy: Ints, paid: PrivacyLoss
) -> Measurement:
    return Measurement(columns, groups, noisy, paid.scale, mechanism=paid.mechanism)


def exact_marginals(
    columns: Columns, axes: Sequence[tuple[int, OneWayMarginal]], sets: Sequence[Sequence[int]]
) -> list[Ints]:
    """Count records in each cell of marginals over groups, in one pass; not for release.

    Axes are columns, by index, with their groups; a column may have several. Each set names the
    axes of a marginal by their index.
    """
    counts = columns.total(partial(_counts_of_groups, axes=axes, sets=sets))
    shapes = [tuple(axes[k][1].size for k in members) for members in sets]
    ends = np.cumsum([prod(shape) for shape in shapes])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(counts, ends), shapes, strict=True)]


def _counts_of_groups(
    columns: Sequence[Ints],
    axes: Sequence[tuple[int, OneWayMarginal]],
    sets: Sequence[Sequence[int]],
) -> Ints:
    grouped = [marginal.group_codes(columns[j]) for j, marginal in axes]
    return np.concatenate(
        [
            table_counts([grouped[k] for k in members], [axes[k][1].size for k in members]).ravel()
            for members in sets
        ]
    )


def _counts(columns: Sequence[Ints], member: int, size: int) -> Ints:
    return table_counts([columns[member]], [size])


FINE = 64
"""About so many fine cells per column: a group's bins are joined where there are more."""
_UNIT = 1 << 10


def measure_coarseness(
    columns: Columns, one_way: Sequence[OneWayMarginal], *, n: int, price: Price, noise: Noise
) -> tuple[float, Measurement, PrivacyLoss]:
    """Measure the mean discretisation error of two-way marginals, in total variation.

    n is the number of records, or what is known of it. The noise of the mean has scale
    2 / (n epsilon), or half of that for an added or removed record.
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

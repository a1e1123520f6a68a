"""Measure noisy marginals: counts of records by the codes or groups of some columns.

A changed record leaves one cell of a marginal and enters another, so its counts move by at most 2
in all: noise of scale 2 / e costs e (`noisy_table`). An added or removed one moves them by 1, and
noise of half that scale costs as much. A column with many ordered codes is counted over the leaves
of a private tree, which costs what `adaptive_tree` proves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import prod

import numpy as np
import scipy

from shoal.core import Noise, Price, PrivacyLoss, Progress
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.noisy_answers import noisy_table, table_counts
from shoal.mechanism.records import Columns
from shoal.synthesis.adaptive_tree import NoisyHistogram, tree_histogram
from shoal.synthesis.domain import Domain, Measurement
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


def mean_deviation(means: Floats) -> Floats:
    """Return E|X - a| of Poisson variables X with these means a.

    It is 2 exp(-a) a^(k+1) / k! with k = floor(a) (De Moivre).

    >>> mean_deviation(np.array([1.0])).round(4)
    array([0.7358])
    """
    means = np.maximum(means, 1e-300)
    floors = np.floor(means)
    logs = -means + (floors + 1) * np.log(means) - scipy.special.gammaln(floors + 1)
    deviation: Floats = 2 * np.exp(logs)
    return deviation

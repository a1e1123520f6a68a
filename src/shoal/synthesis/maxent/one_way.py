"""One-way marginals: posterior means of noisy counts, and binning of codes into groups.

Tables of several columns are counted over groups of about equal mass, so their cells are few and
full. Binning uses only noisy counts: it is post-processing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.core import GAUSSIAN, Kind
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.systematic_sampling import spread, systematic
from shoal.synthesis.adaptive_tree import NoisyHistogram
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import Target, precision_of
from shoal.synthesis.maxent.posterior import posterior_mean, smooth
from shoal.synthesis.maxent.structural_zeros import Component, GroupedZeros, allot_groups

LINE = 256
"""Ordered codes beyond which a column is counted over the leaves of a tree."""
Grouping = Callable[[Floats, int], Ints]
_MOST_CODES = 255
"""Groups that the rows of a fit can tell apart."""
_ALIKE = 16
"""Ordered codes beyond which neighbours are taken to be alike."""


@dataclass(frozen=True, eq=False)
class OneWayMarginal(NoisyHistogram):
    """A measured one-way marginal, and the groups of its codes.

    Attributes:
        projected: the estimates of the noisy counts of bins, non-negative and with sum n.
        members: group of each bin.
        summed: the estimate of each group's count.
        precision: n^2 over the variance of that, before tau.
        line: whether bins are runs of ordered codes.
    """

    projected: Floats
    members: Ints
    summed: Floats
    precision: float
    line: bool

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.summed.size

    @property
    def groups(self) -> Ints:
        """Group of each code; for ordered bins, the first code of each group and the end."""
        if not self.line:
            return self.members
        return np.append(self.edges[:-1][np.diff(self.members, prepend=-1) > 0], self.edges[-1])

    def bins(self, column: Ints) -> Ints:
        """Return the bin of each record."""
        if not self.line:
            return column
        return np.searchsorted(self.edges[1:-1], column, side="right").astype(np.int64)

    def group_codes(self, column: Ints) -> Ints:
        """Return the group of each record."""
        return self.members[self.bins(column)]

    @property
    def shares(self) -> Floats:
        """Estimated shares of the groups: positive, with sum 1."""
        masses = np.maximum(self.summed, 0.0) + 1e-6
        shares: Floats = masses / masses.sum()
        return shares

    def target(self, j: int, n: int) -> Target:
        """Return the noisy counts of the groups as a target of the fit."""
        return Target((j,), self.summed / n, self.precision)

    def prior(self, n: int) -> Floats:
        """Return the shares of the groups, none of them zero."""
        return self.target(0, n).prior(n)

    def fill(self, group: int, total: int, rng: np.random.Generator) -> Ints:
        """Draw the codes of some rows of a group, sorted."""
        return self._codes(np.flatnonzero(self.members == group), total, rng)

    def rows(self, total: int, rng: np.random.Generator) -> Ints:
        """Draw the codes of some rows of the column alone, in random order."""
        return rng.permutation(self._codes(np.arange(self.members.size), total, rng))

    def _codes(self, bins: Ints, total: int, rng: np.random.Generator) -> Ints:
        if self.line:
            edges = self.edges[bins[0] : bins[-1] + 2]
            return spread(edges, self.projected[bins], total, rng)
        return np.repeat(bins, systematic(self.projected[bins] + 1e-9, total, rng))


@dataclass(frozen=True, eq=False)
class JoinedCodes:
    """A column with merged groups, and the merged group of each original one."""

    marginal: OneWayMarginal
    codes: Ints


def join_groups(marginal: OneWayMarginal, domain: Domain, most: int) -> JoinedCodes:
    """Merge groups of a column to at most `most`, by their estimated counts."""
    codes = _grouping(domain)(marginal.summed, most)
    summed = np.bincount(codes, marginal.summed).astype(np.float64)
    fewer = replace(
        marginal,
        members=codes[marginal.members],
        summed=summed,
        precision=marginal.precision * summed.size / marginal.size,
    )
    return JoinedCodes(fewer, codes)


def split_groups(marginal: OneWayMarginal, domain: Domain, most: int) -> OneWayMarginal:
    """Split the groups of a column into at most about `most` finer ones."""
    members = np.arange(marginal.members.size)
    if members.size > most:
        grouping: Grouping = quantiles if marginal.line else _grouping(domain)
        members = _within(marginal.members, marginal.projected, most, grouping)
    summed = np.bincount(members, marginal.projected).astype(np.float64)
    if summed.size > _MOST_CODES:
        return marginal
    precision = marginal.precision * summed.size / marginal.size
    return replace(marginal, members=members, summed=summed, precision=precision)


def is_line(domain: Domain) -> bool:
    """Whether a column is counted over the leaves of a tree."""
    return has_order(domain) and domain.size > LINE


def estimate_marginal(
    found: NoisyHistogram, domain: Domain, *, n: int, most: int, atoms: Ints | None = None
) -> OneWayMarginal:
    """Estimate a column's true counts from noisy ones, and bin its codes.

    There are at most `most` groups, or more where each must lie within an atom. Missing cells are
    not adjacent to the largest values: if many cells are missing, by the noisy counts, they form a
    separate group.
    """
    if atoms is None and domain.gap and has_order(domain) and found.edges[-2] == domain.size - 1:
        many = max(n / (4 * most), 4 * float(found.variance) ** 0.5)
        if found.counts[-1] > many:
            atoms = np.append(np.zeros(domain.size - 1, dtype=np.int64), 1)
    return (_over_leaves if is_line(domain) else _by_category)(found, domain, n, most, atoms)


def _over_leaves(
    found: NoisyHistogram, _domain: Domain, n: int, most: int, atoms: Ints | None
) -> OneWayMarginal:
    """Estimate a number's counts over the leaves of its tree; groups are runs of leaves."""
    projected = found.project(n)
    members = quantiles(projected, most)
    if atoms is not None:
        atom_of = atoms[found.edges[:-1]]
        starts = (np.diff(members, prepend=0) > 0) | (np.diff(atom_of, prepend=atom_of[0]) != 0)
        members = np.cumsum(starts)
    # Estimates of empty leaves are zero, which is more accurate where a group has many of them.
    summed = np.bincount(members, projected).astype(np.float64)
    a_group = max(members.size / summed.size, 1.0)
    return OneWayMarginal(
        edges=found.edges,
        counts=found.counts,
        projected=_smooth(projected, found, members),
        members=members,
        summed=summed,
        precision=precision_of(n, found.variance) / (2 * a_group),
        line=True,
        privacy_losses=found.privacy_losses,
    )


def _by_category(
    found: NoisyHistogram, domain: Domain, n: int, most: int, atoms: Ints | None
) -> OneWayMarginal:
    """Estimate the count of every code of the public domain, whether or not it occurs."""
    projected = _estimate_counts(found, domain, n)
    members = _within(atoms, projected, most, _grouping(domain))
    summed = np.bincount(members, projected).astype(np.float64)
    return OneWayMarginal(
        edges=found.edges,
        counts=found.counts,
        projected=projected,
        members=members,
        summed=summed,
        precision=precision_of(n, found.variance) * summed.size / domain.size,
        line=False,
        privacy_losses=found.privacy_losses,
    )


def _estimate_counts(found: NoisyHistogram, domain: Domain, n: int) -> Floats:
    """Estimate the counts of codes; a missing cell has no neighbours."""
    if not has_order(domain) or domain.size - domain.gap <= _ALIKE:
        return posterior_mean(
            found.counts, n, float(found.scale), gaussian=found.mechanism == GAUSSIAN
        )
    if not domain.gap:
        return smooth(found.counts, n, float(found.variance))
    missing = min(max(float(found.counts[-1]), 0.0), float(n))
    return np.append(smooth(found.counts[:-1], n - missing, float(found.variance)), missing)


def _smooth(believed: Floats | Ints, found: NoisyHistogram, members: Ints) -> Floats:
    """Smooth the counts of leaves of equal width within a group, as far as noise explains them.

    The noisy counts of k such leaves deviate from their mean; noise of variance v alone gives these
    deviations the variance v (1 - 1 / k). As far as the squared deviations of all leaves exceed
    that, differences are kept (James and Stein). Leaves of different widths are not comparable: a
    tree halves where records are.
    """
    wide = np.diff(found.edges)
    _, alike = np.unique(np.column_stack([members, wide]), axis=0, return_inverse=True)
    k = np.bincount(alike.ravel())[alike.ravel()]

    def mean(counts: Floats | Ints) -> Floats:
        means: Floats = np.bincount(alike.ravel(), counts)[alike.ravel()] / k
        return means

    squares = float(((found.counts - mean(found.counts)) ** 2).sum())
    noise = float(found.variance) * float((1 - 1 / k).sum())
    kept = max(0.0, 1 - noise / max(squares, 1e-300))
    evened: Floats = kept * believed + (1 - kept) * mean(believed)
    return evened


def _grouping(domain: Domain) -> Grouping:
    """Return how codes are binned: as runs if they have an order, else freely."""
    return neighbours if has_order(domain) else anyhow


def has_order(domain: Domain) -> bool:
    """Whether adjacent codes of a column are similar."""
    return domain.numeric or domain.kind is Kind.ORDINAL


def group_zeros(
    zeros: Sequence[Component], one_way: Sequence[OneWayMarginal], priors: Sequence[Floats]
) -> GroupedZeros:
    """Restrict structural zeros to groups: each group lies in an atom, as its codes do."""
    atoms = []
    for zero in zeros:
        by_axis = []
        for j, codes in zip(zero.columns, zero.atoms, strict=True):
            group_atoms = np.zeros(one_way[j].size, dtype=np.int64)
            group_atoms[one_way[j].members] = codes[one_way[j].edges[:-1]]
            by_axis.append(group_atoms)
        atoms.append(by_axis)
    return GroupedZeros(zeros, atoms, priors=priors)


def _within(atoms: Ints | None, masses: Floats, most: int, grouping: Grouping) -> Ints:
    """Bin codes into about `most` groups, each within an atom."""
    if atoms is None or most >= masses.size:
        return grouping(masses, most)
    labels = np.zeros(masses.size, dtype=np.int64)
    used = 0
    atom_masses = np.bincount(atoms, masses).astype(np.float64)
    for atom, groups in enumerate(allot_groups(np.bincount(atoms), most, atom_masses)):
        codes = np.flatnonzero(atoms == atom)
        labels[codes] = used + grouping(masses[codes], int(groups))
        used = int(labels.max()) + 1
    return labels


def neighbours(masses: Floats, most: int) -> Ints:
    """Divide ordered codes into at most `most` runs with the least sum of squared masses.

    Dynamic programming over the ends of runs; ties go to the earlier end. Cost O(most d^2).

    >>> neighbours(np.array([1.0, 1.0, 5.0, 1.0, 1.0]), 3)
    array([0, 0, 1, 2, 2])
    """
    size = masses.size
    if most >= size:
        return np.arange(size)
    shares = np.maximum(masses, 0.0) + 1e-9
    ends = np.concatenate([[0.0], np.cumsum(shares / shares.sum())])
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    begins = np.zeros((most, size + 1), dtype=np.int64)
    for run in range(most):
        following = np.full(size + 1, np.inf)
        for end in range(run + 1, size + 1):
            costs = best[:end] + (ends[end] - ends[:end]) ** 2
            begins[run, end] = np.argmin(costs)
            following[end] = costs[begins[run, end]]
        best = following
    labels = np.zeros(size, dtype=np.int64)
    end = size
    for run in range(most - 1, -1, -1):
        begin = begins[run, end]
        labels[begin:end] = run
        end = begin
    return labels


def anyhow(masses: Floats, most: int) -> Ints:
    """Bin unordered codes into at most `most` groups: largest code first, lightest group.

    Ties go to the lower code and the lower group. Groups mix unlike codes, and no fit can recover
    the variation within them.

    >>> anyhow(np.array([5.0, 3.0, 2.0, 1.0]), 2)
    array([0, 1, 1, 0])
    """
    size = masses.size
    if most >= size:
        return np.arange(size)
    shares = np.maximum(masses, 0.0) + 1e-9 * max(float(masses.max()), 1.0)
    labels = np.zeros(size, dtype=np.int64)
    load = np.zeros(most)
    for code in np.argsort(-shares, kind="stable"):
        group = int(np.argmin(load))
        labels[code] = group
        load[group] += shares[code]
    return labels


def quantiles(counts: Floats | Ints, most: int) -> Ints:
    """Bin a number's leaves, in order, into at most `most` runs of about equal counts.

    Runs end where leaves end: a leaf was counted as a whole, so there is no count for a part of it.

    >>> quantiles(np.array([4, 4, 1, 1, 1, 1]), 3)
    array([0, 1, 2, 2, 2, 2])
    """
    ends = np.cumsum(counts)
    wanted = np.arange(1, most) * (ends[-1] / most)
    last = np.unique(np.searchsorted(ends, wanted))
    last = last[last < counts.size - 1]
    return np.searchsorted(last, np.arange(counts.size), side="left")

"""Single columns with noise: what `maxent` learns of every column first, and groups of codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np

from shoal.core import Kind, Noise, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.noisy_answers import noisy_table, table_counts
from shoal.mechanism.records import Columns
from shoal.mechanism.systematic_sampling import spread, systematic
from shoal.synthesis.adaptive_tree import NoisyHistogram, marginal
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.binning import anyhow, neighbours, quantiles
from shoal.synthesis.maxent.fit import Target
from shoal.synthesis.maxent.posterior import expected

LINE = 256
"""An ordinal of more codes than that is counted as a number is."""


@dataclass(frozen=True, eq=False)
class OneWayMarginal:
    """What step 1 learnt of a column, and its groups.

    Attributes:
        edges: first code of each bin of the noisy counts, and the number of codes at the end.
        counts: the noisy counts of bins.
        projected: what is believed of them, non-negative and with sum n.
        members: group of each bin.
        summed: what is believed of each group's count.
        precision: n^2 over the variance of that, before tau.
        scale: of the counts' noise.
        line: whether bins are runs of ordered codes.
    """

    edges: Ints
    counts: Ints
    projected: Floats
    members: Ints
    summed: Floats
    precision: float
    scale: Fraction
    line: bool
    privacy_losses: tuple[PrivacyLoss, ...]

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
        """The bin of each record."""
        if not self.line:
            return column
        return np.searchsorted(self.edges[1:-1], column, side="right").astype(np.int64)

    def grouped(self, column: Ints) -> Ints:
        """The group of each record."""
        return self.members[self.bins(column)]

    def target(self, j: int, n: int) -> Target:
        """The noisy counts of its groups, as what the fit has to meet."""
        return Target((j,), self.summed / n, self.precision)

    def prior(self, n: int) -> Floats:
        """Shares of the groups, none of them zero: half a record and 0.3 standard deviations."""
        shares = np.maximum(self.summed / n, 0.0) + 0.5 / n + 0.3 / sqrt(self.precision)
        prior: Floats = shares / shares.sum()
        return prior

    def fill(self, group: int, total: int, rng: np.random.Generator) -> Ints:
        """Codes of so many rows of a group, in order."""
        return self._codes(np.flatnonzero(self.members == group), total, rng)

    def rows(self, total: int, rng: np.random.Generator) -> Ints:
        """Codes of so many rows of the column by itself, in random order."""
        return rng.permutation(self._codes(np.arange(self.members.size), total, rng))

    def _codes(self, bins: Ints, total: int, rng: np.random.Generator) -> Ints:
        if self.line:
            edges = self.edges[bins[0] : bins[-1] + 2]
            return spread(edges, self.projected[bins], total, rng)
        return np.repeat(bins, systematic(self.projected[bins] + 1e-9, total, rng))


@dataclass(frozen=True, eq=False)
class JoinedCodes:
    """A column whose groups were joined to fewer.

    Attributes:
        single: the column with joined groups.
        places: the joined group of each group that there was.
    """

    single: OneWayMarginal
    places: Ints


def join(single: OneWayMarginal, attribute: Domain, most: int) -> JoinedCodes:
    """Join groups of a column to at most so many, by what is believed of their counts."""
    places = _grouping(attribute)(single.summed, most)
    summed = np.bincount(places, single.summed).astype(np.float64)
    fewer = replace(
        single,
        members=places[single.members],
        summed=summed,
        precision=single.precision * summed.size / single.size,
    )
    return JoinedCodes(fewer, places)


def counts_of_groups(
    columns: Sequence[Ints],
    axes: Sequence[tuple[int, OneWayMarginal]],
    sets: Sequence[Sequence[int]],
) -> Ints:
    """Records in each cell of tables over groups, one table after the other.

    Args:
        columns: codes, one array a column.
        axes: columns, by index, with their groups; a column may have several.
        sets: the axes of each table, by their place in that list.
    """
    grouped = [single.grouped(columns[j]) for j, single in axes]
    return np.concatenate(
        [
            table_counts([grouped[k] for k in places], [axes[k][1].size for k in places]).ravel()
            for places in sets
        ]
    )


def is_line(attribute: Domain) -> bool:
    """Whether a column is counted over the leaves of a tree."""
    return attribute.numeric or (attribute.kind is Kind.ORDINAL and attribute.size > LINE)


def learn(
    columns: Columns,
    member: int,
    attribute: Domain,
    *,
    most: int,
    epsilon: Fraction,
    noise: Noise,
) -> OneWayMarginal:
    """Count a column with noise and group its codes; the price is epsilon.

    Args:
        columns: the records.
        member: which of their columns it is.
        attribute: its public description.
        most: so many groups at most.
        epsilon: the price; change-one neighbours.
        noise: where draws come from.
    """
    if is_line(attribute):
        found = marginal(columns, member, attribute, epsilon=epsilon, noise=noise)
        return _line(found, len(columns), most)
    exact = columns.total(partial(_one_table, member=member, size=attribute.size))
    name = f"{attribute.name}: counts of its categories"
    counts, privacy_loss = noisy_table(exact, target=name, epsilon=epsilon, noise=noise)
    return _categories(counts, privacy_loss, attribute, len(columns), most)


def _line(found: NoisyHistogram, n: int, most: int) -> OneWayMarginal:
    """A number over the leaves of its tree; groups are runs of leaves."""
    members = quantiles(found.projected, most)
    # Leaves that are empty but for noise were set to zero, which helps where many make a group.
    summed = np.bincount(members, found.projected).astype(np.float64)
    a_group = max(members.size / summed.size, 1.0)
    return OneWayMarginal(
        edges=found.edges,
        counts=found.counts,
        projected=found.projected.astype(np.float64),
        members=members,
        summed=summed,
        precision=precision_of(n, found.scale) / (2 * a_group),
        scale=found.scale,
        line=True,
        privacy_losses=found.privacy_losses,
    )


def _categories(
    counts: Ints, privacy_loss: PrivacyLoss, attribute: Domain, n: int, most: int
) -> OneWayMarginal:
    """Every category of the public domain, those that no record has too."""
    projected = expected(counts, n, float(privacy_loss.scale))
    members = _grouping(attribute)(projected, most)
    summed = np.bincount(members, projected).astype(np.float64)
    return OneWayMarginal(
        edges=np.arange(attribute.size + 1),
        counts=counts,
        projected=projected,
        members=members,
        summed=summed,
        precision=precision_of(n, privacy_loss.scale) * summed.size / attribute.size,
        scale=privacy_loss.scale,
        line=False,
        privacy_losses=(privacy_loss,),
    )


def _grouping(attribute: Domain) -> Callable[[Floats, int], Ints]:
    """How codes are put into groups: neighbours together if they have an order."""
    ordered = attribute.kind is Kind.ORDINAL or is_line(attribute)
    return neighbours if ordered else anyhow


def precision_of(n: int, scale: Fraction) -> float:
    """n^2 over the variance of the noise, which is that of Laplace noise, 2 scale^2."""
    return float(n * n / (2 * scale * scale))


def _one_table(columns: Sequence[Ints], member: int, size: int) -> Ints:
    return table_counts([columns[member]], [size])

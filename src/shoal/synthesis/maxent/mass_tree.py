"""A private tree over all columns, halved by mass according to known one-way marginals.

`privtree` halves boxes in the middle of their public sides. Here every column has been counted
with noise already, so a box is cut where half of a column's own mass lies on either side, and
rows inside a leaf follow the one-way marginals instead of being even. So levels are not wasted on
empty space, and a leaf says only what one-way marginals do not: how columns go together.

Theorem (ours, unreviewed): the price is that of `adaptive_tree`. Proof. Where a node is halved
follows from one-way marginals that are published already, and the theorem of `adaptive_tree` holds
for any halves that do not depend on the records otherwise (adaptive composition). Given the tree, a
changed record moves its leaves' counts by at most 2 in all, an added or removed one by 1. Filling
leaves sees noisy counts and fresh randomness. QED

Leaves' counts are shrunk towards those of independent columns, as strongly as their noise warrants
(`consistent_counts.shrink`). Fitting the drawn rows to the one-way marginals afterwards was no
better: what the leaves know of a column is as good (docs/research/drawn-rows.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shoal.core import Noise, Price, Progress, silent
from shoal.core._arrays import Bools, Floats, Ints
from shoal.mechanism.consistent_counts import apportion, shrink
from shoal.mechanism.noisy_answers import noise_variance
from shoal.mechanism.records import Columns, RecordTotal
from shoal.mechanism.systematic_sampling import strewn
from shoal.synthesis.adaptive_tree import Descent, grow, leaf_counts, structure_price
from shoal.synthesis.domain import Domain, Measurement, Sort, SyntheticRows
from shoal.synthesis.maxent.one_way import OneWayMarginal

STRUCTURE = Fraction(2, 5)
"""Share for the tree; the rest is for the counts of its leaves."""


@dataclass(frozen=True, eq=False)
class BinnedAxis:
    """A column's axis in the tree: bins in a public order, with their mass.

    Attributes:
        marginal: what is published of the column.
        order: bins by position; the codes' public order, or as they are.
        mass: cumulated over positions from 0 to 1, strictly increasing.
    """

    marginal: OneWayMarginal
    order: Ints
    mass: Floats

    @classmethod
    def of(cls, marginal: OneWayMarginal, domain: Domain) -> Self:
        """Make the axis of a column; bins with an estimate of zero keep a trace of mass."""
        order = np.arange(marginal.members.size)
        if not marginal.line and domain.order is not None:
            order = np.array(domain.order, dtype=np.int64)
        weights = marginal.projected[order] + 1e-9 * marginal.projected.sum()
        mass = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
        return cls(marginal, order, mass)

    @property
    def edges(self) -> Ints:
        """First code of each bin, or of a nominal its position; and the number of codes."""
        return self.marginal.edges

    def positions(self, column: Ints) -> NDArray[np.int32]:
        """Return the positions of records."""
        return np.argsort(self.order)[self.marginal.bins(column)].astype(np.int32)

    def middle(self, first: Ints, last: Ints) -> Ints:
        """Return the edge nearest to half of the mass strictly between two positions."""
        half = (self.mass[first] + self.mass[last]) / 2
        above = np.clip(np.searchsorted(self.mass, half), first + 1, last - 1)
        below = np.maximum(above - 1, first + 1)
        nearer = half - self.mass[below] <= self.mass[above] - half
        edge: Ints = np.where(nearer, below, above)
        return edge

    def codes(self, quantiles: Floats, low: Ints, high: Ints) -> Ints:
        """Return the codes at these quantiles of the mass, each between its two positions."""
        position = np.searchsorted(self.mass, quantiles, side="right") - 1
        position = np.clip(position, low, high - 1)
        if not self.marginal.line:
            return self.order[position]
        inside = (quantiles - self.mass[position]) / (self.mass[position + 1] - self.mass[position])
        width = self.edges[position + 1] - self.edges[position]
        steps = np.clip(np.floor(inside * width).astype(np.int64), 0, width - 1)
        codes: Ints = self.edges[position] + steps
        return codes


@dataclass(frozen=True, eq=False)
class Masses:
    """Columns whose boxes are halved by mass; an `adaptive_tree.Space`.

    A box is cut across its side with the most mass, at the bin edge nearest to half of it; ties go
    to the first column.
    """

    axes: tuple[BinnedAxis, ...]

    @property
    def sizes(self) -> Ints:
        """The number of bins of each column."""
        return np.array([axis.order.size for axis in self.axes], dtype=np.int64)

    def start(self, columns: Sequence[Ints]) -> Descent:
        """Place records at the positions of their bins."""
        positions = [
            axis.positions(column) for axis, column in zip(self.axes, columns, strict=True)
        ]
        return Descent(columns, np.vstack(positions))

    def is_forced(self, lower: Ints, _upper: Ints) -> Bools:
        """Return False for all nodes, because there are no public cuts."""
        return np.zeros(len(lower), dtype=bool)

    def halve(self, lower: Ints, upper: Ints, split: Ints) -> tuple[Ints, Ints]:
        """Return axis and cut of each node that is split; zero for the others."""
        axis = np.zeros(len(lower), dtype=np.int64)
        cut = np.zeros(len(lower), dtype=np.int64)
        sides = self.sides(lower[split], upper[split])
        axis[split] = np.argmax(np.where(upper[split] - lower[split] > 1, sides, -1.0), axis=1)
        for j, each in enumerate(self.axes):
            nodes = split[axis[split] == j]
            cut[nodes] = each.middle(lower[nodes, j], upper[nodes, j])
        return axis, cut

    def sides(self, lower: Ints, upper: Ints) -> Floats:
        """Return the mass of each side of the boxes, one column per axis."""
        masses = [axis.mass for axis in self.axes]
        return np.column_stack([m[upper[:, j]] - m[lower[:, j]] for j, m in enumerate(masses)])


def mass_tree(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    *,
    total: RecordTotal,
    price: Price,
    noise: Noise,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> SyntheticRows:
    """Draw as many rows as there are records from the leaves of a tree halved by mass.

    Cost: O(m) per record and level.
    """
    axes = tuple(BinnedAxis.of(*pair) for pair in zip(one_way, domains, strict=True))
    space = Masses(axes)
    structure = structure_price(price, STRUCTURE)
    tree = grow(columns, space, price=structure, noise=noise, progress=progress)
    progress("counting leaves", 0, 1)
    counts, counted = leaf_counts(tree, price=price - structure, noise=noise)
    variance = float(noise_variance(counted))
    n = total.refine([(float(counts.sum()), counts.size * variance)]).rows
    volumes = space.sides(tree.lower, tree.upper).prod(axis=1)
    believed = shrink(counts, n, variance, towards=volumes)
    rows = _rows(axes, tree.lower, tree.upper, apportion(believed, n), rng)
    ends = tuple(
        np.column_stack([axis.edges[end[:, j]] for j, axis in enumerate(axes)])
        for end in (tree.lower, tree.upper)
    )
    every = tuple(range(len(axes)))
    measurement = Measurement(every, ends, counts, counted.scale, Sort.TREE, counted.mechanism)
    facts = {"leaves": counts.size}
    return SyntheticRows(rows, (tree.privacy_loss, counted), (measurement,), facts)


def _rows(
    axes: Sequence[BinnedAxis],
    lower: Ints,
    upper: Ints,
    sizes: Ints,
    rng: np.random.Generator,
) -> tuple[Ints, ...]:
    """Draw codes in random order: within a leaf, independently by the mass of each side.

    A Latin hypercube of each leaf, in quantiles: see `strewn`.
    """
    leaf = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = rng.permutation(leaf.size)
    rows = []
    for j, axis in enumerate(axes):
        low, high = lower[leaf, j], upper[leaf, j]
        quantiles = axis.mass[low] + strewn(sizes, rng) * (axis.mass[high] - axis.mass[low])
        rows.append(axis.codes(quantiles, low, high)[shuffled])
    return tuple(rows)

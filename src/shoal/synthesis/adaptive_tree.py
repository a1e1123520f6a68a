"""A private tree of boxes: splits are decided with noise, cuts by public facts.

A node is a box of positions. It is split in two where its count, less a penalty that grows with its
depth, exceeds a threshold after noise. Where a box is halved follows from what is public or
published (`Space`). `privtree` draws rows from the leaves of such a tree, `mass_tree` too;
`tree_histogram` makes a histogram of one.

On whole numbers. Counts are multiplied by a public q, so the penalty is a whole number of
units without much rounding. With c a node's count, i its depth, Z discrete Laplace of scale
s = q lam (P(Z = z) ~ a^|z|, a = exp(-1/s)), T = q theta and D >= s ln 2 whole, a node is
split if b + Z > T for b = max(q c - i D, T - D). We need lam >= 1 / ln 2; then D >= q.

Theorem (ours, unreviewed; after Zhang, Xiao and Xie, Section 3, who have continuous noise and 3
where we have 2.607). Let E = sum_{k >= 1} 1 / (2^k - 1) = 1.60669.. . The law of the tree, as the
set of its nodes, changes by a factor of at most

    exp((1 + E) / lam)   and no less than   exp(-1 / lam)    if one record is added,
    exp((2 + E) / lam)                                       if one record is changed.

Proof. A record is added: only the counts on its path change, by +1 each. Let y = q c - i D before,
so b goes from max(y, T - D) to max(y + q, T - D), and let S(b) = P(b + Z > T).
S does not decrease, so split nodes contribute factors >= 1, and the path's last node, if it
could have been split, contributes (1 - S(b')) / (1 - S(b)) in [exp(-q/s), 1]. That is the
lower bound. For the upper bound only split nodes matter. A node costs ln S(b') - ln S(b).

(1) It costs at most (b' - b) / s <= q / s = 1 / lam, as for any event of discrete Laplace noise.

(2) If y >= T, it costs at most h(a^(y - T)) / lam with h(x) = x / (2 - x). For S(T + u) =
    1 - a^u / (1 + a) if u >= 0. Let x = a^u, L = 1 / s. One unit more costs
    ln(1 + a - a x) - ln(1 + a - x), and F(L) = L h(x) - that has F(0) = 0 and
        F'(L) = x / (2 - x) - a x (2 - x) / ((1 + a - a x) (1 + a - x)) >= 0,
    because (1 + a - a x)(1 + a - x) - a (2 - x)^2 = (1 - x)(1 - a)^2 >= 0. So one unit costs
    at most h(x) / s, and q units cost at most q h(x) / s, because h increases and x falls.

A child's count is at most its parent's, so y grows by at least D from a node to its parent.
Nodes with y <= T - D - q do not change. At most one has T - D - q < y < T - D, since D >= q.

    If one has: let f = (y + q - T + D) / q, in (0, 1). By (1) it costs at most f / lam. Its parent
    has y >= T - (1 - f) q and costs at most 1 / lam. The r-th ancestor, r >= 2, has
    y >= T - (1 - f) q + (r - 1) D >= T, and by (2) costs at most h(2^(1 - f - (r - 1))) / lam,
    because exp(q / s) = exp(1 / lam) <= 2 and exp(-D / s) <= 1/2. Together, in units of
    1 / lam: f + 1 + sum_{j >= 1} h(2^(1 - f - j)). That is convex in f (h is convex and
    increasing), so largest at f = 0 or f = 1, and at both ends it is 1 + E, because
    h(2^-k) = 1 / (2^(k+1) - 1).
    If none has: the deepest node that changes has y >= T - D and costs at most 1 / lam; its r-th
    ancestor has y >= T + (r - 1) D, and costs at most h(2^-(r-1)) / lam: again 1 + E.

A record changes: it is removed and another is added. From the common part, the one costs at most
(1 + E) / lam and the other at most 1 / lam, in either direction: (2 + E) / lam.    QED

A node with a public cut, which a constraint makes, is split there without a draw. It costs
nothing, and the proof is about the others: along a path y still grows by D from node to parent.

The noise is drawn at the least float >= s. D is computed from an upper bound of ln 2 that leaves
room for it.

Given the tree, a changed record leaves one leaf and enters another: leaf counts move by at most 2
in all. An added or removed one does so in one leaf: they move by 1. The proof uses n nowhere: for
add-remove neighbours the root's count is one of those on the path.

In mathematical notation: docs/explanation/proofs.md, "Trees that follow the crowd".

References:
    Zhang, Xiao, Xie, "PrivTree: a differentially private algorithm for hierarchical
    decompositions", SIGMOD 2016. doi:10.1145/2882903.2882928
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.core import LAPLACE, Kind, Neighbours, Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Bools, Ints
from shoal.core.concentrated import root_below
from shoal.errors import InputError
from shoal.mechanism.consistent_counts import apportion, project
from shoal.mechanism.noisy_answers import COUNTS, noise_variance, noisy_answers
from shoal.mechanism.records import Columns, Walk
from shoal.synthesis.domain import Domain
from shoal.synthesis.kernels import descend

PATH = {
    Neighbours.CHANGE_ONE: Fraction(3607, 1000),
    Neighbours.ADD_REMOVE: Fraction(2607, 1000),
}
"""Upper bounds of 2 + E and 1 + E: what a record costs, in units of 1 / lam."""
UNITS = 64
"""q: units that a record counts. The penalty is rounded up by less than 1/64 of a record."""
_LN2 = Fraction(693_147_181, 1_000_000_000)  # above ln 2 by 4e-10
SHALLOWEST = Fraction(1_442_695_041, 1_000_000_000)  # above 1 / ln 2 by 1e-10


class Space(Protocol):
    """The axes of a tree; they follow from public or published facts alone."""

    @property
    def sizes(self) -> Ints:
        """The number of positions on each axis."""

    def start(self, columns: Sequence[Ints]) -> "Descent":
        """Place the records of a block at their positions, in the root."""

    def is_forced(self, lower: Ints, upper: Ints) -> Bools:
        """Find the nodes with a public cut, which are split whatever their count."""

    def halve(self, lower: Ints, upper: Ints, split: Ints) -> tuple[Ints, Ints]:
        """Return axis and cut of each node that is split; zero for the others.

        `lower` and `upper` have a row per node and a column per axis; a node that is split has an
        axis with at least two positions.
        """


@dataclass(frozen=True)
class AdaptiveAxis:
    """The public domain of some columns; boxes are halved in the middle of their widest side.

    Sides are measured in proportion to the domain, and ties go to the first column.

    Attributes:
        domains: public domains of the columns.
        members: their indices among the records' columns; by default the first ones.
        breaks: of a single column, public cuts that come before all others.
    """

    domains: tuple[Domain, ...]
    members: tuple[int, ...] | None = None
    breaks: tuple[int, ...] = ()

    @property
    def sizes(self) -> Ints:
        """The number of codes of each column."""
        return np.array([domain.size for domain in self.domains], dtype=np.int64)

    def start(self, columns: Sequence[Ints]) -> "Descent":
        """Place records at the public positions of their codes."""
        members = range(len(self.domains)) if self.members is None else self.members
        member_columns = [columns[j] for j in members]
        positions = [_positions(*pair) for pair in zip(member_columns, self.domains, strict=True)]
        return Descent(member_columns, np.vstack(positions))

    def is_forced(self, lower: Ints, upper: Ints) -> Bools:
        """Find the nodes that contain a break."""
        breaks = np.array(self.breaks, dtype=np.int64)
        return np.asarray(((breaks > lower[:, :1]) & (breaks < upper[:, :1])).any(axis=1))

    def halve(self, lower: Ints, upper: Ints, split: Ints) -> tuple[Ints, Ints]:
        """Return axis and cut of each node that is split; zero for the others."""
        axis = np.zeros(len(lower), dtype=np.int64)
        cut = np.zeros(len(lower), dtype=np.int64)
        width = upper[split] - lower[split]
        axis[split] = np.argmax(np.where(width > 1, width / self.sizes, 0.0), axis=1)
        for j, domain in enumerate(self.domains):
            nodes = split[axis[split] == j]
            cut[nodes] = _cuts(lower[nodes, j], upper[nodes, j], domain)
        for node in np.flatnonzero(self.is_forced(lower, upper)):
            low, high = lower[node, 0], upper[node, 0]
            inside = [at for at in self.breaks if low < at < high]
            cut[node] = min(inside, key=lambda at: abs(2 * at - low - high))
        return axis, cut


def _positions(column: Ints, domain: Domain) -> NDArray[np.int32]:
    positions = domain.positions
    return (column if positions is None else positions[column]).astype(np.int32)


def _cuts(low: Ints, high: Ints, domain: Domain) -> Ints:
    """Halve runs of positions, as `Domain.cut` halves one."""
    if domain.joins is None:
        middle = low + (high - low) // 2
        return np.where(domain.gap & (high == domain.size), high - 1, middle)
    ends, back = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    cuts = np.array([domain.cut(int(a), int(b)) for a, b in ends], dtype=np.int64)
    return cuts[back.ravel()]


class Descent:
    """The records of a block as they descend the tree. Answers of blocks add up.

    Args:
        columns: codes of the columns that the tree is about.
        positions: of the codes on the axes that are cut, one row per column.
    """

    def __init__(self, columns: Sequence[Ints], positions: NDArray[np.int32]) -> None:
        self.columns = columns
        self._positions = positions
        self._labels = np.zeros(positions.shape[1], dtype=np.int32)

    @property
    def labels(self) -> Ints:
        """The leaf of each record that has reached one."""
        return -1 - self._labels.astype(np.int64)

    def descend(self, axis: Ints, cut: Ints, child: Ints, nodes: int) -> Ints:
        """Move the records a level down, and count them there."""
        return descend(self._positions, self._labels, axis, cut, child, nodes)

    def leaves(self, size: int) -> Ints:
        """Count the records in each leaf."""
        return np.bincount(self.labels, minlength=size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class AdaptiveTree:
    """Leaves as boxes lower <= position < upper, and the records with their leaves.

    `walk` has the original records and never leaves the mechanism.
    """

    lower: Ints
    upper: Ints
    walk: Walk
    privacy_loss: PrivacyLoss

    def __len__(self) -> int:
        return len(self.lower)


def grow(
    columns: Columns,
    space: Space,
    *,
    price: Price,
    noise: Noise,
    theta: int = 0,
    target: str = "splits of the tree",
    progress: Progress = silent,
) -> AdaptiveTree:
    """Grow the tree level by level; the theorem above is its price.

    The privacy loss's sensitivity is PATH in the units of a count: the noise of a split has scale
    lam, and all splits together cost PATH / lam. A node of a single code has no split and no draw.
    Another is split where its noisy penalised count exceeds theta records. A price above that of
    `structure_price` is too large for the proof, and refused. `target` is for the accounting.
    """
    path, epsilon = PATH[price.neighbours], _pure(price)
    lam = path / epsilon
    if lam < SHALLOWEST:
        raise InputError(
            f"A private tree takes an epsilon of at most {float(path / SHALLOWEST):.4g} for its "
            f"splits; got {float(epsilon):.4g}."
        )
    scale, threshold = UNITS * lam, UNITS * theta
    penalty = ceil(scale * _LN2)
    sizes = space.sizes
    walk = columns.walk(space.start)
    lower, upper = np.zeros((1, len(sizes)), dtype=np.int64), sizes[None, :].copy()
    counts = np.array([len(columns)], dtype=np.int64)
    leaves: list[tuple[Ints, Ints]] = []
    nodes, draws, depth = 0, 0, 0
    while counts.size:
        progress("splitting nodes", nodes, nodes + counts.size)
        forced = space.is_forced(lower, upper)
        can = np.flatnonzero(((upper - lower) > 1).any(axis=1) & ~forced)
        biased = np.maximum(UNITS * counts[can] - depth * penalty, threshold - penalty)
        drawn = can[noise.exceeds(biased, threshold=threshold, scale=scale)]
        split = np.union1d(drawn, np.flatnonzero(forced))
        draws += can.size
        child = np.full(counts.size, -1, dtype=np.int64)
        child[split] = 2 * np.arange(split.size)
        closed = np.flatnonzero(child < 0)
        child[closed] = -1 - nodes - np.arange(closed.size)
        leaves.append((lower[closed], upper[closed]))
        nodes += closed.size
        axis, cut = space.halve(lower, upper, split)
        counts = walk.step(
            partial(Descent.descend, axis=axis, cut=cut, child=child, nodes=2 * split.size)
        )
        left, right = upper[split].copy(), lower[split].copy()
        left[np.arange(split.size), axis[split]] = cut[split]
        right[np.arange(split.size), axis[split]] = cut[split]
        lower = np.stack([lower[split], right], axis=1).reshape(-1, len(sizes))
        upper = np.stack([left, upper[split]], axis=1).reshape(-1, len(sizes))
        depth += 1
    privacy_loss = PrivacyLoss(
        mechanism=LAPLACE,
        target=target,
        sensitivity=UNITS * path,
        scale=scale,
        epsilon=price.epsilon,
        neighbours=price.neighbours,
        draws=draws,
        rho=price.rho,
    )
    return AdaptiveTree(
        lower=np.concatenate([low for low, _ in leaves]),
        upper=np.concatenate([high for _, high in leaves]),
        walk=walk,
        privacy_loss=privacy_loss,
    )


def structure_price(price: Price, share: Fraction) -> Price:
    """Return a share of a privacy parameter for the splits, limited to what is proved."""
    most = PATH[price.neighbours] / SHALLOWEST
    if price.rho is not None:
        most = most * most / 2
    return replace(price, amount=min(share * price.amount, most))


def _pure(price: Price) -> Fraction:
    """Return the epsilon that noise with a pure guarantee may have: e^2 / 2 is its rho."""
    return price.amount if price.rho is None else root_below(2 * price.rho)


def leaf_counts(
    tree: AdaptiveTree, *, price: Price, noise: Noise, target: str = "counts in the leaves"
) -> tuple[Ints, PrivacyLoss]:
    """Count the disjoint leaves with noise."""
    counts = tree.walk.ask(partial(Descent.leaves, size=len(tree)))
    return noisy_answers(counts, reach=COUNTS, price=price, target=target, noise=noise)


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """A private histogram of one column, by codes or by the ordered leaves of a tree.

    Attributes:
        edges: first code of each bin, and the size of the domain at the end.
        counts: with noise.
        privacy_losses: the last is that of the counts.
    """

    edges: Ints
    counts: Ints
    privacy_losses: tuple[PrivacyLoss, ...]

    @property
    def scale(self) -> Fraction:
        """Scale of the counts' noise."""
        return self.privacy_losses[-1].scale

    @property
    def mechanism(self) -> str:
        """Mechanism of the counts' noise."""
        return self.privacy_losses[-1].mechanism

    @property
    def variance(self) -> Fraction:
        """Variance of each count's noise."""
        return noise_variance(self.privacy_losses[-1])

    def project(self, n: int) -> Ints:
        """Project the counts to non-negative whole numbers with sum n."""
        return apportion(project(self.counts, n), n)

    @property
    def total(self) -> tuple[float, float]:
        """The sum of the counts, and its variance."""
        return float(self.counts.sum()), float(self.counts.size * self.variance)


def tree_histogram(
    columns: Columns,
    member: int,
    domain: Domain,
    *,
    price: Price,
    noise: Noise,
    breaks: tuple[int, ...] = (),
) -> NoisyHistogram:
    """Make the histogram of one ordered column by a tree, with half of the budget for each part.

    Bins end at the breaks, which are public.
    """
    structure = structure_price(price, Fraction(1, 2))
    line = Domain(domain.name, Kind.NUMERIC, domain.size, gap=domain.gap)
    tree = grow(
        columns,
        AdaptiveAxis((line,), (member,), breaks),
        price=structure,
        noise=noise,
        target=f"{domain.name}: splits of the private tree of this column",
    )
    counts, counted = leaf_counts(
        tree,
        price=price - structure,
        noise=noise,
        target=f"{domain.name}: counts in the leaves of its tree",
    )
    order = np.argsort(tree.lower[:, 0])
    return NoisyHistogram(
        edges=np.append(tree.lower[order, 0], domain.size),
        counts=counts[order],
        privacy_losses=(tree.privacy_loss, counted),
    )

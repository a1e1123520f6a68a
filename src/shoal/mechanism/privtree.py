"""PrivTree microaggregation: a private tree over mixed columns, and rows drawn from its leaves.

A node is a box of codes. It is split in two where its count, less a penalty that grows with its
depth, exceeds a threshold after noise; the halves are public. Leaves get noisy counts and, if
wanted, noisy sums. Rows are drawn from leaves: post-processing.

On whole numbers. Counts are multiplied by a public q, so that the penalty is a whole number of
units without much rounding. With c a node's count, i its depth, Z discrete Laplace of scale
s = q lam (P(Z = z) ~ a^|z|, a = exp(-1/s)), T = q theta and D >= s ln 2 whole, a node is
split if b + Z > T for b = max(q c - i D, T - D). We need lam >= 1 / ln 2; then D >= q.

Theorem (ours, unreviewed; after Zhang, Xiao and Xie, Section 3, who have continuous noise and 3
where we have 2.607). Let E = sum_{k >= 1} 1 / (2^k - 1) = 1.60669.. . The law of the tree, as the
set of its nodes, changes by a factor of at most

    exp((1 + E) / lam)   and no less than   exp(-1 / lam)    if one record is added,
    exp((2 + E) / lam)                                       if one record is changed.

Proof. A record is added: only the counts on its path change, by +1 each. Let y = q c - i D before,
so that b goes from max(y, T - D) to max(y + q, T - D), and let S(b) = P(b + Z > T).
S does not decrease, so that split nodes contribute factors >= 1, and the path's last node, if it
could have been split, contributes (1 - S(b')) / (1 - S(b)) in [exp(-q/s), 1]. That is the
lower bound. For the upper bound only split nodes matter. A node costs ln S(b') - ln S(b).

(1) It costs at most (b' - b) / s <= q / s = 1 / lam, as for any event of discrete Laplace noise.

(2) If y >= T, it costs at most h(a^(y - T)) / lam with h(x) = x / (2 - x). For S(T + u) =
    1 - a^u / (1 + a) if u >= 0. Let x = a^u, L = 1 / s. One unit more costs
    ln(1 + a - a x) - ln(1 + a - x), and F(L) = L h(x) - that has F(0) = 0 and
        F'(L) = x / (2 - x) - a x (2 - x) / ((1 + a - a x) (1 + a - x)) >= 0,
    because (1 + a - a x)(1 + a - x) - a (2 - x)^2 = (1 - x)(1 - a)^2 >= 0. So one unit costs
    at most h(x) / s, and q units cost at most q h(x) / s, because h increases and x falls.

A child's count is at most its parent's, so that y grows by at least D from a node to its parent.
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

The noise is drawn at the least float >= s. D is computed from an upper bound of ln 2 that leaves
room for it.

Given the tree, a changed record leaves one leaf and enters another: leaf counts move by at most 2
in all. A leaf's sums are taken in units of its own width, so that they move by at most that width,
which is far less than the column's. Everything that chooses (the shares of epsilon, the axis to
halve, where to halve it) is public. The price is for change-one neighbours; n is public.

References:
    Zhang, Xiao, Xie, "PrivTree: a differentially private algorithm for hierarchical
    decompositions", SIGMOD 2016. doi:10.1145/2882903.2882928
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import LAPLACE, Kind, Neighbours, Noise, Progress, Spending, silent
from shoal.errors import InputError
from shoal.mechanism._kernels_tree import descend
from shoal.mechanism.answers import noisy_answers
from shoal.mechanism.attributes import Attribute, Drawn, Measurement, Sort, records
from shoal.mechanism.projection import apportion, project
from shoal.mechanism.records import Columns, Walk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PATH = Fraction(3607, 1000)
"""An upper bound of 2 + E: what a changed record costs, in units of 1 / lam."""
UNITS = 64
"""q: units that a record counts. The penalty is rounded up by less than 1/64 of a record."""
_LN2 = Fraction(693_147_181, 1_000_000_000)  # above ln 2 by 4e-10
SHALLOWEST = Fraction(1_442_695_041, 1_000_000_000)  # above 1 / ln 2 by 1e-10
_LOCAL = 1 << 16  # steps between the ends of a leaf, for sums
_TRUST = 3  # A centroid is used where a leaf counts more than so many scales of its noise.


Halve = Callable[[Integers, Integers, Integers], tuple[Integers, Integers]]
"""From lower and upper ends of nodes and which are split: axis and cut of each of these."""


class Fill(StrEnum):
    """What rows a leaf's count becomes.

    `centroid`: its noisy mean, for numeric columns; least squared distance. `uniform`: spread
    evenly over the box; best for counting at small epsilon.
    """

    CENTROID = "centroid"
    UNIFORM = "uniform"


@dataclass(frozen=True, eq=False)
class Tree:
    """Leaves as boxes lower <= place < upper, and the records, which know their leaves.

    `walk` has the original records and never leaves the mechanism.
    """

    lower: Integers
    upper: Integers
    walk: Walk
    spending: Spending

    def __len__(self) -> int:
        return len(self.lower)


def privtree(
    codes: Sequence[NDArray[Any]] | Columns,
    attributes: Sequence[Attribute],
    *,
    epsilon: Fraction,
    noise: Noise,
    rng: np.random.Generator,
    fill: Fill = Fill.CENTROID,
    theta: int = 0,
    progress: Progress = silent,
) -> Drawn:
    """Draw as many rows as there are records from the leaves of a private tree.

    Of epsilon, 0.4 goes to the tree, 0.4 to the leaves' counts and 0.2 to their sums; without sums
    0.5 and 0.5. What the tree cannot use, because lam must not fall below 1 / ln 2, goes to counts.

    Noisy counts are projected on non-negative numbers with sum n and rounded. A leaf's rows take
    its centroid in numeric columns, where the leaf is large enough that the centroid beats
    the middle of the box, and are spread evenly over the box in all others.

    Cost: O(m) a record and level. Axes are halved widest first, in proportion to their domains;
    ties go to the first column.

    Not promised: leaves of at least k records. theta is a threshold for splitting; a leaf may hold
    one record or none.

    Args:
        codes: one array of codes a column, or records that answer for them.
        attributes: their public descriptions.
        epsilon: for all of it; change-one neighbours, n public.
        noise: where draws come from.
        rng: for spreading rows over their leaves.
        fill: see `Fill`.
        theta: a node is split where its noisy penalised count exceeds so many records.
        progress: called with each stage.
    """
    columns = records(codes, attributes)
    n = len(columns)
    numeric = [j for j, attribute in enumerate(attributes) if attribute.numeric]
    summed = numeric if fill is Fill.CENTROID else []
    share = Fraction(2, 5) if summed else Fraction(1, 2)
    structure = min(share * epsilon, PATH / SHALLOWEST)
    rest = epsilon - structure
    sums = rest * Fraction(1, 3) if summed else Fraction(0)
    tree = grow(columns, attributes, epsilon=structure, theta=theta, noise=noise, progress=progress)
    progress("counting leaves", 0, 1)
    counts, counted = leaf_counts(tree, epsilon=rest - sums, noise=noise)
    spendings = [tree.spending, counted]
    middles = (tree.lower + tree.upper - 1) / 2
    centres: Floats | None = None
    if summed:
        offsets, spending = _offsets(tree, summed, epsilon=sums, noise=noise)
        spendings.append(spending)
        limit = _TRUST * float(spending.scale) / (2 * _LOCAL)
        trusted = np.where(counts > limit, counts, np.inf)
        centres = middles[:, summed] + offsets / trusted[:, None]
        centres = np.clip(centres, tree.lower[:, summed], tree.upper[:, summed] - 1)
    sizes = apportion(project(counts, n), n)
    rows = _spread(tree, sizes, attributes, rng)
    if centres is not None:
        for number, j in enumerate(summed):
            rows[j] = np.repeat(centres[:, number], sizes)
    order = rng.permutation(n)
    measurement = Measurement(
        columns=tuple(range(len(attributes))),
        groups=(tree.lower, tree.upper),
        counts=counts,
        scale=counted.scale,
        sort=Sort.TREE,
    )
    facts = {"leaves": len(tree), "scale of a split": float(tree.spending.scale / UNITS)}
    return Drawn(tuple(row[order] for row in rows), tuple(spendings), (measurement,), facts)


class Descent:
    """Records of a block on their way down the tree. What blocks say adds up.

    Args:
        columns: codes.
        places: where the codes stand on the axes that are cut, a line a column.
    """

    def __init__(self, columns: Sequence[Integers], places: NDArray[np.int32]) -> None:
        self._columns = columns
        self._places = places
        self._labels = np.zeros(places.shape[1], dtype=np.int32)

    @property
    def labels(self) -> Integers:
        """The leaf of each record that has arrived."""
        return -1 - self._labels.astype(np.int64)

    def descend(self, axis: Integers, cut: Integers, child: Integers, nodes: int) -> Integers:
        """Move the records a level down, and count them there."""
        return descend(self._places, self._labels, axis, cut, child, nodes)

    def leaves(self, size: int) -> Integers:
        """Count the records that each leaf has."""
        return np.bincount(self.labels, minlength=size).astype(np.int64)

    def offsets(self, lower: Integers, upper: Integers, summed: Sequence[int]) -> Integers:
        """Sum the places of the records between the ends of their leaves; see `_offsets`."""
        labels = self.labels
        exact = np.empty((len(lower), len(summed)), dtype=np.int64)
        for number, j in enumerate(summed):
            low, last = lower[:, j], upper[:, j] - 1 - lower[:, j]
            local = (self._columns[j] - low[labels]) * (2 * _LOCAL)
            local //= np.maximum(last, 1)[labels]
            local -= np.where(last > 0, _LOCAL, 0)[labels]
            # Whole numbers below 2^53: floats add them up exactly.
            exact[:, number] = np.bincount(labels, local, minlength=len(lower)).astype(np.int64)
        return exact


def grow(
    columns: Sequence[Integers] | Columns,
    attributes: Sequence[Attribute],
    *,
    epsilon: Fraction,
    noise: Noise,
    theta: int = 0,
    target: str = "the tree",
    members: Sequence[int] | None = None,
    start: Callable[[Sequence[Integers]], Descent] | None = None,
    halve: Halve | None = None,
    progress: Progress = silent,
) -> Tree:
    """Grow the tree level by level; the theorem above is its price.

    The spending's sensitivity is PATH in the units of a count: the noise of a split has scale lam,
    and all splits together cost PATH / lam. A node of a single code has no split and no draw.

    Args:
        columns: codes, or records that answer for them.
        attributes: public descriptions of the columns that the tree is about.
        epsilon: the price.
        noise: where draws come from.
        theta: see `privtree`.
        target: for the ledger.
        members: which of the columns it is about; by default all.
        start: where the records of a block stand; by default at their codes' public places.
        halve: where nodes are cut; by default at the public middle of their widest side. It must
            follow from what is public or published.
        progress: called with each level.

    Raises:
        InputError: if epsilon is too large for the proof, above 2.5.
    """
    lam = PATH / epsilon
    if lam < SHALLOWEST:
        raise InputError(
            f"A private tree takes epsilon of at most {float(PATH / SHALLOWEST):.4g} for its "
            f"splits; got {float(epsilon):.4g}."
        )
    scale, threshold = UNITS * lam, UNITS * theta
    penalty = ceil(scale * _LN2)
    sizes = np.array([attribute.size for attribute in attributes], dtype=np.int64)
    held = records(columns, attributes)
    chosen = tuple(range(len(attributes)) if members is None else members)
    begin = start or partial(_start, members=chosen, attributes=tuple(attributes))
    cut_at = halve or partial(_halves, attributes=attributes)
    walk = held.walk(begin)
    lower, upper = np.zeros((1, len(sizes)), dtype=np.int64), sizes[None, :].copy()
    counts = np.array([len(held)], dtype=np.int64)
    leaves: list[tuple[Integers, Integers]] = []
    found, draws, depth = 0, 0, 0
    while counts.size:
        progress("splitting nodes", found, found + counts.size)
        can = np.flatnonzero(((upper - lower) > 1).any(axis=1))
        biased = np.maximum(UNITS * counts[can] - depth * penalty, threshold - penalty)
        split = can[noise.discrete_laplace(biased, scale=scale) > threshold]
        draws += can.size
        child = np.full(counts.size, -1, dtype=np.int64)
        child[split] = 2 * np.arange(split.size)
        closed = np.flatnonzero(child < 0)
        child[closed] = -1 - found - np.arange(closed.size)
        leaves.append((lower[closed], upper[closed]))
        found += closed.size
        axis, cut = cut_at(lower, upper, split)
        counts = walk.step(
            partial(Descent.descend, axis=axis, cut=cut, child=child, nodes=2 * split.size)
        )
        left, right = upper[split].copy(), lower[split].copy()
        left[np.arange(split.size), axis[split]] = cut[split]
        right[np.arange(split.size), axis[split]] = cut[split]
        lower = np.stack([lower[split], right], axis=1).reshape(-1, len(sizes))
        upper = np.stack([left, upper[split]], axis=1).reshape(-1, len(sizes))
        depth += 1
    spending = Spending(
        mechanism=LAPLACE,
        target=target,
        sensitivity=UNITS * PATH,
        scale=scale,
        epsilon=epsilon,
        neighbours=Neighbours.CHANGE_ONE,
        draws=draws,
    )
    return Tree(
        lower=np.concatenate([low for low, _ in leaves]),
        upper=np.concatenate([high for _, high in leaves]),
        walk=walk,
        spending=spending,
    )


def leaf_counts(
    tree: Tree, *, epsilon: Fraction, noise: Noise, target: str = "counts of its leaves"
) -> tuple[Integers, Spending]:
    """Count the leaves with noise; a changed record moves the counts by at most 2 in all."""
    counts = tree.walk.ask(partial(Descent.leaves, size=len(tree)))
    return noisy_answers(counts, sensitivity=2, epsilon=epsilon, target=target, noise=noise)


@dataclass(frozen=True, eq=False)
class Marginal:
    """One numeric column as a private histogram over leaves of its own tree, in order.

    Attributes:
        edges: first code of each leaf, and the size of the domain at the end.
        counts: with noise.
        projected: non-negative whole numbers with sum n, nearest to them.
        scale: of the counts' noise.
    """

    edges: Integers
    counts: Integers
    projected: Integers
    scale: Fraction
    spendings: tuple[Spending, ...]


def marginal(
    column: Integers | Columns,
    attribute: Attribute,
    *,
    epsilon: Fraction,
    noise: Noise,
    member: int = 0,
) -> Marginal:
    """The histogram of one ordered column by a tree of its own, half of epsilon for either part.

    Args:
        column: its codes, or records that answer for it and for others.
        attribute: its public description.
        epsilon: the price.
        noise: where draws come from.
        member: which of the records' columns it is.
    """
    structure = min(epsilon / 2, PATH / SHALLOWEST)
    line = Attribute(attribute.name, Kind.NUMERIC, attribute.size, gap=attribute.gap)
    held = records([column], [line]) if isinstance(column, np.ndarray) else column
    tree = grow(
        held,
        [line],
        epsilon=structure,
        noise=noise,
        target=f"{attribute.name}: its tree",
        members=[member],
    )
    counts, counted = leaf_counts(
        tree,
        epsilon=epsilon - structure,
        noise=noise,
        target=f"{attribute.name}: counts of its leaves",
    )
    order = np.argsort(tree.lower[:, 0])
    n = len(held)
    return Marginal(
        edges=np.append(tree.lower[order, 0], attribute.size),
        counts=counts[order],
        projected=apportion(project(counts[order], n), n),
        scale=counted.scale,
        spendings=(tree.spending, counted),
    )


def _start(
    columns: Sequence[Integers], members: Sequence[int], attributes: Sequence[Attribute]
) -> Descent:
    """Records at their codes' public places."""
    own = [columns[j] for j in members]
    return Descent(own, np.vstack([_places(*p) for p in zip(own, attributes, strict=True)]))


def _places(column: Integers, attribute: Attribute) -> NDArray[np.int32]:
    positions = attribute.positions
    return (column if positions is None else positions[column]).astype(np.int32)


def _halves(
    lower: Integers, upper: Integers, split: Integers, attributes: Sequence[Attribute]
) -> tuple[Integers, Integers]:
    """Axis and cut of each node that is split; zero for the others."""
    axis = np.zeros(len(lower), dtype=np.int64)
    cut = np.zeros(len(lower), dtype=np.int64)
    width = upper[split] - lower[split]
    sizes = np.array([attribute.size for attribute in attributes])
    axis[split] = np.argmax(np.where(width > 1, width / sizes, 0.0), axis=1)
    for j, attribute in enumerate(attributes):
        nodes = split[axis[split] == j]
        low, high = lower[nodes, j], upper[nodes, j]
        if attribute.joins is None:
            middle = low + (high - low) // 2
            cut[nodes] = np.where(attribute.gap & (high == attribute.size), high - 1, middle)
        else:
            ends, back = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
            cuts = np.array([attribute.cut(int(a), int(b)) for a, b in ends], dtype=np.int64)
            cut[nodes] = cuts[back.ravel()]
    return axis, cut


def _offsets(
    tree: Tree,
    summed: Sequence[int],
    *,
    epsilon: Fraction,
    noise: Noise,
) -> tuple[Floats, Spending]:
    """Noisy sums of distances from the middle of each leaf, in codes.

    A cell becomes a whole number between -R and R by its place between its leaf's ends, R = 2^16:
    a fixed function of the cell and of the published leaf. A changed record takes at most R
    from the sum of one leaf and brings at most R to another, or moves one by 2 R: 2 R a
    column, and all columns have a share in one vector.
    """
    exact = tree.walk.ask(
        partial(Descent.offsets, lower=tree.lower, upper=tree.upper, summed=tuple(summed))
    )
    reach = (tree.upper - 1 - tree.lower)[:, list(summed)] / (2 * _LOCAL)
    noisy, spending = noisy_answers(
        exact,
        sensitivity=2 * _LOCAL * len(summed),
        epsilon=epsilon,
        target="sums of its leaves",
        noise=noise,
    )
    return noisy * reach, spending


def _spread(
    tree: Tree, sizes: Integers, attributes: Sequence[Attribute], rng: np.random.Generator
) -> list[Integers | Floats]:
    """Codes of the rows, leaf by leaf: evenly over each side of the box, sides unrelated.

    With c rows in a leaf, its r-th row in a random order takes a random place of the r-th of c
    equal parts of the side (a Latin hypercube).
    """
    leaf = np.repeat(np.arange(len(tree)), sizes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows: list[Integers | Floats] = []
    for j, attribute in enumerate(attributes):
        order = np.argsort(leaf + rng.random(leaf.size))
        rank = np.empty(leaf.size)
        rank[order] = np.arange(leaf.size) - starts
        low, width = tree.lower[leaf, j], (tree.upper - tree.lower)[leaf, j]
        inside = ((rank + rng.random(leaf.size)) / sizes[leaf] * width).astype(np.int64)
        place = low + np.minimum(inside, width - 1)
        rows.append(place if attribute.order is None else np.array(attribute.order)[place])
    return rows

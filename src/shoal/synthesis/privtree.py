"""PrivTree microaggregation: a private tree over mixed columns, and rows drawn from its leaves.

The tree is that of `adaptive_tree`, over the public domain: a node is halved across its widest
side, in the middle. Leaves get noisy counts and, if wanted, noisy sums. Rows are drawn from leaves:
post-processing.

Theorem (ours, unreviewed): `privtree` costs its price, for change-one neighbours, n public, and for
add-remove neighbours. Proof. The tree costs what `adaptive_tree` proves: 3.607 over the scale of
its noise if a record changes, 2.607 if one comes or goes. Given the tree, leaf counts move by at
most 2 in all, or by 1. A leaf's sums are taken in units of its own width, so they move by at
most that width, which is far less than the column's, or by half of it (`_offsets`). Everything that
chooses (the shares of the price, the axis to halve, where to halve it) is public, so the three
prices add up. For add-remove neighbours the number of records is used nowhere but as an answer
that was paid for (`shoal.mechanism.records`). QED

In mathematical notation: docs/explanation/proofs.md, "PrivTree".

References:
    Zhang, Xiao, Xie, "PrivTree: a differentially private algorithm for hierarchical
    decompositions", SIGMOD 2016. doi:10.1145/2882903.2882928
"""

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Neighbours, Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.consistent_counts import apportion, project
from shoal.mechanism.noisy_answers import noise_variance, noisy_answers
from shoal.mechanism.records import Columns, RecordTotal, permit_total
from shoal.mechanism.systematic_sampling import strewn
from shoal.synthesis.adaptive_tree import (
    UNITS,
    AdaptiveAxis,
    AdaptiveTree,
    Descent,
    grow,
    leaf_counts,
    structure_price,
)
from shoal.synthesis.domain import Domain, Measurement, Sort, SyntheticRows, records

_LOCAL = 1 << 16  # steps between the ends of a leaf, for sums
_TRUST = 3  # A centroid is used where a leaf counts more than so many scales of its noise.


class Fill(StrEnum):
    """How a leaf's count becomes rows.

    `centroid`: its noisy mean, for numeric columns; least squared distance. `uniform`: spread
    evenly over the box; best for counting at small epsilon.
    """

    CENTROID = "centroid"
    UNIFORM = "uniform"


def privtree(
    codes: Sequence[NDArray[Any]] | Columns,
    domains: Sequence[Domain],
    *,
    price: Price,
    noise: Noise,
    rng: np.random.Generator,
    total: RecordTotal | None = None,
    fill: Fill = Fill.CENTROID,
    theta: int = 0,
    progress: Progress = silent,
) -> SyntheticRows:
    """Draw as many rows as there are records from the leaves of a private tree.

    The budget is divided into 0.4 for the tree, 0.4 for the leaves' counts and 0.2 for their sums;
    without sums 0.5 and 0.5. What the tree cannot use, because lam must not fall below 1 / ln 2,
    goes to counts.

    Noisy counts are projected on non-negative numbers with sum n and rounded. A leaf's rows take
    its centroid in numeric columns, where the leaf is large enough that the centroid beats
    the middle of the box, and are spread evenly over the box in all others.

    Cost: O(m) per record and level. Axes are halved widest first, in proportion to their domains;
    ties go to the first column.

    Not promised: leaves of at least k records. theta is a threshold for splitting: a node is split
    where its noisy penalised count exceeds so many records. A leaf may hold one record or none.

    The other arguments are those of `maxent`.
    """
    columns = records(codes, domains)
    total = permit_total(columns, price, total)
    numeric = [j for j, domain in enumerate(domains) if domain.numeric]
    summed = numeric if fill is Fill.CENTROID else []
    share = Fraction(2, 5) if summed else Fraction(1, 2)
    structure = structure_price(price, share)
    rest = price - structure
    sums = rest * (Fraction(1, 3) if summed else Fraction(0))
    space = AdaptiveAxis(tuple(domains))
    tree = grow(columns, space, price=structure, theta=theta, noise=noise, progress=progress)
    progress("counting leaves", 0, 1)
    counts, counted = leaf_counts(tree, price=rest - sums, noise=noise)
    spread = float(counts.size * noise_variance(counted))
    n = total.refine([(float(counts.sum()), spread)]).rows
    privacy_losses = [tree.privacy_loss, counted]
    middles = (tree.lower + tree.upper - 1) / 2
    centres: Floats | None = None
    if summed:
        offsets, privacy_loss = _offsets(tree, summed, price=sums, noise=noise)
        privacy_losses.append(privacy_loss)
        limit = _TRUST * float(privacy_loss.scale) / (2 * _LOCAL)
        trusted = np.where(counts > limit, counts, np.inf)
        centres = middles[:, summed] + offsets / trusted[:, None]
        centres = np.clip(centres, tree.lower[:, summed], tree.upper[:, summed] - 1)
    sizes = apportion(project(counts, n), n)
    rows = _spread(tree, sizes, domains, rng)
    if centres is not None:
        for number, j in enumerate(summed):
            rows[j] = np.repeat(centres[:, number], sizes)
    order = rng.permutation(n)
    measurement = Measurement(
        columns=tuple(range(len(domains))),
        groups=(tree.lower, tree.upper),
        counts=counts,
        scale=counted.scale,
        sort=Sort.TREE,
        mechanism=counted.mechanism,
    )
    facts = {"leaves": len(tree), "noise scale of a split": float(tree.privacy_loss.scale / UNITS)}
    return SyntheticRows(
        tuple(row[order] for row in rows), tuple(privacy_losses), (measurement,), facts
    )


def _offsets(
    tree: AdaptiveTree,
    summed: Sequence[int],
    *,
    price: Price,
    noise: Noise,
) -> tuple[Floats, PrivacyLoss]:
    """Measure sums of distances from the middle of each leaf, in codes, with noise.

    A cell becomes a whole number between -R and R by where it lies in its leaf, R = 2^16: a fixed
    function of the cell and of the published leaf. A changed record moves the sums of two leaves by
    at most R each, or that of one leaf by 2 R: 2 R per column, and all columns form one vector. An
    added or removed record moves it by R per column. In squares that is at most (2 R)^2 a column,
    because 2 R^2 is less, or R^2.
    """
    exact = tree.walk.ask(partial(_sums, lower=tree.lower, upper=tree.upper, summed=tuple(summed)))
    reach = (tree.upper - 1 - tree.lower)[:, list(summed)] / (2 * _LOCAL)
    moved = _LOCAL * len(summed)
    noisy, privacy_loss = noisy_answers(
        exact,
        reach={Neighbours.CHANGE_ONE: 2 * moved, Neighbours.ADD_REMOVE: moved},
        squared={
            Neighbours.CHANGE_ONE: 4 * _LOCAL * moved,
            Neighbours.ADD_REMOVE: _LOCAL * moved,
        },
        price=price,
        target="sums in the leaves",
        noise=noise,
    )
    return noisy * reach, privacy_loss


def _sums(block: Descent, lower: Ints, upper: Ints, summed: Sequence[int]) -> Ints:
    """Sum the records' positions relative to the ends of their leaves; see `_offsets`."""
    labels = block.labels
    exact = np.empty((len(lower), len(summed)), dtype=np.int64)
    for number, j in enumerate(summed):
        low, last = lower[:, j], upper[:, j] - 1 - lower[:, j]
        local = (block.columns[j] - low[labels]) * (2 * _LOCAL)
        local //= np.maximum(last, 1)[labels]
        local -= np.where(last > 0, _LOCAL, 0)[labels]
        # Whole numbers below 2^53 add up exactly in floating point.
        exact[:, number] = np.bincount(labels, local, minlength=len(lower)).astype(np.int64)
    return exact


def _spread(
    tree: AdaptiveTree, sizes: Ints, domains: Sequence[Domain], rng: np.random.Generator
) -> list[Ints | Floats]:
    """Draw codes leaf by leaf: evenly and independently over each side of the box.

    A Latin hypercube: see `strewn`.
    """
    leaf = np.repeat(np.arange(len(tree)), sizes)
    rows: list[Ints | Floats] = []
    for j, domain in enumerate(domains):
        low, width = tree.lower[leaf, j], (tree.upper - tree.lower)[leaf, j]
        inside = (strewn(sizes, rng) * width).astype(np.int64)
        position = low + np.minimum(inside, width - 1)
        rows.append(position if domain.order is None else np.array(domain.order)[position])
    return rows

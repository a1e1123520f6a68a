"""Make noisy counts consistent, in a list or in a tree: post-processing without privacy loss.

All of it is post-processing of noisy counts, and costs nothing.

A tree is a list of levels, the root first. Every node but the root has a parent on the level
above; every node above the last level has at least one child. The children of a node stand next
to one another, in the order of their parents. A node with one child is a box that is counted
again on the next level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, expm1
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints

_HALVINGS = 80


def project(counts: NDArray[Any], total: float) -> Floats:
    """Project counts to the nearest non-negative numbers with a given sum.

    With u the counts in decreasing order and r the largest index with
    u_r > (u_1 + .. + u_r - total) / r =: t, the answer is max(count - t, 0). Cost O(k log k).

    Args:
        counts: at least one.
        total: not negative.

    References:
        Held, Wolfe, Crowder, "Validation of subgradient optimization", Math. Program. 6 (1974).
        doi:10.1007/BF01580223

    >>> project(np.array([5, -3, 1]), 4)
    array([4., 0., 0.])
    """
    counts = np.asarray(counts, dtype=np.float64)
    counts = counts - counts.max()  # a total far below the counts would be lost in rounding
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = np.flatnonzero(falling >= excess)[-1]
    projected: Floats = np.maximum(counts - excess[last], 0.0)
    return projected


def scale_to(weights: Floats, total: float) -> Floats:
    """Scale weights to a given sum; equally if all weights are zero.

    Every step that divides an answer by its own sum uses it, because noise can make that sum zero.

    >>> scale_to(np.array([1.0, 3.0]), 8), scale_to(np.zeros(2), 8)
    (array([2., 6.]), array([4., 4.]))
    """
    mass = float(weights.sum())
    factor = total / mass if mass > 0 else np.inf
    if not 0 < factor < np.inf:
        return np.full(weights.shape, total / max(weights.size, 1))
    scaled: Floats = weights * factor
    return scaled


def shrink(
    counts: NDArray[Any], total: float, variance: float, *, towards: Floats | None = None
) -> Floats:
    """Shrink noisy counts towards given shares, as strongly as their noise warrants.

    With d counts, y = counts / total, W = total^2 / variance and q the others' shares, by default
    all equal, the answer is total times

        argmin over p    d KL(p || q) + (W / 2) ||p - y||^2,

    as if d further records had been observed, distributed as q. Where noise is small that is
    `project`, nearly; where it is large, projection keeps the luckiest codes and sets the others to
    zero, and this does not: where its scale was three times the mean count, projection was more
    than twice as far from the truth (docs/research/drawn-rows.md).

    Setting the derivative to zero, p + a ln(p / q) = y - t with a = d / W and one t for all, so
    that p = a w((y - t) / a + ln(q / a)) with w the Wright omega function, w + ln w = x. The sum
    falls in t, which lies between min (y - q) and max (y - q), and is found by bisection. Cost
    O(d).

    Args:
        counts: at least one.
        total: not negative.
        variance: of their noise, positive.
        towards: positive, with any sum.

    >>> shrink(np.array([60, -20]), 40, 1.0).round(1)
    array([40.,  0.])
    >>> shrink(np.array([60, -20]), 40, 10_000.0).round(1)
    array([21.5, 18.5])
    """
    if total <= 0:
        return np.zeros(len(counts))
    shares = np.asarray(counts, dtype=np.float64) / total
    prior = np.ones(shares.size) if towards is None else np.maximum(towards, 1e-300)
    prior = prior / prior.sum()
    pull = shares.size * variance / total**2
    start = np.log(prior) - np.log(pull)
    low, high = float((shares - prior).min()), float((shares - prior).max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if pull * scipy.special.wrightomega((shares - middle) / pull + start).sum() > 1:
            low = middle
        else:
            high = middle
    shrunk = pull * scipy.special.wrightomega((shares - high) / pull + start)
    return scale_to(shrunk, total)


def apportion(weights: Floats, total: int) -> Ints:
    """Apportion whole numbers by largest remainders; ties go to the lowest index.

    >>> apportion(np.array([1.0, 1.0, 2.0]), 5)
    array([1, 1, 3])
    """
    shares = scale_to(weights, total)
    floors: Ints = np.floor(shares).astype(np.int64)
    missing = total - int(floors.sum())
    # Rounding can push a share up to a whole number, so the floors may add up to one too many.
    order = np.argsort(-(shares - floors), kind="stable")
    if missing >= 0:
        floors[order[:missing]] += 1
    else:
        last = order[::-1]
        floors[last[floors[last] > 0][:-missing]] -= 1
    return floors


_NEVER = -1e300  # Lower than any count; unlike infinity, it can be added up.
_FAINT = 1e-200  # A smaller sum is brought to 1 first: the scale to the total would overflow.


class CountFit(StrEnum):
    """How noisy counts are made consistent.

    `none`: nothing, each is released as it was drawn. `least-squares`: parents are the sums of
    their children. `non-negative`: and no number is below zero.
    """

    NONE = "none"
    LEAST_SQUARES = "least-squares"
    NON_NEGATIVE = "non-negative"


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of a tree at one depth, with their counts.

    Attributes:
        parents: of each node, its place on the level above; non-decreasing, without gaps.
        counts: of each node, with noise.
        variance: of the noise, the same for all; 0 where counts are known, and infinite where
            nothing was counted.
    """

    parents: Ints
    counts: Ints
    variance: float


def laplace_variance(scale: float) -> float:
    """Variance of discrete Laplace noise: 2 a / (1 - a)^2 with a = exp(-1 / scale).

    >>> round(laplace_variance(10.0), 2)
    199.83
    """
    return 2 * exp(-1 / scale) / expm1(-1 / scale) ** 2


def fit_levels(levels: Sequence[Level], fit: CountFit) -> list[Floats]:
    """Fit the numbers of each level, root first."""
    if fit is CountFit.NONE:
        return [level.counts.astype(np.float64) for level in levels]
    numbers = least_squares(levels)
    return numbers if fit is CountFit.LEAST_SQUARES else non_negative(numbers, levels)


def least_squares(levels: Sequence[Level]) -> list[Floats]:
    """Return the numbers nearest to the noisy counts in which parents are the sums of children.

    Nearest: the sum over nodes of (x - y)^2 / variance is least; a count of variance 0 is kept.
    For boxes that do not depend on the counts, that is the linear unbiased estimate of least
    variance for every sum of nodes (Gauss and Markov).

    Two passes, as Hay et al. and Cormode et al. have it, here for any variances and any numbers
    of children. Upwards, a node's own count y of variance v and the sum S of its children's
    estimates of variance U are weighed against one another:

        z = (U y + v S) / (U + v),    u = U v / (U + v),

    and z = y, u = v on the last level. Downwards, x = z at the root, and what a parent has more
    than its children's z is shared out in proportion to their u:

        x_child = z_child + u_child / U (x_parent - S).

    That is exact because, given a parent, its subtrees say nothing about each other. Cost: linear.

    Returns:
        The estimates of each level.

    References:
        Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private
        histograms through consistency", VLDB 2010, Theorem 3. doi:10.14778/1920841.1920970
        Cormode, Procopiuc, Shen, Srivastava, Yu, "Differentially private spatial
        decompositions", ICDE 2012, section V. doi:10.1109/ICDE.2012.16
    """
    estimate = levels[-1].counts.astype(np.float64)
    spread = np.full(estimate.size, levels[-1].variance)
    passed = [(estimate, spread)]
    sums: list[tuple[Floats, Floats]] = []
    for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        total, loose = _sums(below.parents, estimate), _sums(below.parents, spread)
        sums.append((total, loose))
        share = 1.0 if level.variance == np.inf else level.variance / (loose + level.variance)
        estimate = level.counts + share * (total - level.counts)
        spread = loose * share
        passed.append((estimate, spread))
    estimates = [passed.pop()[0]]
    for level in levels[1:]:
        (estimate, spread), (total, loose) = passed.pop(), sums.pop()
        gap = (estimates[-1] - total) / loose
        estimates.append(estimate + spread * gap[level.parents])
    return estimates


def _sums(parents: Ints, numbers: Floats) -> Floats:
    """Sum the numbers of each node's children."""
    return np.bincount(parents, numbers).astype(np.float64)


def non_negative(fitted: Sequence[Floats], levels: Sequence[Level]) -> list[Floats]:
    """Make estimates non-negative, from the root downwards.

    The root becomes 0 if it is negative. Then the children of each node become the nearest
    numbers >= 0, by least squares, that add up to the node: max(x - t, 0) with t the one number
    for which the sum is right. To set negatives to zero and do no more would let every empty
    region gain people, and the table grow.

    Cost: sorting the children of each node.
    """
    clamped = [np.maximum(fitted[0], 0.0)]
    for level, estimate in zip(levels[1:], fitted[1:], strict=True):
        clamped.append(_onto_simplices(estimate, level.parents, clamped[-1]))
    return clamped


def _onto_simplices(values: Floats, parents: Ints, totals: Floats) -> Floats:
    """Project the children of each node onto {x >= 0, sum x = total of the node}."""
    sizes = np.bincount(parents)
    place = np.arange(values.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.full((sizes.size, int(sizes.max())), _NEVER)
    rows[parents, place] = values
    falling = -np.sort(-rows, axis=1)
    above = np.cumsum(falling, axis=1) - totals[:, None]
    cuts = above / np.arange(1, rows.shape[1] + 1)
    kept = falling >= cuts
    kept[:, 0] = True
    last = kept.shape[1] - 1 - np.argmax(kept[:, ::-1], axis=1)
    cut = cuts[np.arange(sizes.size), last]
    projected: Floats = np.maximum(values - cut[parents], 0.0)
    return projected


def whole(counts: Floats, total: int, offset: float) -> Ints:
    """Round counts to whole numbers with a given total, by systematic sampling.

    The counts are scaled to the total, added up one after another, and a person is placed
    wherever the sum passes offset, 1 + offset, 2 + offset ... With an offset that is uniform in
    [0, 1) each number is right in expectation; every run of neighbours is right within 1.

    >>> whole(np.array([0.5, 1.5, 0.0, 1.0]), 3, 0.25)
    array([1, 1, 0, 1])
    """
    sums = np.cumsum(counts)
    if sums[-1] <= 0:
        sums = np.arange(1.0, counts.size + 1)
    elif sums[-1] < _FAINT:
        sums /= sums[-1]
    passed = np.clip(np.ceil(sums * (total / sums[-1]) - offset), 0, total)
    passed[-1] = total  # whatever rounding did to the last sum
    people: Ints = np.diff(passed, prepend=0.0).astype(np.int64)
    return people

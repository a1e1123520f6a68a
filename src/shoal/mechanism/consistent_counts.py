"""Make noisy counts consistent: post-processing without privacy loss."""

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

    Every step that divides an answer by its own sum asks here: noise can leave nothing to divide.

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

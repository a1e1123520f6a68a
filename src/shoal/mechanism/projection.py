"""Noisy counts made consistent: post-processing that costs nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def project(counts: NDArray[Any], total: float) -> Floats:
    """The nearest non-negative numbers with a given sum, in squared distance.

    With u the counts in decreasing order and r the largest index with
    u_r > (u_1 + .. + u_r - total) / r =: t, the answer is max(count - t, 0). Cost O(k log k).

    Args:
        counts: at least one.
        total: positive.

    References:
        Held, Wolfe, Crowder, "Validation of subgradient optimization", Math. Program. 6 (1974).
        doi:10.1007/BF01580223

    >>> project(np.array([5, -3, 1]), 4)
    array([4., 0., 0.])
    """
    counts = np.asarray(counts, dtype=np.float64)
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    projected: Floats = np.maximum(counts - excess[last], 0.0)
    return projected


def apportion(weights: Floats, total: int) -> Integers:
    """Whole numbers in proportion to weights, by largest remainders; ties to the lowest index.

    >>> apportion(np.array([1.0, 1.0, 2.0]), 5)
    array([1, 1, 3])
    """
    shares = weights * (total / weights.sum())
    whole: Integers = np.floor(shares).astype(np.int64)
    missing = total - int(whole.sum())
    # The floor of a share that rounding pushed over a whole number can take one too many.
    order = np.argsort(-(shares - whole), kind="stable")
    if missing >= 0:
        whole[order[:missing]] += 1
    else:
        last = order[::-1]
        whole[last[whole[last] > 0][:-missing]] -= 1
    return whole

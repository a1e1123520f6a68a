"""Codes in groups of about equal mass, from noisy one-way counts: post-processing.

Tables of several columns are counted over groups, so that their cells are few and full.
"""

import numpy as np

from shoal.core._arrays import Floats, Ints


def neighbours(masses: Floats, most: int) -> Ints:
    """Cut ordered codes into at most so many runs with the least sum of squared masses.

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
    """Put codes without order into at most so many groups: largest code first, lightest group.

    Ties go to the lower code and the lower group. Groups mix unlike codes: what they hide, no
    fit brings back.

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


def quantiles(counts: Ints, most: int) -> Ints:
    """Put a number's leaves, in order, into at most so many runs of about equal counts.

    Runs end where leaves end: a cut inside a leaf would split what was counted as one, and the
    one-way counts could not answer for either side.

    >>> quantiles(np.array([4, 4, 1, 1, 1, 1]), 3)
    array([0, 1, 2, 2, 2, 2])
    """
    ends = np.cumsum(counts)
    wanted = np.arange(1, most) * (ends[-1] / most)
    last = np.unique(np.searchsorted(ends, wanted))
    last = last[last < counts.size - 1]
    return np.searchsorted(last, np.arange(counts.size), side="left")

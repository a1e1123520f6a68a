"""Groups without a minimum size, for noise that decreases with group size."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Partition, Progress, silent
from shoal.core._arrays import Floats
from shoal.core.row_order import value_order
from shoal.errors import InputError
from shoal.partition._input import matrix
from shoal.partition.kernels.noise_aware import cheapest_ends, descend
from shoal.partition.kernels.univariate import label_runs
from shoal.partition.mdav import mdav

EVERY = 4096
"""Up to this many records, every k is tried."""
STARTS = 8
"""How many groupings, the cheapest ones, are improved."""
WORK = 1 << 30
"""The most distances that improving a grouping may compute."""


def noise_aware(X: ArrayLike, noise: float, *, progress: Progress = silent) -> Partition:
    """Group records for the least sum of squares plus expected noise.

    Every record of a group C will carry the group's mean, with noise whose expected square
    is noise / |C|^2. So the groups minimise

        cost = sum over groups of  SSE(C) + noise / |C|,    SSE(C) = sum |x - mean C|^2

    With noise = 0 every record is alone; the more noise, the larger the groups.

    One column: the least cost of all groupings, exactly but for rounding (see `_one_column`).
    Cost: that of sorting, then O(n log n).

    Several columns: never a cost above that of `mdav` with any k that is tried, one group of all
    included. Every k is tried for up to 4,096 records; beyond, every k up to 16 and then eight
    for each doubling. (Small ones are left out where their noise alone costs more.) The cheapest
    eight groupings are improved: groups merge and records move while the cost falls, and the
    best result is taken. Cost: that of `mdav` for each k, then O(n g d) per round for g groups;
    if one round takes more than 2^30 steps, groupings stay as they are.

    Ties go to the lowest index and the smallest k.

    Not promised: any group size; for several columns the least cost of all.

    Args:
        X: records by columns, any finite numbers; not changed.
        noise: expected squared length of the noise on a group of one record, in units of X.
        progress: called now and then with the number of sizes that were tried.

    References:
        Soria-Comas and Domingo-Ferrer, "Differentially private data sets based on
        microaggregation and record perturbation", MDAI 2017, future work.
        Galil and Park, "Dynamic programming with convexity, concavity and sparsity",
        Theoretical Computer Science 92 (1992), for the queue. doi:10.1016/0304-3975(92)90135-3

    >>> noise_aware([[0.0], [0.1], [5.0], [5.1]], 0.5).labels
    array([0, 0, 1, 1])
    """
    X = matrix(X)
    n = len(X)
    if not (np.isfinite(noise) and noise >= 0):
        raise InputError(
            f"The argument noise, the expected squared length of the noise, must be a number of "
            f"at least 0; found {noise}."
        )
    if not n:
        raise InputError("Cannot group a table without records.")
    extent = float(np.max(np.ptp(X / 2, axis=0))) * 2
    if n == 1 or noise == 0:
        return Partition(np.arange(n))
    # All in one group cost at most n d extent^2 / 4 + noise / n, two groups at least 4 noise / n.
    if extent == 0 or noise / extent / extent >= n * n * X.shape[1]:
        return Partition(np.zeros(n, np.int64))
    shift = -int(np.frexp(extent)[1])
    Z, noise = np.ldexp(X - X[n // 2], shift), float(np.ldexp(noise, 2 * shift))
    if Z.shape[1] == 1:
        return _one_column(Z[:, 0], noise)
    return _search(Z, noise, progress)


def grouping_cost(X: ArrayLike, partition: Partition, noise: float) -> float:
    """Compute the objective of `noise_aware`: squares within groups plus noise / size.

    >>> grouping_cost([[0.0], [2.0], [5.0]], Partition([0, 0, 1]), 4.0)
    8.0
    """
    X = matrix(X)
    labels, sizes = partition.labels, partition.sizes
    squares = 0.0
    for x in X.T:
        # Relative to one record of each group, so nothing is lost where values are large.
        near = x - x[np.unique(labels, return_index=True)[1]][labels]
        means = np.bincount(labels, near) / sizes
        squares += float(np.sum((near - means[labels]) ** 2))
    return squares + noise * float(np.sum(1 / sizes))


def _one_column(v: Floats, noise: float) -> Partition:
    """Find the least cost of all groupings of one column, by dynamic programming.

    Groups need only be runs of the sorted column. Take any grouping, and give the records in
    sorted order to its groups in the order of their means, each as many as it had: no sum of
    squares to given points, in given numbers, is smaller, and means of its own lower it further.
    Sizes, and with them the noise, stay.

    Between j < j' <= i < i' we have w(j, i) + w(j', i') <= w(j, i') + w(j', i) for the cost w of
    a run: squares have it, as is well known, and noise over the length because 1 / x is convex.
    Hence the later of two beginnings stays better once it is, and each end takes O(log n).

    Sums are those of values in [-1, 1]: costs are off by about 2^-52 n of the squared range.
    """
    order = value_order(v)
    begin = np.empty(len(v) + 1, np.int64)
    cheapest_ends(v[order], noise, begin)
    labels = np.empty(len(v), np.int64)
    label_runs(begin, order, labels)
    return Partition(labels)


def _search(Z: Floats, noise: float, progress: Progress) -> Partition:
    """Try sizes from the largest to the smallest, and improve the cheapest groupings."""
    n = len(Z)
    kept: list[tuple[float, int, Partition]] = []
    sizes = _sizes(n)
    for tried, k in enumerate(sizes):
        groups = n // k
        least = noise * ((groups - 1) / k + 1 / (n - (groups - 1) * k))
        if len(kept) == STARTS and least >= kept[-1][0]:
            break  # The noise of smaller groups alone costs more.
        partition = mdav(Z, k)
        kept.append((grouping_cost(Z, partition, noise), k, partition))
        kept = sorted(kept, key=lambda one: one[:2])[:STARTS]
        if tried % 64 == 0:
            progress("trying group sizes", tried, len(sizes))
    candidates = [(*c, 0) for c in kept]
    for number, (_, k, partition) in enumerate(kept):
        progress("improving groups", number, len(kept))
        rounds = WORK // (n * len(partition) * Z.shape[1])
        if rounds:
            labels = partition.labels.copy()
            descend(Z, noise, min(rounds, n), labels)
            better = Partition(np.unique(labels, return_inverse=True)[1])
            candidates.append((grouping_cost(Z, better, noise), k, better, 1))
    return min(candidates, key=lambda one: (one[0], one[3], one[1]))[2]


def _sizes(n: int) -> list[int]:
    """List the sizes to try, largest first: beyond n / 2 there is a single group."""
    half = n // 2
    if n <= EVERY:
        return [n, *range(half, 1, -1)]
    steps = np.arange(4, np.log2(half), 0.125)
    return [n, *sorted({*range(2, 16), *np.rint(2**steps).astype(int).tolist(), half})[::-1]]

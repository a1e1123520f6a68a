"""MDAV: maximum distance to average vector, exact at any size."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Partition, Progress, silent
from shoal.partition._input import group_size, matrix
from shoal.partition._kernels_brute import brute_rounds
from shoal.partition._scale import unit_scaled


def mdav(X: ArrayLike, k: int, *, progress: Progress = silent) -> Partition:
    """Group the records of X, k by k, around the extremes of what remains.

    While at least 3k records remain:

        c = mean of the remaining records
        r = the record farthest from c; its group is r and its k - 1 nearest
        s = of the records left then, the one farthest from r; its group likewise

    If 2k or more are left after that, one more group forms around the record farthest
    from their mean. The rest, k to 2k - 1 records, is the last group. Groups are numbered
    in the order in which they form.

    Distances are Euclidean: scale the columns first. Ties go to the lowest index. The
    partition is exactly that of the definition in the arithmetic of `_scale`, whatever
    path was taken.

    Not promised: the least possible sum of squares, which is NP-hard to find, and
    anything about a table with one record changed: groups may then differ everywhere.

    Args:
        X: records by columns, any finite numbers; not changed.
        k: least group size, at least 2.
        progress: called now and then with the number of grouped records.

    References:
        Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity
        through microaggregation", Data Mining and Knowledge Discovery 11 (2005).
        doi:10.1007/s10618-005-0007-5

    >>> mdav([[0.0], [0.1], [5.0], [5.1]], 2).labels
    array([0, 0, 1, 1])
    """
    X = matrix(X)
    n = len(X)
    k = group_size(k, n)
    Z = unit_scaled(X)
    labels = np.full(n, -1, np.int64)
    g = 0
    while n - g * k >= 2 * k:
        g = brute_rounds(Z, k, labels, g, max(200, (n - g * k) // (20 * k)))
        progress("mdav", g * k, n)
    labels[labels < 0] = g
    progress("mdav", n, n)
    return Partition(labels)

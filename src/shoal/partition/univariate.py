"""Microaggregation of one column at a time, by rank."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import Partition
from shoal.partition._input import column, group_size, matrix


def individual_ranking(x: ArrayLike, k: int) -> Partition:
    """Group the values of one column in blocks of k by rank, the bigger block last.

    With g = floor(n / k), the record of rank i (from 0) is in group min(floor(i / k), g - 1):
    where groups start depends on n and k alone, never on the values. That is what bounds
    the change of the sorted group means by (largest change of a value) / k in all.

    Equal values are ranked by index. Sorting dominates the cost.

    Not promised: the least sum of squares (see `optimal_ranking`), and anything about
    the combination of several columns: k-anonymity holds for each column by itself.

    References:
        Defays and Nanopoulos, "Panels of enterprises and confidentiality: the small
        aggregates method", Statistics Canada Symposium 92 (1993).
        Sánchez, Domingo-Ferrer, Martínez, "Improving the utility of differential privacy
        via univariate microaggregation", PSD 2014, Lemma 1.
        doi:10.1007/978-3-319-11257-2_11

    >>> individual_ranking([5, 1, 4, 2, 3], 2).labels
    array([1, 0, 1, 0, 1])
    """
    x = column(x)
    k = group_size(k, len(x))
    return _blocks_by_rank(x, k)


def individual_rankings(X: ArrayLike, k: int) -> tuple[Partition, ...]:
    """Rank every column of X by itself: one partition a column, see `individual_ranking`.

    >>> [p.labels.tolist() for p in individual_rankings([[1, 9], [2, 8], [3, 7], [4, 6]], 2)]
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    """
    X = matrix(X)
    k = group_size(k, len(X))
    return tuple(_blocks_by_rank(np.ascontiguousarray(x), k) for x in X.T)


def _blocks_by_rank(x: NDArray[np.float64], k: int) -> Partition:
    n = len(x)
    labels = np.empty(n, np.int64)
    labels[np.argsort(x, kind="stable")] = np.minimum(np.arange(n) // k, n // k - 1)
    return Partition(labels)

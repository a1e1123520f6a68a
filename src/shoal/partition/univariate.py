"""Microaggregation of one column at a time, by rank."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import Partition
from shoal.core._arrays import Floats
from shoal.core.row_order import value_order
from shoal.partition._exact_scale import unit_scaled
from shoal.partition._input import column, group_size, matrix
from shoal.partition.kernels.univariate import label_runs, optimal_ends


def individual_ranking(x: ArrayLike, k: int) -> Partition:
    """Group the values of one column in blocks of k by rank, the larger block last.

    With g = floor(n / k), the record of rank i (from 0) is in group min(floor(i / k), g - 1):
    where groups start depends on n and k alone, never on the values. That is what bounds
    the change of the sorted group means by (largest change of a value) / k in all.

    Equal values are ranked by index. Sorting dominates the cost.

    Not promised: the least sum of squares (see `optimal_univariate`), and anything about
    the combination of several columns: k-anonymity holds for each column by itself.

    References:
        Defays and Nanopoulos, "Panels of enterprises and confidentiality: the small
        aggregates method", Statistics Canada Symposium 92 (1993).
        Sánchez, Domingo-Ferrer, Martínez, "Improving the utility of differential privacy
        via univariate microaggregation", PSD 2014, LNCS 8744, Lemma 1.

    >>> individual_ranking([5, 1, 4, 2, 3], 2).labels
    array([1, 0, 1, 0, 1])
    """
    x = column(x)
    k = group_size(k, len(x))
    return _blocks_by_rank(x, k)


def individual_rankings(X: ArrayLike, k: int) -> tuple[Partition, ...]:
    """Rank every column of X separately: one partition per column, see `individual_ranking`.

    >>> [p.labels.tolist() for p in individual_rankings([[1, 9], [2, 8], [3, 7], [4, 6]], 2)]
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    """
    X = matrix(X)
    k = group_size(k, len(X))
    return tuple(_blocks_by_rank(np.ascontiguousarray(x), k) for x in X.T)


def optimal_univariate(x: ArrayLike, k: int) -> Partition:
    """Group the values of one column so that their sum of squares within groups is least.

    An optimal grouping consists of runs of k to 2k - 1 values of the sorted column, so
    a dynamic program over the sorted values v finds it:

        f(0) = 0,  f(i) = min over j in i - 2k + 1 .. i - k of f(j) + SSE(v[j:i])

    Groups are numbered by rank. Equal values are ranked by index; of groupings of equal
    cost the one whose last group begins earlier is taken. Cost: that of
    sorting, then O(n) whatever k is, by the SMAWK algorithm on k ends at a time.

    Where groups begin depends on the data: the bound on the change of the group means
    that `individual_ranking` has does not hold here.

    References:
        Hansen and Mukherjee, "A polynomial algorithm for optimal univariate
        microaggregation", IEEE TKDE 15 (2003). doi:10.1109/TKDE.2003.1209020
        Aggarwal et al., "Geometric applications of a matrix-searching algorithm",
        Algorithmica 2 (1987). doi:10.1007/BF01840359

    >>> optimal_univariate([1.0, 9.0, 1.1, 9.1, 1.2], 2).labels
    array([0, 1, 0, 1, 0])
    """
    x = column(x)
    k = group_size(k, len(x))
    return _least_squares(x, k)


def optimal_univariates(X: ArrayLike, k: int) -> tuple[Partition, ...]:
    """Group every column of X separately: one partition per column, see `optimal_univariate`.

    >>> [p.labels.tolist() for p in optimal_univariates([[1, 9], [2, 8], [3, 7], [4, 6]], 2)]
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    """
    X = matrix(X)
    k = group_size(k, len(X))
    return tuple(_least_squares(np.ascontiguousarray(x), k) for x in X.T)


def optimal_begins(values: Floats, k: int) -> NDArray[np.int64]:
    """Return where the groups of `optimal_univariate` begin in a sorted column.

    >>> optimal_begins(np.array([1.0, 1.1, 1.2, 9.0, 9.1]), 2)
    array([0, 3])
    """
    begin = np.empty(len(values) + 1, np.int64)
    optimal_ends(unit_scaled(values), k, begin)
    begins = []
    end = len(values)
    while end > 0:
        end = int(begin[end])
        begins.append(end)
    return np.array(begins[::-1], dtype=np.int64)


def _blocks_by_rank(x: Floats, k: int) -> Partition:
    n = len(x)
    labels = np.empty(n, np.int64)
    labels[value_order(x)] = np.minimum(np.arange(n) // k, n // k - 1)
    return Partition(labels)


def _least_squares(x: Floats, k: int) -> Partition:
    n = len(x)
    order = value_order(x)
    begin = np.empty(n + 1, np.int64)
    optimal_ends(unit_scaled(x[order]), k, begin)
    labels = np.empty(n, np.int64)
    label_runs(begin, order, labels)
    return Partition(labels)

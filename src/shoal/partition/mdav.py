"""MDAV: maximum distance to average vector, exact at any size."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.partition._input import group_size
from shoal.partition.kernels.mdav_brute import brute_rounds
from shoal.partition.kernels.mdav_cells import Cells, cell_rounds, fill, number_rows, of_few_values
from shoal.partition.kernels.mdav_tree import plant, tree_rounds
from shoal.partition.kernels.shared import MixedSpace
from shoal.partition.mixed_records import Scaled, mixed_records, scale


def mdav(X: ArrayLike | MixedRecords, k: int, *, progress: Progress = silent) -> Partition:
    """Group the records of X, k by k, around the extremes of what remains.

    While at least 3k records remain:

        c = mean of the remaining records
        r = the record farthest from c; its group is r and its k - 1 nearest
        s = of the records left then, the one farthest from r; its group likewise

    If 2k or more are left after that, one more group forms around the record farthest
    from their mean. The rest, k to 2k - 1 records, is the last group. Groups are numbered
    in the order in which they form.

    Distances are Euclidean, those of categories see `mixed_records`: scale the columns first. Ties
    go to the lowest index. The partition is exactly that of the definition in the arithmetic of
    `_exact_scale`, whatever path was taken.

    Cost: about n^1.2 over a kd-tree where few columns carry the spread, n c / k where records
    share c combinations of categories with few numbers in each, n^2 / k otherwise; the path is
    chosen at run time. Memory O(n d).

    Not promised: the least possible sum of squares, which is NP-hard to find, and
    anything about a table with one record changed: groups may then differ everywhere.

    Args:
        X: records by columns, any finite numbers, or `MixedRecords`; not changed.
        k: least group size, at least 2.
        progress: called now and then with the number of grouped records.

    References:
        Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity
        through microaggregation", Data Mining and Knowledge Discovery 11 (2005).
        doi:10.1007/s10618-005-0007-5

    >>> mdav([[0.0], [0.1], [5.0], [5.1]], 2).labels
    array([0, 0, 1, 1])
    """
    records = mixed_records(X)
    k = group_size(k, len(records))
    return Partition(_rounds(scale(records), k, progress))


def _rounds(
    records: Scaled,
    k: int,
    progress: Progress,
    *,
    tree_from: int = 4096,
    tree_while: float = 0.25,
    leaf: int = 64,
) -> Ints:
    """Run the rounds, over cells or a tree where that pays, and return the labels.

    Either is tried from `tree_from` records on and kept while its searches look at less
    than `tree_while` of the records for each group: beyond that, visiting all of them
    in float32 was measured to be as fast. Whenever half of the records have left, the
    rest is compacted and new cells or a new tree are made.
    """
    Z, space = records
    n = len(Z)
    labels = np.full(n, -1, np.int64)
    rest = np.arange(n)
    g = 0
    rounds = 64
    while len(rest) >= 2 * k:
        group_of = np.full(len(rest), -1, np.int64)
        cells = tree = None
        if len(rest) >= tree_from:
            cells = _cells(Z, space, leaf, tree_while)
            tree = None if cells else plant(Z, space, leaf, Z.mean(axis=0))
        while n - g * k >= max(2 * k, len(rest) / 2):
            live = n - g * k
            before, work = g, 0
            if cells:
                g, work = cell_rounds(Z, space, k, group_of, g, rounds, cells)
            elif tree:
                g, work = tree_rounds(Z, space, k, group_of, g, rounds, tree)
            else:
                g = brute_rounds(Z, space, k, group_of, g, rounds)
            if work > tree_while * live * (g - before):
                cells = tree = None
                tree_from = n + 1
            progress("grouping", g * k, n)
            rounds = max(64, live // (16 * k))
        labels[rest] = group_of
        left = group_of < 0
        rest = rest[left]
        Z = Z[left]
    labels[rest] = g
    progress("grouping", n, n)
    return labels


def _cells(Z: Floats, space: MixedSpace, leaf: int, share: float) -> Cells | None:
    """Cells of records with equal categories; None if they are too many for that share of records.

    Numbers so small that a squared difference may vanish get none either: there, records at
    distance zero need not be equal.
    """
    flat = of_few_values(Z)
    if not flat.any():
        return None
    point, firsts = number_rows(Z)
    U = Z[firsts]
    magnitudes = np.abs(U)
    if ((magnitudes > 0) & (magnitudes < 2.0**-400)).any() or (space.weight < 2.0**-400).any():
        return None
    cell, combinations = number_rows(np.ascontiguousarray(U[:, flat]))
    if 2 * (len(combinations) + 2 * len(U) / leaf) > share * len(Z):
        return None
    # Neighbours among the cells agree in the columns in which records lie farthest apart.
    rows = U[combinations]
    width = np.ptp(rows, axis=0)
    width[space.numbers :] = np.sqrt(2 * space.weight)
    order = np.lexsort([rows[:, j] for j in np.argsort(width) if flat[j]])
    cell = np.argsort(order)[cell]
    return fill(U, space, point, cell, len(combinations), flat, leaf)

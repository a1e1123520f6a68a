"""Merge rare combinations among drawn rows, for readers who count small cells; not for privacy.

The rows come out of a mechanism with a proved epsilon, so whatever is done to them is
post-processing and free. Combinations that k rows or more share stay as they are. The rows of all
others are put into groups of k or more by Mondrian, over the public unit box, and each group
takes the combination of its row nearest the group's mean. If fewer than k rows are left over, each
takes the nearest combination that stays.

Ties go to the first row, among combinations to the first in lexicographic order. The rule is a
function of the rows; it draws nothing.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints
from shoal.partition import mondrian
from shoal.partition.merging import medoids


def merge_rare_rows(rows: Floats, nominal: NDArray[np.bool_], least: int) -> Ints:
    """Return for each row the row whose combination replaces it, so `least` rows share each.

    Cost: O(n log n) per column. Rows are at least `least`, in [0, 1]. Nominal columns are compared
    as equal or not; for groups and their means they count by their places in the public order.

    >>> merge_rare_rows(np.array([[0.0], [0.0], [0.1], [1.0], [1.0]]), np.array([False]), 2)
    array([0, 1, 0, 3, 4])
    """
    source = np.arange(len(rows))
    kept, first, inverse, counts = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    rare = np.flatnonzero(counts[inverse.ravel()] < least)
    if rare.size >= least:
        groups = mondrian(rows[rare], least)
        source[rare] = rare[medoids(rows[rare], groups)[groups.labels]]
    elif rare.size:
        frequent = counts >= least
        for row in rare:
            apart = np.abs(kept[frequent] - rows[row])
            apart = np.where(nominal, apart > 0, apart).sum(axis=1)
            source[row] = first[frequent][np.argmin(apart)]
    return source

"""Privacy models as properties of class counts, each with the group that decides.

An equivalence class is a set of records that agree in all quasi-identifiers. A missing cell
is a value of its own: two missing cells are equal, and a missing cell never equals a present
one. Counts, not records, come in, so that they may come from anywhere.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray


def smallest_run(values: NDArray[np.float64]) -> int:
    """Size of the smallest class of one numeric column, NaN being a value. Cost of sorting."""
    ordered = np.sort(values)
    new = ordered[1:] != ordered[:-1]
    new[np.isnan(ordered[1:]) & np.isnan(ordered[:-1])] = False
    edges = np.flatnonzero(np.concatenate(([True], new, [True])))
    return int(np.diff(edges).min())


def k_when_missing_matches(classes: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Largest k such that every record matches at least k, if missing matches anything.

    This is the other reading of a missing cell in the literature: records match if they agree
    wherever both are present. Matching is then no equivalence, so that the smallest number
    of matches over all records is reported. Cost O(p^2 g log g) for p patterns of missing
    cells among g classes.

    Args:
        classes: one row a class, one integer code a column, -1 where missing.
        counts: records in each class.

    >>> k_when_missing_matches(np.array([[0, 1], [0, -1], [1, 1]]), np.array([1, 1, 2]))
    2
    """
    present = classes >= 0
    patterns, pattern = np.unique(present, axis=0, return_inverse=True)
    matches = np.zeros(len(classes), dtype=np.int64)
    groups = [np.flatnonzero(pattern.ravel() == p) for p in range(len(patterns))]
    for (p, mine), (q, theirs) in product(enumerate(groups), repeat=2):
        both = patterns[p] & patterns[q]
        rows = np.vstack([classes[mine][:, both], classes[theirs][:, both]])
        # Rows without a shared present column all match.
        key = np.unique(rows, axis=0, return_inverse=True)[1].ravel() if both.any() else None
        if key is None:
            matches[mine] += counts[theirs].sum()
            continue
        total = np.bincount(key[mine.size :], counts[theirs], minlength=int(key.max()) + 1)
        matches[mine] += total[key[: mine.size]].astype(np.int64)
    return int(matches.min())

"""Orders of nominal categories by semantic marginality over a hierarchy."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition._input import column, matrix


def marginality(distances: ArrayLike, counts: ArrayLike | None = None) -> Floats:
    """Measure how far each category lies from all others.

    With d(a, b) the semantic distance of two categories and n_b the number of records in
    category b, the marginality of a is

        m(a) = sum over b of n_b d(a, b)

    The least marginal category is the most central one.

    Args:
        distances: category by category, symmetric, zero on the diagonal; `path_lengths`
            gives them for a hierarchy.
        counts: records in each category. None weights all categories equally, which uses
            public quantities only.

    References:
        Domingo-Ferrer, Sánchez, Rufian-Torrell, "Anonymization of nominal data based on
        semantic marginality", Information Sciences 242 (2013).
        doi:10.1016/j.ins.2013.04.021

    >>> marginality([[0, 2, 4], [2, 0, 4], [4, 4, 0]], [1, 1, 1])
    array([6., 6., 8.])
    """
    D = matrix(distances, "distances")
    if D.shape[0] != D.shape[1] or (D < 0).any() or (D != D.T).any() or np.diagonal(D).any():
        raise InputError(
            "The distances between categories must be a square symmetric matrix of non-negative "
            "numbers with a "
            "zero diagonal."
        )
    weights = np.ones(len(D)) if counts is None else column(counts, "counts")
    if len(weights) != len(D) or (weights < 0).any():
        raise InputError(
            f"The counts must give a non-negative number for each of the {len(D)} categories."
        )
    result: Floats = D @ weights
    return result


def marginality_order(distances: ArrayLike, counts: ArrayLike | None = None) -> Ints:
    """Order categories from the most central to the most marginal; ties by code.

    The place of a category in this order can stand for it where a method ranks a column.
    Equally marginal categories are often far apart: give related categories neighbouring
    codes, as a walk through the hierarchy does, and ties keep them together.

    Args:
        distances: see `marginality`.
        counts: see `marginality`. Where a privacy claim needs an order that does not
            depend on the data, leave them out or give public ones.

    >>> marginality_order([[0, 4, 4], [4, 0, 2], [4, 2, 0]])
    array([1, 2, 0])
    """
    return np.argsort(marginality(distances, counts), kind="stable")


def path_lengths(paths: ArrayLike) -> Floats:
    """Count the edges between any two leaves of a hierarchy.

    Args:
        paths: leaf by level: the codes of the nodes on the way from the top level to the
            leaf itself, the same number for the same node. Shorter ways are filled up
            with -1 at the end. The root above the top level is not written.

    >>> path_lengths([[0, 10], [0, 11], [1, 12]])
    array([[0., 2., 4.],
           [2., 0., 4.],
           [4., 4., 0.]])
    """
    P = matrix(paths, "paths")
    used = P >= 0
    if (np.diff(used.astype(int), axis=1) > 0).any():
        raise InputError("The paths of a hierarchy must be padded with -1, and only at the end.")
    depth = used.sum(axis=1)
    shared = np.zeros((len(P), len(P)), np.int64)
    together = np.ones((len(P), len(P)), bool)
    for level, here in zip(P.T, used.T, strict=True):
        together &= (level[:, None] == level) & here[:, None] & here
        shared += together
    lengths: Floats = (depth[:, None] + depth - 2 * shared).astype(np.float64)
    return lengths

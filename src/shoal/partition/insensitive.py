"""Insensitive microaggregation: groups that follow public total orders.

In mathematical notation: docs/explanation/proofs.md, "Groups along a public order".
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import Partition
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, did_you_mean
from shoal.partition._exact_scale import squared_distances
from shoal.partition._input import group_size, matrix

Sorted = Literal["reference", "lexicographic", "hilbert"]
Order = Literal[Sorted, "corners"]


def insensitive(X: ArrayLike, k: int, *, order: Order = "reference") -> Partition:
    """Sort the records of X by a public total order and cut it in consecutive groups of k.

    With g = floor(n / k), the record at place i (from 0) is in group min(floor(i / k), g - 1).
    Changing one record moves each of the others by at most one place, so there is a
    bijection between the groups before and after in which two groups differ by at most
    one record. The group means then move by at most g / k times the diameter of the box
    in all, and no order by distance to a point does better.

    The orders, for X in the unit box:

        reference      distance to the corner (0, ..., 0)
        lexicographic  first column, then second, ...
        hilbert        place along a Hilbert curve through cells of 2^-b, where b is the
                       largest of 1..20 with b d <= 62 (1 above 62 columns)

    Equal places go to the lowest index, which keeps the order total and independent of
    the other records. Cost: that of sorting, and b d passes over X for the curve.

    With `corners` there is an order for each group, as section 4.3 of the reference has it:
    the k records nearest to a corner of the box are a group, the k of the others nearest to
    the next corner are one, and so on, until fewer than 2k are left. The next corner is the
    one farthest from the last, in ties from the one before it, and so on; then the lowest in
    binary. This is the reflected Gray code, each corner followed by its opposite; after
    all 2^d the first comes again. (The reference is not among our copies. The rule is
    that of a public program which follows it.) Cost: quadratic, as for MDAV.

    Proof that `corners` keeps the bijection. Let A be the records that both tables have
    left, x the one that only the first has, y the one that only the second has. The first k
    of A + x and of A + y in one total order both hold the first k - 1 of A, so they
    differ by at most one record. Together with what is left they are A + x and A + y, and
    what is left again has one record of its own in each table, or none.

    X must be scaled by public bounds: scaling by the data's own range or spread makes all
    records depend on each one, and the bijection is lost. That the values lie in [0, 1] is
    checked; that the bounds were public cannot be.

    Not promised: homogeneous groups, least of all in many columns. The smaller bound
    known for the Hilbert order is proved for two columns only.

    References:
        Soria-Comas, Domingo-Ferrer, Sánchez, Martínez, "Enhancing data utility in
        differential privacy via microaggregation-based k-anonymity", VLDB Journal 23
        (2014). doi:10.1007/s00778-014-0351-4
        Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
        doi:10.1063/1.1751381

    >>> insensitive([[0.1, 0.1], [0.9, 0.9], [0.2, 0.1], [0.8, 0.9]], 2).labels
    array([0, 1, 0, 1])
    """
    X = matrix(X)
    n = len(X)
    k = group_size(k, n)
    if order not in get_args(Order):
        raise InputError(
            f"There is no order of records named {order!r}.{did_you_mean(order, get_args(Order))}"
        )
    if order == "corners":
        return Partition(_nearest_to_corners(_in_box(X), k))
    labels = np.empty(n, np.int64)
    labels[_places(X, order)] = np.minimum(np.arange(n) // k, n // k - 1)
    return Partition(labels)


def _nearest_to_corners(X: Floats, k: int) -> Ints:
    """Take the k records nearest to each corner in turn; ties go to the lowest index."""
    n, d = X.shape
    labels = np.full(n, n // k - 1, np.int64)
    left = np.arange(n)
    known: dict[int, Floats] = {}
    for group in range(n // k - 1):
        pair = (group // 2) % 2 ** (d - 1)
        code = (pair ^ (pair >> 1)) ^ (-(group % 2))  # -1 turns every bit: the opposite corner
        if code not in known:
            if len(known) == 64:  # distances to further corners are not kept
                known.clear()
            corner = np.array([float(code >> j & 1) for j in range(d - 1, -1, -1)])
            known[code] = squared_distances(X, corner)
        far = known[code][left]
        edge = np.partition(far, k - 1)[k - 1]
        near = np.concatenate([np.flatnonzero(far < edge), np.flatnonzero(far == edge)])[:k]
        labels[left[near]] = group
        left = np.delete(left, near)
    return labels


def _in_box(X: Floats) -> Floats:
    outside = int(np.count_nonzero((X < 0) | (X > 1)))
    if outside:
        raise InputError(
            f"The columns X must be scaled to [0, 1] by public bounds; {outside} of its "
            f"{X.size} cells lie "
            "outside."
        )
    return X


def order_keys(X: Floats, order: Sorted) -> list[Floats] | list[Ints]:
    """Compute sort keys of the records, the leading one first, each from its own record alone."""
    _in_box(X)
    if order == "reference":
        return [squared_distances(X, np.zeros(X.shape[1]))]
    if order == "lexicographic":
        return list(X.T)
    bits = max(1, min(20, 62 // X.shape[1]))
    cells = np.minimum(np.floor(X * 2.0**bits), 2.0**bits - 1).astype(np.int64)
    return _hilbert_words(cells, bits)


def _places(X: Floats, order: Sorted) -> NDArray[np.intp]:
    """Sort the records by one of the orders, ties by index."""
    return np.lexsort(order_keys(X, order)[::-1])


def _hilbert_words(cells: Ints, bits: int) -> list[Ints]:
    """Return the position of each cell along the Hilbert curve, as words, the leading one first.

    A word holds at most 62 bits, so any number of columns will do.
    """
    planes = _hilbert_planes(cells, bits)
    words = []
    for start in range(0, len(planes), 62):
        word = np.zeros(len(cells), np.int64)
        for plane in planes[start : start + 62]:
            word = (word << 1) | plane
        words.append(word)
    return words


def _hilbert_planes(cells: Ints, bits: int) -> list[Ints]:
    """Return the bits of each cell's position along the curve, the leading one first.

    This is Skilling's transform from axes to the "transposed" Hilbert index: exchanges
    and inversions of the low bits, from the top plane down, then a Gray code.
    """
    axes = cells.T.copy()
    q = 1 << (bits - 1)
    while q > 1:
        low = q - 1
        for j in range(len(axes)):
            inverted = (axes[j] & q) != 0
            swap = np.where(inverted, 0, (axes[0] ^ axes[j]) & low)
            axes[0] ^= np.where(inverted, low, swap)
            axes[j] ^= swap if j else 0
        q >>= 1
    for j in range(1, len(axes)):
        axes[j] ^= axes[j - 1]
    flip = np.zeros(len(cells), np.int64)
    q = 1 << (bits - 1)
    while q > 1:
        flip ^= np.where((axes[-1] & q) != 0, q - 1, 0)
        q >>= 1
    axes ^= flip
    return [(axis >> b) & 1 for b in range(bits - 1, -1, -1) for axis in axes]

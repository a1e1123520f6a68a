"""The arithmetic that all exact searches share, so they agree to the last bit.

A table is first scaled by one power of two, which loses nothing and changes no order of
distances. Then

* a squared distance is the sum over columns, in column order, of (x_j - q_j)^2 in
  float64, each operation rounded on its own (no fused multiply-add);
* a centroid comes from sums of fixed-point integers, so it does not depend on the
  order in which records were added or removed:

      h = floor(x 2^31),  l = floor((x 2^31 - h) 2^31),
      c = (sum h + 2^-31 sum l) / m * 2^-31.

After scaling |x| <= 1, so 2^31 records fit in 64-bit sums. Bits of x below 2^-62 of
the largest magnitude in the table do not enter the centroid; they do enter distances.
"""

import numpy as np

from shoal.core._arrays import Floats, Ints

HALF_WORD = 2.0**31


def unit_scaled(X: Floats) -> Floats:
    """Scale X by the power of two that brings its magnitude to (1/2, 1].

    Values so small that the scaled one is subnormal (2^-1022 of the largest) are rounded.

    >>> unit_scaled(np.array([[3.0, -8.0]]))
    array([[ 0.375, -1.   ]])
    """
    return np.ldexp(X, -unit_exponent(X))


def unit_exponent(X: Floats) -> int:
    """Return the exponent of the power of two in which the magnitude of X is in (1/2, 1]."""
    mantissa, exponent = np.frexp(float(np.max(np.abs(X), initial=0.0)))
    # frexp gives [1/2, 1): an exact power of two may come up to 1 itself.
    return int(exponent) - int(mantissa == 0.5)


def centroids(Z: Floats, labels: Ints, g: int) -> Floats:
    """Compute the means of the groups 0..g-1 of unit-scaled records by fixed-point sums.

    Records with a negative label are ignored.

    >>> centroids(np.array([[0.25], [0.75], [1.0]]), np.array([0, 0, 1]), 2)
    array([[0.5],
           [1. ]])
    """
    inside = labels >= 0
    groups = labels[inside]
    scaled = Z[inside] * HALF_WORD
    integers = np.floor(scaled)
    high = np.zeros((g, Z.shape[1]), np.int64)
    low = np.zeros((g, Z.shape[1]), np.int64)
    np.add.at(high, groups, integers.astype(np.int64))
    np.add.at(low, groups, np.floor((scaled - integers) * HALF_WORD).astype(np.int64))
    size = np.bincount(groups, minlength=g)[:, None]
    return (high.astype(np.float64) + low / HALF_WORD) / size / HALF_WORD


def squared_distances(Z: Floats, q: Floats) -> Floats:
    """Compute the squared distances of all records to the point q, in column order.

    >>> squared_distances(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 0.0]))
    array([1., 2.])
    """
    total: Floats = (Z[:, 0] - q[0]) ** 2
    for j in range(1, Z.shape[1]):
        total += (Z[:, j] - q[j]) ** 2
    return total

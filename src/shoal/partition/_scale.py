"""The arithmetic that every exact path shares, so that all of them agree to the last bit.

A table is first scaled by one power of two, which loses nothing and changes no order of
distances. Then

* a squared distance is the sum over columns, in column order, of (x_j - q_j)^2 in
  float64, each operation rounded on its own (no fused multiply-add);
* a centroid comes from sums of fixed-point integers, so that it does not depend on the
  order in which records were added or removed:

      h = floor(x 2^31),  l = floor((x 2^31 - h) 2^31),
      c = (sum h + 2^-31 sum l) / m * 2^-31.

After scaling |x| <= 1, so that 2^31 records fit in 64-bit sums. Bits of x below 2^-62 of
the largest magnitude in the table do not enter the centroid; they do enter distances.
"""

import numpy as np

from shoal.partition._input import Floats

HALF_WORD = 2.0**31


def unit_scaled(X: Floats) -> Floats:
    """Return a copy of X times the power of two that brings its magnitude to (1/2, 1].

    Values so small that the scaled one is subnormal (2^-1022 of the largest) are rounded.

    >>> unit_scaled(np.array([[3.0, -8.0]]))
    array([[ 0.375, -1.   ]])
    """
    top = float(np.max(np.abs(X)))
    mantissa, exponent = np.frexp(top)
    # frexp gives [1/2, 1): an exact power of two may come up to 1 itself.
    shift = int(exponent) - int(mantissa == 0.5)
    return np.ldexp(X, -shift)

"""Checks of the arrays that enter this package.

The result is a finite float64 array of the expected shape. The caller's array is never changed,
and no message shows a value of it.
"""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats
from shoal.errors import InputError


def matrix(X: ArrayLike, name: str = "X") -> Floats:
    """Return X as a C-contiguous float64 matrix of at least one column.

    The result may share memory with X: copy it before you write to it.

    >>> matrix([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    array = _numbers(X, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"The argument {name} must be a matrix of records by columns, with at least one "
            f"column; "
            f"found the shape {array.shape}."
        )
    return np.ascontiguousarray(array)


def column(x: ArrayLike, name: str = "x") -> Floats:
    """Return x as a contiguous one-dimensional float64 array.

    >>> column([3, 1, 2])
    array([3., 1., 2.])
    """
    array = _numbers(x, name)
    if array.ndim != 1:
        raise InputError(
            f"The argument {name} must be one column of numbers; found the shape {array.shape}."
        )
    return np.ascontiguousarray(array)


def group_size(k: Any, n: int) -> int:
    """Return k as an int after checking that n records can form a group of k.

    >>> group_size(3, 10)
    3
    """
    try:
        size = operator.index(k)
    except TypeError:
        raise InputError(
            f"The smallest group size k must be a whole number of at least 2; found a "
            f"{type(k).__name__}."
        ) from None
    if size < 2:
        raise InputError(
            f"The smallest group size k must be at least 2, because a group of one hides "
            f"nobody; found {size}."
        )
    if size > n:
        raise InputError(
            f"Cannot form one group of k={size} from {n} record{'' if n == 1 else 's'}."
        )
    return size


def _numbers(values: ArrayLike, name: str) -> Floats:
    if np.ma.is_masked(values):
        raise InputError(f"The argument {name} must have a number in every cell; some are masked.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"The argument {name} must be a rectangular array of numbers.") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"The argument {name} must hold numbers; found the type {array.dtype}.")
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(
            f"The argument {name} must be finite; {bad} of its {array.size} "
            f"cells are missing or infinite."
        )
    return array

"""Short names for the types of arrays, in one place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Texts = NDArray[np.object_]
Unsigned32 = NDArray[np.uint32]
Unsigned64 = NDArray[np.uint64]


def choose(values: Floats, kept: Bools) -> Floats:
    """Some of the values; all of them are not copied.

    >>> choose(np.array([1.0, 2.0]), np.array([True, False]))
    array([1.])
    """
    return values if kept.all() else values[kept]


def freeze(array: Array) -> Array:
    """The array as one that cannot be written to, so a kernel is compiled for one type only.

    >>> freeze(np.arange(3)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view

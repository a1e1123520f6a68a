"""Number the distinct rows of some columns, exactly and in O(n log n) a column."""

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

_MOST = 2**62


def value_codes(columns: NDArray[np.generic]) -> list[NDArray[np.int64]]:
    """Number the distinct values of each column, in their order; missing (NaN) is one value.

    >>> [codes.tolist() for codes in value_codes(np.array([[2.0, 1.0], [np.nan, 1.0]]))]
    [[0, 1], [0, 0]]
    """
    table = np.asarray(columns)
    if table.ndim != 2:
        raise InputError("Expected records by columns.")
    return [np.unique(table[:, j], return_inverse=True)[1] for j in range(table.shape[1])]


def row_keys(codes: list[NDArray[np.int64]], rows: int) -> NDArray[np.int64]:
    """Number the distinct rows from 0 without gaps, in the order of the columns.

    The codes are written as digits of one number, which is numbered anew before it overflows.
    Without columns all rows are equal.

    >>> row_keys([np.array([1, 0, 1]), np.array([0, 0, 0])], 3)
    array([1, 0, 1])
    """
    keys, room = np.zeros(rows, dtype=np.int64), 1
    for digit in codes:
        width = int(digit.max(initial=0)) + 1
        if room > _MOST // width:
            keys = np.unique(keys, return_inverse=True)[1]
            room = int(keys.max(initial=0)) + 1
        keys = keys * width + digit
        room *= width
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def distinct_rows(columns: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The key of each row, and for each key the first row that has it.

    >>> keys, first = distinct_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]))
    >>> keys.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    keys = row_keys(value_codes(columns), len(columns))
    first = np.full(int(keys.max(initial=-1)) + 1, len(keys), dtype=np.int64)
    np.minimum.at(first, keys, np.arange(len(keys)))
    return keys, first

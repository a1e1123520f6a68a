"""Information loss between an original and a released column, row by row."""

import numpy as np
from numpy.typing import NDArray


def sse_over_sst(original: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """Share of a column's spread that was lost: 0 is nothing, 1 is publishing the mean.

        SSE = sum (x - y)^2,  SST = sum (x - mean x)^2

    over the rows where both are present. A column without spread loses nothing if it is
    released unchanged, and infinitely much otherwise.

    >>> sse_over_sst(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    1.0
    """
    x, y = original, released
    gone = np.isnan(x) | np.isnan(y)
    if gone.any():
        x, y = x[~gone], y[~gone]
    sse = float(((x - y) ** 2).sum())
    sst = float(((x - x.mean()) ** 2).sum()) if x.size else 0.0
    if sst == 0.0:
        return 0.0 if sse == 0.0 else float("inf")
    return sse / sst


def share_changed(original: NDArray[np.int64], released: NDArray[np.int64]) -> float:
    """Share of the rows whose category changed, missing being a category.

    >>> share_changed(np.array([0, 1, -1]), np.array([0, 2, -1]))
    0.3333333333333333
    """
    return float((original != released).mean())

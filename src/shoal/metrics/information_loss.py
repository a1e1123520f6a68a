"""Information loss between an original and a released table, row by row.

Rows must correspond: row i of both tables is about the same person. Missing cells are left out
pairwise.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, choose
from shoal.errors import InputError


def sse(original: Floats, released: Floats) -> float:
    """Sum the squared errors over all cells; sanchez2014 divides by the number of columns.

        SSE = sum_i sum_j (x_ij - y_ij)^2

    References:
        Soria-Comas and Domingo-Ferrer, "Differentially private data sets based on
        microaggregation and record perturbation", MDAI 2017, section 4.4.

    >>> sse(np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]]))
    5.0
    """
    x, y = _pairs(original, released)
    return float(np.nansum((x - y) ** 2))


def sae(original: Floats, released: Floats) -> float:
    """Sum the absolute errors over all cells.

        SAE = sum_i sum_j |x_ij - y_ij|

    >>> sae(np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]]))
    3.0
    """
    x, y = _pairs(original, released)
    return float(np.nansum(np.abs(x - y)))


def il1s(original: Floats, released: Floats) -> float:
    """Compute the mean absolute error in units of sqrt(2) standard deviations of the original.

        IL1s = 1 / (m n) sum_i sum_j |x_ij - y_ij| / (sqrt(2) S_j)

    with S_j the sample standard deviation, n - 1 in its denominator. A column counts by its mean
    error over the rows where both cells are present, and is left out where there are none. A
    column without spread counts 0 where it is released unchanged, and infinity otherwise. With
    no cell to compare the loss is 0.

    sdcMicro has had three things under this name: today `dUtility(method = "IL1s")` is the sum
    instead of the mean, so m n times ours; `"IL1old"` is ours; older versions multiplied by
    sqrt(2) where they should have divided, which gives twice ours.

    References:
        Mateo-Sanz, Domingo-Ferrer and Sebé, "Probabilistic information loss measures in
        confidentiality protection of continuous microdata", Data Mining and Knowledge
        Discovery 11 (2005). doi:10.1007/s10618-005-0011-9
        Iftikhar, Wang and Lin, EDBT 2019, Expression (3).

    >>> round(il1s(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]])), 4)
    0.5
    """
    x, y = _pairs(original, released)
    apart = np.abs(x - y)
    both = np.count_nonzero(~np.isnan(apart), axis=0)
    x, apart, both = x[:, both > 0], apart[:, both > 0], both[both > 0]
    if not both.size:
        return 0.0
    # The mean of equal cells may differ from them by rounding, and that is not spread.
    flat = np.fmin.reduce(x) == np.fmax.reduce(x)
    present = np.count_nonzero(~np.isnan(x), axis=0)
    around = x - np.nansum(x, axis=0) / present
    spread = np.sqrt(np.nansum(around**2, axis=0) / np.maximum(present - 1, 1))
    error = np.nansum(apart, axis=0) / both
    flat |= spread == 0
    shares = np.where(flat, np.where(error == 0, 0.0, np.inf), error / np.where(flat, 1.0, spread))
    return float(shares.mean() / np.sqrt(2))


def sse_over_sst(original: Floats, released: Floats) -> float:
    """Compute the share of a column's variance that is lost: 1 as if its mean were published.

        SSE = sum (x - y)^2,  SST = sum (x - mean x)^2

    over the rows where both are present. A column without spread loses nothing if it is
    released unchanged, and infinitely much otherwise.

    >>> sse_over_sst(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    1.0
    """
    both = ~np.isnan(original) & ~np.isnan(released)
    return _share_lost(choose(original, both), choose(released, both))


def _share_lost(x: Floats, y: Floats) -> float:
    """Compute `sse_over_sst` of columns without missing cells."""
    apart = x - y
    apart *= apart
    lost, total = float(apart.sum()), 0.0
    if x.size and (x[0] != x[-1] or x.max() > x.min()):
        np.subtract(x, x.mean(), out=apart)
        apart *= apart
        total = float(apart.sum())
    if total == 0.0:
        return 0.0 if lost == 0.0 else float("inf")
    return lost / total


def of_spread(original: Floats, released: Floats, *, paired: bool) -> tuple[float | None, str]:
    """Compute a column's loss in units of the original's spread, or say why it is infinite.

    `sse_over_sst` where rows correspond, `rank_matched` where they do not. A column that is
    missing throughout in one table alone is lost or invented: 0 would mean no loss, so there is
    no number.

    Returns:
        The loss, and an empty text; or None, and the reason as a clause.

    >>> of_spread(np.array([2.0, 2.0]), np.array([2.0, 3.0]), paired=True)
    (None, 'all its numbers in the original are equal, and the release changes them')
    """
    present = [~np.isnan(column) for column in (original, released)]
    before, after = map(np.any, present)
    if not before or not after:
        if before == after:
            return 0.0, ""
        return None, f"it has no numbers in the {'release' if before else 'original'}"
    if paired:
        present = [present[0] & present[1]] * 2
        if not present[0].any():
            return None, "no row has a number in both tables"
    x, y = map(choose, (original, released), present)
    loss = _share_lost(x, y) if paired else rank_matched(x, y)
    if np.isfinite(loss):
        return loss, ""
    if np.ptp(x) == 0:
        return None, "all its numbers in the original are equal, and the release changes them"
    return None, "its variance in the original is too small to divide by"


def share_changed(original: NDArray[np.int64], released: NDArray[np.int64]) -> float:
    """Compute the share of rows whose category changed; missing is a category.

    >>> share_changed(np.array([0, 1, -1]), np.array([0, 2, -1]))
    0.3333333333333333
    """
    return float((original != released).mean()) if original.size else 0.0


def rank_matched(original: Floats, released: Floats) -> float:
    """Compute SSE / SST after sorting both columns: squared Wasserstein distance over variance.

    Rows need not correspond, nor be equally many: quantile functions are compared, at the ranks
    of both. With n rows each it is the sum of (x_(i) - y_(i))^2 over SST. Missing cells are
    left out; if that leaves one of the columns empty the loss is infinite, and 0 if both. A
    column without spread counts 0 where it is released unchanged, and infinity otherwise.
    It sees one column at a time: a release with all relations destroyed can have a loss of 0.
    Cost O(n log n).

    References:
        Villani, "Optimal Transport: Old and New" (2009), for W2 on the line as the L2 distance
        of quantile functions.

    >>> rank_matched(np.array([1.0, 3.0]), np.array([3.0, 1.0]))
    0.0
    """
    x, y = (np.sort(column[~np.isnan(column)]) for column in (original, released))
    if not x.size or not y.size:
        return 0.0 if x.size == y.size else float("inf")
    # Quantile functions are steps; between two ends of steps of either both are constant.
    ends = np.union1d(np.arange(1, x.size + 1) / x.size, np.arange(1, y.size + 1) / y.size)
    widths = np.diff(ends, prepend=0.0)
    middle = ends - widths / 2
    apart = (x[(middle * x.size).astype(np.int64)] - y[(middle * y.size).astype(np.int64)]) ** 2
    lost, total = float((widths * apart).sum()), float(x.var()) if x[0] < x[-1] else 0.0
    if total == 0.0:
        return 0.0 if lost == 0.0 else float("inf")
    return lost / total


def total_variation(original: NDArray[np.int64], released: NDArray[np.int64]) -> float:
    """Compute half the L1 distance between the shares of codes; -1 for missing is a code.

    An empty column is at distance 1 from any other, and at 0 from an empty one.

    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.25
    """
    if not original.size or not released.size:
        return float(original.size != released.size)
    width = int(max(original.max(initial=-1), released.max(initial=-1))) + 2
    shares = [np.bincount(c + 1, minlength=width) / c.size for c in (original, released)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _pairs(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    x, y = (np.asarray(table, dtype=np.float64) for table in (original, released))
    if x.ndim != 2 or x.shape != y.shape:
        raise InputError("Both tables must be matrices of records by columns, of the same shape.")
    return x, y

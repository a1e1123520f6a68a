"""Means, variances and correlations of two tables, whose rows need not correspond.

A missing cell is left out of its column, and of a pair of columns where either is missing
("pairwise complete"), as R and sdcMicro do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Floats
from shoal.errors import InputError

ROUNDING = 1e-12
"""A variance below this share of the greatest is zero but for rounding."""


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of a table; read-only.

    Attributes:
        means: of each column; NaN where no cell is present.
        variances: sample variance, n - 1 in its denominator; NaN below two cells.
        correlations: Pearson's, over the rows where both cells are present; 1 on the diagonal;
            NaN where a column has no spread or fewer than two common rows.
    """

    means: Floats
    variances: Floats
    correlations: Floats

    def __post_init__(self) -> None:
        for name in ("means", "variances", "correlations"):
            getattr(self, name).flags.writeable = False


@dataclass(frozen=True, eq=False)
class MomentChanges:
    """How the moments of a release differ from those of the original.

    Attributes:
        means: (released mean - original mean) / original standard deviation, by column.
        variances: released variance / original variance, by column.
        correlations: released - original, a symmetric matrix.
    """

    means: Floats
    variances: Floats
    correlations: Floats


def moments(table: ArrayLike) -> Moments:
    """Compute means, variances and correlations of the columns. Cost O(n m^2).

    >>> moments([[1.0, 2.0], [3.0, 6.0]]).correlations
    array([[1., 1.],
           [1., 1.]])
    """
    X = _table(table)
    present = ~np.isnan(X)
    n = present.sum(axis=0)
    # Columns are centred first: squares of large numbers would cancel.
    means = _divide(np.where(present, X, 0.0).sum(axis=0), n)
    # The mean of equal cells may differ from them by rounding, and that is not spread.
    flat = np.fmin.reduce(X, axis=0, initial=np.inf) == np.fmax.reduce(X, axis=0, initial=-np.inf)
    Z = np.where(present & ~flat, X - means, 0.0)
    variances = _divide((Z**2).sum(axis=0) - _divide(Z.sum(axis=0) ** 2, n), n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance, first, second = _pairwise(Z, present)
        correlations = covariance / np.sqrt(first * second)
        # Neither is a rounding error of cells that are equal in the common rows.
        still = (first <= ROUNDING * variances[:, None]) | (second <= ROUNDING * variances)
    none = still | ~np.isfinite(correlations)
    correlations = np.where(none, np.nan, np.clip(correlations, -1, 1))
    spread = variances > 0
    np.fill_diagonal(correlations, np.where(spread, 1.0, np.nan))
    return Moments(means, variances, correlations)


def moment_changes(original: ArrayLike, released: ArrayLike) -> MomentChanges:
    """Compare the moments of two tables; rows need not correspond.

    An entry is NaN where the original has no such moment, as the correlation of a constant
    column, and where the release has none. A column that is constant in the original has a mean
    difference of 0 or infinity, and a variance ratio of 1 or infinity.
    """
    x, y = _same_columns(original, released)
    before, after = moments(x), moments(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (after.means - before.means) / np.sqrt(before.variances)
        means[after.means == before.means] = 0.0
        variances = after.variances / before.variances
        variances[after.variances == before.variances] = 1.0
    correlations = after.correlations - before.correlations
    return MomentChanges(means, variances, correlations)


def _pairwise(Z: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Compute each pair's covariance over its common rows, and both variances over these rows.

    Missing cells of Z must be 0.
    """
    M = present.astype(np.float64)
    if present.all():
        n = float(len(Z))
        sums = Z.sum(axis=0)
        covariance = (Z.T @ Z - np.outer(sums, sums) / n) / (n - 1)
        variances = np.broadcast_to(np.diag(covariance)[:, None], covariance.shape)
        return covariance, variances, variances.T
    n_common = M.T @ M
    sums = Z.T @ M
    squares = (Z**2).T @ M
    free = n_common - 1
    covariance = (Z.T @ Z - sums * sums.T / n_common) / free
    variances = (squares - sums**2 / n_common) / free
    return covariance, variances, variances.T


def _divide(total: Floats, number: NDArray[np.int64]) -> Floats:
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _table(table: ArrayLike) -> Floats:
    X = np.asarray(table, dtype=np.float64)
    if X.ndim != 2:
        raise InputError("A table must be a matrix of records by columns.")
    return X


def _same_columns(original: ArrayLike, released: ArrayLike) -> tuple[Floats, Floats]:
    x, y = _table(original), _table(released)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"Expected the same columns; found {x.shape[1]} and {y.shape[1]}.")
    return x, y

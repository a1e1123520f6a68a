"""Information losses as sums, so parts of a table can be computed separately and added up.

Rows must correspond, as in `information_loss`, whose figures these give. Sums of floats differ in
the last bits with how the table is divided.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Count, mean, sum of squares around it, least and largest present cell of each column.

    References:
        Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
        variances", COMPSTAT 1982, equation (2.1), for the sum of two parts.
    """

    count: Ints
    mean: Floats
    around: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, x: Floats) -> "ColumnMoments":
        """Compute the moments of each column, NaN where missing."""
        count = np.count_nonzero(~np.isnan(x), axis=0)
        mean = np.nansum(x, axis=0) / np.maximum(count, 1)
        around = np.nansum((x - mean) ** 2, axis=0)
        low = np.fmin.reduce(x, axis=0, initial=np.inf)
        high = np.fmax.reduce(x, axis=0, initial=-np.inf)
        return cls(count, mean, around, low, high)

    def __add__(self, other: "ColumnMoments") -> "ColumnMoments":
        count = self.count + other.count
        total = np.maximum(count, 1)
        apart = other.mean - self.mean
        return ColumnMoments(
            count,
            (self.count * self.mean + other.count * other.mean) / total,
            self.around + other.around + apart**2 * (self.count * other.count / total),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Columns without spread: the mean of equal cells may differ from them by rounding."""
        flat: NDArray[np.bool_] = (self.low >= self.high) | (self.around == 0)
        return flat


@dataclass(frozen=True, eq=False)
class Losses:
    """The squared errors of each column over the rows where both cells are present.

    Attributes:
        compared: moments of the original's cells that have a released one.
        squares: sum of squared errors.

    >>> Losses.of(np.array([[1.0], [3.0]]), np.array([[2.0], [3.0]])).sse_over_sst
    array([0.5])
    """

    compared: ColumnMoments
    squares: Floats

    @classmethod
    def of(cls, original: Floats, released: Floats) -> "Losses":
        """Compare records by columns with the same records as released."""
        x, y = (np.asarray(table, dtype=np.float64) for table in (original, released))
        if x.ndim != 2 or x.shape != y.shape:
            raise InputError(
                "Both tables must be matrices of records by columns, of the same shape."
            )
        apart = x - y
        both = np.where(np.isnan(apart), np.nan, x)
        return cls(ColumnMoments.of(both), np.nansum(apart**2, axis=0))

    def __add__(self, other: "Losses") -> "Losses":
        return Losses(self.compared + other.compared, self.squares + other.squares)

    @property
    def sse_over_sst(self) -> Floats:
        """The loss of each column, as `information_loss.sse_over_sst`."""
        flat = self.compared.flat
        infinite = np.where(self.squares == 0, 0.0, np.inf)
        return np.where(flat, infinite, self.squares / np.where(flat, 1.0, self.compared.around))

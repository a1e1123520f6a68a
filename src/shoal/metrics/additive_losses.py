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
    """The errors of each column over the rows where both cells are present.

    Attributes:
        original: moments of all present cells of the original.
        compared: moments of those that have a released cell.
        squares: sum of squared errors.
        errors: sum of absolute errors.

    >>> Losses.of(np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]])).sse
    5.0
    """

    original: ColumnMoments
    compared: ColumnMoments
    squares: Floats
    errors: Floats

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
        squares, errors = np.nansum(apart**2, axis=0), np.nansum(np.abs(apart), axis=0)
        return cls(ColumnMoments.of(x), ColumnMoments.of(both), squares, errors)

    def __add__(self, other: "Losses") -> "Losses":
        parts = ("original", "compared", "squares", "errors")
        return Losses(*(getattr(self, part) + getattr(other, part) for part in parts))

    @property
    def sse(self) -> float:
        """The sum of squared errors, as `information_loss.sse`."""
        return float(self.squares.sum())

    @property
    def sae(self) -> float:
        """The sum of absolute errors, as `information_loss.sae`."""
        return float(self.errors.sum())

    @property
    def il1s(self) -> float:
        """IL1s, as `information_loss.il1s`."""
        used = self.compared.count > 0
        if not used.any():
            return 0.0
        present, flat = self.original.count[used], self.original.flat[used]
        spread = np.sqrt(self.original.around[used] / np.maximum(present - 1, 1))
        error = self.errors[used] / self.compared.count[used]
        infinite = np.where(error == 0, 0.0, np.inf)
        shares = np.where(flat, infinite, error / np.where(flat, 1.0, spread))
        return float(shares.mean() / np.sqrt(2))

    @property
    def sse_over_sst(self) -> Floats:
        """The loss of each column, as `information_loss.sse_over_sst`."""
        flat = self.compared.flat
        infinite = np.where(self.squares == 0, 0.0, np.inf)
        return np.where(flat, infinite, self.squares / np.where(flat, 1.0, self.compared.around))

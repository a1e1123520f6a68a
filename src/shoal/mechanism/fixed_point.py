"""Public grids: numbers within public bounds as whole numbers, record by record.

Noise on floating-point numbers leaks through their uneven spacing (Mironov 2012), and sums of
them depend on the order of addition. Whole numbers have neither fault. So a mechanism first
puts every record on a public grid, adds up whole numbers, and adds whole noise.

Why that keeps sensitivities exact. `encode` is a fixed function of one cell and of public
bounds, with values in 0..2^bits. It is therefore part of the data's preparation: however its
floating-point arithmetic rounds, a table in which one record changes becomes a grid table in
which the same record changes, by at most 2^bits in each column. From there on all answers are
whole: a column's sum changes by at most 2^bits, and a group's mean is its noisy sum divided by
its public size, which is post-processing. Noise of scale 2^bits / epsilon on the sum of |C|
records is noise of scale width / (|C| epsilon) on their mean.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.core import Transform
from shoal.core._arrays import Floats
from shoal.errors import InputError, InternalError

_MOST_BITS = 40
_NARROWEST, _WIDEST = Fraction(1, 10**150), 10**151


@dataclass(frozen=True)
class FixedPointGrid:
    """A grid of 2^bits equal steps between public bounds.

    Attributes:
        low: value of unit 0; any exact number is taken, and kept as a fraction.
        high: value of unit 2^bits.
        bits: 20 by default, a millionth of the width: far below any noise that protects, and
            small enough that 2^42 records can be added up.

    >>> FixedPointGrid(0, 100).encode(np.array([25.0, 250.0]))
    array([ 262144, 1048576])
    """

    low: Fraction | Decimal | int
    high: Fraction | Decimal | int
    bits: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", Fraction(self.low))
        object.__setattr__(self, "high", Fraction(self.high))
        if self.low >= self.high:
            raise InputError(
                f"The bounds of a column must be two numbers, low < high; got "
                f"{self.low, self.high}."
            )
        if not 1 <= self.bits <= _MOST_BITS:
            raise InputError(
                f"The number of bits of a grid must lie between 1 and "
                f"{_MOST_BITS}; got {self.bits}."
            )
        if not _NARROWEST <= Fraction(self.high) - Fraction(self.low) <= _WIDEST:
            raise InputError(
                "The bounds of a column must lie between 1e-150 and 1e151 apart, the range in "
                "which floats can "
                "represent the grid."
            )

    @property
    def steps(self) -> int:
        """The width in grid units, 2^bits: how far one record can move a sum."""
        return 1 << self.bits

    @cached_property
    def step(self) -> Fraction:
        """Value of one grid unit."""
        return (Fraction(self.high) - Fraction(self.low)) / self.steps

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Map numbers to grid units, each by itself.

        Numbers outside the bounds, infinite ones too, are clamped to them; ties between two
        units go to the even one. The distance to the value that `decode` gives back is at
        most half a step, up to floating-point rounding of the order of 2^-50 widths.

        Raises:
            InternalError: if a cell is missing. A missing cell has no place between bounds;
                the caller gives it a public value first.
        """
        values = np.asarray(values, dtype=np.float64)
        if np.isnan(values).any():
            raise InternalError("A missing number reached the grid, which cannot represent it.")
        low, high = float(self.low), float(self.high)
        units = (np.clip(values, low, high) - low) * (1 / (high - low)) * self.steps
        return np.clip(np.rint(units), 0, self.steps).astype(np.int64)

    def decode(self, units: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Map grid units, noisy or averaged ones too, back to numbers, without clamping.

        The result is post-processing of what comes in.
        """
        return float(self.low) + np.asarray(units, dtype=np.float64) * float(self.step)


@lru_cache(maxsize=64)
def public_grid(low: Fraction | int, high: Fraction | int) -> FixedPointGrid:
    """Make the grid of public bounds; cached, because an audit needs it in every run."""
    return FixedPointGrid(low, high)


_BEND = 100.0
"""Below a hundredth of the width the logarithmic scale is nearly straight."""


@dataclass(frozen=True)
class SkewedGrid:
    """Numbers between public bounds as grid units of a transformed value.

    With t = (x - low) / (high - low) in [0, 1],

        none    t
        sqrt    sqrt(t)
        log     ln(1 + 100 t) / ln(101)

    `encode` depends on one cell and public facts only, as `FixedPointGrid.encode` does, so
    whatever holds for codes on a grid holds for these.

    >>> scale = SkewedGrid(0, 1000, Transform.LOG)
    >>> scale.encode(np.array([0.0, 10.0, 1000.0])).tolist()
    [0, 157486, 1048576]
    """

    low: Fraction | Decimal | int
    high: Fraction | Decimal | int
    transform: Transform | None = None
    bits: int = 20

    def __post_init__(self) -> None:
        FixedPointGrid(self.low, self.high, self.bits)  # the same bounds are refused

    @property
    def steps(self) -> int:
        """The width in grid units, 2^bits."""
        return 1 << self.bits

    def encode(self, values: Floats) -> NDArray[np.int64]:
        """Map numbers to units, each by itself, clamped; see `FixedPointGrid.encode`."""
        t = FixedPointGrid(self.low, self.high, 40).encode(values) / float(1 << 40)
        if self.transform is Transform.LOG:
            t = np.log1p(_BEND * t) / np.log1p(_BEND)
        elif self.transform is Transform.SQRT:
            t = np.sqrt(t)
        return FixedPointGrid(0, 1, self.bits).encode(t)

    def decode(self, units: NDArray[np.int64] | Floats) -> Floats:
        """Map units, also averaged ones, back to numbers, clamped to the bounds."""
        t = np.clip(np.asarray(units, dtype=np.float64) / self.steps, 0.0, 1.0)
        if self.transform is Transform.LOG:
            t = np.expm1(t * np.log1p(_BEND)) / _BEND
        elif self.transform is Transform.SQRT:
            t = t**2
        return FixedPointGrid(self.low, self.high, 1).decode(2 * t)

"""A public grid on a transformed scale, for skewed numbers."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.core import Transform
from shoal.core._arrays import Floats
from shoal.mechanism.fixed_point import FixedPointGrid

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

"""A public space cut into boxes with counts: what a spatial tree releases."""

from dataclasses import dataclass

import numpy as np

from shoal.core._arrays import Floats
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class SpatialDecomposition:
    """Disjoint boxes that cover a public space, with counts by confidential value.

    Coordinates are numbers. A number or a day is its own coordinate; category c of a declared order
    covers c <= x < c + 1. A box covers lower <= x < upper.

    Attributes:
        columns: the quasi-identifiers, one axis each.
        lower: one row per box, one column per axis.
        upper: the other end.
        counts: one row per box, one column per confidential value; noisy ones may be fractions.
        values: the confidential values, as texts; one empty text where none is counted.
        column: the confidential column, or none.
        discrete: which axes are categories.

    >>> counts = [[3, 1], [0, 2]]
    >>> halves = SpatialDecomposition(("age",), [[0], [50]], [[50], [100]], counts, ("a", "b"))
    >>> halves.counts.sum(axis=1)
    array([4., 2.])
    """

    columns: tuple[str, ...]
    lower: Floats
    upper: Floats
    counts: Floats
    values: tuple[str, ...]
    column: str | None = None
    discrete: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "counts"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.discrete is None:
            object.__setattr__(self, "discrete", (False,) * len(self.columns))
        boxes = len(self.lower)
        shape = (boxes, len(self.columns))
        if self.lower.shape != shape or self.upper.shape != shape or not boxes:
            raise InputError(
                "A spatial decomposition needs a lower and an upper end for each box and axis."
            )
        if self.counts.shape != (boxes, len(self.values)):
            raise InputError("A spatial decomposition needs one count for each box and value.")
        if not (self.lower < self.upper).all() or np.isnan(self.counts).any():
            raise InputError(
                "A spatial decomposition needs boxes whose lower ends are below "
                "the upper ends, and counts."
            )

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def extent(self) -> tuple[Floats, Floats]:
        """The least and the greatest coordinate on each axis."""
        return self.lower.min(axis=0), self.upper.max(axis=0)

"""Partitions: every record in exactly one group."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Ints
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class Partition:
    """Every record in exactly one group.

    Attributes:
        labels: group of each record, 0..g-1 without gaps; read-only.

    >>> Partition([0, 1, 0, 1]).sizes
    array([2, 2])
    """

    labels: Ints
    sizes: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = whole_numbers(np.array(self.labels), "labels")
        sizes = np.bincount(labels)
        if not sizes.all():
            raise InputError(
                "The group labels of a partition must be the whole numbers from 0, without gaps."
            )
        labels.flags.writeable = sizes.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and np.array_equal(self.labels, other.labels)

    def __hash__(self) -> int:
        return hash(self.labels.tobytes())


def whole_numbers(values: ArrayLike, name: str) -> Ints:
    """Return an array of whole numbers from 0, or say what is wrong with it."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"The argument {name} must be a one-dimensional array of whole numbers.")
    if array.size and array.min() < 0:
        raise InputError(f"The argument {name} must not have negative numbers.")
    return array.astype(np.int64, copy=False)

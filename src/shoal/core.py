"""The nouns of Shoal: frozen values that are valid because they exist.

Three kinds of truth have three types. A `Claim` is promised by a method, a `Check` was
computed on the released table, an `Estimate` was measured and has an interval. Only
`shoal.release` attaches claims to a release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody: the default of every long computation."""


class Role(StrEnum):
    """What an attacker may do with a column."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    CONFIDENTIAL = "confidential"
    OTHER = "other"


class Kind(StrEnum):
    """Which arithmetic a column allows."""

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


class ReleaseForm(StrEnum):
    """How the rows of a release relate to the rows of the original."""

    ROW_ALIGNED = "row-aligned"
    LINKED_SHUFFLED = "linked-shuffled"
    CANONICAL = "canonical"
    MARGINALS = "marginals"
    SYNTHETIC = "synthetic"


class Status(StrEnum):
    """How far a claim is known to be true."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    UNPROVEN = "unproven"
    REFUTED = "refuted"


class Transform(StrEnum):
    """A public scale on which distances between numbers are taken."""

    LOG = "log"
    SQRT = "sqrt"


@dataclass(frozen=True, eq=False)
class Partition:
    """Every record in exactly one group.

    Attributes:
        labels: group of each record, 0..g-1 without gaps; read-only.

    >>> Partition([0, 1, 0, 1]).sizes
    array([2, 2])
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = np.array(self.labels)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise InputError("labels must be a one-dimensional array of whole numbers.")
        labels = labels.astype(np.int64, copy=False)
        if labels.size and labels.min() < 0:
            raise InputError("labels must not be negative.")
        sizes = np.bincount(labels)
        if not sizes.all():
            raise InputError("labels must run from 0 to g - 1 without gaps.")
        labels.flags.writeable = sizes.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and np.array_equal(self.labels, other.labels)

    def __hash__(self) -> int:
        return hash(self.labels.tobytes())

"""Records of numbers and categories, whose distances methods take.

A category is a code, and takes one column however many categories there are. A flat nominal is a
column of codes; a hierarchy is one column for each of its levels, with the codes of ancestors.
Where the codes of two records differ, their squared distance grows by the weight of the column for
each of the two that has a code there: on a hierarchy that is the path between two leaves.
"""

from dataclasses import dataclass

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class MixedRecords:
    """Records by columns of numbers and columns of codes.

    Attributes:
        numbers: finite numbers, on scales that may be added up.
        codes: whole numbers from 1, and 0 where a record has no code.
        weights: what a code adds to the squared distance of a record that has another, or none.

    >>> len(MixedRecords(np.zeros((3, 1)), np.array([[1], [2], [2]]), np.array([0.5])))
    3
    """

    numbers: Floats
    codes: Ints
    weights: Floats

    def __post_init__(self) -> None:
        codes, weights = np.asarray(self.codes), np.asarray(self.weights, np.float64)
        numbers = np.ascontiguousarray(self.numbers, np.float64)
        if numbers.ndim != 2 or codes.ndim != 2 or len(numbers) != len(codes):
            raise InputError(
                "Mixed records need a matrix of numbers and a matrix of codes, each with one row "
                f"per record; found the shapes {numbers.shape} and {codes.shape}."
            )
        if weights.shape != (codes.shape[1],) or not (np.isfinite(weights) & (weights > 0)).all():
            raise InputError("Each column of codes needs a weight above 0.")
        if codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
            raise InputError("Codes must be whole numbers from 0.")
        if not np.isfinite(numbers).all():
            raise InputError("The numbers of mixed records must be finite.")
        if not numbers.shape[1] + codes.shape[1]:
            raise InputError("Mixed records need at least one column.")
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Ints) -> "MixedRecords":
        """Some of the records."""
        return MixedRecords(self.numbers[rows], self.codes[rows], self.weights)

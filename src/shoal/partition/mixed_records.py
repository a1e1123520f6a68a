"""Distances and centroids of records with codes (`shoal.core.MixedRecords`).

Squared distances are those of records that have one axis for each code, 1 where they have it and
0 elsewhere, times the root of the weight. So groups have centroids: with p_e the share of
records that have code e, a record of code a lies from the centroid at

    weight (sum_e p_e^2 + 1 - 2 p_a),    without the last two terms if it has no code,

and the codes of a group of m records lose  weight (number of codes held - sum_e count_e^2 / m).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords
from shoal.core._arrays import Floats, Ints
from shoal.partition._exact_scale import centroids, squared_distances, unit_exponent
from shoal.partition._input import matrix
from shoal.partition.kernels.shared import MixedSpace


class Scaled(NamedTuple):
    """Records in the arithmetic of the kernels: numbers times a power of two, then codes."""

    Z: Floats
    space: MixedSpace

    @property
    def numbers(self) -> Floats:
        """The columns of numbers."""
        return self.Z[:, : self.space.numbers]

    @property
    def codes(self) -> Ints:
        """The columns of codes."""
        return self.Z[:, self.space.numbers :].astype(np.int64)


def scale(records: MixedRecords) -> Scaled:
    """Return records as kernels read them, see `_exact_scale`."""
    shift = exponent(records)
    Z = np.hstack([np.ldexp(records.numbers, -shift), records.codes.astype(np.float64)])
    widths = records.codes.max(axis=0, initial=0) + 1
    start = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    weights = np.ldexp(records.weights, -2 * shift)
    return Scaled(np.ascontiguousarray(Z), MixedSpace(records.numbers.shape[1], weights, start))


def exponent(records: MixedRecords) -> int:
    """Return that of the power of two that brings numbers and roots of weights to 1 at most."""
    top = np.abs(records.numbers).max(initial=0.0)
    return unit_exponent(np.append(top, np.sqrt(records.weights)))


def mixed_records(X: ArrayLike | MixedRecords) -> MixedRecords:
    """Return records as they are, or a matrix of numbers as records without codes."""
    if isinstance(X, MixedRecords):
        return X
    numbers = matrix(X)
    return MixedRecords(numbers, np.zeros((len(numbers), 0), np.int64), np.zeros(0))


class CodeCounts(NamedTuple):
    """How often each code of a column occurs in each group.

    Attributes:
        keys: group * width + code, ascending, of the codes that occur in a group.
        counts: how many records of the group have the code.
        squares: of each group, the sum of the squares of its counts.
        held: of each group, how many records have a code.
        width: the number of codes, 0 included.
    """

    keys: Ints
    counts: Ints
    squares: Ints
    held: Ints
    width: int

    def share(self, groups: Ints, codes: Ints, sizes: Ints) -> Floats:
        """The share of each group's records that have a code; 0 for the code 0."""
        keys = groups * self.width + codes
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        if not len(self.keys):
            return np.zeros(len(keys))
        counts = np.where(self.keys[places] == keys, self.counts[places], 0)
        return counts / sizes[groups]


def count_codes(codes: Ints, labels: Ints, g: int) -> CodeCounts:
    """Count the codes of one column by group; records with a negative label count nowhere."""
    inside = (labels >= 0) & (codes > 0)
    width = int(codes.max(initial=0)) + 1
    keys, counts = np.unique(labels[inside] * width + codes[inside], return_counts=True)
    squares, held = np.zeros(g, np.int64), np.bincount(labels[inside], minlength=g)
    np.add.at(squares, keys // width, counts**2)
    return CodeCounts(keys, counts, squares, held, width)


def distances_to_centroid(records: Scaled, labels: Ints, g: int) -> Floats:
    """Squared distance of each record to the centroid of its group 0..g-1.

    >>> codes = MixedRecords(np.zeros((2, 0)), np.array([[1], [2]]), np.array([1.0]))
    >>> distances_to_centroid(scale(codes), np.array([0, 0]), 1)
    array([0.5, 0.5])
    """
    numbers, space = records.numbers, records.space
    means = centroids(numbers, labels, g)[labels] if space.numbers else numbers
    far = np.zeros(len(labels))
    for j in range(space.numbers):
        far += (numbers[:, j] - means[:, j]) ** 2
    sizes = np.bincount(labels, minlength=g)
    for column, weight in zip(records.codes.T, space.weight, strict=True):
        counted = count_codes(column, labels, g)
        spread = counted.squares.astype(np.float64) / sizes / sizes
        far += _to_centroid(spread[labels], counted.share(labels, column, sizes), column, weight)
    return far


def distances_of_record(records: Scaled, i: int, labels: Ints, g: int) -> Floats:
    """Squared distances of record i to the centroids of the groups 0..g-1."""
    numbers, space = records.numbers, records.space
    far = np.zeros(g)
    if space.numbers:
        far = squared_distances(centroids(numbers, labels, g), numbers[i])
    sizes = np.bincount(labels[labels >= 0], minlength=g)
    groups = np.arange(g)
    for column, weight in zip(records.codes.T, space.weight, strict=True):
        counted = count_codes(column, labels, g)
        spread = counted.squares.astype(np.float64) / sizes / sizes
        code = np.full(g, column[i])
        far = far + _to_centroid(spread, counted.share(groups, code, sizes), code, weight)
    return far


def distances_of_group(records: Scaled, labels: Ints) -> Floats:
    """Squared distances of the centroid of group 0 to those of all groups.

    Of codes, with the shares p of a group and q of group 0: the weight times the sum of (p - q)^2.
    """
    numbers, space, g = records.numbers, records.space, int(labels.max()) + 1
    far = np.zeros(g)
    if space.numbers:
        means = centroids(numbers, labels, g)
        far = squared_distances(means, means[0])
    sizes = np.bincount(labels, minlength=g)
    for column, weight in zip(records.codes.T, space.weight, strict=True):
        counted = count_codes(column, labels, g)
        spread = counted.squares / sizes / sizes
        together = np.zeros(g)
        for code, count in zip(*np.unique(column[(labels == 0) & (column > 0)], return_counts=True),
                               strict=True):  # fmt: skip
            together += count / sizes[0] * counted.share(np.arange(g), np.full(g, code), sizes)
        far = far + np.maximum(spread + spread[0] - 2 * together, 0.0) * weight
    return far


def _to_centroid(spread: Floats, share: Floats, codes: Ints, weight: float) -> Floats:
    """What a column of codes adds to the squared distance to a centroid."""
    far: Floats = np.maximum((spread + np.where(codes > 0, 1.0 - 2.0 * share, 0.0)) * weight, 0.0)
    return far


def within_groups(records: Scaled, labels: Ints) -> float:
    """Sum of the squared distances of records to the mean of their group.

    >>> within_groups(scale(mixed_records([[0.0], [0.5], [0.5]])), np.array([0, 1, 1]))
    0.0
    """
    g = int(labels.max()) + 1
    numbers, space = records.numbers, records.space
    lost = float(np.sum((numbers - centroids(numbers, labels, g)[labels]) ** 2))
    sizes = np.bincount(labels, minlength=g)
    for column, weight in zip(records.codes.T, space.weight, strict=True):
        counted = count_codes(column, labels, g)
        lost += float(weight * np.sum(counted.held - counted.squares / sizes))
    return lost

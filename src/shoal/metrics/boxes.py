"""A released table as weighted boxes: the common form of rows, intervals and spatial trees.

Places are numbers, as in `core.SpatialDecomposition`. Category c of a public order holds the places
from c to c + 1. An exact number x is the point lower == upper == x. An interval of numbers is
lower <= x < upper. A suppressed cell is the whole domain of its axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import SpatialDecomposition
from shoal.core._arrays import Bools, Floats, Ints
from shoal.errors import InputError
from shoal.metrics.kernels.attacks import box_tree, nearest_boxes


@dataclass(frozen=True, eq=False)
class WeightedBoxes:
    """Weighted boxes, one row per record or leaf.

    Attributes:
        lower: one row per box, one column per axis; read-only.
        upper: the other end; equal to lower where the cell is an exact number.
        weights: how many persons each box stands for; noisy ones may be fractions or negative.
        discrete: which axes are categories.

    >>> rows = WeightedBoxes.points([[0, 31.5], [2, 40.0]], discrete=(True, False))
    >>> rows.upper.tolist()
    [[1.0, 31.5], [3.0, 40.0]]
    """

    lower: Floats
    upper: Floats
    weights: Floats
    discrete: tuple[bool, ...]

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "weights"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "discrete", tuple(bool(kind) for kind in self.discrete))
        shape = (len(self.weights), len(self.discrete))
        if self.weights.ndim != 1 or self.lower.shape != shape or self.upper.shape != shape:
            raise InputError(
                "Boxes need a lower and an upper end for each row and axis, and a weight for "
                "each row."
            )
        if not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            raise InputError("Boxes need finite ends. Declare bounds for columns with an open end.")
        if not np.isfinite(self.weights).all():
            raise InputError("Boxes need finite weights.")
        if not (self.lower <= self.upper).all():
            raise InputError("Boxes need lower <= upper.")
        codes = np.flatnonzero(self.discrete)
        if codes.size and not (self.lower[:, codes] < self.upper[:, codes]).all():
            raise InputError("Category c must be the interval from c to c + 1.")

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def points(
        cls,
        X: ArrayLike,
        *,
        discrete: Sequence[bool],
        weights: ArrayLike | None = None,
        domain: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Make boxes of exact cells: numbers as they are, categories as codes of the public order.

        Args:
            X: records by axes. A missing cell is NaN.
            discrete: which axes are categories.
            weights: one per row; 1 by default.
            domain: least and greatest place of each axis, which a missing cell then spans.
        """
        lower = np.array(X, dtype=np.float64, order="C")
        if lower.ndim != 2 or lower.shape[1] != len(discrete):
            raise InputError(
                "Expected a matrix of records by axes, and for each axis whether it is discrete."
            )
        upper = lower + np.asarray(discrete, dtype=np.float64)
        gone = np.isnan(lower)
        if gone.any():
            if domain is None:
                raise InputError(
                    f"{int(gone.sum())} cells are missing. Give the domain that they span, or "
                    "count missing as one more category."
                )
            for side, ends in zip((lower, upper), domain, strict=True):
                np.copyto(side, np.asarray(ends, dtype=np.float64), where=gone)
        ones = np.ones(len(lower)) if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(lower, upper, ones, tuple(discrete))

    @classmethod
    def of(
        cls, tree: SpatialDecomposition, *, domain: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Self:
        """Make boxes of a decomposition, with the confidential value as a further, discrete axis.

        Boxes without weight are left out.

        Args:
            tree: leaves with their counts by confidential value.
            domain: least and greatest place of each axis of the tree, to which boxes are cut;
                needed where a box has an infinite end.
        """
        box, value = np.nonzero(tree.counts)
        lower, upper = tree.lower[box], tree.upper[box]
        if domain is not None:
            low, high = (np.asarray(ends, dtype=np.float64) for ends in domain)
            lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
        discrete = tuple(tree.discrete or ())
        if tree.column is not None:
            lower, upper = np.column_stack([lower, value]), np.column_stack([upper, value + 1])
            discrete = (*discrete, True)
        return cls(lower, upper, tree.counts[box, value], discrete)

    @property
    def total(self) -> float:
        """The sum of the weights: how many persons the table represents."""
        return float(self.weights.sum())

    def centres(self) -> Floats:
        """Return the middle of each cell, a category where the axis has categories.

        Of an even number of categories the upper of the two middle ones.

        >>> WeightedBoxes([[0, 10]], [[4, 20]], [1], (True, False)).centres()
        array([[ 2., 15.]])
        """
        middle = self.lower + (self.upper - self.lower) / 2
        codes = np.flatnonzero(self.discrete)
        middle[:, codes] = np.floor(middle[:, codes])
        return middle

    def draw(self, rows: int, rng: np.random.Generator) -> Floats:
        """Draw exact rows: a box by its weight, then a point uniformly within it.

        This turns intervals and trees into rows, for example to train a model on.
        Boxes with a weight of 0 or less are never drawn.

        >>> WeightedBoxes([[3, 7]], [[4, 7]], [2], (True, False)).draw(1, np.random.default_rng(0))
        array([[3., 7.]])
        """
        chances = np.maximum(self.weights, 0.0)
        if rows and not chances.sum() > 0:
            raise InputError("No box has a weight above zero, so there are no rows to draw.")
        ends = np.cumsum(chances)
        picked = np.searchsorted(ends, rng.random(rows) * ends[-1:].sum(), side="right")
        # Rounding may reach the last end: step back to a box with weight.
        picked = np.minimum(picked, np.flatnonzero(chances)[-1:].sum())
        low, high = self.lower[picked], self.upper[picked]
        places = low + rng.random(low.shape) * (high - low)
        # Rounding may reach the upper end, which is not in the box.
        inside = np.where(high > low, np.minimum(places, np.nextafter(high, low)), low)
        rows_drawn: Floats = np.where(self.discrete, np.floor(inside), inside)
        return rows_drawn

    def classes(self, axes: Sequence[int] | None = None) -> Ints:
        """Number the distinct boxes from 0, in the order in which they first appear.

        Rows get the same number where both ends of all axes are equal. Cost O(n log n).

        Args:
            axes: the axes to look at; all by default.

        >>> WeightedBoxes.points([[1.0], [5.0], [1.0]], discrete=(False,)).classes()
        array([0, 1, 0])
        """
        chosen = slice(None) if axes is None else list(axes)
        lower, upper = self.lower[:, chosen], self.upper[:, chosen]
        thick = (upper != lower).any(axis=0)
        # If an axis has only points and categories of width one, its lower ends say all.
        narrow = np.asarray(self.discrete)[chosen] & (upper - lower == 1).all(axis=0)
        return equal_rows(np.column_stack([lower, upper[:, thick & ~narrow]]))


def equal_rows(X: Floats) -> Ints:
    """Number the distinct rows of a matrix from 0, in the order in which they first appear.

    Rows are sorted by a hash of their bits and then compared, so two rows with the same
    number are equal for sure. Cost O(n m + n log n).

    >>> equal_rows(np.array([[7.0, 1.0], [2.0, 1.0], [7.0, 1.0]]))
    array([0, 1, 0])
    """
    n = len(X)
    if not n or not X.shape[1]:
        return np.zeros(n, dtype=np.int64)
    # Adding zero turns -0.0, which equals 0.0, into it.
    X = np.ascontiguousarray(X, dtype=np.float64) + 0.0
    key = np.zeros(n, dtype=np.uint64)
    for column in X.view(np.uint64).T:
        # The finaliser of SplitMix64, a bijection for each column; the product mixes columns.
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(30)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(27)
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    same_key = ranked[1:] == ranked[:-1]
    same_row = np.ones(n - 1, dtype=bool)
    for column in X.T:
        sorted_column = column[order]
        same_row &= sorted_column[1:] == sorted_column[:-1]
    if not np.array_equal(same_key, same_row):
        # Two different rows share a key, once in 2^64 / n^2 tables: sort by the cells.
        order = np.lexsort(X.T)
        ordered = X[order]
        same_row = (ordered[1:] == ordered[:-1]).all(axis=1)
    run = np.concatenate([[0], np.cumsum(~same_row)])
    firsts = order[np.flatnonzero(np.concatenate([[True], ~same_row]))]
    name = np.empty(len(firsts), dtype=np.int64)
    name[np.argsort(firsts, kind="stable")] = np.arange(len(firsts))
    labels = np.empty(n, dtype=np.int64)
    labels[order] = name[run]
    return labels


@dataclass(frozen=True, eq=False)
class ReleaseBoxes:
    """Released rows: boxes on axes of numbers and of categories."""

    lower: Floats
    upper: Floats
    discrete: Bools

    def take(self, rows: Ints) -> "ReleaseBoxes":
        """Select some of the boxes."""
        return ReleaseBoxes(self.lower[rows], self.upper[rows], self.discrete)


def boxes_of(lower: Floats, upper: Floats, discrete: ArrayLike) -> ReleaseBoxes:
    """Make boxes from their ends, or refuse them."""
    a, b = (np.ascontiguousarray(end, dtype=np.float64) for end in (lower, upper))
    kinds = np.asarray(discrete, dtype=bool)
    if a.ndim != 2 or a.shape != b.shape or kinds.shape != a.shape[1:]:
        raise InputError(
            "Expected lower and upper as matrices of boxes by axes, and the kind of each axis."
        )
    if not len(a):
        raise InputError("The release has no rows, so there is nothing to attack with.")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a <= b).all()):
        raise InputError(
            "Every box needs finite ends, the lower first; a suppressed cell spans its "
            "whole domain."
        )
    return ReleaseBoxes(a, b, kinds)


def people_on(people: Floats, boxes: ReleaseBoxes) -> Floats:
    """Convert people to coordinates on the axes of the boxes."""
    x = np.ascontiguousarray(people, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != boxes.lower.shape[1] or not len(x):
        raise InputError("Expected at least one person, on the axes of the release.")
    return x


def check_attacks(attacks: int) -> None:
    """Refuse a number of attacks below one."""
    if attacks < 1:
        raise InputError(f"The number of attacks must be at least 1; got {attacks}.")


def draw_rows(rows: int, wanted: int, rng: np.random.Generator) -> Ints:
    """Draw row indices without replacement."""
    return rng.choice(rows, min(rows, wanted), replace=False).astype(np.int64)


def nearest(
    boxes: ReleaseBoxes,
    targets: Floats,
    axes: Ints,
    *,
    k: int,
    rng: np.random.Generator,
    people: Floats,
) -> Ints:
    """Find the k nearest boxes on some axes; ties are broken at random.

    An axis of numbers is scaled to the range of the boxes and of all the people together.
    """
    order = rng.permutation(len(boxes.lower))
    a, b = (np.ascontiguousarray(end[order][:, axes]) for end in (boxes.lower, boxes.upper))
    with np.errstate(all="ignore"):
        low = np.fmin(a.min(axis=0), np.fmin.reduce(people[:, axes], axis=0))
        high = np.fmax(b.max(axis=0), np.fmax.reduce(people[:, axes], axis=0))
    spread = high - low
    scale = 1 / np.where(spread > 0, spread, 1.0)
    starts = rng.integers(len(order), size=len(targets))
    kinds, asked = boxes.discrete[axes], np.ascontiguousarray(targets[:, axes])
    tree = box_tree(a, b, kinds, scale)
    places, _ = nearest_boxes(a, b, kinds, scale, asked, starts, k, False, *tree)
    numbers: Ints = order[places]
    return numbers


def log_choose(n: Floats | float, k: float) -> Floats:
    """Compute the logarithm of the number of ways to choose k of n."""
    n, factorial = np.asarray(n), scipy.special.gammaln
    logs: Floats = factorial(n + 1.0) - factorial(k + 1.0) - factorial(n - k + 1)
    return logs

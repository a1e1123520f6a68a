"""Metrics of a generalised table: sizes of its classes and widths of its cells.

They measure the release alone, not the distribution of people within a class. A table can be coarse
and useful, or fine and wrong: read them together with a workload.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.metrics.boxes import WeightedBoxes


class Penalty(NamedTuple):
    """Normalised certainty penalty: 0 is every cell exact, 1 is every cell suppressed.

    Attributes:
        overall: the mean over axes.
        axes: the penalty of each axis.
    """

    overall: float
    axes: tuple[float, ...]

    @property
    def granularity(self) -> float:
        """1 - penalty: 1 if every cell is exact, 0 if every cell is suppressed."""
        return 1.0 - self.overall

    @property
    def granularities(self) -> tuple[float, ...]:
        """1 - penalty of each axis."""
        return tuple(1.0 - penalty for penalty in self.axes)


def discernibility(
    labels: ArrayLike, *, suppressed: ArrayLike | None = None, weights: ArrayLike | None = None
) -> float:
    """Sum over the rows of the number of rows from which each is indistinguishable.

        DM = sum over classes |E|^2  +  n |S|

    with S the suppressed rows, each indistinguishable from every row. n means that all
    rows differ, n^2 that all are alike.

    Args:
        labels: class of each row, whole numbers from 0.
        suppressed: which rows have all their quasi-identifiers suppressed.
        weights: persons each row stands for.

    References:
        Bayardo and Agrawal, ICDE 2005, C_DM. doi:10.1109/ICDE.2005.42

    >>> discernibility([0, 0, 1])
    5.0
    """
    classes, heavy = _classes(labels, weights)
    gone = np.zeros(len(classes), dtype=bool) if suppressed is None else np.asarray(suppressed)
    if gone.shape != classes.shape:
        raise InputError("Expected for each row whether it is suppressed.")
    kept = ~gone.astype(bool)
    sizes = np.bincount(classes[kept], weights=heavy[kept])
    return float((sizes**2).sum() + heavy.sum() * heavy[~kept].sum())


def average_class_size(labels: ArrayLike, *, k: int = 1, weights: ArrayLike | None = None) -> float:
    """Compute the mean number of persons in a class, in units of the required k.

        C_avg = n / (classes k)

    With that k, 1 is the best that k-anonymity allows. An empty table has 0.

    References:
        LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006,
        C_AVG. doi:10.1109/ICDE.2006.101

    >>> average_class_size([0, 0, 1])
    1.5
    """
    if k < 1:
        raise InputError(f"The group size k must be at least 1; got {k}.")
    classes, heavy = _classes(labels, weights)
    number = np.count_nonzero(np.bincount(classes, weights=heavy))
    return float(heavy.sum() / (number * k)) if number else 0.0


def certainty_penalty(
    boxes: WeightedBoxes, lows: ArrayLike, highs: ArrayLike, *, gap: ArrayLike = 0.0
) -> Penalty:
    """Compute the mean width of the cells, in units of the width of their axis.

        numbers      (upper - lower) / (high - low)
        categories   (categories in the cell - 1) / (categories of the axis - 1)

    weighted by persons, then averaged over axes. An exact cell has 0, a suppressed one 1. An
    axis without width, or with one category, has 0.

    A box may hold more than its cell: a set of categories that are not neighbours is kept as all
    between them. `gap` is how much more, boxes by axes, and does not count.

    For categories Xu et al. divide by the number of categories instead, and give a single
    one 0; the form here, of Iyengar, has the same ends and no jump between.

    References:
        Xu, Wang, Pei, Wang, Shi and Fu, KDD 2006 (NCP). doi:10.1145/1150402.1150504
        Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002 (LM).
        doi:10.1145/775047.775089

    >>> rows = WeightedBoxes([[0, 20]], [[3, 25]], [1], (True, False))
    >>> certainty_penalty(rows, [0, 0], [5, 100])
    Penalty(overall=0.275, axes=(0.5, 0.05))
    """
    low, high = (np.asarray(ends, dtype=np.float64) for ends in (lows, highs))
    d = len(boxes.discrete)
    if low.shape != (d,) or high.shape != (d,) or not (low <= high).all():
        raise InputError("Expected the least and the greatest place of each axis.")
    unit = np.asarray(boxes.discrete, dtype=np.float64)
    room = high - low - unit
    # Cells that stick out of the domain, as noisy ones may, are cut to it.
    cells = np.clip(boxes.upper, low, high) - np.clip(boxes.lower, low, high) - unit
    cells = cells - np.asarray(gap, dtype=np.float64)
    shares = np.maximum(cells, 0.0) / np.where(room > 0, room, 1.0)
    if boxes.total <= 0 or not d:
        return Penalty(0.0, (0.0,) * d)
    # Sums of floats leave 1e-16 of a column that is suppressed throughout.
    axes = tuple(np.round(boxes.weights @ shares / boxes.total, 12).tolist())
    return Penalty(float(np.mean(axes)), axes)


def _classes(labels: ArrayLike, weights: ArrayLike | None) -> tuple[Ints, Floats]:
    classes = np.asarray(labels)
    if classes.size == 0:
        classes = classes.astype(np.int64)
    if classes.ndim != 1 or not np.issubdtype(classes.dtype, np.integer):
        raise InputError(
            "The labels of the classes must be a one-dimensional array of whole numbers."
        )
    if classes.min(initial=0) < 0:
        raise InputError("The labels of the classes must not be negative.")
    heavy = np.ones(len(classes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if heavy.shape != classes.shape:
        raise InputError("Expected one weight for each row.")
    return classes.astype(np.int64), heavy

"""Releases as boxes, people as places, and the boxes nearest to people: what the attacks share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from shoal.core._arrays import Bools, Floats, Ints
from shoal.errors import InputError
from shoal.metrics.kernels.attacks import nearest_boxes


@dataclass(frozen=True, eq=False)
class ReleaseBoxes:
    """Released rows: boxes on axes of numbers and of categories."""

    lower: Floats
    upper: Floats
    discrete: Bools

    def take(self, rows: Ints) -> "ReleaseBoxes":
        """Some of the boxes."""
        return ReleaseBoxes(self.lower[rows], self.upper[rows], self.discrete)


def boxes_of(lower: Floats, upper: Floats, discrete: ArrayLike) -> ReleaseBoxes:
    """Boxes by their ends, or say what is wrong with them."""
    a, b = (np.ascontiguousarray(end, dtype=np.float64) for end in (lower, upper))
    kinds = np.asarray(discrete, dtype=bool)
    if a.ndim != 2 or a.shape != b.shape or kinds.shape != a.shape[1:]:
        raise InputError("Expected lower and upper, boxes by axes, and for each axis its kind.")
    if not len(a):
        raise InputError("The release has no rows: there is nothing to attack with.")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a <= b).all()):
        raise InputError(
            "Every box needs finite ends, lower first; a suppressed cell is its whole domain."
        )
    return ReleaseBoxes(a, b, kinds)


def people_on(people: Floats, boxes: ReleaseBoxes) -> Floats:
    """People as places on the axes of the boxes."""
    x = np.ascontiguousarray(people, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != boxes.lower.shape[1] or not len(x):
        raise InputError("Expected at least one person, on the axes of the release.")
    return x


def check_attacks(attacks: int) -> None:
    """Refuse a number of attacks below one."""
    if attacks < 1:
        raise InputError(f"attacks must be at least 1; got {attacks}.")


def drawn(rows: int, wanted: int, rng: np.random.Generator) -> Ints:
    """Some rows, each at most once."""
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
    """The k nearest boxes on some axes, as numbers of boxes; ties are drawn.

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
    found = nearest_boxes(
        a, b, boxes.discrete[axes], scale, np.ascontiguousarray(targets[:, axes]), starts, k
    )
    numbers: Ints = order[found]
    return numbers


def log_choose(n: Floats | float, k: float) -> Floats:
    """The logarithm of the number of ways to choose k of n."""
    logs: Floats = gammaln(np.asarray(n) + 1.0) - gammaln(k + 1.0) - gammaln(np.asarray(n) - k + 1)
    return logs

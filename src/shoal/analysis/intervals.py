"""Estimate the distribution of a column whose cells are intervals.

The self-consistent estimate: each interval of m rows spreads its rows over its inside in proportion
to the density, and the density is the sum of what all intervals spread, smoothed over its
neighbours. Intervals of different groups overlap, so they say of each other's insides what none
says of its own. Where the ends of an interval are values of its rows, one row lies at each end.

References:
    Turnbull, "The empirical distribution function with arbitrarily grouped, censored and truncated
    data", JRSS B 38 (1976). doi:10.1111/j.2517-6161.1976.tb01597.x
    Silverman, Jones, Wilson, Nychka, "A smoothed EM approach to indirect estimation problems",
    JRSS B 52 (1990). doi:10.1111/j.2517-6161.1990.tb01788.x
"""

from dataclasses import dataclass

import numpy as np

from shoal.core._arrays import Floats

_CELLS, _ROUNDS = 256, 40


@dataclass(frozen=True, eq=False)
class Spread:
    """Where the rows of interval cells lie, by the estimated distribution.

    Attributes:
        means: mean within each row's interval.
        within: variance within each row's interval.
        values: points of the distribution, in order.
        shares: the masses of these points.
    """

    means: Floats
    within: Floats
    values: Floats
    shares: Floats


def spread(low: Floats, high: Floats, weights: Floats, *, ends: bool) -> Spread:
    """Estimate where rows lie within their intervals; `ends` says whether ends are values."""
    spans, back = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    back = back.ravel()
    mass = np.bincount(back, weights)
    rows = np.bincount(back)
    first, last = float(spans.min()), float(spans.max())
    last = max(last + 1e-12, first + 1e-9 * abs(first))  # where all rows have one value
    edges = np.linspace(first, last, _CELLS + 1)
    # The share of each cell of a fine grid that lies inside each interval.
    inside = np.minimum(edges[1:], spans[:, 1:]) - np.maximum(edges[:-1], spans[:, :1])
    inside = np.maximum(inside, 0.0) / (edges[1] - edges[0])
    points = np.clip((edges[1:] + edges[:-1]) / 2, spans[:, :1], spans[:, 1:])
    point = spans[:, 0] == spans[:, 1]
    at_ends = np.where(point, 1.0, np.minimum(2.0 / rows, 1.0) if ends else 0.0)
    inner = mass * (1 - at_ends)
    density = np.full(_CELLS, 1.0)
    placed = np.clip(((spans - edges[0]) / (edges[1] - edges[0])).astype(np.int64), 0, _CELLS - 1)
    outer = np.bincount(placed.ravel(), np.repeat(mass * at_ends / 2, 2), minlength=_CELLS)
    for _ in range(_ROUNDS):
        law = inside * (density + 1e-9)
        law /= np.maximum(law.sum(axis=1, keepdims=True), 1e-300)
        mixed = inner @ law + outer
        padded = np.pad(mixed, 2, mode="edge")
        density = np.convolve(padded, [0.1, 0.2, 0.4, 0.2, 0.1], mode="valid")
    middle = spans.mean(axis=1)
    mean = (law * points).sum(axis=1)
    second = (law * points**2).sum(axis=1)
    means = (1 - at_ends) * mean + at_ends * middle
    squares = (1 - at_ends) * second + at_ends * (spans**2).mean(axis=1)
    values = np.concatenate([points.ravel(), spans.ravel()])
    shares = np.concatenate([(inner[:, None] * law).ravel(), np.repeat(mass * at_ends / 2, 2)])
    order = np.argsort(values, kind="stable")
    kept = order[shares[order] > 0]
    within = np.maximum(squares - means**2, 0.0)
    return Spread(means[back], within[back], values[kept], shares[kept] / shares.sum())

"""Distances between the distributions of two tables; rows need not correspond.

Total variation of all one- and two-way marginals, over boxes and points. For the marginal
Wasserstein distance see `information_loss.rank_matched`.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.metrics.boxes import WeightedBoxes, equal_rows


class MarginalDistance(NamedTuple):
    """The distance of two tables on one column or on two."""

    columns: tuple[int, ...]
    distance: float


def quantile_edges(values: ArrayLike, bins: int) -> Floats:
    """Choose inner edges that divide a column into bins of about equal numbers of rows.

    Equal edges are merged, so many equal values share one bin. Missing cells are left
    out. The edges are values of the column: do not publish them.

    >>> quantile_edges([1, 2, 3, 4], 2)
    array([3.])
    """
    present = np.asarray(values, dtype=np.float64)
    present = present[~np.isnan(present)]
    if bins < 1:
        raise InputError(f"The number of bins must be at least 1; got {bins}.")
    if not present.size:
        return np.empty(0)
    # Edges are values, so each bin holds at least the value that it begins with.
    edges = np.unique(np.quantile(present, np.arange(1, bins) / bins, method="higher"))
    # An edge at the least value would leave an empty bin below it.
    return np.asarray(edges[edges > present.min()], dtype=np.float64)


def marginal_masses(boxes: WeightedBoxes, edges: Sequence[ArrayLike]) -> tuple[Floats, ...]:
    """Sum the weight in each cell of all one- and then two-way marginals; parts add up.

    A box spreads its weight evenly over the places that it holds: an interval over several bins
    gives each its share.

    Args:
        boxes: boxes, or points.
        edges: inner edges of the bins of each axis; of a discrete axis usually 1, 2, .., d - 1.
    """
    if len(edges) != len(boxes.discrete):
        raise InputError("Both tables must have the same axes, with edges for each.")
    cuts = [np.asarray(edge, dtype=np.float64) for edge in edges]
    pieces = [_pieces(boxes.lower[:, j], boxes.upper[:, j], cut) for j, cut in enumerate(cuts)]
    masses = []
    for chosen in _one_and_two(len(cuts)):
        if len(chosen) == 1:
            label, shares = pieces[chosen[0]]
            mass = np.bincount(label, weights=boxes.weights, minlength=len(shares)) @ shares
        else:
            (a, shares_a), (b, shares_b) = (pieces[j] for j in chosen)
            counts = scipy.sparse.coo_array(
                (boxes.weights, (a, b)), shape=(len(shares_a), len(shares_b))
            ).tocsr()
            mass = np.asarray(shares_a.T @ (counts @ shares_b)).ravel()
        masses.append(np.asarray(mass, dtype=np.float64))
    return tuple(masses)


def marginal_distances(
    original: Sequence[Floats], released: Sequence[Floats]
) -> tuple[MarginalDistance, ...]:
    """Compute the total variation of marginals from `marginal_masses`, worst first.

        TV(P, Q) = 1/2 sum_c |P(c) - Q(c)|

    between the shares of the cells c. It is the greatest error of any share that can be asked of
    the marginal. An empty table is at distance 1 from any other. Equal distances stand in the order
    of their columns.
    """
    axes = round((np.sqrt(8 * len(original) + 1) - 1) / 2)
    return _worst_first([
        MarginalDistance(chosen, share_distance(p, q))
        for chosen, p, q in zip(_one_and_two(axes), original, released, strict=True)
    ])  # fmt: skip


def share_distance(p: NDArray[Any], q: NDArray[Any]) -> float:
    """Compute the total variation of two tables of weights, normalised; 1 if one is empty."""
    total_p, total_q = float(p.sum()), float(q.sum())
    if total_p <= 0 or total_q <= 0:
        return float((total_p > 0) != (total_q > 0))
    return float(np.abs(p / total_p - q / total_q).sum() / 2)


def _one_and_two(columns: int) -> Iterator[tuple[int, ...]]:
    yield from combinations(range(columns), 1)
    yield from combinations(range(columns), 2)


def _worst_first(distances: list[MarginalDistance]) -> tuple[MarginalDistance, ...]:
    return tuple(sorted(distances, key=lambda marginal: -marginal.distance))


def _pieces(lower: Floats, upper: Floats, cuts: Floats) -> tuple[Ints, Floats]:
    """Number the distinct intervals of an axis, and compute the share of each in each bin.

    Intervals within one bin are all alike, so points of any number make no more kinds
    than there are bins.
    """
    bins = len(cuts) + 1
    first = np.searchsorted(cuts, lower, side="right")
    last = np.maximum(np.searchsorted(cuts, upper, side="left"), first)
    label = first.astype(np.int64)
    wide = np.flatnonzero(first != last)
    named = equal_rows(np.column_stack([lower[wide], upper[wide]]))
    label[wide] = bins + named
    kinds = int(named.max(initial=-1)) + 1
    index = np.empty(kinds, dtype=np.int64)
    index[named] = wide
    low, high = lower[index], upper[index]
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    common = np.minimum(high[:, None], ends[1:]) - np.maximum(low[:, None], ends[:-1])
    shares = np.maximum(common, 0.0) / (high - low)[:, None]
    return label, np.concatenate([np.eye(bins), shares])

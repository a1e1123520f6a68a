"""Systematic sampling: whole counts that follow probabilities as closely as possible.

All of this is post-processing of noisy answers, with a generator that carries no privacy.
"""

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.mechanism.consistent_counts import scale_to


def systematic(weights: Floats, total: int, rng: np.random.Generator) -> Ints:
    """Divide a total over cells in proportion to their weights, in the given order.

    With p the normalised weights, P their cumulative sums and one uniform U, the first i cells
    get floor(total P_i + U) together. So each cell's expected count is total p_i, and

        |count - total p| < 1    for every cell and every prefix of the order,

    and hence below 2 for every run of neighbours. In lexicographic order of the cells, prefixes are
    tables of the leading columns. The last cumulative sum is 1 by definition, not by addition;
    otherwise rounding could lose a row.

    >>> systematic(np.array([1.0, 1.0, 2.0]), 8, np.random.default_rng(0))
    array([2, 2, 4])
    """
    cumulative = np.cumsum(scale_to(weights, 1.0))
    cumulative /= cumulative[-1]
    ends = np.floor(cumulative * total + rng.random()).astype(np.int64)
    ends = np.minimum(ends, total)
    # All cells after the last one with a positive weight end at the total.
    ends[cumulative >= 1.0] = total
    counts: Ints = np.diff(ends, prepend=0)
    return counts


def strewn(sizes: Ints, rng: np.random.Generator) -> Floats:
    """Draw evenly spread positions between 0 and 1 for the rows of each leaf.

    With c rows in a leaf, its r-th row in a random order takes a random place of the r-th of c
    equal parts. Asked once per column, this makes a Latin hypercube of each leaf.

    Args:
        sizes: rows of each leaf.
        rng: for orders and places.
    """
    leaf = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(leaf + rng.random(leaf.size))
    rank = np.empty(leaf.size)
    rank[order] = np.arange(leaf.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places: Floats = (rank + rng.random(leaf.size)) / sizes[leaf]
    return places


def spread(edges: Ints, weights: Floats, total: int, rng: np.random.Generator) -> Ints:
    """Draw sorted codes from a histogram with uniform bins.

    Args:
        edges: first code of each bin, and one past the last code at the end.
        weights: of the bins; if all are zero, codes are spread evenly over all bins.
        total: number of rows.
        rng: for one uniform: the i-th row is the quantile at (i + U) / total.
    """
    if weights.sum() <= 0:
        weights = np.diff(edges).astype(np.float64)
    cumulative = np.concatenate([[0.0], np.cumsum(scale_to(weights, 1.0))])
    cumulative /= cumulative[-1]
    points = (np.arange(total) + rng.random()) / total
    places = np.interp(points, cumulative, edges.astype(np.float64))
    return np.clip(np.floor(places).astype(np.int64), edges[0], edges[-1] - 1)

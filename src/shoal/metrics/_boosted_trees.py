"""Gradient boosting of regression trees on binned columns, for attackers and analysts.

A round adds one tree per class, or one for a number, to scores f. A tree fits Newton's step of the
loss: it takes the first and second derivatives g and h of each row, and a leaf has the value

    -rate * sum g / (sum h + ridge).

Losses: squared error / 2; log-loss of two classes, of one score; and of more, of a score each.
Columns are cut into at most 255 bins at weighted quantiles; categories are bins of their own, and
what is missing, or a category that no row had, is one more. A tree splits the leaf of largest gain
first. The result depends on nothing drawn, and on the order of rows by rounding alone.

It is scikit-learn's `HistGradientBoosting` with early stopping off, to within rounding and ties,
compiled here: scikit-learn takes most of its time between trees.

References:
    Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
    29 (2001). doi:10.1214/aos/1013203451
    Chen and Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016, section 2.
    doi:10.1145/2939672.2939785
    Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NeurIPS 2017.
    Fisher, "On grouping for maximum homogeneity", JASA 53 (1958): splits of categories.
    doi:10.1080/01621459.1958.10501479
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Floats, Ints
from shoal.metrics.boxes import equal_rows
from shoal.metrics.kernels.boosted_trees import grow, walk

ROUNDS = 15
RATE = 0.4
RIDGE = 3.0
"""Rare values make leaves of almost no weight, whose guesses would be unbounded without it."""
LEAVES = 31
FEWEST = 20
"""Rows in a leaf, at least."""
MOST_BINS = 255


@dataclass(frozen=True, eq=False)
class Binning:
    """How columns become bins.

    Attributes:
        categorical: which columns have a bin per category; codes from 255 on are numbers.
        edges: of each column, the upper ends of all bins but the last; of codes, the codes.
    """

    categorical: NDArray[np.bool_]
    edges: tuple[Floats, ...]

    @property
    def sizes(self) -> Ints:
        """Bins of each column without that of what is missing, which comes last."""
        return np.array([
            len(ends) + (not codes)
            for ends, codes in zip(self.edges, self.categorical, strict=True)
        ])  # fmt: skip

    def apply(self, X: Floats) -> NDArray[np.uint8]:
        """The bin of each cell."""
        bins = np.empty(X.shape, dtype=np.uint8)
        for j, (ends, codes) in enumerate(zip(self.edges, self.categorical, strict=True)):
            places = np.searchsorted(ends, X[:, j])
            gone = np.isnan(X[:, j])
            if codes:
                gone |= np.append(ends, np.nan)[places] != X[:, j]
            bins[:, j] = np.where(gone, self.sizes[j], places)
        return bins


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Trained trees, rounds by outputs.

    Attributes:
        classes: what is told apart, ascending; None for numbers.
        start: score of each output before the first round.
        splits: how many each tree has.
        feature: the column of each split.
        child: left and right of each split: a split, or ~ a leaf.
        left: which bins go left at each split.
        values: of each leaf, times the rate.
    """

    binning: Binning
    classes: Floats | None
    start: Floats
    splits: Ints
    feature: Ints
    child: Ints
    left: NDArray[np.bool_]
    values: Floats


def boost(
    X: Floats,
    y: ArrayLike,
    *,
    categorical: ArrayLike,
    classify: bool,
    weights: Floats | None = None,
    leaves: int = LEAVES,
) -> BoostedTrees:
    """Train on rows that are there: at least one, and at least two classes.

    Args:
        X: rows by columns; codes for categories, NaN for missing.
        y: the class or the number of each row.
        categorical: which columns are codes.
        classify: whether y is a class.
        weights: of the rows, positive; all alike by default. The ridge is in their units.
        leaves: of a tree, at most.
    """
    target = np.asarray(y, dtype=np.float64)
    mass = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    binning = _binning(X, np.asarray(categorical, dtype=bool), mass)
    bins = binning.apply(X)
    # Rows with equal bins go the same way: they are one, with their sums.
    group = equal_rows(bins.astype(np.float64))
    bins = bins[np.unique(group, return_index=True)[1]]
    sizes, crowd = np.bincount(group).astype(np.float64), np.bincount(group, weights=mass)
    classes, observed, start = _beginning(target, mass, group, classify=classify)
    outputs, offsets = len(start), np.concatenate([[0], np.cumsum(binning.sizes + 1)])
    shape = (ROUNDS, outputs)
    trees = BoostedTrees(
        binning, classes, start, np.zeros(shape, np.int64),
        np.zeros((*shape, leaves - 1), np.int64), np.zeros((*shape, leaves - 1, 2), np.int64),
        np.zeros((*shape, leaves - 1, MOST_BINS + 1), np.bool_), np.zeros((*shape, leaves)),
    )  # fmt: skip
    gaps = (bins == binning.sizes).any(axis=0)
    sums = np.empty((leaves, int(offsets[-1]), 3))
    scores, leaf = np.tile(start[:, None], len(bins)), np.empty(len(bins), dtype=np.int64)
    for step in range(ROUNDS):
        expected = _expected(scores, classify=classify)
        slopes = crowd * expected - observed
        curves = crowd * expected * (1 - expected) if classify else crowd[None]
        for output in range(outputs):
            at = (step, output)
            trees.splits[at] = grow(
                bins, slopes[output], curves[output], sizes, offsets, gaps, binning.categorical,
                FEWEST, RIDGE, sums, trees.feature[at], trees.child[at], trees.left[at],
                trees.values[at], leaf,
            )  # fmt: skip
            trees.values[at] *= RATE
            scores[output] += trees.values[at][leaf]
    return trees


def predicted(trees: BoostedTrees, X: Floats) -> Floats:
    """The number of each row, or its most probable class; ties to the lowest."""
    if trees.classes is None:
        return _scores(trees, X)[:, 0]
    best: Floats = trees.classes[chances(trees, X).argmax(axis=1)]
    return best


def chances(trees: BoostedTrees, X: Floats) -> Floats:
    """Rows by classes: their probabilities."""
    shares = _expected(_scores(trees, X).T, classify=True).T
    return np.column_stack([1 - shares, shares]) if shares.shape[1] == 1 else shares


def _scores(trees: BoostedTrees, X: Floats) -> Floats:
    scores = np.tile(trees.start, (len(X), 1))
    walk(
        trees.binning.apply(X), trees.splits, trees.feature, trees.child, trees.left, trees.values,
        scores,
    )  # fmt: skip
    return scores


def _beginning(
    target: Floats, mass: Floats, group: Ints, *, classify: bool
) -> tuple[Floats | None, Floats, Floats]:
    """Classes; by output and group the weight of those in the class, or the sum; best constants."""
    observed: Floats
    if not classify:
        observed = np.bincount(group, weights=mass * target)[None].astype(np.float64)
        return None, observed, np.array([np.average(target, weights=mass)])
    classes, labels = np.unique(target, return_inverse=True)
    logs = np.log(np.bincount(labels, weights=mass) / mass.sum())
    groups = int(group.max()) + 1
    cells = labels * groups + group
    observed = np.bincount(cells, weights=mass, minlength=len(classes) * groups).astype(np.float64)
    observed = observed.reshape(len(classes), groups)
    if len(classes) == 2:
        return classes, observed[1:], logs[1:] - logs[:1]
    return classes, observed, logs - logs.mean()


def _expected(scores: Floats, *, classify: bool) -> Floats:
    """Outputs by rows: the number, or the probability of the class, that scores stand for."""
    if not classify:
        return scores
    one = len(scores) == 1
    shares: Floats = scipy.special.expit(scores) if one else scipy.special.softmax(scores, axis=0)
    return shares


def _binning(X: Floats, categorical: NDArray[np.bool_], mass: Floats) -> Binning:
    edges, codes = [], categorical.copy()
    for j, column in enumerate(X.T):
        present = ~np.isnan(column)
        order = np.argsort(column[present], kind="stable")
        ordered = column[present][order]
        values = ordered[np.flatnonzero(np.diff(ordered, prepend=-np.inf))]
        codes[j] &= not len(values) or bool(values[-1] < MOST_BINS)
        if codes[j]:
            edges.append(values)
        elif len(values) <= MOST_BINS:
            edges.append((values[1:] + values[:-1]) / 2)
        else:
            edges.append(_quantiles(ordered, mass[present][order]))
    return Binning(codes, tuple(edges))


def _quantiles(ordered: Floats, mass: Floats) -> Floats:
    """Ends of bins of equal weight: where the distribution function reaches each share of it."""
    reached = np.cumsum(mass)
    shares = np.arange(1, MOST_BINS) * reached[-1] / MOST_BINS
    low, high = (np.searchsorted(reached, shares, side=side) for side in ("left", "right"))
    last = len(ordered) - 1
    return np.unique((ordered[np.minimum(low, last)] + ordered[np.minimum(high, last)]) / 2)

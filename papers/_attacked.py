"""What a tree of boxes tells about groups and about persons: both measures of cormode2013.

Utility: the median relative error of 2,000 COUNT queries, each over half of the domain of every
column, with a true answer above zero. Privacy: how many people's confidential value a naive Bayes
classifier guesses that was learnt from the boxes; it guesses for the very people in the table.

The second workload takes half rounded down, and leaves columns with two values alone; on Adult it
leaves the confidential column alone too. That is the reading that has the paper's selectivity.

Whole numbers are places as categories are: x holds the places from x to x + 1, a query covers whole
values, and |[x, y]| counts values, as in the paper.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from _common import SEED, Floats
from _trees import Study, Tree

from shoal.core import BoxKernel, SpatialDecomposition
from shoal.metrics import count_queries
from shoal.metrics.attacks import naive_bayes
from shoal.metrics.boxes import WeightedBoxes

QUERIES = 2000
OWN_BOX = "the person's own box"


Workload = tuple[count_queries.Queries, Floats]
"""Queries, and their true answers."""


@dataclass(frozen=True, eq=False)
class Asked:
    """People with their places, and two workloads with their true answers.

    Attributes:
        places: people by columns, the confidential one last.
        first: queries that restrict every column to half rounded up, and their answers.
        second: those of the reading that has the paper's selectivity.
    """

    places: Floats
    lows: Floats
    highs: Floats
    first: Workload
    second: Workload

    @classmethod
    def of(cls, study: Study, percent: int = 100, *, queries: int = QUERIES) -> "Asked":
        """Ask about a part of a table."""
        frame = study.part(percent)
        places, lows, highs = [], [], []
        for name, spec in study.columns.items():
            if "bounds" in spec:
                places.append(frame[name].to_numpy())
                lows.append(spec["bounds"][0])
                highs.append(spec["bounds"][1] + 1)
            else:
                codes = {level: code for code, level in enumerate(spec["categories"])}
                texts = frame[name].cast(pl.String)
                places.append(texts.replace_strict(codes, return_dtype=pl.Int64).to_numpy())
                lows.append(0)
                highs.append(len(codes))
        X = np.column_stack(places).astype(np.float64)
        low, high = np.array(lows, dtype=float), np.array(highs, dtype=float)
        kinds = (True,) * X.shape[1]
        indexed = count_queries.index(WeightedBoxes.points(X, discrete=kinds))
        first = count_queries.draw_answered_half_ranges(
            indexed, low, high, kinds, queries=queries, rng=np.random.default_rng(SEED)
        )
        second = half_of_many(X, low, high, queries=queries, secret=study.secret_asked)
        return cls(X, low, high, first, second)

    def selectivity(self, axes: int) -> float:
        """Median share of the people that half ranges of so many columns ask for."""
        kinds = (True,) * self.places.shape[1]
        indexed = count_queries.index(WeightedBoxes.points(self.places, discrete=kinds))
        _, true = count_queries.draw_answered_half_ranges(
            indexed, self.lows, self.highs, kinds,
            queries=QUERIES, rng=np.random.default_rng(SEED), axes=axes,
        )  # fmt: skip
        return float(np.median(true)) / len(self.places)

    def many(self, *, secret: bool) -> float:
        """The same for half rounded down of the columns with more than two values."""
        _, true = half_of_many(self.places, self.lows, self.highs, queries=QUERIES, secret=secret)
        return float(np.median(true)) / len(self.places)

    def errors(self, tree: SpatialDecomposition) -> tuple[float, float]:
        """Median relative error of both workloads."""
        boxes = WeightedBoxes.of(tree, domain=(self.lows[:-1], self.highs[:-1]))
        kinds = (True,) * self.places.shape[1]
        indexed = count_queries.index(WeightedBoxes(boxes.lower, boxes.upper, boxes.weights, kinds))
        first, second = (
            count_queries.median_relative_error(
                count_queries.relative_errors(true, count_queries.answers(indexed, queries))
            ).value
            for queries, true in (self.first, self.second)
        )
        return first, second

    def accuracy(
        self, tree: SpatialDecomposition, *, smoothing: float = 0.0, kernel: str = "even"
    ) -> tuple[float, float]:
        """Share of the people whose value is guessed, and of the surest hundredth of them.

        The paper does not smooth, and spreads each count evenly over its box.

        Args:
            tree: what the attacker sees.
            smoothing: records of which nothing is known, added to each value.
            kernel: even; middle, where all of a box lies; wide, over twice its width.
        """
        model = naive_bayes.learn(
            tree.lower,
            tree.upper,
            tree.counts,
            discrete=(True,) * len(tree.columns),
            domains=np.column_stack([self.lows, self.highs])[:-1],
            smoothing=smoothing,
            kernel=BoxKernel(kernel),
        )
        found = self._found(naive_bayes.guess(model, self.places[:, :-1]))
        return found.attack.main.value, found.top.value

    def _found(self, guesses: naive_bayes.Guesses) -> naive_bayes.EmpiricalPrivacy:
        return naive_bayes.empirical_privacy(guesses, self.places[:, -1].astype(np.int64))

    def classifiers(self, tree: SpatialDecomposition, *, boost: bool) -> dict[str, float]:
        """Accuracy of other attackers, the paper's first; boosting where scikit-learn is there."""
        found = {
            "naive Bayes": self.accuracy(tree)[0],
            "smoothed by one record": self.accuracy(tree, smoothing=1.0)[0],
            "counts in the middle": self.accuracy(tree, kernel="middle")[0],
            "counts over twice the width": self.accuracy(tree, kernel="wide")[0],
            OWN_BOX: self._own_box(tree),
        }
        if not boost:
            return found
        try:
            from shoal.metrics.attacks import boosting  # noqa: PLC0415 (optional)
        except ImportError:
            return found
        X = self.places[:, :-1]
        kinds = (False,) * X.shape[1]  # Places in order, as the trees cut them.
        rng = np.random.default_rng(SEED)
        model = boosting.learn_codes(tree.lower, tree.upper, tree.counts, discrete=kinds, rng=rng)
        guesses = boosting.guess_codes(model, X + 0.5)
        return {**found, "gradient boosting": self._found(guesses).attack.main.value}

    def _own_box(self, tree: SpatialDecomposition) -> float:
        """The most frequent value of the box that a person lies in."""
        right, best = 0, tree.counts.argmax(axis=1)
        people, times = np.unique(self.places, axis=0, return_counts=True)
        for some in np.array_split(np.arange(len(people)), 50):
            places = people[some, None, :-1]
            held = ((places >= tree.lower) & (places < tree.upper)).all(2)
            right += int(times[some][best[held.argmax(axis=1)] == people[some, -1]].sum())
        return right / len(self.places)


def half_of_many(
    places: Floats, lows: Floats, highs: Floats, *, queries: int, secret: bool
) -> Workload:
    """Queries over half, rounded down, of each column with more than two values.

    Args:
        places: people by columns.
        lows: least place of each column.
        highs: the end of each column.
        queries: how many with a true answer above zero.
        secret: restrict the last column too.
    """
    rng = np.random.default_rng(SEED)
    cells = (highs - lows).astype(np.int64)
    free = cells <= 2
    free[-1] |= not secret
    indexed = count_queries.index(WeightedBoxes.points(places, discrete=(True,) * len(cells)))
    first = rng.integers(0, cells - cells // 2 + 1, size=(4 * queries, len(cells)))
    lower = np.where(free, -np.inf, lows + first)
    upper = np.where(free, np.inf, lows + first + cells // 2)
    true = count_queries.answers(indexed, count_queries.Queries(lower, upper))
    kept = np.flatnonzero(true > 0)[:queries]
    return count_queries.Queries(lower[kept], upper[kept]), true[kept]


@dataclass(frozen=True)
class Mark:
    """A mark on a figure: means over runs, with standard errors; 0 where there is one run.

    Attributes:
        error: median relative error over all columns.
        second: the same of the second workload.
        accuracy: of the classifier.
        surest: its accuracy on the hundredth of the people whom it is surest of.
    """

    figure: int
    model: str
    parameter: str
    value: float
    percent: int
    runs: int
    boxes: float
    error: float
    error_se: float
    second: float
    second_se: float
    accuracy: float
    accuracy_se: float
    surest: float

    def increase(self, rho: float) -> float:
        """Increase of accuracy over a baseline, in percent."""
        return 100 * (self.accuracy / rho - 1)


HEADER = ["table", *Mark.__dataclass_fields__]


def cells(table: str, mark: Mark) -> list[Any]:
    """A line of the table of all marks."""
    return [table, *(getattr(mark, name) for name in Mark.__dataclass_fields__)]


def marks(study: Study, trees: Iterable[Tree]) -> list[Mark]:
    """Measure releases; repetitions, which follow one another, become one mark."""
    asked: dict[int, Asked] = {}
    found = []
    for _, group in groupby(trees, key=_same):
        runs: list[tuple[float, ...]] = []
        for tree in group:
            percent = tree.point.percent
            if percent not in asked:
                asked[percent] = Asked.of(study, percent)
            here = asked[percent]
            runs.append((len(tree.boxes), *here.errors(tree.boxes), *here.accuracy(tree.boxes)))
            point = tree.point
        means, errors = _summed(runs)
        found.append(Mark(
            point.figure, point.model, point.parameter, point.value, point.percent, len(runs),
            means[0], means[1], errors[1], means[2], errors[2], means[3], errors[3], means[4],
        ))  # fmt: skip
    return found


def _same(tree: Tree) -> tuple[Any, ...]:
    point = tree.point
    return point.figure, point.model, point.parameter, point.percent


def _summed(runs: Sequence[tuple[float, ...]]) -> tuple[list[float], list[float]]:
    F = np.array(runs, dtype=float)
    spread = F.std(axis=0, ddof=1) if len(F) > 1 else np.zeros(F.shape[1])
    return F.mean(axis=0).tolist(), (spread / math.sqrt(len(F))).tolist()

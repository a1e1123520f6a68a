"""What a tree of boxes tells about groups and about persons: both measures of cormode2013.

Utility: the median relative error of 2,000 COUNT queries, each over half of the domain of every
column, with a true answer above zero. Privacy: how many people's confidential value a naive Bayes
classifier guesses that was learnt from the boxes; it guesses for the very people in the table.

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

from shoal.core import SpatialDecomposition
from shoal.metrics import count_queries
from shoal.metrics.attacks import naive_bayes
from shoal.metrics.boxes import WeightedBoxes

QUERIES = 2000
FEW = 3
"""Columns that the second workload restricts."""


@dataclass(frozen=True, eq=False)
class Asked:
    """People with their places, and two workloads with their true answers.

    Attributes:
        places: people by columns, the confidential one last.
        all_columns: queries that restrict every column, and their answers.
        few_columns: queries that restrict three columns, drawn for each.
    """

    places: Floats
    lows: Floats
    highs: Floats
    all_columns: tuple[count_queries.Queries, Floats]
    few_columns: tuple[count_queries.Queries, Floats]

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
        rng = np.random.default_rng(SEED)
        every, few = (
            count_queries.answered_half_ranges(
                indexed, low, high, kinds, queries=queries, rng=rng, axes=axes
            )
            for axes in (None, FEW)
        )
        return cls(X, low, high, every, few)

    def selectivity(self, axes: int | None) -> float:
        """Median share of the people that half ranges of so many columns ask for."""
        kinds = (True,) * self.places.shape[1]
        indexed = count_queries.index(WeightedBoxes.points(self.places, discrete=kinds))
        _, true = count_queries.answered_half_ranges(
            indexed, self.lows, self.highs, kinds,
            queries=QUERIES, rng=np.random.default_rng(SEED), axes=axes,
        )  # fmt: skip
        return float(np.median(true)) / len(self.places)

    def errors(self, tree: SpatialDecomposition) -> tuple[float, float]:
        """Median relative error of both workloads."""
        boxes = WeightedBoxes.of(tree, domain=(self.lows[:-1], self.highs[:-1]))
        kinds = (True,) * self.places.shape[1]
        indexed = count_queries.index(WeightedBoxes(boxes.lower, boxes.upper, boxes.weights, kinds))
        every, few = (
            count_queries.median_relative_error(
                count_queries.relative_errors(true, count_queries.answers(indexed, queries))
            ).value
            for queries, true in (self.all_columns, self.few_columns)
        )
        return every, few

    def accuracy(self, tree: SpatialDecomposition) -> float:
        """Share of the people whose value is guessed, without smoothing, as in the paper."""
        model = naive_bayes.learn(
            tree.lower,
            tree.upper,
            tree.counts,
            discrete=(True,) * len(tree.columns),
            domains=np.column_stack([self.lows, self.highs])[:-1],
            smoothing=0.0,
        )
        guesses = naive_bayes.guess(model, self.places[:, :-1])
        found = naive_bayes.empirical_privacy(guesses, self.places[:, -1].astype(np.int64))
        return found.attack.main.value


@dataclass(frozen=True)
class Mark:
    """A mark on a figure: means over runs, with standard errors; 0 where there is one run.

    Attributes:
        error: median relative error over all columns.
        few: the same where three columns are restricted.
        accuracy: of the classifier.
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
    few: float
    few_se: float
    accuracy: float
    accuracy_se: float

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
        runs: list[tuple[float, float, float, float]] = []
        for tree in group:
            percent = tree.point.percent
            if percent not in asked:
                asked[percent] = Asked.of(study, percent)
            every, few = asked[percent].errors(tree.boxes)
            runs.append((len(tree.boxes), every, few, asked[percent].accuracy(tree.boxes)))
            point = tree.point
        means, errors = _summed(runs)
        found.append(Mark(
            point.figure, point.model, point.parameter, point.value, point.percent, len(runs),
            means[0], means[1], errors[1], means[2], errors[2], means[3], errors[3],
        ))  # fmt: skip
    return found


def _same(tree: Tree) -> tuple[Any, ...]:
    point = tree.point
    return point.figure, point.model, point.parameter, point.percent


def _summed(runs: Sequence[tuple[float, ...]]) -> tuple[list[float], list[float]]:
    F = np.array(runs, dtype=float)
    spread = F.std(axis=0, ddof=1) if len(F) > 1 else np.zeros(F.shape[1])
    return F.mean(axis=0).tolist(), (spread / math.sqrt(len(F))).tolist()

"""Utility for learning: prediction of held-out original rows, and the user's own regression.

A model trained on the release is scored on original rows, against one trained on the original
and against none at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import Estimate
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.metrics import _sklearn
from shoal.metrics.intervals import wilson
from shoal.metrics.regression import features, logistic, standard

BOOTSTRAP = 1000
"""Samples of the tested rows behind an interval of R2."""


class PredictionTask(StrEnum):
    """The target of a prediction: a category, scored by accuracy, or a number, scored by R2."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class Model(StrEnum):
    """The model that is trained: gradient boosting, or a (generalised) linear model."""

    BOOSTING = "boosting"
    LINEAR = "linear"


class LabelledRows(NamedTuple):
    """Rows for training or testing.

    Attributes:
        X: records by columns; codes for categories, NaN for missing.
        y: the target, a code or a number; rows without one are left out.
        weights: persons each row stands for, 1 by default; rows with a weight of 0 or less are
            left out.
    """

    X: Floats
    y: Floats
    weights: Floats | None = None


class Learned(NamedTuple):
    """Scores on held-out original rows: accuracy or R2.

    Attributes:
        released: score of the model trained on the release.
        original: score of the model trained on the original.
        baseline: score of the most frequent category, or of the mean, of the original.
        tested: number of held-out rows.
    """

    released: Estimate
    original: Estimate
    baseline: Estimate
    tested: int


def learn(
    released: LabelledRows,
    original: LabelledRows,
    held_out: LabelledRows,
    *,
    categorical: ArrayLike,
    task: PredictionTask,
    rng: np.random.Generator,
    model: Model = Model.BOOSTING,
    most: int = 200_000,
    most_tested: int = 20_000,
    confidence: float = 0.95,
) -> Learned:
    """Train on the release, and test on held-out original rows.

    Accuracy has Wilson's interval, R2 = 1 - SSE/SST the percentile interval of 1,000 bootstrap
    samples of the tested rows. The intervals speak of the tested rows, not of other fits. Weights
    count in training, not in testing.

    The test is fair only if the release was made without the held-out rows. A release of the
    whole original has seen them: its score is then what an analyst gets for people who are in
    the table, and more than for others.

    Args:
        released: rows to learn from; a box stands for its centre (`WeightedBoxes.centres`).
        original: rows of the original to learn from.
        held_out: other rows of the original.
        categorical: which columns are codes.
        task: what is predicted.
        rng: draws rows, and samples for the intervals of R2.
        model: what is trained.
        most: rows to learn from at most; more are sampled.
        most_tested: rows to be tested at most.
        confidence: of the intervals.

    Raises:
        InputError: no row to learn from or to be tested, or a target without spread in the tested
            rows of a regression.
    """
    tested = _usable(held_out, "held-out original", most_tested, rng)
    truth = tested.y
    if task is PredictionTask.REGRESSION and np.ptp(truth) == 0:
        raise InputError("The target is constant in the held-out rows: R2 is not defined.")
    sides = {
        name: _usable(rows, name, most, rng)
        for name, rows in (("released", released), ("original", original))
    }
    guesses = [
        _predict(side, tested.X, categorical, task=task, model=model) for side in sides.values()
    ]
    guesses.append(np.full(len(truth), _constant(sides["original"], task)))
    if task is PredictionTask.CLASSIFICATION:
        scores = [wilson(int((g == truth).sum()), len(truth), confidence) for g in guesses]
    else:
        scores = _r2(truth, np.array(guesses), rng, confidence)
    return Learned(scores[0], scores[1], scores[2], len(truth))


def _usable(rows: LabelledRows, name: str, most: int, rng: np.random.Generator) -> LabelledRows:
    X, y = np.asarray(rows.X, dtype=np.float64), np.asarray(rows.y, dtype=np.float64)
    given = np.ones(len(y)) if rows.weights is None else np.asarray(rows.weights, np.float64)
    if X.ndim != 2 or y.shape != (len(X),) or given.shape != y.shape:
        raise InputError(f"Expected one target and one weight for each {name} row.")
    kept = np.flatnonzero(~np.isnan(y) & (given > 0))
    if not kept.size:
        raise InputError(f"There is no {name} row with a target, so nothing can be learned.")
    if len(kept) > most:
        kept = rng.choice(kept, most, replace=False)
    return LabelledRows(X[kept], y[kept], given[kept])


def _predict(
    rows: LabelledRows,
    X: Floats,
    categorical: ArrayLike,
    *,
    task: PredictionTask,
    model: Model,
) -> Floats:
    if np.ptp(rows.y) == 0 or not X.shape[1]:
        return np.full(len(X), _constant(rows, task))
    classify = task is PredictionTask.CLASSIFICATION
    if model is Model.BOOSTING:
        trees = _sklearn.boost(
            rows.X, rows.y, categorical=categorical, classify=classify, weights=rows.weights
        )
        return trees.predict(X)
    machine = _sklearn.regression(classify=classify)
    kinds = features(rows.X, categorical)
    train, test = kinds.apply(rows.X), kinds.apply(X)
    if not train.shape[1]:
        return np.full(len(X), _constant(rows, task))
    guessed = _sklearn.run_quietly(
        lambda: machine.fit(train, rows.y, sample_weight=rows.weights).predict(test)
    )
    return np.asarray(guessed, dtype=np.float64)


def _constant(rows: LabelledRows, task: PredictionTask) -> float:
    if task is PredictionTask.REGRESSION:
        return float(np.average(rows.y, weights=rows.weights))
    values, codes = np.unique(rows.y, return_inverse=True)
    return float(values[np.bincount(codes.ravel(), weights=rows.weights).argmax()])


def _r2(
    truth: Floats, guesses: Floats, rng: np.random.Generator, confidence: float
) -> list[Estimate]:
    """Compute R2 of each model, with percentile intervals from common bootstrap samples."""
    n, models = len(truth), len(guesses)
    centred = truth - truth.mean()
    sums = np.column_stack([*((truth - guesses) ** 2), centred, centred**2])
    total = sums.sum(axis=0)
    drawn = np.array([
        np.bincount(rng.integers(0, n, n), minlength=n) @ sums for _ in range(BOOTSTRAP)
    ])  # fmt: skip
    spread = drawn[:, -1] - drawn[:, -2] ** 2 / n
    drawn, spread = drawn[spread > 0], spread[spread > 0]
    tail = (1 - confidence) / 2
    scores = []
    for model in range(models):
        value = 1 - float(total[model] / total[-1])
        some = 1 - drawn[:, model] / spread
        low, high = np.quantile(some, [tail, 1 - tail]) if some.size else (value, value)
        scores.append(Estimate(value, min(float(low), value), max(float(high), value), confidence))
    return scores


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted regression with its intervals.

    Attributes:
        coefficients: the intercept, then one per column; NaN where it cannot be estimated.
        lows: lower ends of the confidence intervals.
        highs: upper ends.
        rows: number of complete rows, on which it rests.
    """

    coefficients: Floats
    lows: Floats
    highs: Floats
    rows: int


class Overlaps(NamedTuple):
    """The overlap of confidence intervals: 1 if they are equal, 0 if disjoint.

    Attributes:
        mean: over the coefficients that the original can estimate.
        each: by coefficient, the intercept first; NaN where the original has none.
    """

    mean: float
    each: tuple[float, ...]


def regress(X: ArrayLike, y: ArrayLike, *, confidence: float = 0.95, binary: bool = False) -> Fit:
    """Fit a linear regression, or a logistic one for a target of 0 and 1, with intervals.

    The intervals are the usual ones: Student's for least squares, with n - p degrees of freedom,
    and Wald's for the logistic model. Rows with a missing cell are left out. A column that is
    constant, or a sum of earlier ones, has coefficient NaN, and so have all where rows are too
    few or the classes can be told apart without error. Cost O(n m^2).

    The intervals treat the release as a sample and ignore the noise that protects it.
    """
    A, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if A.ndim != 2 or target.shape != (len(A),):
        raise InputError("Expected a matrix of records by columns, and one target per record.")
    complete = ~(np.isnan(A).any(axis=1) | np.isnan(target))
    if not complete.all():
        A, target = A[complete], target[complete]
    if binary and not np.isin(target, (0.0, 1.0)).all():
        raise InputError("The target of a logistic regression must be 0 or 1.")
    n, p = len(A), A.shape[1] + 1
    none = Fit(np.full(p, np.nan), np.full(p, np.nan), np.full(p, np.nan), n)
    if not n:
        return none
    Z, kept, centres, scales = standard(A)
    free = n - 1 - Z.shape[1]
    if binary:
        fit = logistic(Z, target)
        if not fit.converged:
            return none
        quantile = scipy.special.ndtri((1 + confidence) / 2)
        inner, covariance = fit.coefficients, fit.covariance
    else:
        if free < 1:
            return none
        B = np.column_stack([np.ones(n), Z])
        gram = np.linalg.inv(B.T @ B)
        inner = gram @ (B.T @ target)
        inner += gram @ (B.T @ (target - B @ inner))
        covariance = gram * (((target - B @ inner) ** 2).sum() / free)
        quantile = scipy.special.stdtrit(free, (1 + confidence) / 2)
    # Back from standard scores to the columns' own units.
    back = np.zeros((p, len(inner)))
    back[0, 0] = 1.0
    columns = np.flatnonzero(kept)
    back[1 + columns, 1 + np.arange(len(columns))] = 1 / scales[columns]
    back[0, 1:] = -centres[columns] / scales[columns]
    coefficients = back @ inner
    half = quantile * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", back, covariance, back), 0.0))
    gone = np.concatenate([[False], ~kept])
    coefficients[gone] = half[gone] = np.nan
    return Fit(coefficients, coefficients - half, coefficients + half, n)


def interval_overlap(original: Fit, released: Fit) -> Overlaps:
    """Compute the mean overlap of the confidence intervals of two fits of one model.

        J = 1/2 (common / original length + common / released length)

    with common the length that both have in common, 0 where they do not touch. A coefficient
    that the release cannot estimate has 0. An interval of length 0 counts 1 where the other
    holds it.

    References:
        Karr, Kohnen, Oganian, Reiter and Sanil, "A framework for evaluating the utility of data
        altered to protect confidentiality", The American Statistician 60 (2006).
        doi:10.1198/000313006X124640
    """
    if original.coefficients.shape != released.coefficients.shape:
        raise InputError("Both fits must be of the same model, with the same coefficients.")
    each = [
        _overlap((a, b), (c, d))
        for a, b, c, d in zip(
            original.lows, original.highs, released.lows, released.highs, strict=True
        )
    ]
    known = [share for share in each if not np.isnan(share)]
    return Overlaps(float(np.mean(known)) if known else float("nan"), tuple(each))


def _overlap(mine: Sequence[float], other: Sequence[float]) -> float:
    if np.isnan(mine[0]):
        return float("nan")
    low, high = max(mine[0], other[0]), min(mine[1], other[1])
    if np.isnan(other[0]) or low > high:
        return 0.0
    shares = [(high - low) / (end - start) if end > start else 1.0 for start, end in (mine, other)]
    return float(np.mean(shares))

"""Models of scikit-learn for attackers and analysts, in one thread.

On a shared machine more threads cost more time than they save, and results must not depend on
their number. scikit-learn is imported when a model is first trained.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats

Result = TypeVar("Result")

ROUNDS = 15
RATE = 0.4
RIDGE = 3.0
"""Rare values make leaves of almost no weight, whose guesses would be unbounded without it."""
LEAVES = 31
MOST_BINS = 255
"""Categories of a column, at most: codes of more are taken as numbers."""


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A fitted `HistGradientBoostingClassifier` or `HistGradientBoostingRegressor`."""

    model: Any

    @property
    def classes(self) -> Floats:
        """The classes, ascending."""
        return np.asarray(self.model.classes_, dtype=np.float64)

    def predict(self, X: Floats) -> Floats:
        """Predict each record's number, or its most probable class; ties go to the lowest."""
        return np.asarray(run_quietly(lambda: self.model.predict(X)), dtype=np.float64)

    def chances(self, X: Floats) -> Floats:
        """Estimate the probability of each class (columns) for each record."""
        return np.asarray(run_quietly(lambda: self.model.predict_proba(X)), dtype=np.float64)


def boost(
    X: Floats,
    y: ArrayLike,
    *,
    categorical: ArrayLike,
    classify: bool,
    weights: Floats | None = None,
    leaves: int = LEAVES,
) -> BoostedTrees:
    """Train gradient boosting of regression trees on binned columns, without early stopping.

    Nothing is drawn at random. Missing cells, and categories that no row had, go to the side of a
    split that fits better.

    Args:
        X: records by columns; codes for categories, NaN for missing.
        y: the class or the number of each record; at least two classes.
        categorical: which columns are codes.
        classify: whether y is a class.
        weights: of the records, positive; the ridge is in their units.
        leaves: of a tree, at most.

    References:
        Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
        29 (2001). doi:10.1214/aos/1013203451
        Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NeurIPS 2017.
    """
    from sklearn import ensemble  # noqa: PLC0415 (a second to import, and most commands train none)

    kind = (
        ensemble.HistGradientBoostingClassifier
        if classify
        else ensemble.HistGradientBoostingRegressor
    )
    codes = [
        bool(is_code) and len(np.unique(column[~np.isnan(column)])) <= MOST_BINS
        for is_code, column in zip(np.asarray(categorical), X.T, strict=True)
    ]
    model = kind(
        max_iter=ROUNDS,
        learning_rate=RATE,
        l2_regularization=RIDGE,
        max_leaf_nodes=leaves,
        max_bins=MOST_BINS,
        early_stopping=False,
        categorical_features=codes,
        random_state=0,
    )
    # scikit-learn cannot bin a column of which nothing is known.
    known = np.where(np.isnan(X).all(axis=0), 0.0, X)
    return BoostedTrees(run_quietly(lambda: model.fit(known, np.asarray(y), sample_weight=weights)))


def regression(*, classify: bool) -> Any:
    """Return a linear regression, or a logistic one for any number of classes, unfitted."""
    from sklearn import linear_model  # noqa: PLC0415 (as above)

    if classify:
        return linear_model.LogisticRegression(max_iter=200)
    return linear_model.LinearRegression()


def run_quietly(work: Callable[[], Result]) -> Result:
    """Run in one thread, without convergence warnings."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra and models to one thread."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (as above)

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits

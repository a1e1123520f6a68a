"""The models of scikit-learn that metrics train, behind its optional extra.

One thread each: on a shared machine more threads cost more time than they save, and results
must not depend on their number.
"""

import importlib
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats
from shoal.errors import InputError

Result = TypeVar("Result")

MOST_CODES = 255
"""The most categories that scikit-learn's boosting splits freely; beyond, codes are numbers."""


def boosting(
    X: Floats, categorical: ArrayLike, *, classify: bool, rng: np.random.Generator, **settings: Any
) -> Any:
    """A histogram gradient boosting model for the columns of X, unfitted."""
    ensemble = _load("sklearn.ensemble")
    codes = np.asarray(categorical, dtype=bool)
    highest = np.where(np.isnan(X), 0.0, X).max(axis=0, initial=0.0)
    name = "Classifier" if classify else "Regressor"
    kind = getattr(ensemble, f"HistGradientBoosting{name}")
    # Rare values make leaves of almost no weight, whose guesses would be unbounded.
    settings = {"max_iter": 15, "learning_rate": 0.4, "l2_regularization": 3.0, **settings}
    return kind(
        categorical_features=codes & (highest < MOST_CODES), early_stopping=False,
        random_state=int(rng.integers(2**31)), **settings,
    )  # fmt: skip


def without_empty_columns(X: Floats) -> Floats:
    """Zeros for columns that have no cell present, on which boosting would fail."""
    return np.where(np.isnan(X).all(axis=0), 0.0, X)


def regression(*, classify: bool) -> Any:
    """A linear regression, or a logistic one for any number of classes, unfitted."""
    linear = _load("sklearn.linear_model")
    return linear.LogisticRegression(max_iter=200) if classify else linear.LinearRegression()


def quietly(work: Callable[[], Result]) -> Result:
    """Run with one thread and without warnings about the last digits of convergence."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra and models to one thread, where there is a package that can."""
    try:
        pools = importlib.import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    return cast("AbstractContextManager[Any]", pools.threadpool_limits(1))


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError("This metric needs scikit-learn. Install the extra 'sklearn'.") from None

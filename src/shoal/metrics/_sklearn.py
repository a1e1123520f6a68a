"""Linear models of scikit-learn, behind its optional extra, and linear algebra in one thread.

On a shared machine more threads cost more time than they save, and results must not depend on
their number.
"""

import importlib
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from shoal.errors import InputError

Result = TypeVar("Result")


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

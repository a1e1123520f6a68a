"""Boosted trees of scikit-learn, as the metrics set them up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.metrics._sklearn import MOST_BINS, boost


def table(seed, *, codes=0, gaps=False, rows=700):
    """Normal numbers, some categories, and a number that depends on both."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 12, (rows, codes))])
    y = X[:, 0] * 2 + np.sin(3 * X[:, 1]) + X[:, 2:].sum(axis=1) % 5 + rng.normal(size=rows)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.exponential(size=rows) + 0.1


@settings(max_examples=30)
@given(
    st.integers(0, 2**32), st.integers(1, 80), st.integers(0, 2), st.booleans(), st.integers(1, 4)
)
def test_a_fit_is_not_worse_than_a_constant(seed, rows, codes, gaps, classes):
    X, y, weights = table(seed, codes=codes, gaps=gaps, rows=rows)
    if classes > 1:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        if len(np.unique(y)) < 2:
            return

    trees = boost(
        X, y, categorical=[False] * 2 + [True] * codes, classify=classes > 1, weights=weights
    )

    if classes > 1:
        labels = np.searchsorted(trees.classes, y)
        shares = trees.chances(X)[np.arange(rows), labels]
        prior = np.bincount(labels, weights=weights) / weights.sum()
        gain = np.average(np.log(shares) - np.log(prior[labels]), weights=weights)
        assert gain >= -1e-6
    else:
        error = np.average((trees.predict(X) - y) ** 2, weights=weights)
        mean = np.average(y, weights=weights)
        assert error <= np.average((y - mean) ** 2, weights=weights) + 1e-6


def test_nothing_is_drawn_and_the_number_of_threads_changes_nothing():
    pools = pytest.importorskip("threadpoolctl")
    X, y, weights = table(3, codes=1, gaps=True)
    kinds = [False, False, True]

    guesses = []
    for threads in (1, 2):
        with pools.threadpool_limits(threads):
            trees = boost(X, y, categorical=kinds, classify=False, weights=weights)
            guesses.append(trees.predict(X))

    np.testing.assert_array_equal(*guesses)


def test_what_was_never_seen_is_guessed_like_what_is_missing():
    X = np.column_stack([np.arange(200.0) % 4, np.full(200, np.nan)])
    y = np.where(X[:, 0] == 2, 5.0, 1.0)

    trees = boost(X, y, categorical=[True, False], classify=False)

    guesses = trees.predict(np.array([[2.0, 0.0], [9.0, 0.0], [np.nan, np.nan], [1.0, 3.0]]))
    assert guesses[0] == pytest.approx(5.0, abs=0.05)
    assert guesses[1] == guesses[2]


def test_codes_beyond_the_bins_are_numbers():
    codes = np.arange(MOST_BINS + 1.0)

    trees = boost(codes[:, None], codes, categorical=[True], classify=False)

    assert not np.any(trees.model.is_categorical_)
    assert np.corrcoef(trees.predict(codes[:, None]), codes)[0, 1] > 0.99

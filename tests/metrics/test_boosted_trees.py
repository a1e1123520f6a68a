"""Boosted trees: scikit-learn's as their twin, and what must hold of any."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.metrics import _boosted_trees as boosted_trees
from shoal.metrics._boosted_trees import boost, chances, predicted
from shoal.metrics._sklearn import quietly


def table(seed, *, codes=0, gaps=False, rows=700):
    """Normal numbers, some categories, and a number that depends on both."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 12, (rows, codes))])
    y = X[:, 0] * 2 + np.sin(3 * X[:, 1]) + X[:, 2:].sum(axis=1) % 5 + rng.normal(size=rows)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.exponential(size=rows) + 0.1


def theirs(X, y, weights, *, classify, codes=0):
    """scikit-learn's trees with the same settings."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    kind = getattr(ensemble, f"HistGradientBoosting{'Classifier' if classify else 'Regressor'}")
    model = kind(
        max_iter=15, learning_rate=0.4, l2_regularization=3.0, early_stopping=False,
        categorical_features=np.arange(X.shape[1]) >= X.shape[1] - codes,
    )  # fmt: skip
    return quietly(lambda: model.fit(X, y, sample_weight=weights))


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_of_numbers_are_those_of_scikit_learn(classes, weighted):
    """Two cuts of equal gain are told apart by rounding, now and then: most tables must agree."""
    agreed = 0
    for seed in range(4):
        X, y, weights = table(seed)
        weights = weights if weighted else None
        if classes:
            y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        twin = theirs(X, y, weights, classify=bool(classes))
        trees = boost(X, y, categorical=[False] * 2, classify=bool(classes), weights=weights)
        fresh = table(seed + 100)[0]
        want = twin.predict_proba(fresh) if classes else twin.predict(fresh)
        found = chances(trees, fresh) if classes else predicted(trees, fresh)
        agreed += np.allclose(found, want, atol=1e-5)

    assert agreed >= 3


def test_trees_of_categories_and_gaps_fit_as_well_as_those_of_scikit_learn():
    ours, twins = [], []
    for seed in range(4):
        X, y, weights = table(seed, codes=2, gaps=True, rows=1500)
        trees = boost(X, y, categorical=[False] * 2 + [True] * 2, classify=False, weights=weights)
        twin = theirs(X, y, weights, classify=False, codes=2)
        ours.append(np.average((predicted(trees, X) - y) ** 2, weights=weights))
        twins.append(np.average((twin.predict(X) - y) ** 2, weights=weights))

    assert np.mean(ours) == pytest.approx(np.mean(twins), rel=0.02)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32), st.integers(1, 80), st.integers(0, 2), st.booleans(), st.integers(1, 4)
)
def test_leaves_have_enough_rows_and_a_fit_is_not_worse_than_a_constant(
    seed, rows, codes, gaps, classes
):
    X, y, weights = table(seed, codes=codes, gaps=gaps, rows=rows)
    classify = classes > 1
    if classify:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        if len(np.unique(y)) < 2:
            return

    trees = boost(
        X, y, categorical=[False] * 2 + [True] * codes, classify=classify, weights=weights
    )

    bins = trees.binning.apply(X)
    for at in np.ndindex(trees.splits.shape):
        leaf = np.array([_leaf(trees, at, row) for row in bins])
        if trees.splits[at]:
            assert np.bincount(leaf).min() >= boosted_trees.FEWEST
    if classify:
        shares = chances(trees, X)[np.arange(rows), np.searchsorted(trees.classes, y)]
        prior = np.bincount(np.searchsorted(trees.classes, y), weights=weights) / weights.sum()
        constant = np.log(prior[np.searchsorted(trees.classes, y)])
        assert (
            np.average(np.log(shares), weights=weights)
            >= np.average(constant, weights=weights) - 1e-9
        )
    else:
        error = np.average((predicted(trees, X) - y) ** 2, weights=weights)
        mean = np.average(y, weights=weights)
        assert error <= np.average((y - mean) ** 2, weights=weights) + 1e-9


def _leaf(trees, at, row):
    """Walk one row down one tree, as the kernel does."""
    node = 0 if trees.splits[at] else -1
    while node >= 0:
        left = trees.left[at][node, row[trees.feature[at][node]]]
        node = trees.child[at][node, 0 if left else 1]
    return ~node


def test_rows_that_are_equal_count_as_often_as_they_occur():
    X, y, weights = table(3, codes=1)
    X = np.round(X)

    once = boost(X, y, categorical=[False, False, True], classify=False, weights=weights)
    order = np.random.default_rng(0).permutation(len(X))
    again = boost(
        X[order], y[order], categorical=[False, False, True], classify=False, weights=weights[order]
    )

    np.testing.assert_allclose(predicted(once, X), predicted(again, X), atol=1e-9)


def test_what_was_never_seen_is_guessed_like_what_is_missing():
    X = np.column_stack([np.arange(200.0) % 4, np.full(200, np.nan)])
    y = np.where(X[:, 0] == 2, 5.0, 1.0)

    trees = boost(X, y, categorical=[True, False], classify=False)

    found = predicted(trees, np.array([[2.0, 0.0], [9.0, 0.0], [np.nan, np.nan], [1.0, 3.0]]))
    assert found[0] == pytest.approx(5.0, abs=0.05)
    assert found[1] == found[2] == found[3]


def test_codes_beyond_the_bins_are_numbers_and_quantiles_follow_weights():
    codes = np.arange(600.0)
    weights = np.where(codes < 300, 1e-6, 1.0)

    binning = boost(
        codes[:, None], codes, categorical=[True], classify=False, weights=weights
    ).binning

    assert not binning.categorical[0]
    assert len(binning.edges[0]) == boosted_trees.MOST_BINS - 1
    assert (binning.edges[0] >= 299).all()

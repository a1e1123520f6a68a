"""Features and logistic regression, the latter against scikit-learn."""

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.metrics.regression import features, logistic, standard


def test_the_fit_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, -0.5, 0.0] + rng.logistic(size=400) > 0.3).astype(float)
    Z = standard(X).Z

    ours = logistic(Z, y)

    theirs = linear_model.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(Z, y)
    assert ours.converged
    assert ours.coefficients[1:] == pytest.approx(theirs.coef_[0], abs=1e-5)
    assert ours.coefficients[0] == pytest.approx(theirs.intercept_[0], abs=1e-5)
    assert ours.chances == pytest.approx(theirs.predict_proba(Z)[:, 1], abs=1e-5)


def test_features_leave_out_one_category_and_cap_their_number():
    X = np.column_stack([[1.0, 2, 3, 4], [7, 7, 8, 9]])

    kinds = features(X, (False, True), products=True)

    assert kinds.categories[1].tolist() == [8, 9]
    # Score, two categories, two products, one square.
    assert kinds.apply(X).shape == (4, 6)
    many = np.column_stack([np.arange(400.0), np.arange(400.0) % 60, np.arange(400.0) % 7])
    assert not features(many, (False, True, True), products=True).products


def test_dependent_columns_are_left_out_in_order():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 2))
    table = np.column_stack([X, np.ones(50), X[:, 0] - 2 * X[:, 1], X[:, 0] ** 2])

    assert standard(table).kept.tolist() == [True, True, False, False, True]


def test_classes_that_can_be_told_apart_do_not_converge_and_a_ridge_keeps_them_finite():
    Z = standard(np.array([[-2.0], [-1.0], [1.0], [2.0]])).Z
    y = np.array([0.0, 0.0, 1.0, 1.0])

    assert not logistic(Z, y).converged
    held = logistic(Z, y, ridge=1e-3)
    assert held.converged
    assert np.abs(held.coefficients).max() < 100


def test_new_rows_have_the_features_of_the_old_ones():
    kinds = features(np.array([[1.0, 0], [3.0, 1], [np.nan, 1]]), (False, True))

    new = kinds.apply(np.array([[2.0, 5], [np.nan, 0]]))

    # Score, missing, and category 0; the unknown category 5 has no feature.
    assert new.tolist() == [[0, 0, 0], [0, 1, 1]]
    with pytest.raises(InputError, match="whether it holds codes"):
        features(np.zeros((2, 2)), (False,))

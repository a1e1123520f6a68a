"""Learning from a release, against scikit-learn, scipy and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress, t

from shoal.errors import InputError
from shoal.metrics.model_utility import (
    Fit,
    LabelledRows,
    Model,
    PredictionTask,
    interval_overlap,
    learn,
    regress,
)

KINDS = (False, True)


def people(rng, n):
    """A number and a code; the target follows the code, and the number within code 2."""
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])
    y = np.where(X[:, 1] == 2, X[:, 0] > 0, X[:, 1] == 1).astype(float)
    return LabelledRows(X, np.where(rng.random(n) < 0.1, 1 - y, y))


@pytest.mark.parametrize("model", list(Model))
def test_a_good_release_learns_as_well_as_the_original_and_a_shuffled_one_nothing(model):
    rng = np.random.default_rng(1)
    original, held_out = people(rng, 1500), people(rng, 800)
    shuffled = LabelledRows(original.X, rng.permutation(original.y))
    settings = {
        "categorical": KINDS,
        "task": PredictionTask.CLASSIFICATION,
        "rng": rng,
        "model": model,
    }

    good = learn(original, original, held_out, **settings)
    bad = learn(shuffled, original, held_out, **settings)

    assert good.released.value == pytest.approx(good.original.value, abs=0.02)
    assert good.original.low > good.baseline.high
    assert bad.released.high < bad.original.low
    assert good.tested == 800
    if model is Model.BOOSTING:
        assert 0.85 < good.original.value <= 0.95


@pytest.mark.parametrize("model", list(Model))
def test_numbers_are_scored_by_r2(model):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 2))
    X[:, 1] = rng.integers(0, 4, 1200)
    y = 3 * X[:, 0] + (X[:, 1] == 2) + rng.normal(size=1200)
    train, test = LabelledRows(X[:800], y[:800]), LabelledRows(X[800:], y[800:])

    found = learn(
        train, train, test, categorical=KINDS, task=PredictionTask.REGRESSION, rng=rng, model=model
    )

    assert found.released.low <= found.released.value <= found.released.high
    assert found.released.value > 0.8
    mean = np.full(400, y[:800].mean())
    assert found.baseline.value == pytest.approx(metrics.r2_score(y[800:], mean))
    assert found.baseline.value == pytest.approx(0, abs=0.05)


def test_weights_of_zero_are_rows_left_out():
    rng = np.random.default_rng(3)
    good, bad = people(rng, 600), people(rng, 600)
    both = LabelledRows(
        np.concatenate([good.X, bad.X]),
        np.concatenate([good.y, 1 - bad.y]),
        np.repeat([1.0, 0.0], 600),
    )
    settings = {"categorical": KINDS, "task": PredictionTask.CLASSIFICATION}
    test = people(rng, 300)

    found = learn(both, good, test, **settings, rng=np.random.default_rng(4))

    assert found.released.value == pytest.approx(found.original.value, abs=0.05)


def test_degenerate_releases_have_a_score_or_a_sentence():
    rng = np.random.default_rng(5)
    original, test = people(rng, 200), people(rng, 100)
    settings = {"categorical": KINDS, "task": PredictionTask.CLASSIFICATION, "rng": rng}

    one_row = learn(LabelledRows(original.X[:1], original.y[:1]), original, test, **settings)
    one_class = learn(LabelledRows(original.X, np.ones(200)), original, test, **settings)
    gone = LabelledRows(np.full((50, 2), np.nan), original.y[:50])
    all_missing = learn(gone, original, test, **settings)
    flat = learn(
        LabelledRows(np.ones((50, 2)), original.y[:50]),
        original,
        test,
        **settings,
        model=Model.LINEAR,
    )

    assert one_row.released.value == (test.y == original.y[0]).mean()
    assert one_class.released.value == test.y.mean()
    bare = [LabelledRows(rows.X[:, :0], rows.y) for rows in (original, original, test)]
    no_column = learn(*bare, **settings | {"categorical": ()})
    for found in (all_missing, flat, no_column):
        assert found.released.value in {(test.y == 0).mean(), (test.y == 1).mean()}
    empty = LabelledRows(np.zeros((0, 2)), np.zeros(0))
    with pytest.raises(InputError, match="no released row with a target"):
        learn(empty, original, test, **settings)
    with pytest.raises(InputError, match="no held-out original row"):
        learn(original, original, LabelledRows(test.X, np.full(100, np.nan)), **settings)
    with pytest.raises(InputError, match="R2 is not defined"):
        learn(original, original, LabelledRows(test.X, np.ones(100)), categorical=KINDS,
              task=PredictionTask.REGRESSION, rng=rng)  # fmt: skip
    with pytest.raises(InputError, match="one target and one weight"):
        learn(LabelledRows(test.X, test.y[:5]), original, test, **settings)


def test_one_column_is_the_regression_of_scipy():
    rng = np.random.default_rng(6)
    x = rng.normal(1e5, 3, 40)
    y = 2 * x + rng.normal(size=40)

    fit = regress(x[:, None], y, confidence=0.9)

    theirs = linregress(x, y)
    half = t.ppf(0.95, 38) * theirs.stderr
    assert fit.coefficients == pytest.approx([theirs.intercept, theirs.slope], rel=1e-6)
    assert fit.lows[1] == pytest.approx(theirs.slope - half, rel=1e-6)
    assert fit.highs[0] - fit.coefficients[0] == pytest.approx(
        t.ppf(0.95, 38) * theirs.intercept_stderr, rel=1e-6
    )


def test_several_columns_are_the_normal_equations():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = X @ [1, 2, 3] + 5 + rng.normal(size=60)
    A = np.column_stack([np.ones(60), X])
    by_hand, residuals = np.linalg.lstsq(A, y)[:2]
    deviations = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * residuals[0] / 56)

    fit = regress(X, y)

    assert fit.coefficients == pytest.approx(by_hand)
    assert (fit.highs - fit.lows) / 2 == pytest.approx(t.ppf(0.975, 56) * deviations)
    assert fit.rows == 60


def test_a_logistic_fit_has_the_slope_zero_and_walds_interval():
    rng = np.random.default_rng(8)
    X = rng.normal(3, 2, size=(500, 2))
    y = (X @ [1.0, -1.0] + rng.logistic(size=500) > 0).astype(float)
    A = np.column_stack([np.ones(500), X])

    fit = regress(X, y, binary=True)

    chances = 1 / (1 + np.exp(-A @ fit.coefficients))
    assert A.T @ (y - chances) == pytest.approx(0, abs=1e-3)
    information = (A * (chances * (1 - chances))[:, None]).T @ A
    half = 1.959964 * np.sqrt(np.diag(np.linalg.inv(information)))
    assert (fit.highs - fit.lows) / 2 == pytest.approx(half, rel=1e-4)


def test_what_cannot_be_estimated_is_nan():
    rng = np.random.default_rng(9)
    x = rng.normal(size=30)
    X = np.column_stack([x, np.ones(30), 2 * x + 1])
    holes = X.copy()
    holes[:, 0] = np.nan

    fit = regress(X, 3 * x + rng.normal(size=30))

    assert np.isnan(fit.coefficients).tolist() == [False, False, True, True]
    for empty in (
        regress(holes, x),
        regress(X[:2, [0]], x[:2]),
        regress(np.zeros((0, 1)), np.zeros(0)),
        regress(x[:, None], x > 0, binary=True),
    ):
        assert np.isnan(empty.coefficients).all()
    with pytest.raises(InputError, match="must be 0 or 1"):
        regress(X, x, binary=True)
    with pytest.raises(InputError, match="one target per record"):
        regress(X, x[:3])


def fit_of(*intervals):
    lows, highs = (np.array(ends, dtype=float) for ends in zip(*intervals, strict=True))
    return Fit((lows + highs) / 2, lows, highs, 10)


def test_overlaps_by_hand():
    nan = np.nan
    original = fit_of((0, 2), (0, 2), (0, 2), (0, 2), (nan, nan), (1, 1))
    released = fit_of((0, 2), (1, 5), (3, 4), (nan, nan), (0, 1), (0, 2))

    found = interval_overlap(original, released)

    each = [1, (1 / 2 + 1 / 4) / 2, 0, 0, nan, (1 + 0) / 2]
    assert found.each == pytest.approx(each, nan_ok=True)
    assert found.mean == pytest.approx(np.nanmean(each))


@given(st.tuples(*[st.floats(-9, 9)] * 4))
def test_overlap_is_symmetric_and_at_most_one(ends):
    a, b = fit_of(sorted(ends[:2])), fit_of(sorted(ends[2:]))

    assert interval_overlap(a, b).mean == pytest.approx(interval_overlap(b, a).mean)
    assert 0 <= interval_overlap(a, b).mean <= 1
    assert interval_overlap(a, a).mean == 1

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from shoal.partition import individual_rankings, insensitive, mdav, optimal_univariates, vmdav
from shoal.sklearn import (
    MDAV,
    VMDAV,
    IndividualRanking,
    Insensitive,
    Mondrian,
    OptimalUnivariate,
)

ROWS = [
    MDAV(k=4),
    Mondrian(k=4),
    VMDAV(k=4, gamma=0.5),
    Insensitive(k=4, order="hilbert", lower=-9, upper=9),
]
COLUMNS = [IndividualRanking(k=4), OptimalUnivariate(k=4)]
X = np.random.default_rng(21).normal(size=(50, 3))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "estimator",
    [MDAV(), Mondrian(), VMDAV(), Insensitive(), IndividualRanking(), OptimalUnivariate()],
    ids=lambda e: type(e).__name__,
)
def test_scikit_learn_accepts_the_estimator(estimator):
    results = check_estimator(estimator, on_skip=None)

    assert {result["status"] for result in results} <= {"passed", "skipped"}


@pytest.mark.parametrize("estimator", [*ROWS, *COLUMNS], ids=lambda e: type(e).__name__)
def test_clones_and_pickles_give_the_same_groups(estimator):
    fitted = clone(estimator).fit(X)

    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  # what was just pickled

    np.testing.assert_array_equal(again.labels_, clone(estimator).fit_predict(X))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_labels_are_those_of_the_functions():
    scaled = (X + 9) / 18

    assert (MDAV(k=4).fit_predict(X) == mdav(X, 4).labels).all()
    assert (VMDAV(k=4).fit_predict(X) == vmdav(X, 4).labels).all()
    assert (
        Insensitive(k=4, lower=-9, upper=9).fit_predict(X) == insensitive(scaled, 4).labels
    ).all()
    for estimator, parts in (
        (IndividualRanking(k=4), individual_rankings(X, 4)),
        (OptimalUnivariate(k=4), optimal_univariates(X, 4)),
    ):
        assert (estimator.fit_predict(X) == np.column_stack([p.labels for p in parts])).all()


@pytest.mark.parametrize("estimator", ROWS, ids=lambda e: type(e).__name__)
def test_every_protected_row_is_the_mean_of_its_group_and_occurs_k_times(estimator):
    repeated = np.repeat(X, 3, axis=0)

    protected = clone(estimator).fit_transform(repeated)

    np.testing.assert_allclose(protected.mean(axis=0), repeated.mean(axis=0))
    _, counts = np.unique(protected, axis=0, return_counts=True)
    assert counts.min() >= 4


@pytest.mark.parametrize("estimator", COLUMNS, ids=lambda e: type(e).__name__)
def test_every_protected_value_occurs_k_times_in_its_column(estimator):
    protected = clone(estimator).fit_transform(np.round(X, 1))

    for column in protected.T:
        assert np.unique(column, return_counts=True)[1].min() >= 4


def test_new_rows_get_the_mean_of_the_nearest_row_s_group():
    fitted = MDAV(k=2).fit([[0.0], [1.0], [9.0], [10.0]])

    assert fitted.transform([[0.4], [8.0]]).tolist() == [[0.5], [9.5]]


def test_new_values_get_the_mean_of_the_nearest_value_s_group():
    fitted = IndividualRanking(k=2).fit([[0.0], [1.0], [9.0], [10.0]])

    assert fitted.transform([[-5.0], [5.0], [5.1]]).tolist() == [[0.5], [0.5], [9.5]]


@pytest.mark.parametrize("estimator", [*ROWS, *COLUMNS], ids=lambda e: type(e).__name__)
def test_pandas_comes_out_where_it_is_asked_for(estimator):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(50) + 7)

    out = clone(estimator).set_output(transform="pandas").fit_transform(frame)

    assert list(out.columns) == ["a", "b", "c"]
    assert out.index.equals(frame.index)


def test_estimators_work_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), MDAV(k=5))

    out = pipeline.fit_transform(X)

    assert len(np.unique(out, axis=0)) == 10

"""Moments against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.metrics.moments import moment_changes, moments

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 4)) + 1e6
Y = X[:50] + RNG.normal(size=(50, 4))


def holed(table):
    table = table.copy()
    table[RNG.random(table.shape) < 0.2] = np.nan
    return table


def test_moments_are_those_of_numpy():
    found = moments(X)

    assert found.means == pytest.approx(X.mean(axis=0))
    assert found.variances == pytest.approx(X.var(axis=0, ddof=1))
    assert found.correlations == pytest.approx(np.corrcoef(X.T))


def test_missing_cells_are_left_out_pair_by_pair():
    table = holed(X)

    found = moments(table)

    for a in range(4):
        assert found.means[a] == pytest.approx(np.nanmean(table[:, a]))
        assert found.variances[a] == pytest.approx(np.nanvar(table[:, a], ddof=1))
        for b in range(a):
            both = ~np.isnan(table[:, [a, b]]).any(axis=1)
            by_hand = np.corrcoef(table[both, a], table[both, b])[0, 1]
            assert found.correlations[a, b] == pytest.approx(by_hand)


@given(
    arrays(np.float64, (8, 3), elements=st.integers(-9, 9)),
    st.permutations(range(8)),
    st.floats(0.1, 9),
)
def test_rows_in_another_order_and_units_change_nothing(table, order, factor):
    changes = moment_changes(table * factor, table[list(order)] * factor)

    assert np.nan_to_num(changes.means) == pytest.approx(0, abs=1e-9)
    assert np.nan_to_num(changes.variances, nan=1.0) == pytest.approx(1)
    assert np.nan_to_num(changes.correlations) == pytest.approx(0, abs=1e-9)


def test_changes_by_hand():
    changes = moment_changes([[0.0, 0.0], [2.0, 2.0]], [[1.0, 4.0], [3.0, 0.0]])

    assert changes.means.tolist() == [1 / np.sqrt(2), 1 / np.sqrt(2)]
    assert changes.variances.tolist() == [1.0, 4.0]
    assert changes.correlations[0, 1] == pytest.approx(-2)


def test_constant_missing_and_empty_tables_are_defined():
    flat = np.column_stack([X[:, 0], np.ones(60)])
    moved = np.column_stack([X[:, 0], np.zeros(60)])

    assert moment_changes(flat, flat).means.tolist() == [0, 0]
    assert moment_changes(flat, moved).means.tolist() == [0, -np.inf]
    assert np.isnan(moment_changes(flat, moved).correlations[0, 1])
    pair = X[:, :2]
    for empty in (np.zeros((0, 2)), np.full((3, 2), np.nan), np.ones((1, 2))):
        assert np.nan_to_num(moment_changes(empty, empty).means).tolist() == [0, 0]
    with pytest.raises(InputError, match="same columns; found 2 and 4"):
        moment_changes(pair, X)


def test_equal_cells_have_no_spread_whatever_their_mean_rounds_to():
    tenth = np.column_stack([np.full(3, 0.1), [1.0, 2.0, 4.0]])
    holed_tenth = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0], [7.0, np.nan]])

    assert moments(tenth).variances[0] == 0
    assert np.isnan(moments(tenth).correlations[0, 1])
    assert np.isnan(moments(holed_tenth).correlations[0, 1])

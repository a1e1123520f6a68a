import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from shoal.errors import InputError
from shoal.metrics import information_loss

ORIGINAL = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]])
RELEASED = np.array([[2.0, 10.0], [2.0, 30.0], [2.0, 50.0]])


def test_losses_of_a_tiny_table_are_those_computed_by_hand():
    assert information_loss.sse(ORIGINAL, RELEASED) == 1 + 0 + 1 + 0 + 100 + 100
    assert information_loss.sae(ORIGINAL, RELEASED) == 1 + 0 + 1 + 0 + 10 + 10
    spread = [1.0, np.sqrt(700.0)]
    by_hand = (2 / (3 * spread[0]) + 20 / (3 * spread[1])) / (2 * np.sqrt(2))
    assert information_loss.il1s(ORIGINAL, RELEASED) == pytest.approx(by_hand)
    assert information_loss.sse_over_sst(ORIGINAL[:, 0], RELEASED[:, 0]) == 1.0


# Squares of numbers near the least float are 0, and with them the spread.
PLAIN = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))


@given(st.lists(PLAIN, min_size=2, max_size=20), st.floats(0.1, 10))
def test_il1s_does_not_depend_on_units(values, factor):
    x = np.array(values)[:, None]
    y = x[::-1]

    assert information_loss.il1s(x * factor, y * factor) == pytest.approx(
        information_loss.il1s(x, y), abs=1e-6
    )


def test_missing_cells_are_left_out_and_constant_columns_are_told_apart():
    gone = ORIGINAL.copy()
    gone[0, 0] = np.nan

    assert information_loss.sse(gone, RELEASED) == 201
    assert information_loss.il1s(np.ones((3, 1)), np.ones((3, 1))) == 0
    assert information_loss.il1s(np.ones((3, 1)), np.zeros((3, 1))) == np.inf
    assert information_loss.sse_over_sst(np.ones(3), np.zeros(3)) == np.inf


def test_tables_of_other_shapes_are_refused():
    with pytest.raises(InputError, match="same shape"):
        information_loss.sse(ORIGINAL, RELEASED[:2])


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12),
)
def test_rank_matching_is_the_best_transport_over_the_variance(x, y):
    """Copying each row as often as the other table has rows makes them equally many."""
    x, y = np.array(x), np.array(y)
    costs = (np.repeat(x, len(y))[:, None] - np.repeat(y, len(x))[None]) ** 2
    best = costs[linear_sum_assignment(costs)].mean()

    found = information_loss.rank_matched(x, y)

    if x.var() > 1e-6:
        assert found == pytest.approx(best / x.var(), rel=1e-6, abs=1e-9)
    elif np.ptp(x) == 0:
        assert found == (0 if best == 0 else np.inf)


@given(st.permutations(range(9)), st.floats(-5, 5))
def test_rank_matching_does_not_see_the_order_of_rows_and_sees_shifts(order, shift):
    x = np.arange(9.0)

    assert information_loss.rank_matched(x, x[list(order)]) == 0
    assert information_loss.rank_matched(x, x[list(order)] + shift) == pytest.approx(
        shift**2 / x.var()
    )


def test_rank_matching_of_tables_of_different_length_by_hand():
    # Quantiles: 0 then 2 against 0, 1, 2; they differ on the middle third, by 1.
    assert information_loss.rank_matched(np.array([2.0, 0.0]), np.array([0.0, 2.0, 1.0])) == (
        pytest.approx((1 / 3) / 1.0)
    )
    assert information_loss.rank_matched(np.array([2.0, 0.0, np.nan]), np.array([0.0, 2.0])) == 0


def test_il1s_is_that_of_sdcmicro():
    """The sum and the mean of sdcMicro, R/dUtility.R, methods IL1s and IL1old."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30, 4)) * 7
    summed = sum(
        np.abs(x[:, j] - y[:, j]).sum() / (np.std(x[:, j], ddof=1) * np.sqrt(2)) for j in range(4)
    )

    assert information_loss.il1s(x, y) == pytest.approx(summed / x.size)


def test_empty_one_row_and_all_missing_tables_have_a_defined_loss():
    empty, gone = np.zeros((0, 2)), np.full((3, 2), np.nan)

    for x, y in ((empty, empty), (gone, gone), (gone, np.ones((3, 2)))):
        assert (
            information_loss.sse(x, y)
            == information_loss.sae(x, y)
            == information_loss.il1s(x, y)
            == 0
        )
        assert information_loss.sse_over_sst(x[:, 0], y[:, 0]) == 0
    assert information_loss.rank_matched(gone[:, 0], np.ones(3)) == np.inf
    assert information_loss.rank_matched(gone[:, 0], empty[:, 0]) == 0
    assert information_loss.il1s(np.ones((1, 1)), np.ones((1, 1))) == 0
    assert information_loss.il1s(np.ones((1, 1)), np.zeros((1, 1))) == np.inf
    assert information_loss.share_changed(np.zeros(0, dtype=int), np.zeros(0, dtype=int)) == 0


def test_a_column_without_common_cells_is_left_out_of_il1s():
    half = np.column_stack([ORIGINAL, [np.nan, np.nan, 1.0]])
    other = np.column_stack([RELEASED, [1.0, 2.0, np.nan]])

    assert information_loss.il1s(half, other) == pytest.approx(
        information_loss.il1s(ORIGINAL, RELEASED)
    )


def test_equal_cells_have_no_spread_whatever_their_mean_rounds_to():
    tenth, fifth = np.full((3, 1), 0.1), np.full((3, 1), 0.2)

    assert tenth.mean() != 0.1
    assert information_loss.il1s(tenth, fifth) == np.inf
    assert information_loss.sse_over_sst(tenth[:, 0], fifth[:, 0]) == np.inf
    assert information_loss.rank_matched(tenth[:, 0], fifth[:, 0]) == np.inf
    assert (
        information_loss.il1s(tenth, tenth)
        == information_loss.sse_over_sst(tenth[:, 0], tenth[:, 0])
        == 0
    )

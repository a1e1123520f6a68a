import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.measures import loss

ORIGINAL = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]])
RELEASED = np.array([[2.0, 10.0], [2.0, 30.0], [2.0, 50.0]])


def test_losses_of_a_tiny_table_are_those_computed_by_hand():
    assert loss.sse(ORIGINAL, RELEASED) == 1 + 0 + 1 + 0 + 100 + 100
    assert loss.sae(ORIGINAL, RELEASED) == 1 + 0 + 1 + 0 + 10 + 10
    spread = [1.0, np.sqrt(700.0)]
    by_hand = (2 / (3 * spread[0]) + 20 / (3 * spread[1])) / (2 * np.sqrt(2))
    assert loss.il1s(ORIGINAL, RELEASED) == pytest.approx(by_hand)
    assert loss.sse_over_sst(ORIGINAL[:, 0], RELEASED[:, 0]) == 1.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20), st.floats(0.1, 10))
def test_il1s_does_not_depend_on_units(values, factor):
    x = np.array(values)[:, None]
    y = x[::-1]

    assert loss.il1s(x * factor, y * factor) == pytest.approx(loss.il1s(x, y), abs=1e-6)


def test_missing_cells_are_left_out_and_constant_columns_are_told_apart():
    gone = ORIGINAL.copy()
    gone[0, 0] = np.nan

    assert loss.sse(gone, RELEASED) == 201
    assert loss.il1s(np.ones((3, 1)), np.ones((3, 1))) == 0
    assert loss.il1s(np.ones((3, 1)), np.zeros((3, 1))) == np.inf
    assert loss.sse_over_sst(np.ones(3), np.zeros(3)) == np.inf


def test_tables_of_other_shapes_are_refused():
    with pytest.raises(InputError, match="same shape"):
        loss.sse(ORIGINAL, RELEASED[:2])

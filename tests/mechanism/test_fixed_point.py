from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Transform
from shoal.errors import InputError, InternalError
from shoal.mechanism.fixed_point import FixedPointGrid, SkewedGrid

number = st.floats(-1e9, 1e9)


@st.composite
def grids(draw):
    low = draw(st.decimals(-(10**6), 10**6, places=2))
    width = draw(st.decimals("0.01", 10**6, places=2))
    return FixedPointGrid(low, low + width, draw(st.integers(1, 30)))


@given(grids(), st.lists(st.floats(allow_nan=False), max_size=20))
def test_units_lie_within_the_width_whatever_comes_in(grid, values):
    units = grid.encode(np.array(values, float))

    assert units.dtype == np.int64
    assert ((units >= 0) & (units <= grid.steps)).all()


@given(grids(), st.lists(number, min_size=1, max_size=20), number, st.data())
def test_changing_one_record_changes_its_own_unit_alone(grid, values, other, data):
    record = data.draw(st.integers(0, len(values) - 1))
    changed = [*values]
    changed[record] = other

    before, after = grid.encode(np.array(values)), grid.encode(np.array(changed))

    moved = np.flatnonzero(before != after)
    assert set(moved) <= {record}
    assert abs(int(before.sum()) - int(after.sum())) <= grid.steps


@given(grids(), st.lists(number, max_size=20))
def test_a_number_comes_back_within_half_a_step(grid, values):
    low, high = float(grid.low), float(grid.high)

    back = grid.decode(grid.encode(np.array(values, float)))

    slack = 1e-12 * max(abs(low), abs(high), 1)
    assert (np.abs(back - np.clip(values, low, high)) <= float(grid.step) / 2 + slack).all()


@given(grids(), st.lists(number, min_size=2, max_size=20))
def test_the_grid_keeps_the_order(grid, values):
    assert (np.diff(grid.encode(np.sort(values))) >= 0).all()


def test_bounds_are_the_first_and_the_last_unit():
    grid = FixedPointGrid(Decimal("-0.1"), Decimal("0.3"))

    assert grid.encode(np.array([-np.inf, -0.1, 0.1, 0.3, np.inf])).tolist() == [
        0,
        0,
        2**19,
        2**20,
        2**20,
    ]
    assert grid.step == Fraction(4, 10) / 2**20
    assert grid.decode(np.array([0, 2**20])) == pytest.approx([-0.1, 0.3], abs=1e-15)


def test_a_missing_cell_has_no_place_on_the_grid():
    with pytest.raises(InternalError, match="missing"):
        FixedPointGrid(0, 1).encode(np.array([0.5, np.nan]))


@pytest.mark.parametrize(("low", "high", "bits"), [
    (1, 1, 20), (2, 1, 20), (0, 1, 0), (0, 1, 41), (0, 1e-310, 20), (-1.5e308, 1.5e308, 20),
])  # fmt: skip
def test_impossible_grids_are_refused(low, high, bits):
    with pytest.raises(InputError, match=r"bounds of a column must|bits of a grid must lie"):
        FixedPointGrid(low, high, bits)


scales = st.builds(
    SkewedGrid, st.integers(-1000, 0), st.integers(1, 10**6), st.sampled_from([None, *Transform])
)


@given(scales, st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=20))
def test_units_keep_the_order_and_lie_within_the_width(scale, values):
    units = scale.encode(np.sort(values))

    assert (np.diff(units) >= 0).all()
    assert units.min() >= 0
    assert units.max() <= scale.steps


@given(scales, st.integers(0, 2**20))
def test_a_unit_comes_back_as_itself(scale, unit):
    assert abs(scale.encode(scale.decode(np.array([unit])))[0] - unit) <= 1


def test_the_logarithmic_scale_gives_small_numbers_room():
    scale = SkewedGrid(0, 1000, Transform.LOG)

    assert scale.encode(np.array([0.0, 10.0, 1000.0])).tolist() == [0, 157486, 2**20]
    assert scale.decode(np.array([0, 2**20, 2**21])).tolist() == pytest.approx([0, 1000, 1000])


def test_impossible_bounds_are_refused():
    with pytest.raises(InputError, match="bounds of a column must be"):
        SkewedGrid(1, 1)

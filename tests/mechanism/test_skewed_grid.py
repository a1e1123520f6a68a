import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Transform
from shoal.errors import InputError
from shoal.mechanism.skewed_grid import SkewedGrid

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

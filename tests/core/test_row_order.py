import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import row_order
from shoal.core.kernels.row_order import radix_order
from shoal.core.row_order import float_words, value_order, words_order

ranges = st.sampled_from([1, 3, 1000, 1 << 20, 1 << 40, (1 << 64) - 1])


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    rows = draw(st.integers(1, 300))
    tops = draw(st.lists(ranges, min_size=1, max_size=3))
    return [rng.integers(0, top, rows, dtype=np.uint64, endpoint=True) for top in tops]


@given(tables(), st.booleans())
@settings(deadline=None)
def test_rows_are_sorted_by_all_words_and_then_by_index(words, long):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_order, "LONG", 1 if long else 1 << 16)

        assert words_order(words).tolist() == np.lexsort(words[::-1]).tolist()
        values = words[0].astype(float)
        assert value_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("top", [2, 1 << 30, (1 << 64) - 1])
def test_long_columns_are_sorted_the_same(top):
    rng = np.random.default_rng(1)
    words = [rng.integers(0, top, 70_000, dtype=np.uint64, endpoint=True) for _ in range(2)]

    assert (words_order(words) == np.lexsort(words[::-1])).all()


@given(st.lists(st.one_of(st.floats(allow_nan=False), st.sampled_from([0.0, -0.0])), min_size=1))
@settings(deadline=None)
def test_the_radix_sort_is_a_stable_sort_or_says_that_it_gave_up(cells):
    x = np.array(cells)
    order, before = np.empty(len(x), np.uint32), np.arange(len(x), dtype=np.uint32)
    words = np.empty(len(x), np.uint64)

    done = radix_order(float_words(x), before, words, words.copy(), 8, order)

    assert (
        np.argsort(float_words(x), kind="stable").tolist() == np.argsort(x, kind="stable").tolist()
    )
    if done:
        np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))

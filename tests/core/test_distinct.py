import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import distinct
from shoal.core.distinct import occurring_once, value_counts, value_ranks


@st.composite
def words(draw):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    top = draw(st.sampled_from([1, 3, 200, 1 << 40, (1 << 64) - 1]))
    found = rng.integers(0, top, draw(st.integers(1, 400)), dtype=np.uint64, endpoint=True)
    # Words that differ in few bits share a slot of the hash table.
    return found << np.uint64(draw(st.sampled_from([0, 32, 63])))


@given(words(), st.sampled_from([2, 4, 15]))
@settings(deadline=None)
def test_words_are_numbered_and_counted_as_numpy_does(found, slots):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_SLOTS", slots)
        made = distinct.distinct(found, most=found.size)

    once, first, counts = np.unique(found, return_index=True, return_counts=True)
    order = np.argsort(first)
    assert made is not None
    assert made.words.tolist() == once[order].tolist()
    assert made.counts.tolist() == counts[order].tolist()
    assert (made.words[made.numbers] == found).all()


@given(words())
@settings(deadline=None)
def test_more_distinct_words_than_asked_for_are_not_numbered(found):
    many = np.unique(found).size

    assert distinct.distinct(found, most=many) is not None
    assert distinct.distinct(found, most=many - 1) is None


@given(words())
@settings(deadline=None)
def test_words_that_occur_once_are_counted_as_numpy_does(found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "LONG", 4)
        kernel = occurring_once(found)

    assert kernel == occurring_once(found) == (np.unique(found, return_counts=True)[1] == 1).sum()


@given(st.lists(st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.5])), max_size=60))
@settings(deadline=None)
def test_long_columns_are_counted_as_short_ones(cells):
    values = np.array(cells, dtype=np.float64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "LONG", 1)
        long = value_counts(values)

    for found, twin in zip(long, np.unique(values + 0.0, return_counts=True), strict=True):
        np.testing.assert_array_equal(found, twin)


@given(
    st.lists(st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.5])), max_size=60)
    | st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=60)
)
@settings(deadline=None)
def test_values_are_ranked_as_numpy_does(cells):
    values = np.repeat(np.array(cells), 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_FEW", 1)
        ranks = value_ranks(values)

    assert ranks.tolist() == np.unique(values, return_inverse=True)[1].tolist()

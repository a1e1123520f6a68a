import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.metrics import histograms
from shoal.metrics.histograms import bin_counts

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(st.one_of(finite, st.integers(-3, 9).map(float)), max_size=40),
    st.lists(finite, min_size=2, max_size=9, unique=True),
)
def test_the_kernel_counts_as_a_search_does(values, edges):
    values, edges = np.array(values), np.sort(edges)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "_LONG", 0)
        counted = bin_counts(values, edges)

    assert counted.tolist() == bin_counts(values, edges).tolist()
    assert counted.sum() == values.size

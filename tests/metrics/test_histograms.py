import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.metrics.histograms import bin_counts, round_edges

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.lists(st.one_of(finite, st.integers(-3, 9).map(float)), max_size=40).map(np.array)


@given(values, st.lists(finite, min_size=2, max_size=9, unique=True))
def test_bins_of_distinct_values_are_those_of_all_of_them(values, edges):
    edges = np.sort(edges)

    counted = bin_counts(*np.unique(values, return_counts=True), edges)

    twin = np.bincount(np.searchsorted(edges[1:-1], values, side="right"), minlength=edges.size - 1)
    assert counted.tolist() == twin.tolist()


@given(st.integers(0, 99))
def test_a_long_tail_lies_in_the_outer_bins(seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.lognormal(3, 1.5, rng.integers(2, 3000)))

    edges = round_edges(x)

    low, high = np.quantile(x, (0.01, 0.99), method="nearest")
    if high > low and np.ptp(x) > 1.5 * (high - low):
        assert edges[0] <= low < edges[1]
        assert edges[-2] <= high < edges[-1]

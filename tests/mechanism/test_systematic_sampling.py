import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanism.systematic_sampling import spread, systematic

weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=40).map(
    lambda numbers: np.array(numbers) + (0.0 if sum(numbers) > 0 else 1.0)
)


@given(weights, st.integers(0, 5000), st.integers(0, 2**32))
def test_every_cell_and_every_prefix_is_within_one_of_its_share(weights, total, seed):
    counts = systematic(weights, total, np.random.default_rng(seed))

    shares = weights / weights.sum() * total
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert np.abs(counts - shares).max() < 1 + 1e-6
    assert np.abs(np.cumsum(counts) - np.cumsum(shares)).max() < 1 + 1e-6


def test_a_million_cells_whose_sum_rounds_still_give_every_row():
    weights = np.full(1_000_003, 0.1)

    for seed in range(5):
        assert systematic(weights, 999_983, np.random.default_rng(seed)).sum() == 999_983


def test_expected_counts_are_the_shares():
    """Means of 4,000 counts; Hoeffding: false alarms below 6 exp(-2 * 4000 * 0.05^2) = 2e-8."""
    rng = np.random.default_rng(3)
    weights = np.array([0.13, 0.55, 0.32])

    mean = np.mean([systematic(weights, 2, rng) for _ in range(4000)], axis=0)

    assert mean == pytest.approx(2 * weights, abs=0.05)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=8),
    st.integers(1, 300),
    st.integers(0, 2**32),
)
def test_spread_codes_lie_in_the_bins_and_follow_their_weights(bins, total, seed):
    edges = np.concatenate([[5], 5 + np.cumsum([width for width, _ in bins])])
    weights = np.array([float(weight) for _, weight in bins])

    codes = spread(edges, weights, total, np.random.default_rng(seed))

    assert codes.shape == (total,)
    assert (np.diff(codes) >= 0).all()
    found = np.histogram(codes, edges)[0]
    shares = weights if weights.sum() else np.diff(edges).astype(float)
    assert np.abs(np.cumsum(found) - np.cumsum(shares) / shares.sum() * total).max() < 1 + 1e-6


@given(
    st.lists(st.sampled_from([0.0, 5e-324, 1.0, 1e300]), min_size=1, max_size=6).map(np.array),
    st.sampled_from([0, 1, 9]),
)
def test_every_row_is_placed_whatever_mass_there_is(weights, total):
    rng = np.random.default_rng(0)

    counts = systematic(weights, total, rng)
    codes = spread(np.arange(weights.size + 1), weights, total, rng)

    assert counts.sum() == total == codes.size
    assert (counts >= 0).all()
    assert ((codes >= 0) & (codes < weights.size)).all()

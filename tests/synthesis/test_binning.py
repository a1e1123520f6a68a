from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.synthesis.maxent.one_way import anyhow, neighbours, quantiles

masses = st.lists(st.integers(-5, 60), min_size=1, max_size=9).map(
    lambda numbers: np.array(numbers, float)
)


def squares(labels, shares):
    return (np.bincount(labels, shares) ** 2).sum()


@given(masses, st.integers(1, 6))
def test_runs_have_the_least_sum_of_squares_of_all_cuts(masses, most):
    labels = neighbours(masses, most)

    size = masses.size
    groups = min(most, size)
    shares = np.maximum(masses, 0) + 1e-9
    shares /= shares.sum()
    best = min(
        squares(np.searchsorted(cuts, np.arange(size), side="right"), shares)
        for cuts in combinations(range(1, size), groups - 1)
    )
    assert labels.max() + 1 == groups
    assert (np.isin(np.diff(labels), [0, 1])).all()
    assert squares(labels, shares) == pytest.approx(best)


@given(masses, st.integers(1, 6))
def test_codes_without_order_fill_every_group(masses, most):
    labels = anyhow(masses, most)

    assert set(labels) == set(range(min(most, masses.size)))
    load = np.bincount(labels, np.maximum(masses, 0))
    assert load.max() - load.min() <= np.maximum(masses, 0).max() + 1e-3


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 10))
def test_leaves_are_put_in_runs_without_gaps(counts, most):
    counts = np.array(counts) + (0 if sum(counts) else 1)

    labels = quantiles(counts, most)

    assert labels[0] == 0
    assert np.isin(np.diff(labels), [0, 1]).all()
    assert labels.max() < most

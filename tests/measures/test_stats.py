"""Intervals for shares, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, sem, t

from shoal.errors import InputError
from shoal.measures.stats import clopper_pearson, least, most, student, wilson


@given(st.integers(1, 200), st.data())
def test_one_sided_bounds_are_the_rates_at_which_the_tail_has_probability_alpha(trials, data):
    successes = data.draw(st.integers(0, trials))
    alpha = data.draw(st.sampled_from([0.05, 1e-3, 1e-7]))

    low, high = float(least(successes, trials, alpha)), float(most(successes, trials, alpha))

    assert 0 <= low <= successes / trials <= high <= 1
    if successes:
        assert binom.sf(successes - 1, trials, low) == pytest.approx(alpha, rel=1e-6)
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5])
def test_the_exact_interval_covers_as_often_as_it_says(rate):
    """Computed, not sampled: the probability of all counts whose interval holds the rate."""
    trials = 60
    counts = np.arange(trials + 1)
    intervals = [clopper_pearson(int(s), trials, 0.9) for s in counts]

    covers = [interval.low <= rate <= interval.high for interval in intervals]

    assert binom.pmf(counts, trials, rate)[covers].sum() >= 0.9


@pytest.mark.parametrize("successes", [0, 1, 30, 59, 60])
def test_wilson_lies_within_the_unit_interval_and_holds_its_point_estimate(successes):
    estimate = wilson(successes, 60)

    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_impossible_counts_are_refused():
    with pytest.raises(InputError, match="Expected 0 to 5 successes"):
        clopper_pearson(6, 5)
    with pytest.raises(InputError, match="confidence"):
        wilson(1, 5, 1.0)


def test_students_interval_is_that_of_scipy():
    values = [3.0, 4.5, 1.0, 2.5]

    estimate = student(values, 0.9)

    low, high = t.interval(0.9, 3, np.mean(values), sem(values))
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert student([0.1, 0.0, 0.9], at_least=0).low == 0
    assert student([1.0, np.inf]).value == np.inf
    with pytest.raises(InputError, match="two repeats"):
        student([1.0])

"""Intervals for shares, against their definitions."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, sem
from scipy.stats import t as student_t

from shoal.errors import InputError
from shoal.metrics.intervals import (
    clopper_pearson,
    difference,
    least,
    median,
    most,
    paired_ratio,
    residual,
    student,
    wilson,
)

VECTORS = tomllib.loads(
    (Path(__file__).parents[1] / "vectors" / "anonymeter.toml").read_text(encoding="utf-8")
)


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

    low, high = student_t.interval(0.9, 3, np.mean(values), sem(values))
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert student([0.1, 0.0, 0.9], at_least=0).low == 0
    assert student([1.0, np.inf]).value == np.inf
    with pytest.raises(InputError, match="two repeats"):
        student([1.0])


@pytest.mark.parametrize("table", ["numbers", "mixed"])
def test_the_residual_is_anonymeters_for_its_counts(table):
    for name, want in VECTORS[table].items():
        if name == "checksum":
            continue
        main, _, control = want["successes"]

        found = residual(main, want["trials"], control, want["trials"])

        got = (found.value, found.low, found.high)
        assert got == pytest.approx(want["residual"], abs=2e-6), name


@pytest.mark.parametrize(("one", "two"), [(0.3, 0.3), (0.1, 0.05), (0.9, 0.8), (0.5, 0.02)])
def test_difference_and_residual_cover_as_often_as_they_say(one, two):
    """Computed, not sampled: the probability of all pairs of counts whose interval covers.

    Approximate intervals at 95%: at least 93% is wanted at 120 trials each.
    """
    trials, counts = 120, np.arange(121)
    chances = np.outer(binom.pmf(counts, trials, one), binom.pmf(counts, trials, two))
    gap = share = 0.0
    for s, t in zip(*np.nonzero(chances > 1e-7), strict=True):
        apart = difference(wilson(int(s), trials), wilson(int(t), trials))
        left = residual(int(s), trials, int(t), trials)
        gap += chances[s, t] * (apart.low <= one - two <= apart.high)
        share += chances[s, t] * (left.low <= (one - two) / (1 - two) <= left.high)

    assert gap > 0.93
    assert share > 0.93


def test_where_the_control_always_succeeds_the_residual_is_wide_open():
    found = residual(500, 500, 500, 500)

    assert found.low == 0
    assert found.high == 1


@pytest.mark.parametrize("shares", [(0.2, 0.1, 0.05), (0.05, 0.05, 0.02), (0.6, 0.3, 0.05)])
def test_the_ratio_of_paired_rates_is_covered_as_often_as_it_says(shares):
    """3,000 draws at 95%: false alarm below 1e-6 up to a true miss rate of 6%."""
    rng = np.random.default_rng(1)
    truth = (shares[0] + shares[1]) / (shares[0] + shares[2])

    found = [
        paired_ratio(*map(int, draw[:3]))
        for draw in rng.multinomial(400, [*shares, 1 - sum(shares)], 3000)
    ]

    misses = sum(not one.low <= truth <= one.high for one in found)
    assert misses <= binom.isf(1e-6, 3000, 0.06)


def test_the_ratio_of_paired_rates_is_that_of_the_author():
    """The example of `ci.ratio.prop.ps` in Bonett's R package statpsych."""
    found = paired_ratio(6, 26, 4)

    assert found.value == 3.2
    assert (found.low, found.high) == pytest.approx((1.766544, 5.796628), abs=1e-6)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_the_ratio_of_paired_rates_lies_in_its_interval(both, first, second):
    found = paired_ratio(both, first, second)

    assert 0 <= found.low <= found.value <= found.high


@given(st.integers(1, 300), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_ranks_of_a_median_hold_with_at_least_the_stated_confidence(n, confidence):
    found = median(np.arange(n, dtype=float), confidence)

    rank = int(found.low)
    assert found.high == n - 1 - rank
    assert rank == 0 or 1 - 2 * binom.cdf(rank, n, 0.5) >= confidence


def test_no_median_of_nothing():
    with pytest.raises(InputError, match="at least one value"):
        median(np.array([]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_wilson_takes_fractions_of_a_success(scores):
    estimate = wilson(sum(scores), len(scores))

    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1

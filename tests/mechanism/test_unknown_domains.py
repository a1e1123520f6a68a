"""What is found with noise: thresholds, ranges, steps, on public grids."""

from decimal import Decimal
from fractions import Fraction
from math import erfc, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Neighbours, Price, PrivacyMeasure
from shoal.core.concentrated import key_delta, key_threshold
from shoal.hazmat import opendp_measurements
from shoal.hazmat.fakes import RecordingNoise
from shoal.mechanism import unknown_domains as unknown

RHO = Price(Fraction(1, 1000), Neighbours.ADD_REMOVE, PrivacyMeasure.RHO)
counts = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=300).map(np.array)


def tail(scale: float, least: int) -> float:
    """P[Z >= least] of discrete Gaussian noise, by summation."""
    reach = int(40 * scale) + abs(least) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * scale**2))
    return float(weights[reach + least :].sum() / weights.sum())


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.5, 20.0])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("beyond", [2, 5, 12, 40])
def test_the_booked_delta_is_at_least_that_of_any_split_of_a_persons_rows(scale, rows, beyond):
    threshold = rows + beyond
    booked = key_delta(Fraction(str(scale)), threshold, rows)

    splits = {1: [[1]], 2: [[2], [1, 1]], 7: [[7], [1] * 7, [3, 4], [2, 2, 3]]}[rows]

    for split in splits:
        together = sum(tail(scale, threshold - count) for count in split)
        assert min(together, 1) <= float(booked) * (1 + 1e-12)


@given(
    st.fractions(Fraction(1, 10), 10**6),
    st.sampled_from([1, 3, 20]),
    st.fractions(Fraction(1, 10**30), Fraction(1, 1000)),
)
def test_the_threshold_is_the_least_that_keeps_a_delta(scale, rows, delta):
    threshold = key_threshold(scale, delta, rows)

    assert key_delta(scale, threshold, rows) <= delta
    assert key_delta(scale, threshold - 1, rows) > delta or threshold == rows + 1


def test_the_delta_is_opendps_own_at_the_threshold_below():
    for scale, threshold in [(1.0, 6), (5.0, 20), (91.0, 300)]:
        _, theirs = opendp_measurements.threshold(scale, threshold - 1).map((1, 1, 1))

        ours = float(key_delta(Fraction(str(scale)), threshold, 1))

        assert ours == pytest.approx(theirs, rel=1e-5)
        assert ours >= erfc((threshold - 2) / scale / sqrt(2)) / 2


def test_texts_are_released_from_the_threshold_on_and_cost_what_their_noise_costs():
    asked = {"price": RHO, "delta": Fraction(1, 10**9), "rows": 2, "target": "x"}
    squared, scale, threshold, exact = unknown.plan_threshold(RHO, Fraction(1, 10**9), rows=2)

    keys, loss = unknown.find_keys(
        {"many": threshold, "few": threshold - 1}, noise=RecordingNoise(), **asked
    )

    assert keys == {"many": threshold}
    assert (loss.rho, loss.delta, loss.threshold) == (RHO.amount, exact, threshold)
    assert squared == 4
    assert squared / (2 * scale**2) <= RHO.amount
    changed = Price(RHO.amount, Neighbours.CHANGE_ONE, PrivacyMeasure.RHO)
    assert unknown.plan_threshold(changed, Fraction(1, 10**9), rows=2)[0] == 8


@given(counts, st.floats(0, 10**6))
def test_every_noisy_answer_has_a_range_a_step_and_a_skew(noisy, deviation):
    first, last = unknown.reach_of(noisy, deviation)
    steps = np.resize(noisy, len(unknown.STEPS) + 1)
    cells = np.resize(noisy, unknown.MAGNITUDES)
    ends = unknown.reach_of(cells, deviation)

    assert 0 <= first <= last < noisy.size
    assert unknown.choose_step(steps, deviation) in {None, *unknown.STEPS}
    assert unknown.is_skewed(cells, *ends) in {True, False}
    low, high = unknown.magnitude_range(*ends)
    assert low < high


@given(st.floats(-(2.0**59), 2.0**59).filter(lambda x: x == 0 or abs(x) >= 2.0**-20))
def test_a_number_lies_in_its_magnitude(number):
    (cell,) = unknown.magnitude_cells(np.array([number])).tolist()
    low, high = unknown._ends(cell)

    assert low <= number <= high


def test_magnitudes_and_months_are_in_order_and_cover_everything():
    numbers = np.array([-1e300, -5.0, -1e-30, 0.0, 3.0, 1e300])
    days = np.array([-1e7, 0.0, 31.0, 1e7])

    assert (np.diff(unknown.magnitude_cells(numbers)) >= 0).all()
    assert unknown.magnitude_cells(numbers).min() == 0
    assert unknown.magnitude_cells(numbers).max() == unknown.MAGNITUDES - 1
    assert unknown.month_cells(days).tolist() == [0, 2040, 2041, unknown.MONTHS - 1]


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 60))
def test_a_range_beside_little_noise_holds_nearly_everybody(seed, low, width):
    rng = np.random.default_rng(seed)
    ages = rng.integers(low, low + width, 3000).astype(float)
    cells = np.bincount(unknown.magnitude_cells(ages), minlength=unknown.MAGNITUDES)

    first, last = unknown.magnitude_range(
        *unknown.reach_of(cells + rng.integers(-3, 4, cells.size), 2.0)
    )

    assert ((ages < first) | (ages > last)).mean() < 0.03
    assert first >= ages.min() / 2
    assert last <= 2 * ages.max() + 1


@pytest.mark.parametrize(
    ("numbers", "step"),
    [
        (np.arange(5000.0), Decimal(1)),
        (np.arange(5000.0) * 10, Decimal(10)),
        (np.arange(5000.0) / 10, Decimal("0.1")),
        (np.random.default_rng(1).random(5000), None),
    ],
)
def test_the_step_of_plain_numbers_is_found(numbers, step):
    cells = np.bincount(unknown.step_cells(numbers), minlength=len(unknown.STEPS) + 1)

    assert unknown.choose_step(cells, 1.0) == step

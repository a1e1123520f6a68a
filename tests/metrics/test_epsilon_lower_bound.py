"""Bounds on epsilon from samples: right mechanisms pass, broken ones are found out."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from shoal.core import Estimate
from shoal.errors import InputError
from shoal.hazmat.noise import OpenDPNoise
from shoal.metrics import epsilon_lower_bound
from shoal.metrics.epsilon_lower_bound import identity, low_bits, lower_bound

SURE = 1 - 1e-6
STEPS = 2**20


class HalfNoise(OpenDPNoise):
    """A fake with a bug: noise of half the scale that was asked for."""

    def _laplace(self, values, scale):
        return super()._laplace(values, scale / 2)


def scalar(noise, value):
    """One cell on the grid, noised for epsilon 1, as a float."""
    units = int(value * STEPS)

    def sample(runs):
        noisy = noise.discrete_laplace(np.full(runs, units), scale=Fraction(STEPS))
        return noisy / STEPS

    return sample


def numpy_laplace(value, rng):
    return lambda runs: value + rng.laplace(0.0, 1.0, runs)


SCORES = {"output": identity, "low bits": low_bits}


def test_our_noise_shows_no_more_than_it_costs():
    """False alarms: below 1e-6, the confidence of the bound. Low bits are looked at too."""
    noise = OpenDPNoise()

    bound = lower_bound(
        scalar(noise, 0), scalar(noise, 1), scores=SCORES, trials=40_000, confidence=SURE
    )

    assert not bound.exceeds(1.0)
    assert 0.7 < bound.epsilon.low < bound.epsilon.value


def test_noise_of_half_the_scale_is_flagged():
    """Missed with probability below 1e-6: the bound lies some 20 standard errors above 1."""
    noise = HalfNoise()

    bound = lower_bound(
        scalar(noise, 0), scalar(noise, 1), scores=SCORES, trials=20_000, confidence=SURE
    )

    assert bound.exceeds(1.0)
    assert 1.5 < bound.epsilon.low <= 2.0


def test_floating_point_noise_is_found_out_by_its_low_bits():
    """numpy's Laplace, claimed as epsilon 1: a 0 leaves digits below 2^-53, a 1 does not."""
    rng = np.random.default_rng(5)

    bound = lower_bound(
        numpy_laplace(0.0, rng), numpy_laplace(1.0, rng), scores=SCORES, trials=100_000
    )

    assert bound.event.score == "low bits"
    assert bound.epsilon.low >= 5


def test_floating_point_noise_is_not_found_out_by_its_value():
    """False alarms: below 1e-6, the confidence of the bound."""
    rng = np.random.default_rng(5)

    bound = lower_bound(
        numpy_laplace(0.0, rng),
        numpy_laplace(1.0, rng),
        scores={"output": identity},
        trials=40_000,
        confidence=SURE,
    )

    assert not bound.exceeds(1.0)


def test_bounds_fail_no_more_often_than_they_say():
    """A coin whose true epsilon is 0, 400 audits at 80 percent: more than 140 failures have
    probability below 1e-9 if each fails with probability 0.2 at most; here none should reach
    even the half of it, because both intervals are exact."""
    rng = np.random.default_rng(7)

    def coin(runs):
        return (rng.random(runs) < 0.5).astype(float)

    failed = sum(
        lower_bound(coin, coin, scores={"coin": identity}, trials=200, confidence=0.8).exceeds(0)
        for _ in range(400)
    )

    assert failed <= 140


def test_an_event_that_never_happened_has_a_finite_point_estimate():
    bound = lower_bound(np.zeros, np.ones, scores={"output": identity}, trials=2000)

    assert (bound.before, bound.after) in {(1000, 0), (0, 1000)}
    assert bound.epsilon.value == pytest.approx(np.log(1000.5 / 0.5))
    assert bound.epsilon.high == inf
    assert isinstance(bound.epsilon, Estimate)


def test_confidence_is_shared_over_events_and_audits():
    kinds = {"output": identity, "twice": lambda outputs: 2 * outputs}
    terms = {"trials": 2000, "scores": kinds}

    alone = lower_bound(np.zeros, np.ones, **terms)
    family = lower_bound(np.zeros, np.ones, family=4, **terms)

    assert (alone.tried, family.tried) == (2, 8)
    assert family.epsilon.low < alone.epsilon.low


def test_what_was_learned_on_one_half_is_counted_on_the_other():
    """Outputs of a coin that remembers: the pilot's patterns say nothing about later runs."""
    rng = np.random.default_rng(3)
    learners = {"pattern": epsilon_lower_bound.learned_patterns(lambda outputs: outputs)}

    def numbers(runs):
        return rng.integers(0, 10**9, runs)

    bound = lower_bound(numbers, numbers, scores={}, learners=learners, trials=4000)

    assert bound.epsilon.low == 0


def test_too_few_runs_and_nothing_to_look_at_are_refused():
    with pytest.raises(InputError, match="The number of trials must be at least 20"):
        lower_bound(np.zeros, np.ones, scores={"output": identity}, trials=4)
    with pytest.raises(InputError, match="at least one score"):
        lower_bound(np.zeros, np.ones, scores={}, trials=40)
    with pytest.raises(InputError, match="confidence of an interval must lie"):
        lower_bound(np.zeros, np.ones, scores={"output": identity}, confidence=1.0)


# Scores.

TABLES = np.array(
    [
        [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0], [2.0, 2.0]],
        [[1.0, 1.0], [1.0, 1.0], [1.0, 2.0], [3.0, 2.0]],
    ]
)


def test_scores_see_who_shares_a_row():
    assert epsilon_lower_bound.distinct_rows(TABLES).tolist() == [2, 3]
    assert epsilon_lower_bound.largest_group(TABLES).tolist() == [2, 2]
    assert epsilon_lower_bound.smallest_group(TABLES).tolist() == [2, 1]
    assert epsilon_lower_bound.alike(0)(TABLES).tolist() == [2, 2]
    assert epsilon_lower_bound.alike(0, 0)(TABLES).tolist() == [2, 3]
    assert epsilon_lower_bound.within([0], epsilon_lower_bound.largest_group)(TABLES).tolist() == [
        2,
        3,
    ]


def test_equal_rows_count_as_one_wherever_they_stand():
    rng = np.random.default_rng(11)
    rows = rng.random((7, 3))
    outputs = rows[rng.integers(0, 7, (50, 400))]

    expected = [len(np.unique(table, axis=0)) for table in outputs]

    assert epsilon_lower_bound.distinct_rows(outputs).tolist() == expected


def test_patterns_tell_group_sizes_and_equal_cells():
    sizes = epsilon_lower_bound.sizes_by_rank(TABLES)
    equal = epsilon_lower_bound.equal_to(0)(TABLES)

    assert sizes[0] != sizes[1]
    assert equal[0] != equal[1]
    assert epsilon_lower_bound.sizes_by_rank(TABLES + 1).tolist() == sizes.tolist()


def test_low_bits_count_from_the_binary_point():
    assert low_bits(np.array([3.0, 6.0, -0.25, 1 + 2.0**-52])).tolist() == [0, 1, -2, -52]
    assert low_bits(TABLES * 0.5).tolist() == [-1, -1]


def test_the_likelihood_ratio_in_no_order_does_not_see_the_order():
    before, after = np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([[0.5, 0.0], [0.5, 1.0]])
    ratio = epsilon_lower_bound.unordered_likelihood_ratio(before, after, np.array([0.1, 0.1]))
    plain = epsilon_lower_bound.likelihood_ratio(before, after, np.array([0.1, 0.1]))
    outputs = np.array([before, before[::-1], after])

    assert ratio(outputs)[0] == pytest.approx(ratio(outputs)[1])
    assert ratio(outputs)[0] > 0 > ratio(outputs)[2]
    assert plain(outputs).tolist() == pytest.approx([20.0, 0.0, -20.0])
    assert epsilon_lower_bound.projection(after - before)(outputs).tolist() == pytest.approx(
        [-0.5, 0.5, 0.5]
    )

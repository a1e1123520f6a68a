"""Who is in the table: areas, rates at few false positives, and members that are named."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from shoal.errors import InputError
from shoal.metrics.attacks.membership import (
    area_between,
    membership,
    name_members,
    rate_beyond,
)

KINDS = [False, False, False, True]


def draw_people(n, rng):
    common = rng.normal(size=(n, 1))
    return np.column_stack([common + rng.normal(size=(n, 3)), rng.integers(0, 5, n)])


def attack(release, *, n=1500, seed=1):
    """Attack what a function makes of the members and of other people."""
    rng = np.random.default_rng(seed)
    members, reference, others, fresh = (draw_people(n, rng) for _ in range(4))
    return membership(release(members, fresh), members, reference, others, discrete=KINDS)


def test_all_are_recognised_in_a_copy():
    found = attack(lambda members, _: members)["distance"]

    assert found.area.value == 1
    assert found.rate.low > 0.99
    assert sorted(found.recognised) == list(range(1500))


def test_nobody_is_recognised_in_rows_of_other_people():
    """Each area is off by 4.9 standard errors with a probability of 1e-6."""
    for result in attack(lambda _, fresh: fresh).values():
        error = (result.area.high - result.area.low) / 2 / 1.96
        assert abs(result.area.value - 0.5) < 4.9 * error
        assert result.rate.low < 0.01 < result.rate.high + 0.01
        assert len(result.recognised) == 0


def test_those_who_were_copied_are_named_and_few_others():
    found = attack(lambda members, fresh: np.vstack([members[:150], fresh[:1350]]))["distance"]

    copied = np.isin(found.recognised, np.arange(150))
    assert copied.sum() == 150
    assert copied.mean() > 0.9
    assert set(found.recognised[:150]) == set(range(150))


def test_people_about_whom_rows_crowd_are_named_by_density():
    """Nobody was copied; ten rows lie close to each of the first hundred members."""

    def crowd(members, fresh):
        noise = np.random.default_rng(2).normal(0, 1e-3, (1000, 4)) * [1, 1, 1, 0]
        return np.vstack([np.repeat(members[:100], 10, axis=0) + noise, fresh[:1000]])

    found = attack(crowd)["density"]

    assert set(range(100)) <= set(found.recognised)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_area_is_that_of_scikit_learn(seed, digits):
    rng = np.random.default_rng(seed)
    inside, outside = (np.round(rng.normal(shift, 1, 40), digits % 3) for shift in (0.3, 0))
    truth = np.repeat([1, 0], 40)

    area = area_between(inside, outside, 0.95)

    assert area.value == pytest.approx(roc_auc_score(truth, np.concatenate([inside, outside])))


def test_intervals_of_the_area_cover_it():
    """Of 2,000 areas 95% are covered: fewer than 1,840 with a probability below 1e-8."""
    rng = np.random.default_rng(4)
    truth = scipy.stats.norm.cdf(0.5 / np.sqrt(2))
    areas = [area_between(rng.normal(0.5, 1, 200), rng.normal(0, 1, 150), 0.95)
             for _ in range(2000)]  # fmt: skip

    assert sum(area.low <= truth <= area.high for area in areas) >= 1840


def test_intervals_of_the_rate_cover_it():
    """At 95% or more each: fewer than 265 of 300 with a probability below 1e-6."""
    rng = np.random.default_rng(5)
    truth = scipy.stats.norm.sf(scipy.stats.norm.isf(0.01) - 1)
    rates = [rate_beyond(rng.normal(1, 1, 800), rng.normal(0, 1, 800), 0.95) for _ in range(300)]

    assert sum(rate.low <= truth <= rate.high for rate in rates) >= 265


def test_few_people_outside_give_no_lower_end():
    rng = np.random.default_rng(6)

    rate = rate_beyond(rng.normal(9, 1, 100), rng.normal(0, 1, 100), 0.95)

    assert rate.low == 0
    assert rate.value > 0.9


def test_wrong_names_are_as_rare_as_stated():
    """Of 300 tables without any sign of members, one in 20 or fewer name anybody.

    A binomial of 300 and 5% exceeds 36 with a probability below 1e-6.
    """
    rng = np.random.default_rng(7)
    named = [len(name_members(rng.normal(size=500), rng.normal(size=500), 0.05)) > 0
             for _ in range(300)]  # fmt: skip

    assert sum(named) <= 36


def test_too_few_people_are_refused():
    rng = np.random.default_rng(8)
    few, many = draw_people(10, rng), draw_people(50, rng)

    with pytest.raises(InputError, match="at least 20 released rows"):
        membership(many, many, few, many, discrete=KINDS)

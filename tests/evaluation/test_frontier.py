"""Intervals, the frontier, ties and the recommendation, as functions of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Estimate
from shoal.evaluation.comparison import frontier
from shoal.evaluation.comparison.frontier import Point, Standing

SMALL = st.integers(0, 6).map(lambda step: step / 8)


@st.composite
def estimates(draw):
    value = draw(SMALL)
    return Estimate(value, value - draw(SMALL), value + draw(SMALL), 0.95)


POINTS = st.lists(st.builds(Point, estimates(), estimates()), min_size=1, max_size=8)


def exact(risk, error):
    return Point(*(Estimate(x, x, x, 0.95) for x in (risk, error)))


def test_the_distance_to_the_origin_has_both_axes_and_no_risk_below_0():
    assert exact(0.3, 0.4).distance == pytest.approx(0.5)
    assert exact(-0.3, 0.4).distance == 0.4


def better_or_equal(one, other):
    pairs = [(one.risk.value, other.risk.value), (one.error.value, other.error.value)]
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


@given(POINTS)
def test_the_frontier_is_what_no_other_dominates_and_is_never_empty(points):
    found = frontier.standings(points)

    front = [stands is Standing.FRONTIER for stands in found]
    expected = [not any(better_or_equal(other, point) for other in points) for point in points]
    assert front == expected
    assert any(front)


@given(POINTS)
def test_only_who_is_clearly_worse_on_an_axis_is_beaten(points):
    for point, stands in zip(points, frontier.standings(points), strict=True):
        over = [other for other in points if better_or_equal(other, point)]
        clear = [
            other
            for other in over
            if other.risk.high < point.risk.low or other.error.high < point.error.low
        ]
        assert (stands is Standing.BEATEN) == bool(clear)
        assert (stands is Standing.TIED) == bool(over and not clear)


@given(POINTS, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(points, random):
    order = list(range(len(points)))
    random.shuffle(order)

    shuffled = frontier.standings([points[place] for place in order])

    assert shuffled == [frontier.standings(points)[place] for place in order]


@given(POINTS, st.data(), SMALL)
def test_a_recommendation_is_within_by_its_upper_end_and_nobody_eligible_dominates_it(
    points, data, limit
):
    eligible = data.draw(st.lists(st.booleans(), min_size=len(points), max_size=len(points)))

    found = frontier.choose(points, eligible, limit)

    able = [place for place, may in enumerate(eligible) if may]
    within = [place for place in able if points[place].risk.high <= limit]
    assert found.within == len(within)
    assert set(found.ties) <= set(able)
    assert set(found.unsure) <= set(able) - set(within)
    if not within:
        assert (found.index, found.best, found.ties) == (None, None, ())
        return
    least = min(points[place].error.value for place in within)
    assert points[found.best].error.value == least
    if found.index is None:
        assert len(found.ties) > 1
        return
    assert found.index in within
    taken = points[found.index]
    assert not any(better_or_equal(points[place], taken) for place in able)
    for place in set(within) - {found.index}:
        wrong = points[place].error.low > points[found.best].error.high
        told = any(points[other].risk.high < points[place].risk.low for other in found.close)
        assert wrong or told


@given(POINTS, st.randoms(use_true_random=False), SMALL)
def test_the_recommendation_does_not_depend_on_the_order_of_the_candidates(points, random, limit):
    order = list(range(len(points)))
    random.shuffle(order)
    eligible = [True] * len(points)

    found = frontier.choose(points, eligible, limit)
    other = frontier.choose([points[place] for place in order], eligible, limit).among(order)

    assert found.within == other.within
    assert (found.index is None) == (other.index is None)
    if len(set(points)) == len(points):
        assert set(found.ties) == set(other.ties)


def test_the_upper_end_of_the_risk_decides_and_not_its_estimate():
    """An interval from 0.040 to 0.227 is not at most 0.1."""
    wide = Point(Estimate(0.09, 0.040, 0.227, 0.95), Estimate(0.05, 0.04, 0.06, 0.95))
    safe = Point(Estimate(0.05, 0.02, 0.08, 0.95), Estimate(0.2, 0.19, 0.21, 0.95))

    alone = frontier.choose([wide], [True], 0.1)
    both = frontier.choose([wide, safe], [True, True], 0.1)

    assert (alone.index, alone.unsure, alone.open) == (None, (0,), (0,))
    assert (both.index, both.unsure, both.open) == (1, (0,), (0,))


def test_a_candidate_that_another_beats_on_both_axes_is_not_recommended():
    """By the old rule the second: its wide error reaches the best one's, the third's does not."""
    points = [
        Point(Estimate(0.08, 0.07, 0.09, 0.95), Estimate(0.10, 0.09, 0.11, 0.95)),
        Point(Estimate(0.02, 0.015, 0.03, 0.95), Estimate(0.14, 0.10, 0.18, 0.95)),
        Point(Estimate(0.01, 0.005, 0.02, 0.95), Estimate(0.13, 0.12, 0.135, 0.95)),
    ]

    found = frontier.choose(points, [True] * 3, 0.1)

    assert (found.index, found.ties, found.open) == (None, (1, 2), (1, 2))


def test_a_candidate_that_is_as_useful_within_noise_and_clearly_tells_less_is_taken():
    points = [
        Point(Estimate(0.08, 0.07, 0.09, 0.95), Estimate(0.10, 0.09, 0.11, 0.95)),
        Point(Estimate(0.02, 0.01, 0.03, 0.95), Estimate(0.12, 0.105, 0.13, 0.95)),
        Point(Estimate(0.01, 0.00, 0.02, 0.95), Estimate(0.30, 0.28, 0.32, 0.95)),
    ]

    found = frontier.choose(points, [True] * 3, 0.1)

    assert (found.index, found.best, found.ties, found.close) == (1, 0, (1,), (0, 1))


def test_what_only_noise_could_choose_between_is_named_and_not_chosen():
    points = [
        Point(Estimate(0.05, 0.03, 0.07, 0.95), Estimate(0.10, 0.08, 0.12, 0.95)),
        Point(Estimate(0.04, 0.02, 0.06, 0.95), Estimate(0.11, 0.09, 0.13, 0.95)),
        Point(Estimate(0.04, 0.02, 0.06, 0.95), Estimate(0.40, 0.38, 0.42, 0.95)),
    ]

    found = frontier.choose(points, [True] * 3, 0.1)

    assert (found.index, found.ties, found.open) == (None, (0, 1), (0, 1))
    assert found.among([4, 7, 9]).ties == (4, 7)


@given(st.lists(estimates(), min_size=1, max_size=6))
def test_the_mean_of_repeats_lies_in_its_interval_and_needs_no_repeat_to_agree(repeats):
    found = frontier.combine(repeats)

    mean = sum(one.value for one in repeats) / len(repeats)
    assert found.value == pytest.approx(mean)
    assert found.low <= mean <= found.high


def test_repeats_that_differ_no_more_than_their_intervals_say_shorten_them_by_the_root():
    repeats = [Estimate(x, x - 0.3, x + 0.6, 0.95) for x in (0.1, 0.2, 0.3)]

    found = frontier.combine(repeats)

    assert found.value - found.low == pytest.approx(0.3 / 3**0.5)
    assert found.high - found.value == pytest.approx(0.6 / 3**0.5)


def test_an_interval_of_repeats_without_own_intervals_is_students():
    """t with 2 degrees of freedom at 0.975 is 4.302653, by the tables."""
    repeats = [Estimate(x, x, x, 0.95) for x in (0.1, 0.2, 0.3)]

    found = frontier.combine(repeats)

    assert found.value - found.low == pytest.approx(4.302653 * 0.1 / 3**0.5, rel=1e-6)
    assert found.high - found.value == found.value - found.low


def test_the_worst_attack_has_an_interval_that_all_attacks_share():
    one, two = Estimate(0.2, 0.1, 0.3, 0.95), Estimate(0.1, 0.0, 0.6, 0.95)

    name, found = frontier.worst({"linkability": [one], "inference": [two]})

    wider = 2.241403 / 1.959964  # normal quantiles at 0.9875 and 0.975
    assert name == "linkability"
    assert found.value == 0.2
    assert found.low == pytest.approx(0.2 - 0.1 * wider, rel=1e-5)
    assert found.high == pytest.approx(0.1 + 0.5 * wider, rel=1e-5)


@given(st.floats(0.001, 2), st.floats(0.001, 2))
def test_a_larger_error_is_never_like_a_larger_sample(first, second):
    samples = {0.01: 0.5, 0.05: 0.2, 0.2: 0.1, 0.5: 0.05}
    low, high = sorted((first, second))

    assert _share(frontier.like_a_sample(high, samples)) <= _share(
        frontier.like_a_sample(low, samples)
    )


def _share(text):
    number = float(text.split()[-2].removesuffix("%"))
    return {"worse": -1.0, "better": 101.0}.get(text.split()[0], number)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (0.2, "about as good as a 5% sample"),
        (0.14, "about as good as a 10% sample"),
        (0.6, "worse than a 1% sample"),
        (0.01, "better than a 50% sample"),
    ],
)
def test_errors_read_as_samples(error, text):
    assert frontier.like_a_sample(error, {0.01: 0.5, 0.05: 0.2, 0.2: 0.1, 0.5: 0.05}) == text

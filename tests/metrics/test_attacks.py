"""Singling out, linkability and inference: against twins, anonymeter and what they must find."""

import sys
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shoal.errors import InputError
from shoal.metrics.attacks import singling_out as predicates
from shoal.metrics.attacks.inference import _right, inference
from shoal.metrics.attacks.linkability import linkability
from shoal.metrics.attacks.result import DIFFERENCE
from shoal.metrics.attacks.singling_out import Predicates, singling_out
from shoal.metrics.kernels.attacks import box_tree, nearest_boxes

VECTORS = Path(__file__).parents[1] / "vectors"
sys.path.append(str(VECTORS))
import anonymeter_tables  # noqa: E402

STORED = tomllib.loads((VECTORS / "anonymeter.toml").read_text(encoding="utf-8"))


@pytest.fixture
def rng():
    return np.random.default_rng(31)


@pytest.fixture(params=["numbers", "mixed"])
def table(request):
    """A name, people in and not in the table, boxes, and kinds of the axes."""
    inside, outside, released, kinds = anonymeter_tables.TABLES[request.param]()
    kinds = np.array(kinds)
    return request.param, inside, outside, released, released + kinds, kinds


def test_the_tables_are_those_that_anonymeter_saw(table):
    name, inside, outside, released, _, _ = table

    found = sum(float(array.sum()) for array in (inside, outside, released))

    assert found == pytest.approx(STORED[name]["checksum"], rel=1e-12)


def within(attack, want):
    """Our rates lie in anonymeter's intervals; its baseline of inference is another thing."""
    for ours, theirs in (("main", "attack"), ("control", "control"), ("residual", "residual")):
        value, (_, low, high) = getattr(attack, ours).value, want[theirs]
        assert low <= value <= high, (ours, value, low, high)


@pytest.mark.parametrize(("attributes", "name"), [(1, "one"), (3, "three")])
def test_singling_out_agrees_with_anonymeter(table, rng, attributes, name):
    which, inside, outside, lower, upper, kinds = table

    found = singling_out(
        lower,
        upper,
        inside,
        discrete=kinds,
        rng=rng,
        attributes=attributes,
        control=outside,
        attacks=1000,
    )

    within(found, STORED[which][f"singling_out_{name}"])


@pytest.mark.parametrize("k", [1, 5])
def test_linkability_agrees_with_anonymeter(table, rng, k):
    which, inside, outside, lower, upper, kinds = table
    first, second = anonymeter_tables.PARTS[which]

    found = linkability(
        lower,
        upper,
        inside,
        discrete=kinds,
        first=first,
        second=second,
        rng=rng,
        neighbours=k,
        control=outside,
        attacks=1500,
    )

    within(found, STORED[which][f"linkability_{k}"])
    blind = STORED[which][f"linkability_{k}"]["baseline"]
    assert blind[1] <= found.baseline.value <= blind[2]


@pytest.mark.parametrize("which", [0, 1])
def test_inference_agrees_with_anonymeter(table, rng, which):
    name, inside, outside, lower, upper, kinds = table
    secret, tolerance = list(anonymeter_tables.SECRETS[name].items())[which]
    known = [j for j in range(5) if j != secret]

    found = inference(
        lower[:, known],
        upper[:, known],
        lower[:, secret],
        inside[:, known],
        inside[:, secret],
        discrete=kinds[known],
        rng=rng,
        tolerance=tolerance,
        control=(outside[:, known], outside[:, secret]),
        attacks=1500,
    )

    within(found, STORED[name][f"inference_{secret}"])


@st.composite
def searches(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    boxes, axes = draw(st.sampled_from([1, 5, 10, 60, 300])), draw(st.integers(1, 3))
    kinds = rng.random(axes) < 0.5
    lower = rng.integers(0, 4, (boxes, axes)).astype(float)
    upper = lower + rng.integers(0, 3, (boxes, axes)) + kinds
    targets = rng.integers(0, 5, (4, axes)).astype(float)
    targets[rng.random(targets.shape) < 0.1] = np.nan
    return lower, upper, kinds, rng.random(axes) + 0.1, targets, rng.integers(0, boxes, 4)


@given(searches(), st.integers(1, 3))
def test_the_search_is_that_of_all_boxes_read_in_a_circle(search, k):
    lower, upper, kinds, scale, targets, starts = search
    k = min(k, len(lower))

    tree = box_tree(lower, upper, kinds, scale)
    found, _ = nearest_boxes(lower, upper, kinds, scale, targets, starts, k, False, *tree)

    for target, start, got in zip(targets, starts, found, strict=True):
        distances = np.zeros(len(lower))
        for j, x in enumerate(target):
            if np.isnan(x):
                continue
            for i, (a, b) in enumerate(zip(lower[:, j], upper[:, j], strict=True)):
                if kinds[j]:
                    distances[i] += 1 - (a <= x < b) / (b - a)
                elif a < x < b:
                    distances[i] += ((x - a) ** 2 + (b - x) ** 2) / (2 * (b - a)) * scale[j]
                else:
                    distances[i] += abs(x - (a + b) / 2) * scale[j]
        np.testing.assert_allclose(distances[got], np.sort(distances)[:k])
        circle = (np.arange(len(lower)) - start) % len(lower)
        first = np.lexsort([circle, np.round(distances, 9)])[0]
        if np.isclose(distances, distances.min()).sum() == (distances == distances.min()).sum():
            assert got[0] == first


def test_the_distance_to_a_box_is_the_mean_over_its_places():
    """1 - 1/|box| for categories, E|x - U| for numbers: what the search writes in closed form."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    for a, b, x in ((0.0, 4.0, 1.0), (0.0, 4.0, 7.0), (2.0, 3.0, 0.5)):
        mean = np.abs(x - (a + (b - a) * grid)).mean()
        closed = (
            ((x - a) ** 2 + (b - x) ** 2) / (2 * (b - a)) if a < x < b else abs(x - (a + b) / 2)
        )
        assert closed == pytest.approx(mean, rel=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_counts_of_predicates_are_those_of_reading_everybody(seed):
    rng = np.random.default_rng(seed)
    people = rng.integers(0, 4, (15, 3)).astype(float)
    people[rng.random(people.shape) < 0.1] = np.nan
    axes = np.sort(rng.random((6, 3)).argsort(axis=1)[:, :2], axis=1)
    low = np.where(rng.random((6, 2)) < 0.3, -np.inf, rng.integers(0, 4, (6, 2)))
    high = np.where(rng.random((6, 2)) < 0.3, np.inf, low + rng.integers(1, 3, (6, 2)))
    negated = rng.random((6, 2)) < 0.3

    crowd = predicates._Crowd.of(people)
    found = predicates._count(Predicates(axes, low, high, negated), crowd)
    stopped = predicates._count(Predicates(axes, low, high, negated), crowd, most=2)

    for at in range(6):
        holds = np.ones(15, dtype=bool)
        for j in range(2):
            values = people[:, axes[at, j]]
            holds &= ((low[at, j] <= values) & (values < high[at, j])) != negated[at, j]
        assert found[at] == holds.sum()
        assert stopped[at] == min(holds.sum(), 2)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 6))
def test_a_larger_control_is_averaged_over_all_its_subsets(counts, size):
    """The first c of six people satisfy a predicate that c satisfy."""
    wanted = np.mean(
        [
            sum(sum(i < c for i in chosen) == 1 for c in counts)
            for chosen in combinations(range(6), size)
        ]
    )

    assert predicates._scale_counts(np.array(counts), 6, size) == pytest.approx(wanted)


def test_a_smaller_control_is_carried_on_by_the_model(rng):
    """Predicates of weight below 1/2000, as multivariate ones have; within a fifth is wanted."""
    weights = rng.random(20_000) / 2000
    small, large = (rng.binomial(size, weights) for size in (500, 2000))

    carried = predicates._scale_counts(small, 500, 2000)

    assert carried == pytest.approx((large == 1).sum(), rel=0.2)
    assert predicates._scale_counts(np.zeros(5, dtype=np.int64), 500, 2000) == 0


def people_of(rng, n):
    places = np.column_stack([rng.integers(0, 6, n), rng.normal(size=n), rng.normal(size=n)])
    return places, (places[:, 0] > 2).astype(float)


KINDS = np.array([True, False, False])


def three(released, inside, outside, rng, attacks=200, attempts=50_000):
    """All attacks on a table of (places, secret)."""
    lower, upper = released[0], released[0] + KINDS
    given_ = {"discrete": KINDS, "rng": rng, "attacks": attacks}
    yield singling_out(lower, upper, inside[0], control=outside[0], attempts=attempts, **given_)
    yield singling_out(lower, upper, inside[0], control=outside[0], attributes=1, **given_)
    yield linkability(
        lower, upper, inside[0], first=[0, 1], second=[2], control=outside[0], **given_
    )
    yield inference(lower, upper, released[1], inside[0], inside[1], control=outside, **given_)


def test_on_the_raw_table_the_risk_is_near_its_maximum(rng):
    inside, outside = people_of(rng, 800), people_of(rng, 800)
    noise = rng.integers(0, 1000, 800).astype(float)
    inside, outside = (inside[0], noise), (outside[0], rng.permutation(noise))

    for found in three(inside, inside, outside, rng):
        assert found.main.value > 0.98
        assert found.note.endswith(DIFFERENCE)
        assert found.baseline.value < 0.2
        if "predicates" not in found.note:
            assert found.residual.low > 0.9
    one = list(three(inside, inside, outside, rng))[1]
    assert one.residual.low > 0.9


@pytest.mark.slow
def test_on_an_independent_table_main_and_control_agree_as_often_as_said(rng):
    """250 tables at 95%: false alarm below 1e-6 for each attack up to a true miss rate of 6%."""
    misses = np.zeros(4, dtype=int)
    for _ in range(250):
        released, inside, outside = (people_of(rng, 250) for _ in range(3))
        found_ = three(released, inside, outside, rng, attacks=120, attempts=2000)
        for which, found in enumerate(found_):
            misses[which] += not found.difference.low <= 0 <= found.difference.high

    assert (misses <= binom.isf(1e-6, 250, 0.06)).all(), misses


def test_intervals_of_a_release_are_predicates_and_neighbours(rng):
    """Each released record an interval of its own: everybody is singled out and linked."""
    numbers = rng.permutation(np.arange(60.0))
    people = np.column_stack([numbers, numbers])
    lower, upper = people - 0.25, people + 0.5

    alone = singling_out(lower, upper, people, discrete=[False] * 2, rng=rng, attributes=2)
    linked = linkability(lower, upper, people, discrete=[False] * 2, first=[0], second=[1], rng=rng)

    assert alone.main.value == 1
    assert linked.main.value == 1


def test_a_wholly_suppressed_release_finds_nobody(rng):
    people, secret = people_of(rng, 400)
    lower = np.tile([0.0, -9, -9], (400, 1))
    upper = np.tile([6.0, 9, 9], (400, 1))

    alone = singling_out(lower, upper, people, discrete=KINDS, rng=rng, attempts=2000)
    linked = linkability(
        lower, upper, people, discrete=KINDS, first=[0], second=[1], rng=rng, control=people
    )

    assert alone.main.value == 0
    assert linked.main.value < 0.05
    assert "predicates" in alone.note
    told = inference(lower, upper, secret, people, secret, discrete=KINDS, rng=rng)
    assert told.main.value == pytest.approx(0.5, abs=0.2)


def test_ties_are_drawn_and_not_left_to_the_order_of_rows(rng):
    """100 equal released records: a link by chance is one in 100; 1,000 tries, below 1e-6."""
    people = np.zeros((1000, 2))
    lower = np.zeros((100, 2))

    found = linkability(
        lower, lower, people, discrete=[False] * 2, first=[0], second=[1], rng=rng, attacks=1000
    )

    assert found.main.value <= binom.isf(1e-6, 1000, 0.01) / 1000


def test_a_negative_guess_is_not_always_right(rng):
    people, released = np.zeros((50, 1)), np.zeros((50, 1))

    found = inference(
        released,
        released,
        np.full(50, -5.0),
        people,
        np.full(50, 900.0),
        discrete=[False],
        rng=rng,
        tolerance=0.05,
    )

    assert found.main.value == 0


def test_two_missing_secrets_are_equal(rng):
    nothing = np.full(5, np.nan)

    found = inference(
        np.zeros((5, 1)),
        np.zeros((5, 1)),
        nothing,
        np.zeros((5, 1)),
        nothing,
        discrete=[False],
        rng=rng,
    )

    assert found.main.value == 1


def test_one_row_and_all_missing_people_have_a_defined_value(rng):
    one = np.zeros((1, 2))
    unknown = np.full((3, 2), np.nan)
    kinds = [False, False]

    for people in (one, unknown):
        alone = singling_out(one, one, people, discrete=kinds, rng=rng, attributes=2, attempts=1000)
        assert alone.main.value == float(people is one)
        linked = linkability(one, one, people, discrete=kinds, first=[0], second=[1], rng=rng)
        assert linked.main.value == 1


def test_what_cannot_be_measured_is_said(rng):
    one, kinds = np.zeros((1, 2)), [False, False]

    with pytest.raises(InputError, match="The release has no rows"):
        singling_out(np.zeros((0, 2)), np.zeros((0, 2)), one, discrete=kinds, rng=rng)
    with pytest.raises(InputError, match="at least one person"):
        singling_out(one, one, np.zeros((0, 2)), discrete=kinds, rng=rng)
    with pytest.raises(
        InputError, match="The number of attributes in a predicate must be between 1 and 2; got 3"
    ):
        singling_out(one, one, one, discrete=kinds, rng=rng)
    with pytest.raises(InputError, match="whole domain"):
        singling_out(one * np.nan, one, one, discrete=kinds, rng=rng)
    with pytest.raises(InputError, match="the kind of each axis"):
        singling_out(one, one, one, discrete=[False], rng=rng)
    with pytest.raises(InputError, match="no axis may be in both"):
        linkability(one, one, one, discrete=kinds, first=[0], second=[0], rng=rng)
    with pytest.raises(InputError, match="neighbours must be at least 1"):
        linkability(one, one, one, discrete=kinds, first=[0], second=[1], rng=rng, neighbours=0)
    with pytest.raises(InputError, match="attacks must be at least 1"):
        inference(one, one, np.zeros(1), one, np.zeros(1), discrete=kinds, rng=rng, attacks=0)
    with pytest.raises(InputError, match="a confidential value for each"):
        inference(one, one, np.zeros(2), one, np.zeros(1), discrete=kinds, rng=rng)


def test_a_guess_is_right_by_its_size_whatever_its_sign():
    guesses, truth = np.array([100.0, -100.0, 100.0, -100.0]), np.array([104.0, -104.0, 106, -106])

    assert _right(guesses, truth, 0.05).tolist() == [True, True, False, False]

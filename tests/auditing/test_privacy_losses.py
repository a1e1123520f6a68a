"""Exact losses of the mechanisms that draw rows: never above epsilon, and faults are found."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.auditing.privacy_losses import Laws, _decision_loss, chance, loss, losses, replay
from shoal.core import LAPLACE, Kind, Price
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.noisy_answers import noisy_answers, noisy_table, table_counts
from shoal.mechanism.records import HeldColumns
from shoal.metrics.epsilon_lower_bound import identity, lower_bound
from shoal.synthesis.adaptive_tree import AdaptiveAxis, grow, leaf_counts
from shoal.synthesis.copula import Margins, copula
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent, maxent_plan
from shoal.synthesis.privtree import Fill, privtree

LINE = [Domain(name, Kind.NUMERIC, 17) for name in "ab"]
LONG = [Domain(name, Kind.NUMERIC, 300) for name in "ab"]  # counted over trees by maxent
FLAT = [Domain(name, Kind.NOMINAL, 2) for name in "ab"]
GAPS = [Domain("a", Kind.NUMERIC, 9, gap=True), Domain("b", Kind.NOMINAL, 3, gap=True)]
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


ROWS = np.random.default_rng(0)
RUNS = {
    "privtree, uniform": lambda codes, attributes, epsilon, noise: privtree(
        codes, attributes, price=Price(epsilon), noise=noise, rng=ROWS, fill=Fill.UNIFORM
    ),
    "privtree, centroid": lambda codes, attributes, epsilon, noise: privtree(
        codes, attributes, price=Price(epsilon), noise=noise, rng=ROWS
    ),
    "copula, blocks": lambda codes, attributes, epsilon, noise: copula(
        codes, attributes, price=Price(epsilon), noise=noise, rng=ROWS
    ),
    "copula, tree": lambda codes, attributes, epsilon, noise: copula(
        codes, attributes, price=Price(epsilon), noise=noise, rng=ROWS, margins=Margins.TREE
    ),
    "maxent, fine": lambda codes, attributes, epsilon, noise: maxent(
        codes,
        attributes,
        price=Price(epsilon),
        noise=noise,
        rng=ROWS,
        plan=seeking(attributes, len(codes[0]), epsilon),
    ),
    "maxent": lambda codes, attributes, epsilon, noise: maxent(
        codes, attributes, price=Price(epsilon), noise=noise, rng=ROWS
    ),
}


def choosing(codes, attributes, epsilon, noise):
    """`maxent` that chooses two tables of three columns; its fit, of all cells, draws nothing."""
    chosen = maxent_plan(attributes, n=len(codes[0]), epsilon=epsilon)
    half = (1 - chosen.one_way_share) / 2
    chosen = replace(
        chosen, three_way=2, three_way_share=half, fine_pairs=0, fine_share=Fraction(0)
    )
    return maxent(codes, attributes, price=Price(epsilon), noise=noise,
                  rng=np.random.default_rng(1), plan=chosen)  # fmt: skip


def seeking(attributes, n, epsilon):
    """A plan that selects a pair over finer groups, or none; with so few records noise decides."""
    chosen = maxent_plan(attributes, n=n, epsilon=epsilon)
    share = (1 - chosen.one_way_share) / 4
    return replace(chosen, groups=2, fine_pairs=1, fine_groups=9, fine_cells=n, fine_share=share)


def bound(name, attributes, epsilon):
    """A mechanism as a function of codes and noise."""
    return lambda codes, noise: RUNS[name](codes, attributes, epsilon, noise)


def moved(n, attributes):
    """All at one corner, and one of them at the other."""
    before = [np.zeros(n, dtype=np.int64) for _ in attributes]
    after = [np.append(column[1:], attribute.size - 1)
             for column, attribute in zip(before, attributes, strict=True)]  # fmt: skip
    return before, after


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", sorted(RUNS))
@pytest.mark.parametrize(
    ("n", "attributes"), [(3, LINE), (12, FLAT), (40, LINE), (12, GAPS), (3, LONG)]
)
def test_no_run_on_a_worst_case_has_a_loss_above_epsilon(name, epsilon, n, attributes):
    """No false alarms: losses are exact, and the proof bounds every one of them."""
    before, after = moved(n, attributes)
    samplers = losses(bound(name, attributes, epsilon), before, after, SeededNoise(1))

    seen = np.concatenate([sampler(10) for sampler in samplers])

    assert np.abs(seen).max() <= float(epsilon) * (1 + 1e-9)
    assert np.abs(seen).max() > 0


@pytest.mark.parametrize("name", sorted(RUNS))
@given(
    n=st.integers(3, 20), seed=st.integers(0, 10**6), epsilon=st.sampled_from(EPSILONS),
    attributes=st.sampled_from([LINE, FLAT, GAPS]),
)  # fmt: skip
@settings(max_examples=25)
def test_no_run_on_any_pair_has_a_loss_above_epsilon(name, n, seed, epsilon, attributes):
    rng = np.random.default_rng(seed)
    before = [rng.integers(0, attribute.size, n) for attribute in attributes]
    after = [column.copy() for column in before]
    for column, attribute in zip(after, attributes, strict=True):
        column[0] = rng.integers(0, attribute.size)

    found = loss(bound(name, attributes, epsilon), before, after, SeededNoise(seed))

    assert abs(found) <= float(epsilon) * (1 + 1e-9)


FOUR = [Domain("a", Kind.NUMERIC, 9), *(Domain(c, Kind.NOMINAL, 3) for c in "bcd")]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [3, 12, 40])
def test_no_choice_of_three_columns_has_a_loss_above_epsilon(epsilon, n):
    """A choice costs little of all, and its scores move alike: what guards its price are the
    tests that no score moves by more than two, and those of single choices below.
    """

    def run(codes, noise):
        choosing(codes, FOUR, epsilon, noise)

    pairs = [moved(n, FOUR)]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        before = [rng.integers(0, attribute.size, n) for attribute in FOUR]
        after = [np.append(column[1:], rng.integers(0, a.size))
                 for column, a in zip(before, FOUR, strict=True)]  # fmt: skip
        pairs.append((before, after))
    seen = np.concatenate([
        sampler(3) for pair in pairs
        for sampler in losses(run, *pair, SeededNoise(1))
    ])  # fmt: skip

    assert np.abs(seen).max() <= float(epsilon) * (1 + 1e-9)
    assert np.abs(seen).max() > 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_column_costs_all_of_epsilon_and_no_more(epsilon):
    """A count of categories reaches it: one moves by one in each of two counts."""
    one, line = [Domain("a", Kind.NOMINAL, 3)], LINE[:1]

    def largest(attributes):
        run = bound("maxent", attributes, epsilon)
        sides = losses(run, *moved(12, attributes), SeededNoise(1))
        return max(np.abs(side(40)).max() for side in sides)

    assert largest(one) == pytest.approx(float(epsilon))
    assert 0 < largest(line) <= float(epsilon) * (1 + 1e-9)


# Faults.


@pytest.mark.parametrize("name", sorted(RUNS))
@pytest.mark.parametrize("n", [3, 12])
def test_noise_of_half_its_scale_has_losses_above_epsilon(name, n):
    """Of 120 runs at most, until one is above; all are multiplied by two, bar the splits."""
    attributes = FLAT if "maxent" in name else LINE
    before, after = moved(n, attributes)
    broken = Laws(actual=lambda scale: scale / 2)
    run = bound(name, attributes, Fraction(1))

    noise = SeededNoise(1)
    seen = (loss(run, before, after, noise, laws=broken) for _ in range(120))

    assert any(abs(one) > 1 for one in seen)


@pytest.mark.parametrize("name", ["privtree, uniform", "privtree, centroid", "copula, tree",
                                  "maxent"])  # fmt: skip
def test_a_split_decided_on_true_counts_has_an_infinite_loss(name):
    """Not on every pair: a decision must turn on one record."""
    broken = Laws(decisive=lambda _scale: 0)
    columns = LONG if name == "maxent" else LINE
    run = bound(name, columns, Fraction(4))

    seen = [loss(run, *moved(n, columns), SeededNoise(n), laws=broken) for n in range(3, 40)]

    assert np.isinf(seen).any()


def test_a_group_cut_that_is_read_off_the_data_has_an_infinite_loss():
    """Groups end at the largest value that occurs, so that tables of two sizes are counted."""

    def cut(column, noise):
        groups = np.minimum(column, column.max() // 2)
        table = table_counts([groups], [int(groups.max()) + 1])
        return noisy_table(table, target="x", price=Price(Fraction(1)), noise=noise)

    before, after = np.zeros(6, dtype=np.int64), np.append(np.zeros(5, dtype=np.int64), 16)

    assert np.isinf(loss(cut, before, after, SeededNoise(1)))


def test_a_group_cut_at_a_true_median_is_found():
    """The cut moves with one record, and five records change sides with it."""

    def cut(column, noise):
        groups = (column > np.sort(column)[len(column) // 2 - 1]).astype(np.int64)
        exact = table_counts([groups], [2])
        return noisy_table(exact, target="x", price=Price(Fraction(1)), noise=noise)

    before, after = np.array([0] * 5 + [1] * 5), np.array([0] * 4 + [1] * 6)

    seen = [loss(cut, before, after, SeededNoise(seed)) for seed in range(30)]

    assert max(map(abs, seen)) > 1


def test_leaves_that_are_counted_with_too_little_noise_are_found():
    """The fault takes a changed record for one that is added: sensitivity 1 in place of 2."""
    line = [LINE[0]]

    def grown_over(column, noise):
        return grow(
            HeldColumns([column]), AdaptiveAxis(tuple(line)), price=Price(Fraction(2)), noise=noise
        )

    def tree(column, noise):
        grown = grown_over(column, noise)
        counts = np.bincount(grown.walk.state.labels, minlength=len(grown)).astype(np.int64)
        noisy_answers(counts, reach=1, price=Price(Fraction(1)), target="leaves", noise=noise)

    def right(column, noise):
        leaf_counts(grown_over(column, noise), price=Price(Fraction(1)), noise=noise)

    (before,), (after,) = moved(40, line)

    def worst(run):
        return max(abs(loss(run, before, after, SeededNoise(seed)))
                   for seed in range(60))  # fmt: skip

    assert worst(right) <= 3
    assert worst(tree) > 1.9


def test_a_question_that_only_one_table_asks_has_an_infinite_loss():
    def curious(column, noise):
        noisy_table(column, target="x", price=Price(Fraction(1)), noise=noise)
        if column[0]:
            noisy_table(column, target="again", price=Price(Fraction(1)), noise=noise)

    zeros, ones = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)

    assert np.isinf(loss(curious, ones, zeros, SeededNoise(1)))
    assert np.isfinite(loss(curious, zeros, zeros, SeededNoise(1)))


# The losses themselves.


def first_heads(coins):
    """Chances of permute-and-flip, order by order and coin by coin."""
    found = np.zeros(len(coins))
    orders = list(permutations(range(len(coins))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * coins[i] / len(orders)
            left *= 1 - coins[i]
    return found


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=6), st.floats(0.3, 20))
@settings(max_examples=60)
def test_chances_of_choices_equal_sums_over_orders_and_coins(scores, scale):
    scores = np.array(scores)
    plain = first_heads(np.exp((scores - scores.max()) / scale))

    found = [np.exp(chance(scores, i, scale)) for i in range(len(scores))]

    np.testing.assert_allclose(found, plain, rtol=1e-9)
    assert sum(found) == pytest.approx(1)


def test_a_choice_has_a_loss_of_at_most_its_price_and_nearly_reaches_it():
    def choice(scores, noise):
        return noise.select(scores, sensitivity=Fraction(2), epsilon=Fraction(1))

    # All others up by two, and the one down by two: no pair of scores is farther apart.
    before, after = np.zeros(200, dtype=np.int64), np.full(200, 2)
    before[0], after[0] = 40, 38
    sides = losses(choice, before, after, SeededNoise(1))
    seen = np.abs(np.concatenate([side(300) for side in sides]))

    assert seen.max() <= 1
    assert seen.max() > 0.5


def test_a_choice_without_noise_and_one_of_half_its_noise_are_found():
    """Three columns chosen by true scores, and a choice that pays for half of what it costs."""
    rng = np.random.default_rng(1)
    before = [rng.integers(0, attribute.size, 12) for attribute in FOUR]
    after = [np.append(column[1:], attribute.size - 1)
             for column, attribute in zip(before, FOUR, strict=True)]  # fmt: skip
    chosen = maxent_plan(FOUR, n=12, epsilon=Fraction(1))
    price = (1 - chosen.one_way_share) / 2 / 10 / 2

    def certain(scale):
        return Fraction(0) if scale == 4 / price else scale

    def run(codes, noise):
        choosing(codes, FOUR, Fraction(1), noise)

    laws = Laws(actual=certain)
    found = [loss(run, before, after, SeededNoise(seed), laws=laws) for seed in range(40)]
    assert np.isinf(found).any()

    def choice(scores, noise):
        return noise.select(scores, sensitivity=Fraction(2), epsilon=Fraction(1))

    first, second = np.array([0, 0, 0]), np.array([2, -2, -2])

    def worst(laws):
        return max(abs(loss(choice, first, second, SeededNoise(seed), laws=laws))
                   for seed in range(8))  # fmt: skip

    assert worst(Laws()) <= 1
    assert worst(Laws(actual=lambda scale: scale / 2)) > 1


@given(value=st.integers(-30, 30), scale=st.floats(0.3, 20))
@settings(max_examples=100)
def test_probabilities_of_decisions_equal_sums_over_the_law(value, scale):
    z = np.arange(-4000, 4001)
    law = np.exp(-np.abs(z) / scale)
    law /= law.sum()
    above = law[value + z > 0].sum()

    found = np.exp(
        [_decision_loss(np.array([value]), scale, above=np.array([up]))[0] for up in (True, False)]
    )

    assert found == pytest.approx([above, 1 - above], rel=1e-9, abs=1e-12)


def test_the_loss_of_one_count_is_the_noise_divided_by_its_scale():
    def count(value, noise):
        noisy_answers(value, reach=1, price=Price(Fraction(1)), target="n", noise=noise)

    seen = {round(loss(count, np.array([5]), np.array([6]), SeededNoise(seed)), 9)
            for seed in range(60)}  # fmt: skip

    assert seen == {-1.0, 1.0}


@pytest.mark.slow
def test_losses_are_the_score_of_an_audit_by_frequencies():
    """False alarms: below 1e-7, the confidence of the bound; a count is as bad as it may be."""

    def count(value, noise):
        noisy_answers(value, reach=1, price=Price(Fraction(1)), target="n", noise=noise)

    samplers = losses(count, np.array([5]), np.array([6]), SeededNoise(1))

    found = lower_bound(*samplers, scores={"loss": identity}, trials=3000, confidence=1 - 1e-7)

    assert 0.7 < found.epsilon.low <= 1


def test_choices_in_rows_and_responses_have_the_loss_of_their_law():
    """A response costs its epsilon where it tells the truth, and nothing where it lies twice."""

    def choices(scores, noise):
        return noise.select_many(scores, sensitivity=Fraction(2), epsilon=Fraction(1))

    def answer(codes, noise):
        return noise.respond(codes, categories=3, epsilon=Fraction(1))

    scores = np.array([[0, 0, 0], [5, 5, 5]])
    moved = np.array([[2, -2, -2], [5, 5, 5]])
    worst = [loss(choices, scores, moved, SeededNoise(seed))
             for seed in range(8)]  # fmt: skip
    seen = {round(loss(answer, np.array([0, 1]), np.array([2, 1]), SeededNoise(seed)), 9)
            for seed in range(40)}  # fmt: skip

    assert 0.5 < max(map(abs, worst)) <= 1
    assert seen == {-1.0, 0.0, 1.0}


def test_a_replay_adds_up_by_scale_and_returns_what_follows_the_answers():
    """The sum of the first is returned without noise: no loss shows it, the outputs do."""

    def leaky(columns, noise):
        first, second = columns
        noisy_answers(first, reach=1, price=Price(Fraction(1)), target="a", noise=noise)
        noise.discrete_laplace(second, scale=Fraction(1, 2))
        return int(first.sum()) if len(first) > 1 else None

    ones, twos = np.array([1]), np.array([2])
    kept = replay(leaky, (ones, ones), (twos, twos), SeededNoise(1))
    shown = replay(leaky, (np.array([1, 0]), ones), (np.array([2, 0]), ones), SeededNoise(1))

    assert set(map(abs, kept.losses.values())) == {1.0, 2.0}
    assert kept.losses.keys() == {(LAPLACE, Fraction(1)), (LAPLACE, Fraction(1, 2))}
    assert (kept.first, kept.second) == (None, None)
    assert (shown.first, shown.second) == (1, 2)


def test_a_replay_of_other_questions_is_infinite_and_has_no_second_output():
    def curious(column, noise):
        for _ in range(1 + int(column[0])):
            noisy_table(column, target="x", price=Price(Fraction(1)), noise=noise)
        return 1

    zeros, ones = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)

    for pair in ((zeros, ones), (ones, zeros)):
        found = replay(curious, *pair, SeededNoise(1))
        assert (set(found.losses.values()), found.second) == ({np.inf}, None)


def test_answers_in_no_order_are_matched_by_size():
    def count(values, noise):
        noisy_answers(values, reach=1, price=Price(Fraction(1)), target="n", noise=noise)

    swapped = np.array([3, 9]), np.array([9, 3])

    assert abs(loss(count, *swapped, SeededNoise(1))) > 1
    assert loss(count, *swapped, SeededNoise(1), laws=Laws(unordered=True)) == 0


@pytest.mark.parametrize(("columns", "same"), [(25, True), (2, False)])
def test_trees_are_added_up_one_by_one_and_no_part_hides_another(columns, same):
    """In rho the sum of squares, not the square of a sum; in epsilon absolute losses."""
    ends = np.array([5, 5 if same else -5] * columns)[:columns]

    def trees(table, noise):
        for end in table:
            noise.exceeds(np.array([end]), threshold=0, scale=Fraction(4))
            noise.exceeds(np.array([0]), threshold=0, scale=Fraction(4))  # the next level
            noise.discrete_gaussian(np.array([0]), scale=Fraction(4))

    found = replay(trees, ends, -ends, RecordingNoise(added=10))
    single = abs(replay(trees, ends[:1], -ends[:1], RecordingNoise(added=10)).parts[0][1])

    tree = (LAPLACE, Fraction(4))
    assert len(found.parts) == 2 * columns
    assert found.losses[tree] == pytest.approx(columns * single)
    assert found.rhos[tree] == pytest.approx(columns * single**2 / 2)

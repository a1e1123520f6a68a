from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal.synthesis.maxent as module
from shoal.core import (
    EXPONENTIAL,
    GAUSSIAN,
    SELECTION,
    Kind,
    Neighbours,
    Price,
    PrivacyMeasure,
)
from shoal.core.concentrated import rho_of
from shoal.errors import InputError, InternalError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.noisy_answers import table_counts
from shoal.mechanism.records import RecordTotal
from shoal.synthesis.adaptive_tree import PATH, SHALLOWEST, UNITS
from shoal.synthesis.domain import Domain, Sort
from shoal.synthesis.maxent import (
    MaxentPlan,
    PairMarginals,
    fine_pairs,
    is_line,
    maxent,
    maxent_plan,
    plan_of,
    worth,
)
from shoal.synthesis.maxent.fit import Target, fit_distribution
from shoal.synthesis.maxent.generate import exchange_rows
from shoal.synthesis.maxent.pair_covers import Cover, cover
from shoal.synthesis.maxent.plan import FINE_SELECTION, FINEST, foresee_errors
from shoal.synthesis.maxent.posterior import two_way_targets

CHANGE, ADD = Neighbours.CHANGE_ONE, Neighbours.ADD_REMOVE
MIXED = (
    Domain("number", Kind.NUMERIC, 1000),
    Domain("grade", Kind.ORDINAL, 7),
    Domain("town", Kind.NOMINAL, 12),
    Domain("year", Kind.ORDINAL, 300),
)
CATEGORIES = (*MIXED[1:3], Domain("sex", Kind.NOMINAL, 2))
WIDE = (MIXED[2], Domain("month", Kind.ORDINAL, 12), Domain("job", Kind.NOMINAL, 12))
BLOCKS = (*WIDE, CATEGORIES[2])


BELIEVED = "part of each pair's dependence that is kept (least, median, greatest)"


def records(seed, n, attributes):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return [
        np.clip((hidden + rng.normal(0, 0.2, n)) * a.size, 0, a.size - 1).astype(np.int64)
        for a in attributes
    ]


def run(seed, n, attributes, epsilon, noise=None):
    noise = noise or SeededNoise(seed)
    rng = np.random.default_rng(seed)
    codes = records(seed, n, attributes)
    return maxent(codes, attributes, price=Price(Fraction(epsilon)), noise=noise, rng=rng), noise


@settings(max_examples=30)
@given(
    st.integers(0, 2**32),
    st.integers(1, 400),
    st.sampled_from(["0.01", "1", "20"]),
    st.sampled_from([MIXED, CATEGORIES, MIXED[:2], (MIXED[0], MIXED[3], MIXED[0])]),
)
def test_rows_lie_in_their_domains_and_the_ledger_adds_up(seed, n, epsilon, attributes):
    drawn, noise = run(seed, n, attributes, epsilon)

    for row, attribute in zip(drawn.rows, attributes, strict=True):
        assert row.shape == (n,)
        assert row.dtype == np.int64
        assert row.min() >= 0
        assert row.max() < attribute.size
    accounting.verify(
        drawn.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


@pytest.mark.parametrize(
    ("n", "epsilon", "attributes", "tables"),
    [
        (300, "0.1", CATEGORIES, PairMarginals.FULL),
        (10_000, "1", BLOCKS, PairMarginals.BLOCKS),
        (20_000, "1", WIDE, PairMarginals.PAIRS),
        (90_000, "1", (*WIDE, *WIDE), PairMarginals.PAIRS),
        (6000, "10", CATEGORIES, PairMarginals.TRIPLES),
        (6000, "10", MIXED, PairMarginals.TRIPLES),
    ],
)
def test_every_plan_draws_rows_and_accounts_for_every_draw(n, epsilon, attributes, tables):
    drawn, noise = run(0, n, attributes, epsilon)

    assert drawn.facts["marginals"] == tables.value
    assert len(drawn.rows[0]) == n
    fine = len(drawn.facts.get("pairs over finer groups", ()))
    threes = len(drawn.facts.get("three-way marginals", ()))
    assert threes == maxent_plan(attributes, n=n, epsilon=Fraction(epsilon)).three_way
    tables = drawn.facts["number of marginals"] + threes
    assert len(drawn.measurements) == len(attributes) + fine + tables
    accounting.verify(
        drawn.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


def test_fine_pairs_are_planned_where_a_selection_can_find_one():
    def planned(m, n, epsilon, size=40):
        columns = tuple(Domain(str(j), Kind.NOMINAL, size) for j in range(m))
        plan = maxent_plan(columns, n=n, epsilon=Fraction(epsilon))
        assert (plan.fine_pairs > 0) == (plan.fine_share > 0)
        assert plan.fine_pairs * plan.fine_share <= (1 - plan.one_way_share) * FINE_SELECTION
        assert not plan.fine_pairs or plan.groups < plan.fine_groups <= FINEST
        return plan.fine_pairs

    assert planned(10, 10_000, "1") == 6
    assert planned(10, 100_000, "1") == 9  # fewer than columns
    assert planned(10, 2000, "1") == 0  # a selection would cost more than a fifth
    assert planned(10, 30_000, "1", size=2) == 0  # no code shares its group


def test_pairs_say_how_far_they_are_believed_where_little_is_there_for_each():
    def learns(m, n, epsilon):
        columns = tuple(Domain(str(j), Kind.ORDINAL, 15) for j in range(m))
        return maxent_plan(columns, n=n, epsilon=Fraction(epsilon)).learns

    assert learns(8, 5000, "0.1")  # r = 18
    assert not learns(8, 30162, "0.1")  # r = 108, and all cells can be held
    assert learns(12, 30162, "1")  # r = 457, and they cannot
    assert learns(12, 60_000, "1")  # r = 909
    assert not learns(12, 200_000, "1")  # r = 3,030


def test_unrelated_columns_stay_so_where_hardly_anything_is_there_for_each_pair():
    rng = np.random.default_rng(3)
    attributes = tuple(Domain(str(j), Kind.NOMINAL, 16) for j in range(8))
    skewed = 0.6 ** np.arange(16)
    columns = [rng.choice(16, 8000, p=skewed / skewed.sum()) for _ in attributes]
    chosen = maxent_plan(attributes, n=8000, epsilon=Fraction(1, 10))
    assert chosen.learns

    def dependence(rows):
        tables = [table_counts(pair, [16, 16]) / 8000 for pair in combinations(rows, 2)]
        return np.mean([np.abs(t - np.outer(t.sum(1), t.sum(0))).sum() / 2 for t in tables])

    def shown(tables, seed):
        drawn = maxent(columns, attributes, price=Price(Fraction(1, 10)), noise=SeededNoise(seed),
                       rng=np.random.default_rng(seed), plan=tables)  # fmt: skip
        assert (BELIEVED in drawn.facts) is tables.learns
        return dependence(drawn.rows)

    learnt, public = (
        np.mean([shown(replace(chosen, learns=learns), seed) for seed in range(4)])
        for learns in (True, False)
    )

    # Rows drawn at random show some by chance.
    chance = dependence(columns)
    assert learnt - chance < 0.5 * (public - chance)


def without_fine(chosen):
    return replace(chosen, fine_pairs=0, fine_share=Fraction(0))


def test_columns_that_determine_each_other_are_measured_over_finer_groups():
    """Two of six columns have forty codes, of which each determines the other."""
    rng = np.random.default_rng(3)
    n, price = 20_000, Fraction(1)
    first = rng.integers(0, 40, n)
    columns = [first, rng.permutation(40)[first], *(rng.integers(0, 6, n) for _ in range(4))]
    attributes = [Domain(name, Kind.NOMINAL, 40 if name in "ab" else 6) for name in "abcdef"]
    chosen = maxent_plan(attributes, n=n, epsilon=price)

    def drawn(plan, noise):
        return maxent(columns, attributes, price=Price(price), noise=noise, plan=plan,
                      rng=np.random.default_rng(0))  # fmt: skip

    def distance(made):
        found = (table_counts([x[0], x[1]], [40, 40]) for x in (columns, made.rows))
        return np.abs(np.subtract(*found)).sum() / 2 / n

    noise = SeededNoise(5)
    fine, coarse = drawn(chosen, noise), drawn(without_fine(chosen), SeededNoise(5))

    assert fine.facts["pairs over finer groups"] == ["a x b"]
    assert fine.facts["groups per column"][:2] == [40, 40]
    assert distance(fine) < 0.2
    assert distance(coarse) > 0.6
    accounting.verify(
        fine.privacy_losses, price, neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


def test_of_independent_columns_no_pair_is_selected_and_the_cover_has_what_is_left():
    rng = np.random.default_rng(0)
    attributes = [Domain(name, Kind.NOMINAL, 16) for name in "abcdef"]
    columns = [rng.integers(0, 16, 20_000) for _ in attributes]
    chosen = maxent_plan(attributes, n=20_000, epsilon=Fraction(1))

    drawn = maxent(columns, attributes, price=Price(Fraction(1)), noise=SeededNoise(1), rng=rng)

    assert chosen.fine_pairs > 1
    assert drawn.facts["pairs over finer groups"] == []
    selections = [entry for entry in drawn.privacy_losses if entry.mechanism == SELECTION]
    assert [entry.epsilon for entry in selections] == [chosen.fine_share]
    assert sum(entry.epsilon for entry in drawn.privacy_losses) == 1


def test_tables_of_three_columns_are_paid_for_where_much_is_there():
    def threes(m, n, epsilon, size=15):
        columns = tuple(Domain(str(j), Kind.ORDINAL, size) for j in range(m))
        chosen = maxent_plan(columns, n=n, epsilon=Fraction(epsilon))
        assert (chosen.three_way_share > 0) == (chosen.three_way > 0)
        if chosen.three_way:
            assert chosen.three_way_share == (1 - chosen.one_way_share) / 10
        return chosen.three_way

    assert threes(8, 12_000, "10") == 4
    assert threes(8, 30_162, "10") == 8  # no more than columns
    assert threes(8, 10_000, "10") == 3
    assert threes(8, 30_162, "1") == 0  # room for one
    assert threes(14, 86_000, "1") == 0  # r = 945
    assert threes(15, 110_000, "1") == 3  # r = 1,048
    assert threes(4, 59_000, "1") == 0
    assert threes(6, 90_000, "1") == 3
    assert threes(2, 10**6, "10") == 0
    assert threes(4, 30_162, "10") == 0  # all of them are counted
    assert threes(8, 10**6, "10", size=2) == 0  # one table of all columns
    assert threes(17, 10**7, "10") == 0  # too many to look at


def test_rows_follow_the_first_fit_where_the_second_does_not_settle(monkeypatch):
    def stubborn(*args, start=None, **terms):
        return start or fit_distribution(*args, **terms)

    columns = tuple(Domain(name, Kind.ORDINAL, 9) for name in "abcdef")
    chosen = maxent_plan(columns, n=9000, epsilon=Fraction(10))
    alone = replace(chosen, three_way=0, three_way_share=Fraction(0))
    codes = records(3, 9000, columns)
    monkeypatch.setattr(module, "fit_distribution", stubborn)

    noise = RecordingNoise()
    drawn, without = (
        maxent(codes, columns, price=Price(Fraction(10)), noise=noise, rng=np.random.default_rng(0),
               plan=tables) for tables in (chosen, alone)
    )  # fmt: skip

    assert chosen.three_way == 3
    assert "did not converge" in drawn.facts["fit of three-way marginals"]
    assert "fit of three-way marginals" not in without.facts
    for a, b in combinations(range(6), 2):
        one, other = (table_counts([d.rows[a], d.rows[b]], [9, 9]) for d in (drawn, without))
        assert np.abs(one - other).sum() / 2 / 9000 < 0.06


def test_a_plan_that_pays_for_no_tables_of_three_columns_is_refused():
    two, four = (maxent_plan(columns, n=500, epsilon=Fraction(1)) for columns in (MIXED[:2], MIXED))

    for chosen, change in (
        (two, {"three_way": 1, "three_way_share": Fraction(1, 10)}),
        (four, {"three_way": 5, "three_way_share": Fraction(1, 10)}),
        (four, {"three_way": 1}),
        (four, {"three_way_share": Fraction(1, 10)}),
        (four, {"three_way": -1, "three_way_share": Fraction(1, 10)}),
    ):
        with pytest.raises(
            InputError, match="a share of epsilon for three-way marginals if and only if"
        ):
            replace(chosen, **change)
    with pytest.raises(InputError, match="must not be negative"):
        replace(four, three_way_share=Fraction(-1, 10))
    with pytest.raises(InputError, match="must leave a share of epsilon"):
        replace(four, three_way=1, three_way_share=Fraction(1, 2))


def test_a_question_that_leaves_nothing_is_refused():
    with pytest.raises(InputError, match="must leave a share of epsilon"):
        MaxentPlan(PairMarginals.PAIRS, 2, Fraction(1, 2), (1, 1), 1.0, Fraction(1), cover([2, 2]),
             fine_pairs=1, fine_share=Fraction(1, 2))  # fmt: skip


def test_the_plan_needs_no_data_and_follows_the_rule():
    def chosen(m, n, epsilon):
        columns = tuple(Domain(str(j), Kind.ORDINAL, 15) for j in range(m))
        return maxent_plan(columns, n=n, epsilon=Fraction(epsilon))

    assert (chosen(5, 30162, "0.1").marginals, chosen(5, 30162, "0.1").groups) == (
        PairMarginals.BLOCKS,
        4,
    )
    assert (chosen(5, 30162, "1").marginals, chosen(5, 30162, "1").groups) == (
        PairMarginals.PAIRS,
        15,
    )
    assert chosen(5, 30162, "1").one_way_share == Fraction(1, 10)  # groups hide nothing
    assert (chosen(8, 5000, "0.1").marginals, chosen(8, 5000, "0.1").groups) == (
        PairMarginals.FULL,
        2,
    )
    assert chosen(8, 5000, "0.1").one_way_share == Fraction(200, 200 + Fraction(125, 7))
    assert (chosen(12, 30162, "1").marginals, chosen(12, 30162, "1").groups) == (
        PairMarginals.BLOCKS,
        5,
    )
    # Five groups hide 10 of 15 codes.
    assert chosen(12, 30162, "1").one_way_share == Fraction(1, 10) + Fraction(4, 15)
    few = [Domain(str(j), Kind.NOMINAL, size) for j, size in enumerate((15, 9, 2, 2, 3))]
    assert maxent_plan(few, n=6000, epsilon=Fraction(1)).one_way_share == Fraction(1, 4)
    assert chosen(4, 30162, "10").marginals is PairMarginals.TRIPLES
    assert chosen(5, 30162, "10").marginals is PairMarginals.PAIRS  # 15^5 cells are too many
    assert chosen(6, 10**6, "10").marginals is PairMarginals.PAIRS
    assert chosen(6, 10**6, "10").groups == 15  # no column has more codes
    assert maxent_plan((MIXED[0],) * 3, n=10**5, epsilon=Fraction(1)).one_way_share == Fraction(
        3, 5
    )
    assert maxent_plan((MIXED[0],) * 3, n=10**7, epsilon=Fraction(1, 10)).groups == 16


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=7),
    st.integers(1, 10**6),
    st.fractions("1/100", 10),
)
@settings(max_examples=40)
def test_noise_alone_stays_below_a_tenth_wherever_there_is_a_choice(sizes, n, epsilon):
    columns = tuple(Domain(str(j), Kind.ORDINAL, size) for j, size in enumerate(sizes))

    chosen = maxent_plan(columns, n=n, epsilon=epsilon)

    if chosen.marginals is not PairMarginals.TRIPLES:
        pairs = len(sizes) * (len(sizes) - 1) / 2
        left = float((1 - chosen.one_way_share) * n * epsilon)
        assert chosen.cover == cover([min(size, chosen.groups) for size in sizes])
        assert chosen.groups == 2 or 1.1 * chosen.cover.cost / (pairs * left) <= 0.1 + 1e-9


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_pairs_of_noisy_tables_are_their_sums_weighed_by_variance(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 4)
    three, two = rng.normal(size=sizes), rng.normal(size=(2, 4))

    tables = [Target((0, 1, 2), three.ravel(), 6.0), Target((0, 2), two.ravel(), 5.0)]
    found = two_way_targets(tables, sizes)

    assert [target.columns for target in found] == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_allclose(found[0].shares, three.sum(axis=2).ravel())
    np.testing.assert_allclose([t.weight for t in found], [6 / 4, 6 / 3 + 5, 6 / 2])
    np.testing.assert_allclose(found[1].shares, (2 * three.sum(axis=1) + 5 * two).ravel() / 7)


def test_a_block_costs_its_part_of_what_single_columns_leave():
    drawn, _ = run(0, 10_000, BLOCKS, "1")

    chosen = maxent_plan(BLOCKS, n=10_000, epsilon=Fraction(1))
    assert len(set(chosen.cover.weights)) > 1
    left = 1 - chosen.one_way_share
    assert [s.epsilon for s in drawn.privacy_losses[len(BLOCKS) :]] == [
        left * weight / sum(chosen.cover.weights) for weight in chosen.cover.weights
    ]


@pytest.mark.parametrize("attributes", [MIXED, BLOCKS])
@given(st.integers(0, 2**32), st.integers(2, 100))
@settings(max_examples=20)
def test_scales_and_prices_do_not_depend_on_the_data(attributes, seed, n):
    def facts(codes):
        drawn = maxent(codes, attributes, price=Price(Fraction(60)), noise=SeededNoise(seed),
                       rng=np.random.default_rng(0))  # fmt: skip
        return [(s.target, s.sensitivity, s.scale, s.epsilon) for s in drawn.privacy_losses]

    zeros = [np.zeros(n, dtype=np.int64)] * len(attributes)
    assert facts(records(seed, n, attributes)) == facts(zeros)


def test_the_same_seeds_give_the_same_rows():
    first, second = run(4, 500, MIXED, "1")[0], run(4, 500, MIXED, "1")[0]

    for one, other in zip(first.rows, second.rows, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(0, 50))
def test_counts_of_blocks_add_up(seed, n, cut):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, n) for size in (3, 4)]

    whole = table_counts(columns, [3, 4])
    first = table_counts([column[:cut] for column in columns], [3, 4])
    second = table_counts([column[cut:] for column in columns], [3, 4])

    np.testing.assert_array_equal(whole, first + second)
    np.testing.assert_array_equal(
        whole, np.histogram2d(*columns, bins=[np.arange(4) - 0.5, np.arange(5) - 0.5])[0]
    )


@given(st.integers(0, 2**32), st.integers(1, 30), st.data())
def test_a_changed_record_moves_a_table_by_at_most_two(seed, n, data):
    rng = np.random.default_rng(seed)
    before = [rng.integers(0, size, n) for size in (3, 4)]
    after = [column.copy() for column in before]
    record = data.draw(st.integers(0, n - 1))
    for column, size in zip(after, (3, 4), strict=True):
        column[record] = data.draw(st.integers(0, size - 1))

    assert np.abs(table_counts(before, [3, 4]) - table_counts(after, [3, 4])).sum() <= 2


def test_with_much_epsilon_pairs_come_out_as_they_are():
    n = 20_000
    codes = records(0, n, CATEGORIES)

    drawn = maxent(codes, CATEGORIES, price=Price(Fraction(10**4)), noise=RecordingNoise(),
                   rng=np.random.default_rng(0))  # fmt: skip

    sizes = [attribute.size for attribute in CATEGORIES]
    for a, b in combinations(range(3), 2):
        true = table_counts([codes[a], codes[b]], [sizes[a], sizes[b]])
        found = table_counts([drawn.rows[a], drawn.rows[b]], [sizes[a], sizes[b]])
        assert np.abs(true - found).sum() / 2 / n < 0.02


@pytest.mark.parametrize("attribute", [MIXED[0], MIXED[2], MIXED[3]])
def test_one_column_is_drawn_from_its_own_counts_for_all_of_epsilon(attribute):
    drawn, noise = run(2, 5000, (attribute,), "1")

    (column,) = records(2, 5000, (attribute,))
    true, found = (np.bincount(c, minlength=attribute.size) for c in (column, drawn.rows[0]))
    assert np.abs(np.cumsum(true - found)).max() < 250  # 0.05 of the records
    assert drawn.facts["marginals"] == PairMarginals.NONE.value
    assert len(drawn.measurements) == 1
    accounting.verify(
        drawn.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


def test_a_plan_that_contradicts_itself_is_refused():
    one, two = (maxent_plan(MIXED[:m], n=500, epsilon=Fraction(1)) for m in (1, 2))

    for chosen, change in (
        (one, {"one_way_share": Fraction(1, 2)}),
        (one, {"marginals": PairMarginals.PAIRS}),
        (two, {"marginals": PairMarginals.NONE}),
        (two, {"one_way_share": Fraction(1)}),
    ):
        with pytest.raises(InputError, match="for one column measures its one-way marginal alone"):
            replace(chosen, **change)


def test_drawn_rows_have_the_two_way_marginals_of_the_fit_nearer_than_sampling_has():
    rng = np.random.default_rng(5)
    sizes, even = [6, 5, 4, 3], [np.full(size, 1 / size) for size in (6, 5, 4, 3)]
    joint = rng.dirichlet(np.full(20, 2.0))
    fitted = fit_distribution(sizes, even, [Target((1, 2), joint, 1e9)], tau=1.0, particles=1,
                              rng=rng)  # fmt: skip
    chosen = rng.choice(len(fitted.weights), 2000, p=fitted.weights)

    def off():
        found = table_counts([fitted.groups[chosen, 1], fitted.groups[chosen, 2]], [5, 4])
        return np.abs(found.ravel() - 2000 * joint).sum()

    before = off()
    exchange_rows(fitted, sizes, chosen, rng)
    assert off() < before / 3


def test_no_column_is_refused():
    with pytest.raises(InputError, match="needs at least one column"):
        maxent_plan((), n=10, epsilon=Fraction(1))


def test_a_forgotten_spending_is_caught():
    drawn, noise = run(0, 100, CATEGORIES, "1")

    for missing in range(len(drawn.privacy_losses)):
        rest = drawn.privacy_losses[:missing] + drawn.privacy_losses[missing + 1 :]
        with pytest.raises(InternalError, match=r"derives epsilon|The accounting has draws"):
            accounting.verify(
                rest, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
            )


@pytest.mark.parametrize("groups", [1, 256])
def test_impossible_plans_are_refused(groups):
    with pytest.raises(InputError, match="2 to 255 groups"):
        MaxentPlan(
            PairMarginals.PAIRS, groups, Fraction(1, 2), (1, 1), 1.0, Fraction(1), cover([2, 2])
        )


def test_the_plan_has_no_step_at_twenty_columns():
    """The share of one-way marginals, groups and noise of pairs change little with one column."""

    def planned(m, price):
        columns = tuple(Domain(str(j), Kind.NOMINAL, 3) for j in range(m))
        plan = plan_of(columns, n=10_000, price=price)
        return plan, np.mean(list(foresee_errors(columns, plan, n=10_000, price=price)[1].values()))

    rho = Price(Fraction(3, 200), ADD, PrivacyMeasure.RHO)
    for price in (Price(Fraction(1)), rho):
        (few, less), (many, more) = (planned(m, price) for m in (20, 21))
        assert few.groups == many.groups
        assert abs(few.one_way_share - many.one_way_share) < Fraction(1, 20)
        assert less <= more <= 1.5 * less


def test_of_a_wide_table_strong_pairs_are_kept():
    """24 columns, of which two follow from two others."""
    domains = tuple(Domain(f"c{j}", Kind.NOMINAL, 6) for j in range(24))
    rng = np.random.default_rng(3)
    codes = [np.minimum(rng.geometric(0.3, 15_000), 6) - 1 for _ in domains]
    for a, b in ((0, 9), (4, 20)):
        codes[b] = np.where(rng.random(15_000) < 0.9, (codes[a] + 1) % 6, codes[b])

    drawn = maxent(codes, domains, price=Price(Fraction(1)), noise=SeededNoise(1), rng=rng)

    assert drawn.facts["pairs over finer groups"] == ["c0 x c9", "c4 x c20"]
    same = [np.mean(drawn.rows[b] == (drawn.rows[a] + 1) % 6) for a, b in ((0, 9), (4, 20))]
    assert min(same) > 0.75
    off = [np.abs(table_counts([x], [6]) - table_counts([y], [6])).sum() / 30_000
           for x, y in zip(codes, drawn.rows, strict=True)]  # fmt: skip
    assert max(off) < 0.05


def test_a_plan_that_never_sees_two_columns_together_is_refused():
    with pytest.raises(InputError, match="cover every pair of columns"):
        MaxentPlan(PairMarginals.PAIRS, 2, Fraction(1, 2), (1, 1, 1), 1.0, Fraction(1),
             Cover(((0, 1), (1, 2)), (1, 1), 0.0))  # fmt: skip


@given(st.integers(0, 2**32), st.integers(1, 300))
@settings(max_examples=20)
def test_groups_of_a_number_end_where_its_leaves_end(seed, n):
    drawn, _ = run(seed, n, MIXED, "3")

    leaves = drawn.measurements[0].groups[0]
    for measurement in drawn.measurements[len(MIXED) :]:
        if measurement.sort is Sort.TREE:
            lower, upper = measurement.groups
            assert np.isin([lower[:, 0], upper[:, 0]], leaves).all()
            continue
        for j, groups in zip(measurement.columns, measurement.groups, strict=True):
            if j == 0:
                assert np.isin(groups, leaves).all()
                assert measurement.counts.shape[measurement.columns.index(0)] == len(groups) - 1


def price_list(chosen, domains, price, *, selections, pairs):
    """The table of draws on the front page of `maxent`: sensitivity and price of each."""
    epsilon, counts = price.amount, 2 if price.neighbours is CHANGE else 1
    rest = (1 - chosen.one_way_share - selections * chosen.fine_share) * epsilon
    path = PATH[price.neighbours]
    most, splits = path / SHALLOWEST, UNITS * path
    for domain, weight in zip(domains, chosen.weights, strict=True):
        own = chosen.one_way_share * epsilon * weight / sum(chosen.weights)
        if is_line(domain):
            yield from [(splits, min(own / 2, most)), (counts, own - min(own / 2, most))]
        else:
            yield counts, own
    for _ in range(selections):
        yield 2 * counts, chosen.fine_share * epsilon
    three = chosen.three_way_share * epsilon
    fine = Fraction(4 * pairs, 5 * (pairs + 3)) * (rest - three)
    for _ in range(pairs):
        yield counts, fine / pairs
    for weight in chosen.cover.weights:
        yield counts, (rest - three - fine) * weight / sum(chosen.cover.weights)
    for part in (1, 9):
        for _ in range(chosen.three_way):
            yield counts, part * three / (10 * chosen.three_way)


FINE = {"fine_pairs": 2, "fine_groups": 20, "fine_cells": 40, "fine_share": Fraction(1, 40)}
NOTHING = {"fine_pairs": 0, "fine_share": Fraction(0), "three_way": 0,
           "three_way_share": Fraction(0)}  # fmt: skip


@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
def test_a_number_has_a_least_share_of_one_way_marginals(neighbours):
    plan = maxent_plan(MIXED, n=200_000, epsilon=Fraction(10), neighbours=neighbours)

    assert plan.one_way_share == Fraction(15, 100)


def test_a_rho_is_worth_more_than_its_epsilon_where_marginals_are_many():
    """Of two columns one marginal is all there is; of twelve there are tens."""
    columns = [Domain(str(j), Kind.NOMINAL, 8) for j in range(12)]
    pure = Price(Fraction(1), ADD)
    rho = Price(rho_of(Fraction(1), Fraction(1, 10**9)), ADD, PrivacyMeasure.RHO)

    assert worth(columns, rho) > worth(columns, pure) == 2
    assert worth(columns[:2], rho) < worth(columns[:2], pure)
    for price in (pure, rho):
        plan = plan_of(columns, n=20_000, price=price)
        assert plan.strength == 20_000 * worth(columns, price) / 66


@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
@pytest.mark.parametrize("path", ["fine", "three-way"])
def test_entries_in_rho_are_those_of_the_proof(path, neighbours):
    """Squares of L2 moves: 2 or 1 of counts; and 4 or 2 of a score of fine pairs."""
    chosen = maxent_plan(MIXED, n=500, epsilon=Fraction(1))
    half = (1 - chosen.one_way_share) / 2
    changed = {
        "fine": FINE,
        "three-way": {"three_way": 2, "three_way_share": half},
    }[path]
    price = Price(Fraction(1, 10), neighbours, PrivacyMeasure.RHO)

    drawn = maxent(records(1, 500, MIXED), MIXED, price=price, noise=SeededNoise(1),
                   rng=np.random.default_rng(1), plan=replace(chosen, **NOTHING | changed),
                   total=RecordTotal(510.0, 50.0))  # fmt: skip

    moved = 2 if neighbours is CHANGE else 1
    for entry in drawn.privacy_losses:
        assert entry.neighbours is neighbours
        if "fine" in entry.target:
            assert entry.sensitivity == 2 * moved
        elif entry.mechanism in {GAUSSIAN, EXPONENTIAL}:
            assert entry.sensitivity == moved
        else:
            assert entry.sensitivity == UNITS * PATH[neighbours]
    assert accounting.total(drawn.privacy_losses, measure=PrivacyMeasure.RHO) == Fraction(1, 10)
    assert sum(entry.rho for entry in drawn.privacy_losses) == Fraction(1, 10)


@pytest.mark.parametrize("price", [
    Price(Fraction(1)), Price(Fraction(10)), Price(Fraction(1), ADD), Price(Fraction(10), ADD),
], ids=["1", "10", "1 added", "10 added"])  # fmt: skip
@pytest.mark.parametrize("path", ["plain", "fine", "none", "three-way", "alone"])
def test_entries_are_those_of_the_proof(path, price, monkeypatch):
    epsilon = price.amount
    domains = MIXED[:1] if path == "alone" else MIXED
    chosen = maxent_plan(domains, n=500, epsilon=epsilon)
    if path != "alone":
        half = (1 - chosen.one_way_share) / 2
        chosen = replace(chosen, **NOTHING | {
            "plain": {}, "fine": FINE, "none": FINE,
            "three-way": {"three_way": 2, "three_way_share": half},
        }[path])  # fmt: skip
    # "None" is never selected, or always.
    monkeypatch.setattr(fine_pairs, "NOISE", 9 if path == "none" else -9)

    drawn = maxent(records(1, 500, domains), domains, price=price, noise=SeededNoise(1),
                   rng=np.random.default_rng(1), plan=chosen,
                   total=RecordTotal(510.0, 50.0))  # fmt: skip

    stated = [(entry.sensitivity, entry.epsilon) for entry in drawn.privacy_losses]
    made = {"fine": (2, 2), "none": (1, 0)}.get(path, (0, 0))
    asked = price_list(chosen, domains, price, selections=made[0], pairs=made[1])
    assert stated == list(asked)
    assert sum(price for _, price in stated) == epsilon
    for entry in drawn.privacy_losses:
        twice = 2 if entry.mechanism == SELECTION else 1
        assert twice * entry.sensitivity / entry.scale == entry.epsilon

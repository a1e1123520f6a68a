"""Uniques and individual risk, against counting and the sum that defines it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from shoal.errors import InputError
from shoal.metrics.uniqueness import (
    contributions,
    household_risk,
    individual_risk,
    uniques,
)

tables = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32 - 1)).map(
    lambda shape: np.random.default_rng(shape[2]).integers(0, 3, shape[:2])
)


@given(tables)
def test_uniques_are_the_rows_that_occur_once(table):
    counts = Counter(map(tuple, table))

    found = uniques(table)

    assert found.uniques == sum(n == 1 for n in counts.values())
    assert found.pairs == 2 * sum(n == 2 for n in counts.values())
    assert (found.records, found.keys) == (len(table), len(counts))
    assert found.smallest == min(counts.values())


@pytest.mark.parametrize(
    ("f", "p"), [(1, 0.1), (1, 0.9), (2, 0.3), (3, 0.02), (19, 0.2), (20, 0.2), (40, 0.05)]
)
def test_the_individual_risk_is_the_mean_of_1_over_f_of_a_negative_binomial(f, p):
    """F given f is negative binomial, with f successes at p."""
    people = np.arange(f, int(f / p * 60))
    wanted = (nbinom.pmf(people - f, f, p) / people).sum()

    found = individual_risk(np.zeros((f, 1)), np.full(f, 1 / p))

    np.testing.assert_allclose(found.risks, wanted, rtol=1e-7)


def test_the_individual_risk_is_sdcmicros_where_that_is_exact_and_near_where_it_is_not():
    """Formulas of sdcMicro's indivRisk, method "approx": exact at f = 1 and 2."""
    p = 0.2
    one, two, five = (
        individual_risk(np.zeros((f, 1)), np.full(f, 1 / p)).risks[0] for f in (1, 2, 5)
    )

    odds = p / (1 - p)
    assert one == pytest.approx(odds * np.log(1 / p))
    assert two == pytest.approx(odds - odds**2 * np.log(1 / p))
    assert five == pytest.approx(p / (5 - (1 - p)), rel=0.05)


def test_a_common_value_of_a_big_table_has_a_finite_risk():
    found = individual_risk(np.zeros((200_000, 1)), np.full(200_000, 25.0))

    assert found.expected == pytest.approx(1 / 25, rel=1e-4)


@given(tables)
def test_without_weights_the_expected_hits_are_the_number_of_keys(table):
    found = individual_risk(table)

    assert found.expected == pytest.approx(len(set(map(tuple, table))))
    assert found.population_uniques == uniques(table).uniques
    assert found.mean.low <= found.mean.value <= found.mean.high


@given(tables, st.floats(1, 100))
def test_weights_lower_the_risk_of_everybody(table, weight):
    with_weights = individual_risk(table, np.full(len(table), weight))

    assert (with_weights.risks <= individual_risk(table).risks + 1e-12).all()
    assert (with_weights.risks > 0).all()


def test_the_number_of_hits_is_covered_as_often_as_said():
    """Draws samples of a population and attacks the uniques; 5 sd of 3,000 tries: below 1e-6."""
    rng = np.random.default_rng(8)
    # Population frequencies under which the model's posterior holds: improper 1/F, cut off.
    sizes = np.exp(rng.uniform(0, np.log(5000), 200_000)).astype(int)
    p = 0.05
    sampled = rng.binomial(sizes, p)
    alone = sizes[sampled == 1][:3000]
    hits = (rng.random(3000) < 1 / alone).sum()

    risk = individual_risk(np.arange(3000)[:, None], np.full(3000, 1 / p))

    assert abs(hits - risk.expected) < 5 * np.sqrt(3000 * risk.mean.value)


def test_an_attribute_that_repeats_another_adds_nothing():
    rng = np.random.default_rng(0)
    column, other = rng.integers(0, 50, 400), rng.integers(0, 20, 400)

    first, copy, third = contributions(np.column_stack([column, column, other]))

    assert first.added == copy.added == 0
    assert first.alone == copy.alone == pytest.approx(len(set(column)) / 400)
    assert third.added > 0.5


@given(tables)
def test_contributions_are_the_differences_of_the_risks(table):
    whole = individual_risk(table).mean.value

    for j, part in enumerate(contributions(table)):
        assert part.without == pytest.approx(
            individual_risk(np.delete(table, j, axis=1)).mean.value
        )
        assert part.alone == pytest.approx(individual_risk(table[:, [j]]).mean.value)
        assert part.added == pytest.approx(whole - part.without)
        assert part.added >= -1e-12


@given(tables, st.data())
def test_a_household_is_found_if_one_member_is(table, data):
    risks = individual_risk(table).risks
    rows = len(risks)
    households = np.array(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)))
    households = np.unique(households, return_inverse=True)[1]

    found = household_risk(risks, households)

    for row in range(rows):
        members = risks[households == households[row]]
        assert found[row] == pytest.approx(1 - np.prod(1 - members))


def test_an_empty_table_has_no_risk_and_no_class():
    empty = np.zeros((0, 2))

    assert uniques(empty).share == 0
    assert uniques(empty).smallest == 0
    assert individual_risk(empty).expected == 0
    assert individual_risk(empty, np.zeros(0)).mean.value == 0
    assert contributions(empty)[0].added == 0


def test_all_missing_is_one_class():
    assert uniques(np.full((4, 2), np.nan)).smallest == 4


def test_wrong_shapes_are_refused():
    with pytest.raises(InputError, match="finite weight for each of 2 records"):
        individual_risk(np.zeros((2, 1)), np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="records by columns"):
        uniques(np.zeros(3))


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=n, max_size=n),
            st.lists(st.tuples(*[st.booleans()] * 3), min_size=n, max_size=n),
        )
    )
)
def test_a_suppressed_cell_matches_any_by_a_naive_count(case):
    columns, hidden = (np.array(part) for part in case)

    found = uniques(columns, hidden=hidden)
    risks = individual_risk(columns, hidden=hidden).risks

    agree = (columns[:, None] == columns) | hidden[:, None] | hidden
    sizes = agree.all(axis=2).sum(axis=1)
    assert found.uniques == (sizes == 1).sum()
    assert found.smallest == sizes.min()
    assert risks == pytest.approx(1 / sizes)

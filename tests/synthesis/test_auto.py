from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Kind, Price
from shoal.errors import InputError
from shoal.synthesis.auto import Goal, choose
from shoal.synthesis.copula import Margins
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import MaxentPlan, PairMarginals
from shoal.synthesis.privtree import Fill

NUMBER = Domain("number", Kind.NUMERIC, 1000)
GRADE = Domain("grade", Kind.ORDINAL, 12)
attributes = st.lists(st.sampled_from([NUMBER, GRADE]), min_size=1, max_size=12)


@given(attributes, st.integers(1, 10**7), st.fractions("1/1000", 20), st.sampled_from(list(Goal)))
def test_every_public_setting_has_a_choice_with_reasons(columns, n, epsilon, goal):
    choice = choose(columns, n=n, price=Price(epsilon), goal=goal)

    assert isinstance(choice.plan, Fill | Margins | MaxentPlan)
    assert choice.why
    assert all(text.endswith(".") for text in choice.why + choice.warnings)


@pytest.mark.parametrize(
    ("columns", "n", "epsilon", "goal", "mechanism", "plan"),
    [
        ([NUMBER], 1000, 1, Goal.COUNTS, Fill, Fill.UNIFORM),
        ([NUMBER, GRADE], 30162, 10, Goal.MEANS, Fill, Fill.CENTROID),
        ([GRADE] * 2, 10_000, 1, Goal.COUNTS, MaxentPlan, PairMarginals.FULL),
        ([GRADE] * 2, 900, Fraction(1, 10), Goal.COUNTS, Fill, Fill.UNIFORM),
        ([GRADE], 10_000, 1, Goal.COUNTS, MaxentPlan, PairMarginals.NONE),
        ([GRADE], 23, 1, Goal.COUNTS, Fill, Fill.UNIFORM),
        ([NUMBER] * 4, 1080, Fraction(1, 10), Goal.MEANS, Margins, Margins.BLOCKS),
        ([NUMBER] * 4, 1080, Fraction(1, 10), Goal.COUNTS, MaxentPlan, PairMarginals.FULL),
        ([NUMBER] * 4, 1080, 10, Goal.MEANS, MaxentPlan, PairMarginals.BLOCKS),
        ([GRADE] * 5, 30162, Fraction(1, 10), Goal.COUNTS, MaxentPlan, PairMarginals.BLOCKS),
        ([GRADE] * 5, 30162, 1, Goal.COUNTS, MaxentPlan, PairMarginals.PAIRS),
        ([GRADE] * 5, 30162, 10, Goal.COUNTS, MaxentPlan, PairMarginals.TRIPLES),
        ([GRADE] * 8, 30162, 10, Goal.COUNTS, MaxentPlan, PairMarginals.PAIRS),
    ],
)
def test_the_rule_by_example(columns, n, epsilon, goal, mechanism, plan):
    choice = choose(columns, n=n, price=Price(Fraction(epsilon)), goal=goal)

    assert type(choice.plan) is mechanism
    assert getattr(choice.plan, "marginals", choice.plan) is plan


def test_little_data_for_many_columns_is_warned_about():
    weak = choose([GRADE] * 12, n=1000, price=Price(Fraction(1)))

    (text,) = weak.warnings
    assert text == (
        "With 1,000 rows and epsilon 1, the number of rows n times epsilon is 15.2 for each pair "
        "of columns, below 50: "
        "little beyond the one-way marginals is preserved. Use fewer columns or a larger "
        "epsilon."
    )
    assert choose([GRADE] * 12, n=10**5, price=Price(Fraction(1))).warnings == ()


def test_few_rows_are_warned_about_whatever_epsilon():
    (one,) = choose([NUMBER], n=1, price=Price(Fraction(1))).warnings
    (few,) = choose([NUMBER], n=49, price=Price(Fraction(10))).warnings

    assert one.startswith(
        "With 1 row and epsilon 1, the number of rows n times epsilon is 1 for the column, below 50"
    )
    assert few == "With 49 rows, fewer than 50, one record is a large part of every count."


def test_one_row_has_no_rank_correlation_and_so_no_copula():
    choice = choose([NUMBER] * 3, n=1, price=Price(Fraction(1)), goal=Goal.MEANS)

    assert isinstance(choice.plan, MaxentPlan)


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(InputError, match="at least one column, at least one record"):
        choose([], n=10, price=Price(Fraction(1)))

"""The rule by which entries add up, against a search through tiny sources."""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.budget.composition import DeclaredFacts, compose, cumulative, fold_name
from shoal.core import Extract, Neighbours
from shoal.core.concentrated import epsilon_above
from shoal.errors import InternalError

CHANGE, ADD = Neighbours.CHANGE_ONE, Neighbours.ADD_REMOVE
WHOLE = DeclaredFacts(CHANGE)
EXTRACT = DeclaredFacts(CHANGE, extract="diagnosis = C50", extract_by=Extract.ROW)
FIVE = DeclaredFacts(CHANGE, unit="customer", contributions=5, cut=True, public_number="persons")


@dataclass(frozen=True)
class Entry:
    id: int
    epsilon: Fraction | None
    facts: DeclaredFacts | None
    rho: Fraction | None = None
    delta: Fraction | None = None

    @property
    def priced(self):
        return self.epsilon is not None or self.rho is not None


def together(*facts, epsilon=1):
    """Entries of epsilon 1 each; an add-remove price is doubled, as the file books it."""
    return compose(
        [
            Entry(i, epsilon * (2 if one and one.neighbours is ADD else 1), one)
            for i, one in enumerate(facts, 1)
        ]
    )


# Prices in rho

DELTA = Fraction(1, 10**9)
PRICES = st.fractions(Fraction(1, 1000), 3)


@settings(max_examples=20)
@given(st.lists(PRICES, max_size=4), st.one_of(st.just(Fraction(0)), PRICES))
def test_the_cumulative_epsilon_is_the_least_over_which_pure_entries_are_kept_pure(pure, rho):
    """Of all subsets; and as small numbers are many, it falls far below their sum."""
    sums = [
        sum((p for p, kept in zip(pure, keep, strict=True) if kept), Fraction(0))
        + epsilon_above(
            rho + sum(p * p / 2 for p, kept in zip(pure, keep, strict=True) if not kept), DELTA
        )
        for keep in product([True, False], repeat=len(pure))
    ]

    assert 0 <= cumulative(pure, rho, DELTA) - min(sums) < 2e-6  # rounded up to six places
    assert cumulative([Fraction(1, 10)] * 100, Fraction(0), DELTA) < 7


def test_rows_of_a_person_in_rho_count_by_the_square_of_their_number():
    row = DeclaredFacts(CHANGE, max_contributions=3)
    found = compose([Entry(1, None, row, Fraction(1, 10))], DELTA)

    assert found.spent == epsilon_above(Fraction(9, 10), DELTA)
    with pytest.raises(InternalError, match="no delta"):
        compose([Entry(1, None, row, Fraction(1, 10))])


# The two sums that were false


def test_a_table_and_its_extract_of_one_diagnosis_have_no_cumulative_epsilon():
    (reason,) = together(WHOLE, EXTRACT).reasons

    assert reason == (
        "Entry 2 is of an extract by protected cells, with change-one neighbours: its public size"
        " discloses who is in the extract. Extracts add up with add-remove neighbours."
    )


def test_extracts_add_up_under_add_remove_for_predicates_of_the_row_alone():
    add = replace(EXTRACT, neighbours=ADD, public_number="")
    other = replace(add, extract="diagnosis = C34")

    assert together(WHOLE, add).spent == 3
    assert together(replace(WHOLE, neighbours=ADD), add, other).spent == 6
    assert not together(WHOLE, add).reasons
    assert not together(replace(WHOLE, neighbours=ADD), add, other).reasons


def test_two_extracts_by_protected_cells_have_no_joint_number():
    """Their two sizes are public, and a person who changes moves between them."""
    (reason,) = together(EXTRACT, replace(EXTRACT, extract="diagnosis = C34")).reasons

    assert reason.startswith("Entries 1 and 2 are of an extract by protected cells")


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("words", ["the 1000 highest incomes", "without duplicates"])
def test_what_is_cut_by_other_rows_does_not_add_up(neighbours, words):
    chosen = DeclaredFacts(neighbours, extract=words, extract_by=Extract.TABLE)

    (reason,) = together(WHOLE, chosen).reasons

    assert "depends on other rows" in reason


def test_rows_beside_persons_of_five_rows_cost_six_if_five_is_a_fact_of_the_source():
    found = together(WHOLE, replace(FIVE, max_contributions=5))

    assert (found.spent, found.reasons) == (6, ())
    assert found.scope == "per person (customer)"


def test_rows_beside_persons_of_five_rows_cost_none_if_a_release_cut_them():
    found = together(WHOLE, FIVE)

    assert len(found.reasons) == 1
    assert "no largest number of rows per person is declared for the source" in found.reasons[0]


# Other facts


def test_the_same_extract_again_is_its_own_source():
    found = together(EXTRACT, replace(EXTRACT, extract="Diagnosis =  C50"))

    assert (found.spent, found.reasons) == (2, ())
    assert "within the extract 'diagnosis = C50'" in found.scope


def test_extracts_by_public_facts_and_versions_of_a_table_add_up():
    year = replace(WHOLE, extract="year = 2025", extract_by=Extract.PUBLIC)

    assert together(WHOLE, year, replace(year, extract="year = 2026")).reasons == ()


def test_persons_that_are_numbered_by_different_columns_may_be_different_units():
    (reason,) = together(FIVE, replace(FIVE, unit="household")).reasons

    assert "'customer' and 'household'" in reason
    assert together(FIVE, replace(FIVE, unit="Customer ")).reasons == ()


def test_a_column_that_is_called_row_numbers_persons():
    assert together(WHOLE, replace(FIVE, unit="row")).reasons


def test_columns_that_are_public_in_one_release_are_public_in_the_sum():
    scope = together(replace(WHOLE, public_columns=("age",)), WHOLE).scope

    assert scope == "per row, beside the public age"


def test_an_entry_without_facts_costs_its_price_alone_and_none_beside_another():
    assert (together(None).spent, together(None).reasons) == (1, ())
    assert together(None, None).reasons == (
        "Entries 1 and 2 are by an older version of Shoal, without declared facts to add up by.",
    )
    assert "Entry 1 is" in together(None, WHOLE).reasons[0]


FACTS = st.builds(
    DeclaredFacts,
    st.sampled_from(Neighbours),
    unit=st.sampled_from(["", "customer", "household"]),
    contributions=st.integers(1, 3),
    cut=st.booleans(),
    extract=st.sampled_from(["", "a", "b"]),
    extract_by=st.sampled_from([None, *Extract]),
    max_contributions=st.none() | st.integers(1, 3),
)


@given(st.lists(FACTS, max_size=4), FACTS, st.randoms())
def test_more_releases_never_cost_less_and_order_does_not_matter(facts, one, rng):
    before, after = together(*facts), together(*facts, one)
    shuffled = list(facts)
    rng.shuffle(shuffled)

    assert after.spent >= before.spent + 1
    assert together(*shuffled).spent == before.spent
    assert bool(together(*shuffled).reasons) == bool(before.reasons)


# The theorem, by search. A source is some persons, each with rows of one protected cell: 0, 1 or 2.
# What the rule says is compared with the dearest pair of neighbours that there is.

CELLS = (0, 1, 2)


def tables(source, facts):
    """The rows of a release's table, each with its person."""
    rows = [(person, cell) for person, cells in enumerate(source) for cell in cells]
    if facts.extract_by is Extract.ROW:
        return [row for row in rows if row[1] >= 1]
    if facts.extract_by is Extract.TABLE:  # what is left of duplicates
        return list({cell: (person, cell) for person, cell in reversed(rows)}.values())
    return rows


def distance(one, other, facts):
    """In how many steps of its own neighbours a release gets from one table to the other.

    A person's rows are a multiset; rows are told apart by who has them, as steps go.
    """
    persons = {person for person, _ in (*one, *other)}
    rows = {p: [sorted(c for q, c in table if q == p) for table in (one, other)] for p in persons}
    changed = {p: pair for p, pair in rows.items() if pair[0] != pair[1]}
    if facts.neighbours is ADD:
        if facts.unit:
            return sum(bool(before) + bool(after) for before, after in changed.values())
        common = [sum(min(b.count(c), a.count(c)) for c in CELLS) for b, a in changed.values()]
        sizes = [(len(b), len(a)) for b, a in changed.values()]
        return sum(b + a - 2 * same for (b, a), same in zip(sizes, common, strict=True))
    number = len if not facts.unit else lambda table: len({person for person, _ in table})
    if number(one) != number(other):
        return None  # published exactly: no number of steps leads there
    if facts.unit:
        return len(changed)
    before, after = (Counter(cell for _, cell in table) for table in (one, other))
    return (before - after).total()


def neighbours(source, *, most):
    """Sources in which the first person, or the first row, has other cells; as many."""
    first, *others = source
    for cells in product(CELLS, repeat=len(first)):
        if most is not None or sum(a != b for a, b in zip(cells, first, strict=True)) <= 1:
            yield (tuple(cells), *others)


TWO_ROWS = [((a, b), (c,), (d,)) for a, b, c, d in product(CELLS, repeat=4)]
ONE_ROW = [((a,), (b,), (c,)) for a, b, c in product(CELLS, repeat=3)]


@pytest.mark.parametrize("extract_by", [None, *Extract])
@pytest.mark.parametrize("add", list(Neighbours))
@pytest.mark.parametrize("unit", ["", "customer"])
def test_the_sum_covers_every_pair_of_neighbours_of_the_source(unit, add, extract_by):
    """A whole table, change-one by rows, and one release with other facts."""
    other = DeclaredFacts(
        add,
        unit=unit,
        contributions=2 if unit else 1,
        cut=bool(unit),
        extract="cell >= 1" if extract_by else "",
        extract_by=extract_by,
        max_contributions=2 if unit else None,
    )
    pair = (WHOLE, other)
    found = together(*pair)
    most = 2 if unit else None
    dearest, bounded = 0, True
    for source in TWO_ROWS if unit else ONE_ROW:
        for changed in neighbours(source, most=most):
            steps = [distance(tables(source, f), tables(changed, f), f) for f in pair]
            if extract_by is Extract.PUBLIC:  # a fact of no cell: here, everybody's
                steps[1] = distance(tables(source, WHOLE), tables(changed, WHOLE), other)
            bounded &= None not in steps
            dearest = max(dearest, sum(step or 0 for step in steps))

    if found.reasons:
        assert extract_by is Extract.TABLE or not bounded
    else:
        assert bounded
        assert dearest <= found.spent
        assert dearest == found.spent or unit  # and no more than need be, for rows


def test_names_are_compared_whatever_their_spaces_case_and_coding():
    assert fold_name("Ämter \u00a0Nord") == fold_name("a\u0308MTER\u200bnord")
    assert fold_name("\u0430") != fold_name("a")  # a Cyrillic letter is another one

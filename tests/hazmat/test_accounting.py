from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Neighbours, PrivacyLoss
from shoal.errors import InternalError
from shoal.hazmat.accounting import composed, total, verify

CHANGE, ADD = Neighbours.CHANGE_ONE, Neighbours.ADD_REMOVE


def privacy_loss(epsilon, *, neighbours=CHANGE, mechanism="discrete-laplace", draws=1, **more):
    """An entry that states exactly its price."""
    factor = 2 if mechanism == "permute-and-flip" else 1
    return PrivacyLoss(
        mechanism=mechanism,
        target="income",
        sensitivity=Fraction(3),
        scale=factor * 3 / Fraction(epsilon),
        epsilon=Fraction(epsilon),
        neighbours=neighbours,
        draws=draws,
        **more,
    )


epsilons = st.fractions(Fraction(1, 100), 5, max_denominator=100)


@st.composite
def entries(draw):
    kind = draw(st.sampled_from(Neighbours))
    division = draw(st.sampled_from([None, "strata", "blocks"]))
    if division is None:
        return privacy_loss(draw(epsilons), neighbours=kind)
    # A division's entries agree about it, so its kind hangs on its name.
    kind = {"strata": CHANGE, "blocks": ADD}[division]
    part = draw(st.sampled_from("abc"))
    return privacy_loss(draw(epsilons), neighbours=kind, parallel=division, part=part)


def test_a_tenth_ten_times_is_one():
    assert total([privacy_loss(Fraction("0.1"))] * 10) == 1
    assert total([]) == 0


@pytest.mark.parametrize(
    ("mechanism", "factor"), [("discrete-laplace", 1), ("permute-and-flip", 2)]
)
def test_prices_are_exact(mechanism, factor):
    paid = composed(mechanism, sensitivity=Fraction(1, 3), scale=Fraction(7))

    assert paid == factor * Fraction(1, 21)


def test_a_mechanism_without_a_proof_is_refused():
    unknown = replace(privacy_loss(1), mechanism="gaussian")

    with pytest.raises(
        InternalError, match="no proof for the mechanism 'gaussian'; it knows discrete"
    ):
        total([unknown])


def test_a_selection_that_states_half_its_price_is_refused():
    cheap = replace(privacy_loss(1, mechanism="permute-and-flip"), epsilon=Fraction(1, 2))

    with pytest.raises(InternalError, match="states epsilon 1/2; its noise costs 1"):
        total([cheap])


def test_parts_that_no_record_can_leave_cost_as_much_as_the_dearest():
    def on(part, epsilon):
        return privacy_loss(epsilon, parallel="strata", part=part, fixed=True)

    assert total([on("a", 1), on("b", 2), on("c", Fraction(1, 2))]) == 2
    # Two entries on one part are a sequence.
    assert total([on("a", 1), on("b", 2), on("a", Fraction(3, 2))]) == Fraction(5, 2)


def test_parts_that_a_changed_record_can_leave_cost_as_much_as_the_two_dearest():
    def on(part, epsilon):
        return privacy_loss(epsilon, parallel="leaves", part=part)

    assert total([on("a", 1), on("b", 2), on("c", Fraction(1, 2))]) == 3
    assert total([on("a", 1), on("a", 2)]) == 3


def test_a_record_that_comes_or_goes_touches_one_part():
    def on(part, epsilon):
        return privacy_loss(epsilon, parallel="leaves", part=part, neighbours=ADD)

    parts = [on("a", 1), on("b", 2), on("c", Fraction(1, 2))]

    assert total(parts) == 2
    assert total(parts, neighbours=CHANGE) == 4


def test_divisions_add_up():
    first = [privacy_loss(1, parallel="by region", part=p, fixed=True) for p in "ab"]
    second = [privacy_loss(2, parallel="by age", part=p, fixed=True) for p in "ab"]

    assert total([*first, *second, privacy_loss(4)]) == 7


def test_a_changed_histogram_really_costs_two_parts():
    """Why `fixed` matters: counts by a protected value, exact losses by enumeration.

    Moving a record from one cell to another changes two counts; the loss at the output where
    both counts are hit is the sum of both prices.
    """
    epsilon = Fraction(1)
    before, after, output = (5, 5), (4, 6), (5, 5)

    loss = sum(abs(o - a) - abs(o - b) for o, a, b in zip(output, after, before, strict=True))

    parts = [privacy_loss(epsilon, parallel="cells", part=p) for p in "ab"]
    assert loss * epsilon == total(parts) == 2


def test_an_add_remove_price_is_doubled_for_change_one_and_never_the_other_way():
    assert total([privacy_loss(1), privacy_loss(1, neighbours=ADD)], neighbours=CHANGE) == 3
    with pytest.raises(InternalError, match="does not hold for add-remove"):
        total([privacy_loss(1)], neighbours=ADD)
    with pytest.raises(InternalError, match="different neighbours"):
        total([privacy_loss(1), privacy_loss(1, neighbours=ADD)])


@pytest.mark.parametrize("odd", [{"fixed": True}, {"neighbours": ADD}])
def test_a_division_whose_entries_disagree_is_refused(odd):
    one = privacy_loss(1, parallel="strata", part="a")

    with pytest.raises(InternalError, match="'strata' contradict each other"):
        total([one, replace(one, part="b", **odd)], neighbours=CHANGE)


def test_a_division_needs_a_part_and_a_part_a_division():
    with pytest.raises(InternalError, match="a division of the records and its part"):
        privacy_loss(1, parallel="strata")
    with pytest.raises(InternalError, match="a division of the records and its part"):
        privacy_loss(1, part="a")


@given(st.lists(entries(), max_size=8), st.randoms())
def test_the_total_does_not_depend_on_the_order(privacy_losses, random):
    shuffled = [*privacy_losses]
    random.shuffle(shuffled)

    assert total(shuffled, neighbours=CHANGE) == total(privacy_losses, neighbours=CHANGE)


@given(st.lists(entries(), max_size=6), st.lists(entries(), max_size=6))
def test_the_total_is_monotone_and_at_most_the_sum(some, more):
    both = total([*some, *more], neighbours=CHANGE)

    assert total(some, neighbours=CHANGE) <= both
    assert both <= total(some, neighbours=CHANGE) + total(more, neighbours=CHANGE)


@given(st.lists(st.tuples(st.sampled_from("abc"), epsilons), min_size=1, max_size=6))
def test_a_division_costs_the_worst_set_of_parts_that_change_together(pairs):
    """Against brute force over which parts a neighbour can touch."""
    sums = {p: sum((e for q, e in pairs if q == p), Fraction(0)) for p in "abc"}
    moving = [privacy_loss(e, parallel="x", part=p) for p, e in pairs]
    fixed = [replace(entry, fixed=True) for entry in moving]

    assert total(fixed) == max(sums.values())
    assert total(moving) == max(sums[p] + sums[q] for p, q in product("abc", repeat=2) if p != q)


def test_a_claim_must_equal_the_derived_total():
    privacy_losses = [privacy_loss(Fraction("0.1"))] * 10

    drawn = {("discrete-laplace", Fraction(30)): 10}

    verify(privacy_losses, Fraction(1), neighbours=CHANGE, drawn=drawn)

    for claim in (Fraction("0.9"), Fraction("1.1")):
        with pytest.raises(InternalError, match=f"derives epsilon 1; the claim says {claim}"):
            verify(privacy_losses, claim, neighbours=CHANGE, drawn=drawn)


def test_the_noises_own_account_must_agree_with_the_entries_in_mechanism_scale_and_count():
    privacy_losses = [
        privacy_loss(1, draws=40),
        privacy_loss(1, mechanism="permute-and-flip", draws=2),
    ]
    laplace, choice = ("discrete-laplace", Fraction(3)), ("permute-and-flip", Fraction(6))

    verify(privacy_losses, Fraction(2), neighbours=CHANGE, drawn={laplace: 40, choice: 2})

    for drawn in (
        {laplace: 41, choice: 2},
        {laplace: 40},
        {laplace: 39, choice: 2, ("discrete-laplace", Fraction(1, 100)): 1},
        {("discrete-laplace", Fraction(1, 100)): 40, choice: 2},
        {},
    ):
        with pytest.raises(InternalError, match="the noise drew"):
            verify(privacy_losses, Fraction(2), neighbours=CHANGE, drawn=drawn)

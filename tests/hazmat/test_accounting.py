from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import THRESHOLD, Neighbours, PrivacyLoss, PrivacyMeasure
from shoal.core.concentrated import (
    epsilon_of,
    key_delta,
    key_threshold,
    rho_of,
    root_above,
    root_below,
)
from shoal.errors import InputError, InternalError
from shoal.hazmat.accounting import compose_epsilon, compose_rho, total, verify
from shoal.hazmat.opendp_measurements import approximate_epsilon

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
    paid = compose_epsilon(mechanism, sensitivity=Fraction(1, 3), scale=Fraction(7))

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


# Prices in rho.

RHO = PrivacyMeasure.RHO


def concentrated(rho, *, neighbours=CHANGE, mechanism="discrete-gaussian", **more):
    """An entry that states its price in rho, with noise of no larger one."""
    moved = Fraction(9) if mechanism == "discrete-gaussian" else Fraction(3)
    law = {"target": "income", "sensitivity": moved, "neighbours": neighbours, "draws": 1}
    return PrivacyLoss(mechanism=mechanism, scale=root_above(9 / (2 * Fraction(rho))),
                       epsilon=None, rho=Fraction(rho), **law, **more)  # fmt: skip


def test_prices_in_rho_are_exact():
    law = {"sensitivity": Fraction(2), "scale": Fraction(10)}

    assert compose_rho("discrete-gaussian", **law) == Fraction(1, 100)
    assert compose_rho("exponential-mechanism", **law) == Fraction(1, 50)
    assert compose_rho("discrete-laplace", **law) == Fraction(1, 50)
    # Of pure price 2/5: permute-and-flip has no bounded range, and no eighth.
    assert compose_rho("permute-and-flip", **law) == Fraction(2, 25)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "exponential-mechanism"])
def test_an_entry_in_rho_states_no_less_than_its_noise_costs(mechanism):
    entry = concentrated("0.02", mechanism=mechanism)
    assert total([entry], measure=RHO) == Fraction("0.02")

    with pytest.raises(InternalError, match="states rho 1/100; its noise costs"):
        total([replace(entry, rho=Fraction(1, 100))], measure=RHO)
    with pytest.raises(InternalError, match="is one of rho, and has no epsilon"):
        total([entry])
    with pytest.raises(InternalError, match="in epsilon or in rho"):
        replace(entry, epsilon=Fraction(1))


def test_pure_entries_count_as_half_their_square_and_rho_adds_up():
    entries = [concentrated("0.02"), privacy_loss("0.2"), concentrated("0.01")]

    assert total(entries, measure=RHO) == Fraction("0.05")


def test_an_add_remove_rho_counts_four_times_for_change_one():
    entries = [concentrated("0.02", neighbours=ADD), privacy_loss("0.2", neighbours=ADD)]

    assert total(entries, neighbours=ADD, measure=RHO) == Fraction("0.04")
    assert total(entries, neighbours=CHANGE, measure=RHO) == Fraction("0.16")


def test_parts_of_a_division_share_a_rho():
    def on(part, rho, **more):
        return concentrated(rho, parallel="strata", part=part, **more)

    parts = [on("a", "0.02"), on("b", "0.03"), on("b", "0.01"), on("c", "0.01")]
    assert total(parts, measure=RHO) == Fraction("0.06")
    fixed = [replace(part, fixed=True) for part in parts]
    assert total(fixed, measure=RHO) == Fraction("0.04")


def test_a_claim_with_a_delta_is_that_of_its_rho():
    epsilon, delta = Fraction(1), Fraction(1, 10**9)
    rho = rho_of(epsilon, delta)
    entry = concentrated(rho)
    drawn = {(entry.mechanism, entry.scale): 1}
    about = {"neighbours": CHANGE, "drawn": drawn, "delta": delta, "rho": rho}
    verify([entry], epsilon, **about)
    verify([entry], None, neighbours=CHANGE, drawn=drawn, rho=rho)
    pure = privacy_loss("1")
    with pytest.raises(InternalError, match="derives rho 1/2"):
        verify([pure], epsilon, **about | {"drawn": {(pure.mechanism, pure.scale): 1}})

    with pytest.raises(InternalError, match="derives rho"):
        verify([entry], epsilon, **about | {"rho": 2 * rho})
    with pytest.raises(InternalError, match="the claim says 9/10"):
        verify([entry], Fraction(9, 10), **about)
    with pytest.raises(InternalError, match="is one of rho, and has no epsilon"):
        verify([entry], epsilon, neighbours=CHANGE, drawn=drawn)
    with pytest.raises(InternalError, match="draws of discrete-gaussian"):
        verify([entry], epsilon, **about | {"drawn": {}})


@given(st.sampled_from(["0.001", "0.1", "1", "3", "10", "50"]), st.integers(3, 15))
def test_no_rho_is_worth_more_than_opendp_says(epsilon, digits):
    """The conversion is ours, and OpenDP's own never exceeds what it promises."""
    delta = Fraction(1, 10**digits)
    rho = rho_of(Fraction(epsilon), delta)

    assert approximate_epsilon(rho, delta) <= Fraction(epsilon)
    assert approximate_epsilon(rho * Fraction(10001, 10000), delta) > Fraction(epsilon)
    assert epsilon_of(float(rho), float(delta)) == pytest.approx(float(epsilon), rel=1e-4)


@given(st.fractions(Fraction(1, 10**12), 10**12))
def test_roots_are_rounded_to_the_safe_side(square):
    below, above = root_below(square), root_above(square)

    assert below * below <= square <= above * above
    assert above - below <= above * Fraction(1, 10**5)


def test_an_epsilon_too_small_for_its_delta_is_refused():
    with pytest.raises(InputError, match="too small for this delta"):
        rho_of(Fraction(1, 10**9), Fraction(1, 10**300))


def texts(rho, delta, *, neighbours=ADD, rows=1, **more):
    """An entry of unknown texts that states exactly its price."""
    times = 2 if neighbours is CHANGE else 1
    squared = Fraction(times * rows * rows)
    scale = root_above(squared / (2 * rho))
    threshold = key_threshold(scale, delta / times, rows)
    stated = {
        "mechanism": THRESHOLD, "target": "town", "sensitivity": squared, "scale": scale,
        "epsilon": None, "neighbours": neighbours, "draws": 1, "rho": rho, "threshold": threshold,
        "delta": times * key_delta(scale, threshold, rows),
    }  # fmt: skip
    return PrivacyLoss(**{**stated, **more})


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows", [1, 4])
def test_the_delta_of_texts_is_taken_from_that_of_the_claim(neighbours, rows):
    claimed = Fraction(1, 10**6)
    rho = rho_of(Fraction(1), claimed / 2)
    entry = texts(rho, claimed / 2, neighbours=neighbours, rows=rows)
    drawn = {(THRESHOLD, entry.scale): 1}
    held = {"neighbours": neighbours, "drawn": drawn, "rho": rho}

    verify([entry], Fraction(1), delta=claimed, **held)
    with pytest.raises(InternalError, match="the claim says"):
        verify([entry], Fraction(1), delta=claimed / 2 + entry.delta / 100, **held)
    with pytest.raises(InternalError, match="the claim has less"):
        verify([entry], Fraction(1), delta=entry.delta / 2, **held)
    with pytest.raises(InternalError, match="the claim has less"):
        verify([entry], None, **held)


@pytest.mark.parametrize(
    "changed",
    [
        {"delta": Fraction(1, 10**12)},
        {"threshold": 3},
        {"threshold": None},
        {"sensitivity": Fraction(3)},
    ],
)  # fmt: skip
def test_texts_that_state_less_than_their_threshold_costs_are_refused(changed):
    rho = Fraction(1, 100)
    honest = texts(rho, Fraction(1, 10**6))
    total([honest], measure=PrivacyMeasure.RHO)

    with pytest.raises(InternalError):
        total([replace(honest, **changed)], measure=PrivacyMeasure.RHO)
    with pytest.raises(InternalError, match="has a delta, and no threshold"):
        total([replace(privacy_loss(1), delta=Fraction(1, 10))])

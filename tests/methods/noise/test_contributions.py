"""Persons with several rows, and rows whose number is not public."""

from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

import shoal
from shoal.core import DifferentialPrivacy, Kind, Neighbours, Persons, Price, Status
from shoal.errors import InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.io.persons import at_most
from shoal.io.table import Table
from shoal.mechanism.records import measure_total
from shoal.methods import REGISTRY
from shoal.methods.method import ContributionProof
from shoal.methods.noise.contributions import fit_rows
from shoal.metrics.epsilon_lower_bound import lower_bound
from shoal.synthesis.domain import Domain

DRAWN = ["privtree", "copula", "maxent", "auto"]
ANY = [*DRAWN, "dp-kdtree", "dp-quadtree"]
KEEP_ROWS = [
    name
    for name, method in REGISTRY.items()
    if method.promises.contributions is ContributionProof.EXACT
]
SURE = 1 - 1e-7
LEVELS = ["a", "b", "c"]


def columns(**person):
    return {
        "person": {"role": "identifier", "privacy_unit": True, **person},
        "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10], "step": 1},
        "y": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS},
    }


def policy(method, person=None, **protect):
    return {
        "version": 1,
        "columns": columns(**(person or {})),
        "protect": {"method": method, "epsilon": 1, **protect},
    }


def visits(sizes, seed=0):
    """A row a visit, so many for each person."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    return pl.DataFrame(
        {
            "person": np.repeat(np.arange(len(sizes)), sizes),
            "x": rng.integers(0, 11, n),
            "y": rng.choice(LEVELS, n),
        }
    )


# Which rows of a person stay.


def chosen(frame, most, key):
    table = Table(frame.drop("person"), None, {})
    rows = at_most(table, frame["person"], Persons("person", most, dropped=True), key=key)
    return frame[rows]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    most=st.integers(1, 5),
    key=st.integers(0, 2**63 - 1),
    seed=st.integers(0, 9),
)
@settings(max_examples=60)
def test_the_rows_that_stay_are_decided_by_the_rows_of_that_person_alone(sizes, most, key, seed):
    frame = visits(sizes, seed)

    kept = chosen(frame, most, key)

    counts = dict(kept.group_by("person").len().iter_rows())
    assert counts == {p: min(size, most) for p, size in enumerate(sizes)}
    for p in range(len(sizes)):  # the same as if nobody else were there
        own = frame.filter(pl.col("person") == p)
        alone = chosen(own, most, key)
        assert alone.sort("x", "y").equals(kept.filter(pl.col("person") == p).sort("x", "y"))
    shuffled = chosen(frame.sample(fraction=1, shuffle=True, seed=seed), most, key)
    assert shuffled.sort(shuffled.columns).equals(kept.sort(kept.columns))


def test_which_rows_stay_follows_the_key():
    frame = visits([9] * 20)

    first, second = (chosen(frame, 3, key) for key in (1, 2))

    assert not first.sort(first.columns).equals(second.sort(second.columns))


# The table that a mechanism sees.


@given(
    n=st.integers(0, 12),
    r=st.integers(1, 4),
    other=st.integers(0, 4),
    total=st.integers(1, 15),
    seed=st.integers(0, 99),
)
@settings(max_examples=100)
def test_a_person_changes_at_most_r_of_the_records_that_a_mechanism_sees(n, r, other, total, seed):
    """With priorities and padding fixed, by brute force over the definition in the proof."""
    other = min(other, r)
    rng = np.random.default_rng(seed)
    common = list(rng.random(n))
    pads = [(2.0, i) for i in range(total)]

    def seen(own):
        listed = sorted((priority, i) for i, priority in enumerate(common))
        listed += [(p, f"own {p}") for p in own]
        return {record for _, record in sorted(listed, key=lambda t: t[0])[:total]} | {
            ("pad", i) for _, i in pads[: max(total - n - len(own), 0)]
        }

    first, second = seen(list(rng.random(r))), seen(list(rng.random(other)))

    assert len(first) == len(second) == total
    assert len(first - second) <= r


@given(n=st.integers(1, 30), total=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_a_table_is_brought_to_the_noisy_number(n, total, seed):
    attributes = [Domain("a", Kind.NUMERIC, 1000), Domain("b", Kind.NOMINAL, 3)]
    rng = np.random.default_rng(seed)
    codes = [rng.permutation(1000)[:n], rng.integers(0, 3, n)]

    made = fit_rows(codes, attributes, total=total, noise=SeededNoise(seed))

    assert [len(column) for column in made] == [total, total]
    kept = min(n, total)
    assert set(made[0][:kept]) <= set(codes[0])
    pairs = set(zip(*codes, strict=True))
    assert all(pair in pairs for pair in zip(made[0][:kept], made[1][:kept], strict=True))
    assert all(column.min() >= 0 for column in made)
    assert made[0].max() < 1000
    assert made[1].max() < 3


# Prices and claims.


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
@pytest.mark.parametrize("person", [{}, {"max_contributions": 3}, {"exact_contributions": 3}])
def test_prices_for_a_person_add_up_to_the_claim(name, neighbours, person):
    noise = RecordingNoise()
    rules = policy(name, person, neighbours=neighbours)
    frame = visits(
        [3] * 12 if "exact_contributions" in person else [1] * 12 if not person else [1, 5] * 6
    )

    release = shoal.protect(frame, rules, noise=noise)
    (claim,) = shoal.plan(rules).claims

    assert claim.status is Status.PROVED
    assert claim.guarantee.privacy_unit == "person"
    assert claim.guarantee.rows == (3 if person else 1)
    assert not any("person has one row" in text for text in claim.assumes)
    accounting.verify(
        release.privacy_losses, Fraction(1), neighbours=Neighbours(neighbours), drawn=noise.drawn
    )
    public = neighbours == "change-one" and "max_contributions" not in person
    hidden = [
        entry for entry in release.privacy_losses if entry.target.startswith(("the n", "number"))
    ]
    assert len(hidden) == (0 if public else 1)
    if hidden:
        assert hidden[0].sensitivity == claim.guarantee.rows
    if public:
        assert release.data.height == frame.height
    invariant = {True: ("the number of rows",), False: ()}[public]
    if not public and neighbours == "change-one":
        invariant = ("the number of persons",)
    assert claim.guarantee.invariants == invariant


def stated_for(name, person, **protect):
    """A policy of a method that keeps rows, in a form in which it is not refuted, if it has one."""
    method = REGISTRY[name]
    rules = policy(name, person, **{"release_form": str(method.forms.offered[0]), **protect})
    if "k" in method.parameters.model_fields:
        rules["protect"]["k"] = 5
    if name in {"kanon-dp", "pram"}:
        rules["columns"]["y"]["role"] = "confidential"
    zone = {"role": "other", "kind": "numeric", "public": True}
    rules["columns"]["zone"] = zone if name in {"laplace", "public-laplace"} else "identifier"
    return rules


def epsilons_of(planned):
    kinds = [claim for claim in planned.claims if isinstance(claim.guarantee, DifferentialPrivacy)]
    return [claim for claim in kinds if claim.status is not Status.REFUTED]


@pytest.mark.parametrize("name", KEEP_ROWS)
def test_exactly_r_rows_a_person_are_paid_for_row_by_row(name):
    noise = RecordingNoise()
    rules = stated_for(name, {"exact_contributions": 4})
    frame = visits([4] * 10).with_columns(zone=pl.arange(0, 40))

    release = shoal.protect(frame, rules, noise=noise)

    claim = epsilons_of(shoal.plan(rules))[0]
    assert "for persons of up to 4 rows" in str(claim.guarantee)
    assert "costs epsilon / 4" in claim.basis
    assert claim.guarantee.epsilon == (2 if name == "stable-laplace" else 1)
    accounting.verify(
        release.privacy_losses,
        claim.guarantee.epsilon,
        neighbours=Neighbours.CHANGE_ONE,
        drawn=noise.drawn,
    )
    alone = {**rules, "columns": {**rules["columns"], "person": "identifier"}}
    (first, *_), (one, *_) = (
        shoal.protect(frame, p, noise=RecordingNoise()).privacy_losses for p in (rules, alone)
    )
    if first.mechanism != "randomised response":
        assert first.scale == 4 * one.scale
    assert (first.epsilon, first.sensitivity) == (one.epsilon, 4 * one.sensitivity)


def test_sets_of_columns_with_prices_of_their_own_are_paid_for_row_by_row():
    noise = RecordingNoise()
    sets = {"groups": [["x"], ["y"]], "epsilons": [0.25, 0.75], "epsilon": 1, "k": 4}
    rules = policy("mdav-laplace", {"exact_contributions": 3}, **sets)

    release = shoal.protect(visits([3] * 8), rules, noise=noise)

    assert [entry.epsilon for entry in release.privacy_losses] == [Fraction(1, 4), Fraction(3, 4)]
    accounting.verify(release.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE,
                      drawn=noise.drawn)  # fmt: skip


@given(r=st.integers(2, 6), k=st.integers(2, 9), seed=st.integers(0, 99))
@settings(max_examples=40)
@pytest.mark.parametrize("name", ["insensitive-laplace", "mdav-laplace", "kanon-dp"])
def test_groups_of_k_rows_hold_as_many_persons_as_is_claimed(name, r, k, seed):
    """The check counts persons, and would stop the release."""
    rules = stated_for(name, {"exact_contributions": r})
    rules["protect"]["k"] = k

    frame = visits([r] * 12, seed).with_columns(zone=0)
    release = shoal.protect(frame, rules, noise=SeededNoise(seed))

    (check,) = [check for check in release.checks if check.guarantee.name == "k-anonymity"]
    assert check.guarantee.k == -(-k // r)
    assert check.holds


def test_a_person_with_several_rows_gets_no_stochastic_closeness():
    """Several values are drawn for each; the proof is about one."""
    several, one = (
        shoal.plan(stated_for("kanon-dp", {"exact_contributions": rows})) for rows in (2, 1)
    )

    assert any("stochastic" in str(claim.guarantee) for claim in one.claims)
    assert not any("stochastic" in str(claim.guarantee) for claim in several.claims)
    assert any("several values are drawn for a person" in text for text in several.not_claimed)
    rules = stated_for("kanon-dp", {"exact_contributions": 2})
    rules["protect"] |= {"t": 3}
    del rules["protect"]["epsilon"]
    with pytest.raises(InputError, match=r"a person has 2 rows\. State epsilon in place of t"):
        shoal.plan(rules)


@pytest.mark.parametrize("name", DRAWN)
def test_the_number_of_rows_that_come_out_is_the_noisy_one(name):
    sizes = [2] * 30
    rules = policy(name, {"max_contributions": 2}, neighbours="add-remove", epsilon=2)

    heights = {shoal.protect(visits(sizes), rules, noise=SeededNoise(s)).data.height
               for s in range(12)}  # fmt: skip

    assert len(heights) > 6
    assert min(heights) >= 1


def test_a_required_epsilon_is_one_for_persons():
    rules = policy("auto", {"max_contributions": 3}) | {"require": {"differential-privacy": 1}}

    assert shoal.plan(rules).required[0].rows == 3
    half = policy("auto", {"max_contributions": 3}, neighbours="add-remove", epsilon=0.5)
    shoal.plan(half | {"require": {"differential-privacy": 1}})


# Refusals.


@pytest.mark.parametrize("rows", ["max_contributions", "exact_contributions"])
@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if REGISTRY[name].noisy))
def test_methods_without_a_proof_refuse_several_rows_before_any_data_is_read(name, rows):
    stated = stated_for(name, {rows: 2})
    proof = REGISTRY[name].promises.contributions
    assert proof is not ContributionProof.NONE
    if proof is ContributionProof.ANY or rows == "exact_contributions":
        shoal.plan(stated)
    else:
        with pytest.raises(InputError, match="a person may have 2 rows, but"):
            shoal.plan(stated)


def test_a_method_that_keeps_rows_wants_to_know_their_number():
    shoal.plan(policy("laplace", {"exact_contributions": 2}))
    with pytest.raises(
        InputError, match="State exact_contributions instead of max_contributions, or use auto"
    ):
        shoal.plan(policy("laplace", {"max_contributions": 2}))


KEPT = {"x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10]}}
ILL = {"ill": {"role": "confidential", "kind": "nominal", "categories": LEVELS}}
ZONE = {"zone": {"role": "other", "kind": "numeric", "public": True}}


@pytest.mark.parametrize(
    ("name", "form", "beside", "shown"),
    [
        ("laplace", "row-aligned", {}, "the rows in their original order"),
        ("laplace", "linked-shuffled", ZONE, "'zone' unchanged"),
        ("public-laplace", "row-aligned", ZONE, "'zone' unchanged"),
        ("kanon-dp", "linked-shuffled", ILL, "'x' unchanged"),
        ("pram", "linked-shuffled", ILL, "'x' unchanged"),
    ],
)
def test_a_release_that_shows_which_row_of_a_person_stayed_is_refused(name, form, beside, shown):
    """Which one does follows from protected cells, whatever epsilon is: see the next test."""
    extra = {} if name == "laplace" else {"k": 2}

    def stated(**person):
        unit = {"person": {"role": "identifier", "privacy_unit": True, **person}}
        protect = {"method": name, "epsilon": 1, "release_form": form, **extra}
        return {"version": 1, "columns": {**unit, **KEPT, **beside}, "protect": protect}

    shoal.plan(stated())
    with pytest.raises(InputError, match=f"one is kept, which depends on protected cells.*{shown}"):
        shoal.plan(stated(max_contributions=1))


def test_which_row_stays_depends_on_how_many_of_them_are_equal():
    """Why the above is refused. Chances 1/2 and 1/21; false alarms below 1e-9 by Hoeffding."""
    unit = pl.Series([0] * 21)

    def last_stays(x):
        table = Table(pl.DataFrame({"x": x, "zone": [1] * 20 + [2]}), None, {})
        persons = Persons("person", 1, True, dropped=True)
        kept = [at_most(table, unit, persons, key=key) for key in range(1, 401)]
        return np.mean([rows[0] == 20 for rows in kept])

    assert last_stays([5] * 21) > 0.3
    assert last_stays(list(np.arange(21) / 3)) < 0.24


def test_a_table_without_public_columns_or_order_may_leave_rows_out():
    stated = policy("laplace", {"max_contributions": 1}, release_form="linked-shuffled")

    assert shoal.plan(stated).claims


class Fixed(SeededNoise):
    """Uniform numbers that are known: a list of priorities, and a list for each column."""

    def __init__(self, priorities, streams):
        super().__init__(0)
        self.priorities, self.streams = priorities, iter(streams)

    def _uniform(self, below, size):
        if below == 1 << 62:
            return np.array(self.priorities[:size])
        return next(self.streams)[:size]


@given(
    n=st.integers(2, 30), gone=st.integers(0, 29), total=st.integers(1, 40), seed=st.integers(0, 99)
)
@settings(max_examples=80)
def test_a_record_that_goes_changes_one_record_that_the_mechanism_sees(n, gone, total, seed):
    """For given priorities and records of the domain, as the proof has it."""
    attributes = [Domain("a", Kind.NUMERIC, 1000), Domain("b", Kind.NOMINAL, 3)]
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, a.size, n) for a in attributes]
    priorities = rng.integers(0, 20, n)  # equal ones too
    streams = [rng.integers(0, a.size, 40) for a in attributes]
    rest = np.delete(np.arange(n), gone % n)

    whole = fit_rows(codes, attributes, total=total, noise=Fixed(priorities, streams))
    less = fit_rows([c[rest] for c in codes], attributes, total=total,
                  noise=Fixed(priorities[rest], streams))  # fmt: skip

    one, other = (Counter(zip(*made, strict=True)) for made in (whole, less))
    assert (one - other).total() <= 1


def test_rows_of_nobody_and_other_numbers_of_rows_are_errors_without_a_cell():
    frame = visits([2, 2, 3])

    with pytest.raises(InputError, match="1 of 3 has another number"):
        shoal.protect(frame, policy("auto", {"exact_contributions": 2}))
    with pytest.raises(InputError, match="4 more rows than persons"):
        shoal.protect(frame, policy("auto"))
    lost = frame.with_columns(person=pl.when(pl.col("person") == 1).then(None).otherwise("person"))
    with pytest.raises(InputError, match="'person' numbers the persons, but 2 rows lack it"):
        shoal.protect(lost, policy("auto", {"exact_contributions": 2}))


def test_rows_of_nobody_are_rows_of_one_person():
    """A refusal, or a person for each, would show that somebody's cell is missing."""
    frame = visits([2, 2, 3])
    lost = frame.with_columns(person=pl.when(pl.col("person") < 2).then(None).otherwise("person"))
    named = lost.with_columns(pl.col("person").fill_null(9))

    released = [
        shoal.protect(each, policy("auto", {"max_contributions": 2}), noise=SeededNoise(1)).data
        for each in (lost, named)
    ]

    assert released[0].equals(released[1])


@pytest.mark.parametrize(
    ("person", "sentence"),
    [
        (
            {"max_contributions": 2, "exact_contributions": 2},
            "expected 'max_contributions' or 'exact_contributions', found both",
        ),
        ({"max_contributions": 0}, "greater than or equal to 1"),
        ({"max_contributions": 2, "privacy_unit": False}, "only beside 'privacy_unit = true'"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(person, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy("auto", person))


def test_a_noisy_number_of_millions_is_refused():
    with pytest.raises(InputError, match="may run to millions"):
        shoal.plan(policy("maxent", {"max_contributions": 10}, epsilon=0.0005))


# Audits.


def numbers(n, rows, noise):
    """The noisy number of n rows where a person is said to have so many, run by run."""
    price = Price(Fraction(3) / rows, Neighbours.ADD_REMOVE)

    def sample(runs):
        found = [measure_total(n, price=price, noise=noise)[0].estimate for _ in range(runs)]
        return np.array(found, float)

    return sample


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "broken"), [(3, False), (1, True)])
def test_an_audit_sees_whether_the_number_of_rows_is_paid_for(rows, broken):
    """A person comes with three rows. False alarms: below 1e-7, the confidence of the bound.

    The fault forgets that a person has several, and scales the noise to a single row.
    """
    bound = lower_bound(
        numbers(6, rows, SeededNoise(1)), numbers(9, rows, SeededNoise(2)),
        scores={"rows": lambda found: found}, trials=6000, confidence=SURE,
    )  # fmt: skip

    assert bound.exceeds(3.0) is broken


def test_claims_say_person_in_the_manifest():
    release = shoal.protect(visits([1, 2, 2]), policy("auto", {"max_contributions": 2}))

    (claim,) = release.manifest.claims
    assert claim.guarantee["privacy_unit"] == "person"
    assert claim.guarantee["rows"] == 2
    assert claim.guarantee["invariants"] == ["the number of persons"]
    assert isinstance(release.claims[0].guarantee, DifferentialPrivacy)


# The theorem, by enumeration.


def law(zeros, ones, total, scale, answers):
    """Of a noisy count of ones among `total` records, that a table was brought to."""
    n = zeros + ones
    if n >= total:
        hits = np.arange(total + 1)
        shares = hypergeom(n, ones, total).pmf(hits)
    else:
        hits = ones + np.arange(total - n + 1)
        shares = binom(total - n, 0.5).pmf(np.arange(total - n + 1))
    noise = np.exp(-np.abs(answers[:, None] - hits) / scale)
    return (noise @ shares) * (1 - np.exp(-1 / scale)) / (1 + np.exp(-1 / scale))


@pytest.mark.parametrize("r", [1, 2, 3])
def test_whoever_comes_goes_or_changes_costs_no_more_than_r_times_a_changed_record(r):
    """For every small table, every number that was measured, and every answer: the exact law."""
    e = 0.7
    answers = np.arange(-15, 25)
    tables = [(a, b) for a in range(6) for b in range(6)]
    laws = {(table, total): np.log(law(*table, total, 1 / e, answers))
            for table in tables for total in range(1, 9)}  # fmt: skip

    worst = 0.0
    for zeros, ones in tables:
        for more_zeros in range(r + 1):
            for more_ones in range(r + 1 - more_zeros):
                for own in range(r + 1):  # the other table has so many zeros in their place
                    first, second = (zeros + more_zeros, ones + more_ones), (zeros + own, ones)
                    if first not in tables or second not in tables:
                        continue
                    for total in range(1, 9):
                        apart = laws[first, total] - laws[second, total]
                        worst = max(worst, float(np.abs(apart).max()))

    assert worst <= r * e * (1 + 1e-9)
    assert worst > 0.9 * r * e


@given(st.permutations(range(8)), st.integers(1, 8))
def test_who_is_left_out_follows_the_priorities_of_the_noise(priorities, total):
    """Not the order of the file, which somebody may know."""
    attributes = [Domain("a", Kind.NUMERIC, 8)]

    (kept,) = fit_rows([np.arange(8)], attributes, total=total, noise=Fixed(priorities, [[]]))

    assert {priorities[int(row)] for row in kept} == set(range(total))

"""What methods would promise for a policy, before any data is read."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from shoal import policy, sample
from shoal.core import Status
from shoal.evaluation.comparison.grid import Candidate
from shoal.methods import REGISTRY
from shoal.pipeline import planning
from shoal.pipeline.plan_notes import SeenColumn, SeenTable


def of_sample(**changes):
    found = policy.load(sample.folder() / "people.toml")
    return Candidate(changes.pop("method"), changes).apply(found) if changes else found


def test_every_method_is_offered_once_with_claims_or_a_reason():
    offers = planning.offers(of_sample())

    assert [offer.method.name for offer in offers] == list(REGISTRY)
    for offer in offers:
        silent = offer.method.promises.claims_nothing
        assert bool(offer.claims) is not bool(offer.refused or silent), offer
        assert offer.refused or offer.cost


def test_the_policy_s_own_method_is_offered_as_it_is_set_up():
    own = of_sample(method="mdav", k=7)
    offer = next(one for one in planning.offers(own) if one.method.name == "mdav")
    other = next(one for one in planning.offers(own) if one.method.name == "mondrian")

    assert offer.claims == planning.plan(own).claims
    assert offer.proved
    assert not offer.unmet
    assert other.parameters["k"] == 7


def test_an_offer_says_why_it_misses_what_is_required():
    offer = next(o for o in planning.offers(of_sample()) if o.method.name == "individual-ranking")

    assert not offer.proved
    assert "requires 5-anonymity" in offer.unmet


COLUMNS = {
    "name": "identifier",
    "code": "other",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
    "ill": {"role": "confidential", "kind": "nominal", "categories": ["a", "b", "c"]},
}


def small(require=(), *, without=("code",), **protect):
    columns = {name: one for name, one in COLUMNS.items() if name not in without}
    protect = protect or {"method": "mdav", "k": 5}
    return policy.load({"version": 1, "one_row_per_person": True, "columns": columns,
                        "protect": protect, "require": dict(require)})  # fmt: skip


def seen(rows=100, *, ill=3, code=0.5, values=("a", "b")):
    return SeenTable(rows, {"age": SeenColumn(70, 0.1), "ill": SeenColumn(ill, 0.0, values),
                            "code": SeenColumn(rows, code)})  # fmt: skip


DIVERSE = {"l-diversity": {"l": 2, "column": "ill"}}
CLOSE = {"t-closeness": {"t": Decimal("0.3"), "column": "ill"}}
FITS = {
    "nothing is in the way": (small(), seen(), "mdav", "fits", ""),
    "a method that does not steer": (small(DIVERSE), seen(), "mdav", "may fail", "finished table"),
    "one that does": (small(DIVERSE), seen(), "mondrian", "fits", ""),
    "one that does, unseen": (small(DIVERSE), None, "mondrian", "may fail", "no grouping meets"),
    "a kind of diversity": (
        small({"l-diversity": {"l": 2, "kind": "entropy", "column": "ill"}}), seen(), "mondrian",
        "may fail", "no grouping meets"),
    "close to itself": (small(CLOSE), seen(), "mondrian", "fits", ""),
    "not close": (small(CLOSE), seen(), "mdav", "may fail", "finished table"),
    "fewer values seen": (small(DIVERSE), seen(ill=1), "mondrian", "cannot", "the table has 1"),
    "fewer values stated": (
        small({"l-diversity": {"l": 4, "column": "ill"}}), None, "mondrian", "cannot",
        "the policy states 3"),
    "too few rows": (small(), seen(4), "mdav", "cannot", "one group of k=5"),
    "rows for one group": (small(), seen(9), "mdav", "may fail", "become constant"),
    "unknown cells": (small(), seen(values=("a", "x")), "mdav", "may fail", "cells of 'ill'"),
    "unique codes": (
        small(without=()), seen(code=1.0), "mdav", "cannot", "Give it the role identifier"),
    # What was seen of the table never reaches a method with an epsilon.
    "an epsilon": (
        small(method="laplace", epsilon=1), seen(9, ill=1, values=("x",)), "laplace", "fits", ""),
    "an epsilon and a check": (
        small(DIVERSE, method="laplace", epsilon=1), seen(ill=1), "laplace", "may fail", "spent"),
}  # fmt: skip


@pytest.mark.parametrize("case", FITS)
def test_a_card_says_fits_may_fail_or_cannot_and_why(case):
    stated, table, name, fit, why = FITS[case]
    offer = planning.offer(stated, REGISTRY[name], table)

    assert (offer.fit, offer.refused) == (fit, "")
    assert why in " ".join([offer.unmet, *offer.doubts])
    assert not any(cell in " ".join(offer.doubts) for cell in ("'x'", '"x"'))


def test_rows_that_are_not_public_are_not_used_for_what_an_epsilon_method_gives():
    added = planning.plan(small(method="maxent", epsilon=1, neighbours="add-remove"))
    changed = planning.plan(small(method="maxent", epsilon=1))

    assert planning.foreseen_rows(added, 100) is added
    assert planning.foreseen_rows(changed, 100).expected


def test_an_offer_costs_what_the_budget_is_charged():
    mapping = {
        "version": 1,
        "columns": {"age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]}},
        "protect": {"method": "laplace", "epsilon": 0.5},
    }
    stated = policy.load(mapping)
    offers = {one.method.name: one for one in planning.offers(stated)}

    charged = planning.price(stated, offers["laplace"].claims)
    assert charged is not None
    assert charged.epsilon == Fraction(1, 2)
    assert offers["laplace"].cost == "Costs epsilon 0.5."
    assert planning.price(stated, offers["mdav"].claims) is None
    assert offers["mdav"].cost == planning.UNBOUNDED


def test_a_price_covers_every_column_that_is_released():
    """A column that leaves without noise is bounded by no epsilon, unless everybody knows it."""
    mapping = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "ill": {"role": "confidential", "kind": "nominal", "categories": ["y", "n"]},
        },
        "protect": {"method": "kanon-dp", "epsilon": 1, "k": 5},
    }
    beside = policy.load(mapping)
    mapping["columns"]["age"]["public"] = True
    known = policy.load(mapping)

    assert planning.price(beside, planning.plan(beside).claims) is None
    assert planning.price(known, planning.plan(known).claims).epsilon == 1


def test_no_claim_but_a_proved_one_meets_a_requirement():
    stated = of_sample(method="mdav", k=5)
    (claim,) = planning.plan(stated).claims

    assert planning.covers(claim, claim.guarantee)
    for status in set(Status) - {Status.PROVED}:
        assert not planning.covers(replace(claim, status=status), claim.guarantee)

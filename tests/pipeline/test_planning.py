"""What methods would promise for a policy, before any data is read."""

from dataclasses import replace
from fractions import Fraction

from shoal import policy, sample
from shoal.core import Status
from shoal.evaluation.comparison.grid import Candidate
from shoal.methods import REGISTRY
from shoal.pipeline import planning


def of_sample(**changes):
    found = policy.load(sample.folder() / "people.toml")
    return Candidate(changes.pop("method"), changes).applied(found) if changes else found


def test_every_method_is_offered_once_with_claims_or_a_reason():
    offers = planning.offers(of_sample())

    assert [offer.method.name for offer in offers] == list(REGISTRY)
    for offer in offers:
        assert bool(offer.claims) is not bool(offer.refused), offer
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

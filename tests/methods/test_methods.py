"""What single methods do beyond the contract that all share."""

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core import Column, Hierarchy, Kind, Role, Schema
from shoal.errors import InputError
from shoal.io import validate
from shoal.methods import REGISTRY
from shoal.methods.grouping.microaggregation import ranks

RNG = np.random.default_rng(7)


def policy(**protect):
    return {
        "version": 1,
        "columns": {
            "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-10, 10]},
            "y": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-10, 10]},
            "c": {"role": "quasi-identifier", "kind": "nominal", "categories": ["a", "b"]},
        },
        "protect": {"k": 5, **protect},
    }


def table(n):
    return pl.DataFrame(
        {
            "x": RNG.normal(size=n),
            "y": RNG.normal(size=n),
            "c": RNG.choice(["a", "b"], size=n).tolist(),
        }
    )


@pytest.mark.parametrize("method", ["mdav", "vmdav"])
@pytest.mark.parametrize("blocks", ["median", "c"])
def test_blocks_keep_k_and_never_mix_categories(method, blocks):
    original = table(20_400)

    released = shoal.protect(original, policy(method=method, blocks=blocks), keep_order=True)

    assert released.checks[0].achieved >= 5
    if blocks == "c":
        assert released.data["c"].equals(original["c"])


def test_stable_on_one_table_is_mdav():
    original = table(300)

    stable, mdav = (
        shoal.protect(original, policy(method=method), keep_order=True).data
        for method in ("stable", "mdav")
    )

    assert stable.equals(mdav)


@pytest.mark.parametrize("blocks", ["z", "x"])
def test_blocks_by_what_is_no_protected_category_stop_at_planning(blocks):
    with pytest.raises(InputError, match="blocks: expected"):
        shoal.plan(policy(method="mdav", blocks=blocks))


@pytest.mark.parametrize("order", ["reference", "lexicographic", "hilbert", "corners"])
def test_insensitive_takes_four_orders_and_needs_public_scales(order):
    assert shoal.protect(table(60), policy(method="insensitive", order=order)).checks[0].holds

    bare = policy(method="insensitive", order=order)
    del bare["columns"]["x"]["bounds"]
    with pytest.raises(InputError, match="'x': expected bounds"):
        shoal.plan(bare)

    undeclared = policy(method="insensitive", order=order)
    del undeclared["columns"]["c"]["categories"]
    with pytest.raises(InputError, match="'c': expected categories"):
        shoal.plan(undeclared)


def test_a_wrong_choice_names_the_choices():
    with pytest.raises(InputError, match="expected one of reference, lexicographic, hilbert"):
        shoal.plan(policy(method="insensitive", order="hilbrt"))


def test_nominals_with_a_hierarchy_are_ranked_from_central_to_marginal():
    tree = Hierarchy((("far", "x", "y", "all"), ("near", "p", "all"), ("mid", "p", "all")))
    column = Column("c", Role.QUASI_IDENTIFIER, Kind.NOMINAL, hierarchy=tree)
    cells = ["near"] * 4 + ["mid", "far", None]
    adopted = validate.validate(pl.DataFrame({"c": cells}), Schema((column,)))

    assert ranks(adopted, "c").tolist() == [0, 0, 0, 0, 1, 2, 3]


def test_changing_one_record_changes_no_other_row_of_the_public_matrix():
    """The seam where the proof of an order would break: a scale read off the data."""
    schema = shoal.load_policy(policy(method="insensitive")).schema
    original = table(50)
    changed = original.clone()
    changed[7, "x"], changed[7, "c"] = 10.0, "b"

    one, other = (
        validate.validate(f, schema).unit_matrix(["x", "y", "c"]) for f in (original, changed)
    )

    assert np.flatnonzero((one != other).any(axis=1)).tolist() == [7]


@pytest.mark.parametrize("method", ["insensitive", "insensitive-laplace"])
def test_an_order_for_each_group_is_refused_where_rows_lie_in_blocks(method):
    epsilon = {"epsilon": 1} if method.endswith("laplace") else {}
    rules = policy(method=method, order="corners", **epsilon)

    assert shoal.plan(rules)
    with pytest.raises(InputError, match="order: expected reference, lexicographic or hilbert on"):
        shoal.plan(rules, distributed=True)


@pytest.mark.parametrize("name", REGISTRY)
def test_what_a_page_asks_of_a_parameter_stands_with_the_parameter(name):
    for field in REGISTRY[name].parameters.model_fields.values():
        assert field.title
        assert field.description

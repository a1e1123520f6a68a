"""Grids: the default for a schema, and those from a file."""

from decimal import Decimal

import pytest

from shoal import policy as policies
from shoal.core import ReleaseForm
from shoal.errors import InputError
from shoal.evaluation.comparison import grid
from shoal.evaluation.comparison.grid import Candidate
from shoal.methods import REGISTRY, TO_START_WITH


@pytest.mark.parametrize(("published", "methods"), [(False, TO_START_WITH), (True, REGISTRY)])
def test_the_default_grid_starts_with_the_policy(policy, published, methods):
    """It has the methods to start with, or every method."""
    own = {"method": "vmdav", "k": 3}
    stated = policies.load({**policy, "protect": own})

    found = grid.default(stated, published=published)

    assert found[0] == Candidate("vmdav", {"k": 3})
    assert {candidate.method for candidate in found} == {"vmdav", *methods}
    assert len({candidate.label for candidate in found}) == len(found)


def test_alternatives_are_combined_and_a_list_is_always_alternatives():
    found = grid.of(
        {
            "candidate": [
                {"method": "mdav", "k": [3, 5], "columns": [["age"], ["age", "income"]]},
                {"method": "laplace", "epsilon": [Decimal("0.5"), 1]},
            ]
        }
    )

    assert [candidate.label for candidate in found] == [
        "mdav k=3 columns=age",
        "mdav k=3 columns=age+income",
        "mdav k=5 columns=age",
        "mdav k=5 columns=age+income",
        "laplace epsilon=0.5",
        "laplace epsilon=1",
    ]


def test_a_candidate_replaces_protect_and_drops_the_budget_file(policy):
    stated = policies.load({**policy, "budget": {"file": "budget.sqlite", "source": "people"}})
    candidate = Candidate(
        "ir-laplace", {"epsilon": 1, "k": 5}, ("age",), ReleaseForm.COLUMN_SHUFFLED
    )

    applied = candidate.apply(stated)

    assert applied.budget is None
    assert applied.document["protect"] == {
        "method": "ir-laplace",
        "columns": ["age"],
        "release_form": "column-shuffled",
        "epsilon": 1,
        "k": 5,
    }
    assert applied.digest != stated.digest
    assert Candidate("mdav", {"k": 3}).apply(stated).digest == stated.digest


def test_a_candidate_may_state_what_it_requires(policy):
    stated = policies.load({**policy, "require": {"k-anonymity": 2}})
    wanted = [{"k-anonymity": k, "differential-privacy": 1} for k in (4, 8)]
    found = grid.of({"candidate": [{"method": "mdav", "k": 3, "require": wanted}]})

    applied = [one.apply(stated) for one in found]

    assert [one.label for one in found] == [
        f"mdav k=3 k-anonymity={k} differential-privacy=1" for k in (4, 8)
    ]
    assert [one.document["require"] for one in applied] == wanted
    assert [[g.name for g in one.required] for one in applied] == [
        ["k-anonymity", "differential-privacy"]
    ] * 2
    assert [one.required[0].k for one in applied] == [4, 8]
    assert len({one.digest for one in applied}) == 2
    beside = Candidate("mdav", {"k": 3}, require={"differential-privacy": 1}).apply(stated)
    assert [one.required[0].k for one in (beside, Candidate("mdav", {"k": 3}).apply(stated))] == [
        2,
        2,
    ]
    with pytest.raises(InputError, match="k-anonymity"):
        Candidate("mdav", {"k": 3}, require={"k-anonymity": "many"}).apply(stated)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[candidate]]\nmethod = "mdav"\nrequire = 3', "expected require in the form"),
        ("k = 3", "expected a list of"),
        ("[[candidate]]\nk = 3", "candidate 1: expected the name of a method"),
        ('[[candidate]]\nmethod = "mdaw"', "Did you mean 'mdav'"),
        ('[[candidate]]\nmethod = "mdav"\nk = []', "at least one alternative"),
        ('[[candidate]]\nmethod = "mdav"\ncolumns = ["age"]', "a list means alternatives"),
        ('[[candidate]]\nmethod = "mdav"\nrelease_form = "tidy"', "no release form 'tidy'"),
        ("[[candidate", "not valid TOML"),
    ],
)
def test_a_grid_of_another_shape_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "grid.toml"
    path.write_text(text)

    with pytest.raises(InputError, match=message):
        grid.read(path)


def test_the_default_grid_of_two_secrets_tells_trees_which_one_to_count(policy):
    columns = {**policy["columns"], "ill": {"role": "confidential", "kind": "nominal",
                                            "categories": ["yes", "no"]}}  # fmt: skip
    stated = policies.load({**policy, "columns": columns})

    trees = [one for one in grid.default(stated, published=True) if one.method == "dp-quadtree"]

    assert trees
    assert all(tree.parameters["count"] == "ill" for tree in trees)

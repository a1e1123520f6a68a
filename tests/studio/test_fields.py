"""Fields of forms: every parameter of every method can be asked for and read back."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

from shoal.methods import REGISTRY
from shoal.policy import load
from shoal.policy.spec import RequireSpec
from shoal.studio.pages import fields, protect_fields

POLICY = load(
    {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
            "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["m", "f"]},
            "ill": {"role": "confidential", "kind": "nominal", "categories": ["yes", "no"]},
            "job": {"role": "confidential", "kind": "nominal", "categories": ["a", "b", "c"]},
        },
        "protect": {"method": "mdav", "k": 5},
    }
)


@pytest.mark.parametrize("method", REGISTRY.values(), ids=list(REGISTRY))
def test_a_method_s_example_is_shown_and_read_back_the_same(method):
    stated = {**method.example.parameters, "columns": ["a"]}
    asked = protect_fields.parameters(method, stated, POLICY)
    given = {one["name"]: one["value"] for one in asked}
    read = protect_fields.read_parameters(method, given, stated)

    assert read == stated
    method.parameters.model_validate(method.example.parameters)
    names = {one["name"].partition(".")[0] for one in asked}
    assert names - {"release_form"} == set(method.parameters.model_fields)
    for one in asked:  # in words, with nothing of the policy's syntax
        assert one["words"]
        assert one["title"].partition(" (")[0].partition(":")[0] != one["name"]
        assert not set("[]{}_") & set(one["title"] + one["default"])


def test_levels_and_widths_have_a_field_for_each_column_and_columns_are_picked():
    full, tree = REGISTRY["full-domain"], REGISTRY["dp-kdtree"]
    stated = {
        "k": 5,
        "levels": {"age": [1, 2]},
        "intervals": {"age": [5, 10]},
        "weights": {"sex": 2},
    }

    asked = {one["name"]: one for one in protect_fields.parameters(full, stated, POLICY)}
    given = {name: one["value"] for name, one in asked.items()}
    counted = {one["name"]: one for one in protect_fields.parameters(tree, {}, POLICY)}

    assert asked["levels.age"]["value"] == "1, 2"
    assert protect_fields.read_parameters(full, given, {}) == stated
    assert counted["count"]["choices"] == [("ill", "ill"), ("job", "job")]


def test_sets_of_columns_are_numbered_and_their_prices_listed():
    """Algorithm 2 of soriacomas2017; and sets of local suppression, which overlap."""
    stated = {
        "mdav-laplace": {"epsilon": 1, "k": 5, "groups": [["age", "sex"], ["job"], ["ill"]],
                         "epsilons": [Decimal("0.4"), Decimal("0.5"), Decimal("0.1")]},
        "local-suppression": {"k": 5, "sets": [["age", "sex"], ["sex"]]},
    }  # fmt: skip
    for name, parameters in stated.items():
        method = REGISTRY[name]
        asked = {
            one["name"]: one["value"]
            for one in protect_fields.parameters(method, parameters, POLICY)
        }

        assert protect_fields.read_parameters(method, asked, {}) == parameters
    assert asked["sets.sex"] == "1, 2"
    typed = {"groups.age": "one", "groups.sex": "2"}
    assert protect_fields.read_parameters(REGISTRY["mdav-laplace"], typed, {}) == {"groups": "one"}


def test_what_is_no_number_is_handed_on_for_the_policy_to_refuse():
    typed = {"k": "many", "integers": "perhaps"}
    read = protect_fields.read_parameters(REGISTRY["mdav"], typed, {})

    assert read == {"k": "many", "integers": "perhaps"}


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (
            {"role": "identifier", "kind": "numeric", "privacy_unit": "yes"},
            {"role": "identifier", "privacy_unit": True},
        ),
        (
            {"role": "confidential", "kind": "numeric", "low": "0", "high": "1.50"},
            {"role": "confidential", "kind": "numeric", "bounds": [0, Decimal("1.50")]},
        ),
        (
            {"role": "other", "kind": "date", "low": "1900-01-01", "high": "2025-12-31"},
            {"role": "other", "kind": "date", "bounds": [date(1900, 1, 1), date(2025, 12, 31)]},
        ),
        (
            {
                "role": "other",
                "kind": "ordinal",
                "categories": "low\r\n\r\nhigh\n",
                "missing": "-9, x",
            },
            {
                "role": "other",
                "kind": "ordinal",
                "categories": ["low", "high"],
                "missing": ["-9", "x"],
            },
        ),
        (
            {"role": "identifier", "privacy_unit": "yes", "max_contributions": "5"},
            {"role": "identifier", "privacy_unit": True, "max_contributions": 5},
        ),
        ({"role": "identifier", "max_contributions": "5"}, {"role": "identifier"}),
    ],
)
def test_a_column_s_form_states_its_keys(form, found):
    assert fields.read_column(form, {}) == found


@given(st.lists(st.sampled_from(["a", "b", "c", " a", "b ", "A", ""]), min_size=1, max_size=5))
@example(["a", "b "])
@example(["b", "a"])
def test_copied_categories_stay_observed_however_they_are_edited_until_the_tick(lines):
    before = {"role": "other", "kind": "nominal", "categories": ["a", "b"], "observed": True}
    form = {"role": "other", "kind": "nominal", "categories": "\n".join(lines)}

    for found in (form, {**form, "stated": ""}):
        read = fields.read_column(found, before)
        assert ("observed" in read) == ("categories" in read)
    assert "observed" not in fields.read_column({**form, "stated": "yes"}, before)


def test_taking_the_tick_away_marks_the_categories_as_observed_again():
    before = {"role": "other", "kind": "nominal", "categories": ["a", "b"]}
    form = {"role": "other", "kind": "nominal", "categories": "a\nb"}

    assert fields.read_column({**form, "stated": ""}, before)["observed"] is True
    assert "observed" not in fields.read_column(form, before)


def test_keys_that_no_field_shows_stay_when_a_card_is_kept():
    before = {"role": "identifier", "privacy_unit": True, "exact_contributions": 5}

    assert fields.read_column({"role": "identifier", "privacy_unit": "yes"}, before) == before
    assert fields.read_column({"role": "identifier"}, before) == {"role": "identifier"}
    numeric = {"role": "confidential", "kind": "numeric", "keep_missing": True}
    assert fields.read_column({"role": "confidential", "kind": "numeric"}, numeric) == numeric
    coded = {"role": "other", "kind": "numeric", "label": "Sex", "value_labels": {"1": "male"}}
    assert fields.read_column({"role": "other", "kind": "numeric"}, coded) == coded


def test_a_hierarchy_and_a_recoding_stay_though_no_field_shows_them():
    before = {"role": "other", "kind": "nominal", "hierarchy": "t.csv", "recode": "r.csv"}

    found = fields.read_column({"role": "confidential", "kind": "nominal"}, before)

    assert found == {**before, "role": "confidential"}


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"k-anonymity": 5, "differential-privacy": Decimal("0.5")},
        {"l-diversity": {"l": 2, "column": "ill"}},
        {
            "l-diversity": [
                {"l": 3, "kind": "recursive", "c": Decimal("0.5"), "column": ["ill", "job"]},
                {"l": 2, "kind": "entropy", "column": "job"},
            ],
            "t-closeness": {"t": Decimal("0.3"), "distance": "ordered", "column": "ill"},
            "stochastic-t-closeness": {"t": 3, "column": "job"},
        },
    ],
)
def test_requirements_of_every_kind_are_fields_and_are_read_back_the_same(stated):
    form = protect_fields.as_form(stated)
    asked = protect_fields.requirements(form, POLICY)
    sent = {
        field["name"]: field["value"]
        for one in asked
        for group in one["groups"]
        for field in group["fields"]
    }
    ticked = {
        column["name"]: "yes"
        for one in asked
        for group in one["groups"]
        for column in group["columns"]
        if column["ticked"]
    }

    assert protect_fields.read_requirements({**sent, **ticked}) == stated
    assert [one["key"] for one in asked if one["stated"]] == [
        key for key in protect_fields.REQUIREMENTS if key in stated
    ]
    assert {one["key"] for one in asked} == {
        field.alias or name for name, field in RequireSpec.model_fields.items()
    }


@pytest.mark.parametrize(
    ("stated", "key"),
    [
        ({"role": "quasi-identifier", "kind": "numeric", "bounds": "discover"}, "bounds"),
        ({"role": "quasi-identifier", "kind": "date", "bounds": "discover"}, "bounds"),
        ({"role": "confidential", "kind": "nominal", "categories": "discover"}, "categories"),
        ({"role": "confidential", "kind": "discover"}, "kind"),
    ],
)
def test_what_is_to_be_found_goes_through_a_form_unchanged(stated, key):
    given = fields.as_form(stated)

    assert fields.read_column(given, stated) == stated
    assert fields.is_open(stated) is (key != "kind")


def test_a_tick_leaves_limits_to_be_found_and_its_absence_asks_for_them():
    before = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 9]}
    given = fields.as_form(before) | {"discover": "yes"}
    ticked = fields.read_column(given, before)

    assert ticked["bounds"] == "discover"
    assert "bounds" not in fields.read_column(fields.as_form(ticked) | {"discover": ""}, ticked)


def test_totals_of_weights_are_read_and_written_by_the_page_and_leave_with_their_kind():
    totals = {"region": {"north": 120000, "south": 98000}}
    stated = {"role": "other", "kind": "numeric", "sampling_weight": True, "class_mean": True,
              "totals": totals}  # fmt: skip

    form = fields.as_form(stated)

    assert form["class_mean"] == "yes"
    assert fields.read_column(form, {}) == stated
    assert fields.read_column(form, stated) == stated
    shown = {field["key"]: field for field in fields.column_more("numeric", stated)}
    assert shown["class_mean"]["value"] is True
    assert "north = 120000" in shown["totals"]["value"]
    left = fields.read_column({**form, "kind": "nominal"}, stated)
    assert not {"sampling_weight", "class_mean", "totals"} & left.keys()

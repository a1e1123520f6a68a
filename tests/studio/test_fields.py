"""Fields of forms: every parameter of every method can be asked for and read back."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

from shoal.methods import REGISTRY
from shoal.policy.spec import RequireSpec
from shoal.studio.pages import fields


@pytest.mark.parametrize("method", REGISTRY.values(), ids=list(REGISTRY))
def test_a_method_s_example_is_shown_and_read_back_the_same(method):
    asked = fields.parameters(method, dict(method.example.parameters))
    given = {one["name"]: one["value"] for one in asked}
    read = fields.read_parameters(method, given)

    assert read == dict(method.example.parameters)
    method.parameters.model_validate(read)
    assert {one["name"] for one in asked} - {"release_form"} == set(method.parameters.model_fields)
    assert all(one["words"] for one in asked)


def test_what_is_no_number_is_handed_on_for_the_policy_to_refuse():
    read = fields.read_parameters(REGISTRY["mdav"], {"k": "many", "integers": "perhaps"})

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
    before = {"role": "identifier", "privacy_unit": True, "max_contributions": 5}

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


def test_requirements_are_shown_and_read_back_the_same():
    stated = {
        "k-anonymity": 5,
        "differential-privacy": Decimal("0.5"),
        "l-diversity": {"l": 2, "column": "ill"},
    }

    asked = fields.requirements(stated)

    assert fields.read_requirements({one["key"]: one["value"] for one in asked}) == stated
    assert {one["key"] for one in asked} == {
        field.alias for field in RequireSpec.model_fields.values()
    }

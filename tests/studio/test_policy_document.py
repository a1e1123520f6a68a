"""The policy as text and as fields."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import policy, sample
from shoal.errors import InputError
from shoal.studio import policy_document

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9)
leaves = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**62), 2**62),
    numbers,
    st.dates(min_value=date(1000, 1, 1)),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
sections = st.dictionaries(names, values, max_size=4)


@given(
    st.fixed_dictionaries(
        {"version": st.just(1)}, optional=dict.fromkeys(policy_document.SECTIONS, sections)
    )
)
def test_what_is_written_reads_back_as_the_same_values(content):
    assert policy_document.parse_toml(policy_document.write_toml(content)) == content


@given(st.dictionaries(names, st.just("identifier"), min_size=1, max_size=5))
def test_any_column_name_survives_the_way_from_text_to_fields_and_back(columns):
    again = policy_document.write_plain({"version": 1, "columns": columns})

    assert policy_document.parse_toml(again)["columns"] == columns


def test_the_sample_policy_means_the_same_after_a_change_of_fields_and_back():
    text = (sample.folder() / "people.toml").read_text("utf-8")
    before = policy_document.judge(text, folder=sample.folder())
    document = policy_document.parse_toml(text)
    changed, back = (
        policy_document.write_plain({**document, "protect": {"method": "mdav", "k": k}})
        for k in (7, 5)
    )

    assert policy_document.judge(changed, folder=sample.folder()).digest != before.digest
    assert policy_document.judge(back, folder=sample.folder()).digest == before.digest


def test_json_values_become_exact_numbers_and_days():
    changed = policy_document.write_plain(
        {
            "version": 1,
            "columns": {
                "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 0.1]},
                "born": {"role": "other", "kind": "date", "bounds": ["1900-01-01", "2020-12-31"]},
            },
        }
    )
    columns = policy_document.parse_toml(changed)["columns"]

    assert columns["income"]["bounds"] == [0, Decimal("0.1")]
    assert columns["born"]["bounds"] == [date(1900, 1, 1), date(2020, 12, 31)]
    assert policy.loads(changed + '\n[protect]\nmethod = "mdav"\nk = 2\n').schema["born"].bounds


def test_a_field_that_is_none_goes_and_a_section_too():
    columns = {"a": {"role": "other", "kind": "numeric", "bounds": None}}
    changed = policy_document.write_plain({"columns": columns, "require": None})

    assert policy_document.parse_toml(changed) == {
        "version": 1, "columns": {"a": {"role": "other", "kind": "numeric"}}
    }  # fmt: skip


@pytest.mark.parametrize(
    "line",
    ['hierarchy = "/etc/passwd"', 'hierarchy = "../region.csv"', 'recode = "a/b.csv"',
     "hierarchy = 3",
     'hierarchy = ".."', 'hierarchy = ""'],
)  # fmt: skip
def test_a_policy_may_name_files_of_its_workspace_alone(tmp_path, line):
    text = f"""
[columns]
a = {{ role = "quasi-identifier", kind = "nominal", {line} }}
[protect]
method = "mdav"
k = 2
"""
    with pytest.raises(InputError, match="plain name of a file"):
        policy_document.judge(text, folder=tmp_path)


def test_queries_may_not_name_a_file_elsewhere(tmp_path):
    text = (
        '[columns]\na = "other"\n[protect]\nmethod = "mdav"\n[evaluate]\nqueries = "/etc/passwd"\n'
    )

    with pytest.raises(InputError, match="plain name of a file"):
        policy_document.judge(text, folder=tmp_path)


def test_text_that_is_no_toml_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="not valid TOML"):
        policy_document.parse_toml("a = = b")
    with pytest.raises(InputError, match="not valid TOML"):
        policy_document.parse_toml("a = " + "[" * 5000)


def test_observed_categories_are_taken_out_and_stated_ones_stay():
    text = (
        '[columns]\na = { role = "other", kind = "nominal", categories = ["x"], observed = true }\n'
        'b = { role = "other", kind = "nominal", categories = ["y"] }\n'
    )
    columns = policy_document.parse_toml(policy_document.without_observed(text))["columns"]

    assert "categories" not in columns["a"]
    assert columns["b"]["categories"] == ["y"]


def test_a_section_that_is_none_goes_be_it_the_columns(tmp_path):
    protect = {"method": "mdav", "k": 5}
    changed = policy_document.write_plain({"version": 1, "columns": None, "protect": protect})

    assert "columns" not in policy_document.parse_toml(changed)
    with pytest.raises(InputError, match="expected a value for 'columns'"):
        policy_document.judge(changed, folder=tmp_path)

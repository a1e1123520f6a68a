"""Single lines of a policy's TOML: what is set is read back, and the rest stays as it stands."""

import tomllib
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

from shoal import policy, sample
from shoal.errors import InputError
from shoal.studio.pages import editing

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: "\x00" not in name)
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(10**9), 10**9),
        st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-999, max_value=999),
        st.dates(date(1900, 1, 1), date(2100, 1, 1)),
        st.text(max_size=12),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TEXT = """# A heading.
version = 1

[columns]
name   = "identifier"  # who it is
age    = { role = "other", kind = "numeric" }  # in years
wide = [
  "a",
  "b",
]

# How.
[protect]
method = "mdav"
k = 5
"""


def read(text):
    return tomllib.loads(text, parse_float=Decimal)


@given(NAMES, VALUES)
def test_a_key_that_is_set_is_read_back_and_nothing_else_changes(name, value):
    before = read(TEXT)
    text = editing.with_key(TEXT, "columns", name, value)
    after = read(text)

    assert after["columns"].pop(name) == value
    before["columns"].pop(name, None)
    assert after == before
    for line in ("# A heading.", "# How.", "# who it is"):
        assert line in text


@given(NAMES, VALUES, VALUES)
def test_setting_twice_is_setting_once(name, first, second):
    once = editing.with_key(TEXT, "columns", name, second)
    twice = editing.with_key(
        editing.with_key(TEXT, "columns", name, first), "columns", name, second
    )

    assert read(once) == read(twice)


@given(st.dictionaries(NAMES, VALUES.filter(lambda v: v is not None), max_size=4))
def test_a_table_gets_these_keys_and_no_others(values):
    text = editing.with_table(TEXT, "protect", values)

    assert read(text).get("protect", {}) == values
    assert read(text)["columns"] == read(TEXT)["columns"]


@given(NAMES)
def test_a_key_that_is_removed_is_gone(name):
    added = editing.with_key(TEXT, "context", name, "x")

    assert read(editing.with_key(added, "context", name, None)).get("context", {}) == {}


def test_a_line_keeps_its_alignment_and_its_remark():
    text = editing.with_key(TEXT, "columns", "age", {"role": "identifier"})

    assert 'age    = { role = "identifier" }  # in years' in text.split("\n")


def test_a_value_over_several_lines_is_replaced_whole():
    text = editing.with_key(TEXT, "columns", "wide", "other")

    assert 'wide = "other"\n\n# How.' in text


@pytest.mark.parametrize(
    "text",
    [
        'version = 1\n[columns.age]\nrole = "other"\n[columns.b]\nrole = "other"\n',
        'version = 1\ncolumns.age.role = "other"\ncolumns.b = "other"\n',
        'columns.age = "other"\nversion = 1\ncolumns.b = "other"\n',
    ],
)
def test_another_layout_is_folded_into_one_line(text):
    found = read(editing.with_key(text, "columns", "age", {"role": "identifier"}))

    assert found == {
        "version": 1,
        "columns": {"age": {"role": "identifier"}, "b": read(text)["columns"]["b"]},
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0, 110]", "[110, 0]"),
        ('kind = "nominal", categories = ["male"', 'kind = "noml", categories = ["male"'),
        ("k-anonymity = 5", "k-anonymity = 1"),
        ("[protect]\n", "[protect\n"),
        ("groups =", "group ="),
    ],
)
def test_an_error_leads_to_its_line(old, new):
    text = (sample.folder() / "people.toml").read_text()
    wrong = text.replace(old, new, 1)
    line = wrong[: wrong.index(new)].count("\n") + 1

    with pytest.raises(InputError) as raised:
        policy.loads(wrong, folder=sample.folder(), where="The policy")

    assert editing.line_of(wrong, raised.value) == line, raised.value


def test_a_line_above_all_tables_is_set_behind_the_version_and_taken_back():
    once = editing.with_line(TEXT, "one_row_per_person", value=True)

    assert read(once) == {**read(TEXT), "one_row_per_person": True}
    assert editing.with_line(once, "one_row_per_person", value=True) == once
    assert editing.with_line(once, "one_row_per_person", value=None) == TEXT

"""Metadata files describe a table: a data package or a codebook, read into a draft of a policy."""

import json
import tomllib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError
from shoal.io.metadata import Metadata, parse

NAMES = ["sex", "trust", "w"]
PACKAGE = {
    "resources": [
        {"name": "notes", "path": "notes.pdf"},
        {"name": "shops", "schema": {"fields": [{"name": "shop", "title": "Shop"}]}},
        {
            "name": "people",
            "schema": {
                "missingValues": ["", "-1"],
                "fields": [
                    {"name": "sex", "title": "Sex", "categories": [
                        {"value": 1, "label": "female"}, {"value": 2, "label": "male"}]},
                    {"name": "trust", "description": "Trust in others",
                     "enumLabels": {"1": "low", "2": "high"}, "enumOrdered": True,
                     "missingValues": ["", "-8", {"value": "-9", "label": "refused"}]},
                    {"name": "w", "weight": True},
                ],
            },
        },
    ]
}  # fmt: skip
CODEBOOK = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5"><dataDscr>
<var ID="V1" name="sex" nature="nominal"><labl>Sex</labl>
  <catgry><catValu>1</catValu><labl>female</labl></catgry>
  <catgry><catValu>2</catValu><labl>male</labl></catgry>
  <catgry missing="Y"><catValu>-1</catValu></catgry></var>
<var name="trust" nature="ordinal"><labl>Trust
   in others</labl><invalrng><item VALUE="-8"/></invalrng>
  <catgry><catValu>1</catValu><labl>low</labl></catgry>
  <catgry><catValu>2</catValu><labl>high</labl></catgry>
  <catgry missing="Y"><catValu>-9</catValu><labl>refused</labl></catgry></var>
<var name="w" wgt="wgt"><invalrng><item VALUE="-1"/></invalrng></var>
</dataDscr></codeBook>"""
EXPECTED = Metadata(
    names=NAMES,
    labels={"sex": "Sex", "trust": "Trust in others"},
    values={
        "sex": {"1": "female", "2": "male"},
        "trust": {"1": "low", "2": "high", "-9": "refused"},
        "w": {},
    },
    missing={"sex": ["-1"], "trust": ["-8", "-9"], "w": ["-1"]},
    measures={"sex": "nominal", "trust": "ordinal"},
    weights=["w"],
)
BOTH = {
    "package": json.dumps(PACKAGE).encode(),
    "codebook": CODEBOOK.encode(),
    "codebook without a namespace": CODEBOOK.replace(' xmlns="ddi:codebook:2_5"', "").encode(),
    "package after a mark": b"\xef\xbb\xbf " + json.dumps(PACKAGE).encode(),
    "codebook in another encoding": CODEBOOK.replace("UTF-8", "UTF-16").encode("utf-16"),
}


@pytest.mark.parametrize("content", BOTH.values(), ids=BOTH)
def test_both_forms_say_the_same_of_a_table(content):
    made = parse(content, NAMES, "The file")

    # Which missing code stands first differs: a codebook names them where their labels are.
    ordered = {name: sorted(codes) for name, codes in made.missing.items()}
    assert Metadata(**{**vars(made), "missing": ordered}) == EXPECTED


@pytest.fixture
def table():
    n = 200
    return pl.DataFrame(
        {
            "sex": [1 + i % 2 for i in range(n)],
            "trust": [(1, 2, 1, 2, -8, -9, 2, 1)[i % 8] for i in range(n)],
            "w": [50 + i / 8 for i in range(n)],
        }
    )


@pytest.mark.parametrize("name", ["package", "codebook"])
def test_a_draft_states_labels_and_missing_codes_of_the_metadata(tmp_path, table, name):
    (tmp_path / "about").write_bytes(BOTH[name])

    drafted = shoal.draft(table, metadata=tmp_path / "about")

    columns = tomllib.loads(drafted.text)["columns"]
    assert columns["sex"]["label"] == "Sex"
    assert columns["sex"]["value_labels"] == {"1": "female", "2": "male"}
    assert sorted(columns["trust"]["missing"]) == ["-8", "-9"]
    assert columns["trust"]["categories"] == ["1", "2"]
    assert columns["trust"]["value_labels"]["-9"] == "refused"
    assert "a sampling weight" in drafted.guesses["w"].reason
    assert "a sampling weight" not in shoal.draft(table.rename({"w": "v"})).guesses["v"].reason


ODD = {
    "neither": b"age,sex\n1,2\n",
    "empty": b"",
    "another object": b'{"a": 1}',
    "fields that are no list": b'{"fields": 7}',
    "a field without a name": b'{"fields": [{"title": "x"}]}',
    "a field that is a text": b'{"fields": ["sex"]}',
    "labels that are no table": b'{"fields": [{"name": "sex", "enumLabels": [1]}]}',
    "twice the same key": b'{"fields": [], "fields": []}',
    "deep": b'{"fields":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "another document": b"<html><var name='sex'/></html>",
    "no name": b"<codeBook><var/></codeBook>",
    "cut": CODEBOOK.encode()[:300],
    "entities": b'<!DOCTYPE codeBook [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    b'<codeBook><var name="sex"><labl>&b;</labl></var></codeBook>',
    "an outer file": b'<!DOCTYPE codeBook SYSTEM "file:///etc/passwd"><codeBook/>',
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_what_is_not_metadata_is_refused_in_a_sentence(content):
    with pytest.raises(InputError, match=r"^The file cannot be read: expected a Frictionless"):
        parse(content, NAMES, "The file")


def test_metadata_of_another_table_is_refused():
    with pytest.raises(InputError, match=r"describes 3 columns, none of them by a name of the ta"):
        parse(BOTH["codebook"], ["age"], "The file")


@given(st.sampled_from([BOTH["package"], BOTH["codebook"]]), st.data())
def test_a_damaged_file_is_read_or_refused(content, data):
    start = data.draw(st.integers(0, len(content)))
    more = data.draw(st.binary(max_size=6))
    damaged = content[:start] + more + content[start + data.draw(st.integers(0, 40)) :]
    try:
        made = parse(damaged, NAMES, "The file")
    except InputError:
        return
    assert all(isinstance(text, str) for text in made.labels.values())

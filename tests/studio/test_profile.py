"""The first look at a table."""

from datetime import date

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal import policy
from shoal.io.raw import Raw
from shoal.studio import profile

TABLE = pl.DataFrame(
    {
        "name": [f"person {i}" for i in range(200)],
        "age": [i % 7 for i in range(200)],
        "sex": ["m", "f"] * 100,
        "diagnosis": ["flu", None, None, None] * 50,
        "town": ["X"] * 200,
        "visited": [date(2020, 1, 1)] * 200,
        "cells": [[1, 2]] * 200,
        "income": [i + 0.5 if i < 150 else 7.5 for i in range(200)],
    }
)


def of(name, table=TABLE):
    found = profile.profile(Raw(table, column_labels={"age": "<b>Age</b>"}))
    return {column.name: column for column in found.columns}[name]


def test_types_missing_cells_and_uniqueness_are_counted():
    assert (of("age").type, of("age").distinct, of("age").label) == ("number", 7, "<b>Age</b>")
    assert (of("sex").type, of("sex").values) == ("text", ("f", "m"))
    assert (of("diagnosis").missing, of("diagnosis").distinct) == (150, 1)
    assert of("visited").type == "date"
    assert of("income").unique == 0.745
    assert (of("cells").type, of("cells").role) == ("other", "identifier")


def test_what_looks_odd_is_said_in_a_sentence():
    assert of("diagnosis").warnings == ("More than half of the column's cells are missing.",)
    assert of("town").warnings == ("The column has only one value.",)
    assert "single people out" in of("income").warnings[0]
    assert "identifier" in of("cells").warnings[0]
    small = profile.profile(Raw(TABLE.select("age", "sex").head(9)))
    assert any("9 rows" in text for text in small.warnings)
    assert any("confidential" in text for text in small.warnings)
    assert any("repeat" in text for text in profile.profile(Raw(TABLE.select("sex"))).warnings)


def test_what_is_returned_to_the_server_holds_no_cell(tmp_path):
    ordered = pl.Series("school", ["none", "primary", "secondary", "tertiary"] * 50)
    TABLE.drop("cells").with_columns(ordered).write_parquet(tmp_path / "a.parquet")
    found = profile.write(tmp_path / "a.parquet", label="<i>a</i>.parquet")
    seen = profile.read(tmp_path / "a.parquet")

    assert found["rows"] == seen.rows == 200
    assert not [cell for cell in ("person 1", "flu", '"m"', "primary") if cell in str(found)]
    assert seen.columns[-1].kind == "ordinal"  # which needs categories, and so is not drafted yet
    assert policy.loads(found["policy"]).schema["school"].kind == "nominal"
    assert "person 1" not in str(seen)  # nor does the page show a row, or a cell of an identifier
    assert profile.read(tmp_path / "b.parquet") is None


cells = st.none() | st.text(max_size=5)


@given(st.lists(st.tuples(cells, st.none() | st.floats()), min_size=1, max_size=20))
def test_any_table_can_be_looked_at(rows):
    table = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.Float64}, orient="row")
    found = profile.profile(Raw(table))

    assert found.rows == len(rows)
    assert all(0 <= column.unique <= 1 for column in found.columns)


def test_a_template_that_is_chosen_is_drafted_and_says_what_it_is_not(tmp_path):
    TABLE.drop("cells").write_parquet(tmp_path / "a.parquet")
    reading = {"template": "safe-harbor"}

    found = profile.write(tmp_path / "a.parquet", label="a", reading=reading)
    seen = profile.read(tmp_path / "a.parquet", reading)

    columns = policy.loads(found["policy"]).schema
    assert (columns["visited"].date_step, columns["age"].top_code) == ("year", 90)
    assert seen.by_name["town"].role == "identifier"
    assert any("not a determination" in text for text in seen.warnings)

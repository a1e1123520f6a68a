"""Drafted policies: they load, they run, and they copy no identifier."""

import csv
import json
import re
import tomllib
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import policy, sample
from shoal.cli.commands import app
from shoal.core import Kind, Role
from shoal.errors import InputError
from shoal.io import dates
from shoal.io.raw import Raw
from shoal.policy import draft
from shoal.publish.verify_folder import verify

ROWS = 30


def drafted(frame):
    text = str(draft.draft(Raw(frame), source="people.csv"))
    return text, policy.loads(text).schema


def people():
    return pl.DataFrame(
        {
            "Full Name": [f"Wilhelmina {i}" for i in range(ROWS)],
            "person_nr": range(1000, 1000 + ROWS),
            "who": [f"Atlantis {i}" for i in range(ROWS)],
            "age": [20 + i % 7 for i in range(ROWS)],
            "sex": ["male", "female"] * 15,
            "income": [None, *range(1, ROWS)],
            "born": [date(1990, 1, 1 + i) for i in range(ROWS)],
            "design_weight": [1.5] * ROWS,
            "fnlwgt": [2.5] * ROWS,
            "shoe": ["small", "large", None] * 10,
        }
    )


def init_and_protect(tmp_path, data, *options):
    """Type the two commands, and give the drafted policy and the released table."""
    rules, out = tmp_path / "policy.toml", tmp_path / "release"
    made = CliRunner().invoke(app, ["init", str(data), "--out", str(rules), *options])
    assert made.exit_code == 0, made.output
    done = CliRunner().invoke(
        app,
        ["protect", str(data), "--policy", str(rules), "--out", str(out),
         "--file-format", "parquet", *options],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return rules.read_text(encoding="utf-8"), pl.read_parquet(out / "release.parquet")


# Guesses


def test_roles_and_kinds_are_guessed_from_names_and_values():
    _, schema = drafted(people())

    guessed = {column.name: (column.role, column.kind) for column in schema.columns}
    assert guessed == {
        "Full Name": (Role.IDENTIFIER, None),
        "person_nr": (Role.IDENTIFIER, None),
        "who": (Role.IDENTIFIER, None),
        "age": (Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        "sex": (Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        "income": (Role.CONFIDENTIAL, Kind.NUMERIC),
        "born": (Role.QUASI_IDENTIFIER, Kind.DATE),
        "design_weight": (Role.IDENTIFIER, None),
        "fnlwgt": (Role.IDENTIFIER, None),
        "shoe": (Role.QUASI_IDENTIFIER, Kind.NOMINAL),
    }


def test_a_weight_is_left_out_and_the_draft_says_how_to_release_it():
    text, schema = drafted(people())

    assert schema.column_with_flag("sampling_weight") is None
    line = next(line for line in text.splitlines() if line.startswith("# fnlwgt"))
    assert (
        'write { role = "other", kind = "numeric", sampling_weight = true, class_mean = true }'
        in line
    )


def test_counts_and_reasons_stand_in_comments():
    text, _ = drafted(people())

    assert text.startswith("# Drafted by `shoal init` from people.csv: 30 rows.")
    assert (
        "# income: 1 missing, 29 distinct; its name reads confidential; whole numbers; rounded"
        in text
    )
    assert "# who: 0 missing, 30 distinct; nearly every value occurs once." in text


def test_bounds_are_left_to_the_steward_and_categories_are_marked_as_observed():
    text, schema = drafted(people())

    assert all(column.bounds is None for column in schema.columns)
    assert text.count("State its public limits: bounds = [low, high]") == 3
    assert schema["sex"].categories == ("female", "male")
    assert schema["sex"].observed
    assert schema["shoe"].categories == ("large", "small")


def test_no_cell_of_an_identifier_is_copied():
    text, _ = drafted(people())

    assert "Wilhelmina" not in text
    assert "Atlantis" not in text
    assert "1007" not in text


def test_no_cell_of_a_small_table_of_names_is_copied():
    text, _ = drafted(people()[:10])

    assert "Atlantis" not in text


def test_many_categories_are_not_copied():
    codes = [f"code {i % 60}" for i in range(600)]

    text, schema = drafted(pl.DataFrame({"job": codes}))

    assert schema["job"].categories is None
    assert "code 1" not in text
    assert "name a hierarchy or the categories" in text


def test_a_code_of_thousands_of_values_is_never_a_nominal():
    rows = pl.int_range(60_000, eager=True)
    frame = pl.DataFrame({
        "sex": (rows // 7 % 2).cast(pl.String),
        "city": "c" + (rows % 1500).cast(pl.String),
        "household": rows % 1200,
    })  # fmt: skip

    guesses = shoal.draft(frame).guesses

    assert {name: guesses[name].role.value for name in ("city", "household")} == {
        "city": "identifier", "household": "identifier",
    }  # fmt: skip
    assert "name a hierarchy that joins them" in guesses["city"].advice
    assert guesses["household"].flags == ("household",)


def test_text_is_looked_into():
    frame = pl.DataFrame(
        {
            "a": [f"{i}.5" for i in range(15)] * 2,
            "b": [f"{i},5" for i in range(15)] * 2,
            "c": ["2020-01-31", "1999-12-01"] * 15,
            "d": ["1", "x"] * 15,
            "e": pl.Series([None] * ROWS, dtype=pl.String),
        }
    )

    _, schema = drafted(frame)

    assert [column.kind for column in schema.columns] == [
        Kind.NUMERIC, Kind.NUMERIC, Kind.DATE, Kind.NOMINAL, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dtype", "role", "kind"),
    [
        (True, pl.Boolean, Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        ("a", pl.Categorical, Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        ("a", pl.Enum(["a", "b"]), Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        (1, pl.Int128, Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        (1.5, pl.Float32, Role.QUASI_IDENTIFIER, Kind.NOMINAL),
        (None, pl.Null, Role.IDENTIFIER, None),
        (time(1), pl.Time, Role.IDENTIFIER, None),
        (datetime(2020, 1, 1), pl.Datetime("us"), Role.QUASI_IDENTIFIER, Kind.DATE),  # noqa: DTZ001
        (timedelta(1), pl.Duration, Role.IDENTIFIER, None),
        ([1], pl.List(pl.Int64), Role.IDENTIFIER, None),
        ({"a": 1}, pl.Struct({"a": pl.Int64}), Role.IDENTIFIER, None),
        (b"a", pl.Binary, Role.IDENTIFIER, None),
    ],
)
def test_columns_of_every_type_get_a_line(value, dtype, role, kind):
    _, schema = drafted(pl.DataFrame({"x": pl.Series([value] * 3, dtype=dtype)}))

    assert (schema["x"].role, schema["x"].kind) == (role, kind)


def test_a_table_without_rows_is_refused():
    with pytest.raises(InputError, match="has a header but no rows"):
        drafted(people().clear())


# Names


HOSTILE = [
    'a "quoted" word', "back\\slash", "new\nline", "tab\t", "[table]", "a.b.c", "# comment",
    "key = 1", "'single'", '"""', "naïve 日本 \U0001f41f", "\x7f\x01", " ", "{x}", "null\0null",
]  # fmt: skip


def test_hostile_names_survive():
    _, schema = drafted(pl.DataFrame({name: ["u", "v"] * 5 for name in HOSTILE}))

    assert list(schema.names) == HOSTILE


@given(
    st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4, unique=True), st.text()
)
@settings(max_examples=60)
def test_any_names_any_cells_and_any_file_name_make_a_policy(names, source):
    made = draft.draft(Raw(pl.DataFrame({name: [name, "x"] for name in names})), source=source)

    assert list(tomllib.loads(made.text)["columns"]) == names


def test_hostile_names_run_from_file_to_release(tmp_path):
    data = tmp_path / "hostile.csv"
    names = [name for name in HOSTILE if "\0" not in name]
    with data.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, *[["u"] * len(names)] * 6])

    _, released = init_and_protect(tmp_path, data)

    assert released.columns == names


# Runs


def test_a_draft_runs_as_it_is(tmp_path):
    people().write_csv(tmp_path / "people.csv")

    text, released = init_and_protect(tmp_path, tmp_path / "people.csv")

    assert "Wilhelmina" not in text
    assert released.columns == ["age", "sex", "income", "born", "shoe"]
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text(encoding="utf-8"))
    assert "small" not in json.dumps(manifest["policy"])


def test_a_draft_of_the_sample_runs_as_it_is(tmp_path):
    sample.load()[:500].write_parquet(tmp_path / "people.parquet")

    text, released = init_and_protect(tmp_path, tmp_path / "people.parquet")

    names = sample.load()["name"][:500].to_list()
    assert not [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
    assert released.height == 500
    assert not {"name", "person", "household", "weight"}.intersection(released.columns)


def test_a_draft_of_a_file_with_decimal_commas_runs(tmp_path):
    data = tmp_path / "people.csv"
    rows = "".join(f"{20 + i},5;{i}00,25;n\xf6rth\n" for i in range(12))
    data.write_bytes(("age;income;region\n" + rows).encode("cp1252"))

    text, released = init_and_protect(tmp_path, data)

    assert "nörth" in text
    assert released.schema == {"age": pl.Float64, "income": pl.Float64, "region": pl.String}
    assert set(released["income"] % 500) == {0}  # rounded, so five people share each value


@pytest.mark.parametrize(
    ("delimiter", "cell", "decimal", "number"),
    [
        (",", '"$1,2{:02}.50"', ".", 1200.5),
        (";", "€ 1.2{:02},50", ",", 1200.5),
        (";", "1 2{:02},50", ",", 1200.5),
        ("|", "12{:02}.5%", ".", 1200.5),
        (",", '"1,2{:02}"', ".", 1200),
        (";", "1,2{:02}", None, None),
    ],
)
def test_amounts_as_people_write_them_are_numbers(tmp_path, delimiter, cell, decimal, number):
    data, policy = tmp_path / "people.csv", tmp_path / "policy.toml"
    rows = [f"{20 + i}{delimiter}{cell.format(i)}\n" for i in range(40)]
    data.write_text(f"age{delimiter}income\n" + "".join(rows))

    drafted = shoal.draft(data, keep=["income"])
    policy.write_text(drafted.text)

    if number is None:  # a thousand, or a little more than one
        assert "may separate thousands or decimals; to keep it, state decimal" in drafted.text
        assert drafted.guesses["income"].role == "identifier"
        return
    assert f'decimal = "{decimal}"' in drafted.text
    assert min(shoal.protect(data, policy).data["income"]) == number


def test_a_stated_delimiter_and_encoding_are_used(tmp_path):
    data = tmp_path / "people.csv"
    data.write_bytes(("age:region\n" + "30:Łódź\n40:Lyon\n" * 5).encode("iso8859-2"))

    text, released = init_and_protect(tmp_path, data, "--delimiter", ":", "--encoding", "latin2")

    assert 'categories = ["Lyon", "Łódź"]' in text
    assert released.columns == ["age", "region"]


@pytest.mark.data
def test_a_draft_of_the_adult_table_runs(tmp_path, reference):
    reference("adult")[:1000].write_csv(tmp_path / "adult.csv")

    text, released = init_and_protect(tmp_path, tmp_path / "adult.csv")

    schema = policy.loads(text).schema
    assert schema["income"].role is Role.CONFIDENTIAL
    assert schema["fnlwgt"].role is Role.IDENTIFIER
    assert schema["age"].step == 1
    assert released.height == 1000
    assert released.width == 14


def test_a_draft_says_that_whose_rows_they_are_is_not_known():
    text, schema = drafted(people().drop("person_nr"))

    assert "# one_row_per_person = true" in text.splitlines()
    assert not schema.one_row_per_person
    assert schema.persons is None


def test_categories_that_look_the_same_are_drafted_once_and_stay_observed():
    frame = pl.DataFrame({"town": ["e\u0301"] * 10 + ["\u00e9"] * 10 + ["a "] * 10})

    _, schema = drafted(frame)

    assert schema["town"].categories == ("a ", "\u00e9")
    assert schema["town"].observed


def test_a_draft_is_made_of_a_path_a_frame_and_what_was_read(tmp_path):
    frame = pl.DataFrame({"age": range(20, 50), "town": ["a", "b"] * 15})
    frame.write_csv(tmp_path / "people.csv", separator=";")

    of_path, of_frame = shoal.draft(tmp_path / "people.csv"), shoal.draft(frame)
    of_read = shoal.draft(shoal.read(tmp_path / "people.csv"))

    assert str(of_path).startswith("# Drafted by `shoal init` from people.csv: 30 rows.")
    assert str(of_frame).startswith("# Drafted by `shoal.draft`: 30 rows.")
    assert of_path.text.partition("\n")[2] == of_read.text.partition("\n")[2]


def test_a_draft_is_a_policy_as_it_is_as_text_and_as_a_file(tmp_path):
    drafted = shoal.draft(pl.DataFrame({"age": range(20, 50), "town": ["a", "b"] * 15}))

    path = drafted.write(tmp_path / "policy.toml")

    assert path.read_text() == str(drafted)
    digests = {shoal.load_policy(one).digest for one in (drafted, str(drafted), path)}
    assert len(digests) == 1
    with pytest.raises(shoal.InputError, match="exists already"):
        drafted.write(path)
    drafted.write(path, force=True)


def test_a_draft_shows_what_each_column_was_taken_for_and_no_category():
    drafted = shoal.draft(pl.DataFrame({"age": range(20, 50), "<town>": ["Xanadu", "Ys"] * 15}))

    assert "age: quasi-identifier, numeric" in repr(drafted)
    assert "Xanadu" in str(drafted)
    assert "Xanadu" not in repr(drafted)
    assert "&lt;town&gt;" in drafted._repr_html_()


# Spellings and dates


def spelt(rows=40):
    births = [(1 + i % 28, 1 + i % 12, (20 + 7 * i) % 100) for i in range(rows)]
    return pl.DataFrame({
        "age": [20 + i % 9 for i in range(rows)],
        "region": ["North", "north", " north ", "South"] * (rows // 4),
        "birth_date": ["{:02}.{:02}.{:02}".format(*birth) for birth in births],
        "seen": [f"2024-05-{1 + i % 28:02}T23:30:00+02:00" for i in range(rows)],
    })  # fmt: skip


def test_spellings_are_joined_by_a_stated_recode_that_the_manifest_keeps_to_itself(tmp_path):
    spelt().write_csv(tmp_path / "people.csv")

    text, released = init_and_protect(tmp_path, tmp_path / "people.csv")

    column = policy.loads(text).schema["region"]
    assert column.recode == {" north ": "North", "north": "North"}
    assert column.categories == ("North", "South")
    manifest = (tmp_path / "release" / "manifest.json").read_text()
    assert "recode" not in json.loads(manifest)["policy"]["columns"]["region"]
    assert verify(tmp_path / "release").holds
    assert not released["region"].cast(pl.String).str.contains("north").any()


@pytest.mark.parametrize(("first", "kind"), [(1931, Kind.DATE), (2019, Kind.ORDINAL)])
def test_months_are_in_order_and_births_in_months_become_years(first, kind):
    rng = np.random.default_rng(7)
    months = [f"{y}-{m:02d}" for y, m in zip(rng.integers(first, 2024, 900),
                                              rng.integers(1, 13, 900), strict=True)]  # fmt: skip
    table = pl.DataFrame({"when": months, "sex": ["f", "m", "x"] * 300})

    drafted = shoal.draft(table)
    released = shoal.protect(table, drafted).data

    made = drafted.guesses["when"]
    assert made.kind is kind
    assert made.role is Role.QUASI_IDENTIFIER
    assert released["when"].null_count() < 400
    if kind is Kind.DATE:
        assert made.coding["date_step"] == '"year"'
        assert not released["when"].cast(pl.String).str.contains("-(0[2-9]|1[0-2])").any()


def test_nobody_is_born_in_the_future_and_no_draft_for_an_epsilon_joins_spellings(tmp_path):
    path = tmp_path / "people.csv"
    spelt().write_csv(path)

    schema = policy.loads(shoal.draft(path).text).schema
    private = draft.draft_from_header(path, epsilon="1").text

    form = schema["birth_date"].date_format
    assert form == f"%d.%m.%y until {datetime.now(UTC).year}"
    days = dates.read_days(spelt()["birth_date"], form)
    assert days.dt.year().max() <= datetime.now(UTC).year
    assert days.null_count() == 0
    assert schema["seen"].kind is Kind.DATE
    assert "recode" not in private
    assert "north" not in private

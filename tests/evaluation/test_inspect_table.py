"""What an inspection says of a table, what it records, and what it never does."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.evaluation import inspect_table
from shoal.pipeline import booking

COLUMNS = {
    "name": "identifier",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
    "town": {"role": "quasi-identifier", "kind": "nominal", "categories": ["a", "b"]},
    "pay": {"role": "confidential", "kind": "numeric"},
}
POLICY = {"version": 1, "columns": COLUMNS, "protect": {"method": "mdav", "k": 2}}
CANARY = "Wilhelmina"


def table(ages, towns, names=None):
    rows = len(ages)
    names = names or [f"{CANARY} {row}" for row in range(rows)]
    return pl.DataFrame({"name": names, "age": ages, "town": towns, "pay": [1.0] * rows})


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=40))
def test_rare_records_are_those_that_counting_finds(rows):
    ages, towns = zip(*rows, strict=True)

    found = shoal.inspect(table(ages, towns), POLICY, public=True)

    alone = [row for row in rows if rows.count(row) == 1]
    assert found.unique == found.below_k == len(alone)
    assert found.resolved == {
        "age": sum(towns.count(town) > 1 for _, town in alone),
        "town": sum(ages.count(age) > 1 for age, _ in alone),
    }


def test_cells_are_named_by_column_and_row_and_never_shown():
    frame = table([CANARY, "-99", "30"], ["a", CANARY, "b"])

    found = shoal.inspect(frame, POLICY)

    assert [(one.cells, one.rows) for one in found.misfits["age"]] == [(1, (1,)), (1, (2,))]
    assert [(one.cells, one.rows) for one in found.misfits["town"]] == [(1, (2,))]
    assert "list them under 'missing'" in str(found)
    assert CANARY not in str(found)
    assert CANARY not in json.dumps(found.facts())


def test_columns_that_become_constant_are_named():
    found = shoal.inspect(table([20, 30, 40], ["a", "a", "b"]), POLICY)

    assert found.unexpected[0].startswith("Columns 'age', 'town' have one value in the release")


def test_persons_that_are_there_twice_are_counted():
    frame = table([20, 20, 30], ["a", "a", "b"], names=["x", " X", "y"])

    found = shoal.inspect(pl.concat([frame, frame[2:]]), POLICY)

    assert found.repeated == {"name": 2}
    assert found.duplicates == 1
    assert "persons: 2 rows repeat a value of 'name'" in str(found)


def test_other_k_are_stated_with_the_name_of_the_loss_where_the_method_has_levels():
    levels = {"method": "full-domain", "k": 3, "loss": "average-class-size"}
    policy = POLICY | {"protect": levels}
    frame = table([20] * 4 + [30] * 4, ["a", "a", "b", "b"] * 2)

    found = shoal.inspect(frame, policy, public=True)

    assert "k = 2: least average class size 2, 0 rows left out; levels: age 0, town 0" in str(found)
    assert "k = 3: least average class size 4, 0 rows left out; levels: age " in str(found)
    facts = found.facts()["alternatives"]
    assert facts["loss"] == "average-class-size"
    assert facts["by_k"][5] == {"loss": 8.0, "levels": {"age": 1, "town": 1}, "suppressed": 0}
    assert facts["lattice"]["best"] in ([0, 1], [1, 0])  # a tie
    assert json.dumps(found.facts())
    assert shoal.inspect(frame, POLICY, public=True).alternatives is None


def test_a_policy_that_cannot_be_planned_is_said_and_the_table_is_inspected():
    impossible = {**POLICY, "require": {"k-anonymity": 5}}

    found = shoal.inspect(table([20] * 4, ["a"] * 4), impossible)

    assert "cannot promise it" in found.refused[0]
    assert (found.k, found.below_k) == (5, 4)


@pytest.fixture
def desk(tmp_path):
    booking.open_budget(tmp_path / "budget.db", "people", "1")
    (tmp_path / "policy.toml").write_text("""
version = 1
one_row_per_person = true
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
[protect]
method = "auto"
epsilon = 1
[budget]
file = "budget.db"
source = "people"
""")
    pl.DataFrame({"age": list(range(40))}).write_csv(tmp_path / "people.csv")
    return tmp_path


def run(desk, *options):
    arguments = [str(desk / "people.csv"), "--policy", str(desk / "policy.toml"), *options]
    return CliRunner().invoke(app, ["inspect", *arguments])


def test_an_inspection_says_so_first_and_is_recorded_before_the_table_is_read(desk):
    (desk / "people.csv").unlink()

    done = run(desk)

    (one,) = budget_file.account(desk / "budget.db", "people").inspections
    assert (one.kind, one.what) == ("table", "inspect")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"shoal: {inspect_table.BEGINS}\n")
    assert "every later epsilon of the source holds only if" in done.stderr


def test_a_later_epsilon_is_conditional_after_an_inspection(desk):
    assert run(desk).exit_code == 0

    done = shoal.protect(pl.read_csv(desk / "people.csv"), desk / "policy.toml")

    assert done.claims[0].status == "conditional"


def test_a_public_file_costs_nothing_and_nothing_is_written(desk):
    before = {path.name: path.stat().st_mtime_ns for path in desk.iterdir()}

    done = run(desk, "--public", "--json")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["confidential"] == inspect_table.CONFIDENTIAL
    assert not budget_file.account(desk / "budget.db", "people").inspections
    assert {path.name: path.stat().st_mtime_ns for path in desk.iterdir()} == before

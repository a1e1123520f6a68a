import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from shoal import sample
from shoal.cli.commands import app
from shoal.cli.console import Command, Panel
from shoal.io import read
from shoal.methods import REGISTRY, TO_START_WITH


def shoal(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_help_loads_nothing_heavy():
    heavy = ["numpy", "polars", "numba", "scipy", "pydantic", "opendp", "jinja2", "narwhals"]
    program = f"import sys, shoal.cli.commands; print([m for m in {heavy!r} if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.strip() == b"[]"


def test_the_module_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "--help"], capture_output=True, check=True
    )

    assert b"protect" in done.stdout


def test_the_demo_tells_the_commands_and_can_be_run_twice(tmp_path):
    for _ in range(2):
        done = shoal("demo", "--out", tmp_path / "demo")

        assert done.exit_code == 0, done.output
        assert "$ shoal protect" in done.output
        assert "$ shoal check" in done.output
        assert "proved" in done.output
    assert (tmp_path / "demo" / "release" / "report.html").exists()


def test_closeness_converts_t_and_epsilon_and_rounds_against_the_asker():
    asked = ("--k", 10, "--rows", 30162)

    told = shoal("closeness", "--t", 3, *asked, "--columns", 2)
    facts = json.loads(shoal("closeness", "--t", 3, *asked, "--json").stdout)
    back = json.loads(shoal("closeness", "--epsilon", facts["epsilon"], *asked, "--json").stdout)

    assert "epsilon 1.09 per record gives stochastic t-closeness with t = 3 of" in told.output
    assert "Each of the 2 columns by itself has epsilon 0.549 and t = 1.74." in told.output
    assert (
        "t = 3 bounds what an intruder learns about a person by a factor of exp(2.2)" in told.output
    )
    assert "It is not differential privacy." in told.output
    assert back["t"] == pytest.approx(3)
    assert back["t_for_a_view"] == pytest.approx(1.7322, abs=1e-4)
    assert "t = 2.72 of" in shoal("closeness", "--epsilon", 1).output
    assert "t = 1.64 bounds" in shoal("closeness", "--epsilon", 1).output


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((), "found neither"),
        (("--t", 2, "--epsilon", 1), "found both"),
        (("--t", 2, "--k", 5, "--rows", 7), "A single class is the whole table, and t = 1"),
        (("--t", 0.5), "Expected t from 1 to 1,000,000, found 0.5"),
        (("--epsilon", -1), "Expected epsilon from 1e-06 to 700, found -1.0"),
    ],
)
def test_closeness_refuses_what_has_no_answer(asked, sentence):
    done = shoal("closeness", *asked)

    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())


def test_protect_then_check_agree_and_check_speaks_json(tmp_path):
    policy = sample.folder() / "people.toml"
    data = sample.folder() / "people.parquet"

    done = shoal(
        "protect", data, "--policy", policy, "--out", tmp_path / "r", "--file-format", "csv"
    )
    checked = shoal("check", tmp_path / "r" / "release.csv", "--policy", policy, "--json")

    assert done.exit_code == 0, done.output
    assert checked.exit_code == 0, checked.output
    verdict = json.loads(checked.stdout)
    assert verdict["holds"]
    assert verdict["checks"][0]["guarantee"]["name"] == "k-anonymity"


def test_check_exits_with_3_where_a_promise_fails(tmp_path):
    policy = sample.folder() / "people.toml"
    raw = sample.load().drop("name", "person", "household")
    raw.write_parquet(tmp_path / "raw.parquet")

    done = shoal("check", tmp_path / "raw.parquet", "--policy", policy)

    assert done.exit_code == 3
    assert "FAILS" in done.output
    assert "smallest group: 1 record, for example row " in done.output


def test_a_requirement_that_cannot_be_kept_exits_with_3_and_writes_nothing(tmp_path, people):
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "p.toml").write_text(
        "version = 1\n[columns]\nname = 'identifier'\n"
        "age = { role = 'quasi-identifier', kind = 'numeric' }\n"
        "region = { role = 'quasi-identifier', kind = 'nominal' }\n"
        "income = { role = 'confidential', kind = 'numeric' }\n"
        "[protect]\nmethod = 'individual-ranking'\nk = 3\n[require]\nk-anonymity = 3\n"
    )

    done = shoal("protect", tmp_path / "people.csv", "--policy", tmp_path / "p.toml",
                 "--out", tmp_path / "out")  # fmt: skip

    assert done.exit_code == 3
    assert "Nothing was read or written" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.toml", "people.csv"]


def test_a_bug_of_ours_exits_with_70_and_withholds_the_message():
    @app.command("explode", hidden=True, cls=Command)
    def explode():
        raise ValueError("CANARY CELL")

    try:
        done = shoal("explode")
    finally:
        app.registered_commands.pop()

    assert done.exit_code == 70
    assert "CANARY" not in done.output
    assert "ValueError" in done.output


def test_methods_lists_every_method_in_one_line_and_one_in_full():
    listed = shoal("methods").output.splitlines()
    full = shoal("methods", "mdav").output

    named = [line.split()[0] for line in listed if line.startswith("  ")]
    assert named == list(REGISTRY)
    assert listed[0] == "To start with:"
    assert listed[1 + len(TO_START_WITH) :][:2] == ["", "Published methods, to repeat and compare:"]
    published = [line for line in listed if line.startswith("  ")][len(TO_START_WITH) :]
    assert all(re.search(r" \d{4}\.$", line) for line in published)  # each cites its paper
    for words in ("5-anonymity of a + b (proved)", "reference:", "k: The smallest number"):
        assert words in full


@pytest.mark.parametrize("name", list(REGISTRY))
def test_the_line_of_a_method_promises_no_epsilon_that_its_claims_do_not_prove(name):
    summary = REGISTRY[name].summary
    (facts,) = json.loads(shoal("methods", name, "--json").output)
    proved = {
        form: any(
            claim["status"] == "proved" and claim["guarantee"]["name"] == "differential-privacy"
            for claim in claims
        )
        for form, claims in facts["release_forms"].items()
    }

    if "conditional epsilon" in summary:
        assert not any(proved.values())
    elif "if column-shuffled" in summary:
        assert [form for form in proved if proved[form]] == ["column-shuffled"]
    elif "unless row-aligned" in summary:
        assert [form for form in proved if not proved[form]] == ["row-aligned"]
    else:
        assert set(proved.values()) == {"privacy" in summary or "epsilon" in summary}


def test_help_shows_every_command_in_one_of_five_panels():
    shown = shoal("--help").output

    titles = [line.split()[1] for line in shown.splitlines() if line.startswith("╭─")]
    assert titles == ["Options", *Panel]
    assert all(command.rich_help_panel for command in get_command(app).commands.values())


def test_schema_prints_json_that_knows_every_column_key():
    spec = json.loads(shoal("schema").output)

    keys = spec["$defs"]["ColumnSpec"]["properties"]
    for key in ("role", "kind", "bounds", "hierarchy", "public", "privacy_unit", "household",
                "sampling_weight", "stratum", "transform", "step", "missing", "top_code",
                "bottom_code", "recode"):  # fmt: skip
        assert key in keys


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_init_writes_a_policy_that_protect_takes(tmp_path, suffix):
    data = tmp_path / f"people.{suffix}"
    frame = sample.load().head(300)
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}[suffix](data)

    made = shoal("init", data, "--out", tmp_path / "policy.toml")
    done = shoal("protect", data, "--policy", tmp_path / "policy.toml", "--out", tmp_path / "out")

    assert made.exit_code == 0, made.output
    assert done.exit_code == 0, done.output
    # The format of the input, where a release can have it.
    kind = {"arrow": "parquet"}.get(suffix, suffix)
    released = read(tmp_path / "out" / f"release.{kind}").frame
    assert not {"name", "person", "household"} & set(released.columns)


def test_init_does_not_overwrite_without_force(tmp_path):
    data = sample.folder() / "people.parquet"
    (tmp_path / "policy.toml").write_text("mine")

    done = shoal("init", data, "--out", tmp_path / "policy.toml")

    assert done.exit_code == 2
    assert (tmp_path / "policy.toml").read_text() == "mine"
    assert shoal("init", data, "--out", tmp_path / "policy.toml", "--force").exit_code == 0


def test_init_takes_labels_of_a_metadata_file_and_an_epsilon_draft_refuses_it(tmp_path):
    data, about = tmp_path / "people.csv", tmp_path / "datapackage.json"
    data.write_text("age,town\n" + "".join(f"{20 + i % 40},{'ab'[i % 2]}\n" for i in range(200)))
    about.write_text('{"fields": [{"name": "town", "title": "Where they live"}]}')
    policy = tmp_path / "policy.toml"

    made = shoal("init", data, "--metadata", about, "--out", policy)
    refused = shoal("init", data, "--metadata", about, "--epsilon", 1, "--out", "-")
    absent = shoal("init", data, "--metadata", tmp_path / "none.xml", "--out", "-")

    assert made.exit_code == 0
    assert 'label = "Where they live"' in policy.read_text("utf-8")
    assert (refused.exit_code, absent.exit_code) == (2, 2)
    assert "an --epsilon draft must not depend" in refused.output.replace("\n", " ")
    assert "Cannot read the metadata" in absent.output

"""What cannot be seen is shown as an escape wherever people read: reports, pages, the terminal."""

import json
import tomllib
from unicodedata import category

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shoal.cli.commands import app
from shoal.errors import UNSEEN, InputError, visible
from shoal.io.text_files import quote

MARKS = ("\u202e", "\u2066", "\u200f", "\u200b", "\u2028", "\x1b[31m", "\x07", "\x85", "\ufeff")
AGE, INCOME = "age" + "".join(MARKS), "\u202eincome\u2069"
NORTH = "nor\u202eth"


def unseen(text, *, lines=True):
    """The characters of a text that cannot be seen."""
    return sorted({c for c in text if category(c) in UNSEEN} - (set("\n\t") if lines else set()))


@given(st.text())
def test_everything_that_is_shown_can_be_seen_and_the_rest_stays(text):
    shown = visible(text)

    assert unseen(shown, lines=False) == []
    assert unseen(visible(text, lines=True)) == []
    kept = "".join(c for c in text if category(c) not in UNSEEN)
    assert visible(kept) == kept


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_policy_that_we_write_holds_names_as_escapes_and_reads_back_the_same(text):
    written = quote(text)

    assert unseen(written, lines=False) == []
    assert tomllib.loads(f"x = {written}")["x"] == text


def test_errors_show_names_so_that_they_can_be_seen():
    assert (
        str(InputError("No column 'in\u202eme'.\nproved")) == r"No column 'in\u202eme'.\u000aproved"
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release of a table whose names hide things, by the command; its folder and its output."""
    folder = tmp_path_factory.mktemp("unseen")
    rows = 40
    pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            AGE: [20 + i for i in range(rows)],
            "region": [NORTH, "south"] * (rows // 2),
            INCOME: [100 * i for i in range(rows)],
        }
    ).write_parquet(folder / "people.parquet")
    (folder / "policy.toml").write_text(
        "version = 1\n[columns]\nname = 'identifier'\n"
        f"{json.dumps(AGE)} = {{ role = 'quasi-identifier', kind = 'numeric' }}\n"
        "region = { role = 'quasi-identifier', kind = 'nominal', "
        f"categories = [{json.dumps(NORTH)}, 'south'] }}\n"
        f"{json.dumps(INCOME)} = {{ role = 'confidential', kind = 'numeric' }}\n"
        "[protect]\nmethod = 'mdav'\nk = 5\n"
        '[context]\npurpose = "re\\u202esearch"\n',
        encoding="utf-8",
    )
    words = ["protect", str(folder / "people.parquet"), "--policy", str(folder / "policy.toml")]
    done = CliRunner().invoke(app, [*words, "--out", str(folder / "out"), "--no-evaluate"])
    assert done.exit_code == 0, done.stderr
    return folder, done


def test_reports_and_the_terminal_show_names_as_escapes(released):
    folder, done = released
    pages = [(folder / name / "report.html").read_text() for name in ("out", "out.internal")]

    for text in (*pages, done.stdout, done.stderr):
        assert unseen(text) == []
    for page in pages:
        assert r"\u202eincome\u2069" in page
    assert r"nor\u202eth" in pages[0]
    assert r"age\u202e\u2066" in done.stdout
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert INCOME in manifest["columns"]  # files keep them


def test_a_draft_and_an_error_of_the_command_show_names_as_escapes(released):
    folder, _ = released
    drafted = folder / "drafted.toml"
    made = CliRunner().invoke(app, ["init", str(folder / "people.parquet"), "--out", str(drafted)])
    policy = (folder / "policy.toml").read_text().replace("income", "outcome")
    (folder / "other.toml").write_text(policy)
    words = ["protect", str(folder / "people.parquet"), "--policy", str(folder / "other.toml")]
    wrong = CliRunner().invoke(app, [*words, "--out", str(folder / "none")])

    assert made.exit_code == 0, made.stderr
    assert unseen(drafted.read_text()) == []
    assert INCOME in tomllib.loads(drafted.read_text())["columns"]
    assert wrong.exit_code == 2
    assert unseen(wrong.stderr) == []

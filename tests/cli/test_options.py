"""`-` in place of a file: a table that is piped in."""

import gzip
import io as streams
import tempfile
from pathlib import Path

import polars as pl
import pytest
from tests.workbook import write
from typer.testing import CliRunner

from shoal import policy
from shoal.cli.commands import app

FRAME = pl.DataFrame({"age": [31, 31, 52, 52], "pay": [1.5, 2.5, 3.25, 4.0]})
POLICY = """version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
pay = { role = "confidential", kind = "numeric" }
[protect]
method = "mdav"
k = 2
[require]
k-anonymity = 2
"""


def shoal(*arguments, given=b""):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)


@pytest.fixture(autouse=True)
def _own_temp(tmp_path, monkeypatch):
    """What is piped in is kept here, and nothing of it stays."""
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    yield
    assert not list((tmp_path / "temp").iterdir())


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "policy.toml"


def piped(kind, folder):
    out = streams.BytesIO()
    if kind == "parquet":
        FRAME.write_parquet(out)
    elif kind == "arrow":
        FRAME.write_ipc(out)
    elif kind == "xlsx":
        pytest.importorskip("fastexcel")
        return write(folder / "x.xlsx", {"S": [FRAME.columns, *FRAME.rows()]}).read_bytes()
    elif kind in {"sav", "dta", "xpt"}:
        library = pytest.importorskip("pyreadstat")
        name = "write_xport" if kind == "xpt" else f"write_{kind}"
        getattr(library, name)(FRAME, str(folder / f"x.{kind}"))
        return (folder / f"x.{kind}").read_bytes()
    else:
        text = FRAME.write_csv().encode()
        return gzip.compress(text) if kind == "csv.gz" else text
    return out.getvalue()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "xlsx", "sav", "dta", "xpt"])
def test_a_table_of_any_format_is_checked_from_a_pipe(tmp_path, rules, kind):
    done = shoal("check", "-", "--policy", rules, given=piped(kind, tmp_path))

    assert done.exit_code == 0, done.output
    assert "holds" in done.output


def test_a_policy_is_drafted_from_a_pipe_to_a_pipe():
    done = shoal("init", "-", "--out", "-", given=FRAME.write_csv().encode())

    assert done.exit_code == 0, done.output
    assert policy.loads(done.stdout).schema.names == ("age", "pay")
    assert not Path("-").exists()


def test_a_table_is_protected_from_a_pipe(tmp_path, rules):
    out = tmp_path / "release"

    done = shoal("protect", "-", "--policy", rules, "--out", out, "--no-evaluate",
                 given=FRAME.write_csv().encode())  # fmt: skip

    assert done.exit_code == 0, done.output
    assert (out / "release.csv").is_file()


def test_a_release_is_not_written_to_a_pipe(rules):
    done = shoal("protect", "-", "--policy", rules, "--out", "-", given=b"age,pay\n1,2\n")

    assert done.exit_code == 2
    assert "Expected a folder for --out, found -: a release is several files." in done.output


def test_errors_about_a_pipe_name_it_as_it_was_asked_for(rules):
    done = shoal("check", "-", "--policy", rules, given=b"")

    assert done.exit_code == 2
    assert "'-' is empty; expected a header and one row per person." in done.output
    assert "shoal-" not in done.output


def test_two_tables_do_not_come_from_one_pipe(rules):
    done = shoal("evaluate", "-", "-", "--policy", rules, given=b"age,pay\n1,2\n")

    assert done.exit_code == 2
    assert "Expected - (what is piped in) for one table at most" in done.output


def test_the_next_command_names_the_pipe(tmp_path):
    done = shoal("init", "-", "--out", tmp_path / "p.toml", given=FRAME.write_csv().encode())

    assert done.exit_code == 0, done.output
    assert "shoal protect - --policy" in done.output

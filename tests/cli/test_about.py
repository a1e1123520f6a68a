"""What people expect of any command: short help, flags, quiet, verbose, JSON, completion."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from shoal import sample
from shoal.cli import console
from shoal.cli.commands import app
from shoal.methods import REGISTRY, TITLES


@pytest.fixture(autouse=True)
def _as_usual():
    yield
    console.telling(quiet=False, verbose=False)


def shoal(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


FAMILIES = {(), ("budget",), ("keys",), ("hierarchy",)}
WRITES = {"report", "finish", "sign", "demo", "studio", "schema", "warmup", "cite",
          "new", "intervals", "quantiles", "dates", "codes", "mask", "ordered",
          "mapping"}  # fmt: skip
"""Commands that write a file and say where it is, or print what has a form of its own."""


def spelled():
    """Every command and family, as it is typed."""
    for name, command in get_command(app).commands.items():
        yield (name,)
        yield from ((name, inner) for inner in getattr(command, "commands", ()))


@pytest.fixture
def files(tmp_path):
    sample.people(60, seed=1).write_csv(tmp_path / "people.csv", separator=";")
    policy = (
        "version = 1\n[columns]\n"
        "age = { role = 'quasi-identifier', kind = 'numeric' }\n"
        "[protect]\nmethod = 'mdav'\nk = 3\n"
    )
    (tmp_path / "p.toml").write_text(policy)
    (tmp_path / "t.csv").write_text("age\n" + "\n".join(str(20 + i % 7) for i in range(30)))
    return tmp_path


@pytest.mark.parametrize("words", [(), *spelled()], ids=" ".join)
def test_every_command_answers_to_h_and_names_no_type_of_a_flag(words):
    short, long = shoal(*words, "-h"), shoal(*words, "--help")

    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout
    assert "<bool>" not in short.stdout
    reports = words not in {*FAMILIES, ("budget", "init")} and words[-1] not in WRITES
    assert ("--json" in short.stdout) is reports


def test_quiet_prints_the_result_without_notes(files):
    asked = ("protect", files / "t.csv", "--policy", files / "p.toml", "--no-evaluate", "--out")

    usual = shoal(*asked, files / "a")
    quiet = shoal("--quiet", *asked, files / "b")

    assert "  note  Read as" in usual.stdout
    assert "note" not in quiet.stdout
    assert "claim" in quiet.stdout
    assert quiet.stderr == ""
    behind = shoal(*asked, files / "c", "--quiet").stdout
    assert behind.replace(str(files / "c"), str(files / "b")) == quiet.stdout


def test_quiet_keeps_what_was_done_to_the_budget(files, capsys):
    shoal("--quiet", "check", files / "t.csv", "--policy", files / "p.toml")
    release = SimpleNamespace(summary=lambda: "Release", manifest=SimpleNamespace(columns={}))
    published = SimpleNamespace(
        release=release, folder="out", internal="out.internal",
        notes=("a note", "Epsilon is spent."), warnings=("Epsilon is spent.",),
    )  # fmt: skip

    console.say_published(published, as_json=False)

    said = capsys.readouterr().out
    assert said.splitlines()[:2] == ["Release", "  note  Epsilon is spent."]


def test_quiet_does_not_silence_an_error(files):
    ended = shoal("-q", "protect", files / "none.csv", "--policy", files / "p.toml", "--out", "x")

    assert ended.exit_code == 2
    assert ended.stderr.startswith("shoal: ")


def test_verbose_prints_each_step_once_with_its_time(files):
    ended = shoal("--verbose", "protect", files / "t.csv", "--policy", files / "p.toml",
                  "--no-evaluate", "--out", files / "a")  # fmt: skip

    lines = [line.split(" s: ")[1] for line in ended.stderr.splitlines() if " s: " in line]
    assert lines[0] == "reading the file"
    assert "checking promises" in lines
    assert len(lines) == len(set(lines))


def test_quiet_and_verbose_do_not_go_together():
    assert shoal("--quiet", "--verbose", "methods").exit_code == 2


def test_a_hierarchy_is_reported_as_json(tmp_path):
    (tmp_path / "h.csv").write_text("a;x;*\nb;x;*\nc;y;*\n")

    found = json.loads(shoal("hierarchy", "check", tmp_path / "h.csv", "--json").stdout)

    assert (found["leaves"], found["levels"]) == (3, 3)


def test_a_release_is_reported_as_json(files):
    ended = shoal("protect", files / "t.csv", "--policy", files / "p.toml", "--no-evaluate",
                  "--out", files / "a", "--json")  # fmt: skip
    facts = json.loads(ended.stdout)

    manifest = json.loads((files / "a" / "manifest.json").read_text())
    assert facts["public"] == str(files / "a")
    assert facts["confidential"] == str(files / "a.internal")
    for key in ("method", "rows", "claims", "checks", "not_claimed"):
        assert facts[key] == manifest[key]


@pytest.mark.parametrize("printed", [False, True])
def test_a_draft_is_reported_as_json(files, printed):
    out = "-" if printed else files / "policy.toml"
    facts = json.loads(shoal("init", files / "people.csv", "--out", out, "--json").stdout)

    assert facts["file"] == (None if printed else str(out))
    assert facts["columns"]["name"]["role"] == "identifier"
    assert facts["policy"].startswith("# Drafted by `shoal init` from people.csv")
    assert printed or out.read_text() == facts["policy"]


def test_a_budget_is_reported_as_json(tmp_path):
    file = tmp_path / "budget.json"
    shoal("budget", "init", file, "--source", "people", "--epsilon", "1")

    (account,) = json.loads(shoal("budget", "show", file, "--json").stdout)

    assert account["source"] == "people"


def test_methods_are_reported_as_json_and_one_of_them_by_name():
    every = json.loads(shoal("methods", "--json").stdout)
    (one,) = json.loads(shoal("methods", "mdav", "--json").stdout)

    assert [method["name"] for method in every] == list(REGISTRY)
    assert one in every
    assert one["title"] == "Groups of similar people (MDAV)"
    assert len({method["title"] for method in every}) == len(every)
    assert one["parameters"]["k"]["required"]
    assert one["release_forms"]["linked-shuffled"][0]["status"] == "proved"


@pytest.mark.parametrize("name", list(REGISTRY))
def test_one_method_is_shown_in_full_with_its_claims(name):
    shown = shoal("methods", name).stdout

    assert shown.startswith(f"{name}: {TITLES[name]}\n")
    assert "because: " in shown
    assert "reference: " in shown
    assert "Undefined" not in shown


def test_a_method_that_does_not_exist_is_guessed():
    ended = shoal("methods", "mdavv")

    assert ended.exit_code == 2
    assert "Did you mean 'mdav'?" in ended.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_are_completed_in_every_shell(shell):
    program = (
        "import os, sys; sys.argv = ['shoal']; "
        f"os.environ.update(_SHOAL_COMPLETE='complete_{shell}', COMP_WORDS='shoal pro', "
        "COMP_CWORD='1', _TYPER_COMPLETE_ARGS='shoal pro', _TYPER_COMPLETE_FISH_ACTION='get-args');"
        "from shoal.cli.commands import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert "protect" in done.stdout
    assert "budget" not in done.stdout

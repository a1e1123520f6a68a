"""No command, page or library call opens a network connection; the studio's own port aside.

Every Python process of a run, those that it starts included, has a hook that notes whoever asks for
an address, connects, or sends to one. What compiled libraries do by themselves no hook sees.
"""

import os
import subprocess
import sys

import polars as pl
import pytest
import typer

from shoal.cli.commands import app

HOOK = """
import os, sys
ASKED = {"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
         "socket.gethostbyaddr", "urllib.Request", "http.client.connect", "ftplib.connect"}
def note(event, arguments):
    if event in ASKED:
        with open(os.environ["ASKED_FOR"], "a") as file:
            print(event, arguments[1:], file=file)
sys.addaudithook(note)
"""
POLICY = """
version = 1
one_row_per_person = true
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110], step = 1 }
town = { role = "quasi-identifier", kind = "nominal", categories = ["a", "b"] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "METHOD"
"""
COMMANDS = """
init people.csv --out drafted.toml
plan --policy k.toml --rows 30
inspect people.csv --policy k.toml --public
protect people.csv --policy k.toml --out grouped --no-evaluate
protect people.csv --policy e.toml --out drawn --file-format csv --no-evaluate
report grouped people.csv --policy k.toml --no-evaluate
verify drawn
keys new me.key
sign grouped --key me.key
check grouped/release.csv --policy k.toml
evaluate people.csv grouped/release.csv --policy k.toml
analyse drawn
compare people.csv --policy k.toml --grid grid.toml --repeats 1 --jobs 1 --out compared
audit --policy e.toml --trials 20
closeness --t 2 --k 5
methods mdav
papers sanchez2014 --data people.csv --repeats 1
cite
schema
budget init budget.db --source people --epsilon 1
hierarchy intervals --low 0 --high 110 --widths 10 --out ages.csv
apply grouped.internal/scheme.toml people.csv --out applied
finish grouped
studio --help
"""
OTHERS = {"demo", "warmup"}
"""Commands that take long: `demo` protects and checks, and `warmup` compiles."""
RUN_ALL = """
import sys
from shoal.cli.commands import app
for line in sys.argv[1:]:
    try:
        app(line.split())
    except SystemExit as ended:
        print("ENDED", line.split()[0], ended.code)
"""
LIBRARY = """
import polars as pl, shoal
CALLED = {"apply", "audit", "check", "compare", "draft", "evaluate", "inspect", "load_policy",
          "plan", "protect", "read", "repeat_figure", "verify", "write_report"}
people = pl.read_csv("people.csv")
shoal.load_policy("k.toml"); shoal.read("people.csv")
print(shoal.draft(people)); print(shoal.plan("e.toml", rows=30))
for table in ("people.csv", people, people.to_pandas(), people.to_arrow()):
    release = shoal.protect(table, "e.toml")
release = shoal.protect(people, "k.toml")
release.write("written"); shoal.verify("written"); shoal.check(release.data, "k.toml")
shoal.write_report(release, "report.html"); shoal.apply(release, people)
shoal.evaluate(people, release.data, "k.toml", jobs=1); shoal.inspect(people, "k.toml", public=True)
shoal.compare(people, "k.toml", candidates="grid.toml", repeats=1)
shoal.repeat_figure("sanchez2014", people, runs=1); shoal.audit("e.toml", trials=20)
missing = {name for name in shoal.__all__ if callable(getattr(shoal, name))} - CALLED
assert all(name.endswith("Error") for name in missing), missing
"""
PAGES = """
from pathlib import Path
from starlette.testclient import TestClient
from shoal.studio.server import create_app
from shoal.studio.settings import Settings
settings = Settings(home=Path("home"), token="invented")
with TestClient(create_app(settings), base_url=settings.address) as client:
    answer = client.get("/", params={"token": "invented"})
    assert answer.status_code == 200 and "Shoal" in answer.text, answer.text
"""


@pytest.fixture
def asked_for(tmp_path):
    """Run a program under the hook, and return what it asked the network for."""
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK)
    pl.DataFrame({"name": [f"p{n}" for n in range(30)], "age": [20 + n % 40 for n in range(30)],
                  "town": ["a", "b", "a"] * 10}).write_csv(tmp_path / "people.csv")  # fmt: skip
    (tmp_path / "k.toml").write_text(POLICY.replace("METHOD", "mondrian") + "k = 3\n")
    (tmp_path / "e.toml").write_text(POLICY.replace("METHOD", "laplace") + "epsilon = 1\n")
    (tmp_path / "grid.toml").write_text('[[candidate]]\nmethod = "mdav"\nk = 3\n')
    paths = os.pathsep.join([str(hook), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "ASKED_FOR": str(tmp_path / "asked")}

    def run(*words):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, check=False,
                              capture_output=True, text=True, timeout=300)  # fmt: skip
        asked = tmp_path / "asked"
        return done, asked.read_text() if asked.exists() else ""

    return run


def test_the_hook_sees_a_connection(asked_for):
    program = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"

    _, asked = asked_for("-c", program)

    assert "socket.connect" in asked


@pytest.mark.slow
def test_no_command_opens_a_connection(asked_for):
    lines = [line for line in COMMANDS.split("\n") if line]
    every = set(typer.main.get_command(app).commands)
    assert {line.split()[0] for line in lines} == every - OTHERS

    done, asked = asked_for("-c", RUN_ALL, *lines)

    ended = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ENDED")]
    assert [name for name, code in ended if code != "0"] == ["finish"], done.stderr
    assert len(ended) == len(lines)
    assert not asked


@pytest.mark.parametrize("program", [LIBRARY, PAGES], ids=["library", "pages"])
def test_no_library_call_and_no_page_opens_a_connection(asked_for, program):
    done, asked = asked_for("-c", program)

    assert done.returncode == 0, done.stderr
    assert not asked

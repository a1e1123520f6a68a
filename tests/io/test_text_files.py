"""Absurd numbers, special files and damaged text: refused at once, with exit code 2."""

import os
import signal
import socket
import time
import tomllib
from contextlib import contextmanager
from decimal import Decimal
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from shoal import policy
from shoal.cli.commands import app, budget
from shoal.errors import InputError
from shoal.evaluation.comparison import grid
from shoal.io import text_files
from shoal.io.text_files import as_toml
from shoal.methods import REGISTRY
from shoal.pipeline.planning import plan

POLICY = """version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
height = { role = "quasi-identifier", kind = "numeric", bounds = [0, 250] }
ill = { role = "confidential", kind = "nominal", categories = ["yes", "no"] }
"""
PROTECT = '[protect]\nmethod = "mdav"\nk = 3\n'
READING = '[reading]\ndelimiter = ","\ndecimal = "."\n'
LIMIT = 5.0
"""Seconds; what is refused as written takes milliseconds, what is computed takes hours."""
ABSURD = st.one_of(
    st.sampled_from([
        "1e99999999", "-1e99999999", "1e-99999999", "0e99999999", "1e999999999999999999999999",
        "9" * 5000, "-" + "9" * 5000, "0." + "1" * 5000, "1e401", "[" * 5000 + "]" * 5000,
    ]),
    st.integers(401, 10**30).map("1e{}".format),
    st.integers(401, 10**30).map("1e-{}".format),
    st.integers(101, 6000).map(lambda digits: "7" * digits),
)  # fmt: skip


@contextmanager
def at_once():
    """Fail where something hangs, or takes longer than any refusal needs."""

    def stop(_number, _frame):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    started = time.monotonic()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < LIMIT


def shoal(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments):
    """Run a command that must be refused; what it says."""
    with at_once():
        done = shoal(*arguments)
    assert done.exit_code == 2, (arguments, done.output)
    assert "Traceback" not in done.output
    return done.stderr


def numeric(model):
    """The parameters of a method that take a number."""
    properties = model.model_json_schema()["properties"]
    return [name for name, about in properties.items() if '"number"' in str(about).replace("'", '"')
            or '"integer"' in str(about).replace("'", '"')]  # fmt: skip


PARAMETERS = [
    (method.name, name) for method in REGISTRY.values() for name in numeric(method.parameters)
]
KEYS = [
    "bounds = [0, {}]", "bounds = [{}, 1]", "step = {}", "top_code = {}", "bottom_code = {}",
    "missing_as = {}", "missing = [{}]", "categories = [{}]",
]  # fmt: skip
UNIT = ["max_contributions = {}", "exact_contributions = {}"]
REQUIRED = [
    "k-anonymity = {}",
    "differential-privacy = {}",
    'l-diversity = {{ l = {}, column = "ill" }}',
    'l-diversity = {{ l = 2, kind = "recursive", c = {}, column = "ill" }}',
    't-closeness = {{ t = {}, column = "ill" }}',
]


def stated(key, literal):
    """A policy that states an absurd number under a key."""
    if key in KEYS:
        line = f'x = {{ role = "quasi-identifier", kind = "numeric", {key.format(literal)} }}\n'
        return POLICY + line + PROTECT
    if key in UNIT:
        line = f'u = {{ role = "identifier", privacy_unit = true, {key.format(literal)} }}\n'
        return POLICY + line + PROTECT
    if key in REQUIRED:
        return POLICY + PROTECT + f"[require]\n{key.format(literal)}\n"
    if key == "version":
        return POLICY.replace("version = 1", f"version = {literal}") + PROTECT
    method, parameter = key
    return POLICY + f'[protect]\nmethod = "{method}"\n{parameter} = {literal}\n'


def test_all_sorts_of_numeric_keys_are_tried():
    assert {("mdav", "k"), ("laplace", "epsilon"), ("bucketization", "t")} <= set(PARAMETERS)
    assert len(PARAMETERS) > 40


@given(
    key=st.sampled_from([*KEYS, *UNIT, *REQUIRED, "version", *PARAMETERS]),
    literal=ABSURD,
)
@settings(max_examples=300)
def test_an_absurd_number_under_any_key_of_a_policy_is_refused_at_once(key, literal):
    with at_once(), pytest.raises(InputError):
        plan(policy.loads(stated(key, literal)))


@pytest.mark.parametrize("key", [*KEYS[:6], *UNIT, *REQUIRED, "version", *PARAMETERS], ids=str)
def test_nan_infinity_and_the_merely_huge_are_refused_in_every_key(key):
    for literal in ("nan", "inf", "-inf", "1e300", "-1e300", *(["9" * 99] * (key not in KEYS))):
        with at_once(), pytest.raises(InputError):
            plan(policy.loads(stated(key, literal)))


@given(key=st.sampled_from(["k", "epsilon", "columns", "extra"]), literal=ABSURD)
@settings(max_examples=50)
def test_an_absurd_number_in_a_grid_is_refused_at_once(key, literal):
    text = f'[[candidate]]\nmethod = "mdav"\n{key} = [3, {literal}]\n'

    with at_once(), pytest.raises(InputError):
        grid.of(text_files.parse_toml(text, "grid"))


@pytest.mark.parametrize("literal", ["nan", "inf", "-inf", "[5, nan]"])
def test_a_grid_without_finite_numbers_is_refused(literal):
    text = f'[[candidate]]\nmethod = "laplace"\nepsilon = [1, {literal}]\n'

    with pytest.raises(InputError, match="candidate 1: expected finite numbers"):
        grid.of(text_files.parse_toml(text, "grid"))


def test_a_grid_of_too_many_candidates_is_refused_before_they_are_made():
    many = "\n".join(f"p{i} = {list(range(50))}" for i in range(12))

    with at_once(), pytest.raises(InputError, match="expected at most 1,000 candidates"):
        grid.of(text_files.parse_toml(f'[[candidate]]\nmethod = "mdav"\n{many}\n', "grid"))


def test_a_mapping_is_refused_like_a_file(policy):
    policy["protect"]["k"] = 10**5000

    with at_once(), pytest.raises(InputError, match=r"policy, protect\.k: expected a number of"):
        plan(policy)


@given(
    text=st.one_of(
        ABSURD,
        st.sampled_from(["1/0", "0/1", "-1", "nan", "inf", "1/1e99999999", "1e99999999/3", "", "/",
                         "1/2/3", "0", "1e-10", "1e10", "epsilon"]),
        st.text(max_size=20).filter(lambda text: not any(mark.isdigit() for mark in text)),
    )
)  # fmt: skip
def test_an_epsilon_that_is_none_is_refused_at_once(text):
    with at_once(), pytest.raises(InputError):
        text_files.parse_epsilon(text)


@pytest.mark.parametrize(("text", "value"), [("0.1", "1/10"), ("1/3", "1/3"), ("2", "2")])
def test_an_epsilon_is_read_exactly(text, value):
    assert str(text_files.parse_epsilon(text)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_ordinary_numbers_stay_as_they_are(value):
    assert text_files.is_ordinary(value)
    assert text_files.parse_toml(f"x = {value:.10f}", "it")["x"] == Decimal(f"{value:.10f}")


# The command line

WORDS = ("nan", "inf", "-inf", "1e400", "-1", "9" * 5000, "1/0", "", "1e-400", "99999999999999")


def options(folder):
    """Every option of the command line that takes a number, with a command to give it to."""
    (folder / "p.toml").write_text(
        POLICY + READING + '[protect]\nmethod = "laplace"\nepsilon = 1\n'
    )
    (folder / "d.csv").write_text("name,age,height,ill\n" + "a,1,2,yes\n" * 40)
    data, stated = folder / "d.csv", ("--policy", folder / "p.toml")
    compare = ("compare", data, *stated, "--out", folder / "out")
    return {
        ("init", "--k"): ("init", data, "--out", folder / "drafted.toml"),
        ("evaluate", "--seed"): ("evaluate", data, data, *stated),
        ("compare", "--jobs"): compare,
        ("compare", "--repeats"): compare,
        ("compare", "--max-risk"): compare,
        ("compare", "--rows"): compare,
        ("compare", "--seed"): compare,
        ("compare", "--private-epsilon"): compare,
        ("audit", "--trials"): ("audit", *stated),
        ("audit", "--confidence"): ("audit", *stated),
        **{
            ("audit", f"--{name}"): ("audit", *stated, "--run", "sort {in}")
            for name in ("epsilon", "delta", "rho", "mu", "seconds", "memory")
        },
        ("studio", "--port"): ("studio", "--no-browser", "--data", folder / "home"),
        ("closeness", "--t"): ("closeness",),
        ("closeness", "--epsilon"): ("closeness",),
        ("closeness", "--k"): ("closeness", "--t=3"),
        ("closeness", "--rows"): ("closeness", "--t=3"),
        ("closeness", "--columns"): ("closeness", "--t=3"),
        ("init", "--epsilon"): ("budget", "init", folder / "b.db", "--source", "s"),
    }


def test_every_number_of_the_command_line_is_tried(tmp_path):
    commands = [*app.registered_commands, *budget.registered_commands]
    found = {
        (command.name or command.callback.__name__, "--" + name.replace("_", "-"))
        for command in commands
        for name, kind in get_type_hints(command.callback).items()
        if {int, float} & {kind, *get_args(kind)}
    }

    assert found <= set(options(tmp_path))
    assert len(found) >= 9


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word[:20])
def test_an_absurd_number_on_the_command_line_is_refused_at_once(tmp_path, word):
    for (command, option), start in options(tmp_path).items():
        if (option, word) == ("--max-risk", "1e-400"):
            continue  # It is 0 to a float, and so to everybody.
        said = refused(*start, f"{option}={word}")

        assert said, (command, option)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "b.db").exists()


# Files that are none


def special(folder, kind):
    path = folder / f"special.{kind}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_a_pipe_a_socket_and_a_device_are_refused_wherever_a_file_is_expected(tmp_path, kind):
    odd = special(tmp_path, kind)
    start = options(tmp_path)
    data, stated = tmp_path / "d.csv", ("--policy", tmp_path / "p.toml")
    protect = ("protect", data, *stated, "--out", tmp_path / "out")
    named = {
        "hierarchy": '[columns.x]\nrole = "quasi-identifier"\nkind = "nominal"\nhierarchy = "{}"\n',
        "recode": '[columns.x]\nrole = "quasi-identifier"\nkind = "nominal"\nrecode = "{}"\n',
    }
    for name, text in named.items():
        (tmp_path / f"{name}.toml").write_text(POLICY + text.format(odd.name) + PROTECT)
    places = [
        ("init", odd, "--out", tmp_path / "new.toml"),
        ("init", data, "--out", odd, "--force"),
        ("protect", odd, *stated, "--out", tmp_path / "out"),
        ("protect", data, "--policy", odd, "--out", tmp_path / "out"),
        ("protect", data, *stated, "--out", odd),
        (*protect, "--control", odd),
        (*protect, "--comparison", odd),
        *(("protect", data, "--policy", tmp_path / f"{name}.toml", "--out", tmp_path / "out")
          for name in named),
        ("check", odd, *stated),
        ("evaluate", odd, data, *stated),
        ("evaluate", data, odd, *stated),
        ("evaluate", data, data, *stated, "--control", odd),
        ("evaluate", data, data, *stated, "--out", odd, "--force"),
        (*start["compare", "--jobs"], "--grid", odd),
        (*start["compare", "--jobs"], "--on-sample", odd),
        ("audit", *stated, "--table", odd),
        ("audit", *stated, "--pair", odd, data),
        ("audit", *stated, "--out", odd, "--force"),
        ("budget", "show", odd),
        ("budget", "init", odd, "--source", "s", "--epsilon", "1"),
    ]  # fmt: skip

    for place in places:
        said = refused(*place)

        assert said.startswith("shoal: "), place
        assert said.count("\n") == 1, place
    assert odd.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"a":' * 9, b"\xff", b"null", b"", b"9" * 5000,
     b'{"candidates": [null], "baselines": []}'],
    ids=lambda content: content[:9].hex(),
)  # fmt: skip
def test_a_comparison_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "c.json").write_bytes(content)
    start = options(tmp_path)["evaluate", "--seed"]

    said = refused("protect", *start[2:], "--out", tmp_path / "out",
                   "--comparison", tmp_path / "c.json")  # fmt: skip

    assert "comparison" in said


CELLS = st.one_of(
    st.integers(-(10**25), 10**25),
    st.booleans(),
    st.floats(),
    st.decimals(allow_nan=False, min_value=-(10**9), max_value=10**9, places=2),
    st.text(max_size=6),
    st.sampled_from(["null", "Infinity", "NaN", "3e5", "{", "\u202e", "\U0001f600", '"', "\n"]),
    st.dates(),
)


@settings(max_examples=300, deadline=None)
@given(st.recursive(CELLS, lambda inner: st.lists(inner, max_size=5), max_leaves=12))
def test_arrays_are_written_as_toml_whatever_they_hold(value):
    def one_by_one(value):
        if isinstance(value, list):
            return f"[{', '.join(map(one_by_one, value))}]"
        return as_toml(value)

    written = as_toml([value])

    assert written == one_by_one([value])
    back = tomllib.loads(f"x = {written}", parse_float=str)["x"]
    assert len(back) == 1

"""The way of the data: few frames from the command to the algorithm, and no needless module."""

import subprocess
import sys
from functools import wraps
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shoal
from shoal import sample
from shoal.cli import commands
from shoal.core import compiler
from shoal.hazmat.noise import CheckedNoise

HOME = str(Path(shoal.__file__).parent)
DRAWS = ("discrete_laplace", "exceeds", "select", "select_many", "respond")
FEW = ("age", "region", "hours", "occupation", "condition")
RULES = {
    "mdav": 'method = "mdav"\nk = 5\n[release]\naccept_distinct = ["weight"]',
    "auto": 'method = "auto"\nepsilon = 1',
    # Particles, and three-way marginals.
    "auto, few columns": 'method = "auto"\nepsilon = 1000',
}


@pytest.fixture
def desk(tmp_path):
    for path in sample.folder().glob("*.csv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    policy = (sample.folder() / "people.toml").read_text().partition("[protect]")[0]
    table = sample.load().head(100)
    for name, rules in RULES.items():
        few = FEW if "few" in name else table.columns
        lines = [
            line
            for line in policy.splitlines()
            if (column := line.split("=")[0].strip()) in few or column not in table.columns
        ]
        text = "\n".join([*lines, "[protect]", rules])
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
        table.select(few).write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def way(frame):
    """Our own frames from the command to this one; nothing, if no command led to it."""
    stack = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(HOME):
            stack.insert(0, f"{code.co_filename.removeprefix(HOME)}: {code.co_name}")
        if code is commands.protect.__code__:
            return tuple(stack)
        frame = frame.f_back
    return ()


@pytest.fixture
def stacks(monkeypatch):
    """The ways to each kernel and each draw of noise, as they are called.

    A compiled kernel has no frame of its own, so that its callers are shown another name for it.
    """
    found = set()

    def traced(function, name):
        @wraps(function)
        def passed_on(*args, **named):
            found.add((*way(sys._getframe(1)), name))
            return function(*args, **named)

        return passed_on

    for method in ("auto", "mdav"):
        import_module(f"shoal.methods.{method}")
    modules = [m for name, m in sys.modules.items() if name.startswith("shoal.")]
    for module in modules:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func") and ".kernels" not in module.__name__:
                monkeypatch.setattr(module, name, traced(value, f"kernel: {name}"))
    for name in DRAWS:
        draw = getattr(CheckedNoise, name)
        monkeypatch.setattr(CheckedNoise, name, traced(draw, f"noise: {name}"))
    return found


@pytest.mark.parametrize(
    ("case", "most", "reached"),
    [
        ("mdav", 8, {"kernel: brute_rounds"}),
        ("auto", 12, {"kernel: descend", "kernel: direction", "noise: discrete_laplace"}),
        (
            "auto, few columns",
            12,
            {"kernel: energies", "kernel: marginals", "kernel: gibbs", "noise: select"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_from_the_command_to_kernels_and_noise_there_are_few_frames(
    desk, stacks, case, most, reached
):
    data, policy, out = (str(desk / f"{case}{end}") for end in (".parquet", ".toml", ""))
    ended = CliRunner().invoke(
        commands.app, ["protect", data, "--policy", policy, "--out", out, "--no-evaluate"]
    )

    assert ended.exit_code == 0, ended.output
    assert reached <= {stack[-1] for stack in stacks}
    longest = max(stacks, key=len)
    assert len(longest) <= most, "\n".join(longest)


def loaded(program, *given, cwd=None):
    """Modules that a program has loaded when it ends."""
    told = f"{program}\nimport sys\nprint(' '.join(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", told, *given], capture_output=True, text=True, check=True, cwd=cwd
    )
    return set(run.stdout.splitlines()[-1].split())


COMMAND = """
import contextlib
from shoal.cli.commands import app
with contextlib.suppress(SystemExit):
    app()
"""


@pytest.mark.parametrize(
    "given",
    [
        ("protect", "mdav.parquet", "--policy", "mdav.toml", "--out", "out", "--no-evaluate"),
        ("check", "mdav.parquet", "--policy", "mdav.toml"),
    ],
    ids=lambda given: given[0],
)
def test_without_evaluation_neither_evaluation_nor_comparison_is_loaded(desk, given):
    modules = loaded(COMMAND, *given, cwd=desk)

    assert (desk / "out").is_dir() == (given[0] == "protect")
    assert "shoal.engine.check_table" in modules
    assert not {name for name in modules if name.startswith("shoal.evaluation")}


def test_the_function_is_there_before_anything_heavy_is_loaded():
    modules = loaded("import shoal; shoal.protect")

    heavy = {
        "jinja2",
        "narwhals",
        "numba",
        "opendp",
        "pandas",
        "pyarrow",
        "pyspark",
        "rich",
        "scipy",
    }
    assert not heavy & modules
    assert not {name for name in modules if name.startswith(("shoal.partition", "shoal.report"))}


def test_the_cache_of_a_kernel_depends_on_the_sources_of_all_kernels(monkeypatch):
    read = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or real(path))
    compiler.sources.__wrapped__()

    written = {path for path in Path(HOME).rglob("*.py") if "kernel\ndef " in path.read_text()}
    assert written
    assert written <= set(read)

import resource
import subprocess
import sys

import pytest

from shoal.errors import InputError, lacks_memory
from shoal.io import memory

DATA = "age,income\n" + "".join(f"{20 + i},{100 * i}\n" for i in range(20))
POLICY = """version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
income = { role = "confidential", kind = "numeric" }
[protect]
method = "mdav"
k = 3
"""


def run(folder, program, *, limit=None):
    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, *program], preexec_fn=limited, capture_output=True, text=True,
        check=False, cwd=folder,
    )  # fmt: skip


@pytest.mark.parametrize("size", [150 << 20, 1 << 30])
def test_too_little_memory_is_a_sentence(tmp_path, size):
    (tmp_path / "people.csv").write_text(DATA)
    (tmp_path / "policy.toml").write_text(POLICY)

    done = run(
        tmp_path,
        ["-m", "shoal", "protect", "people.csv", "--policy", "policy.toml", "--out", "out"],
        limit=size,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("shoal: This process may use ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_table_that_cannot_fit_is_refused_before_it_is_opened(tmp_path):
    with (tmp_path / "people.csv").open("wb") as file:
        file.truncate(1 << 42)

    with pytest.raises(InputError, match=r"needs about 13.2 TB of memory or more, and"):
        memory.refuse_large(tmp_path / "people.csv")


PROGRAM = """
import numpy, typer
from shoal.cli.console import door
app = typer.Typer()

@app.command()
def work():
    with door():
        numpy.ones(1 << 50)

app()
"""


def test_memory_that_runs_out_in_the_middle_is_a_sentence(tmp_path):
    done = run(tmp_path, ["-c", PROGRAM])

    assert done.returncode == 2
    assert done.stderr == (
        "shoal: This machine has too little memory for this table. Use a smaller table, a larger "
        "machine, or --engine spark.\n"
    )


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), True),
        (OSError(12, "x"), True),
        (OSError(28, "No space left"), False),
        (ImportError("libx.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("another"), False),
    ],
)
def test_what_libraries_say_where_memory_runs_out_is_understood(error, lacks):
    assert lacks_memory(error) is lacks

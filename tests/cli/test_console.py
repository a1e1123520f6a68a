"""Between a command and the terminal: interrupts, lost output, arguments that are not text."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal import __main__ as program
from shoal.errors import InputError
from shoal.publish import protect_file

MOMENTS = int(os.environ.get("SHOAL_INTERRUPTS", "4"))
"""How many moments of a run are interrupted; more on a quiet evening."""
DATA = "name,age,income\n" + "".join(f"p{i},{20 + i},{100 * i}\n" for i in range(60))
POLICY = """version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric" }
income = { role = "confidential", kind = "numeric" }
[protect]
method = "individual-ranking"
k = 3
"""
GRID = f'[[candidate]]\nmethod = "mdav"\nk = {list(range(3, 31))}\n'
"""More than a second of work: only then further processes are started."""
PROTECT = ("protect", "people.csv", "--policy", "policy.toml", "--no-evaluate", "--out", "out")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text(DATA)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "shoal", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ours(process):
    """Wait until our first line has run: before it Python takes interrupts in its own way.

    Python catches the signal as soon as it starts, and `shoal.__main__` uncatches it first of all.
    """
    caught = False
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        mask = int(status.partition("SigCgt:")[2].split()[0], 16)
        if caught and not mask >> (signal.SIGINT - 1) & 1:
            return
        caught = caught or bool(mask >> (signal.SIGINT - 1) & 1)
        time.sleep(0.001)


def quiet(text):
    return "Traceback" not in text and "Exception ignored" not in text


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@linux
def test_an_interrupt_at_any_moment_shows_no_traceback_and_never_exits_with_0(folder):
    whole = start(folder, *PROTECT)
    ours(whole)
    began = time.monotonic()
    whole.communicate()
    took = time.monotonic() - began
    assert whole.returncode == 0
    for moment in range(MOMENTS):
        out = f"out{moment}"
        process = start(folder, *PROTECT[:-1], out)
        ours(process)
        time.sleep(took * moment / MOMENTS)
        running = process.poll() is None
        os.killpg(process.pid, signal.SIGINT) if running else None
        _, said = process.communicate(timeout=120)

        assert quiet(said), (moment, said)
        if running:
            assert process.returncode in {130, -signal.SIGINT}, (moment, said)
        left = {path.name for path in folder.iterdir()}
        # The public folder comes first, and may stand alone; the other never does.
        assert out in left or f"{out}.internal" not in left
        assert not [name for name in left if name.startswith(f".{out}")] or process.returncode < 0


@linux
def test_an_interrupt_while_workers_start_shows_no_traceback(folder):
    process = start(folder, "compare", "people.csv", "--policy", "policy.toml", "--grid",
                    "grid.toml", "--out", "out", "--jobs", "2", "--repeats", "9")  # fmt: skip
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and len(children.read_text().split()) < 2:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)

    assert process.returncode == 130
    assert quiet(said), said
    assert "finished results are kept in out" in said


PROGRAM = """
import signal, sys, typer
from shoal.cli.console import door
app = typer.Typer()

class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

@app.command()
def work():
    with door():
        {body}

app()
"""
IMPORTING = """
        from pathlib import Path
        Path("half.py").write_text(
            "import signal; signal.raise_signal(signal.SIGINT)\\n"
            "from pathlib import Path; Path('whole').touch()"
        )
        import half
        while True: pass
"""
SWALLOWED = "try: signal.raise_signal(signal.SIGINT)\n        except BaseException: pass"
FINALISER = "Last()\n        while True: pass"
RAISED = (  # A process that stayed would hold the pipes, and the program would not seem to end.
    "import subprocess; subprocess.Popen(['sleep', '600'])\n"
    "        signal.raise_signal(signal.SIGINT)"
)
CONVERTED = (
    "try: signal.raise_signal(signal.SIGINT)\n"
    "        except BaseException: raise ValueError('CANARY') from None"
)
STUCK = """
        import os, threading
        from pathlib import Path
        from shoal.core.jit import kernel
        from shoal.io import folders
        @kernel
        def endless(steps):
            while steps > 0:
                steps += 1
                if steps > 1000:
                    steps = 1
            return steps
        os.environ["TMPDIR"] = "."
        with folders.workplace(Path("out")) as place, folders.temporary():
            (place / "old.internal").mkdir()
            (place / "new").mkdir()
            endless(0)
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            endless(1)
"""


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (RAISED, "shoal: interrupted; nothing half-written was left behind: "),
        (CONVERTED, "shoal: interrupted; nothing half-written was left behind: "),
        (FINALISER, "shoal: interrupted; nothing half-written was left behind: "),
        (SWALLOWED, "shoal: interrupted, but the work was already done"),
        (STUCK, "shoal: interrupted; nothing half-written was left behind: "),
        (IMPORTING, "shoal: interrupted; nothing half-written was left behind: "),
    ],
)
def test_an_interrupt_is_obeyed_and_told_whatever_a_library_makes_of_it(body, sentence, tmp_path):
    program = tmp_path / "program.py"  # a kernel needs a file
    program.write_text(PROGRAM.format(body=body))
    done = subprocess.run(
        [sys.executable, program.name],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
    )  # fmt: skip

    assert done.returncode == 130
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    left = {path.name for path in tmp_path.iterdir()} - {"program.py", "__pycache__"}
    # Put back, the rest removed; an import is never left half done.
    assert left == {STUCK: {"out.internal"}, IMPORTING: {"half.py", "whole"}}.get(body, set())


def test_who_stops_reading_the_output_sees_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()

    assert process.wait() == 141
    assert not said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_sentence():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "shoal", "schema"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == "shoal: Cannot write the output: no space left on device.\n"


@pytest.mark.parametrize("place", [1, 3, 6])
def test_a_path_that_is_no_text_is_refused_by_the_command(folder, place):
    words = [word.encode() for word in PROTECT]
    words[place] = b"caf\xe9.csv"
    (folder / os.fsdecode(b"caf\xe9.csv")).write_text(DATA)

    done = subprocess.run(
        [sys.executable, "-m", "shoal", *words], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == (
        "shoal: Expected UTF-8 text on the command line, found 'caf\\xe9.csv'. Rename the file.\n"
    )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_path_that_is_no_text_is_refused_by_the_library(folder, place):
    paths = [folder / "people.csv", folder / "policy.toml", folder / "out"]
    paths[place] = folder / os.fsdecode(b"caf\xe9")
    before = sorted(folder.iterdir())

    with pytest.raises(InputError, match=r"Expected a path in UTF-8, found '.*caf\\xe9'"):
        protect_file.protect(*paths)
    assert sorted(folder.iterdir()) == before


def test_linear_algebra_has_one_thread_unless_somebody_says_otherwise(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["shoal", "--version"])
    interrupt = signal.getsignal(signal.SIGINT)

    for said, expected in ((None, "1"), ("4", "4")):
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        if said:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", said)
        with pytest.raises(SystemExit):
            program.main()
        signal.signal(signal.SIGINT, interrupt)

        assert os.environ["OPENBLAS_NUM_THREADS"] == expected


@pytest.mark.parametrize(("asked", "shown"), [([], False), (["-Wdefault"], True)])
def test_warnings_of_libraries_reach_the_terminal_only_if_python_is_asked_for_them(asked, shown):
    code = """
import warnings
from shoal import __main__, cli
from shoal.cli import commands
commands.main = lambda: warnings.warn("invalid value encountered", RuntimeWarning)
__main__.main()
"""
    done = subprocess.run([sys.executable, *asked, "-c", code], capture_output=True, text=True,
                          check=True)  # fmt: skip

    assert ("invalid value" in done.stderr) is shown

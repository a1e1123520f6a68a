"""Run somebody else's program on a table, and keep all that it shows.

A program is a command, or a function of a frame. A command runs in a process of its own: with an
empty home and an empty folder for temporary files, which are removed afterwards, and with limits of
time and memory. It is limited, not sandboxed: it may read and write whatever its user may.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from shoal.errors import InputError
from shoal.io import folders

GIBIBYTE = 1 << 20  # in the kibibytes of ulimit
MOST = 1_000_000
"""Seconds or gibibytes of a run, at most."""
_TIMED_OUT = 124
"""The exit code that a run counts with which was stopped, as of the command timeout."""
_SHOWN = 300


@dataclass(frozen=True, eq=False)
class Output:
    """All that one run showed.

    Attributes:
        frames: the tables that it wrote, by the names of their files.
        sizes: of all files, in bytes.
        text: what it printed, without the names of its folders.
        code: its exit code.
    """

    frames: Mapping[str, pl.DataFrame]
    sizes: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    code: int = 0


Program = Callable[[pl.DataFrame], Output]


@dataclass(frozen=True)
class RunLimits:
    """What one run of a command may take.

    Attributes:
        seconds: until it is ended.
        memory: of each of its processes, in gibibytes; not limited where there is no sh.
    """

    seconds: float = 60
    memory: float = 4

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= MOST or not 0 < self.memory <= MOST:
            raise InputError(
                f"The limits of a run, in seconds and gibibytes, must be positive and at most "
                f"{MOST:,}; found {self.seconds:g} and {self.memory:g}."
            )


def command_program(command: str, limits: RunLimits) -> Program:
    """Make a program of a command.

    Args:
        command: with {in} for the CSV file that it reads, and {out} for the file or folder that it
            writes; without {out}, what it prints is the table. No shell reads it.
        limits: of each run.

    Raises:
        InputError: the command has no {in}, or there is no such program.
    """
    words = shlex.split(command)
    if not any("{in}" in word for word in words):
        raise InputError(
            "--run: expected {in} where the program is told its input, as in "
            "'python my_program.py {in} {out}'."
        )
    if shutil.which(words[0]) is None:
        raise InputError(f"--run: there is no program '{words[0]}' on the path.")
    shell = shutil.which("sh")
    limit = f'ulimit -v {int(limits.memory * GIBIBYTE)}; exec "$0" "$@"'
    prefix = [shell, "-c", limit] if shell else []

    def run(table: pl.DataFrame) -> Output:
        with folders.temporary("audit-") as place:
            for name in ("home", "tmp", "out"):
                (place / name).mkdir()
            table.write_csv(place / "in.csv")
            stand = {"{in}": str(place / "in.csv"), "{out}": str(place / "out" / "out.csv")}
            told = [_fill(word, stand) for word in words]
            text, code = _execute([*prefix, *told], place, limits.seconds)
            for folder in stand.values():
                text = text.replace(folder, "")
            return _read_output(place / "out", text.replace(str(place), ""), code)

    return run


def _fill(word: str, stand: Mapping[str, str]) -> str:
    for mark, path in stand.items():
        word = word.replace(mark, path)
    return word


def _execute(command: list[str], place: Path, seconds: float) -> tuple[str, int]:
    """Run a command; return what it printed and its exit code."""
    fresh = {name: str(place / "tmp") for name in ("TMPDIR", "TEMP", "TMP")}
    fresh |= {name: str(place / "home") for name in ("HOME", "USERPROFILE")}
    fresh |= {f"XDG_{kind}_HOME": str(place / "home" / kind.lower())
              for kind in ("CACHE", "CONFIG", "DATA", "STATE")}  # fmt: skip
    process = subprocess.Popen(  # noqa: S603 (the user's own command)
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **fresh},
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        _end(process)
        text, _ = process.communicate()
        code = _TIMED_OUT
    except BaseException:
        _end(process)
        raise
    return text.decode(errors="replace"), code


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all that it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _read_output(folder: Path, text: str, code: int) -> Output:
    """Read the files of a run; a file that is no table counts by its size and its name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    frames = {}
    for path in files:
        frame = _read_table(path.read_bytes())
        if frame is not None:
            frames[path.relative_to(folder).as_posix()] = frame
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    if not files and (printed := _read_table(text.strip().encode())) is not None:
        frames["output"] = printed
    return Output(frames, sizes, text, code)


def _read_table(content: bytes) -> pl.DataFrame | None:
    """Read a table from the bytes of a Parquet or CSV file; None if it is neither."""
    try:
        if content.startswith(b"PAR1"):
            return pl.read_parquet(content)
        return pl.read_csv(content, infer_schema_length=None) if content.strip() else None
    except (pl.exceptions.PolarsError, OSError):
        return None


def function_program(function: Callable[[pl.DataFrame], Any]) -> Program:
    """Make a program of a function of a Polars frame, which returns a frame, or a number.

    What it raises is an exit code of 1 and the text of the error, since that shows, too.
    """

    def run(table: pl.DataFrame) -> Output:
        try:
            made = function(table.clone())
        except Exception as error:  # noqa: BLE001 (whatever a program may raise is its output)
            return Output({}, text=f"{type(error).__name__}: {error}", code=1)
        if isinstance(made, int | float):
            return Output({"output": pl.DataFrame({"output": [float(made)]})})
        return Output({"output": nw.from_native(made, eager_only=True).to_polars()})

    return run


def refuse_broken(output: Output) -> None:
    """Refuse a program that shows no table and fails, before time is spent on it."""
    if output.code and not output.frames:
        last = output.text.strip().splitlines()[-1:] or ["it printed nothing"]
        raise InputError(
            f"The program ended with exit code {output.code} on an invented table of the policy's "
            f"columns: {last[0][:_SHOWN]}"
        )

"""Apply each mutant to a copy of the source, and run the tests that should catch it.

    python tests/mutants/run.py [--only PATTERN] [--jobs N] [--at-once]

A mutant is a privacy bug: one text of `src/shoal` replaced by another, as `records/*.toml` say. Its
tests first have to pass on the source as it is. The table says which test caught it. The exit code
is 1 if a mutant survives, if its text does not occur exactly once, or if its tests do not run.

The copy keeps the times of files, so compiled kernels of files that are not changed are loaded
from their cache, and those of a changed file are compiled again.
"""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Mutant:
    """A privacy bug, and who should notice it.

    Attributes:
        kind: what it breaks, such as noise or accounting: the name of its file.
        file: in `src/shoal`.
        old: a text that occurs once in the file.
        new: what stands there instead.
        tests: pytest's names of tests, at least one of which must fail.
        why: what the bug gives away, in a few words.
    """

    name: str
    kind: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def source(self, root: Path = ROOT) -> Path:
        """The file that is changed."""
        return root / "src" / "shoal" / self.file

    def applied(self, text: str) -> str:
        """The text of the file with the bug in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"its text occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """How the tests of a mutant ended.

    Attributes:
        caught: whether one failed.
        by: the first that failed, or what went wrong.
    """

    mutant: Mutant
    caught: bool
    by: str
    seconds: float


def mutants() -> tuple[Mutant, ...]:
    """All records, by file and in their order there."""
    found = []
    for path in sorted(RECORDS.glob("*.toml")):
        record = tomllib.loads(path.read_text(encoding="utf-8"))
        for one in record["mutant"]:
            tests = tuple(one.pop("tests"))
            found.append(Mutant(kind=path.stem, tests=tests, **one))
    return tuple(found)


def copied(folder: Path) -> Path:
    """Copy what tests need, with the times of its files."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


class Tested:
    """Tests that run on a copy, in a child that has all libraries and nothing of ours.

    Args:
        copy: the source and the tests.
        tests: pytest's names.
    """

    def __init__(self, copy: Path, tests: Sequence[str]) -> None:
        self._output = copy / "output.txt"
        self.start = time.monotonic()
        self._code: int | None = None
        sys.stdout.flush()
        self._child = os.fork()
        if self._child == 0:
            code = 3
            try:
                code = _tested_here(copy, tests, self._output)
            finally:
                os._exit(code)

    def ended(self, seconds: float) -> bool:
        """Whether they came to an end, in the time that they have."""
        if self._code is None:
            done, status = os.waitpid(self._child, os.WNOHANG)
            if done:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() - self.start > seconds:
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
                self._code = -1
        return self._code is not None

    @property
    def result(self) -> tuple[int, str]:
        """Pytest's exit code, and the first test that failed or else its last line."""
        text = self._output.read_text(encoding="utf-8", errors="replace").strip()
        failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", text, re.MULTILINE)
        last = failed[1] if failed else text.rsplit("\n", 1)[-1]
        return self._code or 0, "no end in time" if self._code == -1 else last


def _tested_here(copy: Path, tests: Sequence[str], output: Path) -> int:
    """Run tests in this process until one fails."""
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(target, standard)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    os.environ.setdefault("SHOAL_DATA", str(ROOT.parent / "shared" / "data"))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["SHOAL_EXAMPLES"] = "mutants"
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy / "src"))
    quiet = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", f"--rootdir={copy}"]
    try:
        return int(pytest.main([*quiet, *tests]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Judged:
    """A mutant in a copy, while its tests run."""

    def __init__(self, mutant: Mutant, copy: Path) -> None:
        self.mutant, self.copy = mutant, copy
        self._path = mutant.source(copy)
        self._original = self._path.read_text(encoding="utf-8")
        self._times = self._path.stat().st_atime_ns, self._path.stat().st_mtime_ns
        self._wrong = ""
        try:
            self._path.write_text(mutant.applied(self._original), encoding="utf-8")
        except ValueError as error:
            self._wrong = str(error)
        self._tested = Tested(copy, () if self._wrong else mutant.tests)

    def ended(self, seconds: float) -> bool:
        """Whether its tests came to an end."""
        return self._tested.ended(seconds)

    def outcome(self) -> Outcome:
        """Take the bug out again, and say who caught it."""
        self._path.write_text(self._original, encoding="utf-8")
        os.utime(self._path, ns=self._times)
        code, by = self._tested.result
        if self._wrong or code not in {0, 1}:
            code, by = 0, f"does not run: {self._wrong or by}"
        elif code == 0:
            by = "survived"
        return Outcome(self.mutant, code == 1, by, time.monotonic() - self._tested.start)


def judged(chosen: Sequence[Mutant], copies: Sequence[Path], seconds: float) -> Iterator[Outcome]:
    """Judge mutants, as many at a time as there are copies."""
    waiting, free, running = list(chosen), list(copies), list[Judged]()
    while waiting or running:
        while waiting and free:
            running.append(Judged(waiting.pop(0), free.pop()))
        for one in [one for one in running if one.ended(seconds)]:
            running.remove(one)
            free.append(one.copy)
            yield one.outcome()
        time.sleep(0.02)


def pass_as_they_are(chosen: Sequence[Mutant], copy: Path, seconds: float) -> bool:
    """Whether all tests pass without a mutant."""
    every = Tested(copy, list(dict.fromkeys(test for one in chosen for test in one.tests)))
    while not every.ended(100 * seconds):
        time.sleep(0.1)
    code, by = every.result
    if code:
        print(f"The tests do not pass as it is: {by}")
    return code == 0


def main() -> int:
    """Judge the mutants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants whose name or file has this pattern")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300, help="time limit of each")
    parser.add_argument("--at-once", action="store_true", help="do not test as it is first")
    options = parser.parse_args()
    chosen = [m for m in mutants() if re.search(options.only, f"{m.name} {m.file}")]
    with tempfile.TemporaryDirectory(prefix="shoal-mutants-") as place:
        copies = [copied(Path(place) / str(number)) for number in range(options.jobs)]
        if not options.at_once and not pass_as_they_are(chosen, copies[0], options.seconds):
            return 1
        print("| mutant | file | caught by | seconds |\n|---|---|---|---|", flush=True)
        missed = []
        for found in judged(chosen, copies, options.seconds):
            by = found.by.rsplit("/", 1)[-1]
            named = f"| {found.mutant.name} | {found.mutant.file} | {by}"
            print(f"{named} | {found.seconds:.1f} |", flush=True)
            missed += [] if found.caught else [found]
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} mutants were caught.")
    for found in missed:
        print(f"NOT CAUGHT {found.mutant.name}: {found.by}. {found.mutant.why}")
    return 1 if missed else 0


if __name__ == "__main__":
    for library in ("numba", "opendp.measurements", "pandas", "polars", "pyarrow",
                    "pydantic", "scipy.optimize", "scipy.stats", "typer.testing"):  # fmt: skip
        import_module(library)
    sys.exit(main())

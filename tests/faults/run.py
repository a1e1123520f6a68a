"""Kill a command, or refuse it the disk, at every file-changing call; then run it once more.

    python tests/faults/run.py [--by strace|hooks] [--only TEXT] [--every N]

Each scene is a command in a folder of its own. One run without a fault lists the calls that change
files. Then for each of them a run is killed there (SIGKILL), and in one the disk is full
(ENOSPC; EIO where data is flushed). After each, and after one more run of the same command, what
`broken` lists must hold.

`strace` injects faults into system calls, those of Polars and SQLite too. `hooks` needs no tool: it
counts what Python itself does, by audit events. Runs are forked from this process, which has loaded
everything and drawn nothing. The exit code is 1 if a promise is broken.
"""

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# All that a command loads is loaded before the first fork, and nothing is computed.
import opendp.measurements

from shoal.budget import budget_file
from shoal.cli import commands
from shoal.errors import InputError
from shoal.evaluation import evaluate
from shoal.evaluation.comparison import compare
from shoal.methods import REGISTRY
from shoal.pipeline import protect_table
from shoal.publish import evidence, protect_file

LOADED = (
    opendp.measurements,
    compare,
    protect_file,
    protect_table,
    evaluate,
    evidence,
    *REGISTRY.values(),
)
CALLS = (
    "openat", "creat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat",
    "rmdir", "write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "chmod", "fchmod",
    "fchmodat", "link", "linkat", "symlink",
)  # fmt: skip
EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link",
                    "os.symlink", "os.truncate", "os.fsync"})  # fmt: skip
KILL, FULL = "kill", "full disk"
LIMIT = 30.0  # seconds a run may take
HUNG = 124  # stands for the exit code of a run that took longer

POLICY = """
version = 1
[columns]
name = "identifier"
age = {{ role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }}
region = {{ role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }}
[reading]
delimiter = ","
decimal = "."
[protect]
{protect}
{budget}
"""
LEDGER = '[budget]\nfile = "budget.db"\nsource = "people"\n'
PRIVATE = 'method = "laplace"\nepsilon = 0.1'
GROUPED = 'method = "insensitive"\nk = 3'


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        code: of its exit; none if it was killed.
    """

    code: int | None
    output: str


@dataclass(frozen=True)
class Call:
    """A file-changing call: the how-many-th of its name in its thread."""

    name: str
    number: int


@dataclass(frozen=True)
class Scene:
    """A command, what is there before it, and what it leaves.

    Attributes:
        arguments: of the command; `{}` is the folder.
        first: commands before it.
        leaves: names that may be in the folder afterwards.
    """

    name: str
    arguments: tuple[str, ...]
    leaves: frozenset[str]
    protect: str = PRIVATE
    budget: bool = False
    first: tuple[tuple[str, ...], ...] = ()
    releases: bool = True
    inputs: frozenset[str] = frozenset({"people.csv", "policy.toml", "grid.toml"})

    def prepare(self, folder: Path) -> None:
        """Write the inputs and run what comes before."""
        rows = [f"p{i},{20 + 2 * i},{'north' if i % 2 else 'south'}" for i in range(40)]
        (folder / "people.csv").write_text("\n".join(["name,age,region", *rows, ""]))
        budget = LEDGER if self.budget else ""
        (folder / "policy.toml").write_text(POLICY.format(protect=self.protect, budget=budget))
        (folder / "grid.toml").write_text('[[candidate]]\nmethod = "insensitive"\nk = [3, 4]\n')
        for arguments in self.first:
            done = forked(folder, arguments)
            if done.code != 0:
                raise RuntimeError(f"{self.name}: {arguments} ended with {done}.")


INIT = ("budget", "init", "{}/budget.db", "--source", "people", "--epsilon", "5")
PROTECT = ("protect", "{}/people.csv", "--policy", "{}/policy.toml", "--out", "{}/out",
           "--no-evaluate")  # fmt: skip
COMPARE = ("compare", "{}/people.csv", "--policy", "{}/policy.toml", "--out", "{}/compared",
           "--grid", "{}/grid.toml", "--jobs", "1", "--repeats", "1")  # fmt: skip
RELEASE = frozenset({"out", "out.internal"})
KEPT = "out.unfinished"
"""Where a release is kept that is paid for and could not be put in place."""
FINISH = ("finish", "{}/out", "--force")
REPORT = ("report", "{}/out", "{}/people.csv", "--policy", "{}/policy.toml", "--no-evaluate")
SCENES = (
    Scene("protect", PROTECT, RELEASE, protect=GROUPED),
    Scene("protect --force", (*PROTECT, "--force"), RELEASE, protect=GROUPED, first=(PROTECT,)),
    Scene("protect, budget", PROTECT, RELEASE | {"budget.db"}, budget=True, first=(INIT,)),
    Scene("protect --force, budget", (*PROTECT, "--force"), RELEASE | {"budget.db"}, budget=True,
          first=(INIT, PROTECT)),
    Scene("budget init", INIT, frozenset({"budget.db"}), releases=False),
    Scene("compare, budget", COMPARE, frozenset({"compared", "budget.db"}), protect=GROUPED,
          budget=True, first=(INIT,), releases=False),
)  # fmt: skip


# Running, with faults or without.


def forked(
    folder: Path, arguments: tuple[str, ...], *, hook: Callable[[], None] | None = None,
    wait: Callable[[int], Any] | None = None,
) -> Ended:  # fmt: skip
    """Run a command in a child; `hook` is set up in it, `wait` sees its number before it starts."""
    outputs = folder.parent / f"{folder.name}.output"
    gate, opened = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(opened)
            target = os.open(outputs, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for standard in (1, 2):
                os.dup2(target, standard)
            os.chdir(folder)
            os.read(gate, 1)
            if hook is not None:
                hook()
            code = _command([part.format(folder) for part in arguments])
        finally:
            os._exit(code)
    os.close(gate)
    tracer = wait(child) if wait is not None else None
    os.close(opened)
    status = _waited(child)
    if tracer is not None:
        tracer.wait()
    code = os.waitstatus_to_exitcode(status)
    return Ended(None if code == -signal.SIGKILL else code, outputs.read_text(errors="replace"))


def _command(arguments: list[str]) -> int:
    """What the console script does, and what Python does about what it raises."""
    sys.argv = ["shoal", *arguments]
    try:
        commands.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # noqa: BLE001 (the last line of defence of the interpreter)
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        with contextlib.suppress(OSError):
            sys.stderr.flush()
    return 0


def _waited(child: int) -> int:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HUNG << 8


@dataclass
class Hooks:
    """Faults by audit events of Python, and at `os.fsync`, which has none."""

    name = "hooks"

    def calls(self, folder: Path, arguments: tuple[str, ...]) -> list[Call]:
        """The events of one run, in their order."""
        log = folder.parent / f"{folder.name}.events"
        done = forked(folder, arguments, hook=lambda: _hooked(folder, None, "", log))
        if done.code != 0:
            raise RuntimeError(f"A run without a fault ended with {done}.")
        seen: Counter[str] = Counter()
        found = []
        for line in log.read_text().splitlines():
            seen[line] += 1
            found.append(Call(line, seen[line]))
        return found

    def run(self, folder: Path, arguments: tuple[str, ...], call: Call, fault: str) -> Ended:
        """A run with one fault."""
        return forked(folder, arguments, hook=lambda: _hooked(folder, call, fault, None))


def _hooked(folder: Path, call: Call | None, fault: str, log: Path | None) -> None:
    """Count events about files of a folder; fail at one, or write down all."""
    seen: Counter[str] = Counter()
    lines = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def audit(event: str, details: tuple[Any, ...]) -> None:
        if event not in EVENTS or not _changes(event, details, folder):
            return
        seen[event] += 1
        if lines is not None:
            os.write(lines, f"{event}\n".encode())
        if call is not None and (event, seen[event]) == (call.name, call.number):
            if fault == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            number = errno.EIO if "sync" in event else errno.ENOSPC
            raise OSError(number, os.strerror(number))

    sync = os.fsync

    def fsync(descriptor: Any) -> None:
        audit("os.fsync", (str(folder),))
        sync(descriptor)

    os.fsync = fsync
    sys.addaudithook(audit)


def _changes(event: str, details: tuple[Any, ...], folder: Path) -> bool:
    paths = [part for part in details if isinstance(part, str | bytes | os.PathLike)]
    if event == "open" and not (details[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return False
    # What is removed relative to an open folder has no whole path.
    named = [Path(os.fsdecode(path)) for path in paths]
    return any(not path.is_absolute() or str(folder) in str(path) for path in named)


@dataclass
class Strace:
    """Faults by strace, in every system call that changes a file, whoever makes it."""

    name = "strace"
    log: Path = field(default_factory=lambda: Path(tempfile.mkdtemp()) / "calls")

    def calls(self, folder: Path, arguments: tuple[str, ...]) -> list[Call]:
        """The calls of one run that change a file of the folder, each sort once a number."""
        watch = ["-y", "-o", str(self.log), "-e", f"trace={','.join(CALLS)}"]
        done = forked(folder, arguments, wait=lambda child: _attached(child, watch))
        if done.code != 0:
            raise RuntimeError(f"A run without a fault ended with {done}.")
        seen: Counter[tuple[str, str]] = Counter()
        found: dict[Call, None] = {}
        for line in self.log.read_text(errors="replace").splitlines():
            made = re.match(r"(\d+)\s+(\w+)\(", line)
            if made is None:
                continue
            thread, name = made.groups()
            seen[thread, name] += 1
            read_only = name == "openat" and not re.search(r"O_(WRONLY|RDWR|CREAT)", line)
            if str(folder) + "/" in line and not read_only:
                found[Call(name, seen[thread, name])] = None
        return list(found)

    def run(self, folder: Path, arguments: tuple[str, ...], call: Call, fault: str) -> Ended:
        """A run with one fault."""
        error = "EIO" if "sync" in call.name else "ENOSPC"
        how = "signal=KILL" if fault == KILL else f"error={error}"
        inject = ["-o", "/dev/null", "-e", f"trace={call.name}"]
        inject += ["-e", f"inject={call.name}:{how}:when={call.number}"]
        return forked(folder, arguments, wait=lambda child: _attached(child, inject))


def _attached(child: int, options: list[str]) -> subprocess.Popen[bytes]:
    tracer = subprocess.Popen(["strace", "-f", "-qq", *options, "-p", str(child)],
                              stderr=subprocess.DEVNULL)  # fmt: skip
    traced = Path(f"/proc/{child}/status")
    for _ in range(2000):
        if "TracerPid:\t0\n" not in traced.read_text() or tracer.poll() is not None:
            break
        time.sleep(0.002)
    return tracer


# What must hold.


@dataclass(frozen=True)
class State:
    """What a folder holds.

    Attributes:
        public: when the release was written, to the nanosecond: two runs never agree.
        internal: the same of the internal folder.
        entries: of the budget file.
        whole: no part of a release is public.
    """

    public: int | None
    internal: int | None
    entries: int
    whole: bool


def state(folder: Path) -> State:
    """Look at a folder: which release, with which internal folder, and how much was booked."""
    public, internal = folder / "out", folder / "out.internal"
    return State(
        public=_written(public / "manifest.json"),
        internal=_written(internal / "figures.json"),
        entries=_entries(folder),
        whole=not public.exists() or _whole(public),
    )


def _written(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _whole(public: Path) -> bool:
    """Whether a public folder has all its files, as its manifest says."""
    try:
        files = json.loads((public / "manifest.json").read_text())["files"]
    except (OSError, ValueError, KeyError):
        return False
    names = {path.name for path in public.iterdir()}
    same = all(
        name in names and hashlib.sha256((public / name).read_bytes()).hexdigest() == one["sha256"]
        for name, one in files.items()
    )
    return same and {"manifest.json", "report.html", *files} == names


def _entries(folder: Path) -> int:
    path = folder / "budget.db"
    if not path.exists() or not path.stat().st_size:
        return 0
    try:
        accounts = budget_file.show(path)
    except InputError:
        # Undone to nothing, as it was before the first `budget init`.
        return 0 if not path.stat().st_size else -1
    if any(account.spent > account.granted for account in accounts):
        raise AssertionError("more was spent than granted")
    return sum(len(account.entries) for account in accounts)


def broken(scene: Scene, folder: Path, before: State, ended: Ended, fault: str) -> Iterator[str]:
    """The promises that do not hold after a fault."""
    after = state(folder)
    yield from _ended(ended, fault)
    if not after.whole:
        yield "a part of a release is public"
    if after.entries < before.entries:
        yield "the budget file is damaged, or forgot"
    booked = after.entries - before.entries
    if booked > 1:
        yield f"{booked} entries for one run"
    new = after.public not in {None, before.public}
    if scene.budget and scene.releases and new and not booked:
        yield "a release without its entry"
    if fault == FULL:
        yield from _after_an_error(scene, folder, before, after, ended)
    else:
        yield from _after_a_kill(scene, folder)


def _ended(ended: Ended, fault: str) -> Iterator[str]:
    if ended.code not in {None, 0, 2, 3}:
        yield f"exit code {ended.code}"
    if "Traceback" in ended.output:
        yield "a traceback"
    if ended.code is None and fault != KILL:
        yield "killed, and not by us"


def _after_a_kill(scene: Scene, folder: Path) -> Iterator[str]:
    for path in _litter(scene, folder):
        if not path.name.startswith(".") and "journal" not in path.name:
            yield "what a killed run left is not hidden"
        elif path.is_dir() and stat.S_IMODE(path.stat().st_mode) != 0o700:
            yield "what a killed run left can be read by others"


def _after_an_error(
    scene: Scene, folder: Path, before: State, after: State, ended: Ended
) -> Iterator[str]:
    """What a run that could clean up must have cleaned up, and said."""
    if before.public and not after.public:
        yield "the old release is gone"
    apart = (after.public == before.public) != (after.internal == before.internal)
    if apart and after.internal is not None:
        yield "public and internal folder are of two runs"
    for path in _litter(scene, folder):
        kept = path.name == KEPT and "is kept" in ended.output and scene.protect == PRIVATE
        if not path.name.startswith(".") and not kept:
            yield "litter after an error"
    if ended.code == 0 or not scene.releases:
        return
    booked = after.entries - before.entries
    told = "spent" in ended.output and "Nothing was spent" not in ended.output
    if booked and scene.budget and not told and scene.protect == PRIVATE:
        yield "epsilon was spent, unsaid"
    if not booked and told:
        yield "epsilon was not spent, and the error says so"


def broken_in_the_end(scene: Scene, folder: Path, before: State, ended: Ended) -> Iterator[str]:
    """The promises that do not hold after one more run without a fault."""
    after = state(folder)
    if ended.code not in {0, 2}:
        yield f"the next run: exit code {ended.code}"
    if "Traceback" in ended.output:
        yield "the next run: a traceback"
    if scene.releases and (after.public is None or not after.whole):
        yield "the next run: no whole release"
    if scene.releases and after.internal is None:
        yield "the next run: a release without its internal folder"
    if scene.releases and (after.public == before.public) != (after.internal == before.internal):
        yield "the next run: public and internal folder are of two runs"
    litter = sorted(re.sub(r"\.[a-z0-9_]{8}$", ".*", p.name) for p in _litter(scene, folder))
    if litter:
        yield f"the next run: it leaves {', '.join(dict.fromkeys(litter))}"


def _litter(scene: Scene, folder: Path) -> list[Path]:
    """What is there beside the command's own files.

    A lock may stay, since nobody may unlink it, and SQLite's journal until the next booking.
    """
    own = scene.leaves | scene.inputs
    stays = (".lock", ".db-journal")
    return [p for p in folder.iterdir() if p.name not in own and not p.name.endswith(stays)]


# The whole.


def met(scene: Scene, by: Hooks | Strace, *, every: int = 1) -> Iterator[tuple[Call, str, str]]:
    """Run a scene with faults: the call, the fault, and a promise that it broke, or ""."""
    with tempfile.TemporaryDirectory(prefix="shoal-faults-") as place:
        ready = Path(place) / "ready"
        ready.mkdir()
        scene.prepare(ready)
        before = state(ready)

        def copied(name: str) -> Path:
            folder = Path(place) / name
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ready, folder)
            return folder

        calls = by.calls(copied("counted"), scene.arguments)
        for number, call in enumerate(calls):
            for fault, first in ((KILL, 0), (FULL, every // 2)):
                if number % every != first:
                    continue
                folder = copied("faulty")
                ended = by.run(folder, scene.arguments, call, fault)
                if ended.code == HUNG and call.name == "write":
                    continue  # It hit a thread that wakes another by a write, not a file.
                found = list(broken(scene, folder, before, ended, fault))
                again = next_run(scene, folder)
                found += broken_in_the_end(scene, folder, before, again)
                yield from ((call, fault, one) for one in found or [""])


def next_run(scene: Scene, folder: Path) -> Ended:
    """What a person does next: what the last run said, or the same command once more."""
    ended = forked(folder, FINISH if (folder / KEPT).exists() else scene.arguments)
    if scene.releases and ended.code in {0, 2} and (folder / "out").exists():
        internal = folder / "out.internal"
        return ended if internal.exists() else forked(folder, REPORT)
    return ended


def main() -> int:
    """Meet the faults and print what broke."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=["strace", "hooks"])
    parser.add_argument("--only", default="", help="scenes whose name holds this text")
    parser.add_argument("--every", type=int, default=1, help="of so many faults take one")
    options = parser.parse_args()
    by: Hooks | Strace = Hooks()
    if options.by == "strace" or (options.by is None and shutil.which("strace")):
        by = Strace()
    print(f"Faults by {by.name}.\n")
    print("| scene | fault | faults | that broke a promise | seconds |\n|---|---|---|---|---|")
    wrong: Counter[tuple[str, str, str]] = Counter()
    where: dict[tuple[str, str, str], list[str]] = {}
    for scene in SCENES:
        if options.only not in scene.name:
            continue
        start, runs = time.monotonic(), {KILL: set(), FULL: set()}
        bad: dict[str, set[Call]] = {KILL: set(), FULL: set()}
        for call, fault, promise in met(scene, by, every=options.every):
            runs[fault].add(call)
            if promise:
                bad[fault].add(call)
                wrong[scene.name, fault, promise] += 1
                at = where.setdefault((scene.name, fault, promise), [])
                at.append(f"{call.name} {call.number}")
        seconds = (time.monotonic() - start) / 2
        for fault in (KILL, FULL):
            print(f"| {scene.name} | {fault} | {len(runs[fault])} | {len(bad[fault])} | "
                  f"{seconds:.0f} |", flush=True)  # fmt: skip
    for (scene_name, fault, promise), times in sorted(wrong.items()):
        points = ", ".join(where[scene_name, fault, promise][:6])
        print(f"BROKEN {scene_name}, {fault}: {promise} ({times} times: {points})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

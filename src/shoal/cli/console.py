"""The terminal of a command: sentences, exit codes, interrupts, progress."""

import _thread
import errno
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from itertools import chain
from multiprocessing import active_children
from pathlib import Path
from threading import Thread, Timer
from time import monotonic
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Self

import typer
from typer.core import TyperCommand, TyperGroup

from shoal.cli.options import replace_dashes
from shoal.errors import LOST_SPARK, ShoalError, is_spark_lost, lacks_memory, visible, withheld
from shoal.io import folders, memory

if TYPE_CHECKING:
    from types import FrameType

    from shoal.core import Progress
    from shoal.publish.protect_file import Published

INTERRUPTED = (
    "interrupted; nothing half-written was left behind: a release is whole in its place, or not "
    "there. If the budget was already charged, it stays charged: see `shoal budget show`."
)
PATIENCE = 0.8
"""Seconds that an interrupted command has to clean up by itself."""
TOO_LATE = "interrupted, but the work was already done and its results are written."
MEMORY = (
    "This machine has too little memory for this table. Use a smaller table, a larger machine, or "
    "--engine spark."
)


@contextmanager
def door() -> Iterator[None]:
    """Turn errors into one sentence and an exit code; never show a message we did not write."""
    interrupts = Interrupts()
    if_interrupted(INTERRUPTED)
    try:
        with interrupts:
            memory.refuse_little()
            yield
    except (typer.Exit, typer.Abort, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (the last resort; a panic of Polars is not an Exception)
        raise typer.Exit(_report(error, interrupted=interrupts.seen)) from None
    if interrupts.seen:
        tell(TOO_LATE)
        raise typer.Exit(130)


class Panel(StrEnum):
    """The panel of a command in `shoal --help`, in the order of use."""

    START = "Start"
    PROTECT = "Protect"
    ASSESS = "Assess"
    SHARE = "Share"
    MORE = "More"


class Group(TyperGroup):
    """A family of commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands panel by panel, so the panels keep their order."""
        order, names = list(Panel), super().list_commands(ctx)
        panels = {name: self.commands[name].rich_help_panel for name in names}  # type: ignore[attr-defined]
        return sorted(names, key=lambda name: order.index(panels[name]) if panels[name] else 0)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _without_types(self.get_params(ctx))
        super().format_help(ctx, formatter)


class Command(TyperCommand):
    """A command whose errors `door` reports."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _without_types(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept `--quiet` and `--verbose` after the command too, where people write them."""
        stated = {f"--{loud}" for loud in (Loudness.QUIET, Loudness.VERBOSE)} & set(args)
        if stated:
            telling(quiet="--quiet" in stated, verbose="--verbose" in stated)
        return super().parse_args(ctx, [word for word in args if word not in stated])

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        metavars = {param.name: param.metavar or "" for param in self.params if param.name}
        with door(), replace_dashes(ctx.params, metavars):
            prepared = super().invoke(ctx)
            return prepared() if callable(prepared) else prepared


def _without_types(params: Iterable[Any]) -> None:
    """Show flags as flags: typer would name a value type that they do not take."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.display_type_rich = lambda ctx: None  # noqa: ARG005 (by this name)


class Interrupts:
    """Ctrl-C as a single KeyboardInterrupt, so the command can clean up.

    A second one ends the process at once, by the signal and without a traceback. Python prints and
    forgets an exception that is raised in a finaliser or in a callback from C: an interrupt there
    is raised again. One that a library swallows is still `seen`. An import is not interrupted but
    waited for: Polars prints a panic of its own if it meets an interrupt there.

    Python sees a signal between two of its own steps. A kernel or a library can take minutes for
    one. So a thread sees it too, from the pipe into which Python writes at once; kernels and
    libraries let it run meanwhile. If the command has not ended after `PATIENCE`, the thread puts
    the place of a release in order and ends the process.
    """

    def __init__(self) -> None:
        self.seen = False

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        Thread(target=_end_late, args=(reader,), daemon=True).start()
        with suppress(ValueError):  # Only the main thread takes signals.
            signal.signal(signal.SIGINT, self._first)
            self._woken = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_DFL if self.seen else self._before)
            signal.set_wakeup_fd(self._woken)
        os.close(self._writer)  # which ends the thread

    def _first(self, _number: int, frame: Any) -> None:
        self.seen = True
        if _importing(frame):
            self._again()
            return
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    def _unraisable(self, report: "sys.UnraisableHookArgs") -> None:
        if not issubclass(report.exc_type, KeyboardInterrupt):
            self._hook(report)
        else:
            self._again()

    def _again(self) -> None:
        """Interrupt a moment later: now it would be lost, or break an import."""
        with suppress(ValueError):
            signal.signal(signal.SIGINT, self._first)
            again = Timer(0.02, _thread.interrupt_main)
            again.daemon = True
            again.start()


def _importing(frame: "FrameType | None") -> bool:
    """Whether a signal stopped the import of a module."""
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _end_late(reader: int) -> None:
    """End the process if it goes on after an interrupt, unless the pipe is closed in time."""
    with os.fdopen(reader, "rb", buffering=0) as came:
        while (number := came.read(1)) and number[0] != signal.SIGINT:
            pass
        late = monotonic() + PATIENCE
        while number and (left := late - monotonic()) > 0:
            if select.select([came], [], [], left)[0]:
                number = came.read(1)
        if number:
            _end_children()
            folders.abandon()
            tell(_said["interrupted"])
            os._exit(130)


def _end_children() -> None:
    """End the processes that this one started, including those still unknown to Python."""
    known = [process.pid for process in active_children()]
    listed = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    for number in {*filter(None, known), *map(int, chain(*listed))}:
        with suppress(OSError):
            os.kill(number, signal.SIGTERM)


def _report(error: BaseException, *, interrupted: bool) -> int:
    """Report an error in a sentence, and return the exit code."""
    if interrupted or isinstance(error, KeyboardInterrupt):
        _end_children()  # A Java machine that was interrupted while it started would stay.
        tell(_said["interrupted"])
        return 130
    if isinstance(error, ShoalError):
        tell(str(error))
        return error.exit_code
    if isinstance(error, OSError) and _is_lost(error):
        if error.errno == errno.EPIPE:
            return 141  # as a program that the signal for it ends: its reader has seen enough
        tell(f"Cannot write the output: {(error.strerror or 'unknown reason').lower()}.")
        return 2
    known = MEMORY if lacks_memory(error) else LOST_SPARK if is_spark_lost(error) else ""
    tell(known or withheld(error))
    return 2 if known else 70


def _is_lost(error: OSError) -> bool:
    """Whether standard output could not be written; its buffered content is then dropped.

    Other messages never raise, so it was the result that `echo` wrote.
    """
    if not any(frame.name == "echo" for frame in extract_tb(error.__traceback__)):
        return False
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def say(text: object, *, err: bool = False) -> None:
    """Print text for people, with invisible characters escaped."""
    typer.echo(visible(str(text), lines=True), err=err)


def tell(sentence: str) -> None:
    """Print a message besides the result; if standard error is closed, skip it."""
    with suppress(OSError):
        say(f"shoal: {sentence}", err=True)


class Loudness(StrEnum):
    """How much is printed besides a result: `--quiet`, as usual, `--verbose`."""

    QUIET = "quiet"
    USUAL = "usual"
    VERBOSE = "verbose"


_said: dict[str, str] = {"beside": Loudness.USUAL, "interrupted": INTERRUPTED}


def if_interrupted(sentence: str) -> None:
    """Set the sentence that this command prints if it is interrupted."""
    _said["interrupted"] = sentence


def telling(*, quiet: bool, verbose: bool) -> None:
    """Set how much this command prints besides its result."""
    if quiet and verbose:
        raise typer.BadParameter("Expected --quiet or --verbose, found both.")
    usual = Loudness.VERBOSE if verbose else Loudness.USUAL
    _said["beside"] = Loudness.QUIET if quiet else usual


def note(sentence: str) -> None:
    """Print useful information, unless `--quiet` is set."""
    if _said["beside"] is not Loudness.QUIET:
        tell(sentence)


def say_published(published: "Published", *, as_json: bool) -> None:
    """Say what was written and what it promises; of its notes the warnings alone with `--quiet`."""
    from shoal.report import terminal

    if as_json:
        say(terminal.write_published_json(published))
        return
    notes = published.warnings if _said["beside"] is Loudness.QUIET else published.notes
    say(terminal.release_text(published.release, notes))
    say(f"To publish: {published.folder}  Confidential: {published.internal}")


def _steps() -> "Progress":
    """Print each step as it begins, with the seconds since the start; at most one per second."""
    begun = monotonic()
    last, at = "", -1.0

    def report(stage: str, _done: int, _total: int) -> None:
        nonlocal last, at
        now = monotonic() - begun
        counts_down = any(mark.isdigit() for mark in stage)  # it has another name at every call
        if stage != last and (now - at >= 1 or not counts_down):
            last, at = stage, now
            tell(f"{now:.1f} s: {stage}")

    return report


@contextmanager
def running() -> "Iterator[Progress]":
    """Show progress, and say once if kernels must be compiled."""
    from shoal.core.jit import compile_notice

    with showing_progress() as progress, compile_notice(note):
        yield progress


@contextmanager
def showing_progress() -> "Iterator[Progress]":
    """Show a progress bar on stderr, if it is a terminal."""
    if _said["beside"] is Loudness.VERBOSE:
        yield _steps()
        return
    if _said["beside"] is Loudness.QUIET or not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
                          TimeElapsedColumn(), TimeRemainingColumn()]  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, last = bar.add_task("starting", total=None), ""

        def report(stage: str, done: int, total: int) -> None:
            nonlocal last
            if stage.partition(",")[0] != last:  # The time left is that of this stage.
                last = stage.partition(",")[0]
                bar.reset(task, total=None)
            bar.update(
                task, description=visible(stage), completed=done, total=total if done else None
            )

        yield report

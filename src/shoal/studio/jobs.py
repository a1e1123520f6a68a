"""Long work in separate processes.

A job is a folder: `job.json` says what to do, `status.json` how far it is, `result.json` what was
found, and `out/` holds what it wrote. The server starts `python -m shoal.studio.worker FOLDER` in a
new process group and waits for it in a thread. So a job survives the reload of a page, cannot block
one, and cannot take the server with it.

The worker holds one end of a pipe. When the server ends, however it ends, the pipe closes and the
worker ends too: no job is left behind. A job that a dead server left unfinished is `interrupted`.

A job that does not finish leaves nothing: `out/` is removed, and with it the hidden folders in
which `shoal.pipeline` prepares a release. Only the budget file keeps what was booked. A release
that is in place stays, even if its confidential report was never made; so does one that is paid for
and waits to be put in place.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Event, Lock, Semaphore, Thread
from typing import Any

from shoal.core.machine import now
from shoal.core.manifest import Manifest
from shoal.errors import InputError, withheld
from shoal.io.folders import UNFINISHED
from shoal.pipeline.manifest import read as read_manifest
from shoal.studio.history import release_name
from shoal.studio.private_files import (
    ID,
    end_left_behind,
    private_folder,
    read_json,
    write_json,
)

GRACE = 3.0
"""Seconds that a cancelled job has to tidy up before it is killed."""

LOCK = ".lock"
"""File that a worker holds while it lives, with its number in it."""
INTERRUPTED = "The studio ended while this task was under way. Start the task again."
CANCELLED = "Cancelled. Nothing was written."
UNREPORTED = (
    "The work ended when the release was in place; only its confidential report is missing. "
    "Make it with `shoal report`; that spends no epsilon."
)
KILLED = (
    "The system ended the work, perhaps because memory ran out. Nothing was written; try a smaller "
    "table or a quicker method."
)


class JobKind(StrEnum):
    """The kind of a job.

    `profile`: looks at an uploaded file. `protect`: makes a release. `compare`: compares methods.
    `select`: chooses one privately. `preview`: tries the policy on a few rows. `inspect`: inspects
    the table under the policy.
    """

    PROFILE = "profile"
    PROTECT = "protect"
    COMPARE = "compare"
    SELECT = "select"
    PREVIEW = "preview"
    INSPECT = "inspect"


OF_THE_FILE = (JobKind.PROFILE, JobKind.PREVIEW, JobKind.INSPECT)
"""What is worth nothing once the file of the table is gone."""


class JobState(StrEnum):
    """The state of a job. The last four are final."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Whether the state is final."""
        return self not in {JobState.WAITING, JobState.RUNNING}


@dataclass(frozen=True)
class JobStatus:
    """The status of a job.

    Attributes:
        id: the id of the job, and of its release.
        workspace: the workspace to which it belongs.
        kind: what it does.
        state: waiting, running, done, failed, cancelled or interrupted.
        stage: the current stage, in words.
        share: how much of the stage is done, from 0 to 1; None if unknown.
        seconds_left: the time left in the stage; None if unknown.
        error: one sentence, where it failed; never a traceback and never a cell.
        result: what was found, where it is done; see `shoal.studio.worker`.
        begun: UTC.
        expected: seconds that the whole task was expected to take; none where that is not known.
    """

    id: str
    workspace: str
    kind: JobKind
    state: JobState
    stage: str = ""
    share: float | None = None
    seconds_left: float | None = None
    error: str = ""
    result: Mapping[str, Any] | None = None
    begun: str = ""
    expected: float | None = None

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.begun)).total_seconds())

    @property
    def final(self) -> bool:
        """Whether the job is in a final state."""
        return self.state.final


Finish = Callable[[JobStatus], None]


class Jobs:
    """All jobs of a home.

    Args:
        home: the studio's folder.
        most: how many run at a time; further ones wait.

    Attributes:
        finished: called in a thread of its own with every job that came to an end here.
    """

    def __init__(self, home: Path, *, most: int) -> None:
        self._folder = private_folder(home / "jobs")
        self._room = Semaphore(most)
        self.finished: Finish = lambda _status: None
        self._running: dict[str, _Running] = {}
        self._lock = Lock()
        self._closed = False

    def start(self, id_: str, workspace: str, kind: JobKind, arguments: Mapping[str, Any]) -> str:
        """Start a job, or queue it.

        Args:
            id_: a new one; that of the job.
            workspace: to which it belongs.
            kind: what to do.
            arguments: plain JSON values for the worker; see `shoal.studio.worker`.
        """
        folder = private_folder(self.folder(id_))
        content = {
            "id": id_, "workspace": workspace, "kind": JobKind(kind).value, "begun": now(),
            "arguments": dict(arguments),
        }  # fmt: skip
        write_json(folder / "job.json", content)
        _write_status(folder, JobState.WAITING, "waiting for another task to end")
        running = _Running(folder)
        with self._lock:
            if self._closed:
                raise InputError("The studio is ending; it starts no new task.")
            self._running[id_] = running
        running.thread = Thread(target=self._run, args=(id_, running), name=f"job-{id_}")
        running.thread.start()
        return id_

    def status(self, id_: str) -> JobStatus:
        """Return the status of a job.

        A job is reported as done only after its workspace is updated.

        Raises:
            InputError: there is no such job.
        """
        here = id_ in self._running
        noted = self._read_status(id_)
        if noted.final:
            if here and id_ in self._running:
                return replace(
                    noted, state=JobState.RUNNING, stage="finishing", error="", result=None
                )
            return noted
        if not here and id_ not in self._running:
            noted = self._read_status(id_)  # It may have ended between the two lines above.
            if not noted.final:
                return replace(noted, state=JobState.INTERRUPTED, stage="", error=INTERRUPTED)
        return noted

    def _read_status(self, id_: str) -> JobStatus:
        """Read the status in the job's folder."""
        folder = self.folder(id_)
        job = read_json(folder / "job.json") if re.match(ID, id_) else None
        if job is None:
            raise InputError("There is no such task. It may have been removed.")
        status = read_json(folder / "status.json") or {}
        state = JobState(status.get("state", JobState.INTERRUPTED))
        done = state is JobState.DONE
        return JobStatus(
            id=id_,
            workspace=job["workspace"],
            kind=JobKind(job["kind"]),
            state=state,
            stage="" if state.final else status.get("stage", ""),
            share=1.0 if done else status.get("share"),
            seconds_left=None if state.final else status.get("seconds_left"),
            error=status.get("error", ""),
            result=read_json(folder / "result.json") if done else None,
            begun=job["begun"],
            expected=job["arguments"].get("expected"),
        )

    def cancel(self, id_: str) -> JobStatus:
        """Stop a job and wait until all its processes have ended, if it is not finished."""
        self.status(id_)
        running = self._running.get(id_)
        if running is not None:
            running.cancelled.set()
            running.end()
            if running.thread is not None:
                running.thread.join()
        return self.status(id_)

    def of(self, workspace: str) -> tuple[JobStatus, ...]:
        """List the workspace's jobs that are waiting or running."""
        mine = [self.status(id_) for id_ in list(self._running)]
        return tuple(job for job in mine if job.workspace == workspace and not job.final)

    def under_way(self) -> tuple[str, ...]:
        """List the ids of all waiting or running jobs, oldest first."""
        return tuple(self._running)

    def close(self) -> None:
        """Stop all jobs before the server ends."""
        with self._lock:
            self._closed = True
            left = list(self._running.values())
        for running in left:
            running.interrupted.set()
            Thread(target=running.end).start()
        for running in left:
            if running.thread is not None:
                running.thread.join()

    def recover(self) -> None:
        """Clean up after the previous server: mark its unfinished jobs, and remove their files.

        Profiles, previews and inspections are removed, because their input files are gone.
        """
        for folder in self._folder.iterdir():
            status = read_json(folder / "status.json") or {}
            if JobState(status.get("state", JobState.WAITING)).final:
                if any(self._is(folder, kind) for kind in OF_THE_FILE):
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            end_left_behind(folder / LOCK)
            if self._is_out(folder):
                for path in (folder / "out").glob(".*"):
                    shutil.rmtree(path, ignore_errors=True)
            else:
                _clear(folder / "out")
                _write_status(folder, JobState.INTERRUPTED, error=INTERRUPTED)

    def forget(self, workspace: str) -> None:
        """Remove all jobs of a workspace except releases, which are in the history."""
        for folder in self._folder.iterdir():
            job = read_json(folder / "job.json") or {}
            if job.get("workspace") == workspace and not self._is(folder, JobKind.PROTECT):
                shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _is(folder: Path, kind: JobKind) -> bool:
        return (read_json(folder / "job.json") or {}).get("kind") == kind.value

    def folder(self, id_: str) -> Path:
        """Return the folder of a job."""
        return self._folder / id_

    def release(self, id_: str) -> Path:
        """Return the public folder of a release; `.internal` beside it is the confidential one."""
        return self._folder / id_ / "out" / release_name(id_)

    def manifest(self, id_: str) -> Manifest | None:
        """Read the manifest of a release; none where there is no release of this version."""
        try:
            return read_manifest(self.release(id_))
        except InputError:
            return None

    def comparison(self, id_: str) -> Path:
        """Return the folder of a comparison, confidential."""
        return self._folder / id_ / "out" / "comparison"

    def _run(self, id_: str, running: "_Running") -> None:
        while not self._room.acquire(timeout=0.2):
            if running.stopped:
                break
        else:
            try:
                if not running.stopped:
                    _write_status(running.folder, JobState.WAITING, "starting")
                    running.begin()
                running.wait()
            finally:
                self._room.release()
        self._close_one(running)
        try:
            self.finished(self._read_status(id_))
        except Exception as error:  # noqa: BLE001 (a thread has nobody else to tell)
            sys.stderr.write(f"shoal: {withheld(error)}\n")
        finally:
            with self._lock:
                self._running.pop(id_, None)

    def _is_out(self, folder: Path, said: str = "") -> bool:
        """Whether a job's release is published, so the job is done whatever failed later.

        The release is paid for, and what compares it with the original can be made again.
        """
        manifest = self.manifest(folder.name)
        if manifest is None:
            return False
        notes = [said] if said else []
        write_json(folder / "result.json", {"rows": manifest.rows, "notes": notes})
        _write_status(folder, JobState.DONE)
        return True

    def _close_one(self, running: "_Running") -> None:
        """Record how a job ended if its worker could not, and remove what it left."""
        folder = running.folder
        status = read_json(folder / "status.json") or {}
        state = JobState(status.get("state", JobState.FAILED))
        if not state.final:
            if running.cancelled.is_set():
                state, error = JobState.CANCELLED, CANCELLED
            elif running.interrupted.is_set():
                state, error = JobState.INTERRUPTED, INTERRUPTED
            else:
                state, error = JobState.FAILED, KILLED
            if not self._is_out(folder, UNREPORTED):
                _clear(folder / "out")
                _write_status(folder, state, error=error)
        elif state is not JobState.DONE and not self._is_out(folder, status.get("error", "")):
            _clear(folder / "out")


def _clear(out: Path) -> None:
    """Remove a job's output, except a paid release that waits for publication."""
    if not any(out.glob(f"*{UNFINISHED}")):
        shutil.rmtree(out, ignore_errors=True)


class _Running:
    """A job's process, and the thread that waits for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.thread: Thread | None = None
        self.cancelled, self.interrupted = Event(), Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._gone = Event()
        self._lock = Lock()

    @property
    def stopped(self) -> bool:
        return self.cancelled.is_set() or self.interrupted.is_set()

    def begin(self) -> None:
        with self._lock:
            if self.stopped:
                return
            self._process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-P", "-m", "shoal.studio.worker", str(self.folder)],
                stdin=subprocess.PIPE,  # closes with the server, whatever ends it
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # libraries may quote cells there
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait for the process, then stop whatever it started."""
        process = self._process
        if process is None:
            return
        # Not reaped yet, so its number is still the group's and nobody else's.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            _kill(process, signal.SIGKILL)
            process.wait()
            self._gone.set()
        if process.stdin is not None:
            process.stdin.close()

    def end(self) -> None:
        """Ask the whole process group to end, and kill it after a while."""
        for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            with self._lock:
                if self._process is None or self._gone.is_set():
                    return
                _kill(self._process, number)
            self._gone.wait(patience)


def _kill(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _write_status(folder: Path, state: JobState, stage: str = "", *, error: str = "") -> None:
    write_json(folder / "status.json", {"state": state.value, "stage": stage, "error": error})

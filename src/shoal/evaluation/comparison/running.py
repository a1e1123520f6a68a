"""Release and evaluate every candidate, in separate processes, and keep the results.

A third of the people is held out of every candidate release: they are the people not in the table
that attacks are compared with. Who that is depends on the repeat alone, so candidates are
compared on the same people. So a candidate is released from fewer rows than the real table has,
and a real release loses a little less.

Each result is one JSON file, written whole or not at all, under the digest of all that it
depends on: the data, the candidate's policy, the repeat and the version. Results are as
confidential as the table.
"""

import hashlib
import json
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import active_children, get_context, resource_tracker
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Policy, Progress, Schema
from shoal.core.serialise import plain
from shoal.errors import ClaimViolationError, InputError, ShoalError
from shoal.evaluation import evaluate
from shoal.evaluation.comparison.grid import without_requirements
from shoal.io import text_files
from shoal.io.raw import Raw
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan

CONTROL_SHARE = 3
"""One in this many people is held out."""
ATTACKS = ("naive Bayes", "linkability", "inference", "singling out", "uniques")
METRICS = (
    "losses by column",
    "marginals",
    "moments",
    "classes",
    "COUNT queries",
    "own queries",
    "own regression",
    "edit rules",
)
"""What is computed for each candidate: the axes, and what else is quick."""

_WORTH, _SMALL = 1.0, 20_000
"""CPU-seconds of work after which further processes are started, and rows beyond which at once."""
_QUIET = {"PYTHONWARNINGS": "ignore"}
"""Python's own helper of processes warns of what a killed command has left to it."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
            "POLARS_MAX_THREADS")  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A release to be made and evaluated.

    Attributes:
        policy: the candidate's policy, or for a baseline the original one.
        share: for a baseline, the share of the rows that are published unchanged.
        repeat: its number, which says who is held out and which queries are asked.
        key: digest of everything that the result depends on; the name of its file.
        strict: a release that does not keep what is required counts as failed.
    """

    policy: Policy
    share: float | None
    repeat: int
    seed: int
    key: str
    strict: bool = False

    @classmethod
    def of(
        cls,
        policy: Policy,
        data: str,
        *,
        share: float | None,
        repeat: int,
        seed: int,
        strict: bool = False,
    ) -> "Job":
        """Make a job on data with this digest."""
        depends = [
            data, policy.digest, plain(policy.required), plain(policy.evaluate), share, repeat,
            seed, version("shoal"), ATTACKS, METRICS,
        ]  # fmt: skip
        if strict:
            depends.append("strict")
        text = json.dumps(depends, sort_keys=True, default=str)
        return cls(policy, share, repeat, seed, hashlib.sha256(text.encode()).hexdigest(), strict)


def data_digest(frame: pl.DataFrame) -> str:
    """Compute SHA-256 of a frame's columns and cells, independently of its memory layout."""
    digest = hashlib.sha256()

    class Hashing:
        def write(self, part: bytes) -> int:
            digest.update(part)
            return len(part)

        def flush(self) -> None:
            pass

    frame.rechunk().write_ipc(Hashing(), compat_level=pl.CompatLevel.oldest())  # type: ignore[call-overload]
    return digest.hexdigest()


def run(
    frame: pl.DataFrame,
    jobs: Sequence[Job],
    *,
    folder: Path | None,
    processes: int,
    progress: Progress,
    around: tuple[int, int] = (0, 0),
) -> list[dict[str, Any]]:
    """Run all jobs, or read results that an earlier run has kept.

    Work on a small table begins in this process, and others are started for what is left after a
    second of it: starting one takes about as long. Results are kept in `folder`, unless it is None;
    an interrupt leaves there what is done. More than one process starts new interpreters: a program
    then needs the usual guard. `around` is how many jobs were run before these and are expected
    after them, for the progress and the time that is left.
    """
    results: dict[str, dict[str, Any]] = {}
    for job in jobs:
        if (kept := _read_kept(folder, job)) is not None:
            results[job.key] = kept
    pending = list({job.key: job for job in jobs if job.key not in results}.values())
    before, after = around
    started, already = time.monotonic(), len(results)
    total = before + len({job.key for job in jobs}) + after
    progress("comparing", before + already, total)
    for key, result in _results(frame, pending, folder, processes):
        results[key] = result
        done = len(results) - already
        left = (time.monotonic() - started) / done * (len(pending) - done + after)
        progress(f"comparing, {_words(left)} left", before + len(results), total)
    return [results[job.key] for job in jobs]


def _results(
    frame: pl.DataFrame, pending: Sequence[Job], folder: Path | None, processes: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    left, begun = deque(pending), time.process_time()
    inline = processes == 1 or len(left) == 1
    while left and (inline or (frame.height <= _SMALL and time.process_time() - begun < _WORTH)):
        job = left.popleft()
        yield job.key, _done(frame, job, folder)
    if not left:
        return
    earlier = set(active_children())
    with _one_thread_each(), ProcessPoolExecutor(
        min(processes, len(left)),
        mp_context=get_context("spawn"),
        initializer=_start,
        initargs=(frame, folder),
    ) as pool:  # fmt: skip
        with _interrupts_wait():
            waiting: set[Future[tuple[str, dict[str, Any]]]] = {
                pool.submit(_work, job) for job in left
            }
        try:
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BaseException:
            # What is done is kept; what is under way is done again by the next run.
            for process in set(active_children()) - earlier:
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


_HELD: dict[str, Any] = {}
"""The table and the folder, in a process that was started for the work."""


def _start(frame: pl.DataFrame, folder: Path | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides what an interrupt means.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _HELD["frame"], _HELD["folder"] = frame, folder


def _work(job: Job) -> tuple[str, dict[str, Any]]:
    return job.key, _done(_HELD["frame"], job, _HELD["folder"])


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block interrupts for a process until it can ignore them, or it would show a traceback.

    A process inherits what is blocked. Here another thread may take the signal all the same; it is
    noted, and raised again once all processes have what they need to start.
    """
    resource_tracker.ensure_running()  # Starting it unblocks interrupts.
    if current_thread() is not main_thread():
        yield  # No interrupt is raised here.
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        for number in came[:1]:
            signal.raise_signal(number)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit each process to one thread, because several would compete for the cores."""
    stated = dict.fromkeys(_THREADS, "1") | _QUIET
    before = {name: os.environ.get(name) for name in stated}
    os.environ.update(stated)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _done(frame: pl.DataFrame, job: Job, folder: Path | None) -> dict[str, Any]:
    """Run one job and keep its result."""
    started = time.monotonic()
    try:
        result = _measure(frame, job)
    except ShoalError as error:
        result = {"failed": str(error)}
    except Exception as error:  # noqa: BLE001 (one broken candidate must not end the comparison)
        # Its message may quote a cell. It is not kept, so the next run tries again.
        return {"failed": f"A bug of Shoal: {type(error).__name__}; its message is withheld."}
    result["seconds"] = round(time.monotonic() - started, 3)
    if folder is not None:
        _keep(folder / f"{job.key}.json", result)
    return result


def _measure(frame: pl.DataFrame, job: Job) -> dict[str, Any]:
    rng = np.random.default_rng([job.seed, job.repeat])
    inside, outside = (frame[rows] for rows in hold_out(frame, job.policy.schema, rng))
    if job.share is not None:
        return _baseline(inside, outside, job, rng)
    raw, unmet = Raw(inside), None
    try:
        done = protect_table.run(plan(job.policy), raw)
    except ClaimViolationError as reason:
        # It is compared all the same, and not recommended.
        unmet = str(reason).removesuffix(" Nothing was written.")
        unmet = unmet.removesuffix(" Nothing was read or written.")
        if job.strict:
            raise InputError(unmet) from None
        done = protect_table.run(plan(without_requirements(job.policy)), raw)
    evaluation = evaluate.evaluate(
        inside,
        done.release,
        job.policy,
        control=outside,
        which=(*ATTACKS, *METRICS),
        seed=_seed(job),
        jobs=1,
    )
    return {
        "figures": evaluation.facts()["figures"],
        "skipped": list(evaluation.skipped),
        "pictures": [] if job.repeat else list(evaluation.pictures.get("columns", ())),
        "claims": plain(done.release.claims),
        "checks": plain(done.release.checks),
        "unmet": unmet,
        "suppressed": done.release.manifest.suppressed,
    }


def _baseline(
    inside: pl.DataFrame, outside: pl.DataFrame, job: Job, rng: np.random.Generator
) -> dict[str, Any]:
    """Publish some rows unchanged.

    Counts are taken from the sample repeated up to the size of the table, which scales them;
    attacks look at the sample itself.
    """
    share = job.share or 1.0
    size = max(round(share * inside.height), 1)
    names = [name for name in inside.columns if name in job.policy.schema.released]
    chosen = rng.permutation(inside.height)[:size]
    sampled = inside.select(names)[chosen]
    repeated = inside.select(names)[chosen[np.arange(inside.height) % size]]
    figures: list[Any] = []
    for rows, which in ((sampled, ATTACKS), (repeated, METRICS)):
        evaluation = evaluate.evaluate(
            inside,
            rows,
            job.policy,
            control=outside,
            which=which,
            aligned=False,
            seed=_seed(job),
            jobs=1,
        )
        figures += evaluation.facts()["figures"]
    return {"figures": figures, "claims": [], "checks": [], "unmet": None, "suppressed": 0}


def _seed(job: Job) -> int:
    """Derive the seed of queries and attacked people, equal for all candidates of a repeat."""
    return 1000 * job.seed + job.repeat


def hold_out(
    frame: pl.DataFrame, schema: Schema, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the rows into those to release and those of a third of the people, held out.

    Households stay together where the policy names them, and persons with several rows too: a
    relative would otherwise stand in for a person who is held out.
    """
    name = schema.column_with_flag("household") or schema.column_with_flag("privacy_unit")
    if name in frame.columns:
        groups = frame[name].rank("dense").fill_null(0).to_numpy().astype(np.int64)
        unnumbered = groups == 0  # People without a number share no household.
        groups = np.where(unnumbered, groups.max() + 1 + np.arange(frame.height), groups)
        _, groups = np.unique(groups, return_inverse=True)
    else:
        groups = np.arange(frame.height)
    place = rng.permutation(int(groups.max()) + 1)[groups]
    out = place < (int(groups.max()) + 1) // CONTROL_SHARE
    return np.flatnonzero(~out), np.flatnonzero(out)


def _read_kept(folder: Path | None, job: Job) -> dict[str, Any] | None:
    """Read a kept result; a damaged one is discarded."""
    if folder is None:
        return None
    path = folder / f"{job.key}.json"
    try:
        digest, _, text = text_files.read_text(path, "a result").partition("\n")
        if hashlib.sha256(text.encode()).hexdigest() == digest:
            return cast("dict[str, Any]", json.loads(text))
    except (InputError, ValueError):
        pass
    return None


def _keep(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result atomically, so no process or kill ever leaves half of it.

    The first line has its digest, which detects later damage.
    """
    text = json.dumps(result)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
    Path(name).replace(path)


def _words(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"

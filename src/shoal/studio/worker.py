"""Run one job in a separate process: `python -m shoal.studio.worker FOLDER`.

It calls the function that the command line calls. Arguments of each kind, and what `result.json`
holds afterwards:

- `profile`: data, label, reading, decoded_limit -> see `shoal.studio.profile.DataProfile`; the
  profile itself is written beside the data, because it shows figures of the table.
- `protect`: data, policy, out, file_format, evaluate, control, comparison, budget, source, scheme,
  previous, coarsen -> rows, notes.
- `compare`: data, policy, out, on_sample, budget, source, options -> costs.
- `select`: data, policy, out, epsilon, budget, source -> chosen, epsilon.
- `inspect`: data, policy, out, budget, source -> digest; the figures themselves are written
  to `out`, which is in the temporary folder.
- `preview`: rows_of, source_words, policy, out -> digest; the rows themselves are written to `out`,
  which is in the temporary folder.

An error names a file as its user does: `names` has the names of the files at their places.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from shoal.core.jit import compile_notice
from shoal.core.serialise import plain
from shoal.errors import ShoalError, withheld
from shoal.io import memory
from shoal.studio.jobs import LOCK, JobKind, JobState
from shoal.studio.private_files import hold, read_json, write_json

if TYPE_CHECKING:
    from shoal.pipeline.options import BudgetOptions

EVERY = 0.2
"""Seconds between two notes of how far it is."""
PATHS = ("data", "policy", "out", "control", "comparison", "candidates", "on_sample",
         "budget", "rows_of", "scheme", "previous")  # fmt: skip
"""Arguments that name a file."""
NICE = 10
"""The server comes first."""
OVERHEAD = 4 << 30
"""Bytes that libraries may take beside a decoded table."""


def main(folder: Path) -> None:
    """Run the job of a folder."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_server, daemon=True).start()
    os.nice(NICE)
    held = hold(folder / LOCK)
    job = read_json(folder / "job.json")
    status = ProgressNote(folder)
    try:
        status("starting", 0, 1)
        with compile_notice(status.tell):
            _limit_memory(job["arguments"].get("decoded_limit"))
            paths = {key: Path(job["arguments"][key]) for key in PATHS if job["arguments"].get(key)}
            result = DO[JobKind(job["kind"])]({**job["arguments"], **paths}, status)
        write_json(folder / "result.json", result)
        status.end(JobState.DONE)
    except BaseException as error:  # noqa: BLE001 (a panic of Polars is no Exception)
        if _is_interrupted():
            sys.exit(130)  # The server says why.
        status.end(JobState.FAILED, _why(error, job["arguments"].get("names", {})))
    finally:
        held.close()


def _why(error: BaseException, names: Mapping[str, str]) -> str:
    if isinstance(error, ShoalError):
        return name_files(str(error), names)
    if isinstance(error, MemoryError):
        return "This machine has too little memory for this table."
    sentence = withheld(error)
    return sentence[0].upper() + sentence[1:]


def name_files(sentence: str, names: Mapping[str, str]) -> str:
    """A sentence that names files as their user does, and not where the studio keeps them.

    >>> name_files("'/tmp/x/1.csv' is empty.", {"/tmp/x/1.csv": "people.csv"})
    "'people.csv' is empty."
    """
    for place, name in sorted(names.items(), key=lambda one: -len(one[0])):
        sentence = sentence.replace(place, name)
    return sentence


class ProgressNote:
    """Writes a job's progress, at most as often as somebody may look."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "status.json"
        self._stage, self._since, self._noted = "", 0.0, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Record the pipeline's progress: the stage, how much is done, and the total."""
        now = time.monotonic()
        name = stage.partition(",")[0]  # A comparison writes the time left behind a comma.
        fresh = name != self._stage
        if fresh:
            self._stage, self._since = name, now
        elif now - self._noted < EVERY and done < total:
            return
        self._noted = now
        share = done / total if total > 1 and done else None
        left = (now - self._since) * (1 - share) / share if share and not fresh else None
        content = {"state": JobState.RUNNING.value, "stage": name, "share": share,
                   "seconds_left": left, "error": ""}  # fmt: skip
        write_json(self._path, content, durable=False)

    def tell(self, sentence: str) -> None:
        """Show a sentence until the next stage."""
        stage = sentence[0].lower() + sentence[1:].rstrip(".")
        content = {"state": JobState.RUNNING.value, "stage": stage, "error": ""}
        write_json(self._path, content, durable=False)

    def end(self, state: JobState, error: str = "") -> None:
        """Record the end of the job."""
        write_json(self._path, {"state": state.value, "stage": "", "error": error})


def _profile(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal.studio import profile, uploads

    limit = given["decoded_limit"]
    status("reading the file", 0, 1)
    uploads.refuse_bombs(given["data"], limit=limit, library=True)
    return profile.write(
        given["data"],
        label=given["label"],
        reading=given.get("reading"),
        limit=limit,
        progress=status,
    )


def _protect(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal.pipeline.options import EvaluationOptions, OutputOptions
    from shoal.publish import apply_scheme, protect_file

    applied = None
    if given["scheme"]:
        applied = apply_scheme.prepare_scheme(
            given["scheme"],
            policy=given["policy"],
            previous=given.get("previous"),
            coarsen=given["coarsen"],
        )
    done = protect_file.protect(
        given["data"],
        given["policy"],
        given["out"],
        output=OutputOptions(given["file_format"], audience=given["audience"]),
        budget=_budget(given),
        evaluation=EvaluationOptions(
            given["evaluate"], given["control"], given["comparison"], given.get("names", {})
        ),
        progress=status,
        applied=applied,
    )
    return {"rows": done.release.manifest.rows, "notes": list(done.notes)}


def _compare(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal.publish import evaluate_files

    costs: list[str] = []
    evaluate_files.compare(
        given["data"],
        given["policy"],
        given["out"],
        candidates=given["candidates"],
        on_sample=given["on_sample"],
        budget=_budget(given),
        tell=costs.append,
        progress=status,
        **given["options"],
    )
    return {"costs": costs}


def _select(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal.publish import evaluate_files

    costs: list[str] = []
    chosen = evaluate_files.select(
        given["data"],
        given["policy"],
        given["out"],
        epsilon=given["epsilon"],
        candidates=given["candidates"],
        published=given["published"],
        budget=_budget(given),
        tell=costs.append,
        progress=status,
    )
    candidate = chosen.candidate
    protect = {"method": candidate.method, **plain(dict(candidate.parameters))}
    if candidate.release_form is not None:
        protect["release_form"] = candidate.release_form.value
    if candidate.columns is not None:
        protect["columns"] = list(candidate.columns)
    return {"chosen": candidate.label, "costs": costs, "sentence": str(chosen), "protect": protect}


def _preview(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal import io, policy
    from shoal.evaluation import evaluate
    from shoal.pipeline import preview
    from shoal.pipeline.options import ReadingOptions

    stated = policy.load(given["policy"])
    status("reading a few rows", 0, 1)
    if given["rows_of"] is None:
        rows = preview.invent_rows(stated, preview.rows_to_try(stated))
    else:
        table = io.read(given["rows_of"], **ReadingOptions().marks(stated)).frame
        rows = preview.sample_rows(table, preview.rows_to_try(stated))
    status("protecting them", 0, 1)
    tried = preview.preview(stated, rows, progress=status)
    compared = evaluate.evaluate(rows, tried.release, stated, which=("marginals",))
    content = {
        "digest": stated.digest,
        "rows": rows.height,
        "source": given["source_words"],
        "columns": tried.columns,
        "shown": tried.shown,
        "unmet": tried.unmet,
        "pictures": list(compared.pictures.get("columns", ())),
    }
    write_json(given["out"], content, durable=False)
    return {"digest": stated.digest}


def _inspect(given: Mapping[str, Any], status: ProgressNote) -> dict[str, Any]:
    from shoal import policy
    from shoal.evaluation import inspect_table

    stated = policy.load(given["policy"])
    costs: list[str] = []
    inspection = inspect_table.inspect(
        given["data"],
        stated,
        attacks=True,
        budget=_budget(given),
        tell=costs.append,
        progress=status,
    )
    content = {
        "digest": stated.digest,
        "levels": plain(stated.parameters.get("levels", {})),
        "costs": costs,
        "lines": str(replace(inspection, alternatives=None)).splitlines()[1:],
        "alternatives": plain(inspection.alternatives),
    }
    write_json(given["out"], content, durable=False)
    return {"digest": stated.digest}


DO = {
    JobKind.PROFILE: _profile,
    JobKind.PROTECT: _protect,
    JobKind.COMPARE: _compare,
    JobKind.SELECT: _select,
    JobKind.PREVIEW: _preview,
    JobKind.INSPECT: _inspect,
}


def _budget(given: Mapping[str, Any]) -> "BudgetOptions":
    from shoal.pipeline.options import BudgetOptions

    return BudgetOptions(given["budget"], given["source"])


def _limit_memory(decoded: int | None) -> None:
    """Limit memory to what a decoded table may take, or to what is free."""
    most = memory.available() if decoded is None else decoded
    with suppress(ValueError, OSError, OverflowError):
        resource.setrlimit(resource.RLIMIT_DATA, (int(most + OVERHEAD),) * 2)


def _interrupt(_number: int, _frame: Any) -> None:
    """End by an exception that cleans up; ignore further signals."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _is_interrupted() -> bool:
    """Whether the job was interrupted; a library may then raise a different error."""
    return signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def _end_with_the_server() -> None:
    """Wait for the pipe to close, then end this process and all its children."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(2)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # All is on disk; taking the libraries down takes seconds.

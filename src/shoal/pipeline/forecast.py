"""What a plan predicts before any data is read: promises, utility by formula, time and memory.

Everything follows from the policy and from a number of rows that somebody states. Each method has a
model of its time and memory, measured once; time is scaled by how long this machine takes for a
fixed computation. `planned` is a `planning.Plan`.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any

from shoal.core import Progress, ReleaseForm
from shoal.core.claims import claim_lines
from shoal.core.serialise import plain
from shoal.io import memory
from shoal.methods.method import Expectation, Method, Setting

START, CELL = 0.83, 3.4e-7
"""Seconds for starting and for the reports, and for reading, checking and writing a cell: of
`individual-ranking`, by `make calibrate`."""
LIBRARIES, CELL_BYTES = 0.2e9, 56
"""Bytes that a run takes with a small table, and for each cell of a larger one."""
LONG = 20_000
"""From this many rows on, a run may take more than two seconds."""
REFERENCE = 0.0045
"""Processor seconds of `_probe` on the machine that the others were measured on."""


def expect_survivors(
    method: Method[Any], setting: Setting[Any], rows: int
) -> tuple[Expectation, ...]:
    """Predict the utility for so many rows, by formula."""
    listed = method.expect(replace(setting, rows=rows))
    k = getattr(setting.parameters, "k", None)
    if k is None or setting.release_form is ReleaseForm.SYNTHETIC:
        return listed
    groups = rows // k
    share = f"{groups:,} {'group' if groups == 1 else 'groups'} of k = {k:,} or more records"
    return (*listed, Expectation("groups", groups, f"At most {share}."), *_expect_imputed(setting))


def _expect_imputed(setting: Setting[Any]) -> tuple[Expectation, ...]:
    """Predict what replaces missing cells where a centre represents its group."""
    medoid = getattr(setting.parameters, "aggregate", "medoid") == "medoid"
    if medoid or getattr(setting.parameters, "output", "centroids") != "centroids":
        return ()
    text = (
        "Those who lack a cell get the value of their group; if half of it or more lack it, it is "
        "missing for all of them."
    )
    return (Expectation("missing", 0.5, text),)


def seconds(planned: Any) -> float | None:
    """Predict the seconds of a run on one core, without evaluation; None without rows."""
    if planned.rows is None:
        return None
    cost = planned.method.cost_of(planned.setting)
    rows = min(planned.rows, cost.most_rows or planned.rows)
    columns = len(planned.setting.columns) / 5
    run = cost.seconds * columns * (rows / 10_000) ** cost.power
    cells = CELL * planned.rows * len(planned.policy.schema.columns)
    total: float = (START + cost.start + cells + run) * machine_speed()
    return total


def peak_bytes(planned: Any) -> float | None:
    """Predict the peak memory of a run, without evaluation; None without rows."""
    if planned.rows is None:
        return None
    cost = planned.method.cost_of(planned.setting)
    protected = cost.cell_bytes * len(planned.setting.columns)
    row = CELL_BYTES * len(planned.policy.schema.columns) + protected
    return LIBRARIES + float(row * planned.rows)


def report_estimate(progress: Progress, planned: Any) -> Progress:
    """Add the total time to the progress of stages that cannot report their own."""
    rows = planned.setting.rows
    if rows is None or rows < LONG or planned.distributed:
        return progress
    total_time = f"{duration(seconds(replace(planned, rows=rows)) or 0)} in all"
    return lambda stage, done, total: progress(
        stage if total > 1 else f"{stage}, {total_time}", done, total
    )


@cache
def machine_speed() -> float:
    """Measure how much slower this machine is than the reference, between 1/4 and 10."""
    took = min(_probe() for _ in range(3)) / REFERENCE
    return min(max(took, 0.25), 10.0)


def _probe() -> float:
    """Time plain steps of Python; NumPy's speed also depends on the processor's instructions."""
    begun = process_time()
    sum(number * number for number in range(100_000))
    return max(process_time() - begun, 1e-6)


def duration(number: float) -> str:
    """Write seconds for people, with one significant digit.

    >>> duration(0.4), duration(34), duration(5000)
    ('about 1 s', 'about 30 s', 'about 1 h')
    """
    for unit, size in (("s", 90), ("min", 60), ("h", 48)):
        if number < size or unit == "h":
            return f"about {float(f'{max(number, 1):.1g}'):g} {unit}"
        number /= 60
    raise AssertionError


def size(number: float) -> str:
    """Write bytes for people, with one significant digit, or two from 10 GB on.

    >>> size(3.4e8), size(6.4e9), size(5.32e10)
    ('about 0.3 GB', 'about 6 GB', 'about 53 GB')
    """
    return f"about {float(f'{number / 1e9:.{1 if number < 1e10 else 2}g}'):g} GB"


def takes(planned: Any) -> str:
    """Say what a run takes; empty if the number of rows is unknown."""
    took, needed = seconds(planned), peak_bytes(planned)
    if took is None or needed is None or planned.distributed:
        return ""
    return f"{duration(took)} and {size(needed)} of memory"


def plan_text(planned: Any) -> str:
    """Write what a plan promises, expects and takes, line by line."""
    rows = "" if planned.rows is None else f" of {planned.rows:,} rows"
    first = f"Plan by {planned.method.name}{rows}, {planned.setting.release_form}"
    return "\n".join([
        f"{first}; no data was read",
        *claim_lines(planned.claims),
        *_lines("not claimed", planned.not_claimed),
        *_lines("note", planned.notes),
        *_lines("expect", (expectation.text for expectation in planned.expected)),
        *_lines("time", _time(planned)),
        *_lines("memory", _memory(planned)),
    ])  # fmt: skip


def plan_facts(planned: Any) -> dict[str, Any]:
    """Return the plan as plain values."""
    return {
        "method": planned.method.name,
        "release_form": planned.setting.release_form.value,
        "rows": planned.rows,
        "claims": [plain(claim) for claim in planned.claims],
        "not_claimed": list(planned.not_claimed),
        "notes": list(planned.notes),
        "expected": [plain(expectation) for expectation in planned.expected],
        "seconds": seconds(planned),
        "peak_bytes": peak_bytes(planned),
    }


def _lines(word: str, texts: Iterable[str]) -> list[str]:
    return [f"  {word}  {text}" for text in texts]


def _time(planned: Any) -> list[str]:
    took = None if planned.distributed else seconds(planned)
    if took is None:
        return []
    return [f"{duration(took)}, without the evaluation for the officer's report"]


def _memory(planned: Any) -> list[str]:
    needed = None if planned.distributed else peak_bytes(planned)
    if needed is None:
        return []
    free = memory.available()
    little = f"; only {size(free).removeprefix('about ')} is free here" if needed > free else ""
    return [f"{size(needed)}{little}"]

"""Rows of the rivals, by `rivals.py` in interpreters of their own, each run kept on disk.

SHOAL_RIVALS is a folder that holds their environments and checkouts (bench/README.md); without it
the rivals are left out by name, except for runs that are kept. A run is kept under
SHOAL_BENCH_CACHE (bench/out by default) by what it was given: the binned table, its domain, the
settings and the number of the run. So only what changed is run again; a failed or timed-out run is
kept as such, and a deleted file is run again.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from _cases import Case, Ints

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("SHOAL_BENCH_CACHE", HERE / "out"))
FOLDER = os.environ.get("SHOAL_RIVALS", "")
LIMIT = 600
"""CPU seconds after which a run is given up."""
DELTA = 1e-9
PROMISE = "(epsilon, 1e-9), a row added or removed"


@dataclass(frozen=True)
class Rival:
    """A published program; `rivals.py` says how each is run. None of them is pure."""

    label: str
    algorithm: str
    promise: str = PROMISE


RIVALS = (
    Rival("AIM", "aim"),
    Rival("MST", "mst"),
    Rival("SWIFT", "swift"),
    Rival("dpsynth, independent", "independent"),
)


@dataclass(frozen=True, eq=False)
class Peer:
    """Rows in codes and what they took, or why there are none."""

    rows: Ints | None
    told: dict[str, Any]

    @property
    def failure(self) -> str:
        """In a word, or empty."""
        return str(self.told.get("failure", ""))


def drawn(case: Case, rival: Rival, epsilon: str, run: int, *, keep_only: bool) -> Peer | None:
    """Rows of a rival for a case; none if neither kept rows nor new ones are to be had."""
    name = f"{case.name}-{case.digest}"
    return rows_of(
        name, (case.codes, case.sizes), rival.algorithm, epsilon, run, keep_only=keep_only
    )


def rows_of(
    name: str,
    table: tuple[Ints, Sequence[int]],
    algorithm: str,
    epsilon: str,
    run: int,
    *,
    keep_only: bool = False,
) -> Peer | None:
    """Rows of a rival for a table of codes and its sizes, kept under its name."""
    codes, sizes = table
    job = {
        "sizes": {f"c{j}": int(size) for j, size in enumerate(sizes)},
        "algorithm": algorithm,
        "epsilon": float(epsilon),
        "delta": DELTA,
        "rows": len(codes),
        "seed": run,
        "limit": LIMIT,
    }
    given = json.dumps(job, sort_keys=True).encode() + np.ascontiguousarray(codes).tobytes()
    folder = CACHE / name
    stem = f"{algorithm}-{epsilon}-{run}-{sha256(given).hexdigest()[:8]}"
    note, rows = folder / f"{stem}.json", folder / f"{stem}.csv"
    if not note.is_file():
        if keep_only or not FOLDER:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        told = _run(codes, job | {"folder": FOLDER, "out": str(rows)})
        note.write_text(json.dumps({"settings": job} | told, indent=1) + "\n", encoding="utf-8")
    told = json.loads(note.read_text(encoding="utf-8"))
    if "failure" in told:
        return Peer(None, told)
    return Peer(np.loadtxt(rows, dtype=np.int64, delimiter=",", skiprows=1, ndmin=2), told)


def _run(codes: Ints, job: dict[str, Any]) -> dict[str, Any]:
    venv = "venv-dpmm" if job["algorithm"].startswith("dpmm") else "venv"
    interpreter = Path(FOLDER) / venv / "bin" / "python"
    with tempfile.TemporaryDirectory() as home:
        table, order = Path(home) / "table.csv", Path(home) / "job.json"
        header = ",".join(job["sizes"])
        np.savetxt(table, codes, fmt="%d", delimiter=",", header=header, comments="")
        order.write_text(json.dumps(job | {"table": str(table)}), encoding="utf-8")
        done = subprocess.run(
            [str(interpreter), str(HERE / "rivals.py"), str(order)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode == -signal.SIGXCPU:
        return {"failure": f"stopped after {LIMIT} CPU-s"}
    if done.returncode < 0:  # somebody killed it, or memory ran out: nothing was measured
        raise InterruptedError(f"{job['algorithm']} died of signal {-done.returncode}.")
    return {"failure": "error", "error": done.stderr[-2000:]}

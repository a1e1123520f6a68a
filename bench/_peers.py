"""Rows of AIM and MST, by `rivals.py` in an interpreter of its own, each run kept on disk.

SHOAL_RIVALS is the path of that interpreter; without it the rivals are left out by name, except
for runs that are kept. A run is kept under SHOAL_BENCH_CACHE (bench/out by default) by what it was
given: the binned table, its domain, the settings and the number of the run. So only what
changed is run again; a failed or timed-out run is kept as such, and a deleted file is run again.
"""

import csv
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from _cases import Case, Ints

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("SHOAL_BENCH_CACHE", HERE / "out"))
INTERPRETER = os.environ.get("SHOAL_RIVALS", "")
LIMIT = 600
"""CPU seconds after which a run is given up."""
DELTA = 1e-9
_COMPILED = {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE / "compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""What one run compiles the next need not, if it chooses the same marginals: in their favour."""
_NATIVE = "(epsilon, 1e-9), a row added or removed"


@dataclass(frozen=True)
class Rival:
    """A published program and how it is run.

    Attributes:
        share: of the case's epsilon, which is for a changed record. One that is added or removed
            is half of a change, so 1/2 gives the same promise.
        delta: of an approximate promise; none is pure.
        total: whether the fit knows the number of rows.
        promise: at the case's epsilon, in words.
    """

    label: str
    algorithm: str
    promise: str = "epsilon"
    share: float = 0.5
    delta: float | None = None
    total: bool = True


RIVALS = (
    Rival("AIM", "aim"),
    Rival("MST", "mst"),
    Rival("AIM, native", "aim", _NATIVE, share=1.0, delta=DELTA, total=False),
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
    """Rows of a rival: those that are kept, or new ones; none if neither is to be had."""
    settings = asdict(rival) | {"epsilon": epsilon, "run": run}
    del settings["label"], settings["promise"]
    mark = sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    folder = CACHE / f"{case.name}-{case.digest}"
    stem = f"{rival.algorithm}-{epsilon}-{run}-{mark}"
    note, rows = folder / f"{stem}.json", folder / f"{stem}.csv"
    if not note.is_file():
        if keep_only or not INTERPRETER:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        told = _run(case, rival, float(epsilon), run, rows)
        note.write_text(
            json.dumps({"settings": settings} | told, indent=1) + "\n", encoding="utf-8"
        )
    told = json.loads(note.read_text(encoding="utf-8"))
    if "failure" in told:
        return Peer(None, told)
    return Peer(np.loadtxt(rows, dtype=np.int64, delimiter=",", skiprows=1, ndmin=2), told)


def _run(case: Case, rival: Rival, epsilon: float, run: int, rows: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        table, order = Path(home) / "table.csv", Path(home) / "job.json"
        with table.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(axis.name for axis in case.axes)
            out.writerows(case.codes.tolist())
        job = {
            "table": str(table),
            "out": str(rows),
            "sizes": {axis.name: axis.size for axis in case.axes},
            "algorithm": rival.algorithm,
            "epsilon": epsilon * rival.share,
            "delta": rival.delta,
            "rows": case.rows,
            "total": rival.total,
            "seed": run,
            "limit": LIMIT,
        }
        order.write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run(
            [INTERPRETER, str(HERE / "rivals.py"), str(order)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | _COMPILED,
        )
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode == -signal.SIGXCPU:
        return {"failure": f"stopped after {LIMIT} CPU-s"}
    if done.returncode < 0:  # somebody killed it, or memory ran out: nothing was measured
        raise InterruptedError(f"{rival.label} on {case.name} died of signal {-done.returncode}.")
    return {"failure": "error", "error": done.stderr[-2000:]}

"""Spark and one machine on tables of 2 to 20 million people: time, memory, disk, and a cost model.

    python bench/spark.py make ROWS FOLDER          a table in Parquet, one file per million rows
    python bench/spark.py mixed ROWS FOLDER         the same, and four columns with 311, 12, 4 and
                                                    2 categories
    python bench/spark.py run ENGINE METHOD ROWS FOLDER RESULTS
                                                    one run in a process of its own, one JSON line
    python bench/spark.py fit RESULTS               the cost model, and 1 billion rows on paper

A run reads the Parquet files, protects, checks, evaluates and writes Parquet. Spark runs as
local[2] with 6 GB for the driver, which here is all of Spark. CPU seconds and memory are those of
the process and of all that it started: Java, and the Python workers. Memory is the largest sum of
resident sets seen, every half second; disk is the largest size of Spark's local folder.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import polars as pl

METHODS = ("individual-ranking", "mondrian", "mdav")
NUMBERS = ("income", "wealth", "age", "hours", "weight")
ILLNESSES = ("none", "allergy", "asthma", "diabetes", "heart", "cancer", "other", "rare")
POLICY: dict[str, Any] = {
    "version": 1,
    "columns": {
        **{name: {"role": "quasi-identifier", "kind": "numeric"} for name in NUMBERS},
        "illness": {"role": "confidential", "kind": "nominal", "categories": list(ILLNESSES)},
    },
}


def people(rows: int, seed: int) -> pl.DataFrame:
    """People in 40 towns: incomes with a long tail, ages and hours as whole numbers."""
    rng = np.random.default_rng(seed)
    town = rng.integers(40, size=rows)
    rich = np.random.default_rng(0).normal(size=40)[town]
    age = rng.integers(16, 95, rows)
    return pl.DataFrame({
        "income": np.round(np.exp(10 + 0.4 * rich + 0.6 * rng.normal(size=rows)), 2),
        "wealth": np.round(20_000 * rich + 900 * age + 30_000 * rng.normal(size=rows), 2),
        "age": age,
        "hours": np.clip(np.rint(38 + 8 * rng.normal(size=rows)), 0, 80).astype(np.int64),
        "weight": np.round(75 + 10 * rng.normal(size=rows) + 3 * rich, 1),
        "illness": np.array(ILLNESSES)[
            np.minimum(rng.geometric(0.45, size=rows) - 1, len(ILLNESSES) - 1)
        ],
    })  # fmt: skip


CATEGORIES = {"municipality": 311, "sector": 12, "marital": 4, "sex": 2}


def mixed(rows: int, seed: int) -> pl.DataFrame:
    """Two numbers of such people, and categories, of which the first are the most frequent."""
    rng = np.random.default_rng(seed + 1_000)
    codes = {name: (rng.zipf(1.3, rows) - 1) % count for name, count in CATEGORIES.items()}
    frame = people(rows, seed).select("age", "hours", "illness")
    return frame.with_columns(pl.Series(name, code).cast(pl.String) for name, code in codes.items())


def make(rows: int, folder: Path, table: Callable[[int, int], pl.DataFrame] = people) -> None:
    """Write the table in parts of a million rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(-(-rows // 1_000_000)):
        many = min(1_000_000, rows - part * 1_000_000)
        table(many, part + 1).write_parquet(folder / f"part-{part:03}.parquet")


def policy_of(folder: Path) -> dict[str, Any]:
    """The policy for the columns that a table has."""
    names = pl.read_parquet_schema(next(folder.glob("*.parquet")))
    towns = {
        name: {
            "role": "quasi-identifier",
            "kind": "nominal",
            "categories": [*map(str, range(count))],
        }
        for name, count in CATEGORIES.items()
    }
    columns = {**POLICY["columns"], **towns}
    return {"version": 1, "columns": {name: columns[name] for name in names}}


def protect(engine: str, method: str, folder: Path, out: Path) -> None:
    """Protect the table in this process."""
    import shoal  # noqa: PLC0415 (the parent does without)

    policy = {**policy_of(folder), "protect": {"method": method, "k": 5}}
    stages: list[tuple[str, float]] = []
    start = time.monotonic()

    def progress(stage: str, _done: int, _of: int) -> None:
        if not stages or stages[-1][0] != stage:
            stages.append((stage, round(time.monotonic() - start, 1)))

    if engine == "local":
        release = shoal.protect(pl.read_parquet(folder), policy, progress=progress)
        release.data.write_parquet(out)
    else:
        from shoal.engine.spark.files import session  # noqa: PLC0415 (optional)

        spark = session({
            "spark.master": "local[2]",
            "spark.driver.memory": "6g",
            "spark.local.dir": str(out.parent / "local"),
        })  # fmt: skip
        release = shoal.protect(spark.read.parquet(str(folder)), policy, progress=progress)
        release.data.write.parquet(str(out))
    for check in release.checks:
        assert check.holds
    stages.append(("written", round(time.monotonic() - start, 1)))
    print(json.dumps({"stages": stages}))


def run(engine: str, method: str, rows: int, folder: Path, results: Path) -> None:
    """Start one run, watch it, and write down what it took."""
    scratch = results.parent / f"run-{os.getpid()}"
    scratch.mkdir(parents=True)
    command = [sys.executable, __file__, "protect", engine, method, str(folder), str(scratch / "o")]
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = _Watch(child.pid, scratch / "local")
    watch.start()
    said, _ = child.communicate()
    watch.stop.set()
    watch.join()
    last = said.strip().splitlines()[-1] if said.strip() else "{}"
    line = {
        "engine": engine,
        "method": method,
        "rows": rows,
        "finished": child.returncode == 0,
        "wall": round(time.monotonic() - start, 1),
        "cpu": round(sum(watch.cpu.values()), 1),
        "java": round(watch.java, 1),
        "memory": round(watch.memory / 2**30, 2),
        "workers": round(watch.workers / 2**30, 2),
        "disk": round(watch.disk / 2**30, 2),
        "load": round(os.getloadavg()[1], 1),
        **json.loads(last),
    }
    with results.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line))
    shutil.rmtree(scratch)


class _Watch(Thread):
    """Add up what a process and its descendants take, every half second."""

    def __init__(self, root: int, local: Path) -> None:
        super().__init__(daemon=True)
        self.root, self.local, self.stop = root, local, Event()
        self.cpu: dict[int, float] = {}
        self.memory = self.workers = self.disk = 0
        self.java = 0.0

    def run(self) -> None:
        """Watch until asked to stop."""
        ticks, looks = os.sysconf("SC_CLK_TCK"), 0
        while not self.stop.wait(0.5):
            total = workers = 0
            java = 0.0
            for pid, name, used, resident in _descendants(self.root):
                self.cpu[pid] = used / ticks
                total += resident
                if name == "java":
                    java += used / ticks
                else:
                    workers += resident
            self.memory, self.workers = max(self.memory, total), max(self.workers, workers)
            self.java = max(self.java, java)
            looks += 1
            if looks % 10 == 0 and self.local.exists():
                sizes = (path.lstat().st_size for path in self.local.rglob("*"))
                self.disk = max(self.disk, _added(sizes))


def _added(sizes: Any) -> int:
    total = 0
    try:
        for size in sizes:
            total += size
    except OSError:
        pass  # Spark removed a file while we looked.
    return total


def _descendants(root: int) -> list[tuple[int, str, int, int]]:
    """Process, name, clock ticks and resident bytes of a process and all below it."""
    found: dict[int, tuple[int, str, int, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        found[int(entry.name)] = (int(fields[1]), name, int(fields[11]) + int(fields[12]), resident)
    children = defaultdict(list)
    for pid, (parent, *_) in found.items():
        children[parent].append(pid)
    waiting, below = [root], []
    while waiting:
        pid = waiting.pop()
        if pid in found:
            below.append((pid, *found[pid][1:]))
        waiting += children[pid]
    return below


def fit(results: Path) -> None:
    """Fit CPU seconds and disk as a + b rows to the Spark runs of each method, and print both.

    Least squares on relative errors, so a run of 2 million rows counts as much as one of 20.
    """
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    for method in METHODS:
        own = [
            one for one in lines
            if one["engine"] == "spark" and one["method"] == method and one["finished"]
        ]  # fmt: skip
        if len(own) < 2:
            continue
        rows = np.array([one["rows"] for one in own]) / 1e6
        cpu = np.array([one["cpu"] for one in own])
        fixed, each = _line(rows, cpu)
        _, disk = _line(rows, np.array([one["disk"] for one in own]))
        worst = np.abs(fixed + each * rows - cpu).max()
        print(
            f"{method}: CPU seconds = {fixed:.0f} + {each:.1f} x million rows "
            f"(off by at most {worst:.0f}); disk {disk * 2**30 / 1e6:.0f} bytes a row; 1 billion "
            f"rows: {(fixed + 1000 * each) / 3600:.1f} CPU hours, {disk * 1000:.0f} GB of disk"
        )


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Intercept and slope of least relative squares, neither below 0."""
    design = np.column_stack([1 / y, x / y])
    fixed, each = np.linalg.lstsq(design, np.ones(len(x)), rcond=None)[0]
    if fixed < 0:
        fixed, each = 0.0, float(np.sum(x / y) / np.sum((x / y) ** 2))
    return float(fixed), float(each)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", rows, folder]:
            make(int(rows), Path(folder))
        case ["mixed", rows, folder]:
            make(int(rows), Path(folder), mixed)
        case ["protect", engine, method, folder, out]:
            protect(engine, method, Path(folder), Path(out))
        case ["run", engine, method, rows, folder, results]:
            run(engine, method, int(rows), Path(folder), Path(results))
        case ["fit", results]:
            fit(Path(results))
        case _:
            print(__doc__)
            sys.exit(2)

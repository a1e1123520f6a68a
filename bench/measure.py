"""`shoal.evaluate` from end to end: Polars frames in, every figure out, with a control.

    python bench/measure.py [rows ...]

People of the sample's generator with six columns, released as intervals (`mondrian`) and as exact
numbers (`individual-ranking`), row by row; as many others are the control. A process of its own
evaluates each, so its peak of memory has Python, the libraries and the three tables in it and
nothing else; compilation is paid before, on a small table. Wanted: everything but the best
matching, which is tried up to 2,000 rows only, in under 3 minutes of CPU and 3 GB at a million
rows, and near linear from 100,000.
"""

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import shoal

SIZES = (100_000, 1_000_000)
COLUMNS = ("age", "sex", "education", "hours", "income", "occupation")
METHODS = {
    "mondrian": {"method": "mondrian", "k": 10},
    "individual-ranking": {"method": "individual-ranking", "k": 10},
}
MOST_SECONDS, MOST_MEMORY = 180.0, 3.0
TABLES = ("original", "released", "control")


def policy(method: str) -> dict[str, Any]:
    """Four quasi-identifiers and the income; the occupation is confidential."""
    ages = {"role": "quasi-identifier", "kind": "numeric"}
    schooling = ["none", "primary", "secondary", "tertiary"]
    quasi = {
        "age": {**ages, "bounds": [0, 110], "step": 1},
        "education": {"role": "quasi-identifier", "kind": "ordinal", "categories": schooling},
        "hours": {**ages, "bounds": [0, 80], "step": 1},
        "income": {**ages, "bounds": [0, 500_000]},
    }
    sexes = {"kind": "nominal", "categories": ["male", "female"]}
    jobs = sorted(shoal.sample.load()["occupation"].unique())
    # Ranking takes what has an order; the sex is left as it is there.
    role = "quasi-identifier" if method == "mondrian" else "other"
    columns = {**quasi, "sex": {**sexes, "role": role}}
    columns["occupation"] = {"role": "confidential", "kind": "nominal", "categories": jobs}
    return {"version": 1, "columns": columns, "protect": METHODS[method]}


def prepare(folder: Path, rows: int, method: str) -> None:
    """Write the three tables of a case."""
    frame = shoal.sample.people(2 * rows, 1).select(COLUMNS).drop_nulls()
    half = frame.height // 2
    original, control = frame[:half], frame[half:]
    release = shoal.protect(original, policy(method), keep_order=True)
    for name, table in zip(TABLES, (original, release.data, control), strict=True):
        table.write_parquet(folder / f"{name}.parquet")


def measured(folder: Path, method: str) -> dict[str, float]:
    """CPU seconds of each metric, by the progress that it reports."""
    before, after, others = (pl.read_parquet(folder / f"{name}.parquet") for name in TABLES)
    spent: dict[str, float] = {}
    state: dict[str, Any] = {"stage": "start", "since": time.process_time()}

    def watch(stage: str, _done: int, _total: int) -> None:
        now = time.process_time()
        spent[state["stage"]] = spent.get(state["stage"], 0.0) + now - state["since"]
        state.update(stage=stage, since=now)

    shoal.evaluate(before, after, policy(method), control=others, aligned=True, progress=watch)
    watch("end", 1, 1)
    del spent["start"]
    return spent


def child(folder: Path, warm: Path, method: str) -> None:
    """Measure in a process of its own, and print as JSON."""
    measured(warm, method)
    spent = measured(folder, method)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    rows = pl.scan_parquet(folder / "original.parquet").select(pl.len()).collect().item()
    print(json.dumps({"rows": rows, "spent": spent, "peak": peak}))


def main() -> None:
    """Measure all cases and print a Markdown table for RESULTS.md."""
    sizes = [int(text) for text in sys.argv[1:]] or list(SIZES)
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}\n")
    results = {}
    with tempfile.TemporaryDirectory() as home:
        for method in METHODS:
            warm = Path(home) / f"warm-{method}"
            warm.mkdir()
            prepare(warm, 3000, method)
            for rows in sizes:
                folder = Path(home) / f"{method}-{rows}"
                folder.mkdir()
                prepare(folder, rows, method)
                command = [sys.executable, __file__, "child", str(folder), str(warm), method]
                done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
                results[method, rows] = json.loads(done.stdout)
    stages = list(dict.fromkeys(stage for one in results.values() for stage in one["spent"]))
    head = [f"{method}, {one['rows']:,}" for (method, _), one in results.items()]
    print("| CPU-s | " + " | ".join(head) + " |")
    print("|---" * (len(head) + 1) + "|")
    for stage in stages:
        row = [f"{one['spent'].get(stage, 0.0):.2f}" for one in results.values()]
        print(f"| {stage} | " + " | ".join(row) + " |")
    totals = {case: sum(one["spent"].values()) for case, one in results.items()}
    print("| together | " + " | ".join(f"{total:.1f}" for total in totals.values()) + " |")
    peaks = [f"{one['peak']:.2f} GB" for one in results.values()]
    print("| peak memory | " + " | ".join(peaks) + " |")
    over = [case for case, one in results.items()
            if totals[case] > MOST_SECONDS or one["peak"] > MOST_MEMORY]  # fmt: skip
    print(f"\nOver {MOST_SECONDS:.0f} CPU-s or {MOST_MEMORY:g} GB: {over or 'none'}.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        main()

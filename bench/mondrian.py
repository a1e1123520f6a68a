"""Mondrian against anonypy and against its own targets, as ratios of CPU time.

    python bench/mondrian.py

prints Markdown tables for RESULTS.md, the last of a million people through the whole method,
from a Polars frame to a release that is checked and compared with the original. Kernels are
compiled before anything is timed. Two things are optional: adult.csv of SHOAL_DATA (or
../shared/data), and anonypy, which wants packages of its own: SHOAL_ANONYPY_PYTHON names an
interpreter that has it and pandas.
"""

import csv
import os
import platform
import subprocess
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shoal
from shoal import sample
from shoal.core import Distance, Diversity, LDiversity, TCloseness
from shoal.partition import CutColumn, PartitionTree, Requirement, mondrian_tree, warmup
from shoal.privacy_models import Counts, verdict

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
ROWS = 1_000_000
ANONYPY_SECONDS, ANONYPY_CLASSES = 15.6, 2350
"""As measured earlier, where anonypy is not at hand."""

ANONYPY = """
import sys, time
import pandas as pd
from anonypy.mondrian import Mondrian
names = ["age", "hours-per-week", "education-num", "workclass", "sex"]
frame = pd.read_csv(sys.argv[1])[names + ["occupation"]]
for name in ("workclass", "sex", "occupation"):
    frame[name] = frame[name].astype("category")
begin = time.process_time()
found = Mondrian(frame, names, "occupation").partition(k=5)
print(time.process_time() - begin, len(found))
"""


def main() -> None:
    """Time the cuts of Adult and of a million records."""
    warmup()
    print("| what | CPU s | groups | wanted | met |")
    print("|---|---|---|---|---|")
    X = np.random.default_rng(0).normal(size=(1_000_000, 5))
    spent, tree = best(lambda: mondrian_tree(X, 10))
    line("1M x 5, k=10", spent, tree, "near 1 s", good=spent < 1.2)
    codes = np.random.default_rng(1).integers(0, 10, size=len(X))
    wanted = [diverse(3, Diversity.DISTINCT), close("0.3", Distance.EQUAL)]
    require = [Requirement(guarantee, codes) for guarantee in wanted]
    spent, tree = best(lambda: mondrian_tree(X, 10, require=require))
    line("1M x 5, k=10, distinct 3-diversity, 0.3-closeness", spent, tree, "under 10 s")
    if (DATA / "adult.csv").is_file():
        adult()
        left_out()
    method()


def left_out() -> None:
    """Say how wide intervals of four numbers of Adult are if rows may be left out."""
    names = ["age", "education-num", "capital-gain", "hours-per-week"]
    table = pl.read_csv(DATA / "adult.csv").select(names)
    columns = {name: {"role": "quasi-identifier", "kind": "numeric"} for name in names}
    extent = {name: float(table[name].max() - table[name].min()) for name in names}
    print("\n| Adult, four numbers, k = 10 | rows left out | mean width of an interval |")
    print("|---|---|---|")
    for share in ("0", "0.01", "0.02", "0.05", "0.1"):
        protect = {"method": "mondrian", "k": 10, "record_suppression": Decimal(share)}
        release = shoal.protect(table, {"version": 1, "columns": columns, "protect": protect})
        ends = {name: _ends(release.data[name]) for name in names}
        width = np.mean([(high - low).mean() / extent[name] for name, (low, high) in ends.items()])
        print(
            f"| record_suppression = {share} | {release.manifest['suppressed']:,} | {width:.4f} |"
        )


def _ends(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    text = cells.cast(pl.String).str.strip_chars("[]").str.split(", ")
    return text.list.first().cast(pl.Float64), text.list.last().cast(pl.Float64)


def method() -> None:
    """Time the method, five quasi-identifiers of four kinds, and say where the time goes."""
    tree = Path(sample.__file__).parent / "files" / "region.csv"
    schooling = ["none", "primary", "secondary", "tertiary"]
    kinds: dict[str, dict[str, Any]] = {
        "age": {"kind": "numeric", "bounds": [0, 110]},
        "sex": {"kind": "nominal", "categories": ["female", "male"]},
        "region": {"kind": "nominal", "hierarchy": str(tree)},
        "education": {"kind": "ordinal", "categories": schooling},
        "hours": {"kind": "numeric", "bounds": [0, 80]},
    }
    columns = {name: {"role": "quasi-identifier", **kind} for name, kind in kinds.items()}
    columns["condition"] = {"role": "confidential", "kind": "nominal"}
    rows = sample.people(ROWS, 1).select(*columns)
    steer = {
        "l-diversity": {"l": 3, "column": "condition"},
        "t-closeness": {"t": Decimal("0.3"), "column": "condition"},
    }
    print(f"\n{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    print(f"\n| {len(rows):,} people, five quasi-identifiers, k = 10 | CPU s | classes | rows |")
    print("|---|---|---|---|")
    variants: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("intervals", {}, {}),
        ("intervals, 3-diversity and 0.3-closeness", {}, steer),
        ("intervals, 2% of the rows left out", {"record_suppression": Decimal("0.02")}, {}),
        ("tree, rows with missing numbers left out before", {"output": "tree"}, {}),
    ]
    for what, protect, require in variants:
        policy = {
            "version": 1,
            "columns": columns,
            "protect": {"method": "mondrian", "k": 10, **protect},
            "require": require,
        }
        table = rows.drop_nulls(["age", "hours"]) if "tree" in what else rows
        shoal.protect(table.head(1000), policy)
        spent, release = best_of(lambda: shoal.protect(table, policy))  # noqa: B023
        classes = release.checks[0].remarks["classes"]
        size = table.height - release.manifest["suppressed"]
        print(f"| {what} | {spent:.3g} | {classes:,} | {size:,} |")
    spent_on: dict[str, float] = {}
    last = ["planning", time.process_time()]

    def watch(stage: str, _done: int, _total: int) -> None:
        now = time.process_time()
        spent_on[last[0]] = spent_on.get(last[0], 0.0) + now - last[1]
        last[:] = [stage, now]

    policy["protect"].pop("output")
    shoal.protect(rows, policy, progress=watch)
    watch("", 0, 1)
    print("\nIntervals: " + ", ".join(f"{s} {t:.2f}" for s, t in spent_on.items()) + " CPU-s.")


def best_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU time of three runs, and what the last gave."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        done = run()
        times.append(time.process_time() - begin)
    return min(times), done


def adult() -> None:
    """Cut Adult as anonypy does, then by every choice and under every model."""
    with (DATA / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def numbered(name: str) -> NDArray[np.int64]:
        return np.unique([row[name] for row in rows], return_inverse=True)[1].astype(np.int64)

    numbers = [[float(row[c]) for row in rows] for c in ("age", "hours-per-week", "education-num")]
    X = np.column_stack([*numbers, numbered("workclass"), numbered("sex")])
    ill = numbered("occupation")

    seconds, classes = ANONYPY_SECONDS, ANONYPY_CLASSES
    interpreter = os.environ.get("SHOAL_ANONYPY_PYTHON")
    if interpreter:
        seconds, classes = anonypy(interpreter)
    print(f"| anonypy, Adult, k=5 | {seconds:.3g} | {classes:,} | | |")
    spent, tree = best(lambda: mondrian_tree(X, 5))
    good = seconds / spent >= 100 and len(tree.partition) >= classes
    wanted = f"100 times faster (found {seconds / spent:,.0f}), no fewer groups"
    line("Adult, k=5, strict", spent, tree, wanted, good=good)
    line("Adult, k=5, relaxed", *best(lambda: mondrian_tree(X, 5, relaxed=True)))
    line("Adult, k=5, by entropy", *best(lambda: mondrian_tree(X, 5, choice=CutColumn.ENTROPY)))
    gain = best(lambda: mondrian_tree(X, 5, choice=CutColumn.GAIN, target=ill))
    line("Adult, k=5, by information gain on occupation", *gain)
    flat = np.arange(int(ill.max()) + 1)[:, None]
    for guarantee in (
        diverse(3, Diversity.DISTINCT),
        diverse(3, Diversity.ENTROPY),
        diverse(3, Diversity.RECURSIVE, Fraction(2)),
        diverse(3, Diversity.FREQUENCY),
        close("0.2", Distance.EQUAL),
        close("0.2", Distance.ORDERED),
        close("0.2", Distance.HIERARCHICAL),
        close("5", Distance.RATIO),
    ):
        require = [Requirement(guarantee, ill, edges=flat)]
        spent, tree = best(lambda: mondrian_tree(X, 5, require=require))  # noqa: B023
        found = verdict(Counts.of(tree.partition.labels, ill), guarantee, edges=flat)
        what = f"Adult, k=5, {guarantee}: {float(found.achieved):.3g}"
        line(what, spent, tree, "holds", good=found.holds)
    halt = Requirement(close("0.35", Distance.EQUAL), ill)
    spent, tree = best(lambda: mondrian_tree(X, 8, halt=halt))
    found = verdict(Counts.of(tree.partition.labels, ill), halt.guarantee)
    what = f"Adult, cormode2013's rule, k=8, t=0.35: {float(found.achieved):.3g}"
    line(what, spent, tree, "fails, as it must", good=not found.holds)


def diverse(l: int, kind: Diversity, c: Fraction | None = None) -> LDiversity:  # noqa: E741
    """Name l-diversity of occupation."""
    return LDiversity(Fraction(l), kind, ("occupation",), ("the five",), c)


def close(t: str, distance: Distance) -> TCloseness:
    """Name t-closeness of occupation."""
    return TCloseness(Fraction(t), distance, ("occupation",), ("the five",))


def best(run: Callable[[], PartitionTree]) -> tuple[float, PartitionTree]:
    """Return the least CPU time of three runs, and what was found."""
    return best_of(run)


def anonypy(interpreter: str) -> tuple[float, int]:
    """Return the CPU time of anonypy on Adult and its number of classes."""
    command = [interpreter, "-c", ANONYPY, str(DATA / "adult.csv")]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), int(found[1])


def line(
    what: str, spent: float, tree: PartitionTree, wanted: str = "", *, good: bool = True
) -> None:
    """Print a row."""
    print(f"| {what} | {spent:.3g} | {len(tree.partition):,} | {wanted} | {good} |")


if __name__ == "__main__":
    main()

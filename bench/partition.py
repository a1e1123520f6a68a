"""The partitioners against yardsticks run in the same process, as ratios of CPU time.

    python bench/partition.py [section ...]

prints a Markdown table for RESULTS.md. Sections: mdav, mixed, twin, privlib, ranking,
shapes, blocks, vmdav; all of them without an argument. Kernels are compiled before anything is
timed. Two things are optional: the reference tables of SHOAL_DATA (or ../shared/data), and
privlib, which wants packages of its own: SHOAL_PRIVLIB_PYTHON names an interpreter that has it.
"""

import csv
import json
import math
import os
import platform
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from shoal import sample
from shoal.core import Partition, Schema, silent
from shoal.io.validate import validate
from shoal.partition import (
    blocks,
    individual_rankings,
    mdav,
    optimal_univariate,
    vmdav,
    warmup,
)
from shoal.partition._exact_scale import unit_scaled, within_squares
from shoal.partition.mdav import _rounds
from shoal.policy.load import load

Floats = NDArray[np.float64]
HERE = Path(__file__).parent
DATA = Path(os.environ.get("SHOAL_DATA", HERE.parents[1] / "shared" / "data"))
K = 10

PEAK = """
import numpy as np
from pathlib import Path
from shoal.partition import mdav
def memory(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
X = np.random.default_rng(0).normal(size=(1_000_000, 4))
mdav(X[:5000], 10)
before = memory("VmRSS")
mdav(X, 10)
print(memory("VmHWM") - before)
"""

PRIVLIB = """
import sys, time
import pandas as pd
from privlib.anonymization.src.algorithms.mdav import Mdav
from privlib.anonymization.src.entities.dataset_DataFrame import Dataset_DataFrame
frame = pd.read_csv(sys.argv[1])
frame.name = "normal"
records = Dataset_DataFrame(frame, sys.argv[2]).records
start = time.process_time()
clusters = Mdav.create_clusters(records, 10)
print("\\n", len(clusters), time.process_time() - start)
"""


def cpu(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Least CPU seconds of some runs, and what the last one returned."""
    least = math.inf
    result = None
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return least, result


def line(what: str, ours: str, theirs: str, value: float, wanted: str, *, good: bool) -> None:
    """Print one row of the table."""
    verdict = "yes" if good else "NO"
    print(f"| {what} | {ours} | {theirs} | {value:.3g} | {wanted} | {verdict} |", flush=True)


def ratio(what: str, ours: float, theirs: float, most: float) -> None:
    """Print a ratio of CPU times that must not exceed `most`."""
    found = ours / theirs
    wanted = f"<= {most:g}"
    line(what, f"{ours:.3g} s", f"{theirs:.3g} s", found, wanted, good=found <= most)


def faster(what: str, ours: float, theirs: float, least: float) -> None:
    """Print how many times faster we are; it must be at least `least`."""
    found = theirs / ours
    wanted = f">= {least:g}"
    line(what, f"{ours:.3g} s", f"{theirs:.3g} s", found, wanted, good=found >= least)


def loss(X: Floats, partition: Partition) -> float:
    """Sum of squares within groups, in the units of the scaled table."""
    return within_squares(unit_scaled(X), partition.labels)


def bench_mdav(rng: np.random.Generator) -> None:
    """Measure MDAV at a million by four and at a hundred thousand by thirteen."""
    X = rng.normal(size=(1_000_000, 4))
    ours, _ = cpu(lambda: mdav(X, K), 2)
    theirs, _ = cpu(lambda: cKDTree(X).query(X, K))
    ratio("MDAV 1M x 4, k=10 / cKDTree build and query of 10", ours, theirs, 0.30)
    small, _ = cpu(lambda: mdav(X[:30_000], K), 5)
    exponent = math.log(ours / small) / math.log(1_000_000 / 30_000)
    good = exponent <= 1.35
    line("growth exponent, 30k to 1M by 4", f"{small:.3g} s", "", exponent, "<= 1.35", good=good)
    if Path("/proc/self/status").exists():
        peak = float(_python(sys.executable, PEAK))
        line("peak memory above the input, 1M x 4, MB", "", "", peak, "< 600", good=peak < 600)
    X = rng.normal(size=(100_000, 13))
    ours, _ = cpu(lambda: mdav(X, K), 2)
    build, tree = cpu(lambda: cKDTree(X))
    query, _ = cpu(lambda: tree.query(X[:20_000], K))
    ratio("MDAV 100k x 13, k=10 / cKDTree, a fifth queried", ours, build + 5 * query, 0.04)


def bench_mixed(_rng: np.random.Generator) -> None:
    """Measure MDAV of people: age, sex, region with its hierarchy, education, marital status."""
    took = {}
    for n in (30_000, 1_000_000, 2_000_000):
        X = _people(n)
        took[n], _ = cpu(lambda X=X: mdav(X, 5), 3 if n == 30_000 else 1)
    exponent = math.log(took[1_000_000] / took[30_000]) / math.log(1_000_000 / 30_000)
    times = f"{took[1_000_000]:.3g} s", f"{took[30_000]:.3g} s"
    what = "growth exponent, people, 30k to 1M by 67, k=5"
    line(what, *times, exponent, "<= 1.4", good=exponent <= 1.4)
    most = took[2_000_000]
    line("MDAV of 2M people, k=5, CPU-s", f"{most:.3g} s", "", most, "<= 120", good=most <= 120)


def _people(n: int) -> Floats:
    """The matrix of five mixed columns of the sample."""
    names = ("age", "sex", "region", "education", "marital")
    schema = load(sample.folder() / "people.toml").schema
    columns = tuple(column for column in schema.columns if column.name in names)
    return validate(sample.people(n, 1).select(names), Schema(columns)).matrix(names)


def bench_twin(rng: np.random.Generator) -> None:
    """Measure MDAV against the numpy twin of the tests."""
    twin = runpy.run_path(str(HERE.parent / "tests" / "partition" / "test_mdav.py"))["mdav_twin"]
    for d in (4, 13):
        X = rng.normal(size=(10_000, d))
        ours, partition = cpu(lambda X=X: mdav(X, K), 5)
        theirs, labels = cpu(lambda X=X: twin(X, K))
        assert np.array_equal(partition.labels, labels)
        faster(f"MDAV 10k x {d} against the numpy twin", ours, theirs, 20)


def bench_privlib(rng: np.random.Generator) -> None:
    """Measure MDAV against privlib, where an interpreter has it."""
    python = os.environ.get("SHOAL_PRIVLIB_PYTHON")
    if not python:
        print("| privlib skipped: SHOAL_PRIVLIB_PYTHON is not set | | | | | |")
        return
    X = rng.normal(size=(2000, 4))
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    table, settings = out / "normal.csv", out / "normal.xml"
    np.savetxt(table, X, delimiter=",", header="a,b,c,d", comments="")
    rows = "".join(
        f'<attribute name="{name}" attribute_type="numerical_continuous" '
        'sensitivity_type="quasi_identifier"/>'
        for name in "abcd"
    )
    settings.write_text(f"<settings>{rows}</settings>")
    told = _python(python, PRIVLIB, str(table), str(settings)).split()
    ours, partition = cpu(lambda: mdav(X, K), 20)
    assert int(told[-2]) == len(partition)
    faster("MDAV 2k x 4 against privlib", ours, float(told[-1]), 500)


def bench_ranking(rng: np.random.Generator) -> None:
    """Measure both rankings of single columns."""
    X = rng.normal(size=(10_000_000, 4))
    ours, _ = cpu(lambda: individual_rankings(X, K), 2)
    columns = [np.ascontiguousarray(x) for x in X.T]
    theirs, _ = cpu(lambda: [np.argsort(x) for x in columns], 2)
    ratio("individual ranking 10M x 4 / four numpy.argsort", ours, theirs, 0.6)
    try:
        from microagg1d import univariate_microaggregation  # noqa: PLC0415  # compiles long
    except ImportError:
        print("| optimal ranking skipped: microagg1d is not installed | | | | | |")
        return
    x = rng.normal(size=1_000_000)
    univariate_microaggregation(x[:1000], K, method="wilber")
    theirs, labels = cpu(lambda: univariate_microaggregation(x, K, method="wilber"), 3)
    ours, partition = cpu(lambda: optimal_univariate(x, K), 3)
    ratio("optimal ranking 1e6, k=10 / microagg1d wilber", ours, theirs, 1.0)
    column = x[:, None]
    found = loss(column, partition) / loss(column, Partition(np.asarray(labels, np.int64)))
    good = found <= 1 + 1e-12
    line("its sum of squares / that of microagg1d", "", "", found, "<= 1", good=good)


def bench_shapes(rng: np.random.Generator) -> None:
    """Measure MDAV on awkward tables against its own brute-force path."""
    for name, X in shapes(rng):
        n = len(X)
        ours, partition = cpu(lambda X=X: mdav(X, K), 3)
        Z = unit_scaled(X)
        theirs, labels = cpu(lambda Z=Z, n=n: _rounds(Z, K, silent, tree_from=n + 1), 3)
        assert np.array_equal(partition.labels, labels)
        ratio(f"{name}, {n:,} x {X.shape[1]} / brute-force path", ours, theirs, 3)


def shapes(rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """Tables of real or awkward shape."""
    yield from _reference_shapes(rng)
    centres = rng.normal(size=(50, 6)) * 10
    yield (
        "mixture of 50 clusters",
        centres[rng.integers(0, 50, 50_000)] + rng.normal(size=(50_000, 6)),
    )
    yield "heavy tails", rng.standard_cauchy(size=(50_000, 4)) ** 3
    yield "90% duplicates", rng.normal(size=(5000, 5))[rng.integers(0, 5000, 50_000)]
    yield (
        "one value in nine of ten",
        np.where(rng.random((50_000, 1)) < 0.9, 0.0, rng.normal(size=(50_000, 4))),
    )
    yield "binary", rng.integers(0, 2, size=(50_000, 4)).astype(np.float64)
    yield "one nominal of 12", np.eye(12)[rng.integers(0, 12, 50_000)]
    yield "sphere", _sphere(rng)
    yield "uniform", rng.random((50_000, 8))


def _sphere(rng: np.random.Generator) -> Floats:
    X = rng.normal(size=(50_000, 4))
    points: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return points


def _reference_shapes(rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    if not (DATA / "adult.csv").is_file():
        print("| Adult and Census skipped: SHOAL_DATA does not name their folder | | | | | |")
        return
    adult = _read("adult.csv")
    numbers = [_z_scores(adult[name]) for name in ("age", "education-num", "hours-per-week")]
    stars = [_star(adult[name]) for name in ("marital-status", "occupation", "sex")]
    yield "Adult, three numbers and three nominals", np.hstack([*numbers, *stars])
    census = np.hstack([_z_scores(values) for values in _read("census.csv").values()])
    yield "Census 13", census
    many = np.repeat(census, 40, axis=0)
    yield "Census 13, forty jittered copies", many + rng.normal(size=many.shape) * 0.05


def _read(name: str) -> dict[str, list[str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {column: [row[column] for row in rows] for column in rows[0]}


def _z_scores(values: list[str]) -> Floats:
    x = np.array(values, np.float64)[:, None]
    scores: Floats = (x - x.mean()) / x.std()
    return scores


def _star(values: list[str]) -> Floats:
    """A flat nominal: one column per category, so any two lie at the same distance."""
    names, codes = np.unique(values, return_inverse=True)
    return np.eye(len(names))[codes] * math.sqrt(0.5)


def bench_blocks(rng: np.random.Generator) -> None:
    """Measure what blocks cost in homogeneity and save in time."""
    X = rng.normal(size=(100_000, 4))
    ours, cut = cpu(lambda: blocks(X, K))
    theirs, whole = cpu(lambda: mdav(X, K))
    found = loss(X, cut) / loss(X, whole)
    times = f"{ours:.3g} s", f"{theirs:.3g} s"
    line("blocks 100k x 4: sum of squares / whole", *times, found, "<= 1.05", good=found <= 1.05)


def bench_vmdav(rng: np.random.Generator) -> None:
    """Compare V-MDAV's loss with MDAV's on clusters, twenty draws each, the mean."""
    cases = {"50 clusters of 20": (lambda: [20] * 50, 1.05)}
    cases["50 clusters of 5 to 9"] = (lambda: rng.integers(5, 10, size=50).tolist(), 0.8)
    for name, (sizes, most) in cases.items():
        found = []
        for _ in range(20):
            size = sizes()
            grid = np.array(list(np.ndindex(3, 3, 3, 3)))[rng.permutation(81)[:50]] * 10.0
            X = np.repeat(grid, size, axis=0) + rng.normal(size=(sum(size), 4))
            found.append(loss(X, vmdav(X, 5)) / loss(X, mdav(X, 5)))
        mean = float(np.mean(found))
        what = f"V-MDAV / MDAV, sum of squares, {name}, k=5"
        line(what, "", f"largest {max(found):.3g}", mean, f"<= {most}", good=mean <= most)


def _python(interpreter: str, code: str, *arguments: str) -> str:
    run = subprocess.run(
        [interpreter, "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    return run.stdout


SECTIONS = {
    "mdav": bench_mdav,
    "mixed": bench_mixed,
    "twin": bench_twin,
    "privlib": bench_privlib,
    "ranking": bench_ranking,
    "shapes": bench_shapes,
    "blocks": bench_blocks,
    "vmdav": bench_vmdav,
}


def main() -> None:
    """Run the sections named on the command line, or all."""
    warmup()
    versions = {"numpy": np.__version__, "python": platform.python_version()}
    print(f"{platform.machine()}, {platform.system()}, {json.dumps(versions)}\n")
    print("| what | ours | theirs | found | wanted | met |")
    print("|---|---|---|---|---|---|")
    for name in sys.argv[1:] or SECTIONS:
        SECTIONS[name](np.random.default_rng(0))


if __name__ == "__main__":
    main()

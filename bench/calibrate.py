"""Measure what the methods take, and write the constants of their cost models.

    python bench/calibrate.py [METHOD ...] [--write] [--check]

Every method protects generated people in a process of its own, as `shoal protect` does, at three
numbers of rows. The least of two runs counts. `--write` puts the constants where they stand: those
of a method into its file, those of all runs into `pipeline/forecast.py`. Seconds are processor
seconds in units of a run that does next to nothing, before and after, so other work on the machine
matters little; with `--idle`, which measures that run too, in units of the probe of forecasts.
`--check` measures nothing but how forecasts of 24 other tables, from a thousand rows to five
million, compare with runs of them.
"""

import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log, prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import run as large

from shoal.io.text_files import as_toml, bare
from shoal.methods import REGISTRY
from shoal.pipeline import forecast, planning

SRC = Path(__file__).parents[1] / "src" / "shoal"
SIZES = (1_000, 5_000, 20_000, 120_000, 1_000_000)
"""Numbers of rows; the last one is for what every run takes alone."""
SMALL = {"bucketization", "mdav-laplace", "stable-laplace", "vmdav"}
"""Methods that take minutes for the largest table."""
OF_NUMBERS = {"mdav", "mu-approx", "stable", "vmdav"}
"""Methods that drafts choose for numbers, so they are measured on five columns of those too; their
constants lie between both, in the middle of the logarithms."""
COARSE = "local-suppression"
BLOCKS = "blocks"
"""Any method that groups within blocks, measured as `mdav`."""
BASE = "individual-ranking"
"""The method that does least: what it takes is what every run takes."""
CLEAR, ENOUGH = 0.1, 3.0
"""Seconds below which the smaller table does not tell how time grows; and those of the larger one
from which on no larger one is tried. Both are beside what every run takes."""
IDLE = False
SHARED = 1.6
"""Memory of a run with kernels is twice and a half that of one without: forecasts lie between."""
K, EPSILON = {"k": 5}, {"epsilon": 2}
QUASI, SECRET = "quasi-identifier", "confidential"
EXTRA: dict[str, dict[str, Any]] = {"bucketization": {"t": 2}, "vmdav": {"gamma": 0.2}}


@dataclass(frozen=True)
class Run:
    """What one run took: processor seconds in units of the probe's machine, and bytes."""

    seconds: float
    peak: float


def people(rows: int, *, towns: int = 40) -> pl.DataFrame:
    """Six mixed columns, of which five are protected by every method."""
    rng = np.random.default_rng(rows)
    job, town = rng.choice(12, rows), rng.zipf(1.4, rows) % towns
    return pl.DataFrame({
        "age": rng.integers(18, 95, rows),
        "income": np.round(np.exp(10 + rng.normal(size=rows) * 0.6) / 500) * 500,
        "sex": rng.choice(["f", "m"], rows),
        "town": [f"T{i:04d}" for i in town],
        "school": rng.choice(["none", "primary", "secondary", "tertiary"], rows),
        "job": [f"J{i:02d}" for i in job],
    })  # fmt: skip


def coarse(rows: int) -> pl.DataFrame:
    """The same people as drafts recode them: local suppression is for few values in a column."""
    return people(rows).with_columns(pl.col("age") // 10 * 10, pl.col("income") // 20_000 * 20_000)


def numbers(rows: int, columns: int) -> pl.DataFrame:
    """Skewed numbers that go together."""
    rng = np.random.default_rng(rows + columns)
    shared = rng.normal(size=rows) * 0.4
    return pl.DataFrame({
        f"x{j}": np.round(np.exp(shared + rng.normal(size=rows) * 0.7) * 1000, 1)
        for j in range(columns)
    })  # fmt: skip


def policy(frame: pl.DataFrame, method: str, parameters: Mapping[str, Any]) -> str:
    """A policy that protects all columns but the last one, which is confidential or public."""
    named = REGISTRY[method].parameters.model_fields
    protect = {key: value for key, value in (K | EPSILON).items() if key in named}
    protect = {"method": method} | protect | EXTRA.get(method, {}) | dict(parameters)
    forms = REGISTRY[method].forms
    if forms.must_choose:
        protect["release_form"] = forms.offered[0].value
    lines = ["version = 1", "[columns]"]
    for name in frame.columns:
        series = frame[name]
        stated: dict[str, Any] = {"role": QUASI, "kind": "nominal"}
        if series.dtype == pl.String:
            stated["categories"] = sorted(series.unique().to_list())
        else:
            low, high = float(np.floor(series.min())), float(np.ceil(series.max()))
            stated |= {"kind": "numeric", "bounds": [low, max(high, low + 1)]}
        if name == frame.columns[-1] and method == "public-laplace":
            stated |= {"role": "other", "public": True}
        elif name == frame.columns[-1] and method in {"bucketization", "kanon-dp", "pram"}:
            stated["role"] = SECRET
        lines.append(f"{bare(name)} = {as_toml(stated)}")
    lines += ["[protect]", *(f"{key} = {as_toml(value)}" for key, value in protect.items())]
    lines += ["[reading]", 'delimiter = ","', 'decimal = "."', "[release]",
              f"accept_constant = {as_toml(frame.columns)}",
              f"accept_distinct = {as_toml(frame.columns)}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def measure(frame: pl.DataFrame, method: str, **parameters: Any) -> tuple[Run, Run]:
    """Protect a table, twice if it is small; return the least of what it took, and the forecast."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        frame.write_csv(folder / "data.csv")
        stated = folder / "policy.toml"
        stated.write_text(policy(frame, method, parameters), encoding="utf-8")
        planned = planning.plan(stated, rows=len(frame))
        seconds, peak = forecast.seconds(planned) or 0.0, forecast.peak_bytes(planned) or 0.0
        runs, speeds = [], [speed()]
        for number in range(2 if len(frame) <= SIZES[2] else 1):
            runs.append(protect(folder / "data.csv", stated, folder / f"out{number}"))
            speeds.append(speed())
    took = min(run.seconds for run in runs) * len(speeds) / sum(speeds)
    foretold = Run(seconds / forecast.machine_speed(), peak)
    return Run(took, min(run.peak for run in runs)), foretold


def protect(data: Path, stated: Path, out: Path) -> Run:
    """Protect a file; processor seconds as they are."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "shoal", "protect", str(data), "--policy", str(stated),
             "--no-evaluate", "--out", str(out)], stdout=subprocess.DEVNULL, stderr=said,
        )  # fmt: skip
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{stated.read_text('utf-8')}\n{said.read()}")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0)


def speed() -> float:
    """How many processor seconds stand for one in the cost models, on this machine and now.

    A run that does next to nothing is `START` seconds, on any machine and beside any other work:
    a processor second is worth less where others use its caches, which the probe of forecasts,
    plain steps of Python, hardly feels.
    """
    if IDLE:
        return forecast.machine_speed()
    with tempfile.TemporaryDirectory() as place:
        folder, frame = Path(place), numbers(SIZES[0], 6)  # no kernel is loaded for numbers
        frame.write_csv(folder / "data.csv")
        (folder / "policy.toml").write_text(policy(frame, BASE, {}), encoding="utf-8")
        run = protect(folder / "data.csv", folder / "policy.toml", folder / "out")
    return run.seconds / (forecast.START + forecast.CELL * SIZES[0] * 6)


def calibrate(methods: list[str], *, write: bool) -> None:
    """Fit the constants of each method, beside those of a run that does nothing else."""
    bare, _ = measure(numbers(SIZES[0], 6), BASE)
    base = {rows: measure(people(rows), BASE)[0] for rows in SIZES}
    small, middle, large = (base[rows] for rows in (SIZES[0], *SIZES[-2:]))
    cells = (SIZES[-1] - SIZES[-2]) * 6
    cell, cell_bytes = (large.seconds - middle.seconds) / cells, (large.peak - middle.peak) / cells
    constants = {
        "START": f"{bare.seconds:.2g}", "CELL": f"{cell:.1e}",
        "LIBRARIES": f"{bare.peak * SHARED / 1e9:.2g}e9", "CELL_BYTES": f"{cell_bytes:.0f}",
    }  # fmt: skip
    print(" ".join(f"{key} = {value}" for key, value in constants.items()))
    if write:
        substitute("pipeline/forecast.py", constants)
    for method in methods:
        tables = [coarse if method == COARSE else people]
        if method in OF_NUMBERS:
            tables += [partial(numbers, columns=5)]
        stated = {"blocks": "median"} if method == BLOCKS else {}
        run_it = partial(measure, method="mdav" if method == BLOCKS else method, **stated)
        first, _ = run_it(tables[0](SIZES[0]))
        start, further = (max(first.seconds - run.seconds, 0.0) for run in (bare, small))
        sizes: list[int] = []
        extra: list[float] = []
        for rows in SIZES[1:3] if method in SMALL else SIZES[2:]:
            if len(extra) < 2 or extra[-1] < ENOUGH:
                runs = [run_it(table(rows))[0] for table in tables]
                beside = [max(run.seconds - base[rows].seconds - further, 0.01) for run in runs]
                sizes, extra = [*sizes[-1:], rows], [*extra[-1:], prod(beside) ** (1 / len(runs))]
                run = max(runs, key=lambda run: run.peak)
        power = min(max(log(extra[1] / extra[0]) / log(sizes[1] / sizes[0]), 0.5), 2.1)
        if extra[0] < CLEAR:
            power = 1.0
        seconds = extra[1] / (sizes[1] / 10_000) ** power
        held = max(run.peak - base[sizes[1]].peak - first.peak + small.peak, 0.0) / (sizes[1] * 5)
        model = f"CostModel({start:.1f}, {seconds:.2g}, {power:.1f}, {held:.0f})"
        print(f"{method:20} {model}", flush=True)
        if write:
            rewrite(method, model)


def substitute(file: str, constants: Mapping[str, str]) -> None:
    """Put constants into a file: each name of a tuple assignment, or alone."""
    path = SRC / file
    text = path.read_text(encoding="utf-8")
    pairs = (("START", "CELL"), ("LIBRARIES", "CELL_BYTES"))
    for pair in pairs if IDLE else pairs[1:]:  # memory is the same on a busy machine
        values = ", ".join(constants[name] for name in pair)
        text = re.sub(rf"(?m)^{', '.join(pair)} = .*$", f"{', '.join(pair)} = {values}", text)
    path.write_text(text, encoding="utf-8")


def rewrite(method: str, model: str) -> None:
    """Put a cost model into the file of its method, where it stands there as constants."""
    path = SRC / "methods" / f"{method.replace('-', '_')}.py"
    path = path.with_name("method.py") if method == BLOCKS else path
    text = path.read_text(encoding="utf-8")
    kept = r"(cost=|BLOCKS = )CostModel\([^)m]*(, most_rows=\w+)?\)"
    path.write_text(re.sub(kept, rf"\1{model[:-1]}\2)", text), encoding="utf-8")


def reference(name: str) -> pl.DataFrame:
    """A real table, without cells that its columns of numbers lack."""
    frame = pl.read_csv(Path(os.environ.get("SHOAL_DATA", ".")) / name, null_values=["N", "?"])
    return frame.drop_nulls(cs.numeric()).with_columns(cs.string().fill_null("-"))


Protect = tuple[str, dict[str, Any]]
MDAV, IN_BLOCKS = ("mdav", {}), ("mdav", {"blocks": "median"})
MONDRIAN, AUTO, RANKED = ("mondrian", {}), ("auto", {}), (BASE, {})
TABLES: tuple[tuple[str, Callable[[], pl.DataFrame], tuple[Protect, ...]], ...] = (
    ("mixed 1,000", lambda: people(1_000, towns=311), (MDAV, MONDRIAN, AUTO)),
    ("mixed 30,000", lambda: people(30_000, towns=311), (MDAV, MONDRIAN, AUTO, IN_BLOCKS)),
    ("mixed 200,000", lambda: people(200_000, towns=311), (MDAV, MONDRIAN, AUTO, IN_BLOCKS)),
    ("mixed 1M", lambda: people(1_000_000, towns=311), (MDAV, MONDRIAN, AUTO, RANKED)),
    ("numbers 2,000 x 20", lambda: numbers(2_000, 20), (MDAV, RANKED)),
    ("numbers 100,000 x 4", lambda: numbers(100_000, 4), (MDAV, MONDRIAN, AUTO)),
    ("numbers 100,000 x 8", lambda: numbers(100_000, 8), (MDAV, MONDRIAN)),
    ("numbers 1M x 4", lambda: numbers(1_000_000, 4), (MDAV, MONDRIAN, AUTO)),
    ("coarse 60,000", lambda: coarse(60_000), ((COARSE, {}),)),
    ("coarse 1M", lambda: coarse(1_000_000), ((COARSE, {}),)),
    ("adult", lambda: reference("adult.csv").drop("fnlwgt"), (MDAV, MONDRIAN, AUTO)),
    ("acs", lambda: reference("acs.csv"), (MDAV, MONDRIAN)),
    ("census", lambda: reference("census.csv"), (MDAV, RANKED)),
    ("eia", lambda: reference("eia.csv").drop("UTILNAME"), (MDAV, MONDRIAN)),
    ("sample 10,000", lambda: large.five(10_000).drop_nulls(), (MDAV, AUTO, ("mu-approx", {}))),
    ("sample 300,000", lambda: large.five(300_000).drop_nulls(), (MDAV, IN_BLOCKS)),
    ("towns 100,000", lambda: large.town(100_000).drop_nulls(), (MDAV, MONDRIAN)),
    ("towns 1M", lambda: large.town(1_000_000).drop_nulls(), (MDAV,)),
    ("taxpayers 400,000", lambda: large.taxpayers(400_000), (MDAV, AUTO)),
    ("taxpayers 1.5M", lambda: large.taxpayers(1_500_000), (IN_BLOCKS, MONDRIAN)),
    ("20,000 x 60", lambda: large.sixty(20_000), (MDAV, MONDRIAN)),
    ("200,000 x 60", lambda: large.sixty(200_000), (MONDRIAN, IN_BLOCKS)),
    ("2M x 10", lambda: large.ten(2_000_000), (IN_BLOCKS, RANKED)),
    ("5M x 8", lambda: large.eight(5_000_000), (IN_BLOCKS, MONDRIAN, AUTO)),
)
"""Tables and methods that constants were not measured on."""


def check(patterns: list[str]) -> None:
    """Print how forecasts compare with what runs took; of tables with such a name."""
    off = count = 0
    for name, table, methods in TABLES:
        if patterns and not any(pattern in name for pattern in patterns):
            continue
        frame = table()
        for method, parameters in methods:
            run, foretold = measure(frame, method, **parameters)
            seconds, peak = foretold.seconds / run.seconds, foretold.peak / run.peak
            miss = not (0.5 <= seconds <= 2 and 0.5 <= peak <= 2)
            off, count = off + miss, count + 1
            label = f"{method} {' '.join(map(str, parameters.values()))}"
            print(f"{name:20} {label:18} {run.seconds:6.1f} s, forecast {seconds:5.2f} of it; "
                  f"{run.peak / 1e9:5.2f} GB, {peak:5.2f} {'miss' * miss}", flush=True)  # fmt: skip
    print(f"{off} of {count} beyond a factor of two")


def main() -> None:
    """Read the command line."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="with --check, parts of names of tables")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--idle", action="store_true", help="nothing else runs on the machine")
    given = parser.parse_args()
    globals()["IDLE"] = given.idle
    if given.check:
        check(given.methods)
    else:
        fitted = {"auto", "maxent"}  # their models follow from the columns
        calibrate(
            given.methods or [BLOCKS, *sorted(set(REGISTRY) - fitted - {BASE})], write=given.write
        )


if __name__ == "__main__":
    main()

"""All lines of the benchmark in one table: our CPU seconds beside those of a yardstick.

    python bench/run.py [PATTERN ...] [--keep] [--stages] [--large]

A yardstick is plain work on the same machine: copying memory, one sort, reading and writing the
file, importing the libraries, random bytes. It runs in turns with ours, the least of each counts,
and their ratio compares with that of another day or machine. `results.json` has the last ratios; a
line that is more than a fifth above its own is measured again, and if it stays there the program
says so and ends with 1. `--keep` writes the ratios of this run; `RESULTS.md` says what they mean.
`--stages` adds where the time of a release goes. `--large` runs large mixed tables instead, each a
command in a process of its own: CPU seconds and most memory beside what is wanted of them, and how
CPU grows from a quarter of the rows.
Kernels are compiled before anything is timed.
"""

import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does

import numpy as np
import polars as pl

import shoal
from shoal import sample
from shoal.core import Distance, Diversity, MixedRecords, Schema
from shoal.hazmat.noise import OpenDPNoise
from shoal.io.text_files import as_toml
from shoal.io.validate import validate
from shoal.partition import (
    bucketization,
    individual_rankings,
    mdav,
    mondrian_tree,
    optimal_univariate,
    rank_buckets,
)
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.policy.load import load
from shoal.privacy_models import Counts, k_anonymity, l_diversity, t_closeness
from shoal.publish import protect_file

RESULTS = Path(__file__).with_name("results.json")
REGRESSED = 1.2
MILLION = 1_000_000
TWELVE = (
    "age", "sex", "region", "education", "marital", "hours", "occupation", "income", "tax",
    "condition", "weight", "batch",
)  # fmt: skip
"""All columns of the sample but the identifiers."""
FEW = ("age", "sex", "education", "hours", "income", "occupation")

Work = Callable[[], Any]


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        make: prepares in a folder, and returns the work that is timed.
        yardstick: its name.
        wanted: the largest ratio that we are content with, where somebody set one.
    """

    name: str
    make: Callable[[Path], Work]
    yardstick: str
    wanted: float | None = None
    repeat: int = 3


def cpu(work: Work) -> float:
    """CPU seconds of this process and of those that it started and saw end."""
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


# Yardsticks.


def copying(_home: Path) -> Work:
    """Copy a gigabyte of memory."""
    source = np.ones(2**24)
    target = np.empty_like(source)
    return lambda: [np.copyto(target, source) for _ in range(8)]


def sorting(_home: Path) -> Work:
    """Sort a million numbers."""
    x = np.random.default_rng(0).normal(size=MILLION)
    return lambda: np.argsort(x)


def csv(home: Path) -> Work:
    """Let Polars read and write a CSV file."""
    path = people(home, "csv")
    return lambda: pl.read_csv(path).write_csv(home / "copy.csv")


def parquet(home: Path) -> Work:
    """Let Polars read and write a Parquet file."""
    path = normal(home)
    return lambda: pl.read_parquet(path).write_parquet(home / "copy.parquet")


def importing(_home: Path) -> Work:
    """Start Python and load the two libraries that nothing works without."""
    return partial(run, sys.executable, "-c", "import numpy, polars")


def random_bytes(_home: Path) -> Work:
    """Take 128 bits of the system's randomness a hundred thousand times."""
    return lambda: [os.urandom(16) for _ in range(100_000)]


YARDSTICKS = {
    "copy 1 GB": copying,
    "sort 1M numbers": sorting,
    "Polars, CSV in and out": csv,
    "Polars, Parquet in and out": parquet,
    "import numpy, polars": importing,
    "100,000 x 16 random bytes": random_bytes,
}


def run(*words: str) -> None:
    """Run a program, and show what it said only if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 3}, done.stderr  # 3: a check that fails is work all the same


# Tables.

SIX = ("age", "education", "hours", "income", "tax", "weight")


def people(home: Path, form: str, rows: int = MILLION) -> Path:
    """Six columns of invented people in a file."""
    path = home / f"people-{rows}.{form}"
    if not path.exists():
        getattr(sample.people(rows, 1).select(SIX), f"write_{form}")(path)
    return path


def normal(home: Path, rows: int = MILLION) -> Path:
    """Four columns of normal numbers in a file."""
    path = home / f"normal-{rows}.parquet"
    if not path.exists():
        X = np.random.default_rng(1).normal(size=(rows, 4))
        pl.DataFrame(X, schema=list("abcd")).write_parquet(path)
    return path


def mixed(rows: int) -> MixedRecords:
    """Five mixed columns of the sample, as records of numbers and codes."""
    names = ("age", "sex", "region", "education", "marital")
    schema = load(sample.folder() / "people.toml").schema
    columns = tuple(column for column in schema.columns if column.name in names)
    return validate(sample.people(rows, 1).select(names), Schema(columns)).records(names)


def policy(method: str, names: tuple[str, ...], **protect: Any) -> dict[str, Any]:
    """The sample's own policy for some of its columns, with another method."""
    home = sample.folder()
    columns = tomllib.loads((home / "people.toml").read_text("utf-8"))["columns"]
    chosen = {name: dict(columns[name]) for name in names}
    for column in chosen.values():
        if "hierarchy" in column:
            column["hierarchy"] = str(home / column["hierarchy"])
    return {"version": 1, "columns": chosen, "protect": {"method": method, **protect}}


# Lines.


def pipeline(home: Path, form: str = "parquet") -> Work:
    """From a CSV file to a folder, individual ranking."""
    rules = home / "six.toml"
    levels = '["none", "primary", "secondary", "tertiary"]'
    lines = ["version = 1", "[columns]"]
    for name in SIX:
        kind = f'"ordinal", categories = {levels}' if name == "education" else '"numeric"'
        lines.append(f'{name} = {{ role = "quasi-identifier", kind = {kind} }}')
    rules.write_text("\n".join([*lines, "[protect]", 'method = "individual-ranking"', "k = 10"]))
    return released(people(home, "csv"), people(home, "csv", 20_000), rules, home, form)


def noisy(method: str) -> Callable[[Path], Work]:
    """From a Parquet file to a folder, with the noise of a release."""

    def make(home: Path) -> Work:
        rules = home / f"{method}.toml"
        column = '{ role = "quasi-identifier", kind = "numeric", bounds = [-6, 6] }'
        lines = ["version = 1", "[columns]", *(f"{name} = {column}" for name in "abcd")]
        more = [f'method = "{method}"', "epsilon = 1", *(["k = 10"] if "laplace" in method else [])]
        form = ['release_form = "column-shuffled"'] if method == "ir-laplace" else []
        rules.write_text("\n".join([*lines, "[protect]", *more, *form]))
        return released(normal(home), normal(home, 20_000), rules, home)

    return make


ALONE = EvaluationOptions(evaluate=False)
"""Releases are timed without their evaluation, which has lines of its own."""
SPENT: dict[str, float] = {}
"""CPU seconds of each stage of the last release to a folder."""


def released(data: Path, small: Path, rules: Path, home: Path, form: str = "parquet") -> Work:
    """Release a file to a folder; a small one first, which compiles."""
    output = OutputOptions(file_format=form, force=True)

    def release(path: Path) -> None:
        SPENT.clear()
        now = {"planning": time.process_time()}  # the stage, and since when

        def staged(stage: str, _done: int, _total: int) -> None:
            ((last, since),) = now.items()
            SPENT[last] = SPENT.get(last, 0.0) + time.process_time() - since
            now.clear()
            now[stage.partition(",")[0]] = time.process_time()

        with redirect_stderr(StringIO()):
            protect_file.protect(
                path, rules, home / "out", output=output, evaluation=ALONE, progress=staged
            )
        staged("", 0, 1)

    release(small)
    return lambda: release(data)


def start(*words: str) -> Callable[[Path], Work]:
    """A command on 10,000 rows of the sample, in a process of its own."""

    def make(home: Path) -> Work:
        data = people(home, "csv", 10_000)
        rules = home / "start.toml"
        lines = (f'{name} = {{ role = "quasi-identifier", kind = "numeric" }}'
                 for name in SIX if name != "education")  # fmt: skip
        rules.write_text("\n".join(["version = 1", "[columns]", 'education = "identifier"', *lines,
                                    "[protect]", 'method = "mdav"', "k = 5"]))  # fmt: skip
        filled = [word.format(data=data, rules=rules, out=home / "started") for word in words]
        work = partial(run, sys.executable, "-m", "shoal", *filled)
        work()
        return work

    return make


def compiled(work: Callable[[], Work]) -> Callable[[Path], Work]:
    """Work on arrays: what it needs is made, and it runs once to compile."""

    def make(_home: Path) -> Work:
        timed = work()
        timed()
        return timed

    return make


def grouped(algorithm: Callable[..., Any], rows: int, columns: int = 0) -> Callable[[Path], Work]:
    """Group normal numbers, or mixed people if no number of columns is given; k = 10."""

    def make(_home: Path) -> Work:
        if not columns:
            people = mixed(rows)
            algorithm(people.take(np.arange(5_000)), 10)
            return lambda: algorithm(people, 10)
        X = np.random.default_rng(0).normal(size=(rows, columns))
        X = X[:, 0].copy() if columns == 1 else X
        algorithm(X[:5_000], 10)
        return lambda: algorithm(X, 10)

    return make


def buckets() -> Work:
    """Bucketization of 100,000 records."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 4))
    bucket = rank_buckets(X[:, 0] + rng.normal(size=len(X)), 3)
    return lambda: bucketization(X, bucket, 5, Fraction(2))


def checkers() -> Work:
    """Count classes, and check k, every l and every t but the hierarchical, on 100,000 people."""
    rows = sample.people(100_000, 1).drop_nulls()
    keys = rows.select("age", "sex", "region", "education").to_struct().rank("dense").to_numpy()
    value = rows["occupation"].rank("dense").to_numpy()
    labels, codes = keys.astype(np.int64) - 1, value.astype(np.int64) - 1

    def work() -> None:
        counts = Counts.of(labels, codes)
        k_anonymity(counts.persons, 5)
        for kind in Diversity:
            l_diversity(
                counts, 3, kind=kind, c=Fraction(3) if kind is Diversity.RECURSIVE else None
            )
        for distance in set(Distance) - {Distance.HIERARCHICAL}:
            t_closeness(counts, 1, distance=distance)

    return work


def drawing(_home: Path) -> Work:
    """Draw discrete Laplace noise, as a release does."""
    zeros = np.zeros(100_000, np.int64)
    noise = OpenDPNoise(threads=1)
    return lambda: noise.discrete_laplace(zeros, scale=Fraction(2**20))


def evaluated(rows: int, names: tuple[str, ...], method: str) -> Callable[[Path], Work]:
    """All of `shoal.evaluate`, row by row and with as many other people as control."""

    def make(_home: Path) -> Work:
        def work(size: int) -> Work:
            frame = sample.people(2 * size, 1).select(names).drop_nulls()
            half = frame.height // 2
            rules = policy(method, names, k=5)
            after = shoal.protect(frame[:half], rules, keep_order=True).data
            return partial(shoal.evaluate, frame[:half], after, rules,
                           control=frame[half:], aligned=True)  # fmt: skip

        work(2_000)()
        return work(rows)

    return make


def drawn(method: str, rows: int) -> Callable[[Path], Work]:
    """Draw as many rows with epsilon 1, from a frame to a checked release."""

    def make(_home: Path) -> Work:
        stated = policy(method, FEW, epsilon=1)
        frame = sample.people(rows, 1).select(FEW)
        shoal.protect(frame.head(1_000), stated)
        return lambda: shoal.protect(frame, stated)

    return make


LOADING, SORTING, COPYING = "import numpy, polars", "sort 1M numbers", "copy 1 GB"
CSV, PARQUET = "Polars, CSV in and out", "Polars, Parquet in and out"
READ = ("{data}", "--policy", "{rules}")
OUT = ("--out", "{out}", "--force", "--no-evaluate")
LINES = (
    Line("start of `check`, 10,000 x 5", start("check", *READ), LOADING),
    Line("start of `protect`, mdav, 10,000 x 5", start("protect", *READ, *OUT), LOADING),
    Line("CSV of 1M x 6 to a folder, individual-ranking", pipeline, CSV, 6, repeat=6),
    Line("CSV of 1M x 6 to CSV, individual-ranking", partial(pipeline, form="csv"), CSV, repeat=6),
    Line("Parquet of 1M x 4 to a folder, mdav-laplace", noisy("mdav-laplace"), PARQUET, repeat=1),
    Line("Parquet of 1M x 4 to a folder, ir-laplace", noisy("ir-laplace"), PARQUET, repeat=1),
    Line("Parquet of 1M x 4 to a folder, dp-kdtree", noisy("dp-kdtree"), PARQUET, repeat=1),
    Line("noise, 100,000 discrete Laplace draws", drawing, "100,000 x 16 random bytes"),
    Line("MDAV of 1M x 4, k = 10", grouped(mdav, MILLION, 4), SORTING, repeat=2),
    Line("MDAV of 100,000 x 13, k = 10", grouped(mdav, 100_000, 13), SORTING),
    Line("MDAV of 300,000 mixed people, k = 10", grouped(mdav, 300_000), SORTING, repeat=1),
    Line("individual ranking of 1M x 4", grouped(individual_rankings, MILLION, 4), SORTING),
    Line("optimal univariate of 1M", grouped(optimal_univariate, MILLION, 1), SORTING),
    Line("Mondrian of 1M x 5, k = 10", grouped(mondrian_tree, MILLION, 5), COPYING),
    Line("bucketization of 100,000 x 4, t = 2, k = 5", compiled(buckets), SORTING),
    Line("k, l and t of 100,000 people", compiled(checkers), SORTING),
    Line("`auto` of 100,000 x 6, epsilon 1", drawn("auto", 100_000), SORTING, repeat=1),
    Line("`privtree` of 100,000 x 6, epsilon 1", drawn("privtree", 100_000), SORTING),
    Line("`evaluate` of 10,000 x 12", evaluated(10_000, TWELVE, "mdav"), SORTING, repeat=2),
    Line("`evaluate` of 1M x 6", evaluated(MILLION, FEW, "mondrian"), SORTING, repeat=1),
)


# Large mixed tables.


def taxpayers(rows: int, *, more: int = 0) -> pl.DataFrame:
    """Mixed columns of invented people, six and up to four more; 311 municipalities."""
    rng = np.random.default_rng(rows)
    frame = pl.DataFrame({
        "birth_year": rng.integers(1930, 2006, rows),
        "sex": rng.choice(["f", "m"], rows),
        "municipality": [f"M{i:03d}" for i in rng.zipf(1.3, rows) % 311],
        "sector": [f"S{i:02d}" for i in rng.binomial(13, 0.3, rows)],
        "marital": rng.choice(["divorced", "married", "single", "widowed"], rows),
        "children": np.minimum(rng.poisson(1.1, rows), 6),
    })  # fmt: skip
    others = {
        "income": np.round(np.exp(10 + rng.normal(size=rows) * 0.6) / 500) * 500,
        "hours": rng.integers(0, 70, rows),
        "tax": np.round(np.exp(8 + rng.normal(size=rows) * 0.5) / 100) * 100,
        "school": rng.choice(["none", "primary", "secondary", "tertiary"], rows),
    }
    return frame.with_columns(pl.Series(name, others[name]) for name in list(others)[:more])


def sixty(rows: int) -> pl.DataFrame:
    """Ten times the same six columns, of other people each."""
    parts = (taxpayers(rows + part).head(rows) for part in range(10))
    return pl.concat(
        [part.rename({name: f"{name}_{at}" for name in part.columns})
         for at, part in enumerate(parts)], how="horizontal",
    )  # fmt: skip


def town(rows: int) -> pl.DataFrame:
    """Five mixed columns of the sample, and a town of 300."""
    codes = np.random.default_rng(rows).integers(0, 300, rows)
    frame = sample.people(rows, 1).select("age", "sex", "region", "education", "marital")
    return frame.with_columns(town=pl.Series(codes).cast(pl.String))


def five(rows: int) -> pl.DataFrame:
    """The same without the town."""
    return town(rows).drop("town")


def eight(rows: int) -> pl.DataFrame:
    """Eight mixed columns."""
    return taxpayers(rows, more=2)


def ten(rows: int) -> pl.DataFrame:
    """Ten mixed columns."""
    return taxpayers(rows, more=4)


def stated(frame: pl.DataFrame, **protect: Any) -> str:
    """A policy that names bounds and categories; taxes and schools are confidential."""
    lines = ["version = 1", "[columns]"]
    for name in frame.columns:
        role = "confidential" if name in {"tax", "school"} else "quasi-identifier"
        column: dict[str, Any] = {"role": role, "kind": "nominal"}
        if frame[name].dtype == pl.String:
            column["categories"] = sorted(frame[name].drop_nulls().unique())
        else:
            column |= {"kind": "numeric", "bounds": [frame[name].min(), frame[name].max()]}
        lines.append(f"{name} = {as_toml(column)}")
    lines += ["[protect]", *(f"{key} = {as_toml(value)}" for key, value in protect.items())]
    return "\n".join([*lines, "[reading]", 'delimiter = ","', 'decimal = "."']) + "\n"


@dataclass(frozen=True)
class Large:
    """A command on a large table.

    Attributes:
        table: makes so many rows.
        words: the command; its files are named in braces.
        protect: of its policy; none for the policy that `shoal init` drafts.
        seconds: most CPU seconds that are wanted.
        gigabytes: most memory that is wanted.
    """

    name: str
    table: Callable[[int], pl.DataFrame]
    rows: int
    words: str
    protect: dict[str, Any] | None
    seconds: float | None = None
    gigabytes: float | None = None

    def took(self, rows: int) -> tuple[float, float]:
        """Run it on so many rows; CPU seconds and gigabytes of its process."""
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{name}" for name in ("data.csv", "rules.toml", "out")}
            shoal_, (data, rules, out) = (sys.executable, "-m", "shoal"), files.values()
            frame = self.table(rows)
            frame.write_csv(data)
            if self.protect is None:
                run(*shoal_, "init", data, "--out", rules)
            else:
                Path(rules).write_text(stated(frame, **self.protect), "utf-8")
            if "{release}" in self.words:
                run(*shoal_, "protect", data, "--policy", rules, "--out", out, "--no-evaluate")
            words = self.words.format(data=data, rules=rules, out=out, release=f"{out}/release.csv")
            with Path(folder, "said").open("w") as said:
                child = subprocess.Popen([*shoal_, *words.split()], stdout=said, stderr=said)
                _, status, used = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            assert child.returncode in {0, 3}, Path(folder, "said").read_text()
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


PROTECT = "protect {data} --policy {rules} --out {out} --no-evaluate"
COMPARE = "compare {data} --policy {rules} --out {out} --jobs 1"
EVALUATE = "evaluate {data} {release} --policy {rules} --aligned"
BLOCKS = {"method": "mdav", "k": 5, "blocks": "median"}
IN_ORDER = {**BLOCKS, "release_form": "row-aligned"}
LARGEST = (
    Large("1.5M x 6, 311 codes, drafted", taxpayers, 1_500_000, PROTECT, None, 45, 1.5),
    Large("1.5M x 6, 311 codes, mdav in blocks", taxpayers, 1_500_000, PROTECT, BLOCKS, 45, 1.5),
    Large("1M of the sample, mdav", five, MILLION, PROTECT, {"method": "mdav", "k": 5}),
    Large("the same and 300 towns", town, MILLION, PROTECT, {"method": "mdav", "k": 5}),
    Large("200,000 x 60, drafted", sixty, 200_000, PROTECT, None, 60),
    Large("5M x 8, mdav in blocks", eight, 5 * MILLION, PROTECT, BLOCKS, 30, 2),
    Large("5M x 8, mondrian", eight, 5 * MILLION, PROTECT, {"method": "mondrian", "k": 5}, 40, 2),
    Large("5M x 8, auto", eight, 5 * MILLION, PROTECT, {"method": "auto", "epsilon": 1}, 40, 2),
    Large("1.5M x 10, evaluated", ten, 1_500_000, EVALUATE, IN_ORDER, 60),
    Large(
        "3,000 x 10, all candidates compared", ten, 3_000, COMPARE, {"method": "mdav", "k": 5}, 120
    ),
)


def run_large(wanted: "re.Pattern[str]") -> None:
    """Print what commands on large tables take."""
    yardstick = sorting(Path())
    print("| line | CPU-s | wanted | sorts of 1M | GB | wanted | growth |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for line in filter(lambda line: wanted.search(line.name), LARGEST):
        run(sys.executable, "-m", "shoal", "warmup")
        sort = min(cpu(yardstick) for _ in range(3))
        quarter, _ = line.took(line.rows // 4)
        seconds, memory = line.took(line.rows)
        limits = [f"{limit:g}" if limit else "" for limit in (line.seconds, line.gigabytes)]
        cells = [line.name, f"{seconds:.3g}", limits[0], f"{seconds / sort:.0f}",
                 f"{memory:.2f}", limits[1], f"{math.log(seconds / quarter, 4):.2f}"]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)


def compared(line: Line, before: float) -> tuple[float, float]:
    """CPU seconds of ours and of the yardstick, with more runs if it seems to have regressed."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        work, yardstick = line.make(home), YARDSTICKS[line.yardstick](home)
        ours, theirs = in_turns(work, yardstick, line.repeat)
        if ours / theirs > REGRESSED * before:
            again = in_turns(work, yardstick, line.repeat)
            ours, theirs = min(ours, again[0]), min(theirs, again[1])
    return ours, theirs


def in_turns(work: Work, yardstick: Work, repeat: int) -> tuple[float, float]:
    """The least CPU seconds of each; the yardstick is quick, and runs three times at least."""
    ours, theirs = [], []
    for _ in range(repeat):
        theirs.append(cpu(yardstick))
        ours.append(cpu(work))
    theirs += [cpu(yardstick) for _ in range(3 - repeat)]
    return min(ours), min(theirs)


def main() -> int:
    """Measure, print the table, and say what regressed."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="lines whose name has one of these patterns")
    parser.add_argument("--keep", action="store_true", help="write the ratios to results.json")
    parser.add_argument("--stages", action="store_true", help="CPU seconds by stage of a release")
    parser.add_argument("--large", action="store_true", help="commands on large tables instead")
    options = parser.parse_args()
    wanted = re.compile("|".join(options.patterns))
    last = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    print(
        f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {load}\n"
    )
    if options.large:
        run_large(wanted)
        return 0
    print("| line | CPU-s | yardstick | CPU-s | ratio | last | of it | wanted |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    kept, regressed = dict(last), []
    for line in filter(lambda line: wanted.search(line.name), LINES):
        before = last.get(line.name, math.nan)
        SPENT.clear()
        ours, theirs = compared(line, before)
        ratio = ours / theirs
        kept[line.name] = float(f"{ratio:.3g}")
        figures = (f"{ours:.3g}", line.yardstick, f"{theirs:.3g}", f"{ratio:.3g}")
        known = [] if math.isnan(before) else [f"{before:.3g}", f"{ratio / before:.2f}"]
        shown = [*figures, *(known or ["", ""]), f"{line.wanted:g}" if line.wanted else ""]
        print(f"| {line.name} | {' | '.join(shown)} |", flush=True)
        if options.stages:
            for stage, seconds in SPENT.items():
                print(f"| {line.name}: {stage} | {seconds:.2f} |" + " |" * 6, flush=True)
        if ratio > REGRESSED * before:
            regressed.append(f"{line.name}: {ratio:.3g}, {before:.3g} before")
        if options.keep:
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    print("\nRegressed by more than a fifth:", *(regressed or ["nothing"]), sep="\n  ")
    return 1 if regressed else 0


if __name__ == "__main__":
    sys.exit(main())

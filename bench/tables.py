"""Rows drawn with a proved epsilon: how near they are to the table, and what they take.

    python bench/tables.py [SEEDS]

prints Markdown tables for RESULTS.md; every figure is the mean over that many seeds, 5 by default,
with its standard error. Data are adult.csv, census.csv and eia.csv of SHOAL_DATA (or
../shared/data); a table that is absent is left out. Noise is seeded, so that figures repeat:
nothing here may be published.

Workloads. Adult, age and hours: counts over boxes of half (a fifth) of each side of the public
bounds, that hold a record; rank distance is the mean over columns of the squared distance between
sorted values, over the column's squared deviations. Adult with 5 columns: age in 15 and hours in 10
bins, education as it is, marital status and occupation; a query takes half of the codes of every
column. Adult with 8 (and 12): of three columns at random. Census: FICA, FEDTAX, INTVAL, POTHVAL
with [0, 1.5 max] as public bounds on a log scale; W2 is the mean squared distance of the optimal
assignment of rows, over the variance.
"""

import csv
import os
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from shoal.core import Kind, Neighbours, Transform
from shoal.hazmat import ledger
from shoal.hazmat.fakes import SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.mechanism.attributes import Attribute, Drawn
from shoal.mechanism.copula import Margins, copula
from shoal.mechanism.maxent import maxent
from shoal.mechanism.privtree import Fill, privtree
from shoal.mechanism.scale import Scale

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
EPSILONS = ("0.1", "1", "10")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[Fraction, SeededNoise, np.random.Generator], Drawn]
Query = tuple[tuple[int, ...], list[int], list[int], int]


def main() -> None:
    """Measure what the data at hand allow."""
    if (DATA / "adult.csv").is_file():
        plane(read("adult"))
        tables(read("adult"))
    if (DATA / "eia.csv").is_file():
        electricity(read("eia"))
    if (DATA / "census.csv").is_file():
        money(read("census"))
    million()


def read(name: str) -> list[dict[str, str]]:
    """The rows of a reference table."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows: list[dict[str, str]], name: str) -> Integers:
    """A column of whole numbers."""
    return np.array([int(float(row[name] or 0)) for row in rows], dtype=np.int64)


def categories(rows: list[dict[str, str]], name: str) -> Integers:
    """A column as codes in alphabetical order."""
    return np.unique([row[name] for row in rows], return_inverse=True)[1].astype(np.int64)


def measured(draw: Draw, measure: Callable[[Drawn], list[float]], epsilon: str) -> list[str]:
    """Each figure with its standard error over seeds, and the CPU time of a run."""
    found = []
    for seed in range(SEEDS + 1):  # the first run compiles
        noise = SeededNoise(seed)
        begin = time.process_time()
        drawn = draw(Fraction(epsilon), noise, np.random.default_rng(seed))
        spent = time.process_time() - begin
        ledger.verify(
            drawn.spendings,
            Fraction(epsilon),
            neighbours=Neighbours.CHANGE_ONE,
            drawn=noise.drawn,
        )
        if seed:
            found.append([*measure(drawn), spent])
    means = np.mean(found, axis=0)
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    shown = [f"{m:.3g} ± {e:.1g}" for m, e in zip(means[:-1], errors[:-1], strict=True)]
    return [*shown, f"{means[-1]:.2f}"]


def plane(rows: list[dict[str, str]]) -> None:
    """Age and hours of Adult by privtree."""
    X = np.column_stack([numbers(rows, "age"), numbers(rows, "hours-per-week")])
    attributes = (Attribute("age", Kind.NUMERIC, 136), Attribute("hours", Kind.NUMERIC, 149))
    halves = boxes(X, [135.0, 148.5], 0.5)
    fifths = boxes(X, [135.0, 148.5], 0.2)
    print("## privtree, Adult, age and hours, 30,162 rows\n")
    print("Wanted, rank: 0.13, 0.006, 0.001; half boxes: 0.07, 0.02, 0.006.\n")
    print("| fill | epsilon | rank distance | half boxes | fifth boxes | CPU s |")
    print("|---|---|---|---|---|---|")
    for fill in Fill:
        for epsilon in EPSILONS:

            def draw(
                epsilon: Fraction, noise: SeededNoise, rng: np.random.Generator, fill: Fill = fill
            ) -> Drawn:
                return privtree(X.T, attributes, epsilon=epsilon, noise=noise, rng=rng, fill=fill)

            def measure(drawn: Drawn) -> list[float]:
                Y = np.column_stack(drawn.rows)
                return [rank_distance(X, Y), box_error(Y, halves), box_error(Y, fifths)]

            line(fill.value, epsilon, *measured(draw, measure, epsilon))
    print()


def tables(rows: list[dict[str, str]]) -> None:
    """Five, eight and twelve columns of Adult by maxent."""
    codes = {
        "age": np.minimum((numbers(rows, "age") - 15) // 5, 14),
        "hours": np.minimum((numbers(rows, "hours-per-week") - 1) // 10, 9),
        "education-num": numbers(rows, "education-num") - 1,
    }
    ordinal = {"age": 15, "hours": 10, "education-num": 16, "capital-gain": 17}
    names = ("marital-status", "occupation", "workclass", "sex", "income", "relationship")
    for name in (*names, "race", "native-country"):
        codes[name] = categories(rows, name)
    gain = numbers(rows, "capital-gain")
    bins = 1 + np.floor(np.log1p(gain) / np.log1p(99_999) * 16).astype(np.int64)
    codes["capital-gain"] = np.where(gain == 0, 0, np.minimum(bins, 16))
    print("## maxent, Adult\n")
    print("Wanted: 5 columns 0.15, 0.036, 0.014; 8 columns 0.09, 0.026, 0.008; 12 under 15 s.\n")
    print("| columns | epsilon | count error | distance of pairs | CPU s |")
    print("|---|---|---|---|---|")
    for m in (5, 8, 12):
        chosen = list(codes)[:m]
        attributes = [
            Attribute(name, Kind.ORDINAL, ordinal[name])
            if name in ordinal
            else Attribute(name, Kind.NOMINAL, int(codes[name].max()) + 1)
            for name in chosen
        ]
        X = np.column_stack([codes[name] for name in chosen])
        asked = {"columns": 5, "seed": 7} if m == 5 else {"columns": 3, "seed": 11}
        compare(f"{m}", X, attributes, **asked, epsilons=EPSILONS)
    print()


def electricity(rows: list[dict[str, str]]) -> None:
    """Eight columns of EIA, on which nothing was tuned."""
    money = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "TOTSALES")
    columns = [categories(rows, "STATE"), numbers(rows, "MONTH") - 1]
    for name in money:
        values = np.maximum(numbers(rows, name), 0)
        top = np.log1p(1.5 * values.max())
        columns.append(np.minimum(np.floor(np.log1p(values) / top * 16), 15).astype(np.int64))
    attributes = [
        Attribute("STATE", Kind.NOMINAL, int(columns[0].max()) + 1),
        Attribute("MONTH", Kind.ORDINAL, 12),
        *(Attribute(name, Kind.ORDINAL, 16) for name in money),
    ]
    print(f"## maxent, EIA, {len(rows):,} rows, state, month and six amounts in 16 bins\n")
    print("| columns | epsilon | count error | distance of pairs | CPU s |")
    print("|---|---|---|---|---|")
    X = np.column_stack(columns)
    compare("8", X, attributes, columns=3, seed=11, epsilons=("1", "10"))
    print()


def money(rows: list[dict[str, str]]) -> None:
    """Four amounts of Census by copula and maxent, on a log scale."""
    names = ("FICA", "FEDTAX", "INTVAL", "POTHVAL")
    X = np.column_stack([numbers(rows, name) for name in names]).astype(np.float64)
    scales = [Scale(0, Fraction(3, 2) * int(top), Transform.LOG) for top in X.max(axis=0)]
    units = [scale.encode(X[:, j]) for j, scale in enumerate(scales)]
    attributes = [Attribute(name, Kind.NUMERIC, scales[0].steps + 1) for name in names]

    def blocks(epsilon: Fraction, noise: SeededNoise, rng: np.random.Generator) -> Drawn:
        return copula(units, attributes, epsilon=epsilon, noise=noise, rng=rng)

    def trees(epsilon: Fraction, noise: SeededNoise, rng: np.random.Generator) -> Drawn:
        return copula(
            units, attributes, epsilon=epsilon, noise=noise, rng=rng, margins=Margins.TREE
        )

    def fitted(epsilon: Fraction, noise: SeededNoise, rng: np.random.Generator) -> Drawn:
        return maxent(units, attributes, epsilon=epsilon, noise=noise, rng=rng)

    def measure(drawn: Drawn) -> list[float]:
        Y = np.column_stack([s.decode(row) for s, row in zip(scales, drawn.rows, strict=True)])
        return [rank_distance(X, Y), assignment(X, Y)]

    print(f"## Census, four amounts, {len(rows):,} rows, log scale\n")
    print("Wanted, copula, W2 at epsilon 1 and 10: 0.55, 0.15.\n")
    print("| mechanism | epsilon | rank distance | W2 | CPU s |")
    print("|---|---|---|---|---|")
    for name, draw in (("copula, blocks", blocks), ("copula, trees", trees), ("maxent", fitted)):
        for epsilon in EPSILONS:
            line(name, epsilon, *measured(draw, measure, epsilon))
    print()


def million() -> None:
    """A million rows with the noise of a release: what it takes."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    top = 1 << 20
    hidden = rng.random(n)
    columns = [
        np.clip((hidden + rng.normal(0, 0.3, n)) * top, 0, top).astype(np.int64) for _ in range(4)
    ]
    sizes = (16, 14, 7, 2)
    columns += [np.clip((hidden * s).astype(np.int64), 0, s - 1) for s in sizes]
    attributes = [Attribute(f"number {j}", Kind.NUMERIC, top + 1) for j in range(4)]
    attributes += [Attribute(f"category {s}", Kind.NOMINAL, s) for s in sizes]
    print("## A million rows of four numbers and four categories, noise as in a release\n")
    print("| mechanism | epsilon | draws | CPU s | s |")
    print("|---|---|---|---|---|")
    for mechanism in (privtree, maxent, copula):
        for epsilon in ("0.1", "1"):
            noise = OpenDPNoise()
            clock, cpu = time.perf_counter(), time.process_time()
            mechanism(columns, attributes, epsilon=Fraction(epsilon), noise=noise, rng=rng)
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
            draws = sum(noise.drawn.values())
            line(mechanism.__name__, epsilon, f"{draws:,}", f"{cpu:.1f}", f"{clock:.1f}")


def compare(
    name: str,
    X: Integers,
    attributes: Sequence[Attribute],
    *,
    columns: int,
    seed: int,
    epsilons: Sequence[str],
) -> None:
    """Print how near maxent's rows are to a table of codes."""
    sizes = [attribute.size for attribute in attributes]
    asked = queries(X, sizes, columns, seed)

    def draw(epsilon: Fraction, noise: SeededNoise, rng: np.random.Generator) -> Drawn:
        return maxent(X.T, attributes, epsilon=epsilon, noise=noise, rng=rng)

    def measure(drawn: Drawn) -> list[float]:
        Y = np.column_stack(drawn.rows).astype(np.int64)
        return [query_error(Y, asked), pair_distance(X, Y, sizes)]

    for epsilon in epsilons:
        line(name, epsilon, *measured(draw, measure, epsilon))


def line(*cells: str) -> None:
    """Print one row of a table at once."""
    print("| " + " | ".join(cells) + " |", flush=True)


def rank_distance(X: NDArray[np.generic], Y: NDArray[np.generic]) -> float:
    """Squared distance of sorted values over squared deviations, mean over columns."""
    distance = ((np.sort(X, axis=0) - np.sort(Y, axis=0)) ** 2).sum(axis=0)
    return float((distance / ((X - X.mean(axis=0)) ** 2).sum(axis=0)).mean())


def assignment(X: Floats, Y: Floats) -> float:
    """Mean squared distance of the best matching of rows, over the variance."""
    spread = X.std(axis=0)
    distances = cdist(X / spread, Y / spread, "sqeuclidean")
    return float(distances[linear_sum_assignment(distances)].mean() / X.shape[1])


def boxes(X: Integers, sides: Sequence[float], share: float) -> list[tuple[Floats, Floats, int]]:
    """Five hundred boxes within the bounds that hold a record, and how many they hold."""
    rng = np.random.default_rng(7)
    wide = np.array(sides)
    found: list[tuple[Floats, Floats, int]] = []
    while len(found) < 500:
        low = rng.random(len(wide)) * wide * (1 - share)
        high = low + wide * share
        count = int(((low <= X) & (high >= X)).all(axis=1).sum())
        if count:
            found.append((low, high, count))
    return found


def box_error(Y: NDArray[np.generic], asked: list[tuple[Floats, Floats, int]]) -> float:
    """Median relative error of counts over boxes."""
    return float(
        np.median(
            [
                abs(((low <= Y) & (high >= Y)).all(axis=1).sum() - count) / count
                for low, high, count in asked
            ]
        )
    )


def queries(X: Integers, sizes: Sequence[int], columns: int, seed: int) -> list[Query]:
    """Two thousand ranges of half of the codes of some columns that hold a record."""
    rng = np.random.default_rng(seed)
    found: list[Query] = []
    while len(found) < 2000:
        members = tuple(sorted(rng.choice(len(sizes), columns, replace=False).tolist()))
        width = [-(-sizes[j] // 2) for j in members]
        low = [int(rng.integers(0, sizes[j] - w + 1)) for j, w in zip(members, width, strict=True)]
        count = answer(X, members, low, width)
        if count:
            found.append((members, low, width, count))
    return found


def answer(X: Integers, members: Sequence[int], low: list[int], width: list[int]) -> int:
    """How many rows lie in a range of some columns."""
    inside = np.ones(len(X), dtype=bool)
    for j, begin, w in zip(members, low, width, strict=True):
        inside &= (X[:, j] >= begin) & (X[:, j] < begin + w)
    return int(inside.sum())


def query_error(Y: Integers, asked: list[Query]) -> float:
    """Median relative error over the queries."""
    return float(np.median([abs(answer(Y, m, low, w) - t) / t for m, low, w, t in asked]))


def pair_distance(X: Integers, Y: Integers, sizes: Sequence[int]) -> float:
    """Total variation between tables of two columns, mean over pairs."""
    found = []
    for a, b in combinations(range(len(sizes)), 2):
        tables = [
            np.bincount(Z[:, a] * sizes[b] + Z[:, b], minlength=sizes[a] * sizes[b]) for Z in (X, Y)
        ]
        found.append(np.abs(tables[0] - tables[1]).sum() / 2 / len(X))
    return float(np.mean(found))


if __name__ == "__main__":
    main()

"""Who draws rows in `tables.py`: Shoal's methods, the published ones, and plain baselines.

Ours and the published microaggregation methods run as a user runs them, by `shoal.protect` with a
policy, but with seeded noise, so figures repeat: nothing here may be published. Baselines are
written out below, with the same noise.

The methods that group have a k. At each epsilon they get the best of KS by the count error of one
run on the very table: more than a steward could do, so the comparison flatters them.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import polars as pl
from _cases import Case, Floats, Ints
from _scores import Scores, table_error

import shoal
from shoal.hazmat.fakes import SeededNoise

KS = (10, 50, 200, 1000)
MOST_CELLS = 10_000_000
CHOSEN = re.compile(r"auto chose (\w+)")


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows, their CPU seconds, and figures that were not read off rows."""

    rows: Floats | None
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


Run = Callable[[Case, str, int], Outcome]


@dataclass(frozen=True)
class Contender:
    """A method that draws rows.

    Attributes:
        family: ours, published, plain or none, for plots and tables.
        promise: what is proved of it at the stated epsilon, in a few words.
        applies: whether it can run on a case at all.
    """

    label: str
    family: str
    promise: str
    run: Run
    applies: Callable[[Case], bool] = lambda _case: True


def frame(case: Case) -> pl.DataFrame:
    """The table as a user has it."""
    return pl.DataFrame(
        {
            axis.name: case.X[:, j] if axis.numeric else case.X[:, j].astype(int).astype(str)
            for j, axis in enumerate(case.axes)
        }
    )


def protected(
    case: Case, epsilon: str, seed: int, *, aligned: bool = False, **protect: Any
) -> Outcome:
    """Rows of a method of Shoal."""
    columns = {axis.name: axis.declaration() for axis in case.axes}
    policy = {"version": 1, "columns": columns, "protect": protect | {"epsilon": float(epsilon)}}
    table = frame(case)
    begin = time.process_time()
    release = shoal.protect(table, policy, noise=SeededNoise(seed), keep_order=aligned)
    seconds = time.process_time() - begin
    cells = release.data.select(pl.all().cast(pl.Float64)).to_numpy()
    chosen = CHOSEN.search(" ".join(release.manifest.notes))
    return Outcome(np.asarray(cells, dtype=np.float64), seconds, note=chosen[1] if chosen else "")


def plain(name: str, **protect: Any) -> Run:
    """A method without a k."""
    return lambda case, epsilon, seed: protected(case, epsilon, seed, method=name, **protect)


def grouped(name: str, **protect: Any) -> Run:
    """A method with a k, at the best of some."""
    best: dict[tuple[str, str], int] = {}

    def run(case: Case, epsilon: str, seed: int) -> Outcome:
        key = (case.name, epsilon)
        if key not in best:
            asked = Scores(case)

            def error(k: int) -> float:
                tried = protected(case, epsilon, 0, method=name, k=k, **protect)
                found = asked.counts(tried.rows)
                return min(found.values())

            best[key] = min((k for k in KS if 2 * k <= case.rows), key=error)
        done = protected(case, epsilon, seed, method=name, k=best[key], **protect)
        return Outcome(done.rows, done.seconds, note=f"k = {best[key]}")

    return run


def histogram(case: Case, epsilon: str, seed: int) -> Outcome:
    """Every cell of the table with noise; negative counts become 0, and n rows are drawn.

    Beside the rows, the error of counts that are answered from the noisy cells as they are, which
    is less: sums of noise cancel, cuts at zero do not. That is not a table, though.
    """
    noise = SeededNoise(seed)
    begin = time.process_time()
    counts = _noisy(case.codes, case.sizes, Fraction(epsilon), noise)
    cells = _systematic(counts, case.rows, noise.rng)
    codes = np.column_stack(np.unravel_index(cells, case.sizes))
    rows = case.decoded(codes, noise.rng)
    seconds = time.process_time() - begin
    figures = {}
    if not any(axis.numeric for axis in case.axes):
        asked = Scores(case)
        table = counts.reshape(case.sizes).astype(np.float64)
        raw = {"counts, no table": asked.all, "triples, no table": asked.three}
        found = {name: table_error(table, queries) for name, queries in raw.items()}
        figures = {name: value for name, value in found.items() if value is not None}
    return Outcome(rows, seconds, figures)


def grid(case: Case, epsilon: str, seed: int) -> Outcome:
    """One coarse table of all columns with noise, rows spread evenly over its cells.

    With G = (n epsilon / 10)^(1/m) groups of neighbouring codes per column, the rule of Qardaji,
    Yang and Li (ICDE 2013) for uniform grids with its exponent for m columns.
    """
    noise = SeededNoise(seed)
    begin = time.process_time()
    m = len(case.axes)
    groups = max(1, round((case.rows * float(epsilon) / 10) ** (1 / m)))
    widths = [min(groups, size) for size in case.sizes]
    maps = [np.arange(s) * w // s for s, w in zip(case.sizes, widths, strict=True)]
    coarse = np.column_stack([group[case.codes[:, j]] for j, group in enumerate(maps)])
    counts = _noisy(coarse, widths, Fraction(epsilon), noise)
    cells = np.unravel_index(_systematic(counts, case.rows, noise.rng), widths)
    codes = np.empty_like(case.codes)
    for j, group in enumerate(maps):
        begins, sizes = np.searchsorted(group, np.arange(widths[j])), np.bincount(group)
        inside = noise.rng.random(case.rows) * sizes[cells[j]]
        codes[:, j] = begins[cells[j]] + inside.astype(np.int64)
    rows = case.decoded(codes, noise.rng)
    return Outcome(rows, time.process_time() - begin)


def bootstrap(case: Case, _epsilon: str, seed: int) -> Outcome:
    """The records drawn with replacement: no privacy, and the noise that sampling alone has."""
    rng = np.random.default_rng(seed)
    return Outcome(case.X[rng.integers(case.rows, size=case.rows)], 0.0)


def _noisy(codes: Ints, sizes: list[int], epsilon: Fraction, noise: SeededNoise) -> Ints:
    """Counts of all cells; a changed record moves them by 2 in all."""
    keys = np.ravel_multi_index(tuple(codes.T), sizes)
    counts = np.bincount(keys, minlength=prod(sizes)).astype(np.int64)
    return noise.discrete_laplace(counts, scale=2 / epsilon)


def _systematic(counts: Ints, rows: int, rng: np.random.Generator) -> Ints:
    """The cell of each row, cells in proportion to their positive counts."""
    ends = np.cumsum(np.maximum(counts, 0), dtype=np.float64)
    if not ends[-1]:
        return rng.integers(len(counts), size=rows)
    places = (np.arange(rows) + rng.random()) * ends[-1] / rows
    return np.minimum(np.searchsorted(ends, places, side="right"), len(counts) - 1)


def _numeric(case: Case) -> bool:
    return all(axis.numeric for axis in case.axes)


def _tabulated(case: Case) -> bool:
    return prod(case.sizes) <= MOST_CELLS


def _small(case: Case) -> bool:
    """Whether a table of cells by halves fits; else no grid has more than one cell per column."""
    return 2 ** len(case.axes) <= MOST_CELLS


PROVED = "epsilon"
CONTENDERS = (
    Contender("auto", "ours", PROVED, plain("auto")),
    Contender(
        "auto, native",
        "ours",
        "(epsilon, 1e-9), a row added or removed",
        plain("auto", neighbours="add-remove", delta=1e-9),
    ),
    Contender("maxent", "ours", PROVED, plain("maxent")),
    Contender("privtree", "ours", PROVED, plain("privtree")),
    Contender("copula", "ours", PROVED, plain("copula")),
    Contender("privtree, centroids", "ours", PROVED, plain("privtree", fill="centroid"), _numeric),
    Contender("copula, trees", "ours", PROVED, plain("copula", margins="tree"), _numeric),
    Contender(
        "ir-laplace, one list a column",
        "published",
        "epsilon, columns apart",
        grouped("ir-laplace", release_form="column-shuffled"),
    ),
    Contender(
        "ir-laplace, as published",
        "published",
        "refuted",
        grouped("ir-laplace", release_form="row-aligned", aligned=True),
    ),
    Contender("mdav-laplace", "published", "epsilon if groups are fixed", grouped("mdav-laplace")),
    Contender("INS", "published", PROVED, grouped("insensitive-laplace")),
    Contender("Laplace", "plain", PROVED, plain("laplace")),
    Contender("noisy grid", "plain", PROVED, grid, _small),
    Contender("noisy histogram", "plain", PROVED, histogram, _tabulated),
    Contender("bootstrap", "none", "none", bootstrap),
)

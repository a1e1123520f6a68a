"""Do the intervals of `shoal.analysis` cover? A grid of methods, statistics and privacy parameters.

    python bench/intervals.py [--releases N] [--seed N] [--rows N] [--only METHOD] [--json FILE]

The grid was fixed before it was run: six methods, seven statistics, epsilon 0.5, 1 and 4 (or k 5
and 20), 200 releases per cell. Each release protects a fresh sample of a population whose truth is
known, and `shoal.analysis` gets what is published and nothing else. A cell of the grid shows how
often nominal 95% intervals cover the population's truth, averaged over the terms of the statistic.
Beside it: the naive interval, which takes released rows for originals (middles of intervals), the
width against the interval from the original table, and CPU seconds per analysis.
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal import analysis
from shoal.analysis.published import PublishedTable
from shoal.errors import InputError

POPULATION = 4_000_000
METHODS: dict[str, list[dict[str, Any]]] = {
    "maxent": [{"epsilon": 0.5}, {"epsilon": 1}, {"epsilon": 4}],
    "copula": [{"epsilon": 0.5}, {"epsilon": 1}, {"epsilon": 4}],
    "kanon-dp": [{"epsilon": e, "k": 5} for e in (0.5, 1, 4)],
    "mdav": [{"k": 5}, {"k": 20}],
    "mondrian": [{"k": 5}, {"k": 20}],
    "individual-ranking": [{"k": 5}, {"k": 20}],
}
STATISTICS: dict[str, Callable[[Any], analysis.AnalysisResult]] = {
    "mean": lambda source: analysis.mean(source, "income"),
    "total": lambda source: analysis.total(source, "hours", population_size=POPULATION),
    "proportion": lambda source: analysis.proportion(source, "owner", "yes"),
    "quantile": lambda source: analysis.quantile(source, "age", 0.75),
    "crosstab": lambda source: analysis.crosstab(source, "region", "owner"),
    "ols": lambda source: analysis.ols(source, "income ~ age + hours"),
    "logit": lambda source: analysis.logit(source, "owner ~ age + hours"),
}
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [18, 90]},
    "hours": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 80]},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 120]},
    "region": {"role": "confidential", "kind": "nominal", "categories": ["north", "south", "west"]},
    "owner": {"role": "confidential", "kind": "nominal", "categories": ["no", "yes"]},
}


def people(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Six columns: skewed ages, hours and incomes that follow from them, owners by a logit."""
    male = rng.random(n) < 0.5
    age = np.clip(rng.gamma(9, 4.2, n) + 8 + 3 * male, 18, 90)
    hours = np.clip(34 + 0.15 * (age - 40) + 6 * male + rng.normal(0, 9, n), 0, 80)
    income = np.clip(rng.normal(12 + 0.25 * age + 0.45 * hours + 3 * male, 9), 0, 120)
    owner = rng.random(n) < 1 / (1 + np.exp(3 - 0.03 * age - 0.04 * hours))
    region = (rng.random(n)[:, None] > np.where(owner[:, None], [0.4, 0.75], [0.6, 0.85])).sum(
        axis=1
    )
    return pl.DataFrame(
        {
            "age": age.round(2),
            "hours": hours.round(2),
            "sex": np.where(male, "m", "f"),
            "income": income.round(2),
            "region": np.array(["north", "south", "west"])[region],
            "owner": np.where(owner, "yes", "no"),
        }
    )


@dataclass
class Cell:
    """What a cell of the grid counted."""

    covered: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def unprotected(frame: pl.DataFrame) -> PublishedTable:
    """A table as if nothing had been done to it: intervals by their middles."""
    for name, said in COLUMNS.items():
        if said["kind"] == "numeric" and frame.schema[name] == pl.String:
            ends = frame[name].str.extract_all(r"-?[\d.]+").list.eval(pl.element().cast(pl.Float64))
            frame = frame.with_columns(ends.list.mean().alias(name))
    facts: Mapping[str, Any] = {
        "policy": {"columns": COLUMNS}, "parameters": {}, "suppressed": 0, "method": "none",
        "release_form": "linked-shuffled", "privacy_losses": [], "protected_columns": [],
        "hierarchies": {},
    }  # fmt: skip
    return PublishedTable(frame, facts, None)


def runs(only: str | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each release of the grid: its method, a label and the policy."""
    for method, settings in METHODS.items():
        if only in {None, method}:
            for setting in settings:
                label = (
                    f"epsilon {setting['epsilon']}" if "epsilon" in setting else f"k {setting['k']}"
                )
                protect = {"method": method, **setting}
                yield method, label, {"version": 1, "columns": COLUMNS, "protect": protect}


def main() -> None:
    """Run the grid and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--only")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    truth = {
        name: [
            term.estimate
            for term in of(unprotected(people(POPULATION // 4, np.random.default_rng(1)))).terms
        ]
        for name, of in STATISTICS.items()
    }
    cells: dict[tuple[str, str, str], Cell] = defaultdict(Cell)
    began = time.process_time()
    for method, label, policy in runs(given.only):
        for number in range(given.releases):
            # The same samples for every method, so differences are those of methods.
            table = people(given.rows, np.random.default_rng([given.seed, number]))
            release = shoal.protect(table, policy)
            published = PublishedTable.of(release)
            for name, of in STATISTICS.items():
                score(cells[method, label, name], of, published, table, release.data, truth[name])
    show(cells)
    print(f"\nCPU: {time.process_time() - began:,.0f} s in all")
    if given.json:
        given.json.write_text(
            json.dumps({"/".join(key): vars(cell) for key, cell in cells.items()})
        )


def score(
    cell: Cell,
    of: Callable[[Any], analysis.AnalysisResult],
    published: PublishedTable,
    table: pl.DataFrame,
    released: pl.DataFrame,
    truth: list[float],
) -> None:
    """One release of one cell."""
    start = time.process_time()
    try:
        found = of(published).terms
    except InputError as error:
        cell.refused.append(str(error))
        found = None
    cell.seconds += time.process_time() - start
    try:
        naive = of(unprotected(released)).terms
        cell.naive.append(
            float(np.mean([t.low <= x <= t.high for t, x in zip(naive, truth, strict=True)]))
        )
    except (InputError, ValueError, np.linalg.LinAlgError):
        cell.naive.append(0.0)
    if found is not None:
        cell.covered.append(
            float(np.mean([t.low <= x <= t.high for t, x in zip(found, truth, strict=True)]))
        )
        before = of(unprotected(table)).terms
        cell.width.append(
            float(
                np.median(
                    [
                        (t.high - t.low) / (b.high - b.low)
                        for t, b in zip(found, before, strict=True)
                    ]
                )
            )
        )


def show(cells: Mapping[tuple[str, str, str], Cell]) -> None:
    """Print the grid as a table of Markdown, and what is asked of it."""
    print("| method | | statistic | coverage | naive | width | CPU s | refused |")
    print("|---|---|---|---|---|---|---|---|")
    given, inside = 0, 0
    for (method, label, name), cell in cells.items():
        tried = len(cell.covered) + len(cell.refused)
        cover = f"{100 * np.mean(cell.covered):.1f}%" if cell.covered else "none"
        width = f"{np.median(cell.width):.2g}" if cell.width else ""
        refused = f"{len(cell.refused)} of {tried}" if cell.refused else ""
        print(f"| {method} | {label} | {name} | {cover} | {100 * np.mean(cell.naive):.1f}% | {width} "
              f"| {cell.seconds / tried:.3f} | {refused} |")  # fmt: skip
        given += bool(cell.covered)
        inside += bool(cell.covered) and 0.90 <= np.mean(cell.covered) <= 0.98
    print(f"\n{given} of {len(cells)} cells give an interval; {inside} of these cover 90 to 98%.")
    for reason in sorted({text for cell in cells.values() for text in cell.refused}):
        print("-", reason)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()

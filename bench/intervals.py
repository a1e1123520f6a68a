"""Do the intervals of `shoal.analysis` cover? A grid of methods, statistics and privacy parameters.

    python bench/intervals.py [--only METHOD ...] [--keep FILE] [--show FILE ...]

The grid was fixed before it was run: six methods, seven statistics, epsilon 0.5, 1 and 4 (or k 5
and 20), 1,000 releases per cell. Chance shows a cell that covers 97% above 98% once in 50 times
with 1,000 releases, and once in 7 with 200. Each release protects a fresh sample, of a population
whose truth is known, and `shoal.analysis` gets what is published and nothing else. No two rows of
the grid share samples, so they are not lucky together. A cell shows how often nominal 95% intervals
cover the population's truth, averaged over the terms of the statistic. Beside it: the naive
interval, which takes released rows for originals (middles of intervals), the width against the
interval from the original table, and CPU seconds per analysis.
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


def runs(only: list[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each row of the grid: its number, a label and the policy."""
    every = [(method, setting) for method, settings in METHODS.items() for setting in settings]
    for row, (method, setting) in enumerate(every):
        if method in (only or METHODS):
            name = "epsilon" if "epsilon" in setting else "k"
            protect = {"method": method, **setting}
            policy = {"version": 1, "columns": COLUMNS, "protect": protect}
            yield row, f"{method}/{name} {setting[name]}", policy


def main() -> None:
    """Run the grid, or some of its methods, and print it; or print what was kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    if given.show:
        kept = {
            key: one for path in given.show for key, one in json.loads(path.read_text()).items()
        }
        show({key: Cell(**one) for key, one in kept.items()})
        return
    whole = unprotected(people(POPULATION // 4, np.random.default_rng(1)))
    truth = {name: [term.estimate for term in of(whole).terms] for name, of in STATISTICS.items()}
    cells: dict[str, Cell] = defaultdict(Cell)
    for row, label, policy in runs(given.only):
        for number in range(given.releases):
            table, original = sample(given.rows, [given.seed, row, number])
            release = shoal.protect(table, policy)
            published, naive = PublishedTable.of(release), unprotected(release.data)
            for name in STATISTICS:
                cell = cells[f"{label}/{name}"]
                score(cell, name, (published, naive), original[name], truth[name])
    show(cells)
    print(f"\n{time.process_time():,.0f} CPU seconds in all")
    if given.keep:
        given.keep.write_text(json.dumps({key: vars(cell) for key, cell in cells.items()}))


def sample(rows: int, seeds: list[int]) -> tuple[pl.DataFrame, dict[str, list[float]]]:
    """A table, and the widths of the intervals that it has itself."""
    table = people(rows, np.random.default_rng(seeds))
    source = unprotected(table)
    return table, {
        name: [term.high - term.low for term in of(source).terms] for name, of in STATISTICS.items()
    }


def score(
    cell: Cell,
    name: str,
    sources: tuple[PublishedTable, PublishedTable],
    original: list[float],
    truth: list[float],
) -> None:
    """One release of one cell, by what is published, and taken for the original."""
    start = time.process_time()
    for source, covered in zip(sources, (cell.covered, cell.naive), strict=True):
        try:
            terms = STATISTICS[name](source).terms
        except (InputError, ValueError, np.linalg.LinAlgError) as error:
            if source is sources[0]:
                cell.refused.append(str(error))
            else:
                covered.append(0.0)
            continue
        hits = [one.low <= x <= one.high for one, x in zip(terms, truth, strict=True)]
        covered.append(float(np.mean(hits)))
        if source is sources[0]:
            cell.seconds += time.process_time() - start
            widths = [(t.high - t.low) / w for t, w in zip(terms, original, strict=True)]
            cell.width.append(float(np.median(widths)))


def show(cells: Mapping[str, Cell]) -> None:
    """Print the grid as a table of Markdown, and what is asked of it."""
    print("| method | | statistic | coverage | naive | width | CPU s | refused |")
    print("|---|---|---|---|---|---|---|---|")
    given, inside = 0, 0
    for key, cell in cells.items():
        tried = len(cell.covered) + len(cell.refused)
        share = float(np.mean(cell.covered)) if cell.covered else float("nan")
        cover = f"{100 * share:.1f}%" if cell.covered else "refused"
        width = f"{np.median(cell.width):.2g}" if cell.width else ""
        refused = f"{len(cell.refused)} of {tried}" if cell.refused and cell.covered else ""
        start = " | ".join(key.split("/"))
        naive = f"{100 * np.mean(cell.naive):.1f}%"
        print(f"| {start} | {cover} | {naive} | {width} | {cell.seconds / tried:.3f} | {refused} |")
        given += bool(cell.covered)
        inside += 0.90 <= share <= 0.98
    print(f"\n{given} of {len(cells)} cells give an interval; {inside} of these cover 90 to 98%.")
    for reason in sorted({text for cell in cells.values() for text in cell.refused}):
        print("-", reason)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()

"""Tables and workloads that bench/ideas.py measures on: reading, queries, and errors."""

import csv
import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.mechanism.noisy_answers import table_counts
from shoal.synthesis.maxent.one_way import neighbours

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
EPSILONS = ("0.1", "1", "10")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Query = tuple[tuple[int, ...], list[int], list[int], int]


def read(name: str) -> list[dict[str, str]]:
    """The rows of a reference table."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows: list[dict[str, str]], name: str) -> Ints:
    """A column of whole numbers."""
    return np.array([int(float(row[name] or 0)) for row in rows], dtype=np.int64)


def categories(rows: list[dict[str, str]], name: str) -> Ints:
    """A column as codes in alphabetical order."""
    return np.unique([row[name] for row in rows], return_inverse=True)[1].astype(np.int64)


def line(*cells: str) -> None:
    """Print one row of a table at once."""
    print("| " + " | ".join(cells) + " |", flush=True)


def rank_distance(X: NDArray[np.generic], Y: NDArray[np.generic]) -> float:
    """Squared distance of sorted values over squared deviations, mean over columns."""
    distance = ((np.sort(X, axis=0) - np.sort(Y, axis=0)) ** 2).sum(axis=0)
    return float((distance / ((X - X.mean(axis=0)) ** 2).sum(axis=0)).mean())


def boxes(X: Ints, sides: Sequence[float], share: float) -> list[tuple[Floats, Floats, int]]:
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


def queries(X: Ints, sizes: Sequence[int], columns: int, seed: int) -> list[Query]:
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


def answer(X: Ints, members: Sequence[int], low: list[int], width: list[int]) -> int:
    """How many rows lie in a range of some columns."""
    inside = np.ones(len(X), dtype=bool)
    for j, begin, w in zip(members, low, width, strict=True):
        inside &= (X[:, j] >= begin) & (X[:, j] < begin + w)
    return int(inside.sum())


def query_error(Y: Ints, asked: list[Query]) -> float:
    """Median relative error over the queries."""
    return float(np.median([abs(answer(Y, m, low, w) - t) / t for m, low, w, t in asked]))


def triple_distance(X: Ints, Y: Ints, sizes: Sequence[int]) -> float:
    """Total variation between three-way marginals, at most four groups of codes per column."""
    groups = [
        neighbours(np.bincount(X[:, j], minlength=size).astype(np.float64), 4)
        for j, size in enumerate(sizes)
    ]
    found = []
    for members in combinations(range(len(sizes)), 3):
        shape = [int(groups[j].max()) + 1 for j in members]
        one, other = (table_counts([groups[j][Z[:, j]] for j in members], shape) for Z in (X, Y))
        found.append(np.abs(one - other).sum() / 2 / len(X))
    return float(np.mean(found))


def pair_distance(X: Ints, Y: Ints, sizes: Sequence[int]) -> float:
    """Total variation between two-way marginals, mean over pairs."""
    found = []
    for a, b in combinations(range(len(sizes)), 2):
        tables = [
            np.bincount(Z[:, a] * sizes[b] + Z[:, b], minlength=sizes[a] * sizes[b]) for Z in (X, Y)
        ]
        found.append(np.abs(tables[0] - tables[1]).sum() / 2 / len(X))
    return float(np.mean(found))

"""One or two columns: rows from the leaves of a tree, or from their counts with noise.

    python bench/two.py

prints two Markdown tables for RESULTS.md. Every two of the first six columns of generated tables
of bench/_generated.py and of EIA (where SHOAL_DATA has it), and pairs of numbers on 1,001 and 801
steps that go together in known ways; 10,000 rows (EIA 4,092), three seeds. Count error as in
bench/ideas.py, over ranges of both columns. Pairs stand by what `auto` would choose: `maxent` where
every category is counted by itself, else `privtree`. Then every column by itself, and columns of
100, 1,000 and 5,000 categories, by total variation. Noise is seeded: nothing here may be published.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import exp, log, sqrt

import _workloads as workloads
import numpy as np
from _generated import MADE, Made, electricity
from numpy.typing import NDArray

from shoal.core import Kind, Price
from shoal.hazmat.fakes import SeededNoise
from shoal.synthesis.auto import choose
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent
from shoal.synthesis.privtree import Fill, privtree

Ints = NDArray[np.int64]
ROWS, SEEDS = 10_000, 3
NUMBERS = (Domain("a", Kind.NUMERIC, 1001), Domain("b", Kind.NUMERIC, 801))


def main() -> None:
    """Run both on every pair, and on every column."""
    two()
    print()
    one()


def two() -> None:
    """Count error of pairs."""
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sort, X, attributes in pairs():
        asked = workloads.queries(X, [a.size for a in attributes], 2, 3)
        for epsilon in workloads.EPSILONS:
            tree, table = (errors(X, attributes, epsilon, asked, way) for way in ("tree", "table"))
            chosen = choose(attributes, n=len(X), price=Price(Fraction(epsilon))).plan
            what = (
                "numbers"
                if sort == "numbers"
                else f"categories, auto takes {type(chosen).__name__}"
            )
            ratios[what, epsilon].append(log(table / tree))
    print("| pairs | epsilon | how many | count error of a table over that of a tree |")
    _show(ratios)


def one() -> None:
    """Total variation of single columns."""
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for column, attribute in columns():
        true = np.bincount(column, minlength=attribute.size)
        for epsilon in ("0.01", *workloads.EPSILONS):
            far = []
            for way in ("tree", "counts"):
                drawn = rows(column[:, None], [attribute], epsilon, way)
                each = [np.bincount(Y[:, 0], minlength=attribute.size) for Y in drawn]
                far.append(np.mean([np.abs(y - true).sum() / 2 / len(column) for y in each]))
            chosen = choose([attribute], n=len(column), price=Price(Fraction(epsilon))).plan
            ratios[f"auto takes {type(chosen).__name__}", epsilon].append(
                log((far[1] + 1e-4) / (far[0] + 1e-4))
            )
    print("| columns | epsilon | how many | distance of counts over that of a tree |")
    _show(ratios)


def _show(ratios: dict[tuple[str, str], list[float]]) -> None:
    print("|---|---|---|---|")
    for (what, epsilon), logs in sorted(ratios.items()):
        error = np.std(logs, ddof=1) / sqrt(len(logs)) if len(logs) > 1 else float("nan")
        spread = f"{exp(np.mean(logs)):.2f} (x or / {exp(error):.2f})"
        workloads.line(what, epsilon, str(len(logs)), spread)


def errors(
    X: Ints,
    attributes: Sequence[Domain],
    epsilon: str,
    asked: list[workloads.Query],
    way: str,
) -> float:
    """The mean count error over seeds; never zero, so it has a logarithm."""
    found = [workloads.query_error(Y, asked) for Y in rows(X, attributes, epsilon, way)]
    return max(float(np.mean(found)), 1e-6)


def rows(X: Ints, attributes: Sequence[Domain], epsilon: str, way: str) -> Iterator[Ints]:
    """Rows by seed."""
    for seed in range(SEEDS):
        lent = {
            "price": Price(Fraction(epsilon)),
            "noise": SeededNoise(seed),
            "rng": np.random.default_rng(seed),
        }
        if way == "tree":
            drawn = privtree(X.T, attributes, fill=Fill.UNIFORM, **lent)
        else:
            drawn = maxent(X.T, attributes, **lent)
        yield np.column_stack(drawn.rows).astype(np.int64)


def columns() -> Iterator[tuple[Ints, Domain]]:
    """Columns of the generated tables and EIA, and nominals of many codes."""
    for X, attributes in tables():
        for j, attribute in enumerate(attributes):
            yield X[:, j], attribute
    rng = np.random.default_rng(1)
    for size in (100, 1000, 5000):
        falling = rng.permutation(np.arange(1, size + 1) ** -1.1)
        bell = np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.1 * size)) ** 2)
        for shares in (falling, bell):
            yield (
                rng.choice(size, ROWS, p=shares / shares.sum()),
                Domain("c", Kind.NOMINAL, size),
            )


def pairs() -> Iterator[tuple[str, Ints, Sequence[Domain]]]:
    """Tables of two columns, each with its sort."""
    for X, attributes in tables():
        for pair in combinations(range(min(X.shape[1], 6)), 2):
            yield "categories", X[:, pair], [attributes[j] for j in pair]
    for X in numbers().values():
        yield "numbers", X, NUMBERS


def tables() -> Iterator[Made]:
    """The generated ones, and EIA where it is at hand."""
    for make in MADE.values():
        yield make(1, ROWS)
    if (workloads.DATA / "eia.csv").is_file():
        yield electricity()


def numbers() -> dict[str, Ints]:
    """Pairs of numbers by how they go together."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, ROWS))
    cluster, centres = rng.integers(0, 9, ROWS), 1.5 * rng.normal(size=(9, 2))
    line = rng.random(ROWS)
    return {
        "unrelated": _steps(a, b),
        "correlated": _steps(a, 0.8 * a + 0.6 * b),
        "curve": _steps(a, np.sin(2 * a) + 0.05 * b),
        "skewed": _steps(np.exp(a) / 3 - 4, np.exp(0.7 * a + 0.7 * b) / 3 - 4),
        "clusters": _steps(centres[cluster, 0] + 0.08 * a, centres[cluster, 1] + 0.08 * b),
        "heaped": _steps(a, np.where(rng.random(ROWS) < 0.5, 0.0, b)),
        "even": _steps(8 * line - 4, 8 * rng.random(ROWS) - 4),
        "equal": _steps(8 * line - 4, 8 * line - 4),
    }


def _steps(a: NDArray[np.float64], b: NDArray[np.float64]) -> Ints:
    """Numbers from -4 to 4 as steps; those outside are clamped."""
    codes = [
        np.clip(np.floor((x + 4) / 8 * attribute.size), 0, attribute.size - 1)
        for x, attribute in zip((a, b), NUMBERS, strict=True)
    ]
    return np.column_stack(codes).astype(np.int64)


if __name__ == "__main__":
    main()

"""What `tables.py` asks of rows: how near they are to the table that they stand for.

counts      median relative error of 2,000 count queries that take half of every column (tables of
            up to five columns); of a table of two numbers, 500 boxes of half of each side
triples     the same over three columns at random (tables of three columns and more)
pairs       total variation between two-way marginals, mean over pairs; numbers in bins
ranks       squared distance of sorted values over squared deviations, mean over ordered columns
w2          squared joint Wasserstein distance over the variance, by the best assignment of rows:
            all up to 1,100, else 1,000 of each table
accuracy    of a classifier that learns the target from the rows, asked of the original records

Smaller is better, but for accuracy. Half of a column is half of its codes; of a number, half of the
bounds, or the values between two records half of the ranks apart. A query holds a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from _cases import Case, Floats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

MEASURES = ("counts", "triples", "pairs", "ranks", "w2", "accuracy")
LONG_RUNS = 3
"""Of the two measures that take longest, over how many runs; they vary little between runs."""
_MOST_MATCHED = 1100


@dataclass(frozen=True)
class Query:
    """Rows whose cells lie between low and high in each of some columns, ends included."""

    members: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: int

    def answer(self, Y: Floats) -> int:
        """How many rows there are."""
        return _count(Y, self.members, self.low, self.high)


class Scores:
    """The metrics of one case, with what they need prepared once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        m = len(case.axes)
        plane = case.half == "bounds"
        self.all = _boxes(case) if plane else _queries(case, m, seed=7) if m <= 5 else []
        self.three = _queries(case, 3, seed=11) if m >= 3 else []

    def of(self, Y: Floats, seed: int) -> dict[str, float]:
        """Every metric that applies to the case, the long ones of the first runs only."""
        found = self.counts(Y) | {"pairs": self.pairs(Y), "ranks": self.ranks(Y)}
        if seed <= LONG_RUNS or self.case.rows <= _MOST_MATCHED:
            found["w2"] = self.w2(Y, seed)
        if seed <= LONG_RUNS:
            found["accuracy"] = self.accuracy(Y)
        return {name: value for name, value in found.items() if value is not None}

    def counts(self, Y: Floats) -> dict[str, float]:
        """Both sorts of count queries, where they apply."""
        found = {"counts": median_error(Y, self.all), "triples": median_error(Y, self.three)}
        return {name: value for name, value in found.items() if value is not None}

    def pairs(self, Y: Floats) -> float:
        """Total variation of two-way marginals."""
        X, Z, sizes = self.case.codes, self.case.coded(Y), self.case.sizes
        found = []
        for a, b in combinations(range(len(sizes)), 2):
            shares = [
                np.bincount(T[:, a] * sizes[b] + T[:, b], minlength=sizes[a] * sizes[b]) / len(T)
                for T in (X, Z)
            ]
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
        return float(np.mean(found))

    def ranks(self, Y: Floats) -> float | None:
        """Squared distance of sorted values."""
        ordered = [j for j, axis in enumerate(self.case.axes) if axis.ordered]
        if not ordered or len(Y) != self.case.rows:
            return None
        X, Y = self.case.X[:, ordered], Y[:, ordered]
        distance = ((np.sort(X, axis=0) - np.sort(Y, axis=0)) ** 2).sum(axis=0)
        return float((distance / ((X - X.mean(axis=0)) ** 2).sum(axis=0)).mean())

    def w2(self, Y: Floats, seed: int) -> float:
        """Squared distance of rows in the best assignment."""
        rng = np.random.default_rng([seed, 2])
        A, B = self._space(self.case.X), self._space(Y)
        if len(A) > _MOST_MATCHED:
            # Releases are shuffled by the system's randomness; sorted, the same rows are drawn.
            A, B = (rng.permutation(T[np.lexsort(T.T)])[:1000] for T in (A, B))
        distances = cdist(A, B, "sqeuclidean")
        return float(distances[linear_sum_assignment(distances)].mean() / len(self.case.axes))

    def _space(self, Y: Floats) -> Floats:
        """Columns of variance 1 each in the original, nominals by indicators."""
        parts = []
        for j, axis in enumerate(self.case.axes):
            x, y = self.case.X[:, j], Y[:, j]
            if axis.ordered:
                parts.append((y / x.std())[:, None])
            else:
                shares = np.bincount(x.astype(np.int64), minlength=axis.size) / len(x)
                parts.append(np.eye(axis.size)[y.astype(np.int64)] / np.sqrt(1 - shares @ shares))
        return np.column_stack(parts)

    def accuracy(self, Y: Floats) -> float | None:
        """Share of the original records whose target the rows' classifier finds."""
        if self.case.target is None:
            return None
        return _accuracy(self.case, Y, self.case.X)

    @cached_property
    def honest_accuracy(self) -> float | None:
        """The same for original records, learnt on one half and asked of the other."""
        if self.case.target is None:
            return None
        X = np.random.default_rng(3).permutation(self.case.X)
        middle = len(X) // 2
        halves = ((X[:middle], X[middle:]), (X[middle:], X[:middle]))
        return float(np.mean([_accuracy(self.case, *both) for both in halves]))


def median_error(Y: Floats, asked: Sequence[Query]) -> float | None:
    """Median relative error over queries."""
    if not asked:
        return None
    Y = np.asfortranarray(Y)
    return float(np.median([abs(query.answer(Y) - query.count) / query.count for query in asked]))


def _accuracy(case: Case, learnt: Floats, asked: Floats) -> float:
    j = [axis.name for axis in case.axes].index(case.target)
    others = [i for i in range(len(case.axes)) if i != j]
    nominal = [not case.axes[i].ordered for i in others]
    if len(np.unique(learnt[:, j])) < 2:
        return float((asked[:, j] == learnt[0, j]).mean())
    # Small trees: with larger ones, rare classes of seven made the result jump by 0.02.
    model = HistGradientBoostingClassifier(
        max_iter=40,
        max_leaf_nodes=8,
        min_samples_leaf=50,
        l2_regularization=1.0,
        early_stopping=False,
        categorical_features=nominal,
        random_state=0,
    )
    with threadpool_limits(limits=1):  # On a shared machine threads mostly wait for each other.
        model.fit(learnt[:, others], learnt[:, j])
        return float(model.score(asked[:, others], asked[:, j]))


def _boxes(case: Case) -> list[Query]:
    """Five hundred boxes of half of each side of the bounds."""
    rng = np.random.default_rng(7)
    wide = np.array([axis.bounds[1] - axis.bounds[0] for axis in case.axes])
    members = tuple(range(len(wide)))
    found: list[Query] = []
    while len(found) < 500:
        low = rng.random(len(wide)) * wide / 2
        _keep(found, case.X, members, tuple(low), tuple(low + wide / 2))
    return found


def _queries(case: Case, columns: int, seed: int) -> list[Query]:
    """Two thousand ranges of half of some columns."""
    rng = np.random.default_rng(seed)
    ordered = np.sort(case.X, axis=0)
    found: list[Query] = []
    while len(found) < 2000:
        members = tuple(sorted(rng.choice(len(case.axes), columns, replace=False).tolist()))
        low, high = [], []
        for j in members:
            size = case.rows if case.axes[j].numeric else case.axes[j].size
            width = -(-size // 2)
            begin = int(rng.integers(0, size - width + 1))
            ends = (begin, begin + width - 1)
            if case.axes[j].numeric:
                ends = (ordered[ends[0], j], ordered[ends[1], j])
            low.append(float(ends[0]))
            high.append(float(ends[1]))
        _keep(found, case.X, members, tuple(low), tuple(high))
    return found


def _keep(
    found: list[Query],
    X: Floats,
    members: tuple[int, ...],
    low: tuple[float, ...],
    high: tuple[float, ...],
) -> None:
    count = _count(X, members, low, high)
    if count:
        found.append(Query(members, low, high, count))


def _count(Y: Floats, members: Sequence[int], low: Sequence[float], high: Sequence[float]) -> int:
    inside = np.ones(len(Y), dtype=bool)
    for j, begin, end in zip(members, low, high, strict=True):
        column = Y[:, j]
        inside &= (column >= begin) & (column <= end)
    return int(inside.sum())


def table_error(counts: Floats, asked: Sequence[Query]) -> float | None:
    """Median relative error of queries answered by a table of counts, which may be negative."""
    if not asked:
        return None
    errors = []
    tables: dict[tuple[int, ...], Floats] = {}
    for query in asked:
        if query.members not in tables:
            rest = tuple(j for j in range(counts.ndim) if j not in query.members)
            tables[query.members] = counts.sum(axis=rest)
        window = tuple(
            slice(int(a), int(b) + 1) for a, b in zip(query.low, query.high, strict=True)
        )
        errors.append(abs(tables[query.members][window].sum() - query.count) / query.count)
    return float(np.median(errors))

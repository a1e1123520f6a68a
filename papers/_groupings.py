"""What soriacomas2017 leaves to others: groups of any size, by any algorithm, and of categories."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import Floats, Runs, Study, show
from _plots import Axes, Curve, write

import shoal
from shoal.core import Partition
from shoal.partition import grouping_cost, mdav, noise_aware

EPSILONS = ("0.1", "1", "2", "10")
ALGORITHMS = ("mdav", "vmdav", "mu-approx", "mondrian", "optimal-univariate")
STATED = {"method": "mdav-laplace", "scale": "own-units"}


@dataclass(frozen=True)
class Found:
    """A grouping: its expected SSE with noise, and the SSE of releases.

    Attributes:
        groups: how many, for all columns together, or on average for each.
        cost: squares within groups plus expected noise, in the columns' own units.
        sse: mean over releases, with its standard error.
    """

    groups: float
    cost: float
    sse: float
    error: float
    k: int = 0

    def __str__(self) -> str:
        """For a page: expected, then released."""
        plural = "group" if self.groups == 1 else "groups"
        size = f"k={self.k}" if self.k else f"{show(self.groups)} {plural}"
        return f"{show(self.cost)}, {show(self.sse)} ± {show(self.error)} ({size})"


@dataclass(frozen=True)
class Adaptive:
    """Groups of any size against groups of one k, at one epsilon.

    Attributes:
        joint: expected SSE of MDAV on whole records, by k.
        single: the same of MDAV on each column.
        sizes: of the optimum's groups, all columns.
        seconds: CPU for MDAV with one k, and for the search.
    """

    joint: Mapping[int, float]
    single: Mapping[int, float]
    fixed: Found
    search: Found
    fixed_single: Found
    optimum: Found
    sizes: Floats
    seconds: tuple[float, float]


def noise_of(study: Study, eps: str) -> float:
    """Expected square of the noise on a group of one, in one column: all have the same."""
    total = sum(high - low for low, high in study.bounds.values())
    return 2 * (total / float(eps)) ** 2


@dataclass(frozen=True)
class OneSize:
    """MDAV's groups of one k for each k: of whole records, and of each column.

    Every k up to half of the records, and one group of all; of a large table, fewer.
    """

    joint: Mapping[int, Partition]
    single: Mapping[int, list[Partition]]

    @classmethod
    def of(cls, study: Study) -> "OneSize":
        """Group by every k."""
        X = study.matrix
        n = len(X)
        every = range(2, n // 2 + 1)
        ks = [*(every if study.name != common.SAMPLE else every[::20]), n]
        columns = _columns(study)
        return cls({k: mdav(X, k) for k in ks}, {k: [mdav(x, k) for x in columns] for k in ks})


def _columns(study: Study) -> list[Floats]:
    return [np.ascontiguousarray(x)[:, None] for x in study.matrix.T]


def adaptive(runs: Runs, sizes: OneSize, eps: str, repeats: int) -> Adaptive:
    """Compare groups of any size with those of each k, at one epsilon."""
    X, columns = runs.study.matrix, _columns(runs.study)
    n, m = X.shape
    each = noise_of(runs.study, eps)
    joint = {k: grouping_cost(X, groups, m * each) for k, groups in sizes.joint.items()}
    single = {
        k: sum(grouping_cost(x, p, each) for x, p in zip(columns, groups, strict=True))
        for k, groups in sizes.single.items()
    }
    at, at_single = (min(costs, key=costs.__getitem__) for costs in (joint, single))
    started = time.process_time()
    searched = noise_aware(X, m * each)
    searching = time.process_time() - started
    best = [noise_aware(x, each) for x in columns]
    started = time.process_time()
    mdav(X, at)
    one = time.process_time() - started
    stated = STATED | {"epsilon": common.epsilon(eps)}
    sets = [[name] for name in runs.study.bounds]

    def found(number: float, cost: float, **protect: Any) -> Found:
        loss = runs.loss(repeats, **stated, **protect)
        return Found(number, cost, loss.sse, loss.sse_sd / repeats**0.5, protect.get("k", 0))

    return Adaptive(
        joint,
        single,
        found(n // at, joint[at], k=at),
        found(len(searched), grouping_cost(X, searched, m * each), adaptive=True),
        found(n // at_single, single[at_single], k=at_single, groups=sets),
        found(
            float(np.mean([len(one) for one in best])),
            sum(grouping_cost(x, p, each) for x, p in zip(columns, best, strict=True)),
            adaptive=True,
            groups=sets,
        ),
        np.concatenate([one.sizes for one in best]).astype(np.float64),
        (one, searching),
    )


def alone_without_noise(study: Study) -> tuple[int, int]:
    """How many groups of each column are cheapest without noise, and how many records are there."""
    return min(len(noise_aware(x[:, None], 0.0)) for x in study.matrix.T), len(study.matrix)


def draw_adaptive(path: Path, found: Mapping[str, Adaptive]) -> None:
    """Expected SSE against k, and the levels of the groups of any size."""
    panels = []
    for eps, one in found.items():
        ks = list(one.joint)
        levels = (("adaptive, whole records", one.search.cost, "blue", "7 4"),
                  ("adaptive, each column: optimum", one.optimum.cost, "black", "2 3"))  # fmt: skip
        curves = [
            Curve("MDAV+DP, groups of k", list(one.joint.items()), "red", ""),
            Curve("IR_MDAV+DP_2, groups of k", list(one.single.items()), "green", ""),
            *(
                Curve(label, [(ks[0], cost), (ks[-1], cost)], colour, "", dash)
                for label, cost, colour, dash in levels
            ),
        ]
        title = f"epsilon {eps}"
        panels.append(Axes(title, curves, "k", "expected SSE", x_log=True, y_log=True))
    write(path, "Groups of any size against groups of k", panels)


def adaptive_table(found: Mapping[str, Adaptive]) -> str:
    """The table of the page."""
    rows = [
        [eps, str(one.fixed), str(one.search), str(one.fixed_single), str(one.optimum)]
        for eps, one in found.items()
    ]
    header = ["epsilon", "MDAV+DP, best of all k", "adaptive, whole records"]
    return common.grid_table(
        [*header, "IR_MDAV+DP_2, best of all k", "adaptive, each column: optimum"], rows
    )


# Any microaggregation.


@dataclass(frozen=True)
class ByAlgorithm:
    """Releases at one k with each algorithm.

    Attributes:
        sse: by epsilon, then algorithm.
        promised: claims of each.
        same_scales: whether the accounting of each has the same scales.
    """

    k: int
    sse: Mapping[str, Mapping[str, float]]
    promised: Mapping[str, tuple[str, ...]]
    same_scales: bool


def by_algorithm(runs: Runs, k: int, epsilons: Sequence[str], repeats: int) -> ByAlgorithm:
    """Release with every algorithm that `partition` offers."""
    sse: dict[str, dict[str, float]] = {}
    promised = {}
    for eps in epsilons:
        sse[eps] = {}
        for name in ALGORITHMS:
            stated = {"method": "mdav-laplace", "epsilon": common.epsilon(eps), "k": k}
            sse[eps][name] = runs.loss(repeats, **stated, partition=name).sse
            promised[name] = runs.claims.pop("mdav-laplace")
    scales = {scales_of(runs.study, "mdav-laplace", k=k, partition=name) for name in ALGORITHMS}
    return ByAlgorithm(k, sse, promised, len(scales) == 1)


def scales_of(study: Study, method: str, **protect: Any) -> tuple[Fraction, ...]:
    """Scales of the noise on the sums of the columns, in their own units, at epsilon 1."""
    policy = study.policy(method=method, epsilon=1, **protect)
    release = shoal.protect(study.frame, policy, keep_order=True)
    widths = [Fraction(high) - Fraction(low) for low, high in study.bounds.values()]
    return tuple(
        loss.scale / loss.sensitivity * width
        for loss, width in zip(release.privacy_losses, widths, strict=True)
    )


def algorithm_table(found: ByAlgorithm) -> str:
    """Losses and claims of each algorithm."""
    rows = [
        [
            f"`{name}`",
            *(show(losses[name]) for losses in found.sse.values()),
            "<br>".join(found.promised[name]),
        ]
        for name in ALGORITHMS
    ]
    header = [f"SSE, ε = {eps}" for eps in found.sse]
    return common.grid_table(["partition", *header, "claims"], rows)


# Categories.


@dataclass(frozen=True)
class Mixed:
    """A table with categories, and the columns of its policy."""

    name: str
    frame: pl.DataFrame
    columns: Mapping[str, Mapping[str, Any]]

    def kept(self, **protect: Any) -> dict[str, float]:
        """Of each column how much a release keeps: cells with their category, or 1 - SSE / SST.

        An ordinal's ranks are numbers.
        """
        policy = {"version": 1, "columns": self.columns, "protect": protect}
        released = shoal.protect(self.frame, policy, keep_order=True).data
        found = {}
        for name, column in self.columns.items():
            if column["kind"] == "nominal":
                found[name] = float((self.frame[name] == released[name]).mean())
                continue
            x, y = (self._numbers(table[name], column) for table in (self.frame, released))
            found[name] = 1 - float(((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum())
        return found

    @staticmethod
    def _numbers(values: pl.Series, column: Mapping[str, Any]) -> Floats:
        if column["kind"] == "ordinal":
            ranks = {name: float(rank) for rank, name in enumerate(column["categories"])}
            return np.array([ranks[value] for value in values])
        return values.to_numpy().astype(np.float64)

    def majority(self, name: str) -> float:
        """Share of the most frequent category: what a guess would keep."""
        return float(self.frame[name].value_counts()["count"].max() / self.frame.height)


def mixed(*, sample: bool) -> Mixed:
    """Adult, every fifth row, or the shipped sample: a number, an ordinal and two nominals."""
    if sample:
        frame = shoal.sample.load().filter(pl.col("age") >= 18).head(1_000)
        frame = frame.select("age", "education", "marital", "sex").drop_nulls()
        ranked = ["none", "primary", "secondary", "tertiary"]
        nominal, years, name = ("marital", "sex"), (0, 110), common.SAMPLE
    else:
        frame = pl.read_csv(common.DATA / "adult.csv").gather_every(5)
        schooling = frame.group_by("education").agg(pl.col("education-num").min())
        ranked = schooling.sort("education-num")["education"].to_list()
        nominal, years, name = ("marital-status", "occupation"), (17, 90), "Adult"
        frame = frame.select("age", "education", *nominal)
    quasi = {"role": "quasi-identifier"}
    columns: dict[str, dict[str, Any]] = {
        "age": {**quasi, "kind": "numeric", "bounds": list(years)},
        "education": {**quasi, "kind": "ordinal", "categories": ranked},
    }
    for column in nominal:
        columns[column] = {
            **quasi, "kind": "nominal", "categories": sorted(frame[column].unique().to_list()),
        }  # fmt: skip
    return Mixed(name, frame, columns)


MIXED_KS = (20, 50, 100, 200, 400)
MIXED_EPSILONS = ("1", "10")
PLAIN = "each cell by itself"


def categories(study: Mixed, repeats: int) -> dict[tuple[str, int], dict[str, float]]:
    """What releases keep of each column, by epsilon and k; k = 1 is noise on each cell."""
    found = {}
    for eps in MIXED_EPSILONS:
        ways: dict[int, dict[str, Any]] = {1: {"method": "laplace"}}
        ways |= {k: {"method": "mdav-laplace", "k": k} for k in MIXED_KS}
        for k, stated in ways.items():
            made = [study.kept(**stated, epsilon=common.epsilon(eps)) for _ in range(repeats)]
            found[eps, k] = {
                name: float(np.mean([one[name] for one in made])) for name in study.columns
            }
    return found


def draw_categories(
    path: Path, study: Mixed, found: Mapping[tuple[str, int], Mapping[str, float]]
) -> None:
    """Share of the cells of each nominal that keep their category, against k."""
    nominal = [name for name, column in study.columns.items() if column["kind"] == "nominal"]
    panels = []
    for eps in MIXED_EPSILONS:
        curves = []
        for name, colour in zip(nominal, ("blue", "red"), strict=True):
            level = found[eps, 1][name]
            curves += [
                Curve(name, [(k, found[eps, k][name]) for k in MIXED_KS], colour),
                Curve(f"{name}, {PLAIN}", [(k, level) for k in MIXED_KS[::4]], colour, "", "7 4"),
            ]
        title = f"{study.name}, epsilon {eps}"
        panels.append(Axes(title, curves, "k", "share that is kept", x_log=True, x_marks=MIXED_KS))
    write(path, f"Categories that are kept on {study.name}", panels)


def category_table(study: Mixed, found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """What is kept, column by column."""
    rows = []
    for (eps, k), kept in found.items():
        rows.append([eps, PLAIN if k == 1 else f"k={k}", *(show(v) for v in kept.values())])
    guess = [
        show(study.majority(name)) if column["kind"] == "nominal" else "0"
        for name, column in study.columns.items()
    ]
    rows.append(["-", "the mean, or the most frequent category", *guess])
    return common.grid_table(["epsilon", "groups", *study.columns], rows)

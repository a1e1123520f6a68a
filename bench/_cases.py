"""The tables on which `tables.py` compares, with the public facts that every method is given.

A case is a table of numbers: the values of numeric columns, and codes from 0 for the others. Its
axes say what is public: kind, bounds, scale, number of codes. Methods that need categories get
equal bins of the public scale instead of numbers, and a number comes back as a uniform draw from
its bin, on that scale.

Adult, Census and EIA are files of SHOAL_DATA (or ../shared/data); a case whose file is absent is
left out by name. The sample is shipped; `chain` and `clusters` are generated here, and no
constant of any method was chosen on them. Because `auto` lost on `chain`, `maxent` measures what
groups lose, and because it lost on `clusters`, it counts three-way marginals.
"""

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import sample

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = list[dict[str, str]]

_BEND = 100.0
"""Of the log scale, ln(1 + 100 t): the one that the policy key `transform` means."""


@dataclass(frozen=True)
class Axis:
    """What is public of a column.

    Attributes:
        size: number of codes; of a numeric column, of bins for methods that need categories.
        bounds: of a numeric column.
        step: of a numeric column whose values are multiples of it.
        log: whether a numeric column is on a log scale.
    """

    name: str
    kind: str
    size: int
    bounds: tuple[float, float] = (0.0, 1.0)
    step: int | None = None
    log: bool = False

    @property
    def numeric(self) -> bool:
        """Whether cells are values rather than codes."""
        return self.kind == "numeric"

    @property
    def ordered(self) -> bool:
        """Whether cells may be sorted."""
        return self.kind != "nominal"

    def declaration(self) -> dict[str, Any]:
        """The column as a policy states it: as for the rivals, no cell can be missing."""
        stated: dict[str, Any] = {
            "role": "quasi-identifier",
            "kind": self.kind,
            "keep_missing": False,
        }
        if not self.numeric:
            return stated | {"categories": [str(code) for code in range(self.size)]}
        stated["bounds"] = list(self.bounds)
        if self.step:
            stated["step"] = self.step
        return stated | ({"transform": "log"} if self.log else {})

    def codes(self, cells: Floats) -> Ints:
        """The bin of each number; codes are themselves."""
        if not self.numeric:
            return cells.astype(np.int64)
        low, high = self.bounds
        t = np.clip((cells - low) / (high - low), 0, 1)
        if self.log:
            t = np.log1p(_BEND * t) / np.log1p(_BEND)
        return np.minimum(np.floor(t * self.size), self.size - 1).astype(np.int64)

    def cells(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """A number drawn from each bin, evenly on the public scale."""
        if not self.numeric:
            return codes.astype(np.float64)
        low, high = self.bounds
        t = (codes + rng.random(len(codes))) / self.size
        if self.log:
            t = np.expm1(t * np.log1p(_BEND)) / _BEND
        drawn = low + t * (high - low)
        return np.clip(np.rint(drawn / self.step) * self.step, low, high) if self.step else drawn


@dataclass(frozen=True, eq=False)
class Case:
    """A table and what is asked of it.

    Attributes:
        title: for pages.
        axes: one per column.
        X: records by columns, codes and numbers.
        target: a nominal column that a classifier predicts.
        half: what half of a numeric column means in a count query: of its bounds or of its ranks.
        epsilons: at which it is compared.
        tuned: whether constants of ours were chosen on it.
    """

    name: str
    title: str
    axes: tuple[Axis, ...]
    X: Floats
    target: str | None = None
    half: str = "ranks"
    epsilons: tuple[str, ...] = ("0.1", "1", "10")
    tuned: bool = False

    @property
    def rows(self) -> int:
        """Number of records, public."""
        return len(self.X)

    @property
    def sizes(self) -> list[int]:
        """Codes of each column, numbers in bins."""
        return [axis.size for axis in self.axes]

    @cached_property
    def codes(self) -> Ints:
        """The table with numbers in bins."""
        return self.coded(self.X)

    def coded(self, Y: Floats) -> Ints:
        """Rows with numbers in bins."""
        return np.column_stack([axis.codes(Y[:, j]) for j, axis in enumerate(self.axes)])

    def decoded(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Rows with numbers for bins."""
        return np.column_stack([axis.cells(codes[:, j], rng) for j, axis in enumerate(self.axes)])

    @cached_property
    def digest(self) -> str:
        """Of the binned table and its domain: what a rival is given."""
        described = repr([(axis.name, axis.size) for axis in self.axes])
        return sha256(described.encode() + self.codes.tobytes()).hexdigest()[:16]


def cases(wanted: Callable[[str], bool] = lambda _name: True) -> Iterator[Case]:
    """The cases whose table is at hand, one after the other."""
    for name, make in _CASES.items():
        if not wanted(name):
            continue
        source = name.split("-", maxsplit=1)[0]
        if source in {"adult", "census", "eia"} and not (DATA / f"{source}.csv").is_file():
            print(f"{name} is left out: there is no {source}.csv")
            continue
        yield make()


def _read(name: str) -> Rows:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _numbers(rows: Rows, name: str) -> Ints:
    return np.array([int(float(row[name] or 0)) for row in rows], dtype=np.int64)


def _categories(rows: Rows, name: str) -> Ints:
    """Codes in alphabetical order."""
    return np.unique([row[name] for row in rows], return_inverse=True)[1].astype(np.int64)


def _coded_case(
    name: str, title: str, columns: Mapping[str, Ints], ordinal: Mapping[str, int], **more: Any
) -> Case:
    """A case without numbers; the domain of a nominal is what occurs."""
    axes = tuple(
        Axis(column, "ordinal", ordinal[column])
        if column in ordinal
        else Axis(column, "nominal", int(codes.max()) + 1)
        for column, codes in columns.items()
    )
    X = np.column_stack(list(columns.values())).astype(np.float64)
    return Case(name, title, axes, X, **more)


def _adult_plane() -> Case:
    rows = _read("adult")
    X = np.column_stack([_numbers(rows, "age"), _numbers(rows, "hours-per-week")])
    axes = (
        Axis("age", "numeric", 32, (0, 135), step=1),
        Axis("hours", "numeric", 32, (0, 148.5), step=1),
    )
    title = "Adult, age and hours as numbers"
    return Case("adult-2", title, axes, X.astype(np.float64), half="bounds", tuned=True)


def _adult(m: int) -> Case:
    rows = _read("adult")
    gain = _numbers(rows, "capital-gain")
    bins = 1 + np.floor(np.log1p(gain) / np.log1p(99_999) * 16).astype(np.int64)
    columns = {
        "age": np.minimum((_numbers(rows, "age") - 15) // 5, 14),
        "hours": np.minimum((_numbers(rows, "hours-per-week") - 1) // 10, 9),
        "education-num": _numbers(rows, "education-num") - 1,
    }
    names = ("marital-status", "occupation", "workclass", "sex", "income", "relationship", "race")
    columns |= {name: _categories(rows, name) for name in (*names, "native-country")}
    columns["capital-gain"] = np.where(gain == 0, 0, np.minimum(bins, 16))
    ordinal = {"age": 15, "hours": 10, "education-num": 16, "capital-gain": 17}
    return _coded_case(
        f"adult-{m}",
        f"Adult, {m} columns of categories",
        dict(list(columns.items())[:m]),
        ordinal,
        target="marital-status" if m == 5 else "income",
        tuned=m < 12,
    )


def _census() -> Case:
    rows = _read("census")
    names = ("FICA", "FEDTAX", "INTVAL", "POTHVAL")
    X = np.column_stack([_numbers(rows, name) for name in names]).astype(np.float64)
    axes = tuple(
        Axis(name, "numeric", 16, (0, 1.5 * top), log=True)
        for name, top in zip(names, X.max(axis=0).tolist(), strict=True)
    )
    return Case("census-4", "Census, four amounts on a log scale", axes, X)


def _eia() -> Case:
    rows = _read("eia")
    money = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "TOTSALES")
    columns = {"STATE": _categories(rows, "STATE"), "MONTH": _numbers(rows, "MONTH") - 1}
    for name in money:
        values = np.maximum(_numbers(rows, name), 0)
        top = np.log1p(1.5 * values.max())
        columns[name] = np.minimum(np.floor(np.log1p(values) / top * 16), 15).astype(np.int64)
    ordinal = {"MONTH": 12} | dict.fromkeys(money, 16)
    title = "EIA, state, month and six amounts in bins"
    return _coded_case("eia-8", title, columns, ordinal)


def _sample() -> Case:
    """Eight columns of the shipped sample; rows with a missing cell are left out."""
    names = ("age", "sex", "region", "education", "marital", "hours", "occupation", "income")
    frame = sample.load().select(names).drop_nulls()
    numeric = {
        "age": Axis("age", "numeric", 22, (0, 110), step=1),
        "hours": Axis("hours", "numeric", 16, (0, 80), step=1),
        "income": Axis("income", "numeric", 16, (0, 500_000), step=1, log=True),
    }
    levels = ["none", "primary", "secondary", "tertiary"]
    axes, columns = [], []
    for name in names:
        cells = frame[name].to_list()
        if name in numeric:
            axis, column = numeric[name], np.array(cells, dtype=np.float64)
        elif name == "education":
            axis = Axis(name, "ordinal", len(levels))
            column = np.array([levels.index(cell) for cell in cells], dtype=np.float64)
        else:
            found, codes = np.unique(cells, return_inverse=True)
            axis, column = Axis(name, "nominal", len(found)), codes.astype(np.float64)
        axes.append(axis)
        columns.append(column)
    title = "the shipped sample, three numbers and five categories"
    return Case("sample-8", title, tuple(axes), np.column_stack(columns), target="marital")


def _chain() -> Case:
    """Each nominal is a relabelling of the one before, wrong in one of ten; pairs say it all."""
    rng = np.random.default_rng(20261115)
    n, sizes = 20_000, (12, 8, 16, 6, 20, 2)
    shares = rng.dirichlet(np.full(sizes[0], 0.7))
    column = rng.choice(sizes[0], n, p=shares)
    columns = {"c0": column}
    for j, size in enumerate(sizes[1:], start=1):
        names = rng.permutation(max(size, sizes[j - 1])) % size
        column = np.where(rng.random(n) < 0.1, rng.integers(size, size=n), names[column])
        columns[f"c{j}"] = column
    title = "generated: a chain of six nominals, each almost the one before"
    return _coded_case("chain-6", title, columns, {}, target="c5")


def _clusters() -> Case:
    """Nine tight clusters in three ordinals with nominals of their own, and a parity of two."""
    rng = np.random.default_rng(20261116)
    n, clusters = 12_000, 9
    member = rng.choice(clusters, n, p=rng.dirichlet(np.full(clusters, 2.0)))
    centres = rng.uniform(3, 21, (clusters, 3))
    spread = rng.normal(0, 1.5, (n, 3))
    places = np.clip(np.rint(centres[member] + spread), 0, 23).astype(np.int64)
    columns = {name: places[:, j] for j, name in enumerate(("x", "y", "z"))}
    for name, size in (("colour", 15), ("shape", 6)):
        modes = rng.permutation(clusters) % size
        columns[name] = np.where(rng.random(n) < 0.15, rng.integers(size, size=n), modes[member])
    coin = rng.integers(2, size=n)
    columns["coin"] = coin
    columns["parity"] = np.where(
        rng.random(n) < 0.05, rng.integers(2, size=n), coin ^ (places[:, 0] > 11)
    )
    title = "generated: nine clusters, and a parity that no pair of columns shows"
    ordinal = {"x": 24, "y": 24, "z": 24}
    return _coded_case("clusters-7", title, columns, ordinal, target="parity")


_CASES: dict[str, Callable[[], Case]] = {
    "adult-5": lambda: _adult(5),
    "adult-8": lambda: _adult(8),
    "chain-6": _chain,
    "clusters-7": _clusters,
    "adult-2": _adult_plane,
    "sample-8": _sample,
    "eia-8": _eia,
    "census-4": _census,
    "adult-12": lambda: _adult(12),
}
"""In order of importance, so that a run that is stopped has the first ones."""
NAMES = tuple(_CASES)

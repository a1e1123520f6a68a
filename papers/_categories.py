"""Nominal columns in individual ranking, which Sánchez et al. (2014) leave for later.

Categories are compared by path length in a hierarchy that is public, sorted in an order that
follows from it, averaged as places in that order, and randomised there. Loss is the paper's SSE
with the path length as its distance.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import _common as common
import numpy as np
import polars as pl

import shoal
from shoal.partition import path_lengths

Tree = Mapping[str, Any]

OCCUPATIONS: Tree = {
    "office": {
        "management and professions": ("Exec-managerial", "Prof-specialty"),
        "clerks and technicians": ("Adm-clerical", "Tech-support", "Sales"),
    },
    "manual": {
        "crafts and machines": ("Craft-repair", "Machine-op-inspct"),
        "other manual": ("Handlers-cleaners", "Transport-moving", "Farming-fishing"),
    },
    "services": {
        "persons": ("Other-service", "Priv-house-serv"),
        "security": ("Protective-serv", "Armed-Forces"),
    },
}
COUNTRIES: Tree = {
    "Asia": {
        "East Asia": ("China", "Hong", "Taiwan", "Japan", "South"),
        "South-east Asia": ("Cambodia", "Laos", "Philippines", "Thailand", "Vietnam"),
        "West and south": ("India", "Iran"),
    },
    "America": {
        "Caribbean": (
            *("Cuba", "Dominican-Republic", "Haiti", "Jamaica", "Puerto-Rico"),
            "Trinadad&Tobago",
        ),
        "Central America": ("El-Salvador", "Guatemala", "Honduras", "Nicaragua"),
        "North America": ("Canada", "Mexico", "Outlying-US(Guam-USVI-etc)", "United-States"),
        "South America": ("Columbia", "Ecuador", "Peru"),
    },
    "Europe": {
        "North and west": (
            *("England", "France", "Germany", "Holand-Netherlands", "Ireland"),
            "Scotland",
        ),
        "South and east": ("Greece", "Hungary", "Italy", "Poland", "Portugal", "Yugoslavia"),
    },
}
"""The United States, nine records in ten, stand at no end: bounds would cut noise off there."""
MARITAL: Tree = {
    "couple": ("married", "cohabiting"),
    "no couple": ("single", "divorced", "widowed"),
}

ALPHABET, WALK, MARGINAL = "declared: alphabet", "declared: along the hierarchy", "marginality"
PLAIN, RANKED = "plain noise on cells", "individual ranking, no noise"
KS = (5, 10, 30, 100)


@dataclass(frozen=True)
class Loss:
    """Mean over runs: SSE of path lengths over m, and total variation of the shares."""

    sse: float
    variation: float
    status: str


def adult() -> tuple[pl.DataFrame, dict[str, Tree]]:
    """Two nominal columns of Adult, with hierarchies of ours."""
    trees = {"occupation": OCCUPATIONS, "native-country": COUNTRIES}
    return pl.read_csv(common.DATA / "adult.csv").select(list(trees)), trees


def shipped() -> tuple[pl.DataFrame, dict[str, Tree]]:
    """A nominal column of the sample."""
    return shoal.sample.load().select("marital").head(1000), {"marital": MARITAL}


def leaves(tree: Tree, above: Sequence[str] = ("all",)) -> Iterator[list[str]]:
    """Ways from each leaf to the root, in the order of a walk."""
    for name, below in tree.items():
        if isinstance(below, Mapping):
            yield from leaves(below, (name, *above))
        else:
            yield from ([leaf, name, *above] for leaf in below)


def measured(
    frame: pl.DataFrame,
    trees: Mapping[str, Tree],
    ks: Sequence[int],
    epsilons: Sequence[str],
    runs: int,
) -> dict[tuple[str, str, int | None], Loss]:
    """Every order at every k and epsilon, with plain noise and ranking alone beside it."""
    found: dict[tuple[str, str, int | None], Loss] = {}
    with TemporaryDirectory() as folder:
        study = _Study(frame, trees, Path(folder))
        for eps in epsilons:
            stated = common.epsilon(eps)
            found[PLAIN, eps, None] = study.loss(WALK, runs, method="laplace", epsilon=stated)
            for k in ks:
                for order in (ALPHABET, WALK, MARGINAL):
                    sort = "marginality" if order == MARGINAL else "declared"
                    found[order, eps, k] = study.loss(
                        order, runs, method="ir-laplace", epsilon=stated, k=k, nominal_order=sort
                    )
        for k in ks:
            found[RANKED, "", k] = study.loss(WALK, 1, method="individual-ranking", k=k)
    return found


class _Study:
    def __init__(self, frame: pl.DataFrame, trees: Mapping[str, Tree], folder: Path) -> None:
        self.frame, self.files = frame, {}
        self.lengths, self.codes = {}, {}
        for name, tree in trees.items():
            ways = list(leaves(tree))
            for order, rows in ((WALK, ways), (ALPHABET, sorted(ways))):
                path = self.files[name, order] = folder / f"{name}-{len(self.files)}.csv"
                with path.open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerows(rows)
            nodes = {node: code for code, node in enumerate({n for way in ways for n in way})}
            self.lengths[name] = path_lengths([[nodes[n] for n in way[-2::-1]] for way in ways])
            self.codes[name] = {way[0]: code for code, way in enumerate(ways)}

    def loss(self, order: str, runs: int, **protect: Any) -> Loss:
        """Mean losses of so many row-aligned releases, and what their list may claim."""
        files = WALK if order == MARGINAL else order
        columns = {
            name: {"role": "quasi-identifier", "kind": "nominal",
                   "hierarchy": str(self.files[name, files])}
            for name in self.codes
        }  # fmt: skip
        form = {"release_form": "row-aligned"} if protect["method"] == "ir-laplace" else {}
        policy = {"version": 1, "columns": columns, "protect": {**protect, **form}}
        found = [
            self._lost(shoal.protect(self.frame, policy, keep_order=True).data) for _ in range(runs)
        ]
        if form:
            policy["protect"]["release_form"] = "column-shuffled"
        status = shoal.plan(policy).claims[0].status if "epsilon" in protect else "-"
        return Loss(*np.mean(found, axis=0).tolist(), str(status))

    def _lost(self, released: pl.DataFrame) -> tuple[float, float]:
        squares, apart = 0.0, 0.0
        for name, codes in self.codes.items():
            one, other = (
                np.array([codes[cell] for cell in table[name]]) for table in (self.frame, released)
            )
            squares += float((self.lengths[name][one, other] ** 2).sum())
            shares = [
                np.bincount(column, minlength=len(codes)) / len(one) for column in (one, other)
            ]
            apart += float(np.abs(shares[0] - shares[1]).sum()) / 2
        return squares / len(self.codes), apart / len(self.codes)

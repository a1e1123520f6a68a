"""The releases of Cormode, Procopiuc, Shen, Srivastava and Yu (2013), Figures 1 to 6.

Spatial trees with a histogram of the confidential column in each box: Mondrian under k-anonymity,
l-diversity and the paper's rule for t-closeness, and private trees. This program makes the
releases and says what each of them is; queries and attacks on them come with the figures.

    from cormode2013 import adult, figure, made

    study = adult()
    for release in made(study, figure(study, 1), cache=Path("trees")):
        release.boxes  # a Decomposition

What our copy of the paper leaves open, and what is taken here, is in `CHOICES`, and on the page.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import DATA, PAGES, SAMPLE, SEED

import shoal
from shoal import leaves
from shoal.core import Decomposition
from shoal.methods import REGISTRY

TABLE = Path(__file__).stem
KS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
LS = (2, 3, 4, 5, 6, 7, 8)
TS = tuple(
    map(Decimal, ("0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"))
)
EPSILONS = tuple(map(Decimal, ("0.01", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")))
HEIGHTS = (2, 4, 6, 8, 10, 12, 14)
SIZES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
RUNS = 8
"""Of a private tree, as in the paper."""

FIGURES = ("k", "l", "t (equal)", "t (ordered)")
"""What trees with exact counts achieve: l of the frequency kind, t by two distances."""

K, L = "k-anonymity", "l-diversity"
HALTED = {"ordered": "halted beyond t, ordered", "equal": "halted beyond t, equal"}
KD, QUAD = "private kd-tree", "private quadtree"
PRIVATE = {KD: "dp-kdtree", QUAD: "dp-quadtree"}

CHOICES = """\
- The values of k, l, t, epsilon and the height are marks on figures that our copy lacks. The text
  has k up to 1024, l from 2, t beyond 0.35, and epsilon from 0.01 to 10, of which the fourth
  largest is 1.
- Which l-diversity is meant: the frequency kind is taken, no value having a share above 1/l. Of
  the distinct, the entropy and the frequency kind it is the one for which Adult is left whole from
  l = 6 on, as the paper has it; the recursive kind needs a c that the paper does not name. k is 2.
- Which ground distance the earth mover's distance has: both are made, `ordered` (occupations in
  the order of their names, next ones 1/13 apart) and `equal` (total variation). The paper has it
  that the threshold no longer matters beyond 0.35: on Adult that is so for `ordered`, and not for
  `equal`.
- The order of categories: education by years, the others by name.
- Private trees: the paper says kd-trees and quadtrees, and both are grown. Their heights follow
  from the number of rows and epsilon unless a figure varies them, and epsilon is for change-one
  neighbours.
- The Census table of the paper is not ours: Figure 6 is made on Adult.
"""
"""What our copy of the paper leaves open, and what is taken here."""


@dataclass(frozen=True)
class Study:
    """A table with one confidential column and its policy's columns."""

    name: str
    frame: pl.DataFrame
    columns: Mapping[str, Mapping[str, Any]]

    @property
    def confidential(self) -> str:
        """The column that boxes count."""
        return next(name for name, spec in self.columns.items() if spec["role"] == "confidential")

    def part(self, percent: int) -> pl.DataFrame:
        """So many of a hundred rows, drawn without replacement; a larger part holds a smaller."""
        order = np.random.default_rng(SEED).permutation(self.frame.height)
        return self.frame[np.sort(order[: self.frame.height * percent // 100])]

    def policy(
        self, protect: Mapping[str, Any], require: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """A policy that releases a tree."""
        protect = {**protect, "output": "tree"}
        return {
            "version": 1,
            "columns": {name: dict(spec) for name, spec in self.columns.items()},
            "protect": protect,
            "require": dict(require or {}),
        }


@dataclass(frozen=True)
class Point:
    """A release that a figure asks for.

    Attributes:
        parameter: what the figure varies, as text.
        percent: how much of the table is used.
        run: number of a repetition, for the private trees.
    """

    figure: int
    model: str
    parameter: str
    policy: Mapping[str, Any]
    percent: int = 100
    run: int = 0


@dataclass(frozen=True)
class Tree:
    """A release, and what it achieves.

    Attributes:
        achieved: of the boxes, see `FIGURES`; nothing where counts are noisy, since the true ones
            are not known.
        claims: as in the manifest.
    """

    point: Point
    boxes: Decomposition
    achieved: Mapping[str, float]
    claims: tuple[str, ...] = field(default=(), compare=False)


def adult() -> Study:
    """Adult as in the paper: 30,162 rows, occupation confidential, five quasi-identifiers."""
    names = ["workclass", "education", "sex", "hours-per-week", "income", "occupation"]
    frame = pl.read_csv(DATA / "adult.csv")
    schooling = frame.group_by("education").agg(pl.col("education-num").min())
    columns: dict[str, dict[str, Any]] = {}
    for name in names:
        role = "confidential" if name == "occupation" else "quasi-identifier"
        levels = sorted(frame[name].cast(pl.String).unique())
        columns[name] = {"role": role, "kind": "nominal", "categories": levels}
    columns["education"]["kind"] = "ordinal"
    columns["education"]["categories"] = schooling.sort("education-num")["education"].to_list()
    columns["hours-per-week"] = {**_WHOLE, "bounds": [1, 99]}
    return Study("Adult", frame.select(names), columns)


def sample(rows: int) -> Study:
    """People of the shipped sample who work: the same sort of columns, without income."""
    quasi = {"role": "quasi-identifier"}
    marital = ["single", "cohabiting", "married", "divorced", "widowed"]
    schooling = ["none", "primary", "secondary", "tertiary"]
    people = shoal.sample.load().filter(pl.col("hours") > 0)
    columns: dict[str, dict[str, Any]] = {
        "marital": {**quasi, "kind": "nominal", "categories": marital},
        "education": {**quasi, "kind": "ordinal", "categories": schooling},
        "sex": {**quasi, "kind": "nominal", "categories": ["male", "female"]},
        "hours": {**_WHOLE, "bounds": [0, 80]},
        "age": {**_WHOLE, "bounds": [0, 110]},
        "occupation": {"role": "confidential", "kind": "nominal"},
    }
    frame = people.select(*columns).drop_nulls().head(rows)
    columns["occupation"]["categories"] = sorted(frame["occupation"].unique())
    return Study(SAMPLE, frame, columns)


_WHOLE = {"role": "quasi-identifier", "kind": "numeric", "step": 1}


def figure(study: Study, number: int, *, runs: int = RUNS) -> list[Point]:
    """The releases behind a figure.

    Figure 5 draws all of Figures 1 to 4 in one plot, and so has theirs. Figure 6 varies the
    height, of k = 8 and epsilon 1, and then the number of rows.
    """
    if number == 1:
        return [k_anonymous(study, 1, k) for k in KS]
    if number == 2:
        return [diverse(study, 2, l) for l in LS]  # noqa: E741 (as in the literature)
    if number == 3:
        return [halted(study, 3, t, distance) for distance in HALTED for t in TS]
    if number == 4:
        return [p for e in EPSILONS for tree in PRIVATE for p in private(study, 4, tree, e, runs)]
    if number == 5:
        return [point for earlier in (1, 2, 3, 4) for point in figure(study, earlier, runs=runs)]
    one = Decimal(1)
    points = [k_anonymous(study, 6, 8, height=height) for height in HEIGHTS]
    points += [k_anonymous(study, 6, 8, percent=percent) for percent in SIZES]
    for tree in PRIVATE:
        for height in HEIGHTS:
            points += private(study, 6, tree, one, runs, height=height)
        for percent in SIZES:
            points += private(study, 6, tree, one, runs, percent=percent)
    return points


def k_anonymous(
    study: Study, number: int, k: int, *, height: int | None = None, percent: int = 100
) -> Point:
    """Mondrian with groups of k, cut at most `height` times."""
    protect: dict[str, Any] = {"method": "mondrian", "k": k}
    text = f"k = {k}"
    if height is not None:
        protect["max_height"] = height
        text += f", height {height}"
    return Point(number, K, text, study.policy(protect), percent)


def diverse(study: Study, number: int, l: int) -> Point:  # noqa: E741 (as in the literature)
    """Mondrian under l-diversity of the frequency kind; the root alone where nothing has it."""
    protect: dict[str, Any] = {"method": "mondrian", "k": 2}
    require = {"l-diversity": {"l": l, "column": study.confidential, "kind": "frequency"}}
    largest = study.frame[study.confidential].value_counts()["count"].max()
    if l * largest > study.frame.height:
        # "it is not possible to achieve l-diversity on the data": the paper's tree is its root.
        protect["max_height"] = 0
        return Point(number, L, f"l = {l}, not met", study.policy(protect))
    return Point(number, L, f"l = {l}", study.policy(protect, require))


def halted(study: Study, number: int, t: Decimal, distance: str) -> Point:
    """Mondrian with k = 8, where nodes beyond t are not cut further."""
    protect = {"method": "mondrian", "k": 8, "halt_beyond": t, "halt_distance": distance}
    return Point(number, HALTED[distance], f"t = {t}", study.policy(protect))


def private(
    study: Study,
    number: int,
    tree: str,
    epsilon: Decimal,
    runs: int,
    *,
    height: int | None = None,
    percent: int = 100,
) -> list[Point]:
    """A private tree, so many times over."""
    protect: dict[str, Any] = {"method": PRIVATE[tree], "epsilon": epsilon}
    text = f"epsilon = {epsilon}"
    if height is not None:
        protect["height"] = height
        text += f", height {height}"
    policy = study.policy(protect)
    return [Point(number, tree, text, policy, percent, run) for run in range(runs)]


def made(study: Study, points: Iterable[Point], *, cache: Path | None = None) -> Iterator[Tree]:
    """Make the releases, or read those again that a folder holds.

    Args:
        study: whose points these are.
        points: of `figure`. Those of a method that this version lacks are left out.
        cache: a folder for the trees as Parquet files, named by their policy, rows and run.
    """
    for point in points:
        if point.policy["protect"]["method"] in REGISTRY:
            yield _made(study, point, cache)


def _made(study: Study, point: Point, cache: Path | None) -> Tree:
    path = None if cache is None else cache / f"{_key(study, point)}.parquet"
    claims: tuple[str, ...] = ()
    if path is not None and path.is_file():
        data = pl.read_parquet(path)
    else:
        release = shoal.protect(study.part(point.percent), point.policy)
        data = release.data
        claims = tuple(f"{claim.status}: {claim.guarantee}" for claim in release.claims)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            data.write_parquet(path)
    boxes = leaves.from_frame(data, shoal.load_policy(point.policy).schema)
    noisy = point.model in PRIVATE
    return Tree(point, boxes, {} if noisy else achieved(study, data), claims)


def _key(study: Study, point: Point) -> str:
    """Name a release by all that decides it; private ones by their run as well."""
    text = json.dumps([study.name, study.frame.height, point.percent, point.policy], default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{point.policy['protect']['method']}-{digest}-{point.run}"


def achieved(study: Study, data: pl.DataFrame) -> dict[str, float]:
    """What a tree with exact counts achieves, by the names of `FIGURES`."""
    column = study.confidential
    wanted = {
        "k-anonymity": 2,
        "l-diversity": {"l": 1, "column": column, "kind": "frequency"},
        "t-closeness": [
            {"t": 0, "column": column, "distance": distance} for distance in ("equal", "ordered")
        ],
    }
    policy = study.policy({"method": "mondrian", "k": 2}, wanted)
    found = shoal.check(data, policy)
    return dict(zip(FIGURES, (float(check.achieved) for check in found), strict=True))


# The page.


def main() -> None:
    """Make the releases of all figures, and write the table and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", action="store_true", help="use the shipped sample")
    parser.add_argument("--figures", type=int, nargs="+", default=[1, 2, 3, 4, 6], help="which")
    parser.add_argument("--runs", type=int, default=RUNS, help="of a private tree")
    parser.add_argument("--cache", type=Path, help="folder for the trees as Parquet files")
    parser.add_argument("--out", type=Path, help="folder for the page and the table")
    asked = parser.parse_args()
    use_sample = asked.sample or not (DATA / "adult.csv").is_file()
    out = asked.out or (PAGES / "sample" if use_sample else PAGES)
    out.mkdir(parents=True, exist_ok=True)
    study = sample(2_000) if use_sample else adult()
    trees = [
        tree
        for number in asked.figures
        for tree in made(study, figure(study, number, runs=asked.runs), cache=asked.cache)
    ]
    header = ["figure", "model", "parameter", "percent", "run", "boxes", *FIGURES]
    common.write_rows(out / f"{TABLE}-releases.csv", header, [_cells(tree) for tree in trees])
    (out / f"{TABLE}.md").write_text(page(study, trees), encoding="utf-8")


def _cells(tree: Tree) -> list[Any]:
    point = tree.point
    figures = [tree.achieved.get(name, "") for name in FIGURES]
    named = [point.figure, point.model, point.parameter, point.percent, point.run]
    return [*named, len(tree.boxes), *figures]


def page(study: Study, trees: Sequence[Tree]) -> str:
    """Describe the releases."""
    note = f", on {study.name}" if study.name == SAMPLE else ""
    quasi = [name for name in study.columns if name != study.confidential]
    rows = [_row(tree) for tree in trees if tree.point.run == 0]
    absent = [tree for tree, method in PRIVATE.items() if method not in REGISTRY]
    lacking = f"\nNot made, since this version lacks the methods: {', '.join(absent)}.\n"
    table = common.grid_table(
        ["figure", "model", "parameter", "share of rows", "boxes", *FIGURES], rows
    )
    return f"""\
# Trees under four models{note}

Cormode, Procopiuc, Shen, Srivastava and Yu, *Empirical privacy and empirical utility*, ICDE
Workshops 2013, pp. 77-82, compare models by what a tree of boxes with counts tells about groups
and about persons. This page lists the trees; queries and attacks on them are not here yet.

The table is {study.name}: {study.frame.height:,} rows, {study.confidential} confidential, and as
quasi-identifiers {", ".join(quasi)}.
`papers/{TABLE}.py` makes each release through `shoal.protect` with a policy of its own,
`output = "tree"`.

## What the paper leaves open

{CHOICES}
## The rule for t-closeness

"When building the tree, nodes having EMD (compared to root) larger than the threshold t will not
be split further." So a node beyond t may come to be, and it stays.
{_beyond(trees)}It is the parameter
`halt_beyond` of [`mondrian`](../methods.md#mondrian), and no claim comes with it; t-closeness that
a policy requires is another thing, and kept by every box.

## The releases

k is the smallest number of records in a box, l the reciprocal of the largest share of one value in
a box, t the largest distance between a box and the table. Where counts are noisy the true ones
are not known, and nothing is said. [The same as a table]({TABLE}-releases.csv), with every run.
{lacking if absent else ""}
{table}
"""


def _row(tree: Tree) -> list[str]:
    point = tree.point
    figures = [_figure(tree.achieved[name]) if tree.achieved else "" for name in FIGURES]
    named = [str(point.figure), point.model, point.parameter, f"{point.percent}%"]
    return [*named, f"{len(tree.boxes):,}", *figures]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:.3f}"


def _beyond(trees: Sequence[Tree]) -> str:
    """Say how far boxes are from the table where nodes were halted beyond 0.35."""
    reached = {
        distance: tree.achieved[f"t ({distance})"]
        for distance, model in HALTED.items()
        for tree in trees
        if tree.point.model == model and tree.point.parameter == "t = 0.35"
    }
    if not reached:
        return ""
    said = " and ".join(f"{value:.2f} by `{distance}`" for distance, value in reached.items())
    return f"Here, at t = 0.35, boxes reach {said}. "


if __name__ == "__main__":
    main()

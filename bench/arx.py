"""`full-domain` against ARX on its bundled Adult: the loss of both optima, and CPU time.

    SHOAL_ARX=FOLDER python bench/arx.py

prints Markdown tables for RESULTS.md. FOLDER holds a checkout of ARX: `data` with Adult and its
hierarchies, `classes` and `lib` with what its sources compile to and the jars they need. Both
losses are recomputed here, from the rows that each has released. ARX is called by `Arx.java`.
"""

import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Distance, Diversity, LDiversity, TCloseness
from shoal.metrics.generalisation import discernibility
from shoal.partition import Generalisation, Loss, Requirement, full_domain, warmup

ARX = Path(os.environ.get("SHOAL_ARX", ""))
HERE = Path(__file__).parent
CONFIDENTIAL = "occupation"
NINE = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass",
        "occupation", "salary-class")  # fmt: skip
MODELS = {
    "none": None,
    "l3": LDiversity(Fraction(3), Diversity.DISTINCT, (CONFIDENTIAL,), ("the eight",)),
    "t0.2": TCloseness(Fraction(1, 5), Distance.EQUAL, (CONFIDENTIAL,), ("the eight",)),
}
Ints = NDArray[np.int64]


class Case:
    """A setting, and Adult with its hierarchies as it needs them."""

    def __init__(self, k: int, limit: str, loss: Loss, model: str) -> None:
        self.k, self.limit, self.loss, self.model = k, limit, loss, model
        self.columns = NINE if model == "none" else tuple(c for c in NINE if c != CONFIDENTIAL)
        self.rows = pl.read_csv(ARX / "data/adult.csv", separator=";", infer_schema=False)
        self.files = [
            pl.read_csv(ARX / f"data/adult_hierarchy_{c}.csv", separator=";", has_header=False,
                        infer_schema=False)
            for c in self.columns
        ]  # fmt: skip

    def __str__(self) -> str:
        columns = ",".join(self.columns)
        return f"{columns}:{CONFIDENTIAL}:{self.k}:{self.limit}:{self.loss}:{self.model}"

    @property
    def requirement(self) -> Requirement | None:
        """The model, and the values that it is about."""
        model = MODELS[self.model]
        return None if model is None else Requirement(model, numbered(self.rows[CONFIDENTIAL]))

    def encoded(self) -> tuple[Ints, list[Ints]]:
        """The leaf of each cell, and the labels of each level."""
        codes, trees = [], []
        for name, file in zip(self.columns, self.files, strict=True):
            leaves = pl.Enum(file.to_series(0))
            codes.append(self.rows[name].cast(leaves).to_physical().cast(pl.Int64).to_numpy())
            trees.append(np.array([numbered(level) for level in file]))
        return np.column_stack(codes), trees

    def search(self, judge: Callable[[Ints], Ints] | None = None) -> Callable[[], Generalisation]:
        """A call that searches the encoded columns, as a call of ARX does."""
        codes, trees = self.encoded()
        require = [] if self.requirement is None else [self.requirement]
        limit = int(Fraction(self.limit) * len(codes))

        def run() -> Generalisation:
            found = full_domain(
                codes, trees, self.k, loss=self.loss, limit=limit, require=require, judge=judge
            )
            assert found is not None
            return found

        return run

    def loss_of(self, levels: Sequence[int], labels: Ints) -> float:
        """The loss of released rows, counted from their labels; -1 is a suppressed row."""
        codes, trees = self.encoded()
        gone = labels < 0
        if self.loss is Loss.DISCERNIBILITY:
            return discernibility(np.where(gone, 0, labels), suppressed=gone) / len(codes) ** 2
        parts = []
        for column, tree, level in zip(codes.T, trees, levels, strict=True):
            held = np.bincount(tree[level])[tree[level]]
            parts.append(np.where(gone, 1.0, (held[column] - 1) / (tree.shape[1] - 1)).mean())
        return float(np.mean(parts))

    def classes(self, released: pl.DataFrame) -> Ints:
        """The class of each row that ARX has released, -1 where it is starred."""
        rows = released.select(self.columns)
        gone = rows.select(pl.all_horizontal(pl.all() == "*")).to_series().to_numpy()
        numbers = rows.select(pl.concat_str(pl.all(), separator="\0").rank("dense")).to_series()
        return np.where(gone, -1, numbers.cast(pl.Int64).to_numpy() - 1)

    def original_closeness(self, labels: Ints) -> Ints:
        """Classes that are too far from the original, which is what ARX compares with."""
        secret = numbered(self.rows[CONFIDENTIAL])
        width = int(secret.max()) + 1
        many = int(labels.max(initial=0)) + 1
        held = np.zeros((many, width))
        np.add.at(held, (labels[labels >= 0], secret[labels >= 0]), 1)
        sizes = held.sum(axis=1)
        shares = held / np.maximum(sizes, 1)[:, None]
        away = np.abs(shares - np.bincount(secret) / len(secret)).sum(axis=1) / 2
        return np.flatnonzero((sizes > 0) & (away > 0.2 + 1e-12))


def numbered(texts: pl.Series) -> Ints:
    """Number values in the order of their first appearance."""
    names = pl.Enum(texts.unique(maintain_order=True))
    return texts.cast(names).to_physical().cast(pl.Int64).to_numpy()


def main() -> None:
    """Compare case by case; each program is warm, and each figure a median of five."""
    warmup()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {platform.system()}\n")
    print("| loss | limit | model | k | loss of both | node | ours, CPU ms | ARX, CPU ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = [Case(k, limit, loss, model)
             for loss in (Loss.GRANULARITY, Loss.DISCERNIBILITY) for limit in ("0", "0.02")
             for model in MODELS for k in (2, 5, 10, 50)]  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", f"{ARX}/classes:{ARX}/lib/*",
                   str(HERE / "Arx.java"), f"{ARX}/data", out, *map(str, cases)]  # fmt: skip
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        released = [
            pl.read_csv(f"{out}/{number}.csv", separator=";", infer_schema=False)
            for number in range(len(cases))
        ]
    for case, line, rows in zip(cases, done.stdout.strip().splitlines(), released, strict=True):
        theirs, _, seconds = line.split(";")
        run = case.search()
        found, ours = run(), timed(run)
        moving = case.model == "t0.2" and case.limit != "0"
        same = case.search(case.original_closeness)() if moving else found
        levels = tuple(map(int, theirs.split()))
        losses = (
            case.loss_of(same.levels, same.labels),
            case.loss_of(levels, case.classes(rows)),
        )
        equal = abs(losses[0] - losses[1]) <= 1e-9
        told = f"{losses[0]:.9g}" if equal else f"{losses[0]:.12g}, ARX {losses[1]:.12g}"
        told += f"; to the released rows {found.loss:.9g}" if moving else ""
        node = "same" if levels == same.levels else "tie" if equal else "other"
        print(
            f"| {case.loss} | {case.limit} | {case.model} | {case.k} | {told} | {node} | "
            f"{1e3 * ours:.3g} | {1e3 * float(seconds):.3g} | {ours / float(seconds):.2f} |",
            flush=True,
        )


def timed(run: Callable[[], object]) -> float:
    """The median CPU time of five runs."""
    spent = []
    for _ in range(5):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return median(spent)


if __name__ == "__main__":
    main()

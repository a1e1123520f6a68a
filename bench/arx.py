"""`full-domain` against ARX on its bundled Adult: the loss of both optima, and CPU time.

    SHOAL_ARX=FOLDER python bench/arx.py [LIMIT ...]

prints a Markdown table for RESULTS.md; suppression limits are 0 and 0.02 if none is given. FOLDER
holds a checkout of ARX: `data` with Adult and its hierarchies, `classes` and `lib` with what its
sources compile to and the jars they need. Both losses are recomputed here, from the rows that each
has released. ARX is called by `Arx.java`.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median
from subprocess import PIPE

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Distance, Diversity, LDiversity, TCloseness
from shoal.metrics.generalisation import discernibility
from shoal.partition import Generalisation, Loss, Requirement, full_domain

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


class Peer:
    """ARX, running, and warm: it has called every case before any is timed."""

    def __init__(self, out: str, cases: Sequence[Case]) -> None:
        self.out = out
        command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", f"{ARX}/classes:{ARX}/lib/*",
                   str(HERE / "Arx.java"), f"{ARX}/data", out]  # fmt: skip
        self.java = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        for case in cases:
            self.ask(str(case))

    def ask(self, line: str) -> str:
        """The line that it answers."""
        assert self.java.stdin is not None
        assert self.java.stdout is not None
        self.java.stdin.write(f"{line}\n")
        self.java.stdin.flush()
        return self.java.stdout.readline()

    def optimum(self, case: Case) -> tuple[tuple[int, ...], Ints]:
        """The levels that it chooses, and the class of each row that it releases."""
        levels = tuple(map(int, self.ask(str(case)).split()))
        rows = pl.read_csv(f"{self.out}/released.csv", separator=";", infer_schema=False)
        return levels, case.classes(rows)


def main() -> None:
    """Compare case by case: both programs warm, in turns, each figure a median of five."""
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {platform.system()}\n")
    print("| loss | limit | model | k | loss of both | node | ours, CPU ms | ARX, CPU ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = [Case(k, limit, loss, model)
             for loss in (Loss.GRANULARITY, Loss.DISCERNIBILITY)
             for limit in sys.argv[1:] or ("0", "0.02")
             for model in MODELS for k in (2, 5, 10, 50)]  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        peer = Peer(out, cases)
        for case in cases:
            compare(case, peer)


def compare(case: Case, peer: Peer) -> None:
    """Print the row of a case."""
    levels, classes = peer.optimum(case)
    run = case.search()
    found = run()
    ours, theirs = [], []
    for _ in range(5):
        begin = time.process_time()
        run()
        ours.append(1e3 * (time.process_time() - begin))
        theirs.append(1e3 * float(peer.ask("")))
    moving = case.model == "t0.2" and case.limit != "0"
    same = case.search(case.original_closeness)() if moving else found
    losses = (case.loss_of(same.levels, same.labels), case.loss_of(levels, classes))
    equal = abs(losses[0] - losses[1]) <= 1e-9
    told = f"{losses[0]:.9g}" if equal else f"{losses[0]:.12g}, ARX {losses[1]:.12g}"
    told += f"; to the released rows {found.loss:.9g}" if moving else ""
    node = "same" if levels == same.levels else "tie" if equal else "other"
    print(
        f"| {case.loss} | {case.limit} | {case.model} | {case.k} | {told} | {node} | "
        f"{median(ours):.3g} | {median(theirs):.3g} | {median(ours) / median(theirs):.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

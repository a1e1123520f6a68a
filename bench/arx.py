"""`full-domain` against ARX on its bundled Adult: the loss of both optima, and CPU time.

    SHOAL_ARX=FOLDER python bench/arx.py

prints Markdown tables for RESULTS.md. FOLDER holds a checkout of ARX: `data` with Adult and its
hierarchies, `classes` and `lib` with what its sources compile to and the jars they need. Both
losses are recomputed here, from the rows that each has released. ARX is called by `Arx.java`.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
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
SECRET = "occupation"
NINE = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass",
        "occupation", "salary-class")  # fmt: skip
MODELS = {
    "none": None,
    "l3": LDiversity(Fraction(3), Diversity.DISTINCT, (SECRET,), ("the eight",)),
    "t0.2": TCloseness(Fraction(1, 5), Distance.EQUAL, (SECRET,), ("the eight",)),
}
Ints = NDArray[np.int64]


class Case:
    """A setting, and Adult with its hierarchies as it needs them."""

    def __init__(self, k: int, limit: str, loss: Loss, model: str) -> None:
        self.k, self.limit, self.loss, self.model = k, limit, loss, model
        self.columns = NINE if model == "none" else tuple(c for c in NINE if c != SECRET)
        self.rows = pl.read_csv(ARX / "data/adult.csv", separator=";", infer_schema=False)
        self.files = [
            pl.read_csv(ARX / f"data/adult_hierarchy_{c}.csv", separator=";", has_header=False,
                        infer_schema=False)
            for c in self.columns
        ]  # fmt: skip

    def __str__(self) -> str:
        columns = ",".join(self.columns)
        return f"{columns}:{SECRET}:{self.k}:{self.limit}:{self.loss}:{self.model}"

    @property
    def requirement(self) -> Requirement | None:
        model = MODELS[self.model]
        return None if model is None else Requirement(model, numbered(self.rows[SECRET]))

    def encoded(self) -> tuple[Ints, list[Ints]]:
        """The leaf of each cell, and the labels of each level."""
        codes, trees = [], []
        for name, file in zip(self.columns, self.files, strict=True):
            leaves = pl.Enum(file.to_series(0))
            codes.append(self.rows[name].cast(leaves).to_physical().cast(pl.Int64).to_numpy())
            trees.append(np.array([numbered(level) for level in file]))
        return np.column_stack(codes), trees

    def search(self) -> Generalisation | None:
        """Encode the columns, and search the lattice, as one call of ARX does."""
        codes, trees = self.encoded()
        return full_domain(
            codes,
            trees,
            self.k,
            loss=self.loss,
            limit=int(Fraction(self.limit) * len(codes)),
            require=[] if self.requirement is None else [self.requirement],
        )


def numbered(texts: pl.Series) -> Ints:
    """Number values in the order of their first appearance."""
    names = pl.Enum(texts.unique(maintain_order=True))
    return texts.cast(names).to_physical().cast(pl.Int64).to_numpy()


if __name__ == "__main__":
    import cProfile, pstats
    warmup()
    for model in MODELS:
      for loss in (Loss.GRANULARITY, Loss.DISCERNIBILITY):
        for limit in ("0", "0.02"):
            for k in (2, 5, 10, 50):
                case = Case(k, limit, loss, model)
                case.search()
                t = time.process_time(); codes, trees = case.encoded(); enc = time.process_time() - t
                t = time.process_time(); f = case.search(); all = time.process_time() - t
                print(k, limit, loss, model, f.levels, f.looked_at, f.nodes, round(enc, 4), round(all, 4), flush=True)

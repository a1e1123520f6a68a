"""Policies that every method which runs on Spark is tried with, and their table."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import polars as pl

from shoal.methods import REGISTRY

REGIONS = ("north", "south", "öst", "west")
LEVELS = ("low", "middle", "high")

EXACT = {
    "individual-ranking": {"k": 3},
    "optimal-univariate": {"k": 3},
    "insensitive": {"k": 3, "order": "hilbert"},
    "full-domain": {"k": 3, "intervals": {"âge.x": [4], "born": ["month", "year"]}},
    "laplace": {"epsilon": 1},
    "ir-laplace": {"epsilon": 1, "k": 3, "release_form": "column-shuffled"},
    "insensitive-laplace": {"epsilon": 1, "k": 3, "release_form": "canonical"},
    "public-laplace": {"epsilon": 1, "k": 3},
    "dp-quadtree": {"epsilon": 1},
    "dp-kdtree": {"epsilon": 1, "output": "tree"},
    "privtree": {"epsilon": 1, "fill": "centroid"},
    "maxent": {"epsilon": 1},
    "auto": {"epsilon": 1},
}
"""Methods whose result on Spark is the one of one machine, with parameters for a try."""


def people(rows, seed=0):
    """A table with ties, missing cells, dates, decimals and names that are not plain."""
    rng = np.random.default_rng(seed)
    gone = rng.random(rows) < 0.15
    born = [date(1950, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 9000, rows)]
    wage = [Decimal(int(w)) / 4 for w in rng.integers(40, 90, rows)]
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "âge.x": rng.integers(18, 30, rows),
            "born": born,
            "wage €": pl.Series(wage, dtype=pl.Decimal(12, 2)),
            "region": rng.choice(REGIONS, rows),
            "level": rng.choice(LEVELS, rows),
            "score": pl.Series(np.where(gone, np.nan, rng.normal(50, 9, rows).round(1)),
                               nan_to_null=True),
        }
    )  # fmt: skip


def policy(method, **changes):
    """A policy for `people` that the method can work with."""
    quasi, number = {"role": "quasi-identifier"}, {"kind": "numeric"}
    columns = {
        "id": "identifier",
        "âge.x": {**quasi, **number, "bounds": [0, 110], "step": 1},
        "born": {**quasi, "kind": "date", "bounds": [date(1940, 1, 1), date(2000, 1, 1)]},
        "wage €": {**quasi, **number, "bounds": [0, 40]},
        "region": {**quasi, "kind": "nominal", "categories": list(REGIONS)},
        "level": {**quasi, "kind": "ordinal", "categories": list(LEVELS)},
        "score": {"role": "confidential", **number, "bounds": [0, 100]},
    }
    if hierarchy := changes.pop("hierarchy", None):
        columns["region"] = {**quasi, "kind": "nominal", "hierarchy": hierarchy}
    if REGISTRY[method].noisy:
        columns["score"]["missing_as"] = 50
    if method == "public-laplace":
        for name in ("âge.x", "level"):
            columns[name]["public"] = True
    stated = {"method": method, **EXACT.get(method, {}), **changes}
    protect = {key: value for key, value in stated.items() if value is not None}
    if method in {"individual-ranking", "optimal-univariate"}:
        protect["columns"] = [name for name in columns if name != "id"]
    return {"version": 1, "columns": columns, "protect": protect}

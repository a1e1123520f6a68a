"""Pair errors of releases whose domains are discovered, beside the same with public domains.

Each table is released as it is (`shoal.protect(table, epsilon=..., delta=...)`), and by a policy
that states the true categories, bounds and steps as if everybody knew them. The error is the total
variation of two-way marginals, mean over pairs; numbers and dates are compared in eight bins
between the quantiles of the original; a text that was not found is `other`. Name tables, or none
for all:

    python bench/discovery.py adult sample
    python bench/discovery.py score

`score` is NIST's score of pairs of the ACS demographic set (`k_marginal.py`), in which a missing
cell and `other` count as the code N.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import _workloads as workloads
import k_marginal
import numpy as np
import polars as pl

import shoal

SEEDS = 2
EPSILONS = (1.0, 4.0)
DELTA = 1e-9


def places() -> pl.DataFrame:
    """20,000 people of 2,000 places, in four alphabets, with a tail of small ones."""
    rng = np.random.default_rng(11)
    names = [f"{word}{n}" for n in range(500) for word in ("Ort-", "Ville ", "市", "Город ")]
    weights = 1 / np.arange(1, 2001)
    return pl.DataFrame(
        {
            "place": rng.choice(names, 20_000, p=weights / weights.sum()),
            "size": rng.choice(["small", "middle", "large"], 20_000, p=[0.5, 0.3, 0.2]),
            "persons": rng.integers(1, 8, 20_000),
        }
    )


def incomes() -> pl.DataFrame:
    """20,000 incomes with a heavy tail, their tax and an age."""
    rng = np.random.default_rng(12)
    age = rng.integers(18, 90, 20_000)
    income = np.round(np.exp(9.5 + 0.01 * age + rng.normal(0, 1.1, 20_000)), 2)
    return pl.DataFrame({"age": age, "income": income, "tax": np.round(income * 0.2, 2)})


def stays() -> pl.DataFrame:
    """20,000 stays: birth, admission, department."""
    rng = np.random.default_rng(13)
    birth = np.datetime64("1930-01-01") + rng.integers(0, 32_000, 20_000).astype("timedelta64[D]")
    came = np.datetime64("2022-01-01") + rng.integers(0, 700, 20_000).astype("timedelta64[D]")
    return pl.DataFrame(
        {
            "birth": pl.Series(birth).cast(pl.Date),
            "came": pl.Series(came).cast(pl.Date),
            "department": rng.choice(["A", "B", "C", "D"], 20_000, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )


def reference(name: str, columns: list[str] | None = None) -> Callable[[], pl.DataFrame]:
    """A reference table with its own types."""

    def load() -> pl.DataFrame:
        table = pl.read_csv(workloads.DATA / name, null_values=["", "N", "?"])
        return table.select(columns or table.columns)

    return load


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "acs": reference("acs.csv"),
    "adult": reference("adult.csv"),
    "sample": lambda: shoal.sample.load().drop("name", "person", "household", "weight"),
    "places": places,
    "incomes": incomes,
    "stays": stays,
}


def public_policy(table: pl.DataFrame, epsilon: float) -> dict[str, Any]:
    """A policy that states what the table holds, as if it were public."""
    columns: dict[str, Any] = {}
    for series in table:
        stated: dict[str, Any] = {"role": "quasi-identifier"}
        if series.dtype.is_numeric():
            whole = series.dtype.is_integer()
            low, high = float(series.min()), float(series.max())  # type: ignore[arg-type]
            stated |= {"kind": "numeric", "bounds": [low, max(high, low + 1)]}
            stated |= {"step": 1 if whole else 0.01}
            if low >= 0 and float(series.median()) < high / 8:  # type: ignore[arg-type]
                stated["transform"] = "log"
        elif series.dtype == pl.Date:
            stated |= {"kind": "date", "bounds": [series.min(), series.max()]}
        else:
            stated |= {"kind": "nominal", "categories": sorted(series.drop_nulls().unique())}
        columns[series.name] = stated
    return {
        "version": 1,
        "one_row_per_person": True,
        "columns": columns,
        "protect": {
            "method": "auto",
            "epsilon": epsilon,
            "delta": DELTA,
            "neighbours": "add-remove",
        },
    }


def codes(original: pl.Series, released: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Both columns in common codes."""
    if original.dtype.is_numeric() or original.dtype == pl.Date:
        both = [
            s.to_physical().cast(pl.Float64, strict=False).to_numpy() for s in (original, released)
        ]
        edges = np.unique(np.nanquantile(both[0], np.linspace(0, 1, 9)[1:-1]))
        return tuple(
            np.where(np.isnan(v), edges.size + 1, np.searchsorted(edges, v, side="right"))
            for v in both
        )  # type: ignore[return-value]
    texts = [s.cast(pl.String).fill_null("(missing)").to_list() for s in (original, released)]
    known = {text: at for at, text in enumerate(dict.fromkeys([*texts[0], *texts[1]]))}
    return tuple(np.array([known[text] for text in column]) for column in texts)  # type: ignore[return-value]


def pair_error(original: pl.DataFrame, released: pl.DataFrame) -> float:
    """The mean total variation of two-way marginals."""
    coded = [codes(original[name], released[name]) for name in original.columns]
    errors = []
    for (a, b), (c, d) in combinations(coded, 2):
        size = int(max(c.max(), d.max())) + 1
        before = np.bincount(a * size + c) / a.size
        after = np.bincount(b * size + d) / b.size
        length = max(before.size, after.size)
        before, after = (np.pad(v, (0, length - v.size)) for v in (before, after))
        errors.append(np.abs(before - after).sum() / 2)
    return float(np.mean(errors))


def rows() -> Iterator[tuple[str, float, float, float]]:
    """Measure each table at each epsilon."""
    for name in sys.argv[1:] or [*TABLES]:
        table = TABLES[name]()
        for epsilon in EPSILONS:
            errors: dict[str, list[float]] = {"public": [], "found": []}
            for _ in range(SEEDS):
                stated = shoal.protect(table, public_policy(table, epsilon)).data
                found = shoal.protect(table, epsilon=epsilon, delta=DELTA).data
                errors["public"].append(pair_error(table, stated))
                errors["found"].append(pair_error(table.select(found.columns), found))
            yield name, epsilon, float(np.mean(errors["public"])), float(np.mean(errors["found"]))


def scores() -> None:
    """Print NIST's score of pairs of the ACS demographic set, domain discovered."""
    frame, _, _ = k_marginal.load_acs()
    for _ in range(3):
        made = shoal.protect(frame, epsilon=1, delta=DELTA).data
        made = made.with_columns(
            made["AGEP"].cast(pl.Float64).fill_null(0),
            *(made[name].cast(pl.String).fill_null("N").replace({"other": "N"})
              for name in frame.columns[1:]),
        )  # fmt: skip
        print(f"score {k_marginal.k_marginal(frame, made.select(frame.columns)):.1f}", flush=True)


if __name__ == "__main__" and sys.argv[1:] == ["score"]:
    scores()
elif __name__ == "__main__":
    print("| table | epsilon | public domain | discovered |\n|---|---|---|---|")
    for name, epsilon, public, found in rows():
        print(f"| {name} | {epsilon:g} | {public:.3f} | {found:.3f} |", flush=True)

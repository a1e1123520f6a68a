"""K-marginal score of `auto` with and without public constraints, by promise, runs interleaved.

    python bench/k_marginal.py TABLE [--promise NAME ...] [--rules yes no] [--seeds A B]
        [--sdnist PYTHON]

TABLE is `acs`, the demographic set of NIST's excerpt of the American Community Survey with the
eight rules that all its records keep (files of SHOAL_DATA), or a number: the seed of a generated
population (`_generated.household`). Promises: change-one, add-remove, delta (1e-9, add-remove).

The score is 500 (2 - d), d being the mean over pairs of columns of the L1 distance of their shares,
with ages in 20 bins of equal frequency: 1000 is perfect. Noise is seeded: nothing here may be
published. With `--sdnist` the score is that of the `sdnist` package (`sdnist_score.py`), in whose
environment PYTHON is. Nothing is tuned on `acs`: whoever runs it counts the runs in RESULTS.md.
"""

import argparse
import subprocess
import tempfile
import time
from collections import defaultdict
from itertools import combinations, product
from pathlib import Path
from typing import Any

import _workloads as workloads
import numpy as np
import polars as pl
from _generated import HOUSEHOLD, household

import shoal
from shoal.core.constraint_language import parse
from shoal.core.constraints import Constraint
from shoal.hazmat.fakes import SeededNoise

PROMISES: dict[str, dict[str, Any]] = {
    "change-one": {"neighbours": "change-one"},
    "add-remove": {"neighbours": "add-remove"},
    "delta": {"neighbours": "add-remove", "delta": 1e-9},
}
ACS = {
    "DEYE": ("1", "2"),
    "DVET": ("N", *"0123456"),
    "EDU": ("N", *map(str, range(1, 13))),
    "HOUSING_TYPE": ("1", "2", "3"),
    "MSP": ("N", *"123456"),
    "OWN_RENT": ("0", "1", "2"),
    "PINCP_DECILE": ("N", *"0123456789"),
    "RAC1P": tuple("123456789"),
    "SEX": ("1", "2"),
}
ACS_RULES = (
    'AGEP < 15 implies MSP = "N"',
    'AGEP < 15 implies PINCP_DECILE = "N"',
    'AGEP < 17 implies DVET = "N"',
    'AGEP < 3 implies EDU = "N"',
    'AGEP >= 15 implies MSP != "N" and PINCP_DECILE != "N"',
    'AGEP >= 3 implies EDU != "N"',
    'AGEP < 15 implies not EDU in {"9", "10", "11", "12"}',
    'HOUSING_TYPE = "1" implies OWN_RENT != "0"',
    'HOUSING_TYPE != "1" implies OWN_RENT = "0"',
)
ORDERED = {"EDU", "PINCP_DECILE", "school", "income"}


def main() -> None:
    """Run what was asked for, and print each run, then means with standard errors."""
    asked = _asked()
    frame, columns, rules = load_acs() if asked.table == "acs" else _household(int(asked.table))
    scores = defaultdict(list)
    for seed, promise, ruled in product(range(*asked.seeds), asked.promise, asked.rules):
        protect = {"method": "auto", "epsilon": asked.epsilon, **PROMISES[promise]}
        policy: dict[str, Any] = {"version": 1, "columns": columns, "protect": protect}
        if ruled == "yes":
            policy["constraints"] = {"rules": list(rules)}
        begin = time.process_time()
        rows = shoal.protect(frame, policy, noise=SeededNoise(seed)).data
        spent = time.process_time() - begin
        found = by_sdnist(asked.sdnist, frame, rows) if asked.sdnist else k_marginal(frame, rows)
        scores[promise, ruled].append(found)
        bad = _broken(rows, [parse(text, list(columns)) for text in rules])
        print(f"{promise:10} rules {ruled:3} seed {seed} {found:.1f} broken {bad} {spent:.1f} s")
    for (promise, ruled), found in scores.items():
        error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
        mean = f"{np.mean(found):.2f} +- {error:.2f} ({len(found)} runs)"
        print(f"{promise:10} rules {ruled:3} {mean}")


def k_marginal(original: pl.DataFrame, released: pl.DataFrame) -> float:
    """NIST's score of pairs; the first column is an age."""
    age, *others = original.columns
    cuts = np.unique(np.quantile(original[age].to_numpy(), np.arange(1, 20) / 20))
    names = {name: pl.Series(sorted(set(original[name]) | set(released[name]))) for name in others}

    def coded(frame: pl.DataFrame) -> list[Any]:
        ages = np.searchsorted(cuts, frame[age].cast(pl.Float64).to_numpy(), side="right")
        return [ages, *(np.searchsorted(names[j], frame[j].cast(pl.String)) for j in others)]

    both = [coded(frame) for frame in (original, released)]
    distances = []
    for a, b in combinations(range(len(original.columns)), 2):
        one, two = (np.bincount(c[a] * 64 + c[b], minlength=4096) / len(c[a]) for c in both)
        distances.append(np.abs(one - two).sum())
    return float(500 * (2 - np.mean(distances)))


def by_sdnist(interpreter: str, original: pl.DataFrame, released: pl.DataFrame) -> float:
    """The same by NIST's package."""
    with tempfile.TemporaryDirectory() as home:
        paths = [str(Path(home) / name) for name in ("target.csv", "released.csv")]
        for path, frame in zip(paths, (original, released), strict=True):
            frame.with_columns(pl.first().cast(pl.Int64)).write_csv(path)
        program = str(Path(__file__).with_name("sdnist_score.py"))
        command = [interpreter, "-W", "ignore", program, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def _broken(rows: pl.DataFrame, rules: list[Constraint]) -> int:
    """Rows that break a rule; a row counts once for each."""
    cells = {
        name: rows[name].to_numpy().astype(np.float64)
        if rows[name].dtype.is_numeric()
        else rows[name].cast(pl.String).to_numpy().astype(object)
        for name in rows.columns
    }
    return sum(int((~rule.holds(cells)).sum()) for rule in rules)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--promise", nargs="+", default=list(PROMISES), choices=PROMISES)
    parser.add_argument("--rules", nargs="+", default=["no", "yes"], choices=["no", "yes"])
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 6))
    parser.add_argument("--epsilon", type=float, default=1)
    parser.add_argument("--sdnist", help="an interpreter that has the sdnist package")
    return parser.parse_args()


def load_acs() -> tuple[pl.DataFrame, dict[str, Any], tuple[str, ...]]:
    """Load the demographic set, its columns and its rules."""
    frame = pl.read_csv(workloads.DATA / "acs.csv", infer_schema=False)
    frame = frame.select(pl.col("AGEP").cast(pl.Int64), *ACS)
    return frame, _columns("AGEP", ACS), ACS_RULES


def _household(seed: int) -> tuple[pl.DataFrame, dict[str, Any], tuple[str, ...]]:
    (made, _), rules = household(seed, 27_000)
    names, sizes = HOUSEHOLD
    texts = {name: tuple(map(str, range(size))) for name, size in zip(names, sizes, strict=True)}
    frame = pl.DataFrame(made, schema=names).with_columns(pl.col(names[1:]).cast(pl.String))
    return frame, _columns(names[0], {name: texts[name] for name in names[1:]}), tuple(rules)


def _columns(age: str, categories: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """What a policy says of the columns, in which no cell can be missing."""
    full = {"role": "confidential", "keep_missing": False}
    columns: dict[str, Any] = {age: {**full, "kind": "numeric", "bounds": [0, 99], "step": 1}}
    for name, texts in categories.items():
        kind = "ordinal" if name in ORDERED else "nominal"
        columns[name] = {**full, "kind": kind, "categories": list(texts)}
    return columns


if __name__ == "__main__":
    main()

"""`local-suppression` against sdcMicro's localSuppression on its own tables: cells blanked.

    R_LIBS=FOLDER python bench/sdcmicro.py

prints a Markdown table for RESULTS.md; FOLDER is the R library that has sdcMicro. It is called by
`sdcmicro.R`. A missing cell matches anything, as sdcMicro counts; both results are counted here.
sdcMicro takes an order of the columns, ours a cost of a cell: the column that is to be blanked last
of d costs d, the one that is to be blanked first 1.
"""

import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import MissingMeaning
from shoal.partition import local_suppression

HERE = Path(__file__).parent
TABLES = {
    "francdat": ("Key1,Key2,Key3,Key4", "Key2,Key3,Key4", "Key1,Key2,Key4"),
    "testdata": (
        "urbrur,roof,walls,water,electcon,relat,sex",
        "urbrur,roof,walls,sex",
        "water,electcon,relat,sex,hhcivil",
        "urbrur,roof,sex,age",
    ),
    "testdata2": ("urbrur,roof,walls,water,electcon,relat,sex", "urbrur,sex,age,hhcivil"),
}
Ints = NDArray[np.int64]


def main() -> None:
    """Compare case by case."""
    if shutil.which("Rscript") is None:
        sys.exit("Rscript is not on the path; sdcMicro is left out.")
    cases = [
        (table, k, importance, keys)
        for table, sets in TABLES.items()
        for keys in sets
        for importance in ("equal", "default", "-".join(map(str, _rising(keys))))
        for k in (2, 3, 5)
    ]
    with tempfile.TemporaryDirectory() as out:
        asked = [":".join(map(str, case)) for case in cases]
        command = ["Rscript", str(HERE / "sdcmicro.R"), out, *asked]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        version, *lines = done.stdout.strip().splitlines()
        read = [
            [pl.read_csv(f"{out}/{i}-{side}.csv", infer_schema=False, null_values=["NA"])
             for side in ("before", "after")]
            for i in range(len(cases))
        ]  # fmt: skip
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {platform.system()}, sdcMicro "
          f"{version.strip()}\n")  # fmt: skip
    print("| table | key variables | importance | k | cells, ours | sdcMicro | cost, ours | "
          "sdcMicro | CPU s, ours | sdcMicro |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    worse = 0
    for (table, k, importance, keys), line, (before, after) in zip(cases, lines, read, strict=True):
        seconds, used = line.split(";")
        order = np.array(used.split(), float)
        weights = np.ones(len(order)) if importance == "equal" else len(order) + 1 - order
        codes = _codes(before)
        begin = time.process_time()
        found = local_suppression(
            codes, k, weights=weights.tolist(), missing=MissingMeaning.MATCHES
        )
        spent = time.process_time() - begin
        theirs = after.select(pl.all().is_null()).to_numpy() & (codes >= 0)
        made = [np.where(blank, -1, codes) for blank in (found.blanked, theirs)]
        assert _least(made[0]) >= k
        kept = "" if _least(made[1]) >= k else " (k is missed)"
        ours, other = int(found.blanked.sum()), int(theirs.sum())
        costs = [float((blank * weights).sum()) for blank in (found.blanked, theirs)]
        worse += costs[0] > costs[1]
        print(
            f"| {table} | {keys.replace(',', ', ')} | {importance} | {k} | {ours} | {other}{kept} "
            f"| {costs[0]:g} | {costs[1]:g} | {spent:.2f} | {float(seconds):.2f} |",
            flush=True,
        )
    print(f"\nOur cost is higher in {worse} of {len(cases)} cases.")


def _rising(keys: str) -> range:
    return range(1, keys.count(",") + 2)


def _codes(frame: pl.DataFrame) -> Ints:
    """Whole numbers for the values of each column, -1 where missing."""
    ranks = frame.select(pl.all().rank("dense").cast(pl.Int64) - 1)
    return ranks.fill_null(-1).to_numpy()


def _least(codes: Ints) -> int:
    """The fewest records that agree with one where both are present."""
    rows, back = np.unique(codes, axis=0, return_inverse=True)
    times = np.bincount(back.ravel())
    return min(
        int(times[((rows == row) | (rows < 0) | (row < 0)).all(axis=1)].sum()) for row in rows
    )


if __name__ == "__main__":
    main()

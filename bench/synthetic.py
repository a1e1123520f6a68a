"""A million records through the methods that draw rows, from Parquet to release, CPU by stage.

    python bench/synthetic.py [ROWS] [METHOD ...]

Eight columns: two whole numbers, an amount on a log scale, a day, an ordinal and three nominals.
Peak memory is that of the whole process, after the last release.
"""

import platform
import resource
import sys
import tempfile
import time
from contextlib import redirect_stdout
from datetime import date
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
from _stages import Stages

from shoal import load_policy
from shoal.pipeline import protect_file
from shoal.pipeline.options import OutputOptions

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
METHODS = sys.argv[2:] or ["auto", "maxent", "copula", "privtree"]
REGIONS, JOBS = [f"r{i}" for i in range(20)], [f"j{i}" for i in range(10)]
GRADES = [f"g{i}" for i in range(16)]
KEY = {"role": "quasi-identifier"}
COLUMNS = {
    "age": KEY | {"kind": "numeric", "bounds": [0, 110], "step": 1},
    "hours": KEY | {"kind": "numeric", "bounds": [0, 100], "step": 1},
    "income": KEY | {"kind": "numeric", "bounds": [0, 500_000], "transform": "log"},
    "day": KEY | {"kind": "date", "bounds": [date(2020, 1, 1), date(2024, 12, 31)]},
    "grade": KEY | {"kind": "ordinal", "categories": GRADES},
    "sex": KEY | {"kind": "nominal", "categories": ["f", "m"]},
    "region": KEY | {"kind": "nominal", "categories": REGIONS},
    "job": {"role": "confidential", "kind": "nominal", "categories": JOBS},
}


def people(rows: int) -> pl.DataFrame:
    """A table of people with skew and dependence."""
    rng = np.random.default_rng(1)
    age = np.minimum(rng.gamma(6, 7, rows), 110).astype(int)
    region = rng.zipf(1.5, rows) % 20
    grade = np.clip(rng.normal(8 + (age - 40) / 20, 3, rows), 0, 15).astype(int)
    return pl.DataFrame(
        {
            "age": age,
            "hours": rng.binomial(100, 0.38, rows),
            "income": np.minimum(rng.lognormal(9.5 + age / 100 + grade / 20, 0.8, rows), 500_000),
            "day": pl.Series(rng.integers(18_262, 20_088, rows)).cast(pl.Date),
            "grade": np.array(GRADES)[grade],
            "sex": rng.choice(["f", "m"], rows),
            "region": np.array(REGIONS)[region],
            "job": np.array(JOBS)[(region + rng.zipf(2, rows)) % 10],
        }
    )


def release(method: str, data: Path, out: Path) -> None:
    """One release, and where its time went."""
    policy = load_policy(
        {"version": 1, "columns": COLUMNS, "protect": {"method": method, "epsilon": 1}}
    )
    stages, start = Stages(), time.process_time()
    done = protect_file.protect(
        data, policy, out, output=OutputOptions(force=True), progress=stages
    )
    stages("end", 0, 1)
    total = time.process_time() - start
    answers = done.release.extras["measurements"].height
    rows = done.release.data.height
    print(f"{method}, {rows:,} x {len(COLUMNS)}, epsilon 1: {total:.1f} CPU-s, {answers:,} answers")
    for stage, seconds in stages.spent.items():
        print(f"  {stage:<20} {seconds:.2f} CPU-s")


if __name__ == "__main__":
    print(platform.platform(), platform.python_version(), "\n")
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "people.parquet"
        people(1000).write_parquet(small)
        people(ROWS).write_parquet(large)
        for name in METHODS:
            with redirect_stdout(StringIO()):  # compile first
                release(name, small, Path(folder) / "warm")
            release(name, large, Path(folder) / "out")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")

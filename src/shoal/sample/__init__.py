"""An invented table of people for trying things out, the same on every machine.

`load()` reads the 10,000 rows that come with the package, `people(n, seed)` draws as many
as you like, and `folder()` says where the policy and the hierarchies lie.
"""

import csv
from pathlib import Path
from typing import Final

import polars as pl

from shoal.sample.generator import people
from shoal.sample.world import hierarchies

__all__ = ["folder", "load", "people", "regenerate"]

ROWS: Final = 10_000
SEED: Final = 1927


def folder() -> Path:
    """Return the folder of the shipped files.

    It holds people.parquet, people.toml (a policy for it) and the hierarchies region.csv,
    occupation.csv and condition.csv that the policy names.

    >>> (folder() / "people.toml").is_file()
    True
    """
    return Path(__file__).parent / "files"


def load() -> pl.DataFrame:
    """Read the shipped table, people(10_000, seed=1927).

    >>> load().shape
    (10000, 15)
    """
    return pl.read_parquet(folder() / "people.parquet")


def regenerate(target: Path | None = None) -> None:
    """Write people.parquet and the hierarchies again, after a change of the generator.

    A test compares the shipped files with the generator, so they cannot drift apart
    unnoticed. The policy people.toml is written by hand and left alone. From a clone:

        python -c "from shoal import sample; sample.regenerate()"

    Args:
        target: folder to write to; by default the package's own, `folder()`.
    """
    target = folder() if target is None else target
    people(ROWS, SEED).write_parquet(
        target / "people.parquet", compression="zstd", compression_level=19, statistics=False
    )
    for column, rows in hierarchies().items():
        with (target / f"{column}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

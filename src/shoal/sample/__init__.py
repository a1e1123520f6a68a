"""An invented table of people for trying things out, the same on every machine.

`load()` reads the 10,000 rows that come with the package, `people(n, seed)` draws as many
as you like, and `folder()` says where the policy and the hierarchies lie.
"""

from pathlib import Path
from typing import Final

import polars as pl

from shoal.sample.generator import people

__all__ = ["folder", "load", "people"]

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

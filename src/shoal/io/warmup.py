"""Compile every kernel of this room ahead of the first run."""

import numpy as np
import polars as pl

from shoal.core import Schema
from shoal.core.distinct import LONG
from shoal.io.plain_csv import read_plain
from shoal.io.table import Table


def warmup() -> None:
    """Compile all kernels and leave them in the cache for later processes."""
    read_plain(b"a,b\n1,x\n", start=4, separator=",", names=("a", "b"))
    Table(pl.DataFrame({"a": range(LONG)}), Schema(()), {}).take(np.arange(LONG))

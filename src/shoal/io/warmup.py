"""Compile all kernels of this package ahead of the first run."""

import numpy as np
import polars as pl

from shoal.core import Schema
from shoal.core.distinct import LONG
from shoal.io.table import Table


def warmup() -> None:
    """Compile all kernels and leave them in the cache for later processes."""
    Table(pl.DataFrame({"a": range(LONG)}), Schema(()), {}).take(np.arange(LONG))

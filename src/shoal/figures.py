"""Compare a release with its original: for the steward and the officer alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Kind, Role
from shoal.measures import loss
from shoal.table import Table


def compare(before: Table, after: Table, columns: Sequence[str]) -> dict[str, Any]:
    """Measure what was lost in each protected column, and who was unique before and after.

    Args:
        before: the original rows.
        after: the released rows, in the same order.
        columns: what was protected.
    """
    keys = list(before.schema.with_role(Role.QUASI_IDENTIFIER))
    return {
        "rows": len(before),
        "unique_on_quasi_identifiers": {
            "original": _unique_rows(before.frame, keys),
            "released": _unique_rows(after.frame, keys),
        },
        "columns": [_column_figures(before, after, name) for name in columns],
    }


def _unique_rows(frame: pl.DataFrame, keys: list[str]) -> int | None:
    """Count the rows whose combination of values nobody else has.

    Rows are compared by a hash of 64 bits: among n rows, a wrong count has probability
    below n^2 / 2^65, 3e-8 for a million.
    """
    if not keys:
        return None
    hashes = np.sort(frame.select(keys).hash_rows().to_numpy())
    new = np.concatenate(([True], hashes[1:] != hashes[:-1], [True]))
    return int((new[1:] & new[:-1]).sum())


def _column_figures(before: Table, after: Table, name: str) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "name": name,
        "kind": before.schema[name].kind,
        "missing_original": int(before.missing(name).sum()),
        "missing_released": int(after.missing(name).sum()),
    }
    if before.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        changed = loss.share_changed(before.codes(name), after.codes(name))
        return {**figures, "loss": changed, "measure": "share of rows whose category changed"}
    ratio = loss.sse_over_sst(before.numbers(name), after.numbers(name))
    return {**figures, "loss": ratio, "measure": "SSE / SST"}

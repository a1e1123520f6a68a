"""Compare a release with its original: for the steward and the officer alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Kind, ReleaseForm, Role, Schema, SpatialDecomposition
from shoal.io import validate
from shoal.io.table import Table
from shoal.metrics import information_loss
from shoal.pipeline.checking import class_labels, value_codes
from shoal.privacy_models import Counts


def losses_of(
    before: Table,
    after: Table | SpatialDecomposition,
    columns: Sequence[str],
    *,
    form: ReleaseForm,
    raw: pl.DataFrame,
) -> dict[str, Any]:
    """Measure what was lost in each protected column, and who was unique before and after.

    Args:
        before: the original rows, as the method took them.
        after: the released rows, in the same order where they stand for the original ones.
        columns: what was protected.
        form: of the release; of marginals nothing is said about combinations.
        raw: the original as it came, before any step of the policy; all its rows.
    """
    linked = form is not ReleaseForm.COLUMN_SHUFFLED
    keys = list(before.schema.with_role(Role.QUASI_IDENTIFIER)) if linked else []
    found: dict[str, Any] = {
        "rows": len(before),
        "unique_on_quasi_identifiers": {
            "original": alone(raw, before.schema, keys),
            "rows": raw.height,
            "released": 0,
        },
        "homogeneous": {},
        "columns": [],
    }
    if isinstance(after, SpatialDecomposition):
        return found
    found["unique_on_quasi_identifiers"]["released"] = _unique_rows(after.frame, keys)
    if form is ReleaseForm.SYNTHETIC:
        found["columns"] = [_distribution_figures(before, after, name) for name in columns]
        return found
    found["homogeneous"] = _homogeneous(after, keys, columns)
    found["columns"] = [_column_figures(before, after, name) for name in columns]
    return found


def alone(raw: pl.DataFrame, schema: Schema, keys: Sequence[str]) -> int | None:
    """Count the rows whose cells in some columns, as they came, no other row has.

    Cells are compared as the table holds them, before it is clamped, coded, rounded or recoded;
    missing cells are equal, and so are those that the policy lists under `missing`.

    Args:
        raw: the table as it came.
        schema: says how missing cells are written.
        keys: the columns; without any nothing is said.
    """
    cells = [
        validate.marked_missing(raw[name], schema[name]) for name in keys if name in raw.columns
    ]
    return _unique_rows(pl.DataFrame(cells), [cell.name for cell in cells])


def _homogeneous(
    after: Table, keys: Sequence[str], protected: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Count the classes, and their rows, in which everybody has the same confidential value.

    Only columns that are released as they are count: there, such a class tells the value of
    each of its members.
    """
    bare = [name for name in after.schema.with_role(Role.CONFIDENTIAL) if name not in protected]
    if not keys or not bare:
        return {}
    labels = class_labels(after.frame, keys)
    found = {}
    for name in bare:
        codes, width = value_codes(after.frame, [name], after.schema)
        counts = Counts.of(labels, codes, width=width)
        alike = counts.homogeneous
        found[name] = {"classes": len(alike), "rows": int(counts.persons[alike].sum())}
    return found


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


def _missing(before: Table, after: Table, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": before.schema[name].kind,
        "missing_original": int(before.missing(name).sum()),
        "missing_released": int(after.missing(name).sum()),
        "reason": "",
    }


def _distribution_figures(before: Table, after: Table, name: str) -> dict[str, Any]:
    """Compare how a column is distributed, where no row stands for a row."""
    figures = _missing(before, after, name)
    if before.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        apart = information_loss.total_variation(before.codes(name), after.codes(name))
        return {**figures, "loss": apart, "metric": "total variation"}
    ratio, why = information_loss.of_spread(before.numbers(name), after.numbers(name), paired=False)
    return {**figures, "loss": ratio, "metric": "rank-matched SSE / SST", "reason": why}


def _column_figures(before: Table, after: Table, name: str) -> dict[str, Any]:
    figures = _missing(before, after, name)
    generalised = after.frame.schema[name] == pl.String
    if generalised and before.frame.schema[name] != pl.String:
        kept = (before.frame[name].cast(pl.String) == after.frame[name]).fill_null(value=False)
        kept |= before.frame[name].is_null() & after.frame[name].is_null()
        share = 1 - float(kept.mean() or 0.0)  # type: ignore[arg-type]
        return {**figures, "loss": share, "metric": "share of rows whose cell was generalised"}
    if before.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        changed = information_loss.share_changed(before.codes(name), after.codes(name))
        return {**figures, "loss": changed, "metric": "share of rows whose category changed"}
    ratio, why = information_loss.of_spread(before.numbers(name), after.numbers(name), paired=True)
    return {**figures, "loss": ratio, "metric": "SSE / SST", "reason": why}

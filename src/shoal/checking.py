"""Recompute promises on a finished table, whoever made it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import io
from shoal import policy as policies
from shoal.core import Check, DifferentialPrivacy, KAnonymity, Policy, Role
from shoal.errors import ClaimViolationError, InputError, did_you_mean
from shoal.models import k_when_missing_matches, smallest_run

WITNESS_ROWS = 5
"""How many rows of a witness group are named."""


def check(released: Any, policy: Policy | Mapping[str, Any] | str | Path) -> tuple[Check, ...]:
    """Recompute what a policy requires on any released table, whoever made it.

    Cells are compared as they are released: intervals, ancestors and stars are values. Where
    the policy requires nothing, the k of its quasi-identifiers is reported against k = 2.

    Args:
        released: a pandas, Polars or PyArrow table.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.

    Raises:
        InputError: the table has columns that the policy does not name, or lacks one that
            the guarantee is about.
        ClaimViolationError: an identifier column is present.
    """
    policy = policies.load(policy)
    frame = io.from_native(released).frame
    schema = policy.schema
    present = [name for name in schema.with_role(Role.IDENTIFIER) if name in frame.columns]
    if present:
        raise ClaimViolationError(
            f"The released table holds the identifier column '{present[0]}'; expected none."
        )
    for name in frame.columns:
        if name not in schema.names:
            guess = did_you_mean(name, schema.names)
            raise InputError(f"The table has a column '{name}' that the policy lacks.{guess}")
    if policy.required.keys() == {DifferentialPrivacy.name}:
        raise InputError(
            "The policy requires differential privacy alone, which is a promise about how a table "
            "was made; no table can be checked for it."
        )
    keys = schema.with_role(Role.QUASI_IDENTIFIER)
    required = (KAnonymity(policy.required.get(KAnonymity.name, 2), keys),)
    for guarantee in required:
        for name in guarantee.columns:
            if name not in frame.columns:
                raise InputError(
                    f"The table lacks the quasi-identifier '{name}', which {guarantee.name} is "
                    "about. If it was dropped on purpose, take it out of the policy."
                )
        if not guarantee.columns:
            raise InputError("The policy names no quasi-identifier, so that k has no meaning.")
    if frame.height == 0:
        raise InputError("The table has no rows; there is nothing to check.")
    return tuple(check_frame(frame, guarantee) for guarantee in required)


def check_frame(frame: pl.DataFrame, guarantee: KAnonymity) -> Check:
    """Recompute a guarantee on a frame, cells compared as they are."""
    keys = list(guarantee.columns)
    if len(keys) == 1 and frame.schema[keys[0]].is_float():
        # One numeric column, as individual ranking promises: sorting beats hashing.
        quick = _check_column(frame[keys[0]], guarantee)
        if quick.holds:
            return quick
    classes = frame.group_by(keys).len("records")
    achieved = int(classes["records"].min())  # type: ignore[arg-type]  # never empty
    smallest = classes.filter(pl.col("records") == achieved).sort(keys, nulls_last=True)[:1]
    rows = (
        frame.select(keys)
        .with_row_index("row", offset=1)
        .join(smallest, on=keys, how="semi", nulls_equal=True)["row"]
    )
    remarks: dict[str, Any] = {"classes": classes.height}
    if sum(frame.select(keys).null_count().row(0)):
        codes = np.column_stack([_dense(classes[name]) for name in keys])
        counts = classes["records"].cast(pl.Int64).to_numpy()
        remarks["k_if_missing_matches_anything"] = k_when_missing_matches(codes, counts)
    return Check(
        guarantee,
        holds=achieved >= guarantee.k,
        achieved=achieved,
        witness={"size": achieved, "rows": rows.head(WITNESS_ROWS).to_list()},
        remarks=remarks,
    )


def _check_column(series: pl.Series, guarantee: KAnonymity) -> Check:
    """Recompute k of one column of floats; without naming the rows of the smallest class."""
    present = series.drop_nulls()
    gone = series.null_count()
    rarest = smallest_run(present.to_numpy()) if present.len() else gone
    achieved = min(rarest, gone) if gone else rarest
    remarks = {"k_if_missing_matches_anything": min(rarest + gone, series.len())} if gone else {}
    return Check(guarantee, achieved >= guarantee.k, achieved, {"size": achieved}, remarks)


def _dense(series: pl.Series) -> NDArray[np.int64]:
    """Number the distinct values of a column from 0, -1 where missing."""
    return (series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()

"""Replace records that violate a constraint by the nearest record that satisfies all.

`shoal.core.allowed_records` has the map, of one record alone, and why it costs no epsilon.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import numpy as np
import polars as pl

from shoal.core import Constraint, Kind, Schema
from shoal.core._arrays import Array, Bools
from shoal.core.allowed_records import ConstraintSet
from shoal.core.constraints import CATEGORICAL, grain
from shoal.io.table import Table


def plain_columns(frame: pl.DataFrame, schema: Schema, names: Sequence[str]) -> dict[str, Array]:
    """Convert columns of a typed frame to the plain numbers, days and texts that rules read."""
    made: dict[str, Array] = {}
    for name in names:
        series, kind = frame[name], schema[name].kind
        if kind in CATEGORICAL:
            made[name] = series.cast(pl.String).to_numpy().astype(object)
            continue
        if kind is Kind.DATE:
            unit = 1.0 if series.dtype == pl.Date else 86_400e6
            series = series.to_physical().cast(pl.Float64) / unit
        made[name] = series.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
    return made


def applicable(
    frame: pl.DataFrame, schema: Schema, rules: Sequence[Constraint]
) -> list[Constraint]:
    """Keep the rules whose columns have plain values, not intervals or sets."""

    def has_values(name: str) -> bool:
        if name not in frame.columns:
            return False
        dtype, kind = frame.schema[name], schema[name].kind
        if kind in CATEGORICAL:
            return isinstance(dtype, pl.Enum)
        return dtype.is_temporal() if kind is Kind.DATE else dtype.is_numeric()

    return [rule for rule in rules if all(map(has_values, rule.columns))]


def repair_rows(
    table: Table,
    rules: Sequence[Constraint],
    *,
    frozen: Collection[str] = (),
    missing: Collection[str] = (),
    stepped: bool = True,
    filled: Mapping[str, Bools] = MappingProxyType({}),
) -> tuple[Table, Mapping[str, int]]:
    """Replace each row that violates a rule by the nearest row that satisfies all rules.

    Args:
        table: typed rows.
        rules: those with a column that holds intervals or sets are left aside.
        frozen: columns that stay as they are.
        missing: columns whose cells may become missing.
        stepped: numbers are multiples of their `step`. Without one, they are whole where their type
            is.
        filled: cells that were missing before, and break no rule where broken ones are counted.

    Returns:
        The table, and how many rows violated each rule.
    """
    rules = applicable(table.frame, table.schema, rules)
    if not rules:
        return table, {}
    grids = {}
    for name in dict.fromkeys(name for rule in rules for name in rule.columns):
        column, dtype = table.schema[name], table.frame.schema[name]
        unit = 1.0 if dtype.is_integer() or dtype == pl.Date else None
        step = grain(column) if stepped and column.kind is Kind.NUMERIC else None
        grids[name] = step or unit
    chosen = ConstraintSet(tuple(rules), table.schema, grids, frozenset(frozen), frozenset(missing))
    columns = plain_columns(table.frame, table.schema, chosen.columns)
    made, changed = chosen.nearest(columns)
    seen = dict(columns)
    for name in columns.keys() & filled.keys():
        seen[name] = columns[name].copy()
        seen[name][filled[name]] = None if seen[name].dtype == object else np.nan
    broken = {rule.text: int((~rule.holds(seen)).sum()) for rule in rules}
    for name in chosen.columns if changed.any() else ():
        table = _replace_column(table, name, columns[name], made[name])
    return table, broken


def _replace_column(table: Table, name: str, before: Array, after: Array) -> Table:
    if table.schema[name].kind in CATEGORICAL:
        places = {text: code for code, text in enumerate(table.categories(name))}
        codes = np.array([places.get(cast("str", cell), -1) for cell in after], dtype=np.int64)
        return table.with_codes(name, codes)
    changed: Bools = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    if not changed.any():
        return table
    made = table.with_numbers(name, after, integers=True)
    # Unchanged cells keep their last digit: whole numbers beyond 2^53 are not floats.
    kept = pl.Series(changed)
    series = made.frame[name].zip_with(kept, table.frame[name].cast(made.frame.schema[name]))
    return made.with_series(series)

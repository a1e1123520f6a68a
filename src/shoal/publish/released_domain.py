"""What a released table may hold by its policy: its columns, and of each the values of its domain.

A cell is missing, one value of the domain, or text that covers several: an interval, a set, a node
of the hierarchy, a star. Cells that noise was paid for are single values, and missing only where
that is a value. So a table is refuted by its own policy, whatever else its manifest says.

Not derived: what a policy leaves open, such as categories that were observed.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from math import inf
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Column, Kind, ReleaseForm
from shoal.errors import InputError, count_noun
from shoal.io import decomposition_table, validate
from shoal.io.cells import compose, is_plain
from shoal.io.external.cells import Form
from shoal.io.external.columns import CATEGORICAL, ColumnAxis, read_column
from shoal.methods import Setting
from shoal.pipeline.planning import Plan

ROUNDING = 1e-9
"""How far beyond a limit rounding may lead, relative to it: means are rounded to ten digits."""
_ANYWHERE = (-validate.LARGEST, validate.LARGEST)


def list_misfits(frame: pl.DataFrame, planned: Plan) -> Iterator[str]:
    """Say what of a released table its policy does not allow: columns, then values."""
    setting, schema = planned.setting, planned.setting.schema
    if setting.release_form is ReleaseForm.TREE:
        yield from _list_tree_misfits(frame, setting)
        return
    for name in sorted({*schema.released} ^ {*frame.columns}):
        where = (
            "lacks it"
            if name in schema.released
            else "has it, and the policy releases no such column"
        )
        yield f"columns.{name}: the table {where}."
    noisy = planned.method.clamps(setting)
    bounded = planned.method.keeps_bounds(setting)
    for series in (frame[name] for name in schema.released if name in frame.columns):
        column = schema[series.name] if bounded else replace(schema[series.name], bounds=None)
        cells = _count_outside(series, column, single=series.name in noisy)
        if series.name in noisy and not column.keep_missing:
            cells += series.null_count()
        if cells:
            yield f"columns.{series.name}: {count_noun(cells, 'cell')} outside the policy's domain."


def _count_outside(series: pl.Series, column: Column, *, single: bool) -> int:
    """Count the cells that are not in the domain of a column; missing ones are."""
    discrete, known = column.kind in CATEGORICAL, column.all_categories or ()
    if column.kind is None or (discrete and not known):
        return 0
    if not is_plain(series.dtype):
        return series.len()
    names, tree = set(known), column.stated_hierarchy
    if tree and not single:
        names |= {node for path in tree.paths for node in path}
    if series.dtype == pl.String or discrete:
        text = compose(validate.as_text(series)).drop_nulls()
        text = text.filter(~text.is_in([*names, ""]))
        if discrete and single:
            return text.len()
        series = text if single else text.str.strip_suffix(" or missing")
    axis = ColumnAxis(
        replace(column, missing=()), known, np.zeros(0), _ANYWHERE, declared=True,
        unit=float(column.kind is not Kind.NUMERIC),
    )  # fmt: skip
    read = read_column(series, axis, decimal=".")
    odd = int(read.counts[Form.UNKNOWN]) + read.notes["loose"]
    if discrete:
        return odd
    low, high = _limits(column)
    shown = ~read.suppressed
    inside = (read.lower >= low) & (read.upper <= high) & (read.exact | (not single))
    return odd + int((shown & ~inside).sum())


def _limits(column: Column) -> tuple[float, float]:
    """The least and the largest place of a numeric or date column, after the policy's own steps."""
    never = (date.min, date.max) if column.kind is Kind.DATE else (-inf, inf)
    ends = [*map(validate.limit, column.bounds)] if column.bounds else never
    coded = validate.code_extremes(pl.Series(column.name, ends), column)
    stepped = validate.round_to_step(coded, column.step) if column.step else coded
    both = pl.concat([coded, validate.first_days(stepped, column)]).to_physical().cast(pl.Float64)
    low, high = float(both.min()), float(both.max())  # type: ignore[arg-type]
    if column.kind is Kind.DATE:
        return low, high + 1  # a bound is a day, and includes all of it
    return tuple(np.array([low, high]) + ROUNDING * np.abs([low, high]) * [-1, 1])


def _list_tree_misfits(frame: pl.DataFrame, setting: Setting[Any]) -> Iterator[str]:
    """The same for boxes with counts."""
    schema, wanted = setting.schema, {*setting.columns}
    try:
        boxes = decomposition_table.from_frame(frame, schema)
    except InputError as error:
        yield f"columns: {error}"
        return
    axes, column = {*boxes.columns}, boxes.column
    if not wanted - {column} <= axes <= wanted or column not in {None, *schema.released}:
        yield "columns: the boxes are not of the columns that the policy protects."
    if column is not None and _count_outside(
        pl.Series(boxes.values), _widen(schema[column]), single=False
    ):
        yield f"columns.{column}: the boxes count values outside the policy's domain."
    for name, lower, upper in zip(boxes.columns, boxes.lower.T, boxes.upper.T, strict=True):
        if schema[name].kind not in CATEGORICAL:
            low, high = _limits(_widen(schema[name]))
            ends = np.concatenate([lower, upper])[np.isfinite([*lower, *upper])]
            if not ((ends >= low) & (ends <= high)).all():
                yield f"columns.{name}: boxes outside the policy's domain."


def _widen(column: Column) -> Column:
    """Widen a column to what boxes of it cover: the bounds, up to the value after the last."""
    bounds = column.bounds
    if bounds is not None:
        after: Any = max(column.step or 1, 1)
        if column.kind is Kind.DATE:
            after = timedelta(366 if column.date_step else 1)
        bounds = (bounds[0], bounds[1] + after)
    return replace(column, bounds=bounds, bottom_code=None, top_code=None)

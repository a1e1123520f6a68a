"""Counts of a released table alone, column by column, for publishable pictures.

Nothing but the release is read. Where the release publishes the noisy counts that its rows were
drawn from, each count comes with the margin of its noise.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from math import exp, log, sqrt
from typing import Any

import numpy as np
import polars as pl

from shoal.core import GAUSSIAN
from shoal.core._arrays import Floats, Ints
from shoal.io.column_counts import ColumnCounts
from shoal.metrics.histograms import bin_counts, edges_of

CATEGORIES = 8
"""The most categories of a picture, the rest being one more."""
GROUPS = 24
"""The most bins of measured counts; neighbours are added up to get there."""
_RANGE = re.compile(r"\[(-?[\d.e+-]+), (-?[\d.e+-]+)[)\]]")
_MISSING = "missing"
_GAUSSIAN_Z = 1.96
_GEOMETRIC_Z = log(20) / sqrt(2)
"""Half-width of a 95% interval over the standard deviation: of Gaussian noise, and of a single
two-sided geometric one; sums of these have a shorter one."""


def columns(
    table: pl.DataFrame | ColumnCounts, measurements: pl.DataFrame | None = None
) -> list[dict[str, Any]]:
    """Count each column: numbers and dates over round bins, and the largest categories.

    `answers` are the published noisy counts over the same bins, each with the half-width of its 95%
    interval by the law of the noise: the true count, of the table that the noise was added to, lies
    within it about 95 times in 100. Only one-way marginals of the whole table have them.

    Args:
        table: the released table, or its counts.
        measurements: the noisy answers that are published beside it, if any.
    """
    counts = table if isinstance(table, ColumnCounts) else ColumnCounts(table)
    names = counts.frame.columns
    return [_column(counts, name, _list_measured(measurements, name)) for name in names]


def _column(
    table: ColumnCounts, name: str, measured: Sequence[tuple[str, float, float]]
) -> dict[str, Any]:
    series = table.frame[name]
    missing = [float(series.null_count())]
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        kind = "dates" if series.dtype in {pl.Date, pl.Datetime} else "numbers"
        values, counts = table.numbers(name) if series.dtype.is_numeric() else _days(series)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        spans = _spans(measured)
        edges = (
            [*(low for low, *_ in spans), spans[-1][1]]
            if spans
            else edges_of(values, counts).tolist()
        )
        counted = bin_counts(values, counts, edges)
        answers = [[answer, margin] for *_, answer, margin in spans] or None
        return {"name": series.name, "kind": kind, "edges": edges, "after": counted.tolist(),
                "missing": missing, "answers": answers}  # fmt: skip
    rows = table.cells(name).drop_nulls().with_columns(pl.col(name).cast(pl.String)).rows()
    ordered = sorted(rows, key=lambda one: (-one[1], one[0]))
    several = len(ordered) > CATEGORIES + 1
    shown = ordered[:CATEGORIES] if several else ordered
    labels, after = [name for name, _ in shown], [count for _, count in shown]
    noisy = {name: (answer, margin) for name, answer, margin in measured}
    answers = None
    if labels and not several and noisy.keys() >= set(labels):
        answers = [list(noisy[name]) for name in labels]
    if several:
        labels.append(f"{len(ordered) - CATEGORIES} more")
        after.append(sum(count for _, count in ordered[CATEGORIES:]))
    return {"name": series.name, "kind": "categories", "labels": labels, "after": after,
            "missing": missing, "answers": answers}  # fmt: skip


def _days(series: pl.Series) -> tuple[Floats, Ints]:
    """Convert dates and times to days since 1970; return distinct values and counts."""
    cells = series.drop_nulls()
    if cells.dtype == pl.Date:
        cells = cells.cast(pl.Int32)
    elif cells.dtype == pl.Datetime:
        cells = cells.cast(pl.Datetime("us")).cast(pl.Int64) / 86_400_000_000
    else:
        cells = cells.cast(pl.Int64)
    return np.unique(cells.cast(pl.Float64).to_numpy() + 0.0, return_counts=True)


def _place(text: str) -> float:
    """Convert a number, or a day to days since 1970."""
    if text.count("-") < 2 or "e" in text:
        return float(text)
    return float((date.fromisoformat(text) - date(1970, 1, 1)).days)


def _list_measured(table: pl.DataFrame | None, name: str) -> list[tuple[str, float, float]]:
    """List the cells of a column's own measurement: label, answer, and margin.

    Of several measurements the one with the least noise.
    """
    cell_name = f"cell_{name}"
    if table is None or cell_name not in table.columns:
        return []
    other_cells = [c for c in table.columns if c.startswith("cell_") and c != cell_name]
    one_way = table.filter(
        pl.col("sort").is_in(["table"]),
        pl.col(cell_name).is_not_null(),
        *(pl.col(c).is_null() for c in other_cells),
    )
    if not one_way.height:
        return []
    best = one_way.sort("scale", "measurement")["measurement"][0]
    rows = one_way.filter(pl.col("measurement") == best)
    law = rows["noise"][0] if "noise" in rows.columns else ""
    half = margin(float(rows["scale"][0]), law)
    return [(cell, float(answer), half) for cell, answer in rows.select(cell_name, "answer").rows()]


def margin(scale: float, law: str) -> float:
    """Compute the half-width of the 95% interval of one noisy count.

    Discrete Gaussian noise of a scale has about its square as variance. Two-sided geometric noise,
    with q = exp(-1 / scale), has the variance 2 q / (1 - q)^2.
    """
    if law == GAUSSIAN:
        return _GAUSSIAN_Z * scale
    q = exp(-1 / scale)
    return _GEOMETRIC_Z * sqrt(2 * q) / (1 - q)


def _spans(
    measured: Iterable[tuple[str, float, float]],
) -> list[tuple[float, float, float, float]]:
    """Merge measured ranges of numbers into at most `GROUPS`; empty unless all join."""
    spans = []
    for cell, answer, half in measured:
        if cell == _MISSING:
            continue
        ends = _RANGE.fullmatch(cell)
        if ends is None:
            return []
        spans.append((_place(ends[1]), _place(ends[2]), answer, half))
    spans.sort()
    apart = any(left[1] != other[0] for left, other in pairwise(spans))
    if not spans or apart or any(high <= low for low, high, *_ in spans):
        return []
    size = -(-len(spans) // GROUPS)
    groups = [spans[start : start + size] for start in range(0, len(spans), size)]
    return [
        (group[0][0], group[-1][1], sum(span[2] for span in group), group[0][3] * sqrt(len(group)))
        for group in groups
    ]

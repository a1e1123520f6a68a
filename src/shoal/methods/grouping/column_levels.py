"""The generalisation levels of a column: by its hierarchy or by intervals.

Level 0 is the column as it is, and the last level is one label for all. A missing cell is a value
of its own below the last level, and is released as missing there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import cast

import numpy as np
import polars as pl

from shoal.core import Column, Kind
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, count_noun
from shoal.hierarchy.ranges import (
    ROOT,
    date_levels,
    floor_to,
    interval_label,
    period,
    period_ends,
    refuse_unnested,
)
from shoal.io.table import Table

Steps = Sequence[Decimal | str]
"""Widths of intervals of a number, or levels of a date such as month and year."""
Level = tuple[list[str], Floats]
"""The label of each value that occurs, and what granularity takes for it."""

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """The labels of a column's cells at each level.

    Attributes:
        codes: the number of each row's value.
        tree: levels by values: the number of the label.
        penalties: levels by values, from 0 to 1.
        labels: of each level the text of each value, None if it is missing.
    """

    codes: Ints
    tree: Ints
    penalties: Floats
    labels: tuple[tuple[str | None, ...], ...]

    def write_level(self, table: Table, name: str, level: int) -> Table:
        """Write a column at one level."""
        if level == 0:
            return table
        texts = pl.Series(name, self.labels[level], dtype=pl.String).gather(self.codes)
        return replace(table, frame=table.frame.with_columns(texts.alias(name)))


def height(column: Column, steps: Steps | None) -> int:
    """Return the last level of a column."""
    if column.stated_hierarchy is not None:
        return max(map(len, column.stated_hierarchy.paths)) - 1
    return 1 if steps is None else len(steps) + 1


def refuse_steps(column: Column, steps: Steps) -> None:
    """Refuse intervals that cannot be built, or that compete with a hierarchy."""
    where = f"[protect], intervals of '{column.name}'"
    if column.stated_hierarchy is not None:
        raise InputError(f"{where}: expected intervals or a hierarchy, found both.")
    if column.kind not in {Kind.NUMERIC, Kind.DATE}:
        raise InputError(f"{where}: expected a number or a date, found a {column.kind} column.")
    if column.bounds is None:
        raise InputError(f"{where}: expected public bounds of the column, found none.")
    numbers = [step for step in steps if isinstance(step, Decimal)]
    if column.kind is Kind.DATE:
        if numbers:
            raise InputError(f"{where}: expected levels such as 'month', found a number.")
        date_levels(cast("Sequence[str]", steps))
        return
    if len(numbers) < len(steps) or min(numbers) <= 0:
        raise InputError(f"{where}: expected widths above 0, found something else.")
    refuse_unnested(numbers)


def column_levels(
    table: Table, name: str, steps: Steps | None, times: Ints | None = None
) -> ColumnLevels:
    """Number the values of a column, and label them level by level.

    `times` is how many rows each row represents, by default one.
    """
    column, raw = table.schema[name], table.raw(name)
    gone = np.isnan(raw)
    values, inside = np.unique(raw[~gone], return_inverse=True)
    codes = np.full(len(raw), len(values), np.int64)
    codes[~gone] = inside.ravel()
    if column.stated_hierarchy is not None:
        held = np.bincount(codes, times, minlength=len(values)).astype(np.int64)
        levels = _by_hierarchy(table, column, values, held)
    elif steps is not None:
        levels = _by_steps(table, column, values, steps)
    else:
        levels = [([ROOT] * len(values), np.ones(len(values)))]
    root = ROOT if column.stated_hierarchy is None else column.stated_hierarchy.paths[0][-1]
    labels: list[tuple[str | None, ...]] = [(None,) * (len(values) + gone.any())]
    tree, penalties = [np.arange(len(labels[0]))], [np.zeros(len(labels[0]))]
    for number, (texts, shares) in enumerate(levels, start=1):
        last = number == len(levels)
        level_labels: tuple[str | None, ...] = tuple(texts)
        if gone.any():
            level_labels = (*level_labels, root if last else None)
        known = {text: place for place, text in enumerate(dict.fromkeys(level_labels))}
        labels.append(level_labels)
        tree.append(np.array([known[text] for text in level_labels], np.int64))
        penalties.append(np.append(shares, [float(last)] * int(gone.any())))
    # Shares of intervals that reach beyond the bounds are cut; they still must not fall.
    return ColumnLevels(
        codes, np.array(tree), np.maximum.accumulate(np.array(penalties), axis=0), tuple(labels)
    )


def _by_hierarchy(table: Table, column: Column, values: Floats, held: Ints) -> list[Level]:
    tree = column.stated_hierarchy
    assert tree is not None  # noqa: S101 (the caller has checked)
    rows = _leaf_of(table, column, tree.leaves)(values)
    lacking = int(held[: len(values)][rows < 0].sum())
    if lacking:
        raise InputError(
            f"Column '{column.name}': expected leaves of its hierarchy, found others in "
            f"{count_noun(lacking, 'row')}. Add them to the file."
        )
    levels: list[Level] = []
    for level in tree.levels()[1:]:
        sizes: dict[str, int] = {}
        for label in level:
            sizes[label] = sizes.get(label, 0) + 1
        texts = [level[row] for row in rows]
        below = np.array([sizes[text] for text in texts], np.float64)
        levels.append((texts, (below - 1.0) / max(len(tree.leaves) - 1, 1)))
    if levels and len(values):
        levels[-1] = (levels[-1][0], np.ones(len(values)))
    return levels


def _leaf_of(table: Table, column: Column, leaves: Sequence[str]) -> Callable[[Floats], Ints]:
    """Find the leaf of each value, or -1."""
    if column.kind in {Kind.NUMERIC, Kind.DATE}:
        read = leaf_numbers(column, leaves)
        places = {value: row for row, value in enumerate(read)}
        # A time lies in its day.
        floor = np.floor if column.kind is Kind.DATE else np.asarray
        return lambda values: np.array([places.get(float(v), -1) for v in floor(values)], np.int64)
    names, known = table.categories(column.name), {leaf: row for row, leaf in enumerate(leaves)}
    return lambda values: np.array([known.get(names[int(v)], -1) for v in values], np.int64)


def leaf_numbers(column: Column, leaves: Sequence[str]) -> list[float]:
    """Read the leaves of a column of numbers or dates as numbers; dates in days.

    Raises:
        InputError: one of them is neither.
    """
    dates = column.kind is Kind.DATE
    try:
        read = [
            float((date.fromisoformat(leaf) - _EPOCH).days) if dates else float(leaf)
            for leaf in leaves
        ]
    except ValueError:
        what = "days such as 2020-01-31" if dates else "numbers"
        raise InputError(
            f"Column '{column.name}': expected {what} as leaves of its hierarchy, found others."
        ) from None
    if len(set(read)) < len(read):
        raise InputError(
            f"Column '{column.name}': expected each leaf of its hierarchy once, found two "
            "spellings of one value."
        )
    return read


def _by_steps(table: Table, column: Column, values: Floats, steps: Steps) -> list[Level]:
    low, high = table.limits(column.name)
    if column.kind is Kind.DATE:
        days = [_EPOCH + timedelta(days=int(np.floor(value))) for value in values]
        levels = []
        for level in date_levels(cast("Sequence[str]", steps)):
            ends = [period_ends(day, level) for day in days]
            first = np.array([(begin - _EPOCH).days for begin, _ in ends], np.float64)
            last = np.array([(end - _EPOCH).days for _, end in ends], np.float64)
            levels.append(([period(day, level) for day in days], _share(first, last, low, high)))
    else:
        integral = table.frame.schema[column.name].is_integer()
        exact = [Decimal(int(v)) if integral else Decimal(repr(float(v))) for v in values]
        levels = [_intervals(exact, cast("Decimal", w), low, high, whole=integral) for w in steps]
    return [*levels, ([ROOT] * len(values), np.ones(len(values)))]


def _intervals(
    values: Sequence[Decimal], width: Decimal, low: float, high: float, *, whole: bool
) -> Level:
    """Write intervals with readable ends: 0-4 of whole numbers, [0, 2.5) of others."""
    begins = [floor_to(value, width) for value in values]
    inclusive = whole and width == width.to_integral_value()
    ends = [begin + width - inclusive for begin in begins]
    shown = {begin: format(begin.normalize(), "f") for begin in {*begins, *ends}}
    texts = [
        interval_label(shown[a], shown[b]) if inclusive else f"[{shown[a]}, {shown[b]})"
        for a, b in zip(begins, ends, strict=True)
    ]
    first, last = (np.array(list(map(float, side))) for side in (begins, ends))
    return texts, _share(first, last, low, high)


def _share(first: Floats, last: Floats, low: float, high: float) -> Floats:
    """Return the share of the public bounds that intervals cover."""
    covered = np.minimum(last, high) - np.maximum(first, low)
    return np.clip(covered / (high - low), 0.0, 1.0)

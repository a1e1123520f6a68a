"""Hierarchies of ordered values: intervals of numbers, of dates, and of ordered categories."""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Hierarchy
from shoal.errors import InputError

MOST_LEAVES = 200_000
"""A longer file is a mistake, or its column is one whose intervals a method builds itself."""
ROOT = "*"

Numeral = int | float | str | Decimal
End = TypeVar("End", Decimal, str)


class DateLevel(StrEnum):
    """Periods into which days are joined. Weeks nest in no other level but the root."""

    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


def intervals(
    low: Numeral, high: Numeral, widths: Sequence[Numeral], *, step: Numeral = 1, root: str = ROOT
) -> Hierarchy:
    """Group numbers into intervals of equal width, one width per level, such as 0-4 and 5-9.

    Intervals begin at multiples of their width, so those at either end may reach beyond the
    bounds. The leaves are the numbers from low to high in steps.

    Args:
        low: least number that can occur, publicly known.
        high: largest one.
        widths: of the intervals, level by level; each a multiple of the one before.
        step: between two numbers of the column.
        root: label of the last level.

    Raises:
        InputError: a width is not a multiple of the one before, or there are too many leaves.

    >>> intervals(0, 11, [5, 10]).paths[7]
    ('7', '5-9', '0-9', '*')
    """
    first, last, unit = _number(low, "low"), _number(high, "high"), _number(step, "step")
    each = [_number(width, "widths") for width in widths]
    if unit <= 0 or not each:
        raise InputError("Expected a step above 0 and at least one width.")
    refuse_unnested([unit, *each])
    grid = _grid(first, last, unit)
    return Hierarchy(
        tuple(
            (_write_number(x), *(_interval(x, width, unit) for width in each), root) for x in grid
        )
    )


def refuse_unnested(widths: Sequence[Decimal]) -> None:
    """Refuse widths unless each is a multiple of the one before."""
    for narrow, wide in pairwise(widths):
        if wide <= 0 or wide % narrow:
            raise InputError(
                f"Levels must be nested; a width of {_write_number(wide)} is not a multiple of "
                f"{_write_number(narrow)}."
            )


def quantiles(
    ends: Sequence[Numeral], *, step: Numeral = 1, join: int = 2, root: str = ROOT
) -> Hierarchy:
    """Group numbers between stated ends, such as published quantiles; then join adjacent intervals.

    Level 1 has the intervals from each end to just before the next; the last one includes the
    last end. Each further level joins `join` neighbours, until one is left.

    Raises:
        InputError: the ends do not ascend, or are not on the grid of the steps.

    >>> quantiles([0, 18, 40, 65, 99]).paths[20]
    ('20', '18-39', '0-39', '*')
    """
    borders, unit = [_number(end, "ends") for end in ends], _number(step, "step")
    if len(borders) < 2 or any(a >= b for a, b in pairwise(borders)):
        raise InputError("Expected ends that ascend, two or more.")
    if unit <= 0 or any((end - borders[0]) % unit for end in borders):
        raise InputError("Expected ends that are whole numbers of steps apart.")
    grid = _grid(borders[0], borders[-1], unit)
    inside = np.searchsorted([float(b) for b in borders[1:-1]], [float(x) for x in grid], "right")
    spans = [(a, b - unit) for a, b in pairwise(borders)]
    spans[-1] = (spans[-1][0], borders[-1])
    rows = _join_spans(spans, join)
    labels = [
        [interval_label(_write_number(a), _write_number(b)) for a, b in level] for level in rows
    ]
    return _stack_levels([_write_number(x) for x in grid], inside.tolist(), labels, join, root)


def quantiles_of(
    values: ArrayLike, groups: int, *, step: Numeral = 1, join: int = 2, root: str = ROOT
) -> Hierarchy:
    """Group numbers into intervals with nearly equal counts, and mark the hierarchy as observed.

    Ends are the values at ranks 0, n/groups, 2n/groups, ..., n, rounded down to the grid of the
    steps; equal ends are merged, so there may be fewer intervals. Missing values are left out.

    Raises:
        InputError: there are fewer than two different values.

    >>> quantiles_of([1, 1, 2, 3, 5, 8, 13, 21], 2).observed
    True
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    if groups < 2:
        raise InputError(f"Expected two groups or more, found {groups}.")
    unit = _number(step, "step")
    if unit <= 0:
        raise InputError("Expected a step above 0.")
    if not len(numbers) or numbers[0] == numbers[-1]:
        raise InputError("Expected a column with two different numbers, found fewer.")
    ranks = [len(numbers) * part // groups for part in range(groups)]
    at = [floor_to(Decimal(repr(float(numbers[rank]))), unit) for rank in ranks]
    above = -floor_to(-Decimal(repr(float(numbers[-1]))), unit)
    tree = quantiles(sorted({*at, above}), step=unit, join=join, root=root)
    return Hierarchy(tree.paths, observed=True)


def dates(
    first: date, last: date, levels: Sequence[DateLevel | str], *, root: str = ROOT
) -> Hierarchy:
    """Group days into weeks, or into months, quarters, years and decades.

    A week is that of ISO 8601, written 2020-W05; a month is written 2020-03, a quarter 2020-Q1, a
    year 2020 and a decade 2020-2029.

    Raises:
        InputError: the levels do not ascend, or one stands above weeks, which nest in none.

    >>> dates(date(2020, 3, 1), date(2020, 3, 2), ["month", "year"]).paths[0]
    ('2020-03-01', '2020-03', '2020', '*')
    """
    each = date_levels(levels)
    count = (last - first).days + 1
    _refuse_size(count)
    days = (first + timedelta(days=n) for n in range(count))
    return Hierarchy(
        tuple((day.isoformat(), *(period(day, level) for level in each), root) for day in days)
    )


def date_levels(levels: Sequence[DateLevel | str]) -> list[DateLevel]:
    """Check that levels of dates are nested."""
    order = list(DateLevel)
    for level in levels:
        if level not in order:
            raise InputError(f"Expected levels among {', '.join(order)}, found '{level}'.")
    each = [DateLevel(level) for level in levels]
    if not each or any(order.index(a) >= order.index(b) for a, b in pairwise(each)):
        raise InputError(f"Expected levels in the order {', '.join(order)}, each once.")
    if DateLevel.WEEK in each and len(each) > 1:
        raise InputError(
            f"Levels must be nested; a week may lie in two {each[1]}s. Leave one of them out."
        )
    return each


def join_ordered(
    values: Sequence[str], *, join: int = 2, root: str = ROOT, observed: bool = False
) -> Hierarchy:
    """Join ordered categories: each level joins `join` adjacent ones of the level before.

    Args:
        values: all categories, in their order.
        join: how many neighbours become one.
        root: label of the last level.
        observed: they were read off the data.

    >>> join_ordered(["none", "primary", "secondary"]).paths[1]
    ('primary', '[none, primary]', '*')
    """
    if len(values) < 2:
        raise InputError("Expected two categories or more.")
    ends = _join_spans([(value, value) for value in values], join)
    labels = [[a if a == b else f"[{a}, {b}]" for a, b in level] for level in ends]
    tree = _stack_levels(list(values), list(range(len(values))), labels, join, root)
    return Hierarchy(tree.paths, observed=observed)


def _number(value: Numeral, name: str) -> Decimal:
    try:
        number = Decimal(repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise InputError(f"Expected a number as {name}, found '{value}'.") from None
    if not number.is_finite():
        raise InputError(f"Expected a finite number as {name}, found '{value}'.")
    return number


def _write_number(number: Decimal) -> str:
    """Write a number as a CSV file would hold it: 5 and 2.5, not 5.0 and 2.50."""
    integer = number.to_integral_value()
    return str(int(integer)) if number == integer else format(number.normalize(), "f")


def floor_to(x: Decimal, unit: Decimal) -> Decimal:
    """Return the largest multiple of a unit up to x. Decimals divide towards zero."""
    return x // unit * unit - (unit if x < 0 and x % unit else 0)


def _grid(first: Decimal, last: Decimal, step: Decimal) -> list[Decimal]:
    if first >= last:
        raise InputError(
            f"Expected low below high, found {_write_number(first)} and {_write_number(last)}."
        )
    count = int((last - first) // step) + 1
    _refuse_size(count)
    return [first + n * step for n in range(count)]


def _refuse_size(count: int) -> None:
    if count < 1:
        raise InputError("Expected the first day before the last.")
    if count > MOST_LEAVES:
        raise InputError(
            f"A hierarchy of {count:,} leaves is too long; at most {MOST_LEAVES:,}. Use a larger "
            "step, or let the method build the intervals."
        )


def _interval(x: Decimal, width: Decimal, step: Decimal) -> str:
    """Label the interval of the given width that contains x."""
    begin = floor_to(x, width)
    return interval_label(_write_number(begin), _write_number(begin + width - step))


def interval_label(first: str, last: str) -> str:
    """Label an interval by its ends; beside a minus sign a hyphen would be ambiguous."""
    if first == last:
        return first
    return f"{first} to {last}" if "-" in first + last else f"{first}-{last}"


def _join_spans(spans: Sequence[tuple[End, End]], join: int) -> list[list[tuple[End, End]]]:
    """Join adjacent intervals level by level, until one is left."""
    if join < 2:
        raise InputError(f"Expected to join two neighbours or more, found {join}.")
    levels = [list(spans)]
    while len(levels[-1]) > join:
        below = levels[-1]
        pieces = [below[at : at + join] for at in range(0, len(below), join)]
        levels.append([(piece[0][0], piece[-1][1]) for piece in pieces])
    return levels


def _stack_levels(
    leaves: Sequence[str],
    inside: Sequence[int],
    labels: Sequence[Sequence[str]],
    join: int,
    root: str,
) -> Hierarchy:
    """Stack the leaves, their labels, and further levels that join adjacent labels."""

    def path(leaf: str, at: int) -> Iterator[str]:
        yield leaf
        for depth, level in enumerate(labels):
            yield level[at // join**depth]
        yield root

    rows = [tuple(path(leaf, at)) for leaf, at in zip(leaves, inside, strict=True)]
    if list(leaves) == list(labels[0]):
        rows = [(row[0], *row[2:]) for row in rows]
    return Hierarchy(tuple(rows))


def period(day: date, level: DateLevel) -> str:
    """Label the week, month, quarter, year or decade of a day."""
    if level is DateLevel.WEEK:
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if level is DateLevel.MONTH:
        return f"{day.year:04}-{day.month:02}"
    if level is DateLevel.QUARTER:
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    if level is DateLevel.YEAR:
        return f"{day.year:04}"
    begin = day.year // 10 * 10
    return f"{begin:04}-{begin + 9:04}"


def period_ends(day: date, level: DateLevel) -> tuple[date, date]:
    """Return the first and last day of the week, month, quarter, year or decade of a day.

    >>> period_ends(date(2020, 2, 11), DateLevel.QUARTER)
    (datetime.date(2020, 1, 1), datetime.date(2020, 3, 31))
    """
    if level is DateLevel.WEEK:
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    if level is DateLevel.DECADE:
        begin = day.year // 10 * 10
        return date(max(begin, 1), 1, 1), date(begin + 9, 12, 31)
    months = {DateLevel.MONTH: 1, DateLevel.QUARTER: 3, DateLevel.YEAR: 12}[level]
    first = (day.month - 1) // months * months + 1
    last = first + months - 1
    return date(day.year, first, 1), date(day.year, last, monthrange(day.year, last)[1])

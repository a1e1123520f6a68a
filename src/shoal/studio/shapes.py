"""The shape of a column in place of its rows: a small picture, a range, a pattern of its texts.

A shape is computed once, by the job that reads the table, from the distinct values and their
counts. It is a figure of the confidential table: it is kept beside the table in the temporary
folder, and shown on the steward's own page only. So is a column before and after, of a comparison.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup, escape
from numpy.typing import NDArray

from shoal.core import Kind, Role
from shoal.errors import visible
from shoal.io.dates import read_days
from shoal.policy.column_values import ColumnValues
from shoal.policy.guess import Guess

BARS = 24
"""Bars of a histogram, at most; of categories half as many."""
TAIL = 0.005
"""Share of the rows that the first and the last bar of a histogram take up at either end."""
SAMPLE = 2000
"""Distinct texts that a pattern is made of."""
MANY = 50
"""Categories above which a pattern says more than names."""
NAMED = 3
"""Categories that are named beside their picture."""
WIDE, HIGH = 120, 28
"""The size of a column's picture in its own units."""


@dataclass(frozen=True)
class Shape:
    """The shape of a column.

    Attributes:
        sort: numbers, dates, categories, or texts, which have no picture.
        bars: how high each bar is, from 0 to 1.
        names: of the bars, where they are categories or ranges.
        range: the smallest and the largest value, the most frequent ones, or a pattern; in words.
        rest: how many categories have no bar.
    """

    sort: str
    bars: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    range: str = ""
    rest: int = 0


def shape_of(values: ColumnValues, made: Guess) -> Shape:
    """Compute the shape of a column by its guessed kind."""
    if not values.distinct:
        return Shape("texts", range="no values")
    counts = values.counts.to_numpy().astype(float)
    if made.kind is Kind.DATE and (days := _days(values, made.date_format)) is not None:
        return _dates(days, counts)
    counted = made.role is Role.IDENTIFIER and not values.names_rows
    if values.numbers is not None and (made.kind is Kind.NUMERIC or counted):
        return _numbers(values.numbers.to_numpy(), counts)
    if made.role is Role.IDENTIFIER:
        return Shape("texts", range=_pattern(values.text))
    shape = _categories(
        values.text.to_list(), counts, made.categories, ordinal=made.kind is Kind.ORDINAL
    )
    if values.distinct <= MANY:
        return shape
    words = f"{_pattern(values.text)}; the most frequent has {counts.max() / counts.sum():.0%}"
    return replace(shape, range=words)


def _numbers(numbers: NDArray[np.float64], counts: NDArray[np.float64]) -> Shape:
    finite = np.isfinite(numbers)
    numbers, counts = numbers[finite], counts[finite]
    if not numbers.size:
        return Shape("texts", range="no values")
    words = _from_to(_write_number(numbers.min()), _write_number(numbers.max()))
    bars, edges = _histogram(numbers, counts)
    names = tuple(_from_to(_write_number(low), _write_number(high)) for low, high in edges)
    return Shape("numbers", bars, names, words)


def _dates(days: NDArray[np.float64], counts: NDArray[np.float64]) -> Shape:
    bars, edges = _histogram(days, counts)
    ends = [(str(_day(low)), str(_day(high))) for low, high in [*edges, (days.min(), days.max())]]
    *shown, words = (_from_to(*both) for both in ends)
    return Shape("dates", bars, tuple(shown), words)


def _histogram(
    values: NDArray[np.float64], counts: NDArray[np.float64]
) -> tuple[tuple[float, ...], list[tuple[float, float]]]:
    """Compute heights and ends of equally wide bars; outer ones include what lies beyond."""
    if values.size <= BARS:
        order = np.argsort(values)
        return _heights(counts[order]), [(value, value) for value in values[order]]
    order = np.argsort(values)
    below = np.cumsum(counts[order]) / counts.sum()
    low, high = (values[order][min(np.searchsorted(below, q), below.size - 1)]
                 for q in (TAIL, 1 - TAIL))  # fmt: skip
    if low == high:
        low, high = values.min(), values.max()
    edges = np.linspace(low, high, BARS + 1)
    held, _ = np.histogram(np.clip(values, low, high), edges, weights=counts)
    edges[0], edges[-1] = values.min(), values.max()
    return _heights(held), list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _categories(
    names: Sequence[str], counts: NDArray[np.float64], stated: Sequence[str], *, ordinal: bool
) -> Shape:
    frequent = np.argsort(-counts, kind="stable")
    total = counts.sum()
    words = ", ".join(f"{_clip(names[i])} {counts[i] / total:.0%}" for i in frequent[:NAMED])
    more = len(names) - NAMED
    if more > 0:
        words += f" and {more:,} more"
    order = list(frequent[: BARS // 2])
    if ordinal:
        place = {name: at for at, name in enumerate(stated)}
        order = sorted(range(len(names)), key=lambda i: place.get(names[i], len(place)))[:BARS]
    shown = tuple(f"{_clip(names[i])}: {counts[i]:,.0f}" for i in order)
    return Shape("categories", _heights(counts[order]), shown, words, len(names) - len(order))


def _heights(counts: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(height), 4) for height in counts / max(counts.max(), 1.0))


def _pattern(text: pl.Series) -> str:
    """Describe how the texts of a column are written: letters as A and a, digits as 9."""
    some = text.gather_every(max(1, text.len() // SAMPLE))
    forms = (
        some.str.replace_all(r"\p{Lu}", "A").str.replace_all(r"\p{Ll}|\p{Lo}", "a")
        .str.replace_all(r"\p{Nd}", "9").str.replace_all(r"a{4,}", "aaa\u2026")
        .str.replace_all(r"A{4,}", "AAA\u2026").str.slice(0, 24)
    )  # fmt: skip
    counted = forms.value_counts(sort=True)
    form, share = str(counted[0, 0]), counted[0, 1] / some.len()
    if share < 0.2:
        lengths = text.str.len_chars()
        return f"texts of {_from_to(str(lengths.min()), str(lengths.max()))} characters"
    return f"{'mostly ' if share < 0.95 else ''}like {form}"


def _days(values: ColumnValues, form: str | None) -> NDArray[np.float64] | None:
    cells = values.values
    if cells.dtype.is_temporal():
        days = cells.cast(pl.Date, strict=False)
    else:
        days = read_days(values.text.str.strip_chars(), form)
    return None if days.null_count() else days.cast(pl.Int32).to_numpy().astype(float)


def _day(number: float) -> date:
    return date(1970, 1, 1) + timedelta(days=round(number))


def _from_to(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _write_number(number: float) -> str:
    """A number of at most three digits behind the first that counts; whole ones as they are.

    >>> [_write_number(number) for number in (1987.0, 93712.0, 0.123456, 1234.5)]
    ['1987', '93,712', '0.123', '1,234']
    """
    if float(number).is_integer() and abs(number) < 10_000:
        return f"{number:.0f}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _clip(text: str) -> str:
    flat = re.sub(r"\s+", " ", text)
    return flat if len(flat) <= 24 else flat[:23] + "\u2026"


@lru_cache(maxsize=2048)
def sparkline(shape: Shape, *, plain: bool = False) -> Markup:
    """Draw a shape as a small picture, with a text alternative.

    Bars have tooltips, unless the picture is to be plain.
    """
    if not shape.bars:
        return Markup("")
    room = WIDE / max(len(shape.bars), 4 if shape.sort == "categories" else 1)
    wide = room - min(room * (0.3 if shape.sort == "categories" else 0.12), 6)
    highs = [max(share * (HIGH - 1), 1 if share else 0) for share in shape.bars]
    if plain:
        drawn = "".join(
            f"M{place * room:.4g} {HIGH}v-{high:.3g}h{wide:.4g}v{high:.3g}z"
            for place, high in enumerate(highs)
        )
        inner = f'<path d="{drawn}"/>'
    else:
        inner = "".join(
            f'<rect x="{place * room:.4g}" y="{HIGH - high:.4g}" width="{wide:.4g}" '
            f'height="{high:.4g}"><title>{escape(visible(name))}</title></rect>'
            for place, (high, name) in enumerate(zip(highs, shape.names, strict=True))
        )
    return Markup(  # noqa: S704 (numbers, and names that are escaped)
        f'<svg class="spark {shape.sort}" viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" '
        f'aria-hidden="true">{inner}</svg>'
    )


TWIN_WIDE, TWIN_HIGH = 56, 22
"""The size of a picture of a column before and after."""


def before_and_after(one: Mapping[str, Any]) -> Markup:
    """Draw the counts of a column: a filled shape for the release, a line for the original.

    Args:
        one: a column of `shoal.evaluation.evaluate.pictures`.
    """
    before, after = (_shares(one[side]) for side in ("before", "after"))
    most = max([*before, *after, 1e-12])
    words = f"{one['name']}: {one['distance']:.0%} moved"
    return Markup(
        '<svg class="twin" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title><path class="after" d="M0 {}{}z"/><path class="before" '
        'd="M0 {}{}"/></svg>'
    ).format(
        TWIN_WIDE,
        TWIN_HIGH,
        words,
        words,
        TWIN_HIGH,
        _steps(after, most),
        TWIN_HIGH,
        _steps(before, most),
    )


def _shares(counts: Sequence[float]) -> list[float]:
    total = sum(max(count, 0.0) for count in counts)
    return [max(count, 0.0) / total if total else 0.0 for count in counts]


def _steps(shares: Sequence[float], most: float) -> str:
    step = TWIN_WIDE / max(len(shares), 1)
    heights = (TWIN_HIGH - (TWIN_HIGH - 2) * share / most for share in shares)
    return "".join(f"V{height:.4g}h{step:.4g}" for height in heights) + f"V{TWIN_HIGH}"

# noqa: INP001 (a program beside the pages, not a package)
"""The picture of the front page: three rows before and after, the promise, and what it costs.

The people, the columns and the noise are those of method_examples.py. Promises are those that a
plan makes; the price is a figure of `shoal.evaluate`.
"""

import textwrap
from typing import Any, NamedTuple

import polars as pl
from markupsafe import Markup
from method_examples import COLUMNS, SEED, take_people, write_cell

import shoal
from shoal.core.serialise import plain
from shoal.hazmat.fakes import SeededNoise
from shoal.methods import REGISTRY, title_of
from shoal.pipeline.planning import plan
from shoal.report import phrases
from shoal.report.shapes import PALE, SEA, draw_line, draw_rect, draw_svg, draw_text

METHODS: dict[str, dict[str, Any]] = {"mdav": {"k": 5}, "auto": {"epsilon": 1}}
PEOPLE = 1000
COUNTS = "COUNT queries"
KEYS = ["age", "hours", "education"]


class Band(NamedTuple):
    """One part of the picture: three rows, and sentences beside them."""

    title: str
    rows: pl.DataFrame
    sentences: tuple[tuple[str, str], ...]


def bands() -> list[Band]:
    """Protect the people by each method, and put its promise and its price into words."""
    people = take_people(PEOPLE, list(COLUMNS))
    alone = people.filter(pl.struct(KEYS).is_unique()).height
    known = f"{alone} of {PEOPLE:,} people share age, hours and education with nobody: whoever "
    known += "knows these finds the row, and reads the rest."
    made = [Band("A table of people", people.head(3), (("the risk", known),))]
    for name, parameters in METHODS.items():
        protect = {"method": name, **parameters}
        policy = {"version": 1, "one_row_per_person": True, "columns": COLUMNS, "protect": protect}
        aligned = not REGISTRY[name].noisy
        release = shoal.protect(people, policy, keep_order=aligned, noise=SeededNoise(SEED))
        scored = shoal.evaluate(people, release, policy, which=[COUNTS], only="utility", jobs=1)
        (claim,) = plan(policy).claims
        error = scored.of(COUNTS)[0].value.value
        price = f"Half of 2,000 counts are off by more than {phrases.percent(error)}."
        promise = phrases.meaning(plain(claim.guarantee))
        said = (f"promise, {claim.status}", promise), ("price, measured", price)
        stated = ", ".join(f"{key} = {value}" for key, value in parameters.items())
        made.append(Band(f"{title_of(name)}: {stated}", release.data.head(3), said))
    return made


WIDE, ROWS_WIDE, HEAD, LINE = 820, 330, 30, 19


def draw() -> str:
    """Draw the bands below each other: rows on the left, sentences on the right."""
    parts: list[Markup] = []
    top = 8
    for place, band in enumerate(bands()):
        high, drawn = _band(band, top, place)
        parts += drawn
        top += high + 10
    paper = draw_rect("p-paper", "#ffffff", (0, 0, WIDE, top))
    words = "Three rows of a table, and what is released for them by two methods"
    return str(draw_svg(WIDE, top, [paper, *parts], words))


def _band(band: Band, top: int, place: int) -> tuple[int, list[Markup]]:
    left = ROWS_WIDE + 36
    parts = [draw_text(12, top + 18, band.title, bold=True, size=14)]
    for column, name in enumerate(band.rows.columns):
        x = 12 + column * 84
        parts.append(draw_text(x, top + HEAD + 12, name, soft=True, size=12))
        for row, value in enumerate(band.rows[name]):
            y = top + HEAD + 12 + LINE * (row + 1)
            parts.append(draw_text(x, y, write_cell(value), size=13))
    y = top + HEAD + 12
    for label, sentence in band.sentences:
        parts.append(draw_text(left, y, label, bold=True, size=12))
        for line in textwrap.wrap(sentence, 66):
            y += LINE - 2
            parts.append(draw_text(left, y, line, size=12))
        y += LINE + 5
    high = max(HEAD + 24 + 3 * LINE, y - top - 10)
    back = draw_rect(
        "p-back", PALE if place == 0 else SEA, (4, top, WIDE - 8, high), 0.5 if place == 0 else 0.09
    )
    rule = draw_line(12, top + HEAD + 17, 12 + ROWS_WIDE, top + HEAD + 17, faint=True)
    return high, [back, rule, *parts]

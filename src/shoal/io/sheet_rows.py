"""Rows of a sheet that are not records: titles, multi-row headers, totals and notes.

A reader takes them as stated, by number, so each record is read by itself. `recognise` looks at all
rows; it proposes what to state, and quotes no cell.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile

import polars as pl

from shoal.errors import InputError, count_noun
from shoal.io.validate import is_number

TOTAL = re.compile(
    r"\s*((grand |sub)?totals?|sum|gesamt(summe)?|insgesamt|summe|somme|ensemble|totaux|totale"
    r"|suma|итого|всего|σύνολο|المجموع|合計|计|總計|总计|계|합계)\s*:?\s*",
    re.IGNORECASE,
)
MOST_TITLES, MOST_HEADERS, MOST_NOTES = 20, 4, 10
"""Rows above a header, of a header, and below the records, that are looked at."""
FEWEST_ADDED = 5
"""Of fewer numbers, a record may be the sum of the others by chance."""


@dataclass(frozen=True)
class Merge:
    """Merged cells; rows and columns are counted from 1."""

    place: str
    top: int
    left: int
    bottom: int
    right: int


@dataclass(frozen=True)
class StatedRows:
    """The stated row numbers of a sheet, counted from 1, and its merged cells.

    Attributes:
        header: the rows that name the columns; none for the first with a cell.
        skip: rows that are not records.
        records: how many there are, if that is stated.
    """

    header: tuple[int, ...] = ()
    skip: tuple[int, ...] = ()
    merges: tuple[Merge, ...] = ()
    records: int | None = None

    def __post_init__(self) -> None:
        if both := sorted(set(self.header) & set(self.skip)):
            raise InputError(
                f"Row {both[0]} is stated both as a row of names and as one to skip. State it once."
            )


def find_filled_rows(cells: pl.DataFrame) -> list[int]:
    """List the numbers of the rows that have a cell."""
    filled = cells.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    return [row + 1 for row in filled.arg_true()]


def numbers_of(stated: str | None) -> tuple[int, ...]:
    """Parse row numbers such as `3-4, 105`.

    >>> numbers_of("3-4, 105")
    (3, 4, 105)
    """
    rows: set[int] = set()
    for part in (stated or "").split(",") if stated else ():
        ends = re.fullmatch(r"\s*([1-9]\d{0,6})\s*(?:-\s*([1-9]\d{0,6})\s*)?", part)
        if ends is None:
            raise InputError("Expected numbers of rows, such as 3 or 3-4 or 3,105.")
        rows.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return tuple(sorted(rows))


def names_in(
    cells: pl.DataFrame, header: Sequence[int], merges: Iterable[Merge]
) -> list[str | None]:
    """Read column names from the header's rows, joined from top to bottom.

    A name spreads over the columns that it is merged with; in a row without merged cells, over
    the empty cells to its right, where it and they have names below.
    """
    rows = [list(cells.row(row - 1)) for row in header]
    for at, (row, number) in enumerate(zip(rows, header, strict=True)):
        merged = [merge for merge in merges if merge.top == number]
        for merge in merged:
            row[merge.left - 1 : merge.right] = [row[merge.left - 1]] * (
                len(row[merge.left - 1 : merge.right])
            )
        below = [any(cells_below) for cells_below in zip(*rows[at + 1 :], strict=True)]
        for place in range(1, len(row) if below and not merged else 0):
            if row[place] is None and below[place] and below[place - 1]:
                row[place] = row[place - 1]
    return [
        " ".join(dict.fromkeys(filter(None, column))) or None for column in zip(*rows, strict=True)
    ]


def recognise(cells: pl.DataFrame, merges: Sequence[Merge]) -> tuple[dict[str, str], list[str]]:
    """Propose what to state under `[reading]` for a sheet without a plain header.

    Returns:
        The keys `header_row` and `skip`, as far as they are needed, and what was seen, in words.
    """
    filled = [[cell is not None for cell in row] for row in cells.head(MOST_TITLES + 4).rows()]
    counts = cells.select(pl.sum_horizontal(pl.all().is_not_null())).to_series().to_list()
    first = next(row for row, count in enumerate(counts) if count)
    used = [place for place, column in enumerate(cells) if column.null_count() < column.len()]

    def spread(row: int) -> list[bool]:
        own = [merge for merge in merges if merge.top == row + 1 == merge.bottom]
        return [
            filled[row][place] or any(m.left <= place + 1 <= m.right for m in own) for place in used
        ]

    def is_title(row: int) -> bool:
        names = [cell for cell in cells.row(row) if cell is not None]
        if 2 * sum(map(_is_amount, names)) >= len(names):
            return True
        spans_row = any(m.top == row + 1 and m.right - m.left + 1 >= len(used) > 1 for m in merges)
        return spans_row or 2 * sum(spread(row)) <= len(used)

    start = next((row for row in range(first, len(filled)) if not is_title(row)), first)
    header = [start + 1]
    while len(header) < MOST_HEADERS and start + len(header) < len(filled):
        last, following = header[-1] - 1, header[-1]
        parents = any(m.top == last + 1 == m.bottom and m.right > m.left for m in merges)
        parents |= any(m.top == last + 1 < m.bottom for m in merges)
        unnamed = [p for p in used if not any(filled[row - 1][p] for row in header)]
        named = {p for p in used if filled[following][p]}
        texts = not any(_is_amount(cell) for cell in cells.row(following) if cell is not None)
        split = bool(unnamed) and {*unnamed} <= named and len(named) < len(used)
        if not texts or not (parents or split):
            break
        header.append(following + 1)
    skip = _below(cells, counts, header[-1], len(used))
    seen = []
    if start > first:
        seen.append(f"{count_noun(start - first, 'title row')} above the header")
    if len(header) > 1:
        seen.append(f"names of columns in rows {header[0]} to {header[-1]}")
    if skip:
        seen.append(f"a total or a note from row {skip[0]} on")
    if not seen:
        return {}, []
    stated = {"header_row": _write_rows(header), "skip": _write_rows(skip)}
    return {key: rows for key, rows in stated.items() if rows}, seen


def _is_amount(cell: str) -> bool:
    """Whether a cell is a number other than a year, which may name a column."""
    return is_number(cell) and not re.fullmatch(r"(19|20)\d\d", cell)


def _below(cells: pl.DataFrame, counts: Sequence[int], header: int, used: int) -> list[int]:
    """Rows at the end that are totals or notes, and the empty rows before them.

    A note is one text, and stands below an empty row or a total; else it is a record.
    """
    end = max(row for row, count in enumerate(counts) if count) + 1
    numbers = cells[header:].cast(pl.Float64, strict=False)
    skip: list[tuple[int, bool]] = []
    for row in range(end, max(end - MOST_NOTES, header + 1), -1):
        texts = [cell for cell in cells.row(row - 1) if cell is not None]
        total = bool(texts) and TOTAL.fullmatch(texts[0]) and any(map(is_number, texts[1:]))
        note = len(texts) == 1 and used > 2 and not is_number(texts[0])
        if texts and not total and not note and not _adds_up(numbers.head(row - header)):
            break
        skip.insert(0, (row, note))
    return [row for row, _ in dropwhile(lambda pair: pair[1], skip)]


def _adds_up(numbers: pl.DataFrame) -> bool:
    """Whether most numbers of the last row are the sums of their columns, whatever it is called."""
    rows, last = numbers.head(-1), numbers.row(-1)
    sums = [
        math.isclose(column.sum(), amount, rel_tol=1e-9)
        for column, amount in zip(rows, last, strict=True)
        if amount and column.count() >= FEWEST_ADDED
    ]
    return 2 * sum(sums) > len(sums)


def _write_rows(rows: Sequence[int]) -> str:
    """Write row numbers in the form that `numbers_of` reads."""
    if len(rows) > 2 and rows[-1] - rows[0] == len(rows) - 1:
        return f"{rows[0]}-{rows[-1]}"
    return ",".join(map(str, rows))

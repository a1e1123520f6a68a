"""Plain CSV files, read in one pass: numbers as numbers, and texts by their distinct cells.

A file is plain if no cell is in quotes and every row has as many cells as the header. Most of its
cells are then numbers or categories, and neither has to become a text first. A cell is taken for a
number only in its shortest spelling, so equal numbers of a column are equal texts. `validate` says
what becomes of a cell, and of a table that it refuses it sees the texts.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from shoal.core import Column, Kind, Role, Schema
from shoal.core._arrays import Ints, Unsigned64
from shoal.errors import InputError
from shoal.io.kernels.csv_cells import (
    DIGITS,
    FRACTION,
    MISSING,
    OTHER,
    PAST,
    TEXT,
    WHOLE,
    count_lines,
    read_cells,
)
from shoal.io.raw import Raw
from shoal.io.table import Table
from shoal.io.validate import leaving, marked_missing, persons_of, typed, validate

LONG = 1 << 20
"""From so many bytes on, loading a kernel pays."""
_TEXTS, _SLOTS = 1 << 10, 1 << 12
"""The most distinct texts that a column is coded by, and the slots of its hash table."""
_WIDEST = 1000
"""The most columns that each have such a table."""
_POWERS = np.array([float(10**decimals) for decimals in range(DIGITS)])


@dataclass(frozen=True, eq=False)
class CodedTexts:
    """A column of few different texts.

    Attributes:
        texts: each once.
        codes: which of them a row has, or null.
    """

    texts: pl.Series
    codes: pl.Series

    def changed(self, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
        """Change every cell by itself: each text once."""
        return change(self.texts).gather(self.codes)


Cells = Mapping[str, pl.Series | CodedTexts]


class PlainRaw(Raw):
    """A table of a plain CSV file; its frame, of texts, is read when somebody asks for it.

    Attributes:
        cells: its columns as they were read.
    """

    cells: Cells
    _read: Callable[[], pl.DataFrame]

    def __init__(self, cells: Cells, texts: Callable[[], pl.DataFrame], **facts: Any) -> None:
        super().__init__(pl.DataFrame(), **facts, alone=False)
        del self.__dict__["frame"]
        self.__dict__.update(cells=cells, _read=texts)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cells as texts."""
        return self._read()

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return tuple(self.cells)

    @property
    def height(self) -> int:
        """How many rows there are."""
        first = self.cells[self.names[0]]
        return (first.codes if isinstance(first, CodedTexts) else first).len()


def read_plain(raw: bytes, *, start: int, separator: str, names: Sequence[str]) -> Cells | None:
    """Read a CSV file by columns if it is plain; else None.

    Args:
        raw: the file, in UTF-8.
        start: where its first row begins.
        separator: what stands between cells.
        names: of the columns.
    """
    if not 2 <= len(names) <= _WIDEST or b'"' in raw:
        return None
    cells = np.empty(len(raw) + PAST, np.uint8)
    cells[:-PAST] = np.frombuffer(raw, np.uint8)
    cells[-PAST:] = ord("\n")
    width = len(names)
    words = np.empty((width, count_lines(cells[start:-PAST]) + 1), np.int64)
    columns = np.zeros((4, width), np.int64)
    places = np.empty((3, width, _TEXTS), np.uint64)
    rows = read_cells(
        cells, start, ord(separator), _POWERS, columns,
        words, words.view(np.float64), np.zeros((width, _SLOTS), np.uint32), places,
    )  # fmt: skip
    sorts, missing, found, _ = columns.tolist()
    others = [i for i, sort in enumerate(sorts) if sort == OTHER]
    if rows < 1 or 2 * len(others) > width:
        return None
    made: dict[str, pl.Series | CodedTexts] = {}
    try:
        rest = read_texts(raw, separator, others)[1:] if others else pl.DataFrame()
        for i, (name, sort) in enumerate(zip(names, sorts, strict=True)):
            if sort == OTHER:
                made[name] = rest.to_series(others.index(i)).alias(name)
            elif sort == TEXT:
                made[name] = _coded(name, raw, words[i, :rows], places[1:, i, : found[i]])
            else:
                made[name] = _numbers(name, words[i, :rows], sort, missing[i])
    except (PolarsError, UnicodeDecodeError):
        return None
    return made


def read_texts(raw: bytes, separator: str, columns: list[int] | None = None) -> pl.DataFrame:
    """The cells of a CSV file as texts, by Polars; the first row is the header."""
    return pl.read_csv(
        raw,
        separator=separator,
        infer_schema=False,
        has_header=False,
        null_values="",
        columns=columns,
    )


def _numbers(name: str, words: Ints, sort: int, missing: int) -> pl.Series:
    if sort == FRACTION:
        return pl.Series(name, words.view(np.float64), nan_to_null=missing > 0)
    if sort == WHOLE:
        return _with_missing(pl.Series(name, words), words)
    return pl.Series(name, [None], dtype=pl.String).new_from_index(0, words.size)


def _with_missing(series: pl.Series, words: Ints) -> pl.Series:
    gone = words == MISSING
    return series.set(pl.Series(gone), None) if gone.any() else series


def _coded(name: str, raw: bytes, words: Ints, places: Unsigned64) -> CodedTexts:
    texts = [raw[begin:end].decode() for begin, end in places.T.tolist()]
    codes = _with_missing(pl.Series(words.astype(np.uint32)), words)
    return CodedTexts(pl.Series(name, texts, dtype=pl.String), codes)


def validated(raw: Raw, schema: Schema, *, decimal: str | None) -> Table:
    """`validate` for a table that was read: the same, whether its cells are texts or not."""
    columns = tuple(column for column in schema.columns if column.role is not Role.IDENTIFIER)
    if isinstance(raw, PlainRaw) and columns and set(raw.names) == set(schema.names):
        # What does not fit is said of the texts.
        with suppress(InputError):
            return _quickly(raw, schema, Schema(columns), decimal)
    return validate(raw.frame, schema, decimal=decimal)


def _quickly(raw: PlainRaw, schema: Schema, kept: Schema, decimal: str | None) -> Table:
    persons = None
    if schema.persons is not None:
        persons = persons_of(_texts(raw, schema.persons.column).to_frame(), schema)
    names = [name for name in raw.names if name in kept.names]
    dtypes = {name: leaving(pl.String(), kept[name]) for name in names}
    frame = pl.DataFrame([_typed(raw, kept[name], decimal) for name in names]).rechunk()
    return Table(frame, kept, dtypes, persons=persons)


def _typed(raw: PlainRaw, column: Column, decimal: str | None) -> pl.Series:
    cells = raw.cells[column.name]
    if isinstance(cells, CodedTexts):
        return cells.changed(lambda texts: typed(texts, column, decimal))
    pointed = cells.dtype == pl.Float64 and decimal == ","  # a point is then another mark
    if column.kind is Kind.NUMERIC and not column.missing and not pointed:
        return typed(cells, column, decimal)
    return typed(_texts(raw, column.name), column, decimal)


def _texts(raw: PlainRaw, name: str) -> pl.Series:
    """A column as texts; how a fraction was spelled, only the file says."""
    cells = raw.cells[name]
    if isinstance(cells, CodedTexts):
        return cells.changed(lambda texts: texts)
    return raw.frame[name] if cells.dtype == pl.Float64 else cells.cast(pl.String)


def apart(raw: Raw, column: Column) -> pl.Series:
    """The cells of a column as they came, or others that are equal where these are equal.

    Those that the policy lists under `missing` are missing.
    """
    if not isinstance(raw, PlainRaw):
        return marked_missing(raw.frame[column.name], column)
    cells = raw.cells[column.name]
    if isinstance(cells, CodedTexts):
        kept = marked_missing(cells.texts, column).is_not_null().to_numpy()
        numbers = pl.Series(column.name, np.arange(kept.size)).set(pl.Series(~kept), None)
        return numbers.gather(cells.codes)
    return marked_missing(_texts(raw, column.name), column) if column.missing else cells

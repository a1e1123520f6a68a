"""Records of a CSV file: line by line for an epsilon release, otherwise with quoted line breaks.

A quote that is never closed makes one cell of all lines behind it. So for an epsilon release one
line is one record, whatever it holds: a line that is not well formed is a record of missing cells,
and no line changes how another is read. Otherwise a cell may have several lines, and a file that is
not well formed is refused with the number of the line.
"""

import csv
import io
import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from shoal.errors import InputError


def read_lines(lines: Sequence[str], separator: str, width: int) -> pl.DataFrame:
    """Parse each line by itself; a malformed line is a record of missing cells.

    A line is well formed if it has `width` cells and each quote that begins a cell is closed at the
    end of that cell. A quote inside a cell that does not begin with one is text.
    """
    text = pl.Series(lines, dtype=pl.String)
    quoted = text.str.contains('"', literal=True)
    cut = text.str.count_matches(re.escape(separator)) == width - 1
    odd = (quoted | ~cut).arg_true()
    text = text.scatter(odd, [_write_line(lines[row], separator, width) for row in odd])
    return read_texts("\n".join(["", *text, ""])[1:].encode(), separator, width)


def _write_line(line: str, separator: str, width: int) -> str:
    """Rewrite a line in one form for all parsers; the cells of a malformed line are missing."""
    try:
        cells = next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        cells = []
    written = io.StringIO()
    if len(cells) == width and any(cells):
        csv.writer(written, delimiter=separator, lineterminator="").writerow(cells)
    return written.getvalue() or separator * (width - 1)


def read_texts(raw: bytes, separator: str, width: int) -> pl.DataFrame:
    """Read the cells of a CSV file without a header as texts."""
    return pl.read_csv(
        raw,
        separator=separator,
        schema={f"c{place}": pl.String for place in range(width)},
        has_header=False,
        null_values="",
    )


def read_strictly(raw: bytes, separator: str, width: int) -> pl.DataFrame:
    """Read the header and the cells of a file as texts, or refuse its first malformed line.

    Blank lines are left out; in a table of one column they are missing cells.
    """
    try:
        frame = read_texts(raw, separator, width)
    except PolarsError:
        _refuse_line(raw, separator, width)
        raise
    if width == 1:
        return frame
    plain = re.sub(rb'"[^"]*"', b"\0", raw) if b'"' in raw else raw
    mark = separator.encode()
    # Polars accepts short rows and blank lines. Without quoted parts, each delimiter ends a cell.
    marks = np.count_nonzero(np.frombuffer(plain, np.uint8) == ord(mark))
    if marks == frame.height * (width - 1):
        return frame
    lines = plain.replace(b"\r\n", b"\n").split(b"\n")
    filled = pl.Series([bool(line) for line in lines[: frame.height]])
    if filled.len() < frame.height or marks != filled.sum() * (width - 1):
        _refuse_line(raw, separator, width)
    return frame.filter(filled)


def _refuse_line(raw: bytes, separator: str, width: int) -> None:
    """Refuse a file that is not well formed, with the number of its first such line."""
    lines = raw.decode(errors="replace").split("\n")
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    first = 1
    try:
        for cells in rows:
            bare = rows.line_num == first and lines[first - 1].count('"') % 2
            if bare or len(cells) not in {0, width}:
                break
            first = rows.line_num + 1
    except csv.Error:  # a quote is never closed, and `first` is where it begins
        pass
    if width == 1 and first > 1:
        raise InputError(
            f"cells are split at {separator!r}, and so line 1 has one and line {first:,} more. "
            "Take out what stands above the header, if line 1 is a title, or else state another "
            "delimiter with --delimiter or under [reading]."
        )
    raise InputError(
        f"line {first:,} has another number of cells than the header, {width:,}, or a quote that "
        f"is not closed. Cells are split at {separator!r}. Correct the line, or state another "
        "delimiter."
    )

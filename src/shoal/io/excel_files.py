"""Excel workbooks, read through fastexcel.

Cells are read as text, each by itself, like those of a CSV file: the policy's kinds say what a
column is, and no cell decides how another is read. A day becomes `2023-09-17`, a time
`2023-09-17T08:30:00`, a truth value `true` or `false`; a formula is the value that was stored with
it; an error such as `#N/A` is a missing cell.

A workbook is a zip archive of XML, and may be hostile. One cell in the last row and column makes a
reader lay out 17 billion cells, and a long text is stored once for all the cells that show it. So
the archive is searched before the reader sees it.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any

import polars as pl

from shoal.errors import InputError, visible
from shoal.io.csv_files import check_header
from shoal.io.decoded_size import hold
from shoal.io.raw import Raw

EXCEL = (".xlsx", ".xlsm")
BOOK = "xl/workbook.xml"
CELL = 32
"""Bytes that the reader takes for a cell, beside its text."""
MOST_WORKBOOK = 16 << 20
"""Bytes of the list of sheets that are parsed."""
SHOWN = 10
"""Names of sheets that a message lists."""
CHUNK, TAIL = 1 << 20, 1 << 14
PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
TEXT = re.compile(rb"<(?:\w+:)?si[\s>]")
MERGED = re.compile(rb"""<(?:\w+:)?mergeCell\s[^>]*?ref\s*=\s*["']([A-Z]{1,3}[0-9]+:[A-Z0-9]+)""")
UNSTORED = re.compile(
    rb"""<c\b(?![^>]*t="str")[^>]*>\s*<f\b[^>]*?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>"""
)
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
           LookupError)  # fmt: skip


@dataclass
class _Facts:
    """What a part of the archive says of its cells."""

    rows: int = 0
    columns: int = 0
    cells: int = 0
    longest: int = 0
    merged: str = ""
    unstored: bool = False


def read_excel(path: Path, sheet: str | None, *, alone: bool, limit: int) -> Raw:
    """Read one sheet of a workbook: the one that is named, or the only one.

    For `alone` and `limit` see `shoal.io.files.read`.
    """
    library = _library()
    try:
        parts, homes = _searched(path, limit)
    except InputError:
        raise
    except DAMAGED:
        raise InputError(
            f"Cannot read '{path}' as an Excel workbook: the file is damaged, encrypted or of "
            "another format. Save it as .xlsx without a password."
        ) from None
    try:
        book = library.read_excel(str(path))
        name = _chosen(path, book.sheet_names, sheet)
        _refuse_odd(path, parts.get(homes.get(name, ""), _Facts()), alone=alone)
        rows = book.load_sheet(name, header_row=None, dtypes="string").to_polars()
    except library.FastExcelError:  # Its messages may quote cells.
        raise InputError(
            f"Cannot read '{path}' as an Excel workbook: the file is damaged. Open it and save it "
            "again."
        ) from None
    found = f"the sheet '{visible(name)}'"
    return Raw(_table(path, name, rows), found=found, reading={"sheet": name})


def sheets(path: Path) -> tuple[str, ...]:
    """The names of the sheets of a workbook; none where it is not one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(_homes(archive))
    except DAMAGED:
        return ()


def _library() -> Any:
    try:
        import fastexcel  # noqa: PLC0415 (optional)
    except ImportError:
        raise InputError(
            "Excel workbooks need the extra 'excel': pip install 'shoal[excel]'."
        ) from None
    return fastexcel


def _chosen(path: Path, names: Sequence[str], sheet: str | None) -> str:
    """The sheet to read. Names of sheets are shown, as names of columns are; cells never."""
    if sheet in names:
        return str(sheet)
    if sheet is None and len(names) == 1:
        return names[0]
    listed = ", ".join(f"'{visible(name)}'" for name in names[:SHOWN])
    listed += f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    if sheet is None:
        raise InputError(
            f"'{path}' has {len(names)} sheets: {listed}. Choose one with --sheet or with "
            "'sheet' under [reading], or save it as a workbook of its own."
        )
    raise InputError(f"'{path}' has no sheet '{visible(sheet)}'. It has {listed}.")


def _refuse_odd(path: Path, facts: _Facts, *, alone: bool) -> None:
    if facts.merged:
        raise InputError(
            f"'{path}' has merged cells at {facts.merged}; expected one name above each column and "
            "one cell per value. Unmerge them, and fill the empty cells."
        )
    if facts.unstored and not alone:
        raise InputError(
            f"'{path}' has formulas without a stored value. Open the workbook in a spreadsheet "
            "program and save it, so the values are stored."
        )


def _table(path: Path, name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows below the header, without blank rows and blank columns, in the form of a CSV."""
    rows = rows.with_columns(pl.all().replace("", None))
    rows = rows.filter(~pl.all_horizontal(pl.all().is_null())) if rows.width else rows
    if not rows.height:
        raise InputError(
            f"The sheet '{visible(name)}' of '{path}' is empty; expected a header and one row per "
            "person."
        )
    header = rows.row(0)
    body = rows[1:]
    kept = [
        place
        for place, title in enumerate(header)
        if title is not None or body.to_series(place).null_count() < body.height
    ]
    names = [header[place] or "" for place in kept]
    check_header(names, path)
    day = pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "${1}")
    time = day.str.replace(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$", "${1}T${2}")
    return body[:, kept].rename(dict(zip(body[:, kept].columns, names, strict=True))).select(time)


def stated_size(path: Path) -> int | None:
    """Bytes of all that is packed in a workbook, as it says; none where it is not a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.getinfo(BOOK)
            return sum(part.file_size for part in archive.infolist())
    except (*DAMAGED, OSError):
        return None


def _searched(path: Path, limit: int) -> tuple[dict[str, _Facts], dict[str, str]]:
    """What the parts of the archive say, and which part is which sheet; refuse a bomb."""
    with zipfile.ZipFile(path) as archive:
        hold(sum(part.file_size for part in archive.infolist()), path, limit)
        parts = {}
        for part in archive.infolist():
            with archive.open(part) as file:  # which ends where the stated size does
                parts[part.filename] = _facts(file)
        homes = _homes(archive)
    cells = max((one.cells for one in parts.values()), default=0)
    longest = max((one.longest for one in parts.values()), default=0)
    dense = max((one.rows * one.columns for one in parts.values()), default=0)
    hold(max(CELL * dense, cells * longest), path, limit)
    return parts, homes


def _facts(file: IO[bytes]) -> _Facts:
    facts = _Facts()
    since = 0
    for new, window in _windows(file):
        for letters, row in PLACE.findall(window):
            facts.rows = max(facts.rows, int(row))
            facts.columns = max(facts.columns, _column(letters))
            facts.cells += 1
        starts = [found.start() for found in TEXT.finditer(window, len(window) - new)]
        ends = [len(window) - new, *starts, len(window)]
        spans = [end - start for start, end in pairwise(ends)]
        spans[0] += since
        facts.longest = max(facts.longest, *spans) if starts or facts.longest else facts.longest
        since = spans[-1]
        if not facts.merged and (merged := MERGED.search(window)):
            facts.merged = merged[1].decode()
        facts.unstored = facts.unstored or UNSTORED.search(window) is not None
    return facts


def _windows(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The file in pieces, each with the end of the one before; the bytes that are new."""
    tail = b""
    while chunk := file.read(CHUNK):
        window = tail + chunk
        yield len(chunk), window
        tail = window[-TAIL:]


def _column(letters: bytes) -> int:
    """The number of a column.

    >>> _column(b"A"), _column(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _homes(archive: zipfile.ZipFile) -> dict[str, str]:
    """Which part of the archive holds which sheet."""
    book, links = BOOK, "xl/_rels/workbook.xml.rels"
    if max(archive.getinfo(name).file_size for name in (book, links)) > MOST_WORKBOOK:
        raise ValueError
    targets = {
        tag.get("Id"): tag.get("Target", "") for tag in _tags(archive, links, "Relationship")
    }
    return {
        tag.get("name", ""): _path(targets.get(tag.get("id"), ""))
        for tag in _tags(archive, book, "sheet")
    }


def _tags(archive: zipfile.ZipFile, part: str, name: str) -> Iterator[dict[str, str]]:
    """The attributes of all tags of a name, by their own names without prefixes."""
    text = archive.read(part).decode()
    for tag in re.finditer(rf"<(?:\w+:)?{name}\s([^>]*)>", text):
        pairs = re.findall(r"""([\w]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag[1])
        yield {key: unescape(one or other) for key, one, other in pairs}


def _path(target: str) -> str:
    return target[1:] if target.startswith("/") else str(PurePosixPath("xl") / target)

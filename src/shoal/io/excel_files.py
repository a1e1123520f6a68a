"""Excel workbooks, read through fastexcel and written through XlsxWriter.

Cells are read as text, each by itself, like those of a CSV file: the policy's kinds say what a
column is, and no cell decides how another is read. A day becomes `2023-09-17`, a time
`2023-09-17T08:30:00`, a truth value `true` or `false`; a formula is the value that was stored with
it; an error such as `#N/A` is a missing cell.

A workbook is a zip archive of XML, and may be hostile. A cell in the last row and column makes a
reader allocate 17 billion cells, and a long text is stored once for all cells with that text. So
the archive is searched before the reader sees it. Bytes are added up, each cell's own: one long
cell counts once, and does not multiply with the number of cells.
"""

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from html import unescape
from importlib import import_module
from io import BytesIO
from itertools import groupby
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import IO, Any

import polars as pl

from shoal.errors import InputError, UnfitTableError, count_noun, visible
from shoal.io.csv_files import check_header
from shoal.io.decoded_size import hold
from shoal.io.folders import temporary
from shoal.io.raw import Raw
from shoal.io.sheet_rows import Merge, StatedRows, find_filled_rows, names_in, numbers_of, recognise

EXCEL = (".xlsx", ".xlsm")
BOOK = "xl/workbook.xml"
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""The size of a sheet."""
MOST_WHOLE = 2**53
"""Up to here a workbook, whose numbers are doubles, has every whole number."""
FIRST_DAY, WRITTEN = date(1900, 3, 1), datetime(2000, 1, 1)  # noqa: DTZ001 (of no zone)
"""The first day that all readers of workbooks agree on, and when every release was written."""
CELL = 32
"""Bytes that the reader takes for a cell, beside its text."""
MOST_WORKBOOK = 16 << 20
"""Bytes of the list of sheets that are parsed."""
LAST_FILLED = "whoever is in the sheet, its last row is not empty"
"""What an epsilon release assumes where the number of rows of a sheet is not stated."""
SHOWN = 10
"""Names of sheets that a message lists."""
CHUNK, TAIL = 1 << 20, 1 << 14
PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
WHOLE_CELL = re.compile(
    rb"""<(?:\w+:)?c\s[^>]*?\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["'][^>]*?"""
    rb"""(?:/>|>.*?</(?:\w+:)?c>)""",
    re.DOTALL,
)
CONTENT = re.compile(rb"<(?:\w+:)?[vt](?:\s[^>]*)?>[^<]")
TEXT = re.compile(rb"<(?:\w+:)?si[\s/>]")
SHARED = re.compile(
    rb"""<(?:\w+:)?c\s[^>]*?\bt\s*=\s*["']s["'][^>]*>[^<]*(?:<(?!(?:\w+:)?[cv][\s>])[^<]*)*"""
    rb"""<(?:\w+:)?v(?:\s[^>]*)?>\s*([0-9]{1,9})"""
)
MERGED = re.compile(
    rb"""<(?:\w+:)?mergeCell\s[^>]*?ref\s*=\s*["'](([A-Z]{1,3})([0-9]+):([A-Z]{1,3})([0-9]+))"""
)
UNSTORED = re.compile(
    rb"""<c\b(?![^>]*t="str")[^>]*>\s*<f\b[^>]*?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>"""
)
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
           LookupError)  # fmt: skip


@dataclass
class _Facts:
    """What a part of the archive states about its cells.

    Attributes:
        texts: where each shared text begins, and where the part ends.
        used: the number of cells with each shared text, by its index.
    """

    rows: int = 0
    columns: int = 0
    merged: set[Merge] = field(default_factory=set)
    unstored: bool = False
    texts: list[int] = field(default_factory=list)
    used: Counter[int] = field(default_factory=Counter)


class UntidySheetError(InputError):
    """The header of a sheet is not one plain first row; the error suggests what to state."""

    reading: Mapping[str, str] = {}


def read_excel(
    path: Path,
    sheet: str | None,
    *,
    rows: int | None,
    alone: bool,
    limit: int,
    header_row: str | None = None,
    skip: str | None = None,
) -> Raw:
    """Read one sheet of a workbook: the named one, or the only one.

    For the other arguments see `shoal.io.files.read`.

    Raises:
        UntidySheetError: rows above the header, a header in several rows, or rows below the
            records, none of them stated, and cells are not read alone.
    """
    stated = StatedRows(numbers_of(header_row), numbers_of(skip))
    library = _library("fastexcel")
    try:
        source, parts, homes = _search_archive(path, limit, alone=alone, header=stated.header)
    except InputError:
        raise
    except DAMAGED:
        raise InputError(
            f"Cannot read '{path}' as an Excel workbook: the file is damaged, encrypted or of "
            "another format. Save it as .xlsx without a password."
        ) from None
    try:
        book = library.read_excel(source)
        name = _choose_sheet(path, book.sheet_names, sheet)
        facts = parts.get(homes.get(name, ""), _Facts())
        load = partial(book.load_sheet, name, header_row=None, skip_rows=0)
        cells = _exact(*(load(dtypes=dtype).to_polars() for dtype in ("string", "float")))
    except library.FastExcelError:  # Its messages may quote cells.
        raise InputError(
            f"Cannot read '{path}' as an Excel workbook: the file is damaged. Open it and save it "
            "again."
        ) from None
    description = f"the sheet '{visible(name)}'"
    cells = cells.with_columns(pl.all().replace("", None))
    if not alone:
        _refuse_odd(path, cells, facts, stated)
    table = _table(path, name, cells, replace(stated, merges=(*facts.merged,), records=rows),
                   alone=alone)  # fmt: skip
    given = {"sheet": name, "header_row": header_row, "skip": skip}
    reading = {key: text for key, text in given.items() if text}
    assumes = (LAST_FILLED,) if alone and rows is None else ()
    return Raw(table, found=description, reading=reading, alone=alone, assumes=assumes)


def sheets(path: Path) -> tuple[str, ...]:
    """List the names of a workbook's sheets; empty if the file is not a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(_homes(archive))
    except DAMAGED:
        return ()


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            "Excel workbooks need the extra 'excel': pip install 'shoal[excel]'."
        ) from None


class _AllDigits(float):
    """A float written with all digits needed to restore it; XlsxWriter would write sixteen."""

    def __format__(self, _: str) -> str:
        return repr(float(self))


def check_writable(names: Sequence[str]) -> None:
    """Refuse column names that could not be read back as a header."""
    _library("xlsxwriter")
    check_header(names, Path("release.xlsx"))


def write_excel(frame: pl.DataFrame, path: Path, about: str | None) -> None:
    """Write a table as a workbook of one sheet; the same table gives the same bytes.

    Text is never written as a formula or a link. A column with whole numbers beyond 2^53, or with
    days before March 1900, on which spreadsheets disagree, is written as texts; so is each infinite
    number.
    """
    library = _library("xlsxwriter")
    unfit = frame.height >= MOST_ROWS or frame.width > MOST_COLUMNS
    with temporary() as place:
        options = {"constant_memory": True, "tmpdir": str(place)}
        try:
            with library.Workbook(str(path), options) as book:
                book.set_properties({"created": WRITTEN, "comments": about or ""})
                sheet = book.add_worksheet("release")
                day = book.add_format({"num_format": "yyyy-mm-dd"})
                put = {
                    int: sheet.write_number,
                    float: lambda row, at, cell: sheet.write_number(row, at, _AllDigits(cell)),
                    bool: sheet.write_boolean,
                    date: partial(sheet.write_datetime, cell_format=day),
                    str: sheet.write_string,
                }
                rows = pl.DataFrame([*map(_storable, frame)]).iter_rows()
                for row, cells in enumerate((frame.columns, *(() if unfit else rows))):
                    for at, cell in enumerate(cells):
                        odd = type(cell) is float and not isfinite(cell)
                        text = str(cell) if odd else cell
                        unfit |= cell is not None and put[type(text)](row, at, text) != 0
        except library.exceptions.XlsxWriterException:
            raise InputError(f"Cannot write '{path.name}': the disk refuses it.") from None
    if unfit:
        raise UnfitTableError(
            "A sheet of Excel has no room for this release: it holds 1,048,575 records of 16,384 "
            "columns, and 32,767 characters in a cell. Choose --file-format parquet or csv."
        )


def _storable(column: pl.Series) -> pl.Series:
    """Return a column in a type that a workbook can hold exactly, or else as texts."""
    dtype = column.dtype
    if isinstance(dtype, pl.Decimal):
        return column.cast(pl.Float64)
    fits = dtype.is_float() or dtype == pl.Boolean
    if dtype.is_integer():
        fits = column.cast(pl.Int128).is_between(-MOST_WHOLE, MOST_WHOLE).all()
    elif dtype == pl.Date:
        fits = not (column < FIRST_DAY).any()
    return column if fits else column.cast(pl.String)


def _choose_sheet(path: Path, names: Sequence[str], sheet: str | None) -> str:
    """Choose the sheet to read. Messages name sheets, as they name columns; never cells."""
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


def _refuse_odd(path: Path, cells: pl.DataFrame, facts: _Facts, stated: StatedRows) -> None:
    """Refuse everything that does not belong in a table, in one message, with what to state.

    Where cells are read alone, a merged cell is the first of its cells, and a formula without a
    value is missing.
    """
    reading: dict[str, str] = {}
    faults: list[str] = []
    filled = find_filled_rows(cells)
    if filled and not stated.header and not stated.skip:
        reading, seen = recognise(cells, sorted(facts.merged, key=lambda one: (one.top, one.left)))
        if seen:
            options = " ".join(f"--{key.replace('_', '-')} {rows}" for key, rows in reading.items())
            lines = ", ".join(f'{key} = "{rows}"' for key, rows in reading.items())
            faults.append(
                f"It seems to have {', '.join(seen)}. If so, state {options}, or under [reading]: "
                f"{lines}. If not, state --header-row {filled[0]}."
            )
    header = (*stated.header, *numbers_of(reading.get("header_row")))
    skip = {*stated.skip, *numbers_of(reading.get("skip"))}
    body = [m for m in facts.merged if m.bottom > max(header, default=0) and m.top not in skip]
    if body:
        places = ", ".join(sorted(cell.place for cell in body)[:SHOWN])
        faults.append(
            f"It has merged cells at {places}; expected one name above each column and one cell "
            "per value. Unmerge them, and fill the empty cells."
        )
    if facts.unstored:
        faults.append(
            "It has formulas without a stored value. Open the workbook in a spreadsheet program "
            "and save it, so the values are stored."
        )
    if faults:
        error = UntidySheetError(f"'{path}' is not read. {' '.join(faults)}")
        error.reading = {} if body or facts.unstored else reading
        raise error


def _exact(texts: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Write cells as texts with all their digits; the reader alone gives nine decimals."""
    return texts.with_columns(
        pl.when(text.cast(pl.Float64, strict=False) != number)
        .then(number.cast(pl.String))
        .otherwise(text)
        .alias(text.name)
        for text, number in zip(texts, numbers, strict=True)
        if number.dtype == pl.Float64
    )


def _table(
    path: Path, name: str, cells: pl.DataFrame, stated: StatedRows, *, alone: bool
) -> pl.DataFrame:
    """Return the rows below the header as CSV: the stated number, or up to the last cell.

    An empty row between them is a record. A column without a name is left out if it is empty; where
    cells are read alone, always.
    """
    rows, filled = stated.records, find_filled_rows(cells)
    if stated.header and stated.header[-1] > cells.height:
        raise InputError(
            f"The sheet '{visible(name)}' of '{path}' has {count_noun(cells.height, 'row')}; "
            "expected its header where --header-row or [reading] states it."
        )
    if not filled:
        raise InputError(
            f"The sheet '{visible(name)}' of '{path}' is empty; expected a header and one row per "
            "person."
        )
    header_rows = stated.header or filled[:1]
    header = names_in(cells, header_rows, stated.merges)
    number = pl.int_range(1, cells.height + 1, eager=True)
    body = cells.filter((number > header_rows[-1]) & ~number.is_in([*stated.skip]))
    body = body.head(max(find_filled_rows(body), default=0))
    if rows is not None:
        rows = min(rows, MOST_ROWS)
        if body.height > rows:
            raise InputError(
                f"The sheet '{visible(name)}' of '{path}' has cells below the {rows:,} rows that "
                "[reading] states. Correct the number, or remove those cells."
            )
        body = pl.concat([body, body.clear(rows - body.height)])
    titled = [
        place
        for place, title in enumerate(header)
        if title is not None or (not alone and body.to_series(place).null_count() < body.height)
    ]
    names = [header[place] or "" for place in titled]
    check_header(names, path)
    day = pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "${1}")
    time = day.str.replace(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$", "${1}T${2}")
    body = body[:, titled]
    return body.rename(dict(zip(body.columns, names, strict=True))).select(time)


def read_stated_size(path: Path) -> int | None:
    """Return the unpacked size that a workbook states; None if the file is not a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.getinfo(BOOK)
            return sum(part.file_size for part in archive.infolist())
    except (*DAMAGED, OSError):
        return None


def _search_archive(
    path: Path, limit: int, *, alone: bool, header: Sequence[int]
) -> tuple[Path | bytes, dict[str, _Facts], dict[str, str]]:
    """Refuse a zip bomb; return the file to read, what its parts state, and the part of each sheet.

    Where cells are read alone, cells beside the header are left out before: they are in no column,
    and the reader would lay out all columns up to one of them in every row.
    """
    with zipfile.ZipFile(path) as archive:
        hold(sum(part.file_size for part in archive.infolist()), path, limit)
        source: Path | bytes = path
        parts, homes = _part_facts(archive), _homes(archive)
        widths = {name: _header_width(archive, name, header) for name in parts if alone}
        if any(parts[name].columns > width > 0 for name, width in widths.items()):
            source = _narrow(archive, widths)
            parts = _part_facts(zipfile.ZipFile(BytesIO(source)))
    hold(_sum_decoded_bytes(parts), path, limit)
    return source, parts, homes


def _part_facts(archive: zipfile.ZipFile) -> dict[str, _Facts]:
    parts = {}
    for part in archive.infolist():
        with archive.open(part) as file:  # which ends where the stated size does
            parts[part.filename] = _facts(file)
    return parts


def _sum_decoded_bytes(parts: Mapping[str, _Facts]) -> int:
    shared = [part.texts for part in parts.values() if part.texts]
    texts = max((_text_bytes(part.used, at) for part in parts.values() for at in shared), default=0)
    return CELL * max((part.rows * part.columns for part in parts.values()), default=0) + texts


def _header_width(archive: zipfile.ZipFile, name: str, stated: Sequence[int]) -> int:
    """Return the last column of the stated header, or of the first row with a cell; 0 if none."""
    cells = (cell for cell in WHOLE_CELL.finditer(archive.read(name)) if CONTENT.search(cell[0]))
    if stated:
        return max((_column(cell[1]) for cell in cells if int(cell[2]) in stated), default=0)
    for _, header in groupby(cells, key=lambda cell: cell[2]):
        return max(_column(cell[1]) for cell in header)
    return 0


def _narrow(archive: zipfile.ZipFile, widths: Mapping[str, int]) -> bytes:
    """Copy the workbook without the cells beyond the header's width in each sheet."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as narrow:
        for name, width in widths.items():
            inside = partial(lambda cell, width: cell[0] * (_column(cell[1]) <= width), width=width)
            cells = archive.read(name)
            narrow.writestr(name, WHOLE_CELL.sub(inside, cells) if width else cells)
    return packed.getvalue()


def _text_bytes(used: Counter[int], starts: Sequence[int]) -> int:
    """Return the bytes of all cells' texts; `starts` says where each shared text begins."""
    known = (text for text in used if text < len(starts) - 1)
    return sum(used[text] * (starts[text + 1] - starts[text]) for text in known)


def _facts(file: IO[bytes]) -> _Facts:
    facts = _Facts()
    end = 0
    for new, window in _windows(file):
        start, end = end - (len(window) - new), end + new
        for letters, row in PLACE.findall(window):
            facts.rows = max(facts.rows, int(row))
            facts.columns = max(facts.columns, _column(letters))
        facts.used.update(map(int, SHARED.findall(window)))
        last = facts.texts[-1] if facts.texts else -1
        facts.texts += [at for tag in TEXT.finditer(window) if (at := start + tag.start()) > last]
        facts.merged.update(_merge(*merged.groups()) for merged in MERGED.finditer(window))
        facts.unstored = facts.unstored or UNSTORED.search(window) is not None
    facts.texts += [end] if facts.texts else []
    return facts


def _windows(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield a file in overlapping pieces, each with its number of new bytes."""
    tail = b""
    while chunk := file.read(CHUNK):
        window = tail + chunk
        yield len(chunk), window
        tail = window[-TAIL:]


def _merge(place: bytes, left: bytes, top: bytes, right: bytes, bottom: bytes) -> Merge:
    return Merge(place.decode(), int(top), _column(left), int(bottom), _column(right))


def _column(letters: bytes) -> int:
    """Convert a column's letters to its number.

    >>> _column(b"A"), _column(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _homes(archive: zipfile.ZipFile) -> dict[str, str]:
    """Map each sheet's name to its part of the archive."""
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
    """Yield the attributes of each tag of a name, without namespace prefixes."""
    text = archive.read(part).decode()
    for tag in re.finditer(rf"<(?:\w+:)?{name}\s([^>]*)>", text):
        pairs = re.findall(r"""([\w]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag[1])
        yield {key: unescape(quoted or other) for key, quoted, other in pairs}


def _path(target: str) -> str:
    return target[1:] if target.startswith("/") else str(PurePosixPath("xl") / target)

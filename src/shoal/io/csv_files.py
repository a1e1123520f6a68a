"""CSV files.

They are read as text: the policy's kinds say what each column is, and `validate` parses it. So a
number that is not one is counted, and not guessed at. `csv_records` says what a record is.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from polars import selectors

from shoal.errors import InputError
from shoal.io.csv_records import read_lines, read_strictly
from shoal.io.raw import Raw, check_names
from shoal.io.validate import is_number, parse_numbers

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 16
FOREIGN = {b"\x1f\x8b": "a gzip archive", b"PK\x03\x04": "a zip archive or an Excel workbook",
           b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file",
           b"\xd0\xcf\x11\xe0": "an old Excel workbook"}  # fmt: skip
"""What a file is whose first bytes are these, and CSV it is not."""
FORMULA = "'*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
"""How text begins that a spreadsheet would run, the wide forms of the signs included; or text that
has apostrophes before such a sign already."""
STATEFUL = ("iso2022", "hz", "utf-7", "raw-unicode", "idna")
"""Encodings in which a byte decides how all that follow are read, or writes the end of a line."""
CLOSED_QUOTES = "whoever is in the file, every quote in it is closed"
"""What an epsilon release assumes where cells of a CSV file have several lines."""
MALFORMED = "a line has another number of cells than the header, or a quote is not closed."
GUARDED = (
    "In the file, text that starts with = + - @ or a tab has an apostrophe before it, so a "
    "spreadsheet does not run it. Shoal removes it when it reads the file beside its manifest."
)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; it is always quoted by `"` where it must be.

    Attributes:
        encoding: utf-8, or utf-8-sig: with a byte order mark, by which Excel knows UTF-8.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


PLAIN = Dialect()


@dataclass(frozen=True)
class WrittenRelease:
    """How a CSV file or a workbook of a release was written, as its manifest says.

    Attributes:
        types: the types of its columns.
        rows: how many records it has.
        dated: days are written as a workbook has them, and not in the form of the policy.
    """

    guarded: bool
    dialect: Dialect = PLAIN
    types: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    dated: bool = False

    def undone(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Undo the changes of writing: unguard texts, and read numbers with a decimal point."""
        frame = unguard_cells(frame) if self.guarded else frame
        if self.dated:
            days = [n for n in frame.columns if self.types.get(n) == "Date"]
            frame = frame.with_columns(pl.col(days).str.to_date("%Y-%m-%d", strict=False))
        if self.dialect.decimal == ".":
            return frame
        numbers = [n for n in frame.columns if re.match("Float|Decimal", self.types.get(n, ""))]
        return frame.with_columns(pl.col(numbers).str.replace(",", ".", literal=True))


def choose_dialect(
    *stated: Mapping[str, str | None], names: Iterable[str] = (), frame: pl.DataFrame | None = None
) -> Dialect:
    """Choose the dialect of a CSV release; where several places state a mark, the first wins.

    Args:
        stated: marks by their names, the place that decides first.
        names: columns of numbers.
        frame: the table, where the decimal mark may be found in its cells: never beside an epsilon.
    """
    marks = {
        key: next((place[key] for place in stated if place.get(key)), None)
        for key in ("delimiter", "decimal", "encoding")
    }
    if marks["decimal"] is None and frame is not None:
        marks["decimal"] = _find_decimal(frame, names)
    # Another encoding might lack a character of a released cell, after epsilon was spent.
    marked = (marks["encoding"] or "").lower().replace("_", "-") == "utf-8-sig"
    return Dialect(
        delimiter=check_delimiter(marks["delimiter"]) or ",",
        decimal=marks["decimal"] or ".",
        encoding="utf-8-sig" if marked else "utf-8",
    )


def _find_decimal(frame: pl.DataFrame, names: Iterable[str]) -> str:
    for name in names:
        if (
            frame.schema.get(name) != pl.String
            or not frame[name].str.contains(",", literal=True).any()
        ):
            continue
        lost = [parse_numbers(frame[name], decimal=mark).null_count() for mark in (".", ",")]
        if lost[1] < lost[0]:
            return ","
    return "."


def write_csv(frame: pl.DataFrame, path: Path, dialect: Dialect, *, guard_formulas: bool) -> None:
    """Write a table; text that a spreadsheet would run is guarded, unless stated otherwise."""
    (guard_cells(frame) if guard_formulas else frame).write_csv(
        path,
        separator=dialect.delimiter,
        decimal_comma=dialect.decimal == ",",
        include_bom=dialect.encoding == "utf-8-sig",
    )


def read_csv(
    path: Path,
    raw: bytes,
    *,
    delimiter: str | None,
    encoding: str | None,
    alone: bool,
    multiline: bool = False,
) -> Raw:
    """Read a CSV file as texts; for the arguments see `shoal.io.files.read`."""
    for mark, name in FOREIGN.items():
        if raw.startswith(mark):
            raise InputError(
                f"Expected '{path}' to be CSV; it is {name}. Unpack it, or rename it with the "
                "ending of its format."
            )
    known = encoding or find_encoding(raw, path, alone=alone)
    text = _decode(raw, known, path, alone=alone).lstrip("\r\n")
    if not text or text.isspace():
        raise InputError(f"'{path}' is empty; expected a header and one row per person.")
    by_line = alone and not multiline
    first = re.split("[\r\n]", text, maxsplit=1)[0] if by_line else header_line(text)
    if re.match("\r(?!\n)", text[len(first) : len(first) + 2]):
        text = text.replace("\n", " ") if by_line else text
        text = text.replace("\r", "\n")
    sample = first if alone else text[:SAMPLE]
    separator = check_delimiter(delimiter) or find_delimiter(sample)
    reading = {"delimiter": separator, "encoding": known}
    if not alone and separator == "," and '"' not in text:  # no cell has a comma
        reading["decimal"] = "."
    header = _header(first, separator, path)
    other = find_delimiter(sample)
    if not alone and len(header) == 1 and other != separator and other in first:
        raise InputError(
            f"Cannot read '{path}' as CSV: split at {separator!r}, each line is one cell. The file "
            f"seems to have the delimiter {other!r}: state it with --delimiter or under [reading]."
        )
    try:
        if by_line:
            lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")[1:]
            rows = read_lines(lines, separator, len(header))
        else:
            rows = read_strictly(text.encode(), separator, len(header))[1:]
    except InputError as error:
        where = f"Cannot read '{path}' as CSV"
        # The parser's line number would disclose something about the other lines.
        raise InputError(f"{where}: {MALFORMED if alone else error}") from None
    numbered = header[0] == "" and (all(header[1:]) if alone else _row_names(header, rows))
    if numbered:
        header, rows = header[1:], rows[:, 1:]
    check_names(header, f"'{path}'")
    description = f"{known}, delimiter {separator!r}"
    description += ", row numbers in the first column left out" if numbered else ""
    named = rows.rename(dict(zip(rows.columns, header, strict=True)))
    assumes = (CLOSED_QUOTES,) if alone and multiline else ()
    return Raw(named, found=description, reading=reading, alone=alone, assumes=assumes)


def _decode(raw: bytes, encoding: str, path: Path, *, alone: bool) -> str:
    """Decode a file. With `alone`, a byte that cannot be decoded spoils only its own cell.

    In a stateless encoding, no byte can absorb the line end behind it; a test tries all of them.
    """
    try:
        lines_are_bytes = "\n".encode(encoding) == b"\n"
        if not alone:
            return raw.decode(encoding).removeprefix("\ufeff")
    except (ValueError, LookupError):
        raise InputError(
            f"Cannot read '{path}' with the encoding '{encoding}'. State another one."
        ) from None
    stateful = codecs.lookup(encoding).name.startswith(STATEFUL)
    if stateful or (not lines_are_bytes and encoding != "utf-8-sig"):
        raise InputError(
            f"An epsilon release reads each line of '{path}' by itself, which the encoding "
            f"'{encoding}' does not allow. Save the file as UTF-8."
        )
    return raw.decode(encoding, "replace").removeprefix("\ufeff")


def _header(line: str, separator: str, path: Path) -> list[str]:
    """The names in the first line of a file."""
    try:
        header = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        raise InputError(
            f"Cannot read '{path}' as CSV: a quote in its header is not closed."
        ) from None
    _check_numbers(header, path)
    return header


def check_header(header: Sequence[str], path: Path) -> None:
    """Refuse a first row that holds no names, or names that are the same for a policy."""
    _check_numbers(header, path)
    check_names(header, f"'{path}'")


def _check_numbers(header: Sequence[str], path: Path) -> None:
    numbers = sum(is_number(name.replace(",", ".")) for name in header)
    if 2 * numbers > len(header):
        # A message that shows these names would show a person's cells.
        raise InputError(
            f"'{path}' seems to lack a header: {numbers} of the {len(header)} names in its first "
            "row are numbers. Add a row of column names."
        )


def header_line(text: str) -> str:
    """Return the first line of a CSV file without its line end; a line end in quotes is text."""
    quoted = False
    for end in re.finditer('["\r\n]', text):
        if end[0] == '"':
            quoted = not quoted
        elif not quoted:
            return text[: end.start()]
    return text


def _row_names(header: Sequence[str], rows: pl.DataFrame) -> bool:
    """Whether the first column has the unnamed row numbers that R and pandas write."""
    if len(header) < 2 or not all(header[1:]) or not rows.height:
        return False
    numbers = rows.to_series().cast(pl.Int64, strict=False)
    first = numbers[0]
    return first in {0, 1} and numbers.equals(
        pl.Series(numbers.name, range(first, first + rows.height), dtype=pl.Int64)
    )


def check_delimiter(delimiter: str | None) -> str | None:
    """Return the stated delimiter, or refuse it."""
    mark = "\t" if delimiter == r"\t" else delimiter
    if mark and (len(mark) > 1 or not mark.isascii() or mark in '"\r\n\0'):
        raise InputError(
            f"Expected one ASCII character other than a quote as delimiter, found {delimiter!r}."
        )
    return mark


def find_encoding(raw: bytes, path: Path, *, alone: bool = False) -> str:
    """Find the encoding: a byte order mark, then UTF-8, then Windows-1252 if it fits.

    Where cells are read `alone`, no record may decide the encoding: without a mark it is UTF-8.
    """
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"),
                       (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"),
                       (b"\xfe\xff", "utf-16")):  # fmt: skip
        if raw.startswith(mark):
            return name
    if alone:
        return "utf-8"
    if _is_utf8(raw) and b"\0" not in raw:
        return "utf-8"
    # Five bytes mean nothing in Windows-1252, and zero bytes are not text.
    if not set(raw).intersection(b"\x81\x8d\x8f\x90\x9d\0"):
        return "cp1252"
    raise InputError(
        f"Cannot find the encoding of '{path}': it is neither UTF-8 nor Windows-1252. State it "
        "with --encoding or under [reading]."
    )


def _is_utf8(raw: bytes) -> bool:
    if raw.isascii():  # much quicker to see
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def find_delimiter(sample: str) -> str:
    """Find the delimiter by which most of the first lines have as many cells as the header.

    Of several such delimiters, return the one with the most cells.
    """
    complete = sample.rsplit("\n", 1)[0] if sample.count("\n") > 1 else sample
    lines = complete.replace("\r", "")

    def cells(mark: str) -> int:
        rows = filter(None, csv.reader(io.StringIO(lines), delimiter=mark))
        first = len(next(rows, ()))
        if first < 2:  # the others need not be counted
            return 1
        widths = [first, *map(len, rows)]
        return first if 2 * widths.count(first) > len(widths) else 0

    widths = {mark: cells(mark) for mark in DELIMITERS}
    best = max(DELIMITERS, key=widths.__getitem__)
    return best if widths[best] > 1 else ","


def guard_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text that a spreadsheet would run as a formula, and before names.

    Text that looks guarded already gets one more, so two texts stay two, and `unguard_cells` gives
    back what was there.
    """
    text = selectors.by_dtype(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(f"^{FORMULA}")).then("'" + text).otherwise(text).name.keep()
    ).rename(lambda name: f"'{name}" if re.match(FORMULA, name) else name)


def unguard_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove the apostrophes that `guard_cells` added."""
    texts = [s for s in frame if s.dtype == pl.String and s.str.starts_with("'").any()]
    return frame.with_columns(s.str.replace(f"^'({FORMULA})", "${1}") for s in texts).rename(
        lambda name: re.sub(f"^'({FORMULA})", r"\1", name)
    )


def read_written_dialect(path: Path) -> WrittenRelease | None:
    """Look up how a released file was written, if a manifest lies beside it."""
    try:
        manifest = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        if path.name not in manifest["files"]:
            return None
        stated = manifest.get("dialect") or {}
        dialect = Dialect(**{key: str(mark) for key, mark in stated.items()})
        check_delimiter(dialect.delimiter)
        types = {str(name): str(dtype) for name, dtype in manifest.get("columns", {}).items()}
        guarded, rows = manifest["guard_formulas"] is True, int(manifest.get("rows") or 0)
        return WrittenRelease(guarded, dialect, types, rows, dated=path.suffix == ".xlsx")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    except InputError:
        return None

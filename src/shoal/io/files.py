"""Read table files into Polars frames, and write them.

Errors of the libraries below may quote cells; none of them is passed on.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import DuplicateError, PanicException, PolarsError

from shoal.core import Policy
from shoal.errors import InputError, visible
from shoal.io import csv_files, dates, decoded_size, excel_files, memory, stats_files, text_files
from shoal.io.csv_files import SAMPLE, check_delimiter, header_line
from shoal.io.excel_files import EXCEL
from shoal.io.frames import from_native
from shoal.io.raw import Raw
from shoal.io.stats_files import STATS, STATS_NAMES

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".ipc", ".feather")
PACKED = (".csv.gz", ".tsv.gz", ".txt.gz")
"""How the name of a CSV file ends that is packed by gzip."""
FORMATS = ("parquet", "csv", "xlsx", "sav", "dta", "xpt")
"""What a release can be written as; each is the file's suffix too."""
LIKE = {".xlsx": "xlsx", ".xlsm": "xlsx", ".sav": "sav", ".zsav": "sav", ".por": "sav",
        ".dta": "dta", ".xpt": "xpt", ".sas7bdat": "xpt"}  # fmt: skip
"""The format of a release, by the suffix of the file that is protected."""
LEVEL = 2
"""How hard Zstandard tries. At 3, its default, numbers take a third longer for the same size."""


def read(  # noqa: PLR0911 (one for each format)
    path: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: str | None = None,
    skip: str | None = None,
    rows: int | None = None,
    multiline: bool = False,
    alone: bool = False,
    limit: int | None = None,
) -> Raw:
    r"""Read a table: CSV, Parquet or Arrow IPC; Excel, SPSS, Stata and SAS with their extras.

    Args:
        path: the file, or a folder of Parquet files of one schema. Its suffix says what it is;
            anything unknown is taken for CSV. A CSV file may be packed by gzip, as `.csv.gz`. Or a
            table in Python: of pandas, Polars or PyArrow, or one with an Arrow C stream, such as a
            relation of DuckDB.
        delimiter: of a CSV file, one character or `\t`; found out where not given.
        encoding: of a CSV file; UTF-8, UTF-16 with a byte order mark and Windows-1252 are
            found out.
        sheet: of an Excel workbook; not needed where there is one only.
        header_row: the row of a sheet that names the columns, such as `3`, or the rows, `3-4`. By
            default the first that has a cell.
        skip: rows of a sheet that are not records, such as `105` or `105-107`.
        rows: how many records a sheet of a workbook has below its header, where the last of them
            may be empty.
        multiline: a cell of a CSV file may have several lines, also where cells are read alone.
        alone: cells are read each by itself, and no record decides how the others are read: what
            is not stated follows from the header, one line of a CSV file is one record, and one
            that is not well formed has missing cells.
        limit: bytes that a file may take once decoded; the memory of this machine, if none is
            given.
    """
    if not isinstance(path, str | PathLike):
        return from_native(path, alone=alone)
    path = Path(path)
    limit = memory.room() if limit is None else limit
    if path.is_dir():
        return Raw(dates.in_calendar(_read_folder(path, limit), alone=alone))
    text_files.refuse_special(path)
    memory.refuse_large(path)
    suffix = path.suffix.lower()
    if (header_row or skip) and suffix not in EXCEL:
        raise InputError(
            f"'{path}' is not a workbook. --header-row and --skip, or the keys of [reading], name "
            "rows of a sheet: take the rows that are not records out of the file."
        )
    with _refusing(path):
        if suffix in STATS:
            return stats_files.read_stats(path, suffix, alone=alone)
        if suffix in PARQUET:
            return Raw(dates.in_calendar(_read_parquet(path, limit), alone=alone))
        if suffix in ARROW:
            # Polars would expand a path as a pattern, so it gets an open file.
            _refuse_bombs(path, limit)
            with path.open("rb") as file:
                frame = decoded_size.refuse_texts(pl.read_ipc(file), path, limit=limit)
            return Raw(dates.in_calendar(frame, alone=alone))
        released = csv_files.read_written_dialect(path)
        if suffix in EXCEL:
            rows = rows or (released.rows or None if released else None)
            raw = excel_files.read_excel(
                path,
                sheet,
                header_row=header_row or ("1" if released else None),
                skip=skip,
                rows=rows,
                alone=alone,
                limit=limit,
            )
        else:
            raw = csv_files.read_csv(
                path,
                _text(path, limit),
                delimiter=delimiter or (released.dialect.delimiter if released else None),
                encoding=encoding,
                alone=alone,
                multiline=multiline,
            )
    if released is None:
        return raw
    return replace(raw, frame=released.undone(raw.frame))


def read_by_header(path: Path, *, encoding: str | None, **marks: Any) -> Raw:
    """Read a table for the names of its columns; of a text file, no record has a say in them.

    The encoding is that of the header. The rows above a workbook's are looked at.
    """
    if path.is_dir() or not is_text(path):
        return read(path, encoding=encoding, **marks)
    text_files.refuse_special(path)
    with _refusing(path), gzip.open(path) if is_packed(path) else path.open("rb") as file:
        header = re.split(b"[\r\n]", file.read(SAMPLE).lstrip(b"\r\n"), maxsplit=1)[0]
    return read(
        path, encoding=encoding or csv_files.find_encoding(header, path), alone=True, **marks
    )


def take(data: Any, *, policy: Policy | None = None, alone: bool = False) -> Raw:
    """Take a table from a path or a frame.

    Args:
        data: a path, what `read` returned, or what `shoal.io.frames.from_native` takes.
        policy: how a file is written, where it is not found out.
        alone: as `read` has it. What was read otherwise is refused then.
    """
    if isinstance(data, str | Path):
        stated = {} if policy is None else marks(policy)
        return read(data, **stated, alone=alone)
    if isinstance(data, Raw) and alone and not data.alone:
        raise InputError(
            "For a release with an epsilon each cell is read by itself, but this table was read as "
            "a whole. Hand over the path of the file, or read it with alone=True."
        )
    return from_native(data, alone=alone)


def is_text(data: Any) -> bool:
    """Whether a table is, or was read from, a CSV file."""
    if isinstance(data, Raw):
        return "delimiter" in data.reading
    if not isinstance(data, str | PathLike):
        return False
    path = Path(data)
    binary = {*STATS, *EXCEL, *PARQUET, *ARROW}
    return not path.is_dir() and path.suffix.lower() not in binary


def format_like(path: Path) -> str:
    """Return the format for a release of a file: the same one if it can be written."""
    return "csv" if is_text(path) else LIKE.get(path.suffix.lower(), "parquet")


def is_packed(path: Path) -> bool:
    """Whether a file is a CSV file packed by gzip, by its name."""
    return path.name.lower().endswith(PACKED)


def _text(path: Path, limit: int) -> bytes:
    if not is_packed(path):
        return path.read_bytes()
    try:
        return decoded_size.gunzip(path, limit=limit)
    except decoded_size.DamagedError:
        raise UnicodeError from None  # said by `_refusing`


def _read_parquet(path: Path, limit: int) -> pl.DataFrame:
    _refuse_bombs(path, limit)
    frame = pl.read_parquet(path, glob=False)
    return decoded_size.refuse_texts(frame, path, limit=limit)


def _read_folder(folder: Path, limit: int) -> pl.DataFrame:
    """Read the Parquet files of a folder as one table, in the order of their names.

    Files that Spark and others leave beside them, which begin with a point or an underscore, are
    passed over.
    """
    try:
        inside = sorted(p for p in folder.iterdir() if not p.name.startswith((".", "_")))
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read the folder '{folder}': {reason}.") from None
    strange = [path for path in inside if path.suffix.lower() not in PARQUET or path.is_dir()]
    if strange or not inside:
        contents = f"'{strange[0].name}' in it" if strange else "nothing in it"
        raise InputError(
            f"Expected a file or a folder of Parquet files, found '{folder}' with {contents}. Name "
            "the file, or put the Parquet files into a folder of their own."
        )
    frames: list[pl.DataFrame] = []
    for path in inside:
        text_files.refuse_special(path)
        with _refusing(path):
            frame = _read_parquet(path, limit)
        limit -= int(frame.estimated_size())
        if frames:
            _refuse_other_schema(frames[0].schema, inside[0], frame.schema, path)
            frame = frame.select(frames[0].columns)
        frames.append(frame)
    return pl.concat(frames)


def _refuse_other_schema(one: pl.Schema, first: Path, other: pl.Schema, path: Path) -> None:
    for name in {**one, **other}:
        if name not in other or name not in one:
            has, lacks = (first, path) if name in one else (path, first)
            raise InputError(
                f"Expected one schema in all Parquet files of '{path.parent}': '{has.name}' has a "
                f"column '{visible(name)}', '{lacks.name}' has not. Write the files with the same "
                "columns."
            )
        if one[name] != other[name]:
            # An enumeration's full type lists its categories, so only the base type is shown.
            types = [dtype.base_type().__name__ for dtype in (one[name], other[name])]
            raise InputError(
                f"Expected one schema in all Parquet files of '{path.parent}': the column "
                f"'{visible(name)}' is {types[0]} in '{first.name}' and {types[1]} in "
                f"'{path.name}', or of other categories. Write the files with the same types."
            )


def _refuse_bombs(path: Path, limit: int) -> None:
    try:
        decoded_size.refuse(path, limit=limit)
    except decoded_size.DamagedError:
        raise UnicodeError from None  # said by `_refusing`, as of any file that cannot be read


def marks(
    policy: Policy,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: str | None = None,
    skip: str | None = None,
) -> dict[str, Any]:
    """Return the file options for `read`: as given, or else as the policy states them."""
    return {
        "delimiter": delimiter or policy.reading.delimiter,
        "encoding": encoding or policy.reading.encoding,
        "sheet": sheet or policy.reading.sheet,
        "header_row": header_row or policy.reading.header_row,
        "skip": skip or policy.reading.skip,
        "rows": policy.reading.rows,
        "multiline": policy.reading.multiline,
    }


def marks_of_other(path: Path, marks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file options for a release: its original's if its header fits, else detected."""
    text_files.refuse_special(path)
    if path.is_dir():
        return dict(marks)
    with _refusing(path), gzip.open(path) if is_packed(path) else path.open("rb") as file:
        header = header_line(file.read(SAMPLE).decode(errors="ignore"))
    mark = check_delimiter(marks["delimiter"])
    return {
        **marks,
        **dict.fromkeys(("sheet", "header_row", "skip", "rows")),
        "delimiter": mark if mark is not None and mark in header else None,
    }


def write(
    frame: pl.DataFrame,
    path: Path,
    *,
    labels: Mapping[str, Any],
    about: str | None = None,
    guard_formulas: bool = True,
    dialect: csv_files.Dialect = csv_files.PLAIN,
) -> None:
    """Write a release in the format that the path's suffix names.

    Labels go where the format has room for them: SPSS and Stata natively, SAS those of columns,
    Parquet as metadata under the key `shoal.labels`. A sentence about the table is the label of an
    SPSS, Stata or SAS file, a comment in the properties of a workbook, and in Parquet metadata
    under `shoal.about`; a CSV file has no place for either. In a CSV file and in a workbook, text
    that a spreadsheet would run is guarded, names of columns too, unless stated otherwise.

    Raises:
        UnfitTableError: the format has no room for this table.
        InputError: it cannot be written there.
    """
    kind = path.suffix.removeprefix(".")
    try:
        if kind == "csv":
            csv_files.write_csv(frame, path, dialect, guard_formulas=guard_formulas)
        elif kind == "xlsx":
            guarded = csv_files.guard_cells(frame) if guard_formulas else frame
            excel_files.write_excel(guarded, path, about)
        elif kind == "parquet":
            metadata = {"shoal.labels": json.dumps(labels)} if labels else {}
            metadata |= {"shoal.about": about} if about else {}
            frame.write_parquet(path, compression_level=LEVEL, metadata=metadata or None)
        else:
            stats_files.write_stats(frame, path, kind, labels, about)
    except (PolarsError, PanicException):
        raise InputError(
            f"Cannot write '{path.name}': the disk is full or refuses it. Nothing was written."
        ) from None


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Replace the messages of libraries, which may quote cells, by our own."""
    try:
        path.open("rb").close()  # the libraries do not say why a file cannot be opened
        yield
    except (OSError, EOFError, PolarsError, PanicException, UnicodeError) as error:
        if isinstance(error, DuplicateError):
            text = f"'{path}' has two columns of the same name; expected each name once."
        elif isinstance(error, OSError) and error.strerror:
            text = f"Cannot read '{path}': {error.strerror.lower()}."
        else:
            kind = "CSV" if is_packed(path) else path.suffix.removeprefix(".").upper() or "CSV"
            text = f"Cannot read '{path}' as {kind}: the file is damaged or of another format."
        raise InputError(text) from None


def check_writable(form: str, names: Sequence[str]) -> None:
    """Refuse a format that cannot be written, before any privacy budget is spent."""
    if form not in FORMATS:
        advice = " SAS reads xpt." if form == "sas7bdat" else ""
        raise InputError(f"Expected a format among {', '.join(FORMATS)}, found '{form}'.{advice}")
    if form in STATS_NAMES:
        stats_files.check_stats_names(form, names)
    if form == "xlsx":
        excel_files.check_writable(names)

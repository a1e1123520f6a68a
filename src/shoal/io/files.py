"""Files to Polars frames, and back.

Errors of the libraries below may quote cells; none of them is passed on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import DuplicateError, PanicException, PolarsError

from shoal.core import Policy
from shoal.errors import InputError
from shoal.io import csv_files, decoded_size, memory, stats_files, text_files
from shoal.io.csv_files import SAMPLE, header_line, stated_delimiter
from shoal.io.raw import Raw
from shoal.io.stats_files import STATS, STATS_NAMES

FORMATS = ("parquet", "csv", "sav", "dta")
"""What a release can be written as; each is the file's suffix too."""


def read(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    alone: bool = False,
    limit: int | None = None,
) -> Raw:
    r"""Read a table: CSV, Parquet, Arrow IPC, or with `shoal[stats]` SPSS, Stata and SAS.

    Args:
        path: the file. Its suffix says what it is; anything unknown is taken for CSV.
        delimiter: of a CSV file, one character or `\t`; found out where not given.
        encoding: of a CSV file; UTF-8, UTF-16 with a byte order mark and Windows-1252 are
            found out.
        alone: cells are read each by itself, and no record decides how the others are read: what
            is not stated follows from the header, and bytes that are not text make their own cell
            unknown.
        limit: bytes that a Parquet or Arrow file may take once decoded, by its own metadata; the
            memory of this machine, if none is given.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"Expected a file, found the folder '{path}'.")
    text_files.refuse_special(path)
    memory.refuse_large(path)
    limit = int(min(memory.available(), 1 << 62)) if limit is None else limit
    suffix = path.suffix.lower()
    with _refusing(path):
        if suffix in STATS:
            return stats_files.read_stats(path, suffix)
        if suffix in {".parquet", ".pq"}:
            _refuse_bombs(path, limit)
            frame = pl.read_parquet(path, glob=False)
            return Raw(decoded_size.refuse_texts(frame, path, limit=limit))
        if suffix in {".arrow", ".ipc", ".feather"}:
            # From an open file, because a path would be expanded as a pattern.
            _refuse_bombs(path, limit)
            with path.open("rb") as file:
                return Raw(decoded_size.refuse_texts(pl.read_ipc(file), path, limit=limit))
        raw = csv_files.read_csv(path, delimiter, encoding, alone=alone)
    return replace(raw, frame=csv_files.unguarded(raw.frame)) if csv_files.is_guarded(path) else raw


def _refuse_bombs(path: Path, limit: int) -> None:
    try:
        decoded_size.refuse(path, limit=limit)
    except decoded_size.DamagedError:
        raise UnicodeError from None  # said by `_refusing`, as of any file that cannot be read


def marks(
    policy: Policy, *, delimiter: str | None = None, encoding: str | None = None
) -> dict[str, Any]:
    """Delimiter and encoding for `read`: as given, or else as the policy states them."""
    return {
        "delimiter": delimiter or policy.reading.delimiter,
        "encoding": encoding or policy.reading.encoding,
    }


def marks_of_other(path: Path, marks: Mapping[str, Any]) -> dict[str, Any]:
    """Marks for a release: those of its original, if its header has them, or else found out."""
    text_files.refuse_special(path)
    with _refusing(path), path.open("rb") as file:
        header = header_line(file.read(SAMPLE)).decode(errors="ignore")
    mark = stated_delimiter(marks["delimiter"])
    return {**marks, "delimiter": mark if mark is not None and mark in header else None}


def write(
    frame: pl.DataFrame,
    path: Path,
    *,
    labels: Mapping[str, Any],
    about: str | None = None,
    guard_formulas: bool = True,
) -> None:
    """Write a release in the format that the path's suffix names.

    Labels go where the format has room for them: SPSS and Stata natively, Parquet as metadata
    under the key `shoal.labels`. A sentence about the table is the label of an SPSS or Stata file,
    and in Parquet metadata under `shoal.about`; a CSV file has no place for either. In a CSV file,
    text that a spreadsheet would run is guarded, names of columns too, unless told otherwise.
    """
    kind = path.suffix.removeprefix(".")
    if guard_formulas and kind == "csv":
        frame = csv_files.guarded(frame)
    try:
        if kind == "csv":
            frame.write_csv(path)
        elif kind == "parquet":
            metadata = {"shoal.labels": json.dumps(labels)} if labels else {}
            metadata |= {"shoal.about": about} if about else {}
            frame.write_parquet(path, metadata=metadata or None)
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
    except (OSError, PolarsError, PanicException, UnicodeError) as error:
        if isinstance(error, DuplicateError):
            text = f"'{path}' has two columns of one name; expected each once."
        elif isinstance(error, OSError) and error.strerror:
            text = f"Cannot read '{path}': {error.strerror.lower()}."
        else:
            kind = path.suffix.removeprefix(".").upper() or "CSV"
            text = f"Cannot read '{path}' as {kind}: the file is damaged or of another format."
        raise InputError(text) from None


def check_writable(form: str, names: Sequence[str]) -> None:
    """Refuse a format that cannot be written, before anything is spent on the release."""
    if form not in FORMATS:
        raise InputError(f"Expected a format among {', '.join(FORMATS)}, found '{form}'.")
    if form in STATS_NAMES:
        stats_files.check_stats_names(form, names)

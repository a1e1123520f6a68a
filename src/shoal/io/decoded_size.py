"""How much memory a file takes once decoded, computed before it is decoded where possible.

The file may be hostile: a few kilobytes can stand for terabytes, by compression or by one value
that is repeated. Polars reads the number of rows of a Parquet file from its metadata. For an Arrow
file it trusts the length stated before a compressed buffer, and ends the process if so much memory
is not available; so these lengths are read here, with bounds on everything.

References:
    Apache Arrow, "IPC file format", `File.fbs` and `Message.fbs` as FlatBuffers.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.errors import InputError

CELL = 16
"""Bytes of a decoded cell: what Polars takes for a text, beside the text itself."""
PARQUET = {".parquet", ".pq"}
MOST_FOOTER = 64 << 20
"""Bytes of metadata of an Arrow file that are read."""
TEXT = 3
"""How many times the size of its text a table takes at least while it is read."""
CHUNK = 1 << 20
GIB = 1 << 30
DAMAGED = "The file is damaged, or of another format than its name says."


class DamagedError(InputError):
    """The metadata of a file are damaged."""


def refuse(path: Path, *, limit: int) -> None:
    """Refuse a Parquet or Arrow file that would exceed a limit when decoded."""
    size = read_stated_size(path)
    if size is not None:
        hold(size, path, limit)


def read_stated_size(path: Path) -> int | None:
    """Return the decoded size of a Parquet or Arrow file in bytes, by its metadata."""
    return parquet(path) if path.suffix.lower() in PARQUET else arrow(path)


def refuse_texts(frame: pl.DataFrame, path: Path, *, limit: int) -> pl.DataFrame:
    """Refuse a frame whose texts exceed a limit when each cell holds its own copy.

    A dictionary in the file holds a text once for all rows, and so does the frame; the first thing
    that touches the cells writes them out. A text of a megabyte in 250,000 rows fits into 64 kB
    of Parquet, and takes 250 GB then. The lengths are added up without writing any of them out.
    """
    total = 0
    for column in frame.iter_columns():
        if column.dtype == pl.String:
            total += int(column.str.len_bytes().cast(pl.UInt64).sum())
        elif isinstance(column.dtype, pl.Categorical | pl.Enum):
            total += int(column.cat.len_bytes().cast(pl.UInt64).sum())
    hold(total, path, limit)
    return frame


def hold(size: int, path: Path, limit: int) -> None:
    """Refuse a size above a limit."""
    if size > limit:
        raise InputError(
            f"'{path}' would take {size / GIB:,.3g} GiB of memory once it is decoded, and the "
            f"limit here is {limit / GIB:,.3g} GiB. Use fewer rows or columns, or a machine "
            "with more memory."
        )


def gunzip(path: Path, *, limit: int) -> bytes:
    """Unpack a gzip file of text, and stop when the table would exceed a limit.

    The size that the file states is not trusted.
    """
    most = limit // TEXT
    pieces, size = [], 0
    try:
        with gzip.open(path) as file:
            while piece := file.read(CHUNK):
                size += len(piece)
                if size > most:
                    raise InputError(
                        f"'{path}' would take more than the limit of {limit / GIB:,.3g} GiB of "
                        "memory once it is decoded. Take fewer rows or columns, or a machine with "
                        "more memory."
                    )
                pieces.append(piece)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DamagedError(DAMAGED) from None
    return b"".join(pieces)


def parquet(path: Path) -> int:
    """Return the bytes that the cells of a Parquet file take decoded, `CELL` for each.

    The metadata do not state the sizes of texts; `refuse_texts` adds them up once they are read.
    """
    try:
        with path.open("rb") as file:
            lazy = pl.scan_parquet(file)
            rows = int(lazy.select(pl.len()).collect().item())
            return CELL * rows * sum(_leaves(dtype) for dtype in lazy.collect_schema().dtypes())
    except pl.exceptions.DuplicateError:
        return 0  # The reader says which name stands twice.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
        raise DamagedError(DAMAGED) from None


def _leaves(dtype: object) -> int:
    """Count the flat columns in a data type: one, unless it is nested."""
    if isinstance(dtype, pl.Struct):
        return sum(_leaves(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _leaves(dtype.inner)
    return 1


def arrow(path: Path) -> int | None:
    """Return the bytes that an Arrow IPC file takes decoded.

    The sum over record batches of each buffer's length, or where it is compressed of the length
    that stands before it, and of `CELL` bytes a value. None for the old Feather format, which has
    another footer.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(6) != b"ARROW1":
            raise DamagedError(DAMAGED)
        try:
            file.seek(size - 10)
            (length,) = struct.unpack("<i", file.read(4))
            if file.read(6) != b"ARROW1" or not 0 < length <= min(size - 10, MOST_FOOTER):
                raise DamagedError(DAMAGED)
            file.seek(size - 10 - length)
            footer = _Flat(file.read(length)).root()
            blocks = [block for place in (2, 3) for block in footer.structs(place, 24)]
            return sum(_batch(file, block, size) for block in blocks)
        except (struct.error, LookupError, ValueError, OSError):
            raise DamagedError(DAMAGED) from None


def _batch(file: BinaryIO, block: bytes, size: int) -> int:
    """Return the decoded bytes of one record batch or dictionary."""
    offset, length, _, _ = struct.unpack("<qiiq", block)
    if not (0 <= offset < size and 8 < length <= min(size - offset, MOST_FOOTER)):
        raise DamagedError(DAMAGED)
    file.seek(offset)
    raw = file.read(length)
    start = 8 if raw[:4] == b"\xff\xff\xff\xff" else 4
    message = _Flat(raw[start:]).root()
    header = message.table(2)
    if header is None:
        return 0
    if message.number(1, "<B") == 2:  # A dictionary holds its batch one level down.
        header = header.table(1)
        if header is None:
            return 0
    compressed = header.table(3) is not None
    total = 0
    for node in header.structs(1, 16):
        total += CELL * max(struct.unpack("<qq", node)[0], 0)
    for buffer in header.structs(2, 16):
        place, bytes_ = struct.unpack("<qq", buffer)
        if compressed and bytes_ >= 8:
            file.seek(offset + length + place)
            (stated,) = struct.unpack("<q", file.read(8))
            bytes_ = bytes_ if stated < 0 else stated
        total += max(bytes_, 0)
    return total


class _Flat:
    """Reader of FlatBuffers tables by the offsets of their fields."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    def root(self) -> "_Flat":
        return _Flat(self._data, self._unpack("<I", 0))

    def table(self, place: int) -> "_Flat | None":
        at = self._field(place)
        return None if at is None else _Flat(self._data, at + self._unpack("<I", at))

    def number(self, place: int, form: str) -> int:
        at = self._field(place)
        return 0 if at is None else self._unpack(form, at)

    def structs(self, place: int, size: int) -> Iterator[bytes]:
        at = self._field(place)
        if at is None:
            return
        start = at + self._unpack("<I", at)
        count = self._unpack("<I", start)
        if start + 4 + count * size > len(self._data):
            raise ValueError
        for number in range(count):
            begin = start + 4 + number * size
            yield self._data[begin : begin + size]

    def _field(self, place: int) -> int | None:
        table = self._at - self._unpack("<i", self._at)
        if 4 + 2 * place >= self._unpack("<H", table):
            return None
        offset = self._unpack("<H", table + 4 + 2 * place)
        return self._at + offset if offset else None

    def _unpack(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError
        (value,) = struct.unpack_from(form, self._data, at)
        return int(value)

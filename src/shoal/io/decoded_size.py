"""How large a file is once decoded; a Parquet or Arrow file by what it says about itself.

Only metadata is read, with bounds on everything, because the file may be hostile: a few kilobytes
can stand for terabytes, by compression or by one value that is repeated. So bytes are counted as
stated, and every cell besides, at `CELL` bytes.

References:
    Apache Parquet, `parquet.thrift` (FileMetaData, RowGroup, ColumnMetaData) in Thrift's compact
    protocol. Apache Arrow, "IPC file format", `File.fbs` and `Message.fbs` as FlatBuffers.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from shoal.errors import InputError

CELL = 16
"""Bytes of a decoded cell: what Polars takes for a text, beside the text itself."""
MOST_FOOTER = 64 << 20
"""Bytes of metadata that are read."""
DEEPEST = 32
TEXT = 3
"""How many times the size of its text a table takes at least while it is read."""
CHUNK = 1 << 20
GIB = 1 << 30
DAMAGED = "The file is damaged, or of another format than its name says."


class DamagedError(InputError):
    """The metadata of a file cannot be read."""


def refuse(path: Path, *, limit: int) -> None:
    """Refuse a Parquet or Arrow file that says it decodes to more than a limit, undecoded."""
    size = parquet(path) if path.suffix.lower() in {".parquet", ".pq"} else arrow(path)
    if size is not None:
        hold(size, path, limit)


def refuse_texts(frame: pl.DataFrame, path: Path, *, limit: int) -> pl.DataFrame:
    """Refuse a frame whose texts, each cell's by itself, take more than a limit.

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
    """Refuse a size beyond a limit."""
    if size > limit:
        raise InputError(
            f"'{path}' would take {size / GIB:,.3g} GiB of memory once it is decoded, and the "
            f"limit here is {limit / GIB:,.3g} GiB. Use fewer rows or columns, or a machine "
            "with more memory."
        )


def gunzipped(path: Path, *, limit: int) -> bytes:
    """Unpack a gzip file of text, and stop where the table would take more than a limit.

    What the file says of its size is not believed.
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
    """Bytes that a Parquet file takes decoded.

    The sum over column chunks of the stated uncompressed size and of `CELL` bytes a value. A
    dictionary with one long text that a million rows share is one text in memory and a million
    cells.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if size < 12 or file.read(4) != b"PAR1":
            raise DamagedError(DAMAGED)
        file.seek(size - 8)
        (length,) = struct.unpack("<I", file.read(4))
        if file.read(4) != b"PAR1" or length > min(size - 12, MOST_FOOTER):
            raise DamagedError(DAMAGED)
        file.seek(size - 8 - length)
        footer = file.read(length)
    try:
        meta = _Compact(footer).struct()
        rows = _number(meta[3])
        chunks = [chunk[3] for group in meta[4] for chunk in group[1]]
        stated = sum(_number(chunk[6]) + CELL * _number(chunk[5]) for chunk in chunks)
        leaves = sum(1 for element in meta[2] if 5 not in element)
        return max(stated, CELL * rows * max(leaves, 1))
    except (LookupError, ValueError, TypeError, RecursionError):
        raise DamagedError(DAMAGED) from None


def arrow(path: Path) -> int | None:
    """Bytes that an Arrow IPC file takes decoded.

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
    """Bytes of one record batch or dictionary, decoded."""
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


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError
    return value


class _Compact:
    """Reads structs of Thrift's compact protocol: field id to value."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > DEEPEST:
            raise ValueError
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._signed()
            found[field] = kind == 1 if kind in {1, 2} else self._value(kind, depth + 1)
        return found

    def _value(self, kind: int, depth: int) -> Any:  # noqa: PLR0911 (one line a type)
        if kind in {1, 2, 3}:
            return self._byte()
        if kind in {4, 5, 6}:
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in {9, 10}:
            return self._list(depth)
        if kind == 11:
            return self._map(depth)
        if kind == 12:
            return self.struct(depth)
        raise ValueError

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        if count > len(self._data):  # An entry takes a byte at least.
            raise ValueError
        return [self._value(head & 15, depth + 1) for _ in range(count)]

    def _map(self, depth: int) -> dict[int, Any]:
        count = self._unsigned()
        if count > len(self._data):
            raise ValueError
        if count:
            kinds = self._byte()
            for _ in range(count):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)
        return {}

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError
        self._at += count
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 70:
                raise ValueError

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


class _Flat:
    """Reads tables of FlatBuffers by the places of their fields."""

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

"""How large a file is once decoded, before it is decoded where that is known.

The file may be hostile: a few kilobytes can stand for terabytes, by compression or by one value
that is repeated.
"""

import gzip
import zlib
from pathlib import Path

import polars as pl

from shoal.errors import InputError

CELL = 16
"""Bytes of a decoded cell: what Polars takes for a text, beside the text itself."""
PARQUET = {".parquet", ".pq"}
TEXT = 3
"""How many times the size of its text a table takes at least while it is read."""
CHUNK = 1 << 20
GIB = 1 << 30
DAMAGED = "The file is damaged, or of another format than its name says."


class DamagedError(InputError):
    """The metadata of a file cannot be read."""


def refuse(path: Path, *, limit: int) -> None:
    """Refuse a Parquet or Arrow file whose cells take more than a limit, undecoded."""
    hold(cells(path), path, limit)


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


def cells(path: Path) -> int:
    """Bytes that the cells of a Parquet or Arrow file take decoded, `CELL` for each.

    Polars reads the number of rows and the columns from the metadata. What texts take besides is
    not stated there: `refuse_texts` adds it up once they are read.
    """
    try:
        with path.open("rb") as file:
            lazy = pl.scan_parquet(file) if path.suffix.lower() in PARQUET else pl.scan_ipc(file)
            rows = int(lazy.select(pl.len()).collect().item())
            return CELL * rows * sum(_leaves(dtype) for dtype in lazy.collect_schema().dtypes())
    except pl.exceptions.DuplicateError:
        return 0  # The reader says which name stands twice.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
        raise DamagedError(DAMAGED) from None


def _leaves(dtype: object) -> int:
    """How many columns of single values a column holds: one, unless it is nested."""
    if isinstance(dtype, pl.Struct):
        return sum(_leaves(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _leaves(dtype.inner)
    return 1

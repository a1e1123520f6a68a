"""Uploaded files: counted while they arrive, named by the server, refused if too large.

A request's stated length is not trusted: bytes are counted, and an excess ends the upload. What the
steward calls a file is kept as a label and is never a path. A small file can decode to a large
table; that is read from its metadata before anything is decoded, and the worker that decodes it has
a limit of memory besides.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request

from shoal import io
from shoal.errors import InputError
from shoal.io import decoded_size, excel_files
from shoal.io.excel_files import EXCEL
from shoal.io.files import PACKED
from shoal.studio.private_files import new_id, private_folder
from shoal.studio.workspace import DataFile

SUFFIXES = (".csv", ".tsv", ".txt", *PACKED, ".parquet", ".pq", ".arrow", ".ipc", ".feather",
            *EXCEL, *io.STATS)  # fmt: skip
"""Of the files that are taken; anything else is taken for CSV."""
UPLOADS = re.compile(r"^/w/[0-9a-f]{16}/(?:data|others)$")
"""Addresses that take files; all others take small requests only."""
LONGEST = 200
"""Characters of a label."""
MOST_BYTES = 200
"""Of a file's name; file systems take 255, and what is seen of a file is kept beside it."""
BUFFER = 1 << 20
BYTES = "application/octet-stream"
"""What a page sends a file as."""
CELL = 16
"""Bytes that a decoded cell takes at least."""


class TooLargeError(InputError):
    """An upload exceeds the limit."""


async def receive(request: Request, folder: Path, *, limit: int, label: str = "") -> DataFile:
    """Write the file of a request to a folder.

    Args:
        request: the bytes of the file, as `application/octet-stream`.
        folder: where to write it, under a name of the server's choice.
        limit: bytes that it may have.
        label: what the steward calls it.

    Raises:
        TooLargeError: it has more bytes, whatever the request says.
        InputError: there is no file in it.
    """
    private_folder(folder)
    target = folder / f".{new_id()}.part"
    if request.headers.get("content-type") != BYTES:
        raise InputError(f"Expected the bytes of a file as {BYTES}, found another kind of content.")
    try:
        with target.open("xb") as file:
            target.chmod(0o600)
            size, waiting = 0, bytearray()
            async for chunk in _count_bytes(request, limit):
                size += len(chunk)
                waiting += chunk
                if len(waiting) >= BUFFER:
                    await to_thread.run_sync(file.write, bytes(waiting))
                    waiting.clear()
            await to_thread.run_sync(file.write, bytes(waiting))
        if not size:
            raise InputError("The file is empty, or none was chosen. Choose a table of people.")
        return _name_file(target, _label(label), size)
    except ClientDisconnect:
        raise InputError("The upload ended before the file was complete.") from None
    finally:
        target.unlink(missing_ok=True)


def take(content: bytes, folder: Path, *, label: str) -> DataFile:
    """Store a file that the studio itself provides, such as the sample."""
    private_folder(folder)
    target = folder / f".{new_id()}.part"
    target.write_bytes(content)
    target.chmod(0o600)
    return _name_file(target, label, len(content))


def path_of(file: DataFile, folder: Path) -> Path:
    """Return a file's path: under its user's name for it, in a separate folder.

    So a report that names its file, and a command that reads it again, have the right name.
    """
    stem = file.label[: -len(file.suffix)] if _ends(file.label, file.suffix) else file.label
    name = f"{stem.lstrip('.-')}{file.suffix}"
    fits = stem.lstrip(".-") and len(name.encode("utf-8", "replace")) <= MOST_BYTES
    return folder / file.id / (name if fits else f"{file.id}{file.suffix}")


def refuse_bombs(path: Path, *, limit: int, library: bool = False) -> None:
    """Refuse a file that would decode to more than a limit, before it is decoded.

    Args:
        path: the file.
        limit: bytes.
        library: also ask the library that reads SPSS, Stata and SAS files; only in a worker.

    Raises:
        TooLargeError: by what the file says about itself.
        InputError: it is an archive, or says nothing that can be read.
    """
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        head = file.read(8)
    size: int | None = None
    if suffix in EXCEL:
        size = excel_files.read_stated_size(path)
    # What a gzip file unpacks to is not known before; `shoal.io.files.read` counts it.
    taken = size is not None or (io.is_packed(path) and head.startswith(b"\x1f\x8b"))
    archive = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
    if head.startswith(archive) and not taken:
        raise InputError(
            "The file is an archive, or a workbook or a packed file under another name. Unpack it, "
            "or name it .xlsx or .csv.gz, and choose the table itself."
        )
    if suffix in {".parquet", ".pq", ".arrow", ".ipc", ".feather"}:
        size = decoded_size.read_stated_size(path)
    elif suffix in io.STATS and library:
        size = _stats(path, suffix)
    if size is not None and size > limit:
        raise TooLargeError(
            f"The file would take {size / (1 << 30):,.1f} GiB once it is decoded, and the limit is "
            f"{limit / (1 << 30):,.1f} GiB."
        )


def _stats(path: Path, suffix: str) -> int | None:
    try:
        import pyreadstat  # noqa: PLC0415 (optional)
    except ImportError:
        return None  # `shoal.io.files` says what to install.
    try:
        _, meta = getattr(pyreadstat, io.STATS[suffix])(str(path), metadataonly=True)
    except Exception:  # noqa: BLE001 (its messages may quote the file)
        raise InputError("The file is damaged or of another format than its name says.") from None
    rows, columns = meta.number_rows, meta.number_columns
    return None if rows is None else int(rows) * int(columns) * CELL


async def _count_bytes(request: Request, limit: int) -> AsyncIterator[bytes]:
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > limit:
        raise TooLargeError(_too_large(limit))
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > limit:
            raise TooLargeError(_too_large(limit))
        yield chunk


def _too_large(limit: int) -> str:
    return f"The file is larger than {limit / (1 << 20):,.0f} MiB, the limit of the studio."


def _name_file(target: Path, label: str, size: int) -> DataFile:
    suffix = next((ending for ending in SUFFIXES if _ends(label, ending)), ".csv")
    made = DataFile(new_id(), label, suffix, size)
    place = path_of(made, target.parent)
    private_folder(place.parent)
    target.replace(place)
    return made


def _ends(label: str, suffix: str) -> bool:
    return label.lower().endswith(suffix)


def _label(name: str) -> str:
    """Return what may be shown of a file's name: its last part, without control characters."""
    last = re.split(r"[/\\]", name)[-1]
    clean = "".join(c if c.isprintable() else " " for c in last).strip()
    if len(clean) > LONGEST:
        clean = clean[: LONGEST - 20] + "\u2026" + clean[-18:]
    return clean or "table.csv"

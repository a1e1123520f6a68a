"""File locks that end with their process, and writes that survive a power cut.

The locks are those of `filelock`: `flock` on Unix, `LockFileEx` on Windows. The system releases
them when their process ends, however it ends, so no lock can be left behind. Budget files lock
themselves: see SQLite.
"""

import os
import time
from pathlib import Path
from typing import BinaryIO

_PAUSE = 0.05
"""Seconds between two tries to get a lock."""


def take_lock(path: Path, *, timeout: float = 0.0) -> BinaryIO | None:
    """Lock a file; it is created if needed, readable by its owner only.

    If the file was removed while this call waited, the lock is void, and the file that has replaced
    it is locked instead. So whoever holds a lock may remove its file, and nobody else may.

    Args:
        path: the file; a link is not followed.
        timeout: seconds to wait while another process, or another call, has it; 0 for one try.

    Returns:
        The open file, which holds the lock until it is closed; nothing if another kept it.

    Raises:
        OSError: the file cannot be opened; or its disk knows no locks.
    """
    from filelock import lock_descriptor  # noqa: PLC0415 (slow to load, and few runs lock)

    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    deadline = time.monotonic() + timeout
    while True:
        file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
        try:
            while not lock_descriptor(file.fileno(), blocking=False):
                if time.monotonic() >= deadline:
                    file.close()
                    return None
                time.sleep(_PAUSE)
            if _is_still(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is_still(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def flush(path: Path) -> None:
    """Wait until a file's content, or a folder's list of entries, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folder, and keeps its entries by a journal of its own.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

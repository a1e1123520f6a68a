"""Atomic files, and folders that only their owner may enter."""

import json
import math
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from shoal.errors import InputError, InternalError
from shoal.io.disk import flush, take_lock

ID = r"^[0-9a-f]{16}$"
"""What the ids of workspaces, files, jobs and releases look like."""
PATIENCE = 5.0
TEMPORARY = "shoal-studio-"


def new_id() -> str:
    """Make an unguessable id that is valid in file names and addresses."""
    return secrets.token_hex(8)


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner may enter, or say why it cannot be made."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = (error.strerror or "the disk refuses it").lower()
        raise InputError(f"Cannot use the folder '{folder}': {reason}.") from None
    return folder


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Write or replace a JSON file atomically, readable by its owner only.

    A durable file is on disk afterwards, and survives a loss of power.
    """
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, allow_nan=False)
        if durable:
            flush(Path(name))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        flush(path.parent)


def read_json(path: Path) -> Any:
    """Read a JSON file; None if it is absent or unreadable."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@contextmanager
def alone_in(home: Path) -> Iterator[None]:
    """Lock a home against other servers; a killed server leaves no lock behind."""
    lock = take_lock(private_folder(home) / ".lock")
    if lock is None:
        raise InputError(
            f"Another studio works in '{home}'. End it, or choose another folder with --data."
        )
    with lock:
        yield


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for original data, mode 0700, and remove it at the end.

    Folders of killed servers are removed first: the system has released their locks.
    """
    remove_left_behind()
    folder, lock = _own_folder()
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _own_folder() -> tuple[Path, BinaryIO]:
    """Make and lock a folder; try again if a starting server took it for an abandoned one."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))  # 0700
        with suppress(FileNotFoundError):
            if (lock := take_lock(folder / ".lock")) is not None:
                return folder, lock


def remove_left_behind() -> None:
    """Remove the temporary folders of servers that have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if (lock := take_lock(folder / ".lock")) is not None:
                with lock:
                    shutil.rmtree(folder, ignore_errors=True)


def hold(path: Path) -> BinaryIO:
    """Hold a lock while this process lives, and write its process id into it."""
    lock = take_lock(path)
    if lock is None:
        raise InternalError(
            "Another process is already working on this task. Wait until it has ended."
        )
    lock.truncate()
    lock.write(str(os.getpid()).encode())
    return lock


def end_left_behind(path: Path) -> None:
    """Wait until the process that holds a lock ends; kill it after `PATIENCE` seconds.

    While the lock is held the process lives, so its id is valid.
    """
    with suppress(OSError, ValueError):
        if not path.exists():
            return
        lock = take_lock(path, timeout=PATIENCE)
        if lock is None:
            os.killpg(int(path.read_text("ascii")), signal.SIGKILL)
            lock = take_lock(path, timeout=math.inf)
        if lock is not None:
            lock.close()

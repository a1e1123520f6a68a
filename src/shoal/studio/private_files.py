"""Files that are whole or not there, and folders that only their owner may enter."""

import fcntl
import json
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from shoal.errors import InputError
from shoal.io.folders import flush_folder

ID = r"^[0-9a-f]{16}$"
"""What the ids of workspaces, files, jobs and releases look like."""
PATIENCE = 5.0
TEMPORARY = "shoal-studio-"


def new_id() -> str:
    """A name that nobody guesses, and that can stand as a file's name and in an address."""
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
    """Write a JSON file whole, readable by its owner alone.

    Args:
        path: the file; an existing one is replaced.
        value: plain JSON values.
        durable: wait until it is on disk, so that a loss of power does not lose it.
    """
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, allow_nan=False)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        flush_folder(path.parent)


def read_json(path: Path) -> Any:
    """Read a JSON file, or give none where there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@contextmanager
def alone_in(home: Path) -> Iterator[None]:
    """Keep other servers out of a home; a killed one leaves no lock behind."""
    lock = (private_folder(home) / ".lock").open("a")
    with lock:
        if not _locked(lock):
            raise InputError(
                f"Another studio works in '{home}'. End it, or choose another folder with --data."
            )
        yield


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder for original data, mode 0700, and remove it at the end.

    What a killed server left behind is removed first: its lock is free, because the system lets
    go of the locks of the dead.
    """
    remove_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))  # 0700
    with (folder / ".lock").open("w") as lock:
        _locked(lock)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> None:
    """Remove the temporary folders of servers that are no more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / ".lock").open("a") as lock:
                if _locked(lock):
                    shutil.rmtree(folder, ignore_errors=True)


def hold(path: Path) -> IO[str]:
    """Hold a lock while this process lives, and note its number in it."""
    lock = path.open("w", encoding="ascii")
    _locked(lock)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def end_left_behind(path: Path) -> None:
    """Wait until the process that holds a lock is gone; after `PATIENCE` seconds end it.

    While the lock is held the process lives, so that its number is its own.
    """
    deadline = time.monotonic() + PATIENCE
    with suppress(OSError, ValueError), path.open("r", encoding="ascii") as lock:
        while not _locked(lock):
            if time.monotonic() > deadline:
                os.killpg(int(lock.read()), signal.SIGKILL)
                fcntl.flock(lock, fcntl.LOCK_EX)
                return
            time.sleep(0.05)


def _locked(lock: IO[Any]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

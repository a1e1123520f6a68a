"""Write folders and files completely or not at all, even if the process is killed.

Beside a target `out` lies, while a run writes it, the hidden folder `.out.shoal`, mode 0700. It is
lock, workplace and journal in one. A run that ends removes it. One that is killed leaves it, and
the next run on the same target finds it, brings the target to a whole state (`recover`) and says
so.

A release is a pair: `out`, which may be published, and `out.internal`, which compares it with
the original. To replace a pair, `commit` moves the old internal folder into the workplace, then
the old public one, and then the new public folder to its place: old and new never stand side
by side. Killed before the second move, the old pair is put together again; between the second and
the third, it is put back; after the third, the new release is in place and the old pair is removed.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from shoal.errors import InputError
from shoal.io.disk import flush, take_lock
from shoal.io.text_files import refuse_special

INTERNAL_SUFFIX = ".internal"
FIGURES = "figures.json"
"""What a confidential folder knows, as plain values."""
UNFINISHED = ".unfinished"
"""Suffix of a folder that keeps a release whose place could not be written."""
_open: dict[Path, Path | None] = {}
"""The workplaces of this process and their targets, and its temporary folders, which have none."""
_LOCK, _NEW, _OLD, _OLD_INTERNAL, _RESERVE = "lock", "new", "old", "old.internal", "reserve"


def internal_of(out: Path) -> Path:
    """Return the path of the confidential folder beside a public one."""
    return out.with_name(out.name + INTERNAL_SUFFIX)


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """Create a hidden working folder beside a target, for this run alone; remove it at the end.

    It is refused while another run writes the same target, or if it cannot be written.
    """
    place, lock = target.with_name(f".{target.name}.shoal"), None
    try:
        with refusing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            lock = _lock_workplace(place)
        if lock is None:
            raise InputError(
                f"Another run is writing '{target}'. Wait for it, or choose another place."
            )
        _open[place] = target
        yield place
    finally:
        if lock is None and not place.is_symlink():
            with suppress(OSError):  # An interrupt may come between the folder and its lock.
                lock = take_lock(place / _LOCK)
        if lock is not None:
            # The lock is released last: the process that waits for it then finds another file here.
            shutil.rmtree(place, ignore_errors=True)
            lock.close()
        _open.pop(place, None)


@contextmanager
def temporary(prefix: str = "shoal-") -> Iterator[Path]:
    """Create a temporary folder for this process, removed on exit from the context."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        _open[Path(name)] = None
        try:
            yield Path(name)
        finally:
            del _open[Path(name)]


def _lock_workplace(place: Path) -> BinaryIO | None:
    """Lock a workplace; None if another run holds the lock."""
    while True:
        if place.is_symlink():
            raise FileExistsError(errno.EEXIST, "a link stands where its working folder would be")
        place.mkdir(mode=0o700, exist_ok=True)
        place.chmod(0o700)
        try:
            return take_lock(place / _LOCK)
        except FileNotFoundError:
            continue  # The run before has just removed the folder.


def recover(place: Path, out: Path) -> tuple[str, ...]:
    """Complete or undo what a killed run left of a release, and say which."""
    internal, old, aside = internal_of(out), place / _OLD, place / _OLD_INTERNAL
    left = {path.name for path in place.iterdir()} - {_LOCK}
    note = ""
    if old.exists() and out.exists():
        note = f"An earlier run was killed after its release was in place: '{out}' is that release."
    elif old.exists() or aside.exists():
        if old.exists() and any(old.iterdir()):
            old.rename(out)
        if aside.exists():
            aside.rename(internal)
        flush(out.parent)
        note = f"An earlier run was killed while it replaced '{out}': the old release was restored."
    elif left:
        note = f"An earlier run on '{out}' was killed; what it left behind was removed."
    for path in place.iterdir():
        if path.name != _LOCK:
            _remove(path)
    return (note,) if note else ()


def abandon() -> None:
    """Complete or undo every write of this process, and remove its temporary folders.

    For a process that must end at once, before its context managers can clean up.
    """
    for place, target in list(_open.items()):
        if target is not None:
            with suppress(OSError):
                recover(place, target)
        shutil.rmtree(place, ignore_errors=True)


def new_folder(place: Path, name: str = _NEW) -> Path:
    """Make an empty folder in the workplace, mode 0700."""
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def commit(place: Path, out: Path) -> None:
    """Move a workplace's public folder, and the old confidential one, into a release's place.

    An error or an interrupt on the way undoes everything.
    """
    new, internal = place / _NEW, internal_of(out)
    _flush(new)
    new.chmod(0o755)
    moves = [(internal, place / _OLD_INTERNAL)] if internal.exists() else []
    if out.exists():
        moves.append((out, place / _OLD))
    elif moves:
        (place / _OLD).mkdir()  # stands for the public folder that was not there
    done: list[tuple[Path, Path]] = []
    try:
        for before, after in (*moves, (new, out)):
            before.rename(after)
            done.append((before, after))
        flush(place)
        flush(out.parent)
    except BaseException:
        for before, after in reversed(done):
            after.rename(before)
        raise
    # In this order: while `old` is there, `recover` knows that the new release is in place.
    for name in (_OLD_INTERNAL, _OLD):
        _remove(place / name)


def put(folder: Path, target: Path) -> None:
    """Move a folder of a workplace to a target that does not exist yet."""
    _flush(folder)
    folder.rename(target)
    flush(target.parent)


def replace_files(folder: Path, target: Path) -> None:
    """Move all files of a workplace into a folder, replacing files of the same name."""
    _flush(folder)
    for path in list(folder.iterdir()):
        path.replace(target / path.name)
    flush(target)


def reserve(place: Path, size: int) -> None:
    """Reserve disk space now for what will be written later."""
    with refusing(place), (place / _RESERVE).open("wb") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}:
                raise
            # Some systems cannot reserve space; the disk may then fill up later, which is reported.


def give_back(place: Path) -> None:
    """Release the reserved disk space."""
    (place / _RESERVE).unlink(missing_ok=True)


def check_text(path: Path | None, *, force: bool) -> None:
    """Refuse an unusable path for a text file before the work for it is done."""
    if path is None:
        return
    refuse_special(path)
    if path.is_dir():
        raise InputError(f"Expected a file to write, found the folder '{path}'.")
    if path.exists() and not force:
        raise InputError(
            f"'{path}' exists already. Choose another place, or replace it with --force (in "
            "Python, force=True)."
        )


def write_text(path: Path, text: str, *, force: bool, confidential: bool = False) -> None:
    """Write a text file as `write_bytes` does."""
    write_bytes(path, text.encode(), force=force, confidential=confidential)


def write_bytes(path: Path, content: bytes, *, force: bool, confidential: bool = False) -> None:
    """Write a file completely or not at all; overwrite only if forced; `confidential` sets 0600."""
    check_text(path, force=force)
    with workplace(path) as place, refusing(path):
        new = place / _NEW
        new.write_bytes(content)
        if confidential:
            new.chmod(0o600)
        flush(new)
        new.replace(path)
        flush(path.parent)


def prepare(folder: Path) -> None:
    """Make a working folder, or say why it cannot be made."""
    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def refusing(target: Path) -> Iterator[None]:
    """Replace operating-system errors by one that names the target and the reason."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "the disk refuses it").lower()
        raise InputError(f"Cannot write '{target}': {reason}. Nothing was written.") from None


def digest(path: Path) -> str:
    """SHA-256 of a file; of a folder, of its files' names and digests in order."""
    if path.is_dir():
        listed = "".join(f"{digest(part)}  {part.relative_to(path).as_posix()}\n"
                         for part in sorted(path.rglob("*")) if part.is_file())  # fmt: skip
        return hashlib.sha256(listed.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        (_flush if path.is_dir() else flush)(path)
    flush(folder)

"""A way back into a running studio, for the user who runs it and for nobody else.

A session lives in a cookie, and a closed browser forgets it. `shoal studio --reconnect` makes a new
address that works once. It needs no connection to the studio: it draws a token and leaves the
token's digest as a file in the data folder, which only its owner may enter. The studio takes a
token whose digest lies there, and removes the file before it opens a session.

Who could misuse that? Somebody who can write into the folder is the user, or root. Somebody who
reads it finds digests, and no token. A folder of another user could name that user's own server as
the address, so only a folder and a file that are ours, and that nobody else may write, are
believed. What a studio left behind that was killed is not believed either: its lock is free.
"""

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import InputError
from shoal.io.disk import locked
from shoal.studio.private_files import private_folder, read_json, write_json

ADDRESS, INVITATIONS = "address.json", "invitations"
VALID = 600
"""Seconds that an address works."""
NONE = (
    "No studio runs with the data folder '{home}'. Start one with `shoal studio`, or name the "
    "folder of the running one with --data."
)


@contextmanager
def announced(home: Path, address: str) -> Iterator[None]:
    """Say in the data folder where the studio is, while it runs; no token is written."""
    folder = private_folder(home / INVITATIONS)
    for path in folder.iterdir():  # of a studio that has ended
        path.unlink(missing_ok=True)
    write_json(home / ADDRESS, {"address": address}, durable=False)
    try:
        yield
    finally:
        (home / ADDRESS).unlink(missing_ok=True)


def new_address(home: Path) -> str:
    """An address of the studio that runs with a data folder; it works once, for ten minutes.

    Raises:
        InputError: none runs there, or the folder is not this user's alone.
    """
    if not home.is_dir():
        raise InputError(NONE.format(home=home))
    for path in (home, home / ADDRESS, home / INVITATIONS):
        if not _is_ours(path):
            raise InputError(
                f"The data folder '{home}' can be changed by others, so an address in it cannot be "
                "trusted. Choose a folder that only you may enter."
            )
    if (lock := locked(home / ".lock")) is not None:
        lock.close()
        raise InputError(NONE.format(home=home))
    if (found := read_json(home / ADDRESS)) is None:
        raise InputError(NONE.format(home=home))
    token = secrets.token_urlsafe(32)
    place = home / INVITATIONS / _digest(token)
    os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return f"{found['address']}/?token={token}"


def taken(home: Path, token: str) -> bool:
    """Use up a token that `new_address` has made."""
    place = home / INVITATIONS / _digest(token)
    try:
        fresh = 0 <= time.time() - place.lstat().st_mtime + 1 <= VALID
        ours = _is_ours(place)
        place.unlink()  # only one request can
    except OSError:
        return False
    return fresh and ours


def _is_ours(path: Path) -> bool:
    """Whether a file or folder is this user's, not a link, and writable by nobody else."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode) and not writable
    return True  # what is not there deceives nobody


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

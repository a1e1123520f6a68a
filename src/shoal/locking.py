"""One run at a time: a lock file beside what is written, and none left behind."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from shoal.inputs import refuse_special


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock file of this name, and remove it afterwards; a killed run holds none.

    Raises:
        BlockingIOError: another run holds it.
        OSError: it cannot be made.
    """
    with locked(path) as lock:
        try:
            yield
        finally:
            Path(lock.name).unlink(missing_ok=True)


def locked(path: Path) -> IO[str]:
    """Open a lock file and lock it; see `alone`.

    Who held it before removes it. So a lock counts only on the file that still has the name: on
    one that was opened before it was removed, two runs could each hold "the lock".
    """
    while True:
        refuse_special(path)
        lock = path.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                    return lock
        except BaseException:
            lock.close()
            raise
        lock.close()

"""A table that is piped in: `-` in place of a file.

A table is read more than once, and some formats from their end. So what is piped in is kept, while
the command runs, in a file that its owner alone may read. Its first bytes say what it is.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.errors import InputError, ShoalError
from shoal.io import folders

STDIN = Path("-")
TABLES = ("DATA", "ORIGINAL", "RELEASED")
"""Arguments that name a table."""
NAME, PREFIX = "stdin", "shoal-"
BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz",
              b"PK\x03\x04": ".xlsx", b"$FL2": ".sav", b"$FL3": ".zsav", b"<stata_dta>": ".dta",
              b"HEADER RECORD*******": ".xpt", bytes(12) + b"\xc2\xea": ".sas7bdat"}  # fmt: skip
"""How files of each format begin; anything else is CSV."""


@contextmanager
def replace_dashes(params: dict[str, Any], metavars: Mapping[str, str]) -> Iterator[None]:
    """Put a file in place of a `-` among the tables of a command."""
    asked = [name for name, shown in metavars.items()
             if shown in TABLES and params.get(name) == STDIN]  # fmt: skip
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise InputError(
            "Expected - (what is piped in) for one table at most, found it twice. "
            "Name a file for the other."
        )
    with folders.temporary(PREFIX) as folder:
        path = _keep_input(folder)
        params[asked[0]] = path
        try:
            yield
        except ShoalError as error:
            error.args = (str(error).replace(str(path), str(STDIN)),)
            raise


def display_path(path: Path) -> str:
    """A path for a sentence: `-` for what was piped in."""
    folder = path.parent
    kept = folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith(PREFIX)
    return str(STDIN if kept else path)


def _keep_input(folder: Path) -> Path:
    kept = folder / NAME
    try:
        with kept.open("xb") as file:
            kept.chmod(0o600)
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        with kept.open("rb") as file:
            begins = file.read(32)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(
            f"Cannot keep the table that is piped in, in the folder '{folder}': {reason}."
        ) from None
    ends = (suffix for mark, suffix in BEGINNINGS.items() if begins.startswith(mark))
    return kept.rename(kept.with_name(f"{NAME}{next(ends, '.csv')}"))

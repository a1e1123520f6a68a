"""Where the studio keeps things, where it listens, and how much it takes."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = "127.0.0.1"
PORT = 8642
GIB = 1 << 30


@dataclass(frozen=True)
class Settings:
    """One server's settings.

    Attributes:
        home: folder of workspaces, jobs, releases, history and budget; mode 0700.
        host: address to bind.
        port: to bind, which is also in the cookie's name.
        token: opens the first session, once; never logged.
        upload_limit: bytes of an uploaded file.
        decoded_limit: bytes that a file may have once it is decoded.
        body_limit: bytes of any other request.
        most_jobs: how many run at a time; further ones wait.
    """

    home: Path
    host: str = LOOPBACK
    port: int = PORT
    token: str = field(default="", repr=False)
    upload_limit: int = 2 * GIB
    decoded_limit: int = 8 * GIB
    body_limit: int = 1 << 20
    most_jobs: int = 2

    @property
    def budget(self) -> Path:
        """The budget file of this home, which its workspaces share."""
        return self.home / "budget.db"


def default_home() -> Path:
    """The folder for this user's data, by the custom of the system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "shoal" / "studio"
    stated = os.environ.get("XDG_DATA_HOME")
    base = Path(stated) if stated else Path.home() / ".local" / "share"
    return base / "shoal" / "studio"

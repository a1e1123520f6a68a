"""Settings of a server: folders, address, and limits."""

import os
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = "127.0.0.1"
LOCAL = frozenset({LOOPBACK, "::1", "localhost"})
"""Addresses that browsers reach by every name that ends in `.localhost`."""
PORT = 8642
GIB = 1 << 30


@dataclass(frozen=True)
class Settings:
    """One server's settings.

    Attributes:
        home: folder of workspaces, jobs, releases, history and budget; mode 0700.
        host: address to bind.
        port: to bind, which is also in the cookie's name.
        name: under which a loopback address is served, and under no other: browsers keep cookies by
            name and not by port, and nobody else on the machine knows it.
        token: opens the steward's session; never logged.
        upload_limit: bytes of an uploaded file.
        decoded_limit: bytes that a file may have once it is decoded.
        body_limit: bytes of any other request.
        most_jobs: how many run at a time; further ones wait.
    """

    home: Path
    host: str = LOOPBACK
    port: int = PORT
    name: str = field(default_factory=lambda: f"{secrets.token_hex(16)}.localhost", repr=False)
    token: str = field(default="", repr=False)
    upload_limit: int = 2 * GIB
    decoded_limit: int = 8 * GIB
    body_limit: int = 1 << 20
    most_jobs: int = 2

    @property
    def address(self) -> str:
        """The address of the pages, without a path."""
        shown = self.name if self.host in LOCAL else self.host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    @property
    def budget(self) -> Path:
        """The budget file of this home, which its workspaces share."""
        return self.home / "budget.db"


def default_home() -> Path:
    """Return the folder for this user's data, by the custom of the system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "shoal" / "studio"
    stated = os.environ.get("XDG_DATA_HOME")
    base = Path(stated) if stated else Path.home() / ".local" / "share"
    return base / "shoal" / "studio"

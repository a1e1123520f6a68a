"""The time, and how many cores this process may use."""

import os
from datetime import UTC, datetime


def now(precision: str = "seconds") -> str:
    """The time in UTC, as ISO 8601 writes it."""
    return datetime.now(UTC).isoformat(timespec=precision)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

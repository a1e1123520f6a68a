"""The current time, and the number of available cores."""

import os
from datetime import UTC, datetime


def now(precision: str = "seconds") -> str:
    """Return the UTC time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=precision)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

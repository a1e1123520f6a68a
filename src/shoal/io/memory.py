"""Available memory, and early refusal of what will not fit.

The libraries that read tables end the process where memory runs out, and no message of ours is
seen. So what can be known before is refused before; what is missed is an error of Python's.
"""

import math
import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path

from shoal.errors import InputError

LIBRARIES = 2 << 30
"""Bytes of address space that our libraries take, with two threads."""
THREAD = 32 << 20
"""Bytes of address space for each further thread."""
TABLE = {".csv": 3, ".tsv": 3, ".txt": 3}
"""How many times the size of its file a table takes at least while it is read; else once."""


def refuse_little() -> None:
    """Refuse to start where `ulimit` leaves too little memory to load the libraries."""
    needed = LIBRARIES + THREAD * max((os.cpu_count() or 1) - 2, 0)
    allowed = min(_limit("RLIMIT_AS"), _limit("RLIMIT_DATA"))
    if allowed < needed:
        raise InputError(
            f"This process may use {_write_size(int(allowed))} of memory (see `ulimit -v`); "
            f"expected at least {_write_size(needed)}."
        )


def refuse_large(path: Path) -> None:
    """Refuse a file that will not fit into free memory, before it is opened."""
    with suppress(OSError):
        needed = path.stat().st_size * TABLE.get(path.suffix.lower(), 1)
        free = available()
        if needed > free:
            raise InputError(
                f"'{path}' needs about {_write_size(needed)} of memory or more, and "
                f"{_write_size(int(free))} is free. Use a smaller table, a larger machine, or "
                "--engine spark."
            )


def available() -> float:
    """Return the bytes of memory that this process can still get; infinite if unknown."""
    pages = _numbers("/proc/self/statm")
    used = pages[0] * mmap.PAGESIZE if pages else 0
    free = [_limit("RLIMIT_AS") - used, _limit("RLIMIT_DATA")]
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    most = _numbers("/sys/fs/cgroup/memory.max")  # "max" where there is no limit
    taken = _numbers("/sys/fs/cgroup/memory.current")
    if most and taken:
        free.append(most[0] - taken[0])
    return max(min(free), 0)


def room() -> int:
    """Return the bytes that a decoded file may take."""
    return int(min(available(), 1 << 62))


def _limit(name: str) -> float:
    if sys.platform == "win32":
        return math.inf  # Windows knows no such limits.
    import resource  # noqa: PLC0415 (only where there is such a module)

    soft = resource.getrlimit(getattr(resource, name))[0]
    return math.inf if soft == resource.RLIM_INFINITY else soft


def _numbers(path: str) -> list[int]:
    with suppress(OSError, ValueError):
        return [int(word) for word in Path(path).read_text(encoding="ascii").split()]
    return []


def _write_size(size: int) -> str:
    """Write a size with at most three digits.

    >>> _write_size(1_500_000_000), _write_size(250_000)
    ('1.5 GB', '0.25 MB')
    """
    unit, name = next((u, n) for u, n in ((1e12, "TB"), (1e9, "GB"), (0, "MB")) if size >= u)
    return f"{size / (unit or 1e6):.3g} {name}"

"""Read files and frames into tables, and write tables back.

The functions of its modules are here too, and are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.io.csv_files import (
        CLOSED_QUOTES,
        DELIMITERS,
        GUARDED,
        SAMPLE,
        check_delimiter,
        check_header,
        find_delimiter,
        find_encoding,
        header_line,
    )
    from shoal.io.files import (
        FORMATS,
        check_writable,
        is_packed,
        is_text,
        marks,
        marks_of_other,
        read,
        take,
        write,
    )
    from shoal.io.frames import from_native
    from shoal.io.raw import Raw
    from shoal.io.stats_files import STATS, STATS_NAMES

__all__ = [
    "CLOSED_QUOTES",
    "DELIMITERS",
    "FORMATS",
    "GUARDED",
    "SAMPLE",
    "STATS",
    "STATS_NAMES",
    "Raw",
    "check_delimiter",
    "check_header",
    "check_writable",
    "find_delimiter",
    "find_encoding",
    "from_native",
    "header_line",
    "is_packed",
    "is_text",
    "marks",
    "marks_of_other",
    "read",
    "take",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("files", "csv_files", "frames", "raw", "stats_files"):
            namespace = vars(import_module(f"shoal.io.{module}"))
            if name in namespace:
                return namespace[name]
    raise AttributeError(f"module 'shoal.io' has no attribute '{name}'")

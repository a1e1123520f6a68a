"""Bytes into a table, and back: files, frames, types, external releases.

The functions of `shoal.io.files` are here too, and are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.io.files import (
        DELIMITERS,
        FORMATS,
        GUARDED,
        SAMPLE,
        STATS,
        STATS_NAMES,
        Raw,
        check_header,
        check_writable,
        found_delimiter,
        found_encoding,
        from_native,
        header_line,
        marks,
        marks_of_other,
        read,
        stated_delimiter,
        write,
    )

__all__ = [
    "DELIMITERS",
    "FORMATS",
    "GUARDED",
    "SAMPLE",
    "STATS",
    "STATS_NAMES",
    "Raw",
    "check_header",
    "check_writable",
    "found_delimiter",
    "found_encoding",
    "from_native",
    "header_line",
    "marks",
    "marks_of_other",
    "read",
    "stated_delimiter",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("shoal.io.files"), name)
    raise AttributeError(f"module 'shoal.io' has no attribute '{name}'")

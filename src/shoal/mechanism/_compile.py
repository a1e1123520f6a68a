"""How kernels of this room are compiled: on first use, once a machine.

As `shoal.partition` does it; rooms beside one another may not import one another.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on first use, with strict IEEE arithmetic and a cache on disk."""
    dispatcher = njit(cache=True)(function)
    # Numba compares the kernel's own file only; a kernel may call one of another file.
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _sources())  # noqa: SLF001  # no public way
    return cast("Function", dispatcher)


@cache
def _sources() -> str:
    digest = sha256()
    for path in sorted(Path(__file__).parent.glob("_*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()

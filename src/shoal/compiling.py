"""How kernels are compiled: on first use, once a machine, and not in silence.

Numba keeps compiled kernels beside the source or, where that folder is read-only, in the
user's cache folder (NUMBA_CACHE_DIR overrides both), so that later processes load them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on first use, with strict IEEE arithmetic and a cache on disk."""
    return cast("Function", _stamped(njit(cache=True)(function)))


def vector_kernel(function: Function) -> Function:
    """Compile like `kernel`, and let minima and maxima use vector instructions.

    The compiler may assume that there is no NaN and that the sign of zero is of no
    interest. It may still not reorder or fuse sums and products.
    """
    return cast("Function", _stamped(njit(cache=True, fastmath={"nnan", "nsz"})(function)))


def _stamped(dispatcher: Any) -> Any:
    """Make the cache of a kernel depend on the sources of all kernels.

    Numba compares the file of the kernel only, and would load a kernel that was compiled
    with an older version of what it calls from another file.
    """
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _sources())  # noqa: SLF001  # no public way
    return dispatcher


@cache
def _sources() -> str:
    digest = sha256()
    for path in sorted(Path(__file__).parent.rglob("_*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def compile_notice(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with one sentence if kernels must be compiled inside the `with` block.

    Nothing is told where the kernels are already loaded or cached on disk.
    """
    listener = _Listener(tell)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


class _Listener(event.Listener):  # type: ignore[misc]  # numba is untyped
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told = False

    def on_start(self, event: Any) -> None:
        dispatcher = event.data.get("dispatcher")
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", "")
        if module.startswith("shoal.") and not self._told:
            self._told = True
            self._tell("Compiling kernels, once on this machine; about 10 s.")

    def on_end(self, event: Any) -> None:
        """Say nothing: the result speaks."""

"""Compile kernels on first use, once per machine, and with a notice.

Numba keeps compiled kernels beside the source or, where that folder is read-only, in the
user's cache folder (NUMBA_CACHE_DIR overrides both), so later processes load them. If no folder can
be written, every process compiles them again in memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_notices: list[Callable[[], None]] = []
_listening: list[bool] = []


def kernel(function: Function) -> Function:
    """Compile a function on first use, with strict IEEE arithmetic and a cache on disk.

    Other threads run meanwhile: one of them ends a command that was interrupted.
    """
    return _kernel(function)


def vector_kernel(function: Function) -> Function:
    """Compile like `kernel`, and let minima and maxima use vector instructions.

    The compiler may assume that there is no NaN and that the sign of zero does not matter. It may
    still not reorder or fuse sums and products.
    """
    return _kernel(function, fastmath={"nnan", "nsz"})


def _kernel(function: Function, **options: Any) -> Function:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return function  # Compiling is switched off, for a debugger.
    return cast("Function", Kernel(cast("FunctionType", function), options))


class Kernel:
    """A function that runs compiled; it takes positional arguments only.

    Numba is imported when it first runs.

    Attributes:
        py_func: the function as it is written.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiled or loaded for arguments of these types."""
        return self.dispatcher(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the kernel."""
        from shoal.core import compiler  # noqa: PLC0415 (Numba takes long to import)

        if not _listening:
            _listening.append(True)
            compiler.listen(_tell_all)
        return compiler.compile_kernel(self.py_func, **self._options)

    @property
    def _numba_type_(self) -> Any:
        """The kernel's type when Numba compiles a caller of it."""
        return self.dispatcher._numba_type_


@contextmanager
def compile_notice(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with one sentence if kernels are compiled within the `with` block.

    It is not called if the kernels are already loaded or cached on disk.
    """
    notice = partial(_once, tell, [])
    _notices.append(notice)
    try:
        yield
    finally:
        _notices.remove(notice)


def _tell_all() -> None:
    for tell in _notices:
        tell()


def _once(tell: Callable[[str], None], told: list[bool]) -> None:
    if not told:
        told.append(True)
        tell("Compiling what this method needs, once on this machine; about 10 s.")

"""How kernels are compiled: on first use, once per machine, and with a notice.

Numba keeps compiled kernels beside the source or, where that folder is read-only, in the
user's cache folder (NUMBA_CACHE_DIR overrides both), so later processes load them. If no folder
can be written, every process compiles them again in memory.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])
_DIGEST = sha256().digest_size


def kernel(function: Function) -> Function:
    """Compile a function on first use, with strict IEEE arithmetic and a cache on disk.

    Other threads run meanwhile: one of them ends a command that was interrupted.
    """
    return cast("Function", _cached(njit(nogil=True)(function)))


def vector_kernel(function: Function) -> Function:
    """Compile like `kernel`, and let minima and maxima use vector instructions.

    The compiler may assume that there is no NaN and that the sign of zero does not matter. It may
    still not reorder or fuse sums and products.
    """
    return cast("Function", _cached(njit(nogil=True, fastmath={"nnan", "nsz"})(function)))


def _cached(dispatcher: Any) -> Any:
    """Give a kernel its cache on disk, if a folder can be written."""
    if not hasattr(dispatcher, "py_func"):  # Compiling is switched off, for a debugger.
        return dispatcher
    with suppress(RuntimeError):  # Numba cannot write anywhere.
        dispatcher._cache = _KernelCache(dispatcher.py_func)  # noqa: SLF001  # as enable_caching does
    return dispatcher


class _KernelCache(FunctionCache):  # type: ignore[misc]  # numba is untyped
    """Numba's cache of one function, guarded against stale sources and full disks.

    It depends on the sources of all kernels and on how they are compiled: Numba compares the file
    of the kernel only, and would load one that was compiled with an older version of what it calls
    from another file. A cache that cannot be written, on a full disk for one, costs time and stops
    nothing.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), _sources()),
        )

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]  # numba is untyped
    """Cache files that begin with a digest: a damaged kernel is compiled again, never run.

    A file is named by what it holds and written before the index names it. Numba would number it,
    and two processes that compile at once could give one number to two kernels.
    """

    def save(self, key: Any, data: Any) -> None:
        overloads, stem = self._load_index(), self._index_name.removesuffix("nbi")
        if not overloads:  # What is left is of other sources.
            for stale in Path(self._cache_path).glob(f"{escape(stem)}*.nbc"):
                stale.unlink(missing_ok=True)
        name = sha256(repr((key, self._source_stamp)).encode()).hexdigest()[:16]
        overloads[key] = f"{stem}{name}.nbc"
        self._save_data(overloads[key], data)
        self._save_index(overloads)

    def _load_index(self) -> dict[Any, str]:
        # Unpickling a damaged file may raise anything; then there is no index.
        with suppress(Exception), Path(self._index_path).open("rb") as file:
            if pickle.load(file) == self._version:  # noqa: S301  # Numba's own file
                stamp, overloads = _whole(file.read())
                if stamp == self._source_stamp:
                    return cast("dict[Any, str]", overloads)
        return {}

    def _load_data(self, name: str) -> Any:
        try:
            return _whole(Path(self._data_path(name)).read_bytes())
        except ValueError:
            return None

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return sha256(content).digest() + content


def _whole(raw: bytes) -> Any:
    digest, content = raw[:_DIGEST], raw[_DIGEST:]
    if sha256(content).digest() != digest:
        raise ValueError("damaged")
    return pickle.loads(content)  # noqa: S301  # the digest is that of what we wrote


@cache
def _sources() -> str:
    digest = sha256(Path(__file__).read_bytes())
    for path in sorted(Path(__file__).parents[1].rglob("kernels/*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def compile_notice(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with one sentence if kernels must be compiled inside the `with` block.

    It is not called if the kernels are already loaded or cached on disk.
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
        """Do nothing."""

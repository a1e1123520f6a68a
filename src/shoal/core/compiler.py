"""Numba, with a cache that is guarded against stale sources and full disks.

`jit` imports it when the first kernel runs.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from glob import escape
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

_DIGEST = sha256().digest_size


@cache
def sources() -> str:
    """Return a digest of the sources of all kernels, and of how they are compiled.

    Numba compares the file of the kernel only, and would load one that was compiled with an older
    version of what it calls from another file.
    """
    here, digest = Path(__file__).parent, sha256()
    how = [here / f"{name}.py" for name in ("compiler", "jit")]
    for path in [*how, *sorted(here.parent.glob("*/kernels/*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_kernel(function: FunctionType, **options: Any) -> Any:
    """Make Numba's dispatcher of a kernel, with a cache on disk if a folder is writable."""
    dispatcher = njit(nogil=True, **options)(function)
    with suppress(RuntimeError):  # Numba cannot write anywhere.
        dispatcher._cache = _KernelCache(function)  # noqa: SLF001  # as enable_caching does
    return dispatcher


def listen(tell: Callable[[], None]) -> None:
    """Call `tell` whenever the compilation of one of our kernels begins."""
    event.register("numba:compile", _Listener(tell))


class _KernelCache(FunctionCache):  # type: ignore[misc]  # numba is untyped
    """Numba's cache of one function, which depends on the sources of all kernels.

    If the cache cannot be written, for example on a full disk, kernels are compiled again.
    """

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), sources()),
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


class _Listener(event.Listener):  # type: ignore[misc]  # numba is untyped
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def on_start(self, event: Any) -> None:
        dispatcher = event.data.get("dispatcher")
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", "")
        if module.startswith("shoal."):
            self._tell()

    def on_end(self, event: Any) -> None:
        """Do nothing."""

"""Kernels with read-only folders, full disks and damaged caches."""

import importlib.util
import pickle

import pytest
from numba.core import config, event

from shoal.core import compiler
from shoal.core.jit import compile_notice
from shoal.partition.kernels.univariate import label_runs

SOURCE = """
from shoal.core.jit import kernel

@kernel
def twice(x):
    return x + x
"""


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Load a kernel anew, as another process would, run it, and say whether it was compiled."""
    file = tmp_path / "source" / "tiny.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    class Listener(event.Listener):
        def __init__(self):
            self.count = 0

        def on_start(self, _event):
            self.count += 1

        def on_end(self, _event):
            pass

    def run(between=lambda _kernel: None):
        spec = importlib.util.spec_from_file_location("tiny", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        between(module.twice)
        listener = Listener()
        event.register("numba:compile", listener)
        try:
            assert module.twice(21) == 42
        finally:
            event.unregister("numba:compile", listener)
        return listener.count > 0

    return run


def kept(tmp_path, suffix):
    return list((tmp_path / "cache").rglob(f"*.{suffix}"))


def test_a_kernel_is_compiled_once(compiled):
    assert compiled()
    assert not compiled()


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[: len(raw) // 2],
        lambda _raw: b"",
        lambda _raw: b"garbage",
        lambda raw: raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:],
        lambda raw: raw[: len(raw) // 2] + b"\0" * (len(raw) - len(raw) // 2),
    ],
)
def test_a_damaged_cache_is_built_again(compiled, tmp_path, suffix, damage):
    compiled()
    for path in kept(tmp_path, suffix):
        path.write_bytes(damage(path.read_bytes()))

    assert compiled()
    assert not compiled()


def test_kernels_work_where_no_folder_can_be_written(compiled, tmp_path, monkeypatch):
    # Files where folders would be made: root may not write there either.
    for name in ("cache", "home", "source/__pycache__"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert compiled()
    assert compiled()


def test_a_cache_that_can_no_longer_be_written_stops_nothing(compiled, tmp_path):
    def fill(kernel):
        assert kernel.dispatcher
        for folder in (tmp_path / "cache").iterdir():
            folder.rmdir()
            folder.write_text("")

    assert compiled(fill)


def test_two_processes_that_compile_at_once_never_take_each_others_kernels(tmp_path, monkeypatch):
    one, two = (compiler._CacheFile(str(tmp_path), "tiny-1.py3", "sources") for _ in range(2))
    monkeypatch.setattr(one, "_load_index", dict)
    monkeypatch.setattr(two, "_load_index", dict)  # both look before either has written

    two._save_data = lambda name, data: (one.save("a", 1), type(two)._save_data(two, name, data))
    two.save("b", 2)

    late = compiler._CacheFile(str(tmp_path), "tiny-1.py3", "sources")
    assert (late.load("a"), late.load("b")) in {(1, 2), (None, 2), (1, None)}
    other = compiler._CacheFile(str(tmp_path), "tiny-1.py3", "other sources")
    assert other.load("b") is None


def test_what_is_compiled_for_others_is_not_told():
    told = []
    with compile_notice(told.append):
        pass

    assert not told


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(label_runs)) is label_runs  # noqa: S301 (made here)

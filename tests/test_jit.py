"""Kernels with read-only folders, full disks and damaged caches, and kernels without Numba."""

import importlib.util
import pickle
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import typeof
from numba.core import config, event

from shoal.core import compiler, machine_code
from shoal.core.jit import compile_notice
from shoal.core.kernels.row_order import radix_order

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
    for path in kept(tmp_path, "nbo"):
        path.unlink()

    assert compiled()
    assert not compiled()


@pytest.mark.parametrize("damage", [lambda _raw: b"", lambda raw: raw[:-9] + b"\0" + raw[-8:]])
def test_damaged_machine_code_is_not_run_and_is_kept_again(compiled, tmp_path, damage):
    compiled()
    (path,) = kept(tmp_path, "nbo")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))

    assert not compiled()
    assert path.read_bytes() == whole


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


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 (its members have any type)
numbers = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1), st.floats(), st.booleans(),
    st.sampled_from([np.float32(1), np.int8(1), np.uint64(1), np.bool_(1), np.float64(1)]),
)  # fmt: skip
dtypes = st.sampled_from(["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])


@st.composite
def arrays(draw):
    array = np.zeros(draw(st.sampled_from([(), (3,), (2, 3), (0, 2), (2, 1, 2)])), draw(dtypes))
    if array.ndim:
        array = draw(st.sampled_from([array, np.asfortranarray(array), array.T, array[..., ::2]]))
    array.flags.writeable = draw(st.booleans())
    return array


@given(st.lists(st.one_of(numbers, arrays(), st.builds(Pair, numbers, arrays())), min_size=1))
def test_the_types_of_arguments_are_written_as_numba_writes_them(args):
    assert machine_code.signature(args) == repr(tuple(map(typeof, args)))


@pytest.mark.parametrize(
    "odd",
    [
        1 << 63, 1j, "text", None, [1], (1, 2), np.zeros(2, ">f8"), np.zeros(2, "f2"),
        np.zeros(2, "M8[s]"), np.zeros(2, "O"), np.ma.zeros(2), Pair(1, "text"),
    ],
)  # fmt: skip
def test_arguments_of_other_types_are_left_to_numba(odd):
    assert machine_code.signature([odd]) is None


WITHOUT = """
import sys
import numpy as np
from shoal.partition import individual_ranking, mdav
from shoal.core.jit import Kernel
X = np.random.default_rng(0).normal(size=(3000, 3))
groups = mdav(X, 5)
ours = [m for name, m in sys.modules.items() if name.startswith("shoal.")]
every = {id(one): one for m in ours for one in vars(m).values() if isinstance(one, Kernel)}
used = {one.__name__ for one in every.values() if one.signatures}
print(groups.labels.sum(), "numba" in sys.modules, len(every) > 50, *sorted(used))
"""


@pytest.mark.skipif(not machine_code.usable(), reason="machine code is loaded on Linux x86-64")
def test_kernels_that_were_compiled_run_without_numba_and_no_other_kernel_is_touched():
    first, second = (
        subprocess.run(
            [sys.executable, "-c", WITHOUT], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    )

    assert second[1:3] == ["False", "True"]
    assert set(second[3:]) <= {"brute_rounds", "of_few_values", "plant", "tree_rounds"}
    assert first[0] == second[0]


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(radix_order)) is radix_order  # noqa: S301 (made here)

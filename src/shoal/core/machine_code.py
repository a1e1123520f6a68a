"""Kernels that were compiled before, loaded without Numba.

Numba takes longer to import than most commands run, and only compiling needs it. What it compiles
is an object file: machine code with a wrapper that takes Python's arguments. `compiler` keeps that
file beside Numba's own, and a later process hands it to LLVM's linker, as Numba would, with the
same helpers: the same instructions run, so results are the same to the last bit.

A kernel that is not kept, was kept for other sources, libraries or another processor, is damaged,
or needs a symbol that is not there, is left to Numba; so is every kernel on another system than
Linux on x86-64. Each kernel has a linker of its own, because names inside two object files may
clash.
"""

import builtins
import ctypes
import os
import pickle
import platform
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha1, sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

_DIGEST = sha256().digest_size
_SYMBOLS = 2  # the type of a section that is a table of symbols, in ELF
_WORD = 8  # bytes of the largest number
_HARMLESS = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"})
_linkers: list[Any] = []  # They own the code, which runs until the process ends.


class MachineCode(NamedTuple):
    """A compiled kernel.

    Attributes:
        wrapper: the name of the function in it that Python calls.
        environment: the name of the variable that holds what the wrapper needs.
        constants: what each such variable holds.
        needs: names of the functions that it calls and does not have.
    """

    wrapper: str
    environment: str
    constants: Mapping[str, Sequence[Any]]
    needs: Sequence[str]
    code: bytes


def signature(args: Sequence[Any]) -> str | None:
    """The types of some arguments as Numba writes them; None if one is not as simple as that.

    >>> signature((2, 0.5, True))
    '(int64, float64, bool)'
    """
    texts = [_type_text(arg) for arg in args]
    if None in texts:
        return None
    return f"({', '.join(map(str, texts))}{',' if len(texts) == 1 else ''})"


def _type_text(arg: Any, *, brief: bool = False) -> str | None:  # noqa: PLR0911 (a sort each)
    """The type of an argument; members of a tuple with names are written briefly."""
    dtype = getattr(arg, "dtype", None)
    if dtype is None:
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            held = [_type_text(one, brief=True) for one in arg]
            return None if None in held else f"{type(arg).__name__}({', '.join(map(str, held))})"
        whole = type(arg) is int and -(1 << 63) <= arg < 1 << 63
        return "int64" if whole else {bool: "bool", float: "float64"}.get(type(arg))
    if (
        dtype.kind not in "biuf"
        or dtype.itemsize > _WORD
        or not dtype.isnative
        or dtype.char == "e"
    ):
        return None
    if type(arg) is dtype.type:
        return str(dtype.name)
    if f"{type(arg).__module__}.{type(arg).__name__}" != "numpy.ndarray":
        return None
    flags = arg.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    if not brief:
        fixed = not flags.writeable
        return f"Array({dtype.name}, {arg.ndim}, '{layout}', {fixed}, aligned={flags.aligned})"
    kind = ("" if flags.writeable else "readonly ") + ("" if flags.aligned else "unaligned ")
    return f"{kind}array({dtype.name}, {arg.ndim}d, {layout})"


@cache
def sources() -> str:
    """A digest of the sources of all kernels, and of how they are compiled and loaded.

    Numba compares the file of the kernel only, and would load one that was compiled with an older
    version of what it calls from another file.
    """
    here, digest = Path(__file__).parent, sha256()
    how = [here / f"{name}.py" for name in ("compiler", "jit", "machine_code")]
    for path in [*how, *sorted(here.parent.glob("*/kernels/*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def keep(folder: Path, function: FunctionType, types: str, made: MachineCode) -> None:
    """Keep a kernel for later processes."""
    if not usable():
        return
    content = pickle.dumps(tuple(made._replace(needs=tuple(_undefined(made.code)))))
    place = folder / _file_name(function, types)
    new = place.with_suffix(f".{os.getpid()}.new")
    new.write_bytes(sha256(content).digest() + content)
    new.replace(place)


def is_kept(folder: Path, function: FunctionType, types: str) -> bool:
    """Whether a kernel that `load` would take is there."""
    return not usable() or _read(folder / _file_name(function, types)) is not None


def load(function: FunctionType, types: str) -> Callable[..., Any] | None:
    """Load a kernel that was compiled from a function for arguments of some types."""
    if not usable():
        return None
    for folder in _folders(Path(function.__code__.co_filename)):
        made = _read(folder / _file_name(function, types))
        if made is not None:
            return _linked(function, made)
    return None


@cache
def usable() -> bool:
    """Whether machine code can be loaded here; not if Numba is told how to compile."""
    told = {name for name in os.environ if name.startswith("NUMBA_")} - _HARMLESS
    return not told and (sys.platform, platform.machine()) == ("linux", "x86_64")


def _file_name(function: FunctionType, types: str) -> str:
    where = function.__code__.co_firstlineno
    about = (function.__module__, function.__qualname__, where, types, _stamp())
    digest = sha256(repr(about).encode()).hexdigest()[:16]
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}-{where}.{digest}.nbo"


@cache
def _stamp() -> tuple[str, ...]:
    """What else machine code depends on."""
    import llvmlite.binding as llvm  # noqa: PLC0415 (only where there are kernels)

    processor = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    libraries = (version(name) for name in ("numba", "llvmlite", "numpy"))
    return (sources(), str(sys.implementation.cache_tag), *processor, *libraries)


def _folders(source: Path) -> Iterator[Path]:
    """Where Numba keeps what it compiles from a file, the first choice first."""
    about = str(source.absolute().parent)
    name = f"{source.absolute().parent.name}_{sha1(about.encode()).hexdigest()}"  # noqa: S324 (Numba's)
    if stated := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(stated, name)
    yield source.parent / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "numba" / name


def _read(path: Path) -> MachineCode | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    if sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
        return None
    return MachineCode(*pickle.loads(raw[_DIGEST:]))  # noqa: S301  # the digest is that of what we wrote


def _linked(function: FunctionType, made: MachineCode) -> Callable[..., Any] | None:
    try:
        llvm, helpers = _llvm()
    except (ImportError, LookupError, OSError, AttributeError, StopIteration):
        return None
    loaded = ctypes.CDLL(None)  # the functions of Python and C
    if not all(llvm.address_of_symbol(name) or hasattr(loaded, name) for name in made.needs):
        return None  # LLVM would end the process
    target = llvm.Target.from_triple(llvm.get_process_triple())
    linker = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.create_target_machine())
    linker.add_object_file(llvm.ObjectFileRef.from_data(made.code))
    linker.finalize_object()
    _linkers.append(linker)
    held = {}
    for name, constants in made.constants.items():
        held[name] = helpers.Environment(function.__globals__)
        held[name].consts.extend(constants)
        if place := linker.get_global_value_address(name):
            ctypes.c_void_p.from_address(place).value = id(held[name])
    _linkers.append(held)
    address = linker.get_function_address(made.wrapper)
    own = sys.modules.get(function.__module__) or ModuleType(function.__module__)
    called: Callable[..., Any] = helpers.make_function(
        own, function.__name__, function.__doc__ or "", address, held[made.environment], (linker,)
    )
    return called


@cache
def _llvm() -> tuple[Any, Any]:
    """LLVM, which knows the helpers that kernels call; and those that make functions of kernels."""
    import llvmlite.binding as llvm  # noqa: PLC0415 (only where there are kernels)

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    functions, helpers = _extension("numba._dynfunc"), _extension("numba._helperlib")
    memory = _extension("numba.core.runtime._nrt_python")
    named = {f"numba_{name}": place for one in (helpers, functions)
             for name, place in one.c_helpers.items()}  # fmt: skip
    named |= {name if name.startswith("_") else f"NRT_{name}": place
              for name, place in memory.c_helpers.items()}  # fmt: skip
    named |= {f"PyExc_{one.__name__}": id(one) for one in vars(builtins).values()
              if isinstance(one, type) and issubclass(one, BaseException)}  # fmt: skip
    for name, place in {**named, "_Py_NoneStruct": id(None)}.items():
        llvm.add_symbol(name, place)
    _teach_unpickling(helpers.c_helpers["unpickle"])
    return llvm, functions


def _teach_unpickling(place: int) -> None:
    """Let kernels unpickle the classes of their results, which for Numba is a function of its own.

    Its helper imports that function when it is first called, and keeps it. So it is called once
    where the names lead here; Numba itself is imported under them later as if nothing had been.
    """
    name = "numba.core.serialize"
    if "numba" in sys.modules:
        return
    names = ("numba", "numba.core", name)
    stand_ins = {one: ModuleType(one) for one in names}
    known: dict[tuple[int, bytes], Any] = {}

    def unpickle(address: int, pickled: bytes, digest: bytes) -> Any:
        key = (address, digest)
        if key not in known:
            known[key] = pickle.loads(pickled)  # noqa: S301  # from machine code that we run
        return known[key]

    setattr(stand_ins[name], "_numba_unpickle", unpickle)  # noqa: B010 (it is Numba's own name)
    sys.modules.update(stand_ins)
    try:
        nothing = pickle.dumps(None)
        takes = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
        takes(place)(nothing, len(nothing), bytes(64))
    finally:
        for one in names:
            del sys.modules[one]


def _extension(name: str) -> Any:
    """One of Numba's compiled modules, without the package around it; Numba takes it as it is."""
    if name in sys.modules:
        return sys.modules[name]
    found = find_spec("numba")
    if found is None or found.origin is None:
        raise ImportError(name)
    stem = Path(found.origin).parent.joinpath(*name.split(".")[1:])
    path = next(p for end in EXTENSION_SUFFIXES if (p := Path(f"{stem}{end}")).exists())
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _undefined(code: bytes) -> Iterator[str]:
    """Names that an ELF file of 64 bits refers to and does not define."""
    (table,) = struct.unpack_from("<Q", code, 40)
    size, number = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + size * at) for at in range(number)]
    for _, kind, _, _, start, length, texts, *_ in sections:
        if kind != _SYMBOLS:
            continue
        names = sections[texts][4]
        for at in range(start, start + length, 24):
            name, _, _, home = struct.unpack_from("<IBBH", code, at)
            if name and not home:
                yield code[names + name : code.index(b"\0", names + name)].decode()

"""The public interface, name by name: `tests/public_api.txt` is what it was when last accepted.

`python tests/test_public_api.py` rewrites the list. docs/reference/releases.md says what a
change of it means for a version's number.
"""

import difflib
import inspect
import pkgutil
import subprocess
import sys
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import get_origin, is_typeddict

import shoal

ROOMS = (
    "shoal",
    "shoal.analysis",
    "shoal.core",
    "shoal.hierarchy",
    "shoal.io",
    "shoal.methods",
    "shoal.partition",
    "shoal.metrics",
    "shoal.privacy_models",
    "shoal.sklearn",
)
LIST = Path(__file__).with_name("public_api.txt")
HEAD = """\
# What others may build on, in signatures without types: * before arguments that go by name alone,
# ... for a default that is no plain value. Written by `python tests/test_public_api.py`.
"""
PLAIN = (type(None), bool, int, float, str)


def listing():
    """The whole interface as text."""
    return HEAD + "".join(f"\n## {room}\n\n{lines(import_module(room))}" for room in ROOMS)


def lines(module):
    """One room: what it lists in `__all__`, or what it and its own public modules define."""
    names = getattr(module, "__all__", None)
    if names is not None:
        return "".join(entry(name, getattr(module, name)) for name in sorted(names))
    own = [
        entry(name, value)
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    parts = sorted(one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ())))
    own += [
        f"\n### {module.__name__}.{part}\n\n{lines(import_module(f'{module.__name__}.{part}'))}"
        for part in parts
        if not part.startswith("_")
    ]
    return "".join(own)


def entry(name, value):
    if inspect.isclass(value):
        return described(name, value)
    if get_origin(value) is not None:
        return f"{name}: alias of a type\n"
    if callable(value):
        return f"{name}{signature(value)}\n"
    if name == "__version__":
        return f"{name}\n"
    return f"{name}: {type(value).__name__}\n"


def described(name, kind):
    """A class: how it is made, and what it has beside its fields."""
    if issubclass(kind, Enum):
        members = ", ".join(f"{one.name}={one.value!r}" for one in kind)
        return f"enum {name}: {members}\n"
    if is_typeddict(kind):
        return f"options {name}: {', '.join(kind.__annotations__)}\n"
    bases = [base.__name__ for base in kind.__bases__ if base is not object]
    if issubclass(kind, BaseException):
        return f"error {name}({', '.join(bases)})\n"
    made = "" if getattr(kind, "_is_protocol", False) else signature(kind)
    own = {
        one: value
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("shoal")
        for one, value in vars(base).items()
        if not one.startswith("_") and one not in made.strip("()").replace("=", ", ").split(", ")
    }
    text = f"class {name}{made}\n"
    for one, value in sorted(own.items()):
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            text += f"    {one}\n"
        elif inspect.isroutine(value):
            text += f"    {one}{signature(getattr(kind, one))}\n"
    return text


def signature(function):
    shown, by_name = [], False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not by_name:
            by_name = True
            shown.append("*")
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        by_name |= one.kind is one.VAR_POSITIONAL
        shown.append(f"{stars}{one.name}{default(one)}")
    return f"({', '.join(shown)})"


def default(parameter):
    value = parameter.default
    if value is parameter.empty:
        return ""
    if isinstance(value, Enum):
        return f"={type(value).__name__}.{value.name}"
    return f"={value!r}" if isinstance(value, PLAIN) else "=..."


def test_the_public_interface_is_the_one_that_was_accepted():
    before, now = LIST.read_text("utf-8"), listing()

    changed = "\n".join(
        difflib.unified_diff(before.splitlines(), now.splitlines(), "accepted", "found", "", "", 0)
    )

    assert not changed, (
        f"\n{changed}\n\nThe public interface has changed. If that is meant, say so in CHANGELOG.md"
        " (docs/reference/releases.md says what it does to the version), and accept it:"
        "\n    .venv/bin/python tests/test_public_api.py"
    )


def test_every_public_name_can_be_had_and_is_shown():
    assert {*shoal.__all__} <= {*dir(shoal)}
    assert [*shoal.__all__] == sorted(shoal.__all__)
    assert all(getattr(shoal, name) is not None for name in dir(shoal))
    assert {room.partition(".")[2] for room in ROOMS[1:]} - {"sklearn"} <= {*dir(shoal)}


def test_the_version_is_that_of_the_package_and_costs_no_start():
    assert shoal.__version__ == version("shoal")

    program = "import sys, shoal; print('importlib.metadata' in sys.modules, shoal.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.split() == [b"False", shoal.__version__.encode()]


if __name__ == "__main__":
    LIST.write_text(listing(), encoding="utf-8")

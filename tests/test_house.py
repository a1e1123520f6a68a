"""The house: names that occur once, files that can be read, rooms in their order."""

import ast
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import shoal
from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError

HOME = Path(shoal.__file__).parent
ROOT = Path(__file__).parents[1]
FILES = sorted(HOME.rglob("*.py"))
MODULES = {
    path: ".".join(("shoal", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in FILES
}
ARRAYS = HOME / "core" / "_arrays.py"


def test_no_public_class_has_a_name_that_another_has():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(MODULES[path])

    assert len(places) > 250
    assert {name: own for name, own in places.items() if len(own) > 1} == {}


def test_short_names_for_arrays_stand_in_one_module():
    found = [
        (MODULES[path], node.targets[0].id)
        for path in FILES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and ast.unparse(node.value).startswith("NDArray[")
    ]

    assert len(found) >= 5
    assert {module for module, _ in found} == {MODULES[ARRAYS]}


def test_no_module_binds_a_name_twice():
    """Of two constants of one name, which merged files may bring, the later holds for both."""
    twice = []
    for path in FILES:
        bound = Counter()
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign):
                names = (leaf for target in node.targets for leaf in ast.walk(target))
                named = [leaf for leaf in names if isinstance(leaf, ast.Name)]
                bound.update(leaf.id for leaf in named if isinstance(leaf.ctx, ast.Store))
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound[node.name] += 1
        twice += [(MODULES[path], name) for name, times in bound.items() if times > 1]

    assert twice == []


def test_no_file_has_more_than_600_lines():
    long = {MODULES[p]: n for p in FILES if (n := len(p.read_text("utf-8").splitlines())) > 600}

    assert long == {}


def test_every_package_lies_in_exactly_one_of_14_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = [found["layers"] for found in contracts["contracts"] if found["type"] == "layers"]
    rooms = [room.strip() for layer in layers for room in layer.split("|")]
    top = {".".join(module.split(".")[:2]) for module in MODULES.values()}

    assert len(layers) <= 14
    assert sorted(rooms) == sorted(top - {"shoal", "shoal.__main__"})


def test_no_package_hides_a_function_of_the_same_name():
    """An import of `shoal.audit.audit` would put a package where `shoal.audit` was a function."""
    packages = {module.split(".")[1] for module in MODULES.values() if "." in module}

    assert not packages & set(shoal.__all__)


def test_columns_and_schemas_refuse_what_cannot_be():
    with pytest.raises(InputError, match="from low to high, found 9 and 3"):
        Column("age", Role.OTHER, Kind.NUMERIC, (9, 3))
    with pytest.raises(InputError, match="found 'age' twice"):
        Schema((Column("age", Role.OTHER), Column("age", Role.IDENTIFIER)))
    with pytest.raises(KeyError, match=r"no column .agge.\. Did you mean .age.\?"):
        Schema((Column("age", Role.OTHER),))["agge"]

"""The house: names that occur once, files that can be read, rooms in their order."""

import ast
import tomllib
from collections import defaultdict
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


def test_the_top_has_at_most_24_names_and_no_file_has_more_than_600_lines():
    top = {path.relative_to(HOME).parts[0].removesuffix(".py") for path in FILES}
    long = {MODULES[p]: n for p in FILES if (n := len(p.read_text("utf-8").splitlines())) > 600}

    assert len(top) <= 24, sorted(top)
    assert long == {}


def test_every_module_lies_in_exactly_one_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = [own["layers"] for own in contracts["contracts"] if own["type"] == "layers"]
    rooms = [room.strip() for layer in layers for room in layer.replace(":", "|").split("|")]
    # A package that is divided among layers has an `__init__` that only says what it is.
    divided = {room.rpartition(".")[0] for room in rooms} - {"shoal"}

    assert len(set(rooms)) == len(rooms)
    for path, module in MODULES.items():
        own = [room for room in rooms if module == room or module.startswith(f"{room}.")]
        if module == "shoal" or (module in divided and path.name == "__init__.py"):
            assert not own
        else:
            assert len(own) == 1, module
    for package in divided:
        lines = ast.parse((HOME / package.split(".")[1] / "__init__.py").read_text("utf-8")).body
        assert all(isinstance(line, ast.Expr) for line in lines), package


def test_columns_and_schemas_refuse_what_cannot_be():
    with pytest.raises(InputError, match="from low to high, found 9 and 3"):
        Column("age", Role.OTHER, Kind.NUMERIC, (9, 3))
    with pytest.raises(InputError, match="found 'age' twice"):
        Schema((Column("age", Role.OTHER), Column("age", Role.IDENTIFIER)))
    with pytest.raises(KeyError, match=r"no column .agge.\. Did you mean .age.\?"):
        Schema((Column("age", Role.OTHER),))["agge"]

"""The list of licences is that of what is pinned and installed."""

import importlib.util
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements"


def generator():
    spec = importlib.util.spec_from_file_location("licences", REQUIREMENTS / "licences.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def test_the_list_has_every_pinned_package_with_the_licence_that_it_states():
    program = generator()
    written = (REQUIREMENTS / "LICENCES.md").read_text("utf-8").splitlines()

    derived = program.page().splitlines()

    assert len(written) == len(derived), "write it again: make licences"
    for old, new in zip(written, derived, strict=True):
        if program.ELSEWHERE in new:  # a package of another platform
            assert old.split(" | ")[:2] == new.split(" | ")[:2]
        else:
            assert old == new, "write it again: make licences"


def test_every_package_of_the_core_states_a_permissive_licence():
    rows = (REQUIREMENTS / "LICENCES.md").read_text("utf-8").splitlines()
    core = [row.split(" | ") for row in rows if row.endswith("| core |")]

    known = ("MIT", "BSD", "Apache", "PSF", "ISC", "Mozilla Public License 2.0")

    assert core
    assert not [row for row in core if not any(mark in row[2] for mark in known)]
    assert not [row for row in rows if "not stated" in row]

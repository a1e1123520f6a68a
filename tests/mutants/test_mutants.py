"""Mutants stay alive: each can be applied to the source, and its tests are there.

`make mutants` applies them and runs the tests, which takes minutes.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.mutants.run import ROOT, mutants

MUTANTS = mutants()


@cache
def names(path):
    """The tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_applies_to_the_source_and_names_tests_that_are_there(mutant):
    text = mutant.source().read_text(encoding="utf-8")

    changed = mutant.applied(text)

    assert changed != text
    compile(changed, mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        path, *function = test.split("::")
        assert not function or re.sub(r"\[.*", "", function[0]) in names(ROOT / path)
        assert (ROOT / Path(path)).is_file()


def test_mutants_have_names_of_their_own_and_lie_in_all_rooms_that_carry_privacy():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 75
    rooms = {mutant.file.split("/")[0] for mutant in MUTANTS}
    assert rooms >= {"budget", "core", "engine", "evaluation", "hazmat", "io", "mechanism",
                     "methods", "pipeline", "publish", "synthesis"}  # fmt: skip

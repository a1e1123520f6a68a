"""The kept inputs of the fuzzer, and a few new ones: see `harness.py`."""

import random

import pytest
from tests.fuzz import harness

FOUND = sorted(path for path in harness.FOUND.iterdir())
NEW = 40
"""Mutated inputs of each parser that the suite tries; `make fuzz-parsers` tries thousands."""


def fine(target, path):
    code, said = harness.outcome(target, path)

    assert code in harness.ALLOWED, (path, said)
    assert path.suffix != ".csv" or not harness.quotes(path.read_bytes(), said), (path, said)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_once_broke_a_parser_does_not_break_it_again(path):
    (target,) = [name for name in harness.TARGETS if path.name.startswith(f"{harness.word(name)}.")]

    fine(target, path)


@pytest.mark.parametrize("target", harness.TARGETS)
def test_every_seed_is_read_or_refused_in_a_sentence(target, tmp_path):
    for seed in harness.seeds_of(target):
        path = tmp_path / f"input.{harness.TARGETS[target][0]}"
        path.write_bytes(seed)

        fine(target, path)


@pytest.mark.parametrize("target", [name for name in harness.TARGETS if name[:7] != "command"])
def test_a_few_mutated_files_are_read_or_refused_in_a_sentence(target, tmp_path):
    seeds = harness.seeds_of(target)
    for number in range(NEW):
        path = tmp_path / f"input.{harness.TARGETS[target][0]}"
        path.write_bytes(harness.mutated(random.Random(number), seeds))  # noqa: S311

        fine(target, path)

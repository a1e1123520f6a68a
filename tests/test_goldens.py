"""What every method releases, claims and measures, seeded: bytes and figures, not sentences.

`python -m tests.goldens.capture` renews `tests/goldens/goldens.json`; the commit says why.
"""

import json

import pytest
from tests.goldens import capture, cases, running

KEPT = json.loads(capture.KEPT.read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in cases.every()}
SAME_MACHINE = running.machine() == KEPT["machine"]


def comparable(kept, *, drawn):
    """What must be equal: on another machine cells and figures may differ in their last bits."""
    if SAME_MACHINE:
        return kept
    tables = {name: dict(table, sha256=None) for name, table in kept["tables"].items()}
    numbers = {} if not drawn else {"checks": None}
    return {**kept, **numbers, "tables": tables, "figures": None}


@pytest.mark.parametrize("name", CASES)
def test_a_release_has_the_bytes_claims_and_figures_that_are_kept(name, tmp_path):
    case = CASES[name]

    released = json.loads(json.dumps(running.run(case, tmp_path)))

    drawn = case["method"] in running.DRAWN
    assert comparable(released, drawn=drawn) == comparable(KEPT["cases"][name], drawn=drawn)


def test_every_method_is_held_in_every_release_form_and_evaluated():
    offered = {(name, form) for name, forms in running.forms().items() for form in forms}
    said = {
        (case["method"], case["policy"]["protect"].get("release_form")) for case in CASES.values()
    }
    evaluated = {case["method"] for case in CASES.values() if case.get("evaluated")}

    assert offered <= said
    assert evaluated == {name for name, _ in offered}
    assert KEPT["cases"].keys() == CASES.keys()


def test_the_bytes_of_tables_are_compared():
    if not SAME_MACHINE:
        pytest.skip(f"digests are of {KEPT['machine']}, this is {running.machine()}")
    seeded = [KEPT["cases"][name] for name, case in CASES.items() if case["seed"] is not None]
    assert len(seeded) > 100
    assert all(table["sha256"] for kept in seeded for table in kept["tables"].values())

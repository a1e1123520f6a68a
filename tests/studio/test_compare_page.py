"""What the page of a comparison shows of a recommendation, and of none."""

from types import SimpleNamespace

import pytest

from shoal.studio.context import Studio
from shoal.studio.pages import compare
from shoal.studio.pages.common import Here


def candidate(label, risk, error):
    ends = [{"value": v, "low": v, "high": v} for v in (risk, error)]
    return {"label": label, "method": label, "standing": "frontier", "risk": ends[0],
            "error": ends[1], "failed": None}  # fmt: skip


@pytest.mark.parametrize(
    ("recommended", "ties", "marked", "rings"),
    [
        ("a", ["a"], [("a", True, False), ("b", False, False)], 1),
        (None, ["a", "b"], [("a", False, True), ("b", False, True)], 2),
        (None, [], [("a", False, False), ("b", False, False)], 0),
    ],
)
def test_what_cannot_be_told_apart_is_marked_and_not_recommended(recommended, ties, marked, rings):
    facts = {
        "recommended": recommended,
        "ties": ties,
        "recommendation": "A sentence. And another.",
        "axes": {"risk": "R.", "error": "E."},
        "settings": {"confidence": 0.95},
        "candidates": [candidate("a", 0.01, 0.1), candidate("b", 0.02, 0.2)],
        "baselines": [],
    }
    here = SimpleNamespace(
        job=lambda _kind: None,
        workspace=None,
        studio=SimpleNamespace(read_comparison=lambda _workspace: facts),
    )

    found = compare._read_result(here)

    assert [(row["label"], row["recommended"], row["open"]) for row in found["rows"]] == marked
    (drawn,) = found["figures"]
    assert drawn["svg"].count("p-ring") == rings
    assert drawn["svg"].count("data-place") == 2
    assert "stroke-dasharray" in drawn["svg"]  # the line of the frontier
    assert found["recommendation"] == ("A sentence.", "And another.")


def test_axes_are_handed_on_from_the_form():
    assert compare._details({})["axes"] == "advantage"
    assert compare._details({"axes": "alpha-beta"})["axes"] == "alpha-beta"
    assert list(compare.AXES) == ["advantage", "alpha-beta"]


def test_a_candidate_that_is_chosen_brings_what_it_requires():
    row = {
        **candidate("mondrian k=2 l-diversity={l=3,column=job}", 0.1, 0.1),
        "method": "mondrian",
        "parameters": {"k": 2},
        "require": {"l-diversity": {"l": 3, "column": "job"}},
    }
    text = '# mine\nversion = 1\n[protect]\nmethod = "mdav"\nk = 5\n[require]\nk-anonymity = 2\n'
    workspace = SimpleNamespace(policy=text)
    written = []
    studio = SimpleNamespace(
        read_comparison=lambda _workspace: {"candidates": [row]},
        put_policy=lambda _workspace, text, **_: written.append(text),
    )

    tables = Studio.candidate(studio, workspace, row["label"])
    Here.put_tables(SimpleNamespace(studio=studio, workspace=workspace), tables)

    assert tables["require"] == {"k-anonymity": 2, "l-diversity": {"l": 3, "column": "job"}}
    assert written[0].startswith("# mine")
    assert 'method = "mondrian"' in written[0]
    assert "l-diversity" in written[0].partition("[require]")[2]


def test_models_of_a_paper_are_compared_in_the_studio(client, workspace, tools):
    """The list states what candidates require, and the axes are those that were chosen."""
    policy = tools.policy.replace(
        'income = { role = "confidential", kind = "numeric", bounds = [0, 1000000] }',
        'income = "identifier"',
    ).replace('sex = { role = "quasi-identifier"', 'sex = { role = "confidential"')
    tools.with_people(client, workspace, policy=policy)
    page = f"/w/{workspace}/compare"
    wanted = [{"l-diversity": {"l": least, "column": "sex"}} for least in (2, 3)]
    asked = {
        "kind": "compare",
        "candidates": [{"method": "mondrian", "k": 5, "require": wanted}],
        "repeats": 1,
        "axes": "alpha-beta",
    }

    before = client.get(page).text
    job = tools.start(client, workspace, **asked)
    assert client.served.do(job) == "done"
    found = client.served.studio.read_comparison(tools.loaded(client, workspace))

    assert '<select id="c-axes" name="axes">' in before
    assert found["settings"]["axes"] == "alpha-beta"
    kept, failed = found["candidates"]
    assert kept["require"] == {"l-diversity": {"l": 2, "column": "sex"}}
    assert kept["attack"] == "breach increase: sex"
    assert "No grouping meets" in failed["failed"]
    assert "l=2" in client.get(page).text

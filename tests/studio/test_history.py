"""The history of releases survives a crash at any byte."""

import json

from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Status
from shoal.core.manifest import ClaimRecord, Manifest
from shoal.studio.history import INTERRUPTED, History

CLAIM = ClaimRecord.model_construct(status=Status.PROVED)
MANIFEST = Manifest.model_construct(method="mdav", rows=60, claims=[CLAIM], privacy_losses=[])


def with_three(home):
    history = History(home)
    for id_ in ("a", "b", "c"):
        history.begin(id_, workspace="w", label="<i>p</i>.csv", method="mdav", source="")
    history.end("a", "released", manifest=MANIFEST)
    history.end("b", "failed", sentence="No.")
    return history


def test_entries_come_newest_first_with_what_came_of_them(tmp_path):
    found = {one.id: one for one in with_three(tmp_path).entries()}

    assert list(found) == ["c", "b", "a"]
    assert (found["a"].state, found["a"].rows) == ("released", 60)
    assert (found["b"].state, found["b"].sentence) == ("failed", "No.")
    assert found["c"].state == "running"


def test_a_release_that_never_ended_is_told_by_its_folder(tmp_path):
    history = with_three(tmp_path)
    history.begin("d", workspace="w", label="p.csv", method="mdav", source="")

    history.recover({"d": MANIFEST}.get)

    assert history.entry("c").state == "interrupted"
    assert history.entry("c").sentence == INTERRUPTED
    assert history.entry("d").state == "released"
    assert history.entry("d").claims == ({"status": "proved"},)


@given(st.integers(0, 2000))
def test_a_file_cut_at_any_byte_keeps_every_whole_line_and_takes_new_ones(tmp_path_factory, kept):
    home = tmp_path_factory.mktemp("home")
    with_three(home)
    path = home / "history.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:kept])
    whole = [json.loads(line) for line in content[:kept].split(b"\n")[:-1]]

    history = History(home)
    history.begin("z", workspace="w", label="p", method="mdav", source="")
    found = {one.id for one in history.entries()}

    assert {"z"} | {one["id"] for one in whole if one["event"] == "begun"} <= found
    assert path.read_bytes().startswith(content[:kept])

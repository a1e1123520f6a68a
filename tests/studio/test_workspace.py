"""Workspaces: states on disk, and the way back."""

import json
import stat
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.studio.workspace import MOST_STEPS, DataFile, Workspace, WorkspaceStore

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("change"), st.sampled_from(["policy", "title", "chosen"]), st.text("abc")
        ),
        st.just(("undo",)),
        st.just(("redo",)),
    ),
    max_size=20,
)


@given(steps)
def test_undo_and_redo_walk_the_states_as_a_list_would(tmp_path_factory, given_steps):
    store = WorkspaceStore(tmp_path_factory.mktemp("home"))
    made = store.new()
    past, future, now = [], [], made
    for step in given_steps:
        if step[0] == "change":
            then = replace(now, **{step[1]: step[2]})
            if then != now:
                past, future, now = [*past, now], [], then
            store.change(made.id, **{step[1]: step[2]})
        elif step[0] == "undo" and past:
            future, now, past = [*future, now], past[-1], past[:-1]
            store.undo(made.id)
        elif step[0] == "redo" and future:
            past, now, future = [*past, now], future[-1], future[:-1]
            store.redo(made.id)

        assert store.load(made.id) == now
        assert store.steps(made.id) == (len(past), len(future))


def test_a_state_survives_a_new_start(tmp_path):
    store = WorkspaceStore(tmp_path)
    made = store.new()
    file = DataFile("0123456789abcdef", "<b>people</b>.csv", ".csv", 12)
    store.change(made.id, data=file, confirmed=("age", "sex"), policy="version = 1\n")

    assert WorkspaceStore(tmp_path).load(made.id) == store.load(made.id)
    assert WorkspaceStore(tmp_path).undo(made.id).data is None


def test_undo_does_not_lose_a_job_that_runs(tmp_path):
    store = WorkspaceStore(tmp_path)
    made = store.new()
    store.change(made.id, policy="a")
    store.note(made.id, lambda now: replace(now, jobs={"protect": "x"}))

    assert store.undo(made.id).jobs == {"protect": "x"}
    assert store.load(made.id).policy == ""


def test_steps_are_kept_up_to_a_number(tmp_path):
    store = WorkspaceStore(tmp_path)
    made = store.new()
    for number in range(MOST_STEPS + 5):
        store.change(made.id, policy=str(number))

    assert store.steps(made.id) == (MOST_STEPS, 0)


def test_only_the_owner_may_read_a_workspace(tmp_path):
    store = WorkspaceStore(tmp_path)
    made = store.new()
    folder = tmp_path / "workspaces" / made.id

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "state.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("id_", ["", "..", "0123456789abcdef", "../../etc", "x" * 16])
def test_an_id_that_is_none_is_refused(tmp_path, id_):
    with pytest.raises(InputError, match="No such workspace"):
        WorkspaceStore(tmp_path).load(id_)


def test_a_state_of_a_later_version_with_more_fields_is_read(tmp_path):
    store = WorkspaceStore(tmp_path)
    made = store.new()
    path = tmp_path / "workspaces" / made.id / "state.json"
    content = json.loads(path.read_text())
    content["now"]["from_the_future"] = 1
    path.write_text(json.dumps(content))

    assert store.load(made.id) == made


def test_removed_is_removed_and_the_list_has_the_newest_first(tmp_path):
    store = WorkspaceStore(tmp_path)
    first, second = store.new(), store.new()

    assert list(store.all()) == [second, first]
    store.remove(second.id)
    assert list(store.all()) == [first]
    assert isinstance(first, Workspace)

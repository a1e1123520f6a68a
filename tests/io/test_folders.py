"""Whole or not at all, whatever kills a run: folders in their places, and files."""

import os
import sys
from pathlib import Path

import pytest

from shoal.errors import InputError
from shoal.io import folders

MOVES = {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree"}


def release(folder, name):
    """A pair of folders that knows which it is."""
    for one in (folder, folders.internal_of(folder)):
        one.mkdir()
        (one / "which").write_text(name)


def which(folder):
    """Which release stands in a place, and which beside it; none where there is none."""
    return tuple(
        (one / "which").read_text() if one.exists() else None
        for one in (folder, folders.internal_of(folder))
    )


def replaced(out):
    """What a run does that replaces a release: first the public folder, then the other."""
    with folders.workplace(out) as place:
        folders.recover(place, out)
        (folders.new_folder(place) / "which").write_text("new")
        folders.commit(place, out)
        internal = folders.new_folder(place, "internal")
        (internal / "which").write_text("new")
        folders.put(internal, folders.internal_of(out))


def killed(action, at):
    """Run an action in a process that is killed at a change of the disk; whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0

        def strike(event, _arguments):
            nonlocal seen
            seen += event in MOVES
            if event in MOVES and seen == at:
                os._exit(9)

        sys.addaudithook(strike)
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("old", [True, False])
def test_a_run_killed_at_any_change_of_the_disk_leaves_a_whole_pair_to_the_next(tmp_path, old):
    at, states = 0, set()
    while True:
        at += 1
        out = tmp_path / str(at) / "out"
        out.parent.mkdir()
        if old:
            release(out, "old")
        if not killed(lambda out=out: replaced(out), at):
            break

        with folders.workplace(out) as place:
            assert place.stat().st_mode & 0o777 == 0o700
            said = folders.recover(place, out)

        before = ("old", "old") if old else (None, None)
        assert which(out) in {before, ("new", None), ("new", "new")}
        left = [path.name for path in out.parent.iterdir() if path.name.startswith(".")]
        assert not left
        states.add(which(out))
        assert len(said) <= 1
    # Every state between the beginning and the end was met.
    assert at > 5
    assert len(states) == 3
    assert which(out) == ("new", "new")


def test_an_interrupt_while_a_release_is_put_in_place_puts_all_back(tmp_path):
    class Struck(type(Path())):
        @property
        def parent(self):
            raise KeyboardInterrupt

    release(tmp_path / "out", "old")

    with folders.workplace(tmp_path / "out") as place:
        (folders.new_folder(place) / "which").write_text("new")
        with pytest.raises(KeyboardInterrupt):
            folders.commit(place, Struck(tmp_path / "out"))

    assert which(tmp_path / "out") == ("old", "old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.internal"]


def test_one_run_at_a_time_and_the_lock_of_a_run_that_ended_is_nobodys(tmp_path):
    """Whoever opened the lock before it was removed does not hold the place with it."""
    out = tmp_path / "out"
    with folders.workplace(out) as place:
        late = os.open(place / "lock", os.O_RDWR)
        with pytest.raises(InputError, match="Another run is writing"), folders.workplace(out):
            pass
    try:
        with folders.workplace(out) as place:  # the late one's lock is on a file that is gone
            assert not os.path.samestat(os.fstat(late), (place / "lock").stat())
            with pytest.raises(InputError, match="Another run is writing"), folders.workplace(out):
                pass
    finally:
        os.close(late)
    assert not list(tmp_path.iterdir())


def test_a_link_in_the_place_of_the_workplace_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / ".out.shoal").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(InputError, match="Cannot write"), folders.workplace(tmp_path / "out"):
        pass

    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755

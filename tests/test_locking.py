import fcntl
import os

import pytest
from shoal.locking import alone, locked


def test_a_lock_on_a_file_that_was_removed_meanwhile_does_not_count(tmp_path, monkeypatch):
    """A run opens the lock file; before it locks it, the holder ends and removes the file.

    Then a third run makes the file anew and locks it. The second must not believe that it holds
    the lock too.
    """
    path = tmp_path / ".out.lock"
    flock, held = fcntl.flock, []

    def slow_flock(file, how):
        if not held:
            path.unlink()  # the holder ends now, and the third run comes
            held.append(path.open("a"))
            flock(held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    with pytest.raises(BlockingIOError):
        locked(path)
    held[0].close()


def test_a_lock_is_taken_on_the_file_that_has_the_name(tmp_path, monkeypatch):
    path = tmp_path / ".out.lock"
    flock, removed = fcntl.flock, []

    def slow_flock(file, how):
        if not removed:
            removed.append(os.fstat(file.fileno()).st_ino)
            path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    with locked(path) as lock:
        assert os.path.samestat(os.fstat(lock.fileno()), path.stat())


def test_of_two_runs_one_is_refused_and_none_leaves_a_file(tmp_path):
    path = tmp_path / ".out.lock"

    with alone(path):
        with pytest.raises(BlockingIOError), alone(path):
            pass
        assert path.exists()
    with alone(path):
        pass

    assert not path.exists()

"""Locks that end with their process, and modules that load where there is no Unix."""

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

import shoal
from shoal.io.disk import flush, take_lock

HOME = Path(shoal.__file__).parent
UNIX = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios"}
HOLDER = """
import sys, time
from pathlib import Path
from shoal.io.disk import take_lock
held = take_lock(Path(sys.argv[1]))
print(held is not None, flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "lock"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().strip() == b"True"
        yield process
        process.kill()


def test_a_lock_is_one_processs_and_goes_with_it_when_it_is_killed(tmp_path, holder):
    path = tmp_path / "lock"
    assert take_lock(path) is None
    before = time.monotonic()
    assert take_lock(path, timeout=0.2) is None
    assert time.monotonic() - before >= 0.2

    Thread(target=lambda: (time.sleep(0.2), holder.kill())).start()
    with take_lock(path, timeout=30) as held:  # waits until the system lets go of it
        assert held is not None
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.exists()  # a lock that others may have opened is never removed by letting go


def test_one_process_gets_a_lock_once(tmp_path):
    with take_lock(tmp_path / "lock") as held:
        held.write(b"7")
        assert take_lock(tmp_path / "lock") is None
    with take_lock(tmp_path / "lock") as held:
        assert held.read() == b"7"  # nothing is cut off


def test_whoever_waited_for_a_lock_that_was_removed_locks_what_lies_there_now(tmp_path):
    """Two runs would hold one place otherwise, each by a file of its own."""
    path = tmp_path / "lock"
    first = take_lock(path)
    got = []
    waiting = Thread(target=lambda: got.append(take_lock(path, timeout=30)))
    waiting.start()
    time.sleep(0.1)  # it has the first file open
    path.unlink()
    second = take_lock(path)
    first.close()
    time.sleep(0.2)
    assert not got
    second.close()
    waiting.join()

    with got[0] as held:
        assert os.path.samestat(os.fstat(held.fileno()), path.stat())


def test_a_lock_follows_no_link_and_makes_no_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="link"):
        take_lock(tmp_path / "link")
    with pytest.raises(FileNotFoundError):
        take_lock(tmp_path / "folder" / "lock")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_files_and_folders_are_flushed_and_none_is_made(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o400)

    flush(tmp_path / "file")
    flush(tmp_path)
    with pytest.raises(FileNotFoundError):
        flush(tmp_path / "other")


def imported(nodes):
    """Names of the modules that statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_locks_and_flushing_are_asked_for_in_one_place():
    for path in HOME.rglob("*.py"):
        text = path.read_text("utf-8")
        assert path.name == "disk.py" or not re.search(r"\b(fsync|flock|lockf)\(", text), path
        if any(name in text for name in UNIX):
            tree = ast.parse(text)
            assert not {"fcntl", "msvcrt"} & {*imported(ast.walk(tree))}, path
            # The studio is served on Unix alone.
            assert "studio" in path.parts or not UNIX & {*imported(tree.body)}, path


def test_what_other_systems_lack_is_not_asked_for_at_start():
    """As on a system without these modules; see docs/explanation/limitations.md."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({UNIX - {'msvcrt'}}))\n"
        "import shoal.__main__, shoal.cli\n"
        "print([getattr(shoal, name) for name in dir(shoal)] != [], 'filelock' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.stdout.split() == [b"True", b"False"], done.stderr.decode()

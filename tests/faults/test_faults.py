"""A sample of the faults of `make faults`: killed runs and full disks leave no part of a release.

The faults run in a program of its own, because it forks, and a test process has threads. It
takes one call in several, by hooks of Python, which are everywhere; `make faults` takes all of them
and, where strace is installed, those of SQLite and Polars too.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "run.py"


@pytest.mark.parametrize(("scene", "every"), [("protect, budget", 29), ("protect --force", 43)])
def test_a_fault_at_any_call_leaves_whole_releases_and_a_true_budget(scene, every):
    done = subprocess.run(
        [sys.executable, PROGRAM, "--by", "hooks", "--only", scene, "--every", str(every)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr

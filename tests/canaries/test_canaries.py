"""A sample of the canaries of `make canaries`: no mark of the original in anything that leaves."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_mark_of_the_original_leaves():
    done = subprocess.run(
        [sys.executable, "-m", "tests.canaries.run", "--runs", "6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr

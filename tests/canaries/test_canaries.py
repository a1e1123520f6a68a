"""A sample of the canaries of `make canaries`: no mark of the original in anything that leaves."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


FORK = """
import os, signal
import polars as pl
import tests.canaries.run
child = os.fork()
if child == 0:
    signal.alarm(60)
    pl.DataFrame({"a": [1]}).write_csv(os.devnull)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_loading_everything_computes_nothing():
    """Polars' threads do not outlive a fork: a child would wait for them for ever."""
    done = subprocess.run([sys.executable, "-c", FORK], cwd=ROOT, check=False, timeout=300)

    assert done.returncode == 0


def test_no_mark_of_the_original_leaves():
    done = subprocess.run(
        [sys.executable, "-m", "tests.canaries.run", "--runs", "4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert done.returncode == 0, done.stdout + done.stderr

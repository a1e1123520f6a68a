import subprocess
import sys

import numpy as np
import pytest

from shoal.partition import compile_notice, mdav

FIRST_RUN = """
import numpy as np
from shoal.partition import compile_notice, individual_ranking, mdav
lines = []
with compile_notice(lines.append):
    individual_ranking(np.arange(100.0), 3)
    assert lines == []
    mdav(np.arange(100.0)[:, None], 3)
    mdav(np.arange(5000.0)[:, None], 3)
print(lines)
"""


def run(code, cache):
    result = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)},
    )
    return result.stdout.strip()


@pytest.mark.slow
def test_compiling_is_told_once_and_later_processes_load_from_the_cache(tmp_path):
    told = run(FIRST_RUN, tmp_path)
    again = run(FIRST_RUN, tmp_path)

    assert told == "['Compiling kernels, once on this machine; about 20 s.']"
    assert again == "[]"


@pytest.mark.slow
def test_after_warmup_nothing_is_left_to_compile(tmp_path):
    everything = """
import numpy as np
from shoal.partition import *
lines = []
with compile_notice(lines.append):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    mdav(X, 4), vmdav(X[:99], 4), mu_approx(X, 4), blocks(X, 4, least=900)
    individual_rankings(np.repeat(X, 20, axis=0), 4), optimal_rankings(X, 50)
    stable(X, X, 4), insensitive(X % 1, 4)
print(lines)
"""
    run("from shoal.partition import warmup; warmup()", tmp_path)

    assert run(everything, tmp_path) == "[]"


def test_nothing_is_told_where_nothing_is_compiled():
    X = np.arange(40.0)[:, None]
    mdav(X, 3)
    lines = []

    with compile_notice(lines.append):
        mdav(X, 3)

    assert lines == []

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from shoal.core.compiler import sources
from shoal.partition import compile_notice, mdav
from shoal.partition.kernels.mdav_brute import brute_rounds
from shoal.partition.kernels.mdav_tree import plant

TOLD = """
import numpy as np
from shoal.partition import compile_notice, individual_ranking
from shoal.partition.kernels.mdav_tree import largest
lines = []
with compile_notice(lines.append):
    individual_ranking(range(100), 3)
    assert lines == []
    for kind in (np.float64, np.float32):
        largest(np.zeros(1, kind), 1)
print(lines)
"""
EVERYTHING = """
import numpy as np
from shoal.partition import *
lines = []
with compile_notice(lines.append):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    mdav(X, 4), vmdav(X[:99], 4), mu_approx(X, 4), blocks(X, 4, least=900)
    individual_rankings(np.repeat(X, 20, axis=0), 4), optimal_univariates(X, 50)
    stable(X, X, 4), insensitive(X % 1, 4)
    codes = np.arange(5000) % 3
    codes.flags.writeable = False
    bucketization(X, codes, 4, 2), merge_close(X, codes, codes, 2)
    for choice in CutColumn:
        target = codes[::-1] if choice is CutColumn.GAIN else None
        mondrian(X, 4, choice=choice, target=target, units=codes[::-1] + np.arange(5000))
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
def test_after_warmup_nothing_is_left_to_compile(tmp_path):
    cache = tmp_path / "kernels"
    if warm := os.environ.get("SHOAL_WARM"):  # `make test` has compiled everything
        shutil.copytree(warm, cache)
    else:
        run("from shoal.partition import warmup; warmup()", cache)

    assert run(EVERYTHING, cache) == "[]"


def test_compiling_is_told_once(tmp_path):
    told = "Compiling what this method needs, once on this machine; about 10 s."
    assert run(TOLD, tmp_path) == str([told])


def test_the_cache_of_a_kernel_depends_on_the_sources_of_all():
    caches = [kernel.dispatcher._cache._cache_file for kernel in (plant, brute_rounds)]
    stamps = {cache._source_stamp[1] for cache in caches}

    assert stamps == {sources()}


def test_nothing_is_told_where_nothing_is_compiled():
    X = np.arange(40.0)[:, None]
    mdav(X, 3)
    lines = []

    with compile_notice(lines.append):
        mdav(X, 3)

    assert lines == []

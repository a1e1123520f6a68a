"""After a warmup, methods that draw rows compile nothing."""

import json
import subprocess
import sys

import pytest

DRAWN = """
import json
from dataclasses import replace
from decimal import Decimal
import shoal
from shoal.synthesis import kernels as room
from shoal.cli.warmup import compile_synthesis

kernels = [value for value in vars(room).values() if hasattr(value, "py_func")]
def compiled():
    return {kernel.py_func.__name__: len(kernel.dispatcher.signatures) for kernel in kernels}

compile_synthesis()
before = compiled()
policy = shoal.load_policy(shoal.sample.folder() / "people.toml")
for method in ("copula", "privtree", "maxent"):
    stated = replace(policy, method=method, parameters={"epsilon": Decimal(1)}, required=())
    shoal.protect(shoal.sample.load().head(400), stated)
print(json.dumps([before, compiled()]))
"""


@pytest.mark.slow
def test_what_is_warmed_is_what_methods_call():
    done = subprocess.run([sys.executable, "-c", DRAWN], check=True, capture_output=True, text=True)
    before, after = json.loads(done.stdout)

    assert set(before.values()) == {1}
    assert after == before

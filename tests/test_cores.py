"""The same seeds give the same bytes on any number of cores."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import hashlib, json, os, sys

cores = int(sys.argv[1])
os.sched_getaffinity = lambda _process: set(range(cores))

import polars as pl

import shoal
from shoal.core.machine import cores as available
from shoal.hazmat.fakes import SeededNoise

assert available() == cores
assert pl.thread_pool_size() == cores
people = shoal.sample.load()
people = pl.concat([people.with_columns(pl.col("age") + shift) for shift in range(3)])
names = ["age", "hours", "sex", "region", "education", "income"]
people = people.select(names).with_columns(pl.col("income").clip(0, 200_000))
number = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 130]}
nominal = {"role": "quasi-identifier", "kind": "nominal"}
columns = {"age": number | {"step": 1}, "hours": number | {"step": 1}}
for name in names[2:5]:
    columns[name] = nominal | {"categories": sorted(people[name].drop_nulls().unique())}
columns["income"] = {"role": "confidential", "kind": "numeric", "bounds": [0, 200_000], "step": 100}
digests = {}
for title, stated in json.loads(sys.argv[2]).items():
    policy = {"version": 1, "one_row_per_person": True, "columns": columns, "protect": stated,
              "release": {"accept_distinct": ["income"], "accept_constant": names}}
    release = shoal.protect(people, policy, noise=SeededNoise(1))
    digests[title] = hashlib.sha256(release.data.write_csv().encode()).hexdigest()
    if stated.get("release_form") == "row-aligned":
        figures = shoal.evaluate(people, release.data, policy, aligned=True, seed=1)
        digests[title + ", figures"] = json.dumps(figures.facts(), default=str)
print(json.dumps(digests))
"""
CASES = {
    "mdav": {"method": "mdav", "k": 5, "release_form": "row-aligned"},
    "mdav in blocks": {"method": "mdav", "k": 5, "blocks": "median"},
    "mondrian": {"method": "mondrian", "k": 5},
    "local-suppression": {"method": "local-suppression", "k": 5},
    "full noise": {"method": "laplace", "epsilon": 1},
    "maxent": {"method": "maxent", "epsilon": 1},
    "copula": {"method": "copula", "epsilon": 1},
    "privtree": {"method": "privtree", "epsilon": 1},
    "dp-kdtree": {"method": "dp-kdtree", "epsilon": 1},
}


@pytest.mark.slow
def test_releases_and_figures_are_the_same_on_one_core_and_on_three():
    def run(cores):
        limits = (
            "POLARS_MAX_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "NUMBA_NUM_THREADS",
        )
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(cores), json.dumps(CASES)],
            env={**os.environ, **dict.fromkeys(limits, str(cores))},
            capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1],
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    alone, together = run(1), run(3)

    assert alone.keys() >= CASES.keys()
    assert alone == together

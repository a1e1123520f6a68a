"""A release with names that would run if they could."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from shoal.pipeline.options import EvaluationOptions
from shoal.policy.load import load
from shoal.publish import protect_file

HOSTILE = "</script><img src=x onerror=alert(1)>"
QUOTED = "\" onmouseover=alert(2) x='{{ 7 * 7 }}"
LONG = "column" * 40


def hostile_people(rows, seed):
    """People whose columns and values are written by somebody with bad intentions."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            HOSTILE: rng.integers(18, 90, rows),
            QUOTED: rng.choice([HOSTILE, "b", QUOTED], rows),
            LONG: rng.integers(0, 90_000, rows),
            "ill": rng.choice(["yes", "no", "{% raw %}"], rows),
        }
    )


POLICY = {
    "version": 1,
    "columns": {
        "name": "identifier",
        HOSTILE: {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
        QUOTED: {"role": "quasi-identifier", "kind": "nominal",
                 "categories": [HOSTILE, "b", QUOTED]},
        LONG: {"role": "confidential", "kind": "numeric", "bounds": [0, 100_000]},
        "ill": {"role": "confidential", "kind": "nominal",
                "categories": ["yes", "no", "{% raw %}"]},
    },
    "protect": {"method": "mdav", "k": 5},
    "require": {"k-anonymity": 5},
    "evaluate": {"groups": QUOTED},
    "context": {"purpose": HOSTILE, "approver": QUOTED},
}  # fmt: skip


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """The two reports of such a release, and its folder."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile_people(150, 1).write_csv(folder / "<i>data.csv")
    hostile_people(100, 2).write_csv(folder / "others.csv")

    done = protect_file.protect(
        folder / "<i>data.csv",
        load(POLICY),
        folder / "out",
        evaluation=EvaluationOptions(control=folder / "others.csv"),
    )

    assert done.measured is not None, done.notes
    return SimpleNamespace(
        texts=(HOSTILE, QUOTED, LONG),
        public=done.folder / "report.html",
        internal=done.internal / "report.html",
    )

"""Published losses, through the whole pipeline: from a frame and a policy to a release."""

import tomllib
from pathlib import Path

import polars as pl
import pytest

import shoal
from shoal.metrics.information_loss import sse_over_sst

VECTORS = tomllib.loads((Path(__file__).parent.parent / "vectors/mdav_losses.toml").read_text())
CASES = [
    (name, method, int(k), loss)
    for name, vector in VECTORS.items()
    for method in ("mdav", "individual-ranking")
    for k, loss in vector.get(method, {}).items()
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "method", "k", "loss"), CASES)
def test_the_loss_is_the_published_one_to_four_decimals(reference, name, method, k, loss):
    columns = VECTORS[name]["columns"]
    original = reference(VECTORS[name]["table"]).select(columns)
    policy = {
        "version": 1,
        "columns": {c: {"role": "quasi-identifier", "kind": "numeric"} for c in columns},
        "protect": {"method": method, "k": k},
    }

    released = shoal.protect(original, policy, keep_order=True).data

    shares = [sse_over_sst(*(f[c].cast(float).to_numpy() for f in (original, released)))
              for c in columns]  # fmt: skip
    assert 100 * sum(shares) / len(shares) == pytest.approx(loss, abs=5e-5)


@pytest.mark.data
def test_individual_ranking_leaves_every_row_of_census_unique(reference):
    original = reference("census")
    policy = {
        "version": 1,
        "columns": {c: {"role": "quasi-identifier", "kind": "numeric"} for c in original.columns},
        "protect": {"method": "individual-ranking", "k": 3},
    }

    released = shoal.protect(original, policy).data

    assert released.group_by(pl.all()).len().height == original.height == 1080

"""Households trade areas: together, with similar ones, rare ones first, within the level above."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.methods.record_swapping import swap_partners

COLUMNS: dict[str, Any] = {
    "home": {"role": "identifier", "household": True},
    "region": {"role": "quasi-identifier", "kind": "nominal"},
    "district": {"role": "quasi-identifier", "kind": "nominal"},
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 120]},
    "sex": {"role": "quasi-identifier", "kind": "nominal"},
}


def policy(**protect: Any) -> dict[str, Any]:
    stated = {"method": "record-swapping", "columns": ["region", "district"], "rate": [0.2, 0.3]}
    return {"version": 1, "columns": COLUMNS, "protect": {**stated, **protect}}


def people(homes: int = 600, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, homes)
    home = np.repeat(np.arange(homes), sizes)
    region, district = rng.integers(0, 3, homes)[home], rng.integers(0, 4, homes)[home]
    return pl.DataFrame({
        "home": home,
        "region": [f"r{r}" for r in region],
        "district": [f"r{r}d{d}" for r, d in zip(region, district, strict=True)],
        "age": rng.integers(0, 90, home.size), "sex": rng.choice(["f", "m"], home.size),
    })  # fmt: skip


def swapped(table: pl.DataFrame, **protect: Any) -> pl.DataFrame:
    done = shoal.protect(table, policy(**protect), keep_order=True, noise=SeededNoise(5))
    return done.data.with_columns(home=table["home"])


def test_households_move_as_a_whole_and_nothing_but_the_area_changes() -> None:
    table = people()
    done = swapped(table)
    assert done.select("age", "sex").equals(table.select("age", "sex"))
    assert done.group_by("home").agg(pl.col("district").n_unique())["district"].max() == 1
    moved = (done["district"] != table["district"]).any()
    assert moved
    for names in (["region"], ["region", "district"]):
        count = table.group_by(names).len().sort(names)
        assert done.group_by(names).len().sort(names).equals(count)


def test_no_more_households_are_swapped_than_the_range_allows() -> None:
    table = people()
    done = swapped(table, rate=[0.1, 0.1])
    homes = table["home"].to_numpy()[(done["district"] != table["district"]).to_numpy()]
    assert 0.08 < np.unique(homes).size / 600 <= 0.1


def test_partners_are_alike_in_size_and_in_the_columns_that_are_stated() -> None:
    table = people(1500)
    done = swapped(table, similar=["sex"])
    profile = pl.col("sex").sort().str.join(",").alias("profile")
    for frame in (table, done):
        assert frame["home"].n_unique() == 1500
    before = table.group_by("home").agg(profile, pl.col("district").first())
    after = done.group_by("home").agg(profile, pl.col("district").first())
    by = ["district", "profile"]
    assert before.group_by(by).len().sort(by).equals(after.group_by(by).len().sort(by))


def test_rare_households_are_swapped_first() -> None:
    table = people(400).with_columns(
        age=pl.when(pl.col("home") < 20).then(pl.col("home") + 60).otherwise(pl.lit(30)),
        sex=pl.lit("f"),
    )
    done = swapped(table, rate=[0.1, 0.1], rare=5)
    moved = table.filter(done["district"] != table["district"])["home"].unique()
    assert (moved < 20).sum() >= 18


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_trades_are_mutual_alike_and_within_the_level_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    top = rng.integers(0, 3, n)
    areas = np.column_stack([top, top * 4 + rng.integers(0, 4, n)])
    risk, profile = rng.integers(0, 3, n), rng.integers(0, 2, n)
    wanted = int(rng.integers(0, n + 1))
    partner = swap_partners(areas, risk, profile, wanted, rng.permutation)
    assert (partner[partner] == np.arange(n)).all()
    assert (profile[partner] == profile).all()
    traded = partner != np.arange(n)
    assert traded.sum() <= wanted
    assert (areas[traded, 1] != areas[partner[traded], 1]).all()
    across = areas[partner, 0] != areas[:, 0]
    assert (np.minimum(risk, risk[partner])[across] == 0).all()


def test_nothing_is_claimed_and_no_recipient_without_a_contract_gets_it() -> None:
    release = shoal.protect(people(100), policy())
    assert release.claims == ()
    assert any("unproven" in text for text in release.manifest.not_claimed)
    for audience in ("public-use", "scientific-use"):
        with pytest.raises(InputError, match="Audience"):
            shoal.plan(policy(), audience=audience)


def test_what_leaves_has_the_range_and_not_the_rate() -> None:
    releases = [
        shoal.protect(people(), policy(), noise=SeededNoise(seed)).manifest for seed in (1, 2)
    ]
    facts = [{**m.as_values(), "created": ""} for m in releases]
    assert facts[0] == facts[1]
    assert "At most 30%" in " ".join(releases[0].notes)
    assert "is not used" not in " ".join(releases[0].notes)


def test_a_household_in_several_areas_does_not_trade() -> None:
    table = people(50).with_columns(home=pl.col("home") // 25)
    assert swapped(table, rate=[1, 1])["district"].equals(table["district"])


@pytest.mark.parametrize(
    ("protect", "message"),
    [
        ({"rate": [0.3, 0.1]}, "from low to high"),
        ({"similar": ["sexe"]}, "similar: expected a released column"),
        ({"similar": ["region"]}, "similar: expected a released column"),
    ],
)
def test_what_cannot_be_meant_is_refused(protect: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shoal.plan(policy(**protect))


def test_the_rate_is_drawn_in_its_range() -> None:
    """Twenty seeds: all within the range, and not all near one end (chance below 1e-11)."""
    table = people(400)
    shares = []
    for seed in range(20):
        release = shoal.protect(
            table, policy(rate=[0.1, 0.5]), keep_order=True, noise=SeededNoise(seed)
        )
        moved = table["home"].to_numpy()[(release.data["district"] != table["district"]).to_numpy()]
        shares.append(np.unique(moved).size / 400)
    assert 0.09 < min(shares) < 0.3 < max(shares) <= 0.5

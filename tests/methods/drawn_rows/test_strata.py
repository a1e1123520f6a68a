"""Public strata, each learnt by itself, and missing cells as values of their own."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core import Neighbours, Status
from shoal.errors import InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.methods.trees.spatial_encoding import spatial_encoding

DRAWN = ["privtree", "copula", "maxent", "auto"]
WAVES = ["w1", "w2", "w3", "w4"]
COLUMNS = {
    "wave": {"role": "other", "kind": "nominal", "categories": WAVES, "public": True},
    "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10]},
    "y": {"role": "quasi-identifier", "kind": "ordinal", "categories": ["a", "b", "c"]},
}


def policy(method, changed=None, **protect):
    return {
        "version": 1,
        "columns": COLUMNS | (changed or {}),
        "protect": {"method": method, "epsilon": 1, "strata": "wave", **protect},
    }


def waves(sizes, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    return pl.DataFrame(
        {
            "wave": np.repeat(WAVES[: len(sizes)], sizes),
            "x": rng.random(n) * 10,
            "y": rng.choice(["a", "b", "c"], n),
        }
    )


@pytest.mark.parametrize("name", DRAWN)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), seed=st.integers(0, 9)
)
@settings(max_examples=12)
def test_sizes_of_strata_are_kept_and_each_has_the_whole_epsilon(name, sizes, seed):
    noise = SeededNoise(seed)
    frame = waves(sizes, seed)

    release = shoal.protect(frame, policy(name), noise=noise)

    counted = dict(release.data.group_by("wave").len().iter_rows())
    assert counted == {wave: n for wave, n in zip(WAVES, sizes, strict=True) if n}
    accounting.verify(
        release.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )
    for wave in counted:
        own = [
            replace(s, parallel=None, part=None) for s in release.privacy_losses if s.part == wave
        ]
        assert accounting.total(own) == 1
    assert release.data["x"].is_between(0, 10).all()


@pytest.mark.parametrize("name", DRAWN)
def test_a_changed_record_shows_in_its_own_stratum_alone(name):
    frame = waves([8, 8, 8, 8])
    other = frame.with_columns(x=pl.when(pl.arange(0, 32) == 20).then(10.0).otherwise("x"))
    bare = {name: {**COLUMNS[name], "keep_missing": False} for name in ("x", "y")}

    first, second = (
        shoal.protect(f, policy(name, bare), noise=RecordingNoise()).extras["measurements"]
        for f in (frame, other)
    )

    apart = {
        wave
        for wave in WAVES
        if not first.filter(pl.col("cell_wave") == wave)
        .drop("measurement")
        .equals(second.filter(pl.col("cell_wave") == wave).drop("measurement"))
    }
    assert apart == {"w3"}


def test_strata_that_were_copied_from_the_data_weaken_the_claim():
    copied = {"wave": COLUMNS["wave"] | {"observed": True}}

    (claim,) = shoal.plan(policy("auto", copied, neighbours="add-remove")).claims

    assert claim.status is Status.CONDITIONAL
    assert "the categories of wave, which were copied from the data, are public" in claim.assumes


def test_the_claim_lists_what_strata_publish_and_who_are_neighbours():
    (claim,) = shoal.plan(policy("auto")).claims
    (added,) = shoal.plan(policy("auto", neighbours="add-remove")).claims

    assert claim.status is added.status is Status.PROVED
    assert claim.guarantee.protects == ("x", "y")
    assert claim.guarantee.invariants == (
        "the number of rows",
        "the number of rows in each stratum of wave",
    )
    assert "wave is public, and a record keeps its stratum" in claim.assumes
    assert added.guarantee.invariants == ()


def test_empty_and_tiny_strata_are_told_and_unknown_strata_refused():
    release = shoal.protect(waves([60, 1, 0, 2]), policy("maxent"))

    notes = release.manifest.notes
    assert "Strata without rows: w3." in notes
    assert any(
        "fewer than 50 rows, whose synthetic rows are mostly noise: w2, w4." in note
        for note in notes
    )
    assert any(note.startswith("w1: Settings and diagnostics") for note in notes)
    lost = waves([5, 5]).with_columns(wave=pl.lit(None, dtype=pl.String))
    with pytest.raises(InputError, match="'wave' defines the strata and is missing in 10 rows"):
        shoal.protect(lost, policy("maxent"))


@pytest.mark.parametrize("name", DRAWN)
def test_without_a_public_number_every_declared_stratum_has_rows(name):
    noise = SeededNoise(3)

    release = shoal.protect(
        waves([40, 1, 0, 2]), policy(name, neighbours="add-remove", epsilon=2), noise=noise
    )

    assert set(release.data["wave"]) == set(WAVES)
    accounting.verify(
        release.privacy_losses, Fraction(2), neighbours=Neighbours.ADD_REMOVE, drawn=noise.drawn
    )


@pytest.mark.parametrize(
    ("changed", "protect", "sentence"),
    [
        ({}, {"strata": "wav"}, "no released column named 'wav'"),
        ({}, {"strata": "x"}, "expected a column with public = true, found 'x'"),
        ({"wave": {"role": "other", "kind": "numeric", "public": True}}, {}, "with categories or"),
        ({}, {"min_cell": 3}, "min_cell and strata cannot be combined"),
        (
            {"id": {"role": "identifier", "privacy_unit": True, "max_contributions": 2}},
            {},
            "State exact_contributions",
        ),
        (
            {"id": {"role": "identifier", "privacy_unit": True, "max_contributions": 1}},
            {},
            "which of them are kept",
        ),
        ({"z": {**COLUMNS["wave"]}}, {}, "Column 'z': values cannot stand beside the release"),
    ],
)
def test_what_is_no_public_division_is_refused(changed, protect, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy("auto", changed, **protect))


def test_one_row_a_person_may_lie_in_any_stratum_whose_size_is_hidden():
    person = {"role": "identifier", "privacy_unit": True, "max_contributions": 1}
    rules = policy("auto", {"id": person},
                   neighbours="add-remove")  # fmt: skip

    assert shoal.plan(rules).claims


def test_persons_of_exactly_two_rows_may_have_them_in_two_strata():
    noise = RecordingNoise()
    rules = policy(
        "maxent", {"id": {"role": "identifier", "privacy_unit": True, "exact_contributions": 2}}
    )
    frame = waves([4, 4]).with_columns(id=pl.Series([0, 1, 2, 3] * 2))

    release = shoal.protect(frame, rules, noise=noise)

    accounting.verify(
        release.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


# Missing cells.

GAPS = {
    "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10], "keep_missing": True},
    "y": {**COLUMNS["y"], "keep_missing": True},
}
TREES = [("privtree", {}), ("privtree", {"fill": "centroid"}), ("copula", {"margins": "tree"}),
         ("maxent", {}), ("auto", {}), ("auto", {"goal": "means"})]  # fmt: skip


def gappy(method, changed=None, **protect):
    return {
        "version": 1,
        "columns": GAPS | (changed or {}),
        "protect": {"method": method, "epsilon": 1, **protect},
    }


def holes(n, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"x": rng.random(n) * 10, "y": rng.choice(["a", "b", "c"], n)})
    gone = pl.Series(rng.random(n) < share)
    return frame.with_columns(
        pl.when(gone).then(None).otherwise(pl.col(name)).alias(name) for name in "xy"
    )


@pytest.mark.parametrize(("name", "options"), TREES)
def test_missing_cells_come_back_about_as_often_as_they_were(name, options):
    """A tenth of 3,000 rows at epsilon 20 is 30 scales of the largest noise: below 1e-12."""
    frame = holes(3000)

    release = shoal.protect(frame, gappy(name, epsilon=20, **options), noise=SeededNoise(1)).data

    for column in "xy":
        share = release[column].null_count() / release.height
        assert share == pytest.approx(frame[column].null_count() / 3000, abs=0.1)
    assert release["x"].drop_nulls().is_between(0, 10).all()
    assert set(release["y"].drop_nulls()) <= {"a", "b", "c"}


@pytest.mark.parametrize(("name", "options"), TREES)
@given(
    cells=st.lists(st.none() | st.floats(-5, 15), min_size=2, max_size=20), seed=st.integers(0, 9)
)
@settings(max_examples=10)
def test_cells_are_public_values_or_missing_and_prices_add_up(name, options, cells, seed):
    noise = SeededNoise(seed)
    labels = (["a", None, "?"] * len(cells))[: len(cells)]
    frame = pl.DataFrame({"x": cells, "y": labels}, schema={"x": pl.Float64, "y": pl.String})

    release = shoal.protect(frame, gappy(name, **options), noise=noise)

    assert release.data.height == frame.height
    assert release.data["x"].drop_nulls().is_between(0, 10).all()
    accounting.verify(
        release.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


def test_measurements_name_the_missing_cells():
    told = shoal.protect(holes(400), gappy("maxent", epsilon=20)).extras["measurements"]

    assert "missing" in set(told["cell_x"].drop_nulls())
    assert any("missing" in text for text in told["cell_y"].drop_nulls())


def test_missing_is_cut_off_before_numbers_are_halved():
    column = shoal.load_policy(gappy("auto")).schema["x"]

    axis = spatial_encoding(column, scaled=True, gaps=True)

    assert axis.count == axis.present + 1
    assert axis.text(axis.present, axis.count) == "missing"
    assert axis.text(0, axis.count) == "[0, 10] or missing"


@pytest.mark.parametrize("name", ["laplace", "copula"])
def test_methods_that_cannot_keep_missing_cells_use_the_constant(name):
    rules = gappy(name)

    release = shoal.protect(holes(20), rules)

    assert release.data.null_count().row(0) == (0, 0)
    assert any("'x': missing cells count as 5" in note for note in release.manifest.notes)


def test_a_constant_and_a_value_of_its_own_contradict_each_other():
    with pytest.raises(InputError, match="expected 'keep_missing' or 'missing_as', found both"):
        shoal.plan(gappy("auto", {"x": {**GAPS["x"], "missing_as": 3}}))


def test_a_column_that_is_missing_in_one_stratum_is_released_missing_there():
    """Nobody of that stratum has a value, and no mass is left to smooth."""
    column = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 80], "step": 1,
              "keep_missing": True}  # fmt: skip
    stated = {
        "version": 1,
        "columns": {
            "hours": column,
            "sex": {"role": "other", "kind": "nominal", "categories": ["f", "m"], "public": True},
        },
        "protect": {"method": "maxent", "epsilon": 1000, "strata": "sex"},
    }
    frame = pl.DataFrame({"hours": [None] * 30 + [40] * 30, "sex": ["f"] * 30 + ["m"] * 30})

    released = shoal.protect(frame, stated, noise=RecordingNoise()).data

    assert released.filter(pl.col("sex") == "f")["hours"].null_count() == 30
    assert released.filter(pl.col("sex") == "m")["hours"].null_count() == 0

"""`analyse` reads only folders that verify: damage is a sentence, never another answer."""

import hashlib
import json
import random
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.test_analysis import COLUMNS, KEPT, one, people, released
from tests.analysis.test_calibration import noisy_cells, noisy_groups, plain
from tests.analysis.test_calibration import people as people_of
from typer.testing import CliRunner

import shoal
from shoal import analysis
from shoal.analysis import published
from shoal.analysis.result import AnalysisTerm, cut_term
from shoal.cli.commands import app
from shoal.core import ReleaseForm
from shoal.errors import InputError

FORMATS = {"maxent": "parquet", "mdav": "csv", "kanon-dp": "parquet"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("folders")
    return {
        method: one(method).write(place / method, file_format=file_format)
        for method, file_format in FORMATS.items()
    }


def run(folder):
    done = CliRunner().invoke(app, ["analyse", str(folder)])
    return done.exit_code, done.output


def damage(content, rng):
    """One flipped bit, an end that is lost, a piece that is doubled, or nothing left."""
    place = rng.randrange(len(content))
    kind = rng.randrange(4)
    if kind == 0:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return content[:place]
    return content[:place] + content[place:] * 2 if kind == 2 else b""


@pytest.mark.parametrize("method", FORMATS)
def test_any_damage_to_a_folder_is_exit_2_with_a_sentence_or_the_same_answer(
    folders, tmp_path, method
):
    rng = random.Random(12)  # noqa: S311
    folder = shutil.copytree(folders[method], tmp_path / "copy")
    before = run(folder)
    refused = 0
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for _ in range(6):
            path.write_bytes(damage(content, rng))
            code, said = run(folder)
            if (code, said) != before:
                refused += 1
                assert code == 2, said
                assert "is not a Shoal release" in said or "does not verify" in said
        path.unlink()
        assert run(folder)[0] == 2
        path.write_bytes(content)

    assert before[0] == 0
    assert refused > 6 * (len(list(folder.iterdir())) - 1)


def test_measurements_times_five_are_refused_and_not_a_share_of_one(folders, tmp_path):
    folder = shutil.copytree(folders["maxent"], tmp_path / "copy")
    path = folder / "measurements.parquet"
    pl.read_parquet(path).with_columns(pl.col("answer") * 5).write_parquet(path)

    with pytest.raises(
        InputError, match=r"does not verify, so nothing is computed from it\. files"
    ):
        analysis.proportion(folder, "owner", "yes")


def test_a_manifest_that_states_less_noise_than_was_drawn_is_refused(folders, tmp_path):
    """Half the scale of every loss, with digests that fit: intervals would be half as long."""
    folder = shutil.copytree(folders["kanon-dp"], tmp_path / "copy")
    stated = json.loads((folder / "manifest.json").read_text("utf-8"))
    for loss in stated["privacy_losses"]:
        loss["epsilon"] = 2 * float(loss["epsilon"])
    page = (folder / "report.html").read_bytes()
    stated["files"]["report.html"] = {
        "sha256": hashlib.sha256(page).hexdigest(), "bytes": len(page)
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(stated), encoding="utf-8")

    with pytest.raises(InputError, match="does not verify"):
        analysis.mean(folder, "income")


@pytest.mark.parametrize("method", KEPT)
def test_no_interval_reaches_beyond_the_public_bounds(method):
    ends = {name: column["bounds"] for name, column in COLUMNS.items() if "bounds" in column}
    for name, (low, high) in ends.items():
        for estimand in analysis.Estimand:
            more = {"estimand": estimand.value, "confidence": 1 - 1e-9}
            for ask in (
                lambda name=name, more=more: analysis.mean(one(method), name, **more),
                lambda name=name, more=more: analysis.quantile(one(method), name, 0.01, **more),
                lambda name=name, more=more: analysis.quantile(one(method), name, 0.99, **more),
            ):
                try:
                    (term,) = ask().terms
                except InputError:
                    continue
                assert low <= term.low <= term.estimate <= term.high <= high


def test_a_quantile_that_noise_takes_beyond_its_bounds_has_an_interval_that_reaches_inside():
    for low, high, within in ((300.0, 420.0, (0.0, 100.0)), (-70.0, -10.0, (0.0, 100.0))):
        term = cut_term(AnalysisTerm("age", (low + high) / 2, 60.0, low, high), 0.95, within)

        assert 0 <= term.low < term.high <= 100
        assert term.estimate in within


ASKED = [("mean", ["age"]), ("quantile", ["age"]), ("total", ["age"]), ("ols", ["income ~ age"]),
         ("logit", ["sex ~ age"]), ("mean", ["income"]), ("quantile", ["income"]),
         (None, [])]  # fmt: skip


@pytest.mark.parametrize("rows", [1, 60])
@pytest.mark.parametrize(
    "protect",
    [{"method": "maxent", "epsilon": 0.1}, {"method": "auto", "epsilon": 5},
     {"method": "laplace", "epsilon": 1}, {"method": "mdav", "k": 5},
     {"method": "mondrian", "k": 5}],
    ids=lambda protect: protect["method"],
)  # fmt: skip
def test_too_few_values_of_a_column_are_a_sentence_and_no_interval(protect, rows):
    """A column that is missing for everybody, or a table of one row; noise may deny people, too."""
    if rows < protect.get("k", 1):
        return
    numbers = np.random.default_rng(2).integers(0, 80, rows)
    table = pl.DataFrame({
        "age": pl.Series([None] * rows if rows > 1 else [30], dtype=pl.Float64),
        "income": 1000.0 * numbers,
        "sex": np.where(numbers % 2, "f", "m"),
    })  # fmt: skip
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
        "income": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10**5]},
        "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    }
    release = shoal.protect(table, {"version": 1, "columns": columns, "protect": protect})
    for estimand in analysis.Estimand:
        for statistic, of in ASKED:
            more = {"estimand": estimand.value, "population_size": 1000}
            try:
                found = analysis.analyse(release, statistic, of, **more)
            except InputError:
                continue
            for result in getattr(found, "results", [found]):
                assert all(term.low <= term.estimate <= term.high for term in result.terms)


def test_a_mean_whose_noise_leaves_the_bounds_stays_inside_them():
    table = people(30, 1).with_columns(income=0.0)
    release = released("kanon-dp", table=table, epsilon=0.05, k=5)
    term = analysis.mean(release, "income", confidence=0.999).terms[0]

    assert 0 <= term.low <= term.estimate <= term.high <= 120
    assert term.low < term.high


@pytest.mark.parametrize("categories", [["no", "yes", "missing"], ["(missing)", "missing", "yes"]])
def test_a_category_may_be_called_missing(categories):
    owner = {"role": "confidential", "kind": "nominal", "categories": categories,
             "keep_missing": True}  # fmt: skip
    cells = np.random.default_rng(1).choice([*categories, None], 4000, p=[0.1, 0.2, 0.5, 0.2])
    table = people(4000, 1).with_columns(owner=pl.Series(cells))
    release = released("maxent", columns={**COLUMNS, "owner": owner}, table=table, epsilon=20)

    for category in categories:
        truth = (table["owner"].drop_nulls() == category).mean()
        found = analysis.proportion(release, "owner", category, estimand="table")
        assert found.estimate == pytest.approx(truth, abs=0.02)


@given(st.lists(st.sampled_from(["missing", "(missing)", "((missing))", "a"]), unique=True))
def test_what_a_missing_cell_is_called_is_not_a_category(categories):
    from shoal.methods.trees.spatial_encoding import missing_label  # noqa: PLC0415

    assert missing_label(categories) not in categories


def noisy_table(scale, law, shape=(2, 3)):
    cells = tuple(tuple(range(size)) for size in shape)
    part = pl.DataFrame({"scale": [scale], **({} if law is None else {"noise": [law]})})
    variance, gaussian = published._noise_of(part)
    counts = np.arange(float(np.prod(shape))).reshape(shape)
    return published.NoisyTable(("a", "b"), cells, counts, variance, gaussian)


@given(st.floats(0.1, 100), st.sampled_from([None, "discrete-gaussian"]))
def test_noise_has_the_variance_of_its_law_and_sums_that_of_all_terms(scale, law):
    """Laplace noise of scale b has the variance 2 b^2, Gaussian noise b^2."""
    table = noisy_table(scale, law)
    one_way = table.over(["b"])

    assert table.variance == pytest.approx((1 if law else 2) * scale**2)
    assert one_way.variance == pytest.approx(2 * table.variance)
    assert one_way.counts.tolist() == [3, 5, 7]


def test_every_source_of_error_of_a_mean_is_in_its_interval():
    """Noise of groups, of cells and of sampling, each by its formula."""
    rng = np.random.default_rng(3)
    x = people_of(rng)
    groups, cells = noisy_groups(x, rng, b=4.0, k=5), noisy_cells(x, rng, b=1.5)
    y = cells.numbers("x")

    found = analysis.mean(groups, "x", estimand="table").standard_error
    sampled = analysis.mean(groups, "x").standard_error
    known = analysis.mean(cells, "x", estimand="table").standard_error

    assert found**2 == pytest.approx(2 * 4.0**2 * 12 / 60**2)
    assert sampled > found
    clamped = (y <= 0) | (y >= 10)  # u^2 - v is b^2 there, and 2 b^2 inside
    assert known**2 == pytest.approx(1.5**2 * (2 - clamped).sum() / 60**2)


@pytest.mark.parametrize("asked", [["crosstab", "c", "c"], ["ols", "z ~ x"]])
def test_cells_that_were_shuffled_apart_are_not_crossed(asked):
    rng = np.random.default_rng(3)
    linked = plain(people_of(rng), rng)
    apart = replace(
        linked,
        manifest=linked.manifest.model_copy(update={"release_form": ReleaseForm.COLUMN_SHUFFLED}),
    )

    assert analysis.analyse(linked, asked[0], asked[1:]).terms
    with pytest.raises(InputError, match="the cells of a row belong to different people"):
        analysis.analyse(apart, asked[0], asked[1:])

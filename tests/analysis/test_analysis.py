"""Estimates from public folders: exact laws, what is refused, and a small test of coverage."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import truncnorm
from typer.testing import CliRunner

import shoal
from shoal import analysis
from shoal.analysis import measured
from shoal.analysis.intervals import spread
from shoal.analysis.published import NoisyTable, PublishedTable
from shoal.analysis.result import term_of
from shoal.analysis.rows import group_spread, indicator, number
from shoal.cli.commands import app
from shoal.core import ReleaseForm
from shoal.core.manifest import Manifest, PrivacyLossRecord
from shoal.errors import InputError
from shoal.mechanism.randomised_response import response_matrix

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [18, 90]},
    "hours": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 80]},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 120]},
    "owner": {"role": "confidential", "kind": "nominal", "categories": ["no", "yes"]},
}
TRUE_SHARE, TRUE_MEAN = 0.4, 50.0


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n)
    hours = np.clip(rng.normal(36, 9, n), 0, 80)
    income = np.clip(rng.normal(20 + 0.6 * age, 8), 0, 120)
    owner = np.where(rng.random(n) < TRUE_SHARE, "yes", "no")
    sex = rng.choice(["f", "m"], n)
    return pl.DataFrame({"age": age, "hours": hours, "sex": sex, "income": income, "owner": owner})


def released(method, n=400, seed=1, columns=COLUMNS, table=None, **parameters):
    """Release these people, none of whom lacks a value: noise cannot make it look otherwise."""
    stated = {
        name: {"keep_missing": False, **one} if table is None and isinstance(one, dict) else one
        for name, one in columns.items()
    }
    policy = {"version": 1, "columns": stated, "protect": {"method": method, **parameters}}
    return shoal.protect(people(n, seed) if table is None else table, policy)


@cache
def kept(method, **parameters):
    return released(method, **parameters)


KEPT = {
    "maxent": {"epsilon": 4.0}, "copula": {"epsilon": 4.0}, "privtree": {"epsilon": 4.0},
    "kanon-dp": {"epsilon": 4.0, "k": 5}, "mdav": {"k": 5}, "mondrian": {"k": 5},
    "individual-ranking": {"k": 5},
}  # fmt: skip


def one(method):
    return kept(method, **KEPT[method])


def noisy_cells(values, *, low, high, b):
    """A column whose cells have Laplace noise of scale b, as `kanon-dp` publishes it."""
    loss = PrivacyLossRecord.model_construct(
        target="x", mechanism="discrete-laplace", draws=len(values), epsilon=Fraction(1),
        scale=Fraction(b * (1 << 20) / (high - low)),
    )  # fmt: skip
    policy = shoal.load_policy(
        {
            "version": 1,
            "columns": {"x": {"role": "confidential", "kind": "numeric", "bounds": [low, high]}},
            "protect": {"method": "kanon-dp", "epsilon": 1, "k": 5},
        }
    )
    manifest = Manifest.model_construct(
        policy={}, parameters={}, protected_columns=["x"], method="kanon-dp", suppressed=0,
        release_form=ReleaseForm.LINKED_SHUFFLED, privacy_losses=[loss], hierarchies={},
    )  # fmt: skip
    return PublishedTable(pl.DataFrame({"x": values}), manifest, policy, None)


@settings(max_examples=30)
@given(x=st.floats(0.01, 9.99), b=st.floats(0.2, 30))
def test_clamped_laplace_cells_have_no_bias_in_means_and_squares(x, b):
    # Both sides of x by quadrature, and what falls on the bounds: 0 first, 10 last.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    sides = [(x * (nodes + 1) / 2, x / 2), (x + (10 - x) * (nodes + 1) / 2, (10 - x) / 2)]
    cells = np.concatenate([[0.0], *(side for side, _ in sides), [10.0]])
    inside = [half * weights * np.exp(-abs(side - x) / b) / (2 * b) for side, half in sides]
    law = np.concatenate([[np.exp(-x / b) / 2], *inside, [np.exp(-(10 - x) / b) / 2]])

    found = number(noisy_cells(cells, low=0.0, high=10.0, b=b), "x")

    assert law.sum() == pytest.approx(1)
    assert law @ found.values == pytest.approx(x, abs=1e-8 * (1 + b))
    assert law @ found.squares == pytest.approx(x * x, abs=1e-8 * (1 + b * b))


@given(estimate=st.floats(-3, 3), variance=st.floats(0, 4))
def test_a_share_lies_in_its_interval_and_both_between_0_and_1(estimate, variance):
    found = term_of("yes", estimate, variance, 0.95, within=(0.0, 1.0))
    plain = term_of("yes", estimate, variance, 0.95)

    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.low <= max(plain.low, 0.0) or plain.low > 1
    assert found.high >= min(plain.high, 1.0) or plain.high < 0
    if variance > 1e-6 * estimate**2:
        assert found.low < found.high


@pytest.mark.parametrize(
    ("estimate", "high"), [(0.0, 0.0196), (-1e-9, 0.0196), (-0.01, 0.0141), (-0.03, 0.0081)]
)
def test_a_share_beyond_its_limit_has_an_interval_that_reaches_inside(estimate, high):
    """Of a normal law that is cut off at the limit, 95% is below the interval's end."""
    found = term_of("yes", estimate, 1e-4, 0.95, within=(0.0, 1.0))
    other = term_of("no", 1 - estimate, 1e-4, 0.95, within=(0.0, 1.0))
    inside = truncnorm(-estimate / 0.01, np.inf, loc=estimate, scale=0.01)

    assert (found.low, found.high) == pytest.approx((0.0, high), abs=1e-4)
    assert found.high == pytest.approx(inside.ppf(0.95), abs=1e-7)
    assert (other.low, other.high) == pytest.approx((1 - found.high, 1.0))


def test_a_share_far_beyond_its_limit_has_a_narrow_interval():
    """Far out, the law above the limit is exponential: 95% is below 3 / d standard errors."""
    far = term_of("yes", -10.0, 1e-4, 0.95, within=(0.0, 1.0))

    assert far.low == 0
    assert far.high == pytest.approx(0.01 * np.log(20) / 1000, rel=1e-3)


def test_random_responses_have_no_bias_in_shares():
    published = PublishedTable.of(one("kanon-dp"))
    P = response_matrix(2, 2.0)  # epsilon 4, of which two columns have one half each
    values = indicator(published, "owner", "yes").values
    cells = published.frame["owner"].to_numpy()
    u = [values[cells == "no"][0], values[cells == "yes"][0]]

    assert P @ u == pytest.approx([0.0, 1.0])


def test_a_folder_says_what_its_release_does(tmp_path):
    for method, file_format in (("maxent", "parquet"), ("mondrian", "csv")):
        release = one(method)
        folder = release.write(tmp_path / method, file_format=file_format)

        for ask in (
            lambda source: analysis.mean(source, "age"),
            lambda source: analysis.ols(source, "income ~ age + sex"),
            lambda source: analysis.crosstab(source, "sex", "owner"),
        ):
            before, after = ask(release), ask(folder)
            assert [t.name for t in before.terms] == [t.name for t in after.terms]
            for a, b in zip(before.terms, after.terms, strict=True):
                assert [a.estimate, a.low, a.high] == pytest.approx([b.estimate, b.low, b.high])
            assert str(before).splitlines()[-1].startswith("  does not account for")


def test_means_of_groups_keep_the_mean_of_the_table_and_intervals_bound_it():
    table = people(400, 1)
    exact = analysis.mean(one("mdav"), "age", estimand="table")
    bounds = analysis.mean(one("mondrian"), "age", estimand="table")
    share = analysis.proportion(one("mdav"), "owner", "yes", estimand="table")

    assert exact.interval == pytest.approx((table["age"].mean(),) * 2, rel=1e-9)
    assert exact.standard_error == 0
    assert bounds.interval[0] <= table["age"].mean() <= bounds.interval[1]
    assert share.estimate == pytest.approx((table["owner"] == "yes").mean())
    assert "the confidential table" in exact.estimand


def test_intervals_of_noise_alone_are_narrower_than_those_for_the_population():
    for ask in (
        lambda about: analysis.mean(one("maxent"), "income", estimand=about),
        lambda about: analysis.quantile(one("maxent"), "age", 0.25, estimand=about),
        lambda about: analysis.mean(one("copula"), "income", estimand=about),
        lambda about: analysis.proportion(one("kanon-dp"), "owner", "no", estimand=about),
        lambda about: analysis.quantile(one("mondrian"), "age", estimand=about),
    ):
        table, population = ask("table"), ask("population")
        assert table.estimate == population.estimate
        if np.isfinite(table.standard_error):
            assert table.standard_error < population.standard_error
        assert table.interval[0] <= table.estimate <= table.interval[1]


@pytest.mark.parametrize(
    ("said", "unit"),
    [
        ({"bounds": [0, 120_000], "step": 0.01}, 1000),  # more multiples than the grid has units
        ({"bounds": [-10, 120], "step": 0.5}, 1),
        ({"bounds": [0, 120]}, 1),
        ({"bounds": [0, 120], "bottom_code": 45, "top_code": 55}, 1),
    ],
)
def test_sums_of_blocks_are_read_in_the_units_that_they_were_taken_in(said, unit):
    """At epsilon 5,000 the noise moves a mean by less than a thousandth of it."""
    columns = {**COLUMNS, "income": {**COLUMNS["income"], **said}}
    table = people(400, 1).with_columns(pl.col("income") * unit)
    cut = table["income"].clip(said.get("bottom_code"), said.get("top_code"))

    found = analysis.mean(
        released("copula", columns=columns, table=table, epsilon=5000), "income", estimand="table"
    )

    assert found.estimate == pytest.approx(cut.mean(), rel=0.005)


def test_weights_that_are_released_count():
    columns = {**COLUMNS, "w": {"role": "other", "kind": "numeric", "sampling_weight": True}}
    table = people(400, 1)
    table = table.with_columns(pl.when(pl.col("age") > 50).then(3.0).otherwise(1.0).alias("w"))
    release = released("mdav", columns=columns, table=table, k=5)

    found = analysis.mean(release, "income")
    w, income = table["w"].to_numpy(), table["income"].to_numpy()

    assert found.estimate == pytest.approx((w * income).sum() / w.sum())
    assert "weights" in found.estimand
    assert analysis.total(release, "income").estimate == pytest.approx((w * income).sum())


def test_shares_leave_out_missing_cells_that_are_counted_as_a_value():
    """At epsilon 5,000 the noise moves no share by a hundredth."""
    gone = pl.int_range(pl.len()) % 5 < 2
    table = people(400, 1).with_columns(owner=pl.when(gone).then(None).otherwise("owner"))
    columns = {**COLUMNS, "owner": {**COLUMNS["owner"], "keep_missing": True}}
    release = released("maxent", table=table, columns=columns, epsilon=5000)
    there = table.drop_nulls("owner")

    yes = analysis.proportion(release, "owner", "yes", estimand="table")
    cells = analysis.crosstab(release, "owner", "sex", estimand="table").terms

    assert yes.estimate == pytest.approx((there["owner"] == "yes").mean(), abs=0.01)
    assert sum(cell.estimate for cell in cells) == pytest.approx(1, abs=0.01)
    for cell in cells:
        owner, sex = cell.name.split(", ")
        both = ((there["owner"] == owner) & (there["sex"] == sex)).mean()
        assert cell.estimate == pytest.approx(both, abs=0.01)


@given(
    counts=st.lists(st.floats(1, 100), min_size=3, max_size=6),
    public=st.booleans(),
    asked=st.integers(0, 1),
)
def test_the_error_of_a_share_is_that_of_its_slopes_in_the_counts(counts, public, asked):
    """The variance is that of the noise of each count, times its squared slope."""
    n = float(sum(counts)) + 3.0
    published = SimpleNamespace(rows_are_public=public, n=n)
    x, present = np.eye(len(counts))[asked], np.arange(len(counts)) < len(counts) - 1

    def share(values):
        table = NoisyTable(("a",), (tuple("abcdef"[: len(values)]),), values, 2.0, gaussian=False)
        return measured._ratio(published, table, x, present.astype(float))

    at = np.array(counts)
    steps = 1e-4 * np.eye(len(counts))
    slopes = [(share(at + step)[0] - share(at - step)[0]) / 2e-4 for step in steps]
    assert share(at)[1] == pytest.approx(2.0 * float(np.square(slopes).sum()), rel=1e-5)


def test_a_total_says_that_missing_cells_count_as_the_mean():
    table = people(40, 1).with_columns(age=pl.when(pl.int_range(pl.len()) > 3).then("age"))
    columns = {**COLUMNS, "age": {"role": "other", "kind": "numeric"}}
    release = released("mdav", table=table, columns=columns, k=4)

    found = analysis.total(release, "age", estimand="table")

    assert found.estimate == pytest.approx(40 * table["age"].mean())
    assert "missing cells, which count as the mean of the others" in found.does_not_account_for
    left_out = analysis.mean(release, "age").does_not_account_for
    assert "rows in which a cell is missing, which are left out" in left_out


def test_columns_with_a_step_are_analysed_by_their_values():
    """At epsilon 5,000 noise is little: slope and quantiles are nearly those of the table."""
    rng = np.random.default_rng(5)
    age, kids = rng.integers(18, 90, 800), rng.poisson(1.2, 800).clip(0, 12)
    table = pl.DataFrame({"age": age, "pay": 100 * age + rng.normal(0, 1000, 800), "kids": kids})
    stepped = {"role": "quasi-identifier", "kind": "numeric", "step": 1}
    columns = {
        "age": {**stepped, "bounds": [0, 110]},
        "kids": {**stepped, "bounds": [0, 12]},
        "pay": {"role": "confidential", "kind": "numeric", "bounds": [-5000, 15000]},
    }
    release = released("maxent", table=table, columns=columns, epsilon=5000)

    slope = analysis.ols(release, "pay ~ age")["age"]

    assert slope.estimate == pytest.approx(np.polyfit(age, table["pay"], 1)[0], rel=0.05)
    for name, at in product(("age", "kids"), (0.1, 0.5, 0.9)):
        found = analysis.quantile(release, name, at, estimand="table")
        exact = np.quantile(table[name], at, method="inverted_cdf")
        assert found.estimate == pytest.approx(exact, abs=1)
        assert found.interval[0] <= exact <= found.interval[1]
        assert {end % 1 for end in found.interval} == {0.0}


@pytest.mark.parametrize("bounds", [[0, 1e5], [0, 1e7]])
def test_quantiles_are_sought_inside_bins_however_wide_the_bounds_are(bounds):
    pay = np.exp(np.random.default_rng(6).normal(9, 0.8, 2000))
    table = pl.DataFrame({"pay": pay, "sex": ["f"] * 2000})
    said = {"role": "confidential", "kind": "numeric", "bounds": bounds}
    columns = {"sex": COLUMNS["sex"], "pay": said}
    found = analysis.quantile(released("maxent", table=table, columns=columns, epsilon=100), "pay")

    assert found.estimate == pytest.approx(np.median(pay), rel=0.05)
    assert 0.01 < (found.interval[1] - found.interval[0]) / found.estimate < 0.2


NODES = [[str(age), f"{age // 10 * 10}-{age // 10 * 10 + 9}", "*"] for age in range(100)]
NAMED = [[row[0], "young" if int(row[0]) < 40 else "old", "*"] for row in NODES]


@pytest.mark.parametrize("paths", [NODES, NAMED], ids=["ranges", "names"])
def test_nodes_of_a_hierarchy_of_numbers_are_read_as_their_leaves(paths, tmp_path):
    file = tmp_path / "age.csv"
    file.write_text("".join(",".join(path) + "\n" for path in paths))
    table = people(400, 1).select(pl.col("age").cast(pl.Int64), "owner")
    age = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]}
    columns = {"age": {**age, "hierarchy": str(file)}, "owner": COLUMNS["owner"]}
    release = released("full-domain", table=table, columns=columns, k=5, levels={"age": 1})
    widest = 10 if paths is NODES else 60

    low, high = analysis.mean(release, "age", estimand="table").interval
    about = analysis.mean(release, "age")

    assert low <= table["age"].mean() <= high <= low + widest
    assert about.interval[0] <= 50 <= about.interval[1]
    assert about.standard_error > table["age"].std() / 20  # more than by sampling alone
    starred = released("full-domain", table=table, columns=columns, k=5, levels={"age": 2})
    with pytest.raises(InputError, match="one interval for all rows"):
        analysis.mean(starred, "age")


def test_the_table_itself_is_not_weighted():
    table = people(60, 1).with_columns(weight=pl.int_range(1, pl.len() + 1))
    weight = {"role": "other", "kind": "numeric", "sampling_weight": True}
    columns = {**COLUMNS, "age": {"role": "other", "kind": "numeric"}, "weight": weight}
    release = released("mdav", table=table, columns=columns, k=5)
    ages = table["age"]

    for ask, exact in (
        (analysis.mean, ages.mean()),
        (analysis.total, ages.sum()),
        (analysis.quantile, ages.median()),
    ):
        assert ask(release, "age", estimand="table").estimate == pytest.approx(exact)
        assert ask(release, "age").estimate != pytest.approx(exact)
    size = "the error of the population's size, which is taken from the weights"
    assert size in analysis.total(release, "age").does_not_account_for


def test_a_number_of_rows_that_was_cut_is_not_public_and_one_without_suppressed_rows_is():
    table = people(120, 1).with_columns(person=pl.int_range(pl.len()) // 3)
    person = {"role": "identifier", "privacy_unit": True, "max_contributions": 2}
    columns = {**COLUMNS, "person": person}
    release = released("maxent", table=table, columns=columns, epsilon=40)
    noiseless = {**columns, "person": {"role": "identifier", "privacy_unit": True}}
    left = released("mdav", table=table, columns={**noiseless, "age": "other"}, k=4)

    with pytest.raises(InputError, match="number of rows"):
        analysis.total(release, "age", estimand="table")
    found = analysis.mean(release, "age")
    assert "the simple random sampling of rows" in found.accounts_for
    assert "the rows that were left out" in found.does_not_account_for
    assert left.manifest.rows == 120
    alike = "rows of one person, which are more alike than others"
    assert alike in analysis.mean(left, "hours").does_not_account_for
    published = PublishedTable.of(left)
    suppressed = replace(published, manifest=left.manifest.model_copy(update={"suppressed": 5}))
    assert suppressed.table_rows == 125


def test_a_share_that_nobody_has_may_have_people_in_the_population():
    """0 of 60: a two-sided 95% interval of a share ends between 0.03 and 0.07."""
    table = people(60, 1).with_columns(owner=pl.lit("no"))
    release = released("mdav", table=table, k=5)

    found = analysis.proportion(release, "owner", "yes")

    assert found.interval == pytest.approx((0.0, 0.05), abs=0.02)
    assert analysis.proportion(release, "owner", "yes", estimand="table").interval == (0.0, 0.0)


def test_means_of_whole_numbers_allow_for_their_rounding():
    """Errors of 20 or more groups, each at most a half: beyond 4 standard errors never here."""
    table = people(200, 1).with_columns(pl.col("age").round().cast(pl.Int64))
    release = released("mdav", table=table, k=5, integers=True)

    found = analysis.mean(release, "age", estimand="table")

    assert found.standard_error > 0
    assert abs(found.estimate - table["age"].mean()) < 4 * found.standard_error


def test_slopes_that_are_not_determined_are_refused_in_words():
    table = people(60, 1).with_columns(hours=pl.lit(38.0), owner=pl.lit("no"))
    plain = {name: {**said, "role": "other"} for name, said in COLUMNS.items()}
    columns = {**plain, "sex": COLUMNS["sex"]}
    release = released("mdav", table=table, columns=columns, k=5)

    with pytest.raises(InputError, match="constant here, or follows from the others"):
        analysis.ols(release, "income ~ hours")
    with pytest.raises(InputError, match="no estimate here"):
        analysis.logit(release, "owner ~ age", category="yes")


def test_what_noise_hides_is_named_whatever_the_table_holds():
    moved = "cells that were missing, or outside the public bounds or categories"
    filled = "missing cells, which may have got the mean of their group"

    for method in ("maxent", "kanon-dp", "copula"):
        left = analysis.mean(one(method), "income").does_not_account_for
        assert any(text.startswith(moved) for text in left)
    assert filled in analysis.mean(one("mdav"), "age", estimand="table").does_not_account_for


def test_a_number_of_rows_that_is_not_public_is_not_used():
    release = released("maxent", epsilon=4.0, neighbours="add-remove")

    assert analysis.ols(release, "income ~ age").terms[1].standard_error > 0
    assert 0 < analysis.proportion(release, "owner", "yes").estimate < 1
    with pytest.raises(InputError, match="number of rows"):
        analysis.total(release, "age", estimand="table")


def test_spread_keeps_rows_inside_their_intervals_and_their_number():
    low = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 9.0])
    high = np.array([4.0, 4.0, 8.0, 8.0, 8.0, 9.0])

    found = spread(low, high, np.ones(6), ends=True)

    assert (found.means >= low).all()
    assert (found.means <= high).all()
    assert found.shares.sum() == pytest.approx(1)
    assert found.within[-1] == 0
    assert found.means[0] == 2  # both rows lie at its ends


def test_the_spread_inside_groups_is_about_that_of_the_table():
    table = people(400, 1)
    published = PublishedTable.of(one("mdav"))

    hidden = table["age"].var() - published.frame["age"].var()
    assert group_spread(published, "age").mean() == pytest.approx(hidden, rel=0.6)


REFUSED = [
    ("mdav", ["proportion", "sex", "f"], "replaced by others"),
    ("mdav", ["ols", "age ~ hours"], "groups were formed by it"),
    ("kanon-dp", ["quantile", "income"], "noise of its own"),
    ("kanon-dp", ["logit", "sex ~ income"], "noise of its own"),
    ("copula", ["crosstab", "sex", "owner"], "publishes no noisy counts of columns sex, owner"),
    ("privtree", ["mean", "age"], "publishes no noisy counts of column 'age'"),
    ("mdav", ["mean", "sex"], "is not numeric"),
    ("mdav", ["mean", "agee"], "Did you mean 'age'?"),
    ("mdav", ["proportion", "owner", "yess"], "Did you mean 'yes'?"),
    ("mdav", ["crosstab", "age", "owner"], "holds numbers"),
    ("mdav", ["total", "age"], "needs its size"),
    ("mdav", ["ols", "age"], "expected a model"),
    ("mdav", ["mean"], "expected a column, found 0 arguments"),
    ("mdav", ["men", "age"], "Did you mean 'mean'?"),
]


@pytest.mark.parametrize(("method", "asked", "text"), REFUSED)
def test_what_is_not_supported_is_refused_with_its_reason(method, asked, text):
    with pytest.raises(InputError, match=text.replace("?", r"\?")):
        analysis.analyse(one(method), asked[0], asked[1:])


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("mondrian", "its cells may be sets or levels"),
        ("local-suppression", "rare cells are blank"),
    ],
)
def test_cells_that_no_other_replaced_are_not_said_to_be(method, said):
    table = pl.DataFrame({"town": [*"aabbbc"] * 5 + ["d"], "sex": [*"fm"] * 15 + ["f"]})
    categories = {"town": [*"abcd"], "sex": [*"fm"]}
    columns = {
        name: {"role": "quasi-identifier", "kind": "nominal", "categories": known}
        for name, known in categories.items()
    }
    protect = {"method": method, "k": 3}
    release = shoal.protect(table, {"version": 1, "columns": columns, "protect": protect})

    with pytest.raises(InputError, match=said):
        analysis.analyse(release, "proportion", ["town", "a"])


RULES = ["owner = 'yes' implies income >= 10", "hours <= age"]


@pytest.mark.parametrize(
    ("method", "parameters", "rules", "moved", "left"),
    [
        ("laplace", {"epsilon": 4.0}, RULES, {"age", "hours", "income"}, {"weight"}),
        ("ir-laplace", {"epsilon": 4.0, "k": 10, "release_form": "linked-shuffled"}, RULES,
         {"age", "hours", "income"}, {"weight"}),
        ("kanon-dp", {"epsilon": 4.0, "k": 5}, RULES[:1], {"income", "owner"}, {"weight", "tall"}),
        ("mdav", {"k": 5, "columns": ["age", "hours", "income", "owner", "weight"]}, RULES,
         {"income"}, {"age", "hours", "weight"}),
    ],
)  # fmt: skip
def test_columns_that_a_rule_may_have_moved_support_no_interval(
    method, parameters, rules, moved, left
):
    columns = {
        **COLUMNS,
        "weight": {"role": "confidential", "kind": "numeric", "bounds": [40, 120]},
        "tall": {"role": "confidential", "kind": "nominal", "categories": ["no", "yes"]},
    }
    table = people(400, 1).with_columns(weight=pl.col("hours") + 40, tall=pl.col("owner").reverse())
    found, copied = (
        analysis.analyse(
            shoal.protect(
                table,
                {"version": 1, "columns": columns, "protect": {"method": method, **parameters},
                 "constraints": {"rules": rules, "repair": True, "observed": observed}},
            )
        )
        for observed in (False, True)
    )  # fmt: skip

    assert {one for one, why in found.refused.items() if "broke a rule" in why} == moved
    assert left <= {one.about for one in found.results}
    assert not (left | moved) & {one.about for one in copied.results}


BOUND = {
    "rules": ["hours <= age", "sex = 'm' implies owner = 'no'", "region determines part"],
    "lookups": {"region": {"part": {"a": "x", "b": "x", "c": "y"}}},
}


@pytest.mark.parametrize("method", ["maxent", "auto"])
@pytest.mark.parametrize("observed", [False, True])
def test_columns_that_rules_merge_are_analysed_and_others_refused_in_plain_words(method, observed):
    """At epsilon 5,000 the noise moves a share by less than a hundredth."""
    columns = {
        **COLUMNS,
        "region": {"role": "confidential", "kind": "nominal", "categories": ["a", "b", "c"]},
        "part": {"role": "confidential", "kind": "nominal", "categories": ["x", "y"]},
    }
    table = people(400, 1).with_columns(
        hours=pl.min_horizontal("hours", "age"),
        owner=pl.when(pl.col("sex") == "m").then(pl.lit("no")).otherwise("owner"),
        region=pl.Series(np.random.default_rng(3).choice(["a", "b", "c"], 400)),
    )
    table = table.with_columns(
        part=pl.col("region").replace_strict(BOUND["lookups"]["region"]["part"])
    )
    policy = {"version": 1, "columns": columns, "protect": {"method": method, "epsilon": 5000},
              "constraints": {**BOUND, "observed": observed}}  # fmt: skip
    release = shoal.protect(table, policy)

    found = analysis.analyse(release, estimand="table")

    words = " ".join(found.refused.values())
    assert not any(name in words for name in ("its limit", "its interval", "sex and owner"))
    analysed = {one.about: one for one in found.results}
    if observed:  # noisy counts would show the rules, and are not published
        assert not analysed
        return
    assert "a rule binds it" in found.refused["hours"]
    assert {"age", "income", "region"} <= {*analysed}
    merged = {"sex", "owner", "part"}
    for name in merged | {"region"}:
        for term in analysed[name].terms:
            share = (table[name] == term.name).mean()
            assert term.estimate == pytest.approx(share, abs=0.01), (name, term)
            assert 0 < term.standard_error < 0.01
    both = analysis.crosstab(release, "sex", "owner", estimand="table")
    assert both["f, yes"].estimate == pytest.approx((table["owner"] == "yes").mean(), abs=0.01)
    assert both["m, yes"].high < 0.001


def test_shares_confidence_and_estimand_are_checked():
    for more in ({"confidence": 2}, {"estimand": "people"}):
        with pytest.raises(InputError, match="expected"):
            analysis.mean(one("mdav"), "age", **more)
    with pytest.raises(InputError, match="between 0 and 1"):
        analysis.quantile(one("mdav"), "age", 1.5)


def test_a_column_that_was_shuffled_by_itself_supports_its_mean_alone():
    release = released("ir-laplace", epsilon=4, k=10, release_form="column-shuffled")

    assert analysis.mean(release, "income").standard_error > 0
    for asked in (["ols", "income ~ age"], ["crosstab", "sex", "owner"], ["quantile", "age"]):
        with pytest.raises(InputError):
            analysis.analyse(release, asked[0], asked[1:])


def test_intervals_cover_about_as_often_as_they_say():
    """40 releases each by kanon-dp and maxent, nominal 95%: at least 26 of 40 cover.

    False alarm: if an interval covers with probability 0.92, fewer than 26 of 40 do with
    probability 2e-7, or 8e-7 for one of the four. The plain mean of noisy cells, which clamping
    biases, is 7.8 too high on average, with a standard deviation of 3.7: that of 40 is below 4 with
    probability 4e-11.
    """
    covered, plain = np.zeros(4, dtype=int), []
    for number_ in range(40):
        noisy = released("kanon-dp", n=200, seed=number_, epsilon=1.0, k=5)
        drawn = released("maxent", n=200, seed=number_, epsilon=1.0)
        intervals = [
            (analysis.proportion(noisy, "owner", "yes").interval, TRUE_SHARE),
            (analysis.mean(noisy, "income").interval, TRUE_MEAN),
            (analysis.proportion(drawn, "owner", "yes").interval, TRUE_SHARE),
            (analysis.mean(drawn, "income").interval, TRUE_MEAN),
        ]
        covered += [low <= truth <= high for (low, high), truth in intervals]
        plain.append(noisy.data["income"].mean())

    assert (covered >= 26).all(), covered
    assert np.mean(plain) > TRUE_MEAN + 4


def report_lines(folder):
    page = html.unescape((folder / "report.html").read_text("utf-8"))
    return page, {name: re.search(f'<pre id="{name}">(.*?)</pre>', page, re.DOTALL)[1]
                  for name in ("python", "r")}  # fmt: skip


def labelled(tmp_path):
    """A folder of a release whose labels say what its codes mean, written as Germans do."""
    table = people(400, 1).with_columns(pl.col("sex").replace({"f": "1", "m": "2"}))
    sex = {**COLUMNS["sex"], "categories": ["1", "2"], "value_labels": {"1": "woman", "2": "man"}}
    policy = {
        "version": 1, "columns": {**COLUMNS, "sex": sex},
        "writing": {"delimiter": ";", "decimal": ","}, "protect": {"method": "mdav", "k": 5},
    }  # fmt: skip
    return shoal.protect(table, policy).write(tmp_path / "release", file_format="csv")


def test_the_report_has_lines_of_python_that_load_label_and_analyse_the_folder(
    tmp_path, monkeypatch, capsys
):
    folder = labelled(tmp_path)
    page, lines = report_lines(folder)
    monkeypatch.chdir(folder)
    names = {}

    exec(compile(lines["python"], "report", "exec"), names)  # noqa: S102 (it is ours)

    assert "mean        age" in capsys.readouterr().out
    assert {"woman", "man"} & set(names["people"]["sex"])
    assert not {"1", "2"} & set(names["people"]["sex"])
    assert names["people"]["income"].dtype.is_numeric()
    assert "is one of a and b" not in page  # none of its cells is a set
    page, _ = report_lines(one("mondrian").write(tmp_path / "coarser"))
    assert "<code>{a, b}</code> is one of a and b" in page


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_the_report_has_lines_of_r_that_load_label_and_analyse_the_folder(tmp_path):
    folder = labelled(tmp_path)
    _, lines = report_lines(folder)
    (tmp_path / "lines.r").write_text(lines["r"] + "\nprint(table(people$sex))")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["Rscript", tmp_path / "lines.r"],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert re.search(r"woman", done.stdout), done.stdout
    assert re.search(r"income.*\d", done.stdout), done.stdout


def test_the_command_prints_one_statistic_or_every_column(tmp_path):
    folder = str(one("mdav").write(tmp_path / "release"))
    run = CliRunner().invoke

    whole = run(app, ["analyse", folder])
    model = run(app, ["analyse", folder, "ols", "income ~ age + hours", "--json"])
    total = run(app, ["analyse", folder, "total", "age", "--population", "1000"])
    middle = run(app, ["analyse", folder, "quantile", "age", "--at", "0.25", "--confidence", "0.9"])

    assert "no interval  sex: Column 'sex', released by mdav" in whole.stdout
    assert "proportion  owner = yes" in whole.stdout
    assert [t["name"] for t in json.loads(model.stdout)["terms"]] == ["intercept", "age", "hours"]
    assert "total of age, for the population" in total.stdout
    assert "90% interval" in middle.stdout

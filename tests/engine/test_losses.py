"""Each figure of the officer's report, computed again with other code, on three tables.

Nothing here uses the metrics of Shoal: polars groups and joins, NumPy adds up, and the text of
released cells is read by a regular expression.
"""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.opening import figures

import shoal
from shoal import io, sample
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.publish import evidence
from shoal.report import html

KEYS = ["age", "sex", "marital"]
ROWS = 240


def _mixed(n=2 * ROWS, seed=5):
    """Numbers and categories, a tenth of all cells missing."""
    rng = np.random.default_rng(seed)
    sex, marital = rng.integers(0, 2, n), rng.integers(0, 4, n)
    frame = pl.DataFrame(
        {
            "age": rng.integers(16, 95, n),
            "sex": [f"s{code}" for code in sex],
            "marital": [f"m{code}" for code in marital],
            "amount": rng.lognormal(8, 1, n).round(),
            "secret": [f"v{code}" for code in (sex + marital + rng.integers(0, 2, n)) % 5],
        }
    )
    gone = [pl.Series(name, rng.random(n) < 0.1) for name in frame.columns]
    return frame.with_columns(
        pl.when(mask).then(None).otherwise(pl.col(mask.name)).alias(mask.name) for mask in gone
    )


@pytest.fixture(params=["sample", "mixed", "adult"])
def people(request, reference):
    """Rows of a table, and as many other people of it."""
    if request.param == "sample":
        names = {"age": "age", "sex": "sex", "marital": "marital", "income": "amount",
                 "condition": "secret"}  # fmt: skip
        frame = sample.load().select(list(names)).rename(names)
    elif request.param == "mixed":
        frame = _mixed()
    else:
        names = {"age": "age", "sex": "sex", "marital-status": "marital",
                 "hours-per-week": "amount", "occupation": "secret"}  # fmt: skip
        frame = reference("adult").select(list(names)).rename(names)
    return frame[:ROWS], frame[ROWS : 2 * ROWS]


def stated(frame, method, *, age=None, declare=False, keys=KEYS, **protect):
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", **(age or {})},
        "sex": {"role": "quasi-identifier", "kind": "nominal"},
        "marital": {"role": "quasi-identifier", "kind": "nominal"},
        "amount": {"role": "confidential", "kind": "numeric"},
        "secret": {"role": "confidential", "kind": "nominal"},
    }
    for name in KEYS:
        if name not in keys:
            columns[name] = {**columns[name], "role": "other"}
    if declare:
        columns["age"].setdefault("bounds", [0, 120])
        columns["amount"]["bounds"] = [0, 10**7]
        for name in ("sex", "marital", "secret"):
            columns[name]["categories"] = sorted(frame[name].drop_nulls().unique())
    return {"version": 1, "columns": columns, "protect": {"method": method, **protect}}


def run(policy, frame, control=None, *, which=()):
    """A release, its confidential figures, and some measures of it."""
    planned = plan(load(policy))
    done = protect_table.run(planned, io.from_native(frame))
    found = None
    if which:
        found = shoal.evaluate(frame, done.release, policy, control=control, which=which)
    return SimpleNamespace(release=done.release, figures=figures(planned, done)), found


def alone(frame, keys):
    return frame.group_by(keys).len().filter(pl.col("len") == 1).height


def losses(done):
    return {column["name"]: column for column in done.figures["columns"]}


@pytest.mark.parametrize(
    ("method", "age", "protect"),
    [
        ("mondrian", {"step": 10, "top_code": 60}, {"k": 5}),
        ("laplace", {"bounds": [30, 40]}, {"epsilon": 1}),
    ],
)
def test_who_was_alone_is_counted_in_the_table_as_it_came(people, method, age, protect):
    """Coded, rounded or clamped to ten years of age, far fewer are alone."""
    frame, _ = people
    policy = stated(frame, method, age=age, declare=method == "laplace", **protect)

    planned, raw = plan(load(policy)), io.from_native(frame)
    done = protect_table.run(planned, raw)
    found, why = evidence.evaluate_release(
        planned, raw, done.release, wanted=True, control=None, progress=lambda *_: None
    )

    assert why == ""
    before = alone(frame, KEYS)
    coarse = frame.with_columns(pl.col("age").clip(30, 40) // 10)
    assert before > alone(coarse, KEYS)
    compared = figures(planned, done)
    unique = compared["unique_on_quasi_identifiers"]
    released = done.release.data
    assert unique == {"original": before, "rows": ROWS, "released": alone(released, KEYS)}
    (figure,) = found.of("uniques")
    assert figure.baseline == before / ROWS
    assert f"{before:,} of {ROWS:,} were in the original" in figure.sentence
    page = html.internal_report(done.release.manifest, {**compared, "measured": found.facts()}, {})
    assert f"{before:,} of {ROWS:,} rows were unique in the original, as it came" in page


def test_losses_row_by_row(people):
    frame, _ = people
    policy = stated(frame, "mdav", k=5, release_form="row-aligned",
                    columns=["age", "sex", "marital", "amount"])  # fmt: skip

    done, _ = run(policy, frame)

    after, lost = done.release.data, losses(done)
    for name in ("age", "amount"):
        x, y = (side[name].cast(pl.Float64).to_numpy() for side in (frame, after))
        both = ~np.isnan(x) & ~np.isnan(y)
        x, y = x[both], y[both]
        assert lost[name]["metric"] == "SSE / SST"
        assert lost[name]["loss"] == pytest.approx(
            ((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum()
        )
    for name in ("sex", "marital"):
        changed = frame[name].cast(pl.String).ne_missing(after[name].cast(pl.String)).mean()
        assert lost[name]["metric"] == "share of rows whose category changed"
        assert lost[name]["loss"] == pytest.approx(changed)
    for name, own in lost.items():
        assert own["missing_original"] == frame[name].null_count()
        assert own["missing_released"] == after[name].null_count()


def test_losses_of_a_distribution(people):
    """Of whole rows; missing cells of the release are a category, and no number."""
    frame = people[0].drop_nulls()
    policy = stated(frame, "maxent", declare=True, epsilon=1)

    done, _ = run(policy, frame)

    after, lost = done.release.data, losses(done)
    for name in ("sex", "marital", "secret"):
        shares = [
            side[name].cast(pl.String).value_counts(normalize=True, name="share")
            for side in (frame, after)
        ]
        joined = shares[0].join(shares[1], on=name, how="full", coalesce=True, nulls_equal=True)
        joined = joined.with_columns(pl.exclude(name).fill_null(0.0))
        apart = (joined["share"] - joined["share_right"]).abs().sum() / 2
        assert lost[name]["metric"] == "total variation"
        assert lost[name]["loss"] == pytest.approx(apart)
    for name in ("age", "amount"):
        x, y = (
            np.sort(side[name].drop_nulls().cast(pl.Float64).to_numpy()) for side in (frame, after)
        )
        x, y = np.repeat(x, len(y)), np.repeat(y, len(x))
        assert lost[name]["metric"] == "rank-matched SSE / SST"
        assert lost[name]["loss"] == pytest.approx(((x - y) ** 2).mean() / x.var())


def test_classes_and_what_they_give_away(people):
    frame, _ = people

    done, found = run(stated(frame, "mondrian", k=5), frame, which=["classes"])

    after = done.release.data
    sizes = after.group_by(KEYS).len()["len"]
    (check,) = [one for one in done.release.checks if one.guarantee.name == "k-anonymity"]
    assert check.achieved == sizes.min()
    assert found.of("average class size")[0].value == pytest.approx(ROWS / sizes.len())
    stars = after.select(pl.all_horizontal(pl.col(KEYS) == "*")).to_series().fill_null(value=False)
    assert not stars.any()
    assert found.of("discernibility")[0].value == (sizes.cast(pl.Int64) ** 2).sum()
    for name in ("amount", "secret"):
        alike = after.group_by(KEYS).agg(pl.col(name).n_unique().alias("values"), pl.len())
        alike = alike.filter(pl.col("values") == 1)
        told = done.figures["homogeneous"][name]
        assert told == {"classes": alike.height, "rows": alike["len"].sum()}


def test_generalised_cells_and_granularity(people):
    """Penalty of a range: its width over that of the domain; of a set: (c - 1) / (d - 1)."""
    frame, _ = people
    policy = stated(frame, "mondrian", k=5, release_form="row-aligned")

    done, found = run(policy, frame, which=["classes"])

    after, lost = done.release.data, losses(done)
    left = {figure.subject: figure.value for figure in found.of("granularity")}
    for name in KEYS:
        before = frame[name].cast(pl.String)
        assert lost[name]["metric"] == "share of rows whose cell was generalised"
        assert lost[name]["loss"] == pytest.approx(before.ne_missing(after[name]).mean())
    low, high = frame["age"].min(), frame["age"].max() + 1
    widths = [_years(cell, high - low) for cell in after["age"]]
    assert left["age"] == pytest.approx(1 - np.mean(widths) / (high - low))
    for name in ("sex", "marital"):
        places = frame[name].n_unique()  # missing cells are one more
        cells = [_categories(cell, places) for cell in after[name]]
        assert left[name] == pytest.approx(1 - (np.mean(cells) - 1) / (places - 1))


def _years(cell, domain):
    """Years in a released cell; an exact one has no width, and one that tells nothing has all."""
    if cell is None or cell == "*":
        return domain
    ends = re.fullmatch(r"\[(\d+), ?(\d+)([\])])", cell)
    if ends is None:
        float(cell)
        return 0
    first, last = int(ends[1]), int(ends[2]) + (ends[3] == "]")
    return 0 if last - first == 1 else last - first


def _categories(cell, domain):
    if cell is None:
        return 1
    if cell == "*":
        return domain
    return len(re.findall(r"[^{},|]+", cell))


def test_guesses_of_naive_bayes_baseline_and_control(people):
    """With nominal keys alone, from the counts: P(v) and P(key | v), one unknown record added."""
    frame, others = people
    policy = stated(frame, "mdav", k=3, keys=["sex", "marital"],
                    columns=["sex", "marital"], release_form="row-aligned")  # fmt: skip

    done, found = run(policy, frame, others, which=["naive Bayes"])

    (figure,) = found.of("naive Bayes")
    after = done.release.data.filter(pl.col("secret").is_not_null())
    known = [side.filter(pl.col("secret").is_not_null()) for side in (frame, others)]
    for side, rate in zip(known, (figure.value, figure.control), strict=True):
        pairs = side.select("sex", "marital").unique().rows()
        guesses = {
            pair: _guess(after, frame, others, dict(zip(("sex", "marital"), pair, strict=True)))
            for pair in pairs
        }
        rows = side.select("sex", "marital", "secret").rows()
        right = [guesses[sex, marital] == secret for sex, marital, secret in rows]
        assert rate.value == pytest.approx(np.mean(right))
    most = known[0]["secret"].value_counts()["count"].max()
    assert figure.baseline.value == pytest.approx(most / known[0].height)


def _guess(after, frame, others, person):
    """The value with the largest P(v) times the product of P(cell | v); the first of equals."""
    values = sorted(after["secret"].unique())
    best, belief = None, -1.0
    for value in values:
        own = after.filter(pl.col("secret") == value)
        chance = own.height / after.height
        for name in ("sex", "marital"):
            places = len({*frame[name].drop_nulls(), *others[name].drop_nulls()})
            missing = frame[name].null_count() > 0
            if person[name] is None and not missing:
                continue  # A cell that the original never has tells nothing.
            hits = own.filter(pl.col(name).eq_missing(pl.lit(person[name], pl.String))).height
            chance *= (hits + 1 / (places + missing)) / (own.height + 1)
        if chance > belief * (1 + 1e-9):
            best, belief = value, chance
    return best


def test_links_of_the_nearest_row(people):
    """Distance: numbers in standard deviations, categories 1 if they differ; ties share the hit."""
    frame, _ = people
    frame = frame.drop_nulls()
    policy = stated(frame, "mdav", k=3, columns=KEYS, release_form="row-aligned")

    done, found = run(policy, frame, which=["record linkage"])

    after = done.release.data
    ages = [side["age"].cast(pl.Float64).to_numpy() for side in (frame, after)]
    apart = ((ages[0][:, None] - ages[1][None, :]) / ages[0].std()) ** 2
    for name in ("sex", "marital"):
        mine, theirs = (side[name].cast(pl.String).to_numpy() for side in (frame, after))
        apart += mine[:, None] != theirs[None, :]
    near = np.isclose(apart, apart.min(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
    hits = np.diag(near) / near.sum(axis=1)
    (figure,) = found.of("record linkage")
    assert figure.value.value == pytest.approx(hits.mean())
    assert figure.baseline.value == pytest.approx(1 / frame.height)


def test_inference_from_the_nearest_row(people):
    """With one key that is released as it is, the guess is a random row's of the same key.

    The mean of 240 guesses leaves its expectation by 0.19 with probability below
    2 exp(-2 240 0.19^2), 6e-8; of those who have no such row anything may come.
    """
    frame, others = people
    policy = stated(frame, "individual-ranking", k=2, keys=["marital"], columns=["amount"],
                    release_form="row-aligned")  # fmt: skip

    done, found = run(policy, frame, others, which=["inference"])

    (figure,) = [one for one in found.of("inference") if one.subject == "secret"]
    told = done.release.data.select("marital", "secret").rows()
    for side, rate in ((frame, figure.value), (others, figure.control)):
        chances = []
        for row in side.to_dicts():
            alike = [secret for key, secret in told if key == row["marital"]]
            chances.append(np.mean([secret == row["secret"] for secret in alike] or [np.nan]))
        assert rate.value == pytest.approx(np.nanmean(chances), abs=0.19)
    most = frame["secret"].drop_nulls().value_counts()["count"].max()
    assert figure.baseline.value >= most / frame["secret"].drop_nulls().len() - 1e-12

"""Evaluate releases end to end: what attacks find, what analysts keep, what is reported."""

import json
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import sample
from shoal.core import Estimate
from shoal.errors import InputError
from shoal.evaluation import disclosure_risk
from shoal.evaluation.evaluate import Part
from shoal.metrics.attacks.result import DIFFERENCE
from shoal.report import html

CITIES = ["a", "b", "c", "d"]
ILLS = ["flu", "cold", "none"]


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, n).round(3)
    city = rng.integers(0, 4, n)
    ill = np.where(rng.random(n) < 0.7, (age // 10 + city).astype(int) % 3, rng.integers(0, 3, n))
    income = 1000 * age + rng.normal(0, 5000, n)
    return pl.DataFrame(
        {
            "age": age,
            "city": [CITIES[c] for c in city],
            "income": income.round(),
            "tax": (income * rng.uniform(0.1, 0.4, n)).round(),
            "ill": [ILLS[i] for i in ill],
        }
    )


def policy(**evaluate):
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]},
            "city": {"role": "quasi-identifier", "kind": "nominal", "categories": CITIES},
            "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 90_000]},
            "tax": {"role": "confidential", "kind": "numeric", "bounds": [0, 90_000]},
            "ill": {"role": "confidential", "kind": "nominal", "categories": ILLS},
        },
        "protect": {"method": "mondrian", "k": 10},
        "evaluate": evaluate,
    }


@pytest.fixture(scope="module")
def original():
    return people(1500, 1)


@pytest.fixture(scope="module")
def control():
    return people(1500, 2)


def one(found, measure):
    return found.of(measure)[0]


def test_linear_algebra_has_one_thread_while_figures_are_computed(original):
    """More of them spin while they wait for each other, and a figure could follow their number."""
    pools = pytest.importorskip("threadpoolctl")
    seen = []

    def watch(stage, _done, _total):
        if stage.startswith("evaluating"):
            seen.extend(pool["num_threads"] for pool in pools.threadpool_info())

    with pools.threadpool_limits(2):
        shoal.evaluate(original, original, policy(), which=["propensity"], progress=watch)

    assert set(seen) == {1}


def test_the_raw_table_gives_everybody_away(original, control):
    found = shoal.evaluate(original, original, policy(), control=control, only="risk", aligned=True)

    assert one(found, "record linkage").point > 0.95
    assert one(found, "linkability").point > 0.9
    assert one(found, "closeness").point > 0.95
    assert one(found, "copies").point == 1.0
    assert one(found, "singling out").value.low > one(found, "singling out").control.high


def test_other_people_of_the_same_population_give_nobody_away(original, control):
    """An independent resample is at the control.

    Each interval misses with 0.05 at most; the bands below are three times as wide, so that a
    false alarm of the six comparisons has probability below 1e-6 by the normal tail.
    """
    resample = people(1500, 3)

    found = shoal.evaluate(original, resample, policy(), control=control, only=Part.RISK)

    for name in ("naive Bayes", "gradient boosting", "linkability", "inference"):
        for figure in found.of(name):
            wide = 3 * (figure.value.high - figure.value.low)
            assert abs(figure.point - figure.control.value) <= wide + 0.01, name
    assert abs(one(found, "closeness").point - 0.5) < 0.1


def test_a_confidential_number_is_guessed_by_boosting_too(original, control):
    """Where tax follows age, the release tells it of anybody; where it is constant, of nobody."""
    told = {**policy(), "evaluate": {"secret": "tax"}}
    tied = original.with_columns(tax=pl.col("age") * 100.0)
    others = control.with_columns(tax=pl.col("age") * 100.0)

    followed = shoal.evaluate(tied, tied, told, control=others, only="risk")
    hidden = shoal.evaluate(
        tied, tied.with_columns(tax=pl.lit(4000.0)), told, control=others, only="risk"
    )

    found = one(followed, "gradient boosting")
    assert found.subject == "tax"
    assert "to a tenth of its standard deviation" in found.sentence
    assert found.value.low > found.baseline.high
    assert found.control.low > found.baseline.high
    assert one(hidden, "gradient boosting").value.high <= found.value.low
    assert any(line.startswith("naive Bayes: 'tax' has no categories") for line in followed.skipped)


def test_naive_bayes_is_smoothed_as_the_policy_says(original, control):
    """The paper's attacker, ours, and one who adds a thousand unknown records to each value."""
    asked = {"control": control, "only": "risk"}
    plain, default, flat = (
        one(
            shoal.evaluate(original, original, {**policy(), "evaluate": more}, **asked),
            "naive Bayes",
        )
        for more in ({"smoothing": 0}, {}, {"smoothing": 1000})
    )

    same = one(
        shoal.evaluate(original, original, {**policy(), "evaluate": {"smoothing": 1}}, **asked),
        "naive Bayes",
    )
    assert default.value == same.value
    assert plain.point >= flat.point
    assert plain.value != flat.value
    with pytest.raises(InputError, match="smoothing"):
        shoal.evaluate(original, original, {**policy(), "evaluate": {"smoothing": -1}})


def test_the_attacker_and_the_queries_are_those_that_the_policy_states(original, control):
    """Boxes of Mondrian: kernels differ; so many of the surest; queries over named columns."""
    release = shoal.protect(original, policy())

    def found(**stated):
        return shoal.evaluate(original, release, policy(**stated), control=control)

    even, middle, wide = (
        one(found(kernel=kernel, surest=7), "naive Bayes") for kernel in ("even", "middle", "wide")
    )
    assert len({even.value, middle.value, wide.value}) == 3
    asked = found(surest=7, query_columns=["age", "ill"], round_down=True)
    assert "Of the 7 people" in one(asked, "surest guesses").sentence
    assert [figure.subject for figure in asked.of("COUNT queries")] == ["age, ill"]
    assert "over half of the range of age, ill" in one(asked, "COUNT queries").sentence
    with pytest.raises(InputError, match=r"\[evaluate\] query_columns: no column named 'agee'"):
        found(query_columns=["agee"])
    with pytest.raises(InputError, match="kernel"):
        found(kernel="round")


def test_a_faithful_copy_loses_nothing(original):
    found = shoal.evaluate(original, original, policy(), only="utility", aligned=True)

    losses = ("SSE / SST", "share changed", "IL1s", "rank-matched SSE / SST", "total variation")
    for name in (*losses, "total variation of pairs", "COUNT queries"):
        assert found.of(name)
        assert all(figure.point == pytest.approx(0, abs=1e-9) for figure in found.of(name)), name


def test_rules_groups_and_regressions_of_the_policy_are_measured(original, tmp_path):
    queries = tmp_path / "queries.toml"
    queries.write_text('[[query]]\nage = [20, 40]\ncity = "a"\n')
    release = original.with_columns(tax=pl.lit(80_000.0))
    stated = policy(
        rules=["tax <= income"],
        groups="city",
        regression="income ~ age + city",
        queries=str(queries),
        learn="ill",
    )

    found = shoal.evaluate(original, release, stated, only="utility", aligned=True)

    assert one(found, "edit rules").point > 0.99
    assert one(found, "edit rules").baseline == 0.0
    assert one(found, "loss by group").subject.endswith(": tax")
    assert one(found, "own regression").point == pytest.approx(1.0)
    assert one(found, "own queries").point == 0.0
    assert isinstance(one(found, "learning").value, Estimate)


def test_trees_are_measured_too(original):
    tree = {
        **policy(),
        "protect": {"method": "mondrian", "k": 10, "output": "tree", "count": "ill"},
    }
    release = shoal.protect(original, tree)

    found = shoal.evaluate(original, release, tree)

    assert one(found, "naive Bayes").value.low > one(found, "naive Bayes").baseline.value
    assert one(found, "COUNT queries").point < 0.5
    assert any("a tree has boxes" in text for text in found.skipped)


def test_a_release_object_says_whether_rows_correspond(original):
    release = shoal.protect(original, policy(), keep_order=True)

    found = shoal.evaluate(original, release, policy(), only="utility")

    assert found.of("SSE / SST")


def test_weights_count_where_both_tables_have_them(original):
    stated = policy()
    stated["columns"]["weight"] = {"role": "other", "kind": "numeric", "sampling_weight": True}
    weighted = original.with_columns(weight=pl.Series(np.arange(1, original.height + 1)))
    doubled = weighted.with_columns(weight=2 * pl.col("weight"))

    found = shoal.evaluate(weighted, doubled, stated, only="utility")

    assert one(found, "COUNT queries").point == pytest.approx(1.0)


def test_a_weighted_copy_teaches_as_much_as_the_original(original):
    weights = np.where(np.arange(original.height) % 7 == 0, 40.0, 0.5)
    table = original.with_columns(pl.Series("weight", weights))
    stated = policy()
    stated["columns"]["weight"] = {"role": "other", "kind": "numeric", "sampling_weight": True}

    learned = one(shoal.evaluate(table, table, stated, only="utility"), "learning")

    assert learned.value == learned.baseline


def test_figures_that_sampling_weights_move_say_so_and_no_others(original, tmp_path):
    """The same cells with other weights; total variation against its formula."""
    (tmp_path / "queries.toml").write_text("[[query]]\nincome = [20000, 40000]\n", "utf-8")
    stated = policy(groups="city", learn="tax", regression="income ~ age",
                    rules=["tax <= income"], queries=str(tmp_path / "queries.toml"))  # fmt: skip
    stated["columns"]["weight"] = {"role": "other", "kind": "numeric", "sampling_weight": True}
    stated["protect"]["release_form"] = "row-aligned"
    weights = 1.0 + original["age"].to_numpy() // 5 + 9 * (original["city"] == "a").to_numpy()
    tables = [original.with_columns(weight=pl.Series(w)) for w in (weights, np.ones(len(weights)))]
    mondrian = shoal.protect(tables[1], stated).data.drop("weight")
    released = mondrian.with_columns(income=pl.col("income").sort(), ill=pl.col("ill").sort())

    heavy, plain = (
        {
            (one.metric, one.subject): one
            for one in shoal.evaluate(
                table, released.with_columns(table["weight"]), stated, only="utility", aligned=True
            ).figures
        }
        for table in tables
    )

    said = {key[0] for key, one in heavy.items() if "by the sampling weights" in one.sentence}
    moved = {key[0] for key in heavy if str(heavy[key].value) != str(plain[key].value)}
    assert said == moved == {"total variation", "total variation of pairs", "COUNT queries",
                             "own queries", "granularity", "learning", "loss by group"}  # fmt: skip
    shares = [
        {ill: weights[(table["ill"] == ill).to_numpy()].sum() / weights.sum() for ill in ILLS}
        for table in (original, released)
    ]
    expected = sum(abs(shares[0][ill] - shares[1][ill]) for ill in ILLS) / 2
    assert heavy["total variation", "ill"].value == pytest.approx(expected)


def test_the_result_is_a_table_json_and_pictures_and_says_it_is_confidential(original, control):
    found = shoal.evaluate(original, original, policy(), control=control)

    frame = found.to_frame()
    facts = json.loads(found.to_json())
    page = html.evaluation_report(found.facts(), found.pictures, DIFFERENCE)

    assert frame.height == len(found.figures) == len(facts["figures"])
    assert "Confidential" in str(found.plot())
    assert page.count("<svg") == str(found.plot()).count("<svg") - 1
    assert facts["confidential"].startswith("CONFIDENTIAL")
    assert str(found).startswith("CONFIDENTIAL")
    assert DIFFERENCE in page


def test_the_same_seed_gives_the_same_figures(original, control):
    twice = [
        shoal.evaluate(original, original, policy(), control=control, seed=4) for _ in range(2)
    ]

    assert twice[0].facts() == twice[1].facts()


@pytest.mark.parametrize(
    "release",
    [
        pl.DataFrame({"age": [30], "city": ["a"], "income": [1.0], "tax": [1.0], "ill": ["flu"]}),
        people(50, 7).with_columns(pl.all().first()),
        people(50, 7).with_columns(age=None, city=None, ill=None, income=None, tax=None),
        people(50, 7).select("age"),
        people(50, 7).select("ill"),
        people(3, 7),
    ],
    ids=["one row", "constant", "all missing", "one number", "one category", "three rows"],
)
def test_odd_releases_are_measured_or_told(original, control, release):
    found = shoal.evaluate(original, release, policy(), control=control)

    assert found.figures
    assert all(text.endswith(".") for text in found.skipped)


@pytest.mark.parametrize(
    ("released", "sentence"),
    [
        (pl.DataFrame({"x": [1]}), "column"),
        (people(5, 1).clear(), "has no rows"),
    ],
)
def test_what_cannot_be_measured_is_told(original, released, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.evaluate(original, released, policy())


@pytest.mark.parametrize(
    ("records", "most", "drawn"),
    [(1500, 2000, 2000), (1_000_000, 2000, 1000), (10_000_000, 2000, 500), (10, 10_000, 10_000)],
)
def test_a_large_release_is_attacked_by_fewer_people(records, most, drawn):
    """People times released records stay within a billion, down to 500 people."""
    sides = SimpleNamespace(released=range(records))

    assert disclosure_risk._limit_people(sides, most) == drawn


@pytest.mark.parametrize("rows", [2_000, 2_001])
def test_what_was_sampled_is_said_where_something_was(rows):
    sides = SimpleNamespace(released=range(rows), places=range(rows), keys=[0])

    said = disclosure_risk.describe_sample(sides)

    if rows == 2_000:
        assert not said
    else:
        assert said.startswith("Of 2,001 people, a sample is attacked one by one, 2,000 in most")


def test_only_must_be_a_part(original):
    with pytest.raises(InputError, match="utility or risk"):
        shoal.evaluate(original, original, policy(), only="speed")


def test_dates_hierarchies_and_missing_cells_are_measured():
    frame = sample.load().head(400)
    stated = sample.folder() / "people.toml"
    release = shoal.protect(frame, stated)

    found = shoal.evaluate(frame, release, stated, control=sample.people(300, 9))

    assert {figure.part for figure in found.figures} == {Part.UTILITY, Part.RISK}


def test_days_are_numbers():
    days = pl.date_range(date(2000, 1, 1), date(2000, 3, 1), eager=True)
    frame = pl.DataFrame({"day": days, "ill": ["flu", "none"] * (days.len() // 2) + ["flu"]})
    stated = {
        "version": 1,
        "columns": {
            "day": {"role": "quasi-identifier", "kind": "date"},
            "ill": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": "mondrian", "k": 5},
    }

    found = shoal.evaluate(frame, shoal.protect(frame, stated), stated)

    assert one(found, "granularity").subject == "day"


def test_figures_do_not_depend_on_how_many_metrics_run_at_a_time(original, control):
    released = original.sample(fraction=1.0, shuffle=True, seed=1)

    one_, two = (
        shoal.evaluate(original, released, policy(), control=control, seed=3, jobs=jobs)
        for jobs in (1, 2)
    )

    assert one_.to_json() == two.to_json()
    assert one_.pictures == two.pictures

"""Released weights: means of classes, raked to public totals, covered by k-anonymity."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import analysis
from shoal.core import KAnonymity, Status
from shoal.engine.class_weights import rake
from shoal.errors import InputError
from shoal.pipeline.planning import plan
from shoal.publish.verify_folder import verify

POLICY = """
version = 1
one_row_per_person = true
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 120] }
region = { role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }
income = { role = "confidential", kind = "numeric" }
w = { role = "other", kind = "numeric", sampling_weight = true, class_mean = true }
[protect]
method = "mdav"
k = 5
[require]
k-anonymity = 5
"""
# Every row of a group has the most frequent region, or full-domain recoding leaves it as it is.
LEVELS = POLICY.replace(
    '"mdav"', '"full-domain"\nintervals = { age = [10, 20] }\nlevels = {region = 0}'
)
TOTALS = LEVELS.replace(
    "class_mean = true", "class_mean = true, totals = { region = { north = 9000, south = 6000 } }"
)
RISK = TOTALS + "individual-risk = 0.5\n"


def people(n=200, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "region": rng.choice(["north", "south"], n),
            "income": rng.integers(1000, 9000, n),
            "w": rng.uniform(20, 90, n),
        }
    )


def slowly(weights, margins, rounds):
    """Rake by loops, one margin after another."""
    weights = list(weights)
    for _ in range(rounds):
        for places, totals in margins:
            sums = [sum(w for w, at in zip(weights, places, strict=True) if at == place)
                    for place in range(len(totals))]  # fmt: skip
            weights = [w * totals[at] / sums[at] for w, at in zip(weights, places, strict=True)]
    return weights


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_raked_weights_add_up_and_are_those_of_loops(rows, columns, seed):
    rng = np.random.default_rng(seed)
    first, second = (axis.ravel() for axis in np.indices((rows, columns)))
    weights, target = rng.uniform(1, 9, rows * columns), rng.uniform(1, 9, rows * columns)
    margins = [(first, np.bincount(first, target)), (second, np.bincount(second, target))]

    raked = rake(weights, margins)

    for places, totals in margins:
        assert np.bincount(places, raked) == pytest.approx(totals, rel=1e-8)
    assert raked == pytest.approx(slowly(weights, margins, 400), rel=1e-6)
    # One factor for each row and one for each column: odds ratios stay.
    before, after = (np.log(w.reshape(rows, columns)) for w in (weights, raked))
    off = after - before
    assert off - off[:1] - off[:, :1] + off[0, 0] == pytest.approx(0, abs=1e-9)


def test_raked_weights_are_those_of_the_fit_of_r():
    """R 4.2.2: loglin(outer(rows, columns) / 1000, list(1, 2), start, fit = TRUE, eps = 1e-12)."""
    weights = [[40, 30, 20, 10], [35, 50, 100, 75], [30, 80, 70, 120], [20, 30, 40, 50]]
    first, second = (axis.ravel() for axis in np.indices((4, 4)))
    margins = [
        (first, np.array([150.0, 300, 400, 150])),
        (second, np.array([200.0, 300, 400, 100])),
    ]

    raked = rake(np.array(weights, dtype=float).ravel(), margins)

    assert raked.reshape(4, 4) == pytest.approx(np.array([
        [64.55851, 46.23246, 35.38430, 3.824732],
        [49.96792, 68.15935, 156.49855, 25.374180],
        [56.72194, 144.42823, 145.08248, 53.767349],
        [28.75163, 41.17996, 63.03467, 17.033738],
    ]), rel=2e-7)  # fmt: skip


def test_contradictory_totals_are_refused():
    places = np.array([0, 1])
    with pytest.raises(InputError, match="The totals of the sampling weights contradict each oth"):
        rake(np.ones(2), [(places, np.array([1.0, 3.0])), (places, np.array([2.0, 2.0]))])


def test_every_row_of_a_class_has_its_mean_weight_and_k_covers_it():
    table = people()
    release = shoal.protect(table, POLICY, keep_order=True)

    classes = release.data.with_columns(original=table["w"]).group_by("age", "region")
    for _, rows in classes:
        assert rows.height >= 5
        assert rows["w"].n_unique() == 1
        assert rows["w"].sum() == pytest.approx(rows["original"].sum())
    (claim,) = release.claims
    assert claim.guarantee == KAnonymity(5, ("age", "region", "w"))
    assert claim.status is Status.PROVED
    assert all(check.holds for check in release.checks)
    assert {"age", "region", "w"} == set(release.checks[-1].guarantee.columns)
    # 200 weights told everybody apart; now each is shared by five people.
    assert table["w"].n_unique() == 200
    assert release.data["w"].value_counts()["count"].min() >= 5


def test_raked_weights_add_up_to_public_totals_and_stay_constant_in_a_class(tmp_path):
    release = shoal.protect(people(), RISK)

    sums = dict(release.data.group_by("region").agg(pl.sum("w")).rows())
    assert sums == pytest.approx({"north": 9000, "south": 6000})
    assert all(rows["w"].n_unique() == 1 for _, rows in release.data.group_by("age", "region"))
    folder = release.write(tmp_path / "out", file_format="csv")
    # The risk is that by the released weights, so it can be recomputed from them.
    assert verify(folder).holds
    total = analysis.total(folder, "income")
    assert "by the released weights" in str(total)
    assert "what goes with the weight inside a class" in str(total)


def test_verify_refuses_weights_that_miss_their_totals(tmp_path):
    from tests.publish.test_verify_folder import edit, record  # noqa: PLC0415

    folder = shoal.protect(people(), TOTALS).write(tmp_path / "out")
    table = pl.read_parquet(folder / "release.parquet").with_columns(pl.col("w") * 1.01)
    table.write_parquet(folder / "release.parquet")
    record(folder, "release.parquet")
    edit(folder, lambda _: None)

    assert "does not add up to the totals of region" in str(verify(folder)["manifest"])


REFUSED = {
    "noise": (
        POLICY.replace('"mdav"\nk = 5', '"laplace"\nepsilon = 1').partition("[require]")[0]
        .replace('kind = "numeric", s', 'kind = "numeric", bounds = [0, 90], s')
        .replace('kind = "numeric" }', 'kind = "numeric", bounds = [0, 9000] }'),
        "expected a method that promises k-anonymity of all",
    ),
    "boxes": (
        POLICY.replace('"mdav"', '"mondrian"\noutput = "tree"'),
        "expected a method that promises k-anonymity of all",
    ),
    "a missing cell that agrees with all": (
        POLICY.replace('"mdav"', '"local-suppression"\nmissing = "matches-anything"'),
        "expected a method that promises k-anonymity of all",
    ),
    "one column at a time": (
        POLICY.replace('"mdav"', '"individual-ranking"').partition("[require]")[0],
        "expected a method that promises k-anonymity of all",
    ),
    "protected": (
        POLICY.replace("k = 5\n", 'k = 5\ncolumns = ["age", "region", "w"]\n', 1),
        "and the weight is one of them",
    ),
    "totals of another column": (
        POLICY.replace("class_mean = true", "class_mean = true, totals = { income = { 1 = 2 } }"),
        "'income' is not one of age, region",
    ),
    "no weight": (
        POLICY.replace("sampling_weight = true, ", ""),
        "expected 'class_mean' beside 'sampling_weight = true'",
    ),
    "a rule": (
        POLICY + '[constraints]\nrules = ["w <= income"]\n', "expected no rule about the weight",
    ),
    "bounds": (
        TOTALS.replace("class_mean = true", "class_mean = true, bounds = [0, 90]"),
        "expected no 'bounds' beside 'totals'",
    ),
    "totals alone": (
        POLICY.replace("class_mean = true", "totals = { region = { north = 1 } }"),
        "'totals' beside both",
    ),
    "totals of two populations": (
        POLICY.replace("class_mean = true", "class_mean = true, totals = { region = { north = 1 }, "
                       "age = { 20 = 2 } }"),
        "expected totals that add up to the same population",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_weight_that_classes_do_not_cover_is_refused(policy, sentence):
    with pytest.raises(InputError) as refused:
        plan(policy)

    assert sentence in str(refused.value)


def test_a_weight_is_refused_on_spark():
    with pytest.raises(InputError, match="on one machine and without noise"):
        plan(POLICY, distributed=True)


@pytest.mark.parametrize("change", [
    {"w": None}, {"w": -1.0},
], ids=str)  # fmt: skip
def test_a_missing_or_negative_weight_is_refused(change):
    table = people().with_columns(
        w=pl.when(pl.int_range(200) == 3).then(change["w"]).otherwise(pl.col("w"))
    )

    with pytest.raises(InputError, match="is the sampling weight, but 1 row has none, or a neg"):
        shoal.protect(table, POLICY)


RAKED = {
    "a range": LEVELS.replace(
        "class_mean = true", "class_mean = true, totals = { age = { 20 = 9000, 30 = 6000 } }"
    ),
    "a value that nobody has": TOTALS.replace("south = 6000", "south = 5000, west = 1000"),
    "a value without a total": TOTALS.replace(", south = 6000", ""),
}


@pytest.mark.parametrize("policy", RAKED.values(), ids=RAKED)
def test_values_that_cannot_be_raked_are_refused(policy):
    with pytest.raises(InputError, match="expected one for each released value of"):
        shoal.protect(people(), policy)

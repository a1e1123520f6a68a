"""Risks that a policy limits: recounted by hand, refused where they have no meaning."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.core import Check, Release, RiskMeasure
from shoal.engine.check_table import check
from shoal.errors import ClaimViolationError, InputError
from shoal.metrics.risk_measures import MEASURES
from shoal.policy import load
from shoal.publish.protect_file import protect as write_release

COLUMNS = {
    "household": {"role": "identifier", "household": True},
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 120]},
    "region": {
        "role": "quasi-identifier", "kind": "nominal", "categories": ["n", "s", "w"],
    },
    "weight": {"role": "other", "kind": "numeric", "sampling_weight": True},
}  # fmt: skip


def survey(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame({
        "household": np.arange(rows) // 3,
        "age": rng.integers(0, 90, rows),
        "region": rng.choice(["n", "s", "w"], rows),
        "weight": rng.integers(5, 40, rows),
    })  # fmt: skip


def stated(
    require: dict[str, object], method: str = "mdav", **protect: object
) -> dict[str, object]:
    protect = protect or {"k": 5, "aggregate": "mean"}
    return {
        "version": 1,
        "columns": COLUMNS,
        "protect": {"method": method, **({"k": 5} if "k" not in protect else {}), **protect},
        "require": require,
    }


def only(release: Release, name: str) -> Check:
    return next(check for check in release.checks if check.guarantee.name == name)


def test_every_measure_is_a_key_of_the_policy() -> None:
    assert set(MEASURES) == set(RiskMeasure)
    require = {str(name): 5 if name.counts else 0.5 for name in RiskMeasure}
    limits = load(stated(require, k=5)).required
    assert [str(limit.measure) for limit in limits] == list(map(str, RiskMeasure))
    assert all(limit.household == "household" for limit in limits if "household" in limit.name)


def test_k_is_enough_for_the_individual_risk_and_the_check_is_conditional() -> None:
    release = shoal.protect(survey(), stated({"individual-risk": 0.2}, k=5))
    check = only(release, "individual-risk")
    assert check.holds
    assert 0 < check.achieved < 0.2
    assert "weights are right" in check.remarks["assumes"]
    assert not any(claim.guarantee.name == "individual-risk" for claim in release.claims)


def test_a_risk_beyond_its_limit_stops_the_release_and_says_which_k_would_do() -> None:
    with pytest.raises(ClaimViolationError, match="With k = 10000 it is kept"):
        shoal.protect(survey(), stated({"individual-risk": 0.0001}, k=5))


def test_households_are_counted_and_not_their_members() -> None:
    table = survey(300)
    release = shoal.protect(table, stated({"household-k": 2}, k=4), keep_order=True)
    behind: dict[tuple[object, ...], set[int]] = {}
    for cells, home in zip(release.data.select("age", "region").rows(), table["household"],
                           strict=True):  # fmt: skip
        behind.setdefault(cells, set()).add(home)
    check = only(release, "household-k")
    assert check.achieved == min(map(len, behind.values()))
    assert "assumes" not in check.remarks  # a count of the table itself


def test_members_of_one_household_do_not_hide_each_other() -> None:
    table = pl.DataFrame({
        "household": [1] * 5 + [2, 3, 4, 5, 6],
        "age": [30] * 5 + [60] * 5, "region": ["n"] * 10, "weight": [10] * 10,
    })  # fmt: skip
    with pytest.raises(ClaimViolationError, match="household-k of at least 2"):
        shoal.protect(table, stated({"household-k": 2}, k=5))


def test_a_row_without_a_household_is_one_of_its_own() -> None:
    table = survey(30).with_columns(
        household=pl.lit(None, pl.Int64), age=pl.lit(40), region=pl.lit("n")
    )
    policy = stated({"household-k": 30}, k=5)
    policy["release"] = {"accept_constant": ["age", "region"]}
    assert only(shoal.protect(table, policy), "household-k").achieved == 30


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(9)
    frame = pl.DataFrame({
        "age": rng.integers(0, 90, 4000), "region": rng.choice(["n", "s", "w"], 4000),
    })  # fmt: skip
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_people_of_the_population_agree_with_a_generalised_row(people: Path) -> None:
    policy = stated(
        {"k-map": 3, "population": str(people)}, method="mondrian", output="intervals", k=5
    )
    release = shoal.protect(survey(), policy)
    population = pl.read_csv(people)
    check = only(release, "k-map")
    worst = 10**9
    for age, region in release.data.select("age", "region").unique().rows():
        low, high = (float(end) for end in str(age).strip("[]()").split(","))
        closed = str(age).endswith("]")
        regions = set(str(region).strip("{}").replace(" ", "").split(","))
        inside = population.filter(
            (pl.col("age") >= low)
            & ((pl.col("age") < high) | (closed & (pl.col("age") == high)))
            & pl.col("region").is_in(regions)
        )
        worst = min(worst, inside.height)
    assert check.achieved == worst
    assert "population file" in check.remarks["assumes"]


def test_a_value_that_nobody_has_agrees_with_nobody(people: Path) -> None:
    table = pl.DataFrame({"age": [100] * 5, "region": ["n"] * 5, "weight": [1] * 5})
    policy = stated({"k-map": 1 + 1, "population": str(people)}, k=5)
    (result,) = check(table, policy)
    assert not result.holds
    assert result.achieved == 0
    assert result.remarks["rows_that_nobody_agrees_with"] == 5


def test_an_unknown_category_agrees_with_nobody_and_a_missing_cell_with_everybody(
    tmp_path: Path,
) -> None:
    columns = {"job": {"role": "quasi-identifier", "kind": "nominal"}}
    pl.DataFrame({"job": ["a"] * 7 + ["b"] * 2}).write_csv(tmp_path / "p.csv")
    policy = {
        "version": 1, "columns": columns, "protect": {"method": "mdav", "k": 2},
        "require": {"k-map": 2, "population": str(tmp_path / "p.csv")},
    }  # fmt: skip
    achieved = {
        cell: check(pl.DataFrame({"job": [cell, cell]}), policy)[0].achieved
        for cell in ("a", "b", "c", None, "*")
    }
    assert achieved == {"a": 7, "b": 2, "c": 0, None: 9, "*": 9}


def test_without_a_population_people_are_estimated_by_the_weights() -> None:
    table = survey(60).with_columns(age=pl.lit(40))
    (result,) = check(table.drop("household"), stated({"k-map": 5}, k=5))
    expected = table.group_by("region").agg(pl.col("weight").sum())["weight"].min()
    assert result.achieved == expected
    assert "weights sum up" in result.remarks["assumes"]


def test_suda_is_checked_and_says_its_fraction() -> None:
    table = survey(200)
    (result,) = check(table.drop("household"), stated({"suda": 0.9}, k=5))
    assert 0 < result.achieved <= 1
    share = 200 / table["weight"].sum()
    assert f"a share of {share:.3g} of the population" in result.remarks["assumes"]
    alone = Counter(table.select("age", "region").rows())
    assert result.witness["size"] <= sum(n == 1 for n in alone.values())


@pytest.mark.parametrize("require", [{"household-k": 2}, {"household-risk": 0.5}])
def test_a_table_without_households_cannot_be_checked_for_them(require: dict[str, float]) -> None:
    with pytest.raises(InputError, match="needs the column 'household'"):
        check(survey(20).drop("household"), stated(require, k=5))


def test_rows_with_noise_have_no_risk_to_limit() -> None:
    columns = {name: COLUMNS[name] for name in ("age", "region")}
    policy = {
        "version": 1, "columns": columns,
        "protect": {"method": "maxent", "epsilon": 1}, "require": {"suda": 0.1},
    }  # fmt: skip
    with pytest.raises(InputError, match="rows that stand for people"):
        shoal.plan(policy)


@pytest.mark.parametrize(
    ("columns", "require", "message"),
    [
        (["age"], {"household-k": 2}, "numbers the households"),
        (["age"], {"k-map": 2}, "expected population"),
        (["age", "weight"], {"suda": 0.1, "population": "x.csv"}, "beside 'k-map'"),
    ],
)
def test_what_a_measure_needs_is_asked_for(
    columns: list[str], require: dict[str, object], message: str
) -> None:
    policy = {
        "version": 1, "columns": {name: COLUMNS[name] for name in columns},
        "protect": {"method": "mdav", "k": 3}, "require": require,
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        load(policy)


def test_a_population_without_a_quasi_identifier_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"age": [1, 2]}).write_csv(tmp_path / "p.csv")
    policy = stated({"k-map": 2, "population": str(tmp_path / "p.csv")}, k=5)
    with pytest.raises(InputError, match="lacks the column 'region'"):
        check(survey(20).drop("household"), policy)


def test_inspect_shows_every_risk_that_the_table_has_what_it_takes_for(people: Path) -> None:
    table = survey(200)
    alone = shoal.inspect(table, stated({}, k=5))
    assert [str(risk.measure) for risk in alone.risks] == list(map(str, RiskMeasure))
    matched = shoal.inspect(table, stated({}, k=5), population=people)
    by_name = {str(risk.measure): risk for risk in matched.risks}
    population = Counter(pl.read_csv(people).rows())
    behind = [population[cells] for cells in table.select("age", "region").rows()]
    assert by_name["k-map"].worst == min(behind)
    assert by_name["k-map"].mean == pytest.approx(np.mean(behind))
    assert set(by_name["suda"].contributions) == {"age", "region"}
    assert "risk: k-map: smallest" in str(matched)
    assert matched.facts()["risks"][0]["measure"] == "individual-risk"
    bare = shoal.inspect(table.select("age", "region"), {
        **stated({}, k=5), "columns": {name: COLUMNS[name] for name in ("age", "region")},
    })  # fmt: skip
    assert [str(risk.measure) for risk in bare.risks] == ["individual-risk", "suda"]


def test_the_riskiest_row_decides() -> None:
    table = pl.DataFrame({
        "age": [30] * 9 + [60], "region": ["n"] * 10, "weight": [1] * 10,
    })  # fmt: skip
    (result,) = check(table, stated({"individual-risk": 0.5}, k=5))
    assert not result.holds
    assert result.achieved == 1
    assert result.witness == {"size": 1, "rows": [10]}


def test_noise_has_no_risk_to_limit_in_any_form() -> None:
    columns = {"age": COLUMNS["age"], "region": COLUMNS["region"]}
    policy = {
        "version": 1, "columns": columns, "require": {"individual-risk": 0.1},
        "protect": {"method": "mdav-laplace", "k": 5, "epsilon": 1, "columns": ["age"]},
    }  # fmt: skip
    with pytest.raises(InputError, match="a release with noise"):
        shoal.plan(policy)


def test_verify_recomputes_a_risk_or_says_why_not(tmp_path: Path, people: Path) -> None:
    survey().write_csv(tmp_path / "survey.csv")
    require = {"individual-risk": 0.5, "household-k": 2, "k-map": 2, "population": str(people)}
    policy = stated(require, method="mondrian", output="intervals", k=5)
    write_release(tmp_path / "survey.csv", load(policy), tmp_path / "out")
    verified = shoal.verify(tmp_path / "out")
    assert verified.holds
    text = str(verified)
    assert "needs the column 'household', which the table does not have" in text
    assert "which is not published" in text


def test_a_plan_says_what_households_are_used_for() -> None:
    notes = " ".join(shoal.plan(stated({"household-k": 2}, k=5)).notes)
    assert "is not used but for household-k: a group may hold several members" in notes

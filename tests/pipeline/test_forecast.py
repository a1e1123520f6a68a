"""What a plan says before any data is read."""

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.core import Kind, Price
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.records import HeldColumns
from shoal.methods import REGISTRY
from shoal.pipeline import forecast, planning
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent_plan
from shoal.synthesis.maxent.measure import measure_one_way
from shoal.synthesis.maxent.plan import foresee_errors

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99], "step": 1},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "town": {"role": "confidential", "kind": "nominal", "categories": list("abcdef")},
}
DRAWN = {
    "version": 1,
    "one_row_per_person": True,
    "columns": COLUMNS,
    "protect": {"method": "auto", "epsilon": 1},
}
GROUPED = {"version": 1, "columns": COLUMNS, "protect": {"method": "mdav", "k": 5}}


def values(planned):
    return {one.what: one.value for one in planned.expected}


def test_a_one_way_marginal_has_the_error_that_its_formula_expects():
    """The mean of 6,000 absolute Laplace draws is off by more than 8% with probability < 1e-9."""
    domains = [Domain(name, Kind.NOMINAL, 60) for name in "abc"]
    rng, n, epsilon = np.random.default_rng(0), 5_000, Fraction(1)
    plan = maxent_plan(domains, n=n, epsilon=epsilon)
    expected, _ = foresee_errors(domains, plan, n=n, price=Price(epsilon))
    codes = [rng.integers(0, 60, n) for _ in domains]
    exact = [np.bincount(column, minlength=60) for column in codes]

    off = []
    for seed in range(34):
        for j, domain in enumerate(domains):
            measured = measure_one_way(
                HeldColumns(codes),
                j,
                domain,
                price=Price(plan.one_way_share * epsilon / 3),
                noise=SeededNoise(seed),
            )
            off.append(np.abs(measured.counts - exact[j]).mean())

    assert np.mean(off) / n == pytest.approx(np.mean(expected), rel=0.08)


def test_more_rows_and_more_epsilon_leave_less_error():
    """With n epsilon from 350 a pair on, pairs take more of it, and one-way marginals less."""
    few, many = (values(shoal.plan(DRAWN, rows=rows)) for rows in (1_000, 100_000))
    dear = values(shoal.plan({**DRAWN, "protect": {"method": "auto", "epsilon": 4}}, rows=1_000))

    for name in ("one_way.age", "one_way.sex", "one_way.town"):
        assert min(few[name], dear[name]) > many[name] > 0
    assert few["groups"] < dear["groups"]
    assert many["n_epsilon"] == pytest.approx(100_000 / 3)
    assert 0 < many["two_way"] <= 1


def test_a_plan_says_how_far_noise_may_move_a_mean_given_its_bounds():
    """Wealth with bounds far beyond its tail: the mean is lost, and the plan says so in numbers."""
    rng = np.random.default_rng(1)
    wealth = np.exp(rng.normal(10, 1, 4_000))
    said, off = [], []
    for bound in (10**6, 10**9):
        column = {"role": "confidential", "kind": "numeric", "bounds": [0, bound]}
        policy = {**DRAWN, "columns": COLUMNS | {"wealth": column | {"keep_missing": False}}}
        said.append(values(shoal.plan(policy, rows=4_000))["mean.wealth"])
        others = {"age": [30] * 4_000, "sex": ["f"] * 4_000, "town": ["a"] * 4_000}
        table = pl.DataFrame({**others, "wealth": wealth})
        means = [
            shoal.protect(table, policy, noise=SeededNoise(seed)).data["wealth"].mean()
            for seed in (1, 2, 3, 4)
        ]
        off.append(np.abs(np.array(means) - wealth.mean()).mean())

    assert said[1] == pytest.approx(1000 * said[0])
    assert said[1] > 10 * wealth.mean()
    assert all(mean / 3 < moved < 3 * mean for moved, mean in zip(off, said, strict=True))


def test_a_plan_says_all_assumptions_and_which_line_settles_one():
    text = repr(shoal.plan(GROUPED, rows=1_000))

    assert text.startswith("Plan by mdav of 1,000 rows, linked-shuffled; no data was read\n")
    assert "  claim  conditional 5-anonymity of age + sex\n" in text
    assert "  assumes  an attacker knows no more than the columns named here\n" in text
    assert "  assumes  each person has one row (state one_row_per_person = true, or" in text
    assert "  expect  At most 200 groups of k = 5 or more records.\n" in text
    assert "  expect  Those who lack a cell get the value of their group; if half" in text
    assert "  time  about " in text
    assert "  memory  about 0.2 GB" in text
    assert "only" not in text.rpartition("memory")[2]


def test_categories_that_were_copied_from_the_data_are_settled_by_a_line_too():
    observed = {**COLUMNS, "sex": {**COLUMNS["sex"], "observed": True}}

    text = repr(shoal.plan({**DRAWN, "columns": observed}))

    assert "copied from the data, are public (if they are public, remove observed = true)" in text
    assert "expect" not in text


@pytest.mark.parametrize("name", REGISTRY)
def test_every_method_has_a_time_and_a_memory_that_grow_with_its_rows(name):
    offered = planning.offer(shoal.load_policy({**GROUPED, "columns": COLUMNS}), REGISTRY[name])
    if offered.plan is None:
        return
    few, many = (planning.replace(offered.plan, rows=rows) for rows in (100, 10**6))

    assert 0 < forecast.seconds(few) < forecast.seconds(many)
    assert 1e8 < forecast.peak_bytes(few) < forecast.peak_bytes(many) < 3e9


def test_the_command_prints_the_plan_and_its_facts(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("""
version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
[protect]
method = "mdav"
k = 5
""")

    text = CliRunner().invoke(app, ["plan", "--policy", str(path), "--rows", "50"])
    facts = json.loads(
        CliRunner().invoke(app, ["plan", "--policy", str(path), "--rows", "50", "--json"]).stdout
    )
    few = CliRunner().invoke(app, ["plan", "--policy", str(path), "--rows", "0"])

    assert text.exit_code == 0
    assert "At most 10 groups" in text.stdout
    assert facts["expected"][0] == {
        "what": "groups", "value": 10, "text": "At most 10 groups of k = 5 or more records.",
    }  # fmt: skip
    assert facts["claims"][0]["assumes"]
    assert facts["peak_bytes"] > 1e8
    assert few.exit_code == 2

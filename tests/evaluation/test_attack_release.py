"""What attacks gain on people in the table over people who are held out, and what would help."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import policy as policies
from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.core import Estimate, Status
from shoal.evaluation import inspect_table
from shoal.evaluation.inspect_table import MOST_GAIN, AttackGain
from shoal.pipeline import booking

SEX = {"role": "quasi-identifier", "kind": "nominal"}
POLICY = {
    "version": 1,
    "columns": {
        "sex": SEX,
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "pay": {"role": "confidential", "kind": "numeric"},
        "score": {"role": "confidential", "kind": "numeric", "step": 50},
    },
    "protect": {"method": "mondrian", "k": 5},
}


def people(rows=600):
    rng = np.random.default_rng(5)
    return pl.DataFrame({
        "sex": rng.choice(["m", "f"], rows),
        "age": rng.integers(20, 70, rows),
        "pay": np.round(np.exp(rng.normal(10, 0.7, rows)), 2),
        "score": rng.integers(0, 100, rows),
    })  # fmt: skip


def attacked(policy, **more):
    return {
        gain.name: gain for gain in shoal.inspect(people(), policy, attacks=True, **more).attacks
    }


def test_a_release_with_exact_pay_does_not_pass_and_the_column_that_does_it_is_named():
    gains = attacked(POLICY)

    failed = gains["singling out, several columns"]
    assert not failed.passes
    assert failed.gain.low > 0
    assert "Without 'pay' the gain would be" in failed.helps
    assert "does not pass" in str(failed)


def test_a_release_passes_once_the_column_is_coarse():
    columns = POLICY["columns"] | {"pay": POLICY["columns"]["pay"] | {
        "step": 50_000, "top_code": 50_000,
    }}  # fmt: skip

    gains = attacked(POLICY | {"columns": columns})

    assert gains
    assert all(gain.passes and not gain.helps for gain in gains.values())


def test_a_gain_passes_up_to_the_stated_limit():
    def gain(value):
        return AttackGain("x, y", value, 0.0, Estimate(value, value, value, 0.95))

    assert gain(MOST_GAIN).passes
    assert not gain(MOST_GAIN + 0.001).passes
    assert "at most 9 wanted" in str(gain(0.5))


@given(st.lists(st.integers(0, 90), min_size=900, max_size=900))
def test_nobody_is_both_in_the_table_and_held_out(numbers):
    frame = pl.DataFrame({"who": [*numbers, *range(91)]})
    policy = policies.load({
        "version": 1,
        "columns": {"who": {"role": "identifier", "privacy_unit": True}, "sex": SEX},
        "protect": {"method": "mondrian", "k": 5},
    })  # fmt: skip

    inside, outside = inspect_table._hold_out(frame, policy)

    assert inside.height + outside.height == frame.height
    assert not set(inside["who"]) & set(outside["who"])
    assert outside["who"].n_unique() == 91 // inspect_table.HELD_OUT


def test_an_epsilon_and_few_persons_are_not_attacked_and_it_is_said():
    few = shoal.inspect(people(20), POLICY, attacks=True)
    bounds = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]}
    noisy = {
        "version": 1,
        "columns": dict.fromkeys(("age", "score"), bounds),
        "protect": {"method": "auto", "epsilon": 1},
    }
    noisy = shoal.inspect(people().select("age", "score"), noisy, attacks=True)

    assert few.attacks == noisy.attacks == ()
    assert "Fewer than 50 persons" in str(few)
    assert "A release with an epsilon is not tried" in str(noisy)


def test_init_try_records_an_inspection_and_writes_its_findings_into_the_draft(tmp_path):
    data, out, file = tmp_path / "people.csv", tmp_path / "policy.toml", tmp_path / "budget"
    people().write_csv(data)
    booking.open_budget(file, "people", "1")
    budget = ["--budget", str(file), "--source", "people"]

    done = CliRunner().invoke(app, ["init", str(data), "--try", "--out", str(out), *budget])

    assert done.exit_code == 0, done.output
    assert "recorded under source 'people'" in done.output
    text = out.read_text(encoding="utf-8")
    assert "# attacks on a release of 4 in 5 persons; the others are held out" in text
    assert "# attack: singling out, several columns: " in text
    policies.loads(text)
    (account,) = budget_file.show(file)
    assert account.inspected
    assert not any(f"{pay:.2f}" in text + done.output for pay in people()["pay"])
    epsilon = {
        "version": 1,
        "one_row_per_person": True,
        "columns": {"age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]}},
        "protect": {"method": "auto", "epsilon": 0.5},
        "budget": {"file": str(file), "source": "people"},
    }
    claims = shoal.protect(people().select("age"), epsilon).claims
    assert claims
    assert all(claim.status is Status.CONDITIONAL for claim in claims)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--try", "--epsilon", "1"], "--try reads the table"),
        (["--template", "safe-harbor", "--epsilon", "1"], "--template reads the table"),
        (["--budget", "b", "--source", "s"], "Add --try"),
    ],
)
def test_init_refuses_what_does_not_go_together(tmp_path, options, words):
    people().write_csv(tmp_path / "people.csv")

    done = CliRunner().invoke(app, ["init", str(tmp_path / "people.csv"), "--out", "-", *options])

    assert done.exit_code == 2
    assert words in done.output

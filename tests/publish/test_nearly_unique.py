"""What a release shows as it is though few share it: said, unless accepted, and listed then."""

import json

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.policy import exposure

COLUMNS = {
    "who": {"role": "identifier", "privacy_unit": True},
    "sex": {"role": "quasi-identifier", "kind": "nominal"},
    "pay": {"role": "confidential", "kind": "numeric"},
    "grade": {"role": "confidential", "kind": "numeric"},
}
POLICY = {"version": 1, "columns": COLUMNS, "protect": {"method": "local-suppression", "k": 3}}


def people(rows=300):
    rng = np.random.default_rng(2)
    return pl.DataFrame({
        "who": np.arange(rows),
        "sex": rng.choice(["m", "f"], rows),
        "pay": [*np.repeat(1000, rows - 6), *(9000 + 7 * np.arange(6))],
        "grade": rng.integers(1, 4, rows),
    })  # fmt: skip


def accepting(policy, *names):
    return policy | {"release": {"accept_distinct": list(names)}}


def test_a_release_says_which_values_few_share_in_the_middle_and_in_the_tails():
    (said,) = shoal.protect(people(), POLICY).exposed

    assert said.startswith(
        "'pay' is released as it is, and fewer than 3 rows share its value in 2% of the rows "
        "(0% in the lowest hundredth, 100% in the highest)."
    )
    assert 'accept_distinct = ["pay"]' in said
    assert f"  exposed  {said}" in repr(shoal.protect(people(), POLICY))


def test_a_share_is_of_the_rows_that_have_a_value():
    few = people().with_columns(pay=pl.when(pl.col("pay") > 1000).then("pay"))

    (said,) = shoal.protect(few, POLICY).exposed

    assert "share its value in 100% of the rows that have one (100% in" in said


def test_what_is_accepted_is_said_to_nobody_but_the_officer(tmp_path):
    people().write_csv(tmp_path / "people.csv")
    pages = []
    for number, policy in enumerate((POLICY, accepting(POLICY, "pay"))):
        out = tmp_path / str(number)
        (tmp_path / "policy.toml").write_text("\n".join(_toml(policy)))
        done = CliRunner().invoke(app, [
            "protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
            "--out", str(out), "--no-evaluate",
        ])  # fmt: skip
        assert done.exit_code == 0, done.output
        page = (tmp_path / f"{number}.internal" / "report.html").read_text(encoding="utf-8")
        pages.append((done.output, page, (out / "manifest.json").read_text(encoding="utf-8")))

    (output, page, manifest), (kept_output, kept_page, _) = pages
    assert "is released as it is, and fewer than 3 people share its value" not in manifest
    assert "in 2% of the rows" in output
    assert "in 2% of the rows" in page
    assert "in 2% of the rows" not in kept_output
    assert "The policy accepts it." in kept_page
    assert shoal.protect(people(), accepting(POLICY, "pay")).exposed == ()


def _toml(policy):
    yield "version = 1"
    for section in ("columns", "protect", "release"):
        yield f"[{section}]"
        for key, value in policy.get(section, {}).items():
            inner = json.dumps(value)
            if isinstance(value, dict):
                pairs = (f"{name} = {json.dumps(item)}" for name, item in value.items())
                inner = f"{{ {', '.join(pairs)} }}"
            yield f"{key} = {inner}"


def test_persons_are_counted_where_the_run_knows_them(tmp_path):
    table = pl.DataFrame({
        "who": [0] * 6 + list(range(1, 60)),
        "sex": ["f"] * 65, "pay": [5] * 6 + [1] * 59, "grade": [1] * 65,
    })  # fmt: skip
    table.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text("\n".join(_toml(POLICY)))

    done = CliRunner().invoke(app, [
        "protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
        "--out", str(tmp_path / "out"), "--no-evaluate",
    ])  # fmt: skip

    assert done.exit_code == 0, done.output
    assert "fewer than 3 people share its value" in done.output


def test_pairs_are_said_and_an_epsilon_release_is_not_looked_at():
    rng = np.random.default_rng(4)
    pay, grade = (rng.permutation(np.repeat(np.arange(20), 10)) for _ in range(2))
    table = people(200).with_columns(pay=pay, grade=grade)
    noisy = {
        "version": 1,
        "one_row_per_person": True,
        "columns": {"pay": COLUMNS["pay"] | {"bounds": [0, 20]}},
        "protect": {"method": "auto", "epsilon": 1},
    }

    (said,) = shoal.protect(table, POLICY).exposed

    assert "Fewer than 3 rows share the values of 'pay' and 'grade'" in said
    assert shoal.protect(table.select("pay"), noisy).exposed == ()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=300), st.integers(2, 6))
def test_the_tails_are_those_that_sorting_finds(numbers, k):
    values = pl.Series(numbers)

    low, high = exposure.alone_in_tails(values, None, k)

    ordered = sorted(numbers)
    rare = [numbers.count(value) < k for value in ordered]
    for share, flags, end in ((low, rare, ordered), (high, rare[::-1], ordered[::-1])):
        size = next(
            (i for i in range(1, len(end) + 1)
             if i >= len(end) / 100 and (i == len(end) or end[i] != end[i - 1])), len(end),
        )  # fmt: skip
        assert share == sum(flags[:size]) / size

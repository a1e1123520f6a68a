"""A figure of a paper on another table: its points are releases, measured as the paper measures."""

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import InputError
from shoal.methods.papers import PAPERS
from shoal.metrics.information_loss import sse

ROWS = 120


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, ROWS)
    return pl.DataFrame({
        "age": age, "pay": age * 100 + rng.integers(0, 900, ROWS),
        "ill": rng.choice(["no", "yes", "unknown"], ROWS),
    })  # fmt: skip


@pytest.mark.parametrize("key", PAPERS)
def test_every_paper_has_a_figure_that_runs_on_any_table(table, key):
    needs = PAPERS[key].figure.confidential

    found = shoal.repeat_figure(key, table, confidential="ill" if needs else None, runs=1)

    assert found.paper is PAPERS[key]
    assert {point.curve for point in found.points} <= {*PAPERS[key].figure.curves}
    assert found.points
    assert all(np.isfinite(point.y) and point.y >= 0 for point in found.points)
    assert found.to_frame().height == len(found.points)
    assert json.loads(json.dumps(found.facts()))["points"]
    assert all(point.curve in str(found) for point in found.points)


def test_a_point_without_noise_is_the_release_of_its_settings(table):
    """SSE of MDAV, from the released table; and what k cannot be is no point."""
    found = shoal.repeat_figure("soriacomas2017", table, runs=1)
    numbers = table.select("age", "pay")
    bounds = {"age": [0, 1.5 * table["age"].max()], "pay": [0, 1.5 * table["pay"].max()]}

    points = [point for point in found.points if point.curve == "MDAV"]
    assert [point.x for point in points] == [3, 5, 10, 20, 50]  # two groups of 100 need 200 rows
    for point in points:
        policy = {
            "version": 1,
            "columns": {
                name: {"role": "quasi-identifier", "kind": "numeric", "bounds": ends}
                for name, ends in bounds.items()
            },
            "protect": {"method": "mdav", "k": int(point.x)},
        }
        release = shoal.protect(numbers, policy, keep_order=True)
        masked = release.data.select("age", "pay").to_numpy()
        assert point.y == sse(numbers.to_numpy().astype(float), masked)
        assert point.spread == 0


def test_noise_at_ten_times_the_epsilon_loses_less(table):
    """Plain noise of scale width / epsilon, clamped: ten times less of it.

    At epsilon 0.1 a clamped cell is near either bound; the loss is at least 10 times that at 10.
    The chance that 120 rows in two columns turn this round is far below 1e-6.
    """
    found = shoal.repeat_figure("sanchez2014", table.select("age", "pay"), runs=2)

    plain = {p.epsilon: p.y for p in found.points if p.curve == "plain Laplace noise"}
    losses = [plain[epsilon] for epsilon in ("0.1", "1", "10")]
    assert all(more > less for more, less in pairwise(losses))


def test_the_drawing_has_a_line_for_every_curve_and_its_name(table):
    found = shoal.repeat_figure("soriacomas2017", table.select("age", "pay"), runs=1)

    drawn = str(found.draw())

    ET.fromstring(drawn)  # noqa: S314 - our own picture
    for curve in PAPERS["soriacomas2017"].figure.curves:
        assert curve in drawn


def test_a_policy_states_the_columns(table):
    policy = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 120]},
            "pay": "identifier",
            "ill": "identifier",
        },
        "protect": {"method": "mdav", "k": 3},
    }

    assert shoal.repeat_figure("iftikhar2019", table, policy, runs=1).columns == ("age",)


def test_numbers_that_are_to_be_guessed_are_put_into_classes(table):
    """The attack of cormode2013 guesses classes: without them no point could be made."""
    found = shoal.repeat_figure("cormode2013", table, confidential="pay", runs=1)

    assert not found.left_out
    assert found.classes == 10
    assert found.columns == ("age", "ill", "pay")
    assert "'pay' holds numbers, and the attack guesses classes: they are 10" in str(found)
    # Pay follows age, so groups of two tell its class to an attacker who knows age.
    assert next(p.x for p in found.points if p.settings.get("k") == 2) > 0


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        ("nobody2000", {}, "No paper named 'nobody2000'"),
        ("cormode2013", {}, "needs a confidential column: state --confidential NAME, one of age"),
        ("cormode2013", {"confidential": "il"}, "needs a confidential column"),
        ("sanchez2014", {"runs": 0}, "repeats"),
    ],
)
def test_what_cannot_be_repeated_is_refused_with_a_way_out(table, key, options, message):
    with pytest.raises(InputError, match=message):
        shoal.repeat_figure(key, table, **options)


def test_a_table_without_numbers_is_refused(table):
    with pytest.raises(InputError, match="Expected a column of numbers to protect, found none"):
        shoal.repeat_figure("sanchez2014", table.select("ill"))


def test_the_command_prints_the_figure_and_writes_the_picture(tmp_path, table):
    file, picture = tmp_path / "people.csv", tmp_path / "figure.svg"
    table.select("age", "pay").write_csv(file)
    arguments = ["papers", "sanchez2014", "--data", str(file), "--repeats", "1"]

    done = CliRunner().invoke(app, [*arguments, "--out", str(picture)])

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Figure 1 of Sánchez et al. 2014, on age, pay; 120 rows")
    assert "individual ranking and noise, epsilon 0.1" in done.stdout
    assert picture.stat().st_mode & 0o077 == 0
    assert "</svg>" in picture.read_text("utf-8")
    again = CliRunner().invoke(app, [*arguments, "--out", str(picture)])
    assert again.exit_code == 2
    nothing = CliRunner().invoke(app, ["papers", "--data", str(file)])
    assert nothing.exit_code == 2
    assert "Which paper's figure?" in nothing.output

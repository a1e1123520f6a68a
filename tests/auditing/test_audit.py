"""The audit of policies: what must be caught is, and what is proved is not."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests import opening
from typer.testing import CliRunner

import shoal
from shoal.auditing import neighbouring_tables
from shoal.auditing.outputs import file_scores
from shoal.auditing.runs import Ahead, ArrayRuns, Arrays, Releases, columns_at_stake
from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.core import ReleaseForm, Status
from shoal.engine import local
from shoal.errors import InputError
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.methods import REGISTRY, Tools
from shoal.pipeline.planning import plan, with_rows
from shoal.report import html

SURE = 1 - 1e-6


def policy(method, columns="ab", **protect):
    return {
        "version": 1,
        "columns": {
            name: {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}
            for name in columns
        },
        "protect": {"method": method, "epsilon": 1, **protect},
    }


def with_public(method, **protect):
    rules = policy(method, **protect)
    rules["columns"]["c"] = {"role": "other", "kind": "numeric", "public": True}
    return rules


def with_secret(method, kind="numeric", **protect):
    """A quasi-identifier a and a confidential b."""
    rules = policy(method, "ab", k=3, **protect)
    domain = {"bounds": [0, 1]} if kind == "numeric" else {"categories": ["x", "y", "z"]}
    rules["columns"]["b"] = {"role": "confidential", "kind": kind, **domain}
    return rules


class HalfNoise(OpenDPNoise):
    """A fake with a bug: noise of half the scale that was asked for."""

    def _laplace(self, values, scale):
        return super()._laplace(values, scale / 2)

    def _respond(self, codes, categories, epsilon):
        # Not through `_laplace` above: its fault would add to this one.
        return OpenDPNoise().respond(codes, categories=categories, epsilon=2 * epsilon)


# What must be shown, at claimed epsilon 1.


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        policy("ir-laplace", k=5, release_form="row-aligned"),
        policy("ir-laplace", k=5, release_form="linked-shuffled"),
        policy("mdav-laplace", k=40),
        policy("stable-laplace", k=40, sensitivity="summed"),
    ],
    ids=["ir row-aligned", "ir linked", "mdav", "stable"],
)
def test_a_refuted_form_is_caught(rules):
    """On the method's own counterexample. The events found have probabilities of 0.9 or more
    on one table, and below 1e-4 on the other. A bound below 3 would need 7 runs of 500 against
    it: probability below 1e-6."""
    found = shoal.audit(rules, trials=1000, most=1)

    assert found.violated
    assert found.worst.claim.status is Status.REFUTED
    assert found.worst.declared == 1
    assert found.worst.bound.epsilon.low >= 3


@pytest.mark.parametrize("kind", ["numeric", "nominal"])
def test_record_wise_noise_of_half_the_scale_is_flagged(kind):
    """One record's cell moves by the width, or to another category, at claimed epsilon 1; halved
    noise costs 2, and the event found has probabilities near 0.08 and 0.57, or 0.09 and 0.78. A
    miss has probability below 1e-6, which takes 1,060 runs of the counting half."""
    rules = with_secret("kanon-dp", kind, release_form="row-aligned")

    found = shoal.audit(rules, noise=HalfNoise(), trials=2140, confidence=SURE, most=1)

    assert found.violated
    assert found.worst.claim.status is Status.PROVED
    assert found.worst.bound.epsilon.low < 2


def test_shares_that_follow_the_table_are_caught():
    """A category that nobody has is never released by pram; with one record it is, with a
    probability above 0.4 in the run, so that a miss has probability below 1e-6."""
    found = shoal.audit(with_secret("pram", "nominal"), trials=600, most=1)

    assert found.violated
    assert found.worst.claim.status is Status.REFUTED
    assert min(found.worst.bound.before, found.worst.bound.after) == 0


def test_a_pair_that_differs_in_a_quasi_identifier_is_no_pair_for_record_wise_noise():
    planned = shoal.plan(with_secret("kanon-dp"))
    before = pl.DataFrame({"a": [0.0, 0.5, 1.0], "b": [0.0, 0.5, 1.0]})
    after = pl.DataFrame({"a": [0.0, 0.5, 0.9], "b": [0.0, 0.5, 1.0]})

    with pytest.raises(InputError, match="'a' is not covered by the claim, but it differs"):
        neighbouring_tables.check_given(planned, before, after)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        policy("laplace", release_form="row-aligned"),
        policy("ir-laplace", k=5, release_form="column-shuffled"),
        policy("insensitive-laplace", k=5),
        with_public("public-laplace", k=3),
    ],
    ids=["laplace", "ir marginals", "insensitive canonical", "public"],
)
def test_a_proved_form_shows_no_violation(rules):
    """False alarms: below 1e-6, the confidence of the bounds, for each of the four. Noise of a
    quarter of its scale would have events of chances near 0.5 and 0.01, which 500 runs show."""
    found = shoal.audit(rules, confidence=SURE, trials=1000)

    assert len(found.findings) == 2
    assert found.verdict == "no violation found"
    assert {finding.claim.status for finding in found.findings} == {Status.PROVED}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        with_secret("kanon-dp", release_form="row-aligned"),
        with_secret("kanon-dp", "ordinal"),
        with_secret("kanon-dp", "nominal", partition="mondrian"),
    ],
    ids=["numbers, aligned", "ranks", "responses"],
)
def test_record_wise_noise_shows_no_violation(rules):
    """False alarms: below 1e-6, the confidence of the bounds, for each of the three."""
    found = shoal.audit(rules, confidence=SURE, trials=1500, most=1)

    assert found.verdict == "no violation found"
    assert found.worst.claim.status is Status.PROVED


def test_insensitive_groups_by_a_scale_from_the_data_are_caught():
    """The exact answers lie 9 epsilon apart; the public scale keeps the same pair within 1. The
    event found has chances near 0.94 and 0.002: 500 runs miss a bound of 3 below 1e-6."""
    found = shoal.audit(policy("insensitive-laplace", k=20, scale="from-data"), trials=1000, most=1)

    assert found.violated
    assert found.worst.bound.epsilon.low > 3


def test_mdav_on_single_columns_is_caught_where_the_larger_group_moves():
    """17 rows at k=4 and one column, so that its noise is not divided. The event found has chances
    near 0.43 and 0.003: 150 runs would miss it with a probability below 1e-6."""
    rules = policy("ir-mdav-laplace", "a", k=4, release_form="column-shuffled")

    found = shoal.audit(rules, trials=1000, most=1)

    assert found.worst.claim.status is Status.REFUTED
    assert found.violated


def test_bounds_from_the_data_are_caught():
    """Of 600 runs, 9 in 10 show the event on one table and none on the other: a bound of 3 is
    missed with a probability below 1e-6."""
    found = shoal.audit(policy("laplace", bounds="from-data"), trials=1200)

    assert found.violated
    assert found.worst.bound.epsilon.low > 3


def test_noise_of_half_the_scale_is_flagged():
    """The pair that attains public-laplace's bound, at twice the loss that is claimed. At epsilon
    2 the event found has chances near 0.46 and 0.012: 2,000 runs miss it below 1e-6."""
    rules = with_public("public-laplace", k=3, epsilon=2)

    found = shoal.audit(rules, noise=HalfNoise(), trials=4000, confidence=SURE, most=1)

    assert found.violated


def test_the_square_of_the_shared_data_is_caught(reference):
    sides = tuple(reference(f"audit_pairs/square_k40_{side}") for side in "xy")

    found = shoal.audit(policy("mdav-laplace", k=40), pair=sides, trials=1000)

    assert found.worst.bound.epsilon.low >= 3


# Pairs.


@pytest.mark.parametrize("name", [name for name, method in REGISTRY.items() if method.noisy])
def test_built_in_pairs_fit_any_noisy_policy_and_differ_in_one_record(name):
    method = REGISTRY[name]
    rules = with_public(name, **{**method.example.parameters, "epsilon": 1})
    if name not in {"laplace", "public-laplace"}:
        rules = policy(name, **{**method.example.parameters, "epsilon": 1})
    rules["columns"]["b"] = {
        "role": "confidential", "kind": "ordinal", "categories": ["low", "mid", "high"],
    }  # fmt: skip
    if method.forms.must_choose:
        rules["protect"]["release_form"] = "linked-shuffled"

    made = neighbouring_tables.list_worst_cases(shoal.plan(rules))

    assert len(made) >= 3
    for pair in made:
        apart = (pair.before.to_numpy() != pair.after.to_numpy()).any(axis=1)
        assert np.flatnonzero(apart).tolist() == [pair.row]


def test_the_look_inside_ranks_pairs_by_what_noise_cannot_hide():
    proved = shoal.plan(policy("insensitive-laplace", k=5))
    broken = shoal.plan(policy("insensitive-laplace", k=20, scale="from-data"))
    linked = shoal.plan(policy("ir-laplace", k=5, release_form="linked-shuffled"))

    assert (
        max(
            neighbouring_tables.apartness(proved, pair)
            for pair in neighbouring_tables.list_worst_cases(proved)
        )
        <= 1 + 1e-9
    )
    assert neighbouring_tables.apartness(
        broken, neighbouring_tables.list_worst_cases(broken)[0]
    ) == pytest.approx(9.25, abs=0.01)
    assert (
        neighbouring_tables.apartness(linked, neighbouring_tables.list_worst_cases(linked)[0])
        >= neighbouring_tables.STRUCTURE
    )


def test_the_zig_zag_nearly_attains_the_bound_of_insensitive_groups():
    planned = shoal.plan(policy("insensitive-laplace", k=10))
    zig_zag = neighbouring_tables.list_worst_cases(planned)[-1]

    assert 0.9 < neighbouring_tables.apartness(planned, zig_zag) <= 1


def test_the_search_finds_a_change_that_parts_a_pair_of_equals():
    """Groups of two from the diagonal: sooner or later a record changes sides."""
    rules = policy("ir-laplace", k=3, release_form="row-aligned")
    table = pl.DataFrame({"a": np.linspace(0, 1, 12), "b": np.linspace(0, 1, 12)})

    found = shoal.audit(rules, table=table, tries=30, trials=1000, seed=4)

    assert found.violated
    assert found.worst.pair.before.equals(table)


def test_the_search_keeps_whole_numbers_and_categories_in_their_domain():
    rules = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
            "born": {
                "role": "quasi-identifier",
                "kind": "date",
                "bounds": [date(1900, 1, 1), date(2020, 1, 1)],
            },
            "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
        },
        "protect": {"method": "laplace", "epsilon": 1},
    }
    table = pl.DataFrame({"age": [3, 40, 77], "born": ["1950-02-03"] * 3, "sex": ["f", "m", "f"]})

    found = shoal.audit(rules, table=table, tries=10, trials=200)

    assert found.worst.pair.after["sex"].is_in(["f", "m"]).all()
    assert found.worst.pair.after["born"].str.to_date().null_count() == 0


FRAME = pl.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3], "c": [1, 2, 3]})


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (FRAME, "they differ in 0"),
        (FRAME.with_columns(a=pl.lit(0.9)), "they differ in 3"),
        (FRAME.head(2), "same number of rows"),
        (FRAME.select("b", "a", "c"), "same columns"),
        (FRAME.with_columns(c=pl.Series([1, 2, 9])), "'c' is public"),
    ],
)
def test_two_tables_that_are_no_neighbours_are_refused(other, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.audit(with_public("public-laplace", k=3), pair=(FRAME, other))


ADDED = {"neighbours": "add-remove", "height": 2}


@pytest.mark.parametrize("name", ["dp-kdtree", "dp-quadtree"])
def test_built_in_pairs_and_the_search_leave_a_record_out_for_add_remove(name):
    planned = shoal.plan(policy(name, **ADDED))
    rng = np.random.default_rng(1)

    made = neighbouring_tables.list_worst_cases(planned)
    found = neighbouring_tables.search(planned, FRAME.select("a", "b"), tries=3, rng=rng)

    assert len(made) >= 3
    for pair in (*made, found):
        rest = pair.before.with_row_index().filter(pl.col("index") != pair.row).drop("index")
        assert rest.equals(pair.after)


def test_drawn_rows_of_any_number_are_audited():
    frame = FRAME.select("a", "b")
    rules = policy("dp-quadtree", **ADDED)

    found = shoal.audit(rules, pair=(frame.head(2), frame), trials=200, confidence=SURE)

    assert not found.violated
    assert found.worst.pair.row == 2
    assert found.facts()["findings"][0]["after"][2] == (None, None)
    assert "differ in row 3" in html.audit_report(found.facts())


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (FRAME.select("a", "b"), "must have exactly one row more"),
        (FRAME.select("b", "a").head(2), "same columns"),
        (FRAME.select("a", "b").head(2).with_columns(a=pl.lit(0.9)), "except for one row"),
    ],
)
def test_two_tables_that_are_no_add_remove_neighbours_are_refused(other, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.audit(policy("dp-quadtree", **ADDED), pair=(FRAME.select("a", "b"), other))


def test_a_policy_without_epsilon_has_nothing_to_audit():
    rules = policy("mdav", k=3)
    del rules["protect"]["epsilon"]

    with pytest.raises(InputError, match="claims no differential privacy"):
        shoal.audit(rules)


def test_wrong_arguments_are_told():
    with pytest.raises(InputError, match="level of the audit to be arrays or files"):
        shoal.audit(policy("laplace"), level="moon")
    with pytest.raises(InputError, match="found both"):
        shoal.audit(policy("laplace"), pair=(FRAME, FRAME), table=FRAME)


# The fast level does what the pipeline does.


@pytest.mark.parametrize("name", [name for name, method in REGISTRY.items() if method.noisy])
def test_runs_on_arrays_give_what_the_engine_gives(name):
    rules = policy(name, "ad", **{**REGISTRY[name].example.parameters, "epsilon": 1})
    rules["columns"]["b"] = {"role": "confidential", "kind": "nominal", "categories": ["x", "y"]}
    if name == "public-laplace":
        rules = with_public(name, k=3)
    drawn = ReleaseForm.SYNTHETIC in REGISTRY[name].forms.offered
    if not drawn:
        rules["protect"]["release_form"] = "row-aligned"
    planned = shoal.plan(rules)
    rng = np.random.default_rng(2)
    cells = {c: rng.random(17) for c in rules["columns"]}
    if name != "public-laplace":
        cells["b"] = rng.choice(["x", "y"], 17)
    table = neighbouring_tables.table_of(planned, pl.DataFrame(cells))

    fast = ArrayRuns(planned, table, RecordingNoise(added=[5, -3])).with_noise(
        RecordingNoise([5, -3])
    )
    tools = Tools(noise=RecordingNoise([5, -3]), rng=np.random.default_rng(0))
    setting = with_rows(planned, len(table)).setting
    outcome = local.run(table, planned.method, setting, tools)

    slow = opening.protected(outcome)
    if not drawn:
        slow = opening.in_file_order(outcome, table, planned.method, setting)
    columns = Arrays.of(slow).columns
    expected = np.column_stack([columns[column] for column in columns_at_stake(planned)])
    if drawn:
        expected = expected[np.lexsort(expected.T[::-1])]
    assert np.array_equal(fast, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["dp-kdtree", "dp-quadtree"])
def test_of_a_tree_the_boxes_at_the_corners_are_looked_at(name):
    planned = shoal.plan(policy(name, output="tree", height=4))
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({c: rng.random(17) for c in "ab"})

    runs = ArrayRuns(planned, neighbouring_tables.table_of(planned, frame), SeededNoise(1))
    seen = runs(3)

    assert seen.shape == (3, 4, 5)
    assert runs.names == ["a, lower end", "b, lower end", "a, upper end", "b, upper end",
                          "count of "]  # fmt: skip
    assert (seen[:, 0, :2] == 0).all()
    assert (seen[:, 3, 2:4] >= 1).all()


def test_noise_drawn_ahead_is_fresh_in_every_run_and_follows_its_own_request():
    noise = Ahead(SeededNoise(3))
    values = np.zeros(4, dtype=np.int64)
    drawn = []
    for run in range(3000):
        noise.begin(3000 - run)
        drawn.append(noise.discrete_laplace(values, scale=Fraction(1000)))
        other = noise.discrete_laplace(values + run, scale=Fraction(1, 100))
        assert (other == run).all()
        assert noise.select(np.array([0, 10**9]), sensitivity=Fraction(1), epsilon=Fraction(1)) == 1

    assert len({tuple(row) for row in drawn}) == 3000


def test_noise_is_drawn_ahead_for_the_runs_that_are_left_and_no_further():
    noise = SeededNoise(3)
    drawn, draw = [], noise.discrete_laplace
    noise.discrete_laplace = lambda values, *, scale: (
        drawn.append(values.shape) or draw(values, scale=scale)
    )
    ahead = Ahead(noise)

    for runs in (7, 2):
        for left in range(runs, 0, -1):
            ahead.begin(left)
            ahead.discrete_laplace(np.arange(4), scale=Fraction(9))

    assert drawn == [(7, 4), (2, 4)]


# End to end.


def test_files_are_read_whole_and_a_leak_is_found_in_them():
    """Noise that adds nothing: two tables, two files."""
    found = shoal.audit(policy("laplace"), level="files", trials=40, noise=RecordingNoise(), most=1)

    assert found.violated
    assert found.level == "files"


@pytest.mark.parametrize(("output", "neighbours"), [("rows", "add-remove"), ("tree", "change-one")])
def test_files_of_trees_can_be_audited(output, neighbours):
    """False alarms: below 1e-6, the confidence of the bound. Without noise it would be 0.38."""
    rules = policy(
        "dp-quadtree", neighbours=neighbours, output=output, height=1, epsilon=Decimal("0.25")
    )

    found = shoal.audit(rules, level="files", trials=60, confidence=SURE, most=1)

    assert not found.violated


@pytest.mark.slow
def test_files_of_a_proved_form_show_no_violation():
    """False alarms: below 1e-6, the confidence of the bound. Without noise all 30 runs that count
    would show an event on one table and none on the other, a bound of 0.38."""
    rules = policy("laplace", epsilon=Decimal("0.25"))

    found = shoal.audit(rules, level="files", trials=60, confidence=SURE, most=1)

    assert not found.violated


def test_all_that_lands_in_the_folder_is_looked_at(tmp_path):
    planned = shoal.plan(policy("laplace", release_form="row-aligned"))
    (landed,) = Releases(planned, FRAME.select("a", "b"), None, tmp_path / "x")(1)

    looks = file_scores([landed], row=0, form=planned.setting.release_form)

    assert {"number of rows", "number of missing cells", "size of release.csv",
            "size of manifest.json", "size of report.html"} <= looks.keys()  # fmt: skip
    assert {"manifest", "pattern of missing cells", "names of the files"} <= landed.texts.keys()
    assert landed.cells.shape == (3, 2)
    assert not list((tmp_path / "x").glob("release*"))


def test_an_audit_of_files_leaves_the_budget_alone(tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    rules = policy("laplace") | {"budget": {"file": str(budget), "source": "people"}}

    shoal.audit(rules, level="files", trials=20, most=1)

    assert budget_file.show(budget)[0].spent == 0


# The command and the report.

POLICY = """
version = 1
[columns]
a = { role = "quasi-identifier", kind = "numeric", bounds = [0, 1] }
b = { role = "quasi-identifier", kind = "numeric", bounds = [0, 1] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "METHOD"
epsilon = 1
"""


def command(tmp_path, method, *options):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace("METHOD", method))
    return CliRunner().invoke(app, ["audit", "--policy", str(path), *options])


def test_the_command_exits_with_3_where_it_is_asked_to(tmp_path):
    ranked = 'ir-laplace"\nk = 5\nrelease_form = "row-aligned'

    plain = command(tmp_path, ranked, "--trials", "100")
    strict = command(tmp_path, ranked, "--trials", "100", "--fail-on-violation")
    fine = command(tmp_path, "laplace", "--trials", "100", "--fail-on-violation",
                   "--confidence", str(SURE))  # fmt: skip

    assert (plain.exit_code, strict.exit_code, fine.exit_code) == (0, 3, 0)
    assert plain.stdout.startswith("violated: ir-laplace, row-aligned, declared epsilon 1")
    assert fine.stdout.startswith("no violation found: laplace")
    assert "proved" not in fine.stdout.splitlines()[-1]


def test_a_claim_that_is_refuted_already_fails_whatever_the_runs_find(tmp_path):
    """So few runs cannot violate any epsilon at this confidence; the counterexample stands."""
    ranked = 'ir-laplace"\nk = 5\nrelease_form = "row-aligned'
    page = tmp_path / "audit.html"
    few = ("--trials", "20", "--confidence", str(SURE))

    plain = command(tmp_path, ranked, *few)
    strict = command(tmp_path, ranked, *few, "--fail-on-violation", "--out", str(page))

    assert (plain.exit_code, strict.exit_code) == (0, 3)
    assert strict.stdout.startswith("refuted by a known counterexample: ir-laplace")
    (named,) = [line for line in strict.stdout.splitlines() if "  counterexample: " in line]
    basis = named.removeprefix("  counterexample: ").removesuffix(".")
    assert basis in {claim.basis for claim in plan(tmp_path / "policy.toml").claims}
    assert "does not support the claim" not in strict.stdout
    text = page.read_text("utf-8")
    assert "The claim is still refuted." in text
    assert "Counterexample: " in text


def test_the_command_takes_two_files_and_writes_a_page(tmp_path):
    sides = [tmp_path / "x.csv", tmp_path / "y.csv"]
    FRAME.select("a", "b").write_csv(sides[0])
    FRAME.select("a", "b").with_columns(a=pl.Series([0.1, 0.2, 0.97531])).write_csv(sides[1])
    page = tmp_path / "audit.html"

    done = command(tmp_path, "laplace", "--pair", *map(str, sides), "--trials", "100",
                   "--out", str(page))  # fmt: skip

    assert done.exit_code == 0, done.output
    assert "0.97531" not in done.output
    text = page.read_text("utf-8")
    assert html.AUDIT_CONFIDENTIAL in text
    assert "0.97531" in text
    assert "differ in row 3" in text
    again = command(tmp_path, "laplace", "--pair", *map(str, sides), "--trials", "100",
                    "--out", str(page))  # fmt: skip
    assert again.exit_code == 2


def test_the_page_shows_event_probabilities_and_both_tables():
    found = shoal.audit(policy("ir-laplace", k=60, release_form="row-aligned"), trials=200, most=1)

    text = html.audit_report(found.facts())

    bound = found.worst.bound
    assert "violated" in text
    assert str(bound.event).replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;") in text
    assert f"in {bound.before} of 100 runs" in text
    assert "; 100 of them are shown" in text
    assert "proved" not in text

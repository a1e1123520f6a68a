"""What runs tell the budget file, and what follows for the releases after them."""

import json
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.pipeline import booking
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import confidential_folder, protect_file
from shoal.report import terminal

POLICY = """
version = 1
[columns]
name = { role = "identifier"UNIT }
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
region = { role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }
income = { role = "confidential", kind = "numeric", bounds = [0, 100] }
[reading]
delimiter = ","
decimal = "."
[protect]
PROTECT
[budget]
file = "budget.sqlite"
source = "people"
LEDGER
"""
LAPLACE = 'method = "laplace"\nepsilon = 1'
TREE = 'method = "privtree"\nepsilon = 1\nneighbours = "add-remove"'
EXTRACT = 'extract = "region = north"\nextract_by = "row"'
CHOSEN = "the method and its parameters were not chosen from this table"


@pytest.fixture
def desk(tmp_path, people):
    """A table, a budget of 20, and a release by what the test states."""
    path = tmp_path / "budget.sqlite"
    budget_file.init(path, "people", Fraction(20))

    class Desk:
        file = path
        data = tmp_path / "people.csv"
        policy = tmp_path / "policy.toml"
        table = people
        number = 0

        def state(self, protect=LAPLACE, budget="", unit="", more=""):
            text = POLICY.replace("PROTECT", protect).replace("LEDGER", budget)
            self.policy.write_text(text.replace("UNIT", unit) + more)
            self.table.write_csv(self.data)
            return self.policy

        def release(self, protect=LAPLACE, *, evaluate=False, noise=None, **stated):
            self.state(protect, **stated)
            self.number += 1
            out = tmp_path / f"out-{self.number}"
            return protect_file.protect(
                self.data,
                self.policy,
                out,
                output=OutputOptions(file_format="csv"),
                evaluation=EvaluationOptions(evaluate=evaluate),
                noise=noise,
            )

        @property
        def account(self):
            return budget_file.account(path, "people")

    return Desk()


# What adds up


def test_a_table_and_its_extract_of_one_value_have_no_cumulative_epsilon(desk):
    desk.release()
    before = desk.account.cumulative
    desk.table = desk.table.filter(pl.col("region") == "north")
    desk.release(budget=EXTRACT)

    assert before == 1
    assert desk.account.cumulative is None
    assert "Entry 2 is of an extract by protected cells" in desk.account.reasons[0]


def test_extracts_add_up_with_add_remove_neighbours(desk):
    desk.release()
    desk.table = desk.table.filter(pl.col("region") == "north")
    desk.release(TREE, budget=EXTRACT)

    assert [entry.facts.public_number for entry in desk.account.entries] == ["rows", ""]
    assert desk.account.cumulative == 1 + 2


@pytest.mark.parametrize(("budget", "together"), [("max_contributions = 5", 6), ("", None)])
def test_rows_beside_persons_of_five_rows(desk, budget, together):
    """One changed person is five changed rows of the first release, if that is a declared fact."""
    desk.release()
    desk.release(
        'method = "auto"\nepsilon = 1',
        budget=budget,
        unit=", privacy_unit = true, max_contributions = 5",
    )

    assert desk.account.cumulative == together
    assert desk.account.spent == (together or 2)


def test_the_budget_holds_what_persons_cost(desk):
    for _ in range(4):
        desk.release()

    with pytest.raises(ClaimViolationError, match="requested epsilon 17, remaining 16"):
        desk.release(
            'method = "auto"\nepsilon = 1', budget="max_contributions = 5",
            unit=", privacy_unit = true, exact_contributions = 1",
        )  # fmt: skip

    assert desk.account.spent == 4


def test_an_entry_holds_declared_facts_and_nothing_of_the_table(desk):
    desk.release(budget=EXTRACT, unit=", privacy_unit = true")

    (entry,) = desk.account.entries

    assert json.loads(entry.facts.to_json()) == {
        "neighbours": "change-one", "unit": "name", "contributions": 1, "cut": False,
        "public_number": "rows", "public_columns": [], "extract": "region = north",
        "extract_by": "row", "max_contributions": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("budget", "unit", "words"),
    [
        ('extract = "a"', "", "'extract' (the rule, in words) and 'extract_by'"),
        ('extract_by = "row"', "", "together, found one"),
        ('extract = "a"\nextract_by = "luck"', "", "expected one of public, row, table"),
        ("max_contributions = 0", "", "max_contributions"),
        (
            "max_contributions = 2",
            ", privacy_unit = true, exact_contributions = 3",
            "at least 3, the exact_contributions of",
        ),
    ],
)
def test_facts_that_cannot_be_are_refused(desk, budget, unit, words):
    with pytest.raises(InputError, match=re.escape(words)):
        shoal.load_policy(desk.state(budget=budget, unit=unit))


# Nothing of the table reaches the file


class Replay(RecordingNoise):
    """Answers as before, whatever is asked: what comes out does not depend on what goes in."""

    def _laplace(self, values, scale):
        return SeededNoise(7)._laplace(np.zeros_like(values), scale)

    def _choose_many(self, scores, scale):
        del scale
        return np.zeros(len(scores), dtype=np.int64)

    def _choose(self, scores, scale):
        del scores, scale
        return 0

    def _respond(self, codes, levels, epsilon):
        del epsilon
        return np.arange(codes.size, dtype=np.int64) % levels


def timeless(text):
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "then", text)


def unshuffled(path):
    """A public file without the time of day, the order of rows, and digests that follow from it."""
    text = timeless(path.read_bytes().decode("latin-1"))
    if path.name == "release.csv":
        return sorted(text.splitlines())
    return re.sub(r"\b[0-9a-f]{64}\b", "digest", text)


def left(desk, changed, *, protect, noise, budget):
    """All that leaves two releases, of which the second may be of a table with another record."""
    before = desk.table
    desk.release(noise=noise)
    desk.table = changed
    done = desk.release(protect, noise=noise, budget=budget)
    desk.table = before
    public = {path.name: unshuffled(path) for path in done.folder.iterdir()}
    printed = terminal.release_text(done.release, done.notes)
    shown = CliRunner().invoke(app, ["budget", "show", str(desk.file)])
    facts = timeless(json.dumps(booking.budget_facts(desk.file)))
    return public, timeless(printed), timeless(shown.stdout), shown.exit_code, facts


@pytest.mark.parametrize("budget", ["", EXTRACT, 'extract = "top"\nextract_by = "table"'])
@pytest.mark.parametrize("protect", [LAPLACE, 'method = "maxent"\nepsilon = 1'])
def test_a_changed_record_changes_nothing_that_leaves_the_second_release(desk, protect, budget):
    """Under replayed answers, with the budget file begun anew: bytes, words, entries, reasons."""
    changed = desk.table.with_columns(
        age=pl.when(pl.col("name") == "person 3").then(99).otherwise("age"),
        region=pl.when(pl.col("name") == "person 3").then(pl.lit("north")).otherwise("region"),
    )
    worlds = []
    for table in (desk.table, changed):
        desk.file.unlink()
        budget_file.init(desk.file, "people", Fraction(20))
        desk.number = 0
        for old in desk.file.parent.glob("out-*"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        worlds.append(left(desk, table, protect=protect, noise=Replay(), budget=budget))

    assert worlds[0] == worlds[1]


def test_with_real_noise_too_the_file_says_the_same_of_a_changed_table(desk):
    shown = []
    for table in (desk.table, desk.table.with_columns(income=pl.lit(3))):
        desk.file.unlink()
        budget_file.init(desk.file, "people", Fraction(20))
        before, desk.table, desk.number = desk.table, table, desk.number + 10
        desk.release()
        desk.release(TREE, budget=EXTRACT)
        shown.append(re.sub(r"out-\d+", "out", timeless(booking.show_budget(desk.file))))
        desk.table = before

    assert shown[0] == shown[1]


# Inspections


def statuses(release):
    return {claim.status.value for claim in release.claims}


def test_the_figures_of_a_release_make_later_epsilons_conditional_and_not_its_own(desk):
    first = desk.release(evaluate=True)
    second = desk.release(evaluate=True)

    assert statuses(first.release) == {"proved"}
    assert statuses(second.release) == {"conditional"}
    assert all(CHOSEN in claim.assumes for claim in second.release.claims)
    assert any("These figures are an inspection of the table" in note for note in first.notes)
    assert not any("These figures are an inspection" in note for note in second.notes)
    assert [(one.what, one.after) for one in desk.account.inspections] == [
        ("protect", 1),
        ("protect", 2),
    ]
    assert desk.account.cumulative is None


def test_a_release_that_is_not_measured_leaves_later_epsilons_proved(desk):
    required = "[require]\ndifferential-privacy = 1\n"
    for _ in range(3):
        done = desk.release(more=required)

    assert statuses(done.release) == {"proved"}
    assert desk.account.inspections == ()
    assert desk.account.cumulative == 3


def test_a_release_that_is_not_measured_shows_nothing_of_the_table(desk):
    """An income that is not a number would be counted, and the steward told."""
    desk.table = desk.table.with_columns(income=pl.lit("a lot"))

    done = desk.release()

    figures = json.loads((done.internal / "figures.json").read_text())
    assert not any("could not be read" in note for note in done.notes)
    assert (figures["rows"], figures["columns"], figures["clamped"]) == (None, [], {})
    assert figures["unique_on_quasi_identifiers"] == {
        "original": None, "rows": None, "released": None
    }  # fmt: skip
    assert figures["budget"]["epsilon"] == 1


def test_what_a_policy_requires_is_refused_after_an_inspection(desk):
    done = desk.release(evaluate=True)
    shoal.evaluate(desk.table, done.release, desk.policy)

    with pytest.raises(ClaimViolationError, match="was inspected: since then, an epsilon holds"):
        desk.release(more="[require]\ndifferential-privacy = 1\n")

    assert desk.account.spent == 1


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done


def test_to_measure_is_an_inspection_by_command_and_in_python(desk):
    done = desk.release()
    table = done.folder / "release.csv"

    told = run("evaluate", desk.data, table, "--policy", desk.policy, "--only", "utility").stderr
    again = run("evaluate", desk.data, table, "--policy", desk.policy, "--only", "utility").stderr
    shoal.evaluate(desk.table, done.release, desk.policy, only="utility")

    assert "These figures are an inspection of the table" in told
    assert "inspection" not in again
    (look,) = desk.account.inspections
    assert (look.kind, look.what, look.after) == ("table", "evaluate", 1)
    assert desk.account.cumulative == 1
    assert statuses(desk.release().release) == {"conditional"}


def test_to_audit_with_a_table_is_an_inspection_and_without_one_is_none(desk):
    policy = desk.state()

    run("audit", "--policy", policy, "--trials", 20)
    assert desk.account.inspections == ()
    told = run("audit", "--policy", policy, "--trials", 20, "--table", desk.data).stderr

    assert "These figures are an inspection of the table" in told
    assert [one.what for one in desk.account.inspections] == ["audit"]


def test_where_no_ledger_is_named_a_method_with_noise_says_that_nothing_is_recorded(desk):
    bare = desk.state().read_text().partition("[budget]")[0]
    desk.policy.write_text(bare)
    done = protect_file.protect(
        desk.data,
        desk.policy,
        desk.file.parent / "out",
        evaluation=EvaluationOptions(evaluate=True),
    )
    desk.policy.write_text(bare.replace(LAPLACE, 'method = "mdav"\nk = 3'))
    groups = protect_file.protect(
        desk.data,
        desk.policy,
        desk.file.parent / "groups",
        evaluation=EvaluationOptions(evaluate=True),
    )

    assert sum("this inspection cannot be recorded" in note for note in done.notes) == 1
    assert not any("recorded" in note for note in groups.notes)


# A sample that is the table itself


@pytest.mark.parametrize("kind", ["file", "link", "bytes"])
def test_a_sample_that_is_the_table_itself_is_refused(desk, tmp_path, kind):
    policy, sample = desk.state(), tmp_path / "sample.csv"
    if kind == "link":
        sample.symlink_to(desk.data)
    if kind == "bytes":
        sample.write_bytes(desk.data.read_bytes())
    given = desk.data if kind == "file" else sample

    arguments = ["compare", desk.data, "--policy", policy, "--on-sample", given]
    done = CliRunner().invoke(app, [*map(str, arguments), "--out", str(tmp_path / "compared")])

    assert done.exit_code == 2
    assert "The sample is the confidential table itself" in done.output
    assert desk.account.inspections == ()


def test_a_frame_that_is_the_table_itself_is_refused_as_a_sample(desk):
    policy = desk.state()

    with pytest.raises(InputError, match="The sample is the confidential table itself"):
        shoal.compare(desk.table, policy, on_sample=desk.table.clone())


def test_the_head_of_the_budget_file_stands_in_the_confidential_folder_alone(desk):
    out = desk.release().folder
    head = json.loads((out.with_name(f"{out.name}.internal") / "figures.json").read_text())[
        "budget"
    ]["head"]

    assert head["events"] == 2
    for file in out.iterdir():
        assert head["hash"].encode() not in file.read_bytes()
        assert head["origin"].encode() not in file.read_bytes()


def test_an_older_copy_of_the_budget_file_is_noticed_where_a_newer_folder_is_met(desk):
    before = desk.file.read_bytes()
    out = desk.release().folder
    newest = desk.file.read_bytes()
    desk.file.write_bytes(before)

    for act in (
        desk.release,
        lambda: booking.show_budget(desk.file),
        lambda: confidential_folder.report(out, desk.data, desk.policy),
    ):
        with pytest.raises(InputError, match="is an older copy of the budget file"):
            act()
    assert desk.file.read_bytes() == before
    desk.file.write_bytes(newest)
    confidential_folder.report(out, desk.data, desk.policy)
    desk.release()
    desk.file.write_bytes(newest)
    with pytest.raises(InputError, match="is an older copy of the budget file"):
        desk.release()

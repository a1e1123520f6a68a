"""An epsilon release end to end: the folder, the accounting, and what may not reach them."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.errors import ClaimViolationError, InputError, InternalError
from shoal.hazmat.fakes import RecordingNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.io import folders
from shoal.pipeline import protect_table
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.publish import protect_file

POLICY = """
version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
region = { role = "quasi-identifier", kind = "nominal", categories = ["north", "south", "rest"], other = "rest" }
income = { role = "confidential", kind = "numeric", bounds = [0, 100] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "METHOD"
epsilon = 0.4
FORM
"""  # noqa: E501


class Deaf(RecordingNoise):
    """Noise that drowns every answer: what comes out does not depend on what goes in."""

    def _laplace(self, values, scale):
        del scale
        return np.arange(values.size, dtype=np.int64) * 1000

    def _choose_many(self, scores, scale):
        del scale
        return np.zeros(len(scores), dtype=np.int64)

    def _respond(self, codes, categories, epsilon):
        del epsilon
        return np.arange(codes.size, dtype=np.int64) % categories


@pytest.fixture
def desk(tmp_path, people):
    people.write_csv(tmp_path / "people.csv")

    def write(method="laplace", form="", more=""):
        text = POLICY.replace("METHOD", method).replace("FORM", form) + more
        (tmp_path / "policy.toml").write_text(text)
        return tmp_path / "people.csv", tmp_path / "policy.toml", tmp_path / "out"

    return write


def folder(out):
    """All that was published, but for the time of day."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest.pop("created")
    manifest.pop("files")
    lines = [line.split(",") for line in (out / "release.csv").read_text().splitlines()]
    if manifest["release_form"] == "column-shuffled":
        rows = [sorted(column) for column in zip(*lines, strict=True)]
    else:
        rows = sorted(lines)
    return manifest, rows, sorted(path.name for path in out.iterdir())


@pytest.mark.parametrize(
    ("method", "form"),
    [
        ("laplace", ""),
        ("ir-laplace", 'k = 3\nrelease_form = "column-shuffled"'),
        ("insensitive-laplace", "k = 3"),
        ("ir-mdav-laplace", 'k = 3\nrelease_form = "column-shuffled"'),
    ],
)
def test_the_folder_is_a_function_of_the_mechanisms_output_and_public_inputs(desk, method, form):
    data, policy, out = desk(method, form)
    published = []
    tables = [
        pl.read_csv(data),
        pl.DataFrame({"name": ["x"] * 12, "age": [None] * 11 + [900], "region": ["z"] * 12,
                      "income": ["word"] * 12}),
    ]  # fmt: skip

    for table in tables:
        table.write_csv(data)
        protect_file.protect(
            data, policy, out, output=OutputOptions(file_format="csv", force=True), noise=Deaf()
        )
        published.append(folder(out))

    assert published[0] == published[1]


def test_the_folder_of_record_wise_noise_follows_quasi_identifiers_and_output_alone(tmp_path):
    rules = """
version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
region = { role = "quasi-identifier", kind = "nominal" }
income = { role = "confidential", kind = "numeric", bounds = [0, 100] }
job = { role = "confidential", kind = "nominal", categories = ["x", "y", "z"] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "kanon-dp"
k = 3
epsilon = 1
release_form = "row-aligned"
"""
    data, policy = tmp_path / "people.csv", tmp_path / "policy.toml"
    policy.write_text(rules)
    same = pl.DataFrame({"age": [20, 30, 30, 30, 40, 50, 60], "region": list("aabbbaa")})
    published = []

    for income, job in ((list(range(7)), list("xyzxyzx")), (["word"] * 7, [None] * 7)):
        same.with_columns(
            income=pl.Series(income, strict=False), job=pl.Series(job, dtype=pl.String)
        ).write_csv(data)
        protect_file.protect(
            data,
            policy,
            tmp_path / "out",
            output=OutputOptions(file_format="csv", force=True),
            noise=Deaf(),
        )
        published.append(folder(tmp_path / "out"))

    assert published[0] == published[1]


def test_a_release_is_booked_before_and_settled_after(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    more = f'[budget]\nfile = "{budget.name}"\nsource = "people"\n'

    protect_file.protect(*desk(more=more))

    (account,) = budget_file.show(budget)
    assert account.spent == Fraction(2, 5)
    assert [entry.status for entry in account.entries] == ["released"]


def test_a_budget_that_does_not_hold_the_release_stops_it_with_numbers(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1, 10))
    data, policy, out = desk()

    arguments = ["protect", str(data), "--policy", str(policy), "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--budget", str(budget), "--source", "people"])

    assert done.exit_code == 3
    assert "requested epsilon 0.4, remaining 0.1, short by 0.3" in done.output
    assert not out.exists()


def test_a_release_without_a_proved_epsilon_makes_the_sum_none(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    more = f'[budget]\nfile = "{budget.name}"\nsource = "people"\n'

    protect_file.protect(*desk("mdav-laplace", "k = 3", more))
    shown = CliRunner().invoke(app, ["budget", "show", str(budget)])

    assert "cumulative epsilon none" in shown.output


def test_the_ledger_needs_a_file_and_a_source(desk, tmp_path):
    data, policy, out = desk()
    arguments = ["protect", str(data), "--policy", str(policy), "--out", str(out)]

    no_source = CliRunner().invoke(app, [*arguments, "--budget", str(tmp_path / "b.db")])
    no_file = CliRunner().invoke(app, [*arguments, "--source", "people"])

    assert (no_source.exit_code, no_file.exit_code) == (2, 2)
    assert "Expected --source" in no_source.output
    assert "Expected --budget" in no_file.output


def test_budgets_are_made_and_shown_from_the_command_line(tmp_path):
    file = str(tmp_path / "budget.db")

    made = CliRunner().invoke(
        app, ["budget", "init", file, "--source", "people", "--epsilon", "0.5"]
    )
    shown = CliRunner().invoke(app, ["budget", "show", file])
    wrong = CliRunner().invoke(app, ["budget", "init", file, "--source", "x", "--epsilon", "much"])

    assert made.exit_code == 0, made.output
    assert "remaining 0.5" in shown.output
    assert wrong.exit_code == 2
    assert "Expected epsilon as a number" in wrong.output


def test_a_run_killed_while_it_draws_counts_as_spent_and_publishes_nothing(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, out = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from shoal.pipeline import protect_table\n"
        "from shoal.publish import protect_file\n"
        "from shoal.hazmat.noise import OpenDPNoise\n"
        "class Slow(OpenDPNoise):\n"
        "    def _laplace(self, values, scale):\n"
        "        Path(sys.argv[4]).touch()\n"
        "        time.sleep(60)\n"
        "protect_table.OpenDPNoise = Slow\n"
        "protect_file.protect(*map(Path, sys.argv[1:4]))\n"
    )
    started = tmp_path / "started"
    run = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, (data, policy, out, started))],
        env=os.environ.copy(),
    )
    for _ in range(600):
        if started.exists():
            break
        time.sleep(0.1)
    run.send_signal(signal.SIGKILL)
    run.wait()

    (account,) = budget_file.show(budget)
    assert account.spent == Fraction(2, 5)
    assert [entry.status for entry in account.entries] == ["reserved"]
    assert not out.exists()


def test_the_library_books_as_well(people, tmp_path):
    import shoal  # noqa: PLC0415

    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1, 2))
    policy = {
        "version": 1,
        "columns": {
            "name": "identifier",
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
            "region": "identifier",
            "income": "identifier",
        },
        "reading": {"delimiter": ",", "decimal": "."},
        "protect": {"method": "laplace", "epsilon": 0.5},
        "budget": {"file": str(budget), "source": "people"},
    }

    shoal.protect(people, policy)

    with pytest.raises(ClaimViolationError, match=r"remaining 0, short by 0\.5"):
        shoal.protect(people, policy)


def test_counts_of_clamped_cells_reach_the_internal_folder_only(desk):
    data, policy, out = desk()
    published = protect_file.protect(data, policy, out, output=OutputOptions(file_format="csv"))

    figures = json.loads((published.internal / "figures.json").read_text())
    public = "".join(path.read_text() for path in published.folder.iterdir())

    assert figures["clamped"]["income"]["missing"] == 1
    assert '"missing": 1' not in public
    assert Path(published.folder / "report.html").exists()


def test_a_mistake_about_the_place_or_the_format_costs_nothing(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, _ = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')
    (tmp_path / "file").touch()

    for out, form in ((tmp_path / "file" / "x", "csv"), (tmp_path / "out", "xls")):
        with pytest.raises(InputError):
            protect_file.protect(data, policy, out, output=OutputOptions(file_format=form))

    (account,) = budget_file.show(budget)
    assert account.spent == 0


def test_an_error_after_the_booking_says_that_it_stays(desk, tmp_path, monkeypatch):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, out = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')

    class Broken(OpenDPNoise):
        def _laplace(self, values, scale):
            raise InternalError(f"No more entropy for {values.size} draws at {scale}.")

    monkeypatch.setattr(protect_table, "OpenDPNoise", Broken)
    with pytest.raises(InternalError, match=r"Epsilon 0\.4 still counts as spent"):
        protect_file.protect(data, policy, out)


def test_a_required_epsilon_is_not_met_by_noise_that_is_not_secure(desk):
    data, policy, out = desk(more="[require]\ndifferential-privacy = 1.0\n")

    with pytest.raises(ClaimViolationError, match="no proved claim is left"):
        protect_file.protect(data, policy, out, noise=RecordingNoise())

    assert not out.exists()


def test_the_officer_reads_what_is_left_of_the_budget(desk, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))

    published = protect_file.protect(
        *desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')
    )

    figures = json.loads((published.internal / "figures.json").read_text())
    assert figures["budget"].pop("head")["events"] == 2
    assert figures["budget"] == {
        "source": "people", "epsilon": 0.4, "rho": None, "remaining": 0.6, "warnings": [],
    }  # fmt: skip
    page = (published.internal / "report.html").read_text()
    assert "<dt>Left in the budget</dt><dd>epsilon 0.6</dd>" in page


@pytest.mark.parametrize("epsilon", ["1e400", "1e-400", "inf", "nan", "0", "-0.5"])
def test_an_epsilon_of_no_ordinary_size_is_refused(desk, epsilon):
    data, policy, out = desk()
    policy.write_text(policy.read_text().replace("epsilon = 0.4", f"epsilon = {epsilon}"))

    with pytest.raises(InputError, match="epsilon"):
        protect_file.protect(data, policy, out)


def test_no_record_decides_how_the_others_are_read(desk):
    """One byte, in a column that is dropped, made all other towns unknown at any epsilon."""
    data, policy, out = desk()
    text = data.read_text("utf-8")
    header, first, *rest = text.splitlines()
    policy.write_text(policy.read_text().replace('"north"', '"nörth"'))
    data.write_bytes("\n".join([header, *rest, ""]).replace("north", "nörth").encode()
                     + b"Ren\xe9" + first[first.index(",") :].encode() + b"\n")  # fmt: skip

    found = protect_file.protect(data, policy, out)
    assert "Read as utf-8, delimiter ','." in found.notes
    lost = json.loads((found.internal / "figures.json").read_text())["clamped"]["region"]
    assert lost["unknown"] == 1  # one row says north

    data.write_bytes(text.replace("north", "nörth").encode("cp1252"))
    found = protect_file.protect(
        data,
        policy,
        out,
        reading=ReadingOptions(encoding="cp1252"),
        output=OutputOptions(force=True),
    )
    lost = json.loads((found.internal / "figures.json").read_text())["clamped"]["region"]
    assert lost["unknown"] == 0


def test_several_rows_a_person_are_told_to_the_steward_alone(desk):
    data, policy, out = desk()
    text = policy.read_text()
    frame = pl.read_csv(data)
    frame.with_columns(name=pl.lit("one person")).write_csv(data)
    policy.write_text(
        text.replace('name = "identifier"', 'name = { role = "identifier", privacy_unit = true }')
    )

    with pytest.raises(InputError, match=r"11 more rows than persons\. State max_contributions"):
        protect_file.protect(data, policy, out, output=OutputOptions(file_format="csv"))

    stated = 'name = { role = "identifier", privacy_unit = true, max_contributions = 3 }'
    policy.write_text(text.replace('name = "identifier"', stated).replace("laplace", "privtree"))
    published = protect_file.protect(data, policy, out, output=OutputOptions(file_format="csv"))
    assert not [note for note in published.notes if "rows beyond" in note]
    assert (
        "9 rows beyond the number of rows per person that the policy states were left out"
        in (published.internal / "report.html").read_text()
    )
    public = "".join(
        path.read_text() for path in published.folder.iterdir() if path.suffix != ".parquet"
    )
    assert "per person were left out" not in public


def test_a_release_that_is_paid_for_and_cannot_be_put_in_place_is_kept_and_finished(
    desk, tmp_path, monkeypatch
):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, out = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "commit", full)
        with pytest.raises(InputError, match=r"Epsilon 0\.4 counts as spent\. .* is kept in '"):
            protect_file.protect(data, policy, out)
    kept = tmp_path / "out.unfinished"
    drawn = (kept / "public" / "release.csv").read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not out.exists()
    with pytest.raises(InputError, match="unfinished release whose epsilon is spent"):
        protect_file.protect(data, policy, out)

    done = CliRunner().invoke(app, ["finish", str(out)])

    assert done.exit_code == 0, done.output
    assert (out / "release.csv").read_bytes() == drawn
    assert not kept.exists()
    (account,) = budget_file.show(budget)
    assert [entry.status for entry in account.entries] == ["released"]
    assert account.spent == Fraction(2, 5)

    CliRunner().invoke(app, ["report", str(out), str(data), "--policy", str(policy)])
    assert "Confidential report on a release" in (tmp_path / "out.internal/report.html").read_text()


def test_what_was_kept_and_changed_is_not_put_in_place(desk, tmp_path, monkeypatch):
    data, policy, out = desk()

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "commit", full)
        with pytest.raises(InputError, match="is kept in '"):
            protect_file.protect(data, policy, out)
    table = tmp_path / "out.unfinished" / "public" / "release.csv"
    table.write_bytes(table.read_bytes()[:-1] + b"x")

    with pytest.raises(InputError, match="is damaged"):
        protect_file.finish(out)
    assert not out.exists()


@pytest.mark.parametrize("text", ["[null]", '{"candidates": null, "baselines": []}', "[" * 9999])
def test_a_comparison_that_cannot_be_shown_is_refused_before_anything_is_booked(
    desk, tmp_path, text
):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, out = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')
    (tmp_path / "found.json").write_text(text)

    with pytest.raises(InputError, match="--comparison: expected what"):
        protect_file.protect(
            data, policy, out, evaluation=EvaluationOptions(comparison=tmp_path / "found.json")
        )

    (account,) = budget_file.show(budget)
    assert not account.entries


def test_a_disk_without_room_is_noticed_before_anything_is_booked(desk, tmp_path, monkeypatch):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    data, policy, out = desk(more=f'[budget]\nfile = "{budget.name}"\nsource = "people"\n')

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match="no space left on device"):
        protect_file.protect(data, policy, out)

    (account,) = budget_file.show(budget)
    assert not account.entries
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "budget.db", "people.csv", "policy.toml"
    ]  # fmt: skip


def test_a_drawn_release_that_fails_a_check_is_kept_for_its_steward_alone(tmp_path):
    """Failing is certain: two rows do not have three jobs."""
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(1))
    pl.DataFrame({"age": [30, 40], "job": ["a", "b"]}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "policy.toml").write_text("""version = 1
        columns.age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 100] }
        columns.job = { role = "confidential", kind = "nominal", categories = ["a", "b", "c"] }
        protect = { method = "privtree", epsilon = 0.4 }
        require.l-diversity = { l = 3, column = "job" }
        budget = { file = "budget.db", source = "people" }""")
    out = tmp_path / "out"

    with pytest.raises(ClaimViolationError) as stopped:
        protect_file.protect(tmp_path / "t.parquet", tmp_path / "policy.toml", out)

    kept = tmp_path / "out.internal" / "stopped"
    assert "Epsilon 0.4 still counts as spent" in str(stopped.value)
    assert f"kept in '{kept}'" in str(stopped.value)
    assert stopped.value.exit_code == 3
    assert not out.exists()
    assert (kept / "manifest.json").exists()
    assert kept.parent.stat().st_mode & 0o077 == 0
    (account,) = budget_file.show(budget)
    assert account.spent == Fraction("0.4")

"""An epsilon release of a text file needs to know how it is written, through every door."""

import json

import polars as pl
import pytest
from tests.workbook import write
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.core import DifferentialPrivacy, Status
from shoal.errors import InputError
from shoal.pipeline.options import EvaluationOptions, ReadingOptions
from shoal.publish import protect_file

COLUMNS = """version = 1
one_row_per_person = true
[columns]
balance = { role = "quasi-identifier", kind = "numeric", bounds = [0, 10000] }
born = { role = "quasi-identifier", kind = "date", bounds = [1950-01-01, 2000-01-01] }
"""
EPSILON = COLUMNS + '[protect]\nmethod = "laplace"\nepsilon = 1\n'
LINES = """[reading]
delimiter = ","  # or ";" or "\\t"
decimal = "."  # or ","
date_format = "yyyy-mm-dd"  # or "dd.mm.yyyy"
"""


@pytest.fixture
def spanish(tmp_path):
    rows = [f"{100 + row},5;{1 + row % 28:02}/02/{1960 + row % 30}" for row in range(40)]
    path = tmp_path / "balances.csv"
    path.write_text("\n".join(["balance;born", *rows, ""]))
    return path


def refusals(path, policy):
    """What every door says, and the command's exit code."""
    (path.parent / "p.toml").write_text(policy)
    options = ["--policy", str(path.parent / "p.toml")]
    out = path.parent / "out"
    runs = [CliRunner().invoke(app, ["protect", str(path), *options, "--out", str(out)]),
            CliRunner().invoke(app, ["plan", *options, "--data", str(path)])]  # fmt: skip
    assert [run.exit_code for run in runs] == [2, 2]
    for door in (
        lambda: shoal.protect(path, policy),
        lambda: shoal.protect(str(path), policy),
        lambda: shoal.plan(policy, data=path),
        lambda: protect_file.protect(path, path.parent / "p.toml", out),
    ):
        with pytest.raises(InputError) as error:
            door()
        yield str(error.value)
    yield from (run.output for run in runs)


def test_every_door_refuses_with_lines_that_can_be_copied(spanish):
    for said in refusals(spanish, EPSILON):
        assert "so the policy says how it is written" in said
        assert LINES.strip() in said
    shoal.plan(EPSILON + LINES, data=spanish)


def test_only_what_is_not_stated_is_asked_for(spanish):
    stated = EPSILON + '[reading]\ndelimiter = ";"\ndate_format = "dd/mm/yyyy"\n'

    for said in refusals(spanish, stated):
        assert 'decimal = "."' in said
        assert "delimiter = " not in said
        assert "date_format = " not in said


@pytest.mark.parametrize("name", ["t.parquet", "t.sav", "t.xlsx", "t.arrow", None])
def test_a_table_with_types_or_no_epsilon_needs_no_reading(name):
    shoal.plan(EPSILON, data=name)
    shoal.plan(COLUMNS + '[protect]\nmethod = "mdav"\nk = 3\n', data="t.csv")


def test_what_was_read_has_its_delimiter_and_still_needs_its_decimal_mark(spanish):
    raw = shoal.read(spanish, alone=True)

    with pytest.raises(InputError, match=r'decimal = "\."') as error:
        shoal.protect(raw, EPSILON)
    assert "delimiter = " not in str(error.value)


def test_init_states_what_an_epsilon_release_needs(spanish):
    drafted = str(shoal.draft(spanish))
    stated = drafted[drafted.index("[reading]") :].partition("[protect]")[0]

    assert 'delimiter = ";"' in stated
    assert 'decimal = ","' in stated
    assert 'date_format = "yyyy-mm-dd"' in stated  # for columns that state no other
    assert 'date_format = "%d/%m/%Y"' in drafted
    dated = EPSILON.replace('kind = "date"', 'kind = "date", date_format = "%d/%m/%Y"')
    assert shoal.protect(spanish, dated + stated).data.height == 40


def test_a_comma_is_read_as_it_is_stated(spanish):
    """Without it nearly every balance became the same constant."""
    policy = EPSILON + '[reading]\ndelimiter = ";"\ndecimal = ","\ndate_format = "dd/mm/yyyy"\n'
    (spanish.parent / "p.toml").write_text(policy)

    done = protect_file.protect(spanish, spanish.parent / "p.toml", spanish.parent / "out",
                                evaluation=EvaluationOptions(evaluate=False))  # fmt: skip

    figures = (done.internal / "figures.json").read_text()
    assert '"unreadable": 0' in figures
    assert '"unreadable": 40' not in figures


def epsilon_claims(release):
    return [c for c in release.claims if isinstance(c.guarantee, DifferentialPrivacy)]


def test_cells_of_several_lines_make_the_promise_conditional(spanish):
    policy = EPSILON + '[reading]\ndelimiter = ";"\ndecimal = ","\ndate_format = "dd/mm/yyyy"\n'

    (plain,), (loose,) = (
        epsilon_claims(shoal.protect(spanish, policy + more)) for more in ("", "multiline = true\n")
    )

    assert plain.status is Status.PROVED
    assert loose.status is Status.CONDITIONAL
    assert loose.assumes[-1] == "whoever is in the file, every quote in it is closed"


def test_a_sheet_of_unstated_rows_makes_the_promise_conditional(tmp_path):
    pytest.importorskip("fastexcel")
    rows = [[100 + row, f"{1960 + row}-01-01"] for row in range(30)]
    write(tmp_path / "t.xlsx", {"S": [["balance", "born"], *rows, [None, None]]})

    releases = [
        shoal.protect(tmp_path / "t.xlsx", EPSILON + more)
        for more in ("", "[reading]\nrows = 31\n")
    ]

    (loose,), (plain,) = map(epsilon_claims, releases)
    assert "31" not in json.dumps(releases[1].manifest.policy)
    assert loose.status is Status.CONDITIONAL
    assert loose.assumes[-1] == "whoever is in the sheet, its last row is not empty"
    assert plain.status is Status.PROVED


def test_the_delimiter_of_the_command_counts_as_stated(spanish):
    policy = EPSILON + '[reading]\ndecimal = ","\ndate_format = "dd/mm/yyyy"\n'
    (spanish.parent / "p.toml").write_text(policy)

    done = protect_file.protect(spanish, spanish.parent / "p.toml", spanish.parent / "out",
                                reading=ReadingOptions(delimiter=";"),
                                evaluation=EvaluationOptions(evaluate=False))  # fmt: skip

    assert done.release.data.height == 40


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_date_out_of_range_is_refused_or_missing_and_ends_no_process(tmp_path, suffix):
    days = [10_000 + row for row in range(29)] + [2**31 - 1]
    born = pl.Series("born", days, dtype=pl.Int32).cast(pl.Date)
    frame = pl.DataFrame([pl.Series("balance", range(30)), born])
    path = tmp_path / f"t.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    (tmp_path / "k.toml").write_text(COLUMNS + '[protect]\nmethod = "mdav"\nk = 3\n')

    run = CliRunner().invoke(app, ["protect", str(path), "--policy", str(tmp_path / "k.toml"),
                                   "--out", str(tmp_path / "out")])  # fmt: skip

    assert run.exit_code == 2
    assert "Column 'born' has a date outside the years 1 to 9999 in row 30" in run.output
    for data in (path, frame, frame.to_arrow()):
        with pytest.raises(InputError, match="outside the years 1 to 9999 in row 30"):
            shoal.protect(data, COLUMNS + '[protect]\nmethod = "mdav"\nk = 3\n')
        assert len(shoal.protect(data, EPSILON).data) == 30

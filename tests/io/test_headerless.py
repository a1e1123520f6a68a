"""A file without a header: its first person stands where names are expected, and is not quoted."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app

NAMES = ("name", "age", "region", "income")
POLICY = """version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
region = { role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }
income = { role = "confidential", kind = "numeric", bounds = [0, 9000] }
"""
METHODS = {"mdav.toml": "k = 3", "laplace.toml": "epsilon = 1"}
GOOD = "name,age,region,income\n" + "".join(
    f"p{i},{20 + i},{('north', 'south')[i % 2]},{100 * i}\n" for i in range(40)
)
# Letters that no sentence of ours is made of, so that a cell is known wherever it turns up.
CELL = st.text("ßþðŋĸłŧæœøąćęśźż", min_size=3, max_size=9)
ROW = st.lists(CELL, min_size=1, max_size=6, unique=True)


@st.composite
def tables(draw):
    """A file of cells alone; some have a cell that is a name of the policy by chance."""
    rows = [draw(ROW)]
    width = len(rows[0])
    chance = draw(st.sampled_from([None, *NAMES]))
    if chance is not None and width > 1:
        rows[0][draw(st.integers(0, width - 1))] = chance
    rows += draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=3, max_size=8))
    mark = draw(st.sampled_from([",", ";", "\t"]))
    return rows, "\n".join(mark.join(row) for row in rows) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("headerless")
    for file, parameters in METHODS.items():
        method = file.removesuffix(".toml")
        text = f'{POLICY}[protect]\nmethod = "{method}"\n{parameters}\n'
        (place / file).write_text(text, encoding="utf-8")
    (place / "good.csv").write_text(GOOD)
    return place


def commands(folder):
    bad, good, out = (str(folder / name) for name in ("bad.csv", "good.csv", "out"))
    for file in METHODS:
        stated = ("--policy", str(folder / file))
        yield ("protect", bad, *stated, "--out", out)
        yield ("protect", good, *stated, "--out", out, "--control", bad)
        yield ("check", bad, *stated)
        yield ("evaluate", bad, good, *stated, "--only", "risk")
        yield ("evaluate", good, bad, *stated, "--only", "risk")
        yield ("evaluate", good, bad, *stated, "--rename", "Age=age")
        yield ("evaluate", good, good, *stated, "--control", bad, "--only", "risk")
        yield ("compare", bad, *stated, "--out", out, "--jobs", "1")
        yield ("compare", good, *stated, "--out", out, "--jobs", "1", "--on-sample", bad)
    yield ("audit", *stated, "--table", bad)
    yield ("audit", *stated, "--pair", bad, bad)
    yield ("init", bad, "--out", str(folder / "new.toml"), "--force")


@given(table=tables())
@settings(max_examples=8)
def test_no_cell_of_a_file_without_a_header_reaches_the_screen(folder, table):
    rows, text = table
    (folder / "bad.csv").write_text(text, encoding="utf-8")
    cells = {cell for row in rows for cell in row} - set(NAMES)

    for command in commands(folder):
        done = CliRunner().invoke(app, list(command))

        # By chance a column is named as the identifier, or there is one that can be measured.
        codes = {"init": {0}, "check": {2, 3}, "evaluate": {0, 2}}.get(command[0], {2})
        assert done.exit_code in codes, (command, done.output)
        assert not [cell for cell in cells if cell in done.output], (command, done.output)


@given(table=tables())
@settings(max_examples=30)
def test_no_name_of_a_frame_that_its_policy_does_not_know_is_quoted(folder, table):
    rows, _ = table
    frame = pl.DataFrame(rows[1:], schema=rows[0], orient="row")

    for call in (shoal.protect, shoal.check):
        with pytest.raises(shoal.ShoalError) as caught:
            call(frame, folder / "mdav.toml")

        assert not [cell for cell in set(rows[0]) - set(NAMES) if cell in str(caught.value)]


def test_the_sentence_says_how_many_there_are_and_what_to_do(folder):
    (folder / "bad.csv").write_text("Wilhelmina,41,north,8841\n" * 3)

    done = CliRunner().invoke(
        app, ["check", str(folder / "bad.csv"), "--policy", str(folder / "mdav.toml")]
    )

    assert done.stderr == (
        "shoal: The table has 4 columns, but none of the 3 names in the policy. If the file lacks "
        "a header, add a row of column names; if it has one, use its own policy.\n"
    )


@pytest.mark.parametrize("mark", [";", "|", "~", " ", "\t"])
def test_a_wrong_delimiter_is_told_from_a_missing_header(folder, mark):
    stated = "," if mark != "," else ";"
    (folder / "bad.csv").write_text(GOOD.replace(",", mark))

    done = CliRunner().invoke(app, ["protect", str(folder / "bad.csv"), "--policy",
                                    str(folder / "mdav.toml"), "--out", "out",
                                    "--delimiter", stated])  # fmt: skip

    assert done.exit_code == 2
    if mark in ";|\t":  # marks of tables: the reader itself sees them in every line
        assert f"The file seems to have the delimiter {mark!r}: state it" in done.stderr
    else:
        assert "the cells are split at another mark than the file has" in done.stderr
        assert f"State --delimiter {mark!r}" in done.stderr
    assert "lacks a header" not in done.stderr


@pytest.mark.parametrize("lines", ["name~age\nWilhelmina~31,5", "Members\nname,age\nWilhelmina,31"])
def test_a_line_that_has_more_cells_than_a_header_of_one_points_at_title_and_delimiter(
    folder, lines
):
    (folder / "bad.csv").write_text(f"{lines}\n")

    done = CliRunner().invoke(app, ["init", str(folder / "bad.csv"), "--delimiter", ",",
                                    "--out", str(folder / "x.toml")])  # fmt: skip

    assert done.exit_code == 2
    assert "line 1 has one and line 2 more. Take out what stands above the header" in done.stderr
    assert "Wilhelmina" not in done.stderr


def test_a_misspelt_name_among_known_ones_is_still_quoted(folder):
    (folder / "bad.csv").write_text(GOOD.replace("income", "incme"))

    done = CliRunner().invoke(app, ["protect", str(folder / "bad.csv"), "--policy",
                                    str(folder / "mdav.toml"), "--out", "out"])  # fmt: skip

    assert "column 'incme' that the policy does not name. Did you mean 'income'?" in done.stderr

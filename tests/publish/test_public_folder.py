"""A release that was made in Python, written as the public folder that the command writes."""

import json
from html import escape

import polars as pl
import pytest

import shoal
from shoal.io import folders
from shoal.pipeline.options import OutputOptions
from shoal.publish import protect_file

POLICY = """
version = 1
one_row_per_person = true

[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 120] }
town = { role = "quasi-identifier", kind = "nominal", categories = ["a", "b"] }

[reading]
delimiter = ";"

[protect]
method = "mdav"
k = 3

[require]
k-anonymity = 3
"""
EPSILON = POLICY.replace('"mdav"\nk = 3', '"laplace"\nepsilon = 1').partition("[require]")[0]
EPSILON = EPSILON.replace('";"', '";"\ndecimal = "."')


@pytest.fixture
def table():
    return pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(30)],
            "age": [20 + i % 10 for i in range(30)],
            "town": ["a", "b"] * 15,
        }
    )


@pytest.fixture
def release(table):
    return shoal.protect(table, POLICY)


def test_a_release_is_written_as_the_public_folder_alone(release, tmp_path):
    folder = release.write(tmp_path / "out")

    assert shoal.verify(folder).holds
    assert {one.name for one in tmp_path.iterdir()} == {"out"}
    assert {one.name for one in folder.iterdir()} == {
        "codebook.xml", "datapackage.json", "manifest.json", "release.parquet", "report.html"
    }  # fmt: skip
    assert pl.read_parquet(folder / "release.parquet").equals(release.data)


def test_it_has_the_fields_of_the_folder_that_the_command_writes(table, release, tmp_path):
    table.write_csv(tmp_path / "people.csv", separator=";")
    (tmp_path / "policy.toml").write_text(POLICY)
    theirs = protect_file.protect(
        tmp_path / "people.csv", tmp_path / "policy.toml", tmp_path / "command",
        output=OutputOptions(file_format="parquet"),
    ).folder  # fmt: skip
    ours = release.write(tmp_path / "python")

    one, other = (json.loads((at / "manifest.json").read_text()) for at in (ours, theirs))
    for told in (one, other):
        # A frame has types that a CSV file lacks, and shuffled rows have other numbers.
        for key in ("created", "files", "columns"):
            del told[key]
        del told["checks"][0]["witness"]
    assert one == other


@pytest.mark.parametrize("file_format", ["csv", "xlsx", "sav", "dta", "xpt"])
def test_it_is_written_in_every_format(release, tmp_path, file_format):
    assert shoal.verify(release.write(tmp_path / "out", file_format=file_format)).holds


def test_a_csv_release_has_the_dialect_of_the_policy(release, tmp_path):
    release.write(tmp_path / "out", file_format="csv")

    assert (tmp_path / "out" / "release.csv").read_text().startswith("age;town\n")


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_a_release_of_another_library_is_written_too(table, tmp_path, kind):
    native = table.to_pandas() if kind == "pandas" else table.to_arrow()

    assert shoal.verify(shoal.protect(native, POLICY).write(tmp_path / "out")).holds


def test_an_epsilon_release_is_written_and_verified(table, tmp_path):
    folder = shoal.protect(table, EPSILON).write(tmp_path / "out")

    assert shoal.verify(folder)["accounting"].status == "verified"


def test_a_table_that_was_changed_since_is_not_written(table, tmp_path):
    release = shoal.protect(table.to_pandas(), POLICY)
    release.data.loc[0, "age"] = 119.0

    with pytest.raises(shoal.InputError, match="no longer the one that its claims are about"):
        release.write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_existing_release_is_replaced_only_if_forced_and_its_confidential_folder_goes(
    release, tmp_path
):
    out = release.write(tmp_path / "out")
    folders.internal_of(out).mkdir()

    with pytest.raises(shoal.InputError, match="exists already"):
        release.write(out)
    release.write(out, force=True)

    assert not folders.internal_of(out).exists()


def test_what_a_steward_should_confirm_is_shown_and_not_written(table, tmp_path):
    release = shoal.protect(table, POLICY.replace("= 3", "= 20"))

    assert "confirm  Columns 'age', 'town' have one value" in repr(release)
    with pytest.raises(shoal.InputError, match=r"accept_constant.*Nothing was written"):
        release.write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"file_format": "xls"}, "Expected a format among"),
        ({"guard_formulas": True}, "guard_formulas is for spreadsheets"),
    ],
)
def test_options_that_do_not_fit_are_refused(release, tmp_path, options, said):
    with pytest.raises(shoal.InputError, match=said):
        release.write(tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())


def test_a_path_and_what_was_read_are_protected_as_a_frame_is(table, tmp_path):
    table.write_csv(tmp_path / "people.csv", separator=";")

    of_path = shoal.protect(tmp_path / "people.csv", POLICY)
    of_read = shoal.protect(shoal.read(tmp_path / "people.csv"), POLICY)

    assert isinstance(of_path.data, pl.DataFrame)
    assert repr(of_path) == repr(of_read) == repr(shoal.protect(table, POLICY))


def test_beside_an_epsilon_a_file_is_read_cell_by_cell_or_not_at_all(table, tmp_path):
    table.write_csv(tmp_path / "people.csv", separator=";")
    table.write_parquet(tmp_path / "people.parquet")

    assert shoal.protect(tmp_path / "people.csv", EPSILON).data.height == 30
    assert shoal.protect(shoal.read(tmp_path / "people.parquet"), EPSILON).data.height == 30
    with pytest.raises(shoal.InputError, match="Hand over the path of the file"):
        shoal.protect(shoal.read(tmp_path / "people.csv"), EPSILON)


def test_what_was_read_shows_columns_and_no_cell(table, tmp_path):
    typed = table.with_columns(pl.col("town").cast(pl.Enum(["a", "b", "secret"])))
    typed.rename({"town": "<b>"}).write_parquet(tmp_path / "people.parquet")

    raw = shoal.read(tmp_path / "people.parquet")

    assert repr(raw) == "Table of 30 rows x 3 columns\n  name: String\n  age: Int64\n  <b>: Enum"
    assert raw._repr_html_() == f"<pre>{escape(repr(raw))}</pre>"
    assert pl.DataFrame(raw).equals(raw.frame)


def test_other_functions_take_paths_too(table, tmp_path):
    table.write_csv(tmp_path / "people.csv", separator=";")
    released = shoal.protect(tmp_path / "people.csv", POLICY).write(tmp_path / "out")
    read = shoal.read(tmp_path / "people.csv")

    assert all(one.holds for one in shoal.check(released / "release.parquet", POLICY))
    assert shoal.inspect(read, POLICY).rows == 30
    found = shoal.evaluate(
        tmp_path / "people.csv", released / "release.parquet", POLICY, which=["marginals"]
    )
    assert found.to_frame().height

import hashlib
import json
import os
import stat
import subprocess
import sys

import polars as pl
import pytest
from tests import leaving
from typer.testing import CliRunner

from shoal import io
from shoal.cli.commands import app
from shoal.errors import InputError
from shoal.io import folders
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.publish import evaluate_files, protect_file, verify_folder
from shoal.publish.verify_folder import verify

POLICY = """
version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric" }
region = { role = "quasi-identifier", kind = "nominal" }
income = { role = "confidential", kind = "numeric" }
[protect]
method = "mdav"
k = 3
[context]
approver = "Officer Canary"
"""


@pytest.fixture
def files(tmp_path, people):
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "people.csv", tmp_path / "policy.toml", tmp_path / "out"


DESCRIBED = ("codebook.xml", "datapackage.json")


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_folders_are_written_and_nothing_else(files, tmp_path):
    published = protect_file.protect(*files)

    assert listing(published.folder) == [*DESCRIBED, "manifest.json", "release.csv", "report.html"]
    assert listing(published.internal) == ["figures.json", "report.html"]
    assert listing(tmp_path) == ["out", "out.internal", "people.csv", "policy.toml"]
    assert stat.S_IMODE(published.internal.stat().st_mode) == 0o700
    assert stat.S_IMODE(published.folder.stat().st_mode) == 0o755


WRITE = {
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "xlsx": lambda frame, path: io.write(frame, path, labels={}),
    "sav": lambda frame, path: io.write(frame, path, labels=LABELS),
    "dta": lambda frame, path: io.write(frame, path, labels=LABELS),
    "xpt": lambda frame, path: io.write(frame, path, labels={}),
    "arrow": lambda frame, path: frame.write_ipc(path),
}
LABELS = {"values": {"sex": {"1": "female", "2": "male"}}, "columns": {"age": "Age in years"}}


@pytest.mark.parametrize(
    ("suffix", "released"),
    [("csv", "csv"), ("tsv", "csv"), ("xlsx", "xlsx"), ("sav", "sav"), ("dta", "dta"),
     ("xpt", "xpt"), ("arrow", "parquet")],
)  # fmt: skip
def test_a_release_has_the_format_of_its_input_and_says_how_it_is_made_again(
    files, people, suffix, released
):
    _, policy, out = files
    sex = 'sex = { role = "confidential", kind = "nominal" }\n[protect]'
    policy.write_text(POLICY.replace("[protect]", sex))
    data = policy.with_name(f"people.{suffix}")
    WRITE[suffix](people.with_columns(sex=pl.Series([1, 2] * (people.height // 2))), data)

    published = protect_file.protect(data, policy, out, evaluation=EvaluationOptions(False))

    table = out / f"release.{released}"
    assert listing(out) == [*DESCRIBED, "manifest.json", table.name, "report.html"]
    assert verify(out).holds
    raw = io.read(table)
    assert raw.frame["age"].cast(pl.Float64).to_list() == published.release.data["age"].to_list()
    if suffix in {"sav", "dta"}:
        assert raw.labels == LABELS["values"]
        assert raw.column_labels == LABELS["columns"]
    again = json.loads((published.internal / "figures.json").read_text())["again"]
    assert "--file-format" not in again["command"]
    assert ("file_format" in again["python"]) == (released != "parquet")


def test_boxes_of_an_spss_file_are_a_parquet_file_and_parquet_is_written_on_request(files, people):
    data, policy, out = files
    spss = data.with_suffix(".sav")
    io.write(people, spss, labels={})
    stated = OutputOptions(file_format="parquet")

    protect_file.protect(data, policy, out, output=stated)
    text = POLICY.replace('"mdav"', '"mondrian"\noutput = "tree"')
    known = sorted(people["region"].unique())
    policy.write_text(text.replace('"nominal" }', f'"nominal", categories = {known} }}'))
    boxes = protect_file.protect(spss, policy, out.with_name("boxes"))

    for folder in (out, boxes.folder):
        assert (folder / "release.parquet").is_file()
        assert verify(folder).holds


def test_a_released_table_that_its_format_has_no_room_for_is_a_parquet_file(files, people):
    data, policy, out = files
    long = people.with_columns(region=pl.col("region") + "x" * 32_767)
    book = data.with_suffix(".xlsx")
    io.write(people, book, labels={})
    long.write_csv(data)

    published = protect_file.protect(data, policy, out, output=OutputOptions(file_format="xlsx"))

    assert listing(out) == [*DESCRIBED, "manifest.json", "release.parquet", "report.html"]
    assert any(note.startswith("The table is a Parquet file: 'xlsx'") for note in published.notes)
    assert verify(out).holds


def test_the_officers_report_is_rendered_again_from_its_figures_alone(files):
    data, policy, out = files
    named = EvaluationOptions(names={str(data): "the people we asked.csv"})
    published = protect_file.protect(data, policy, out, evaluation=named)
    data.unlink()
    page, before = published.internal / "report.html", leaving.published(out)
    first = page.read_text()
    page.write_text("")

    done = CliRunner().invoke(app, ["report", str(out)])

    assert done.exit_code == 0, done.output
    assert page.read_text() == first
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert leaving.published(out) == before
    assert "Data: the people we asked.csv" in first
    assert "people.csv" not in first
    assert "Officer Canary" in first
    done = CliRunner().invoke(app, ["report", str(out), "--policy", str(policy)])
    assert "Expected DATA and --policy together, or DIR alone." in done.output
    (published.internal / "figures.json").unlink()
    done = CliRunner().invoke(app, ["report", str(out)])
    assert done.exit_code == 2
    assert "Give the original and the policy" in " ".join(done.output.split())


@pytest.mark.parametrize("form", ["parquet", "csv", "sav", "dta"])
def test_the_manifest_has_the_digest_of_the_release(files, form):
    published = protect_file.protect(*files, output=OutputOptions(file_format=form))

    manifest = json.loads((published.folder / "manifest.json").read_text())

    content = (published.folder / f"release.{form}").read_bytes()
    facts = manifest["files"][f"release.{form}"]
    assert facts == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


@pytest.mark.parametrize("method", ['"mdav"\nk = 3', '"auto"\nepsilon = 1'])
def test_dates_come_back_as_they_were_written(tmp_path, method):
    born = [f"{1 + row % 28:02}.{1 + row % 12:02}.{1950 + row}" for row in range(40)]
    seen = [f"{1 + row % 12}/17/2023 0{row % 10}:30" for row in range(40)]
    pl.DataFrame({"born": born, "seen": seen}).write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(f"""
version = 1
[columns]
[columns.born]
role = "quasi-identifier"
kind = "date"
date_format = "dd.mm.yyyy"
bounds = [1915-01-01, 2020-01-01]
[columns.seen]
role = "confidential"
kind = "date"
date_format = "%m/%d/%Y %H:%M"
bounds = [2020-01-01, 2025-01-01]
[reading]
delimiter = ","
[protect]
method = {method}
""")
    files = (tmp_path / "people.csv", tmp_path / "policy.toml")

    made = protect_file.protect(*files, tmp_path / "out", output=OutputOptions(file_format="csv"))
    typed = protect_file.protect(*files, tmp_path / "typed")

    text = pl.read_csv(made.folder / "release.csv", infer_schema=False)
    assert text["born"].str.contains(r"^\d\d\.\d\d\.\d{4}$").all()
    assert text["seen"].str.contains(r"^\d\d/\d\d/\d{4} \d\d:\d\d$").all()
    assert typed.release.data["born"].dtype == pl.Date
    assert verify_folder.verify(made.folder).holds
    evaluate_files.evaluate(files[0], made.folder / "release.csv", files[1])


def test_what_compares_with_the_original_stays_out_of_the_public_folder(files):
    published = protect_file.protect(*files, output=OutputOptions(file_format="csv"))

    public = "".join(path.read_text() for path in published.folder.iterdir())
    internal = (published.internal / "report.html").read_text()

    for secret in ("person 1", "Officer Canary", "SSE", "unique_on_quasi_identifiers"):
        assert secret not in public
    assert "CONFIDENTIAL" in internal
    assert "Officer Canary" in internal
    assert (
        "CONFIDENTIAL"
        in json.loads((published.internal / "figures.json").read_text())["confidential"]
    )


def test_an_existing_release_is_replaced_only_by_force(files):
    published = protect_file.protect(*files)
    first = (published.folder / "manifest.json").read_bytes()

    with pytest.raises(InputError, match="--force"):
        protect_file.protect(*files)
    assert (published.folder / "manifest.json").read_bytes() == first

    protect_file.protect(*files, output=OutputOptions(file_format="csv", force=True))
    assert listing(published.folder) == [*DESCRIBED, "manifest.json", "release.csv", "report.html"]


def test_force_never_replaces_a_folder_that_is_no_release(files):
    out = files[2]
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")

    with pytest.raises(InputError, match="is not a Shoal release"):
        protect_file.protect(*files, output=OutputOptions(force=True))

    assert listing(out) == ["thesis.txt"]


def test_a_plan_that_cannot_be_kept_stops_before_the_data_is_read(files):
    files[0].unlink()
    files[1].write_text(POLICY.replace("k = 3", "k = 3\n[require]\nk-anonymity = 4"))

    with pytest.raises(Exception, match="4-anonymity") as stopped:
        protect_file.protect(*files)

    assert stopped.type.__name__ == "ClaimViolationError"


def test_a_full_disk_leaves_nothing_behind(files, tmp_path):
    """The limit on file size stands in for a full disk: writing fails in the middle."""
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from shoal.cli.commands import app\n"
        "from shoal.publish import protect_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "sys.argv[0] = 'shoal'\n"
        "app()\n"
    )
    data, policy, out = map(str, files)
    done = subprocess.run(
        [sys.executable, "-c", program, "protect", data, "--policy", policy, "--out", out],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )

    assert done.returncode == 2, done.stderr
    assert "Cannot write" in done.stderr
    assert "Nothing was written" in done.stderr
    assert listing(tmp_path) == ["people.csv", "policy.toml"]


@pytest.mark.parametrize("wanted", [None, True, False])
def test_csv_cells_that_a_spreadsheet_would_run_are_guarded_unless_told(files, wanted):
    data, policy, out = files
    frame = pl.read_csv(data).with_columns(region=pl.lit("=1+1"))
    frame.write_csv(data)

    published = protect_file.protect(
        data, policy, out, output=OutputOptions(file_format="csv", guard_formulas=wanted)
    )

    released = pl.read_csv(published.folder / "release.csv")
    manifest = json.loads((published.folder / "manifest.json").read_text())
    assert released["region"].unique().to_list() == ["=1+1" if wanted is False else "'=1+1"]
    assert manifest["guard_formulas"] is (wanted is not False)
    assert (io.GUARDED in manifest["notes"]) is (wanted is not False)
    assert ("= + - @" in (published.folder / "report.html").read_text()) is (wanted is not False)
    again = io.read(published.folder / "release.csv").frame
    assert again["region"].unique().to_list() == ["=1+1"]  # so checks and measures see the values
    officer = json.loads((published.internal / "figures.json").read_text())["again"]["command"]
    assert ("--no-guard-formulas" in officer) is (wanted is False)


def test_the_note_on_formulas_does_not_tell_whether_there_were_any(files):
    data, policy, out = files
    plain = protect_file.protect(data, policy, out, output=OutputOptions(file_format="csv"))
    stated = OutputOptions(file_format="parquet")
    parquet = protect_file.protect(data, policy, out.with_name("other"), output=stated)

    assert io.GUARDED in plain.notes
    assert io.GUARDED not in parquet.notes


def test_homogeneous_groups_are_told_to_the_officer_alone(files):
    data, policy, out = files
    pl.read_csv(data).with_columns(income=pl.lit(7)).write_csv(data)

    published = protect_file.protect(data, policy, out)

    figures = json.loads((published.internal / "figures.json").read_text())
    assert figures["homogeneous"]["income"]["rows"] == 12
    assert (
        "that disclose the value of their members"
        in (published.internal / "report.html").read_text()
    )
    assert (
        "that disclose the value of their members"
        not in (published.folder / "report.html").read_text()
    )


def test_force_spares_a_folder_that_only_looks_like_a_release(files):
    out = files[2]
    out.mkdir()
    (out / "manifest.json").write_text("{}")
    (out / "thesis.txt").write_text("years of work")

    with pytest.raises(InputError, match="is not a Shoal release"):
        protect_file.protect(*files, output=OutputOptions(force=True))

    assert listing(out) == ["manifest.json", "thesis.txt"]


def test_a_release_is_never_written_inside_another(files):
    published = protect_file.protect(*files)

    with pytest.raises(InputError, match="lies inside the release"):
        protect_file.protect(files[0], files[1], published.folder / "sub")

    assert listing(published.folder) == [*DESCRIBED, "manifest.json", "release.csv", "report.html"]


def test_two_runs_do_not_write_one_release(files):
    with folders.workplace(files[2]), pytest.raises(InputError, match="Another run is writing"):
        protect_file.protect(*files)

    assert not files[2].exists()
    protect_file.protect(*files)


def test_no_canary_of_the_original_reaches_the_public_folder(tmp_path):
    """Values that only few have, in every role, and all that is measured."""
    rows = 60
    frame = pl.DataFrame(
        {
            "name": [f"canary-name-{i}" for i in range(rows)],
            "age": [20.123457 + 89 * (0.618034 * i % 1) for i in range(rows)],
            "region": ["canary-isle" if i == 7 else f"r{i % 3}" for i in range(rows)],
            "ill": [f"v{i % 4}" for i in range(rows)],
        }
    )
    frame.write_csv(tmp_path / "canary-file.csv")
    (tmp_path / "policy.toml").write_text(
        "version = 1\n[columns]\nname = 'identifier'\n"
        "age = { role = 'quasi-identifier', kind = 'numeric', bounds = [0, 110] }\n"
        "region = { role = 'quasi-identifier', kind = 'nominal', "
        "categories = ['r0', 'r1', 'r2', 'canary-isle'], observed = true }\n"
        "ill = { role = 'confidential', kind = 'nominal' }\n"
        "[protect]\nmethod = 'mdav'\nk = 5\n[evaluate]\ngroups = 'ill'\nrules = ['age <= 10']\n"
        "[context]\npurpose = 'canary-purpose'\n"
    )

    done = protect_file.protect(
        tmp_path / "canary-file.csv",
        tmp_path / "policy.toml",
        tmp_path / "out",
        output=OutputOptions(file_format="csv"),
    )

    public = "".join(path.read_text() for path in done.folder.iterdir())
    figures = json.loads((done.internal / "figures.json").read_text())
    assert "canary" not in public
    assert not any(str(age) in public for age in frame["age"])
    assert "age &lt;= 10" not in public
    for row in figures["measured"]["figures"]:
        assert row["sentence"] not in public
    assert "canary-purpose" in (done.internal / "report.html").read_text()
    assert "canary-name" not in (done.internal / "report.html").read_text()


def test_files_are_measured_as_the_policy_says_they_are_written(tmp_path, people):
    # A colon is not among the delimiters that are found out.
    people.write_csv(tmp_path / "people.csv", separator=":")
    (tmp_path / "policy.toml").write_text(POLICY + '[reading]\ndelimiter = ":"\n')
    page = tmp_path / "evaluation.html"
    files = tmp_path / "people.csv", tmp_path / "people.csv", tmp_path / "policy.toml"

    found = evaluate_files.evaluate(*files, out=page, only="utility")

    assert found.figures
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="exists already"):
        evaluate_files.evaluate(*files, out=page, only="utility")
    with pytest.raises(InputError):
        evaluate_files.evaluate(*files, reading=ReadingOptions(delimiter=";"), only="utility")

"""The data package and the codebook of a release: valid, complete, and derived from the manifest.

The package is validated by the reference implementation. The schema of DDI Codebook 2.5 is not
ours to keep; the rules of the elements that we write are stated here, as it has them.
"""

import csv
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.io.metadata import parse
from shoal.publish.released_folder import read_labels
from shoal.publish.verify_folder import verify
from shoal.report.metadata import CODEBOOK, METADATA, PACKAGE, describe_release

POLICY = """
version = 1
one_row_per_person = true
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 120], label = "Age in years" }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["1", "2"], label = "Sex", value_labels = { "1" = "female", "2" = "male" } }
trust = { role = "confidential", kind = "ordinal", categories = ["1", "2", "3"], missing = ["-9"], value_labels = { "1" = "low", "2" = "middle", "3" = "high", "-9" = "refused" } }
day = { role = "other", kind = "date", date_step = "month", date_format = "dd.mm.yyyy" }
w = { role = "other", kind = "numeric", sampling_weight = true }
[reading]
delimiter = ";"
decimal = ","
[protect]
method = "mdav"
k = 3
[require]
k-anonymity = 3
"""  # noqa: E501 (a line for each column)
HOSTILE = 'a"<b>&\u202e\x01\ufffe'


@pytest.fixture(scope="module")
def table():
    n = 60
    return pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(n)],
            "age": [20 + i * 7 % 50 for i in range(n)],
            "sex": [str(1 + i % 2) for i in range(n)],
            "trust": [("1", "2", "3", "-9")[i % 4] for i in range(n)],
            "day": [f"{1 + i % 28:02}.0{1 + i % 9}.2024" for i in range(n)],
            "w": [100.5 + i % 3 for i in range(n)],
        }
    )


@pytest.fixture(scope="module")
def release(table):
    return shoal.protect(table, POLICY)


@pytest.fixture
def folder(release, tmp_path):
    return release.write(tmp_path / "out", file_format="csv")


ELEMENTS = {
    "codeBook": "docDscr stdyDscr fileDscr* dataDscr",
    "docDscr": "citation",
    "stdyDscr": "citation stdyInfo method",
    "citation": "titlStmt prodStmt",
    "titlStmt": "titl",
    "prodStmt": "prodDate software",
    "stdyInfo": "abstract",
    "method": "dataColl notes*",
    "dataColl": "weight",
    "fileDscr": "fileTxt",
    "fileTxt": "fileName dimensns",
    "dimensns": "caseQnty varQnty",
    "dataDscr": "var*",
    "var": "labl catgry* derivation varFormat",
    "catgry": "catValu labl",
    "derivation": "drvdesc",
}
"""What may stand in an element, in the order of its schema; all else holds text alone."""
NEEDED = {"codeBook": {"stdyDscr"}, "stdyDscr": {"citation"}, "citation": {"titlStmt"}}
ATTRIBUTES = {
    "codeBook": {"version": {"2.5"}},
    "prodDate": {"date": None},
    "software": {"version": None},
    "notes": {"type": None},
    "var": {
        "ID": None, "name": None, "wgt": {"wgt", "not-wgt"}, "wgt-var": None,
        "intrvl": {"contin", "discrete"}, "nature": {"nominal", "ordinal"},
    },
    "catgry": {"missing": {"Y", "N"}},
    "varFormat": {"type": {"character", "numeric"}, "category": {"date", "other"}},
}  # fmt: skip


def assert_valid(text):
    """Check a codebook by the rules of its elements."""
    root = ET.fromstring(text)  # noqa: S314 (ours)
    assert root.tag == "{ddi:codebook:2_5}codeBook"
    ids = [item.get("ID") for item in root.iter() if item.get("ID")]
    assert len(set(ids)) == len(ids)
    for item in root.iter():
        name = item.tag.partition("}")[2]
        allowed = ELEMENTS.get(name, "").split()
        inside = [child.tag.partition("}")[2] for child in item]
        order = [word.rstrip("*") for word in allowed]
        places = [order.index(child) for child in inside]
        assert places == sorted(places), name
        assert all(f"{c}*" in allowed for c in inside if inside.count(c) > 1), name
        assert NEEDED.get(name, set()) <= set(inside), name
        assert not (inside and (item.text or "").strip()), name
        stated = ATTRIBUTES.get(name, {})
        for key, value in item.attrib.items():
            assert key in stated, (name, key)
            assert stated[key] is None or value in stated[key]
        assert item.get("wgt-var") in {None, *ids}
    return root


def test_the_codebook_has_each_variable_with_its_labels_and_what_was_done(folder):
    root = assert_valid((folder / CODEBOOK).read_text("utf-8"))

    variables = {item.get("name"): item for item in root.iterfind(".//{*}var")}
    assert [*variables] == ["age", "sex", "trust", "day", "w"]
    assert variables["age"].findtext("{*}labl") == "Age in years"
    assert variables["trust"].get("nature") == "ordinal"
    assert [
        (c.findtext("{*}catValu"), c.findtext("{*}labl"), c.get("missing"))
        for c in variables["trust"].iterfind("{*}catgry")
    ] == [("1", "low", None), ("2", "middle", None), ("3", "high", None), ("-9", "refused", "Y")]
    assert "protected by the method" in variables["age"].findtext(".//{*}drvdesc")
    assert "first day of their month" in variables["day"].findtext(".//{*}drvdesc")
    assert variables["w"].get("wgt") == "wgt"
    assert variables["age"].get("wgt-var") == variables["w"].get("ID")
    assert root.findtext(".//{*}caseQnty") == "60"


def test_the_package_is_valid_by_the_reference_implementation(folder):
    command = [sys.executable, "-W", "ignore", "-m", "frictionless", "validate", "--json", PACKAGE]

    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    found = json.loads(done.stdout)
    assert (done.returncode, found["valid"], found["stats"]["errors"]) == (0, True, 0), done.stdout
    # The table itself was read by it, with its types.
    assert found["tasks"][0]["stats"]["rows"] == 60


def test_the_package_says_how_the_table_is_read_and_what_values_mean(folder):
    package = json.loads((folder / PACKAGE).read_text("utf-8"))

    (resource,) = package["resources"]
    assert resource["path"] == "release.csv"
    assert resource["dialect"] == {"delimiter": ";"}
    fields = {item["name"]: item for item in resource["schema"]["fields"]}
    assert fields["age"]["title"] == "Age in years"
    assert fields["w"]["weight"] is True
    assert fields["w"]["decimalChar"] == ","
    assert fields["day"]["format"] == "%d.%m.%Y"
    # Confidential values are as they were; protected ones may be other texts than the categories.
    assert fields["trust"]["categories"][2] == {"value": "3", "label": "high"}
    assert fields["sex"]["enumLabels"] == {"1": "female", "2": "male"}
    assert "conditional" in package["description"] or "proved" in package["description"]


def test_what_is_written_is_read_back(folder):
    with (folder / "release.csv").open(encoding="utf-8") as file:
        names = next(csv.reader(file, delimiter=";"))
    package, codebook = (
        parse((folder / name).read_bytes(), names, name) for name in (PACKAGE, CODEBOOK)
    )

    assert package.labels == codebook.labels == {"age": "Age in years", "sex": "Sex"}
    assert package.weights == codebook.weights == ["w"]
    assert codebook.missing["trust"] == ["-9"]
    meanings = {"1": "low", "2": "middle", "3": "high"}
    assert package.values["trust"] == meanings
    assert codebook.values["trust"] == {**meanings, "-9": "refused"}


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx", "xpt", "sav"])
@pytest.mark.parametrize("name", METADATA)
def test_verify_refuses_other_metadata_whose_digest_was_renewed(release, tmp_path, form, name):
    out = release.write(tmp_path / "out", file_format=form)
    assert verify(out).holds
    text = (out / name).read_text("utf-8")
    (out / name).write_text(text.replace("Age in years", "Age in weeks"), encoding="utf-8")
    assert "its SHA-256" in str(verify(out)["files"])
    # SPSS keeps a part of the labels, so there the digest alone is compared.
    reported = str(verify(out)["report"])
    assert (name in reported and "does not hold" in reported) is (form != "sav")
    (out / name).unlink()
    assert "missing" in str(verify(out)["files"])


@given(st.text(), st.text(min_size=1), st.text())
def test_no_label_can_break_it(release, label, value, meaning):
    files = {"release.csv": {"sha256": "0", "bytes": 1}}
    manifest = release.manifest.model_validate({**release.manifest.as_values(), "files": files,
        "dialect": {"delimiter": ",", "decimal": ".", "encoding": "utf-8"}})  # fmt: skip
    labels = {"columns": {"age": label + HOSTILE}, "values": {"sex": {value: meaning + HOSTILE}}}

    texts = describe_release(manifest, labels)

    assert_valid(texts[CODEBOOK])
    texts[CODEBOOK].encode("utf-8")
    json.loads(texts[PACKAGE].encode("utf-8"))


def test_labels_are_read_where_the_format_has_them(release, tmp_path):
    for form in ("csv", "parquet"):
        out = release.write(tmp_path / form, file_format=form)
        assert read_labels(out, release.manifest.model_copy(update={"files": json.loads(
            (out / "manifest.json").read_text("utf-8"))["files"]})) == release.labels  # fmt: skip

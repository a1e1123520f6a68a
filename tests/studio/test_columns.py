"""Columns on the first two screens: how they were read, asked about, edited and grouped."""

import re
from html import unescape

import polars as pl
import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")
pytest.importorskip("fastexcel", reason="needs the extra 'excel'")

from tests import workbook

from shoal.policy.load import to_json_value
from shoal.studio import policy_document, profile

ROWS = 60
VISITS = "\n".join(
    [
        "patient_id;born;amount;region;plz",
        *(
            f"P{i % 25};0{1 + i % 9}/0{1 + i % 8}/19{50 + i % 40};{i},5;"
            f"{('north', 'south', 'nobody said')[i % 3]};{10115 + 1000 * (i % 4)}"
            for i in range(ROWS)
        ),
    ]
).encode()


@pytest.fixture(scope="module")
def client(served):
    with served.client(follow_redirects=True) as made:
        yield made


@pytest.fixture(scope="module")
def visits(client, tools):
    """A workspace with a file in a dialect, by its id."""
    made = tools.new(client)
    tools.with_table(client, made, VISITS, "visits.csv")
    return made


def plain(page):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def policy(client, id_):
    return to_json_value(policy_document.parse_toml(client.served.studio.store.load(id_).policy))


def test_how_a_file_was_read_is_shown_asked_about_and_corrected(client, visits, tools, served):
    def reread(**form):
        answer = client.post(f"/w/{visits}/data/reading", data=form)
        assert answer.status_code == 200
        job = tools.loaded(client, visits).jobs["profile"]
        return tools.ended(client, job)

    page = client.get(f"/w/{visits}/data").text
    shown = plain(page)
    for words in ("Between two cells semicolon", "Decimal mark comma", "Dates dd/mm/yyyy",
                  "Does patient_id number the persons?", "0.5 to 59.5", "north 33%",
                  "inspection that no file records"):  # fmt: skip
        assert words in shown, words
    assert page.count('class="spark') == 4
    assert "P24" not in page  # no cell of an identifier, and no row
    for words in ("%d", "privacy_unit", "date_format", "max_contributions"):
        assert words not in shown
    # A semicolon between cells says that days come first; the steward may know better.
    assert policy(client, visits)["columns"]["born"]["date_format"] == "%d/%m/%Y"

    client.post(f"/w/{visits}/roles/rows", data={"places": "3", "role": "other", "confirm": "yes"})
    client.post(f"/w/{visits}/data/answer", data={"question": "0", "answer": "no"})
    assert policy(client, visits)["columns"]["patient_id"] == "identifier"
    assert "Undo: who numbers the persons of patient_id" in plain(
        client.get(f"/w/{visits}/data").text
    )
    assert reread(missing="nobody said", dates="month")["state"] == "done"
    read = policy(client, visits)
    assert read["reading"] == {
        "delimiter": ";", "encoding": "utf-8", "decimal": ",", "date_format": "yyyy-mm-dd",
        "missing": ["nobody said"],
    }  # fmt: skip
    assert read["columns"]["born"]["date_format"] == "%m/%d/%Y"
    assert read["columns"]["region"]["role"] == "other"  # confirmed, so kept
    assert read["columns"]["patient_id"] == {"role": "identifier", "privacy_unit": True}
    page = plain(client.get(f"/w/{visits}/data").text)
    assert "20 (33%)" in page
    assert "Missing cells nobody said" in page

    assert reread(delimiter="|")["state"] == "failed"  # it splits nothing, and ';' would
    failed = reread(delimiter=",", encoding="utf-16")
    page = plain(client.get(f"/w/{visits}/data").text)
    assert failed["state"] == "failed"
    assert "Cannot read 'visits.csv' with the encoding" in page
    assert str(served.studio.temporary) not in failed["error"]
    assert "Read it again" in page
    for _ in range(2):
        client.post(f"/w/{visits}/undo", data={"back": "data"})
    assert "Missing cells nobody said" in plain(client.get(f"/w/{visits}/data").text)


def test_of_a_workbook_the_first_sheet_that_is_a_table_is_read_and_another_is_a_click_away(
    client, tools, tmp_path
):
    people = [["age", "sex"], *([20 + i, "mf"[i % 2]] for i in range(40))]
    sheets = {"Cover": [], "2023": people, "2024": [["age", "town"], [3, "A"], [4, "B"]]}
    content = workbook.write(tmp_path / "x.xlsx", sheets).read_bytes()
    id_ = tools.new(client)
    job = tools.upload(client, id_, content, "people.xlsx").json()["job"]

    assert tools.ended(client, job)["state"] == "done"
    page = plain(client.get(f"/w/{id_}/data").text)
    assert "Which sheet holds the table?" in page
    assert "Sheet 2023" in page
    assert set(policy(client, id_)["columns"]) == {"age", "sex"}
    client.post(f"/w/{id_}/data/answer", data={"question": "sheet", "answer": "2"})
    job = tools.loaded(client, id_).jobs["profile"]
    assert tools.ended(client, job)["state"] == "done"
    assert set(policy(client, id_)["columns"]) == {"age", "town"}
    assert policy(client, id_)["reading"]["sheet"] == "2024"

    # Whose rows they are is asked too, and a table is renamed and deleted on the home page.
    data = {"question": "persons", "answer": "column", "column": "1"}
    client.post(f"/w/{id_}/data/answer", data=data)
    assert policy(client, id_)["columns"]["town"]["privacy_unit"] is True
    client.post(f"/w/{id_}/data/answer", data={"question": "persons", "answer": "one"})
    assert policy(client, id_)["one_row_per_person"] is True
    assert "privacy_unit" not in policy(client, id_)["columns"]["town"]
    home = client.post(f"/w/{id_}/rename", data={"title": " Survey <b>  2024 "}).text
    assert "Survey &lt;b&gt; 2024" in home
    assert "people.xlsx" in home
    assert "That cannot be undone." in home
    home = client.post(f"/w/{id_}/delete").text
    assert id_ not in home
    assert client.get(f"/w/{id_}/data").status_code == 404


@pytest.mark.parametrize(
    ("kind", "form", "leaves"),
    [
        ("numeric", {"how": "intervals", "low": "0", "high": "99", "widths": "5, 10"}, 100),
        ("date", {"how": "dates", "first": "2020-01-01", "last": "2020-12-31",
                  "levels": "month, quarter, year"}, 366),
        ("nominal", {"how": "prefixes", "lengths": "2 1"}, 4),
        ("nominal", {"how": "masked", "side": "right", "by": "2"}, 4),
        ("file", {"how": "file", "rows": "paths"}, 3),
        ("file", {"how": "file", "rows": "parents"}, 2),
    ],
)  # fmt: skip
def test_a_hierarchy_is_built_by_clicking_or_uploaded(client, visits, served, kind, form, leaves):
    names = ["patient_id", "born", "amount", "region", "plz"]
    name = {"numeric": "amount", "date": "born", "nominal": "plz", "file": "region"}[kind]
    served.studio.store.change(visits, policy=DRAFT)
    files = {"paths": b"north;up;*\nsouth;down;*\nnobody said;?;*\n", "parents": b"a,x\nb,x\n"}
    sent = {"file": ("tree.csv", files.get(form.get("rows", ""), b""))} if kind == "file" else None
    data = {"name": name, "place": str(names.index(name)), **form}

    answer = client.post(f"/w/{visits}/roles/hierarchy", data=data, files=sent)

    stated = policy(client, visits)["columns"][name]
    assert f"{leaves} values" in answer.text.lower(), plain(answer.text)
    assert "Undo: hierarchy of" in plain(answer.text)
    assert stated["hierarchy"].startswith(name)
    assert stated.get("observed", False) is (kind == "nominal")
    if kind == "nominal":  # what was read off the table stays marked until somebody ticks
        same = {**data, "role": "quasi-identifier", "kind": "nominal"}
        client.post(f"/w/{visits}/roles/column", data=same)
        assert policy(client, visits)["columns"][name]["observed"] is True
        client.post(f"/w/{visits}/roles/column", data={**same, "stated": "yes"})
        assert "observed" not in policy(client, visits)["columns"][name]
    for wrong, words in (
        ({"how": "prefixes", "lengths": "x"}, "Expected a whole number"),
        ({"how": "intervals", "low": ""}, "Fill in: Smallest possible number."),
        ({"how": "codes", "scheme": "icd-10"}, "values that are not one"),
        ({"how": "none"}, "Undo: hierarchy of"),
    ):
        refused = client.post(f"/w/{visits}/roles/hierarchy", data={**data, **wrong})
        assert words in plain(refused.text), wrong
    assert "hierarchy" not in policy(client, visits)["columns"][name]


DRAFT = """version = 1
[columns]
patient_id = "identifier"
born = { role = "quasi-identifier", kind = "date", date_format = "%d/%m/%Y" }
amount = { role = "confidential", kind = "numeric" }
region = { role = "quasi-identifier", kind = "nominal" }
plz = { role = "quasi-identifier", kind = "nominal" }
[reading]
decimal = ","
[protect]
method = "mdav"
k = 5
"""


def test_two_hundred_columns_are_shown_and_changed_at_once(client, tools):
    wide = pl.DataFrame({f"x{i}": [1.5 * j + i for j in range(30)] for i in range(200)})
    id_ = tools.new(client)
    tools.with_table(client, id_, wide.write_csv().encode())

    page = client.get(f"/w/{id_}/roles")
    places = ",".join(map(str, range(200)))
    done = client.post(
        f"/w/{id_}/roles/rows", data={"places": places, "role": "other", "confirm": "yes"}
    )
    refused = client.post(f"/w/{id_}/roles/rows", data={"places": places, "kind": "ordinal"})

    assert page.text.count('role="row"') == 201
    assert page.text.count('id="inspector"') == 1  # one column in full, not two hundred
    assert len(page.content) < 1_200_000
    assert "all confirmed" in done.text
    assert "Undo: role of 200 columns" in plain(done.text)
    columns = policy(client, id_)["columns"]
    assert {one["role"] for one in columns.values()} == {"other"}
    assert "Nothing was changed." in refused.text
    assert policy(client, id_)["columns"] == columns


def test_a_shape_says_what_a_column_looks_like_without_a_row(tmp_path):
    days = [f"2020-0{1 + i % 9}-1{i % 10}" for i in range(500)]
    pl.DataFrame(
        {
            "name": [f"Ann{i:03d} Lee" for i in range(500)],
            "income": [float(i * i) for i in range(500)],
            "seen": days,
            "grade": ["low", "medium", "high", "high"] * 125,
        }
    ).write_csv(tmp_path / "a.csv")

    profile.write(tmp_path / "a.csv", label="a.csv")
    seen = profile.read(tmp_path / "a.csv").by_name

    assert seen["name"].shape.range == "like Aaa999 Aaa"
    assert seen["name"].shape.bars == ()
    assert seen["income"].shape.range == "0 to 249,001"
    assert len(seen["income"].shape.bars) == 24
    assert seen["income"].shape.bars[0] == 1
    assert (seen["seen"].type, seen["seen"].shape.sort) == ("date", "dates")
    assert seen["seen"].shape.range == "2020-01-10 to 2020-09-19"
    assert seen["grade"].shape.bars == (0.5, 0.5, 1)  # in the order of the categories
    assert seen["grade"].shape.range.startswith("high 50%")
    (values,) = tmp_path.glob("*.values")
    assert values.stat().st_mode & 0o077 == 0

"""Excel workbooks: what is in a sheet is read, and what is odd about one is said."""

import zipfile
from datetime import date, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbook import Xml, write

import shoal
from shoal import io
from shoal.errors import InputError, UnfitTableError
from shoal.io.csv_files import WrittenRelease
from shoal.io.excel_files import UntidySheetError, read_excel

pytest.importorskip("fastexcel")

HEADER = ["name", "age", "born", "seen", "ok", "zip"]
ROWS = [
    ["Ann", 31, date(1990, 5, 17), datetime(2020, 1, 1, 12, 30, 5), True, "01234"],  # noqa: DTZ001
    ["Zoë", 31.5, date(2000, 2, 29), None, False, None],
]
READ = [
    ("Ann", "31", "1990-05-17", "2020-01-01T12:30:05", "true", "01234"),
    ("Zoë", "31.5", "2000-02-29", None, "false", None),
]


@pytest.mark.parametrize("alone", [False, True])
def test_texts_numbers_dates_truth_values_and_empty_cells_are_read(tmp_path, alone):
    path = write(tmp_path / "people.xlsx", {"People": [HEADER, *ROWS]})

    raw = io.read(path, alone=alone)

    assert raw.frame.columns == HEADER
    assert raw.frame.rows() == READ
    assert raw.reading == {"sheet": "People"}
    assert raw.found == "the sheet 'People'"


def test_a_formula_is_read_as_its_stored_value_and_an_error_is_missing(tmp_path):
    cells = [Xml("<c><f>1+1</f><v>2</v></c>"), Xml('<c t="str"><f>A1</f><v>yes</v></c>'),
             Xml('<c t="e"><v>#N/A</v></c>'), "x"]  # fmt: skip
    path = write(tmp_path / "f.xlsx", {"S": [["a", "b", "c", "d"], cells]})

    assert io.read(path).frame.rows() == [("2", "yes", None, "x")]


def test_formulas_that_were_never_computed_are_refused(tmp_path):
    path = write(tmp_path / "f.xlsx", {"S": [["a", "b"], [Xml("<c><f>1+1</f></c>"), 1]]})

    with pytest.raises(InputError, match=r"formulas without a stored value. Open the workbook"):
        io.read(path)

    # Beside an epsilon, a cell does not decide whether there is a release.
    assert io.read(path, alone=True).frame.rows() == [(None, "1")]


@pytest.mark.parametrize("alone", [False, True])
def test_an_empty_row_is_a_record_and_an_empty_column_is_left_out(tmp_path, alone):
    path = write(tmp_path / "b.xlsx", {"S": [[None] * 3, ["a", None, "b"], [1, None, 2], [None] * 3,
                                             [3, "", 4], [None] * 3]})  # fmt: skip

    assert io.read(path, alone=alone).frame.rows() == [("1", "2"), (None, None), ("3", "4")]


def test_the_number_of_rows_says_how_many_empty_ones_end_a_sheet(tmp_path):
    path = write(tmp_path / "b.xlsx", {"S": [["a", "b"], [1, 2], [None] * 2]})

    assert io.read(path, rows=3, alone=True).frame.rows() == [("1", "2"), *[(None, None)] * 2]
    path = write(tmp_path / "b.xlsx", {"S": [["a", "b"], [1, 2], [3, 4]]})
    with pytest.raises(InputError, match=r"has cells below the 1 rows that \[reading\] states"):
        io.read(path, rows=1)


@pytest.mark.parametrize("beside", [2, 1])
def test_a_cell_beside_the_named_columns_is_left_out_where_cells_are_read_alone(tmp_path, beside):
    rows = [["a", "b"], [1, 2], [3, 4]]
    for row, cell in zip(rows, (None, "x", None), strict=True):
        row.insert(beside, cell)
    path = write(tmp_path / "b.xlsx", {"S": rows})

    assert io.read(path, alone=True).frame.rows() == [("1", "2"), ("3", "4")]
    with pytest.raises(InputError, match=f"column {beside + 1} has no name"):
        io.read(path)


def test_a_sheet_is_chosen_by_name_where_there_are_several(tmp_path):
    table = [["a", "b"], [1, 2]]
    path = write(tmp_path / "s.xlsx", {"Notes": [["x"]], "People & co": table})

    assert io.read(path, sheet="People & co").frame.rows() == [("1", "2")]
    with pytest.raises(InputError, match=r"has 2 sheets: 'Notes', 'People & co'. Choose one with"):
        io.read(path)
    with pytest.raises(InputError, match=r"has no sheet 'people'. It has 'Notes', 'People & co'."):
        io.read(path, sheet="people")


def test_the_policy_names_the_sheet_and_does_not_publish_the_name():
    policy = shoal.load_policy({"version": 1, "columns": {"a": "other"},
                                "protect": {"method": "mdav", "k": 2},
                                "reading": {"sheet": "ward 7"}})  # fmt: skip

    assert io.marks(policy)["sheet"] == "ward 7"
    assert "ward 7" not in str(policy.document)


@pytest.mark.parametrize("place", ["A1:B1", "A1:A2", "B2:B3"])
def test_merged_cells_are_refused_by_their_place(tmp_path, place):
    rows = [["a", "b"], ["Wilhelmina", 2], [3, 4]]
    path = write(tmp_path / "m.xlsx", {"S": rows}, merged=[place])

    with pytest.raises(InputError, match=f"merged cells at {place}; expected one name") as caught:
        io.read(path)

    assert "Wilhelmina" not in str(caught.value)


def test_a_column_without_a_name_is_refused(tmp_path):
    path = write(tmp_path / "n.xlsx", {"S": [["a", None, "b"], ["Wilhelmina", "x", "y"]]})

    with pytest.raises(InputError, match="column 2 has no name"):
        io.read(path)


def test_an_empty_sheet_is_refused(tmp_path):
    with pytest.raises(InputError, match="is empty; expected a header"):
        io.read(write(tmp_path / "e.xlsx", {"S": []}))


@pytest.mark.parametrize("content", [b"PK\x03\x04 Wilhelmina", b"Wilhelmina", b""])
def test_what_is_not_a_workbook_is_refused_without_a_cell(tmp_path, content):
    (tmp_path / "w.xlsx").write_bytes(content)

    with pytest.raises(InputError, match="damaged, encrypted or of another format") as caught:
        io.read(tmp_path / "w.xlsx")

    assert "Wilhelmina" not in str(caught.value)


def test_an_old_workbook_is_named_as_such(tmp_path):
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))

    with pytest.raises(InputError, match="it is an old Excel workbook"):
        io.read(tmp_path / "old.xls")


def test_a_cell_in_the_last_corner_is_refused_before_the_reader_sees_it(tmp_path):
    corner = Xml('<c><v>1</v></c><c r="XFD1048576"><v>1</v></c>')
    path = write(tmp_path / "corner.xlsx", {"S": [["a", "b"], [1, corner]]})

    with pytest.raises(InputError, match="would take 512 GiB of memory once it is decoded"):
        io.read(path, limit=1 << 34)


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(tmp_path):
    path = write(tmp_path / "bomb.xlsx", {"S": [["a", "b"], [1, 2]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(10 << 20))

    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="once it is decoded, and the limit here is"):
        io.read(path, limit=5 << 20)


def test_a_long_text_that_many_cells_share_is_refused(tmp_path):
    shared = Xml('<c t="s"><v>1</v></c>')
    path = write(tmp_path / "shared.xlsx", {"S": [["a", "b"]] + [[1, shared]] * 2000})
    texts = f"<sst><si/><si><t>{'x' * (3 << 20)}</t></si><si/></sst>"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", texts)

    with pytest.raises(InputError, match="once it is decoded, and the limit here is"):
        io.read(path, limit=1 << 30)


def test_one_long_cell_counts_once_and_not_for_every_cell(tmp_path):
    """A limit that multiplied it with the cells would be a function of one record."""
    shared = Xml('<c t="s"><v>1</v></c>')
    path = write(tmp_path / "long.xlsx", {"S": [["a", "b"], [0, shared]] + [[1, 2]] * 2000})
    texts = f"<sst><si/><si><t>{'x' * 32_767}</t></si></sst>"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", texts)

    raw = io.read(path, limit=4 << 20, alone=True)

    assert raw.frame["b"].str.len_chars().to_list() == [32_767] + [1] * 2000


@pytest.mark.parametrize("place", ["Z5", "XFD5"])
def test_a_stray_cell_beside_the_header_does_not_multiply_with_the_rows(tmp_path, place):
    """The width of a table is that of its header, and one record does not decide what fits."""
    rows = [["age", "town"], *([age % 90, "a"] for age in range(2000))]
    plain = io.read(write(tmp_path / "plain.xlsx", {"S": rows}), limit=8 << 20, alone=True)
    rows[4][1] = Xml(f'<c><v>1</v></c><c r="{place}"><v>77</v></c>')
    path = write(tmp_path / "stray.xlsx", {"S": rows})

    stray = io.read(path, limit=8 << 20, alone=True)

    assert stray.frame.columns == ["age", "town"]
    assert stray.frame[3, "town"] == "1"
    assert stray.frame[:3].equals(plain.frame[:3])
    assert stray.frame[4:].equals(plain.frame[4:])
    if place == "XFD5":
        with pytest.raises(InputError, match="of memory once it is decoded"):
            io.read(path, limit=8 << 20)


def test_without_the_extra_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)

    with pytest.raises(InputError, match=r"need the extra 'excel': pip install 'shoal\[excel\]'"):
        io.read(write(tmp_path / "x.xlsx", {"S": [["a"], [1]]}))


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.dates(date(1901, 1, 1), date(2100, 1, 1)),
    st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8),
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_each_cell_is_read_by_itself(tmp_path_factory, rows):
    """A cell's text is the same whatever stands below it."""
    folder = tmp_path_factory.mktemp("x")
    marked = [("mark", *row) for row in rows]

    whole = io.read(write(folder / "w.xlsx", {"S": [["m", "a", "b"], *marked]}), alone=True).frame
    each = [
        io.read(write(folder / "o.xlsx", {"S": [["m", "a", "b"], row]}), alone=True).frame.row(0)
        for row in marked
    ]

    assert whole.rows() == each


CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), min_size=1
)
WHOLE = st.integers(-(2**53), 2**53) | st.integers(-(2**63), 2**63 - 1)
DAYS = st.dates(date(1583, 1, 1))


@given(rows=st.lists(
    st.tuples(*(st.none() | one for one in (st.floats(), WHOLE, CELLS, DAYS, st.booleans()))),
    min_size=1, max_size=5,
))  # fmt: skip
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    frame = pl.DataFrame(
        rows, orient="row", schema={"=part": pl.Float64, "whole": pl.Int64, "text": pl.String,
                                    "day": pl.Date, "truth": pl.Boolean},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("book") / "release.xlsx"
    types = {name: str(dtype) for name, dtype in frame.schema.items()}
    written = WrittenRelease(guarded=True, types=types, dated=True)

    io.write(frame, path, labels={})

    sheet = read_excel(path, None, rows=frame.height, alone=False, limit=1 << 40)
    read = written.undone(sheet.frame)
    assert read["=part"].cast(pl.Float64).equals(frame["=part"])
    assert read["whole"].cast(pl.Int64).equals(frame["whole"])
    assert read["text"].equals(frame["text"])
    assert read["day"].equals(frame["day"])
    assert read["truth"].equals(frame["truth"].cast(pl.String))


def test_a_workbook_is_the_same_bytes_again_and_names_nobody(tmp_path, monkeypatch):
    frame = pl.DataFrame({"age": [31.5, None], "born": [date(1990, 5, 17), None]})
    paths = [tmp_path / "one.xlsx", tmp_path / "other.xlsx"]

    for path, user in zip(paths, ("Canary", "Somebody"), strict=True):
        monkeypatch.setenv("USER", user)
        io.write(frame, path, labels={}, about="No row is a person.")

    one, other = (path.read_bytes() for path in paths)
    assert one == other
    with zipfile.ZipFile(paths[0]) as archive:
        core = archive.read("docProps/core.xml").decode()
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert "<dc:creator></dc:creator>" in core
    assert "2000-01-01T00:00:00Z" in core
    assert "No row is a person." in core
    assert b"Canary" not in everything


def test_text_is_no_formula_and_no_link_and_is_guarded_as_in_a_csv_file(tmp_path):
    frame = pl.DataFrame({"note": ["=1+1", "https://example.org", "'=2", "plain"]})

    io.write(frame, tmp_path / "release.xlsx", labels={})

    assert io.read(tmp_path / "release.xlsx").frame["note"].to_list() == [
        "'=1+1", "https://example.org", "''=2", "plain"
    ]  # fmt: skip
    with zipfile.ZipFile(tmp_path / "release.xlsx") as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    assert b"<f>" not in sheet
    assert b"hyperlink" not in sheet


@pytest.mark.parametrize("frame", [pl.DataFrame({"a": ["x" * 32_768]}),
                                   pl.DataFrame({"a": [None] * 1_048_576})])  # fmt: skip
def test_a_table_without_room_in_a_sheet_is_refused(tmp_path, frame):
    with pytest.raises(UnfitTableError, match="A sheet of Excel has no room for this release"):
        io.write(frame, tmp_path / "release.xlsx", labels={})


def test_numbers_of_an_original_keep_all_their_digits_and_texts_stay(tmp_path):
    cells = [0.1 + 0.2, 1 / 3, 1e-12, 123456789.123456789]
    path = write(tmp_path / "n.xlsx", {"S": [["a", "b"], *([x, "007.50"] for x in cells)]})

    read = io.read(path).frame

    assert [float(cell) for cell in read["a"]] == cells
    assert read["b"].to_list() == ["007.50"] * 4


PEOPLE = [["Wilhelmina", 41, 2, 3], ["Atlantis", 4, 5, 6], ["Cy", 7, 8, 9]]
UNTIDY = {
    "titles and a total": (
        [["Report"], [], ["name", "a", "b", "c"], *PEOPLE, [], ["Total", 12, 15, 18]],
        [], "3", "7,8", ["name", "a", "b", "c"],
    ),
    "a merged title, merged names and a note": (
        [["Report"], ["name", "2020"], [None, "q1", "q2", "q3"], *PEOPLE, [], ["Source: office"]],
        ["A1:D1", "B2:D2", "A2:A3"], "2,3", "7,8", ["name", "2020 q1", "2020 q2", "2020 q3"],
    ),
    "names above names, not merged": (
        [["name", "spring", None, "autumn"], [None, "q1", "q2", "q1"], *PEOPLE],
        [], "1,2", None, ["name", "spring q1", "spring q2", "autumn q1"],
    ),
    "a note right below the total": (
        [["name", "a", "b", "c"], *PEOPLE, ["Total", 12, 15, 18], ["In pounds."]], [], "1", "5,6",
        ["name", "a", "b", "c"],
    ),
    "a total by its sums, whatever it is called": (
        [["name", "a", "b", "c"], *PEOPLE, *PEOPLE, ["Suma general", 104, 30, None]], [], "1", "8",
        ["name", "a", "b", "c"],
    ),
    "a total in another language": (
        [["name", "a", "b", "c"], *PEOPLE, ["合計", 12, 15, 18]], [], "1", "5",
        ["name", "a", "b", "c"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "merged", "header", "skip", "names"), UNTIDY.values(), ids=UNTIDY)
def test_what_is_above_and_below_a_table_is_recognised_and_read_as_stated(
    tmp_path, rows, merged, header, skip, names
):
    path = write(tmp_path / "u.xlsx", {"S": rows}, merged=merged)

    with pytest.raises(UntidySheetError) as caught:
        io.read(path)

    stated = {"header_row": header, "skip": skip}
    assert caught.value.reading == {key: text for key, text in stated.items() if text}
    for key, text in caught.value.reading.items():
        assert f"--{key.replace('_', '-')} {text}" in str(caught.value)
        assert f'{key} = "{text}"' in str(caught.value)
    assert not any(word in str(caught.value) for word in ("Wilhelmina", "41", "Report", "office"))
    for alone in (False, True):
        raw = io.read(path, **stated, alone=alone)
        assert raw.frame.columns == names
        people = [tuple(map(str, row)) for row in PEOPLE]
        assert raw.frame.rows() == people * (raw.frame.height // 3)
        assert raw.reading == {"sheet": "S", **caught.value.reading}
    # Beside an epsilon nothing is recognised: the first row names the columns.
    rest = io.read(path, alone=True).frame.height
    assert rest == len(rows) - 1


def test_everything_odd_is_said_at_once(tmp_path):
    rows = [
        ["Report"],
        ["name", "a", "b"],
        ["Wilhelmina", 1, Xml("<c><f>1+1</f></c>")],
        ["x", 3, 4],
    ]
    path = write(tmp_path / "o.xlsx", {"S": rows}, merged=["B3:C3"])

    with pytest.raises(UntidySheetError) as caught:
        io.read(path)

    for text in ("1 title row above the header", "--header-row 2", "merged cells at B3:C3",
                 "formulas without a stored value"):  # fmt: skip
        assert text in str(caught.value)
    assert caught.value.reading == {}


@pytest.mark.parametrize("rows", [
    [["name", "town"], ["Ann", "Bath"], ["Cy", "York"]],
    [["name", "town", "age"], ["Ann", "Bath", 3], ["Total", "York", None]],
    [["name", "town", "age"], ["Ann", "Bath", 3], ["Cy"]],
    [["name", "town", "age"], [], ["Ann", "Bath", 3]],
    [["name", "town", "age"], *[["Ann", "Bath", 3]] * 5, ["Cy", "York", 16], ["Di"]],
    [["name", "town", "age"], *[["Ann", "Bath", 0]] * 5, ["Cy", "York", 0]],
    [["name"], ["Ann"], ["Total"]],
])  # fmt: skip
def test_a_plain_table_is_read_as_it_is(tmp_path, rows):
    path = write(tmp_path / "p.xlsx", {"S": rows})

    assert io.read(path).frame.height == len(rows) - 1


@pytest.mark.parametrize(("stated", "said"), [
    ({"header_row": "x"}, "Expected numbers of rows, such as 3 or 3-4 or 3,105"),
    ({"skip": "4-"}, "Expected numbers of rows"),
    ({"header_row": "9"}, "has 4 rows; expected its header where --header-row"),
])  # fmt: skip
def test_rows_that_cannot_be_are_refused(tmp_path, stated, said):
    path = write(tmp_path / "r.xlsx", {"S": [["name", "a", "b", "c"], *PEOPLE]})

    with pytest.raises(InputError, match=said):
        io.read(path, **stated)


def test_stated_rows_reach_the_draft_the_release_and_not_the_manifest(tmp_path):
    rows = [["Report"], ["age", "income"], *([20 + i % 3, i] for i in range(12)), ["Total", 99]]
    path = write(tmp_path / "s.xlsx", {"S": rows})

    drafted = shoal.draft(path, header_row="2", skip="15")
    rules = tmp_path / "policy.toml"
    rules.write_text(drafted.text)

    assert 'header_row = "2"' in drafted.text
    assert 'skip = "15"' in drafted.text
    assert shoal.protect(path, rules).data.height == 12
    assert "header_row" not in str(shoal.load_policy(rules).document)
    assert shoal.load_policy(rules.read_text().replace('"2"', "2")).reading.header_row == "2"

"""CSV releases: the dialect in which they are written, and that they are read again."""

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import io
from shoal.errors import InputError
from shoal.io.csv_files import Dialect, choose_dialect, read_csv
from shoal.io.sheet_rows import StatedRows
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import protect_file
from shoal.publish.verify_folder import verify

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=6)
DIALECTS = st.builds(
    Dialect,
    st.sampled_from(list(",;|\t:~")),
    st.sampled_from([".", ","]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
)


@given(
    st.lists(st.tuples(st.none() | TEXTS, st.none() | st.floats(-1e9, 1e9)), min_size=1),
    DIALECTS,
    st.booleans(),
)
def test_what_is_written_is_read_again_beside_its_manifest(tmp_path_factory, rows, dialect, guard):
    folder = tmp_path_factory.mktemp("dialect")
    frame = pl.DataFrame(rows, {"text": pl.String, "number": pl.Float64}, orient="row")
    stated = {"guard_formulas": guard, "dialect": asdict(dialect), "files": {"release.csv": {}},
              "columns": {name: str(dtype) for name, dtype in frame.schema.items()}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(stated), encoding="utf-8")

    io.write(frame, folder / "release.csv", labels={}, guard_formulas=guard, dialect=dialect)

    back = io.read(folder / "release.csv").frame
    assert back["text"].to_list() == frame["text"].to_list()
    assert back["number"].cast(pl.Float64).to_list() == frame["number"].to_list()


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ([], Dialect(",", ".", "utf-8")),
        ([{"delimiter": ";", "encoding": "cp1252"}], Dialect(";", ".", "utf-8")),
        ([{"delimiter": None, "decimal": ","}, {"delimiter": "|"}], Dialect("|", ",", "utf-8")),
        ([{"delimiter": "\t"}, {"delimiter": ";"}], Dialect("\t", ".", "utf-8")),
        ([{"encoding": "UTF-8-SIG"}], Dialect(",", ".", "utf-8-sig")),
    ],
)
def test_each_mark_is_that_of_the_first_place_that_states_it(stated, expected):
    assert choose_dialect(*stated) == expected


POLICY = """version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 120] }
pay = { role = "confidential", kind = "numeric", bounds = [0, 9] }
"""
MDAV = '[protect]\nmethod = "mdav"\nk = 2\n'
LAPLACE = '[protect]\nmethod = "laplace"\nepsilon = 1\n'
GERMAN = "age;pay\n31;1,5\n45;2,5\n52;3,25\n60;4,0\n"
ENGLISH = "age,pay\n31,1.5\n45,2.5\n52,3.25\n60,4.0\n"


def released(tmp_path, content, policy, **reading):
    """The header, the first row and the dialect of a CSV release."""
    (tmp_path / "d.csv").write_text(content, encoding="utf-8")
    (tmp_path / "p.toml").write_text(policy, encoding="utf-8")
    done = protect_file.protect(
        tmp_path / "d.csv",
        tmp_path / "p.toml",
        tmp_path / "out",
        output=OutputOptions(file_format="csv", force=True),
        evaluation=EvaluationOptions(evaluate=False),
        **reading,
    )
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert verify(tmp_path / "out").holds
    return (done.folder / "release.csv").read_text("utf-8"), manifest["dialect"]


def test_a_release_without_an_epsilon_is_written_as_its_file_was(tmp_path):
    text, dialect = released(tmp_path, GERMAN, POLICY + MDAV)

    assert dialect == {"delimiter": ";", "decimal": ",", "encoding": "utf-8"}
    assert text.startswith("age;pay\n")
    assert "3,25" in text
    frame = io.read(tmp_path / "out" / "release.csv").frame
    assert sorted(frame["pay"].cast(pl.Float64)) == [1.5, 2.5, 3.25, 4.0]

    assert released(tmp_path, ENGLISH, POLICY + MDAV)[1]["delimiter"] == ","


def test_the_policy_can_ask_for_another_dialect(tmp_path):
    asked = '[writing]\ndelimiter = "|"\ndecimal = "."\nencoding = "utf-8-sig"\n'

    text, dialect = released(tmp_path, GERMAN, POLICY + MDAV + asked)

    assert dialect == {"delimiter": "|", "decimal": ".", "encoding": "utf-8-sig"}
    assert text.startswith("\ufeffage|pay\n")


def test_beside_an_epsilon_the_dialect_follows_from_the_policy_alone(tmp_path):
    """A dialect that was found out is an output of a release, and nobody has paid for it."""
    plain = {"delimiter": ",", "decimal": ".", "encoding": "utf-8"}
    stated = '[reading]\ndelimiter = ";"\ndecimal = ","\n'

    english = '[reading]\ndelimiter = ","\ndecimal = "."\n'

    assert released(tmp_path, ENGLISH, POLICY + LAPLACE + english)[1] == plain
    text, dialect = released(tmp_path, GERMAN, POLICY + LAPLACE + stated)
    assert dialect == {"delimiter": ";", "decimal": ",", "encoding": "utf-8"}
    assert text.startswith("age;pay\n")


@pytest.mark.parametrize(
    ("key", "mark"), [("delimiter", ";;"), ("decimal", ";"), ("encoding", "cp1252")]
)
def test_a_dialect_that_cannot_be_written_is_refused(tmp_path, key, mark):
    with pytest.raises(InputError, match=f"writing.{key}"):
        released(tmp_path, ENGLISH, f'{POLICY}{MDAV}[writing]\n{key} = "{mark}"\n')


@pytest.mark.parametrize("dialect", [{"delimiter": ";;"}, {"colour": "red"}, 7, {"decimal": 1}])
def test_a_manifest_that_somebody_changed_does_not_end_in_a_traceback(tmp_path, dialect):
    (tmp_path / "release.csv").write_text(ENGLISH, encoding="utf-8")
    stated = {"guard_formulas": True, "dialect": dialect, "files": {"release.csv": {}}}
    (tmp_path / "manifest.json").write_text(json.dumps(stated), encoding="utf-8")

    assert io.read(tmp_path / "release.csv").frame.height == 4


@pytest.mark.parametrize("encoding", ["iso2022_jp", "ISO-2022-KR", "hz", "utf-7"])
def test_an_encoding_with_a_state_is_refused_beside_an_epsilon(encoding):
    """One escape made all later records of a file missing."""
    raw = b"age,town\r20,a\r31,b\r"

    with pytest.raises(InputError, match=r"each line of 't\.csv' by itself, which the enc"):
        read_csv(Path("t.csv"), raw, delimiter=",", encoding=encoding, alone=True)
    found = read_csv(Path("t.csv"), raw, delimiter=",", encoding="iso2022_jp", alone=False)
    assert found.frame.rows() == [("20", "a"), ("31", "b")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "gb18030", "shift_jis", "big5", "euc_kr"])
def test_a_broken_character_spoils_its_own_line_alone(encoding, end):
    for odd in (b"\x81", b"\x81\x30", b"\xe3\x81", b"\x1b$B", b"\x0e"):
        lines = [b"age,town", b"20,a", b"30," + odd, b"31,a", b"32,b", b""]

        found = read_csv(
            Path("t.csv"), end.join(lines), delimiter=",", encoding=encoding, alone=True
        )

        assert found.frame.height == 4
        assert found.frame[[0, 2, 3]].rows() == [("20", "a"), ("31", "a"), ("32", "b")]


@pytest.mark.parametrize("text", ["a;b;c\n1;2;3\n4;5;6\n", "1;2;3\n4;5;6\n7;8;9\n"])
def test_a_stated_delimiter_that_splits_nothing_is_refused_with_the_one_of_the_file(tmp_path, text):
    path = tmp_path / "people.csv"
    path.write_text(text)

    with pytest.raises(InputError, match="seems to have the delimiter ';'"):
        io.read(path, delimiter=",")


def test_a_row_of_names_cannot_be_skipped():
    with pytest.raises(InputError, match="Row 4 is stated both as a row of names and as one to"):
        StatedRows(header=(3, 4), skip=(4, 9))


@pytest.mark.parametrize("stated", [{"header_row": "3"}, {"skip": "5"}])
def test_rows_of_a_sheet_are_refused_for_a_file_that_has_none(tmp_path, stated):
    path = tmp_path / "t.csv"
    path.write_text("Members of 2024\n\nid,age\n1,30\nTotal,30\n")

    with pytest.raises(InputError, match=r"is not a workbook\. --header-row and --skip"):
        io.read(path, **stated)
    with pytest.raises(InputError, match="Take out what stands above the header, if line 1 is a"):
        io.read(path)


def test_a_file_of_one_column_may_have_any_delimiter(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("town\nAyr\nEly\n")

    assert io.read(path, delimiter=";").names == ["town"]

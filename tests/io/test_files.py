"""Files and frames of other libraries: what is detected, kept and refused."""

import csv
import gzip
import io as text_io
import json
import struct
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import shoal
from shoal import io
from shoal.cli.commands import app
from shoal.errors import InputError
from shoal.io import memory
from shoal.publish.verify_folder import verify

TABLE = pl.DataFrame({"name": ["Zoë", "Łukasz, Jr", 'a "b"'], "age": ["31", "45", None]})


def read(tmp_path, content, name="table.csv", **stated):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return io.read(path, **stated)


def refusal(tmp_path, content, name="table.csv", **stated):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, name, **stated)
    return str(caught.value)


# CSV


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_delimiter_is_found(tmp_path, mark, end):
    lines = [mark.join(row) for row in (("a", "b", "c"), ("1", "x y", "3"), ("4", "z", "6"))]

    raw = read(tmp_path, end.join(lines))

    assert raw.frame.rows() == [("1", "x y", "3"), ("4", "z", "6")]
    assert raw.frame.columns == ["a", "b", "c"]
    assert raw.found == f"utf-8, delimiter {mark!r}"


def test_decimal_commas_do_not_hide_the_semicolon(tmp_path):
    raw = read(tmp_path, "\ufeffa;b;c\n1,5;2,5;3,5\n4,5;5,5;6,5\n")

    assert raw.frame.rows() == [("1,5", "2,5", "3,5"), ("4,5", "5,5", "6,5")]


@pytest.mark.parametrize("stated", ["\t", r"\t"])
def test_a_stated_delimiter_is_taken(tmp_path, stated):
    raw = read(tmp_path, "a,b\tc\n1,2\t3\n", delimiter=stated)

    assert raw.frame.columns == ["a,b", "c"]
    assert raw.frame.rows() == [("1,2", "3")]


def test_an_odd_delimiter_can_be_stated(tmp_path):
    assert read(tmp_path, "a:b\n1:2\n", delimiter=":").frame.rows() == [("1", "2")]


def test_quoted_cells_may_hold_delimiters_quotes_and_line_ends(tmp_path):
    text = '"a ""x""","b\nc"\n"1,2","say ""hi""\r\nor not"\n\n"\n\n",2\n'

    raw = read(tmp_path, text)

    assert raw.frame.columns == ['a "x"', "b\nc"]
    assert raw.frame.rows() == [("1,2", 'say "hi"\r\nor not'), ("\n\n", "2")]


def test_empty_cells_are_missing_quoted_or_not(tmp_path):
    assert read(tmp_path, 'a,b\n"",1\n,2\n').frame["a"].to_list() == [None, None]


def test_blank_lines_are_no_persons(tmp_path):
    raw = read(tmp_path, '\n\na,b\n1,"x\n\ny"\n\n,\n3,4\n\n\n')

    assert raw.frame.rows() == [("1", "x\n\ny"), (None, None), ("3", "4")]


def test_a_blank_line_in_a_single_column_is_a_missing_cell(tmp_path):
    frame = pl.DataFrame({"a": ["1", None, "2"]})
    frame.write_csv(tmp_path / "table.csv")

    assert_frame_equal(io.read(tmp_path / "table.csv").frame, frame)


def test_a_header_longer_than_the_sample_is_read(tmp_path):
    name = "x" * (io.SAMPLE + 1)

    assert read(tmp_path, f"{name},b\n1,2\n").frame.columns == [name, "b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has another number of cells than the header, 3"),
        ('a,b\n"1\n1",2\n"x\ny"\n3,4\n', "line 4 has another number of cells than the header, 2"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4 has another number of cells than the header, 2"),
        (
            'a,b\n1,2\n1,"2\n3,4\n',
            "line 3 has another number of cells than the header, 2, or a quo",
        ),
        ('a,b\n1,2"\n3,4\n', "line 2 has another number of cells than the header, 2, or a quote"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 have the same name; expected each name once."),
        ("a,,c\n1,2,3\n", "column 2 has no name; expected one for each column."),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, text, sentence):
    assert sentence in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("mark", "what"), [(b"PK\x03\x04", "Excel"), (b"PAR1", "Parquet"), (b"ARROW1", "Arrow")]
)
def test_a_file_with_the_wrong_suffix_is_named(tmp_path, mark, what):
    assert what in refusal(tmp_path, mark + b"\x00\x01" * 50)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet.gz", "table.gz"])
def test_a_compressed_file_under_another_name_is_refused_with_advice(tmp_path, name):
    said = refusal(tmp_path, gzip.compress(b"a,b\n1,2\n"), name)

    assert said.endswith(
        "to be CSV; it is a gzip archive. Unpack it, or rename it with the ending of its format."
    )


@pytest.mark.parametrize(
    ("name", "mark"), [("t.csv.gz", ";"), ("T.CSV.GZ", ","), ("t.tsv.gz", "\t"), ("t.txt.gz", "|")]
)
@pytest.mark.parametrize("alone", [False, True])
def test_a_csv_file_packed_by_gzip_is_read(tmp_path, name, mark, alone):
    packed = gzip.compress(f"a{mark}b\n1{mark}x\n2{mark}y\n".encode())

    raw = read(tmp_path, packed, name, alone=alone)

    assert raw.frame.rows() == [("1", "x"), ("2", "y")]
    assert io.marks_of_other(tmp_path / name, {"delimiter": mark})["delimiter"] == mark


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    """Two members, because the length in the last eight bytes is that of the last member."""
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 3_000_000) + gzip.compress(b"1,2\n")
    (tmp_path / "bomb.csv.gz").write_bytes(bomb)

    assert len(bomb) < 100_000
    with pytest.raises(InputError, match=r"would take more than the limit of 0.0279 GiB"):
        io.read(tmp_path / "bomb.csv.gz", limit=30_000_000)


@pytest.mark.parametrize("cut", [5, 15, -3])
def test_a_damaged_gzip_file_is_refused(tmp_path, cut):
    said = refusal(tmp_path, gzip.compress(b"Wilhelmina,b\n1,2\n")[:cut], "t.csv.gz")

    assert said.endswith("as CSV: the file is damaged or of another format.")


# Folders of Parquet files


def parts(tmp_path, **frames):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, columns in frames.items():
        pl.DataFrame(columns).write_parquet(folder / f"{name}.parquet")
    return folder


def test_a_folder_of_parquet_files_is_one_table_in_the_order_of_names(tmp_path):
    folder = parts(tmp_path, b={"y": ["b"], "x": [2]}, a={"x": [1], "y": ["a"]})
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").touch()

    assert io.read(folder).frame.rows() == [(1, "a"), (2, "b")]
    assert io.read(folder).frame.columns == ["x", "y"]


def test_parquet_files_of_other_columns_or_types_are_refused(tmp_path):
    one = parts(tmp_path, a={"x": [1], "y": ["a"]}, b={"x": [1]})
    with pytest.raises(InputError, match=r"'a.parquet' has a column 'y', 'b.parquet' has not."):
        io.read(one)

    kinds = [pl.Series(["Wilhelmina"], dtype=pl.Enum([name])) for name in ("Wilhelmina",)]
    pl.DataFrame({"x": kinds[0]}).write_parquet(one / "a.parquet")
    pl.DataFrame({"x": ["z"]}).write_parquet(one / "b.parquet")
    with pytest.raises(InputError, match=r"'x' is Enum in 'a.parquet' and String in") as caught:
        io.read(one)
    assert "Wilhelmina" not in str(caught.value)


def test_a_folder_of_other_things_is_refused(tmp_path):
    folder = parts(tmp_path)
    with pytest.raises(InputError, match=r"with nothing in it. Name the file, or put the Parquet"):
        io.read(folder)

    pl.DataFrame({"x": [1]}).write_parquet(folder / "a.parquet")
    (folder / "year=2020").mkdir()
    with pytest.raises(InputError, match=r"found .* with 'year=2020' in it"):
        io.read(folder)


def test_the_limit_is_that_of_all_files_of_a_folder(tmp_path):
    rows = {"x": list(range(1000))}
    folder = parts(tmp_path, **{f"p{i}": rows for i in range(5)})

    assert io.read(folder, limit=100_000).frame.height == 5000
    with pytest.raises(InputError, match="once it is decoded"):
        io.read(folder, limit=40_000)


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_encoding_is_found(tmp_path, encoding):
    raw = read(tmp_path, "näme,age\nZoë €,31\n".encode(encoding))

    assert raw.frame.columns == ["näme", "age"]
    assert raw.frame.rows() == [("Zoë €", "31")]
    assert raw.found.startswith(encoding)


def test_an_encoding_can_be_stated(tmp_path):
    content = "name,age\nŁukasz,31\n".encode("iso8859-2")

    assert read(tmp_path, content, encoding="latin2").frame["name"].item() == "Łukasz"
    assert read(tmp_path, content).frame["name"].item() == "£ukasz"


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=6
        )
    ),
    st.sampled_from(io.DELIMITERS),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_python_writes_is_read_back(tmp_path_factory, rows, mark, end, quoting):
    header = [f"{place} é" for place in range(len(rows[0]))]
    # Python leaves a lone carriage return bare, where it ends a line to others.
    assume(quoting == csv.QUOTE_ALL or not any("\r" in cell for row in rows for cell in row))
    buffer = text_io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=mark, lineterminator=end, quoting=quoting)
    writer.writerows([header, *rows])
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(buffer.getvalue().encode())

    frame = io.read(path, delimiter=mark).frame

    assert frame.columns == header
    assert [[cell or "" for cell in row] for row in frame.rows()] == rows


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(content)

    try:
        frame = io.read(path).frame
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017 (either way is right)
    else:
        assert frame.width > 0


# Parquet and Arrow


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.pq", "t.arrow", "t.feather", "[t]*.parquet", "[t].ipc"]
)
def test_parquet_and_arrow_are_read(tmp_path, name):
    path = tmp_path / name
    (TABLE.write_parquet if path.suffix in {".parquet", ".pq"} else TABLE.write_ipc)(path)

    assert_frame_equal(io.read(path).frame, TABLE)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, name, kept):
    path = tmp_path / name
    (TABLE.write_parquet if name == "t.parquet" else TABLE.write_ipc)(path)

    said = refusal(tmp_path, path.read_bytes()[:kept], name)

    assert said.endswith("the file is damaged or of another format.")
    assert "Zoë" not in said


def test_labels_go_to_parquet_as_metadata(tmp_path):
    io.write(TABLE, tmp_path / "t.parquet", labels={"columns": {"age": "Age in years"}})

    metadata = pl.read_parquet_metadata(tmp_path / "t.parquet")

    assert "Age in years" in metadata["shoal.labels"]


# SPSS, Stata and SAS


LABELS = {"columns": {"sex": "Sex of the person", "age": "Age in years"},
          "values": {"sex": {"1": "male", "2": "female"}}}  # fmt: skip


def people():
    return pl.DataFrame(
        {
            "name": [f"Wilhelmina {i}" for i in range(12)],
            "sex": [1.0, 2.0, None] * 4,
            "age": [float(20 + i) for i in range(12)],
            "born": [date(1990, 1, 1 + i) for i in range(12)],
            "town": ["Zoë", "", "x"] * 4,
        }
    )


def write_stats(path, frame, labels=LABELS):
    library = pytest.importorskip("pyreadstat")
    write = getattr(library, {".sav": "write_sav", ".zsav": "write_sav", ".dta": "write_dta",
                              ".xpt": "write_xport"}[path.suffix])  # fmt: skip
    values = {name: {float(code): text for code, text in codes.items()}
              for name, codes in labels["values"].items()}  # fmt: skip
    keys = {} if path.suffix == ".xpt" else {"variable_value_labels": values}
    write(frame, str(path), column_labels=labels["columns"], **keys)


@pytest.mark.parametrize("name", ["people.sav", "people.zsav", "people.dta", "people.xpt"])
def test_statistics_files_are_read_with_their_labels(tmp_path, name):
    write_stats(tmp_path / name, people())

    raw = io.read(tmp_path / name)

    assert raw.frame["sex"].to_list() == people()["sex"].to_list()
    assert raw.frame["born"].to_list() == people()["born"].to_list()
    assert raw.frame["town"].to_list()[:3] == ["Zoë", None, "x"]
    assert raw.column_labels == LABELS["columns"]
    assert raw.labels == ({} if name.endswith("xpt") else LABELS["values"])


def test_measures_of_an_spss_file_are_read(tmp_path):
    library = pytest.importorskip("pyreadstat")
    stated = {"sex": "nominal", "age": "scale", "town": "ordinal"}
    library.write_sav(people(), str(tmp_path / "p.sav"), variable_measure=stated)
    library.write_dta(people(), str(tmp_path / "p.dta"))

    assert io.read(tmp_path / "p.sav").measures == stated
    assert io.read(tmp_path / "p.dta").measures == {}


def test_the_order_of_categories_is_kept_where_a_frame_states_it():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    order = ["low", "mid", "high"]
    listed = pl.DataFrame({"x": pl.Series(["mid", "low"], dtype=pl.Enum(order))})
    theirs = pandas.DataFrame({
        "x": pandas.Categorical(["mid", "low"], categories=order, ordered=True),
        "y": pandas.Categorical(["b", "a"]),
    })  # fmt: skip

    for raw in (
        io.from_native(theirs),
        io.from_native(theirs, alone=True),
        io.from_native(arrow.Table.from_pandas(theirs)),
    ):
        assert raw.ordered == {"x": ("low", "mid", "high")}
    assert io.from_native(listed).ordered == {}


STATS_POLICY = """
version = 1
[columns]
name = "identifier"
sex = { role = "quasi-identifier", kind = "nominal", categories = [1, 2] }
age = { role = "quasi-identifier", kind = "numeric" }
born = { role = "quasi-identifier", kind = "date" }
town = "other"
[protect]
method = "mdav"
k = 3
"""


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
@pytest.mark.parametrize("form", ["sav", "dta"])
def test_labels_are_kept_from_file_to_release(tmp_path, suffix, form):
    data, rules, out = tmp_path / f"people{suffix}", tmp_path / "policy.toml", tmp_path / "release"
    write_stats(data, people())
    rules.write_text(STATS_POLICY, encoding="utf-8")

    result = CliRunner().invoke(
        app,
        ["protect", str(data), "--policy", str(rules), "--out", str(out), "--file-format", form],
    )

    assert result.exit_code == 0, result.output
    raw = io.read(out / f"release.{form}")
    kinds = {"sex": "nominal", "age": "scale", "born": "scale"}
    assert raw.all_labels() == {**LABELS, "measures": kinds if form == "sav" else {}}
    assert set(raw.frame["sex"].drop_nulls()) <= {1.0, 2.0}
    assert raw.frame["born"].dtype == pl.Date
    assert raw.frame.columns == ["sex", "age", "born", "town"]


ODD = {
    "true": [True, None, False],
    "decimal": [Decimal("1.25"), None, Decimal("-3.50")],
    "large": [2**40, None, 1],
    "moment": [datetime(2020, 1, 1, 12), None, datetime(1900, 1, 1)],  # noqa: DTZ001 (no zone)
    "empty": pl.Series([None, None, None], dtype=pl.Null),
    "kind": pl.Series(["a", None, "b"], dtype=pl.Categorical),
}


@pytest.mark.parametrize("form", ["sav", "dta", "xpt"])
def test_unusual_types_are_written_as_numbers_times_and_text(tmp_path, form):
    pytest.importorskip("pyreadstat")
    path = tmp_path / f"release.{form}"

    io.write(pl.DataFrame(ODD), path, labels={})

    back = io.read(path).frame
    assert back["true"].to_list() == [1, None, 0]
    assert back["decimal"].to_list() == [1.25, None, -3.5]
    assert back["large"].to_list() == [2**40, None, 1]
    assert back["moment"].to_list() == ODD["moment"]
    assert back["kind"].to_list() == ["a", None, "b"]


def test_labels_that_a_format_has_no_room_for_are_left_out(tmp_path):
    pytest.importorskip("pyreadstat")
    frame = pl.DataFrame({"code": [1.5, 2.0], "text": ["a", "b"]})
    labels = {
        "columns": {"code": "long " * 100},
        "values": {"code": {"1.5": "half", "2": "two", "?": "odd"}, "text": {"a": "Alpha"}},
    }

    for form in ("sav", "dta"):
        io.write(frame, tmp_path / f"release.{form}", labels=labels)

    spss, stata = (io.read(tmp_path / f"release.{form}") for form in ("sav", "dta"))
    assert spss.labels == {"code": {"1.5": "half", "2": "two"}, "text": {"a": "Alpha"}}
    assert stata.labels == {"code": {"2": "two"}}
    assert stata.column_labels["code"].startswith("long long")


def test_a_release_for_sas_is_a_transport_file_with_labels_of_columns(tmp_path):
    pytest.importorskip("pyreadstat")
    data, rules, out = tmp_path / "p.sav", tmp_path / "policy.toml", tmp_path / "release"
    write_stats(data, people())
    rules.write_text(STATS_POLICY, encoding="utf-8")

    result = CliRunner().invoke(
        app,
        ["protect", str(data), "--policy", str(rules), "--out", str(out), "--file-format", "xpt"],
    )

    assert result.exit_code == 0, result.output
    raw = io.read(out / "release.xpt")
    assert raw.column_labels == LABELS["columns"]
    assert raw.frame["born"].dtype == pl.Date
    assert json.loads((out / "labels.json").read_text("utf-8"))["values"] == LABELS["values"]
    assert verify(out).holds


def test_a_format_that_nobody_can_write_is_answered_with_one_that_sas_reads():
    with pytest.raises(InputError) as caught:
        io.check_writable("sas7bdat", ["a"])

    assert str(caught.value) == (
        "Expected a format among parquet, csv, xlsx, sav, dta, xpt, found 'sas7bdat'. SAS "
        "reads xpt."
    )


@pytest.mark.parametrize(
    ("form", "program", "name"), [("sav", "SPSS", "a b"), ("dta", "Stata", "a b"),
                                  ("xpt", "SAS", "größe")]
)  # fmt: skip
def test_a_name_that_a_program_does_not_take_is_refused_before_anything_is_spent(
    form, program, name
):
    pytest.importorskip("pyreadstat")

    with pytest.raises(InputError, match=f"for {program}: it cannot name a column '{name}'"):
        io.check_writable(form, ["age", name])


@pytest.mark.parametrize(
    ("form", "frame"),
    [
        ("sav", pl.DataFrame({"ALL": [1]})),
        ("dta", pl.DataFrame({"byte": [1]})),
        ("dta", pl.DataFrame({"x": ["Wilhelmina" * 300, None]})),
    ],
)
def test_what_a_statistics_file_cannot_hold_is_refused(tmp_path, form, frame):
    pytest.importorskip("pyreadstat")

    with pytest.raises(InputError, match="a name or a text does not fit the format") as caught:
        io.write(frame, tmp_path / f"release.{form}", labels={})

    assert "Wilhelmina" not in str(caught.value)


# Frames


def test_a_polars_frame_is_taken_as_it_is():
    raw = io.from_native(TABLE)

    assert raw.frame is TABLE
    assert raw.restoring(())(TABLE) is TABLE


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ([1, 2], "found list."),
        ({"a": [1]}, "found dict."),
        (None, "found NoneType."),
        (TABLE["age"], "found Series."),
    ],
)
def test_what_is_no_table_is_refused(data, found):
    with pytest.raises(InputError) as caught:
        io.from_native(data)

    start = "Expected a pandas, Polars or PyArrow table, or a table with an Arrow C stream, "
    assert str(caught.value) == start + found


class Streamed:
    """A table of a library that we do not know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, schema=None):
        return self.table.__arrow_c_stream__(schema)


def test_anything_that_speaks_the_arrow_c_stream_is_a_table():
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [date(2020, 1, 1), None]})

    raw = io.read(Streamed(frame))

    assert_frame_equal(raw.frame, frame)
    released = shoal.protect(
        Streamed(pl.DataFrame({"a": [1, 2, 3, 4]})),
        {"version": 1, "columns": {"a": {"role": "quasi-identifier", "kind": "numeric"}},
         "protect": {"method": "mdav", "k": 2}},
    )  # fmt: skip
    assert isinstance(released.data, pl.DataFrame)


def test_a_relation_of_duckdb_is_a_table():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i::int as a, (i % 2)::varchar as b from range(5) t(i)")

    assert io.read(relation).frame.rows()[:2] == [(0, "0"), (1, "1")]


def test_a_stream_that_was_read_before_is_refused():
    arrow = pytest.importorskip("pyarrow")
    reader = arrow.RecordBatchReader.from_batches(
        arrow.schema([("a", arrow.int64())]), [arrow.record_batch({"a": [1]})]
    )

    assert io.from_native(reader).frame.rows() == [(1,)]
    with pytest.raises(InputError, match="Cannot read the Arrow stream of RecordBatchReader"):
        io.from_native(reader)
    with pytest.raises(InputError, match=r"found Streamed."):
        io.from_native(Streamed(pl.Series([1, 2])))


def protect(data, **columns):
    return shoal.protect(
        data, {"version": 1, "columns": columns, "protect": {"method": "mdav", "k": 3}}
    ).data


QUASI = {"role": "quasi-identifier", "kind": "numeric"}
NOMINAL = {"role": "quasi-identifier", "kind": "nominal"}
OTHER = {"role": "other"}


def test_pandas_types_come_back():
    pd = pytest.importorskip("pandas")
    types = {
        "small": "int8", "single": "float32", "nullable": "Int16", "truth": "boolean",
        "text": "string", "arrow": "int64[pyarrow]", "object": object,
    }  # fmt: skip
    frame = pd.DataFrame(
        {name: pd.Series([1, 0] * 6, dtype="Int64").astype(kind) for name, kind in types.items()},
    )
    frame["age"] = range(12)
    frame["kind"] = pd.Categorical(["b", "a", None] * 4, categories=["b", "a"], ordered=True)
    frame["day"] = pd.to_datetime(["2020-01-01"] * 12)
    columns = {name: OTHER for name in frame.columns if name != "age"}

    released = protect(frame, age=QUASI, **columns)

    assert isinstance(released, pd.DataFrame)
    assert list(released.columns) == list(frame.columns)
    for name in columns:
        assert released[name].dtype == frame[name].dtype, name
        assert sorted(map(str, released[name])) == sorted(map(str, frame[name]))


def test_nan_in_pandas_is_missing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [20.0, 21.0, float("nan")] * 4})

    assert io.from_native(frame).frame["age"].null_count() == 4
    assert protect(frame, age=QUASI)["age"].isna().sum() in {0, 3, 4, 5}


def test_the_index_of_pandas_is_not_released():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": range(6)}, index=[f"Wilhelmina {i}" for i in range(6)])

    assert list(protect(frame, age=QUASI).index) == list(range(6))


def test_categories_that_are_gone_are_not_released():
    pd = pytest.importorskip("pandas")
    values = ["a"] * 10 + ["Atlantis"] + ["a"] * 9
    frames = [
        pd.DataFrame({"x": pd.Categorical(values), "age": range(20)}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Categorical), "age": range(20)}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(sorted(set(values)))),
                      "age": range(20)}),
    ]  # fmt: skip

    in_pandas, categorical, enumeration = (protect(frame, x=NOMINAL, age=QUASI) for frame in frames)

    assert list(in_pandas["x"].cat.categories) == ["a"]
    for frame in (categorical, enumeration):
        assert frame.schema["x"] == pl.Categorical
        assert "Atlantis" not in str(frame.to_arrow()["x"].chunk(0).dictionary)


def test_recoded_categories_survive_in_pandas(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recode.csv").write_text("a,z\n", encoding="utf-8")
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b"] * 3), "age": range(6)})

    released = protect(frame, x={**OTHER, "kind": "nominal", "recode": "recode.csv"}, age=QUASI)

    assert sorted(released["x"]) == ["b", "b", "b", "z", "z", "z"]


def test_a_missing_mark_in_whole_numbers_of_pandas_becomes_missing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"code": [1, -9] * 3, "age": range(6)})

    released = protect(frame, code={**OTHER, "kind": "numeric", "missing": [-9]}, age=QUASI)

    assert released["code"].isna().sum() == 3


@pytest.mark.parametrize("values", [[1, "Wilhelmina"], [1, {"Wilhelmina"}]])
def test_mixed_objects_are_refused_without_a_cell(values):
    pd = pytest.importorskip("pandas")

    with pytest.raises(InputError, match="found a column of mixed or unusual objects") as caught:
        io.from_native(pd.DataFrame({"x": values}))

    assert "Wilhelmina" not in str(caught.value)


def test_names_that_are_no_text_or_not_unique_are_refused():
    pd = pytest.importorskip("pandas")

    with pytest.raises(InputError, match="expected text as the name of column 1, found int"):
        io.from_native(pd.DataFrame([[1, 2]]))
    with pytest.raises(InputError, match="expected text as the name of column 1, found tuple"):
        io.from_native(pd.DataFrame({("a", "b"): [1]}))
    with pytest.raises(
        InputError, match="has two columns of the same name; expected each name once"
    ):
        io.from_native(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_arrow_types_come_back():
    pa = pytest.importorskip("pyarrow")
    columns = {
        "small": pa.array([1, None] * 6, pa.int8()),
        "large": pa.array(["x", None] * 6, pa.large_string()),
        "plain": pa.array(["x", None] * 6, pa.string()),
        "coded": pa.array(["x", "y"] * 6).dictionary_encode(),
        "day": pa.array([18_000] * 12, pa.date32()),
        "second": pa.array([18_000] * 12, pa.timestamp("s")),
        "price": pa.array([Decimal("1.25")] * 12, pa.decimal128(10, 2)),
    }
    table = pa.table({**columns, "age": pa.array(range(12))})

    released = protect(table, age=QUASI, **dict.fromkeys(columns, OTHER))

    assert isinstance(released, pa.Table)
    assert released.schema.names == table.schema.names
    for name in columns:
        assert released.schema.field(name).type == table.schema.field(name).type, name


def test_arrow_oddities_are_refused_or_given_back_plain():
    pa = pytest.importorskip("pyarrow")
    ages = pa.array(range(6))

    coded = pa.table({"x": pa.array([1, 2] * 3).dictionary_encode(), "age": ages})
    assert sorted(protect(coded, x=OTHER, age=QUASI)["x"].to_pylist()) == [1, 1, 1, 2, 2, 2]
    with pytest.raises(InputError, match="has two columns of the same name"):
        io.from_native(pa.table([ages, ages], names=["a", "a"]))
    with pytest.raises(InputError, match="column 1 has no name"):
        io.from_native(pa.table({"": ages}))


# Formulas


def test_formulas_are_guarded_in_text_of_any_type(tmp_path):
    risky = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "1", None]
    frame = pl.DataFrame(
        {"text": risky, "coded": pl.Series(risky, dtype=pl.Categorical), "n": range(-9, 0)}
    )

    io.write(frame, tmp_path / "release.csv", labels={})

    back = io.read(tmp_path / "release.csv").frame
    guarded = ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "x=1", "1", None]
    assert back["text"].to_list() == back["coded"].to_list() == guarded
    assert back["n"].to_list() == [str(n) for n in range(-9, 0)]


def test_a_table_of_numbers_has_nothing_to_guard(tmp_path):
    io.write(pl.DataFrame({"n": [-1]}), tmp_path / "r.csv", labels={})

    assert (tmp_path / "r.csv").read_text(encoding="utf-8") == "n\n-1\n"


texts = st.text(st.sampled_from("=+-@'\t\r\n\uff1dab,\""), min_size=1, max_size=4)


@given(
    cells=st.lists(texts, min_size=2, max_size=6),
    names=st.lists(texts, min_size=2, max_size=3, unique=True),
)
@example(cells=["=1", "'=1", "''=1"], names=["=a", "'=a"])
def test_what_is_guarded_runs_nowhere_and_is_read_back_beside_its_manifest(
    tmp_path_factory, cells, names
):
    folder = tmp_path_factory.mktemp("guarded")
    frame = pl.DataFrame(dict.fromkeys(names, cells))
    io.write(frame, folder / "release.csv", labels={})
    with (folder / "release.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file))
    stated = {"guard_formulas": True, "files": {"release.csv": {}}}
    (folder / "manifest.json").write_text(json.dumps(stated), encoding="utf-8")

    assert not [cell for row in written for cell in row if cell[0] in "=+-@\t\r\n\uff1d"]
    assert len({tuple(row) for row in written[1:]}) == len(set(cells))
    back = io.read(folder / "release.csv", delimiter=",").frame
    assert (back.columns, back.rows()) == (names, frame.rows())
    (folder / "manifest.json").write_text('{"guard_formulas": false, "files": {"release.csv": 1}}')
    plain = io.read(folder / "release.csv", delimiter=",").frame
    assert [plain.columns, *map(list, plain.rows())] == written


def test_a_first_row_of_numbers_is_no_header_and_is_not_shown(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("41987,3,ada\n2,4,bob\n")

    with pytest.raises(InputError, match="2 of the 3 names in its first row are numbers") as told:
        io.read(path)

    assert "41987" not in str(told.value)


def test_a_missing_header_is_told_before_its_cells_could_be_shown(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("20,0,0\n30,1,2\n")

    with pytest.raises(InputError, match="seems to lack a header") as told:
        io.read(path)

    assert "'0'" not in str(told.value)


@pytest.mark.parametrize("first", [0, 1])
def test_unnamed_row_numbers_that_r_and_pandas_write_are_left_out(tmp_path, first):
    path = tmp_path / "t.csv"
    path.write_text(f'"","a"\n"{first}",5\n"{first + 1}",6\n')

    raw = io.read(path)

    assert raw.frame.to_dict(as_series=False) == {"a": ["5", "6"]}
    assert "row numbers" in raw.found


def test_an_unnamed_column_of_other_numbers_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a\n7,5\n9,6\n")

    with pytest.raises(InputError, match="column 1 has no name"):
        io.read(path)


def test_a_small_parquet_of_one_long_text_is_refused_before_it_is_written_out(tmp_path):
    """64 kB of Parquet whose 250,000 cells share a text of a megabyte: 250 GB once touched."""
    rows, text = 250_000, "x" * 1_000_000
    frame = pl.DataFrame({"a": pl.Series([text], dtype=pl.Categorical)}).select(
        pl.col("a").gather(pl.repeat(0, rows, dtype=pl.UInt32))
    )
    for name in ("a.parquet", "a.arrow"):
        write = frame.write_parquet if name == "a.parquet" else frame.write_ipc
        write(tmp_path / name, compression="zstd")
        with pytest.raises(InputError, match="GiB of memory once it is decoded") as refused:
            io.read(tmp_path / name, limit=200_000_000_000)

        assert (tmp_path / name).stat().st_size < 4 << 20
        assert "x" * 10 not in str(refused.value)
    assert io.read(tmp_path / "a.parquet", limit=300_000_000_000).frame.height == rows


def test_a_small_parquet_of_many_rows_is_refused_undecoded_by_its_footer(tmp_path, monkeypatch):
    frame = pl.DataFrame({"a": pl.repeat(1, 200_000, eager=True, dtype=pl.Int8)})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow", compression="zstd")
    for name in ("read_parquet", "read_ipc"):
        monkeypatch.setattr(pl, name, lambda *_, **__: pytest.fail("it was decoded"))

    for name in ("a.parquet", "a.arrow"):
        with pytest.raises(InputError, match=r"the limit here is 0\.000931 GiB"):
            io.read(tmp_path / name, limit=1_000_000)


def test_the_memory_of_the_machine_is_the_limit_of_the_command(tmp_path, monkeypatch):
    """Only the footer is large: it says that there are 2^31 rows, which take 32 GiB."""
    monkeypatch.setattr(memory, "available", lambda: 16 << 30)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet", compression="uncompressed")
    raw = (tmp_path / "a.parquet").read_bytes()
    (length,) = struct.unpack("<I", raw[-8:-4])
    footer = raw[-8 - length : -8]
    # num_rows is field 3 of FileMetaData, a zigzag varint after the schema: 1 is 0x02.
    grown = footer.replace(b"\x16\x02", b"\x16" + b"\x80\x80\x80\x80\x10")
    (tmp_path / "a.parquet").write_bytes(
        raw[: -8 - length] + grown + struct.pack("<I", len(grown)) + b"PAR1"
    )

    done = CliRunner().invoke(app, ["init", str(tmp_path / "a.parquet")])

    assert done.exit_code == 2
    assert "once it is decoded" in done.stderr

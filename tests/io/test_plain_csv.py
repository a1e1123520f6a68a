from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal import io
from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError
from shoal.io import csv_files
from shoal.io.plain_csv import (
    CodedTexts,
    PlainRaw,
    apart,
    read_plain,
    read_texts,
    validated,
)
from shoal.io.raw import Raw
from shoal.io.validate import validate

NUMBERS = ["0", "7", "-7", "12345678", "123456789", "999999999999999", "-20"]
FRACTIONS = ["0.5", "-0.25", "3.0", "0.0", "12345.678901", "123456789.123456", "0.00000001"]
OTHERS = ["", "-0", "007", "1.50", "1e5", ".5", "5.", "+3", "-", "1,5", " 7", "1234567890123456",
          "0.1234567890123456", "a", "b c", "é", "12a", "NA", "2024-03-01", "1.2.3", "--1",
          "18446744073709551617"]  # fmt: skip
COLUMNS = (
    Column("x", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
    Column("x", Role.QUASI_IDENTIFIER, Kind.NUMERIC, missing=("7", "NA")),
    Column("x", Role.QUASI_IDENTIFIER, Kind.NOMINAL),
    Column("x", Role.QUASI_IDENTIFIER, Kind.NOMINAL, missing=("7", "a"), recode={"b c": "B"}),
    Column("x", Role.QUASI_IDENTIFIER, Kind.ORDINAL, categories=("0", "7", "0.5", "a", "é")),
    Column("x", Role.QUASI_IDENTIFIER, Kind.DATE),
    Column("x", Role.OTHER),
    Column("x", Role.IDENTIFIER, privacy_unit=True),
)


@st.composite
def files(draw):
    """Columns of cells of one sort or of several, as a file with either end of line."""
    rows = draw(st.integers(1, 12))
    kinds = [NUMBERS, FRACTIONS, [*NUMBERS, ""], [*FRACTIONS, ""], NUMBERS + FRACTIONS, OTHERS]
    kinds += [["", "a", "b c", "é"], NUMBERS + FRACTIONS + OTHERS]
    cells = [
        [draw(st.sampled_from(kind)) for _ in range(rows)]
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    ]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [";".join(row) for row in zip(["y"] * rows, *cells, strict=True)]
    head = ";".join(["y", *(f"c{i}" for i in range(len(cells)))])
    return end.join([head, *lines]) + draw(st.sampled_from(["", end]))


def both(text):
    """A file as it is read plainly, and as texts."""
    raw = text.encode()
    names = text.splitlines()[0].split(";")
    texts = read_texts(raw, ";")
    texts = texts[1:].rename(dict(zip(texts.columns, names, strict=True)))
    cells = read_plain(raw, start=raw.index(b"\n") + 1, separator=";", names=names)
    return cells and PlainRaw(cells, lambda: texts), Raw(texts)


def outcome(raw, column, name, decimal):
    """One column as `validated` makes it, or what it says."""
    renamed = {
        field: getattr(column, field) for field in Column.__dataclass_fields__ if field != "name"
    }
    others = [Column(other, Role.OTHER) for other in raw.names if other != name]
    schema = Schema((Column(name, **renamed), *others))
    try:
        table = validated(raw, schema, decimal=decimal)
    except InputError as error:
        return str(error)
    persons = None if table.persons is None else table.persons.tolist()
    return table.frame.to_dict(as_series=False), table.frame.schema, table.dtypes, persons


@given(files(), st.sampled_from(COLUMNS), st.sampled_from([None, ".", ","]))
@example("y;c0\n;1\n;2.5\n;3", COLUMNS[0], None)
@example("y;c0\ny;1.234\ny;2.5", COLUMNS[0], ",")
@example("y;c0\ny;1\ny;1.0\ny;2.5", COLUMNS[2], None)
@settings(deadline=None)
def test_a_plain_file_becomes_the_table_that_its_texts_become(text, column, decimal):
    plain, texts = both(text)

    if plain is None:  # many columns of mixed cells
        return
    assert plain.names == tuple(texts.names)
    assert plain.height == texts.height
    for name in texts.names:
        assert outcome(plain, column, name, decimal) == outcome(texts, column, name, decimal)


@given(files(), st.sampled_from(COLUMNS))
@settings(deadline=None)
def test_cells_are_told_apart_as_their_texts_are(text, column):
    plain, texts = both(text)

    for name in texts.names if plain is not None else ():
        one = Column(name, Role.QUASI_IDENTIFIER, missing=column.missing)
        found, twin = apart(plain, one), apart(texts, one)
        assert found.null_count() == twin.null_count()
        assert np.array_equal(_classes(found), _classes(twin))


def _classes(series):
    cells = series.to_list()
    return [cells.index(cell) for cell in cells]


@given(st.lists(st.integers(0, 10**15 - 1), min_size=1), st.integers(0, 14))
@settings(deadline=None)
def test_a_fraction_of_15_digits_is_the_nearest_float(digits, decimals):
    texts = [f"{n // 10**decimals}.{n % 10**decimals:0{decimals}d}" for n in digits if decimals]
    shortest = [text for text in texts if not text.endswith("0") and len(text) <= 16] or ["0.5"]

    plain, _ = both("y;x\n" + "".join(f"y;{text}\n" for text in shortest))

    assert plain.cells["x"].to_list() == [float(text) for text in shortest]


def test_numbers_are_numbers_and_texts_are_coded():
    plain, _ = both("y;a;b;c\nu;1;0.5;x\nv;;;\nu;-3;2;x\n")

    assert plain.cells["a"].to_list() == [1, None, -3]
    assert plain.cells["b"].to_list() == [0.5, None, 2.0]
    coded = plain.cells["y"]
    assert isinstance(coded, CodedTexts)
    assert (coded.texts.to_list(), coded.codes.to_list()) == (["u", "v"], [0, 1, 0])
    assert plain.cells["c"].codes.to_list() == [0, None, 0]


@pytest.mark.parametrize(
    "text",
    ['y;x\n"a";1\n', "y;x\n1;2;3\n", "y;x\n1\n", "y;x\n1;2\n\n3;4\n", "y;x\n1;2\r3;4\n", "y;x\n"],
)
def test_quotes_and_rows_of_another_length_are_not_plain(text):
    raw = text.encode()

    assert read_plain(raw, start=4, separator=";", names=("y", "x")) is None


def test_a_column_of_many_texts_is_read_as_text():
    rows = [f"{i};p{i};{i % 7}" for i in range(2000)]

    plain, _ = both("\n".join(["y;who;x", *rows]))

    assert plain.cells["who"].to_list() == [f"p{i}" for i in range(2000)]
    assert plain.cells["x"].dtype == pl.Int64


def test_a_long_file_is_read_plainly_and_its_texts_when_asked(tmp_path: Path):
    frame = pl.DataFrame({"n": range(200_000), "t": ["a", "b"] * 100_000})
    frame.write_csv(tmp_path / "long.csv")

    raw = io.read(tmp_path / "long.csv", plain=True)
    alone = io.read(tmp_path / "long.csv", alone=True, plain=True)

    assert isinstance(raw, PlainRaw)
    assert not isinstance(alone, PlainRaw)
    assert "frame" not in vars(raw)
    assert raw.height == 200_000
    assert raw.frame.equals(alone.frame)
    assert (raw.alone, alone.alone) == (False, True)
    assert (raw.found, raw.reading) == (alone.found, alone.reading)


def test_a_long_file_is_refused_in_the_words_of_its_texts(tmp_path: Path):
    path = tmp_path / "long.csv"
    path.write_text("n,t\n" + "1,2\n" * 300_000 + "x,3\n")
    schema = Schema((Column("n", Role.OTHER, Kind.NUMERIC), Column("t", Role.OTHER)))
    raw = io.read(path, plain=True)

    with pytest.raises(InputError) as said:
        validated(raw, schema, decimal=None)
    with pytest.raises(InputError) as wanted:
        validate(raw.frame, schema)

    assert str(said.value) == str(wanted.value)
    path.write_text("n,n\n" + "1,2\n" * 300_000)
    with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
        io.read(path, plain=True)
    path.write_text("1,2\n" * 300_000)
    with pytest.raises(InputError, match="seems to lack a header"):
        io.read(path, plain=True)
    assert path.stat().st_size > csv_files.LONG

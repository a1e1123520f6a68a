import encodings.aliases
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.io import csv_files
from shoal.io.csv_records import read_lines

LINES = st.text(st.sampled_from('ab1,"; \r\x00é'), max_size=8)


@given(st.lists(LINES, min_size=1, max_size=6), st.integers(1, 3))
@example(['x"y', '"x', 'x,"y,z"', '"x"z,1', "", ",", '""', ",,"], 2)
def test_every_line_is_a_record_and_is_read_by_itself(lines, width):
    together = read_lines(lines, ",", width)

    alone = [read_lines([line], ",", width) for line in lines]
    assert together.height == len(lines)
    assert together.rows() == [frame.row(0) for frame in alone]


def test_a_line_that_is_not_well_formed_has_missing_cells():
    lines = ['1,x"y', '2,"a,b"', "3", "4,5,6", '"7,8', '"9"9,0', '"a""b",', "", ",c"]

    assert read_lines(lines, ",", 2).rows() == [
        ("1", 'x"y'), ("2", "a,b"), *[(None, None)] * 4, ('a"b', None), (None, None), (None, "c"),
    ]  # fmt: skip


def read(raw, **options):
    stated = {"delimiter": ",", "encoding": None, "alone": True} | options
    return csv_files.read_csv(Path("t.csv"), raw, **stated)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("bad", [b'"', b'x"', b"1,2,3", b"\xff\xfe", b"\xe2\x82", b"", b'"",x"'])
def test_one_bad_line_leaves_all_others_as_they_are(end, bad):
    before, after = (read(end.join([b"a,b", b"1,2", line, b"3,4", b""])) for line in (b"5,6", bad))

    assert after.frame.height == before.frame.height == 3
    assert after.frame.rows()[::2] == before.frame.rows()[::2] == [("1", "2"), ("3", "4")]
    assert (after.found, after.reading) == (before.found, before.reading)


ENCODINGS = sorted(
    {*encodings.aliases.aliases.values(), "cp720", "euc_jisx0213", "koi8_u", "raw_unicode_escape"}
)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_encoding_ends_lines_where_their_bytes_end_or_is_refused_by_name(encoding):
    """Every byte alone, and every two, before either end of a line; and line ends in escapes."""
    rest = b"\n3,4\r5,6\n"
    try:
        read(b"a,b\n1,2\n", encoding=encoding)
        plain = rest.decode(encoding)
    except (InputError, LookupError):
        return
    odd = [bytes(one) for n in (1, 2) for one in product(range(1, 256), repeat=n)]

    for bad in (*odd, b"\xf0\x9f\x98", b"\x8f\xa1", b"\\u12", b"\x1b$B", b"~{", b"+A"):
        if not {*b"\r\n"} & {*bad}:
            assert (b"1," + bad + rest).decode(encoding, "replace").endswith(plain), bad
    for escaped in (b"\\u000a", b"\\U0000000a", b"\\x0a", b"\\n", b"=0A", b"%0A"):
        assert "\n" not in escaped.decode(encoding, "replace"), escaped


@pytest.mark.parametrize("raw", [b"\xff\xfea\0,\0b\0\n\0", b"\xfe\xff\0a\0,\0b\0\n"])
def test_an_encoding_without_lines_is_refused_by_the_first_bytes_alone(raw):
    with pytest.raises(InputError, match=r"each line of 't.csv' by itself, which the encoding"):
        read(raw)


def test_cells_of_several_lines_are_read_where_they_are_stated():
    raw = b'a,b\n1,"x\ny"\n2,z\n'

    assert read(raw, multiline=True).frame.rows() == [("1", "x\ny"), ("2", "z")]
    assert read(raw).frame.rows() == [(None, None), (None, None), ("2", "z")]


@pytest.mark.parametrize("rows", [1, 7])
def test_a_refusal_of_an_epsilon_release_tells_nothing_of_the_rows(rows):
    said = set()
    for bad in (b'"x', b"1,2,3"):
        with pytest.raises(InputError) as error:
            read(b"a,b\n" + b"1,2\n" * rows + bad, multiline=True)
        said.add(str(error.value))

    assert said == {f"Cannot read 't.csv' as CSV: {csv_files.MALFORMED}"}


def test_the_delimiter_follows_from_the_header_alone():
    for row in (b"1,2\n", b"1;2;3\n"):
        raw = read(b"a;b;c,d\n" + 9 * row, delimiter=None)

        assert raw.reading["delimiter"] == ";"

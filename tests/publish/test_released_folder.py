from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import io
from shoal.publish import protect_file
from shoal.publish.released_folder import as_read, read_table
from shoal.publish.verify_folder import verify
from shoal.report import released_columns

whole = st.integers(-(1 << 63), (1 << 63) - 1)
words = st.one_of(
    st.sampled_from(["a b", "1.50", "NaN", "-1", "'x", "", " ", "a\nb", "a;b", "Zoë", "=1", "a-b"]),
    st.text(max_size=4),
)


@st.composite
def frames(draw):
    rows = draw(st.integers(1, 6))

    def column(cells, dtype):
        optional = st.one_of(st.none(), cells)
        return pl.Series(draw(st.lists(optional, min_size=rows, max_size=rows)), dtype=dtype)

    return pl.DataFrame({
        "whole": column(whole, pl.Int64),
        "part": column(st.floats(), pl.Float64),
        "short": column(st.floats(width=32), pl.Float32),
        "word": column(words, pl.String),
    })  # fmt: skip


@given(frames(), st.sampled_from([",", "."]), st.sampled_from(["csv", "parquet"]))
@settings(deadline=None)
def test_a_table_that_is_taken_for_its_file_is_drawn_as_the_file_is(
    tmp_path_factory, frame, decimal, form
):
    known = as_read(frame, form)
    if known is None:
        return
    folder = tmp_path_factory.mktemp("release")
    delimiter = ";" if decimal == "," else ","
    dialect = {"delimiter": delimiter, "decimal": decimal, "encoding": "utf-8"}
    io.write(frame, folder / f"release.{form}", labels={}, dialect=io.csv_files.Dialect(**dialect))
    types = {name: str(dtype) for name, dtype in frame.schema.items()}
    fields = SimpleNamespace(
        files={f"release.{form}": {}},
        guard_formulas=True,
        dialect=dialect,
        columns=types,
        rows=frame.height,
    )

    again = read_table(folder, fields)

    assert released_columns.columns(again) == released_columns.columns(known)


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"a": [1.0, float("nan")], "b": [1, 2]}),
        pl.DataFrame({"a": ["", "x"], "b": [1, 2]}),
        pl.DataFrame({"a": ['"x"', "x"], "b": [1, 2]}),
        pl.DataFrame({"=a": [1, 2], "b": [1, 2]}),
        pl.DataFrame({"a": [True, False], "b": [1, 2]}),
        pl.DataFrame({"a": [1, None]}),
    ],
)
def test_what_a_csv_file_may_change_is_read_again(frame):
    assert as_read(frame, "csv") is None


def test_plain_words_and_numbers_are_not_read_again():
    frame = pl.DataFrame({"a": ["secondary", None], "b": [0.1, 1e300]})

    known = as_read(frame, "csv")

    assert known is not None
    assert known.frame is frame
    assert as_read(known, "csv") is known
    assert as_read(frame, "sav") is None


@pytest.mark.parametrize("suffix", ["sav", "dta", "xlsx", "csv", "parquet"])
def test_codes_that_a_file_holds_as_floats_are_those_that_verify_knows(tmp_path, suffix):
    codes, data = [1.0, 2.0, 3.0, None] * 30, tmp_path / f"people.{suffix}"
    table = pl.DataFrame({"code": codes, "sex": ["f", "m"] * 60, "pay": [100.5, 200, 300] * 40})
    io.write(table, data, labels={})
    (tmp_path / "policy.toml").write_text(shoal.draft(data).text)

    protect_file.protect(data, tmp_path / "policy.toml", tmp_path / "out")

    assert 'kind = "nominal"' in (tmp_path / "policy.toml").read_text()
    assert verify(tmp_path / "out").holds

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from shoal.io.column_counts import ROWS, ColumnCounts

cells = st.lists(st.sampled_from([None, "", "a", "b", *map(str, range(9))]), min_size=1)


@given(cells, st.integers(1, 3))
@settings(deadline=None)
def test_cells_are_counted_with_missing_ones(some, times):
    series = pl.Series("x", some * times, dtype=pl.String)

    found = ColumnCounts(series.to_frame()).cells("x")

    assert_frame_equal(found, series.value_counts(name=ROWS), check_row_order=False)


@given(st.lists(st.none() | st.integers(-3, 3), min_size=1))
@settings(deadline=None)
def test_cells_of_other_types_are_counted_too(some):
    series = pl.Series("x", some, dtype=pl.Int64)

    found = ColumnCounts(series.to_frame()).cells("x")

    assert_frame_equal(found, series.value_counts(name=ROWS), check_row_order=False)


def test_texts_after_the_first_rows_are_counted_too():
    series = pl.Series("x", ["a"] * 2000 + ["b"])

    found = ColumnCounts(series.to_frame()).cells("x")

    assert dict(found.rows()) == {"a": 2000, "b": 1}


@given(st.lists(st.none() | st.integers(-3, 3).map(float), min_size=1))
@settings(deadline=None)
def test_present_numbers_are_counted_in_order_and_once(some):
    counts = ColumnCounts(pl.DataFrame({"x": pl.Series(some, dtype=pl.Float64)}))
    present = [number for number in some if number is not None]

    values, times = counts.numbers("x")

    assert values.tolist() == sorted(set(present))
    assert times.tolist() == [present.count(value) for value in values]
    assert counts.numbers("x") is counts.numbers("x")

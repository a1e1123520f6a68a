from datetime import date
from decimal import Decimal

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Column, Kind, Role, Schema
from shoal.io import clamp

QUASI = Role.QUASI_IDENTIFIER
NUMBER = Column("x", QUASI, Kind.NUMERIC, bounds=(Decimal(0), Decimal(10)))
DAY = Column("x", QUASI, Kind.DATE, bounds=(date(2000, 1, 1), date(2000, 1, 31)))
LEVEL = Column("x", QUASI, Kind.NOMINAL, categories=("a", "b", "rest"), other="rest")


def adopt(cells, column):
    return clamp.clamp(pl.DataFrame({"x": cells}), Schema((column,)), columns=("x",))


cells = st.lists(st.none() | st.text(max_size=4) | st.floats().map(str), min_size=1)


@given(cells)
def test_any_text_becomes_a_number_within_bounds_each_cell_by_itself(values):
    series = pl.Series(values, dtype=pl.String)

    whole, _ = adopt(series, NUMBER)
    alone = [adopt(series[i : i + 1], NUMBER)[0].frame["x"][0] for i in range(len(values))]

    assert whole.frame["x"].to_list() == alone
    assert whole.frame["x"].is_between(0, 10).all()


@given(cells)
def test_any_text_becomes_a_declared_category_each_cell_by_itself(values):
    series = pl.Series(values, dtype=pl.String)

    whole, _ = adopt(series, LEVEL)

    assert [v if v in {"a", "b"} else "rest" for v in values] == whole.frame["x"].to_list()


def test_what_was_clamped_is_counted_and_never_refused():
    _, numbers = adopt(["5", "-3", "99", "word", None, "nan"], NUMBER)
    _, categories = adopt(["a", "z", None], LEVEL)
    _, days = adopt(["2000-01-05", "1999-12-31", "soon"], DAY)

    assert numbers["x"] == {"missing": 1, "unreadable": 2, "outside": 2}
    assert categories["x"] == {"missing": 1, "unknown": 1}
    assert days["x"] == {"missing": 0, "unreadable": 1, "outside": 1}
    low, high = date(2000, 1, 10), date(2000, 3, 31)
    stepped = Column("x", QUASI, Kind.DATE, bounds=(low, high), date_step="month")
    firsts = adopt(["2000-01-20", "2000-02-20", "1999-12-31", "soon"], stepped)[0].frame["x"]
    assert firsts.to_list() == [low, date(2000, 2, 1), low, date(2000, 2, 1)]


def test_missing_cells_become_the_stated_constant_or_the_middle():
    stated = Column("x", QUASI, Kind.NUMERIC, bounds=NUMBER.bounds, missing_as=Decimal(1))
    level = Column("x", QUASI, Kind.NOMINAL, categories=("a", "none"), missing_as="none")

    assert adopt([None], NUMBER)[0].frame["x"].to_list() == [5.0]
    assert adopt([None], stated)[0].frame["x"].to_list() == [1.0]
    assert adopt([None], DAY)[0].frame["x"].to_list() == [date(2000, 1, 16)]
    assert adopt(pl.Series([None], dtype=pl.String), level)[0].frame["x"].to_list() == ["none"]


def test_types_leave_as_the_policy_says_and_not_as_the_data_came():
    whole, _ = adopt([1, 2], NUMBER)
    parts, _ = adopt([1.5, 2.5], NUMBER)

    assert whole.publishable().schema == parts.publishable().schema == {"x": pl.Float64}
    assert adopt([1, 2], LEVEL)[0].publishable().schema == {"x": pl.String}


def test_cells_of_another_sort_count_as_unreadable_whatever_the_type_of_their_column():
    for values, column in (([date(2000, 1, 1)], NUMBER), ([1], DAY)):
        _, counts = adopt(values, column)

        assert counts["x"]["unreadable"] == 1


def test_a_category_with_its_accent_apart_is_the_declared_one():
    column = Column("x", Role.CONFIDENTIAL, Kind.NOMINAL, categories=("other", "caf\u00e9"))

    values, counts = clamp.clamped(
        pl.Series("x", ["cafe\u0301", "caf\u00e9", "cafe"]), column, None, keep=False
    )

    assert values.to_list() == ["caf\u00e9", "caf\u00e9", "other"]
    assert counts["unknown"] == 1

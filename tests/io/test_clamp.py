from datetime import date
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError
from shoal.io import clamp
from shoal.io.frames import from_native
from shoal.io.persons import spell_persons

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

    assert numbers["x"] == {"missing": 1, "unreadable": 2, "outside": 2, "coded": 0}
    assert categories["x"] == {"missing": 1, "unknown": 1, "coded": 0}
    assert days["x"] == {"missing": 0, "unreadable": 1, "outside": 1, "coded": 0}
    coded = {"bounds": (0, 20), "step": Decimal(5), "top_code": Decimal(15)}
    _, steps = adopt(["5", "7", "18", "99", None], Column("x", QUASI, Kind.NUMERIC, **coded))
    assert steps["x"] == {"missing": 1, "unreadable": 0, "outside": 1, "coded": 3}
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

    values, counts = clamp.clamp_column(
        pl.Series("x", ["cafe\u0301", "caf\u00e9", "cafe"]), column, None
    )

    assert values.to_list() == ["caf\u00e9", "caf\u00e9", "other"]
    assert counts["unknown"] == 1


PERSONS = {
    "version": 1,
    "columns": {
        "id": {"role": "identifier", "privacy_unit": True, "max_contributions": 1},
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]},
    },
    "protect": {"method": "laplace", "epsilon": 1},
}
IDS = st.one_of(
    st.integers(-(10**20), 10**20),
    st.sampled_from(
        [10**400, 10**5000, 7, "7", 7.0, " 07 ", Decimal("7.00"), Decimal("1E+999999")]
    ),
    st.floats(),
    st.decimals(allow_nan=True),
    st.text(max_size=5),
    st.sampled_from([None, True, [1], {"a": 1}, b"7", date(2020, 1, 1), Fraction(1, 3)]),
)


@given(st.lists(IDS, min_size=1, max_size=6))
@example([10**17 + 1, 10**17 + 2, "100000000000000053X"])
@example([10**17 + 1, 10**17 + 2, 0.5])
def test_an_id_among_others_is_read_as_it_is_read_alone(cells):
    column = Column("id", Role.IDENTIFIER, privacy_unit=True)

    def spelled(some):
        return spell_persons(clamp.texts(pl.Series("id", some, dtype=pl.Object)), column)

    assert spelled(cells).to_list() == [spelled([cell])[0] for cell in cells]


def test_numbers_and_texts_of_one_id_are_one_person_and_long_ids_keep_their_digits():
    column = Column("id", Role.IDENTIFIER, privacy_unit=True)
    cells = [7, "7", 7.0, " 07", "7.0", Decimal("7.00"), np.int64(7), 10**17 + 1, 10**17 + 2]

    ids = spell_persons(clamp.texts(pl.Series("id", cells, dtype=pl.Object)), column)

    assert ids.to_list() == ["7"] * 7 + ["100000000000000001", "100000000000000002"]


@pytest.mark.parametrize("odd", ["100000000000000053X", None, 10**30])
def test_one_id_of_another_type_leaves_the_persons_of_a_pandas_table(odd):
    """With ids of 18 digits, 401 persons became 27 rows."""
    ids = [10**17 + row for row in range(400)]

    for some in (ids, [*ids, odd]):
        held = pd.Series(some, dtype=object if odd is None else None)
        people = pd.DataFrame({"id": held, "age": 30})
        assert len(shoal.protect(people, PERSONS).data) == len(some)


TIMES = pd.Series(pd.date_range("2020-01-01 00:30", periods=9, freq="5h"))
HELD = [
    TIMES,
    TIMES.dt.tz_localize("Asia/Tokyo"),
    TIMES.astype("datetime64[ns]") + pd.to_timedelta(range(9), unit="ns"),
    pd.Series(range(-9, 0)),
    pd.Series(10**18 - np.arange(9)),
    pd.Series(pd.to_timedelta(range(9), unit="s")),
    pd.Series([UUID(int=number) for number in range(9)]),
]
"""Ids as pandas holds them, in columns of a type of their own where they have one."""


@pytest.mark.parametrize("marks", [(), ("-9.0", "999999999999999999")])
@pytest.mark.parametrize("held", HELD, ids=lambda held: str(held.dtype))
def test_the_type_of_a_pandas_column_says_nothing_of_whose_rows_they_are(held, marks):
    """With one text among them, times of one day were one person, and marks other numbers."""
    column = Column("id", Role.IDENTIFIER, privacy_unit=True, missing=marks)
    mixed = pd.Series([*held, "odd"], dtype=object)

    def persons(ids):
        raw = from_native(pd.DataFrame({"id": ids}), alone=True)
        return spell_persons(clamp.texts(raw.frame["id"]), column).to_list()

    assert persons(mixed)[:9] == persons(held)
    assert len(set(persons(held))) == 9
    assert persons(held).count(None) == bool(marks) * (held.dtype == int)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York", "UTC"])
def test_the_type_of_a_pandas_column_says_nothing_of_the_day_of_a_time(zone):
    held = TIMES.dt.tz_localize(zone)
    mixed = pd.Series([*held, "odd"], dtype=object)

    typed, objects = (
        clamp.readable(from_native(pd.DataFrame({"x": one}), alone=True).frame["x"], DAY, None)
        for one in (held, mixed)
    )

    assert objects[:9].to_list() == typed.to_list()


def test_a_pandas_id_of_floats_is_refused_by_its_type():
    """One id of 0.5 made 202 persons of 401: pandas had lost the digits of all others."""
    people = pd.DataFrame({"id": [10**17 + 1, 10**17 + 2, 0.5], "age": 30})

    with pytest.raises(InputError, match="pandas holds it as float64, in which long numbers lose"):
        shoal.protect(people, PERSONS)


@pytest.mark.parametrize(
    ("flag", "whom"), [("privacy_unit", "persons"), ("household", "households")]
)
def test_an_id_of_floats_is_refused_without_an_epsilon_too(flag, whom):
    """Two persons that became one count as two of k where rows are released."""
    ids = [float(10**17 + number) for number in range(8)]
    people = pd.DataFrame({"id": ids, "age": 30})
    stated = {
        "version": 1,
        "one_row_per_person": flag == "household",
        "columns": {
            "id": {"role": "identifier", flag: True},
            "age": {"role": "quasi-identifier", "kind": "numeric"},
        },
        "protect": {"method": "mdav", "k": 2},
    }

    with pytest.raises(InputError, match=f"'id' numbers the {whom}, and pandas holds it as float"):
        shoal.protect(people, stated)
    people["id"] = [str(10**17 + number) for number in range(8)]
    assert len(shoal.protect(people, stated).data) == 8


@pytest.mark.parametrize(
    "protect", [{"method": "laplace", "epsilon": 1}, {"method": "mdav", "k": 2}]
)
def test_complex_numbers_are_refused_by_their_type(protect):
    """One of them makes complex numbers of all cells in pandas, and everybody's age was missing."""
    age = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]}
    stated = {"version": 1, "columns": {"age": age}, "protect": protect}

    with pytest.raises(InputError, match="Column 'age' holds complex128 values; expected one numb"):
        shoal.protect(pd.DataFrame({"age": [20, 30, 3j, 40]}), stated)


@pytest.mark.parametrize(
    ("stated", "became"),
    [
        ({"keep_missing": True}, None),
        ({"keep_missing": True, "other": "b"}, "b"),
        ({"keep_missing": False}, "a"),
        ({"keep_missing": False, "missing_as": "b"}, "a"),
        ({"keep_missing": False, "other": "c"}, "c"),
    ],
)
def test_an_unlisted_category_is_missing_where_missing_is_a_value(stated, became):
    """As a number is that cannot be read; no person is put into a category of others."""
    column = Column("x", Role.CONFIDENTIAL, Kind.NOMINAL, categories=("a", "b", "c"), **stated)

    values, counts = clamp.clamp_column(pl.Series("x", ["c", "Narnia", None]), column, ".")

    assert values[:2].to_list() == ["c", became]
    assert (values[2] is None) == column.keep_missing
    assert counts == {"missing": 1, "unknown": 1, "coded": 0}

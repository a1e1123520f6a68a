"""Dates are read by a format, and written back by it."""

from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.io import dates

DAYS = st.lists(st.dates(date(1000, 1, 1), date(9999, 12, 31)) | st.none(), max_size=20)


@given(DAYS, st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d.%m.%Y %H:%M", "%B %d, %Y"]))
def test_what_a_format_writes_it_reads(days, form):
    values = pl.Series("x", days, dtype=pl.Date)

    text = dates.write_dates(values, form)

    assert text.dtype == pl.String
    assert dates.read_days(text, form).to_list() == days
    assert dates.read(text, form).cast(pl.Date).to_list() == days


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), min_size=1))  # noqa: DTZ001 (dates have no zone)
def test_a_format_with_a_time_of_day_keeps_the_time(times):
    minutes = [time.replace(second=0, microsecond=0) for time in times]
    values = pl.Series("x", minutes, dtype=pl.Datetime("us"))

    text = dates.write_dates(values, "%d.%m.%Y %H:%M")

    assert dates.read(text, "%d.%m.%Y %H:%M").to_list() == minutes
    assert dates.read_days(text, "%d.%m.%Y %H:%M").to_list() == [time.date() for time in minutes]


def test_days_that_a_format_cannot_hold_stay_as_they_are():
    old = pl.Series("x", [date(1915, 1, 2)])

    assert dates.write_dates(old, "%d.%m.%y").to_list() == [date(1915, 1, 2)]
    assert dates.write_dates(old, "%m.%Y").to_list() == [date(1915, 1, 2)]


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("dd.mm.yyyy", "%d.%m.%Y"),
        ("DD/MM/YY", "%d/%m/%y"),
        ("yyyy-MM-dd'T'", "%Y-%m-%d't'"),
        ("m/d/yyyy", "%m/%d/%Y"),
        ("dd.mm.yyyy hh:mm:ss", "%d.%m.%Y %H:%M:%S"),
        ("hh:mm dd.mm.yyyy", "%H:%M %d.%m.%Y"),
        ("dd mmm yyyy", "%d %b %Y"),
        ("%d.%m.%Y", "%d.%m.%Y"),
    ],
)
def test_words_for_a_format_are_understood(words, form):
    assert dates.strptime_format(words) == form


@pytest.mark.parametrize("form", ["%Y", "%d.%m", "tt.%m.jjjj", "%Q", "", "%", "%H:%M"])
def test_a_format_that_gives_no_date_is_none(form):
    assert not dates.is_format(form)


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d.%m.%y", "%m/%Y", "%Y-%m-%dT%H:%M:%S", "%F"])
def test_a_format_that_gives_a_month_or_a_day_is_one(form):
    assert dates.is_format(form)


def test_without_a_format_a_time_may_stand_behind_the_day():
    text = pl.Series(["2023-09-17 14:33:00", "2023-09-18T00:00:00"])

    assert dates.read(text, None).dt.hour().to_list() == [14, 0]
    assert dates.read_days(text, None).to_list() == [date(2023, 9, 17), date(2023, 9, 18)]


def test_zones_are_no_part_of_a_day():
    moment = datetime(2023, 9, 17, 23, 30, tzinfo=UTC)

    assert dates.write_dates(pl.Series([moment]), "%d.%m.%Y").to_list() == ["17.09.2023"]


@given(st.integers(1900, 2100), st.lists(st.dates(date(1, 1, 1), date(9999, 12, 31)), min_size=1))
def test_two_digits_of_a_year_are_the_last_year_that_ends_so(last, days):
    form = f"%d.%m.%y until {last}"
    text = pl.Series("x", [f"{day:%d.%m}.{day.year % 100:02}" for day in days])

    for read in (dates.read, dates.read_days):
        found = read(text, form)
        assert found.name == "x"
        for day, cell in zip(found, text, strict=True):
            if day is None:  # such as 29 February where that year has none
                assert cell.startswith("29.02.")
            else:
                assert last - 100 < day.year <= last
                assert f"{day:%d.%m}.{day.year % 100:02}" == cell
        kept = found.drop_nulls()
        assert dates.write_dates(kept, form).to_list() == text.filter(found.is_not_null()).to_list()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("令和5年4月1日", date(2023, 4, 1)), ("R5.4.1", date(2023, 4, 1)),
        ("昭和60年", date(1985, 1, 1)), ("平成元年1月8日", date(1989, 1, 8)),
        ("大正 15 年 12 月 24 日", date(1926, 12, 24)), ("明治45年7月", date(1912, 7, 1)),
        ("Ｒ５．４．１", date(2023, 4, 1)), ("㋿5年4月1日", date(2023, 4, 1)),
        ("H31/4/30", date(2019, 4, 30)), ("昭和65年1月1日", None), ("R0.1.1", None),
        ("R5.13.1", None), ("2023-04-01", None), ("いつか", None), (None, None),
    ],
)  # fmt: skip
def test_years_of_japanese_eras_are_read(text, day):
    series = pl.Series("x", [text], dtype=pl.String)

    assert dates.is_format("era")
    assert dates.strptime_format("era") == "era"
    assert dates.read(series, "era").to_list() == [day]
    assert dates.read_days(series, "era").to_list() == [day]


@pytest.mark.parametrize("form", [None, "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%SZ"])
@pytest.mark.parametrize("offset", ["", "Z", "+02:00", "-1130"])
def test_the_day_of_a_time_with_an_offset_is_that_of_its_place(form, offset):
    text = pl.Series("x", [f"2024-05-01T23:30:00{offset}", None])

    assert dates.read_days(text, form).to_list() == [date(2024, 5, 1), None]
    assert dates.read(text, form).to_list() == [datetime(2024, 5, 1, 23, 30), None]  # noqa: DTZ001


@pytest.mark.parametrize("form", ["dd.mm.yyyy until 2024", "yy until 2024", "dd.mm.yy until x"])
def test_a_century_that_cannot_be_is_no_format(form):
    assert not dates.is_format(dates.strptime_format(form))

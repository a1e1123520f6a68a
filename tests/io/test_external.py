"""Releases by other tools: every format by hand, and round trips of our own."""

import re
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import io
from shoal import policy as policies
from shoal.core import SpatialDecomposition
from shoal.io import decomposition_table
from shoal.io.external import read
from shoal.io.external.cells import Form, interval, moment, numeric

TAXONOMY = """13053,1305*,130**,*
13058,1305*,130**,*
13068,1306*,130**,*
14850,1485*,148**,*
14853,1485*,148**,*
"""
AGE = {"role": "quasi-identifier", "kind": "numeric"}
ILL = {"role": "confidential", "kind": "nominal", "categories": ["flu", "gout", "none"]}
EDUCATION = {
    "role": "quasi-identifier",
    "kind": "ordinal",
    "categories": ["none", "primary", "secondary", "tertiary"],
}
ORIGIN = date(1970, 1, 1)
EARLY, LATE = (datetime.fromisoformat(f"{year}-01-01") for year in (1950, 2030))


def stated(columns, **more):
    return policies.load(
        {"version": 1, "columns": columns, "protect": {"method": "mdav", "k": 2}, **more}
    )


def one(original, released, column, **more):
    """Read tables of one column, and give its boxes."""
    reading = read.read_external_release(
        pl.DataFrame({"x": original}), pl.DataFrame({"x": released}), stated({"x": column}, **more)
    )
    return reading, list(zip(reading.lower[:, 0], reading.upper[:, 0], strict=True))


def box(original, cell, column=AGE, **more):
    return one(original, [cell], column, **more)[1][0]


def days(text):
    return float((date.fromisoformat(text) - ORIGIN).days)


def covered(reading):
    """Whether box i holds place i, axis by axis; a missing place is in no box of numbers."""
    places, lower, upper = reading.places, reading.lower, reading.upper
    return (places >= lower) & ((places < upper) | (reading.exact & (places == lower)))


WHOLE = [0, 25, 110]


# --- round trips ---------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(-50, 50) | st.none(),
            st.floats(-1e6, 1e6) | st.none(),
            st.dates(date(1900, 1, 1), date(2030, 1, 1)) | st.none(),
            st.sampled_from(["a", "b", "b, c", "c", None]),
            st.sampled_from(EDUCATION["categories"]),
            st.sampled_from(["13053", "13058", "13068", "14850", "14853", None]),
        ),
        min_size=3,
        max_size=30,
    ),
    st.integers(2, 3),
)
def test_intervals_sets_and_ancestors_of_our_own_cover_every_value_that_they_replace(
    tmp_path_factory, rows, k
):
    folder = tmp_path_factory.getbasetemp()
    (folder / "zip.csv").write_text(TAXONOMY, encoding="utf-8")
    columns = {
        "whole": AGE,
        "real": AGE,
        "born": {"role": "quasi-identifier", "kind": "date"},
        "flat": {"role": "quasi-identifier", "kind": "nominal"},
        "edu": EDUCATION,
        "zip": {
            "role": "quasi-identifier",
            "kind": "nominal",
            "hierarchy": str(folder / "zip.csv"),
        },
    }
    policy = policies.load(
        {"version": 1, "columns": columns, "protect": {"method": "mondrian", "k": k}}
    )
    kinds = {"whole": pl.Int64, "real": pl.Float64, "born": pl.Date}
    original = pl.DataFrame(
        rows, orient="row", schema={n: kinds.get(n, pl.String) for n in columns}
    )
    released = shoal.protect(original, policy, keep_order=True).data

    for written in (released, released.cast(pl.String)):
        reading = read.read_external_release(original, written, policy, aligned=True)

        present = ~np.isnan(reading.places)
        assert (covered(reading) | ~present).all()
        assert not any("cannot be read" in line for line in reading.how)
        assert not any(
            "covers no row" in line or "cover no row" in line for line in reading.findings
        )


@given(st.lists(st.datetimes(EARLY, LATE), min_size=2))
def test_intervals_of_times_read_back(values):
    low, high = min(values), max(values)
    text = pl.Series([low, high], dtype=pl.Datetime("us")).cast(pl.String)
    cell = text[0] if low == high else f"[{text[0]}, {text[1]}]"

    reading, ((lower, upper),) = one(
        pl.Series(values, dtype=pl.Datetime("us")), [cell], {**AGE, "kind": "date"}
    )

    assert lower == reading.places.min()
    assert upper == (lower if low == high else np.nextafter(reading.places.max(), np.inf))


@given(st.integers(-40, 40), st.integers(1, 40))
def test_every_notation_of_one_interval_of_whole_numbers_reads_to_the_same_box(low, width):
    high = low + width
    written = [
        f"[{low}, {high}]", f"[{low},{high}]", f"[{low}; {high}]", f"[{low}, {high + 1})",
        f"[{low}, {high + 1}[", f"({low - 1}, {high}]", f"]{low - 1}, {high}]",
        f"({low - 1}, {high + 1})", f"]{low - 1};{high + 1}[", f"{low}-{high}", f"{low} - {high}",
        f"{low}–{high}", f"{low}—{high}", f"{low}..{high}", f"{low}...{high}", f"{low} to {high}",
        f"{low}~{high}", f"[{low}-{high}]", f"[{low}.0, {high}.0]", f"[{low - 0.5}, {high + 0.5})",
        f"{low}–{high}".replace("-", "−"),
    ]  # fmt: skip

    _, boxes = one([-100, 100], written, AGE)

    assert set(boxes) == {(low, high + 1)}


@given(st.floats(-1e9, 1e9), st.floats(0.001, 1e6))
def test_closed_intervals_of_fractions_hold_both_ends_and_open_ones_none(low, width):
    high = low + width
    original = [low - 0.5, high + 0.5]

    closed = box(original, f"[{low!r}, {high!r}]")
    opened = box(original, f"({low!r}, {high!r})")

    assert closed == (low, np.nextafter(high, np.inf))
    assert opened == (np.nextafter(low, np.inf), high)


@given(st.lists(st.floats(-1e9, 1e9) | st.none(), min_size=1, max_size=20))
def test_numbers_read_the_same_as_numbers_and_as_text(values):
    original = pl.Series([0.5, 1.0])
    as_numbers, boxes = one(original, pl.Series(values, dtype=pl.Float64), AGE)
    as_text, texts = one(original, [None if v is None else repr(v) for v in values], AGE)

    assert boxes == texts
    assert (as_numbers.suppressed == as_text.suppressed).all()
    assert as_numbers.how == as_text.how


ODD = st.text(st.sampled_from("019.,;:-–+*<>=[](){}|~/ ex'abnto∞−\u0661²\t"), max_size=12)


@given(st.lists(ODD | st.text(max_size=6) | st.none(), min_size=1, max_size=12))
def test_any_text_in_any_column_gives_a_box(texts):
    columns = {
        "n": AGE,
        "r": {**AGE, "bounds": [-5, 5]},
        "d": {**AGE, "kind": "date"},
        "c": {**AGE, "kind": "nominal"},
        "o": EDUCATION,
    }
    original = pl.DataFrame(
        {"n": [1, 9], "r": [0.5, 1.5], "d": ["1990-01-01", "2000-01-01"], "c": ["a", "b"],
         "o": ["none", "primary"]}
    )  # fmt: skip
    released = pl.DataFrame({name: pl.Series(texts, dtype=pl.String) for name in columns})

    for decimal in (".", ","):
        reading = read.read_external_release(
            original, released, stated(columns, reading={"decimal": decimal})
        )

        assert np.isfinite(reading.lower).all()
        assert np.isfinite(reading.upper).all()
        assert (reading.lower <= reading.upper).all()
        assert ((reading.lower < reading.upper) | reading.exact).all()
        hidden = reading.suppressed
        low, high = (np.broadcast_to(end, hidden.shape)[hidden] for end in reading.domains.T)
        assert (reading.lower[hidden] == low).all()
        assert (reading.upper[hidden] == high).all()


# --- each format by hand -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("37", (37, 37)),
        (" 37 ", (37, 37)),
        ("37.0", (37, 37)),
        ("+37", (37, 37)),
        ("36.5", (36.5, 36.5)),
        ("3.7e1", (37, 37)),
        ("-5--1", (-5, 0)),
        ("-5-3", (-5, 4)),
        ("-5 to -1", (-5, 0)),
        ("[-5, -1)", (-5, -1)),
        ("(20,30]", (21, 31)),
        ("]20, 30[", (21, 30)),
        ("[20, 20]", (20, 20)),
        ("[20, 21)", (20, 20)),
        ("20-20", (20, 20)),
        (">=65", (65, 111)),
        ("≥ 65", (65, 111)),
        (">65", (66, 111)),
        ("65+", (65, 111)),
        ("65 and over", (65, 111)),
        ("65 or more", (65, 111)),
        ("over 65", (66, 111)),
        ("<18", (-10, 18)),
        ("<= 3", (-10, 4)),
        ("≤3", (-10, 4)),
        ("under 18", (-10, 18)),
        ("17 and under", (-10, 18)),
        ("[65, inf)", (65, 111)),
        ("[65, ∞[", (65, 111)),
        ("(-inf, 18)", (-10, 18)),
        ("[65,)", (65, 111)),
        (">=110", (110, 110)),
        ("[0, 1000]", (0, 111)),
        ("{20, 21, 22}", (20, 23)),
        ("{20; 40}", (20, 41)),
        ("2*", (20, 30)),
        ("1**", (100, 111)),
        ("250", (250, 250)),
        ("*", (-10, 111)),
        ("**", (-10, 111)),
        ("NA", (-10, 111)),
        ("", (-10, 111)),
        (None, (-10, 111)),
        ("NaN", (-10, 111)),
        ("20s", (-10, 111)),
        ("young", (-10, 111)),
        ("[30, 20]", (-10, 111)),
        ("20,29", (-10, 111)),
        ("1-2-3", (-10, 111)),
        ("inf", (-10, 111)),
        ("[20, 20)", (-10, 111)),
    ],
)
def test_a_cell_of_whole_numbers_covers_the_whole_numbers_that_it_names(cell, expected):
    assert box([-10, 25, 110], cell) == expected


def test_unreadable_cells_are_counted_and_score_as_suppressed():
    reading, _ = one(WHOLE, ["20s", "young", "*", None, "25"], AGE)

    assert reading.suppressed[:, 0].tolist() == [True, True, True, True, False]
    assert reading.how == (
        (
            "'x': of 5 cells, 1 holds one value; 1 is suppressed by a star; 1 is missing; 2 cannot "
            "be read or are not known categories. 4 cells count as the whole domain of the "
            "column, that is the range of the original; where distributions are compared, what is "
            "missing is missing."
        ),
    )


def test_one_value_is_exact_whatever_it_is_written_as():
    reading, _ = one(WHOLE, ["25", "[25, 25]", "[25, 26)", "25-26", "*"], AGE)

    assert reading.exact[:, 0].tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("20,5", 20.5),
        ("[20,5, 30,5[", (20.5, 30.5)),
        ("[20,5; 30,5[", (20.5, 30.5)),
        ("[20,5,30,5[", (20.5, 30.5)),
        ("[20, 30[", (20.0, 30.0)),
        (">=20,5", (20.5, np.nextafter(90.5, 100))),
        ("20.5", 20.5),
        ("[20.5, 30.5)", (20.5, 30.5)),
    ],
)
@pytest.mark.parametrize("reading", [{}, {"reading": {"decimal": ","}}])
def test_a_decimal_comma_is_read_where_the_policy_states_it_or_the_original_has_it(
    cell, expected, reading
):
    wanted = expected if isinstance(expected, tuple) else (expected, expected)

    assert box(["10,25", "90,5"], cell, **reading) == wanted


def test_a_point_beside_decimal_commas_groups_thousands_and_is_not_read():
    reading, _ = one(["10,5", "9000,5"], ["1.234", "10,5"], AGE)

    assert reading.suppressed[:, 0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("cell", "first", "after"),
    [
        ("1990", "1990-01-01", "1991-01-01"),
        ("1990-05", "1990-05-01", "1990-06-01"),
        ("1990-12", "1990-12-01", "1991-01-01"),
        ("1990-Q2", "1990-04-01", "1990-07-01"),
        ("1990-W05", "1990-01-29", "1990-02-05"),
        ("1990-Q5", "1970-01-01", "2010-01-01"),
        ("1990-W60", "1970-01-01", "2010-01-01"),
        ("1990-1999", "1990-01-01", "2000-01-01"),
        ("[1990, 2000)", "1990-01-01", "2000-01-01"),
        ("[1990-01-01, 1999-12-31]", "1990-01-01", "2000-01-01"),
        ("[1990-01-01, 2000-01-01[", "1990-01-01", "2000-01-01"),
        ("1990-01-01/1999-12-31", "1990-01-01", "2000-01-01"),
        ("1990-01-01 to 1999-12-31", "1990-01-01", "2000-01-01"),
        ("1990-01-01-1999-12-31", "1990-01-01", "2000-01-01"),
        ("03/02/1990", "1990-02-03", "1990-02-03"),
        ("1990-02-03", "1990-02-03", "1990-02-03"),
        ("03/02/1990-04/02/1990", "1990-02-03", "1990-02-05"),
        (">=1995", "1995-01-01", "2010-01-01"),
        ("<1980-01-01", "1970-01-01", "1980-01-01"),
        ("1990-13", "1970-01-01", "2010-01-01"),
        ("1990-02-30", "1970-01-01", "2010-01-01"),
    ],
)
def test_dates_years_months_and_their_intervals_cover_their_days(cell, first, after):
    column = {"role": "quasi-identifier", "kind": "date", "date_format": "%d/%m/%Y"}

    found = box(["01/01/1970", "05/06/1990", "31/12/2009"], cell, column)

    assert found == (days(first), days(after))


def test_dates_and_years_of_their_own_types_are_read():
    column = {"role": "quasi-identifier", "kind": "date"}
    original = ["1980-01-01", "1999-12-31"]

    assert box(original, date(1990, 2, 3), column) == (days("1990-02-03"),) * 2
    assert box(original, 1990, column) == (days("1990-01-01"), days("1991-01-01"))


def test_a_day_is_an_interval_where_the_original_has_times():
    original = pl.Series(["1990-02-01T12:00:00", "1990-02-05T00:00:00"])
    column = {"role": "quasi-identifier", "kind": "date"}

    reading, boxes = one(original, ["1990-02-03", "1990-02-03T12:00:00"], column)

    assert boxes == [(days("1990-02-03"), days("1990-02-04")), (days("1990-02-03") + 0.5,) * 2]
    assert reading.exact[:, 0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("primary", (1, 2)),
        ("none", (0, 1)),
        ("Primary ", (1, 2)),
        ("[primary, tertiary]", (1, 4)),
        ("[primary, tertiary)", (1, 3)),
        ("primary-secondary", (1, 3)),
        ("primary – secondary", (1, 3)),
        (">=secondary", (2, 4)),
        ("<secondary", (0, 2)),
        ("secondary+", (2, 4)),
        ("{none, secondary}", (0, 3)),
        ("{none,primary}", (0, 2)),
        ("none|primary", (0, 2)),
        ("*", (0, 4)),
        ("NA", (0, 4)),
        ("doctor", (0, 4)),
    ],
)
def test_a_cell_of_an_ordinal_covers_its_categories(cell, expected):
    assert box(["none", "primary"], cell, EDUCATION) == expected


@pytest.fixture
def zips(tmp_path):
    (tmp_path / "zip.csv").write_text(TAXONOMY, encoding="utf-8")
    return {"role": "quasi-identifier", "kind": "nominal", "hierarchy": str(tmp_path / "zip.csv")}


@pytest.mark.parametrize(
    ("cell", "expected", "form"),
    [
        ("13058", (1, 2), Form.ONE),
        ("1305*", (0, 2), Form.NODE),
        ("130**", (0, 3), Form.NODE),
        ("*", (0, 5), Form.STAR),
        ("1485x", (0, 5), Form.UNKNOWN),
        ("{13053, 13058}", (0, 2), Form.SET),
        ("{1305*, 13068}", (0, 3), Form.SET),
        ("{13053, 14853}", (0, 5), Form.SET),
        ("13*", (0, 3), Form.MASK),
        ("13***", (0, 3), Form.MASK),
        ("****8", (1, 3), Form.MASK),
    ],
)
def test_ancestors_sets_and_masks_cover_what_is_below_them(zips, cell, expected, form):
    reading, (found,) = one(["13053", "14853"], [cell], zips)

    assert found == expected
    assert reading.suppressed[0, 0] == (form in {Form.STAR, Form.UNKNOWN})
    scattered = cell == "{13053, 14853}"
    assert any("not neighbours" in line for line in reading.how) == scattered


@pytest.mark.parametrize(
    "cell", ["{a, c}", "{a,c}", "{'a', 'c'}", "frozenset({'a', 'c'})", "['a', 'c']", "a|c", "a;c",
             "a,c", "a~c", "a/c", "a or c", "{a|c}"]
)  # fmt: skip
def test_a_set_without_order_is_scored_as_its_hull_and_said(cell):
    reading, (found,) = one(["a", "b", "c", "d"], [cell], {**AGE, "kind": "nominal"})

    assert found == (0, 3)
    assert "1 set or mask was scored with all values in between" in reading.how[0]


def test_masks_of_undeclared_categories_fit_those_of_the_original():
    column = {"role": "quasi-identifier", "kind": "nominal"}

    assert box(["13053", "13068", "14850"], "130**", column) == (0, 2)
    assert box(["13053", "13068", "14850"], "15***", column) == (0, 3)


def test_missing_categories_have_a_place_of_their_own_that_stars_cover():
    reading, boxes = one(["a", None, "b"], ["a", None, "*"], {**AGE, "kind": "nominal"})

    assert reading.places[:, 0].tolist() == [0, 2, 1]
    assert boxes == [(0, 1), (0, 3), (0, 3)]
    assert reading.domains.tolist() == [[0, 3]]


def test_recoded_and_missing_marks_of_the_policy_are_understood(tmp_path):
    (tmp_path / "recode.csv").write_text("cohabiting,married\n", encoding="utf-8")
    marital = {
        "role": "quasi-identifier", "kind": "nominal", "categories": ["single", "married"],
        "recode": str(tmp_path / "recode.csv"),
    }  # fmt: skip
    age = {**AGE, "missing": [-9]}

    assert box(["single", "cohabiting"], "cohabiting", marital) == (1, 2)
    assert box([1, 2], -9, age) == (1, 3)
    assert box([1, 2], "-9", age) == (1, 3)


def test_truth_values_and_numbers_are_categories_where_the_policy_says_so():
    column = {"role": "quasi-identifier", "kind": "nominal"}

    assert box([True, False], "TRUE", column) == (1, 2)
    assert box([True, False], True, column) == (1, 2)
    assert box([1, 2, 3], 2.0, column) == (1, 2)
    assert box([1, 2, 3], "2.0", column) == (1, 2)


@pytest.mark.parametrize(
    ("released", "expected"),
    [
        (pl.Series(["25", "*"], dtype=pl.Categorical), [25, 0]),
        (pl.Series(["25", "*"], dtype=pl.Enum(["*", "25"])), [25, 0]),
        (pl.Series(["25.00", None]).cast(pl.Decimal(6, 2)), [25, 0]),
        (pl.Series([25, None], dtype=pl.UInt8), [25, 0]),
        (pl.Series([25.0, float("nan")]), [25, 0]),
        (pl.Series([25.0, float("inf")]), [25, 0]),
        (pl.Series([True, None]), [1, 0]),
        (pl.Series([None, None]), [0, 0]),
    ],
)
def test_columns_of_any_plain_type_are_read(released, expected):
    reading, _ = one(WHOLE, released, AGE)

    assert reading.lower[:, 0].tolist() == expected
    assert reading.suppressed[1, 0]


def test_times_with_a_zone_are_read_as_times_in_utc():
    times = pl.Series([EARLY, LATE], dtype=pl.Datetime("us"))
    column = {"role": "quasi-identifier", "kind": "date"}

    released = times.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    reading, _ = one(times, released, column)

    assert (reading.lower == reading.places).all()


def test_a_category_wins_over_a_mark_of_missing():
    column = {"role": "quasi-identifier", "kind": "nominal", "categories": ["NA", "None", "?"]}

    _, boxes = one(["NA", "?"], ["NA", "none", "?", "*", "null"], column)

    assert boxes == [(0, 1), (1, 2), (2, 3), (0, 3), (0, 3)]


def test_cells_of_no_plain_type_are_not_read():
    reading, _ = one([1, 2], pl.Series([[1, 2], [2]]), AGE)

    assert reading.suppressed.all()
    assert "2 cannot be read" in reading.how[0]


def test_numbers_beyond_the_domain_keep_their_place_and_are_said():
    reading, boxes = one([1, 5], ["-3", "9", ">=7", "<0", "[7, 9]"], AGE)

    assert boxes[:2] == [(-3, -3), (9, 9)]
    assert boxes[4] == (7, 10)
    assert np.isfinite(reading.lower).all()
    assert np.isfinite(reading.upper).all()
    assert (
        "5 cells lie outside the range of the original; such cells are not moved" in reading.how[0]
    )


def test_an_interval_that_can_be_read_in_two_ways_is_not_read():
    assert numeric("[1,2,3]", [","], whole=False).form is Form.UNKNOWN
    assert interval("20", lambda _text: None) is None
    assert moment("1990-00", None) is None


def documented():
    """Every text of the first table of formats, with the values that the page says it covers."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "external-releases.md").read_text(
        "utf-8"
    )
    table = page.split("| written | covers |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        written, covers = re.split(r"(?<!\\)\|", line)[1:3]
        span = re.match(r"(\S+?)(?: to (\d+))?(?::|$)", covers.strip())
        for cell in re.findall(r"`([^`]+)`", written):
            yield cell.replace("\\|", "|"), float(span[1]), float(span[2] or span[1])


@pytest.mark.parametrize(("cell", "low", "high"), list(documented()))
def test_every_format_of_the_page_is_read_as_it_says(cell, low, high):
    found = box([0, 25, 110], cell, {**AGE, "bounds": [0, 110]})

    assert found == (low, high if low == high else high + 1)


# --- columns and rows ----------------------------------------------------------------------------


PEOPLE = pl.DataFrame(
    {
        "id": [1, 2, 3, 4],
        "age": [25, 31, 47, 62],
        "edu": ["none", "primary", "primary", "tertiary"],
        "ill": ["flu", "gout", "flu", "none"],
    }
)
COLUMNS = {
    "id": {"role": "identifier", "privacy_unit": True},
    "age": AGE,
    "edu": EDUCATION,
    "ill": ILL,
}
POLICY = stated(COLUMNS)


def test_columns_may_come_in_any_order_and_in_other_case():
    released = PEOPLE.select(pl.col("ill").alias("ILL"), "edu", pl.col("age").alias(" Age "))

    reading = read.read_external_release(PEOPLE, released, POLICY)

    assert reading.columns == ("age", "edu", "ill")
    assert (reading.lower[:, 0] == PEOPLE["age"].to_numpy()).all()
    assert reading.findings == ("' Age ' was read as 'age'.", "'ILL' was read as 'ill'.")


def test_dropped_and_added_columns_are_said():
    released = PEOPLE.select("age", "ill", pl.lit(1).alias("group"), pl.lit(2).alias("run"))

    reading = read.read_external_release(PEOPLE, released, POLICY)

    assert reading.schema.names == ("age", "ill")
    assert reading.findings == (
        "The release lacks 'edu', which the original has: nothing about it is evaluated.",
        (
            "The release holds 'group', 'run', which the policy does not name: they are ignored. "
            "If a column was renamed, state its new name."
        ),
    )


def test_renamed_columns_are_read_where_stated():
    released = PEOPLE.select(pl.col("age").alias("years"), "edu", "ill")

    reading = read.read_external_release(PEOPLE, released, POLICY, rename={"years": "age"})

    assert reading.columns == ("age", "edu", "ill")
    assert reading.findings == ()


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ({"yers": "age"}, "the release has no column 'yers'."),
        ({"years": "agee"}, "the policy names no column 'agee'. Did you mean 'age'?"),
        ({"years": "edu", "ill": "edu"}, "expected each column of the policy once"),
    ],
)
def test_a_rename_that_does_not_fit_is_refused(rename, message):
    released = PEOPLE.select(pl.col("age").alias("years"), "ill")

    with pytest.raises(shoal.InputError, match=r"^rename: ") as caught:
        read.read_external_release(PEOPLE, released, POLICY, rename=rename)

    assert message in str(caught.value)


def test_tables_without_a_common_column_are_refused_without_their_names():
    with pytest.raises(shoal.InputError) as caught:
        read.read_external_release(PEOPLE, pl.DataFrame({"a": [1], "b": [2]}), POLICY)

    assert str(caught.value) == (
        "The release has no column that can be evaluated: expected some of 'age', 'edu', 'ill', "
        "found 2 others. If columns were renamed, say which became which; if the file lacks a "
        "header, add one."
    )


def test_an_original_of_another_policy_is_refused():
    with pytest.raises(shoal.InputError, match="The original has 1 column, but none of the"):
        read.read_external_release(pl.DataFrame({"a": [1]}), PEOPLE, POLICY)


def test_names_that_two_columns_share_but_for_case_are_not_guessed():
    released = PEOPLE.select(pl.col("age").alias("Age"), pl.col("age").alias("AGE"), "ill")

    reading = read.read_external_release(PEOPLE, released, POLICY)

    assert reading.columns == ("ill",)
    assert "nothing about them" in reading.findings[0]


def test_columns_without_a_kind_are_not_measured():
    columns = {**COLUMNS, "note": "other"}
    original = PEOPLE.with_columns(note=pl.lit("x"))

    reading = read.read_external_release(original, original.drop("id"), stated(columns))

    assert reading.findings == ("'note' has no kind in the policy and is not evaluated.",)


@pytest.mark.parametrize("released", [PEOPLE.clear(), pl.DataFrame()])
def test_an_empty_release_is_refused_with_a_sentence(released):
    with pytest.raises(shoal.InputError, match="The release has no rows; there is nothing to ev"):
        read.read_external_release(PEOPLE, released, POLICY)


def test_fewer_and_more_rows_are_said_and_leave_the_alignment_unknown():
    fewer = read.read_external_release(PEOPLE, PEOPLE.drop("id")[:3], POLICY)
    more = read.read_external_release(PEOPLE, pl.concat([PEOPLE.drop("id")] * 2), POLICY)

    assert fewer.findings == ("The release has 3 rows and the original 4: 1 fewer.",)
    assert more.findings == ("The release has 8 rows and the original 4: 4 more.",)
    assert fewer.aligned is None


def test_equal_numbers_of_rows_prove_no_alignment_and_the_caller_may_state_it():
    released = PEOPLE.drop("id")

    assert read.read_external_release(PEOPLE, released, POLICY).aligned is None
    assert read.read_external_release(PEOPLE, released, POLICY, aligned=True).aligned is True
    assert read.read_external_release(PEOPLE, released, POLICY, aligned=False).aligned is False
    with pytest.raises(shoal.InputError, match="expected 4 released rows, found 3"):
        read.read_external_release(PEOPLE, released[:3], POLICY, aligned=True)


@given(st.permutations(range(4)))
def test_a_row_key_in_both_tables_puts_rows_in_order(order):
    reading = read.read_external_release(PEOPLE, PEOPLE[list(order)], POLICY)

    assert reading.aligned is True
    assert covered(reading).all()
    assert reading.findings == ("The release holds the identifier 'id': it names people. Drop it.",)


def test_a_row_key_of_other_rows_denies_the_alignment():
    other = PEOPLE.with_columns(id=pl.col("id") + 2)

    assert read.read_external_release(PEOPLE, other, POLICY).aligned is False
    assert read.read_external_release(PEOPLE, PEOPLE[:2], POLICY).aligned is False
    with pytest.raises(shoal.InputError, match="the row key 'id' differs in 4 rows"):
        read.read_external_release(PEOPLE, other, POLICY, aligned=True)


def test_one_row_constant_and_all_missing_releases_are_read():
    kept = PEOPLE.drop("id")
    single = read.read_external_release(PEOPLE, kept[:1], POLICY)
    constant = read.read_external_release(PEOPLE, pl.concat([kept[:1]] * 4), POLICY)
    nothing = read.read_external_release(PEOPLE, kept.clear(4), POLICY)

    assert single.lower.shape == (1, 3)
    assert (constant.lower == constant.lower[0]).all()
    assert nothing.suppressed.all()
    assert (nothing.lower == nothing.domains[:, 0]).all()
    assert (nothing.upper == nothing.domains[:, 1]).all()
    assert "Every cell of 'age' is suppressed, missing or cannot be read." in nothing.findings


def test_constant_and_all_missing_originals_have_a_domain():
    columns = {"a": AGE, "b": {**AGE, "kind": "nominal"}, "c": AGE}
    original = pl.DataFrame(
        {"a": [5, 5], "b": [None, None], "c": [None, None]},
        schema={"a": pl.Int64, "b": pl.String, "c": pl.Float64},
    )

    reading = read.read_external_release(
        original, pl.DataFrame({"a": ["*"], "b": ["x"], "c": [1]}), stated(columns)
    )

    assert reading.domains.tolist() == [[5, 6], [0, 1], [0, 1]]
    assert reading.suppressed.tolist() == [[True, True, False]]


def test_the_weights_of_the_original_come_along():
    columns = {**COLUMNS, "w": {"role": "other", "kind": "numeric", "sampling_weight": True}}
    original = PEOPLE.with_columns(w=pl.Series([1.5, 2, 1, 1]))
    released = PEOPLE.drop("id")

    reading = read.read_external_release(original, released, stated(columns))

    assert reading.weights.tolist() == [1.5, 2, 1, 1]
    with pytest.raises(shoal.InputError, match="is the sampling weight, but 1 row has none"):
        read.read_external_release(
            original.with_columns(w=pl.Series([1, None, 1, 1])), released, stated(columns)
        )


# --- what is odd ---------------------------------------------------------------------------------


def test_confidential_cells_under_stars_are_found():
    released = pl.DataFrame(
        {
            "age": ["[20, 50[", "[20, 50[", "*", "*"],
            "edu": ["none", "primary", "*", "*"],
            "ill": ["flu", "gout", "flu", None],
        }
    )

    reading = read.read_external_release(PEOPLE, released, POLICY)

    assert reading.findings == (
        (
            "2 rows have every quasi-identifier suppressed: such rows count as released "
            "and cover the whole domain."
        ),
        (
            "1 row has every quasi-identifier suppressed and still shows its 'ill', as ARX leaves "
            "it; drop this row or clear the cell."
        ),
    )


def test_a_generalised_release_of_other_people_is_found():
    released = pl.DataFrame(
        {"age": ["70-79", "80-89"] * 2, "edu": ["none"] * 4, "ill": ["flu"] * 4}
    )

    reading = read.read_external_release(PEOPLE, released, POLICY)

    assert reading.findings == (
        (
            "Of 4 generalised rows that were checked, 4 cover no row of the original: the two "
            "files may not be about the same people, or cells were changed as well."
        ),
    )


def test_single_values_of_other_people_are_found_and_means_are_only_recorded():
    rng = np.random.default_rng(1)
    original = pl.DataFrame({"x": rng.normal(50, 10, 400)})
    policy = stated({"x": AGE})

    means = read.read_external_release(
        original, pl.DataFrame({"x": rng.normal(50, 9, 400)}), policy
    )
    others = read.read_external_release(
        original, pl.DataFrame({"x": rng.normal(150, 10, 400)}), policy
    )

    assert means.findings == ()
    assert "0 are found in the original; averaged, perturbed and synthetic" in means.how[1]
    assert "'x' is distributed far from it: the two files may not be about" in others.findings[0]


def test_a_missing_category_is_found_where_somebody_lacks_it_and_nobody_with_another_value():
    rows = [(float(age), edu) for age in range(400) for edu in ("none", None)][::2]
    original = pl.DataFrame([*rows, (500.0, None)], schema=["age", "edu"], orient="row")
    policy = stated({"age": AGE, "edu": EDUCATION})
    released = original.with_columns(pl.lit(None, pl.String).alias("edu"))

    reading = read.read_external_release(original, released, policy)

    assert "checked, 1 is found in the original" in reading.findings[-1]


def test_no_sentence_holds_a_cell_of_the_original():
    secret = PEOPLE.with_columns(age=pl.Series([731, 842, 953, 964]), edu=pl.lit("tertiary"))
    released = pl.DataFrame(
        {"age": ["731", "[842, 953]", "rubbish", "*"], "edu": ["tertiary", "x", "*", "{none}"]}
    )

    reading = read.read_external_release(secret, released, POLICY)

    said = " ".join((*reading.how, *reading.findings))
    assert not any(cell in said for cell in ("731", "842", "953", "964", "tertiary", "rubbish"))


# --- files of other tools ------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_files_of_any_encoding_are_read(tmp_path, encoding):
    columns = {"age": AGE, "stadt": {"role": "quasi-identifier", "kind": "nominal"}, "ill": ILL}
    original = pl.DataFrame({"age": [25, 31], "stadt": ["Köln", "Gießen"], "ill": ["flu", "none"]})
    path = tmp_path / "release.csv"
    path.write_bytes("age;stadt;ill\n20–39;Köln;flu\n20–39;{Gießen, Köln};none\n".encode(encoding))

    reading = read.read_external_release(original, io.read(path).frame, stated(columns))

    assert reading.lower.tolist() == [[25, 1, 0], [25, 0, 2]]
    assert reading.upper.tolist() == [[32, 2, 1], [32, 2, 3]]


def test_a_file_as_arx_writes_it_is_read_from_end_to_end(tmp_path, zips):
    columns = {"age": {**AGE, "bounds": [0, 99]}, "zip": zips, "ill": ILL}
    original = pl.DataFrame(
        {
            "age": [23, 28, 31, 35, 80],
            "zip": ["13053", "13068", "14850", "14853", "13058"],
            "ill": ["flu", "gout", "none", "none", "gout"],
        }
    )
    path = tmp_path / "arx.csv"
    path.write_text(
        "age;zip;ill\n[20, 30[;130**;flu\n[20, 30[;130**;gout\n[30, 40[;148**;none\n"
        "[30, 40[;148**;none\n*;*;gout\n",
        encoding="utf-8",
    )

    reading = read.read_external_release(
        original, io.read(path).frame, stated(columns), aligned=True
    )

    assert covered(reading).all()
    assert reading.lower[:, :2].tolist() == [[20, 0], [20, 0], [30, 3], [30, 3], [0, 0]]
    assert reading.upper[:, :2].tolist() == [[30, 3], [30, 3], [40, 5], [40, 5], [100, 5]]
    assert (
        "1 row has every quasi-identifier suppressed and still shows its 'ill'"
        in (reading.findings[1])
    )


def test_a_file_as_sdcmicro_writes_it_is_read_from_end_to_end(tmp_path):
    path = tmp_path / "sdc.csv"
    path.write_text(
        '"age","edu","ill"\n25.5,NA,"flu"\nNA,"primary","gout"\n47,"primary","flu"\n62,NA,"none"\n',
        encoding="utf-8",
    )

    reading = read.read_external_release(PEOPLE, io.read(path).frame, POLICY)

    assert reading.suppressed.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert reading.lower[0, 0] == 25.5
    assert reading.how[1].startswith("'edu': of 4 cells, 2 hold one value; 2 are missing.")


def test_a_tree_of_ours_is_read_as_boxes_from_parquet_and_from_text():
    born = {
        "role": "quasi-identifier",
        "kind": "date",
        "bounds": [date(1970, 1, 1), date(1970, 12, 31)],
    }
    columns = {"age": {**AGE, "bounds": [0, 99]}, "edu": EDUCATION, "born": born, "ill": ILL}
    original = PEOPLE.drop("id").with_columns(born=ORIGIN + timedelta(days=7))
    policy = stated(columns)
    boxes = SpatialDecomposition(
        ("age", "edu", "born"), [[0, 0, 0], [50, 0, 0]], [[50, 5, 365], [100, 5, 365]],
        [[2, 1, 0], [0, 0, 1]], ("flu", "gout", "none"), "ill", (False, True, False),
    )  # fmt: skip
    frame = decomposition_table.to_frame(boxes, policy.schema)

    for written in (frame, frame.cast(pl.String)):
        reading = read.read_external_release(original, written, policy)

        assert reading.columns == ("age", "edu", "born")
        assert reading.schema.names == ("age", "edu", "born", "ill")
        assert (reading.lower == boxes.lower).all()
        assert (reading.upper == boxes.upper).all()
        assert (reading.tree.counts == boxes.counts).all()
        assert reading.how == (
            "The release is a tree: 2 boxes with counts by 'ill'; the boxes stand in for rows.",
        )
    with pytest.raises(
        shoal.InputError, match="of the tree: expected numbers, found something else in 2 rows"
    ):
        read.read_external_release(original, frame.with_columns(age_lower=pl.lit("x")), policy)

"""From a frame of any types to the types that a policy states, and back."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from shoal import policy
from shoal.core import Column, Kind, Role
from shoal.errors import InputError
from shoal.io import validate
from shoal.io.persons import spell_persons


def schema(**columns):
    protect = {"method": "mdav", "k": 3}
    return policy.load({"version": 1, "columns": columns, "protect": protect}).schema


def adopt(values, *, dtype=None, decimal=None, **keys):
    """Bring one column in, and give it as the methods see it."""
    series = pl.Series("x", values, dtype=dtype)
    rules = schema(x={"role": "confidential", **keys})
    return validate.validate(series.to_frame(), rules, decimal=decimal)


def seen(values, **keys):
    return adopt(values, **keys).frame["x"].to_list()


def released(values, **keys):
    return adopt(values, **keys).publishable()["x"]


def refusal(values, **keys):
    with pytest.raises(InputError) as caught:
        adopt(values, **keys)
    return str(caught.value)


# Missing


def test_marks_in_text_mean_missing():
    marks = {"missing": ["n/a", -9]}

    assert seen(["1", "n/a", "-9", None], kind="numeric", **marks) == [1, None, None, None]
    assert seen(["a", "n/a", "-9", None], kind="nominal", **marks) == ["a", None, None, None]
    assert seen(["2020-01-31", "n/a"], kind="date", **marks) == [date(2020, 1, 31), None]


def test_marks_in_numbers_mean_missing():
    assert seen([1, -9, 3], kind="numeric", missing=["-9", "n/a"]) == [1, None, 3]
    assert seen([1.5, -9.0], kind="numeric", missing=[-9]) == [1.5, None]
    assert seen([1, -9], kind="nominal", missing=[-9]) == ["1", None]


def test_nan_can_be_a_mark():
    values = [1.0, float("nan"), None]

    assert seen(values, kind="numeric", missing=["NaN"]) == [1.0, None, None]
    assert seen(values, kind="nominal", missing=["nan"]) == ["1", None, None]
    assert "found NaN or infinite numbers in 1 row (" in refusal(values, kind="numeric")
    assert "found NaN or infinite numbers in 1 row (" in refusal(values, kind="nominal")


def test_marks_hold_for_columns_without_a_kind():
    rules = schema(x={"role": "other", "missing": ["?"]})

    table = validate.validate(pl.DataFrame({"x": ["a", "?"]}), rules)

    assert table.publishable()["x"].to_list() == ["a", None]


# Numbers


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["1", "2.5", ".5", "1e3"], [1.0, 2.5, 0.5, 1000.0]),
        ([" 1", "2 "], [1, 2]),
        (["1,5", "2"], [1.5, 2.0]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["99999999999999999999", "1"], [1e20, 1.0]),
        (["1", None], [1, None]),
    ],
)
def test_numbers_are_read_from_text(cells, numbers):
    result = seen(cells, kind="numeric")

    assert result == numbers
    assert list(map(type, result)) == list(map(type, numbers))


@pytest.mark.parametrize(
    "cells",
    [["1,234", "2,345"], ["1.234,5", "2"], ["1,5", "2.5"], ["1 000"], ["0x10"], ["1_0"], ["one"]],
)
def test_what_may_be_thousands_or_is_no_number_is_refused(cells):
    assert "expected numbers, found something else" in refusal(cells, kind="numeric")


def test_a_stated_decimal_mark_settles_it():
    assert seen(["1,234", "2"], kind="numeric", decimal=",") == [1.234, 2.0]
    assert seen(["1,234", "-2"], kind="numeric", decimal=".") == [1234, -2]
    assert seen(["$1,234.50", "-$3", "2.75%"], kind="numeric", decimal=".") == [1234.5, -3, 2.75]
    assert seen(["€ 1.234,5", "1 234 CHF"], kind="numeric", decimal=",") == [1234.5, 1234]
    for odd in ("1,23", "12,3456", "$", "A 1", "1,234,5", "--1"):
        assert "something else in 1 row (1)" in refusal([odd, "2"], kind="numeric", decimal=".")
    assert "expected numbers, found something else in 1 row (" in refusal(
        ["1,5", "2"], kind="numeric", decimal="."
    )
    assert "expected numbers, found something else in 1 row (" in refusal(
        ["1.5", "2"], kind="numeric", decimal=","
    )


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64, pl.Int128])
def test_whole_numbers_are_seen_as_such_and_come_back_in_type(dtype):
    table = adopt([1, None, 3], dtype=dtype, kind="numeric")

    assert table.frame["x"].dtype == pl.Int64
    assert_series_equal(table.publishable()["x"], pl.Series("x", [1, None, 3], dtype=dtype))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_broken_numbers_are_seen_as_floats_and_come_back_in_type(dtype):
    values = [1.25, None, -3.5]

    table = adopt(values, dtype=dtype, kind="numeric") if dtype != pl.Decimal(10, 2) else adopt(
        [None if value is None else Decimal(str(value)) for value in values],
        dtype=dtype, kind="numeric",
    )  # fmt: skip

    assert table.frame["x"].to_list() == values
    assert table.publishable()["x"].dtype == dtype


def test_whole_numbers_beyond_64_bits_are_numbers():
    assert seen([2**64 - 1, 1], dtype=pl.UInt64, kind="numeric") == [2.0**64, 1.0]


def test_truth_values_are_numbers_if_the_policy_says_so():
    assert released([True, False, None], kind="numeric").to_list() == [1, 0, None]


def test_dates_are_no_numbers():
    said = refusal([date(2020, 1, 1)], kind="numeric")

    assert "is numeric by the policy; expected numbers, found Date" in said


def test_bounds_include_their_ends():
    assert seen([0, 9], kind="numeric", bounds=[0, 9]) == [0, 9]
    assert "expected values within the bounds [0, 9], found others in 2 rows (" in refusal(
        [-1.0, 0.0, None, 9.5], kind="numeric", bounds=[0, 9]
    )


def test_bounds_are_checked_before_coding():
    assert "expected values within the bounds" in refusal(
        [20], kind="numeric", bounds=[0, 9], top_code=5
    )


def test_numbers_are_coded_at_top_and_bottom():
    assert seen([1, 5, 9, None], kind="numeric", bottom_code=2, top_code=8) == [2, 5, 8, None]
    assert seen([1, 9], kind="numeric", bottom_code=1.5) == [1.5, 9.0]
    assert seen([-1, 9], kind="numeric", bottom_code=0) == [0, 9]
    assert seen([2**64 - 1, 1], dtype=pl.UInt64, kind="numeric", top_code=5) == [5.0, 1.0]


@pytest.mark.parametrize(
    ("values", "step", "rounded"),
    [
        ([0, 4, 5, 6, 15, -5, None], 10, [0, 0, 0, 10, 20, 0, None]),
        ([0.14, 0.16, 0.3], 0.1, [0.1, 0.2, 0.3]),
        ([1.0, 1.3, 2.0], 0.5, [1.0, 1.5, 2.0]),
        ([1, 2], 0.5, [1.0, 2.0]),
        ([2.4, 7.6], 5, [0.0, 10.0]),
        ([2**62, -(2**62)], 10, [float(2**62), -float(2**62)]),
    ],
)
def test_numbers_are_rounded_to_a_step_half_to_even(values, step, rounded):
    assert seen(values, kind="numeric", step=step) == rounded


def test_a_rounded_number_is_never_minus_zero():
    assert str(seen([-0.3, 0.2], kind="numeric", step=1)) == "[0.0, 0.0]"


@pytest.mark.parametrize(
    ("step", "first"),
    [
        ("week", date(2020, 5, 11)),
        ("month", date(2020, 5, 1)),
        ("quarter", date(2020, 4, 1)),
        ("year", date(2020, 1, 1)),
    ],
)
def test_dates_become_the_first_day_of_their_period_within_the_bounds(step, first):
    bounds = [date(2020, 1, 15), date(2021, 1, 1)]
    moment, midnight = datetime.combine(date(2020, 5, 17), time(13, 30)), time()

    assert seen(["2020-05-17", None], kind="date", date_step=step) == [first, None]
    assert seen([moment], kind="date", date_step=step) == [datetime.combine(first, midnight)]
    assert seen(["2020-01-16"], kind="date", date_step="year", bounds=bounds) == [bounds[0]]


def test_coding_comes_before_rounding():
    assert seen([97, 103, 188], kind="numeric", top_code=104, step=10) == [100, 100, 100]


def test_marks_of_missing_cells_outside_the_bounds_are_named_as_such():
    bounds = {"kind": "numeric", "bounds": [0, 9]}

    assert "found others in 2 rows (1, 3). The values look like marks of missing cells" in refusal(
        [-99, 5, 999], **bounds
    )
    assert "Widen the bounds" in refusal([-99, 5, 10], **bounds)


def test_all_columns_that_do_not_fit_are_named_in_one_error():
    frame = pl.DataFrame({"a": ["x", "11", "3"], "b": ["2020-13-01"] * 3, "c": ["s", "t", "u"]})
    rules = policy.load({
        "version": 1,
        "columns": {
            "a": {"role": "other", "kind": "numeric", "bounds": [0, 9]},
            "b": {"role": "other", "kind": "date"},
            "c": {"role": "other", "kind": "nominal", "categories": ["s"]},
        },
        "protect": {"method": "mdav", "k": 2},
    }).schema  # fmt: skip

    with pytest.raises(InputError) as refused:
        validate.validate(frame, rules)

    assert str(refused.value) == (
        "Column 'a': expected numbers, found something else in 1 row (1). Correct the cells, list "
        "them under 'missing', or state the decimal mark under [reading]. "
        "Column 'a': expected values within the bounds [0, 9], found others in 1 row (2). Widen "
        "the bounds, or correct the rows: top and bottom coding come after this check. "
        "Column 'b': expected dates of the form %Y-%m-%d, found something else in 3 rows "
        "(1, 2, 3). State the form with 'date_format'. "
        "Column 'c': expected values of its categories, found others in 2 rows (2, 3). Add them, "
        "or list them under 'missing' or 'recode'."
    )


@given(st.lists(st.sampled_from(["1", "x", "50", None]), min_size=1, max_size=300))
def test_the_rows_that_do_not_fit_are_counted_and_the_first_are_kept(cells):
    column = Column("a", Role.OTHER, Kind.NUMERIC, (Decimal(0), Decimal(9)))
    wrong = {
        word: [row for row, cell in enumerate(cells, 1) if cell == word] for word in ("x", "50")
    }

    try:
        validate.parse_column(pl.Series("a", cells, dtype=pl.String), column, None)
        found = {}
    except validate.MisfitError as error:
        found = {("x" if "numbers" in one.what else "50"): one for one in error.misfits}

    assert {word: rows for word, rows in wrong.items() if rows}.keys() == found.keys()
    for word, one in found.items():
        assert one.cells == len(wrong[word])
        assert list(one.rows) == wrong[word][: validate.KEPT_ROWS]


def test_names_that_differ_are_told_together():
    frame = pl.DataFrame({"a": [1], "b": [1], "agee": [1], "x": [1]})
    rules = schema(**dict.fromkeys(["a", "b", "age", "y"], "other"))

    with pytest.raises(InputError) as refused:
        validate.check_names(frame, rules)

    assert "a column 'agee' that the policy does not name. Did you mean 'age'?" in str(
        refused.value
    )
    assert "a column 'x' that the policy does not name" in str(refused.value)
    assert "names a column 'y' that the data lacks" in str(refused.value)
    assert "names a column 'age'" not in str(refused.value)


# Dates


def test_dates_are_read_in_the_iso_form_or_as_stated():
    assert seen(["2020-01-31", None], kind="date") == [date(2020, 1, 31), None]
    assert seen(["31/01/2020"], kind="date", date_format="%d/%m/%Y") == [date(2020, 1, 31)]
    assert "expected dates of the form %d/%m/%Y" in refusal(
        ["2020-01-31"], kind="date", date_format="%d/%m/%Y"
    )
    assert "expected dates of the form %Y-%m-%d, found something else in 1 row (" in refusal(
        ["2020-02-30", "2020-01-01"], kind="date"
    )


def test_times_are_read_and_come_back():
    naive = [datetime(2020, 1, 31, 12, 30), None]  # noqa: DTZ001 (no zone is the case at hand)
    zoned = pl.Series("x", naive).dt.replace_time_zone("Europe/Berlin")

    assert seen(["2020-01-31T12:30:00", None], kind="date") == naive
    for unit in ("ms", "us", "ns"):
        series = pl.Series("x", naive, dtype=pl.Datetime(unit))
        assert_series_equal(released(series, kind="date"), series)
    assert seen(zoned, kind="date")[0] == naive[0] - timedelta(hours=1)
    assert_series_equal(released(zoned, kind="date"), zoned)


@pytest.mark.parametrize("hour", [0, 23])
def test_a_bound_includes_its_whole_day(hour):
    bounds = {"bounds": [date(2020, 1, 1), date(2020, 1, 31)]}
    inside = [datetime(2020, 1, 1, hour), datetime(2020, 1, 31, hour)]  # noqa: DTZ001

    assert seen(inside, kind="date", **bounds) == inside
    assert "within the bounds [2020-01-01, 2020-01-31], found others in 1 row (" in refusal(
        [*inside, datetime(2020, 2, 1)],  # noqa: DTZ001
        kind="date",
        **bounds,
    )


def test_dates_and_times_are_coded_at_top_and_bottom():
    limits = {"bottom_code": date(2000, 1, 1), "top_code": date(2010, 1, 1)}
    days = [date(1990, 5, 5), date(2005, 5, 5), date(2020, 5, 5), None]
    times = pl.Series("x", days).cast(pl.Datetime("us"))

    coded = [date(2000, 1, 1), date(2005, 5, 5), date(2010, 1, 1), None]
    assert seen(days, kind="date", **limits) == coded
    assert released(times, kind="date", **limits).cast(pl.Date).to_list() == coded


@pytest.mark.parametrize("values", [[1], [time(1)], [True]])
def test_what_is_no_date_is_refused(values):
    assert "is a date by the policy; expected dates, found " in refusal(values, kind="date")


# Categories


def test_levels_are_those_of_the_policy_in_its_order():
    table = adopt(["b", "a", None], kind="ordinal", categories=["b", "c", "a"])

    assert table.categories("x") == ("b", "c", "a")
    assert table.codes("x").tolist() == [0, 2, -1]


def test_levels_that_the_policy_does_not_state_are_those_of_the_data():
    assert adopt(["b", "a", "b"], kind="nominal").categories("x") == ("a", "b")


@pytest.mark.parametrize(
    ("values", "dtype", "categories"),
    [
        ([True, False, None], pl.Boolean, ["true", "false"]),
        ([1, 2, None], pl.Int8, [1, 2]),
        ([2**64 - 1, 2, None], pl.UInt64, [2, 2**64 - 1]),
        ([1.0, 2.0, None], pl.Float64, [1, 2]),
        ([1.0, 2.5, None], pl.Float32, [1, Decimal("2.5")]),
        ([Decimal("1.50"), None], pl.Decimal(10, 2), ["1.50"]),
        (["a", "b", None], pl.Categorical, ["a", "b"]),
        (["a", "b", None], pl.Enum(["b", "a"]), ["a", "b", "c"]),
        (["a", "b", None], pl.String, ["a", "b"]),
    ],
)
def test_categories_come_back_in_their_type(values, dtype, categories):
    series = pl.Series("x", values, dtype=dtype)

    table = adopt(series, kind="nominal", categories=categories)

    assert table.categories("x") == tuple(map(str, categories))
    assert_series_equal(table.publishable()["x"], series)


def test_an_enumeration_leaves_without_categories_that_are_not_public():
    series = pl.Series("x", ["a"], dtype=pl.Enum(["a", "rare"]))

    for keys in ({}, {"categories": ["a"]}, {"categories": ["a", "rare"], "observed": True}):
        assert released(series, kind="nominal", **keys).dtype == pl.Categorical


@pytest.mark.parametrize(
    "values", [[date(2020, 1, 1)], [time(1, 2)], [datetime(2020, 1, 1, tzinfo=UTC)]]
)
def test_dates_as_categories_leave_as_text(values):
    series = released(values, kind="nominal")

    assert series.dtype == pl.String
    assert series.null_count() == 0


def test_large_numbers_can_be_categories():
    assert released([1e25, 2e25], kind="nominal").to_list() == [1e25, 2e25]


def test_ordinals_are_coded_at_top_and_bottom():
    categories = ["none", "some", "more", "all"]

    assert seen(
        [*categories, None],
        kind="ordinal",
        categories=categories,
        bottom_code="some",
        top_code="more",
    ) == [
        "some",
        "some",
        "more",
        "more",
        None,
    ]
    assert (
        seen(categories, kind="ordinal", categories=categories, top_code="some")
        == ["none", "some"] + ["some"] * 2
    )


def test_values_are_recoded_before_they_are_categories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("Lyon,South\nLille,North\nbad,\ntrue,yes\n", encoding="utf-8")
    keys = {"kind": "nominal", "recode": "r.csv"}

    assert seen(["Lyon", "Lille", "bad", "else", None], **keys) == [
        "South", "North", None, "else", None,
    ]  # fmt: skip
    assert "expected values of its categories, found others in 1 row (" in refusal(
        ["Lyon", "else"], categories=["South", "North"], **keys
    )
    assert released([True, False], **keys).to_list() == ["yes", "false"]


# Persons and texts


@pytest.mark.parametrize("dtype", [pl.String, pl.Float64, pl.Int64, pl.Decimal(10, 2)])
def test_a_number_of_a_person_is_one_person_however_it_is_spelled(dtype):
    column = Column("id", Role.IDENTIFIER, privacy_unit=True)
    texts = ["7", "7.0", " 7", "07", "+7", "7.", "\t7 ", "\N{FULLWIDTH DIGIT SEVEN}", "7\u200b"]
    cells = pl.Series("id", texts if dtype == pl.String else [7], dtype=dtype)

    assert set(spell_persons(cells, column)) == {"7"}


def test_other_spellings_stay_apart_unless_they_may_be_one_person():
    column = Column("id", Role.IDENTIFIER, privacy_unit=True)
    cells = ["A7", "a7 ", "a07", "-7", "7.5", "07.50", "70", "7e1", "Zo\u0308e", "Zöe", "0", "00"]

    spelled = spell_persons(pl.Series("id", cells), column).to_list()

    assert spelled == [
        "a7", "a7", "a07", "-7", "7.5", "7.5", "70", "7e1", "zöe", "zöe", "0", "0"
    ]  # fmt: skip
    large = pl.Series("id", [2**62 + 1, 2**62 + 3, None])
    assert spell_persons(large, column).n_unique() == 3
    assert spell_persons(pl.Series("id", [1.0, 1.5, float("nan")]), column).to_list() == [
        "1", "1.5", None
    ]  # fmt: skip


@given(st.lists(st.one_of(st.none(), st.text(max_size=6), st.integers().map(str)), min_size=1))
def test_a_person_is_spelled_by_the_cell_alone(cells):
    column = Column("id", Role.IDENTIFIER, privacy_unit=True)

    together = spell_persons(pl.Series("id", cells, dtype=pl.String), column).to_list()

    alone = [spell_persons(pl.Series("id", [c], dtype=pl.String), column)[0] for c in cells]
    assert together == alone
    again = spell_persons(pl.Series("id", together, dtype=pl.String), column).to_list()
    assert again == together


APART, COMPOSED = "caf\u0065\u0301", "caf\u00e9"


def test_texts_that_look_the_same_are_one_value():
    categories = adopt([APART, COMPOSED, "tea"], kind="nominal").categories("x")

    assert categories == (COMPOSED, "tea")
    assert seen([APART, COMPOSED], kind="nominal", categories=["tea", APART]) == [COMPOSED] * 2
    assert released([APART, COMPOSED], kind="nominal", missing=[APART]).null_count() == 2
    assert (
        released([APART], kind="ordinal", categories=["tea", COMPOSED], top_code="tea")[0] == "tea"
    )


def test_two_categories_that_look_the_same_are_refused(tmp_path):
    with pytest.raises(InputError, match="expected each category once, found one twice"):
        schema(x={"role": "confidential", "kind": "nominal", "categories": [APART, COMPOSED]})
    (tmp_path / "tree.csv").write_text(f"{APART},all\n{COMPOSED},all\n", encoding="utf-8")
    with pytest.raises(InputError, match="each leaf once"):
        schema(
            x={"role": "confidential", "kind": "nominal", "hierarchy": str(tmp_path / "tree.csv")}
        )


# Tables


def test_the_unit_must_be_there_and_as_often_as_the_policy_states():
    def take(ids, **keys):
        stated = {"role": "identifier", "privacy_unit": True, "missing": ["?"], **keys}
        rules = schema(id=stated, x="other")
        return validate.validate(pl.DataFrame({"id": ids, "x": range(len(ids))}), rules)

    assert take(["a", "b"]).frame.columns == ["x"]
    assert take(["a", "b"]).persons is None
    assert take(["a", "b", "A ", "c"]).persons.tolist() == [0, 1, 0, 2]
    with pytest.raises(InputError, match="Column 'id' numbers the persons, but 3 rows lack it"):
        take(["a", None, "?", " "])
    with pytest.raises(InputError, match="expected one row per person, found 2 more rows than"):
        take(["a", "a", "a"], exact_contributions=1)
    with pytest.raises(
        InputError, match="exactly 2 rows per person, as exact_contributions states; 1 of 2"
    ):
        take(["a", "a", "b"], exact_contributions=2)


@pytest.mark.parametrize(
    ("values", "dtype", "found"),
    [
        ([[1]], None, "List"),
        ([{"a": 1}], None, "Struct"),
        ([b"a"], None, "Binary"),
        ([timedelta(1)], None, "Duration"),
        ([object()], pl.Object, "Object"),
    ],
)
def test_cells_that_are_no_plain_values_are_refused_unless_they_are_dropped(values, dtype, found):
    said = f"Column 'x' holds {found} values; expected one number, text or date per cell."
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype), "y": [1]})

    for keys in ({"role": "other"}, {"role": "other", "kind": "nominal"},
                 {"role": "identifier", "privacy_unit": True}):  # fmt: skip
        with pytest.raises(InputError) as caught:
            validate.validate(frame, schema(x=keys, y="other"))
        assert str(caught.value) == said
    assert validate.validate(frame, schema(x="identifier", y="other")).frame.columns == ["y"]


@pytest.mark.parametrize("kind", ["numeric", "nominal", "date"])
@pytest.mark.parametrize("dtype", [pl.Null, pl.String])
def test_columns_without_a_value_are_missing_throughout(kind, dtype):
    assert seen([None, None], dtype=dtype, kind=kind) == [None, None]


def test_columns_keep_the_order_of_the_table_and_lose_identifiers():
    rules = schema(b="other", name="identifier", a="other")

    table = validate.validate(pl.DataFrame({"name": ["x"], "a": [1], "b": [2]}), rules)

    assert table.publishable().columns == ["a", "b"]
    assert table.schema.names == ("b", "a")


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=5)
midnights = st.dates().map(lambda day: datetime(day.year, day.month, day.day))  # noqa: DTZ001
KINDS = {
    "numeric": [
        (pl.Int8, st.integers(-128, 127)),
        (pl.Int64, st.integers(-(2**63), 2**63 - 1)),
        (pl.UInt32, st.integers(0, 2**32 - 1)),
        (pl.Float64, st.floats(-1e150, 1e150)),
        (pl.Float32, st.floats(-(2**60), 2**60, width=32)),
    ],
    "nominal": [
        (pl.String, text),
        (pl.Categorical, text),
        (pl.Boolean, st.booleans()),
        (pl.Int16, st.integers(-9, 9)),
        (pl.Float64, st.sampled_from([1.0, 2.5, -3.0])),
    ],
    "ordinal": [(pl.String, st.sampled_from("abc")), (pl.Int8, st.integers(0, 3))],
    "date": [
        (pl.Date, st.dates()),
        (pl.Datetime("us"), st.datetimes()),
        (pl.Datetime("ms"), midnights),
    ],
}


@st.composite
def tables(draw):
    """A table with a column of each kind, of any type that the kind has, and its policy."""
    rows = draw(st.integers(1, 6))
    series, columns = [], {}
    for kind, sorts in KINDS.items():
        dtype, values = draw(st.sampled_from(sorts))
        cells = draw(st.lists(values | st.none(), min_size=rows, max_size=rows))
        series.append(pl.Series(kind, cells, dtype=dtype))
        columns[kind] = {"role": "other", "kind": kind}
    columns["ordinal"]["categories"] = ["a", "b", "c", 0, 1, 2, 3]
    return pl.DataFrame(series), schema(**columns)


@given(tables())
def test_what_is_not_protected_comes_back_as_it_was(table):
    frame, rules = table

    assert_frame_equal(validate.validate(frame, rules).publishable(), frame)


@pytest.mark.parametrize("at", [0, 99, 100, 149])
@pytest.mark.parametrize("decimal", [None, ".", ","])
def test_one_word_among_many_numbers_leaves_the_numbers_as_they_are(at, decimal):
    cells = [str(row) for row in range(150)]
    cells[at] = "many"

    found = validate.parse_numbers(pl.Series(cells), decimal=decimal)

    assert found.to_list() == [None if row == at else row for row in range(150)]

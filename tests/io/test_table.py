from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Column, Hierarchy, Kind, Role, Schema, Transform
from shoal.io.validate import validate

QUASI = Role.QUASI_IDENTIFIER
TREE = Hierarchy(
    (("a", "p", "all"), ("b", "p", "all"), ("c", "q", "r", "all"), ("d", "q", "r", "all"))
)
PATH = {("a", "b"): 2, ("a", "c"): 5, ("c", "d"): 2, ("b", "d"): 5}


def table(values, **column):
    schema = Schema((Column("x", QUASI, **column),))
    return validate(pl.DataFrame({"x": values}), schema)


def squared(records, i, j):
    numbers, codes = records.numbers, records.codes
    apart = (codes[i] != codes[j]) * ((codes[i] > 0) + 1.0 * (codes[j] > 0))
    return ((numbers[i] - numbers[j]) ** 2).sum() + apart @ records.weights


def variance(records):
    """Half the mean squared distance of two records, drawn with replacement."""
    pairs = list(product(range(len(records)), repeat=2))
    return sum(squared(records, i, j) for i, j in pairs) / 2 / len(pairs)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_numbers_are_standardised(values):
    X = table(values, kind=Kind.NUMERIC).records(["x"]).numbers

    spread = np.std(values)
    if spread > 1e-9 * max(map(abs, values)) + 1e-300:
        assert X.mean() == pytest.approx(0, abs=1e-6)
        assert X.std() == pytest.approx(1)
    assert X.shape == (len(values), 1)


def test_squared_distance_between_nominals_is_path_length_up_to_one_factor():
    X = table(list("abcdad"), kind=Kind.NOMINAL, hierarchy=TREE).records(["x"])

    place = {"a": 0, "b": 1, "c": 2, "d": 3}
    ratios = [squared(X, place[s], place[t]) / length for (s, t), length in PATH.items()]
    assert np.allclose(ratios, ratios[0])
    assert variance(X) == pytest.approx(1)


def test_a_flat_nominal_is_a_star_and_a_binary_one_equals_a_standardised_number():
    star = table(list("abcab"), kind=Kind.NOMINAL).records(["x"])
    binary = table(list("abbba"), kind=Kind.NOMINAL).records(["x"])
    number = table([0, 1, 1, 1, 0], kind=Kind.NUMERIC).records(["x"])

    assert squared(star, 0, 1) == pytest.approx(squared(star, 0, 2))
    assert squared(binary, 0, 1) == pytest.approx(squared(number, 0, 1))


def test_missing_is_a_value_of_its_own_in_every_kind():
    for values, kind in (
        ([1.0, 2.0, 3.0, None, None], {"kind": Kind.NUMERIC}),
        (["a", "b", "a", None, None], {"kind": Kind.ORDINAL, "categories": ("a", "b")}),
        (["a", "b", "c", None, None], {"kind": Kind.NOMINAL, "hierarchy": TREE}),
    ):
        X = table(values, **kind).records(["x"])

        assert squared(X, 3, 4) == 0
        assert all(squared(X, 3, other) >= 1 for other in range(3))


def test_constant_and_empty_columns_add_no_distance():
    for values, kind in (
        ([7, 7, 7], Kind.NUMERIC),
        ([None, None, None], Kind.NUMERIC),
        (["a", "a", "a"], Kind.NOMINAL),
        ([None, None, None], Kind.NOMINAL),
    ):
        X = table(pl.Series(values, dtype=None), kind=kind).records(["x"])

        assert squared(X, 0, 1) == 0


def test_a_transform_changes_distances_and_not_values():
    plain = table([0, 1, 10, 1000], kind=Kind.NUMERIC)
    logged = table([0, 1, 10, 1000], kind=Kind.NUMERIC, transform=Transform.LOG)

    assert np.array_equal(plain.numbers("x"), logged.numbers("x"))
    assert squared(plain.records(["x"]), 0, 2) < squared(logged.records(["x"]), 0, 2)


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.sampled_from("ab")), min_size=1))
def test_canonical_order_sorts_all_columns_and_forgets_the_file(rows):
    schema = Schema((Column("x", QUASI, Kind.NUMERIC), Column("y", Role.OTHER)))
    frame = pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row")

    tables = [validate(f, schema) for f in (frame, frame.reverse())]
    one, other = (t.take(t.canonical_order()).frame for t in tables)

    assert one.equals(other)
    assert one["x"].is_sorted()


def test_dates_average_to_dates_and_times_to_times():
    days = table(pl.Series([0, 3], dtype=pl.Int32).cast(pl.Date), kind=Kind.DATE)
    times = table(pl.Series([0, 3], dtype=pl.Int64).cast(pl.Datetime("us")), kind=Kind.DATE)

    middle = days.with_numbers("x", np.array([1.0, np.nan]))
    later = times.with_numbers("x", times.numbers("x"))

    assert middle.frame["x"].to_physical().to_list() == [1, None]
    assert later.frame["x"].equals(times.frame["x"])


def test_a_first_column_without_any_value_sorts():
    schema = Schema((Column("note", Role.OTHER), Column("x", QUASI, Kind.NUMERIC)))
    frame = pl.DataFrame({"note": pl.Series([None, None], dtype=pl.String), "x": [2, 1]})

    assert validate(frame, schema).canonical_order().tolist() == [1, 0]


def test_decimals_that_were_averaged_stay_fractions():
    cells = pl.Series("x", [1, 1, 2]).cast(pl.Decimal(5, 0))
    decimals = table(cells, kind=Kind.NUMERIC)

    averaged = decimals.with_numbers("x", np.full(3, 4 / 3)).publishable()

    assert decimals.publishable().schema["x"] == pl.Decimal(5, 0)
    assert averaged["x"].to_list() == pytest.approx([4 / 3] * 3)


@pytest.mark.parametrize("size", [1, 70_000])
def test_rows_are_taken_in_another_order_with_their_missing_cells(size):
    rng = np.random.default_rng(size)
    gone = pl.Series(rng.random(size) < 0.3)
    whole = pl.Series("x", rng.integers(-9, 9, size) * 2**53 + 1)
    columns = [whole, whole.set(gone, None), (whole / 7).set(gone, None), whole / 3]
    order = rng.permutation(size)[: size // 2 + 1]
    for series in columns:
        made = table(series, kind=Kind.NUMERIC).take(order)

        assert made.frame["x"].equals(series[order], null_equal=True)

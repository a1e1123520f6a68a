"""Boxes with counts: as a table and back, and from the cuts of Mondrian."""

from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal import io
from shoal.core import Column, Hierarchy, Kind, Role, Schema, SpatialDecomposition
from shoal.errors import InputError
from shoal.io import decomposition_table

TREE = Hierarchy(
    (
        ("lyon", "south", "all"),
        ("lille", "north", "all"),
        ("nice", "south", "all"),
        ("paris", "all"),
    )
)
LEVELS = ("low", "mid", "high")
QUASI = Role.QUASI_IDENTIFIER
SCHEMA = Schema(
    (
        Column("age", QUASI, Kind.NUMERIC),
        Column("day", QUASI, Kind.DATE),
        Column("rank", QUASI, Kind.ORDINAL, categories=LEVELS),
        Column("city", QUASI, Kind.NOMINAL, hierarchy=TREE),
        Column("ill", Role.CONFIDENTIAL, Kind.NOMINAL),
        Column("ill=bad", Role.CONFIDENTIAL, Kind.NOMINAL),
    )
)
SIX = datetime(1970, 1, 1, 6)  # noqa: DTZ001
PLACES = {"rank": 4, "city": 5}
"""Categories, and one place for missing cells."""


def ends(draw, name):
    """Two ends of a box along a column, of the sorts that trees have."""
    if name in PLACES:
        two = st.lists(st.integers(0, PLACES[name]), min_size=2, max_size=2, unique=True)
        return sorted(map(float, draw(two)))
    if name == "day":
        whole = st.integers(-20_000, 60_000).map(float)
        times = st.integers(-(10**15), 4 * 10**15).map(lambda t: t / 86_400e6)
        number = draw(st.sampled_from([whole, times]))
    else:
        number = draw(st.sampled_from([st.integers(-99, 99).map(float), st.floats(-1e9, 1e9)]))
    low, high = sorted(draw(st.lists(number, min_size=2, max_size=2, unique=True)))
    return (
        draw(st.sampled_from([low, low, -np.inf])),
        draw(st.sampled_from([high, high, np.inf])),
    )


@st.composite
def decompositions(draw):
    columns = draw(st.permutations(SCHEMA.names[:4]))[: draw(st.integers(1, 4))]
    n = draw(st.integers(1, 5))
    sides = np.array([[ends(draw, name) for name in columns] for _ in range(n)])
    counted = draw(st.sampled_from([None, "ill", "ill=bad"]))
    some = st.lists(st.text("ab=é ", max_size=4), min_size=1, max_size=3, unique=True)
    values = ("",) if counted is None else tuple(draw(some))
    count = draw(st.sampled_from([st.integers(-5, 10**6), st.floats(-1e6, 1e6)]))
    counts = draw(st.lists(st.lists(count, min_size=len(values), max_size=len(values)),
                           min_size=n, max_size=n))  # fmt: skip
    return SpatialDecomposition(
        columns=tuple(columns),
        lower=sides[:, :, 0],
        upper=sides[:, :, 1],
        counts=counts,
        values=values,
        column=counted,
        discrete=tuple(name in PLACES for name in columns),
    )


def assert_same(one, other):
    for name in ("columns", "values", "column", "discrete"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("lower", "upper", "counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@given(decompositions())
@settings(max_examples=300)
def test_boxes_come_back_as_they_were_written(boxes):
    frame = decomposition_table.to_frame(boxes, SCHEMA)

    assert decomposition_table.is_tree(frame, SCHEMA)
    assert_same(decomposition_table.from_frame(frame, SCHEMA), boxes)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@given(boxes=decompositions())
@settings(max_examples=25)
def test_boxes_come_back_from_files(tmp_path_factory, form, boxes):
    path = tmp_path_factory.mktemp("boxes") / f"release.{form}"
    io.write(decomposition_table.to_frame(boxes, SCHEMA), path, labels={})

    assert_same(decomposition_table.from_frame(io.read(path).frame, SCHEMA), boxes)


def test_a_table_of_boxes_reads_like_this():
    boxes = SpatialDecomposition(
        columns=("age", "day", "rank", "city"),
        lower=[[20, 0, 0, 0], [-np.inf, 10.5, 3, 2]],
        upper=[[30, 1, 2, 2], [20, 11, 4, 5]],
        counts=[[3, 0], [1, 2]],
        values=("flu", ""),
        column="ill",
        discrete=(False, False, True, True),
    )

    assert decomposition_table.to_frame(boxes, SCHEMA).to_dicts() == [
        {
            "age_lower": 20, "age_upper": 30,
            "day_lower": datetime(1970, 1, 1), "day_upper": datetime(1970, 1, 2),  # noqa: DTZ001
            "rank_lower": "low", "rank_upper": "mid",
            "city_lower": "lyon", "city_upper": "nice",
            "ill=flu": 3, "ill=": 0,
        },
        {
            "age_lower": None, "age_upper": 20,
            "day_lower": datetime(1970, 1, 11, 12), "day_upper": datetime(1970, 1, 12),  # noqa: DTZ001
            "rank_lower": None, "rank_upper": None,
            "city_lower": "lille", "city_upper": None,
            "ill=flu": 1, "ill=": 2,
        },
    ]  # fmt: skip


def test_ends_within_a_category_are_moved_to_its_end():
    """A record has a whole place, so that [0, 1.5) and [0, 2) hold the same."""
    boxes = SpatialDecomposition(
        ("rank",), [[0], [1.5]], [[1.5], [3]], [[1], [1]], ("",), None, (True,)
    )

    written = decomposition_table.to_frame(boxes, SCHEMA)

    assert written.select("rank_lower", "rank_upper").rows() == [("low", "mid"), ("high", "high")]
    empty = SpatialDecomposition(("rank",), [[0.2]], [[0.8]], [[1]], ("",), None, (True,))
    with pytest.raises(InputError, match="a box that holds no category"):
        decomposition_table.to_frame(empty, SCHEMA)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ({"age": [1]}, "such as 'age_lower'"),
        ({"age_lower": [1], "count": [1]}, "a column 'age_upper' beside"),
        ({"age_lower": [1], "age_upper": [2]}, "a column 'count', or one for each"),
        ({"age_lower": [1], "age_upper": [2], "count": ["x"]}, "a number in every cell"),
        ({"age_lower": ["x"], "age_upper": [2], "count": [1]}, "end is not a number"),
        ({"age_lower": [2], "age_upper": [2], "count": [1]}, "lower ends are below"),
        ({"rank_lower": ["new"], "rank_upper": ["mid"], "count": [1]}, "end is not a category"),
        ({"ill_lower": ["a"], "ill_upper": ["b"], "count": [1]}, "categories or a hierarchy"),
    ],
)
def test_what_is_no_table_of_boxes_is_told(frame, sentence):
    with pytest.raises(InputError, match=sentence):
        decomposition_table.from_frame(pl.DataFrame(frame), SCHEMA)


def test_a_table_whose_columns_are_named_like_ends_is_no_tree():
    schema = Schema(tuple(Column(name, QUASI) for name in ("age", "age_lower", "age_upper")))

    assert not decomposition_table.is_tree(
        pl.DataFrame({"age_lower": [1], "age_upper": [2]}), schema
    )
    assert not decomposition_table.is_tree(pl.DataFrame({"age": [1]}), SCHEMA)


# From the cuts of Mondrian to boxes.


def policy(hierarchy, **protect):
    quasi = {"role": "quasi-identifier"}
    return {
        "version": 1,
        "columns": {
            "age": quasi | {"kind": "numeric"},
            "pay": quasi | {"kind": "numeric", "bounds": [Decimal("-0.5"), Decimal("9.25")]},
            "city": quasi | {"kind": "nominal", "hierarchy": hierarchy},
            "rank": quasi | {"kind": "ordinal", "categories": list(LEVELS)},
            "day": quasi | {"kind": "date", "bounds": [date(1970, 1, 1), date(1970, 2, 1)]},
            "time": quasi | {"kind": "date"},
            "ill": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": "mondrian", "k": 2, "output": "tree", **protect},
    }


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("leaves") / "city.csv"
    path.write_text("\n".join(",".join(path) for path in TREE.paths))
    return str(path)


@st.composite
def tables(draw):
    n = draw(st.integers(2, 30))

    def drawn(values, dtype, *, missing=False):
        return pl.Series(draw(cells_of(values, n, missing=missing)), dtype=dtype)

    times = [0, 1, 10**12, *range(0, 10**12, 15_485_863)]
    return pl.DataFrame(
        {
            "age": drawn(range(-3, 10), pl.Int64),
            "pay": drawn([x / 4 for x in range(-2, 38)], pl.Float64),
            "city": drawn(TREE.leaves, pl.String, missing=True),
            "rank": drawn(LEVELS, pl.String, missing=True),
            "day": drawn(range(32), pl.Int32).cast(pl.Date),
            "time": drawn(times, pl.Int64).cast(pl.Datetime("us")),
            "ill": drawn("abc", pl.String, missing=True),
        }
    )


def records(table):
    """Places of records, by the words of `leaves` alone."""
    order = ["lyon", "nice", "lille", "paris", None]
    return np.column_stack(
        [
            table["age"].to_numpy(),
            table["pay"].to_numpy(),
            [order.index(city) for city in table["city"]],
            [[*LEVELS, None].index(rank) for rank in table["rank"]],
            table["day"].to_physical().to_numpy(),
            table["time"].to_physical().to_numpy() / 86_400e6,
        ]
    )


def inside(boxes, points):
    """Whether each point lies in each box."""
    above = points[:, None, :] >= boxes.lower[None]
    return (above & (points[:, None, :] < boxes.upper[None])).all(axis=2)


@given(tables(), st.integers(0, 2**32), st.sampled_from(["range", "entropy"]))
@settings(max_examples=80)
def test_boxes_cover_space_once_and_count_the_records_that_lie_in_them(
    hierarchy, table, seed, dimension
):
    rules = policy(hierarchy, dimension=dimension)

    release = shoal.protect(table, rules)
    boxes = decomposition_table.from_frame(release.data, shoal.load_policy(rules).schema)

    held = inside(boxes, records(table))
    assert (held.sum(axis=1) == 1).all()
    for box, row in zip(held.T, boxes.counts, strict=True):
        naive = Counter(value or "" for value, here in zip(table["ill"], box, strict=True) if here)
        found = {v: int(c) for v, c in zip(boxes.values, row, strict=True) if c}
        assert found == dict(naive)
        assert naive.total() >= 2
    low, high = boxes.extent
    rng = np.random.default_rng(seed)
    points = rng.uniform(low, high, size=(50, len(low)))
    assert (inside(boxes, points).sum(axis=1) == 1).all()
    assert release.manifest.release_form == "tree"


def test_space_ends_at_bounds_or_at_the_range_of_the_table(hierarchy):
    table = pl.DataFrame(
        {"age": [4, 5], "pay": [0.0, 1.0], "city": ["lyon", None], "rank": ["mid", "mid"],
         "day": [date(1970, 1, 3)] * 2, "time": [SIX] * 2, "ill": ["a", "b"]}
    )  # fmt: skip
    rules = policy(hierarchy)

    release = shoal.protect(table, rules)
    boxes = decomposition_table.from_frame(release.data, shoal.load_policy(rules).schema)

    low, high = boxes.extent
    assert low.tolist() == [4, -0.5, 0, 0, 0, 0.25]
    after = np.nextafter(9.25, 10)
    assert high.tolist() == [6, after, 5, 3, 32, (6 * 3600e6 + 1) / 86_400e6]


def test_a_missing_number_has_no_place_in_a_box(hierarchy):
    table = pl.DataFrame(
        {"age": [4, None], "pay": [0.0, 1.0], "city": ["lyon"] * 2, "rank": ["mid"] * 2,
         "day": [date(1970, 1, 3)] * 2, "time": [SIX] * 2, "ill": ["a", "b"]}
    )  # fmt: skip

    with pytest.raises(InputError, match="'age' has 1 missing cell, and a missing number has no"):
        shoal.protect(table, policy(hierarchy))


def test_a_missing_number_lies_where_the_policy_says():
    """Counted as the number that it stands for, and the release says so."""
    n = 40
    ages = [None if i % 5 == 0 else i % 10 for i in range(n)]
    days = [None if i % 4 == 0 else date(1970, 1, 1 + i % 9) for i in range(n)]
    stated = {"age": {"missing_as": 3}, "day": {"missing_as": "1970-01-05"}}
    rules = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10]},
            "day": {"role": "quasi-identifier", "kind": "date",
                    "bounds": ["1970-01-01", "1970-01-09"]},
        },
        "protect": {"method": "mondrian", "k": 4, "output": "tree"},
    }  # fmt: skip
    filled = pl.DataFrame({"age": ages, "day": days}).with_columns(
        pl.col("age").fill_null(3), pl.col("day").fill_null(date(1970, 1, 5))
    )
    expected = shoal.protect(filled, rules).data.rows()
    for name, more in stated.items():
        rules["columns"][name] |= more

    release = shoal.protect(pl.DataFrame({"age": ages, "day": days}), rules)

    assert release.data.rows() == expected
    assert "'age': missing cells count as 3." in release.notes
    assert "'day': missing cells count as 1970-01-05." in release.notes


SMALL = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "ill": {"role": "confidential", "kind": "nominal"},
    },
    "protect": {"method": "mondrian", "k": 2, "output": "tree"},
}


def test_whole_numbers_too_large_for_a_step_of_one_still_make_boxes():
    large = [2**60, 2**60, 2**61, 2**61]

    released = shoal.protect(pl.DataFrame({"age": large, "ill": list("aabb")}), SMALL).data

    assert released.height == 2
    assert released["age_lower"][1] == released["age_upper"][0] > 2.0**60


def test_values_that_a_tree_cannot_count_are_told():
    many = pl.DataFrame({"age": range(1001), "ill": [f"v{i}" for i in range(1001)]})
    with pytest.raises(InputError, match="has 1,001 values, but a tree counts at most 1,000"):
        shoal.protect(many, SMALL)

    empty = pl.DataFrame({"age": [1, 2, 3], "ill": ["", None, "a"]})
    with pytest.raises(InputError, match="missing cells and empty texts"):
        shoal.protect(empty, SMALL)


def test_numbers_are_counted_in_their_order():
    rules = SMALL | {
        "columns": SMALL["columns"] | {"ill": {"role": "confidential", "kind": "numeric"}}
    }
    table = pl.DataFrame({"age": [1, 1, 1, 1], "ill": [10, 9, None, 9]})

    released = shoal.protect(table, rules).data

    assert released.columns[2:] == ["ill=9", "ill=10", "ill="]
    assert released.row(0)[2:] == (2, 1, 1)


def test_without_a_confidential_column_records_are_counted():
    rules = SMALL | {"columns": {"age": SMALL["columns"]["age"]}}

    released = shoal.protect(pl.DataFrame({"age": [1, 2, 8, 9]}), rules).data

    assert released.rows() == [(1, 3, 2), (3, 10, 2)]
    assert released.columns == ["age_lower", "age_upper", "count"]

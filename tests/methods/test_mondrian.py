"""Mondrian in a release: intervals, ancestors, and what it steers towards."""

from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError

TREE = "lyon,south,all\nnice,south,all\nlille,north,all\nparis,north,all\n"
CITIES = ["lyon", "nice", "lille", "paris"]


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory):
    path = tmp_path_factory.mktemp("mondrian") / "city.csv"
    path.write_text(TREE)
    return str(path)


def policy(taxonomy, require=None, **protect):
    quasi = {"role": "quasi-identifier"}
    return {
        "version": 1,
        "columns": {
            "age": quasi | {"kind": "numeric"},
            "city": quasi | {"kind": "nominal", "taxonomy": taxonomy},
            "team": quasi | {"kind": "nominal"},
            "rank": quasi | {"kind": "ordinal", "categories": ["low", "mid", "high"]},
            "day": quasi | {"kind": "date"},
            "ill": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": "mondrian", "k": 3, **protect},
        "require": require or {},
    }


@st.composite
def tables(draw):
    n = draw(st.integers(3, 40))

    def column(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    return pl.DataFrame(
        {
            "age": pl.Series(column(st.none() | st.integers(0, 9)), dtype=pl.Int64),
            "city": pl.Series(column(st.none() | st.sampled_from(CITIES)), dtype=pl.String),
            "team": pl.Series(column(st.sampled_from("xyz")), dtype=pl.String),
            "rank": pl.Series(column(st.sampled_from(["low", "mid", "high"])), dtype=pl.String),
            "day": pl.Series(column(st.integers(0, 9)), dtype=pl.Int32).cast(pl.Date),
            "ill": pl.Series(column(st.sampled_from("abc")), dtype=pl.String),
        }
    )


def classes(released):
    held = defaultdict(list)
    for *keys, ill in released.rows():
        held[tuple(keys)].append(ill)
    return held


@given(tables(), st.booleans(), st.sampled_from(["intervals", "centroids"]))
@settings(max_examples=60)
def test_every_class_keeps_k_l_and_t_by_a_naive_recount(taxonomy, table, relaxed, output):
    whole = Counter(table["ill"])
    assume(len(whole) >= 2)
    require = {
        "k-anonymity": 3,
        "l-diversity": {"l": 2, "column": "ill"},
        "t-closeness": {"t": 0.4, "column": "ill"},
    }

    done = shoal.protect(table, policy(taxonomy, require, relaxed=relaxed, output=output))

    assert len(done.claims) == 3
    assert all(check.holds for check in done.checks)
    for held in classes(done.data).values():
        assert len(held) >= 3
        assert len(set(held)) >= 2
        shares = Counter(held)
        distance = sum(
            abs(Fraction(shares[v], len(held)) - Fraction(whole[v], table.height)) for v in whole
        )
        assert distance / 2 <= Fraction(2, 5)


@given(tables())
@settings(max_examples=40)
def test_what_is_written_covers_what_was_there(taxonomy, table):
    released = shoal.protect(table, policy(taxonomy), keep_order=True).data
    above = {row.split(",")[0]: row.split(",") for row in TREE.split()}

    for before, after in zip(table.rows(named=True), released.rows(named=True), strict=True):
        if after["city"] not in {None, "*"}:
            assert after["city"] in above[before["city"]]
        if after["team"].startswith("{"):
            assert before["team"] in after["team"].strip("{}").split(", ")
        if after["age"] is not None and str(after["age"]).startswith("["):
            low, high = map(int, after["age"].strip("[]").split(", "))
            assert low <= before["age"] <= high
        if str(after["day"]).startswith("["):
            low, high = map(date.fromisoformat, after["day"].strip("[]").split(", "))
            assert low <= before["day"] <= high


def test_a_table_that_lacks_what_is_required_stops(taxonomy):
    table = pl.DataFrame(
        {"age": [1, 2, 3], "city": CITIES[:3], "team": ["x"] * 3, "rank": ["low"] * 3,
         "day": [date(2000, 1, 1)] * 3, "ill": ["a"] * 3}
    )  # fmt: skip

    with pytest.raises(InputError, match="because the whole table does not"):
        shoal.protect(table, policy(taxonomy, {"l-diversity": {"l": 2, "column": "ill"}}))


@pytest.mark.parametrize(
    ("protect", "sentence"),
    [
        ({"dimension": "gain"}, "expected beside dimension = 'gain'"),
        ({"target": "ill"}, "expected beside dimension = 'gain'"),
        ({"dimension": "gain", "target": "ail"}, "no released column named 'ail'"),
        ({"output": "boxes"}, "expected one of intervals, centroids"),
    ],
)
def test_wrong_parameters_are_told(taxonomy, protect, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy(taxonomy, **protect))


def test_gain_entropy_and_a_largest_height_are_taken(taxonomy):
    table = pl.DataFrame(
        {"age": list(range(40)), "city": CITIES * 10, "team": ["x", "y"] * 20,
         "rank": ["low", "high"] * 20, "day": [date(2000, 1, 1)] * 40, "ill": list("ab") * 20}
    )  # fmt: skip

    by_gain = shoal.protect(table, policy(taxonomy, dimension="gain", target="ill"))
    by_entropy = shoal.protect(table, policy(taxonomy, dimension="entropy"))
    low = shoal.protect(table, policy(taxonomy, max_height=1))

    assert by_gain.checks[0].holds
    assert by_entropy.checks[0].holds
    assert low.checks[0].remarks["classes"] == 2


def test_steering_needs_every_quasi_identifier_among_the_protected(taxonomy):
    require = {"l-diversity": {"l": 2, "column": "ill"}}

    with pytest.raises(InputError, match="must hold every quasi-identifier"):
        shoal.plan(policy(taxonomy, require, columns=["age"]))

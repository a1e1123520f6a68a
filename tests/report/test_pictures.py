"""Pictures: their counts add up, equal tables give equal pictures, and all of it is plain SVG."""

import re
from datetime import date
from math import exp
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core import Release, ReleaseForm
from shoal.core.manifest import Manifest
from shoal.metrics.histograms import BINS, round_edges
from shoal.report import pictures, released_columns

HOSTILE = "</text><script>alert(1)</script>"
FACTS = {
    "candidates": [
        {"label": "mdav k=5 <b>", "standing": "frontier",
         "risk": {"value": 0.1, "low": 0.0, "high": 0.2},
         "error": {"value": 0.3, "low": 0.2, "high": 0.5}},
        {"label": "mdav k=9", "standing": None, "risk": None, "error": None},
    ],
    "baselines": [],
    "recommended": "mdav k=5 <b>",
    "ties": [],
    "settings": {"axes": "advantage"},
}  # fmt: skip
POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
        "born": {"role": "quasi-identifier", "kind": "date"},
        "town": {"role": "quasi-identifier", "kind": "nominal"},
        "income": {"role": "confidential", "kind": "numeric"},
    },
    "protect": {"method": "mdav", "k": 3},
}


def people(rows=60, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pl.DataFrame(
        {
            "age": pl.Series(age).scatter([0, 5], None),
            "born": [date(2024 - int(a), 1 + int(a) % 12, 1) for a in age],
            "town": pl.Series([f"{HOSTILE}{i % 12}" for i in age]).scatter([3], None),
            "income": rng.lognormal(10, 1, rows),
        }
    )


numbers = st.lists(st.floats(-1e12, 1e12) | st.integers(-50, 50).map(float), max_size=40)


@settings(max_examples=50)
@given(numbers, numbers)
def test_edges_are_round_ascend_and_bins_hold_every_number(before, after):
    edges = round_edges(before, after)
    values = np.array([*before, *after])

    assert (np.diff(edges) > 0).all()
    assert len(edges) <= 2 * BINS + 2
    counts = np.bincount(np.searchsorted(edges[1:-1], values, side="right"), minlength=1)
    assert counts.sum() == len(values)
    if len(values) and (values == np.rint(values)).all():
        assert (edges == np.rint(edges)).all()


def test_counts_before_and_after_add_up_to_the_rows_and_equal_tables_give_equal_pictures():
    table = people()
    moved = people(seed=2).head(50)

    same = shoal.evaluate(table, table, POLICY, only="utility", which=["marginals"]).pictures
    other = shoal.evaluate(table, moved, POLICY, only="utility", which=["marginals"]).pictures

    for found, rows in ((same, 60), (other, 50)):
        assert {one["name"] for one in found["columns"]} == set(POLICY["columns"])
        for one in found["columns"]:
            assert sum(one["before"]) + one["missing"][0] == pytest.approx(60, abs=1)
            assert sum(one["after"]) + one["missing"][1] == pytest.approx(rows, abs=1)
            size = len(one.get("labels", one.get("edges", [])[1:]))
            assert len(one["before"]) == len(one["after"]) == size
    for one in (*same["columns"], *same["pairs"]):
        assert one["before"] == one["after"]
        assert one["distance"] == 0
    assert same["association"]["before"] == same["association"]["after"]
    moves = [one["distance"] for one in other["columns"]]
    assert moves == sorted(moves, reverse=True)
    assert all(0 < move <= 1 for move in moves)
    # Age determines the day of birth, and income depends on nothing.
    names, strength = same["association"]["names"], same["association"]["before"]
    assert set(same["pairs"][0]["names"]) <= {"age", "born", "town"}
    assert strength[names.index("age")][names.index("born")] > 0.5
    assert strength[names.index("age")][names.index("income")] < 0.3
    rules = [one["why"] for one in other["pairs"]]
    assert rules == 3 * ["strongest association in the original"] + 2 * ["largest change"]
    drawn = str(pictures.evaluation(other))
    assert drawn == str(pictures.evaluation(other))
    assert HOSTILE not in drawn
    assert "script" not in re.sub(r"&lt;.*?&gt;", "", drawn)
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314 (our own)


def test_what_was_not_compared_is_not_drawn():
    found = shoal.evaluate(people(), people(), POLICY, only="risk", which=["uniques"])

    assert found.pictures == {}
    with pytest.raises(shoal.InputError, match="the marginals of the tables were not compared"):
        found.plot()


def form_alone(form):
    """A manifest of which nothing but the release form is there."""
    return Manifest.model_construct(release_form=ReleaseForm(form))


def test_every_released_column_has_a_picture_from_the_release_alone(tmp_path):
    table = people(80).with_columns(rest=None, ok=pl.lit(value=True))
    release = Release(table, (), (), (), form_alone("linked-shuffled"))

    drawing = release.plot()
    drawing.save(tmp_path / "columns.svg")

    found = {one["name"]: one for one in pictures.count_released(release)}
    for name, one in found.items():
        assert sum(one["after"]) + one["missing"][0] == 80, name
        assert one["answers"] is None
    assert found["born"]["kind"] == "dates"
    assert len(found["town"]["labels"]) == released_columns.CATEGORIES + 1
    assert (tmp_path / "columns.svg").read_text() == drawing._repr_svg_()
    assert str(drawing).count("<svg") == 1 + table.width
    assert HOSTILE not in str(drawing)


def test_a_table_on_spark_or_of_boxes_is_refused():
    for data, form in ((SimpleNamespace(), "synthetic"), (pl.DataFrame({"a": [1]}), "tree")):
        with pytest.raises(shoal.InputError, match="Only rows on this machine are drawn"):
            Release(data, (), (), (), form_alone(form)).plot()


def measurements(scale=2.0, **more):
    """A one-way measurement of two columns, and a two-way one."""
    return pl.DataFrame(
        {
            "measurement": [0, 0, 0, 1, 1, 2],
            "sort": ["table"] * 6,
            "answer": [30, 48, 2, 41, 39, 12],
            "scale": [scale] * 6,
            **more,
            "cell_age": ["[0, 40)", "[40, 80)", "[80, 90]", None, None, "[0, 40)"],
            "cell_sex": [None, None, None, "m", "f", "m"],
        }
    )


@pytest.mark.parametrize("law", ["", "discrete-gaussian"])
def test_a_margin_is_that_of_the_noise_by_its_published_scale(law):
    table = pl.DataFrame({"age": [20, 50] * 40, "sex": ["m", "f"] * 40})
    more = {"noise": [law] * 6} if law else {}

    age, sex = released_columns.columns(table, measurements(**more))

    half = released_columns.margin(2.0, law)
    assert age["edges"] == [0, 40, 80, 90]
    assert age["after"] == [40, 40, 0]
    assert age["answers"] == [[30, half], [48, half], [2, half]]
    assert dict(zip(sex["labels"], sex["answers"], strict=True)) == {
        "m": [41, half],
        "f": [39, half],
    }
    assert "p-line" in pictures.column(sex)
    days = pl.DataFrame({"age": [date(1970, 1, 3), date(1970, 1, 12)]})
    cells = pl.Series("cell_age", ["[1970-01-01, 1970-01-11)", "[1970-01-11, 1970-01-21]"])
    (day,) = released_columns.columns(days, measurements().head(2).with_columns(cells))
    assert (day["kind"], day["edges"], day["after"]) == ("dates", [0, 10, 20], [1, 1])


@settings(max_examples=20)
@given(st.floats(1, 50))
def test_about_95_of_100_geometric_draws_lie_within_their_margin(scale):
    half, q = released_columns.margin(scale, ""), exp(-1 / scale)

    beyond = 2 * q ** (int(half) + 1) / (1 + q)  # P(|X| > half) of the two-sided geometric law

    assert 0.02 <= beyond <= 0.08


def test_the_frontier_is_drawn_with_intervals_and_says_that_it_is_confidential():
    drawn = str(pictures.comparison(FACTS))

    assert "Confidential" in drawn
    assert drawn.count("<circle") == 2  # the candidate, and the ring around it
    assert "mdav k=5 &lt;b&gt;" in drawn
    assert "linkage and inference, worst attack" in drawn
    assert drawn.count('stroke-opacity=".35"') == 2

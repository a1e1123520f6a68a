"""Constant columns, one row, nothing but missing cells: every figure is a number or a reason."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.opening import figures

import shoal
from shoal import io
from shoal.errors import InputError
from shoal.evaluation import evaluate
from shoal.metrics.attacks.result import DIFFERENCE
from shoal.metrics.information_loss import of_spread
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.publish import evidence
from shoal.report import html

NO_NUMBER = re.compile(r"(?<![\w.])[+-]?(inf|infinity|nan)(?![\w])", re.IGNORECASE)


def stated(method="mdav", **parameters):
    bounds = {"kind": "numeric", "bounds": [0, 20]}
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", **bounds},
            "city": {"role": "quasi-identifier", "kind": "nominal", "categories": ["a", "b"]},
            "children": {"role": "confidential", **bounds},
            "ill": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": method, **parameters},
        "evaluate": {"groups": "city", "regression": "children ~ age + city",
                    "rules": ["children <= age"]},
    }  # fmt: skip


def column(values, rows):
    """One value throughout, nothing at all, or anything, missing cells among it."""
    any_cell = st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows)
    same = values.map(lambda value: [value] * rows)
    return st.one_of(same, st.just([None] * rows), any_cell)


@st.composite
def tables(draw, least=1):
    rows = draw(st.integers(least, 4))
    numbers, texts = st.integers(0, 20), st.sampled_from(["a", "b"])
    return pl.DataFrame(
        {
            "age": draw(column(numbers, rows)),
            "city": draw(column(texts, rows)),
            "children": draw(column(numbers, rows)),
            "ill": draw(column(texts, rows)),
        },
        schema={"age": pl.Int64, "city": pl.String, "children": pl.Int64, "ill": pl.String},
    )


def assert_finite(found, *pages):
    """No value is infinite, and no text says so; a figure without a value says why."""
    for row in found.facts()["figures"]:
        numbers = [value for value in row.values() if isinstance(value, float)]
        assert np.isfinite(numbers).all(), row
        assert row["value"] is not None or "cannot be computed: " in row["sentence"], row
        assert not NO_NUMBER.search(row["sentence"]), row["sentence"]
    for page in pages:
        shown = page.partition("<body")[2].partition("<script")[0]
        text = re.sub(r"<[^>]*>", " ", shown)
        assert text
        assert not NO_NUMBER.search(text), NO_NUMBER.search(text)


SLOW = ("gradient boosting", "learning", "propensity")
QUICK = [name for name in (*evaluate.ATTACKS, *evaluate.METRICS) if name not in SLOW]
sides = given(tables(), tables(), st.one_of(st.none(), tables()), st.sampled_from([None, True]))


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate))
@sides
def test_degenerate_tables_are_measured_or_refused(original, released, control, aligned):
    assert_measured(original, released, control, aligned, QUICK)


@settings(max_examples=4, phases=(Phase.explicit, Phase.generate))
@sides
def test_degenerate_tables_are_learnt_from_or_refused(original, released, control, aligned):
    assert_measured(original, released, control, aligned, SLOW)


def assert_measured(original, released, control, aligned, which):
    try:
        found = shoal.evaluate(
            original, released, stated(), control=control, aligned=aligned, which=which
        )
    except InputError:
        return

    assert_finite(found, html.evaluation_report(found.facts(), found.pictures, DIFFERENCE))
    assert not NO_NUMBER.search(str(found))


@settings(max_examples=8, phases=(Phase.explicit, Phase.generate))
@given(tables(least=2), st.sampled_from(["mdav", "mondrian", "laplace", "maxent"]))
def test_the_officers_page_is_written_for_degenerate_tables(table, method):
    price = {"epsilon": 1} if method in {"laplace", "maxent"} else {"k": 2}
    policy = stated(method, **price)
    policy["columns"]["ill"]["categories"] = ["a", "b"]
    planned, raw = plan(load(policy)), io.from_native(table)
    try:
        done = protect_table.run(planned, raw)
    except InputError:
        return

    found, why = evidence.evaluate_release(
        planned, raw, done.release, wanted=True, control=None, progress=lambda *_: None
    )

    assert "a bug of Shoal" not in why
    measured = None if found is None else found.facts()
    found_here = figures(planned, done)
    compared = {**found_here, "measured": measured, "unmeasured": why,
                "pictures": {} if found is None else found.pictures}  # fmt: skip
    page = html.internal_report(done.release.manifest, compared, {})
    if found is not None:
        assert_finite(found, page)


def test_a_constant_number_that_is_changed_has_a_sentence_of_its_own():
    """Nobody in the table has children, and noise gives them some."""
    original = pl.DataFrame({"age": range(20), "city": ["a", "b"] * 10, "children": [0] * 20,
                             "ill": ["a"] * 20})  # fmt: skip

    found = shoal.evaluate(
        original, original.with_columns(children=pl.lit(3)), stated(), aligned=True
    )

    lost = [f for f in found.of("SSE / SST") if f.subject == "children"]
    assert [figure.value for figure in lost] == [None]
    assert lost[0].sentence == (
        "The SSE / SST of children cannot be computed: all its numbers in the original are equal, "
        "and the release changes them."
    )


@pytest.mark.parametrize(
    ("x", "y", "paired", "value", "reason"),
    [
        ([1, 3], [2, 2], True, 1.0, ""),
        ([1, 3], [3, 1], False, 0.0, ""),
        ([2, 2], [2, 2], True, 0.0, ""),
        ([2, 2], [2, 3], False, None, "all its numbers in the original are equal"),
        ([None, None], [None, None], True, 0.0, ""),
        ([1, 2], [None, None], True, None, "it has no numbers in the release"),
        ([None], [1], False, None, "it has no numbers in the original"),
        ([1, None], [None, 1], True, None, "no row has a number in both tables"),
    ],
)
def test_a_loss_is_a_number_or_a_reason(x, y, paired, value, reason):
    found, why = of_spread(np.array(x, float), np.array(y, float), paired=paired)

    assert found == value
    assert why.startswith(reason)
    assert bool(why) == (value is None)

"""Original, release and control are coded over one list of categories, by every entry point."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import io
from shoal.errors import InputError
from shoal.evaluation.arrays import AlignedArrays
from shoal.evaluation.comparison import running
from shoal.io.external import read
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.publish import evidence

JOBS = [f"job {code}" for code in range(1, 10)]
ATTACKS = ("naive Bayes", "gradient boosting", "inference")
POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]},
        "job": {"role": "quasi-identifier", "kind": "nominal"},
        "ill": {"role": "confidential", "kind": "nominal"},
    },
    "protect": {"method": "mondrian", "k": 5},
}
STRANGER = pl.DataFrame({"age": [30], "job": ["a new job"], "ill": ["a new illness"]})
"""Sorted, the new categories come first, and move every other one by one place."""


def people(n, seed):
    """The job tells the illness for 94 of 100, in the table or not."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, len(JOBS), n)
    ill = np.where(rng.random(n) < 0.93, job % 5, rng.integers(0, 5, n))
    columns = {
        "age": rng.integers(20, 60, n),
        "job": [JOBS[code] for code in job],
        "ill": [f"illness {code}" for code in ill],
    }
    return pl.DataFrame(columns)


def assert_nothing_is_due_to_the_release(figures):
    """Two rates of the same attack, on 400 people each or more.

    By Hoeffding, they are apart by 0.25 with probability below 2 exp(-2 0.25^2 / (2 / 400)), 3e-11.
    """
    for figure in figures:
        assert abs(figure["value"] - figure["control"]) < 0.25, figure["sentence"]


texts = st.lists(st.sampled_from(["a", "b", "c", "d", "e", ""]), min_size=1, max_size=12)


@settings(max_examples=60)
@given(texts, texts, texts)
def test_no_category_of_control_or_release_moves_one_of_the_original(mine, theirs, released):
    stated = load(POLICY)
    columns = {"age": 30, "ill": "flu"}
    original, control, made = (
        pl.DataFrame({"job": [text or None for text in rows]}).with_columns(
            **{name: pl.lit(value) for name, value in columns.items()}
        )
        for rows in (mine, theirs, released)
    )

    alone = AlignedArrays.of(read.read_external_release(original, original, stated))
    sides = AlignedArrays.of(read.read_external_release(original, made, stated, control=control))

    axis = sides.names.index("job")
    categories = sides.categories(axis)
    assert categories[: len(alone.categories(axis))] == alone.categories(axis)
    assert np.array_equal(sides.codes(axis), alone.codes(axis))
    outside = sides.outside([axis], axis)[1]
    for rows, codes in ((mine, sides.codes(axis)), (theirs, outside)):
        assert [categories[code] if code >= 0 else "" for code in codes] == rows
    known = [text if text in categories else "" for text in released]
    told = sides.codes(axis, released=True)
    assert [categories[code] if code >= 0 else "" for code in told] == known


@settings(max_examples=10)
@given(st.integers(0, 2**16), st.integers(0, 3), st.integers(0, 3))
def test_a_control_that_is_the_originals_twin_is_guessed_as_often(seed, dropped, strangers):
    """The same people, but for some jobs that are left out and some strangers.

    Naive Bayes draws nothing. So the twins' rate is that of the same people of the original, and
    strangers, whose illness no row has, are never guessed.
    """
    original = people(200, seed)
    twins = original.filter(~pl.col("job").is_in(JOBS[:dropped]))
    control = pl.concat([twins, *[STRANGER] * strangers])

    both = shoal.evaluate(original, original, POLICY, control=control, which=["naive Bayes"])
    only = shoal.evaluate(original, original, POLICY, control=twins, which=["naive Bayes"])
    same = shoal.evaluate(original, original, POLICY, control=original, which=["naive Bayes"])

    mixed, pure, equal = (found.of("naive Bayes")[0] for found in (both, only, same))
    assert equal.control == equal.value
    hits = round(pure.control.value * twins.height)
    assert mixed.value == pure.value
    assert mixed.control.value == pytest.approx(hits / control.height)


def test_measure_finds_no_difference_where_there_is_none():
    control = pl.concat([people(400, 2), STRANGER])

    found = shoal.evaluate(people(400, 1), people(400, 1), POLICY, control=control, which=ATTACKS)

    rows = [row for row in found.facts()["figures"] if row["metric"] in ATTACKS]
    assert len(rows) == 3
    assert_nothing_is_due_to_the_release(rows)


def test_the_officer_sees_no_difference_where_there_is_none():
    planned, raw = plan(load(POLICY)), io.from_native(people(400, 1))
    control = io.from_native(pl.concat([people(400, 2), STRANGER]))

    found, why = evidence.evaluate_release(
        planned, raw, protect_table.run(planned, raw).release, wanted=True, control=control,
        progress=lambda *_: None,
    )  # fmt: skip

    assert why == ""
    rows = [row for row in found.facts()["figures"] if row["metric"] in ATTACKS]
    assert_nothing_is_due_to_the_release(rows)


def test_compare_finds_no_difference_where_there_is_none():
    """In some repeat the stranger is held out, and in some not; neither moves a category."""
    frame = pl.concat([people(1200, 1), STRANGER])
    jobs = [
        running.Job.of(load(POLICY), "digest", share=1.0, repeat=repeat, seed=0)
        for repeat in range(6)
    ]
    draws = [np.random.default_rng([0, job.repeat]) for job in jobs]
    held = [1200 in running.hold_out(frame, load(POLICY).schema, rng)[1] for rng in draws]

    done = running.run(frame, jobs, folder=None, processes=1, progress=lambda *_: None)

    assert set(held) == {True, False}
    for one in done:
        rows = [row for row in one["figures"] if row["metric"] in ATTACKS]
        assert_nothing_is_due_to_the_release(rows)


@pytest.mark.parametrize(
    ("control", "sentence"),
    [
        (
            people(5, 1).drop("job"),
            "^Control group: expected a table with the columns of the original; it lacks 'job'",
        ),
        (people(5, 1).clear(), "^Control group: expected one row per person, found no rows"),
        (people(5, 1).with_columns(age=pl.lit("old")), "^Control: Column 'age': expected numbers"),
    ],
)
def test_a_control_that_does_not_fit_is_named(control, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.evaluate(people(50, 1), people(50, 1), POLICY, control=control)


def test_a_reading_with_two_lists_of_categories_does_not_exist():
    stated = load(POLICY)
    reading = read.read_external_release(
        people(20, 1), people(20, 1), stated, control=people(20, 2)
    )
    other = read.read_external_release(STRANGER, STRANGER, stated).original

    with pytest.raises(InputError, match="share the categories of 'job'"):
        type(reading)(**{**vars(reading), "control": other})

"""Persons whose rows lie in blocks: the rows that stay are those of one machine."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

from tests.engine import cases, memory

import shoal
from shoal.core import Persons
from shoal.engine.spark import reading
from shoal.engine.spark.blocks import SEQ, UNIT
from shoal.errors import InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.io import clamp
from shoal.io.persons import at_most
from shoal.policy.load import load


def visits(sizes, seed=0):
    """Rows of so many visits for each person, in any order."""
    frame = cases.people(sum(sizes), seed)
    unit = pl.Series("id", np.repeat([f"p{i}" for i in range(len(sizes))], sizes), dtype=pl.String)
    return frame.with_columns(unit).sample(fraction=1, shuffle=True, seed=seed)


def policy(method, person, **protect):
    rules = cases.policy(method, **protect)
    rules["columns"]["id"] = {"role": "identifier", "privacy_unit": True, **person}
    return rules


def adopted(frame):
    schema = load(cases.policy("dp-quadtree")).schema
    names = [name for name in frame.columns if name != "id"]
    return clamp.clamp(frame, schema, columns=names)[0]


def in_blocks(table, unit, rng, cuts, block_rows=7):
    """Typed records in blocks that say whose they are."""

    def whose(number, frame):
        return [(number, frame.with_columns(unit[frame[SEQ] // 3].alias(UNIT)))]

    typed = memory.typed(table, block_rows, rng, cuts)
    return replace(typed, blocks=typed.blocks.map(whose).keep())


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(0, 2**63),
    st.lists(st.integers(1, 70), max_size=5),
    st.integers(0, 100),
)
@settings(max_examples=25)
def test_the_rows_that_stay_are_those_of_one_machine_however_rows_are_cut(
    sizes, most, key, cuts, seed
):
    frame = visits(sizes, seed)
    table, stated = adopted(frame), Persons("id", most, most == 1, dropped=True)
    rng = np.random.default_rng(seed)
    typed = in_blocks(table, frame["id"], rng, [cut for cut in cuts if cut < frame.height])

    found = reading.limit_contributions(typed, stated, key=key)

    kept = at_most(table, frame["id"], stated, key=key)
    left = pl.concat(found.blocks.frames()).sort(SEQ)
    assert left[SEQ].to_list() == (3 * kept).tolist()
    assert left.drop(SEQ).equals(table.frame[kept])
    assert found.rows == sum(min(size, most) for size in sizes)


@pytest.mark.parametrize(
    ("stated", "unit"),
    [
        (Persons("id", 2), ["a", "b", "a", "b", "a"]),
        (Persons("id", 1), ["a", "b", "c", "b", "e"]),
        (Persons("id", 2), ["a", None, "b", None, "a"]),
    ],
)
def test_what_is_wrong_with_persons_is_counted_over_all_blocks(stated, unit):
    table, unit = adopted(cases.people(5)), pl.Series("id", unit)
    typed = in_blocks(table, unit, np.random.default_rng(0), [1, 3], block_rows=2)

    with pytest.raises(InputError) as here:
        at_most(table, unit, stated, key=1)
    with pytest.raises(InputError) as there:
        reading.limit_contributions(typed, stated, key=1)

    assert str(there.value) == str(here.value)


def test_drawn_rows_of_persons_whose_number_is_not_public_stay_on_one_machine():
    for person, neighbours in (
        ({"max_contributions": 2}, "change-one"),
        ({"exact_contributions": 2}, "add-remove"),
    ):
        rules = policy("maxent", person, neighbours=neighbours)
        with pytest.raises(InputError, match="exact_contributions in place of max_contributions"):
            shoal.plan(rules, distributed=True)
        shoal.plan(rules)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "person"),
    [
        ("dp-quadtree", {"max_contributions": 2}),
        ("privtree", {"exact_contributions": 3}),
        ("auto", {"exact_contributions": 3}),
        ("laplace", {"exact_contributions": 3}),
    ],
)
def test_persons_with_several_rows_cost_and_give_on_spark_what_they_do_on_one_machine(
    spark, method, person
):
    frame = visits([3] * 15 if "exact_contributions" in person else [1, 2, 5] * 5)
    rules = policy(method, person)
    one = shoal.protect(frame, rules, noise=SeededNoise(5))

    many = shoal.protect(spark.createDataFrame(frame.to_arrow()), rules, noise=SeededNoise(5))

    released = pl.DataFrame(pl.from_arrow(many.data.toArrow()))
    assert released.sort(released.columns).equals(one.data.sort(one.data.columns))
    assert many.privacy_losses == one.privacy_losses
    assert many.manifest.claims == one.manifest.claims
    assert many.manifest.rows == one.manifest.rows
    assert shoal.plan(rules, distributed=True).claims == shoal.plan(rules).claims


@pytest.mark.slow
def test_methods_without_noise_refuse_several_spellings_of_a_person_on_spark(spark):
    rules = policy("insensitive", {}, k=3)
    frame = visits([1] * 12).with_columns(id=pl.Series([str(i) for i in range(12)]))
    twice = frame.with_columns(pl.col("id").replace({"3": "04"}))

    done = shoal.protect(spark.createDataFrame(frame.to_arrow()), rules)
    with pytest.raises(
        InputError, match=r"found 1 more row than persons\. On Spark, k counts rows"
    ):
        shoal.protect(spark.createDataFrame(twice.to_arrow()), rules)

    assert done.manifest.rows == 12
    assert done.claims[0].status == "proved"
    assert shoal.protect(twice, rules).checks[0].remarks["counted"] == "persons"


def test_a_person_with_several_rows_is_noticed_over_all_blocks():
    table, unit = adopted(cases.people(5)), pl.Series("id", list("abcda"))
    rng = np.random.default_rng(0)

    single = reading.single(
        in_blocks(table, pl.Series("id", list("abcde")), rng, [1, 3]), Persons("id", 4)
    )
    with pytest.raises(
        InputError, match=r"found 1 more row than persons\. On Spark, k counts rows"
    ):
        reading.single(in_blocks(table, unit, rng, [1, 3]), Persons("id", 4))

    assert single.rows == 5
    assert all(UNIT not in frame.columns for frame in single.blocks.frames())

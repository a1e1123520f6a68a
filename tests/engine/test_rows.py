"""What methods ask of rows in blocks, on blocks in memory: equal to one machine, however cut."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

from tests.engine import cases, memory
from tests.opening import in_file_order, protected

from shoal.core import SpatialDecomposition
from shoal.engine import local
from shoal.engine.spark import outcome as outcomes
from shoal.engine.spark import rows as spark_rows
from shoal.engine.spark.blocks import SEQ, SortOrder, exchange
from shoal.engine.spark.source import order_rows
from shoal.hazmat.fakes import RecordingNoise
from shoal.io import clamp, validate
from shoal.methods import Tools
from shoal.pipeline.planning import plan, with_rows


def prepared(method, frame, **changes):
    planned = plan(cases.policy(method, **changes), distributed=True)
    schema = planned.policy.schema
    if planned.method.noisy:
        columns = planned.method.clamps(planned.setting)
        table = clamp.clamp(frame, schema, columns=columns)[0]
    else:
        table = validate.validate(frame, schema)
    return with_rows(planned, len(table)), table


def tools():
    return Tools(RecordingNoise([5, -3, 11]), rng=np.random.default_rng(1))


def both(method, frame, rng, block_rows, cuts, **changes):
    """What one machine gives, row by row of the file, and what blocks give."""
    planned, table = prepared(method, frame, **changes)
    here, there = tools(), tools()
    one = local.run(table, planned.method, planned.setting, here)
    typed = memory.typed(table, block_rows, rng, cuts)
    columns = planned.method.input.sort_by and planned.method.input.sort_by(planned.setting)
    rows = order_rows(typed, columns)
    many = planned.method.distributed.run(rows, planned.setting, there)
    assert many.privacy_losses == one.privacy_losses
    assert there.noise.calls == here.noise.calls
    if many.data is None:
        kept = outcomes.replace_columns(rows, many.changes)
        frames = pl.concat(kept.frames()).sort(SEQ).drop(SEQ, "\0rid")
        mine = in_file_order(one, table, planned.method, planned.setting)
        return mine.frame, frames
    if isinstance(many.data, SpatialDecomposition):
        return protected(one), many.data
    return protected(one).frame, many.data.frame


def same(one, other):
    if isinstance(one, SpatialDecomposition):
        arrays = ((one.lower, other.lower), (one.upper, other.upper), (one.counts, other.counts))
        return all(np.array_equal(a, b) for a, b in arrays) and one.values == other.values
    return one.equals(other)


@pytest.mark.parametrize("method", cases.EXACT)
@given(
    st.integers(3, 60),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.lists(st.integers(1, 59), max_size=6),
)
@settings(max_examples=8)
def test_exact_methods_on_blocks_equal_one_machine_however_rows_are_cut(
    method, rows, seed, block_rows, cuts
):
    frame = cases.people(rows, seed)

    one, many = both(method, frame, np.random.default_rng(seed), block_rows,
                     [cut for cut in cuts if cut < rows])  # fmt: skip

    assert same(one, many)


def test_groups_that_public_columns_name_on_blocks_equal_one_machine():
    changes = {"k": None, "group_by": ["level", "âge.x"]}

    one, many = both(
        "public-laplace", cases.people(50), np.random.default_rng(2), 17, [20], **changes
    )

    assert same(one, many)


def test_nominals_by_marginality_on_blocks_equal_one_machine(tmp_path):
    tree = tmp_path / "region.csv"
    tree.write_text("north,n,cold,all\nsouth,warm,all\nöst,n,cold,all\nwest,warm,all\n", "utf-8")
    changes = {"hierarchy": str(tree), "nominal_order": "marginality"}

    one, many = both("ir-laplace", cases.people(50), np.random.default_rng(2), 17, [20], **changes)

    assert same(one, many)


@pytest.mark.parametrize(
    "method", ["laplace", "ir-laplace", "insensitive-laplace", "public-laplace"]
)
def test_columns_are_added_up_in_one_pass_and_in_one_each_where_groups_are_many(
    method, monkeypatch
):
    """However many there are, the draws are the same: all sums come before the first of them."""
    passes, add_up = [], spark_rows._group_sums
    monkeypatch.setattr(
        spark_rows,
        "_group_sums",
        lambda layout, asked: passes.append(len(asked)) or add_up(layout, asked),
    )

    def columns_of_passes(most):
        monkeypatch.setattr(spark_rows, "_SUMS", most)
        passes.clear()
        one, many = both(method, cases.people(50), np.random.default_rng(2), 17, [20])
        assert same(one, many)
        return list(passes)

    (columns,) = columns_of_passes(4_000_000)
    assert columns > 3
    assert columns_of_passes(0) == [1] * columns


@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=40)
def test_lengths_of_ordered_blocks_follow_from_the_number_of_rows_alone(rows, count, seed):
    """Blocks become files: where they end must not tell what was sorted."""
    rng = np.random.default_rng(seed)

    def made(values):
        cuts = [0, *sorted(rng.integers(0, rows, 3)), rows]
        frame = pl.DataFrame({"x": values, "id": np.arange(rows)})
        held = [(a, frame[int(a) : int(b)]) for a, b in pairwise(cuts) if b > a]
        blocks = memory.MemoryBlocks(held, rng).keep()
        order = SortOrder(lambda frame: frame, lambda frame: frame.select("x", "id"))
        sorted_ = exchange(blocks, [order], [count], rows=rows)
        return frame.sort("x", "id"), outcomes.level(sorted_, count, rows).keep()

    (first, one), (second, other) = made(rng.integers(0, 9, rows)), made(rng.random(rows) ** 9)

    assert one.sizes == other.sizes
    assert pl.concat(one.frames()).equals(first)
    assert pl.concat(other.frames()).equals(second)

"""Checks and metrics that are added up over blocks, on blocks in memory: those of one machine."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

from tests.engine import memory

from shoal.core import (
    Distance,
    Diversity,
    KAnonymity,
    LDiversity,
    ReleaseForm,
    TCloseness,
)
from shoal.core.exits import for_method
from shoal.engine import local
from shoal.engine.check_table import check_frame
from shoal.engine.spark import checks_and_metrics
from shoal.engine.spark import outcome as outcomes
from shoal.engine.spark.source import order_rows
from shoal.hazmat.fakes import SeededNoise
from shoal.io import validate
from shoal.methods import Tools
from shoal.pipeline.planning import plan

KEYS = ("größe", "income", "age", "region")
COLUMNS = {
    "größe": {"role": "quasi-identifier", "kind": "numeric"},
    "income": {"role": "quasi-identifier", "kind": "numeric"},
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "region": {"role": "quasi-identifier", "kind": "nominal"},
    "born": {"role": "other", "kind": "date"},
    "ill": {"role": "confidential", "kind": "nominal", "categories": ["no", "flu", "ill", "rare"]},
}


def people(rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = pl.Series(rng.integers(18, 90, rows))
    return pl.DataFrame({
        "größe": np.round(170 + 10 * rng.normal(size=rows), 1),
        "income": np.exp(rng.normal(size=rows)),
        "age": age.set(pl.Series(rng.random(rows) < 0.03), None),
        "region": pl.Series(rng.choice(["Åland", "Köln", "Łódź"], rows)).set(
            pl.Series(rng.random(rows) < 0.02), None
        ),
        "born": pl.Series(rng.integers(0, 20_000, rows)).cast(pl.Int32).cast(pl.Date),
        "ill": rng.choice(["no", "flu", "ill", "rare"], rows, p=[0.5, 0.3, 0.15, 0.05]),
    })  # fmt: skip


def planned(method: str, **parameters):
    stated = {"version": 1, "columns": COLUMNS, "protect": {"method": method, "k": 5, **parameters}}
    return plan(stated, distributed=True)


def in_blocks(frame: pl.DataFrame, rng, size: int = 170) -> memory.MemoryBlocks:
    return memory.MemoryBlocks(list(enumerate(frame.iter_slices(size))), rng)


WANTED = [
    KAnonymity(5, KEYS),
    KAnonymity(2, ("region",)),
    *(LDiversity(Fraction(2), kind, ("ill",), KEYS) for kind in Diversity if kind != "recursive"),
    LDiversity(Fraction(2), Diversity.RECURSIVE, ("ill",), KEYS, Fraction(3)),
    LDiversity(Fraction(3), Diversity.DISTINCT, ("ill", "age"), ("region",)),
    TCloseness(Fraction(1, 5), Distance.EQUAL, ("ill",), KEYS),
    TCloseness(Fraction(1, 5), Distance.ORDERED, ("ill",), ("region",)),
    TCloseness(Fraction(1, 5), Distance.ORDERED, ("age",), ("region",)),
    TCloseness(Fraction(3), Distance.RATIO, ("ill",), ("region", "age")),
]


def test_counts_of_classes_in_parts_give_the_checks_of_a_whole_frame():
    frame = people(1_500).with_columns(
        (pl.col("größe") / 10).round() * 10, pl.col("age") // 20, income=pl.lit(1.0)
    )
    schema = planned("mdav").policy.schema
    blocks = in_blocks(frame, np.random.default_rng(1))

    together = checks_and_metrics.checks(blocks, WANTED, schema, tasks=3)

    for guarantee, here in zip(WANTED, together, strict=True):
        there = check_frame(frame, guarantee, schema)
        assert (here.guarantee, here.holds, here.achieved) == (
            guarantee, there.holds, there.achieved
        )  # fmt: skip
        assert here.remarks == {name: there.remarks[name] for name in here.remarks}
        assert checks_and_metrics.checks(blocks, [guarantee], schema, tasks=3) == (here,)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("mdav", {}), ("mondrian", {}), ("mondrian", {"output": "centroids"})],
)
def test_figures_of_blocks_are_those_of_one_machine(method, parameters):
    own = planned(method, **parameters)
    table = validate.validate(people(2_000, seed=3), own.policy.schema)
    tools = Tools(SeededNoise(0))
    one = local.run(table, own.method, own.setting, tools)
    rows = order_rows(memory.typed(table, 300, np.random.default_rng(2), [400, 401, 1_500]), None)
    rows.store.block_rows = 100_000 if method == "mdav" else 300
    kept = outcomes.replace_columns(
        rows, own.method.distributed.run(rows, own.setting, tools).changes
    )
    form = ReleaseForm.LINKED_SHUFFLED

    one = for_method(one.evidence)
    came = one.original().take(one.rows)
    mine = local.losses_of(came, one.table, own.setting.columns, form=form, raw=one.raw)
    theirs = checks_and_metrics.compare(rows, kept, own.setting.columns)

    for key in ("rows", "unique_on_quasi_identifiers", "homogeneous"):
        assert theirs[key] == mine[key]
    for here, there in zip(theirs["columns"], mine["columns"], strict=True):
        assert {**here, "loss": None} == {**there, "loss": None}
        assert here["loss"] == pytest.approx(there["loss"], rel=1e-9)

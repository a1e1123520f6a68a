"""Methods and measures that work on blocks, on a real session of two cores."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from shoal import engine, release
from shoal.checking import check_frame
from shoal.core import Distance, Diversity, KAnonymity, LDiversity, TCloseness
from shoal.errors import InputError
from shoal.measures import loss
from shoal.planning import plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

KEYS = ("größe", "income", "age", "region")
COLUMNS = {
    "größe": {"role": "quasi-identifier", "kind": "numeric"},
    "income": {"role": "quasi-identifier", "kind": "numeric"},
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "region": {"role": "quasi-identifier", "kind": "nominal"},
    "ill": {"role": "confidential", "kind": "nominal", "categories": ["no", "flu", "ill", "rare"]},
}


@pytest.fixture(autouse=True)
def _blocks(spark):
    stated = spark.conf.get("spark.shoal.blockRows")
    spark.conf.set("spark.shoal.blockRows", "2000")
    yield
    spark.conf.set("spark.shoal.blockRows", stated)


def table(rows: int, seed: int = 0, *, missing: bool = True) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = pl.Series(rng.integers(18, 90, rows))
    return pl.DataFrame({
        "größe": np.round(170 + 10 * rng.normal(size=rows), 1),
        "income": np.exp(rng.normal(size=rows)),
        "age": age.set(pl.Series(rng.random(rows) < 0.03), None) if missing else age,
        "region": rng.choice(["Åland", "Köln", "Łódź", "München"], rows, p=[0.1, 0.2, 0.3, 0.4]),
        "ill": rng.choice(["no", "flu", "ill", "rare"], rows, p=[0.5, 0.3, 0.15, 0.05]),
    })  # fmt: skip


def policy(method: str, *, require: dict | None = None, **parameters) -> dict:
    stated = {"version": 1, "columns": COLUMNS, "protect": {"method": method, "k": 5, **parameters}}
    return {**stated, "require": require} if require else stated


def ran(spark, frame: pl.DataFrame, stated: dict, partitions: int):
    """Run on Spark; the released rows as a frame, and the run."""
    data = spark.createDataFrame(frame.to_arrow()).repartition(partitions)
    done = release.run(plan(stated, spread=True), engine.source(data))
    return pl.from_arrow(done.release.data.toArrow()), done


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)


def test_mondrian_gives_rows_checks_and_figures_of_one_machine(spark):
    frame = table(9_000)
    require = {
        "k_anonymity": 5,
        "l_diversity": [{"column": "ill", "l": 2, "kind": "distinct"}],
        "t_closeness": [{"column": "ill", "t": 0.35, "distance": "equal"}],
    }
    stated = policy("mondrian", require=require)
    local = release.run(plan(stated), release.io.from_native(frame))

    shuffled = frame.sample(fraction=1, shuffle=True, seed=4)
    released, there = ran(spark, shuffled, stated, 7)

    assert sorted_rows(released).equals(sorted_rows(local.release.data))
    for here, other in zip(there.release.checks, local.release.checks, strict=True):
        assert (here.guarantee, here.holds) == (other.guarantee, other.holds)
        assert here.achieved == other.achieved
        assert here.remarks["classes"] == other.remarks["classes"]
    mine, theirs = local.figures, there.figures
    assert theirs["unique_on_quasi_identifiers"] == mine["unique_on_quasi_identifiers"]
    assert theirs["homogeneous"] == mine["homogeneous"]
    for one, other in zip(mine["columns"], theirs["columns"], strict=True):
        assert {**one, "loss": None} == {**other, "loss": None}
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-12)


def test_blocked_mdav_keeps_k_and_does_not_depend_on_partitions_or_order(spark):
    frame = table(25_000, seed=1)
    spark.conf.set("spark.shoal.blockRows", "25000")
    one, done = ran(spark, frame, policy("mdav"), 1)
    other, _ = ran(spark, frame.sample(fraction=1, shuffle=True, seed=2), policy("mdav"), 5)

    assert one.group_by(KEYS).len()["len"].min() >= 5
    assert sorted_rows(one).equals(sorted_rows(other))
    assert any("coarse tree" in note for note in done.release.manifest["notes"])


def test_a_table_of_one_cell_gets_the_groups_and_the_losses_of_one_machine(spark):
    frame = table(3_000, seed=11, missing=False)
    local = release.run(
        plan(policy("mdav"), keep_order=True), release.io.from_native(frame)
    ).release.data
    spark.conf.set("spark.shoal.blockRows", "5000")
    released, there = ran(spark, frame, policy("mdav"), 20)

    assert sorted_rows(released).equals(sorted_rows(local))
    names = ["größe", "income", "age"]
    X, Y = (one.select(names).cast(pl.Float64).to_numpy() for one in (frame, local))
    measures = there.figures["measures"]
    assert measures["SSE"] == pytest.approx(loss.sse(X, Y), rel=1e-9)
    assert measures["SAE"] == pytest.approx(loss.sae(X, Y), rel=1e-9)
    assert measures["IL1s"] == pytest.approx(loss.il1s(X, Y), rel=1e-9)
    assert measures["marginals"][0]["total_variation"] > 0
    assert measures["count_queries"]["median_relative_error"] >= 0


def test_more_partitions_than_rows_give_the_rows_of_one_machine(spark):
    frame = table(12, missing=False)

    few, _ = ran(spark, frame, policy("mondrian"), 20)

    assert sorted_rows(few).equals(sorted_rows(release.protect(frame, policy("mondrian")).data))


def test_counts_of_classes_in_parts_give_the_checks_of_a_whole_frame(spark):
    from shoal.engine.spark import sums  # noqa: PLC0415 (optional)
    from shoal.engine.spark.blocks import Blocks, pack  # noqa: PLC0415 (optional)

    frame = table(3_000, seed=8).with_columns(pl.col("größe").round(-1), income=pl.lit(1.0))
    frame = frame.with_columns(age=(pl.col("age") // 20))
    schema = plan(policy("mdav")).policy.schema
    rows = [(n, part.height, pack(part)) for n, part in enumerate(frame.iter_slices(700))]
    blocks = Blocks(spark.createDataFrame(rows, "block long, rows long, data binary"))
    wanted = [
        KAnonymity(5, KEYS),
        LDiversity(Fraction(2), Diversity.ENTROPY, ("ill",), KEYS),
        LDiversity(Fraction(2), Diversity.RECURSIVE, ("ill",), KEYS, Fraction(3)),
        TCloseness(Fraction(1, 5), Distance.ORDERED, ("ill",), KEYS),
        TCloseness(Fraction(1, 5), Distance.EQUAL, ("ill", "age"), ("region",)),
    ]

    for guarantee in wanted:
        here = sums.check(blocks, guarantee, schema, tasks=3)
        there = check_frame(frame, guarantee, schema)
        assert (here.holds, here.achieved) == (there.holds, there.achieved)
        for name, value in here.remarks.items():
            assert value == there.remarks[name]


def test_what_blocks_cannot_do_is_refused_before_anything_is_read(spark):
    data = spark.createDataFrame(table(20).to_arrow())

    for stated, word in (
        (policy("mondrian", suppress=0.1), "suppress"),
        (policy("mondrian", dimension="entropy"), "dimension"),
        (policy("mdav", blocks="region"), "coarse tree"),
        (policy("mdav-laplace", epsilon=1, release_form="row-aligned"), "does not run on Spark"),
    ):
        with pytest.raises(InputError, match=word):
            release.protect(data, stated)

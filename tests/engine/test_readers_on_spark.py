"""The contract of readers on Spark: one record changes nothing else that is read."""

import polars as pl
import pytest
from tests import readers

pytest.importorskip("pyspark", reason="needs pyspark, the extra 'spark'")

ON_SPARK = ("CSV", "Parquet", "Parquet of texts")


def outcome(path, spark):
    from shoal.engine.spark import files, reading  # noqa: PLC0415 (optional)
    from shoal.engine.spark.blocks import SEQ, UNIT  # noqa: PLC0415

    del spark  # the session that `files.read` takes
    policy, how = readers.adopt(path)
    source = files.read(path, delimiter=policy.reading.delimiter, alone=True)
    typed = reading.coerce_rows(source.frame, how)
    rows = pl.concat(frame for _, frame in typed.blocks.fetch()).sort(SEQ).drop(SEQ)
    names = [UNIT, *readers.PROTECTED]
    return (source.found, source.assumes, rows.schema), rows.select(names).rows()


@pytest.mark.parametrize("reader", ON_SPARK)
def test_a_changed_record_changes_nothing_else_that_spark_reads(reader, spark, tmp_path):
    facts, before = outcome(readers.build(reader, "", tmp_path), spark)
    changed = 0
    for odd in readers.SUBSTITUTIONS:
        folder = tmp_path / str(changed)  # Spark remembers what it has read of a path
        folder.mkdir()
        try:
            path = readers.build(reader, odd, folder)
        except readers.UnwritableError:
            folder.rmdir()
            continue
        changed += 1

        other_facts, after = outcome(path, spark)

        assert other_facts == facts, odd
        assert len(after) == readers.ROWS, odd
        kept = [n for n in range(readers.ROWS) if n != readers.CHANGED]
        assert [after[n] for n in kept] == [before[n] for n in kept], odd
    assert changed >= 10

"""From the rows of a DataFrame to typed blocks: what `intake` and `clamp` do, block by block."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shoal import clamp, intake
from shoal.core import Column, Kind, Role, Schema
from shoal.engine.spark.blocks import SEQ, Blocks, Numbered, Store, speaking
from shoal.engine.spark.rows import Layout
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class Typed:
    """Typed records in blocks, in no order; a record knows its place in the file."""

    store: Store
    blocks: Blocks
    layout: Layout
    rows: int
    clamped: Mapping[str, Mapping[str, int]]


def quoted(name: str) -> str:
    """A column's name as Spark's functions take it."""
    return "`" + name.replace("`", "``") + "`"


def typed(
    frame: DataFrame, schema: Schema, *, clamped: Sequence[str] | None, decimal: str | None
) -> Typed:
    """Bring the rows of a DataFrame to the types of a policy."""
    empty = _empty(frame)
    intake.check_names(empty, schema)
    store = Store(frame.sparkSession)
    raw = _raw(frame, store.block_rows).keep()
    rows = sum(raw.sizes().values())
    if not rows:
        raise InputError("The table has a header but no rows; expected one row a person.")
    kept = [name for name in empty.columns if schema[name].role is not Role.IDENTIFIER]
    if not kept:
        raise InputError("Every column is an identifier, so that nothing is left to release.")
    columns = {name: schema[name] for name in kept}
    known = {**columns, **_levels(raw, columns, clamped or ())}

    def bring(number: int, block: pl.DataFrame) -> Numbered:
        series = []
        for name in kept:
            cells = intake.refuse_odd(block[name])
            if clamped is not None and name in clamped:
                series.append(clamp._clamped(cells, known[name], decimal)[0])
            else:
                series.append(intake.typed(cells, known[name], decimal))
        return [(number, pl.DataFrame([*series, block[SEQ]]))]

    made = raw.map(bring).keep()
    types: dict[str, pl.DataType] = {}
    for _, head in made.map(lambda _n, block: [(0, block.clear())]).fetch():
        types = dict(head.drop(SEQ).schema)
    dtypes = {name: intake.leaving(empty.schema[name], columns[name]) for name in kept}
    released = Schema(tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER))
    return Typed(store, made, Layout(released, dtypes, types), rows, {})


def _empty(frame: DataFrame) -> pl.DataFrame:
    """The columns of a DataFrame and their types, without rows."""
    with speaking():
        empty = pl.from_arrow(frame.limit(0).toArrow())
    if not isinstance(empty, pl.DataFrame):
        raise InputError("Expected a table, found a single column.")
    return empty


def _raw(frame: DataFrame, block_rows: int) -> Blocks:
    """The rows as they are, in blocks, each row with its place in the file."""
    names = [*frame.columns, SEQ]  # Spark reads a point in a name as a way into it

    def cut(batches: Iterator[pa.RecordBatch]) -> Numbered:
        held: list[Any] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= block_rows:
                yield _framed(held, names)
                held, rows = [], 0
        if rows:
            yield _framed(held, names)

    numbered = frame.toDF(*(f"c{place}" for place in range(len(names) - 1)))
    return Blocks.of(numbered.withColumn("seq", f.monotonically_increasing_id()), cut)


def _framed(batches: list[Any], names: Sequence[str]) -> tuple[int, pl.DataFrame]:
    frame = pl.from_arrow(pa.Table.from_batches(batches).rename_columns(names))
    return int(frame[SEQ][0]), frame  # type: ignore[index, return-value]


def _levels(
    raw: Blocks, columns: Mapping[str, Column], clamped: Sequence[str]
) -> dict[str, Column]:
    """Columns whose categories the policy does not state, with those that all blocks have."""
    open_ones = {
        name: column
        for name, column in columns.items()
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}
        and column.levels is None
        and name not in clamped
    }
    if not open_ones:
        return {}

    def texts(_number: int, block: pl.DataFrame) -> Numbered:
        found = []
        for name, column in open_ones.items():
            values = intake.typed(block[name], column, None)
            found.append(pl.DataFrame({"name": name, "level": values.cast(pl.String).unique()}))
        return [(0, pl.concat(found))]

    held: dict[str, set[str]] = {name: set() for name in open_ones}
    for _, frame in raw.map(texts).fetch():
        for name, level in frame.drop_nulls().iter_rows():
            held[name].add(level)
    return {
        name: replace(column, categories=tuple(sorted(held[name])))
        for name, column in open_ones.items()
    }

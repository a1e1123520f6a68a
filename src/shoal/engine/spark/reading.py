"""Convert the rows of a DataFrame to typed blocks: `validate` and `clamp`, block by block.

What `validate` decides for a column may depend on all of its cells: text is read as whole numbers
if all of it is, the categories are those that occur. So a first pass brings evidence to the driver,
a few cells of each column that decide how it is read, and every block is read together with it:
each block decides as the whole column would. The evidence is as confidential as the table, and is
sent only where the table is: to the driver and to the workers, and never to a log.

Persons with several rows are brought together, and as many rows stay as the policy states. Which
stay is decided by the rows of that person alone (`shoal.io.persons.at_most`), wherever all of them
lie: they meet in one block, by a hash of the column that numbers persons.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from shoal.core import Column, Kind, Persons, Role, Schema
from shoal.engine.interface import Adoption
from shoal.engine.spark.blocks import (
    SEQ,
    UNIT,
    Blocks,
    BlockStore,
    Kept,
    Numbered,
    Step,
    cut_by,
    speaking,
)
from shoal.engine.spark.rows import Layout
from shoal.errors import InputError
from shoal.io import clamp, dates, validate
from shoal.io.cells import refuse_odd
from shoal.io.original import without_steps
from shoal.io.persons import (
    STATE_MOST,
    first_of_each,
    refuse_nobody,
    refuse_uneven,
    spell_persons,
    uneven,
)
from shoal.io.table import Table
from shoal.methods.cell_keys import Question, count_keys

_TYPES, _MISFITS, _CLAMPED, _BROKEN = -1, -2, -3, -4
"""Numbers of the notes that blocks send to the driver."""
_MISFIT = ("name", "what", "move", "cells")
"""What a note says of cells that do not fit."""


@dataclass(frozen=True, eq=False)
class Typed:
    """Typed records in blocks, unordered; each record has its position in the file."""

    store: BlockStore
    blocks: Kept
    layout: Layout
    clamped: Mapping[str, Mapping[str, int]]
    repaired: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of records."""
        return len(self.blocks)


def coerce_rows(frame: DataFrame, how: Adoption) -> Typed:
    """Convert the rows of a DataFrame to a policy's types, and keep them in blocks."""
    store, schema = BlockStore(frame.sparkSession), how.schema
    empty = _empty(frame)
    validate.check_names(empty, schema)
    kept = [name for name in empty.columns if schema[name].role is not Role.IDENTIFIER]
    if not kept:
        raise InputError("Every column is an identifier, so nothing is left to release.")
    quiet = set(how.clamped or ())
    for name in set(kept) - quiet:
        refuse_odd(empty[name])
    raw = _raw(frame, store.block_rows)
    loud = {name: schema[name] for name in kept if name not in quiet}
    evidence, categories = _evidence(raw, empty, loud)
    columns = {
        name: replace(schema[name], categories=categories[name])
        if name in categories
        else schema[name]
        for name in kept
    }
    released = Schema(tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER))
    bring = _bringing(columns, quiet, how, evidence)
    if how.constraints.rules:
        bring = _repairing(bring, how, released)
    unit = schema.column_with_flag("privacy_unit")
    if unit is not None:
        refuse_odd(empty[unit])
        bring = _with_unit(bring, schema[unit])
    made = raw.map(bring).keep()
    if not len(made):
        raise InputError("The table has a header but no rows; expected one row per person.")
    _refuse_misfits(made.notes, kept)
    types = _types(made.notes)
    dtypes = {name: validate.leaving(empty.schema[name], schema[name]) for name in kept}
    for name in quiet:
        dtypes[name] = clamp.released_type(types[name], schema[name])
    broken = _broken(made.notes)
    how.refuse(broken)
    return Typed(store, made, Layout(released, dtypes, types), _collect_clamped(made.notes), broken)


def count_cells(frame: DataFrame, questions: Sequence[Question]) -> list[dict[Any, int]]:
    """Count the keys of cells as they came, block by block; see `shoal.methods.discovery`."""

    def count(_number: int, block: pl.DataFrame) -> Numbered:
        for place, counts in enumerate(count_keys(block, questions)):
            yield place, pl.DataFrame({"key": list(counts), "count": list(counts.values())})

    sums: list[Counter[Any]] = [Counter() for _ in questions]
    if questions:
        store = BlockStore(frame.sparkSession)
        for place, counted in _raw(frame, store.block_rows).map(count).fetch():
            for key, number in counted.iter_rows():
                sums[place][key] += number
    return [dict(counter) for counter in sums]


def _bringing(
    columns: Mapping[str, Column],
    quiet: Collection[str],
    how: Adoption,
    evidence: Mapping[str, pl.Series],
) -> Step:
    """Make a step that types the blocks: some columns are clamped, misfits of others are noted."""
    decimal = how.decimal

    def bring(number: int, block: pl.DataFrame) -> Numbered:
        series, misfits, counts = [], [], []
        for name, column in columns.items():
            if name in quiet:
                values, changed = clamp.clamp_column(block[name], column, decimal)
                counts += [(name, sort, number) for sort, number in changed.items()]
            else:
                values, wrong = _read(block[name], column, decimal, evidence.get(name))
                misfits += [(name, misfit.what, misfit.move, misfit.cells) for misfit in wrong]
                bare = without_steps(column)
                if not wrong and bare != replace(column, bounds=None):
                    came, _ = _read(block[name], bare, decimal, evidence.get(name))
                    counts.append(
                        (name, clamp.CODED, int(came.ne_missing(values.cast(came.dtype)).sum()))
                    )
            series.append(values)
        made = pl.DataFrame([*series, block[SEQ]])
        yield number, made
        yield _TYPES, made.clear()
        if misfits:
            yield _MISFITS, pl.DataFrame(misfits, schema=_MISFIT, orient="row")
        if counts:
            yield _CLAMPED, pl.DataFrame(counts, schema=["name", "sort", "cells"], orient="row")

    return bring


def _repairing(bring: Step, how: Adoption, schema: Schema) -> Step:
    """Make a step that replaces typed rows that violate a constraint, and counts them.

    A block with misfits is left unchanged: the table will be refused.
    """

    def both(number: int, block: pl.DataFrame) -> Numbered:
        for note, frame in bring(number, block):
            if note < 0 or pl.Null in frame.dtypes:
                yield note, frame
                continue
            bare = frame.drop(SEQ)
            table, broken = how.repair(Table(bare, schema, dict(bare.schema)), block)
            yield number, table.frame.with_columns(frame[SEQ])
            counts = {"rule": list(broken), "rows": list(broken.values())}
            yield _BROKEN, pl.DataFrame(counts, schema={"rule": pl.String, "rows": pl.Int64})

    return both


def _with_unit(bring: Step, column: Column) -> Step:
    """Add the person of each row to typed blocks, which `limit_contributions` needs and removes."""

    def both(number: int, block: pl.DataFrame) -> Numbered:
        unit = spell_persons(block[column.name], column).alias(UNIT)
        for note, frame in bring(number, block):
            yield note, frame if note < 0 else frame.with_columns(unit)

    return both


def _empty(frame: DataFrame) -> pl.DataFrame:
    """Make an empty frame with the columns and types of a DataFrame."""
    doubled = [name for name in frame.columns if frame.columns.count(name) > 1]
    if doubled:
        raise InputError(f"The table has two columns named '{doubled[0]}'; expected each once.")
    with speaking():
        empty = pl.from_arrow(to_arrow_schema(frame.schema, timezone="UTC").empty_table())
    if not isinstance(empty, pl.DataFrame) or not empty.width:
        raise InputError("Expected a table with columns, found none.")
    return empty


def _raw(frame: DataFrame, block_rows: int) -> Blocks:
    """Convert the rows to blocks without changes, each row with its position in the file."""
    names = [*frame.columns, SEQ]  # Spark reads a dot in a name as a path into a struct

    def cut(batches: Iterator[pa.RecordBatch]) -> Numbered:
        held: list[Any] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= block_rows:
                yield _collect_frame(held, names)
                held, rows = [], 0
        if rows:
            yield _collect_frame(held, names)

    numbered = frame.toDF(*(f"c{place}" for place in range(len(names) - 1)))
    return Blocks(numbered.withColumn("seq", f.monotonically_increasing_id()), cut)


def _collect_frame(batches: list[Any], names: Sequence[str]) -> tuple[int, pl.DataFrame]:
    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches).rename_columns(names)))
    return int(frame[SEQ][0]), dates.in_calendar(frame, alone=True)


def _read(
    cells: pl.Series, column: Column, decimal: str | None, evidence: pl.Series | None
) -> tuple[pl.Series, list[validate.Misfit]]:
    """Parse a column of a block as the whole column would be, and count misfits."""
    both = cells if evidence is None else pl.concat([cells, evidence])
    try:
        return validate.parse_column(both, column, decimal)[: cells.len()], []
    except validate.MisfitError as error:
        misfits = error.misfits
    twice: dict[str, int] = {}
    if evidence is not None:
        try:
            validate.parse_column(evidence, column, decimal)
        except validate.MisfitError as error:
            twice = {misfit.what: misfit.cells for misfit in error.misfits}
    rest = [misfit._replace(cells=misfit.cells - twice.get(misfit.what, 0)) for misfit in misfits]
    nothing = pl.Series(cells.name, [None] * cells.len(), dtype=pl.Null)
    return nothing, [misfit for misfit in rest if misfit.cells > 0]


def _evidence(
    raw: Blocks, empty: pl.DataFrame, columns: Mapping[str, Column]
) -> tuple[dict[str, pl.Series], dict[str, tuple[str, ...]]]:
    """Collect cells that decide how a column is read, and categories that are not declared."""
    looks = {
        name: look
        for name, column in columns.items()
        if (look := _look(empty.schema[name], column)) is not None
    }
    if not looks:
        return {}, {}
    places = {name: place for place, name in enumerate(looks)}

    def gather(_number: int, block: pl.DataFrame) -> Numbered:
        for name, look in looks.items():
            cells = validate.mark_missing(block[name], columns[name])
            yield places[name], cells.filter(look(cells)).alias("cell").to_frame()

    parts: dict[int, list[pl.Series]] = {place: [] for place in places.values()}
    for place, block in raw.map(gather).fetch():
        parts[place].append(block.to_series())
    evidence, categories = {}, {}
    for name, look in looks.items():
        if not parts[places[name]]:
            continue
        cells = pl.concat(parts[places[name]]).alias(name)
        column = columns[name]
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL} and column.all_categories is None:
            read = validate.parse_column(cells.unique(maintain_order=True), column, None)
            categories[name] = tuple(read.cast(pl.String).drop_nulls().unique().sort().to_list())
        evidence[name] = cells.filter(look(cells)) if name not in categories else _first_odd(cells)
    return evidence, categories


def _look(dtype: pl.DataType, column: Column) -> Callable[[pl.Series], pl.Series] | None:
    """Mask the cells that decide how a column is read; None if each is read by itself."""
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        if column.all_categories is None:
            return lambda cells: cells.is_first_distinct()
        return _odd if dtype.is_float() else None
    if dtype == pl.String and column.kind is Kind.NUMERIC:
        return _numbers
    if dtype == pl.String and column.kind is Kind.DATE:
        form = column.date_format or dates.ISO
        return lambda cells: _first(dates.read(cells, form).is_null())
    if dtype.is_integer() and column.kind is Kind.NUMERIC and column.step:
        return lambda cells: _largest(cells.cast(pl.Float64).abs())
    return None


def _first(mask: pl.Series) -> pl.Series:
    """Mark the first cell where the mask holds, and the first where it does not."""
    known = mask.fill_null(value=False)
    return known.is_first_distinct()


def _largest(values: pl.Series) -> pl.Series:
    """Mark the first occurrence of the largest number, if there is a number."""
    top = values.max()
    return _first(values.is_not_null() if top is None else values == top)


def _odd(cells: pl.Series) -> pl.Series:
    """Mark a float category that is not a whole number, if there is one."""
    integral = (cells == cells.round()) & cells.is_between(-(2**53), 2**53)
    return _first(~integral.fill_null(value=True))


def _first_odd(cells: pl.Series) -> pl.Series:
    return cells.filter(_odd(cells)) if cells.dtype.is_float() else cells[:0]


def _numbers(cells: pl.Series) -> pl.Series:
    """Mark a cell for each way in which numbers in text can be read, or cannot."""
    mask = pl.Series([False]).new_from_index(0, cells.len()) if cells.len() else cells.is_null()
    swapped = cells.str.replace_many([",", "."], [".", ","])
    for text in (cells, cells.str.strip_chars(), swapped, swapped.str.strip_chars()):
        for dtype in (pl.Int64, pl.Float64):
            mask |= _first(text.cast(dtype, strict=False).is_null() & cells.is_not_null())
    mask |= _first(cells.str.contains(".", literal=True))
    mask |= _first(cells.str.contains(r",(\d{1,2}|\d{4,})\s*$"))
    size = swapped.str.strip_chars().cast(pl.Float64, strict=False).abs()
    plain = cells.str.strip_chars().cast(pl.Float64, strict=False).abs()
    for values in (size, plain):
        mask |= _largest(values)
    return mask


def _refuse_misfits(notes: Sequence[tuple[int, pl.DataFrame]], names: Sequence[str]) -> None:
    """Report what does not fit, column by column, counted over all blocks."""
    frames = [frame for note, frame in notes if note == _MISFITS]
    if not frames:
        return
    misfits: dict[str, list[validate.Misfit]] = {name: [] for name in names}
    # Blocks may advise different moves: the one for missing marks holds only if all advise it.
    several = pl.concat(frames).group_by("name", "what").agg(pl.col("move").max(), pl.sum("cells"))
    for name, what, move, cells in several.sort("what").iter_rows():
        misfits[name].append(validate.Misfit(what, move, cells))
    validate.refuse_together(
        [validate.MisfitError(name, some) for name, some in misfits.items() if some]
    )


def _types(notes: Sequence[tuple[int, pl.DataFrame]]) -> dict[str, pl.DataType]:
    """Return the types of the columns, on which all blocks agree."""
    schemas = [frame.drop(SEQ).schema for note, frame in notes if note == _TYPES]
    for name, dtype in schemas[0].items():
        if any(other[name] != dtype for other in schemas):
            raise InputError(
                f"Column '{name}' has the type {dtype} in one part of the table and another "
                "type elsewhere. Convert it to one type first."
            )
    return dict(schemas[0])


def _collect_clamped(notes: Sequence[tuple[int, pl.DataFrame]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for name, sort, cells in (row for n, fr in notes if n == _CLAMPED for row in fr.iter_rows()):
        sorts = counts.setdefault(name, {})
        sorts[sort] = sorts.get(sort, 0) + cells
    return counts


def _broken(notes: Sequence[tuple[int, pl.DataFrame]]) -> dict[str, int]:
    """Count the rows that violated each constraint."""
    counts: dict[str, int] = {}
    for rule, rows in (row for n, frame in notes if n == _BROKEN for row in frame.iter_rows()):
        counts[rule] = counts.get(rule, 0) + rows
    return counts


_COUNTS = -1


def single(typed: Typed, persons: Persons) -> Typed:
    """Refuse persons with several rows: on Spark, groups consist of rows, not persons."""
    move = (
        "On Spark, k counts rows, not persons. Bring the table to one row per person, or "
        "protect it on one machine, where persons are counted."
    )
    return limit_contributions(typed, Persons(persons.column), key=0, move=move)


def limit_contributions(
    typed: Typed, persons: Persons, *, key: int, move: str = STATE_MOST
) -> Typed:
    """Keep as many rows per person as the policy states, and leave out the rest.

    As on one machine: rows of a person stand in the order of the file, and cells are hashed
    under the same key; what is refused there is refused here, counted over all blocks. `move` is
    the next move if a person has another number of rows than stated. Records carry their person
    before, and not after. Cost: one exchange of all records.
    """
    layout, count = typed.layout, typed.store.block_count(typed.rows)

    def part(_number: int, frame: pl.DataFrame) -> Numbered:
        place = (frame.select(UNIT).hash_rows() % count).cast(pl.Int64).to_numpy()
        order = np.argsort(place, kind="stable")
        return cut_by(frame[order], place[order])

    def choose(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        joined = pl.concat(frames).sort(SEQ)
        unit, bare = joined[UNIT], joined.drop(UNIT)
        lacking, (wrong, people) = unit.null_count(), uneven(unit, persons)
        yield _COUNTS, pl.DataFrame({"lacking": [lacking], "wrong": [wrong], "found": [people]})
        if persons.dropped:
            bare = bare[first_of_each(layout.table(bare).frame, unit, persons, key=key)]
        yield number, bare

    made = typed.blocks.map(part).gather(count, choose).keep()
    counts = pl.concat([frame for note, frame in made.notes if note == _COUNTS]).sum()
    lacking, wrong, people = counts.row(0)
    if not persons.dropped:
        refuse_nobody(persons, lacking)
        refuse_uneven(persons, wrong, people, rows=typed.rows, move=move)
    typed.blocks.drop()
    return replace(typed, blocks=made)

"""Persons with several rows: they are brought together, and as many stay as the policy states.

Which rows of a person stay is decided by the rows of that person alone
(`shoal.io.validate.at_most`), so that it can be decided wherever all of them lie. A person's rows
meet in one block, by a hash of the column that numbers persons; a person with very many rows makes
a large block.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from shoal.core import Persons
from shoal.engine.spark.blocks import SEQ, UNIT, Numbered, cut_by
from shoal.engine.spark.reading import Typed
from shoal.io import validate

_COUNTS = -1


def single(typed: Typed, persons: Persons) -> Typed:
    """Refuse persons with several rows: in blocks groups are made of rows, and not of persons."""
    move = (
        "On Spark groups are counted in rows: bring the table to one row per person, or protect it "
        "on one machine, where persons are counted."
    )
    return limited(typed, Persons(persons.column), key=0, move=move)


def limited(typed: Typed, persons: Persons, *, key: int, move: str = validate.STATE_MOST) -> Typed:
    """Leave out what persons have beyond the rows that the policy states, and keep the rest.

    Equal to one machine: rows of a person stand in the order of the file, and cells are hashed
    under the same key. Cost: one exchange of all records.

    Args:
        typed: records that say whose they are; afterwards they do not.
        persons: how many rows each may have.
        key: random bits.
        move: the next move where a person has another number of rows than stated.

    Raises:
        InputError: for a row of nobody, and where the policy states how many rows every person has
            and some have more or fewer, counted over all blocks.
    """
    layout, count = typed.layout, typed.store.block_count(typed.rows)

    def part(_number: int, frame: pl.DataFrame) -> Numbered:
        place = (frame.select(UNIT).hash_rows() % count).cast(pl.Int64).to_numpy()
        order = np.argsort(place, kind="stable")
        return cut_by(frame[order], place[order])

    def choose(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        whole = pl.concat(frames).sort(SEQ)
        unit, bare = whole[UNIT], whole.drop(UNIT)
        lacking, (wrong, found) = unit.null_count(), validate.uneven(unit, persons)
        yield _COUNTS, pl.DataFrame({"lacking": [lacking], "wrong": [wrong], "found": [found]})
        if persons.dropped:
            bare = bare[validate.first_of_each(layout.table(bare), unit, persons, key=key)]
        yield number, bare

    made = typed.blocks.map(part).gather(count, choose).keep()
    counts = pl.concat([frame for note, frame in made.notes if note == _COUNTS]).sum()
    lacking, wrong, found = counts.row(0)
    validate.refuse_nobody(persons, lacking)
    if not persons.dropped:
        validate.refuse_uneven(persons, wrong, found, rows=typed.rows, move=move)
    typed.blocks.drop()
    return replace(typed, blocks=made)

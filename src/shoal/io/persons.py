"""Persons behind rows: normalise their identifiers, and limit rows per person."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Persons, Schema
from shoal.errors import InputError, count_noun
from shoal.io.cells import change_cells, refuse_odd
from shoal.io.table import Table


def persons_of(frame: pl.DataFrame, schema: Schema) -> NDArray[np.int64] | None:
    """Number the person of each row where persons may have several rows, else None.

    If the policy states the number of rows per person, it is checked.
    """
    persons = schema.persons
    if persons is None:
        return None
    column = schema[persons.column]
    unit = spell_persons(frame[column.name], column)
    refuse_nobody(persons, unit.null_count())
    if column.exact_contributions is not None or schema.one_row_per_person:
        move = "Correct the table, or remove the number from the policy: persons are then counted."
        refuse_uneven(persons, *uneven(unit, persons), rows=unit.len(), move=move)
    codes = (unit.rank("dense").cast(pl.Int64) - 1).to_numpy()
    return codes if int(codes.max()) + 1 < codes.size else None


def households_of(frame: pl.DataFrame, schema: Schema) -> NDArray[np.int64] | None:
    """Number the household of each row, if a column does; without a number it is its own."""
    name = schema.column_with_flag("household")
    if name is None or name not in frame.columns:
        return None
    number = spell_persons(frame[name], schema[name])
    alone = number.is_null().to_numpy()
    codes = (number.rank("dense").cast(pl.Int64) - 1).fill_null(0).to_numpy().copy()
    codes[alone] = int(codes.max(initial=-1)) + 1 + np.arange(int(alone.sum()))
    return np.unique(codes, return_inverse=True)[1]


def spell_persons(series: pl.Series, column: Column) -> pl.Series:
    """Normalise the column that identifies persons.

    Each cell by itself. Numbers by value: 7 and 7.0 are one person. Texts without blanks around
    them, invisible characters, and the difference of capitals and of Unicode's compatible forms
    (NFKC); what then reads as a number, by value: " 7", "07" and "7.0" are 7. Where in doubt two
    spellings are one person: groups then hold more persons than are counted, and a person keeps
    fewer rows. A blank cell is missing, and so is a mark of `missing`, which is spelled as it is.
    """
    cells = refuse_odd(series)
    text = cells.cast(pl.String)
    if cells.dtype.is_float():
        cells = cells.fill_nan(None)
        integral = (cells == cells.round()) & (cells.abs() < 2.0**63)
        digits = cells.set(~integral, None).cast(pl.Int64).cast(pl.String)
        text = digits.zip_with(integral.fill_null(value=False), cells.cast(pl.String))
    if not cells.dtype.is_integer():
        text = change_cells(text, r"[^!-~]", _visible).str.to_lowercase()
        text = change_cells(text, r"^[+-]?0|^\+|\.", _by_value)
        text = text.set(text == "", None)
    if column.missing:
        marks = spell_persons(pl.Series(column.missing), replace(column, missing=()))
        text = text.set(text.is_in(marks.implode()), None)
    return text


def _visible(text: pl.Series) -> pl.Series:
    return text.str.normalize("NFKC").str.replace_all(r"[\p{Cc}\p{Cf}]", "").str.strip_chars()


def _by_value(text: pl.Series) -> pl.Series:
    text = text.str.replace(r"^\+?(-?)0*(\d+)(?:\.0*)?$", "${1}${2}")
    return text.str.replace(r"^\+?(-?)0*(\d+\.\d*[1-9])0*$", "${1}${2}")


def at_most(table: Table, unit: pl.Series, persons: Persons, *, key: int) -> NDArray[np.int64]:
    """Choose the rows that an epsilon release uses: as many per person as the policy states.

    Which rows of a person stay is decided by those rows alone: the first in the order of a hash of
    their released cells, under a key that is drawn for the run. Neither the order of the file nor
    other people's rows matter, and equal rows are interchangeable. Cells are hashed after they were
    clamped: the type of a column in the file may follow any of its cells.

    Returned are the numbers of the rows that stay, in their order. Rows without a person count as
    rows of one person, so a cell that is missing changes nobody else. Where the policy states how
    many rows every person has, they are refused, and so are persons with more or fewer. The error
    goes to the steward and names no person.
    """
    if not persons.dropped:
        refuse_nobody(persons, unit.null_count())
        refuse_uneven(persons, *uneven(unit, persons), rows=unit.len())
        return np.arange(unit.len())
    return first_of_each(table.frame, unit, persons, key=key)


def first_of_each(
    frame: pl.DataFrame, unit: pl.Series, persons: Persons, *, key: int
) -> NDArray[np.int64]:
    """Choose the rows of persons all of whose rows are in the frame; see `at_most`."""
    cells = frame.with_columns(pl.col(pl.Enum).cast(pl.String))
    hashes = cells.hash_rows(key)
    ranked = pl.DataFrame({"unit": unit, "hash": hashes})
    kept = ranked.select(pl.col("hash").rank("ordinal").over("unit") <= persons.most)
    return np.flatnonzero(kept.to_series().to_numpy())


def uneven(unit: pl.Series, persons: Persons) -> tuple[int, int]:
    """Count the persons whose number of rows differs from the policy's, and all persons."""
    counts = unit.value_counts()["count"]
    return int((counts != persons.most).sum()), counts.len()


def refuse_nobody(persons: Persons, lacking: int) -> None:
    """Refuse rows that belong to no person."""
    if lacking:
        raise InputError(
            f"Column '{persons.column}' numbers the persons, but "
            f"{count_noun(lacking, 'row lacks', 'rows lack')} it. Leave such rows out, or number "
            "their persons."
        )


STATE_MOST = "State max_contributions, or correct the table."
"""The next move where an epsilon release finds other numbers of rows than the policy states."""


def refuse_uneven(
    persons: Persons, wrong: int, found: int, *, rows: int, move: str = STATE_MOST
) -> None:
    """Refuse persons with more or fewer rows than the policy states."""
    if not wrong:
        return
    if persons.most == 1:
        raise InputError(
            f"Column '{persons.column}' numbers the persons: expected one row per person, found "
            f"{count_noun(rows - found, 'more row')} than persons. {move}"
        )
    raise InputError(
        f"Column '{persons.column}': expected exactly {persons.most:,} rows per person, as "
        f"exact_contributions states; {wrong:,} of {found:,} "
        f"{'has' if wrong == 1 else 'have'} another number. {move}"
    )

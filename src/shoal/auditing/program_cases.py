"""Neighbouring tables on which programs are known to show more than they declare.

They are invented from the public domains of a policy's columns: the same for everybody. In each,
one person differs in a way that has broken programs: alone far from all others, alone with a
category, the same as another, at or beyond the end of a range, with missing cells, or with all rows
that a person may have.

References:
    Annamalai, Ganev, De Cristofaro, "What do you want from theory alone?", USENIX Security 2024.
    arXiv:2405.10994
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from shoal.auditing.neighbouring_tables import NeighbouringTables, place_in_domain
from shoal.core import Column, Kind, Schema

ROWS = 40
_BEYOND = 1000
"""By how many widths of a column's range a number lies beyond it."""
Cell = Callable[[Column], Any]


def list_program_cases(
    schema: Schema, *, adds: bool, rows: int = ROWS, seed: int = 0
) -> list[NeighbouringTables]:
    """List pairs of tables that differ in one person, who comes, or changes to an ordinary one."""
    rng = np.random.default_rng(seed)
    columns = [column for column in schema.columns if not _numbers_rows(column)]
    cases = []
    for name, others, person in _cases(columns, rng, rows):
        for count in _contributions(schema):
            whose = "" if count == 1 else f", with {count} rows"
            ordinary = [] if adds else [others[0]] * count
            before, after = (
                _frame(schema, columns, [*theirs, *others], of_person=len(theirs))
                for theirs in ([person] * count, ordinary)
            )
            if not before.equals(after, null_equal=True):
                cases.append(NeighbouringTables(f"{name}{whose}", before, after, 0))
    return cases


NAMES = {
    "alone": "somebody at the upper end of every column, all others at the lower",
    "extreme": "somebody at the upper end of every column, all others spread below it",
    "double": "somebody who is the same as another",
    "category": "somebody with a category that nobody else has",
    "beyond": "somebody with numbers far beyond the bounds",
    "missing": "somebody with missing cells",
}
"""The pairs of tables, by what the person is in them."""


def _cases(
    columns: list[Column], rng: np.random.Generator, rows: int
) -> Iterator[tuple[str, list[list[Any]], list[Any]]]:
    """Yield names, other people, and the person."""
    low, high = ([_place(column, end) for column in columns] for end in (0.0, 1.0))
    # Nobody but the person has the last category or the highest value.
    places = rng.uniform(0, 0.7, (rows, len(columns)))
    spread = [[_below_top(c, u) for c, u in zip(columns, row, strict=True)] for row in places]
    yield NAMES["alone"], [low] * rows, high
    yield NAMES["extreme"], spread, high
    yield NAMES["double"], spread, spread[-1]
    if any(column.all_categories for column in columns):
        lone = [high[j] if column.all_categories else spread[0][j]
                for j, column in enumerate(columns)]  # fmt: skip
        yield NAMES["category"], spread, lone
    if any(column.kind is Kind.NUMERIC for column in columns):
        far = [_beyond(column, cell) for column, cell in zip(columns, high, strict=True)]
        yield NAMES["beyond"], spread, far
    yield NAMES["missing"], spread, [None] * len(columns)


def _below_top(column: Column, share: float) -> Any:
    """Place a share in a column's domain, and never in its last category."""
    categories = column.all_categories
    if categories is None or len(categories) == 1:
        return _place(column, share)
    return categories[int(share / 0.7 * (len(categories) - 1))]


def _place(column: Column, share: float) -> Any:
    """Place a share in a column's domain, at a multiple of its step."""
    cell = place_in_domain(column, share)
    if column.step is None or not isinstance(cell, float):
        return cell
    step = float(column.step)
    return round(cell / step) if step == 1 else round(cell / step) * step


def _beyond(column: Column, cell: Any) -> Any:
    if column.kind is not Kind.NUMERIC:
        return cell
    low, high = column.bounds or (Decimal(0), Decimal(1))
    return float(high) + _BEYOND * (float(high) - float(low))  # type: ignore[arg-type]


def _contributions(schema: Schema) -> tuple[int, ...]:
    """List how many rows the person may have."""
    most = 1 if schema.persons is None else schema.persons.most
    return (1,) if most == 1 else (1, most)


def _numbers_rows(column: Column) -> bool:
    """Whether a column numbers records or persons."""
    return column.privacy_unit or column.household or column.kind is None


def _frame(
    schema: Schema, columns: list[Column], records: list[list[Any]], *, of_person: int
) -> pl.DataFrame:
    """Make a table whose first rows are the person's, and each other row somebody's."""
    cells: dict[str, list[Any]] = {
        column.name: [record[place] for record in records]
        for place, column in enumerate(columns)
    }  # fmt: skip
    others = len(records) - of_person
    persons = ["p0"] * of_person + [f"p{row + 1}" for row in range(others)]
    for column in schema.columns:
        cells.setdefault(column.name, persons)
    return pl.DataFrame(
        {column.name: pl.Series(cells[column.name], strict=False) for column in schema.columns}
    )

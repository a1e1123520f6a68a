"""One list of categories for all tables of people that are compared."""

import polars as pl

from shoal.core import Kind, Schema
from shoal.errors import InputError
from shoal.io import validate
from shoal.io.table import Table


def typed_alike(
    original: pl.DataFrame, control: pl.DataFrame | None, schema: Schema, *, decimal: str | None
) -> tuple[Table, Table | None]:
    """Type the original and the people not in it, over one list of categories for each column.

    A place means the same in both tables only if they share the list. Where the policy declares
    none, it has the categories of the original in their order, and then those that only the
    control has, in theirs: the control never moves a category of the original.

    Raises:
        InputError: a table does not fit the policy, or the control lacks a column.
    """
    table = validate.validate(original.select(schema.names), schema, decimal=decimal)
    if control is None:
        return table, None
    absent = [name for name in schema.names if name not in control.columns]
    if absent:
        raise InputError(f"Control: expected the columns of the original; no '{absent[0]}'.")
    if control.height == 0:
        raise InputError("Control: expected one row per person, found no rows.")
    try:
        others = validate.validate(control.select(schema.names), schema, decimal=decimal)
    except InputError as error:
        raise InputError(f"Control: {error}") from None
    shared = {
        column.name: pl.Enum(
            tuple(dict.fromkeys((*table.levels(column.name), *others.levels(column.name))))
        )
        for column in schema.columns
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}
    }
    return _recast(table, shared), _recast(others, shared)


def _recast(table: Table, shared: dict[str, pl.Enum]) -> Table:
    columns = [pl.col(name).cast(pl.String).cast(levels) for name, levels in shared.items()]
    return Table(table.frame.with_columns(columns), table.schema, table.dtypes)

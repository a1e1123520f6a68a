"""Convert a Spark DataFrame to rows in blocks, and wrap the outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import DataFrame

from shoal.core import Confidential
from shoal.engine.interface import Adoption
from shoal.engine.local import bring_to_domain
from shoal.engine.spark import reading
from shoal.engine.spark.blocks import RID, SEQ, Numbered, SortOrder, exchange, speaking
from shoal.engine.spark.outcome import SparkOutcome, replace_columns
from shoal.engine.spark.rows import RunGroups, SparkRows
from shoal.errors import InputError, InternalError
from shoal.io.table import Table
from shoal.methods import Method, Setting, Tools
from shoal.methods.cell_keys import Count
from shoal.methods.discovery import Discovered
from shoal.methods.noise import contributions


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A Spark DataFrame, as it was handed in."""

    frame: DataFrame
    labels: Mapping[str, Any] = field(default_factory=dict)
    found: str = ""
    assumes: tuple[str, ...] = ()

    def adopt(self, how: Adoption) -> "SparkCoerced":
        """Convert the rows to the types of the policy, block by block.

        Rows of a person beyond the number that the policy states are left out.
        """
        typed, persons = reading.coerce_rows(self.frame, how), how.schema.persons
        if persons is None:
            return SparkCoerced(typed)
        if how.clamped is None:
            return SparkCoerced(reading.single(typed, persons))
        limited = reading.limit_contributions(typed, persons, key=how.key)
        return SparkCoerced(limited, typed.rows - limited.rows)

    def ask(self, how: Adoption, search: Callable[[Count], Discovered]) -> Discovered:
        """Let a search count cells, block by block; counts add up exactly."""
        persons = how.schema.persons
        if persons is not None and persons.dropped:
            raise InputError(
                f"Column '{persons.column}', max_contributions: not on Spark beside what is to be "
                "discovered. State exact_contributions, or run on one machine."
            )
        return search(partial(reading.count_cells, self.frame))


@dataclass(frozen=True, eq=False)
class SparkCoerced:
    """Rows with the types of the policy, in blocks."""

    typed: reading.Typed
    dropped: int = 0

    def public_rows(self, setting: Setting[Any]) -> int | None:
        """Return the number of rows, if it is the same in neighbouring tables."""
        return self.typed.rows if contributions.rows_are_public(setting) else None

    def run(
        self,
        method: Method[Any],
        setting: Setting[Any],
        tools: Tools,
        recoding: Confidential[Mapping[str, Any]] | None = None,
    ) -> "SparkOutcome":
        """Run a method, and put its rows in the order of the release form."""
        if method.distributed is None or recoding is not None:
            raise InternalError(f"Method '{method.name}' does not run on Spark.")
        tools.progress("sorting rows", 0, 1)
        columns = None if method.input.sort_by is None else method.input.sort_by(setting)
        rows = order_rows(self.typed, columns)
        with speaking():
            done = method.distributed.run(rows, setting, tools)
        move = partial(bring_to_domain, setting=setting, method=method)
        data = move(done.data) if isinstance(done.data, Table) else done.data
        moved = move if setting.constraints.rules or method.noisy else None
        runs = done.canonical if isinstance(done.canonical, RunGroups) else None
        changes = [*done.changes, *([] if runs is None else [runs.label()])]
        return SparkOutcome(
            records=rows,
            protected=replace_columns(rows, changes, moved) if data is None else data,
            form=setting.release_form,
            privacy_losses=contributions.restate_losses(done.privacy_losses, setting),
            notes=done.notes,
            tables=done.extras,
            noise=tools.noise,
            clamped=self.typed.clamped,
            repaired=self.typed.repaired,
            dropped=self.dropped,
        )


def order_rows(typed: reading.Typed, columns: Sequence[str] | None) -> SparkRows:
    """Sort typed rows canonically, number them, and keep them."""
    layout = typed.layout
    names = list(layout.schema.names) if columns is None else list(columns)

    def keys(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(
            *(_sortable(pl.col(name), layout.types[name]).alias(name) for name in names), SEQ
        )

    count = typed.store.block_count(typed.rows)
    order = SortOrder(lambda frame: frame, keys)
    made = exchange(typed.blocks, [order], [count], rows=typed.rows).keep()
    sizes = made.sizes
    starts = np.concatenate([[0], np.cumsum(list(sizes.values()))]).astype(np.int64)
    place = {number: at for at, number in enumerate(sizes)}
    if starts[-1] != typed.rows:
        raise InternalError("Records were lost on the way to their canonical order.")

    def number(block: int, frame: pl.DataFrame) -> Numbered:
        at = place[block]
        rid = np.arange(starts[at], starts[at + 1])
        return [(at, frame.with_columns(pl.Series(RID, rid)))]

    typed.blocks.drop()
    return SparkRows(typed.store, made.map(number), layout, starts, made)


def _sortable(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Convert a column so it sorts as in `Table.canonical_order`: -0 as 0, missing as -infinity."""
    if dtype == pl.Float64:
        return column.fill_null(-np.inf) + 0.0
    if isinstance(dtype, pl.Enum):
        return column.to_physical().cast(pl.Int64)
    return column

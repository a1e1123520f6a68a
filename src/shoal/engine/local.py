"""Run a method on this machine, in memory."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import clamp, figures, intake, io, leaves
from shoal.checking import check_frame, check_leaves
from shoal.core import Check, Decomposition, ReleaseForm, Schema, Spending, Testable
from shoal.methods import Method, Setting, Tools
from shoal.table import Table


@dataclass(frozen=True, eq=False)
class Outcome:
    """Original and protected rows, both in canonical order, and the way back.

    Attributes:
        original: the rows that the protected ones stand for, or all.
        places: for each row of the file, where it stands in the canonical order.
        suppressed: how many rows were left out.
        notes: what the method has to say about this run.
        tables: what may be published beside the rows.
        raw: the table as it was handed in.
    """

    original: Table
    protected: Table | Decomposition
    places: NDArray[np.int64]
    spendings: tuple[Spending, ...]
    canonical: NDArray[np.int64] | None
    suppressed: int
    form: ReleaseForm
    raw: io.Raw
    notes: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The released rows, in the order of the release form.

        An order that no output can tell apart from any other: random bits of the operating
        system, sorted. That two of n rows get the same 64 bits has probability below n^2 / 2^65.
        """
        if isinstance(self.protected, Decomposition):
            return leaves.to_frame(self.protected, self.original.schema)
        frame = self.protected.publishable()
        if self.form is ReleaseForm.MARGINALS:
            return pl.DataFrame([series[_random_order(frame.height)] for series in frame])
        return frame[self.order]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Which protected row each released row is."""
        if self.form is ReleaseForm.ROW_ALIGNED:
            return self.places
        if self.form is ReleaseForm.CANONICAL and self.canonical is not None:
            return self.canonical
        return _random_order(len(self.protected))

    @property
    def rows(self) -> int:
        """Rows that are released."""
        return self.frame.height

    @property
    def columns(self) -> dict[str, str]:
        """Columns that are released, with the names of their types."""
        return {name: str(dtype) for name, dtype in self.frame.schema.items()}

    @property
    def data(self) -> Any:
        """The released table, of the type that was handed in."""
        return self._restored(self.frame)

    @property
    def extras(self) -> dict[str, Any]:
        """Tables beside it, by name."""
        return {name: self._restored(_framed(columns)) for name, columns in self.tables.items()}

    def _restored(self, frame: pl.DataFrame) -> Any:
        return self.raw.restore(frame)

    def checks(self, guarantees: Sequence[Testable], schema: Schema) -> tuple[Check, ...]:
        """Recompute promises on what is released."""
        if isinstance(self.protected, Decomposition):
            return tuple(check_leaves(self.protected, one, schema) for one in guarantees)
        whose = self.protected.persons
        units = None if whose is None else whose[self.order]
        return tuple(check_frame(self.frame, one, schema, units=units) for one in guarantees)

    def figures(self, columns: Sequence[str], form: ReleaseForm) -> dict[str, Any]:
        """Compare with the original: confidential."""
        return figures.compare(self.original, self.protected, columns, form=form)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with the types of its policy, in memory."""

    table: Table
    clamped: Mapping[str, Mapping[str, int]]
    raw: io.Raw
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.table)

    def run(self, method: Method[Any], setting: Setting[Any], tools: Tools) -> Outcome:
        """Sort the rows canonically and run the method on them.

        Ties in a method go to the first row; after sorting by all columns, the result does not
        depend on the order of the file. A method that may not look at some columns when it breaks
        ties names the others.
        """
        tools.progress("sorting rows", 0, 1)
        columns = None if method.sort_by is None else method.sort_by(setting)
        order = self.table.canonical_order(columns)
        original = self.table.take(order)
        masked = method.run(original, setting, tools)
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        suppressed = 0
        if masked.kept is not None:
            suppressed = len(original) - masked.kept.size
            original = original.take(masked.kept)
        return Outcome(
            original=original,
            protected=masked.data,
            places=places,
            spendings=masked.spendings,
            canonical=masked.canonical,
            suppressed=suppressed,
            form=setting.release_form,
            notes=masked.notes,
            tables=masked.extras,
            raw=self.raw,
        )


@dataclass(frozen=True, eq=False)
class Source:
    """A table in memory, as it was handed in."""

    raw: io.Raw
    spread: bool = False

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of its columns and values."""
        return self.raw.labels

    def adopt(
        self,
        schema: Schema,
        *,
        clamped: Sequence[str] | None,
        decimal: str | None,
        gaps: bool,
        key: int,
    ) -> Rows:
        """Bring the rows to the types of the policy, or clamp them to its public domains.

        Of persons with more rows than the policy states, the rest are left out.
        """
        frame = self.raw.frame
        if clamped is None:
            return Rows(intake.adopt(frame, schema, decimal=decimal), {}, self.raw)
        table, counts = clamp.adopt(frame, schema, columns=clamped, decimal=decimal, keep=gaps)
        if schema.persons is None:
            return Rows(table, counts, self.raw)
        name = schema.persons.column
        unit = intake.spelled(frame[name], schema[name])
        kept = intake.at_most(table, unit, schema.persons, key=key)
        return Rows(table.take(kept), counts, self.raw, len(table) - kept.size)


def run(table: Table, method: Method[Any], setting: Setting[Any], tools: Tools) -> Outcome:
    """Run a method on a table that is typed already; see `Rows.run`."""
    return Rows(table, {}, io.Raw(table.frame)).run(method, setting, tools)


def _framed(columns: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Columns as a frame; texts come as objects."""
    return pl.DataFrame(
        {name: c.tolist() if c.dtype == object else c for name, c in columns.items()}
    )


def _random_order(rows: int) -> NDArray[np.int64]:
    keys = pl.Series(np.frombuffer(os.urandom(8 * rows), dtype=np.uint64))
    return keys.arg_sort().cast(pl.Int64).to_numpy()

"""A table as it was read, with what its file or frame says about the columns."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import polars as pl

from shoal.errors import InputError, count_noun, visible


@dataclass(frozen=True, eq=False)
class Raw:
    """A frame as it was read, with what its file or its frame says about the columns.

    Attributes:
        labels: of the values of a column, each value as the text that categories have.
        column_labels: of the columns.
        measures: of the columns, as SPSS states them: nominal, ordinal or scale.
        ordered: the categories of columns whose type states an order; an enumeration of Polars
            lists its categories and states none.
        missing: values that mean missing, by column, as a metadata file states them.
        weights: columns that hold sampling weights, by the same.
        restore: turns a Polars frame into the type that was handed in, given columns with the types
            that they came in, Polars' and their own.
        types: the types of the columns where they came from.
        found: how the file was written, in words, where that was found out.
        reading: the same as `[reading]` states it.
        alone: each cell was read by itself, and none decided how the others were read.
        assumes: what must hold of the file for that to be so, in the words of a claim.
    """

    frame: pl.DataFrame
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    column_labels: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)
    ordered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: frozenset[str] = frozenset()
    restore: "Restore" = lambda frame, _types: frame
    types: Mapping[str, Any] = field(default_factory=dict)
    found: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)
    alone: bool = True
    assumes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        frame = self.frame
        size = f"{count_noun(frame.height, 'row')} x {count_noun(frame.width, 'column')}"
        read = f", read as {self.found}" if self.found else ""
        # An enumeration's full type lists its categories, so only the base type is kept.
        types = {name: dtype.base_type().__name__ for name, dtype in frame.schema.items()}
        columns = (f"  {visible(name)}: {dtype}" for name, dtype in types.items())
        return "\n".join([f"Table of {size}{read}", *columns])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand out the rows, so other libraries can take the table."""
        return self.frame.__arrow_c_stream__(requested_schema)

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return self.frame.columns

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.frame.height

    def all_labels(self) -> dict[str, Mapping[str, Any]]:
        """Return the file's labels and measurement levels, as a release carries them."""
        return {"columns": self.column_labels, "values": self.labels, "measures": self.measures}

    def restoring(self, clamped: Collection[str]) -> Callable[[pl.DataFrame], Any]:
        """Return a function that converts a released frame back to the type that was handed in.

        A column leaves in the type that it came in, where its values still fit. That type may
        follow from a single cell, so it is not used where cells are clamped: such a
        column leaves in the type that its policy gave it.
        """
        types = {
            name: (self.frame.schema[name], dtype)
            for name, dtype in self.types.items()
            if name not in clamped
        }
        restore = self.restore
        return lambda frame: restore(frame, types)


Restore = Callable[[pl.DataFrame, Mapping[str, tuple[pl.DataType, Any]]], Any]


def check_names(names: Sequence[Any], where: str) -> None:
    """Refuse names that are the same for a policy."""
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str):
            kind = type(name).__name__
            raise InputError(f"{where}: expected text as the name of column {place}, found {kind}.")
        if not name:
            raise InputError(f"{where}: column {place} has no name; expected one for each column.")
        if name in names[: place - 1]:
            # In a file without a header, a name is a cell, and is not shown.
            first = 1 + names.index(name)
            raise InputError(
                f"{where}: columns {first} and {place} have the same name; expected each name once."
            )

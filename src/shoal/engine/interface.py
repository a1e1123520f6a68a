"""The interface of an engine. An engine moves data and holds no privacy logic.

A `Source` is what was handed in. It adopts the policy's types and becomes `Coerced` rows; these run
a method and become an `Outcome`, which the pipeline asks for what it publishes. The original stays
confidential all the way; `Outcome.evidence` compares it with the release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from shoal.core import (
    Check,
    Checkable,
    Confidential,
    ConstraintChoices,
    Policy,
    PrivacyLoss,
    Schema,
)
from shoal.errors import InputError, count_noun
from shoal.io import clamp
from shoal.io.column_counts import ColumnCounts
from shoal.io.repair import repair_rows
from shoal.io.table import Table
from shoal.methods import Method, Setting, Tools
from shoal.methods.cell_keys import Count
from shoal.methods.discovery import Discovered


class Outcome(Protocol):
    """The result of a method, in the row order of the release form."""

    @property
    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """The privacy losses of the draws that the method reports."""

    @property
    def suppressed(self) -> int:
        """How many rows were left out."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The method's notes on this run."""

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that became constant in the release; only without epsilon."""

    @property
    def distinct(self) -> tuple[str, ...]:
        """Released columns whose values are all different; only without epsilon."""

    @property
    def rows(self) -> int:
        """Rows that are released."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Columns that are released, with the names of their types."""

    @property
    def data(self) -> Any:
        """The released table, of the type that was handed in."""

    @property
    def extras(self) -> Mapping[str, Any]:
        """Tables published beside the release, by name."""

    @property
    def counts(self) -> ColumnCounts | None:
        """Value counts of the released columns, if the release is in memory."""

    def checks(self, guarantees: Sequence[Checkable], policy: Policy) -> tuple[Check, ...]:
        """Recompute guarantees on the release."""

    @property
    def recoding(self) -> "Confidential[Mapping[str, Any]] | None":
        """What recodes another table the same way, if that is possible."""

    @property
    def recoding_public(self) -> bool:
        """Whether the recoding discloses nothing beyond the notes."""

    @property
    def evidence(self) -> "Confidential[Any]":
        """The original together with the release; the caller closes it.

        It says what was `clamped` (cells of each column), `dropped` (rows of persons who had more
        than the policy states) and `repaired` (rows that violated each constraint) before the
        method ran, and its `figures` of some columns, in a release form, compare with the original.
        """


class Coerced(Protocol):
    """Rows with the types of the policy."""

    def public_rows(self, setting: Setting[Any]) -> int | None:
        """Return the number of rows, if it is the same in neighbouring tables."""

    def run(
        self,
        method: Method[Any],
        setting: Setting[Any],
        tools: Tools,
        recoding: Confidential[Mapping[str, Any]] | None = None,
    ) -> Outcome:
        """Run a method, and put its rows in the order of the release form.

        `recoding` is that of an earlier release, if the rows are recoded the same way.
        """


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """How rows are converted to the types of a policy.

    Attributes:
        schema: every column of the table, and no other.
        clamped: columns whose cells are clamped to their public domains, silently; cells of other
            columns that do not fit are refused.
        decimal: the decimal mark of numbers in text.
        key: random bits that choose among the rows of a person with too many.
        pseudonym_key: of the recipient, where identifiers become pseudonyms or dates are shifted.
        constraints: rules that the rows must keep. With noise those that break one are repaired;
            otherwise they are refused unless the policy lets them be repaired.
    """

    schema: Schema
    clamped: Sequence[str] | None
    decimal: str | None
    key: int
    constraints: ConstraintChoices = field(default_factory=ConstraintChoices)
    pseudonym_key: bytes | None = field(default=None, repr=False)

    def repair(
        self, table: Table, frame: pl.DataFrame | None = None
    ) -> tuple[Table, Mapping[str, int]]:
        """Replace each row that violates a constraint by the nearest row that satisfies all.

        `frame` has the rows before clamping: a cell that was missing there violates no constraint.
        """
        names: Sequence[str] = self.schema.released
        filled = {}
        if self.clamped is not None and frame is not None:
            ruled = {name for rule in self.constraints.rules for name in rule.columns}
            filled = {
                name: clamp.find_filled(frame[name], self.schema[name], self.decimal).to_numpy()
                for name in ruled.intersection(self.clamped)
            }
        if self.clamped is not None:
            names = tuple(name for name in names if self.schema[name].keep_missing)
        return repair_rows(table, self.constraints.rules, missing=names, filled=filled)

    def refuse(self, broken: Mapping[str, int]) -> None:
        """Refuse an original whose rows violate constraints, unless they may be repaired."""
        if self.clamped is None and not self.constraints.repair and any(broken.values()):
            text = "; ".join(
                f"{count_noun(count, 'row breaks', 'rows break')} '{text}'"
                for text, count in broken.items()
                if count
            )
            raise InputError(
                f"{text}. Correct the table or the rules; or let Shoal bring each such row to the "
                "nearest one that keeps them, with repair = true under [constraints]. Nothing was "
                "written."
            )


class Source(Protocol):
    """A table as it was handed in."""

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of its columns and values."""

    @property
    def found(self) -> str:
        """How the file was written, in words, if that was detected."""

    @property
    def assumes(self) -> tuple[str, ...]:
        """Assumptions about its file under which each record is read by itself."""

    def adopt(self, how: Adoption) -> Coerced:
        """Convert the rows to the types of the policy."""

    def ask(self, how: Adoption, search: Callable[[Count], Discovered]) -> Discovered:
        """Let a search count cells as they came, of so many rows of a person as the policy says."""

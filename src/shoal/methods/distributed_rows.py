"""Operations on records in blocks that a method may use.

A method that runs beyond one machine says how in its own file: `Method.distributed` names
a function of `DistributedRows`, and an engine serves `DistributedRows`. The verbs are few:

    total      whole numbers that are computed on each block and added up
    walk       the same again and again, on blocks that remember what happened to them
    bring      some columns of all records, to one machine, in canonical order
    runs       groups that are runs of an order of the records
    singly     every record a group of its own
    grouped    groups that were formed from what was brought
    sums       whole numbers that are added up by group
    fold       anything that is computed on each block and combined two by two
    within     cells of the records' space, brought together and finished one by one

Questions see the rows as they came, whatever was changed before. Functions that are handed in run
where the blocks are: they are pure, and they may run twice on a block. So no noise is drawn in
them: sums come to the caller, noise is drawn there once, and `DistributedGroups.answer` sends the
answers back as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from numpy.typing import NDArray

from shoal.core import Partition, PrivacyLoss, SpatialDecomposition
from shoal.core._arrays import Array, Floats, Ints
from shoal.io.table import Table
from shoal.mechanism.records import HeldWalk, Walk

Question = Callable[[Table], Ints]
"""From a block to whole numbers, of one shape for all blocks, that add up."""
Cut = Callable[[Floats, int], Ints]
"""From the sorted values of a column to the first rank of each group."""


@dataclass(frozen=True)
class RunOrder:
    """An order of the records that is cut into groups.

    Attributes:
        keys: what to sort by, the leading key first: numbers without missing ones, each record
            by itself.
        columns: what the groups will be asked about, or change.
        cut: where groups begin, from the sorted values of the first key, which are brought to
            one machine; between k and 2k - 1 records each.
    """

    keys: Callable[[Table], Sequence[Array]]
    columns: tuple[str, ...]
    cut: Cut | None = None


class DistributedGroups(Protocol):
    """Records in groups, numbered from 0 in their order."""

    @property
    def sizes(self) -> Ints:
        """Records of each group."""

    def recode(
        self, columns: Sequence[str], change: Callable[[Table, Partition], Table]
    ) -> "ReplacedColumns":
        """Change columns on blocks that hold complete groups, records in canonical order."""

    def answer(
        self, columns: Sequence[str], answers: Array, put: Callable[[Table, Array], Table]
    ) -> "ReplacedColumns":
        """Change columns by the answers for their groups: `put` gets one answer per record."""


class CountableRows(Protocol):
    """Records that can only be summed over: enough for methods that count boxes or cells."""

    @property
    def template(self) -> Table:
        """A table with the columns and types, with a row whose cells must not be read."""

    def __len__(self) -> int: ...

    def total(self, question: Question) -> Ints:
        """Compute an answer for each block, and add them up."""

    def walk(self, start: Callable[[Table], Any]) -> Walk:
        """Give each block a state that later steps may change."""


class DistributedRows(CountableRows, Protocol):
    """Records in blocks. See the module for the operations."""

    def bring(self, columns: Sequence[str]) -> Table:
        """Collect some columns of all records at the driver, in canonical order."""

    def runs(self, orders: Sequence[RunOrder], k: int) -> Sequence[DistributedGroups]:
        """Sort the records by each order, ties in canonical order, and cut it into groups.

        With g = floor(n / k), the record of rank i is in group min(floor(i / k), g - 1), unless
        the order has a cut of its own.
        """

    def singly(self) -> DistributedGroups:
        """Make every record a group, numbered in canonical order."""

    def group(self, partition: Partition) -> DistributedGroups:
        """Wrap groups that were formed from collected columns."""

    def sums(
        self, asked: Sequence[tuple[DistributedGroups, Callable[[Table], Ints]]]
    ) -> Sequence[Ints]:
        """Sum whole numbers of the records by group, for several groups or columns at once.

        Each is asked with its groups and a measure, one row per record; the answer has one row per
        group.
        """

    @property
    def block_rows(self) -> int:
        """Records that a machine should hold at once."""

    def fold(self, ask: Callable[[Table, Ints], Any], add: Callable[[Any, Any], Any]) -> Any:
        """Compute an answer for each block, and combine the answers pairwise, in any order.

        `ask` gets a block, and the places of its records in the canonical order. `add` must not
        depend on order or grouping: sums of whole numbers, unions.
        """

    def within(
        self,
        columns: Sequence[str],
        route: Callable[[Table, Ints], Ints],
        change: Callable[[int, Table], Table],
        *,
        needs: Sequence[str] = (),
    ) -> "ReplacedColumns":
        """Collect the records of each cell, in canonical order, and change columns there.

        `route` gives the cells of a block's records, given their places too; `change` gets the
        number of a cell and all its records. `needs` are the columns that it reads, if more than it
        changes.
        """


@dataclass(frozen=True, eq=False)
class ReplacedColumns:
    """Replaced columns in the form that the engine keeps them."""

    columns: tuple[str, ...]
    held: Any


@dataclass(frozen=True, eq=False)
class Distributed:
    """The result of a run on blocks: as `Masked`, with changes in place of rows.

    Attributes:
        changes: of columns of the records that came in.
        data: synthetic rows, or boxes, if the release is not the changed records.
        canonical: the groups whose order is public, if the method has such.
    """

    changes: tuple[ReplacedColumns, ...] = ()
    data: Table | SpatialDecomposition | None = None
    privacy_losses: tuple[PrivacyLoss, ...] = ()
    canonical: DistributedGroups | None = None
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)


class HeldTable:
    """A table in memory as records that can only be summed over: a single block."""

    def __init__(self, table: Table) -> None:
        self.template = table

    def __len__(self) -> int:
        return len(self.template)

    def total(self, question: Question) -> Ints:
        """Compute the answer of the single block."""
        return question(self.template)

    def walk(self, start: Callable[[Table], Any]) -> HeldWalk:
        """Give the single block a state."""
        return HeldWalk(start(self.template))


class Coded:
    """Encoded columns for mechanisms, as `shoal.mechanism.records.Columns`."""

    def __init__(self, rows: CountableRows, encode: Callable[[Table], Sequence[Ints]]) -> None:
        self._rows, self._encode = rows, encode

    def __len__(self) -> int:
        return len(self._rows)

    def total(self, question: Callable[[Sequence[Ints]], Ints]) -> Ints:
        """Sum the answers of the blocks."""
        return self._rows.total(partial(_then, encode=self._encode, after=question))

    def walk(self, start: Callable[[Sequence[Ints]], Any]) -> Walk:
        """Give each block a state."""
        return self._rows.walk(partial(_then, encode=self._encode, after=start))


def _then(
    table: Table,
    encode: Callable[[Table], Sequence[Ints]],
    after: Callable[[Sequence[Ints]], Any],
) -> Any:
    return after(encode(table))

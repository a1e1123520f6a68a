"""Rows in blocks on Spark: the operations that methods need, on top of `blocks`.

The base: every record once, typed, in blocks by canonical order; a record has its place in that
order and its place in the file. Groups that are runs of another order get blocks of their own, with
only the columns that they are about. If a group's records are in two blocks, the records are
shipped, not their sums, so a mean is summed in the same order as on one machine, and equals it in
every bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Partition, Schema
from shoal.core._arrays import Array, Ints
from shoal.engine.spark.blocks import (
    RID,
    SEQ,
    STRIDE,
    Blocks,
    BlockStore,
    Kept,
    Numbered,
    SortOrder,
    Step,
    cut_by,
    exchange,
    pack,
    unpack,
)
from shoal.errors import InternalError
from shoal.io.table import Table
from shoal.methods.distributed_rows import (
    Cut,
    DistributedGroups,
    Question,
    ReplacedColumns,
    RunOrder,
)

GROUP = "\0group"


@dataclass(frozen=True, eq=False)
class Layout:
    """What all blocks of a table share.

    Attributes:
        schema: of the columns, identifiers left out.
        dtypes: in which they are released.
        types: of the typed frame.
    """

    schema: Schema
    dtypes: Mapping[str, pl.DataType]
    types: Mapping[str, pl.DataType]

    def table(self, frame: pl.DataFrame) -> Table:
        """Make a table of the columns of a block, without its bookkeeping columns."""
        names = [name for name in self.types if name in frame.columns]
        kept = self.schema
        if len(names) < len(self.types):
            kept = Schema(tuple(column for column in kept.columns if column.name in names))
        return Table(frame.select(names), kept, {name: self.dtypes[name] for name in names})


@dataclass(eq=False)
class SparkRows:
    """Records in blocks by canonical order.

    Attributes:
        base: the blocks, with the place of each record in the canonical order.
        starts: the first place in the canonical order of each block, and the number of records.
        held: what the base is made of, kept until `close`.
        kept: what else is kept on the way.
    """

    store: BlockStore
    base: Blocks
    layout: Layout
    starts: Ints
    held: Kept
    kept: list[Kept] = field(default_factory=list)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def template(self) -> Table:
        """A table with the columns and types, and one row of missing cells."""
        columns = {name: pl.Series(name, [None], dtype=d) for name, d in self.layout.types.items()}
        return self.layout.table(pl.DataFrame(columns))

    def block_count(self, least: int = 1) -> int:
        """Return the number of blocks for an order, none with fewer records than stated."""
        return self.store.block_count(len(self), least)

    @property
    def block_rows(self) -> int:
        """Records that a machine should hold at once."""
        return self.store.block_rows

    def fold(self, ask: Callable[[Table, Ints], Any], add: Callable[[Any, Any], Any]) -> Any:
        """Compute an answer for each block, and combine the answers pairwise, in any order."""
        layout = self.layout

        def question(_number: int, frame: pl.DataFrame) -> Any:
            return ask(layout.table(frame), frame[RID].to_numpy())

        return self.base.fold(question, add, tasks=self.store.tasks)

    def within(
        self,
        columns: Sequence[str],
        route: Callable[[Table, Ints], Ints],
        change: Callable[[int, Table], Table],
        *,
        needs: Sequence[str] = (),
    ) -> ReplacedColumns:
        """Collect the records of each cell, in canonical order, and change columns there."""
        layout, home = self.layout, _homing(self.starts)
        names = list(needs or columns)

        def part(_number: int, frame: pl.DataFrame) -> Numbered:
            cell = route(layout.table(frame), frame[RID].to_numpy())
            order = np.argsort(cell, kind="stable")
            return cut_by(frame.select(RID, *names)[order], cell[order])

        def finish(cell: int, frames: Sequence[pl.DataFrame]) -> Numbered:
            joined = pl.concat(frames).sort(RID)
            done = change(cell, layout.table(joined))
            return [(cell, done.frame.select(columns).with_columns(joined[RID]))]

        held = self.base.map(part).gather(len(self.starts) - 1, finish)
        return ReplacedColumns(tuple(columns), (held, lambda _cell, frame: home(frame)))

    def total(self, question: Question) -> Ints:
        """Compute whole numbers on each block, and add them up."""
        sums: Ints = self.fold(lambda table, _rids: np.asarray(question(table)), np.add)
        return sums

    def walk(self, start: Callable[[Table], Any]) -> "SparkWalk":
        """Give each block a state that later steps may change."""
        return SparkWalk(self, start)

    def bring(self, columns: Sequence[str]) -> Table:
        """Collect some columns of all records at the driver, in canonical order."""
        names = list(columns)

        def narrow(number: int, frame: pl.DataFrame) -> Numbered:
            return [(number, frame.select(names))]

        parts = dict(self.base.map(narrow).fetch(len(self) * len(names)))
        return self.layout.table(pl.concat([parts[number] for number in sorted(parts)]))

    def runs(self, orders: Sequence[RunOrder], k: int) -> "tuple[RunGroups, ...]":
        """Sort the records by several orders, ties in canonical order, and cut each into groups."""
        count = self.block_count(4 * k)
        counts = [count] * len(orders)
        shipping = [_shipping(self.layout, order, k) for order in orders]
        made = exchange(self.base, shipping, counts, rows=len(self)).keep()
        self.kept.append(made)
        return tuple(RunGroups(self, made, which, k, o.cut) for which, o in enumerate(orders))

    def sums(
        self, asked: Sequence[tuple[DistributedGroups, Callable[[Table], Ints]]]
    ) -> list[Ints]:
        """Sum whole numbers by group: in one pass, unless there are many sums."""
        passes: list[list[tuple[_Groups, Callable[[Table], Ints]]]] = []
        room = 0
        for groups, measure in asked:
            if not isinstance(groups, _Groups):
                raise InternalError(f"These groups are not on Spark: {type(groups).__name__}.")
            if not passes or passes[-1][0][0].blocks is not groups.blocks or room < 0:
                passes.append([])
                room = _SUMS
            passes[-1].append((groups, measure))
            room -= len(groups.sizes)
        return [sums for some in passes for sums in _group_sums(self.layout, some)]

    def singly(self) -> "BaseGroups":
        """Make every record a group, numbered in canonical order."""
        return BaseGroups(self, np.ones(len(self), dtype=np.int64), None)

    def group(self, partition: Partition) -> "BaseGroups":
        """Wrap groups that were formed from collected columns."""
        return BaseGroups(self, partition.sizes, partition.labels)

    def change_columns(self, changes: Sequence[ReplacedColumns]) -> Blocks:
        """Return the base with changed columns, in canonical order again."""
        if not changes:
            return self.base
        columns = [name for change in changes for name in change.columns]
        types = [name for name in self.layout.types if name not in columns]
        names = [*self.layout.types, *(name for name in columns if name not in self.layout.types)]

        def narrow(number: int, frame: pl.DataFrame) -> Numbered:
            return [(number, frame.select(SEQ, RID, *types))]

        def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
            parts: dict[tuple[str, ...], list[pl.DataFrame]] = {}
            for frame in frames:
                parts.setdefault(tuple(frame.columns), []).append(frame)
            merged = [pl.concat(some).sort(RID) for some in parts.values()]
            first = next(frame for frame in merged if SEQ in frame.columns)
            for frame in merged:
                if frame.height != first.height or not frame[RID].equals(first[RID]):
                    raise InternalError(
                        "The changed records do not match the records that were read."
                    )
            rest = [frame.drop(RID) for frame in merged if frame is not first]
            both = pl.concat([first, *rest], how="horizontal")
            return [(number, both.select(*names, SEQ, RID))]

        sources: dict[int, tuple[Blocks, list[Step]]] = {id(self.base): (self.base, [narrow])}
        for change in changes:
            blocks, step = change.held
            sources.setdefault(id(blocks), (blocks, []))[1].append(step)
        first, *rest = (blocks.map(*steps) for blocks, steps in sources.values())
        return first.union(*rest).gather(len(self.starts) - 1, merge)

    def forget(self) -> None:
        """Free intermediate blocks, but not the records themselves."""
        for blocks in self.kept:
            blocks.drop()
        self.kept.clear()

    def close(self) -> None:
        """Free the records too. What was derived from them remains, and can be computed again."""
        self.forget()
        self.held.drop()


class _Groups(ABC):
    """What all kinds of groups share.

    Attributes:
        rows: the records.
        blocks: the same, as the groups take them.
        sizes: records of each group.
    """

    rows: SparkRows
    blocks: Blocks
    sizes: Ints

    @abstractmethod
    def labeller(self) -> Callable[[int, pl.DataFrame], Ints | None]:
        """Make a function that finds each record's group; None if a block has another order."""

    def answer(
        self, columns: Sequence[str], answers: Array, put: Callable[[Table, Array], Table]
    ) -> ReplacedColumns:
        """Change columns by the answers for their groups."""
        layout, labels, home = self.rows.layout, self.labeller(), _homing(self.rows.starts)
        sent = self.rows.store.send(np.asarray(answers))

        def change(number: int, frame: pl.DataFrame) -> Numbered:
            groups = labels(number, frame)
            if groups is None:
                return []
            table = put(layout.table(frame.select(RID, *columns)), sent.value[groups])
            return home(table.frame.select(columns).with_columns(frame[RID]).sort(RID))

        return ReplacedColumns(tuple(columns), (self.blocks, change))


@dataclass(eq=False)
class BaseGroups(_Groups):
    """Groups on blocks in canonical order: single records, or labels sent to every task."""

    rows: SparkRows
    sizes: Ints
    labels: Ints | None

    def __post_init__(self) -> None:
        self.blocks = self.rows.base

    @cached_property
    def _sent(self) -> Any:
        return self.rows.store.send(np.asarray(self.labels))

    def labeller(self) -> Callable[[int, pl.DataFrame], Ints | None]:
        """Make a function that looks up groups by canonical position."""
        if self.labels is None:
            return lambda _number, frame: frame[RID].to_numpy()
        sent = self._sent
        return lambda _number, frame: sent.value[frame[RID].to_numpy()]

    def recode(
        self, columns: Sequence[str], change: Callable[[Table, Partition], Table]
    ) -> ReplacedColumns:
        """Not supported: only records of runs are collected in one block."""
        raise InternalError(f"Groups by label cannot be recoded in blocks: {columns}, {change}.")


@dataclass(eq=False)
class RunGroups(_Groups):
    """Groups that are runs of an order; blocks hold the records in that order.

    Attributes:
        blocks: sorted records, of this order and of others that were made with it.
        which: of the orders.
        k: see `SparkRows.runs`.
    """

    rows: SparkRows
    blocks: Kept
    which: int
    k: int
    cut: Cut | None

    @cached_property
    def held(self) -> tuple[list[int], Ints]:
        """Numbers of the blocks, and the rank of the first record of each, with the end."""
        sizes = {n: rows for n, rows in self.blocks.sizes.items() if n // STRIDE == self.which}
        ranks = np.concatenate([[0], np.cumsum(list(sizes.values()))])
        if ranks[-1] != len(self.rows):
            raise InternalError("Records were lost while Spark sorted them anew.")
        return list(sizes), ranks.astype(np.int64)

    @cached_property
    def begins(self) -> Ints:
        """The first rank of each group."""
        n = len(self.rows)
        if self.cut is None:
            return np.arange(n // self.k, dtype=np.int64) * self.k

        which = self.which

        def values(number: int, frame: pl.DataFrame) -> Numbered:
            return [(number, frame.select("\0k0"))] if number // STRIDE == which else []

        held = np.empty(n)
        numbers, ranks = self.held
        place = dict(zip(numbers, ranks.tolist(), strict=False))
        for number, frame in self.blocks.map(values).fetch(n):
            held[place[number] : place[number] + frame.height] = frame.to_series().to_numpy()
        return self.cut(held, self.k)

    @cached_property
    def sizes(self) -> Ints:  # type: ignore[override]
        """Records of each group."""
        return np.diff(np.append(self.begins, len(self.rows)))

    def _group(self) -> Callable[[Ints], Ints]:
        """Make a function from ranks to groups."""
        k, last = self.k, len(self.begins) - 1
        if self.cut is None:
            return lambda ranks: np.minimum(ranks // k, last)
        sent = self.rows.store.send(self.begins)
        return lambda ranks: np.searchsorted(sent.value, ranks, side="right") - 1

    def labeller(self) -> Callable[[int, pl.DataFrame], Ints | None]:
        """Make a function that returns groups by the ranks of the records."""
        group, first = self._group(), self._first()
        return lambda number, frame: (
            group(first[number] + np.arange(frame.height)) if number in first else None
        )

    def recode(
        self, columns: Sequence[str], change: Callable[[Table, Partition], Table]
    ) -> ReplacedColumns:
        """Change columns on blocks that hold complete groups, records in canonical order."""
        layout, group, first = self.rows.layout, self._group(), self._first()
        shipped, leading = self._borders()
        sent = self.rows.store.send(shipped)
        home = _homing(self.rows.starts)

        def recode(number: int, frame: pl.DataFrame) -> Numbered:
            if number not in first:
                return []
            skip = leading.get(number, 0)
            remainder = frame[skip:]
            if not remainder.height:
                return []
            joined = pl.concat([remainder, *(unpack(part) for part in sent.value.get(number, ()))])
            labels = group(first[number] + skip + np.arange(joined.height))
            joined = joined.with_columns(pl.Series(GROUP, labels - labels[0])).sort(RID)
            table = layout.table(joined.select(RID, *columns))
            done = change(table, Partition(joined[GROUP].to_numpy()))
            return home(done.frame.select(columns).with_columns(joined[RID]))

        return ReplacedColumns(tuple(columns), (self.blocks, recode))

    def label(self) -> ReplacedColumns:
        """Add the group of each record as a column."""
        labels, home = self.labeller(), _homing(self.rows.starts)

        def label(number: int, frame: pl.DataFrame) -> Numbered:
            groups = labels(number, frame)
            if groups is None:
                return []
            return home(frame.select(RID).with_columns(pl.Series(GROUP, groups)).sort(RID))

        return ReplacedColumns((GROUP,), (self.blocks, label))

    def _first(self) -> dict[int, int]:
        numbers, ranks = self.held
        return dict(zip(numbers, ranks[:-1].tolist(), strict=True))

    def _borders(self) -> tuple[dict[int, list[bytes]], dict[int, int]]:
        """Collect records of groups that began in an earlier block, and count them."""
        numbers, ranks = self.held
        ends = np.append(self.begins, len(self.rows))
        leading: dict[int, int] = {}
        owner: dict[int, int] = {}
        for place, number in enumerate(numbers):
            start, end = int(ranks[place]), int(ranks[place + 1])
            which = int(np.searchsorted(self.begins, start, side="right")) - 1
            if ends[which] == start:
                continue
            leading[number] = min(int(ends[which + 1]), end) - start
            block = int(np.searchsorted(ranks, ends[which], side="right")) - 1
            owner[number] = numbers[block]
        if not leading:
            return {}, {}
        leaders = {-1 - note: frame[: leading[-1 - note]] for note, frame in self.blocks.notes
                 if -1 - note in leading}  # fmt: skip
        shipped: dict[int, list[bytes]] = {}
        for number in sorted(leaders):
            shipped.setdefault(owner[number], []).append(pack(leaders[number]))
        return shipped, leading


def _shipping(layout: Layout, order: RunOrder, k: int) -> SortOrder:
    """Define how the records of an order are shipped and sorted, and note each block's first."""
    columns, keys = list(order.columns), order.keys

    def select(frame: pl.DataFrame) -> pl.DataFrame:
        words = keys(layout.table(frame))
        series = [pl.Series(f"\0k{place}", word) for place, word in enumerate(words)]
        return frame.select(RID, *columns).with_columns(series)

    def by(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(*(name for name in frame.columns if name.startswith("\0k")), RID)

    def finish(number: int, frame: pl.DataFrame) -> Numbered:
        return [(number, frame), (-1 - number, frame[: 2 * k - 2])]

    return SortOrder(select, by, finish)


class SparkWalk:
    """Blocks with a state, recomputed for each question by repeating all steps.

    No state is kept on a worker, where it could be lost.
    """

    def __init__(self, rows: SparkRows, start: Callable[[Table], Any]) -> None:
        self._rows, self._start = rows, start
        self._moves: tuple[Callable[[Any], Ints], ...] = ()

    def step(self, move: Callable[[Any], Ints]) -> Ints:
        """Change the state of each block, and add up the answers."""
        answer = self.ask(move)
        self._moves = (*self._moves, move)
        return answer

    def ask(self, question: Callable[[Any], Ints]) -> Ints:
        """Sum the answers of the blocks without changing their state."""
        moves, start = self._moves, self._start

        def replay(table: Table) -> Ints:
            state = start(table)
            for move in moves:
                move(state)
            return question(state)

        return self._rows.total(replay)


def _homing(starts: Ints) -> Callable[[pl.DataFrame], Numbered]:
    def home(frame: pl.DataFrame) -> Numbered:
        return cut_by(frame, np.searchsorted(starts, frame[RID].to_numpy(), side="right") - 1)

    return home


def _by_group(labels: Ints, measured: Ints) -> pl.DataFrame:
    """Sum a block's measures by group, for the groups in it."""
    wide = measured if measured.ndim > 1 else measured[:, None]
    groups, place = np.unique(labels, return_inverse=True)
    sums = np.zeros((groups.size, wide.shape[1]), dtype=np.int64)
    np.add.at(sums, place.ravel(), wide)
    return pl.DataFrame({GROUP: groups} | {str(j): c for j, c in enumerate(sums.T)})


_SUMS = 4_000_000
"""Groups above which the next column is added up in a pass of its own: the driver holds less."""


def _group_sums(
    layout: Layout, asked: "Sequence[tuple[_Groups, Callable[[Table], Ints]]]"
) -> list[Ints]:
    """Make a step that sums by group for several requests on the same blocks."""
    labels = [groups.labeller() for groups, _ in asked]
    measures = [measure for _, measure in asked]

    def ask(number: int, frame: pl.DataFrame) -> Numbered:
        table = layout.table(frame)
        for place, (label, measure) in enumerate(zip(labels, measures, strict=True)):
            if (groups := label(number, frame)) is not None:
                yield place, _by_group(groups, measure(table))

    counts = [len(groups.sizes) for groups, _ in asked]
    totals: dict[int, Ints] = {}
    for place, frame in asked[0][0].blocks.map(ask).fetch(sum(counts)):
        part = frame.drop(GROUP).to_numpy()
        if place not in totals:
            totals[place] = np.zeros((counts[place], part.shape[1]), dtype=np.int64)
        totals[place][frame[GROUP].to_numpy()] += part
    if len(totals) < len(asked):
        raise InternalError(
            "Sums were requested of a table on Spark that has no blocks of records."
        )
    return [totals[place] for place in range(len(asked))]

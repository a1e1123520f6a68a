"""Mondrian on rows in blocks: the upper cuts level by level, the rest node by node.

A node with more records than a machine should hold at once is cut from counts alone. A pass over
all blocks counts the records of each such node on a grid of values from a sample, column by column.
That shows which column is cut and between which two places of the grid its median lies; another
pass counts the values in between, so the median is exact; if l or t is required, a third counts
confidential values on both sides. So a level takes two or three passes. A node that is small enough
is finished by the same function that cuts a whole table, with the ranges and the counts of the
whole table.

Strict cuts are between values, and are therefore those of one machine: the released rows are the
same. With `relaxed`, equal values are separated only in nodes that are small enough, which gives
other groups than on one machine; what is promised holds all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.core import LDiversity, Partition, TCloseness
from shoal.core._arrays import Floats, Ints
from shoal.errors import ClaimViolationError, InputError
from shoal.io.table import Table
from shoal.methods.distributed import blockwise
from shoal.methods.distributed.cuts import Cut, around, border_cuts, merge_equal, middle_place
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.grouping.partition_encoding import (
    Encoding,
    Values,
    encoding,
    levels_of,
    representatives,
    way,
)
from shoal.methods.method import Tools
from shoal.partition import Requirement, mondrian_tree, unmet
from shoal.partition.kernels.coarse_tree import descend, tally_grid
from shoal.partition.kernels.requirement import Rules, meets
from shoal.partition.requirement import compile_requirements

NODE = 2
"""Nodes of up to this many blocks are finished on one machine."""

GRID = 1 << 19
"""Places of all grids of a level together."""

MOST_VALUES = 1_000_000
"""Confidential values, or combinations, that are counted."""

APPROXIMATE = (
    "The first cuts were chosen from counts of values. Without relaxed cuts, the groups are the "
    "same as on one machine; with relaxed cuts, equal values are separated only in small nodes."
)


Release = Callable[[Table, Partition], Table]
"""From records and their groups to what is released of them."""


class Asked(NamedTuple):
    """The parameters of a run.

    Attributes:
        columns: the columns that are cut.
        k: least number of records in a leaf.
        required: guarantees of leaves besides k.
        halt: what a node must satisfy to be cut further.
        relaxed: whether equal values may be separated.
        max_height: largest number of cuts above a leaf.
        covers: what is released of a leaf depends on which cells it has, not on how many.
    """

    columns: tuple[str, ...]
    k: int
    required: tuple[LDiversity | TCloseness, ...] = ()
    halt: TCloseness | None = None
    relaxed: bool = False
    max_height: int | None = None
    covers: bool = False


class CountedGuarantee(NamedTuple):
    """A guarantee with the distinct values of its columns, and their counts in the whole table."""

    guarantee: LDiversity | TCloseness
    values: Values
    totals: Ints
    edges: Ints | None

    def codes(self, table: Table) -> Ints:
        """Encode the values of some rows."""
        return self.values.codes([table.raw(name) for name in self.guarantee.columns])

    def requirement(self, codes: Ints) -> Requirement:
        """Make the requirement for a group of some of the rows."""
        return Requirement(self.guarantee, codes, self.values.width, self.edges, totals=self.totals)


@dataclass
class Upper:
    """The cuts so far; an end is a node that has not been cut.

    Attributes:
        ways: for each cut, its low and high child: another cut, or -1 - e for end e.
        place: for each end, the cut above it and the side; None for the root.
        ends: least and largest value of each column in an end that was examined.
    """

    axis: list[int] = field(default_factory=list)
    cut: list[float] = field(default_factory=list)
    ways: list[list[int]] = field(default_factory=list)
    place: list[tuple[int, int] | None] = field(default_factory=lambda: [None])
    sizes: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=lambda: [0])
    closed: set[int] = field(default_factory=set)
    ends: dict[int, Floats] = field(default_factory=dict)

    def route(self) -> Callable[[Floats], Ints]:
        """Make a function that finds the end of each record."""
        if not self.axis:
            return lambda X: np.zeros(len(X), np.int64)
        axis, cut = np.array(self.axis, np.int64), np.array(self.cut)
        low, high = np.array(self.ways, np.int64).T.copy()

        def route(X: Floats) -> Ints:
            ends = np.empty(len(X), np.int64)
            descend(X, axis, cut, low, high, ends)
            return ends

        return route

    def divide(self, end: int, axis: int, cut: float, fewer: int) -> None:
        """Cut an end in two; it remains as the low side."""
        node, other = len(self.axis), len(self.sizes)
        self.axis.append(axis)
        self.cut.append(cut)
        self.ways.append([-1 - end, -1 - other])
        above = self.place[end]
        if above is not None:
            self.ways[above[0]][above[1]] = node
        self.place[end] = (node, 0)
        self.place.append((node, 1))
        self.sizes.append(self.sizes[end] - fewer)
        self.sizes[end] = fewer
        self.depths[end] += 1
        self.depths.append(self.depths[end])
        self.ends.pop(end, None)


def cut_blocks(rows: DistributedRows, asked: Asked, release: Release, tools: Tools) -> Distributed:
    """Cut from the root down, and finish each small node on its own."""
    tools.progress("counting values", 0, 1)
    columns = asked.columns
    halts = () if asked.halt is None else (asked.halt,)
    counted = [_count_guarantee(rows, guarantee) for guarantee in (*asked.required, *halts)]
    most = max(NODE * rows.block_rows, 2 * asked.k)
    some = counted[: len(asked.required)]
    missed = unmet([rule.requirement(_one(rule.totals)) for rule in some])
    if missed is not None:
        raise ClaimViolationError(
            f"No grouping meets {missed.guarantee}, because even the whole table as one group "
            "does not. Nothing was written."
        )
    work = _Work(rows, asked, _rulers(rows, columns), counted)
    upper = work.cut(most, tools)
    tools.progress("cutting small nodes", 0, 1)
    needs = dict.fromkeys((*columns, *(n for rule in counted for n in rule.guarantee.columns)))
    route, finish = work.finishing(upper, most, release)
    return Distributed(changes=(rows.within(columns, route, finish, needs=tuple(needs)),))


def _one(totals: Ints) -> Ints:
    """Return the value of one record, as a requirement takes it: the most frequent one."""
    return np.array([int(np.argmax(totals))])


def _rulers(rows: DistributedRows, columns: Sequence[str]) -> list[Encoding]:
    def facts(table: Table, _places: Ints) -> Floats:
        raws = [table.raw(name) for name in columns]
        return np.array([[np.nanmax(x, initial=0.0), np.isnan(x).any()] for x in raws], float)

    maxima = rows.fold(facts, np.maximum)
    return [
        encoding(rows.template, name, largest=float(most), gone=bool(gone))
        for name, (most, gone) in zip(columns, maxima, strict=True)
    ]


def _count_guarantee(rows: DistributedRows, guarantee: LDiversity | TCloseness) -> CountedGuarantee:
    """Find the distinct values in the whole table, with their counts."""
    names = guarantee.columns

    def distinct(table: Table, _places: Ints) -> tuple[Floats, Ints]:
        raws = np.column_stack([table.raw(name) for name in names])
        return _distinct(raws, np.ones(len(raws), np.int64))

    def join(one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        both = [np.concatenate(pair) for pair in zip(one, other, strict=True)]
        return _distinct(both[0], both[1])

    held, counts = rows.fold(distinct, join)
    raws = list(held.T)
    values = Values.of(raws, levels_of(rows.template, names))
    totals = np.zeros(values.width, np.int64)
    np.add.at(totals, values.codes(raws), counts)
    return CountedGuarantee(guarantee, values, totals, way(rows.template, guarantee, values.width))


def _distinct(raws: Floats, counts: Ints) -> tuple[Floats, Ints]:
    """Merge equal rows, two missing cells being equal, and add up their counts."""
    rows, where = np.unique(np.where(np.isnan(raws), np.inf, raws), axis=0, return_inverse=True)
    if len(rows) > MOST_VALUES:
        raise InputError(
            f"Confidential columns have more than {MOST_VALUES:,} values or combinations, too "
            "many to count. Round the values, or drop a requirement."
        )
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, where.ravel(), counts)
    return np.where(np.isinf(rows), np.nan, rows), sums


class _Seen(NamedTuple):
    """The counts of a pass over the examined nodes, numbered by slots."""

    edges: Floats
    first: Ints
    counts: Ints
    ends: Floats  # two rows per slot: least and largest value of each column
    values: Ints  # one row per slot: confidential values of all rules

    def of(self, slot: int, column: int) -> tuple[Ints, Floats]:
        """Return the counts on a column's grid in a node, and the edges of the grid."""
        begin, end = self.first[slot, column], self.first[slot, column + 1]
        base = 2 * begin + slot * (self.first.shape[1] - 1) + column
        return self.counts[base : base + 2 * (end - begin) + 1], self.edges[begin:end]


class _Work:
    """The state that the passes of a run share."""

    def __init__(
        self,
        rows: DistributedRows,
        asked: Asked,
        rulers: Sequence[Encoding],
        counted: Sequence[CountedGuarantee],
    ) -> None:
        self.rows, self.columns, self.asked = rows, asked.columns, asked
        self.rulers, self.counted = rulers, counted
        requirements = [rule.requirement(_one(rule.totals)) for rule in counted]
        self.rules: Rules = compile_requirements(requirements, 1)[0]
        self.halting = -1 if asked.halt is None else len(counted) - 1
        self.whole: Floats | None = None
        self.sample = np.empty((0, len(asked.columns)))

    def cut(self, most: int, tools: Tools) -> Upper:
        """Cut level by level until every end is small enough, or closed."""
        upper = Upper(sizes=[len(self.rows)])
        level = 0
        while active := self._active(upper, most):
            if not level:
                count = min(len(self.rows), GRID // (2 * len(self.columns)))
                raws = blockwise.sample_rows(self.rows, self.columns, count)
                self.sample = self._places(list(raws.T))
            tools.progress("cutting at medians", level, level + 1)
            self._level(upper, active)
            level += 1
        return upper

    def _active(self, upper: Upper, most: int) -> list[int]:
        height = self.asked.max_height
        return [
            end
            for end, size in enumerate(upper.sizes)
            if size > most
            and end not in upper.closed
            and (height is None or upper.depths[end] < height)
        ]

    def _places(self, raws: Sequence[Floats]) -> Floats:
        placed = [ruler.places(raw) for ruler, raw in zip(self.rulers, raws, strict=True)]
        return np.ascontiguousarray(np.column_stack(placed))

    def _of_blocks(self, upper: Upper, active: Sequence[int]) -> Callable[[Table], Any]:
        """Make a function that finds the examined node of each record in a block."""
        route = upper.route()
        slots = np.full(len(upper.sizes), -1, np.int64)
        slots[active] = np.arange(len(active))
        rulers, columns = self.rulers, self.columns

        def look(table: Table) -> tuple[Floats, Ints]:
            placed = [o.places(table.raw(n)) for o, n in zip(rulers, columns, strict=True)]
            X = np.ascontiguousarray(np.column_stack(placed))
            return X, slots[route(X)]

        return look

    def _level(self, upper: Upper, active: list[int]) -> None:
        """Cut each of the given ends once, or close it."""
        look = self._of_blocks(upper, active)
        edges, first = self._grids(upper, active)
        seen = self._tally(look, edges, first, len(active))
        if self.whole is None:
            self.whole = seen.ends[:2]
        queue = self._queue(upper, active, seen)
        while queue:
            for slot in [slot for slot in queue if not queue[slot]]:
                upper.closed.add(active[slot])
                del queue[slot]
            axes = {slot: waiting.pop(0) for slot, waiting in queue.items()}
            sizes = {slot: upper.sizes[active[slot]] for slot in axes}
            cuts = self._cuts(look, seen, axes, sizes)
            for slot, cut in self._find_allowed(look, axes, cuts, sizes, seen.values).items():
                upper.divide(active[slot], axes[slot], cut.value, cut.fewer)
                del queue[slot]

    def _queue(self, upper: Upper, active: list[int], seen: "_Seen") -> dict[int, list[int]]:
        """Return the columns of each node, widest first; empty if it is not cut."""
        ends = seen.ends[:2] if self.whole is None else self.whole
        extent = np.maximum(ends[1] / 2 - ends[0] / 2, 5e-324)
        queue: dict[int, list[int]] = {}
        for slot, end in enumerate(active):
            low, high = seen.ends[2 * slot], seen.ends[2 * slot + 1]
            upper.ends[end] = np.vstack([low, high])
            score = np.where(high > low, (high / 2 - low / 2) / extent, -1.0)
            order = np.argsort(-score, kind="stable")
            halted = self.halting >= 0 and not self._met(self.halting, seen.values[slot])
            queue[slot] = [] if halted else [int(j) for j in order if score[j] >= 0]
        return queue

    def _cuts(
        self,
        look: Callable[[Table], Any],
        seen: "_Seen",
        axes: dict[int, int],
        sizes: dict[int, int],
    ) -> dict[int, list[Cut]]:
        """Find the cuts of one column in each examined node."""
        between: dict[int, tuple[int, float, float]] = {}
        before: dict[int, int] = {}
        cuts: dict[int, list[Cut]] = {}
        for slot, j in axes.items():
            held, edges = seen.of(slot, j)
            if (borders := self.rulers[j].borders) is not None:
                cuts[slot] = border_cuts(held[1::2], borders)
                continue
            place, fewer, upto = middle_place(held, sizes[slot] // 2)
            a = place // 2
            if place % 2:
                top = seen.ends[2 * slot + 1, j]
                cuts[slot] = around(float(edges[a]), fewer, upto, sizes[slot], top)
            else:
                low = float(edges[a - 1]) if a else -np.inf
                high = float(edges[a]) if a < len(edges) else np.inf
                between[slot], before[slot] = (j, low, high), fewer
        counted = self._between(look, between, len(seen.ends) // 2)
        for slot, (values, held) in counted.items():
            place, fewer, upto = middle_place(held, sizes[slot] // 2 - before[slot])
            top = seen.ends[2 * slot + 1, axes[slot]]
            start = before[slot]
            cuts[slot] = around(float(values[place]), start + fewer, start + upto, sizes[slot], top)
        return cuts

    def _grids(self, upper: Upper, active: Sequence[int]) -> tuple[Floats, Ints]:
        """Choose the grid for each node and column: quantiles of its sample, or every code."""
        d = len(self.columns)
        wanted = max(32, GRID // (2 * d * len(active)))
        cell = upper.route()(self.sample)
        parts, first = [], np.zeros((len(active), d + 1), np.int64)
        at = 0
        for slot, end in enumerate(active):
            inside = self.sample[cell == end]
            for j, ruler in enumerate(self.rulers):
                first[slot, j] = at
                if ruler.order is not None:
                    edges = np.arange(ruler.last + 1)
                else:
                    x = np.sort(inside[:, j])
                    take = np.unique(np.linspace(0, len(x) - 1, min(wanted, len(x)), dtype=int))
                    edges = np.unique(x[take])
                parts.append(edges)
                at += len(edges)
            first[slot, d] = at
        return np.concatenate(parts), first

    def _tally(
        self, look: Callable[[Table], Any], edges: Floats, first: Ints, slots: int
    ) -> "_Seen":
        """Count records on the grids, extremes of each column, and confidential values, by node."""
        counted, rules, d = self.counted, self.rules, len(self.columns)

        def ask(table: Table, _places: Ints) -> tuple[Ints, Floats, Ints]:
            X, slot = look(table)
            counts = np.zeros(2 * len(edges) + slots * d, np.int64)
            ends = np.empty((2 * slots, d))
            ends[::2], ends[1::2] = np.inf, -np.inf
            tally_grid(X, slot, edges, first, ends, counts)
            return counts, ends, _values(counted, rules, table, slot, slots)

        def join(one: Any, other: Any) -> Any:
            ends = np.empty_like(one[1])
            ends[::2] = np.minimum(one[1][::2], other[1][::2])
            ends[1::2] = np.maximum(one[1][1::2], other[1][1::2])
            return one[0] + other[0], ends, one[2] + other[2]

        return _Seen(edges, first, *self.rows.fold(ask, join))

    def _between(
        self,
        look: Callable[[Table], Any],
        asked: dict[int, tuple[int, float, float]],
        slots: int,
    ) -> dict[int, tuple[Floats, Ints]]:
        """Return the values of some nodes between two edges, with their counts."""
        if not asked:
            return {}
        axis = np.full(slots, -1, np.int64)
        low, high = np.zeros(slots), np.zeros(slots)
        for slot, (j, a, b) in asked.items():
            axis[slot], low[slot], high[slot] = j, a, b

        def ask(table: Table, _places: Ints) -> tuple[Ints, Floats, Ints]:
            X, slot = look(table)
            rows = np.flatnonzero((slot >= 0) & (axis[slot] >= 0))
            slot = slot[rows]
            x = X[rows, axis[slot]]
            inside = (x > low[slot]) & (x < high[slot])
            return merge_equal(slot[inside], x[inside], np.ones(int(inside.sum()), np.int64))

        def join(one: Any, other: Any) -> Any:
            return merge_equal(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))

        slot, values, counts = self.rows.fold(ask, join)
        return {
            s: (values[slot == s], counts[slot == s]) for s in sorted(asked)
        }  # fmt: skip

    def _find_allowed(
        self,
        look: Callable[[Table], Any],
        axes: dict[int, int],
        cuts: dict[int, list[Cut]],
        sizes: dict[int, int],
        here: Ints,
    ) -> dict[int, Cut]:
        """Find the first cut of each node that leaves both sides k records and the guarantees."""
        k = self.asked.k
        kept: dict[int, list[Cut]] = {}
        for slot, both in cuts.items():
            enough = [min(cut.fewer, sizes[slot] - cut.fewer) >= k for cut in both]
            # The more balanced cut comes first: if it leaves too few records, so does the other.
            kept[slot] = both[: enough.index(False)] if False in enough else both
        kept = {slot: columns for slot, columns in kept.items() if columns}
        steered = [r for r in range(len(self.counted)) if r != self.halting]
        if not steered or not kept:
            return {slot: both[0] for slot, both in kept.items()}
        low = self._low_values(look, axes, kept, len(here))
        allowed = {}
        for slot, both in kept.items():
            for a, cut in enumerate(both):
                sides = (low[a, slot], here[slot] - low[a, slot])
                if all(self._met(r, side) for r in steered for side in sides):
                    allowed[slot] = cut
                    break
        return allowed

    def _low_values(
        self,
        look: Callable[[Table], Any],
        axes: dict[int, int],
        cuts: dict[int, list[Cut]],
        slots: int,
    ) -> Ints:
        """Count confidential values on the low sides of up to two cuts per node."""
        axis = np.full(slots, -1, np.int64)
        at = np.full((2, slots), -np.inf)
        for slot, both in cuts.items():
            axis[slot] = axes[slot]
            at[: len(both), slot] = [cut.value for cut in both]
        counted, rules = self.counted, self.rules

        def ask(table: Table, _places: Ints) -> Ints:
            X, slot = look(table)
            slot = np.where((slot >= 0) & (axis[slot] >= 0), slot, -1)
            x = X[np.arange(len(X)), axis[slot]]
            return np.stack([
                _values(counted, rules, table, np.where(x < cut[slot], slot, -1), slots)
                for cut in at
            ])  # fmt: skip

        sums: Ints = self.rows.fold(ask, np.add)
        return sums

    def _met(self, r: int, held: Ints) -> bool:
        first, last = self.rules.first[r], self.rules.first[r + 1]
        n = int(held[first:last].sum())
        return bool(meets(self.rules, r, n, held, np.arange(len(held)), int(last - first)))

    def _standing(
        self, look: Callable[[Table], Any], giant: Sequence[int], release: Release
    ) -> dict[int, pl.DataFrame]:
        """Return the released values of each of some ends, as one row."""
        if not giant:
            return {}
        columns, template = self.columns, self.rows.template

        def few(table: Table, end: int) -> tuple[int, pl.DataFrame]:
            return end, table.take(representatives(table, columns)).frame.select(columns)

        def ask(table: Table, _places: Ints) -> dict[int, pl.DataFrame]:
            ends = look(table)[1]
            held = [end for end in giant if (ends == end).any()]
            return dict(few(table.take(np.flatnonzero(ends == end)), end) for end in held)

        def join(
            one: dict[int, pl.DataFrame], other: dict[int, pl.DataFrame]
        ) -> dict[int, pl.DataFrame]:
            both = {**one, **other}
            for end in one.keys() & other.keys():
                together = pl.concat([one[end], other[end]])
                both[end] = few(Table(together, template.schema, template.dtypes), end)[1]
            return both

        frames: dict[int, pl.DataFrame] = self.rows.fold(ask, join)
        done = {}
        for end, frame in frames.items():
            single = Partition(np.zeros(frame.height, np.int64))
            table = Table(frame, template.schema, template.dtypes)
            done[end] = release(table, single).frame.select(columns).head(1)
        return done

    def finishing(
        self, upper: Upper, most: int, release: Release
    ) -> tuple[Callable[[Table, Ints], Ints], Callable[[int, Table], Table]]:
        """Decide where each record is finished, and how.

        A closed end with more records than a machine should hold, such as many equal rows, is
        finished part by part, by a few of its records that have all its cells.
        """
        look = self._of_blocks(upper, range(len(upper.sizes)))
        giant = [
            end
            for end in sorted(upper.closed)
            if self.asked.covers or (upper.ends[end][0] == upper.ends[end][1]).all()
        ]
        parts = np.ones(len(upper.sizes), np.int64)
        parts[giant] = [max(2, upper.sizes[end] // most) for end in giant]
        first = np.concatenate([[0], np.cumsum(parts)])
        owner = np.repeat(np.arange(len(parts)), parts)
        stands = self._standing(look, giant, release)
        columns, asked, counted = self.columns, self.asked, self.counted
        rulers, ends, depths = self.rulers, self.whole, list(upper.depths)
        required = [rule for r, rule in enumerate(counted) if r != self.halting]
        halts = counted[self.halting] if self.halting >= 0 else None

        def route(table: Table, places: Ints) -> Ints:
            end = look(table)[1]
            cells: Ints = first[end] + blockwise.scatter(places, parts[end])
            return cells

        def finish(cell: int, table: Table) -> Table:
            end = owner[cell]
            if end in stands:
                frame = table.frame.with_columns(
                    pl.lit(series).first().alias(series.name) for series in stands[end]
                )
                return replace(table, frame=frame)
            placed = [o.places(table.raw(n)) for o, n in zip(rulers, columns, strict=True)]
            borders = {j: o.borders for j, o in enumerate(rulers) if o.borders is not None}
            height = asked.max_height
            tree = mondrian_tree(
                np.column_stack(placed),
                asked.k,
                require=[rule.requirement(rule.codes(table)) for rule in required],
                relaxed=asked.relaxed,
                borders=borders or None,
                max_height=None if height is None else height - depths[end],
                halt=None if halts is None else halts.requirement(halts.codes(table)),
                whole=ends,
            )
            return release(table, tree.partition)

        return route, finish


def _values(
    counted: Sequence[CountedGuarantee], rules: Rules, table: Table, slot: Ints, slots: int
) -> Ints:
    """Count confidential values by node, those of all guarantees concatenated."""
    width = int(rules.first[-1])
    counts = np.zeros(slots * width, np.int64)
    inside = np.flatnonzero(slot >= 0)
    for r, rule in enumerate(counted):
        key = slot[inside] * width + rules.first[r] + rule.codes(table)[inside]
        counts += np.bincount(key, minlength=slots * width)
    return counts.reshape(slots, width)

"""Checks and metrics of rows in blocks, as sums over the blocks.

A class of equal rows may lie in many blocks. Its counts, by confidential value if l or t is
asked for, are brought together by a hash of its keys, and each part of all classes is judged by
itself, against the distribution of the whole table. So no machine holds all classes.

Losses are sums over rows: one pass over original and released rows side by side.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Check, Column, LDiversity, Role, Schema, TCloseness, Testable
from shoal.core._arrays import Floats, Ints
from shoal.core.constraints import CATEGORICAL
from shoal.engine import local
from shoal.engine.check_table import hierarchy_edges, value_codes
from shoal.engine.spark.blocks import RID, STRIDE, Blocks, Numbered, Step, cut_by
from shoal.engine.spark.rows import Layout, SparkRows
from shoal.errors import InternalError
from shoal.io.table import Table
from shoal.metrics.additive_losses import Losses
from shoal.privacy_models import Counts, verdict

COUNT = "\0count"
WAS = "\0was:"


class Judged(NamedTuple):
    """The verdict of some classes on a guarantee, which can be combined with others."""

    holds: bool
    achieved: int | Fraction | float
    size: int
    classes: int
    failing: int
    homogeneous: int


class CountingKeys(NamedTuple):
    """A grouping: key columns that form classes, and columns whose values are counted within."""

    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()


def checks(
    blocks: Blocks, guarantees: Sequence[Testable], schema: Schema, *, tasks: int
) -> tuple[Check, ...]:
    """Recompute guarantees on released rows in blocks, cells compared as they are.

    The witness names no rows, which have no numbers here. Cost: one pass and one exchange of the
    counts of classes for all of them; for l and t one more pass, which finds the values and their
    totals.

    Raises:
        InputError: a hierarchical distance lacks its hierarchy.
    """
    if not guarantees:
        return ()
    asked = [_grouping(guarantee) for guarantee in guarantees]
    values = _values(blocks, {grouping.columns for grouping in asked if grouping.columns}, tasks)
    judges = [
        _judging(values[guarantee.columns], guarantee, schema)
        if isinstance(guarantee, LDiversity | TCloseness)
        else partial(_least, k=guarantee.k)
        for guarantee in guarantees
    ]
    least = [not isinstance(guarantee, TCloseness) for guarantee in guarantees]
    groupings = list(dict.fromkeys(asked))

    def judge(number: int, frame: pl.DataFrame) -> dict[int, Judged]:
        grouping = groupings[number // STRIDE]
        return {at: judges[at](frame) for at, wanted in enumerate(asked) if wanted == grouping}

    def join(one: dict[int, Judged], other: dict[int, Judged]) -> dict[int, Judged]:
        both = {at: _worse(one[at], other[at], least=least[at]) for at in one.keys() & other.keys()}
        return {**one, **other, **both}

    sources = [(blocks, grouping) for grouping in groupings]
    judged: dict[int, Judged] = classes(sources, tasks=tasks).fold(judge, join, tasks=tasks)
    return tuple(_check(guarantee, judged[at]) for at, guarantee in enumerate(guarantees))


def _grouping(guarantee: Testable) -> CountingKeys:
    if isinstance(guarantee, LDiversity | TCloseness):
        return CountingKeys(guarantee.keys, guarantee.columns)
    return CountingKeys(guarantee.columns)


def _check(guarantee: Testable, judged: Judged) -> Check:
    remarks: dict[str, Any] = {"classes": judged.classes}
    if isinstance(guarantee, LDiversity | TCloseness):
        remarks |= {"failing_classes": judged.failing, "homogeneous_classes": judged.homogeneous}
    return Check(guarantee, judged.holds, judged.achieved, {"size": judged.size}, remarks)


def classes(sources: Sequence[tuple[Blocks, CountingKeys]], *, tasks: int) -> Blocks:
    """Count rows by several groupings; all counts of a class end up in one block.

    Blocks of the second grouping are numbered from `STRIDE`, and so on.
    """

    def counting(which: int) -> Step:
        keys, columns = sources[which][1]

        def part(_number: int, frame: pl.DataFrame) -> Numbered:
            counts = frame.group_by(*keys, *columns).agg(pl.len().cast(pl.Int64).alias(COUNT))
            place = (counts.select(keys).hash_rows() % tasks).cast(pl.Int64).to_numpy()
            order = np.argsort(place, kind="stable")
            return cut_by(counts[order], which * STRIDE + place[order])

        return part

    groupings = [grouping for _, grouping in sources]

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        keys, columns = groupings[number // STRIDE]
        together = pl.concat(frames).group_by(*keys, *columns).agg(pl.col(COUNT).sum())
        return [(number, together)]

    steps: dict[int, tuple[Blocks, list[Step]]] = {}
    for which, (blocks, _) in enumerate(sources):
        steps.setdefault(id(blocks), (blocks, []))[1].append(counting(which))
    first, *rest = (blocks.map(*step) for blocks, step in steps.values())
    return first.union(*rest).gather(tasks * len(sources), merge)


def _least(frame: pl.DataFrame, k: int) -> Judged:
    sizes = frame[COUNT].to_numpy()
    least = int(sizes.min())
    return Judged(least >= k, least, least, len(sizes), int((sizes < k).sum()), 0)


def _values(
    blocks: Blocks, wanted: Collection[tuple[str, ...]], tasks: int
) -> dict[tuple[str, ...], pl.DataFrame]:
    """Count the combinations of some columns in the whole table."""
    if not wanted:
        return {}

    def distinct(_number: int, frame: pl.DataFrame) -> dict[tuple[str, ...], pl.DataFrame]:
        return {
            columns: frame.group_by(columns).agg(pl.len().cast(pl.Int64).alias(COUNT))
            for columns in wanted
        }

    def join(
        one: dict[tuple[str, ...], pl.DataFrame], other: dict[tuple[str, ...], pl.DataFrame]
    ) -> dict[tuple[str, ...], pl.DataFrame]:
        return {
            columns: pl.concat([one[columns], other[columns]])
            .group_by(columns)
            .agg(pl.col(COUNT).sum())
            for columns in wanted
        }

    counted = blocks.fold(distinct, join, tasks=tasks)
    return {columns: counted[columns].sort(columns) for columns in wanted}


def _judging(
    held: pl.DataFrame, guarantee: LDiversity | TCloseness, schema: Schema
) -> Callable[[pl.DataFrame], Judged]:
    """Make a function that judges classes against the values of the whole table."""
    columns = list(guarantee.columns)
    codes, width = value_codes(held.select(columns), columns, schema)
    totals = np.zeros(width, np.int64)
    np.add.at(totals, codes, held[COUNT].to_numpy())
    edges = hierarchy_edges(guarantee, schema, width)
    named = held.select(columns).with_columns(pl.Series("\0code", codes))
    keys = list(guarantee.keys)

    def judge(frame: pl.DataFrame) -> Judged:
        coded = frame.join(named, on=columns, how="left", nulls_equal=True)
        label = coded.select(pl.struct(keys).rank("dense")).to_series().cast(pl.Int64).to_numpy()
        code, many = coded["\0code"].to_numpy(), coded[COUNT].to_numpy()
        order = np.lexsort((code, label))
        label, code, many = label[order] - 1, code[order], many[order]
        persons = np.bincount(label, weights=many).astype(np.int64)
        counts = Counts(label, code, many, persons, width)
        decision = verdict(counts, guarantee, edges=edges, whole=totals)
        return Judged(
            decision.holds,
            decision.achieved,
            int(persons[decision.witness]),
            len(persons),
            len(decision.failing),
            len(counts.homogeneous),
        )

    return judge


def _worse(one: Judged, other: Judged, *, least: bool) -> Judged:
    """Combine two verdicts: the worst decides, and among equals the smaller class."""
    ahead = one.achieved < other.achieved if least else one.achieved > other.achieved
    same = one.achieved == other.achieved
    worst = one if ahead or (same and one.size <= other.size) else other
    return Judged(
        one.holds and other.holds,
        worst.achieved,
        worst.size,
        one.classes + other.classes,
        one.failing + other.failing,
        one.homogeneous + other.homogeneous,
    )


def pairs(records: SparkRows, released: Blocks) -> Blocks:
    """Join original and released cells side by side, the original's under other names."""

    def narrow(number: int, frame: pl.DataFrame) -> Numbered:
        names = list(records_types)
        return [(number, frame.select(RID, *(pl.col(name).alias(WAS + name) for name in names)))]

    def bare(number: int, frame: pl.DataFrame) -> Numbered:
        return [(number, frame.select(RID, *records_types))]

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        sides = sorted(frames, key=lambda frame: frame.columns[1].startswith(WAS))
        if len(sides) != 2 or not sides[0][RID].equals(sides[1][RID]):
            raise InternalError("The released records do not match the original ones.")
        return [(number, pl.concat([sides[0].drop(RID), sides[1].drop(RID)], how="horizontal"))]

    records_types = dict(records.layout.types)
    return records.base.map(narrow).union(released.map(bare)).gather(len(records.starts) - 1, merge)


@dataclass(frozen=True, eq=False)
class BlockLosses:
    """Sums over rows, which can be added to those of other rows; an array has one entry per column.

    Attributes:
        rows: how many there are.
        losses: errors of numbers; a column without numbers has none.
        changed: rows whose cell is another, or generalised.
        missing: rows without a cell, original and released.
        written: whether cells are written as text, and were not.
    """

    rows: int
    losses: Losses
    changed: Ints
    missing: Ints
    written: NDArray[np.bool_]

    @classmethod
    def of(cls, frame: pl.DataFrame, layout: Layout, columns: Sequence[str]) -> "BlockLosses":
        """Sum up some columns over the rows of one frame of `pairs`."""
        after = layout.table(frame)
        before = layout.table(frame.select(pl.col(WAS + name).alias(name) for name in layout.types))
        tables = before, after
        numbers = [np.column_stack([_numbers(t, name) for name in columns]) for t in tables]
        dtypes = [(before.frame[name].dtype, after.frame[name].dtype) for name in columns]
        return cls(
            frame.height,
            Losses.of(*numbers),
            np.array([_count_changes(before, after.frame, name) for name in columns]),
            np.array([[table.frame[name].null_count() for name in columns] for table in tables]),
            np.array([now == pl.String != was for was, now in dtypes]),
        )

    def __add__(self, other: "BlockLosses") -> "BlockLosses":
        return BlockLosses(
            self.rows + other.rows,
            self.losses + other.losses,
            self.changed + other.changed,
            self.missing + other.missing,
            self.written | other.written,
        )


def _numbers(table: Table, name: str) -> Floats:
    if table.schema[name].kind in CATEGORICAL or table.frame[name].dtype == pl.String:
        return np.full(len(table), np.nan)
    return table.numbers(name)


def _count_changes(table: Table, frame: pl.DataFrame, name: str) -> int:
    """Count the rows whose released cell is written differently from the original one."""
    before, after = table.frame[name], frame[name]
    if after.dtype == pl.String or table.schema[name].kind in CATEGORICAL:
        before, after = before.cast(pl.String), after.cast(pl.String)
    return int(before.ne_missing(after).sum())


def compare(records: SparkRows, released: Blocks, columns: Sequence[str]) -> dict[str, Any]:
    """Compute what `local.losses_of` does; the released rows come in canonical order."""
    layout, tasks = records.layout, records.store.tasks
    schema = layout.schema
    keys = tuple(schema.with_role(Role.QUASI_IDENTIFIER))
    sums: BlockLosses = pairs(records, released).fold(
        lambda _number, frame: BlockLosses.of(frame, layout, columns), add, tasks=tasks
    )
    bare = [name for name in schema.with_role(Role.CONFIDENTIAL) if name not in columns]
    before, after, alike = _few(records.base, released, keys, bare, tasks)
    return local.figures(
        sums.rows,
        uniques=(None if _has_steps(schema, keys) else before, sums.rows, after),
        homogeneous={name: {"classes": int(c[1]), "rows": int(c[2])} for name, c in alike.items()},
        columns=[_column(sums, schema[name], at) for at, name in enumerate(columns)],
    )


def _has_steps(schema: Schema, keys: Sequence[str]) -> bool:
    """Whether the policy coarsens a column, so the blocks hold it coarsened."""
    columns = [schema[name] for name in keys]
    return any(
        c.step or c.date_step or c.recoded or (c.top_code, c.bottom_code) != (None, None)
        for c in columns
    )


def _column(sums: BlockLosses, column: Column, at: int) -> Mapping[str, Any]:
    missing = int(sums.missing[0, at]), int(sums.missing[1, at])
    figures_of = partial(local.column_figures, column, missing)
    share = float(sums.changed[at] / sums.rows)
    if sums.written[at] or column.kind in CATEGORICAL:
        return figures_of(share, local.GENERALISED if sums.written[at] else local.RECODED)
    ratio = float(sums.losses.sse_over_sst[at])
    if np.isfinite(ratio):
        return figures_of(ratio, "SSE / SST")
    why = "all its numbers in the original are equal, and the release changes them"
    return figures_of(None, "SSE / SST", why)


def _few(
    original: Blocks, released: Blocks, keys: tuple[str, ...], columns: Sequence[str], tasks: int
) -> tuple[int | None, int | None, dict[str, Ints]]:
    """Count the rows with a unique combination of values, in the original and in the release.

    Also, for each of `columns`, the released classes in which it has a single value, and their
    rows, as second and third number.
    """
    if not keys:
        return None, None, {}
    tables = [(original, CountingKeys(keys)), (released, CountingKeys(keys))]
    sources = [*tables, *((released, CountingKeys(keys, (name,))) for name in columns)]
    many = len(sources)

    def ask(number: int, frame: pl.DataFrame) -> Ints:
        held = frame.group_by(keys).agg(pl.len().alias("values"), pl.col(COUNT).sum())
        alike = held.filter(pl.col("values") == 1)
        answer = np.zeros((many, 3), np.int64)
        counts = (held[COUNT] == 1).sum(), alike.height, alike[COUNT].sum()
        answer[number // STRIDE] = counts
        return answer

    totals: Ints = classes(sources, tasks=tasks).fold(ask, np.add, tasks=tasks)
    return int(totals[0, 0]), int(totals[1, 0]), dict(zip(columns, totals[2:], strict=True))

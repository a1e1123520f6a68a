"""Checks and metrics of rows in blocks, as sums over the blocks.

A class of equal rows may lie in many blocks. Its counts, by confidential value if l or t is
asked for, are brought together by a hash of its keys, and each part of all classes is judged by
itself, against the distribution of the whole table. So no machine holds all classes.

Losses, marginals and COUNT queries are sums over rows: one pass over original and released rows
side by side.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Check, Kind, LDiversity, ReleaseForm, Role, Schema, TCloseness, Testable
from shoal.core._arrays import Floats, Ints
from shoal.engine import local
from shoal.engine.check_table import hierarchy_edges, value_codes
from shoal.engine.spark.blocks import RID, STRIDE, Blocks, Numbered, Step, cut_by
from shoal.engine.spark.rows import Layout, SparkRows
from shoal.errors import InternalError
from shoal.io.external.columns import ColumnAxis, read_column, scale_of
from shoal.io.table import Table
from shoal.methods.distributed.blockwise import Sample, SampledRecords
from shoal.metrics import count_queries
from shoal.metrics.additive_losses import Losses
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import (
    MarginalDistance,
    marginal_distances,
    marginal_masses,
    quantile_edges,
)
from shoal.privacy_models import Counts, verdict

COUNT = "\0count"
WAS = "\0was:"
BINS, QUERIES, SAMPLE = 10, 1000, 200_000


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
class TableFacts:
    """Facts about the whole table that the evaluation of a block needs.

    Attributes:
        layout: of the original.
        scales: one per column that has a kind.
        edges: of the bins of each.
        queries: that are counted.
    """

    layout: Layout
    scales: tuple[ColumnAxis, ...]
    edges: tuple[Floats, ...]
    queries: count_queries.Queries

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are evaluated."""
        return tuple(scale.column.name for scale in self.scales)


@dataclass(frozen=True, eq=False)
class BlockLosses:
    """Sums over rows, which can be added to those of other rows.

    Attributes:
        losses: of the axes of numbers, the middle of an interval standing for it.
        changed: rows whose cell is another, or generalised, by column.
        missing: rows without a cell, original and released, by column.
        written: columns whose cells are written as text, and were not.
        masses: of one- and two-way marginals, original and released.
        counts: answers to the queries, original and released.
    """

    rows: int
    losses: Losses
    changed: Ints
    missing: Ints
    written: NDArray[np.bool_]
    masses: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    counts: Floats

    def __add__(self, other: "BlockLosses") -> "BlockLosses":
        masses = [
            tuple(a + b for a, b in zip(mass, two, strict=True))
            for mass, two in zip(self.masses, other.masses, strict=True)
        ]
        return BlockLosses(
            self.rows + other.rows,
            self.losses + other.losses,
            self.changed + other.changed,
            self.missing + other.missing,
            self.written | other.written,
            (masses[0], masses[1]),
            self.counts + other.counts,
        )

    @property
    def marginals(self) -> tuple[MarginalDistance, ...]:
        """Total variation of all one- and two-way marginals, worst first."""
        return marginal_distances(*self.masses)

    @property
    def errors(self) -> Floats:
        """Relative errors of the queries whose true answer is positive."""
        return count_queries.relative_errors(self.counts[0], self.counts[1])


def facts_of(
    records: SparkRows, *, rng: np.random.Generator, queries: int = QUERIES, bins: int = BINS
) -> TableFacts:
    """Find domains, queries, and bins from a sample, in one pass over the original."""
    layout, template = records.layout, records.template
    names = [name for name in layout.types if layout.schema[name].kind is not None]

    draw = Sample(tuple(names), min(SAMPLE / len(records), 1.0))

    def look(table: Table, places: Ints) -> tuple[Floats, SampledRecords]:
        return np.array([_ends(table.raw(name)) for name in names]), draw.of(table, places)

    def join(
        one: tuple[Floats, SampledRecords], other: tuple[Floats, SampledRecords]
    ) -> tuple[Floats, SampledRecords]:
        return np.maximum(one[0], other[0]), one[1] + other[1]

    ends, drawn = records.fold(look, join)
    scales = tuple(
        _scale(template, name, limits) for name, limits in zip(names, ends.tolist(), strict=True)
    )
    sample = drawn.in_order()
    edges = tuple(
        np.arange(1.0, scale.domain[1]) if scale.discrete else quantile_edges(column, bins)
        for scale, column in zip(scales, sample.T, strict=True)
    )
    low, high = np.array([scale.domain for scale in scales]).T
    discrete = [scale.discrete for scale in scales]
    asked = count_queries.half_ranges(
        low, high, discrete, queries=queries, rng=rng, axes=min(3, len(discrete))
    )
    return TableFacts(layout, scales, edges, asked)


def _ends(raw: Floats) -> list[float]:
    """Return the extremes, the lower one negated, and whether cells are missing or fractional."""
    present = raw[~np.isnan(raw)]
    broken = bool((present != np.rint(present)).any())
    return [
        float(present.max(initial=-np.inf)),
        float((-present).max(initial=-np.inf)),
        float(present.size < raw.size),
        float(broken),
    ]


def _scale(template: Table, name: str, known: Sequence[float]) -> ColumnAxis:
    """Make the axis of a column from a table of three rows that holds its extremes."""
    column = template.schema[name]
    high, low, gone, broken = known
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        cells = [-1 if gone else 0]
        held = template.with_codes(name, np.array(cells)) if template.categories(name) else template
        return scale_of(held, name, template.frame[name], decimal=None)
    rows = template.take(np.zeros(3, np.int64))
    ends = np.array([high, -low, np.nan]) if np.isfinite(high) else np.full(3, np.nan)
    laid = scale_of(rows.with_numbers(name, ends), name, template.frame[name], decimal=None)
    if broken and laid.unit and column.kind is Kind.NUMERIC:
        beyond = float(np.nextafter(laid.domain[1] - 1, np.inf))
        laid = replace(laid, unit=0.0, domain=(laid.domain[0], beyond))
    return laid


def losses_of_blocks(records: SparkRows, released: Blocks, facts: TableFacts) -> BlockLosses:
    """Sum up losses, marginals and queries in one pass over both tables."""
    losses: BlockLosses = pairs(records, released).fold(
        lambda _number, frame: add_up_losses(frame, facts),
        lambda one, other: one + other,
        tasks=records.store.tasks,
    )
    return losses


def add_up_losses(frame: pl.DataFrame, facts: TableFacts) -> BlockLosses:
    """Sum up the rows of one frame of `pairs`."""
    names = facts.names
    was = frame.select(pl.col(WAS + name).alias(name) for name in facts.layout.types)
    table = facts.layout.table(was)
    axes = [read_column(frame[s.column.name], s, decimal=None) for s in facts.scales]
    places = np.column_stack([
        scale_of(table, name, table.frame[name], decimal=None).places for name in names
    ])  # fmt: skip
    lower, upper = (
        np.column_stack([getattr(a, side) for a in axes]) for side in ("lower", "upper")
    )
    hidden = np.column_stack([axis.suppressed for axis in axes])
    domain = np.array([scale.domain for scale in facts.scales]).T
    discrete = tuple(scale.discrete for scale in facts.scales)
    for j, (axis, scale) in enumerate(zip(axes, facts.scales, strict=True)):
        # An empty category means missing, and has the last position, if the original has such
        # cells.
        if scale.discrete and scale.domain[1] > len(scale.categories):
            lower[axis.missing, j], upper[axis.missing, j] = scale.domain[1] - 1, scale.domain[1]
            hidden[axis.missing, j] = False
    points = WeightedBoxes.points(places, discrete=discrete, domain=(domain[0], domain[1]))
    boxes = WeightedBoxes(lower, upper, np.ones(len(lower)), discrete)
    answers = [
        count_queries.answers(count_queries.index(part), facts.queries) for part in (points, boxes)
    ]
    numeric = [j for j, codes in enumerate(discrete) if not codes]
    return BlockLosses(
        len(places),
        Losses.of(places[:, numeric], _middles(lower, upper, hidden, facts.scales)[:, numeric]),
        np.array([_count_changes(table, frame, name) for name in names]),
        np.array(
            [[table.frame[n].null_count() for n in names], [frame[n].null_count() for n in names]]
        ),
        np.array([pl.String in {frame[n].dtype} - {table.frame[n].dtype} for n in names]),
        (marginal_masses(points, facts.edges), marginal_masses(boxes, facts.edges)),
        np.stack(answers),
    )


def _middles(
    lower: Floats, upper: Floats, hidden: NDArray[np.bool_], scales: Sequence[ColumnAxis]
) -> Floats:
    """Represent each cell by the middle of its interval; NaN where it is suppressed."""
    unit = np.array([scale.unit for scale in scales])
    # The middle of the whole numbers 20 to 29, kept as [20, 30), is 24.5.
    middle = np.where(lower == upper, lower, (lower + upper - unit) / 2)
    return np.where(hidden, np.nan, middle)


def _count_changes(table: Table, frame: pl.DataFrame, name: str) -> int:
    """Count the rows whose released cell is written differently from the original one."""
    before, after = table.frame[name], frame[name]
    if after.dtype == pl.String or table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        before, after = before.cast(pl.String), after.cast(pl.String)
    return int(before.ne_missing(after).sum())


def compare(
    records: SparkRows,
    released: Blocks,
    columns: Sequence[str],
    form: ReleaseForm,
    *,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Compute what `local.losses_of` does, and marginals and queries as well.

    The released rows come in canonical order. For a column-shuffled release nothing is said about
    combinations.
    """
    schema, tasks = records.layout.schema, records.store.tasks
    linked = form is not ReleaseForm.COLUMN_SHUFFLED
    keys = tuple(schema.with_role(Role.QUASI_IDENTIFIER)) if linked else ()
    facts = facts_of(records, rng=rng)
    sums = losses_of_blocks(records, released, facts)
    bare = [name for name in schema.with_role(Role.CONFIDENTIAL) if name not in columns]
    before, after, alike = _few(records.base, released, keys, bare, tasks)
    return local.figures(
        sums.rows,
        uniques=(None if _has_steps(schema, keys) else before, sums.rows, after),
        homogeneous={name: {"classes": int(c[1]), "rows": int(c[2])} for name, c in alike.items()},
        columns=[_column(sums, facts, name) for name in columns],
    ) | {
        "measures": {
            "SSE": sums.losses.sse,
            "SAE": sums.losses.sae,
            "IL1s": sums.losses.il1s if np.isfinite(sums.losses.il1s) else None,
            "marginals": [
                {"columns": [facts.names[j] for j in m.columns], "total_variation": m.distance}
                for m in sums.marginals[:10]
            ],
            "count_queries": _median(sums),
        },
    }


def _has_steps(schema: Schema, keys: Sequence[str]) -> bool:
    """Whether the policy coarsens a column, so the blocks hold it coarsened."""
    columns = [schema[name] for name in keys]
    return any(
        c.step or c.date_step or c.recoded or (c.top_code, c.bottom_code) != (None, None)
        for c in columns
    )


def _median(sums: BlockLosses) -> dict[str, Any] | None:
    if not sums.errors.size:
        return None
    middle = count_queries.median_relative_error(sums.errors)
    return {"median_relative_error": middle.value, "low": middle.low, "high": middle.high}


def _column(sums: BlockLosses, facts: TableFacts, name: str) -> Mapping[str, Any]:
    place = facts.names.index(name)
    scale = facts.scales[place]
    missing = int(sums.missing[0, place]), int(sums.missing[1, place])
    figures_of = partial(local.column_figures, scale.column, missing)
    share = float(sums.changed[place] / sums.rows)
    if sums.written[place] or scale.discrete:
        return figures_of(share, local.GENERALISED if sums.written[place] else local.RECODED)
    numeric = [s.column.name for s in facts.scales if not s.discrete].index(name)
    ratio = float(sums.losses.sse_over_sst[numeric])
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

"""Full-domain generalisation: one hierarchy level for each column, with the least loss.

Claims, proved: k-anonymity of the protected columns together, and every l-diversity and t-closeness
that the policy requires of them. All records of a column are released at one level, so records with
equal labels are an equivalence class; a class that lacks any of them is suppressed, and levels at
which more than `record_suppression` of the rows would be are not chosen
(`shoal.partition.full_domain`). t-closeness is to the released rows. If no combination of
levels keeps all, nothing is written.

The choice is exact: no combination of levels that keeps them has a smaller loss, ties and rounding
of the loss aside. What is pruned on the way, and why that loses nothing, is proved in
`shoal.partition.full_domain`. Entropy l-diversity is decided in floating point, and a class that is
too close to call counts as one that lacks it.

Persons: where a column numbers them and some have several rows, classes are counted in persons, and
l and t are decided in rows and in persons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from shoal.core import Claim, Kind
from shoal.core._arrays import Floats, Ints
from shoal.errors import ClaimViolationError, InputError, did_you_mean
from shoal.io.table import Table
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.column_levels import (
    ColumnLevels,
    Steps,
    column_levels,
    height,
    leaf_numbers,
    refuse_steps,
)
from shoal.methods.grouping.fixed_recoding import RECODED_AS_BEFORE, no_longer
from shoal.methods.grouping.steering import (
    judge_of,
    refuse_aligned_suppression,
    refuse_steering,
    requirement_of,
    steering,
    suppression_promise,
)
from shoal.methods.method import (
    Alternatives,
    CellFacts,
    CostModel,
    DistributedRun,
    Example,
    LeastLoss,
    Masked,
    Method,
    Parameters,
    Promises,
    Setting,
    Tools,
)
from shoal.metrics.count_queries import half_ranges, relative_errors
from shoal.partition import (
    Generalisation,
    LatticeOptions,
    Loss,
    frontier,
    full_domain,
    neighbourhood,
)
from shoal.policy.values import Number, Size, choice

SOURCE = (
    "Kohlmayer, Prasser, Eckert, Kemper and Kuhn, Flash: efficient, stable and optimal "
    "k-anonymity, PASSAT (2012), doi:10.1109/SocialCom-PASSAT.2012.52"
)
WEIGHTED = frozenset({Loss.GRANULARITY, Loss.ENTROPY})
"""Losses that are sums over columns."""
SEVERAL_K = (2, 3, 5, 10, 20, 50, 100)
"""At which an inspection states the least loss."""
QUERIES, AXES, SEED = 200, 3, 26
"""COUNT queries whose error a search can make small, columns of each, and where they come from."""


class FullDomainParameters(Parameters):
    """Parameters of full-domain generalisation."""

    k: Size = Field(
        title="Smallest group (k)",
        description="Smallest number of records in an equivalence class.",
    )
    loss: Annotated[Loss, choice(Loss)] = Field(
        Loss.DISCERNIBILITY,
        title="What is kept small",
        description="What the chosen levels make small.",
    )
    record_suppression: Annotated[Number, Field(ge=0, lt=1)] = Field(
        Decimal(0),
        title="Share of rows that may be left out",
        description="The largest share of the rows that may be left out.",
    )
    intervals: dict[str, Annotated[list[Number | str], Field(min_length=1)]] = Field(
        default_factory=dict,
        title="Widths of intervals",
        description='Of a number the widths, such as [5, 10]; of a date such levels as ["month", '
        '"year"]. In place of a hierarchy.',
    )
    levels: dict[str, int | Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict,
        title="Levels of the hierarchy",
        description="The level of a column, or its lowest and highest; 0 is the column as it is.",
    )
    weights: dict[str, Annotated[Number, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict,
        title="Weights of columns",
        description="What a column counts in granularity and entropy; by default 1.",
    )


def _claims(setting: Setting[Any]) -> tuple[Claim, ...]:
    (k_anonymity,) = microaggregation.joint_claims(SOURCE)(setting)
    steered = tuple(
        Claim(
            guarantee=guarantee,
            status=k_anonymity.status,
            basis="by construction: every class that lacks it is suppressed",
            assumes=k_anonymity.assumes,
            source=SOURCE,
            release_form=setting.release_form,
        )
        for guarantee in steering(setting)
        if set(setting.columns) >= set(guarantee.keys)
    )
    return (k_anonymity, *steered)


def _not_claimed(setting: Setting[Any]) -> tuple[str, ...]:
    steered = {name for guarantee in steering(setting) for name in guarantee.columns}
    texts = [*microaggregation.bare_columns(setting, besides=steered)]
    if setting.parameters.record_suppression:
        texts.append(suppression_promise(setting))
    if steered:
        texts.append(
            f"The levels follow {', '.join(sorted(steered))}, too: anyone who knows how they are "
            "chosen can infer that at lower levels some class would have lacked what is required."
        )
    return tuple(texts)


def _refuse(setting: Setting[FullDomainParameters]) -> None:
    parameters, schema = setting.parameters, setting.schema
    for key in ("intervals", "levels", "weights"):
        for name in getattr(parameters, key):
            if name not in setting.columns:
                guess = did_you_mean(name, setting.columns)
                raise InputError(f"[protect], {key}: no protected column named '{name}'.{guess}")
    for name, steps in parameters.intervals.items():
        refuse_steps(schema[name], steps)
    for name in setting.columns:
        column = schema[name]
        if column.observed:
            continue  # what is read off the data is checked with the data
        tree = column.level_hierarchy
        if tree is not None and column.kind in {Kind.NUMERIC, Kind.DATE}:
            leaf_numbers(column, tree.leaves)
        _between(setting, name)
    if parameters.weights and parameters.loss not in WEIGHTED:
        raise InputError(
            f"[protect], weights: {parameters.loss} counts rows, not columns; expected no weights, "
            "or loss = 'granularity' or 'entropy'."
        )
    if parameters.weights and not any(parameters.weights.get(c, 1) for c in setting.columns):
        raise InputError("[protect], weights: expected one above 0.")
    refuse_steering(setting)
    refuse_aligned_suppression(setting)


def _between(setting: Setting[FullDomainParameters], name: str) -> tuple[int, int]:
    """Return the lowest and the highest level allowed for a column."""
    parameters = setting.parameters
    last = height(setting.schema[name], parameters.intervals.get(name))
    stated = parameters.levels.get(name, [0, last])
    low, high = (stated, stated) if isinstance(stated, int) else stated
    if not 0 <= low <= high <= last:
        shown = str(low) if low == high else f"{low} and {high}"
        raise InputError(
            f"[protect], levels of '{name}': expected levels from 0 to {last}, found {shown}."
        )
    return low, high


def _run(table: Table, setting: Setting[FullDomainParameters], tools: Tools) -> Masked:
    parameters, columns = setting.parameters, setting.columns
    levels = [column_levels(table, name, parameters.intervals.get(name)) for name in columns]
    kept = None if tools.recoding is None else tools.recoding["levels"]
    chosen = _choose_levels(table, setting, levels, tools, kept=kept)
    for name, recoding, level in zip(columns, levels, chosen.levels, strict=True):
        table = recoding.write_level(table, name, level)
    stays = np.flatnonzero(chosen.labels >= 0)
    rest = None if len(stays) == len(table) else stays
    note = _note(columns, levels, chosen)
    return Masked(
        table if rest is None else table.take(rest),
        kept=rest,
        notes=(note,) if kept is None else (note, RECODED_AS_BEFORE),
        recoding={"levels": dict(zip(columns, chosen.levels, strict=True))},
        recoding_public=True,
    )


def _choose_levels(
    table: Table,
    setting: Setting[FullDomainParameters],
    levels: Sequence[ColumnLevels],
    tools: Tools,
    *,
    kept: Mapping[str, Any] | None = None,
    times: Ints | None = None,
) -> Generalisation:
    """Choose the levels of least loss; `times` is how many rows each row represents."""
    parameters, columns, persons = setting.parameters, setting.columns, table.persons
    rows = len(table) if times is None else int(times.sum())
    many = rows if persons is None else int(np.unique(persons).size)
    if many < parameters.k:
        raise InputError(
            f"Cannot form one class of k={parameters.k:,} persons from {many:,}. Lower k."
        )
    options = _options(table, setting, levels, tools, times)

    def search(between: Sequence[tuple[int, int]], limit: int) -> Generalisation | None:
        stated: LatticeOptions = {**options, "between": between, "limit": limit}
        return full_domain(*_lattice(levels), parameters.k, **stated)

    stated = options["between"] or ()
    fixed = stated if kept is None else [_as_before(kept, name, setting) for name in columns]
    chosen = search(fixed, options["limit"])
    if chosen is None and kept is not None:
        raise ClaimViolationError(_no_longer(setting, fixed, rows, search))
    if chosen is None:
        asked = [f"{parameters.k}-anonymity", *map(str, steering(setting))]
        raise ClaimViolationError(
            f"No combination of levels keeps {' and '.join(asked)} with at most "
            f"{float(parameters.record_suppression):.3g} of the rows left out. Nothing was "
            "written. Allow higher levels, or a larger record_suppression."
        )
    return chosen


def _note(columns: Sequence[str], levels: Sequence[ColumnLevels], chosen: Generalisation) -> str:
    shown = ", ".join(
        f"{name} {level} of {len(recoding.tree) - 1}"
        for name, recoding, level in zip(columns, levels, chosen.levels, strict=True)
    )
    return f"Levels, where 0 is the column as it is: {shown}."


def _run_distributed(
    rows: DistributedRows, setting: Setting[FullDomainParameters], tools: Tools
) -> Distributed:
    """Count combinations of cells block by block, choose levels by the counts, recode each row."""
    columns, intervals = setting.columns, setting.parameters.intervals
    about = [name for guarantee in steering(setting) for name in guarantee.columns]
    names = list(dict.fromkeys([*columns, *about]))
    counted = rows.fold(partial(_combinations, names=names), partial(_add_counts, names=names))
    table, times = replace(rows.template, frame=counted.drop(_TIMES)), counted[_TIMES].to_numpy()
    levels = [column_levels(table, name, intervals.get(name), times) for name in columns]
    chosen = _choose_levels(table, setting, levels, tools, times=times)
    at = {name: level for name, level in zip(columns, chosen.levels, strict=True) if level}
    change = partial(_at_levels, levels=at, intervals=intervals)
    cell = partial(_block, size=rows.block_rows)
    changes = (rows.within(tuple(at), cell, change),) if at else ()
    return Distributed(changes, notes=(_note(columns, levels, chosen),))


_TIMES = "\0times"


def _combinations(table: Table, _places: Ints, *, names: Sequence[str]) -> pl.DataFrame:
    return table.frame.group_by(names).agg(pl.len().cast(pl.Int64).alias(_TIMES))


def _add_counts(one: pl.DataFrame, other: pl.DataFrame, *, names: Sequence[str]) -> pl.DataFrame:
    return pl.concat([one, other]).group_by(names).agg(pl.col(_TIMES).sum())


def _block(_table: Table, places: Ints, *, size: int) -> Ints:
    return places // size


def _at_levels(
    _cell: int, table: Table, *, levels: Mapping[str, int], intervals: Mapping[str, Steps]
) -> Table:
    for name, level in levels.items():
        table = column_levels(table, name, intervals.get(name)).write_level(table, name, level)
    return table


def _refuse_distributed(setting: Setting[FullDomainParameters]) -> None:
    if setting.parameters.record_suppression:
        raise InputError(
            "[protect], record_suppression: available on one machine only; on Spark, expected 0."
        )


def _options(
    table: Table,
    setting: Setting[FullDomainParameters],
    levels: Sequence[ColumnLevels],
    tools: Tools,
    times: Ints | None = None,
) -> LatticeOptions:
    """Make the options of a lattice search, with the allowed levels and suppression.

    `times` is how many rows each row of the table represents.
    """
    parameters, columns = setting.parameters, setting.columns
    rows = len(table) if times is None else int(times.sum())
    require = [requirement_of(table, guarantee) for guarantee in steering(setting)]
    if times is not None:
        require = [
            replace(rule, totals=np.bincount(rule.codes, times, rule.width or 1).astype(np.int64))
            for rule in require
        ]
    judge = judge_of(table, require)
    counts = parameters.loss is Loss.COUNT_ERROR
    return {
        "loss": parameters.loss,
        "limit": int(Fraction(parameters.record_suppression) * rows),
        "require": () if judge else require,
        "units": table.persons,
        "judge": judge,
        "rating": count_error(*_lattice(levels), times) if counts else None,
        "weights": [float(parameters.weights.get(name, 1)) for name in columns],
        "penalties": [level.penalties for level in levels],
        "between": [_between(setting, name) for name in columns],
        "times": times,
        "progress": tools.progress,
    }


def _lattice(levels: Sequence[ColumnLevels]) -> tuple[Ints, list[Ints]]:
    return np.column_stack([level.codes for level in levels]), [level.tree for level in levels]


def _alternatives(
    table: Table, setting: Setting[FullDomainParameters], tools: Tools
) -> Alternatives:
    """Compute the levels of least loss at several k, and the lattice at the policy's own k."""
    parameters, columns = setting.parameters, setting.columns
    levels = [column_levels(table, name, parameters.intervals.get(name)) for name in columns]
    options = _options(table, setting, levels, tools)
    ks = sorted({parameters.k, *(k for k in SEVERAL_K if k <= len(table))})
    solutions = frontier(*_lattice(levels), ks, **options)
    return Alternatives(
        loss=parameters.loss.value,
        columns=columns,
        by_k={
            k: None
            if solution is None
            else LeastLoss(
                solution.loss,
                dict(zip(columns, solution.levels, strict=True)),
                int((solution.labels < 0).sum()),
            )
            for k, solution in zip(ks, solutions, strict=True)
        },
        lattice=neighbourhood(*_lattice(levels), parameters.k, **options),
    )


def _as_before(
    kept: Mapping[str, Any], name: str, setting: Setting[FullDomainParameters]
) -> tuple[int, int]:
    """Return the level that a scheme states for a column."""
    level = kept.get(name)
    last = height(setting.schema[name], setting.parameters.intervals.get(name))
    if not isinstance(level, int) or not 0 <= level <= last:
        raise InputError(
            f"The scheme has no level from 0 to {last} for column '{name}'. Coarsen another column."
        )
    return level, level


def _no_longer(
    setting: Setting[FullDomainParameters],
    fixed: Sequence[tuple[int, int]],
    rows: int,
    search: Callable[[Sequence[tuple[int, int]], int], Generalisation | None],
) -> str:
    """Say what is violated at the levels of a scheme, and which further level would mend it."""

    def stays(between: Sequence[tuple[int, int]]) -> int:
        solution = search(between, rows)
        return 0 if solution is None else int((solution.labels >= 0).sum())

    moves = []
    for place, name in enumerate(setting.columns):
        last = height(setting.schema[name], setting.parameters.intervals.get(name))
        level = fixed[place][0]
        if level < last:
            higher = [*fixed[:place], (level + 1, level + 1), *fixed[place + 1 :]]
            moves.append(f"{rows - stays(higher):,} with '{name}'")
    coarser = (
        f" Or coarsen a column by one level; left to suppress would be {', '.join(moves)}."
        if moves
        else ""
    )
    return no_longer(setting, rows, stays(fixed)) + coarser


METHOD = Method(
    name="full-domain",
    summary="Release each column at one level of its hierarchy, with the least loss (k-anonymity).",
    reference=SOURCE,
    parameters=FullDomainParameters,
    example=Example({"k": 5}),
    forms=microaggregation.FORMS,
    promises=Promises(_claims, _not_claimed),
    run=_run,
    refuse=_refuse,
    distributed=DistributedRun(_run_distributed, _refuse_distributed),
    alternatives=_alternatives,
    cost=CostModel(1.0, 0.00084, 1.0, 0),
    cells=CellFacts(generalises=True, keeps_numbers=True, has_levels=True),
)


def count_error(
    codes: Ints, trees: Sequence[Ints], times: Ints | None = None
) -> Callable[[Ints, Ints, Ints], float]:
    """Prepare COUNT queries, and return a function that rates the classes of a node by their error.

    As in `shoal evaluate`, a query takes half of the values of each of up to three columns, and a
    label counts by the share of its values that lie inside. The queries are the same for every node
    and every run: they are drawn from a fixed seed, and carry no privacy.

    Args:
        codes: records by columns, the leaf of each cell.
        trees: of each column levels by leaves: the label of each leaf, from 0.
        times: how many records each row of the codes stands for, by default one.

    Returns:
        A function from the levels of a node, a leaf for each column and class, and the records of
        each class to the median relative error of the queries that have an answer.
    """
    many = np.array([tree.shape[1] for tree in trees])
    drawn = half_ranges(
        np.zeros(len(many)),
        many,
        [True] * len(many),
        queries=QUERIES,
        rng=np.random.default_rng(SEED),
        axes=min(AXES, len(many)),
    )
    inside = [
        ((low <= leaf) & (leaf < high)).astype(np.float64)
        for low, high, leaf in (
            (drawn.lower[:, j], drawn.upper[:, j], np.arange(m)[:, None])
            for j, m in enumerate(many)
        )
    ]
    distinct, where = np.unique(codes, axis=0, return_inverse=True)
    true = _answers(inside, distinct.T, np.bincount(where.ravel(), times))
    shares: dict[tuple[int, int], Floats] = {}

    def error(levels: Ints, leaves: Ints, sizes: Ints) -> float:
        for j, level in enumerate(levels.tolist()):
            if (j, level) not in shares:
                shares[j, level] = _by_label(inside[j], trees[j][level])
        level_shares = [shares[j, level] for j, level in enumerate(levels.tolist())]
        errors = relative_errors(true, _answers(level_shares, leaves, sizes))
        return float(np.median(errors)) if len(errors) else 0.0

    return error


def _by_label(inside: Floats, labels: Ints) -> Floats:
    """Compute the share of each label's leaves that a query covers, by leaves and queries."""
    sums = np.zeros((int(labels.max()) + 1, inside.shape[1]))
    np.add.at(sums, labels, inside)
    shares: Floats = (sums / np.bincount(labels)[:, None])[labels]
    return shares


def _answers(shares: Sequence[Floats], leaves: Ints, sizes: Ints | Floats) -> Floats:
    """Answer each query: classes count by the product of their shares."""
    total = np.zeros(QUERIES)
    for first in range(0, leaves.shape[1], 4096):
        part = slice(first, first + 4096)
        inside = np.ones((len(sizes[part]), QUERIES))
        for axis_shares, leaf in zip(shares, leaves, strict=True):
            inside *= axis_shares[leaf[part]]
        total += sizes[part] @ inside
    return total

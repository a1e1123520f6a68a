"""Mondrian: cut space at medians, column after column, while both sides meet the requirements.

Claims, proved: k-anonymity of the protected columns together, and every l-diversity and t-closeness
that the policy requires of them. The whole table has them, or the run stops; a cut is made only if
both sides have them; and records of a leaf share every released value. Two leaves with the same
released values are one class, and all these models are kept by merging classes.

`output = "intervals"` writes for each leaf the range of its own records, a hierarchy's lowest
common ancestor, or a set; `output = "centroids"` writes the group's centre, as `mdav` does; `output
= "tree"` writes the cells of the cuts as boxes with exact counts, see
`shoal.io.decomposition_table`.

`record_suppression` leaves rows out so the rest is generalised less. A first pass, steered by
k alone, finds the leaves whose records lose most; some are dropped whole, and a second pass cuts
the rest from the start. So every claim is about the rest by the proof above, t-closeness against
the rest's own distribution. The first pass uses no confidential value and has strict cuts, so who
is dropped depends on the protected columns alone; only if the rest lacks a required l-diversity
are fewer leaves dropped.

`halt_beyond` is the rule of cormode2013: a node farther than t from the whole table is not cut. The
cut that made it was not examined, so leaves lie beyond t: nothing is claimed from it.

Persons: where a column numbers them and some have several rows, no cut is made unless both sides
have k persons; l and t steer the cuts in records, and leaves are merged until they hold in persons
too (`whole_persons`). Boxes with counts are not merged: that output needs one row per person.

In mathematical notation: docs/explanation/proofs.md, "Cuts that keep a requirement".
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from shoal.core import (
    Claim,
    Distance,
    Kind,
    Partition,
    ReleaseForm,
    Role,
    TCloseness,
    write_fraction,
)
from shoal.core._arrays import Ints
from shoal.errors import ClaimViolationError, InputError, did_you_mean
from shoal.io import clamp, decomposition_table
from shoal.io.table import Table
from shoal.methods.distributed import blockwise, mondrian
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.grouping import microaggregation, whole_persons
from shoal.methods.grouping.fixed_recoding import (
    beside,
    describe_cells,
    describe_places,
    same_places,
    without_lacking,
)
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.grouping.partition_encoding import encode
from shoal.methods.grouping.recode import Aggregate, generalise
from shoal.methods.grouping.steering import (
    confidential_codes,
    refuse_aligned_suppression,
    refuse_steering,
    refuse_unordered,
    requirement_of,
    steering,
    suppression_promise,
)
from shoal.methods.method import (
    CellFacts,
    CostModel,
    DistributedRun,
    Example,
    Masked,
    Method,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.partition import CutColumn, PartitionTree, cell_of, mondrian_tree, unmet
from shoal.policy.values import MOST, Number, choice

SOURCE = (
    "LeFevre, DeWitt and Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE (2006), "
    "doi:10.1109/ICDE.2006.101"
)


NUMBERS = frozenset({Kind.NUMERIC, Kind.DATE})


class LeafOutput(StrEnum):
    """How a leaf is released."""

    INTERVALS = "intervals"
    CENTROIDS = "centroids"
    TREE = "tree"


class MondrianParameters(MicroaggregationParameters):
    """Parameters of Mondrian."""

    output: Annotated[LeafOutput, choice(LeafOutput)] = Field(
        LeafOutput.INTERVALS,
        title="What is released",
        description="What a group gets: intervals, sets and ancestors (intervals), its centre "
        "(centroids), or a box with counts (tree).",
    )
    dimension: Annotated[CutColumn, choice(CutColumn)] = Field(
        CutColumn.RANGE,
        title="Column that is cut first",
        description="Which column is cut first: the widest (range), the most varied (entropy), or "
        "the one that says most about target (gain).",
    )
    target: str | None = Field(
        None,
        title="Column that cuts should explain",
        description="The confidential column for dimension = gain; with gain only.",
    )
    relaxed: bool = Field(
        default=False,
        title="Cuts may part equal values",
        description="Let a cut part equal values, so groups are smaller. Not with tree.",
    )
    max_height: Annotated[int, Field(ge=0, le=MOST)] | None = Field(
        None,
        title="Largest number of cuts",
        description="The largest number of cuts above a group.",
    )
    count: str | None = Field(
        None,
        title="Column that is counted",
        description="The confidential column that boxes count and halt_beyond compares; by "
        "default the only one.",
    )
    record_suppression: Annotated[Number, Field(ge=0, lt=1)] = Field(
        Decimal(0),
        title="Share of rows that may be left out",
        description="The largest share of the rows that may be left out.",
    )
    halt_beyond: Annotated[Number, Field(ge=0, le=MOST)] | None = Field(
        None,
        title="Farthest group that is cut again",
        description="Do not cut a group further that is farther than this from the whole table.",
    )
    halt_distance: Annotated[Distance, choice(Distance)] = Field(
        Distance.EQUAL,
        title="By which distance it is far",
        description="The distance of halt_beyond, one of those of t-closeness.",
    )


def find_counted_column(setting: Setting[MondrianParameters]) -> str | None:
    """Return the column that boxes count: the named one, or the only confidential one."""
    confidential = setting.schema.with_role(Role.CONFIDENTIAL)
    named = setting.parameters.count
    return named or (confidential[0] if len(confidential) == 1 else None)


def _claims(setting: Setting[MondrianParameters]) -> tuple[Claim, ...]:
    (k_anonymity,) = microaggregation.joint_claims(SOURCE)(setting)
    if setting.parameters.output is LeafOutput.TREE:
        boxes = "by construction: every box of these columns contains at least k records"
        k_anonymity = replace(k_anonymity, basis=boxes)
    classes = set(setting.columns)
    steered = tuple(
        Claim(
            guarantee=guarantee,
            status=k_anonymity.status,
            basis="by construction: a cut is made only if both sides still satisfy it",
            assumes=k_anonymity.assumes,
            source=SOURCE,
            release_form=setting.release_form,
        )
        for guarantee in steering(setting)
        if classes >= set(guarantee.keys)
    )
    return (k_anonymity, *steered)


def _not_claimed(setting: Setting[MondrianParameters]) -> tuple[str, ...]:
    parameters, counted = setting.parameters, find_counted_column(setting)
    texts: list[str] = []
    if parameters.output is not LeafOutput.TREE:
        steered = {name for guarantee in steering(setting) for name in guarantee.columns}
        texts += microaggregation.bare_columns(setting, besides=steered)
    elif counted is not None:
        texts.append(
            f"Counts of {counted} are exact: if all records of a box share a value, it is "
            "disclosed for each of them."
        )
    if parameters.output is LeafOutput.INTERVALS:
        texts.append(
            "Nothing hides the ends of intervals: they are values of persons in the group."
        )
    if parameters.record_suppression:
        texts.append(suppression_promise(setting))
    if parameters.halt_beyond is not None:
        texts.append(
            f"{write_fraction(Fraction(parameters.halt_beyond))}-closeness of {counted} is not "
            "promised by halt_beyond: a group farther from the table is not cut again, but it is "
            "released. On the Adult table with halt_beyond = 0.35, groups reach a total "
            "variation of 0.72 to 0.75."
        )
    return tuple(texts)


def _refuse(setting: Setting[MondrianParameters]) -> None:
    parameters, schema = setting.parameters, setting.schema
    if (parameters.dimension is CutColumn.GAIN) is not (parameters.target is not None):
        raise InputError("[protect], target: expected if and only if dimension = 'gain'.")
    if parameters.target is not None and parameters.target not in schema.released:
        raise InputError(f"[protect], target: no released column named '{parameters.target}'.")
    _refuse_unused(parameters)
    refuse_steering(setting)
    _refuse_count(setting)
    if parameters.halt_beyond is not None:
        refuse_unordered(setting, halting(setting))
    refuse_aligned_suppression(setting)
    if (parameters.output is LeafOutput.TREE) is not (setting.release_form is ReleaseForm.TREE):
        raise InputError(
            "[protect], output: expected 'tree' if and only if the release form is 'tree'."
        )
    if parameters.output is LeafOutput.TREE:
        _refuse_tree(setting)


def _refuse_unused(parameters: MondrianParameters) -> None:
    stated = parameters.model_fields_set
    if "halt_distance" in stated and parameters.halt_beyond is None:
        raise InputError("[protect], halt_distance: expected only together with halt_beyond.")
    unused = sorted(stated & {"aggregate", "integers"})
    if unused and parameters.output is not LeafOutput.CENTROIDS:
        raise InputError(
            f"[protect], {' and '.join(unused)}: expected only together with output = 'centroids'. "
            f"Remove {'it' if len(unused) == 1 else 'them'}, or state that output."
        )


def _refuse_count(setting: Setting[MondrianParameters]) -> None:
    parameters = setting.parameters
    confidential = setting.schema.with_role(Role.CONFIDENTIAL)
    used = parameters.output is LeafOutput.TREE or parameters.halt_beyond is not None
    if parameters.count is not None:
        if not used:
            raise InputError(
                "[protect], count: expected only together with output = 'tree' or halt_beyond."
            )
        if parameters.count not in confidential:
            guess = did_you_mean(parameters.count, confidential)
            raise InputError(
                f"[protect], count: no confidential column named '{parameters.count}'.{guess}"
            )
    elif used and len(confidential) > 1:
        raise InputError(
            "[protect], count: expected the confidential column to count, one of "
            f"{', '.join(confidential)}."
        )
    counted = find_counted_column(setting)
    if parameters.halt_beyond is not None and counted is None:
        raise InputError("[protect], halt_beyond: expected a confidential column, found none.")
    if used and counted in setting.columns:
        raise InputError(f"[protect], count: '{counted}' is protected, so it cannot be counted.")


def _refuse_tree(setting: Setting[MondrianParameters]) -> None:
    parameters, counted = setting.parameters, find_counted_column(setting)
    if parameters.relaxed:
        raise InputError(
            "[protect], relaxed: boxes of relaxed cuts overlap, so they cannot be written as a "
            "tree; expected false."
        )
    for guarantee in steering(setting):
        if guarantee.columns != (counted,):
            raise InputError(
                f"{guarantee.name} of {', '.join(guarantee.columns)} cannot be checked in a tree "
                f"that counts {counted}; choose the counted column with 'count'."
            )
    for column in map(setting.schema.__getitem__, setting.columns):
        if column.kind not in {Kind.ORDINAL, Kind.NOMINAL}:
            continue
        if column.all_categories is None:
            raise InputError(
                f"Column '{column.name}': expected categories or a hierarchy, because the boxes "
                f"of a tree follow the order of the categories."
            )
        if column.observed and parameters.record_suppression:
            raise InputError(
                f"Column '{column.name}': its categories were copied from the data, and the "
                "boxes of a tree would show those of suppressed rows. State public categories."
            )


def _run(table: Table, setting: Setting[MondrianParameters], tools: Tools) -> Masked:
    parameters = setting.parameters
    tools.progress("cutting at medians", 0, 1)
    if parameters.output is LeafOutput.TREE:
        table = _place_missing_numbers(table, setting)
    missed = unmet([requirement_of(table, guarantee) for guarantee in steering(setting)])
    if missed is not None:
        raise ClaimViolationError(
            f"No grouping meets {missed.guarantee}, because even the whole table as one group "
            "does not. Nothing was written."
        )
    if tools.recoding is not None:
        return _as_before(table, setting, tools.recoding)
    kept = _keep_rows(table, setting) if parameters.record_suppression else None
    rest = table if kept is None else table.take(kept)
    tree = _cut(rest, setting)
    if parameters.output is LeafOutput.TREE and table.persons is not None:
        raise InputError(
            "[protect], output: the boxes of a tree count rows, but some persons have several "
            "rows. Bring the table to one row per person, or choose intervals or centroids."
        )
    if parameters.output is LeafOutput.TREE:
        boxes = decomposition_table.of_tree(
            rest,
            setting.columns,
            tree.partition,
            (tree.above, tree.upto),
            count=find_counted_column(setting),
        )
        return Masked(boxes, kept=kept)
    require = [requirement_of(rest, guarantee) for guarantee in steering(setting)]
    if parameters.output is LeafOutput.CENTROIDS:
        masked = microaggregation.mask_groups(rest, setting, tree.partition, require=require)
        return replace(masked, kept=kept)
    made, groups = whole_persons.release_groups(
        rest,
        setting.columns,
        tree.partition,
        lambda groups: generalise(rest, setting.columns, groups),
        k=parameters.k,
        records=lambda: rest.records(setting.columns),
        require=require,
    )
    # Boxes of relaxed cuts overlap: a new row would belong to several.
    recoding = None if parameters.relaxed else _recoding(rest, setting, tree, groups)
    return Masked(made, kept=kept, recoding=recoding)


def _place_missing_numbers(table: Table, setting: Setting[MondrianParameters]) -> Table:
    """Put missing numbers and dates where the policy says; a box has no other place for them."""
    for column in map(setting.schema.__getitem__, setting.columns):
        gone = table.missing(column.name)
        if not gone.any() or column.missing_as is None or column.kind not in NUMBERS:
            continue
        place = float(pl.Series([clamp.constant(column)]).to_physical()[0])
        values = np.where(gone, place, table.numbers(column.name))
        table = table.with_numbers(column.name, values, integers=place.is_integer())
    return table


def _recoding(
    table: Table, setting: Setting[MondrianParameters], tree: PartitionTree, groups: Partition
) -> dict[str, Any]:
    """Collect the cells of the cuts, the group of each, and the covers of the groups."""
    first = np.unique(tree.partition.labels, return_index=True)[1]
    return {
        "places": describe_places(table, setting.columns),
        "above": tree.above,
        "upto": tree.upto,
        "group": groups.labels[first],
        "cells": describe_cells(table, setting.columns, groups.labels),
    }


def _as_before(
    table: Table, setting: Setting[MondrianParameters], kept: Mapping[str, Any]
) -> Masked:
    """Recode by the cells of earlier cuts, and suppress classes that violate a promise."""
    X = same_places(table, setting.columns, kept["places"])
    above, upto = (np.asarray(kept[side], np.float64).reshape(-1, X.shape[1])
                   for side in ("above", "upto"))  # fmt: skip
    groups = np.asarray(kept["group"], np.int64)[cell_of(X, above, upto)]
    partition = Partition(np.unique(groups, return_inverse=True)[1].ravel())
    made = generalise(
        table,
        setting.columns,
        partition,
        lambda name: beside(table, name, kept["cells"], groups),
    )
    masked = without_lacking(made, table, setting)
    return replace(masked, recoding=kept)


def _cut(table: Table, setting: Setting[MondrianParameters]) -> PartitionTree:
    parameters = setting.parameters
    X, borders = encode(table, setting.columns)
    named = parameters.target
    target = None if named is None else confidential_codes(table, (named,))[0]
    halt = None if parameters.halt_beyond is None else requirement_of(table, halting(setting))
    return mondrian_tree(
        X,
        parameters.k,
        require=[requirement_of(table, guarantee) for guarantee in steering(setting)],
        units=table.persons,
        relaxed=parameters.relaxed,
        choice=parameters.dimension,
        target=target,
        borders=borders,
        max_height=parameters.max_height,
        halt=halt,
    )


def _keep_rows(table: Table, setting: Setting[MondrianParameters]) -> Ints:
    """Keep all rows but those in some leaves of a first pass, the widest first.

    A leaf is as wide as the sum over the columns of its records' range, over the range of the
    table; a column of which it holds missing and present cells counts 1. Leaves above the mean
    over records are dropped, the widest first and of equals the first, each that still fits
    within the limit. If the rest lacks what is required, the first half of them is tried, and so
    on.
    """
    parameters = setting.parameters
    X, borders = encode(table, setting.columns)
    by = parameters.dimension
    first = mondrian_tree(
        X,
        parameters.k,
        choice=CutColumn.RANGE if by is CutColumn.GAIN else by,  # a gain would look at the target
        borders=borders,
        max_height=parameters.max_height,
    )
    labels, sizes = first.partition.labels, first.partition.sizes
    extent = np.ptp(X, axis=0)
    share = (first.upper - first.lower) / np.where(extent > 0, extent, 1.0)
    for axis, name in enumerate(setting.columns):
        gone = np.bincount(labels, table.missing(name), minlength=len(sizes))
        share[(gone > 0) & (gone < sizes), axis] = 1.0
    width = share.sum(axis=1)
    mean = float(np.average(width, weights=sizes))
    room = int(Fraction(parameters.record_suppression) * len(table))
    dropped: list[int] = []
    for leaf in np.argsort(-width, kind="stable"):
        if width[leaf] <= mean:
            break
        if sizes[leaf] <= room:
            room -= int(sizes[leaf])
            dropped.append(int(leaf))
    while dropped:
        stays = np.ones(len(sizes), dtype=bool)
        stays[dropped] = False
        rest = np.flatnonzero(stays[labels])
        few = table.take(rest)
        enough = few.persons is None or np.unique(few.persons).size >= parameters.k
        if (
            enough
            and unmet([requirement_of(few, guarantee) for guarantee in steering(setting)]) is None
        ):
            return rest
        dropped = dropped[: len(dropped) // 2]
    return np.arange(len(table))


def halting(setting: Setting[MondrianParameters]) -> TCloseness:
    """Return the guarantee that a node must satisfy to be cut, if `halt_beyond` is given."""
    parameters = setting.parameters
    t = Fraction(parameters.halt_beyond or 0)
    return TCloseness(
        t, parameters.halt_distance, (str(find_counted_column(setting)),), setting.columns
    )


def _refuse_distributed(setting: Setting[MondrianParameters]) -> None:
    """Refuse on Spark what needs every record in one place."""
    parameters = setting.parameters
    if parameters.output is LeafOutput.TREE:
        raise InputError(
            "[protect], output: 'tree' runs on one machine only; on Spark, expected 'intervals' "
            "or 'centroids'."
        )
    if parameters.record_suppression:
        raise InputError(
            "[protect], record_suppression: available on one machine only; on Spark, expected 0."
        )
    if parameters.dimension is not CutColumn.RANGE:
        raise InputError(
            f"[protect], dimension: '{parameters.dimension}' runs on one machine only; on Spark, "
            "expected 'range'."
        )


def _run_distributed(
    rows: DistributedRows, setting: Setting[MondrianParameters], tools: Tools
) -> Distributed:
    parameters, columns = setting.parameters, setting.columns
    intervals = parameters.output is LeafOutput.INTERVALS
    medoid = not intervals and parameters.aggregate is Aggregate.MEDOID
    scales = blockwise.scales_of(rows, columns) if medoid else None

    def release(table: Table, partition: Partition) -> Table:
        if intervals:
            return generalise(table, columns, partition)
        return blockwise.recode_groups(table, columns, partition, parameters, scales)

    halt = None if parameters.halt_beyond is None else halting(setting)
    asked = mondrian.Asked(
        columns,
        parameters.k,
        tuple(steering(setting)),
        halt,
        relaxed=parameters.relaxed,
        max_height=parameters.max_height,
        covers=intervals,
    )
    return mondrian.cut_blocks(rows, asked, release, tools)


METHOD = Method(
    name="mondrian",
    summary="Cut records at medians into groups of k or more, respecting l and t (k-anonymity).",
    reference=SOURCE,
    parameters=MondrianParameters,
    example=Example({"k": 5}),
    forms=ReleaseForms(
        (*microaggregation.FORMS.offered, ReleaseForm.TREE),
        implied=lambda cuts: ReleaseForm.TREE if cuts.output is LeafOutput.TREE else None,
    ),
    promises=Promises(_claims, _not_claimed),
    run=_run,
    refuse=_refuse,
    distributed=DistributedRun(_run_distributed, _refuse_distributed, mondrian.APPROXIMATE),
    cost=CostModel(1.0, 0.067, 1.0, 12),
    cells=CellFacts(generalises=True, tight_intervals=True),
)

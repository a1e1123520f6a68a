"""The common part of the methods that form groups of at least k records.

Multivariate methods group whole records: k-anonymity of the protected columns together is
proved, because every record is in a group of at least k, and `recode` gives all records of a
group the same value in every protected column. Any subset of the columns inherits it.

Univariate methods group each column by itself: k-anonymity of each column is proved, for the
same reason. Of their combination it is not: the groups of two columns cut across each other.

Records are persons if each has one row. Where the policy neither states that nor names the column
that numbers persons (`privacy_unit`), a promise about persons is conditional on it. Where a column
numbers them, groups hold at least k persons, however many rows each has (`whole_persons`).

In mathematical notation: docs/explanation/proofs.md, "Groups of k".
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from shoal.core import (
    KNOWN_COLUMNS,
    ONE_ROW,
    Claim,
    KAnonymity,
    Kind,
    Partition,
    ReleaseForm,
    Role,
    Schema,
    Status,
)
from shoal.core._arrays import Floats, Ints
from shoal.core.columns import top_down
from shoal.errors import InputError
from shoal.io.table import Table, leaf_edges
from shoal.methods.distributed_rows import (
    Cut,
    Distributed,
    DistributedGroups,
    DistributedRows,
    ReplacedColumns,
    RunOrder,
)
from shoal.methods.grouping import whole_persons
from shoal.methods.grouping.recode import Aggregate, recode
from shoal.methods.method import (
    CellFacts,
    CostModel,
    DistributedRun,
    Example,
    Masked,
    Method,
    Parameters,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.partition import Requirement, marginality_order, path_lengths
from shoal.policy.values import Size, choice

FORMS = ReleaseForms[Any]((ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED))
STATED = f"{ONE_ROW}, as the policy states"


class MicroaggregationParameters(Parameters):
    """Parameters of the methods that form groups of at least k records."""

    k: Size = Field(
        title="Smallest group (k)",
        description="The smallest number of records that a group may have.",
    )
    aggregate: Annotated[Aggregate, choice(Aggregate)] = Field(
        Aggregate.MEAN,
        title="What stands for a group",
        description="What stands for a group: its mean, its median, its most frequent value "
        "(mode), or the record nearest to its centre (medoid).",
    )
    integers: bool = Field(
        default=False,
        title="Whole numbers stay whole",
        description="Round means, half to even: whole numbers stay whole, a column with a `step` "
        "has no more decimals than the step, and dates with a `date_step` are first days of it.",
    )


def joint_claims(source: str) -> Callable[[Setting[MicroaggregationParameters]], tuple[Claim, ...]]:
    """Claim k-anonymity of the protected columns together."""
    basis = "by construction: every group has at least k records, which share all protected values"

    def claims(setting: Setting[MicroaggregationParameters]) -> tuple[Claim, ...]:
        return (_claim(setting, setting.columns, basis, source),)

    return claims


def column_claims(
    source: str,
) -> Callable[[Setting[MicroaggregationParameters]], tuple[Claim, ...]]:
    """Claim k-anonymity of each protected column separately."""
    basis = (
        "by construction: every released value of the column is shared by a block of at least k "
        "records"
    )

    def claims(setting: Setting[MicroaggregationParameters]) -> tuple[Claim, ...]:
        return tuple(_claim(setting, [name], basis, source) for name in setting.columns)

    return claims


def joint_method(
    name: str,
    summary: str,
    run: Callable[[Table, Setting[Any], Tools], Masked],
    *,
    source: str,
    parameters: type[MicroaggregationParameters] = MicroaggregationParameters,
    refuse: Callable[[Setting[Any]], None] = lambda _setting: None,
    distributed: DistributedRun[Any] | None = None,
    cost: CostModel,
) -> Method[Any]:
    """Make a method that groups whole records: joint k-anonymity, in both linked forms."""
    return Method(
        name=name,
        summary=summary,
        reference=source,
        parameters=parameters,
        example=Example({"k": 5}),
        forms=FORMS,
        promises=Promises(joint_claims(source), bare_columns),
        run=run,
        refuse=refuse,
        distributed=distributed,
        cost=cost,
    )


def column_method(
    name: str,
    summary: str,
    rank: Callable[[Floats, int], Partition],
    *,
    source: str,
    cut: Cut | None = None,
    cost: CostModel,
    cells: CellFacts,
) -> Method[Any]:
    """Make a method that groups each column separately by `rank`: k-anonymity per column.

    `cut` says where groups begin in a sorted column, if not after every k values.
    """
    return Method(
        name=name,
        summary=summary,
        reference=source,
        parameters=MicroaggregationParameters,
        example=Example({"k": 5}),
        forms=FORMS,
        promises=Promises(column_claims(source), no_joint_promise),
        run=run_columns(rank),
        distributed=DistributedRun(run_columns_in_blocks(cut), no_medoid),
        cost=cost,
        cells=cells,
    )


def _claim(
    setting: Setting[MicroaggregationParameters], columns: Sequence[str], basis: str, source: str
) -> Claim:
    if setting.schema.persons is not None:
        basis = f"{basis}; where some persons have several rows, k counts persons"
    return Claim(
        guarantee=KAnonymity(setting.parameters.k, tuple(columns)),
        status=of_persons(setting.schema),
        basis=basis,
        assumes=(KNOWN_COLUMNS, *one_row(setting.schema)),
        source=source,
        release_form=setting.release_form,
    )


def one_row(schema: Schema) -> tuple[str, ...]:
    """State what is assumed of a person's rows; nothing if a column identifies the persons."""
    if schema.persons is not None:
        return ()
    return (STATED,) if schema.one_row_per_person else (ONE_ROW,)


def of_persons(schema: Schema, status: Status = Status.PROVED) -> Status:
    """Weaken the status of a claim about persons that was proved about rows.

    If nothing says whose rows they are, it is conditional on one row per person. An epsilon is
    then not about persons: its unit is a row.
    """
    return Status.CONDITIONAL if ONE_ROW in one_row(schema) and status is Status.PROVED else status


def bare_columns(
    setting: Setting[MicroaggregationParameters], besides: Collection[str] = ()
) -> tuple[str, ...]:
    """Name the confidential columns that joint k-anonymity leaves unprotected, except `besides`."""
    confidential = setting.schema.with_role(Role.CONFIDENTIAL)
    bare = [name for name in confidential if name not in {*setting.columns, *besides}]
    if not bare:
        return ()
    text = (
        f"Nothing is promised about {', '.join(bare)}, released unprotected: if all records of a "
        "group share a value, it is disclosed for each of them, and anyone who knows a person's "
        "rare value can find that person's row."
    )
    return (text,)


def no_joint_promise(setting: Setting[MicroaggregationParameters]) -> tuple[str, ...]:
    """Say what grouping each column separately does not promise."""
    if len(setting.columns) < 2:
        return ()
    text = (
        f"Joint {setting.parameters.k}-anonymity is not promised: each column is grouped "
        "separately, so the combination of values in a row may be unique."
    )
    return (text,)


def mask_groups(
    table: Table,
    setting: Setting[MicroaggregationParameters],
    partition: Partition,
    *,
    require: Sequence[Requirement] = (),
) -> Masked:
    """Give every group one value in every protected column; see `whole_persons`."""
    columns, parameters = setting.columns, setting.parameters
    made, _ = whole_persons.release_groups(
        table,
        columns,
        partition,
        lambda groups: _recode_groups(table, columns, groups, parameters),
        k=parameters.k,
        records=lambda: table.records(columns),
        require=require,
    )
    return Masked(made)


def run_columns(
    rank: Callable[[Floats, int], Partition],
) -> Callable[[Table, Setting[MicroaggregationParameters], Tools], Masked]:
    """Make a method of a function that groups one column of numbers."""

    def run(table: Table, setting: Setting[MicroaggregationParameters], tools: Tools) -> Masked:
        released = []
        for number, name in enumerate(setting.columns):
            partition = rank(ranks(table, name), setting.parameters.k)
            released.append(_column(table, name, partition, setting.parameters).frame[name])
            tools.progress("ranking columns", number, len(setting.columns))
        return Masked(replace(table, frame=table.frame.with_columns(released)))

    return run


def _column(
    table: Table, name: str, partition: Partition, parameters: MicroaggregationParameters
) -> Table:
    """Give every group of one column one value."""
    return whole_persons.release_groups(
        table,
        [name],
        partition,
        lambda groups: _recode_groups(table, [name], groups, parameters),
        k=parameters.k,
        records=lambda: ranks(table, name)[:, None],
    )[0]


def run_columns_in_blocks(
    cut: Cut | None,
) -> Callable[[DistributedRows, Setting[MicroaggregationParameters], Tools], Distributed]:
    """Group one column after the other in blocks, with the same ties as on one machine.

    The record of rank i in a column is in the same group wherever it lies, and a group's value
    is computed from its records in canonical order: the same bits as on one machine.
    """

    def run(
        rows: DistributedRows, setting: Setting[MicroaggregationParameters], tools: Tools
    ) -> Distributed:
        tools.progress("ranking columns", 0, 1)
        orders = [
            RunOrder(
                partial(_rank_key, name=name, counts=category_counts(rows, name)), (name,), cut
            )
            for name in setting.columns
        ]
        grouped = rows.runs(orders, setting.parameters.k)
        changes = [
            recode_in_blocks(groups, order.columns, setting.parameters)
            for order, groups in zip(orders, grouped, strict=True)
        ]
        return Distributed(tuple(changes))

    return run


def recode_in_blocks(
    groups: DistributedGroups, columns: Sequence[str], parameters: MicroaggregationParameters
) -> ReplacedColumns:
    """Give every group one value in some columns, for records in blocks."""
    return groups.recode(
        columns, partial(_recode_block, columns=tuple(columns), parameters=parameters)
    )


def category_counts(rows: DistributedRows, name: str) -> Ints | None:
    """Count the categories of a column with a hierarchy, which `ranks` needs of all records."""
    if rows.template.schema[name].hierarchy is None:
        return None
    return rows.total(partial(_category_counts, name=name))


def _category_counts(table: Table, name: str) -> Ints:
    codes = table.codes(name)
    return np.bincount(codes[codes >= 0], minlength=len(table.categories(name)))


def _rank_key(table: Table, name: str, counts: Ints | None) -> tuple[Floats]:
    """Compute sort keys in the order of `ranks`; missing numbers are infinite, and thus last."""
    if table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        return (ranks(table, name, counts=counts),)
    return (np.nan_to_num(table.numbers(name) + 0.0, copy=False, nan=np.inf),)


def present_cut(begins: Callable[[Floats, int], Ints]) -> Cut:
    """Cut a sorted column in which missing cells are infinite, as `ranks` would place them."""

    def cut(values: Floats, k: int) -> Ints:
        gone = np.isinf(values)
        if gone.any():
            values[gone] = np.nextafter(np.max(values[~gone], initial=0.0), np.inf)
        return begins(values, k)

    return cut


def _recode_block(
    table: Table,
    partition: Partition,
    columns: Sequence[str],
    parameters: MicroaggregationParameters,
) -> Table:
    return _recode_groups(table, columns, partition, parameters)


def no_medoid(setting: Setting[MicroaggregationParameters]) -> None:
    """Refuse the medoid on Spark, whose scale depends on all records."""
    if setting.parameters.aggregate is Aggregate.MEDOID:
        raise InputError(
            "[protect], aggregate: finding a medoid requires a scale computed from all records, "
            "which this method does not compute on Spark. Choose mean, median or mode."
        )


def ranks(table: Table, name: str, *, counts: Ints | None = None) -> Floats:
    """Compute numbers to sort a column by; missing last.

    Numbers and dates by value, ordinals by their declared order. A nominal with a hierarchy
    by semantic marginality, from the most central category to the most marginal one; without
    one, in the declared order of its categories.

    `counts` says how often each category occurs among all records; by default, in the table.
    """
    kind = table.schema[name].kind
    if kind in {Kind.ORDINAL, Kind.NOMINAL}:
        codes = table.codes(name)
        places = np.append(np.arange(len(table.categories(name))), len(table.categories(name)))
        if table.schema[name].hierarchy:
            if counts is None:
                counts = np.bincount(codes[codes >= 0], minlength=len(places) - 1)
            order = central_first(table, name, counts)
            places[order] = np.arange(order.size)
        return places[codes].astype(np.float64)  # a missing cell has code -1: the last place
    values = table.numbers(name)
    gone = np.isnan(values)
    if not gone.any():
        return values
    last = np.nextafter(np.nanmax(values, initial=0.0), np.inf)
    return np.where(gone, last, values)


def central_first(table: Table, name: str, counts: Ints | None = None) -> Ints:
    """Order categories by semantic marginality; by the hierarchy alone without counts."""
    return marginality_order(path_lengths(top_down(leaf_edges(table, name))), counts)


def _recode_groups(
    table: Table,
    columns: Sequence[str],
    partition: Partition,
    parameters: MicroaggregationParameters,
) -> Table:
    return recode(
        table,
        columns,
        partition,
        aggregate=parameters.aggregate,
        integers=parameters.integers,
    )

"""Insensitive microaggregation: groups of k along a public total order, or one order per group.

Claim: k-anonymity of the protected columns together, proved (see `microaggregation`). An order sees
each record by itself and public quantities only, so bounds or categories must be stated for every
protected column.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, cast

from numpy.typing import NDArray
from pydantic import Field

from shoal.core import Kind
from shoal.errors import InputError, columns_named
from shoal.io.table import Table
from shoal.methods.distributed_rows import Distributed, DistributedRows, RunOrder
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.method import CostModel, DistributedRun, Masked, Setting, Tools
from shoal.partition import insensitive
from shoal.partition.insensitive import Sorted, order_keys
from shoal.policy.values import choice

SOURCE = (
    "Soria-Comas, Domingo-Ferrer, Sánchez and Martínez, Enhancing data utility in differential "
    "privacy via microaggregation-based k-anonymity, VLDB Journal 23 (2014), "
    "doi:10.1007/s00778-014-0351-4"
)


class RecordOrder(StrEnum):
    """A public total order of the records."""

    REFERENCE = "reference"
    LEXICOGRAPHIC = "lexicographic"
    HILBERT = "hilbert"
    CORNERS = "corners"


PublicOrder = Annotated[
    RecordOrder,
    choice(RecordOrder),
    Field(
        title="Public order of the records",
        description="The public order: by distance to the lower corner of the bounds (reference), "
        "by the columns in turn (lexicographic), along a Hilbert curve (hilbert), or a corner for "
        "each group (corners, not on Spark).",
    ),
]


class InsensitiveParameters(MicroaggregationParameters):
    """Parameters of insensitive microaggregation."""

    order: PublicOrder = RecordOrder.REFERENCE


def public_scale_stated(setting: Setting[InsensitiveParameters]) -> None:
    """Refuse columns whose coordinate in the unit box is not public."""
    columns = [setting.schema[name] for name in setting.columns]
    numbers = [column.name for column in columns
               if column.kind in {Kind.NUMERIC, Kind.DATE} and column.bounds is None]  # fmt: skip
    if numbers:
        raise InputError(
            f"{columns_named(numbers)}: expected bounds, because the order must not depend on the "
            "data, found none."
        )
    kinds = {Kind.ORDINAL, Kind.NOMINAL}
    names = [column.name for column in columns
             if column.kind in kinds and column.all_categories is None]  # fmt: skip
    if names:
        raise InputError(
            f"{columns_named(names)}: expected categories or a hierarchy, because the order must "
            "not depend on the data, found none."
        )


def refuse_order_by_group(setting: Setting[Any]) -> None:
    """Refuse, on Spark, the order that differs from group to group."""
    if setting.parameters.order is RecordOrder.CORNERS:
        raise InputError(
            "[protect], order: expected reference, lexicographic or hilbert on Spark, because "
            "'corners' sorts the records again for every group, found corners."
        )


def _refuse_in_blocks(setting: Setting[InsensitiveParameters]) -> None:
    microaggregation.no_medoid(setting)
    refuse_order_by_group(setting)


def _run(table: Table, setting: Setting[InsensitiveParameters], tools: Tools) -> Masked:
    tools.progress("grouping records", 0, 1)
    parameters = setting.parameters
    X = table.unit_matrix(setting.columns)
    partition = insensitive(X, parameters.k, order=parameters.order.value)
    return microaggregation.mask_groups(table, setting, partition)


def _run_distributed(
    rows: DistributedRows, setting: Setting[InsensitiveParameters], tools: Tools
) -> Distributed:
    tools.progress("grouping records", 0, 1)
    order = cast("Sorted", setting.parameters.order.value)
    keys = partial(_keys, names=setting.columns, order=order)
    (groups,) = rows.runs([RunOrder(keys, setting.columns)], setting.parameters.k)
    return Distributed(
        (microaggregation.recode_in_blocks(groups, setting.columns, setting.parameters),)
    )


def _keys(table: Table, names: Sequence[str], order: Sorted) -> Sequence[NDArray[Any]]:
    return order_keys(table.unit_matrix(names), order)


METHOD = microaggregation.joint_method(
    "insensitive",
    "Group k neighbours along a public total order of the records (k-anonymity).",
    _run,
    source=SOURCE,
    parameters=InsensitiveParameters,
    refuse=public_scale_stated,
    distributed=DistributedRun(_run_distributed, _refuse_in_blocks),
    cost=CostModel(0.0, 0.00084, 1.0, 0),
)

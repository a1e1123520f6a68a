"""MDAV microaggregation of mixed records: groups of k to 2k-1, one value per group.

Claim: k-anonymity of the protected columns together, proved (see `microaggregation`). Nothing is
promised about columns that are released unprotected: records of a group may share a
confidential value, or be told apart by it.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from pydantic import Field

from shoal.core import Kind, Partition
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.distributed import blockwise
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.method import CostModel, DistributedRun, Masked, Setting, Tools
from shoal.partition import blocks, mdav

SOURCE = (
    "Domingo-Ferrer and Torra, Ordinal, continuous and heterogeneous k-anonymity through "
    "microaggregation, Data Mining and Knowledge Discovery 11 (2005), "
    "doi:10.1007/s10618-005-0007-5"
)
MEDIAN = "median"


class MdavParameters(MicroaggregationParameters):
    """Parameters of the methods that can work within blocks of the table."""

    blocks: str | None = Field(
        None,
        title="Group within blocks",
        description="Group within blocks of 10,000 records or more, at a linear cost: 'median' "
        "cuts at medians of the widest columns, the name of a protected column with categories by "
        "its values.",
    )


def refuse(setting: Setting[MdavParameters]) -> None:
    """Refuse to form blocks by an unprotected column, or by one without categories."""
    by = setting.parameters.blocks
    if by is None or by == MEDIAN:
        return
    if by not in setting.columns:
        raise InputError(
            f"[protect], blocks: expected a protected column or 'median', found '{by}'."
        )
    if setting.schema[by].kind not in {Kind.ORDINAL, Kind.NOMINAL}:
        raise InputError(f"[protect], blocks: expected a column with categories, found '{by}'.")


def group_records(
    table: Table,
    setting: Setting[MdavParameters],
    tools: Tools,
    method: Callable[..., Partition],
) -> Masked:
    """Group the records by a method, separately within blocks if the policy states blocks."""
    X, k, by = table.records(setting.columns), setting.parameters.k, setting.parameters.blocks
    if by is None:
        return microaggregation.mask_groups(table, setting, method(X, k, progress=tools.progress))
    codes = None
    if by != MEDIAN:
        present = table.codes(by)
        codes = np.where(present < 0, len(table.categories(by)), present)
    partition = blocks(X, k, method=method, by=codes, progress=tools.progress)
    return microaggregation.mask_groups(table, setting, partition)


def refuse_distributed(setting: Setting[MdavParameters]) -> None:
    """Refuse blocks by a column on Spark, where cells are cut by a coarse tree."""
    if setting.parameters.blocks not in {None, MEDIAN}:
        raise InputError(
            "[protect], blocks: on Spark, blocks are the cells of a coarse tree; expected "
            f"'median' or nothing, found '{setting.parameters.blocks}'."
        )


def _run_distributed(
    rows: DistributedRows, setting: Setting[MdavParameters], tools: Tools
) -> Distributed:
    return blockwise.run_blockwise(rows, setting, tools, mdav)


METHOD = microaggregation.joint_method(
    "mdav",
    "Group k similar records and release the group's centre (k-anonymity).",
    partial(group_records, method=mdav),
    source=SOURCE,
    parameters=MdavParameters,
    refuse=refuse,
    distributed=DistributedRun(_run_distributed, refuse_distributed, blockwise.APPROXIMATE),
    cost=CostModel(1.1, 0.0018, 2.1, 0),
)

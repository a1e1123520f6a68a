"""V-MDAV: groups of variable size, k to 2k - 1, extended by close records.

Claim: k-anonymity of the protected columns together, proved (see `microaggregation`).
"""

from functools import partial
from typing import Annotated

from pydantic import Field

from shoal.core import Partition
from shoal.io.table import Table
from shoal.methods.distributed import blockwise
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.grouping import microaggregation
from shoal.methods.mdav import MdavParameters, group_records, refuse, refuse_distributed
from shoal.methods.method import CostModel, DistributedRun, Masked, Setting, Tools
from shoal.partition import vmdav
from shoal.policy.values import MOST, Number

SOURCE = (
    "Solanas and Martínez-Ballesté, V-MDAV: a multivariate microaggregation with variable group "
    "size, COMPSTAT (2006)"
)


class VmdavParameters(MdavParameters):
    """Parameters of V-MDAV."""

    gamma: Annotated[Number, Field(ge=0, le=MOST)] | None = Field(
        None,
        title="How willingly groups grow (gamma)",
        description="How willingly a group grows: 0 never, 0.2 suits scattered and 1.1 clustered "
        "data. By default the best of a fixed grid from 0 to 3.",
    )


def _run(table: Table, setting: Setting[VmdavParameters], tools: Tools) -> Masked:
    return group_records(table, setting, tools, _method(setting))


def _method(setting: Setting[VmdavParameters]) -> partial[Partition]:
    gamma = setting.parameters.gamma
    return partial(vmdav, gamma=None if gamma is None else float(gamma))


def _run_distributed(
    rows: DistributedRows, setting: Setting[VmdavParameters], tools: Tools
) -> Distributed:
    return blockwise.run_blockwise(rows, setting, tools, _method(setting))


METHOD = microaggregation.joint_method(
    "vmdav",
    "Like mdav, with groups that grow where records lie close (k-anonymity).",
    _run,
    source=SOURCE,
    parameters=VmdavParameters,
    refuse=refuse,
    distributed=DistributedRun(_run_distributed, refuse_distributed, blockwise.APPROXIMATE),
    cost=CostModel(0.9, 0.1, 1.0, 0),
)

"""Stable microaggregation of one table, which is MDAV.

The published Algorithm 1 takes two neighbouring tables and groups the second one after the first
(`shoal.partition.stable`). A release has one table, and for one table the algorithm forms the
groups of MDAV. Claim: k-anonymity of the protected columns together, proved (see
`microaggregation`).
"""

from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.method import CostModel, Masked, Setting, Tools
from shoal.partition import mdav

SOURCE = (
    "Iftikhar, Wang and Lin, Publishing differentially private datasets via stable "
    "microaggregation, EDBT (2019), Algorithm 1"
)


def _run(table: Table, setting: Setting[MicroaggregationParameters], tools: Tools) -> Masked:
    X = table.records(setting.columns)
    return microaggregation.mask_groups(
        table, setting, mdav(X, setting.parameters.k, progress=tools.progress)
    )


METHOD = microaggregation.joint_method(
    "stable",
    "Stable microaggregation; on a single table it is mdav (k-anonymity).",
    _run,
    source=SOURCE,
    cost=CostModel(0.7, 0.094, 1.0, 0),
)

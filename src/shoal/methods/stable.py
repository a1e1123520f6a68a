"""Stable microaggregation on one table, which is MDAV.

The published Algorithm 1 takes two neighbouring tables and groups the second one after the first
(`shoal.partition.stable`). A release has one table, and for one table the algorithm forms the
groups of MDAV. Claim: k-anonymity of the protected columns together, proved (see `grouping`).
"""

from shoal.core import Partition, Progress
from shoal.methods import grouping
from shoal.methods.grouping import Grouping
from shoal.methods.method import Method, Setting
from shoal.partition import mdav
from shoal.table import Table

SOURCE = (
    "Iftikhar, Wang and Lin, Publishing differentially private datasets via stable "
    "microaggregation, EDBT (2019), Algorithm 1"
)


def _group(table: Table, setting: Setting[Grouping], progress: Progress) -> Partition:
    return mdav(table.matrix(setting.columns), setting.parameters.k, progress=progress)


METHOD = Method(
    name="stable",
    summary="Stable microaggregation; on a single table it is mdav (k-anonymity).",
    parameters=Grouping,
    forms=grouping.FORMS,
    claims=grouping.joint_claims(SOURCE),
    run=grouping.run_joint(_group),
    reference=SOURCE,
    example={"k": 5},
    not_claimed=grouping.bare_columns,
)

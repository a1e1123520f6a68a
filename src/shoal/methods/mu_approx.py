"""Mu-Approx: groups cut from a forest of nearest neighbours.

Claim: k-anonymity of the protected columns together, proved (see `microaggregation`).
"""

from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.method import CostModel, Masked, Setting, Tools
from shoal.partition import mu_approx

SOURCE = (
    "Domingo-Ferrer, Sebé and Solanas, A polynomial-time approximation to optimal multivariate "
    "microaggregation, Computers & Mathematics with Applications 55 (2008), "
    "doi:10.1016/j.camwa.2007.04.034"
)


def _run(table: Table, setting: Setting[MicroaggregationParameters], tools: Tools) -> Masked:
    tools.progress("grouping records", 0, 1)
    partition = mu_approx(table.records(setting.columns), setting.parameters.k)
    return microaggregation.mask_groups(table, setting, partition)


METHOD = microaggregation.joint_method(
    "mu-approx",
    "Group records along a forest of nearest neighbours (k-anonymity).",
    _run,
    source=SOURCE,
    cost=CostModel(1.0, 0.42, 1.5, 120),
)

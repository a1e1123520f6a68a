"""Mu-Approx: groups cut from a forest of near neighbours.

Claim: k-anonymity of the protected columns together, proved (see `grouping`).
"""

from shoal.methods import grouping
from shoal.methods.grouping import Grouping
from shoal.methods.method import Masked, Setting, Tools
from shoal.partition import mu_approx
from shoal.table import Table

SOURCE = (
    "Domingo-Ferrer, Sebé and Solanas, A polynomial-time approximation to optimal multivariate "
    "microaggregation, Computers & Mathematics with Applications 55 (2008), "
    "doi:10.1016/j.camwa.2007.04.034"
)


def _run(table: Table, setting: Setting[Grouping], tools: Tools) -> Masked:
    tools.progress("grouping records", 0, 1)
    partition = mu_approx(table.matrix(setting.columns), setting.parameters.k)
    return grouping.masked(table, setting, partition)


METHOD = grouping.joint_method(
    "mu-approx",
    "Group records along a forest of near neighbours (k-anonymity).",
    _run,
    source=SOURCE,
)

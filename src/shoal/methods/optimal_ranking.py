"""Optimal ranking: each column is cut into groups of k to 2k-1 by rank, with the least loss.

Claim: k-anonymity of each protected column by itself, proved (see `grouping`). Not claimed: joint
k-anonymity, as for `individual-ranking`.
"""

from shoal.methods import grouping
from shoal.methods.grouping import Grouping
from shoal.methods.method import Method
from shoal.partition import optimal_ranking

SOURCE = (
    "Hansen and Mukherjee, A polynomial algorithm for optimal univariate microaggregation, IEEE "
    "Transactions on Knowledge and Data Engineering 15 (2003), doi:10.1109/TKDE.2003.1209020"
)

METHOD = Method(
    name="optimal-ranking",
    summary="Like individual-ranking, with the cuts of least loss (k-anonymity a column).",
    parameters=Grouping,
    forms=grouping.FORMS,
    claims=grouping.column_claims(SOURCE),
    run=grouping.run_columns(optimal_ranking),
    reference=SOURCE,
    example={"k": 5},
    not_claimed=grouping.no_joint_promise,
)

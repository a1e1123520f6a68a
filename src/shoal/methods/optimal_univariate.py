"""Optimal univariate groups: divide each column by rank into groups of k to 2k - 1, of least loss.

Claim: k-anonymity of each protected column by itself, proved (see `microaggregation`). Not claimed:
joint k-anonymity, as for `individual-ranking`.

On Spark the sorted values of a column come to the driver, which finds the cuts: one column at a
time, about 60 bytes per record (value, scaled value, sums, costs and beginnings).
"""

from shoal.methods.grouping import microaggregation
from shoal.methods.method import CellFacts, CostModel
from shoal.partition import optimal_univariate
from shoal.partition.univariate import optimal_begins

SOURCE = (
    "Hansen and Mukherjee, A polynomial algorithm for optimal univariate microaggregation, IEEE "
    "Transactions on Knowledge and Data Engineering 15 (2003), doi:10.1109/TKDE.2003.1209020"
)

METHOD = microaggregation.column_method(
    "optimal-univariate",
    "Like individual-ranking, with optimal cuts (k-anonymity of each column).",
    optimal_univariate,
    source=SOURCE,
    cut=microaggregation.present_cut(optimal_begins),
    cost=CostModel(0.8, 0.00084, 1.0, 0),
    cells=CellFacts(by_column=True),
)

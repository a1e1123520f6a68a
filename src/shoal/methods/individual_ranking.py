"""Individual ranking: sort each column separately, and average blocks of k.

Claim: k-anonymity of each protected column by itself, proved (see `microaggregation`); a missing
cell is sorted last and takes part in the blocks like any other.

Not claimed: joint k-anonymity. On the 13 Census columns at k=3, 1,080 of 1,080 released rows are
unique. An attacker who knows two columns roughly finds the record.
"""

from shoal.methods.grouping import microaggregation
from shoal.methods.method import CellFacts, CostModel
from shoal.partition import individual_ranking

SOURCE = (
    "Defays and Nanopoulos, Panels of enterprises and confidentiality: the small aggregates "
    "method, Statistics Canada Symposium (1992); Sánchez, Domingo-Ferrer and Martínez, "
    "Improving the utility of differential privacy via univariate microaggregation, "
    "Privacy in Statistical Databases (2014)"
)

METHOD = microaggregation.column_method(
    "individual-ranking",
    "Sort each column separately and average blocks of k (k-anonymity of each column).",
    individual_ranking,
    source=SOURCE,
    cost=CostModel(0.0, 0.0, 1.0, 0),
    cells=CellFacts(by_column=True),
)

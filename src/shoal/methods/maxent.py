"""Noisy tables of the columns, and rows from the distribution of greatest entropy near them.

Claim: epsilon, proved, for change-one neighbours; the theorem and the plan (which tables, how many
groups, which share of epsilon) are in `shoal.synthesis.maxent`, and
`shoal.methods._shared.synthesis` says what happens around it.
"""

from shoal.methods._shared.synthesis import (
    COVERS,
    MARGINALS,
    PRIVTREE,
    SynthesisParameters,
    Synthesizer,
    anywhere,
    synthetic_method,
)
from shoal.synthesis.maxent import maxent

METHOD = synthetic_method(
    "maxent",
    "Count tables of the columns with noise, draw rows of most entropy (differential privacy).",
    lambda _task, _setting: Synthesizer(maxent),
    parameters=SynthesisParameters,
    basis=(
        "a changed record moves the counts of each table by 2 in all, and the trees of numbers as "
        "in privtree; which tables are counted is public, or chosen by permute-and-flip, which is "
        "paid for; over which groups follows from noisy counts, and whether a tree takes their "
        "place from a noisy answer that is paid for; rows are drawn from noisy answers"
    ),
    source=f"{MARGINALS}; for covers of pairs {COVERS}; for numbers {PRIVTREE}",
    unsupported=(
        "Interactions beyond the tables that were counted: mostly pairs, over groups of values.",
    ),
    refuse_distributed=anywhere,
)

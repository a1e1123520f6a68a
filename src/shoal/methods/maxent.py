"""Noisy tables of the columns, and rows from the distribution of greatest entropy near them.

Claim: epsilon, proved, for change-one neighbours; the theorem and the plan (which tables, how many
groups, which share of epsilon) are in `shoal.synthesis.maxent.generate`, and
`shoal.methods._shared.synthesis` says what happens around it.
"""

from shoal.methods._shared.synthesis import (
    COVERS,
    MARGINALS,
    PRIVTREE,
    SynthesisParameters,
    SynthesisTask,
    anywhere,
    synthetic_method,
)
from shoal.methods.method import Setting, Tools
from shoal.synthesis.domain import SyntheticRows
from shoal.synthesis.maxent.generate import MaxentPlan, maxent


def draw(task: SynthesisTask, tools: Tools, *, tables: MaxentPlan | None = None) -> SyntheticRows:
    """Run the mechanism with what a method is lent."""
    return maxent(
        task.codes,
        task.attributes,
        epsilon=task.epsilon,
        noise=tools.noise,
        rng=tools.rng,
        tables=tables,
        progress=tools.progress,
    )


def _draw(
    task: SynthesisTask, _setting: Setting[SynthesisParameters], tools: Tools
) -> tuple[SyntheticRows, tuple[str, ...]]:
    return draw(task, tools), ()


METHOD = synthetic_method(
    "maxent",
    "Count tables of the columns with noise, draw rows of most entropy (differential privacy).",
    _draw,
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
    refuse_spread=anywhere,
)

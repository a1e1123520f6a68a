"""Noisy marginals of the columns, and rows from the maximum-entropy distribution that fits them.

Claim: epsilon, proved, for change-one neighbours; the theorem and the plan (which marginals, how
many groups, which share of epsilon) are in `shoal.synthesis.maxent`, and
`shoal.methods._shared.synthesis` says what happens around it.
"""

from functools import partial

from shoal.methods._shared.synthesis import (
    COVERS,
    MARGINALS,
    PRIVTREE,
    SynthesisParameters,
    SynthesisTask,
    Synthesizer,
    anywhere,
    synthetic_method,
)
from shoal.methods.method import Setting
from shoal.synthesis.maxent import maxent, maxent_plan


def _choose(task: SynthesisTask, _setting: Setting[SynthesisParameters]) -> Synthesizer:
    plan = maxent_plan(task.domains, n=len(task.codes), epsilon=task.epsilon)
    return Synthesizer(partial(maxent, plan=plan), plan=plan)


METHOD = synthetic_method(
    "maxent",
    "Measure noisy marginals, draw rows from the maximum-entropy fit (differential privacy).",
    _choose,
    parameters=SynthesisParameters,
    basis=(
        "a changed record moves the counts of each marginal by 2 in total, and the trees of "
        "numeric columns as in privtree; which marginals are measured is public, or selected by "
        "permute-and-flip, which is paid for; how values are grouped depends on noisy counts "
        "alone, and whether a tree replaces the marginals depends on a noisy answer that is "
        "paid for; rows are drawn from the noisy answers alone"
    ),
    source=f"{MARGINALS}; for covers of pairs {COVERS}; for numeric columns {PRIVTREE}",
    unsupported=(
        (
            "Dependence beyond the marginals that were measured: mostly two-way, over groups of "
            "values."
        ),
    ),
    refuse_distributed=anywhere,
)

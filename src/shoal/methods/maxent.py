"""Rows from the maximum-entropy distribution that fits noisy marginals.

Claim: epsilon, proved, for change-one and for add-remove neighbours; the theorem and the plan
(which marginals, how many groups, which share of epsilon) are in `shoal.synthesis.maxent`, and
`shoal.methods.drawn_rows.synthesis` says what happens around it.
"""

from functools import partial

from shoal.methods.drawn_rows.synthesis import (
    COVERS,
    MARGINALS,
    PRIVTREE,
    SynthesisTask,
    Synthesizer,
    anywhere,
    synthetic_method,
)
from shoal.methods.drawn_rows.synthesis_prices import DeltaParameters, fit_cost
from shoal.methods.method import Setting
from shoal.synthesis.maxent import maxent, plan_of


def _choose(task: SynthesisTask, _setting: Setting[DeltaParameters]) -> Synthesizer:
    plan = plan_of(task.domains, n=task.total.rows, price=task.price, zeros=task.zeros)
    return Synthesizer(partial(maxent, plan=plan, zeros=task.zeros), plan=plan)


METHOD = synthetic_method(
    "maxent",
    "Measure noisy marginals, draw rows from the maximum-entropy fit (differential privacy).",
    _choose,
    parameters=DeltaParameters,
    basis=(
        "a changed record moves the counts of each marginal by 2 in total, and the trees of "
        "columns of more than 256 values as in privtree; which marginals are measured is public, "
        "or selected by permute-and-flip, which is paid for; how values are grouped depends on "
        "noisy counts alone; rows are drawn from the noisy answers alone"
    ),
    added=(
        "a record that comes or goes moves the counts of each marginal by 1, and the trees of "
        "columns of more than 256 values as in privtree; the number of rows is measured with "
        "noise, and so is all that follows from it; which marginals are measured follows from "
        "noisy answers, or is selected by permute-and-flip, which is paid for; rows are drawn "
        "from noisy answers"
    ),
    source=f"{MARGINALS}; for covers of pairs {COVERS}; for numeric columns {PRIVTREE}",
    unsupported=(
        (
            "Dependence beyond the marginals that were measured: mostly two-way, over groups of "
            "values."
        ),
    ),
    refuse_distributed=anywhere,
    cost=fit_cost,
)

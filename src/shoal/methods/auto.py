"""Choose among `privtree`, `copula` and `maxent` by public facts, and say why.

Claim: epsilon, proved, for change-one neighbours. The rule (`shoal.synthesis.auto`) looks at
the kinds and sizes of the columns, the number of rows, epsilon and the goal, never at a record;
each of the mechanisms is proved at the same price. What was chosen, why, and what to expect of it
stands in the notes of the manifest.
"""

from typing import Annotated

from pydantic import Field

from shoal.core import Kind
from shoal.errors import InputError
from shoal.methods import copula, maxent, privtree
from shoal.methods._shared.synthesis import (
    COPULA,
    MARGINALS,
    PRIVTREE,
    SynthesisParameters,
    SynthesisTask,
    synthetic_method,
)
from shoal.methods.method import Setting, Tools
from shoal.policy.spec import choice
from shoal.synthesis.auto import Goal, choose
from shoal.synthesis.copula import Margins
from shoal.synthesis.domain import SyntheticRows
from shoal.synthesis.maxent.generate import GROWN, PairMarginals
from shoal.synthesis.privtree import Fill


class AutoParameters(SynthesisParameters):
    """Parameters of the choice."""

    goal: Annotated[Goal, choice(Goal)] = Field(
        Goal.COUNTS, description="What the rows are wanted for: counts, or means and distances."
    )


def _draw(
    task: SynthesisTask, setting: Setting[AutoParameters], tools: Tools
) -> tuple[SyntheticRows, tuple[str, ...]]:
    goal = setting.parameters.goal
    chosen = choose(task.attributes, n=task.rows, epsilon=task.epsilon, goal=goal)
    if isinstance(chosen.plan, Fill):
        drawn, how = privtree.draw(task, tools, fill=chosen.plan), f"fill {chosen.plan}"
    elif isinstance(chosen.plan, Margins):
        drawn, how = copula.draw(task, tools, margins=chosen.plan), f"margins {chosen.plan}"
    else:
        drawn = maxent.draw(task, tools, tables=chosen.plan)
        how = _HOW.get(drawn.facts["tables"], f"tables {chosen.plan.tables}")
    what = f"auto chose {chosen.mechanism}, {how}, for the goal {goal}."
    return drawn, (what, *chosen.why, *chosen.warnings)


_HOW = {GROWN: "a tree in place of tables", PairMarginals.NONE.value: "the counts of the column"}


def _no_copula(setting: Setting[AutoParameters]) -> None:
    """Refuse where the choice may fall on copula, which must see the records."""
    kinds = {setting.schema[name].kind for name in setting.columns}
    if setting.parameters.goal is Goal.MEANS and kinds <= {Kind.NUMERIC, Kind.DATE}:
        raise InputError(
            "[protect], goal: for means of numbers alone the choice may fall on copula, which does "
            "not run on Spark. Use goal counts, or privtree or maxent."
        )


METHOD = synthetic_method(
    "auto",
    "Choose privtree, copula or maxent by public facts, and say why (differential privacy).",
    _draw,
    parameters=AutoParameters,
    basis=(
        "the choice follows from the columns' kinds and sizes, the number of rows, epsilon and the "
        "goal, all public; privtree, copula and maxent each have a proof at the same price"
    ),
    source=f"{PRIVTREE}; {COPULA}; {MARGINALS}",
    unsupported=(
        "Interactions beyond pairs of columns, some threes aside, and the goal not chosen.",
    ),
    refuse_spread=_no_copula,
)

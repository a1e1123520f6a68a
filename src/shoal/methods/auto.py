"""Choose among `privtree`, `copula` and `maxent` by public facts, and say why.

Claim: epsilon, proved, for change-one and for add-remove neighbours. The rule
(`shoal.synthesis.auto`) uses the kinds and sizes of the columns, the number of rows (the noisy
one, where it is not public), epsilon and the goal, never a record;
each of the mechanisms is proved at the same price. What was chosen, why, and what to expect of it
stands in the notes of the manifest.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from shoal.core import Kind
from shoal.errors import InputError
from shoal.methods.drawn_rows.synthesis import (
    COPULA,
    MARGINALS,
    PRIVTREE,
    SynthesisTask,
    Synthesizer,
    synthetic_method,
)
from shoal.methods.drawn_rows.synthesis_prices import DeltaParameters, fit_cost
from shoal.methods.method import Setting
from shoal.policy.values import choice
from shoal.synthesis.auto import Goal, choose
from shoal.synthesis.copula import Margins, copula
from shoal.synthesis.maxent import MaxentPlan, PairMarginals, maxent
from shoal.synthesis.privtree import Fill, privtree


class AutoParameters(DeltaParameters):
    """Parameters of the choice."""

    goal: Annotated[Goal, choice(Goal)] = Field(
        Goal.COUNTS,
        title="What the rows are wanted for",
        description="What the rows are wanted for: counts, or means and squared distances (means).",
    )


def _choose(task: SynthesisTask, setting: Setting[AutoParameters]) -> Synthesizer:
    goal = setting.parameters.goal
    chosen = choose(
        task.domains,
        n=task.total.rows,
        price=task.price,
        goal=goal,
        zeros=task.zeros,
        constrained=bool(setting.constraints.rules),
    )
    plan = chosen.plan
    marginals = plan if isinstance(plan, MaxentPlan) else None
    if isinstance(plan, Fill):
        name, generate, how = "privtree", partial(privtree, fill=plan), f"fill {plan}"
    elif isinstance(plan, Margins):
        name, generate, how = "copula", partial(copula, margins=plan), f"margins {plan}"
    else:
        name, how = "maxent", f"marginals {plan.marginals}"
        generate = partial(maxent, plan=plan, zeros=task.zeros)

    def notes(facts: Mapping[str, Any]) -> tuple[str, ...]:
        ran = _HOW.get(facts.get("marginals", ""), how)
        what = f"auto chose {name} ({ran}) for the goal '{goal}'."
        return (what, *chosen.why, *chosen.warnings)

    return Synthesizer(generate, notes, marginals, padded=isinstance(plan, Margins))


_HOW = {PairMarginals.NONE.value: "one-way marginals alone"}


def _may_be_copula(setting: Setting[AutoParameters]) -> bool:
    """Whether copula may be chosen, whatever the number of rows."""
    kinds = {setting.schema[name].kind for name in setting.columns}
    if setting.constraints.rules:
        return False
    return setting.parameters.goal is Goal.MEANS and kinds <= {Kind.NUMERIC, Kind.DATE}


def _no_copula(setting: Setting[AutoParameters]) -> None:
    """Refuse settings in which copula may be chosen, which must see the records."""
    if _may_be_copula(setting) and setting.parameters.rho is None:
        raise InputError(
            "[protect], goal: with numeric columns only and the goal 'means', auto may choose "
            "copula, which does not run on Spark. Use goal = 'counts', or the method privtree "
            "or maxent."
        )


METHOD = synthetic_method(
    "auto",
    "Choose privtree, copula or maxent from public facts, and say why (differential privacy).",
    _choose,
    parameters=AutoParameters,
    basis=(
        "the choice depends only on the columns' kinds and domain sizes, the number of rows, "
        "epsilon and the goal, which are all public; privtree, copula and maxent are each "
        "proved for the same epsilon"
    ),
    added=(
        "the number of rows is measured with noise, and the choice follows from it, from the "
        "columns' kinds and sizes, epsilon and the goal; privtree and maxent have a proof for a "
        "record that comes or goes, and copula is shown as many records as the noisy number says, "
        "of which such a record changes one"
    ),
    source=f"{PRIVTREE}; {COPULA}; {MARGINALS}",
    unsupported=(
        (
            "Dependence among three or more columns, except in the marginals of as many that were "
            "measured, and the goal that was not chosen."
        ),
    ),
    refuse_distributed=_no_copula,
    pure=_may_be_copula,
    cost=fit_cost,
)

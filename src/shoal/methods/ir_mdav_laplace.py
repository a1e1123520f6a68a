"""MDAV on each column separately, then noise: IR_MDAV+DP_1 and DP_2 of soriacomas2017.

`split = "equal"` is DP_1, `split = "proportional"` DP_2 (Expression 1, Proposition 3).

MDAV on one column takes k values from the lower and k from the upper end in turn. If k divides the
number of rows n, or floor(n / k) is odd, its groups are blocks of the sorted column whose
boundaries depend on n and k alone, and Lemma 1 of sanchez2014 applies: released `column-shuffled`,
it costs epsilon, proved. Otherwise the data decide whether the larger group is the last or the last
but one, and it carries its records' values with it: `counterexample` has group sums that move by 2k
+ 1 widths. As a table, the release carries the two claims of `mdav-laplace`.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from shoal.core import Claim, ReleaseForm
from shoal.io.table import Table
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.methods.ir_laplace import TABLE_BASIS
from shoal.methods.ir_laplace import counterexample as off_the_diagonal
from shoal.methods.mdav_laplace import CONDITIONAL_BASIS, SOURCE, two_readings
from shoal.methods.method import CostModel, Masked, Pair, Promises, Setting, Tools
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import (
    NoisyGroupParameters,
    NominalOrder,
    Split,
)
from shoal.partition import mdav
from shoal.policy.values import choice


class IrMdavLaplaceParameters(NoisyGroupParameters):
    """Parameters of IR_MDAV+DP."""

    split: Annotated[Split, choice(Split)] = Field(
        Split.EQUAL,
        title="How epsilon is divided",
        description="How epsilon is divided over the m columns: epsilon / m for each (equal, the "
        "paper's DP_1), or in proportion to the widths (proportional, DP_2).",
    )


def counterexample(k: int) -> Pair:
    """Make a pair with 2k + 1 values 0 and 2k values 1, in which one 0 becomes 1.

    The last k + 1 values to be grouped are those of the majority: group sums are 0, k, k
    and, of the larger group, 0; then 0, 0, k and k + 1. They move by 2k + 1 in all.
    """
    before = np.repeat([0.0, 1.0], [2 * k + 1, 2 * k])[:, None]
    after = before.copy()
    after[0] = 1.0
    event = (
        "with 4k + 1 records at the two ends of a column, the larger group lies at the end that "
        "has the majority; changing one record moves it to the other end, and the group sums "
        "move by 2k + 1 widths, while the noise is scaled for one"
    )
    return Pair(before, after, event)


def _claims(setting: Setting[IrMdavLaplaceParameters]) -> tuple[Claim, ...]:
    k = setting.parameters.k
    if setting.release_form is ReleaseForm.COLUMN_SHUFFLED or epsilon_claims.one_list(
        setting, ranked=True
    ):
        refutation = f"counterexample: {counterexample(k).event}"
        return (epsilon_claims.list_claim(setting, k, refutation=refutation),)
    refutation = TABLE_BASIS.format(event=off_the_diagonal(2).event)
    return two_readings(
        setting,
        basis=CONDITIONAL_BASIS,
        source=SOURCE,
        refutation=refutation,
        assumes=[epsilon_claims.FIXED_GROUPS],
        instead=f"{epsilon_claims.keep_links('4.8%')}. Released column-shuffled, the noisy "
        "means have a proof where k divides the number of rows",
    )


def _run(table: Table, setting: Setting[IrMdavLaplaceParameters], tools: Tools) -> Masked:
    parameters = setting.parameters
    given = noisy_microaggregation.put_on_grids(table, setting, ranked=NominalOrder.DECLARED)
    epsilon = contributions.row_epsilon(setting)
    prices = noisy_microaggregation.budgets(given, epsilon, parameters.split)
    parts = [
        (axis, mdav(axis.places[:, None], parameters.k), Purchase(axis.name, price))
        for axis, price in zip(given, prices, strict=True)
    ]
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


METHOD = noisy_microaggregation.noisy_method(
    "ir-mdav-laplace",
    "MDAV on each column separately, then noise (conditional epsilon).",
    _run,
    Promises(_claims, counterexample=counterexample),
    source=SOURCE,
    parameters=IrMdavLaplaceParameters,
    forms=noisy_microaggregation.BY_COLUMN,
    cost=CostModel(1.0, 0.32, 0.8, 0),
)

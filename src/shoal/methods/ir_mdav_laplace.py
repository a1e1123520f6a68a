"""MDAV on each column by itself, then noise: IR_MDAV+DP_1 and DP_2 of soriacomas2017.

`split = "equal"` is DP_1, `split = "proportional"` DP_2 (Expression 1, Proposition 3).

MDAV on one column takes k values from the lower and k from the upper end in turn. If k divides the
number of rows n, or floor(n / k) is odd, its groups are blocks of the sorted column whose
boundaries depend on n and k alone, and Lemma 1 of sanchez2014 applies: as marginals the release
costs epsilon, proved. Otherwise the larger group is the last but one or the last, as the data
will: `counterexample` has group sizes by rank [4, 4, 6, 4] and [4, 6, 4, 4] for n=18, k=4, which
multiplicities show. As a table, the release carries the two claims of `mdav-laplace`.
"""

from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field

from shoal.core import Claim, ReleaseForm
from shoal.mechanism.perturb import Purchase
from shoal.methods import noisy
from shoal.methods.ir_laplace import TABLE_BASIS
from shoal.methods.ir_laplace import counterexample as off_the_diagonal
from shoal.methods.mdav_laplace import CONDITIONAL_BASIS, SOURCE, two_readings
from shoal.methods.method import Masked, Method, Pair, Setting, Tools
from shoal.methods.noisy import NoisyGroups, Split
from shoal.partition import mdav
from shoal.policy import choice
from shoal.table import Table


class Divided(NoisyGroups):
    """Parameters of IR_MDAV+DP."""

    split: Annotated[Split, choice(Split)] = Field(
        Split.EQUAL, description="How epsilon is divided: equal (DP_1) or proportional (DP_2)."
    )


def counterexample(_k: int) -> Pair:
    """Eighteen values at k=4: one of them decides on which side the larger group lies."""
    before = np.array([0.0] * 4 + [0.45] + [0.5] * 9 + [1.0] * 4)[:, None]
    after = before.copy()
    after[4] = 0.55
    event = (
        "with 18 rows at k=4 the larger group is the second or the third by rank, depending on one "
        "record, and the multiplicities of values show which"
    )
    return Pair(before, after, event)


def _claims(setting: Setting[Divided]) -> tuple[Claim, ...]:
    k = setting.parameters.k
    if setting.release_form is ReleaseForm.MARGINALS or noisy.one_list(setting):
        refutation = f"counterexample: {counterexample(k).event}"
        return (noisy.list_claim(setting, k, refutation=refutation),)
    refutation = TABLE_BASIS.format(event=off_the_diagonal(2).event)
    return two_readings(
        setting,
        basis=CONDITIONAL_BASIS,
        source=SOURCE,
        refutation=refutation,
        assumes=[noisy.FIXED_GROUPS],
    )


def _run(table: Table, setting: Setting[Divided], tools: Tools) -> Masked:
    parameters = setting.parameters
    given = noisy.axes(table, setting, ranked=True)
    prices = noisy.budgets(given, Fraction(parameters.epsilon), parameters.split)
    parts = [
        (axis, mdav(axis.places[:, None], parameters.k), Purchase(axis.name, price))
        for axis, price in zip(given, prices, strict=True)
    ]
    return Masked(*noisy.perturbed(table, tools, parts))


METHOD = Method(
    name="ir-mdav-laplace",
    summary="MDAV on each column by itself, then noise (soriacomas2017, DP_1 and DP_2).",
    parameters=Divided,
    forms=(ReleaseForm.MARGINALS, ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED),
    claims=_claims,
    run=_run,
    reference=SOURCE,
    example={"epsilon": 1, "k": 5},
    default_columns=noisy.protected_columns,
    refuse=noisy.no_public_columns,
    must_choose_form=True,
    noisy=True,
    counterexample=counterexample,
)

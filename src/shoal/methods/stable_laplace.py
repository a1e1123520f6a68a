"""Stable microaggregation, then noise: iftikhar2019 (S-MDAV).

The paper's Algorithm 1 takes a pair of neighbouring tables X and Y and groups Y after X, so at
most two groups differ, in one record each; noise of scale 2 Delta / (k epsilon) then hides the
difference between that pair. The paper leaves open whether Delta is a column's width or the sum
over columns: `sensitivity`.

Conditional: given that the neighbour is grouped after this very table, as Algorithm 1 does. With
`per-attribute`, every column is noised for the whole epsilon, so m columns cost m epsilon.

Refuted, for the original records: a mechanism sees one table. Run on X it forms the groups of
MDAV(X), run on Y those of MDAV(Y), and these may differ everywhere: in `two_ends` of
`mdav-laplace`, for every k, the sums of the groups move by 2k widths where the noise is scaled for
two.
"""

from enum import StrEnum
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from shoal.core import Claim
from shoal.io.table import Table
from shoal.methods.mdav_laplace import one_column_claims, two_ends, two_readings
from shoal.methods.method import CostModel, Masked, Promises, Setting, Tools
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import ScaledParameters, Split
from shoal.methods.stable import SOURCE
from shoal.partition import mdav
from shoal.policy.values import choice


class DeltaReading(StrEnum):
    """The meaning of Delta if a table has several columns."""

    PER_ATTRIBUTE = "per-attribute"
    SUMMED = "summed"


class StableLaplaceParameters(ScaledParameters):
    """Parameters of S-MDAV."""

    sensitivity: Annotated[DeltaReading, choice(DeltaReading)] = Field(
        DeltaReading.PER_ATTRIBUTE,
        title="Reading of the sensitivity",
        description="What the sensitivity Delta is, which the paper leaves open: a column's "
        "width, so m columns "
        "cost m epsilon (per-attribute), or the sum of all widths (summed).",
    )


def _claims(setting: Setting[StableLaplaceParameters]) -> tuple[Claim, ...]:
    k = setting.parameters.k
    if epsilon_claims.one_list(setting):
        return (
            *one_column_claims(setting, k),
            epsilon_claims.claim_shared_rows(setting, k, SOURCE),
        )
    stated = Fraction(setting.parameters.epsilon)
    per_attribute = setting.parameters.sensitivity is DeltaReading.PER_ATTRIBUTE
    claims = two_readings(
        setting,
        epsilon=stated * len(setting.columns) if per_attribute else stated,
        basis="the paper's Definition 3.1: between two neighbouring tables at most two groups "
        "differ, in one record each, so noise of scale 2 Delta / (k epsilon) suffices for them"
        + ("; each column costs epsilon" if per_attribute else ""),
        source=SOURCE,
        refutation="counterexample: a mechanism sees one table only, and groups it as MDAV does; "
        f"{two_ends(2).event}",
        assumes=["the neighbouring table is grouped to match this one, as in Algorithm 1"],
        about="a neighbouring table that is grouped to match",
        instead=f"{epsilon_claims.keep_links('13%')}. 'insensitive-laplace' in canonical form "
        "changes each group in at most one record, which is proved; counts are off by 20% "
        "(k = 1000)",
    )
    return (*claims, epsilon_claims.claim_shared_rows(setting, k, SOURCE))


def _run(table: Table, setting: Setting[StableLaplaceParameters], tools: Tools) -> Masked:
    parameters = setting.parameters
    given = noisy_microaggregation.put_on_grids(table, setting)
    X = noisy_microaggregation.matrix(
        given, parameters.scale, codes=noisy_microaggregation.nominal_codes(table, given)
    )
    partition = mdav(X, parameters.k, progress=tools.progress)
    epsilon = contributions.row_epsilon(setting)
    if parameters.sensitivity is DeltaReading.SUMMED:
        prices = noisy_microaggregation.budgets(given, epsilon, Split.PROPORTIONAL)
    else:
        # As published: each column is noised for the whole epsilon, which the accounting sums up.
        prices = [epsilon] * len(given)
    parts = noisy_microaggregation.each(given, partition, prices, touched=2)
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


METHOD = noisy_microaggregation.noisy_method(
    "stable-laplace",
    "Group records by MDAV, add noise for two changed groups (k-anonymity; conditional epsilon).",
    _run,
    Promises(_claims, counterexample=two_ends),
    source=SOURCE,
    parameters=StableLaplaceParameters,
    cost=CostModel(0.9, 0.39, 1.2, 9),
)

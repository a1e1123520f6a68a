"""Individual ranking, then Laplace noise on the block means: sanchez2014, Algorithm 1.

What is proved. Lemma 1 of the paper: the sorted block means of a column move by at most width / k
in all when one record changes (`mechanism.microaggregate_noise` has the proof for sums). So each
column's list of noisy block means costs its epsilon_j, and the lists together, with nothing that
says which row has which block, cost epsilon: release form `column-shuffled`. The same with one
column, whose shuffled rows are such a list.

What is refuted. Lemma 4 of the paper says that the table costs as much as its columns together:
m epsilon for epsilon per column, which is our epsilon for the release. The table also shows which
records share a block of each column, and that is not noisy. `counterexample`: row-aligned, two
records are equal in one table and not in its neighbour; shuffled, with two columns or more, the
number of distinct rows is 2 in one table and 4 in its neighbour.

Nominals. The paper leaves categories for later. Here a nominal column of c categories becomes the
column of their places, 0 to c - 1, in a public order: the declared one, or that of semantic
marginality, m(a) = sum of the path lengths d(a, b) over all categories b of the hierarchy, from the
most central category to the most marginal one, ties as declared. Proof that Lemma 1 applies. The
order is a function of the hierarchy, which the policy states, so both tables have the same
one, and the place of a record is a function of its own cell. Changing one record changes one place,
by at most c - 1; the column of places is a column of numbers of width c - 1. Rounding a noisy mean
place and looking up its category are post-processing. The published marginality counts how
often each category occurs in the table. Then one record can reorder the categories, every place
moves, and nothing is proved: so counts are not used.
"""

from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.core import Claim, ReleaseForm, Status
from shoal.io.table import Table
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.methods.distributed_rows import Distributed, DistributedRows, RunOrder
from shoal.methods.method import CostModel, DistributedRun, Masked, Pair, Promises, Setting, Tools
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import (
    NoisyGroupParameters,
    NominalOrder,
    Split,
)
from shoal.partition import individual_ranking
from shoal.policy.values import choice

SOURCE = (
    "Sánchez, Domingo-Ferrer and Martínez, Improving the utility of differential privacy via "
    "univariate microaggregation, Privacy in Statistical Databases (2014), Algorithm 1"
)
TABLE_BASIS = (
    "counterexample: the release shows without noise which records share a block; {event}. "
    "Lemma 1 holds for the block means themselves: release them column-shuffled"
)


class IndividualRankingLaplaceParameters(NoisyGroupParameters):
    """Parameters of individual ranking with noise."""

    isotonic: bool = Field(
        default=False,
        title="Smooth the noisy means",
        description="Make the noisy block means non-decreasing again, which removes noise and "
        "costs no epsilon. The paper does not do this.",
    )
    nominal_order: Annotated[NominalOrder, choice(NominalOrder)] = Field(
        NominalOrder.DECLARED,
        title="Order of categories",
        description="How a nominal is sorted: as declared, or from the most central category of "
        "its hierarchy to the most marginal one (marginality).",
    )


def counterexample(k: int) -> Pair:
    """Make two blobs on the diagonal of the unit square; one record moves off it.

    If rows are aligned, the first column of records 0 and 1 distinguishes the tables; if shuffled,
    the number of distinct rows does.
    """
    before = np.repeat([[0.1, 0.1], [0.9, 0.9]], k, axis=0)
    after = before.copy()
    after[0] = [1.0, 0.1]
    event = (
        "with two clusters of k records on a diagonal, moving one record off it turns 2 "
        "distinct rows into 4 and makes two equal records different"
    )
    return Pair(before, after, event)


def _claims(setting: Setting[IndividualRankingLaplaceParameters]) -> tuple[Claim, ...]:
    if setting.release_form is ReleaseForm.COLUMN_SHUFFLED or epsilon_claims.one_list(
        setting, ranked=True
    ):
        basis = epsilon_claims.LIST_BASIS
        if setting.parameters.nominal_order is NominalOrder.MARGINALITY:
            basis = f"{basis}; the order of the categories depends on the hierarchy alone"
        return (epsilon_claims.privacy_claim(setting, Status.PROVED, basis=basis, source=SOURCE),)
    basis = TABLE_BASIS.format(event=counterexample(2).event)
    return (
        epsilon_claims.privacy_claim(
            setting,
            Status.REFUTED,
            basis=basis,
            source=epsilon_claims.OURS,
            instead=f"{epsilon_claims.keep_links('4.6%')}. Released column-shuffled, the "
            "same noisy means have a proof; links between columns are lost, and counts are off by "
            "6.5%",
        ),
    )


def _run(
    table: Table, setting: Setting[IndividualRankingLaplaceParameters], tools: Tools
) -> Masked:
    parameters = setting.parameters
    given = noisy_microaggregation.put_on_grids(table, setting, ranked=parameters.nominal_order)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = [
        (axis, individual_ranking(axis.places, parameters.k), Purchase(axis.name, price))
        for axis, price in zip(given, prices, strict=True)
    ]
    return Masked(
        *noisy_microaggregation.perturb(table, tools, parts, monotone=parameters.isotonic)
    )


def _run_distributed(
    rows: DistributedRows, setting: Setting[IndividualRankingLaplaceParameters], tools: Tools
) -> Distributed:
    parameters = setting.parameters
    given = noisy_microaggregation.grids_in_blocks(rows, setting, ranked=parameters.nominal_order)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    key = partial(_unit_key, ranked=parameters.nominal_order)
    orders = [RunOrder(partial(key, name=axis.name), (axis.name,)) for axis in given]
    grouped = rows.runs(orders, parameters.k)
    parts = [
        (axis, groups, Purchase(axis.name, price))
        for axis, groups, price in zip(given, grouped, prices, strict=True)
    ]
    changes, privacy_losses = noisy_microaggregation.perturb_in_blocks(
        rows, tools, parts, monotone=parameters.isotonic
    )
    return Distributed(changes, privacy_losses=privacy_losses)


def _unit_key(table: Table, name: str, ranked: NominalOrder) -> tuple[NDArray[np.int64]]:
    return (noisy_microaggregation.units_of(table, name, ranked=ranked),)


METHOD = noisy_microaggregation.noisy_method(
    "ir-laplace",
    "Rank each column, average blocks of k, add noise (differential privacy if column-shuffled).",
    _run,
    Promises(_claims, counterexample=counterexample),
    source=SOURCE,
    parameters=IndividualRankingLaplaceParameters,
    forms=noisy_microaggregation.BY_COLUMN,
    distributed=DistributedRun(_run_distributed, noisy_microaggregation.public_only),
    cost=CostModel(0.0, 0.094, 1.0, 20),
)

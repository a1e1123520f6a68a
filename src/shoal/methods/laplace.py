"""Laplace noise on every cell: the baseline that microaggregation improves on.

Claim: epsilon, proved, row-aligned or shuffled. Changing a record changes its own row only, in each
protected column by at most the width of the public bounds, and each column's noise has scale width
/ epsilon_j with the epsilon_j adding up to epsilon; a nominal cell is chosen at price epsilon_j.
Public columns may stand beside it: they are the same in both tables. A person of exactly r rows
changes r of them, so a row's noise is paid with epsilon / r
(`shoal.methods.noise.contributions`).
"""

import numpy as np

from shoal.core import Claim, Partition, Status
from shoal.io.table import Table
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.method import (
    ContributionProof,
    CostModel,
    DistributedRun,
    Example,
    Masked,
    Method,
    Promises,
    Setting,
    Tools,
)
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import NoisyParameters, Split

SOURCE = (
    "Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data analysis, "
    "TCC (2006), doi:10.1007/11681878_14"
)


def _claims(setting: Setting[NoisyParameters]) -> tuple[Claim, ...]:
    claim = epsilon_claims.privacy_claim(
        setting,
        Status.PROVED,
        basis=(
            "a record affects its own row only, and each column's noise is scaled to the "
            "column's width"
        ),
        source=SOURCE,
    )
    return (claim,)


def _run(table: Table, setting: Setting[NoisyParameters], tools: Tools) -> Masked:
    given = noisy_microaggregation.put_on_grids(table, setting)
    singletons = Partition(np.arange(len(table)))
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, singletons, prices)
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


def _run_distributed(
    rows: DistributedRows, setting: Setting[NoisyParameters], tools: Tools
) -> Distributed:
    """Make every record a group: cells come to the driver, and return with noise."""
    given = noisy_microaggregation.grids_in_blocks(rows, setting)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, rows.singly(), prices)
    changes, privacy_losses = noisy_microaggregation.perturb_in_blocks(rows, tools, parts)
    return Distributed(changes, privacy_losses=privacy_losses)


METHOD = Method(
    name="laplace",
    summary="Add Laplace noise to every cell (differential privacy; the baseline).",
    reference=SOURCE,
    parameters=NoisyParameters,
    example=Example({"epsilon": 1}),
    forms=noisy_microaggregation.LINKED,
    promises=Promises(_claims, contributions=ContributionProof.EXACT),
    run=_run,
    refuse=noisy_microaggregation.refuse,
    input=noisy_microaggregation.UNSORTED,
    distributed=DistributedRun(_run_distributed, noisy_microaggregation.public_only),
    noise_by_row=True,
    cost=CostModel(0.1, 0.44, 1.1, 318),
)

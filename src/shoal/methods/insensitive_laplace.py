"""Insensitive microaggregation, then noise: the baseline INS, I-MDAV of the later papers.

Claim: epsilon, proved, for the groups in their public order (`canonical`), or shuffled. When one
record changes, each of the g = floor(n / k) groups changes in at most one record, so the group sums
of a column of width W move by at most g W in all; the noise has that scale over epsilon_j. For an
order by distance to a corner the bound is attained (points that alternate between two axes), so no
smaller noise would do. Where the order is lexicographic, the first column's groups are blocks by
rank, and its bound is W instead of g W (`mechanism.microaggregate_noise`).

Refuted row-aligned: which rows are equal shows who is in which group, without noise.

Refuted with `scale = "from-data"`: standardising by the data lets one record move all others along
the order. `counterexample` has a pair.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shoal.core import Claim, ReleaseForm, Status
from shoal.io.table import Table
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.methods.distributed_rows import Distributed, DistributedRows, RunOrder
from shoal.methods.insensitive import SOURCE, PublicOrder, RecordOrder, refuse_order_by_group
from shoal.methods.method import (
    CostModel,
    DistributedRun,
    Masked,
    Pair,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import (
    G,
    Origin,
    ProtectedColumn,
    ScaledParameters,
    Split,
)
from shoal.partition import insensitive
from shoal.partition.insensitive import Sorted, order_keys

BASIS = (
    "each of the g groups changes in at most one record, so the group sums move by at most g "
    "widths in total; the order of the groups is public"
)


class InsensitiveLaplaceParameters(ScaledParameters):
    """Parameters of insensitive microaggregation with noise."""

    order: PublicOrder = RecordOrder.REFERENCE


def counterexample(k: int) -> Pair:
    """Make a pair in which one outlier decides the scale of the first column, and all the groups.

    Of 2k records, k lie at (0, 1), k - 1 at (0.001, 0) and one at (0, 0). Standardised by the
    data, both columns count nearly alike, the first a little more: it decides who is near the
    corner. Once the last record is at (1, 0), the first column means nothing to all others,
    and the second decides. All but two records change groups, and the second column's
    sums move by 2k - 4, where the noise is scaled for 2.
    """
    before = np.repeat([[0.0, 1.0], [0.001, 0.0], [0.0, 0.0]], [k, k - 1, 1], axis=0)
    after = before.copy()
    after[-1] = [1.0, 0.0]
    return Pair(
        before, after, "one outlier in the first column changes the position of every record"
    )


def _claims(setting: Setting[InsensitiveLaplaceParameters]) -> tuple[Claim, ...]:
    if setting.release_form is ReleaseForm.ROW_ALIGNED:
        claim = epsilon_claims.privacy_claim(
            setting,
            Status.REFUTED,
            basis="counterexample: two rows of the same group are released equal, and moving "
            "one of them along the order makes them differ with positive probability, where before "
            "it was 0",
            source=epsilon_claims.OURS,
            instead="released in canonical form, the same groups have the same noise and a proof; "
            "rows then follow the public order, not that of the file",
        )
    elif _scale_matters(setting):
        basis = f"counterexample: the order depends on the data; {counterexample(2).event}"
        claim = epsilon_claims.privacy_claim(
            setting,
            Status.REFUTED,
            basis=basis,
            source=epsilon_claims.OURS,
            instead='scale = "public" orders by the stated bounds, with a proof and the same noise',
        )
    else:
        claim = epsilon_claims.privacy_claim(setting, Status.PROVED, basis=BASIS, source=SOURCE)
    return (claim, epsilon_claims.claim_shared_rows(setting, setting.parameters.k, SOURCE))


def _scale_matters(setting: Setting[InsensitiveLaplaceParameters]) -> bool:
    """Whether a scale from the data can change the order; with a single column it cannot."""
    parameters = setting.parameters
    several = len(setting.columns) > 1 and parameters.order is not RecordOrder.LEXICOGRAPHIC
    return parameters.scale is Origin.FROM_DATA and several


def _run(table: Table, setting: Setting[InsensitiveLaplaceParameters], tools: Tools) -> Masked:
    parameters = setting.parameters
    given = noisy_microaggregation.put_on_grids(table, setting)
    X = noisy_microaggregation.matrix(given, parameters.scale, codes={})
    if parameters.scale is Origin.FROM_DATA:
        X = (X - X.min(axis=0)) / max(float(np.ptp(X, axis=0).max()), 1e-300)
    partition = insensitive(X, parameters.k, order=parameters.order.value)
    parts = _bought(setting, given, partition, len(partition))
    masked, privacy_losses = noisy_microaggregation.perturb(table, tools, parts)
    return noisy_microaggregation.mask_in_group_order(masked, privacy_losses, partition)


def _bought(
    setting: Setting[InsensitiveLaplaceParameters],
    given: Sequence[ProtectedColumn],
    partition: G,
    groups: int,
) -> Iterable[tuple[ProtectedColumn, G, Purchase]]:
    """Allot each column's loss: a record can change every group, or one block by rank."""
    touched = [groups] * len(given)
    if setting.parameters.order is RecordOrder.LEXICOGRAPHIC and given[0].distances is None:
        touched[0] = 1
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    return noisy_microaggregation.each(given, partition, prices, touched)


def _run_distributed(
    rows: DistributedRows, setting: Setting[InsensitiveLaplaceParameters], tools: Tools
) -> Distributed:
    given = noisy_microaggregation.grids_in_blocks(rows, setting)
    order = cast("Sorted", setting.parameters.order.value)
    keys = partial(_keys, names=setting.columns, order=order)
    (groups,) = rows.runs([RunOrder(keys, setting.columns)], setting.parameters.k)
    parts = _bought(setting, given, groups, len(groups.sizes))
    changes, privacy_losses = noisy_microaggregation.perturb_in_blocks(rows, tools, parts)
    return Distributed(changes, privacy_losses=privacy_losses, canonical=groups)


def _keys(table: Table, names: Sequence[str], order: Sorted) -> Sequence[NDArray[Any]]:
    X = noisy_microaggregation.matrix(
        [noisy_microaggregation.put_on_grid(table, name) for name in names],
        Origin.PUBLIC,
        codes={},
    )
    return order_keys(X, order)


def _refuse_in_blocks(setting: Setting[InsensitiveLaplaceParameters]) -> None:
    noisy_microaggregation.public_only(setting)
    refuse_order_by_group(setting)


METHOD = noisy_microaggregation.noisy_method(
    "insensitive-laplace",
    "Group along a public order, add noise (k-anonymity; epsilon unless row-aligned).",
    _run,
    Promises(_claims, counterexample=counterexample),
    source=SOURCE,
    parameters=InsensitiveLaplaceParameters,
    forms=ReleaseForms(
        (ReleaseForm.CANONICAL, ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED)
    ),
    distributed=DistributedRun(_run_distributed, _refuse_in_blocks),
    cost=CostModel(0.0, 0.088, 1.0, 41),
)

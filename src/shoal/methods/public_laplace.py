"""Groups from public columns only, then noise on the others: what is proved of soriacomas2017.

If groups form from columns that everybody knows, they are the same in both tables, and Proposition
2 of soriacomas2017 holds without its assumption. Claim: epsilon, proved, row-aligned or shuffled,
for the values of the protected columns, given the public columns and who is in the table. Group
sums of a protected column move by at most its width, in one group; parallel composition over
groups, sequential over columns. The r rows of a person move sums r times, at epsilon / r each.

Ties between equal public records go by the order of the file, never by a protected column.

Groups are formed by MDAV from the public columns; or they are the records that agree on the public
columns that `group_by` names, of any size, each with noise of its own scale. The proof asks of a
partition that it be the same in both tables, and nothing else. So an array of labels that somebody
computed elsewhere is such a column, too. Whether it was computed without the protected columns is
known to them alone: with `own_groups` the claim is conditional on that.

In mathematical notation: docs/explanation/proofs.md, "Groups from public columns".
"""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from shoal.core import Claim, Partition, ReleaseForm, Status
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.distributed_rows import Distributed, DistributedRows
from shoal.methods.mdav_laplace import SOURCE
from shoal.methods.method import (
    CostModel,
    DistributedRun,
    Masked,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import NoisyGroupParameters, Split
from shoal.partition import mdav
from shoal.policy.values import ColumnNames, Size, fail


class PublicGroupParameters(NoisyGroupParameters):
    """Parameters of groups that public columns form, or name."""

    k: Size = Field(
        default_factory=lambda: 1,
        title="Smallest group (k)",
        description="The smallest number of records that a group may have. Required, unless "
        "group_by is stated.",
    )
    group_by: ColumnNames | None = Field(
        None,
        title="Columns that name the groups",
        description="Public columns: records that agree on them are a group, of any size. By "
        "default groups of k form where public columns are similar.",
    )
    own_groups: bool = Field(
        default=False,
        title="The groups are your own",
        description="The groups of group_by were formed by you, as by an array from Python, and "
        "are not facts that everybody knows: the claim is conditional on their being formed "
        "without the protected columns.",
    )

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if ("k" in self.model_fields_set) is (self.group_by is not None):
            fail("expected either k, for groups of similar records, or group_by.", "k")
        if self.own_groups and self.group_by is None:
            fail("expected group_by beside own_groups, found none.", "group_by")
        return self


def _public(setting: Setting[PublicGroupParameters]) -> tuple[str, ...]:
    return tuple(name for name in setting.schema.released if name not in setting.columns)


def _claims(setting: Setting[PublicGroupParameters]) -> tuple[Claim, ...]:
    named, own = setting.parameters.group_by, setting.parameters.own_groups
    assumes = []
    if own and named is not None:
        assumes.append(
            f"the groups of {', '.join(named)} were formed without the protected columns"
        )
    if setting.release_form is not ReleaseForm.ROW_ALIGNED and named is None:
        assumes.append(epsilon_claims.FILE_ORDER)  # which breaks ties
    claim = epsilon_claims.privacy_claim(
        setting,
        Status.CONDITIONAL if own else Status.PROVED,
        basis="groups depend on public columns alone, so they are the same in both tables; a "
        "changed record moves the sums of one group by at most the columns' widths",
        source=f"{epsilon_claims.OURS}; after {SOURCE}, Proposition 2",
        invariants=["who is in the table"],
        assumes=assumes,
    )
    return (claim,)


def _not_claimed(setting: Setting[PublicGroupParameters]) -> tuple[str, ...]:
    text = (
        f"{', '.join(_public(setting))}: released unchanged, because the policy declares them "
        "public. Who is in the table is not hidden."
    )
    return (text,)


def _refuse(setting: Setting[PublicGroupParameters]) -> None:
    noisy_microaggregation.refuse(setting)
    typed = _grouping(setting)
    if not typed:
        raise InputError(
            "Method 'public-laplace' groups records by columns that have public = true and a "
            "kind, and the policy has none."
        )
    if other := [name for name in setting.parameters.group_by or () if name not in typed]:
        raise InputError(
            f"[protect], group_by: expected columns with public = true and a kind "
            f"({', '.join(typed)}), found '{other[0]}'."
        )


def _run(table: Table, setting: Setting[PublicGroupParameters], tools: Tools) -> Masked:
    partition = _group_records(table, setting, tools)
    given = noisy_microaggregation.put_on_grids(table, setting)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, partition, prices)
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


def _run_distributed(
    rows: DistributedRows, setting: Setting[PublicGroupParameters], tools: Tools
) -> Distributed:
    """Bring only the public columns to the driver, which groups them as one machine does."""
    partition = _group_records(rows.bring(_grouping(setting)), setting, tools)
    given = noisy_microaggregation.grids_in_blocks(rows, setting)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, rows.group(partition), prices)
    changes, privacy_losses = noisy_microaggregation.perturb_in_blocks(rows, tools, parts)
    return Distributed(changes, privacy_losses=privacy_losses)


def _grouping(setting: Setting[PublicGroupParameters]) -> list[str]:
    return [name for name in _public(setting) if setting.schema[name].kind is not None]


def _group_records(
    table: Table, setting: Setting[PublicGroupParameters], tools: Tools
) -> Partition:
    """Group by the public columns; cost n^2 / k, or that of sorting where they name the groups."""
    if named := setting.parameters.group_by:
        places = [np.unique(table.raw(name), return_inverse=True)[1].ravel() for name in named]
        return Partition(np.unique(np.column_stack(places), axis=0, return_inverse=True)[1].ravel())
    X = table.records(_grouping(setting))
    return mdav(X, setting.parameters.k, progress=tools.progress)


METHOD = noisy_microaggregation.noisy_method(
    "public-laplace",
    "Group by public columns and add noise to the means of the others (differential privacy).",
    _run,
    Promises(_claims, _not_claimed),
    source=SOURCE,
    parameters=PublicGroupParameters,
    forms=ReleaseForms((ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED)),
    refuse=_refuse,
    sort_by=_public,
    distributed=DistributedRun(_run_distributed, noisy_microaggregation.public_only),
    cost=CostModel(0.8, 0.019, 1.0, 0),
)

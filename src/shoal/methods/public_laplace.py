"""Groups from public columns only, then noise on the others: what is proved of soriacomas2017.

If groups form from columns that everybody knows, they are the same in both tables, and Proposition
2 of soriacomas2017 holds without its assumption. Claim: epsilon, proved, row-aligned or shuffled,
for the values of the protected columns, given the public columns and who is in the table. Group
sums of a protected column move by at most its width, in one group; parallel composition over
groups, sequential over columns. The r rows of a person move sums r times, at epsilon / r each.

Ties between equal public records go by the order of the file, never by a protected column.
"""

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


def _public(setting: Setting[NoisyGroupParameters]) -> tuple[str, ...]:
    return tuple(name for name in setting.schema.released if name not in setting.columns)


def _claims(setting: Setting[NoisyGroupParameters]) -> tuple[Claim, ...]:
    claim = epsilon_claims.privacy_claim(
        setting,
        Status.PROVED,
        basis="groups depend on public columns alone, so they are the same in both tables; a "
        "changed record moves the sums of one group by at most the columns' widths",
        source=f"{epsilon_claims.OURS}; after {SOURCE}, Proposition 2",
        invariants=["who is in the table"],
        assumes=[]
        if setting.release_form is ReleaseForm.ROW_ALIGNED
        else [epsilon_claims.FILE_ORDER],
    )
    return (claim,)


def _not_claimed(setting: Setting[NoisyGroupParameters]) -> tuple[str, ...]:
    text = (
        f"{', '.join(_public(setting))}: released unchanged, because the policy declares them "
        "public. Who is in the table is not hidden."
    )
    return (text,)


def _refuse(setting: Setting[NoisyGroupParameters]) -> None:
    noisy_microaggregation.refuse(setting)
    schema = setting.schema
    typed = [name for name in _public(setting) if schema[name].kind is not None]
    if not typed:
        raise InputError(
            "Method 'public-laplace' groups records by columns that have public = true and a "
            "kind, and the policy has none."
        )


def _run(table: Table, setting: Setting[NoisyGroupParameters], tools: Tools) -> Masked:
    partition = _group_records(table, setting, tools)
    given = noisy_microaggregation.put_on_grids(table, setting)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, partition, prices)
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


def _run_distributed(
    rows: DistributedRows, setting: Setting[NoisyGroupParameters], tools: Tools
) -> Distributed:
    """Bring only the public columns to the driver, which groups them as one machine does."""
    partition = _group_records(rows.bring(_grouping(setting)), setting, tools)
    given = noisy_microaggregation.grids_in_blocks(rows, setting)
    prices = noisy_microaggregation.budgets(given, contributions.row_epsilon(setting), Split.EQUAL)
    parts = noisy_microaggregation.each(given, rows.group(partition), prices)
    changes, privacy_losses = noisy_microaggregation.perturb_in_blocks(rows, tools, parts)
    return Distributed(changes, privacy_losses=privacy_losses)


def _grouping(setting: Setting[NoisyGroupParameters]) -> list[str]:
    return [name for name in _public(setting) if setting.schema[name].kind is not None]


def _group_records(table: Table, setting: Setting[NoisyGroupParameters], tools: Tools) -> Partition:
    """Group by the public columns; cost n^2 / k."""
    X = table.records(_grouping(setting))
    return mdav(X, setting.parameters.k, progress=tools.progress)


METHOD = noisy_microaggregation.noisy_method(
    "public-laplace",
    "Group by public columns and add noise to the means of the others (differential privacy).",
    _run,
    Promises(_claims, _not_claimed),
    source=SOURCE,
    parameters=NoisyGroupParameters,
    forms=ReleaseForms((ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED)),
    refuse=_refuse,
    sort_by=_public,
    distributed=DistributedRun(_run_distributed, noisy_microaggregation.public_only),
    cost=CostModel(0.8, 0.019, 1.0, 0),
)

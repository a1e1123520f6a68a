"""MDAV microaggregation of mixed records: groups of k to 2k-1, one value a group.

Claim: k-anonymity of the protected columns, proved. Every record is in a group of at least
k, and `recode` gives all records of a group the same value in every protected column; so each
combination of released values is shared by at least k records. Any subset of the columns
inherits this. Nothing is promised about columns that are released unprotected: records of a
group may share a confidential value, or be told apart by it.
"""

from shoal.core import Claim, Progress, ReleaseForm, Role
from shoal.methods.method import Grouping, Method, Setting, k_anonymity_claim
from shoal.partition import mdav
from shoal.recode import recode
from shoal.table import Table

SOURCE = (
    "Domingo-Ferrer and Torra, Ordinal, continuous and heterogeneous k-anonymity through "
    "microaggregation, Data Mining and Knowledge Discovery 11 (2005), "
    "doi:10.1007/s10618-005-0007-5"
)


def _claims(setting: Setting[Grouping]) -> tuple[Claim, ...]:
    return (
        k_anonymity_claim(
            setting,
            setting.columns,
            basis="by construction: groups of at least k records share every protected value",
            source=SOURCE,
        ),
    )


def _not_claimed(setting: Setting[Grouping]) -> tuple[str, ...]:
    confidential = setting.schema.with_role(Role.CONFIDENTIAL)
    bare = [name for name in confidential if name not in setting.columns]
    if not bare:
        return ()
    return (
        (
            f"Nothing is promised about {', '.join(bare)}, released unprotected: where all records "
            "of a group share a value, it is known for each of them, and who knows a rare value "
            "finds its row."
        ),
    )


def _run(table: Table, setting: Setting[Grouping], progress: Progress) -> Table:
    parameters = setting.parameters
    partition = mdav(table.matrix(setting.columns), parameters.k, progress=progress)
    return recode(
        table,
        setting.columns,
        partition,
        aggregate=parameters.aggregate,
        integers=parameters.integers,
    )


METHOD = Method(
    name="mdav",
    summary="Group k similar records and release the group's centre (k-anonymity).",
    parameters=Grouping,
    forms=(ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED),
    claims=_claims,
    not_claimed=_not_claimed,
    run=_run,
    reference=SOURCE,
    example={"k": 5},
)

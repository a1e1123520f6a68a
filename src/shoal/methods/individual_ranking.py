"""Individual ranking: each column is sorted and averaged in blocks of k, on its own.

Claim: k-anonymity of each protected column by itself, proved: every released value of a
column stands for a block of at least k records, and a missing cell is sorted last and takes
part in the blocks like any other.

Not claimed: joint k-anonymity. The blocks of two columns cut across each other, so that the
combination of released values is nearly always unique (on the 13 Census columns at k=3,
1,080 of 1,080 rows are). An attacker who knows two columns roughly finds the record.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.core import Claim, Kind, Progress, ReleaseForm
from shoal.methods.method import Grouping, Method, Setting, k_anonymity_claim
from shoal.partition import individual_ranking
from shoal.recode import recode
from shoal.table import Table

SOURCE = (
    "Defays and Nanopoulos, Panels of enterprises and confidentiality: the small aggregates "
    "method, Statistics Canada Symposium (1992); Sánchez, Domingo-Ferrer and Martínez, "
    "Improving the utility of differential privacy via univariate microaggregation, "
    "Privacy in Statistical Databases (2014)"
)


def _claims(setting: Setting[Grouping]) -> tuple[Claim, ...]:
    basis = "by construction: every released value of the column stands for a block of k or more"
    return tuple(
        k_anonymity_claim(setting, [name], basis=basis, source=SOURCE) for name in setting.columns
    )


def _not_claimed(setting: Setting[Grouping]) -> tuple[str, ...]:
    if len(setting.columns) < 2:
        return ()
    return (
        (
            f"Joint {setting.parameters.k}-anonymity is not promised: each column is grouped on "
            "its own, so that the combination of values in a row is nearly always unique."
        ),
    )


def _run(table: Table, setting: Setting[Grouping], progress: Progress) -> Table:
    parameters = setting.parameters
    for number, name in enumerate(setting.columns):
        progress("ranking columns", number, len(setting.columns))
        partition = individual_ranking(_ranks(table, name), parameters.k)
        table = recode(
            table, [name], partition, aggregate=parameters.aggregate, integers=parameters.integers
        )
    return table


def _ranks(table: Table, name: str) -> NDArray[np.float64]:
    """Numbers to sort by: values, or positions in the declared order; missing last."""
    if table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        codes = table.codes(name).astype(np.float64)
        return np.where(codes < 0, len(table.levels(name)), codes)
    values = table.numbers(name)
    gone = np.isnan(values)
    if not gone.any():
        return values
    last = np.nextafter(np.nanmax(values, initial=0.0), np.inf)
    return np.where(gone, last, values)


METHOD = Method(
    name="individual-ranking",
    summary="Sort each column on its own and average blocks of k (k-anonymity a column).",
    parameters=Grouping,
    forms=(ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED),
    claims=_claims,
    not_claimed=_not_claimed,
    run=_run,
    reference=SOURCE,
    example={"k": 5},
)

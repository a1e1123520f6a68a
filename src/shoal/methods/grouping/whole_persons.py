"""Groups that contain k persons, where a person may have several rows.

A method groups rows. If persons have several, a group of k rows may be one person's, so groups
are merged until each released class keeps what is promised in persons
(`shoal.privacy_models.decide`):

1.  Release the groups, and judge the classes of equal released values, counted in persons.
2.  Merge each group of a class that fails with a near one (`merge_groups`). Repeat.

It ends: every round leaves fewer groups. What is promised holds at the end, because the classes
that are released were judged, and not the groups: two groups may be released alike, and merging
classes can worsen l and t in persons. In rows k, l and t are kept, since merging never worsens them
there. If even one group of the whole table fails, the table is refused.

Cost: O(g log g) per round for g groups, at most log2(g) rounds for k, and a release each. Not
promised: the least loss. A method that counts persons itself (`mondrian`) leaves little to do.
"""

from collections.abc import Callable, Sequence

import numpy as np

from shoal.core import MixedRecords, Partition
from shoal.core._arrays import Floats, Ints
from shoal.errors import ClaimViolationError, InputError
from shoal.io.table import Table
from shoal.partition import Requirement
from shoal.partition.merging import merge_groups
from shoal.partition.mixed_records import mixed_records
from shoal.privacy_models import decide


def release_groups(
    table: Table,
    columns: Sequence[str],
    partition: Partition,
    release: Callable[[Partition], Table],
    *,
    k: int,
    records: Callable[[], Floats | MixedRecords],
    require: Sequence[Requirement] = (),
) -> tuple[Table, Partition]:
    """Release groups of rows, merged where they contain too few persons.

    Args:
        table: the records; without `persons`, each is one, and the groups are released as they are.
        columns: what the groups share once they are released.
        partition: groups of at least k records.
        release: gives every group one value in each of the columns.
        k: persons that every released class must hold.
        records: for the distances of groups.
        require: what every released class must meet beside k, counted in persons too.

    Returns:
        The released table, and its groups.

    Raises:
        InputError: the table has fewer than k persons.
        ClaimViolationError: no merging met what is required.
    """
    made = release(partition)
    if table.persons is None:
        return made, partition
    many = int(np.unique(table.persons).size)
    if many < k:
        raise InputError(f"Cannot form one group of k={k:,} persons from {many:,}. Lower k.")
    X = mixed_records(records())
    while True:
        alike = _classes(made, columns, partition)
        failing = (persons_in(alike[partition.labels], table.persons) < k)[alike]
        for rule in require:
            alike = _classes(made, rule.guarantee.keys, partition)
            verdict, _ = decide(
                alike[partition.labels],
                rule.codes,
                rule.guarantee,
                units=table.persons,
                width=rule.width,
                edges=rule.edges,
            )
            failing |= np.isin(alike, verdict.failing)
            if len(partition) == 1 and not verdict.holds:
                raise ClaimViolationError(
                    f"No grouping meets {rule.guarantee} counted in persons, because even the "
                    "whole table as one group does not. Nothing was written."
                )
        if not failing.any():
            return made, partition
        partition = merge_groups(X, partition, failing)
        made = release(partition)


def persons_in(labels: Ints, persons: Ints) -> Ints:
    """Count the distinct persons of each class.

    >>> persons_in(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))
    array([2, 1])
    """
    many = int(persons.max()) + 1
    return np.bincount(np.unique(labels * many + persons) // many)


def _classes(made: Table, keys: Sequence[str], partition: Partition) -> Ints:
    """Number the classes of groups that are released equally in some columns, from 0."""
    first = np.unique(partition.labels, return_index=True)[1]
    groups = made.frame.select(keys)[first].with_row_index("\0group")
    alike = groups.group_by(keys, maintain_order=True).agg("\0group")["\0group"]
    labels = np.empty(len(partition), np.int64)
    for number, some in enumerate(alike.to_list()):
        labels[some] = number
    return labels

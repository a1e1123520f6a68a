"""Privacy models as properties of class counts, with the class that decides.

An equivalence class is a set of records that agree in all quasi-identifiers. A missing cell
is a value of its own: two missing cells are equal, and a missing cell never equals a present
one. Counts, not records, come in, so they may come from anywhere: `Counts` says how many
persons of each class hold each confidential value, and two of them can be added.

Where persons have several records, a model is decided twice (`decide`): counted in records, which
is what a reader of the table sees, and in persons, each counted once for each value that they hold
in the class. Both must hold. With one record per person they are the same.

Every model has one number per class, which a threshold bounds, and every comparison with a
threshold is exact (`exact_comparison.py`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import KAnonymity, LDiversity, TCloseness
from shoal.core._arrays import Ints
from shoal.privacy_models.class_counts import Counts, k_when_missing_matches, persons_agreeing
from shoal.privacy_models.exact_comparison import Verdict
from shoal.privacy_models.k_l_and_t import k_anonymity, l_diversity, t_closeness
from shoal.privacy_models.stochastic_t_closeness import (
    epsilon_for_t,
    epsilon_from_t,
    stochastic_t,
    t_for_epsilon,
    t_from_epsilon,
)

__all__ = [
    "Counts",
    "Verdict",
    "decide",
    "epsilon_for_t",
    "epsilon_from_t",
    "k_anonymity",
    "k_when_missing_matches",
    "l_diversity",
    "persons_agreeing",
    "stochastic_t",
    "t_closeness",
    "t_for_epsilon",
    "t_from_epsilon",
    "verdict",
]


def verdict(
    counts: Counts,
    guarantee: KAnonymity | LDiversity | TCloseness,
    *,
    edges: Ints | None = None,
    whole: Ints | None = None,
) -> Verdict:
    """Decide whether a table satisfies a guarantee, from its counts alone.

    Args:
        counts: over the classes and the confidential values that the guarantee names; of
            several columns together, one code per combination.
        guarantee: as a policy requires it.
        edges: the hierarchy of a hierarchical distance, see `t_closeness`.
        whole: persons by value to compare with, see `t_closeness`.
    """
    if isinstance(guarantee, KAnonymity):
        return k_anonymity(counts.persons, guarantee.k)
    if isinstance(guarantee, LDiversity):
        return l_diversity(counts, guarantee.l, kind=guarantee.kind, c=guarantee.c)
    return t_closeness(counts, guarantee.t, distance=guarantee.distance, edges=edges, whole=whole)


def decide(
    labels: ArrayLike,
    codes: ArrayLike,
    guarantee: KAnonymity | LDiversity | TCloseness,
    *,
    units: ArrayLike | None = None,
    width: int | None = None,
    edges: Ints | None = None,
) -> tuple[Verdict, Counts]:
    """Decide whether records satisfy a guarantee, counting records and persons.

    A person counts once in a class, and once for each value that they hold there; in the whole
    table, which t-closeness compares with, once for each value that they hold anywhere.

    What that promises, against an attacker who knows that a person has a record in a class and
    considers each of its persons equally likely. k: at least k of them. l, frequency: the person
    holds any one value there with a chance of at most 1/l. l, distinct: l of them hold l different
    values. t: a draw of a person together with a value that they hold, all such pairs being equally
    likely, is within t of the same draw from the whole table.

    Merging classes never lowers k. It may worsen l and t in persons: a person in both classes
    counts once in the union. So a partition is judged by the classes that are released.

    Args:
        labels: class of each record, from 0.
        codes: confidential value of each record, from 0, missing having its own code.
        guarantee: what every class must keep.
        units: person of each record, as whole numbers; None where each record is one.
        width: number of values, at least all that occur.
        edges: the hierarchy of a hierarchical distance, see `t_closeness`.

    Returns:
        The verdict, the worse of the two, and the counts, of persons where units are given.
    """
    rows = Counts.of(labels, codes, width=width)
    in_records = verdict(rows, guarantee, edges=edges)
    if units is None:
        return in_records, rows
    persons = Counts.of(labels, codes, units=units, width=width)
    totals = Counts.of(np.zeros_like(labels), codes, units=units, width=width).totals
    heads = verdict(persons, guarantee, edges=edges, whole=totals)
    most = isinstance(guarantee, TCloseness)
    by_rows = in_records.achieved > heads.achieved if most else in_records.achieved < heads.achieved
    worse = in_records if by_rows else heads
    failing = np.union1d(heads.failing, in_records.failing)
    return replace(worse, holds=heads.holds and in_records.holds, failing=failing), persons

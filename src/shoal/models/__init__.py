"""Privacy models as properties of class counts, each with the group that decides.

An equivalence class is a set of records that agree in all quasi-identifiers. A missing cell
is a value of its own: two missing cells are equal, and a missing cell never equals a present
one. Counts, not records, come in, so that they may come from anywhere: `Counts` says how many
persons of each class hold each confidential value, and two of them can be added.

Every model has one number a class, for which a threshold is set, and every such threshold is
decided exactly (`exact.py`).
"""

from shoal.core import KAnonymity, LDiversity, TCloseness
from shoal.models.closeness import t_closeness
from shoal.models.counts import Counts, Ints, k_when_missing_matches
from shoal.models.diversity import k_anonymity, l_diversity
from shoal.models.exact import Verdict
from shoal.models.stochastic import epsilon_for_t, epsilon_from_t, t_from_epsilon

__all__ = [
    "Counts",
    "Verdict",
    "epsilon_for_t",
    "epsilon_from_t",
    "k_anonymity",
    "k_when_missing_matches",
    "l_diversity",
    "t_closeness",
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
    """Decide whether a table keeps a guarantee, from its counts alone.

    Args:
        counts: over the classes and the confidential values that the guarantee names; of
            several columns together, one code a combination.
        guarantee: as a policy requires it.
        edges: the taxonomy of a hierarchical distance, see `t_closeness`.
        whole: persons by value to compare with, see `t_closeness`.
    """
    if isinstance(guarantee, KAnonymity):
        return k_anonymity(counts.persons, guarantee.k)
    if isinstance(guarantee, LDiversity):
        return l_diversity(counts, guarantee.l, kind=guarantee.kind, c=guarantee.c)
    return t_closeness(counts, guarantee.t, distance=guarantee.distance, edges=edges, whole=whole)

"""k-anonymity and l-diversity: the number of persons in a class, and of their values."""

import math
from fractions import Fraction

import numpy as np

from shoal.core import Diversity
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.privacy_models.class_counts import Counts
from shoal.privacy_models.exact_comparison import Power, Verdict, below, decide, judge

_LARGE = 2**62


def k_anonymity(persons: Ints, k: int) -> Verdict:
    """Decide whether every non-empty class has at least k persons.

    References:
        Samarati and Sweeney, "Protecting privacy when disclosing information:
        k-anonymity and its enforcement through generalization and suppression", SRI (1998).

    >>> k_anonymity(np.array([4, 2, 3]), 3)
    Verdict(holds=False, achieved=2, witness=1, failing=array([1]))
    """
    present = np.flatnonzero(persons)
    sizes = np.asarray(persons)[present]
    return decide(sizes, np.ones_like(sizes), present, Fraction(k), least=True)


def l_diversity(
    counts: Counts,
    l: Fraction | int,  # noqa: E741 (as in the literature)
    *,
    kind: Diversity,
    c: Fraction | int | None = None,
) -> Verdict:
    """Decide whether the confidential values of every class are diverse.

    With n persons in a class, n_1 >= n_2 >= ... of whom hold its values, the class has
    l-diversity of each kind where

        distinct    it has l values, held by l different persons
        entropy     - sum_i n_i/n log(n_i/n) >= log l
        recursive   n_1 < c (n_l + n_(l+1) + ...), or l = 1
        frequency   n_1/n <= 1/l

    The achieved l of a class is the largest for which that is true: under entropy its
    exponential, under frequency n / n_1, under recursive a whole number for the given c. The
    recursive kind rounds l up to a whole number; it always holds for l = 1, as Definition 4.3
    of the paper says.

    Where persons have several records, n_i persons hold value i in the class; entropy and
    recursive take n as the sum of n_i, and frequency as the number of persons: the share of
    them who hold the value. Distinct is then the largest number of values that can be assigned to
    as many persons, each of whom holds the value assigned: l values that one person holds are one.

    Not promised: anything against an attacker who knows more than the quasi-identifiers, or who
    sees that different values mean much the same. Several confidential columns that are each
    diverse need not be jointly diverse, nor conversely.

    References:
        Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, "l-diversity: privacy beyond
        k-anonymity", ACM TKDD 1 (2007), Definitions 4.1 to 4.3. doi:10.1145/1217299.1217302
        Wong, Li, Fu, Wang, KDD 2006, for the frequency kind, with alpha = 1 / l.
        doi:10.1145/1150402.1150499

    >>> counts = Counts.of([0, 0, 0, 0], [0, 0, 1, 2])
    >>> l_diversity(counts, 3, kind=Diversity.FREQUENCY).achieved
    2
    """
    kind = Diversity(kind)
    wanted = Fraction(l)
    if wanted < 1:
        raise InputError(f"l-diversity needs l of at least 1; found {l}.")
    starts, present = counts.layout()
    most = np.maximum.reduceat(counts.counts, starts)
    if kind is Diversity.DISTINCT:
        distinct = np.diff(starts, append=len(counts.counts))
        if counts.apart is not None:
            distinct = counts.apart[present]
        return decide(distinct, np.ones_like(distinct), present, wanted, least=True)
    if kind is Diversity.FREQUENCY:
        return decide(counts.persons[present], most, present, wanted, least=True)
    if kind is Diversity.RECURSIVE:
        if c is None or c <= 0:
            raise InputError("Recursive l-diversity needs c > 0.")
        largest = _recursive(counts, starts, Fraction(c))
        wanted = Fraction(math.ceil(wanted))
        return decide(largest, np.ones_like(largest), present, wanted, least=True)
    return _entropy(counts, wanted)


def _recursive(counts: Counts, starts: Ints, c: Fraction) -> Ints:
    """Return the largest l such that n_1 < c (n_l + ...) in each class, at least 1."""
    order = np.lexsort((-counts.counts, counts.classes))
    falling = counts.counts[order]
    most = falling[starts]
    # A tail must exceed n_1 / c, so it must reach the next whole number.
    each, where = np.unique(most, return_inverse=True)
    need = np.array([min(int(frequency / c) + 1, _LARGE) for frequency in each.tolist()], np.int64)
    size = np.add.reduceat(falling, starts)
    runs = np.diff(starts, append=len(falling))
    passed = np.cumsum(falling) - falling
    tail = np.repeat(size + passed[starts], runs) - passed
    enough = tail >= np.repeat(need[where.ravel()], runs)
    return np.maximum(np.add.reduceat(enough.astype(np.int64), starts), 1)


def _entropy(counts: Counts, wanted: Fraction) -> Verdict:
    """Compare exp(entropy) of every class with l.

    With n = sum n_i, exp(entropy) = (n^n / prod n_i^n_i)^(1/n): a root of a quotient of
    whole numbers. A class whose values are equally frequent has exactly its number of values.
    """
    starts, present = counts.layout()
    n = np.add.reduceat(counts.counts, starts)
    distinct = np.diff(starts, append=len(counts.counts))
    even = np.maximum.reduceat(counts.counts, starts) * distinct == n
    inner = np.add.reduceat(counts.counts * np.log(counts.counts), starts)
    figure = np.where(even, distinct, np.exp(np.log(n) - inner / n))

    def exact(which: Ints) -> "tuple[list[Power], Ints]":
        places: dict[tuple[int, ...], int] = {}
        index = np.empty(len(which), np.int64)
        for a, e in enumerate(which.tolist()):
            if even[e]:
                shape = (1,) * int(distinct[e])
            else:
                frequencies = counts.counts[starts[e] : starts[e] + distinct[e]]
                shape = tuple(np.sort(frequencies // np.gcd.reduce(frequencies)).tolist())
            index[a] = places.setdefault(shape, len(places))
        return [Power.of_counts(shape) for shape in places], index

    return judge(figure, present, wanted, least=True, exact=exact, worse=below)

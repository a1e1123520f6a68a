"""k-anonymity, l-diversity and t-closeness of class counts."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Distance, Diversity, whole_numbers
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


_WIDE = 2**62
"""From here on products are Python integers."""


def t_closeness(
    counts: Counts,
    t: Fraction | int,
    *,
    distance: Distance,
    edges: Ints | None = None,
    whole: Ints | None = None,
) -> Verdict:
    """Decide whether every class is distributed within t of the whole table.

    With p the shares of the m values in a class and q those in the whole table, the earth
    mover's distance moves p onto q at least cost, a share moved from value u to v costing

        equal         1                                          = sum_v |p_v - q_v| / 2
        ordered       |u - v| / (m - 1)         = sum_(v<m-1) |sum_(u<=v) (p_u - q_u)| / (m - 1)
        hierarchical  height(u, v) / height(root)

    where height(u, v) is that of the lowest node above both: the longest way down from it to
    a leaf, so leaves have height 0 wherever they hang (Li et al. 2007, section 4.3, which
    draws balanced trees only). Then with e_x the difference of the shares below node x,

        hierarchical = sum_x |e_x| (height(parent of x) - height(x)) / (2 height(root)).

    `variation` is total variation, and equals `equal`. `ratio` is the largest of p_v/q_v and
    q_v/p_v over all values (domingoferrer2015, Definition 4 and Proposition 2): 1 at best;
    values on neither side do not count, and one that is missing on one side makes it
    infinite, so a class must hold every value of the table. The paper writes both "no
    more than t" and "less than t"; we take the first, Definition 1.

    One value, m = 1, is at distance 0 in any earth mover's distance. Cost: O(e log m) for e
    entries, times the height of the tree for the hierarchical distance.

    Args:
        counts: under the ordered distance, the codes of its values are the order and
            its width is m: values that do not occur count, if the width counts them. Where
            missing cells are a value, their place in the order is the caller's choice.
        t: at least 0; for the ratio, at least 1 to be of use.
        distance: how far a share is moved, see above.
        edges: of `Hierarchy.edges`: one row per value, the numbers of its edges up to the root,
            padded with -1. A value for missing cells needs a row: an edge of its own.
        whole: persons by value in the table to compare with; None adds up the classes.

    References:
        Li, Li, Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and
        l-diversity", ICDE 2007. doi:10.1109/ICDE.2007.367856
        Domingo-Ferrer and Soria-Comas, "From t-closeness to differential privacy and vice
        versa", Knowledge-Based Systems 74 (2015), Definition 4.
        doi:10.1016/j.knosys.2014.11.011

    >>> counts = Counts.of([0, 0, 1, 1], [0, 1, 1, 2])
    >>> t_closeness(counts, Fraction(1, 4), distance=Distance.EQUAL)
    Verdict(holds=True, achieved=Fraction(1, 4), witness=0, failing=array([], dtype=int64))
    """
    distance = Distance(distance)
    starts, present = counts.layout()
    total = counts.totals if whole is None else whole_numbers(whole, "whole")
    if len(total) != counts.width:
        raise InputError(
            f"The argument whole, the counts of the whole table, must count "
            f"{counts.width} values; found {len(total)}."
        )
    if not total.any():
        raise InputError(
            "The argument whole, the counts of the whole table, must count at least one person."
        )
    table = _exact(counts, starts, total, 1 if edges is None else 2 * edges.shape[1])
    if distance is Distance.RATIO:
        return _ratio(table, present, Fraction(t))
    if distance is Distance.ORDERED:
        cost, unit = _ordered_distance(table), max(counts.width - 1, 1)
    elif distance is Distance.HIERARCHICAL:
        if edges is None or len(edges) < counts.width:
            raise InputError(
                "A hierarchical distance needs the edges of the hierarchy, with one row for "
                f"each of its {counts.width} values."
            )
        cost, unit = _hierarchical(table, np.asarray(edges))
    else:
        over = table.count * table.all - table.total[table.value] * table.size[table.owner]
        cost, unit = np.add.reduceat(np.maximum(over, 0), starts), 1
    return decide(cost, table.size * (table.all * unit), present, Fraction(t), least=False)


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts as whole numbers wide enough for the products in a distance."""

    starts: Ints
    owner: Ints
    value: Ints
    count: NDArray[Any]
    size: NDArray[Any]
    total: NDArray[Any]
    all: int


def _exact(counts: Counts, starts: Ints, total: Ints, factor: int) -> _Table:
    size = np.add.reduceat(counts.counts, starts)
    everybody = int(total.sum())
    bound = int(size.max()) * everybody * max(counts.width, factor)
    kind: Any = np.int64 if bound < _WIDE else object
    return _Table(
        starts,
        np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts.counts))),
        counts.values,
        counts.counts.astype(kind),
        size.astype(kind),
        total.astype(kind),
        everybody,
    )


def _ordered_distance(table: _Table) -> NDArray[Any]:
    """Sum |N A_i - n Q_i| over all but the last value, with A and Q the cumulative counts.

    Between two values of a class A stays as it is and Q grows, so the terms change sign
    once: prefix sums of Q give each stretch at once.
    """
    before = table.starts
    last = len(table.total) - 1
    cumulative = np.cumsum(table.total)[:-1]
    prefix = np.concatenate((np.zeros(1, cumulative.dtype), np.cumsum(cumulative)))
    held = np.cumsum(table.count)
    runs = np.diff(before, append=len(table.count))
    held = held - np.repeat(held[before] - table.count[before], runs)
    a = table.value
    b = np.append(a[1:], last)
    b[before[1:] - 1] = last
    size = table.size[table.owner]
    reach = held * table.all
    s = np.clip(np.searchsorted(cumulative, reach // size, side="right"), a, b)
    rising = (s - a) * reach - size * (prefix[s] - prefix[a])
    falling = size * (prefix[b] - prefix[s]) - (b - s) * reach
    cost: NDArray[Any] = np.add.reduceat(rising + falling, before)
    cost += table.size * prefix[a[before]]
    return cost


def _hierarchical(table: _Table, edges: Ints) -> tuple[NDArray[Any], int]:
    """Sum |N A_x - n Q_x| (height of the parent - height) over all nodes x but the root.

    An edge stands for the node at its lower end. A node without persons of the class costs
    n Q_x, so only the nodes above the class's own values are visited.
    """
    rows, steps = np.nonzero(edges >= 0)
    node = edges[rows, steps]
    height = np.zeros(int(node.max(initial=-1)) + 1, np.int64)
    np.maximum.at(height, node, steps)
    top = int(steps.max(initial=-1)) + 1
    padded = np.pad(edges, ((0, 0), (0, 1)), constant_values=-1)
    above = padded[rows, steps + 1]
    length = np.zeros_like(height)
    length[node] = np.where(above >= 0, height[above], top) - height[node]

    counted = rows < len(table.total)
    total = np.zeros(len(height), table.total.dtype)
    np.add.at(total, node[counted], table.total[rows[counted]])
    entry, step = np.nonzero(edges[table.value] >= 0)
    key = table.owner[entry] * len(height) + edges[table.value[entry], step]
    pairs, where = np.unique(key, return_inverse=True)
    held = np.zeros(len(pairs), table.count.dtype)
    np.add.at(held, where.ravel(), table.count[entry])
    owner, x = pairs // len(height), pairs % len(height)
    without = total[x] * table.size[owner]
    cost: NDArray[Any] = table.size * (total * length).sum()
    np.add.at(cost, owner, (np.abs(held * table.all - without) - without) * length[x])
    return cost, max(2 * top, 1)


def _ratio(table: _Table, present: Ints, t: Fraction) -> Verdict:
    """Compare every quotient of shares; a class that lacks a value has infinity."""
    ours = table.count * table.all
    theirs = table.total[table.value] * table.size[table.owner]
    more = ours >= theirs
    occurs = np.asarray(table.total > 0, dtype=bool)
    held = np.add.reduceat(occurs[table.value].astype(np.int64), table.starts)
    lacking = np.flatnonzero(held < occurs.sum())
    none = np.zeros(len(lacking), ours.dtype)
    top = np.concatenate((np.where(more, ours, theirs), none + 1))
    bottom = np.concatenate((np.where(more, theirs, ours), none))
    owner = np.concatenate((table.owner, lacking))
    return decide(top, bottom, present[owner], t, least=False)

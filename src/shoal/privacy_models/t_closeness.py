"""t-closeness: the distance of each class's confidential values from the whole table's."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Distance, whole_numbers
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.privacy_models.class_counts import Counts
from shoal.privacy_models.exact_comparison import Verdict, decide

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

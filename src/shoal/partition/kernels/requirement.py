"""Compiled decisions whether a group of records satisfies a privacy model.

Each decision is exact in 64-bit whole numbers. A threshold x is held as whole + part/of, the
largest such number up to x whose denominator a group's size may have, so the largest whole
number up to x n is whole n + floor(part n / of), without overflow. Only entropy is compared as
floats, and a group that is too close to call is refused unless its values are equally frequent:
what passes is diverse, and what is refused stays in a larger group.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel

DISTINCT, FREQUENCY, RECURSIVE, ENTROPY, VARIATION, ORDERED, RATIO, HIERARCHICAL = range(8)

DOUBT = 1e-12
"""Relative error that sums of n log n stay well below."""


class Rules(NamedTuple):
    """The rules that every group must satisfy; values are numbered across rules."""

    records: int  # in the whole table
    kind: Ints  # rule
    first: Ints  # rule: its first value, and at the end the number of all values
    whole: Ints  # rule: the threshold
    part: Ints
    of: Ints
    least: Ints  # rule: l, rounded up
    log: Floats  # rule: log l
    total: Ints  # value: records of the whole table
    low: Ints  # value: least share under the ratio distance, two columns
    high: Ints  # value: largest share, two columns
    path: Ints  # value: the edges up to the root of its hierarchy, padded with -1
    top: Ints  # rule: its first edge, and at the end the number of all edges
    below: Ints  # edge: records of the whole table below it
    length: Ints  # edge


@kernel
def meets(rules: Rules, r: int, n: int, held: Ints, seen: Ints, many: int) -> bool:
    """Whether n records with `held` of each value satisfy rule r.

    `seen` lists values of the rule, `many` of them from its first on, that cover all held.
    """
    kind = rules.kind[r]
    first = rules.first[r]
    if kind <= ENTROPY:
        return diverse(rules, r, n, held, seen[first : first + many])
    if kind == RATIO:
        for v in range(first, rules.first[r + 1]):
            few = held[v] * rules.low[v, 1] < rules.low[v, 0] * n
            if few or held[v] * rules.high[v, 1] > rules.high[v, 0] * n:
                return False
        return True
    return moved_mass(rules, r, n, held, seen[first : first + many]) <= share(rules, r, n)


@kernel
def diverse(rules: Rules, r: int, n: int, held: Ints, values: Ints) -> bool:
    """Decide the four kinds of l-diversity."""
    kind = rules.kind[r]
    l = int(rules.least[r])  # noqa: E741 (as in the literature)
    distinct = 0
    most = 0
    for v in values:
        if held[v] > 0:
            distinct += 1
            most = max(most, held[v])
    if kind == DISTINCT:
        return distinct >= l
    if kind == FREQUENCY:
        return most <= share(rules, r, n)
    if kind == RECURSIVE:
        return l <= 1 or tail(held, values, l, n) > share(rules, r, most)
    if most * distinct == n:
        return distinct >= l
    slack = float(n * np.log(n) - n * rules.log[r])
    for v in values:
        if held[v] > 0:
            slack -= held[v] * np.log(held[v])
    return slack > float(DOUBT * n * (1.0 + np.log(n)))


@kernel
def moved_mass(rules: Rules, r: int, n: int, held: Ints, values: Ints) -> int:
    """Compute the earth mover's distance to the table, times n, its records and the path unit."""
    total = 0
    if rules.kind[r] == VARIATION:
        for v in values:
            total += max(0, held[v] * rules.records - rules.total[v] * n)
        return total
    if rules.kind[r] == ORDERED:
        up = 0
        for v in range(rules.first[r], rules.first[r + 1] - 1):
            up += held[v] * rules.records - rules.total[v] * n
            total += abs(up)
        return total
    edge = rules.top[r]
    passed = np.zeros(rules.top[r + 1] - edge, np.int64)
    for v in values:
        for e in rules.path[v]:
            if e >= 0:
                passed[e - edge] += held[v]
    for e in range(passed.size):
        extra = passed[e] * rules.records - rules.below[edge + e] * n
        total += abs(extra) * rules.length[edge + e]
    return total


@kernel
def share(rules: Rules, r: int, n: int) -> int:
    """Return the largest whole number up to n times the threshold of a rule."""
    return int(rules.whole[r] * n + rules.part[r] * n // rules.of[r])


@kernel
def tail(held: Ints, values: Ints, l: int, n: int) -> int:  # noqa: E741
    """Count the records that have none of the l - 1 most frequent values."""
    top = np.zeros(l - 1, np.int64)
    for v in values:
        c = held[v]
        if c > top[l - 2]:
            a = l - 2
            while a > 0 and top[a - 1] < c:
                top[a] = top[a - 1]
                a -= 1
            top[a] = c
    return int(n - top.sum())

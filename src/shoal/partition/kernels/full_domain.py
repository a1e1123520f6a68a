"""Compiled counting of equivalence classes under one level per column."""

import numpy as np

from shoal.core._arrays import Ints
from shoal.core.jit import kernel
from shoal.partition.kernels.requirement import Rules, meets

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: multiplying by it spreads keys over the upper bits."""


@kernel
def combined(codes: Ints, rows: Ints, maps: Ints, first: Ints) -> Ints:
    """One number for the labels of each row: the sum over columns of what `maps` has for its code.

    `maps` holds, column after column from `first`, each label's number times the column's stride.
    """
    d = codes.shape[1]
    keys = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        row = rows[i]
        key = 0
        for j in range(d):
            key += maps[first[j] + codes[row, j]]
        keys[i] = key
    return keys


@kernel
def merged(keys: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Merge entries of equal keys.

    Returns for each class its first entry and the sum of the counts, and for each entry its class;
    classes are numbered in the order of their first entries.
    """
    size = 2
    bits = 1
    while size < 2 * keys.size:
        size *= 2
        bits += 1
    slots = np.full(size, -1, np.int64)
    firsts = np.empty(keys.size, np.int64)
    totals = np.empty(keys.size, np.int64)
    labels = np.empty(keys.size, np.int64)
    many = 0
    shift = np.uint64(64 - bits)
    for i in range(keys.size):
        key = keys[i]
        at = np.int64((np.uint64(key) * np.uint64(GOLDEN)) >> shift)
        while True:
            own = slots[at]
            if own < 0:
                slots[at] = many
                firsts[many] = i
                totals[many] = counts[i]
                labels[i] = many
                many += 1
                break
            if keys[firsts[own]] == key:
                totals[own] += counts[i]
                labels[i] = own
                break
            at = (at + 1) & (size - 1)
    return firsts[:many], totals[:many], labels


@kernel
def unmet_classes(
    rules: Rules, r: int, labels: Ints, values: Ints, counts: Ints, sizes: Ints, failing: Ints
) -> None:
    """Mark the classes that do not meet rule r; entries hold a class, a value and a count.

    A class that is marked already, or is empty, is not looked at.
    """
    many = sizes.size
    begin = np.zeros(many + 1, np.int64)
    for e in range(labels.size):
        if labels[e] >= 0:
            begin[labels[e] + 1] += 1
    for a in range(many):
        begin[a + 1] += begin[a]
    place = begin[:many].copy()
    order = np.empty(begin[many], np.int64)
    for e in range(labels.size):
        if labels[e] >= 0:
            order[place[labels[e]]] = e
            place[labels[e]] += 1
    held = np.zeros(rules.total.size, np.int64)
    seen = np.zeros(rules.total.size, np.int64)
    base = rules.first[r]
    for a in range(many):
        if failing[a] or sizes[a] == 0:
            continue
        distinct = 0
        for p in range(begin[a], begin[a + 1]):
            v = base + values[order[p]]
            if held[v] == 0:
                seen[base + distinct] = v
                distinct += 1
            held[v] += counts[order[p]]
        if not meets(rules, r, sizes[a], held, seen, distinct):
            failing[a] = 1
        for p in range(base, base + distinct):
            held[seen[p]] = 0

"""Compiled search of a lattice of levels: equivalence classes, losses and traversal.

A node is a flat index into the lattice. A class is counted as entries: rows with equal labels and
equal confidential values. Rows stand for all records with the same leaves and confidential values.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Bools, Floats, Ints, Ints32, Unsigned32
from shoal.core.jit import kernel
from shoal.partition.kernels.requirement import (
    DISTINCT,
    ENTROPY,
    FREQUENCY,
    RECURSIVE,
    Rules,
    meets,
)

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: multiplying by it spreads keys over the upper bits."""
WIDE = 2**62
SQUARES, CLASSES, CELLS = range(3)
"""Losses: discernibility, average class size, and sums over cells."""
PER_ROW = 12
"""Nodes for each merged entry up to which a rare class closes all nodes at which it is rare."""
FEW = 5
"""How many rare classes do so if the loss is not a sum over cells: paths begin where entries are
few then, and merging them soon costs less."""
LOOKED, DONE, FIRST, LAST, PEAK, CHOSEN, RARE, KEPT = range(8)
"""Places in `Lattice.at`."""


class Rows(NamedTuple):
    """Rows and the levels of their columns."""

    leaves: Unsigned32  # column, row: the leaf, numbered over all columns
    secret: Unsigned32  # row: its confidential values, all columns together
    secrets: int  # number of them
    counts: Ints  # row: records
    labels: Ints  # level, leaf; above the top level of a column it is the same again
    starts: Ints  # column: its first leaf, and at the end the number of leaves
    widths: Ints  # column, level: labels
    kind: int  # of the loss
    gaps: Floats  # level, first leaf of the column + label: how much more a suppressed cell costs


class Models(NamedTuple):
    """The models that classes must satisfy besides k."""

    rules: Rules
    values: Ints  # rule, confidential values together: the value
    over: Ints  # rule: t times the longest way as a fraction, 0 over 1 for l-diversity
    under: Ints
    moving: bool  # closeness is to the records that are left
    monotone: bool  # a node that lacks them closes all below it
    least: int  # classes of fewer records lack one of them


class Lattice(NamedTuple):
    """The state of a search."""

    low: Ints  # column: its lowest level
    shape: Ints
    strides: Ints
    bound: Floats  # node: its loss is no less; infinite if it fails
    passed: Bools  # node: it was looked at
    height: Floats  # node
    guess: Floats  # node: paths begin and climb where it is least
    order: Ints  # nodes at which paths may begin, by guess
    path: Ints
    best: Floats  # loss and height
    at: Ints
    everything: Unsigned32  # all rows
    nodes: Ints32  # kept node, column: levels
    begin: Ints  # kept node: its entries begin here, and at the end the next would
    rows: Unsigned32  # kept entry: one of its rows
    counts: Ints  # kept entry: records


@kernel
def place_leaves(codes: Ints, starts: Ints) -> Unsigned32:
    """Number leaves by column and record over all columns; empty if a code is too large."""
    leaves = np.empty((codes.shape[1], codes.shape[0]), np.uint32)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            leaf = starts[j] + codes[i, j]
            if leaf >= starts[j + 1]:
                return leaves[:0]
            leaves[j, i] = leaf
    return leaves


@kernel
def widths_of(labels: Ints, starts: Ints) -> Ints:
    """Count the labels of each column and level; empty if levels are not nested."""
    widths = np.zeros((starts.size - 1, labels.shape[0]), np.int64)
    for j in range(starts.size - 1):
        for level in range(labels.shape[0]):
            for leaf in range(starts[j], starts[j + 1]):
                widths[j, level] = max(widths[j, level], labels[level, leaf] + 1)
        for level in range(1, labels.shape[0]):
            parents = np.full(widths[j, level - 1], -1)
            for leaf in range(starts[j], starts[j + 1]):
                node = labels[level - 1, leaf]
                if parents[node] < 0:
                    parents[node] = labels[level, leaf]
                elif parents[node] != labels[level, leaf]:
                    return widths[:0]
    return widths


@kernel
def count_by_leaf(rows: Rows) -> Ints:
    """Count the records of each leaf."""
    held = np.zeros(rows.starts[-1], np.int64)
    for i in range(rows.counts.size):
        for j in range(rows.starts.size - 1):
            held[rows.leaves[j, i]] += rows.counts[i]
    return held


@kernel
def merge(keys: Ints, counts: Ints, room: int) -> tuple[Ints, Ints, Ints]:
    """Merge entries with equal keys, all below `room`.

    Returns for each class its first entry and the sum of the counts, and for each entry its class;
    classes are numbered in the order of their first entries.
    """
    size = 2
    bits = 1
    while size < 2 * keys.size:
        size *= 2
        bits += 1
    slots = np.full(size, -1, np.int32)
    firsts = np.empty(keys.size, np.int64)
    totals = np.empty(keys.size, np.int64)
    labels = np.empty(keys.size, np.int64)
    many = 0
    shift = np.uint64(64 - bits)
    direct = room <= size
    for i in range(keys.size):
        key = keys[i]
        at = key
        if not direct:
            at = np.int64((np.uint64(key) * np.uint64(GOLDEN)) >> shift)
        while True:
            slot = slots[at]
            if slot < 0:
                slots[at] = many
                firsts[many] = i
                totals[many] = counts[i]
                labels[i] = many
                many += 1
                break
            if direct or keys[firsts[slot]] == key:
                totals[slot] += counts[i]
                labels[i] = slot
                break
            at = (at + 1) & (size - 1)
    return firsts[:many], totals[:many], labels


@kernel
def key_rows(rows: Rows, levels: Ints, chosen: Unsigned32) -> tuple[Ints, int]:
    """Compute a key for the labels of each chosen row, and a strict upper limit of the keys."""
    keys = np.zeros(chosen.size, np.int64)
    room = 1
    j = 0
    while j < levels.size:
        while j < levels.size:
            width = rows.widths[j, levels[j]]
            if room >= WIDE // (width * rows.secrets):
                break
            if width > 1:
                leaf = rows.leaves[j]
                label = rows.labels[levels[j]]
                if keys.size == leaf.size:  # all rows, in their order
                    for i in range(keys.size):
                        keys[i] += room * label[leaf[i]]
                else:
                    for i in range(keys.size):
                        keys[i] += room * label[leaf[chosen[i]]]
                room *= width
            j += 1
        if j < levels.size:
            firsts, _, keys = merge(keys, keys, room)
            room = firsts.size
    return keys, room


@kernel
def classes_of(rows: Rows, levels: Ints) -> tuple[Ints, Ints, Ints]:
    """Return a row of each class, its size, and the class of each row."""
    keys, room = key_rows(rows, levels, np.arange(rows.counts.size).astype(np.uint32))
    return merge(keys, rows.counts, room)


@kernel
def key_entries(rows: Rows, levels: Ints, chosen: Unsigned32) -> tuple[Ints, int]:
    """Compute keys as `key_rows` does, of labels and confidential values."""
    keys, room = key_rows(rows, levels, chosen)
    if rows.secrets > 1:
        for i in range(keys.size):
            keys[i] = keys[i] * rows.secrets + rows.secret[chosen[i]]
    return keys, room * rows.secrets


@kernel
def bound_of(rows: Rows, sizes: Ints, otherwise: float) -> float:
    """Compute the loss of a node without suppression; `otherwise` for sums over cells."""
    n = 0.0
    squares = 0.0
    for a in range(sizes.size):
        n += sizes[a]
        squares += float(sizes[a]) * sizes[a]
    if rows.kind == SQUARES:
        return squares / n**2
    return n / sizes.size if rows.kind == CLASSES else otherwise


@kernel
def loss_of(
    rows: Rows, levels: Ints, firsts: Ints, sizes: Ints, failing: Ints, bound: float
) -> float:
    """Compute the loss of a node whose failing classes are suppressed."""
    n = 0.0
    squares = 0.0
    gone = 0.0
    kept = 0
    for a in range(sizes.size):
        n += sizes[a]
        if failing[a]:
            gone += sizes[a]
        else:
            kept += 1
            squares += float(sizes[a]) * sizes[a]
    if rows.kind == SQUARES:
        return (squares + n * gone) / n**2
    if rows.kind == CLASSES:
        return n / (kept + (gone > 0))
    loss = bound
    if gone > 0:
        # Records are counted by label first: the sum does not depend on their order.
        held = np.zeros(rows.widths.max(), np.int64)
        for j in range(levels.size):
            width = rows.widths[j, levels[j]]
            held[:width] = 0
            for a in range(sizes.size):
                if failing[a]:
                    held[rows.labels[levels[j], rows.leaves[j, firsts[a]]]] += sizes[a]
            for label in range(width):
                loss += held[label] * rows.gaps[levels[j], rows.starts[j] + label]
    return loss


@kernel
def suppress(
    models: Models,
    limit: int,
    owner: Ints,
    secret: Unsigned32,
    counts: Ints,
    sizes: Ints,
    failing: Ints,
) -> int:
    """Mark the classes that violate a model, and return the total of suppressed records.

    Stops once these are more than the limit. If closeness is to the records that are left, it is
    decided anew for them until no class lacks it.
    """
    many = sizes.size
    begin = np.zeros(many + 1, np.int64)
    for e in range(owner.size):
        begin[owner[e] + 1] += 1
    for a in range(many):
        begin[a + 1] += begin[a]
    place = begin[:many].copy()
    order = np.empty(owner.size, np.int64)
    for e in range(owner.size):
        order[place[owner[e]]] = e
        place[owner[e]] += 1
    gone = 0
    for a in range(many):
        if failing[a]:
            gone += sizes[a]
    rules = models.rules
    held = np.zeros(rules.total.size, np.int64)
    seen = np.zeros(rules.total.size, np.int64)
    while gone <= limit:
        before = gone
        if gone and models.moving:
            rules = rules_left_over(models, owner, secret, counts, failing)
        for a in range(many):
            if failing[a]:
                continue
            for r in range(rules.kind.size):
                first = rules.first[r]
                distinct = 0
                for p in range(begin[a], begin[a + 1]):
                    v = first + models.values[r, secret[order[p]]]
                    if held[v] == 0:
                        seen[first + distinct] = v
                        distinct += 1
                    held[v] += counts[order[p]]
                if rules.kind[r] == ENTROPY:
                    seen[first : first + distinct].sort()
                fine = meets(rules, r, sizes[a], held, seen, distinct)
                for p in range(first, first + distinct):
                    held[seen[p]] = 0
                if not fine:
                    failing[a] = 1
                    gone += sizes[a]
                    break
            if gone > limit:
                return gone
        if gone == before or not models.moving:
            break
    return gone


@kernel
def rules_left_over(
    models: Models, owner: Ints, secret: Unsigned32, counts: Ints, failing: Ints
) -> Rules:
    """Recompute the rules for closeness to the entries of classes that do not fail."""
    old = models.rules
    total = np.zeros_like(old.total)
    below = np.zeros_like(old.below)
    n = 0
    for e in range(owner.size):
        if failing[owner[e]]:
            continue
        n += counts[e]
        for r in range(old.kind.size):
            v = old.first[r] + models.values[r, secret[e]]
            total[v] += counts[e]
            for edge in old.path[v]:
                if edge >= 0:
                    below[edge] += counts[e]
    thresholds = old.whole.copy()
    part = old.part.copy()
    of = old.of.copy()
    for r in range(old.kind.size):
        if old.kind[r] not in (DISTINCT, FREQUENCY, RECURSIVE, ENTROPY):
            thresholds[r] = models.over[r] * n // models.under[r]
            part[r] = models.over[r] * n % models.under[r]
            of[r] = models.under[r]
    return Rules(n, old.kind, old.first, thresholds, part, of, old.least, old.log, total, old.low,
                 old.high, old.path, old.top, below, old.length)  # fmt: skip


@kernel
def advance(lattice: Lattice) -> int:
    """Return the next node to explore, or -1 if none is left.

    Starting at the open node of least guess, climb along open nodes. Look at the last one, which
    closes the whole path if it fails and has the fewest classes, then bisect the rest. While no
    node has passed, nothing but the root ends a path, and it is bisected at once.
    """
    at, path, strides, shape = lattice.at, lattice.path, lattice.strides, lattice.shape
    bound, passed, height, guess = lattice.bound, lattice.passed, lattice.height, lattice.guess
    best = lattice.best
    while True:
        while at[FIRST] <= at[LAST]:
            node = path[probe(at)]
            if is_open(bound, passed, height, best, node):
                return int(node)
            if bound[node] == np.inf:  # by what was found since
                at[FIRST] = probe(at) + 1
            else:
                at[LAST] = probe(at) - 1
            at[PEAK] = 0
        node = -1
        while at[DONE] < lattice.order.size:
            start = lattice.order[at[DONE]]
            if is_open(bound, passed, height, best, start):
                node = start
                break
            at[DONE] += 1
        if node < 0:
            return -1
        at[FIRST] = 0
        at[LAST] = -1
        at[PEAK] = at[CHOSEN] >= 0
        while node >= 0:
            at[LAST] += 1
            path[at[LAST]] = node
            here = node
            node = -1
            for j in range(shape.size):
                if here // strides[j] % shape[j] + 1 < shape[j]:
                    up = here + strides[j]
                    if is_open(bound, passed, height, best, up) and (
                        node < 0 or guess[up] < guess[node]
                    ):
                        node = up


@kernel
def probe(at: Ints) -> int:
    """Return the position on the path to explore next."""
    return int(at[LAST] if at[PEAK] else (at[FIRST] + at[LAST]) // 2)


@kernel
def is_open(bound: Floats, passed: Bools, height: Floats, best: Floats, node: int) -> bool:
    """Whether a node is unexplored and may be better than the best one.

    It takes arrays, because passing the lattice costs more than the test.
    """
    return not passed[node] and better(bound[node], height[node], best)


@kernel
def better(loss: float, height: float, best: Floats) -> bool:
    """Whether a loss is less than the best one, or equal at a lower height."""
    return bool(loss < best[0] or (loss == best[0] and height < best[1]))


@kernel
def settle(lattice: Lattice, node: int, closes: bool, bound: float, loss: float) -> None:
    """Close the nodes that an explored node rules out."""
    at = lattice.at
    at[LOOKED] += 1
    here = probe(at)
    at[PEAK] = 0
    levels = node // lattice.strides % lattice.shape
    if bound > lattice.bound[node]:
        lift(lattice, levels, lattice.shape - 1, bound)
    if closes:
        lift(lattice, np.zeros_like(levels), levels, np.inf)
        at[FIRST] = here + 1
    else:
        lattice.passed[node] = True
        at[LAST] = here - 1
    if better(loss, lattice.height[node], lattice.best):
        lattice.best[0] = loss
        lattice.best[1] = lattice.height[node]
        at[CHOSEN] = node


@kernel
def lift(lattice: Lattice, least: Ints, most: Ints, bound: float) -> None:
    """Raise the bounds of all nodes with levels from `least` to `most`."""
    d = least.size
    levels = least.copy()
    node = 0
    for j in range(d):
        node += levels[j] * lattice.strides[j]
    while True:
        for x in range(node, node + most[d - 1] - least[d - 1] + 1):
            lattice.bound[x] = max(lattice.bound[x], bound)
        j = d - 2
        while j >= 0 and levels[j] == most[j]:
            node -= (levels[j] - least[j]) * lattice.strides[j]
            levels[j] = least[j]
            j -= 1
        if j < 0:
            return
        levels[j] += 1
        node += lattice.strides[j]


@kernel
def explore(rows: Rows, models: Models, lattice: Lattice, k: int, limit: int, effort: int) -> bool:
    """Search until nothing is open, or `effort` rows were merged; return whether it is finished."""
    least = max(k, models.least)
    while effort > 0:
        node = advance(lattice)
        if node < 0:
            return True
        levels = node // lattice.strides % lattice.shape + lattice.low
        source, counts, below = entries_below(rows, lattice, levels)
        effort -= source.size
        keys, room = key_entries(rows, levels, source)
        firsts, held, _ = merge(keys, counts, room)
        entries = source[firsts]
        keep(lattice, levels, entries, held, source.size)
        sizes, owner = held, np.arange(held.size)
        heads = entries
        if rows.secrets > 1:
            some, sizes, owner = merge(keys[firsts] // rows.secrets, held, room // rows.secrets)
            heads = entries[some]
        bound = bound_of(rows, sizes, lattice.bound[node])
        failing = (sizes < k).astype(np.int64)
        gone = int(sizes[sizes < least].sum())
        closes = gone > limit
        if not closes and models.rules.kind.size:
            if models.rules.kind.size == 1 and models.rules.kind[0] == DISTINCT:
                failing |= np.bincount(owner) < models.least  # a class has an entry for each value
                gone = int(sizes[failing > 0].sum())
            else:
                gone = suppress(models, limit, owner, rows.secret[entries], held, sizes, failing)
            closes = gone > limit and models.monotone
        loss = np.inf
        rare = limit == 0 and sizes.min() < least
        wide = rows.kind == CELLS or lattice.at[RARE] < FEW
        if rare and wide and lattice.bound.size <= PER_ROW * source.size:
            close_rare(rows, lattice, heads[np.argmin(sizes)], source, counts, below, least)
            lattice.at[RARE] += 1
        if gone <= limit:
            loss = loss_of(rows, levels, heads.astype(np.int64), sizes, failing, bound)
        settle(lattice, node, closes, bound, loss)
    return False


@kernel
def close_rare(
    rows: Rows,
    lattice: Lattice,
    rare: int,
    entries: Unsigned32,
    counts: Ints,
    below: Ints,
    k: int,
) -> None:
    """Close every node at which fewer than k records share the labels of one row.

    Entries are those of a node below. Each counts at the lowest node at which it shares the labels,
    and so at all above that; levels up to `below` count as none. Sums over the lattice, column by
    column, then give for every node the size of the row's class where no level is under `below`:
    no less than its size at the node itself.
    """
    size = lattice.bound.size
    joins = np.full(rows.starts[-1], size, np.int64)  # if they never do
    for j in range(lattice.shape.size):
        rare_leaf = rows.leaves[j, rare]
        for level in range(lattice.shape[j] - 1, below[j] - lattice.low[j] - 1, -1):
            labels = rows.labels[lattice.low[j] + level]
            step = level * lattice.strides[j] if lattice.low[j] + level > below[j] else 0
            for leaf in range(rows.starts[j], rows.starts[j + 1]):
                if labels[leaf] == labels[rare_leaf]:
                    joins[leaf] = step
    node = np.zeros(entries.size, np.int64)
    for leaf in rows.leaves:
        if node.size == leaf.size:  # all rows, in their order
            for i in range(node.size):
                node[i] += joins[leaf[i]]
        else:
            for i in range(node.size):
                node[i] += joins[leaf[entries[i]]]
    held = np.zeros(size, np.int64)
    for i in range(node.size):
        if node[i] < size:
            held[node[i]] += counts[i]
    for j in range(lattice.shape.size):
        step = lattice.strides[j]
        period = step * lattice.shape[j]
        for begin in range(0, size, period):
            for low in range(begin, begin + period - step, step):
                under, over = held[low : low + step], held[low + step : low + 2 * step]
                for x in range(step):
                    over[x] += under[x]
    for x in range(size):
        if held[x] < k:
            lattice.bound[x] = np.inf


@kernel
def entries_below(rows: Rows, lattice: Lattice, levels: Ints) -> tuple[Unsigned32, Ints, Ints]:
    """Return the smallest known list of entries of a node below: rows, counts and levels."""
    near = nearest(lattice, levels, rows.counts.size)
    if near < 0:
        return lattice.everything, rows.counts, lattice.low
    begin, end = lattice.begin[near], lattice.begin[near + 1]
    return lattice.rows[begin:end], lattice.counts[begin:end], lattice.nodes[near].astype(np.int64)


@kernel
def keep(lattice: Lattice, levels: Ints, entries: Unsigned32, counts: Ints, before: int) -> None:
    """Cache the entries of a node for later merges, if they are fewer and there is room."""
    a = lattice.at[KEPT]
    begin = lattice.begin[a]
    end = begin + entries.size
    if 5 * entries.size <= 4 * before and end <= lattice.rows.size and a < len(lattice.nodes):
        lattice.rows[begin:end] = entries
        lattice.counts[begin:end] = counts
        lattice.nodes[a] = levels
        lattice.begin[a + 1] = end
        lattice.at[KEPT] = a + 1


@kernel
def nearest(lattice: Lattice, levels: Ints, most: int) -> int:
    """Return the cached node below some levels with the fewest entries, under `most`, else -1."""
    near = -1
    for a in range(lattice.at[KEPT]):
        size = lattice.begin[a + 1] - lattice.begin[a]
        if size >= most:
            continue
        j = 0
        while j < levels.size and lattice.nodes[a, j] <= levels[j]:
            j += 1
        if j == levels.size:
            near = a
            most = size
    return near

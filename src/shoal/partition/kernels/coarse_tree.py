"""Compiled descent of records through a tree of cuts, and counts in its nodes."""

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel


@kernel
def descend(X: Floats, axis: Ints, cut: Floats, low: Ints, high: Ints, leaf: Ints) -> None:
    """Send each record down the tree, low if x < cut, and write its leaf.

    A child of -1 - a is leaf a. Node 0 is the root.
    """
    for i in range(X.shape[0]):
        node = 0
        while node >= 0:
            node = low[node] if X[i, axis[node]] < cut[node] else high[node]
        leaf[i] = -1 - node


@kernel
def tally_grid(
    X: Floats, slot: Ints, edges: Floats, first: Ints, ends: Floats, counts: Ints
) -> None:
    """Count the records of each slot by column and position among the edges of both.

    Edges of slot s and column j are edges[first[s, j] : first[s, j + 1]], sorted, and their
    counts begin at 2 first[s, j] + the number of pairs before: place 2 a is below edge a and above
    the one before it, place 2 a + 1 is equal to edge a. `ends` collects the least and the largest
    value: two rows per slot.
    """
    d = X.shape[1]
    for i in range(X.shape[0]):
        s = slot[i]
        if s < 0:
            continue
        for j in range(d):
            x = X[i, j]
            begin = first[s, j]
            a = begin
            b = first[s, j + 1]
            while a < b:
                middle = (a + b) // 2
                if edges[middle] < x:
                    a = middle + 1
                else:
                    b = middle
            place = 2 * (a - begin)
            if a < first[s, j + 1] and edges[a] == x:
                place += 1
            counts[2 * begin + s * d + j + place] += 1
            ends[2 * s, j] = min(ends[2 * s, j], x)
            ends[2 * s + 1, j] = max(ends[2 * s + 1, j], x)

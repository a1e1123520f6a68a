"""Kernel of `copula`: concordant minus discordant pairs in O(n log n)."""

import numpy as np

from shoal.core._arrays import Ints
from shoal.core.jit import kernel


@kernel
def concordance(order: Ints, first: Ints, second: Ints, distinct: int) -> int:
    """Sum of sign(x_i - x_j) sign(y_i - y_j) over all pairs of records.

    Records come in order of the first column, in groups of equal values. Each looks up how many
    records of earlier groups have a smaller and how many a larger second value, in a tree of
    partial sums over the second's ranks 0 to `distinct` - 1 (Fenwick).
    """
    tree = np.zeros(distinct + 1, dtype=np.int64)
    total = 0
    begin = 0
    count = order.size
    while begin < count:
        end = begin
        while end < count and first[order[end]] == first[order[begin]]:
            rank = second[order[end]]
            below = 0
            place = rank
            while place > 0:
                below += tree[place]
                place -= place & -place
            upto = 0
            place = rank + 1
            while place > 0:
                upto += tree[place]
                place -= place & -place
            total += below - (begin - upto)
            end += 1
        for member in range(begin, end):
            place = second[order[member]] + 1
            while place <= distinct:
                tree[place] += 1
                place += place & -place
        begin = end
    return total

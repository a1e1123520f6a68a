"""Compiled sorting and splitting of one column: radix sort, optimal groups of a sorted list."""

import numpy as np

from shoal.core._arrays import Floats, Ints, Unsigned32, Unsigned64
from shoal.core.jit import kernel
from shoal.partition.kernels.shared import number

PASSES = 3


@kernel
def rank_order(
    bits: Ints, words: Unsigned64, spare: Unsigned64, index_bits: int, order: Unsigned32
) -> bool:
    """Sort numbers, given as the bits of float64 without -0.0; ties by index.

    A word holds the leading bits in which the numbers differ, up to 36 of them, and the
    index in `index_bits`. Words are sorted by three passes of a radix sort, which keeps
    ties in order; then the few numbers that agree in the leading bits are put in order by
    insertion. Returns False, without an order, if too many agree.
    """
    n = bits.size
    low = np.uint64(2**64 - 1)
    high = np.uint64(0)
    for i in range(n):
        key = sortable(bits[i])
        low = min(low, key)
        high = max(high, key)
    digit = (min(36, 64 - index_bits) + PASSES - 1) // PASSES
    digit = min(digit, (64 - index_bits) // PASSES)
    drop = np.uint64(max(0, bit_length(high - low) - PASSES * digit))
    by = np.uint64(index_bits)
    mask = np.uint64(2**digit - 1)
    starts = np.zeros((PASSES, 2**digit), np.int64)
    for i in range(n):
        key = (sortable(bits[i]) - low) >> drop
        words[i] = (key << by) | np.uint64(i)
        for a in range(PASSES):
            starts[a, (key >> np.uint64(a * digit)) & mask] += 1
    for a in range(PASSES):
        words, spare = scatter(words, spare, starts[a], np.uint64(index_bits + a * digit), mask)
    index = (np.uint64(1) << by) - np.uint64(1)
    for i in range(n):
        order[i] = words[i] & index
    if drop == np.uint64(0):
        return True
    moves = 0
    for i in range(1, n):
        if words[i] >> by == words[i - 1] >> by:
            who = order[i]
            key = sortable(bits[who])
            at = i
            while (
                at > 0
                and words[at - 1] >> by == words[i] >> by
                and sortable(bits[order[at - 1]]) > key
            ):
                order[at] = order[at - 1]
                at -= 1
            order[at] = who
            moves += i - at
            if moves > 4 * n:
                return False
    return True


@kernel
def sortable(bits: int) -> np.uint64:
    """Map the bits of a float to a whole number of the same order.

    All bits of negative numbers are flipped, and the sign of the others.
    """
    return np.uint64(bits) ^ (np.uint64(bits >> 63) | (np.uint64(1) << np.uint64(63)))


@kernel
def bit_length(number: np.uint64) -> int:
    """Count the bits of a number up to its leading one."""
    length = 0
    while number > np.uint64(0):
        number >>= np.uint64(1)
        length += 1
    return length


@kernel
def scatter(
    words: Unsigned64, spare: Unsigned64, sizes: Ints, shift: np.uint64, mask: np.uint64
) -> tuple[Unsigned64, Unsigned64]:
    """Sort words by one digit into `spare`, keeping ties; return both, sorted one first."""
    total = 0
    for digit in range(sizes.size):
        size = sizes[digit]
        sizes[digit] = total
        total += size
    for i in range(words.size):
        word = words[i]
        value = np.int64((word >> shift) & mask)
        at = sizes[value]
        sizes[value] = at + 1
        spare[at] = word
    return spare, words


@kernel
def order_by_number(numbers: Unsigned32, starts: Ints, order: Unsigned32) -> None:
    """Order rows by the number of their value, ties by index; `starts` has each one's first place.

    It is used up: at the end it has the place after each one's last.
    """
    for i in range(numbers.size):
        number = numbers[i]
        order[starts[number]] = i
        starts[number] += 1


@kernel
def label_by_rank(order: Unsigned32, k: int, labels: Ints) -> None:
    """Give the record of rank i the label min(i // k, n // k - 1)."""
    n = order.size
    g = 0
    left = k
    last = n // k - 1
    for i in range(n):
        if left == 0 and g < last:
            g += 1
            left = k
        left -= 1
        labels[order[i]] = g


@kernel
def optimal_ends(v: Floats, k: int, begin: Ints) -> None:
    """Find the groups of least sum of squares of a sorted list.

    begin[i] is set to where the last group starts in the best grouping of v[:i], from the
    least costs

        f(i) = min over j in i - 2k + 1 .. i - k of f(j) + SSE(v[j:i]).

    Ends are taken k at a time: all candidates of a batch are known before it. Sums and
    costs are kept relative to the batch, so they stay as small as the spread of 3k
    neighbours, however long the list.
    """
    n = v.size
    cost = np.full(3 * k, np.inf)  # cost[a] is f(base + a), up to a constant
    sums = np.zeros(3 * k + 1)
    squares = np.zeros(3 * k + 1)
    columns = np.empty((64, 2 * k), np.int64)
    best = np.empty(k, np.int64)
    cost[2 * k] = 0.0
    for first in range(k, n + 1, k):
        base = first - 2 * k
        least = np.inf
        for a in range(k, 3 * k):
            least = min(least, cost[a])
        for a in range(2 * k):
            cost[a] = cost[a + k] - least
        rows = min(k, n + 1 - first)
        origin = v[first - 1]
        for a in range(2 * k + rows - 1):
            at = base + a
            t = v[at] - origin if at >= 0 else 0.0
            sums[a + 1] = sums[a] + t
            squares[a + 1] = squares[a] + t * t
        if k <= 32:
            for r in range(rows):
                scan_row(r, k, cost, sums, squares, best)
        else:
            width = number(0)
            for j in range(1, 2 * k):
                if cost[j] < np.inf:
                    columns[0, width] = j
                    width += 1
            smawk(rows, width, k, columns, cost, sums, squares, best)
        for r in range(rows):
            begin[first + r] = base + best[r]
            cost[2 * k + r] = group_cost(r, best[r], k, cost, sums, squares)


@kernel
def label_runs(begin: Ints, order: Unsigned32, labels: Ints) -> None:
    """Walk the beginnings back from the end and number the groups by rank."""
    g = 0
    end = order.size
    while end > 0:
        end = begin[end]
        g += 1
    end = order.size
    while end > 0:
        g -= 1
        for i in range(begin[end], end):
            labels[order[i]] = g
        end = begin[end]


@kernel
def group_cost(r: int, j: int, k: int, cost: Floats, sums: Floats, squares: Floats) -> float:
    """Cost of ending row r's grouping with the group that begins at column j."""
    end = 2 * k + r
    total = sums[end] - sums[j]
    spread: float = squares[end] - squares[j] - total * total / (end - j)
    return float(cost[j]) + max(spread, 0.0)


@kernel
def scan_row(r: int, k: int, cost: Floats, sums: Floats, squares: Floats, best: Ints) -> None:
    """Find the best column of row r by trying all of them."""
    least = np.inf
    for j in range(r + 1, r + k + 1):
        if cost[j] < np.inf:
            value = group_cost(r, j, k, cost, sums, squares)
            if value < least:
                least = value
                best[r] = j


@kernel
def better(
    r: int, left: int, right: int, k: int, cost: Floats, sums: Floats, squares: Floats
) -> bool:
    """Tell whether row r prefers the right of two columns.

    Row r may begin a group at columns r + 1 .. r + k. Too far left loses against anything
    to the right, too far right against anything to the left: that keeps the matrix
    totally monotone.
    """
    if left < r + 1:
        return True
    if right > r + k:
        return False
    return group_cost(r, right, k, cost, sums, squares) < group_cost(
        r, left, k, cost, sums, squares
    )


@kernel
def smawk(
    rows: int,
    width: int,
    k: int,
    columns: Ints,
    cost: Floats,
    sums: Floats,
    squares: Floats,
    best: Ints,
) -> None:
    """Find the best column of every row of a totally monotone matrix in linear time.

    Level h handles the rows 2^h - 1, 2 2^h - 1, ...: on the way down columns that can
    serve no row are dropped, on the way up the rows between two known ones are searched
    between the columns of these.
    """
    widths = np.zeros(64, np.int64)
    widths[0] = width
    level = 0
    while True:
        stride = 1 << level
        count = rows // stride
        kept = 0
        for a in range(widths[level]):
            j = columns[level, a]
            while kept and better(
                kept * stride - 1, columns[level, kept - 1], j, k, cost, sums, squares
            ):
                kept -= 1
            if kept < count:
                columns[level, kept] = j
                kept += 1
        widths[level] = kept
        if count <= 1:
            break
        for a in range(kept):
            columns[level + 1, a] = columns[level, a]
        widths[level + 1] = kept
        level += 1
    while level >= 0:
        stride = 1 << level
        a = 0
        for row in range(stride - 1, rows, 2 * stride):
            below = row + stride
            stop = best[below] if below < rows else columns[level, widths[level] - 1]
            best[row] = columns[level, a]
            while columns[level, a] < stop:
                a += 1
                if better(row, best[row], columns[level, a], k, cost, sums, squares):
                    best[row] = columns[level, a]
        level -= 1

"""Compiled recursion of Mondrian; columns are kept in the order of the groups.

Records of a node stay sorted by index, because every cut is stable.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.jit import kernel, vector_kernel
from shoal.partition.kernels.requirement import Rules, meets
from shoal.partition.kernels.shared import number

RANGE, ENTROPY, GAIN = range(3)


class Options(NamedTuple):
    """The options of cutting."""

    k: int
    height: int  # the root has height 0
    relaxed: bool
    choice: int
    extent: Floats  # column: half its range in the whole table, so it cannot overflow
    border: Ints  # column, code: height of the border after it, -1 without hierarchy
    codes: int  # number of codes or ranks that a column may have, where they are counted
    target: Ints  # record: the class to gain information on
    classes: int
    halting: int  # the rule that ends a branch, -1 for none


class Leaves(NamedTuple):
    """The result: one row per group, in the order of the cuts from low to high."""

    lower: Floats
    upper: Floats
    above: Floats  # the cell that the cuts leave: above < x <= upto
    upto: Floats
    depth: Ints


class Work(NamedTuple):
    """Buffers reused from node to node; counts are zero in between."""

    here: Ints
    lower: Ints
    upper: Ints
    seen: Ints
    many: Ints
    values: Floats
    codes: Ints


@kernel
def grow(
    Z: Floats, codes: Ints, rules: Rules, options: Options, leaves: Leaves, labels: Ints
) -> int:
    """Cut the columns Z (one per row, reordered on return) until no cut is allowed.

    Writes the label of each record and the leaves; returns how many there are.
    """
    d, n = Z.shape
    width = rules.total.size
    work = Work(
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.empty(width, np.int64),
        np.zeros(rules.kind.size, np.int64),
        np.empty(n),
        np.zeros(options.codes, np.int64),
    )
    who = np.arange(n)
    spare_who = np.empty(n, np.int64)
    is_low = np.empty(n, np.bool_)
    room = leaves.depth.size + 2
    starts = np.zeros(room, np.int64)
    ends = np.zeros(room, np.int64)
    depths = np.zeros(room, np.int64)
    above = np.full((room, d), -np.inf)
    upto = np.full((room, d), np.inf)
    low = np.empty(d)
    high = np.empty(d)
    score = np.empty(d)
    cut = np.empty((d, 2))
    size = np.empty((d, 2), np.int64)
    ends[0] = n
    waiting = 1
    groups = 0
    while waiting > 0:
        waiting -= 1
        start = starts[waiting]
        end = ends[waiting]
        for j in range(d):
            low[j], high[j] = extent_of(Z[j, start:end])
        column = -1
        if depths[waiting] < options.height and end - start >= 2 * options.k:
            column = choose(
                Z, codes, who, start, end, low, high, rules, options, work, score, cut, size, is_low
            )
        if column < 0:
            leaves.depth[groups] = depths[waiting]
            for j in range(d):
                leaves.lower[groups, j] = low[j]
                leaves.upper[groups, j] = high[j]
                leaves.above[groups, j] = above[waiting, j]
                leaves.upto[groups, j] = upto[waiting, j]
            for a in range(start, end):
                labels[who[a]] = groups
            groups += 1
            continue
        middle = start
        for a in range(start, end):
            middle += is_low[a]
        for j in range(d):
            divide(Z[j], is_low, work.values, start, end)
        divide(who, is_low, spare_who, start, end)
        # The low side lies on top of the stack, so it is cut and numbered first.
        for half in range(2):
            at = waiting + half
            starts[at] = middle if half == 0 else start
            ends[at] = end if half == 0 else middle
            depths[at] = depths[waiting] + (1 if half == 0 else 0)
        for j in range(d):
            above[waiting + 1, j] = above[waiting, j]
            upto[waiting + 1, j] = upto[waiting, j]
        above[waiting, column] = cut[column, 0]
        upto[waiting + 1, column] = cut[column, 0]
        waiting += 2
    return groups


@kernel
def choose(
    Z: Floats,
    codes: Ints,
    who: Ints,
    start: int,
    end: int,
    low: Floats,
    high: Floats,
    rules: Rules,
    options: Options,
    work: Work,
    score: Floats,
    cut: Floats,
    size: Ints,
    is_low: Bools,
) -> int:
    """Choose the column to cut, mark its low side and store the cut; -1 if none is allowed."""
    tally(codes, who, start, end, rules, work)
    column = -1
    halting = options.halting
    stop = halting >= 0 and not meets(
        rules, halting, end - start, work.here, work.seen, work.many[halting]
    )
    if not stop:
        for j in range(Z.shape[0]):
            score[j] = -1.0
            if high[j] > low[j]:
                score[j] = (high[j] / 2 - low[j] / 2) / options.extent[j]
                if options.choice == ENTROPY:
                    score[j] = entropy(Z[j, start:end], work)
                if options.choice == GAIN:
                    find_cuts(Z, j, start, end, high, options, work, cut, size)
                    mark(Z[j], start, end, cut[j, 0], size[j, 0], is_low)
                    score[j] = gain(options, who, start, end, is_low)
        while column < 0:
            j = highest(score)
            if score[j] < 0.0:
                break
            score[j] = -1.0
            if options.choice != GAIN:
                find_cuts(Z, j, start, end, high, options, work, cut, size)
            for a in range(2):
                fewer = min(size[j, a], end - start - size[j, a])
                if fewer < options.k:
                    break
                mark(Z[j], start, end, cut[j, a], size[j, a], is_low)
                if admissible(codes, who, start, end, size[j, a], rules, options, work, is_low):
                    cut[j, 0] = cut[j, a]
                    column = j
                    break
    for r in range(rules.kind.size):
        for a in range(rules.first[r], rules.first[r] + work.many[r]):
            work.here[work.seen[a]] = 0
    return column


@kernel
def highest(score: Floats) -> int:
    """Return the column of the highest score, the lowest among equals."""
    best = 0
    for j in range(1, score.size):
        if score[j] > score[best]:
            best = j
    return best


@kernel
def tally(codes: Ints, who: Ints, start: int, end: int, rules: Rules, work: Work) -> None:
    """Count the values of a node's records for every rule."""
    for r in range(rules.kind.size):
        first = rules.first[r]
        many = 0
        for a in range(start, end):
            v = first + codes[r, who[a]]
            if work.here[v] == 0:
                work.seen[first + many] = v
                many += 1
            work.here[v] += 1
        work.many[r] = many


@kernel
def admissible(
    codes: Ints,
    who: Ints,
    start: int,
    end: int,
    fewer: int,
    rules: Rules,
    options: Options,
    work: Work,
    is_low: Bools,
) -> bool:
    """Whether both sides of a cut satisfy every rule; the low side has `fewer` records."""
    fine = True
    for r in range(rules.kind.size):
        if r == options.halting:
            continue
        first = rules.first[r]
        many = work.many[r]
        for a in range(start, end):
            work.lower[first + codes[r, who[a]]] += is_low[a]
        for a in range(first, first + many):
            v = work.seen[a]
            work.upper[v] = work.here[v] - work.lower[v]
        more = end - start - fewer
        fine = meets(rules, r, fewer, work.lower, work.seen, many) and meets(
            rules, r, more, work.upper, work.seen, many
        )
        for a in range(first, first + many):
            v = work.seen[a]
            work.lower[v] = 0
            work.upper[v] = 0
        if not fine:
            break
    return fine


@kernel
def find_cuts(
    Z: Floats,
    j: int,
    start: int,
    end: int,
    high: Floats,
    options: Options,
    work: Work,
    cut: Floats,
    size: Ints,
) -> None:
    """Find the two cuts x <= c nearest the median, the more balanced first.

    Writes c and the number of records on the low side; 0 records for a cut that is not there.
    Relaxed cuts have one c, the median, and half the records, some of those equal to c
    among them.
    """
    n = end - start
    x = Z[j, start:end]
    half = n // 2
    if options.border[j, 0] >= 0:
        border_cuts(x, options.border[j], work.codes, cut[j], size[j])
    elif options.relaxed:
        copy(x, n, work.values, number(0))
        cut[j, 0] = nth(work.values, n, half - 1)
        size[j, 0] = half
        size[j, 1] = 0
        return
    else:
        copy(x, n, work.values, number(0))
        middle = nth(work.values, n, half)
        before = -np.inf
        fewer = 0
        upto = 0
        for a in range(n):
            if x[a] < middle:
                fewer += 1
                before = max(before, x[a])
            upto += x[a] <= middle
        cut[j, 0] = before
        size[j, 0] = fewer
        cut[j, 1] = middle
        size[j, 1] = upto if middle < high[j] else 0
    if min(size[j, 1], n - size[j, 1]) > min(size[j, 0], n - size[j, 0]):
        cut[j, 0], cut[j, 1] = cut[j, 1], cut[j, 0]
        size[j, 0], size[j, 1] = size[j, 1], size[j, 0]


@kernel
def border_cuts(x: Floats, border: Ints, counts: Ints, cut: Floats, size: Ints) -> None:
    """Find the cuts nearest the median among the highest borders between the codes held."""
    first = border.size
    last = 0
    for value in x:
        code = int(value)
        counts[code] += 1
        first = min(first, code)
        last = max(last, code)
    highest = 0
    for code in range(first, last):
        highest = max(highest, border[code])
    size[0] = size[1] = 0
    passed = 0
    tallest = 0
    held = first
    for code in range(first, last + 1):
        if counts[code] > 0:
            # The border between this code and the last one held is the highest in between.
            if passed > 0 and tallest == highest:
                if passed <= x.size // 2:
                    cut[0] = held
                    size[0] = passed
                elif size[1] == 0:
                    cut[1] = held
                    size[1] = passed
            passed += counts[code]
            held = code
            tallest = 0
            counts[code] = 0
        tallest = max(tallest, border[code])


@kernel
def mark(x: Floats, start: int, end: int, c: float, fewer: int, is_low: Bools) -> None:
    """Mark the low side x <= c with `fewer` records, the first among equals."""
    below = 0
    for a in range(start, end):
        below += x[a] < c
    ties = fewer - below
    for a in range(start, end):
        tied = x[a] == c and ties > 0
        ties -= tied
        is_low[a] = x[a] < c or tied


@kernel
def entropy(x: Floats, work: Work) -> float:
    """Compute the entropy of a column of ranks in a node, in nats."""
    counts = work.codes
    for value in x:
        counts[int(value)] += 1
    total = 0.0
    for value in x:
        c = counts[int(value)]
        if c > 0:
            total += c * np.log(c)
            counts[int(value)] = 0
    return float(np.log(x.size) - total / x.size)


@kernel
def gain(options: Options, who: Ints, start: int, end: int, is_low: Bools) -> float:
    """Compute the information gain of a cut about the target."""
    held = np.zeros((2, options.classes), np.int64)
    for a in range(start, end):
        held[int(is_low[a]), options.target[who[a]]] += 1
    information = 0.0
    sizes = np.zeros(2, np.int64)
    for v in range(options.classes):
        both = held[0, v] + held[1, v]
        if both > 0:
            information -= both * np.log(both)
        for side in range(2):
            c = held[side, v]
            sizes[side] += c
            if c > 0:
                information += c * np.log(c)
    for side in range(2):
        if sizes[side] > 0:
            information -= sizes[side] * np.log(sizes[side])
    n = end - start
    information += n * np.log(n)
    # Rounding may put no gain slightly below zero.
    return float(max(information, 0.0) / n)


@kernel
def divide(x: NDArray[Any], is_low: Bools, spare: NDArray[Any], start: int, end: int) -> None:
    """Move the low side to the front, stably and without a branch per record."""
    front = start
    back = 0
    for a in range(start, end):
        value = x[a]
        x[front] = value
        spare[back] = value
        front += is_low[a]
        back += not is_low[a]
    copy(spare, back, x, front)


@kernel
def copy(source: NDArray[Any], n: int, target: NDArray[Any], at: int) -> None:
    """Copy the first n values; Numba compiles a loop much faster than a slice assignment."""
    for a in range(n):
        target[at + a] = source[a]


@vector_kernel
def extent_of(x: Floats) -> tuple[float, float]:
    """Return the least and largest number."""
    low = x[0]
    high = x[0]
    for value in x:
        low = min(low, value)
        high = max(high, value)
    return low, high


@kernel
def nth(x: Floats, n: int, h: int) -> float:
    """Return the number of rank h among the first n, reordering them: Hoare's quickselect.

    The pivot is the median of three at scattered places, so no order that occurs in tables is
    slow.
    """
    left = 0
    right = n - 1
    place = 12345
    while right > left:
        width = right - left + 1
        place = (place * 1103515245 + 12345) % 2147483648
        a = x[left + place % width]
        b = x[left + (place >> 7) % width]
        c = x[left + (place >> 14) % width]
        pivot = max(min(a, b), min(max(a, b), c))
        i = left
        j = right
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if h <= j:
            right = j
        elif h >= i:
            left = i
        else:
            break
    return float(x[h])

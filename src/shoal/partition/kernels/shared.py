"""Compiled helpers of the exact searches: distance, heap, centroid, shell.

The arithmetic is that of `_exact_scale`. Kernels take arrays and scalars only, by position.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel
from shoal.partition._exact_scale import HALF_WORD

NOBODY = -1


@kernel
def number(value: int) -> int:
    """Hide from Numba that a number is a literal, or it compiles callees once for each."""
    return value + 0


class MixedSpace(NamedTuple):
    """Which columns of a matrix hold numbers and which codes, and how far apart codes are.

    Attributes:
        numbers: how many columns hold numbers; they stand first.
        weight: of each column of codes, the squared length of an edge.
        start: where each column's codes begin in a table of the codes of all columns; its end last.
    """

    numbers: int
    weight: Floats
    start: Ints


class QueryPoint(NamedTuple):
    """A record, or the centroid of some.

    Attributes:
        at: its numbers and codes; the codes of a centroid are not used.
        shares: of a centroid, the share of its records that have each code; empty for a record.
        table: of a centroid, its squared distance to each code; empty for a record.
        top: of a centroid, the largest of these in each column.
    """

    at: Floats
    shares: Floats
    table: Floats
    top: Floats


class Sums(NamedTuple):
    """What centroids are computed from: whole numbers, so no order of records matters.

    Attributes:
        high: fixed-point sums of the numbers, see `_exact_scale`.
        low: their lower halves.
        counts: how many records have each code.
        squares: of each column of codes, the sum of the squares of its counts.
    """

    high: Ints
    low: Ints
    counts: Ints
    squares: Ints


@kernel
def no_sums(space: MixedSpace) -> Sums:
    """Sums over nobody."""
    return Sums(
        np.zeros(space.numbers, np.int64),
        np.zeros(space.numbers, np.int64),
        np.zeros(space.start[-1], np.int64),
        np.zeros(space.weight.size, np.int64),
    )


@kernel
def no_centroid(space: MixedSpace) -> QueryPoint:
    """Make room for a centroid."""
    codes = space.start[-1]
    columns = space.weight.size
    at = np.zeros(space.numbers + columns)
    return QueryPoint(at, np.zeros(codes), np.zeros(codes), np.zeros(columns))


@kernel
def record_point(Z: Floats, i: int, nothing: Floats) -> QueryPoint:
    """Record i as a point; `nothing` is an empty array, made once."""
    return QueryPoint(Z[i], nothing, nothing, nothing)


@kernel
def code_gap(weight: float, a: float, b: float) -> float:
    """Squared distance of two codes: of the edges that one of two records has, and not both."""
    if a == b:
        return 0.0
    return weight * (np.float64(a > 0.0) + np.float64(b > 0.0))


@kernel
def distance(Z: Floats, i: int, q: QueryPoint, space: MixedSpace) -> float:
    """Compute the squared distance of record i to the point q, in column order."""
    total = 0.0
    for j in range(space.numbers):
        t = Z[i, j] - q.at[j]
        total += t * t
    for c in range(space.weight.size):
        j = space.numbers + c
        if q.table.size:
            total += q.table[space.start[c] + np.int64(Z[i, j])]
        else:
            total += code_gap(space.weight[c], Z[i, j], q.at[j])
    return total


@kernel
def gap(a: QueryPoint, b: QueryPoint, space: MixedSpace) -> float:
    """Squared distance between two centroids."""
    total = 0.0
    for j in range(space.numbers):
        t = a.at[j] - b.at[j]
        total += t * t
    for c in range(space.weight.size):
        apart = 0.0
        for e in range(space.start[c], space.start[c + 1]):
            t = a.shares[e] - b.shares[e]
            apart += t * t
        total += space.weight[c] * apart
    return total


@kernel
def push(far: Floats, who: Ints, size: int, room: int, distance: float, i: int) -> int:
    """Keep the `room` smallest (distance, index) pairs in a max-heap; return its size."""
    if size < room:
        at = size
        while at > 0:
            above = (at - 1) >> 1
            if far[above] > distance or (far[above] == distance and who[above] > i):
                break
            far[at] = far[above]
            who[at] = who[above]
            at = above
        far[at] = distance
        who[at] = i
        return size + 1
    if distance > far[0] or (distance == far[0] and i > who[0]):
        return size
    at = 0
    while True:
        child = 2 * at + 1
        if child >= room:
            break
        other = child + 1
        if other < room and (
            far[other] > far[child] or (far[other] == far[child] and who[other] > who[child])
        ):
            child = other
        if distance > far[child] or (distance == far[child] and i > who[child]):
            break
        far[at] = far[child]
        who[at] = who[child]
        at = child
    far[at] = distance
    who[at] = i
    return size


@kernel
def total_live(Z: Floats, labels: Ints, sums: Sums, space: MixedSpace) -> int:
    """Fill the sums over the records without a label; return their number."""
    sums.high[:] = 0
    sums.low[:] = 0
    sums.counts[:] = 0
    sums.squares[:] = 0
    m = 0
    for i in range(Z.shape[0]):
        if labels[i] < 0:
            m += 1
            count(Z, i, 1, sums, space)
    return m


@kernel
def count(Z: Floats, i: int, sign: int, sums: Sums, space: MixedSpace) -> None:
    """Add record i to the sums, or take it away (sign = -1)."""
    for j in range(space.numbers):
        scaled = Z[i, j] * HALF_WORD
        integer = np.floor(scaled)
        sums.high[j] += sign * np.int64(integer)
        sums.low[j] += sign * np.int64(np.floor((scaled - integer) * HALF_WORD))
    for c in range(space.weight.size):
        code = np.int64(Z[i, space.numbers + c])
        if code > 0:
            e = space.start[c] + code
            sums.squares[c] += 2 * sign * sums.counts[e] + 1
            sums.counts[e] += sign


@kernel
def centroid(sums: Sums, m: int, c: QueryPoint, space: MixedSpace) -> None:
    """Write the mean of m records, given their sums, to c."""
    for j in range(space.numbers):
        c.at[j] = (np.float64(sums.high[j]) + np.float64(sums.low[j]) / HALF_WORD) / m / HALF_WORD
    for column in range(space.weight.size):
        weight = space.weight[column]
        spread = np.float64(sums.squares[column]) / m / m
        first = space.start[column]
        top = c.table[first] = spread * weight
        for e in range(first + 1, space.start[column + 1]):
            share = np.float64(sums.counts[e]) / m
            c.shares[e] = share
            far = max((spread + (1.0 - 2.0 * share)) * weight, 0.0)
            c.table[e] = far
            top = max(top, far)
        c.top[column] = top


@kernel
def outer_shell(
    Z: Floats, labels: Ints, m: int, c: QueryPoint, space: MixedSpace
) -> tuple[Floats, Ints, float]:
    """List the live records farthest from c, outermost first.

    At least 256 records or a twentieth of all m are listed. Returns their radii, their indices, and
    a radius that no record outside the list exceeds (-1 if all are listed). The latter is at most
    2047/2048 of the largest, so the record farthest from c itself is always found in the list.
    """
    radius = np.empty(m)
    live = np.empty(m, np.int64)
    top = 0.0
    at = 0
    for i in range(Z.shape[0]):
        if labels[i] < 0:
            live[at] = i
            radius[at] = np.sqrt(distance(Z, i, c, space))
            top = max(top, radius[at])
            at += 1
    bins = 2048
    # If all radii are almost zero, one bin holds them all.
    per_bin = bins / top if top > 1e-150 else 0.0
    histogram = np.zeros(bins + 2, np.int64)
    for a in range(m):
        histogram[int(radius[a] * per_bin)] += 1
    want = max(256, m // 20)
    edge = bins + 1
    listed = 0
    while edge > 0 and listed < want:
        edge -= 1
        listed += histogram[edge]
    # One bin more keeps those outside the list clearly nearer to c than the outermost.
    if edge > 0:
        edge -= 1
        listed += histogram[edge]
    radii = np.empty(listed)
    who = np.empty(listed, np.int64)
    inner = -1.0
    at = 0
    for a in range(m):
        if int(radius[a] * per_bin) >= edge:
            radii[at] = radius[a]
            who[at] = live[a]
            at += 1
        else:
            inner = max(inner, radius[a])
    sort_outermost_first(radii, who)
    return radii, who, inner


@kernel
def sort_outermost_first(radii: Floats, who: Ints) -> None:
    """Heapsort by decreasing radius; Numba's argsort takes seconds to compile."""
    size = radii.size
    for built in range(size // 2 - 1, -1, -1):
        sift(radii, who, built, size)
    for end in range(size - 1, 0, -1):
        radii[0], radii[end] = radii[end], radii[0]
        who[0], who[end] = who[end], who[0]
        sift(radii, who, number(0), end)


@kernel
def sift(radii: Floats, who: Ints, at: int, size: int) -> None:
    """Sift the entry at `at` down in a heap with the smallest radius on top."""
    radius = radii[at]
    i = who[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and radii[child + 1] < radii[child]:
            child += 1
        if radii[child] >= radius:
            break
        radii[at] = radii[child]
        who[at] = who[child]
        at = child
    radii[at] = radius
    who[at] = i


@kernel
def farthest_in_shell(
    Z: Floats,
    labels: Ints,
    radii: Floats,
    who: Ints,
    inner: float,
    head: int,
    moved: float,
    q: QueryPoint,
    space: MixedSpace,
) -> tuple[int, int]:
    """Find the live record farthest from q, which lies `moved` from the shell's centre.

    A record at radius v is at most v + moved from q, so a short scan from the outer end suffices.
    Returns the record, or NOBODY if the list was too short, and the number of entries read.
    """
    # Radii, `moved` and the root below carry rounding errors of about one unit in the last
    # place for each column, which stay below this relative margin, and lose squares
    # below the least float, which stay below this absolute one. A centroid's distance to a code
    # is a difference: its square is off by at most 16 * 2^-53 of the weight.
    margin = (q.at.size + 4096) * 2.0**-52
    moved = moved * (1.0 + margin) + 1e-150 + np.sqrt(space.weight.sum()) * 2.0**-22
    best = -1.0
    safe = -1.0
    chosen = NOBODY
    at = head
    while at < who.size:
        if radii[at] * (1.0 + margin) + moved < safe:
            return chosen, at - head
        i = who[at]
        if labels[i] < 0:
            far = distance(Z, i, q, space)
            if far > best or (far == best and i < chosen):
                best = far
                chosen = i
                safe = np.sqrt(far) * (1.0 - margin)
        at += 1
    if inner >= 0.0 and inner * (1.0 + margin) + moved >= safe:
        return NOBODY, at - head
    return chosen, at - head


class Shell(NamedTuple):
    """The live records farthest from some centroid, and the state of later searches.

    Attributes:
        radii: from the largest on.
        who: their records.
        inner: a radius that no other record exceeds.
        centre: from which radii were taken.
        head: index of the first record that may still be live.
        read: entries read since.
        helps: whether the list saves time.
    """

    radii: Floats
    who: Ints
    inner: float
    centre: QueryPoint
    head: int
    read: int
    helps: bool


@kernel
def no_shell(m: int, space: MixedSpace) -> Shell:
    """Start with an empty list: the first search makes one."""
    centre = no_centroid(space)
    return Shell(np.empty(0), np.empty(0, np.int64), np.inf, centre, number(0), m, m >= 0)


@kernel
def farthest_out(
    Z: Floats, labels: Ints, m: int, c: QueryPoint, shell: Shell, space: MixedSpace
) -> tuple[int, Shell]:
    """Find the live record farthest from the centroid c of all m, and the shell for the next.

    Once more places were read than records are live, the list is rebuilt. The record is NOBODY if
    many are about as far out as the farthest: a shell does not help from then on.
    """
    radii, who, inner, centre, head, read, helps = shell
    r = NOBODY
    if helps and read < m:
        while head < who.size and labels[who[head]] >= 0:
            head += 1
        moved = np.sqrt(gap(c, centre, space))
        r, places = farthest_in_shell(Z, labels, radii, who, inner, head, moved, c, space)
        read += places
    if helps and r == NOBODY:
        radii, who, inner = outer_shell(Z, labels, m, c, space)
        centre = QueryPoint(c.at.copy(), c.shares.copy(), c.table, c.top)
        head = number(0)
        r, read = farthest_in_shell(Z, labels, radii, who, inner, head, 0.0, c, space)
        helps = read <= 64 + m // 16
    return r, Shell(radii, who, inner, centre, head, read, helps)

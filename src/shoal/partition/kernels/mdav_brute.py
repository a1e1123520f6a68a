"""MDAV's rounds by visiting every record: the fallback where no tree prunes.

Records stand in blocks of `BLOCK`, column by column, in float32 around the centroid. A
block's float32 distances decide whether it can hold anything of interest; whatever
passes is measured again in float64, so the answer is that of the exact search.
"""

import numpy as np

from shoal.core._arrays import Floats, Floats32, Ints
from shoal.core.jit import kernel, vector_kernel
from shoal.partition.kernels.shared import (
    NOBODY,
    MixedSpace,
    QueryPoint,
    Sums,
    centroid,
    count,
    distance,
    farthest_out,
    no_centroid,
    no_shell,
    no_sums,
    number,
    push,
    record_point,
    total_live,
)

BLOCK = 256


@kernel
def brute_rounds(Z: Floats, space: MixedSpace, k: int, labels: Ints, g: int, rounds: int) -> int:
    """Do up to `rounds` rounds of MDAV on the records without a label; return the next g.

    A round ends two groups while 3k records remain, or one while 2k remain.
    """
    n, d = Z.shape
    sums = no_sums(space)
    m = total_live(Z, labels, sums, space)
    c = no_centroid(space)
    centroid(sums, m, c, space)
    nothing = np.empty(0)
    origin = c.at.copy()
    cells = np.zeros(((m + BLOCK - 1) // BLOCK, d, BLOCK), np.float32)
    who = np.empty(m, np.int64)
    where = np.empty(n, np.int64)
    load(Z, labels, origin, cells, who, where)
    near = np.empty(k)
    group = np.empty(k, np.int64)
    block = np.empty(BLOCK, np.float32)
    shell = no_shell(m, space)
    for _ in range(rounds):
        if m < 2 * k:
            break
        two = m >= 3 * k
        centroid(sums, m, c, space)
        r, shell = farthest_out(Z, labels, m, c, shell, space)
        if r == NOBODY:
            alone = not shell.helps
            r = nearest(Z, c, space, origin, cells, who, m, number(0), near, group, block, alone)
        for half in range(2 if two else 1):
            m = leave(r, Z, labels, g, sums, space, cells, who, where, m)
            q = record_point(Z, r, nothing)
            first = half == 0 and two
            s = nearest(Z, q, space, origin, cells, who, m, k - 1, near, group, block, first)
            for e in range(k - 1):
                m = leave(group[e], Z, labels, g, sums, space, cells, who, where, m)
            g += 1
            if first:
                # The farthest may itself have been among the nearest where few remain.
                r = s if labels[s] < 0 else farthest(Z, who, m, q, space)
    return g


@kernel
def load(Z: Floats, labels: Ints, origin: Floats, cells: Floats32, who: Ints, where: Ints) -> None:
    """Copy the live records, less the origin, into blocks; the origin of codes is 0."""
    at = 0
    for i in range(Z.shape[0]):
        if labels[i] < 0:
            who[at] = i
            where[i] = at
            for j in range(Z.shape[1]):
                cells[at // BLOCK, j, at % BLOCK] = Z[i, j] - origin[j]
            at += 1


@kernel
def leave(
    i: int,
    Z: Floats,
    labels: Ints,
    g: int,
    sums: Sums,
    space: MixedSpace,
    cells: Floats32,
    who: Ints,
    where: Ints,
    m: int,
) -> int:
    """Assign record i to group g and move the last record to its position; return m - 1."""
    labels[i] = g
    count(Z, i, -1, sums, space)
    at = where[i]
    last = m - 1
    if at != last:
        moved = who[last]
        who[at] = moved
        where[moved] = at
        for j in range(Z.shape[1]):
            cells[at // BLOCK, j, at % BLOCK] = cells[last // BLOCK, j, last % BLOCK]
    return last


@kernel
def farthest(Z: Floats, who: Ints, m: int, q: QueryPoint, space: MixedSpace) -> int:
    """Find the live record farthest from q in float64."""
    best = -1.0
    chosen = NOBODY
    for a in range(m):
        far = distance(Z, who[a], q, space)
        if far > best or (far == best and who[a] < chosen):
            best = far
            chosen = who[a]
    return chosen


@vector_kernel
def block_distances(
    cells: Floats32, q: Floats32, space: MixedSpace, table: Floats32, out: Floats32
) -> None:
    """Compute squared float32 distances of one block to q."""
    d = space.numbers
    out[:] = 0.0
    j = 0
    while j + 4 <= d:
        q0, q1, q2, q3 = q[j], q[j + 1], q[j + 2], q[j + 3]
        for i in range(BLOCK):
            t0 = cells[j, i] - q0
            t1 = cells[j + 1, i] - q1
            t2 = cells[j + 2, i] - q2
            t3 = cells[j + 3, i] - q3
            out[i] = (((out[i] + t0 * t0) + t1 * t1) + t2 * t2) + t3 * t3
        j += 4
    while j < d:
        qj = q[j]
        for i in range(BLOCK):
            t = cells[j, i] - qj
            out[i] = out[i] + t * t
        j += 1
    for c in range(space.weight.size):
        qj = q[d + c]
        if table.size:
            first = space.start[c]
            for i in range(BLOCK):
                out[i] = out[i] + table[first + np.int64(cells[d + c, i])]
            continue
        alone = np.float32(space.weight[c]) if qj > 0.0 else np.float32(0.0)
        both = alone + np.float32(space.weight[c])
        for i in range(BLOCK):
            x = cells[d + c, i]
            step = both if x > 0.0 else alone
            out[i] = out[i] + (np.float32(0.0) if x == qj else step)


@vector_kernel
def extremes(values: Floats32, size: int) -> tuple[float, float]:
    """Return the smallest and the largest of the first `size` values."""
    smallest = values[0]
    largest = values[0]
    for i in range(size):
        smallest = min(smallest, values[i])
        largest = max(largest, values[i])
    return smallest, largest


@kernel
def nearest(
    Z: Floats,
    q: QueryPoint,
    space: MixedSpace,
    origin: Floats,
    cells: Floats32,
    who: Ints,
    m: int,
    want: int,
    near: Floats,
    group: Ints,
    block: Floats32,
    also_farthest: bool,
) -> int:
    """Write the `want` nearest of m records to `group`; return the farthest if asked.

    A cell is rounded to float32 with a relative error of u = 2^-24, so a difference t
    to q carries at most u |q| + 2 u |t|, and a squared distance D at most

        2 u |q| sqrt(D) + 4 u D + (d + 2) u D + terms in u^2.

    `root`, `flat` and `tiny` bound the three with room to spare; float64's own errors are
    2^-29 of these. Codes are whole and exact, and what they add is not negative: the third has it.
    """
    d = q.at.size
    q32 = np.empty(d, np.float32)
    norm = 0.0
    for j in range(space.numbers):
        t = q.at[j] - origin[j]
        q32[j] = t
        norm += t * t
    for j in range(space.numbers, d):
        q32[j] = q.at[j]
    table = q.table.astype(np.float32)
    unit = 2.0**-23
    root = 2.0 * unit * np.sqrt(norm)
    flat = (d + 8) * unit
    tiny = root * root + 2.0**-100
    size = number(0)
    limit = np.inf if want else -1.0
    best = -1.0
    floor = -np.inf
    chosen = NOBODY
    for start in range(0, m, BLOCK):
        width = min(BLOCK, m - start)
        block_distances(cells[start // BLOCK], q32, space, table, block)
        smallest, largest = extremes(block, width)
        if size < want or smallest <= limit:
            for i in range(width):
                if size < want or block[i] <= limit:
                    w = who[start + i]
                    if size == want and near[0] == 0.0 and w > group[0]:
                        continue
                    size = push(near, group, size, want, distance(Z, w, q, space), w)
                    if size == want:
                        limit = near[0] * (1.0 + flat) + root * np.sqrt(near[0]) + tiny
        if also_farthest and largest >= floor:
            for i in range(width):
                if block[i] >= floor:
                    w = who[start + i]
                    far = distance(Z, w, q, space)
                    if far > best or (far == best and w < chosen):
                        best = far
                        chosen = w
                        floor = best * (1.0 - flat) - root * np.sqrt(best) - tiny
    return chosen

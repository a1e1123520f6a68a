"""MDAV's rounds over cells of records that share their categories.

Mixed tables have few combinations of categories, and few numbers inside each. Equal records are one
point with a queue of records: of equal records the lowest index always leaves first. Points that
agree in every column of few values form cells, cut further by the others, and `SPAN` cells that
follow one another a region. A search bounds its distance to all regions at once, then to the cells
of those that can hold the answer, with the operations of the distances themselves, so rounding
keeps their order, and looks into the cells that can.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.jit import kernel, vector_kernel
from shoal.partition.kernels.mdav_tree import (
    largest,
    leaf_distances,
    select,
    smallest,
    widest_side,
)
from shoal.partition.kernels.shared import (
    NOBODY,
    MixedSpace,
    QueryPoint,
    centroid,
    count,
    farthest_out,
    no_centroid,
    no_shell,
    no_sums,
    number,
    push,
    record_point,
    total_live,
)

FEW = 16
"""A column with at most so many values is one of categories."""


SPAN = 32
"""So many cells make a region."""
GONE = 2**62
"""The lowest record of a cell or region without any."""
CLOSE = 2.0**-30
"""So near to the end of a cell, a number may give a distance that rounds to that of the end."""


class Cells(NamedTuple):
    """The live points in cells: boxes without extent in the columns of few values."""

    points: Floats  # cell, column, place
    who: Ints  # cell, place: which point
    size: Ints  # cell: places in use
    where: Ints  # point: cell * capacity + place
    low: Floats  # region, column, cell of the region
    high: Floats  # the same
    first: Ints  # cell: its lowest live record
    first_low: Ints  # cell, column of numbers: that of its records near the lower side
    first_high: Ints  # cell, column of numbers: that of its records near the upper side
    flat: Bools  # column
    region_low: Floats  # column, region
    region_high: Floats  # column, region
    region_first: Ints  # region: its lowest live record
    broad: Bools  # column: regions have extent in all
    point: Ints  # record: its point
    queue: Ints  # records by point, ascending
    head: Ints  # point: its lowest live record's place in the queue
    tail: Ints  # point: the end of its queue


@kernel
def number_rows(Z: Floats) -> tuple[Ints, Ints]:
    """Number the distinct rows in order of appearance; return row numbers and first rows."""
    n, d = Z.shape
    bits = Z.view(np.uint64)
    room = 2
    while room < 2 * n:
        room *= 2
    slots = np.full(room, NOBODY)
    numbers = np.empty(n, np.int64)
    firsts = np.empty(n, np.int64)
    many = 0
    for i in range(n):
        key = np.uint64(0)
        for j in range(d):
            if Z[i, j] != 0.0:  # Zero has two signs.
                key ^= bits[i, j]
            key *= np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        at = np.int64(key & np.uint64(room - 1))
        while slots[at] != NOBODY:
            other = firsts[slots[at]]
            same = True
            for j in range(d):
                if Z[i, j] != Z[other, j]:
                    same = False
                    break
            if same:
                break
            at = (at + 1) & (room - 1)
        if slots[at] == NOBODY:
            slots[at] = many
            firsts[many] = i
            many += 1
        numbers[i] = slots[at]
    return numbers, firsts[:many]


@kernel
def of_few_values(U: Floats) -> Bools:
    """Return which columns have at most `FEW` values."""
    n, d = U.shape
    few = np.ones(d, np.bool_)
    values = np.empty(FEW)
    for j in range(d):
        known = 0
        for i in range(n):
            at = 0
            while at < known and values[at] != U[i, j]:
                at += 1
            if at == FEW:
                few[j] = False
                break
            if at == known:
                values[at] = U[i, j]
                known += 1
    return few


@kernel
def by_number(numbers: Ints, most: int) -> tuple[Ints, Ints]:
    """Sort positions by their number; also return where each number starts."""
    starts = np.zeros(most + 1, np.int64)
    for i in range(numbers.size):
        starts[numbers[i] + 1] += 1
    for a in range(most):
        starts[a + 1] += starts[a]
    ordered = np.empty(numbers.size, np.int64)
    at = starts.copy()
    for i in range(numbers.size):
        ordered[at[numbers[i]]] = i
        at[numbers[i]] += 1
    return ordered, starts


@kernel
def fill(
    U: Floats, space: MixedSpace, point: Ints, cell: Ints, cells: int, flat: Bools, capacity: int
) -> Cells:
    """Build the cells of points U: one per combination of `cell`, halved down to the capacity."""
    n, d = U.shape
    who, starts = by_number(cell, cells)
    rows = U[who]
    begins = np.empty(cells + 2 * n // capacity + 1, np.int64)
    ends = np.empty(begins.size, np.int64)
    todo = np.empty((128, 2), np.int64)
    low = np.empty(d)
    high = np.empty(d)
    count = 0
    for a in range(cells):
        todo[0, 0] = starts[a]
        todo[0, 1] = starts[a + 1]
        depth = 1
        while depth:
            depth -= 1
            start = todo[depth, 0]
            end = todo[depth, 1]
            if end - start <= capacity:
                begins[count] = start
                ends[count] = end
                count += 1
                continue
            for j in range(d):
                low[j] = 0.0 if flat[j] else rows[start:end, j].min()
                high[j] = -1.0 if flat[j] else rows[start:end, j].max()
            widest = widest_side(low, high, space)
            middle = (start + end) // 2
            select(rows, who, widest, start, end, middle)
            todo[depth, 0] = start
            todo[depth, 1] = middle
            todo[depth + 1, 0] = middle
            todo[depth + 1, 1] = end
            depth += 2
    queue, heads = by_number(point, n)
    regions = (count + SPAN - 1) // SPAN
    room = regions * SPAN
    size = np.zeros(room, np.int64)
    size[:count] = ends[:count] - begins[:count]
    made = Cells(
        np.zeros((room, d, capacity)),
        np.zeros((room, capacity), np.int64),
        size,
        np.empty(n, np.int64),
        np.zeros((regions, d, SPAN)),
        np.zeros((regions, d, SPAN)),
        np.full(room, GONE),
        np.zeros((room, space.numbers), np.int64),
        np.zeros((room, space.numbers), np.int64),
        flat,
        np.zeros((d, regions)),
        np.zeros((d, regions)),
        np.empty(regions, np.int64),
        np.zeros(d, np.bool_),
        point,
        queue,
        heads[:n].copy(),
        heads[1:].copy(),
    )
    for c in range(count):
        for place in range(size[c]):
            at = begins[c] + place
            made.who[c, place] = who[at]
            made.where[who[at]] = c * capacity + place
            made.points[c, :, place] = rows[at]
        made.low[c // SPAN, :, c % SPAN] = rows[begins[c]]
        made.high[c // SPAN, :, c % SPAN] = rows[begins[c]]
        fit(made, c)
    for region in range(regions):
        fit_region(made, region)
    return made


@kernel
def fit(cells: Cells, c: int) -> None:
    """Compute a cell's box in the columns that vary, and its lowest live record."""
    size = cells.size[c]
    first = np.int64(GONE)
    for place in range(size):
        first = min(first, cells.queue[cells.head[cells.who[c, place]]])
    cells.first[c] = first
    for j in range(cells.flat.size):
        if size and not cells.flat[j]:
            low = np.inf
            high = -np.inf
            for place in range(size):
                low = min(low, cells.points[c, j, place])
                high = max(high, cells.points[c, j, place])
            cells.low[c // SPAN, j, c % SPAN] = low
            cells.high[c // SPAN, j, c % SPAN] = high
            if j < cells.first_low.shape[1]:
                lowest = highest = np.int64(GONE)
                for place in range(size):
                    x = cells.points[c, j, place]
                    i = cells.queue[cells.head[cells.who[c, place]]]
                    if x <= low + CLOSE:
                        lowest = min(lowest, i)
                    if x >= high - CLOSE:
                        highest = min(highest, i)
                cells.first_low[c, j] = lowest
                cells.first_high[c, j] = highest


@kernel
def fit_region(cells: Cells, region: int) -> None:
    """Compute a region's box and its lowest live record from its cells that hold any."""
    base = region * SPAN
    first = np.int64(GONE)
    for e in range(SPAN):
        first = min(first, cells.first[base + e])
    cells.region_first[region] = first
    if first == GONE:
        return
    for j in range(cells.flat.size):
        low = np.inf
        high = -np.inf
        for e in range(SPAN):
            if cells.size[base + e]:
                low = min(low, cells.low[region, j, e])
                high = max(high, cells.high[region, j, e])
        cells.region_low[j, region] = low
        cells.region_high[j, region] = high


@vector_kernel
def to_cells(
    low: Floats, high: Floats, flat: Bools, q: QueryPoint, space: MixedSpace, far: bool, out: Floats
) -> None:
    """Bound the squared distance of q to each cell's points, from above or from below."""
    out[:] = 0.0
    for j in range(space.numbers):
        qj = q.at[j]
        lower = low[j]
        upper = high[j]
        if flat[j]:
            for c in range(out.size):
                t = lower[c] - qj
                out[c] = out[c] + t * t
        elif far:
            for c in range(out.size):
                t = max(abs(qj - lower[c]), abs(upper[c] - qj))
                out[c] = out[c] + t * t
        else:
            for c in range(out.size):
                t = max(lower[c] - qj, qj - upper[c], 0.0)
                out[c] = out[c] + t * t
    for column in range(space.weight.size):
        j = space.numbers + column
        first = space.start[column]
        qj = q.at[j]
        lower = low[j]
        upper = high[j]
        if q.table.size:
            top = q.top[column]
            table = q.table[first : space.start[column + 1]]
            for c in range(out.size):
                step = table[np.int32(lower[c])]
                out[c] = out[c] + (step if lower[c] == upper[c] else top)
            continue
        alone = space.weight[column] if qj > 0.0 else 0.0
        both = alone + space.weight[column]
        if far:
            for c in range(out.size):
                step = both if upper[c] > 0.0 else alone
                out[c] = out[c] + (0.0 if (lower[c] == qj) & (upper[c] == qj) else step)
        else:
            for c in range(out.size):
                step = both if lower[c] > 0.0 else alone
                out[c] = out[c] + (0.0 if (lower[c] <= qj) & (qj <= upper[c]) else step)


@kernel
def lowest_at(cells: Cells, c: int, q: QueryPoint, far: float) -> int:
    """Bound the lowest record of a cell that may be as far from q as its box, from below.

    It lies at the far side in every column of numbers that matters to that distance.
    """
    lowest: int = cells.first[c]
    region = c // SPAN
    e = c % SPAN
    for j in range(cells.first_low.shape[1]):
        below = q.at[j] - cells.low[region, j, e]
        above = cells.high[region, j, e] - q.at[j]
        if cells.flat[j] or max(below, above) ** 2 < far * 2.0**-20:
            continue
        if below > above + CLOSE:
            lowest = max(lowest, cells.first_low[c, j])
        elif above > below + CLOSE:
            lowest = max(lowest, cells.first_high[c, j])
    return lowest


@kernel
def farthest(
    cells: Cells, q: QueryPoint, space: MixedSpace, outer: Floats, bounds: Floats, block: Floats
) -> tuple[int, int]:
    """Find the record farthest from q; return it and the number of distances computed."""
    to_cells(cells.region_low, cells.region_high, cells.broad, q, space, True, outer)
    best = -1.0
    chosen = NOBODY
    work = outer.size
    top = 0
    for region in range(outer.size):
        if cells.region_first[region] == GONE:
            outer[region] = -1.0
        if outer[region] > outer[top]:
            top = region
    for turn in range(-1, outer.size):
        region = turn if turn >= 0 else top
        if outer[region] < best or outer[region] < 0.0:
            continue
        if outer[region] == best and cells.region_first[region] >= chosen:
            continue
        to_cells(cells.low[region], cells.high[region], cells.flat, q, space, True, bounds)
        work += SPAN
        outer[region] = -1.0
        base = region * SPAN
        while True:
            c = NOBODY
            for e in range(SPAN):
                if not cells.size[base + e] or bounds[e] < best or bounds[e] < 0.0:
                    continue
                if bounds[e] == best and lowest_at(cells, base + e, q, best) >= chosen:
                    bounds[e] = -1.0
                elif c == NOBODY or bounds[e] > bounds[c]:
                    c = e
            if c == NOBODY:
                break
            bounds[c] = -1.0
            c += base
            size = cells.size[c]
            leaf_distances(cells.points[c], size, q, space, block)
            work += size
            most = largest(block, size)
            if most < best:
                continue
            for place in range(size):
                if block[place] == most:
                    i = cells.queue[cells.head[cells.who[c, place]]]
                    if most > best or i < chosen:
                        best = most
                        chosen = i
    return chosen, work


@kernel
def look_into(
    cells: Cells,
    c: int,
    q: QueryPoint,
    space: MixedSpace,
    want: int,
    near: Floats,
    group: Ints,
    size: int,
    block: Floats,
) -> int:
    """Offer a cell's records to the heap of the nearest; return the heap's size."""
    live = cells.size[c]
    leaf_distances(cells.points[c], live, q, space, block)
    if size == want and smallest(block, live) > near[0]:
        return size
    for place in range(live):
        far = block[place]
        if size == want and far > near[0]:
            continue
        p = cells.who[c, place]
        for at in range(cells.head[p], cells.tail[p]):
            i = cells.queue[at]
            if size == want and (far > near[0] or (far == near[0] and i > group[0])):
                break
            size = push(near, group, size, want, far, i)
    return size


@kernel
def nearest(
    cells: Cells,
    q: QueryPoint,
    space: MixedSpace,
    home: int,
    want: int,
    near: Floats,
    group: Ints,
    outer: Floats,
    bounds: Floats,
    block: Floats,
) -> int:
    """Write the `want` nearest records to `group`; return the number of distances computed.

    Only equal records are at distance zero.
    """
    size = look_into(cells, home, q, space, want, near, group, number(0), block)
    work: int = cells.size[home]
    if size == want and near[0] == 0.0:
        return work
    to_cells(cells.region_low, cells.region_high, cells.broad, q, space, False, outer)
    work += outer.size
    region = home // SPAN
    turn = 0
    while True:
        if cells.region_first[region] != GONE and (
            size < want
            or outer[region] < near[0]
            or (outer[region] == near[0] and cells.region_first[region] <= group[0])
        ):
            to_cells(cells.low[region], cells.high[region], cells.flat, q, space, False, bounds)
            work += SPAN
            base = region * SPAN
            for _ in range(SPAN):
                c = 0
                for e in range(SPAN):
                    if not cells.size[base + e] or base + e == home:
                        bounds[e] = np.inf
                    if bounds[e] < bounds[c]:
                        c = e
                bound = bounds[c]
                if bound == np.inf or (size == want and bound > near[0]):
                    break
                bounds[c] = np.inf
                c += base
                if size < want or bound < near[0] or cells.first[c] <= group[0]:
                    size = look_into(cells, c, q, space, want, near, group, size, block)
                    work += cells.size[c]
        outer[region] = np.inf
        if size < want:  # the nearest first, until there are enough
            for other in range(outer.size):
                if cells.region_first[other] != GONE and outer[other] < outer[region]:
                    region = other
        elif turn < outer.size:
            region = turn
            turn += 1
        else:
            return work


@kernel
def leave(cells: Cells, i: int) -> int:
    """Remove record i, the lowest of its point; return its cell."""
    capacity = cells.who.shape[1]
    p = cells.point[i]
    cells.head[p] += 1
    c: int = cells.where[p] // capacity
    if cells.head[p] == cells.tail[p]:
        place = cells.where[p] % capacity
        last = cells.size[c] - 1
        cells.size[c] = last
        moved = cells.who[c, last]
        cells.who[c, place] = moved
        cells.where[moved] = cells.where[p]
        cells.points[c, :, place] = cells.points[c, :, last]
    return c


@kernel
def cell_rounds(
    Z: Floats, space: MixedSpace, k: int, labels: Ints, g: int, rounds: int, cells: Cells
) -> tuple[int, int]:
    """Do up to `rounds` rounds of MDAV; return the next g and the number of distances computed.

    A round ends two groups while 3k records remain, or one while 2k remain.
    """
    sums = no_sums(space)
    m = total_live(Z, labels, sums, space)
    capacity = cells.who.shape[1]
    c = no_centroid(space)
    nothing = np.empty(0)
    near = np.empty(k)
    group = np.empty(k, np.int64)
    changed = np.empty(k, np.int64)
    outer = np.empty(cells.region_first.size)
    bounds = np.empty(SPAN)
    noted = np.zeros(cells.size.size, np.bool_)
    broken = np.zeros(outer.size, np.bool_)
    block = np.empty(capacity)
    shell = no_shell(m, space)
    by_shell = k > 1
    steps = work = number(0)
    for _ in range(rounds):
        if m < 2 * k:
            break
        two = m >= 3 * k
        centroid(sums, m, c, space)
        r = NOBODY
        if by_shell and steps:  # as long as it reads less than a search of the cells
            before = shell.read
            r, shell = farthest_out(Z, labels, m, c, shell, space)
            by_shell = shell.helps and shell.read - before <= steps
        if r == NOBODY:
            r, steps = farthest(cells, c, space, outer, bounds, block)
            work += steps
        for half in range(2 if two else 1):
            changed[k - 1] = leave(cells, r)
            home = changed[k - 1]
            q = record_point(Z, r, nothing)
            work += nearest(cells, q, space, home, k - 1, near, group, outer, bounds, block)
            group[k - 1] = r
            for e in range(k - 1):
                changed[e] = leave(cells, group[e])
            for e in range(k):
                labels[group[e]] = g
                count(Z, group[e], -1, sums, space)
                if not noted[changed[e]]:
                    noted[changed[e]] = True
                    fit(cells, changed[e])
            for e in range(k):
                region = changed[e] // SPAN
                if noted[changed[e]] and not broken[region]:
                    broken[region] = True
                    fit_region(cells, region)
            for e in range(k):
                noted[changed[e]] = broken[changed[e] // SPAN] = False
            m -= k
            g += 1
            if half == 0 and two:
                r, seen = farthest(cells, q, space, outer, bounds, block)
                work += seen
    return g, work

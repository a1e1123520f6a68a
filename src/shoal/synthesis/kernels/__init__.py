"""Compiled loops of the synthesizers."""

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints, Ints32
from shoal.core.jit import kernel


@kernel
def descend(
    positions: NDArray[np.int32],
    labels: NDArray[np.int32],
    axis: Ints,
    cut: Ints,
    child: Ints,
    nodes: int,
) -> Ints:
    """Move each record of a level to its node on the next one, and count it there.

    A label is a node of the level, or -1 - leaf for records that have arrived. `child` is the first
    of a node's two children, or -1 - leaf for a node that is a leaf from now on. The counts of
    blocks of records add up to those of all records.
    """
    counts = np.zeros(nodes, dtype=np.int64)
    for record in range(labels.size):
        node = labels[record]
        if node < 0:
            continue
        place = child[node]
        if place >= 0:
            if positions[axis[node], record] >= cut[node]:
                place += 1
            counts[place] += 1
        labels[record] = place
    return counts


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


@kernel
def energies(cells: Ints32, starts: Ints, theta: Floats) -> Floats:
    """Sum for each particle the parameters of the cells that it lies in, one per table."""
    out = np.zeros(cells.shape[1])
    for table in range(cells.shape[0]):
        start = starts[table]
        for particle in range(cells.shape[1]):
            out[particle] += theta[start + cells[table, particle]]
    return out


@kernel
def marginals(cells: Ints32, starts: Ints, weights: Floats) -> Floats:
    """Sum the weights of the particles in each cell, table after table.

    Particles are sorted, so consecutive ones often lie in one cell, and each addition would wait
    for the one before. Four separate quarters avoid that.
    """
    count = cells.shape[1]
    quarter = count // 4
    out = np.zeros(starts[-1])
    for table in range(cells.shape[0]):
        start = starts[table]
        size = starts[table + 1] - start
        sums = np.zeros((4, size))
        for particle in range(quarter):
            for part in range(4):
                place = part * quarter + particle
                sums[part, cells[table, place]] += weights[place]
        for place in range(4 * quarter, count):
            sums[0, cells[table, place]] += weights[place]
        for cell in range(size):
            out[start + cell] += sums[0, cell] + sums[1, cell] + sums[2, cell] + sums[3, cell]
    return out


@kernel
def gibbs(
    groups: NDArray[np.uint8],
    sizes: Ints,
    single: Floats,
    pairs: Floats,
    triples: Ints,
    strides: Ints,
    starts: Ints,
    theta: Floats,
    strata: tuple[Ints, Ints, Ints, Ints, Floats],
    uniforms: Floats,
) -> None:
    """Redraw each column of each particle given its other columns, once, in place.

    P(column j of the particle = v)
        ~ exp(single[j, v] + sum_k pairs[j, k, x_k, v] + sum_t theta_t + potential),

    theta_t being the parameter of the cell of table t, of three columns, that the particle would
    then lie in: starts[t] + the sum over the three of strides[t, axis, group].
    The potential is that of the stratum it would lie in, -inf if there is none: `strata` is
    `PriorTables` of `shoal.synthesis.maxent.structural_zeros` without the first.
    """
    count, columns = groups.shape
    component, steps, atoms, begins, potential = strata
    energy = np.empty(single.shape[1])
    linked = np.zeros((columns, columns), dtype=np.int64)
    links = np.zeros(columns, dtype=np.int64)
    for j in range(columns):
        for k in range(columns):
            if k != j and np.any(pairs[j, k] != 0.0):
                linked[j, links[j]] = k
                links[j] += 1
    for particle in range(count):
        for j in range(columns):
            size = sizes[j]
            for v in range(size):
                energy[v] = single[j, v]
            for link in range(links[j]):
                k = linked[j, link]
                x = groups[particle, k]
                for v in range(size):
                    energy[v] += pairs[j, k, x, v]
            for t in range(triples.shape[0]):
                position = -1
                start = starts[t]
                for axis in range(3):
                    k = triples[t, axis]
                    if k == j:
                        position = axis
                    else:
                        start += strides[t, axis, groups[particle, k]]
                if position >= 0:
                    for v in range(size):
                        energy[v] += theta[start + strides[t, position, v]]
            if component[j] >= 0:
                stratum = begins[component[j]]
                for k in range(columns):
                    if k != j and component[k] == component[j]:
                        stratum += steps[k] * atoms[k, groups[particle, k]]
                for v in range(size):
                    energy[v] += potential[stratum + steps[j] * atoms[j, v]]
            top = energy[0]
            for v in range(1, size):
                top = max(top, energy[v])
            total = 0.0
            for v in range(size):
                energy[v] = np.exp(energy[v] - top)
                total += energy[v]
            left = uniforms[particle, j] * total
            chosen = 0
            while chosen < size - 1:
                left -= energy[chosen]
                if left < 0.0:
                    break
                chosen += 1
            while energy[chosen] == 0.0:  # Rounding must not choose what has no mass.
                chosen -= 1
            groups[particle, j] = chosen


@kernel
def exchange(
    cells: NDArray[np.uint8],
    chosen: Ints,
    rows: Ints,
    offered: Ints,
    sizes: Ints,
    starts: Ints,
    surplus: Floats,
) -> None:
    """Exchange chosen rows for offered ones while two-way marginals come closer, in place.

    `surplus` has the counts of the chosen rows less those that are wanted, pair after pair of
    columns; the sum of its squares decreases with every exchange. A row that leaves a cell of
    surplus d and enters one of surplus e changes it by 2 (e - d) + 2.
    """
    columns = cells.shape[1]
    for turn in range(rows.size):
        old, new = cells[chosen[rows[turn]]], cells[offered[turn]]
        change = 0.0
        pair = 0
        for a in range(columns):
            for b in range(a + 1, columns):
                if old[a] != new[a] or old[b] != new[b]:
                    start = starts[pair]
                    left = start + old[a] * sizes[b] + old[b]
                    entered = start + new[a] * sizes[b] + new[b]
                    change += 2.0 * (surplus[entered] - surplus[left]) + 2.0
                pair += 1
        if change < 0.0:
            pair = 0
            for a in range(columns):
                for b in range(a + 1, columns):
                    start = starts[pair]
                    surplus[start + old[a] * sizes[b] + old[b]] -= 1.0
                    surplus[start + new[a] * sizes[b] + new[b]] += 1.0
                    pair += 1
            chosen[rows[turn]] = offered[turn]


@kernel
def direction(gradient: Floats, steps: Floats, changes: Floats, newest: int, kept: int) -> Floats:
    """Return minus the inverse Hessian of the last steps, times the gradient (L-BFGS).

    Rows of `steps` and `changes` are a ring; `newest` is its latest row and `kept` how many count.
    """
    memory, size = steps.shape
    along = gradient.copy()
    factors = np.zeros(memory)
    for back in range(kept):
        row = (newest - back) % memory
        curvature = 0.0
        product = 0.0
        for i in range(size):
            curvature += steps[row, i] * changes[row, i]
            product += steps[row, i] * along[i]
        factors[row] = product / curvature
        for i in range(size):
            along[i] -= factors[row] * changes[row, i]
    if kept:
        curvature = 0.0
        length = 0.0
        for i in range(size):
            curvature += steps[newest, i] * changes[newest, i]
            length += changes[newest, i] * changes[newest, i]
        for i in range(size):
            along[i] *= curvature / length
    for back in range(kept - 1, -1, -1):
        row = (newest - back) % memory
        curvature = 0.0
        product = 0.0
        for i in range(size):
            curvature += steps[row, i] * changes[row, i]
            product += changes[row, i] * along[i]
        factor = factors[row] - product / curvature
        for i in range(size):
            along[i] += factor * steps[row, i]
    for i in range(size):
        along[i] = -along[i]
    return along

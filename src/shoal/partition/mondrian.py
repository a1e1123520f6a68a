"""Mondrian: median cuts of a table into groups or blocks, and partitioning within blocks."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import (
    Diversity,
    LDiversity,
    MixedRecords,
    Partition,
    Progress,
    silent,
    whole_numbers,
)
from shoal.core._arrays import Floats, Ints
from shoal.core.machine import cores
from shoal.errors import InputError
from shoal.partition._input import group_size, matrix
from shoal.partition.kernels.mondrian import Leaves, Options, grow
from shoal.partition.kernels.requirement import Rules
from shoal.partition.mdav import mdav
from shoal.partition.mixed_records import mixed_records
from shoal.partition.requirement import Requirement, compile_requirements, find_unmet

LEAST = 10_000
"""The least number of records in a block."""


class CutColumn(StrEnum):
    """How the column of a cut is chosen.

    `range`: the widest in the node, as a share of its width in the whole table. `entropy`: the
    one whose values in the node have the largest entropy. `gain`: the one whose median cut
    tells most about a target column.
    """

    RANGE = "range"
    ENTROPY = "entropy"
    GAIN = "gain"


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """The leaves of a recursive partition of space.

    Attributes:
        partition: which leaf each record is in; leaves are numbered from low to high along
            the cuts.
        lower: least value of each leaf's records, one row per leaf and one column each.
        upper: largest value of them.
        above: what the cuts alone say of a leaf: above < x <= upto, infinite where nothing was
            cut. These cells cover the whole space, each point once. Relaxed cuts leave
            records equal to `above` on both sides.
        upto: the other end.
        depth: cuts between the root and each leaf.
    """

    partition: Partition
    lower: Floats
    upper: Floats
    above: Floats
    upto: Floats
    depth: Ints


def mondrian(X: ArrayLike, k: int, **options: Any) -> Partition:
    """Partition by Mondrian: the `partition` of `mondrian_tree`.

    >>> mondrian([[1, 5], [1, 9], [7, 5], [8, 5]], 2).labels
    array([0, 0, 1, 1])
    """
    return mondrian_tree(X, k, **options).partition


def mondrian_tree(
    X: ArrayLike,
    k: int,
    *,
    require: Sequence[Requirement] = (),
    units: ArrayLike | None = None,
    relaxed: bool = False,
    choice: CutColumn = CutColumn.RANGE,
    target: ArrayLike | None = None,
    borders: Mapping[int, ArrayLike] | None = None,
    max_height: int | None = None,
    halt: Requirement | None = None,
    whole: ArrayLike | None = None,
) -> PartitionTree:
    """Cut space at medians, column after column, while both sides keep what is required.

    A node is cut by the column that `choice` ranks first, ties by the lowest column; if no cut of
    it is allowed, by the next one, and a node is a leaf when no column is left. A cut is
    allowed if both sides have k records and meet every requirement. Of each column two cuts
    are examined, the nearest ones on both sides of the median, the more balanced first, the
    lower of two equally balanced. So if the whole table meets what is required, every leaf
    does; and if it does not, no grouping does, because all models are kept by merging.

    Strict cuts lie between two values, so equal rows share a leaf. Relaxed cuts give the low side
    half of the records, including the first of those equal to the median: leaves are smaller,
    and their boxes may overlap or be the same. A column that is constant in a node is never cut.

    A missing cell must come as a number of its own. Like any other, it can be cut off, or share
    a leaf with its neighbours in the order. The order of nominal codes must be public.

    Cost: O(n d log(n / k)), more if cuts are far from balanced, and O(n) per requirement and
    level; for the ordered, ratio and hierarchical distances O(values) more per node.

    Not promised: differential privacy, since cuts depend on exact counts; the least loss; with
    `halt`, t-closeness.

    Args:
        X: records by columns, any finite numbers or codes; not changed.
        k: least number of records in a leaf, at least 2.
        require: what every leaf must meet beside k. Records are counted.
        units: person of each record, as whole numbers from 0: a leaf needs k persons.
        relaxed: whether equal values may be separated to balance the sides.
        choice: see `CutColumn`.
        target: class of each record, as whole numbers from 0, for `CutColumn.GAIN`.
        borders: for columns of codes 0..m-1 in the order of a hierarchy, the height of the
            border after each code but the last, see `hierarchy_order`. Such a column is cut
            between the children of the lowest node of the hierarchy that covers its codes in
            the node, and nowhere else.
        max_height: the most cuts between the root and a leaf.
        halt: a node that does not meet this is not cut further, whatever its leaves would be:
            the rule of cormode2013 for t-closeness, on top of k = 8. Nodes beyond t can arise and
            stay, so nothing may be claimed from it.
        whole: least and largest value of each column in the whole table, two rows, if X is a node
            of a larger tree: ranges are then shares of these. Requirements must have their
            `totals`. The leaves are then those that the whole table would get here.

    Raises:
        InputError: the whole table does not meet a requirement.

    References:
        LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
        doi:10.1109/ICDE.2006.101; the same, KDD 2006, for the gain.
        Cormode, Procopiuc, Shen, Srivastava, Yu, "Empirical privacy and empirical utility",
        ICDE Workshops 2013, pp. 77-82, section III.

    >>> tree = mondrian_tree([[1.0], [2.0], [6.0], [7.0], [9.0]], 2)
    >>> tree.lower.ravel(), tree.upper.ravel(), tree.upto.ravel()
    (array([1., 6.]), array([2., 9.]), array([ 2., inf]))
    """
    X = matrix(X)
    n, d = X.shape
    k = group_size(k, n)
    rules, codes = _rules(require, units, halt, n, k)
    choice = CutColumn(choice)
    classes = np.zeros(n, np.int64) if target is None else _of_records(target, "target", n)
    if (choice is CutColumn.GAIN) is (target is None):
        raise InputError(
            "The argument target, the class of each record, must be given if and "
            "only if choice = 'gain'."
        )
    if max_height is not None and max_height < 0:
        raise InputError(
            f"The argument max_height, the largest number of cuts above a group, "
            f"must be at least 0; found {max_height}."
        )
    columns = X.T.copy()
    heights = {j: _border(columns, j, edges) for j, edges in (borders or {}).items()}
    values: list[Floats] = []
    if choice is CutColumn.ENTROPY:
        columns, values, heights = _rank(columns, heights)
    border = np.full((d, max([1, *map(len, heights.values())])), -1, np.int64)
    for j, column_heights in heights.items():
        border[j, : len(column_heights)] = column_heights
    options = Options(
        k=k,
        height=n if max_height is None else max_height,
        relaxed=bool(relaxed),
        choice=list(CutColumn).index(choice),
        extent=_extent(columns, None if values else whole),
        border=border,
        codes=max([border.shape[1], *map(len, values)]),
        target=classes,
        classes=int(classes.max()) + 1,
        halting=-1 if halt is None else len(rules.kind) - 1,
    )
    sides = [np.empty((n // k, d)) for _ in range(4)]
    leaves = Leaves(sides[0], sides[1], sides[2], sides[3], np.empty(n // k, np.int64))
    labels = np.empty(n, np.int64)
    groups = grow(columns, codes, rules, options, leaves, labels)
    lower, upper, above, upto = (side[:groups].copy() for side in sides)
    for j, held in enumerate(values):
        for side in (lower, upper, above, upto):
            finite = np.isfinite(side[:, j])
            side[finite, j] = held[side[finite, j].astype(np.int64)]
    depth = leaves.depth[:groups].copy()
    return PartitionTree(Partition(labels), lower, upper, above, upto, depth)


def cell_of(X: ArrayLike, above: Floats, upto: Floats) -> Ints:
    """Find the cell of each record among cells of recursive cuts: above < x <= upto.

    `PartitionTree` has the cells, which hold new records too. The first cut is found again as a
    border that runs through no cell, and so on: O((n + c) d) for each level of cuts, c being the
    cells.
    """
    X = np.asarray(X, np.float64)
    assigned = np.empty(len(X), np.int64)
    waiting = [(np.arange(len(X)), np.arange(len(above)))]
    while waiting:
        rows, cells = waiting.pop()
        if len(cells) == 1 or not rows.size:
            assigned[rows] = cells[0]
            continue
        column, border = _first_cut(above[cells], upto[cells])
        low, left = X[rows, column] <= border, upto[cells, column] <= border
        waiting += [(rows[low], cells[left]), (rows[~low], cells[~left])]
    return assigned


def _first_cut(above: Floats, upto: Floats) -> tuple[int, float]:
    """Find the most balanced border that crosses no cell."""
    best, column, border = 0, -1, 0.0
    for j in range(above.shape[1]):
        order = np.argsort(above[:, j], kind="stable")
        reach = np.maximum.accumulate(upto[order, j])[:-1]
        clear = np.flatnonzero(reach <= above[order[1:], j]) + 1
        if clear.size:
            even = np.minimum(clear, len(order) - clear)
            if even.max() > best:
                at = int(clear[even.argmax()])
                best, column, border = int(even.max()), j, float(reach[at - 1])
    if column < 0:
        raise InputError("Expected cells that recursive cuts made, found others.")
    return column, border


def _extent(columns: Floats, whole: ArrayLike | None) -> Floats:
    """Return half the range of each column, which cannot overflow; ranks need none."""
    low, high = columns.min(axis=1), columns.max(axis=1)
    if whole is not None:
        ends = np.asarray(whole, dtype=np.float64)
        if ends.shape != (2, len(columns)) or not (
            (ends[0] <= low).all() and (high <= ends[1]).all()
        ):
            raise InputError(
                "The argument whole must give two ends for each column, with all values of the "
                "column between them."
            )
        low, high = ends
    extent: Floats = np.maximum(high / 2 - low / 2, 5e-324)
    return extent


def blocks(
    X: ArrayLike | MixedRecords,
    k: int,
    *,
    method: Callable[..., Partition] = mdav,
    by: ArrayLike | None = None,
    least: int = LEAST,
    progress: Progress = silent,
) -> Partition:
    """Cut the table into blocks and partition each block by itself.

    Every group lies within one block and is made by `method`, so each has at least k
    records: k-anonymity is exact. The cost becomes linear in n where blocks do not grow
    with it. Groups at the seams lose some homogeneity: with blocks of 10,000 records or
    more a few per cent of the sum of squares.

    Groups are numbered block by block. Fewer than 2 `least` records form one block, and
    the result is then that of `method` on the whole table.

    Not promised: anything that depends on the groups being a function of public
    quantities. Blocks cut by the data carry no differential privacy.

    Args:
        X: records by columns, any finite numbers, or `MixedRecords`; not changed.
        k: least group size, at least 2.
        method: partitions one block; it gets what X is.
        by: category of each record, as whole numbers from 0; blocks are then whole
            categories, in the order of their codes, neighbours taken together until they
            have `least` records. None cuts by `median_cut`.
        least: least size of a block, at least k.
        progress: called after each block with the number of records done.

    >>> blocks([[0.0], [0.1], [5.0], [5.1]], 2, least=2).labels
    array([0, 0, 1, 1])
    """
    records = mixed_records(X)
    n = len(records)
    k = group_size(k, n)
    if least < k:
        raise InputError(f"A block of {least} records cannot hold a group of k={k}.")
    cut = median_cut(records, least) if by is None else _by_category(by, n, least)
    labels = np.empty(n, np.int64)
    rows = np.split(np.argsort(cut.labels, kind="stable"), np.cumsum(cut.sizes)[:-1])
    done = groups = 0

    def group(inside: Ints) -> Partition:
        block = records.take(inside)
        return method(block if block.weights.size else block.numbers, k)

    # Blocks do not depend on each other, and kernels run outside Python's lock.
    pool = ThreadPoolExecutor(cores())
    try:
        for inside, part in zip(rows, pool.map(group, rows), strict=True):
            labels[inside] = part.labels + groups
            groups += len(part)
            done += len(inside)
            progress("blocks", done, n)
    finally:
        pool.shutdown(cancel_futures=True)
    return Partition(labels)


def median_cut(X: ArrayLike | MixedRecords, least: int = LEAST) -> Partition:
    """Cut a table at medians of its widest column until a cut would leave fewer than `least`.

    A part of 2 `least` records or more is cut in two halves by its column of the largest
    variance: the lower half has floor(m / 2) records, equal values go to it by the lowest
    index. Parts are numbered from low to high along the cuts. A column of codes is cut in the
    order of its codes, and has the variance of all its codes together. Cost: O(n d log(n / least)).

    We depart from Mondrian, which cuts between values, so blocks have equal sizes
    even where many records are equal; groups within blocks do not need the difference.

    References:
        LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
        doi:10.1109/ICDE.2006.101

    >>> median_cut([[1.0], [4.0], [2.0], [3.0]], 2).labels
    array([0, 1, 0, 1])
    """
    records = mixed_records(X)
    if least < 1:
        raise InputError(
            f"The argument least, the smallest number of records in a block, must "
            f"be at least 1; found {least}."
        )
    if not len(records):
        raise InputError("Cannot cut a table without records.")
    labels = np.zeros(len(records), np.int64)
    parts = [np.arange(len(records))]
    done = 0
    while parts:
        rows = parts.pop()
        if len(rows) < 2 * least:
            labels[rows] = done
            done += 1
            continue
        lower = _lower_half(_widest_column(records.take(rows)))
        parts += [rows[~lower], rows[lower]]
    return Partition(labels)


def _rules(
    require: Sequence[Requirement],
    units: ArrayLike | None,
    halt: Requirement | None,
    n: int,
    k: int,
) -> tuple[Rules, Ints]:
    """Compile all requirements of leaves, the halting rule last."""
    wanted = list(require)
    if units is not None:
        persons = np.unique(_of_records(units, "units", n), return_inverse=True)[1].ravel()
        if persons.max() + 1 < k:
            raise InputError(f"Cannot form one group of k={k} persons from {persons.max() + 1}.")
        many = LDiversity(Fraction(k), Diversity.DISTINCT, (), ())
        wanted.append(Requirement(many, persons))
    if halt is not None:
        wanted.append(halt)
    for rule in wanted:
        _of_records(rule.codes, "codes", n)
    rules, codes = compile_requirements(wanted, n)
    missed = find_unmet(list(require), rules)
    if missed is not None:
        raise InputError(
            f"No grouping meets {missed.guarantee}, because even the whole table as one group "
            "does not."
        )
    return rules, codes


def _of_records(values: ArrayLike, name: str, n: int) -> Ints:
    array = whole_numbers(values, name)
    if len(array) != n:
        raise InputError(
            f"The argument {name} must have one entry for each of {n} records; found {len(array)}."
        )
    # A copy, because kernels would be compiled again for read-only or strided arrays.
    return array.copy()


def _border(columns: Floats, j: int, own: ArrayLike) -> Ints:
    """Return the heights after each code of a column, with a 0 after the last code."""
    if not 0 <= j < len(columns):
        raise InputError(
            f"The argument borders names column {j}; expected one below {len(columns)}, the "
            f"number of columns."
        )
    heights = whole_numbers(own, "borders")
    x = columns[j]
    if (x != np.floor(x)).any() or x.min() < 0 or x.max() > len(heights):
        raise InputError(
            f"A column with {len(heights)} borders must hold codes from 0 to {len(heights)}."
        )
    return np.append(heights, 0)


def _rank(
    columns: Floats, heights: Mapping[int, Ints]
) -> tuple[Floats, list[Floats], dict[int, Ints]]:
    """Replace values by ranks, and borders after codes by borders after ranks."""
    pairs = [np.unique(x, return_inverse=True) for x in columns]
    ranks = np.array([inverse.ravel() for _, inverse in pairs], np.float64)
    borders = {}
    for j, column_heights in heights.items():
        held = pairs[j][0].astype(np.int64)
        borders[j] = np.append(np.maximum.reduceat(column_heights, held)[:-1], 0)
    return ranks, [values for values, _ in pairs], borders


def _widest_column(records: MixedRecords) -> Floats:
    """The column of the largest variance, for numbers of any magnitude; ties to the first."""
    numbers = records.numbers
    top = np.abs(numbers).max(initial=0.0)
    spread = list(np.var(numbers / top if top > 0 else numbers, axis=0))
    for codes, weight in zip(records.codes.T, records.weights, strict=True):
        share = np.bincount(codes)[1:] / len(codes)
        spread.append(weight * float((share * (1.0 - share)).sum()) / (top * top if top > 0 else 1))
    widest = int(np.argmax(spread))
    if widest < numbers.shape[1]:
        return numbers[:, widest]
    return records.codes[:, widest - numbers.shape[1]].astype(np.float64)


def _lower_half(x: Floats) -> NDArray[np.bool_]:
    """Mark the lower half of a column, ties by the lowest index."""
    half = len(x) // 2
    edge = np.partition(x, half - 1)[half - 1]
    lower: NDArray[np.bool_] = x < edge
    ties = np.flatnonzero(x == edge)
    lower[ties[: half - int(np.count_nonzero(lower))]] = True
    return lower


def _by_category(by: ArrayLike, n: int, least: int) -> Partition:
    """Join adjacent categories until each block has `least` records."""
    codes = np.asarray(by)
    if codes.shape != (n,) or codes.dtype.kind not in "iu" or (n and codes.min() < 0):
        raise InputError(
            f"The argument by must give a non-negative whole number for each of the {n} records."
        )
    names, codes = np.unique(codes, return_inverse=True)
    block: Ints = np.zeros(len(names), np.int64)
    held = 0
    for a, size in enumerate(np.bincount(codes)):
        if held >= least:
            block[a:] += 1
            held = 0
        held += int(size)
    if held < least and block[-1] > 0:
        block[block == block[-1]] -= 1
    return Partition(block[codes])

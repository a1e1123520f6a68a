"""A coarse tree from a sample, which cuts a large table into cells for other methods.

The sample shows where records are sparse, so cuts separate few neighbours. The cells of the tree
cover every record of the whole table, whatever the sample.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition.kernels.coarse_tree import descend
from shoal.partition.mixed_records import Scaled, mixed_records, scale, within_groups

Grouper = Callable[[MixedRecords, int], Partition]

SPARE = 1.15
"""A cell's size, as the sample estimates it, must exceed the least size by this factor."""

MIDDLE = (0.35, 0.65)
"""Shares of a node's records between which it is cut."""

WINDOW = 64
"""A cut is scored by the stretch of one part in this many of the records on each side of it."""


@dataclass(frozen=True, eq=False)
class Centre:
    """The mean of the sample.

    Attributes:
        numbers: the means of the columns of numbers.
        codes: of each column of codes, what each code adds to the squared distance; last, what a
            code adds that the sample lacks.
    """

    numbers: Floats
    codes: tuple[Floats, ...]

    def distances(self, records: MixedRecords) -> Floats:
        """Squared distances of records to the mean."""
        far: Floats = ((records.numbers - self.numbers) ** 2).sum(axis=1)
        for table, codes in zip(self.codes, records.codes.T, strict=True):
            far += table[np.minimum(codes, len(table) - 1)]
        return far


@dataclass(frozen=True, eq=False)
class CoarseTree:
    """A tree of cuts; each record lies in one of its cells.

    Attributes:
        axis: of each node, node 0 being the root: a column of numbers, or after these of codes.
        cut: of each node: x < cut goes low.
        low: the next node, or -1 - a for cell a.
        high: likewise.
        count: number of cells.
        centre: of the sample.
        beyond: squared distance from the centre at and beyond which records are in cell 0; infinite
            if there is no outer cell.
    """

    axis: Ints
    cut: Floats
    low: Ints
    high: Ints
    count: int
    centre: Centre
    beyond: float = np.inf

    def route(self, X: ArrayLike | MixedRecords) -> Ints:
        """Return the cell of each record."""
        records = mixed_records(X)
        cells = np.empty(len(records), np.int64)
        descend(_axes(records), self.axis, self.cut, self.low, self.high, cells)
        if np.isfinite(self.beyond):
            cells[self.centre.distances(records) >= self.beyond] = 0
        return cells

    def merge_small(self, sizes: Ints, least: int) -> "CoarseTree":
        """Merge each cell with fewer than `least` records into its sibling.

        The cut above such a cell is removed, so its records follow those on the other side. Cells
        on that side only grow, so one pass from the leaves up is enough. Cells are renumbered,
        from low to high.

        Args:
            sizes: records of each cell.
            least: the least number of records in a cell; all cells together may have fewer.
        """
        beyond = self.beyond if not np.isfinite(self.beyond) or sizes[0] >= least else np.inf
        low, high = self.low.copy(), self.high.copy()

        def shrunk(node: int) -> int:
            """Return what replaces a node: itself, or the side that is large enough."""
            if node < 0:
                return node
            low[node], high[node] = shrunk(int(low[node])), shrunk(int(high[node]))
            sides = [int(low[node]), int(high[node])]
            few = [side < 0 and held[-1 - side] < least for side in sides]
            if not any(few):
                return node
            small, other = sides if few[0] else sides[::-1]
            if other < 0:
                held[-1 - other] += held[-1 - small]
            return other

        held = sizes.copy()
        # If everything goes one way, a node without a real cut remains.
        top = shrunk(0)
        return _renumber(replace(self, low=low, high=high, beyond=beyond), top)


def coarse_cells(
    sample: ArrayLike | MixedRecords,
    rows: int,
    k: int,
    *,
    size: int,
    least: int,
    method: Grouper,
) -> CoarseTree:
    """Cut space into cells of `size` to about 2 `size` records, where records are sparse.

    A node that holds 2 `size` records or more, by the sample, is cut. On each axis, the cuts
    between two different values in the middle of the node's records are examined. The cut around
    which 2/64 of the records stretch farthest is taken, ties by the lowest axis and cut; codes are
    cut in their order, and stretch from one to the next. A node whose records are equal, or that
    no cut divides with enough on both sides, is a cell.

    If the spread is in the tails, cuts through them separate records that have few neighbours. So
    the outermost records, about `size` of them, are also tried as a cell of their own, and that is
    kept if `method` then loses less within the cells of the sample.

    Cost: O(s d log s log(rows / size)) for a sample of s, and the method on the sample, twice.

    Args:
        sample: records by axes, on one scale, or `MixedRecords`.
        rows: of the whole table.
        k: least group size.
        size: records that a cell should have.
        least: the fewest that it should have.
        method: groups the records of a cell.
    """
    records = mixed_records(sample)
    if not k <= least <= size:
        raise InputError(
            f"Expected for the cells of a coarse tree k <= least <= size; found k={k}, "
            f"least={least} and size={size}."
        )
    share = len(records) / rows
    wanted = (2 * size * share, SPARE * least * share)
    centre = centre_of(records)
    grown = _grown(records, centre, np.inf, wanted)
    outer = round(max(size, SPARE * least) * share)
    if grown.count < 2 or not k <= outer < len(records):
        return grown
    far = centre.distances(records)
    beyond = float(np.partition(far, len(far) - outer)[len(far) - outer])
    inner = np.flatnonzero(far < beyond)
    if len(inner) < k or beyond == 0.0:
        return grown
    apart = _grown(records.take(inner), centre, beyond, wanted)
    losses = [_loss(tree, records, k, method) for tree in (grown, apart)]
    return apart if losses[1] < losses[0] else grown


def _axes(records: MixedRecords) -> Floats:
    """Return the columns of numbers, then those of codes."""
    return np.hstack([records.numbers, records.codes.astype(np.float64)])


def centre_of(records: MixedRecords) -> Centre:
    """Compute the mean of some records."""
    tables = []
    for codes, weight in zip(records.codes.T, records.weights, strict=True):
        share = np.append(np.bincount(codes), 0) / len(codes)
        spread = (share[1:] ** 2).sum()
        tables.append(weight * np.append(spread, spread + 1.0 - 2.0 * share[1:]))
    return Centre(records.numbers.mean(axis=0), tuple(tables))


def _grown(
    records: MixedRecords, centre: Centre, beyond: float, wanted: tuple[float, float]
) -> CoarseTree:
    """Grow the tree; `wanted` is the least size of a node to cut, and of a side."""
    X = _axes(records)
    steps = np.append(np.zeros(records.numbers.shape[1]), np.sqrt(2.0 * records.weights))
    axis: list[int] = []
    cut: list[float] = []
    ways: list[list[int]] = []
    cells = int(np.isfinite(beyond))

    def grow(rows: Ints) -> int:
        nonlocal cells
        best = None
        if len(rows) >= wanted[0]:
            best = _best_cut(X[rows], steps, wanted[1])
        if best is None:
            cells += 1
            return -cells
        node = len(axis)
        axis.append(best[0])
        cut.append(best[1])
        ways.append([0, 0])
        below = X[rows, best[0]] < best[1]
        ways[node] = [grow(rows[below]), grow(rows[~below])]
        return node

    top = grow(np.arange(len(X)))
    if top < 0:
        axis, cut, ways = [0], [np.inf], [[top, top]]
    low, high = np.array(ways, np.int64).T.copy()
    return CoarseTree(np.array(axis, np.int64), np.array(cut), low, high, cells, centre, beyond)


def _best_cut(X: Floats, steps: Floats, least: float) -> tuple[int, float] | None:
    """Return axis and position of the cut where records are sparsest, or None.

    `steps` says how far two codes of an axis lie apart; 0 for an axis of numbers.
    """
    m = len(X)
    window = max(m // WINDOW, 1)
    for middle in (MIDDLE, (0.0, 1.0)):
        begin = max(int(np.ceil(max(middle[0] * m, least))), 1)
        end = min(int(np.floor(min(middle[1] * m, m - least))), m - 1)
        places = np.arange(begin, end + 1)
        best: tuple[float, int, float] | None = None
        for j in range(X.shape[1] if places.size else 0):
            x = np.sort(X[:, j])
            real = places[x[places - 1] < x[places]]
            if not real.size:
                continue
            width = x[np.minimum(real + window, m - 1)] - x[np.maximum(real - window, 0)]
            if steps[j]:
                width = np.full(real.size, steps[j])
            a = int(np.argmax(width))
            if best is None or width[a] > best[0]:
                best = (float(width[a]), j, float(x[real[a]]))
        if best is not None:
            return best[1], best[2]
    return None


def _loss(tree: CoarseTree, sample: MixedRecords, k: int, method: Grouper) -> float:
    scaled = scale(sample)
    cell = tree.route(sample)
    order = np.argsort(cell, kind="stable")
    lost = 0.0
    for rows in np.split(order, np.cumsum(np.bincount(cell, minlength=tree.count))[:-1]):
        if not len(rows):
            continue
        labels = np.zeros(len(rows), np.int64)
        if len(rows) >= k:
            labels = method(sample.take(rows), k).labels
        lost += within_groups(Scaled(scaled.Z[rows], scaled.space), labels)
    return lost


def _renumber(tree: CoarseTree, top: int) -> CoarseTree:
    """Keep the nodes below `top`, and renumber them and their cells."""
    axis: list[int] = []
    cut: list[float] = []
    ways: list[list[int]] = []
    cells = int(np.isfinite(tree.beyond))

    def keep(node: int) -> int:
        nonlocal cells
        if node < 0:
            cells += 1
            return -cells
        place = len(axis)
        axis.append(int(tree.axis[node]))
        cut.append(float(tree.cut[node]))
        ways.append([0, 0])
        ways[place] = [keep(int(tree.low[node])), keep(int(tree.high[node]))]
        return place

    if top < 0 or tree.low[top] == tree.high[top]:
        cells += 1
        axis, cut, ways = [0], [np.inf], [[-cells, -cells]]
    else:
        keep(top)
    low, high = np.array(ways, np.int64).T.copy()
    return replace(
        tree, axis=np.array(axis, np.int64), cut=np.array(cut), low=low, high=high, count=cells
    )

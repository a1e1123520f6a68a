"""A coarse tree from a sample, which cuts a large table into cells for other methods.

The sample shows where records are sparse, so cuts separate few neighbours. The cells of the tree
cover every record of the whole table, whatever the sample.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.core import Partition
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition._exact_scale import within_squares
from shoal.partition._input import matrix
from shoal.partition.kernels.coarse_tree import descend

SPARE = 1.15
"""A cell's size, as the sample estimates it, must exceed the least size by this factor."""

MIDDLE = (0.35, 0.65)
"""Shares of a node's records between which it is cut."""

WINDOW = 64
"""A cut is scored by the stretch of one part in this many of the records on each side of it."""


@dataclass(frozen=True, eq=False)
class CoarseTree:
    """A tree of cuts; each record lies in one of its cells.

    Attributes:
        axis: of each node, node 0 being the root.
        cut: of each node: x < cut goes low.
        low: the next node, or -1 - a for cell a.
        high: likewise.
        count: number of cells.
        centre: of the records.
        beyond: squared distance from the centre at and beyond which records are in cell 0; infinite
            if there is no outer cell.
    """

    axis: Ints
    cut: Floats
    low: Ints
    high: Ints
    count: int
    centre: Floats
    beyond: float = np.inf

    def route(self, X: Floats) -> Ints:
        """Return the cell of each record."""
        cells = np.empty(len(X), np.int64)
        descend(np.ascontiguousarray(X), self.axis, self.cut, self.low, self.high, cells)
        if np.isfinite(self.beyond):
            cells[((X - self.centre) ** 2).sum(axis=1) >= self.beyond] = 0
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
    sample: Floats,
    rows: int,
    k: int,
    *,
    size: int,
    least: int,
    method: Callable[[Floats, int], Partition],
) -> CoarseTree:
    """Cut space into cells of `size` to about 2 `size` records, where records are sparse.

    A node that holds 2 `size` records or more, by the sample, is cut. On each axis, the cuts
    between two different values in the middle of the node's records are examined. The cut around
    which 2/64 of the records stretch farthest is taken, ties by the lowest axis and cut. A node
    whose records are equal, or that no cut divides with enough on both sides, is a cell.

    If the spread is in the tails, cuts through them separate records that have few neighbours. So
    the outermost records, about `size` of them, are also tried as a cell of their own, and that is
    kept if `method` then loses less within the cells of the sample.

    Cost: O(s d log s log(rows / size)) for a sample of s, and the method on the sample, twice.

    Args:
        sample: records by axes, on one scale.
        rows: of the whole table.
        k: least group size.
        size: records that a cell should have.
        least: the fewest that it should have.
        method: groups the records of a cell.
    """
    sample = matrix(sample)
    if not k <= least <= size:
        raise InputError(
            f"Expected for the cells of a coarse tree k <= least <= size; found k={k}, "
            f"least={least} and size={size}."
        )
    share = len(sample) / rows
    wanted = (2 * size * share, SPARE * least * share)
    centre = sample.mean(axis=0)
    grown = _grown(sample, centre, np.inf, wanted)
    outer = round(max(size, SPARE * least) * share)
    if grown.count < 2 or not k <= outer < len(sample):
        return grown
    far = ((sample - centre) ** 2).sum(axis=1)
    beyond = float(np.partition(far, len(far) - outer)[len(far) - outer])
    inner = sample[far < beyond]
    if len(inner) < k or beyond == 0.0:
        return grown
    apart = _grown(inner, centre, beyond, wanted)
    losses = [_loss(tree, sample, k, method) for tree in (grown, apart)]
    return apart if losses[1] < losses[0] else grown


def _grown(X: Floats, centre: Floats, beyond: float, wanted: tuple[float, float]) -> CoarseTree:
    """Grow the tree; `wanted` is the least size of a node to cut, and of a side."""
    axis: list[int] = []
    cut: list[float] = []
    ways: list[list[int]] = []
    cells = int(np.isfinite(beyond))

    def grow(rows: Ints) -> int:
        nonlocal cells
        best = None
        if len(rows) >= wanted[0]:
            best = _best_cut(X[rows], wanted[1])
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


def _best_cut(X: Floats, least: float) -> tuple[int, float] | None:
    """Return axis and position of the cut where records are sparsest, or None."""
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
            a = int(np.argmax(width))
            if best is None or width[a] > best[0]:
                best = (float(width[a]), j, float(x[real[a]]))
        if best is not None:
            return best[1], best[2]
    return None


def _loss(
    tree: CoarseTree, sample: Floats, k: int, method: Callable[[Floats, int], Partition]
) -> float:
    cell = tree.route(sample)
    order = np.argsort(cell, kind="stable")
    lost = 0.0
    for rows in np.split(order, np.cumsum(np.bincount(cell, minlength=tree.count))[:-1]):
        if len(rows) >= k:
            lost += within_squares(sample[rows], method(sample[rows], k).labels)
        elif len(rows):
            lost += within_squares(sample[rows], np.zeros(len(rows), np.int64))
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

"""Kernels of boosted trees: growing one, and walking rows down many.

Private; scikit-learn's trees are their twin in the tests.
"""

from typing import Any

import numpy as np

from shoal.core.jit import kernel

LEAST_CURVATURE = 1e-3
"""The least sum of second derivatives on either side of a split."""
SUPPORT = 10.0
"""Rows that a category needs in a node to be sent anywhere but right; smooths its mean, too."""


@kernel
def grow(  # numba calls by position; one tree, one loop
    bins: Any, slopes: Any, curves: Any, sizes: Any, offsets: Any, gaps: Any, categorical: Any,
    fewest: Any, ridge: Any, sums: Any, feature: Any, child: Any, left: Any, values: Any, leaf: Any,
) -> Any:  # fmt: skip
    """Grow a tree, the leaf of largest gain first, and return how many splits it has.

    With G and H the sums of slopes and curves (first and second derivatives of the loss) on a side,
    its value is -G / (H + ridge), and a split gains

        G_l^2 / (H_l + ridge) + G_r^2 / (H_r + ridge) - G^2 / (H + ridge).

    Sums by bin are made for the smaller side of a split; the other side's are what is left of the
    whole. Cost O(n d log leaves + leaves d bins).

    Args:
        bins: distinct rows by columns; the last bin of a column holds what is missing.
        slopes: first derivative of each, summed over the rows that are equal.
        curves: the same of second derivatives.
        sizes: how many rows are equal.
        offsets: where the bins of each column begin, and where the last one's end.
        gaps: which columns have a missing cell.
        categorical: which columns are codes.
        fewest: rows on either side of a split, at least.
        ridge: added to each sum of curves.
        sums: room for leaves by bins by slopes, curves and rows.
        feature: to be filled, the column of each split.
        child: to be filled, what lies left and right of each split: a split, or ~ a leaf.
        left: to be filled, splits by bins: which go left.
        values: to be filled, of each leaf.
        leaf: to be filled, of each row.
    """
    rows, leaves = len(bins), len(values)
    order, spare = np.arange(rows), np.empty(rows, dtype=np.int64)
    start, end = np.zeros(leaves, dtype=np.int64), np.zeros(leaves, dtype=np.int64)
    slot, above = np.zeros(leaves, dtype=np.int64), np.zeros(leaves, dtype=np.int64)
    totals, gains = np.zeros((leaves, 3)), np.full(leaves, -1.0)
    columns, sides = np.zeros(leaves, dtype=np.int64), np.zeros((leaves, left.shape[1]), np.bool_)
    ahead = np.zeros((leaves, 3))
    end[0], above[0] = rows, -1
    _sum_bins(bins, order, slopes, curves, sizes, offsets, sums[0])
    for b in range(offsets[1]):
        totals[0] += sums[0, b]
    gains[0], columns[0] = _best_split(
        sums[0], offsets, gaps, categorical, totals[0], fewest, ridge, sides[0], ahead[0]
    )
    count = 1
    while count < leaves:
        at = int(np.argmax(gains[:count]))
        if gains[at] <= 0.0:
            break
        split, new = count - 1, count
        count += 1
        feature[split] = columns[at]
        left[split] = sides[at]
        if above[at] >= 0:
            child[above[at] // 2, above[at] % 2] = split
        above[at], above[new] = 2 * split, 2 * split + 1
        child[split, 0], child[split, 1] = ~at, ~new
        here, there = start[at], 0
        for row in order[start[at] : end[at]]:
            if sides[at, bins[row, columns[at]]]:
                order[here] = row
                here += 1
            else:
                spare[there] = row
                there += 1
        order[here : here + there] = spare[:there]
        start[new], end[new], end[at] = here, here + there, here
        totals[new] = totals[at] - ahead[at]
        totals[at] = ahead[at]
        gains[at] = -1.0
        if count == leaves or max(totals[at, 2], totals[new, 2]) < 2 * fewest:
            continue
        small, large = (at, new) if here - start[at] < there else (new, at)
        whole = slot[at]
        slot[small], slot[large] = new, whole
        inside = order[start[small] : end[small]]
        _sum_bins(bins, inside, slopes, curves, sizes, offsets, sums[new])
        sums[whole] -= sums[new]
        for side in (at, new):
            if totals[side, 2] >= 2 * fewest:
                gains[side], columns[side] = _best_split(
                    sums[slot[side]], offsets, gaps, categorical, totals[side], fewest, ridge,
                    sides[side], ahead[side],
                )  # fmt: skip
    for each in range(count):
        values[each] = -totals[each, 0] / (totals[each, 1] + ridge)
        leaf[order[start[each] : end[each]]] = each
    return count - 1


@kernel
def _sum_bins(
    bins: Any, rows: Any, slopes: Any, curves: Any, sizes: Any, offsets: Any, sums: Any
) -> None:
    """Slopes, curves and rows of each bin of each column."""
    sums[:] = 0.0
    for row in rows:
        slope, curve, size = slopes[row], curves[row], sizes[row]
        for j in range(bins.shape[1]):
            cell = sums[offsets[j] + bins[row, j]]
            cell[0] += slope
            cell[1] += curve
            cell[2] += size


@kernel
def _best_split(  # numba calls by position
    sums: Any, offsets: Any, gaps: Any, categorical: Any, total: Any, fewest: Any, ridge: Any,
    side: Any, ahead: Any,
) -> Any:  # fmt: skip
    """The gain of a node's best split and its column; fills who goes left, and their sums.

    Numbers are cut in their order, with what is missing on either side. Categories with support are
    put in the order of their mean slope, which has the best split of all among its cuts (Fisher);
    they are added from either end up to the middle.
    """
    best, column, cut, turned = 0.0, 0, 0, False
    whole = total[0] ** 2 / (total[1] + ridge)
    for j in range(len(gaps)):
        own = sums[offsets[j] : offsets[j + 1]]
        sequence = _candidates(own, gaps[j], categorical[j], total)
        most = (len(sequence) + 1) // 2 if categorical[j] else len(sequence) - 1
        for turn in range(2 if gaps[j] or categorical[j] else 1):
            slope = curve = count = 0.0
            for i in range(min(most, len(sequence) - 1)):
                cell = own[_place(sequence, i, turn, categorical[j])]
                if cell[2] == 0.0:
                    continue
                slope, curve, count = slope + cell[0], curve + cell[1], count + cell[2]
                if count < fewest or curve < LEAST_CURVATURE:
                    continue
                if total[2] - count < fewest or total[1] - curve < LEAST_CURVATURE:
                    break
                beyond = total[0] - slope
                gain = slope * slope / (curve + ridge) - whole
                gain += beyond * beyond / (total[1] - curve + ridge)
                if gain > best:
                    best, column, cut, turned = gain, j, i, turn == 1
                    ahead[0], ahead[1], ahead[2] = slope, curve, count
    if best > 0.0:
        own = sums[offsets[column] : offsets[column + 1]]
        sequence = _candidates(own, gaps[column], categorical[column], total)
        side[:] = False
        for i in range(cut + 1):
            side[_place(sequence, i, turned, categorical[column])] = True
        if not gaps[column]:
            # What the node has not seen goes where more rows go.
            side[len(own) - 1] = 2 * ahead[2] > total[2]
    return best, column


@kernel
def _candidates(own: Any, gap: Any, categorical: Any, total: Any) -> Any:
    """Bins of a column in the order in which they are added to the left side."""
    bins = np.arange(len(own) if gap else len(own) - 1)
    if not categorical:
        return bins
    support = total[2] / total[1] if total[1] > 0.0 else 0.0
    bins = bins[own[bins, 1] * support >= SUPPORT]
    return bins[np.argsort(own[bins, 0] / (own[bins, 1] + SUPPORT), kind="mergesort")]


@kernel
def _place(sequence: Any, i: Any, turn: Any, categorical: Any) -> Any:
    """The i-th bin; at the second turn from the other end, or with what is missing first."""
    if not turn:
        return sequence[i]
    return sequence[len(sequence) - 1 - i] if categorical else sequence[i - 1]


@kernel
def walk(
    bins: Any, splits: Any, feature: Any, child: Any, left: Any, values: Any, scores: Any
) -> None:
    """Add to the scores of each row, rows by outputs, what rounds by outputs of trees say of it."""
    for step in range(splits.shape[0]):
        for output in range(splits.shape[1]):
            columns, children = feature[step, output], child[step, output]
            goes, shares = left[step, output], values[step, output]
            for row in range(len(bins)):
                node = 0 if splits[step, output] else -1
                while node >= 0:
                    right = 0 if goes[node, bins[row, columns[node]]] else 1
                    node = children[node, right]
                scores[row, output] += shares[~node]

"""Compiled search for minimal sample uniques. Private; its twin is in the tests."""

from typing import Any

import numpy as np

from shoal.core.jit import kernel


@kernel
def find_minimal_uniques(  # noqa: PLR0915 (a search in one piece)
    codes: Any, width: int, several: Any, largest: int, sets: int, worth: Any
) -> Any:
    """Search the sets of columns, by depth first, for those in which a row is alone.

    Sets are visited in the order of their bit masks, so every proper subset of a set comes before
    it. The parent of a set lacks its lowest column, and hands down the classes of two records and
    more: who is alone in the parent is in no minimal set below it. Cost O(rows) for each set.

    Args:
        codes: columns by distinct rows, each column numbered from 0; the column with the most
            codes last, so classes are small early.
        width: the largest number of codes of a column.
        several: whether more than one record has the row.
        largest: the largest size of a set.
        sets: number of sets of up to that size.
        worth: score of a set, by its size.

    Returns:
        For each row the number of minimal sets by size, and the score of those with each column.
    """
    columns, rows = codes.shape
    counts = np.zeros((rows, largest), dtype=np.int64)
    scores = np.zeros((rows, columns))
    order = np.zeros((largest + 1, rows), dtype=np.int32)
    starts = np.zeros((largest + 1, rows + 1), dtype=np.int64)
    classes = np.zeros(largest + 1, dtype=np.int64)
    order[0] = np.arange(rows, dtype=np.int32)
    starts[0, 1] = rows
    classes[0] = 1 if rows else 0
    seen, held = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    place = np.full(width, -1, dtype=np.int64)
    words = (rows + 63) // 64
    alone = np.zeros((sets, words), dtype=np.uint64)  # of each set, which rows are alone in it
    number = np.full(1 << columns, -1, dtype=np.int64)
    visited = 0
    path = np.zeros(largest + 1, dtype=np.int64)  # columns of the set, and the next one to try
    depth, mask = 0, 0
    top = np.full(largest + 1, columns, dtype=np.int64)
    while depth >= 0:
        column = path[depth]
        if column >= top[depth]:
            depth -= 1
            if depth >= 0:
                mask ^= 1 << path[depth]
                path[depth] += 1
            continue
        here = mask | (1 << column)
        size = depth + 1
        filled, kept = 0, 0
        number[here], here_alone = visited, alone[visited]
        visited += 1
        for j in range(columns):  # who is alone in a subset is alone here
            smaller = here & ~(1 << j)
            if smaller == here or not smaller:
                continue
            if number[smaller] >= 0:
                here_alone |= alone[number[smaller]]
            else:  # not visited: everybody is alone in a part of it
                here_alone[:] = ~np.uint64(0)
        for c in range(classes[depth]):
            first, last = starts[depth, c], starts[depth, c + 1]
            for at in range(first, last):
                row = order[depth, at]
                seen[codes[column, row]] += 2 if several[row] else 1
                held[codes[column, row]] += 1
            for at in range(first, last):
                row = order[depth, at]
                if seen[codes[column, row]] != 1:
                    continue
                word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
                if here_alone[word] & bit:
                    continue
                here_alone[word] |= bit
                counts[row, depth] += 1
                for j in range(columns):
                    if here >> j & 1:
                        scores[row, j] += worth[depth]
            if size < largest and column > 0:  # lay out the classes of two records and more
                for at in range(first, last):
                    row = order[depth, at]
                    code = codes[column, row]
                    if seen[code] < 2:
                        continue
                    if place[code] < 0:
                        place[code] = starts[size, kept] = filled
                        kept += 1
                        filled += held[code]
                    order[size, place[code]] = row
                    place[code] += 1
            for at in range(first, last):
                code = codes[column, order[depth, at]]
                seen[code], held[code], place[code] = 0, 0, -1
        if size < largest and column > 0 and kept:
            starts[size, kept] = filled
            classes[size] = kept
            mask = here
            depth = size
            top[depth] = column
            path[depth] = 0
            continue
        path[depth] += 1
    return counts, scores

"""Compiled count of the people of a population who agree with a released row. Private."""

from typing import Any

import numpy as np

from shoal.core.jit import kernel


@kernel
def count_people(lower: Any, upper: Any, anything: Any, places: Any, number: Any) -> Any:
    """Count the people whose places lie in each box.

    A cell holds lower <= place < upper, or the place itself where both ends are equal. Places are
    sorted by their first column. Cost O(boxes x different people), less by the first column.

    Args:
        lower: boxes by columns.
        upper: the other end.
        anything: boxes by columns: the cell agrees with every value, missing ones too.
        places: different people by columns; NaN where missing.
        number: how many people have these places.
    """
    boxes, columns = lower.shape
    people = np.zeros(boxes, dtype=np.int64)
    first = places[:, 0].copy()
    for b in range(boxes):
        start, end = 0, len(places)
        if not anything[b, 0]:
            start = np.searchsorted(first, lower[b, 0])
            if lower[b, 0] < upper[b, 0]:
                end = np.searchsorted(first, upper[b, 0])
            else:
                end = np.searchsorted(first, upper[b, 0], side="right")
        for p in range(start, end):
            inside = True
            for j in range(1, columns):
                low, x, high = lower[b, j], places[p, j], upper[b, j]
                if not (anything[b, j] or low <= x < high or low == x == high):
                    inside = False
                    break
            if inside:
                people[b] += number[p]
    return people

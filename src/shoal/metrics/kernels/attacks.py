"""Kernels of the attacks: nearest boxes, and people who satisfy predicates.

Private; their twins are in the tests.
"""

from typing import Any

import numpy as np

from shoal.core.jit import kernel


@kernel
def nearest_boxes(  # numba calls by position; one search, one loop
    lower: Any, upper: Any, discrete: Any, scale: Any, targets: Any, starts: Any, k: Any
) -> Any:
    """The k boxes nearest to each target, nearest first.

    The distance on an axis is that to a place drawn uniformly from the box, in expectation: for
    numbers E|x - U| over the axis' range, for categories the chance that U is another one. A
    target's NaN adds nothing. Boxes are read in a circle from `starts`, one per target, and of
    equal distances the first read wins, so a drawn start picks among ties by chance.
    """
    boxes, axes = lower.shape
    nearest = np.empty((len(targets), k), dtype=np.int64)
    best = np.empty(k)
    for t in range(len(targets)):
        best[:] = np.inf
        nearest[t, :] = -1
        box = starts[t]
        for _ in range(boxes):
            distance = 0.0
            for j in range(axes):
                x = targets[t, j]
                if np.isnan(x):
                    continue
                a, b = lower[box, j], upper[box, j]
                if discrete[j]:
                    inside = a <= x < b
                    distance += 1.0 - 1.0 / (b - a) if inside else 1.0
                elif a < x < b:
                    distance += ((x - a) ** 2 + (b - x) ** 2) / (2.0 * (b - a)) * scale[j]
                else:
                    distance += abs(x - (a + b) / 2.0) * scale[j]
                if distance >= best[k - 1]:
                    break
            if distance < best[k - 1]:
                place = k - 1
                while place > 0 and best[place - 1] > distance:
                    best[place] = best[place - 1]
                    nearest[t, place] = nearest[t, place - 1]
                    place -= 1
                best[place] = distance
                nearest[t, place] = box
            box += 1
            if box == boxes:
                box = 0
    return nearest


@kernel
def count_people(  # numba calls by position
    people: Any, begin: Any, end: Any, axes: Any, low: Any, high: Any, negated: Any, most: Any
) -> Any:
    """Count the people from `begin` to `end` who satisfy each predicate, and stop at `most`."""
    counts = np.zeros(len(axes), dtype=np.int64)
    for p in range(len(axes)):
        for person in range(begin[p], end[p]):
            holds = True
            for j in range(axes.shape[1]):
                x = people[person, axes[p, j]]
                if (low[p, j] <= x < high[p, j]) == negated[p, j]:
                    holds = False
                    break
            if holds:
                counts[p] += 1
                if counts[p] == most:
                    break
    return counts

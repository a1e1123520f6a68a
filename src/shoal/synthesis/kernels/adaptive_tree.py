"""Kernels of `adaptive_tree`: one pass over the records per level."""

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Ints
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

"""Compiled counting of numbers in bins."""

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel


@kernel
def count_in_bins(values: Floats, edges: Floats, counts: Ints) -> None:
    """Add to `counts` how many finite values each bin has; the outer two take what lies beyond.

    A bin holds its lower edge, and not its upper one. It is guessed as if all bins were equally
    wide, and then found among its neighbours.
    """
    last = edges.size - 2
    low = edges[0]
    per_unit = (last + 1) / (edges[last + 1] - low)
    for i in range(values.size):
        value = values[i]
        guess = (value - low) * per_unit
        at = int(min(guess, last)) if guess > 0.0 else 0
        while at > 0 and value < edges[at]:
            at -= 1
        while at < last and value >= edges[at + 1]:
            at += 1
        counts[at] += 1

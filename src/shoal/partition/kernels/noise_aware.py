"""Compiled search for groups with the least sum of squares plus expected noise."""

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel

SLACK = 1e-12
"""A change must gain more than this share, or rounding could move records in circles."""


@kernel
def cheapest_ends(v: Floats, noise: float, begin: Ints) -> None:
    """Find the groups of a sorted list with the least squares plus noise / size.

    begin[i] is set to where the last group starts in the best grouping of v[:i], from

        f(0) = 0,  f(i) = min over j < i of f(j) + SSE(v[j:i]) + noise / (i - j).

    Of two beginnings the later one, once it is better, stays better (see `noise_aware`). The
    queue holds the beginnings that are best for some end, and from which end on; a binary
    search finds the end from which a new one is.
    """
    n = v.size
    sums = np.zeros(n + 1)
    squares = np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + v[i]
        squares[i + 1] = squares[i] + v[i] * v[i]
    cost = np.zeros(n + 1)
    start = np.zeros(n + 1, np.int64)
    since = np.ones(n + 1, np.int64)
    head = 0
    last = 0
    for i in range(1, n + 1):
        while head < last and since[head + 1] <= i:
            head += 1
        begin[i] = start[head]
        cost[i] = ending(start[head], i, noise, cost, sums, squares)
        while last > head and is_better(i, start[last], since[last], noise, cost, sums, squares):
            last -= 1
        low = max(since[last], i + 1)
        high = n + 1
        while low < high:
            middle = (low + high) // 2
            if is_better(i, start[last], middle, noise, cost, sums, squares):
                high = middle
            else:
                low = middle + 1
        if low <= n:
            last += 1
            start[last] = i
            since[last] = low


@kernel
def ending(j: int, i: int, noise: float, cost: Floats, sums: Floats, squares: Floats) -> float:
    """Compute the cost of the best grouping of the first i values whose last group begins at j."""
    total = sums[i] - sums[j]
    spread: float = squares[i] - squares[j] - total * total / (i - j)
    return float(cost[j]) + max(spread, 0.0) + noise / (i - j)


@kernel
def is_better(
    later: int, j: int, end: int, noise: float, cost: Floats, sums: Floats, squares: Floats
) -> bool:
    """Whether the group that ends at `end` is cheaper if it begins at `later` than at j."""
    return ending(later, end, noise, cost, sums, squares) < ending(
        j, end, noise, cost, sums, squares
    )


@kernel
def descend(Z: Floats, noise: float, rounds: int, labels: Ints) -> None:
    """Merge groups and move records while that lowers the squares plus noise / size.

    In a round each group joins the one for which the cost falls most, if it falls; then each
    record alike. A record that leaves a group of a records gains

        a / (a - 1) |x - mean|^2 - noise (1 / (a - 1) - 1 / a),

    and the noise if it was alone. Groups that end leave gaps between the labels.
    """
    n, d = Z.shape
    groups = labels.max() + 1
    size = np.zeros(groups)
    mean = np.zeros((groups, d))
    for i in range(n):
        blend(mean[labels[i]], size[labels[i]], Z[i], 1.0)
        size[labels[i]] += 1.0
    joined = np.arange(groups)
    for _ in range(rounds):
        changes = 0
        for a in range(groups):
            if size[a] > 0.0:
                to, price = cheapest_home(mean[a], size[a], a, noise, size, mean)
                if price < noise / size[a] * (1.0 - SLACK):
                    blend(mean[to], size[to], mean[a], size[a])
                    size[to] += size[a]
                    size[a] = 0.0
                    joined[a] = to
                    changes += 1
        for i in range(n):
            a = labels[i]
            while joined[a] != a:
                a = joined[a]
            labels[i] = a
            gain = noise
            if size[a] > 1.0:
                less = size[a] - 1.0
                far = squared_distance(Z[i], mean[a])
                gain = size[a] / less * far - noise * (1.0 / less - 1.0 / size[a])
            to, price = cheapest_home(Z[i], 1.0, a, noise, size, mean)
            if price < gain - SLACK * abs(gain):
                blend(mean[to], size[to], Z[i], 1.0)
                blend(mean[a], size[a], Z[i], -1.0)
                size[to] += 1.0
                size[a] -= 1.0
                labels[i] = to
                changes += 1
        if changes == 0:
            break


@kernel
def cheapest_home(
    x: Floats, weight: float, own: int, noise: float, size: Floats, mean: Floats
) -> tuple[int, float]:
    """Find the group that `weight` records with mean x join at the least cost.

    With b records in a group it is weight b / (weight + b) |x - mean|^2, and noise
    (1 / (weight + b) - 1 / b), which is negative.
    """
    least = np.inf
    best = own
    for b in range(size.size):
        if size[b] > 0.0 and b != own:
            both = weight + size[b]
            price = weight * size[b] / both * squared_distance(x, mean[b])
            price += noise * (1.0 / both - 1.0 / size[b])
            if price < least:
                least = price
                best = b
    return best, least


@kernel
def squared_distance(x: Floats, y: Floats) -> float:
    """Squared length of x - y."""
    total = 0.0
    for j in range(x.size):
        total += (x[j] - y[j]) * (x[j] - y[j])
    return total


@kernel
def blend(mean: Floats, size: float, x: Floats, weight: float) -> None:
    """Add `weight` records with mean x to a group, or remove them if it is negative."""
    if size + weight > 0.0:
        for j in range(mean.size):
            mean[j] += weight / (size + weight) * (x[j] - mean[j])

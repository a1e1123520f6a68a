"""The error of COUNT queries at given levels, as an objective of a search.

As in `shoal evaluate`, a query takes half of the values of each of up to three columns, and a label
counts by the share of its values that lie inside. The queries are the same for every node and
every run: they are drawn from a fixed seed, and carry no privacy.
"""

from collections.abc import Callable, Sequence

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.metrics.count_queries import half_ranges, relative_errors

QUERIES, AXES, SEED = 200, 3, 26


def count_error(
    codes: Ints, trees: Sequence[Ints], times: Ints | None = None
) -> Callable[[Ints, Ints, Ints], float]:
    """Prepare the queries, and return a function that rates the classes of a node.

    Args:
        codes: records by columns, the leaf of each cell.
        trees: of each column levels by leaves: the label of each leaf, from 0.
        times: how many records each row of the codes stands for, by default one.

    Returns:
        A function from the levels of a node, a leaf for each column and class, and the records of
        each class to the median relative error of the queries that have an answer.
    """
    many = np.array([tree.shape[1] for tree in trees])
    drawn = half_ranges(
        np.zeros(len(many)),
        many,
        [True] * len(many),
        queries=QUERIES,
        rng=np.random.default_rng(SEED),
        axes=min(AXES, len(many)),
    )
    inside = [
        ((low <= leaf) & (leaf < high)).astype(np.float64)
        for low, high, leaf in (
            (drawn.lower[:, j], drawn.upper[:, j], np.arange(m)[:, None])
            for j, m in enumerate(many)
        )
    ]
    distinct, where = np.unique(codes, axis=0, return_inverse=True)
    true = _answers(inside, distinct.T, np.bincount(where.ravel(), times))
    shares: dict[tuple[int, int], Floats] = {}

    def error(levels: Ints, leaves: Ints, sizes: Ints) -> float:
        for j, level in enumerate(levels.tolist()):
            if (j, level) not in shares:
                shares[j, level] = _by_label(inside[j], trees[j][level])
        level_shares = [shares[j, level] for j, level in enumerate(levels.tolist())]
        errors = relative_errors(true, _answers(level_shares, leaves, sizes))
        return float(np.median(errors)) if len(errors) else 0.0

    return error


def _by_label(inside: Floats, labels: Ints) -> Floats:
    """Compute the share of each label's leaves that a query covers, by leaves and queries."""
    sums = np.zeros((int(labels.max()) + 1, inside.shape[1]))
    np.add.at(sums, labels, inside)
    shares: Floats = (sums / np.bincount(labels)[:, None])[labels]
    return shares


def _answers(shares: Sequence[Floats], leaves: Ints, sizes: Ints | Floats) -> Floats:
    """Answer each query: classes count by the product of their shares."""
    total = np.zeros(QUERIES)
    for first in range(0, leaves.shape[1], 4096):
        part = slice(first, first + 4096)
        inside = np.ones((len(sizes[part]), QUERIES))
        for axis_shares, leaf in zip(shares, leaves, strict=True):
            inside *= axis_shares[leaf[part]]
        total += sizes[part] @ inside
    return total

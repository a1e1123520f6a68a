"""Costs of cells for losses that are sums over cells: granularity and non-uniform entropy.

Granularity takes for a label (leaves of the label - 1) / (leaves - 1), or a penalty that the user
gives. Entropy takes for a record log2 (records of its label / records of its leaf), relative to the
sum over all records if all were suppressed. A suppressed cell costs as much as the root.

References:
    Gionis and Tassa, TKDE 21 (2009), on non-uniform entropy. doi:10.1109/TKDE.2008.129
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition.kernels import full_domain as kernels


@dataclass(frozen=True, eq=False)
class CellCosts:
    """The cost of cells at each level of each column.

    Attributes:
        mean: for each column and level, the weighted mean over the records.
        gaps: the additional cost of a suppressed cell, in the form of `kernels.Rows`.
    """

    mean: tuple[Floats, ...]
    gaps: Floats

    @classmethod
    def of(
        cls,
        rows: kernels.Rows,
        trees: Sequence[Ints],
        weights: Floats,
        penalties: Sequence[ArrayLike] | None,
        *,
        entropy: bool,
    ) -> "CellCosts":
        """Compute the costs of rows, given the columns' hierarchies and weights."""
        heavy = weights / weights.sum()
        n = int(rows.counts.sum())
        held = kernels.count_by_leaf(rows).astype(np.float64)
        many = np.diff(rows.starts)
        labels = rows.labels + np.repeat(rows.starts[:-1], many)
        cost, star = _leaf_shares(labels, np.repeat(many, many)), np.ones(len(held))
        means = []
        for j, (tree, first) in enumerate(zip(trees, rows.starts, strict=False)):
            part = slice(first, first + tree.shape[1])
            if entropy:
                cost[: len(tree), part], star[part] = _entropy(tree, held[part], n)
            elif penalties is not None:
                cost[: len(tree), part] = _check_penalties(penalties[j], tree)
            means.append(heavy[j] * (cost[: len(tree), part] @ held[part]) / n)
        gaps = np.zeros(labels.shape)
        gap = np.repeat(heavy, many) * np.maximum(star - cost, 0.0) / n
        np.put_along_axis(gaps, labels, gap, axis=1)
        return cls(tuple(means), gaps)


def _leaf_shares(labels: Ints, many: Ints) -> Floats:
    """Return the leaves of each label minus one, over all leaves of the column minus one."""
    held = np.array([np.bincount(level)[level] for level in labels], np.float64)
    shares: Floats = (held - 1.0) / np.maximum(many - 1, 1)
    return shares


def _entropy(tree: Ints, held: Floats, n: int) -> tuple[Floats, Floats]:
    """Return a record's cost by leaf and level, and if suppressed, relative to the latter."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(held > 0, np.log2(held), 0.0)
        above = np.array([np.bincount(level, held)[level] for level in tree])
        cost = np.where(held > 0, np.log2(np.maximum(above, 1.0)) - logs, 0.0)
    star = np.where(held > 0, math.log2(n) - logs, 0.0)
    most = float(star @ held) / n
    return (cost / most, star / most) if most > 0 else (np.zeros_like(cost), np.zeros_like(star))


def _check_penalties(penalties: ArrayLike, tree: Ints) -> Floats:
    cost = np.asarray(penalties, np.float64)
    if cost.shape != tree.shape or (np.diff(cost, axis=0) < 0).any() or (cost > 1).any():
        raise InputError("Penalties must not fall from level to level, nor exceed 1.")
    return cost

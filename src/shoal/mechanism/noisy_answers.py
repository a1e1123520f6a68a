"""Noisy answers with their price: the one place where a mechanism draws and writes it down.

And counts of tables, which most answers are.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np

from shoal.core import LAPLACE, SELECTION, Neighbours, Noise, PrivacyLoss
from shoal.core._arrays import Ints


def noisy_answers(
    exact: Ints,
    *,
    sensitivity: Fraction | int,
    epsilon: Fraction,
    target: str,
    noise: Noise,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
) -> tuple[Ints, PrivacyLoss]:
    """Add discrete Laplace noise of scale sensitivity / epsilon to whole answers.

    Args:
        exact: the answers, in any shape.
        sensitivity: how far one record can move them in all (L1), for these neighbours.
        epsilon: the price.
        target: what they are about, in public words.
        noise: where draws come from.
        neighbours: for which the sensitivity holds.

    Returns:
        The answers with noise, and the entry for the accounting.
    """
    scale = Fraction(sensitivity) / epsilon
    privacy_loss = PrivacyLoss(
        mechanism=LAPLACE,
        target=target,
        sensitivity=Fraction(sensitivity),
        scale=scale,
        epsilon=epsilon,
        neighbours=neighbours,
        draws=exact.size,
    )
    return noise.discrete_laplace(exact, scale=scale), privacy_loss


def noisy_choice(
    scores: Ints, *, sensitivity: Fraction | int, epsilon: Fraction, target: str, noise: Noise
) -> tuple[int, PrivacyLoss]:
    """Choose an index, preferring high scores, by permute-and-flip (`Noise.select`).

    Args:
        scores: whole numbers.
        sensitivity: how far a changed record can move any one of them.
        epsilon: the price.
        target: what is chosen, in public words.
        noise: where draws come from.

    Returns:
        The index, and the entry for the accounting.
    """
    reach = Fraction(sensitivity)
    privacy_loss = PrivacyLoss(
        mechanism=SELECTION,
        target=target,
        sensitivity=reach,
        scale=2 * reach / epsilon,
        epsilon=epsilon,
        neighbours=Neighbours.CHANGE_ONE,
        draws=1,
    )
    return noise.select(scores, sensitivity=reach, epsilon=epsilon), privacy_loss


def table_counts(groups: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Records in each cell of a table, one axis per column; blocks of records add up.

    >>> table_counts([np.array([0, 1, 1]), np.array([0, 0, 0])], [2, 2])
    array([[1, 0],
           [2, 0]])
    """
    cell = np.zeros(len(groups[0]), dtype=np.int64)
    for group, size in zip(groups, sizes, strict=True):
        cell = cell * size + group
    return np.bincount(cell, minlength=prod(sizes)).astype(np.int64).reshape(tuple(sizes))


def noisy_table(
    exact: Ints, *, target: str, epsilon: Fraction, noise: Noise
) -> tuple[Ints, PrivacyLoss]:
    """Add noise to the counts of a table; a changed record moves them by at most 2 in all."""
    return noisy_answers(exact, sensitivity=2, epsilon=epsilon, target=target, noise=noise)

"""Draw noisy answers and record their privacy loss; no other module does both.

And counts of tables, which most answers are.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np

from shoal.core import (
    EXPONENTIAL,
    GAUSSIAN,
    LAPLACE,
    SELECTION,
    Neighbours,
    Noise,
    Price,
    PrivacyLoss,
)
from shoal.core._arrays import Ints
from shoal.core.concentrated import root_above

Reach = Mapping[Neighbours, int]
"""How far one record can move an answer, by whether it changes, or comes or goes."""
COUNTS: Reach = {Neighbours.CHANGE_ONE: 2, Neighbours.ADD_REMOVE: 1}
"""Of counts of cells that divide the records: a changed record leaves one cell and enters another,
by 1 each; an added or removed one does so in one cell. The square of the L2 change is the same."""


def noise_variance(privacy_loss: PrivacyLoss) -> Fraction:
    """Return the variance of a loss's noise: s^2 of Gaussian, about 2 s^2 of Laplace noise."""
    times = 1 if privacy_loss.mechanism == GAUSSIAN else 2
    return times * privacy_loss.scale**2


def noisy_answers(
    exact: Ints,
    *,
    reach: Reach | int,
    price: Price,
    target: str,
    noise: Noise,
    squared: Reach | None = None,
) -> tuple[Ints, PrivacyLoss]:
    """Add the noise that a price calls for to whole answers: Laplace for epsilon, Gaussian for rho.

    The scale is D / epsilon, or sqrt(D2 / (2 rho)), rounded up to a fraction.

    Args:
        exact: the answers, in any shape.
        reach: D, how far one record can move them in all (L1); a number is for the price's
            neighbours.
        price: of all of them.
        target: what they are about, in public words.
        noise: where draws come from.
        squared: D2, the square of how far one record can move them in L2; by default as for counts,
            of which each that moves moves by 1: the same as in L1.

    Returns:
        The answers with noise, and the entry for the accounting.
    """
    pure = price.rho is None
    moves = reach if pure or squared is None else squared
    sensitivity = Fraction(moves[price.neighbours] if isinstance(moves, Mapping) else moves)
    scale = sensitivity / price.amount if pure else root_above(sensitivity / (2 * price.amount))
    privacy_loss = PrivacyLoss(
        mechanism=LAPLACE if pure else GAUSSIAN,
        target=target,
        sensitivity=sensitivity,
        scale=scale,
        epsilon=price.epsilon,
        neighbours=price.neighbours,
        draws=exact.size,
        rho=price.rho,
    )
    if pure:
        return noise.discrete_laplace(exact, scale=scale), privacy_loss
    return noise.discrete_gaussian(exact, scale=scale), privacy_loss


def noisy_choice(
    scores: Ints, *, reach: Reach, price: Price, target: str, noise: Noise
) -> tuple[int, PrivacyLoss]:
    """Choose an index, preferring high scores: by permute-and-flip, or for rho by weights.

    For rho it is the exponential mechanism, whose price of D^2 / (2 s^2) permute-and-flip has not
    (`shoal.hazmat.noise`).

    Args:
        scores: whole numbers.
        reach: how far one record can move any one of them.
        price: of the choice.
        target: what is chosen, in public words.
        noise: where draws come from.

    Returns:
        The index, and the entry for the accounting.
    """
    sensitivity = Fraction(reach[price.neighbours])
    if price.rho is not None:
        scale = root_above(sensitivity**2 / (2 * price.rho))
        by_weight = PrivacyLoss(
            mechanism=EXPONENTIAL,
            target=target,
            sensitivity=sensitivity,
            scale=scale,
            epsilon=None,
            neighbours=price.neighbours,
            draws=1,
            rho=price.rho,
        )
        return noise.select_by_weight(scores, scale=scale), by_weight
    privacy_loss = PrivacyLoss(
        mechanism=SELECTION,
        target=target,
        sensitivity=sensitivity,
        scale=2 * sensitivity / price.amount,
        epsilon=price.amount,
        neighbours=price.neighbours,
        draws=1,
    )
    return noise.select(scores, sensitivity=sensitivity, epsilon=price.amount), privacy_loss


def table_counts(groups: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Count the records in each cell of a table, one axis per column; counts of blocks add up.

    >>> table_counts([np.array([0, 1, 1]), np.array([0, 0, 0])], [2, 2])
    array([[1, 0],
           [2, 0]])
    """
    cell = np.zeros(len(groups[0]), dtype=np.int64)
    for group, size in zip(groups, sizes, strict=True):
        cell = cell * size + group
    return np.bincount(cell, minlength=prod(sizes)).astype(np.int64).reshape(tuple(sizes))


def noisy_table(
    exact: Ints, *, target: str, price: Price, noise: Noise
) -> tuple[Ints, PrivacyLoss]:
    """Add noise to a table whose counts move by 2 in total, or by 1 (`COUNTS`)."""
    return noisy_answers(exact, reach=COUNTS, price=price, target=target, noise=noise)

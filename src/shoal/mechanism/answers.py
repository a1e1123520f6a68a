"""Noisy answers with their price: the one place where a mechanism draws and writes it down."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.core import LAPLACE, Neighbours, Noise, Spending

Integers = NDArray[np.int64]


def noisy_answers(
    exact: Integers,
    *,
    sensitivity: Fraction | int,
    epsilon: Fraction,
    target: str,
    noise: Noise,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
) -> tuple[Integers, Spending]:
    """Add discrete Laplace noise of scale sensitivity / epsilon to whole answers.

    Args:
        exact: the answers, in any shape.
        sensitivity: how far one record can move them in all (L1), for these neighbours.
        epsilon: the price.
        target: what they are about, in public words.
        noise: where draws come from.
        neighbours: for which the sensitivity holds.

    Returns:
        The answers with noise, and the entry for the ledger.
    """
    scale = Fraction(sensitivity) / epsilon
    spending = Spending(
        mechanism=LAPLACE,
        target=target,
        sensitivity=Fraction(sensitivity),
        scale=scale,
        epsilon=epsilon,
        neighbours=neighbours,
        draws=exact.size,
    )
    return noise.discrete_laplace(exact, scale=scale), spending

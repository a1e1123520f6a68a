"""Random stopping: choose the best private candidate, at a loss independent of their number.

The mechanism. Q: draw one of C candidates uniformly, and score it; the score is a private answer.
Run Q, and after each run stop with probability g = 1 / (2 C). Publish the candidate of the best
run.

Price: 3 e1, if Q costs e1 (Liu and Talwar; the proof here is written out by us). Order the outputs
y of Q by score, ties by candidate; let q(y) be the probability of y, F(y) that of y or worse, F'(y)
that of worse. The number K of runs has E[x^K] = f(x) = g x / (1 - (1 - g) x). The best of K runs
is y with probability

    f(F(y)) - f(F'(y)) = g q(y) / ((1 - (1 - g) F(y)) (1 - (1 - g) F'(y))).

The factors below are g + (1 - g) P(better than y) and g + (1 - g) P(y or better). For a neighbour
q(y) falls by a factor of exp(-e1) at most, and either probability, hence either factor, grows by
exp(e1) at most: together exp(-3 e1). The candidate without its score is post-processing.

Uniform draws are private selections among equal scores, which `Noise` has: no score differs, so
that they cost nothing.

Not promised: constant time. Who can count the runs learns K.

References:
    Liu, Talwar, "Private selection from private candidates", STOC 2019.
    doi:10.1145/3313276.3316377
    Papernot, Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from shoal.core import Noise

PRICE = 3
"""Of the whole, in prices of one run."""


def best_of_runs(candidates: int, score: Callable[[int], int], *, noise: Noise) -> int:
    """Choose a candidate by random stopping.

    Args:
        candidates: how many there are.
        score: releases and scores the candidate of a number, privately; higher is better.
        noise: where the choice of the candidate and the end of the runs come from.

    Returns:
        The number of the candidate whose run scored best; of equals the last number.
    """
    best: tuple[int, int] | None = None
    while True:
        place = _uniform(candidates, noise)
        run = (score(place), place)
        best = run if best is None else max(best, run)
        if _uniform(2 * candidates, noise) == 0:
            return best[1]


def _uniform(bound: int, noise: Noise) -> int:
    """Draw a uniform number from 0 to bound - 1."""
    equal = np.zeros(bound, dtype=np.int64)
    return noise.select(equal, sensitivity=Fraction(1), epsilon=Fraction(1))

"""Inference: guess a secret from the nearest released row. See `shoal.metrics.attacks`."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Bools, Floats
from shoal.errors import InputError
from shoal.metrics.attacks.result import Attack, attack
from shoal.metrics.boxes import boxes_of, check_attacks, draw_rows, nearest, people_on


def inference(
    lower: Floats,
    upper: Floats,
    secret: Floats,
    people: Floats,
    truth: Floats,
    *,
    discrete: ArrayLike,
    rng: np.random.Generator,
    tolerance: float | None = None,
    control: tuple[Floats, Floats] | None = None,
    attacks: int = 500,
    confidence: float = 0.95,
) -> Attack:
    """Guess a secret by that of the nearest released record.

    A guess g of s is right if it is equal or, with a tolerance, if |g - s| <= tolerance |g|; two
    missing values are equal. The baseline guesses the secret of a released record drawn blindly.
    Cost O(attacks n d).

    Axes are those that the attacker knows. `secret` is the released one of each box, a code or a
    number, NaN where suppressed; `truth` has those of the people, and `control` its own beside its
    people. For the other arguments see `shoal.metrics.attacks`.
    """
    boxes = boxes_of(lower, upper, discrete)
    x = people_on(people, boxes)
    check_attacks(attacks)
    released = np.asarray(secret, dtype=np.float64)
    if len(released) != len(boxes.lower) or len(truth) != len(x):
        raise InputError("Expected a confidential value for each released box and for each person.")
    every = np.arange(x.shape[1])

    def guess(rows: Floats, secrets: Floats, *, blindly: bool) -> tuple[int, int]:
        chosen = draw_rows(len(rows), attacks, rng)
        if blindly:
            guesses = released[rng.integers(len(released), size=len(chosen))]
        else:
            guesses = released[nearest(boxes, rows[chosen], every, k=1, rng=rng, people=rows)[:, 0]]
        return int(_right(guesses, secrets[chosen], tolerance).sum()), len(chosen)

    known = None
    if control is not None:
        control_values = np.asarray(control[1], dtype=np.float64)
        known = guess(people_on(control[0], boxes), control_values, blindly=False)
    secrets = np.asarray(truth, dtype=np.float64)
    return attack(
        guess(x, secrets, blindly=False),
        baseline=guess(x, secrets, blindly=True),
        control=known,
        note="The baseline guesses the confidential value of a released record drawn at random.",
        confidence=confidence,
    )


def _right(guesses: Floats, truth: Floats, tolerance: float | None) -> Bools:
    missing = np.isnan(guesses) & np.isnan(truth)
    near = np.abs(guesses - truth) <= (tolerance or 0.0) * np.abs(guesses)
    right: Bools = missing | near
    return right

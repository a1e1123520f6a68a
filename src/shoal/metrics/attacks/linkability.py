"""Linkability: link two parts of a record through one released row. See `shoal.metrics.attacks`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.metrics.attacks.result import Attack, attack
from shoal.metrics.boxes import boxes_of, check_attacks, draw_rows, log_choose, nearest, people_on


def linkability(
    lower: Floats,
    upper: Floats,
    people: Floats,
    *,
    discrete: ArrayLike,
    first: Sequence[int],
    second: Sequence[int],
    rng: np.random.Generator,
    neighbours: int = 1,
    control: Floats | None = None,
    attacks: int = 500,
    confidence: float = 0.95,
) -> Attack:
    """Link two parts of a record through a released record that is near both.

    The attacker holds two tables of people, with some attributes each. A person is linked if one
    released record is among the nearest to both parts. Ties are drawn independently for the parts.
    The baseline picks k records of n blindly for either part, which meet with probability
    1 - C(n - k, k) / C(n, k). Cost O(attacks n d).

    `first` and `second` are the axes of the two tables, and share none; `neighbours` released
    records count as near. For the other arguments see `shoal.metrics.attacks`.
    """
    boxes = boxes_of(lower, upper, discrete)
    x = people_on(people, boxes)
    check_attacks(attacks)
    left, right = (np.asarray(axes, dtype=np.int64) for axes in (first, second))
    if not left.size or not right.size or np.intersect1d(left, right).size:
        raise InputError(
            "The arguments first and second must each name at least one axis, and no axis may "
            "be in both."
        )
    k = min(neighbours, len(boxes.lower))
    if k < 1:
        raise InputError(f"The number of nearest neighbours must be at least 1; got {neighbours}.")

    def link(rows: Floats) -> tuple[int, int]:
        targets = rows[draw_rows(len(rows), attacks, rng)]
        near = [nearest(boxes, targets, axes, k=k, rng=rng, people=rows) for axes in (left, right)]
        met = (near[0][:, :, None] == near[1][:, None, :]).any(axis=(1, 2))
        return int(met.sum()), len(targets)

    main = link(x)
    n = len(boxes.lower)
    return attack(
        main,
        baseline=float(-np.expm1(log_choose(n - k, k) - log_choose(n, k))) if n >= 2 * k else 1.0,
        control=None if control is None else link(people_on(control, boxes)),
        note="The baseline picks released records at random.",
        confidence=confidence,
    )

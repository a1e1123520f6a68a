"""Find with noise what a policy leaves open of a column: its kind, categories, range and step.

Every question counts the records by a function of a single cell, so a person with r rows moves the
counts by at most r, as for any table (`shoal.mechanism.noisy_answers`). Where the possible answers
are public (kinds, cells of a grid, months, steps) that is all: noise as usual, for epsilon or rho.
Where they are not (texts) a key is released if its noisy count reaches a threshold, which has a
delta (`shoal.hazmat.noise.CheckedNoise.release_keys`), and cannot be had for a pure epsilon or a
rho by itself: a key that one table has and its neighbour has not has an infinite log-ratio.

What is chosen from the noisy counts, here and by callers, is post-processing. A range ends where
no sum of a few neighbouring cells further out exceeds what noise alone would explain in all
(`reach_of`). An empty code costs a little noise, and a person who is clamped is lost, so blocks
are long: 68 years of 120 births each show in none of 4 years. In a small table a range is still too
narrow, and if no block shows it is that of the noise; the share of what lies beyond says so.

Grids are public and the same for all tables:

    magnitudes   of each sign, four equal parts of each [2^e, 2^(e+1)), e from -20 to 59, and 0
    years        1800 to 2199, and their months
    steps        the coarsest of 1000, 100, ..., 0.001 that a number other than 0 is a multiple of,
                 or none

In mathematical notation: docs/explanation/proofs.md, "Keys that are not known beforehand".
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import log, sqrt

import numpy as np

from shoal.core import THRESHOLD, Neighbours, Noise, Price, PrivacyLoss, PrivacyMeasure
from shoal.core._arrays import Floats, Ints
from shoal.core.concentrated import key_delta, key_threshold, root_above
from shoal.mechanism.noisy_answers import COUNTS, Reach, noise_variance, noisy_answers

_LEAST, _MOST, _PARTS = -20, 60, 4
_SIDE = _PARTS * (_MOST - _LEAST)
MAGNITUDES = 2 * _SIDE + 1
STEPS = tuple(Decimal(10) ** power for power in (3, 2, 1, 0, -1, -2, -3))
_WHOLE = STEPS.index(Decimal(1))
FIRST_YEAR, YEARS = 1800, 400
MONTHS = 12 * YEARS
_FALSE_ALARM = 0.05
_FEW = 0.005
"""Share of the numbers that may be no multiples of a step: slips, and what noise hides."""


def count_with_noise(
    counts: Ints, *, rows: int, price: Price, target: str, noise: Noise
) -> tuple[Ints, float, PrivacyLoss]:
    """Add noise to counts by public cells, for persons of so many rows.

    Returns:
        The noisy counts, the standard deviation of each, and the entry for the accounting.
    """
    linear: Reach = {relation: rows * moved for relation, moved in COUNTS.items()}
    squared: Reach = {relation: rows * rows * moved for relation, moved in COUNTS.items()}
    noisy, loss = noisy_answers(
        counts, reach=linear, squared=squared, price=price, target=target, noise=noise
    )
    return noisy, float(noise_variance(loss)) ** 0.5, loss


def deviation_of(price: Price, *, rows: int) -> float:
    """Return the standard deviation of a count's noise at a price, before it is drawn."""
    times = COUNTS[price.neighbours] * rows
    if price.measure is PrivacyMeasure.RHO:
        return sqrt(times * rows / (2 * price.amount))
    return sqrt(2) * times / float(price.amount)


def plan_threshold(
    price: Price, delta: Fraction, *, rows: int
) -> tuple[Fraction, Fraction, int, Fraction]:
    """Return the squared reach, the scale, the threshold and the exact delta of unknown keys."""
    times = COUNTS[price.neighbours]
    squared = Fraction(times * rows * rows)
    scale = root_above(squared / (2 * price.amount))
    each = 2 if price.neighbours is Neighbours.CHANGE_ONE else 1  # one key enters, another leaves
    threshold = key_threshold(scale, delta / each, rows)
    return squared, scale, threshold, each * key_delta(scale, threshold, rows)


def find_keys(
    counts: Mapping[str, int],
    *,
    rows: int,
    price: Price,
    delta: Fraction,
    target: str,
    noise: Noise,
) -> tuple[dict[str, int], PrivacyLoss]:
    """Release the keys that enough records have, with their noisy counts, and the entry."""
    squared, scale, threshold, exact = plan_threshold(price, delta, rows=rows)
    released = noise.release_keys(counts, scale=scale, threshold=threshold)
    loss = PrivacyLoss(
        mechanism=THRESHOLD,
        target=target,
        sensitivity=squared,
        scale=scale,
        epsilon=None,
        neighbours=price.neighbours,
        draws=1,
        rho=price.amount,
        threshold=threshold,
        delta=exact,
    )
    return released, loss


def reach_of(
    noisy: Ints, deviation: float, blocks: Sequence[int] = (1, 2, 4, 8, 16)
) -> tuple[int, int]:
    """Return the first and the last cell of the blocks whose counts noise does not explain.

    A sum of m cells has noise of standard deviation s sqrt(m); over all blocks of all cells noise
    alone exceeds the limit with a probability of 5% at most. Larger blocks are of what smaller ones
    leave. Without any block it is the cell with the largest count.

    >>> reach_of(np.array([3, -2, 90, 120, 1, -4]), 5.0, blocks=[1])
    (2, 3)
    """
    limit = deviation * sqrt(2 * log(noisy.size * len(blocks) / _FALSE_ALARM))
    rest, ends = noisy.copy(), []
    for size in (size for size in blocks if size <= noisy.size):
        sums = np.concatenate([[0], np.cumsum(rest)])
        above = np.flatnonzero(sums[size:] - sums[:-size] > limit * sqrt(size))
        if above.size:
            # The inner ends: the outer cells of a block may be empty.
            ends += [int(above[0]) + (size - 1) // 2, int(above[-1]) + size // 2]
            for place in above:
                rest[place : place + size] = 0
    return (min(ends), max(ends)) if ends else (int(noisy.argmax()),) * 2


def magnitude_cells(numbers: Floats) -> Ints:
    """Return the cell of each number among the magnitudes, in the order of the numbers.

    >>> (magnitude_cells(np.array([-1.0, 0.0, 1.0, 1.9])) - MAGNITUDES // 2).tolist()
    [-81, 0, 81, 84]
    """
    size = np.clip(np.abs(numbers), 0.0, np.nextafter(2.0**_MOST, 0))
    share, exponents = np.frexp(size)
    places = _PARTS * (exponents - 1 - _LEAST) + np.floor((2 * share - 1) * _PARTS) + 1
    return np.where(size < 2.0**_LEAST, 0, np.sign(numbers) * places).astype(np.int64) + _SIDE


def magnitude_range(first: int, last: int) -> tuple[float, float]:
    """Return the numbers between which some magnitudes lie."""
    low, high = _ends(first)[0], _ends(last)[1]
    return (low, high) if low < high else (0.0, 1.0)


def _ends(cell: int) -> tuple[float, float]:
    place = cell - _SIDE
    if place == 0:
        return 0.0, 0.0
    octave, part = divmod(abs(place) - 1, _PARTS)
    start = 2.0 ** (octave + _LEAST)
    near, far = (start * (1 + (part + more) / _PARTS) for more in (0, 1))
    return (near, far) if place > 0 else (-far, -near)


def is_skewed(noisy: Ints, first: int, last: int) -> bool:
    """Whether more than half of the records lie in the lowest eighth of a range of magnitudes."""
    low, high = magnitude_range(first, last)
    inside = np.maximum(noisy[first : last + 1], 0)
    near = [_ends(cell)[1] <= low + (high - low) / 8 for cell in range(first, last + 1)]
    return bool(low >= 0 and 2 * inside[near].sum() > inside.sum())


def step_cells(numbers: Floats) -> Ints:
    """Return which step is the coarsest that each number is a multiple of; the last: none.

    >>> step_cells(np.array([3000.0, 120.0, 7.0, 0.25, 1 / 3])).tolist()
    [0, 2, 3, 5, 7]
    """
    cells = np.full(numbers.size, len(STEPS), dtype=np.int64)
    for place in reversed(range(len(STEPS))):
        multiples = numbers * float(1 / STEPS[place])
        whole = np.abs(multiples - np.rint(multiples)) <= 1e-9 * np.maximum(np.abs(multiples), 1)
        cells[whole] = place
    return cells


def choose_step(noisy: Ints, deviation: float) -> Decimal | None:
    """Choose the step of which nearly all numbers are multiples; None for none.

    Where noise leaves it open, the finer of 1 and below, and no step above 1: a step that is too
    fine costs a little, and one that is too coarse moves people.

    >>> choose_step(np.array([0, 1, 40, 900, 2, 0, 1, 3]), 2.0)
    Decimal('1')
    """
    total = max(int(noisy.sum()), 1)
    sums = [int(noisy[place + 1 :].sum()) for place in range(len(STEPS))]
    slack = [3 * deviation * sqrt(noisy.size - place - 1) for place in range(len(STEPS))]
    for place in range(_WHOLE):
        if sums[place] + slack[place] <= 2 * _FEW * total:
            return STEPS[place]
    for place in range(_WHOLE, len(STEPS)):
        if sums[place] <= max(slack[place], _FEW * total):
            return STEPS[place]
    return None


def year_cells(days: Floats) -> Ints:
    """Return the year of each day, counted from 1970-01-01; days beyond the grid at its ends."""
    return np.asarray(month_cells(days) // 12)


def month_cells(days: Floats) -> Ints:
    """Return the month of each day, counted from 1970-01-01; days beyond the grid at its ends."""
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return np.clip(months - 12 * (FIRST_YEAR - 1970), 0, MONTHS - 1)


def month_range(first: int, last: int) -> tuple[date, date]:
    """Return the first day of one month and the last day of another."""
    return _first_day(first), _first_day(last + 1) - timedelta(days=1)


def _first_day(month: int) -> date:
    return date(FIRST_YEAR + month // 12, month % 12 + 1, 1)

"""Draw schooling, health, work, income and tax of each person."""

from typing import Final, NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.sample.draws import by_age, chooser, exponential, normal, pick, whole
from shoal.sample.households import CHILD, ELDER, SETTING, WEALTH, Members
from shoal.sample.world import CONDITIONS, OCCUPATIONS

TOP_INCOME: Final = 500_000


class Lives(NamedTuple):
    """The drawn columns, one entry per person, without missing values.

    Attributes:
        education: index into `world.EDUCATIONS`.
        condition: index into `world.CONDITIONS`, or its length for none.
        occupation: index into `world.OCCUPATIONS`, or its length for not working.
        hours: worked in a week, 0 for those who do not work.
        income: of a year, in whole units.
        tax: on that income.
    """

    education: Ints
    condition: Ints
    occupation: Ints
    hours: Ints
    income: Ints
    tax: Ints


def draw(rng: np.random.Generator, who: Members) -> Lives:
    """Draw the columns of the members of some households."""
    n = len(who.age)
    talent = 0.62 * who.standing + 0.78 * normal(rng.random(n))
    education = (talent > _SCHOOLING[:, who.age]).sum(axis=0)
    condition = _condition(rng, who)
    occupation, hours = _work(rng, who, education, condition)
    income = _income(
        rng, who, education=education, occupation=occupation, hours=hours, talent=talent
    )
    return Lives(education, condition, occupation, hours, income, _tax(rng, income))


def _condition(rng: np.random.Generator, who: Members) -> Ints:
    """Draw the main health condition, given age, sex and the household's standing."""
    third = (who.standing < 0.4).astype(np.int64) + (who.standing < -0.4)
    return pick(_HEALTH, (_AGE_BAND[who.age] * 2 + who.sex) * 3 + third, rng.random(len(who.age)))


def _work(
    rng: np.random.Generator, who: Members, education: Ints, condition: Ints
) -> tuple[Ints, Ints]:
    """Draw occupation and weekly hours, or none and 0 for those who do not work."""
    n = len(who.age)
    parent = (who.place != CHILD) & (who.place != ELDER) & (who.youngest < 99)
    mother = parent & (who.sex == 1)
    chance = _AT_WORK[who.age] * _WORK_EDUCATION[education] * _WORK_CONDITION[condition]
    chance = np.minimum(chance, 0.97) * np.where(mother, _WORK_MOTHER[who.youngest], 1.0)
    works = rng.random(n) < chance

    row = (education * 2 + who.sex) * 3 + SETTING[who.district]
    occupation = pick(_JOBS, row, rng.random(n))
    # People too young for their occupation get one that is open to every age.
    early = who.age < _FROM_AGE[occupation]
    occupation = np.where(early, pick(_FIRST_JOBS, row, rng.random(n)), occupation)

    part_time = np.where(who.sex == 1, 0.22, 0.07)
    part_time = part_time + np.where(mother & (who.youngest < 14), 0.25, 0.0)
    part_time += _PART_TIME[who.age] + _PART_TIME_CONDITION[condition]
    style = np.where(rng.random(n) < part_time, 0, _STYLE[occupation])
    hours = pick(_HOURS, style, rng.random(n))
    return np.where(works, occupation, len(OCCUPATIONS)), np.where(works, hours, 0)


def _income(
    rng: np.random.Generator,
    who: Members,
    *,
    education: Ints,
    occupation: Ints,
    hours: Ints,
    talent: Floats,
) -> Ints:
    """Draw a year's income: pay, pension or benefit, and capital income for a few."""
    n = len(who.age)
    luck = 0.25 * talent + 0.95 * normal(rng.random(n))
    # Log-normal pay with a heavier upper tail.
    fortune = exponential(_SPREAD[occupation] * (luck + 1.3 * np.maximum(luck - 1.5, 0.0)))
    worked = np.minimum(hours, 40) / 40 + 0.4 * np.maximum(hours - 40, 0) / 40
    pay = _PAY[occupation] * worked * _PAY_AGE[who.age] * _PAY_EDUCATION[education] * fortune
    pay = pay * (1.0 + 0.012 * WEALTH[who.district]) * np.where(who.sex == 1, 0.92, 1.0)

    u = rng.random(n)
    idle = hours == 0
    support = (5_500 + 11_000 * rng.random(n)) * (u >= _UNSUPPORTED[who.age])
    support = np.where(who.age < 25, 0.45 * support, support)
    pension = (8_500 + _PENSION_EDUCATION[education]) * exponential(0.3 * luck)
    pension = pension * np.where(who.sex == 1, 0.84, 1.0) * (u >= 0.03)
    pensioner = who.age >= 66
    other = np.where(pensioner, pension, np.where(idle, support, 0.0))

    owner = rng.random(n) < _OWNS[who.age] * (1.0 + np.clip(who.standing, -0.9, 3.0))
    capital = np.where(owner, 2_500 * exponential(1.1 * normal(rng.random(n)) + 0.4 * talent), 0.0)

    total = np.minimum(pay + other + capital, TOP_INCOME) * (who.age >= 16)
    total = total * (idle | (rng.random(n) >= 0.008))  # a year of losses counts as nothing
    return _as_reported(whole(total), rng.random(n))


def _as_reported(income: Ints, u: Floats) -> Ints:
    """Round as people do: one in five to thousands, one in four to hundreds."""
    step = np.where(u < 0.20, 1000, np.where(u < 0.45, 100, 1))
    step = np.where(income < 5000, 1, step)
    reported: Ints = np.minimum((income + step // 2) // step * step, TOP_INCOME)
    return reported


def _tax(rng: np.random.Generator, income: Ints) -> Ints:
    """Compute income tax by brackets, in whole units rounded down, less deductions."""
    due = sum(
        (rate * np.maximum(income - start, 0.0) for start, rate in _TAX_STEPS),
        np.zeros(len(income)),
    )
    deducted = 0.22 * rng.random(len(income)) * rng.random(len(income))
    exempt = rng.random(len(income)) < 0.015
    return np.where(exempt, 0, due * (1.0 - deducted)).astype(np.int64)


# Thresholds of talent for primary, secondary and tertiary education.
_SCHOOLING: Final = np.stack(
    [
        by_age(
            {11: 9, 12: 0.2, 13: -1.6, 15: -2.3, 35: -2.3, 55: -2.1, 70: -1.6, 85: -1.1, 105: -0.8}
        ),
        by_age(
            {15: 9, 16: 1.9, 17: 0.8, 18: -0.2, 19: -0.8, 21: -1.1, 40: -1.1}
            | {55: -0.7, 70: -0.1, 90: 0.7}
        ),
        by_age(
            {19: 9, 20: 2.4, 21: 1.3, 22: 0.8, 24: 0.4, 27: 0.2, 35: 0.2}
            | {50: 0.55, 65: 0.95, 80: 1.4, 100: 1.8}
        ),
    ]
)

_BANDS: Final = (0, 15, 30, 45, 60, 75)
_AGE_BAND: Final = np.searchsorted(_BANDS, np.arange(106), side="right") - 1


def _health_weights() -> list[list[int]]:
    """Weigh the conditions, and none of them, by age band, sex and third of standing.

    A condition with women = w percent falls on men and women as 200 : 2 w over 100 + w, so
    its frequency among both together is the stated one.
    """
    rows = []
    for band in range(len(_BANDS)):
        for woman in (False, True):
            for third in range(3):
                row = [
                    (c.by_age[band] * (2 * c.women if woman else 200) // (100 + c.women))
                    * (200 + (c.poor - 100) * third)
                    // 200
                    for c in CONDITIONS
                ]
                rows.append([*row, 10_000 - sum(row)])
    return rows


_HEALTH: Final = chooser(_health_weights())


def _job_weights(*, first: bool) -> list[list[int]]:
    """Weigh the occupations by education, sex and setting; first jobs are open to all ages."""
    return [
        [
            o.by_education[min(education, 2) if first else education]
            * (o.women if woman else 100)
            * 100
            // (100 + o.women)
            * o.by_setting[setting]
            * (not first or o.from_age <= 16)
            for o in OCCUPATIONS
        ]
        for education in range(4)
        for woman in (False, True)
        for setting in range(3)
    ]


_JOBS: Final = chooser(_job_weights(first=False))
_FIRST_JOBS: Final = chooser(_job_weights(first=True))
_FROM_AGE: Final = np.array([o.from_age for o in OCCUPATIONS])
_STYLE: Final = np.array([o.style for o in OCCUPATIONS])

# The last entry is for people who do not work.
_PAY: Final = np.array([1000.0 * o.pay for o in OCCUPATIONS] + [0.0])
_SPREAD: Final = np.array([o.spread / 100 for o in OCCUPATIONS] + [0.0])

_WORK_CONDITION: Final = np.array([c.work / 100 for c in CONDITIONS] + [1.0])
_PART_TIME_CONDITION: Final = 0.3 * (1.0 - _WORK_CONDITION)
_WORK_EDUCATION: Final = np.array([0.66, 0.86, 1.0, 1.06])
_WORK_MOTHER: Final = by_age({0: 0.55, 2: 0.72, 5: 0.84, 10: 0.94, 16: 1.0})
_AT_WORK: Final = by_age(
    {15: 0, 16: 0.1, 18: 0.32, 20: 0.52, 23: 0.74, 27: 0.9, 35: 0.95, 50: 0.95, 55: 0.9, 59: 0.8}
    | {62: 0.58, 64: 0.42, 66: 0.16, 70: 0.07, 75: 0.03, 80: 0.004, 84: 0}
)
_PART_TIME: Final = by_age({16: 0.6, 19: 0.4, 23: 0.15, 27: 0, 58: 0, 64: 0.15, 67: 0.45, 75: 0.6})

# Weekly hours with their frequency: part-time, then regular, long and very long.
_HOURS_STYLES: Final = (
    {6: 2, 8: 4, 10: 5, 12: 4, 15: 6, 16: 6, 18: 4, 20: 20, 22: 4, 24: 12, 25: 8, 28: 5, 30: 16}
    | {32: 8, 34: 2},
    {32: 2, 34: 2, 35: 14, 36: 6, 37: 16, 38: 18, 39: 10, 40: 60, 41: 3, 42: 8, 43: 2, 44: 2}
    | {45: 8, 46: 1, 48: 3, 50: 4, 55: 1, 60: 1},
    {35: 2, 36: 1, 37: 2, 38: 4, 39: 2, 40: 36, 41: 2, 42: 8, 43: 3, 44: 5, 45: 22, 46: 4}
    | {48: 12, 50: 22, 52: 4, 55: 10, 58: 1, 60: 7, 65: 2, 70: 1},
    {35: 1, 38: 1, 40: 16, 42: 3, 43: 1, 44: 3, 45: 10, 46: 2, 48: 8, 50: 20, 52: 3, 55: 14}
    | {58: 3, 60: 18, 65: 9, 70: 10, 75: 4, 80: 4},
)
_HOURS: Final = chooser([[style.get(h, 0) for h in range(81)] for style in _HOURS_STYLES])

_PAY_AGE: Final = by_age(
    {16: 0.5, 20: 0.66, 25: 0.82, 32: 0.96, 42: 1.08, 52: 1.14, 62: 1.1, 70: 0.8}
)
_PAY_EDUCATION: Final = np.array([0.88, 0.94, 1.0, 1.12])
_PENSION_EDUCATION: Final = np.array([1_500.0, 3_800.0, 8_000.0, 16_500.0])
_UNSUPPORTED: Final = by_age({16: 0.93, 18: 0.75, 24: 0.5, 30: 0.34, 50: 0.3, 60: 0.14, 65: 0.05})
_OWNS: Final = by_age({25: 0.01, 40: 0.06, 60: 0.14, 80: 0.17})
_TAX_STEPS: Final = ((11_000, 0.17), (28_000, 0.11), (62_000, 0.10), (140_000, 0.06))

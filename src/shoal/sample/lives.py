"""Draw schooling, health, work, income and tax of each person."""

from typing import Final

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.sample.draws import TABLES, exponential, normal, pick, whole
from shoal.sample.households import CHILD, ELDER, Members

TOP_INCOME: Final = 500_000
_TAX_STEPS: Final = ((11_000, 0.17), (28_000, 0.11), (62_000, 0.10), (140_000, 0.06))


def draw(rng: np.random.Generator, who: Members) -> dict[str, Ints]:
    """Draw the columns of the members of some households, without missing values.

    Education is 0 none, 1 primary, 2 secondary, 3 tertiary. The last condition is none, the last
    occupation not working; hours are those of a week, income and tax of a year.
    """
    n = len(who.age)
    talent = 0.62 * who.standing + 0.78 * normal(rng.random(n))
    education = (talent > TABLES["schooling"][:, who.age]).sum(axis=0)
    condition = _condition(rng, who)
    occupation, hours = _work(rng, who, education, condition)
    income = _income(
        rng, who, education=education, occupation=occupation, hours=hours, talent=talent
    )
    return {
        "education": education,
        "condition": condition,
        "occupation": occupation,
        "hours": hours,
        "income": income,
        "tax": _tax(rng, income),
    }


def _condition(rng: np.random.Generator, who: Members) -> Ints:
    """Draw the main health condition, given age, sex and the household's standing."""
    third = (who.standing < 0.4).astype(np.int64) + (who.standing < -0.4)
    return pick(
        TABLES["health"],
        (TABLES["age_band"][who.age] * 2 + who.sex) * 3 + third,
        rng.random(len(who.age)),
    )


def _work(
    rng: np.random.Generator, who: Members, education: Ints, condition: Ints
) -> tuple[Ints, Ints]:
    """Draw occupation and weekly hours, or none and 0 for those who do not work."""
    n = len(who.age)
    parent = (who.place != CHILD) & (who.place != ELDER) & (who.youngest < 99)
    mother = parent & (who.sex == 1)
    chance = (
        TABLES["at_work"][who.age]
        * TABLES["work_education"][education]
        * TABLES["work_condition"][condition]
    )
    chance = np.minimum(chance, 0.97) * np.where(mother, TABLES["work_mother"][who.youngest], 1.0)
    works = rng.random(n) < chance

    row = (education * 2 + who.sex) * 3 + TABLES["setting"][who.district]
    occupation = pick(TABLES["jobs"], row, rng.random(n))
    # People too young for their occupation get one that is open to every age.
    early = who.age < TABLES["from_age"][occupation]
    occupation = np.where(early, pick(TABLES["first_jobs"], row, rng.random(n)), occupation)

    part_time = np.where(who.sex == 1, 0.22, 0.07)
    part_time = part_time + np.where(mother & (who.youngest < 14), 0.25, 0.0)
    part_time += TABLES["part_time"][who.age] + TABLES["part_time_condition"][condition]
    style = np.where(rng.random(n) < part_time, 0, TABLES["style"][occupation])
    hours = pick(TABLES["hours"], style, rng.random(n))
    return np.where(works, occupation, len(TABLES["style"])), np.where(works, hours, 0)


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
    fortune = exponential(TABLES["spread"][occupation] * (luck + 1.3 * np.maximum(luck - 1.5, 0.0)))
    worked = np.minimum(hours, 40) / 40 + 0.4 * np.maximum(hours - 40, 0) / 40
    pay = (
        TABLES["pay"][occupation]
        * worked
        * TABLES["pay_age"][who.age]
        * TABLES["pay_education"][education]
        * fortune
    )
    pay = pay * (1.0 + 0.012 * TABLES["wealth"][who.district]) * np.where(who.sex == 1, 0.92, 1.0)

    u = rng.random(n)
    idle = hours == 0
    support = (5_500 + 11_000 * rng.random(n)) * (u >= TABLES["unsupported"][who.age])
    support = np.where(who.age < 25, 0.45 * support, support)
    pension = (8_500 + TABLES["pension_education"][education]) * exponential(0.3 * luck)
    pension = pension * np.where(who.sex == 1, 0.84, 1.0) * (u >= 0.03)
    pensioner = who.age >= 66
    other = np.where(pensioner, pension, np.where(idle, support, 0.0))

    owner = rng.random(n) < TABLES["owns"][who.age] * (1.0 + np.clip(who.standing, -0.9, 3.0))
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

"""Make the files that `shoal.sample` ships: the table, its hierarchies, and what is drawn from.

Everything is tabulated here, so that drawing needs only addition, multiplication, comparison and
looking up. After a change of the generator or of `world`:

    python -m tests.sample.shipped_files
"""

import csv
import math
from statistics import NormalDist

import numpy as np
from tests.sample.world import (
    CONDITIONS,
    DISTRICTS,
    EDUCATIONS,
    GIVEN_NAMES,
    MARITAL,
    NO_CONDITION,
    NOT_WORKING,
    OCCUPATIONS,
    SEXES,
    SURNAMES,
    WAVES,
    hierarchies,
)

from shoal import sample
from shoal.sample.draws import BINS, OLDEST, REACH, STEPS
from shoal.sample.households import CHILD, ELDER, HEAD, PARTNER, SHARER


def chooser(weights):
    """Prepare a table for `pick`: for each row of whole weights, the category of each of 4096 bins.

    Bin b of a row has the category whose interval of the cumulative weights contains the bin's
    middle, so frequencies are right to one part in 4096. Whole numbers keep this exact.

    >>> np.bincount(chooser([[1, 0, 3]])[0]).tolist()
    [1024, 0, 3072]
    """
    cumulated = np.cumsum(np.asarray(weights, dtype=np.int64), axis=1) * (2 * BINS)
    middles = 2 * np.arange(BINS) + 1
    return np.array(
        [
            np.searchsorted(row, middles * (row[-1] // (2 * BINS)), side="right")
            for row in cumulated
        ],
        dtype=np.uint16,
    )


def ages(curve):
    """Prepare a table for `pick` with one row of ages, from the percent of people below each age.

    >>> ages({18: 0, 20: 50, 30: 100})[[0, 2047, 2048, 4095]].tolist()
    [18, 19, 20, 29]
    """
    middles = (np.arange(BINS) + 0.5) * (100 / BINS)
    return np.interp(middles, list(curve.values()), list(curve)).astype("u2")


def by_age(curve):
    """Tabulate a piecewise linear function of the ages 0..105, constant beyond its ends.

    >>> by_age({10: 0.0, 20: 1.0})[[0, 15, 99]].tolist()
    [0.0, 0.5, 1.0]
    """
    return np.interp(np.arange(OLDEST + 1), list(curve), list(curve.values()))


def _round(values):
    return np.array([round(value, 9) for value in values])


QUANTILES = _round(NormalDist().inv_cdf((i + 0.5) / (BINS + 1)) for i in range(BINS + 1))
POWERS = _round(math.exp(i / STEPS - REACH) for i in range(2 * REACH * STEPS + 1))


WAVE = chooser([len(WAVES) * [1]])
SURNAME = chooser([[20_000 // (rank + 20) for rank in range(len(SURNAMES))]])
# Each generation prefers names a quarter of the list further on.
GIVEN = chooser(
    [
        np.roll([600 // (rank + 6) for rank in range(len(names))], generation * len(names) // 4)
        for names in GIVEN_NAMES
        for generation in range(4)
    ]
)
# Persons per respondent: fewer where the sampling fraction was higher, more where response was
# lower.
REGIONS = tuple(dict.fromkeys(district.region for district in DISTRICTS))
DESIGN = np.array(
    [
        (448, 370, 215, 181, 413, 301, 344, 284)[REGIONS.index(district.region)]
        * (1.15, 1.0, 0.85)[district.setting]
        for district in DISTRICTS
    ]
)
RESPONSE = by_age({0: 0.95, 15: 1.0, 22: 1.45, 30: 1.25, 45: 1.0, 68: 0.8, 85: 1.15})


WEALTH = np.array([district.wealth for district in DISTRICTS])
SETTING = np.array([district.setting for district in DISTRICTS])

DISTRICT = chooser([[district.thousands for district in DISTRICTS]])

# Kinds of household: partner, children, sharers, elders, life stage, and their frequency in city,
# town and countryside.
KINDS = (
    (0, 0, 0, 0, 0, (410, 335, 300)),
    (1, 0, 0, 0, 1, (235, 290, 320)),
    (1, 1, 0, 0, 2, (88, 92, 86)),
    (1, 2, 0, 0, 2, (84, 106, 102)),
    (1, 3, 0, 0, 2, (24, 32, 40)),
    (1, 4, 0, 0, 2, (9, 11, 17)),
    (0, 1, 0, 0, 3, (42, 42, 32)),
    (0, 2, 0, 0, 3, (24, 24, 18)),
    (0, 3, 0, 0, 3, (8, 7, 5)),
    (0, 0, 1, 0, 4, (36, 15, 8)),
    (0, 0, 2, 0, 4, (16, 5, 2)),
    (0, 0, 3, 0, 4, (8, 2, 1)),
    (1, 1, 0, 1, 2, (6, 8, 13)),
    (1, 2, 0, 1, 2, (5, 8, 13)),
    (1, 3, 0, 1, 2, (2, 3, 6)),
    (0, 0, 0, 1, 5, (10, 13, 20)),
)
KIND = chooser(np.array([kind[5] for kind in KINDS]).T)
CHILDREN = np.array([kind[1] for kind in KINDS])
LIFE = np.array([kind[4] for kind in KINDS])
SIZE = np.array([1 + sum(kind[:4]) for kind in KINDS])
PLACE = np.array(
    [
        ([HEAD] + partner * [PARTNER] + child * [CHILD] + sharer * [SHARER] + elder * [ELDER])
        + (5 - partner - child - sharer - elder) * [HEAD]
        for partner, child, sharer, elder, _, _ in KINDS
    ]
)

# Age of the head by life stage, one row each for city, town and countryside: the percent
# of heads below an age.
ALONE = (18, 22, 28, 35, 45, 55, 65, 75, 85, 95, 100, 106)
COUPLE = (20, 23, 26, 30, 35, 45, 55, 65, 75, 85, 100)
PARENTS = (21, 26, 30, 35, 40, 45, 50, 55, 60, 68)
HEAD_AGE = np.stack(
    [
        ages(dict(zip(at, below, strict=True)))
        for at, below in (
            (ALONE, (0, 5, 20, 34, 45, 56, 69, 83, 95, 99.7, 99.97, 100)),
            (ALONE, (0, 2, 9, 17, 26, 38, 54, 73, 91, 99.6, 99.96, 100)),
            (ALONE, (0, 1, 6, 12, 20, 32, 49, 71, 91, 99.6, 99.96, 100)),
            # couples without children at home
            (COUPLE, (0, 2, 8, 20, 29, 36, 47, 67, 86, 98, 100)),
            (COUPLE, (0, 1, 5, 12, 17, 22, 35, 59, 83, 98, 100)),
            (COUPLE, (0, 1, 4, 8, 11, 15, 29, 56, 82, 98, 100)),
            # couples with children
            (PARENTS, (0, 2, 8, 24, 43, 61, 77, 89, 96, 100)),
            (PARENTS, (0, 3, 9, 24, 42, 60, 76, 88, 96, 100)),
            (PARENTS, (0, 3, 9, 23, 41, 59, 75, 88, 96, 100)),
            # lone parents
            *3 * (((19, 25, 30, 35, 40, 45, 50, 55, 65), (0, 5, 14, 29, 46, 64, 80, 91, 100)),),
            # sharers
            *3 * (((18, 20, 22, 25, 30, 40, 60), (0, 18, 40, 68, 88, 97, 100)),),
            # households with an old parent
            *3 * (((32, 40, 50, 60, 70), (0, 12, 45, 85, 100)),),
        )
    ]
)

WOMEN_ALONE = by_age({18: 0.5, 25: 0.44, 40: 0.38, 55: 0.47, 70: 0.64, 80: 0.72, 95: 0.82})
HEAD_IS_WOMAN = np.stack(
    [
        WOMEN_ALONE,
        *(by_age({0: share}) for share in (0.5, 0.5, 0.83, 0.5, 0.42)),
    ]
)
MARRIED = by_age({18: 0.03, 22: 0.15, 27: 0.42, 33: 0.66, 45: 0.8, 60: 0.9, 75: 0.97})
WIDOWED = np.stack(
    [
        by_age({30: 0, 45: 0.01, 55: 0.04, 65: 0.14, 75: 0.38, 85: 0.66, 95: 0.82}),
        by_age({30: 0, 45: 0.03, 55: 0.11, 65: 0.34, 75: 0.62, 85: 0.8, 95: 0.87}),
    ]
)
DIVORCED = by_age({21: 0, 25: 0.02, 35: 0.17, 45: 0.36, 55: 0.46, 65: 0.4, 75: 0.22, 95: 0.04})


# Thresholds of talent for primary, secondary and tertiary education.
SCHOOLING = np.stack(
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

BANDS = (0, 15, 30, 45, 60, 75)
AGE_BAND = np.searchsorted(BANDS, np.arange(106), side="right") - 1


def _health_weights():
    """Weigh the conditions, and none of them, by age band, sex and third of standing.

    A condition with women = w percent falls on men and women as 200 : 2 w over 100 + w, so
    its frequency among both together is the stated one.
    """
    rows = []
    for band in range(len(BANDS)):
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


HEALTH = chooser(_health_weights())


def _job_weights(*, first):
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


JOBS = chooser(_job_weights(first=False))
FIRST_JOBS = chooser(_job_weights(first=True))
FROM_AGE = np.array([o.from_age for o in OCCUPATIONS])
STYLE = np.array([o.style for o in OCCUPATIONS])

# The last entry is for people who do not work.
PAY = np.array([1000.0 * o.pay for o in OCCUPATIONS] + [0.0])
SPREAD = np.array([o.spread / 100 for o in OCCUPATIONS] + [0.0])

WORK_CONDITION = np.array([c.work / 100 for c in CONDITIONS] + [1.0])
PART_TIME_CONDITION = 0.3 * (1.0 - WORK_CONDITION)
WORK_EDUCATION = np.array([0.66, 0.86, 1.0, 1.06])
WORK_MOTHER = by_age({0: 0.55, 2: 0.72, 5: 0.84, 10: 0.94, 16: 1.0})
AT_WORK = by_age(
    {15: 0, 16: 0.1, 18: 0.32, 20: 0.52, 23: 0.74, 27: 0.9, 35: 0.95, 50: 0.95, 55: 0.9, 59: 0.8}
    | {62: 0.58, 64: 0.42, 66: 0.16, 70: 0.07, 75: 0.03, 80: 0.004, 84: 0}
)
PART_TIME = by_age({16: 0.6, 19: 0.4, 23: 0.15, 27: 0, 58: 0, 64: 0.15, 67: 0.45, 75: 0.6})

# Weekly hours with their frequency: part-time, then regular, long and very long.
HOURS_STYLES = (
    {6: 2, 8: 4, 10: 5, 12: 4, 15: 6, 16: 6, 18: 4, 20: 20, 22: 4, 24: 12, 25: 8, 28: 5, 30: 16}
    | {32: 8, 34: 2},
    {32: 2, 34: 2, 35: 14, 36: 6, 37: 16, 38: 18, 39: 10, 40: 60, 41: 3, 42: 8, 43: 2, 44: 2}
    | {45: 8, 46: 1, 48: 3, 50: 4, 55: 1, 60: 1},
    {35: 2, 36: 1, 37: 2, 38: 4, 39: 2, 40: 36, 41: 2, 42: 8, 43: 3, 44: 5, 45: 22, 46: 4}
    | {48: 12, 50: 22, 52: 4, 55: 10, 58: 1, 60: 7, 65: 2, 70: 1},
    {35: 1, 38: 1, 40: 16, 42: 3, 43: 1, 44: 3, 45: 10, 46: 2, 48: 8, 50: 20, 52: 3, 55: 14}
    | {58: 3, 60: 18, 65: 9, 70: 10, 75: 4, 80: 4},
)
HOURS = chooser([[style.get(h, 0) for h in range(81)] for style in HOURS_STYLES])

PAY_AGE = by_age({16: 0.5, 20: 0.66, 25: 0.82, 32: 0.96, 42: 1.08, 52: 1.14, 62: 1.1, 70: 0.8})
PAY_EDUCATION = np.array([0.88, 0.94, 1.0, 1.12])
PENSION_EDUCATION = np.array([1_500.0, 3_800.0, 8_000.0, 16_500.0])
UNSUPPORTED = by_age({16: 0.93, 18: 0.75, 24: 0.5, 30: 0.34, 50: 0.3, 60: 0.14, 65: 0.05})
OWNS = by_age({25: 0.01, 40: 0.06, 60: 0.14, 80: 0.17})


TABLES = {
    "given_names": np.array([*GIVEN_NAMES[0], *GIVEN_NAMES[1]]),
    "surnames": np.array(SURNAMES),
    "sex_levels": np.array(SEXES),
    "region_levels": np.array([district.name for district in DISTRICTS]),
    "education_levels": np.array(EDUCATIONS),
    "marital_levels": np.array(MARITAL),
    "occupation_levels": np.array([*(occupation.name for occupation in OCCUPATIONS), NOT_WORKING]),
    "condition_levels": np.array([*(condition.name for condition in CONDITIONS), NO_CONDITION]),
    "batch_levels": np.array(WAVES),
    "quantiles": QUANTILES,
    "powers": POWERS,
    "wave": WAVE,
    "surname": SURNAME,
    "given": GIVEN,
    "design": DESIGN,
    "response": RESPONSE,
    "wealth": WEALTH,
    "setting": SETTING,
    "district": DISTRICT,
    "kind": KIND,
    "children": CHILDREN,
    "life": LIFE,
    "size": SIZE,
    "place": PLACE,
    "head_age": HEAD_AGE,
    "head_is_woman": HEAD_IS_WOMAN,
    "married": MARRIED,
    "widowed": WIDOWED,
    "divorced": DIVORCED,
    "schooling": SCHOOLING,
    "age_band": AGE_BAND,
    "health": HEALTH,
    "jobs": JOBS,
    "first_jobs": FIRST_JOBS,
    "from_age": FROM_AGE,
    "style": STYLE,
    "pay": PAY,
    "spread": SPREAD,
    "work_condition": WORK_CONDITION,
    "part_time_condition": PART_TIME_CONDITION,
    "work_education": WORK_EDUCATION,
    "work_mother": WORK_MOTHER,
    "at_work": AT_WORK,
    "part_time": PART_TIME,
    "hours": HOURS,
    "pay_age": PAY_AGE,
    "pay_education": PAY_EDUCATION,
    "pension_education": PENSION_EDUCATION,
    "unsupported": UNSUPPORTED,
    "owns": OWNS,
}


def write(target):
    """Write the tables, people.parquet and the hierarchies; people.toml is written by hand."""
    np.savez_compressed(target / "tables.npz", **TABLES)
    sample.people(sample.ROWS, sample.SEED).write_parquet(
        target / "people.parquet", compression="zstd", compression_level=19, statistics=False
    )
    for column, rows in hierarchies().items():
        with (target / f"{column}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    write(sample.folder())

"""Draw households and their members: where they live, how old they are, who is married."""

from typing import Final, NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.sample.draws import OLDEST, ages, by_age, chooser, normal, pick
from shoal.sample.world import DISTRICTS, MARITAL

HEAD, PARTNER, CHILD, SHARER, ELDER = range(5)
"""A member's place in the household. An elder is the parent of the head or the partner."""


class Members(NamedTuple):
    """The members of some households, one entry per person, household by household.

    Attributes:
        household: index of the household within the draw.
        place: HEAD, PARTNER, CHILD, SHARER or ELDER.
        age: in whole years, 0 to 105.
        sex: 0 male, 1 female.
        marital: index into `world.MARITAL`.
        district: index into `world.DISTRICTS`.
        standing: how well off the household is, in standard deviations.
        youngest: age of the household's youngest child, 99 if there is none.
    """

    household: Ints
    place: Ints
    age: Ints
    sex: Ints
    marital: Ints
    district: Ints
    standing: Floats
    youngest: Ints


def draw(rng: np.random.Generator, count: int) -> Members:
    """Draw `count` households.

    The district decides which kinds of household are likely, the kind decides the head's
    age, and the other ages follow from it: partners are of near age, children are 19 to 44
    years younger than their younger parent, elders 20 to 35 years older than the head.
    """
    district = pick(_DISTRICT, 0, rng.random(count))
    setting = SETTING[district]
    kind = pick(_KIND, setting, rng.random(count))
    life = _LIFE[kind]
    head = pick(_HEAD_AGE, life * 3 + setting, rng.random(count))
    head_sex = (rng.random(count) < _HEAD_IS_WOMAN[life, head]).astype(np.int64)
    gap = np.rint((rng.random((3, count)).sum(axis=0) - 1.5) * 7).astype(np.int64)
    partner = np.clip(head + 4 * head_sex - 2 + gap, 18, OLDEST)
    has_partner = _PLACE[kind, 1] == PARTNER
    parent = np.where(has_partner, np.minimum(head, partner), head)
    married = rng.random(count) < _MARRIED[parent]
    standing = 0.1 * WEALTH[district] + 0.9 * normal(rng.random(count))

    size = _SIZE[kind]
    household = np.repeat(np.arange(count), size)
    start = np.cumsum(size) - size
    n = len(household)
    seat = np.arange(n) - start[household]
    kind, head, head_sex, parent = (x[household] for x in (kind, head, head_sex, parent))
    place = _PLACE[kind, seat]
    child = _child_age(parent, seat - 1 - has_partner[household], _CHILDREN[kind], rng.random(n))
    u = rng.random(n)
    age = np.choose(
        place,
        (
            head,
            partner[household],
            child,
            np.clip(head + np.rint(6 * u - 3).astype(np.int64), 18, OLDEST),
            head + 20 + (16 * u).astype(np.int64),
        ),
    )
    v = rng.random(n)
    sex = np.choose(
        place,
        (head_sex, np.where(v < 0.025, head_sex, 1 - head_sex), v < 0.488, v < 0.5, v < 0.76),
    )
    couple = (place == PARTNER) | ((place == HEAD) & has_partner[household])
    return Members(
        household=household,
        place=place,
        age=age,
        sex=sex,
        marital=np.where(
            couple,
            np.where(married[household], _MARRIED_CODE, _COHABITING_CODE),
            _alone(age, sex, place, kind, rng.random(n)),
        ),
        district=district[household],
        standing=standing[household],
        youngest=np.minimum.reduceat(np.where(place == CHILD, age, 99), start)[household],
    )


def _child_age(parent: Ints, rank: Ints, children: Ints, u: Floats) -> Ints:
    """Spread the children of a parent over their possible ages at home, 0 to 27."""
    low = np.maximum(0, parent - 44)
    high = np.maximum(low, np.minimum(27, parent - 19))
    # Each child has a separate part of [0, 1), so siblings are seldom twins.
    stretch = np.clip((rank + u) / np.maximum(children, 1), 0.0, 0.999999)
    leaning = stretch * (0.78 + 0.22 * stretch)  # grown-up children have often moved out
    age: Ints = (low + leaning * (high - low + 1)).astype(np.int64)
    return age


def _alone(age: Ints, sex: Ints, place: Ints, kind: Ints, u: Floats) -> Ints:
    """Draw the marital status of people without a partner in the household."""
    widowed = _WIDOWED[sex, age]
    divorced = _DIVORCED[age]
    lone_parent = (place == HEAD) & (_CHILDREN[kind] > 0)
    divorced = np.where(lone_parent, np.minimum(1.5 * divorced, 1.0 - widowed), divorced)
    widowed = np.where(place == ELDER, 0.5 + 0.5 * widowed, widowed)
    status = np.where(u < widowed + divorced, MARITAL.index("divorced"), MARITAL.index("single"))
    status = np.where(u < widowed, MARITAL.index("widowed"), status)
    return np.where(place == CHILD, MARITAL.index("single"), status)


WEALTH: Final = np.array([district.wealth for district in DISTRICTS])
SETTING: Final = np.array([district.setting for district in DISTRICTS])

_DISTRICT: Final = chooser([[district.thousands for district in DISTRICTS]])
_MARRIED_CODE: Final = MARITAL.index("married")
_COHABITING_CODE: Final = MARITAL.index("cohabiting")

# Kinds of household: partner, children, sharers, elders, life stage, and their frequency in city,
# town and countryside.
_KINDS: Final = (
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
_KIND: Final = chooser(np.array([kind[5] for kind in _KINDS]).T)
_CHILDREN: Final = np.array([kind[1] for kind in _KINDS])
_LIFE: Final = np.array([kind[4] for kind in _KINDS])
_SIZE: Final = np.array([1 + sum(kind[:4]) for kind in _KINDS])
_PLACE: Final = np.array(
    [
        ([HEAD] + partner * [PARTNER] + child * [CHILD] + sharer * [SHARER] + elder * [ELDER])
        + (5 - partner - child - sharer - elder) * [HEAD]
        for partner, child, sharer, elder, _, _ in _KINDS
    ]
)

# Age of the head by life stage, one row each for city, town and countryside: the percent
# of heads below an age.
_ALONE: Final = (18, 22, 28, 35, 45, 55, 65, 75, 85, 95, 100, 106)
_COUPLE: Final = (20, 23, 26, 30, 35, 45, 55, 65, 75, 85, 100)
_PARENTS: Final = (21, 26, 30, 35, 40, 45, 50, 55, 60, 68)
_HEAD_AGE: Final = np.stack(
    [
        ages(dict(zip(at, below, strict=True)))
        for at, below in (
            (_ALONE, (0, 5, 20, 34, 45, 56, 69, 83, 95, 99.7, 99.97, 100)),
            (_ALONE, (0, 2, 9, 17, 26, 38, 54, 73, 91, 99.6, 99.96, 100)),
            (_ALONE, (0, 1, 6, 12, 20, 32, 49, 71, 91, 99.6, 99.96, 100)),
            # couples without children at home
            (_COUPLE, (0, 2, 8, 20, 29, 36, 47, 67, 86, 98, 100)),
            (_COUPLE, (0, 1, 5, 12, 17, 22, 35, 59, 83, 98, 100)),
            (_COUPLE, (0, 1, 4, 8, 11, 15, 29, 56, 82, 98, 100)),
            # couples with children
            (_PARENTS, (0, 2, 8, 24, 43, 61, 77, 89, 96, 100)),
            (_PARENTS, (0, 3, 9, 24, 42, 60, 76, 88, 96, 100)),
            (_PARENTS, (0, 3, 9, 23, 41, 59, 75, 88, 96, 100)),
            # lone parents
            *3 * (((19, 25, 30, 35, 40, 45, 50, 55, 65), (0, 5, 14, 29, 46, 64, 80, 91, 100)),),
            # sharers
            *3 * (((18, 20, 22, 25, 30, 40, 60), (0, 18, 40, 68, 88, 97, 100)),),
            # households with an old parent
            *3 * (((32, 40, 50, 60, 70), (0, 12, 45, 85, 100)),),
        )
    ]
)

_WOMEN_ALONE: Final = by_age({18: 0.5, 25: 0.44, 40: 0.38, 55: 0.47, 70: 0.64, 80: 0.72, 95: 0.82})
_HEAD_IS_WOMAN: Final = np.stack(
    [
        _WOMEN_ALONE,
        *(by_age({0: share}) for share in (0.5, 0.5, 0.83, 0.5, 0.42)),
    ]
)
_MARRIED: Final = by_age({18: 0.03, 22: 0.15, 27: 0.42, 33: 0.66, 45: 0.8, 60: 0.9, 75: 0.97})
_WIDOWED: Final = np.stack(
    [
        by_age({30: 0, 45: 0.01, 55: 0.04, 65: 0.14, 75: 0.38, 85: 0.66, 95: 0.82}),
        by_age({30: 0, 45: 0.03, 55: 0.11, 65: 0.34, 75: 0.62, 85: 0.8, 95: 0.87}),
    ]
)
_DIVORCED: Final = by_age(
    {21: 0, 25: 0.02, 35: 0.17, 45: 0.36, 55: 0.46, 65: 0.4, 75: 0.22, 95: 0.04}
)

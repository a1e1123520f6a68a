"""Draw households and their members: where they live, how old they are, who is married."""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.sample.draws import OLDEST, TABLES, normal, pick

HEAD, PARTNER, CHILD, SHARER, ELDER = range(5)
"""A member's place in the household. An elder is the parent of the head or the partner."""
SINGLE, COHABITING, MARRIED, DIVORCED, WIDOWED = range(5)


class Members(NamedTuple):
    """The members of some households, one entry per person, household by household.

    Attributes:
        household: index of the household within the draw.
        place: HEAD, PARTNER, CHILD, SHARER or ELDER.
        age: in whole years, 0 to 105.
        sex: 0 male, 1 female.
        marital: SINGLE, COHABITING, MARRIED, DIVORCED or WIDOWED.
        district: index into the districts.
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
    district = pick(TABLES["district"], 0, rng.random(count))
    setting = TABLES["setting"][district]
    kind = pick(TABLES["kind"], setting, rng.random(count))
    life = TABLES["life"][kind]
    head = pick(TABLES["head_age"], life * 3 + setting, rng.random(count))
    head_sex = (rng.random(count) < TABLES["head_is_woman"][life, head]).astype(np.int64)
    gap = np.rint((rng.random((3, count)).sum(axis=0) - 1.5) * 7).astype(np.int64)
    partner = np.clip(head + 4 * head_sex - 2 + gap, 18, OLDEST)
    has_partner = TABLES["place"][kind, 1] == PARTNER
    parent = np.where(has_partner, np.minimum(head, partner), head)
    married = rng.random(count) < TABLES["married"][parent]
    standing = 0.1 * TABLES["wealth"][district] + 0.9 * normal(rng.random(count))

    size = TABLES["size"][kind]
    household = np.repeat(np.arange(count), size)
    start = np.cumsum(size) - size
    n = len(household)
    seat = np.arange(n) - start[household]
    kind, head, head_sex, parent = (x[household] for x in (kind, head, head_sex, parent))
    place = TABLES["place"][kind, seat]
    child = _child_age(
        parent, seat - 1 - has_partner[household], TABLES["children"][kind], rng.random(n)
    )
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
            np.where(married[household], MARRIED, COHABITING),
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
    widowed = TABLES["widowed"][sex, age]
    divorced = TABLES["divorced"][age]
    lone_parent = (place == HEAD) & (TABLES["children"][kind] > 0)
    divorced = np.where(lone_parent, np.minimum(1.5 * divorced, 1.0 - widowed), divorced)
    widowed = np.where(place == ELDER, 0.5 + 0.5 * widowed, widowed)
    status = np.where(u < widowed + divorced, DIVORCED, SINGLE)
    status = np.where(u < widowed, WIDOWED, status)
    return np.where(place == CHILD, SINGLE, status)

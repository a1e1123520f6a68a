"""Membership: can somebody tell who is in the table, and of whom is it surest?

An attacker has a record of each person, the release, and records of other people of the same
population as a reference. Each attack gives a person a score, the larger the likelier a member:

    distance    ln of the distance to the closest record of the reference over that to the closest
                released one: infinite, but for rounding, where somebody was copied
    density     the same of the fifth closest, about the log-ratio of the two densities
    likelihood  ln odds that the record is a released one and not one of the reference, by boosted
                trees that learnt from both

Scores of members are compared with those of people who are neither in the table nor in the
reference. The area is the probability that a member's score exceeds a non-member's, ties counting a
half; its interval is DeLong's. The true-positive rate is the share of members whose score is beyond
a threshold that 1% of the non-members reach; its interval covers the threshold and the share, each
at half of the error. All intervals are conditional on this one release: another draw of the same
mechanism has other figures, so none refutes or supports a claim.

The members that are recognised. The p-value of a member is the share of non-members, itself
counted with them, whose score is as large. Among all members, those are named that Benjamini and
Hochberg's rule selects at 5% of wrong names; a person is not selected for a large score alone, but
for one that people outside the table hardly have. Non-members serve for all p-values, which then
depend on each other as that rule allows (Bates et al.). The three attacks share the 5%.

References:
    van Breugel, Sun, Qian, van der Schaar, "Membership inference attacks against synthetic data
    through overfitting detection", AISTATS 2023: densities beside a reference. arXiv:2302.12580
    DeLong, DeLong, Clarke-Pearson, Biometrics 44 (1988). doi:10.2307/2531595
    Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022: rates at
    few false positives. arXiv:2112.03570
    Benjamini, Hochberg, JRSS B 57 (1995). doi:10.1111/j.2517-6161.1995.tb02031.x
    Bates, Candes, Lei, Romano, Sesia, "Testing for outliers with conformal p-values", Annals of
    Statistics 51 (2023). doi:10.1214/22-AOS2244
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import Estimate
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.metrics import _sklearn
from shoal.metrics.attacks.record_linkage import nearest
from shoal.metrics.intervals import least, most

FALSE_POSITIVES = 0.01
WRONG_NAMES = 0.05
"""The expected share of non-members among the people that are named."""
NEIGHBOURS = 5
_FEWEST = 20  # and so k are found
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Membership:
    """The result of one attack.

    Attributes:
        area: probability that a member's score exceeds a non-member's.
        rate: the true-positive rate at 1% of false positives.
        recognised: which members are named, by their places, the surest first.
    """

    area: Estimate
    rate: Estimate
    recognised: Ints


def membership(
    released: Floats,
    members: Floats,
    reference: Floats,
    others: Floats,
    *,
    discrete: ArrayLike,
    confidence: float = 0.95,
) -> dict[str, Membership]:
    """Attack membership three ways.

    Args:
        released: the release, in a space of finite numbers, codes where `discrete`.
        members: people in the table.
        reference: people not in it, whom the attacker knows.
        others: further people not in it, drawn from the same population.
        discrete: which columns are codes.
        confidence: of all intervals.

    Cost: O((members + others) log rows) distances by a tree, and two models.
    """
    if min(map(len, (released, members, reference, others))) < _FEWEST:
        raise InputError(
            f"membership needs at least {_FEWEST} released rows, people in the table, and twice as "
            "many people not in it."
        )
    scores = _score(released, reference, (members, others), np.asarray(discrete, dtype=bool))
    share = WRONG_NAMES / len(scores)
    return {
        name: Membership(
            area_between(inside, outside, confidence),
            rate_beyond(inside, outside, confidence),
            name_members(inside, outside, share),
        )
        for name, (inside, outside) in scores.items()
    }


def _score(
    released: Floats, reference: Floats, people: tuple[Floats, Floats], kinds: Floats
) -> Mapping[str, tuple[Floats, Floats]]:
    """Return the scores of members and of others, by attack."""
    sides = (released, reference)
    apart = [[_distances(side, rows, kinds) for side in sides] for rows in people]
    X = np.concatenate(sides)
    of_release = np.repeat([1.0, 0.0], [len(side) for side in sides])
    # Both sorts of rows count the same in all, so that odds of 1 say nothing.
    weights = np.repeat([1 / len(side) for side in sides], [len(side) for side in sides])
    model = _sklearn.boost(
        X, of_release, categorical=kinds, classify=True, weights=weights * len(X) / 2
    )
    nearer = [np.log(known + _TINY) - np.log(near + _TINY) for near, known in apart]
    scores = {
        "distance": [rows[:, 0] for rows in nearer],
        "density": [rows[:, -1] for rows in nearer],
        "likelihood": [scipy.special.logit(model.chances(rows)[:, -1]) for rows in people],
    }
    return {name: (inside, outside) for name, (inside, outside) in scores.items()}


def _distances(rows: Floats, people: Floats, kinds: Floats) -> Floats:
    """Return the distances of each person to the closest rows, ascending."""
    return nearest(rows, people, discrete=kinds, k=NEIGHBOURS)[1]


def area_between(inside: Floats, outside: Floats, confidence: float) -> Estimate:
    """Estimate the probability that a score inside exceeds one outside.

    >>> print(area_between(np.array([2.0, 3.0, 4.0]), np.array([1.0, 3.0]), 0.95))
    0.750 [0.184, 1.000]
    """
    ranked, low = np.sort(outside), len(outside)
    over = (np.searchsorted(ranked, inside, "left") + np.searchsorted(ranked, inside, "right")) / 2
    ordered, high = np.sort(inside), len(inside)
    under = high - (
        np.searchsorted(ordered, outside, "left") + np.searchsorted(ordered, outside, "right")
    ) / 2  # fmt: skip
    area = float(over.mean()) / low
    variance = (over / low).var(ddof=1) / high + (under / high).var(ddof=1) / low
    half = float(scipy.special.ndtri((1 + confidence) / 2)) * float(np.sqrt(variance))
    return Estimate(area, max(area - half, 0.0), min(area + half, 1.0), confidence)


def rate_beyond(inside: Floats, outside: Floats, confidence: float) -> Estimate:
    """Estimate the share of scores inside beyond what 1% of those outside reach."""
    ordered = np.sort(outside)[::-1]
    reached = np.arange(len(ordered) + 1)
    error = (1 - confidence) / 4
    # The most scores outside that may lie beyond: surely, as it seems, and perhaps.
    surely = int(np.sum(most(reached, len(ordered), error) <= FALSE_POSITIVES)) - 1
    about = int(FALSE_POSITIVES * len(ordered))
    perhaps = int(np.sum(least(reached, len(ordered), error) <= FALSE_POSITIVES)) - 1
    beyond = [0 if count < 0 else _count_beyond(inside, ordered, count)
              for count in (surely, about, perhaps)]  # fmt: skip
    low, high = least(beyond[0], len(inside), error), most(beyond[2], len(inside), error)
    value = beyond[1] / len(inside)
    return Estimate(value, min(float(low), value), max(float(high), value), confidence)


def _count_beyond(inside: Floats, ordered: Floats, count: int) -> int:
    """Count scores beyond a threshold that so many of the ordered ones exceed at most."""
    threshold = ordered[count] if count < len(ordered) else -np.inf
    return int((inside > threshold).sum())


def name_members(inside: Floats, outside: Floats, wrong: float) -> Ints:
    """Name the members whose scores people outside hardly have, the surest first."""
    ranked = np.sort(outside)
    as_large = len(outside) - np.searchsorted(ranked, inside, "left")
    p = (1 + as_large) / (1 + len(outside))
    order = np.argsort(p, kind="stable")
    passed = np.flatnonzero(p[order] <= wrong * np.arange(1, len(p) + 1) / len(p))
    return np.asarray(order[: passed[-1] + 1] if passed.size else order[:0], dtype=np.int64)

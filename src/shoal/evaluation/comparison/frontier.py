"""Risk against utility: intervals over repeats, the frontier, ties, and the recommendation.

Pure functions over estimates. Lower is better on both axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, hypot, log, sqrt

import numpy as np
import scipy

from shoal.core import Estimate

CONFIDENCE = 0.95
LOOKS = 2
"""Times that a candidate is judged: after the stated repeats, and after more of them."""
EACH_LOOK = 1 - (1 - CONFIDENCE) / LOOKS
"""Confidence of an interval at one look, so it holds at all looks together."""


class Standing(StrEnum):
    """The standing of a candidate.

    `frontier`: no other is better on one axis and as good on the other. `tied`: another is, and
    within noise. `beaten`: another is, and clearly so on one axis. `does not meet the policy`: it
    is shown, and compared with nobody.
    """

    FRONTIER = "frontier"
    TIED = "tied"
    BEATEN = "beaten"
    UNMET = "does not meet the policy"


@dataclass(frozen=True)
class Point:
    """A candidate's position on the two axes.

    Attributes:
        risk: the attackers' gain from the release.
        error: the error of counts.
    """

    risk: Estimate
    error: Estimate

    @property
    def distance(self) -> float:
        """Distance to the origin, by which cormode2013 judges; a risk below 0 counts as 0."""
        return hypot(max(self.risk.value, 0.0), self.error.value)


def combine(repeats: Sequence[Estimate], confidence: float = CONFIDENCE) -> Estimate:
    """The mean of repeated estimates, with an interval for people sampled and noise drawn.

    With R repeats, w the mean of their own variances (half-length over normal quantile, squared),
    s^2 the variance between them, and b = max(s^2 - w, 0) what their own variances do not explain,

        half = t sqrt((w + b) / R)    with (R - 1) (w + b)^2 / b^2 degrees of freedom,

    by Welch and Satterthwaite: w is known and b is estimated from R repeats. Ends are taken
    separately below and above. Repeats are taken as independent, though they share a table. One
    repeat has no b, and its interval does not cover the noise.

    References:
        Welch, "The generalization of Student's problem when several different population
        variances are involved", Biometrika 34 (1947). doi:10.1093/biomet/34.1-2.28

    >>> print(combine([Estimate(0.2, 0.1, 0.3, 0.95)] * 4))
    0.200 [0.150, 0.250]
    """
    values = np.array([repeat.value for repeat in repeats])
    mean = float(values.mean())
    between = float(values.var(ddof=1)) if len(values) > 1 else 0.0
    below, above = (
        _half([getattr(r, end) - r.value for r in repeats], repeats, between, confidence)
        for end in ("low", "high")
    )
    return Estimate(mean, mean - below, mean + above, confidence)


def _half(
    ends: Sequence[float], repeats: Sequence[Estimate], between: float, confidence: float
) -> float:
    """Compute the length of one side of the interval of a mean."""
    count, level = len(repeats), (1 + confidence) / 2
    quantiles = np.array([scipy.special.ndtri((1 + repeat.confidence) / 2) for repeat in repeats])
    within = float(np.mean((np.array(ends) / quantiles) ** 2))
    extra = max(between - within, 0.0)
    if extra == 0:
        return float(scipy.special.ndtri(level) * sqrt(within / count))
    freedom = (count - 1) * ((within + extra) / extra) ** 2
    return float(scipy.special.stdtrit(freedom, level) * sqrt((within + extra) / count))


def worst(
    attacks: Mapping[str, Sequence[Estimate]], confidence: float = CONFIDENCE
) -> tuple[str, Estimate]:
    """Find the attack with the largest mean gain over repeats, with an interval for the maximum.

    Each of m attacks gets an interval of confidence 1 - (1 - confidence) / m, so all hold
    together. Then the largest true gain lies between the largest lower and the largest upper end.

    `attacks` has the gains of each attack, one per repeat. Of equal attacks the first is returned.
    """
    each = 1 - (1 - confidence) / len(attacks)
    estimates = {name: combine(gains, each) for name, gains in attacks.items()}
    name = max(estimates, key=lambda one: estimates[one].value)
    low, high = (max(getattr(e, end) for e in estimates.values()) for end in ("low", "high"))
    return name, Estimate(estimates[name].value, low, high, confidence)


def standings(points: Sequence[Point]) -> list[Standing]:
    """Determine the standing of each point among all.

    a dominates b if it is no worse on both axes and better on one, by the point estimates. It
    beats b if moreover their intervals are apart on an axis. Point dominance is a strict order, so
    some point is always on the frontier, and no points beat one another in a circle.
    """
    return [_standing(point, points) for point in points]


def _standing(point: Point, points: Sequence[Point]) -> Standing:
    above = [other for other in points if _dominates(other, point)]
    if not above:
        return Standing.FRONTIER
    clear = any(
        other.risk.high < point.risk.low or other.error.high < point.error.low for other in above
    )
    return Standing.BEATEN if clear else Standing.TIED


def _dominates(one: Point, other: Point) -> bool:
    no_worse = one.risk.value <= other.risk.value and one.error.value <= other.error.value
    better = one.risk.value < other.risk.value or one.error.value < other.error.value
    return no_worse and better


@dataclass(frozen=True)
class Recommendation:
    """The result of a recommendation rule.

    Attributes:
        index: of the point; None if no point may be recommended, or several are indistinguishable.
        best: the point with the least error among those within the limit.
        ties: the recommended point; or, if there is none, the indistinguishable ones.
        within: how many stay within the limit of the risk, by the upper ends of their intervals.
        unsure: points that may be recommended, whose risk is within the limit by its estimate and
            not by its upper end, and whose error may be the least.
        close: points as useful as the best within noise, the best included.
    """

    index: int | None
    best: int | None
    ties: tuple[int, ...]
    within: int
    unsure: tuple[int, ...] = ()
    close: tuple[int, ...] = ()

    def among(self, places: Sequence[int]) -> "Recommendation":
        """Renumber the points by their positions in a longer list."""

        def many(points: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places[point] for point in points)

        index, best = (None if p is None else places[p] for p in (self.index, self.best))
        return replace(self, index=index, best=best, ties=many(self.ties),
                       unsure=many(self.unsure), close=many(self.close))  # fmt: skip

    @property
    def open(self) -> tuple[int, ...]:
        """The points on which more repeats may be decisive."""
        undecided = self.ties if self.index is None else ()
        return tuple(sorted({*undecided, *self.unsure}))


def choose(points: Sequence[Point], eligible: Sequence[bool], max_risk: float) -> Recommendation:
    """Recommend the point that is clearly best within the limit, or none.

    Within the limit is an eligible point whose risk has its upper end at or below `max_risk`. Of
    those, the one with the least error is the best, and close to it are those whose error's
    interval reaches down to the upper end of its. Close ones whose risk is clearly greater than
    another's, its interval lying above the other's, are left out. If one is left, and no eligible
    point dominates it by the estimates, it is recommended. Otherwise those that are left, or the
    one and those that dominate it, cannot be told apart, and none is recommended: whatever
    would choose among them is noise.
    """
    able = [place for place, may in enumerate(eligible) if may]
    within = [place for place in able if points[place].risk.high <= max_risk]
    doubtful = [place for place in able if points[place].risk.value <= max_risk
                and place not in within]  # fmt: skip
    if not within:
        return Recommendation(None, None, (), 0, tuple(doubtful))

    def by_error(place: int) -> tuple[float, float, int]:
        return points[place].error.value, points[place].risk.value, place

    best = min(within, key=by_error)
    reach = points[best].error.high
    unsure = tuple(place for place in doubtful if points[place].error.low <= reach)
    close = tuple(place for place in within if points[place].error.low <= reach)
    left = [
        place
        for place in close
        if not any(points[other].risk.high < points[place].risk.low for other in close)
    ]
    if len(left) == 1:
        better = [place for place in able if _dominates(points[place], points[left[0]])]
        left += better
    index = left[0] if len(left) == 1 else None
    return Recommendation(index, best, tuple(sorted(left)), len(within), unsure, close)


def like_a_sample(error: float, samples: Mapping[float, float]) -> str:
    """Say which random sample of the table would have the same error.

    Errors of samples fall with the size about as a power, so sizes between those measured
    are read off a line through their logarithms.

    >>> like_a_sample(0.1, {0.01: 0.2, 0.25: 0.05})
    'about as good as a 5% sample'
    """
    known = sorted((share, wrong) for share, wrong in samples.items() if wrong > 0)
    if not known:
        return "no sample to compare with"
    # A larger sample never counts as worse, whatever the noise.
    shares = [share for share, _ in known]
    errors = list(np.minimum.accumulate([wrong for _, wrong in known]))
    if error > errors[0]:
        return f"worse than a {_percent(shares[0])} sample"
    if error < errors[-1]:
        return f"better than a {_percent(shares[-1])} sample"
    share = exp(np.interp(-log(error), [-log(wrong) for wrong in errors], [log(s) for s in shares]))
    return f"about as good as a {_percent(share)} sample"


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.1g}'):g}%"

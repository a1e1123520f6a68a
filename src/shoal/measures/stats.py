"""Intervals for shares of independent trials, and for means of repeats."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

from shoal.core import Estimate
from shoal.errors import InputError


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Success rate of a Bernoulli experiment with its exact two-sided interval.

    The interval holds with at least the stated confidence for every true rate and any
    number of trials, which no approximation does. Each end is a one-sided bound at
    (1 - confidence) / 2; see `least` and `most`.

    References:
        Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case
        of the binomial", Biometrika 26 (1934). doi:10.1093/biomet/26.4.404

    >>> print(clopper_pearson(0, 100))
    0.000 [0.000, 0.036]
    """
    _check(successes, trials, confidence)
    alpha = (1 - confidence) / 2
    low, high = least(successes, trials, alpha), most(successes, trials, alpha)
    return Estimate(successes / trials, float(low), float(high), confidence)


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Success rate of a Bernoulli experiment with its Wilson score interval.

    With z the standard normal quantile at (1 + confidence) / 2,

        centre = (s + z^2/2) / (t + z^2)
        half   = z / (t + z^2) * sqrt(s (t - s) / t + z^2 / 4)

    The point estimate is s/t, not the centre, so that tables add up. Shorter than
    `clopper_pearson`, and right on average only.

    References:
        Wilson, "Probable inference, the law of succession, and statistical inference",
        JASA 22 (1927). doi:10.1080/01621459.1927.10502953

    >>> print(wilson(85, 100))
    0.850 [0.767, 0.907]
    """
    _check(successes, trials, confidence)
    s, t, z = successes, trials, float(ndtri((1 + confidence) / 2))
    centre = (s + z * z / 2) / (t + z * z)
    half = z / (t + z * z) * sqrt(s * (t - s) / t + z * z / 4)
    share = s / t
    # At s = 0 and s = t an end is 0 or 1 but for rounding.
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Estimate(share, min(low, share), max(high, share), confidence)


def least(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds for success rates, each wrong with probability at most alpha.

    The bound is the rate p at which s or more successes in t trials have probability alpha:
    the alpha-quantile of Beta(s, t - s + 1), and 0 where s = 0.

    >>> least([0, 50, 100], 100, 0.025).round(3)
    array([0.   , 0.398, 0.964])
    """
    s = np.asarray(successes, dtype=np.float64)
    bound = betaincinv(np.maximum(s, 1), trials - s + 1, alpha)
    return np.where(s > 0, bound, 0.0).astype(np.float64)


def most(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Upper confidence bounds for success rates, each wrong with probability at most alpha.

    The (1 - alpha)-quantile of Beta(s + 1, t - s), and 1 where s = t.

    >>> most([0, 50, 100], 100, 0.025).round(3)
    array([0.036, 0.602, 1.   ])
    """
    s = np.asarray(successes, dtype=np.float64)
    bound = betainccinv(s + 1, np.maximum(trials - s, 1), alpha)
    return np.where(s < trials, bound, 1.0).astype(np.float64)


def student(repeats: ArrayLike, confidence: float = 0.95, *, at_least: float = -np.inf) -> Estimate:
    """Mean of independent repeats with Student's interval.

        mean +- t s / sqrt(r),  t the quantile of Student's t with r - 1 degrees of freedom

    It holds for repeats that are about normal. The lower end is not put below `at_least`, the
    least value that the figure can have. An infinite repeat makes all three infinite.

    References:
        Student, "The probable error of a mean", Biometrika 6 (1908). doi:10.2307/2331554

    >>> print(student([1.0, 2.0, 3.0]))
    2.000 [-0.484, 4.484]
    """
    values = np.asarray(repeats, dtype=np.float64)
    r = len(values)
    if r < 2 or not 0 < confidence < 1:
        raise InputError(f"Expected two repeats and a confidence in (0, 1); got {r}, {confidence}.")
    if np.isinf(values).any():
        return Estimate(float("inf"), float("inf"), float("inf"), confidence)
    mean = float(values.mean())
    half = float(stdtrit(r - 1, (1 + confidence) / 2) * values.std(ddof=1) / sqrt(r))
    return Estimate(mean, min(mean, max(mean - half, at_least)), mean + half, confidence)


def _check(successes: int, trials: int, confidence: float) -> None:
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"Expected 0 to {trials} successes in at least 1 trial; got {successes}.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1; got {confidence}.")

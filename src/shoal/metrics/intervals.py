"""Confidence intervals for shares of independent trials, and for means of repeats."""

from math import inf, log, sqrt

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core import Estimate
from shoal.errors import InputError


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Estimate a success rate with the exact two-sided Clopper-Pearson interval.

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


def wilson(successes: float, trials: int, confidence: float = 0.95) -> Estimate:
    """Estimate a success rate with the Wilson score interval.

    With z the standard normal quantile at (1 + confidence) / 2,

        centre = (s + z^2/2) / (t + z^2)
        half   = z / (t + z^2) * sqrt(s (t - s) / t + z^2 / 4)

    The point estimate is s/t, not the centre, so tables add up. Shorter than
    `clopper_pearson`, and right on average only. A trial may score a fraction of a success, as
    where ties share one: the interval is then too long, since a score between 0 and 1 varies less
    than a toss with the same mean.

    References:
        Wilson, "Probable inference, the law of succession, and statistical inference",
        JASA 22 (1927). doi:10.1080/01621459.1927.10502953

    >>> print(wilson(85, 100))
    0.850 [0.767, 0.907]
    """
    _check(successes, trials, confidence)
    centre, half = _score(successes, trials, float(scipy.special.ndtri((1 + confidence) / 2)))
    share = successes / trials
    # At s = 0 and s = t an end is 0 or 1 but for rounding.
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Estimate(share, min(low, share), max(high, share), confidence)


def least(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Compute lower confidence bounds for success rates, each wrong with probability at most alpha.

    The bound is the rate p at which s or more successes in t trials have probability alpha:
    the alpha-quantile of Beta(s, t - s + 1), and 0 where s = 0.

    >>> least([0, 50, 100], 100, 0.025).round(3)
    array([0.   , 0.398, 0.964])
    """
    s = np.asarray(successes, dtype=np.float64)
    bound = scipy.special.betaincinv(np.maximum(s, 1), trials - s + 1, alpha)
    return np.where(s > 0, bound, 0.0).astype(np.float64)


def most(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Compute upper confidence bounds for success rates, each wrong with probability at most alpha.

    The (1 - alpha)-quantile of Beta(s + 1, t - s), and 1 where s = t.

    >>> most([0, 50, 100], 100, 0.025).round(3)
    array([0.036, 0.602, 1.   ])
    """
    s = np.asarray(successes, dtype=np.float64)
    bound = scipy.special.betainccinv(s + 1, np.maximum(trials - s, 1), alpha)
    return np.where(s < trials, bound, 1.0).astype(np.float64)


def least_ever(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Compute lower bounds for success rates that hold after every number of trials together.

    However often one looks, and whenever one stops, some bound of the sequence is above the rate
    with probability at most alpha. Proof: with s successes and f failures so far,

        M(p) = B(s + 1/2, f + 1/2) / (B(1/2, 1/2) p^s (1 - p)^f)

    is the likelihood of a rate drawn from Beta(1/2, 1/2) over that of p. At the true p it is a
    martingale that starts at 1 and is never negative, so it reaches 1 / alpha at any time with
    probability at most alpha (Ville). The bound is the least p for which it has not; with
    `most_ever` it is an interval, which holds at all times with probability 1 - alpha.

    References:
        Ville, "Etude critique de la notion de collectif", 1939.
        Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of
        Mathematical Statistics 41 (1970). doi:10.1214/aoms/1177696786

    >>> least_ever([0, 50, 100], 100, 0.025).round(3)
    array([0.   , 0.329, 0.936])
    """
    s = np.asarray(successes, dtype=np.float64)
    low, high = np.zeros(s.shape), s / trials
    reach = _log_mixture(s, trials) - log(1 / alpha)
    for _ in range(_HALVINGS):
        # The ends keep on both sides of the bound, so what is returned is never above it.
        middle = (low + high) / 2
        outside = reach > scipy.special.xlogy(s, middle) + scipy.special.xlog1py(
            trials - s, -middle
        )
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return np.asarray(np.where(s > 0, low, 0.0), dtype=np.float64)


def most_ever(successes: ArrayLike, trials: int, alpha: float) -> NDArray[np.float64]:
    """Compute upper bounds for success rates that hold after every number of trials together.

    >>> most_ever([0, 50, 100], 100, 0.025).round(3)
    array([0.064, 0.671, 1.   ])
    """
    return np.asarray(1 - least_ever(trials - np.asarray(successes), trials, alpha))


def student(repeats: ArrayLike, confidence: float = 0.95, *, at_least: float = -np.inf) -> Estimate:
    """Estimate the mean of independent repeats with Student's interval.

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
        raise InputError(
            f"Expected at least two repeats and a confidence between 0 and 1; got {r}, "
            f"{confidence}."
        )
    if np.isinf(values).any():
        return Estimate(float("inf"), float("inf"), float("inf"), confidence)
    mean = float(values.mean())
    half = float(scipy.special.stdtrit(r - 1, (1 + confidence) / 2) * values.std(ddof=1) / sqrt(r))
    return Estimate(mean, min(mean, max(mean - half, at_least)), mean + half, confidence)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Estimate the difference of two shares measured on different people.

    With p, [l, u] the Wilson estimates of the two,

        low  = p1 - p2 - sqrt((p1 - l1)^2 + (u2 - p2)^2)
        high = p1 - p2 + sqrt((u1 - p1)^2 + (p2 - l2)^2)

    References:
        Newcombe, "Interval estimation for the difference between independent proportions",
        Statistics in Medicine 17 (1998), method 10.
        doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I

    >>> print(difference(wilson(56, 70), wilson(48, 80)))
    0.200 [0.052, 0.334]
    """
    gap = first.value - second.value
    low = gap - sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    high = gap + sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return Estimate(gap, low, high, first.confidence)


def residual(
    main: float, trials: int, control: float, control_trials: int, confidence: float = 0.95
) -> Estimate:
    """Estimate an attack's gain as a share of what could be gained over the control.

        R = (main - control) / (1 - control)

    with both rates at the centres of their Wilson intervals, and the half-lengths e propagated:

        e_R^2 = (e_main / (1 - control))^2 + (e_control (1 - main) / (1 - control)^2)^2

    Value and ends are cut to [0, 1]. This is anonymeter's formula; where the control attack
    nearly always succeeds nothing is left to gain, and the interval is close to [0, 1].

    References:
        Giomi, Boenisch, Wehmeyer and Tasnádi, "A unified framework for quantifying privacy risk
        in synthetic data", PoPETs 2023(2). doi:10.56553/popets-2023-0055

    >>> print(residual(300, 500, 100, 500))
    0.498 [0.440, 0.556]
    """
    _check(main, trials, confidence)
    _check(control, control_trials, confidence)
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    hit, hit_error = _score(main, trials, z)
    known, known_error = _score(control, control_trials, z)
    left = 1 - known
    error = sqrt((hit_error / left) ** 2 + (known_error * (1 - hit) / left**2) ** 2)
    value = (hit - known) / left
    value, low, high = (min(max(x, 0.0), 1.0) for x in (value, value - error, value + error))
    return Estimate(value, low, high, confidence)


def paired_ratio(
    both: int, first_only: int, second_only: int, confidence: float = 0.95
) -> Estimate:
    """Estimate the ratio of two success rates measured on the same people.

    With s1, s2 the successes of each and m the people on whom at least one succeeded, it is
    s1 / s2, between l1 / u2 and u1 / l2 of Wilson intervals of s1 / m and s2 / m whose z is
    narrowed by

        sqrt((first_only + second_only + 2) / ((s1 + 1)(s2 + 1)))
        / (sqrt((1 - q1) / (s1 + 1)) + sqrt((1 - q2) / (s2 + 1))),  q = (s + 1) / (m + 2)

    so the two dependent errors are counted once. Infinite if the second never succeeded and
    the first did.

    References:
        Bonett and Price, "Confidence intervals for a ratio of binomial proportions based on
        paired data", Statistics in Medicine 25 (2006). doi:10.1002/sim.2440

    >>> print(paired_ratio(6, 26, 4))
    3.200 [1.767, 5.797]
    """
    first, second, seen = both + first_only, both + second_only, both + first_only + second_only
    if not seen:
        return Estimate(1.0, 0.0, inf, confidence)
    apart = sqrt((first_only + second_only + 2) / ((first + 1) * (second + 1)))
    spread = sum(sqrt((1 - (s + 1) / (seen + 2)) / (s + 1)) for s in (first, second))
    z = float(scipy.special.ndtri((1 + confidence) / 2)) * apart / spread
    (centre, half), (below, half_below) = _score(first, seen, z), _score(second, seen, z)
    value = first / second if second else inf
    least_two = max(0.0, below - half_below)
    low = max(0.0, centre - half) / min(1.0, below + half_below)
    high = min(1.0, centre + half) / least_two if second and least_two else inf
    return Estimate(value, min(low, value), max(high, value), confidence)


def median(values: NDArray[np.float64], confidence: float = 0.95) -> Estimate:
    """Estimate the median of a sample with an interval of order statistics.

    The interval holds with at least the stated confidence, whatever the distribution: the ranks
    are quantiles of Binomial(n, 1/2). With few values it is the whole range, at whatever
    confidence that has.

    >>> print(median(np.arange(100.0)))
    49.500 [39.000, 60.000]
    """
    ordered = np.sort(values)
    if not ordered.size:
        raise InputError("A median needs at least one value.")
    below = scipy.special.bdtr(np.arange(ordered.size), ordered.size, 0.5)
    rank = max(int(np.searchsorted(below, (1 - confidence) / 2)) - 1, 0)
    middle = float(np.median(ordered))
    return Estimate(middle, float(ordered[rank]), float(ordered[-1 - rank]), confidence)


_HALVINGS = 60


def _log_mixture(successes: NDArray[np.float64], trials: int) -> NDArray[np.float64]:
    """Return the log-likelihood of outcomes in their order, the rate drawn from Beta(1/2, 1/2)."""
    mixed = scipy.special.betaln(successes + 0.5, trials - successes + 0.5)
    return np.asarray(mixed - scipy.special.betaln(0.5, 0.5), dtype=np.float64)


def _score(successes: float, trials: int, z: float) -> tuple[float, float]:
    """Compute centre and half-length of Wilson's interval at a normal quantile."""
    s, t = successes, trials
    centre = (s + z * z / 2) / (t + z * z)
    return centre, z / (t + z * z) * sqrt(s * (t - s) / t + z * z / 4)


def _check(successes: float, trials: int, confidence: float) -> None:
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"Expected 0 to {trials} successes in at least 1 trial; got {successes}.")
    if not 0 < confidence < 1:
        raise InputError(
            f"The confidence of an interval must lie between 0 and 1; got {confidence}."
        )

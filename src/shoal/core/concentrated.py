"""Zero-concentrated differential privacy: convert rho to epsilon and delta, and back.

A mechanism has rho if for every order a > 1 the Renyi divergence of order a between its outputs on
neighbours is at most rho a. Then for every delta it has the epsilon

    min over a > 1 of    rho a + ln(1 / (a delta)) / (a - 1) + ln(1 - 1 / a),

which is the tightest conversion that is known for a given order (Canonne, Kamath and Steinke,
Proposition 12). Prices in rho add up, also where a later question depends on earlier answers. A
pure price of e is a rho of e^2 / 2 (Bun and Steinke, Proposition 1.4). Between tables that differ
in r records, a rho is r^2 rho (Proposition 1.9).

What a release claims is compared with OpenDP's conversion before it leaves
(`shoal.hazmat.accounting`).

References:
    Bun, Steinke, "Concentrated differential privacy: simplifications, extensions, and lower
    bounds", TCC 2016. arXiv:1605.02065
    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    arXiv:2004.00010
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, exp, floor, isqrt, log, log1p, log10, sqrt

from shoal.errors import InputError

_DIGITS = 10**6  # of a root, and of a rho: both are rounded down by less than a millionth
_SAFE = 1 - 1e-7  # what floating-point arithmetic may be off by, and far more


def epsilon_of(rho: float, delta: float) -> float:
    """Return the epsilon of a rho at a delta, by the formula above.

    >>> round(epsilon_of(0.02, 1e-9), 4)
    1.1633
    """
    low, high = -20.0, 25.0  # of ln(a - 1): the function falls and then rises
    log_delta = log(delta)
    for _ in range(200):
        third = (high - low) / 3
        left, right = low + third, high - third
        if (left, right) == (low, high):
            break
        if _at(rho, log_delta, left) < _at(rho, log_delta, right):
            high = right
        else:
            low = left
    return max(_at(rho, log_delta, (low + high) / 2), 0.0)


def _at(rho: float, log_delta: float, x: float) -> float:
    beyond = exp(x)
    order = 1 + beyond
    return rho * order - (log_delta + log(order)) / beyond - log1p(1 / beyond)


def epsilon_above(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon of a rho at a delta, rounded up to six decimals.

    >>> float(epsilon_above(Fraction(1, 50), Fraction(1, 10**9)))
    1.163288
    """
    if rho == 0:
        return Fraction(0)
    epsilon = epsilon_of(float(rho), float(delta)) / _SAFE
    return Fraction(floor(epsilon * _DIGITS) + 1, _DIGITS)


@lru_cache(maxsize=256)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho with this epsilon at this delta, rounded down to six digits.

    >>> float(rho_of(Fraction(1), Fraction(1, 10**9)))
    0.014973

    Raises:
        InputError: if no rho has it that numbers can hold.
    """
    low, high = 0.0, float(epsilon) + 1
    while epsilon_of(high, float(delta)) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if epsilon_of(middle, float(delta)) <= float(epsilon) * _SAFE:
            low = middle
        else:
            high = middle
    if low <= 0:
        raise InputError("The epsilon is too small for this delta: no rho has it.")
    unit = Fraction(10) ** (floor(log10(low)) - 5)
    return floor(Fraction(low) / unit) * unit


def key_delta(scale: Fraction, threshold: int, rows: int) -> Fraction:
    """Return a delta of keys that are released from a noisy count on, for a person of so many rows.

    r Q((T - 1 - r) / s) with Q the normal tail, rounded up: at least r P[Z >= T - r] of discrete
    Gaussian noise Z of scale s, as `shoal.hazmat.noise.CheckedNoise.release_keys` proves.

    >>> float(key_delta(Fraction(1), 6, 1)) >= 3.167e-5
    True
    """
    tail = erfc((threshold - 1 - rows) / (float(scale) * sqrt(2))) / 2
    return min(Fraction(rows * tail) * (1 + Fraction(1, _DIGITS)), Fraction(1))


def key_threshold(scale: Fraction, delta: Fraction, rows: int) -> int:
    """Return the least threshold whose `key_delta` is at most this delta."""
    low, high = rows + 1, rows + 2 + ceil(40 * scale)  # Q(40) is below the least float
    while low < high:
        middle = (low + high) // 2
        if key_delta(scale, middle, rows) <= delta:
            high = middle
        else:
            low = middle + 1
    return low


def root_below(square: Fraction) -> Fraction:
    """Return a fraction just below the square root of a number, by less than a millionth.

    >>> root_below(Fraction(1, 4))
    Fraction(1, 2)
    """
    grain = _DIGITS * square.denominator
    return Fraction(isqrt(square.numerator * square.denominator * _DIGITS**2), grain)


def root_above(square: Fraction) -> Fraction:
    """Return a fraction whose square is above this number by less than a millionth of it."""
    below = root_below(square)
    if below * below == square:
        return below
    return below + Fraction(1, _DIGITS * square.denominator)

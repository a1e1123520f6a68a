"""Compare figures exactly; floating point only selects which ones to compare.

All models but entropy are quotients of whole numbers and compared as such. The exponential of
an entropy is a root of a quotient of whole numbers, and compared by logarithms of whole
numbers, with as many digits as it takes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Ints
from shoal.errors import InputError

NEAR = 1e-9
"""Floating-point figures this close, relatively, are compared again in whole numbers."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The verdict of a privacy model on a table.

    Attributes:
        holds: whether the model holds in every class.
        achieved: the best parameter for which the model holds: exact, as a whole number or
            a fraction, infinity if there is none, and a float if it is irrational
            (entropy), in which case `holds` is decided exactly all the same.
        witness: the class that decides, the lowest of several.
        failing: the classes in which the model does not hold, in order.
    """

    holds: bool
    achieved: int | Fraction | float
    witness: int
    failing: Ints


def decide(
    top: NDArray[Any], bottom: NDArray[Any], owner: Ints, wanted: Fraction, *, least: bool
) -> Verdict:
    """Compare the quotients top/bottom with `wanted`, and find the worst, exactly.

    `owner` is the class of each quotient; `least` says whether `wanted` is the least allowed
    or the most. A bottom of 0 makes infinity.
    """
    if not len(top):
        raise InputError("The table has no rows; there is nothing to check.")
    figure = np.full(len(top), np.inf)
    finite = np.asarray(bottom != 0, dtype=bool)
    figure[finite] = (top[finite] / bottom[finite]).astype(np.float64)

    def exact(which: Ints) -> tuple[list[Fraction | float], Ints]:
        return _fractions(top[which], bottom[which])

    def worse(one: Fraction | float, other: Fraction | float) -> bool:
        return one < other if least else one > other

    return judge(figure, owner, wanted, least=least, exact=exact, worse=worse)


def judge(
    figure: NDArray[np.float64],
    owner: Ints,
    wanted: Any,
    *,
    least: bool,
    exact: Callable[[Ints], tuple[list[Any], Ints]],
    worse: Callable[[Any, Any], bool],
) -> Verdict:
    """Decide by floats where they differ clearly, and by the exact figures otherwise.

    `exact` gives the distinct exact figures of some items and says which item has which;
    `worse` compares two exact figures.
    """
    extreme = figure.min() if least else figure.max()
    near = np.flatnonzero(
        figure == extreme if np.isinf(extreme) else np.abs(figure - extreme) <= NEAR * extreme
    )
    distinct, which = exact(near)
    worst = 0
    for a in range(1, len(distinct)):
        if worse(distinct[a], distinct[worst]):
            worst = a
    witness = int(owner[near[which == worst]].min())

    bound = float(wanted)
    fails = figure < bound if least else figure > bound
    doubtful = np.flatnonzero(np.abs(figure - bound) <= NEAR * bound)
    if len(doubtful):
        distinct_there, which_there = exact(doubtful)
        failing = np.array([worse(shape, wanted) for shape in distinct_there])
        fails[doubtful] = failing[which_there]
    achieved = distinct[worst]
    if isinstance(achieved, Fraction) and achieved.denominator == 1:
        achieved = int(achieved)
    elif isinstance(achieved, Power):
        achieved = achieved.to_number(wanted, float(figure[near[which == worst]][0]))
    return Verdict(not fails.any(), achieved, witness, np.unique(owner[fails]))


def _fractions(top: NDArray[Any], bottom: NDArray[Any]) -> tuple[list[Fraction | float], Ints]:
    """Return the distinct quotients, and the index of each pair's quotient."""
    common = np.gcd(top, bottom)
    pairs = np.column_stack((top // common, bottom // common))
    if (pairs == pairs[0]).all():
        distinct, which = pairs[:1], np.zeros(len(pairs), np.int64)
    elif pairs.dtype == object:
        places: dict[tuple[int, int], int] = {}
        index = [places.setdefault((a, b), len(places)) for a, b in pairs.tolist()]
        distinct, which = np.array(list(places), object), np.array(index)
    else:
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    return [Fraction(a, b) if b else math.inf for a, b in distinct.tolist()], which.ravel()


@dataclass(frozen=True)
class Power:
    """The root of a product of powers: (prod base^exponent)^(1/root)."""

    exponents: Mapping[int, int]
    root: int

    @classmethod
    def of_counts(cls, shape: tuple[int, ...]) -> "Power":
        """Return exp(entropy) of a class: (n^n / prod n_i^n_i)^(1/n)."""
        n = sum(shape)
        if len(set(shape)) == 1:
            return cls({len(shape): 1}, 1)
        exponents = {n: n}
        for count in shape:
            exponents[count] = exponents.get(count, 0) - count
        return cls(exponents, n)

    @classmethod
    def of_number(cls, number: Fraction) -> "Power":
        """Write a positive number in this form."""
        return cls({number.numerator: 1, number.denominator: -1}, 1)

    def to_number(self, wanted: Fraction, figure: float) -> int | Fraction | float:
        """Return the exact number if it is whole or equals `wanted`, else its float."""
        for guess in (wanted, Fraction(round(figure))):
            if _compare(self, Power.of_number(guess)) == 0:
                return int(guess) if guess.denominator == 1 else guess
        return figure


def below(one: Power, other: Power | Fraction) -> bool:
    """Whether the first figure is exactly less than the second."""
    return _compare(one, Power.of_number(other) if isinstance(other, Fraction) else other) < 0


def _compare(one: Power, other: Power) -> int:
    exponents = {base: e * other.root for base, e in one.exponents.items()}
    for base, e in other.exponents.items():
        exponents[base] = exponents.get(base, 0) - e * one.root
    return _sign(exponents)


def _sign(exponents: Mapping[int, int]) -> int:
    """Return the sign of sum e log b over bases b with exponents e, all whole numbers.

    The bases are first rewritten over numbers without a common factor, by taking out greatest
    common divisors. No product of powers of such numbers is 1 unless every exponent is 0, so zero
    is decided there, and any other sum by enough digits.

    >>> _sign({4: 1, 2: -2}), _sign({8: 2, 9: -2})
    (0, -1)
    """
    coprime: dict[int, int] = {}
    waiting = list(exponents.items())
    while waiting:
        base, e = waiting.pop()
        if base == 1 or e == 0:
            continue
        other = next((b for b in coprime if math.gcd(b, base) > 1), None)
        if other is None:
            coprime[base] = e
            continue
        common = math.gcd(other, base)
        f = coprime.pop(other)
        waiting += [(base // common, e), (other // common, f), (common, e + f)]
    if not coprime:
        return 0
    digits = 30
    while True:
        with localcontext() as context:
            context.prec = digits
            terms = [e * Decimal(base).ln() for base, e in coprime.items()]
            total = sum(terms, Decimal())
            # Each rounding is off by less than one unit in the last digit.
            doubt = 3 * sum(map(abs, terms), Decimal()) * len(terms) * Decimal(10) ** (1 - digits)
        if abs(total) > doubt:
            return 1 if total > 0 else -1
        digits *= 2

"""Stochastic t-closeness and epsilon, each from the other: domingoferrer2015.

Confidential values pass through a random function Z that is epsilon-differentially private record
by record: Pr(Z(c) in B) <= exp(epsilon) Pr(Z(c') in B) for any values c, c'. A table is
stochastically t-close if the distribution of Z over each class is within ratio t of that over the
whole table, either way (Definitions 3 and 4). It is derived from class sizes, never checked on a
table: one draw of Z does not show a distribution.
"""

import math
from collections.abc import Sequence

from shoal.errors import InputError


def t_from_epsilon(epsilon: float, class_sizes: Sequence[int]) -> float:
    """The t of stochastic t-closeness that record-wise epsilon gives.

    With N records and classes E,

        t = max_E |E|/N + (1 - |E|/N) exp(epsilon),

    attained at the smallest class.

    Proof. Let p_i = Pr(Z(c_i) in B), d the sum of p_i over E. Every p_j outside E is at most
    exp(epsilon) p_i for each i in E, hence at most exp(epsilon) d / |E|, and the share of the
    whole table is at most d/N + (N - |E|)/N exp(epsilon) d/|E|, which is t times the class's
    share d/|E|. The other way, it is at least d/N + (N - |E|)/N exp(-epsilon) d/|E|, so that
    the class's share is at most s = 1 / (a + (1 - a) exp(-epsilon)) times it, a = |E|/N; and
    s <= t, because (a + (1 - a) e^x)(a + (1 - a) e^-x) = a^2 + (1 - a)^2 + 2 a (1 - a) cosh x
    >= 1. It is attained in the limit by an output that is e^epsilon times as likely outside
    E as inside.

    Proposition 1 in our copy of the paper has N - |E| - 1 in place of N - |E|; its own proof
    derives N - |E|. That smaller form is exceeded: at N = 10, |E| = 3, epsilon = 1 it says
    1.931, and 2.2028 is attained.

    References:
        Domingo-Ferrer and Soria-Comas, "From t-closeness to differential privacy and vice
        versa in data anonymization", Knowledge-Based Systems 74 (2015), Proposition 1.

    >>> round(t_from_epsilon(1.0, [3, 7]), 4)
    2.2028
    """
    share = _smallest_share(class_sizes)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon must be a number from 0; found {epsilon}.")
    return share + (1 - share) * math.exp(epsilon)


def epsilon_for_t(t: float, class_sizes: Sequence[int]) -> float:
    """The largest record-wise epsilon that gives stochastic t-closeness: inverse of the above.

        epsilon = ln((t N - |E|) / (N - |E|)) for the smallest class E

    One class is the whole table, for which any epsilon will do: infinity.

    >>> round(epsilon_for_t(2.2028, [3, 7]), 4)
    1.0
    """
    share = _smallest_share(class_sizes)
    if not (math.isfinite(t) and t >= 1):
        raise InputError(f"t must be a number from 1; found {t}.")
    return math.inf if share == 1 else math.log((t - share) / (1 - share))


def epsilon_from_t(t: float) -> float:
    """The epsilon that t-closeness by ratio gives an intruder's view: 2 ln t.

    Conditional, and never differential privacy of the release (Proposition 3). It assumes that
    the intruder's prior is one public distribution, the same for both tables; that all he
    sees of a person is a draw from the class's distribution, with no side knowledge about the
    members; and that both tables are t-close.

    >>> round(epsilon_from_t(math.exp(0.5)), 6)
    1.0
    """
    if not (math.isfinite(t) and t >= 1):
        raise InputError(f"t must be a number from 1; found {t}.")
    return 2 * math.log(t)


def _smallest_share(class_sizes: Sequence[int]) -> float:
    sizes = list(class_sizes)
    if not sizes or min(sizes) < 1:
        raise InputError("class_sizes must be whole numbers from 1, at least one.")
    return min(sizes) / sum(sizes)

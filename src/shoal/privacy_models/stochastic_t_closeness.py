"""Stochastic t-closeness from epsilon, and epsilon from it: domingoferrer2015.

Confidential values pass through a random function Z that is epsilon-differentially private record
by record: Pr(Z(c) in B) <= exp(epsilon) Pr(Z(c') in B) for any values c, c'. A table is
stochastically t-close if the distribution of Z over each class is within ratio t of that over the
whole table, either way (Definitions 3 and 4). It is derived from class sizes, never checked on a
table: one draw of Z does not show a distribution. Whoever knows Z can compute it (`stochastic_t`).

The paper asks whether stochastic t-closeness yields epsilon-differential privacy. For one table it
does not; for every table it does, and the two are equivalent.

One table. Let two classes have n records each, half of them x and half y; then let one x become
y. Whatever Z is, the first table is stochastically 1-close and the second t-close with
t = (n - 1) / (n - 2): that is its distance for the identity, and the ratio of two sums, which Z
makes of the shares, lies between the ratios of their terms. Let Z tell the truth with probability
1 - q, and otherwise the other value: an output is (1 - q) / q times as likely from one table as
from the other, which has no bound as q falls to 0. So no function of t bounds epsilon, though both
neighbours are t-close. Nor is it 2 ln t where Z is far from the identity: with n = 2 and q = 1/4
the tables are 1- and 1.5-close, and ln 3 > 2 ln 1.5.

Every table. Fix the classes, and let Z be stochastically t-close for every table with these
classes, that is for any values of the records. Give all records of a class E the value c, all
others c'. With a = |E|/N, p = Pr(Z(c) in B), p' = Pr(Z(c') in B), closeness says
a p + (1 - a) p' <= t p, that is p' <= p (t - a) / (1 - a). So Z is epsilon-differentially private,
record by record, with epsilon = ln((t - a) / (1 - a)), least for the smallest class: that is
`epsilon_for_t`. With Proposition 1, the other way round, the two are equivalent, each with the
formula of the other.

An attacker's view. Proposition 3 uses only the ratio of the two distributions. So under
its assumptions stochastic exp(epsilon/2)-closeness of both tables gives epsilon for the view.

In mathematical notation: docs/explanation/proofs.md, "Stochastic t-closeness".
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import InputError


def stochastic_t(counts: ArrayLike, channel: ArrayLike) -> float:
    """Return the least t for which a table is stochastically t-close under a known Z: Definition 3.

    With P(v | E) the share of output v in what is drawn for class E, and P(v) that for the table,
    it is the largest of P(v | E) / P(v) and P(v) / P(v | E) over classes and outputs; outputs
    that nobody can have do not count. The identity as Z gives plain t-closeness by ratio.

    Args:
        counts: classes by values: how many records have the value; no empty class.
        channel: values by outputs: the distribution of Z(c) for each value c.

    References:
        Domingo-Ferrer and Soria-Comas, "From t-closeness to differential privacy and vice
        versa in data anonymization", Knowledge-Based Systems 74 (2015), Definition 3.

    >>> round(stochastic_t([[0, 2], [1, 1]], [[0.75, 0.25], [0.25, 0.75]]), 6)
    1.5
    """
    held = np.asarray(counts, np.float64)
    Z = np.asarray(channel, np.float64)
    if held.ndim != 2 or Z.ndim != 2 or held.shape[1] != len(Z) or not held.sum(axis=1).all():
        raise InputError(
            "The argument counts must be a matrix of classes by values without empty classes, "
            "and the argument channel a matrix of the same values by outputs; found "
            "{held.shape} and {Z.shape}."
        )
    drawn = held @ Z
    overall = drawn.sum(axis=0) / held.sum()
    shares = (drawn / held.sum(axis=1, keepdims=True))[:, overall > 0] / overall[overall > 0]
    least = float(shares.min())
    return max(float(shares.max()), 1 / least if least > 0 else math.inf)


def t_from_epsilon(epsilon: float, class_sizes: Sequence[int]) -> float:
    """Return the t of stochastic t-closeness that follows from record-wise epsilon.

    With N records and classes E,

        t = max_E |E|/N + (1 - |E|/N) exp(epsilon),

    attained at the smallest class.

    Proof. Let p_i = Pr(Z(c_i) in B), d the sum of p_i over E. Every p_j outside E is at most
    exp(epsilon) p_i for each i in E, hence at most exp(epsilon) d / |E|, and the share of the
    whole table is at most d/N + (N - |E|)/N exp(epsilon) d/|E|, which is t times the class's
    share d/|E|. The other way, it is at least d/N + (N - |E|)/N exp(-epsilon) d/|E|, so
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
    _check_epsilon(epsilon)
    return share + (1 - share) * math.exp(epsilon)


def epsilon_for_t(t: float, class_sizes: Sequence[int]) -> float:
    """Return the largest record-wise epsilon that gives stochastic t-closeness.

        epsilon = ln((t N - |E|) / (N - |E|)) for the smallest class E

    It is also the epsilon that follows from t, if closeness holds for every table with these
    classes; the proof is above. One class is the whole table, for which any epsilon will do:
    infinity.

    >>> round(epsilon_for_t(2.2028, [3, 7]), 4)
    1.0
    """
    share = _smallest_share(class_sizes)
    if not (math.isfinite(t) and t >= 1):
        raise InputError(f"The t of t-closeness must be a number of at least 1; found {t}.")
    return math.inf if share == 1 else math.log((t - share) / (1 - share))


def epsilon_from_t(t: float) -> float:
    """Return the epsilon against an attacker that t-closeness by ratio gives: 2 ln t.

    Conditional, and never differential privacy of the release (Proposition 3). It assumes that
    the attacker's prior is one public distribution, the same for both tables; that all he
    sees of a person is a draw from the class's distribution, with no background knowledge about the
    members; and that both tables are t-close.

    >>> round(epsilon_from_t(math.exp(0.5)), 6)
    1.0
    """
    if not (math.isfinite(t) and t >= 1):
        raise InputError(f"The t of t-closeness must be a number of at least 1; found {t}.")
    return 2 * math.log(t)


def t_for_epsilon(epsilon: float) -> float:
    """Return the t for which t-closeness by ratio gives an attacker's epsilon: exp(epsilon / 2).

    The inverse of `epsilon_from_t`, under the same conditions: it does not give differential
    privacy of the release. Give `bucketization` this t, rounded down.

    >>> round(t_for_epsilon(1.0), 4)
    1.6487
    """
    _check_epsilon(epsilon)
    return math.exp(epsilon / 2)


def _check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(
            f"The privacy budget epsilon must be a number of at least 0; found {epsilon}."
        )


def _smallest_share(class_sizes: Sequence[int]) -> float:
    sizes = list(class_sizes)
    if not sizes or min(sizes) < 1:
        raise InputError(
            "The argument class_sizes must hold the size of at least one class, "
            "each a whole number of at least 1."
        )
    return min(sizes) / sum(sizes)


def least_t(epsilon: float, k: int, rows: int | None) -> float:
    """Return the t of stochastic t-closeness for classes of at least k among `rows` rows.

    >>> round(least_t(1.0, 3, 10), 4), least_t(1.0, 3, 5)
    (2.2028, 1.0)
    """
    if rows is None:
        return math.exp(epsilon)
    return t_from_epsilon(epsilon, [rows] if rows < 2 * k else [k, rows - k])

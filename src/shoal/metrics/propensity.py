"""The propensity score: whether a classifier can distinguish released from original rows."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Estimate
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.metrics import _sklearn
from shoal.metrics.intervals import student
from shoal.metrics.regression import features, logistic, standard

RIDGE = 1e-3
"""Keeps coefficients finite where tables can be told apart without error."""


class Teller(StrEnum):
    """The classifier that distinguishes the tables."""

    LOGISTIC = "logistic"
    BOOSTING = "boosting"


class Propensity(NamedTuple):
    """How well released rows can be distinguished from original ones.

    Attributes:
        pmse: 0 if they are indistinguishable, 1/4 if completely distinguishable, for tables of
            equal length.
        ratio: pmse relative to that of a fresh sample of the original.
        parameters: number of parameters of the logistic model; 0 for boosting.
    """

    pmse: Estimate
    ratio: Estimate
    parameters: int


def propensity(
    original: Floats,
    released: Floats,
    *,
    categorical: ArrayLike,
    rng: np.random.Generator,
    teller: Teller = Teller.LOGISTIC,
    most: int = 20_000,
    repeats: int = 5,
    confidence: float = 0.95,
) -> Propensity:
    """Compute the propensity score mean squared error of two tables; rows need not correspond.

        pMSE = 1/N sum_i (p_i - c)^2

    over the N rows of both, p_i the fitted chance that row i is a released one and c the share
    of released rows. A classifier finds something in any two samples, so pMSE is compared
    to its expectation for a release that is a fresh draw, with replacement, from the
    original's own rows. For the logistic model with k parameters that is

        E = (k - 1) c (1 - c) / N * g,   g = (1/s2 + (1 - s1/n1) / s1) / (1/s1 + 1/s2)

    for s1 of n1 original rows and s2 released ones in the fit; with s1 = n1 it is the
    (k - 1)(1 - c)^2 c / N of Snoke et al. For boosting such draws are made and fitted. A ratio of
    1 means that the model cannot tell the release from a fresh draw; a masked table whose rows
    stay near the original's can have less. A ratio grows with the number of rows, so compare at
    equal sizes.

    The logistic model has all columns, squares of numbers and products of two columns, these
    last unless there would be more than 150 features. It sees nothing else; boosting, on at most
    four fifths of the rows, sees more and is noisier.

    Tables of more than `most` rows are sampled, `repeats` times, and the interval is that of the
    repeats. Where nothing is sampled or drawn, the interval is a point.

    Args:
        original: records by columns; codes for categories, NaN for missing.
        released: the same columns.
        categorical: which columns are codes.
        rng: draws samples.
        teller: the classifier.
        most: rows of each table in a fit.
        repeats: fits, at least 2.
        confidence: of the interval.

    Raises:
        InputError: a table is empty.

    References:
        Snoke, Raab, Nowok, Dibben and Slavkovic, "General and specific utility measures for
        synthetic data", JRSS A 181 (2018). doi:10.1111/rssa.12358
        Woo, Reiter, Oganian and Karr, "Global measures of data utility for microdata masked for
        disclosure limitation", JPC 1 (2009). doi:10.29012/jpc.v1i1.568
    """
    x, y = (np.asarray(table, dtype=np.float64) for table in (original, released))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise InputError("Both tables must be matrices of records by the same columns.")
    if not len(x) or not len(y) or repeats < 2 or most < 1:
        raise InputError(
            "A propensity score needs rows in both tables and at least two repeats; found "
            f"{len(x)}, {len(y)} and {repeats}."
        )
    sampled = len(x) > most or len(y) > most
    fits, expected, parameters = [], [], 0
    for _ in range(repeats if sampled or teller is Teller.BOOSTING else 1):
        if teller is Teller.BOOSTING:
            # A tree that grows one split at a time sees nothing if every single column has exactly
            # the same counts, as after a permutation: using only part of the rows breaks the tie.
            a, b = (_draw(t, min(most, -(-4 * len(t) // 5)), rng) for t in (x, y))
            fits.append(_boost(a, b, categorical))
            expected.append(_boost(a, x[rng.integers(0, len(x), len(b))], categorical))
        else:
            a, b = _draw(x, most, rng), _draw(y, most, rng)
            pmse, parameters = _logistic(a, b, categorical)
            fits.append(pmse)
            s1, s2, total = len(a), len(b), len(a) + len(b)
            share = s2 / total
            fresh = (1 / s2 + (1 - s1 / len(x)) / s1) / (1 / s1 + 1 / s2)
            expected.append((parameters - 1) * share * (1 - share) / total * fresh)
    return Propensity(_interval(fits, confidence), _ratio(fits, expected, confidence), parameters)


def _draw(table: Floats, most: int, rng: np.random.Generator) -> Floats:
    return table if len(table) <= most else table[rng.choice(len(table), most, replace=False)]


def _logistic(a: Floats, b: Floats, categorical: ArrayLike) -> tuple[float, int]:
    both = np.concatenate([a, b])
    Z = standard(features(both, categorical, products=True).apply(both)).Z
    label = np.repeat([0.0, 1.0], [len(a), len(b)])
    if not Z.shape[1]:
        return 0.0, 1
    chances = logistic(Z, label, ridge=RIDGE).chances
    return float(((chances - label.mean()) ** 2).mean()), Z.shape[1] + 1


def _boost(a: Floats, b: Floats, categorical: ArrayLike) -> float:
    both, label = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
    trees = _sklearn.boost(both, label, categorical=categorical, classify=True, leaves=8)
    chances = trees.chances(both)[:, 1]
    return float(((chances - label.mean()) ** 2).mean())


def _interval(values: list[float], confidence: float) -> Estimate:
    if len(values) == 1:
        return Estimate(values[0], values[0], values[0], confidence)
    return student(values, confidence, at_least=0.0)


def _ratio(fits: list[float], expected: list[float], confidence: float) -> Estimate:
    """Estimate a ratio of means, with its interval (Cochran, "Sampling Techniques")."""
    p, q = np.array(fits), np.array(expected)
    if q.mean() <= 0:
        # No column has spread in either table: there is nothing to tell apart.
        return Estimate(0.0, 0.0, 0.0, confidence)
    ratio = float(p.mean() / q.mean())
    return _interval(list(ratio + (p - ratio * q) / q.mean()), confidence)

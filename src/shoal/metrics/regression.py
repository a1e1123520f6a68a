"""Linear and logistic regression on features of mixed columns, as the metrics need them."""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core._arrays import Bools, Floats
from shoal.errors import InputError

MOST_LEVELS = 50
"""Categories with a feature of their own; the rarer ones share one."""

MOST_FEATURES = 150
"""Features at which products are left out, so a fit takes seconds."""

DEPENDENT = 1e-9
"""Share of a column's variance below which it is a sum of the columns before it."""


@dataclass(frozen=True, eq=False)
class Features:
    """The encoding of columns as features: standard scores, one per category, and products.

    Attributes:
        categorical: which columns are codes.
        centres: mean of each column of numbers.
        scales: standard deviation of it, 1 where it has no spread.
        categories: the codes of each column that have a feature, ascending.
        gaps: columns of numbers with missing cells, which have a feature for that.
        products: whether features of different columns are multiplied, and numbers squared.
    """

    categorical: tuple[bool, ...]
    centres: Floats
    scales: Floats
    categories: tuple[Floats, ...]
    gaps: tuple[int, ...]
    products: bool

    def apply(self, X: Floats) -> Floats:
        """Compute the features of a table. A missing number becomes the mean, marked by `gaps`."""
        parts: list[Floats] = []
        for j, is_code in enumerate(self.categorical):
            column = X[:, j]
            if is_code:
                parts.append((column[:, None] == self.categories[j]).astype(np.float64))
                continue
            scores = (column - self.centres[j]) / self.scales[j]
            gone = np.isnan(scores)
            scores = np.where(gone, 0.0, scores)
            parts.append(np.column_stack([scores, gone] if j in self.gaps else [scores]))
        if self.products:
            mains = list(parts)
            for a, b in combinations(mains, 2):
                parts.append((a[:, :, None] * b[:, None, :]).reshape(len(X), -1))
            parts += [part[:, :1] ** 2 for part, is_code in
                      zip(mains, self.categorical, strict=True) if not is_code]  # fmt: skip
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(X), 0))


def features(X: Floats, categorical: ArrayLike, *, products: bool = False) -> Features:
    """Choose the features of a table.

    One category is the reference, so features do not add up to a constant: missing if a cell of the
    column is missing, otherwise the most frequent one. Products are left out if they would make
    more than MOST_FEATURES.
    """
    codes = tuple(bool(kind) for kind in np.asarray(categorical))
    if X.ndim != 2 or X.shape[1] != len(codes):
        raise InputError(
            "Expected a matrix of records by columns, and for each column whether it holds codes."
        )
    centres, scales = np.zeros(len(codes)), np.ones(len(codes))
    categories: list[Floats] = []
    gaps: list[int] = []
    for j, is_code in enumerate(codes):
        present = X[~np.isnan(X[:, j]), j]
        kept: Floats = np.empty(0)
        if is_code and present.size:
            values, counts = np.unique(present, return_counts=True)
            # Without a missing cell, the most frequent code is the reference category.
            spared = int(len(present) == len(X))
            kept = np.sort(values[np.argsort(-counts, kind="stable")[spared:MOST_LEVELS]])
        elif present.size:
            centres[j] = present.mean()
            scales[j] = (np.ptp(present) > 0 and present.std()) or 1.0
            if len(present) < len(X):
                gaps.append(j)
        categories.append(kept)
    plain = Features(codes, centres, scales, tuple(categories), tuple(gaps), products=False)
    if not products:
        return plain
    widths = [
        len(level) if is_code else 1 + (j in gaps)
        for j, (is_code, level) in enumerate(zip(codes, categories, strict=True))
    ]
    number = sum(widths) + sum(a * b for a, b in combinations(widths, 2)) + codes.count(False)
    return Features(
        codes, centres, scales, tuple(categories), tuple(gaps), products=number <= MOST_FEATURES
    )


class Standard(NamedTuple):
    """Columns with mean 0 and variance 1, without those that depend on earlier ones."""

    Z: Floats
    kept: Bools
    centres: Floats
    scales: Floats


def standard(X: Floats) -> Standard:
    """Standardise columns, and drop constant ones and linear combinations of earlier ones."""
    centres = X.mean(axis=0)
    Z = X - centres
    scales = np.sqrt((Z**2).mean(axis=0))
    # A constant column may differ from its mean by rounding.
    kept = scales > 1e-12 * np.maximum(np.abs(centres), 1e-300)
    Z = Z[:, kept] / scales[kept]
    gram = Z.T @ Z / max(len(Z), 1)
    free = np.ones(len(gram), dtype=bool)
    for j in range(len(gram)):
        # What the earlier columns leave of a column: a Cholesky step.
        if gram[j, j] <= DEPENDENT:
            free[j] = False
        else:
            gram[j + 1 :, j + 1 :] -= np.outer(gram[j + 1 :, j], gram[j, j + 1 :]) / gram[j, j]
    kept[np.flatnonzero(kept)[~free]] = False
    return Standard(Z[:, free], kept, centres, scales)


class LogisticFit(NamedTuple):
    """A logistic regression: intercept first, then one coefficient per column.

    Attributes:
        converged: False if the classes can be separated without error, so the likelihood has no
            maximum.
    """

    coefficients: Floats
    covariance: Floats
    chances: Floats
    converged: bool


def logistic(Z: Floats, y: Floats, *, ridge: float = 0.0) -> LogisticFit:
    """Fit P(y = 1) = 1 / (1 + exp(-b0 - Z b)) by Newton's method, at most 60 steps.

    Args:
        Z: standardised, independent columns.
        y: 0 or 1.
        ridge: weight of |b|^2 / 2, without the intercept; keeps b finite for classes that can be
            separated without error.
    """
    n, p = Z.shape
    A = np.column_stack([np.ones(n), Z])
    penalty = np.full(p + 1, ridge)
    penalty[0] = 0.0
    b, chances, converged = np.zeros(p + 1), np.full(n, 0.5), False
    best = -np.inf
    hessian = np.eye(p + 1)
    for _ in range(60):
        slope = A.T @ (y - chances) - penalty * b
        spread = np.maximum(chances * (1 - chances), 1e-12)
        hessian = (A * spread[:, None]).T @ A + np.diag(penalty)
        move = np.linalg.solve(hessian, slope)
        for halving in range(30):
            trial = b + move / 2**halving
            scores = A @ trial
            # log(1 + exp(s)) without overflow.
            fit = float((y * scores - np.logaddexp(0.0, scores)).sum() - penalty @ trial**2 / 2)
            if fit >= best:
                break
        gain, best = fit - best, fit
        b, chances = trial, scipy.special.expit(scores)
        if np.abs(scores).max(initial=0.0) > 35:
            break
        if gain < 1e-9:
            converged = True
            break
    return LogisticFit(b, np.asarray(np.linalg.inv(hessian), np.float64), chances, converged)

"""Select the three-way marginals that a fit to fewer columns approximates worst.

No two-way marginal shows whether a column follows from two others together that say nothing alone,
nor whether a dependence turns with a third column. Of m columns there are
m (m - 1) (m - 2) / 6 three-way marginals, too many to measure each well. After a first fit, over
groups joined so far that noise leaves a marginal readable, the records c of each three-way marginal
are compared with what the fit says of them, e. The score is

    K = floor(sum over cells of |c - e|) - what it would be if the cells were Poisson numbers.

As many as the plan states are selected, one after the other, by permute-and-flip.

Lemma (ours, unreviewed): a changed record moves a score by at most 2, an added or removed one by at
most 1. Proof. e and what is taken off follow from noisy answers and fresh randomness: given these
they are constants. A changed record moves c by 1 in two cells and the sum by at most 2; one that
comes or goes in one cell, and by at most 1. e is in whole units of 2^-10, so that 2^10 times the
sum is a whole number that moves by at most 2^11, or 2^10, which its floor follows. QED

In mathematical notation: docs/explanation/proofs.md, "Scores of marginals".

References:
    McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism for differentially
    private synthetic data", VLDB 2022. arXiv:2201.12677: selecting by what a fit misses. Ours
    selects in one round, after all pairs.
"""

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from shoal.core import Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.noisy_answers import COUNTS, noisy_choice
from shoal.mechanism.records import Columns
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import Fitted
from shoal.synthesis.maxent.measure import CandidateMarginal, exact_marginals, mean_deviation
from shoal.synthesis.maxent.one_way import OneWayMarginal, join_groups

FINEST = 10
"""Groups a column of a three-way marginal has at most."""
_UNIT = 1 << 10
_WHICH = "selection of three-way marginals"


def select_three_way(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    fitted: Fitted,
    *,
    n: int,
    marginals: int,
    cells: int,
    price: Price,
    noise: Noise,
    progress: Progress = silent,
) -> tuple[list[CandidateMarginal], list[PrivacyLoss]]:
    """Select three-way marginals by their deviation from a fit, sorted by their columns.

    Each has at most `cells` cells, unless two groups per column are already more. The selections
    together spend `price`. n is the number of records, or an estimate of it.

    Cost in time: O(n m^3) for the scores.
    """
    progress("selecting three-way marginals", 0, marginals)
    candidates = _candidates(columns, domains, one_way, cells)
    # If a column has one group, the marginal shows only two columns, which were measured before.
    scores = np.array(
        [
            score(c.exact, n * _predict(fitted, c)) if min(c.exact.shape) > 1 else -2 * n
            for c in candidates
        ]
    )
    each = price / marginals
    left = list(range(len(candidates)))
    selected, privacy_losses = [], []
    for number in range(marginals):
        progress("selecting three-way marginals", number, marginals)
        best, privacy_loss = noisy_choice(
            scores[left], reach=COUNTS, price=each, target=_WHICH, noise=noise
        )
        selected.append(left.pop(best))
        privacy_losses.append(privacy_loss)
    return [candidates[i] for i in sorted(selected)], privacy_losses


def _candidates(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    cells: int,
) -> list[CandidateMarginal]:
    """Count all three-way marginals in one pass over the records."""
    sets = list(combinations(range(len(one_way)), 3))
    most = [_finest([one_way[j].size for j in members], cells) for members in sets]
    names = sorted({(j, g) for members, g in zip(sets, most, strict=True) for j in members})
    axes = [join_groups(one_way[j], domains[j], groups) for j, groups in names]
    index = {name: number for number, name in enumerate(names)}
    axes_of = [[index[j, g] for j in members] for members, g in zip(sets, most, strict=True)]
    numbered = [(j, axis.marginal) for (j, _), axis in zip(names, axes, strict=True)]
    counts = exact_marginals(columns, numbered, axes_of)
    return [
        CandidateMarginal(members, tuple(axes[k] for k in places), exact)
        for members, places, exact in zip(sets, axes_of, counts, strict=True)
    ]


def score(exact: Ints, means: Floats) -> int:
    """Return how many records lie in other cells than expected, beyond chance.

    >>> score(np.array([10, 0]), np.array([5.0, 5.0]))
    6
    """
    wanted = np.rint(means * _UNIT).astype(np.int64)
    off = int(np.abs(exact * _UNIT - wanted).sum()) // _UNIT
    return off - round(float(mean_deviation(means).sum()))


def _finest(sizes: Sequence[int], cells: int) -> int:
    """Return the most groups per column, at least two, for which a table has so few cells."""
    fits = [most for most in range(3, FINEST + 1) if prod(min(s, most) for s in sizes) <= cells]
    return max(fits, default=2)


def _predict(fitted: Fitted, one: CandidateMarginal) -> Floats:
    """Return the fit's shares of the cells of a marginal."""
    cell = np.zeros(len(fitted.weights), dtype=np.int64)
    for j, axis in zip(one.columns, one.axes, strict=True):
        cell = cell * axis.marginal.size + axis.codes[fitted.groups[:, j]]
    shares = np.bincount(cell, fitted.weights, minlength=one.exact.size).astype(np.float64)
    return shares.reshape(one.exact.shape)

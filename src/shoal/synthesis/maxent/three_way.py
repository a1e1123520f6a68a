"""What tables of two columns do not say: a few tables of three, chosen for it and counted.

Whether a column follows from two others together, of which each alone says nothing, no table of two
columns shows; neither whether a dependence turns with a third column. Of m columns there are
m (m - 1) (m - 2) / 6 threes, too many to count each well. After a fit to tables of two columns:

1. Over groups joined so far that noise leaves the table readable, the records c of each table of
   three columns are compared with what the fit says of them, e. The score is

       K = floor(sum over cells of |c - e|) - what it would be if the cells were Poisson numbers.

2. So many tables as the plan says are chosen, one after the other, by permute-and-flip, for a tenth
   of the price. They are counted with noise for the rest, in equal parts.

Theorem (ours, unreviewed): the prices add up to epsilon, change-one neighbours. Proof. e and what
is taken off follow from noisy answers and fresh randomness: given these they are constants. A
changed record moves c by 1 in two cells and the sum by at most 2; e is in whole units of 2^-10, so
that 2^10 times the sum is a whole number that moves by at most 2^11, which its floor follows: a
score moves by at most 2, and a choice costs what `Noise.select` proves. Given the choices, counts
of a table move by at most 2 in all. Adaptive composition. QED

References:
    McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism for differentially
    private synthetic data", VLDB 2022. arXiv:2201.12677: choosing by what a fit misses. Ours
    chooses in one round, after all pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import prod

import numpy as np

from shoal.core import Noise, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.noisy_answers import noisy_choice, noisy_table
from shoal.mechanism.records import Columns
from shoal.synthesis.domain import Domain, Measurement
from shoal.synthesis.maxent.coarseness import mean_deviation
from shoal.synthesis.maxent.fit import Fitted, Target
from shoal.synthesis.maxent.one_way import (
    JoinedCodes,
    OneWayMarginal,
    counts_of_groups,
    join,
    precision_of,
)

CHOOSING = Fraction(1, 10)
"""Part of the price for choosing tables; the rest is for counting them."""
FINEST = 10
"""Groups a column of a table of three has at most."""
_UNIT = 1 << 10
_WHICH = "which three columns are counted together"


@dataclass(frozen=True, eq=False)
class Interactions:
    """Tables of three columns with noise, as measurements and as what a fit has to meet."""

    measurements: list[Measurement]
    targets: list[Target]
    privacy_losses: list[PrivacyLoss]


def room(n: int, epsilon: Fraction, tables: int, noise: Fraction) -> int:
    """Cells that a table may have, of so many that share epsilon and the choice of them.

    The mean of the noise's absolute value is its scale, 2 / e, so that a table of c cells has a
    total variation of c / (n e) from noise alone, which must not exceed `noise`.

    >>> room(12_000, Fraction(17, 20), 4, Fraction(1, 10))
    229
    """
    return int(noise * n * epsilon * (1 - CHOOSING) / tables)


def interactions(
    columns: Columns,
    attributes: Sequence[Domain],
    singles: Sequence[OneWayMarginal],
    fitted: Fitted,
    *,
    tables: int,
    cells: int,
    epsilon: Fraction,
    noise: Noise,
    progress: Progress = silent,
) -> Interactions:
    """Choose tables of three columns by what a fit misses, and count them.

    Args:
        columns: the records.
        attributes: their public descriptions, at least three.
        singles: what is published of every column.
        fitted: where the fit ended.
        tables: how many, at most as many as there are.
        cells: each of them has at most so many, unless two groups a column are too many.
        epsilon: the price, for choosing and counting.
        noise: where draws come from.
        progress: called with each stage.

    Cost: O(n m^3) for the scores.
    """
    progress("choosing tables of three columns", 0, tables)
    n = len(columns)
    sizes = [single.size for single in singles]
    sets = list(combinations(range(len(singles)), 3))
    most = [_finest([sizes[j] for j in members], cells) for members in sets]
    names = sorted({(j, g) for members, g in zip(sets, most, strict=True) for j in members})
    axes = [join(singles[j], attributes[j], groups) for j, groups in names]
    place = {name: number for number, name in enumerate(names)}
    tables_of = [[place[j, g] for j in members] for members, g in zip(sets, most, strict=True)]
    numbered = [(j, axis.single) for (j, _), axis in zip(names, axes, strict=True)]
    counts = columns.total(partial(counts_of_groups, axes=numbered, sets=tables_of))
    shapes = [tuple(axes[k].single.size for k in places) for places in tables_of]
    ends = np.cumsum([prod(shape) for shape in shapes])[:-1]
    exact = [part.reshape(s) for part, s in zip(np.split(counts, ends), shapes, strict=True)]
    said = [
        _said(fitted, members, [axes[k] for k in places])
        for members, places in zip(sets, tables_of, strict=True)
    ]
    # With a column of one group a table shows two columns, which were counted before.
    scores = np.array(
        [
            score(table, n * share) if min(table.shape) > 1 else -2 * n
            for table, share in zip(exact, said, strict=True)
        ]
    )
    price = epsilon * CHOOSING / tables
    left = list(range(len(sets)))
    chosen, privacy_losses = [], []
    for number in range(tables):
        progress("choosing tables of three columns", number, tables)
        best, privacy_loss = noisy_choice(
            scores[left], sensitivity=2, epsilon=price, target=_WHICH, noise=noise
        )
        chosen.append(left.pop(best))
        privacy_losses.append(privacy_loss)
    found = Interactions([], [], privacy_losses)
    price = epsilon * (1 - CHOOSING) / tables
    for number, i in enumerate(sorted(chosen), 1):
        members, here = sets[i], [axes[k] for k in tables_of[i]]
        name = f"chosen table {number} of three columns"
        noisy, privacy_loss = noisy_table(exact[i], target=name, epsilon=price, noise=noise)
        privacy_losses.append(privacy_loss)
        labels = tuple(axis.single.groups for axis in here)
        found.measurements.append(Measurement(members, labels, noisy, privacy_loss.scale))
        places = tuple(axis.places for axis in here)
        weight = precision_of(n, privacy_loss.scale)
        found.targets.append(Target(members, noisy.ravel() / n, weight, places))
    return found


def score(exact: Ints, means: Floats) -> int:
    """How many records lie elsewhere than expected, beyond what chance alone does.

    >>> score(np.array([10, 0]), np.array([5.0, 5.0]))
    6
    """
    wanted = np.rint(means * _UNIT).astype(np.int64)
    off = int(np.abs(exact * _UNIT - wanted).sum()) // _UNIT
    return off - round(float(mean_deviation(means).sum()))


def _finest(sizes: Sequence[int], cells: int) -> int:
    """The most groups a column for which a table has no more cells than that, at least two."""
    fits = [most for most in range(3, FINEST + 1) if prod(min(s, most) for s in sizes) <= cells]
    return max(fits, default=2)


def _said(fitted: Fitted, members: Sequence[int], axes: Sequence[JoinedCodes]) -> Floats:
    """A fit's table of these columns, over joined groups."""
    cell = np.zeros(len(fitted.weights), dtype=np.int64)
    for j, axis in zip(members, axes, strict=True):
        cell = cell * axis.single.size + axis.places[fitted.groups[:, j]]
    shape = tuple(axis.single.size for axis in axes)
    shares = np.bincount(cell, fitted.weights, minlength=prod(shape)).astype(np.float64)
    return shares.reshape(shape)

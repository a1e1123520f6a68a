"""Special uniques: the small sets of columns in which a record is alone, and their scores (SUDA).

A set of columns is a minimal sample unique of a record if the record is alone in it, and in no
proper subset. The fewer columns it takes, the easier the record is to pick out, and the likelier it
is alone in the population too. With d columns and sets of up to M of them, a set of s scores

    (d - s) (d - s - 1) ... (d - M),   i from s to M and below d,

which is (d - s)! for M >= d - 1: the scores of Elliot et al., and `original_scores = TRUE` in
sdcMicro. A record's score is the sum over its sets.

DIS-SUDA turns scores into shares: it spreads the intrusion probability of the file over the sample
uniques. With a sampling fraction p, U records that are alone in all columns and P in pairs, the
probability that a unique match is right is estimated as D = p U / (p U + (1 - p) P), data intrusion
simulation (DIS). See `suda` for how it is spread.
"""

from dataclasses import dataclass
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints
from shoal.core.row_order import row_keys
from shoal.errors import InputError
from shoal.metrics.kernels.suda import find_minimal_uniques
from shoal.metrics.uniqueness import value_codes

LARGEST = 6
"""The largest set that is sought by default; larger ones score little."""
FRACTION = 0.01
"""The sampling fraction that is assumed where none is given, as in the field's programs."""
MOST_COLUMNS = 20
MOST_BYTES = 4_000_000_000


@dataclass(frozen=True, eq=False)
class SudaScores:
    """The special uniques of a table.

    Attributes:
        scores: one per record; 0 of a record that is alone in no set.
        dis: DIS-SUDA of each record.
        sizes: minimal sets of each record, by their size from 1.
        contributions: share of the sum of all scores that is of sets with each column. They sum to
            more than 1, since a set has several columns.
    """

    scores: Floats
    dis: Floats
    sizes: Ints
    contributions: Floats


def suda(
    columns: NDArray[np.generic], *, largest: int = LARGEST, fraction: float = FRACTION
) -> SudaScores:
    """Find the special uniques of a table and score them; missing (NaN) is a value of its own.

    Equal records are searched once. Cost O(records) for each of the sets of up to `largest`
    columns, less where records are alone early.

    DIS-SUDA has odds proportional to a power of the score, such that their harmonic mean over the
    records with a score is the odds of D. The power is 1.4 - 0.05 d for d columns: that of sdcMicro
    5.8.1, read off its results for 4 to 14 columns, since no paper that we have states it. Without
    a pair D is 1, and so is the DIS-SUDA of every such record.

    Args:
        columns: records by attributes.
        largest: the most columns of a set.
        fraction: the sampling fraction p.

    References:
        Elliot, Manning and Ford, "A computational algorithm for handling the special uniques
        problem", Int. J. Uncertainty, Fuzziness and Knowledge-Based Systems 10 (2002).
        Manning, Haglin and Keane, "A recursive search algorithm for statistical disclosure
        assessment", Data Mining and Knowledge Discovery 16 (2008). doi:10.1007/s10618-007-0078-6
        Skinner and Elliot, "A measure of disclosure risk for microdata", J. Royal Statistical
        Society B 64 (2002). doi:10.1111/1467-9868.00365

    >>> table = np.array([[2, 0, 0], [1, 3, 6], [1, 0, 0]])
    >>> result = suda(table)
    >>> result.scores.tolist(), result.contributions.tolist()
    ([2.0, 4.0, 2.0], [0.5, 0.375, 0.375])
    """
    codes, rows = value_codes(columns), len(columns)
    if not codes or len(codes) > MOST_COLUMNS or largest < 1 or not 0 < fraction <= 1:
        raise InputError(
            f"Special uniques need 1 to {MOST_COLUMNS} columns, sets of at least 1 column, and a "
            f"sampling fraction above 0 and at most 1; found {len(codes)}, {largest}, {fraction}."
        )
    keys = row_keys(codes, rows)
    first = np.unique(keys, return_index=True)[1]
    sizes = np.bincount(keys, minlength=first.size)
    widths = [int(column.max(initial=0)) + 1 for column in codes]
    places = np.argsort(widths, kind="stable")
    table = np.array([codes[j][first] for j in places], dtype=np.int32)
    d, largest = len(codes), min(largest, len(codes))
    worth = np.array([
        prod(d - i for i in range(s, largest + 1) if i < d) for s in range(1, largest + 1)
    ], dtype=np.float64)  # fmt: skip
    sets = sum(comb(d, s) for s in range(1, largest + 1))
    if sets * first.size > 8 * MOST_BYTES:
        raise InputError(
            f"Special uniques in {sets:,} sets of columns of {first.size:,} different rows need "
            "too much memory. Seek smaller sets, or name fewer columns."
        )
    counts, by_column = find_minimal_uniques(table, max(widths), sizes > 1, largest, sets, worth)
    scores = counts @ worth
    total = float(scores.sum())
    dis = _spread(scores, int((sizes == 1).sum()), 2 * int((sizes == 2).sum()), d, fraction)
    return SudaScores(
        scores=scores[keys],
        dis=dis[keys],
        sizes=counts[keys],
        contributions=by_column.sum(axis=0)[np.argsort(places)] / max(total, 1.0),
    )


def _spread(scores: Floats, uniques: int, paired: int, d: int, fraction: float) -> Floats:
    """Spread the intrusion probability of the file over the records with a score."""
    special = scores > 0
    dis = np.zeros(len(scores))
    if not special.any():
        return dis
    if paired == 0 or fraction == 1:
        dis[special] = 1.0
        return dis
    odds = fraction * uniques / ((1 - fraction) * paired)
    power = scores[special] ** (1.4 - 0.05 * d)
    spread = odds * power * (1 / power).mean()
    dis[special] = spread / (1 + spread)
    return dis

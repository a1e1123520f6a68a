"""Record linkage: match released records to original records by distance.

An attacker who holds the original values of some people looks for the nearest released record of
each. Both tables are matrices on the same axes: standardised numbers, and codes of categories.

`record_linkage` and `interval_disclosure` need rows that correspond: released row i is about the
person of original row i. Where they do not, as in synthetic tables, `closeness`
compares how near the release comes to people in the table and to people not in it.

References:
    Domingo-Ferrer and Torra, "A quantitative comparison of disclosure control methods for
    microdata", in Confidentiality, Disclosure and Data Access, North-Holland 2001: distance-based
    record linkage and interval disclosure.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Estimate
from shoal.core._arrays import Bools, Floats, Ints
from shoal.errors import InputError
from shoal.metrics.attacks.result import Attack, attack
from shoal.metrics.intervals import median, wilson
from shoal.metrics.kernels.attacks import box_tree, nearest_boxes, share_hits
from shoal.metrics.uniqueness import distinct_rows

# Two distances are equal up to this share of themselves: they are sums in different orders.
_TIE = 1e-9


@dataclass(frozen=True)
class Closeness:
    """How near a release is to people in the table and to people not in it.

    Attributes:
        inside: median distance from people in the table to the nearest released record.
        outside: the same for people not in it.
        advantage: chance that a person in the table lies nearer than a person not in it, ties
            halved; 0.5 if distance says nothing about who is in the table.
        copies: an attack that says "in the table" of everybody whom a released record equals.
    """

    inside: Estimate
    outside: Estimate
    advantage: Estimate
    copies: Attack


def record_linkage(
    original: Floats,
    released: Floats,
    *,
    rng: np.random.Generator,
    discrete: ArrayLike | None = None,
    sample: int | None = None,
    confidence: float = 0.95,
) -> Attack:
    """Measure the share of people whose nearest released record is their own.

    If t released records tie for the least distance, the right one counts 1 / t, the chance of
    picking it at random. The baseline is 1 / n, a record picked blindly. There is no control: a
    person not in the table has no record to be found.

    Equal released records are found once and shared. By a tree, about O(n log n) for few axes;
    O(m n d) at worst, for many: sample then.

    Args:
        original: one row per person.
        released: rows that correspond, in the same space.
        rng: draws the sample.
        discrete: which columns are codes, as in `nearest`; none by default.
        sample: how many people to attack, drawn without replacement; None for all.
        confidence: of the interval.
    """
    x, y = (_space(rows) for rows in _corresponding(original, released))
    people = _draw_people(len(x), sample, rng)
    keys, first = distinct_rows(y)
    # People in the order of their own points are near in memory where they are near in space.
    people = people[np.argsort(keys[people], kind="stable")]
    y, sizes = y[first], np.bincount(keys)
    kinds, tree = _tree(y, discrete)
    scores = share_hits(y, kinds, sizes, x[people], keys[people], 2 * _TIE, *tree)
    return attack(
        (float(scores.sum()), len(people)),
        baseline=1 / len(keys),
        note=(
            f"Nearest of {len(keys):,} released records for {len(people):,} people; ties share the "
            "success. The baseline picks a record at random."
        ),
        confidence=confidence,
    )


def interval_disclosure(
    original: Floats,
    released: Floats,
    *,
    width: float = 0.05,
    outside: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Measure the share of records within a short interval around the released one.

    The interval of a value is the released one +- width times the released column's standard
    deviation (n - 1 in its denominator). A record is disclosed if at most `outside` of its values
    lie outside. A missing value, in either table, is not outside, and a record with no value
    present in both is not disclosed.

    sdcMicro's `dRisk` has `outside=1`: it counts a record with one value outside.

    References:
        Mateo-Sanz, Sebé and Domingo-Ferrer, "Outlier protection in continuous microdata masking",
        Privacy in Statistical Databases 2004, LNCS 3050: SDID.

    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> print(interval_disclosure(x, x))
    1.000 [0.510, 1.000]
    """
    x, y = _corresponding(original, released)
    if width < 0:
        raise InputError(f"The width of the interval must not be negative; got {width}.")
    known = ~(np.isnan(x) | np.isnan(y))
    half = np.array([width * _spread(column) for column in y.T])
    beyond = ((x < y - half) | (x > y + half)) & known
    disclosed = (beyond.sum(axis=1) <= outside) & known.any(axis=1)
    return wilson(int(disclosed.sum()), len(x), confidence)


def closeness(
    released: Floats,
    inside: Floats,
    outside: Floats,
    *,
    rng: np.random.Generator,
    discrete: ArrayLike | None = None,
    sample: int | None = 10_000,
    confidence: float = 0.95,
) -> Closeness:
    """Compare the distance to the closest record for people in the table and not in it.

    Rows need not correspond. The interval of the advantage A uses that its variance is at most
    A (1 - A) / min(m, n), so it is longer than needed.

    Args:
        released: the release, in the space of the people.
        inside: people in the table.
        outside: people not in it, drawn from the same population.
        rng: draws the samples.
        discrete: which columns are codes, as in `nearest`; none by default.
        sample: most people of either sort.
        confidence: of all intervals.

    References:
        Birnbaum and Klose, "Bounds for the variance of the Mann-Whitney statistic", Annals of
        Mathematical Statistics 28 (1957). doi:10.1214/aoms/1177706794
    """
    y = _space(released)
    if not len(y):
        raise InputError("The release has no rows, so there is no closest record.")
    y = y[distinct_rows(y)[1]]
    sides = []
    for people in (inside, outside):
        rows = _space(people)
        if rows.shape[1] != y.shape[1] or not len(rows):
            raise InputError(
                "Expected people in the table and people not in it, with the axes of the release."
            )
        drawn = rows[_draw_people(len(rows), sample, rng)]
        sides.append(nearest(y, drawn, discrete=discrete)[1][:, 0])
    near, far = sides
    ranks = _ranks(np.concatenate([near, far]))[: len(near)]
    beaten = float(ranks.sum()) - len(near) * (len(near) + 1) / 2
    share = min(max(1 - beaten / (len(near) * len(far)), 0.0), 1.0)
    fewest = min(len(near), len(far))
    tiny = _TIE * float(np.abs(y).max(initial=0.0))
    return Closeness(
        inside=median(near, confidence),
        outside=median(far, confidence),
        advantage=wilson(share * fewest, fewest, confidence),
        copies=attack(
            (int((near <= tiny).sum()), len(near)),
            baseline=0.0,
            control=(int((far <= tiny).sum()), len(far)),
            note="People to whom a released record is equal. The baseline names nobody.",
            confidence=confidence,
        ),
    )


def nearest(
    released: Floats, targets: Floats, *, discrete: ArrayLike | None = None, k: int = 1
) -> tuple[Ints, Floats]:
    """Find the k nearest released records of each target (rows), the nearest first, and distances.

    Ties go to the lowest index.

    Columns that are `discrete` hold codes: two categories are at distance 1, and -1, for a cell
    that is missing, at the root of a half from each.
    """
    kinds, tree = _tree(released, discrete)
    starts = np.zeros(len(targets), dtype=np.int64)
    index, squares = nearest_boxes(
        released, released + kinds, kinds, np.ones(len(kinds)), targets, starts, k, True, *tree
    )
    return index, np.sqrt(squares)


def _tree(points: Floats, discrete: ArrayLike | None) -> tuple[Bools, tuple[Ints | Floats, ...]]:
    """Return which columns are codes, and a tree of the points."""
    axes = points.shape[1]
    kinds = np.zeros(axes, bool) if discrete is None else np.asarray(discrete, dtype=bool)
    return kinds, box_tree(points, points + kinds, kinds, np.ones(axes))


def _spread(column: Floats) -> float:
    present = column[~np.isnan(column)]
    return float(present.std(ddof=1)) if present.size > 1 else 0.0


def _draw_people(people: int, sample: int | None, rng: np.random.Generator) -> Ints:
    if sample is None or sample >= people:
        return np.arange(people)
    if sample < 1:
        raise InputError(f"The number of people in the sample must be at least 1; got {sample}.")
    return np.sort(rng.choice(people, sample, replace=False)).astype(np.int64)


def _matrix(rows: Floats) -> Floats:
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError("Expected a matrix of records by at least one axis.")
    return matrix


def _space(rows: Floats) -> Floats:
    matrix = _matrix(rows)
    if not np.isfinite(matrix).all():
        raise InputError(
            "Distances need finite numbers; code a missing cell as a number of its own."
        )
    return matrix


def _corresponding(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    x, y = _matrix(original), _matrix(released)
    if x.shape != y.shape or not len(x):
        raise InputError(
            f"Rows must correspond: found {len(x):,} original and {len(y):,} released records"
            f" of {x.shape[1]} and {y.shape[1]} axes."
        )
    return x, y


def _ranks(values: Floats) -> Floats:
    """Rank from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place.ravel()]
    return ranks

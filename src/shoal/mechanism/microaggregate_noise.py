"""Noise on microaggregates: one draw for each group, shared by its records.

All numbers are whole: cells lie on a public `Grid` of 2^bits steps, group sums of cells are
exact, and discrete Laplace noise is added to the sums. Dividing a noisy sum by the group's size is
post-processing, so that noise of scale S / epsilon on a sum is noise of scale
S / (|C| epsilon) on the mean: what the papers add, scaled to each group's own size.

How far one record can move the vector of all group sums, S, depends on how groups form:

    fixed groups           W      the record moves its own group's sum by at most the width W
    blocks by rank         W      `block sums`: see the proof below
    insensitive groups     g W    each of the g groups changes in at most one record

Proof for blocks by rank (Lemma 1 of sanchez2014, for sums). Let x be sorted and y be sorted after
one value changed, by at most W, upwards without loss of generality. Then x_(i) <= y_(i) for all
i, and sum_i (y_(i) - x_(i)) is the change itself, at most W. Block boundaries depend on ranks
alone, so that the block sums move upwards and by at most W in all. Equal values do no harm:
the sorted vector does not know who is who.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import isotonic_regression

from shoal.core import SELECTION, Neighbours, Noise, Partition, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.noisy_answers import noisy_answers


@dataclass(frozen=True)
class Purchase:
    """What is bought for which price: the public side of a draw.

    Attributes:
        target: the column, for the accounting.
        epsilon: the price.
        touched: how many groups one record can change; see the table above.
    """

    target: str
    epsilon: Fraction
    touched: int = 1


def noisy_means(
    units: Ints, partition: Partition, *, steps: int, purchase: Purchase, noise: Noise
) -> tuple[Floats, PrivacyLoss]:
    """Mean of each group with noise, in grid units, clamped to the grid.

    Args:
        units: one whole number a record, 0 to `steps`.
        partition: the groups.
        steps: width of the grid.
        purchase: the price, and how many groups one record can change by the width.
        noise: where draws come from.
    """
    sums = np.bincount(partition.labels, units, minlength=len(partition)).astype(np.int64)
    return means_of_sums(sums, partition.sizes, steps=steps, purchase=purchase, noise=noise)


def means_of_sums(
    sums: Ints, sizes: Ints, *, steps: int, purchase: Purchase, noise: Noise
) -> tuple[Floats, PrivacyLoss]:
    """The same, from the sums and the sizes of the groups: sums of blocks add up."""
    noisy, privacy_loss = noisy_answers(
        sums,
        sensitivity=steps * purchase.touched,
        epsilon=purchase.epsilon,
        target=purchase.target,
        noise=noise,
    )
    return np.clip(noisy / sizes, 0, steps), privacy_loss


def chosen_categories(
    codes: Ints,
    partition: Partition,
    *,
    distances: Ints,
    purchase: Purchase,
    noise: Noise,
) -> tuple[Ints, PrivacyLoss]:
    """Category of each group, chosen privately for a small total distance to its members.

    A category's score is minus its total distance to the group's records. One record moves
    a score by at most the largest distance D, and it changes `touched` groups, each of which
    selects at the price epsilon / touched.

    Args:
        codes: category of each record, 0 to c - 1.
        partition: the groups.
        distances: whole distances between categories, c by c.
        purchase: the price, and how many groups one record can change.
        noise: where draws come from.
    """
    count = len(distances)
    cells = np.bincount(partition.labels * count + codes, minlength=len(partition) * count)
    return categories_of_counts(
        cells.reshape(len(partition), count), distances=distances, purchase=purchase, noise=noise
    )


def categories_of_counts(
    cells: Ints, *, distances: Ints, purchase: Purchase, noise: Noise
) -> tuple[Ints, PrivacyLoss]:
    """The same, from how often each group has each category: counts of blocks add up."""
    scores = -(cells @ distances)
    reach = Fraction(max(int(distances.max(initial=0)), 1))
    each = purchase.epsilon / purchase.touched
    chosen = noise.select_many(scores, sensitivity=reach, epsilon=each)
    privacy_loss = PrivacyLoss(
        mechanism=SELECTION,
        target=purchase.target,
        sensitivity=reach * purchase.touched,
        scale=2 * reach / each,
        epsilon=purchase.epsilon,
        neighbours=Neighbours.CHANGE_ONE,
        draws=len(cells),
    )
    return chosen, privacy_loss


def isotonic(means: Floats, sizes: Ints) -> Floats:
    """Least-squares non-decreasing fit, weighted by group size: post-processing.

    For groups in a public order in which the exact means do not decrease, such as blocks
    by rank, it removes noise and costs nothing.
    """
    fitted: Floats = isotonic_regression(means, weights=sizes.astype(np.float64)).x
    return fitted

"""Add noise to microaggregates: one draw per group, shared by its records.

All numbers are whole: cells lie on a public `FixedPointGrid` of 2^bits steps, group sums of cells
are exact, and discrete Laplace noise is added to the sums. Dividing a noisy sum by the group's size
is post-processing, so noise of scale S / epsilon on a sum is noise of scale S / (|C| epsilon) on
the mean: what the papers add, scaled to each group's own size.

How far one record can move the vector of all group sums, S, depends on how groups form:

    fixed groups           W      the record moves its own group's sum by at most the width W
    blocks by rank         W      `block sums`: see the proof below
    insensitive groups     g W    each of the g groups changes in at most one record

Proof for blocks by rank (Lemma 1 of sanchez2014, for sums). Let x be sorted and y be sorted after
one value changed, by at most W, upwards without loss of generality. Then x_(i) <= y_(i) for all
i, and sum_i (y_(i) - x_(i)) is the change itself, at most W. Block boundaries depend on ranks
alone, so the block sums move upwards and by at most W in all. Equal values do no harm:
the sorted vector does not know who is who.

In mathematical notation: docs/explanation/proofs.md, "Blocks by rank".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import SELECTION, Neighbours, Noise, Partition, Price, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.mechanism.fixed_point import FixedPointGrid
from shoal.mechanism.noisy_answers import noisy_answers


@dataclass(frozen=True)
class Purchase:
    """A budget for one column: the public parameters of a draw.

    Attributes:
        target: the column, for the accounting.
        epsilon: the privacy parameter.
        touched: how many groups one record can change; see the table above.
    """

    target: str
    epsilon: Fraction
    touched: int = 1


def noise_on_groups(
    X: ArrayLike,
    partition: Partition,
    *,
    bounds: Mapping[str, tuple[float, float]],
    epsilon: Fraction | float,
    noise: Noise,
    epsilons: Sequence[Fraction | float] | None = None,
) -> tuple[Floats, tuple[PrivacyLoss, ...]]:
    """Replace each record by the mean of its group with noise: soriacomas2017, Algorithm 1.

    All records of a group C share one draw per column, of scale

        (sum of the widths) / (|C| epsilon),    or    width / (|C| epsilon_j)  with `epsilons`,

    and means are clamped to the bounds. Groups may come from any algorithm, or from anywhere:
    what the result promises depends on them. If they do not depend on X, as groups by public facts
    do, the release is epsilon-differentially private for the values of X, whoever sees the groups
    (Proposition 2 and parallel composition). If they follow X, that holds provided that both
    tables have the same groups, and is refuted for the records of X: see `mdav-laplace`. The
    result is an array, not a release, and carries no claim.

    Args:
        X: records by columns, finite numbers, in the order of `bounds`; values outside are
            clamped.
        partition: the groups.
        bounds: public bounds of each column, by name.
        epsilon: the price of all columns together.
        noise: where draws come from; `shoal.hazmat.noise.OpenDPNoise()` is what releases use.
        epsilons: the price of each column, in place of shares by width; together `epsilon`.

    Returns:
        The noisy records, and what each column cost.
    """
    values = np.asarray(X, dtype=np.float64)
    grids = [FixedPointGrid(Fraction(low), Fraction(high)) for low, high in bounds.values()]
    total = Fraction(epsilon)
    if values.shape != (len(partition.labels), len(grids)):
        raise InputError(
            f"The table X must have a row for each of the {len(partition.labels)} labels and a "
            f"column for "
            f"each of the {len(grids)} bounds; found the shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError("The table X must be finite; some of its cells are missing or infinite.")
    widths = [Fraction(grid.high) - Fraction(grid.low) for grid in grids]
    prices = [total * width / sum(widths) for width in widths]
    if epsilons is not None:
        prices = [Fraction(price) for price in epsilons]
    if len(prices) != len(grids) or min(prices) <= 0 or sum(prices) != total:
        raise InputError(
            f"The argument epsilons must be {len(grids)} positive numbers, one per column, with "
            f"a sum of "
            f"{epsilon}; epsilon must be positive."
        )
    released, privacy_losses = np.empty_like(values), []
    for j, (name, grid) in enumerate(zip(bounds, grids, strict=True)):
        means, privacy_loss = noisy_means(
            grid.encode(values[:, j]),
            partition,
            steps=grid.steps,
            purchase=Purchase(name, prices[j]),
            noise=noise,
            width=widths[j],
        )
        released[:, j] = grid.decode(means)[partition.labels]
        privacy_losses.append(privacy_loss)
    return released, tuple(privacy_losses)


def noisy_means(
    units: Ints,
    partition: Partition,
    *,
    steps: int,
    purchase: Purchase,
    noise: Noise,
    width: Fraction | None = None,
) -> tuple[Floats, PrivacyLoss]:
    """Return the noisy mean of each group, in grid units, clamped to the grid.

    Args:
        units: one whole number per record, 0 to `steps`.
        partition: the groups.
        steps: width of the grid.
        purchase: the price, and how many groups one record can change by the width.
        noise: where draws come from.
        width: of the grid in the column's unit, if that is public: the loss then states the scale
            of the noise in that unit too.
    """
    sums = np.bincount(partition.labels, units, minlength=len(partition)).astype(np.int64)
    return means_of_sums(
        sums, partition.sizes, steps=steps, purchase=purchase, noise=noise, width=width
    )


def means_of_sums(
    sums: Ints,
    sizes: Ints,
    *,
    steps: int,
    purchase: Purchase,
    noise: Noise,
    width: Fraction | None = None,
) -> tuple[Floats, PrivacyLoss]:
    """Compute `noisy_means` from the sums and sizes of the groups; sums of blocks add up."""
    noisy, privacy_loss = noisy_answers(
        sums,
        reach=steps * purchase.touched,
        price=Price(purchase.epsilon),
        target=purchase.target,
        noise=noise,
    )
    if width is not None:
        privacy_loss = replace(privacy_loss, unit_scale=float(privacy_loss.scale * width / steps))
    return np.clip(noisy / sizes, 0, steps), privacy_loss


def choose_categories(
    codes: Ints,
    partition: Partition,
    *,
    distances: Ints,
    purchase: Purchase,
    noise: Noise,
) -> tuple[Ints, PrivacyLoss]:
    """Choose each group's category privately, with a small total distance to its members.

    A category's score is minus its total distance to the group's records. One record moves a score
    by at most the largest distance D, and it changes `touched` groups, each of which selects with
    epsilon / touched.

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
    """Compute `choose_categories` from category counts by group; counts of blocks add up."""
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
    """Fit non-decreasing means by least squares, weighted by group size: post-processing.

    For groups in a public order in which the exact means do not decrease, such as blocks
    by rank, it removes noise and costs nothing.
    """
    fitted: Floats = scipy.optimize.isotonic_regression(means, weights=sizes.astype(np.float64)).x
    return fitted

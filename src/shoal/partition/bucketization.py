"""t-closeness by bucketization: classes that hold every bucket in nearly its overall share."""

import math
import operator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition._input import group_size
from shoal.partition.kernels.bucketization import Classes, Forest, extendable, fill
from shoal.partition.kernels.mdav_tree import EMPTY, plant
from shoal.partition.kernels.shared import MixedSpace
from shoal.partition.merging import merge_groups
from shoal.partition.mixed_records import Scaled, mixed_records, scale

LEAF = 32
"""Records in a leaf of a bucket's kd-tree."""
REACH = 4096
"""How much larger than k, or than balanced classes, the large classes may be."""
TRIES = 3 * REACH
"""The most pairs of a small and a large size that are examined."""
Number = Fraction | Decimal | int


@dataclass(frozen=True, eq=False)
class Bucketed:
    """Equivalence classes, with the distance of their bucket shares from the whole table's.

    Attributes:
        partition: the classes.
        counts: records by class and bucket.
        achieved: the largest exact ratio of a bucket's share in a class to that in the table, or
            its inverse.
    """

    partition: Partition
    counts: Ints
    achieved: Fraction

    @property
    def trivial(self) -> bool:
        """Whether there is a single class, which trivially equals the table."""
        return len(self.partition) == 1


@dataclass(frozen=True)
class Sizes:
    """The number of classes and their sizes.

    Attributes:
        small: size of the smaller classes.
        step: how much larger the others are.
        smaller: number of the smaller classes.
        larger: number of the larger ones.
    """

    small: int
    step: int
    smaller: int
    larger: int

    @property
    def number(self) -> int:
        """Number of classes."""
        return self.smaller + self.larger


def bucketization(
    X: ArrayLike | MixedRecords,
    bucket: ArrayLike,
    k: int,
    t: Number,
    *,
    most: int | None = None,
    progress: Progress = silent,
) -> Bucketed:
    """Form classes of k or more in which no bucket's share is off by more than a factor of t.

    With N records, b_j of them in bucket j, a class of e records may hold c of bucket j if

        ceil(e p_j / t) <= c <= floor(e p_j t),    p_j = b_j / N,

    which is 1/t <= (c/e) / p_j <= t for whole c. Our copy of the paper reads ceil in both
    conditions; a cap of ceil would be too high: e = 5, p = 1/3, t = 2 has 10/3, and 4 of 5
    is 2.4 times 1/3.

    1. `class_sizes` finds how many classes such counts exist for.
    2. While classes remain to be formed, the seed is the record farthest from the mean of the
       rest. Its class takes the nearest record, then the next one, skipping records of
       a bucket that may give no more: beyond the cap, or because the other buckets or the
       classes to come could then not be filled. Among all counts that leave the rest
       feasible this has the least sum of squared distances to the seed. Smaller classes come
       first; the last class is what remains.
    3. The classes are verified in fractions, and one that failed would be merged with its nearest
       (`merge_close`); by construction none does.

    The table itself is t-close to itself, so there is always an answer: one class in the worst case
    (`trivial`). t = 1 requires shares that are exactly equal.

    Distances are Euclidean: scale the columns first. Ties go to the lowest index. Cost: about
    n^1.3 over kd-trees where few columns carry the spread, n^2 / e at worst, times the number
    of buckets; memory O(n d).

    Not promised: the largest possible number of classes, or the least sum of squares; that a
    table with one record changed has similar classes; anything about values within a bucket.

    Args:
        X: records by columns, the quasi-identifiers; any finite numbers, or `MixedRecords`; not
            changed.
        bucket: bucket of each record, from 0, none empty; see `rank_buckets`.
        k: least class size, at least 2.
        t: largest ratio, at least 1, exact: Fraction("1.5"), not the float 1.5.
        most: largest number of classes; None for as many as possible. The paper has l classes
            that emphasise each of b buckets, l b in all.
        progress: called now and then with the number of records in classes.

    References:
        Domingo-Ferrer and Soria-Comas, "From t-closeness to differential privacy and vice
        versa in data anonymization", Knowledge-Based Systems 74 (2015), sections 6.2 and 6.3.

    >>> classes = bucketization([[0], [1], [10], [11]], [0, 1, 0, 1], 2, 1)
    >>> classes.partition.labels, classes.achieved
    (array([0, 0, 1, 1]), Fraction(1, 1))
    """
    records = mixed_records(X)
    k = group_size(k, len(records))
    ratio = _ratio(t)
    codes, totals = _count_buckets(bucket, len(records))
    sizes = class_sizes(totals, k, ratio, most=most)
    labels = _fill(scale(records), codes, _classes(sizes, totals, ratio), progress)
    return merge_close(records, labels, codes, ratio)


def class_sizes(totals: ArrayLike, k: int, t: Number, *, most: int | None = None) -> Sizes:
    """Find how many t-close classes of k or more there can be, and of which sizes.

    There are at most two sizes. Three divisions of the N records are tried, and the one with the
    most classes is taken, ties by the order below:

    1. multiples of u = N / gcd(b_1, b_2, ...), in which every share can be exact. They are always
       feasible, and all that t = 1 allows: (N / u) // ceil(k / u) classes.
    2. balanced sizes, which differ by at most 1, for as many classes as are feasible. That ends
       at the latest with classes of N t / (b_min (t - 1)) records, since every fractional
       count then has a whole one within the bounds above and below it.
    3. small classes, of one of the three least sizes that can be t-close at all, and as few as
       possible of one larger size that take up what is left: where a size such as 4 allows
       equal shares and 5 does not.

    Feasible means that whole counts within the bounds of `bucketization` exist for all classes
    together: a minimum cut, of which there are only eight candidates, because classes of one size
    can be taken together.

    Cost: at most the number of buckets times N / k or, if larger, a few times 10^4.

    Not promised: that no division into more sizes has more classes.

    Args:
        totals: records in each bucket, all at least 1.
        k: least class size, at most their sum.
        t: largest ratio, at least 1.
        most: largest number of classes; None for no limit.

    >>> class_sizes([4, 4, 4], 4, Fraction(3, 2)).number
    3
    >>> class_sizes([501, 502], 3, Fraction("1.05"))
    Sizes(small=4, step=19, smaller=245, larger=1)
    """
    ratio = _ratio(t)
    sizes = np.array(totals, np.int64)  # a copy: kernels would be compiled again for read-only ones
    if sizes.ndim != 1 or not sizes.size or sizes.min() < 1:
        raise InputError(
            "The argument totals must be whole numbers of at least 1, the number "
            "of records in each bucket."
        )
    n = int(sizes.sum())
    k = group_size(k, n)
    unit = n // math.gcd(*sizes.tolist())
    parts = n // unit
    limit = n if most is None else most
    if limit < 1:
        raise InputError(
            f"The argument most, the largest number of classes, must be a whole "
            f"number of at least 1; found {most}."
        )
    even = min(parts // -(-k // unit), limit)
    best = Sizes(parts // even * unit, unit, even - parts % even, parts % even)
    if ratio > 1:
        best = _balance(sizes, k, ratio, best.number, limit) or best
        best = (_uneven(sizes, k, ratio, best.number) if most is None else None) or best
    return best


def count_bounds(e: int, totals: ArrayLike, t: Number) -> tuple[list[int], list[int]]:
    """Return the least and largest number of each bucket's records in a t-close class of e records.

        ceil(e p_j / t) <= c <= floor(e p_j t),    p_j = b_j / N

    in whole numbers. A class cannot be t-close if a bound is above its counterpart.

    >>> count_bounds(5, [5, 5, 5], 2)
    ([1, 1, 1], [3, 3, 3])
    """
    sizes = np.asarray(totals).tolist()
    n = sum(sizes)
    up, down = _ratio(t).as_integer_ratio()
    low = [-(-e * b * down // (n * up)) for b in sizes]
    high = [min(e * b * up // (n * down), e) for b in sizes]
    return low, high


def merge_close(
    X: ArrayLike | MixedRecords, labels: ArrayLike, bucket: ArrayLike, t: Number
) -> Bucketed:
    """Merge classes that are not t-close with near ones, until all are.

    All classes that fail merge at once (`merge_groups`), and what they make is judged again. The
    union of t-close classes is t-close, and the whole table is: it ends. Ratios are compared as
    fractions. Classes are numbered as before, a merged one by the lower number, without gaps.
    Cost: a search of a kd-tree for each class that fails, in at most log2(classes) rounds.

    Args:
        X: records by columns, or `MixedRecords`; not changed.
        labels: class of each record, from 0 without gaps, made by any method.
        bucket: bucket of each record, from 0, none empty.
        t: largest ratio, at least 1.

    >>> merge_close([[0], [1], [5], [6]], [0, 0, 1, 1], [0, 0, 1, 1], 2).partition.labels
    array([0, 0, 0, 0])
    """
    records = mixed_records(X)
    most = _ratio(t)
    codes, totals = _count_buckets(bucket, len(records))
    partition = Partition(np.asarray(labels))
    if len(partition.labels) != len(records):
        raise InputError(
            f"The labels of the partition must give the class of each record; found "
            f"{len(partition.labels)} for "
            f"{len(records)} records."
        )
    while True:
        counts = np.zeros((len(partition), len(totals)), np.int64)
        np.add.at(counts, (partition.labels, codes), 1)
        reached = _achieved_ratios(counts, totals)
        failing = np.array([ratio > most for ratio in reached])
        if not failing.any():
            return Bucketed(partition, counts, Fraction(max(reached)))
        partition = merge_groups(records, partition, failing)


def _ratio(t: Number) -> Fraction:
    if isinstance(t, float):
        raise InputError(
            'The t of t-closeness must be exact: give Fraction("1.5") or Decimal("1.5"), no float.'
        )
    most = Fraction(t)
    if most < 1:
        raise InputError(
            f"The t of t-closeness must be at least 1, because it is a ratio of shares; found {t}."
        )
    return most


def _count_buckets(bucket: ArrayLike, n: int) -> tuple[Ints, Ints]:
    """Check the buckets of the records, and count them."""
    try:
        buckets = Partition(np.asarray(bucket))
    except InputError:
        raise InputError(
            "The argument bucket must number the bucket of each record from 0, "
            "without skipping a number."
        ) from None
    if len(buckets.labels) != n:
        raise InputError(
            f"The argument bucket must give the bucket of each record; found "
            f"{len(buckets.labels)} for {n} "
            "records."
        )
    # A copy, because kernels would be compiled again for read-only arrays.
    return buckets.labels.copy(), buckets.sizes.copy()


def _balance(totals: Ints, k: int, t: Fraction, above: int, limit: int) -> Sizes | None:
    """Find the most classes of balanced sizes, if they are more than `above`."""
    n = int(totals.sum())
    possible: dict[int, bool] = {}
    g = min(n // k, int(totals.min()), limit)
    while g > above:
        sizes = Sizes(n // g, 1, g - n % g, n % g)
        for e in (sizes.small, sizes.small + 1):
            if e not in possible:
                possible[e] = _alone(e, totals, t)
        if not possible[sizes.small]:
            g = n // (sizes.small + 1)  # the next number of classes that are all larger
            continue
        if (possible[sizes.small + 1] or not sizes.larger) and _feasible(sizes, totals, t):
            return sizes
        g -= 1
    return None


def _uneven(totals: Ints, k: int, t: Fraction, above: int) -> Sizes | None:
    """Find many small classes and fewer large ones, if they are more than `above`.

    For two sizes, the number of large classes goes up in steps. Large classes have room for what
    the small ones leave over, so the least feasible number is found by bisection.
    """
    n, most = int(totals.sum()), int(totals.min())
    mean = n // above  # a possible size, if there are balanced classes
    reach = sorted({*range(k, k + REACH), *range(mean, mean + min(k, REACH))})
    reach = [e for e in reach if e <= n]
    least = next((e for e in reach if _alone(e, totals, t)), n)
    if above >= min(n // least, most):
        return None
    possible = [e for e in reach if _alone(e, totals, t)]
    best = None
    pairs = ((small, large) for small in possible[:3] for large in possible if large > small)
    for small, large in islice(pairs, TRIES):
        step = small // math.gcd(small, large)
        few = next((y for y in range(min(step, n // large + 1)) if not (n - y * large) % small), -1)
        if few < 0:
            continue
        fewest = Sizes(small, large - small, (n - few * large) // small, few)
        lost = step * (large - small) // small  # classes lost per step
        steps = min((fewest.number - above - 1) // lost, (n // large - few) // step)
        if steps < 0 or not _feasible(_shift(fewest, steps * step), totals, t):
            continue
        low, high = -1, steps
        while high - low > 1:
            middle = (low + high) // 2
            feasible = _feasible(_shift(fewest, middle * step), totals, t)
            low, high = (low, middle) if feasible else (middle, high)
        best = _shift(fewest, high * step)
        above = best.number
    return best


def _shift(sizes: Sizes, more: int) -> Sizes:
    """Replace small classes by `more` large ones."""
    large = sizes.small + sizes.step
    return replace(
        sizes,
        smaller=sizes.smaller - more * large // sizes.small,
        larger=sizes.larger + more,
    )


def _alone(e: int, totals: Ints, t: Fraction) -> bool:
    """Whether counts exist for one class of e records, ignoring the others."""
    low, high = count_bounds(e, totals, t)
    return all(map(operator.le, low, high)) and sum(low) <= e <= sum(high)


def _feasible(sizes: Sizes, totals: Ints, t: Fraction) -> bool:
    """Whether counts exist for all classes together."""
    classes = _classes(sizes, totals, t)
    number = classes.left[:, None]
    supply = classes.left * classes.size
    return extendable(supply, classes.low * number, classes.high * number, totals)


def _classes(sizes: Sizes, totals: Ints, t: Fraction) -> Classes:
    """Make the arrays of the classes to be formed, with the bounds of their counts."""
    size = (sizes.small, sizes.small + sizes.step)
    bounds = [count_bounds(e, totals, t) for e in size]
    return Classes(
        np.array(size),
        np.array((sizes.smaller, sizes.larger)),
        np.array([low for low, _ in bounds]),
        np.array([high for _, high in bounds]),
        totals.copy(),
    )


def _fill(records: Scaled, bucket: Ints, classes: Classes, progress: Progress) -> Ints:
    """Fill the classes; rebuild the trees whenever half of the records have left."""
    Z, space = records
    n = len(Z)
    labels = np.full(n, -1, np.int64)
    rest = np.arange(n)
    last = int(classes.left.sum()) - 1
    g = 0
    while g < last:
        filled = np.full(len(rest), -1, np.int64)
        part, code = Z[rest], bucket[rest]
        forest = _forest(part, space, code, len(classes.rest))
        until = len(rest) // 2
        while g < last and int(classes.rest.sum()) > until:
            rounds = max(1, min(1024, until // int(classes.size[0])))
            g = fill(part, space, code, forest, classes, filled, g, rounds)
            progress("filling classes", n - int(classes.rest.sum()), n)
        labels[rest] = filled
        rest = rest[filled < 0]
    labels[rest] = g
    progress("filling classes", n, n)
    return labels


def _forest(Z: Floats, space: MixedSpace, bucket: Ints, number: int) -> Forest:
    """Build a tree for each bucket."""
    d = Z.shape[1]
    origin = Z.mean(axis=0)
    where = np.empty(len(Z), np.int64)
    trees, leaves, first = [], [0], [0]
    for j in range(number):
        members = np.flatnonzero(bucket == j)
        tree = plant(Z[members], space, LEAF, origin)
        where[members] = tree.where
        lowest = tree.nodes[:, 2 * d + 1]
        used = lowest[1:] < EMPTY  # node 0 does not exist
        lowest[1:][used] = members[lowest[1:][used].astype(np.int64)]
        leaves.append(leaves[-1] + len(tree.size))
        first.append(first[-1] + len(tree.nodes))
        trees.append(tree._replace(who=members[tree.who]))
    return Forest(
        np.concatenate([tree.points for tree in trees]),
        np.concatenate([tree.who for tree in trees]),
        np.concatenate([tree.size for tree in trees]),
        where,
        np.concatenate([tree.nodes for tree in trees]),
        origin,
        np.array(leaves),
        np.array(first),
    )


def _achieved_ratios(counts: Ints, totals: Ints) -> list[Fraction | float]:
    """Return the largest ratio of shares in each class, either way; infinite without a bucket."""
    n = int(totals.sum())
    size = counts.sum(axis=1)
    g, b = counts.shape
    triples = np.column_stack((np.repeat(size, b), counts.ravel(), np.tile(totals, g)))
    distinct, which = np.unique(triples, axis=0, return_inverse=True)
    ratios = [_off(e, c, held, n) for e, c, held in distinct.tolist()]
    order = sorted(range(len(ratios)), key=ratios.__getitem__)
    place = np.argsort(order)
    worst = place[which.ravel()].reshape(g, b).max(axis=1)
    return [ratios[order[at]] for at in worst.tolist()]


def _off(e: int, c: int, own: int, n: int) -> Fraction | float:
    """Return the ratio of c/e and own/n, or its inverse, whichever is larger."""
    if c == 0:
        return math.inf
    ratio = Fraction(c * n, e * own)
    return max(ratio, 1 / ratio)

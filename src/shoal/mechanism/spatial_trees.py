"""Private spatial trees: boxes cut at noisy medians or midpoints, with noisy counts.

Space is a product of axes, each with cells 0, 1, ..., c - 1: days, categories in a public order, or
steps of a public grid. A box holds the cells lower <= x < upper of each axis. The root holds all.
Boxes are cut in two, again and again, and after every `stride` cuts all boxes are counted with
noise: a level. On the last level each box may be counted by confidential value instead, as one
level more, so the histogram takes part in the least squares of `consistent_counts`. Or the last
level alone is counted, by value if there is one (`leaves_only`): no box is left whole then, since
nothing says how many people it has.

Which axis is cut is public: the axes take turns, and one that has a single cell left in the box
lets the next one go first. Where it is cut is public too for the quadtree, the middle; for the
kd-tree it is chosen privately among public positions, by permute-and-flip on the score

    -|2 (records of the box below the position) - (records of the box)|,

which is largest at a median. A box whose noisy count is below a public threshold is not cut again.
It stays, and is counted again on each level: its share of the level's budget is paid anyway, and
least squares uses every count.

Proof that `grow` costs epsilon between tables that differ by one added record (add-remove). Fix
all that was drawn so far: then the boxes are fixed, the records fall into them as disjoint
parts, and the record in question lies in exactly one box.

    counts of a level      one count differs, by 1: discrete Laplace noise of scale 1 / e costs e
    histogram              one cell of one box differs, by 1: the same
    cuts of a level        one box's scores differ: the count below and the count of the box both
                           grow by 1 or only the latter does, so 2 r - m moves by exactly 1
                           and each score by at most 1; permute-and-flip at sensitivity 1 costs e.
                           The other boxes choose alike: parallel composition

What is drawn next may depend on what was drawn, never on the records: which boxes are cut follows
from noisy counts and chosen cuts. Height and prices are settled before the first draw, from public
numbers or from a noisy total that was paid for, and the prices add up to epsilon. So the
probabilities of any sequence of draws differ by a factor of at most exp(epsilon) (sequential
composition, step by step on fixed earlier outputs). If leaves alone are counted, the levels are
one: its counts have all that medians leave, and all of epsilon where boxes are cut in the middle. A
step in which nothing is left to draw costs nothing, and its price is booked all the same; how many
draws a step takes follows from outputs. If a record changes its values instead, and the number of
records is public, that is a removal and an addition: 2 epsilon. Everything after the draws is
post-processing. The argument for trees of full height is Cormode et al.'s; thresholds with boxes
that are counted again, and permute-and-flip in place of the exponential mechanism, are ours,
unreviewed.

Not promised: a box may hold any number of people, also one or none. The time of a run depends on
the records.

Decisions where the papers leave a choice:

- Which levels. The 2013 paper adds noise to the histograms of the leaves and mentions no other
  counts: `leaves_only`. The one of 2012 counts all levels, for queries that hold whole branches.
- Levels. The noise of a level counts in proportion to the boxes n_l that the border of a query
  meets; sum n_l / e_l^2 is least, for a given sum of e_l, at e_l ~ n_l^(1/3). After k cuts of d
  axes in turn n_l ~ 2^(k (1 - 1/d)), so e_l ~ 2^(k (1 - 1/d) / 3): 2^(1/3) a level for a
  quadtree of two axes, as in the paper. The histogram is one level more, after one cut more.
- Medians share their part of epsilon in equal parts over the cuts.
- A wide axis offers at most 64 positions, spread evenly over the box. A hierarchy is cut at
  the borders of its largest branches first.
- Ties of permute-and-flip are even chances; the middle of an uneven number of cells is the lower.

In mathematical notation: docs/explanation/proofs.md, "Trees of a stated height".

References:
    Cormode, Procopiuc, Shen, Srivastava, Yu, "Differentially private spatial decompositions",
    ICDE 2012. doi:10.1109/ICDE.2012.16
    Cormode, Procopiuc, Shen, Srivastava, Yu, "Empirical privacy and empirical utility of
    anonymized data", ICDE Workshops 2013: the histogram of confidential values in each leaf.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from shoal.core import SELECTION, Neighbours, Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.consistent_counts import CountFit, Level, fit_levels, laplace_variance
from shoal.mechanism.noisy_answers import noisy_answers
from shoal.mechanism.records import HeldWalk, Walk

MOST_POSITIONS = 64
"""Largest number of positions among which a median is chosen."""
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class SpatialAxis:
    """One axis of the space.

    Attributes:
        cells: its number of cells.
        heights: between each cell and the next, how far up the hierarchy the border reaches; a
            box is cut at its highest borders only. Without it, all borders are alike.
    """

    cells: int
    heights: Ints | None = None


@dataclass(frozen=True)
class Design:
    """The parameters of a tree: public, or computed from noisy numbers.

    Attributes:
        epsilon: price of the tree for add-remove neighbours.
        height: number of cuts above a box of the last level, at least 1.
        stride: number of cuts between one count and the next.
        structure: share of epsilon that medians take; with 0, boxes are cut in the middle.
        leaves_only: no level above the last is counted, so the last has all that medians leave.
        patience: a box is cut further if its noisy count is at least this many standard
            deviations of a noisy count on the next level; none to cut all.
    """

    epsilon: Fraction
    height: int
    stride: int = 1
    structure: Fraction = Fraction(0)
    leaves_only: bool = False
    patience: float | None = 1.0

    def levels(self, *, histogram: bool) -> tuple[int, ...]:
        """Number the cuts after which boxes are counted; the histogram comes one cut later."""
        if self.leaves_only:
            return (self.height + histogram,)
        places = (*range(self.stride, self.height, self.stride), self.height)
        return (*places, self.height + 1) if histogram else places


@dataclass(frozen=True)
class Prices:
    """The epsilon of each cut, the same for all, and of each level."""

    cut: Fraction
    levels: tuple[Fraction, ...]


@lru_cache(maxsize=64)
def prices(design: Design, dimensions: int, *, histogram: bool) -> Prices:
    """Split epsilon over the cuts and the levels, exactly.

    >>> design = Design(Fraction(1), height=4, stride=2, structure=Fraction(1, 5))
    >>> split = prices(design, 2, histogram=True)
    >>> [f"{float(price):.3f}" for price in split.levels], 4 * split.cut + sum(split.levels)
    (['0.218', '0.274', '0.308'], Fraction(1, 1))
    """
    rate = (1 - 1 / dimensions) / 3
    places = design.levels(histogram=histogram)
    weights = [Fraction(round(1000 * 2 ** (rate * place))) for place in places]
    cuts = design.epsilon * design.structure
    counts = design.epsilon - cuts
    return Prices(
        cut=cuts / design.height,
        levels=tuple(counts * weight / sum(weights) for weight in weights),
    )


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """The measurements of a tree.

    Attributes:
        lower: for each box of the last level, its first cell on each axis.
        upper: the first cell beyond.
        levels: the counts, the root's first; the last may be the histograms, box by box.
    """

    lower: Ints
    upper: Ints
    levels: tuple[Level, ...]
    privacy_losses: tuple[PrivacyLoss, ...]

    def estimates(self, fit: CountFit = CountFit.NON_NEGATIVE) -> tuple[float, Floats]:
        """Estimate the number of records, and the counts of the boxes by confidential value."""
        numbers = fit_levels(self.levels, fit)
        return float(numbers[0][0]), numbers[-1].reshape(len(self.lower), -1)


UNKNOWN_TOTAL = Level(np.zeros(1, np.int64), np.zeros(1, np.int64), np.inf)
"""The root of a tree whose number of records is neither public nor measured."""


def known_total(records: int) -> Level:
    """Make the root of a tree whose number of records is public."""
    return Level(np.zeros(1, np.int64), np.array([records]), 0.0)


def noisy_total(records: int, epsilon: Fraction, noise: Noise) -> tuple[Level, PrivacyLoss]:
    """Make the root of a tree whose number of records is measured with noise."""
    total, privacy_loss = _count_noisily(np.array([records]), epsilon, "number of records", noise)
    return Level(np.zeros(1, np.int64), total, _variance(epsilon)), privacy_loss


def grow(
    cells: Ints | Walk,
    axes: Sequence[SpatialAxis],
    *,
    values: Ints | None = None,
    bins: int = 1,
    histogram: bool | None = None,
    root: Level,
    design: Design,
    noise: Noise,
    progress: Progress = silent,
) -> MeasuredTree:
    """Cut space into boxes and count the records in them, privately.

    Args:
        cells: one row per record, one column per axis; or blocks of records that walk (`Records`).
        axes: the space, public.
        values: confidential value of each record, 0 to bins - 1; none to count records alone.
        bins: how many values there are.
        histogram: whether values are counted, where the records that walk have them.
        root: the number of records, known or noisy.
        design: height, prices, thresholds.
        noise: where draws come from.
        progress: called after each cut.

    Cost: for each cut a pass over the records, and a sort of them where medians are chosen;
    a draw for each box and level, and for each box and value on the last.
    """
    walk = HeldWalk(Records(cells, values)) if isinstance(cells, np.ndarray) else cells
    counted = values is not None if histogram is None else histogram
    price = prices(design, len(axes), histogram=counted)
    space = _Space(walk, axes)
    levels, privacy_losses = [root], []
    origin = np.zeros(1, np.int64)  # of each box, the node of the last level that it lies in
    last = design.height - 1
    for cut in range(design.height):
        progress("cutting boxes", cut, design.height)
        if design.structure:
            privacy_losses.append(space.cut_at_medians(cut + 1, price.cut, noise))
        else:
            space.cut_at_middles()
        origin = origin[space.parents]
        if cut + 1 not in design.levels(histogram=counted):
            continue
        place = len(levels) - 1
        counts, privacy_loss = _count_noisily(
            space.counts, price.levels[place], f"counts of boxes, level {place + 1}", noise
        )
        privacy_losses.append(privacy_loss)
        levels.append(Level(origin, counts, _variance(price.levels[place])))
        origin = np.arange(counts.size)
        if design.patience is not None and cut != last:
            deviation = _variance(price.levels[place + 1]) ** 0.5
            space.stop(counts < design.patience * deviation)
    if counted:
        table = walk.ask(partial(Records.histogram, bins=bins, boxes=len(space.lower)))
        counts, privacy_loss = _count_noisily(
            table, price.levels[-1], "counts of values in boxes", noise
        )
        privacy_losses.append(privacy_loss)
        levels.append(Level(np.repeat(origin, bins), counts, _variance(price.levels[-1])))
    return MeasuredTree(space.lower, space.upper, tuple(levels), tuple(privacy_losses))


def _variance(price: Fraction) -> float:
    """Return the variance of the noise at an epsilon; positive even where it underflows."""
    return max(laplace_variance(float(1 / price)), _LEAST_VARIANCE)


def _count_noisily(
    counts: Ints, price: Fraction, target: str, noise: Noise
) -> tuple[Ints, PrivacyLoss]:
    """Count disjoint parts with noise: a record changes one of the counts, by 1."""
    return noisy_answers(
        counts, reach=1, price=Price(price, Neighbours.ADD_REMOVE), target=target, noise=noise
    )


class Records:
    """The records of a block with their boxes. Answers of blocks add up."""

    def __init__(self, cells: Ints, values: Ints | None = None) -> None:
        self._cells, self._values = cells, values
        self._rows = np.arange(len(cells))
        self._labels = np.zeros(len(cells), dtype=np.int64)

    def split(self, axis_of: Ints, cut_at: Ints, first: Ints, boxes: int) -> Ints:
        """Move the records to their boxes after a cut, and count them there."""
        # A record whose box is not cut has position -1, below the 0 in `cut_at`.
        above = self._places(axis_of) >= cut_at[self._labels]
        self._labels = first[self._labels] + above
        return np.bincount(self._labels, minlength=boxes)

    def below(self, axis_of: Ints, width: int, keys: Ints) -> Ints:
        """Count the records below each key, which is a box times the width plus a position."""
        places = self._places(axis_of)
        # Records in uncut boxes have position -1, and would be counted in the box before.
        mine = np.sort((self._labels * width + places)[places >= 0])
        return np.searchsorted(mine, keys)

    def histogram(self, bins: int, boxes: int) -> Ints:
        """Count the confidential values of the records in each box."""
        values = 0 if self._values is None else self._values
        return np.bincount(self._labels * bins + values, minlength=boxes * bins)

    def _places(self, axis_of: Ints) -> Ints:
        """Return each record's cell on the axis on which its box is cut; -1 if it is not."""
        mine = axis_of[self._labels]
        return np.where(mine < 0, -1, self._cells[self._rows, mine])


class _Space:
    """The boxes so far, with the records in them.

    Attributes:
        counts: records of each box.
        parents: for each box, the one that contained it before the last cut.
    """

    def __init__(self, walk: Walk, axes: Sequence[SpatialAxis]) -> None:
        self._walk, self._axes = walk, axes
        self._width = max(axis.cells for axis in axes) + 1
        self._next = np.zeros(1, dtype=np.int64)  # the axis whose turn it is, box by box
        self._stopped = np.zeros(1, dtype=bool)
        self.lower = np.zeros((1, len(axes)), dtype=np.int64)
        self.upper = np.array([[axis.cells for axis in axes]], dtype=np.int64)
        self.parents = np.zeros(1, dtype=np.int64)
        self.counts = np.zeros(1, dtype=np.int64)

    def stop(self, which: NDArray[np.bool_]) -> None:
        """Exclude boxes from further cuts."""
        self._stopped = self._stopped | which

    def cut_at_middles(self) -> None:
        """Cut each box in the middle of its next axis."""
        boxes, axis = self._due()
        ends = self.lower[boxes, axis] + self.upper[boxes, axis]
        cuts = ends // 2
        for some, positions in self._branches(boxes, axis):
            cuts[some] = positions[np.abs(2 * positions - ends[some[0]]).argmin()]
        self._split(boxes, axis, cuts)

    def cut_at_medians(self, number: int, price: Fraction, noise: Noise) -> PrivacyLoss:
        """Cut each box near the median of its next axis, chosen privately."""
        boxes, axis = self._due()
        offers = list(self._offers(boxes, axis))
        # For each box its begin and end, then its positions: all in one query.
        asked = []
        for some, positions in offers:
            first = boxes[some, None] * self._width
            asked.append(np.hstack([first, first + self._width, first + positions]))
        keys = np.concatenate([*(part.ravel() for part in asked), np.zeros(0, np.int64)])
        axis_of = self._axis_of(boxes, axis)
        answers = self._walk.ask(
            partial(Records.below, axis_of=axis_of, width=self._width, keys=keys)
        )
        cuts = np.empty(boxes.size, dtype=np.int64)
        at = 0
        for (some, positions), part in zip(offers, asked, strict=True):
            ranks = answers[at : at + part.size].reshape(part.shape)
            at += part.size
            start, end, below = ranks[:, :1], ranks[:, 1:2], ranks[:, 2:]
            scores = -np.abs(2 * (below - start) - (end - start))
            chosen = noise.select_many(scores, sensitivity=Fraction(1), epsilon=price)
            cuts[some] = positions[np.arange(some.size), chosen]
        self._split(boxes, axis, cuts)
        return PrivacyLoss(
            mechanism=SELECTION,
            target=f"medians, cut {number}",
            sensitivity=Fraction(1),
            scale=2 / price,
            epsilon=price,
            neighbours=Neighbours.ADD_REMOVE,
            draws=boxes.size,
        )

    def _due(self) -> tuple[Ints, Ints]:
        """Return the boxes to cut now, and their axes: the next one with at least two cells."""
        count = len(self._axes)
        order = (self._next[:, None] + np.arange(count)) % count
        wide = np.take_along_axis(self.upper - self.lower, order, axis=1) > 1
        boxes = np.flatnonzero(wide.any(axis=1) & ~self._stopped)
        return boxes, order[boxes, wide[boxes].argmax(axis=1)]

    def _axis_of(self, boxes: Ints, axis: Ints) -> Ints:
        """Return the axis on which each box is cut; -1 if it is not."""
        axis_of = np.full(len(self.lower), -1, dtype=np.int64)
        axis_of[boxes] = axis
        return axis_of

    def _offers(self, boxes: Ints, axis: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield candidate cuts, as a matrix for all boxes with the same number of them."""
        low = self.lower[boxes, axis]
        borders = self.upper[boxes, axis] - low - 1
        few = np.minimum(borders, MOST_POSITIONS)
        # Few distinct sizes mean few calls: all borders up to 16, else 16, 32 or 64.
        few = np.where(few > 16, 1 << np.log2(np.maximum(few, 1)).astype(np.int64), few)
        offers: dict[int, list[tuple[Ints, Ints]]] = {}
        for some, positions in self._branches(boxes, axis):
            few[some] = 0
            spread = np.linspace(0, positions.size - 1, min(positions.size, MOST_POSITIONS))
            chosen = positions[spread.astype(np.int64)]
            shared = np.broadcast_to(chosen, (some.size, chosen.size))
            offers.setdefault(chosen.size, []).append((some, shared))
        for size in np.unique(few[few > 0]).tolist():
            some = np.flatnonzero(few == size)
            steps = borders[some, None] * (2 * np.arange(size) + 1) // (2 * size)
            offers.setdefault(size, []).append((some, low[some, None] + 1 + steps))
        for size in sorted(offers):
            parts = offers[size]
            yield np.concatenate([s for s, _ in parts]), np.concatenate([p for _, p in parts])

    def _branches(self, boxes: Ints, axis: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Group boxes with equal ends on an axis with a hierarchy, with their highest borders."""
        for number, ax in enumerate(self._axes):
            if ax.heights is None:
                continue
            mine = np.flatnonzero(axis == number)
            low, high = self.lower[boxes[mine], number], self.upper[boxes[mine], number]
            ends, which = np.unique(low * (ax.cells + 1) + high, return_inverse=True)
            for place, end in enumerate(ends.tolist()):
                first, last = divmod(end, ax.cells + 1)
                heights = ax.heights[first : last - 1]
                yield mine[which == place], first + 1 + np.flatnonzero(heights == heights.max())

    def _split(self, boxes: Ints, axis: Ints, cuts: Ints) -> None:
        """Cut boxes in two; leave the others as they are."""
        sizes = np.ones(len(self.lower), dtype=np.int64)
        sizes[boxes] = 2
        first = np.cumsum(sizes) - sizes
        cut_at = np.zeros(len(self.lower), dtype=np.int64)
        cut_at[boxes] = cuts
        self.counts = self._walk.step(
            partial(
                Records.split,
                axis_of=self._axis_of(boxes, axis),
                cut_at=cut_at,
                first=first,
                boxes=int(sizes.sum()),
            )
        )
        self._next[boxes] = (axis + 1) % len(self._axes)
        self.parents = np.repeat(np.arange(len(self.lower)), sizes)
        self._next, self._stopped = self._next[self.parents], self._stopped[self.parents]
        self.lower, self.upper = self.lower[self.parents], self.upper[self.parents]
        self.upper[first[boxes], axis] = cuts
        self.lower[first[boxes] + 1, axis] = cuts

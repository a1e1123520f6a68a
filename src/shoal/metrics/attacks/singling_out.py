"""Singling out: predicates that hold for exactly one person. See `shoal.metrics.attacks`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Bools, Floats, Ints
from shoal.errors import InputError
from shoal.metrics.attacks.result import Attack, attack
from shoal.metrics.boxes import ReleaseBoxes, boxes_of, check_attacks, log_choose, people_on
from shoal.metrics.kernels.attacks import count_people
from shoal.metrics.uniqueness import distinct_rows

_BATCH = 20_000


@dataclass(frozen=True, eq=False)
class Predicates:
    """Conjunctions of conditions "coordinate j is in [low, high)", or is not.

    Attributes:
        axes: one row per predicate, the axes of its conditions.
        low: the lower end for each of them.
        high: the upper end, exclusive.
        negated: whether the coordinate must lie outside.
    """

    axes: Ints
    low: Floats
    high: Floats
    negated: Bools

    def __len__(self) -> int:
        return len(self.axes)

    def __getitem__(self, chosen: NDArray[np.generic] | slice) -> "Predicates":
        return Predicates(
            self.axes[chosen], self.low[chosen], self.high[chosen], self.negated[chosen]
        )


def singling_out(
    lower: Floats,
    upper: Floats,
    people: Floats,
    *,
    discrete: ArrayLike,
    rng: np.random.Generator,
    attributes: int = 3,
    control: Floats | None = None,
    attacks: int = 500,
    attempts: int = 100_000,
    confidence: float = 0.95,
) -> Attack:
    """Test whether predicates that single out a released record single out a person.

    With `attributes` 1 the predicates are the values that one released record has, and the least
    and the greatest number of an axis. With more, a released record and that many axes are drawn;
    the predicate holds where a category is the record's, a number is at least the record's if that
    is above the median and at most it otherwise, and a place lies in the record's interval. Only
    predicates that one distinct released record satisfies are kept. A predicate succeeds if
    exactly one person satisfies it. The baseline draws values and comparisons blindly.

    How many predicates single out depends on the number of people. If fewer or more are handed in
    as control, its rate is carried over to the number of people in the table: exactly where there
    are more, by the average over all subsets; by the model of Cohen and Nissim where there are
    fewer, as in anonymeter. The interval does not cover the model's error. At most `attempts`
    predicates are tried; for the other arguments see `shoal.metrics.attacks`.
    """
    boxes = boxes_of(lower, upper, discrete)
    x = people_on(people, boxes)
    if not 1 <= attributes <= x.shape[1]:
        raise InputError(
            f"The number of attributes in a predicate must be between 1 and "
            f"{x.shape[1]}; got {attributes}."
        )
    check_attacks(attacks)
    boxes = boxes.take(distinct_rows(np.hstack([boxes.lower, boxes.upper]))[1])
    if attributes == 1:
        made = _extremes(boxes, attacks, rng)
    else:
        made = _draw_records(boxes, attributes, attacks, attempts, rng)
    crowd = _Crowd.of(x)
    counted = _count(made, crowd, most=2)
    blind = _blind(boxes, attributes, attacks, rng)
    baseline = int((_count(blind, crowd, most=2) == 1).sum())
    note = f"{len(made):,} predicate{'' if len(made) == 1 else 's'} singled out one released record"
    note += f", of {attacks:,} requested." if len(made) < attacks else "."
    on_control = None
    if control is not None:
        y = people_on(control, boxes)
        on_control = (_scale_counts(_count(made, _Crowd.of(y)), len(y), len(x)), max(len(made), 1))
        if len(y) != len(x):
            note += (
                f" The rate of the control group was converted from {len(y):,} people to "
                f"{len(x):,}."
            )
    return attack(
        (int((counted == 1).sum()), max(len(made), 1)),
        baseline=(baseline, attacks),
        control=on_control,
        note=f"{note} The baseline draws predicates at random.",
        confidence=confidence,
    )


def _conditions(boxes: ReleaseBoxes, rows: Ints, axes: Ints, medians: Floats) -> Predicates:
    """Make predicates from released records, one for each row of `axes`."""
    low, high = boxes.lower[rows[:, None], axes], boxes.upper[rows[:, None], axes]
    exact = (low == high) & ~boxes.discrete[axes]
    above = exact & (low > medians[axes])
    below = exact & ~above
    return Predicates(
        axes,
        np.where(below, -np.inf, low),
        np.where(above, np.inf, np.where(below, np.nextafter(high, np.inf), high)),
        np.zeros(axes.shape, dtype=bool),
    )


def _draw_records(
    boxes: ReleaseBoxes, attributes: int, attacks: int, attempts: int, rng: np.random.Generator
) -> Predicates:
    places = _places(boxes)
    medians = np.median(places, axis=0)
    crowd = _Crowd.of(places)
    kept: list[Predicates] = []
    seen: set[bytes] = set()
    drawn, axes_count = 0, places.shape[1]
    for start in range(0, attempts, _BATCH):
        size = min(_BATCH, attempts - start)
        rows = rng.integers(len(places), size=size)
        axes = np.sort(rng.random((size, axes_count)).argsort(axis=1)[:, :attributes], axis=1)
        tried = _conditions(boxes, rows, axes, medians)
        names, first = np.unique(_names(tried), return_index=True)
        fresh = np.array([name not in seen for name in names.tolist()])
        seen.update(names[fresh].tolist())
        tried = tried[np.sort(first[fresh])]
        tried = tried[_count(tried, crowd, most=2) == 1]
        kept.append(tried)
        drawn += len(tried)
        if drawn >= attacks:
            break
    return _join(kept, attributes)[slice(attacks)]


def _names(predicates: Predicates) -> NDArray[np.void]:
    """Return the bytes of each predicate as its name."""
    parts = (predicates.axes, predicates.low, predicates.high)
    joined = np.hstack([np.ascontiguousarray(part).view(np.int64) for part in parts])
    return joined.view(np.dtype((np.void, joined.itemsize * joined.shape[1])))[:, 0]


def _extremes(boxes: ReleaseBoxes, attacks: int, rng: np.random.Generator) -> Predicates:
    """Make one-axis predicates: values of exactly one released record, and extremes."""
    places = _places(boxes)
    made: list[Predicates] = []
    for axis in range(places.shape[1]):
        pairs = np.column_stack([boxes.lower[:, axis], boxes.upper[:, axis]])
        keys, first = distinct_rows(pairs)
        single = first[np.bincount(keys) == 1]
        low, high = pairs[single, 0], pairs[single, 1]
        if not boxes.discrete[axis]:
            exact = low == high
            high = np.where(exact, np.nextafter(high, np.inf), high)
            ends = places[:, axis]
            low = np.concatenate([low, [-np.inf, ends.max()]])
            high = np.concatenate([high, [np.nextafter(ends.min(), np.inf), np.inf]])
        column = np.full((len(low), 1), axis, dtype=np.int64)
        made.append(Predicates(column, low[:, None], high[:, None], np.zeros_like(column, bool)))
    every = _join(made, 1)
    every = every[rng.permutation(len(every))]
    crowd = _Crowd.of(places)
    chosen: list[Predicates] = []
    kept = 0
    for start in range(0, len(every), _BATCH):
        batch = every[slice(start, start + _BATCH)]
        batch = batch[_count(batch, crowd, most=2) == 1]
        chosen.append(batch)
        kept += len(batch)
        if kept >= attacks:
            break
    return _join(chosen, 1)[slice(attacks)]


def _blind(
    boxes: ReleaseBoxes, attributes: int, attacks: int, rng: np.random.Generator
) -> Predicates:
    """Make predicates with random comparisons and random released values."""
    count = boxes.lower.shape[1]
    axes = np.sort(rng.random((attacks, count)).argsort(axis=1)[:, :attributes], axis=1)
    low, high = np.empty(axes.shape), np.empty(axes.shape)
    negated = np.zeros(axes.shape, dtype=bool)
    for axis in range(count):
        pairs = np.column_stack([boxes.lower[:, axis], boxes.upper[:, axis]])
        pairs = pairs[distinct_rows(pairs)[1]]
        here = axes == axis
        drawn = pairs[rng.integers(len(pairs), size=int(here.sum()))]
        start, end = drawn[:, 0], np.maximum(drawn[:, 1], np.nextafter(drawn[:, 0], np.inf))
        # 0: in, 1: not in; numbers also 2: from its start, 3: before, 4: after, 5: up to its end.
        which = rng.integers(2 if boxes.discrete[axis] else 6, size=len(drawn))
        low[here] = np.select([which == 3, which == 4, which == 5], [-np.inf, end, -np.inf], start)
        high[here] = np.select([which == 2, which == 3, which == 4], [np.inf, start, np.inf], end)
        negated[here] = which == 1
    return Predicates(axes, low, high, negated)


def _places(boxes: ReleaseBoxes) -> Floats:
    """Return a point of each box: its middle, which satisfies the box's own predicate."""
    return (boxes.lower + boxes.upper) / 2


def _join(parts: list[Predicates], attributes: int) -> Predicates:
    none = np.zeros((0, attributes))
    empty = Predicates(none.astype(np.int64), none, none, none.astype(bool))
    every = [empty, *parts]
    names = ("axes", "low", "high", "negated")
    return Predicates(*(np.vstack([getattr(p, name) for p in every]) for name in names))


@dataclass(frozen=True, eq=False)
class _Crowd:
    """The people, sorted on each axis once."""

    people: Floats
    orders: Ints
    columns: Floats

    @classmethod
    def of(cls, people: Floats) -> "_Crowd":
        orders = np.argsort(people.T, axis=1, kind="stable")
        return cls(people, orders, np.take_along_axis(people.T, orders, axis=1))

    def __len__(self) -> int:
        return len(self.people)


def _count(predicates: Predicates, crowd: _Crowd, *, most: int = -1) -> Ints:
    """Count the people who satisfy each predicate; stop at `most`.

    Only people who satisfy the most selective condition are read: an interval selects a run of the
    people sorted on its axis.
    """
    shape = predicates.axes.shape
    begin, end = np.zeros(shape, dtype=np.int64), np.full(shape, len(crowd), dtype=np.int64)
    for axis, column in enumerate(crowd.columns):
        here = (predicates.axes == axis) & ~predicates.negated
        begin[here] = np.searchsorted(column, predicates.low[here], side="left")
        end[here] = np.searchsorted(column, predicates.high[here], side="left")
    tightest = (end - begin).argmin(axis=1)
    counts = np.zeros(len(predicates), dtype=np.int64)
    chosen = predicates.axes[np.arange(len(predicates)), tightest]
    for axis in np.unique(chosen):
        at = np.flatnonzero(chosen == axis)
        part = predicates[at]
        counts[at] = count_people(
            crowd.people,
            crowd.orders[axis],
            begin[at, tightest[at]],
            end[at, tightest[at]],
            part.axes,
            part.low,
            part.high,
            part.negated,
            most,
        )
    return counts


def _scale_counts(counts: Ints, people: int, wanted: int) -> float:
    """Estimate how many predicates single out among `wanted` people, from counts among `people`.

    Among a random subset of u of m people, a predicate that c satisfy singles out with
    probability c C(m - c, u - 1) / C(m, u). For more people than there are, the sums over
    predicates at ten sizes are fitted by

        norm (1 - (u w + 1)(1 - w)^u) / (u + 1)

    the integral of Cohen and Nissim's u x (1 - x)^(u - 1) over weights x up to w, and carried on.
    """
    if people >= wanted:
        return _foresee(counts, people, wanted)
    sizes = np.unique(np.linspace(max(people / 10, 1), people, 10).astype(np.int64))
    seen = np.array([_foresee(counts, people, int(size)) for size in sizes])
    if not seen.any():
        return 0.0
    weights = np.geomspace(1e-3 / wanted, 1.0, 2000)[:, None]
    shapes = _integral(sizes[None, :], weights)
    norms = (shapes * seen).sum(axis=1) / (shapes**2).sum(axis=1)
    misfit = ((norms[:, None] * shapes - seen) ** 2).sum(axis=1)
    weight = weights[misfit.argmin()]
    ratio = _integral(np.array([wanted]), weight) / _integral(np.array([people]), weight)
    return float(min(seen[-1] * ratio[0], len(counts)))


def _foresee(counts: Ints, people: int, size: int) -> float:
    possible = counts[(counts > 0) & (people - counts >= size - 1)].astype(np.float64)
    logs = np.log(possible) + log_choose(people - possible, size - 1) - log_choose(people, size)
    return float(np.exp(logs).sum())


def _integral(size: NDArray[np.generic], weight: Floats) -> Floats:
    u = size.astype(np.float64)
    value: Floats = -np.expm1(np.log1p(u * weight) + u * np.log1p(-np.minimum(weight, 1 - 1e-16)))
    return value / (u + 1)

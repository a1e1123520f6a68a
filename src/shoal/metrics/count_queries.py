"""COUNT queries with range conditions, answered on rows, intervals and trees.

How accurate are counts on the release? A query is a box (see `boxes`); its answer is the weight of
the table inside it, where each box of the table counts by the share that lies inside: the
uniformity assumption. The empirical utility of cormode2013 is one over the median relative error of
a workload of such queries.

References:
    cormode2013: Cormode, Procopiuc, Shen, Srivastava and Yu, ICDE Workshops 2013, pages 77-82,
    Definition 2 and section III.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import Estimate
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, did_you_mean
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.kernels import count_queries

STEPS = 64
"""Places at which a range of numbers may begin or end."""

MOST_PARTS = 100_000
"""The most boxes that the queries of a file may have."""


@dataclass(frozen=True, eq=False)
class Queries:
    """COUNT queries, each for the weight inside one box or several disjoint boxes.

    Attributes:
        lower: one row per box, one column per axis; -inf where the axis is not restricted.
        upper: the other end, not included; inf where the axis is not restricted.
        query: which query each box belongs to, 0..q-1 in rising order; by default one box each.

    >>> len(Queries([[0.0], [5.0]], [[5.0], [np.inf]]))
    2
    """

    lower: Floats
    upper: Floats
    query: Ints | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        given = np.arange(len(self.lower)) if self.query is None else self.query
        query = np.array(given, dtype=np.int64)
        query.flags.writeable = False
        object.__setattr__(self, "query", query)
        if self.lower.ndim != 2 or self.lower.shape != self.upper.shape:
            raise InputError("Queries need a lower and an upper end for each box and axis.")
        if not (self.lower < self.upper).all():
            raise InputError("Queries need lower < upper on each axis.")
        steps = np.diff(query, prepend=-1)
        if query.shape != (len(self.lower),) or not np.isin(steps, (0, 1)).all():
            raise InputError("Boxes of queries must be numbered 0 to q - 1 in ascending order.")

    def __len__(self) -> int:
        owner: Any = self.query
        return int(owner[-1]) + 1 if len(owner) else 0


@dataclass(frozen=True, eq=False)
class Index:
    """The distinct boxes, axis by axis, in the form that queries read; made by `index`."""

    lower: Floats
    upper: Floats
    weights: Floats


class QueryColumn(NamedTuple):
    """What `parse` needs to know of a column.

    Attributes:
        name: as the user writes it.
        categories: the categories in public order, None among them for missing; None for numbers.
        step: a number v alone asks for v <= x < v + step.
    """

    name: str
    categories: tuple[str | None, ...] | None = None
    step: float = 1.0


def index(boxes: WeightedBoxes) -> Index:
    """Merge equal boxes and index them for `answers`.

    Cost O(n m + n log n), once. A point x is kept as the box from x to the next float, so
    one rule of shares serves points and intervals.
    """
    labels = boxes.classes()
    distinct = int(labels.max(initial=-1)) + 1
    # Every label is written by one of its rows; they are equal, so it does not matter by which.
    rows = np.empty(distinct, dtype=np.int64)
    rows[labels] = np.arange(len(labels))
    lower = np.ascontiguousarray(boxes.lower[rows].T)
    upper = np.ascontiguousarray(boxes.upper[rows].T)
    np.copyto(upper, np.nextafter(lower, np.inf), where=upper == lower)
    return Index(lower, upper, _sums(labels, boxes.weights, distinct))


def answers(indexed: Index, queries: Queries) -> Floats:
    """Answer each query under the uniformity assumption.

        q(T) = sum_i w_i prod_j |box_ij inside query_j| / |box_ij|

    A point counts 1 or 0. Sums run block by block, so fractional weights may differ in the
    last bits from another order; whole ones are exact below 2^53.

    Cost: for n distinct boxes, q queries and R distinct ranges of a single axis, n R comparisons,
    n q m / 64 operations on words, and the shares of the boxes on the surface of a query.
    Half ranges have R of 33 per axis at most.
    """
    boxes, d = queries.lower.shape
    if d != len(indexed.lower):
        raise InputError(f"The queries have {d} axes and the table {len(indexed.lower)}.")
    asked = np.full((boxes, d), -1, dtype=np.int64)
    lows, highs, axes = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=np.int64)]
    used, known = np.zeros(boxes, dtype=np.int64), 0
    for axis in range(d):
        lower, upper = queries.lower[:, axis], queries.upper[:, axis]
        limited = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        starts, start = np.unique(lower[limited], return_inverse=True)
        stops, stop = np.unique(upper[limited], return_inverse=True)
        ranges, which = np.unique(start * len(stops) + stop, return_inverse=True)
        asked[limited, used[limited]] = known + which
        used[limited] += 1
        known += len(ranges)
        lows.append(starts[ranges // max(len(stops), 1)])
        highs.append(stops[ranges % max(len(stops), 1)])
        axes.append(np.full(len(ranges), axis))
    parts = count_queries.count(
        indexed.lower, indexed.upper, indexed.weights,
        np.concatenate(lows), np.concatenate(highs), np.concatenate(axes), asked,
    )  # fmt: skip
    if len(queries) == boxes:
        return parts
    return _sums(np.asarray(queries.query), parts, len(queries))


def _sums(labels: Ints, weights: Floats, number: int) -> Floats:
    sums: Floats = np.bincount(labels, weights=weights, minlength=number).astype(np.float64)
    return sums


def half_ranges(
    lows: ArrayLike,
    highs: ArrayLike,
    discrete: Sequence[bool],
    *,
    queries: int,
    rng: np.random.Generator,
    axes: int | None = None,
    among: Sequence[int] | None = None,
    round_down: bool = False,
) -> Queries:
    """Draw queries over half of the domain of each attribute, as cormode2013 does.

    Of a discrete axis with d categories ceil(d/2) consecutive ones are taken. Of an axis of
    numbers a range of half the domain's width is taken, at one of 33 places: the domain is cut
    into 64 steps, so its ends are asked for too, as those of categories are. A range that
    touches an end of the domain includes all beyond it.

    Args:
        lows: least place of each axis.
        highs: greatest place of each axis.
        discrete: which axes are categories.
        queries: how many.
        rng: decides places and axes.
        axes: how many axes to restrict, drawn at random for each query; all by default.
        among: the axes that may be restricted; all by default.
        round_down: take floor(d/2) categories of more than one, as a second reading of the paper.
    """
    low, high = (np.asarray(ends, dtype=np.float64) for ends in (lows, highs))
    d, codes = len(discrete), np.asarray(discrete, dtype=bool)
    if low.shape != (d,) or high.shape != (d,) or not (low <= high).all():
        raise InputError("Expected the least and the greatest place of each axis.")
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        raise InputError("Half of a domain is defined only for finite ends. Declare bounds.")
    free = ~np.isin(np.arange(d), range(d) if among is None else among)
    allowed = int(d - free.sum())
    if not 1 <= (number := allowed if axes is None else axes) <= allowed:
        raise InputError(
            f"The number of axes that a query restricts must lie between 1 and {allowed}; got "
            f"{number}."
        )
    cells = np.where(codes, high - low, STEPS).astype(np.int64)
    taken = np.maximum(cells // 2, 1) if round_down else (cells + 1) // 2
    width = np.where(codes, 1.0, (high - low) / STEPS)
    first = rng.integers(0, cells - taken + 1, size=(queries, d))
    lower = np.where(first == 0, -np.inf, low + first * width)
    upper = np.where(first + taken == cells, np.inf, low + (first + taken) * width)
    if number < d:
        left_out = np.argsort(rng.random((queries, d)) + free, axis=1)[:, number:]
        np.put_along_axis(lower, left_out, -np.inf, axis=1)
        np.put_along_axis(upper, left_out, np.inf, axis=1)
    # An axis of numbers without width has one place, and every query takes it.
    lower[:, low == high], upper[:, low == high] = -np.inf, np.inf
    return Queries(lower, upper)


def draw_answered_half_ranges(
    original: Index,
    lows: ArrayLike,
    highs: ArrayLike,
    discrete: Sequence[bool],
    *,
    queries: int,
    rng: np.random.Generator,
    **more: Any,
) -> tuple[Queries, Floats]:
    """Draw `half_ranges` until `queries` of them have a true answer above zero; return both.

    Raises:
        InputError: hardly any query has an answer, as with an empty table.
    """
    lower, upper, true = [], [], []
    accepted, drawn = 0, 0
    while accepted < queries and drawn < 50 * queries:
        batch = half_ranges(lows, highs, discrete, queries=queries, rng=rng, **more)
        answer = answers(original, batch)
        kept = answer > 0
        lower.append(batch.lower[kept])
        upper.append(batch.upper[kept])
        true.append(answer[kept])
        accepted, drawn = accepted + int(kept.sum()), drawn + queries
    if accepted < queries:
        raise InputError(
            f"Of {drawn:,} random queries, {accepted:,} have a true answer above zero; expected "
            f"{queries:,}. Restrict fewer axes, or use your own queries."
        )
    kept_queries = Queries(np.concatenate(lower)[:queries], np.concatenate(upper)[:queries])
    return kept_queries, np.concatenate(true)[:queries]


def relative_errors(true: ArrayLike, answered: ArrayLike) -> Floats:
    """Compute |answered - true| / true for each query with a positive true answer.

    >>> relative_errors([10, 0, 4], [9, 3, 5])
    array([0.1 , 0.25])
    """
    t, a = np.asarray(true, dtype=np.float64), np.asarray(answered, dtype=np.float64)
    if t.shape != a.shape:
        raise InputError("Expected one answer for each query.")
    kept = t > 0
    return np.abs(a[kept] - t[kept]) / t[kept]


def median_relative_error(errors: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Compute the median of a sample of relative errors, with the interval of its order statistics.

    The r-th least and the r-th greatest of q errors enclose the median of all queries that
    could have been drawn with probability at least 1 - 2 P(B < r), B binomial (q, 1/2),
    whatever the distribution. r is the greatest that gives the confidence. Where even r = 1 does
    not, as with fewer than 6 queries at 0.95, the ends are 0 and infinity.

    It says how far the drawn queries may mislead about half-range queries, and nothing about
    other queries. For a user's own queries, which are not a sample, take the plain median.

    References:
        David and Nagaraja, "Order Statistics", 3rd edition, section 7.1.

    >>> print(median_relative_error([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]))
    0.400 [0.100, 0.700]
    """
    ordered = np.sort(np.asarray(errors, dtype=np.float64))
    q = len(ordered)
    if not q:
        raise InputError("No query has a true answer above zero, so there is no relative error.")
    if not 0 < confidence < 1:
        raise InputError(
            f"The confidence of an interval must lie between 0 and 1; got {confidence}."
        )
    ranks = np.arange((q + 1) // 2)
    reached = 2 * scipy.special.bdtr(ranks, q, 0.5) <= 1 - confidence
    r = int(reached.sum())
    low, high = (float(ordered[r - 1]), float(ordered[q - r])) if r else (0.0, np.inf)
    return Estimate(float(np.median(ordered)), low, high, confidence)


def parse(document: Sequence[Mapping[str, Any]], axes: Sequence[QueryColumn]) -> Queries:
    """Parse a user's own queries, read from TOML or JSON, into boxes.

    A query is a mapping from column to condition; columns that it does not name are free.

        number          age = 30                        30 <= age < 30 + step
                        age = [20, 30]                  20 <= age < 30
                        age = { from = 20, to = 30 }    the same; either end may be left out
        categories      sex = "female"                  that one
                        region = ["north", "south"]     one of these
                        grade = { from = "b", to = "d" }  b to d in public order, both included

    Raises:
        InputError: a column or category is not known, or a condition cannot be read.

    >>> parse([{"age": [20, 30]}], [QueryColumn("sex", ("f", "m")), QueryColumn("age")]).lower
    array([[-inf,  20.]])
    """
    names = [axis.name for axis in axes]
    lower: list[list[float]] = []
    upper: list[list[float]] = []
    owner: list[int] = []
    for number, asked in enumerate(document):
        where = f"Query {number + 1}"
        if not isinstance(asked, Mapping):
            raise InputError(f"{where}: expected one condition per column, found {asked!r}.")
        for name in asked:
            if name not in names:
                raise InputError(f"{where}: no column named '{name}'.{did_you_mean(name, names)}")
        parts = [
            (_numbers if axis.categories is None else _places)(
                asked[axis.name], axis, f"{where}, column '{axis.name}'"
            )
            if axis.name in asked
            else [(-np.inf, np.inf)]
            for axis in axes
        ]
        if len(owner) + np.prod([len(part) for part in parts], dtype=float) > MOST_PARTS:
            raise InputError(f"{where}: the queries have more than {MOST_PARTS:,} parts.")
        for box in product(*parts):
            lower.append([low for low, _ in box])
            upper.append([high for _, high in box])
            owner.append(number)
    shape = (len(owner), len(axes))
    return Queries(np.reshape(lower, shape), np.reshape(upper, shape), np.array(owner, dtype=int))


def _numbers(condition: Any, axis: QueryColumn, where: str) -> list[tuple[float, float]]:
    low: Any
    high: Any
    match condition:
        case {**ends} if ends and set(ends) <= {"from", "to"}:
            low, high = ends.get("from", -np.inf), ends.get("to", np.inf)
        case [low, high]:
            pass
        case _:
            low, high = condition, None
    for end in (low, high):
        if end is not None and (
            isinstance(end, bool) or not isinstance(end, int | float | Decimal)
        ):
            raise InputError(f"{where}: expected a number or [from, to], found {condition!r}.")
    low = float(low)
    high = low + axis.step if high is None else float(high)
    if not low < high:
        raise InputError(f"{where}: expected from < to, found {condition!r}.")
    return [(low, high)]


def _places(condition: Any, axis: QueryColumn, where: str) -> list[tuple[float, float]]:
    categories = axis.categories or ()
    place: dict[Any, int] = {category: code for code, category in enumerate(categories)}

    def find(category: Any) -> int:
        if isinstance(category, list | dict) or category not in place:
            # No suggestion: a category that the policy does not state is a cell of the original.
            raise InputError(f"{where}: no category {category!r}.")
        return place[category]

    match condition:
        case {**ends} if ends and set(ends) <= {"from", "to"}:
            low = find(ends["from"]) if "from" in ends else 0
            high = find(ends["to"]) + 1 if "to" in ends else len(categories)
            if not low < high:
                raise InputError(f"{where}: expected from before to, found {condition!r}.")
            return [(float(low), float(high))]
        case [*listed]:
            codes = sorted({find(category) for category in listed})
        case _:
            codes = [find(condition)]
    if not codes:
        raise InputError(f"{where}: expected at least one category, found none.")
    # Neighbours join into one range, so a long list costs little.
    breaks = np.flatnonzero(np.diff(codes) > 1) + 1
    return [(float(run[0]), float(run[-1] + 1)) for run in np.split(codes, breaks)]

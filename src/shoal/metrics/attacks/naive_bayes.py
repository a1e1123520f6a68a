"""The attack of cormode2013: naive Bayes on rows, on intervals or on the leaves of a tree.

A released row or leaf is a box with counts of confidential values. The attacker treats each count
as spread uniformly over the box along each axis (the paper's uniform kernel), reads off

    P(S = v)             the share of v among all counts
    P(axis j = u | S = v)  the share of v's mass, spread out, that falls in u's cell

and believes of a person with places u_1 .. u_d

    p_v  proportional to  P(S = v) prod_j P(axis j = u_j | S = v).

The guess is the value of greatest belief, the smallest code of equals, and its confidence is that
belief. The average empirical privacy is the share of people whose value is *not* guessed; the
breach increase is accuracy / rho - 1, with rho the share of the most frequent value.

Cells. On an axis of categories each category is a cell: |[x, y]| of the paper counts values. On an
axis of numbers the ends of all intervals and the midpoints between neighbouring exact numbers cut
the domain; between two cuts all densities are constant, so a cell's width cancels between
values. Beyond `cells` cuts (256) we keep evenly spaced quantiles of them, and what is exact becomes
a histogram.

Kernels. The paper names others as an extension. `middle` puts a count into the middle of its box,
which of an even number of categories is the upper one; `wide` spreads it over twice the width of
the box, as far as the domain goes.

Departures. The paper does not smooth: a place that never occurs with v then rules v out. By default
we add to each value one record about which nothing is known (`smoothing=1`), spread over the whole
domain; `smoothing=0` is the paper's. Where every value is ruled out the prior decides. Negative
counts become 0, as in the paper.

References:
    Cormode, Procopiuc, Shen, Srivastava and Yu, "Empirical privacy and empirical utility of
    anonymized data", ICDE Workshops 2013, section II, Definition 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import BoxKernel, Estimate
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.metrics.attacks.result import Attack, attack
from shoal.metrics.intervals import paired_ratio, wilson

CELLS = 256
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The attacker's model: log-probabilities, one table per axis.

    Attributes:
        prior: log P(S = v); -inf for a value that the release never shows.
        borders: for each axis, the inner borders of its cells.
        tables: for each axis, log P(cell | v), cells by values.
    """

    prior: Floats
    borders: tuple[Floats, ...]
    tables: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Guesses:
    """The guessed code of each target, with its posterior probability."""

    codes: Ints
    confidence: Floats


@dataclass(frozen=True)
class EmpiricalPrivacy:
    """The paper's metrics for one attacker.

    Attributes:
        attack: accuracy, beside that of the most frequent value.
        privacy: the average empirical privacy, 1 - accuracy.
        breach_increase: accuracy / rho - 1; below 0 where the attacker does worse than rho.
        top: accuracy on the people about whom the attacker was most confident.
        top_people: how many those are.
    """

    attack: Attack
    privacy: Estimate
    breach_increase: Estimate
    top: Estimate
    top_people: int


def learn(
    lower: Floats,
    upper: Floats,
    counts: NDArray[np.generic],
    *,
    discrete: ArrayLike,
    domains: Floats,
    values: int | None = None,
    weights: Floats | None = None,
    smoothing: float = 1.0,
    kernel: BoxKernel = BoxKernel.EVEN,
    cells: int = CELLS,
) -> NaiveBayes:
    """Train on released boxes. Cost O(n d log(cells)) for codes.

    Args:
        lower: one row per box, one column per axis; a category c begins at c.
        upper: the other end, equal to `lower` for an exact number, c + 1 for a category.
        counts: boxes by confidential values, or one code per box, -1 where the value is unknown.
        discrete: which axes are categories.
        domains: one row per axis, its least and greatest place.
        values: number of confidential values; needed with codes.
        weights: of the boxes, with codes.
        smoothing: records about which nothing is known that are added to each value.
        kernel: how the count of a box is spread.
        cells: most cells on an axis of numbers.
    """
    lower, upper = (np.asarray(end, dtype=np.float64) for end in (lower, upper))
    kinds, domains = np.asarray(discrete, dtype=bool), np.asarray(domains, dtype=np.float64)
    if lower.ndim != 2 or lower.shape != upper.shape or domains.shape != (lower.shape[1], 2):
        raise InputError(
            "Expected lower and upper as matrices of boxes by axes, and a domain for each axis."
        )
    if not np.isfinite(domains).all() or (domains[:, 0] > domains[:, 1]).any():
        raise InputError(
            "Every axis needs a finite domain, given as its least and its greatest place."
        )
    lower, upper = _reshape(lower, upper, kinds, kernel)
    rows, codes, mass, many = _entries(counts, values, weights, len(lower))
    totals = np.bincount(codes, mass, minlength=many)
    borders, tables = [], []
    for axis, categories in enumerate(kinds):
        low, high = (float(end) for end in domains[axis])
        a, b = (np.clip(end[:, axis], low, high) for end in (lower, upper))
        cuts = np.arange(np.floor(low) + 1, high) if categories else _cuts(a, b, low, high, cells)
        edges = np.concatenate([[low], cuts, [high]])
        spread = _spread(a[rows], b[rows], codes, mass, edges=edges, values=many)
        width = high - low
        shares = np.diff(edges) / width if width > 0 else np.ones(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            chances = (spread + smoothing * shares[:, None]) / (totals + smoothing)
            tables.append(np.log(np.nan_to_num(chances)))
        borders.append(cuts)
    with np.errstate(divide="ignore"):
        total = totals.sum()
        prior = np.log(totals / total if total > 0 else np.full(many, 1 / many))
    return NaiveBayes(prior, tuple(borders), tuple(tables))


def _reshape(
    lower: Floats, upper: Floats, discrete: NDArray[np.bool_], kernel: BoxKernel
) -> tuple[Floats, Floats]:
    """Return the boxes over which a kernel spreads their counts."""
    if kernel is BoxKernel.MIDDLE:
        middle = (lower + upper) / 2
        middle = np.where(discrete, np.floor(middle), middle)
        return middle, middle + discrete
    half = (upper - lower) / 2 if kernel is BoxKernel.WIDE else 0.0
    return lower - half, upper + half


def guess(model: NaiveBayes, targets: Floats) -> Guesses:
    """Return the most probable value of each target, and its probability. Cost O(m d values).

    Args:
        model: from `learn`.
        targets: one row per person, one column per axis, NaN where the attacker does not know it. A
            place outside the domain counts in the nearest cell.
    """
    targets = np.asarray(targets, dtype=np.float64)
    codes = np.empty(len(targets), dtype=np.int64)
    confidence = np.empty(len(targets))
    for start in range(0, len(targets), _BLOCK):
        block = targets[start : start + _BLOCK]
        scores = np.tile(model.prior, (len(block), 1))
        for axis, (cuts, table) in enumerate(zip(model.borders, model.tables, strict=True)):
            # One more row for an unknown place, which says nothing.
            known = np.vstack([table, np.zeros(table.shape[1])])
            cell = np.searchsorted(cuts, block[:, axis], side="right")
            scores += known[np.where(np.isnan(block[:, axis]), len(table), cell)]
        best = scores.max(axis=1)
        lost = np.isneginf(best)
        scores[lost] = model.prior
        best[lost] = model.prior.max()
        here = slice(start, start + len(block))
        codes[here] = scores.argmax(axis=1)
        confidence[here] = 1 / np.exp(scores - best[:, None]).sum(axis=1)
    return Guesses(codes, confidence)


def empirical_privacy(
    guesses: Guesses,
    truth: Ints,
    *,
    control: tuple[Guesses, Ints] | None = None,
    surest: int | None = None,
    confidence: float = 0.95,
) -> EmpiricalPrivacy:
    """Compute the paper's metrics for the guesses of any attacker.

    The baseline rho is the share of the most frequent true value. The interval of the breach
    increase is that of the ratio of two rates on the same people.

    Args:
        guesses: of the people in the table.
        truth: their true codes, -1 where unknown; those people are left out.
        control: guesses and true codes of people not in the table.
        surest: number of people for the most confident guesses, all if there are fewer; by default
            a hundredth of the people, rounded up. Among equal confidences the first.
        confidence: of all intervals.
    """
    right, codes, beliefs = _score(guesses, truth)
    if not codes.size:
        raise InputError(
            "No person in the table has a known confidential value, so there is nothing to guess."
        )
    frequent = codes == np.bincount(codes).argmax()
    on_control = None
    if control is not None:
        outside = _score(*control)[0]
        on_control = (int(outside.sum()), outside.size)
    hits, people = int(right.sum()), right.size
    rates = attack(
        (hits, people),
        baseline=(int(frequent.sum()), people),
        control=on_control,
        note="The baseline always guesses the most frequent value.",
        confidence=confidence,
    )
    ratio = paired_ratio(
        int((right & frequent).sum()),
        int((right & ~frequent).sum()),
        int((frequent & ~right).sum()),
        confidence,
    )
    chosen = min(people, surest or -(-people // 100))
    first = np.argsort(-beliefs, kind="stable")[:chosen]
    return EmpiricalPrivacy(
        attack=rates,
        privacy=wilson(people - hits, people, confidence),
        breach_increase=Estimate(ratio.value - 1, ratio.low - 1, ratio.high - 1, confidence),
        top=wilson(int(right[first].sum()), chosen, confidence),
        top_people=chosen,
    )


def _score(guesses: Guesses, truth: Ints) -> tuple[NDArray[np.bool_], Ints, Floats]:
    known = truth >= 0
    codes = truth[known]
    return guesses.codes[known] == codes, codes, guesses.confidence[known]


def _entries(
    counts: NDArray[np.generic], values: int | None, weights: Floats | None, boxes: int
) -> tuple[Ints, Ints, Floats, int]:
    """List box, code and mass of every count, and the number of values."""
    table = np.asarray(counts)
    if len(table) != boxes:
        raise InputError(f"Expected counts or codes for {boxes} boxes; found {len(table)}.")
    if table.ndim == 2:
        positive = np.maximum(table.astype(np.float64), 0.0)
        rows, codes = np.nonzero(positive)
        return rows, codes, positive[rows, codes], table.shape[1]
    if values is None or values < 1 or (boxes and int(table.max()) >= values):
        raise InputError("With codes, values must be the number of codes, at least 1.")
    rows = np.flatnonzero(table >= 0)
    mass = np.ones(len(rows)) if weights is None else np.maximum(np.asarray(weights)[rows], 0.0)
    return rows, table[rows].astype(np.int64), mass, values


def _cuts(lower: Floats, upper: Floats, low: float, high: float, cells: int) -> Floats:
    """Choose the inner borders of a numeric axis."""
    exact = lower == upper
    points = np.unique(lower[exact])
    ends = np.concatenate([lower[~exact], upper[~exact]])
    cuts = np.unique(np.concatenate([ends, (points[1:] + points[:-1]) / 2]))
    cuts = cuts[(cuts > low) & (cuts < high)]
    if cuts.size < cells:
        return cuts
    # Quantiles of where the records are, so crowded places keep their detail.
    places = np.sort(np.concatenate([ends, lower[exact]]))
    ranks = np.linspace(0, places.size, cells, endpoint=False)[1:].astype(np.int64)
    chosen = np.unique(places[ranks])
    return chosen[(chosen > low) & (chosen < high)]


def _spread(
    lower: Floats, upper: Floats, codes: Ints, mass: Floats, *, edges: Floats, values: int
) -> Floats:
    """Return the mass of each value in each cell, spreading each box evenly between its ends.

    The density of a box is added at the cell where it begins and taken off where it ends; what
    lies in these two cells is put in directly.
    """
    count = len(edges) - 1
    widths = np.diff(edges)
    # An exact number on a border belongs to the cell above it, an upper end to the cell below.
    first = np.clip(np.searchsorted(edges, lower, side="right") - 1, 0, count - 1)
    last = np.clip(np.searchsorted(edges, upper, side="left") - 1, first, count - 1)
    shape, size = (count + 1, values), (count + 1) * values
    within = first == last
    # An empty bincount is of integers, to which no fraction can be added.
    total = np.bincount(first[within] * values + codes[within], mass[within], size).astype(float)
    f, e, c = first[~within], last[~within], codes[~within]
    density = mass[~within] / (upper - lower)[~within]
    total += np.bincount(f * values + c, density * (edges[f + 1] - lower[~within]), size)
    total += np.bincount(e * values + c, density * (upper[~within] - edges[e]), size)
    steps = np.bincount((f + 1) * values + c, density, size).astype(float)
    steps -= np.bincount(e * values + c, density, size)
    inner = np.cumsum(steps.reshape(shape), axis=0) * np.append(widths, 0.0)[:, None]
    # Differences of sums leave rounding where no box is open; counts of boxes show where.
    opened = np.bincount((f + 1) * values + c, minlength=size)
    opened -= np.bincount(e * values + c, minlength=size)
    inner[np.cumsum(opened.reshape(shape), axis=0) == 0] = 0.0
    spread: Floats = (total.reshape(shape) + inner)[:-1]
    return spread

"""Regressions from noisy marginals: a fitted joint distribution, and its parametric bootstrap.

Rows drawn from noisy marginals understate dependence by an unknown amount. Here the columns of a
regression get a joint distribution over a grid of nodes (bins of numbers, categories),

    p(x) proportional to prod_j m_j(x_j) * exp(sum over pairs of columns of a_jk s_j(x_j) s_k(x_k)),

with scores s (a number itself; zeros and ones of a category), one-way marginals as measured, and
a such that for each pair the products of scores have the mean that the noisy marginal of the pair
shows. Products are taken between the groups that were counted; inside them the same a holds. That
is exact where the outcome given the regressors is normal with constant variance, or logistic. The
regression's coefficients are those of p.

Their error: n rows are drawn from p, counted, given noise of the published scales, and everything
is estimated again, 30 times. All of it is post-processing of what is published.

References:
    Goodman, "Simple models for the analysis of association in cross-classifications having ordered
    categories", JASA 74 (1979). doi:10.1080/01621459.1979.10481650
    Efron, Tibshirani, "An Introduction to the Bootstrap", Chapman and Hall 1993.
    doi:10.1007/978-1-4899-4541-9
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from shoal.analysis import rows
from shoal.analysis.measured import (
    centres,
    combine,
    count_known_rows,
    missing_measurement,
    one_way,
)
from shoal.analysis.published import NoisyTable, PublishedTable
from shoal.analysis.result import AnalysisTerm, Estimand, term_of
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError

REPLICATES = 30
_NODES = 14
_ROUNDS, _CLOSE = 100, 1e-4
"""The most rounds of a fit, and how near its products of scores then are."""
_STRONG = 64.0
"""The largest factor of two scores; a correlation of 0.99 has 50."""


@dataclass(frozen=True, eq=False)
class _Axis:
    """A column of the grid.

    Attributes:
        cells: bins of its one-way noisy counts, or its categories.
        node: the node of each cell.
        values: the value of each cell: a number, or the code of a category.
        inside: variance of numbers within each cell.
        ends: the ends of each cell, for numbers.
    """

    name: str
    cells: tuple[Any, ...]
    node: Ints
    values: Floats
    inside: Floats
    ends: Floats | None

    @property
    def size(self) -> int:
        return int(self.node.max()) + 1


@dataclass(frozen=True, eq=False)
class _Pair:
    """The measurements of a pair of columns: which answers, and their groups of nodes."""

    axes: tuple[int, int]
    names: tuple[str, str]
    source: int
    groups: tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class _Answers:
    """Noisy one-way and multi-way tables, as published or redrawn in the bootstrap."""

    one_way: list[NoisyTable]
    sources: list[NoisyTable]


@dataclass(frozen=True, eq=False)
class _Model:
    """A fitted distribution over the grid.

    Attributes:
        p: masses of its nodes.
        bins: for each axis the masses of its bins, as shares of their node.
        shares: masses of its nodes.
        values: of its nodes.
        within: variances inside its nodes.
    """

    p: Floats
    bins: list[Floats]
    shares: list[Floats]
    values: list[Floats]
    within: list[Floats]


def regression(
    published: PublishedTable,
    outcome: str,
    category: str | None,
    names: Sequence[str],
    *,
    estimand: Estimand,
    confidence: float,
    seed: int,
) -> list[AnalysisTerm]:
    """Fit OLS for a numeric outcome, or logistic regression for a category of it."""
    columns = [*names, outcome]
    axes, pairs, answers = _collect_measurements(published, columns)
    n, known = (
        published.frame.select(columns).drop_nulls().height,
        count_known_rows(published, columns),
    )
    model = _fit(axes, pairs, answers, known)
    labels, beta = _coefficients(published, axes, model, category)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(REPLICATES):
        cells = model.p * n
        if estimand is Estimand.POPULATION:
            cells = rng.multinomial(n, model.p.ravel()).reshape(model.p.shape).astype(np.float64)
        again = _fit(axes, pairs, _redrawn(axes, model, answers, cells, rng), known)
        drawn.append(_coefficients(published, axes, again, category)[1])
    spread = np.array(drawn)
    kept = spread[np.isfinite(spread).all(axis=1)]
    if len(kept) < 0.9 * REPLICATES or not np.isfinite(beta).all():
        raise InputError("The noise of the release is too large for this regression.")
    variances = kept.var(axis=0, ddof=1)
    return [
        term_of(label, float(value), float(variance), confidence, freedom=len(kept) - 1)
        for label, value, variance in zip(labels, beta, variances, strict=True)
    ]


def _collect_measurements(
    published: PublishedTable, columns: Sequence[str]
) -> tuple[list[_Axis], list[_Pair], _Answers]:
    """Collect the grid of the columns, and the measurements of every pair."""
    shown = (
        published.present(table.over([name for name in columns if name in table.columns]))
        for table in published.tables
        if len(set(columns) & set(table.columns)) > 1
    )
    tables = [table for table in shown if table is not None]
    chosen: dict[tuple[str, str], int] = {}
    for a, b in combinations(columns, 2):
        sizes = {
            k: pair.variance * pair.counts.size
            for k, table in enumerate(tables)
            if {a, b} <= set(table.columns) and min((pair := table.over([a, b])).counts.shape) > 1
        }
        if not sizes:
            raise missing_measurement([a, b], published)
        chosen[a, b] = min(sizes, key=sizes.__getitem__)
    used = sorted(set(chosen.values()))
    sources = [tables[k] for k in used]
    axes_and_tables = [_axis(published, name, sources) for name in columns]
    axes = [axis for axis, _ in axes_and_tables]
    pairs = []
    for names, k in chosen.items():
        i, j = (columns.index(name) for name in names)
        cells = tables[k].over(names).cells
        groups = _groups(axes[i], cells[0]), _groups(axes[j], cells[1])
        pairs.append(_Pair((i, j), names, used.index(k), groups))
    return axes, pairs, _Answers([table for _, table in axes_and_tables], sources)


def _axis(
    published: PublishedTable, name: str, sources: Sequence[NoisyTable]
) -> tuple[_Axis, NoisyTable]:
    """Make a column of the grid, with its one-way noisy counts."""
    if not published.numeric(name):
        cells = tuple(frozenset([category]) for category in published.categories(name))
        tables = published.covering([name])
        resolved = [t for t in tables if set(t.cells[0]) == set(cells)]
        if not resolved:
            raise missing_measurement([name], published)
        best = min(resolved, key=lambda one: one.variance)
        place = np.array([best.cells[0].index(cell) for cell in cells])
        ordered = replace(best, cells=(cells,), counts=best.counts[place])
        codes = np.arange(len(cells))
        none = np.zeros(len(cells))
        return _Axis(name, cells, codes, codes.astype(np.float64), none, None), ordered
    table = one_way(published, name)
    ends = np.array(table.cells[0], dtype=np.float64)
    rows_ = published.numbers(name)
    step = published.step(name)  # m multiples of a step have the variance of m^2 - 1 of them / 12
    values = centres(table, rows_)
    inside = ((ends[:, 1] - ends[:, 0] + step) ** 2 - step**2) / 12
    placements = [_place(values, s.over([name]).cells[0]) for s in sources if name in s.columns]
    group = np.unique(np.array(placements), axis=1, return_inverse=True)[1].ravel()
    # Bins of one group are joined to nodes of about equal numbers of released rows.
    counts = np.histogram(rows_, np.append(ends[:, 0], ends[-1, 1]))[0] + 1e-9
    rank = np.minimum((np.cumsum(counts) - counts / 2) / counts.sum() * _NODES, _NODES - 1)
    both = np.column_stack([np.cumsum(np.diff(group, prepend=group[0]) != 0), rank.astype(int)])
    node = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    return _Axis(name, table.cells[0], node, values, inside, ends), table


def _place(values: Floats, cells: Sequence[tuple[float, float]]) -> Ints:
    starts = np.array([low for low, _ in cells])
    return np.searchsorted(starts, values, side="right") - 1


def _groups(axis: _Axis, cells: Sequence[Any]) -> Ints:
    """Return the group of each node in a table."""
    if axis.ends is None:
        return np.array(
            [next(g for g, cell in enumerate(cells) if fine <= cell) for fine in axis.cells]
        )
    groups = np.zeros(axis.size, dtype=np.int64)
    groups[axis.node] = _place(axis.values, cells)
    return groups


def _fit(
    axes: Sequence[_Axis], pairs: Sequence[_Pair], answers: _Answers, known: int | None
) -> _Model:
    """Fit the grid's distribution to the answers' margins and products of scores.

    If the number of rows is not public, each table is normalised by its own sum.
    """
    nodes = [
        _nodes(axis, table, answers.sources, known)
        for axis, table in zip(axes, answers.one_way, strict=True)
    ]
    inside, shares, values, within = (list(part) for part in zip(*nodes, strict=True))
    scores = [_scores(a, v, s) for a, v, s in zip(axes, values, shares, strict=True)]
    d = len(axes)
    goals = []
    for pair in pairs:
        (i, j), (gi, gj) = pair.axes, pair.groups
        noisy = answers.sources[pair.source].over(pair.names).counts
        left, right = _averages(scores[i], shares[i], gi), _averages(scores[j], shares[j], gj)
        n = float(noisy.sum()) if known is None else known
        even = (noisy + (n - noisy.sum()) / noisy.size) / n
        goals.append((left.T @ even @ right, left[gi], right[gj]))
    a = [np.zeros((scores[p.axes[0]].shape[1], scores[p.axes[1]].shape[1])) for p in pairs]
    margins = [np.log(share) for share in shares]
    seen: list[tuple[Floats, Floats] | None] = [None] * len(pairs)
    for _ in range(_ROUNDS):
        energy = reduce(np.add, (_wide(m, [k], d) for k, m in enumerate(margins)))
        for pair, interaction in zip(pairs, a, strict=True):
            i, j = pair.axes
            energy = energy + _wide(scores[i] @ interaction @ scores[j].T, [i, j], d)
        p = np.exp(energy - energy.max())
        p /= p.sum()
        for _ in range(2):
            for k, share in enumerate(shares):
                ratio = share / np.maximum(_margin(p, [k]), 1e-300)
                margins[k] = margins[k] + np.log(np.maximum(ratio, 1e-12))
                p = p * _wide(ratio, [k], d)
        off = 0.0
        for k, (pair, (goal, left, right)) in enumerate(zip(pairs, goals, strict=True)):
            joint = _margin(p, list(pair.axes))
            i, j = pair.axes
            now = left.T @ joint @ right
            gain = np.maximum(np.abs((left * scores[i]).T @ joint @ (right * scores[j])), 1e-3)
            if (last := seen[k]) is not None:  # the slope since then, where it is one
                then, moved = last
                rise = (now - then) / np.where(moved == 0, np.inf, moved)
                gain = np.where(rise > 0, np.clip(rise, 0.01 * gain, gain), gain)
            most = np.maximum(0.5, 0.25 * np.abs(a[k]))
            after = np.clip(a[k] + np.clip((goal - now) / gain, -most, most), -_STRONG, _STRONG)
            seen[k], a[k] = (now, after - a[k]), after
            off = max(off, float(np.abs(goal - now).max()))
        if off < _CLOSE:
            break
    return _Model(p, inside, shares, values, within)


def _nodes(
    axis: _Axis, table: NoisyTable, sources: Sequence[NoisyTable], known: int | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute shares of bins in their nodes, and masses, means and inner variances of nodes.

    Counts of bins stay as noisy as they are, also below zero: positive ones alone would move
    people into the tails. Only nodes are made positive, and their means put between their ends.
    """
    n = float(table.counts.sum()) if known is None else known
    if axis.ends is None:
        bins = np.maximum(table.counts + (n - table.counts.sum()) / table.counts.size, 0.5)
        return np.ones(bins.size), bins / bins.sum(), axis.values, axis.inside
    margins = [source.over([axis.name]) for source in sources if axis.name in source.columns]
    bins, _ = combine(table, margins, known)
    n = bins.sum()
    low, high = np.full(axis.size, np.inf), np.full(axis.size, -np.inf)
    np.minimum.at(low, axis.node, axis.ends[:, 0])
    np.maximum.at(high, axis.node, axis.ends[:, 1])
    mass = np.maximum(np.bincount(axis.node, bins), 0.1 * n / axis.size)
    mid = np.clip(np.bincount(axis.node, bins * axis.values) / mass, low, high)
    square = np.bincount(axis.node, bins * (axis.values**2 + axis.inside)) / mass
    within = np.clip(square - mid**2, 0.0, (high - mid) * (mid - low))
    positive = np.maximum(bins, 1e-3 * n / bins.size)
    inside = positive / np.bincount(axis.node, positive)[axis.node]
    return inside, mass / mass.sum(), mid, within


def _scores(axis: _Axis, values: Floats, shares: Floats) -> Floats:
    """Compute the nodes' scores with mean 0: standardised numbers, or dummies of categories."""
    if axis.ends is not None:
        centred = values - shares @ values
        return np.atleast_2d(centred / sqrt(max(float(shares @ centred**2), 1e-300))).T
    dummies = np.eye(len(values))[:, 1:]
    spread = np.sqrt(np.maximum(shares[1:] * (1 - shares[1:]), 1e-9))
    scores: Floats = (dummies - shares @ dummies) / spread
    return scores


def _averages(scores: Floats, shares: Floats, groups: Ints) -> Floats:
    """Average the scores over each group of nodes."""
    mass = np.maximum(np.bincount(groups, shares), 1e-300)
    return np.column_stack([np.bincount(groups, shares * s) / mass for s in scores.T])


def _wide(array: Floats, axes: Sequence[int], d: int) -> Floats:
    return np.expand_dims(array, tuple(k for k in range(d) if k not in axes))


def _margin(p: Floats, axes: Sequence[int]) -> Floats:
    summed: Floats = p.sum(axis=tuple(k for k in range(p.ndim) if k not in axes))
    return summed if list(axes) == sorted(axes) else summed.T


def _redrawn(
    axes: Sequence[_Axis],
    model: _Model,
    answers: _Answers,
    cells: Floats,
    rng: np.random.Generator,
) -> _Answers:
    """Redraw the answers: with these people by node, and new noise."""
    names = [axis.name for axis in axes]
    one_way_again, sources = [], []
    for k, (axis, table, inside) in enumerate(zip(axes, answers.one_way, model.bins, strict=True)):
        exact = _margin(cells, [k])[axis.node] * inside
        one_way_again.append(replace(table, counts=exact + _noise(table, rng)))
    for table in answers.sources:
        places = [names.index(name) for name in table.columns]
        groups = [_groups(axes[k], bins) for k, bins in zip(places, table.cells, strict=True)]
        exact = np.zeros(table.counts.shape)
        np.add.at(exact, np.ix_(*groups), _margin(cells, places))
        sources.append(replace(table, counts=exact + _noise(table, rng)))
    return _Answers(one_way_again, sources)


def _noise(table: NoisyTable, rng: np.random.Generator) -> Floats:
    """Draw noise from a table's distribution; sums of several cells are taken as normal."""
    if len(table.columns) == 1 and not table.gaussian:
        return rng.laplace(0.0, sqrt(table.variance / 2), table.counts.shape)
    return rng.normal(0.0, sqrt(table.variance), table.counts.shape)


def _coefficients(
    published: PublishedTable, axes: Sequence[_Axis], model: _Model, category: str | None
) -> tuple[list[str], Floats]:
    """Compute the regression implied by the grid."""
    labels, columns, extra = ["intercept"], [np.ones(model.p.shape[:-1])], [0.0]
    d = len(axes) - 1
    for k, (axis, values) in enumerate(zip(axes[:-1], model.values[:-1], strict=True)):
        if axis.ends is not None:
            labels.append(axis.name)
            columns.append(np.broadcast_to(_wide(values, [k], d), columns[0].shape))
            extra.append(float(model.shares[k] @ model.within[k]))
            continue
        for code, name in enumerate(published.categories(axis.name)[1:], start=1):
            labels.append(f"{axis.name} = {name}")
            columns.append(np.broadcast_to(_wide(values == code, [k], d), columns[0].shape))
            extra.append(0.0)
    U = np.column_stack([column.ravel().astype(np.float64) for column in columns])
    mass = model.p.sum(axis=-1).ravel()
    if category is None:
        y = (model.p @ model.values[-1]).ravel()
        A = (U * mass[:, None]).T @ U + np.diag(extra)
        return labels, np.linalg.solve(A, y @ U)
    code = published.categories(axes[-1].name).index(category)
    wanted = model.p[..., code].ravel() @ U
    try:
        beta, _ = rows.newton(U, lambda p: wanted - (mass * p) @ U, mass)
    except InputError:
        return labels, np.full(len(labels), np.nan)
    return labels, beta

"""Regressions from noisy marginals: a model of the measured columns, and its parametric bootstrap.

Rows that are drawn from noisy marginals understate dependence, and hide by how much. Here the
columns of a regression get a joint distribution over a grid of nodes (bins of numbers, categories),

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from shoal.analysis import rows
from shoal.analysis.measured import missing_measurement, one_way
from shoal.analysis.published import NoisyTable, PublishedTable, covering
from shoal.analysis.result import AnalysisTerm, Estimand, term_of
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.synthesis.maxent.posterior import expected

REPLICATES = 30
_NODES = 14
_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class _Axis:
    """A column of the grid.

    Attributes:
        table: its one-way noisy counts.
        node: of each bin of that table.
        values: of the bins: numbers, or places of categories.
        numeric: whether they are numbers.
    """

    name: str
    table: NoisyTable
    node: Ints
    values: Floats
    inside: Floats
    numeric: bool

    @property
    def size(self) -> int:
        return int(self.node.max()) + 1


@dataclass(frozen=True, eq=False)
class _Pair:
    """What was measured of two columns: counts over groups of nodes."""

    axes: tuple[int, int]
    groups: tuple[Ints, Ints]
    table: NoisyTable


@dataclass(frozen=True, eq=False)
class _Counts:
    """One set of noisy answers: as published, or drawn again."""

    one_way: list[Floats]
    pairs: list[Floats]


@dataclass(frozen=True, eq=False)
class _Model:
    """A fitted grid.

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
    """OLS of a numeric outcome, or logistic regression of a category of it."""
    columns = [*names, outcome]
    axes, pairs = _measured(published, columns)
    n = published.n
    found = _Counts([axis.table.counts for axis in axes], [pair.table.counts for pair in pairs])
    model = _fit(axes, pairs, found, n)
    labels, beta = _coefficients(published, axes, model, category)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(REPLICATES):
        cells = model.p * n
        if estimand is Estimand.POPULATION:
            cells = rng.multinomial(n, model.p.ravel()).reshape(model.p.shape).astype(np.float64)
        again = _redrawn(axes, pairs, model, cells, rng)
        drawn.append(_coefficients(published, axes, _fit(axes, pairs, again, n), category)[1])
    spread = np.array(drawn)
    kept = spread[np.isfinite(spread).all(axis=1)]
    if len(kept) < 0.9 * REPLICATES:
        raise InputError("The noise of the release is too large for this regression.")
    variances = kept.var(axis=0, ddof=1)
    return [
        term_of(label, float(value), float(variance), confidence, freedom=len(kept) - 1)
        for label, value, variance in zip(labels, beta, variances, strict=True)
    ]


def _measured(published: PublishedTable, columns: Sequence[str]) -> tuple[list[_Axis], list[_Pair]]:
    """The grid of the columns, and what was measured of every two."""
    tables = {}
    for pair in combinations(columns, 2):
        found = covering(published.tables, pair)
        found = [one for one in found if min(one.counts.shape) > 1]
        if not found:
            raise missing_measurement(pair, published.facts["method"])
        tables[pair] = min(found, key=lambda one: one.variance * one.counts.size)
    axes = [_axis(published, name, tables) for name in columns]
    pairs = []
    for (a, b), table in tables.items():
        places = columns.index(a), columns.index(b)
        groups = tuple(
            _groups(axes[place], cells) for place, cells in zip(places, table.cells, strict=True)
        )
        pairs.append(_Pair(places, (groups[0], groups[1]), table))
    return axes, pairs


def _axis(published: PublishedTable, name: str, tables: Mapping[Any, NoisyTable]) -> _Axis:
    if not published.numeric(name):
        cells = tuple(frozenset([one]) for one in published.categories(name))
        for table in covering(published.tables, [name]):
            if set(table.cells[0]) == set(cells):
                place = np.array([table.cells[0].index(one) for one in cells])
                ordered = replace(table, cells=(cells,), counts=table.counts[place])
                none = np.zeros(len(cells))
                codes = np.arange(len(cells))
                return _Axis(name, ordered, codes, codes.astype(float), none, numeric=False)
        raise missing_measurement([name], published.facts["method"])
    table = one_way(published, name)
    ends = np.array(table.cells[0], dtype=np.float64)
    values, inside = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) ** 2 / 12
    others = [
        _place(values, one.cells[one.columns.index(name)])
        for one in tables.values()
        if name in one.columns
    ]
    group = np.unique(np.array(others), axis=1, return_inverse=True)[1].ravel()
    # Bins of one group are joined to nodes of about equal numbers of released rows.
    counts = np.histogram(published.numbers(name), np.append(ends[:, 0], ends[-1, 1]))[0] + 1e-9
    rank = np.minimum((np.cumsum(counts) - counts / 2) / counts.sum() * _NODES, _NODES - 1)
    both = np.column_stack([np.cumsum(np.diff(group, prepend=group[0]) != 0), rank.astype(int)])
    node = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    return _Axis(name, table, node, values, inside, numeric=True)


def _place(values: Floats, cells: Sequence[tuple[float, float]]) -> Ints:
    starts = np.array([low for low, _ in cells])
    return np.searchsorted(starts, values, side="right") - 1


def _groups(axis: _Axis, cells: Sequence[Any]) -> Ints:
    """The group of each node in a table."""
    if not axis.numeric:
        return np.array(
            [next(g for g, cell in enumerate(cells) if one <= cell) for one in axis.table.cells[0]]
        )
    of_bins = _place(axis.values, cells)
    groups = np.zeros(axis.size, dtype=np.int64)
    groups[axis.node] = of_bins
    return groups


def _fit(axes: Sequence[_Axis], pairs: Sequence[_Pair], counts: _Counts, n: int) -> _Model:
    """The grid whose margins and products of scores are those of the counts."""
    inside, shares, values, within = [], [], [], []
    for axis, noisy in zip(axes, counts.one_way, strict=True):
        bins = _believed(axis, noisy, n)
        mass = np.bincount(axis.node, bins)
        mid = np.bincount(axis.node, bins * axis.values) / mass
        square = np.bincount(axis.node, bins * (axis.values**2 + axis.inside)) / mass
        inside.append(bins / mass[axis.node])
        shares.append(mass / mass.sum())
        values.append(mid)
        within.append(np.maximum(square - mid**2, 0.0))
    scores = [_scores(a, v, s) for a, v, s in zip(axes, values, shares, strict=True)]
    d = len(axes)
    goals = []
    for pair, noisy in zip(pairs, counts.pairs, strict=True):
        (i, j), (gi, gj) = pair.axes, pair.groups
        left, right = _averages(scores[i], shares[i], gi), _averages(scores[j], shares[j], gj)
        even = (noisy + (n - noisy.sum()) / noisy.size) / n
        goals.append((left.T @ even @ right, left[gi], right[gj]))
    a = [np.zeros((scores[p.axes[0]].shape[1], scores[p.axes[1]].shape[1])) for p in pairs]
    margins = [np.log(np.maximum(share, 1e-12)) for share in shares]
    for _ in range(_ROUNDS):
        energy = reduce(np.add, (_wide(m, [k], d) for k, m in enumerate(margins)))
        for pair, own in zip(pairs, a, strict=True):
            i, j = pair.axes
            energy = energy + _wide(scores[i] @ own @ scores[j].T, [i, j], d)
        p = np.exp(energy - energy.max())
        p /= p.sum()
        for _ in range(2):
            for k, share in enumerate(shares):
                ratio = share / np.maximum(_margin(p, [k]), 1e-300)
                margins[k] = margins[k] + np.log(np.maximum(ratio, 1e-12))
                p = p * _wide(ratio, [k], d)
        for pair, own, (goal, left, right) in zip(pairs, a, goals, strict=True):
            joint = _margin(p, list(pair.axes))
            i, j = pair.axes
            now = left.T @ joint @ right
            gain = (left * scores[i]).T @ joint @ (right * scores[j])
            step = (goal - now) / np.maximum(np.abs(gain), 1e-3)
            np.clip(own + np.clip(step, -0.5, 0.5), -8.0, 8.0, out=own)
    return _Model(p, inside, shares, values, within)


def _believed(axis: _Axis, noisy: Floats, n: int) -> Floats:
    """What is believed of the noisy counts of a column: positive, with sum n."""
    if axis.numeric:
        table = axis.table
        scale = sqrt(table.variance / (1 if table.gaussian else 2))
        return expected(noisy, float(n), scale, gaussian=table.gaussian)
    believed: Floats = np.maximum(noisy + (n - noisy.sum()) / noisy.size, 0.5)
    return believed


def _scores(axis: _Axis, values: Floats, shares: Floats) -> Floats:
    """Scores of the nodes with mean 0: a number in standard deviations, or a category each."""
    if axis.numeric:
        centred = values - shares @ values
        return np.atleast_2d(centred / sqrt(max(float(shares @ centred**2), 1e-300))).T
    dummies = np.eye(len(values))[:, 1:]
    spread = np.sqrt(np.maximum(shares[1:] * (1 - shares[1:]), 1e-9))
    scores: Floats = (dummies - shares @ dummies) / spread
    return scores


def _averages(scores: Floats, shares: Floats, groups: Ints) -> Floats:
    """The mean score of each group of nodes."""
    mass = np.maximum(np.bincount(groups, shares), 1e-300)
    return np.column_stack([np.bincount(groups, shares * s) / mass for s in scores.T])


def _wide(array: Floats, axes: Sequence[int], d: int) -> Floats:
    return np.expand_dims(array, tuple(k for k in range(d) if k not in axes))


def _margin(p: Floats, axes: Sequence[int]) -> Floats:
    summed: Floats = p.sum(axis=tuple(k for k in range(p.ndim) if k not in axes))
    return summed if list(axes) == sorted(axes) else summed.T


def _redrawn(
    axes: Sequence[_Axis],
    pairs: Sequence[_Pair],
    model: _Model,
    cells: Floats,
    rng: np.random.Generator,
) -> _Counts:
    """Answers as they would be measured again: of these people by node, with new noise."""
    one_way_counts, pair_counts = [], []
    for k, (axis, inside) in enumerate(zip(axes, model.bins, strict=True)):
        exact = _margin(cells, [k])[axis.node] * inside
        one_way_counts.append(exact + _noise(axis.table, rng))
    for pair in pairs:
        joint = _margin(cells, list(pair.axes))
        exact = np.zeros(pair.table.counts.shape)
        np.add.at(exact, (pair.groups[0][:, None], pair.groups[1][None, :]), joint)
        pair_counts.append(exact + _noise(pair.table, rng))
    return _Counts(one_way_counts, pair_counts)


def _noise(table: NoisyTable, rng: np.random.Generator) -> Floats:
    """Noise of a table's law; sums of several cells of a table are taken as normal."""
    if len(table.columns) == 1 and not table.gaussian:
        return rng.laplace(0.0, sqrt(table.variance / 2), table.counts.shape)
    return rng.normal(0.0, sqrt(table.variance), table.counts.shape)


def _coefficients(
    published: PublishedTable, axes: Sequence[_Axis], model: _Model, category: str | None
) -> tuple[list[str], Floats]:
    """The regression that the grid has."""
    labels, columns, extra = ["intercept"], [np.ones(model.p.shape[:-1])], [0.0]
    d = len(axes) - 1
    for k, (axis, values) in enumerate(zip(axes[:-1], model.values[:-1], strict=True)):
        if axis.numeric:
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

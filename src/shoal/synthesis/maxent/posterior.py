"""What to believe of noisy counts: post-processing that weighs the noise against what is likely.

Of a column (`expected`): its true counts are taken as drawn from a gamma law with the public mean
n / d, whose shape is not known. A small shape means a few large codes and many that are nearly
empty, a large one that all are alike. The noisy counts tell which, because the noise's law is
known. One count in fifty may go its own way, by a law so wide that noise decides: else many codes
that are alike would outvote the one that is not. Believed is the mean of the true counts given the
noisy ones, over shapes in proportion to how well each explains them.

Of two-way marginals (`taus`): how far one is believed where it departs from what its columns say by
themselves, by how far it and the others depart beyond their noise. Neighbouring codes of a column
that has an order are alike, so its pairs are believed at three levels of coarseness (`by_levels`).

Nothing here sees a record, and no promise rests on the assumed laws: where they are wrong, rows are
less accurate.

References:
    Robbins, "An empirical Bayes approach to statistics", Proc. 3rd Berkeley Symp. Math. Statist.
    Prob. 1 (1956).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from math import exp, log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from shoal.core._arrays import Array, Bools, Floats, Ints
from shoal.synthesis.domain import Measurement
from shoal.synthesis.maxent.fit import DENSE, Target, precision_of
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

_SHAPES = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0])
_OTHERS, _WIDE = 0.02, np.array([0.1])
"""Share of the counts that go their own way, and the shape of those."""
_FAR = 30.0
"""Scales of the noise, beyond which it lies once in 10^13 times."""
_GRAIN = 32
_SIDE = np.geomspace(0.05, _FAR, 36)
_AROUND = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
_FROM_ZERO = np.concatenate([[0.0], np.geomspace(1e-4, _FAR, 44)])
_SHARED = 4.0
"""Degrees of freedom with which all tables together answer for each."""
_RUNS = 2
"""How many times neighbouring groups of an ordered column are joined by twos."""
_REPEATED = 30
"""How often a table with structural zeros is brought to its margins."""
_LEAST, _MOST = 1e-2, 1e7
"""Of tau: a table with the largest is not believed at all."""


def expected(counts: NDArray[Any], total: float, scale: float, *, gaussian: bool = False) -> Floats:
    """The mean of the true counts given noisy ones; positive, with a given sum.

    With d noisy counts y, noise of Laplace's law with scale s, m = total / d, and each shape a of
    all counts as likely as any other, the law of the true counts x is

        sum over a of the product over i of (0.98 g_a(x_i) + 0.02 g_0.1(x_i)) e^(-|x_i - y_i| / s)
        with g_a(x) = (a / m)^a / Gamma(a) x^(a-1) e^(-a x / m),

    normalised; Gaussian noise has e^(-(x_i - y_i)^2 / (2 s^2)) there. That their sum is known is
    met by a further factor e^(-b sum x), with b such that the means have it. A count's law is
    summed over steps around y_i and near zero. Noisy counts are whole numbers, and are rounded to
    1/32 of s, so that few of them are distinct.

    Cost: O(d log d), and some thousand numbers for each distinct count.

    >>> expected(np.array([60, -20]), 40, 1.0).round(1)
    array([39.9,  0.1])
    >>> expected(np.array([60, -20]), 40, 100.0).round(1)
    array([23.5, 16.5])
    """
    step = max(scale / _GRAIN, 1.0)
    rounded = np.rint(np.asarray(counts, dtype=np.float64) / step) * step
    noisy, inverse, times = np.unique(rounded, return_inverse=True, return_counts=True)
    mean = total / inverse.size
    edges = np.concatenate(
        [
            np.maximum(noisy, 0.0)[:, None] + scale * _AROUND,
            np.broadcast_to(scale * _FROM_ZERO, (noisy.size, _FROM_ZERO.size)),
        ],
        axis=1,
    )
    edges = np.sort(np.maximum(edges, 0.0), axis=1)
    middles = (edges[:, 1:] + edges[:, :-1]) / 2
    common = np.logaddexp(
        _gamma(edges, middles, _SHAPES, mean) + log(1 - _OTHERS),
        _gamma(edges, middles, _WIDE, mean) + log(_OTHERS),
    )
    off = np.abs(noisy[:, None] - middles) / scale
    laws = common - (off * off / 2 if gaussian else off)
    tops = laws.max(axis=2, keepdims=True)
    laws = np.exp(laws - tops)
    sums = laws.sum(axis=2, keepdims=True)
    evidence = ((np.log(sums) + tops)[:, :, 0] * times).sum(axis=1)
    shares = np.exp(evidence - evidence.max())
    laws *= (shares / shares.sum())[:, None, None] / sums
    with np.errstate(divide="ignore"):
        mixed = np.log(laws.sum(axis=0))

    def means(b: float) -> Floats:
        tilted = mixed - b * middles
        tilted = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        averages: Floats = (tilted * middles).sum(axis=1) / tilted.sum(axis=1)
        return averages

    b = _falling(lambda b: float((times * means(b)).sum()) - total, 1 / scale)
    believed = means(b)[inverse]
    scaled: Floats = believed * (total / believed.sum())
    return scaled


def _gamma(edges: Floats, middles: Floats, shapes: Floats, mean: float) -> Floats:
    """Logarithms of gamma laws' masses on each step, in which they are taken as even.

    Where the step begins at zero they are not: there a law is taken as its power.
    """
    lower, upper = edges[:, :-1], edges[:, 1:]
    shapes = shapes[:, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        even = (shapes - 1) * np.log(middles) + np.log(upper - lower)
        power = shapes * np.log(upper) - np.log(shapes)
    steps = np.where(upper > lower, np.where(lower > 0, even, power), -np.inf)
    masses: Floats = (
        steps - shapes * middles / mean + shapes * np.log(shapes / mean) - gammaln(shapes)
    )
    return masses


def _falling(f: Callable[[float], float], unit: float) -> float:
    """Where a falling function is zero, or the end on that side if that is beyond all measure."""
    low, high = -unit, unit
    while (above := f(low)) < 0 and low > -1e6 * unit:
        low *= 2
    while (below := f(high)) > 0 and high < 1e6 * unit:
        high *= 2
    if above <= 0 or below >= 0:
        return low if above <= 0 else high
    return float(brentq(f, low, high, xtol=1e-9 * unit, rtol=1e-9, maxiter=1000))


def believed_targets(
    measured: Sequence[Measurement],
    zeros: GroupedZeros,
    *,
    n: int,
    tau: float,
    learns: bool,
    one_way: Sequence[Target] = (),
    ordered: Sequence[bool] = (),
) -> tuple[list[Target], list[float]]:
    """What a fit has to meet besides one-way marginals, and the taus that were learnt, if so.

    With common margins, and which columns have an order, pairs are learnt `by_levels`.
    """
    sizes = [prior.size for prior in zeros.priors]
    targets = [Target.of(marginal, n) for marginal in measured]
    if zeros.components:
        targets = [
            replace(target, shares=target.shares * zeros.mask(target.columns).ravel())
            for target in targets
        ]
    if prod(sizes) > DENSE or learns:
        targets = two_way_targets(targets, sizes, zeros)
    if not learns:
        return targets, []
    if one_way:
        margins = [target.shares for target in one_way]
        return by_levels(targets, zeros, margins, ordered, tau=tau)
    learnt = taus(targets, zeros, least=tau / 4)
    believed = [
        replace(target, weight=target.weight * tau / own)
        for target, own in zip(targets, learnt, strict=True)
    ]
    return believed, learnt


def two_way_targets(
    tables: Sequence[Target], sizes: Sequence[int], zeros: GroupedZeros | None = None
) -> list[Target]:
    """The two-way marginals that noisy marginals of more columns add up to.

    A cell that sums c cells that are not zero has c times their noise's variance. Where several
    show a pair, their mean is taken with weights in proportion to 1 / variance, which has the least
    variance.
    """
    found: dict[tuple[int, ...], Target] = {}
    for table in tables:
        whole = table.shares.reshape([sizes[j] for j in table.columns])
        for pair in combinations(range(len(table.columns)), 2):
            away = tuple(axis for axis in range(whole.ndim) if axis not in pair)
            shares = whole.sum(axis=away).ravel()
            weight = table.weight * shares.size / whole.size
            if zeros is not None and zeros.components:
                summed = zeros.mask(table.columns).sum(axis=away).ravel()
                weight = table.weight / np.maximum(summed, 1)
            columns = tuple(table.columns[axis] for axis in pair)
            if columns in found:
                other = found[columns]
                both = weight + other.weight
                shares = (weight * shares + other.weight * other.shares) / both
                weight = both
            found[columns] = Target(columns, shares, weight)
    return [found[columns] for columns in sorted(found)]


@dataclass(frozen=True, eq=False)
class _Departure:
    """What a table shows beyond its columns.

    Attributes:
        apart: the departure of each cell's share.
        alone: what single columns say of each cell.
        noise: variance of the departures from noise alone.
        kept: which cells count: none that is structurally zero.
        freedom: how many of the cells are free.
        least: no table of this size has a smaller tau.
    """

    apart: Floats
    alone: Floats
    noise: Floats
    kept: Bools
    freedom: int
    least: float = 0.0

    @cached_property
    def cells(self) -> tuple[Floats, Floats, Floats]:
        """Squared departure, what single columns say, and noise, of the cells that count."""
        return self.apart[self.kept] ** 2, self.alone[self.kept], self.noise[self.kept]

    def surplus(self, tau: float) -> float:
        """By how much departures exceed what tau and noise explain, in degrees of freedom."""
        squares, alone, noise = self.cells
        return self.freedom * (float((squares / (alone / tau + noise)).mean()) - 1)


def taus(tables: Sequence[Target], zeros: GroupedZeros, *, least: float) -> list[float]:
    """How many times the noise's variance is to be overstated for each two-way marginal.

    A fit with tau takes it that the share of a cell departs from q, which single columns say, with
    variance q / tau; its noise has variance v. With what the margins explain taken off, the
    departures r of a table should meet

        mean over cells of r^2 / (q / tau + v) = 1,

    of which the left side grows with tau. That is solved for all tables at once, by their degrees
    of freedom, and then for each, where the common answer counts as four degrees of freedom more.
    Where departures are no larger than noise, tau is the largest: then the fit leaves two columns
    independent. By chance a table of noise may depart a little more than most do, and is then
    believed a little. No table at all departs so far that the sum of r^2 / q exceeds the smaller
    number of groups less one, so no tau is below the cells over that, nor below `least`.

    With structural zeros q is what their prior says, on the cells that are allowed.
    """
    shown = [_departure(table, zeros) for table in tables]
    return _learnt(shown, least, pooled=bool(zeros.components))


def _learnt(shown: Sequence["_Departure"], least: float, *, pooled: bool = False) -> list[float]:
    """A tau for each of some departures, which answer for each other too, by median or pooled."""
    if not shown:
        return []
    common = float(np.median([_rising(one.surplus) for one in shown]))
    if pooled:
        common = _rising(lambda tau: sum(one.surplus(tau) for one in shown))
    cells = [[float(of.mean()) for of in one.cells] for one in shown]
    _, alone, noise = map(float, np.mean(cells, axis=0))

    def surplus(tau: float, one: _Departure) -> float:
        drawn = (alone / common + noise) / (alone / tau + noise) - 1
        return one.surplus(tau) + _SHARED * drawn

    return [max(_rising(partial(surplus, one=one)), one.least, least) for one in shown]


def _departure(table: Target, zeros: GroupedZeros) -> _Departure:
    """The operator 1 - p 1' along either axis takes off what margins explain."""
    rows, columns = (zeros.priors[j] for j in table.columns)
    a, b = table.columns
    alone = zeros.table((a, b))
    down, across = np.broadcast_to(rows[:, None], alone.shape), columns
    if zeros.joined(a, b):
        down, across = (
            alone / np.maximum(alone.sum(axis=k, keepdims=True), 1e-300) for k in (0, 1)
        )
    apart = table.shares.reshape(alone.shape) - alone
    apart = apart - down * apart.sum(axis=0)
    apart = apart - across * apart.sum(axis=1, keepdims=True)
    spread = np.outer(*(1 - 2 * p + p.size * p**2 for p in (rows, columns)))
    noise = spread / np.broadcast_to(table.weight, alone.size).reshape(alone.shape)
    return _whole(apart, alone, noise, zeros.mask((a, b)))


def _whole(apart: Floats, alone: Floats, noise: Floats, kept: Bools) -> _Departure:
    freedom = (alone.shape[0] - 1) * (alone.shape[1] - 1) - int((~kept).sum())
    least = alone.size / max(min(alone.shape) - 1, alone.size / _MOST)
    return _Departure(apart, alone, noise, kept, max(freedom, 1), least)


@dataclass(frozen=True, eq=False)
class _Level:
    """A two-way marginal over runs of its groups; see `by_levels`.

    Attributes:
        columns: which two.
        codes: for either column, the run of each group.
        shares: the noisy shares of cells, which add up to the margins.
        variance: of the noise of each share; none where cells are structurally zero.
        shown: what it shows beyond its columns; finer levels count as noise.
    """

    columns: tuple[int, ...]
    codes: tuple[Ints, Ints]
    shares: Floats
    variance: Floats
    shown: _Departure

    def target(self, tau: float, learnt: float) -> Target:
        """What a fit with tau has to meet, so that this level is believed with its own."""
        finest = self.shares.shape == (self.codes[0].size, self.codes[1].size)
        variance = np.where(self.shown.kept, self.variance, 1.0).ravel()
        weight = tau / learnt / variance
        return Target(self.columns, self.shares.ravel(), weight, None if finest else self.codes)

    def coarser(
        self, ordered: Sequence[bool], zeros: GroupedZeros
    ) -> "tuple[_Departure, _Level] | None":
        """What cells show beyond the runs that they are joined to, and the level of these runs."""
        shape = self.shares.shape
        a, b = (
            _runs(zeros.atoms_of(j, codes)) if ordered[j] and size > 3 else np.arange(size)
            for j, codes, size in zip(self.columns, self.codes, shape, strict=True)
        )
        if (a[-1] + 1, b[-1] + 1) == shape:
            return None

        def summed(cells: Array) -> Floats:
            rows = np.add.reduceat(cells, np.unique(a, return_index=True)[1], axis=0)
            both: Floats = np.add.reduceat(rows, np.unique(b, return_index=True)[1], axis=1)
            return both

        one = self.shown
        apart, alone, noise, count = map(summed, (one.apart, one.alone, one.noise, 1.0 * one.kept))
        share = one.alone / np.maximum(alone[a][:, b], 1e-300)
        joined = count[a][:, b]
        departure = _Departure(
            one.apart - share * apart[a][:, b],
            one.alone * (1 - share),
            one.noise * (1 - 2 * share + joined * share**2),
            (joined > 1) & one.kept,
            int(one.kept.sum() - (count > 0).sum()),
        )
        fewer = _Level(
            self.columns,
            (a[self.codes[0]], b[self.codes[1]]),
            summed(self.shares),
            summed(self.variance),
            _whole(apart, alone, noise, count > 0),
        )
        return departure, fewer


def _runs(atoms: Ints) -> Ints:
    """The run of each of some neighbours: they are joined by twos within their atoms."""
    starts = np.diff(atoms, prepend=-1) != 0
    since = np.arange(atoms.size) - np.flatnonzero(starts)[np.cumsum(starts) - 1]
    runs: Ints = np.cumsum(since % 2 == 0) - 1
    return runs


def by_levels(
    tables: Sequence[Target],
    zeros: GroupedZeros,
    margins: Sequence[Floats],
    ordered: Sequence[bool],
    *,
    tau: float,
) -> tuple[list[Target], list[float]]:
    """Two-way marginals as a fit with tau has to meet them, at up to three levels, and their taus.

    First the noise of each is brought to add up to the margins, evenly over rows and columns: that
    is the nearest table with these margins, and margins are known far better.

    Then neighbouring groups of ordered columns are joined by twos, twice. The departure of a cell
    is taken as the sum of three: its own, one in common with the cells of its run, and one in
    common with those of its run of runs, each of variance q / tau with a tau of its own. A fit that
    has to meet all three levels, each as often as its tau says, has just that prior: where p is
    near q its parameters are these three, and the residual of a cell, which is counted once, moves
    them all. Taus are learnt from the finest level on, by what cells show beyond their runs; for a
    coarser level what finer ones explain is noise.

    With structural zeros, groups are joined within their atoms, so runs are allowed or not as a
    whole; and taus are pooled.
    """
    levels = [_fitted_to(table, zeros, margins) for table in tables]
    pooled = bool(zeros.components)
    targets, learnt = [], []
    for _ in range(_RUNS):
        joined = [(number, level.coarser(ordered, zeros)) for number, level in enumerate(levels)]
        moved = [(number, *both) for number, both in joined if both is not None]
        own = _learnt([departure for _, departure, _ in moved], tau / 4, pooled=pooled)
        for (number, _, fewer), one in zip(moved, own, strict=True):
            targets.append(levels[number].target(tau, one))
            shown = replace(fewer.shown, noise=fewer.shown.noise + fewer.shown.alone / one)
            levels[number] = replace(fewer, shown=shown)
        learnt += own
    own = _learnt([level.shown for level in levels], tau / 4, pooled=pooled)
    targets += [level.target(tau, one) for level, one in zip(levels, own, strict=True)]
    return targets, learnt + own


def _fitted_to(table: Target, zeros: GroupedZeros, margins: Sequence[Floats]) -> _Level:
    """Spread what a table lacks of its margins over rows and columns, by the noise of cells.

    That is exact at once unless there are zeros; then it is repeated.
    """
    rows, columns = (margins[j] for j in table.columns)
    kept = zeros.mask(table.columns)
    shares = table.shares.reshape(kept.shape)
    variance = kept / np.broadcast_to(table.weight, kept.size).reshape(kept.shape)
    down, across = (
        variance / np.maximum(variance.sum(axis=k, keepdims=True), 1e-300) for k in (0, 1)
    )
    for _ in range(1 if kept.all() else _REPEATED):
        shares = shares + across * (rows - shares.sum(axis=1))[:, None]
        shares = shares + down * (columns - shares.sum(axis=0))
    codes = np.arange(rows.size), np.arange(columns.size)
    return _Level(table.columns, codes, shares, variance, _departure(table, zeros))


def common_margins(
    one_way: Sequence[Target], measured: Sequence[Measurement], zeros: GroupedZeros, *, n: int
) -> list[Target]:
    """Shares of each column's groups by all marginals that have it: means by 1 / variance.

    They are what a fit starts from and has to meet, in place of one-way marginals alone: each pair
    that was measured says as much again of its columns.
    """
    found = []
    for target in one_way:
        (j,) = target.columns
        weight, mean = target.weight, target.weight * target.shares
        for marginal in (one for one in measured if j in one.columns):
            away = tuple(k for k, other in enumerate(marginal.columns) if other != j)
            kept = zeros.mask(marginal.columns)
            shares = (marginal.counts * kept).sum(axis=away) / n
            own = precision_of(n, marginal.variance) / np.maximum(kept.sum(axis=away), 1)
            weight, mean = weight + own, mean + own * shares
        shares = np.maximum(mean / weight, 0.0) + 1e-9
        found.append(Target((j,), shares / shares.sum(), weight))
    return found


def _rising(f: Callable[[float], float]) -> float:
    """The tau at which a rising function is zero, or the nearer end."""
    if f(_MOST) <= 0:
        return _MOST
    if f(_LEAST) >= 0:
        return _LEAST
    return exp(brentq(lambda x: f(exp(x)), log(_LEAST), log(_MOST), xtol=1e-6))

"""What to believe of noisy counts: post-processing that weighs the noise against what is likely.

Of a column (`expected`): its true counts are taken as drawn from a gamma law with the public mean
n / d, whose shape is not known. A small shape means a few large codes and many that are nearly
empty, a large one that all are alike. The noisy counts tell which, because the noise's law is
known. One count in fifty may go its own way, by a law so wide that noise decides: else many codes
that are alike would outvote the one that is not. Believed is the mean of the true counts given the
noisy ones, over shapes in proportion to how well each explains them.

Of two-way marginals (`taus`): how far one is believed where it departs from what its columns say by
themselves, by how far it and the others depart beyond their noise.

Nothing here sees a record, and no promise rests on the assumed laws: where they are wrong, rows are
less accurate.

References:
    Robbins, "An empirical Bayes approach to statistics", Proc. 3rd Berkeley Symp. Math. Statist.
    Prob. 1 (1956).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import exp, log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from shoal.core._arrays import Floats
from shoal.synthesis.domain import Measurement
from shoal.synthesis.maxent.fit import DENSE, Target
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
    measured: Sequence[Measurement], zeros: GroupedZeros, *, n: int, tau: float, learns: bool
) -> tuple[list[Target], list[float]]:
    """What a fit has to meet besides one-way marginals, and the taus that were learnt, if so."""
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
        squares: of the departure of each cell's share.
        alone: what single columns say of each cell.
        noise: variance of the departures from noise alone.
        freedom: how many of the cells are free.
        least: no table of this size has a smaller tau.
    """

    squares: Floats
    alone: Floats
    noise: Floats
    freedom: int
    least: float

    def surplus(self, tau: float) -> float:
        """By how much departures exceed what tau and noise explain, in degrees of freedom."""
        return self.freedom * (float((self.squares / (self.alone / tau + self.noise)).mean()) - 1)


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
    common = _rising(lambda tau: sum(one.surplus(tau) for one in shown))
    alone, noise = (
        float(np.mean([cells.mean() for cells in of]))
        for of in ([one.alone for one in shown], [one.noise for one in shown])
    )

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
    if allowed := zeros.joined(a, b):
        down, across = (
            alone / np.maximum(alone.sum(axis=k, keepdims=True), 1e-300) for k in (0, 1)
        )
    apart = table.shares.reshape(alone.shape) - alone
    apart = apart - down * apart.sum(axis=0)
    apart = apart - across * apart.sum(axis=1, keepdims=True)
    spread = np.outer(*(1 - 2 * p + p.size * p**2 for p in (rows, columns)))
    noise = spread / np.broadcast_to(table.weight, alone.size).reshape(alone.shape)
    freedom = (rows.size - 1) * (columns.size - 1)
    least = alone.size / max(min(alone.shape) - 1, alone.size / _MOST)
    squares = apart**2
    if allowed:
        kept = zeros.mask((a, b))
        squares, alone, noise = squares[kept], alone[kept], noise[kept]
        freedom = max(freedom - int((~kept).sum()), 1)
    return _Departure(squares, alone, noise, freedom, least)


def _rising(f: Callable[[float], float]) -> float:
    """The tau at which a rising function is zero, or the nearer end."""
    if f(_MOST) <= 0:
        return _MOST
    if f(_LEAST) >= 0:
        return _LEAST
    return exp(brentq(lambda x: f(exp(x)), log(_LEAST), log(_MOST), xtol=1e-6))

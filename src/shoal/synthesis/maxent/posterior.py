"""Posterior means of true counts given noisy ones: post-processing.

Of a column (`posterior_mean`): its true counts are modelled as draws from a gamma distribution with
the public mean n / d, whose shape is not known. A small shape means a few large codes and many that
are nearly empty, a large one that all are alike. The noisy counts show which, because the
distribution of the noise is known. One count in fifty may be an outlier, with a prior so wide that
the data decide: otherwise many similar codes would outvote one that differs. The estimate is the
posterior mean of the true counts, over shapes weighted by their likelihood.

Of a column whose codes have an order (`smooth`): neighbouring codes are alike as often as not. The
noisy counts show, for runs of each width, how far their two halves differ beyond noise.

Of two-way marginals (`by_levels`): each cell's deviation from independence is shrunk, depending on
how far it and the other cells deviate beyond their noise. Neighbouring codes of an ordered column
are similar, so its pairs are shrunk at several levels of coarseness.

Deviations are modelled by a mixture of narrow and wide normal distributions around zero, whose
weights are estimated from the noisy deviations (`_fit_mixture_weights`). So a few large deviations
are kept, while many small ones are shrunk to zero.

Nothing here sees a record, and no promise rests on the assumed distributions: if they are wrong,
rows are less accurate.

References:
    Robbins, "An empirical Bayes approach to statistics", Proc. 3rd Berkeley Symp. Math. Statist.
    Prob. 1 (1956).
    Kolaczyk, "Bayesian multiscale models for Poisson processes", J. Amer. Statist. Assoc. 94
    (1999).
    Stephens, "False discovery rates: a new deal", Biostatistics 18 (2017).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import log, prod
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shoal.core._arrays import Array, Bools, Floats, Ints
from shoal.mechanism.consistent_counts import scale_to
from shoal.synthesis.domain import Measurement
from shoal.synthesis.maxent.fit import DENSE, Target, precision_of
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

_SHAPES = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0])
_OTHERS, _WIDE = 0.02, np.array([0.1])
"""Share of the counts that are outliers, and their shape."""
_FAR = 30.0
"""Scales of the noise, beyond which it lies once in 10^13 times."""
_GRAIN = 32
_SIDE = np.geomspace(0.05, _FAR, 36)
_AROUND = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
_FROM_ZERO = np.concatenate([[0.0], np.geomspace(1e-4, _FAR, 44)])
_LAWS = np.array([0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8, 1.6, 4.0, 10.0])
"""Standard deviations of deviations, relative to the expected share."""
_ROUNDS = 50
"""How often the weights of these laws are improved."""
_SHARED = 4.0
"""Degrees of freedom with which all tables together answer for each."""
_FEW = 3
"""Groups that are not joined any more."""
_MOST_PAIRS = 400
"""Two-way marginals that a fit takes: of wide tables, those with the strongest dependence."""
_REPEATED = 30
"""How often a table with structural zeros is brought to its margins."""
_LEAST, _MOST = 1e-2, 1e7
"""Of tau: a cell with the largest is not believed at all."""


def posterior_mean(
    counts: NDArray[Any], total: float, scale: float, *, gaussian: bool = False
) -> Floats:
    """Return the posterior mean of the true counts; positive, with a given sum.

    With d noisy counts y, Laplace noise of scale s, m = total / d, and a uniform prior on the shape
    a of all counts, the posterior density of the true counts x is

        sum over a of the product over i of (0.98 g_a(x_i) + 0.02 g_0.1(x_i)) e^(-|x_i - y_i| / s)
        with g_a(x) = (a / m)^a / Gamma(a) x^(a-1) e^(-a x / m),

    normalised; Gaussian noise has e^(-(x_i - y_i)^2 / (2 s^2)) there. A further factor e^(-b sum x)
    accounts for their known sum, with b such that the means have it. Each count's distribution is
    integrated over steps around y_i and near zero. Noisy counts are whole numbers, and are rounded
    to 1/32 of s, so that few of them are distinct.

    Cost: O(d log d), and some thousand numbers for each distinct count.

    >>> posterior_mean(np.array([60, -20]), 40, 1.0).round(1)
    array([39.9,  0.1])
    >>> posterior_mean(np.array([60, -20]), 40, 100.0).round(1)
    array([23.5, 16.5])
    """
    if total <= 0:
        return np.zeros(len(counts))
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
    return scale_to(believed, total)


def smooth(counts: NDArray[Any], total: float, variance: float) -> Floats:
    """Return the posterior mean of ordered true counts; non-negative, with a given sum.

    Every run of 2^l codes is divided into its halves, from all codes down to single ones. The
    difference of the halves from equal shares is modelled by a mixture of normal distributions
    around zero, one mixture for each l, whose weights are estimated from the noisy sums (EM, with
    one run added for each component). The estimate is the posterior mean of that difference; halves
    are never negative. A code is in two runs of each length, in the left half of one and the right
    half of the other, and gets the mean of both, so it does not matter where runs begin. Codes form
    a ring, padded with codes of no width to a power of two.

    Cost: O(d log d).

    >>> smooth(np.array([9, 12, 11, 8, 10, 10, 99, 9]), 168, 8.0).round()
    array([10., 11., 10.,  9., 10., 10., 99.,  9.])
    """
    levels = max((counts.size - 1).bit_length(), 1)
    sums, widths = (
        [np.concatenate([values, np.zeros(2**levels - counts.size)])]
        for values in (counts.astype(np.float64), np.ones(counts.size))
    )
    for level in range(levels):
        for runs in (sums, widths):
            runs.append(runs[-1] + np.roll(runs[-1], -(2**level)))
    believed = np.full(2**levels, float(total))
    for level in range(levels - 1, -1, -1):
        half = 2**level
        width = np.maximum(widths[level + 1], 1.0)
        left, right = widths[level] / width, np.roll(widths[level], -half) / width
        apart = sums[level] * right - np.roll(sums[level], -half) * left
        moved = np.zeros(believed.size)
        cut = np.flatnonzero((left > 0) & (right > 0))
        even = believed[cut] * left[cut] * right[cut]
        noise = variance * (width * left * right)[cut]
        moved[cut] = _uneven(apart[cut], even, noise, 2.0 * half)
        moved = np.clip(moved, -believed * left, believed * right)
        believed = (believed * left + moved + np.roll(believed * right - moved, half)) / 2
    return scale_to(believed[: counts.size], total)


def _uneven(apart: Floats, even: Floats, noise: Floats, repeated: float) -> Floats:
    """Return the posterior mean of differences; each code occurs in `repeated` of the runs."""
    spread = (2 * _LAWS[:, None] * even) ** 2
    once = np.full(apart.size, 1 / max(min(repeated, apart.size), 1))
    equal = np.full(_LAWS.size, 1 / _LAWS.size)
    shares, _ = _fit_mixture_weights(_likely(apart**2, spread + noise), once, equal)
    means: Floats = (shares * spread / (spread + noise)).sum(axis=0) * apart
    return means


def _likely(squares: Floats, variance: Floats) -> Floats:
    """Return the likelihood of each squared deviation under each component, scaled to maximum 1."""
    logs = -0.5 * (squares / variance + np.log(variance))
    likely: Floats = np.exp(logs - logs.max(axis=0))
    return likely


def _fit_mixture_weights(likely: Floats, times: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Estimate the weights of mixture components, and their posterior for each deviation (EM).

    Each deviation counts `times` times; `prior` adds pseudo-observations to each component.
    """
    weights, add = prior / prior.sum(), np.add.reduce
    shares = np.empty_like(likely)
    for _ in range(_ROUNDS):
        np.multiply(weights[:, None], likely, out=shares)
        shares /= add(shares, axis=0)
        weights = shares @ times + prior
        weights /= add(weights)
    return shares, weights


def _gamma(edges: Floats, middles: Floats, shapes: Floats, mean: float) -> Floats:
    """Return the logarithms of gamma probabilities of each step, with density even within it.

    A step from zero is the exception: there the density is taken as a power of x.
    """
    lower, upper = edges[:, :-1], edges[:, 1:]
    shapes = shapes[:, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        even = (shapes - 1) * np.log(middles) + np.log(upper - lower)
        power = shapes * np.log(upper) - np.log(shapes)
    steps = np.where(upper > lower, np.where(lower > 0, even, power), -np.inf)
    masses: Floats = (
        steps
        - shapes * middles / mean
        + shapes * np.log(shapes / mean)
        - scipy.special.gammaln(shapes)
    )
    return masses


def _falling(f: Callable[[float], float], unit: float) -> float:
    """Find the zero of a decreasing function, or an end of the search range beyond it."""
    low, high = -unit, unit
    while (above := f(low)) < 0 and low > -1e6 * unit:
        low *= 2
    while (below := f(high)) > 0 and high < 1e6 * unit:
        high *= 2
    if above <= 0 or below >= 0:
        return low if above <= 0 else high
    return float(scipy.optimize.brentq(f, low, high, xtol=1e-9 * unit, rtol=1e-9, maxiter=1000))


def posterior_targets(
    measured: Sequence[Measurement],
    zeros: GroupedZeros,
    *,
    n: int,
    tau: float,
    learns: bool,
    margins: Sequence[Floats],
    ordered: Sequence[bool],
    cells: int = 0,
) -> tuple[list[Target], list[Target], list[float]]:
    """Make the targets of a fit besides one-way marginals.

    Margins are the shares of each column's groups. `cells` is how many the last fit has, if these
    groups are not its own: beyond `DENSE` it takes two-way marginals. If the weight of pairs is
    learnt (`by_levels`), the noisy pairs and their posterior shares are returned as well.
    """
    sizes = [prior.size for prior in zeros.priors]
    targets = [Target.of(marginal, n) for marginal in measured]
    if zeros.components:
        targets = [
            replace(target, shares=target.shares * zeros.mask(target.columns).ravel())
            for target in targets
        ]
    if max(cells, prod(sizes)) > DENSE or learns:
        targets = two_way_targets(targets, sizes, zeros)
    if not learns:
        return targets, [], []
    believed, parts = by_levels(targets, zeros, margins, ordered, tau=tau)
    kept = {target.columns for target in believed}
    return believed, [target for target in targets if target.columns in kept], parts


def two_way_targets(
    tables: Sequence[Target], sizes: Sequence[int], zeros: GroupedZeros | None = None
) -> list[Target]:
    """Derive two-way marginals from noisy marginals of more columns.

    A cell that sums c cells that are not zero has c times their noise's variance. If several
    marginals contain a pair, they are averaged with weights 1 / variance, which gives the least
    variance.
    """
    targets: dict[tuple[int, ...], Target] = {}
    for table in tables:
        cells = table.shares.reshape([sizes[j] for j in table.columns])
        for pair in combinations(range(len(table.columns)), 2):
            away = tuple(axis for axis in range(cells.ndim) if axis not in pair)
            shares = cells.sum(axis=away).ravel()
            weight = table.weight * shares.size / cells.size
            if zeros is not None and zeros.components:
                summed = zeros.mask(table.columns).sum(axis=away).ravel()
                weight = table.weight / np.maximum(summed, 1)
            columns = tuple(table.columns[axis] for axis in pair)
            if columns in targets:
                other = targets[columns]
                both = weight + other.weight
                shares = (weight * shares + other.weight * other.shares) / both
                weight = both
            targets[columns] = Target(columns, shares, weight)
    return [targets[columns] for columns in sorted(targets)]


@dataclass(frozen=True, eq=False)
class _Departure:
    """What a table shows beyond the product of its margins.

    Attributes:
        apart: the deviation of each cell's share.
        alone: the share of each cell under independence.
        noise: variance of the deviations from noise alone.
        kept: which cells count: those that are not structurally zero.
        freedom: how many of the cells are free.
    """

    apart: Floats
    alone: Floats
    noise: Floats
    kept: Bools
    freedom: int

    @cached_property
    def spread(self) -> Floats:
        """Variance of the deviation of each cell that counts, under each component."""
        return np.asarray((_LAWS[:, None] * self.alone[self.kept]) ** 2)

    @cached_property
    def likely(self) -> Floats:
        """Likelihood of the deviation of each cell that counts, under each component."""
        return _likely(self.apart[self.kept] ** 2, self.spread + self.noise[self.kept])

    @property
    def times(self) -> Floats:
        """Weight of each cell, so that all together count as the number of free cells."""
        cells = int(self.kept.sum())
        return np.full(cells, self.freedom / max(cells, 1))

    def taus(self, weights: Floats) -> Floats:
        """Return tau for each cell, given mixture weights for all tables.

        A tau means that deviations have variance alone / tau. A cell whose posterior keeps a share
        b of its deviation acts as if signal to noise were b / (1 - b).
        """
        shares, _ = _fit_mixture_weights(self.likely, self.times, _SHARED * weights)
        noise, independent = self.noise[self.kept], self.alone[self.kept]
        left = (shares * noise / (self.spread + noise)).sum(axis=0)
        taus = np.full(self.kept.shape, _MOST)
        odds = np.maximum(1 / np.maximum(left, 1e-9) - 1, 1e-9)
        taus[self.kept] = np.clip(independent / (noise * odds), _LEAST, _MOST)
        return taus

    def posterior_share(self, taus: Floats) -> float:
        """Return the share of the squared deviations of counting cells that the posterior keeps."""
        squares = np.where(self.kept, self.apart**2, 0.0)
        signal = self.alone / taus
        return float((squares * signal / (signal + self.noise)).sum() / max(squares.sum(), 1e-300))

    def posterior_signal(self, taus: Floats) -> float:
        """Return the chi-square distance from independence that the posterior keeps."""
        signal = self.alone / taus
        kept = self.apart * signal / (signal + self.noise)
        return float((kept[self.kept] ** 2 / self.alone[self.kept]).sum())


def _estimate_taus(shown: Sequence[_Departure]) -> list[Floats]:
    """Estimate tau for each cell of some deviations, with one mixture for all of them."""
    if not shown:
        return []
    together = np.concatenate([deviation.likely for deviation in shown], axis=1)
    times = np.concatenate([deviation.times for deviation in shown])
    _, weights = _fit_mixture_weights(together, times, np.full(_LAWS.size, 1 / _LAWS.size))
    return [deviation.taus(weights) for deviation in shown]


def _departure(table: Target, zeros: GroupedZeros) -> _Departure:
    """Subtract the margins' prediction: the operator 1 - p 1' along either axis."""
    rows, columns = (zeros.priors[j] for j in table.columns)
    a, b = table.columns
    independent = zeros.table((a, b))
    down, across = np.broadcast_to(rows[:, None], independent.shape), columns
    if zeros.are_joined(a, b):
        down, across = (
            independent / np.maximum(independent.sum(axis=k, keepdims=True), 1e-300) for k in (0, 1)
        )
    apart = table.shares.reshape(independent.shape) - independent
    apart = apart - down * apart.sum(axis=0)
    apart = apart - across * apart.sum(axis=1, keepdims=True)
    spread = np.outer(*(1 - 2 * p + p.size * p**2 for p in (rows, columns)))
    noise = spread / np.broadcast_to(table.weight, independent.size).reshape(independent.shape)
    return _whole(apart, independent, noise, zeros.mask((a, b)))


def _whole(apart: Floats, alone: Floats, noise: Floats, kept: Bools) -> _Departure:
    freedom = (alone.shape[0] - 1) * (alone.shape[1] - 1) - int((~kept).sum())
    return _Departure(apart, alone, np.maximum(noise, 1e-30), kept, max(freedom, 1))


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

    def target(self, tau: float, learnt: Floats) -> Target:
        """Make a target with which the fit's tau gives this level its own tau."""
        finest = self.shares.shape == (self.codes[0].size, self.codes[1].size)
        variance = np.where(self.shown.kept, self.variance, 1.0)
        weight = (tau / learnt / variance).ravel()
        return Target(self.columns, self.shares.ravel(), weight, None if finest else self.codes)

    def runs(self, ordered: Sequence[bool], zeros: GroupedZeros) -> tuple[Ints, Ints] | None:
        """Join adjacent groups in pairs where they have an order; None if there are none."""
        a, b = (
            _runs(zeros.atoms_of(j, codes)) if ordered[j] and size > _FEW else np.arange(size)
            for j, codes, size in zip(self.columns, self.codes, self.shares.shape, strict=True)
        )
        return None if (a[-1] + 1, b[-1] + 1) == self.shares.shape else (a, b)

    def inside(self, runs: tuple[Ints, Ints]) -> _Departure:
        """Return the deviations of cells from the runs that contain them."""
        shown, (a, b) = self.shown, runs
        apart, independent, count = (
            _sum_runs(of, runs)[a][:, b] for of in (shown.apart, shown.alone, 1.0 * shown.kept)
        )
        share = shown.alone / np.maximum(independent, 1e-300)
        return _Departure(
            shown.apart - share * apart,
            shown.alone * (1 - share),
            shown.noise * (1 - 2 * share + count * share**2),
            (count > 1) & shown.kept,
            int(shown.kept.sum() - (_sum_runs(1.0 * shown.kept, runs) > 0).sum()),
        )

    def join_runs(self, runs: tuple[Ints, Ints], learnt: Floats) -> "_Level":
        """Return the level of these runs; deviations of single cells count as noise."""
        shown, (a, b) = self.shown, runs
        variance = np.where(shown.kept, shown.alone / learnt, 0.0)
        noise = shown.noise + variance
        apart, independent, noise, count = (
            _sum_runs(of, runs) for of in (shown.apart, shown.alone, noise, 1.0 * shown.kept)
        )
        return _Level(
            self.columns,
            (a[self.codes[0]], b[self.codes[1]]),
            _sum_runs(self.shares, runs),
            _sum_runs(self.variance, runs),
            _whole(apart, independent, noise, count > 0),
        )


def _sum_runs(cells: Array, runs: tuple[Ints, Ints]) -> Floats:
    """Sum a table over runs of its rows and columns."""
    a, b = (np.unique(codes, return_index=True)[1] for codes in runs)
    both: Floats = np.add.reduceat(np.add.reduceat(cells, a, axis=0), b, axis=1)
    return both


def _runs(atoms: Ints) -> Ints:
    """Number runs of adjacent groups, joined in pairs within their atoms."""
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
    """Make the targets of two-way marginals at several levels, for a fit with tau.

    First each table is adjusted to the margins, evenly over rows and columns: that gives the
    nearest table with these margins, which are known much more precisely.

    Then neighbouring groups of ordered columns are joined by twos until three are left. The
    deviation of a cell is modelled as a sum: its own, one common to the cells of its run, one
    common to those of its run of runs, and so on, each of variance q / tau with a separate tau. A
    fit with targets at all levels, each weighted by its tau, has exactly that prior: where p is
    near q its parameters are these deviations, and the residual of a cell, which is counted once,
    moves them all. Taus are estimated from the finest level upwards, by the deviations of cells
    from their runs; what finer levels explain is noise to a coarser one.

    A deviation r of a cell has a normal distribution of standard deviation c q around zero, for one
    of the values of c in `_LAWS`. The frequency of each c is estimated from all tables of a level
    jointly, which then count as four further degrees of freedom of each. A noisy deviation with
    variance v is shrunk by the mean of c^2 q^2 / (c^2 q^2 + v), and tau is set accordingly. So a
    table of pure noise is shrunk everywhere, and one with a few strong cells everywhere else.

    With structural zeros q is their prior, on the allowed cells; groups are joined within their
    atoms, so runs are allowed or not as a whole.

    Of more than 400 tables, those with the strongest dependence are kept; a fit cannot hold more.

    Also return for each table the share of its deviations that is kept at the coarsest level.
    """
    levels = [_fit_margins(table, zeros, margins) for table in tables]
    targets: list[Target] = []
    while True:
        runs = [level.runs(ordered, zeros) for level in levels]
        moved = [(number, p) for number, p in enumerate(runs) if p is not None]
        if not moved:
            break
        learnt = _estimate_taus([levels[number].inside(pair_runs) for number, pair_runs in moved])
        for (number, pair_runs), taus in zip(moved, learnt, strict=True):
            targets.append(levels[number].target(tau, taus))
            levels[number] = levels[number].join_runs(pair_runs, taus)
    learnt = _estimate_taus([level.shown for level in levels])
    targets += [level.target(tau, taus) for level, taus in zip(levels, learnt, strict=True)]
    if len(levels) > _MOST_PAIRS:
        signals = [
            level.shown.posterior_signal(taus) for level, taus in zip(levels, learnt, strict=True)
        ]
        strongest = {levels[i].columns for i in np.argsort(signals)[-_MOST_PAIRS:]}
        targets = [target for target in targets if target.columns in strongest]
    return targets, [
        level.shown.posterior_share(taus) for level, taus in zip(levels, learnt, strict=True)
    ]


def _fit_margins(table: Target, zeros: GroupedZeros, margins: Sequence[Floats]) -> _Level:
    """Adjust a table to its margins, by the noise of its cells.

    One pass is exact unless there are structural zeros; then it is repeated.
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
    """Average the shares of each column's groups over all marginals, weighted by 1 / variance.

    A fit starts from these margins and targets them, instead of one-way marginals alone, because
    each measured pair holds further information on its columns.
    """
    targets = []
    for target in one_way:
        (j,) = target.columns
        weight, mean = target.weight, target.weight * target.shares
        for marginal in (m for m in measured if j in m.columns):
            away = tuple(k for k, other in enumerate(marginal.columns) if other != j)
            kept = zeros.mask(marginal.columns)
            shares = (marginal.counts * kept).sum(axis=away) / n
            precision = precision_of(n, marginal.variance) / np.maximum(kept.sum(axis=away), 1)
            weight, mean = weight + precision, mean + precision * shares
        shares = np.maximum(mean / weight, 0.0) + 1e-9
        targets.append(Target((j,), shares / shares.sum(), weight))
    return targets

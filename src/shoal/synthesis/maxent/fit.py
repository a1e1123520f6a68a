"""Fit the maximum-entropy distribution to noisy marginals.

Over the cells x of a grid of groups, with a prior p0 and tables k, M_k p being table k of p and
y_k its noisy answer, both as shares of 1,

    minimise over p    KL(p || p0) + sum_k (W_k / 2) ||M_k p - y_k||^2.

Dual, with one parameter per table cell (theta free, smooth, convex):

    minimise    log Z(theta) - theta . y + sum (theta - c)^2 / (2 W),
    p(x) = p0(x) exp(sum_k theta_k[cell of x in k]) / Z;

its gradient is M p - y + (theta - c) / W. c is zero, or where else parameters are drawn to
(`implied`). p is never negative, so no clipping brings a bias. The
weights W decide how far the noise is believed: W_k = (n / sd_k)^2 / tau, with tau well above 1.
With tau = 1 the fit follows the noise, and still looks converged.

All of it is post-processing: noisy answers, n, and fresh randomness.

References:
    McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential
    privacy", ICML 2019. arXiv:1901.09136. Ours is the dense and particle solver.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shoal.core import Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.errors import InternalError
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.domain import Measurement
from shoal.synthesis.kernels import energies, gibbs, marginals
from shoal.synthesis.maxent.lbfgs import minimise
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

DENSE = 300_000
"""Most cells for which every cell has a number of its own."""
_STAGES, _ATTEMPTS = 12, 3
_FARTHER = 4  # times the misfit before, and the number of cells
_BURST, _LAST = 60, 120  # iterations between two resamplings, and once tau is its own
_THIN = 0.01  # share of an even one below which a cell's curvature is not believed
_LEAST_SPREAD, _SETTLED, _TOLERABLE = 0.1, 0.9, 0.5
_add = np.add.reduce  # as `sum`, which takes longer to call than a small table to add up
_ANNEAL = 256.0


@dataclass(frozen=True, eq=False)
class Target:
    """A noisy table over groups, as a target of the fit.

    Attributes:
        columns: which columns, by index, in increasing order.
        shares: the noisy counts divided by n, flat, last column fastest.
        weight: (n / sd)^2, before tau; one per cell where they differ.
        joined: for each of the columns the code that each of its groups has in the table, where a
            table joins groups; by default each has its own.
        centre: where its parameters are drawn to.
    """

    columns: tuple[int, ...]
    shares: Floats
    weight: float | Floats
    joined: tuple[Ints, ...] | None = None
    centre: float | Floats = 0.0

    @classmethod
    def of(cls, measured: Measurement, n: int, joined: tuple[Ints, ...] | None = None) -> Self:
        """Make a target of a measurement on n records."""
        weight = precision_of(n, measured.variance)
        return cls(measured.columns, measured.counts.ravel() / n, weight, joined)

    def prior(self, n: int) -> Floats:
        """Return shares without zeros: plus half a record and 0.3 standard deviations."""
        shares = np.maximum(self.shares, 0.0) + 0.5 / n + 0.3 / np.sqrt(self.weight)
        prior: Floats = shares / shares.sum()
        return prior

    def believe(self, tau: float) -> Self:
        """Return a target that a fit with tau believes as far as its noise says."""
        return replace(self, weight=self.weight * tau)

    def codes(self, sizes: Sequence[int]) -> list[Ints]:
        """Return the code in the table of each group, column by column."""
        if self.joined is None:
            return [np.arange(sizes[j]) for j in self.columns]
        return list(self.joined)


def precision_of(n: int, variance: Fraction) -> float:
    """Return n^2 over the variance of the noise."""
    return float(n * n / variance)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit: cells with their probabilities, in lexicographic order.

    Attributes:
        groups: one row per cell or particle.
        weights: with sum 1.
        spread: effective sample size of the particles, as a share of them; 1 for a dense fit.
        stages: how many times particles were fitted; 1 for a dense fit.
        tau: as requested, or larger if particles did not converge with it.
        dense: whether every cell has a number of its own.
        theta: the parameters of all tables, one after the other.
        settled: whether particles did.
    """

    groups: NDArray[np.uint8]
    weights: Floats
    spread: float
    stages: int
    tau: float
    dense: bool
    theta: Floats
    settled: bool = True

    def pair(self, a: int, b: int, sizes: Sequence[int]) -> Floats:
        """Return the fitted two-way marginal of two columns."""
        cell = self.groups[:, a].astype(np.int64) * sizes[b] + self.groups[:, b]
        shares = np.bincount(cell, self.weights, minlength=sizes[a] * sizes[b])
        return shares.reshape(sizes[a], sizes[b]).astype(np.float64)

    def parameters(self, a: int, b: int, sizes: Sequence[int], targets: Sequence[Target]) -> Floats:
        """Sum the parameters of these tables for two columns, by pair of groups."""
        starts, total = _starts(targets), np.zeros(sizes[a] * sizes[b])
        for number, target in enumerate(targets):
            if target.columns == (a, b):
                part = self.theta[starts[number] : starts[number + 1]]
                total += part[_inside(target, (a, b), sizes)]
        return total.reshape(sizes[a], sizes[b])


def fit_distribution(
    sizes: Sequence[int],
    priors: Sequence[Floats],
    targets: Sequence[Target],
    *,
    tau: float,
    particles: int,
    rng: np.random.Generator,
    start: Fitted | None = None,
    warm: bool = True,
    zeros: GroupedZeros | None = None,
    progress: Progress = silent,
) -> Fitted:
    """Fit on all cells if there are few, else on particles.

    Epsilon is spent by now. So particles that do not converge are fitted a second and a third time
    with a tau four times larger, which gives the tables less weight; then the answer is the last
    fit, or the prior if that is nearer to the tables.

    A refit starts from an earlier fit, is made once, and must keep what that fit had (`_keeps`):
    where it does not, `start` itself is the answer. Every further step of `maxent` is such a refit.

    Args:
        sizes: groups of each column.
        priors: probabilities of each column's groups; p0 is their product, but for `zeros`.
        targets: the noisy tables. A fit on particles takes tables of one to three columns.
        tau: how many times the noise's variance is overstated.
        particles: how many, where they are needed.
        rng: for particles.
        start: an earlier fit, to the first of these tables.
        warm: whether to begin where that ended, which is nearer than the prior is. Particles do
            not get from groups to finer ones that determine each other: there a refit begins anew.
        zeros: cells that have no mass, and p0 on the others.
        progress: called with each stage.
    """
    zeros = zeros or GroupedZeros(priors=priors)
    begin = start if warm else None
    if prod(sizes) <= DENSE:
        progress("fitting the distribution", 0, 1)
        fitted = _fit_cells(sizes, zeros, targets, tau=tau, start=begin)
    else:
        for _ in range(1 if start else _ATTEMPTS):
            fitted = _fit_particles(
                sizes, zeros, targets, tau=tau, particles=particles, rng=rng, start=begin,
                progress=progress,
            )  # fmt: skip
            if fitted.settled:
                break
            tau *= 4
    if start and not (fitted.settled and _keeps(fitted, start, sizes, targets)):
        return start
    return fitted


def _fit_cells(
    sizes: Sequence[int],
    zeros: GroupedZeros,
    targets: Sequence[Target],
    *,
    tau: float,
    start: Fitted | None = None,
) -> Fitted:
    """Fit the probabilities of all cells by L-BFGS on the dual."""
    tables = _Grid(sizes, targets)
    base = zeros.logarithms().ravel()
    begin = None if start is None else _extend_parameters(start.theta, tables)
    theta = _solve(tables, base, targets, tau=tau, start=begin, iterations=300)
    weights, _ = _softmax(tables.energies(theta) + base)
    order = _lexicographic(sizes)
    cells = np.indices([sizes[j] for j in order]).reshape(len(sizes), -1)
    groups = np.empty((weights.size, len(sizes)), dtype=np.uint8)
    groups[:, order] = cells.T
    flat = np.transpose(weights.reshape(tuple(sizes)), order).ravel()
    if zeros.components:
        groups, flat = groups[flat > 0], flat[flat > 0]
    return Fitted(groups, flat, spread=1.0, stages=1, tau=tau, dense=True, theta=theta)


def _extend_parameters(theta: Floats, tables: "_Grid | _Particles") -> Floats:
    """Append zeros to the parameters for tables added since."""
    return np.concatenate([theta, np.zeros(int(tables.starts[-1]) - theta.size)])


def _solve(
    tables: "_Grid | _Particles",
    base: Floats,
    targets: Sequence[Target],
    *,
    tau: float,
    start: Floats | None,
    iterations: int,
) -> Floats:
    """Minimise the dual.

    Parameters are scaled by the root of their curvature at the target, which is about the cell's
    share + 1 / W: cells of all sizes then converge equally fast, in a third of the iterations.
    """
    shares = np.concatenate([target.shares for target in targets])
    slack = np.concatenate([np.broadcast_to(tau / t.weight, t.shares.size) for t in targets])
    least = np.concatenate([np.full(t.shares.size, _THIN / t.shares.size) for t in targets])
    centre = np.concatenate([np.broadcast_to(t.centre, t.shares.size) for t in targets])
    unit = 1 / np.sqrt(np.maximum(shares, least) + slack)

    def dual(scaled: Floats) -> tuple[float, Floats]:
        theta = scaled * unit
        weights, total = _softmax(tables.energies(theta) + base)
        pull = slack * (theta - centre)
        value = total + float(_add((theta - centre) * pull / 2 - theta * shares))
        return value, (tables.marginals(weights) - shares + pull) * unit

    begin = np.zeros(shares.size) if start is None else start / unit
    solution: Floats = minimise(dual, begin, iterations=iterations) * unit
    return solution


def _softmax(energy: Floats) -> tuple[Floats, float]:
    """Normalise exponentials; also return the logarithm of the normaliser."""
    top = float(np.maximum.reduce(energy))
    weights = np.exp(energy - top)
    total = float(_add(weights))
    weights /= total
    return weights, top + float(np.log(total))


class _Grid:
    """All cells of a grid, with partial sums shared between tables.

    Each table is summed from the smallest table that contains it. `_route` adds intermediate tables
    that make this cheap: one sum over the last axis serves all tables without that axis, and so on
    from the last axis to the first. Energies take the same route back.
    """

    def __init__(self, sizes: Sequence[int], targets: Sequence[Target]) -> None:
        self.sizes = tuple(sizes)
        self.tables = [target.columns for target in targets]
        self.cells = [_cells(target, sizes) for target in targets]
        self.starts = _starts(targets)
        self.shapes = [tuple(self.sizes[j] for j in table) for table in self.tables]
        steps: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        _route(tuple(range(len(sizes))), frozenset(self.tables), steps)
        self.steps = [
            (parent, child, tuple(axis for axis, j in enumerate(parent) if j not in child),
             tuple(slice(None) if j in child else None for j in parent))
            for parent, child in steps
        ]  # fmt: skip

    def energies(self, theta: Floats) -> Floats:
        """Sum the parameters of each cell, as a flat array."""
        sums: dict[tuple[int, ...], Floats] = {}
        for number, table in enumerate(self.tables):
            part = theta[self.starts[number] : self.starts[number + 1]]
            if (cells := self.cells[number]) is not None:
                part = part[cells]
            part = part.reshape(self.shapes[number])
            sums[table] = sums[table] + part if table in sums else part
        for parent, child, _, widened in reversed(self.steps):
            if child in sums:
                wide = sums[child][widened]
                sums[parent] = sums[parent] + wide if parent in sums else wide
        everything = tuple(range(len(self.sizes)))
        total = sums[everything]
        return (total if total.shape == self.sizes else np.broadcast_to(total, self.sizes)).ravel()

    def marginals(self, weights: Floats) -> Floats:
        """Compute all tables of a distribution, concatenated."""
        sums = {tuple(range(len(self.sizes))): weights.reshape(self.sizes)}
        for parent, child, away, _ in self.steps:
            sums[child] = _add(sums[parent], axis=away)
        return np.concatenate(
            [
                sums[table].ravel() if cells is None else np.bincount(cells, sums[table].ravel())
                for table, cells in zip(self.tables, self.cells, strict=True)
            ]
        )


def _route(
    axes: tuple[int, ...],
    wanted: frozenset[tuple[int, ...]],
    steps: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    """Append the sums that lead from one table to the wanted ones, parents first."""
    left = wanted - {axes}
    for axis in reversed(axes):
        without = frozenset(table for table in left if axis not in table)
        if without:
            child = tuple(j for j in axes if j != axis)
            steps.append((axes, child))
            _route(child, without, steps)
            left -= without


class _Particles:
    """Weighted rows that represent the cells that they lie in.

    Targets of the same one or two columns are derived from one table over all groups of these two,
    so particles are counted once per pair of columns. `parts` maps each cell of such a table to its
    parameter in each target.
    """

    def __init__(
        self,
        groups: NDArray[np.uint8],
        sizes: Sequence[int],
        targets: Sequence[Target],
    ) -> None:
        self.starts = _starts(targets)
        pairs = sorted({target.columns for target in targets if len(target.columns) == 2})
        counted = [Target((a, b), np.zeros(sizes[a] * sizes[b]), 1.0) for a, b in pairs]
        parts = []
        for number, target in enumerate(targets):
            containing = (place for place, pair in enumerate(pairs) if {*target.columns} <= {*pair})
            cells = np.arange(target.shares.size)
            if (place := next(containing, len(counted))) == len(counted):
                counted.append(target)
            else:
                cells = _inside(target, counted[place].columns, sizes)
            parts.append((place, self.starts[number] + cells))
        self.begins = _starts(counted)
        self.parts = np.hstack(
            [np.vstack([self.begins[place] + np.arange(p.size), p]) for place, p in parts]
        )
        self.cells = np.empty((len(counted), len(groups)), dtype=np.int32)
        for place, target in enumerate(counted):
            cell = np.zeros(len(groups), dtype=np.int32)
            for j, codes in zip(target.columns, target.codes(sizes), strict=True):
                count = np.int32(codes.max() + 1)
                cell = cell * count + codes.astype(np.int32)[groups[:, j]]
            self.cells[place] = cell

    def energies(self, theta: Floats) -> Floats:
        """Sum the parameters of each particle."""
        summed = np.bincount(self.parts[0], theta[self.parts[1]]).astype(np.float64)
        return energies(self.cells, self.begins, summed)

    def marginals(self, weights: Floats) -> Floats:
        """Compute all tables of the particles, concatenated."""
        counted = marginals(self.cells, self.begins, weights)
        return np.bincount(self.parts[1], counted[self.parts[0]]).astype(np.float64)


def _fit_particles(
    sizes: Sequence[int],
    zeros: GroupedZeros,
    targets: Sequence[Target],
    *,
    tau: float,
    particles: int,
    rng: np.random.Generator,
    start: Fitted | None,
    progress: Progress,
) -> Fitted:
    """Fit on a sample of the cells that moves with the distribution.

    Particles are rows of the model with the parameters so far, theta_0. On them, the model with
    parameters theta has weights exp((theta - theta_0) . cells). Stage by stage:

    1. L-BFGS for theta, with tau first 256 times larger, then 64 times, and so on to 1.
    2. The step is halved until the effective sample size, 1 / sum of squared weights, is at
       least a tenth of the particles: further than that they cannot carry the distribution,
       and the fit collapses on a few of them.
    3. Unless nine tenths of the sample are then effective, or half and no more than a stage
       before, resample systematically in lexicographic order, which adds far less noise than
       independent draws, and redraw each row by two Gibbs sweeps of the model.

    From where an earlier fit ended its particles and its parameters are taken, and tau is its own
    from the first stage on.

    It has not converged if after the last stage less than half of the sample is effective, or if
    the fit is worse than the prior (`_improves`): particles that have all become one have equal
    weights too. In the latter case the prior is in its place.
    """
    order = _lexicographic(sizes)
    theta, weights, spread, stage = np.zeros(0), np.zeros(0), 0.0, 0
    anneal = _ANNEAL
    if start is None:
        groups = zeros.particles(particles, rng)
    else:
        groups = np.repeat(start.groups, systematic(start.weights, particles, rng), axis=0)
        theta, anneal = start.theta, 1.0
    last = 0.0
    for stage in range(_STAGES):
        progress("fitting the distribution", stage, _STAGES)
        groups = groups[np.argsort(_keys(groups, sizes, order), kind="stable")]
        tables = _Particles(groups, sizes, targets)
        old = _extend_parameters(theta, tables)
        base = -tables.energies(old)
        heat = max(1.0, anneal / 4.0**stage)
        iterations = _BURST if heat > 1.0 else _LAST
        theta = _solve(tables, base, targets, tau=tau * heat, start=old, iterations=iterations)
        step = 1.0
        weights, _ = _softmax(tables.energies(theta - old))
        while (spread := 1 / float((weights**2).sum()) / particles) < _LEAST_SPREAD:
            step /= 2
            weights, _ = _softmax(tables.energies(step * (theta - old)))
        theta = old + step * (theta - old)
        cool = heat <= 1.0 and step >= 1.0
        # With many parameters per particle, the effective sample size stops growing early.
        level = spread >= _TOLERABLE and spread < last + 0.01
        last = spread if cool else 0.0
        if cool and (spread > _SETTLED or level):
            if _improves(tables.marginals(weights), zeros, targets):
                return Fitted(groups, weights, spread, stage + 1, tau, dense=False, theta=theta)
            break
        groups = np.repeat(groups, systematic(weights, particles, rng), axis=0)
        weights = np.full(particles, 1 / particles)
        _sweep(groups, sizes, zeros, targets, theta=theta, rng=rng)
    ended = Fitted(groups, weights, spread, stage + 1, tau, dense=False, theta=theta, settled=False)
    if _improves(_Particles(groups, sizes, targets).marginals(weights), zeros, targets):
        return ended
    prior, even = zeros.particles(particles, rng), np.full(particles, 1 / particles)
    return replace(ended, groups=prior, weights=even, theta=np.zeros(theta.size))


def _improves(fitted: Floats, zeros: GroupedZeros, targets: Sequence[Target]) -> bool:
    """Whether the fitted tables are nearer to the noisy ones than those of the prior.

    The minimum of KL(p || p0) + misfit(p) is at most misfit(p0), and KL is not negative: what is
    farther than the prior is not the minimum.
    """
    sizes = [prior.size for prior in zeros.priors]
    separate = []
    for target in targets:
        prior, cells = zeros.table(target.columns).ravel(), _cells(target, sizes)
        separate.append(prior if cells is None else np.bincount(cells, prior))
    return _misfit(fitted, targets) <= _misfit(np.concatenate(separate), targets)


def _keeps(later: Fitted, earlier: Fitted, sizes: Sequence[int], targets: Sequence[Target]) -> bool:
    """Whether a refit is nearer to the tables that came, and about as near to those before.

    The fit before was the minimum for the tables before: so the misfit of those that came since
    cannot grow in the minimum for all. They move a fit away from the others by about their noise;
    particles that were lost on the way are hundreds of times farther (a fit of two amounts that
    follow from each other, over 93 and 79 groups: 1,536,000 where the fit before was at 4,000, of
    12,715 cells).
    """
    cells = earlier.theta.size
    seen = int(np.searchsorted(_starts(targets), cells))
    (before, gap), (after, gap_after) = (
        (_misfit(shares[:cells], targets[:seen]), _misfit(shares[cells:], targets[seen:]))
        for shares in (
            _Particles(fitted.groups, sizes, targets).marginals(fitted.weights)
            for fitted in (earlier, later)
        )
    )
    return after <= _FARTHER * (before + cells) and gap_after <= gap


def _misfit(shares: Floats, targets: Sequence[Target]) -> float:
    """Return the weighted squared distance from the noisy tables."""
    starts = _starts(targets)
    parts = (shares[begin:end] for begin, end in pairwise(starts))
    return sum(
        float((target.weight * (part - target.shares) ** 2).sum())
        for target, part in zip(targets, parts, strict=True)
    )


def _sweep(
    groups: NDArray[np.uint8],
    sizes: Sequence[int],
    zeros: GroupedZeros,
    targets: Sequence[Target],
    *,
    theta: Floats,
    rng: np.random.Generator,
) -> None:
    """Run two Gibbs sweeps with the parameters of tables of up to three columns."""
    widest = max(sizes)
    single = np.zeros((len(sizes), widest))
    pairs = np.zeros((len(sizes), len(sizes), widest, widest))
    prior = zeros.tables()
    for j, values in enumerate(prior.single):
        single[j, : sizes[j]] = values
    triples = [number for number, target in enumerate(targets) if len(target.columns) == 3]
    starts = _starts(targets)
    members = np.array([targets[number].columns for number in triples], dtype=np.int64)
    strides = np.zeros((len(triples), 3, widest), dtype=np.int64)
    for row, number in enumerate(triples):
        stride = 1
        for axis, codes in reversed(list(enumerate(targets[number].codes(sizes)))):
            strides[row, axis, : codes.size] = codes * stride
            stride *= int(codes.max()) + 1
    for number, target in enumerate(targets):
        part = theta[starts[number] : starts[number + 1]]
        if len(target.columns) < 3 and (cells := _cells(target, sizes)) is not None:
            part = part[cells]
        if len(target.columns) == 1:
            single[target.columns[0], : part.size] += part
        elif len(target.columns) == 2:
            a, b = target.columns
            both = part.reshape(sizes[a], sizes[b])
            pairs[a, b, : sizes[b], : sizes[a]] += both.T
            pairs[b, a, : sizes[a], : sizes[b]] += both
        elif len(target.columns) != 3:
            raise InternalError(
                "A fit by particles takes one-way, two-way and three-way marginals only."
            )
    for _ in range(2):
        gibbs(
            groups,
            np.array(sizes),
            single,
            pairs,
            members.reshape(-1, 3),
            strides,
            starts[triples],
            theta,
            prior[1:],
            rng.random(groups.shape),
        )


def _starts(targets: Sequence[Target]) -> Ints:
    """Return where the parameters of each table begin, and the total number."""
    counts = [target.shares.size for target in targets]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _cells(target: Target, sizes: Sequence[int]) -> Ints | None:
    """Map each cell over groups to its cell in a table that joins groups; None if it joins none."""
    return None if target.joined is None else _inside(target, target.columns, sizes)


def _inside(target: Target, columns: Sequence[int], sizes: Sequence[int]) -> Ints:
    """Map each cell over the groups of some columns to its cell in a table of fewer columns."""
    codes = dict(zip(target.columns, target.codes(sizes), strict=True))
    cell = np.zeros(1, dtype=np.int64)
    for j in columns:
        axis_codes = codes.get(j, np.zeros(sizes[j], dtype=np.int64))
        cell = np.add.outer(cell * (int(axis_codes.max()) + 1), axis_codes).ravel()
    return cell


def _lexicographic(sizes: Sequence[int]) -> list[int]:
    """Order columns by decreasing number of groups, so the leading ones are drawn most exactly."""
    return sorted(range(len(sizes)), key=lambda j: (-sizes[j], j))


def _keys(groups: NDArray[np.uint8], sizes: Sequence[int], order: Sequence[int]) -> Ints:
    """Return a sort key for each row in lexicographic order; columns beyond 63 bits are ignored."""
    keys = np.zeros(len(groups), dtype=np.int64)
    room = 1 << 62
    for j in order:
        room //= sizes[j]
        if not room:
            break
        keys = keys * sizes[j] + groups[:, j]
    return keys

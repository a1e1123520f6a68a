"""Estimates of one or two columns from the noisy measurements behind drawn rows.

The rows of a drawn release do not show the noise; the measurements state its scale. Counts c with
independent noise of variance s^2 give for known numbers x the sum of x c with variance s^2 times
the sum of x^2, whatever the data. Where the number of rows n is public, counts are brought to it by
adding the same to each: the best linear estimate given the sum, and x is then centred. Several
tables that show the same cells have independent noise, and are averaged by 1 / variance. For the
population, the variance of sampling is added. Inside a bin of a numeric column, the density is
taken as a line through its neighbours'. Bins follow the noise, a far one most of all, so means in
wide bins err towards a tail; the interval of a mean allows for a sixth of each bin.
"""

from collections.abc import Sequence
from functools import partial
from math import sqrt

import numpy as np
import scipy

from shoal.analysis.published import GRID, NoisyBlocks, NoisyTable, PublishedTable
from shoal.analysis.result import AnalysisTerm, Estimand, half_width, sampling_of_share
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.methods.trees.spatial_encoding import spatial_encoding

_INSIDE, _DRAWN = 64, 100
"""Values in a bin at which a share is tested, and how often the noise of blocks is drawn again."""


def missing_measurement(names: Sequence[str], published: PublishedTable) -> InputError:
    """Explain why drawn rows support no interval."""
    what = f"column '{names[0]}'" if len(names) == 1 else f"columns {', '.join(names)} together"
    if published.stratified:
        return InputError(
            f"The release publishes its noisy counts of {what} stratum by stratum, and intervals "
            "over all strata are not supported."
        )
    return InputError(
        f"The release by {published.manifest.method} publishes no noisy counts of {what} at this "
        "detail, and drawn rows do not show how far they are off. No interval is supported here."
    )


def one_way(published: PublishedTable, name: str) -> NoisyTable:
    """Return a numeric column's noisy counts with the most bins, or refuse."""
    listed = [published.present(table) for table in published.tables if table.columns == (name,)]
    present = [table for table in listed if table is not None]
    if not present:
        raise missing_measurement([name], published)
    return max(present, key=lambda one: one.counts.size)


def mean(published: PublishedTable, name: str, estimand: Estimand) -> tuple[float, float]:
    """Estimate the mean of a numeric column, and its variance."""
    rows = published.numbers(name)
    rows = rows[~np.isnan(rows)]
    sampling = float(rows.var(ddof=1)) / rows.size if estimand is Estimand.POPULATION else 0.0
    blocks = published.blocks(name)
    if blocks is not None:
        low, unit = _units(published, name)
        n = blocks.sizes.sum()
        noise = len(blocks.sums) * blocks.variance * (unit / n) ** 2
        return low + unit * float(blocks.sums.sum()) / n, noise + sampling
    table = one_way(published, name)
    counts, noise = combine(table, published.covering([name]), count_known_rows(published, [name]))
    x, n = centres(table, rows), counts.sum()
    estimate = float(x @ counts / n)
    # The mean inside a bin is not known either; its error is taken to be as the most it is shifted.
    held = np.maximum(counts, np.sqrt(np.diag(noise)))
    inside = float(((held * _inside(table)) ** 2).sum()) / n**2
    return estimate, float((x - estimate) @ noise @ (x - estimate)) / n**2 + inside + sampling


def count_known_rows(published: PublishedTable, columns: Sequence[str]) -> int | None:
    """Return the number of people with a value in some columns, if it is public."""
    counted = any(map(published.counts_missing, columns))
    return published.n if published.rows_are_public and not counted else None


def combine(
    table: NoisyTable, others: Sequence[NoisyTable], n: int | None
) -> tuple[Floats, Floats]:
    """Combine the counts of a column's bins over all tables; also return the noise covariance.

    Generalised least squares: tables of several columns count the same people in groups of these
    bins, with independent noise. It is linear and unbiased, so its covariance holds for any data.
    The number of rows is one more table, nearly without noise where it is public.
    """
    (bins,) = table.cells
    precision = np.eye(len(bins)) / table.variance
    weighted = table.counts / table.variance
    if n is not None:
        exact = 1e-6 * table.variance
        precision += 1 / exact
        weighted = weighted + n / exact
    for other in others:
        groups = _nest_bins(bins, other.cells[0])
        if other.counts.size < len(bins) and groups is not None:
            precision += groups.T @ groups / other.variance
            weighted = weighted + groups.T @ other.counts / other.variance
    noise: Floats = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    counts = noise @ weighted
    if not counts.sum() > 0:
        raise InputError(
            f"By the noisy counts nobody has a value of '{table.columns[0]}': the noise hides how "
            "many have. No interval is supported here."
        )
    return counts, noise


def _nest_bins(bins: Sequence[tuple[float, float]], cells: Sequence[object]) -> Floats | None:
    """Map each cell of another table to the bins that it contains; None if it cuts a bin."""
    membership = np.zeros((len(cells), len(bins)))
    for row, cell in zip(membership, cells, strict=True):
        if not isinstance(cell, tuple):
            return None
        row[:] = [low >= cell[0] and high <= cell[1] for low, high in bins]
    return membership if (membership.sum(axis=0) == 1).all() else None


def _units(published: PublishedTable, name: str) -> tuple[float, float]:
    """Return the value of a column's first code, and the step between two codes."""
    axis = spatial_encoding(published.policy.schema[name], scaled=True)
    if axis.column.transform:
        raise InputError(
            f"Column '{name}' was summed on a transformed scale; no interval is supported here."
        )
    if axis.grid is not None:
        low, high = float(axis.grid.low), float(axis.grid.high)
        return low, (high - low) / axis.grid.steps
    first, second = axis.values(np.arange(2)).tolist()
    return first, second - first


def _inside(table: NoisyTable) -> Floats:
    """Bound how far the mean in each bin may be from its middle: a sixth of the bin."""
    ends = np.array(table.cells[0], dtype=np.float64)
    sixths: Floats = (ends[:, 1] - ends[:, 0]) / 6
    return sixths


def centres(table: NoisyTable, rows: Floats) -> Floats:
    """Estimate the mean value in each bin, with a density that is linear within it."""
    ends = np.array(table.cells[0], dtype=np.float64)
    widths = ends[:, 1] - ends[:, 0]
    middles: Floats = ends.mean(axis=1)
    if len(ends) < 3 or (widths <= 0).all():
        return middles
    counts = np.histogram(rows, np.append(ends[:, 0], ends[-1, 1]))[0] + 0.5
    density = counts / np.maximum(widths, 1e-300)
    slope = np.gradient(density, middles)
    shift = widths**2 / 12 * slope / density
    most = _inside(table)
    middles += np.clip(shift, -most, most)
    return middles


def _ratio(
    published: PublishedTable, table: NoisyTable, asked: Floats, present: Floats
) -> tuple[float, float]:
    """Estimate the share of some counts among those present, and the variance of its noise.

    A known number of rows fixes the sum of all counts: each is off by a part of what they are off
    together, and noise that moves all alike is none. The variance is that of the linear part.
    """
    counts, cells = table.counts, table.counts.size
    fixed = published.rows_are_public
    if fixed:
        counts = counts + (published.n - counts.sum()) / cells
    total = max(float((present * counts).sum()), 1.0)
    estimate = float((asked * counts).sum()) / total
    slopes = (asked - estimate * present) / total
    alike = float(slopes.sum()) ** 2 / cells if fixed else 0.0
    return estimate, table.variance * max(float((slopes**2).sum()) - alike, 0.0)


def share(
    published: PublishedTable, columns: Sequence[str], categories: Sequence[str], estimand: Estimand
) -> tuple[float, float]:
    """Estimate the share of rows with these categories among complete rows, and its variance."""
    estimates = []
    asked = list(zip(columns, categories, strict=True))
    counted = [name for name in columns if published.counts_missing(name)]
    for table in published.tables:
        sought = [*asked, *((name, published.missing(name)) for name in counted)]
        marks = [published.mark_counts(table, *pair) for pair in sought]
        known = [mark for mark in marks if mark is not None]
        if len(known) < len(marks):
            continue
        x, present = np.ones(table.counts.shape), np.ones(table.counts.shape)
        for mark in known[: len(asked)]:
            x = x * mark
        for gone in known[len(asked) :]:
            present = present * (1 - gone)
        if not x.any():  # rules allow none of these combinations
            return 0.0, 0.0
        estimates.append(_ratio(published, table, x, present))
    if not estimates and len(columns) == 1:
        estimates = _of_blocks(published, columns[0], categories[0])
    if not estimates:
        raise missing_measurement(columns, published)
    estimate, noise = _pool(estimates)
    n = published.frame.select(columns).drop_nulls().height
    sampling = sampling_of_share(estimate, n) if estimand is Estimand.POPULATION else 0.0
    return estimate, noise + sampling


def _pool(estimates: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Average estimates by their precision; one without noise, as of an only category, decides."""
    values, variances = np.array(estimates).T
    exact = variances == 0
    weights = exact.astype(float) if exact.any() else 1 / variances
    pooled = 0.0 if exact.any() else 1 / weights.sum()
    return float(weights @ values / weights.sum()), float(pooled)


def _of_blocks(published: PublishedTable, name: str, category: str) -> list[tuple[float, float]]:
    """Estimate the share of one of two categories from block sums of codes."""
    blocks, categories = published.blocks(name), published.categories(name)
    if blocks is None or len(categories) != 2 or name in published.manifest.hierarchies:
        return []
    n = blocks.sizes.sum()
    second = float(blocks.sums.sum()) / n
    value = second if category == categories[1] else 1 - second
    return [(value, len(blocks.sums) * blocks.variance / n**2)]


def quantile(
    published: PublishedTable, name: str, at: float, *, estimand: Estimand, confidence: float
) -> AnalysisTerm:
    """Estimate a quantile by inverting noisy shares, with the values compatible with `at`.

    At each value the noisy shares below it, and up to it, have known errors; the interval holds
    the values at which these shares are compatible with `at`, and may be longer than the standard
    error says, which is that of the estimate. Where the policy states a step, a bin
    holds its multiples alike often; elsewhere its inside.
    """
    blocks = published.blocks(name)
    if blocks is not None:
        error = sqrt(at * (1 - at) / published.n) if estimand is Estimand.POPULATION else 0.0
        return _block_quantile(
            name, blocks, _units(published, name), at=at, error=error, confidence=confidence
        )
    table = one_way(published, name)
    margins = published.covering([name])
    counts, covariance = combine(table, margins, count_known_rows(published, [name]))
    n, bins = counts.sum(), counts.size
    ends = np.array(table.cells[0], dtype=np.float64)
    below = _below(counts)
    # The share below an edge is a ratio of sums, and its error that of 1[below] - share.
    steps = np.tril(np.ones((bins + 1, bins)), -1) - below[:, None]
    noise = np.einsum("ij,jk,ik->i", steps, covariance, steps) / n**2
    people = published.frame[name].drop_nulls().len()
    sampling = at * (1 - at) / people if estimand is Estimand.POPULATION else 0.0
    step, z = published.step(name), half_width(confidence)
    values, begins, upto = _points(ends, step)
    places = np.arange(bins + 1)
    (F, error), (G, other) = (
        (np.interp(x, places, below), z * np.sqrt(np.interp(x, places, noise) + sampling))
        for x in (begins, upto)
    )
    read = partial(_crossing, values=values, at=at, exact=bool(step))
    estimate = read(G)
    compatible = np.append(values[(F - error <= at) & (G + other >= at)], estimate)
    low, high = float(compatible.min()), float(compatible.max())
    if not step:  # a number lies in a cell of the grid on which people were counted
        first, last = published.bounds(name)
        cell = (last - first) / GRID
        low, high = max(low - cell, first), min(high + cell, last)
    # A monotone fit takes noise away, so the error is that of estimates with noise drawn again: the
    # same noise for either estimand, so sampling adds to the error whatever the draws.
    rng, shares = np.random.default_rng(0), np.diff(below)
    again = rng.multivariate_normal(np.zeros(bins), covariance, _DRAWN, method="eigh")
    samples = [shares * n]
    if sampling:
        drawn = rng.multinomial(people, shares / shares.sum(), _DRAWN)
        samples.append(drawn * (n / people))
    spread = max(
        float(np.std([read(np.interp(upto, places, _below(row))) for row in sample + again]))
        for sample in samples
    )
    return AnalysisTerm(name, estimate, spread, low, high)


def _below(counts: Floats) -> Floats:
    """Estimate the shares of people below each edge of the bins, made monotone."""
    shares = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    return np.clip(scipy.optimize.isotonic_regression(shares).x, 0.0, 1.0)


def _crossing(shares: Floats, *, values: Floats, at: float, exact: bool) -> float:
    """Find where a distribution function reaches `at`: at one of the values, or between."""
    if exact:
        place = np.minimum(np.searchsorted(shares, at - 1e-12), len(values) - 1)
        return float(values[place])
    return float(np.interp(at, shares + 1e-12 * np.arange(len(shares)), values))


def _points(ends: Floats, step: float) -> tuple[Floats, Floats, Floats]:
    """List the values of all bins, and where each bin begins and ends among them."""
    held = np.full(len(ends), _INSIDE)
    if step:
        held = np.rint((ends[:, 1] - ends[:, 0]) / step).astype(np.int64) + 1
    bins = np.repeat(np.arange(len(ends)), held)
    inner = np.arange(bins.size) - np.repeat(np.cumsum(held) - held, held)
    begins = bins + inner / held[bins]
    if step:
        return ends[bins, 0] + inner * step, begins, bins + (inner + 1) / held[bins]
    edges, begins = np.append(ends[:, 0], ends[-1, 1]), np.append(begins, len(ends))
    return np.interp(begins, np.arange(len(edges)), edges), begins, begins


def _block_quantile(
    name: str,
    blocks: NoisyBlocks,
    units: tuple[float, float],
    *,
    at: float,
    error: float,
    confidence: float,
) -> AnalysisTerm:
    """Estimate a quantile from block means by rank: noise moves values, sampling the rank."""
    low, unit = units
    n = blocks.sizes.sum()
    fitted = scipy.optimize.isotonic_regression(blocks.sums / blocks.sizes, weights=blocks.sizes)
    means = low + unit * fitted.x
    ranks = (np.cumsum(blocks.sizes) - blocks.sizes / 2) / n
    z = half_width(confidence)
    estimate, lower, upper = np.interp([at, at - z * error, at + z * error], ranks, means).tolist()
    # A monotone fit takes noise away, most where means are alike: so noise is drawn again.
    scale = unit * sqrt(blocks.variance / 2) / blocks.sizes
    drawn = np.random.default_rng(0).laplace(means, scale, (_DRAWN, len(means)))
    again = [scipy.optimize.isotonic_regression(draw, weights=blocks.sizes).x for draw in drawn]
    noise = z * float(np.std([np.interp(at, ranks, y) for y in again]))
    ends = (
        estimate - np.hypot(estimate - lower, noise),
        estimate + np.hypot(upper - estimate, noise),
    )
    return AnalysisTerm(name, estimate, float(ends[1] - ends[0]) / (2 * z), *map(float, ends))

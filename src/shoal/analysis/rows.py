"""Estimates from released rows: grouped, recoded, or with noise of a known distribution.

Each column becomes numbers u with E[u | x] = x for a cell x, and numbers v with E[v | x] = x^2:

    released as it is          u = x, v = x^2
    means of groups, intervals u = the mean of the group or interval: sums over groups are kept
    randomised response        u = (1[c] - q) / (p - q), v = u, with p to stay and q for each other
    Laplace noise of scale b, clamped to [lo, hi]
                               u = y inside, lo - b and hi + b at the bounds;
                               v = y^2 - 2 b^2 inside, lo^2 - 2 b lo and hi^2 + 2 b hi there

Proof of the last. For f twice differentiable on [lo, hi], y = x + Laplace(b), let g = f - b^2 f''
inside, f(lo) - b f'(lo) below and f(hi) + b f'(hi) above. Then E g(y) = f(x): integrate b^2 f''
against exp(-|y - x| / b) / (2 b) by parts twice on both sides of x; the boundary terms at lo are
exp(-(x - lo) / b) (f(lo) - b f'(lo)) / 2, which is what the mass below lo is given, with the
opposite sign, and likewise at hi. Clamping keeps y inside and the side on which it fell outside.

Regressions solve sum_i w_i (u_i y_i - M_i beta) = 0 with E[M_i] = x_i x_i', which corrects for the
noise in regressors; its variance is the sandwich over rows. A regressor that is a group mean or the
mean of an interval needs no correction where groups do not depend on the outcome: then
E[y | groups] = beta' E[x | groups] in a linear model (Prais and Aitchison).

References:
    Maritz, Jarrett, "A note on estimating the variance of the sample median", JASA 73 (1978).
    doi:10.1080/01621459.1978.10480027
    Fuller, "Measurement Error Models", Wiley 1987. doi:10.1002/9780470316665
    Prais, Aitchison, "The grouping of observations in regression analysis", Review of the
    International Statistical Institute 22 (1954). doi:10.2307/1401917
    Woodruff, "Confidence intervals for medians and other position measures", JASA 47 (1952).
    doi:10.1080/01621459.1952.10483443
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, floor, sqrt

import numpy as np
import polars as pl
import scipy

from shoal.analysis.intervals import Spread, spread
from shoal.analysis.published import PublishedTable, Treatment
from shoal.analysis.result import AnalysisTerm, Estimand, half_width, term_of
from shoal.core._arrays import Bools, Floats
from shoal.errors import InputError

_WILD = 0.75
"""Standard error of a linear predictor beyond which a logistic curve is not nearly a line."""
_CLEAR = 4.0
"""How many standard errors the variance of a noisy regressor must lie above zero."""
_STEPS = 60
_EVENLY = np.sqrt(3) * np.linspace(-0.8, 0.8, 5)
"""Five people, evenly spread with variance about 1."""


@dataclass(frozen=True, eq=False)
class RowValues:
    """A column as numbers; see the module.

    Attributes:
        values: the numbers u.
        squares: the numbers v.
        within: variance within groups and intervals, if known.
        noisy: whether v differs from u^2.
    """

    values: Floats
    squares: Floats
    within: Floats | float = 0.0
    noisy: bool = False


def number(published: PublishedTable, name: str) -> RowValues:
    """Convert a numeric column."""
    treatment = published.treatment(name)
    if treatment in {Treatment.NONE, Treatment.GROUP_MEANS}:
        values = published.numbers(name)
        within = group_spread(published, name) if treatment is Treatment.GROUP_MEANS else 0.0
        return RowValues(values, values**2, within)
    if treatment is Treatment.INTERVALS:
        low, high = published.ends(name)
        finite = np.isfinite(low)
        moments = _spread(published, name, low[finite], high[finite], _weights(published)[finite])
        means, within = np.full(low.shape, np.nan), np.full(low.shape, np.nan)
        means[finite], within[finite] = moments.means, moments.within
        return RowValues(means, means**2, within)
    if treatment in {Treatment.CELL_NOISE, Treatment.GROUP_NOISE}:
        return _denoise(published, name, grouped=treatment is Treatment.GROUP_NOISE)
    raise refusal(published, name)


def _spread(
    published: PublishedTable, name: str, low: Floats, high: Floats, weights: Floats
) -> Spread:
    """Estimate where people lie in their intervals; refuse intervals without information."""
    if low.size and np.ptp(low) == 0 == np.ptp(high) and low[0] < high[0]:
        raise InputError(
            f"Column '{name}' has one interval for all rows, which does not say where in it people "
            "are. No interval is supported here."
        )
    return spread(low, high, weights, ends=published.cells.tight_intervals)


def group_spread(published: PublishedTable, name: str) -> Floats:
    """Estimate a column's variance within each row's group, as if groups tiled the space.

    The spread inside groups is not released. Cubes of side a that tile d dimensions have 2 d
    neighbours at distance a, one each way, so the squared difference to these along one column is
    a^2 / d on average, and the variance inside is a^2 / 12: d / 12 of the former, which is used.
    Groups with other categories are not neighbours.
    """
    grouped = [name] if published.alone(name) else list(published.grouped)
    numeric = [col for col in grouped if published.numeric(col)]
    numbers = [col for col in numeric if np.isfinite(published.numbers(col)).any()]
    X = np.column_stack([published.numbers(col) for col in numbers])
    missing = ~np.asarray(np.isfinite(X).all(axis=1))
    X = (X - np.nanmean(X, axis=0)) / np.maximum(np.nanstd(X, axis=0), 1e-300)
    codes = [
        published.frame[col].cast(str).rank("dense").fill_null(0).to_numpy()
        for col in grouped
        if col not in numeric
    ]
    Z = np.column_stack([np.where(missing[:, None], 1e6, X), *(1e3 * c for c in codes)])
    centres, back = np.unique(Z, axis=0, return_inverse=True)
    d, j = len(numbers), numbers.index(name)
    near = min(2 * d + 1, len(centres))
    distances, neighbours = scipy.spatial.cKDTree(centres).query(centres, k=[*range(1, near + 1)])
    apart = np.where(distances < 500, centres[neighbours][:, :, j] - centres[:, None, j], np.nan)
    counts = np.isfinite(apart[:, 1:]).sum(axis=1)
    squares = np.nansum(apart[:, 1:] ** 2, axis=1) / np.maximum(counts, 1)
    within: Floats = d / 12 * squares[back.ravel()] * np.nanvar(published.numbers(name))
    return within


def _denoise(published: PublishedTable, name: str, *, grouped: bool) -> RowValues:
    """Convert numbers with Laplace noise, one value per group of size k or more."""
    low, high = published.bounds(name)
    y, b = published.numbers(name), np.full(published.n, published.laplace(name))
    if grouped:
        _, back, sizes = np.unique(y, return_inverse=True, return_counts=True)
        k = published.manifest.parameters["k"]
        b /= np.where((y <= low) | (y >= high), k, sizes[back.ravel()])
    below, above = y <= low, y >= high
    values = np.select([below, above], [low - b, high + b], y)
    squares = np.select(
        [below, above], [low**2 - 2 * b * low, high**2 + 2 * b * high], y**2 - 2 * b**2
    )
    return RowValues(values, squares, noisy=True)


def indicator(published: PublishedTable, name: str, category: str) -> RowValues:
    """Convert a category to the indicator of a cell."""
    treatment = published.treatment(name)
    cells = published.frame[name].cast(str)
    marks = (cells == category).fill_null(value=False).to_numpy().astype(np.float64)
    marks[cells.is_null().to_numpy()] = np.nan
    if treatment is Treatment.NONE:
        return RowValues(marks, marks)
    if treatment is Treatment.RESPONSE:
        stay, other = published.response(name)
        values = (marks - other) / (stay - other)
        return RowValues(values, values, noisy=True)
    raise refusal(published, name)


def refusal(published: PublishedTable, name: str) -> InputError:
    """Explain why a column supports no interval."""
    treatment, method = published.treatment(name), published.manifest.method
    reasons = {
        Treatment.GROUP_MEANS: "its cells are means of groups, and the spread inside is not "
        "released",
        Treatment.INTERVALS: "its cells are intervals, and where people are in them is not "
        "released",
        Treatment.CELL_NOISE: "each cell has noise of its own, which this statistic cannot undo",
        Treatment.GROUP_NOISE: "people of a group share one noisy value, and the spread inside "
        "groups is not released",
        Treatment.RESPONSE: "its cells are random responses, which this statistic cannot undo",
        Treatment.DRAWN: "its cells are drawn, and another column is not",
        Treatment.MOVED: "rows that broke a rule were moved after the protection, and how far is "
        "not released",
        Treatment.BOUND: "a rule binds it to other columns, and its own values were not counted",
    }  # fmt: skip
    replaced = (
        "rare cells are blank, so those that are left are not a sample of all"
        if published.cells.blanks
        else "its cells may be sets or levels, and what is in them is not released"
        if published.cells.generalises
        else "its cells may have been replaced by others, and the error is not released"
    )
    reason = reasons.get(treatment, replaced)
    return InputError(
        f"Column '{name}', released by {method}: {reason}. No interval is supported here."
    )


def _weights(published: PublishedTable, estimand: Estimand = Estimand.POPULATION) -> Floats:
    """Return the weight of each row: its sampling weight, or 1 for the table itself."""
    weights = published.weights
    return np.ones(published.n) if weights is None or estimand is Estimand.TABLE else weights


def effective(published: PublishedTable, names: Sequence[str]) -> float:
    """Compute the effective number of people with values in some columns, by their weights."""
    w = _weights(published)[published.frame.select(pl.all_horizontal(
        pl.col(names).is_not_null())).to_series().to_numpy()]  # fmt: skip
    return float(w.sum() ** 2 / max(w @ w, 1e-300))


def average(
    published: PublishedTable,
    names: Sequence[str],
    parts: Sequence[RowValues],
    *,
    estimand: Estimand,
) -> tuple[float, float]:
    """Estimate the mean of a column, or of a product of several, and its variance."""
    if len(names) > 1:
        refuse_shuffled(published)
    u = reduce(np.multiply, [part.values for part in parts])
    v = reduce(np.multiply, [part.squares for part in parts])
    kept = np.isfinite(u)
    w = _weights(published, estimand)[kept]
    if not w.sum() > 0:
        raise InputError(f"Column '{names[0]}' has no cells to analyse.")
    u, v, w = u[kept], v[kept], w / w.sum()
    mean = float(w @ u)
    if published.treatment(names[0]) is Treatment.GROUP_NOISE:
        return mean, _of_groups(published, names[0], w @ v - mean**2, estimand)
    hidden = _hidden(published, names[0], kept, w)
    if estimand is Estimand.TABLE:
        return mean, float((w**2) @ (u**2 - v)) + hidden
    within = parts[0].within
    spread_inside = within[kept] if isinstance(within, np.ndarray) else within
    n = len(u)
    sampled = float((w**2) @ ((u - mean) ** 2 + spread_inside)) * n / max(n - 1, 1)
    return mean, sampled + hidden


def _hidden(published: PublishedTable, name: str, kept: Bools, w: Floats) -> float:
    """Bound the variance of a mean due to recoding, whoever was sampled.

    The mean inside an interval is off by a sixth of its width, as in `measured`. A group's mean
    that was rounded to a whole number has a uniform error of up to a half; a group has at most 2k -
    1 rows, so the squares of the shares of groups sum to at most 2k - 1 times those of rows.
    """
    treatment, parameters = published.treatment(name), published.manifest.parameters
    if treatment is Treatment.INTERVALS:
        spans, back = np.unique(
            np.column_stack(published.ends(name))[kept], axis=0, return_inverse=True
        )
        shares = np.bincount(back.ravel(), w)
        return float(((shares * np.diff(spans)[:, 0] / 6) ** 2).sum())
    if treatment is Treatment.GROUP_MEANS and parameters.get("integers"):
        return float((2 * parameters["k"] - 1) * (w**2).sum() / 12)
    return 0.0


def _of_groups(published: PublishedTable, name: str, spread_: float, estimand: Estimand) -> float:
    """Compute the variance of group noise: one draw per group, shared by its rows."""
    loss, n = published.loss(name), published.n
    draws = 0 if loss is None else loss.draws
    noise = 2 * published.laplace(name) ** 2 * draws / n**2
    return noise + (max(spread_, 0.0) / n if estimand is Estimand.POPULATION else 0.0)


def bounds_of_mean(published: PublishedTable, name: str) -> tuple[float, float]:
    """Return the range in which the mean of interval cells lies for certain."""
    low, high = published.ends(name)
    w = _weights(published) * np.isfinite(low)
    return float(w @ np.nan_to_num(low) / w.sum()), float(w @ np.nan_to_num(high) / w.sum())


def quantile(
    published: PublishedTable, name: str, at: float, *, estimand: Estimand, confidence: float
) -> AnalysisTerm:
    """Estimate a quantile with Woodruff's interval: invert that of the share below it."""
    treatment, weights = published.treatment(name), _weights(published, estimand)
    if treatment in {Treatment.NONE, Treatment.GROUP_MEANS}:
        column = number(published, name)
        kept = np.isfinite(column.values)
        inside = np.sqrt(np.broadcast_to(column.within, kept.shape)[kept])
        # People of a group are spread evenly around its mean, by its variance.
        points = _EVENLY if treatment is Treatment.GROUP_MEANS else np.zeros(1)
        values = (column.values[kept][:, None] + inside[:, None] * points).ravel()
        order = np.argsort(values, kind="stable")
        values, shares = values[order], np.repeat(weights[kept], len(points))[order]
    elif treatment is Treatment.INTERVALS:
        low, high = published.ends(name)
        kept = np.isfinite(low)
        distribution = _spread(published, name, low[kept], high[kept], weights[kept])
        values, shares = distribution.values, distribution.shares
    else:
        raise refusal(published, name)
    upto = np.cumsum(shares) / shares.sum()
    read = _reader(values, upto, exact=treatment is Treatment.NONE)
    estimate = read(at)
    if estimand is Estimand.TABLE:
        if treatment is Treatment.INTERVALS:
            ends = [float(np.quantile(end[kept], at)) for end in (low, high)]
            return AnalysisTerm(name, estimate, float("nan"), *ends)
        if treatment is Treatment.GROUP_MEANS:
            raise refusal(published, name)
        return AnalysisTerm(name, estimate, 0.0, estimate, estimate)
    w = weights[kept]
    error = sqrt(at * (1 - at) * float(w @ w)) / float(w.sum())
    z = half_width(confidence)
    lower, upper = read(at - z * error), read(at + z * error)
    if step := published.step(name):  # people have multiples of it, also inside groups
        lower, upper = floor(lower / step + 1e-9) * step, ceil(upper / step - 1e-9) * step
    people = float(w.sum() ** 2 / (w @ w))
    return AnalysisTerm(name, estimate, _rank_error(values, upto, at, people), lower, upper)


def _rank_error(values: Floats, upto: Floats, at: float, people: float) -> float:
    """Compute the standard error of a quantile of n people, by Maritz and Jarrett.

    The rank of the estimate varies as Beta(n at + 1/2, n (1 - at) + 1/2), and half the mean squared
    difference of the values at two such ranks is the variance. Neighbours lie exponentially far
    apart, so the square of a gap of m ranks is (m + 1) / m times too large on average: a departure
    from the paper takes that back, without which the error in a tail of 60 people is a tenth above.
    """
    chances = (np.arange(200) + 0.5) / 200
    ends = scipy.special.betaincinv(people * at + 0.5, people * (1 - at) + 0.5, chances)
    places = np.minimum(np.searchsorted(upto, ends), len(values) - 1)
    gaps, apart = (np.subtract.outer(v, v) for v in (upto[places], values[places]))
    gaps = np.abs(gaps) * people
    return sqrt(float((apart**2 * gaps / (gaps + 1)).mean()) / 2)


def _reader(values: Floats, upto: Floats, *, exact: bool) -> Callable[[float], float]:
    """Make a quantile function of sorted values: exact, or interpolated.

    The former is the mean of two values where exactly enough do not exceed the lower.
    """
    if exact:

        def read(at: float) -> float:
            nearest = np.searchsorted(upto, [at - 1e-12, at + 1e-12])
            return float(values[np.minimum(nearest, len(values) - 1)].mean())

        return read
    ranks = upto - np.diff(upto, prepend=0.0) / 2
    return lambda at: float(np.interp(at, ranks, values))


@dataclass(frozen=True, eq=False)
class Regressor:
    """A column of a design matrix."""

    label: str
    column: str
    values: RowValues


def refuse_shuffled(published: PublishedTable) -> None:
    """Refuse what needs rows, if cells of a row do not belong together."""
    if not published.linked:
        raise InputError(
            "The release is column-shuffled: the cells of a row belong to different people, so it "
            "supports statistics of one column alone."
        )


def design(published: PublishedTable, names: Sequence[str]) -> list[Regressor]:
    """Make a design matrix: numbers as they are, categories as dummies without the first."""
    refuse_shuffled(published)
    regressors = []
    for name in names:
        if published.numeric(name):
            if published.treatment(name) is Treatment.GROUP_NOISE:
                raise refusal(published, name)
            regressors.append(Regressor(name, name, number(published, name)))
            continue
        regressors += [
            Regressor(f"{name} = {category}", name, indicator(published, name, category))
            for category in published.categories(name)[1:]
        ]
    return regressors


def refuse_grouped_outcome(published: PublishedTable, name: str) -> None:
    """Refuse an outcome that formed groups: slopes between group means are too steep."""
    grouped = {Treatment.GROUP_MEANS, Treatment.INTERVALS, Treatment.GROUP_NOISE}
    if published.treatment(name) in grouped and not published.alone(name):
        raise InputError(
            f"Column '{name}' is the outcome, and groups were formed by it too: slopes between "
            "means of such groups are biased by an amount that the release does not show."
        )


def ols(
    published: PublishedTable, outcome: str, names: Sequence[str], *, confidence: float
) -> list[AnalysisTerm]:
    """Fit least squares, corrected for noise in regressors."""
    refuse_grouped_outcome(published, outcome)
    if not published.numeric(outcome):
        raise InputError(f"'{outcome}' is not numeric, so it cannot be the outcome of ols.")
    regressors = design(published, names)
    y = number(published, outcome).values
    U, M, w = _moments(published, regressors, y)
    y = y[np.isfinite(w)]
    w = w[np.isfinite(w)]
    A = np.einsum("i,ijk->jk", w, M)
    if np.linalg.matrix_rank(U) < U.shape[1]:
        raise InputError(
            f"A regressor of '{outcome}' is constant here, or follows from the others: slopes are "
            "not determined."
        )
    beta = np.linalg.solve(A, (w * y) @ U)
    scores = w[:, None] * (U * y[:, None] - M @ beta)
    return _terms(regressors, beta, A, scores, confidence, student=True)


def logit(
    published: PublishedTable,
    outcome: str,
    category: str,
    names: Sequence[str],
    *,
    confidence: float,
) -> list[AnalysisTerm]:
    """Fit logistic regression of whether the outcome has a category, by Newton's method."""
    regressors = design(published, names)
    noisy = [regressor.column for regressor in regressors if regressor.values.noisy]
    if noisy:
        raise refusal(published, noisy[0])
    y = indicator(published, outcome, category).values
    U, _, w = _moments(published, regressors, y)
    y = y[np.isfinite(w)]
    w = w[np.isfinite(w)]
    beta, A = newton(U, lambda p: (w * (y - p)) @ U, w)
    p = 1 / (1 + np.exp(-U @ beta))
    scores = (w * (y - p))[:, None] * U
    half = np.linalg.solve(A, scores.T)
    error = sqrt(np.einsum("ij,jk,ik->", U, half @ half.T, U) / len(U))
    if error > _WILD:
        raise InputError(
            f"The error of a logistic regression of '{outcome}' is so large here that it is not "
            "normal. No interval is supported."
        )
    return _terms(regressors, beta, A, scores, confidence)


def newton(U: Floats, score: Callable[[Floats], Floats], w: Floats) -> tuple[Floats, Floats]:
    """Find the zero of the score, and return the coefficients and the information there.

    Raises:
        InputError: no coefficients are found, as where noise moves the moments of the outcome
            beyond those that any coefficients have.
    """
    scale = np.maximum(np.sqrt((w @ U**2) / w.sum()), 1e-300)
    V = U / scale
    beta = np.zeros(U.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(V @ beta, -500, 500)))
        gradient = score(p) / scale
        A = (V * (w * p * (1 - p))[:, None]).T @ V
        try:
            step = np.linalg.solve(A, gradient)
        except np.linalg.LinAlgError:
            break
        beta = beta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(beta).max() > 50:
            break
        if np.abs(step).max() < 1e-9:
            return beta / scale, A * np.outer(scale, scale)
    raise InputError(
        "No logistic regression has the moments of these rows, so it has no estimate here: noise "
        "moved them, a regressor is constant, or the regressors tell the outcome exactly."
    )


def _moments(
    published: PublishedTable, regressors: Sequence[Regressor], y: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the design with its intercept, the matrices M of complete rows, and weights.

    Weights are NaN for incomplete rows, which are left out.
    """
    U = np.column_stack([np.ones(published.n), *(r.values.values for r in regressors)])
    w = np.where(np.isfinite(U).all(axis=1) & np.isfinite(y), _weights(published), np.nan)
    kept = np.isfinite(w)
    U = U[kept]
    M = U[:, :, None] * U[:, None, :]
    for j, regressor in enumerate(regressors, start=1):
        if not regressor.values.noisy:
            continue
        M[:, j, j] = regressor.values.squares[kept]
        for i, other in enumerate(regressors, start=1):
            if i != j and other.column == regressor.column:
                M[:, i, j] = 0.0
        _refuse_hidden(regressor, M[:, j, j], U[:, j])
    return U, M, w


def _refuse_hidden(one: Regressor, squares: Floats, values: Floats) -> None:
    """Refuse a noisy regressor whose variance is hidden by the noise: its slope is unbounded."""
    spread_of = squares - 2 * values * values.mean() + values.mean() ** 2
    if spread_of.mean() < _CLEAR * spread_of.std() / sqrt(len(values)):
        raise InputError(
            f"The noise of column '{one.column}' hides its variance, so no slope on it can be "
            "bounded."
        )


def _terms(
    regressors: Sequence[Regressor],
    beta: Floats,
    A: Floats,
    scores: Floats,
    confidence: float,
    *,
    student: bool = False,
) -> list[AnalysisTerm]:
    """Make the terms of coefficients with the sandwich variance."""
    n, m = scores.shape
    freedom = max(n - m, 1) if student else None
    half = np.linalg.solve(A, scores.T)
    variances = (half**2).sum(axis=1) * n / max(n - m, 1)
    labels = ["intercept", *(regressor.label for regressor in regressors)]
    return [
        term_of(label, float(value), float(variance), confidence, freedom=freedom)
        for label, value, variance in zip(labels, beta, variances, strict=True)
    ]

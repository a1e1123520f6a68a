"""What a release preserves for an analyst: losses, marginals, counts, models, rules.

Models and rules are those that an analyst would run on a release, beside the same on the original.

Each metric is a function that yields figures. One that cannot be computed on these
tables is skipped, with a sentence that says why.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Estimate, Policy, Progress, Role, Schema
from shoal.core._arrays import Floats
from shoal.core.constraint_language import parse
from shoal.errors import InputError, did_you_mean
from shoal.evaluation.arrays import BINS, AlignedArrays
from shoal.evaluation.results import Better, Figure, Part, take
from shoal.io import text_files
from shoal.metrics import (
    count_queries,
    distributions,
    generalisation,
    information_loss,
    model_utility,
    moments,
    propensity,
)

MOST_LEARNED = 20_000
"""The most rows of either table that a model is trained on."""
MOST_DUMMIES = 50
"""The most columns that the categories of a regression may become."""
QUERIES = 2000
MOST_HALVED = 6
"""The most columns for which queries take half of every domain."""
SUBSET = 3
"""Axes that the second workload restricts."""
LISTED = 10
"""Pairs of columns that are listed, worst first."""
WHOLE = "the table"


@dataclass(frozen=True, eq=False)
class UtilityTask:
    """The input of a metric."""

    sides: AlignedArrays
    policy: Policy
    rng: np.random.Generator


def evaluate_utility(
    sides: AlignedArrays,
    policy: Policy,
    *,
    which: Collection[str],
    rng: np.random.Generator,
    jobs: int,
    progress: Progress,
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Compute the named utility metrics that these tables allow; also list what was skipped."""
    return take(
        METRICS,
        lambda own: UtilityTask(sides, policy, own),
        which=which,
        rng=rng,
        jobs=jobs,
        progress=lambda name, done, all_: progress(f"evaluating utility: {name}", done, all_),
    )


def _row_losses(task: UtilityTask) -> Iterator[Figure]:
    """Compute losses row by row, if rows correspond."""
    sides = task.sides
    if sides.reading.aligned is not True:
        raise InputError("rows are not known to correspond. State it with --aligned if they do.")
    x, y = sides.places, sides.midpoints
    figures = []
    for axis, name in enumerate(sides.names):
        if sides.discrete[axis]:
            before, after = sides.codes(axis), sides.codes(axis, released=True)
            share = information_loss.share_changed(before, after)
            text = f"In {share:.1%} of the rows '{name}' is different or missing."
            figures.append(_figure("share changed", name, share, text))
        else:
            ratio, why = information_loss.of_spread(x[:, axis], y[:, axis], paired=True)
            text = (
                f"The squared error of '{name}' is {_times(ratio)} its variance (1: as if only "
                "its mean were published)."
            )
            figures.append(_figure("SSE / SST", name, ratio, text, reason=why))
    yield from _worst_first(figures)
    numbers = sides.numeric
    if numbers:
        X, Y = x[:, numbers], y[:, numbers]
        il1s = information_loss.il1s(X, Y)
        text = (
            f"On average, a number is off by {il1s:.3g} times sqrt(2) standard deviations (IL1s)."
        )
        flat = [sides.names[axis] for axis in numbers if _constant(x[:, axis])]
        yield _figure("IL1s", WHOLE, il1s, text, reason=_without_spread(flat))
        squares, errors = information_loss.sse(X, Y), information_loss.sae(X, Y)
        yield _figure("SSE", WHOLE, squares, f"The squared errors sum to {squares:.3g}.")
        yield _figure("SAE", WHOLE, errors, f"The absolute errors sum to {errors:.3g}.")


def _column_losses(task: UtilityTask) -> Iterator[Figure]:
    """Compare the distributions of single columns, without row correspondence."""
    sides = task.sides
    figures = []
    for axis in sides.numeric:
        name = sides.names[axis]
        x, y = sides.places[:, axis], _expand(sides, axis)
        ratio, why = information_loss.of_spread(x, y, paired=False)
        text = (
            f"With both columns sorted, the squared error of '{name}' is {_times(ratio)} its "
            "variance."
        )
        figures.append(_figure("rank-matched SSE / SST", name, ratio, text, reason=why))
    yield from _worst_first(figures)


def _worst_first(figures: list[Figure]) -> list[Figure]:
    """Sort figures by size, those without a number first."""
    return sorted(figures, key=lambda one: -one.point if one.value is not None else -np.inf)


def _constant(column: Floats) -> bool:
    present = column[~np.isnan(column)]
    return present.size == 0 or bool(np.ptp(present) == 0)


def _without_spread(names: Sequence[str]) -> str:
    """Explain why a figure in units of the spread is undefined."""
    if not names:
        return ""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"{listed} {'has' if len(names) == 1 else 'have'} no variance in the original"


def _expand(sides: AlignedArrays, axis: int) -> Floats:
    """List one number per person: box middles, repeated by their weights in a decomposition."""
    middle = sides.midpoints[:, axis]
    if sides.reading.tree is None:
        return middle
    counts = np.maximum(np.rint(sides.released.weights), 0).astype(np.int64)
    return np.repeat(middle, counts)


def _marginals(task: UtilityTask) -> Iterator[Figure]:
    """Compute the total variation of single columns and of pairs, worst first."""
    sides = task.sides
    for size, name in ((1, "total variation"), (2, "total variation of pairs")):
        worst = [item for item in sides.distances.items() if len(item[0]) == size]
        for axes, distance in worst[: LISTED * 2 // size]:
            names = [sides.names[axis] for axis in axes]
            text = (
                f"The share of any {_sets(sides, axes)} of {' and '.join(names)}{sides.weighted} "
                f"is off by at most {_points(distance)}."
            )
            yield _figure(name, " x ".join(names), distance, text)


def _points(distance: float) -> str:
    """Write a distance of shares in words, without rounding error."""
    return f"{100 * distance if distance > 1e-12 else 0:.3g} percentage points"


def _sets(sides: AlignedArrays, axes: Sequence[int]) -> str:
    """Describe what the shares count: missing is a value, too."""
    if all(sides.discrete[axis] for axis in axes):
        return "set of values"
    return f"set of ranges (up to {BINS} per column)"


def _moments(task: UtilityTask) -> Iterator[Figure]:
    """Compare means, variances and correlations of the numeric columns."""
    sides = task.sides
    if not sides.numeric:
        raise InputError("there is no numeric column.")
    axes, names = sides.numeric, [sides.names[axis] for axis in sides.numeric]
    y = np.column_stack([_expand(sides, axis) for axis in axes])
    changes = moments.moment_changes(sides.places[:, axes], y)
    for place in np.argsort(-np.abs(np.nan_to_num(changes.means, posinf=np.inf))):
        change, ratio = float(changes.means[place]), float(changes.variances[place])
        why = _moment_reason(sides.places[:, axes[place]], y[:, place])
        text = f"The mean of '{names[place]}' moves by {change:+.3g} standard deviations."
        yield _figure("mean", names[place], abs(change), text, reason=why)
        times = f"{ratio:.3g} times the original's"
        same = "that of the original, to three digits"
        text = f"The variance of '{names[place]}' is {same if f'{ratio:.3g}' == '1' else times}."
        apart = abs(np.log(ratio)) if ratio > 0 else float("inf")
        yield _figure("variance", names[place], float(apart), text, reason=why)
    if len(axes) < 2:
        return
    rows, columns = np.triu_indices(len(axes), 1)
    apart = np.abs(changes.correlations[rows, columns])
    if np.isfinite(apart).any():
        worst = int(np.nanargmax(apart))
        pair = f"{names[rows[worst]]} x {names[columns[worst]]}"
        moved = changes.correlations[rows[worst], columns[worst]]
        ends = f"{names[rows[worst]]} and {names[columns[worst]]}"
        text = f"The correlation between {ends} moves by {moved:+.3f}, more than any other."
        yield _figure("correlation", pair, float(apart[worst]), text)


def _moment_reason(x: Floats, y: Floats) -> str:
    """Explain why a mean or a variance cannot be compared."""
    for column, whose in ((x, "original"), (y, "release")):
        present = int((~np.isnan(column)).sum())
        if present < 2:
            return f"it has {present} number{'' if present == 1 else 's'} in the {whose}"
    if _constant(x):
        return "all its numbers in the original are equal, and the release changes them"
    return "all its numbers in the release are equal"


def _classes(task: UtilityTask) -> Iterator[Figure]:
    """Measure how coarse a generalised table is."""
    sides = task.sides
    keys = sides.keys
    if not keys:
        raise InputError("none of the policy's quasi-identifiers is in the release.")
    if sides.reading.tree is not None:
        raise InputError("a tree has boxes instead of classes of rows.")
    labels = sides.released.classes(keys)
    size = generalisation.average_class_size(labels)
    text = f"An equivalence class has {size:.3g} {'row' if size == 1 else 'rows'} on average."
    yield _figure("average class size", WHOLE, size, text)
    hidden = sides.suppressed[:, keys].all(axis=1)
    cost = generalisation.discernibility(labels, suppressed=hidden)
    text = (
        "The number of rows from which a row cannot be told apart, summed over all rows, is "
        f"{cost:,.0f}."
    )
    yield _figure("discernibility", WHOLE, float(cost), text)
    left = generalisation.certainty_penalty(
        sides.released, sides.lows, sides.highs, gap=sides.gap
    ).granularities
    for axis in sorted(keys, key=left.__getitem__):
        text = (
            f"'{sides.names[axis]}'{sides.weighted} keeps {left[axis]:.1%} of its detail (100%: "
            "every cell exact; 0%: every cell suppressed)."
        )
        yield _figure("granularity", sides.names[axis], left[axis], text, better=Better.HIGHER)


def _counts(task: UtilityTask) -> Iterator[Figure]:
    """Compute the error of COUNT queries over half of every domain, and of three columns."""
    sides = task.sides
    before, after = (count_queries.index(table) for table in (sides.original, sides.released))
    total = max(sides.original.total, 1.0)
    # Half of very many domains holds hardly anybody: then the subset alone is used.
    workloads: list[tuple[str, int | None]] = []
    choices = task.policy.evaluate
    among = sides.axes(choices.query_columns) or None
    if among is not None:
        workloads.append((", ".join(sides.names[axis] for axis in among), None))
    elif len(sides.names) <= MOST_HALVED:
        workloads.append(("all columns", None))
    if among is None and len(sides.names) > SUBSET:
        workloads.append((f"{SUBSET} columns", SUBSET))
    for subject, axes in workloads:
        queries, true = count_queries.draw_answered_half_ranges(
            before, sides.lows, sides.highs, sides.discrete, queries=QUERIES, rng=task.rng,
            axes=axes, among=among, round_down=choices.round_down,
        )  # fmt: skip
        errors = count_queries.relative_errors(true, count_queries.answers(after, queries))
        middle = count_queries.median_relative_error(errors)
        text = (
            f"Half of {QUERIES:,} COUNT queries, each over half of the range of {subject}"
            f"{sides.weighted or ','} are off by at most {middle.value:.1%}; the median query "
            f"counts {np.median(true) / total:.1%} of the people."
        )
        why = "too few of the queries have a true answer above 0"
        yield _figure("COUNT queries", subject, middle, text, reason=why)


def _own_counts(task: UtilityTask) -> Iterator[Figure]:
    """Compute the errors of the user's own COUNT queries."""
    file = task.policy.evaluate.queries
    if not file:
        return
    sides = task.sides
    axes = [_query_axis(sides, axis) for axis in range(len(sides.names))]
    queries = count_queries.parse(_read_queries(Path(file)), axes)
    before, after = (count_queries.index(table) for table in (sides.original, sides.released))
    true, answered = count_queries.answers(before, queries), count_queries.answers(after, queries)
    for number, (own, theirs) in enumerate(zip(true, answered, strict=True), start=1):
        error = abs(theirs - own) / own if own > 0 else float("inf") if theirs else 0.0
        text = (
            f"Query {number}{sides.weighted} counts {theirs:,.1f} in the release and {own:,.1f} in "
            "the original."
        )
        why = f"it counts nobody in the original, but {theirs:,.1f} in the release"
        yield _figure("own queries", f"query {number}", float(error), text, reason=why)


def _read_queries(path: Path) -> list[dict[str, Any]]:
    what = f"the queries '{path.name}'"
    document = text_files.parse_toml(text_files.read_text(path, what), what.capitalize())
    queries = document.get("query")
    if not isinstance(queries, list) or set(document) != {"query"}:
        raise InputError(f"'{path.name}': expected a list of [[query]] tables and nothing else.")
    return queries


def _query_axis(sides: AlignedArrays, axis: int) -> count_queries.QueryColumn:
    if not sides.discrete[axis]:
        return count_queries.QueryColumn(sides.names[axis])
    categories: tuple[str | None, ...] = sides.categories(axis)
    missing = (None,) * (int(sides.highs[axis]) - len(categories))
    return count_queries.QueryColumn(sides.names[axis], (*categories, *missing))


def _groups(task: UtilityTask) -> Iterator[Figure]:
    """Compute the total variation of single columns within groups of people, worst first.

    As for whole columns: the same bins, a coarser value spread over those that it covers, and an
    interval or a set of groups shared out among them.
    """
    sides, name = task.sides, task.policy.evaluate.groups
    if name is None:
        return
    if name not in sides.names:
        raise InputError(f"the release has no column '{name}'.")
    axis = sides.names.index(name)
    if not sides.discrete[axis]:
        raise InputError(f"'{name}' has no categories.")
    sizes = np.bincount(sides.codes(axis) + 1, minlength=len(sides.categories(axis)) + 1)[1:]
    figures = []
    for other, column in enumerate(sides.names):
        if other == axis:
            continue
        before, after = sides.two_way(axis, other)
        for code, category in enumerate(sides.categories(axis)):
            if not sizes[code]:
                continue
            value = distributions.share_distance(before[code], after[code])
            text = (
                f"Among the {sizes[code]:,} people with {name} = {category}, the share of any "
                f"{_sets(sides, [other])} of '{column}'{sides.weighted} is off by at most "
                f"{_points(value)}."
            )
            figures.append(_figure("loss by group", f"{category}: {column}", value, text))
    yield from _worst_first(figures)


def _times(value: float | None) -> str:
    """Write a share of the standard deviation, or a multiple of it."""
    if value is None:
        return ""
    return f"{value:.3g} of" if value < 100 else f"{value:,.0f} times"


def _figure(
    metric: str,
    subject: str,
    value: float | Estimate | None,
    sentence: str,
    *,
    better: Better = Better.LOWER,
    reason: str = "",
) -> Figure:
    return Figure(Part.UTILITY, metric, subject, value, better, sentence, reason=reason)


METRICS: dict[str, Callable[[UtilityTask], Iterator[Figure]]] = {
    "losses by row": _row_losses,
    "losses by column": _column_losses,
    "marginals": _marginals,
    "moments": _moments,
    "classes": _classes,
    "COUNT queries": _counts,
    "own queries": _own_counts,
    "learning": lambda task: learn(task.sides, task.policy.evaluate.learn, task.rng),
    "own regression": lambda task: regress(task.sides, task.policy.evaluate.regression),
    "propensity": lambda task: distinguish(task.sides, task.rng),
    "edit rules": lambda task: broken(task.sides, task.policy.evaluate.rules),
    "groups": _groups,
}


def _target(sides: AlignedArrays, stated: str | None) -> int:
    """Return the axis that a model predicts: the stated or the first confidential one."""
    if stated is not None:
        if stated not in sides.names:
            raise InputError(f"the release has no column '{stated}'.")
        return sides.names.index(stated)
    confidential = sides.axes(sides.schema.with_role(Role.CONFIDENTIAL))
    if not confidential:
        raise InputError("the release has no confidential column; name one under [evaluate].")
    return confidential[0]


def learn(sides: AlignedArrays, stated: str | None, rng: np.random.Generator) -> Iterator[Figure]:
    """Train a model on the release and on the original, and test both on original rows.

    The test uses people not in the table if given, which is fair; otherwise a fifth of the
    original, which both models have seen.
    """
    axis = _target(sides, stated)
    predictors = [j for j in range(len(sides.names)) if j != axis]
    if not predictors:
        raise InputError("this comparison needs at least two columns.")
    name = sides.names[axis]
    order = rng.permutation(len(sides.places))
    fifth = max(len(order) // 5, 1)
    if sides.control is not None:
        tested, whom = sides.control, "people not in the table"
    else:
        tested, whom = sides.places[order[:fifth]], "people who are in both training sets"
    classify = sides.discrete[axis]
    scores = model_utility.learn(
        model_utility.LabelledRows(
            sides.midpoints[:, predictors], sides.midpoints[:, axis], sides.released.weights
        ),
        model_utility.LabelledRows(
            sides.places[:, predictors], sides.places[:, axis], sides.original.weights
        ),
        model_utility.LabelledRows(tested[:, predictors], tested[:, axis]),
        categorical=[sides.discrete[j] for j in predictors],
        task=model_utility.PredictionTask("classification" if classify else "regression"),
        rng=rng,
        most=MOST_LEARNED,
    )
    score = "accuracy" if classify else "R2"
    text = (
        f"A model trained on the release{sides.weighted} predicts '{name}' with {score} "
        f"{scores.released.value:.3f}; the same model trained on the original reaches "
        f"{scores.original.value:.3f}, and a constant guess {scores.baseline.value:.3f} (tested on "
        f"{scores.tested:,} {whom})."
    )
    yield Figure(Part.UTILITY, "learning", name, scores.released, Better.HIGHER, text,
                 scores.original)  # fmt: skip


def regress(sides: AlignedArrays, formula: str | None) -> Iterator[Figure]:
    """Fit the user's own linear model, and compare its coefficients, least overlap first."""
    if not formula:
        return
    left, _, right = formula.partition("~")
    names = [_axis(sides, term, formula) for term in right.split("+")] if right.strip() else []
    if not names:
        raise InputError(f"expected a model such as 'income ~ age + hours', found '{formula}'.")
    y = _axis(sides, left, formula)
    if sides.discrete[y]:
        raise InputError(f"'{sides.names[y]}' is not numeric, so it cannot be regressed.")
    fits, labels = [], ["intercept"]
    for rows in (sides.places, sides.midpoints):
        columns, labels = _design(sides, rows, names)
        fits.append(model_utility.regress(columns, rows[:, y]))
    overlaps = model_utility.interval_overlap(fits[0], fits[1])
    model = formula.strip()
    text = (
        f"The confidence intervals of {model}, from the original and from the release, overlap "
        f"by {overlaps.mean:.0%} on average."
    )
    yield Figure(Part.UTILITY, "own regression", model, overlaps.mean, Better.HIGHER, text,
                 reason="the original determines none of its coefficients")  # fmt: skip
    order = sorted(range(len(labels)), key=lambda place: np.nan_to_num(overlaps.each[place], nan=2))
    for place in order:
        estimates = [fit.coefficients[place] for fit in fits]
        before, after = (f"{b:.3g}" if np.isfinite(b) else "not determined" for b in estimates)
        text = (
            f"{labels[place]}: {before} in the original, {after} in the release; their "
            f"confidence intervals overlap by {overlaps.each[place]:.0%}."
        )
        yield Figure(Part.UTILITY, "interval overlap", labels[place], overlaps.each[place],
                     Better.HIGHER, text,
                     reason="the original does not determine the coefficient")  # fmt: skip


def _axis(sides: AlignedArrays, term: str, formula: str) -> int:
    name = re.sub(r"^`(.*)`$", r"\1", term.strip())
    if name not in sides.names:
        guess = did_you_mean(name, sides.names)
        raise InputError(
            f"'{formula}' names '{name}', which is not a column of the release.{guess}"
        )
    return sides.names.index(name)


def _design(sides: AlignedArrays, rows: Floats, axes: Sequence[int]) -> tuple[Floats, list[str]]:
    """Make a design matrix: numbers as they are, categories as dummies without the first."""
    columns, labels = [], ["intercept"]
    for axis in axes:
        name = sides.names[axis]
        if not sides.discrete[axis]:
            columns.append(rows[:, axis])
            labels.append(name)
            continue
        categories = sides.categories(axis)
        if len(categories) > MOST_DUMMIES:
            raise InputError(f"'{name}' has more than {MOST_DUMMIES} categories.")
        gone = np.isnan(rows[:, axis])
        for code, category in enumerate(categories[1:], start=1):
            columns.append(np.where(gone, np.nan, rows[:, axis] == code))
            labels.append(f"{name} = {category}")
    return np.column_stack(columns), labels


def distinguish(sides: AlignedArrays, rng: np.random.Generator) -> Iterator[Figure]:
    """Compute the propensity score: whether a classifier can distinguish the two tables."""
    if sides.reading.tree is not None:
        raise InputError("a tree has boxes instead of records.")
    score = propensity.propensity(
        sides.places, sides.midpoints, categorical=sides.discrete, rng=rng
    )
    text = (
        f"A classifier distinguishes released rows from original ones {score.ratio.value:.3g} "
        "times as well as it would a fresh sample of the original (pMSE ratio)."
    )
    yield Figure(Part.UTILITY, "propensity", "the table", score.ratio, Better.LOWER, text)


def broken(sides: AlignedArrays, texts: Sequence[str]) -> Iterator[Figure]:
    """Count how often edit rules are violated before and after, worst first."""
    figures = []
    for text in texts:
        rule = parse(text, Schema(tuple(sides.schema[name] for name in sides.names)))
        before, after = (
            rule.count(_columns(sides, rows, rule.columns))
            for rows in (sides.places, sides.midpoints)
        )
        sentence = (
            f"{text}: violated in {after.violations:,} of {after.applicable:,} released rows, "
            f"and in {before.violations:,} of {before.applicable:,} original ones."
        )
        figures.append(Figure(Part.UTILITY, "edit rules", text, after.share, Better.LOWER, sentence,
                            before.share))  # fmt: skip
    yield from sorted(figures, key=lambda figure: -figure.point)


def _columns(
    sides: AlignedArrays, rows: Floats, names: Sequence[str]
) -> dict[str, NDArray[np.generic]]:
    """Convert columns to the form that rules read: numbers, and categories as texts."""
    columns: dict[str, NDArray[np.generic]] = {}
    for name in names:
        axis = sides.names.index(name)
        column = rows[:, axis]
        if sides.discrete[axis]:
            texts = np.array([*sides.categories(axis), None], dtype=object)
            known = ~np.isnan(column) & (column < len(texts) - 1)
            column = texts[np.where(known, column, -1).astype(np.int64)]
        columns[name] = column
    return columns

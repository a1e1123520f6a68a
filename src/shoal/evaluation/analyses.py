"""Models and rules that an analyst would run on a release, beside the same on the original."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core import Role, Schema
from shoal.core._arrays import Floats
from shoal.core.constraint_language import parse
from shoal.errors import InputError, did_you_mean
from shoal.evaluation.arrays import AlignedArrays
from shoal.evaluation.results import Better, Figure, Part
from shoal.metrics import model_utility, propensity

MOST_LEARNED = 20_000
"""The most rows of either table that a model is trained on."""
MOST_DUMMIES = 50
"""The most columns that the categories of a regression may become."""


def _target(sides: AlignedArrays, stated: str | None) -> int:
    """The axis that a model learns to predict: as stated, or the first confidential one."""
    if stated is not None:
        if stated not in sides.names:
            raise InputError(f"the release has no column '{stated}'.")
        return sides.names.index(stated)
    confidential = sides.axes(sides.schema.with_role(Role.CONFIDENTIAL))
    if not confidential:
        raise InputError("the release has no confidential column; name one under [evaluate].")
    return confidential[0]


def learn(sides: AlignedArrays, stated: str | None, rng: np.random.Generator) -> Iterator[Figure]:
    """A model trained on the release and on the original, tested on original rows.

    Tested on people not in the table if some are handed in, which is fair; otherwise on a fifth of
    the original, which both models have seen.
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
    """The user's own linear model, coefficient by coefficient, least overlap first."""
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
    """Numbers as they are, categories as zeros and ones, the first of them left out."""
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
    """The propensity score: can a classifier tell released rows from original ones?"""
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
    """Edit rules, how often they are broken before and after; the worst first."""
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
    """Columns as rules read them: numbers, and categories as texts."""
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

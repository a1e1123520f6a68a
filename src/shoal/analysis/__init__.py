"""Estimates with intervals from a public folder alone.

    from shoal import analysis
    analysis.mean("release", "income")
    analysis.ols("release", "income ~ age + hours")

Each function takes the folder that was published (or a `Release`), and returns an `AnalysisResult`
whose intervals account for what the protection did. Where no interval is supported, it raises an
`InputError` that says why. `estimand="table"` asks about the confidential table, the default about
the population that it was drawn from.

Privacy: every number here is a function of the public folder, and of fresh randomness where a
bootstrap draws again. Post-processing costs no epsilon and breaks no promise.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from shoal.analysis import association, measured, rows
from shoal.analysis.published import PublishedTable, Treatment
from shoal.analysis.result import (
    ESTIMANDS,
    WEIGHTED,
    AnalysisResult,
    AnalysisTerm,
    Estimand,
    Overview,
    caveats,
    cut_term,
    sampling_of_share,
    term_of,
)
from shoal.core import Kind, Release
from shoal.errors import InputError, count_noun, did_you_mean

__all__ = [
    "AnalysisResult",
    "AnalysisTerm",
    "Estimand",
    "analyse",
    "crosstab",
    "logit",
    "mean",
    "ols",
    "proportion",
    "quantile",
    "total",
]

Source = str | Path | Release | PublishedTable
_COUNTS = {
    "mean": ["a column"], "total": ["a column"], "quantile": ["a column"],
    "proportion": ["a column", "a category"], "crosstab": ["a column", "a second column"],
    "ols": ["a model"], "logit": ["a model"],
}  # fmt: skip
"""The statistics, and what each is asked with."""
_MOST_LISTED = 20
"""Categories of a column that are listed at a glance."""
_SHARES = (0.0, 1.0)
_MEASURED = "from the published noisy measurements, with their scales"
_ROWS = "from the released rows"
_BOOTSTRAP = (
    "from a model of the published noisy marginals; standard errors by drawing people and noise "
    f"again from it, {association.REPLICATES} times"
)


def mean(
    source: Source, column: str, *, estimand: str = "population", confidence: float = 0.95
) -> AnalysisResult:
    """Estimate the mean of a numeric column.

    Args:
        source: the public folder, or a release.
        column: its name.
        estimand: "population" or "table".
        confidence: of the interval.
    """
    published, about = _open(source, confidence), _estimand(estimand)
    term = _mean(published, column, about, confidence)
    return _result(published, "mean", [column], [term], about, confidence=confidence)


def _mean(
    published: PublishedTable, column: str, estimand: Estimand, confidence: float
) -> AnalysisTerm:
    _numeric(published, column)
    treatment = published.treatment(column)
    if treatment is Treatment.DRAWN:
        estimate_and_error = measured.mean(published, column, estimand)
    else:
        estimate_and_error = rows.average(
            published, [column], [rows.number(published, column)], estimand=estimand
        )
    term = term_of(column, *estimate_and_error, confidence, within=published.bounds(column))
    if treatment is Treatment.INTERVALS and estimand is Estimand.TABLE:
        low, high = rows.bounds_of_mean(published, column)
        return replace(term, standard_error=float("nan"), low=low, high=high)
    return term


def total(
    source: Source,
    column: str,
    *,
    population_size: float | None = None,
    estimand: str = "population",
    confidence: float = 0.95,
) -> AnalysisResult:
    """Estimate the total of a numeric column.

    Args:
        source: the public folder, or a release.
        column: its name.
        population_size: the number of people in the population; without it, that of the population
            is taken as the sum of the released sampling weights.
        estimand: "population" or "table".
        confidence: of the interval.
    """
    published, about = _open(source, confidence), _estimand(estimand)
    size = population_size
    if about is Estimand.TABLE:
        size = published.table_rows
        if size is None:
            raise InputError("The number of rows of the confidential table is not published.")
    elif size is None and published.weights is not None:
        size = float(published.weights.sum())
    if size is None:
        raise InputError(
            "The total of a population needs its size: state it (population_size, or --population "
            "at the prompt), or ask for the total of the table."
        )
    average = _mean(published, column, about, confidence)
    term = AnalysisTerm(
        column,
        size * average.estimate,
        size * average.standard_error,
        size * average.low,
        size * average.high,
    )
    return _result(published, "total", [column], [term], about, confidence=confidence)


def proportion(
    source: Source,
    column: str,
    category: str,
    *,
    estimand: str = "population",
    confidence: float = 0.95,
) -> AnalysisResult:
    """Estimate the share of people with a category."""
    published, about = _open(source, confidence), _estimand(estimand)
    terms = _shares(published, [column], [(category,)], about, confidence)
    return _result(published, "proportion", [column], terms, about, confidence=confidence)


def crosstab(
    source: Source,
    row: str,
    column: str,
    *,
    estimand: str = "population",
    confidence: float = 0.95,
) -> AnalysisResult:
    """Estimate the share of people in each cell of a two-way table of categories."""
    published, about = _open(source, confidence), _estimand(estimand)
    cells = list(product(*(_categorical(published, name) for name in (row, column))))
    terms = _shares(published, [row, column], cells, about, confidence)
    return _result(published, "crosstab", [row, column], terms, about, confidence=confidence)


def _shares(
    published: PublishedTable,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    estimand: Estimand,
    confidence: float,
) -> list[AnalysisTerm]:
    drawn = [published.treatment(name) is Treatment.DRAWN for name in columns]
    terms = []
    for cell in cells:
        for pair in zip(columns, cell, strict=True):
            _check_category(published, *pair)
        if all(drawn):
            estimate_and_error = measured.share(published, columns, cell, estimand)
        else:
            parts = [rows.indicator(published, *pair) for pair in zip(columns, cell, strict=True)]
            estimate_and_error = rows.average(published, columns, parts, estimand=estimand)
            if estimand is Estimand.POPULATION:
                least = sampling_of_share(estimate_and_error[0], rows.effective(published, columns))
                estimate_and_error = estimate_and_error[0], max(estimate_and_error[1], least)
        terms.append(term_of(", ".join(cell), *estimate_and_error, confidence, within=_SHARES))
    return terms


def quantile(
    source: Source,
    column: str,
    at: float = 0.5,
    *,
    estimand: str = "population",
    confidence: float = 0.95,
) -> AnalysisResult:
    """Estimate a quantile of a numeric column; the median by default."""
    published, about = _open(source, confidence), _estimand(estimand)
    _numeric(published, column)
    if not 0 < at < 1:
        raise InputError(f"at: expected a share between 0 and 1, found {at}.")
    route = measured if published.treatment(column) is Treatment.DRAWN else rows
    term = route.quantile(published, column, at, estimand=about, confidence=confidence)
    term = cut_term(term, confidence, published.bounds(column))
    return _result(published, "quantile", [column], [term], about, confidence=confidence)


def ols(
    source: Source,
    formula: str,
    *,
    estimand: str = "population",
    confidence: float = 0.95,
    seed: int = 0,
) -> AnalysisResult:
    """Fit least squares, such as `income ~ age + hours`; categories become dummies.

    Args:
        source: the public folder, or a release.
        formula: the outcome, ~, and the regressors with + between.
        estimand: "population" or "table".
        confidence: of each interval.
        seed: of the bootstrap, where there is one.
    """
    outcome, names = _parse_formula(formula)
    published, about = _open(source, confidence), _estimand(estimand)
    _numeric(published, outcome)
    terms = _regression(
        published, outcome, None, names, estimand=about, confidence=confidence, seed=seed
    )
    title = f"{outcome} ~ {' + '.join(names)}"
    columns = [outcome, *names]
    return _result(published, "ols", columns, terms, about, confidence=confidence, title=title)


def logit(
    source: Source,
    formula: str,
    *,
    category: str | None = None,
    estimand: str = "population",
    confidence: float = 0.95,
    seed: int = 0,
) -> AnalysisResult:
    """Fit logistic regression of whether the outcome has a category, by default its last one.

    The other arguments are those of `ols`.
    """
    outcome, names = _parse_formula(formula)
    published, about = _open(source, confidence), _estimand(estimand)
    chosen = category or _categorical(published, outcome)[-1]
    _check_category(published, outcome, chosen)
    terms = _regression(
        published, outcome, chosen, names, estimand=about, confidence=confidence, seed=seed
    )
    title = f"{outcome} = {chosen} ~ {' + '.join(names)}"
    columns = [outcome, *names]
    return _result(published, "logit", columns, terms, about, confidence=confidence, title=title)


def _regression(
    published: PublishedTable,
    outcome: str,
    category: str | None,
    names: Sequence[str],
    *,
    estimand: Estimand,
    confidence: float,
    seed: int,
) -> list[AnalysisTerm]:
    _refuse_few(published, outcome, *names)
    treatments = {published.treatment(name) for name in (outcome, *names)}
    if treatments == {Treatment.DRAWN}:
        return association.regression(
            published, outcome, category, names, estimand=estimand, confidence=confidence, seed=seed
        )
    table = estimand is Estimand.TABLE
    if table and treatments != {Treatment.NONE}:
        raise InputError(
            "For the confidential table itself, regressions are supported where rows are drawn "
            "from published measurements, or released as they are."
        )
    if category is None:
        terms = rows.ols(published, outcome, names, confidence=confidence)
    else:
        terms = rows.logit(published, outcome, category, names, confidence=confidence)
    exact = [replace(t, standard_error=0.0, low=t.estimate, high=t.estimate) for t in terms]
    return exact if table else terms


def analyse(
    source: Source,
    statistic: str | None = None,
    of: Sequence[str] = (),
    *,
    at: float = 0.5,
    category: str | None = None,
    population_size: float | None = None,
    estimand: str = "population",
    confidence: float = 0.95,
) -> AnalysisResult | Overview:
    """Compute a statistic by name, or every column's summary: what `shoal analyse` prints."""
    published = _open(source, confidence)
    stated: dict[str, Any] = {"estimand": _estimand(estimand), "confidence": confidence}
    if statistic is None:
        return _give_overview(published, **stated)
    arguments = _COUNTS.get(statistic)
    if arguments is None:
        guess = did_you_mean(statistic, _COUNTS)
        raise InputError(f"Expected one of {', '.join(_COUNTS)}, found '{statistic}'.{guess}")
    if len(of) != len(arguments):
        raise InputError(
            f"{statistic}: expected {' and '.join(arguments)}, found "
            f"{count_noun(len(of), 'argument')}."
        )
    more: dict[str, dict[str, Any]] = {"quantile": {"at": at}, "logit": {"category": category},
            "total": {"population_size": population_size}}  # fmt: skip
    function: Any = globals()[statistic]
    result: AnalysisResult = function(published, *of, **stated, **more.get(statistic, {}))
    return result


def _estimate_shares(
    published: PublishedTable, name: str, estimand: str, confidence: float
) -> AnalysisResult:
    categories = published.categories(name)
    if len(categories) > _MOST_LISTED or published.column(name).kind is Kind.DATE:
        raise InputError("more than 20 values; ask for a proportion of one.")
    parts = [
        proportion(published, name, category, estimand=estimand, confidence=confidence)
        for category in categories
    ]
    return replace(parts[0], terms=tuple(part.terms[0] for part in parts))


def _give_overview(published: PublishedTable, *, estimand: str, confidence: float) -> Overview:
    """Estimate the mean of each numeric column, and the shares of each column of few categories."""
    results, refused = [], {}
    for name in published.frame.columns:
        try:
            if published.numeric(name):
                result = mean(published, name, estimand=estimand, confidence=confidence)
            else:
                result = _estimate_shares(published, name, estimand, confidence)
            results.append(result)
        except InputError as error:
            refused[name] = str(error)
    return Overview(tuple(results), refused)


def _parse_formula(formula: str) -> tuple[str, list[str]]:
    left, _, right = formula.partition("~")
    names = [re.sub(r"^`(.*)`$", r"\1", term.strip()) for term in (left, *right.split("+"))]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"expected a model such as 'income ~ age + hours', each column once, found '{formula}'."
        )
    return names[0], names[1:]


def _estimand(stated: str) -> Estimand:
    if stated not in {*Estimand}:
        raise InputError(f"estimand: expected population or table, found '{stated}'.")
    return Estimand(stated)


def _open(source: Source, confidence: float) -> PublishedTable:
    if not 0 < confidence < 1:
        raise InputError(f"confidence: expected a share between 0 and 1, found {confidence}.")
    if isinstance(source, PublishedTable):
        return source
    return PublishedTable.of(source) if isinstance(source, Release) else PublishedTable.read(source)


def _numeric(published: PublishedTable, column: str) -> None:
    if not published.numeric(column):
        raise InputError(f"Column '{column}' is not numeric.")
    _refuse_few(published, column)


def _refuse_few(published: PublishedTable, *columns: str) -> None:
    """Refuse columns with too little released: one value does not show how people differ."""
    for column in columns:
        published.column(column)
        values = published.frame[column].count()
        if values < 2:
            raise InputError(
                f"Column '{column}' has {count_noun(values, 'value')} in the release; an interval "
                "needs two."
            )


def _check_category(published: PublishedTable, column: str, category: str) -> None:
    categories = _categorical(published, column)
    if category not in categories:
        guess = did_you_mean(category, categories)
        raise InputError(f"Column '{column}' has no category '{category}'.{guess}")


def _categorical(published: PublishedTable, column: str) -> list[str]:
    published.column(column)
    if published.numeric(column):
        raise InputError(f"Column '{column}' holds numbers; expected categories.")
    return published.categories(column)


def _result(
    published: PublishedTable,
    statistic: str,
    columns: Sequence[str],
    terms: Sequence[AnalysisTerm],
    estimand: Estimand,
    *,
    confidence: float,
    title: str | None = None,
) -> AnalysisResult:
    drawn = {published.treatment(name) for name in columns} == {Treatment.DRAWN}
    weighted = published.weights is not None and not drawn and estimand is Estimand.POPULATION
    how = _ROWS if not drawn else _BOOTSTRAP if statistic in {"ols", "logit"} else _MEASURED
    return AnalysisResult(
        statistic,
        title or ", ".join(columns),
        WEIGHTED if weighted else ESTIMANDS[estimand],
        tuple(terms),
        confidence,
        how,
        *caveats(published, statistic, columns, estimand),
    )

"""The result of an analysis: estimates with intervals, and what these account for."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf, log, sqrt
from typing import Any

import scipy

from shoal.analysis.published import PublishedTable, Treatment


class Estimand(StrEnum):
    """The estimand of an interval."""

    POPULATION = "population"
    TABLE = "table"


ESTIMANDS = {
    Estimand.POPULATION: "the population that the table was drawn from, by simple random sampling",
    Estimand.TABLE: "the confidential table itself",
}
WEIGHTED = "the population that the table was drawn from, by the released sampling weights"


@dataclass(frozen=True)
class AnalysisTerm:
    """One estimate of an analysis, of a cell or a coefficient.

    Attributes:
        name: the cell or coefficient.
        standard_error: of the estimate; 0 where the release determines it.
        low: lower end of the interval.
        high: its upper end.
    """

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float

    def text(self, confidence: float) -> str:
        """Write the estimate and its interval, to two digits of the standard error, or to six."""
        certain = not 0 < self.standard_error < inf
        places = 0 if certain else max(0, 1 - int(f"{self.standard_error:e}".split("e")[1]))
        shape = ",.6g" if certain else f",.{places}f"
        estimate, low, high = (f"{x:{shape}}" for x in (self.estimate, self.low, self.high))
        return f"{estimate}  {100 * confidence:.3g}% interval {low} to {high}"


@dataclass(frozen=True)
class AnalysisResult:
    """Estimates from a public folder, with intervals that account for the protection.

    Attributes:
        statistic: mean, total, proportion, quantile, crosstab, ols or logit.
        about: the analysed columns.
        estimand: what the intervals are about, in words.
        terms: one estimate, or one for each cell or coefficient.
        confidence: of each interval by itself.
        how: how they were computed.
        accounts_for: sources of error that the intervals include.
        does_not_account_for: sources of error that they leave out.
    """

    statistic: str
    about: str
    estimand: str
    terms: tuple[AnalysisTerm, ...]
    confidence: float
    how: str
    accounts_for: tuple[str, ...]
    does_not_account_for: tuple[str, ...]

    @property
    def estimate(self) -> float:
        """The estimate of the first term."""
        return self.terms[0].estimate

    @property
    def standard_error(self) -> float:
        """The standard error of the first term."""
        return self.terms[0].standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the first term."""
        return self.terms[0].low, self.terms[0].high

    def __getitem__(self, name: str) -> AnalysisTerm:
        return next(term for term in self.terms if term.name == name)

    def as_dict(self) -> Mapping[str, Any]:
        """Return the result as plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        width = max(len(term.name) for term in self.terms)
        lines = [f"{self.statistic} of {self.about}, for {self.estimand}"]
        lines += [f"  {term.name:<{width}}  {term.text(self.confidence)}" for term in self.terms]
        lines += [f"  how  {self.how}"]
        lines += [f"  accounts for  {text}" for text in self.accounts_for]
        lines += [f"  does not account for  {text}" for text in self.does_not_account_for]
        return "\n".join(lines)


@dataclass(frozen=True)
class Overview:
    """What each column supports, and the reasons for those that support nothing.

    Attributes:
        results: one per column that supports an interval.
        refused: reasons, by column.
    """

    results: tuple[AnalysisResult, ...]
    refused: dict[str, str]

    def __repr__(self) -> str:
        lines = []
        for result in self.results:
            for term in result.terms:
                name = term.name if term.name == result.about else f"{result.about} = {term.name}"
                lines.append(f"{result.statistic:<10}  {name}  {term.text(result.confidence)}")
        lines += [f"{'no interval':<10}  {name}: {text}" for name, text in self.refused.items()]
        if self.results:
            lines.append(f"For {self.results[0].estimand}.")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"results": [result.as_dict() for result in self.results], "refused": self.refused}


def term_of(
    name: str,
    estimate: float,
    variance: float,
    confidence: float,
    *,
    freedom: float | None = None,
    within: tuple[float, float] = (-inf, inf),
) -> AnalysisTerm:
    """Make a term with a normal interval, or Student's if the variance is roughly estimated.

    Both are cut at the limits that the parameter has; see `cut_term`.
    """
    error = sqrt(max(variance, 0.0))
    half = error * half_width(confidence, freedom)
    term = AnalysisTerm(name, estimate, error, estimate - half, estimate + half)
    return cut_term(term, confidence, within)


def cut_term(term: AnalysisTerm, confidence: float, within: tuple[float, float]) -> AnalysisTerm:
    """Clip an estimate and its interval to the parameter's range.

    If the estimate is d standard errors outside, the interval covers this share of the normal
    distribution around it, given that the parameter is inside: at least the plain interval, which
    may lie entirely outside.
    """
    estimate, error, low, high = term.estimate, term.standard_error, term.low, term.high
    for limit, side in zip(within, (1, -1), strict=True):
        beyond = side * (limit - estimate)
        if 0 < beyond < inf and error > 0:
            d = -beyond / error
            least = scipy.special.log_ndtr(d) + log(1 - confidence)
            end = limit + side * error * max(d - float(scipy.special.ndtri_exp(least)), 0.0)
            low, high = min(low, end), max(high, end)
    ends = (estimate, low, high)
    estimate, low, high = (float(min(max(end, within[0]), within[1])) for end in ends)
    return AnalysisTerm(term.name, estimate, error, low, high)


def sampling_of_share(share: float, n: float) -> float:
    """Compute the variance of a share over samples of n people; positive even if nobody has it.

    As if two more people had the category, and two had not (Agresti and Coull).

    References:
        Agresti, Coull, "Approximate is better than 'exact' for interval estimation of binomial
        proportions", American Statistician 52 (1998). doi:10.1080/00031305.1998.10480550
    """
    among = (n * min(max(share, 0.0), 1.0) + 2) / (n + 4)
    return among * (1 - among) / (n + 4)


def half_width(confidence: float, freedom: float | None = None) -> float:
    """Return half of an interval's length in standard errors."""
    share = (1 + confidence) / 2
    normal = scipy.special.ndtri(share)
    return float(normal if freedom is None else scipy.special.stdtrit(freedom, share))


_PLAIN = {Treatment.NONE, Treatment.GROUP_MEANS, Treatment.INTERVALS}
"""What is done without noise."""


def caveats(
    published: PublishedTable, statistic: str, columns: Sequence[str], estimand: Estimand
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List what the interval of a statistic accounts for, and what it does not."""
    treatments = {published.treatment(name) for name in columns}
    drawn = treatments == {Treatment.DRAWN}
    population = estimand is Estimand.POPULATION
    weighted = published.weights is not None and not drawn and population
    people = "rows" if published.several_rows else "people"
    means, intervals = Treatment.GROUP_MEANS in treatments, Treatment.INTERVALS in treatments
    grouped, noisy = means or intervals, bool(treatments - _PLAIN)
    regression = statistic in {"ols", "logit"}
    average = statistic in {"mean", "total"}
    steps = all(published.step(name) for name in columns if published.numeric(name))
    accounts = {
        f"the sampling of {people}, by the released weights": weighted,
        f"the simple random sampling of {people}": population and not weighted,
        "the noise of the release, by its published law": noisy,
        "where in a counted bin people are, by a sixth of its width": drawn
        and average
        and published.blocks(columns[0]) is None,
        "where in an interval people are on average, by a sixth of its width": intervals
        and population
        and average,
        "where in their intervals people are: the interval has bounds that hold for certain":
        intervals and not population,
    }  # fmt: skip
    leaves = {
        "strata and clusters of the sampling design": population,
        "rows of one person, which are more alike than others": population
        and published.several_rows,
        "the error of the population's size, which is taken from the weights": weighted
        and statistic == "total",
        "dependence inside counted groups that is not linear in the scores": drawn and regression,
        "where in a counted bin people are, beyond a density that is linear in it": drawn
        and statistic == "quantile",
        "where in their intervals people are, beyond the density that all intervals show":
        intervals and population,
        "the spread inside groups, beyond that of groups which tile the space": means
        and population,
        "a relation inside groups that is not a line": grouped and regression,
        "whole numbers, which people may have: the policy states no step": grouped
        and statistic == "quantile"
        and not steps,
        "weights that differ inside groups, whose means are unweighted": means and weighted,
        "what goes with the weight inside a class, whose rows share its mean": weighted
        and any(column.class_mean for column in published.policy.schema.columns),
        **_of_the_table(published, columns, grouped=grouped),
        "missing cells, which may have got the mean of their group": means,
        "cells that were missing, or outside the public bounds or categories, which got a public "
        "value inside": noisy and bool(published.manifest.privacy_losses),
        **_of_found(published, columns),
        **_of_missing(published, columns, statistic),
        "error in the confidential table, such as nonresponse": True,
    }  # fmt: skip
    first, second = (tuple(text for text, holds in s.items() if holds) for s in (accounts, leaves))
    return first, second


def _of_found(published: PublishedTable, columns: Sequence[str]) -> dict[str, bool]:
    """List the values that lie outside what was found with noise, and count as its ends."""
    found = {name: published.manifest.found.get(name, {}) for name in columns}
    return {
        f"values of {name} outside the range that was found with noise, about "
        f"{facts['outside']:.1%} of them, which count as its ends": True
        for name, facts in found.items()
        if facts.get("outside")
    }


def _of_the_table(
    published: PublishedTable, columns: Sequence[str], *, grouped: bool
) -> dict[str, bool]:
    """List the policy's earlier changes to the table."""
    required = {*published.manifest.policy.get("require", ())}
    stated = [published.column(name) for name in columns]
    return {
        "groups that were steered by confidential values": grouped
        and bool({"l-diversity", "t-closeness"} & required),
        "the rows that were left out": bool(published.manifest.suppressed)
        or (published.table_rows is None and published.several_rows),
        "values beyond those at which the column was cut off": any(
            column.top_code is not None or column.bottom_code is not None for column in stated
        ),
        "records that broke a rule, which were moved to the nearest that keeps all": any(
            published.may_be_repaired(name) for name in columns
        ),
    }


def _of_missing(
    published: PublishedTable, columns: Sequence[str], statistic: str
) -> dict[str, bool]:
    gone = any(published.frame[name].null_count() for name in columns)
    return {
        "missing cells, which count as the mean of the others": gone and statistic == "total",
        "rows in which a cell is missing, which are left out": gone and statistic != "total",
    }

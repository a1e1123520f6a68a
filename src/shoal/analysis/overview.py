"""Every column of a release at a glance: its mean, or the shares of its categories."""

from dataclasses import dataclass, replace
from typing import Any

from shoal import analysis
from shoal.analysis.published import PublishedTable
from shoal.analysis.result import AnalysisResult
from shoal.core import Kind
from shoal.errors import InputError

_MOST = 20
"""Categories of a column that are listed."""


@dataclass(frozen=True)
class Overview:
    """What each column supports, and why others do not.

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


def _shares(
    published: PublishedTable, name: str, estimand: str, confidence: float
) -> AnalysisResult:
    categories = published.categories(name)
    if len(categories) > _MOST or published.column(name).kind is Kind.DATE:
        raise InputError("more than 20 values; ask for a proportion of one.")
    parts = [
        analysis.proportion(published, name, category, estimand=estimand, confidence=confidence)
        for category in categories
    ]
    return replace(parts[0], terms=tuple(part.terms[0] for part in parts))


def overview(published: PublishedTable, *, estimand: str, confidence: float) -> Overview:
    """The mean of each numeric column, and the shares of each column with few categories."""
    results, refused = [], {}
    for name in published.frame.columns:
        try:
            if published.numeric(name):
                result = analysis.mean(published, name, estimand=estimand, confidence=confidence)
            else:
                result = _shares(published, name, estimand, confidence)
            results.append(result)
        except InputError as error:
            refused[name] = str(error)
    return Overview(tuple(results), refused)

"""The result of a comparison: candidates on two axes, baselines, and one recommendation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import escape
from importlib import import_module
from typing import Any

import polars as pl

from shoal.core import Estimate
from shoal.errors import InputError
from shoal.evaluation.comparison.frontier import Point, Recommendation, Standing
from shoal.evaluation.results import CONFIDENTIAL


class Axes(StrEnum):
    """The pair of axes on which candidates are placed.

    `advantage`: what the worst attack gains over people who are not in the table, and counts over
    three columns. `alpha-beta`: the metrics of cormode2013.
    """

    ADVANTAGE = "advantage"
    ALPHA_BETA = "alpha-beta"

    @classmethod
    def of(cls, text: str) -> "Axes":
        """Parse the name of a pair of axes."""
        if text not in set(cls):
            raise InputError(f"axes: expected {' or '.join(cls)}, found '{text}'.")
        return cls(text)

    @property
    def words(self) -> dict[str, str]:
        """A sentence on each axis."""
        if self is Axes.ALPHA_BETA:
            return {"risk": BETA, "error": ERROR.replace("the columns", "all columns")}
        return {"risk": RISK, "error": ERROR}


RISK = (
    "Risk of linkage and inference: how much more the worst attack succeeds on people in the table "
    "than on people not in it, as a share of the most that it could (naive Bayes, linkability, "
    "inference of each confidential column). Singling out stands beside it: one exact value that "
    "is released as it is singles a person out, whatever the groups are."
)
BETA = (
    "Risk: how much more often naive Bayes, trained on the release, guesses the confidential "
    "value of people in the table correctly than always guessing the most frequent value does "
    "(beta)."
)
ERROR = (
    "Error: the median relative error of COUNT queries, each over half of the range of the columns."
)


NO_PLACE = "No attack or no COUNT query could be run on this release."
"""Why a candidate that was released is on no axis."""


@dataclass(frozen=True)
class Row:
    """One candidate, or a baseline.

    Attributes:
        label: method and parameters in one line.
        parameters: as `[protect]` would state them; plain values.
        require: as `[require]` would state it; plain values.
        point: risk and error; None if the candidate failed or cannot be placed.
        attack: which attack the risk is of.
        standing: among the candidates that meet the policy; None for baselines and failures.
        proved: it carries a proved claim for the quasi-identifiers together.
        unmet: why it does not keep what the policy requires, or none.
        failed: why it could not be released, or none.
        like: how large a sample would be as wrong.
        claims: plain values, as in a manifest.
        checks: plain values, of the first repeat.
        figures: (part, measure, subject, better) to the mean over repeats.
        pictures: counts of each column in both tables, of the first repeat; see `evaluate`.
        seconds: of one release and its metrics, on average.
        repeats: how often it was released.
    """

    label: str
    method: str
    parameters: Mapping[str, Any]
    require: Mapping[str, Any] = field(default_factory=dict)
    point: Point | None = None
    attack: str | None = None
    standing: Standing | None = None
    proved: bool = False
    unmet: str | None = None
    failed: str | None = None
    like: str | None = None
    claims: tuple[Mapping[str, Any], ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    figures: Mapping[tuple[str, str, str, str], Estimate] | None = None
    pictures: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    repeats: int = 0

    @property
    def singling_out(self) -> float | None:
        """The rate at which predicates that single out a released row single out a person."""
        rates = [
            value.value
            for (_, metric, _, _), value in (self.figures or {}).items()
            if metric == "singling out"
        ]
        return max(rates, default=None)

    def facts(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        point = self.point
        return {
            "label": self.label,
            "method": self.method,
            "parameters": dict(self.parameters),
            "require": dict(self.require),
            "risk": None if point is None else _ends(point.risk),
            "error": None if point is None else _ends(point.error),
            "distance": None if point is None else point.distance,
            "attack": self.attack,
            "singling_out": self.singling_out,
            "standing": None if self.standing is None else self.standing.value,
            "proved": self.proved,
            "unmet": self.unmet,
            "failed": self.failed,
            "like": self.like,
            "claims": list(self.claims),
            "checks": list(self.checks),
            "pictures": list(self.pictures),
            "seconds": self.seconds,
            "repeats": self.repeats,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of a comparison: confidential, as the table is.

    Attributes:
        rows: the candidates, in the order of the grid; failures are listed too.
        baselines: the raw table, samples of it, and publishing nothing.
        choice: what is recommended, or cannot be told apart, by the places of the rows.
        recommendation: the same as one plain sentence with its reason.
        costs: what the inspection costs, as it was said before the run.
        settings: rows, repeats, limit of the risk, and what was computed.
    """

    rows: tuple[Row, ...]
    baselines: tuple[Row, ...]
    choice: Recommendation
    recommendation: str
    costs: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def recommended(self) -> Row | None:
        """The candidate that is recommended, if one is."""
        return None if self.choice.index is None else self.rows[self.choice.index]

    def facts(self) -> dict[str, Any]:
        """Return the comparison as plain JSON values."""
        return {
            "confidential": CONFIDENTIAL,
            "recommendation": self.recommendation,
            "recommended": None if self.recommended is None else self.recommended.label,
            "ties": [self.rows[place].label for place in self.choice.ties],
            "costs": list(self.costs),
            "settings": dict(self.settings),
            "axes": Axes.of(self.settings["axes"]).words,
            "candidates": [row.facts() for row in self.rows],
            "baselines": [row.facts() for row in self.baselines],
        }

    def to_json(self) -> str:
        """Return the comparison as JSON text."""
        return json.dumps(self.facts(), indent=2, ensure_ascii=False)

    def to_frame(self) -> pl.DataFrame:
        """Return a table with one row for each candidate and estimate, check or claim."""
        rows = [line for row in (*self.rows, *self.baselines) for line in _long(row)]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def plot(self) -> Any:
        """Draw the frontier, risk against error of counts: confidential.

        A `shoal.report.pictures.Drawing`, which a notebook shows and `save` writes as SVG.
        """
        return import_module("shoal.report.pictures").comparison(self.facts())

    def __str__(self) -> str:
        lines = [CONFIDENTIAL, *self.costs, "", self.recommendation, ""]
        width = max((len(row.label) for row in (*self.rows, *self.baselines)), default=0)
        shown = sorted(
            (row for row in self.rows if row.point is not None),
            key=lambda row: (
                list(Standing).index(row.standing or Standing.BEATEN),
                row.point.error.value if row.point else 0.0,
            ),
        )
        head = f"{'linkage, inference':21}  {'error of counts':21}  distance  singling out"
        lines.append(f"{'':{width}}  {head}")
        for row in (*shown, *self.baselines):
            if row.point is None:
                continue
            words = [row.standing.value if row.standing else "baseline", row.like or ""]
            words.append("" if row.standing is None or row.proved else "no proved claim")
            notes = ", ".join(word for word in words if word)
            single = "" if row.singling_out is None else f"{row.singling_out:.0%}"
            lines.append(
                f"{row.label:{width}}  {row.point.risk}  {row.point.error}  "
                f"{row.point.distance:<8.3f}  {single:12}  {notes}"
            )
        lost: dict[str, list[str]] = {}
        for row in self.rows:
            if row.point is None:
                lost.setdefault(row.failed or NO_PLACE, []).append(row.label)
        for reason, labels in lost.items():
            lines += [f"failed: {reason}", f"  {', '.join(labels)}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


_COLUMNS = {
    "label": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "truth": pl.String,
    "metric": pl.String,
    "subject": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "verdict": pl.String,
    "text": pl.String,
}


def _long(row: Row) -> list[dict[str, Any]]:
    head = {
        "label": row.label,
        "method": row.method,
        "parameters": json.dumps(row.parameters, ensure_ascii=False),
    }
    lines: list[dict[str, Any]] = []
    if row.failed:
        lines.append({"truth": "failure", "metric": "failure", "text": row.failed})
    if row.point is not None:
        standing = None if row.standing is None else row.standing.value
        for name, value in (("risk", row.point.risk), ("error", row.point.error)):
            lines.append({"truth": "estimate", "metric": name, **_ends(value),
                          "subject": row.attack if name == "risk" else "COUNT queries",
                          "verdict": standing})  # fmt: skip
    for (part, measure, subject, better), value in (row.figures or {}).items():
        lines.append({"truth": "estimate", "metric": measure, "subject": subject, **_ends(value),
                      "text": f"{part}, {better} is better"})  # fmt: skip
    lines += [
        {"truth": "claim", "metric": claim["guarantee"]["name"], "verdict": claim["status"],
         "text": claim["basis"]}
        for claim in row.claims
    ]  # fmt: skip
    for check in row.checks:
        achieved = check["achieved"]
        lines.append({"truth": "check", "metric": check["guarantee"]["name"],
                      "value": float(achieved) if isinstance(achieved, int | float) else None,
                      "verdict": "holds" if check["holds"] else "fails"})  # fmt: skip
    return [{**dict.fromkeys(_COLUMNS), **head, **line} for line in lines]


def _ends(value: Estimate) -> dict[str, float]:
    return {"value": value.value, "low": value.low, "high": value.high}


def in_words(row: Mapping[str, Any], axes: str = Axes.ADVANTAGE) -> str:
    """Describe a candidate's risk and error in a sentence; `row` is from `Row.facts`."""
    if row["risk"] is None or row["error"] is None:
        return row["failed"] or NO_PLACE
    risk = row["risk"]["value"]
    gain = f"The worst attack, {row['attack']}, gains {risk:.1%} of what it could gain at most"
    if axes == Axes.ALPHA_BETA:
        gain = (
            f"Naive Bayes is right {1 + risk:.2f} times as often as guessing the most frequent "
            "value"
        )
    return (
        f"{gain}; half of the counts are off by more than {row['error']['value']:.1%} "
        f"({row['like']})."
    )


def place_row(row: Row, standing: Standing | None, like: str | None) -> Row:
    """Return the row with its standing and its comparable sample size."""
    return replace(row, standing=standing, like=like)

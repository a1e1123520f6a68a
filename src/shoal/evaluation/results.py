"""The result of an evaluation: figures with intervals, and how each table was read."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from html import escape
from importlib import import_module
from math import isfinite
from typing import Any, TypeVar

import numpy as np
import polars as pl

from shoal.core import Estimate, Progress
from shoal.errors import InputError

CONFIDENTIAL = "CONFIDENTIAL: computed from the original table; not for publication"


class Part(StrEnum):
    """The topic of a figure."""

    UTILITY = "utility"
    RISK = "risk"


class Better(StrEnum):
    """Which direction of a figure is better."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True)
class Figure:
    """A figure of an evaluation.

    Attributes:
        metric: its name, a heading of the documentation.
        subject: a column, some columns, a group of people, or the table.
        value: an estimate if something was sampled, and a plain number if nothing was; None if
            these tables give no finite number, and then the sentence says why.
        better: which direction is welcome to the steward.
        baseline: what guessing, or the original, gives without the release.
        control: the same attack on people who are not in the table.
        residual: the advantage over those people, of what was left to gain.
        sentence: the figure in plain words.
        reason: why it may have no finite value, as a clause; used if it has none.
    """

    part: Part
    metric: str
    subject: str
    value: float | Estimate | None
    better: Better
    sentence: str
    baseline: float | Estimate | None = None
    control: float | Estimate | None = None
    residual: Estimate | None = None
    reason: str = ""

    @property
    def point(self) -> float:
        """The point value, without interval; NaN if there is none."""
        value = self.value.value if isinstance(self.value, Estimate) else self.value
        return float("nan") if value is None else value

    def settle(self) -> "Figure":
        """Replace the value of a figure that is not finite by a reason."""
        baseline, control = (
            value if _is_finite(value) else None for value in (self.baseline, self.control)
        )
        residual = self.residual if _is_finite(self.residual) else None
        if _is_finite(self.value):
            return replace(self, baseline=baseline, control=control, residual=residual)
        why = self.reason or "these tables give no finite number"
        text = f"The {self.metric} of {self.subject} cannot be computed: {why}."
        return replace(self, value=None, baseline=None, control=None, residual=None, sentence=text)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a release preserves and what it reveals: confidential, as the original is.

    Attributes:
        figures: worst first within a metric.
        skipped: what was not computed, and why.
        how: how the released table was read, and what was sampled.
        findings: what a reader should know before the figures.
        pictures: counts of both tables for pictures, see `evaluate.count_before_and_after`;
            nothing where marginals were not compared.
    """

    figures: tuple[Figure, ...]
    skipped: tuple[str, ...]
    how: tuple[str, ...]
    findings: tuple[str, ...]
    rows: tuple[int, int]
    pictures: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def of(self, measure: str) -> tuple[Figure, ...]:
        """List the figures of one metric."""
        return tuple(figure for figure in self.figures if figure.metric == measure)

    def to_frame(self) -> pl.DataFrame:
        """Return all figures as a table, one row each."""
        rows = [
            {
                "part": figure.part.value,
                "metric": figure.metric,
                "subject": figure.subject,
                **_ends("", figure.value),
                **_ends("baseline", figure.baseline),
                **_ends("control", figure.control),
                **_ends("residual", figure.residual),
                "better": figure.better.value,
                "sentence": figure.sentence,
            }
            for figure in self.figures
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def facts(self) -> dict[str, Any]:
        """Return the evaluation as plain JSON values."""
        return {
            "confidential": CONFIDENTIAL,
            "rows": {"original": self.rows[0], "released": self.rows[1]},
            "findings": list(self.findings),
            "how": list(self.how),
            "figures": self.to_frame().to_dicts() if self.figures else [],
            "skipped": list(self.skipped),
        }

    def to_json(self) -> str:
        """Return the evaluation as JSON text."""
        return json.dumps(self.facts(), indent=2, ensure_ascii=False)

    def plot(self) -> Any:
        """Draw each column, the associations and the pairs that matter, before and after.

        A `shoal.report.pictures.Drawing`, which a notebook shows. It is confidential.
        """
        return import_module("shoal.report.pictures").evaluation(self.pictures)

    def __str__(self) -> str:
        lines = [CONFIDENTIAL, f"{self.rows[0]:,} original rows, {self.rows[1]:,} released"]
        lines += [f"  finding  {text}" for text in self.findings]
        for part in Part:
            lines += _table(part, [figure for figure in self.figures if figure.part is part])
        lines += [f"  not measured  {text}" for text in self.skipped]
        lines += [f"  read  {text}" for text in self.how]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


COLUMN_LOSSES = ("SSE / SST", "share changed", "rank-matched SSE / SST", "total variation")
"""Metrics that stand for the loss of single columns."""
LOSS_WORDS = (
    "0 means that nothing was lost; 1 means as much as if every value were replaced by the same "
    "one, or changed. For each column the worst of these metrics is shown."
)
"""What the figures of `COLUMN_LOSSES` mean, for people."""

_MOST_LINES = 8
"""Figures of one metric that the terminal shows; the rest is in the table."""


def _table(part: Part, figures: list[Figure]) -> list[str]:
    if not figures:
        return []
    lines = [f"{part.value}"]
    names = list(dict.fromkeys(figure.metric for figure in figures))
    for name in names:
        selected = [figure for figure in figures if figure.metric == name]
        lines += [f"  {name}: {figure.sentence}" for figure in selected[:_MOST_LINES]]
        if len(selected) > _MOST_LINES:
            lines.append(
                f"  {name}: {len(selected) - _MOST_LINES} more that are less severe; see --json"
            )
    return lines


def _ends(prefix: str, value: float | Estimate | None) -> dict[str, float | None]:
    name = prefix or "value"
    low, high = (f"{prefix}_low", f"{prefix}_high") if prefix else ("low", "high")
    if isinstance(value, Estimate):
        return {name: value.value, low: value.low, high: value.high}
    return {name: None if value is None else float(value), low: None, high: None}


def _is_finite(value: float | Estimate | None) -> bool:
    """Whether a value and both ends of its interval are finite numbers."""
    if value is None:
        return False
    ends = (value.value, value.low, value.high) if isinstance(value, Estimate) else (value,)
    return all(map(isfinite, ends))


T = TypeVar("T")


def take(
    measures: Mapping[str, Callable[[T], Iterator[Figure]]],
    task: Callable[[np.random.Generator], T],
    *,
    which: Collection[str],
    rng: np.random.Generator,
    jobs: int,
    progress: Progress,
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Compute the figures of the named metrics, and explain which could not be computed.

    Each metric has separate random draws, so it does not depend on the other metrics or on
    parallelism. No figure is infinite: without a finite value it has none, and says why.
    """
    figures: list[Figure] = []
    skipped: list[str] = []
    spawned = zip(rng.spawn(len(measures)), measures.items(), strict=True)
    wanted = [
        (number, name, partial(_settle_figures, measure, task, generator))
        for number, (generator, (name, measure)) in enumerate(spawned)
        if name in which
    ]
    pool = ThreadPoolExecutor(jobs) if jobs > 1 and len(wanted) > 1 else None
    try:
        waiting = [(number, name, pool.submit(work).result if pool else work)
                   for number, name, work in wanted]  # fmt: skip
        for number, name, result in waiting:
            progress(name, number, len(measures))
            try:
                figures += result()
            except InputError as reason:
                skipped.append(f"{name}: {reason}")
    finally:
        if pool:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait
    return tuple(figures), tuple(skipped)


def _settle_figures(
    measure: Callable[[T], Iterator[Figure]],
    task: Callable[[np.random.Generator], T],
    rng: np.random.Generator,
) -> list[Figure]:
    return [figure.settle() for figure in measure(task(rng))]

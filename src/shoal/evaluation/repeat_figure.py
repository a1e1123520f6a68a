"""Repeat a figure of one of the five papers on another table.

Every point is a release with the noise of a real one, never published and never booked; rows keep
their order, because the papers compare row by row. What the papers take from the data, bounds of
[0, 1.5 max] and the categories, is taken from the data here too if there is no policy. So a point
is an experiment, and says nothing about what the method promises: `shoal methods NAME` does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal import policy as policies
from shoal.core import Kind, Policy, Progress, Role, silent
from shoal.core._arrays import Floats
from shoal.core.serialise import plain
from shoal.errors import InputError, ShoalError, count_noun
from shoal.evaluation.comparison.compare import compare
from shoal.io import text_files
from shoal.io.validate import check_names
from shoal.methods.papers import Paper, PaperFigure, find_paper
from shoal.metrics.information_loss import il1s, sse, sse_over_sst
from shoal.pipeline import booking
from shoal.pipeline.protect_table import protect

MOST_ROWS = 20_000
"""The most rows of a table that are used, drawn at random beyond."""
CLASSES = 10
"""Into so many classes numbers are put that an attack is to guess, as cormode2013 has salaries."""


@dataclass(frozen=True)
class FigurePoint:
    """A point of a curve.

    Attributes:
        epsilon: of the release, as text; empty where it has none.
        x: k, or where cormode2013 is repeated the increase in accuracy; None of a release without
            k, which is a level for every k.
        y: the mean loss over the runs.
        spread: standard deviation over the runs.
        settings: what `[protect]` states.
    """

    curve: str
    epsilon: str
    x: float | None
    y: float
    spread: float
    settings: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RepeatedFigure:
    """A figure of a paper, repeated: confidential, as the table is.

    Attributes:
        columns: the columns that are protected.
        x, y: what the axes show.
        points: curve by curve.
        left_out: points that could not be made, and why.
        incomplete: rows with a missing cell, which are left out.
        read_off: whether bounds and categories were read off the table.
        classes: into how many the numbers of the confidential column were put; 0 if they were not.
    """

    paper: Paper
    columns: tuple[str, ...]
    rows: int
    runs: int
    x: str
    y: str
    points: tuple[FigurePoint, ...]
    left_out: tuple[str, ...]
    incomplete: int = 0
    read_off: bool = False
    classes: int = 0

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each point."""
        return pl.DataFrame(
            [(p.curve, p.epsilon, p.x, p.y, p.spread) for p in self.points],
            schema={
                "curve": pl.String,
                "epsilon": pl.String,
                self.x: pl.Float64,
                self.y: pl.Float64,
                "standard deviation": pl.Float64,
            },
            orient="row",
        )

    def draw(self) -> Any:
        """Draw the curves: a `shoal.report.pictures.Drawing`, which a notebook shows."""
        return import_module("shoal.report.curves").draw_curves(self.facts())

    def facts(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "paper": self.paper.key,
            "figure": self.paper.figure.what,
            "columns": list(self.columns),
            "rows": self.rows,
            "runs": self.runs,
            "x": self.x,
            "y": self.y,
            "points": [plain(point) for point in self.points],
            "left_out": list(self.left_out),
            "incomplete": self.incomplete,
            "read_off": self.read_off,
            "classes": self.classes,
        }

    def __str__(self) -> str:
        about = f"{self.paper.figure.what} of {self.paper.short}, on {', '.join(self.columns)}"
        lines = [f"{about}; {self.rows:,} rows, the mean of {count_noun(self.runs, 'run')}"]
        if self.incomplete:
            lines.append(f"  {count_noun(self.incomplete, 'row')} with a missing cell left out")
        if self.read_off:
            lines.append("  Bounds and categories were read off the table, as in the papers.")
        if self.classes:
            lines.append(
                f"  '{self.columns[-1]}' holds numbers, and the attack guesses classes: they are "
                f"{self.classes} of about as many rows."
            )
        lines.append("  Confidential: all of it is computed from the table.")
        names = [f"{p.curve}{p.epsilon and f', epsilon {p.epsilon}'}" for p in self.points]
        if self.x != "k":
            sizes = [p.settings.get("k") for p in self.points]
            names = [n if k is None else f"{n}, k = {k}" for n, k in zip(names, sizes, strict=True)]
        width = max(map(len, names), default=0)
        if self.x != "k":
            lines.append(f"  {'':<{width}}  {self.x:>20}  {self.y:>20}")
            lines += [
                f"  {name:<{width}}  {p.x:>20.3g}  {p.y:>20.3g}"
                for name, p in zip(names, self.points, strict=True)
            ]
            return "\n".join([*lines, *(f"  left out: {why}" for why in self.left_out)])
        at = sorted({p.x for p in self.points if p.x is not None})
        losses = {(name, p.x): p.y for name, p in zip(names, self.points, strict=True)}
        lines.append(f"  {f'{self.y} at k =':<{width}}" + "".join(f"{x:>10,.0f}" for x in at))
        for name in dict.fromkeys(names):
            y = [losses.get((name, x), losses.get((name, None))) for x in at]
            lines.append(f"  {name:<{width}}" + "".join(f"{_digits(v):>10}" for v in y))
        return "\n".join([*lines, *(f"  left out: {why}" for why in self.left_out)])


def _digits(value: float | None) -> str:
    """Write a loss with three digits."""
    return "" if value is None else f"{value:.3g}"


def repeat_figure(
    key: str,
    data: Any,
    policy: policies.PolicySource | None = None,
    *,
    confidential: str | None = None,
    runs: int = 3,
    seed: int = 0,
    note: str = "",
    tell: Callable[[str], None] = lambda _sentence: None,
    progress: Progress = silent,
) -> RepeatedFigure:
    """Repeat a paper's figure on a table. This inspects the table.

    Args:
        key: of the paper, such as `soriacomas2017`.
        data: the confidential table: a path, or pandas, Polars or PyArrow.
        policy: what columns are; by default every column is a quasi-identifier but `confidential`,
            with bounds and categories of the table.
        confidential: the confidential column, for papers that have one; by default the policy's
            first.
        runs: releases of each point with noise.
        seed: of the sample of a large table, and of who is held out in cormode2013.
        note: public words for the budget file, where the policy names one.
        tell: called with sentences on what inspecting the table costs.
        progress: called with the time left and how much is done.
    """
    paper = find_paper(key)
    text_files.check_options(repeats=runs, seed=seed)
    stated = None if policy is None else policies.load(policy)
    frame = io.take(data, policy=stated).frame
    if stated is None:
        frame = frame.with_columns(map(_read_numbers, frame.get_columns()))
    columns = _columns(frame, stated, paper.figure, confidential)
    if stated is not None:
        check_names(frame, stated.schema)
        for sentence in booking.record_comparison(stated, sample=False, note=note):
            tell(sentence)
    given = frame.height
    frame = frame.select(list(columns)).drop_nulls()
    incomplete = given - frame.height
    if frame.height > MOST_ROWS:
        kept = np.random.default_rng(seed).permutation(frame.height)[:MOST_ROWS]
        frame = frame[np.sort(kept)]
    classes = 0
    if paper.figure.loss == "COUNT":
        guessed = list(columns)[-1]
        if columns[guessed]["kind"] == Kind.NUMERIC.value:
            frame = frame.with_columns(_in_classes(frame[guessed]))
            names = sorted(frame[guessed].unique())
            classes = len(names)
            columns[guessed] = {"role": "confidential", "kind": "ordinal", "categories": names}
        made = _compare_attacks(paper, frame, columns, runs=runs, seed=seed, progress=progress)
    else:
        made = _compare_losses(paper, frame, columns, runs=runs, progress=progress)
    return replace(made, incomplete=incomplete, read_off=stated is None, classes=classes)


def _columns(
    frame: pl.DataFrame, policy: Policy | None, figure: PaperFigure, confidential: str | None
) -> dict[str, dict[str, Any]]:
    """State the columns of the figure, as `[columns]` does.

    The figures of losses are about numbers: other columns are left out.
    """
    if policy is None:
        roles = dict.fromkeys(frame.columns, Role.QUASI_IDENTIFIER)
    else:
        used = (Role.QUASI_IDENTIFIER, Role.CONFIDENTIAL)
        roles = {name: role for role in used for name in policy.schema.with_role(role)}
        stated = policy.document["columns"]
        confidential = confidential or next(iter(policy.schema.with_role(Role.CONFIDENTIAL)), None)
    if figure.confidential:
        if confidential not in roles:
            known = ", ".join(roles)
            raise InputError(
                f"{figure.what} needs a confidential column: state --confidential NAME, one of "
                f"{known}."
            )
        roles = {name: Role.QUASI_IDENTIFIER for name in roles if name != confidential} | {
            confidential: Role.CONFIDENTIAL
        }
    columns: dict[str, dict[str, Any]] = {}
    for name, role in roles.items():
        if policy is None:
            facts = _facts(frame[name])
        else:
            facts = {k: v for k, v in stated[name].items() if k != "missing_as"}
            facts["kind"] = str(policy.schema[name].kind)
        if facts["kind"] == Kind.NUMERIC.value or figure.loss == "COUNT":
            columns[name] = {**facts, "role": role.value, "keep_missing": False}
    if len(columns) < 1 + figure.confidential:
        raise InputError("Expected a column of numbers to protect, found none.")
    return columns


def _read_numbers(column: pl.Series) -> pl.Series:
    """Read a column as numbers, if all its texts are."""
    if column.dtype != pl.String:
        return column
    numbers = column.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() else column


def _facts(column: pl.Series) -> dict[str, Any]:
    """State kind and domain of a column, as the papers take them from the data."""
    present = column.drop_nulls()
    if column.dtype.is_numeric() and present.len():
        least, most = float(present.min()), float(present.max())  # type: ignore[arg-type]
        low, high = min(1.5 * least, 0.0), max(1.5 * most, 0.0)
        return {"kind": "numeric", "bounds": [low, high if high > low else low + 1]}
    return {"kind": "nominal", "categories": sorted(present.cast(pl.String).unique())}


def _in_classes(column: pl.Series) -> pl.Series:
    """Put numbers into classes of about as many rows, named by their place: a salary class."""
    values = column.cast(pl.Float64).to_numpy()
    cuts = np.unique(np.quantile(values, np.arange(1, CLASSES) / CLASSES))
    places = np.searchsorted(cuts, values)
    return pl.Series(column.name, [f"class {place + 1:02d}" for place in places])


def _combinations(curve: Mapping[str, Any], rows: int) -> Iterator[dict[str, Any]]:
    """List what `[protect]` states for the points of a curve; no k has less than two groups."""
    values = [value if isinstance(value, list) else [value] for value in curve.values()]
    for chosen in product(*values):
        stated = dict(zip(curve, chosen, strict=True))
        if stated.get("k", 1) * 2 <= rows:
            exact = {k: Decimal(v) for k, v in stated.items() if k in {"epsilon", "t"}}
            yield {**stated, **exact}


def _compare_losses(
    paper: Paper,
    frame: pl.DataFrame,
    columns: Mapping[str, Mapping[str, Any]],
    *,
    runs: int,
    progress: Progress,
) -> RepeatedFigure:
    figure = paper.figure
    protected = [n for n, spec in columns.items() if spec["role"] == Role.QUASI_IDENTIFIER.value]
    X = frame.select(protected).to_numpy().astype(np.float64)
    loss = _LOSSES[figure.loss]
    asked = [
        (label, stated)
        for label, curve in figure.curves.items()
        for stated in _combinations(curve, frame.height)
    ]
    points, left_out = [], []
    for place, (label, stated) in enumerate(asked):
        progress(f"{label}", place, len(asked))
        policy = {"version": 1, "columns": columns, "protect": stated}
        times = runs if "epsilon" in stated else 1
        try:
            losses = [
                loss(X, protect(frame, policy, keep_order=True).data[protected].to_numpy())
                for _ in range(times)
            ]
        except ShoalError as error:
            left_out.append(f"{label}, {_write(stated)}: {error}")
            continue
        points.append(
            FigurePoint(
                label,
                str(stated.get("epsilon", "")),
                stated.get("k"),
                float(np.mean(losses)),
                float(np.std(losses, ddof=1)) if times > 1 else 0.0,
                stated,
            )
        )
    return RepeatedFigure(
        paper, tuple(protected), frame.height, runs, "k", figure.loss, tuple(points),
        tuple(left_out),
    )  # fmt: skip


def _compare_attacks(
    paper: Paper,
    frame: pl.DataFrame,
    columns: Mapping[str, Mapping[str, Any]],
    *,
    runs: int,
    seed: int,
    progress: Progress,
) -> RepeatedFigure:
    """Place releases by what naive Bayes learns and what counts lose."""
    curves = paper.figure.curves
    asked = [
        (label, stated) for label in curves for stated in _combinations(curves[label], frame.height)
    ]
    first = asked[0][1]
    policy = {"version": 1, "columns": columns, "protect": first}
    grid = {
        "candidate": [
            {key: [value] if isinstance(value, list) else value for key, value in stated.items()}
            for _, stated in asked
        ]
    }
    comparison = compare(
        frame,
        policy,
        candidates=grid,
        axes="alpha-beta",
        repeats=runs,
        seed=seed,
        progress=progress,
    )
    points, left_out = [], []
    for (label, stated), row in zip(asked, comparison.rows, strict=True):
        if row.point is None:
            why = row.failed or "the attack, or the counts, cannot be measured on these columns"
            left_out.append(f"{label}, {_write(stated)}: {why}")
            continue
        risk, error = row.point.risk, row.point.error
        points.append(
            FigurePoint(
                label,
                str(stated.get("epsilon", "")),
                risk.value,
                error.value,
                (error.high - error.low) / 4,
                stated,
            )
        )
    return RepeatedFigure(
        paper, tuple(columns), frame.height, runs, "increase in accuracy", "error of counts",
        tuple(points), tuple(left_out),
    )  # fmt: skip


def _write(stated: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in stated.items() if key != "method")


def _mean_share(X: Floats, Y: Floats) -> float:
    return float(np.mean([sse_over_sst(X[:, j], Y[:, j]) for j in range(X.shape[1])]))


_LOSSES: Mapping[str, Callable[[Floats, Floats], float]] = {
    "SSE": sse,
    "IL1s": il1s,
    "SSE / SST": _mean_share,
}

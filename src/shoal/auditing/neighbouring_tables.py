"""Pairs of neighbouring tables for audits.

They are worst cases built in code, the best change of one record of a given table, or the steward's
own two tables. Pairs built here lie in the unit box and are mapped to the columns of the policy.
The audit runs the pair whose exact answers, without noise, are furthest apart in units of the noise
that they would get.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import scipy

from shoal import core
from shoal.auditing.runs import ArrayRuns, columns_at_stake
from shoal.core import Column, Kind, Progress, ReleaseForm, Role, Schema, silent
from shoal.core._arrays import Bools, Floats, Ints
from shoal.errors import InputError
from shoal.io.clamp import clamp
from shoal.methods import REGISTRY
from shoal.pipeline.planning import Plan

STRUCTURE = 1000.0
"""What a difference in who shares a row counts for, in units of epsilon: no noise hides it."""
_MATCHED = 200


@dataclass(frozen=True, eq=False)
class NeighbouringTables:
    """Two tables that differ in one record, and its position.

    Attributes:
        row: index of the record that differs; for add-remove neighbours, of
            the one that the second table lacks.
    """

    name: str
    before: pl.DataFrame
    after: pl.DataFrame
    row: int


def list_worst_cases(planned: Plan) -> list[NeighbouringTables]:
    """Worst cases for a plan, the method's own counterexample first."""
    k = _group_size(planned)
    counterexample = planned.method.promises.counterexample
    known = [make for m in REGISTRY.values() if (make := m.promises.counterexample) is not None]
    boxes: dict[Callable[..., Any], tuple[str, Floats, Floats]] = {}
    for build in ([counterexample] if counterexample else []) + known:
        box = build(k)
        boxes.setdefault(build, (box.event, box.before, box.after))
    extremes = [_extreme(k), _zig_zag(k)]
    made = []
    for name, before, after in (*boxes.values(), *extremes):
        pair = _carry_over(planned, name, before, after) if len(before) >= max(k, 2) else None
        if pair is not None:
            made.append(pair)
    return made


def _group_size(planned: Plan) -> int:
    """Return the k of the pairs: the policy's; small tables for a method without groups."""
    if "k" not in type(planned.setting.parameters).model_fields:
        return 2
    k: int | None = planned.setting.parameters.k
    return k or 40


def adds(planned: Plan) -> bool:
    """Whether neighbouring tables differ by one added record."""
    neighbours = getattr(planned.setting.parameters, "neighbours", None)
    return neighbours is core.Neighbours.ADD_REMOVE


def check_given(planned: Plan, before: pl.DataFrame, after: pl.DataFrame) -> NeighbouringTables:
    """Check the steward's own two tables, which must differ in one record's protected cells."""
    at_stake = columns_at_stake(planned)
    return check_neighbours(
        planned.policy.schema, before, after, adds=adds(planned), at_stake=at_stake
    )


def check_neighbours(
    schema: Schema,
    before: pl.DataFrame,
    after: pl.DataFrame,
    *,
    adds: bool,
    at_stake: Sequence[str] | None = None,
) -> NeighbouringTables:
    """Check two tables, which must differ in one record, and in the columns at stake alone."""
    if before.columns != after.columns:
        raise InputError("The two tables must have the same columns in the same order.")
    if adds:
        return _one_more(before, after)
    if before.height != after.height:
        raise InputError(
            "The two tables must have the same number of rows, as change-one neighbours do; "
            f"found {before.height:,} and {after.height:,}."
        )
    apart = [
        _comparable(left, right).ne_missing(_comparable(right, left)).to_numpy()
        for left, right in zip(before, after, strict=True)
    ]
    rows = np.flatnonzero(np.any(apart, axis=0))
    if rows.size != 1:
        raise InputError(
            f"The two tables must differ in exactly one row; they differ in {rows.size:,}."
        )
    changed = [name for name, cells in zip(before.columns, apart, strict=True) if cells.any()]
    for name in changed:
        if at_stake is not None and name in schema.released and name not in at_stake:
            known = "public" if schema[name].public else "not covered by the claim"
            raise InputError(f"Column '{name}' is {known}, but it differs between the two tables.")
    return NeighbouringTables("the two tables that were given", before, after, int(rows[0]))


def _one_more(before: pl.DataFrame, after: pl.DataFrame) -> NeighbouringTables:
    longer, shorter = (before, after) if before.height > after.height else (after, before)
    if longer.height != shorter.height + 1:
        raise InputError(
            "One of two add-remove neighbours must have exactly one row more than the other; "
            f"found {before.height:,} and {after.height:,} rows."
        )
    same = [
        _comparable(left.head(shorter.height), right)
        .eq_missing(_comparable(right, left))
        .to_numpy()
        for left, right in zip(longer, shorter, strict=True)
    ]
    row = int(np.append(np.all(same, axis=0), False).argmin())
    rest = _without(longer, row)
    for left, right in zip(rest, shorter, strict=True):
        if not _comparable(left, right).equals(_comparable(right, left), null_equal=True):
            raise InputError("The two tables must be equal, in the same order, except for one row.")
    return NeighbouringTables("the two tables that were given", longer, shorter, row)


def _without(table: pl.DataFrame, row: int) -> pl.DataFrame:
    return pl.concat([table.head(row), table.tail(table.height - row - 1)])


def _comparable(series: pl.Series, other: pl.Series) -> pl.Series:
    """Convert a column to numbers if both tables have numbers there, else to text."""
    numbers = series.dtype.is_numeric() and other.dtype.is_numeric()
    return series.cast(pl.Float64 if numbers else pl.String)


def search(
    planned: Plan,
    table: pl.DataFrame,
    *,
    tries: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> NeighbouringTables:
    """Change one record of a table at random, many times, and keep the most distinguishable change.

    A changed cell becomes one end of its column's domain, or another record's cell, or any value
    between. `apartness` measures how distinguishable the tables are.
    """
    best: tuple[float, NeighbouringTables] | None = None
    # A fraction must fit into a column of whole numbers, so these become floats.
    table = table.with_columns(
        table[name].cast(pl.Float64)
        for name in columns_at_stake(planned)
        if table.schema[name].is_integer() and planned.policy.schema[name].kind is Kind.NUMERIC
    )
    for attempt in range(tries):
        progress("searching for a neighbour", attempt, tries)
        row = int(rng.integers(table.height))
        changed, what = table, "changed"
        if adds(planned):
            changed, what = _without(table, row), "left out"
        else:
            for name in columns_at_stake(planned):
                cell = _other_cell(planned.policy.schema[name], table[name], rng)
                changed = changed.with_columns(_with_cell(changed[name], row, cell))
            if changed.equals(table, null_equal=True):
                continue
        name = f"one record of the table {what}, found by search"
        pair = NeighbouringTables(name, table, changed, row)
        score = apartness(planned, pair)
        if best is None or score > best[0]:
            best = score, pair
    if best is None:
        raise InputError(
            "No record of the table can be changed, because each of its columns has only one "
            "possible value."
        )
    return best[1]


def apartness(planned: Plan, pair: NeighbouringTables) -> float:
    """Measure how well the exact answers distinguish two tables.

    The L1 distance of the exact answers over the scale of their noise, answers matched where the
    release form hides their order: an upper bound on the loss through noisy answers alone.
    `STRUCTURE` is added if the tables differ in which records share a row, which noise does not
    hide. It guides the search, and is not a bound.
    """
    sides = [
        ArrayRuns(planned, table_of(planned, frame), _Exact())
        for frame in (pair.before, pair.after)
    ]
    probes = [_Exact(), _Exact()]
    for side, probe in zip(sides, probes, strict=True):
        side.with_noise(probe)
    form = planned.setting.release_form
    loss = _loss(probes[0].answers, probes[1].answers, form)
    shapes = [_shape(side.with_noise(_Deaf()), form) for side in sides]
    return loss + (0.0 if shapes[0] == shapes[1] else STRUCTURE)


def table_of(planned: Plan, frame: pl.DataFrame) -> Any:
    """Convert a frame as the noisy methods do."""
    return clamp(
        frame,
        planned.policy.schema,
        columns=planned.method.clamps(planned.setting),
        decimal=planned.policy.reading.decimal,
    )[0]


def exact_answers(runs: ArrayRuns) -> tuple[Floats, list[Fraction]]:
    """Return a run's values without noise, and the scales of the noise that it requests."""
    probe = _Exact()
    cells = runs.with_noise(probe)
    return cells, [scale for _, scale in probe.answers]


class _Exact:
    """A probe that adds no noise and records the requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[Floats, Fraction]] = []

    def discrete_laplace(self, values: Ints, *, scale: Fraction) -> Ints:
        self.answers.append((values.astype(np.float64), scale))
        return np.asarray(values)

    def exceeds(self, values: Ints, *, threshold: int, scale: Fraction) -> Bools:
        return np.asarray(self.discrete_laplace(values, scale=scale) > threshold)

    def discrete_gaussian(self, values: Ints, *, scale: Fraction) -> Ints:
        return self.discrete_laplace(values, scale=scale)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        self.answers.append((np.array(sorted(counts.values()), dtype=np.float64), scale))
        return {key: count for key, count in counts.items() if count >= threshold}

    def select_by_weight(self, scores: Ints, *, scale: Fraction) -> int:
        self.answers.append((scores.astype(np.float64), scale))
        return int(scores.argmax())

    def select(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        return int(self.select_many(scores[None, :], sensitivity=sensitivity, epsilon=epsilon)[0])

    def select_many(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> Ints:
        self.answers.append((scores.astype(np.float64), sensitivity / epsilon))
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def respond(self, codes: Ints, *, categories: int, epsilon: Fraction) -> Ints:
        del categories
        self.answers.append((codes.astype(np.float64), 1 / epsilon))
        return np.asarray(codes)

    def uniform(self, below: int, *, size: int) -> Ints:
        return np.arange(size, dtype=np.int64) % below


class _Deaf(_Exact):
    """A probe whose answers do not depend on the data, and differ from one another."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 1

    def discrete_laplace(self, values: Ints, *, scale: Fraction) -> Ints:
        del scale
        numbers = self._next + np.arange(values.size, dtype=np.int64)
        self._next += values.size
        return (numbers * 7919).reshape(values.shape)

    def respond(self, codes: Ints, *, categories: int, epsilon: Fraction) -> Ints:
        del epsilon
        return np.arange(codes.size, dtype=np.int64).reshape(codes.shape) % categories


def _loss(
    before: Sequence[tuple[Floats, Fraction]],
    after: Sequence[tuple[Floats, Fraction]],
    form: ReleaseForm,
) -> float:
    if [(a.shape, s) for a, s in before] != [(a.shape, s) for a, s in after]:
        return STRUCTURE
    scaled = [
        [_flat(answer / float(scale)) for answer, scale in side] for side in (before, after)
    ]  # fmt: skip
    one_length = len({len(answer) for answer in scaled[0]}) == 1
    if form is ReleaseForm.COLUMN_SHUFFLED:
        parts = [(np.sort(x), np.sort(y)) for x, y in zip(*scaled, strict=True)]
        return float(sum(np.abs(x - y).sum() for x, y in parts))
    if form is ReleaseForm.LINKED_SHUFFLED and one_length and len(scaled[0][0]) <= _MATCHED:
        x, y = (np.column_stack(side) for side in scaled)
        costs = np.abs(x[:, None] - y[None]).sum(axis=2)
        return float(costs[scipy.optimize.linear_sum_assignment(costs)].sum())
    return float(sum(np.abs(x - y).sum() for x, y in zip(*scaled, strict=True)))


def _flat(answer: Floats) -> Floats:
    # Among the scores of a selection, the one that moves most decides.
    return answer if answer.ndim == 1 else answer.max(axis=1)


def _shape(cells: Floats, form: ReleaseForm) -> Any:
    """Return which records share a row or a cell, as far as the release form shows it."""
    views = [cells] if form is not ReleaseForm.COLUMN_SHUFFLED else []
    views += [cells[:, [j]] for j in range(cells.shape[1])]
    shapes = []
    for view in views:
        _, labels, sizes = np.unique(view, axis=0, return_inverse=True, return_counts=True)
        if form is ReleaseForm.ROW_ALIGNED:
            _, first = np.unique(labels, return_index=True)
            shapes.append(tuple(first[labels.ravel()].tolist()))
        else:
            shapes.append(tuple(sorted(sizes.tolist())))
    return shapes


def _extreme(k: int) -> tuple[str, Floats, Floats]:
    before = np.zeros((2 * k, 2))
    after = before.copy()
    after[0] = 1.0
    return "one record moves from the lower end of every column to the upper", before, after


def _zig_zag(k: int) -> tuple[str, Floats, Floats]:
    """Place records so that groups by distance from a corner alternate between two axes.

    Removing the first record and adding one at the end moves one record out of each group and one
    in, from the other axis: the bound of insensitive groups is nearly attained.
    """
    n = 8 * k
    places = np.arange(n)
    radius = 0.9 + 0.1 * places / n
    upper = (places // k) % 2 == 1
    before = np.where(upper[:, None], np.column_stack([0 * radius, radius]),
                      np.column_stack([radius, 0 * radius]))  # fmt: skip
    after = before.copy()
    after[0] = [1.0, 0.05]
    return (
        "records alternate between two axes, and the first record becomes the last",
        before,
        after,
    )


def _carry_over(
    planned: Plan, name: str, before: Floats, after: Floats
) -> NeighbouringTables | None:
    """Map a pair from the unit box to the policy's columns, if it remains a pair."""
    frames = [_frame(planned, X) for X in (before, after)]
    if adds(planned):
        # For add-remove, the record that would change is missing instead.
        row = int((before != after).any(axis=1).argmax())
        return NeighbouringTables(f"{name}: with and without that record", frames[1],
                          _without(frames[1], row), row)  # fmt: skip
    try:
        return replace(check_given(planned, frames[0], frames[1]), name=name)
    except InputError:  # for example, two cells that fall in one category
        return None


def _frame(planned: Plan, X: Floats) -> pl.DataFrame:
    schema, columns = planned.policy.schema, columns_at_stake(planned)
    n = len(X)
    cells: dict[str, list[Any]] = {}
    for column in schema.columns:
        if column.name not in columns:
            cells[column.name] = _public_cells(column, n)
            continue
        place = columns.index(column.name)
        box = X[:, place] if place < X.shape[1] else np.zeros(n)
        cells[column.name] = [place_in_domain(column, float(u)) for u in box]
    return pl.DataFrame(cells)


def place_in_domain(column: Column, u: float) -> Any:
    """Return the cell of a column's public domain at a share u of the way from its lower end."""
    if column.all_categories is not None:
        return column.all_categories[round(u * (len(column.all_categories) - 1))]
    low, high = column.bounds or (Decimal(0), Decimal(1))
    if isinstance(low, date) and isinstance(high, date):
        return low + timedelta(days=round(u * (high - low).days))
    return float(low) + u * (float(high) - float(low))  # type: ignore[arg-type]


def _public_cells(column: Column, n: int) -> list[Any]:
    """Fill a column that is the same in both tables, with distinct values if possible."""
    if column.role is Role.IDENTIFIER or column.kind is None:
        return [f"row {i + 1}" for i in range(n)]
    if column.kind is Kind.NOMINAL and column.all_categories is None:
        return ["a"] * n
    return [place_in_domain(column, i / max(n - 1, 1)) for i in range(n)]


def _other_cell(column: Column, series: pl.Series, rng: np.random.Generator) -> Any:
    sort = rng.integers(3)
    if sort == 0 or (column.all_categories is None and column.bounds is None):
        return series[int(rng.integers(series.len()))]
    return place_in_domain(column, float(rng.integers(2)) if sort == 1 else float(rng.random()))


def _with_cell(series: pl.Series, row: int, cell: Any) -> pl.Series:
    cells = series.to_list()
    cells[row] = str(cell) if series.dtype == pl.String and cell is not None else cell
    return pl.Series(series.name, cells, dtype=series.dtype)

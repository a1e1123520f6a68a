"""Try a policy on a few rows, to preview its release.

Nothing is promised, booked or recorded. A method without an epsilon may be tried on rows of the
table, which only its steward sees. For another one the rows are invented from the public domains
that the policy states, or come from people who may be inspected: a choice by rows of the table
would be an inspection of it.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import io
from shoal.core import Column, Kind, Policy, Progress, ReleaseForm, Role, silent
from shoal.errors import ClaimViolationError, InputError
from shoal.pipeline import protect_table
from shoal.pipeline.planning import Plan, plan

ROWS, SHOWN = 1000, 8
"""Rows that are tried, and released rows that are shown."""
GROUPS, MOST = 20, 10_000
"""Rows make so many groups of k, where that is more; and at most so many rows are tried."""
LONGEST = 60
"""Characters of a cell that are shown."""


@dataclass(frozen=True)
class Tried:
    """The result of a trial on some rows.

    Attributes:
        before: the rows that were tried.
        release: of these rows, in a form in which row i is about row i where the method has one.
        shown: a few released rows as texts.
        unmet: the requirement that these rows violate, or empty.
    """

    before: pl.DataFrame
    release: Any
    columns: tuple[str, ...]
    shown: tuple[tuple[str, ...], ...]
    unmet: str = ""


def rows_to_try(policy: Policy) -> int:
    """Return how many rows to try: enough for typical groups."""
    k = policy.parameters.get("k")
    return min(max(ROWS, GROUPS * k), MOST) if isinstance(k, int) else ROWS


def preview(policy: Policy, frame: pl.DataFrame, *, progress: Progress = silent) -> Tried:
    """Protect some rows by a policy, and show the result."""
    free = replace(policy, budget=None, audience=None)
    unmet = ""
    try:
        release = _release(free, frame, progress)
    except ClaimViolationError as error:
        unmet = str(error).removesuffix(" Nothing was written.")
        release = _release(replace(free, required=()), frame, progress)
    data = io.from_native(release.data).frame
    some = np.sort(np.random.default_rng(0).permutation(data.height)[:SHOWN])
    shown = tuple(tuple(map(_text, row)) for row in data[some].iter_rows())
    return Tried(frame, release, tuple(data.columns), shown, unmet)


def _release(policy: Policy, frame: pl.DataFrame, progress: Progress) -> Any:
    done = protect_table.run(_align(policy), io.Raw(frame), progress=progress)
    done.close()
    return done.release


def _align(policy: Policy) -> Plan:
    planned = plan(policy)
    if planned.setting.release_form is not ReleaseForm.LINKED_SHUFFLED:
        return planned
    try:
        return plan(policy, keep_order=True)
    except (InputError, ClaimViolationError):
        return planned


def sample_rows(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Sample rows of a table at random."""
    if frame.height <= rows:
        return frame
    return frame[np.sort(np.random.default_rng().permutation(frame.height)[:rows])]


def invent_rows(policy: Policy, rows: int) -> pl.DataFrame:
    """Invent rows: each cell is drawn uniformly from the domain that the policy states.

    A column without a domain gets numbers up to 100, or a few letters.
    """
    rng = np.random.default_rng()
    return pl.DataFrame([_draw_cells(column, rows, rng) for column in policy.schema.columns])


def _draw_cells(column: Column, rows: int, rng: np.random.Generator) -> pl.Series:
    name = column.name
    if column.role is Role.IDENTIFIER or column.privacy_unit or column.household:
        each = column.exact_contributions or 1
        return pl.Series(name, [f"{row // each + 1:,}" for row in range(rows)])
    if column.kind is Kind.DATE:
        first, last = _days(column)
        span = rng.integers(0, max((last - first).days, 1), rows)
        return pl.Series(name, [first + timedelta(days=int(days)) for days in span])
    if column.kind is Kind.NUMERIC or column.kind is None:
        return pl.Series(name, _numbers(column, rows, rng))
    leaves = column.recode or column.all_categories or tuple("ABCDE")
    return pl.Series(name, rng.choice(list(leaves), rows).tolist(), dtype=pl.String)


def _days(column: Column) -> tuple[date, date]:
    low, high = column.bounds or (date(2000, 1, 1), date(2020, 12, 31))
    return (low, high) if isinstance(low, date) and isinstance(high, date) else (
        date(2000, 1, 1), date(2020, 12, 31)
    )  # fmt: skip


def _numbers(column: Column, rows: int, rng: np.random.Generator) -> NDArray[Any]:
    low, high = (float(end) for end in column.bounds or (0, 100))  # type: ignore[arg-type]
    step = float(column.step) if column.step else 0.0
    integral = all(end.is_integer() for end in (low, high)) and high - low >= 2
    if step:
        return low + step * rng.integers(0, max(int((high - low) / step), 0) + 1, rows)
    return rng.integers(int(low), int(high) + 1, rows) if integral else rng.uniform(low, high, rows)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    text = f"{cell:.4g}" if isinstance(cell, float) and not cell.is_integer() else str(cell)
    if isinstance(cell, float) and cell.is_integer():
        text = f"{cell:.0f}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"

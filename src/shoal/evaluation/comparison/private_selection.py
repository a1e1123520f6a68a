"""Choose one candidate privately, with a privacy loss charged to the budget file.

A score of a candidate uses the table twice: the release that is scored was made from it, and is
compared with it. Permute-and-flip over such scores would need both in the sensitivity, and the
release's own part is as large as the score. Releasing every candidate and adding up the prices is
proved, and grows with the grid. Random stopping does not grow with it.

The mechanism is `shoal.mechanism.random_stopping`. One run of it releases a candidate, counts m
fixed queries in the release and in the table, and adds noise to the total error. It costs e1 = e +
es. The candidate's release costs at most e, the common price. Given the release, the score

    -sum_q |c_q(table) - c_q(release)|

moves by at most m if one record changes, since each count of the table moves by at most 1; discrete
Laplace noise of scale m / es makes that es. Counts are taken of records clamped one by one to their
public domains, over public ranges. The whole costs 3 e1, and that is charged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import (
    DifferentialPrivacy,
    Neighbours,
    Noise,
    Policy,
    Progress,
    ReleaseForm,
    Status,
    silent,
)
from shoal.core.serialise import plain
from shoal.errors import InputError, ShoalError
from shoal.evaluation.comparison.grid import Candidate, without_requirements
from shoal.io import clamp
from shoal.io.raw import Raw
from shoal.mechanism.random_stopping import PRICE, best_of_runs
from shoal.pipeline import booking, protect_table
from shoal.pipeline.planning import Plan, plan, with_rows

QUERIES = 100
SUBSET = 3
"""Columns that a query restricts, at most."""
SEED = 2019
"""Of the queries, which are public."""
SCORE_SHARE = Fraction(1, 6)
"""Share of the price of one run that the score takes."""


@dataclass(frozen=True)
class Selection:
    """The privately chosen candidate, with its privacy loss.

    Attributes:
        candidate: with the epsilon that it was tried with.
        epsilon: what the whole selection cost.
        each: the epsilon of each candidate release.
        among: the candidates that it was chosen from.
        left_out: candidates that no proved epsilon covers, with the reason.
    """

    candidate: Candidate
    epsilon: Fraction
    each: Fraction
    among: tuple[Candidate, ...]
    left_out: tuple[tuple[Candidate, str], ...]

    def __str__(self) -> str:
        return (
            f"Chosen: {self.candidate.label}, from {len(self.among):,} "
            f"candidate{'' if len(self.among) == 1 else 's'}, each tried with epsilon "
            f"{float(self.each):.3g}. The choice cost epsilon {float(self.epsilon):g}, and does "
            "not make any later epsilon conditional."
        )

    def facts(self) -> dict[str, Any]:
        """Return the selection as plain values."""
        return {
            "chosen": self.candidate.label,
            "epsilon": plain(self.epsilon),
            "tried_with_epsilon": plain(self.each),
            "among": [candidate.label for candidate in self.among],
            "left_out": {candidate.label: reason for candidate, reason in self.left_out},
        }


def select(
    frame: pl.DataFrame,
    policy: Policy,
    candidates: Sequence[Candidate],
    *,
    epsilon: Fraction,
    note: str = "",
    noise: Noise | None = None,
    progress: Progress = silent,
) -> Selection:
    """Choose one candidate by random stopping, and charge the budget file before the first draw.

    Every candidate is tried with the same epsilon, whatever the grid says: a larger one is always
    more useful, so a choice between epsilons would say nothing. Which method is best may depend on
    the epsilon. `epsilon` is that of the whole selection; a sixth of a third of it goes to each
    score. `noise` is another source of noise, for experiments; it is charged all the same.

    Raises:
        InputError: no candidate has a proved epsilon for all columns, or there is no budget file.
        ClaimViolationError: the budget does not hold the price.
    """
    stated = policy.schema.persons
    if stated is not None and (stated.most > 1 or stated.dropped):
        raise InputError(
            f"Column '{stated.column}': a private selection is proved for one row per person "
            "only, and here a person may have several. Compare on a sample with --on-sample "
            "instead."
        )
    score = epsilon / PRICE * SCORE_SHARE
    each = epsilon / PRICE - score
    plans, left_out = _price(policy, candidates, each, frame.height)
    if not plans:
        reasons = sorted({reason for _, reason in left_out})
        raise InputError(
            "A private selection needs candidates with a proved epsilon for all released columns, "
            f"and the grid has none. {' '.join(reasons)}".strip()
        )
    columns = [name for name in policy.schema.released if not policy.schema[name].public]
    queries = _queries(policy, columns)
    booked = booking.charge_selection(policy, epsilon, note=note)
    noise = protect_table.secure_noise() if noise is None else noise
    true = _counts(frame, policy, columns, queries)
    runs = count(1)

    def run(place: int) -> int:
        progress("selecting", next(runs), 2 * len(plans))
        wrong = _wrong(frame, plans[place][1], columns, queries, true)
        return int(noise.discrete_laplace(np.array([-wrong]), scale=QUERIES / score)[0])

    best = best_of_runs(len(plans), run, noise=noise)
    booking.settle_selection(booked)
    return Selection(plans[best][0], epsilon, each, tuple(c for c, _ in plans), tuple(left_out))


def _price(
    policy: Policy, candidates: Sequence[Candidate], each: Fraction, rows: int
) -> tuple[list[tuple[Candidate, Plan]], list[tuple[Candidate, str]]]:
    """List the candidates at the common epsilon that are proved for all columns, once each."""
    stated = Decimal(each.numerator) / Decimal(each.denominator)
    stated = stated.quantize(Decimal("1e-9"), rounding="ROUND_DOWN")
    wanted = {name for name in policy.schema.released if not policy.schema[name].public}
    priced: list[tuple[Candidate, Plan]] = []
    lost: list[tuple[Candidate, str]] = []
    for candidate in candidates:
        if "epsilon" not in candidate.parameters:
            lost.append((candidate, f"'{candidate.method}' has no epsilon."))
            continue
        tried = replace(candidate, parameters={**candidate.parameters, "epsilon": stated})
        if any(tried == known for known, _ in priced):
            continue
        try:
            # A claim may depend on the number of rows, which is public.
            planned = with_rows(plan(without_requirements(tried.apply(policy))), rows)
        except ShoalError as error:
            lost.append((candidate, str(error)))
            continue
        if planned.setting.release_form is ReleaseForm.TREE:
            lost.append((candidate, "A tree has boxes instead of rows to count."))
        elif not any(_within(claim, each, wanted) for claim in planned.claims):
            lost.append((candidate, f"'{candidate.method}' has no proved epsilon for all columns."))
        else:
            priced.append((tried, planned))
    return priced, lost


def _within(claim: Any, price: Fraction, wanted: set[str]) -> bool:
    guarantee = claim.guarantee
    if not isinstance(guarantee, DifferentialPrivacy) or claim.status is not Status.PROVED:
        return False
    # Changing a record is removing one and adding one.
    steps = 2 if guarantee.neighbours is Neighbours.ADD_REMOVE else 1
    if guarantee.pure is None:
        return False
    return steps * guarantee.pure <= price and wanted <= set(guarantee.protects)


_Ranges = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The lower and the upper ends of ranges of the unit box, by queries and columns."""


def _queries(policy: Policy, columns: Sequence[str]) -> _Ranges:
    """Draw queries over half of the public domain of up to three columns, without the table."""
    rng = np.random.default_rng(SEED)
    shape = (QUERIES, len(columns))
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    for query in range(QUERIES):
        for axis in rng.permutation(len(columns))[:SUBSET]:
            categories = policy.schema[columns[axis]].all_categories
            cells = len(categories) if categories else 64
            taken = (cells + 1) // 2
            first = int(rng.integers(0, cells - taken + 1))
            # Ends between cells, so no category lies on one.
            lower[query, axis] = -np.inf if first == 0 else (first - 0.5) / cells
            upper[query, axis] = np.inf if first + taken == cells else (first + taken - 0.5) / cells
    return lower, upper


def _counts(
    frame: pl.DataFrame, policy: Policy, columns: Sequence[str], queries: _Ranges
) -> NDArray[np.int64]:
    """Count the records in each range; each record is clamped by itself."""
    decimal = policy.reading.decimal
    table, _ = clamp.clamp(frame, policy.schema, columns=columns, decimal=decimal)
    places = table.unit_matrix(columns)
    lower, upper = queries
    inside = np.ones((len(places), len(lower)), dtype=bool)
    for axis in range(len(columns)):
        column = places[:, axis, None]
        inside &= (column >= lower[:, axis]) & (column < upper[:, axis])
    counts: NDArray[np.int64] = inside.sum(axis=0)
    return counts


def _wrong(
    frame: pl.DataFrame,
    planned: Plan,
    columns: Sequence[str],
    queries: _Ranges,
    true: NDArray[np.int64],
) -> int:
    """Make a release and sum the errors of its counts; a failed release has the largest error."""
    try:
        released = protect_table.run(planned, Raw(frame)).release.data
        counts = _counts(_whole(released, frame), planned.policy, columns, queries)
    except ShoalError:
        return QUERIES * frame.height
    return int(np.abs(counts - true).sum())


def _whole(released: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Restore dropped columns of a release as empty ones, as the schema requires."""
    gone = [name for name in frame.columns if name not in released.columns]
    return released.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in gone)

"""Check the risks that a policy limits on a finished table, row by row.

A missing cell is a value of its own, which no estimate takes for less risk than it is. Only a
population is matched as an attacker matches it: a released interval, ancestor or star agrees with
every value that it covers, and a missing cell with all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl

from shoal import io
from shoal.core import Check, Column, Guarantee, Policy, RiskLimit, RiskMeasure, Schema
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, count_noun
from shoal.io import validate
from shoal.io.external.columns import read_column, scale_of
from shoal.io.original import without_bounds
from shoal.io.persons import households_of
from shoal.io.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.metrics.risk_measures import RowsAtRisk

WITNESS_ROWS = 5
"""How many of the riskiest rows are named."""


def names_beside(required: Iterable[Guarantee]) -> list[str]:
    """List the columns of the original that risk limits use beside the quasi-identifiers."""
    limits = [limit for limit in required if isinstance(limit, RiskLimit)]
    names = [name for limit in limits for name in (limit.household, limit.weight) if name]
    return list(dict.fromkeys(names))


def not_in(frame: pl.DataFrame, limit: RiskLimit) -> str:
    """Explain why a table alone does not show a risk, or return ""."""
    if limit.population:
        return f"{limit} needs the population file '{limit.population}', which is not published."
    for name in names_beside([limit]):
        if name not in frame.columns:
            return f"{limit} needs the column '{name}', which the table does not have."
    return ""


def refuse_risk(required: Iterable[Guarantee], what: str) -> None:
    """Refuse risk limits for a release whose rows are not people's."""
    limit = next((limit for limit in required if isinstance(limit, RiskLimit)), None)
    if limit is not None:
        raise InputError(
            f"[require] {limit.measure}: is about rows that stand for people, and {what} has none. "
            "Remove it, or choose a method without noise that releases rows.",
            field=("require", str(limit.measure)),
        )


def what_lowers(limit: RiskLimit) -> str:
    """Say what would keep a risk within its limit."""
    if limit.measure is RiskMeasure.INDIVIDUAL:
        # E(1 / F | f) is at most 1 / f.
        return f"With k = {ceil(1 / limit.limit)} it is kept, whatever the weights are."
    return "Raise k, recode the quasi-identifiers to fewer values, or protect more columns."


def check_risk(
    frame: pl.DataFrame, limit: RiskLimit, policy: Policy, *, beside: pl.DataFrame | None = None
) -> Check:
    """Compute a risk for every row of a table, and compare the worst with its limit.

    Args:
        frame: the table.
        limit: as the policy requires it.
        policy: whose columns and population these are.
        beside: the household and weight of each row, if the table has them not itself.
    """
    from shoal.metrics.risk_measures import MEASURES  # noqa: PLC0415 (heavy)

    if beside is None and not limit.population and (why := not_in(frame, limit)):
        raise InputError(why)
    measure = MEASURES[limit.measure]
    beside = frame if beside is None else frame.hstack(beside)
    rows = _at_risk(frame, limit, policy, beside)
    risks = measure.risks(rows)
    worst = risks.min() if limit.measure.counts else risks.max()
    # Twelve digits are the same on every machine.
    achieved = int(worst) if risks.dtype.kind == "i" else float(f"{worst:.12g}")
    beyond = np.array([not limit.holds(float(f"{risk:.12g}")) for risk in np.unique(risks)])
    failing = np.isin(risks, np.unique(risks)[beyond])
    riskiest = np.flatnonzero(risks == worst) + 1
    model = measure.model(rows)
    remarks = {"rows_beyond_the_limit": int(failing.sum()), **({"assumes": model} if model else {})}
    if rows.people is not None:
        remarks["rows_that_nobody_agrees_with"] = int((rows.people == 0).sum())
    return Check(
        limit,
        holds=limit.holds(achieved),
        achieved=achieved,
        witness={"size": riskiest.size, "rows": riskiest[:WITNESS_ROWS].tolist()},
        remarks=remarks,
    )


@dataclass(frozen=True)
class TableRisk:
    """A risk of the rows of a table.

    Attributes:
        measure: which risk.
        worst: of all rows.
        mean: over the rows.
        rows: how many have the worst.
        assumes: what must hold for the figure to be right; "" for a count of the table.
        contributions: of the score of SUDA, the share that is of sets with a column.
    """

    measure: RiskMeasure
    worst: float
    mean: float
    rows: int
    assumes: str
    contributions: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        end = "smallest" if self.measure.counts else "largest"
        text = (
            f"{self.measure}: {end} {self.worst:.3g}, of {count_noun(self.rows, 'row')}; "
            f"{self.mean:.3g} on average{f', if {self.assumes}' if self.assumes else ''}"
        )
        by_size = sorted(self.contributions.items(), key=lambda item: -item[1])
        parts = [f"'{name}' is in sets with {100 * share:.0f}% of it" for name, share in by_size]
        return f"{text}; {', '.join(parts)}" if parts else text


def table_risks(
    frame: pl.DataFrame, beside: pl.DataFrame, policy: Policy, keys: Sequence[str]
) -> tuple[TableRisk, ...]:
    """Compute every risk for which the table, its policy and its population have what it takes.

    Args:
        frame: the quasi-identifiers, typed or as they are.
        beside: the table as it came, with households and weights.
        policy: whose columns and population these are.
        keys: the quasi-identifiers that the table has.
    """
    from shoal.metrics.risk_measures import MEASURES  # noqa: PLC0415 (heavy)

    found = []
    weight, household = map(policy.schema.column_with_flag, ("sampling_weight", "household"))
    for name in RiskMeasure:
        measure = MEASURES[name]
        population = policy.population is not None and name.of_population
        if name.of_households and household not in beside.columns:
            continue
        if name.of_population and not population and weight not in beside.columns:
            continue
        limit = RiskLimit(
            name, Fraction(1), tuple(keys),
            household=household or "" if name.of_households else "",
            weight=weight or "" if name.of_weights and not population else "",
            population=str(policy.population) if population else "",
        )  # fmt: skip
        rows = _at_risk(frame, limit, policy, beside)
        risks = measure.risks(rows)
        worst = float(risks.min() if name.counts else risks.max())
        parts = rows.contributions() if name is RiskMeasure.SUDA else ()
        found.append(
            TableRisk(
                name, worst, float(risks.mean()), int((risks == worst).sum()), measure.model(rows),
                dict(zip(keys, map(float, parts), strict=False)),
            )
        )  # fmt: skip
    return tuple(found)


def _at_risk(
    frame: pl.DataFrame, limit: RiskLimit, policy: Policy, beside: pl.DataFrame
) -> "RowsAtRisk":
    from shoal.metrics.risk_measures import RowsAtRisk  # noqa: PLC0415 (heavy)

    return RowsAtRisk(
        columns=np.column_stack([_codes(frame[name]) for name in limit.keys]),
        weights=_weights(beside[limit.weight], policy) if limit.weight else None,
        households=households_of(beside, policy.schema) if limit.household else None,
        people=_people(frame, limit, policy) if limit.population else None,
    )


def _codes(series: pl.Series) -> Ints:
    return series.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()


def _weights(series: pl.Series, policy: Policy) -> Floats:
    values = validate.parse_column(series, policy.schema[series.name], policy.reading.decimal)
    numbers = values.cast(pl.Float64)
    bad = numbers.null_count() + int((numbers < 0).sum())
    if bad:
        raise InputError(
            f"Column '{series.name}' is the sampling weight, but "
            f"{count_noun(bad, 'row has', 'rows have')} none, or a negative one."
        )
    return numbers.to_numpy()


def _people(frame: pl.DataFrame, limit: RiskLimit, policy: Policy) -> Ints:
    """Count the people of the population file who agree with each released row."""
    what = f"The population file '{limit.population}'"
    population = io.read(cast("Path", policy.population)).frame
    if absent := [name for name in limit.keys if name not in population.columns]:
        raise InputError(f"{what} lacks the column '{absent[0]}'; it needs every quasi-identifier.")
    decimal = policy.reading.decimal
    columns = tuple(without_bounds(policy.schema[name]) for name in limit.keys)
    try:
        typed = [validate.parse_column(population[c.name], c, decimal) for c in columns]
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    table = Table(pl.DataFrame(typed), Schema(columns), {})
    axes = [_axis(table, c, population[c.name], frame[c.name], decimal) for c in columns]
    lower, upper, anything, places = (np.column_stack(part) for part in zip(*axes, strict=True))
    from shoal.metrics.risk_measures import people_behind  # noqa: PLC0415 (heavy)

    return people_behind(lower, upper, anything, places)


def _axis(
    table: Table, column: Column, text: pl.Series, released: pl.Series, decimal: str | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Place a released column and the population's on one axis; what it lacks agrees with none."""
    scale = scale_of(table, column.name, text, decimal=decimal)
    cells = read_column(released, scale, decimal=decimal)
    if (cells.gap > 0).any():
        raise InputError(
            f"Column '{column.name}' has sets of categories that are not neighbours, so the people "
            "who agree with a row are not counted exactly. Give it a hierarchy."
        )
    stars = released.cast(pl.String).str.contains(r"^\*+$").fill_null(value=False).to_numpy()
    anything = cells.suppressed & (cells.missing | stars)
    unknown = cells.suppressed & ~anything
    lower = np.where(unknown, np.inf, cells.lower)
    return lower, np.where(unknown, -np.inf, cells.upper), anything, scale.places

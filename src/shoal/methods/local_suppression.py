"""Local suppression: blank the fewest cells so no combination of key values is rarer than k.

Claims, proved: k-anonymity of each set of key columns, with what a missing cell means in it. Under
`own-value` every combination of released values, missing ones included, is shared by k records:
cells are blanked until it is, and a table of k records has a solution, all cells blank. Under
`matches-anything` every record agrees with k records wherever both are present, as sdcMicro counts:
a record shows only values that k records held, and those show them too or are blank; cells are
restored only while the count holds (`shoal.partition.local_suppression`). Any subset of a set
inherits it: what agrees in all columns agrees in some.

Persons: where a column numbers them and some have several rows, k in rows is doubled until every
combination has k persons; no bound is stated then.

With `levels` columns are recoded first, each to one level of its hierarchy or of `intervals`, and
then blanked where the labels are still rare.

Not claimed: k-anonymity of columns that are in no set together. Nor that a blanked cell stays
unknown: whoever knows that cells are blanked because they are rare learns that.
"""

from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from shoal.core import Claim, KAnonymity, MissingMeaning
from shoal.errors import InputError, did_you_mean
from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.column_levels import column_levels, height, refuse_steps
from shoal.methods.method import (
    CellFacts,
    CostModel,
    Example,
    Masked,
    Method,
    Parameters,
    Promises,
    Setting,
    Tools,
)
from shoal.partition import Suppression, local_suppression
from shoal.partition.local_suppression import WIDEST
from shoal.policy.values import Number, Size, choice
from shoal.privacy_models import persons_agreeing

SOURCE = (
    "Templ, Kowarik and Meindl, Statistical disclosure control for micro-data using the R package "
    "sdcMicro, Journal of Statistical Software 67 (2015), doi:10.18637/jss.v067.i04"
)
MOST_SETS = 200


class LocalSuppressionParameters(Parameters):
    """Parameters of local suppression."""

    k: Size = Field(
        title="Smallest group (k)",
        description="Smallest number of records that share a combination.",
    )
    missing: Annotated[MissingMeaning, choice(MissingMeaning)] = Field(
        MissingMeaning.OWN_VALUE,
        title="What a missing cell means",
        description="What a missing cell means: a value of its own, or one that matches anything, "
        "as in sdcMicro.",
    )
    importance: dict[str, Annotated[Number, Field(gt=0, le=1_000_000)]] = Field(
        default_factory=dict,
        title="What a blank cell costs",
        description="What blanking a cell of a column costs; by default 1.",
    )
    subsets: Size | None = Field(
        None,
        title="Number of columns that are combined",
        description="Protect every combination of so many columns, instead of all together.",
    )
    sets: list[Annotated[list[str], Field(min_length=1)]] = Field(
        default_factory=list,
        title="Sets of columns that are protected",
        description="Sets of columns to protect, each by itself; by default one of all columns.",
    )
    levels: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        title="Levels of the hierarchy",
        description="The level at which a column is released before cells are blanked; 0 is the "
        "column as it is.",
    )
    intervals: dict[str, Annotated[list[Number | str], Field(min_length=1)]] = Field(
        default_factory=dict,
        title="Widths of intervals",
        description='Of a number the widths, such as [5, 10]; of a date such levels as ["month", '
        '"year"]. In place of a hierarchy.',
    )


def _sets(setting: Setting[LocalSuppressionParameters]) -> list[tuple[str, ...]]:
    """List the sets of columns that are protected."""
    parameters = setting.parameters
    if parameters.subsets is not None:
        return list(combinations(setting.columns, parameters.subsets))
    return [tuple(columns) for columns in parameters.sets] or [setting.columns]


def _claims(setting: Setting[Any]) -> tuple[Claim, ...]:
    (claim,) = microaggregation.joint_claims(SOURCE)(setting)
    loose = setting.parameters.missing is MissingMeaning.MATCHES
    basis = (
        "by construction: a record shows only values with which k records agree"
        if loose
        else "by construction: cells are blanked until every combination has k records"
    )
    return tuple(
        replace(
            claim,
            guarantee=KAnonymity(setting.parameters.k, columns, setting.parameters.missing),
            basis=basis,
        )
        for columns in _sets(setting)
    )


def _not_claimed(setting: Setting[Any]) -> tuple[str, ...]:
    texts = [*microaggregation.bare_columns(setting)]
    if setting.parameters.missing is MissingMeaning.MATCHES:
        texts.append(
            "A missing cell counts as agreeing with every value. Anyone who takes it for a value "
            "of its own finds combinations that are rarer than k."
        )
    if not any(set(columns) >= set(setting.columns) for columns in _sets(setting)):
        texts.append("k-anonymity of all protected columns together is not promised.")
    texts.append(
        "A cell that was blanked is known to be rare: anyone who knows the original values of "
        "others can narrow it down."
    )
    return tuple(texts)


def _refuse(setting: Setting[LocalSuppressionParameters]) -> None:
    parameters, schema = setting.parameters, setting.schema
    named: dict[str, Any] = {
        "importance": parameters.importance,
        "levels": parameters.levels,
        "intervals": parameters.intervals,
        "sets": {name for columns in parameters.sets for name in columns},
    }
    for key, names in named.items():
        for name in names:
            if name not in setting.columns:
                guess = did_you_mean(name, setting.columns)
                raise InputError(f"[protect], {key}: no protected column named '{name}'.{guess}")
    if parameters.subsets is not None and parameters.sets:
        raise InputError("[protect], subsets: expected subsets or sets, found both.")
    if parameters.subsets is not None and parameters.subsets > len(setting.columns):
        raise InputError(
            f"[protect], subsets: expected at most {len(setting.columns)}, the number of protected "
            f"columns, found {parameters.subsets}."
        )
    sets = _sets(setting)
    if len(sets) > MOST_SETS or max(map(len, sets)) > WIDEST:
        raise InputError(
            f"[protect]: expected at most {MOST_SETS} sets of at most {WIDEST} columns, found "
            f"{len(sets)} of up to {max(map(len, sets))}. Use other subsets."
        )
    for name, steps in parameters.intervals.items():
        refuse_steps(schema[name], steps)
    for name, level in parameters.levels.items():
        last = height(schema[name], parameters.intervals.get(name))
        if level > last:
            raise InputError(
                f"[protect], levels of '{name}': expected levels from 0 to {last}, found {level}."
            )


def _run(table: Table, setting: Setting[LocalSuppressionParameters], tools: Tools) -> Masked:
    parameters, columns = setting.parameters, setting.columns
    for name, level in parameters.levels.items():
        levels = column_levels(table, name, parameters.intervals.get(name))
        table = levels.write_level(table, name, level)
    codes = np.column_stack([_codes(table.frame[name]) for name in columns])
    place = {name: number for number, name in enumerate(columns)}
    sets, k = [[place[name] for name in subset] for subset in _sets(setting)], parameters.k
    persons = table.persons
    if persons is not None and (many := int(np.unique(persons).size)) < k:
        raise InputError(f"Cannot form one class of k={k:,} persons from {many:,}. Lower k.")
    while True:
        solution = local_suppression(
            codes,
            min(k, len(table)),
            weights=[float(parameters.importance.get(name, 1)) for name in columns],
            sets=sets,
            missing=parameters.missing,
            progress=tools.progress,
        )
        made = np.where(solution.blanked, -1, codes)
        # Twice as many rows hold more persons; all rows hold all of them.
        if (
            persons is None
            or k >= len(table)
            or all(
                persons_agreeing(made[:, subset], persons, parameters.missing) >= parameters.k
                for subset in sets
            )
        ):
            break
        k *= 2
    blanked = [
        pl.when(pl.Series(mask)).then(None).otherwise(pl.col(name)).alias(name)
        for name, mask in zip(columns, solution.blanked.T, strict=True)
    ]
    released = replace(table, frame=table.frame.with_columns(blanked))
    notes = _notes(columns, solution, parameters.missing, exact=persons is None)
    return Masked(released, notes=notes)


def _codes(series: pl.Series) -> np.ndarray[Any, np.dtype[np.int64]]:
    return (series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()


def _notes(
    columns: tuple[str, ...], found: Suppression, meaning: MissingMeaning, *, exact: bool
) -> tuple[str, ...]:
    blanked = found.blanked.sum(axis=0).tolist()
    shown = ", ".join(f"{name} {number:,}" for name, number in zip(columns, blanked, strict=True))
    if not exact:
        return (f"Cells blanked: {shown}. They cost {found.cost:,.6g}; k counts persons.",)
    compared = (
        "no solution"
        if meaning is MissingMeaning.OWN_VALUE
        else "no solution that blanks a cell of every rare record"
    )
    near = (
        f"{compared} costs less"
        if found.exact
        else f"{compared} costs less than {found.bound:,.6g}, so it is at most "
        f"{100 * found.gap:.3g}% above the least of them"
    )
    return (f"Cells blanked: {shown}. They cost {found.cost:,.6g}; {near}.",)


METHOD = Method(
    name="local-suppression",
    summary="Blank the fewest cells so no combination of columns is rarer than k (k-anonymity).",
    reference=SOURCE,
    parameters=LocalSuppressionParameters,
    example=Example({"k": 5}),
    forms=microaggregation.FORMS,
    promises=Promises(_claims, _not_claimed),
    run=_run,
    refuse=_refuse,
    # Where all combinations occur, further rows make none rarer.
    cost=CostModel(0.2, 2.7, 1.3, 0, most_rows=60_000),
    cells=CellFacts(keeps_numbers=True, blanks=True),
)

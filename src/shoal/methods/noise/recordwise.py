"""Methods that group by the quasi-identifiers and randomise each confidential cell.

Groups of at least k records form from the quasi-identifiers alone, by MDAV or Mondrian, and records
of a group share every quasi-identifier: k-anonymity, as in `microaggregation`. Each confidential
cell then passes through a random function Z of its own, at a price for each record:
domingoferrer2015, Section 4.

Proof of epsilon for the confidential columns. Take two tables that differ in the confidential
values of one record. Rows are put in order by the quasi-identifiers, equal ones by the order of the
file; groups form from these alone, and so does what is released for them: all the same in both
tables. The confidential cells of every other record go through the same Z. The changed record's m
cells are m draws, each at epsilon / m, and cost epsilon together. Shuffling rows at random and
clamping noisy numbers to their bounds is post-processing.

So nothing that follows confidential values may touch the groups: not steering by l or t, not
suppressing a record for its confidential value, and not stopping a release because its
confidential values do not look as required. A requirement of l-diversity or t-closeness is refused.

Stochastic t-closeness follows from the class sizes and the price of a record
(`privacy_models.t_from_epsilon`): with N rows t = k/N + (1 - k/N) exp(epsilon), since no class has
fewer than k; where N < 2k there is one class, and t = 1. Before N is known, exp(epsilon) is a
bound. It is a statement about Z, not a check: the shares in a released class are one draw. It
holds for the m columns jointly with epsilon, and for each by itself with its own part, epsilon / m:
both approaches of the paper.

A policy that states t in place of epsilon gets epsilon = ln t, whatever N: exp(epsilon) bounds the
t of any classes. With N known a little more would do (`privacy_models.epsilon_for_t`); the promise
would then change with the table. If t is stated for each column by itself, each costs ln t.

In mathematical notation: docs/explanation/proofs.md, "One cell, one draw".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from shoal.core import (
    ONE_DRAW,
    Claim,
    DifferentialPrivacy,
    LDiversity,
    Neighbours,
    Partition,
    ReleaseForm,
    Role,
    Schema,
    Status,
    StochasticTCloseness,
    TCloseness,
)
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.grouping.microaggregation import MicroaggregationParameters, of_persons, one_row
from shoal.methods.grouping.partition_encoding import encode
from shoal.methods.grouping.recode import recode
from shoal.methods.method import MethodInput, Setting, Tools
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.partition import mdav, mondrian
from shoal.policy.values import MOST, Epsilon, Number, choice
from shoal.privacy_models.stochastic_t_closeness import least_t

SOURCE = (
    "Domingo-Ferrer and Soria-Comas, From t-closeness to differential privacy and vice versa in "
    "data anonymization, Knowledge-Based Systems 74 (2015)"
)
SINGLED = (
    "{}, and t is exp(epsilon), the bound for a class of one record, because the order of the "
    "rows or a public column may show which person a value was drawn for"
)
UNTIL_COUNTED = "; before the number of rows is known, t is the bound exp(epsilon)"
_LARGEST = 700
"""Beyond this epsilon exp(epsilon) is not a finite float, and closeness would say nothing."""


class GroupFormation(StrEnum):
    """How groups are formed."""

    MDAV = "mdav"
    MONDRIAN = "mondrian"


class RecordwiseParameters(MicroaggregationParameters):
    """Parameters of the methods that group quasi-identifiers and protect confidential cells."""

    epsilon: Epsilon | None = Field(
        None,
        title="Privacy loss (epsilon)",
        description="Privacy budget of a record's confidential values together. State this or t.",
    )
    t: Annotated[Number, Field(ge=Decimal("1.000000001"), le=MOST)] | None = Field(
        None,
        title="Largest ratio (t)",
        description="Stochastic t-closeness in place of epsilon, which is then ln t.",
    )
    joint: bool = Field(
        default=True,
        title="Columns are taken jointly",
        description="Whether t is of all confidential columns jointly. Otherwise it is of each, "
        "and each costs ln t.",
    )
    partition: Annotated[GroupFormation, choice(GroupFormation)] = Field(
        GroupFormation.MDAV,
        title="How groups form",
        description="The algorithm that groups the quasi-identifiers.",
    )


@dataclass(frozen=True)
class EpsilonReading:
    """A definition of neighbours for which epsilon is claimed.

    Attributes:
        assumes: beyond what all readings assume.
        about: the tables that it speaks of, in words, if there is another definition.
        instead: if it is refuted, what keeps its aim.
    """

    status: Status
    basis: str
    assumes: tuple[str, ...] = ()
    about: str = ""
    instead: str = ""


def keys(schema: Schema) -> tuple[str, ...]:
    """The quasi-identifiers, which make the groups."""
    return schema.with_role(Role.QUASI_IDENTIFIER)


def confidential(schema: Schema) -> tuple[str, ...]:
    """List the confidential columns, which are randomised cell by cell."""
    return schema.with_role(Role.CONFIDENTIAL)


def columns(schema: Schema) -> tuple[str, ...]:
    """List the protected columns, in the order of the policy."""
    chosen = {*keys(schema), *confidential(schema)}
    return tuple(name for name in schema.names if name in chosen)


INPUT = MethodInput[Any](
    columns,
    clamped=lambda setting: confidential(setting.schema),
    sort_by=lambda setting: keys(setting.schema),
)
"""Confidential cells are clamped; groups form from the quasi-identifiers alone."""


def refuse(setting: Setting[RecordwiseParameters], method: str) -> None:
    """Refuse what would make groups depend on confidential values, or let a column bypass Z."""
    schema = setting.schema
    if not keys(schema):
        raise InputError(
            f"Method '{method}' groups records by their quasi-identifiers, and the policy "
            "has none. Give a column that role."
        )
    if not confidential(schema):
        raise InputError(
            f"Method '{method}' protects the cells of confidential columns, and the policy has "
            "none. Give a column that role, or use mdav or mondrian."
        )
    if set(setting.columns) != set(columns(schema)):
        raise InputError(
            f"[protect], columns: method '{method}' always groups by every quasi-identifier and "
            "protects every confidential column. Remove 'columns', and change the columns' "
            "roles instead."
        )
    _refuse_price(setting.parameters, method)
    if setting.parameters.t is not None and contributions.most(schema) > 1:
        raise InputError(
            "[protect], t: stochastic t-closeness is about one draw for each person, and here a "
            f"person has {contributions.most(schema):,} rows. State epsilon in place of t."
        )
    noisy_microaggregation.check_domains(
        setting, confidential(schema), "the role quasi-identifier or confidential"
    )
    for guarantee in setting.required:
        if isinstance(guarantee, LDiversity | TCloseness):
            raise InputError(
                f"[require], {guarantee.name}: if confidential values steered the groups or "
                "stopped the release, they would be revealed beyond what the noise of "
                f"'{method}' protects. Drop the requirement, or use mondrian, which meets it "
                "without noise."
            )


def _refuse_price(parameters: RecordwiseParameters, method: str) -> None:
    if (parameters.epsilon is None) is (parameters.t is None):
        given = "neither" if parameters.t is None else "both"
        raise InputError(
            f"[protect]: method '{method}' takes either epsilon or t; found {given}. `shoal "
            "closeness` shows which t corresponds to which epsilon."
        )
    if parameters.t is None and not parameters.joint:
        raise InputError(
            "[protect], joint: epsilon always covers all confidential columns together. State "
            "t, or remove joint."
        )


def group(table: Table, setting: Setting[RecordwiseParameters], tools: Tools) -> Partition:
    """Group the records by their quasi-identifiers alone."""
    names, k = keys(setting.schema), setting.parameters.k
    if setting.parameters.partition is GroupFormation.MDAV:
        return mdav(table.records(names), k, progress=tools.progress)
    tools.progress("cutting at medians", 0, 1)
    X, borders = encode(table, names)
    return mondrian(X, k, borders=borders)


def centre(table: Table, setting: Setting[RecordwiseParameters], partition: Partition) -> Table:
    """Give every group one value in each quasi-identifier."""
    parameters = setting.parameters
    return recode(
        table,
        keys(setting.schema),
        partition,
        aggregate=parameters.aggregate,
        integers=parameters.integers,
    )


def epsilon(setting: Setting[RecordwiseParameters]) -> Fraction:
    """Return the epsilon of a person, for all confidential columns and rows together."""
    rows = contributions.most(setting.schema)
    return price(setting) * len(confidential(setting.schema)) * rows


def price(setting: Setting[RecordwiseParameters]) -> Fraction:
    """Return the epsilon of one confidential cell."""
    parameters, m = setting.parameters, len(confidential(setting.schema))
    if parameters.epsilon is not None:
        return contributions.row_epsilon(setting) / m
    return _log(parameters.t or Decimal(1)) / (m if parameters.joint else 1)


def _log(t: Decimal) -> Fraction:
    """The logarithm of t, rounded down to six digits: exp of it is at most t.

    `ln` is off by less than one unit of its last digit, which is taken off first.
    """
    exact = Context(30)
    below = Decimal(0) if t == 1 else exact.next_minus(exact.ln(t))
    return Fraction(Context(prec=6, rounding=ROUND_FLOOR).create_decimal(below))


def alone(table: Table) -> Partition:
    """Make every record a group of its own."""
    return Partition(np.arange(len(table)))


def claims(
    setting: Setting[RecordwiseParameters], readings: Sequence[EpsilonReading]
) -> tuple[Claim, ...]:
    """Claim k-anonymity, epsilon by each definition, and stochastic t-closeness.

    Stochastic t-closeness rests on the first reading.
    """
    k_anonymity = epsilon_claims.claim_shared_rows(
        setting,
        setting.parameters.k,
        SOURCE,
        keys(setting.schema),
        "by construction: every group has at least k records, which share all quasi-identifiers",
    )
    spoken = [_weaken(setting, reading) for reading in readings]
    prices = [_price_claim(setting, reading) for reading in spoken]
    return (k_anonymity, *prices, *_closeness(setting, spoken[0]))


def _weaken(setting: Setting[RecordwiseParameters], reading: EpsilonReading) -> EpsilonReading:
    """Make a proof conditional if categories were copied from the data; say what rows cost."""
    schema = setting.schema
    if reading.status is Status.REFUTED:
        return reading
    reading = replace(reading, basis=epsilon_claims.explain_rows(reading.basis, schema))
    observed = [name for name in confidential(schema) if schema[name].observed]
    if not observed:
        return reading
    given = f"the categories of {', '.join(observed)}, which were copied from the data, are public"
    assumes = (*reading.assumes, given)
    return replace(reading, status=Status.CONDITIONAL, assumes=assumes)


def _price_claim(setting: Setting[RecordwiseParameters], reading: EpsilonReading) -> Claim:
    schema = setting.schema
    public = [name for name in schema.released if name not in setting.columns]
    shown = (f"the public columns {', '.join(public)}",) if public else ()
    rows = contributions.most(schema)
    return Claim(
        guarantee=DifferentialPrivacy(
            epsilon=epsilon(setting),
            neighbours=Neighbours.CHANGE_ONE,
            protects=confidential(schema),
            invariants=(
                "the number of rows",
                f"the quasi-identifiers of every row: {', '.join(keys(schema))}",
                *shown,
                "who is in the table",
            ),
            privacy_unit="row" if schema.persons is None else "person",
            rows=rows,
            about=reading.about,
        ),
        status=reading.status,
        basis=reading.basis,
        assumes=(*one_row(schema), epsilon_claims.FILE_ORDER, *reading.assumes),
        source=f"{epsilon_claims.OURS}; after {SOURCE}, Section 4",
        release_form=setting.release_form,
        instead=reading.instead,
    )


def _closeness(
    setting: Setting[RecordwiseParameters], reading: EpsilonReading
) -> tuple[Claim, ...]:
    """Claim stochastic t-closeness of all confidential columns jointly, and of each one.

    Proposition 1 treats what is seen of a person as a draw from the class. Rows in the order of the
    file, or a public column beside them, may show whose draw it is; then t is exp(epsilon), which
    holds for a class of one. Of a person with several rows several draws are seen: no claim.
    """
    columns, schema = confidential(setting.schema), setting.schema
    if contributions.most(schema) > 1:
        return ()
    singled = setting.release_form is ReleaseForm.ROW_ALIGNED or any(
        name not in setting.columns for name in schema.released
    )
    rows = None if singled else setting.rows
    proof = (
        "Proposition 1, with N - |E| as in its proof: {}, and every class has at least k records"
    )
    basis = SINGLED if singled else proof + ("" if rows else UNTIL_COUNTED)
    order = (epsilon_claims.FILE_ORDER,) if singled else (ONE_DRAW,)
    record = ((columns, epsilon(setting), "a record costs epsilon"),)
    singles = ((name,) for name in columns) if len(columns) > 1 else ()
    by_column = ((s, price(setting), "the column costs its share of epsilon") for s in singles)
    return tuple(
        Claim(
            guarantee=StochasticTCloseness(
                least_t(float(cost), setting.parameters.k, rows), of, keys(schema)
            ),
            status=of_persons(schema, reading.status),
            basis=basis.format(why),
            assumes=(*one_row(schema), *order, *reading.assumes),
            source=f"{SOURCE}, Proposition 1",
            release_form=setting.release_form,
        )
        for of, cost, why in (*record, *by_column)
        if cost <= _LARGEST
    )


def not_claimed(setting: Setting[RecordwiseParameters]) -> tuple[str, ...]:
    """Say what is not claimed."""
    schema = setting.schema
    public = [name for name in schema.released if name not in setting.columns]
    shown = f" Public columns are released unchanged: {', '.join(public)}." if public else ""
    differential = (
        f"Differential privacy of {', '.join(keys(schema))} is not promised: they are grouped "
        f"without noise, and who is in the table is not hidden.{shown}"
    )
    closeness = (
        "t-closeness of the released table is not promised, only of the distribution from which "
        "its confidential values were drawn."
    )
    if contributions.most(schema) > 1:
        closeness = (
            "Stochastic t-closeness is not promised, because several values are drawn for a person."
        )
    return differential, closeness

"""The decisions of a steward, section by section of the policy file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from shoal.core.claims import ReleaseForm
from shoal.core.columns import Schema
from shoal.core.constraints import Constraint
from shoal.core.guarantees import Guarantee


class Audience(StrEnum):
    """Who will get a release, which decides which claims suffice (`shoal.pipeline.audiences`).

    `public-use`: Anybody may have the table, so a claim must be proved.
    `scientific-use`: Named recipients get the table under contract, so a claim may be
    conditional.
    `secure-use`: Your own staff use the table where you keep it, so no claim is needed.
    """

    PUBLIC_USE = "public-use"
    SCIENTIFIC_USE = "scientific-use"
    SECURE_USE = "secure-use"


class Extract(StrEnum):
    """By which facts the rule that extracted a table from its source selects rows.

    `public`: The rule reads public facts of a row, such as a year.
    `row`: The rule reads cells of the row alone.
    `table`: The rule reads other rows too, as for the thousand highest incomes, or for what is
    left after duplicates were dropped.
    """

    PUBLIC = "public"
    ROW = "row"
    TABLE = "table"


@dataclass(frozen=True)
class FileReading:
    """How a file is written, as `[reading]` states it. None where that is detected."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    header_row: str | None = None
    skip: str | None = None
    date_format: str | None = None
    rows: int | None = None
    multiline: bool = False


@dataclass(frozen=True)
class BudgetUse:
    """Which budget file pays for a release, and how its table relates to the source.

    `shoal.policy.sections.BudgetSpec` says what each key means.
    """

    file: Path
    source: str
    extract: str = ""
    extract_by: Extract | None = None
    max_contributions: int | None = None


class BoxKernel(StrEnum):
    """How an attacker spreads the count of a box.

    `even`: The count lies evenly over the box, as cormode2013 has it. `middle`: All of it lies in
    the middle. `wide`: It lies evenly over twice the width.
    """

    EVEN = "even"
    MIDDLE = "middle"
    WIDE = "wide"


@dataclass(frozen=True)
class EvaluationChoices:
    """What an evaluation computes beyond its defaults, as `[evaluate]` states it.

    `shoal.policy.spec.EvaluateSpec` says what each key means.
    """

    rules: tuple[str, ...] = ()
    groups: str | None = None
    learn: str | None = None
    secret: str | None = None
    regression: str | None = None
    queries: Path | None = None
    query_columns: tuple[str, ...] = ()
    round_down: bool = False
    smoothing: Decimal = Decimal(1)
    kernel: BoxKernel = BoxKernel.EVEN
    surest: int | None = None


@dataclass(frozen=True)
class ConstraintChoices:
    """Public rules between columns, as the policy states them.

    `shoal.policy.sections.ConstraintsSpec` says what each key means.
    """

    rules: tuple[Constraint, ...] = ()
    observed: bool = False
    repair: bool = False


@dataclass(frozen=True)
class Policy:
    """The decisions of a steward: columns, method, and required guarantees.

    Attributes:
        required: the guarantees of `[require]`.
        writing: how a CSV release is written; `[reading]` decides what is not stated.
        context: what the officer's report says besides figures; never published.
        audience: who will get the release, if stated; its claims must then suffice for them.
        pseudonym_key: the file with the secret of pseudonyms and date shifts.
        population: the file with the people of the population, for a risk that is required.
        drafted: a program drafted the policy, and nobody has reviewed it.
        accept_constant: columns that a method without epsilon may make constant.
        accept_distinct: columns that are released as they are, though few share their values.
        document: the policy as plain JSON values, without `[context]`, `[budget]` and
            `[evaluate]`; it is published.
        digest: SHA-256 of the document and of the files that it names.
    """

    schema: Schema
    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...] | None
    release_form: ReleaseForm | None
    document: Mapping[str, Any]
    digest: str
    required: tuple[Guarantee, ...] = ()
    reading: FileReading = field(default_factory=FileReading)
    writing: Mapping[str, str | None] = field(default_factory=dict)
    budget: BudgetUse | None = None
    context: Mapping[str, str | None] = field(default_factory=dict)
    evaluate: EvaluationChoices = field(default_factory=EvaluationChoices)
    audience: Audience | None = None
    drafted: bool = False
    accept_constant: tuple[str, ...] = ()
    accept_distinct: tuple[str, ...] = ()
    constraints: ConstraintChoices = field(default_factory=ConstraintChoices)
    population: Path | None = None
    pseudonym_key: Path | None = None

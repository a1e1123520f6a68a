"""What a steward decided, section by section of the policy file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from shoal.core.claims import ReleaseForm
from shoal.core.columns import Schema
from shoal.core.guarantees import Guarantee


class Audience(StrEnum):
    """Who will get a release; see `shoal.pipeline.audiences` for the claims that each needs."""

    PUBLIC_USE = "public-use"
    SCIENTIFIC_USE = "scientific-use"
    SECURE_USE = "secure-use"


class Extract(StrEnum):
    """By what a table was cut out of its source.

    `public`: by public facts of a row. `row`: by cells of the row alone. `table`: by other rows
    too, as the first thousand by income, or what is left after duplicates were dropped.
    """

    PUBLIC = "public"
    ROW = "row"
    TABLE = "table"


@dataclass(frozen=True)
class FileReading:
    """`[reading]`: how the data file is written; none where that is found out."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class FileWriting:
    """`[writing]`: how a CSV release is written; none where `[reading]` decides."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class BudgetUse:
    """`[budget]`: which budget a release is paid from, and what its table is of the source.

    `shoal.policy.spec.BudgetSpec` says what each key means.
    """

    file: Path
    source: str
    extract: str = ""
    extract_by: Extract | None = None
    max_contributions: int | None = None


@dataclass(frozen=True)
class EvaluationChoices:
    """`[evaluate]`: what `shoal evaluate` looks at beside its own choice.

    `shoal.policy.spec.EvaluateSpec` says what each key means.
    """

    rules: tuple[str, ...] = ()
    groups: str | None = None
    learn: str | None = None
    secret: str | None = None
    regression: str | None = None
    queries: Path | None = None
    smoothing: Decimal = Decimal(1)


@dataclass(frozen=True)
class ReportContext:
    """`[context]`: what the officer's report says beside figures; never published."""

    recipient: str | None = None
    environment: str | None = None
    purpose: str | None = None
    legal_basis: str | None = None
    earlier_releases: str | None = None
    approver: str | None = None


@dataclass(frozen=True)
class Policy:
    """What a steward decided: the columns, the method, and the promises required.

    Attributes:
        required: the guarantees of `[require]`.
        audience: who will get the release, if stated; then its claims must do for them.
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
    writing: FileWriting = field(default_factory=FileWriting)
    budget: BudgetUse | None = None
    context: ReportContext = field(default_factory=ReportContext)
    evaluate: EvaluationChoices = field(default_factory=EvaluationChoices)
    audience: Audience | None = None

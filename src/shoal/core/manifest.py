"""What is said of a release: the shape of `manifest.json`, which readers and writers share."""

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from shoal.core import Neighbours, ReleaseForm, Status
from shoal.core.serialise import plain


def _exact(value: object) -> object:
    """Parse an exact number; `plain` writes a fraction that is not a decimal as text."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number or (isinstance(value, str) and re.fullmatch(r"\d{1,999}/\d{1,999}", value)):
        try:
            return Fraction(str(value))
        except ZeroDivisionError:
            return value
    return value


Count = Annotated[int, Field(ge=0)]
Exact = Annotated[
    Fraction,
    BeforeValidator(_exact, json_schema_input_type=float | str),
    PlainSerializer(plain),
]


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )

    def as_values(self) -> dict[str, Any]:
        """Write it as plain JSON values, as they stand in `manifest.json`."""
        values: dict[str, Any] = plain(self.model_dump(exclude_unset=True))
        return values


class ClaimRecord(_Record):
    """A promise, with its status and the reason."""

    guarantee: dict[str, Any] = Field(description="What is promised: its name and its parameters.")
    status: Status = Field(strict=False, description="How far the promise is known to be true.")
    basis: str = Field(
        description="Why the promise is true, in plain words, or the counterexample."
    )
    assumes: list[str] = Field(
        description="What must hold outside the table for the promise to be true."
    )
    source: str = Field(description="Where the proof or the method is published.")
    release_form: ReleaseForm = Field(
        strict=False, description="The release form for which the promise is claimed."
    )
    instead: str = Field(
        "",
        description="Of a refuted promise, what keeps its aim with a proof, and at what price.",
    )


class CheckRecord(_Record):
    """A guarantee recomputed on the released table."""

    guarantee: dict[str, Any] = Field(
        description="The promise that was checked, written as in a claim."
    )
    holds: bool = Field(description="Whether the released table keeps the promise.")
    achieved: int | float | str = Field(
        description="The best parameter with which the promise holds: for k-anonymity the size "
        "of the "
        "smallest group, in persons where the policy numbers them."
    )
    witness: dict[str, Any] = Field(
        description="The group that decides: its size and some of its rows in the released table, "
        "from 1, or of its boxes in a tree; never cells."
    )
    remarks: dict[str, Any] = Field(
        description="Further facts about the check, such as the number of groups (classes)."
    )


class PrivacyLossRecord(_Record):
    """An entry of the accounting: a mechanism, its target and its privacy loss."""

    mechanism: str = Field(
        description="The mechanism that drew the noise: discrete-laplace, permute-and-flip for "
        "a private selection, or "
        "randomised-response for a category of one record; "
        "with a delta also discrete-gaussian, exponential-mechanism for a selection, and "
        "gaussian-threshold for texts that nobody knew."
    )
    target: str = Field(description="The column that the noise was drawn for.")
    sensitivity: Exact = Field(
        description="How far one record, or all rows of a person, can move all group sums "
        "together, in steps of the column's grid (2^20 for its width); for a selection in units "
        "of the distance between categories; of Gaussian noise the square of the L2 distance."
    )
    scale: Exact = Field(description="The scale of the noise, in the units of the sensitivity.")
    epsilon: Exact | None = Field(
        description="The epsilon that the entry costs. Those of all entries add up to the claim. "
        "Null where it costs a rho."
    )
    neighbours: Neighbours = Field(
        strict=False, description="The kind of neighbouring tables for which the sensitivity holds."
    )
    draws: Count = Field(description="How many values were drawn: one for each group.")
    parallel: str | None = Field(
        description="The division of the records into disjoint parts, if the entry reads one part "
        "alone: a stratum."
    )
    part: str | None = Field(description="Which part of that division the entry reads.")
    fixed: bool = Field(description="Whether the parts of the division follow public facts only.")
    rho: Exact | None = Field(
        None,
        description="What the entry costs in zero-concentrated differential privacy, where a delta "
        "is claimed and the entries add up to its rho. A pure epsilon counts as half its square.",
    )
    unit_scale: float | None = Field(
        None,
        description="Of noise on groups, the scale of the noise on a group's sum in the column's "
        "unit. The mean of a group of |C| records has noise of this scale divided by |C|: what the "
        "papers write as Delta / (|C| epsilon).",
    )
    threshold: int | None = Field(
        None,
        description="Of texts that nobody knew, the noisy count from which on one is released.",
    )
    delta: Exact = Field(
        Fraction(0),
        description="Of these, the probability with which one of them shows that a person is "
        "there. It is part of the delta that is claimed.",
    )


class DrawRecord(_Record):
    """The noise's own count of values, by mechanism and scale."""

    mechanism: str = Field(description="The mechanism that drew the noise.")
    scale: Exact = Field(description="The scale of its noise.")
    count: Count = Field(description="How many values it drew.")


class FileRecord(_Record):
    """A file of the release."""

    sha256: str = Field(description="The SHA-256 digest of the file.")
    bytes: Count = Field(description="The length of the file in bytes.")


class Manifest(_Record):
    """What was done, what is claimed, what was checked.

    Of a release that was not written yet, `guard_formulas`, `dialect` and `files` are empty.
    """

    shoal_version: str = Field(description="The version of Shoal that made the release.")
    versions: dict[str, str] = Field(
        description="Versions of Python, Shoal, numpy, polars and opendp, which decide what a "
        "release holds."
    )
    created: str = Field(description="When the release was made, in UTC.")
    method: str = Field(description="The name of the method.")
    reference: str = Field(description="Where the method is published.")
    parameters: dict[str, Any] = Field(
        description="The parameters of the method, defaults included."
    )
    protected_columns: list[str] = Field(description="The columns that the method protects.")
    release_form: ReleaseForm = Field(
        strict=False, description="How the rows of the release relate to those of the original."
    )
    audience: str | None = Field(
        description="Who will get the release, as [release] or --audience states it; null where "
        "nothing was stated."
    )
    policy: dict[str, Any] = Field(
        description="The policy, without [context] and [budget] and without categories that were "
        "only observed; under files the SHA-256 of the files that it names."
    )
    hierarchies: dict[str, list[list[str]]] = Field(
        description="For each released column with a hierarchy its rows, leaf first; not of those "
        "that were only observed."
    )
    policy_digest: str = Field(description="The SHA-256 of the policy.")
    not_claimed: list[str] = Field(
        description="Sentences on what readers might expect and is not promised."
    )
    rows: Count = Field(description="The number of rows.")
    suppressed: Count = Field(description="The number of rows that were left out.")
    columns: dict[str, str] = Field(description="The released columns with their types.")
    claims: list[ClaimRecord] = Field(description="What is promised.")
    notes: list[str] = Field(
        description="Sentences on keys of the policy that the method does not use, and on how the "
        "run went: what auto chose and why, and warnings."
    )
    checks: list[CheckRecord] = Field(description="What was recomputed on the released table.")
    privacy_losses: list[PrivacyLossRecord] = Field(
        description="The accounting of an epsilon release: an entry for each protected column."
    )
    draws: list[DrawRecord] = Field(
        description="What the noise itself counted, by mechanism and scale. The privacy losses "
        "account for all of it."
    )
    guard_formulas: bool = Field(
        description="Whether text that a spreadsheet would run has an apostrophe before it: so in "
        "every CSV file and workbook without --no-guard-formulas."
    )
    dialect: dict[str, str] = Field(
        description="How a CSV release is written: its delimiter, decimal mark and encoding."
    )
    files: dict[str, FileRecord] = Field(
        description="Each file of the release but the manifest, with its digest and length."
    )
    found: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="What was found with noise of each column that the policy leaves open "
        "(discover): keys of its line in a policy, and under outside the share of its values that "
        "were clamped, by noisy counts.",
    )


def json_schema() -> dict[str, Any]:
    """Describe `manifest.json` as a JSON schema."""
    schema = Manifest.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

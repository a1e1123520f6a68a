"""The shape of `manifest.json`, as pydantic models, and reading one that anybody may have written.

`protect_table` and `protect_file` write a manifest; `verify_folder` compares it with the folder.
"""

import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shoal.core import Neighbours, ReleaseForm, Status
from shoal.core.serialise import parse_json, plain
from shoal.errors import InputError
from shoal.policy.misfits import EXPECTED
from shoal.policy.values import choice

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
"""The signature of the manifest, where a release is signed; see `shoal.publish.signing`."""
PUBLIC_VERSIONS = ("shoal", "numpy", "polars", "opendp")
"""Packages that decide what a release holds; their versions tell nothing of the machine."""


def list_deciding_versions(package: str) -> dict[str, str]:
    """List the versions that decide what a release holds; `package` is a method's own, if any."""
    return list_versions([*PUBLIC_VERSIONS, *([package] if package else [])])


def list_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of packages, of those that are there."""
    versions = {name: version_of(name) for name in packages}
    return {"python": platform.python_version()} | {n: v for n, v in versions.items() if v}


@cache
def version_of(package: str) -> str:
    """The version of a package, or nothing; looking one up takes milliseconds."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _exact(value: object) -> object:
    """Read a number as it is written: `plain` writes a fraction that is not a decimal as text."""
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
]


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )


class ClaimRecord(_Record):
    """A promise, with how far it is known to be true and why."""

    guarantee: dict[str, Any] = Field(description="What is promised: its name and its parameters.")
    status: Annotated[Status, choice(Status)] = Field(
        description="How far the promise is known to be true."
    )
    basis: str = Field(
        description="Why the promise is true, in plain words, or the counterexample."
    )
    assumes: list[str] = Field(
        description="What must hold outside the table for the promise to be true."
    )
    source: str = Field(description="Where the proof or the method is published.")
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)] = Field(
        description="The release form for which the promise is claimed."
    )


class CheckRecord(_Record):
    """A guarantee that was recomputed on the released table."""

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
    """What a mechanism was allowed to learn, and at what price."""

    mechanism: str = Field(
        description="The mechanism that drew the noise: discrete-laplace, permute-and-flip for "
        "a private selection, or "
        "randomised-response for a category of one record; "
        "with a delta also discrete-gaussian, and exponential-mechanism for a selection."
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
    neighbours: Annotated[Neighbours, choice(Neighbours)] = Field(
        description="The kind of neighbouring tables for which the sensitivity holds."
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


class DrawRecord(_Record):
    """What the noise itself counted: values of one mechanism and scale."""

    mechanism: str = Field(description="The mechanism that drew the noise.")
    scale: Exact = Field(description="The scale of its noise.")
    count: Count = Field(description="How many values it drew.")


class FileRecord(_Record):
    """A file of the release."""

    sha256: str = Field(description="The SHA-256 digest of the file.")
    bytes: Count = Field(description="The length of the file in bytes.")


class Manifest(_Record):
    """What was done, what is claimed, what was checked."""

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
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)] = Field(
        description="How the rows of the release relate to those of the original."
    )
    audience: str | None = Field(
        description="Who will get the release, as [release] or --audience states it; null where "
        "nothing was stated."
    )
    rows: Count = Field(description="The number of rows.")
    suppressed: Count = Field(description="The number of rows that were left out.")
    columns: dict[str, str] = Field(description="The released columns with their types.")
    policy: dict[str, Any] = Field(
        description="The policy, without [context] and [budget] and without categories that were "
        "only observed; under files the SHA-256 of the files that it names."
    )
    hierarchies: dict[str, list[list[str]]] = Field(
        description="For each released column with a hierarchy its rows, leaf first; not of those "
        "that were only observed."
    )
    policy_digest: str = Field(description="The SHA-256 of the policy.")
    claims: list[ClaimRecord] = Field(description="What is promised.")
    not_claimed: list[str] = Field(
        description="Sentences on what readers might expect and is not promised."
    )
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


def json_schema() -> dict[str, Any]:
    """Describe `manifest.json` as a JSON schema."""
    schema = Manifest.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@dataclass(frozen=True)
class Recorded:
    """A manifest that was read.

    Attributes:
        raw: its bytes, which a signature is about.
        values: as plain JSON values.
        fields: the same, checked.
    """

    raw: bytes
    values: dict[str, Any]
    fields: Manifest


def read(folder: Path) -> Recorded:
    """Read the manifest of a release; refuse a folder without one, or one of another shape."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"'{folder}' is not a Shoal release: expected a folder with {MANIFEST}, found none."
        )
    try:
        raw = path.read_bytes()
        content = parse_json(raw)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read '{path}': {reason}.") from None
    except ValueError:
        raise InputError(
            f"'{folder}' is not a Shoal release: its {MANIFEST} is damaged or not JSON."
        ) from None
    try:
        return Recorded(raw, content, Manifest.model_validate(content))
    except ValidationError as error:
        raise InputError(
            f"'{folder}' is not a Shoal release of this version: {MANIFEST}, {_misfit(error)}"
        ) from None


def _misfit(error: ValidationError) -> str:
    """The first place that does not fit, and what was expected there."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "top level"
    if first["type"] == "extra_forbidden":
        return f"{place!a}: unknown field."
    if first["type"] == "missing":
        return f"{place!a}: expected this field, found none."
    if first["type"] == "shoal":
        return f"{place!a}: {ascii(first['msg'])[1:-1]}"
    text = EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
    return f"{place!a}: expected {text}".rstrip(".") + "."


def reread(value: Any) -> Any:
    """A plain value as it comes back from a JSON file."""
    return json.loads(json.dumps(plain(value)))


def list_differences(stated: Any, derived: Any, place: str) -> Iterator[str]:
    """Where two plain values differ, each difference a sentence."""
    if isinstance(stated, Mapping) and isinstance(derived, Mapping):
        for name in dict.fromkeys([*derived, *stated]):
            inner = f"{place}.{ascii(name)[1:-1]}"
            if name not in stated:
                yield f"{inner}: expected {abridge(derived[name])}, and nothing is recorded."
            elif name not in derived:
                yield f"{inner}: {abridge(stated[name])} recorded, expected nothing."
            else:
                yield from list_differences(stated[name], derived[name], inner)
    elif isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        for number, (item, other) in enumerate(zip(stated, derived, strict=True)):
            yield from list_differences(item, other, f"{place}.{number}")
    elif stated != derived or isinstance(stated, bool) is not isinstance(derived, bool):
        yield f"{place}: {abridge(stated)} recorded, {abridge(derived)} derived."


def abridge(value: Any) -> str:
    """A value of a manifest as JSON, cut off where it is long."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

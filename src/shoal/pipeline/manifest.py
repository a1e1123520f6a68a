"""The shape of `manifest.json`, as pydantic models, and reading one that anybody may have written.

`protect_table` and `protect_file` write a manifest; `verify_folder` compares it with the folder.
"""

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shoal.core import Neighbours, ReleaseForm, Status
from shoal.core.serialise import parsed
from shoal.errors import InputError
from shoal.policy.spec import EXPECTED, choice

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
"""The signature of the manifest, where a release is signed; see `shoal.pipeline.signing`."""
PUBLIC_VERSIONS = ("shoal", "numpy", "polars", "opendp")
"""Packages that decide what a release holds; their versions tell nothing of the machine."""


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of packages, of those that are there."""
    found = {name: _version(name) for name in packages}
    return {"python": platform.python_version()} | {n: v for n, v in found.items() if v}


@cache
def _version(package: str) -> str:
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

    guarantee: dict[str, Any]
    status: Annotated[Status, choice(Status)]
    basis: str
    assumes: list[str]
    source: str
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)]


class CheckRecord(_Record):
    """A guarantee that was recomputed on the released table."""

    guarantee: dict[str, Any]
    holds: bool
    achieved: int | float | str
    witness: dict[str, Any]
    remarks: dict[str, Any]


class PrivacyLossRecord(_Record):
    """What a mechanism was allowed to learn, and at what price."""

    mechanism: str
    target: str
    sensitivity: Exact
    scale: Exact
    epsilon: Exact
    neighbours: Annotated[Neighbours, choice(Neighbours)]
    draws: Count
    parallel: str | None
    part: str | None
    fixed: bool


class DrawRecord(_Record):
    """What the noise itself counted: values of one mechanism and scale."""

    mechanism: str
    scale: Exact
    count: Count


class FileRecord(_Record):
    """A file of the release."""

    sha256: str
    bytes: Count


class Manifest(_Record):
    """What was done, what is claimed, what was checked."""

    shoal_version: str
    versions: dict[str, str]
    created: str
    method: str
    reference: str
    parameters: dict[str, Any]
    protected_columns: list[str]
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)]
    audience: str | None
    rows: Count
    suppressed: Count
    columns: dict[str, str]
    policy: dict[str, Any]
    hierarchies: dict[str, list[list[str]]]
    policy_digest: str
    claims: list[ClaimRecord]
    not_claimed: list[str]
    notes: list[str]
    checks: list[CheckRecord]
    privacy_losses: list[PrivacyLossRecord]
    draws: list[DrawRecord]
    guard_formulas: bool
    dialect: dict[str, str]
    files: dict[str, FileRecord]


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
        found = parsed(raw)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read '{path}': {reason}.") from None
    except ValueError:
        raise InputError(
            f"'{folder}' is not a Shoal release: its {MANIFEST} is damaged or not JSON."
        ) from None
    try:
        return Recorded(raw, found, Manifest.model_validate(found))
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

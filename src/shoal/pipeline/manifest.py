"""Read a `manifest.json` that anybody may have written, and derive what follows from its policy.

`shoal.core.manifest` has its shape.
"""

import platform
from collections.abc import Container, Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core import Kind, Role
from shoal.core.manifest import Manifest
from shoal.core.serialise import parse_json, plain
from shoal.errors import InputError
from shoal.pipeline.planning import Plan
from shoal.policy.misfits import EXPECTED

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
"""The signature of the manifest, where a release is signed; see `shoal.publish.signing`."""
PUBLIC_VERSIONS = ("shoal", "numpy", "polars", "opendp")
"""Packages that decide what a release holds; their versions tell nothing of the machine."""


def list_deciding_versions(package: str) -> dict[str, str]:
    """List the versions that decide what a release holds; `package` is a method's own, if any."""
    return list_versions([*PUBLIC_VERSIONS, *([package] if package else [])])


def list_versions(packages: Iterable[str]) -> dict[str, str]:
    """List the versions of Python and of the installed ones among some packages."""
    versions = {name: version_of(name) for name in packages}
    return {"python": platform.python_version()} | {n: v for n, v in versions.items() if v}


@cache
def version_of(package: str) -> str:
    """Return the version of a package, or an empty text; one lookup takes milliseconds."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def read(folder: Path) -> Manifest:
    """Read the manifest of a release; refuse an absent one, or one with another shape."""
    return parse(folder, read_raw(folder))


def read_raw(folder: Path) -> bytes:
    """Read the bytes of a manifest, which a signature is about."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"'{folder}' is not a Shoal release: expected a folder with {MANIFEST}, found none."
        )
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read '{path}': {reason}.") from None


def parse(folder: Path, raw: bytes) -> Manifest:
    """Check the bytes of a folder's manifest, which anybody may have written."""
    try:
        return Manifest.model_validate(parse_json(raw))
    except ValidationError as error:
        raise InputError(
            f"'{folder}' is not a Shoal release of this version: {MANIFEST}, {_misfit(error)}"
        ) from None
    except ValueError:
        raise InputError(
            f"'{folder}' is not a Shoal release: its {MANIFEST} is damaged or not JSON."
        ) from None


def _misfit(error: ValidationError) -> str:
    """Describe the first field that does not fit, and what was expected."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "top level"
    if first["type"] == "extra_forbidden":
        return f"{place!a}: unknown field."
    if first["type"] == "missing":
        return f"{place!a}: expected this field, found none."
    text = EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
    return f"{place!a}: expected {text}".rstrip(".") + "."


def derive_fields(planned: Plan) -> dict[str, Any]:
    """Derive the fields of a manifest that follow from its policy alone."""
    return {
        "method": planned.method.name,
        "reference": planned.method.reference,
        "parameters": plain(planned.setting.parameters.model_dump()),
        "protected_columns": list(planned.setting.columns),
        "release_form": planned.setting.release_form.value,
        "audience": plain(planned.policy.audience),
        "policy": dict(planned.policy.document),
        "hierarchies": {
            column.name: [list(path) for path in column.stated_hierarchy.paths]
            for column in planned.policy.schema.columns
            if column.stated_hierarchy
            and not column.observed
            and column.role is not Role.IDENTIFIER
        },
        "policy_digest": planned.policy.digest,
        "not_claimed": list(planned.not_claimed),
    }


def select_labels(
    planned: Plan, labels: Mapping[str, Any], columns: Container[str]
) -> dict[str, Any]:
    """Select labels of the released columns: the policy's, and without epsilon the file's.

    A file's labels may list the values of its table, or be written with a look at them: beside
    noise only those are released that the policy states. How a column is measured follows from its
    kind in the policy.
    """
    kept: dict[str, dict[str, Any]] = {
        sort: {
            name: label
            for name, label in labels.get(sort, {}).items()
            if name in columns and not planned.method.noisy
        }
        for sort in ("columns", "values", "measures")
    }
    stated = [column for column in planned.policy.schema.columns if column.name in columns]
    kept["columns"] |= {column.name: column.label for column in stated if column.label}
    kept["values"] |= {c.name: dict(c.value_labels) for c in stated if c.value_labels}
    if not any(kept.values()):
        return {}
    kept["measures"] |= {column.name: _MEASURES[column.kind] for column in stated if column.kind}
    return kept


_MEASURES = {
    Kind.NUMERIC: "scale", Kind.DATE: "scale", Kind.ORDINAL: "ordinal", Kind.NOMINAL: "nominal",
}  # fmt: skip

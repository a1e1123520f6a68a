"""Read a `manifest.json` that anybody may have written, and the versions that it names.

`shoal.core.manifest` has its shape.
"""

import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import ValidationError

from shoal.core.manifest import Manifest
from shoal.core.serialise import parse_json
from shoal.errors import InputError
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

"""Methods of other packages, named by an entry point and loaded only when a policy names one.

A package that has a `Method` states it in its `pyproject.toml`:

    [project.entry-points."shoal.methods"]
    swap = "swapping.shoal:METHOD"

A policy can then say `method = "swap"`. No such package can change what Shoal does otherwise: none
is imported before its method is named, and a name of ours is never looked up.

What it claims is at most conditional, on the package doing what it says. Shoal has not read its
proof, and its code sees the original, as every method does. Checks of the finished table, the
accounting of its draws and the budget are those of every release.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shoal.core import Claim, Status
from shoal.errors import InputError
from shoal.methods.method import Method, Setting

GROUP = "shoal.methods"


_OFFERED: dict[str, Method[Any]] = {}


@contextmanager
def offer(method: Method[Any]) -> Iterator[None]:
    """Let policies name a method while a test runs, as if a package offered it."""
    _OFFERED[method.name] = _weaken(method, method.package or "under test", "")
    try:
        yield
    finally:
        del _OFFERED[method.name]


def external_names() -> tuple[str, ...]:
    """List the names of methods that other installed packages offer, without loading them."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load_external(name: str) -> Method[Any] | None:
    """Load the method of this name from the package that offers it; None if no package does.

    Raises:
        InputError: several packages offer it, it cannot be loaded, or it is not a method.
    """
    return _OFFERED.get(name) or _load(name)


@cache
def _load(name: str) -> Method[Any] | None:
    points = {point.dist.name if point.dist else "": point for point in _points(name)}
    if not points:
        return None
    if len(points) > 1:
        packages = " and ".join(f"'{package}'" for package in sorted(points))
        raise InputError(
            f"The packages {packages} both offer a method named '{name}'. Uninstall one of them."
        )
    ((package, point),) = points.items()
    try:
        method = point.load()
    except Exception as error:
        raise InputError(
            f"The method '{name}' of the package '{package}' cannot be loaded: "
            f"{type(error).__name__} in {point.value}. Ask its authors, or install it again."
        ) from error
    if not isinstance(method, Method) or method.name != name:
        raise InputError(
            f"Expected {point.value} of the package '{package}' to be a shoal.methods.Method "
            f"named '{name}'. Ask its authors."
        )
    return _weaken(method, package, point.dist.version if point.dist else "")


def _points(name: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP, name=name))


def _weaken(method: Method[Any], package: str, version: str) -> Method[Any]:
    """Limit each claim of a method to one that is conditional on its package."""
    assumption = f"the package '{package}'{version and f' {version}'} does what it says"

    def claims(setting: Setting[Any]) -> tuple[Claim, ...]:
        return tuple(
            replace(
                claim,
                status=Status.CONDITIONAL if claim.status is Status.PROVED else claim.status,
                assumes=(*claim.assumes, assumption),
            )
            for claim in method.promises.claims(setting)
        )

    return replace(method, package=package, promises=replace(method.promises, claims=claims))

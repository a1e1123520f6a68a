"""Protect tables of people for publication, and say exactly what the result promises.

    release = shoal.protect(frame, "policy.toml")
    release.claims, release.checks, release.data

The functions load what they need when they are first used, so that `import shoal` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.auditing import audit
    from shoal.checking import check
    from shoal.comparison import compare
    from shoal.errors import ClaimViolationError, InputError, InternalError, ShoalError
    from shoal.measuring import measure
    from shoal.planning import plan
    from shoal.policy import load as load_policy
    from shoal.release import protect
    from shoal.report import write_report
    from shoal.verifying import verify

_HOME = {
    "ClaimViolationError": ("shoal.errors", "ClaimViolationError"),
    "InputError": ("shoal.errors", "InputError"),
    "InternalError": ("shoal.errors", "InternalError"),
    "ShoalError": ("shoal.errors", "ShoalError"),
    "audit": ("shoal.auditing", "audit"),
    "check": ("shoal.checking", "check"),
    "compare": ("shoal.comparison", "compare"),
    "load_policy": ("shoal.policy", "load"),
    "measure": ("shoal.measuring", "measure"),
    "plan": ("shoal.planning", "plan"),
    "protect": ("shoal.release", "protect"),
    "verify": ("shoal.verifying", "verify"),
    "write_report": ("shoal.report", "write_report"),
}
_ROOMS = {"core", "io", "measures", "methods", "models", "partition", "sample"}

__all__ = [
    "ClaimViolationError",
    "InputError",
    "InternalError",
    "ShoalError",
    "audit",
    "check",
    "compare",
    "load_policy",
    "measure",
    "plan",
    "protect",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    raise AttributeError(f"module 'shoal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})

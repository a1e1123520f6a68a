"""Protect tables of people for publication, and say exactly what the result promises.

    release = shoal.protect("people.csv", "policy.toml")
    release.claims, release.checks, release.data
    release.write("release")

The functions load what they need when they are first used, so `import shoal` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.auditing.audit import audit
    from shoal.engine.check_table import check
    from shoal.errors import ClaimViolationError, InputError, InternalError, ShoalError
    from shoal.evaluation.comparison.compare import compare
    from shoal.evaluation.evaluate import evaluate
    from shoal.evaluation.inspect_table import inspect
    from shoal.evaluation.repeat_figure import repeat_figure
    from shoal.io.files import read
    from shoal.pipeline.planning import plan
    from shoal.pipeline.protect_table import protect
    from shoal.policy.draft import draft
    from shoal.policy.load import load as load_policy
    from shoal.publish.apply_scheme import apply
    from shoal.publish.verify_folder import verify
    from shoal.report.html import write_report

    __version__: str

_HOME = {
    "ClaimViolationError": ("shoal.errors", "ClaimViolationError"),
    "InputError": ("shoal.errors", "InputError"),
    "InternalError": ("shoal.errors", "InternalError"),
    "ShoalError": ("shoal.errors", "ShoalError"),
    "apply": ("shoal.publish.apply_scheme", "apply"),
    "audit": ("shoal.auditing.audit", "audit"),
    "check": ("shoal.engine.check_table", "check"),
    "compare": ("shoal.evaluation.comparison.compare", "compare"),
    "draft": ("shoal.policy.draft", "draft"),
    "evaluate": ("shoal.evaluation.evaluate", "evaluate"),
    "inspect": ("shoal.evaluation.inspect_table", "inspect"),
    "load_policy": ("shoal.policy.load", "load"),
    "plan": ("shoal.pipeline.planning", "plan"),
    "protect": ("shoal.pipeline.protect_table", "protect"),
    "read": ("shoal.io.files", "read"),
    "repeat_figure": ("shoal.evaluation.repeat_figure", "repeat_figure"),
    "verify": ("shoal.publish.verify_folder", "verify"),
    "write_report": ("shoal.report.html", "write_report"),
}
_ROOMS = {
    "analysis",
    "core",
    "hierarchy",
    "io",
    "methods",
    "metrics",
    "partition",
    "privacy_models",
    "sample",
}

__all__ = [
    "ClaimViolationError",
    "InputError",
    "InternalError",
    "ShoalError",
    "__version__",
    "apply",
    "audit",
    "check",
    "compare",
    "draft",
    "evaluate",
    "inspect",
    "load_policy",
    "plan",
    "protect",
    "read",
    "repeat_figure",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("shoal")
    raise AttributeError(f"module 'shoal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})

"""A protected table and all that may be said about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from shoal.core.claims import Check, Claim, claim_lines
from shoal.core.guarantees import figure
from shoal.core.privacy_loss import PrivacyLoss
from shoal.errors import counted


@dataclass(frozen=True)
class Release:
    """A protected table and all that may be said about it. It never holds the original.

    Attributes:
        data: the table, of the type that was handed in.
        privacy_losses: the accounting entries of a release that spends epsilon.
        manifest: the same facts as plain JSON values, as published in `manifest.json`.
        labels: variable and value labels that came with the file, for the released columns.
        extras: further tables that may be published, by name, of the same type as the data.
    """

    data: Any
    claims: tuple[Claim, ...]
    checks: tuple[Check, ...]
    privacy_losses: tuple[PrivacyLoss, ...]
    manifest: Mapping[str, Any]
    labels: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extras: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        rows, columns = self.manifest["rows"], len(self.manifest["columns"])
        size = f"{counted(rows, 'row')} x {counted(columns, 'column')}"
        lines = [f"Release of {size} by {self.manifest['method']}"]
        lines += claim_lines(self.claims)
        lines += [f"  not claimed  {text}" for text in self.manifest["not_claimed"]]
        lines += [
            f"  check  {'holds' if check.holds else 'FAILS':<11} {check.guarantee}"
            f" (achieved {figure(check.achieved)})"
            for check in self.checks
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

"""Require that a policy states how a text file is written, for an epsilon release.

Without an epsilon Shoal finds the delimiter, the decimal mark and the form of dates in the cells.
Beside an epsilon no cell may decide how another is read, and a default that is wrong makes nearly
every cell of a column unreadable, silently. So the policy states all three.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from shoal import io
from shoal.core import Claim, DifferentialPrivacy, Kind, Policy, Status
from shoal.errors import InputError, visible

_LINES = {
    "delimiter": 'delimiter = ","  # or ";" or "\\t"',
    "decimal": 'decimal = "."  # or ","',
    "date_format": 'date_format = "yyyy-mm-dd"  # or "dd.mm.yyyy"',
}


class UnstatedReadingError(InputError):
    """A policy does not state how a text file is written; the message has lines to copy."""

    def __str__(self) -> str:
        return visible(str(self.args[0]), lines=True)


def refuse_unstated(policy: Policy, data: Any, *, delimiter: str | None = None) -> None:
    """Refuse a text file whose policy does not state how it is written, with the lines to add.

    `data` is what is protected; of a file only the name is used, and what was read has its
    delimiter from its reader. `delimiter` is one that was given beside the policy.
    """
    if not io.is_text(data):
        return
    reading, released = policy.reading, [policy.schema[name] for name in policy.schema.released]
    unstated = [
        key
        for key, needed in (
            ("delimiter", not (reading.delimiter or delimiter or isinstance(data, io.Raw))),
            ("decimal", not reading.decimal
             and any(c.kind is Kind.NUMERIC or "kind" in c.discover for c in released)),
            ("date_format", not reading.date_format
             and any(c.kind is Kind.DATE and not c.date_format for c in released)),
        )
        if needed
    ]  # fmt: skip
    if unstated:
        lines = "\n".join(["[reading]", *(_LINES[key] for key in unstated)])
        raise UnstatedReadingError(
            "An epsilon release of a text file reads nothing off its cells, so the policy says how "
            f"it is written. Add these lines, as the file has it:\n{lines}"
        )


def assume(claims: Iterable[Claim], assumes: Sequence[str]) -> tuple[Claim, ...]:
    """Make claims of differential privacy conditional on how the file was read, if necessary."""
    return tuple(
        replace(
            claim,
            status=Status.CONDITIONAL if claim.status is Status.PROVED else claim.status,
            assumes=(*claim.assumes, *assumes),
        )
        if assumes
        and isinstance(claim.guarantee, DifferentialPrivacy)
        and claim.status is not Status.REFUTED
        else claim
        for claim in claims
    )

"""A drafted policy: text that loads as it is, for a steward to correct."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import visible
from shoal.io import folders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.policy.guess import Guess


@dataclass(frozen=True)
class DraftedPolicy:
    """A drafted policy. Categories in it are copied from the table.

    Attributes:
        text: the policy as commented TOML; `str` gives the same.
        guesses: what each column was taken for, and why.
        questions: what only the steward can answer.
        rows: as many as the table has.
        remarks: what the draft leaves exposed.
        attacks: how a release by the draft fared against attacks, if it was tried.
    """

    text: str
    guesses: "Mapping[str, Guess]"
    questions: tuple[str, ...]
    rows: int
    remarks: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        lines = [f"  {name}: {g.role}, {g.kind}; {g.reason}" for name, g in self.guesses.items()]
        asked = [f"  question  {question}" for question in self.questions]
        asked += [f"  exposed   {remark}" for remark in self.remarks]
        return "\n".join(["Drafted policy; every line is a guess to correct", *lines, *asked])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def facts(self) -> "dict[str, Any]":
        """Return the draft as plain values."""
        columns = {
            name: {"role": guess.role.value, "kind": guess.kind.value, "reason": guess.reason,
                   "question": guess.question or None}
            for name, guess in self.guesses.items()
        }  # fmt: skip
        return {
            "columns": columns,
            "questions": list(self.questions),
            "exposed": list(self.remarks),
            "attacks": list(self.attacks),
            "policy": self.text,
        }

    def with_attacks(self, attacks: Iterable[str]) -> "DraftedPolicy":
        """Add how a release by this draft fared against attacks, also as comments in its text."""
        lines = tuple(attacks)
        text = self.text + "".join(f"# {visible(line)}\n" for line in lines)
        return replace(self, text=text, attacks=lines)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write it as a policy file, for an editor; replace an existing file only if forced."""
        folders.write_text(Path(path), self.text, force=force)
        return Path(path)

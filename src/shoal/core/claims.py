"""Claims, checks and estimates: what is promised, verified, and measured."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from shoal.core.guarantees import OMITTED, Checkable, Guarantee, KeptRule
from shoal.errors import InternalError


class ReleaseForm(StrEnum):
    """How the rows of a release relate to the rows of the original.

    `row-aligned`: Row i of the release is about row i of the original.
    `linked-shuffled`: Each row of the release stands for one row of the original, and the rows
    are shuffled.
    `canonical`: Groups stand in their public order, and nothing shows which row was whose.
    `column-shuffled`: Each column is permuted by itself, so the table holds no joint
    information.
    `synthetic`: Rows are drawn from a noisy model, and none is a person.
    `tree`: A row is a box of the space of the columns, with counts.
    """

    ROW_ALIGNED = "row-aligned"
    LINKED_SHUFFLED = "linked-shuffled"
    CANONICAL = "canonical"
    COLUMN_SHUFFLED = "column-shuffled"
    SYNTHETIC = "synthetic"
    TREE = "tree"


class Status(StrEnum):
    """How far a claim is known to be true.

    `proved`: A proof stands beside the method, or is cited.
    `conditional`: A proof needs assumptions that nobody can check in the table.
    `unproven`: No proof is known to us.
    `refuted`: A counterexample is known.
    """

    PROVED = "proved"
    CONDITIONAL = "conditional"
    UNPROVEN = "unproven"
    REFUTED = "refuted"


KNOWN_COLUMNS = "an attacker knows no more than the columns named here"
ONE_DRAW = (
    "all that an attacker sees of a person's confidential values is a draw from the person's class"
)
ONE_ROW = "each person has one row"
"""What a promise about persons assumes unless the policy says whose rows they are."""
SETTLED_BY = {
    ONE_ROW: (
        "state one_row_per_person = true, or mark the column that numbers persons: "
        "privacy_unit = true"
    ),
    "copied from the data, are public": "if they are public, remove observed = true",
    "its last row is not empty": "state their number: rows under [reading]",
    "every quote in it is closed": "if no cell has several lines, remove multiline = true",
    "floor(n / k) is odd": "whether this holds is known with the number of rows",
}
"""What settles an assumption that ends in these words, usually a line of the policy."""


@dataclass(frozen=True)
class Claim:
    """A promise, with its status and the reason.

    Attributes:
        basis: the reason, or for a refuted claim the counterexample, in plain words.
        assumes: what must hold outside the table for the claim to mean what it says.
        source: where the proof is published; "ours" if it is our own.
        instead: of a refuted claim, what keeps its aim with a proof, and at what price.
    """

    guarantee: Guarantee
    status: Status
    basis: str
    assumes: tuple[str, ...]
    source: str
    release_form: ReleaseForm
    instead: str = field(default="", metadata=OMITTED)

    @property
    def stands(self) -> bool:
        """Whether it is proved, or conditional only on each person having one row."""
        conditions = {*self.assumes} - {KNOWN_COLUMNS, ONE_DRAW}
        by_rows = self.status is Status.CONDITIONAL and conditions == {ONE_ROW}
        return self.status is Status.PROVED or by_rows


def claim_lines(claims: Iterable[Claim]) -> list[str]:
    """Write each claim on a line for the terminal; below it what refutes it and what it assumes.

    Of a counterexample only the first clause, which says why; reports have all of it. If a line of
    the policy would settle an assumption, name that line.
    """
    lines = []
    for claim in claims:
        lines.append(f"  claim  {claim.status.value:<11} {claim.guarantee}")
        if claim.status is Status.REFUTED:
            lines.append(f"  refuted by  {re.split('[;.] ', claim.basis)[0]}")
        if claim.instead:
            lines.append(f"  instead  {claim.instead}")
        for text in claim.assumes:
            how = next((how for words, how in SETTLED_BY.items() if text.endswith(words)), "")
            lines.append(f"  assumes  {text}{how and f' ({how})'}")
    return lines


@dataclass(frozen=True)
class Check:
    """A guarantee recomputed on a released table.

    Attributes:
        achieved: the best parameter for which the guarantee holds, e.g. the smallest class;
            exact where it is rational. Of a rule, the number of rows that break it.
        witness: the group of records that decides: its size, and row numbers from 1 in the
            table that was checked, never cells.
        remarks: further facts computed on the same table.
    """

    guarantee: Checkable | KeptRule
    holds: bool
    achieved: int | Fraction | float
    witness: Mapping[str, Any]
    remarks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """A figure that was computed from a sample, with its interval.

    >>> print(Estimate(0.85, 0.767, 0.907, 0.95))
    0.850 [0.767, 0.907]
    """

    value: float
    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise InternalError("An estimate must lie within its interval.")
        if not 0 < self.confidence < 1:
            raise InternalError("A confidence must lie between 0 and 1.")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

"""A source in a budget file: its entries, inspections, and what follows for releases.

Entries have numbers, and an inspection keeps the number of the last entry before it. So their order
never depends on a clock.

An *inspection* is somebody reading figures of the confidential table: a comparison of methods, an
evaluation of a release against its original, a search for a neighbour to audit. A method that was
chosen by such figures is a function of the table, and no price covers that choice.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked

from shoal.budget.composition import BudgetEntry, Sum, compose, number
from shoal.core import Neighbours

_INTERSECTION = (
    "Source '{source}' has {count} releases without a proved epsilon. People who are in several"
    " of them may be distinguished by intersecting their groups, even if each release is"
    " k-anonymous by itself."
)
_UNBOUNDED = (
    "Source '{source}' has no cumulative epsilon: {count} without a proved epsilon {is_} released "
    "or reserved, so no epsilon bounds what all releases disclose together."
)
_NOT_COMPOSED = "Source '{source}' has no cumulative epsilon. {reason}"
_INSPECTED = (
    "The table of source '{source}' was inspected, first by `shoal {what}` on {time}. Every epsilon"
    " of a later release holds only if its method and parameters were not chosen from this table."
)
_LATER = (
    "Source '{source}' has no cumulative epsilon: entry {entry} came after an inspection of the"
    " table, so its epsilon is conditional."
)


class Inspection(StrEnum):
    """What was inspected.

    `table`: the confidential table. `sample`: public or synthetic data, or a release that is paid
    for. `selection`: the confidential table, by a private selection that is paid for.
    """

    TABLE = "table"
    SAMPLE = "sample"
    SELECTION = "selection"


class What(StrEnum):
    """The command that inspected the table."""

    COMPARE = "compare"
    EVALUATE = "evaluate"
    PROTECT = "protect"
    AUDIT = "audit"
    INSPECT = "inspect"

    @classmethod
    def _missing_(cls, value: object) -> "What | None":
        # Files of before the first release call it so; events are never rewritten.
        return cls.EVALUATE if value == "measure" else None


@checked(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class InspectionSummary:
    """One inspection, in the budget file.

    Attributes:
        time: of its start, UTC.
        what: the command.
        policy: digest of the policy.
        note: public words; never a cell.
        after: number of the last entry of the file before it; 0 if there was none.
    """

    time: str
    kind: Inspection
    what: What
    policy: str
    note: str
    after: int


@dataclass(frozen=True)
class Account:
    """One source with its budget and all its entries.

    Attributes:
        granted: the budget.
        neighbours: in which the budget and its entries are counted.
        delta: at which it is granted; without one the budget is pure.
    """

    source: str
    granted: Fraction
    neighbours: Neighbours
    entries: tuple[BudgetEntry, ...]
    inspections: tuple[InspectionSummary, ...] = ()
    delta: Fraction | None = None

    @property
    def inspected(self) -> bool:
        """Whether the confidential table was inspected."""
        return self._first_inspection is not None

    @property
    def spent(self) -> Fraction:
        """The composed privacy losses, reserved ones included: an epsilon at the delta."""
        return self._sum.spent

    @property
    def remaining(self) -> Fraction:
        """The part of the budget that is not spent."""
        return self.granted - self.spent

    @property
    def unbounded(self) -> int:
        """The number of entries without a proved privacy loss."""
        return sum(not entry.priced for entry in self.entries)

    @property
    def cumulative(self) -> Fraction | None:
        """Epsilon of all releases together by the rule of `composition`; None if it gives none."""
        return None if self.reasons else self.spent

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is no cumulative epsilon, in sentences."""
        texts = []
        if self.unbounded:
            single = self.unbounded == 1
            count = "a release" if single else f"{self.unbounded} releases"
            is_ = "is" if single else "are"
            texts.append(_UNBOUNDED.format(source=self.source, count=count, is_=is_))
        texts += [_NOT_COMPOSED.format(source=self.source, reason=r) for r in self._sum.reasons]
        first = self._first_inspection
        later = [e.id for e in self.entries if first is not None and e.id > first.after]
        if later:
            texts.append(_LATER.format(source=self.source, entry=later[0]))
        return tuple(texts)

    @property
    def scope(self) -> str:
        """Whom the cumulative epsilon protects."""
        return self._sum.scope

    @property
    def _sum(self) -> Sum:
        return compose(self.entries, self.delta)

    @property
    def _first_inspection(self) -> InspectionSummary | None:
        """The first inspection of the confidential table."""
        return next((i for i in self.inspections if i.kind is Inspection.TABLE), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a steward should know before the next release of this source."""
        texts = [*self.reasons]
        if self.unbounded > 1:
            texts.append(_INTERSECTION.format(source=self.source, count=self.unbounded))
        if (first := self._first_inspection) is not None:
            what, time = first.what.value, first.time
            texts.append(_INSPECTED.format(source=self.source, what=what, time=time))
        return tuple(texts)

    def __str__(self) -> str:
        cumulative = "none" if self.cumulative is None else number(self.cumulative)
        scope = f" {self.scope}" if self.cumulative is not None and self.scope else ""
        at = "" if self.delta is None else f" at delta {float(self.delta):g}"
        head = (
            f"{self.source}: budget epsilon {number(self.granted)}{at} ({self.neighbours.value}),"
            f" spent {number(self.spent)}, remaining {number(self.remaining)},"
            f" cumulative epsilon {cumulative}{scope}"
        )
        lines = [head, *(f"  {entry}" for entry in self.entries)]
        for item in self.inspections:
            note = f"  {item.note}" if item.note else ""
            lines.append(f"  -  {item.time}  inspection of the {item.kind}, by {item.what}{note}")
        if any(entry.status == "reserved" for entry in self.entries):
            lines.append("  A reserved entry counts as spent: its run is under way, or was killed.")
        return "\n".join(lines + [f"  ! {text}" for text in self.warnings])

"""The budget file: the privacy budget of a population, and what all runs have spent of it.

A source is a population. Extracts and later versions of one table share its name, because
their people overlap and what is learnt about them adds up.

The order of a release is: `spend`, draw, write, `settle`. The charge is on disk before the
first draw, so a run that is killed anywhere has spent its epsilon, and no release exists
without its entry. An entry is never given back and never deleted: the file is a log of events that
are only ever added, and everything here is derived by replaying it (`shoal.budget.event_log`).

An *inspection* is somebody reading figures of the confidential table: a comparison of methods, an
evaluation of a release against its original, a search for a neighbour to audit. A method that was
chosen by such figures is a function of the table, and no price covers that choice. So the file
keeps inspections for good, and `Account.inspected` tells every later release. An inspection of
public data is kept as well, and harms nothing. Entries have numbers, and an inspection keeps the
number of the last entry before it, so their order never depends on a clock.

What all releases of a source cost together is derived from facts that stewards declared
(`shoal.budget.composition`); the file holds nothing that was computed from a table: no count, no
digest.

Not promised: that nobody restores an old copy of the file, which is noticed only where a newer
confidential folder is met (`refuse_older_copy`), or spends on one population under two names.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked

from shoal.budget.composition import BudgetEntry, DeclaredFacts, Sum, compose, fold_name, number
from shoal.budget.event_log import EventLog, LogHead, damage_error, open_log
from shoal.core import Neighbours
from shoal.core.machine import now
from shoal.errors import ClaimViolationError, InputError, InternalError, did_you_mean

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


__all__ = [
    "Account",
    "BudgetEntry",
    "DeclaredFacts",
    "Inspection",
    "InspectionSummary",
    "LogHead",
    "Reservation",
    "What",
    "account",
    "init",
    "number",
    "record_inspection",
    "refuse_older_copy",
    "settle",
    "show",
    "spend",
]

_NUMBER = re.compile(r"[1-9]\d{0,999}(/[1-9]\d{0,999})?", re.ASCII)
_LEAST_DELTA, _MOST_DELTA = Fraction(1, 10**30), Fraction(1, 1000)


@dataclass(frozen=True)
class Reservation:
    """A charge that is on disk. Only after it may noise be drawn.

    Attributes:
        id: of the entry, for `settle`.
        epsilon: as booked, in the neighbours of the source; or rho.
        remaining: what is left of the budget after this.
        warnings: texts for the steward and the report.
        inspected: the table itself was inspected before.
        head: of the file with this entry, for the confidential folder.
    """

    id: int
    epsilon: Fraction | None
    remaining: Fraction
    warnings: tuple[str, ...]
    head: LogHead
    inspected: bool = False
    rho: Fraction | None = None


def init(
    path: Path,
    source: str,
    epsilon: Fraction,
    *,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
    delta: Fraction | None = None,
) -> Account:
    """Grant a budget to a source, in a new file or in one that has other sources.

    With a delta it holds releases that count in rho, too.

    A budget cannot be changed afterwards, and a name that `fold_name` does not tell from a known
    one is refused: either would be a way to spend twice.

    Raises:
        InputError: if the file cannot be made or is something else, or the source is known.
    """
    name = source.strip()
    if not fold_name(name):
        raise InputError("Expected the name of a population as source, found an empty name.")
    if epsilon <= 0:
        raise InputError(f"Expected epsilon > 0 for a budget, found {number(epsilon)}.")
    if delta is not None and not _LEAST_DELTA <= delta <= _MOST_DELTA:
        raise InputError("Expected a delta from 1e-30 to 0.001 for a budget.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder '{path.parent}' for the budget file '{path.name}'.")
    with open_log(path, create=True) as log:
        same = [known for known in _accounts(log, path) if fold_name(known) == fold_name(name)]
        if same:
            raise InputError(
                f"Source '{same[0]}' already has a budget in '{path}'; it stays as it is."
            )
        log.append(
            event="grant",
            time=now(),
            source=name,
            epsilon=str(Fraction(epsilon)),
            neighbours=neighbours.value,
            delta=_write_number(delta),
        )
        return _accounts(log, path)[name]


def show(path: Path) -> tuple[Account, ...]:
    """List every source of a budget file, by name.

    Raises:
        InputError: if there is no such file, or it is something else.
    """
    with open_log(path) as log:
        return tuple(account for _, account in sorted(_accounts(log, path).items()))


def spend(
    path: Path,
    source: str,
    *,
    epsilon: Fraction | None,
    rho: Fraction | None = None,
    delta: Fraction = Fraction(0),
    facts: DeclaredFacts,
    policy: str,
    method: str,
    note: str = "",
) -> Reservation:
    """Book a release before its noise is drawn.

    Args:
        path: the budget file.
        source: the population.
        epsilon: the proved price of the whole release; None if it has none, as k-anonymity.
        rho: the proved price instead, of a release that counts in rho.
        delta: what finding unknown texts takes of the budget's delta, beside rho.
        facts: what is declared of the release. A price for add-remove is booked doubled where
            the budget counts change-one, a rho four times (`shoal.hazmat.accounting`).
        policy: digest of the policy.
        method: by its name in the policy.
        note: public words, such as the name of the output folder; never a cell.

    Raises:
        ClaimViolationError: if the budget does not hold the price. Nothing is booked.
        InputError: if the file or the source cannot be used.
    """
    if (epsilon is not None and epsilon <= 0) or (rho is not None and rho <= 0):
        raise InternalError(f"A release is booked with epsilon > 0 or none; got {epsilon or rho}.")
    if epsilon is not None and rho is not None:
        raise InternalError("A release is booked with an epsilon or a rho, not both.")
    with open_log(path, write=True) as log:
        before = _find_account(_accounts(log, path), source, path)
        if rho is not None and before.delta is None:
            raise InputError(
                f"The budget of source '{before.source}' is pure, and this release counts in rho:"
                " it has no epsilon without a delta. State epsilon alone under [protect], or grant"
                " a budget with `shoal budget init --delta`."
            )
        delta = _price(delta, facts.neighbours, before, 2) if delta else delta
        taken = sum((entry.delta or Fraction(0) for entry in before.entries), Fraction(delta))
        if delta and taken >= (before.delta or 0):
            raise ClaimViolationError(
                f"The budget of source '{before.source}' has a delta of"
                f" {float(before.delta or 0):g}, and finding texts takes"
                f" {float(taken):.3g} of it with this release. State a smaller delta under"
                " [protect], or state the categories. Nothing was spent."
            )
        price = None if epsilon is None else _price(epsilon, facts.neighbours, before, 2)
        squared = None if rho is None else _price(rho, facts.neighbours, before, 4)
        log.append(
            event="entry",
            time=now(),
            source=before.source,
            policy=policy,
            method=method,
            epsilon=_write_number(price),
            note=note,
            facts=facts.to_json(),
            rho=_write_number(squared),
            **({"delta": _write_number(delta)} if delta else {}),
        )
        after = _accounts(log, path)[before.source]
        if after.remaining < 0:
            requested = after.spent - before.spent
            raise ClaimViolationError(
                f"The budget of source '{before.source}' does not cover this release: requested"
                f" epsilon {number(requested)}, remaining {number(before.remaining)}, short by"
                f" {number(-after.remaining)}. Nothing was spent."
            )
        return Reservation(
            after.entries[-1].id,
            price,
            after.remaining,
            after.warnings,
            log.head,
            before.inspected,
            squared,
        )


def record_inspection(
    path: Path,
    source: str,
    kind: Inspection,
    *,
    what: What = What.COMPARE,
    policy: str,
    note: str = "",
) -> Account:
    """Record an inspection by a command before it starts. It cannot be taken back.

    The policy is its digest, and the note has public words; never a cell.
    """
    with open_log(path, write=True) as log:
        name = _find_account(_accounts(log, path), source, path).source
        log.append(
            event="inspection",
            time=now(),
            source=name,
            kind=kind.value,
            what=what.value,
            policy=policy,
            note=note,
        )
        return _accounts(log, path)[name]


def account(path: Path, source: str) -> Account:
    """Return one source of a budget file."""
    with open_log(path) as log:
        return _find_account(_accounts(log, path), source, path)


def settle(path: Path, reservation: int) -> None:
    """Note that the release of a reservation has been written.

    A release counts the same whether it is settled or not; this tells the steward that the
    run came to its end.

    Raises:
        InternalError: if no reserved entry has that number.
    """
    with open_log(path, write=True) as log:
        entries = [e for account in _accounts(log, path).values() for e in account.entries]
        if not any(e.id == reservation and e.status == "reserved" for e in entries):
            raise InternalError(f"No reserved entry {reservation} in '{path}' to settle.")
        log.append(event="settle", entry=reservation)


def refuse_older_copy(path: Path, head: LogHead, met: Path) -> None:
    """Refuse a file that lacks entries known from a confidential folder, `met`."""
    with open_log(path) as log:
        if not log.continues(head):
            raise InputError(
                f"'{path}' is an older copy of the budget file: it lacks what was booked when "
                f"'{met}' was written. Restore the newest copy; nothing is spent before."
            )


def _price(amount: Fraction, neighbours: Neighbours, account: Account, times: int) -> Fraction:
    """Convert a privacy loss to the neighbours of the source; add-remove counts `times` times."""
    if neighbours is account.neighbours:
        return Fraction(amount)
    if account.neighbours is Neighbours.CHANGE_ONE:
        return times * Fraction(amount)
    raise InputError(
        f"The budget of source '{account.source}' counts add-remove neighbours, but this release"
        " has an epsilon for change-one only. Use a method that is proved for add-remove."
    )


def _find_account(accounts: dict[str, Account], source: str, path: Path) -> Account:
    """Find a source by any spelling of its name."""
    same = [account for name, account in accounts.items() if fold_name(name) == fold_name(source)]
    if not same:
        guess = did_you_mean(source, [*accounts])
        raise InputError(f"There is no source '{source}' in '{path}'.{guess}")
    if len(same) > 1:
        raise InputError(
            f"The budget file '{path}' has {len(same)} sources of the name '{source}', which differ"
            " in how their letters are coded. Their people may be the same, so neither is used."
        )
    return same[0]


def _accounts(log: EventLog, path: Path) -> dict[str, Account]:
    """Replay the events: return every source with its entries and inspections."""
    grants: dict[str, Account] = {}
    entries: list[BudgetEntry] = []
    inspections: defaultdict[str, list[InspectionSummary]] = defaultdict(list)
    try:
        for event in log.events:
            match event.pop("event"):
                case "grant" if event["source"] not in grants:
                    grants[event["source"]] = _grant(event)
                case "entry" if event["source"] in grants:
                    entries.append(_entry(len(entries) + 1, **event))
                case "settle" if _is_open(entries, place := event["entry"] - 1):
                    entries[place] = replace(entries[place], status="released")
                case "inspection" if event["source"] in grants:
                    source = event.pop("source")
                    event |= {"kind": Inspection(event["kind"]), "what": What(event["what"])}
                    inspections[source].append(InspectionSummary(after=len(entries), **event))
                case _:
                    raise damage_error(path)
    except (ValueError, TypeError, LookupError, ArithmeticError):  # Also what pydantic refuses.
        raise damage_error(path) from None
    return {
        name: replace(
            account,
            entries=tuple(entry for entry in entries if entry.source == name),
            inspections=tuple(inspections[name]),
        )
        for name, account in grants.items()
    }


def _is_open(entries: Sequence[BudgetEntry], place: int) -> bool:
    return place >= 0 and entries[place].status == "reserved"


def _grant(event: dict[str, Any]) -> Account:
    if not all(isinstance(event[name], str) for name in ("source", "time")):
        raise TypeError
    delta = None if event["delta"] is None else _fraction(event["delta"])
    neighbours = Neighbours(event["neighbours"])
    return Account(event["source"], _fraction(event["epsilon"]), neighbours, (), (), delta)


def _entry(
    id_: int,
    *,
    epsilon: object,
    rho: object,
    facts: str | None,
    delta: object = None,
    **event: Any,
) -> BudgetEntry:
    price, squared, texts = (
        None if loss is None else _fraction(loss) for loss in (epsilon, rho, delta)
    )
    declared = None if facts is None else DeclaredFacts.of_json(facts)
    return BudgetEntry(
        id_, epsilon=price, rho=squared, facts=declared, delta=texts, status="reserved", **event
    )


def _write_number(price: Fraction | None) -> str | None:
    """Write an exact number for the file."""
    return None if price is None else str(Fraction(price))


def _fraction(text: object) -> Fraction:
    """Parse a positive number as `_write_number` writes it; 1e999999999 would take days to read."""
    if not (isinstance(text, str) and _NUMBER.fullmatch(text)):
        raise ValueError
    return Fraction(text)

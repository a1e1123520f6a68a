"""All use of the budget file by a run: granting, booking, and recording inspections.

The file itself, and the rule by which entries add up, live in `shoal.budget`.
"""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.budget import budget_file
from shoal.core import BudgetUse, Claim, Neighbours, Policy
from shoal.core.serialise import parse_json, plain
from shoal.errors import InputError
from shoal.io import text_files
from shoal.io.folders import FIGURES, INTERNAL_SUFFIX
from shoal.methods import find
from shoal.methods.discovery import delta_of_texts
from shoal.pipeline.planning import Plan, price

NOT_CHOSEN = "the method and its parameters were not chosen from this table"
"""What an epsilon assumes once the confidential table was inspected."""


def open_budget(path: Path, source: str, epsilon: str, delta: str | None = None) -> str:
    """Grant a population a budget in a budget file, which is created if necessary."""
    granted = text_files.parse_epsilon(epsilon)
    at = None if delta is None else text_files.parse_delta(delta)
    return str(budget_file.init(path, source, granted, delta=at))


def refuse_older_copies(path: Path, *places: Path) -> None:
    """Refuse a budget file that is older than a confidential folder in one of these places.

    Each confidential folder keeps the head of the budget file as it was when its release was
    booked. A folder without one, or an unreadable one, is skipped.
    """
    for folder in sorted({f for place in places for f in place.glob(f"*{INTERNAL_SUFFIX}")}):
        if (account := read_account(folder)) is not None:
            budget_file.refuse_older_copy(path, account["head"], folder)


def read_account(folder: Path) -> dict[str, Any] | None:
    """Read the budget entry that a confidential folder records, or return None."""
    try:
        account = parse_json(text_files.read_bytes(folder / FIGURES, FIGURES))["budget"]
        return {**account, "head": budget_file.LogHead(**account["head"])}
    except (InputError, ValueError, LookupError, TypeError):
        return None


def show_budget(path: Path) -> str:
    """Show what was granted, spent and left for each population of a budget file."""
    refuse_older_copies(path, path.parent)
    return "\n\n".join(str(account) for account in budget_file.show(path))


def budget_facts(path: Path) -> list[dict[str, Any]]:
    """Return the accounts of a budget file as plain values."""
    return [
        {
            **plain(account),
            "spent": plain(account.spent),
            "remaining": plain(account.remaining),
            "cumulative": plain(account.cumulative),
            "scope": account.scope,
            "reasons": list(account.reasons),
            "warnings": list(account.warnings),
        }
        for account in budget_file.show(path)
    ]


def is_inspected(policy: Policy) -> bool:
    """Whether the budget file records an inspection of the confidential table."""
    if policy.budget is None:
        return False
    return budget_file.account(policy.budget.file, policy.budget.source).inspected


def inspection_costs(policy: Policy, *, sample: bool) -> tuple[str, ...]:
    """Say what a comparison of methods will cost; this records nothing."""
    if sample:
        known = "The confidential table is not inspected, so the choice costs nothing."
        return (known,)
    known = (
        "Choosing by inspecting the table costs privacy: from now on, an epsilon of this source "
        f"holds only if {NOT_CHOSEN}. To keep epsilon proved, compare on a sample of other people "
        "or choose one method privately."
    )
    return (known,) if policy.budget else (known, _NOT_RECORDED)


_NOT_RECORDED = (
    "The policy names no budget, so this inspection cannot be recorded: no later release will "
    "know of it, and you must keep track of it yourself."
)


def record_comparison(policy: Policy, *, sample: bool, note: str = "") -> tuple[str, ...]:
    """Record a comparison of methods under the policy's source, before it starts.

    Return what the steward should know, in sentences. With `sample` the comparison inspects public
    data only. Without a `[budget]` nothing can be recorded. The note is public.
    """
    known = inspection_costs(policy, sample=sample)
    if policy.budget is None:
        return known
    kind = budget_file.Inspection.SAMPLE if sample else budget_file.Inspection.TABLE
    account = _record(policy, policy.budget, kind, budget_file.What.COMPARE, note)
    if sample and account.inspected:
        before = f"The table of source '{account.source}' was inspected before"
        known = (f"{before}; a comparison on public data does not undo that.",)
    return (*known, f"Recorded under source '{account.source}' in the budget file.")


def record_inspection(policy: Policy, *, what: str, note: str = "") -> tuple[str, ...]:
    """Record that somebody is about to read figures of the confidential table.

    Every later epsilon of the source is conditional from then on, and no earlier one is: a release
    whose own figures are read was set up before them. `what` is the command; the note is public.

    Returned is what the steward should know, in sentences; nothing if the table was inspected
    before. Without a `[budget]` nothing can be recorded, which is said where the policy's method
    has a price.
    """
    if policy.budget is None:
        return (_NOT_RECORDED,) if find(policy.method).noisy else ()
    known = is_inspected(policy)
    account = _record(
        policy, policy.budget, budget_file.Inspection.TABLE, budget_file.What(what), note
    )
    if known:
        return ()
    sentence = (
        f"These figures are an inspection of the table, recorded under source '{account.source}' "
        f"in the budget file: every later epsilon of the source holds only if {NOT_CHOSEN}. To "
        f"keep later ones proved, evaluate nothing before the last release."
    )
    return (sentence,)


def _record(
    policy: Policy,
    used: BudgetUse,
    kind: budget_file.Inspection,
    what: budget_file.What,
    note: str,
) -> budget_file.Account:
    """Record an inspection, unless the same one is recorded already; return the account."""
    account = budget_file.account(used.file, used.source)
    if any((i.kind, i.what, i.policy, i.note) == (kind, what, policy.digest, note)
           for i in account.inspections):  # fmt: skip
        return account
    return budget_file.record_inspection(
        used.file, used.source, kind, what=what, policy=policy.digest, note=note
    )


def charge_selection(policy: Policy, epsilon: Fraction, *, note: str = "") -> tuple[Path, int]:
    """Book a private selection of a method before its first draw, and record it as an inspection.

    Return the budget file and the entry, for `settle_selection`.
    """
    if policy.budget is None:
        raise InputError(
            "A private selection spends epsilon: expected a budget file and a source, under "
            "[budget] in the policy."
        )
    path, source = policy.budget.file, policy.budget.source
    booked = budget_file.spend(
        path,
        source,
        epsilon=epsilon,
        facts=_facts(policy, policy.budget, Neighbours.CHANGE_ONE),
        policy=policy.digest,
        method="private-selection",
        note=note,
    )
    budget_file.record_inspection(
        path, source, budget_file.Inspection.SELECTION, policy=policy.digest, note=note
    )
    return path, booked.id


def settle_selection(booking: tuple[Path, int]) -> None:
    """Mark the entry of a private selection as done."""
    budget_file.settle(*booking)


def book(planned: Plan, claims: Iterable[Claim], note: str) -> budget_file.Reservation | None:
    """Charge the population's budget with the proved privacy loss, or with none."""
    policy = planned.policy
    if policy.budget is None:
        return None
    least = price(policy, claims)
    return budget_file.spend(
        policy.budget.file,
        policy.budget.source,
        epsilon=None if least is None or least.rho is not None else least.epsilon,
        rho=None if least is None else least.rho,
        delta=Fraction(0) if least is None else delta_of_texts(planned.setting, least),
        facts=_facts(
            policy, policy.budget, Neighbours.CHANGE_ONE if least is None else least.neighbours
        ),
        policy=policy.digest,
        method=planned.method.name,
        note=note,
    )


def _facts(policy: Policy, used: BudgetUse, neighbours: Neighbours) -> budget_file.DeclaredFacts:
    """Collect the declared facts about a release: nothing about its table."""
    persons, released = policy.schema.persons, policy.schema.released
    number = "rows" if persons is None or persons.exact else "persons"
    return budget_file.DeclaredFacts(
        neighbours=neighbours,
        unit="" if persons is None else persons.column,
        contributions=1 if persons is None else persons.most,
        cut=persons is not None and persons.dropped,
        public_number=number if neighbours is Neighbours.CHANGE_ONE else "",
        public_columns=tuple(name for name in released if policy.schema[name].public),
        extract=used.extract,
        extract_by=used.extract_by,
        max_contributions=used.max_contributions,
    )

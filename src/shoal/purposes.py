"""Which claims will do for whom.

A purpose is the steward's own rule on what a release must be able to say of all quasi-identifiers
together. It adds no promise, and it is asked before any data is read.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shoal.core import Claim, Guarantee, Policy, Purpose, Role, Status
from shoal.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Rule:
    """What a purpose needs.

    Attributes:
        enough: a claim for all quasi-identifiers together must have one of these; empty for none.
    """

    title: str
    sentence: str
    enough: frozenset[Status]


RULES = {
    Purpose.OPEN: Rule(
        "Open release",
        "Anybody may have the table. It needs a proved claim.",
        frozenset({Status.PROVED}),
    ),
    Purpose.PARTNER: Rule(
        "Share with a partner under contract",
        "The partner promises not to re-identify. A claim may hang on stated conditions.",
        frozenset({Status.PROVED, Status.CONDITIONAL}),
    ),
    Purpose.INTERNAL: Rule(
        "Internal use",
        "The table stays in the house. No claim is needed, and every gap is shown.",
        frozenset(),
    ),
}


def named(name: str) -> Purpose:
    """The purpose of this name.

    Raises:
        InputError: there is none; the names that are there are told.

    >>> named("partner")
    <Purpose.PARTNER: 'partner'>
    """
    if name not in list(Purpose):
        known = ", ".join(Purpose)
        guess = did_you_mean(name, list(Purpose))
        raise InputError(f"Expected a purpose among {known}, found '{name}'.{guess}")
    return Purpose(name)


def objection(policy: Policy, claims: Iterable[Claim], *, why: str = "as set up") -> str:
    """Why these claims will not do for the policy's purpose, in a sentence, or "".

    Args:
        policy: without a purpose, any claims will do.
        claims: what would be said of the release.
        why: what the claims depend on, for the sentence.
    """
    if policy.purpose is None:
        return ""
    rule = RULES[policy.purpose]
    if not rule.enough or claimed_together(policy, claims, rule.enough):
        return ""
    statuses = " or ".join(one for one in Status if one in rule.enough)
    return (
        f"Purpose '{policy.purpose}' ({rule.title.lower()}) needs a claim that is {statuses} for "
        f"all quasi-identifiers together, and method '{policy.method}' {why} carries none. Choose "
        "another method, release form or purpose."
    )


def refuse(policy: Policy, claims: Iterable[Claim], *, why: str = "as set up") -> None:
    """Stop where claims will not do for the policy's purpose; see `objection`.

    Raises:
        InputError: with the objection.
    """
    if reason := objection(policy, claims, why=why):
        raise InputError(reason)


def claimed_together(policy: Policy, claims: Iterable[Claim], statuses: Collection[Status]) -> bool:
    """Whether a claim of these statuses covers all quasi-identifiers, public ones aside."""
    schema = policy.schema
    keys = {name for name in schema.with_role(Role.QUASI_IDENTIFIER) if not schema[name].public}
    return any(claim.status in statuses and keys <= _about(claim.guarantee) for claim in claims)


def _about(guarantee: Guarantee) -> set[str]:
    """The columns that a guarantee speaks of: those that make the classes, where it has classes."""
    return set(getattr(guarantee, "keys", None) or guarantee.columns)

"""Which claims each audience requires.

Each audience has a rule on what a release must claim about all quasi-identifiers together. It adds
no promise, and is applied before any data is read.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shoal.core import ONE_ROW, Audience, Claim, Guarantee, Policy, Role, Status
from shoal.errors import InputError, did_you_mean
from shoal.io.pseudonyms import read_key


@dataclass(frozen=True)
class AudienceRule:
    """The claims that an audience requires.

    Attributes:
        enough: a claim for all quasi-identifiers together must have one of these; empty for none.
    """

    title: str
    sentence: str
    enough: frozenset[Status]


RULES = {
    Audience.PUBLIC_USE: AudienceRule(
        "Anybody",
        "A public release. It needs a proved claim.",
        frozenset({Status.PROVED}),
    ),
    Audience.SCIENTIFIC_USE: AudienceRule(
        "Named recipients under contract",
        "The recipients promise not to re-identify anybody. A claim may depend on stated "
        "conditions.",
        frozenset({Status.PROVED, Status.CONDITIONAL}),
    ),
    Audience.SECURE_USE: AudienceRule(
        "Our own staff",
        "The table stays inside the organisation. No claim is needed, and every gap is shown.",
        frozenset(),
    ),
}


def find_audience(name: str) -> Audience:
    """The audience of this name; if there is none, an `InputError` lists those that exist.

    >>> find_audience("scientific-use")
    <Audience.SCIENTIFIC_USE: 'scientific-use'>
    """
    if name not in list(Audience):
        known = ", ".join(Audience)
        guess = did_you_mean(name, list(Audience))
        raise InputError(f"Expected an audience among {known}, found '{name}'.{guess}")
    return Audience(name)


def objection(policy: Policy, claims: Iterable[Claim], *, why: str = "as set up") -> str:
    """Explain why these claims do not suffice for the policy's audience, or return "".

    `why` says what the claims depend on. Without an audience, any claims suffice.
    """
    if policy.audience is None:
        return ""
    if policy.drafted and policy.audience is Audience.PUBLIC_USE:
        return (
            f"Audience '{policy.audience}' needs a policy that a person has reviewed, but this one "
            "was drafted by program. Read every line, then fill in by and date under [review]."
        )
    rule, claims = RULES[policy.audience], list(claims)
    if not rule.enough or covers_together(policy, claims, rule.enough):
        return ""
    if covers_together(policy, [claim for claim in claims if claim.stands], set(Status)):
        return (
            f"Audience '{policy.audience}' ({rule.title.lower()}) needs a proved claim, but that "
            f"of method '{policy.method}' is conditional: it assumes that {ONE_ROW}. If that is "
            "so, state it (one_row_per_person); if not, mark the column that numbers the persons "
            "(privacy_unit)."
        )
    statuses = " or ".join(status for status in Status if status in rule.enough)
    return (
        f"Audience '{policy.audience}' ({rule.title.lower()}) needs a claim that is {statuses} for "
        f"all quasi-identifiers together, but method '{policy.method}' {why} has none. Choose "
        "another method, release form or audience."
    )


def refuse(policy: Policy, claims: Iterable[Claim], *, why: str = "as set up") -> None:
    """Refuse claims that do not suffice for the policy's audience, with the `objection`."""
    if reason := objection(policy, claims, why=why):
        raise InputError(reason)


def refuse_pseudonyms(policy: Policy, *, rows: bool) -> tuple[str, ...]:
    """Refuse pseudonyms and shifted dates where they are not for the release, or say what they are.

    `rows` is whether the release has people's rows, without noise and made on one machine.
    """
    schema, public = policy.schema, policy.audience is Audience.PUBLIC_USE
    columns = [column for column in schema.columns if column.disguised]
    if not columns:
        return ()
    names = ", ".join(column.name for column in columns)
    if public or not rows:
        raise InputError(
            f"Pseudonyms and shifted dates ({names}) are for named recipients and for rows "
            "released on one machine without noise; found "
            f"{'public use' if public else 'another release'}. Drop the column, with the role "
            "identifier."
        )
    if any(column.date_shift for column in columns) and schema.persons is None:
        raise InputError("Dates of a person are shifted together; expected a column that numbers "
                         "the persons, with privacy_unit = true, beside date_shift.")  # fmt: skip
    warning = (
        f"Nothing is promised of the pseudonyms or shifted dates in {names}: the rows of a person "
        "are linked by them, so k is about single rows, and several together may single the "
        "person out. Days between two dates stay, and one known date gives the shift away. "
        "Pseudonymised data remain personal data."
    )
    return (warning,)


def read_pseudonym_key(policy: Policy) -> bytes | None:
    """Read the recipient's key, if the policy has pseudonyms or shifted dates."""
    if not any(column.disguised for column in policy.schema.columns):
        return None
    recipient = policy.context.get("recipient")
    if policy.pseudonym_key is None or not recipient:
        raise InputError(
            "Pseudonyms and shifted dates need a secret for each recipient: state pseudonym_key, a "
            "file outside the release, under [release], and recipient under [context]."
        )
    return read_key(policy.pseudonym_key, recipient)


def covers_together(policy: Policy, claims: Iterable[Claim], statuses: Collection[Status]) -> bool:
    """Whether a claim of these statuses covers all non-public quasi-identifiers jointly."""
    schema = policy.schema
    keys = {name for name in schema.with_role(Role.QUASI_IDENTIFIER) if not schema[name].public}
    return any(claim.status in statuses and keys <= _about(claim.guarantee) for claim in claims)


def _about(guarantee: Guarantee) -> set[str]:
    """Return the columns of a guarantee: its keys if it is about classes, else its columns."""
    return set(getattr(guarantee, "keys", None) or guarantee.columns)

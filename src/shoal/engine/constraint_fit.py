"""Whether a plan can satisfy the policy's constraints, and what they mean for its claims.

Rules that no record can keep are refused, and so are those that a projection of released rows would
keep only at the expense of a claim. A projection is a function of a row's values. Where a claim
says that k records share some columns, rows that are alike there stay alike only if every rule
that moves one of these columns reads no other column.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from shoal.core import (
    Claim,
    Constraint,
    ConstraintChoices,
    DifferentialPrivacy,
    KAnonymity,
    ReleaseForm,
    Schema,
    Status,
)
from shoal.core.allowed_records import ConstraintSet, unusable
from shoal.errors import InputError
from shoal.methods import Method, Setting

DECLARED = "the rules under [constraints] are public, as the policy declares"
OBSERVED = "the rules under [constraints], which were copied from the data, are public"


def may_be_missing(method: Method[Any], schema: Schema) -> tuple[str, ...]:
    """List the columns in which a constraint may require a missing cell."""
    if not method.noisy:
        return schema.released
    return tuple(n for n in schema.released if schema[n].keep_missing)


def refuse_contradiction(method: Method[Any], setting: Setting[Any]) -> None:
    """Refuse constraints that no record can satisfy, before the method uses them."""
    rules, schema = setting.constraints.rules, setting.schema
    chosen = ConstraintSet(rules, schema, missing=frozenset(may_be_missing(method, schema)))
    for name in chosen.columns:
        if schema[name].kind is None:
            raise InputError(f"[constraints] names '{name}', which has no kind. State it.")
    if fault := unusable(rules) or chosen.contradiction():
        raise InputError(f"[constraints] {fault}")


def refuse(method: Method[Any], setting: Setting[Any]) -> None:
    """Refuse constraints that can be satisfied only at the expense of a claim."""
    rules = setting.constraints.rules
    for name in dict.fromkeys(name for rule in rules for name in rule.columns):
        if method.noisy and name not in method.clamps(setting):
            if setting.schema[name].public:
                raise InputError(
                    f"[constraints] names '{name}', which is public and released as it is: rows "
                    "cannot be moved to keep the rule. Protect the column, or remove the rule."
                )
            raise InputError(
                f"[constraints] names '{name}', which {method.name} gives no noise: it keeps rules "
                "only among columns with noise. Remove the rule, or choose another method."
            )
    if setting.release_form is ReleaseForm.TREE:
        return
    for rule in rules:
        _refuse_rule(method, setting, rule)


def _refuse_rule(method: Method[Any], setting: Setting[Any], rule: Constraint) -> None:
    """Refuse a constraint across columns that a release does not keep together.

    Rules that share columns form a part. If one of its columns is shared by k records and another
    need not be, then a single rule of the part has columns of both sorts: otherwise those of either
    sort would be parts of their own.
    """
    if setting.release_form is ReleaseForm.COLUMN_SHUFFLED and len(rule.columns) > 1:
        raise InputError(
            f"[constraints] Rule '{rule.text}' joins columns, but the release form "
            "'column-shuffled' joins none: a row is not a record. Choose another form, or remove "
            "the rule."
        )
    for claim in method.promises.claims(setting):
        inside = [name for name in rule.columns if name in claim.guarantee.columns]
        beside = [name for name in rule.columns if name not in claim.guarantee.columns]
        if (
            isinstance(claim.guarantee, KAnonymity)
            and inside
            and beside
            and claim.status is not Status.REFUTED
        ):
            together = set(rule.columns) <= set(setting.columns)
            raise InputError(
                f"[constraints] Rule '{rule.text}' joins {', '.join(inside)}, which "
                f"{claim.guarantee.k:,} records must share, with {', '.join(beside)}, which those "
                "records need not share: to keep it, rows that are alike would have to differ. "
                f"{_OTHER_METHOD if together else _MORE_COLUMNS}, or remove the rule."
            )


_MORE_COLUMNS = "List all its columns under [protect], columns"
_OTHER_METHOD = "Choose a method that groups columns together, such as mdav"


def notes(choices: ConstraintChoices, form: ReleaseForm) -> tuple[str, ...]:
    """Describe how a plan treats its constraints."""
    if not choices.rules:
        return ()
    if form is ReleaseForm.TREE:
        return ("The rules under [constraints] are not used: a box is not a record.",)
    if choices.observed:
        return ("No released row breaks a rule that was copied from the data.",)
    return (f"No released row breaks: {'; '.join(rule.text for rule in choices.rules)}.",)


def add_assumptions(claims: Iterable[Claim], choices: ConstraintChoices) -> tuple[Claim, ...]:
    """Add to claims of differential privacy what they assume of the constraints."""
    if not choices.rules and not choices.observed:
        return tuple(claims)
    return tuple(
        _add_assumption(claim, observed=choices.observed)
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED
        else claim
        for claim in claims
    )


def _add_assumption(claim: Claim, *, observed: bool) -> Claim:
    weak = observed and claim.status is Status.PROVED
    return replace(
        claim,
        status=Status.CONDITIONAL if weak else claim.status,
        assumes=(*claim.assumes, OBSERVED if observed else DECLARED),
    )

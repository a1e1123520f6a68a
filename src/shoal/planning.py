"""Settle everything that can be settled without the data.

The method, its parameters, what it will promise in which release form, and whether that covers what
the policy requires. A requirement that cannot be met stops here, before any data is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal import clamp
from shoal import policy as policies
from shoal.core import (
    Claim,
    DifferentialPrivacy,
    Guarantee,
    KAnonymity,
    Kind,
    LDiversity,
    Neighbours,
    Policy,
    ReleaseForm,
    Role,
    Status,
    TCloseness,
    shown,
)
from shoal.errors import ClaimViolationError, InputError, did_you_mean
from shoal.methods import REGISTRY, Method, Setting, find
from shoal.spec import sentence


@dataclass(frozen=True)
class Plan:
    """What will be done, and what it will promise, settled before any data is read.

    Attributes:
        notes: what the policy says and this method does not use, in sentences.
        spread: whether it will run on blocks of records, on Spark.
    """

    policy: Policy
    method: Method[Any]
    setting: Setting[Any]
    claims: tuple[Claim, ...]
    required: tuple[Guarantee, ...]
    not_claimed: tuple[str, ...]
    notes: tuple[str, ...]
    spread: bool = False


def plan(
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    keep_order: bool = False,
    spread: bool = False,
) -> Plan:
    """Settle method, parameters and promises, and stop if a required promise is not among them.

    Args:
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        keep_order: release row i in place of row i.
        spread: the rows lie in blocks on Spark, where only some methods run.
    """
    policy = policies.load(policy)
    method = find(policy.method)
    columns = policy.columns or method.default_columns(policy.schema)
    if not columns:
        raise InputError(
            f"Method '{method.name}' finds no column to protect in the policy. Give a column the "
            "role quasi-identifier, or list columns under [protect]."
        )
    parameters = _parameters(method, policy.parameters)
    setting = Setting(
        schema=policy.schema,
        columns=columns,
        parameters=parameters,
        release_form=_form(method, policy, parameters, keep_order=keep_order),
        required=required(policy),
    )
    method.refuse(setting)
    if spread:
        _refuse_spread(method, setting)
    planned = Plan(
        policy=policy,
        method=method,
        setting=setting,
        claims=_claims(method, setting, spread=spread),
        required=required(policy),
        not_claimed=method.not_claimed(setting),
        notes=(
            *_notes(policy, method, setting),
            *([method.approximate] if spread and method.approximate else []),
        ),
        spread=spread,
    )
    for guarantee in planned.required:
        # A method that does not look at confidential values may still reach what it cannot
        # promise about them: that is checked on the finished table.
        if not isinstance(guarantee, KAnonymity | DifferentialPrivacy):
            continue
        if not any(covers(claim, guarantee) for claim in planned.claims):
            raise ClaimViolationError(_cannot(planned, guarantee))
    return planned


def _claims(method: Method[Any], setting: Setting[Any], *, spread: bool) -> tuple[Claim, ...]:
    """What the method promises; no epsilon where the result depends on blocks of the data.

    On blocks an exact method gives what it gives on one machine, and keeps its claims. Of an
    approximate one the blocks follow the data, and a changed record may move them: its proof
    is about other groups. Groups of k stay groups of k.
    """
    claims = method.claims(setting)
    if not (spread and method.approximate):
        return claims
    return tuple(
        replace(
            claim,
            status=Status.UNPROVEN,
            basis="on Spark groups form in blocks that follow the data: no proof is about those",
        )
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED
        else claim
        for claim in claims
    )


def _refuse_spread(method: Method[Any], setting: Setting[Any]) -> None:
    """Refuse a method that does not run on Spark, or not with these parameters."""
    if method.spread is None:
        able = ", ".join(one.name for one in REGISTRY.values() if one.spread is not None)
        raise InputError(f"Method '{method.name}' does not run on Spark; those that do are {able}.")
    method.refuse_spread(setting)


def with_rows(planned: Plan, rows: int) -> Plan:
    """The plan once the number of rows is known: claims may depend on it where it is public."""
    k = getattr(planned.setting.parameters, "k", None) or 1
    if rows < k:
        raise InputError(f"Cannot form one group of k={k:,} from {rows:,} rows. Lower k.")
    if getattr(planned.setting.parameters, "neighbours", None) is Neighbours.ADD_REMOVE:
        return planned
    setting = replace(planned.setting, rows=rows)
    planned.method.refuse(setting)
    claims = _claims(planned.method, setting, spread=planned.spread)
    return replace(planned, setting=setting, claims=claims)


def covers(claim: Claim, guarantee: Guarantee) -> bool:
    """Whether a claim implies a guarantee: as strong, and of at least these columns."""
    claimed = claim.guarantee
    if claim.status is not Status.PROVED or not set(claimed.columns) >= set(guarantee.columns):
        return False
    if isinstance(claimed, KAnonymity) and isinstance(guarantee, KAnonymity):
        return claimed.k >= guarantee.k
    if isinstance(claimed, DifferentialPrivacy) and isinstance(guarantee, DifferentialPrivacy):
        # Changing a record is removing one and adding one.
        steps = 2 if claimed.neighbours is Neighbours.ADD_REMOVE else 1
        if guarantee.neighbours is Neighbours.ADD_REMOVE:
            return steps == 2 and claimed.epsilon <= guarantee.epsilon
        return steps * claimed.epsilon <= guarantee.epsilon
    return False


def _parameters(method: Method[Any], given: Mapping[str, Any]) -> Any:
    known = list(method.parameters.model_fields)
    for name in given:
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(
                f"Method '{method.name}' has no parameter '{name}'.{guess} It takes: "
                f"{', '.join(known)}."
            )
    try:
        return method.parameters.model_validate(dict(given))
    except ValidationError as error:
        raise InputError(sentence(error, "[protect]")) from None


def _form(method: Method[Any], policy: Policy, parameters: Any, *, keep_order: bool) -> ReleaseForm:
    asked = ReleaseForm.ROW_ALIGNED if keep_order else policy.release_form
    known = ", ".join(method.forms)
    implied = method.form_of(parameters)
    if implied is not None:
        if asked not in {None, implied}:
            raise InputError(
                f"Method '{method.name}' with these parameters has the release form '{implied}', "
                f"and the policy asks for '{asked}'."
            )
        return implied
    if asked is None and method.must_choose_form:
        raise InputError(
            f"Method '{method.name}' promises other things in other release forms; choose one "
            f"under [protect] with release_form: {known}."
        )
    if asked is not None and asked not in method.forms:
        raise InputError(f"Method '{method.name}' has no release form '{asked}'. It has: {known}.")
    return asked or method.forms[0]


def required(policy: Policy) -> tuple[Guarantee, ...]:
    """The guarantees that a policy requires."""
    keys = policy.schema.with_role(Role.QUASI_IDENTIFIER)
    wanted: list[Guarantee] = []
    if k := policy.required.get(KAnonymity.name):
        wanted.append(KAnonymity(k, keys))
    for spec in policy.required.get(LDiversity.name, ()):
        c = None if spec.c is None else Fraction(spec.c)
        wanted.append(LDiversity(Fraction(spec.l), spec.kind, tuple(spec.column), keys, c))
    wanted += [
        TCloseness(Fraction(spec.t), spec.distance, tuple(spec.column), keys)
        for spec in policy.required.get(TCloseness.name, ())
    ]
    if epsilon := policy.required.get(DifferentialPrivacy.name):
        columns = tuple(name for name in policy.schema.released if not policy.schema[name].public)
        wanted.append(DifferentialPrivacy(Fraction(epsilon), Neighbours.CHANGE_ONE, columns))
    return tuple(wanted)


def _cannot(planned: Plan, guarantee: KAnonymity | DifferentialPrivacy) -> str:
    """Say why a requirement stops the plan, and name the nearest that meets it."""
    unprotected = [name for name in guarantee.columns if name not in planned.setting.columns]
    wide = [
        claim
        for claim in planned.claims
        if set(claim.guarantee.columns) >= set(guarantee.columns)
        and isinstance(claim.guarantee, type(guarantee))
    ]
    fixable = True
    if unprotected:
        why = f"[protect] columns leaves out {', '.join(unprotected)}; add what is missing"
    elif wide and wide[0].status is Status.PROVED:
        move = f"raise its k to {guarantee.k}" if isinstance(guarantee, KAnonymity) else ""
        if isinstance(guarantee, DifferentialPrivacy):
            claimed = wide[0].guarantee
            adds = getattr(claimed, "neighbours", None) is Neighbours.ADD_REMOVE
            steps = 2 if adds and guarantee.neighbours is Neighbours.CHANGE_ONE else 1
            why_half = ", since a change is a removal and an addition" if steps == 2 else ""
            move = f"lower its epsilon to {shown(guarantee.epsilon / steps)}{why_half}"
        why = f"it promises {wide[0].guarantee}; {move}"
    elif wide:
        fixable = False
        reason = (
            wide[0].basis
            if wide[0].status is Status.REFUTED
            else (f"it holds only if {'; '.join(wide[0].assumes)}")
        )
        why = f"as {planned.setting.release_form} the claim is {wide[0].status}: {reason}"
    else:
        fixable = False
        why = " ".join(planned.not_claimed).rstrip(".") or "it makes no such promise"
    able = [] if fixable else _able(planned, guarantee)
    offer = f" Nearest that can: {', '.join(able)}." if able else ""
    return (
        f"The policy requires {guarantee}, and method '{planned.method.name}' as set up cannot "
        f"promise it: {why}.{offer} Nothing was read or written."
    )


def _able(planned: Plan, guarantee: KAnonymity | DifferentialPrivacy) -> list[str]:
    """Methods and forms that would meet a requirement, this method's other forms first."""
    able = []
    first = planned.method
    for method in (first, *(other for other in REGISTRY.values() if other is not first)):
        given = {**method.example, **planned.policy.parameters}
        known = {name: given[name] for name in given if name in method.parameters.model_fields}
        if isinstance(guarantee, KAnonymity):
            known["k"] = guarantee.k
        try:
            parameters = method.parameters.model_validate(known)
        except ValidationError:
            continue
        for form in method.forms:
            setting = Setting(planned.policy.schema, guarantee.columns, parameters, form)
            try:
                method.refuse(setting)
            except InputError:
                continue
            if any(covers(claim, guarantee) for claim in method.claims(setting)):
                able.append(f"{method.name} ({form})" if method.must_choose_form else method.name)
                break
    return able


def _notes(policy: Policy, method: Method[Any], setting: Setting[Any]) -> tuple[str, ...]:
    """Say which keys of the policy this method carries along without using them."""
    schema = policy.schema
    notes = []
    weight = schema.flagged("weight")
    boxes = setting.release_form is ReleaseForm.TREE
    if weight in schema.released and weight not in setting.columns and not boxes:
        notes.append(f"Weight '{weight}' is released as it is; group centres are unweighted.")
    stratum = schema.flagged("stratum")
    if stratum:
        notes.append(f"Stratum '{stratum}' is carried along; groups may span strata.")
    household = schema.flagged("household")
    if household:
        notes.append(
            f"Household '{household}': a group of k records may hold several members of one."
        )
    observed = [column.name for column in schema.columns if column.observed]
    if observed:
        notes.append(
            f"Categories of {', '.join(observed)} were copied from the data and are not "
            "confirmed as public."
        )
    if setting.release_form is ReleaseForm.SYNTHETIC:
        notes.append("Rows were drawn from a noisy model: no row is a person.")
    if boxes:
        notes.append("A row is a box of the quasi-identifiers' space, with counts.")
    if method.noisy:
        return (*notes, *_clamping_notes(setting, method.clamps(setting), scaled=method.scaled))
    public = [column.name for column in schema.columns if column.public]
    if public:
        notes.append(f"Declared public: {', '.join(public)}; this method does not use it.")
    untouched = [
        column.name
        for column in schema.columns
        if column.role is Role.OTHER and column.name not in setting.columns
    ]
    if untouched and not boxes:
        notes.append(f"Released as it is, by role 'other': {', '.join(untouched)}.")
    return tuple(notes)


def _clamping_notes(setting: Setting[Any], columns: Sequence[str], *, scaled: bool) -> list[str]:
    """Say what happens in silence to cells outside their public domains."""
    notes = ["Cells outside their bounds are clamped, record by record and in silence."]
    for name in columns:
        column = setting.schema[name]
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
            other = column.other or (column.levels or ("",))[0]
            missing = other if column.missing_as is None else column.missing_as
            notes.append(f"'{name}': unknown values count as '{other}', missing as '{missing}'.")
        else:
            notes.append(f"'{name}': missing cells count as {clamp.constant(column)}.")
    unused = [name for name in columns if setting.schema[name].transform and not scaled]
    if unused:
        notes.append(f"The transform of {', '.join(unused)} is not used by this method.")
    if setting.release_form is ReleaseForm.MARGINALS:
        notes.append(
            "Columns are permuted independently: the table holds no joint information, and no "
            "row is a person."
        )
    return notes

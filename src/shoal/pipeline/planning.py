"""Plan a release: settle everything that does not need the data.

The method, its parameters, what it will promise in which release form, and whether that covers what
the policy requires. A requirement that cannot be met stops here, before any data is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from html import escape
from itertools import chain
from typing import Any

from pydantic import ValidationError

from shoal import policy as policies
from shoal.core import (
    Claim,
    DifferentialPrivacy,
    Distance,
    Guarantee,
    KAnonymity,
    LDiversity,
    MissingMeaning,
    Neighbours,
    Policy,
    ReleaseForm,
    RiskLimit,
    Role,
    Status,
    StochasticTCloseness,
    TCloseness,
    write_fraction,
)
from shoal.engine import class_weights, constraint_fit, risk_limits
from shoal.errors import ClaimViolationError, InputError, count_noun, did_you_mean
from shoal.io import clamp
from shoal.io.text_files import check_options
from shoal.methods import REGISTRY, Method, Setting, discovery, find
from shoal.methods.method import ContributionProof, Expectation
from shoal.methods.noise import contributions
from shoal.pipeline import audiences, forecast, stated_reading
from shoal.pipeline.plan_notes import SeenTable, list_doubts, notes
from shoal.policy.misfits import explain

Foreseeable = KAnonymity | DifferentialPrivacy | StochasticTCloseness
"""Guarantees that a plan must promise; the others are checked on the finished table."""


@dataclass(frozen=True)
class Plan:
    """What will be done and promised, decided before any data is read.

    Attributes:
        notes: what the policy states and this method does not use, in sentences.
        distributed: whether it will run on blocks of records, on Spark.
        rows: the stated number of rows, if any.
    """

    policy: Policy
    method: Method[Any]
    setting: Setting[Any]
    claims: tuple[Claim, ...]
    required: tuple[Guarantee, ...]
    not_claimed: tuple[str, ...]
    notes: tuple[str, ...]
    distributed: bool = False
    rows: int | None = None

    @property
    def expected(self) -> tuple[Expectation, ...]:
        """The predicted utility; empty if the number of rows is not stated."""
        return (
            ()
            if self.rows is None
            else forecast.expect_survivors(self.method, self.setting, self.rows)
        )

    def __repr__(self) -> str:
        return forecast.plan_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def plan(
    policy: policies.PolicySource,
    *,
    keep_order: bool = False,
    distributed: bool = False,
    audience: str | None = None,
    rows: int | None = None,
    data: Any = None,
    delimiter: str | None = None,
) -> Plan:
    """Settle method, parameters and promises, and stop if a required promise is missing.

    Args:
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        keep_order: release row i in place of row i.
        distributed: the rows lie in blocks on Spark, where only some methods run.
        audience: who will get the release, instead of the policy's: public-use, scientific-use or
            secure-use.
        rows: how many rows the table has, or about: claims may depend on it where it is public,
            and so does what survives, which the plan then says. No data is read.
        data: the table, or the path of its file, if it is known. Of a path only the name is used:
            an epsilon release of a text file needs [reading].
        delimiter: of that file, where the policy does not state it.

    Raises:
        InputError: something does not fit, or the claims will not do for the audience.
        ClaimViolationError: a required promise cannot be had.
    """
    check_options(rows=rows)
    policy = policies.load(policy)
    if audience is not None:
        policy = replace(policy, audience=audiences.find_audience(audience))
    method = find(policy.method)
    columns = policy.columns or method.input.columns(policy.schema)
    if not columns:
        raise InputError(
            f"Method '{method.name}' finds no column to protect in the policy. Give a column the "
            "role quasi-identifier, or list columns under [protect]."
        )
    parameters = _parameters(method, policy.parameters)
    _refuse_unknown(policy, method)
    policy = replace(policy, schema=method.settle_missing(policy.schema, parameters))
    setting = Setting(
        schema=policy.schema,
        columns=columns,
        parameters=parameters,
        release_form=_form(method, policy, parameters, keep_order=keep_order),
        required=policy.required,
        constraints=policy.constraints,
    )
    _refuse_contributions(method, setting)
    _refuse_risk_limits(method, setting, distributed=distributed)
    linked = setting.release_form in {ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED}
    not_hidden = audiences.refuse_pseudonyms(
        policy, rows=linked and not (method.noisy or distributed)
    )
    if method.noisy:
        stated_reading.refuse_unstated(policy, data, delimiter=delimiter)
    for name in method.clamps(setting):
        clamp.refuse_alike(policy.schema[name])
    method.refuse(setting)
    constraint_fit.refuse_contradiction(method, setting)
    if distributed:
        _refuse_distributed(method, setting)
    constraint_fit.refuse(method, setting)
    claims = _claims(method, setting, distributed=distributed)
    private = (c.guarantee for c in claims if isinstance(c.guarantee, DifferentialPrivacy))
    planned = Plan(
        policy=policy,
        method=method,
        setting=setting,
        claims=claims,
        required=policy.required,
        not_claimed=(
            *method.promises.not_claimed(setting),
            *not_hidden,
        ),
        notes=(
            *notes(policy, method, setting),
            *chain.from_iterable(discovery.plan_notes(setting, claimed) for claimed in private),
            *constraint_fit.notes(policy.constraints, setting.release_form),
            *filter(None, [method.approximate(distributed=distributed)]),
        ),
        distributed=distributed,
    )
    for guarantee in planned.required:
        # A method that does not use confidential values may still reach what it cannot
        # promise about them: that is checked on the finished table.
        if isinstance(guarantee, Foreseeable) and not any(
            covers(claim, guarantee) for claim in planned.claims
        ):
            raise ClaimViolationError(_cannot(planned, guarantee))
    audiences.refuse(policy, planned.claims)
    return planned if rows is None else replace(with_rows(planned, rows), rows=rows)


def _refuse_unknown(policy: Policy, method: Method[Any]) -> None:
    """Refuse a method that needs to know what the policy leaves to be discovered."""
    unsettled = [column.name for column in policy.schema.columns if column.discover]
    if unsettled and not method.discovers:
        able = ", ".join(name for name, other in REGISTRY.items() if other.discovers)
        raise InputError(
            f"Column '{unsettled[0]}' is to be discovered, which '{method.name}' cannot: its kind, "
            f"bounds or categories must be stated. These methods discover them: {able}.",
            field=("columns", unsettled[0]),
        )


def _refuse_risk_limits(method: Method[Any], setting: Setting[Any], *, distributed: bool) -> None:
    """Refuse a limited risk of rows where rows are not people's, or are on Spark."""
    form = setting.release_form
    if method.noisy:
        risk_limits.refuse_risk(setting.required, "a release with noise")
    if form in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC, ReleaseForm.COLUMN_SHUFFLED}:
        risk_limits.refuse_risk(setting.required, f"a {form} release")
    if distributed:
        risk_limits.refuse_risk(setting.required, "a release on Spark, whose blocks are not kept,")


def _refuse_contributions(method: Method[Any], setting: Setting[Any]) -> None:
    """Refuse several rows per person where a method has no proof for them."""
    stated = setting.schema.persons
    if stated is None or not method.noisy or method.promises.contributions is ContributionProof.ANY:
        return  # without noise groups are made of persons
    if stated.most == 1:
        if stated.dropped and method.noisy:
            contributions.refuse_shown(setting, method.clamps(setting), method.name)
        return
    where = f"Column '{stated.column}': a person may have {stated.most:,} rows"
    if method.promises.contributions is ContributionProof.NONE:
        able = [
            name
            for name, other in REGISTRY.items()
            if other.promises.contributions is not ContributionProof.NONE
        ]
        raise InputError(
            f"{where}, but the promise of '{method.name}' is about single rows. Bring the table to "
            f"one row per person, or use one of {', '.join(able)}."
        )
    if contributions.adds(setting) or not stated.exact:
        raise InputError(
            f"{where}, but '{method.name}' releases one row for each original row, and their "
            "number would disclose something. State exact_contributions instead of "
            "max_contributions, or use auto."
        )


def _claims(method: Method[Any], setting: Setting[Any], *, distributed: bool) -> tuple[Claim, ...]:
    """List the method's claims; no epsilon if the result depends on blocks of the data.

    On Spark an exact method has the result of one machine, and keeps its claims. The blocks of an
    approximate one follow the data, and a changed record may move them, so its proof does not
    apply. Groups of k stay groups of k.
    """
    promised = method.promises.claims(setting)
    promised = class_weights.cover_weight(promised, method, setting, distributed=distributed)
    claims = constraint_fit.add_assumptions(promised, setting.constraints)
    if not method.approximate(distributed=distributed):
        return claims
    return tuple(
        replace(
            claim,
            status=Status.UNPROVEN,
            basis="on Spark, groups form in blocks that depend on the data; no proof covers those",
        )
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED
        else claim
        for claim in claims
    )


def _refuse_distributed(method: Method[Any], setting: Setting[Any]) -> None:
    """Refuse a method that does not run on Spark, or not with these parameters."""
    if method.distributed is None:
        able = ", ".join(m.name for m in REGISTRY.values() if m.distributed is not None)
        raise InputError(f"Method '{method.name}' does not run on Spark; these do: {able}.")
    method.distributed.refuse(setting)


def with_rows(planned: Plan, rows: int | None) -> Plan:
    """Update a plan once the number of rows is known: claims may depend on it if it is public."""
    if rows is None or not contributions.rows_are_public(planned.setting):
        return planned
    k = getattr(planned.setting.parameters, "k", None) or 1
    if rows < k:
        raise InputError(
            f"Cannot form one group of k={k:,} from {count_noun(rows, 'row')}. Lower k."
        )
    setting = replace(planned.setting, rows=rows)
    planned.method.refuse(setting)
    claims = _claims(planned.method, setting, distributed=planned.distributed)
    return replace(planned, setting=setting, claims=claims)


def foreseen_rows(planned: Plan, rows: int | None) -> Plan:
    """Update a plan for a table of so many rows, if its epsilon allows knowing their number."""
    if rows is None or (
        planned.method.noisy and not contributions.rows_are_public(planned.setting)
    ):
        return planned
    return replace(with_rows(planned, rows), rows=rows)


def covers(claim: Claim, guarantee: Guarantee) -> bool:
    """Whether a claim implies a guarantee: as strong, and of at least these columns.

    One that is conditional on one row per person alone does: what is required carries the same
    condition, which the release states.
    """
    claimed = claim.guarantee
    if not claim.stands or not set(claimed.columns) >= set(guarantee.columns):
        return False
    if claimed == guarantee:
        return True
    if isinstance(claimed, KAnonymity) and isinstance(guarantee, KAnonymity):
        as_strict = claimed.missing in {MissingMeaning.OWN_VALUE, guarantee.missing}
        return claimed.k >= guarantee.k and as_strict
    if isinstance(claimed, DifferentialPrivacy) and isinstance(guarantee, DifferentialPrivacy):
        return _as_private(claimed, guarantee)
    return isinstance(guarantee, StochasticTCloseness) and _as_close(claimed, guarantee)


def _as_private(claimed: DifferentialPrivacy, guarantee: DifferentialPrivacy) -> bool:
    """Whether one pure epsilon implies another; a rho implies none."""
    # Changing a record is removing one and adding one.
    steps = 2 if claimed.neighbours is Neighbours.ADD_REMOVE else 1
    if claimed.pure is None or guarantee.pure is None:
        return False
    if guarantee.neighbours is Neighbours.ADD_REMOVE:
        return steps == 2 and claimed.pure <= guarantee.pure
    return steps * claimed.pure <= guarantee.pure


def _as_close(claimed: Guarantee, guarantee: StochasticTCloseness) -> bool:
    """Whether t-closeness implies its stochastic form: unchanged values are certain draws."""
    if not isinstance(claimed, TCloseness | StochasticTCloseness):
        return False
    ratio = isinstance(claimed, StochasticTCloseness) or claimed.distance is Distance.RATIO
    return ratio and {*claimed.keys} >= {*guarantee.keys} and claimed.t <= guarantee.t


def price(policy: Policy, claims: Iterable[Claim]) -> DifferentialPrivacy | None:
    """Return what a budget file is charged: the least proved loss for all released columns.

    A pure epsilon takes precedence over a rho.

    Columns that leave without noise are bounded by no epsilon, unless everybody knows them.
    """
    secret = {name for name in policy.schema.released if not policy.schema[name].public}
    proved = [
        claim.guarantee
        for claim in claims
        if isinstance(claim.guarantee, DifferentialPrivacy)
        and claim.status is Status.PROVED
        and secret <= set(claim.guarantee.protects)
    ]
    return min(
        proved, key=lambda one: (one.rho is not None, one.rho or one.epsilon or 0), default=None
    )


@dataclass(frozen=True)
class Offer:
    """What a method would promise for the columns of a policy, and at which privacy loss.

    Attributes:
        parameters: as `[protect]` would state them.
        release_form: where one must be stated.
        plan: where unmet, without what policy and audience require; where refused, none.
        proved: a proved claim covers all quasi-identifiers together, public ones aside.
        refused: why it cannot be used as set up, or nothing.
        unmet: why it does not keep what policy and audience require, or nothing.
        doubts: why it may fail once the table is read, in sentences.
        cost: what it takes of the budget, in a sentence.
    """

    method: Method[Any]
    parameters: Mapping[str, Any]
    release_form: ReleaseForm | None
    plan: Plan | None = None
    proved: bool = False
    refused: str = ""
    unmet: str = ""
    doubts: tuple[str, ...] = ()
    cost: str = ""

    @property
    def fit(self) -> str:
        """Whether the method fits, may fail, or cannot be used."""
        if self.refused or self.unmet:
            return "cannot"
        return "may fail" if self.doubts else "fits"

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims; empty if the method is refused."""
        return () if self.plan is None else self.plan.claims

    @property
    def not_claimed(self) -> tuple[str, ...]:
        """What would not be promised, in sentences."""
        return () if self.plan is None else self.plan.not_claimed


def offers(policy: Policy, seen: SeenTable | None = None) -> tuple[Offer, ...]:
    """Every method with what it would promise for this policy's columns; see `offer`.

    A method of another package is among them where the policy names it.
    """
    named = () if policy.method in REGISTRY else (find(policy.method),)
    return tuple(offer(policy, method, seen) for method in (*REGISTRY.values(), *named))


def suggest_parameters(method: Method[Any], policy: Policy) -> dict[str, Any]:
    """Suggest parameters for a method: its example, adapted to the columns of a policy."""
    example = dict(method.example.parameters)
    confidential = policy.schema.with_role(Role.CONFIDENTIAL)
    if method.noisy and "count" in method.parameters.model_fields and len(confidential) > 1:
        # A tree counts one of them; the one that attacks try to guess, as measures choose it.
        with_categories = [name for name in confidential if policy.schema[name].all_categories]
        example["count"] = policy.evaluate.secret or (with_categories or confidential)[0]
    return example


def offer(policy: Policy, method: Method[Any], seen: SeenTable | None = None) -> Offer:
    """What a method would promise for this policy's columns; no data is read.

    The policy's own method is taken as it is set up. Others take over parameters that they
    share with it, and what else they need is as in their examples. What was seen of the table
    adds what will or may stop a run; see `list_doubts`.
    """
    form = method.forms.offered[0] if method.forms.must_choose else None
    stated, columns = suggest_parameters(method, policy), None
    if method.name == policy.method:
        stated, columns, form = dict(policy.parameters), policy.columns, policy.release_form
    else:
        shared = {"k", "epsilon"} & stated.keys() & policy.parameters.keys()
        stated |= {name: policy.parameters[name] for name in shared}
    bare = replace(
        policy, method=method.name, parameters=stated, columns=columns, release_form=form
    )
    unmet = ""
    try:
        planned = foreseen_rows(plan(bare), None if seen is None else seen.rows)
    except (InputError, ClaimViolationError) as error:
        unmet = str(error)
        try:
            planned = plan(replace(bare, required=(), audience=None))
        except (InputError, ClaimViolationError) as reason:
            return Offer(method, stated, form, refused=str(reason))
    will, may = list_doubts(bare, method, planned.setting, seen)
    return Offer(
        method,
        stated,
        form,
        planned,
        audiences.covers_together(policy, planned.claims, {Status.PROVED}),
        unmet=unmet or " ".join(will),
        doubts=tuple(may),
        cost=cost(policy, planned.claims),
    )


UNBOUNDED = (
    "No epsilon covers all released columns: a budget file records a release without a bound."
)


def cost(policy: Policy, claims: Iterable[Claim]) -> str:
    """Say what a release costs the population's budget."""
    spent = price(policy, claims)
    if spent is None:
        return UNBOUNDED
    if spent.rho is not None:
        return f"Costs rho {write_fraction(spent.rho)}, which a budget with a delta holds."
    return f"Costs epsilon {write_fraction(spent.epsilon or Fraction(0))}."


def check_parameters(policy: Policy) -> None:
    """Refuse an unknown method, or parameters that it does not take.

    Whether the method fits the columns is left to `plan`.
    """
    _parameters(find(policy.method), policy.parameters)


def _parameters(method: Method[Any], given: Mapping[str, Any]) -> Any:
    known = list(method.parameters.model_fields)
    for name in given:
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(
                f"Method '{method.name}' has no parameter '{name}'.{guess} It takes: "
                f"{', '.join(known)}.",
                field=("protect", name),
            )
    try:
        return method.parameters.model_validate(dict(given))
    except ValidationError as error:
        raise explain(error, "[protect]", "protect") from None


def _form(method: Method[Any], policy: Policy, parameters: Any, *, keep_order: bool) -> ReleaseForm:
    asked = ReleaseForm.ROW_ALIGNED if keep_order else policy.release_form
    known = ", ".join(method.forms.offered)
    implied = method.forms.implied(parameters)
    if implied is not None:
        if asked not in {None, implied}:
            raise InputError(
                f"Method '{method.name}' with these parameters has the release form '{implied}', "
                f"but the policy asks for '{asked}'."
            )
        return implied
    if asked is None and method.forms.must_choose:
        raise InputError(
            f"Method '{method.name}' promises different things in different release forms; "
            f"choose one under [protect] with release_form: {known}."
        )
    if asked is not None and asked not in method.forms.offered:
        raise InputError(f"Method '{method.name}' has no release form '{asked}'. It has: {known}.")
    return asked or method.forms.offered[0]


def _cannot(planned: Plan, guarantee: Foreseeable) -> str:
    """Explain why a requirement stops the plan, and name what would meet it."""
    drawn = isinstance(guarantee, StochasticTCloseness)
    unprotected = [
        name for name in guarantee.columns if name not in planned.setting.columns and not drawn
    ]
    wide = [
        claim
        for claim in planned.claims
        if set(claim.guarantee.columns) >= set(guarantee.columns)
        and isinstance(claim.guarantee, type(guarantee))
    ]
    fixable = True
    if unprotected:
        why = f"columns under [protect] leaves out {', '.join(unprotected)}; add what is missing"
    elif wide and wide[0].stands:
        move = f"raise its k to {guarantee.k}" if isinstance(guarantee, KAnonymity) else ""
        if isinstance(guarantee, DifferentialPrivacy):
            claimed = wide[0].guarantee
            adds = getattr(claimed, "neighbours", None) is Neighbours.ADD_REMOVE
            steps = 2 if adds and guarantee.neighbours is Neighbours.CHANGE_ONE else 1
            why_half = (
                ", since changing a record is removing one and adding one" if steps == 2 else ""
            )
            wanted = write_fraction((guarantee.epsilon or Fraction(0)) / steps)
            move = f"lower its epsilon to {wanted}{why_half}"
            if getattr(claimed, "rho", None) is not None:
                move = f"state epsilon = {wanted} without delta or rho: the requirement is pure"
        if isinstance(guarantee, StochasticTCloseness):
            move = f"state t = {guarantee.t:g} under [protect], and no epsilon"
        why = f"it promises {wide[0].guarantee}; {move}"
    elif wide:
        fixable = False
        reason = (
            wide[0].basis
            if wide[0].status is Status.REFUTED
            else (f"it holds only if {'; '.join(wide[0].assumes)}")
        )
        why = f"in the form {planned.setting.release_form} its claim is {wide[0].status}: {reason}"
    else:
        fixable = False
        why = " ".join(planned.not_claimed).rstrip(".") or "the method makes no such promise"
    offer = "" if fixable else able(planned, guarantee)
    return (
        f"The policy requires {guarantee}, but method '{planned.method.name}' as set up cannot "
        f"promise it: {why}.{offer} Nothing was read or written."
    )


def able(planned: Plan, guarantee: Guarantee) -> str:
    """Name methods and forms that would meet a requirement, this method's other forms first.

    Of a risk that is limited, say what lowers it.
    """
    if isinstance(guarantee, RiskLimit):
        return f" {risk_limits.what_lowers(guarantee)}"
    names = []
    first = planned.method
    for method in (first, *(other for other in REGISTRY.values() if other is not first)):
        given = {**method.example.parameters, **planned.policy.parameters}
        known = {name: given[name] for name in given if name in method.parameters.model_fields}
        if isinstance(guarantee, KAnonymity):
            known["k"] = guarantee.k
        columns = guarantee.columns
        if isinstance(guarantee, LDiversity | TCloseness):
            columns = guarantee.keys
        if isinstance(guarantee, StochasticTCloseness) and "t" in method.parameters.model_fields:
            known = {name: known[name] for name in known if name != "epsilon"}
            known["t"] = Decimal(str(guarantee.t))
            columns = method.input.columns(planned.policy.schema)
        try:
            parameters = method.parameters.model_validate(known)
        except ValidationError:
            continue
        for form in method.forms.offered:
            required = planned.required
            setting = Setting(planned.policy.schema, columns, parameters, form, required=required)
            try:
                _refuse_contributions(method, setting)
                method.refuse(setting)
            except InputError:
                continue
            if any(covers(claim, guarantee) for claim in method.promises.claims(setting)):
                names.append(f"{method.name} ({form})" if method.forms.must_choose else method.name)
                break
    return f" These methods can promise it: {', '.join(names)}." if names else ""

"""Screen 3: which method, with which settings, and what it promises for this policy."""

from collections.abc import Collection, Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from shoal.core import Policy
from shoal.core.serialise import plain
from shoal.errors import InputError, ShoalError, counted
from shoal.methods import find
from shoal.pipeline import audiences, planning
from shoal.pipeline.planning import Offer
from shoal.report import phrases
from shoal.studio import invalid_input, policy_document
from shoal.studio.jobs import JobKind
from shoal.studio.pages import editing, fields
from shoal.studio.pages.common import Form, Here, Present, back_to, screen
from shoal.studio.pages.home import job_values
from shoal.studio.workspace import Draft

router = APIRouter(include_in_schema=False)

CHANGED = (
    "The policy has changed since this page was shown, perhaps in another tab. Look at it again "
    "before you release."
)


@router.get("/w/{id}/protect")
def show(here: Present) -> Response:
    """Show audiences, the chosen method and every other one."""
    return back_to(here, "data") if here.policy is None else _show(here, here.policy)


@router.post("/w/{id}/protect/audience")
def audience(here: Present, form: Form) -> Response:
    """Say who will get the table."""
    stated = {"audience": audiences.named(form.get("audience", "")).value}
    return _put(here, "release", stated)


@router.post("/w/{id}/protect/method")
def method(here: Present, form: Form) -> Response:
    """Choose a method, with the settings that its card shows."""
    wanted = find(form.get("method", ""))
    if here.policy is not None:
        offer = next(one for one in planning.offers(here.policy) if one.method is wanted)
        stated = {"method": wanted.name, **offer.parameters}
        if offer.release_form is not None:
            stated["release_form"] = offer.release_form.value
        return _put(here, "protect", stated, settles=[invalid_input.PARAMETERS])
    return back_to(here, "data")


@router.post("/w/{id}/protect/parameters")
def parameters(here: Present, form: Form) -> Response:
    """Take the settings of the chosen method."""
    if here.policy is None:
        return back_to(here, "data")
    before = here.document["protect"]
    given = {name.removeprefix("p."): text for name, text in form.items()}
    stated: dict[str, Any] = {"method": here.policy.method}
    stated |= fields.read_parameters(find(here.policy.method), given)
    if "columns" in before:
        stated["columns"] = before["columns"]
    try:
        # The shape of the file says little about parameters; the plan without data says the rest.
        tried = policy_document.judged(
            editing.with_table(here.workspace.policy, "protect", stated),
            folder=here.studio.store.files(here.workspace.id),
        )
        planning.check_parameters(tried)
        here.put_tables({"protect": stated}, settles=[invalid_input.PARAMETERS])
    except ShoalError as error:
        return _refused(here, invalid_input.PARAMETERS, given, str(error), table="protect")
    return back_to(here, "protect")


@router.post("/w/{id}/protect/require")
def require(here: Present, form: Form) -> Response:
    """Take what must be promised."""
    if here.policy is None:
        return back_to(here, "data")
    stated = fields.read_requirements(form)
    try:
        here.put_tables({"require": stated}, settles=[invalid_input.REQUIRE])
    except InputError as error:
        return _refused(here, invalid_input.REQUIRE, form, str(error), table="require")
    return back_to(here, "protect")


@router.post("/w/{id}/protect/run")
def run(here: Present, form: Form) -> Response:
    """Make a release, in a job."""
    if here.blocked:
        raise InputError(here.blocked)
    if here.policy is not None and form.get("policy", here.policy.digest) != here.policy.digest:
        raise InputError(CHANGED)
    here.studio.start_protect(here.workspace, evaluate=False if form.get("unmeasured") else None)
    return back_to(here, form.get("back", "release"))


def _put(here: Here, table: str, stated: Mapping[str, Any], **options: Any) -> Response:
    """Make a change of a choice, or say why not; a page that is swapped in has to say it itself."""
    try:
        here.put_tables({table: stated}, **options)
    except InputError as error:
        if here.policy is None:
            raise
        return _show(here, here.policy, error=str(error))
    return back_to(here, "protect")


def _refused(
    here: Here, where: str, given: Mapping[str, str], error: str, *, table: str
) -> Response:
    """Keep what was typed, and show it with what does not fit."""
    wrong = invalid_input.wrong_fields(error, given, table=table)
    return show(here.drafted(where, given, error, wrong))


def _show(here: Here, policy: Policy, *, error: str = "") -> Response:
    draft = here.workspace.drafts.get(invalid_input.REQUIRE)
    offers = [_offer(one, policy) for one in planning.offers(policy)]
    fitting = [one for one in offers if one["chosen"] or not (one["refused"] or one["unmet"])]
    others = [one for one in offers if one not in fitting]
    title = audiences.RULES[here.audience].title
    return screen(
        here,
        "protect",
        audiences=[
            {"key": one.value, "title": rule.title, "words": rule.sentence}
            for one, rule in audiences.RULES.items()
        ],
        audience=here.audience.value,
        error=error,
        requirements=fields.requirements(
            here.document.get("require", {}) if draft is None else draft.given
        ),
        require_error="" if draft is None else draft.error,
        require_wrong=_wrong(draft, fields.REQUIRED),
        offers=sorted(fitting, key=lambda one: not one["chosen"]),
        others=others,
        offers_words=f"{len(fitting)} of {len(offers)} methods fit these columns, the requirements "
        f"and the audience '{here.audience}' ({title.lower()}).",
        others_words=counted(len(others), "method that does not fit", "methods that do not fit"),
        **chosen(here, policy),
    )


def _wrong(draft: Draft | None, known: Collection[str]) -> Collection[str]:
    """The fields that an error stands on: all of the form, where it does not say."""
    return () if draft is None else draft.wrong or known


def chosen(here: Here, policy: Policy) -> dict[str, Any]:
    """The chosen method, its fields, what it promises, and whether it may run."""
    found = find(policy.method)
    asked = fields.parameters(found, here.document["protect"])
    draft = here.workspace.drafts.get(invalid_input.PARAMETERS)
    for one in asked:
        one["value"] = one["value"] if draft is None else draft.given.get(one["name"], "")
    plan, refused = here.planned
    spent = None if plan is None else planning.cost(policy, plan.claims)
    return {
        "method": {
            "name": found.name,
            "summary": found.summary,
            "reference_short": found.reference.partition(",")[0],
        },
        "parameters": asked,
        "parameter_error": "" if draft is None else draft.error,
        "parameters_wrong": _wrong(draft, [one["name"] for one in asked]),
        "plan_error": refused,
        "claims": [plain(claim) for claim in here.claims],
        "not_claimed": () if plan is None else plan.not_claimed,
        "plan_notes": () if plan is None else plan.notes,
        "cost": spent,
        "blocked": here.blocked,
        "digest": policy.digest,
        **job_values(here.job(JobKind.PROTECT)),
        "back": "protect",
    }


def _offer(one: Offer, policy: Policy) -> dict[str, Any]:
    return {
        "name": one.method.name,
        "summary": one.method.summary,
        "chosen": one.method.name == policy.method,
        "refused": one.refused,
        "unmet": one.unmet,
        "cost": one.cost,
        "not_claimed": one.not_claimed,
        "claims": _short_claims(one),
    }


def _short_claims(one: Offer) -> list[dict[str, str]]:
    """Claims of a card; those that differ only in their columns are listed once."""
    found: dict[tuple[str, str], list[str]] = {}
    for claim in one.claims:
        facts = plain(claim.guarantee)
        name = phrases.short(facts)
        found.setdefault((claim.status.value, name), []).append(phrases.of_columns(facts))
    return [
        {"status": status, "text": f"{name} of {'; of '.join(columns)}"}
        for (status, name), columns in found.items()
    ]

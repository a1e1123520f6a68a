"""Screen 3: which method, with which settings, and what it promises for this policy."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from shoal import audiences, planning
from shoal.core import Policy
from shoal.errors import InputError, ShoalError
from shoal.methods import find
from shoal.planning import Offer
from shoal.report import words
from shoal.serialise import plain
from shoal.studio import document
from shoal.studio.context import Current, TheStudio
from shoal.studio.jobs import Kind
from shoal.studio.pages import editing, fields
from shoal.studio.pages.common import Form, Here, back_to, screen
from shoal.studio.pages.home import job_values

router = APIRouter(include_in_schema=False)


@router.get("/w/{id}/protect")
def show(studio: TheStudio, workspace: Current) -> Response:
    """Show audiences, the chosen method and every other one."""
    here = Here(studio, workspace)
    return back_to(here, "data") if here.policy is None else _show(here, here.policy)


@router.post("/w/{id}/protect/audience")
def audience(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Say who will get the table."""
    stated = {"audience": audiences.named(form.get("audience", "")).value}
    text = editing.with_table(workspace.policy, "release", stated)
    return back_to(Here(studio, studio.put_policy(workspace, text)), "protect")


@router.post("/w/{id}/protect/method")
def method(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Choose a method, with the settings that its card shows."""
    here = Here(studio, workspace)
    wanted = find(form.get("method", ""))
    if here.policy is not None:
        offer = next(one for one in planning.offers(here.policy) if one.method is wanted)
        stated = {"method": wanted.name, **offer.parameters}
        if offer.release_form is not None:
            stated["release_form"] = offer.release_form.value
        _put(here, stated)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/parameters")
def parameters(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Take the settings of the chosen method."""
    here = Here(studio, workspace)
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
        tried = document.judged(
            editing.with_table(workspace.policy, "protect", stated),
            folder=studio.store.files(workspace.id),
        )
        planning.check_parameters(tried)
    except ShoalError as error:
        return _show(here, here.policy, error=str(error), typed=given)
    _put(here, stated)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/require")
def require(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Take what must be promised."""
    here = Here(studio, workspace)
    if here.policy is None:
        return back_to(here, "data")
    stated = fields.read_requirements(form)
    try:
        text = editing.with_table(workspace.policy, "require", stated)
        studio.put_policy(workspace, text)
    except InputError as error:
        return _show(here, here.policy, require_error=str(error), required=form)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/run")
def run(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Make a release, in a job."""
    here = Here(studio, workspace)
    if here.blocked:
        raise InputError(here.blocked)
    studio.start_protect(workspace, measure=False if form.get("unmeasured") else None)
    return back_to(here, form.get("back", "release"))


def _put(here: Here, stated: Mapping[str, Any]) -> None:
    text = editing.with_table(here.workspace.policy, "protect", stated)
    here.studio.put_policy(here.workspace, text)


def _show(
    here: Here,
    policy: Policy,
    *,
    error: str = "",
    typed: Mapping[str, str] | None = None,
    require_error: str = "",
    required: Mapping[str, str] | None = None,
) -> Response:
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
        requirements=fields.requirements(required or here.document.get("require", {})),
        require_error=require_error,
        offers=sorted(fitting, key=lambda one: not one["chosen"]),
        others=others,
        offers_words=f"{len(fitting)} of {len(offers)} methods fit these columns, what the policy "
        f"requires and the audience '{here.audience}' ({title.lower()}).",
        others_words=f"{len(others)} methods that do not fit these columns or this audience",
        **chosen(here, policy, error=error, typed=typed or {}),
    )


def chosen(
    here: Here, policy: Policy, *, error: str = "", typed: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The chosen method, its fields, what it promises, and whether it may run."""
    found = find(policy.method)
    asked = fields.parameters(found, here.document["protect"])
    for one in asked:
        one["value"] = (typed or {}).get(one["name"], one["value"])
    plan, refused = here.planned
    spent = None if plan is None else planning.cost(policy, plan.claims)
    return {
        "method": {
            "name": found.name,
            "summary": found.summary,
            "reference_short": found.reference.partition(",")[0],
        },
        "parameters": asked,
        "parameter_error": error,
        "plan_error": refused,
        "claims": [plain(claim) for claim in here.claims],
        "not_claimed": () if plan is None else plan.not_claimed,
        "plan_notes": () if plan is None else plan.notes,
        "cost": spent,
        "blocked": here.blocked,
        "job": None,
        "back": "protect",
        **_under_way(here),
    }


def _under_way(here: Here) -> Mapping[str, Any]:
    return {**job_values(here.job(Kind.PROTECT)), "back": "protect"}


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
    """Claims of a card; those that differ in their columns alone are told once."""
    found: dict[tuple[str, str], list[str]] = {}
    for claim in one.claims:
        facts = plain(claim.guarantee)
        name = words.short(facts)
        found.setdefault((claim.status.value, name), []).append(words.of_columns(facts))
    return [
        {"status": status, "text": f"{name} of {'; of '.join(columns)}"}
        for (status, name), columns in found.items()
    ]

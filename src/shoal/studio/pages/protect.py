"""Screen 3: choose a method and its settings, and see what it promises for this policy."""

from collections.abc import Collection, Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from shoal.core import Policy, Status
from shoal.core.serialise import plain
from shoal.errors import InputError, ShoalError
from shoal.methods import TO_START_WITH, find, title_of
from shoal.pipeline import audiences, forecast, planning
from shoal.pipeline.planning import Offer
from shoal.report import pictures
from shoal.studio import invalid_input, policy_document, schemes
from shoal.studio.jobs import JobKind
from shoal.studio.pages import editing, inspection, protect_fields
from shoal.studio.pages.common import Form, Here, Present, back_to, screen
from shoal.studio.pages.home import job_values
from shoal.studio.private_files import read_json
from shoal.studio.workspace import Draft

router = APIRouter(include_in_schema=False)

CHANGED = (
    "The policy has changed since this page was shown, perhaps in another tab. Look at it again "
    "before you release."
)
FITS = ("fits", "may fail", "cannot")
"""What a card may say, in the order in which cards are listed."""
TRIED = {
    "table": "A release of {rows} rows drawn at random from your table. A release of the whole "
    "table loses less. The rows below are confidential.",
    "others": "A release of {rows} rows of the other people that you chose. Your table was not "
    "read.",
    "invented": "A release of {rows} invented rows, drawn evenly from the domains that the policy "
    "states. Your table was not read.",
}
"""What a preview was made of."""


@router.get("/w/{id}/protect")
def show(here: Present) -> Response:
    """Show audiences, the chosen method and all others."""
    return back_to(here, "data") if here.policy is None else _show(here, here.policy)


@router.post("/w/{id}/protect/audience")
def audience(here: Present, form: Form) -> Response:
    """Set the audience."""
    stated = {"audience": audiences.find_audience(form.get("audience", "")).value}
    return _put(here, "release", stated)


@router.post("/w/{id}/protect/method")
def method(here: Present, form: Form) -> Response:
    """Choose a method, with the settings on its card."""
    wanted = find(form.get("method", ""))
    if here.policy is not None:
        offer = planning.offer(here.policy, wanted)
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
    stated |= protect_fields.read_parameters(find(here.policy.method), given, before)
    try:
        # The shape of the file says little about parameters; the plan without data says the rest.
        tried = policy_document.judge(
            editing.with_table(here.workspace.policy, "protect", stated),
            folder=here.studio.store.files(here.workspace.id),
        )
        planning.check_parameters(tried)
        here.put_tables({"protect": stated}, settles=[invalid_input.PARAMETERS])
    except ShoalError as error:
        wrong = invalid_input.wrong_fields(error, given, "protect")
        draft = invalid_input.make_draft(given, _in_words(here, error), wrong)
        return show(here.keep_draft(invalid_input.PARAMETERS, draft))
    return back_to(here, "protect")


@router.post("/w/{id}/protect/require")
def require(here: Present, form: Form) -> Response:
    """Set the required guarantees."""
    if here.policy is None:
        return back_to(here, "data")
    stated = protect_fields.read_requirements(form)
    try:
        here.put_tables({"require": stated}, settles=[invalid_input.REQUIRE])
    except InputError as error:
        wrong = protect_fields.wrong_parts(error, form)
        draft = invalid_input.make_draft(form, _in_words(here, error), wrong)
        return show(here.keep_draft(invalid_input.REQUIRE, draft))
    return back_to(here, "protect")


@router.post("/w/{id}/protect/rules")
def rules(here: Present, form: Form) -> Response:
    """Add a rule for every released row from picked columns, or remove one."""
    if here.policy is None:
        return back_to(here, "data")
    stated = dict(here.document.get("constraints", {}))
    listed = [str(rule) for rule in stated.get("rules", [])]
    if form.get("remove"):
        listed = [rule for rule in listed if rule != form["remove"]]
    else:
        listed.append(protect_fields.rule(form, here.policy.schema))
    pairs = stated.pop("lookups", {})
    lookups: dict[str, Any] = {}  # no lookup outlives its rule
    for rule in here.policy.constraints.rules:
        if rule.lookup and rule.text in listed:
            source, target = rule.lookup.source, rule.lookup.target
            lookups.setdefault(source, {})[target] = pairs[source][target]
    kept = {**stated, "rules": listed, **({"lookups": lookups} if lookups else {})}
    return _put(here, "constraints", kept if listed else {})


@router.post("/w/{id}/protect/preview")
def preview(here: Present) -> Response:
    """Preview the policy on a few rows, which costs nothing."""
    here.studio.start_preview(here.workspace)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/scheme")
def scheme(here: Present, form: Form) -> Response:
    """Coarsen a column of the scheme, take that back, or release without the scheme."""
    if form.get("drop"):
        here.studio.store.change(here.workspace.id, scheme=None)
    else:
        before = here.workspace.scheme.coarsen if here.workspace.scheme else ()
        more = [form["column"]] if form.get("column") else []
        kept = () if form.get("none") else (*before, *more)
        schemes.coarsen_columns(here.studio, here.workspace, kept)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/run")
def run(here: Present, form: Form) -> Response:
    """Make a release, in a job."""
    if here.blocked:
        raise InputError(here.blocked)
    if here.policy is not None and form.get("policy", here.policy.digest) != here.policy.digest:
        raise InputError(CHANGED)
    evaluate = False if form.get("unmeasured") else None
    here.studio.start_protect(here.workspace, evaluate=evaluate)
    return back_to(here, form.get("back", "release"))


def _put(here: Here, table: str, stated: Mapping[str, Any], **options: Any) -> Response:
    """Change the policy, or show the error on the page itself."""
    try:
        here.put_tables({table: stated}, **options)
    except InputError as error:
        if here.policy is None:
            raise
        return _show(here, here.policy, error=str(error))
    return back_to(here, "protect")


def _in_words(here: Here, error: ShoalError) -> str:
    known = protect_fields.titles(find(here.policy.method)) if here.policy else {}
    return protect_fields.in_words(error, known)


def _show(here: Here, policy: Policy, *, error: str = "") -> Response:
    draft = here.workspace.drafts.get(invalid_input.REQUIRE)
    offers = planning.offers(policy, here.seen)
    cards = [_offer(offer, policy) for offer in offers]
    counts = {fit: sum(offer.fit == fit for offer in offers) for fit in FITS}
    cards.sort(key=lambda card: FITS.index(card["fit"]))
    able = [card for card in cards if card["fit"] != "cannot"]
    stated = protect_fields.as_form(here.document.get("require", {}))
    return screen(
        here,
        "protect",
        audiences=[
            {"key": key.value, "title": rule.title, "words": rule.sentence}
            for key, rule in audiences.RULES.items()
        ],
        audience=here.audience.value,
        error=error,
        requirements=protect_fields.requirements(
            stated if draft is None else draft.given, policy, () if draft is None else draft.wrong
        ),
        require_error="" if draft is None else draft.error,
        rules=[rule.text for rule in policy.constraints.rules],
        released=policy.schema.released,
        comparisons=protect_fields.COMPARISONS,
        listed_methods={
            "To start with": [card for card in able if card["name"] in TO_START_WITH],
            "Published methods": [card for card in able if card["name"] not in TO_START_WITH],
            "Cannot be used here": [card for card in cards if card["fit"] == "cannot"],
        },
        offers_words=f"Of {len(offers)}, {counts['fits']} fit, {counts['may fail']} may fail once "
        f"the table is read, and {counts['cannot']} cannot be used.",
        offer=next(card for card in cards if card["chosen"]),
        preview=_preview(here, policy),
        inspection=inspection.values(here, policy),
        scheme=here.workspace.scheme,
        scheme_columns=schemes.levels(policy),
        **describe_chosen(here, policy),
    )


def _preview(here: Here, policy: Policy) -> dict[str, Any]:
    """Return the last preview, and whether it is of the present policy."""
    job = here.job(JobKind.PREVIEW)
    shown = read_json(here.studio.preview_file(here.workspace))
    return {
        "error": job.error if job is not None and job.final else "",
        "running": job is not None and not job.final,
        "found": shown,
        "current": shown is not None and shown["digest"] == policy.digest,
        "drawn": [] if shown is None else [pictures.column(p) for p in shown["pictures"]],
        "words": "" if shown is None else TRIED[shown["source"]].format(rows=f"{shown['rows']:,}"),
    }


def _wrong(draft: Draft | None, known: Collection[str]) -> Collection[str]:
    """Return the fields that an error marks: all of the form if it names none."""
    return () if draft is None else draft.wrong or known


def describe_chosen(here: Here, policy: Policy) -> dict[str, Any]:
    """Describe the chosen method: its fields, its promises, and whether it can run."""
    chosen_method = find(policy.method)
    asked = protect_fields.parameters(chosen_method, here.document["protect"], policy)
    draft = here.workspace.drafts.get(invalid_input.PARAMETERS)
    for field in asked:
        field["value"] = field["value"] if draft is None else draft.given.get(field["name"], "")
    plan, refused = here.planned
    spent = None if plan is None else planning.cost(policy, plan.claims)
    return {
        "method": {
            "name": chosen_method.name,
            "title": title_of(chosen_method.name),
            "summary": chosen_method.summary,
            "reference_short": chosen_method.reference.partition(",")[0],
        },
        "parameters": asked,
        "parameter_error": "" if draft is None else draft.error,
        "parameters_wrong": _wrong(draft, [field["name"] for field in asked]),
        "plan_error": refused,
        "claims": [plain(claim) for claim in here.claims],
        "not_claimed": () if plan is None else plan.not_claimed,
        "plan_notes": () if plan is None else plan.notes,
        "expected": [] if plan is None else [expectation.text for expectation in plan.expected],
        "takes": "" if plan is None else forecast.takes(plan),
        "cost": spent,
        "blocked": here.blocked,
        "large": here.large,
        "digest": policy.digest,
        **job_values(here.job(JobKind.PROTECT)),
        "back": "protect",
    }


def _offer(one: Offer, policy: Policy) -> dict[str, Any]:
    statuses = [claim.status for claim in one.claims]
    seconds = None if one.plan is None else forecast.seconds(one.plan)
    return {
        "name": one.method.name,
        "title": title_of(one.method.name),
        "fit": one.fit,
        "reasons": [one.refused or one.unmet] if one.fit == "cannot" else one.doubts,
        "chosen": one.method.name == policy.method,
        # Of several promises the least certain one: a row has room for no more.
        "promise": max(statuses, key=[*Status].index).value if statuses else "",
        "takes": "" if seconds is None else forecast.duration(seconds),
    }

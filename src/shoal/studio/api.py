"""The JSON API, under /api: the same verbs as the pages, for scripts and for the pages' own use.

Every answer has a model, and every error is `{"error": one sentence}`. Nothing here holds a cell
but the profile, which shows a few rows to the session that uploaded them.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from shoal.core import Audience
from shoal.errors import InputError
from shoal.pipeline import audiences, booking
from shoal.policy.load import shown
from shoal.studio import invalid_input, method_cards, policy_document, release_binding, uploads
from shoal.studio.context import Current, Studio, TheSession, TheStudio, policy_of
from shoal.studio.history import HistoryEntry
from shoal.studio.jobs import JobStatus
from shoal.studio.method_cards import Card, Preview, audience_of
from shoal.studio.private_files import ID
from shoal.studio.profile import DataProfile
from shoal.studio.workspace import DataFile, Workspace


class Refusal(BaseModel):
    """Why a request was not done, in one sentence."""

    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": words}
    for status, words in (
        (400, "The request is not well formed."),
        (401, "No session."),
        (403, "The request comes from another site, or under another host name."),
        (404, "What was asked for does not exist."),
        (405, "The address does not take this HTTP method."),
        (409, "Another step has to be done first."),
        (413, "The request is too large."),
        (422, "The content cannot be used as it is."),
    )
}
router = APIRouter(prefix="/api", responses=REFUSALS, tags=["studio"])

Id = Annotated[str, Path(pattern=ID)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FileOut(BaseModel):
    """A file that was uploaded."""

    id: str
    label: str
    suffix: str
    bytes: int
    here: bool = Field(
        description="Whether the studio still has the file. After a restart it "
        "has not, and the file has to be chosen again."
    )


class WorkspaceOut(BaseModel):
    """A workspace."""

    id: str
    title: str
    created: str
    data: FileOut | None
    others: FileOut | None
    confirmed: list[str]
    audience: str
    chosen: str
    file_format: str = Field(description="Empty for the format of the table.")
    source: str
    jobs: dict[str, str]
    undo: int = Field(description="Number of changes that can be undone.")
    redo: int = Field(description="Number of changes that can be redone.")
    invalid: dict[str, str] = Field(
        description="What was typed or sent and cannot be used, by form; nothing is released "
        "until each is sent again and taken, or undone."
    )


class WorkspaceIn(_Model):
    """What may be changed directly; what is left out stays."""

    title: str | None = Field(None, max_length=200)
    confirmed: list[str] | None = None
    audience: Audience | None = Field(
        None, description="Who will get the release; written into the policy."
    )
    file_format: Literal["parquet", "csv", "xlsx", "sav", "dta", "xpt"] | None = None
    source: str | None = Field(None, max_length=200)


PUBLIC: list[str] = Field(
    default=[],
    description="Columns whose categories were marked as observed and are public knowledge: the "
    "mark goes by this alone.",
)


class PolicyOut(BaseModel):
    """The policy, as text and as fields."""

    toml: str
    fields: dict[str, Any]
    digest: str


class PolicyText(_Model):
    """A policy as TOML text."""

    toml: str
    public_knowledge: list[str] = PUBLIC


class PolicyFields(_Model):
    """Sections of a policy; a column that is named is replaced, a null section removed."""

    columns: dict[str, dict[str, Any] | str] | None = None
    protect: dict[str, Any] | None = None
    require: dict[str, Any] | None = None
    release: dict[str, Any] | None = None
    reading: dict[str, Any] | None = None
    writing: dict[str, Any] | None = None
    evaluate: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    budget: dict[str, Any] | None = None
    public_knowledge: list[str] = PUBLIC


class PlanIn(_Model):
    """Another `[protect]` to try; none for the policy's own."""

    protect: dict[str, Any] | None = None


class AudienceOut(BaseModel):
    """Who may get a release, and the rule on which claims will do for them."""

    name: str
    title: str
    sentence: str


class MethodsOut(BaseModel):
    """Methods and audiences."""

    methods: tuple[Card, ...]
    audiences: list[AudienceOut]


class ProtectIn(_Model):
    """Make a release."""

    kind: Literal["protect"]
    evaluate: bool | None = None


class CompareIn(_Model):
    """Compare methods; this inspects the table."""

    kind: Literal["compare"]
    on_others: bool = False
    candidates: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=200)
    repeats: int = Field(3, ge=1, le=50)
    max_risk: float = Field(0.1, ge=0, le=1)
    any_claim: bool = False
    rows: int = Field(20_000, ge=30, le=10_000_000)
    seed: int = Field(0, ge=0, le=1_000_000)
    axes: Literal["advantage", "alpha-beta"] = "advantage"


class SelectIn(_Model):
    """Choose a method privately, at a price."""

    kind: Literal["select"]
    epsilon: str = Field(max_length=30)
    candidates: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=200)


class EvaluateIn(_Model):
    """Evaluate a release."""

    kind: Literal["evaluate"]
    release: str = Field(pattern=ID)


class ChooseIn(_Model):
    """A candidate of the comparison."""

    label: str


class AgainOut(BaseModel):
    """How to do the same without the studio."""

    command: str
    python: str


class BudgetIn(_Model):
    """A budget to grant."""

    source: str = Field(min_length=1, max_length=200)
    epsilon: str = Field(max_length=30)


class BudgetOut(BaseModel):
    """The budget file of this studio."""

    accounts: list[dict[str, Any]]


class LinkOut(BaseModel):
    """An address that opens one further session."""

    address: str


async def uploaded(
    request: Request,
    studio: TheStudio,
    workspace: Current,
    label: Annotated[str, Query(max_length=1000)] = "",
) -> DataFile:
    """Dependency: the file of a request, in the folder of its workspace."""
    folder, limit = studio.folder(workspace), studio.settings.upload_limit
    return await uploads.receive(request, folder, limit=limit, label=label)


Upload = Annotated[DataFile, Depends(uploaded)]


@router.get("/workspaces")
def list_workspaces(studio: TheStudio, session: TheSession) -> list[WorkspaceOut]:
    """The workspaces that this session may open, the newest first."""
    return [_workspace(studio, one) for one in studio.workspaces(session)]


@router.post("/workspaces", status_code=201)
def new_workspace(studio: TheStudio, session: TheSession) -> WorkspaceOut:
    """Make an empty workspace."""
    return _workspace(studio, studio.store.new(session))


@router.get("/workspaces/{id}")
def get_workspace(studio: TheStudio, workspace: Current) -> WorkspaceOut:
    """One workspace."""
    return _workspace(studio, workspace)


@router.patch("/workspaces/{id}")
def change_workspace(studio: TheStudio, workspace: Current, given: WorkspaceIn) -> WorkspaceOut:
    """Change what may be changed directly."""
    changed = given.model_dump(exclude_none=True)
    if "confirmed" in changed:
        changed["confirmed"] = tuple(changed["confirmed"])
    if audience := changed.pop("audience", None):
        studio.put_fields(workspace, {"release": {"audience": audience.value}})
    return _workspace(studio, studio.store.change(workspace.id, **changed))


@router.delete("/workspaces/{id}", status_code=204)
def remove_workspace(studio: TheStudio, workspace: Current) -> Response:
    """Forget a workspace, its jobs and its data; releases stay in the history."""
    studio.remove(workspace)
    return Response(status_code=204)


@router.post("/workspaces/{id}/undo")
def undo(studio: TheStudio, workspace: Current) -> WorkspaceOut:
    """Go one step back."""
    return _workspace(studio, studio.store.undo(workspace.id))


@router.post("/workspaces/{id}/redo")
def redo(studio: TheStudio, workspace: Current) -> WorkspaceOut:
    """Redo what was undone last."""
    return _workspace(studio, studio.store.redo(workspace.id))


@router.post("/workspaces/{id}/data", status_code=202, openapi_extra=uploads.BODY)
def put_data(studio: TheStudio, workspace: Current, file: Upload) -> JobStatus:
    """Upload the table; the job that is answered reads it."""
    return studio.jobs.status(studio.put_data(workspace, file))


@router.post("/workspaces/{id}/others", openapi_extra=uploads.BODY)
def put_others(studio: TheStudio, workspace: Current, file: Upload) -> WorkspaceOut:
    """Upload people who are not in the table."""
    return _workspace(studio, studio.put_others(workspace, file))


@router.post("/workspaces/{id}/sample", status_code=202)
def put_sample(studio: TheStudio, workspace: Current) -> JobStatus:
    """Take the shipped sample of invented people."""
    return studio.jobs.status(studio.put_sample(workspace))


@router.get("/workspaces/{id}/profile")
def get_profile(studio: TheStudio, workspace: Current) -> DataProfile:
    """What was seen of the table."""
    found = studio.profile(workspace)
    if found is None:
        raise HTTPException(409, "No table was read yet. Choose a file, or wait.")
    return found


@router.get("/workspaces/{id}/policy")
def get_policy(studio: TheStudio, workspace: Current) -> PolicyOut:
    """The policy, as text and as fields."""
    if not workspace.policy:
        raise HTTPException(409, "There is no policy yet. Choose a file first.")
    return _policy(studio, workspace)


@router.put("/workspaces/{id}/policy")
def put_policy(studio: TheStudio, workspace: Current, given: PolicyText) -> PolicyOut:
    """Take a policy as text; one that cannot be used is refused, and the old one stays."""
    try:
        after = studio.put_policy(
            workspace,
            given.toml,
            settles=[invalid_input.TEXT, *invalid_input.of_api(workspace)],
            public=given.public_knowledge,
        )
    except InputError as error:
        studio.keep_draft(workspace, invalid_input.api("toml"), {}, str(error))
        raise
    return _policy(studio, after)


@router.patch("/workspaces/{id}/policy")
def put_fields(studio: TheStudio, workspace: Current, given: PolicyFields) -> PolicyOut:
    """Change sections of the policy; the text is written again."""
    changes = given.model_dump(exclude_unset=True, exclude={"public_knowledge"})
    try:
        after = studio.put_fields(workspace, changes, public=given.public_knowledge)
    except InputError as error:
        for section in changes:
            studio.keep_draft(workspace, invalid_input.api(section), {}, str(error))
        raise
    return _policy(studio, after)


@router.get("/workspaces/{id}/release")
def get_release(studio: TheStudio, workspace: Current) -> release_binding.BoundRelease:
    """The latest release, the policy that it was made with, and what has changed since."""
    found = release_binding.latest(studio, workspace)
    if found is None:
        raise HTTPException(409, "Nothing was released yet.")
    return found


@router.post("/workspaces/{id}/plan")
def plan(studio: TheStudio, workspace: Current, given: PlanIn) -> Preview:
    """What would be promised; the data is not touched."""
    folder = studio.store.files(workspace.id)
    return method_cards.preview(policy_of(workspace), given.protect, folder=folder)


@router.get("/workspaces/{id}/methods")
def methods(studio: TheStudio, workspace: Current) -> MethodsOut:
    """Every method, with what it would promise here, and the audiences."""
    return MethodsOut(
        methods=method_cards.cards(workspace.policy, folder=studio.store.files(workspace.id)),
        audiences=[
            AudienceOut(name=one, title=rule.title, sentence=rule.sentence)
            for one, rule in audiences.RULES.items()
        ],
    )


@router.get("/workspaces/{id}/again")
def again(studio: TheStudio, workspace: Current) -> AgainOut:
    """The command line and the Python script that do the same."""
    return AgainOut(**studio.again(workspace))


@router.post("/workspaces/{id}/jobs", status_code=202)
def start_job(
    studio: TheStudio,
    workspace: Current,
    given: Annotated[ProtectIn | CompareIn | SelectIn | EvaluateIn, Field(discriminator="kind")],
) -> JobStatus:
    """Start long work."""
    match given:
        case ProtectIn():
            id_ = studio.start_protect(workspace, evaluate=given.evaluate)
        case CompareIn():
            options = given.model_dump(exclude={"kind", "on_others", "candidates"})
            id_ = studio.start_compare(
                workspace,
                on_others=given.on_others,
                candidates=_grid(given.candidates),
                **options,
            )
        case SelectIn():
            id_ = studio.start_select(
                workspace, epsilon=given.epsilon, candidates=_grid(given.candidates)
            )
        case EvaluateIn():
            id_ = studio.start_evaluate(workspace, given.release)
    return studio.jobs.status(id_)


@router.get("/jobs/{job}")
def get_job(studio: TheStudio, session: TheSession, job: Id) -> JobStatus:
    """How a job stands."""
    return _mine(studio, session, job)


@router.post("/jobs/{job}/cancel")
def cancel_job(studio: TheStudio, session: TheSession, job: Id) -> JobStatus:
    """End a job; nothing of it is left."""
    _mine(studio, session, job)
    return studio.jobs.cancel(job)


@router.get("/workspaces/{id}/comparison")
def get_comparison(studio: TheStudio, workspace: Current) -> dict[str, Any]:
    """What the latest comparison found: confidential."""
    found = studio.compared(workspace)
    if found is None:
        raise HTTPException(409, "No comparison is done yet. Start one.")
    return found


@router.post("/workspaces/{id}/choose")
def choose(studio: TheStudio, workspace: Current, given: ChooseIn) -> PolicyOut:
    """Take a candidate of the comparison as the policy's method."""
    return _policy(studio, studio.choose(workspace, given.label))


@router.get("/history")
def history(studio: TheStudio) -> tuple[HistoryEntry, ...]:
    """All releases and attempts of this studio's home, the newest first."""
    return studio.history.entries()


@router.get("/budget")
def get_budget(studio: TheStudio) -> BudgetOut:
    """What was granted, spent and left for each population of this studio's budget file."""
    path = studio.settings.budget
    return BudgetOut(accounts=booking.budget_facts(path) if path.is_file() else [])


@router.post("/budget", status_code=201)
def grant_budget(studio: TheStudio, given: BudgetIn) -> BudgetOut:
    """Grant a population a budget."""
    booking.open_budget(studio.settings.budget, given.source, given.epsilon)
    return BudgetOut(accounts=booking.budget_facts(studio.settings.budget))


@router.post("/links", status_code=201)
def new_link(request: Request, studio: TheStudio) -> LinkOut:
    """Make an address that opens one session in another browser, once."""
    token = studio.sessions.invite()
    return LinkOut(address=f"{request.url.scheme}://{request.headers['host']}/?token={token}")


def _mine(studio: Studio, session: str, id_: str) -> JobStatus:
    try:
        status = studio.jobs.status(id_)
        studio.open(status.workspace, session)
    except InputError:
        raise HTTPException(404, "There is no such task in this session.") from None
    return status


def _grid(candidates: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    return None if candidates is None else {"candidate": candidates}


def _workspace(studio: Studio, one: Workspace) -> WorkspaceOut:
    past, future = studio.store.steps(one.id)
    files = {
        name: None
        if (file := getattr(one, name)) is None
        else FileOut(**asdict(file), here=studio.path(one, file) is not None)
        for name in ("data", "others")
    }
    further = {
        "audience": audience_of(one.policy),
        "undo": past,
        "redo": future,
        "invalid": {where: draft.error for where, draft in one.drafts.items()},
    }
    return WorkspaceOut.model_validate({**vars(one), **files, **further})


def _policy(studio: Studio, workspace: Workspace) -> PolicyOut:
    fields, digest = (
        shown(policy_document.parsed(workspace.policy)),
        studio.judged(workspace).digest,
    )
    return PolicyOut(toml=workspace.policy, fields=fields, digest=digest)

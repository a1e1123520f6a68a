"""The way in: what was begun, its name and its end, undo and redo; the bar of work under way."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from shoal.errors import InputError
from shoal.pipeline import forecast
from shoal.studio import policy_document
from shoal.studio.context import Studio, TheStudio
from shoal.studio.jobs import JobKind, JobState, JobStatus
from shoal.studio.pages import rendering
from shoal.studio.pages.common import Form, Present, back_to
from shoal.studio.workspace import Workspace

router = APIRouter(include_in_schema=False)

LONGEST = 200
"""Characters of a table's name."""
DOING = {
    JobKind.PROFILE: "Reading the table",
    JobKind.PROTECT: "Protecting the table",
    JobKind.COMPARE: "Comparing methods",
    JobKind.SELECT: "Choosing privately",
    JobKind.PREVIEW: "Making a preview",
    JobKind.INSPECT: "Inspecting the table",
}
DONE = {
    JobKind.PROFILE: "The table was read.",
    JobKind.PROTECT: "The table is protected; every promise was recomputed before the release "
    "was kept.",
    JobKind.COMPARE: "The comparison is done.",
    JobKind.SELECT: "A method was chosen privately.",
    JobKind.PREVIEW: "The preview is made.",
    JobKind.INSPECT: "The table was inspected.",
}


@router.get("/")
def start(studio: TheStudio) -> Response:
    """Show the existing tables, or open an empty first screen."""
    begun = [workspace for workspace in studio.store.all() if workspace.data is not None]
    if not begun:
        empty = next(iter(studio.store.all()), None) or studio.store.new()
        return RedirectResponse(f"/w/{empty.id}/data", status_code=303)
    return HTMLResponse(rendering.page("home.html", workspaces=list(map(_line, begun))))


@router.post("/new")
def new(studio: TheStudio) -> Response:
    """Make an empty workspace."""
    return RedirectResponse(f"/w/{studio.store.new().id}/data", status_code=303)


@router.post("/w/{id}/rename")
def rename(here: Present, form: Form) -> Response:
    """Rename a table; without a name it gets that of its file."""
    file = here.workspace.data
    title = " ".join(form.get("title", "").split())[:LONGEST] or (file.label if file else "")
    here.studio.store.change(here.workspace.id, title=title)
    return RedirectResponse("/", status_code=303)


@router.post("/w/{id}/delete")
def delete(here: Present) -> Response:
    """Delete a table; the page has asked for confirmation."""
    here.studio.remove(here.workspace)
    return RedirectResponse("/", status_code=303)


@router.post("/w/{id}/undo")
def undo(here: Present, form: Form) -> Response:
    """Undo the last change."""
    here.studio.store.undo(here.workspace.id)
    return back_to(here, form.get("back", ""))


@router.post("/w/{id}/redo")
def redo(here: Present, form: Form) -> Response:
    """Redo what was undone."""
    here.studio.store.redo(here.workspace.id)
    return back_to(here, form.get("back", ""))


@router.post("/w/{id}/jobs/{job}/cancel")
def cancel(here: Present, job: str, form: Form) -> Response:
    """Cancel a job and remove its files."""
    if here.studio.jobs.status(job).workspace == here.workspace.id:
        here.studio.jobs.cancel(job)
    return back_to(here, form.get("back", ""))


def job_values(status: JobStatus | None) -> Mapping[str, Any]:
    """Collect the values for the panel of a job."""
    if status is None:
        return {"job": None}
    screens = {JobKind.PROFILE: "data", JobKind.COMPARE: "compare", JobKind.SELECT: "compare"}
    return {
        "job": status,
        "doing": DOING[status.kind],
        "done_words": DONE[status.kind],
        "back": screens.get(status.kind, "release"),
    }


def _line(one: Workspace) -> dict[str, str]:
    stated = policy_document.parse_toml(one.policy).get("protect", {}) if one.policy else {}
    return {
        "id": one.id,
        "title": one.title,
        "file": one.data.label if one.data else "",
        "when": rendering.moment(one.created),
        "method": str(stated.get("method", "")),
        "at": "roles" if one.policy else "data",
    }


SCREENS = {
    JobKind.PROFILE: ("data",),
    JobKind.PROTECT: ("release", "protect"),
    JobKind.COMPARE: ("compare",),
    JobKind.SELECT: ("compare",),
    JobKind.PREVIEW: ("protect",),
    JobKind.INSPECT: ("protect",),
}
"""The screens that show what a job found; the first is where the bar leads to."""
ENDED = {
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
    JobState.INTERRUPTED: "interrupted",
}


@router.get("/jobs/bar")
def bar(studio: TheStudio, at: str = "", watch: str = "") -> Response:
    """Show running jobs, and those that ended since the page was shown.

    Args:
        studio: the running studio.
        at: the address of the page that asks; it is asked to load itself again once a job has
            ended that it shows something of.
        watch: ids of the jobs that the bar has shown.
    """
    known = tuple(filter(None, watch.split(",")))
    shown = list(_list_jobs(studio, known))
    if any(job.final and at in _screens(job) and job.id in known for job, _ in shown):
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    running = any(not job.final for job, _ in shown)
    asked = {"at": at, "watch": ",".join(job.id for job, _ in shown)}
    page = rendering.page(
        "job_bar.html",
        jobs=[_describe_job(job, workspace, at) for job, workspace in shown],
        again=f"/jobs/bar?{urlencode(asked)}",
        without=f"/jobs/bar?{urlencode({'at': at})}",
        every=1 if running else 4,
    )
    return HTMLResponse(page)


def _list_jobs(studio: Studio, watched: tuple[str, ...]) -> Iterator[tuple[JobStatus, Workspace]]:
    """List running jobs, and watched jobs that have ended."""
    running = studio.jobs.under_way()
    ids = [*watched, *(id_ for id_ in running if id_ not in watched)]
    workspaces = {workspace.id: workspace for workspace in studio.store.all()} if ids else {}
    for id_ in ids:
        try:
            status = studio.jobs.status(id_)
        except InputError:
            continue  # removed meanwhile
        if status.workspace in workspaces:
            yield status, workspaces[status.workspace]


def _screens(status: JobStatus) -> list[str]:
    return [f"/w/{status.workspace}/{name}" for name in SCREENS[status.kind]]


def _describe_job(status: JobStatus, workspace: Workspace, at: str) -> dict[str, Any]:
    page = _screens(status)
    here = at.removeprefix(f"/w/{status.workspace}/")
    return {
        "status": status,
        "doing": DOING[status.kind],
        "table": workspace.title,
        "ended": ENDED.get(status.state, ""),
        "expected": "" if status.expected is None else forecast.duration(status.expected),
        "href": page[0],
        "base": f"/w/{status.workspace}",
        "back": here if "/" not in here else page[0].rpartition("/")[2],
    }

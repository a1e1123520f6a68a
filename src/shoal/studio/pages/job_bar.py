"""The bar at the foot of every screen: what is under way, how far it is, and how it ended."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from shoal.errors import InputError
from shoal.pipeline import forecast
from shoal.studio.context import Studio, TheStudio
from shoal.studio.jobs import JobKind, JobState, JobStatus
from shoal.studio.pages import rendering
from shoal.studio.pages.home import DOING
from shoal.studio.workspace import Workspace

router = APIRouter(include_in_schema=False)

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
    """Show what is under way, and what has ended since the page was shown.

    Args:
        studio: the running studio.
        at: the address of the page that asks; it is asked to load itself again once a job has
            ended that it shows something of.
        watch: ids of the jobs that the bar has shown.
    """
    known = tuple(filter(None, watch.split(",")))
    shown = list(_jobs(studio, known))
    if any(job.final and at in _screens(job) and job.id in known for job, _ in shown):
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    running = any(not job.final for job, _ in shown)
    asked = {"at": at, "watch": ",".join(job.id for job, _ in shown)}
    page = rendering.page(
        "job_bar.html",
        jobs=[_line(job, workspace, at) for job, workspace in shown],
        again=f"/jobs/bar?{urlencode(asked)}",
        without=f"/jobs/bar?{urlencode({'at': at})}",
        every=1 if running else 4,
    )
    return HTMLResponse(page)


def _jobs(studio: Studio, watched: tuple[str, ...]) -> Iterator[tuple[JobStatus, Workspace]]:
    """Jobs that run, and those that were watched and have ended."""
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


def _line(status: JobStatus, workspace: Workspace, at: str) -> dict[str, Any]:
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

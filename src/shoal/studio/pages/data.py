"""Screen 1: choose a table, and see how it was read."""

from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import Response

from shoal.studio import policy_document, uploads
from shoal.studio.jobs import JobKind
from shoal.studio.pages.common import GONE, Present, back_to, screen
from shoal.studio.pages.home import job_values
from shoal.studio.workspace import Workspace

router = APIRouter(include_in_schema=False)


@router.get("/w/{id}/data")
def show(here: Present) -> Response:
    """Show the table at first sight, or ask for one."""
    job, file = here.job(JobKind.PROFILE), here.workspace.data
    gone = file is not None and here.studio.path(here.workspace, file) is None
    looking = job is not None and not job.final
    failed = job is not None and job.final and here.profile is None and not gone
    return screen(
        here,
        "data",
        seen=None if looking else here.profile,
        file=file,
        gone=GONE if gone else "",
        error=job.error if failed and job is not None else "",
        suffixes=uploads.SUFFIXES,
        limit=here.studio.settings.upload_limit,
        upload=f"/api/workspaces/{here.workspace.id}/data",
        **job_values(job if looking else None),
    )


@router.post("/w/{id}/sample")
def sample(here: Present) -> Response:
    """Take the shipped sample. Its policy was written by hand, so no role is a guess."""
    here.studio.put_sample(here.workspace)
    here.studio.store.note(here.workspace.id, _all_confirmed)
    return back_to(here, "data")


def _all_confirmed(now: Workspace) -> Workspace:
    return replace(now, confirmed=tuple(policy_document.parsed(now.policy)["columns"]))

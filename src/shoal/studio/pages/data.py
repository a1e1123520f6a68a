"""Screen 1: choose a table, see the shape of each column, and correct how the file was read."""

from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import Response

from shoal.io.excel_files import EXCEL
from shoal.io.files import PACKED
from shoal.studio import policy_document, uploads
from shoal.studio.jobs import JobKind
from shoal.studio.pages import questions
from shoal.studio.pages.common import GONE, Form, Present, back_to, screen
from shoal.studio.pages.home import job_values
from shoal.studio.workspace import Workspace

router = APIRouter(include_in_schema=False)

TEXT = (".csv", ".tsv", ".txt", *PACKED)
"""Files that are text, and so have a delimiter."""
TYPED = (".parquet", ".pq", ".arrow", ".ipc", ".feather")
"""Files that say themselves what a number or a date is."""


@router.get("/w/{id}/data")
def show(here: Present) -> Response:
    """Show the table at first sight, or ask for one."""
    job, file = here.job(JobKind.PROFILE), here.workspace.data
    gone = file is not None and here.studio.path(here.workspace, file) is None
    looking = job is not None and not job.final
    failed = job is not None and job.final and here.profile is None and not gone
    suffix = "" if file is None or gone or looking else file.suffix
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
        questions=[] if looking else questions.asked(here),
        read_as=questions.reading_words(here),
        reading=list(questions.reading_fields(here, text=suffix in TEXT)) if suffix else [],
        sheets=here.profile.sheets if here.profile and suffix in EXCEL else (),
        sheet=here.profile.reading.get("sheet", "") if here.profile else "",
        missing=", ".join(here.workspace.reading.get("missing", ())),
        typed=suffix in TYPED,
        **job_values(job if looking else None),
    )


@router.post("/w/{id}/data/reading")
def read_again(here: Present, form: Form) -> Response:
    """Read the file again, as the steward says that it is written."""
    here.studio.read_again(here.workspace, questions.reading_of(form))
    return back_to(here, "data")


@router.post("/w/{id}/data/answer")
def answer(here: Present, form: Form) -> Response:
    """Take the answer to a question about the file."""
    questions.answer(here, form)
    return back_to(here, "data")


@router.post("/w/{id}/sample")
def sample(here: Present) -> Response:
    """Take the shipped sample. Its policy was written by hand, so no role is a guess."""
    here.studio.put_sample(here.workspace)
    here.studio.store.note(here.workspace.id, _all_confirmed)
    return back_to(here, "data")


def _all_confirmed(now: Workspace) -> Workspace:
    return replace(now, confirmed=tuple(policy_document.parsed(now.policy)["columns"]))

"""Screen 1: choose a table, see the shape of each column, and correct how the file was read."""

from dataclasses import asdict, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from shoal.errors import InputError
from shoal.io import metadata
from shoal.io.excel_files import EXCEL
from shoal.io.files import PACKED
from shoal.studio import policy_document, schemes, uploads
from shoal.studio.jobs import JobKind
from shoal.studio.pages import questions
from shoal.studio.pages.common import (
    GONE,
    Form,
    FormWithFile,
    Here,
    Present,
    back_to,
    screen,
)
from shoal.studio.pages.home import job_values
from shoal.studio.workspace import DataFile, Workspace

router = APIRouter(include_in_schema=False)

TEXT = (".csv", ".tsv", ".txt", *PACKED)
"""Files that are text, and so have a delimiter."""
TYPED = (".parquet", ".pq", ".arrow", ".ipc", ".feather")
"""Files that say themselves what a number or a date is."""


@router.get("/w/{id}/data")
def show(here: Present) -> Response:
    """Show the profile of the table, or ask for a file."""
    return _show(here)


async def receive_upload(
    request: Request, here: Present, label: Annotated[str, Query(max_length=1000)] = ""
) -> DataFile:
    """Dependency: the file of a request, in the folder of its workspace."""
    folder, limit = here.studio.folder(here.workspace), here.studio.settings.upload_limit
    return await uploads.receive(request, folder, limit=limit, label=label)


Upload = Annotated[DataFile, Depends(receive_upload)]


@router.post("/w/{id}/data")
def put_data(here: Present, file: Upload) -> Response:
    """Take the uploaded table; answer with the job that reads it."""
    return JSONResponse({"job": here.studio.put_data(here.workspace, file)}, status_code=202)


@router.post("/w/{id}/others")
def put_others(here: Present, file: Upload) -> Response:
    """Take people who are not in the table."""
    here.studio.put_others(here.workspace, file)
    return JSONResponse({}, status_code=200)


def _show(here: Here, *, scheme_error: str = "", metadata_error: str = "") -> Response:
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
        questions=[] if looking else questions.list_questions(here),
        read_as=questions.reading_words(here),
        reading=list(questions.reading_fields(here, text=suffix in TEXT)) if suffix else [],
        sheets=here.profile.sheets if here.profile and suffix in EXCEL else (),
        sheet=here.profile.reading.get("sheet", "") if here.profile else "",
        rows=[
            {"key": key, "title": title, "value": here.profile.reading.get(key, "")}
            for key, title in questions.ROWS.items()
            if here.profile and suffix in EXCEL
        ],
        missing=", ".join(here.workspace.reading.get("missing", ())),
        typed=suffix in TYPED,
        scheme_releases=list(schemes.releases(here.studio)),
        scheme_error=scheme_error,
        metadata_error=metadata_error,
        described="metadata" in here.workspace.reading,
        **job_values(job if looking else None),
    )


@router.post("/w/{id}/data/reading")
def read_again(here: Present, form: Form) -> Response:
    """Read the file again with the steward's options."""
    before = here.workspace.reading
    kept = {"metadata": before["metadata"]} if "metadata" in before else {}
    here.studio.read_again(here.workspace, {**questions.reading_of(form), **kept})
    return back_to(here, "data")


@router.post("/w/{id}/data/metadata")
def describe(here: Present, form: FormWithFile) -> Response:
    """Draft again with what an uploaded metadata file says of the columns."""
    content, names = form.get("file", b""), here.profile.by_name if here.profile else ()
    try:
        stated = metadata.parse(
            bytes(content) if isinstance(content, bytes) else b"", names, "The file"
        )
    except InputError as error:
        return _show(here, metadata_error=str(error))
    here.studio.read_again(here.workspace, {**here.workspace.reading, "metadata": asdict(stated)})
    return back_to(here, "data")


@router.post("/w/{id}/data/answer")
def answer(here: Present, form: Form) -> Response:
    """Take the answer to a question about the file."""
    questions.answer(here, form)
    return back_to(here, "data")


@router.post("/w/{id}/scheme/file")
def scheme_of_a_file(here: Present, form: FormWithFile) -> Response:
    """Recode the table by an uploaded scheme."""
    content = form.get("file", b"")
    if not isinstance(content, bytes) or not content:
        return _show(here, scheme_error="Choose the file of a scheme first.")
    return _take(here, content, label="the uploaded scheme")


@router.post("/w/{id}/scheme/release")
def scheme_of_a_release(here: Present, form: Form) -> Response:
    """Recode the table by the scheme of a release that was made here."""
    release = form.get("release", "")
    path = schemes.path_of(here.studio, release)
    if path is None:
        return _show(here, scheme_error="This release has no scheme. Choose another one.")
    named = dict(schemes.releases(here.studio))[release]
    return _take(here, path.read_bytes(), label=named, release=release)


def _take(here: Here, content: bytes, **given: str) -> Response:
    try:
        schemes.take(here.studio, here.workspace, content, **given)
    except InputError as error:
        return _show(here, scheme_error=str(error))
    return back_to(here, "protect")


@router.post("/w/{id}/sample")
def sample(here: Present) -> Response:
    """Take the shipped sample. Its policy was written by hand, so no role is a guess."""
    here.studio.put_sample(here.workspace)
    here.studio.store.note(here.workspace.id, _all_confirmed)
    return back_to(here, "data")


def _all_confirmed(now: Workspace) -> Workspace:
    return replace(now, confirmed=tuple(policy_document.parse_toml(now.policy)["columns"]))

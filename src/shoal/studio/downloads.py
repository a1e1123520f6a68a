"""What leaves the studio, under /releases: the public folder as an archive, and the reports."""

import base64
import hashlib
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Depends
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from shoal.errors import InputError
from shoal.io.folders import INTERNAL_SUFFIX
from shoal.studio import schemes
from shoal.studio.context import TheStudio
from shoal.studio.private_files import ID, read_json

router = APIRouter(prefix="/releases/{job}", include_in_schema=False)


Id = Annotated[str, PathParameter(pattern=ID)]


def find_release(studio: TheStudio, job: Id) -> Path:
    """Dependency: the public folder of a release; 404 where there is none."""
    try:
        return studio.find_release(job)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Released = Annotated[Path, Depends(find_release)]


@router.get("/public.zip")
def public_zip(studio: TheStudio, folder: Released, tasks: BackgroundTasks) -> FileResponse:
    """What may be published, as one archive."""
    descriptor, name = tempfile.mkstemp(suffix=".zip", dir=studio.temporary)
    with (
        os.fdopen(descriptor, "wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{folder.name}/{path.name}")
    tasks.add_task(Path(name).unlink, missing_ok=True)
    return FileResponse(
        name, media_type="application/zip", filename=f"{folder.name}.zip", background=tasks
    )


@router.get("/scheme.toml")
def scheme(studio: TheStudio, folder: Released, job: Id) -> FileResponse:
    """The scheme of a release, to recode another table by; confidential unless it says so."""
    path = schemes.path_of(studio, job)
    if path is None:
        raise HTTPException(404, "This release has no scheme: its method recodes no other table.")
    name = f"{folder.name}-{path.name}"
    return FileResponse(path, media_type="application/toml", filename=name)


@router.get("/{name}")
def release_file(
    folder: Released,
    name: Literal["report.html", "internal.html", "manifest.json"],
    *,
    save: bool = False,
) -> Response:
    """A report or the manifest of a release: to read, or to save."""
    if name == "manifest.json":
        content = read_json(folder / name)
        return JSONResponse(content, headers=_saving(f"{folder.name}-{name}") if save else None)
    confidential = name == "internal.html"
    place = folder.with_name(folder.name + INTERNAL_SUFFIX) if confidential else folder
    word = "internal" if confidential else "public"
    page = place / "report.html"
    if not page.exists():
        raise InputError("This release has no confidential report. Make it with `shoal report`.")
    text = page.read_text(encoding="utf-8")
    headers = report_headers(text)
    if save:
        headers |= _saving(f"{folder.name}-{word}.html")
    return HTMLResponse(text, headers=headers)


def report_headers(page: str) -> dict[str, str]:
    """A content security policy for one report: its own style sheets, by digest, and no more.

    Reports are single files with their style inside. The digest allows these very styles, where
    `unsafe-inline` would allow any.
    """
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
        for style in re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    )
    styles = digests or "'none'"
    return {
        "content-security-policy": f"default-src 'none'; style-src {styles}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    }


def _saving(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}

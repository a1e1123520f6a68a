"""What leaves the studio: the public folder as an archive, and the reports."""

import base64
import hashlib
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import BackgroundTasks
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response

from shoal.errors import InputError
from shoal.io.folders import INTERNAL_SUFFIX
from shoal.studio.private_files import read_json

if TYPE_CHECKING:
    from shoal.studio.context import Studio


def public_zip(studio: "Studio", release: str, tasks: BackgroundTasks) -> Response:
    """The public folder of a release as one archive."""
    folder = studio.released(release)
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


def release_file(studio: "Studio", release: str, name: str, *, save: bool) -> Response:
    """A report or the manifest, to look at or to save."""
    folder = studio.released(release)
    if name == "manifest.json":
        found = read_json(folder / name)
        return JSONResponse(found, headers=_saving(f"{folder.name}-{name}") if save else None)
    confidential = name == "internal.html"
    place = folder.with_name(folder.name + INTERNAL_SUFFIX) if confidential else folder
    word = "internal" if confidential else "public"
    page = place / "report.html"
    if not page.exists():
        raise InputError("This release has no internal report. Make it with `shoal report`.")
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

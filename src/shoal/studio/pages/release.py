"""Screen 5: the checklist, the release with its downloads, and the history."""

import base64
import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, BackgroundTasks, Depends
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from shoal.core import Status
from shoal.core.serialise import plain
from shoal.errors import InputError, count_noun, visible
from shoal.io.files import FORMATS
from shoal.io.folders import INTERNAL_SUFFIX
from shoal.methods import find
from shoal.pipeline import booking
from shoal.pipeline.scheme_files import read as read_scheme
from shoal.policy.sections import ContextSpec
from shoal.publish.verify_folder import verify
from shoal.report import html, phrases
from shoal.studio import invalid_input, schemes, workspace
from shoal.studio.context import Current, Studio, TheStudio
from shoal.studio.history import HistoryEntry
from shoal.studio.jobs import JobKind, JobState
from shoal.studio.pages import protect_fields, rendering
from shoal.studio.pages.common import Form, Here, Present, back_to, screen
from shoal.studio.pages.home import job_values
from shoal.studio.private_files import ID, read_json

router = APIRouter(include_in_schema=False)

CONTEXT = {
    name: (name.replace("_", " ").capitalize(), field.description)
    for name, field in ContextSpec.model_fields.items()
}
"""Title and help of what the officer's report says besides figures."""
FORMS = {"parquet": "Parquet", "csv": "CSV", "xlsx": "Excel (xlsx)", "sav": "SPSS (sav)",
         "dta": "Stata (dta)", "xpt": "SAS (xpt)"}  # fmt: skip
OUT_OF_DATE = (
    "The release below was made with another policy, and is out of date. The present policy is "
    "checked when the release is made again."
)
NO_BUDGET = (
    "The epsilons of releases about the same people add up. Name the population to have them "
    "counted in one budget file, here and on the command line."
)


@router.get("/pictures.css")
def style() -> Response:
    """Send the style of the verdict and of pictures, shared by reports and pages."""
    return Response(html.stylesheet(), media_type="text/css")


@router.get("/w/{id}/release")
def show(here: Present) -> Response:
    """Show the checklist, and the release if there is one."""
    return back_to(here, "data") if here.policy is None else _show(here)


@router.post("/w/{id}/release/context")
def context(here: Present, form: Form) -> Response:
    """Set the officer's context."""
    stated = {key: text for key in CONTEXT if (text := form.get(key, "").strip())}
    here.put_tables({"context": stated})
    return back_to(here, "release")


@router.post("/w/{id}/release/budget")
def budget(here: Present, form: Form) -> Response:
    """Name the population, and grant it a budget if it has none."""
    source, epsilon = form.get("source", "").strip(), form.get("epsilon", "").strip()
    known = {visible(account["source"]): account["source"] for account in _accounts(here.studio)}
    source = known.get(source, source)  # as the page shows it
    try:
        if source and epsilon:
            booking.open_budget(here.studio.settings.budget, source, epsilon)
        elif source and source not in known.values():
            raise InputError(  # noqa: TRY301
                f"The population '{source}' has no privacy budget yet. Say how much epsilon may be "
                "spent on its people in total."
            )
    except InputError as error:
        given = {"source": source, "epsilon": epsilon}
        return _show(
            here.keep_draft(invalid_input.BUDGET, invalid_input.make_draft(given, str(error)))
        )
    here.studio.store.change(here.workspace.id, settles=[invalid_input.BUDGET], source=source)
    return back_to(here, "release")


@router.post("/w/{id}/release/file-format")
def file_format(here: Present, form: Form) -> Response:
    """Choose the format of the released file."""
    wanted = form.get("file_format", "")
    if wanted not in FORMATS:
        raise InputError("Expected one of the file formats that the page offers.")
    here.studio.store.change(here.workspace.id, file_format=wanted)
    return back_to(here, "release")


def find_release_here(studio: TheStudio, workspace: Current, release: str) -> Path:
    """Dependency: the public folder of a release of this workspace."""
    folder = studio.find_release(release)
    if studio.jobs.status(release).workspace != workspace.id:
        raise InputError("No such release in this workspace.")
    return folder


@router.get("/w/{id}/releases/{release}/policy.toml", dependencies=[Depends(find_release_here)])
def its_policy(studio: TheStudio, release: str) -> Response:
    """Send the policy of a release, as it was when it was made."""
    path = studio.jobs.folder(release) / "policy.toml"
    return FileResponse(path, media_type="text/plain; charset=utf-8", filename="policy.toml")


@router.get("/w/{id}/releases/{release}/verification")
def verification(folder: Annotated[Path, Depends(find_release_here)]) -> Response:
    """Verify the public folder of a release, as any recipient can."""
    return HTMLResponse(rendering.page("verification.html", found=verify(folder)))


def _show(here: Here) -> Response:
    studio, workspace = here.studio, here.workspace
    draft = workspace.drafts.get(invalid_input.BUDGET)
    given = {"source": workspace.source} if draft is None else draft.given
    accounts = _accounts(studio)
    account = next((a for a in accounts if a["source"] == workspace.source), None)
    job = here.job(JobKind.PROTECT)
    released = _latest_release(here)
    listed = checklist(here, account, released)
    open_ = [item for item in listed if item["state"] in {"todo", "stop"}]
    return screen(
        here,
        "release",
        error="" if draft is None else draft.error,
        checklist=listed,
        list_words=count_noun(len(open_), "point needs attention", "points need attention")
        if open_
        else "everything is in order",
        context=[
            {"key": key, "title": title, "words": words, "value": _context(here).get(key, "")}
            for key, (title, words) in CONTEXT.items()
        ],
        context_open=not _context(here),
        budget_open=draft is not None,
        budget_words=NO_BUDGET,
        account=account,
        source=given["source"],
        grant=given.get("epsilon", ""),
        sources=[a["source"] for a in accounts],
        forms={key: FORMS.get(key, key) for key in FORMATS},
        file_format=workspace.release_format,
        blocked=here.blocked,
        digest="" if here.policy is None else here.policy.digest,
        released=released,
        large=here.large,
        history=[_line(studio, entry) for entry in studio.history.entries()],
        **{**job_values(job), "back": "release"},
    )


def checklist(
    here: Here, account: Mapping[str, Any] | None, released: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Make the checklist: roles, claims, checks, budget and context, each with its state."""
    _, refused = here.foreseen
    left = len(here.open_columns)
    stated = _context(here)
    missing = [title for key, (title, _) in CONTEXT.items() if key not in stated]
    claims = [plain(claim) for claim in here.claims]
    weak = [claim for claim in claims if claim["status"] != Status.PROVED]
    return [
        _line_of("Roles", "todo" if left else "done",
                 [f"{count_noun(left, 'column is', 'columns are')} still to confirm."
                  if left else "Every role is confirmed."],
                 (f"{here.base}/roles", "Confirm the roles") if left else None),
        _line_of("Claims", "stop" if refused else "todo" if weak else "done",
                 [refused]
                 if refused
                 else [f"{phrases.title(c['guarantee'])}: {phrases.STATUS_WORDS[c['status']]}."
                       for c in claims] or ["Nothing is promised."],
                 (f"{here.base}/protect", "Change the method")),
        _line_of("Checks", *_checks(released)),
        _line_of("Budget", *_budget(here, account)),
        _line_of("Context", "todo" if missing else "done",
                 [f"Not stated: {phrases.list_names(missing).lower()}."] if missing
                 else ["Everything that the confidential report quotes is stated."],
                 ("#context-title", "State the context") if missing else None),
    ]  # fmt: skip


def _line_of(
    title: str, state: str, lines: list[str], link: tuple[str, str] | None = None
) -> dict[str, Any]:
    href, text = link or ("", "")
    return {"title": title, "state": state, "lines": lines, "href": href, "link": text}


def _checks(released: Mapping[str, Any] | None) -> tuple[str, list[str]]:
    if released is None:
        return "later", [
            "The promises will be recomputed on the finished table, before anything is kept."
        ]
    if not released["current"]:
        return "todo", [OUT_OF_DATE]
    checks = released["checks"]
    if not checks:
        return "done", ["No promise of this release can be tested on a table."]
    texts = [
        f"{phrases.title(check.guarantee)}: {'holds' if check.holds else 'fails'}, achieved "
        f"{html.figure(check.achieved)}."
        for check in checks
    ]
    return "done" if all(check.holds for check in checks) else "stop", texts


def _budget(here: Here, account: Mapping[str, Any] | None) -> tuple[str, list[str], Any]:
    link = ("#budget-title", "See the budget")
    if here.policy is not None and here.policy.budget and not here.workspace.source:
        return "done", ["The release is booked in the budget file that the policy names."], None
    if account is None:
        return "todo", ["The release is booked in no budget: no population is named."], link
    left = f"Epsilon {account['remaining']} of {account['granted']} is left for this population."
    return ("todo" if account["warnings"] else "done"), [left, *account["warnings"]], link


def _context(here: Here) -> dict[str, str]:
    stated = here.document.get("context", {})
    return {key: str(stated[key]) for key in CONTEXT if key in stated}


def _accounts(studio: Studio) -> list[dict[str, Any]]:
    path = studio.settings.budget
    return list(booking.budget_facts(path)) if path.is_file() else []


def _latest_release(here: Here) -> dict[str, Any] | None:
    """Find the latest complete release of this workspace."""
    bound = here.released
    entry = None if bound is None else here.studio.history.entry(bound.id)
    manifest = None if bound is None else here.studio.jobs.manifest(bound.id)
    if bound is None or entry is None or manifest is None:
        return None
    folder = here.studio.jobs.release(entry.id)
    figures = read_json(folder.with_name(folder.name + INTERNAL_SUFFIX) / "figures.json") or {}
    job = here.studio.jobs.status(entry.id)
    result = job.result or {} if job.state is JobState.DONE else {}
    address = f"/releases/{entry.id}"
    titles = protect_fields.titles(find(manifest.method))
    return {
        **{key: getattr(manifest, key) for key in ("rows", "method", "claims", "checks")},
        "again": bound.again,
        "current": bound.current,
        "changed": [(_key_in_words(key, titles), *ends) for key, *ends in bound.changed],
        "when": rendering.moment(entry.ended),
        "zip": f"{address}/public.zip",
        "public": f"{address}/report.html",
        "internal": f"{address}/internal.html",
        "scheme": _scheme(here.studio, entry.id),
        "policy": f"{here.base}/releases/{entry.id}/policy.toml",
        "verification": f"{here.base}/releases/{entry.id}/verification",
        "notes": result.get("notes", manifest.notes),
        "digest": bound.policy_digest,
        "not_claimed": manifest.not_claimed,
        **html.collect_decisions(manifest, figures),
    }


def _scheme(studio: Studio, release: str) -> dict[str, Any] | None:
    """Return the scheme of a release, if any, and whether it may be published."""
    path = schemes.path_of(studio, release)
    if path is None:
        return None
    return {"href": f"/releases/{release}/scheme.toml", "public": read_scheme(path).public}


def _line(studio: Studio, one: HistoryEntry) -> dict[str, Any]:
    folder = studio.jobs.release(one.id)
    kept = one.state == "released" and folder.is_dir()
    return {
        **vars(one),
        "when": rendering.moment(one.begun),
        "epsilon": _epsilon(one),
        "zip": f"/releases/{one.id}/public.zip" if kept else "",
    }


def _epsilon(one: HistoryEntry) -> str:
    """Return the total loss of a release's noise, by its accounting."""
    if one.state != "released":
        return ""
    claimed = [c["guarantee"] for c in one.claims if c["status"] == Status.PROVED.value]
    dp = [g for g in claimed if g["name"] == "differential-privacy"]
    if not dp:
        return "none"
    return f"rho {dp[0]['rho']}" if dp[0]["epsilon"] is None else str(dp[0]["epsilon"])


def _key_in_words(key: str, titles: Mapping[str, str]) -> str:
    """Name a key of the policy as the screens do; `titles` are those of the method's settings.

    >>> _key_in_words("columns.age.bounds", {}), _key_in_words("require.k-anonymity", {})
    ('limits of age', 'what must be promised, k-anonymity')
    >>> titles = {"k": "Smallest group (k)"}
    >>> _key_in_words("protect.k", titles), _key_in_words("population", titles)
    ('Smallest group (k)', 'population')
    """
    table, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    if table == "columns":
        return f"{workspace.KEYS.get(last, last.replace('_', ' '))} of {name}"
    if table == "protect":
        return titles.get(rest, rest)
    return ", ".join(filter(None, (workspace.TABLES.get(table, table), rest.replace("_", " "))))


downloads = APIRouter(prefix="/releases/{job}", include_in_schema=False)
"""What leaves the studio: the public folder as an archive, and the reports."""


Id = Annotated[str, PathParameter(pattern=ID)]


def find_release(studio: TheStudio, job: Id) -> Path:
    """Dependency: the public folder of a release; 404 if there is none."""
    try:
        return studio.find_release(job)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


Released = Annotated[Path, Depends(find_release)]


@downloads.get("/public.zip")
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


@downloads.get("/scheme.toml")
def scheme_file(studio: TheStudio, folder: Released, job: Id) -> FileResponse:
    """Send the scheme of a release; confidential unless it is marked public."""
    path = schemes.path_of(studio, job)
    if path is None:
        raise HTTPException(404, "This release has no scheme: its method recodes no other table.")
    name = f"{folder.name}-{path.name}"
    return FileResponse(path, media_type="application/toml", filename=name)


@downloads.get("/{name}")
def release_file(
    folder: Released,
    name: Literal["report.html", "internal.html", "manifest.json"],
    *,
    save: bool = False,
) -> Response:
    """Send a report or the manifest of a release, to read or to save."""
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
    """Make a content security policy for one report: only its own style sheets, by digest.

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

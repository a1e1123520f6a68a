"""Common parts of all screens: the rail, the present plan, forms, and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from shoal.core import Audience, Claim, Policy
from shoal.errors import ShoalError, count_noun
from shoal.methods import title_of
from shoal.pipeline import planning, protect_table
from shoal.pipeline.plan_notes import SeenColumn, SeenTable
from shoal.pipeline.planning import Plan
from shoal.studio import history, invalid_input, policy_document
from shoal.studio.context import Current, TheStudio
from shoal.studio.jobs import JobKind, JobState, JobStatus
from shoal.studio.pages import editing, questions, rendering
from shoal.studio.profile import DataProfile
from shoal.studio.workspace import Draft

SCREENS = {
    "data": "Data",
    "roles": "Roles and policy",
    "protect": "Protect",
    "compare": "Compare",
    "release": "Release",
}
LARGE = 50_000
"""Rows from which on a release may be made without its attacks."""
GONE = (
    "The file of this workspace was forgotten when the studio ended, as original data always is. "
    "Choose it again to continue; the policy and the releases are still here."
)


@dataclass(frozen=True)
class Here:
    """The workspace of a page; each fact is computed at most once."""

    studio: TheStudio
    workspace: Current

    @property
    def base(self) -> str:
        """The common prefix of this workspace's addresses."""
        return f"/w/{self.workspace.id}"

    @cached_property
    def profile(self) -> DataProfile | None:
        """The profile of the table."""
        return self.studio.profile(self.workspace)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The policy as plain values; empty without a policy."""
        return policy_document.parse_toml(self.workspace.policy) if self.workspace.policy else {}

    @cached_property
    def policy(self) -> Policy | None:
        """The policy with its audience, or None."""
        if not self.workspace.policy:
            return None
        return replace(self.studio.judge_policy(self.workspace), audience=self.audience)

    @cached_property
    def audience(self) -> Audience:
        """The audience of the release."""
        return policy_document.audience_of(self.workspace.policy)

    @cached_property
    def planned(self) -> tuple[Plan | None, str]:
        """The plan for any audience, or None with the reason."""
        if self.policy is None:
            return None, "There is no policy yet. Choose a file first."
        try:
            without_audience = planning.plan(replace(self.policy, audience=None))
            return planning.foreseen_rows(without_audience, self._rows), ""
        except ShoalError as error:
            return None, str(error)

    @cached_property
    def foreseen(self) -> tuple[Plan | None, str]:
        """The plan for the policy's audience and after inspections, as a job will find it."""
        if self.policy is None or self.planned[0] is None:
            return self.planned
        try:
            booked = self.studio.add_budget(self.workspace, self.policy)
            return protect_table.foreseen(booked, self._rows), ""
        except ShoalError as error:
            return None, str(error)

    @property
    def _rows(self) -> int | None:
        return self.profile.rows if self.profile else None

    @cached_property
    def seen(self) -> SeenTable | None:
        """What the profile found of the table, for reasons that may stop a run."""
        if self.profile is None:
            return None
        columns = {column.name: SeenColumn(column.distinct, column.unique, tuple(column.values))
                   for column in self.profile.columns}  # fmt: skip
        return SeenTable(self.profile.rows, columns)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of the plan; if a job would refuse it, those of the method alone."""
        plan = self.foreseen[0] or self.planned[0]
        return () if plan is None else plan.claims

    @cached_property
    def blocked(self) -> str:
        """Why no release can be made now, in a sentence, or empty."""
        if self.studio.path(self.workspace, self.workspace.data) is None:
            return "Choose the table first."
        if self.policy is None:
            return "The table is still being read."
        if self.workspace.drafts:
            return invalid_input.sentence(self.workspace)
        if self.open_columns:
            left = count_noun(len(self.open_columns), "more column")
            return f"Confirm {left} under Roles and policy."
        return self.foreseen[1]

    @property
    def large(self) -> bool:
        """Whether the attacks on a release may take a minute or more."""
        return self.profile is not None and self.profile.rows > LARGE

    @cached_property
    def open_columns(self) -> tuple[str, ...]:
        """The columns whose role nobody has confirmed yet."""
        names = self.document.get("columns", {})
        return tuple(name for name in names if name not in self.workspace.confirmed)

    def put_tables(self, tables: Mapping[str, Mapping[str, Any]], **options: Any) -> None:
        """Write tables into the policy's text, leaving its other lines unchanged."""
        text = self.workspace.policy
        for table, stated in tables.items():
            text = editing.with_table(text, table, stated)
        self.studio.put_policy(self.workspace, text, **options)

    def keep_draft(self, where: str, draft: Draft) -> "Here":
        """Keep invalid input of a form; return the changed workspace."""
        return Here(self.studio, self.studio.keep_draft(self.workspace, where, draft))

    def job(self, *kinds: JobKind) -> JobStatus | None:
        """Return the latest job of these kinds."""
        jobs = [
            self.studio.jobs.status(id_)
            for kind, id_ in self.workspace.jobs.items()
            if kind in kinds and self.studio.jobs.folder(id_).is_dir()
        ]
        return max(jobs, key=lambda one: one.begun, default=None)

    def rail(self, here: str) -> dict[str, Any]:
        """Describe the current position in the rail, and what is still missing."""
        undo, redo = self.studio.store.next_steps(self.workspace.id)
        states = {name: getattr(self, f"_{name}_state")() for name in SCREENS}
        seen = self.profile
        return {
            "here": here,
            "undo": undo,
            "redo": redo,
            "file": self.workspace.title if self.workspace.data else "",
            "about": ""
            if seen is None
            else f"{count_noun(seen.rows, 'row')}, {count_noun(len(seen.columns), 'column')}",
            "steps": [
                {
                    "title": title,
                    "href": f"{self.base}/{name}",
                    "here": name == here,
                    "state": states[name][0],
                    "words": states[name][1],
                }
                for name, title in SCREENS.items()
            ],
        }

    def _data_state(self) -> tuple[str, str]:
        if self.workspace.data is None:
            return "todo", "no table yet"
        if self.studio.path(self.workspace, self.workspace.data) is None:
            return "todo", "choose the file again"
        if self.profile is None:
            return "todo", "being read"
        if left := questions.open_questions(self):
            return "todo", f"{count_noun(left, 'question')} to answer"
        return "done", count_noun(self.profile.rows, "row")

    def _roles_state(self) -> tuple[str, str]:
        if self.policy is None:
            return "later", "first choose the data"
        total, left = len(self.document["columns"]), len(self.open_columns)
        if any(
            key == invalid_input.TEXT or key.startswith("columns.") for key in self.workspace.drafts
        ):
            return "todo", "something typed cannot be used"
        if left:
            return "todo", f"{left} of {count_noun(total, 'column')} to confirm"
        return "done", f"{count_noun(total, 'column')} confirmed"

    def _protect_state(self) -> tuple[str, str]:
        if self.policy is None:
            return "later", "first state the roles"
        if self.workspace.drafts.keys() & {invalid_input.REQUIRE, invalid_input.PARAMETERS}:
            return "todo", "something typed cannot be used"
        if self.planned[1]:
            return "todo", "the method cannot run as set up"
        if self.foreseen[1]:
            return "todo", "the settings stop the release"
        return "done", title_of(self.policy.method)

    def _compare_state(self) -> tuple[str, str]:
        job = self.job(JobKind.COMPARE, JobKind.SELECT)
        if job is not None and not job.final:
            return "todo", "under way"
        if self.workspace.chosen:
            return "done", "chosen from a comparison"
        if job is not None and job.state is JobState.DONE:
            return "done", "compared"
        return "later", "optional"

    def _release_state(self) -> tuple[str, str]:
        job = self.job(JobKind.PROTECT)
        if job is not None and not job.final:
            return "todo", "under way"
        if self.released is not None:
            return ("done", "released") if self.released.current else ("todo", "out of date")
        return "later", "not yet"

    @cached_property
    def released(self) -> history.BoundRelease | None:
        """The latest release, and whether it was made with the present policy."""
        return history.find_latest(self.studio, self.workspace)


def screen(here: Here, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a full screen."""
    text = rendering.page(
        f"{name}.html", rail=here.rail(name), base=here.base, workspace=here.workspace, **values
    )
    return HTMLResponse(text, status_code=status)


def back_to(here: Here, name: str) -> Response:
    """Redirect to a screen after a change."""
    return RedirectResponse(f"{here.base}/{name if name in SCREENS else 'data'}", status_code=303)


async def form_with_file(request: Request) -> dict[str, str | bytes]:
    """Dependency: the texts of a form and what its small files hold; of one name the last."""
    try:
        async with request.form() as form:
            return {
                name: value if isinstance(value, str) else await value.read()
                for name, value in form.items()
            }
    except ClientDisconnect:
        raise HTTPException(
            400, "The browser closed the connection in the middle of its request."
        ) from None


FormWithFile = Annotated[Mapping[str, str | bytes], Depends(form_with_file)]


def form_of(form: FormWithFile) -> dict[str, str]:
    """Dependency: the text fields of a form."""
    return {name: value for name, value in form.items() if isinstance(value, str)}


Form = Annotated[Mapping[str, str], Depends(form_of)]
Present = Annotated[Here, Depends()]

"""What a request may use: the studio's components, and the workspace of its address.

Pages stand on this file, and on nothing below it that changes state.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from shoal import sample
from shoal.core import Policy
from shoal.errors import InputError, visible
from shoal.methods import find
from shoal.pipeline import forecast, planning, protect_table
from shoal.pipeline.options import BudgetOptions
from shoal.publish import evidence
from shoal.studio import (
    invalid_input,
    policy_document,
    profile,
    schemes,
    uploads,
)
from shoal.studio.history import History, list_choices
from shoal.studio.jobs import JobKind, Jobs, JobState, JobStatus
from shoal.studio.private_files import alone_in, new_id, private_folder, read_json, temporary_folder
from shoal.studio.profile import DataProfile
from shoal.studio.settings import Settings
from shoal.studio.workspace import DataFile, Draft, Workspace, WorkspaceStore

SAMPLE = "people.parquet"
"""What the shipped sample is called."""


@dataclass(frozen=True)
class Studio:
    """The components of a running studio; the temporary folder has the original data."""

    settings: Settings
    store: WorkspaceStore
    jobs: Jobs
    history: History
    temporary: Path

    # What a steward does, each as one function. Pages call nothing else to change state.

    def remove(self, workspace: Workspace) -> None:
        """Delete a workspace, its running jobs and its data; releases stay in the history."""
        for job in self.jobs.of(workspace.id):
            self.jobs.cancel(job.id)
        self.jobs.forget(workspace.id)
        self.store.remove(workspace.id)
        shutil.rmtree(self.temporary / workspace.id, ignore_errors=True)

    def folder(self, workspace: Workspace) -> Path:
        """Return the folder of a workspace's original data while the server runs."""
        return private_folder(self.temporary / workspace.id)

    def path(self, workspace: Workspace, file: DataFile | None) -> Path | None:
        """Return the path of a file; None after a restart, when it must be chosen again."""
        if file is None:
            return None
        path = uploads.path_of(file, self.folder(workspace))
        return path if path.is_file() else None

    def put_data(self, workspace: Workspace, file: DataFile) -> str:
        """Take a file as the table of a workspace, and profile it in a job.

        Returns:
            The job's id. Once it is done, `profile` tells what was seen, and the workspace has a
            drafted policy, unless it has one for the same columns already.

        Raises:
            InputError: the file would burst; nothing has changed.
        """
        path = uploads.path_of(file, self.folder(workspace))
        self._refuse_bombs(path)
        before = workspace.data.label if workspace.data else ""
        title = file.label if workspace.title in {"", before} else workspace.title
        # The same file again, as after a restart, is written as it was.
        reading = workspace.reading if before == file.label else {}
        now = self.store.change(workspace.id, data=file, title=title, reading=reading)
        return self._read(now)

    def read_again(self, workspace: Workspace, reading: Mapping[str, Any]) -> str:
        """Read the table of a workspace again with the steward's options; see `put_data`.

        Confirmed columns keep their policy; the others are guessed again.
        """
        self._data(workspace)
        self._check_settled(workspace)
        now = self.store.change(workspace.id, reading=reading, answered=())
        return self._read(now, again=True)

    def _read(self, workspace: Workspace, *, again: bool = False) -> str:
        arguments = {
            "data": str(self._data(workspace)),
            "label": workspace.data.label if workspace.data else "",
            "reading": dict(workspace.reading),
            "again": again,
            "decoded_limit": self.settings.decoded_limit,
        }
        for job in self.jobs.of(workspace.id):
            if job.kind is JobKind.PROFILE:
                self.jobs.cancel(job.id)
        return self._start(workspace, JobKind.PROFILE, arguments)

    def put_others(self, workspace: Workspace, file: DataFile) -> Workspace:
        """Take a file of people who are not in the table."""
        self._refuse_bombs(uploads.path_of(file, self.folder(workspace)))
        return self.store.change(workspace.id, others=file)

    def put_sample(self, workspace: Workspace) -> str:
        """Take the shipped table of invented people, with its policy; see `put_data`."""
        files = sample.folder()
        for path in files.glob("*.csv"):
            shutil.copyfile(path, self.store.files(workspace.id) / path.name)
        content = (files / SAMPLE).read_bytes()
        file = uploads.take(content, self.folder(workspace), label=SAMPLE)
        id_ = self.put_data(workspace, file)
        text = (files / "people.toml").read_text(encoding="utf-8")
        self.store.note(workspace.id, lambda now: _anew(now, text))
        return id_

    def profile(self, workspace: Workspace) -> DataProfile | None:
        """Return the profile of the table; None while the job runs or if the file is gone."""
        path = self.path(workspace, workspace.data)
        return None if path is None else profile.read(path, workspace.reading)

    def put_policy(
        self,
        workspace: Workspace,
        text: str,
        *,
        settles: Collection[str] = (),
        public: Collection[str] = (),
        **changed: Any,
    ) -> Workspace:
        """Take a policy as TOML text.

        Args:
            workspace: as it was when the text was made from its policy.
            text: TOML.
            settles: the forms that it comes from, whose drafts are done with; see `drafts`.
            public: columns whose categories were just called public knowledge.
            changed: further fields of the workspace.

        Raises:
            InputError: it cannot be used as it is, or would overwrite what was typed elsewhere;
                the old one stays.
        """
        if invalid_input.TEXT in workspace.drafts and invalid_input.TEXT not in settles:
            raise InputError(invalid_input.sentence(workspace))
        text = policy_document.take_reviewed(text, changed.get("confirmed", workspace.confirmed))
        policy = policy_document.judge(text, folder=self.store.files(workspace.id))
        policy_document.check_budget(policy, home=self.settings.home)
        observed = policy_document.list_observed(text, before=workspace.observed, public=public)
        return self.store.change(
            workspace.id,
            since=workspace.policy,
            settles=settles,
            policy=text,
            observed=observed,
            **changed,
        )

    def keep_draft(self, workspace: Workspace, where: str, draft: Draft) -> Workspace:
        """Keep invalid input; nothing is released until it is corrected."""
        return self.store.note(
            workspace.id, lambda now: replace(now, drafts={**now.drafts, where: draft})
        )

    def judge_policy(self, workspace: Workspace) -> Policy:
        """Parse and check the policy of a workspace.

        Raises:
            InputError: there is none yet, or it cannot be used as it is.
        """
        text = policy_of(workspace)
        return policy_document.judge(text, folder=self.store.files(workspace.id))

    def add_budget(self, workspace: Workspace, policy: Policy) -> Policy:
        """Add the studio's budget file to a policy, if the workspace names a population in it."""
        if not workspace.source:
            policy_document.check_budget(policy, home=self.settings.home)
            return policy
        return BudgetOptions(self.settings.budget, workspace.source).apply_to(policy)

    def start_protect(self, workspace: Workspace, *, evaluate: bool | None = None) -> str:
        """Make a release, in a job.

        Args:
            workspace: with data and a policy.
            evaluate: run attacks for the officer's report; the default where memory allows.

        Returns:
            The job's id, which is the release's too.

        Raises:
            InputError: something is missing, or the audience needs another claim.
            ClaimViolationError: a required promise cannot be had.
        """
        self._data(workspace)
        self._check_settled(workspace)
        policy = self.judge_policy(workspace)
        audience = policy_document.audience_of(workspace.policy)
        planned = protect_table.foreseen(
            replace(self.add_budget(workspace, policy), audience=audience)
        )
        seen = self.profile(workspace)
        rows = None if seen is None else seen.rows
        id_ = new_id()
        control_path = self.path(workspace, workspace.others)
        compared = self.comparison(workspace)
        arguments = self._arguments(
            workspace,
            JobKind.PROTECT,
            id_,
            out=str(self.jobs.release(id_)),
            file_format=workspace.release_format,
            audience=audience.value,
            evaluate=evaluate,
            control=None if control_path is None or evaluate is False else str(control_path),
            comparison=None if compared is None else str(compared / "comparison.json"),
            choices=list_choices(workspace),
            again=self.again(workspace),
            expected=forecast.seconds(planning.foreseen_rows(planned, rows)),
            **schemes.arguments(self, workspace, self.jobs.folder(id_)),
        )
        self.history.begin(
            id_,
            workspace=workspace.id,
            label=workspace.data.label if workspace.data else "",
            method=policy.method,
            source=workspace.source or (policy.budget.source if policy.budget else ""),
        )
        return self._start(workspace, JobKind.PROTECT, arguments, id_=id_)

    def start_compare(
        self, workspace: Workspace, *, on_others: bool = False, **options: Any
    ) -> str:
        """Compare methods in a job: an inspection of the table, recorded and with its cost.

        Args:
            workspace: with data and a policy.
            on_others: look at the others instead, which costs nothing.
            options: published, repeats, max_risk, any_claim, rows, seed, axes: of
                `shoal.compare`;
                candidates: a grid as a mapping.
        """
        id_ = new_id()
        self._check_settled(workspace)
        control_path = self.path(workspace, workspace.others)
        if on_others and control_path is None:
            raise InputError("Choose a file of other people first; there is none to compare on.")
        arguments = self._arguments(
            workspace,
            JobKind.COMPARE,
            id_,
            out=str(self.jobs.comparison(id_)),
            on_sample=str(control_path) if on_others else None,
            candidates=self._grid(id_, options.pop("candidates", None)),
            options={name: value for name, value in options.items() if value is not None},
        )
        return self._start(workspace, JobKind.COMPARE, arguments, id_=id_)

    def start_preview(self, workspace: Workspace) -> str:
        """Try the policy on a few rows in a job: nothing is spent, recorded or kept.

        The rows are from the control, if the workspace has one. Otherwise they are from the table
        itself if neither the method nor a budget uses epsilon, and invented if one does.
        """
        self._check_settled(workspace)
        policy = self.judge_policy(workspace)
        control_path = self.path(workspace, workspace.others)
        private = find(policy.method).noisy or self.add_budget(workspace, policy).budget is not None
        data_path = None if private else self.path(workspace, workspace.data)
        for job in self.jobs.of(workspace.id):
            if job.kind is JobKind.PREVIEW:
                self.jobs.cancel(job.id)
        id_ = new_id()
        rows_of = control_path or data_path
        arguments = {
            "policy": self._policy(workspace, id_),
            "rows_of": None if rows_of is None else str(rows_of),
            "source_words": "others" if control_path else "table" if data_path else "invented",
            "out": str(self.preview_file(workspace)),
            "names": self._names(workspace),
        }
        return self._start(workspace, JobKind.PREVIEW, arguments, id_=id_)

    def preview_file(self, workspace: Workspace) -> Path:
        """Return the path of the last preview, which may hold rows of the table."""
        return self.folder(workspace) / "preview.json"

    def start_inspect(self, workspace: Workspace) -> str:
        """Inspect the table under the policy in a job, recorded as `shoal inspect` does."""
        self._check_settled(workspace)
        id_, out = new_id(), str(self.inspection_file(workspace))
        arguments = self._arguments(workspace, JobKind.INSPECT, id_, out=out)
        return self._start(workspace, JobKind.INSPECT, arguments, id_=id_)

    def inspection_file(self, workspace: Workspace) -> Path:
        """Return the path of the last inspection, which holds figures of the table."""
        return self.folder(workspace) / "inspection.json"

    def start_select(
        self,
        workspace: Workspace,
        *,
        epsilon: str,
        candidates: Mapping[str, Any] | None = None,
        published: bool = False,
    ) -> str:
        """Choose one method privately in a job, which spends epsilon."""
        id_ = new_id()
        self._check_settled(workspace)
        arguments = self._arguments(
            workspace,
            JobKind.SELECT,
            id_,
            out=str(self.jobs.comparison(id_)),
            candidates=self._grid(id_, candidates),
            published=published,
            epsilon=epsilon,
        )
        return self._start(workspace, JobKind.SELECT, arguments, id_=id_)

    def find_release(self, release: str) -> Path:
        """Find the public folder of a release.

        Raises:
            InputError: there is none.
        """
        entry = self.history.entry(release)
        folder = self.jobs.release(release)
        if entry is None or entry.state != "released" or not folder.is_dir():
            raise InputError("No such release.")
        return folder

    def comparison(self, workspace: Workspace) -> Path | None:
        """Return the folder of the latest finished comparison, or None."""
        id_ = workspace.jobs.get(JobKind.COMPARE.value)
        if id_ is None:
            return None
        folder = self.jobs.comparison(id_)
        return folder if (folder / "comparison.json").is_file() else None

    def read_comparison(self, workspace: Workspace) -> dict[str, Any] | None:
        """Read the latest comparison, as `Comparison.facts` writes it; confidential."""
        folder = self.comparison(workspace)
        return None if folder is None else read_json(folder / "comparison.json")

    def candidate(self, workspace: Workspace, label: str) -> dict[str, Any]:
        """Return a candidate of the comparison in the form of `[protect]` and `[require]`."""
        facts = self.read_comparison(workspace)
        rows = [] if facts is None else facts["candidates"]
        row = next((r for r in rows if label in {r["label"], visible(r["label"])}), None)
        if row is None:
            raise InputError("Choose a candidate of the comparison; there is none of that name.")
        stated = policy_document.parse_toml(policy_of(workspace)).get("protect", {})
        protect: dict[str, Any] = {"method": row["method"], **row["parameters"]}
        # A candidate's form and columns are not in its parameters, but in its label.
        label = row["label"]
        form = label.rpartition(" form=")[2] if " form=" in label else None
        if form:
            protect["release_form"] = form
        if stated.get("method") == row["method"] and stated.get("columns"):
            protect["columns"] = stated["columns"]
        kept = policy_document.parse_toml(policy_of(workspace)).get("require", {})
        needs = row.get("require")
        return {"protect": protect, **({"require": {**kept, **needs}} if needs else {})}

    def again(self, workspace: Workspace) -> dict[str, str]:
        """Return the equivalent command line and Python script: keys command and python."""
        label = workspace.data.label if workspace.data else "table.csv"
        control = workspace.others.label if workspace.others else None
        options: dict[str, str | bool | None] = {
            "file-format": workspace.release_format,
            "control": control,
            "budget": str(self.settings.budget) if workspace.source else None,
            "source": workspace.source or None,
            "audience": policy_document.audience_of(workspace.policy).value,
        }
        if workspace.scheme is not None:
            return schemes.again(workspace, label, options)
        return evidence.again(Path(label), Path("policy.toml"), Path("release"), options)

    def finish(self, status: JobStatus) -> None:
        """Store a job's result in the workspace and the history; called by `Jobs`."""
        if status.kind is JobKind.PROTECT:
            state = "released" if status.state is JobState.DONE else status.state.value
            manifest = self.jobs.manifest(status.id)
            self.history.end(status.id, state, manifest=manifest, sentence=status.error)
        if status.kind is JobKind.PROFILE and status.state is JobState.DONE and status.result:
            result = status.result
            given = read_json(self.jobs.folder(status.id) / "job.json")["arguments"]

            def take_result(now: Workspace) -> Workspace:
                same = now.data is not None and now.data.id in given["data"]
                if not same or dict(now.reading) != given["reading"]:
                    return now
                if _columns(now.policy) != set(result["columns"]):
                    return _anew(now, result["policy"])
                if not given["again"]:
                    return now
                text = policy_document.guess_anew(now.policy, result["policy"], now.confirmed)
                return replace(now, policy=text)

            try:
                self.store.note(status.workspace, take_result)
            except InputError:
                return  # The workspace was removed meanwhile.

    def _start(
        self, workspace: Workspace, kind: JobKind, arguments: Mapping[str, Any], *, id_: str = ""
    ) -> str:
        id_ = self.jobs.start(id_ or new_id(), workspace.id, kind, arguments)
        self.store.note(workspace.id, lambda now: replace(now, jobs={**now.jobs, kind.value: id_}))
        return id_

    def _check_settled(self, workspace: Workspace) -> None:
        if workspace.drafts:
            raise InputError(invalid_input.sentence(workspace))

    def _arguments(
        self, workspace: Workspace, kind: JobKind, id_: str, **given: Any
    ) -> dict[str, Any]:
        """Collect the arguments of a job: the table, and the present policy in the job's folder."""
        data = self._data(workspace)
        if any(job.kind is kind for job in self.jobs.of(workspace.id)):
            raise InputError("This task is already under way. Wait for it, or cancel it first.")
        self.add_budget(workspace, self.judge_policy(workspace))
        return {
            **given,
            "data": str(data),
            "policy": self._policy(workspace, id_),
            "names": self._names(workspace),
            "budget": str(self.settings.budget) if workspace.source else None,
            "source": workspace.source or None,
        }

    def _policy(self, workspace: Workspace, id_: str) -> str:
        """Write the present policy and its files to the folder of a job."""
        folder = private_folder(self.jobs.folder(id_))
        (folder / "policy.toml").write_text(workspace.policy, encoding="utf-8")
        for path in self.store.files(workspace.id).iterdir():
            shutil.copyfile(path, folder / path.name)
        return str(folder / "policy.toml")

    def _names(self, workspace: Workspace) -> dict[str, str]:
        """Map the paths of a workspace's files to the steward's names."""
        files = filter(None, (workspace.data, workspace.others))
        return {str(uploads.path_of(file, self.folder(workspace))): file.label for file in files}

    def _grid(self, id_: str, candidates: Mapping[str, Any] | None) -> str | None:
        if candidates is None:
            return None
        path = private_folder(self.jobs.folder(id_)) / "grid.toml"
        path.write_text(policy_document.grid(candidates), encoding="utf-8")
        return str(path)

    def _data(self, workspace: Workspace) -> Path:
        path = self.path(workspace, workspace.data)
        if path is None:
            again = " again: it is kept only while the studio runs" if workspace.data else ""
            raise InputError(f"Choose the file with the table{again}.")
        return path

    def _refuse_bombs(self, path: Path) -> None:
        try:
            uploads.refuse_bombs(path, limit=self.settings.decoded_limit)
        except InputError:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def studio(settings: Settings) -> Iterator[Studio]:
    """Open a home: lock it, clean up after a crash, and leave no job and no data behind."""
    with alone_in(settings.home), temporary_folder() as temporary:
        jobs = Jobs(settings.home, most=settings.most_jobs)
        history = History(settings.home)
        jobs.recover()
        history.recover(jobs.manifest)
        made = Studio(settings, WorkspaceStore(settings.home), jobs, history, temporary)
        jobs.finished = made.finish
        try:
            yield made
        finally:
            jobs.close()


def the_studio(request: Request) -> Studio:
    """Dependency: the running studio."""
    held: Studio = request.app.state.studio
    return held


def current(
    id: str,  # noqa: A002 (its name in the address)
    studio: Annotated[Studio, Depends(the_studio)],
) -> Workspace:
    """Dependency: the workspace in the address, `/w/{id}/...`; 404 if there is none."""
    try:
        return studio.store.load(id)
    except InputError as error:
        raise HTTPException(404, str(error)) from None


TheStudio = Annotated[Studio, Depends(the_studio)]
Current = Annotated[Workspace, Depends(current)]
"""For routes: `def page(request: Request, studio: TheStudio, workspace: Current)`."""


def policy_of(workspace: Workspace) -> str:
    """Return the policy's text, or say what to do without one."""
    if not workspace.policy:
        raise InputError("There is no policy yet. Choose a file first.")
    return workspace.policy


def _anew(now: Workspace, text: str) -> Workspace:
    """Return a workspace with another table's policy, without answers about the old one."""
    kept = {where: draft for where, draft in now.drafts.items() if where == invalid_input.BUDGET}
    return replace(
        now, policy=text, confirmed=(), observed=(), drafts=kept, answered=(), scheme=None
    )


def _columns(text: str) -> set[str]:
    return set(policy_document.parse_toml(text).get("columns", {})) if text else set()

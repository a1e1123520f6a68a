"""Workspaces: what a steward has done so far, on disk, with a way back, which says what it undoes.

A workspace leads from a file to a release. Its id is in every address, so two tabs
never mix. Its state is a frozen value in one JSON file that is replaced whole. The policy is kept
as TOML text, which is its one truth; fields are read from it.

Original data is not in here: `DataFile` names a file in the server's temporary folder, which is
gone after a restart. The page then asks for the file again.
"""

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from pydantic import TypeAdapter

from shoal.core.machine import now
from shoal.errors import InputError
from shoal.io.files import format_like
from shoal.studio import policy_document
from shoal.studio.private_files import ID, new_id, private_folder, read_json, write_json

MOST_STEPS = 100
"""Steps back that are kept."""


@dataclass(frozen=True)
class DataFile:
    """A file of people in the server's temporary folder.

    Attributes:
        id: chosen by the server; the file's name there is `id + suffix`.
        label: what the steward calls it: shown as text, never a path.
        suffix: what it is, such as `.csv`; one of those that `shoal.io.files` reads.
        bytes: its size.
    """

    id: str
    label: str
    suffix: str
    bytes: int


@dataclass(frozen=True)
class TakenScheme:
    """The scheme of an earlier release, by which the table is recoded.

    Attributes:
        file: its name among the files of the workspace.
        label: what the steward calls it.
        release: its release, if it was made in this studio.
        coarsen: columns to release at a higher level, by one level each time named.
    """

    file: str
    label: str
    release: str = ""
    coarsen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """What was typed and cannot be used; nothing is released while there is one.

    Attributes:
        given: the texts of the form as they were typed, by field.
        error: what does not fit, in a sentence.
        wrong: the fields that it is about; empty where that is not known.
        line: of the policy's text, from 1, that it is about, if that is known.
    """

    given: Mapping[str, str]
    error: str
    wrong: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True)
class Workspace:
    """The state of one workspace.

    What `undo` does not bring back: id, created, jobs. Of drafts it takes back all that
    there are, before it takes back anything else.

    Attributes:
        id: in the address: /w/{id}/data.
        title: for lists, such as the file's label.
        created: UTC, ISO 8601.
        data: the table, or none yet.
        others: people of the same population who are not in the table, or none: the control of
            the attacks, and what a comparison may look at instead of the table.
        policy: TOML text that `shoal.policy.load.loads` accepts, or "" before there is one.
        confirmed: columns whose role and kind the steward has confirmed.
        chosen: label of the candidate that was chosen from a comparison, or "".
        file_format: what the release is written as, or "" for the format of the table.
        source: population in the studio's budget file, or "" for the policy's own or none.
        jobs: the latest job of each kind, by kind.
        observed: columns whose categories were copied from the data and that nobody has called
            public knowledge since; kept beside the policy, so no way of editing it forgets.
        drafts: what was typed and refused, by form: `policy`, `require`, `parameters`, `budget`,
            or `columns.` and a column's name.
        reading: what the steward says of how the file is written, where the studio read it
            otherwise: delimiter, encoding, decimal, sheet, missing, dates.
        answered: the questions about the file that were answered, each by the name of its column.
        scheme: of an earlier release, if the table is recoded by it.
    """

    id: str
    title: str = ""
    created: str = ""
    data: DataFile | None = None
    others: DataFile | None = None
    policy: str = ""
    confirmed: tuple[str, ...] = ()
    chosen: str = ""
    file_format: str = ""
    source: str = ""
    jobs: Mapping[str, str] = field(default_factory=dict)
    observed: tuple[str, ...] = ()
    drafts: Mapping[str, Draft] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    answered: tuple[str, ...] = ()
    scheme: TakenScheme | None = None

    @property
    def release_format(self) -> str:
        """The format of the release: as stated, or that of the table."""
        return self.file_format or format_like(Path(self.data.label if self.data else ""))


_STATE = TypeAdapter(Workspace)
DID = "did"
"""The key under which a step says what was done in it."""
TYPED, SOMETHING = "what was typed", "the last change"
KEPT = ("id", "created", "jobs", "drafts")
"""Fields that undo leaves as they are."""


class WorkspaceStore:
    """All workspaces of a home.

    Threads may share it: one lock, and every change is one replaced file.
    """

    def __init__(self, home: Path) -> None:
        self._folder = private_folder(home / "workspaces")
        self._lock = RLock()

    def new(self) -> Workspace:
        """Make an empty workspace."""
        made = Workspace(new_id(), created=now("microseconds"))
        private_folder(self._folder / made.id)
        private_folder(self.files(made.id))
        self._write(made.id, made, [], [])
        return made

    def load(self, id_: str) -> Workspace:
        """Read a workspace.

        Raises:
            InputError: there is none of that id.
        """
        return self._read(id_)[0]

    def change(
        self, id_: str, *, since: str | None = None, settles: Collection[str] = (), **changed: Any
    ) -> Workspace:
        """Change fields, and keep the previous state for `undo`. An equal state is not a step.

        Args:
            id_: the id of the workspace.
            since: the policy that the change was made from; another one by now is not overwritten.
            settles: the drafts that are done with.
            changed: fields.

        Raises:
            InputError: there is no such workspace, or its policy is another one by now.
        """
        with self._lock:
            now, past, future = self._read(id_)
            if since is not None and now.policy != since:
                raise InputError(
                    "The policy has changed meanwhile, perhaps in another tab. Load the page again."
                )
            kept = {where: draft for where, draft in now.drafts.items() if where not in settles}
            then = replace(now, drafts=kept, **changed)
            if _undoable(then) == _undoable(now):
                if then != now:
                    self._write(id_, then, past, future)
                return then
            did = describe_change(_undoable(now), _undoable(then))
            self._write(id_, then, [*past, _step(now, did)][-MOST_STEPS:], [])
            return then

    def note(self, id_: str, change: Callable[[Workspace], Workspace]) -> Workspace:
        """Change a workspace by a function of its state, as part of the last step."""
        with self._lock:
            now, past, future = self._read(id_)
            then = change(now)
            if then != now:
                self._write(id_, then, past, future)
            return then

    def undo(self, id_: str) -> Workspace:
        """Undo one step, if there is one. Drafts are a separate step."""
        with self._lock:
            now, past, future = self._read(id_)
            if now.drafts:
                then = replace(now, drafts={})
                self._write(id_, then, past, future)
                return then
            if not past:
                return now
            then = _with(now, past[-1])
            did = past[-1].get(DID, "")
            self._write(id_, then, past[:-1], [*future, _step(now, did)])
            return then

    def redo(self, id_: str) -> Workspace:
        """Redo the last undone step, if there is one."""
        with self._lock:
            now, past, future = self._read(id_)
            if not future:
                return now
            then = _with(now, future[-1])
            did = future[-1].get(DID, "")
            self._write(id_, then, [*past, _step(now, did)], future[:-1])
            return then

    def steps(self, id_: str) -> tuple[int, int]:
        """Count the steps that can be undone, and redone."""
        now, past, future = self._read(id_)
        return len(past) + bool(now.drafts), len(future)

    def next_steps(self, id_: str) -> tuple[str, str]:
        """Describe what undo and redo would do; empty if there is no step."""
        now, past, future = self._read(id_)
        undo, redo = (log[-1].get(DID) or SOMETHING if log else "" for log in (past, future))
        return TYPED if now.drafts else undo, redo

    def all(self) -> Iterator[Workspace]:
        """Yield every workspace of the home, newest first."""
        workspaces = [
            self.load(path.name)
            for path in self._folder.iterdir()
            if re.match(ID, path.name) and (path / "state.json").is_file()
        ]
        return iter(sorted(workspaces, key=lambda one: one.created, reverse=True))

    def remove(self, id_: str) -> None:
        """Delete a workspace. Releases and what they spent stay in the history."""
        with self._lock:
            self.load(id_)
            shutil.rmtree(self._folder / id_, ignore_errors=True)

    def files(self, id_: str) -> Path:
        """Return the folder of the files that the policy names, such as hierarchies."""
        return self._folder / id_ / "files"

    def _read(self, id_: str) -> tuple[Workspace, list[dict[str, Any]], list[dict[str, Any]]]:
        content = read_json(self._folder / id_ / "state.json") if re.match(ID, id_) else None
        if not isinstance(content, dict):
            raise InputError("No such workspace. It may have been removed; start a new one.")
        return _STATE.validate_python(content["now"]), content["past"], content["future"]

    def _write(
        self,
        id_: str,
        now: Workspace,
        past: list[dict[str, Any]],
        future: list[dict[str, Any]],
    ) -> None:
        content = {"now": asdict(now), "past": past, "future": future}
        write_json(self._folder / id_ / "state.json", content)


def _undoable(state: Workspace) -> dict[str, Any]:
    return {name: value for name, value in asdict(state).items() if name not in KEPT}


def _step(state: Workspace, did: str) -> dict[str, Any]:
    return {**_undoable(state), DID: did}


def _with(now: Workspace, before: Mapping[str, Any]) -> Workspace:
    return _STATE.validate_python({**asdict(now), **before})


FIELDS = {
    "reading": "how the file is read",
    "others": "the file of other people",
    "chosen": "the choice from the comparison",
    "file_format": "the file format",
    "source": "the population of the budget",
    "title": "the name of the table",
    "answered": "an answer",
    "observed": "public knowledge",
    "scheme": "the scheme of an earlier release",
}
"""Fields of a workspace."""
TITLES = {
    "missing": "Marks for missing cells",
    "step": "Rounding step",
    "bottom_code": "Bottom code",
    "top_code": "Top code",
    "transform": "Scale",
    "date_format": "Date format",
    "date_step": "Rounding of dates",
    "other": "Category for unknown values",
    "missing_as": "Value for missing cells",
    "max_contributions": "Rows of a person that count",
    "public": "Public knowledge",
    "privacy_unit": "This column numbers the persons",
    "household": "This column numbers the households",
    "sampling_weight": "Sampling weight",
    "class_mean": "Mean weight of each class",
    "totals": "Public totals",
    "pseudonym": "Replace by pseudonyms",
    "date_shift": "Shift of dates (days)",
    "breaks": "Breaks between the categories",
    "stratum": "Sampling stratum",
}
"""How the page calls column keys."""
KEYS = {
    "bounds": "limits",
    "observed": "public knowledge",
    "privacy_unit": "who numbers the persons",
    "household": "who numbers the households",
}
"""The same in the name of a step that can be undone, where the title does not fit."""
TABLES = {
    "protect": "settings of the method",
    "require": "what must be promised",
    "constraints": "the rules that every row keeps",
    "release": "who gets the table",
    "reading": "how the file is read",
    "writing": "how the release is written",
    "evaluate": "what is evaluated",
    "context": "what the report says",
    "budget": "the budget",
    "one_row_per_person": "whose rows they are",
}
"""Tables of a policy."""


def describe_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say what differs between two states of a workspace.

    >>> describe_change({"confirmed": ["a"]}, {"confirmed": ["a", "b"]})
    'confirmation of b'
    """
    changed = [name for name in after if before.get(name) != after[name]]
    if "data" in changed:
        return f"the file {(after['data'] or before['data'] or {}).get('label', '')}".strip()
    if "reading" in changed:
        return FIELDS["reading"]
    if "scheme" in changed:
        return FIELDS["scheme"]
    if "policy" in changed and "chosen" not in changed:
        return _policy(before["policy"], after["policy"])
    if "confirmed" in changed:
        old, new = set(before["confirmed"]), set(after["confirmed"])
        return f"confirmation of {_columns(sorted(old ^ new))}"
    return next((FIELDS[name] for name in changed if name in FIELDS), "the last change")


def _policy(before: str, after: str) -> str:
    try:
        old, new = (policy_document.parse_toml(text) if text else {} for text in (before, after))
    except InputError:
        return "the policy"
    tables = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if "columns" not in tables or not old:
        table = next(iter(tables), "")
        if table == "protect" and _method(old) != _method(new):
            return "the method"
        return TABLES.get(table, "the policy") if old else "the policy"
    stated = {
        name: _list_changes(old["columns"].get(name), new["columns"].get(name))
        for name in {**old["columns"], **new["columns"]}
    }
    changed = {name: keys for name, keys in stated.items() if keys}
    keys = {key for each in changed.values() for key in each}
    # The role decides which other keys a column may have, and the kind likewise.
    first: list[str] = [k for k in ("role", "kind", "hierarchy", "categories") if k in keys]
    key = first[0] if first else keys.pop() if len(keys) == 1 else ""
    what = f"{KEYS.get(key) or TITLES.get(key, key).lower()} of " if key else ""
    return f"{what}{_columns(list(changed))}"


def _method(document: Mapping[str, Any]) -> Any:
    return document.get("protect", {}).get("method")


def _list_changes(one: Any, other: Any) -> set[str]:
    old, new = ({"role": each} if isinstance(each, str) else each or {} for each in (one, other))
    return {key for key in {**old, **new} if old.get(key) != new.get(key)}


def _columns(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} columns"

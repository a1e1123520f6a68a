"""The history of releases: an append-only list that survives a kill.

One JSON object a line. A release is `begun`, on disk before its work starts, and later `ended` with
what came of it. A line that a crash cut short is closed at the next start and then left out. A
release that was begun and never ended is looked for on disk: if its folder is whole it was
released, and else it was interrupted. What it spent is in the budget file either way, under the
release's name.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from shoal.core.machine import now
from shoal.core.manifest import Manifest
from shoal.io.disk import flush
from shoal.studio import policy_document
from shoal.studio.private_files import private_folder, read_json

if TYPE_CHECKING:
    from shoal.studio.context import Studio
    from shoal.studio.workspace import DataFile, Workspace

BEGUN, ENDED = "begun", "ended"


@dataclass(frozen=True)
class HistoryEntry:
    """A release, or an attempt at one.

    Attributes:
        id: the id of its job and its downloads.
        name: the name of its folder, which the budget file records.
        workspace: in which it was made.
        label: what the steward calls the table.
        method: by its name in the policy.
        state: running, released, failed, cancelled or interrupted.
        begun: UTC.
        ended: UTC, or "".
        source: population in the budget file, or "".
        rows: of the release.
        claims: as in the manifest.
        privacy_losses: as in the manifest: each draw of noise with its price.
        sentence: why it is not released, or "".
    """

    id: str
    name: str
    workspace: str
    label: str
    method: str
    state: str
    begun: str
    ended: str = ""
    source: str = ""
    rows: int = 0
    claims: tuple[Mapping[str, Any], ...] = field(default=())
    privacy_losses: tuple[Mapping[str, Any], ...] = field(default=())
    sentence: str = ""


_ENTRY = TypeAdapter(HistoryEntry)


class History:
    """The history of a home. One server at a time has it open, and a lock guards its threads."""

    def __init__(self, home: Path) -> None:
        self._path = private_folder(home) / "history.jsonl"
        self._lock = Lock()
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                file.write(b"\n")
        flush(self._path)
        flush(home)

    def begin(self, id_: str, *, workspace: str, label: str, method: str, source: str) -> None:
        """Record that a release is about to be made."""
        self._append(
            {"event": BEGUN, "id": id_, "name": release_name(id_), "workspace": workspace,
             "label": label, "method": method, "source": source, "time": now()}
        )  # fmt: skip

    def end(
        self,
        id_: str,
        state: str,
        *,
        manifest: Manifest | None = None,
        sentence: str = "",
    ) -> None:
        """Record the result of a release."""
        facts = {} if manifest is None else manifest.as_values()
        self._append(
            {"event": ENDED, "id": id_, "state": state, "time": now(), "sentence": sentence,
             "method": facts.get("method"), "rows": facts.get("rows", 0),
             "claims": facts.get("claims", []), "privacy_losses": facts.get("privacy_losses", [])}
        )  # fmt: skip

    def entries(self) -> tuple[HistoryEntry, ...]:
        """List all releases and attempts, newest first."""
        by_id: dict[str, HistoryEntry] = {}
        with self._lock:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            try:
                event = json.loads(line)
                self._take(by_id, event)
            except (ValueError, LookupError, TypeError):
                continue  # A line that a crash cut short.
        return tuple(reversed(by_id.values()))

    def entry(self, id_: str) -> HistoryEntry | None:
        """Return one entry, or None."""
        return next((entry for entry in self.entries() if entry.id == id_), None)

    def recover(self, manifest_of: Callable[[str], Manifest | None]) -> None:
        """Record what became of releases that were running when a server ended."""
        for entry in self.entries():
            if entry.state == "running":
                manifest = manifest_of(entry.id)
                if manifest is not None:
                    self.end(entry.id, "released", manifest=manifest)
                else:
                    self.end(entry.id, "interrupted", sentence=INTERRUPTED)

    @staticmethod
    def _take(found: dict[str, HistoryEntry], one: Mapping[str, Any]) -> None:
        if one["event"] == BEGUN:
            known = {"state": "running", "begun": one["time"]}
        else:
            known = {**vars(found[one["id"]]), "ended": one["time"]}
        stated = {key: value for key, value in one.items() if value is not None}
        found[one["id"]] = _ENTRY.validate_python({**known, **stated})

    def _append(self, event: Mapping[str, Any]) -> None:
        line = json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
        with self._lock:
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode())
            flush(self._path)


INTERRUPTED = (
    "The studio ended while this release was made, and nothing was written. What was booked in the "
    "budget file before counts as spent."
)


def release_name(id_: str) -> str:
    """Return the name of a release's folder, which the budget file records with its loss."""
    return f"release-{id_}"


@dataclass(frozen=True)
class BoundRelease:
    """The latest release of a workspace, and how it stands to the present policy.

    Attributes:
        id: of the release.
        policy_digest: of the policy that it was made with, as in its manifest.
        current: it was made with the present policy and choices.
        changed: what differs, where it is out of date: a dotted key of the policy, or a choice of
            the page in words, as it was when the release was made, and as it is now.
        again: the command and the script that made it.
    """

    id: str
    policy_digest: str
    current: bool
    changed: tuple[tuple[str, str, str], ...]
    again: dict[str, str]


def list_choices(workspace: "Workspace") -> dict[str, str]:
    """List the choices, besides the policy, on which a release rests."""
    return {
        "the table": _file(workspace.data),
        "people not in the table": _file(workspace.others),
        "file format": workspace.release_format,
        "population": workspace.source or "none",
        "the scheme": "none" if workspace.scheme is None else workspace.scheme.label,
        "coarsened": ", ".join(workspace.scheme.coarsen if workspace.scheme else ()) or "none",
    }


def find_latest(studio: "Studio", workspace: "Workspace") -> BoundRelease | None:
    """The latest whole release of a workspace; none before there is one.

    The job of a release keeps the policy's text, how the table and the file were chosen, and the
    command that does the same. A page that shows a release shows these, never the present ones.
    """
    entry = next(
        (e for e in studio.history.entries()
         if e.workspace == workspace.id and e.state == "released"),
        None,
    )  # fmt: skip
    manifest = None if entry is None else studio.jobs.manifest(entry.id)
    if entry is None or manifest is None:
        return None
    folder = studio.jobs.folder(entry.id)
    job: dict[str, Any] = (read_json(folder / "job.json") or {}).get("arguments", {})
    policy = (folder / "policy.toml").read_text(encoding="utf-8")
    before, now = job.get("choices", {}), list_choices(workspace)
    differences = policy_document.differences(policy, workspace.policy)
    differences += [(key, before[key], now[key]) for key in before if before[key] != now.get(key)]
    return BoundRelease(
        entry.id,
        manifest.policy_digest,
        current=not differences,
        changed=tuple(differences),
        again=job.get("again") or studio.again(workspace),
    )


def _file(file: "DataFile | None") -> str:
    return "none" if file is None else f"{file.label} ({file.bytes:,} bytes)"

"""A release is bound to the policy that it was made with; what has changed since is listed.

The job of a release keeps the policy's text, how the table and the file were chosen, and the
command that does the same. A page that shows a release shows these, never the present ones.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.studio import policy_document
from shoal.studio.private_files import read_json

if TYPE_CHECKING:
    from shoal.studio.context import Studio
    from shoal.studio.workspace import DataFile, Workspace


@dataclass(frozen=True)
class PolicyChange:
    """One thing that a release was made with and that is otherwise now.

    Attributes:
        key: a dotted key of the policy, or a choice of the page in words.
        old: as TOML writes it, when the release was made.
        new: the same, now.
    """

    key: str
    old: str
    new: str


@dataclass(frozen=True)
class BoundRelease:
    """The latest release of a workspace, and how it stands to the present policy.

    Attributes:
        id: of the release.
        policy_digest: of the policy that it was made with, as in its manifest.
        current: it was made with the present policy and choices.
        changed: what differs, where it is out of date.
        again: the command and the script that made it.
    """

    id: str
    policy_digest: str
    current: bool
    changed: tuple[PolicyChange, ...]
    again: dict[str, str]


def choices(workspace: "Workspace") -> dict[str, str]:
    """What a release rests on beside the policy, in words."""
    return {
        "the table": _file(workspace.data),
        "people not in the table": _file(workspace.others),
        "file format": workspace.release_format,
        "population": workspace.source or "none",
        "the scheme": "none" if workspace.scheme is None else workspace.scheme.label,
        "coarsened": ", ".join(workspace.scheme.coarsen if workspace.scheme else ()) or "none",
    }


def latest(studio: "Studio", workspace: "Workspace") -> BoundRelease | None:
    """The latest whole release of a workspace; none before there is one."""
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
    before, now = job.get("choices", {}), choices(workspace)
    differences = policy_document.differences(policy, workspace.policy)
    differences += [(key, before[key], now[key]) for key in before if before[key] != now.get(key)]
    changed = tuple(PolicyChange(*difference) for difference in differences)
    return BoundRelease(
        entry.id,
        manifest.policy_digest,
        current=not changed,
        changed=changed,
        again=job.get("again") or studio.again(workspace),
    )


def _file(file: "DataFile | None") -> str:
    return "none" if file is None else f"{file.label} ({file.bytes:,} bytes)"

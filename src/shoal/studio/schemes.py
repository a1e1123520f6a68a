"""Schemes of earlier releases, used to recode another table.

A scheme brings its policy with it: roles, hierarchies and what was promised. The table is recoded
by it until it is dropped, and every promise is checked again on the result.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core import Policy, Role
from shoal.errors import InputError
from shoal.hierarchy.files import csv_text
from shoal.io.files import format_like
from shoal.io.folders import INTERNAL_SUFFIX
from shoal.methods import find
from shoal.pipeline import scheme_files
from shoal.policy.load import self_contained
from shoal.studio import policy_document
from shoal.studio.private_files import new_id
from shoal.studio.workspace import TakenScheme, Workspace

if TYPE_CHECKING:
    from shoal.studio.context import Studio


def path_of(studio: "Studio", release: str) -> Path | None:
    """Return the path of a release's scheme; None if its method has none."""
    folder = studio.find_release(release)
    path = folder.with_name(folder.name + INTERNAL_SUFFIX) / scheme_files.SCHEME
    return path if path.is_file() else None


def releases(studio: "Studio") -> Iterator[tuple[str, str]]:
    """List the releases of this studio that have a scheme: id and title."""
    for entry in studio.history.entries():
        if entry.state != "released" or not studio.jobs.release(entry.id).is_dir():
            continue
        if path_of(studio, entry.id) is not None:
            yield entry.id, f"{entry.label} ({entry.method}, {entry.ended[:10]})"


def take(
    studio: "Studio", workspace: Workspace, content: bytes, *, label: str, release: str = ""
) -> Workspace:
    """Recode the table of a workspace by a scheme, whose policy replaces the drafted one.

    Raises:
        InputError: it is not a scheme, or is for a table with other columns.
    """
    folder = studio.store.files(workspace.id)
    path = folder / f"scheme-{new_id()}.toml"
    path.write_bytes(content)
    path.chmod(0o600)
    try:
        policy = scheme_files.read(path).policy
        _check_columns(studio, workspace, policy.schema.names)
        text = _text(policy, folder, now=workspace.policy)
        return studio.put_policy(
            workspace,
            text,
            settles=list(workspace.drafts),
            public=policy.schema.names,
            confirmed=tuple(policy.schema.names),
            scheme=TakenScheme(path.name, label, release),
        )
    except InputError as error:
        path.unlink()
        raise InputError(str(error).replace(str(path), label)) from None


def coarsen_columns(studio: "Studio", workspace: Workspace, columns: Collection[str]) -> Workspace:
    """Raise columns above the scheme's level, once for each time named."""
    taken = workspace.scheme
    if taken is None:
        raise InputError("The table is not recoded by a scheme. Take one on the screen Data first.")
    scheme = scheme_files.read(studio.store.files(workspace.id) / taken.file)
    scheme_files.adjust(scheme, coarsen=list(columns))
    changed = replace(taken, coarsen=tuple(columns))
    return studio.store.change(workspace.id, scheme=changed)


def arguments(studio: "Studio", workspace: Workspace, folder: Path) -> dict[str, Any]:
    """Collect the arguments of a release's job; its folder has the files of the workspace."""
    taken = workspace.scheme
    if taken is None:
        return {"scheme": None}
    path = studio.store.files(workspace.id) / taken.file
    scheme_files.under(scheme_files.read(path), studio.judge_policy(workspace))
    kept = taken.release and studio.jobs.release(taken.release)
    previous = str(kept) if kept and kept.is_dir() else None
    return {
        "scheme": str(folder / taken.file),
        "previous": previous,
        "coarsen": list(taken.coarsen),
    }


def again(
    workspace: Workspace, label: str, options: Mapping[str, str | bool | None]
) -> dict[str, str]:
    """Write the command line and the Python script that recode a table by the scheme."""
    coarsen = workspace.scheme.coarsen if workspace.scheme else ()
    words = ["shoal", "apply", scheme_files.SCHEME, label, "--out", "release"]
    words += ["--policy", "policy.toml"]
    form = str(options.get("file-format") or "parquet")
    for name in ("file-format", "audience"):
        stated = options.get(name) not in {None, format_like(Path(label))}
        words += [f"--{name}", str(options[name])] if stated else []
    for name in coarsen:
        words += ["--coarsen", name]
    given = ", policy='policy.toml'"
    given += f", coarsen={list(coarsen)!r}" if coarsen else ""
    given += f", audience={options['audience']!r}" if options.get("audience") else ""
    made = f"release = shoal.apply({scheme_files.SCHEME!r}, {label!r}{given})"
    written = "" if form == "parquet" else f", file_format={form!r}"
    lines = ["import shoal", "", made, "print(release)", f"release.write('release'{written})"]
    return {"command": shlex.join(words), "python": "\n".join(lines)}


def levels(policy: Policy) -> tuple[str, ...]:
    """List the columns that can be coarsened, if the method has levels."""
    if not find(policy.method).cells.has_levels:
        return ()
    return policy.columns or policy.schema.with_role(Role.QUASI_IDENTIFIER)


def _check_columns(studio: "Studio", workspace: Workspace, names: Collection[str]) -> None:
    seen = studio.profile(workspace)
    if seen is None:
        raise InputError("No table was read yet. Choose a file, or wait.")
    have = [column.name for column in seen.columns]
    lacking = [name for name in names if name not in have]
    unknown = [name for name in have if name not in names]
    if lacking or unknown:
        parts = [f"has no column '{name}'" for name in lacking[:3]]
        parts += [f"has a column '{name}' that the scheme does not know" for name in unknown[:3]]
        raise InputError(f"The scheme does not fit: the table {', and '.join(parts)}.")


def _text(policy: Policy, folder: Path, *, now: str) -> str:
    """Write the policy of a scheme as TOML, with its files and present reading options."""
    document, trees, pairs = self_contained(policy)
    for key in ("files", "budget"):  # a file of another machine says nothing here
        document.pop(key, None)
    for key, files in (("hierarchy", trees), ("recode", pairs)):
        for name, rows in files.items():
            path = folder / f"scheme-{key}-{new_id()}.csv"
            path.write_text(csv_text(rows), encoding="utf-8")
            path.chmod(0o600)
            document["columns"][name][key] = path.name
    document["reading"] = policy_document.parse_toml(now).get("reading", {}) if now else {}
    return policy_document.write_plain(document)

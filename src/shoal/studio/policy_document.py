"""Convert the policy between text and fields.

TOML text is the one truth. Fields are read from it; a changed field is written as new text, with
`shoal.policy.load` as the judge of both. Comments do not survive a change of fields.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal import policy
from shoal.core import Audience, Discover, Policy
from shoal.errors import InputError
from shoal.io import text_files
from shoal.io.text_files import as_toml, bare
from shoal.methods import find
from shoal.pipeline import audiences
from shoal.policy.load import exact
from shoal.policy.spec import with_days

FILES = ("hierarchy", "recode")
"""Column keys that name a file."""
SECTIONS = ("columns", "protect", "require", "constraints", "release", "reading", "writing",
            "evaluate", "context", "budget")  # fmt: skip
"""Parts of a policy, in the order in which they are written."""
ABSENT = "not stated"
"""How a difference shows a key that one of two policies lacks."""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text into plain values; numbers with a point become decimals.

    Raises:
        InputError: it is not valid TOML.
    """
    return text_files.parse_toml(text, "The policy")


def judge(text: str, *, folder: Path) -> Policy:
    """Parse and check a policy.

    Args:
        text: TOML.
        folder: of the files that it names. Only names in this folder are read: a page must not
            make the server open any other file.

    Raises:
        InputError: it cannot be used as it is, in one sentence.
    """
    for name in _list_files(parse_toml(text)):
        if not isinstance(name, str) or Path(name).name != name or name in {"", ".", ".."}:
            raise InputError(
                "Expected the plain name of a file of this workspace, without folders, under "
                "hierarchy, recode and queries."
            )
    judged = policy.loads(text, folder=folder, where="The policy")
    find(judged.method)
    return judged


def check_budget(policy: Policy, *, home: Path) -> None:
    """Refuse a budget file outside the studio's folder, after resolving links."""
    if policy.budget is None:
        return
    try:
        inside = policy.budget.file.resolve().is_relative_to(home.resolve())
    except (OSError, ValueError, RuntimeError):  # no path, or links that go round in circles
        inside = False
    if not inside:
        raise InputError(
            "The policy, budget.file: expected a budget file in the studio's own folder. "
            "Remove [budget], and name the population on the page Release."
        )


def column_of(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a column's fields, including its role if nothing else is stated."""
    stated = document["columns"][name]
    return {"role": stated} if isinstance(stated, str) else dict(stated)


def list_observed(
    text: str, *, before: Collection[str], public: Collection[str]
) -> tuple[str, ...]:
    """List the columns whose categories count as copied from the data.

    Args:
        text: TOML, the policy as it is to be.
        before: the columns whose categories count as copied so far.
        public: columns whose categories somebody has just called public knowledge.

    Raises:
        InputError: a column of them has categories without the mark, and nobody has said so.
    """
    columns = {
        name: stated if isinstance(stated, Mapping) else {}
        for name, stated in parse_toml(text)["columns"].items()
    }
    marked = [name for name, stated in columns.items() if stated.get("observed")]
    left = [name for name in before if name not in (*public, *marked)]
    for name in left:
        stated = columns.get(name, {})
        known = stated.get("categories") != Discover.DISCOVER and "categories" in stated
        if known or "hierarchy" in stated:
            raise InputError(
                "these were copied from the data, so 'observed = true' stays beside them. If they "
                "are public knowledge, tick that on the column's card.",
                field=("columns", name, "categories"),
                place=f"The policy, columns.{name}.categories",
            )
    return (*marked, *left)


def differences(before: str, after: str) -> list[tuple[str, str, str]]:
    """List the keys in which two policies differ, with both values."""
    old, new = _flat(parse_toml(before)), _flat(parse_toml(after))
    return [
        (key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]


def _flat(document: Mapping[str, Any]) -> dict[str, str]:
    """Flatten values by dotted key, as TOML text; a column that states only a role is that role."""
    flat: dict[str, str] = {}
    for section, content in document.items():
        for key, value in content.items() if isinstance(content, Mapping) else [("", content)]:
            path = ".".join(filter(None, (section, key)))
            if section == "columns":
                stated = {"role": value} if isinstance(value, str) else value
                flat |= {f"{path}.{name}": as_toml(item) for name, item in stated.items()}
            else:
                flat[path] = as_toml(value)
    return flat


def without_observed(text: str) -> str:
    """Remove categories that were only observed; an ordinal column then becomes nominal."""
    document = parse_toml(text)
    for column in document["columns"].values():
        if isinstance(column, dict) and column.pop("observed", False):
            column.pop("categories", None)
            column["kind"] = "nominal"
    return write_toml(document)


def take_reviewed(text: str, confirmed: Collection[str]) -> str:
    """Remove the mark of an unreviewed draft once every column is confirmed.

    In the studio a person confirms each column, which is the review.
    """
    document = parse_toml(text)
    if document.get("review") != {} or not set(document["columns"]) <= set(confirmed):
        return text
    return re.sub(r"(?m)^\[review\][^\n]*\n(?:[ \t]*(?:#[^\n]*)?\n)*", "", text)


def guess_anew(text: str, drafted: str, confirmed: Collection[str]) -> str:
    """Update reading options and unconfirmed columns from a new draft."""
    document, new = parse_toml(text), parse_toml(drafted)
    columns = {
        name: document["columns"][name] if name in confirmed else line
        for name, line in new["columns"].items()
    }
    return write_toml({**document, "columns": columns, "reading": new.get("reading", {})})


def write_toml(document: Mapping[str, Any]) -> str:
    """Write plain values as TOML text that reads back as the same policy."""
    lines = [f"version = {as_toml(document.get('version', 1))}"]
    known = [name for name in SECTIONS if name in document]
    unknown = [name for name in document if name not in (*SECTIONS, "version")]
    lines += [
        f"{bare(name)} = {as_toml(document[name])}"
        for name in unknown
        if not isinstance(document[name], Mapping)
    ]
    for section in (*known, *(name for name in unknown if isinstance(document[name], Mapping))):
        content = document[section]
        if not isinstance(content, Mapping):
            raise InputError(f"The policy, {section}: expected a table of keys.")
        lines += ["", f"[{bare(section)}]"]
        lines += [f"{bare(key)} = {as_toml(value)}" for key, value in content.items()]
    return "\n".join(lines) + "\n"


def write_plain(document: Mapping[str, Any]) -> str:
    """Write a policy of plain JSON values as TOML text: days of columns may be texts.

    A key without a value is left out, and so is a section.
    """
    kept = {section: stated for section, stated in document.items() if stated is not None}
    if kept.get("columns"):
        kept["columns"] = {
            name: column if isinstance(column, str) else with_days(_to_toml_value(column))
            for name, column in kept["columns"].items()
        }
    return write_toml(_to_toml_value(kept))


def _to_toml_value(value: Any) -> Any:
    """Convert JSON values for TOML: exact numbers, and no key without a value."""
    if isinstance(value, Mapping):
        return {key: _to_toml_value(item) for key, item in value.items() if item is not None}
    return (
        [_to_toml_value(item) for item in value]
        if isinstance(value, list | tuple)
        else exact(value)
    )


def _list_files(document: Mapping[str, Any]) -> Iterator[Any]:
    columns = document.get("columns")
    for column in columns.values() if isinstance(columns, Mapping) else ():
        if isinstance(column, Mapping):
            yield from (column[key] for key in FILES if key in column)
    measure = document.get("evaluate")
    if isinstance(measure, Mapping) and "queries" in measure:
        yield measure["queries"]


def grid(content: Mapping[str, Any]) -> str:
    """Write a grid of candidates as TOML text, for `shoal.evaluation.comparison.grid.read`."""
    rows = content.get("candidate", [])
    lines: list[str] = []
    for row in rows:
        lines.append("[[candidate]]")
        lines += [f"{bare(key)} = {as_toml(_to_toml_value(value))}" for key, value in row.items()]
    return "\n".join(lines) + "\n"


def audience_of(text: str) -> Audience:
    """Return the audience that the policy states, or the public."""
    stated = parse_toml(text).get("release", {}) if text else {}
    return audiences.find_audience(stated.get("audience", Audience.PUBLIC_USE))

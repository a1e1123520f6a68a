"""The policy as text and as fields, each made from the other.

TOML text is the one truth. Fields are read from it; a changed field is written as new text, with
`shoal.policy` as the judge of both. Comments do not survive a change of fields.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from shoal import inputs, policy
from shoal.core import Policy
from shoal.errors import InputError
from shoal.policy import quoted

FILES = ("taxonomy", "recode")
"""Column keys that name a file."""
LIMITS = ("bounds", "top", "bottom", "missing_as")
"""Column keys that hold days in a column of dates."""
SECTIONS = ("columns", "protect", "require", "release", "reading", "measure", "context", "ledger")
"""Parts of a policy, in the order in which they are written."""
LONGEST = 20
"""Digits from which on a number is written with an exponent."""


def parsed(text: str) -> dict[str, Any]:
    """Read TOML text into plain values; numbers with a point become decimals.

    Raises:
        InputError: it is not valid TOML.
    """
    return inputs.parse_toml(text, "The policy")


def judged(text: str, *, folder: Path) -> Policy:
    """Check a policy and read it.

    Args:
        text: TOML.
        folder: of the files that it names. Only names in this folder are read: a page must not
            make the server open any other file.

    Raises:
        InputError: it cannot be used as it is, in one sentence.
    """
    for name in _named_files(parsed(text)):
        if not isinstance(name, str) or Path(name).name != name or name in {"", ".", ".."}:
            raise InputError(
                "Expected the plain name of a file of this workspace, without folders, under "
                "taxonomy, recode and queries."
            )
    return policy.loads(text, folder=folder, where="The policy")


def with_fields(text: str, changes: Mapping[str, Any]) -> str:
    """Change sections of a policy, and write it again.

    Args:
        text: TOML, the policy so far.
        changes: by section; under `columns` by column, where each named column is replaced; any
            other section is replaced whole, and taken out where it is none. JSON values will do:
            days may be texts.
    """
    document = parsed(text)
    for section, stated in changes.items():
        if stated is None:
            document.pop(section, None)
        elif section == "columns":
            columns = {**document.get("columns", {})}
            for name, column in stated.items():
                columns[name] = _column(column)
            document["columns"] = columns
        else:
            document[section] = _exact(stated)
    return written(document)


def column_of(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A column's fields, its role too where the policy states nothing else."""
    stated = document["columns"][name]
    return {"role": stated} if isinstance(stated, str) else dict(stated)


def without_observed(text: str) -> str:
    """Take categories out that were only observed."""
    document = parsed(text)
    for column in document["columns"].values():
        if isinstance(column, dict) and column.pop("observed", False):
            column.pop("categories", None)
    return written(document)


def written(document: Mapping[str, Any], notes: Mapping[str, str] | None = None) -> str:
    """Write a policy as TOML text that reads back as the same values.

    Args:
        document: plain values, decimals and days.
        notes: for columns, a comment above each.
    """
    lines = [f"version = {as_toml(document.get('version', 1))}"]
    known = [name for name in SECTIONS if name in document]
    others = [name for name in document if name not in (*SECTIONS, "version")]
    lines += [
        f"{bare(name)} = {as_toml(document[name])}"
        for name in others
        if not isinstance(document[name], Mapping)
    ]
    for section in (*known, *(name for name in others if isinstance(document[name], Mapping))):
        content = document[section]
        if not isinstance(content, Mapping):
            raise InputError(f"The policy, {section}: expected a table of keys.")
        lines += ["", f"[{bare(section)}]"]
        for key, value in content.items():
            if notes and section == "columns" and key in notes:
                lines.append(f"# {_comment(notes[key])}")
            lines.append(f"{bare(key)} = {as_toml(value)}")
    return "\n".join(lines) + "\n"


def _column(stated: Any) -> Any:
    if not isinstance(stated, Mapping):
        return stated
    fields = {key: value for key, value in stated.items() if value is not None}
    if fields.get("kind") == "date":
        for key in LIMITS:
            if key in fields:
                fields[key] = _days(fields[key])
    return _exact(fields)


def _days(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_days(item) for item in value]
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items() if item is not None}
    return [_exact(item) for item in value] if isinstance(value, list | tuple) else value


def _named_files(document: Mapping[str, Any]) -> Iterator[Any]:
    columns = document.get("columns")
    for column in columns.values() if isinstance(columns, Mapping) else ():
        if isinstance(column, Mapping):
            yield from (column[key] for key in FILES if key in column)
    measure = document.get("measure")
    if isinstance(measure, Mapping) and "queries" in measure:
        yield measure["queries"]


def bare(name: str) -> str:
    """Write a key as TOML does, quoted where it must be.

    >>> bare("k-anonymity"), bare("date of birth")
    ('k-anonymity', '"date of birth"')
    """
    plain = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if plain else quoted(name)


def as_toml(value: Any) -> str:  # noqa: PLR0911 (one line a type)
    """Write a value as TOML does, on one line.

    >>> as_toml({"role": "other", "bounds": [0, Decimal("1.5")], "unit": True})
    '{ role = "other", bounds = [0, 1.5], unit = true }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(str(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return as_toml(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = ", ".join(f"{bare(key)} = {as_toml(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    raise InputError(f"A policy holds no {type(value).__name__}.")


def _decimal(value: Decimal) -> str:
    if value.is_nan():
        return "nan"
    if value.is_infinite():
        return "-inf" if value < 0 else "inf"
    plain = abs(value.adjusted()) < LONGEST
    return format(value, "f") if plain else str(value).lower()


def _comment(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", " ")


def grid(content: Mapping[str, Any]) -> str:
    """Write a grid of candidates as TOML text, for `shoal.comparison.grid.read`."""
    rows = content.get("candidate", [])
    lines: list[str] = []
    for row in rows:
        lines.append("[[candidate]]")
        lines += [f"{bare(key)} = {as_toml(_exact(value))}" for key, value in row.items()]
    return "\n".join(lines) + "\n"

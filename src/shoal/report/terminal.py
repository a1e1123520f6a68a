"""What the command line prints: checks and methods, as text or JSON."""

import json
from collections.abc import Iterable
from typing import Any

from shoal.core import Check, Column, KAnonymity, Kind, Release, Role, Schema, figure
from shoal.core.serialise import plain
from shoal.methods import REGISTRY, Method, Setting


def release_text(release: Release, notes: Iterable[str]) -> str:
    """What a release promises, line by line, and what to know about it."""
    return "\n".join([repr(release), *(f"  note  {note}" for note in notes)])


def checks_text(checks: Iterable[Check]) -> str:
    """One paragraph a check, the group that decides by its row numbers."""
    lines = []
    for check in checks:
        verdict = "holds" if check.holds else "FAILS"
        lines.append(f"{verdict}: {check.guarantee}")
        if not isinstance(check.guarantee, KAnonymity):
            lines.append(f"  achieved: {figure(check.achieved)}")
        rows = ", ".join(map(str, check.witness.get("rows", [])))
        where = f", for example rows {rows}" if rows else ""
        size = check.witness["size"]
        group = "smallest" if isinstance(check.guarantee, KAnonymity) else "deciding"
        counted = "person" if check.remarks.get("counted") == "persons" else "record"
        lines.append(f"  {group} group: {size:,} {counted}{'s' if size != 1 else ''}{where}")
        for name, value in check.remarks.items():
            text = value if isinstance(value, str) else f"{value:,}"
            lines.append(f"  {name.replace('_', ' ')}: {text}")
    return "\n".join(lines)


def checks_json(checks: Iterable[Check]) -> str:
    """The same as JSON, in the shape of the manifest."""
    written = [plain(check) for check in checks]
    verdict = {"holds": all(check["holds"] for check in written), "checks": written}
    return json.dumps(verdict, indent=2)


def methods_text() -> str:
    """Every registered method: what it does, its parameters, forms and reference."""
    paragraphs = []
    for method in REGISTRY.values():
        lines = [method.name, f"  {method.summary}"]
        for name, field in method.parameters.model_fields.items():
            default = "required" if field.is_required() else f"default {field.get_default()}"
            lines.append(f"  {name}: {field.description} ({default})")
        lines.append(f"  release forms: {', '.join(method.forms.offered)}")
        lines += [f"  {line}" for line in _promises(method)]
        lines.append(f"  reference: {method.reference}")
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def _promises(method: Method[Any]) -> list[str]:
    """What a method claims for its two example columns, in each of its release forms."""
    columns = (*method.example.columns, Column("c", Role.OTHER, Kind.NUMERIC, public=True))
    parameters = method.parameters.model_validate(dict(method.example.parameters))
    given = ", ".join(f"{name} = {value}" for name, value in method.example.parameters.items())
    lines = [f"promises, for {_described(method)} beside a public column c, with {given}:"]
    for form in method.forms.offered:
        stated = Schema(columns, one_row_per_person=True)
        setting = Setting(stated, ("a", "b"), parameters, form)
        claims = [
            f"{claim.guarantee} ({claim.status})" for claim in method.promises.claims(setting)
        ]
        lines.append(f"  {form}: {'; '.join(claims)}")
    return [*lines, *(f"  {text}" for text in method.promises.not_claimed(setting))]


def _described(method: Method[Any]) -> str:
    """The example columns in words."""
    if len({column.role for column in method.example.columns}) == 1:
        return "two columns a and b"
    return " and ".join(f"a {column.role} {column.name}" for column in method.example.columns)

"""What a change did, in a few words, for the button that takes it back."""

from collections.abc import Mapping
from typing import Any

from shoal.errors import InputError
from shoal.studio import policy_document

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
KEYS = {
    "bounds": "limits",
    "missing": "marks for missing cells",
    "observed": "public knowledge",
    "date_format": "date format",
    "privacy_unit": "who numbers the persons",
    "household": "who numbers the households",
    "sampling_weight": "sampling weight",
    "stratum": "sampling stratum",
    "top_code": "top code",
    "bottom_code": "bottom code",
    "missing_as": "value for missing cells",
    "other": "category for unknown values",
    "step": "rounding step",
    "date_step": "rounding of dates",
    "transform": "scale",
}
"""Keys of a column that a page calls otherwise."""
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


def words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say what differs between two states of a workspace.

    >>> words({"confirmed": ["a"]}, {"confirmed": ["a", "b"]})
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
    what = f"{KEYS.get(key, key)} of " if key else ""
    return f"{what}{_columns(list(changed))}"


def _method(document: Mapping[str, Any]) -> Any:
    return document.get("protect", {}).get("method")


def _list_changes(one: Any, other: Any) -> set[str]:
    old, new = ({"role": each} if isinstance(each, str) else each or {} for each in (one, other))
    return {key for key in {**old, **new} if old.get(key) != new.get(key)}


def _columns(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} columns"

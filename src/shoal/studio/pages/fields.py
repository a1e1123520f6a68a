"""Form fields from the models of the policy, and TOML values from form fields.

What a text means is decided by the type that the model states. A text that does not fit is handed
on as it is, so the policy's own check says what was expected.
"""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from shoal.core import Discover
from shoal.errors import visible
from shoal.io.dates import in_words, strptime_format
from shoal.io.text_files import as_toml
from shoal.policy.spec import FLAGS, ColumnSpec, suits
from shoal.studio.workspace import TITLES

MORE = (
    "missing",
    "step",
    "bottom_code",
    "top_code",
    "transform",
    "date_format",
    "date_step",
    "other",
    "missing_as",
    "max_contributions",
    "totals",
    "date_shift",
    "breaks",
)
"""Column keys that few columns need; the page hides them until they are asked for."""
TICKS = ("public", "pseudonym", *FLAGS)
"""Those that are ticked."""
HELP = {
    "missing": "Texts that mean missing, beside the empty cell; separated by commas.",
    "transform": "log or sqrt: distances between numbers are taken on this scale.",
    "date_format": "How dates are written, for example dd.mm.yyyy; by default yyyy-mm-dd.",
    "other": "What unknown values become in an epsilon release; by default missing where missing "
    "cells stay, and elsewhere the first category.",
    "missing_as": "What missing cells become in an epsilon release; by default the middle of the "
    "limits, or the category for unknown values.",
    "max_contributions": "How many rows of a person an epsilon release uses at most; by default "
    "one. Further rows are left out. Methods without noise use all.",
    "public": "Everybody may know the values. An epsilon release may hold them as they are.",
    "privacy_unit": "Promises then count persons and not rows. A row without a person is an error.",
    "class_mean": "Rows that agree on the protected columns get the mean of their weights, so the "
    "promise of k covers it.",
    "pseudonym": "Keyed by a secret for each recipient: state pseudonym_key under [release] and "
    "recipient under [context]. Not for public use.",
    "totals": "The mean weights are raked to them: { region = { north = 120000, south = 98000 } }.",
}
"""What fields of a column mean where the words of the policy's model will not do."""
UNASKED = ("exact_contributions", "keep_missing", "label", "value_labels")
"""Column keys that no field shows; a card leaves them as the text states them."""


def as_text(value: Any) -> str:
    """Write a TOML value for a field.

    >>> as_text(None), as_text(True), as_text(Decimal("0.5")), as_text(["a"])
    ('', 'true', '0.5', '["a"]')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else as_toml(value)


def as_value(text: str, kind: str) -> Any:
    """Parse a field as a TOML value of a JSON type; keep the text if it does not fit.

    >>> as_value("5", "integer"), as_value("0.5", "number"), as_value("x", "number")
    (5, Decimal('0.5'), 'x')
    """
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind in {"integer", "number"}:
        return as_number(text)
    if kind == "array":
        try:
            return tomllib.loads(f"x = {text}", parse_float=Decimal)["x"]
        except (ValueError, RecursionError):
            return text
    return text


def as_number(text: str) -> Any:
    """Parse a number exactly, as an integer if it is written as one."""
    plain = text.replace(" ", "").replace("_", "")
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    return int(plain) if plain.lstrip("+-").isdecimal() else number


def as_limit(text: str, kind: str) -> Any:
    """Parse a limit of a numeric, date or ordinal column; keep the text if it does not fit."""
    if kind == "numeric":
        return as_number(text)
    if kind == "date":
        try:
            return date.fromisoformat(text)
        except ValueError:
            return text
    return text


def column_more(kind: str, stated: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make a column's rarely used fields: flags, coding, and missing marks."""
    texts = {key: _one_line(key, stated.get(key)) for key in MORE}
    ticks = {key: bool(stated.get(key)) for key in TICKS}
    return [
        {
            "key": key,
            "title": TITLES[key],
            "words": HELP.get(key) or ColumnSpec.model_fields[key].description,
            "flag": key in ticks,
            "value": value,
        }
        for key, value in {**texts, **ticks}.items()
        if suits(key, kind) and (key != "max_contributions" or stated.get("privacy_unit"))
    ]


def _one_line(key: str, value: Any) -> str:
    """Write a value for a one-line field: several marks are separated by commas if possible."""
    if key == "date_format" and isinstance(value, str):
        return in_words(value)
    plain = key == "missing" and all(
        isinstance(item, str) and item == item.strip() and item and not set(item) & set(',["')
        for item in value or ()
    )
    return ", ".join(value or ()) if plain else as_text(value)


def read_column(given: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column's keys from a form; keys that the form does not ask for are kept."""
    role, kind = given.get("role", ""), given.get("kind", "")
    fields: dict[str, Any] = {"role": role}
    if role == "identifier":
        kept = {key: True for key in FLAGS if suits(key, None) and given.get(key)}
        if not kept.get("privacy_unit"):
            return fields | kept
        rows = {key: before[key] for key in UNASKED if key in before}
        return fields | kept | rows | _read_field("max_contributions", given, before, "")
    if kind:
        fields["kind"] = kind
    if kind in {"numeric", "date"}:
        fields |= _bounds(given, kind)
    if kind in {"ordinal", "nominal"}:
        fields |= _categories(given, before)
    for key in MORE:
        fields |= _read_field(key, given, before, kind)
    fields |= {key: True for key in TICKS if given.get(key)}
    fields = {key: value for key, value in fields.items() if suits(key, kind)}
    if kind in {"ordinal", "nominal", "discover"}:
        fields |= {key: before[key] for key in ("prefix", "recode") if key in before}
    left = (*UNASKED, "hierarchy") if kind == before.get("kind") else UNASKED
    return fields | {key: before[key] for key in left if key in before}


def _bounds(given: Mapping[str, str], kind: str) -> dict[str, Any]:
    if given.get("discover"):
        return {"bounds": Discover.DISCOVER.value}
    ends = [given.get(end, "").strip() for end in ("low", "high")]
    return {"bounds": [as_limit(end, kind) for end in ends]} if any(ends) else {}


def _read_field(
    key: str, given: Mapping[str, str], before: Mapping[str, Any], kind: str
) -> dict[str, Any]:
    """Read one field of `MORE`; an unchanged text keeps the previous value."""
    text = given.get(key, "").strip()
    idle = key == "max_contributions" and not given.get("privacy_unit")
    if not text or idle or not suits(key, kind):
        return {}
    same = key in before and text == visible(_one_line(key, before[key]))
    return {key: before[key] if same else _more(key, text, kind)}


def is_open(stated: Mapping[str, Any]) -> bool:
    """Whether the bounds or the categories of a column are to be found with noise."""
    return Discover.DISCOVER.value in {str(stated.get(key)) for key in ("bounds", "categories")}


def known(stated: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Return the bounds or the categories of a column; none where they are to be found."""
    value: Sequence[Any] = stated.get(key, ())
    return () if isinstance(value, str) else value


def as_form(stated: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a column's form as an untouched form would send them."""
    low, high = (as_text(end) for end in known(stated, "bounds") or (None, None))
    categories = "\n".join(visible(str(category)) for category in known(stated, "categories"))
    texts = {key: visible(_one_line(key, stated.get(key))) for key in MORE}
    flags = {key: "yes" for key in TICKS if stated.get(key)}
    if is_open(stated):
        flags["discover"] = "yes"
    given = {"role": str(stated["role"]), "kind": str(stated.get("kind", "")), **texts, **flags}
    return {**given, "low": low, "high": high, "categories": categories}


def _categories(given: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    if "hierarchy" in before and given.get("kind") == "nominal":
        observed = not given["stated"] if "stated" in given else before.get("observed")
        tree = {"hierarchy": before["hierarchy"]}
        return tree | ({"observed": True} if observed else {})
    if given.get("discover") and given.get("kind") == "nominal":
        return {"categories": Discover.DISCOVER.value}
    lines = given.get("categories", "").replace("\r\n", "\n").split("\n")
    # A page shows what cannot be seen as escapes; a line that was left alone is what it was.
    shown = {visible(str(category)): str(category) for category in known(before, "categories")}
    typed = (line.strip() for line in lines if line.strip())
    stated = list(dict.fromkeys(shown.get(line, line) for line in typed))
    if not stated:
        return {}
    # A copied list stays copied, however it is edited, until the tick says that it is public.
    observed = not given["stated"] if "stated" in given else before.get("observed")
    return {"categories": stated} | ({"observed": True} if observed else {})


def _more(key: str, text: str, kind: str) -> Any:
    if key == "missing":
        listed = as_value(text, "array") if text.startswith("[") else text.split(",")
        return [item.strip() if isinstance(item, str) else item for item in listed]
    if key in {"totals", "breaks"}:
        return as_value(text if text[0] in "[{" else f"[{text}]", "array")
    if key == "date_format":
        return strptime_format(text)
    if key in {"step", "max_contributions"}:
        return as_number(text)
    if key in {"top_code", "bottom_code", "missing_as"}:
        return as_limit(text, kind)
    return text

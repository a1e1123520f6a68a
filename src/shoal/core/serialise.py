"""Convert values to plain JSON and back, for manifests, checks and reports."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import Any

from shoal.core import Guarantee, KeptRule


def plain(value: Any) -> Any:
    """Convert a value of `core` to plain JSON values.

    A guarantee gets its name; an exact number becomes a number if it prints as one.
    """
    if isinstance(value, Fraction | Decimal | float):
        return _plain_number(value)
    if is_dataclass(value):
        named = {"name": value.name} if isinstance(value, Guarantee | KeptRule) else {}
        kept = [
            f
            for f in fields(value)
            if not f.metadata.get("omitted") or getattr(value, f.name) != f.default
        ]
        return {**named, **{f.name: plain(getattr(value, f.name)) for f in kept}}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


def _plain_number(value: Fraction | Decimal | float) -> int | float | str:
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    exact = Fraction(value)
    if exact.denominator == 1:
        return int(exact)
    return float(exact) if Fraction(repr(float(exact))) == exact else str(exact)


DEEPEST = 64
"""How deep lists and objects of a file may nest; ours nest less than ten deep."""


def parse_json(raw: bytes) -> Any:
    """Read JSON from an untrusted file.

    Every reader must see the same thing in it. So duplicate keys, numbers that JSON does not have,
    unpaired surrogates and too deep nesting are refused.

    Raises:
        ValueError: it is not such JSON.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_once, parse_float=_finite, parse_constant=_none
        )
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("The JSON text is nested too deeply.") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [item for container in level for item in _inside(container)]
        if not level:
            return value
    raise ValueError("The JSON text is nested too deeply.")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("An object of the JSON text has the same key twice.")
    return members


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _none(text)


def _none(text: str) -> float:
    raise ValueError(f"{text[:20]} is not a JSON number.")

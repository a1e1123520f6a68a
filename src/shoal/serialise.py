"""Nouns as plain JSON values: the one serialiser of manifests, checks and reports."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import Any

from shoal.core import Guarantee


def plain(value: Any) -> Any:
    """Write a noun as plain JSON values: the one serialiser of manifests and reports.

    A guarantee gets its name, an exact number is a number where it prints as one.
    """
    if isinstance(value, Fraction | Decimal | float):
        return _plain_number(value)
    if is_dataclass(value):
        named = {"name": value.name} if isinstance(value, Guarantee) else {}
        return {**named, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
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

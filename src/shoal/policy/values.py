"""Types of the values in policies and parameters, as pydantic reads them.

Categories are held in their composed normal form (NFC), in which `shoal.io.validate` reads cells:
two that look the same are one.
"""

import unicodedata
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from shoal.core import Discover
from shoal.errors import did_you_mean


def _text(value: object) -> object:
    """Write a category as a CSV file would hold it, in Unicode normal form C."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if isinstance(value, int | Decimal | date) else value
    return unicodedata.normalize("NFC", text) if isinstance(text, str) else text


def _number(value: object) -> object:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def accept_discover(value: object) -> object:
    """Let a strict model accept the word for what is to be found, and leave other values alone."""
    return Discover.DISCOVER if value == Discover.DISCOVER.value else value


def choice(*kinds: type[StrEnum]) -> BeforeValidator:
    """Let a strict model accept enumerations' values as text, and name the choices if wrong."""
    members = {member.value: member for kind in kinds for member in kind}

    def convert(value: object) -> object:
        if not isinstance(value, str) or value not in members:
            guess = did_you_mean(str(value), members)
            fail(f"expected one of {', '.join(members)}, found '{value}'.{guess}")
        return members[str(value)]

    return BeforeValidator(convert, json_schema_input_type=reduce(or_, kinds))


Category = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int | bool)]
Number = Annotated[Decimal, BeforeValidator(_number, json_schema_input_type=float)]


MOST = 10**9
"""Sizes, counts and ratios beyond this are slips: no table is so long."""
Size = Annotated[int, Field(ge=2, le=MOST)]
Epsilon = Annotated[Number, Field(gt=0, ge=Decimal("1e-9"), le=Decimal("1e9"))]
Share = Annotated[Number, Field(gt=0, le=1)]
"""A probability that is a limit."""
Delta = Annotated[Number, Field(ge=Decimal("1e-30"), le=Decimal("0.001"))]
LARGEST = Decimal("1e150")
"""Bounds beyond this are refused: their squares would overflow."""


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


ColumnNames = Annotated[
    list[str], BeforeValidator(_names, json_schema_input_type=str | list[str]), Field(min_length=1)
]


def fail(text: str, *field: str | int) -> None:
    """Refuse a value in our own words, which `misfits` shows as they are.

    The field is what of the checked table they are about, by keys and numbers.
    """
    # Braces would be read as a template.
    raise PydanticCustomError("shoal", "{text}", {"text": text, "field": field})

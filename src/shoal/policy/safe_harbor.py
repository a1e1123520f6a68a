"""Draft the fields of the Safe Harbor list: 45 CFR 164.514(b)(2).

Of the 18 kinds, those that lead to a person are dropped by any draft (`recognise`). This module has
those that only the rule asks for: places below the state, dates to the year, and high ages.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from shoal.core import Kind, Role
from shoal.io.text_files import quote
from shoal.policy.column_values import ColumnValues
from shoal.policy.guess import Guess, Nature, guess_dropped
from shoal.policy.recognise import meanings

TEMPLATE = "safe-harbor"
RESTRICTED = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878",
    "879", "884", "890", "893",
)  # fmt: skip
"""Three-digit ZIP codes in which 20,000 people or fewer live, by the Census of 2000."""
OLDEST = 90
"""Ages over 89 are one category."""
_ZIP = r"^\s*\d{5}([- ]?\d{4})?\s*$"
REMARKS = (
    (
        "Safe Harbor fields: names, contacts, numbers, codes, addresses, places below the state "
        "and free text are dropped, of persons and of their relatives, employers and household "
        "members; ZIP codes keep three digits, and those in which 20,000 people or fewer live, by "
        "the Census of 2000, become 000 (state your own list in 'recode'); dates become years; "
        "ages over 89 become 90, and years that show such an age become one."
    ),
    (
        "That is not a determination under 45 CFR 164.514: whether something that is left could "
        "identify somebody, of which you have actual knowledge, is a person's judgement. Text, "
        "pictures and codes that were not recognised are for you to find."
    ),
)
"""What a draft by this template says."""


def draft_safe_harbor(
    values: Mapping[str, ColumnValues], guesses: Mapping[str, Guess], year: int | None = None
) -> dict[str, Guess]:
    """Coarsen or drop the columns on the list, 45 CFR 164.514(b)(2)(i).

    `year` is that of the release, by default the current one.
    """
    year = datetime.now(UTC).year if year is None else year
    return {
        name: made
        if made.role is Role.IDENTIFIER
        else _field(values[name], made, meanings(name), year - OLDEST)
        for name, made in guesses.items()
    }


def _field(values: ColumnValues, made: Guess, means: frozenset[str], first: int) -> Guess:
    """Apply the list to one column; `first` is the last year of birth of people aged 90."""
    if "postal" in means:
        return _postal(values, made)
    if reason := _reason_to_drop(values, made, means):
        return guess_dropped(reason)
    if values.is_period:
        plain = replace(made, kind=Kind.NOMINAL, categories=())
        return _code(plain, "dates to the year", prefix="4")
    if made.kind is Kind.DATE:
        return _code(made, "dates to the year", date_step='"year"', bottom_code=f"{first}-01-01")
    return _number(made, means, first) if made.kind is Kind.NUMERIC else made


def _number(made: Guess, means: frozenset[str], first: int) -> Guess:
    if "age" in means:
        return _code(made, f"ages over 89 are {OLDEST}", top_code=str(OLDEST))
    if made.nature is Nature.BIRTH or "year" in means:
        return _code(made, "years that show an age over 89 are one", bottom_code=str(first))
    return made


def _reason_to_drop(values: ColumnValues, made: Guess, means: frozenset[str]) -> str:
    """Give the reason why the list drops a column, if it does."""
    if means & {"below_state", "employer"} or made.nature is Nature.COORDINATE:
        return "it may show a place below the state, or an employer"
    if made.kind in {Kind.NUMERIC, Kind.DATE} or values.is_period:
        return ""
    if "calendar" in means and values.distinct > 1:
        return "a part of a date beside its year"
    ages = re.findall(r"\d+", " ".join(values.text)) if "age" in means else ()
    return "its categories tell ages over 89 apart" if any(int(a) > OLDEST for a in ages) else ""


def _postal(values: ColumnValues, made: Guess) -> Guess:
    if not values.text.str.contains(_ZIP).all():
        return guess_dropped(
            "it may show a place below the state; ZIP codes of five digits are kept"
        )
    zeros = ", ".join(f'{quote(code)} = "000"' for code in RESTRICTED)
    plain = replace(made, role=Role.QUASI_IDENTIFIER, kind=Kind.NOMINAL, categories=(), step=None)
    return _code(plain, "ZIP codes to three digits", prefix="3", recode=f"{{ {zeros} }}")


def _code(made: Guess, reason: str, **coding: str) -> Guess:
    return replace(made.because(f"; {reason}"), coding={**made.coding, **coding})

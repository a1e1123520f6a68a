"""Draft a policy from a look at the table: guesses for a steward to correct.

Roles and kinds are guessed from names and values, each with the reason beside it. Bounds are
left for the steward to state, because limits read off the data are not public. Categories are
copied, marked `observed = true`, for the steward to confirm.
"""

import re
from dataclasses import dataclass, replace

import polars as pl

from shoal import policy
from shoal.core import Kind, Role
from shoal.errors import InputError, visible
from shoal.io.raw import Raw
from shoal.io.text_files import quoted
from shoal.io.validate import composed, is_plain, parse_numbers

MOST_CATEGORIES = 50
"""Above this many distinct values, categories are not copied."""

_IDENTIFIER = (
    "id", "ids", "name", "names", "surname", "firstname", "lastname", "ssn", "nino", "email",
    "phone", "mobile", "address", "person", "patient", "passport", "iban", "account",
    "household", "number", "nr", "no",
)  # fmt: skip
"""Whole words of a column's name that read like an identifier."""
_CONFIDENTIAL = (
    "income", "salary", "wage", "tax", "revenue", "earn", "wealth", "debt", "condition",
    "diagnos", "disease", "illness", "icd", "health", "drug", "religion", "vote", "offence",
    "gain", "loss", "score",
)  # fmt: skip
"""Beginnings of words that read confidential."""
_QUASI = (
    "age", "sex", "gender", "birth", "region", "district", "zip", "post", "city", "town",
    "county", "state", "country", "nation", "race", "ethnic", "education", "school", "marital",
    "married", "relationship", "family", "occupation", "job", "work", "hours",
)  # fmt: skip
"""Beginnings of words that others may know about a person."""


@dataclass(frozen=True)
class Guess:
    """What was made of a column, and why."""

    role: Role
    kind: Kind
    reason: str
    categories: tuple[str, ...] = ()
    flag: str = ""


UNREADABLE = Guess(Role.IDENTIFIER, Kind.NOMINAL, "its cells are not plain values")


def draft(raw: Raw, *, source: str) -> str:
    """Write a commented policy for a table, as TOML text; the source is named in its heading.

    It loads as it is, and protects with MDAV at k = 5; every line of it is the steward's to check.
    """
    frame = raw.frame
    if frame.height == 0:
        raise InputError("The table has a header but no rows; expected one row per person.")
    lines = [
        f"# Drafted by `shoal init` from {visible(source)}: {frame.height:,} rows.",
        "# Every role and kind below is a guess. Read each line and correct it.",
        "# Roles: identifier (dropped), quasi-identifier (an attacker may know it),",
        "#        confidential (must not be learnt), other (released as it is).",
        "version = 1",
        "# Say whose rows these are, or every promise about persons is conditional on it. Either",
        "# each person has one row, and you say so here:",
        "# one_row_per_person = true",
        "# or a column numbers the persons: add privacy_unit = true; persons are counted then.",
        "",
        "[columns]",
    ]
    flags: set[str] = set()
    for series in frame:
        made = guess(series) if is_plain(series.dtype) else UNREADABLE
        lines += _lines(series, replace(made, flag="") if made.flag in flags else made)
        flags.add(made.flag)
    lines += [
        *_reading(raw),
        "",
        "[protect]",
        'method = "mdav"  # `shoal methods` lists the others',
        "k = 5",
        "",
        "[require]  # or nothing is written",
        "k-anonymity = 5",
    ]
    text = "\n".join(lines) + "\n"
    policy.loads(text, where="the drafted policy")
    return text


def _reading(raw: Raw) -> list[str]:
    """Write down how a text file was read, so that nothing about it is guessed again."""
    if not raw.reading:
        return []
    present = (series.drop_nulls() for series in raw.frame if series.dtype == pl.String)
    numbers = [text for text in present if _kind(text, 0)[0] is Kind.NUMERIC]
    marks = (
        mark
        for mark in (".", ",")
        if not any(parse_numbers(text, decimal=mark).null_count() for text in numbers)
    )
    stated = {**raw.reading, "decimal": next(marks, None)}
    return [
        "",
        "[reading]  # how the file is written",
        *(f"{key} = {quoted(mark)}" for key, mark in stated.items() if mark is not None),
    ]


def guess(series: pl.Series) -> Guess:
    """Guess role and kind of a column from its name and its values."""
    words = [word for word in re.split(r"[\W_\d]+", series.name.lower()) if word]
    present = series.drop_nulls()
    distinct = present.n_unique()
    kind, categories = _kind(present, distinct)
    if any(word in _IDENTIFIER for word in words):
        reason = "its name reads like an identifier"
        if distinct > 1:
            more = " (and max_contributions, for an epsilon)" if distinct < present.len() else ""
            reason += f"; if it numbers the persons, add privacy_unit = true{more}"
        return Guess(Role.IDENTIFIER, kind, reason)
    if kind is Kind.NOMINAL and present.len() >= 10 and distinct > 0.9 * present.len():
        return Guess(Role.IDENTIFIER, kind, "nearly every value occurs once")
    if any(word.endswith(("weight", "wgt")) for word in words):
        return Guess(
            Role.OTHER, kind, "its name reads like a sampling weight", flag="sampling_weight"
        )
    if any(word.startswith(_CONFIDENTIAL) for word in words):
        return Guess(Role.CONFIDENTIAL, kind, "its name reads confidential", categories)
    if any(word.startswith(_QUASI) for word in words):
        return Guess(Role.QUASI_IDENTIFIER, kind, "others may know it", categories)
    reason = "not recognised, so taken as known to an attacker"
    return Guess(Role.QUASI_IDENTIFIER, kind, reason, categories)


def _kind(present: pl.Series, distinct: int) -> tuple[Kind, tuple[str, ...]]:
    if present.dtype.is_numeric():
        return Kind.NUMERIC, ()
    if isinstance(present.dtype, pl.Date | pl.Datetime):
        return Kind.DATE, ()
    text = composed(present.cast(pl.String))
    if text.len() and parse_numbers(text, decimal=None).null_count() == 0:
        return Kind.NUMERIC, ()
    if text.len() and text.str.to_date("%Y-%m-%d", strict=False).null_count() == 0:
        return Kind.DATE, ()
    few = 0 < distinct <= MOST_CATEGORIES
    return Kind.NOMINAL, tuple(sorted(text.unique().to_list())) if few else ()


def _lines(series: pl.Series, made: Guess) -> list[str]:
    counts = f"{series.null_count():,} missing"
    if is_plain(series.dtype):
        counts += f", {series.drop_nulls().n_unique():,} distinct"
    lines = [f"# {visible(series.name)}: {counts}; {made.reason}."]
    if made.kind in {Kind.NUMERIC, Kind.DATE} and made.role is not Role.IDENTIFIER:
        lines.append("#   State its public limits: bounds = [low, high]")
    if made.kind is Kind.NOMINAL and made.role is not Role.IDENTIFIER:
        advice = "confirm that these categories are public" if made.categories else (
            "name a hierarchy or the categories"
        )  # fmt: skip
        lines.append(f'#   Nominal: {advice}; if they have an order, say kind = "ordinal".')
    fields = [f'role = "{made.role}"']
    if made.role is not Role.IDENTIFIER:
        fields.append(f'kind = "{made.kind}"')
    if made.flag and made.kind is Kind.NUMERIC:
        fields.append(f"{made.flag} = true")
    if made.categories:
        fields.append(f"categories = [{', '.join(map(quoted, made.categories))}]")
        fields.append("observed = true")
    value = f'"{made.role}"' if len(fields) == 1 else f"{{ {', '.join(fields)} }}"
    return [*lines, f"{quoted(series.name)} = {value}"]

"""Recognise the role and kind of each column of an unknown table, with a reason.

The evidence, strongest first: what the values are (`content`), how columns depend on each other
(`structure`), what the file says of a column (labels, measurement levels, an order of its
categories), and its name (`column_words.toml`). In doubt a column is protected or left out: nothing
is released as it is for want of a better guess, text that nothing recognises is dropped, and no
code is taken for a number. The guesses are the steward's to correct.
"""

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Kind, Role
from shoal.io.dates import in_words
from shoal.io.raw import Raw
from shoal.policy import structure
from shoal.policy.column_values import (
    FEW_ROWS,
    ColumnValues,
    all_values,
    find_order,
    is_count,
    is_smooth,
    join_spellings,
    words,
)
from shoal.policy.content import NAMES, identity
from shoal.policy.guess import AS_STATED, BY_COUNTS, UNKNOWN, Guess, NamedColumn, guess_dropped

MOST_CATEGORIES = 50
"""Above this many distinct values, categories are not copied."""
MOST_PERIODS = 600
"""The same for months and weeks: more than that are days."""
MOST_VALUES = 1000
"""Values of which there are more number something, or are too many for distances between them."""
NO_NAMES = frozenset({"scales", "missing", "sexes"})
"""Lists of `column_words.toml` that are not words of names."""
LIMITS = {"age": ("0", "120"), "hours": ("0", "168"), "percent": ("0", "100")}
"""Limits that everybody knows, by what a name means."""
AMOUNTS = frozenset({"quantity", "confidential", "percent", "sampling_weight", "weight"})
"""Meanings of names whose numbers are amounts."""
ISO = frozenset({"%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"})
"""Forms of dates that need no word in the policy."""
NUMBERED = re.compile(
    r"(?i)[a-z]{3,}(?<!pa)(?<!val)(?<!vo)(?<!gr)(?<!sol)(?<!flu)(?<!ro)(?<!cov)id$"
)
"""How a name ends that has an id joined to it: utilityid, and not farepaid."""
ENDS = re.compile(r"(?i)(nbr|number|nummer|num|nr|no|seq|id|key)\W*$")
"""How a name ends that numbers something, whatever it says before."""
JOINED = re.compile(
    r"(?i)^(u?subj|pat|cust|clt|cli|emp|mem|mbr|stud|pup|pers|part|resp|user|usr|vers|kd|kun|mitgl"
    r"|schue|borr|ins|pol|acct|hosp|chi|nhs|bene|enr|appl|tax|voter|rider|case)[a-z]{0,8}_?"
    r"(id|no|nr|num|nbr|nbr|key|number|ref)$"
)
"""A name of a person's number in one word: SUBJID, CUSTNO."""
LETTERS, SIGNS = r"[^\W\d_]+", r"[^\W_]+"
"""The words of a name, without and with digits."""
LONG = 9
"""From so many digits on, numbers of one length are serial numbers."""
MOST_UNKNOWN = 20
"""Texts that nothing recognises are dropped if there are more of them."""


def recognise(
    raw: Raw,
    *,
    values: Mapping[str, ColumnValues] | None = None,
    day_first: bool | None = None,
    roles: Mapping[str, Role] = MappingProxyType({}),
) -> dict[str, Guess]:
    """Guess role, kind and other keys for every column of a table, in order.

    Args:
        raw: the table.
        values: what its columns hold, if that is known already.
        day_first: whether dates have the day before the month, where their digits fit both.
        roles: as stated by the steward.
    """
    columns = _columns(raw, all_values(raw) if values is None else values, day_first)
    guesses = {
        name: _guess(columns[name])
        if name in columns
        else Guess(Role.IDENTIFIER, Kind.NOMINAL, "its cells are not plain values")
        for name in raw.frame.columns
    }
    for find in (*structure.FINDERS, *(() if roles else (structure.protect_something,))):
        guesses |= find(columns, guesses)
    return {
        name: _apply_role(columns[name], made, roles[name]) if name in roles else made
        for name, made in guesses.items()
    }


def _apply_role(column: NamedColumn, made: Guess, role: Role) -> Guess:
    """Return a guess with the role that the steward has stated."""
    if role is Role.IDENTIFIER or made.role is not Role.IDENTIFIER:
        return replace(made, role=role, reason=AS_STATED)
    kind, reason, more = _kind(column)
    why = f"{AS_STATED}; {reason}" if reason else AS_STATED
    return Guess(role, kind, why, missing=column.values.missing, nature=column.nature, **more)


def _columns(
    raw: Raw,
    values: Mapping[str, ColumnValues],
    day_first: bool | None,  # noqa: FBT001 (three-valued)
) -> dict[str, NamedColumn]:
    means = {}
    for name in values:
        own_meanings = meanings(name)
        label = raw.column_labels.get(name)
        means[name] = own_meanings if own_meanings - {"public"} or not label else meanings(label)
        means[name] |= {"sampling_weight"} if name in raw.weights else set()
    body = any("body" in meaning for meaning in means.values())
    day_first = _day_first(raw, values) if day_first is None else day_first
    return {
        name: NamedColumn(
            name, means[name], column, body, day_first, _describe_content(column, means[name])
        )
        for name, column in values.items()
    }


def _describe_content(values: ColumnValues, means: frozenset[str]) -> str:
    """Name the personal data in a column; place names may resemble names of people."""
    holds = identity(values)
    place = means & {"quasi", "code"} and not means & {"person", "direct", "named"}
    return "" if holds == NAMES and place and values.distinct <= FEW_ROWS else holds


def _day_first(raw: Raw, columns: Mapping[str, ColumnValues]) -> bool | None:
    """Whether days come before months, by a column with a day above 12, or by the delimiter."""
    for column in columns.values():
        forms = [f for f in column.date_forms if f.startswith(("%d/", "%m/", "%d-", "%m-"))]
        if len(forms) == 1:
            return forms[0].startswith("%d")
    return True if raw.reading.get("delimiter") == ";" else None


# Names


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {
        meaning: re.compile(
            " (?:"
            + "|".join(re.escape(word).replace(r"\*", r"\w*") for word in shlex.split(listed))
            + ")(?= )"
            + "".join(f"|{re.escape(word)}" for word in listed.split() if not word.isascii())
        )
        for meaning, listed in ((key, _without_marks(text)) for key, text in words().items())
        if meaning not in NO_NAMES
    }


def meanings(name: str) -> frozenset[str]:
    """Look up what the words of a column's name may mean: keys of `column_words.toml`.

    >>> sorted(meanings("PatientenNr"))
    ['body', 'number', 'person']
    """
    for letter, plain in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        name = name.replace(letter, plain).replace(letter.upper(), plain.title())
    plain = _without_marks(name)
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain).lower()
    spoken, written = (f" {' '.join(re.findall(part, plain))} " for part in (LETTERS, SIGNS))
    joined = frozenset({"person", "number"} if JOINED.search(name) else ())
    return joined | frozenset(
        meaning
        for meaning, pattern in _patterns().items()
        if pattern.search(spoken) or pattern.search(written)
    )


def _without_marks(text: str) -> str:
    """In its parts, without accents: names and the words for them alike, in any script."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(mark for mark in parts if not unicodedata.combining(mark))


# One column


def _guess(column: NamedColumn) -> Guess:
    """Guess a column by the first rule that applies."""
    for known in (
        _empty,
        _content,
        _serial,
        _guess_from_name,
        _household,
        _person,
        _guess_number,
        _weight,
        _text,
        _rows,
        _many,
    ):
        if (guess := known(column)) is not None:
            return guess
    kind, reason, more = _kind(column)
    role, why = _role(column, kind)
    limits = next((both for meaning, both in LIMITS.items() if meaning in column.means), ())
    return Guess(
        role,
        kind,
        f"{why}; {reason}" if reason else why,
        missing=column.values.missing,
        limits=limits if kind is Kind.NUMERIC else (),
        nature=column.nature,
        coding=_find_limits(column.values) if kind is Kind.NUMERIC else {},
        **more,
    )


def _find_limits(values: ColumnValues) -> dict[str, str]:
    """Code a column at the limits in its values, such as "<4.0", which makes them true values."""
    keys = ("bottom_code", "top_code")
    return {
        k: f"{limit:.15g}"
        for k, limit in zip(keys, values.limits, strict=True)
        if limit is not None
    }


def _empty(column: NamedColumn) -> Guess | None:
    return None if column.values.distinct else guess_dropped("the column is empty")


def _content(column: NamedColumn) -> Guess | None:
    """Guess columns with personal data by their content, however often values repeat."""
    if not column.holds:
        return None
    return _person(column) or guess_dropped(f"its values look like {column.holds}")


def _serial(column: NamedColumn) -> Guess | None:
    """Guess account or case numbers: long, and of equal length or too long for amounts."""
    values = column.values
    if not values.unbroken or column.means & AMOUNTS or values.distinct < 2 or values.date_forms:
        return None
    text = values.text.str.strip_chars()
    least = LONG if text.str.len_chars().n_unique() == 1 else LONG + 2
    if not text.str.contains(rf"^\d{{{least},}}$").all() or values.round_amounts:
        return None
    reason = f"numbers of {least} digits or more"
    return _household(column) or _person(column) or guess_dropped(reason)


def _guess_from_name(column: NamedColumn) -> Guess | None:
    """Guess names and addresses by the column's name, unless many rows share a value."""
    values, means = column.values, column.means
    if not means & {"direct", "named"} or column.counted or values.distinct <= 2 < values.present:
        return None
    if means & {"quasi", "code"} and values.distinct < 0.2 * values.present:
        return None
    return guess_dropped("its name reads like one that names a person")


def _is_number(column: NamedColumn) -> bool:
    """Whether a column has identifying numbers: whole numbers or texts, by its name."""
    values = column.values
    named = "number" in column.means or NUMBERED.search(column.name)
    return bool(named) and values.unbroken and values.distinct > 2


def _household(column: NamedColumn) -> Guess | None:
    values, means = column.values, column.means
    plain_number = values.whole and not means & {"quantity", "confidential", "code"}
    many = values.distinct > max(20, min(0.02 * values.present, MOST_VALUES))
    if "household" in means and (_is_number(column) or (plain_number and many)):
        return guess_dropped("the column numbers households", "household")
    return None


def _person(column: NamedColumn) -> Guess | None:
    values, means = column.values, column.means
    unbroken = means <= {"person"} and values.unbroken
    if "person" not in means or not (_is_number(column) or unbroken) or values.date_forms:
        return None
    many = values.distinct > max(20, min(0.01 * values.present, MOST_VALUES))
    if many or values.names_rows:
        return guess_dropped("the column numbers persons", "privacy_unit")
    return None


def _guess_number(column: NamedColumn) -> Guess | None:
    values, means = column.values, column.means
    if not _is_number(column) or (column.counted and not ENDS.search(column.name)):
        return None
    if values.distinct <= 0.5 * values.present and means & {"quasi", "code"}:
        return None  # it numbers places or things
    if values.distinct > min(10, 0.1 * values.present):
        return guess_dropped("its name reads like a number of records")
    return None


def _weight(column: NamedColumn) -> Guess | None:
    """Guess sampling weights by their range and the other columns, excluding body weights."""
    numbers = column.values.numbers
    if numbers is None or not column.means & {"sampling_weight", "weight"}:
        return None
    if "sampling_weight" not in column.means:
        usual = bool(numbers.is_between(0.3, 350).all())
        if usual and (column.beside_body or "confidential" in column.means):
            return None
    return guess_dropped(
        "a sampling weight, left out because a rare weight singles somebody out",
        advice='to release the mean of each class, write { role = "other", kind = "numeric", '
        "sampling_weight = true, class_mean = true }",
    )


def _text(column: NamedColumn) -> Guess | None:
    """Guess free text, times of day, and texts that are nearly unique."""
    values, means = column.values, column.means
    text = values.text
    if values.numbers is not None or values.values.dtype not in {pl.String, pl.Time}:
        return None
    if values.date_forms or values.ordered or values.is_period:
        return None
    if text.str.contains(r"^\s*[-+]?\d{1,3}([.,' ]\d{3})+([.,]\d+)?\s*$").all():
        return guess_dropped(
            "its numbers have marks that may separate thousands or decimals",
            advice='to keep it, state decimal = "." or "," under [reading], and kind = "numeric"',
        )
    if text.str.contains(r"^\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*$").all():
        return guess_dropped(
            "times of day, which single people out and have no kind in Shoal; write hours as whole "
            "numbers to keep them"
        )
    if values.distinct > 20 and ("text" in means or text.str.count_matches(r"\s").mean() > 4):  # type: ignore[operator]
        return guess_dropped("free text, which may name people")
    return guess_dropped("nearly every value occurs once") if values.names_rows else None


def _many(column: NamedColumn) -> Guess | None:
    """Guess texts and codes with many values, which may be names or single out people."""
    values, known = column.values, {"quasi", "confidential", "code", "public", "calendar"}
    most = max(MOST_CATEGORIES, min(0.05 * values.present, MOST_VALUES))
    if not column.means & known and values.values.dtype == pl.String and values.numbers is None:
        most = MOST_UNKNOWN
    many = values.distinct > most
    if not many or _kind(column)[0] is not Kind.NOMINAL:
        return None
    if not column.means & known:
        return guess_dropped(f"{UNKNOWN}, and it has many different values")
    if "confidential" in column.means and values.distinct <= 0.3 * values.present:
        return None
    few = values.distinct <= MOST_VALUES
    if few and values.counts.median() >= 5:  # type: ignore[operator]
        return None
    return guess_dropped(
        "most of its values are rare" if few else f"it has more than {MOST_VALUES:,} values",
        advice="to keep it, name a hierarchy that joins them (`shoal hierarchy codes`)",
    )


def _rows(column: NamedColumn) -> Guess | None:
    """Guess row numbers: all different whole numbers, dense, sorted or of equal length."""
    values, known = column.values, {"quantity", "confidential", "quasi"}
    numbers = values.numbers
    if numbers is None or not values.whole or not values.names_rows or column.means & known:
        return None
    if values.present < 20 or values.measure == "scale" or values.date_forms:
        return None
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    steps = np.linspace(low, high, values.distinct)
    even = np.abs(numbers.sort().to_numpy() - steps).max() < 0.1 * (high - low)
    apart = values.distinct == values.present >= 200 and even
    as_long = low >= 1000 and values.text.str.len_chars().n_unique() == 1
    if apart or as_long or high - low < 3 * values.present or values.sorted_in_file:
        return guess_dropped("whole numbers that are all different")
    return None


def _role(column: NamedColumn, kind: Kind) -> tuple[Role, str]:
    """Guess the role of a column; if its name suggests two, the more protective one."""
    means = column.means
    if column.values.constant and not means & {"confidential", "direct", "named"}:
        return Role.OTHER, "all rows have the same value"
    if "public" in means and column.values.distinct <= 20 and not means & {"quasi", "confidential"}:
        return Role.OTHER, "its name reads like a part of the survey, not of a person"
    amount = kind is Kind.NUMERIC and "quantity" in means and not means & {"age", "birth"}
    learnt = kind is not Kind.DATE and not _is_number(column)
    if "confidential" in means and (amount or "quasi" not in means) and learnt:
        return Role.CONFIDENTIAL, "its name reads confidential"
    if "quasi" in means or kind is Kind.DATE:
        return Role.QUASI_IDENTIFIER, "others may know it"
    if kind is Kind.NUMERIC and column.is_amount and not column.is_coordinate:
        return Role.CONFIDENTIAL, f"{UNKNOWN}, but an amount or a measurement"
    return Role.QUASI_IDENTIFIER, f"{UNKNOWN}, so taken as known to an attacker"


def _kind(column: NamedColumn) -> tuple[Kind, str, dict[str, Any]]:
    """Guess the kind of a column, a reason if worth saying, and other keys of the policy."""
    values = column.values
    if isinstance(values.values.dtype, pl.Date | pl.Datetime):
        return Kind.DATE, "", {}
    if not values.ordered and values.date_forms:
        # Births lie in the past, and so do their two-digit years.
        ends = f" until {datetime.now(UTC).year}" if column.is_birth else ""
        forms = [
            form.partition(" until ")[0] + ends if "%y" in form and ends else form
            for form in values.date_forms
        ]
        return _date(forms, column.day_first)
    reason = "" if values.numbers is None else _code(column)
    if reason is None:
        return Kind.NUMERIC, "whole numbers" if values.whole else "", {"step": values.decimals}
    ordered = find_order(values, calendar="calendar" in column.means)
    most = MOST_PERIODS if values.is_period else MOST_CATEGORIES
    if ordered is not None and len(ordered) <= most:
        return Kind.ORDINAL, "its values have an order", {"categories": ordered}
    spellings = join_spellings(values)
    categories = values.text.filter(~values.text.is_in([*spellings])).unique().sort()
    few = categories.len() <= MOST_CATEGORIES
    return Kind.NOMINAL, reason, {
        "categories": tuple(categories) if few else (), "spellings": spellings if few else {}
    }  # fmt: skip


def _date(forms: Sequence[str], day_first: bool | None) -> tuple[Kind, str, dict[str, Any]]:  # noqa: FBT001 (three-valued)
    form, question = forms[0], ""
    left: tuple[str, ...] = ()
    by_day = [f for f in forms if f.startswith("%d")]
    by_month = [f for f in forms if f.startswith("%m")]
    if by_day and by_month:
        form, other = (by_month[0], by_day[0]) if day_first is False else (by_day[0], by_month[0])
        if day_first is None:
            left = (form, other)
            question = "Every date fits {} and {}. Which one is it?".format(*map(in_words, left))
    stated = None if form in ISO else form
    reason = f"dates written as {in_words(stated)}" if stated else ""
    return Kind.DATE, reason, {"date_format": stated, "question": question, "forms": left}


def _code(column: NamedColumn) -> str | None:
    """Say why numbers are taken for codes; empty if they are numbers."""
    values = column.values
    if values.labels and set(values.text) <= values.labels.keys() and values.measure != "scale":
        return "its values have labels"
    if values.measure in {"nominal", "ordinal"}:
        return f"the file says that it is {values.measure}"
    if values.measure == "scale":
        return None
    if not values.whole:
        known = values.unbroken or (column.few_codes and not column.means & AMOUNTS)
        return "codes, by how they are written" if known else None
    if values.values.dtype == pl.String and values.text.str.contains(r"^\s*0\d").any():
        return "codes: some begin with 0"
    return _code_by_name(column) if column.means else _code_by_shape(column)


def _code_by_name(column: NamedColumn) -> str | None:
    values, means = column.values, column.means
    numbers = values.numbers
    month = "calendar" in means and numbers is not None and bool(numbers.is_between(0, 31).all())
    if "code" in means or month:
        return "its name reads like a code"
    money = "confidential" in means and not means & {"age", "hours", "percent"}
    bands = "age" in means and numbers is not None and numbers.min() == 1
    if "quantity" in means and not (column.few_codes and (money or bands)):
        return None
    if "year" in means and not column.few_codes:
        return None
    if "quasi" in means and values.distinct < values.present / 2:
        return "its name reads like a code"
    if "confidential" in means and not column.few_codes:
        return None
    return _code_by_shape(column)


def _code_by_shape(column: NamedColumn) -> str | None:
    values = column.values
    numbers = values.numbers
    if numbers is not None and values.distinct > 10 and numbers.is_between(1880, 2035).all():
        return None  # years
    if is_count(values) or values.limits != (None, None):
        return None
    if column.few_codes or not is_smooth(values):
        return BY_COUNTS
    lengths = values.text.str.strip_chars().str.len_chars()
    if lengths.n_unique() == 1 and lengths[0] >= 3 and values.present >= FEW_ROWS:
        return "codes: all have the same number of digits"
    return None

"""Recognise what the columns of an unknown table are, with a reason for each guess.

A guess reads the column's name (`column_words.toml` holds the words of six languages), its values,
and what the file says of it: labels, measurement levels, an order of its categories. In doubt a
column is protected or left out; nothing is released as it is for want of a better guess, and no
code is taken for a number. The guesses are the steward's to correct.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Kind, Role
from shoal.io.dates import in_words
from shoal.io.raw import Raw
from shoal.io.validate import is_plain, parse_numbers
from shoal.policy.column_values import (
    FEW_ROWS,
    NEARLY_ALL,
    ColumnValues,
    all_values,
    is_smooth,
    stated_order,
    words,
)

MOST_CATEGORIES = 50
"""Above this many distinct values, categories are not copied."""
MOST_VALUES = 1000
"""Values of which there are more number something, or are too many for distances between them."""
NO_NAMES = frozenset({"scales", "missing"})
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
UNKNOWN = "not recognised"
"""How the reason begins of a column whose name says nothing."""


@dataclass(frozen=True)
class Guess:
    """What a column is taken for, and why.

    Attributes:
        role: what an attacker may do with it.
        kind: which arithmetic it allows.
        reason: why, as a part of a sentence.
        categories: its values where they are few; in order for an ordinal.
        flags: keys of the policy that become true.
        date_format: where dates are not written as 2023-09-17.
        missing: cells that mean missing.
        step: 1 where all numbers are whole.
        limits: bounds that are public knowledge, as an example.
        question: what only the steward can answer, as a sentence.
        forms: the formats that a question about dates leaves open, the guess first.
        advice: how a policy keeps a column that is left out, as a part of a sentence.
    """

    role: Role
    kind: Kind
    reason: str
    categories: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    date_format: str | None = None
    missing: tuple[str, ...] = ()
    step: int | None = None
    limits: tuple[str, ...] = ()
    question: str = ""
    forms: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True, eq=False)
class _Column:
    """A column with what its name may mean, and what the others of the table say about it."""

    name: str
    means: frozenset[str]
    values: ColumnValues
    beside_body: bool
    day_first: bool | None

    @property
    def counted(self) -> bool:
        return "quantity" in self.means and self.values.numbers is not None

    @property
    def few_codes(self) -> bool:
        values = self.values
        few = values.distinct <= 10 and values.present > 2 * values.distinct
        return few and not (values.round_amounts and "quantity" in self.means)


def recognise(
    raw: Raw,
    *,
    values: Mapping[str, ColumnValues] | None = None,
    day_first: bool | None = None,
) -> dict[str, Guess]:
    """Guess role, kind and the rest for every column of a table, in order.

    Args:
        raw: the table.
        values: what its columns hold, if that is known already.
        day_first: whether dates have the day before the month, where their digits fit both.
    """
    columns = _columns(raw, all_values(raw) if values is None else values, day_first)
    guesses = {
        name: _guess(columns[name])
        if name in columns
        else Guess(Role.IDENTIFIER, Kind.NOMINAL, "its cells are not plain values")
        for name in raw.frame.columns
    }
    guesses = _with_copies(raw.frame, _with_units(columns, guesses))
    return _something_protected(_with_sums(columns, guesses))


def _columns(
    raw: Raw,
    values: Mapping[str, ColumnValues],
    day_first: bool | None,  # noqa: FBT001 (three-valued)
) -> dict[str, _Column]:
    means = {}
    for name in values:
        own = meanings(name)
        label = raw.column_labels.get(name)
        means[name] = own if own - {"public"} or not label else meanings(label)
    body = any("body" in meant for meant in means.values())
    day_first = _day_first(raw, values) if day_first is None else day_first
    return {name: _Column(name, means[name], values[name], body, day_first) for name in values}


def _day_first(raw: Raw, columns: Mapping[str, ColumnValues]) -> bool | None:
    """Whether days come before months: as a column shows that has a day above 12, or the marks."""
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
        )
        for meaning, listed in words().items()
        if meaning not in NO_NAMES
    }


def meanings(name: str) -> frozenset[str]:
    """What the words of a column's name may mean: the keys of `column_words.toml`.

    >>> sorted(meanings("PatientenNr"))
    ['body', 'number', 'person']
    """
    for letter, plain in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        name = name.replace(letter, plain).replace(letter.upper(), plain.title())
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain).lower()
    spoken = f" {' '.join(re.findall(r'[a-z]+', plain))} "
    whole = f" {' '.join(re.findall(r'[a-z0-9]+', plain.replace('_', ' ')))} "
    return frozenset(
        meaning
        for meaning, pattern in _patterns().items()
        if pattern.search(spoken) or pattern.search(whole)
    )


# One column


def _guess(column: _Column) -> Guess:
    """The first recogniser that knows a column decides."""
    for known in (_empty, _named, _household, _person, _numbered, _weight, _text, _rows, _many):
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
        **more,
    )


def _dropped(reason: str, *flags: str, advice: str = "") -> Guess:
    return Guess(Role.IDENTIFIER, Kind.NOMINAL, reason, flags=flags, advice=advice)


def _empty(column: _Column) -> Guess | None:
    return None if column.values.distinct else _dropped("the column is empty")


def _named(column: _Column) -> Guess | None:
    """A name or an address; a place or a product has one too, which many rows share."""
    values, means = column.values, column.means
    if not means & {"direct", "named"} or column.counted or values.distinct <= 2 < values.present:
        return None
    if means & {"quasi", "code"} and values.distinct < 0.2 * values.present:
        return None
    return _dropped("its name reads like one that names a person")


def _is_number(column: _Column) -> bool:
    """Whether a column numbers something: whole numbers or texts, by its name."""
    values = column.values
    named = "number" in column.means or NUMBERED.search(column.name)
    return bool(named) and values.unbroken and values.distinct > 2


def _household(column: _Column) -> Guess | None:
    values, means = column.values, column.means
    alone = values.whole and not means & {"quantity", "confidential", "code"}
    many = values.distinct > max(20, min(0.02 * values.present, MOST_VALUES))
    if "household" in means and (_is_number(column) or (alone and many)):
        return _dropped("the column numbers households", "household")
    return None


def _person(column: _Column) -> Guess | None:
    values, means = column.values, column.means
    alone = means <= {"person"} and values.unbroken
    if "person" not in means or not (_is_number(column) or alone) or values.date_forms:
        return None
    many = values.distinct > max(20, min(0.01 * values.present, MOST_VALUES))
    if many or values.names_rows:
        return _dropped("the column numbers persons", "privacy_unit")
    return None


def _numbered(column: _Column) -> Guess | None:
    values, means = column.values, column.means
    if not _is_number(column) or (column.counted and not ENDS.search(column.name)):
        return None
    if values.distinct <= 0.5 * values.present and means & {"quasi", "code"}:
        return None  # it numbers places or things
    if values.distinct > min(10, 0.1 * values.present):
        return _dropped("its name reads like a number of records")
    return None


def _weight(column: _Column) -> Guess | None:
    """A sampling weight, or what may be one: not a body's weight by its range and its company."""
    numbers = column.values.numbers
    if numbers is None or not column.means & {"sampling_weight", "weight"}:
        return None
    if "sampling_weight" not in column.means:
        usual = bool(numbers.is_between(0.3, 350).all())
        if usual and (column.beside_body or "confidential" in column.means):
            return None
    return _dropped(
        "a sampling weight, left out because a rare weight singles somebody out",
        advice='to release it as it is, write { role = "other", kind = "numeric", '
        "sampling_weight = true }",
    )


def _text(column: _Column) -> Guess | None:
    """Free text, times of day, and texts of which nearly every row has one of its own."""
    values, means = column.values, column.means
    text = values.text
    if values.numbers is not None or values.values.dtype not in {pl.String, pl.Time}:
        return None
    if values.date_forms or values.ordered:
        return None
    if text.str.contains(r"^\s*[-+]?\d{1,3}([.,' ]\d{3})+([.,]\d+)?\s*$").all():
        return _dropped(
            "its numbers have marks that may separate thousands or decimals",
            advice='to keep it, state decimal = "." or "," under [reading], and kind = "numeric"',
        )
    if text.str.contains(r"^\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*$").all():
        return _dropped("times of day, which single people out and have no kind in Shoal; write "
                        "hours as whole numbers to keep them")  # fmt: skip
    if values.distinct > 20 and ("text" in means or text.str.count_matches(r"\s").mean() > 4):  # type: ignore[operator]
        return _dropped("free text, which may name people")
    return _dropped("nearly every value occurs once") if values.names_rows else None


def _many(column: _Column) -> Guess | None:
    """Texts and codes of which there are many: they may be names, or single people out."""
    values, known = column.values, {"quasi", "confidential", "code", "public", "calendar"}
    most = max(MOST_CATEGORIES, min(0.05 * values.present, MOST_VALUES))
    many = values.distinct > most
    if not many or _kind(column)[0] is not Kind.NOMINAL:
        return None
    if not column.means & known:
        return _dropped(f"{UNKNOWN}, and it has many different values")
    if "confidential" in column.means:
        return None
    few = values.distinct <= MOST_VALUES
    if few and values.counts.median() >= 5:  # type: ignore[operator]
        return None
    return _dropped(
        "most of its values are rare" if few else f"it has more than {MOST_VALUES:,} values",
        advice="to keep it, name a hierarchy that joins them (`shoal hierarchy codes`)",
    )


def _rows(column: _Column) -> Guess | None:
    """Whole numbers that number the rows: all different, and dense, sorted or equally long."""
    values, known = column.values, {"quantity", "confidential", "quasi"}
    numbers = values.numbers
    if numbers is None or not values.whole or not values.names_rows or column.means & known:
        return None
    if values.present < 20 or values.measure == "scale" or values.date_forms:
        return None
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    as_long = low >= 1000 and values.text.str.len_chars().n_unique() == 1
    if as_long or high - low < 3 * values.present or values.sorted_in_file:
        return _dropped("whole numbers that are all different")
    return None


def _role(column: _Column, kind: Kind) -> tuple[Role, str]:
    """The role of a column; where its name speaks for two, the one that protects it."""
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
    return Role.QUASI_IDENTIFIER, f"{UNKNOWN}, so taken as known to an attacker"


def _kind(column: _Column) -> tuple[Kind, str, dict[str, Any]]:
    """The kind of a column, the reason if worth saying, and what else the policy states."""
    values = column.values
    if isinstance(values.values.dtype, pl.Date | pl.Datetime):
        return Kind.DATE, "", {}
    if not values.ordered and (forms := values.date_forms):
        return _date(forms, column.day_first)
    reason = "" if values.numbers is None else _code(column)
    if reason is None:
        if not values.whole:
            return Kind.NUMERIC, "", {}
        return Kind.NUMERIC, "whole numbers", {"step": 1}
    ordered = stated_order(values, calendar="calendar" in column.means)
    if ordered is not None and len(ordered) <= MOST_CATEGORIES:
        return Kind.ORDINAL, "its values have an order", {"categories": ordered}
    categories = values.text.unique().sort()
    few = categories.len() <= MOST_CATEGORIES
    return Kind.NOMINAL, reason, {"categories": tuple(categories) if few else ()}


def _date(forms: Sequence[str], day_first: bool | None) -> tuple[Kind, str, dict[str, Any]]:  # noqa: FBT001 (three-valued)
    form, question = forms[0], ""
    left: tuple[str, ...] = ()
    by_day = [one for one in forms if one.startswith("%d")]
    by_month = [one for one in forms if one.startswith("%m")]
    if by_day and by_month:
        form, other = (by_month[0], by_day[0]) if day_first is False else (by_day[0], by_month[0])
        if day_first is None:
            left = (form, other)
            question = "Every date fits {} and {}. Which one is it?".format(*map(in_words, left))
    stated = None if form in ISO else form
    reason = f"dates written as {in_words(stated)}" if stated else ""
    return Kind.DATE, reason, {"date_format": stated, "question": question, "forms": left}


def _code(column: _Column) -> str | None:
    """Why numbers are taken for codes; nothing where they are numbers."""
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


def _code_by_name(column: _Column) -> str | None:
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


def _code_by_shape(column: _Column) -> str | None:
    values = column.values
    numbers = values.numbers
    if numbers is not None and values.distinct > 10 and numbers.is_between(1880, 2035).all():
        return None  # years
    if column.few_codes or not is_smooth(values):
        return "codes, by how often each occurs"
    lengths = values.text.str.strip_chars().str.len_chars()
    if lengths.n_unique() == 1 and lengths[0] >= 3 and values.present >= FEW_ROWS:
        return "codes: all have the same number of digits"
    return None


# Several columns together


def _with_units(columns: Mapping[str, _Column], guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Leave each flag to one column, and say of persons with several rows that they have them."""
    result, taken = dict(guesses), set[str]()
    for name, made in guesses.items():
        flags = tuple(flag for flag in made.flags if flag not in taken)
        taken.update(flags)
        result[name] = replace(made, flags=flags)
        if "privacy_unit" in flags:
            values = columns[name].values
            if values.distinct < values.present:
                result[name] = replace(
                    result[name],
                    reason=f"{made.reason}: {values.distinct:,} of them in {values.present:,} rows",
                    question=f"Does '{name}' number the persons? An epsilon also needs "
                    "max_contributions.",
                )
    return result


def _with_copies(frame: pl.DataFrame, guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Protect what is one-to-one with a quasi-identifier; drop unknown copies of an identifier.

    Columns that nearly number the rows are left out: an income and a name are one-to-one too.
    """
    result = dict(guesses)
    alike: dict[tuple[int, int], list[str]] = {}
    for name, dtype in frame.schema.items():
        distinct = frame[name].drop_nulls().n_unique() if is_plain(dtype) else 0
        if 2 < distinct <= NEARLY_ALL * frame.height:
            alike.setdefault((distinct, frame[name].null_count()), []).append(name)
    for names in alike.values():
        for one, two in chain(pairwise(names), pairwise(names[::-1])):
            role = _copied(result[one], result[two])
            if role is not None and _one_to_one(frame, one, two):
                note = f"{result[two].reason}; each value goes with one of '{one}'"
                result[two] = replace(result[two], role=role, reason=note)
    return result


def _copied(first: Guess, second: Guess) -> Role | None:
    """The role that the first of two equal columns lends to the second, if any."""
    exposed = second.role in {Role.CONFIDENTIAL, Role.OTHER}
    if first.role is Role.QUASI_IDENTIFIER and exposed:
        return Role.QUASI_IDENTIFIER
    unknown = second.reason.startswith(UNKNOWN) and second.role is not Role.IDENTIFIER
    return Role.IDENTIFIER if first.role is Role.IDENTIFIER and first.flags and unknown else None


def _one_to_one(frame: pl.DataFrame, one: str, two: str) -> bool:
    for part in (frame.select(one, two).head(2000), frame.select(one, two)):
        pairs = part.unique()
        if not pairs.height == pairs[one].n_unique() == pairs[two].n_unique():
            return False
    return True


def _with_sums(columns: Mapping[str, _Column], guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Say of a column that it is the sum of others."""
    names = [n for n, made in guesses.items() if made.kind is Kind.NUMERIC and n in columns][:40]
    cells = {name: _head(columns[name].values.cells) for name in names}
    cells = {name: numbers for name, numbers in cells.items() if np.unique(numbers).size > 5}
    result = dict(guesses)
    for total, parts in _sums(cells):
        note = f"{result[total].reason}; the sum of {', '.join(parts[:-1])} and {parts[-1]}"
        result[total] = replace(result[total], reason=note)
    return result


def _head(cells: pl.Series) -> NDArray[np.float64]:
    """The first cells as numbers; a missing one is not a number."""
    head = cells.head(5000)
    values = head if head.dtype.is_numeric() else parse_numbers(head.cast(pl.String), decimal=None)
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _sums(cells: Mapping[str, NDArray[np.float64]]) -> Iterator[tuple[str, list[str]]]:
    """Totals with their parts: any two columns, or up to nine that follow each other."""
    for total in cells:
        others = [name for name in cells if name != total]
        runs = (
            others[start:end]
            for start in range(len(others))
            for end in range(start + 3, min(start + 9, len(others)) + 1)
        )
        for parts in (*combinations(others, 2), *runs):
            if all(_adds_up(cells, total, parts, rows) for rows in (50, 5000)):
                yield total, list(parts)
                break


def _adds_up(
    cells: Mapping[str, NDArray[np.float64]], total: str, parts: Sequence[str], rows: int
) -> bool:
    added = np.sum([cells[part][:rows] for part in parts], axis=0)
    whole = cells[total][:rows]
    used = np.isfinite(added) & np.isfinite(whole)
    return used.sum() > FEW_ROWS and np.allclose(added[used], whole[used], atol=1e-6)


def _something_protected(guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Protect the confidential columns where nothing else can be protected."""
    if any(made.role is Role.QUASI_IDENTIFIER for made in guesses.values()):
        return dict(guesses)
    why = "and no column is one that others know, so it is protected itself"
    return {
        name: replace(made, role=Role.QUASI_IDENTIFIER, reason=f"{made.reason}, {why}")
        if made.role is Role.CONFIDENTIAL
        else made
        for name, made in guesses.items()
    }

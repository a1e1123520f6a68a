"""Draft a policy from an inspection of the table: guesses for a steward to correct.

`recognise` guesses what each column is; here the guesses become a commented policy. Bounds are left
for the steward to state, because limits read off the data are not public. Categories are copied,
marked `observed = true`, for the steward to confirm.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from shoal import io, policy
from shoal.core import Kind, Role
from shoal.errors import InputError, visible
from shoal.io.dates import ISO, in_words
from shoal.io.raw import Raw
from shoal.io.text_files import quoted
from shoal.io.validate import is_plain, parse_numbers
from shoal.policy.column_values import all_values
from shoal.policy.drafted import DraftedPolicy
from shoal.policy.guess import Guess
from shoal.policy.recognise import recognise

EMPTY = "The table has a header but no rows; expected one row per person."
LARGE = 100_000
"""From this many rows on, groups are made within blocks: the cost is then linear."""


def draft(
    data: Any,
    *,
    source: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    missing: Collection[str] = (),
    day_first: bool | None = None,
) -> DraftedPolicy:
    """Read a table and draft a commented policy for a steward to correct.

    It loads as it is, and protects with MDAV at k = 5; every line of it is the steward's to check.
    Categories in it are copied from the table, so it is as confidential as the table.

    Args:
        data: the path of a file, what `shoal.read` returned, or a pandas, Polars or PyArrow table.
        source: named in the heading; by default, the name of the file.
        delimiter: of a CSV file; found out where not given.
        encoding: of a CSV file; found out where not given.
        sheet: of an Excel workbook with several.
        decimal: the decimal mark of numbers in text, `.` or `,`; found out where not given.
        missing: cells that mean missing in every column, beside those that are recognised.
        day_first: whether dates have the day before the month, where their digits fit both.
    """
    if isinstance(data, str | Path):
        source = source or Path(data).name
        data = io.read(data, delimiter=delimiter, encoding=encoding, sheet=sheet)
    raw = io.from_native(data)
    if raw.frame.height == 0:
        raise InputError(EMPTY)
    values = all_values(raw, decimal=decimal, missing=missing)
    guesses = recognise(raw, values=values, day_first=day_first)
    return from_guesses(raw, guesses, source=source, decimal=decimal, missing=missing)


def from_guesses(
    raw: Raw,
    guesses: Mapping[str, Guess],
    *,
    source: str | None,
    decimal: str | None = None,
    missing: Collection[str] = (),
) -> DraftedPolicy:
    """Write guesses as a commented policy; for the arguments see `draft`."""
    frame = raw.frame
    drafted_by = "`shoal.draft`" if source is None else f"`shoal init` from {visible(source)}"
    lines = [
        f"# Drafted by {drafted_by}: {frame.height:,} rows.",
        "# Every role and kind below is a guess. Read each line and correct it.",
        "# Roles: identifier (dropped), quasi-identifier (an attacker may know it),",
        "#        confidential (must not be learnt; k-anonymity alone releases it as it is),",
        "#        other (released as it is).",
        "version = 1",
        *_persons(guesses),
        "",
        "[columns]",
        *(line for series in frame for line in _lines(series, guesses[series.name], raw, missing)),
        *_reading(raw, guesses, decimal, missing),
        "",
        "[protect]",
        'method = "mdav"  # `shoal methods` lists the others',
        "k = 5",
    ]
    if any(made.step and made.role is Role.QUASI_IDENTIFIER for made in guesses.values()):
        lines.append("integers = true  # whole numbers stay whole")
    if frame.height >= LARGE:
        lines.append(
            'blocks = "median"  # a large table: the cost is linear, the loss a little larger'
        )
    lines += ["", "[require]  # or nothing is written", "k-anonymity = 5"]
    text = "\n".join(lines) + "\n"
    policy.loads(text, where="the drafted policy")
    return DraftedPolicy(
        text,
        guesses,
        tuple(made.question for made in guesses.values() if made.question),
        frame.height,
    )


def _persons(guesses: Mapping[str, Guess]) -> list[str]:
    if any("privacy_unit" in made.flags for made in guesses.values()):
        return []
    return [
        "# Say whose rows these are, or every promise about persons is conditional on it. Either",
        "# each person has one row, and you say so here:",
        "# one_row_per_person = true",
        "# or a column numbers the persons: add privacy_unit = true; persons are counted then.",
    ]


def _reading(
    raw: Raw, guesses: Mapping[str, Guess], decimal: str | None, missing: Collection[str]
) -> list[str]:
    """Write down how a text file was read, so nothing about it is guessed again."""
    numbers = [
        raw.frame[name].drop_nulls().filter(~raw.frame[name].drop_nulls().is_in(made.missing))
        for name, made in guesses.items()
        if made.kind is Kind.NUMERIC and raw.frame.schema[name] == pl.String
    ]
    if not raw.reading and not numbers and decimal is None and not missing:
        return []
    marks = (
        mark
        for mark in (".", ",")
        if not any(parse_numbers(text, decimal=mark).null_count() for text in numbers)
    )
    stated = {**raw.reading, "decimal": decimal or next(marks, ".")}
    if "delimiter" in stated and any(made.kind is Kind.DATE for made in guesses.values()):
        stated["date_format"] = in_words(ISO)  # of columns that state no other
    sheet = f"# rows = {raw.height}  # for an epsilon release: the records of the sheet, empty too"
    return [
        "",
        "[reading]  # how the file is written",
        *(f"{key} = {quoted(mark)}" for key, mark in stated.items()),
        *([sheet] if "sheet" in stated else ()),
        *([f"missing = [{', '.join(map(quoted, missing))}]"] if missing else ()),
    ]


def _lines(series: pl.Series, made: Guess, raw: Raw, missing: Collection[str]) -> list[str]:
    counts = f"{series.null_count():,} missing"
    if is_plain(series.dtype):
        counts += f", {series.drop_nulls().n_unique():,} distinct"
    advice = f"; {made.advice}" if made.advice else ""
    lines = [f"# {visible(series.name)}: {counts}; {made.reason}{advice}."]
    kept = made.role is not Role.IDENTIFIER
    if made.question:
        lines.append(f"#   Question: {made.question}")
    if made.kind in {Kind.NUMERIC, Kind.DATE} and kept:
        example = f", for example [{', '.join(made.limits)}]" if made.limits else ""
        lines.append(f"#   State its public limits: bounds = [low, high]{example}")
    if made.kind is Kind.NOMINAL and kept:
        advice = "confirm that these categories are public" if made.categories else (
            "name a hierarchy or the categories"
        )  # fmt: skip
        lines.append(f'#   Nominal: {advice}; if they have an order, say kind = "ordinal".')
    fields = [*_fields(made, missing), *(_labels(series.name, raw) if kept else ())]
    value = f'"{made.role}"' if not made.flags and not kept else f"{{ {', '.join(fields)} }}"
    return [*lines, f"{quoted(series.name)} = {value}"]


def _fields(made: Guess, missing: Collection[str]) -> list[str]:
    fields = [f'role = "{made.role}"']
    if made.role is not Role.IDENTIFIER:
        fields.append(f'kind = "{made.kind}"')
    fields += [f"{flag} = true" for flag in made.flags]
    if made.role is Role.IDENTIFIER:
        return fields
    if made.date_format:
        fields.append(f"date_format = {quoted(made.date_format)}")
    if made.step:
        fields.append(f"step = {made.step}")
    if own := [mark for mark in made.missing if mark not in missing]:
        fields.append(f"missing = [{', '.join(map(quoted, own))}]")
    fields += [f"{key} = {value}" for key, value in made.coding.items()]
    if made.categories:
        fields.append(f"categories = [{', '.join(map(quoted, made.categories))}]")
        fields.append("observed = true")
    return fields


def _labels(name: str, raw: Raw) -> list[str]:
    """The labels that the file has for a column and its values; they are not cells."""
    fields = []
    if label := raw.column_labels.get(name, "")[:255]:
        fields.append(f"label = {quoted(label)}")
    if labels := raw.labels.get(name):
        pairs = (f"{quoted(value)} = {quoted(label)}" for value, label in labels.items())
        fields.append(f"value_labels = {{ {', '.join(pairs)} }}")
    return fields

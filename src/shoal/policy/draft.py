"""Draft a policy from an inspection of the table, for a steward to correct.

`recognise` guesses what each column is; here the guesses become a commented policy, which
people run unread: so what leads to a person is dropped, and `exposure` coarsens what would be
released as it is. Bounds are left for the steward to state, because limits read off the data are
not public. Categories are copied, marked `observed = true`, for the steward to confirm.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from numbers import Integral
from pathlib import Path
from typing import Any

import polars as pl

from shoal import io, policy
from shoal.core import Audience, Kind, Role
from shoal.errors import InputError, did_you_mean, visible
from shoal.io import text_files
from shoal.io.cells import is_plain
from shoal.io.dates import ISO, in_words
from shoal.io.files import read_by_header
from shoal.io.metadata import describe_by
from shoal.io.raw import Raw
from shoal.io.text_files import brief, quote
from shoal.io.validate import parse_numbers
from shoal.policy import safe_harbor
from shoal.policy.choose_method import choose_method
from shoal.policy.column_values import ColumnValues, all_values
from shoal.policy.content import not_looked_for
from shoal.policy.drafted import DraftedPolicy
from shoal.policy.exposure import NO_PURPOSE, Purpose, coarsen
from shoal.policy.guess import Guess
from shoal.policy.recognise import LIMITS, meanings, recognise
from shoal.policy.values import MOST

EMPTY = "The table has a header but no rows; expected one row per person."
FEW = 50
"""Below this many groups of k, a column may have one value in the release."""


def draft(
    data: Any,
    *,
    source: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: str | None = None,
    skip: str | None = None,
    decimal: str | None = None,
    missing: Collection[str] = (),
    day_first: bool | None = None,
    audience: str | None = None,
    k: int = 5,
    keep: Collection[str] = (),
    template: str | None = None,
    identifiers: Collection[str] = (),
    quasi_identifiers: Collection[str] = (),
    confidential: Collection[str] = (),
    metadata: str | Path | None = None,
) -> DraftedPolicy:
    """Read a table and draft a commented policy for a steward to correct.

    It loads as it is. Quasi-identifiers are grouped so k people share each combination, and numbers
    that are released as they are rounded until k people share each value. Every line of it is the
    steward's to check, and until `[review]` is filled in, the release says that nobody did.
    Categories in it are copied from the table, so it is as confidential as the table.

    Args:
        data: the path of a file, what `shoal.read` returned, or a pandas, Polars or PyArrow table.
        source: named in the heading; by default, the name of the file.
        delimiter: of a CSV file; found out where not given.
        encoding: of a CSV file; found out where not given.
        sheet: of an Excel workbook with several.
        header_row: the rows of a sheet that name the columns.
        skip: rows of a sheet that are not records.
        decimal: the decimal mark of numbers in text, `.` or `,`; found out where not given.
        missing: cells that mean missing in every column, beside those that are recognised.
        day_first: whether dates have the day before the month, where their digits fit both.
        audience: who will get the release: public-use, scientific-use or secure-use.
        k: how many people must share a combination, and a value.
        keep: columns to release as they are, though a value may point to somebody.
        template: `safe-harbor` for the fields of 45 CFR 164.514(b)(2).
        identifiers: columns to drop; the roles of columns that are not named are guessed.
        quasi_identifiers: columns that an attacker may know.
        confidential: columns that must not be learnt.
        metadata: a data package (JSON) or a DDI codebook (XML) that describes the table: labels,
            missing codes, levels of measurement and the sampling weight come from it.
    """
    if isinstance(data, str | Path):
        source = source or Path(data).name
        data = io.read(
            data,
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            header_row=header_row,
            skip=skip,
        )
    raw = io.from_native(data)
    raw = raw if metadata is None else describe_by(raw, Path(metadata))
    if raw.frame.height == 0:
        raise InputError(EMPTY)
    purpose = _purpose(audience, k, keep, template)
    roles = _stated_roles(raw.names, identifiers, quasi_identifiers, confidential)
    for name in keep:
        if name not in raw.names:
            raise InputError(f"No column named '{name}'.{did_you_mean(name, raw.names)}")
    values = all_values(raw, decimal=decimal, missing=missing)
    guesses = recognise(raw, values=values, day_first=day_first, roles=roles)
    return from_guesses(
        raw, guesses, values, source=source, decimal=decimal, missing=missing, purpose=purpose
    )


def draft_from_header(
    data: Any,
    *,
    epsilon: str,
    delta: str | None = None,
    source: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: str | None = None,
    skip: str | None = None,
    decimal: str | None = None,
    audience: str | None = None,
    identifiers: Collection[str] = (),
    quasi_identifiers: Collection[str] = (),
    confidential: Collection[str] = (),
) -> DraftedPolicy:
    """Draft a policy with epsilon from the names of the columns.

    The delimiter and the encoding of a text file are those of its header.

    A proof takes bounds and categories as known to everybody, so they are not read off the table.
    With a delta they are discovered with noise, and the policy runs as it is; what it states
    instead (how the file is written, and whose rows they are) is marked as assumed. Without one
    each line says what to state, and until then the policy does not run.

    Args:
        data: as for `draft`.
        epsilon: what the release may cost.
        delta: the probability of a larger loss, which discovering texts needs.
        source: named in the heading; by default, the name of the file.
        delimiter: of a CSV file; found out where not given.
        encoding: of a CSV file; found out where not given.
        sheet: of an Excel workbook with several.
        header_row: the rows of a sheet that name the columns.
        skip: rows of a sheet that are not records.
        decimal: the decimal mark of numbers in text; with a delta, and where not given, a comma
            beside semicolons, else a point.
        audience: who will get the release: public-use, scientific-use or secure-use.
        identifiers: columns to drop, where a delta is given; the roles of others follow from
            their names.
        quasi_identifiers: columns that an attacker may know.
        confidential: columns that must not be learnt.
    """
    purpose = _purpose(audience, NO_PURPOSE.k, (), None)
    if isinstance(data, str | Path):
        source = source or Path(data).name
        data = read_by_header(
            Path(data),
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            header_row=header_row,
            skip=skip,
        )
    raw = io.from_native(data)
    if not re.fullmatch(r"\d+(\.\d+)?", epsilon) or not Decimal(epsilon):
        raise InputError(f"Expected a positive number for epsilon, found '{brief(epsilon)}'.")
    if delta is not None:
        text_files.parse_delta(delta)
        roles = _stated_roles(raw.names, identifiers, quasi_identifiers, confidential)
        price = {"epsilon": epsilon, "delta": delta}
        text = _to_discover(raw, roles, _by(source), price, decimal=decimal, purpose=purpose)
        return DraftedPolicy(text, {}, (), raw.height)
    text = _join_sections(
        [
            f"{_by(source)}, from the names of its columns alone.",
            "# State what can occur in each column from public knowledge, never from the table:",
            "# put it in place of the question marks, and take the # away. Drop what names people.",
        ],
        [
            "# Either each person has one row, or a column numbers the persons (privacy_unit =",
            "# true, max_contributions = 1).",
            "# one_row_per_person = true",
        ],
        [
            *map(_template, raw.names),
            "",
            "[reading]  # how the file is written; state the rest, or the release is refused",
            *(f"{key} = {quote(mark)}" for key, mark in raw.reading.items()),
            *(
                []
                if encoding or "encoding" not in raw.reading or not "".join(raw.names).isascii()
                else ["#   The header fits other encodings too: state that of the cells."]
            ),
            '# decimal = "?"  # "." or ","',
            '# date_format = "?"  # such as "dd.mm.yyyy", if there are dates',
        ],
        [
            'method = "auto"  # draws rows from a noisy model',
            f"epsilon = {epsilon}",
        ],
        [*_REQUIRE, f"differential-privacy = {epsilon}", *_release(purpose)],
    )
    return DraftedPolicy(text, {}, (), raw.height)


MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
"""Marks for missing cells that a draft from a header states, whatever the cells hold."""


def _to_discover(
    raw: Raw,
    roles: Mapping[str, Role],
    heading: str,
    price: Mapping[str, str],
    *,
    decimal: str | None,
    purpose: Purpose,
) -> str:
    """Write a policy that finds kinds, categories and bounds with noise, and runs as it is."""
    found = {name: meanings(name) for name in raw.names}
    units = [name for name, means in found.items() if {"person", "number"} <= means]
    unit = units[0] if len(units) == 1 and roles.get(units[0]) in {None, Role.IDENTIFIER} else None
    mark = decimal or ("," if raw.reading.get("delimiter") == ";" else ".")
    reading = {**raw.reading, "decimal": mark}
    return _join_sections(
        [
            f"{heading}, from the names of its columns alone.",
            "# Kinds, categories and bounds are found with noise, for a share of epsilon. What is",
            "# assumed, and not found, is marked so: correct it before the release.",
        ],
        ["one_row_per_person = true  # assumed: each person has one row"] if unit is None else (),
        [
            *(_open_line(name, found[name], roles.get(name), unit) for name in raw.names),
            "",
            "[reading]  # how the file is written; all but the delimiter is assumed",
            *(f"{key} = {quote(value)}" for key, value in reading.items()),
            f"missing = [{', '.join(map(quote, MISSING))}]",
        ],
        [
            'method = "auto"  # draws rows from a noisy model',
            f"epsilon = {price['epsilon']}",
            f"delta = {price['delta']}  # probability of a larger loss, which finding texts needs",
            'neighbours = "add-remove"  # not even the number of rows is published as it is',
        ],
        _release(purpose),
    )


def _open_line(name: str, means: Collection[str], role: Role | None, unit: str | None) -> str:
    """Write the line of a column that is to be discovered, or dropped."""
    if name == unit:
        return (
            f'{quote(name)} = {{ role = "identifier", privacy_unit = true, max_contributions = 1 }}'
            "  # assumed: it numbers the persons; further rows of one are left out"
        )
    if role is None and {"direct", "named", "person"} & {*means}:
        role = Role.IDENTIFIER
    if role is None:
        learnt = "confidential" in means and "quasi" not in means
        role = Role.CONFIDENTIAL if learnt else Role.QUASI_IDENTIFIER
    if role is Role.IDENTIFIER:
        return f'{quote(name)} = "identifier"'
    return f'{quote(name)} = {{ role = "{role}", kind = "discover" }}'


def _by(source: str | None) -> str:
    by = "`shoal.draft`" if source is None else f"`shoal init` from {visible(source)}"
    return f"# Drafted by {by}"


_REQUIRE = ("", "[require]  # or nothing is written")


def _join_sections(
    heading: Iterable[str],
    persons: Iterable[str],
    columns: Iterable[str],
    protect: Iterable[str],
    rest: Iterable[str],
) -> str:
    """Join the sections of a draft."""
    lines = [
        *heading,
        "version = 1",
        *persons,
        "",
        "[review]  # until both are filled in, the release says that nobody has reviewed it",
        '# by = "name"',
        "# date = 2023-09-17",
        "",
        "[columns]",
        *columns,
        "",
        "[protect]",
        *protect,
        *rest,
    ]
    return "\n".join(lines) + "\n"


def _template(name: str) -> str:
    """Write the line of a column of which only the name is known."""
    means, key = meanings(name), quote(name)
    if means & {"direct", "named", "person", "household"} or {"number"} == means:
        return f'{key} = "identifier"'
    role = (
        "confidential" if "confidential" in means and "quasi" not in means else "quasi-identifier"
    )
    limits = next((both for meaning, both in LIMITS.items() if meaning in means), None)
    if limits:
        return f'{key} = {{ role = "{role}", kind = "numeric", bounds = [{", ".join(limits)}] }}'
    if "birth" in means or "date" in name.lower():
        return f'# {key} = {{ role = "{role}", kind = "date", bounds = [?, ?] }}'
    if means & {"quantity", "percent"}:
        return f'# {key} = {{ role = "{role}", kind = "numeric", bounds = [?, ?] }}'
    return f'# {key} = {{ role = "{role}", kind = "nominal", categories = [?] }}'


def _stated_roles(
    known: Collection[str],
    identifiers: Collection[str],
    quasi_identifiers: Collection[str],
    confidential: Collection[str],
) -> dict[str, Role]:
    """Return the role of each column that has one, from the columns of each role."""
    roles: dict[str, Role] = {}
    stated = ((Role.IDENTIFIER, identifiers), (Role.QUASI_IDENTIFIER, quasi_identifiers),
              (Role.CONFIDENTIAL, confidential))  # fmt: skip
    for role, names in stated:
        for name in [names] if isinstance(names, str) else names:
            if name not in known:
                raise InputError(f"No column named '{name}'.{did_you_mean(name, known)}")
            if roles.setdefault(name, role) is not role:
                raise InputError(f"Expected one role for '{name}', found {roles[name]} and {role}.")
    return roles


def _purpose(
    audience: str | None, k: object, keep: Collection[str], template: str | None
) -> Purpose:
    if template not in {None, safe_harbor.TEMPLATE}:
        raise InputError(f"Expected the template {safe_harbor.TEMPLATE}, found '{template}'.")
    if audience is not None and audience not in set(Audience):
        known = ", ".join(Audience)
        raise InputError(f"Expected an audience among {known}, found '{audience}'.")
    if not isinstance(k, Integral) or not 2 <= int(k) <= MOST:
        raise InputError(f"Expected a whole number of at least 2 for k, found {k!r:.40}.")
    return Purpose(None if audience is None else Audience(audience), int(k), tuple(keep), template)


def from_guesses(
    raw: Raw,
    guesses: Mapping[str, Guess],
    values: Mapping[str, ColumnValues],
    *,
    source: str | None,
    decimal: str | None = None,
    missing: Collection[str] = (),
    purpose: Purpose = NO_PURPOSE,
) -> DraftedPolicy:
    """Write guesses as a commented policy; for the arguments see `draft`."""
    frame = raw.frame
    if harbor := purpose.template is not None:
        guesses = safe_harbor.draft_safe_harbor(values, guesses)
    guesses, remarks = coarsen(values, guesses, purpose)
    remarks = (*(safe_harbor.REMARKS if harbor else ()), *remarks)
    changed, method = choose_method(values, guesses, purpose, frame.height)
    guesses |= changed
    guesses |= {name: _ask_to_keep(name, guesses[name]) for name in purpose.keep}
    kept = [name for name in purpose.keep if guesses[name].role is not Role.IDENTIFIER]
    missed = "; ".join(not_looked_for())
    text = _join_sections(
        [
            f"{_by(source)}: {frame.height:,} rows.",
            "# Every role and kind below is a guess. Read each line and correct it.",
            "# Roles: identifier (dropped), quasi-identifier (an attacker may know it),",
            "#        confidential (must not be learnt; k-anonymity alone releases it as it is),",
            "#        other (released as it is).",
            *([f"# Not looked for, without the extra 'recognise': {missed}."] if missed else ()),
        ],
        _persons(guesses),
        [
            *(line for s in frame for line in _lines(s, guesses[s.name], raw, missing)),
            *_reading(raw, guesses, decimal, missing),
        ],
        method,
        [
            *_REQUIRE,
            f"k-anonymity = {purpose.k}",
            *_release(purpose, kept, _accept_few(guesses, frame.height, purpose.k)),
            *(f"# {remark}" for remark in remarks),
        ],
    )
    policy.loads(text, where="the drafted policy")
    return DraftedPolicy(
        text,
        guesses,
        tuple(made.question for made in guesses.values() if made.question),
        frame.height,
        remarks,
    )


def _ask_to_keep(name: str, made: Guess) -> Guess:
    """Ask for the role of a column that is to be kept, and that a draft drops."""
    if made.role is not Role.IDENTIFIER:
        return made
    question = f"'{name}' is to be kept, and is dropped. If it may be released, which role has it?"
    return replace(made, question=question)


def _release(
    purpose: Purpose, kept: Collection[str] = (), accepted: Iterable[str] = ()
) -> list[str]:
    """Write for whom the release is; a draft is for the public only once it is reviewed."""
    audience, lines = purpose.audience, []
    if audience:
        wait = "# once it is reviewed: " if audience is Audience.PUBLIC_USE else ""
        lines.append(f'{wait}audience = "{audience}"')
    if kept:
        lines.append(f"accept_distinct = [{', '.join(map(quote, kept))}]")
    lines += accepted
    return ["", "[release]", *lines] if lines else []


def _accept_few(guesses: Mapping[str, Guess], rows: int, k: int) -> list[str]:
    """Accept columns of one value in a release of few rows."""
    if rows >= FEW * k:
        return []
    keys = [name for name, made in guesses.items() if made.role is Role.QUASI_IDENTIFIER]
    listed = ", ".join(map(quote, keys))
    return [f"accept_constant = [{listed}]  # few rows: a column may have one value left"]


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
    """Write how a text file was read, so later runs do not guess it again."""
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
        *(f"{key} = {quote(mark)}" for key, mark in stated.items()),
        *([sheet] if "sheet" in stated else ()),
        *([f"missing = [{', '.join(map(quote, missing))}]"] if missing else ()),
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
    return [*lines, f"{quote(series.name)} = {value}"]


def _fields(made: Guess, missing: Collection[str]) -> list[str]:
    fields = [f'role = "{made.role}"']
    if made.role is not Role.IDENTIFIER:
        fields.append(f'kind = "{made.kind}"')
    fields += [f"{flag} = true" for flag in made.flags]
    if made.role is Role.IDENTIFIER:
        return fields
    if made.date_format:
        fields.append(f"date_format = {quote(made.date_format)}")
    if made.step and "step" not in made.coding:
        fields.append(f"step = {made.step}")
    if marks := [mark for mark in made.missing if mark not in missing]:
        fields.append(f"missing = [{', '.join(map(quote, marks))}]")
    fields += [f"{key} = {value}" for key, value in made.coding.items()]
    if made.spellings:
        pairs = (f"{quote(old)} = {quote(new)}" for old, new in made.spellings.items())
        fields.append(f"recode = {{ {', '.join(pairs)} }}")
    if made.categories:
        fields.append(f"categories = [{', '.join(map(quote, made.categories))}]")
        fields.append("observed = true")
    return fields


def _labels(name: str, raw: Raw) -> list[str]:
    """Write the file's labels of a column and its values; they are not cells."""
    fields = []
    if label := raw.column_labels.get(name, "")[:255]:
        fields.append(f"label = {quote(label)}")
    if labels := raw.labels.get(name):
        pairs = (f"{quote(value)} = {quote(label)}" for value, label in labels.items())
        fields.append(f"value_labels = {{ {', '.join(pairs)} }}")
    return fields

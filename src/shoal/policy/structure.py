"""Recognise what columns are by how they depend on each other.

What does not change within the rows of a patient number is a fact about the patient: a birth date,
a sex. So a column that numbers persons shows itself by what it determines, whatever its name is.

Each function takes all columns and what they are taken for so far, and returns what it knows
better: new guesses for some of the columns, with the reason added.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Kind, Role
from shoal.policy.column_values import FEW_ROWS, NEARLY_ALL, ColumnValues
from shoal.policy.content import NAMES
from shoal.policy.guess import BY_COUNTS, UNKNOWN, Guess, NamedColumn, guess_dropped

ROWS = 50_000
"""So many rows are compared, all rows of a value or none of them."""
PAIRS = 15
"""Fewer pairs of rows with an equal value show nothing."""
ALWAYS = 0.98
"""The share of such pairs in which a determined column agrees; a file has slips."""
OFTEN = 0.9
"""A column in which two rows agree more often by chance is as good as constant."""

SEX, BIRTH = 2, 3
"""What a column shows that a person has once; 1 is what leads to a person."""

EXPOSED = frozenset({Role.CONFIDENTIAL, Role.OTHER})
"""Roles of columns that are released as they are."""

SHAPED = 0.8
"""The share of values that are one word with a capital in a column of given names."""
BATTERY = 5
"""So many columns with one scale are answers to a list of questions."""

Codes = Mapping[str, NDArray[np.int64]]
Columns = Mapping[str, NamedColumn]
Guesses = Mapping[str, Guess]


def codes_of(columns: Columns) -> dict[str, NDArray[np.int64]]:
    """Number the values of each column; a missing cell is -1."""
    return {
        name: column.values.cells.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() - 1
        for name, column in columns.items()
    }


def agreement(codes: Codes, by: str) -> dict[str, float]:
    """Return for each column how often two rows with the same value of `by` agree in it.

    Columns are left out in which any two rows agree too often, or too few can be compared. Rows
    that follow each other in the order of `by` are compared: n log n for each column.
    """
    values = codes[by]
    order = np.argsort(values, kind="stable")[-ROWS:]
    known = values[order]
    equal = np.flatnonzero((known[1:] == known[:-1]) & (known[1:] >= 0))
    first, second = order[equal], order[equal + 1]
    result = {}
    for name, column in codes.items():
        left, right = column[first], column[second]
        used = (left >= 0) & (right >= 0)
        if name == by or used.sum() < PAIRS:
            continue
        shares = np.bincount(column[column >= 0]) / max(int((column >= 0).sum()), 1)
        if float(shares @ shares) <= OFTEN:
            result[name] = float((left == right)[used].mean())
    return result


def find_units(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Keep each unique flag on one column only, and mark persons who have several rows."""
    result, taken = dict[str, Guess](), set[str]()
    for name, made in guesses.items():
        flags = tuple(flag for flag in made.flags if flag not in taken)
        taken.update(flags)
        result[name] = replace(made, flags=flags)
        if "privacy_unit" in flags:
            values = columns[name].values
            if values.distinct < values.present:
                result[name] = replace(
                    result[name].because(
                        f": {values.distinct:,} of them in {values.present:,} rows"
                    ),
                    question=f"Does '{name}' number the persons? An epsilon also needs "
                    "max_contributions.",
                )
    return result


def find_persons(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Find the columns that identify persons and households, by what is constant within them.

    Of a person the birth and the sex are constant, and what leads to the person: a name, an e-mail
    address. The coarsest column in which most of that is constant numbers the persons, whatever it
    is called, and all that is one-to-one with it is dropped too. A column within which a sex or a
    birth varies, but two other columns are constant, numbers households, or groups as small.
    """
    marks = {
        name: BIRTH if column.is_birth else SEX if column.is_sex else bool(column.holds)
        for name, column in columns.items()
    }
    codes = codes_of(columns)
    shared = {
        name: agreement(codes, name)
        for name in columns
        if _repeats(columns[name]) and "household" not in guesses[name].flags
    }
    marked = {name: codes[name] for name in columns if marks[name] >= SEX}
    for name, column in columns.items() if marked else ():
        open_to = name not in shared and not marks[name] and "household" not in guesses[name].flags
        if open_to and _repeats(column, few=2):
            shared[name] = agreement({**marked, name: codes[name]}, name)
    constant = {
        name: {o for o, a in shares.items() if a >= ALWAYS} for name, shares in shared.items()
    }
    small = {
        name: columns[name].values.present <= 10 * columns[name].values.distinct for name in shared
    }
    varying = {
        name
        for name, shares in shared.items()
        if any(marks[other] >= SEX and share < OFTEN for other, share in shares.items())
    }
    weight = {name: sum({marks[other] for other in constant[name]}) for name in constant}
    leading = {
        name: sum(marks[other] == 1 for other in (name, *constant[name]))
        for name in constant
        if columns[name].holds != NAMES
    }
    result = dict(guesses)
    unit = max(
        (
            name
            for name in weight
            if weight[name] >= _required_share(columns[name], result[name])
            or leading.get(name, 0) >= 2
            or (
                leading.get(name)
                and len(constant[name]) > 2
                and name not in varying
                and small[name]
            )
        ),
        key=lambda name: _suits(columns[name], weight[name], result[name]),
        default=None,
    )
    if unit is not None:
        result = {name: replace(made, flags=_no_unit(made.flags)) for name, made in result.items()}
        shown = sorted(constant[unit], key=lambda name: (marks[name], name))[-2:]
        do = "do" if len(shown) > 1 else "does"
        reason = f"the column numbers persons: {' and '.join(map(repr, shown))} {do} not change"
        result[unit] = guess_dropped(f"{reason} within it", "privacy_unit")
        for name in constant[unit] & constant.keys():
            if unit in constant[name] and result[name].kind is Kind.NOMINAL:
                result[name] = guess_dropped(f"each value goes with one of '{unit}'")
    elif not any("privacy_unit" in made.flags for made in result.values()):
        result |= _asking(columns, result)
    for name in varying:
        numbers_groups = small[name] and len(constant[name]) >= 2 and not weight[name]
        if numbers_groups and (result[name].kind is Kind.NOMINAL or _counts_up(columns[name])):
            result[name] = guess_dropped(
                "the column numbers households or groups as small", "household"
            )
    return result


def _counts_up(column: NamedColumn) -> bool:
    """Whether whole numbers leave hardly one out, as those that number something."""
    numbers = column.values.numbers
    if numbers is None or not column.values.whole:
        return False
    span = float(numbers.max()) - float(numbers.min()) + 1  # type: ignore[arg-type]
    return column.values.distinct > NEARLY_ALL * span


def _asking(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Ask whose rows these are if names or addresses repeat and no column identifies persons."""
    for name, column in columns.items():
        values = column.values
        if column.holds and _repeats(column):
            question = (
                f"{values.distinct:,} values of '{name}' occur in {values.present:,} rows. If a "
                "person has several rows, which column numbers the persons? Write privacy_unit = "
                "true there."
            )
            return {name: replace(guesses[name], question=question)}
    return {}


def _required_share(column: NamedColumn, made: Guess) -> int:
    """How much must be constant within a column: people of one name are of one sex, too.

    Where a column has few values, as of a trial with twelve patients, a team is of one sex; so its
    name must say that it numbers persons, or births must be constant beside it.
    """
    if not _repeats(column) and not made.flags:
        named = "person" in column.means and "quantity" not in column.means
        return SEX if named else SEX + BIRTH
    return BIRTH if column.holds else 1 if made.flags else SEX


def _suits(column: NamedColumn, weight: int, made: Guess) -> tuple[bool, ...]:
    """Score a candidate for identifying persons: complete, numeric and coarse ones are best."""
    values = column.values
    flagged = bool(made.flags)
    full = values.present >= ALWAYS * values.rows
    return weight, full, flagged, not column.holds, -values.distinct  # type: ignore[return-value]


def _no_unit(flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(flag for flag in flags if flag != "privacy_unit")


def _repeats(column: NamedColumn, few: int = 20) -> bool:
    """Whether a column may number persons with several rows: `few` of them, or more in many."""
    values = column.values
    amount = column.means & {"quantity", "confidential"} and values.numbers is not None
    if amount or not values.unbroken or values.days is not None:
        return False
    least = max(few, values.rows / 500)
    return least <= values.distinct <= values.present - PAIRS


def find_copies(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Protect copies of a quasi-identifier, and drop unknown copies of an identifier.

    Columns that nearly number the rows are left out: an income and a name are one-to-one too.
    """
    result = dict[str, Guess]()
    alike: dict[tuple[int, int], list[str]] = {}
    for name, column in columns.items():
        cells = column.values.cells
        distinct = cells.drop_nulls().n_unique()
        if 2 < distinct <= NEARLY_ALL * cells.len():
            alike.setdefault((distinct, cells.null_count()), []).append(name)
    for names in alike.values():
        for source, copy in chain(pairwise(names), pairwise(names[::-1])):
            known = {**guesses, **result}
            role = _lend_role(known[source], known[copy])
            if role is not None and _one_to_one(columns[source], columns[copy]):
                because = known[copy].because(f"; each value goes with one of '{source}'")
                result[copy] = replace(because, role=role)
    return result


def _lend_role(first: Guess, second: Guess) -> Role | None:
    """Return the role that a column passes on to its copy, if any."""
    if first.role is Role.QUASI_IDENTIFIER and second.role in EXPOSED:
        return Role.QUASI_IDENTIFIER
    unknown = second.reason.startswith(UNKNOWN) and second.role is not Role.IDENTIFIER
    return Role.IDENTIFIER if first.role is Role.IDENTIFIER and first.flags and unknown else None


def _one_to_one(one: NamedColumn, two: NamedColumn) -> bool:
    both = pl.DataFrame({"one": one.values.cells, "two": two.values.cells})
    for part in (both.head(2000), both):
        pairs = part.unique()
        if not pairs.height == pairs["one"].n_unique() == pairs["two"].n_unique():
            return False
    return True


def find_names(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Drop words of a name in the same row, and single words beside a column of names.

    So a given name is dropped with the full name, whether or not a list of names has it.
    """
    result, order = dict[str, Guess](), list(columns)
    names = [
        name
        for name in order
        if columns[name].holds == NAMES
        or ("direct" in columns[name].means and guesses[name].role is Role.IDENTIFIER)
    ]
    for at, (name, column) in enumerate(columns.items()):
        made, values = guesses[name], column.values
        if made.kind is not Kind.NOMINAL or UNKNOWN not in made.reason or values.distinct < 3:
            continue
        alike = values.text.str.contains(r"^\p{Lu}[\p{L}'-]{2,}$").mean() >= SHAPED  # type: ignore[operator]
        beside = {*order[max(at - 1, 0) : at + 2]}.intersection(names)
        for other in names:
            both = pl.DataFrame({"word": values.cells, "name": columns[other].values.cells})
            text = both.cast(pl.String).drop_nulls().head(2000)
            stands = [word.strip() in name for word, name in text.rows()]
            if stands and np.mean(stands) > OFTEN:
                result[name] = guess_dropped(f"its values are part of those of '{other}'")
        if name not in result and alike and beside and values.distinct >= FEW_ROWS:
            result[name] = guess_dropped(f"single words, beside the names in '{min(beside)}'")
    return result


def find_functions(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Protect categories that determine a quasi-identifier, as a year of birth determines age."""
    known = {n: c for n, c in columns.items() if guesses[n].role is Role.QUASI_IDENTIFIER}
    codes, result = codes_of(known), dict[str, Guess]()
    for name, made in guesses.items():
        if made.role in EXPOSED and made.kind in {Kind.NOMINAL, Kind.ORDINAL}:
            new = codes_of({name: columns[name]})
            bases = [o for o, share in agreement({**codes, **new}, name).items() if share >= ALWAYS]
            if bases:
                because = made.because(f"; '{bases[0]}' follows from it, so it is protected too")
                result[name] = replace(because, role=Role.QUASI_IDENTIFIER)
    return result


def find_scales(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Take columns with a common scale of small whole numbers for answers in a questionnaire.

    Answers have an order, and nobody knows the answers of another to a long list of questions.
    Whole numbers from 0 on have an order too: codes begin at 1.
    """
    scales: dict[tuple[str, ...], list[str]] = {}
    for name, made in guesses.items():
        numbers = columns[name].values.numbers if name in columns else None
        if made.kind is Kind.NOMINAL and BY_COUNTS in made.reason and numbers is not None:
            values = sorted(numbers.to_list())
            if len(values) >= 3 and values[-1] - values[0] < len(values):
                scales.setdefault(tuple(f"{value:g}" for value in values), []).append(name)
    result = dict[str, Guess]()
    for scale, names in scales.items():
        for name in names:
            made = replace(guesses[name], kind=Kind.ORDINAL, categories=scale)
            if len(names) >= BATTERY and int(scale[-1]) <= 10:
                reason = f"one of {len(names)} columns with the same scale, so an answer"
                result[name] = replace(made, role=Role.CONFIDENTIAL, reason=reason)
            elif scale[0] == "0" and len(scale) > 3:
                reason = made.reason.replace(BY_COUNTS, "whole numbers from 0 on, in order")
                result[name] = replace(made, reason=reason)
    return result


def find_sums(columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Protect a total together with its parts: all but one of them disclose that one."""
    names = [n for n, made in guesses.items() if made.kind is Kind.NUMERIC and n in columns][:40]
    cells = {name: _head(columns[name].values) for name in names}
    cells = {name: numbers for name, numbers in cells.items() if np.unique(numbers).size > 5}
    result = dict[str, Guess]()
    for total, parts in _sums(cells):
        known = {name: result.get(name, guesses[name]) for name in (total, *parts)}
        note = f"; the sum of {', '.join(parts[:-1])} and {parts[-1]}"
        result[total] = replace(known[total].because(note), parts=tuple(parts))
        if any(made.role is Role.QUASI_IDENTIFIER for made in known.values()):
            for name, made in known.items():
                if made.role in EXPOSED:
                    because = result.get(name, made).because(
                        ", and protected as its total or parts"
                    )
                    result[name] = replace(because, role=Role.QUASI_IDENTIFIER)
    return result


def _head(values: ColumnValues) -> NDArray[np.float64]:
    """The first cells as the numbers that they are read as; a missing one is not a number."""
    cells = values.to_typed(5000).cast(pl.Float64, strict=False)
    return cells.fill_null(np.nan).to_numpy()


def _sums(cells: Mapping[str, NDArray[np.float64]]) -> Iterator[tuple[str, list[str]]]:
    """Find totals with their parts: any two columns, or up to nine adjacent ones."""
    for total in cells:
        addends = [name for name in cells if name != total]
        runs = (
            addends[start:end]
            for start in range(len(addends))
            for end in range(start + 3, min(start + 9, len(addends)) + 1)
        )
        for parts in (*combinations(addends, 2), *runs):
            if all(_adds_up(cells, total, parts, rows) for rows in (50, 5000)):
                yield total, list(parts)
                break


def _adds_up(
    cells: Mapping[str, NDArray[np.float64]], total: str, parts: Sequence[str], rows: int
) -> bool:
    added = np.sum([cells[part][:rows] for part in parts], axis=0)
    totals = cells[total][:rows]
    used = np.isfinite(added) & np.isfinite(totals)
    return used.sum() > FEW_ROWS and np.allclose(added[used], totals[used], atol=1e-6)


def protect_something(_columns: Columns, guesses: Guesses) -> dict[str, Guess]:
    """Protect the confidential columns if there are no quasi-identifiers to protect."""
    if any(made.role is Role.QUASI_IDENTIFIER for made in guesses.values()):
        return {}
    why = ", and there is no quasi-identifier, so it is protected itself"
    return {
        name: replace(made.because(why), role=Role.QUASI_IDENTIFIER)
        for name, made in guesses.items()
        if made.role is Role.CONFIDENTIAL
    }


FINDERS: tuple[Callable[[Columns, Guesses], dict[str, Guess]], ...] = (
    find_persons,
    find_units,
    find_names,
    find_copies,
    find_functions,
    find_scales,
    find_sums,
)
"""In this order each adds to what is known."""

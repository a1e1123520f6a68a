"""Bring a frame to the types that its policy states, or say what does not fit.

The policy's own steps happen here: missing marks, recoding, top and bottom coding, rounding.
What does not fit is one error for all columns, with the numbers of the rows; it never shows a cell.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from unicodedata import is_normalized

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from shoal.core import Column, Kind, Persons, Role, Schema
from shoal.errors import InputError, counted, did_you_mean, quotable, unlike
from shoal.io import dates
from shoal.io.recode import recode_text
from shoal.io.table import Table
from shoal.io.text_files import quoted

LARGEST = 1e150
"""Numbers beyond this are refused: their squares would overflow."""
KEPT_ROWS = 100
"""How many rows a misfit keeps."""
SHOWN_ROWS = 5
"""How many of them a sentence names."""
SHOWN_COLUMNS = 10
"""Of how many columns an error says what does not fit."""
MARKS = [-1.0, *(sign * float(digit * times) for sign in (1, -1) for digit in "789"
               for times in range(1, 7))]  # fmt: skip
"""Numbers that stand for missing cells in many files."""
_MONEY = r"(?:\p{Sc}|EUR|USD|GBP|CHF)"
_MARKED = (
    rf"^\s*[-+]?\s*{_MONEY}?\s*[-+]?(?:[0-9]{{1,3}}(?:[,'\x{{2019}}\s][0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?"
    rf"\s*(?:{_MONEY}|%)?\s*$"
)
"""A number as people write amounts, with a decimal point."""


class Misfit(NamedTuple):
    """Cells of a column that do not fit the policy, for one reason.

    Attributes:
        what: what is wrong.
        move: what to do about it.
        cells: how many there are.
        rows: the numbers of the first of their rows, from 1; none where rows have no order.
    """

    what: str
    move: str
    cells: int
    rows: tuple[int, ...] = ()

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.rows[:SHOWN_ROWS]))
        more = ", ..." if self.cells > SHOWN_ROWS else ""
        where = f" ({numbers}{more})" if self.rows else ""
        return f"{self.what} in {counted(self.cells, 'row')}{where}. {self.move}".rstrip()


class MisfitError(InputError):
    """Cells of a column that do not fit the policy."""

    def __init__(self, column: str, misfits: Sequence[Misfit]) -> None:
        super().__init__(" ".join(f"Column '{column}': {misfit}" for misfit in misfits))
        self.column, self.misfits = column, tuple(misfits)


def validate(frame: pl.DataFrame, schema: Schema, *, decimal: str | None = None) -> Table:
    """Fit a frame to a schema, or say which columns do not fit and in which rows.

    Args:
        frame: columns of any type; text is parsed as the column's kind says.
        schema: every column of the frame, and no other.
        decimal: the decimal mark of numbers in text; found out where not given.
    """
    check_names(frame, schema)
    if frame.height == 0:
        raise InputError("The table has a header but no rows; expected one row per person.")
    persons = persons_of(frame, schema)
    kept = [name for name in frame.columns if schema[name].role is not Role.IDENTIFIER]
    if not kept:
        raise InputError("Every column is an identifier, so nothing is left to release.")
    columns_typed = fitting(partial(typed, frame[name], schema[name], decimal) for name in kept)
    columns = tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER)
    dtypes = {name: leaving(frame.schema[name], schema[name]) for name in kept}
    # In one piece, because rows are taken from it in other orders.
    whole = pl.DataFrame(columns_typed).rechunk()
    return Table(whole, Schema(columns), dtypes, persons=persons)


def fitting(columns: Iterable[Callable[[], pl.Series]]) -> list[pl.Series]:
    """Bring columns to their types, or raise one error for all that do not fit."""
    typed_columns, errors = [], []
    for bring in columns:
        try:
            typed_columns.append(bring())
        except InputError as error:
            errors.append(error)
    refuse_together(errors)
    return typed_columns


def refuse_together(errors: Sequence[InputError]) -> None:
    """Raise one error for several columns, if there are any."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        said = [str(error) for error in errors[:SHOWN_COLUMNS]]
        if (more := len(errors) - SHOWN_COLUMNS) > 0:
            do = counted(more, "more column does", "more columns do")
            said.append(f"{do} not fit; `shoal inspect` lists all of them.")
        raise InputError(" ".join(said))


def leaving(dtype: pl.DataType, column: Column) -> pl.DataType:
    """Choose the type in which a column leaves: the one it came in, where that gives nothing away.

    An enumeration lists its categories, whether they occur or not. If the policy does not
    state them, the release must not show those that a method has made disappear.
    """
    if column.kind is Kind.NUMERIC and dtype == pl.Boolean:
        return pl.Int64()
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        if dtype.is_temporal() or (dtype == pl.Boolean and column.recode):
            return pl.String()
        stated = () if column.observed else column.all_categories or ()
        if isinstance(dtype, pl.Enum) and not set(stated).issuperset(dtype.categories):
            return pl.Categorical()
    return dtype


def check_names(frame: pl.DataFrame, schema: Schema) -> None:
    """Refuse columns that the policy does not name, and names that the data lacks."""
    if reason := unlike("The data", frame.columns, schema.names):
        raise InputError(reason)
    errors, guesses = [], ""
    for place, name in enumerate(frame.columns, start=1):
        if name not in schema.names:
            if not quotable(name):
                raise InputError(
                    f"Column {place} of the data has a name that the policy does not know, and "
                    "that is very long or has line breaks. Is a quote open in the header?"
                )
            guess = did_you_mean(name, set(schema.names) - set(frame.columns))
            guesses += guess
            unknown = (
                f"The data has a column '{name}' that the policy does not name.{guess} "
                f"Add a line under [columns], for example: {quoted(name)} = "
                '"identifier"'
            )
            errors.append(InputError(unknown))
    for name in schema.names:
        if name not in frame.columns and f"'{name}'" not in guesses:
            guess = did_you_mean(name, set(frame.columns) - set(schema.names))
            lacking = (
                f"The policy names a column '{name}' that the data lacks.{guess} "
                "Remove the line or correct the name."
            )
            errors.append(InputError(lacking))
    refuse_together(errors)


def persons_of(frame: pl.DataFrame, schema: Schema) -> NDArray[np.int64] | None:
    """Number the persons of the rows, where some have several: groups are then made of persons.

    A number of rows that the policy states is checked; one that it does not may be any.
    """
    persons = schema.persons
    if persons is None:
        return None
    column = schema[persons.column]
    unit = spelled(frame[column.name], column)
    refuse_nobody(persons, unit.null_count())
    if column.exact_contributions is not None or schema.one_row_per_person:
        move = "Correct the table, or remove the number from the policy: persons are then counted."
        refuse_uneven(persons, *uneven(unit, persons), rows=unit.len(), move=move)
    codes = (unit.rank("dense").cast(pl.Int64) - 1).to_numpy()
    return codes if int(codes.max()) + 1 < codes.size else None


def spelled(series: pl.Series, column: Column) -> pl.Series:
    """Write the column that numbers persons in one spelling for each person.

    Each cell by itself. Numbers by value: 7 and 7.0 are one person. Texts without blanks around
    them, invisible characters, and the difference of capitals and of Unicode's compatible forms
    (NFKC); what then reads as a number, by value: " 7", "07" and "7.0" are 7. Where in doubt two
    spellings are one person: groups then hold more persons than are counted, and a person keeps
    fewer rows. A blank cell is missing, and so is a mark of `missing`, which is spelled as it is.
    """
    cells = refuse_odd(series)
    text = cells.cast(pl.String)
    if cells.dtype.is_float():
        cells = cells.fill_nan(None)
        whole = (cells == cells.round()) & (cells.abs() < 2.0**63)
        digits = cells.set(~whole, None).cast(pl.Int64).cast(pl.String)
        text = digits.zip_with(whole.fill_null(value=False), cells.cast(pl.String))
    if not cells.dtype.is_integer():
        text = change_cells(text, r"[^!-~]", _visible).str.to_lowercase()
        text = change_cells(text, r"^[+-]?0|^\+|\.", _by_value)
        text = text.set(text == "", None)
    if column.missing:
        marks = spelled(pl.Series(column.missing), replace(column, missing=()))
        text = text.set(text.is_in(marks.implode()), None)
    return text


def _visible(text: pl.Series) -> pl.Series:
    return text.str.normalize("NFKC").str.replace_all(r"[\p{Cc}\p{Cf}]", "").str.strip_chars()


def _by_value(text: pl.Series) -> pl.Series:
    text = text.str.replace(r"^\+?(-?)0*(\d+)(?:\.0*)?$", "${1}${2}")
    return text.str.replace(r"^\+?(-?)0*(\d+\.\d*[1-9])0*$", "${1}${2}")


def composed(text: pl.Series) -> pl.Series:
    """Write texts in their composed normal form (NFC), each by itself.

    An accent may be a character of its own or part of its letter. A reader sees no difference, so
    the two must not count as two values.
    """
    return change_cells(text, r"[^\x00-\x7f]", lambda some: some.str.normalize("NFC"))


def change_cells(text: pl.Series, odd: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Change the cells that match a pattern; the others would come out as they are."""
    found = text.str.contains(odd).fill_null(value=False).arg_true()
    return text.clone().scatter(found, change(text.gather(found))) if found.len() else text


def at_most(table: Table, unit: pl.Series, persons: Persons, *, key: int) -> NDArray[np.int64]:
    """Choose the rows that an epsilon release uses, as many per person as the policy states.

    Which rows of a person stay is decided by those rows alone: the first in the order of a hash of
    their released cells, under a key that is drawn for the run. Neither the place of a row in
    the file nor another person's row has a say, and equal rows are interchangeable. Cells are
    hashed after they were clamped: the type of a column in the file may follow any of its cells.

    Returned are the numbers of the rows that stay, in their order. Rows without a person count as
    rows of one person, so a cell that is missing changes nobody else. Where the policy states how
    many rows every person has, they are refused, and so are persons with more or fewer. The error
    goes to the steward and names no person.
    """
    if not persons.dropped:
        refuse_nobody(persons, unit.null_count())
        refuse_uneven(persons, *uneven(unit, persons), rows=unit.len())
        return np.arange(unit.len())
    return first_of_each(table, unit, persons, key=key)


def first_of_each(
    table: Table, unit: pl.Series, persons: Persons, *, key: int
) -> NDArray[np.int64]:
    """Choose rows of persons all of whose rows are here; see `at_most`."""
    cells = table.frame.with_columns(pl.col(pl.Enum).cast(pl.String))
    hashes = cells.hash_rows(key)
    ranked = pl.DataFrame({"unit": unit, "hash": hashes})
    kept = ranked.select(pl.col("hash").rank("ordinal").over("unit") <= persons.most)
    return np.flatnonzero(kept.to_series().to_numpy())


def uneven(unit: pl.Series, persons: Persons) -> tuple[int, int]:
    """How many persons have another number of rows than the policy states, and how many are."""
    counts = unit.value_counts()["count"]
    return int((counts != persons.most).sum()), counts.len()


def refuse_nobody(persons: Persons, lacking: int) -> None:
    """Refuse rows without a person."""
    if lacking:
        raise InputError(
            f"Column '{persons.column}' numbers the persons, but "
            f"{counted(lacking, 'row lacks', 'rows lack')} it. Leave such rows out, or number "
            "their persons."
        )


STATE_MOST = "State max_contributions, or correct the table."
"""The next move where an epsilon release finds other numbers of rows than the policy states."""


def refuse_uneven(
    persons: Persons, wrong: int, found: int, *, rows: int, move: str = STATE_MOST
) -> None:
    """Refuse persons with another number of rows than the policy states, where it states one."""
    if not wrong:
        return
    if persons.most == 1:
        raise InputError(
            f"Column '{persons.column}' numbers the persons: expected one row per person, found "
            f"{counted(rows - found, 'more row')} than persons. {move}"
        )
    raise InputError(
        f"Column '{persons.column}': expected exactly {persons.most:,} rows per person, as "
        f"exact_contributions states; {wrong:,} of {found:,} "
        f"{'has' if wrong == 1 else 'have'} another number. {move}"
    )


def typed(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Parse a column as its kind says and apply the policy's steps, or say what does not fit."""
    series = marked_missing(refuse_odd(series), column)
    if column.kind is None:
        return series
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        return _categorical(series, column)
    return _date(series, column) if column.kind is Kind.DATE else _numeric(series, column, decimal)


def is_plain(dtype: pl.DataType) -> bool:
    """Whether the cells of a column are single numbers, texts, dates or truth values."""
    odd = isinstance(dtype, pl.Object | pl.Binary | pl.Duration | pl.Extension)
    return not odd and not dtype.is_nested()


def refuse_odd(series: pl.Series) -> pl.Series:
    """Refuse columns whose cells are not plain values."""
    if not is_plain(series.dtype):
        raise InputError(
            f"Column '{series.name}' holds {series.dtype.base_type()} values; expected one "
            "number, text or date per cell."
        )
    return series


def plain_column(series: pl.Series) -> pl.Series:
    """A column of Python's own values as one of plain type, or refuse it."""
    if isinstance(series.dtype, pl.Object):
        try:
            series = pl.Series(series.name, list(series))
        except (TypeError, ValueError, OverflowError, PolarsError):
            raise InputError(
                f"Column '{series.name}' holds values of several types; expected one number, text "
                "or date per cell. Convert it to text or to numbers first."
            ) from None
    return refuse_odd(series)


def marked_missing(series: pl.Series, column: Column) -> pl.Series:
    """Make the cells missing that the policy lists under `missing`."""
    if not column.missing:
        return series
    if series.dtype.is_numeric():
        marks = [float(mark) for mark in column.missing if is_number(mark)]
        values = series.cast(pl.Float64)
        hit = values.is_in([mark for mark in marks if not math.isnan(mark)])
        if any(map(math.isnan, marks)):
            hit |= values.is_nan()
    else:
        hit = composed(series.cast(pl.String)).is_in(list(column.missing))
    return series.set(hit.fill_null(value=False), None)


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numeric(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    if series.dtype == pl.String:
        values = parse_numbers(limits_coded(series, column), decimal=decimal)
    elif series.dtype.is_numeric() or series.dtype in {pl.Boolean, pl.Null}:
        whole = series.dtype.is_integer() or series.dtype == pl.Boolean
        values = series.cast(pl.Int64 if whole else pl.Float64, strict=False)
        if values.null_count() > series.null_count():
            values = series.cast(pl.Float64)  # whole numbers beyond 64 bits
    else:
        raise InputError(
            f"Column '{column.name}' is numeric by the policy; expected numbers, found "
            f"{series.dtype}."
        )
    misfits = [_misfit(
        values.is_null() & series.is_not_null(),
        "expected numbers, found something else",
        "Correct the cells, list them under 'missing', or state the decimal mark under [reading].",
    )]  # fmt: skip
    if values.dtype == pl.Float64 and not values.is_between(-LARGEST, LARGEST).all():
        large = values.is_finite() & (values.abs() > LARGEST)
        misfits += [_infinite(values), _misfit(large, f"found numbers beyond {LARGEST:g}", "")]
        values = values.set(~values.is_between(-LARGEST, LARGEST), None)
    _refuse(column, [*misfits, *_outside(values, column)])
    values = code_extremes(values, column)
    return rounded(values, column.step) if column.step else values


def _infinite(values: pl.Series) -> Misfit:
    return _misfit(
        ~values.is_finite(),
        "found NaN or infinite numbers",
        "Leave missing cells empty, or list them under 'missing'.",
    )


def parse_numbers(series: pl.Series, *, decimal: str | None) -> pl.Series:
    """Read numbers from text: as integers if all are, with a decimal comma if that fits.

    Marks between thousands and signs of currencies are read where the decimal mark is stated.
    """
    if decimal == ",":
        swapped = series.str.replace_many([",", "."], [".", ","])
        return parse_numbers(swapped, decimal=".")
    forms = (lambda text: text, lambda text: text.str.strip_chars(), unmarked)
    for form in forms if decimal else forms[:2]:
        text = form(series)
        for dtype in (pl.Int64, pl.Float64):
            # The first rows of most columns of fractions settle that they are not whole.
            for rows in (100, series.len()):
                values = text.head(rows).cast(dtype, strict=False)
                if values.null_count() > series.head(rows).null_count():
                    break
            else:
                return values
    # "1,234" may be a thousand: a comma is taken for a decimal mark only where some number
    # has other than three digits behind it.
    if decimal is None and not series.str.contains(".", literal=True).any():
        swapped = parse_numbers(series, decimal=",")
        plain = series.str.contains(r",(\d{1,2}|\d{4,})\s*$").any()
        if plain and swapped.null_count() == series.null_count():
            return swapped
    return text.cast(pl.Float64, strict=False)


def limits_coded(text: pl.Series, column: Column) -> pl.Series:
    """Read each "<4.0" as 4.0 where the column is coded at 4.0 or above, and ">200" likewise."""
    codes = {"<": column.bottom_code, ">": column.top_code}
    for mark, code in ((mark, code) for mark, code in codes.items() if code is not None):
        bare = text.str.replace(rf"^\s*{mark}=?\s*", "")
        limit = bare.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        coded = limit <= float(str(code)) if mark == "<" else limit >= float(str(code))
        text = bare.zip_with(coded.fill_null(value=False), text)
    return text


def unmarked(text: pl.Series) -> pl.Series:
    """Leave out marks between thousands, and the sign of a currency or of percent.

    That is a decision for each cell: "$1,234.50" becomes "1234.50", and a cell of another form
    stays as it is. The decimal mark is a point here.

    >>> unmarked(pl.Series(["$1,234.50", "1,2"])).to_list()
    ['1234.50', '1,2']
    """
    plain = text.str.replace_all(r"[^0-9.+-]", "")
    return plain.zip_with(text.str.contains(_MARKED).fill_null(value=False), text)


def rounded(values: pl.Series, step: Decimal) -> pl.Series:
    """Round to multiples of a step, half to even, exactly for steps such as 0.1; never to -0.0.

    NumPy divides; Polars multiplies by the reciprocal, which makes 0.30000000000000004 of 3/10.
    """
    numerator, denominator = map(float, step.as_integer_ratio())
    numbers = values.cast(pl.Float64).to_numpy()
    multiples = np.rint(numbers * denominator / numerator) * numerator / denominator + 0.0
    rounded = pl.Series(values.name, multiples, nan_to_null=True)
    exact = values.dtype == pl.Int64 and values.is_between(-(2**53), 2**53).all()
    return rounded.cast(pl.Int64) if exact and denominator == 1 else rounded


def _date(series: pl.Series, column: Column) -> pl.Series:
    if series.dtype == pl.String:
        values = dates.read(series, column.date_format)
    elif series.dtype in {pl.Date, pl.Null}:
        values = series.cast(pl.Date)
    elif isinstance(series.dtype, pl.Datetime):
        values = naive(series).cast(pl.Datetime("us"))
    else:
        raise InputError(
            f"Column '{column.name}' is a date by the policy; expected dates, found {series.dtype}."
        )
    unreadable = _misfit(
        values.is_null() & series.is_not_null(),
        f"expected dates of the form {column.date_format or dates.ISO}, found something else",
        _fitting_form(series),
    )
    _refuse(column, [unreadable, *_outside(values, column)])
    return first_days(code_extremes(values, column), column)


def first_days(values: pl.Series, column: Column) -> pl.Series:
    """Round dates down to the week, month, quarter or year of the policy, within the bounds."""
    if column.date_step is None:
        return values
    period = {"week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}[column.date_step]
    first = values.dt.truncate(period)
    return first if column.bounds is None else first.clip(lower_bound=limit(column.bounds[0]))


def _fitting_form(series: pl.Series) -> str:
    """The next move where dates are not read: the forms that all cells have, if there is one."""
    forms = dates.fitting(series) if series.dtype == pl.String else []
    stated = " or ".join(f'date_format = "{form}"' for form in forms)
    return f"All cells fit {stated}." if forms else "State the form with 'date_format'."


def naive(series: pl.Series) -> pl.Series:
    """Write times with a zone as times in UTC."""
    zoned = isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone
    return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zoned else series


def _outside(values: pl.Series, column: Column) -> Iterator[Misfit]:
    """Values outside the bounds; if all of them are usual marks of missing cells, say so."""
    if column.bounds is None:
        return
    low, high = column.bounds
    # A bound is a day, and includes all of it.
    days = values.cast(pl.Date) if isinstance(values.dtype, pl.Datetime) else values
    outside = ~days.is_between(limit(low), limit(high)).fill_null(value=True)
    move = "Widen the bounds, or correct the rows: top and bottom coding come after this check."
    numbers = column.kind is Kind.NUMERIC and outside.any()
    if numbers and values.filter(outside).cast(float).is_in(MARKS).all():
        move = (
            "The values look like marks of missing cells, such as -99 or 999: list them under "
            "'missing'."
        )
    yield _misfit(outside, f"expected values within the bounds [{low}, {high}], found others", move)


def limit(value: Decimal | date | str | None) -> Any:
    """A bound or a constant of the policy as the value that cells are compared with."""
    return float(value) if isinstance(value, Decimal) else value


def code_extremes(values: pl.Series, column: Column) -> pl.Series:
    """Code the top and the bottom of a typed column, as the policy says."""
    bottom, top = limit(column.bottom_code), limit(column.top_code)
    if bottom is None and top is None:
        return values
    if isinstance(values.dtype, pl.Enum):
        categories = values.dtype.categories
        ends = [None if end is None else categories.index_of(end) for end in (bottom, top)]
        places = values.to_physical().cast(pl.Int64).clip(*ends).cast(pl.UInt32)
        return categories.cast(values.dtype).gather(places).alias(column.name)
    if values.dtype == pl.Int64 and all(
        limit is None or float(limit).is_integer() for limit in (bottom, top)
    ):
        bottom, top = (None if limit is None else int(limit) for limit in (bottom, top))
    elif values.dtype == pl.Int64:
        values = values.cast(pl.Float64)
    elif isinstance(values.dtype, pl.Datetime):
        bottom, top = (
            None if limit is None else datetime(limit.year, limit.month, limit.day)  # noqa: DTZ001
            for limit in (bottom, top)
        )
    return values.clip(bottom, top).alias(column.name)


def _categorical(series: pl.Series, column: Column) -> pl.Series:
    if series.dtype.is_float():
        _refuse(column, [_infinite(series)])
    text, categories = as_text(series), column.all_categories
    if categories and not column.recoded and all(is_normalized("NFC", one) for one in categories):
        values = text.cast(pl.Enum(categories), strict=False)
        if values.null_count() == text.null_count():  # so all of it is composed
            return code_extremes(values, column)
    text = recode_text(composed(text), column)
    if categories is None:
        categories = tuple(sorted(text.drop_nulls().unique().to_list()))
    values = text.cast(pl.Enum(categories), strict=False)
    known = "leaves of its hierarchy" if column.hierarchy else "values of its categories"
    lacking = _misfit(
        values.is_null() & text.is_not_null(),
        f"expected {known}, found others",
        "Add them, or list them under 'missing' or 'recode'.",
    )
    _refuse(column, [lacking])
    return code_extremes(values, column)


def as_text(series: pl.Series) -> pl.Series:
    """Write categories as text: whole numbers without a point, truth values in lower case."""
    if series.dtype.is_float():
        if not ((series == series.round()) & series.is_between(-(2**53), 2**53)).all():
            return series.cast(pl.String).str.replace(r"\.0$", "")
        series = series.cast(pl.Int64)
    return series.cast(pl.String)


def _misfit(mask: pl.Series, what: str, move: str) -> Misfit:
    rows = mask.fill_null(value=False).arg_true() if mask.any() else pl.Series([], dtype=pl.UInt32)
    return Misfit(what, move, rows.len(), tuple((rows[:KEPT_ROWS] + 1).to_list()))


def _refuse(column: Column, misfits: Iterable[Misfit]) -> None:
    if found := [misfit for misfit in misfits if misfit.cells]:
        raise MisfitError(column.name, found)

"""Convert a frame to the types that its policy states, or report what does not fit.

The policy's own steps happen here: missing marks, recoding, top and bottom coding, rounding.
What does not fit is one error for all columns, with the numbers of the rows; it never shows a cell.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from unicodedata import is_normalized

import numpy as np
import polars as pl

from shoal.core import Column, Kind, Role, Schema
from shoal.errors import InputError, count_noun, did_you_mean, quotable, unlike
from shoal.io import dates
from shoal.io.cells import compose, recode_text, refuse_odd
from shoal.io.persons import households_of, persons_of
from shoal.io.table import Table
from shoal.io.text_files import quote

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
    """Cells of a column that violate the policy, for one reason.

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
        return f"{self.what} in {count_noun(self.cells, 'row')}{where}. {self.move}".rstrip()


class MisfitError(InputError):
    """Cells of a column violate the policy."""

    def __init__(self, column: str, misfits: Sequence[Misfit]) -> None:
        super().__init__(" ".join(f"Column '{column}': {misfit}" for misfit in misfits))
        self.column, self.misfits = column, tuple(misfits)


def validate(frame: pl.DataFrame, schema: Schema, *, decimal: str | None = None) -> Table:
    """Convert a frame to a schema, or report the columns and rows that do not fit.

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
    parsers = (partial(parse_column, frame[name], schema[name], decimal) for name in kept)
    columns_typed = fitting(parsers)
    columns = tuple(c for c in schema.columns if c.role is not Role.IDENTIFIER)
    dtypes = {name: leaving(frame.schema[name], schema[name]) for name in kept}
    # Rows are gathered in other orders, which is quicker from one chunk.
    typed = pl.DataFrame(columns_typed).rechunk()
    homes = households_of(frame, schema)
    return Table(typed, Schema(columns), dtypes, persons=persons, households=homes)


def fitting(columns: Iterable[Callable[[], pl.Series]]) -> list[pl.Series]:
    """Parse columns, or raise one error for all that do not fit."""
    typed_columns, errors = [], []
    for bring in columns:
        try:
            typed_columns.append(bring())
        except InputError as error:
            errors.append(error)
    refuse_together(errors)
    return typed_columns


def refuse_together(errors: Sequence[InputError]) -> None:
    """Raise one error for several columns, if there are errors."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        sentences = [str(error) for error in errors[:SHOWN_COLUMNS]]
        if (more := len(errors) - SHOWN_COLUMNS) > 0:
            do = count_noun(more, "more column does", "more columns do")
            sentences.append(f"{do} not fit; `shoal inspect` lists all of them.")
        raise InputError(" ".join(sentences))


def leaving(dtype: pl.DataType, column: Column) -> pl.DataType:
    """Choose a column's released type: its original type, unless that discloses something.

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
    """Refuse columns that the policy does not name, and policy columns that the table lacks."""
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
                f"Add a line under [columns], for example: {quote(name)} = "
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


def parse_column(series: pl.Series, column: Column, decimal: str | None) -> pl.Series:
    """Parse a column by its kind and apply the policy's steps, or raise what does not fit."""
    series = mark_missing(refuse_odd(series), column)
    if column.kind is None:
        return series
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        return _categorical(series, column)
    return _date(series, column) if column.kind is Kind.DATE else _numeric(series, column, decimal)


def mark_missing(series: pl.Series, column: Column) -> pl.Series:
    """Make the cells null that the policy lists under `missing`."""
    if not column.missing:
        return series
    if series.dtype.is_numeric():
        marks = [float(mark) for mark in column.missing if is_number(mark)]
        values = series.cast(pl.Float64)
        hit = values.is_in([mark for mark in marks if not math.isnan(mark)])
        if any(map(math.isnan, marks)):
            hit |= values.is_nan()
    else:
        hit = compose(series.cast(pl.String)).is_in(list(column.missing))
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
        integral = series.dtype.is_integer() or series.dtype == pl.Boolean
        values = series.cast(pl.Int64 if integral else pl.Float64, strict=False)
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
    return round_to_step(values, column.step) if column.step else values


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
    forms = (lambda text: text, lambda text: text.str.strip_chars(), drop_marks)
    for form in forms if decimal else forms[:2]:
        text = form(series)
        for dtype in (pl.Int64, pl.Float64):
            # In most columns of fractions, the first rows show that they are not whole.
            for rows in (100, series.len()):
                values = text.head(rows).cast(dtype, strict=False)
                if values.null_count() > series.head(rows).null_count():
                    break
            else:
                return values
    # "1,234" may be a thousand: a comma is taken for a decimal mark only if some number has other
    # than three digits behind it.
    if decimal is None and not series.str.contains(".", literal=True).any():
        swapped = parse_numbers(series, decimal=",")
        plain = series.str.contains(r",(\d{1,2}|\d{4,})\s*$").any()
        if plain and swapped.null_count() == series.null_count():
            return swapped
    return text.cast(pl.Float64, strict=False)


def limits_coded(text: pl.Series, column: Column) -> pl.Series:
    """Read "<4.0" as 4.0 if the column is bottom-coded at 4.0 or above, ">200" likewise."""
    codes = {"<": column.bottom_code, ">": column.top_code}
    for mark, code in ((mark, code) for mark, code in codes.items() if code is not None):
        bare = text.str.replace(rf"^\s*{mark}=?\s*", "")
        limit = bare.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        coded = limit <= float(str(code)) if mark == "<" else limit >= float(str(code))
        text = bare.zip_with(coded.fill_null(value=False), text)
    return text


def drop_marks(text: pl.Series) -> pl.Series:
    """Remove thousands separators, currency signs and percent signs.

    Each cell is read by itself: "$1,234.50" becomes "1234.50", and a cell of another form stays as
    it is. The decimal mark is a point here.

    >>> drop_marks(pl.Series(["$1,234.50", "1,2"])).to_list()
    ['1234.50', '1,2']
    """
    plain = text.str.replace_all(r"[^0-9.+-]", "")
    return plain.zip_with(text.str.contains(_MARKED).fill_null(value=False), text)


def round_to_step(values: pl.Series, step: Decimal) -> pl.Series:
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
    first = values.dt.truncate(dates.PERIODS[column.date_step])
    return first if column.bounds is None else first.clip(lower_bound=limit(column.bounds[0]))


def _fitting_form(series: pl.Series) -> str:
    """Advise which date format to state: those that fit all cells, if there are any."""
    forms = dates.fitting(series) if series.dtype == pl.String else []
    stated = " or ".join(f'date_format = "{form}"' for form in forms)
    return f"All cells fit {stated}." if forms else "State the form with 'date_format'."


def naive(series: pl.Series) -> pl.Series:
    """Convert times with a zone to UTC without a zone."""
    zoned = isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone
    return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zoned else series


def _outside(values: pl.Series, column: Column) -> Iterator[Misfit]:
    """Report values outside the bounds, and whether all are common missing marks."""
    if column.bounds is None:
        return
    low, high = column.bounds
    # A bound includes the whole of its day.
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
    """Convert a bound or a constant of the policy to the type of the cells."""
    return float(value) if isinstance(value, Decimal) else value


def code_extremes(values: pl.Series, column: Column) -> pl.Series:
    """Top-code and bottom-code a typed column, as the policy states."""
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
    if categories and not column.recoded and all(is_normalized("NFC", c) for c in categories):
        values = text.cast(pl.Enum(categories), strict=False)
        if values.null_count() == text.null_count():  # so all of it is composed
            return code_extremes(values, column)
    text = recode_text(compose(text), column)
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
    if wrong := [misfit for misfit in misfits if misfit.cells]:
        raise MisfitError(column.name, wrong)

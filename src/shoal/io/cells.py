"""Single cells: their types, Unicode normal form and recoding."""

from collections.abc import Callable

import polars as pl
from polars.exceptions import PolarsError

from shoal.core import Column
from shoal.errors import InputError


def compose(text: pl.Series) -> pl.Series:
    """Write each text in Unicode normal form C.

    An accent may be a character of its own or part of its letter. A reader sees no difference, so
    the two must not count as two values.
    """
    return change_cells(text, r"[^\x00-\x7f]", lambda some: some.str.normalize("NFC"))


def change_cells(text: pl.Series, odd: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply `change` to the cells that match a pattern, and leave the others as they are."""
    places = text.str.contains(odd).fill_null(value=False).arg_true()
    return text.clone().scatter(places, change(text.gather(places))) if places.len() else text


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
    """Convert a column of Python objects to a plain type, or refuse it."""
    if isinstance(series.dtype, pl.Object):
        try:
            series = pl.Series(series.name, list(series))
        except (TypeError, ValueError, OverflowError, PolarsError):
            raise InputError(
                f"Column '{series.name}' holds values of several types; expected one number, text "
                "or date per cell. Convert it to text or to numbers first."
            ) from None
    return refuse_odd(series)


def recode_text(text: pl.Series, column: Column) -> pl.Series:
    """Cut numbers into classes, codes to their prefix, and recode values, as the policy states.

    A class has its lower break. What reads as no number stays, such as the name of a class.
    """
    if column.breaks:
        numbers = text.str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)
        breaks = pl.Series([*map(float, column.breaks)])
        places = breaks.search_sorted(numbers.fill_null(0.0), side="right")
        cut = pl.Series(column.categories).gather(places)
        text = cut.zip_with(numbers.is_not_null(), text).alias(text.name)
    if column.prefix:
        text = text.str.strip_chars().str.slice(0, column.prefix)
    if column.recode:
        text = text.replace({old: new or None for old, new in column.recode.items()})
    return text

"""How dates are written: read by a policy's `date_format`, and written back by it.

A format is strptime's, as `%d.%m.%Y`. The words that people use in its place, `dd.mm.yyyy`, are
translated where the policy is read. A format may have a time of day.
"""

import re
from datetime import date, datetime
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from shoal.errors import InputError

ISO = "%Y-%m-%d"
"""How dates are written where the policy states no format."""
DATES = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%Y%m%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y",
    "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%Y年%m月%d日",
)  # fmt: skip
"""How people write days."""
_TIMES = re.compile(r"%-?[HIMSTRkl]")
_WORDS = re.compile(r"y+|m+|d+|h+|s+|[^ymdhs]+")
_DIRECTIVES = {
    "yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "m": "%m", "dd": "%d",
    "d": "%d", "hh": "%H", "h": "%H", "ss": "%S", "s": "%S",
}  # fmt: skip
_PROBE = datetime(2001, 12, 31, 22, 58, 59)  # noqa: DTZ001 (dates have no zone)


def strptime_format(pattern: str) -> str:
    """Translate a pattern of words to strptime's; what is one already stays.

    >>> strptime_format("dd.mm.yyyy hh:mm"), strptime_format("M/D/YYYY"), strptime_format("%Y")
    ('%d.%m.%Y %H:%M', '%m/%d/%Y', '%Y')
    """
    if "%" in pattern:
        return pattern
    form, in_time = "", False
    for word in _WORDS.findall(pattern.lower()):
        in_time = word.startswith("h") or (in_time and not word.startswith(("y", "d")))
        form += "%M" if in_time and word in {"m", "mm"} else _DIRECTIVES.get(word, word)
    return form


def in_words(form: str) -> str:
    """Write a format with the words that people use; the reverse of `strptime_format`.

    >>> in_words("%d.%m.%Y"), in_words("%d %b %Y %H:%M:%S%.f")
    ('dd.mm.yyyy', 'dd mmm yyyy hh:mm:ss')
    """
    words = {directive: word for word, directive in _DIRECTIVES.items() if len(word) > 1}
    found = re.sub(r"%-?[a-zA-Z]", lambda one: words.get(one[0].replace("-", ""), one[0]), form)
    return found.replace("%M", "mm").replace("%.f", "")


def days(value: Any) -> Any:
    """Read texts that are days, as 2023-09-17, as such; whatever else there is stays."""
    if isinstance(value, list | tuple):
        return [days(item) for item in value]
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        return value


def in_calendar(frame: pl.DataFrame, *, alone: bool) -> pl.DataFrame:
    """Make days outside the years 1 to 9999 missing, each by itself; refuse them if not `alone`.

    Parquet, Arrow and Polars hold such days as numbers, and Polars ends the process where one of
    them is written as text.
    """
    for column in frame.select(pl.col(pl.Date, pl.Datetime)):
        unit = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
        day = unit.get(getattr(column.dtype, "time_unit", ""), 1)
        epoch = date(1970, 1, 1).toordinal()
        first, last = ((end.toordinal() - epoch) * day for end in (date.min, date.max))
        cells = column.to_physical().cast(pl.Int128)
        outside = ~cells.is_between(first, last + day - 1).fill_null(value=True)
        if not outside.any():
            continue
        if not alone:
            raise InputError(
                f"Column '{column.name}' has a date outside the years 1 to 9999 in row "
                f"{outside.arg_true()[0] + 1:,}. Correct it, or make it missing."
            )
        cells = column.to_physical().set(outside, None)
        frame = frame.with_columns(cells.cast(column.dtype))
    return frame


def is_format(form: str) -> bool:
    """Whether a date that is written by a format can be read by it; months may do for days."""
    probe = pl.Series([_PROBE])
    try:
        back = read_days(probe.dt.to_string(form), form)
    except PolarsError:
        return False
    return bool((back.dt.truncate("1mo") == probe.cast(pl.Date).dt.truncate("1mo")).all()) and (
        back.null_count() == 0
    )


def read(text: pl.Series, form: str | None) -> pl.Series:
    """Read dates, and null where a text is none: times where the format has a time of day.

    Without a format, days as 2023-09-17; if some cell is no such day, and more are times, as
    2023-09-17T14:33:00 or with a blank for the T, times.
    """
    if form is not None and _TIMES.search(form):
        return text.str.to_datetime(form, time_unit="us", strict=False)
    values = text.str.to_date(form or ISO, strict=False)
    if form is None and values.null_count() > text.null_count():
        clear = text.str.replace(r"^(\d{4}-\d\d-\d\d) (\d)", "${1}T${2}")
        times = clear.str.to_datetime(f"{ISO}T%H:%M:%S%.f", time_unit="us", strict=False)
        values = times if times.null_count() < values.null_count() else values
    return values


def fitting(text: pl.Series) -> list[str]:
    """The forms by which every text is a day."""
    gaps = text.null_count()
    return [form for form in DATES if text.str.to_date(form, strict=False).null_count() == gaps]


def read_days(text: pl.Series, form: str | None) -> pl.Series:
    """Read the day of each text by itself, whatever its time of day; null where it is none."""
    if form is None:
        text = text.str.replace(r"^(\d{4}-\d\d-\d\d)[T ]\d\d:.*$", "${1}")
    return text.str.to_date(form or ISO, strict=False)


def written(values: pl.Series, form: str) -> pl.Series:
    """Write dates by a format; as they are where it cannot hold all their days, as %y in 1915."""
    text = values.cast(pl.Datetime("us")).dt.to_string(form)
    kept = read_days(text, form).eq_missing(values.cast(pl.Date)).all()
    return text.alias(values.name) if kept else values

"""Date formats: read dates by a policy's `date_format`, and write them back by it.

A format is strptime's, as `%d.%m.%Y`. The words that people use in its place, `dd.mm.yyyy`, are
translated where the policy is read. A format may have a time of day, and `%z` for an offset: the
day is that of the place, as written. `dd.mm.yy until 2024` says which century two digits mean, and
`era` reads Japanese years, as 令和5年4月1日, 昭和60.4.1 or R5.4.1; a year alone is its first day.
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
    "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%d%b%y", "%d. %m. %Y", "%Y年%m月%d日",
)  # fmt: skip
"""How people write days."""
PERIODS = {"week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
"""What dates are rounded to, as a policy and as Polars write it."""
_TIMES = re.compile(r"%-?[HIMSTRkl]")
_WORDS = re.compile(r"y+|m+|d+|h+|s+|[^ymdhs]+")
_DIRECTIVES = {
    "yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "m": "%m", "dd": "%d",
    "d": "%d", "hh": "%H", "h": "%H", "ss": "%S", "s": "%S",
}  # fmt: skip
ERA = "era"
_ERAS = {"明治": (1867, 45), "M": (1867, 45), "大正": (1911, 15), "T": (1911, 15),
         "昭和": (1925, 64), "S": (1925, 64), "平成": (1988, 31), "H": (1988, 31),
         "令和": (2018, 99), "R": (2018, 99)}  # fmt: skip
"""The year before each era, and how many years it had."""
_IN_ERA = (
    rf"^\s*({'|'.join(_ERAS)})\s*(元|\d{{1,2}})\s*[年./-]\s*"
    r"(?:(\d{1,2})\s*(?:[月./-]?\s*$|[月./-]\s*(\d{1,2})\s*日?))?\s*$"
)
_UNTIL = re.compile(r"(.*%y.*) until (\d{4})")
_OFFSET = r"(\d:\d\d(?::\d\d)?(?:\.\d+)?)\s*(?:Z|[+-]\d\d:?\d\d)$"
_PROBE = datetime(2001, 12, 31, 22, 58, 59)  # noqa: DTZ001 (dates have no zone)


def strptime_format(pattern: str) -> str:
    """Translate a pattern such as dd.mm.yyyy to strptime's; return strptime's own unchanged.

    >>> strptime_format("dd.mm.yyyy hh:mm"), strptime_format("M/D/YYYY"), strptime_format("%Y")
    ('%d.%m.%Y %H:%M', '%m/%d/%Y', '%Y')
    """
    if "%" in pattern or pattern == ERA:
        return pattern
    pattern, until, last = pattern.partition(" until ")
    form, in_time = "", False
    for word in _WORDS.findall(pattern.lower()):
        in_time = word.startswith("h") or (in_time and not word.startswith(("y", "d")))
        form += "%M" if in_time and word in {"m", "mm"} else _DIRECTIVES.get(word, word)
    return form + until + last


def in_words(form: str) -> str:
    """Write a format as people write it, such as dd.mm.yyyy; inverse of `strptime_format`.

    >>> in_words("%d.%m.%Y"), in_words("%d %b %Y %H:%M:%S%.f")
    ('dd.mm.yyyy', 'dd mmm yyyy hh:mm:ss')
    """
    words = {directive: word for word, directive in _DIRECTIVES.items() if len(word) > 1}
    spelt = re.sub(r"%-?[a-zA-Z]", lambda one: words.get(one[0].replace("-", ""), one[0]), form)
    return spelt.replace("%M", "mm").replace("%.f", "")


def days(value: Any) -> Any:
    """Convert ISO dates such as 2023-09-17 from text; return all other values unchanged."""
    if isinstance(value, list | tuple):
        return [days(item) for item in value]
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        return value


def in_calendar(frame: pl.DataFrame, *, alone: bool) -> pl.DataFrame:
    """Make days outside the years 1 to 9999 missing if cells are read `alone`, else refuse them.

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
    """Whether dates written by a format can be read by it; months may stand for days."""
    if form == ERA:
        return True
    pattern, last = _parts(form)
    if " until " in pattern:  # beside a year of four digits
        return False
    try:
        probe = pl.Series([_PROBE.replace(year=last or _PROBE.year)])
        back = read_days(probe.dt.to_string(pattern), form)
    except (PolarsError, ValueError):
        return False
    return bool((back.dt.truncate("1mo") == probe.cast(pl.Date).dt.truncate("1mo")).all()) and (
        back.null_count() == 0
    )


def read(text: pl.Series, form: str | None) -> pl.Series:
    """Read dates, or times where the format has a time of day; null where a text is neither.

    Without a format, ISO days such as 2023-09-17 are expected. If more cells are ISO times, such as
    2023-09-17T14:33:00 or with a blank in place of the T, the column is read as times.
    """
    text = text.str.replace(_OFFSET, "${1}")
    pattern, last = _parts(form or ISO)
    if _TIMES.search(pattern):
        return _until(text.str.to_datetime(pattern, time_unit="us", strict=False), last)
    values = read_days(text, form or ISO)
    if form is None and values.null_count() > text.null_count():
        clear = text.str.replace(r"^(\d{4}-\d\d-\d\d) (\d)", "${1}T${2}")
        times = clear.str.to_datetime(f"{ISO}T%H:%M:%S%.f", time_unit="us", strict=False)
        values = times if times.null_count() < values.null_count() else values
    return values


def fitting(text: pl.Series) -> list[str]:
    """List the date formats that fit every text."""
    gaps = text.null_count()
    return [form for form in (*DATES, ERA) if read_days(text, form).null_count() == gaps]


def read_days(text: pl.Series, form: str | None) -> pl.Series:
    """Read the day of each text, ignoring its time of day; null where it has none."""
    if form is None:
        text = text.str.replace(r"^(\d{4}-\d\d-\d\d)[T ]\d\d:.*$", "${1}")
    if form == ERA:
        return _from_era(text)
    pattern, last = _parts(form or ISO)
    return _until(text.str.replace(_OFFSET, "${1}").str.to_date(pattern, strict=False), last)


def _parts(form: str) -> tuple[str, int | None]:
    """Split a format into strptime's pattern and the last year that two digits may mean."""
    match = _UNTIL.fullmatch(form)
    pattern = match[1] if match else form
    return pattern.replace("%z", "").removesuffix("Z").strip(), int(match[2]) if match else None


def _until(values: pl.Series, last: int | None) -> pl.Series:
    """Move two-digit years to the hundred years up to `last`; null where no such day exists."""
    if last is None:
        return values
    centuries = (last - values.dt.year()) // 100
    moved = pl.DataFrame({"day": values, "by": centuries}).select(
        pl.col("day").dt.offset_by(pl.format("{}y", pl.col("by") * 100))
    )["day"]
    kept = (moved.dt.day() == values.dt.day()).fill_null(value=True)
    return moved.set(~kept, None).alias(values.name)


def _from_era(text: pl.Series) -> pl.Series:
    """Read days with years of Japanese eras; null where a year lies beyond its era."""
    cells = text.str.normalize("NFKC").str.extract_groups(_IN_ERA).struct.unnest()
    era, year, month, day = cells.columns
    first, most = ({name: pair[at] for name, pair in _ERAS.items()} for at in (0, 1))
    number = pl.col(year).replace("元", "1").cast(pl.Int32)
    full = number + pl.col(era).replace_strict(first, default=None, return_dtype=pl.Int32)
    fits = number.is_between(
        1, pl.col(era).replace_strict(most, default=None, return_dtype=pl.Int32)
    )
    parts = (pl.col(name).fill_null("1").cast(pl.Int8) for name in (month, day))
    iso = pl.format("{}-{}-{}", full, *(part.cast(pl.String).str.zfill(2) for part in parts))
    dates = cells.select(pl.when(fits).then(iso)).to_series()
    return dates.str.to_date(ISO, strict=False).alias(text.name)


def write_dates(values: pl.Series, form: str) -> pl.Series:
    """Write dates by a format, or unchanged where it cannot hold them all, as %y and 1915."""
    text = values.cast(pl.Datetime("us")).dt.to_string(_parts(form)[0])
    kept = read_days(text, form).eq_missing(values.cast(pl.Date)).all()
    return text.alias(values.name) if kept else values

"""Recognise what a column's values are: missing marks, numbers, dates, codes, orders."""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.io.cells import compose, is_plain
from shoal.io.dates import DATES, ERA, read_days
from shoal.io.raw import Raw
from shoal.io.validate import as_text, is_number, parse_numbers

NEARLY_ALL = 0.9
"""Share of distinct values from which a column of texts or codes names its rows."""
FEW_MARKS = 0.2
"""The share of cells up to which 8 or 9 behind a gap stand for no answer."""
FEW_ROWS = 10
"""Below this many rows, values say little about a column."""
TIMES = (
    "", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", "T%H:%M:%S", " %H:%M:%S%.f",
    "T%H:%M:%S%.f",
)  # fmt: skip
"""What may follow a date; a date is read without it."""
COMPACT = ("%Y%m%d", "%Y%m%d%H%M%S")
"""Dates that are whole numbers."""
MONTH = "%Y-%m"
"""Months are categories in order, but those of births are days, as they span a life."""
LIFE = 30
"""The fewest years that births span."""
WIDE = 10
"""So many years without a date show where two-digit years begin."""
_BAND = re.compile(
    r"(?P<below><=?|under|below|up to|unter|bis|moins de|menos de|meno di|onder)?\s*"
    r"(?P<low>\d+(?:[.,]\d+)?)\s*(?:k|€|\$|%)?\s*"
    r"(?:(?:-|\u2013|to|bis|à|a|tot|y)\s*(?P<high>\d+(?:[.,]\d+)?)\s*(?:k|€|\$|%)?)?\s*"
    r"(?P<above>\+|and over|and more|or more|und mehr|und älter|et plus|y más|e più|en meer)?"
    r"\s*(?:years|jahre|ans|años|anni|jaar)?"
)
"""A range of numbers, as in 18-24, <18 or 65+."""
_NO_ANSWER = re.compile(
    r"\b(missing|refus|no answer|don.?t know|not (stated|asked|applicable|available)|inap"
    r"|keine angabe|wei(ss|ß) nicht|verweiger|trifft nicht|sans r.ponse|nsp|no sabe|ns/nc"
    r"|non risponde|geen antwoord)"
)
_PERIOD = r"^(19|20)\d\d(-(0[1-9]|1[0-2])|-?W[0-5]\d|-?Q[1-4])$"
"""A month, a week or a quarter, which sort as they are written."""
_SENTINEL = re.compile(r"9{2,}(\.9+)?|9+[4-8]|8{2,}|7{2,}|6{3,}")
"""How large numbers are written that stand for missing; 77 and 88 do so beside each other or 99."""


@cache
def words() -> Mapping[str, str]:
    """Load the word lists of `column_words.toml`."""
    return tomllib.loads(Path(__file__).with_name("column_words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The distinct values of a column with their counts, without those that mean missing.

    Attributes:
        cells: the column as it was read.
        values: the distinct values that are present, sorted.
        counts: how often each occurs.
        missing: texts and numbers that mean missing, as they are written.
        numbers: the values as numbers, where all of them are.
        labels: what the file says of a value.
        measure: the measurement level that the file states: nominal, ordinal or scale.
        ordered: the categories in order, where the column's type has one.
        limits: the largest x of values as "<x", and the smallest of values as ">x".
    """

    cells: pl.Series
    values: pl.Series
    counts: pl.Series
    missing: tuple[str, ...] = ()
    numbers: pl.Series | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    measure: str = ""
    ordered: tuple[str, ...] = ()
    limits: tuple[float | None, float | None] = (None, None)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return self.cells.len()

    @property
    def distinct(self) -> int:
        """How many distinct values are present."""
        return self.values.len()

    @property
    def present(self) -> int:
        """How many cells have a value."""
        return int(self.counts.sum())

    @cached_property
    def text(self) -> pl.Series:
        """The distinct values as texts."""
        return compose(as_text(self.values))

    @cached_property
    def date_forms(self) -> list[str]:
        """Date formats that fit all values, with years in which somebody may be alive."""
        return _date_forms(self)

    @cached_property
    def days(self) -> pl.Series | None:
        """The values as days, where all of them are."""
        if self.values.dtype.is_temporal() and self.values.dtype != pl.Time:
            return self.values.cast(pl.Date, strict=False)
        forms = self.date_forms
        return read_days(self.text.str.strip_chars(), forms[0]) if forms else None

    def to_typed(self, rows: int | None = None) -> pl.Series:
        """The first cells, or all, as numbers, days or texts; what means missing is null."""
        read = self.days if self.numbers is None else self.numbers
        values = pl.DataFrame({"cell": self.values, "read": self.text if read is None else read})
        values = values.unique("cell", maintain_order=True)
        return self.cells.head(self.rows if rows is None else rows).replace_strict(
            values["cell"], values["read"], default=None, return_dtype=values["read"].dtype
        )

    @cached_property
    def is_period(self) -> bool:
        """Whether the values are months, weeks or quarters of years."""
        return bool(self.distinct and self.text.str.contains(_PERIOD).all())

    @property
    def unbroken(self) -> bool:
        """Whether no value has decimals: whole numbers of any length, or texts."""
        return self.numbers is None or bool((self.numbers == self.numbers.round()).all())

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers that a computer adds exactly."""
        exact = self.numbers is not None and bool((self.numbers.abs() < 2.0**53).all())
        return exact and self.unbroken

    @property
    def decimals(self) -> Decimal | None:
        """The unit of the last decimal place in use, at most three places; 1 if all are whole."""
        if self.numbers is None or not bool((self.numbers.abs() < 1e9).all()):
            return Decimal(1) if self.whole else None
        for places in range(4):
            scaled = self.numbers * 10.0**places
            if bool(((scaled - scaled.round()).abs() <= 1e-9 * (1 + scaled.abs())).all()):
                return Decimal(1).scaleb(-places)
        return None

    @property
    def round_amounts(self) -> bool:
        """Whether most cells are multiples of ten, as amounts are."""
        if self.numbers is None or (self.numbers.max() or 0) < 100:  # type: ignore[operator]
            return False
        return bool(self.counts.filter(self.numbers % 10 == 0).sum() > 0.8 * self.present)

    @property
    def names_rows(self) -> bool:
        """Whether nearly every row has a value of its own."""
        return self.present >= FEW_ROWS and self.distinct > NEARLY_ALL * self.present

    @property
    def constant(self) -> bool:
        """Whether all rows have the same value."""
        return self.distinct == 1 and self.present == self.rows >= FEW_ROWS

    @property
    def sorted_in_file(self) -> bool:
        """Whether the numbers never decrease down the rows."""
        numbers = self.cells.drop_nulls().cast(pl.Float64, strict=False)
        return not numbers.null_count() and numbers.is_sorted()

    def says_missing(self, value: str) -> bool:
        """Whether the label of a value says that there was no answer."""
        return bool(_NO_ANSWER.search(self.labels.get(value, "").lower()))

    def without(self, lacking: pl.Series) -> "ColumnValues":
        """Move some of the values to the missing marks."""
        return replace(
            self,
            values=self.values.filter(~lacking),
            counts=self.counts.filter(~lacking),
            missing=(*self.missing, *as_text(self.values.filter(lacking)).to_list()),
            numbers=None if self.numbers is None else self.numbers.filter(~lacking),
        )


def all_values(
    raw: Raw, *, decimal: str | None = None, missing: Collection[str] = ()
) -> dict[str, ColumnValues]:
    """Describe the values of each column, except columns whose cells are not plain values.

    Args:
        raw: the table.
        decimal: the decimal mark of numbers in text; found out where not given.
        missing: cells that mean missing in every column, beside those that are recognised.
    """
    return {
        series.name: column_values(series, raw, decimal=decimal, missing=missing)
        for series in raw.frame
        if is_plain(series.dtype)
    }


def column_values(
    series: pl.Series, raw: Raw, *, decimal: str | None = None, missing: Collection[str] = ()
) -> ColumnValues:
    """Count the values of a column, find missing marks, and read numbers.

    `raw` has what the file says of the column. For the other arguments see `all_values`.
    """
    name = series.name
    cells = series.cast(pl.String) if isinstance(series.dtype, pl.Categorical | pl.Enum) else series
    nan = bool(cells.dtype.is_float() and cells.is_nan().any())
    cells = cells.fill_nan(None) if cells.dtype.is_float() else cells
    counts = cells.drop_nulls().value_counts(sort=False, name="\0count").sort(name)
    column = ColumnValues(
        cells=cells,
        values=counts[name],
        counts=counts["\0count"],
        missing=("nan",) if nan else (),
        labels=raw.labels.get(name, {}),
        measure=raw.measures.get(name, ""),
        ordered=raw.ordered.get(name, ()),
    )
    if marks := [*missing, *raw.missing.get(name, ())]:
        column = column.without(column.text.str.strip_chars().is_in(marks))
    column = _with_limits(_without_marks(column), decimal)
    return _without_sentinels(_with_numbers(column, decimal, raw.reading.get("delimiter")))


def _without_marks(column: ColumnValues) -> ColumnValues:
    """Move texts such as NA to the missing marks; NA stays where it may be a country code."""
    if column.values.dtype != pl.String:
        return column
    lower = column.values.str.strip_chars().str.to_lowercase()
    marks = lower.is_in(words()["missing"].strip().split("\n")) | (lower == "")
    if column.distinct > 2 and column.values.filter(~marks).str.contains(r"^[A-Z]{2}$").all():
        marks &= ~lower.is_in(["na", "nr"])
    return column.without(marks)


def _with_limits(column: ColumnValues, decimal: str | None) -> ColumnValues:
    """Read "<4.0" and ">200" as limits, if the other values are numbers."""
    if column.values.dtype != pl.String:
        return column
    marks = column.values.str.extract(r"^\s*([<>])=?\s*\d", 1)
    bare = column.values.str.replace(r"^\s*[<>]=?\s*", "")
    numbers = parse_numbers(bare, decimal=decimal).cast(pl.Float64)
    if not marks.count() or numbers.null_count() or 2 * marks.count() > column.distinct:
        return column
    low, high = (numbers.filter(marks == mark) for mark in "<>")
    limits = cast("tuple[float | None, float | None]", (low.max(), high.min()))
    cells = column.cells.str.replace(r"^\s*[<>]=?\s*", "")
    return replace(column, cells=cells, values=bare, limits=limits)


def _with_numbers(column: ColumnValues, stated: str | None, delimiter: str | None) -> ColumnValues:
    """Read the values as numbers if all but a few words, such as N for not applicable, are."""
    values = column.values
    if values.dtype.is_numeric():
        return replace(column, numbers=values.cast(pl.Float64))
    if values.dtype != pl.String or not values.len():
        return column
    if stated is not None:
        return _read(column, stated) or column
    if (plain := _read(column, None)) is not None:
        return plain
    point, comma = _read(column, "."), _read(column, ",")
    if point is None or comma is None:
        return point or comma or column
    # "1,234" may be a thousand or a fraction: another mark in the column decides, or a comma as the
    # cells' delimiter.
    alike = cast("pl.Series", point.numbers).equals(cast("pl.Series", comma.numbers))
    return point if alike or delimiter == "," else column


def _read(column: ColumnValues, decimal: str | None) -> ColumnValues | None:
    values = column.values
    odd = parse_numbers(values, decimal=decimal).is_null()
    strange = values.filter(odd)
    few = strange.len() <= 3 and 2 * strange.len() + 2 <= values.len() - strange.len()
    wordy = not strange.str.contains(r"\d").any() and (strange.str.len_chars() <= 20).all()
    if strange.len() and not (few and wordy):
        return None
    kept = column.without(odd) if strange.len() else column
    numbers = parse_numbers(kept.values, decimal=decimal)
    return None if numbers.null_count() else replace(kept, numbers=numbers.cast(pl.Float64))


def _without_sentinels(column: ColumnValues) -> ColumnValues:
    """Move numbers that stand for missing to the marks: -99 among positives, 999 far above all."""
    if column.numbers is None:
        return column
    values = column.numbers.to_numpy()
    written = [f"{value:.15g}" for value in values.tolist()]
    low = _matching(written, re.compile(r"-1|-\d?(9+|8+|7+|9[78])"))
    marks = low & bool((values[~low] >= 0).all())
    high = _matching(written, _SENTINEL)
    if len({"77", "88", "99"}.intersection(written)) < 2:
        high &= ~_matching(written, re.compile("77|88"))
    marks |= _beyond_scale(values, column)
    rest = values[~high & ~marks]
    if rest.size:
        far = 4 if column.distinct > 100 else 1.6
        marks |= high & (values >= far * max(float(rest.max()), 1.0))
    marks |= np.array([column.says_missing(text) for text in written], dtype=bool)
    return column.without(pl.Series(marks)) if marks.any() and not marks.all() else column


def _beyond_scale(values: NDArray[np.float64], column: ColumnValues) -> NDArray[np.bool_]:
    """Find 9, or 8 and 9, beyond a gap above a scale from 0 or 1, where few cells have them."""
    scale = values[~np.isin(values, (8, 9))]
    none, counts = np.zeros(values.size, dtype=bool), column.counts.to_numpy()
    consecutive = 3 <= scale.size == np.ptp(scale) + 1 and scale.min() in {0, 1} and scale.max() < 8
    if not consecutive or values.max() > 9 or column.labels or column.measure:
        return none
    marks = values > scale.max() + 1
    last, usual = counts[values == scale.max()][0], np.median(counts[~marks])
    declining = last < usual / 2  # as counts do
    return none if declining or counts[marks].sum() > FEW_MARKS * column.present else marks


def _matching(written: Sequence[str], pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    return np.array([bool(pattern.fullmatch(text)) for text in written], dtype=bool)


# Dates


def _date_forms(column: ColumnValues) -> list[str]:
    text = column.text
    if column.values.dtype.is_float() or not text.len():
        return []
    some = text.gather_every(max(1, text.len() // 50)).str.strip_chars()
    if column.values.dtype.is_integer():
        return [form for form in COMPACT if _is_form(some, text, form)]
    if _is_form(some, text, ERA):
        return [ERA]
    if column.is_period and _is_form(some, text, MONTH):
        years = read_days(text, MONTH).dt.year()
        return [MONTH] if int(years.max()) - int(years.min()) >= LIFE else []  # type: ignore[arg-type]
    day = (
        r"^[\dA-Za-z]{1,9}[-./ ]{0,2}[\dA-Za-z]{1,9}[-./, ]{0,2}\d{1,4}|^\d{4}年\d{1,2}月\d{1,2}日"
    )
    if not some.str.contains(day).all():
        return []
    timed = bool(some.str.contains(":").all())
    ends = TIMES[1:] if timed else TIMES[:1]
    blank = bool(some.str.contains(r"\s").all())  # one of the form would fit none in the text
    forms = [form + end for form in DATES for end in ends if (" " in form + end) is blank]
    forms += COMPACT[1:]
    return [_in_century(text, form) for form in forms if _is_form(some, text, form)]


def _in_century(text: pl.Series, form: str) -> str:
    """Choose the century of two-digit years that would otherwise lie in the future.

    The years are cut at the widest gap of a century; of the hundred years' spans that begin there,
    the last that has begun is meant.
    """
    now, years = datetime.now(UTC).year, read_days(text.str.strip_chars(), form).dt.year()
    if "%y" not in form or int(years.max()) <= now:  # type: ignore[arg-type]
        return form
    digits = np.unique(years.to_numpy() % 100)
    gaps = np.diff(digits, append=digits[0] + 100)
    first = int(digits[(gaps.argmax() + 1) % digits.size])
    last = now - (now - first) % 100 + 100 - int(gaps.max())
    return f"{form} until {last if gaps.max() > WIDE else now}"


def _is_form(some: pl.Series, text: pl.Series, form: str) -> bool:
    if form in COMPACT and not some.str.contains(r"^(19|20)\d{6}(\d{6})?$").all():
        return False
    return all(_fits(cells, form) for cells in (some, text))


def _fits(text: pl.Series, form: str) -> bool:
    read = read_days(text, form)
    return not read.null_count() and bool(read.dt.year().is_between(1500, 2150).all())


def join_spellings(column: ColumnValues) -> dict[str, str]:
    """Map spellings that differ only by case or blanks to the most frequent one."""
    trimmed = column.text.str.strip_chars().str.replace_all(r"\s+", " ")
    plain = trimmed == column.text  # which is better than one with blanks
    frame = pl.DataFrame({"text": column.text, "plain": plain, "count": column.counts})
    order = pl.col("text").sort_by("plain", "count", "text", descending=[True, True, False])
    joined = frame.with_columns(most=order.first().over(trimmed.str.to_lowercase()))
    return dict(joined.filter(pl.col("text") != pl.col("most")).select("text", "most").rows())


# Codes and orders


def is_count(column: ColumnValues) -> bool:
    """Whether whole numbers run from 0 without gaps and become rarer, as counts do."""
    if column.numbers is None or not column.whole or column.distinct < 4:
        return False
    place = column.numbers.arg_sort()
    counts = column.counts.gather(place).to_numpy()
    consecutive = column.numbers.gather(place).to_list() == list(range(column.distinct))
    return consecutive and bool((np.diff(counts[1:]) <= 0).all())


def is_smooth(column: ColumnValues) -> bool:
    """Whether adjacent whole numbers are about equally frequent, as counts and measurements are.

    Only repeated numbers can show it. Amounts that are mostly round count as smooth.
    """
    if column.numbers is None or column.round_amounts or column.present < 5 * column.distinct:
        return True
    order = column.numbers.arg_sort()
    values = column.numbers.gather(order).to_numpy().astype(np.int64)
    counts = column.counts.gather(order).to_numpy()
    below = np.cumsum(counts) / counts.sum()
    core = (below >= 0.02) & (below <= 0.98)
    values, counts = values[core], counts[core]
    if values.size < 4 or values.size < 0.5 * (values[-1] - values[0] + 1):
        return False
    filled = np.zeros(values[-1] - values[0] + 1)
    filled[values - values[0]] = counts
    left, right = filled[:-1] - filled[:-1].mean(), filled[1:] - filled[1:].mean()
    spread = np.sqrt((left @ left) * (right @ right))
    return bool(spread > 0 and left @ right > 0.4 * spread)


def order(values: Collection[str]) -> tuple[str, ...] | None:
    """Sort values by the order that their words or numbers state, or return None.

    >>> order(["high", "low", "medium"])
    ('low', 'medium', 'high')
    >>> order(["65+", "18-24", "<18", "25-64"])
    ('<18', '18-24', '25-64', '65+')
    """
    lower = {value: re.sub(r"[\s_-]+", " ", value.strip().lower()) for value in values}
    for line in words()["scales"].strip().splitlines():
        scale = line.split(", ")
        if set(lower.values()) <= set(scale):
            return tuple(sorted(values, key=lambda value: scale.index(lower[value])))
    return _bands(tuple(values))


def _bands(values: Sequence[str]) -> tuple[str, ...] | None:
    """Sort ranges of numbers, at least half of which have two ends or one open end."""
    bands = [_BAND.fullmatch(value.strip().lower()) for value in values]
    keys: dict[str, tuple[float, int]] = {}
    ranges = 0
    for value, band in zip(values, bands, strict=True):
        if band is None:
            return None
        low = float(band["low"].replace(",", "."))
        high = float(band["high"].replace(",", ".")) if band["high"] else None
        if high is not None and (low > high or re.match(r"\s*0\d", value)):
            return None
        ranges += high is not None or bool(band["below"] or band["above"])
        keys[value] = (low, -1 if band["below"] else 1)
    if 2 * ranges < len(keys) or len(set(keys.values())) < len(keys):
        return None
    return tuple(sorted(values, key=keys.__getitem__))


def find_order(column: ColumnValues, *, calendar: bool) -> tuple[str, ...] | None:
    """Return the categories in order: the file's, the calendar's, or that of their words."""
    if column.ordered:
        return column.ordered
    values = column.text.unique().to_list()
    if column.is_period:
        return tuple(sorted(values))
    if column.measure == "ordinal" or (calendar and column.numbers is not None):
        return tuple(sorted(values, key=lambda v: (float(v) if is_number(v) else 0.0, v)))
    return order(values) if len(values) >= 3 else None

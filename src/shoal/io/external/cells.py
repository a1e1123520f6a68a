"""The text of one released cell: a value, an interval, a set, a mask, or nothing.

Every value is a span of places [first, after): the whole number 20 is [20, 21), a day or a year
its days, a category its place in the public order. An interval is written with two values, and
its ends follow from their spans: an end that is included takes the far side of its value, an end
that is not takes the near side. So one grammar serves numbers, dates and categories.
"""

import math
import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

Span = tuple[float, float]
Point = Callable[[str], Span | None]
"""Reads one value as the places that it covers, or nothing."""


class Form(IntEnum):
    """How a released cell was written."""

    ONE = 0
    RANGE = 1
    OPEN = 2
    SET = 3
    NODE = 4
    MASK = 5
    STAR = 6
    MISSING = 7
    UNKNOWN = 8


class Cell(NamedTuple):
    """A released cell as an interval: lower <= x < upper; a single number has lower == upper.

    Attributes:
        gap: width of the parts of the interval that the cell does not include.
        loose: a category that matched only once case, spaces or a final ".0" were ignored.
    """

    form: Form
    lower: float = -math.inf
    upper: float = math.inf
    gap: float = 0.0
    loose: bool = False


MISSING = frozenset(
    ("", "na", "n/a", "n.a.", "#n/a", "nan", "nat", "null", "none", "<na>", "?", ".", "-")
)
"""Texts, in lower case, that mean missing where they are not a category."""

_STARS = re.compile(r"\*+")
_OPENING = {"[": True, "(": False, "]": False}
_CLOSING = {"]": True, ")": False, "[": False}
_DASHES = "\u2012\u2013\u2014-"
_INSIDE = re.compile(rf"[,;:~{_DASHES}]|\.{{2,3}}|\u2026|\bto\b")
_BARE = re.compile(rf"[~/{_DASHES}]|\.{{2,3}}|\u2026|\bto\b|\buntil\b")
_INFINITE = {sign + word for sign in ("", "+", "-") for word in ("inf", "infinity", "∞")}
_COMPARED = re.compile(
    r"(>=|=>|≥|>|<=|=<|≤|<|(?:over|above|under|below|less than|more than)\s)\s*(.+)"
)
_TRAILED = re.compile(
    r"(.+?)\s*(\+|(?:and|or) (?:over|above|more|older|higher)"
    r"|(?:and|or) (?:under|below|less|younger|lower))"
)
_ABOVE = {">=", "=>", "≥", "+"}
_BEYOND = {">", "over", "above", "more than"}
_UP_TO = {"<=", "=<", "≤"}


def absent(text: str) -> Cell | None:
    """Read a cell that holds no value: only stars, or a missing mark; None for other cells."""
    if _STARS.fullmatch(text):
        return Cell(Form.STAR)
    return Cell(Form.MISSING) if text.lower() in MISSING else None


def interval(text: str, point: Point) -> Cell | None:
    """Read an interval in any common notation; None if it is ambiguous or not an interval.

    Ends may be excluded by "(" or by a bracket that faces outwards; bare ranges such as "20-29"
    include both. An end may be open: infinite, or left out between brackets.

    >>> interval("[20, 30)", lambda text: (float(text), float(text) + 1))[:3]
    (<Form.RANGE: 1>, 20.0, 30.0)
    """
    spans = {span for span in _readings(text, point) if span[0] < span[1]}
    if len(spans) != 1:
        return None
    ((lower, upper),) = spans
    form = Form.OPEN if math.isinf(lower) or math.isinf(upper) else Form.RANGE
    return Cell(form, lower, upper)


def _readings(text: str, point: Point) -> Iterator[Span]:
    if text[:1] in _OPENING and text[-1:] in _CLOSING and len(text) > 2:
        for left, right in _halves(text[1:-1], _INSIDE):
            low, high = _end(left, point, lowest=True), _end(right, point, lowest=False)
            if low and high:
                yield low[not _OPENING[text[0]]], high[_CLOSING[text[-1]]]
        return
    if (match := _COMPARED.fullmatch(text)) and (span := point(match[2].strip())):
        yield _beside(match[1].strip(), span)
    elif (match := _TRAILED.fullmatch(text)) and (span := point(match[1])):
        below = match[2].endswith(("under", "below", "less", "younger", "lower"))
        yield _beside("<=" if below else ">=", span)
    for left, right in _halves(text, _BARE):
        first, second = point(left), point(right)
        if first and second:
            yield first[0], second[1]


def _halves(text: str, mark: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts on both sides of each separator in turn."""
    for match in mark.finditer(text):
        left, right = text[: match.start()].strip(), text[match.end() :].strip()
        if match[0] in {",", ";"} or (left and right):
            yield left, right


def _end(text: str, point: Point, *, lowest: bool) -> Span | None:
    if not text or text.lower() in _INFINITE:
        towards_low = not text or text[0] == "-"
        if text and towards_low is not lowest:
            return None
        return (-math.inf, -math.inf) if lowest else (math.inf, math.inf)
    return point(text)


def _beside(sign: str, span: Span) -> Span:
    if sign in _ABOVE:
        return span[0], math.inf
    if sign in _BEYOND:
        return span[1], math.inf
    return -math.inf, span[1] if sign in _UP_TO else span[0]


def number(text: str, mark: str) -> float | None:
    """Read one number with a decimal mark, or None.

    >>> number("-1,5", ","), number("1,5", ".")
    (-1.5, None)
    """
    if _NUMBER[mark].fullmatch(text) is None:
        return None
    value = float(text.replace(",", "."))
    return value if abs(value) <= 1e150 else None


_NUMBER = {
    ".": re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(?:\d+(?:,\d+)?|,\d+)(?:[eE][+-]?\d+)?"),
}


def numeric(text: str, marks: Sequence[str], *, whole: bool) -> Cell:
    """Read a cell of a numeric column; decimal marks are tried in order.

    In a column of whole numbers 29 reaches up to 30.
    """
    text = text.replace("\u2212", "-")  # the minus sign of typesetters
    nothing = absent(text)
    if nothing:
        return nothing
    if whole and (match := re.fullmatch(r"(\d+)(\*+)", text)):
        unit = 10.0 ** len(match[2])
        return Cell(Form.MASK, float(match[1]) * unit, (float(match[1]) + 1) * unit)
    for mark in marks:

        def span(part: str, mark: str = mark) -> Span | None:
            value = number(part, mark)
            return None if value is None else around(value, whole=whole)

        value = number(text, mark)
        if value is not None:
            return Cell(Form.ONE, value, value)
        cell = _set_of(text, span) or interval(text, span)
        if cell:
            return cell
    return Cell(Form.UNKNOWN)


def around(value: float, *, whole: bool) -> Span:
    """Return the interval that a number covers: up to the next number of its column."""
    beyond = math.nextafter(value, math.inf)
    if not whole:
        return value, beyond
    up = float(math.ceil(value))
    return up, (max(up + 1, beyond) if up == value else up)


def _set_of(text: str, point: Point) -> Cell | None:
    inner = _unwrap(text, "{")
    if inner is None:
        return None
    for mark in (";", "|", ","):
        spans = [point(part.strip()) for part in inner.split(mark)]
        if all(spans):
            return _hull(Form.SET, [span for span in spans if span])
    return None


def _hull(form: Form, spans: Sequence[Span]) -> Cell:
    """Cover several intervals by one, and record the width of the gaps between them."""
    ordered = sorted(set(spans))
    lower, reached, gap = ordered[0][0], ordered[0][1], 0.0
    for first, after in ordered[1:]:
        gap += max(first - reached, 0.0)
        reached = max(reached, after)
    return Cell(form, lower, reached, gap)


def read_date(text: str, form: str | None, *, days: bool) -> Cell:
    """Read a cell of a date column: a day, a time, a month, a year, or an interval of them.

    Args:
        text: without spaces around it.
        form: how the policy says that dates are written; ISO dates are always read.
        days: the column holds days, so a day is one value; otherwise it holds times.
    """
    nothing = absent(text)
    if nothing:
        return nothing

    def span(part: str) -> Span | None:
        return moment(part, form)

    ends = span(text)
    if ends:
        single = ends[1] - ends[0] <= (1 if days else 1e-3)
        return Cell(Form.ONE, ends[0], ends[0]) if single else Cell(Form.RANGE, *ends)
    return _set_of(text, span) or interval(text, span) or Cell(Form.UNKNOWN)


def moment(text: str, form: str | None) -> Span | None:
    """Return the days since 1970 that a year, quarter, month, week, day or time covers, or None.

    >>> moment("1970-02", None)
    (31.0, 59.0)
    """
    if form:
        try:
            time = datetime.strptime(text, form).replace(tzinfo=UTC)
            return _cover(time, instant="%H" in form or "%T" in form)
        except ValueError:
            pass
    try:
        if match := re.fullmatch(r"(\d{4})(?:-(\d\d))?", text):
            year, month = int(match[1]), int(match[2] or 1)
            last = int(match[2] or 12)
            return _day(year, month), _day(year, last, monthrange(year, last)[1]) + 1
        if match := re.fullmatch(r"(\d{4})-([QW])(\d\d?)", text):
            return _quarter_or_week(int(match[1]), match[2], int(match[3]))
        if not re.match(r"\d{4}-\d\d-\d\d", text):
            return None
        time = datetime.fromisoformat(text)
    except ValueError:  # no such month or day
        return None
    return _cover(time if time.tzinfo else time.replace(tzinfo=UTC), instant=len(text) > 10)


def _quarter_or_week(year: int, letter: str, number: int) -> Span:
    """Return the days of a quarter, 2020-Q1, or of an ISO 8601 week, 2020-W05."""
    if letter == "W":
        first = (date.fromisocalendar(year, number, 1) - date(1970, 1, 1)).days
        return float(first), float(first + 7)
    last = 3 * number
    return _day(year, last - 2), _day(year, last, monthrange(year, last)[1]) + 1


def _day(year: int, month: int, day: int = 1) -> float:
    return float((date(year, month, day) - date(1970, 1, 1)).days)


def _cover(time: datetime, *, instant: bool) -> Span:
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    # Multiply by the reciprocal as Polars does; otherwise a time differs in its last bit.
    at = since // timedelta(microseconds=1) * (1 / 86_400e6)
    return at, (math.nextafter(at, math.inf) if instant else at + 1)


class Categories:
    """Reader of the cells of an ordinal or nominal column, by its categories and hierarchy.

    Args:
        place: of each level in the public order.
        nodes: the places below each inner node of the hierarchy.
        recode: what the policy makes of raw values.
        ordered: whether two categories may stand for all between them.
    """

    def __init__(
        self,
        place: Mapping[str, int],
        nodes: Mapping[str, Span],
        *,
        recode: Mapping[str, str] | None,
        ordered: bool,
    ) -> None:
        self._cells = {node: Cell(Form.NODE, *span) for node, span in nodes.items()}
        self._cells |= {name: Cell(Form.ONE, float(at), at + 1.0) for name, at in place.items()}
        for raw, new in (recode or {}).items():
            if raw not in self._cells and new in place:
                self._cells[raw] = self._cells[new]
        self._categories = tuple(place)
        self._ordered = ordered
        self._loose: dict[str, Cell | None] = {}
        for name, cell in self._cells.items():
            key = _plain(name)
            # Names that differ only in case are ambiguous here.
            self._loose[key] = None if key in self._loose else cell._replace(loose=True)
        self._longest = {
            mark: 1 + max((name.count(mark) for name in self._cells), default=0) for mark in _MARKS
        }

    def read(self, text: str) -> Cell:
        """Read one cell: exactly, else without surrounding spaces, else ignoring case."""
        cell = self._cells.get(text)
        if cell is None:
            text = text.strip()
            cell = self._cells.get(text)
        if cell:
            return cell._replace(form=Form.STAR) if _STARS.fullmatch(text) else cell
        return (
            self._loose.get(_plain(text))
            or absent(text)
            or (interval(text, self._span) if self._ordered else None)
            or self._set(text)
            or self._read_mask(text)
            or Cell(Form.UNKNOWN)
        )

    def _span(self, text: str) -> Span | None:
        cell = self._cells.get(text) or self._loose.get(_plain(text))
        return (cell.lower, cell.upper) if cell else None

    def _set(self, text: str) -> Cell | None:
        inner = _unwrap(text, "{") or _unwrap(text, "[") or text
        for mark in _MARKS:
            if mark in inner or inner is not text:
                ways = (False, True) if self._longest[mark] > 1 else (False,)
                readings = [self._members(inner, mark, greedy) for greedy in ways]
                spans = [span for reading in readings if reading for span in reading]
                if spans:  # read in two ways, a set is all that either says
                    return _hull(Form.SET, spans)
        return None

    def _members(self, inner: str, mark: str, greedy: bool) -> list[Span] | None:  # noqa: FBT001
        """Split a list into known category names, which may contain the separator themselves."""
        pieces, longest = inner.split(mark), self._longest[mark]
        if longest == 1:
            readings = [self._span(piece.strip(" '\"")) for piece in pieces]
            return None if None in readings else [span for span in readings if span]
        steps = range(longest, 0, -1) if greedy else range(1, longest + 1)
        # From the end: the number of pieces in the first name, where the rest can be read too.
        step: list[tuple[int, Span] | None] = [None] * len(pieces)
        for at in reversed(range(len(pieces))):
            for run in steps:
                if at + run > len(pieces) or (at + run < len(pieces) and step[at + run] is None):
                    continue
                span = self._span(mark.join(pieces[at : at + run]).strip().strip("'\""))
                if span:
                    step[at] = (run, span)
                    break
        spans, at = [], 0
        while at < len(pieces):
            chosen = step[at]
            if chosen is None:
                return None
            spans.append(chosen[1])
            at += chosen[0]
        return spans

    def _read_mask(self, text: str) -> Cell | None:
        """Read a mask such as "130**": all categories that match, of its length if any."""
        if "*" not in text:
            return None
        for star, joint in ((r"\*", "."), (r"\*+", ".*")):
            fits = re.compile(joint.join(map(re.escape, re.split(star, text)))).fullmatch
            spans = [self._span(name) for name in self._categories if fits(name)]
            if spans:
                return _hull(Form.MASK, [span for span in spans if span])
        return None


_MARKS = (",", "|", ";", "~", "/", " or ")


def _plain(text: str) -> str:
    return re.sub(r"\.0$", "", " ".join(text.split()).casefold())


def _unwrap(text: str, opening: str) -> str | None:
    """Return the text between the braces of a set, whether bare or written by Python."""
    closing = {"{": "}", "[": "]"}[opening]
    match = re.fullmatch(r"(?:frozenset|set)\((.*)\)", text)
    bare = match[1] if match else text
    return bare[1:-1] if bare.startswith(opening) and bare.endswith(closing) else None

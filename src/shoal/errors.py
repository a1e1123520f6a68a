"""Every exception that Shoal raises on purpose, with its exit code.

A message says what was expected, what was found and what to do next. It never holds a
cell of the original table: name the column and the number of rows instead.
"""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from errno import ENOMEM
from pathlib import Path
from traceback import extract_tb
from unicodedata import category

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of invisible characters: controls, formats such as direction marks and
zero-width joiners, surrogates, and line separators."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape invisible characters in text that people read.

    A name can hold a mark that reverses the order of what follows it, a control that moves the
    terminal's cursor, or nothing visible. Pages, reports and the terminal show `\u202e` instead.
    Files and answers to scripts keep names unchanged.

    Args:
        text: a name, or a sentence with names in it.
        lines: keep line breaks.

    >>> print(visible("inc\u202eome"), visible("a\nb"), visible("Zoë"))
    inc\u202eome a\u000ab Zoë
    """
    if text.isprintable():
        return text
    return "".join(
        f"\\u{ord(c):04x}" if category(c) in UNSEEN and not (lines and c in "\n\t") else c
        for c in text
    )


class ShoalError(Exception):
    """Base of all errors that a caller may want to catch."""

    exit_code = 70
    field: tuple[str | int, ...] = ()
    """The place in the policy that it is about, as keys and numbers from 0; empty where none is."""
    place = ""
    """How its sentence names that place in front, if it does."""

    def __str__(self) -> str:
        return visible(super().__str__())


class InputError(ShoalError, ValueError):
    """The table, the policy or an argument cannot be used as it is: the user's move.

    Also a `ValueError`, which callers expect for a wrong argument. Code that catches and rewords
    a library's `ValueError` must let ours pass.
    """

    exit_code = 2

    def __init__(self, reason: str, *, field: tuple[str | int, ...] = (), place: str = "") -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason, self.field, self.place = reason, field, place


class UnfitTableError(InputError):
    """A file format has no room for a released table."""


class SparkError(InputError):
    """Spark stopped before its job was done."""


class ClaimViolationError(ShoalError):
    """A required promise cannot be kept, or a check failed: nothing is released."""

    exit_code = 3


class InternalError(ShoalError):
    """A guarantee that should hold by construction does not: our bug."""


EARLIER = {
    "bottom": "bottom_code",
    "exact_rows": "exact_contributions",
    "format": "date_format",
    "internal": "secure-use",
    "ledger": "budget",
    "marginals": "column-shuffled",
    "max_rows": "max_contributions",
    "measure": "evaluate",
    "open": "public-use",
    "partner": "scientific-use",
    "suppress": "record_suppression",
    "taxonomy": "hierarchy",
    "top": "top_code",
    "unit": "privacy_unit",
    "weight": "sampling_weight",
}
"""Words of policies before the first release, and their replacements."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, as a sentence to append to an error.

    >>> did_you_mean("incme", ["age", "income"])
    " Did you mean 'income'?"
    >>> did_you_mean("ledger", ["budget", "release"])
    " It is now called 'budget'."
    >>> did_you_mean("shoe size", ["age", "income"])
    ''
    """
    known = list(known)
    if (renamed := EARLIER.get(name)) in known:
        return f" It is now called '{renamed}'."
    close = get_close_matches(name, known, n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def count_noun(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun; an irregular plural, or one with its verb, is given.

    >>> count_noun(1, "row"), count_noun(2000, "row"), count_noun(0, "row has", "rows have")
    ('1 row', '2,000 rows', '0 rows have')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def columns_named(names: Sequence[str]) -> str:
    """Name the columns that are the subject of a sentence.

    >>> columns_named(["age"]), columns_named(["age", "sex", "region"])
    ("Column 'age'", "Columns 'age', 'sex' and 'region'")
    """
    *first, last = (f"'{name}'" for name in names)
    return f"Columns {', '.join(first)} and {last}" if first else f"Column {last}"


def unlike(what: str, names: Collection[str], known: Collection[str]) -> str:
    """Explain that a table has hardly any column of its policy; None if it has half of them.

    In a file without a header the first person's cells stand where names are expected, so no name
    is quoted unless enough others are known.

    >>> unlike("The data", ["Ann", "1956", "north"], ["name", "born", "region"])[:53]
    'The data has 3 columns, but none of the 3 names in th'
    >>> unlike("The data", ["name", "brn", "region"], ["name", "born", "region"])
    ''
    >>> "State --delimiter ';'" in unlike("The data", ["name;born"], ["name", "born"])
    True
    """
    shared = len(set(names) & set(known))
    if 2 * shared >= len(set(known)):
        return ""
    cut = (
        mark
        for name in names
        for mark in dict.fromkeys(name)
        if not mark.isalnum() and len({p.strip('" ') for p in name.split(mark)} & set(known)) > 1
    )
    if mark := next(cut, ""):
        return (
            f"{what} has {count_noun(len(names), 'column')}, and names of the policy stand in one "
            f"of them: the cells are split at another mark than the file has. State --delimiter "
            f"{mark!r}, or under [reading]: delimiter = {mark!r}."
        )
    some = f"only {shared}" if shared else "none"
    return (
        f"{what} has {count_noun(len(names), 'column')}, but {some} of the {len(known)} names in "
        "the policy. "
        "If the file lacks a header, add a row of column names; if it has one, use its own policy."
    )


def quotable(name: str) -> bool:
    """Whether a column name may be shown: one with a line break may contain cells.

    A quote that is not closed in the header has this effect.
    """
    return name.isprintable() and len(name) <= 100


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, by the messages of various libraries.

    >>> lacks_memory(MemoryError()), lacks_memory(ValueError())
    (True, False)
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == ENOMEM:
        return True
    # A library that cannot be mapped, a thread without a stack, a worker that the system killed.
    words = ("failed to map segment", "cannot allocate memory", "can't start new thread")
    text = str(error).lower()
    return type(error).__name__ == "BrokenProcessPool" or any(word in text for word in words)


LOST_SPARK = (
    "Spark stopped before its job was done: its process was ended, or ran out of memory. Its own "
    "messages are switched off, because they may quote cells. Run it again, with more memory "
    "(--spark-conf spark.driver.memory=8g) if it stops again."
)


def is_spark_lost(error: BaseException) -> bool:
    """Whether Spark, or the connection to it, broke: its errors, and those of its sockets.

    >>> is_spark_lost(ConnectionRefusedError())
    False
    """
    if isinstance(error, SparkError) or type(error).__module__.startswith(("py4j", "pyspark")):
        return True
    sockets = isinstance(error, OSError | EOFError)
    return sockets and any(
        "py4j" in frame.filename or "pyspark" in frame.filename
        for frame in extract_tb(error.__traceback__)
    )


def withheld(error: BaseException) -> str:
    """Report an error as our bug with its location, without its message.

    Messages that we did not write may quote a cell. The location is the last line of our code in
    the traceback.
    """
    ours = [frame for frame in extract_tb(error.__traceback__) if "shoal" in frame.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "an unknown place"
    return (
        f"a bug of Shoal: {type(error).__name__} at {place}. Please report this line; its message "
        "is withheld, because it may quote your data."
    )

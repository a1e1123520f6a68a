"""The budget file: what has been spent on a population, by all runs together.

A source is a population. Extracts and later versions of one table share its name, because
their people overlap and what is learnt about them adds up.

The order of a release is: `spend`, draw, write, `settle`. The spending is on disk before the
first draw, so a run that is killed anywhere has spent its epsilon, and no release exists
without its entry. An entry is never given back and never deleted; triggers in the file say so.

Crashes. One transaction checks the budget and writes the entry. It begins IMMEDIATE, so
that of two runs the second waits and sees the first one's entry. The file keeps a rollback
journal, not a write-ahead log: at rest it is one file, and a copy of it misses nothing.
`synchronous = EXTRA` because a commit in that mode is the removal of the journal: with FULL the
removal itself may be lost with the power, and the journal, back from the dead, would undo an
entry whose noise was published.

Choosing by looking costs privacy too. A comparison of methods on the table of a source is a look,
and the file keeps it for good: `Account.looked` says so to every later release. A look at public
data is kept as well, and harms nothing. Files of version 1 know no looks; they are read as they
are, and become version 2 with their first look.

Not promised: that nobody restores an old copy of the file, or spends on one population under
two names.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.core import Neighbours
from shoal.errors import ClaimViolationError, InputError, InternalError, did_you_mean

PATIENCE = 30.0
"""Seconds to wait for other runs that write to the same file."""

_APPLICATION = 0x53484F4C  # "SHOL", in the file's header
_VERSION = 2
_SCHEMA = """
CREATE TABLE source (
    name TEXT PRIMARY KEY,
    epsilon TEXT NOT NULL,
    neighbours TEXT NOT NULL,
    time TEXT NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name),
    policy TEXT NOT NULL,
    method TEXT NOT NULL,
    epsilon TEXT,
    status TEXT NOT NULL CHECK (status IN ('reserved', 'released')),
    note TEXT NOT NULL
);
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'an entry is never deleted'); END;
CREATE TRIGGER entry_holds BEFORE UPDATE ON entry
    WHEN OLD.status != 'reserved' OR NEW.status != 'released'
        OR (OLD.id, OLD.time, OLD.source, OLD.policy, OLD.method, OLD.epsilon, OLD.note)
        IS NOT (NEW.id, NEW.time, NEW.source, NEW.policy, NEW.method, NEW.epsilon, NEW.note)
    BEGIN SELECT RAISE(ABORT, 'an entry is only ever settled'); END;
CREATE TRIGGER source_stays BEFORE DELETE ON source
    BEGIN SELECT RAISE(ABORT, 'a source is never deleted'); END;
CREATE TRIGGER source_holds BEFORE UPDATE ON source
    BEGIN SELECT RAISE(ABORT, 'a source is never changed'); END;
"""
_LOOKS = """
CREATE TABLE look (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name),
    kind TEXT NOT NULL CHECK (kind IN ('table', 'sample', 'selection')),
    policy TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE TRIGGER look_stays BEFORE DELETE ON look
    BEGIN SELECT RAISE(ABORT, 'a look is never deleted'); END;
CREATE TRIGGER look_holds BEFORE UPDATE ON look
    BEGIN SELECT RAISE(ABORT, 'a look is never changed'); END;
"""

_INTERSECTION = (
    "Source '{source}' has {count} releases without a proved epsilon. People who are in several"
    " of them may be told apart by intersecting their groups, even if each release is"
    " k-anonymous by itself."
)
_UNBOUNDED = (
    "The cumulative epsilon of source '{source}' is none: it has {count} released or reserved"
    " without a proved epsilon, so no epsilon bounds what all releases tell together."
)


_LOOKED = (
    "Methods were compared on the table of source '{source}' itself, first on {time}. Every epsilon"
    " of a later release holds only if its method and parameters were not chosen from this table."
)


class Look(StrEnum):
    """What a comparison of methods looked at.

    `table`: the confidential table. `sample`: public or synthetic data, or a release that is paid
    for. `selection`: the confidential table, by a private selection that is paid for.
    """

    TABLE = "table"
    SAMPLE = "sample"
    SELECTION = "selection"


@dataclass(frozen=True)
class Glance:
    """One comparison of methods, in the budget file.

    Attributes:
        time: of its start, UTC.
        policy: digest of the policy.
        note: public words; never a cell.
    """

    time: str
    kind: Look
    policy: str
    note: str


@dataclass(frozen=True)
class Entry:
    """One release, or an attempt at one, in the budget file.

    Attributes:
        time: of the reservation, UTC.
        policy: digest of the policy.
        epsilon: in the neighbours of the source; None if the release has no proved epsilon.
        status: `reserved` before the noise is drawn, `released` after the table is written. A
            reserved entry counts as spent: its run may be under way, or was killed.
        note: public words; never a cell.
    """

    id: int
    time: str
    source: str
    policy: str
    method: str
    epsilon: Fraction | None
    status: str
    note: str


@dataclass(frozen=True)
class Account:
    """One source with its budget and all its entries.

    Attributes:
        granted: the budget.
        neighbours: in which the budget and its entries are counted.
    """

    source: str
    granted: Fraction
    neighbours: Neighbours
    entries: tuple[Entry, ...]
    looks: tuple[Glance, ...] = ()

    @property
    def looked(self) -> bool:
        """Whether methods were compared on the table itself, in the open."""
        return self._first_look is not None

    @property
    def spent(self) -> Fraction:
        """Sum of the proved epsilons, reserved ones included."""
        return sum((e.epsilon for e in self.entries if e.epsilon is not None), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        return self.granted - self.spent

    @property
    def unbounded(self) -> int:
        """How many entries have no proved epsilon."""
        return sum(entry.epsilon is None for entry in self.entries)

    @property
    def cumulative(self) -> Fraction | None:
        """Epsilon of all releases together; None once one of them has none.

        Of a release after a comparison on the table itself it is conditional, so that no number
        stands for all. Times are whole seconds: one that began in the same counts as later.
        """
        first = self._first_look
        chosen = first is not None and any(entry.time >= first for entry in self.entries)
        return None if self.unbounded or chosen else self.spent

    @property
    def _first_look(self) -> str | None:
        """When methods were first compared on the table itself."""
        return next((look.time for look in self.looks if look.kind is Look.TABLE), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a steward should know before the next release of this source."""
        texts = []
        if self.unbounded:
            count = "a release" if self.unbounded == 1 else f"{self.unbounded} releases"
            texts.append(_UNBOUNDED.format(source=self.source, count=count))
        if self.unbounded > 1:
            texts.append(_INTERSECTION.format(source=self.source, count=self.unbounded))
        if (first := self._first_look) is not None:
            texts.append(_LOOKED.format(source=self.source, time=first))
        return tuple(texts)

    def __str__(self) -> str:
        cumulative = "none" if self.cumulative is None else number(self.cumulative)
        head = (
            f"{self.source}: budget epsilon {number(self.granted)} ({self.neighbours.value}),"
            f" spent {number(self.spent)}, remaining {number(self.remaining)},"
            f" cumulative epsilon {cumulative}"
        )
        lines = [head]
        for entry in self.entries:
            epsilon = "unbounded" if entry.epsilon is None else f"epsilon {number(entry.epsilon)}"
            note = f"  {entry.note}" if entry.note else ""
            lines.append(
                f"  {entry.id}  {entry.time}  {entry.method}  {epsilon}  {entry.status}{note}"
            )
        for look in self.looks:
            note = f"  {look.note}" if look.note else ""
            lines.append(f"  -  {look.time}  comparison of methods on: {look.kind.value}{note}")
        if any(entry.status == "reserved" for entry in self.entries):
            lines.append("  A reserved entry counts as spent: its run goes on, or was killed.")
        return "\n".join(lines + [f"  ! {text}" for text in self.warnings])


@dataclass(frozen=True)
class Reservation:
    """A spending that is on disk. Only now may noise be drawn.

    Attributes:
        id: of the entry, for `settle`.
        epsilon: as booked, in the neighbours of the source.
        remaining: what is left of the budget after this.
        warnings: texts for the steward and the report.
        looked: methods were compared on the table itself before.
    """

    id: int
    epsilon: Fraction | None
    remaining: Fraction
    warnings: tuple[str, ...]
    looked: bool = False


def init(
    path: Path,
    source: str,
    epsilon: Fraction,
    *,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
    patience: float = PATIENCE,
) -> Account:
    """Grant a source a budget, in a new file or in one that has other sources.

    A budget cannot be changed afterwards, and a name that differs from a known one in case or
    spaces only is refused: either would be a way to spend twice.

    Raises:
        InputError: if the file cannot be made or is something else, or the source is known.
    """
    name = source.strip()
    if not name:
        raise InputError("source must name a population; got an empty name.")
    if epsilon <= 0:
        raise InputError(f"epsilon must be > 0 for a budget; got {number(epsilon)}.")
    if not path.parent.is_dir():
        raise InputError(f"No folder '{path.parent}' for the budget file '{path.name}'.")
    with _open(path, patience=patience, create=True) as connection:
        if _is_new(connection):
            for statement in _statements(_SCHEMA + _LOOKS):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        _check_file(connection, path)
        same = [known for known in _sources(connection) if _fold(known) == _fold(name)]
        if same:
            raise InputError(f"Source '{same[0]}' has a budget in '{path}' already; it stays.")
        connection.execute(
            "INSERT INTO source VALUES (?, ?, ?, ?)",
            (name, str(Fraction(epsilon)), neighbours.value, _now()),
        )
        return _account(connection, name, path)


def show(path: Path, *, patience: float = PATIENCE) -> tuple[Account, ...]:
    """Every source of a budget file, by name.

    Raises:
        InputError: if there is no such file, or it is something else.
    """
    with _open(path, patience=patience) as connection:
        _check_file(connection, path)
        return tuple(_account(connection, name, path) for name in sorted(_sources(connection)))


def spend(
    path: Path,
    source: str,
    *,
    epsilon: Fraction | None,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
    policy: str,
    method: str,
    note: str = "",
    patience: float = PATIENCE,
) -> Reservation:
    """Book a release before its noise is drawn.

    Args:
        path: the budget file.
        source: the population.
        epsilon: the proved price of the whole release; None if it has none, as k-anonymity.
        neighbours: of the price. A price for add-remove is booked doubled where the budget
            counts change-one (`shoal.hazmat.ledger`).
        policy: digest of the policy.
        method: by its name in the policy.
        note: public words, such as the name of the output folder; never a cell.
        patience: seconds to wait for other runs.

    Raises:
        ClaimViolationError: if the budget does not hold the price. Nothing is booked.
        InputError: if the file or the source cannot be used.
    """
    if epsilon is not None and epsilon <= 0:
        raise InternalError(f"A release is booked with epsilon > 0 or none; got {epsilon}.")
    with _open(path, patience=patience, write=True) as connection:
        _check_file(connection, path)
        before = _account(connection, source, path)
        price = None if epsilon is None else _price(epsilon, neighbours, before)
        if price is not None and price > before.remaining:
            raise ClaimViolationError(
                f"The budget of source '{source}' does not hold this release: requested epsilon"
                f" {number(price)}, remaining {number(before.remaining)}, difference"
                f" {number(price - before.remaining)}. Nothing was spent."
            )
        cursor = connection.execute(
            "INSERT INTO entry (time, source, policy, method, epsilon, status, note)"
            " VALUES (?, ?, ?, ?, ?, 'reserved', ?)",
            (_now(), source, policy, method, None if price is None else str(price), note),
        )
        after = _account(connection, source, path)
        if cursor.lastrowid is None or after.remaining < 0:
            raise InternalError("The budget file holds more than was granted.")
        return Reservation(cursor.lastrowid, price, after.remaining, after.warnings, after.looked)


def look(
    path: Path,
    source: str,
    kind: Look,
    *,
    policy: str,
    note: str = "",
    patience: float = PATIENCE,
) -> Account:
    """Record a comparison of methods before it starts. It cannot be taken back.

    Args:
        path: the budget file; one of version 1 becomes version 2.
        source: the population.
        kind: what is looked at.
        policy: digest of the policy.
        note: public words; never a cell.
        patience: seconds to wait for other runs.

    Returns:
        The source with all that is known of it now.
    """
    with _open(path, patience=patience, write=True) as connection:
        _check_file(connection, path)
        _account(connection, source, path)
        if not _has_looks(connection):
            for statement in _statements(_LOOKS):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(
            "INSERT INTO look (time, source, kind, policy, note) VALUES (?, ?, ?, ?, ?)",
            (_now(), source, kind.value, policy, note),
        )
        return _account(connection, source, path)


def account(path: Path, source: str, *, patience: float = PATIENCE) -> Account:
    """One source of a budget file."""
    with _open(path, patience=patience) as connection:
        _check_file(connection, path)
        return _account(connection, source, path)


def settle(path: Path, reservation: int, *, patience: float = PATIENCE) -> None:
    """Note that the release of a reservation has been written.

    A release counts the same whether it is settled or not; this tells the steward that the
    run came to its end.

    Raises:
        InternalError: if no reserved entry has that number.
    """
    with _open(path, patience=patience, write=True) as connection:
        _check_file(connection, path)
        cursor = connection.execute(
            "UPDATE entry SET status = 'released' WHERE id = ? AND status = 'reserved'",
            (reservation,),
        )
        if cursor.rowcount != 1:
            raise InternalError(f"No reserved entry {reservation} in '{path}' to settle.")


def number(epsilon: Fraction) -> str:
    """An exact number for people: as a decimal if that is short, else as a fraction.

    >>> number(Fraction(1, 10)), number(Fraction(3)), number(Fraction(1, 3))
    ('0.1', '3', '1/3')
    """
    epsilon = Fraction(epsilon)
    for digits in range(10):
        if (scaled := epsilon * 10**digits).denominator == 1:
            return f"{'-' if scaled < 0 else ''}{_decimal(abs(scaled.numerator), digits)}"
    return str(epsilon)


def _decimal(scaled: int, digits: int) -> str:
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)


def _price(epsilon: Fraction, neighbours: Neighbours, account: Account) -> Fraction:
    if neighbours is account.neighbours:
        return Fraction(epsilon)
    if account.neighbours is Neighbours.CHANGE_ONE:
        return 2 * Fraction(epsilon)
    raise InputError(
        f"The budget of source '{account.source}' counts add-remove neighbours, and this release"
        " has a price for change-one only. Use a method that is proved for add-remove."
    )


@contextmanager
def _open(
    path: Path, *, patience: float, create: bool = False, write: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the file, hold one transaction around the body, and speak of faults plainly."""
    if not create and not path.is_file():
        raise InputError(f"No budget file '{path}'. Make one with 'shoal budget init'.")
    mode = "rwc" if create else "rw"
    begin = "BEGIN IMMEDIATE" if create or write else "BEGIN"
    try:
        with closing(
            sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}",
                uri=True,
                timeout=patience,
                isolation_level=None,
            )
        ) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(begin)
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # Some faults of SQLite have ended it already.
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _explain(error, path, patience) from error
    except UnicodeDecodeError:  # SQLite quotes what it cannot read.
        raise InputError(f"'{path}' is not a budget file of Shoal, or it is damaged.") from None


def _explain(error: sqlite3.Error, path: Path, patience: float) -> InputError | InternalError:
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["BUSY"] | ["LOCKED"]:
            return InputError(
                f"The budget file '{path}' was locked by another run for {patience:g} s. Try again."
            )
        case ["READONLY"] | ["CANTOPEN"] | ["PERM"]:
            return InputError(f"The budget file '{path}' or its folder may not be written to.")
        case ["NOTADB"] | ["CORRUPT"] | ["ERROR"] | ["FORMAT"]:  # its own tables included
            return InputError(f"'{path}' is not a budget file of Shoal, or it is damaged.")
        case ["FULL"] | ["IOERR"]:
            return InputError(f"The disk refused to write the budget file '{path}': {error}.")
        case _:
            return InternalError(f"The budget file '{path}' failed: {error}.")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one; `executescript` would commit before them."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _is_new(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(tables == 0 and application == 0)


def _check_file(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise InputError(f"'{path}' is not a budget file of Shoal, or it is damaged.")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise InputError(
            f"The budget file '{path}' has version {version}; this Shoal knows {_VERSION}."
            " Use the newer Shoal that made it."
        )
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "delete":
        raise InputError(
            f"The budget file '{path}' was switched to journal mode '{mode}'; only 'delete' is"
            " kept through a crash here."
        )


def _sources(connection: sqlite3.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute("SELECT name FROM source")]


def _account(connection: sqlite3.Connection, source: str, path: Path) -> Account:
    row = connection.execute(
        "SELECT epsilon, neighbours FROM source WHERE name = ?", (source,)
    ).fetchone()
    if row is None:
        known = _sources(connection)
        raise InputError(f"No source named '{source}' in '{path}'.{did_you_mean(source, known)}")
    entries = connection.execute(
        "SELECT id, time, source, policy, method, epsilon, status, note FROM entry"
        " WHERE source = ? ORDER BY id",
        (source,),
    )
    try:
        return Account(
            source,
            Fraction(row[0]),
            Neighbours(row[1]),
            tuple(map(_entry, entries)),
            _looks(connection, source),
        )
    except (ValueError, TypeError, ArithmeticError):
        raise InputError(f"'{path}' is not a budget file of Shoal, or it is damaged.") from None


def _has_looks(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version >= 2)


def _looks(connection: sqlite3.Connection, source: str) -> tuple[Glance, ...]:
    if not _has_looks(connection):
        return ()
    rows = connection.execute(
        "SELECT time, kind, policy, note FROM look WHERE source = ? ORDER BY id", (source,)
    )
    return tuple(Glance(time, Look(kind), policy, note) for time, kind, policy, note in rows)


def _entry(cells: tuple[Any, ...]) -> Entry:
    names = ("id", "time", "source", "policy", "method", "epsilon", "status", "note")
    row = dict(zip(names, cells, strict=True))
    epsilon = row.pop("epsilon")
    return Entry(epsilon=None if epsilon is None else Fraction(epsilon), **row)


def _fold(name: str) -> str:
    return "".join(name.casefold().split())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

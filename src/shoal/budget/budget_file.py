"""The budget file: what has been spent on a population, by all runs together.

A source is a population. Extracts and later versions of one table share its name, because
their people overlap and what is learnt about them adds up.

The order of a release is: `spend`, draw, write, `settle`. The charge is on disk before the
first draw, so a run that is killed anywhere has spent its epsilon, and no release exists
without its entry. An entry is never given back and never deleted; triggers in the file say so.

Crashes. One transaction checks the budget and writes the entry. It begins IMMEDIATE, so
of two runs the second waits and sees the first one's entry. The file keeps a rollback
journal, not a write-ahead log: at rest it is one file, and a copy of it misses nothing.
`synchronous = EXTRA` because a commit in that mode is the removal of the journal: with FULL the
removal itself may be lost with the power, and the journal, back from the dead, would undo an
entry whose noise was published.

Figures of the confidential table that somebody reads, such as a comparison of methods on it, are an
inspection, and the file keeps it for good: `Account.inspected` says so to every later release. An
inspection of public data is kept as well, and harms nothing. What all releases of a source cost
together is derived from facts that stewards declared (`shoal.budget.composition`); the file holds
nothing that was computed from a table: no count, no digest.

Files of versions 1 to 3 are read as they are. The first transaction that writes to one brings it to
version 4, or leaves it as it was. Its entries keep their numbers; those of versions 1 and 2 have no
declared facts, and the order of inspections and entries, which these files kept by the clock, is
taken for the worse. Its sources are pure: none was granted at a delta, and none holds a rho.

Not promised: that nobody restores an old copy of the file, or spends on one population under
two names.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.budget.composition import BudgetEntry, DeclaredFacts, folded, number
from shoal.budget.source import Account, Inspection, InspectionSummary, What
from shoal.core import Neighbours
from shoal.core.machine import now
from shoal.errors import ClaimViolationError, InputError, InternalError, did_you_mean

__all__ = [
    "Account",
    "BudgetEntry",
    "DeclaredFacts",
    "Inspection",
    "InspectionSummary",
    "Reservation",
    "What",
    "account",
    "init",
    "number",
    "record_inspection",
    "settle",
    "show",
    "spend",
]

PATIENCE = 30.0
"""Seconds to wait for other runs that write to the same file."""

_NUMBER = re.compile(r"[1-9]\d{0,999}(/[1-9]\d{0,999})?", re.ASCII)
_DAMAGED = "'{path}' is not a budget file of Shoal, or it is damaged."
_APPLICATION = 0x53484F4C  # "SHOL", in the file's header
_VERSION = 4
_WITH_FACTS = 3  # the first version whose entries have declared facts
_LEAST_DELTA, _MOST_DELTA = Fraction(1, 10**30), Fraction(1, 1000)
_TABLES = """
CREATE TABLE source (
    name TEXT PRIMARY KEY,
    epsilon TEXT NOT NULL,
    neighbours TEXT NOT NULL,
    time TEXT NOT NULL,
    delta TEXT
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name),
    policy TEXT NOT NULL,
    method TEXT NOT NULL,
    epsilon TEXT,
    status TEXT NOT NULL CHECK (status IN ('reserved', 'released')),
    note TEXT NOT NULL,
    facts TEXT,
    rho TEXT
);
"""
_INSPECTIONS = """
CREATE TABLE inspection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name),
    kind TEXT NOT NULL CHECK (kind IN ('table', 'sample', 'selection')),
    what TEXT NOT NULL,
    policy TEXT NOT NULL,
    note TEXT NOT NULL,
    after INTEGER NOT NULL
);
"""
_TRIGGERS = """
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'an entry is never deleted'); END;
CREATE TRIGGER entry_holds BEFORE UPDATE ON entry
    WHEN OLD.status != 'reserved' OR NEW.status != 'released'
        OR (OLD.id, OLD.time, OLD.source, OLD.policy, OLD.method, OLD.epsilon, OLD.note, OLD.facts,
            OLD.rho)
        IS NOT
        (NEW.id, NEW.time, NEW.source, NEW.policy, NEW.method, NEW.epsilon, NEW.note, NEW.facts,
            NEW.rho)
    BEGIN SELECT RAISE(ABORT, 'an entry is only ever settled'); END;
CREATE TRIGGER source_stays BEFORE DELETE ON source
    BEGIN SELECT RAISE(ABORT, 'a source is never deleted'); END;
CREATE TRIGGER source_holds BEFORE UPDATE ON source
    BEGIN SELECT RAISE(ABORT, 'a source is never changed'); END;
CREATE TRIGGER inspection_stays BEFORE DELETE ON inspection
    BEGIN SELECT RAISE(ABORT, 'an inspection is never deleted'); END;
CREATE TRIGGER inspection_holds BEFORE UPDATE ON inspection
    BEGIN SELECT RAISE(ABORT, 'an inspection is never changed'); END;
"""
# An entry of the second in which an inspection began, or of a later one, counts as later; so does
# every entry with a larger number than such a one.
_LOOKS = """
INSERT INTO inspection (id, time, source, kind, what, policy, note, after)
SELECT id, time, source, kind, 'compare', policy, note, coalesce(
    (SELECT min(entry.id) - 1 FROM entry WHERE entry.time >= look.time),
    (SELECT max(entry.id) FROM entry),
    0
) FROM look ORDER BY id;
DROP TABLE look;
"""


@dataclass(frozen=True)
class Reservation:
    """A charge that is on disk. Only now may noise be drawn.

    Attributes:
        id: of the entry, for `settle`.
        epsilon: as booked, in the neighbours of the source; or rho.
        remaining: what is left of the budget after this.
        warnings: texts for the steward and the report.
        inspected: the table itself was inspected before.
    """

    id: int
    epsilon: Fraction | None
    remaining: Fraction
    warnings: tuple[str, ...]
    inspected: bool = False
    rho: Fraction | None = None


def init(
    path: Path,
    source: str,
    epsilon: Fraction,
    *,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
    delta: Fraction | None = None,
) -> Account:
    """Grant a source a budget, in a new file or in one that has other sources.

    With a delta it holds releases that count in rho, too.

    A budget cannot be changed afterwards, and a name that `folded` does not tell from a known one
    is refused: either would be a way to spend twice.

    Raises:
        InputError: if the file cannot be made or is something else, or the source is known.
    """
    name = source.strip()
    if not folded(name):
        raise InputError("Expected the name of a population as source, found an empty name.")
    if epsilon <= 0:
        raise InputError(f"Expected epsilon > 0 for a budget, found {number(epsilon)}.")
    if delta is not None and not _LEAST_DELTA <= delta <= _MOST_DELTA:
        raise InputError("Expected a delta from 1e-30 to 0.001 for a budget.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder '{path.parent}' for the budget file '{path.name}'.")
    with _open(path, create=True) as connection:
        if _is_new(connection):
            _run(connection, _TABLES + _INSPECTIONS + _TRIGGERS)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        _bring_up_to_date(connection, path)
        same = [known for known in _sources(connection, path) if folded(known) == folded(name)]
        if same:
            raise InputError(
                f"Source '{same[0]}' already has a budget in '{path}'; it stays as it is."
            )
        connection.execute(
            "INSERT INTO source (name, epsilon, neighbours, time, delta) VALUES (?, ?, ?, ?, ?)",
            (
                name,
                str(Fraction(epsilon)),
                neighbours.value,
                now(),
                None if delta is None else str(Fraction(delta)),
            ),
        )
        return _account(connection, name, path)


def show(path: Path) -> tuple[Account, ...]:
    """Every source of a budget file, by name.

    Raises:
        InputError: if there is no such file, or it is something else.
    """
    with _read(path) as connection:
        return tuple(
            _account(connection, name, path) for name in sorted(_sources(connection, path))
        )


def spend(
    path: Path,
    source: str,
    *,
    epsilon: Fraction | None,
    rho: Fraction | None = None,
    facts: DeclaredFacts,
    policy: str,
    method: str,
    note: str = "",
) -> Reservation:
    """Book a release before its noise is drawn.

    Args:
        path: the budget file.
        source: the population.
        epsilon: the proved price of the whole release; None if it has none, as k-anonymity.
        rho: the proved price instead, of a release that counts in rho.
        facts: what is declared of the release. A price for add-remove is booked doubled where
            the budget counts change-one, a rho four times (`shoal.hazmat.accounting`).
        policy: digest of the policy.
        method: by its name in the policy.
        note: public words, such as the name of the output folder; never a cell.

    Raises:
        ClaimViolationError: if the budget does not hold the price. Nothing is booked.
        InputError: if the file or the source cannot be used.
    """
    if (epsilon is not None and epsilon <= 0) or (rho is not None and rho <= 0):
        raise InternalError(f"A release is booked with epsilon > 0 or none; got {epsilon or rho}.")
    if epsilon is not None and rho is not None:
        raise InternalError("A release is booked with an epsilon or a rho, not both.")
    with _open(path, write=True) as connection:
        before = _account(connection, _named(connection, source, path), path)
        if rho is not None and before.delta is None:
            raise InputError(
                f"The budget of source '{before.source}' is pure, and this release counts in rho:"
                " it has no epsilon without a delta. State epsilon alone under [protect], or grant"
                " a budget with `shoal budget init --delta`."
            )
        price = None if epsilon is None else _price(epsilon, facts.neighbours, before, 2)
        squared = None if rho is None else _price(rho, facts.neighbours, before, 4)
        cursor = connection.execute(
            "INSERT INTO entry (time, source, policy, method, epsilon, status, note, facts, rho)"
            " VALUES (?, ?, ?, ?, ?, 'reserved', ?, ?, ?)",
            (
                now(),
                before.source,
                policy,
                method,
                None if price is None else str(price),
                note,
                facts.to_json(),
                None if squared is None else str(squared),
            ),
        )
        after = _account(connection, before.source, path)
        if after.remaining < 0:
            requested = after.spent - before.spent
            raise ClaimViolationError(
                f"The budget of source '{before.source}' does not cover this release: requested"
                f" epsilon {number(requested)}, remaining {number(before.remaining)}, short by"
                f" {number(-after.remaining)}. Nothing was spent."
            )
        if cursor.lastrowid is None:
            raise InternalError("The budget file gave the new entry no number.")
        return Reservation(
            cursor.lastrowid, price, after.remaining, after.warnings, before.inspected, squared
        )


def record_inspection(
    path: Path,
    source: str,
    kind: Inspection,
    *,
    what: What = What.COMPARE,
    policy: str,
    note: str = "",
) -> Account:
    """Record an inspection by a command before it starts. It cannot be taken back.

    The policy is its digest, and the note has public words; never a cell.
    """
    with _open(path, write=True) as connection:
        name = _named(connection, source, path)
        connection.execute(
            "INSERT INTO inspection (time, source, kind, what, policy, note, after)"
            " VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(id), 0) FROM entry))",
            (now(), name, kind.value, what.value, policy, note),
        )
        return _account(connection, name, path)


def account(path: Path, source: str) -> Account:
    """One source of a budget file."""
    with _read(path) as connection:
        return _account(connection, _named(connection, source, path), path)


def settle(path: Path, reservation: int) -> None:
    """Note that the release of a reservation has been written.

    A release counts the same whether it is settled or not; this tells the steward that the
    run came to its end.

    Raises:
        InternalError: if no reserved entry has that number.
    """
    with _open(path, write=True) as connection:
        cursor = connection.execute(
            "UPDATE entry SET status = 'released' WHERE id = ? AND status = 'reserved'",
            (reservation,),
        )
        if cursor.rowcount != 1:
            raise InternalError(f"No reserved entry {reservation} in '{path}' to settle.")


def _price(amount: Fraction, neighbours: Neighbours, account: Account, times: int) -> Fraction:
    """A price in the neighbours of the source; one of add-remove counts so many times."""
    if neighbours is account.neighbours:
        return Fraction(amount)
    if account.neighbours is Neighbours.CHANGE_ONE:
        return times * Fraction(amount)
    raise InputError(
        f"The budget of source '{account.source}' counts add-remove neighbours, but this release"
        " has an epsilon for change-one only. Use a method that is proved for add-remove."
    )


@contextmanager
def _open(path: Path, *, create: bool = False, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the file, hold one transaction around the body, and speak of faults plainly.

    One that is opened to be written to is of this version then.
    """
    if not create and not path.is_file():
        raise InputError(f"There is no budget file '{path}'. Make one with `shoal budget init`.")
    mode = "rwc" if create else "rw"
    begin = "BEGIN IMMEDIATE" if create or write else "BEGIN"
    try:
        with closing(
            sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
            )
        ) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(begin)
            try:
                if write:
                    _bring_up_to_date(connection, path)
                yield connection
            except BaseException:
                if connection.in_transaction:  # Some faults of SQLite have ended it already.
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    except UnicodeDecodeError:  # SQLite quotes what it cannot read.
        raise InputError(_DAMAGED.format(path=path)) from None


def _explain(error: sqlite3.Error, path: Path) -> InputError | InternalError:
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["BUSY"] | ["LOCKED"]:
            return InputError(
                f"The budget file '{path}' was locked by another run for {PATIENCE:g} s. Try again."
            )
        case ["READONLY"] | ["CANTOPEN"] | ["PERM"]:
            return InputError(f"The budget file '{path}' or its folder may not be written to.")
        case (
            ["NOTADB"] | ["CORRUPT"] | ["ERROR"] | ["FORMAT"]
        ):  # The last: another table than ours.
            return InputError(_DAMAGED.format(path=path))
        case [] if isinstance(error, sqlite3.OperationalError):  # A text that is no UTF-8.
            return InputError(_DAMAGED.format(path=path))
        case ["FULL"] | ["IOERR"]:
            return InputError(f"The disk refused to write the budget file '{path}': {error}.")
        case _:
            return InternalError(f"The budget file '{path}' failed: {error}.")


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Run the statements of a script one by one; `executescript` would commit before them."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _is_new(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(tables == 0 and application == 0)


@contextmanager
def _read(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file to read it; one of an older version as it would be in this one."""
    with _open(path) as connection:
        if (version := _check_file(connection, path)) == _VERSION:
            yield connection
            return
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            connection.backup(copy)
            _migrate(copy, version, path)
            yield copy


def _bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    """Check the file, and bring one of an older version to this one."""
    if (version := _check_file(connection, path)) < _VERSION:
        _migrate(connection, version, path)


def _migrate(connection: sqlite3.Connection, version: int, path: Path) -> None:
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    if version < _WITH_FACTS:
        connection.execute("ALTER TABLE entry ADD COLUMN facts TEXT")
        _run(connection, _INSPECTIONS)
    connection.execute("ALTER TABLE entry ADD COLUMN rho TEXT")
    connection.execute("ALTER TABLE source ADD COLUMN delta TEXT")
    if 1 < version < _WITH_FACTS:
        try:
            _run(connection, _LOOKS)
        except sqlite3.IntegrityError:  # An old inspection lacks what every one has.
            raise InputError(_DAMAGED.format(path=path)) from None
    _run(connection, _TRIGGERS)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _check_file(connection: sqlite3.Connection, path: Path) -> int:
    """Refuse what is not a budget file of ours; its version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise InputError(_DAMAGED.format(path=path))
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
    return int(version)


def _sources(connection: sqlite3.Connection, path: Path) -> list[str]:
    names = [name for (name,) in connection.execute("SELECT name FROM source")]
    if not all(isinstance(name, str) for name in names):
        raise InputError(_DAMAGED.format(path=path))
    return names


def _named(connection: sqlite3.Connection, source: str, path: Path) -> str:
    """The name of a source as the file has it."""
    known = _sources(connection, path)
    same = [name for name in known if folded(name) == folded(source)]
    if not same:
        raise InputError(f"There is no source '{source}' in '{path}'.{did_you_mean(source, known)}")
    if len(same) > 1:
        raise InputError(
            f"The budget file '{path}' has {len(same)} sources of the name '{source}', which differ"
            " in how their letters are coded. Their people may be the same, so neither is used."
        )
    return same[0]


def _account(connection: sqlite3.Connection, source: str, path: Path) -> Account:
    """A source by the name that the file has."""
    epsilon, neighbours, delta = connection.execute(
        "SELECT epsilon, neighbours, delta FROM source WHERE name = ?", (source,)
    ).fetchone()
    entries = connection.execute(
        "SELECT id, time, source, policy, method, epsilon, status, note, facts, rho FROM entry"
        " WHERE source = ? ORDER BY id",
        (source,),
    )
    inspections = connection.execute(
        "SELECT time, kind, what, policy, note, after FROM inspection WHERE source = ? ORDER BY id",
        (source,),
    )
    try:
        return Account(
            source,
            _fraction(epsilon),
            Neighbours(neighbours),
            tuple(map(_entry, entries)),
            tuple(
                InspectionSummary(time, Inspection(kind), What(what), policy, note, after)
                for time, kind, what, policy, note, after in inspections
            ),
            None if delta is None else _fraction(delta),
        )
    except (ValueError, TypeError, ArithmeticError):  # What pydantic refuses is a ValueError.
        raise InputError(_DAMAGED.format(path=path)) from None


def _entry(cells: tuple[Any, ...]) -> BudgetEntry:
    id_, time, source, policy, method, epsilon, status, note, facts, rho = cells
    price, squared = (None if one is None else _fraction(one) for one in (epsilon, rho))
    declared = None if facts is None else DeclaredFacts.of_json(facts)
    return BudgetEntry(id_, time, source, policy, method, price, status, note, declared, squared)


def _fraction(text: object) -> Fraction:
    """A number above 0 as it is written here, and no other text: 1e999999999 takes days to read."""
    if not (isinstance(text, str) and _NUMBER.fullmatch(text)):
        raise ValueError
    return Fraction(text)

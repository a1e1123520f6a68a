"""The event log in a budget file: grants, entries, inspections and settlings, in a hash chain.

A file holds events and nothing else; what a source has spent is derived by replaying them. Events
are numbered without a gap, and each has the SHA-256 of its content and of the event before it:

    hash_0 = "",    hash_i = SHA-256(hash_(i-1), content_i)

Every opening checks the whole chain, the schema of the file, SQLite's own pages
(`integrity_check`, `foreign_key_check`) and its count of events. A file that fails is damaged:
nothing is read from it and nothing is spent.

The *head* of a log is its first hash, how many events it had, and the hash of the last. Whoever
keeps one can tell an older copy of the file: it has fewer events, or another hash at that place.

Files of versions 1 to 4, which kept tables in place of events, are read as the events that they
amount to: first the grants, then inspections and entries in their order, then what was settled. The
first transaction that writes makes them a log, or leaves them as they were. The order of
inspections and entries, which versions 1 and 2 kept by the clock, is taken for the worse.

Crashes. One transaction checks the budget and writes the event. It begins IMMEDIATE, so of two runs
the second waits and sees the first one's event. The file keeps a rollback journal, not a
write-ahead log: at rest it is one file, and a copy of it misses nothing. `synchronous = EXTRA`
because a commit in that mode is the removal of the journal: with FULL the removal itself may be
lost with the power, and the journal, back from the dead, would undo an event whose noise was
published.

Not promised: that a chain was not made anew by somebody who writes to the file on purpose.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, PositiveInt
from pydantic.dataclasses import dataclass as checked

from shoal.errors import InputError, InternalError

PATIENCE = 30.0
"""Seconds to wait for other runs that write to the same file."""

_DAMAGED = (
    "'{path}' is not a budget file of Shoal, or it is damaged. Nothing was read from it or spent. "
    "Restore the newest copy: every release made since then must be booked again."
)
_APPLICATION = 0x53484F4C  # "SHOL", in the file's header
_VERSION = 5
_NEVER = (
    "CREATE TRIGGER {} BEFORE {} ON event BEGIN SELECT RAISE(ABORT, 'an event is never {}'); END"
)
_TABLE = "id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, hash TEXT NOT NULL"
_SCHEMA = (
    f"CREATE TABLE event ({_TABLE})",
    _NEVER.format("event_stays", "DELETE", "deleted"),
    _NEVER.format("event_holds", "UPDATE", "changed"),
)
Event = dict[str, Any]


@checked(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class LogHead:
    """The state of a log, by which an older copy of it is recognised later.

    Attributes:
        origin: the hash of its first event, which identifies the file.
        events: the number of events.
        hash: the hash of the last event.
    """

    origin: str
    events: PositiveInt
    hash: str


class EventLog:
    """The events of an open file, checked; `append` adds one to the file.

    Args:
        connection: with a transaction under way.
        contents: the file's events in order, as JSON.
    """

    def __init__(self, connection: sqlite3.Connection, contents: Iterable[str]) -> None:
        self._connection = connection
        self._rows: list[tuple[str, str]] = []
        for content in contents:
            self._chain(content)

    def _chain(self, content: str) -> tuple[str, str]:
        before = self._rows[-1][1] if self._rows else ""
        self._rows.append((content, sha256(f"{before}\n{content}".encode()).hexdigest()))
        return self._rows[-1]

    @property
    def events(self) -> list[Event]:
        """The events, in order."""
        return [json.loads(content) for content, _ in self._rows]

    @property
    def hashes(self) -> list[str]:
        """The chained hash of each event."""
        return [hash_ for _, hash_ in self._rows]

    @property
    def head(self) -> LogHead:
        """The state of the log."""
        return LogHead(self.hashes[0], len(self.hashes), self.hashes[-1])

    def continues(self, head: LogHead) -> bool:
        """Whether the log contains the events of `head`; true if that has another origin."""
        if not self.hashes or self.hashes[0] != head.origin:
            return True
        return self.hashes[head.events - 1 : head.events] == [head.hash]

    def append(self, **event: Any) -> None:
        """Add an event to the file."""
        if not self._rows:
            event["file"] = secrets.token_hex(8)  # two files of one second have two origins
        self._write([self._chain(_text(event))])

    def begin(self) -> None:
        """Replace the tables of an older version of the file by a log of these events."""
        objects = self._connection.execute(
            "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            " AND type IN ('table', 'trigger') ORDER BY type DESC, name = 'source'"
        )
        for kind, name in objects.fetchall():
            self._connection.execute(f'DROP {kind} "{name}"')
        for statement in _SCHEMA:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._write(self._rows)

    def _write(self, rows: Iterable[tuple[str, str]]) -> None:
        self._connection.executemany("INSERT INTO event (content, hash) VALUES (?, ?)", rows)


@contextmanager
def open_log(path: Path, *, create: bool = False, write: bool = False) -> Iterator[EventLog]:
    """Open and check a file in one transaction, and report faults in plain sentences.

    Opening a file for writing upgrades it to this version.
    """
    if not create and not path.is_file():
        raise InputError(f"There is no budget file '{path}'. Make one with `shoal budget init`.")
    begin = "BEGIN IMMEDIATE" if create or write else "BEGIN"
    try:
        with closing(
            sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={'rwc' if create else 'rw'}",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
            )
        ) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(begin)
            try:
                new = create and _is_new(connection)
                log = EventLog(connection, () if new else _read_contents(connection, path))
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if (create or write) and version < _VERSION:
                    log.begin()
                yield log
            except BaseException:
                if connection.in_transaction:  # Some faults of SQLite have ended it already.
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    except UnicodeDecodeError:  # SQLite quotes what it cannot read.
        raise damage_error(path) from None


def _is_new(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(tables == 0 and application == 0)


def damage_error(path: Path) -> InputError:
    """Make the error for a damaged or altered file."""
    return InputError(_DAMAGED.format(path=path))


def _explain(error: sqlite3.Error, path: Path) -> InputError | InternalError:
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["BUSY"] | ["LOCKED"]:
            return InputError(
                f"The budget file '{path}' was locked by another run for {PATIENCE:g} s. Try again."
            )
        case ["READONLY"] | ["CANTOPEN"] | ["PERM"]:
            return InputError(f"The budget file '{path}' or its folder may not be written to.")
        case ["FULL"] | ["IOERR"]:
            return InputError(f"The disk refused to write the budget file '{path}': {error}.")
        case ["MISUSE"] | ["INTERRUPT"] | ["ABORT"]:
            return InternalError(f"The budget file '{path}' failed: {error}.")
        case _:  # Not a database, another schema than ours, or a text that is not UTF-8.
            return damage_error(path)


def _read_contents(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Read the events of a file; refuse a damaged file, or one that is not a budget file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise damage_error(path)
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
    integrity = connection.execute("PRAGMA integrity_check").fetchall()
    if integrity != [("ok",)] or connection.execute("PRAGMA foreign_key_check").fetchall():
        raise damage_error(path)
    try:
        if version < _VERSION:
            return [_text(event) for event in _events_of_tables(connection, version)]
        return _follow_chain(connection)
    except (ValueError, TypeError, LookupError):  # Such as a text that is not UTF-8.
        raise damage_error(path) from None


def _text(event: Event) -> str:
    return json.dumps(event, ensure_ascii=False, sort_keys=True)


def _follow_chain(connection: sqlite3.Connection) -> list[str]:
    """Read the events of a log whose schema, numbers and hashes are correct."""
    stated = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    if {sql for (sql,) in stated} != {*_SCHEMA}:
        raise ValueError
    rows = _rows(connection, "event")
    contents = [row["content"] for row in rows]
    if not rows or EventLog(connection, contents).hashes != [row["hash"] for row in rows]:
        raise ValueError
    return contents


def _events_of_tables(connection: sqlite3.Connection, version: int) -> Iterator[Event]:
    """Convert a file of versions 1 to 4 to events; its entries keep their numbers."""
    entries = _rows(connection, "entry")
    inspections = _rows(connection, {1: "", 2: "look"}.get(version, "inspection"))
    for name, epsilon, neighbours, time, *delta in connection.execute(
        "SELECT * FROM source ORDER BY rowid"
    ):
        at = delta[0] if delta else None
        yield {"event": "grant", "source": name, "epsilon": epsilon, "neighbours": neighbours,
               "delta": at, "time": time}  # fmt: skip
    for row in inspections:
        # An entry of the second in which an inspection began, or of a later one, counts as later;
        # so does every entry with a larger number.
        later = [e["id"] for e in entries if "after" not in row and e["time"] >= row["time"]]
        row.setdefault("after", min(later, default=len(entries) + 1) - 1)
        if row["after"] not in range(len(entries) + 1):
            raise ValueError
    for number, entry in enumerate([*entries, None]):
        for row in inspections:
            if row["after"] == number:
                kept = {key: row[key] for key in row if key not in {"id", "after"}}
                yield {"event": "inspection", "what": "compare", **kept}
        if entry is not None:
            kept = {key: entry[key] for key in entry if key not in {"id", "status"}}
            yield {"event": "entry", "facts": None, "rho": None, **kept}
    for entry in entries:
        if entry["status"] == "released":
            yield {"event": "settle", "entry": entry["id"]}


def _rows(connection: sqlite3.Connection, table: str) -> list[Event]:
    """Read the rows of a table, which must be numbered without gaps."""
    if not table:
        return []
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608 (a name of ours)
    names = [column for column, *_ in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchall()
    numbers = [row["id"] for row in rows]
    if numbers != list(range(1, len(rows) + 1)) or (last or [(0,)]) != [(len(rows),)]:
        raise ValueError
    return rows

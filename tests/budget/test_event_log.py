"""A damaged budget file is never read in favour of spending, and an older copy is recognised."""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.budget import budget_file, event_log
from shoal.core import Neighbours
from shoal.errors import InputError

FACTS = budget_file.DeclaredFacts(Neighbours.CHANGE_ONE)
RELEASES = 9


def spend(path, epsilon="0.1"):
    return budget_file.spend(
        path, "people", epsilon=Fraction(epsilon), facts=FACTS, policy="ab" * 32, method="laplace"
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of nine releases, all but the last settled, with two sources and an inspection."""
    path = tmp_path_factory.mktemp("budget") / "budget.sqlite"
    budget_file.init(path, "people", Fraction(1))
    budget_file.init(path, "firms", Fraction(2), delta=Fraction(1, 10**9))
    for number in range(RELEASES):
        booked = spend(path)
        if number == 4:
            budget_file.record_inspection(
                path, "people", budget_file.Inspection.TABLE, policy="ab" * 32
            )
        if number < RELEASES - 1:
            budget_file.settle(path, booked.id)
    return path


def damages(content, rng, count):
    """Contents with one flipped bit, and, a tenth as many, contents that end too early."""
    for _ in range(count):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        yield bytes(flipped)
    for _ in range(count // 10):
        yield content[: rng.randrange(len(content))]


def test_no_flipped_bit_and_no_truncation_is_read_in_favour_of_spending(whole, tmp_path):
    """Each reads the same, or is refused with a sentence; 11,000 of them under `make fuzz`."""
    count = 10_000 if os.environ.get("SHOAL_EXAMPLES") == "fuzz" else 400
    before = budget_file.show(whole)
    path = tmp_path / "budget.sqlite"
    refused = 0
    for content in damages(whole.read_bytes(), random.Random(41), count):  # noqa: S311
        path.write_bytes(content)
        for act in (budget_file.show, lambda path: budget_file.account(path, "people")):
            try:
                found = act(path)
            except InputError:
                refused += 1
            else:
                assert found in {before, before[1]}
        for left in tmp_path.glob("*-*"):
            left.unlink()

    assert refused > count / 10


def test_a_file_of_the_format_before_this_is_read_by_its_own_checks(tmp_path):
    """An entry that SQLite lost is a gap: the file knows the last number that it gave."""
    from tests.budget.test_budget_file import execute, made  # noqa: PLC0415 (its old files)

    path = made(tmp_path / "old.sqlite", 4)
    execute(path, "DELETE FROM entry WHERE id = 2")

    with pytest.raises(InputError, match="damaged"):
        budget_file.show(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event WHERE id = 12",
        "DELETE FROM event WHERE id = (SELECT max(id) FROM event)",
        "DELETE FROM event",
        "UPDATE event SET content = replace(content, '1/10', '1/11') WHERE id = 5",
        "UPDATE event SET content = '[]' WHERE id = 5",
        "UPDATE event SET hash = upper(hash) WHERE id = 5",
        "UPDATE event SET id = 99 WHERE id = 5",
        "INSERT INTO event (content, hash) VALUES ('{}', '')",
        "CREATE TABLE other (id INTEGER)",
        "DROP TABLE event",
    ],
)
def test_a_log_that_somebody_edited_is_refused_and_nothing_is_spent(whole, tmp_path, statement):
    path = shutil.copy(whole, tmp_path / "budget.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        kept = triggers.fetchall()
        for name, _ in kept:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        if "DROP" not in statement:
            for _, sql in kept:
                connection.execute(sql)
    content = path.read_bytes()

    for act in (budget_file.show, spend, lambda path: budget_file.settle(path, RELEASES)):
        with pytest.raises(InputError, match=r"or it is damaged\. Nothing was read from it"):
            act(path)
    assert path.read_bytes() == content


def test_a_log_without_its_triggers_is_refused(whole, tmp_path):
    path = shutil.copy(whole, tmp_path / "budget.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER event_stays")

    with pytest.raises(InputError, match="damaged"):
        budget_file.show(path)


@given(
    st.lists(
        st.sampled_from(
            [
                {"event": "settle", "entry": 0},
                {"event": "settle", "entry": 1},
                {"event": "settle", "entry": 99},
                {"event": "settle"},
                {"event": "entry", "source": "nobody"},
                {"event": "grant", "source": "people"},
                {"event": "inspection", "source": "people", "kind": "table"},
                {"event": "other"},
                {},
            ]
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_chain_of_events_that_cannot_have_happened_is_refused(events):
    """Its hashes are right: it was made by a program with a bug, or by somebody."""
    granted = {"event": "grant", "source": "people", "epsilon": "1", "neighbours": "change-one"}
    log = SimpleNamespace(events=[{**granted, "delta": None, "time": "t"}, *map(dict, events)])

    with pytest.raises(InputError, match="damaged"):
        budget_file._accounts(log, "budget.sqlite")


def test_hashes_depend_on_every_event_before(whole):
    with event_log.open_log(whole) as log:
        contents, hashes = [content for content, _ in log._rows], log.hashes
    for place in range(len(contents)):
        changed = [*contents]
        changed[place] += " "
        found = event_log.EventLog(None, changed).hashes
        assert found[:place] == hashes[:place]
        assert not set(found[place:]) & set(hashes)


def test_an_older_copy_is_refused_where_a_newer_folder_is_met(tmp_path):
    path, copy = tmp_path / "budget.sqlite", tmp_path / "copy.sqlite"
    budget_file.init(path, "people", Fraction(1))
    spend(path)
    shutil.copy(path, copy)
    head = spend(path).head
    spend(path)
    other = tmp_path / "other.sqlite"
    budget_file.init(other, "people", Fraction(1))

    for newer in (path, other):  # the file itself, and a file that has nothing to do with it
        budget_file.refuse_older_copy(newer, head, tmp_path / "release.internal")
    with pytest.raises(InputError, match=r"is an older copy .* when '.*release\.internal' was wri"):
        budget_file.refuse_older_copy(copy, head, tmp_path / "release.internal")
    spend(copy, "0.2")
    with pytest.raises(InputError, match="is an older copy"):  # as long as the other, but a fork
        budget_file.refuse_older_copy(copy, head, tmp_path / "release.internal")


GRANT = {"event": "grant", "source": "people", "epsilon": "1", "neighbours": "change-one",
         "delta": None, "time": "t"}  # fmt: skip
ENTRY = {"event": "entry", "source": "people", "time": "t", "policy": "", "method": "laplace",
         "epsilon": "1/2", "note": "", "facts": None, "rho": None}  # fmt: skip
SETTLE = {"event": "settle", "entry": 1}


def replayed(*events):
    return budget_file._accounts(
        SimpleNamespace(events=[dict(event) for event in events]), "budget.sqlite"
    )


def test_an_entry_is_replayed_for_a_source_that_was_granted_and_settled_once():
    assert replayed(GRANT, ENTRY, SETTLE)["people"].entries[0].status == "released"
    for events in (
        (GRANT, ENTRY, SETTLE, SETTLE),
        (GRANT, ENTRY | {"source": "nobody"}),
        (ENTRY, GRANT),
        (GRANT, ENTRY | {"epsilon": "0"}),
        (GRANT, ENTRY | {"more": 1}),
        (GRANT, GRANT),
    ):
        with pytest.raises(InputError, match="damaged"):
            replayed(*events)

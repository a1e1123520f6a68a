import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.budget import budget_file, event_log
from shoal.core import Neighbours
from shoal.errors import ClaimViolationError, InputError, InternalError

CHANGE, ADD = Neighbours.CHANGE_ONE, Neighbours.ADD_REMOVE
DIGEST = "ab" * 32


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "budget.db"
    budget_file.init(path, "people", Fraction(1))
    return path


def spend(path, epsilon, *, source="people", note="", rho=None, **facts):
    """Book a release; `facts` differ from those of a whole table, change-one, row by row."""
    return budget_file.spend(
        path,
        source,
        epsilon=None if epsilon is None else Fraction(epsilon),
        rho=rho,
        facts=budget_file.DeclaredFacts(**{"neighbours": CHANGE, **facts}),
        policy=DIGEST,
        method="laplace",
        note=note,
    )


def account(path):
    (only,) = budget_file.show(path)
    return only


def execute(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


# PrivacyLoss


def test_a_tenth_can_be_spent_ten_times_and_not_eleven_times(path):
    for _ in range(10):
        last = spend(path, "0.1")

    assert last.remaining == 0
    with pytest.raises(ClaimViolationError):
        spend(path, Fraction(1, 10**12))


def test_a_refusal_says_requested_remaining_and_difference_and_spends_nothing(path):
    spend(path, "0.75")

    with pytest.raises(ClaimViolationError) as refusal:
        spend(path, "0.6")

    assert str(refusal.value) == (
        "The budget of source 'people' does not cover this release: requested epsilon 0.6,"
        " remaining 0.25, short by 0.35. Nothing was spent."
    )
    assert refusal.value.exit_code == 3
    assert account(path).spent == Fraction(3, 4)


def test_a_reservation_counts_as_spent_and_settling_changes_its_status_alone(path):
    booked = spend(path, Fraction(1, 3), note="release of May")

    (before,) = account(path).entries
    budget_file.settle(path, booked.id)
    (after,) = account(path).entries

    assert (before.status, after.status) == ("reserved", "released")
    assert (before.epsilon, before.policy, before.method) == (Fraction(1, 3), DIGEST, "laplace")
    assert after.note == "release of May"
    assert account(path).spent == Fraction(1, 3) == 1 - booked.remaining


def test_an_entry_is_settled_once(path):
    booked = spend(path, "0.1")
    budget_file.settle(path, booked.id)

    with pytest.raises(InternalError, match="No reserved entry"):
        budget_file.settle(path, booked.id)
    with pytest.raises(InternalError, match="No reserved entry 99"):
        budget_file.settle(path, 99)


@pytest.mark.parametrize("epsilon", [0, -1])
def test_a_release_costs_something_or_is_unbounded(path, epsilon):
    with pytest.raises(InternalError, match="epsilon > 0 or none"):
        spend(path, epsilon)


@settings(max_examples=25)
@given(st.lists(st.fractions(Fraction(1, 7), 2, max_denominator=60), max_size=8))
def test_the_budget_is_never_exceeded_and_a_refusal_was_needed(requests):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        granted = Fraction(3)
        budget_file.init(path, "people", granted)
        spent = Fraction(0)
        for request in requests:
            if spent + request <= granted:
                spent += request
                assert spend(path, request).remaining == granted - spent
            else:
                with pytest.raises(ClaimViolationError):
                    spend(path, request)
            assert account(path).spent == spent <= granted


def test_sources_of_one_file_have_budgets_of_their_own(path):
    budget_file.init(path, "firms", Fraction(5))

    spend(path, 1)
    spend(path, 4, source="firms")

    assert [(a.source, a.remaining) for a in budget_file.show(path)] == [
        ("firms", 1),
        ("people", 0),
    ]


def test_an_add_remove_price_is_booked_doubled_in_a_change_one_budget(path):
    booked = spend(path, "0.3", neighbours=ADD)

    assert booked.epsilon == Fraction(6, 10)


def test_a_change_one_price_cannot_be_booked_in_an_add_remove_budget(tmp_path):
    path = tmp_path / "budget.db"
    budget_file.init(path, "people", Fraction(1), neighbours=ADD)

    assert spend(path, "0.3", neighbours=ADD).epsilon == Fraction(3, 10)
    with pytest.raises(InputError, match="counts add-remove neighbours"):
        spend(path, "0.3")


# Releases without a proved epsilon


def test_a_release_without_a_proved_epsilon_makes_the_cumulative_epsilon_none(path):
    spend(path, "0.1")
    booked = spend(path, None)

    assert account(path).cumulative is None
    assert account(path).spent == Fraction(1, 10)
    assert "cumulative epsilon none" in str(account(path))
    assert booked.epsilon is None
    assert len(booked.warnings) == 1
    assert "Source 'people' has no cumulative epsilon: a release without" in booked.warnings[0]


def test_none_stays_none_and_the_budget_goes_on_counting(path):
    spend(path, None)

    booked = spend(path, "0.4")

    assert account(path).cumulative is None
    assert booked.remaining == Fraction(6, 10)
    assert booked.warnings
    with pytest.raises(ClaimViolationError):
        spend(path, "0.7")


def test_two_k_anonymous_releases_of_one_source_warn_of_intersection(path):
    first, second = spend(path, None), spend(path, None)

    assert not any("intersecting" in text for text in first.warnings)
    assert any("intersecting their groups" in text for text in second.warnings)
    assert "intersecting" in str(account(path))


def test_releases_of_different_sources_do_not_warn(path):
    budget_file.init(path, "firms", Fraction(1))

    spend(path, None)

    assert spend(path, "0.5", source="firms").warnings == ()


def test_show_lists_what_was_spent_in_exact_numbers(path):
    spend(path, Fraction(1, 3), note="May")
    booked = spend(path, "0.25")
    budget_file.settle(path, booked.id)

    lines = str(account(path)).splitlines()

    assert lines[0] == (
        "people: budget epsilon 1 (change-one), spent 7/12, remaining 5/12,"
        " cumulative epsilon 7/12 per row"
    )
    facts = "change-one; unit: row; public: number of rows; whole table"
    assert lines[1].endswith("laplace  epsilon 1/3  reserved  May")
    assert lines[3].endswith("laplace  epsilon 0.25  released")
    assert lines[2].strip() == lines[4].strip() == facts
    assert "reserved entry counts as spent" in lines[5]


# The file


def test_epsilons_are_stored_as_exact_text(path):
    spend(path, "0.1")

    with event_log.open_log(path) as log:
        assert log.events[-1]["epsilon"] == "1/10"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event",
        "DELETE FROM event WHERE id = 2",
        "UPDATE event SET content = '{}'",
        "UPDATE event SET hash = ''",
    ],
)
def test_the_file_itself_refuses_to_forget(path, statement):
    spend(path, "0.1")

    with pytest.raises(sqlite3.IntegrityError):
        execute(path, statement)


def test_at_rest_it_is_one_file(path):
    spend(path, "0.1")

    assert [file.name for file in path.parent.iterdir()] == ["budget.db"]


@pytest.mark.parametrize(
    "act", [budget_file.show, lambda p: spend(p, 1), lambda p: budget_file.settle(p, 1)]
)
def test_a_missing_file_is_not_made_by_accident(tmp_path, act):
    with pytest.raises(
        InputError, match=r"There is no budget file .* Make one with `shoal budget init`"
    ):
        act(tmp_path / "budget.db")

    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        budget_file.init(tmp_path / "nowhere" / "budget.db", "people", Fraction(1))


@pytest.mark.parametrize("content", [b"", b"name,age\nAda,36\n" * 100, b"x" * 5000])
def test_a_file_that_is_no_budget_is_left_alone(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_bytes(content)

    with pytest.raises(InputError, match="is not a budget file"):
        budget_file.show(path)
    with pytest.raises(InputError, match="is not a budget file"):
        spend(path, 1)

    assert path.read_bytes() == content


def test_another_program_s_database_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    execute(path, "CREATE TABLE source (name TEXT)")
    content = path.read_bytes()

    with pytest.raises(InputError, match="is not a budget file"):
        budget_file.init(path, "people", Fraction(1))

    assert path.read_bytes() == content


def test_an_empty_file_left_by_a_crash_can_be_initialised(tmp_path):
    path = tmp_path / "budget.db"
    path.touch()

    budget_file.init(path, "people", Fraction(1))

    assert account(path).remaining == 1


def test_a_newer_file_is_refused(path):
    execute(path, "PRAGMA user_version = 6")

    with pytest.raises(InputError, match="has version 6; this Shoal knows 5"):
        spend(path, "0.1")


def test_a_file_switched_to_another_journal_is_refused(path):
    execute(path, "PRAGMA journal_mode = WAL")

    with pytest.raises(InputError, match="journal mode 'wal'"):
        spend(path, "0.1")


def test_an_unknown_source_is_refused_with_the_nearest_name(path):
    with pytest.raises(InputError, match=r"There is no source 'peple'.*Did you mean 'people'\?"):
        spend(path, "0.1", source="peple")


@pytest.mark.parametrize("name", ["people", "People", " peo ple "])
def test_a_source_has_one_budget_however_it_is_written(path, name):
    with pytest.raises(InputError, match="Source 'people' already has a budget"):
        budget_file.init(path, name, Fraction(9))

    assert account(path).granted == 1


@pytest.mark.parametrize(
    ("name", "epsilon", "words"),
    [
        ("", 1, "empty name"),
        ("people", 0, "Expected epsilon > 0"),
        ("people", -1, "Expected epsilon > 0"),
    ],
)
def test_impossible_budgets_are_refused(tmp_path, name, epsilon, words):
    with pytest.raises(InputError, match=words):
        budget_file.init(tmp_path / "budget.db", name, Fraction(epsilon))


def test_a_lock_held_too_long_is_an_error_and_spends_nothing(path, monkeypatch):
    monkeypatch.setattr(event_log, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(InputError, match=r"locked by another run for 0\.05 s"):
            spend(path, "0.1")

        other.execute("ROLLBACK")
    assert account(path).spent == 0


def test_a_reader_in_the_way_of_the_commit_spends_nothing(path, monkeypatch):
    monkeypatch.setattr(event_log, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM event").fetchall()

        with pytest.raises(InputError, match="locked"):
            spend(path, "0.1")

    assert account(path).spent == 0


@contextmanager
def nobody():
    """Give up root for a while, whom no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX users")
def test_a_read_only_file_can_be_shown_and_not_spent_from():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        budget_file.init(path, "people", Fraction(1))
        path.chmod(0o444)
        Path(folder).chmod(0o555)

        with nobody():
            assert account(path).remaining == 1
            with pytest.raises(InputError, match="may not be written to"):
                spend(path, "0.1")
            with pytest.raises(InputError, match="may not be written to"):
                budget_file.init(Path(folder) / "new.db", "people", Fraction(1))

        Path(folder).chmod(0o700)


def test_an_interrupted_body_leaves_nothing_behind(path):
    def interrupted():
        with event_log.open_log(path, write=True) as log:
            log.append(event="settle", entry=1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert account(path).source == "people"


def test_commits_outlive_the_power(path):
    """A commit is the removal of the journal; EXTRA (3) makes the removal itself durable."""
    with event_log.open_log(path) as log:
        connection = log._connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_numbers_read_as_people_write_them():
    assert budget_file.number(Fraction(-1, 4)) == "-0.25"
    assert budget_file.number(Fraction(0)) == "0"
    assert budget_file.number(Fraction(1, 10**9)) == "0.000000001"
    assert budget_file.number(Fraction(1, 10**10)) == "1/10000000000"


# Eight spenders, killed


def spenders(rounds):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spenders.py")), str(rounds), "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@forks
def test_eight_spenders_killed_at_random_never_overspend_and_never_release_unbooked():
    """Each commit waits for the disk, so 20 rounds; `make fuzz` plays 200."""
    rounds = 200 if os.environ.get("SHOAL_EXAMPLES") == "fuzz" else 20
    met = spenders(rounds)

    assert met["rounds"] == rounds
    assert met["killed"] > rounds
    assert met["unsettled"] > 0


VERSION_ONE = """
CREATE TABLE source (
    name TEXT PRIMARY KEY, epsilon TEXT NOT NULL, neighbours TEXT NOT NULL, time TEXT NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name), policy TEXT NOT NULL, method TEXT NOT NULL,
    epsilon TEXT, status TEXT NOT NULL CHECK (status IN ('reserved', 'released')),
    note TEXT NOT NULL
);
INSERT INTO source VALUES ('people', '1', 'change-one', '2026-01-01T00:00:00+00:00');
INSERT INTO entry (time, source, policy, method, epsilon, status, note)
    VALUES ('2026-01-02T00:00:00+00:00', 'people', 'digest', 'laplace', '1/4', 'released', '');
PRAGMA application_id = 1397247820;
PRAGMA user_version = 1;
"""
VERSION_TWO = """
CREATE TABLE look (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name), kind TEXT NOT NULL,
    policy TEXT NOT NULL, note TEXT NOT NULL
);
CREATE TRIGGER look_holds BEFORE UPDATE ON look
    BEGIN SELECT RAISE(ABORT, 'a look is never changed'); END;
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'an entry is never deleted'); END;
INSERT INTO look (time, source, kind, policy, note)
    VALUES ('2026-01-02T00:00:00+00:00', 'people', 'table', 'digest', 'compared');
INSERT INTO entry (time, source, policy, method, epsilon, status, note)
    VALUES ('2026-01-01T00:00:00+00:00', 'people', 'digest', 'laplace', '1/4', 'reserved', '');
PRAGMA user_version = 2;
"""


VERSION_THREE = """
ALTER TABLE entry ADD COLUMN facts TEXT;
CREATE TABLE inspection (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES source (name),
    kind TEXT NOT NULL CHECK (kind IN ('table', 'sample', 'selection')), what TEXT NOT NULL,
    policy TEXT NOT NULL, note TEXT NOT NULL, after INTEGER NOT NULL
);
CREATE TRIGGER entry_holds BEFORE UPDATE ON entry
    WHEN OLD.facts IS NOT NEW.facts
    BEGIN SELECT RAISE(ABORT, 'an entry is only ever settled'); END;
PRAGMA user_version = 3;
"""
VERSION_FOUR = """
ALTER TABLE entry ADD COLUMN rho TEXT;
ALTER TABLE source ADD COLUMN delta TEXT;
INSERT INTO inspection (time, source, kind, what, policy, note, after)
    VALUES ('2026-01-03T00:00:00+00:00', 'people', 'table', 'measure', 'digest', 'looked', 1);
INSERT INTO entry (time, source, policy, method, epsilon, status, note)
    VALUES ('2026-01-04T00:00:00+00:00', 'people', 'digest', 'laplace', '1/4', 'reserved', '');
PRAGMA user_version = 4;
"""
OLDER = {1: (), 2: (VERSION_TWO,), 3: (VERSION_THREE,), 4: (VERSION_THREE, VERSION_FOUR)}


def made(path, version):
    """A budget file as an earlier version of Shoal wrote it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("".join((VERSION_ONE, *OLDER[version])))
    return path


@pytest.fixture(params=sorted(OLDER))
def old(request, tmp_path):
    return made(tmp_path / "old.sqlite", request.param)


def version(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_an_old_file_is_read_as_it_is_and_reading_leaves_it(old):
    content = old.read_bytes()

    before = account(old)

    assert {entry.facts for entry in before.entries} == {None}
    assert before.spent == len(before.entries) * Fraction(1, 4)
    assert old.read_bytes() == content


@pytest.mark.parametrize(
    "write",
    [
        lambda old: spend(old, "0.25"),
        lambda old: budget_file.record_inspection(
            old, "people", budget_file.Inspection.SAMPLE, policy="digest"
        ),
        lambda old: budget_file.init(old, "firms", Fraction(1)),
    ],
)
def test_an_old_file_becomes_a_new_one_with_the_first_write_and_keeps_all_it_has(old, write):
    before = account(old)
    write(old)
    after = budget_file.account(old, "people")

    assert version(old) == 5
    assert [(e.id, e.epsilon, e.time) for e in before.entries] == [
        (e.id, e.epsilon, e.time) for e in after.entries
    ][: len(before.entries)]
    assert [e.status for e in before.entries] == [
        e.status for e in after.entries[: len(before.entries)]
    ]
    assert after.inspections[: len(before.inspections)] == before.inspections
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        execute(old, "DELETE FROM event")


def test_two_copies_of_an_old_file_become_logs_of_one_origin(tmp_path):
    heads = []
    for name in ("a", "b"):
        path = made(tmp_path / name, 4)
        heads.append(spend(path, "0.25").head)

    assert heads[0].origin == heads[1].origin
    assert heads[0].events == heads[1].events == 6


def test_a_write_that_fails_leaves_an_old_file_old(old):
    content = old.read_bytes()

    with pytest.raises(ClaimViolationError):
        spend(old, 100)
    with pytest.raises(InputError, match="is pure, and this release counts in rho"):
        spend(old, None, rho=Fraction(1, 100))
    with pytest.raises(InputError, match="There is no source"):
        spend(old, "0.1", source="nobody")

    assert old.read_bytes() == content


def test_the_order_of_an_old_file_is_taken_for_the_worse(tmp_path):
    """Its clock went back: entry 2 bears an earlier time than the look, entry 1 the same."""
    path = made(tmp_path / "old.sqlite", 2)

    (look,) = account(path).inspections

    assert look.after == 0
    assert account(path).cumulative is None


def test_an_old_entry_has_its_price_alone_and_none_beside_others(tmp_path):
    path = made(tmp_path / "old.sqlite", 1)
    alone = account(path).cumulative

    spend(path, "0.25")

    assert alone == Fraction(1, 4)
    assert account(path).cumulative is None
    assert account(path).spent == Fraction(1, 2)
    assert "Entry 1 is by an older version of Shoal" in account(path).reasons[0]


def test_a_rho_is_never_changed_and_the_budget_holds_no_more_than_was_granted(tmp_path):
    path = tmp_path / "budget.db"
    with pytest.raises(InputError, match="Expected a delta from 1e-30"):
        budget_file.init(path, "people", Fraction(1), delta=Fraction(1, 10))
    budget_file.init(path, "people", Fraction(1), delta=Fraction(1, 10**9))
    booked = spend(path, None, rho=Fraction(1, 100))

    assert (booked.epsilon, booked.rho) == (None, Fraction(1, 100))
    assert account(path).remaining == 1 - account(path).spent > 0
    with pytest.raises(ClaimViolationError, match="does not cover this release"):
        spend(path, None, rho=Fraction(1, 100))
    budget_file.settle(path, booked.id)
    assert account(path).entries[0].rho == Fraction(1, 100)


# Inspections


def test_a_release_after_an_inspection_has_no_number_for_all_together_whatever_the_clock(path):
    spend(path, "0.25")
    before = account(path)
    looked = budget_file.record_inspection(
        path, "people", budget_file.Inspection.TABLE, policy="digest"
    )
    spend(path, "0.25")
    after = account(path)

    assert before.cumulative == looked.cumulative == Fraction(1, 4)
    assert after.cumulative is None
    assert after.spent == Fraction(1, 2)
    (reason,) = after.reasons
    assert reason == (
        "Source 'people' has no cumulative epsilon: entry 2 came after an inspection of the"
        " table, so its epsilon is conditional."
    )


def test_an_inspection_of_one_source_leaves_the_others_alone(path):
    budget_file.init(path, "firms", Fraction(1))
    budget_file.record_inspection(path, "people", budget_file.Inspection.TABLE, policy="digest")

    booked = spend(path, "0.25", source="firms")

    assert not booked.inspected
    assert budget_file.account(path, "firms").cumulative == Fraction(1, 4)


def test_an_inspection_under_its_old_name_is_an_evaluation(tmp_path):
    (inspection,) = account(made(tmp_path / "old.sqlite", 4)).inspections

    assert (inspection.what, inspection.after) == ("evaluate", 1)


def test_only_an_inspection_of_the_table_counts(path):
    for kind in (budget_file.Inspection.SAMPLE, budget_file.Inspection.SELECTION):
        assert not budget_file.record_inspection(path, "people", kind, policy="digest").inspected

    assert budget_file.record_inspection(
        path, "people", budget_file.Inspection.TABLE, policy="digest"
    ).inspected


# Names


@pytest.mark.parametrize(
    "name", ["PEOPLE", "ｐｅｏｐｌｅ", "peo\u200bple", "peo\u00adple", "p eople"]
)
def test_a_source_is_found_however_its_name_is_written(path, name):
    spend(path, "0.5", source=name)

    assert account(path).spent == Fraction(1, 2)


def test_letters_that_are_coded_in_two_ways_are_one_name(path):
    budget_file.init(path, "caf\u00e9", Fraction(1))

    with pytest.raises(InputError, match="has a budget"):
        budget_file.init(path, "cafe\u0301", Fraction(1))
    spend(path, "0.5", source="CAFE\u0301")

    assert budget_file.account(path, "caf\u00e9").spent == Fraction(1, 2)


def test_an_old_file_with_one_name_in_two_codings_is_spent_from_under_neither(tmp_path):
    path = made(tmp_path / "old.sqlite", 4)
    execute(path, "INSERT INTO source VALUES ('caf\u00e9', '1', 'change-one', 'now', NULL)")
    execute(path, "INSERT INTO source VALUES ('cafe\u0301', '1', 'change-one', 'now', NULL)")

    with pytest.raises(InputError, match="2 sources of the name"):
        spend(path, "0.5", source="caf\u00e9")

    assert len(budget_file.show(path)) == 3


# Damage


DAMAGE = [
    "INSERT INTO source VALUES (x'ff', '1', 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES (CAST(x'ff' AS TEXT), '1', 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES ('firms', 1.5, 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES ('firms', '1/0', 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES ('firms', '-1', 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES ('firms', '1e99999999', 'change-one', 'now', NULL)",
    "INSERT INTO source VALUES ('firms', '1', x'00', 'now', NULL)",
    "INSERT INTO entry VALUES (3, x'00', 'people', 'p', 'm', '1', 'reserved', '', NULL, NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', x'00', '1', 'reserved', '', NULL, NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', 'm', 0.5, 'reserved', '', NULL, NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', 'm', '1', 'reserved', x'00', NULL, NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', 'm', '1', 'reserved', '', '{}', NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', 'm', '1', 'reserved', '', 'no', NULL)",
    "INSERT INTO entry VALUES (3, 't', 'people', 'p', 'm', '1', 'reserved', '', x'00', NULL)",
    "INSERT INTO entry VALUES (-5, 't', 'people', 'p', 'm', '1', 'reserved', '', NULL, NULL)",
    "INSERT INTO entry VALUES (5, 't', 'people', 'p', 'm', '1', 'reserved', '', NULL, NULL)",
    "INSERT INTO entry VALUES (3, 't', 'nobody', 'p', 'm', '1', 'reserved', '', NULL, NULL)",
    "INSERT INTO inspection VALUES (2, 't', 'people', 'table', 'spying', 'p', '', 0)",
    "INSERT INTO inspection VALUES (2, 't', 'people', 'table', 'compare', 'p', '', 'x')",
    "INSERT INTO inspection VALUES (2, 't', 'people', 'table', 'compare', 'p', '', 9)",
    "DROP TABLE inspection",
    "DELETE FROM entry WHERE id = 2",
    "DELETE FROM entry WHERE id = 1",
    "ALTER TABLE entry RENAME COLUMN facts TO fictions",
]


@pytest.mark.parametrize("statement", DAMAGE)
def test_wrong_types_and_gaps_in_an_old_file_are_a_sentence(tmp_path, statement):
    path = made(tmp_path / "old.sqlite", 4)
    execute(path, statement)

    with pytest.raises(InputError, match="is not a budget file of Shoal, or it is damaged"):
        budget_file.show(path)


def test_facts_with_a_field_too_many_or_of_a_wrong_type_are_refused():
    whole = budget_file.DeclaredFacts(CHANGE)
    stated = json.loads(whole.to_json())

    assert budget_file.DeclaredFacts.of_json(whole.to_json()) == whole
    for key, value in {"rows": 17, "contributions": "5", "cut": 1, "public_columns": "a"}.items():
        with pytest.raises(ValueError, match=key):
            budget_file.DeclaredFacts.of_json(json.dumps(stated | {key: value}))

"""Eight spenders on one budget file, killed at random points; run by `test_budget.py`.

A program of its own, because it forks, and a test process has threads. Each spender books,
leaves a file that stands for the release, and settles, until the budget is gone or it is
killed. After each round the file must open, hold no more than was granted, and list every
release; then one more spender uses up the rest to the last tenth.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

from shoal.budget import budget_file
from shoal.core import Neighbours
from shoal.errors import ClaimViolationError

SPENDERS, TENTHS = 8, 30
PRICE = Fraction(1, 10)


def spender(folder: Path) -> int:
    """Spend until refused; the number of releases."""
    releases = 0
    while True:
        try:
            booked = budget_file.spend(
                folder / "budget.db", "people", epsilon=PRICE, policy="0" * 64, method="laplace",
                facts=budget_file.DeclaredFacts(Neighbours.CHANGE_ONE),
            )  # fmt: skip
        except ClaimViolationError:
            return releases
        (folder / f"release-{booked.id}").touch()
        budget_file.settle(folder / "budget.db", booked.id)
        releases += 1


def fork(folder: Path) -> int:
    """Start a spender as a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            spender(folder)
            code = 0
        finally:
            os._exit(code)
    return child


def round_of(folder: Path, rng: random.Random) -> Counter[str]:
    """One round; how many were killed, entries left unsettled, transactions cut in half."""
    budget_file.init(folder / "budget.db", "people", TENTHS * PRICE)
    children = [fork(folder) for _ in range(SPENDERS)]
    longest = rng.choice([0.005, 0.05, 0.3])
    ends = sorted((rng.uniform(0, longest), child) for child in children)
    start = time.monotonic()
    for after, child in ends:
        time.sleep(max(0, start + after - time.monotonic()))
        os.kill(child, signal.SIGKILL)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert all(status in {0, signal.SIGKILL} for status in statuses), statuses

    halves = (folder / "budget.db-journal").exists()
    (account,) = budget_file.show(folder / "budget.db")
    check(folder, account)
    unsettled = sum(entry.status == "reserved" for entry in account.entries)
    assert unsettled <= SPENDERS

    spender(folder)
    (account,) = budget_file.show(folder / "budget.db")
    check(folder, account)
    assert account.remaining == 0
    assert len(account.entries) == TENTHS
    with sqlite3.connect(folder / "budget.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    killed = statuses.count(signal.SIGKILL)
    return Counter(rounds=1, killed=killed, unsettled=unsettled, halves=halves)


def check(folder: Path, account: budget_file.Account) -> None:
    """Never over budget, never a release without its entry, never settled without a release."""
    released = {int(path.name.split("-")[1]) for path in folder.glob("release-*")}
    entries = {entry.id: entry for entry in account.entries}
    assert account.spent <= account.granted
    assert account.spent == PRICE * len(entries)
    assert released <= entries.keys()
    assert {i for i, entry in entries.items() if entry.status == "released"} <= released


def main(rounds: int, seed: int) -> None:
    """Run the rounds and say what they met."""
    rng = random.Random(seed)  # noqa: S311
    met: Counter[str] = Counter()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            met += round_of(Path(folder), rng)
    print(json.dumps(met))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

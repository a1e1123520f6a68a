"""Audit any program: does its output tell two neighbouring tables apart better than it declares?

Runs fall in three parts that share nothing, each in a random order of the two tables.

    explore   all pairs of tables are run a few times; the half whose outputs differ most is run
              again, twice as often, until one pair is left
    choose    events of that pair: scores are fitted on what was explored, thresholds chosen here
    count     the events that were chosen, at most three, until they refute what is declared, or
              the runs are used up

Bounds are computed on the counted runs alone. They hold however often one looks, with the stated
confidence, because they are confidence sequences (`shoal.metrics.intervals.least_ever`), shared
over both chances of all events that are counted. Which pair and which events these are follows from
earlier runs, so nothing need be corrected for all that were tried there. A program whose runs are
not independent, such as one that counts them, is outside of what the bounds say; with what it keeps
in its home it cannot, as that is new in each run.

A log holds what each run showed. Who starts the same audit with it again goes on where it ended:
runs are asked for in an order that follows from its first line and from what earlier runs showed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal.auditing import programs
from shoal.auditing.neighbouring_tables import NeighbouringTables, check_neighbours
from shoal.auditing.outputs import Landed, file_learners, file_scores, land
from shoal.auditing.program_cases import NAMES, list_program_cases
from shoal.auditing.programs import Program, RunLimits
from shoal.auditing.result import Audit, Declared, Finding
from shoal.core import Neighbours, Policy, PrivacyMeasure, Progress, silent
from shoal.errors import InputError
from shoal.io import folders
from shoal.metrics.epsilon_lower_bound import (
    EpsilonLowerBound,
    PrivacyParameter,
    Score,
    bound_event,
    choose_events,
)

TRIALS = 1200
"""Runs on each table of a pair, of all three parts together, unless stated."""
LARGEST = 1e9
"""Of what a program may declare; beyond, it is a slip."""
_LEAST, _FEWEST = 80, 4
_EXPLORE, _CHOOSE = 0.3, 0.2
"""The shares of the runs that explore, and that choose."""
_FINALISTS = 3
_BATCH = 20
_ROUGH, _PLAIN = 0.1, 1.0
"""The share of confidence by which pairs are compared, and by how much more than is declared a pair
must show to be taken at once; no bound rests on either."""
Run = tuple[str, int, int]
"""The part, the pair and the table of a run."""


@dataclass(eq=False)
class _Log:
    """What runs showed, in their order, kept in a file if one is named."""

    path: Path | None
    terms: dict[str, Any]
    kept: list[dict[str, Any]] = field(default_factory=list)
    used: int = 0

    def __post_init__(self) -> None:
        if self.path is None:
            return
        if self.path.exists():
            # The last line may be torn where the machine stopped: that run is done again.
            whole, _, _ = self.path.read_text("utf-8").rpartition("\n")
            try:
                first, *self.kept = [json.loads(line) for line in whole.splitlines()]
            except ValueError:
                first = None
            if first != self.terms:
                raise InputError(
                    f"'{self.path}' is not the log of this audit: the program, its tables or what "
                    "is declared differ. Name another file, or remove it."
                )
            self.path.write_text(whole + "\n", "utf-8")
        else:
            with folders.refusing(self.path):
                self.path.touch(mode=0o600)  # a pair of one's own shows in what runs released
                self.path.write_text(json.dumps(self.terms) + "\n", "utf-8")

    def recall(self, run: Run) -> dict[str, Any] | None:
        """Return what the next run showed, if it is known."""
        if self.used == len(self.kept):
            return None
        entry = self.kept[self.used]
        if entry["run"] != list(run):
            raise InputError(f"'{self.path}' has runs in another order. Remove it, and start anew.")
        self.used += 1
        return entry

    def add(self, entries: Sequence[dict[str, Any]]) -> None:
        """Add what runs showed."""
        self.kept += entries
        self.used += len(entries)
        if self.path is not None and entries:
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in entries)


@dataclass(eq=False)
class _Runner:
    """Runs a program on the tables of some pairs."""

    program: Program
    pairs: Sequence[NeighbouringTables]
    log: _Log
    workers: int
    rng: np.random.Generator
    total: int
    progress: Progress
    done: int = 0

    def show(self, part: str, pair: int, times: int) -> tuple[list[Landed], list[Landed]]:
        """Run both tables of a pair so often, in a random order; return what each showed."""
        sides = self.rng.permutation(np.repeat([0, 1], times)).tolist()
        shown: tuple[list[Landed], list[Landed]] = ([], [])
        runs = [(part, pair, side) for side in sides]
        for side, landed in zip(sides, self._all(runs), strict=True):
            shown[side].append(landed)
        return shown

    def _all(self, runs: Sequence[Run]) -> Iterator[Landed]:
        known = [self.log.recall(run) for run in runs]
        todo = runs[sum(entry is not None for entry in known) :]
        made: list[dict[str, Any]] = []
        try:
            with ThreadPoolExecutor(self.workers) as pool:
                for run, landed in zip(todo, pool.map(self._once, todo), strict=True):
                    made.append({"run": list(run), **_to_json(landed)})
                    self.progress("running the program", self.done + len(made), self.total)
        finally:
            self.log.add(made)
        self.done += len(runs)
        yield from map(_from_json, [*filter(None, known), *made])

    def _once(self, run: Run) -> Landed:
        _, place, side = run
        pair = self.pairs[place]
        person = dict(zip(pair.before.columns, pair.before.row(pair.row), strict=True))
        return land(self.program((pair.before, pair.after)[side]), person)


def _to_json(landed: Landed) -> dict[str, Any]:
    return {"cells": landed.cells.tolist(), "facts": landed.facts, "texts": landed.texts}


def _from_json(entry: dict[str, Any]) -> Landed:
    cells = np.array(entry["cells"], dtype=np.float64, ndmin=2)
    return Landed(cells, entry["facts"], entry["texts"])


def audit_program(
    run: str | Callable[[pl.DataFrame], Any],
    policy: Policy,
    declared: Declared,
    *,
    neighbours: Neighbours,
    pair: tuple[Any, Any] | None = None,
    trials: int | None = None,
    limits: RunLimits,
    confidence: float = 0.95,
    log: Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Try to refute the privacy loss that a program declares; see `shoal.auditing.audit.audit`."""
    trials = TRIALS if trials is None else trials
    if trials < 2 * _LEAST:
        raise InputError(f"The number of trials must be at least {2 * _LEAST}; got {trials}.")
    adds = neighbours is Neighbours.ADD_REMOVE
    if pair is None:
        pairs = list_program_cases(policy.schema, adds=adds)
    else:
        before, after = (io.take(side, policy=policy).frame for side in pair)
        pairs = [check_neighbours(policy.schema, before, after, adds=adds)]
    if isinstance(run, str):
        program = programs.command_program(run, limits)
        name, workers = run, cpu_count() or 1
    else:
        program = programs.function_program(run)
        name, workers = getattr(run, "__name__", type(run).__name__), 1
    programs.refuse_broken(program(pairs[0].before))
    terms = {
        "program": name,
        "declared": str(declared),
        "neighbours": neighbours.value,
        "pairs": [one_pair.name for one_pair in pairs],
        "trials": trials,
        "seed": seed,
    }
    runner = _Runner(
        program, pairs, _Log(log, terms), workers, np.random.default_rng(seed), 2 * trials, progress
    )
    finding = _find(runner, declared, trials=trials, confidence=confidence)
    return Audit(name, "any output", "program", finding.bound.trials, confidence, (finding,))


def _find(runner: _Runner, declared: Declared, *, trials: int, confidence: float) -> Finding:
    target = declared.target
    place, explored, plain = _explore(runner, declared, int(trials * _EXPLORE))
    chosen = runner.show("choose", place, _LEAST if plain else int(trials * _CHOOSE))
    scores = _fit_scores(explored)
    looks = [{name: _values(score, side) for name, score in scores.items()} for side in chosen]
    share = (1 - confidence) / (2 * _FINALISTS)
    events = [event for _, event in choose_events(*looks, share=share, target=target)[:_FINALISTS]]
    hits, counted = np.zeros((len(events), 2), dtype=np.int64), 0
    best: EpsilonLowerBound | None = None
    while runner.done < 2 * trials or best is None:
        shown = runner.show("count", place, min(_BATCH, max(trials - runner.done // 2, 1)))
        counted += len(shown[0])
        for row, event in enumerate(events):
            hits[row] += [event.count(_values(scores[event.score], side)) for side in shown]
        bounds = [
            bound_event(
                event, int(before), int(after), trials=counted, confidence=confidence,
                tried=len(events), target=target, ever=True,
            )
            for event, (before, after) in zip(events, hits, strict=True)
        ]  # fmt: skip
        best = max(bounds, key=target.low)
        if target.low(best) > float(declared.amount):
            break
    return Finding(runner.pairs[place], declared, best)


def _explore(
    runner: _Runner, declared: Declared, most: int
) -> tuple[int, tuple[list[Landed], list[Landed]], bool]:
    """Run all pairs, and the better half again and again.

    Returns:
        The best pair, what it showed, and whether that was far more than is declared: then it is
        taken at once, and few runs will choose an event.
    """
    shown: list[tuple[list[Landed], list[Landed]]] = [([], []) for _ in runner.pairs]
    left = list(range(len(runner.pairs)))
    # Each round halves the pairs and doubles their runs, so all rounds take as many.
    times = max(most // (len(left) * len(left).bit_length()), _FEWEST)
    while True:
        for place in left:
            for side, more in enumerate(runner.show("explore", place, times)):
                shown[place][side].extend(more)
        apart = {place: _difference(shown[place], declared.target) for place in left}
        left.sort(key=lambda place: -apart[place])
        plain = apart[left[0]] > float(declared.amount) + _PLAIN
        if len(left) == 1 or plain:
            return left[0], shown[left[0]], plain
        left, times = left[: len(left) // 2], 2 * times


def _difference(shown: tuple[list[Landed], list[Landed]], target: PrivacyParameter) -> float:
    """Return what the best event of a pair would bound, fitted on half of its runs."""
    half = len(shown[0]) // 2
    scores = _fit_scores((shown[0][:half], shown[1][:half]))
    rest = [{name: _values(score, side[half:]) for name, score in scores.items()} for side in shown]
    return choose_events(*rest, share=_ROUGH, target=target)[0][0]


def _fit_scores(shown: tuple[Sequence[Landed], Sequence[Landed]]) -> dict[str, Score]:
    examples = [*shown[0], *shown[1]]
    learnt = {name: learn(*shown) for name, learn in file_learners(examples).items()}
    return file_scores(examples) | learnt


def _values(score: Score, outputs: Sequence[Landed]) -> Any:
    return np.nan_to_num(score(outputs), posinf=np.inf, neginf=-np.inf)


def describe_attacks() -> str:
    """List the pairs of tables, and what events are about."""
    people = "\n".join(f"  {name}" for name in NAMES.values())
    return (
        f"Pairs of tables, with and without a person (add-remove) or with somebody ordinary in the "
        f"person's place:\n{people}\n  each once more with as many rows as a person may have\n"
        "Events:\n"
        "  rows, columns, missing cells, sizes and names of files, exit code, what is printed\n"
        "  of each released column: names and types, the set of values, their number, least and "
        "greatest,\n  sum, first cells, last binary digit, cells that equal the person's\n"
        "  groups of equal rows; scores that are learnt: the difference of mean cells and of all "
        "figures\n"
        "Not examined: time, memory, and what a program writes elsewhere."
    )


def find_neighbours(name: str) -> Neighbours:
    """Find a relation of neighbouring tables by its name."""
    try:
        return Neighbours(name)
    except ValueError:
        known = " or ".join(Neighbours)
        raise InputError(f"Expected neighbours to be {known}, found '{name}'.") from None


def declare(
    *, epsilon: float | None, delta: float, rho: float | None, mu: float | None
) -> Declared:
    """Take what the authors of a program declare: exactly one of epsilon, rho and mu."""
    stated = {"epsilon": epsilon, "rho": rho, "mu": mu}
    given = {name: amount for name, amount in stated.items() if amount is not None}
    if len(given) != 1:
        raise InputError(
            "Expected what the program declares, one of epsilon (with a delta or without), rho and "
            f"mu; found {' and '.join(given) or 'none'}."
        )
    ((name, amount),) = given.items()
    if not 0 < amount <= LARGEST or not 0 <= delta < 1 or (delta and name != "epsilon"):
        raise InputError(
            f"Expected a positive {name} of at most {LARGEST:,.0f}, and a delta from 0 to 1 beside "
            f"epsilon alone; found {name} {amount:g} and delta {delta:g}."
        )
    measure = None if name == "mu" else PrivacyMeasure(name)
    return Declared(Fraction(str(amount)), PrivacyParameter(delta, measure), None, "")

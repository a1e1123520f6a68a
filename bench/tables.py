"""Rows drawn with a proved epsilon, against everybody else's: how near they are, what they take.

    python bench/tables.py [CASE ...] [--who NAME ...] [--runs N] [--kept] [--rivals] [--draw]

runs the methods of `_contenders.py` on the tables of `_cases.py`, computes the scores of
`_scores.py` and writes docs/tables/figures.csv: one line per figure, mean over runs and standard
error. From these files it draws the plots and fills in the tables of docs/research/tables.md;
`--draw` does only that. Our noise is seeded, so figures repeat: nothing here may be published.

Rivals (`_peers.py`, `rivals.py`) need environments of their own, in a folder that SHOAL_RIVALS
names; see bench/README.md. Their runs are kept, and `--kept` starts no new ones: after a change of
ours, that is all there is to do. `--who` runs the named ones, `--rivals` these; the figures of all
others stay as they are.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")  # CPU seconds of idle threads would count

import numpy as np
from _cases import NAMES, Case, cases
from _contenders import CONTENDERS, Contender, Outcome
from _figures import Figure, publish, read, write
from _peers import FOLDER, RIVALS, Rival, drawn
from _scores import MEASURES, Scores

_ORIGINAL = "original records"
RUNS = 5
MORE_RUNS = {"adult-5": 10, "census-4": 20}
"""Of ours, where that many are wanted; everybody else has RUNS."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    cases: tuple[str, ...]
    runs: int | None
    kept: bool
    who: tuple[str, ...]
    draw: bool

    def runs_anew(self, label: str) -> bool:
        """Whether somebody is run, or their figures are those on file."""
        return not self.who or label in self.who


def main() -> None:
    """Run, write, draw."""
    asked = _asked()
    if not FOLDER and not asked.draw:
        names = ", ".join(rival.label for rival in RIVALS)
        print(f"SHOAL_RIVALS is not set: {names} are left out, but for runs that are kept")
    if not asked.draw:
        for case in cases(lambda name: not asked.cases or name in asked.cases):
            print(f"{case.name}: {case.rows:,} rows, codes {case.sizes}", flush=True)
            write(case.name, list(compared(case, asked)))
    publish(NAMES)


def _asked() -> Asked:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *NAMES])
    parser.add_argument("--runs", type=int, help="of everybody; 5 by default, of ours 5 to 20")
    parser.add_argument("--kept", action="store_true", help="start no new runs of rivals")
    parser.add_argument("--who", nargs="+", default=(), help="run nobody else")
    parser.add_argument("--rivals", action="store_true", help="run rivals alone")
    parser.add_argument("--draw", action="store_true", help="only draw what is on file")
    given = parser.parse_args()
    who = [rival.label for rival in RIVALS] if given.rivals else given.who
    return Asked(tuple(given.cases), given.runs, given.kept, tuple(who), given.draw)


def compared(case: Case, asked: Asked) -> Iterator[Figure]:
    """Every figure of a case."""
    scores, on_file = Scores(case), read(case.name)

    def kept(label: str, epsilon: str = "") -> list[Figure]:
        return [figure for figure in on_file if (figure.who, figure.epsilon) == (label, epsilon)]

    yield from _original(scores) if asked.runs_anew(_ORIGINAL) else kept(_ORIGINAL)
    for epsilon in case.epsilons:
        chosen = ""
        for contender in CONTENDERS:
            # With the same seed, what `auto` chose would only repeat its figures.
            if not contender.applies(case) or contender.label == chosen:
                continue
            figures = kept(contender.label, epsilon)
            if asked.runs_anew(contender.label):
                figures = list(_figures(case, scores, epsilon, contender, asked))
            if contender.label == "auto" and figures:
                chosen = figures[0].note
            yield from figures
        for rival in RIVALS:
            if asked.runs_anew(rival.label):
                yield from _rival_figures(case, scores, epsilon, rival, asked)
            else:
                yield from kept(rival.label, epsilon)


def _original(scores: Scores) -> Iterator[Figure]:
    honest = scores.honest_accuracy
    if honest is not None:
        yield Figure("", _ORIGINAL, "none", "none", "accuracy", honest, 0.0, 2, "by halves")


def _figures(
    case: Case, scores: Scores, epsilon: str, contender: Contender, asked: Asked
) -> Iterator[Figure]:
    more = MORE_RUNS.get(case.name, RUNS) if contender.family == "ours" else RUNS
    runs = asked.runs or more
    contender.run(case, epsilon, 0)  # compiles
    found, notes = [], ""
    for seed in range(1, runs + 1):
        done = contender.run(case, epsilon, seed)
        found.append(_scored(scores, done, seed))
        notes = done.note
    yield from _summed(epsilon, contender, found, notes)


def _scored(scores: Scores, done: Outcome, seed: int) -> dict[str, float]:
    return {**scores.of(done.rows, seed), **done.figures, "seconds": done.seconds}


def _rival_figures(
    case: Case, scores: Scores, epsilon: str, rival: Rival, asked: Asked
) -> Iterator[Figure]:
    found, failures = [], []
    for run in range(1, (asked.runs or RUNS) + 1):
        peer = drawn(case, rival, epsilon, run, keep_only=asked.kept)
        if peer is None:
            continue
        if peer.rows is None:
            failures.append(peer.failure)
            continue
        rows = case.decoded(peer.rows, np.random.default_rng([run, 1]))
        # Compiling is told by the clock; of a busy machine we take the same share of CPU.
        share = peer.told["seconds"] / peer.told["clock"]
        stages = peer.told["compiling"]
        compiling = sum(stages.get(f"{name}_duration", 0.0) for name in _COMPILING) * share
        told = {"seconds": peer.told["seconds"], "compiled": peer.told["seconds"] - compiling}
        found.append(scores.of(rows, run) | told)
    note = "; ".join(sorted({f"{failures.count(text)} x {text}" for text in failures}))
    who = Contender(rival.label, "rival", rival.promise, _nobody)
    if found:
        yield from _summed(epsilon, who, found, note)
    elif failures:
        yield Figure(
            epsilon, who.label, who.family, who.promise, "failed", len(failures), 0, 0, note
        )


_COMPILING = ("jaxpr_to_mlir_module", "backend_compile")


def _nobody(_case: Case, _epsilon: str, _seed: int) -> Outcome:
    raise AssertionError


def _summed(
    epsilon: str, who: Contender, found: list[dict[str, float]], note: str
) -> Iterator[Figure]:
    """Means with standard errors, and a line on the screen."""
    shown = []
    for name in found[0]:
        values = [figures[name] for figures in found if name in figures]
        mean, n = float(np.mean(values)), len(values)
        error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        yield Figure(epsilon, who.label, who.family, who.promise, name, mean, error, n, note)
        if name in (*MEASURES, "seconds"):
            shown.append(f"{name} {mean:.4g}")
    print(f"  {epsilon:>4} {who.label:<30} {len(found)} runs: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()

"""Audits of programs: planted bugs, right programs, and membership in releases.

    python bench/audit_programs.py bugs [NAME ...]   each broken program, run as a command
    python bench/audit_programs.py right [AUDITS]    right programs, run inside: how often refuted
    python bench/audit_programs.py membership        who is in the table, by each method

The programs are those of tests/auditing/planted_bugs.py; they declare epsilon = 1 (and a delta of
1e-5 where their bug is a wrong one). CPU seconds are those of this process and of the commands.
Membership: half of each table is released, a quarter each is the attacker's reference and the
people who are compared with members.
"""

import os
import sys
from pathlib import Path
from typing import Any

import _workloads as workloads
import numpy as np
import polars as pl

import shoal

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.auditing.planted_bugs import BROKEN, POLICY, RIGHT  # noqa: E402 (the path comes first)


def cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def bugs(names: list[str]) -> None:
    """Audit broken programs as commands."""
    print("| bug | verdict | epsilon at least | event | counted runs | CPU-s |")
    print("|---|---|---|---|---|---|")
    for name in names or [*BROKEN]:
        start = cpu()
        command = (
            f"{sys.executable} {ROOT / 'tests/auditing/planted_bugs.py'} {name} {{in}} {{out}}"
        )
        delta = 1e-5 if name == "wrong-delta" else 0
        worst = (found := shoal.audit(POLICY, run=command, epsilon=1, delta=delta)).worst
        workloads.line(name, found.verdict, f"{worst.low:.2f}", str(worst.bound.event),
                       str(2 * worst.bound.trials), f"{cpu() - start:.0f}")  # fmt: skip


def right(audits: int) -> None:
    """Count how often right programs are refuted, at a confidence of 95%."""
    for name, program in RIGHT.items():
        start = cpu()
        refuted = sum(
            shoal.audit(POLICY, run=program, epsilon=1, trials=400, seed=seed).violated
            for seed in range(audits)
        )
        print(f"{name}: {refuted} of {audits} audits refute it, {cpu() - start:.0f} CPU-s",
              flush=True)  # fmt: skip


def describe(frame: pl.DataFrame) -> dict[str, Any]:
    """A line of a policy for each column, from its type and its ends."""
    columns: dict[str, Any] = {}
    for series in frame:
        if series.dtype.is_numeric():
            low, high = float(series.min()), float(series.max())  # type: ignore[arg-type]
            columns[series.name] = {"role": "quasi-identifier", "kind": "numeric",
                                    "bounds": [low, high], "step": 1}  # fmt: skip
        else:
            columns[series.name] = {"role": "quasi-identifier", "kind": "nominal",
                                    "categories": sorted(series.unique())}  # fmt: skip
    return columns


def resample(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """A generator without privacy: rows drawn again, one cell in four from another row."""
    drawn = frame[rng.integers(frame.height, size=frame.height)]
    mixed = {}
    for series in drawn:
        other = series.gather(rng.permutation(frame.height))
        mixed[series.name] = np.where(
            rng.random(frame.height) < 0.25, other.to_numpy(), series.to_numpy()
        )
    return pl.DataFrame(mixed)


METHODS: dict[str, dict[str, Any]] = {
    "mdav, k = 5": {"method": "mdav", "k": 5},
    "mondrian, k = 5": {"method": "mondrian", "k": 5},
    "laplace, epsilon 1": {"method": "laplace", "epsilon": 1},
    "auto, epsilon 1": {"method": "auto", "epsilon": 1},
}


def membership() -> None:
    """Attack membership in releases of two tables."""
    adult = pl.read_csv(workloads.DATA / "adult.csv", null_values="?").drop_nulls()
    names = ["age", "education-num", "hours-per-week", "sex", "race", "occupation"]
    adult = adult.rename({name: name.replace("_", "-") for name in adult.columns})
    people = shoal.sample.load().select("age", "sex", "region", "hours", "occupation", "income")
    tables = {"adult": adult.select([n for n in names if n in adult.columns]),
              "the sample": people}  # fmt: skip
    rng = np.random.default_rng(3)
    print(
        "| table | release | attack | area | rate at 1% | recognised |\n|---|---|---|---|---|---|"
    )
    for table, frame in tables.items():
        mixed = frame[rng.permutation(min(frame.height, 20_000))].drop_nulls()
        half = mixed.height // 2
        inside, outside = mixed[:half], mixed[half:]
        columns = describe(mixed)
        releases = {"rows drawn again": (resample(inside, rng), {"method": "mdav", "k": 2})}
        for name, protect in METHODS.items():
            policy = {"version": 1, "one_row_per_person": True, "columns": columns,
                      "protect": protect}  # fmt: skip
            releases[name] = (shoal.protect(inside, policy).data, protect)
        for name, (released, protect) in releases.items():
            policy = {"version": 1, "one_row_per_person": True, "columns": columns,
                      "protect": protect}  # fmt: skip
            figures = shoal.evaluate(
                inside, released, policy, control=outside, which=["membership"]
            ).figures
            for attack in dict.fromkeys(figure.subject for figure in figures):
                area, rate, named = (f.value for f in figures if f.subject == attack)
                workloads.line(table, name, attack, str(area), str(rate), f"{float(named):.1%}")


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["bugs"]
    if what == "bugs":
        bugs(rest)
    elif what == "right":
        right(int(rest[0]) if rest else 200)
    else:
        membership()

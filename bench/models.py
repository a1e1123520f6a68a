"""The checkers on Adult, in CPU seconds.

    python bench/models.py

prints a Markdown table for RESULTS.md. The classes are those of the original cells of age,
workclass, education, sex, hours and income: 14,408 of them. On the 12,767 without income
pycanon 1.3.6 took 19 s for t-closeness of occupation and did not finish capital-gain. Needs
adult.csv of SHOAL_DATA (or ../shared/data).
"""

import csv
import os
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.core import Distance, Diversity
from shoal.privacy_models import Counts, Verdict, k_anonymity, l_diversity, t_closeness

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
KEYS = ("age", "workclass", "education", "sex", "hours-per-week", "income")
MOST = 3.0


def main() -> None:
    """Time every checker, and all of them together with the counting."""
    with (DATA / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    keys = np.column_stack([codes([row[name] for row in rows]) for name in KEYS])
    occupation = codes([row["occupation"] for row in rows])
    gain = codes([int(row["capital-gain"]) for row in rows])

    print("| what | CPU s | achieved |")
    print("|---|---|---|")
    begin = time.process_time()
    labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    counts = {"occupation": Counts.of(labels, occupation), "capital-gain": Counts.of(labels, gain)}
    print(f"| {labels.max() + 1:,} classes counted | {time.process_time() - begin:.3f} | |")
    line("k-anonymity", lambda: k_anonymity(counts["occupation"].persons, 5))
    for name, count in counts.items():
        for kind in Diversity:
            c = Fraction(3) if kind is Diversity.RECURSIVE else None
            line(f"{kind} l of {name}", lambda: l_diversity(count, 3, kind=kind, c=c))  # noqa: B023
        for distance in Distance:
            if distance is Distance.HIERARCHICAL:
                edges = np.arange(count.width)[:, None]
                check = lambda: t_closeness(count, 1, distance=distance, edges=edges)  # noqa: B023, E731
            else:
                check = lambda: t_closeness(count, 1, distance=distance)  # noqa: B023, E731
            line(f"{distance} t of {name}", check)
    spent = time.process_time() - begin
    print(f"| all of it; wanted < {MOST:g} s | {spent:.3f} | met: {spent < MOST} |")


def line(what: str, check: Callable[[], Verdict]) -> None:
    """Time one checker and print what it found."""
    begin = time.process_time()
    found = check()
    print(f"| {what} | {time.process_time() - begin:.3f} | {float(found.achieved):.4g} |")


def codes(values: Sequence[int | str]) -> NDArray[np.int64]:
    """Number the distinct values from 0 in their order."""
    return np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)


if __name__ == "__main__":
    main()

"""CPU seconds and memory of every risk metric on 100,000 and on 1,000,000 records of 6 attributes.

Three numbers, one of them skewed, and three categories; the release moves the numbers a little, and
swaps one category in twenty. As many other people are not in the table. Wanted: all of it, but for
the best matching, in under 3 minutes of CPU and 3 GB at a million, and near linear from 100,000.
"""

import platform
import resource
import sys
import time
from typing import Any

import numpy as np

from shoal.metrics import uniqueness
from shoal.metrics.attacks import boosting, naive_bayes, record_linkage
from shoal.metrics.attacks.inference import inference
from shoal.metrics.attacks.linkability import linkability
from shoal.metrics.attacks.singling_out import singling_out

KINDS = np.array([False, False, False, True, True, True])
LEVELS = np.array([0, 0, 0, 16, 7, 40])
VALUES = 14


def people(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Places and a confidential code."""
    numbers = np.column_stack(
        [rng.normal(size=n), rng.exponential(size=n), np.floor(rng.random(n) * 80)]
    )
    codes = np.floor(rng.random((n, 3)) ** 1.5 * LEVELS[3:])
    value = (codes[:, 0] + np.floor(numbers[:, 2] / 20) + rng.integers(0, 6, n)) % VALUES
    return np.hstack([numbers, codes]), value.astype(np.int64)


def space(places: Any, original: Any) -> Any:
    """Places standardised by the original's means and deviations, for distances."""
    return (places - original.mean(axis=0)) / original.std(axis=0)


def run(n: int) -> float:
    """All metrics once; the CPU seconds together."""
    rng = np.random.default_rng(1)
    (x, code), (y, other) = people(rng, n), people(rng, n)
    released = x.copy()
    released[:, :3] += rng.normal(size=(n, 3)) * [0.05, 0.05, 1]
    swapped = rng.random((n, 3)) < 0.05
    released[:, 3:] = np.where(swapped, rng.permutation(released[:, 3:]), released[:, 3:])
    lower, upper = released, released + KINDS
    low, high = lower.min(axis=0), upper.max(axis=0)
    domains = np.column_stack([np.where(KINDS, 0, low), np.where(KINDS, LEVELS, high)])
    weights = rng.uniform(1, 30, n)
    one, two, three = (space(table, x) for table in (x, released, y))
    attack = {"discrete": KINDS, "rng": rng}
    known = [0, 1, 3, 4, 5]

    def naive() -> Any:
        model = naive_bayes.learn(
            lower, upper, code, discrete=KINDS, domains=domains, values=VALUES
        )
        control = (naive_bayes.guess(model, y), other)
        return naive_bayes.empirical_privacy(
            naive_bayes.guess(model, x), code, control=control
        ).attack

    def boosted() -> Any:
        model = boosting.learn_codes(lower, upper, code, **attack)
        return boosting.code_attack(model, x, code, rng=rng, control=(y, other)).attack

    work = {
        "naive Bayes, everybody": naive,
        "boosting, 50,000 rows, 20,000 people": boosted,
        "record linkage, 10,000 people": lambda: record_linkage.record_linkage(
            one, two, rng=rng, sample=10_000
        ),
        "record linkage, everybody": lambda: record_linkage.record_linkage(one, two, rng=rng),
        "interval disclosure, sd": lambda: record_linkage.interval_disclosure(one, two).records,
        "interval disclosure, rank": lambda: (
            record_linkage.interval_disclosure(one, two, scale="rank").records
        ),
        "closest records, 10,000 people": lambda: (
            record_linkage.closeness(two, one, three, rng=rng).copies
        ),
        "uniques": lambda: uniqueness.uniques(np.round(released)).uniques,
        "individual risk": lambda: uniqueness.individual_risk(np.round(released), weights).mean,
        "contributions": lambda: uniqueness.contributions(np.round(released), weights)[0].added,
        "against a population": lambda: (
            uniqueness.against_population(np.round(released), np.round(x)).alone
        ),
        "minimal uniques, up to 3": lambda: uniqueness.minimal_uniques(np.round(released)).sum(
            axis=0
        ),
        "singling out, one attribute": lambda: singling_out(
            lower, upper, x, control=y, attributes=1, **attack
        ),
        "singling out, three attributes": lambda: singling_out(
            lower, upper, x, control=y, **attack
        ),
        "linkability": lambda: linkability(
            lower, upper, x, control=y, first=[0, 3, 4], second=[1, 2, 5], **attack
        ),
        "inference": lambda: inference(
            lower[:, known],
            upper[:, known],
            lower[:, 2],
            x[:, known],
            x[:, 2],
            control=(y[:, known], y[:, 2]),
            discrete=KINDS[known],
            rng=rng,
            tolerance=0.05,
        ),
    }
    total = 0.0
    for name, measure in work.items():
        start = time.process_time()
        found = measure()
        cpu = time.process_time() - start
        total += cpu
        print(f"{name:<38} {cpu:>7.2f}   {found}", flush=True)
    return total


if __name__ == "__main__":
    print(platform.platform(), platform.python_version())
    run(2000)  # compiles
    for size in [int(argument) for argument in sys.argv[1:]] or [100_000, 1_000_000]:
        print(f"\n{size:,} x 6" + " " * 30 + "CPU-s")
        seconds = run(size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{'together':<38} {seconds:>7.2f}   peak {peak:.2f} GB")

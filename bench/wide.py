"""Wide tables: CPU seconds, peak memory, and one-way error beside spending everything on one-ways.

    python bench/wide.py [COLUMNS ROWS]

A generated table of many columns, epsilon 1: pure, and with delta = 1e-9 for add-remove neighbours.
The baseline spends all of its price on one-way marginals and draws columns independently. Errors
are total variations, means over columns and over 400 pairs of columns; of the pairs, once against
what independent columns with the true one-way marginals would have. Noise is seeded.
"""

import resource
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from _generated import Made, wide

from shoal.core import Neighbours, Price, PrivacyMeasure
from shoal.core.concentrated import rho_of
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.records import RecordTotal
from shoal.synthesis.maxent import MaxentPlan, PairMarginals, maxent
from shoal.synthesis.maxent.pair_covers import Cover
from shoal.synthesis.maxent.plan import plan_of

ASKED = [(60, 5000), (130, 160_000)]
RUNS = 3


def shares(columns: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """The cells of a marginal, flat."""
    cell = np.ravel_multi_index(columns, sizes)
    return np.bincount(cell, minlength=int(np.prod(sizes))) / len(cell)


def errors(table: Made, rows: list[np.ndarray]) -> tuple[float, float, float]:
    """One-way and two-way error of rows, and two-way error of independent columns."""
    codes, domains = table
    sizes = [domain.size for domain in domains]
    one = [shares([x], [size]) for x, size in zip(codes.T, sizes, strict=True)]
    drawn = [shares([y], [size]) for y, size in zip(rows, sizes, strict=True)]
    pairs = list(combinations(range(len(sizes)), 2))
    chosen = np.random.default_rng(5).permutation(len(pairs))[:400]
    two, alone = [], []
    for a, b in (pairs[i] for i in chosen):
        true = shares([codes[:, a], codes[:, b]], [sizes[a], sizes[b]])
        found = shares([rows[a], rows[b]], [sizes[a], sizes[b]])
        two.append(np.abs(true - found).sum() / 2)
        alone.append(np.abs(true - np.outer(one[a], one[b]).ravel()).sum() / 2)
    off = [np.abs(x - y).sum() / 2 for x, y in zip(one, drawn, strict=True)]
    return float(np.mean(off)), float(np.mean(two)), float(np.mean(alone))


def drawn(table: Made, plan: MaxentPlan, price: Price, seed: int) -> tuple[list[np.ndarray], float]:
    """Rows, and CPU seconds."""
    codes, domains = table
    total = RecordTotal(float(len(codes)), 100.0)
    begin = time.process_time()
    made = maxent(list(codes.T), domains, price=price, noise=SeededNoise(seed), total=total,
                  rng=np.random.default_rng(seed), plan=plan)  # fmt: skip
    return list(made.rows), time.process_time() - begin


def compare(columns: int, rows: int) -> None:
    """One table, both promises."""
    table = wide(1, rows, columns=columns)
    for neighbours, delta in ((Neighbours.CHANGE_ONE, None), (Neighbours.ADD_REMOVE, "1e-9")):
        price = Price(Fraction(1), neighbours)
        if delta:
            price = Price(rho_of(Fraction(1), Fraction(delta)), neighbours, PrivacyMeasure.RHO)
        plan = plan_of(table[1], n=rows, price=price)
        alone = replace(
            plan,
            marginals=PairMarginals.NONE,
            one_way_share=Fraction(1),
            cover=Cover((), (), 0.0),
            fine_pairs=0,
            fine_share=Fraction(0),
        )
        for label, own in ((plan.marginals.value, plan), ("one-way only", alone)):
            done = [drawn(table, own, price, seed) for seed in range(1, RUNS + 1)]
            found = np.array([errors(table, made) for made, _ in done])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(RUNS)
            print(
                f"{columns} x {rows:,}, {neighbours}, delta {delta or 0}: {label}, "
                f"{own.groups} groups, "
                f"{np.mean([seconds for _, seconds in done]):.1f} CPU-s, "
                f"one-way {mean[0]:.4f} +- {error[0]:.4f}, "
                f"pairs {mean[1]:.4f} +- {error[1]:.4f} ({mean[2]:.4f} if independent)",
                flush=True,
            )


if __name__ == "__main__":
    wanted = [(int(sys.argv[1]), int(sys.argv[2]))] if len(sys.argv) > 2 else ASKED
    for columns, rows in wanted:
        compare(columns, rows)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")

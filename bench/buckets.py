"""Bucketization: CPU time and classes reached, from 1,000 to a million records.

    python bench/buckets.py

prints a Markdown table for RESULTS.md. Kernels are compiled before anything is timed.
"""

import time
from fractions import Fraction

import numpy as np

from shoal.partition import Bucketed, bucketization, class_sizes, mdav, rank_buckets, warmup

ROWS = (1_000, 10_000, 100_000)
CASES = (("2", 5), ("1.5", 10), ("1.1", 50), ("5", 30), ("1", 5))


def main() -> None:
    """Time normal records whose confidential value depends on two of the columns."""
    warmup()
    print(
        "| records | columns | t | k | buckets | CPU s | MDAV, CPU s | classes | n / k | reached |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    seconds = {}
    for n in ROWS:
        for t, k in CASES:
            seconds[n, t] = line(*table(n), t, k)
    line(*table(100_000, 13), "2", 10)
    line(*table(1_000_000), "2", 10)
    X, value = table(100_003)  # a prime number of records, and ties
    line(X.round(1), value.round(0), "1.05", 5, 3)
    for t, _ in CASES:
        grown = seconds[ROWS[-1], t] / seconds[ROWS[-2], t]
        print(f"\nTenfold records, 10,000 to 100,000, t={t}: {grown:.1f} times the time.")
    begin = time.process_time()
    sizes = class_sizes([500_001, 500_002], 3, Fraction("1.001"))
    spent = time.process_time() - begin
    print(f"\nSizes alone, a million records, t=1.001: {spent:.2f} CPU-s, {sizes}.")


def table(n: int, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Records and a confidential value."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] / 2 + rng.normal(size=n)


def line(X: np.ndarray, value: np.ndarray, t: str, k: int, b: int | None = None) -> float:
    """Print a row; return the seconds."""
    bucket = rank_buckets(value, b or int(Fraction(t)) + 1)
    times = []
    for _ in range(2):
        begin = time.process_time()
        found: Bucketed = bucketization(X, bucket, k, Fraction(t))
        times.append(time.process_time() - begin)
    begin = time.process_time()
    mdav(X, k)
    other = time.process_time() - begin
    assert found.achieved <= Fraction(t)
    assert found.partition.sizes.min() >= k
    shown = [
        *(f"{len(X):,}", X.shape[1], t, k, found.counts.shape[1]),
        *(f"{min(times):.3g}", f"{other:.3g}", f"{len(found.partition):,}", f"{len(X) // k:,}"),
        f"{float(found.achieved):.4g}",
    ]
    print(f"| {' | '.join(map(str, shown))} |")
    return min(times)


if __name__ == "__main__":
    main()

"""How fast noise is drawn, and what share it has in a release of 1M x 4 with k = 10.

Draws per CPU-second by length of the vector and number of threads, the cost of a selection one
by one and many at once, and the cost of booking. CPU seconds of this process, all threads
together; the wall clock is shown as a ratio, because the machine may be busy.
"""

import platform
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from shoal.budget import budget_file
from shoal.hazmat.noise import OpenDPNoise
from shoal.mechanism.fixed_point import FixedPointGrid
from shoal.partition import mdav

RECORDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS, K = 4, 10


def clock(work: Callable[[], Any], repeat: int = 3) -> tuple[float, float]:
    """Least CPU and least wall seconds of some runs."""
    cpus, walls = [], []
    for _ in range(repeat):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return min(cpus), min(walls)


def draws() -> None:
    """Draws by scale, length and threads."""
    OpenDPNoise().discrete_laplace(np.zeros(10, np.int64), scale=Fraction(1))
    print("scale        draws / CPU-s")
    for scale in (Fraction(1, 10), Fraction(1), Fraction(1000, 3), Fraction(2**20) * 10 / 3):
        zeros = np.zeros(20_000, np.int64)
        cpu, _ = clock(lambda z=zeros, s=scale: OpenDPNoise(threads=1).discrete_laplace(z, scale=s))
        print(f"{float(scale):<12.6g} {zeros.size / cpu:>13,.0f}")
    print("\nlength    threads   draws / CPU-s   CPU / wall")
    for size in (100, 1000, 10_000, 100_000):
        for threads in (1, 2, 4):
            zeros, source = np.zeros(size, np.int64), OpenDPNoise(threads=threads)
            cpu, wall = clock(
                lambda z=zeros, s=source: s.discrete_laplace(z, scale=Fraction(2**20))
            )
            print(f"{size:<9,} {threads:<9} {size / cpu:>13,.0f}   {cpu / wall:>10.2f}")


def selections() -> None:
    """One selection against many."""
    print("\nselection, CPU microseconds each; 'flat' scores are close, 'steep' far apart")
    print("candidates   one by one   many, flat   many, steep")
    price = {"sensitivity": Fraction(1), "epsilon": Fraction(1)}
    rng = np.random.default_rng(1)
    for candidates in (2, 5, 10, 20, 100):
        rows, source = 2000, OpenDPNoise()
        flat = rng.integers(0, 3, (rows, candidates))
        steep = rng.permuted(np.tile(np.arange(candidates) * 20, (rows, 1)), axis=1)
        one, _ = clock(lambda s=steep, o=source: [o.select(r, **price) for r in s[:300]])
        many = [clock(lambda s=s, o=source: o.select_many(s, **price))[0] for s in (flat, steep)]
        print(
            f"{candidates:<12} {one / 300 * 1e6:>10.0f} {many[0] / rows * 1e6:>12.1f}"
            f" {many[1] / rows * 1e6:>13.1f}"
        )


def share() -> None:
    """Noise on the centroids of MDAV, against MDAV itself."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(RECORDS, COLUMNS))
    mdav(X[:1000], k=K)
    grouping, _ = clock(lambda: mdav(X, k=K), repeat=1)
    grid, groups = FixedPointGrid(-5, 5), RECORDS // K
    encoding, _ = clock(lambda: grid.encode(X))
    zeros = np.zeros((groups, COLUMNS), np.int64)
    scale = Fraction(grid.steps * COLUMNS)
    noise, wall = clock(lambda: OpenDPNoise().discrete_laplace(zeros, scale=scale), repeat=1)
    print(f"\n{RECORDS:,} x {COLUMNS}, k = {K}, CPU seconds")
    print(f"MDAV                {grouping:.2f}")
    print(f"grid                {encoding:.3f}")
    print(f"noise, {zeros.size:,} draws  {noise:.2f}  (CPU / wall {noise / wall:.2f})")
    print(f"noise / (MDAV + grid + noise)  {noise / (grouping + encoding + noise):.2f}")


def booking() -> None:
    """Cost of one spending and its settlement."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        budget_file.init(path, "people", Fraction(1000))

        def book() -> None:
            for _ in range(50):
                booked = budget_file.spend(
                    path, "people", epsilon=Fraction(1, 10), policy="-", method="laplace"
                )
                budget_file.settle(path, booked.id)

        cpu, wall = clock(book)
    print(f"\nspend + settle: {cpu / 50 * 1e3:.2f} CPU-ms, {wall / 50 * 1e3:.2f} ms wall")


if __name__ == "__main__":
    print(platform.platform(), platform.python_version(), "\n")
    draws()
    selections()
    share()
    booking()

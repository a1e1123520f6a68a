"""How long an audit takes: CPU seconds of this process, all threads together.

A mechanism that answers with one number, 100,000 batched draws on each of two tables, is to be
audited in under 3 CPU seconds with numpy's noise; ours costs its draws on top. Then the array
level of `shoal.audit` for some policies.
"""

import platform
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import shoal
from shoal.hazmat.noise import OpenDPNoise
from shoal.measures.audit import identity, low_bits, lower_bound

DRAWS = 100_000
STEPS = 2**20
SCORES = {"output": identity, "low bits": low_bits}


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def scalar() -> None:
    """One number, two sources of noise."""
    rng, noise = np.random.default_rng(1), OpenDPNoise(threads=1)

    def floating(value: float) -> Callable[[int], Any]:
        return lambda runs: value + rng.laplace(0.0, 1.0, runs)

    def exact(value: int) -> Callable[[int], Any]:
        return lambda runs: (
            noise.discrete_laplace(np.full(runs, value * STEPS), scale=Fraction(STEPS)) / STEPS
        )

    exact(0)(1)
    print("scalar, 2 x 100,000 draws    CPU-s   epsilon at least   event")
    for name, sides in (
        ("numpy's Laplace", (floating(0.0), floating(1.0))),
        ("discrete Laplace, OpenDP", (exact(0), exact(1))),
    ):
        cpu, bound = clock(lambda s=sides: lower_bound(*s, scores=SCORES, trials=DRAWS))
        print(f"{name:<28} {cpu:>5.2f}   {bound.epsilon.low:>16.2f}   {bound.event}")


def tables(trials: int = 4000) -> None:
    """The array level, on each method's own counterexample or the extremes."""
    print(f"\narrays, {trials:,} runs a table  CPU-ms a run   epsilon at least")
    columns = {
        name: {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]} for name in "ab"
    }
    for protect in (
        {"method": "laplace"},
        {"method": "ir-laplace", "k": 5, "release_form": "row-aligned"},
        {"method": "mdav-laplace", "k": 40},
        {"method": "insensitive-laplace", "k": 20},
    ):
        policy = {"version": 1, "columns": columns, "protect": {"epsilon": 1, **protect}}
        shoal.audit(policy, trials=20, most=1)
        cpu, found = clock(lambda p=policy: shoal.audit(p, trials=trials, most=1))
        low = found.worst.bound.epsilon.low
        print(f"{protect['method']:<28} {1e3 * cpu / (2 * trials):>12.3f}   {low:>16.2f}")


if __name__ == "__main__":
    print(platform.platform(), platform.python_version(), "\n")
    scalar()
    tables()

"""How long an audit takes: CPU seconds of this process, all threads together.

A mechanism that answers with one number, 100,000 batched draws on each of two tables, should be
audited in under 3 CPU seconds with numpy's noise; ours costs its draws on top. Then the array
level of `shoal.audit` for some policies.

`python bench/audit.py drawn [runs [epsilon [mechanism ...]]]` audits the mechanisms that draw rows
instead, on worst-case pairs of small tables, of which one has a record changed or a record less:
the exact loss of every run (`shoal.auditing.privacy_losses`), of which none may exceed
epsilon, and the lower bound that frequencies of losses give. The fit of `maxent` sees noisy answers
alone and comes after the last draw, so it is left out. `python bench/audit.py folders` audits each
of them once from end to end, by the folder that would be published.
"""

import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

import shoal
import shoal.synthesis.maxent as synthesis
from shoal.auditing.privacy_losses import losses
from shoal.core import Kind, Neighbours, Price
from shoal.hazmat.fakes import SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.mechanism.records import RecordTotal
from shoal.metrics.epsilon_lower_bound import identity, low_bits, lower_bound
from shoal.synthesis.copula import Margins, copula
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent, plan_of
from shoal.synthesis.maxent.structural_zeros import Component
from shoal.synthesis.privtree import Fill, privtree

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


LINE = [Domain(name, Kind.NUMERIC, 17) for name in "ab"]
LONG = [Domain(name, Kind.NUMERIC, 300) for name in "ab"]  # maxent counts these over trees
FLAT = [Domain(name, Kind.NOMINAL, 2) for name in "ab"]
FOUR = [Domain("a", Kind.NUMERIC, 9), *(Domain(name, Kind.NOMINAL, 3) for name in "bcd")]


def _plan(
    codes: Any, attributes: Any, price: Price, *, total: RecordTotal | None = None, **_: Any
) -> Any:
    return plan_of(attributes, n=total.rows if total else len(codes[0]), price=price)


def asked(codes: Any, attributes: Any, *, price: Price, **lent: Any) -> Any:
    """`maxent` that selects a fine pair, or none; with so few records, noise decides."""
    chosen = _plan(codes, attributes, price, **lent)
    chosen = replace(
        chosen,
        groups=2,
        fine_pairs=1,
        fine_groups=9,
        fine_cells=len(codes[0]),
        fine_share=(1 - chosen.one_way_share) / 4,
    )
    return maxent(codes, attributes, price=price, plan=chosen, **lent)


def chose(codes: Any, attributes: Any, *, price: Price, **lent: Any) -> Any:
    """`maxent` that chooses two three-way marginals for half of what single columns leave."""
    chosen = _plan(codes, attributes, price, **lent)
    half = (1 - chosen.one_way_share) / 2
    chosen = replace(
        chosen, three_way=2, three_way_share=half, fine_pairs=0, fine_share=Fraction(0)
    )
    return maxent(codes, attributes, price=price, plan=chosen, **lent)


BREAKS = Component((0, 1), (np.arange(2),) * 2, np.array([[True, True], [True, False]]))
"""The record that differs breaks the rule: not both columns are 1."""
KEEPS = replace(BREAKS, allowed=np.array([[True, False], [False, True]]))
"""It keeps the rule that both columns are equal, as a repaired record does."""

MECHANISMS = {
    "privtree, uniform": (privtree, {"fill": Fill.UNIFORM}),
    "privtree, centroid": (privtree, {"fill": Fill.CENTROID}),
    "copula, blocks": (copula, {"margins": Margins.BLOCKS}),
    "copula, tree": (copula, {"margins": Margins.TREE}),
    "maxent": (maxent, {}),
    "maxent, asked": (asked, {}),
    "maxent, threes": (chose, {}),
    "maxent, a rule is broken": (maxent, {"zeros": (BREAKS,)}),
    "maxent, a rule is kept": (maxent, {"zeros": (KEEPS,)}),
}
CATEGORIES = [("categories, n = 12", 12, FLAT)]
PAIRS = [
    ("numbers, n = 3", 3, LINE),
    *CATEGORIES,
    ("numbers, n = 40", 40, LINE),
    ("long numbers, n = 3", 3, LONG),
]
FOURS = [("four columns, n = 3", 3, FOUR), ("four columns, n = 12", 12, FOUR)]


def drawn(runs: int = 20_000, epsilon: Fraction = Fraction(1), names: Sequence[str] = ()) -> None:
    """Exact losses of the mechanisms that draw rows, and what frequencies of them show."""
    print(
        "| mechanism | table | neighbours | largest loss over epsilon | epsilon at least, 95% "
        "| runs | CPU-s |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, (mechanism, options) in MECHANISMS.items():
        if names and name not in names:
            continue
        pairs = CATEGORIES if "zeros" in options else FOURS if mechanism is chose else PAIRS
        for what, n, attributes in pairs:
            for neighbours in Neighbours:
                if mechanism is not copula or neighbours is Neighbours.CHANGE_ONE:
                    case = partial(mechanism, price=Price(epsilon, neighbours), **options)
                    found = audited(case, n, attributes, neighbours, runs)
                    print(f"| {name} | {what} | {neighbours} | {found} |", flush=True)


class _LastDrawError(Exception):
    """Nothing is drawn any more."""


def _ended(*_args: Any, **_terms: Any) -> None:
    raise _LastDrawError


def audited(case: Any, n: int, attributes: Any, neighbours: Neighbours, runs: int) -> str:
    """All records at one corner and one at the other, beside a neighbour of that table."""
    corner = [np.zeros(n, dtype=np.int64) for _ in attributes]
    after = [
        np.append(column[1:], attribute.size - 1)
        for column, attribute in zip(corner, attributes, strict=True)
    ]
    before, known = corner, {}
    if neighbours is Neighbours.ADD_REMOVE:
        # The number of records is an answer with noise, and the same for both.
        before, known = [column[:-1] for column in after], {"total": RecordTotal(n + 0.4, 9.0)}

    def run(codes: Any, noise: Any) -> None:
        with suppress(_LastDrawError):
            case(codes, attributes, noise=noise, rng=np.random.default_rng(1), **known)

    largest = 0.0

    def seen(sampler: Callable[[int], Any]) -> Any:
        def sample(count: int) -> Any:
            nonlocal largest
            found = sampler(count)
            largest = max(largest, float(np.abs(found).max()))
            return found

        return sample

    sides = tuple(map(seen, losses(run, before, after, SeededNoise(1))))
    with patch.object(synthesis, "common_margins", _ended) if case.func is maxent else ExitStack():
        cpu, bound = clock(lambda: lower_bound(*sides, scores={"loss": identity}, trials=runs))
    share = largest / float(case.keywords["price"].amount)
    return f"{share:.3f} | {bound.epsilon.low:.2f} | 2 x {runs:,} | {cpu:.0f}"


def folders(trials: int = 100) -> None:
    """Each of them once from end to end: everything that lands in the folder to publish."""
    print(f"\nfolders, {trials:,} releases of each table   epsilon at least   event")
    categories = {"role": "quasi-identifier", "kind": "nominal", "categories": ["0", "1"],
                  "keep_missing": False}  # fmt: skip
    pair = [pl.DataFrame(dict.fromkeys("ab", ["0"] * 11 + [last])) for last in ("0", "1")]
    for method in ("privtree", "copula", "maxent"):
        policy = {
            "version": 1,
            "columns": dict.fromkeys("ab", categories),
            "protect": {"method": method, "epsilon": 1},
        }
        found = shoal.audit(policy, pair=tuple(pair), level="files", trials=trials)
        worst = found.worst.bound
        print(f"{method:<34} {worst.epsilon.low:>16.2f}   {worst.event}; {found.verdict}")


if __name__ == "__main__":
    print(platform.platform(), platform.python_version(), "\n")
    if "drawn" in sys.argv:
        drawn(*map(int, sys.argv[2:3]), *map(Fraction, sys.argv[3:4]), names=sys.argv[4:])
    elif "folders" in sys.argv:
        folders()
    else:
        scalar()
        tables()

"""Drawn rows beside the rivals' on generated tables that are hard, and on curves.

    python bench/hard.py run [TABLE ...] [--seeds A B] [--who NAME ...] [--epsilon E] [--nice]
    python bench/hard.py curve {n,columns,epsilon} [--sort NAME] [--seeds A B]
    python bench/hard.py show

Tables are those of `hard_tables.py` in SHOAL_DATA, by name, `factor40` (its factor with 40 columns)
among them; all columns are declared nominal, which is what rivals know of them. Who: `delta`
(epsilon, 1e-9, add-remove, which is the rivals' promise), `pure` (add-remove), `one-way` (all of
delta's budget on one-way marginals), and the rivals of `rivals.py`. Figures are total variations of
codes: mean over pairs of columns, the worst pair, mean over up to 300 triples. Each run is kept as
a line of `out/hard.jsonl`; `show` prints means with standard errors and paired differences.
Noise of ours is seeded: nothing here may be published.
"""

import argparse
import importlib.util
import json
import os
import time
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import _generated as generated
import numpy as np
from _cases import DATA
from _peers import CACHE, rows_of

from shoal.core import Kind, Neighbours, Price, PrivacyMeasure
from shoal.core.concentrated import rho_of
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.records import RecordTotal
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import PairMarginals, maxent, plan_of

Ints = generated.Ints
TABLES = ("ring", "hier", "dup", "factor", "factor40", "mixsize", "sparse", "rare", "few")
KEPT = CACHE / "hard.jsonl"
FIGURES = ("mean pair", "worst pair", "mean triple")


def table(name: str, seed: int, **more: int) -> tuple[Ints, list[int]]:
    """A table and its sizes."""
    spec = importlib.util.spec_from_file_location("hard_tables", DATA / "hard_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if name == "factor40":
        name, more = "factor", {"m": 40} | more
    columns, sizes = getattr(module, name)(np.random.default_rng(seed), **more)
    return np.column_stack(columns).astype(np.int64), list(map(int, sizes))


def figures(codes: Ints, rows: Ints, sizes: list[int]) -> dict[str, float]:
    """Total variations, beside what sampling the table anew would have."""

    def off(members: tuple[int, ...]) -> float:
        keys = [np.zeros(len(X), dtype=np.int64) for X in (codes, rows)]
        for j in members:
            keys = [k * sizes[j] + X[:, j] for k, X in zip(keys, (codes, rows), strict=True)]
        seen, place = np.unique(np.concatenate(keys), return_inverse=True)
        p, q = (
            np.bincount(part, minlength=seen.size) / part.size
            for part in np.split(place, [len(codes)])
        )
        return float(np.abs(p - q).sum() / 2)

    m = range(len(sizes))
    pairs = [off(pair) for pair in combinations(m, 2)]
    triples = list(combinations(m, 3))
    chosen = np.random.default_rng(5).permutation(len(triples))[:300]
    mean_triple = np.mean([off(triples[i]) for i in chosen]) if triples else np.nan
    return dict(zip(FIGURES, map(float, (np.mean(pairs), max(pairs), mean_triple)), strict=True))


def ours(
    codes: Ints, domains: list[Domain], who: str, epsilon: str, seed: int
) -> tuple[Ints, dict[str, Any]]:
    """Rows of maxent by its plan."""
    price = Price(Fraction(epsilon), Neighbours.ADD_REMOVE)
    if who in {"delta", "one-way"}:
        rho = rho_of(Fraction(epsilon), Fraction(1, 10**9))
        price = Price(rho, Neighbours.ADD_REMOVE, PrivacyMeasure.RHO)
    plan = plan_of(domains, n=len(codes), price=price)
    if who == "one-way":
        plan = _alone(plan)
    begin = time.process_time()
    made = maxent(
        list(codes.T),
        domains,
        price=price,
        noise=SeededNoise(seed),
        rng=np.random.default_rng(seed),
        total=RecordTotal(float(len(codes)), 100.0),
        plan=plan,
    )
    seconds = time.process_time() - begin
    facts = {"seconds": seconds, "plan": f"{plan.marginals.value} {plan.groups}"}
    fine = made.facts.get("pairs over finer groups", [])
    return np.column_stack(made.rows).astype(np.int64), facts | {"fine": len(fine)}


def _alone(plan: Any) -> Any:
    """A plan that spends everything on one-way marginals."""
    return replace(
        plan,
        marginals=PairMarginals.NONE,
        one_way_share=Fraction(1),
        cover=replace(plan.cover, blocks=(), weights=()),
        fine_pairs=0,
        fine_share=Fraction(0),
        three_way=0,
        three_way_share=Fraction(0),
    )


def keep(asked: argparse.Namespace) -> None:
    """Run what is not kept yet."""
    done = {(k["table"], k["seed"], k["who"], k["epsilon"]) for k in _kept()}
    for seed in range(*asked.seeds):
        for name in asked.tables or TABLES:
            codes, sizes = table(name, seed)
            for who in asked.who:
                if (name, seed, who, asked.epsilon) in done and not asked.again:
                    continue
                domains = [Domain(f"c{j}", Kind.NOMINAL, size) for j, size in enumerate(sizes)]
                if who in {"delta", "pure", "one-way"}:
                    rows, told = ours(codes, domains, who, asked.epsilon, seed)
                else:
                    peer = rows_of(f"{name}-{seed}", (codes, sizes), who, asked.epsilon, seed)
                    if peer is None:
                        continue
                    rows, told = peer.rows, {"seconds": peer.told.get("seconds", np.nan)}
                    told |= {"failure": peer.failure} if rows is None else {}
                scored = {} if rows is None else figures(codes, rows, sizes)
                line = {"table": name, "seed": seed, "who": who, "epsilon": asked.epsilon}
                print(line | scored | told, flush=True)
                with KEPT.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line | scored | told) + "\n")


def _kept() -> list[dict[str, Any]]:
    """The last run of each sort."""
    if not KEPT.is_file():
        return []
    lines = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return list({(k["table"], k["seed"], k["who"], k["epsilon"]): k for k in lines}.values())


def show(_: argparse.Namespace) -> None:
    """Means with standard errors; by table and figure, everybody's."""
    found: dict[tuple[str, str, str], dict[int, dict[str, float]]] = defaultdict(dict)
    for line in _kept():
        found[line["table"], line["epsilon"], line["who"]][line["seed"]] = line
    print("| table | epsilon | who | seeds | mean pair | worst pair | mean triple | CPU-s |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, epsilon, who), runs in sorted(found.items()):
        seeds = sorted(runs)
        cells = []
        for figure in (*FIGURES, "seconds"):
            values = [runs[s][figure] for s in seeds if figure in runs[s]]
            cells.append(_mean(values) if values else runs[seeds[0]].get("failure", ""))
        print(f"| {name} | {epsilon} | {who} | {len(seeds)} | {' | '.join(cells)} |")


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{np.mean(values):.3g}" + ("" if np.isnan(error) else f" ± {error:.1g}")


def curve(asked: argparse.Namespace) -> None:
    """Errors along n, the number of columns or epsilon, one at a time."""
    points: dict[str, list[Any]] = {
        "n": [round(500 * 2 ** (k / 2)) for k in range(15)],
        "columns": [5, 7, 10, 12, 14, 17, 19, 20, 21, 22, 24, 28, 34, 40],
        "epsilon": ["0.1", "0.14", "0.2", "0.28", "0.4", "0.57", "0.8", "1", "1.4", "2", "4", "10"],
    }
    usual = {"n": 10_000, "columns": 12, "epsilon": "1"}
    before = dict.fromkeys(FIGURES, 0.0)
    for point in points[asked.along][:: asked.every]:
        at = usual | {asked.along: point}
        runs = []
        for seed in range(*asked.seeds):
            if asked.sort == "factor":
                codes, sizes = table("factor", seed, n=at["n"], m=at["columns"])
            else:
                make = getattr(generated, asked.sort)
                codes, domains = make(seed, at["n"], columns=at["columns"])
                sizes = [domain.size for domain in domains]
            domains = [Domain(f"c{j}", Kind.NOMINAL, size) for j, size in enumerate(sizes)]
            rows, told = ours(codes, domains, asked.who[0], at["epsilon"], seed)
            runs.append(figures(codes, rows, sizes) | told)
        means = {name: float(np.mean([run[name] for run in runs])) for name in FIGURES}
        rises = " ".join(
            f"{means[name]:.4f} (x{means[name] / before[name]:.2f})" if before[name]
            else f"{means[name]:.4f}" for name in FIGURES
        )  # fmt: skip
        spent = np.mean([run["seconds"] for run in runs])
        plans = sorted({run["plan"] for run in runs})
        print(f"{asked.sort} {asked.along} {point}: {rises} {plans} {spent:.1f} s", flush=True)
        before = means


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(required=True)
    run = verbs.add_parser("run")
    run.add_argument("tables", nargs="*", choices=[[], *TABLES])
    run.add_argument("--who", nargs="+", default=["delta", "pure", "one-way"])
    run.add_argument("--epsilon", default="1")
    run.add_argument("--again", action="store_true", help="run what is kept, too")
    run.set_defaults(do=keep)
    along = verbs.add_parser("curve")
    along.add_argument("along", choices=["n", "columns", "epsilon"])
    along.add_argument("--sort", default="factor")
    along.add_argument("--who", nargs=1, default=["delta"], choices=["delta", "pure", "one-way"])
    along.add_argument("--every", type=int, default=1)
    along.set_defaults(do=curve)
    for verb in (run, along):
        verb.add_argument("--seeds", nargs=2, type=int, default=(11, 13))
    verbs.add_parser("show").set_defaults(do=show)
    asked = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    asked.do(asked)


if __name__ == "__main__":
    main()

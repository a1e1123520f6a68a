"""Ideas for `maxent`, tried on tables with known sorts of dependence, and what came of them.

    python bench/ideas.py singles
    python bench/ideas.py generated [VARIANT ...]
    python bench/ideas.py wide [VARIANT ...]
    python bench/ideas.py threes [VARIANT ...]
    python bench/ideas.py adult [SEEDS [COLUMNS ...]]

prints Markdown tables for RESULTS.md and docs/research/drawn-rows.md. Ideas were tuned on the
generated tables and EIA only; Adult was used once, at the end. Noise is seeded: nothing here may be
published.

Generated: 6,000 rows of eight sorts, and EIA; three seeds; the mean relative error of 600 ranges of
three columns, true counts below 1% of the rows counted as that, and the total variation of pairs
and of threes (in four groups per column).
Wide: five of the sorts with twelve columns and 30,000 rows, and eight columns of the same, at
epsilon 0.1, which is a small and a medium budget.
Threes: 12,000 rows of all sorts at epsilon 10, which is much, two sorts with dependence that no two
columns show among them; with all particles.
Fits on particles use 20,000 of them, a fifth of what a release takes. Adult: the workloads of
bench/tables.py, `before` and `after` with equal seeds in one run.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, floor, prod, sqrt
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import _workloads as workloads
import numpy as np
from _generated import BEYOND_PAIRS, MADE, Made, electricity, people
from numpy.typing import NDArray

import shoal.synthesis.maxent as module
from shoal.core import Kind, Neighbours, Price
from shoal.hazmat import accounting
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.consistent_counts import project, shrink
from shoal.mechanism.noisy_answers import noisy_choice, noisy_table, table_counts
from shoal.mechanism.records import HeldColumns
from shoal.synthesis.domain import Domain, SyntheticRows
from shoal.synthesis.maxent import MaxentPlan, PairMarginals, maxent, maxent_plan
from shoal.synthesis.maxent import one_way as single_columns
from shoal.synthesis.maxent.fit import DENSE, Fitted, Target, fit_distribution
from shoal.synthesis.maxent.generate import generate_rows
from shoal.synthesis.maxent.measure import measure_one_way
from shoal.synthesis.maxent.one_way import estimate_marginal
from shoal.synthesis.maxent.pair_covers import Cover
from shoal.synthesis.maxent.posterior import posterior_mean, two_way_targets
from shoal.synthesis.privtree import Fill, privtree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS, QUERIES, SEEDS, FEW = 6000, 600, 3, 20_000


def main() -> None:
    """Run what was asked for."""
    what, *rest = sys.argv[1:] or ["generated"]
    if what == "adult":
        seeds, *columns = map(int, rest or ["5"])
        adult(seeds, columns or [2, 5, 8])
    elif what == "singles":
        singles()
    elif what == "wide":
        made = {
            f"{name}, {columns}": MADE[name](3, 30_000, columns=columns)
            for columns in (12, 8)
            for name in ("latent", "classes", "chain", "sparse", "skewed")
        }
        generated(made, ("0.1",), rest or list(VARIANTS))
    elif what == "threes":
        made = {name: make(1, 2 * ROWS) for name, make in (BEYOND_PAIRS | MADE).items()}
        generated(made, ("10",), rest or ["pairs alone", "after"], few={})
    else:
        made = {name: make(1, ROWS) for name, make in MADE.items()} | {"eia": electricity()}
        generated(made, workloads.EPSILONS, rest or list(VARIANTS))


@dataclass(frozen=True)
class Variant:
    """How one idea changes the mechanism.

    Attributes:
        plan: which tables are counted, from public quantities.
        replaced: names of the mechanism's modules, and what stands in for them.
        draw: instead of `maxent`.
    """

    plan: Callable[..., MaxentPlan]
    replaced: dict[str, Any]
    draw: Callable[..., SyntheticRows] = maxent

    def run(
        self, X: Ints, attributes: Sequence[Domain], epsilon: str, seed: int, **few: int
    ) -> tuple[Ints, float]:
        """Rows and the CPU seconds that they took; the accounting is checked."""
        noise, price = SeededNoise(seed), Fraction(epsilon)
        with ExitStack() as stack:
            solve = partial(_fewer, self.replaced.get("fit_distribution", fit_distribution), few)
            for name, function in (self.replaced | {"fit_distribution": solve}).items():
                home = module if hasattr(module, name) else single_columns
                stack.enter_context(patch.object(home, name, function))
            begin = time.process_time()
            drawn = self.draw(
                X.T,
                attributes,
                epsilon=price,
                noise=noise,
                rng=np.random.default_rng(seed),
                plan=self.plan(attributes, n=len(X), epsilon=price),
            )
            spent = time.process_time() - begin
        accounting.verify(
            drawn.privacy_losses, price, neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
        )
        return np.column_stack(drawn.rows), spent


def _fewer(solve: Callable[..., Fitted], few: dict[str, int], *args: Any, **named: Any) -> Fitted:
    return solve(*args, **(named | few))


def singles() -> None:
    """Total variation of single columns from noisy counts, by how large the noise is."""
    made = [make(1, ROWS) for make in MADE.values()] + [electricity()]
    columns = [
        np.bincount(X[:, j], minlength=attribute.size)
        for X, attributes in made
        for j, attribute in enumerate(attributes)
        if attribute.size > 2
    ]
    ways = {
        "projection": _projected,
        "shrink, a third": lambda y, n, v: _strength(y, n, v, 0.3),
        "shrink": shrink,
        "shrink, three times": lambda y, n, v: _strength(y, n, v, 3.0),
        "expected": lambda y, n, v: posterior_mean(y, n, sqrt(v / 2)),
        "equal shares": lambda y, n, _v: np.full(y.size, n / y.size),
    }
    print(f"| {len(columns)} columns; mean count over the noise's scale | 0.3 | 1 | 3 | 10 |")
    print("|---|---|---|---|---|")
    for name, way in ways.items():
        shown = []
        for ratio in (Fraction(3, 10), 1, 3, 10):
            noise, found = SeededNoise(0), []
            for counts in columns:
                n = int(counts.sum())
                scale = Fraction(n, counts.size) / ratio
                for _ in range(5):
                    noisy = noise.discrete_laplace(counts, scale=scale)
                    believed = way(noisy, n, float(2 * scale**2))
                    found.append(float(np.abs(believed - counts).sum()) / 2 / n)
            shown.append(f"{np.mean(found):.3f} ± {np.std(found) / sqrt(len(found)):.3f}")
        workloads.line(name, *shown)


def _strength(counts: Ints, total: int, variance: float, times: float) -> Floats:
    """Shrink with another strength: the same as with that much more variance."""
    return shrink(counts, total, times * variance)


def generated(
    made: dict[str, Made],
    epsilons: Sequence[str],
    names: Sequence[str],
    few: Mapping[str, int] = MappingProxyType({"particles": FEW}),
) -> None:
    """Each variant on each table, and the geometric means of variants over tables."""
    print("| table | epsilon | variant | count error | of pairs | of threes | CPU s |")
    print("|---|---|---|---|---|---|---|")
    means: dict[tuple[str, str], list[Floats]] = defaultdict(list)
    for table, (X, attributes) in made.items():
        sizes = [attribute.size for attribute in attributes]
        asked = workloads.queries(X, sizes, 3, 11)[:QUERIES]
        for epsilon in epsilons:
            for name in names:
                found = []
                for seed in range(1, SEEDS + 1):
                    Y, spent = VARIANTS[name].run(X, attributes, epsilon, seed, **few)
                    wrong = [
                        abs(workloads.answer(Y, m, low, w) - t) / max(t, 0.01 * len(X))
                        for m, low, w, t in asked
                    ]
                    far = workloads.pair_distance(X, Y, sizes)
                    threes = workloads.triple_distance(X, Y, sizes)
                    found.append([float(np.mean(wrong)), far, threes, spent])
                workloads.line(table, epsilon, name, *_shown(found))
                means[epsilon, name].append(np.log(np.mean(found, axis=0)))
    for (epsilon, name), logs in sorted(means.items()):
        *measures, spent = np.exp(np.mean(logs, axis=0))
        workloads.line("all", epsilon, name, *(f"{each:.3g}" for each in measures), f"{spent:.2f}")


def adult(seeds: int, columns: Sequence[int]) -> None:
    """Before and after on the workloads of bench/tables.py."""
    rows = workloads.read("adult")
    print("| columns | epsilon | variant | count error | distance | CPU s |")
    print("|---|---|---|---|---|---|")
    for m in columns:
        if m == 2:
            plane(rows, seeds)
            continue
        X, attributes = people(rows, m)
        sizes = [attribute.size for attribute in attributes]
        asked = workloads.queries(X, sizes, *((5, 7) if m == 5 else (3, 11)))
        for epsilon in workloads.EPSILONS:
            for name in ("before", "after"):
                found = []
                for seed in range(1, seeds + 1):
                    Y, spent = VARIANTS[name].run(X, attributes, epsilon, seed)
                    error = workloads.query_error(Y, asked)
                    found.append([error, workloads.pair_distance(X, Y, sizes), spent])
                workloads.line(str(m), epsilon, name, *_shown(found))


def plane(rows: list[dict[str, str]], seeds: int) -> None:
    """Age and hours by privtree, which no idea here has changed."""
    X = np.column_stack([workloads.numbers(rows, "age"), workloads.numbers(rows, "hours-per-week")])
    attributes = [Domain("age", Kind.NUMERIC, 136), Domain("hours", Kind.NUMERIC, 149)]
    boxes = workloads.boxes(X, [135.0, 148.5], 0.5)
    for epsilon in workloads.EPSILONS:
        found = []
        for seed in range(1, seeds + 1):
            begin = time.process_time()
            drawn = privtree(X.T, attributes, price=Price(Fraction(epsilon)),
                             noise=SeededNoise(seed), rng=np.random.default_rng(seed),
                             fill=Fill.UNIFORM)  # fmt: skip
            spent = time.process_time() - begin
            Y = np.column_stack(drawn.rows)
            found.append([workloads.box_error(Y, boxes), workloads.rank_distance(X, Y), spent])
        workloads.line("2", epsilon, "before and after", *_shown(found))


def _shown(found: list[list[float]]) -> list[str]:
    means = np.mean(found, axis=0)
    errors = np.std(found, axis=0, ddof=1) / sqrt(len(found))
    shown = [f"{m:.3g} ± {e:.1g}" for m, e in zip(means[:-1], errors[:-1], strict=True)]
    return [*shown, f"{means[-1]:.2f}"]


def earlier(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """The plan before covers: one table of all columns, or all pairs in equal parts."""
    m, budget = len(attributes), n * epsilon
    strength = budget / comb(m, 2)
    coarse = floor(float(budget / 10) ** (1 / m) + 1e-12)
    cells = prod(min(attribute.size, 16) for attribute in attributes)
    order = 2
    if strength < 350 and coarse >= 2:
        tables, groups, singles, order = PairMarginals.FULL, min(coarse, 32), Fraction(1, 2), m
    else:
        tables, groups = PairMarginals.PAIRS, min(max(round(sqrt(0.08 * strength)), 3), 32)
        singles = Fraction(35 if strength < 700 else 15 if strength < 10_000 else 10, 100)
        if 3 <= m <= 5 and strength >= 10_000 and cells <= DENSE:
            tables, groups, order = PairMarginals.TRIPLES, 16, 3
    sets = tuple(combinations(range(m), order))
    cover = Cover(sets, (1,) * len(sets), 0.0)
    return MaxentPlan(tables, groups, singles, (1,) * m, float(budget) / 100, strength, cover)


def _projected(counts: Ints, total: float, spread: float) -> Floats:
    """Single columns as they were before `shrink`."""
    del spread
    return project(counts, total)


def _shrunk(counts: Ints, total: float, scale: float) -> Floats:
    """Single columns as they were before `posterior_mean`."""
    return shrink(counts, total, 2 * scale**2)


def _heads(masses: Floats, most: int) -> Ints:
    """Groups of a nominal: its largest codes one by one, and all others together."""
    if most >= masses.size:
        return np.arange(masses.size)
    labels = np.full(masses.size, most - 1)
    labels[np.argsort(-masses, kind="stable")[: most - 1]] = np.arange(most - 1)
    return labels


def _less_tau(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    chosen = maxent_plan(attributes, n=n, epsilon=epsilon)
    return replace(chosen, tau=0.3 * chosen.tau)


def _not_learnt(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """All tables get the same weight, by the public tau."""
    return replace(maxent_plan(attributes, n=n, epsilon=epsilon), learns=False)


def _longer_alone(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """Seven tenths for single columns up to r = 200 in place of 50."""
    shares = ((200, Fraction(7, 10)), *module._SHARES[1:])  # noqa: SLF001 -- a plan with one number changed
    with patch.object(module, "_SHARES", shares):
        return maxent_plan(attributes, n=n, epsilon=epsilon)


def _pairs_alone(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """No three-way marginals are chosen."""
    return replace(
        maxent_plan(attributes, n=n, epsilon=epsilon), three_way=0, three_way_share=Fraction(0)
    )


def _no_fine_pairs(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """No pair is measured over finer groups."""
    return replace(
        maxent_plan(attributes, n=n, epsilon=epsilon), fine_pairs=0, fine_share=Fraction(0)
    )


def _spectral(
    sizes: Sequence[int], priors: Sequence[Floats], targets: Sequence[Target], **named: Any
) -> Fitted:
    """Fit to pairs of which only the singular values above those of noise are kept.

    What a pair has beyond independence is divided by the root of the products of shares, as in
    correspondence analysis, and shrunk as Gavish and Donoho do for white noise of known variance
    (IEEE Trans. Inf. Theory 63 (2017), doi:10.1109/TIT.2017.2653801).
    """
    pairs = two_way_targets([t for t in targets if len(t.columns) > 1], sizes)
    kept = [t for t in targets if len(t.columns) == 1]
    for target in pairs:
        a, b = target.columns
        shape = (sizes[a], sizes[b])
        alone = np.outer(priors[a], priors[b])
        root = np.sqrt(np.maximum(alone, 1e-12))
        left, values, right = np.linalg.svd(
            (target.shares.reshape(shape) - alone) / root, full_matrices=False
        )
        unit = sqrt(float((1 / root**2).mean()) / target.weight * max(shape))
        ratio, scaled = min(shape) / max(shape), np.maximum(values / unit, 1e-12)
        gap = np.maximum((scaled**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)
        shrunk = np.where(scaled > 1 + sqrt(ratio), np.sqrt(gap) / scaled, 0.0) * unit
        rank = max(int((shrunk > 0).sum()), 1)
        sure = max(1.0, prod(shape) / (rank * sum(shape)))
        shares = (alone + (left * shrunk) @ right * root).ravel()
        kept.append(Target(target.columns, shares, target.weight * sure))
    return fit_distribution(sizes, priors, kept, **named)


def tree_of_pairs(
    codes: Sequence[Ints],
    attributes: Sequence[Domain],
    *,
    epsilon: Fraction,
    noise: SeededNoise,
    rng: np.random.Generator,
    plan: MaxentPlan,
) -> SyntheticRows:
    """Choose a spanning tree of pairs privately, after MST, and count only these, finely.

    A tenth of what single columns leave buys m - 1 choices by permute-and-flip among the pairs
    that join two parts. The score is the L1 distance of a pair's table from the noisy columns'
    product; a changed record moves it by at most 2, and rounding down by 1 more.
    """
    n, m = len(codes[0]), len(attributes)
    groups = min(max(round(sqrt(0.08 * float(n * epsilon) / (m - 1))), 3), 32)
    each = plan.one_way_share * epsilon / m
    held = HeldColumns(codes)
    singles = [
        estimate_marginal(
            measure_one_way(held, j, attribute, price=Price(each), noise=noise),
            attribute,
            n=n,
            most=groups,
        )
        for j, attribute in enumerate(attributes)
    ]
    grouped = [single.group_codes(column) for single, column in zip(singles, codes, strict=True)]
    sizes, priors = [single.size for single in singles], [single.prior(n) for single in singles]
    pairs = list(combinations(range(m), 2))
    exact = [table_counts([grouped[a], grouped[b]], [sizes[a], sizes[b]]) for a, b in pairs]
    scores = np.array(
        [
            floor(np.abs(table - n * np.outer(priors[a], priors[b])).sum())
            for table, (a, b) in zip(exact, pairs, strict=True)
        ],
        dtype=np.int64,
    )
    rest = (1 - plan.one_way_share) * epsilon
    privacy_losses = [privacy_loss for single in singles for privacy_loss in single.privacy_losses]
    part, chosen = list(range(m)), []
    for _ in range(m - 1):
        free = [i for i, (a, b) in enumerate(pairs) if part[a] != part[b]]
        price = rest / 10 / (m - 1)
        found, privacy_loss = noisy_choice(
            scores[free],
            reach={Neighbours.CHANGE_ONE: 3},
            price=Price(price),
            target="which pair",
            noise=noise,
        )
        privacy_losses.append(privacy_loss)
        chosen.append(free[found])
        one, other = (part[j] for j in pairs[free[found]])
        part = [one if name == other else name for name in part]
    targets = [single.target(j, n) for j, single in enumerate(singles)]
    for i in sorted(chosen):
        noisy, privacy_loss = noisy_table(
            exact[i], target="pair", price=Price(rest * 9 / 10 / (m - 1)), noise=noise
        )
        privacy_losses.append(privacy_loss)
        weight = float(n * n / (2 * privacy_loss.scale**2))
        targets.append(Target(pairs[i], noisy.ravel() / n, weight))
    fitted = module.fit_distribution(sizes, priors, targets, tau=plan.tau, particles=FEW, rng=rng)
    rows = generate_rows(fitted, singles, n, rng)
    return SyntheticRows(rows, tuple(privacy_losses))


VARIANTS = {
    "before": Variant(earlier, {"expected": _projected}),
    "shrink alone": Variant(earlier, {"expected": _shrunk}),
    "covers alone": Variant(_not_learnt, {"expected": _projected}),
    "covers, shrunk": Variant(_not_learnt, {"expected": _shrunk}),
    "after": Variant(maxent_plan, {}),
    "shrunk": Variant(maxent_plan, {"expected": _shrunk}),
    "not learnt": Variant(_not_learnt, {}),
    "0.7 to 200": Variant(_longer_alone, {}),
    "tau x 0.3": Variant(_less_tau, {}),
    "heads": Variant(maxent_plan, {"anyhow": _heads}),
    "spectral": Variant(maxent_plan, {"fit_distribution": _spectral}),
    "tree": Variant(maxent_plan, {}, tree_of_pairs),
    "pairs alone": Variant(_pairs_alone, {}),
    "no fine pairs": Variant(_no_fine_pairs, {}),
}
"""`after` is what a release does; those below it are `after` with one thing changed, those above
it are earlier states."""


if __name__ == "__main__":
    main()

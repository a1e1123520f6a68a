"""What Sánchez et al. (2014) say, in their figure and in their text, and how it is tested."""

from itertools import pairwise

import _common as common
import numpy as np
from _common import Floats, Key, Loss, Runs, Sentence, Study, show
from scipy.stats import spearmanr

import shoal
from shoal.partition import individual_ranking, insensitive

EPSILONS = ("0.1", "1", "10")
CHANGES = 30
"""One-record changes at each k for Lemma 1."""

COVERAGE = [
    (
        "Definition 1, ε-differential privacy for a changed record",
        "`change-one` neighbours; every claim names them",
        "[privacy](../explanation/differential-privacy.md)",
    ),
    (
        "Individual ranking [6]",
        "`individual-ranking`",
        "[methods](../reference/methods/individual-ranking.md)",
    ),
    (
        "Lemma 1, Δ/k for the centroids",
        "proof for sums, ties and a larger last block included; a property test",
        "`mechanism/microaggregate_noise.py`, the table above",
    ),
    (
        "Lemmas 2 and 3, composition",
        "the accounting; parallel parts count twice unless a public column fixes them",
        "`privacy_losses` of every manifest",
    ),
    (
        "Algorithm 1, one draw for each cluster",
        "`ir-laplace`",
        "[methods](../reference/methods/ir-laplace.md), `methods/ir_laplace.py`",
    ),
    (
        "Lemma 4, mε for the table",
        "proved for lists (`column-shuffled`); refuted for tables, with the pair that shows it",
        "[claims](../reference/claims.md), `shoal audit`",
    ),
    (
        "ε, k, m; ε/m for each attribute",
        "`epsilon` (the release's) and `k`; m is the number of protected columns",
        "[policy](../reference/policy.md)",
    ),
    (
        "Domains [0, 1.5 max], outputs bounded to them",
        "`bounds`, stated or `from-data`; all noisy values are clamped",
        "[methods](../reference/methods/index.md#what-the-methods-with-noise-share)",
    ),
    (
        "Insensitive microaggregation of [29]",
        "`insensitive-laplace`",
        "[methods](../reference/methods/insensitive-laplace.md)",
    ),
    ("Plain Laplace noise", "`laplace`", "[methods](../reference/methods/laplace.md)"),
    ("SSE", "`shoal.metrics.information_loss.sse`", "the figures above"),
    (
        "Adult, AGE and HOURS-PER-WEEK; Fig. 1, 5 runs",
        "the same 30,162 records and 5 runs",
        "the first figure; [where to get Adult](data.md)",
    ),
    (
        "Related work: grids [21], spatial decompositions [5], histograms [34]",
        "noisy grid, `dp-quadtree`, `dp-kdtree`, `privtree`",
        "*The comparison that the paper plans*",
    ),
    (
        "Future work: other data sets",
        "Census, four columns",
        "the second figure, and the comparison",
    ),
    (
        "Future work: related works, counting queries",
        "ten methods and a grid by sorted columns and counting queries",
        "*The comparison that the paper plans*",
    ),
    (
        "Future work: categorical data; operators to compare, sort, microaggregate, randomize",
        "path length; `nominal_order`; mean place; noise on places",
        "*Categories*, `methods/ir_laplace.py`",
    ),
]
"""In the paper, in Shoal, where."""


class Facts:
    """What the text says of scales, block means and single columns, measured on one table."""

    def __init__(self, study: Study, ks: tuple[int, ...], repeats: int) -> None:
        self.study = study
        self.n, self.m = study.frame.height, len(study.bounds)
        rng = np.random.default_rng(common.SEED)
        low, high = (np.array([b[at] for b in study.bounds.values()]) for at in (0, 1))
        U = (study.matrix - low) / (high - low)
        self.sizes = tuple(sorted({ks[0], *(k for k in (3, 8, 20, 50, 100) if k in ks), ks[-1]}))
        some = U[rng.permutation(self.n)[: min(self.n, 5_000)]]
        self.moved = {k: max(_moved(some[:, j], k, rng) for j in range(self.m)) for k in self.sizes}
        self.joint = {k: _jointly_moved(some, k, rng) for k in self.sizes}
        pairs = {("1", k) for k in self.sizes} | {(eps, ks[0]) for eps in EPSILONS}
        self.scale = {("ir-laplace", eps, k): self._scale("ir-laplace", eps, k) for eps, k in pairs}
        self.scale |= {("laplace", e, None): self._scale("laplace", e, None) for e in EPSILONS}
        self.insensitive = {k: self._scale("insensitive-laplace", "1", k) for k in self.sizes}
        self.small = {
            n: self._gain(n, min(repeats, 2))
            for n in sorted({min(500, self.n), self.n // 6, self.n})
        }

    def _scale(self, method: str, eps: str, k: int | None) -> float:
        """Scale of the noise on a block mean, in widths of the first column, by the accounting."""
        more = {} if k is None else {"k": k}
        policy = self.study.policy(
            method=method, epsilon=common.epsilon(eps), release_form="row-aligned", **more
        )
        loss = shoal.protect(self.study.frame, policy, keep_order=True).privacy_losses[0]
        return float(loss.scale / (k or 1) / 2**20)

    def _gain(self, n: int, repeats: int) -> float:
        """SSE at k = 10 over that of plain noise, epsilon 1, for the first n records."""
        some = Study(self.study.name, self.study.frame.head(n), self.study.bounds, "")
        one = common.epsilon("1")
        ours = Runs(some).loss(repeats, method="ir-laplace", epsilon=one, k=10)
        return ours.sse / Runs(some).loss(repeats, method="laplace", epsilon=one).sse


def _moved(x: Floats, k: int, rng: np.random.Generator) -> float:
    """The largest total move of the block means, times k over the width, in some changes of one."""

    def means(values: Floats) -> Floats:
        groups = individual_ranking(values, k)
        return np.sort(np.bincount(groups.labels, values) / groups.sizes)

    x = x.copy()
    lowest = int(np.argmin(x))
    x[lowest] = 0.0
    before, most = means(x), 0.0
    for number in range(CHANGES):
        after = x.copy()
        at = lowest if number == 0 else int(rng.integers(len(x)))
        after[at] = 1.0 if number == 0 else rng.random()
        most = max(most, float(np.abs(means(after) - before).sum()) * k)
    return most


def _jointly_moved(U: Floats, k: int, rng: np.random.Generator) -> float:
    """The same for groups along an artificial order of whole records, in the first column."""

    def means(records: Floats) -> Floats:
        groups = insensitive(records, k)
        return np.bincount(groups.labels, records[:, 0]) / groups.sizes

    before, most = means(U), 0.0
    for _ in range(CHANGES):
        after = U.copy()
        after[rng.integers(len(U))] = rng.random(U.shape[1])
        most = max(most, float(np.abs(means(after) - before).sum()) * k)
    return most


def figure_sentences(points: dict[Key, Loss], ks: tuple[int, ...], facts: Facts) -> list[Sentence]:
    """The paper's sentences on Figure 1, tested."""
    first, last, m = ks[0], ks[-1], facts.m
    ranked = {k: v.sse / m for (name, _, k), v in points.items() if name == "plain IR" and k}
    ranked = dict(sorted(ranked.items()))
    trend = float(spearmanr(list(ranked), list(ranked.values())).statistic)
    grows = "Plain individual ranking “causes an information loss that grows with k”"
    plain = {eps: points["plain Laplace", eps, None].sse / m for eps in EPSILONS}
    noisy = {(eps, k): points["IR + Laplace", eps, k].sse / m for eps in EPSILONS for k in ks}
    most = max(ranked.values())
    steps = [(a, b) for a in ks for b in ks if b >= 1.5 * a]
    near = noisy["10", last] / ranked[last]
    gain = {eps: plain[eps] / noisy[eps, last] for eps in EPSILONS}
    least = {k: points["IR + Laplace", "0.1", k].least_share for k in ks}
    straight = {eps: _straight(ks, [noisy[eps, k] for k in ks]) for eps in EPSILONS}
    low, high = [next(k for k in ks if k >= start) for start in (2 * first, last / 2)]
    early, late = noisy["10", first] / noisy["10", low], noisy["10", high] / noisy["10", last]
    significant = "“already for k > 1, our approach significantly reduces the noise required”"
    equals = (
        "For ε = 0.1, “for k = 100 the reduction of information loss almost equals that of "
        "1.0-differential privacy with plain Laplacian noise”"
    )
    ratios = {eps: noisy["0.1", last] / plain[eps] for eps in ("1", "10")}
    scales = {eps: facts.scale["ir-laplace", eps, first] / facts.scale["laplace", eps, None]
              for eps in EPSILONS}  # fmt: skip
    return [
        Sentence(
            grows,
            "SSE at the largest k above SSE at the smallest, and no fall from any k to the next of "
            "more than a tenth of the last value",
            common.once(
                ranked[last] > ranked[first]
                and all(ranked[a] - ranked[b] <= 0.1 * ranked[last] for a, b in pairwise(ranked))
            ),
            f"SSE/m {show(ranked[first])} at k={first}, {show(ranked[last])} at k={last}; the "
            "largest fall is "
            + show(max(ranked[a] - ranked[b] for a, b in pairwise(ranked))),
        ),
        Sentence(
            grows,
            "rank correlation of SSE with k, over all k, at least 0.9",
            common.once(trend >= 0.9),
            show(trend),
            "a trend, whole numbers aside: where k is near the number of people of an age, its "
            "blocks lose little",
        ),
        Sentence(
            "It is “negligible in comparison with the information loss caused by Laplace noise "
            "addition for most values of ε”",
            "at every k below 1% of plain Laplace's",
            {f"ε = {eps}": most < 0.01 * plain[eps] for eps in EPSILONS},
            "; ".join(
                f"ε = {eps}: at most {show(100 * most / plain[eps])}% of {show(plain[eps])}"
                for eps in EPSILONS
            ),
        ),
        Sentence(
            significant,
            f"the scale of the noise on a mean at k={first} at least a tenth below that on a cell, "
            "by the accounting of the releases",
            {f"ε = {eps}": scales[eps] <= 0.9 for eps in EPSILONS},
            "; ".join(f"ε = {eps}: {show(scales[eps])} times" for eps in EPSILONS),
        ),
        Sentence(
            significant,
            f"SSE at k={first} at least a tenth below plain Laplace's",
            {f"ε = {eps}": noisy[eps, first] <= 0.9 * plain[eps] for eps in EPSILONS},
            "; ".join(
                f"ε = {eps}: {show(noisy[eps, first])} against {show(plain[eps])}, "
                f"{show(100 * (1 - noisy[eps, first] / plain[eps]))}% less"
                for eps in EPSILONS
            )
            + ". Where bounds cut most of the noise off, SSE hardly shows its scale",
            "the noise that is left in the data after clamping",
        ),
        Sentence(
            "“The relative improvement of SSE depends on the value of ε”",
            f"plain Laplace's SSE over ours at k={last}: the largest of the three ε at least twice "
            "the smallest",
            common.once(max(gain.values()) >= 2 * min(gain.values())),
            "; ".join(f"ε = {eps}: {show(gain[eps])} times less" for eps in EPSILONS),
        ),
        Sentence(
            "For ε = 0.1 “the amount of noise involved is so high that even with the noise "
            "reduction achieved by our method, the output's utility would be severely hampered”",
            "at every k and in every column SSE above SST: worse than publishing the mean",
            common.once(min(least.values()) > 1),
            f"SSE / SST of the column that kept most: {show(least[first])} at k={first}, "
            f"{show(least[last])} at k={last}",
        ),
        Sentence(
            equals,
            f"SSE of IR + Laplace at ε = 0.1, k={last} between half and twice plain Laplace's at "
            "ε = 1",
            common.once(0.5 <= ratios["1"] <= 2),
            f"{show(noisy['0.1', last])} against {show(plain['1'])}: {show(ratios['1'])} times",
        ),
        Sentence(
            equals,
            f"SSE of IR + Laplace at ε = 0.1, k={last} at most plain Laplace's at ε = 1",
            common.once(ratios["1"] <= 1),
            f"{show(ratios['1'])} times",
            "no more loss than with 1.0-differential privacy, which is what the next sentence of "
            "the paper draws from it",
        ),
        Sentence(
            equals,
            f"SSE of IR + Laplace at ε = 0.1, k={last} between half and twice plain Laplace's at "
            "ε = 10",
            common.once(0.5 <= ratios["10"] <= 2),
            f"{show(noisy['0.1', last])} against {show(plain['10'])}: {show(ratios['10'])} times. "
            "By section 5 the scales agree for k = 100: m Δ / (k ε) is m Δ / 10 in both",
            "10.0 in place of 1.0",
        ),
        Sentence(
            "For ε = 10 “there is a substantial decline of SSE for low k”",
            f"SSE at k={low} at most half of that at k={first}",
            common.once(early >= 2),
            f"{show(noisy['10', first])} at k={first}, {show(noisy['10', low])} at k={low}",
        ),
        Sentence(
            "“for larger k, SSE stays more constant”",
            f"ε = 10: from k={high} to k={last} SSE falls by a smaller factor than from k={first} "
            f"to k={low}",
            common.once(late < early),
            f"falls {show(late)} times against {show(early)} times",
        ),
        Sentence(
            "For ε = 10 and larger k, SSE is “almost as low as the SSE achieved by the individual "
            "ranking alone”",
            f"at k={last} within a factor of 2 of plain individual ranking",
            common.once(near <= 2),
            f"{show(noisy['10', last])} against {show(ranked[last])}: factor {show(near)}; at "
            f"k={first} factor {show(noisy['10', first] / max(ranked[first], 1e-12))}",
        ),
        Sentence(
            "“the noise added by individual ranking in larger clusters dominates”",
            f"ε = 10, k={last}: more than half of SSE is there without Laplace noise",
            common.once(ranked[last] > 0.5 * noisy["10", last]),
            f"{show(100 * ranked[last] / noisy['10', last])}%",
        ),
        Sentence(
            "“for ε = 1.0, a more linear decrease is achieved as the k values grow”",
            "SSE at ε = 1 falls whenever k grows by half or more, and on the figure's axes a "
            "straight line explains more of it than at ε = 10",
            {
                "decrease": all(noisy["1", a] > noisy["1", b] for a, b in steps),
                "more linear": straight["1"] > straight["10"],
            },
            f"{show(noisy['1', first])} at k={first}, {show(noisy['1', last])} at k={last}; falls "
            f"in {sum(noisy['1', a] > noisy['1', b] for a, b in steps)} of {len(steps)} pairs of "
            f"k; R² of log SSE on k {show(straight['1'])} against {show(straight['10'])}",
        ),
    ]  # fmt: skip


def _straight(ks: tuple[int, ...], values: list[float]) -> float:
    """How much of log10 of the values a straight line in k explains."""
    return float(np.corrcoef(ks, np.log10(values))[0, 1] ** 2)


def text_sentences(facts: Facts) -> list[Sentence]:
    """What the text says before the figure, tested on the first table."""
    sizes, groups = facts.sizes, {k: facts.n // k for k in facts.sizes}
    exact = {k: facts.scale["laplace", "1", None] / facts.scale["ir-laplace", "1", k]
             for k in sizes}  # fmt: skip
    worse = {k: facts.insensitive[k] / facts.scale["ir-laplace", "1", k] for k in sizes}
    violated, declared = audited("linked-shuffled"), audited("column-shuffled")
    records = f"{CHANGES} changes of one record at each k"
    lemma = "“The output of Algorithm 1 is mε-differentially private” (Lemma 4)"
    return [
        Sentence(
            "Lemma 1: after one value changed by at most Δ, the centroids move by at most Δ/k in "
            "all",
            f"in each column, {records}, one of them from one bound to the other: the total "
            "move times k at most Δ",
            {f"k={k}": facts.moved[k] <= 1 + 1e-9 for k in sizes},
            "; ".join(f"k={k}: at most {show(facts.moved[k])} Δ" for k in sizes),
        ),
        Sentence(
            "“if we used different random perturbations for each repeated value”, it “would "
            "multiply times k the sensitivity of the centroid, which would cancel the sensitivity "
            "reduction”",
            "in the same changes, the moves of all n repeated values add up to more than half of "
            "Δ, the sensitivity without grouping",
            {f"k={k}": facts.moved[k] > 0.5 for k in sizes},
            "the same numbers: a centroid is repeated k times",
        ),
        Sentence(
            "“Artificial total orders defined for multivariate data [...] do not fulfill the "
            "triangular inequality”, so that the bound Δ/k is not theirs",
            f"groups by distance to a corner, {records}: some total move times k above Δ",
            common.once(max(facts.joint.values()) > 1),
            "; ".join(f"k={k}: up to {show(facts.joint[k])} Δ" for k in sizes),
        ),
        Sentence(
            "“this noise is exactly 1/k-th of the noise required by the standard differential "
            "privacy approach”",
            "scale on a cell over scale on a mean of k, by the accounting: k",
            {f"k={k}": abs(exact[k] - k) < 1e-9 * k for k in sizes},
            ", ".join(show(exact[k]) for k in sizes),
        ),
        Sentence(
            "The noise “is significantly lower than with the method in [29]”: “sensitivity Δ(X)/k "
            "vs. n/k × Δ(X)/k”",
            "scale of `insensitive-laplace` over that of `ir-laplace`, by the accounting: the "
            "number of groups, floor(n / k)",
            {f"k={k}": abs(worse[k] - groups[k]) < 1e-9 * groups[k] for k in sizes},
            "; ".join(f"k={k}: {show(worse[k])} times" for k in sizes),
        ),
        Sentence(
            "“utility gains with respect to standard differential privacy mechanisms regardless "
            "of the number of records”",
            "ε = 1, k = 10, for the first records of the table: SSE at least a tenth below plain "
            "Laplace's",
            {f"n={n:,}": gain <= 0.9 for n, gain in facts.small.items()},
            "; ".join(f"n={n:,}: {show(gain)} times" for n, gain in facts.small.items()),
        ),
        Sentence(
            lemma,
            "no pair of neighbouring tables is told apart by more than ε allows: `shoal audit` of "
            "the table, rows shuffled, ε = 1, k = 5",
            common.once(not violated[0]),
            f"ε is at least {show(violated[1])}, with confidence 0.95: {violated[2]}",
        ),
        Sentence(
            lemma,
            "the proof of Lemma 1 beside the code, and the same audit of the lists",
            common.once(not declared[0]),
            f"claim {declared[3]}; the audit finds at least {show(declared[1])}",
            "the output is the noisy centroids, one list for each attribute",
        ),
    ]


def audited(form: str) -> tuple[bool, float, str, str]:
    """Whether an audit of the method refutes epsilon 1, what it finds, by which event."""
    box = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}
    protect = {"method": "ir-laplace", "epsilon": 1, "k": 5, "release_form": form}
    policy = {"version": 1, "columns": {"a": box, "b": box}, "protect": protect}
    report = shoal.audit(policy, trials=400, most=1)
    worst = report.worst
    status = str(shoal.plan(policy).claims[0].status)
    bound = worst.bound
    event = f"{bound.event.score}, {bound.before} and {bound.after} of {bound.trials} runs"
    return report.violated, bound.epsilon.low, event, status

"""What soriacomas2017 says in its text, beside its figures: each claim that can be tested."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import _common as common
import _groupings
import numpy as np
import polars as pl
from _common import Key, Loss, Runs, Sentence, Study, show
from _groupings import Adaptive, ByAlgorithm

import shoal
from shoal.partition import mdav

PLAIN, OWN, INSENSITIVE = "Laplace", "Laplace on centroids", "insensitive"
NAMES = ("MDAV+DP", "IR_MDAV+DP_1", "IR_MDAV+DP_2")
UNDER = {"MDAV+DP": "MDAV", "IR_MDAV+DP_1": "IR_MDAV", "IR_MDAV+DP_2": "IR_MDAV"}
INS = "INS+DP"


@dataclass(frozen=True)
class Facts:
    """Everything that sentences of the text rest on.

    Attributes:
        points: losses of the figures, of INS, and without a k of plain noise.
        released: one release of MDAV+DP at the smallest k and epsilon 1.
    """

    study: Study
    ks: tuple[int, ...]
    epsilons: tuple[str, ...]
    points: Mapping[Key, Loss]
    released: common.Floats
    adaptive: Mapping[str, Adaptive]
    algorithms: ByAlgorithm

    def sse(self, method: str, eps: str, k: int | None) -> float:
        """A mean over runs."""
        return self.points[method, eps, k].sse

    def best(self, method: str, eps: str, *, figures: bool = False) -> float:
        """The least over k; over those of the figures alone, if asked."""
        return min(
            loss.sse
            for (m, e, k), loss in self.points.items()
            if (m, e) == (method, eps) and (k in self.ks or not figures)
        )

    def apart(self, eps: str, *methods: str) -> list[float]:
        """The largest SSE of some methods over the least, at each k."""
        found = [[self.sse(m, eps, k) for m in methods] for k in self.ks]
        return [max(losses) / min(losses) for losses in found]


def plain(runs: Runs, eps: str, repeats: int) -> Loss:
    """Noise on every cell of the original."""
    return runs.loss(repeats, method="laplace", epsilon=common.epsilon(eps))


def noise_of_their_own(runs: Runs, eps: str, k: int, repeats: int) -> Loss:
    """Noise of its own on each repetition of a centroid, at the same epsilon."""
    centroids = runs.released(method="mdav", k=k)
    columns = list(runs.study.bounds)
    frame = runs.study.frame.with_columns(
        pl.Series(name, x) for name, x in zip(columns, centroids.T, strict=True)
    )
    other = Runs(Study(runs.study.name, frame, runs.study.bounds, runs.study.origin))
    stated: dict[str, Any] = {"method": "laplace", "epsilon": common.epsilon(eps)}
    return runs.losses(other.released(**stated) for _ in range(repeats))


def sentences(facts: Facts) -> list[Sentence]:
    """Claims of the text, in its order."""
    return [*_method(facts), *_evaluation(facts), *_future(facts)]


def _method(f: Facts) -> list[Sentence]:
    sst = float(((f.study.matrix - f.study.matrix.mean(axis=0)) ** 2).sum())
    naive = {eps: f.sse(PLAIN, eps, None) / sst for eps in f.epsilons}
    gains = {
        eps: [f.sse(m, eps, k) / f.sse(PLAIN, eps, None) for m in NAMES for k in f.ks]
        for eps in f.epsilons
    }
    own = {eps: f.sse(OWN, eps, None) / f.sse(PLAIN, eps, None) for eps in f.epsilons}
    moved = [_moved(f.study, k) for k in f.ks]
    small, large = _seconds(f.study, 1), _seconds(f.study, 8)
    return [
        Sentence(
            "“Plain independent masking of the records in the original data set is computationally "
            "very efficient (its cost is linear on the size of the data set)”",
            "CPU of `laplace` for eight times the rows: at most twelve times as much",
            common.once(large <= 12 * small),
            f"{show(small)} s for {len(f.study.matrix):,} rows, {show(large)} s for eight times",
        ),
        Sentence(
            "Plain noise on records is “likely to produce a large information loss”",
            "SSE of `laplace` above that of a table that holds the means alone (SST)",
            {f"ε = {eps}": ratio > 1 for eps, ratio in naive.items()},
            "; ".join(f"ε = {eps}: {show(ratio)} times SST" for eps, ratio in naive.items()),
        ),
        Sentence(
            "“the error introduced in the microaggregation step is likely to be more than "
            "compensated by the reduction in the noise required to attain DP”",
            "each method at every k: SSE below that of `laplace` at the same ε",
            {f"ε = {eps}": max(ratios) < 1 for eps, ratios in gains.items()},
            "; ".join(
                f"ε = {eps}: {show(min(ratios))} to {show(max(ratios))} times"
                for eps, ratios in gains.items()
            ),
        ),
        Sentence(
            "Proposition 2: “The L1-sensitivity of the centroid c is Δc = ΔD/\\|C\\|”",
            "a record of a group of MDAV, at each k, goes from one corner of the domain to the "
            "other: its centroid moves by ΔD/\\|C\\|, up to rounding",
            common.once(all(abs(ratio - 1) < 1e-9 for ratio in moved)),
            f"{show(min(moved))} to {show(max(moved))} times ΔD/\\|C\\|",
        ),
        Sentence(
            "“If we added a different random noise to each repetition of the centroid, … the "
            "sensitivity of the list of centroid repetitions in the cluster would be ΔD, which "
            "would cancel the benefits of microaggregation”",
            "noise for ΔD on each repetition, at the same ε: SSE at least nine tenths of that of "
            "`laplace` on the original",
            {f"ε = {eps}": ratio >= 0.9 for eps, ratio in own.items()},
            "; ".join(f"ε = {eps}: {show(ratio)} times" for eps, ratio in own.items()),
        ),
        Sentence(
            "“The approach we have presented works with any microaggregation algorithm.”",
            f"{len(_groupings.ALGORITHMS)} algorithms: each release carries the paper's claim, "
            "with the groups held fixed, at noise of the same scales",
            common.once(
                f.algorithms.same_scales
                and all(
                    any(claim.startswith("conditional") and "privacy" in claim for claim in claims)
                    for claims in f.algorithms.promised.values()
                )
            ),
            ", ".join(_groupings.ALGORITHMS) + "; other groups by `noise_on_groups`",
        ),
    ]


def _moved(study: Study, k: int) -> float:
    """How far a record moves its centroid, over width / size, summed over the columns."""
    X = study.matrix
    low, high = (np.array(ends) for ends in zip(*study.bounds.values(), strict=True))
    groups = mdav(X / X.std(axis=0), k)
    members = np.flatnonzero(groups.labels == 0)
    before, after = X[members].copy(), X[members].copy()
    before[0], after[0] = low, high
    moved = np.abs(before.mean(axis=0) - after.mean(axis=0)).sum()
    return float(moved * len(members) / (high - low).sum())


def _seconds(study: Study, times: int) -> float:
    """CPU of plain noise for the table, so many times over: the least of three."""
    frame = pl.concat([study.frame] * times)
    policy, spent = study.policy(method="laplace", epsilon=1), []
    for _ in range(3):
        started = time.process_time()
        shoal.protect(frame, policy, keep_order=True)
        spent.append(time.process_time() - started)
    return min(spent)


def _evaluation(f: Facts) -> list[Sentence]:
    ks = f.ks
    sizes = [mdav(f.study.matrix, k).sizes for k in ks]
    fixed = [(own != k).sum() <= 1 and own.max() < 2 * k for k, own in zip(ks, sizes, strict=True)]
    restrictive = [f.sse(INSENSITIVE, "", k) / f.sse("MDAV", "", k) for k in ks]
    over = [
        f.sse(m, eps, k) / f.sse(UNDER[m], "", k) for m in NAMES for eps in f.epsilons for k in ks
    ]
    ranked = [f.sse("IR_MDAV", "", k) / f.sse("MDAV", "", k) for k in ks]
    noise = [
        _groupings.scales_of(f.study, "mdav-laplace", k=ks[-1], scale="from-data"),
        _groupings.scales_of(
            f.study, "ir-mdav-laplace", k=ks[-1], split="proportional", release_form="row-aligned"
        ),
    ]
    spread = {
        eps: max(losses.values()) / min(losses.values()) for eps, losses in f.algorithms.sse.items()
    }
    low, high = (np.array(ends) for ends in zip(*f.study.bounds.values(), strict=True))
    inside = bool(((f.released >= low) & (f.released <= high)).all())
    worst = [_worst(f.study, f.released, power) for power in (2, 1)]
    apart = {eps: float(np.median(f.apart(eps, *NAMES))) for eps in f.epsilons}
    equal = {eps: float(np.median(f.apart(eps, NAMES[0], NAMES[2]))) for eps in f.epsilons}
    shown = [name for name in ("FICA", "FEDTAX", "INTVAL", "POTHVAL") if name in f.study.bounds]
    census = len(shown) == 4
    columns = pl.read_csv(common.DATA / "census.csv", n_rows=1).width if census else 0
    told = (
        f"smaller at {sum(ratio < 1 for ratio in ranked)} of {len(ks)} k, {show(min(ranked))} to "
        f"{show(max(ranked))} times"
    )
    return [
        Sentence(
            "Insensitive microaggregation is “more restrictive and less utility-preserving”",
            "without noise: SSE of `insensitive` above that of MDAV at every k",
            common.once(min(restrictive) > 1),
            f"{show(min(restrictive))} to {show(max(restrictive))} times",
        ),
        Sentence(
            "“the microaggregation approach has a significant impact on the utility of the DP "
            "data set”",
            "the paper's three methods: the worst SSE at least 1.25 times the best, in the median "
            "over k",
            {f"ε = {eps}": ratio >= 1.25 for eps, ratio in apart.items()},
            "; ".join(f"ε = {eps}: {show(ratio)} times" for eps, ratio in apart.items()),
        ),
        Sentence(
            "“the microaggregation approach has a significant impact on the utility of the DP "
            "data set”",
            f"five algorithms at k={f.algorithms.k}: the worst SSE at least 1.25 times the best",
            {f"ε = {eps}": ratio >= 1.25 for eps, ratio in spread.items()},
            "; ".join(f"ε = {eps}: {show(ratio)} times" for eps, ratio in spread.items()),
            "of algorithms that form groups of records in other ways",
        ),
        Sentence(
            "“the microaggregation approach has a significant impact on the utility of the DP "
            "data set”",
            "MDAV+DP and IR_MDAV+DP_2: the worse SSE at least 1.25 times the better, in the median "
            "over k",
            {f"ε = {eps}": ratio >= 1.25 for eps, ratio in equal.items()},
            "; ".join(f"ε = {eps}: {show(ratio)} times" for eps, ratio in equal.items()),
            "of methods whose noise is equal",
        ),
        Sentence(
            "“the clusters they generate have a fixed cardinality k (except, maybe, the last "
            "cluster, that is of size between k and 2k − 1)”",
            "groups of MDAV at every k: all but one of k records, none of 2k or more",
            common.once(all(fixed)),
            f"{sum(fixed)} of {len(ks)} k",
        ),
        Sentence(
            "“using standalone MDAV and IR_MDAV provides an upper bound of the accuracy reachable "
            "with MDAV+DP and IR_MDAV+DP”",
            "no noisy method below its microaggregation, at any k and ε",
            common.once(min(over) >= 1),
            f"{show(min(over))} to {show(max(over))} times",
        ),
        Sentence(
            "[10] is skipped because “the computation of the sensitivity in [10] is flawed, which "
            "leads to overly reducing the noise required to attain DP”",
            "the table of `ir-laplace`, row-aligned, is refuted by a pair of tables",
            common.once(any("refuted" in claim for claim in _ranked_claims(f.study))),
            "[10] is not in our copies. As lists, one for each column, the same sensitivity is "
            "proved ([its page](sanchez2014.md))",
            "of the table that [16] publishes, the conference version that we have",
        ),
        Sentence(
            "Proposition 3: both “can yield an ϵ-DP data set by adding the same amount of noise to "
            "each original attribute”",
            "scales of the noise in the accounting of `mdav-laplace` and of `ir-mdav-laplace`, "
            "proportional: equal in every column",
            common.once(noise[0] == noise[1] and len(set(noise[0])) == 1),
            f"{len(noise[0])} columns, scale {show(float(noise[0][0]))} / \\|C\\| at ε = 1 in each",
        ),
        Sentence(
            "“IR_MDAV+DP (with appropriate ϵi) should always be preferred to MDAV+DP: the error "
            "due to microaggregation is smaller … and the error due to noise addition can be made "
            "equal”",
            "SSE of IR_MDAV below that of MDAV at every k, and the same scales of noise",
            common.once(max(ranked) < 1 and noise[0] == noise[1]),
            told,
        ),
        Sentence(
            "“This data set contains 13 numerical attributes and 1080 records … The selected "
            "attributes take values above 0”",
            "our copy has as many; no cell of the four columns is 0 or below",
            common.once(
                columns == 13 and f.study.frame.height == 1080 and bool((f.study.matrix > 0).all())
            )
            if census
            else {},
            f"{columns} columns, {f.study.frame.height:,} records, least cell "
            f"{show(float(f.study.matrix.min()))}"
            if census
            else "this is another table",
        ),
        Sentence(
            "“the DP masked values are truncated to lie within the fixed bounds”",
            "every released cell lies within its bounds",
            common.once(inside),
            f"{f.released.size:,} cells of MDAV+DP at k={ks[0]}, ε = {f.epsilons[0]}",
        ),
        Sentence(
            "“In SSE a large error in a single record may have a large overall impact, while in "
            "SAE a large error in a single record can be more easily compensated”",
            "of the loss of MDAV+DP, the hundredth of the records that lost most has a larger "
            "share in SSE than in SAE",
            common.once(worst[0] > worst[1]),
            f"{show(100 * worst[0])}% of SSE, {show(100 * worst[1])}% of SAE",
        ),
        Sentence(
            "IR_MDAV+DP has a lower SSE “because IR_MDAV is more utility-preserving than MDAV”",
            "without noise: SSE of IR_MDAV below that of MDAV at every k",
            common.once(max(ranked) < 1),
            told,
        ),
        *(_improved(f, figures=figures) for figures in (True, False)),
    ]


def _improved(f: Facts, *, figures: bool) -> Sentence:
    """The comparison with INS: where the figures have k, and where INS is at its best."""
    improved = {
        eps: [f.best(m, eps) / f.best(INS, eps, figures=figures) for m in NAMES]
        for eps in f.epsilons
    }
    return Sentence(
        "“we avoid the complexities inherent to the insensitive microaggregation … and we "
        "significantly improve the utility of the data”",
        "at the same ε, each method of the paper: best SSE over k at most half of the best of INS"
        + (f", k up to {f.ks[-1]}" if figures else ""),
        {f"ε = {eps}": max(ratios) <= 0.5 for eps, ratios in improved.items()},
        "; ".join(
            f"ε = {eps}: "
            + ", ".join(f"{m} {show(r)}" for m, r in zip(NAMES, ratios, strict=True))
            + " times"
            for eps, ratios in improved.items()
        ),
        "" if figures else "INS may have larger groups than the figures have",
    )


def _ranked_claims(study: Study) -> list[str]:
    policy = study.policy(method="ir-laplace", epsilon=1, k=5, release_form="row-aligned")
    return [str(claim.status) for claim in shoal.plan(policy).claims]


def _worst(study: Study, released: common.Floats, power: int) -> float:
    """Share of the loss that the hundredth of the records that lost most has."""
    lost = np.sort((np.abs(study.matrix - released) ** power).sum(axis=1))
    return float(lost[-max(len(lost) // 100, 1) :].sum() / lost.sum())


def _future(f: Facts) -> list[Sentence]:
    alone, n = _groupings.alone_without_noise(f.study)
    found = f.adaptive
    better = {
        eps: one.search.cost <= 0.95 * one.fixed.cost or one.search.groups == 1 == n // one.fixed.k
        for eps, one in found.items()
    }
    sizes = {eps: one.sizes for eps, one in found.items()}
    return [
        Sentence(
            "“if adding one more record to a cluster produces a large increase in the "
            "microaggregation error, it may be preferable to use the smaller cluster”",
            "in the optimum of each column at ε = 1 sizes differ: the largest group has at least "
            "twice the records of the smallest",
            common.once(sizes["1"].max() >= 2 * sizes["1"].min()),
            f"{show(sizes['1'].min())} to {show(sizes['1'].max())} records",
        ),
        Sentence(
            "“The optimal solution to standalone variable-size microaggregation without minimum "
            "cluster size consists of all clusters containing a single record.”",
            "the optimum of each column without noise has as many groups as records",
            common.once(alone == n),
            f"{alone:,} groups of {n:,} records",
        ),
        Sentence(
            "“the optimal solution when variable-size microaggregation is used as a preliminary "
            "step of DP is likely to contain larger clusters”",
            "more than half of the groups of the optimum have more than one record",
            {f"ε = {eps}": float(np.mean(own > 1)) > 0.5 for eps, own in sizes.items()},
            "; ".join(
                f"ε = {eps}: {show(float(own.mean()))} on average" for eps, own in sizes.items()
            ),
        ),
        Sentence(
            "“the less restrictive nature of variable-size microaggregation algorithms can be "
            "expected to deliver DP data sets with better utility”",
            "whole records, groups of any size: expected SSE at least a twentieth below that of "
            "the best of all k, or both have one group of all",
            {f"ε = {eps}": held for eps, held in better.items()},
            "; ".join(
                f"ε = {eps}: {show(one.search.cost / one.fixed.cost)} times"
                for eps, one in found.items()
            ),
        ),
        Sentence(
            "… “at the cost of increasing the computational effort”",
            "the search takes more CPU than MDAV with one k, at every ε",
            common.once(all(one.seconds[1] > one.seconds[0] for one in found.values())),
            "; ".join(
                f"ε = {eps}: {show(one.seconds[1])} s against {show(one.seconds[0])} s"
                for eps, one in found.items()
            ),
        ),
    ]


def flattening(points: Mapping[Key, Loss], ks: tuple[int, ...]) -> list[Sentence]:
    """The sentence on how plain microaggregation loses, as written and on a logarithmic axis."""
    thirds = [min(ks, key=lambda k, a=a: abs(k - ks[0] - a * (ks[-1] - ks[0]) / 3)) for a in
              (0, 1, 2, 3)]  # fmt: skip
    slopes = {
        reading: {
            m: [
                (scaled(points[m, "", b].sse) - scaled(points[m, "", a].sse)) / (b - a)
                for a, b in pairwise(sorted(set(thirds)))
            ]
            for m in ("MDAV", "IR_MDAV")
        }
        for reading, scaled in (("", float), ("as drawn, on a logarithmic axis", np.log10))
    }
    return [
        Sentence(
            "“There is a steep increase for small cluster sizes that flattens out progressively as "
            "the cluster size gets larger.”",
            "the mean increase for each step of k falls from each third of the range to the next, "
            "and in the last is at most half of that in the first",
            {
                m: all(a > b for a, b in pairwise(own)) and own[-1] <= own[0] / 2
                for m, own in by_method.items()
            },
            "; ".join(
                f"{m}: {', '.join(show(float(slope)) for slope in own)}"
                for m, own in by_method.items()
            ),
            reading,
        )
        for reading, by_method in slopes.items()
    ]


def proportional_rate(points: Mapping[Key, Loss], ks: tuple[int, ...]) -> Sentence:
    """Noise depends on k epsilon: half the k does at epsilon 2 what k does at 1."""
    pairs = [(k, 2 * k) for k in ks if 2 * k in ks]
    ratios = [
        (points[m, "2", a].sse - points[UNDER[m], "", a].sse)
        / (points[m, "1", b].sse - points[UNDER[m], "", b].sse)
        for m in NAMES
        for a, b in pairs
    ]
    middle = float(np.median(ratios)) if ratios else 0.0
    return Sentence(
        "“the rate of convergence is proportional to ϵ”",
        "what noise adds to SSE at k and ε = 2 is what it adds at 2k and ε = 1: the median ratio "
        "lies within 0.8 and 1.25, and nine tenths of the ratios within 0.5 and 2",
        common.once(0.8 <= middle <= 1.25 and np.mean([0.5 <= r <= 2 for r in ratios]) >= 0.9)
        if ratios
        else {},
        f"median {show(middle)}, from {show(min(ratios))} to {show(max(ratios))}, {len(ratios)} "
        "pairs"
        if ratios
        else "no k of this run is twice another",
    )

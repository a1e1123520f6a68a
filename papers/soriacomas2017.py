"""Figures 3 and 4 of Soria-Comas and Domingo-Ferrer (2017), and the paper's future work.

SSE and SAE against k: MDAV and MDAV on each column by itself, plain and with Laplace noise on the
centroids, and insensitive microaggregation with noise as the baseline. Then groups without a
minimum size, other microaggregation algorithms, and categories.
"""

from itertools import pairwise
from pathlib import Path

import _common as common
import _groupings
import _microaggregates
import numpy as np
from _common import Floats, Key, Line, Loss, Panel, Runs, Sentence, Study, show

EPSILONS = ("1", "2")
TABLE = Path(__file__).stem
MDAV, RANKED = "MDAV", "IR_MDAV"
DP, DP_1, DP_2, INS = "MDAV+DP", "IR_MDAV+DP_1", "IR_MDAV+DP_2", "INS+DP"
UNDER = {DP: MDAV, DP_1: RANKED, DP_2: RANKED}
STYLE = {
    MDAV: ("grey", "7 4"),
    RANKED: ("black", "2 3"),
    DP: ("red", ""),
    DP_1: ("blue", ""),
    DP_2: ("green", ""),
    INS: ("orange", ""),
}
BASELINE = "10"
"""The epsilon at which the paper compares with insensitive microaggregation."""
LOWER = {
    "sse": "“The comparison between MDAV_DP and IR_MDAV+DP (both variants) shows that IR_MDAV+DP "
    "has a lower SSE”",
    "sae": "Figure 4: “IR_MDAV+DP is more utility-preserving” than MDAV+DP",
}
LARGE = (120, 150, 200, 250, 300)
"""More values of k for that method, which wants k above the root of n."""


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    if asked.sample:
        study = common.shipped(["age", "hours", "income", "tax"], rows=1_000)
    else:
        study = common.reference("census", "Census", ["FICA", "FEDTAX", "INTVAL", "POTHVAL"])
    repeats = asked.runs or 20
    runs = Runs(study)
    points = measured(runs, asked.ks, repeats)
    common.write_losses(asked.out / f"{TABLE}.csv", {study.name: points})
    for name in ("sse", "sae"):
        draw(asked.out / f"{TABLE}-{name}.svg", name, study, points, asked.ks)
    claims = dict(runs.claims)
    few = min(repeats, 10)
    middle = min(asked.ks, key=lambda k: abs(k - 50))
    points |= {
        (_microaggregates.PLAIN, eps, None): _microaggregates.plain(runs, eps, few)
        for eps in EPSILONS
    }
    points |= {
        (_microaggregates.OWN, eps, None): _microaggregates.noise_of_their_own(
            runs, eps, middle, few
        )
        for eps in EPSILONS
    }
    points |= {
        (_microaggregates.INSENSITIVE, "", k): runs.loss(1, method="insensitive", k=k)
        for k in asked.ks
    }
    sizes = _groupings.OneSize.of(study)
    adaptive = {eps: _groupings.adaptive(runs, sizes, eps, few) for eps in _groupings.EPSILONS}
    _groupings.draw_adaptive(asked.out / f"{TABLE}-adaptive.svg", adaptive)
    algorithms = _groupings.by_algorithm(runs, middle, EPSILONS, few)
    mixed = _groupings.mixed(sample=asked.sample)
    kept = _groupings.categories(mixed, min(repeats, 2))
    _groupings.draw_categories(asked.out / f"{TABLE}-categories.svg", mixed, kept)
    released = runs.released(
        method="mdav-laplace", epsilon=common.epsilon("1"), k=asked.ks[0], scale="from-data"
    )
    facts = _microaggregates.Facts(
        study, asked.ks, EPSILONS, points, released, adaptive, algorithms
    )
    found = [*_microaggregates.sentences(facts), *sentences(study, points, asked.ks)]
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    page = text(study, claims=claims, points=points, found=found, ks=asked.ks, repeats=repeats)
    page += more(few, adaptive, algorithms, mixed, kept)
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def measured(runs: Runs, ks: tuple[int, ...], repeats: int) -> dict[Key, Loss]:
    """All points of the figures, and the baseline.

    MDAV standardises columns by the data, as is usual, and so do its noisy versions here.
    """
    points: dict[Key, Loss] = {}
    for k in ks:
        points[MDAV, "", k] = runs.loss(1, method="mdav", k=k)
        points[RANKED, "", k] = runs.losses([column_by_column(runs.study, k)])
        for eps in EPSILONS:
            stated = common.epsilon(eps)
            points[DP, eps, k] = runs.loss(
                repeats, method="mdav-laplace", epsilon=stated, k=k, scale="from-data"
            )
            for variant, split in ((DP_1, "equal"), (DP_2, "proportional")):
                points[variant, eps, k] = runs.loss(
                    repeats, method="ir-mdav-laplace", epsilon=stated, k=k, split=split
                )
    for k in (*ks, *(k for k in LARGE if ks[-1] < k <= runs.study.frame.height // 3)):
        for eps in (*EPSILONS, BASELINE):
            points[INS, eps, k] = runs.loss(
                max(1, repeats // 2), method="insensitive-laplace", epsilon=common.epsilon(eps), k=k
            )
    return points


def _times(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def column_by_column(study: Study, k: int) -> Floats:
    """IR_MDAV without noise: the method `mdav` on tables of one column."""
    return np.column_stack(
        [Runs(study.only(name)).released(method="mdav", k=k) for name in study.bounds]
    )


def draw(path: Path, name: str, study: Study, points: dict[Key, Loss], ks: tuple[int, ...]) -> None:
    """Figure 3 (SSE, with the floor) or 4 (SAE): epsilon 1 left, 2 right."""
    X = study.matrix
    total = float(((X - X.mean(axis=0)) ** 2).sum())
    panels = []
    for eps in EPSILONS:
        lines = []
        for method, (colour, dash) in STYLE.items():
            at = "" if method in {MDAV, RANKED} else eps
            curve = [(k, getattr(points[method, at, k], name)) for k in ks]
            lines.append(Line(method, curve, colour, dash, mark=not dash))
        if name == "sse":
            value = common.floor(float(eps), len(X)) * total
            lines.append(common.level("floor (see below)", value, ks, "purple", "1 4"))
        panels.append(Panel(f"{study.name}, epsilon {eps}", lines, name.upper()))
    common.write_chart(path, f"{name.upper()} against k on {study.name}", panels)


def sentences(study: Study, points: dict[Key, Loss], ks: tuple[int, ...]) -> list[Sentence]:
    """The paper's sentences on Figures 3 and 4, tested."""
    first, last = ks[0], ks[-1]
    value = {key: loss.sse for key, loss in points.items()}
    over = {
        (m, eps): [value[m, eps, k] / value[UNDER[m], "", k] for k in ks]
        for m in UNDER
        for eps in EPSILONS
    }
    faster = [b < a for m in UNDER for a, b in zip(over[m, "1"], over[m, "2"], strict=True)]
    return [
        Sentence(
            "“the SSE for the microaggregation algorithms MDAV and IR_MDAV increases with the size "
            "of the cluster”",
            "SSE at the largest k above SSE at the smallest, and no fall between neighbouring k "
            "of more than a tenth",
            {
                m: value[m, "", last] > value[m, "", first]
                and all(value[m, "", b] >= 0.9 * value[m, "", a] for a, b in pairwise(ks))
                for m in (MDAV, RANKED)
            },
            "; ".join(
                f"{m}: {show(value[m, '', first])} at k={first}, {show(value[m, '', last])} at "
                f"k={last}"
                for m in (MDAV, RANKED)
            ),
        ),
        *_microaggregates.flattening(points, ks),
        Sentence(
            "For the noisy methods “SSE decreases with the size of the clusters and the decrease "
            "is steeper for small cluster sizes”",
            "each method loses less at the largest k than at the smallest, and more than half of "
            "the decrease comes in the lower half of the range of k",
            {
                f"ε = {eps}": all(
                    value[m, eps, first] > value[m, eps, last] and _early(value, m, eps, ks) > 0.5
                    for m in UNDER
                )
                for eps in EPSILONS
            },
            "; ".join(
                f"{m}, ε = {eps}: {show(value[m, eps, first])} to {show(value[m, eps, last])}"
                for eps in EPSILONS
                for m in UNDER
            ),
        ),
        Sentence(
            "“for large cluster sizes, the SSE of all DP methods converge to the SSE of the "
            "underlying microaggregation”",
            "the ratio of the two falls from the smallest k to the middle one and on to the "
            "largest",
            {
                f"ε = {eps}": all(
                    over[m, eps][0] > over[m, eps][len(ks) // 2] > over[m, eps][-1] for m in UNDER
                )
                for eps in EPSILONS
            },
            f"how far it has come at k={last}: "
            + "; ".join(
                f"{m}, ε = {eps}: {show(over[m, eps][-1])} times" for eps in EPSILONS for m in UNDER
            ),
        ),
        Sentence(
            "“the greater the cluster size, the less noise we need to attain DP”",
            "what noise adds to SSE falls from the smallest k to the middle one and on to the "
            "largest",
            {
                f"ε = {eps}": all(
                    a > b
                    for m in UNDER
                    for a, b in pairwise(
                        value[m, eps, k] - value[UNDER[m], "", k]
                        for k in (first, ks[len(ks) // 2], last)
                    )
                )
                for eps in EPSILONS
            },
            f"MDAV+DP, ε = 1: {show(value[DP, '1', first] - value[MDAV, '', first])} at k={first}, "
            f"{show(value[DP, '1', last] - value[MDAV, '', last])} at k={last}",
        ),
        _microaggregates.proportional_rate(points, ks),
        Sentence(
            "“faster convergence for larger ε”",
            "at every k each method is nearer to its microaggregation at ε = 2 than at ε = 1",
            common.once(all(faster)),
            f"{sum(faster)} of {len(faster)} points",
        ),
        *(_beats(study, points, ks, name, m) for name in LOWER for m in (DP_2, DP_1)),
        *(_beats_at_best(points, ks, name, m) for name in LOWER for m in (DP_2, DP_1)),
        *_slightly(value, ks),
        *(_as_good(value, ks, variant) for variant in (DP_1, DP_2)),
    ]


def _slightly(value: dict[Key, float], ks: tuple[int, ...]) -> list[Sentence]:
    """One sentence, tested as written, and as figures on either axis would show it."""
    gains = {eps: [1 - value[DP_2, eps, k] / value[DP_1, eps, k] for k in ks] for eps in EPSILONS}
    mean = {eps: float(np.mean(own)) for eps, own in gains.items()}
    top = {eps: max(value[m, eps, k] for m in UNDER for k in ks) for eps in EPSILONS}
    seen = {
        eps: float(np.mean([(value[DP_1, eps, k] - value[DP_2, eps, k]) / top[eps] for k in ks]))
        for eps in EPSILONS
    }
    least = min(value[m, "", k] for m in (MDAV, RANKED) for k in ks)
    high = {
        eps: float(np.mean(np.log(_at(value, DP_1, eps, ks) / _at(value, DP_2, eps, ks))))
        / float(np.log(top[eps] / least))
        for eps in EPSILONS
    }
    quote = (
        "“IR_MDAV+DP_2 has slightly less SSE than IR_MDAV+DP_1, but the difference seems to be "
        "relatively small”"
    )
    return [
        Sentence(
            quote,
            "less on average over k, and by at most a tenth",
            {f"ε = {eps}": 0 < own <= 0.1 for eps, own in mean.items()},
            "; ".join(
                f"ε = {eps}: mean over k {show(100 * mean[eps])}% less, from "
                f"{show(100 * min(gains[eps]))}% to {show(100 * max(gains[eps]))}%"
                for eps in EPSILONS
            ),
        ),
        Sentence(
            quote,
            "less on average over k, and by at most a twentieth of the largest SSE in the graph",
            {f"ε = {eps}": 0 < own <= 0.05 for eps, own in seen.items()},
            "; ".join(f"ε = {eps}: {show(100 * own)}% of it" for eps, own in seen.items()),
            "as it seems in a graph whose linear axis holds all curves",
        ),
        Sentence(
            quote,
            "less on average over k, and by at most a tenth of the height of the graph",
            {f"ε = {eps}": 0 < own <= 0.1 for eps, own in high.items()},
            "; ".join(f"ε = {eps}: {show(100 * own)}% of it" for eps, own in high.items()),
            "as it seems on a logarithmic axis, on which alone MDAV can be seen to flatten beside "
            "the others",
        ),
    ]


def _at(value: dict[Key, float], method: str, eps: str, ks: tuple[int, ...]) -> Floats:
    return np.array([value[method, eps, k] for k in ks])


def _beats_at_best(
    points: dict[Key, Loss], ks: tuple[int, ...], name: str, variant: str
) -> Sentence:
    """The comparison of both methods where each loses least."""
    ratios = {}
    for eps in EPSILONS:
        own, other = (min(getattr(points[m, eps, k], name) for k in ks) for m in (variant, DP))
        ratios[eps] = own / other
    return Sentence(
        LOWER[name],
        f"{variant}: best {name.upper()} over k below that of MDAV+DP",
        {f"ε = {eps}": ratio < 1 for eps, ratio in ratios.items()},
        "; ".join(f"ε = {eps}: {show(ratio)} times" for eps, ratio in ratios.items()),
        "of each method at its best k",
    )


def _early(value: dict[Key, float], method: str, eps: str, ks: tuple[int, ...]) -> float:
    """Share of the decrease that comes up to the middle of the range of k."""
    middle = min(ks, key=lambda k: abs(k - (ks[0] + ks[-1]) / 2))
    start, end = value[method, eps, ks[0]], value[method, eps, ks[-1]]
    return (start - value[method, eps, middle]) / (start - end)


def _beats(
    study: Study, points: dict[Key, Loss], ks: tuple[int, ...], name: str, variant: str
) -> Sentence:
    outcome, numbers = {}, []
    for eps in EPSILONS:
        pairs = {k: (points[variant, eps, k], points[DP, eps, k]) for k in ks}
        ratios = [getattr(a, name) / getattr(b, name) for a, b in pairs.values()]
        over = [k for k, (a, b) in pairs.items() if common.above(a, b, name)]
        outcome[f"ε = {eps}"] = not over and ratios[-1] < 1
        numbers.append(
            f"ε = {eps}: {show(ratios[-1])} times at k={ks[-1]}, from {show(min(ratios))} to "
            f"{show(max(ratios))}; lower at {sum(r < 1 for r in ratios)} of {len(ks)} k, clearly "
            "above at " + (f"{len(over)}, up to k={over[-1]}" if over else "none")
        )
    if name == "sse" and variant == DP_1:
        numbers.append(
            "by the scales, before clamping, its noise has "
            f"{show(noise_ratio(study))} times the squares of MDAV+DP's"
        )
    return Sentence(
        LOWER[name],
        f"{variant}, {name.upper()}: at no k above MDAV+DP by more than three standard errors, and "
        "below it at the largest k",
        outcome,
        "; ".join(numbers),
    )


def noise_ratio(study: Study) -> float:
    """Expected squares of the noise of DP_1 over those of MDAV+DP (and DP_2), without clamping.

    With widths w_j, scales are m w_j / (k epsilon) and (w_1 + ... + w_m) / (k epsilon):
    m^2 sum w_j^2 over m (sum w_j)^2. It is at least 1, and 1 for equal widths alone.
    """
    widths = np.array([high - low for low, high in study.bounds.values()])
    return float(widths.size * (widths**2).sum() / widths.sum() ** 2)


def _as_good(value: dict[Key, float], ks: tuple[int, ...], variant: str) -> Sentence:
    best, at = min((value[variant, "1", k], k) for k in ks)
    other, there = min((v, k or 0) for (m, _, k), v in value.items() if m == INS)
    equal = [value[variant, "1", k] / value[INS, BASELINE, k] for k in ks]
    return Sentence(
        "“IR_MDAV+DP with ε = 1 performs as well as the insensitive approach in [9] with ε = 10”",
        f"{variant}: best SSE over k at ε = 1 at most 1.1 times the best of INS at ε = 10",
        common.once(best <= 1.1 * other),
        f"{show(best)} (k={at}) against {show(other)} (k={there}): {show(best / other)} times; at "
        f"equal k up to {ks[-1]}, {show(min(equal))} to {show(max(equal))} times",
    )


def text(
    study: Study,
    *,
    claims: dict[str, tuple[str, ...]],
    points: dict[Key, Loss],
    found: list[Sentence],
    ks: tuple[int, ...],
    repeats: int,
) -> str:
    """The page."""
    n, columns = study.frame.height, ", ".join(study.bounds)
    rows = []
    for eps in EPSILONS:
        least = common.floor(float(eps), n)
        best = {
            m: min(ks, key=lambda k, m=m, eps=eps: points[m, eps, k].least_share) for m in UNDER
        }
        rows.append([
            eps,
            show(least),
            *(f"{points[m, eps, k].kept()}, k={k}" for m, k in best.items()),
            ", ".join(m for m, k in best.items() if points[m, eps, k].below(least)) or "none",
        ])  # fmt: skip
    floors = common.grid_table(["epsilon", "floor", *UNDER, "below the floor"], rows)
    return f"""# Noise on microaggregates: Soria-Comas and Domingo-Ferrer 2017{study.note}

J. Soria-Comas and J. Domingo-Ferrer, “Differentially private data sets based on microaggregation
and record perturbation”, MDAI (2017). Figures 3 and 4, on {study.name} ({columns}; {n:,}
records), mean of {_times(repeats, "run")} at each of {len(ks)} values of k. {study.origin} This
page and its numbers are written by `papers/{TABLE}.py`; noise has no seed, so another run differs
by chance. [Where the table can be had](data.md).

{common.list_methods(TABLE)}

![SSE against k, logarithmic, epsilon 1 and 2]({TABLE}-sse.svg)

![SAE against k, logarithmic, epsilon 1 and 2]({TABLE}-sae.svg)

[All points]({TABLE}.csv), with standard deviations over runs.

## The paper's sentences

{common.tally(found)} A sentence with several tests or
readings is counted once. Thresholds are ours where the paper has words such as “slightly”.

{common.sentence_table(found)}

## What was claimed, and what we ran

The paper says of itself that “the data set to be protected is the microaggregated one”. Under
that reading, with the groups held fixed, its claim holds: a record moves its own group's centroid
by at most Δ/|C|, and groups are disjoint. Shoal states this claim as *conditional*. For the
original records the groups are part of what is published, they follow the data, and there is a
pair of tables that refutes the same epsilon; Shoal states that beside it. Neither statement takes
anything from the figures, which show the loss of the methods as published.

{common.claim_table(claims)}

MDAV+DP is `mdav-laplace` with columns standardised by the data before grouping, as MDAV usually
has them; IR_MDAV+DP_1 and DP_2 are `ir-mdav-laplace` with `split` equal and proportional. IR_MDAV
without noise is `mdav` on each column as a table of its own.

By Proposition 3, DP_2 and MDAV+DP have the same noise. So they differ by the error of grouping
alone, and at small k, where noise is nearly all, by chance. DP_1 gives each column the same part
of ε, so that a wide column has more noise than in DP_2, and a narrow one less; in SSE, which adds
up squares in the columns' own units, the wide columns count.

INS, drawn at the same ε with half as many runs, is `insensitive-laplace` with the order
`reference`: by distance to the corner (0, ..., 0) of the public box. The baseline's paper
(Soria-Comas et al. 2014) defines its total order; it is not in our copies, and neither is its
Figure 4a, with which the authors compared. We compare with our own runs of it instead, for k
beyond those of the figures too, since it wants k above √n. Here it is row-aligned, which the loss
needs, and refuted as such; in its public order (`canonical`) it is proved.

## The floor

A row-aligned release that is epsilon-private *for the original records* in every column, by a
method that treats all rows alike, loses in each column at least {common.FLOOR} of SST
([why](sanchez2014.md#the-floor)). The paper protects the microaggregated data set, so that the
floor is no bar that it set itself to clear; it tells readers who want the other reading where
they stand. The dotted line is the floor for all columns together. Below, SSE / SST of the column
that kept most, at its best k, with its standard error; below the floor means by more than three of
these.

{floors}

Where a method is not below the floor, the floor decides nothing, and the pairs of tables do.
"""


OURS = "[methods](../reference/methods/mdav-laplace.md)"
MEDOID = (
    "`aggregate` of `mdav` and others, without noise. With noise, the category of a nominal is the "
    "medoid, chosen privately. A medoid or median of numbers can move by the whole width with one "
    "record, so its noise would not shrink with the group"
)
COVERED = [
    ("Definition 1, 2 and Proposition 1: ε-DP, L1-sensitivity, Laplace mechanism",
     "`DifferentialPrivacy`, change-one neighbours; discrete Laplace on exact sums",
     "[privacy](../explanation/differential-privacy.md), `shoal.mechanism.noisy_answers`"),
    (
        "Naive noise on every record",
        "method `laplace`",
        "[methods](../reference/methods/laplace.md), above",
    ),
    ("Proposition 2, Algorithm 1, Figure 1", "`mdav-laplace`; `noise_on_groups` for any groups",
     f"{OURS}, [researchers](../how-to/algorithms.md#noise-on-groups-of-your-own)"),
    ("One draw for all repetitions of a centroid", "one draw a group and column",
     "`shoal.mechanism.microaggregate_noise`"),
    ("Algorithm 2, Figure 2: sets of attributes with ε_i", "`groups` and `epsilons`", OURS),
    ("“does not require … any specific microaggregation algorithm”",
     "`partition`: mdav, vmdav, mu-approx, mondrian, optimal-univariate",
     "[below](#any-microaggregation)"),
    ("MDAV+DP", "`mdav-laplace`", "Figures above"),
    ("IR_MDAV+DP_1, IR_MDAV+DP_2, Expression (1), Proposition 3",
     "`ir-mdav-laplace`, `split` equal and proportional", "Figures and sentences above"),
    ("INS+DP of [9]", "`insensitive-laplace`", "Figures and sentences above"),
    ("[10], skipped by the authors", "`ir-laplace`, of its conference version [16]",
     "[sanchez2014](sanchez2014.md)"),
    ("Standalone MDAV and IR_MDAV", "`mdav`, on the table and on each column", "Figures above"),
    ("Census, 4 attributes, bounds 1.5 max, truncation", "the same; every release is clamped",
     "[data](data.md), sentences above"),
    ("SSE and SAE", "`shoal.metrics.information_loss`", "Figures above"),
    ("Figures 3 and 4", "both, for ε = 1 and 2, with INS beside them", "above"),
    ("Future work: categorical data (ordinal, nominal, hierarchical)",
     "ordinals as ranks; nominals by hierarchy, their category chosen privately",
     "[below](#categories)"),
    ("Future work: other aggregation operators, such as the medoid",
     MEDOID,
     "[methods](../reference/methods/mdav.md), `choose_categories`"),
    ("Future work: variable size without minimum, such as [19]",
     '`adaptive = true`; [19] itself is `partition = "mu-approx"`',
     "[below](#groups-without-a-minimum-size)"),
]  # fmt: skip
"""In the paper, in Shoal, where."""


def more(
    repeats: int,
    adaptive: dict[str, _groupings.Adaptive],
    algorithms: _groupings.ByAlgorithm,
    mixed: _groupings.Mixed,
    kept: dict[tuple[str, int], dict[str, float]],
) -> str:
    """The sections on what the paper leaves to others."""
    return f"""
## Groups without a minimum size

The authors' future work: groups of any size, as many as make the aggregation error plus the noise
small. `adaptive = true` does that. The expected loss of a grouping is its SSE plus, for each group,
the noise on a record alone over the group's size. For one column Shoal finds the least of all
groupings, by a dynamic program over the sorted values in O(n log n). For whole records it searches
from MDAV's groups of every k, and never ends above the best of them. The scale is `own-units`, for
SSE is in the columns' own units. Where each column is grouped by itself, ε is split in proportion
to the widths, as in DP_2.

![Expected SSE against k at four epsilons, logarithmic]({TABLE}-adaptive.svg)

Expected SSE with noise, then the SSE of {_times(repeats, "release")} with its standard error.
Values are clamped to their bounds in a release, so it may lose less than is expected.

{_groupings.adaptive_table(adaptive)}

Of fixed k, every k up to half of the records was tried, and one group of all. Groups that follow
the noise follow the data too: the claims are those of `mdav-laplace`, without k-anonymity.

## Any microaggregation

`mdav-laplace` with k = {algorithms.k}, mean of {_times(repeats, "release")}, columns scaled by
their public bounds. [Which claim each can carry, and why](../reference/methods/mdav-laplace.md).

{_groupings.algorithm_table(algorithms)}

## Categories

{mixed.name} ({", ".join(mixed.columns)}; {mixed.frame.height:,} records), with `mdav-laplace`.
Groups form in a box in which categories lie apart by the length of their path in the hierarchy,
here a flat one. An ordinal is the number of its rank. The category of a nominal is chosen privately
for a small total distance to the group's members. Below, the share of the cells that keep their
category; of the number and the ordinal 1 - SSE / SST, which is negative where noise is more than
the spread. For comparison, `laplace` chooses for each cell by itself.

![Share of the cells that keep their category against k]({TABLE}-categories.svg)

{_groupings.category_table(mixed, kept)}

## The paper and Shoal

{common.coverage_table(COVERED)}
"""


if __name__ == "__main__":
    main()

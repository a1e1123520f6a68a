"""What Iftikhar et al. (2019) say, and how it is tested: each sentence on all tables at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import _common as common
import numpy as np
from _common import Key, Loss, Sentence, Study, show
from _stability import INSENSITIVE, MDAV, STABLE, Change, of

import shoal
from shoal.methods.mdav_laplace import two_ends
from shoal.partition import mdav, stability

EPSILONS = ("0.01", "0.1", "1", "10")
PLAIN, FREE = "plain noise", ", not clamped"
PUBLISHED = "corners"
CLAMPED, EACH = "values clamped to the bounds", "ε for each column instead of the table"

COVERAGE = [
    (
        "Definitions 2.1 to 2.3: neighbours, ε-differential privacy, sensitivity",
        "`change-one` neighbours; every draw's sensitivity and scale in the accounting",
        "[privacy](../explanation/differential-privacy.md), `privacy_losses` of every manifest",
    ),
    (
        "Insensitive microaggregation [9], I-MDAV",
        '`insensitive`, `insensitive-laplace`, `order = "corners"`',
        "[methods](../reference/methods/insensitive.md), `partition/insensitive.py`",
    ),
    (
        "Definition 3.1, stable microaggregation",
        "`shoal.partition.stability` counts groups and records that differ",
        "*What one changed record changes*",
    ),
    (
        "Algorithm 1, on a pair of tables",
        "`shoal.partition.stable`",
        "[researchers](../how-to/algorithms.md), `partition/stable.py`",
    ),
    (
        "Framework of Figures 1 and 3: microaggregate, then noise of 2Δ/(kε)",
        "`stable`, `stable-laplace`; `sensitivity` says whether Δ is a column's or the sum",
        "[methods](../reference/methods/stable-laplace.md)",
    ),
    (
        "“We propose ... ε-differentially private datasets”",
        "conditional for a pair that Algorithm 1 groups; refuted for single tables, with a pair",
        "[claims](../reference/claims.md), `shoal audit`",
    ),
    (
        "Figure 2: one record changes all groups of MDAV",
        "one-record changes on both tables, for three methods",
        "the first figure and its table",
    ),
    (
        "Census and EIA, four attributes each, bounds [0, 1.5 max]",
        "the same records and columns",
        "[where to get them](data.md)",
    ),
    (
        "k from 2 to 100, ε of 0.01, 0.1, 1 and 10, three runs",
        "the same",
        "`papers/iftikhar2019.py`",
    ),
    ("IL1s", "`shoal.metrics.information_loss.il1s`", "Figures 4 to 6"),
    ("Baselines MDAV and ε-DP", "`mdav`, `laplace`", "[methods](../reference/methods/mdav.md)"),
    ("Figures 4, 5 and 6", "drawn again, with both readings of ε and of clamping", "*The figures*"),
]
"""In the paper, in Shoal, where. The paper lists no future work."""


@dataclass(frozen=True)
class Measured:
    """One table with all that was measured on it; scales by method, k and number of records."""

    study: Study
    points: dict[Key, Loss]
    ks: tuple[int, ...]
    scales: Mapping[tuple[str, int | None, int], float]

    @property
    def n(self) -> int:
        """Number of records."""
        return self.study.frame.height

    def il1s(self, name: str, eps: str, k: int | None) -> float:
        """IL1s of a method."""
        return self.points[name, eps, k].il1s

    def scale(self, method: str, k: int | None) -> float:
        """Scale of the noise on a mean of all records, in widths."""
        return self.scales[method, k, self.n]

    def crossing(self, eps: str, tail: str) -> int | None:
        """The smallest k from which I-MDAV stays below plain noise."""
        plain = self.il1s(PLAIN + tail, eps, None)
        above = [k for k in self.ks if self.il1s(INSENSITIVE + tail, eps, k) >= plain]
        later = [k for k in self.ks if not above or k > above[-1]]
        return later[0] if later else None


def times(eps: str, m: int) -> str:
    """Epsilon for the table where each of m columns has the epsilon given."""
    return f"{common.epsilon(eps) * m:f}"


def ordered(order: str) -> str:
    """The label of I-MDAV without noise in one of its orders."""
    return f"I-MDAV, {order}"


def sentences(
    known: Sequence[Measured], changes: Sequence[Change], at: Sequence[int]
) -> list[Sentence]:
    """All sentences with their verdicts."""
    return [
        *_groups(known, changes, at),
        *_moves(known, changes, at),
        *_homogeneity(known),
        *_scales(known),
        *_roots(known),
        *_lowest(known),
        *_dominates(known),
        *_private(),
    ]


def _every(
    known: Sequence[Measured], holds: Callable[[Measured], bool], numbers: Callable[[Measured], str]
) -> tuple[dict[str, bool], str]:
    """One case for each table, and its numbers."""
    outcome = {one.study.name: holds(one) for one in known}
    return outcome, "; ".join(f"{one.study.name}: {numbers(one)}" for one in known)


def _groups(
    known: Sequence[Measured], changes: Sequence[Change], at: Sequence[int]
) -> list[Sentence]:
    first = at[0]

    def share(one: Measured, method: str, k: int) -> list[float]:
        groups = one.n // k
        return [c.groups / groups for c in of(changes, one.study.name, method, k)]

    def all_of(one: Measured, method: str) -> list[Change]:
        return [c for k in at for c in of(changes, one.study.name, method, k)]

    def two(one: Measured, method: str) -> bool:
        return all(c.groups <= 2 and c.most <= 1 for c in all_of(one, method))

    def most(one: Measured, method: str) -> str:
        some = all_of(one, method)
        return (
            f"at most {max(c.groups for c in some):,} groups, records of a pair at most "
            f"{max(c.most for c in some)}, in {len(some)} changes"
        )

    pair = two_ends(first)
    before, after = mdav(pair.before, first), mdav(pair.after, first)
    row = int(np.flatnonzero((pair.before != pair.after).any(axis=1))[0])
    groups, by = stability(before, after, row)
    stable = "“at most two pairs of corresponding clusters [...] differ in a single record”"
    return [
        Sentence(
            "The microaggregated data sets of two neighbours “may generate considerably different "
            "clusters” (MDAV)",
            f"k = {first}: after some change more than half of the groups differ",
            *_every(
                known,
                lambda one: max(share(one, MDAV, first)) > 0.5,
                lambda one: f"up to {show(100 * max(share(one, MDAV, first)))}%",
            ),
        ),
        Sentence(
            "“Although X and Y only differ in one record, the clusters in C_X and C_Y are "
            "completely unrelated” (MDAV, Figure 2)",
            "some pair of neighbouring tables has no group in common: the pair that "
            f"`stable-laplace` keeps, k = {first}",
            common.once(groups == len(before) and by > 1),
            f"{groups} of {len(before)} groups differ, by up to {by} records. "
            + "; ".join(
                f"{one.study.name}: up to {show(100 * max(share(one, MDAV, first)))}% of the groups"
                for one in known
            ),
        ),
        Sentence(
            "I-MDAV is insensitive: “each pair of corresponding clusters differs at most in a "
            "single record”",
            "in all changes",
            *_every(
                known,
                lambda one: all(c.most <= 1 for c in all_of(one, INSENSITIVE)),
                lambda one: most(one, INSENSITIVE),
            ),
        ),
        Sentence(
            "Algorithm 1: “at most two pairs of clusters differ at most in a single record”",
            "the algorithm on both tables, in all changes",
            *_every(known, lambda one: two(one, STABLE), lambda one: most(one, STABLE)),
        ),
        Sentence(
            "Algorithm 1: if r' is in c_min, “only one pair of corresponding clusters in C_X and "
            "C_Y is affected”",
            "in all changes in which no record is swapped, one group or none",
            *_every(
                known,
                lambda one: all(c.groups <= 1 for c in all_of(one, STABLE) if not c.swapped),
                lambda one: (
                    f"{sum(not c.swapped for c in all_of(one, STABLE))} of "
                    f"{len(all_of(one, STABLE))} changes"
                ),
            ),
        ),
        Sentence(
            f"S-MDAV is stable (Definition 3.1): {stable}",
            "“running M on X” and “running M on Y”, each table by itself, where S-MDAV is MDAV: in "
            "all changes",
            *_every(known, lambda one: two(one, MDAV), lambda one: most(one, MDAV)),
        ),
        Sentence(
            f"S-MDAV is stable (Definition 3.1): {stable}",
            "in all changes",
            *_every(known, lambda one: two(one, STABLE), lambda one: most(one, STABLE)),
            "M takes both tables, as Algorithm 1 does",
        ),
    ]


def _moves(
    known: Sequence[Measured], changes: Sequence[Change], at: Sequence[int]
) -> list[Sentence]:
    def used(one: Measured, method: str, bound: Callable[[int], float]) -> float:
        return max(c.moved / bound(k) for k in at for c in of(changes, one.study.name, method, k))

    def sentence(
        quote: str, test: str, method: str, bound: Callable[[int, int], float]
    ) -> Sentence:
        def most(one: Measured) -> float:
            return used(one, method, lambda k: bound(one.n, k))

        return Sentence(
            quote,
            f"in all changes the centroids move by at most {test} in all, mean over columns",
            *_every(
                known,
                lambda one: most(one) <= 1 + 1e-9,
                lambda one: f"up to {show(100 * most(one))}% of it",
            ),
        )

    return [
        sentence(
            "For MDAV “Δ(f ∘ M) = n/k × Δ(f)”", "n/k Δ", MDAV, lambda n, k: n / k
        ),
        sentence(
            "For I-MDAV “Δ(f ∘ M) is n/k × Δ(f)/k”", "n/k² Δ", INSENSITIVE, lambda n, k: n / k**2
        ),
        sentence(
            "For S-MDAV “Δ(f ∘ M) is further reduced to (2 × Δ(f)/k)”", "2Δ/k", STABLE,
            lambda _, k: 2 / k,
        ),
    ]  # fmt: skip


def _homogeneity(known: Sequence[Measured]) -> list[Sentence]:
    alike = (
        "“the clusters generated by MDAV are more homogeneous than the clusters generated by "
        "I-MDAV”"
    )

    def sentence(
        quote: str, measure: str, of_loss: Callable[[Loss], float], reading: str = ""
    ) -> Sentence:
        def ratios(one: Measured) -> list[float]:
            other = ordered(PUBLISHED)
            return [
                of_loss(one.points[MDAV, "", k]) / of_loss(one.points[other, "", k]) for k in one.ks
            ]

        return Sentence(
            quote,
            f"{measure} less at every k, I-MDAV in its published order",
            *_every(
                known,
                lambda one: max(ratios(one)) < 1,
                lambda one: f"{show(min(ratios(one)))} to {show(max(ratios(one)))} times",
            ),
            reading,
        )

    return [
        sentence(
            "“for both CENSUS and EIA datasets, the information loss of microaggregated datasets "
            "is less with MDAV as compared to I-MDAV”",
            "IL1s",
            lambda loss: loss.il1s,
        ),
        sentence(alike, "SSE within the groups", lambda loss: loss.sse),
        sentence(
            alike,
            "SSE within the groups over SST, summed over columns,",
            lambda loss: loss.share,
            "on standardised columns, as MDAV compares them",
        ),
    ]


def _scales(known: Sequence[Measured]) -> list[Sentence]:
    reduced = (
        "“when k ≥ 2, the addition of noise can always be reduced in comparison with directly "
        "applying” the mechanism"
    )

    def own(one: Measured, k: int) -> float:
        return one.scale("stable-laplace", k) / one.scale("laplace", None)

    def listed(one: Measured) -> str:
        return ", ".join(f"{show(own(one, k))} at k={k}" for k in (2, 3, 10))

    return [
        Sentence(
            reduced,
            "the scale of the noise, by the accounting, is below that of plain noise at k = 2, 3, "
            "10, 30 and 100",
            *_every(known, lambda one: all(own(one, k) < 1 for k in (2, 3, 10, 30, 100)), listed),
        ),
        Sentence(
            reduced,
            "the same, at most that of plain noise",
            *_every(known, lambda one: all(own(one, k) <= 1 for k in (2, 3, 10, 30, 100)), listed),
            "Δ(f ∘ M) ≤ Δ(f), as sections 2 and 3 write the aim",
        ),
        Sentence(
            "The noise of S-MDAV is reduced “regardless of the size of a dataset”",
            "by the accounting, the scale is the same for the first half of the records",
            *_every(
                known,
                lambda one: all(
                    one.scales["stable-laplace", k, one.n // 2] == one.scale("stable-laplace", k)
                    for k in (2, 10, 100)
                ),
                lambda one: (
                    f"{show(own(one, 10))} of plain noise at k=10, n={one.n:,} and n={one.n // 2:,}"
                ),
            ),
        ),
        Sentence(
            "“the sensitivity Δ(f ∘ M) is significantly reduced when S-MDAV is used” (against "
            "I-MDAV)",
            "by the accounting, the scale at most half of I-MDAV's at k = 10, 30 and 100",
            *_every(
                known,
                lambda one: all(
                    one.scale("stable-laplace", k) <= 0.5 * one.scale("insensitive-laplace", k)
                    for k in (10, 30, 100)
                ),
                lambda one: (
                    ", ".join(
                        show(one.scale("stable-laplace", k) / one.scale("insensitive-laplace", k))
                        for k in (10, 30, 100)
                    )
                    + " times"
                ),
            ),
        ),
    ]


def _roots(known: Sequence[Measured]) -> list[Sentence]:
    quote = "“for every value of ε, I-MDAV is only able to achieve Δ(f ∘ M) ≤ Δ(f) if k ≥ √n”"
    found = []
    for tail, reading in ((FREE, ""), ("", CLAMPED)):
        outcome, numbers = {}, []
        for one in known:
            root = sqrt(one.n)
            starts = {eps: one.crossing(eps, tail) for eps in EPSILONS}
            for eps, start in starts.items():
                near = start is not None and 0.8 * root <= start <= 1.25 * root
                outcome[f"{one.study.name}, ε = {eps}"] = near
            listed = ", ".join("none" if k is None else str(k) for k in starts.values())
            numbers.append(f"{one.study.name}: from k = {listed} on; √n = {root:.0f}")
        fit = all(
            one.ks[0] < 0.8 * sqrt(one.n) and 1.25 * sqrt(one.n) < one.ks[-1] for one in known
        )
        found.append(
            Sentence(
                quote,
                "the smallest k from which I-MDAV's IL1s stays below that of plain noise lies "
                "between 0.8 and 1.25 times √n",
                outcome if fit else {},
                "; ".join(numbers),
                reading,
            )
        )
    starts = [one.crossing("1", FREE) for one in sorted(known, key=lambda one: one.n)]
    grows = len(known) > 1 and None not in starts
    found.append(
        Sentence(
            "For I-MDAV “the size of k grows with the size of a dataset n”",
            "ε = 1, not clamped: the k from which it stays below plain noise is larger on the "
            "larger table",
            common.once(starts == sorted(set(starts))) if grows else {},
            " and ".join(f"k = {k}" for k in starts)
            if grows
            else "needs two tables whose root of n is below the largest k",
        )
    )
    return found


def _lowest(known: Sequence[Measured]) -> list[Sentence]:
    quote = (
        "“S-MDAV leads to less information loss for every value of ε as compared to I-MDAV and "
        "ε-DP in both CENSUS and EIA datasets”"
    )
    found = []
    for tail, each, reading in ((FREE, False, ""), (FREE, True, EACH), ("", False, CLAMPED)):
        outcome, numbers = {}, []
        for one in known:
            for eps in EPSILONS:
                share = times(eps, len(one.study.bounds)) if each else eps
                plain = one.il1s(PLAIN + tail, share, None)
                tried = [k for k in one.ks if k > 2]
                lost = [
                    k
                    for k in tried
                    if one.il1s(STABLE + tail, share, k)
                    >= min(plain, one.il1s(INSENSITIVE + tail, share, k))
                ]
                outcome[f"{one.study.name}, ε = {eps}"] = not lost
                numbers.append(
                    f"{one.study.name}, ε = {eps}: {len(tried) - len(lost)} of {len(tried)}"
                    + (f", not at k = {', '.join(map(str, lost))}" if 0 < len(lost) < 5 else "")
                )
        found.append(
            Sentence(
                quote,
                "IL1s below both at every k above 2 (at 2 the noise is that of plain noise)",
                outcome,
                "lowest at so many k: " + "; ".join(numbers),
                reading,
            )
        )
    return found


def _dominates(known: Sequence[Measured]) -> list[Sentence]:
    quote = (
        "“the errors caused by random noise [...] dominate the impact on the utility”; “the first "
        "kind of error is much larger than the second kind of error”"
    )
    shares = {
        (one.study.name, eps): [
            1 - one.points[MDAV, "", k].il1s / one.il1s(STABLE + FREE, eps, k) for k in one.ks
        ]
        for one in known
        for eps in EPSILONS
    }
    every = [share for some in shares.values() for share in some]
    largely = sum(share > 0.5 for share in every) / len(every)
    return [
        Sentence(
            quote,
            "at every k, without the noise more than half of S-MDAV's IL1s is gone",
            {f"{name}, ε = {eps}": min(some) > 0.5 for (name, eps), some in shares.items()},
            "share of the noise: "
            + "; ".join(
                f"{name}, ε = {eps}: {show(100 * min(some))}% to {show(100 * max(some))}%"
                for (name, eps), some in shares.items()
            ),
        ),
        Sentence(
            quote,
            "the same in more than three quarters of all pairs of ε and k",
            common.once(largely > 0.75),
            f"in {show(100 * largely)}% of {len(every)} pairs",
            "a general remark on the experiments, not on each of them",
        ),
    ]


def _private() -> list[Sentence]:
    quote = (
        "“ε-differentially private datasets X_ε and Y_ε are generated by applying K over X̄ and Ȳ, "
        "respectively”"
    )
    box = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}
    protect = {"method": "stable-laplace", "epsilon": 1, "k": 40, "sensitivity": "summed"}
    policy = {"version": 1, "columns": {"a": box, "b": box}, "protect": protect}
    report = shoal.audit(policy, trials=300, most=1)
    bound = report.worst.bound
    claim = shoal.plan(policy).claims[0]
    return [
        Sentence(
            quote,
            "no pair of neighbouring tables is told apart by more than ε allows: `shoal audit` of "
            "`stable-laplace`, ε = 1, k = 40, each table by itself",
            common.once(not report.violated),
            f"ε is at least {show(bound.epsilon.low)}, with confidence 0.95: {bound.event.score}",
        ),
        Sentence(
            quote,
            "given Algorithm 1's groups of both tables, noise of scale 2Δ/(kε) suffices: the claim "
            "of the manifest",
            common.once(str(claim.status) == "conditional"),
            f"claim {claim.status}: {claim.basis}",
            "X and Y are known to the algorithm, and Y is grouped after X",
        ),
    ]

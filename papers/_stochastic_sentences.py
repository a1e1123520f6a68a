"""Six ways to a t, what they lose, and the sentences of Domingo-Ferrer and Soria-Comas on it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from _closeness import Case
from _common import Sentence, show

TS = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
NOISE, PRAM, OWN = "kanon-dp", "pram", "pram, own price"
BUCKETS, RATIO = "bucketization", "Mondrian by ratio"
EARTH, PLAIN = "Mondrian by EMD", "k-anonymity alone"
DRAWN = (NOISE, PRAM, OWN)
CLOSE = (BUCKETS, RATIO)
"""Plain t-closeness by the paper's distance: its own construction, and one on raw values."""
WAYS = (*DRAWN, *CLOSE, EARTH)
STYLE = {
    NOISE: ("red", ""),
    PRAM: ("blue", ""),
    OWN: ("purple", ""),
    BUCKETS: ("black", ""),
    RATIO: ("green", ""),
    EARTH: ("orange", ""),
    PLAIN: ("grey", "7 4"),
}
MEASURES = {
    "pairs": "people by bands of quasi-identifiers and value",
    "local": "values in the classes of k-anonymity",
    "shares": "values in the whole table",
    "qi": "quasi-identifiers",
}
"""What is measured: a total variation for all but the last, which is a share of variance."""


@dataclass(frozen=True)
class Point:
    """Losses of one method at one t, means over runs; see `MEASURES`.

    Attributes:
        classes: how many classes the release has.
        ratio: largest ratio of shares between a class of the release and the whole, either way;
            of the buckets, where they stand for values.
        emd: largest earth mover's distance between them.
        drawn: the same ratio for the distribution that was drawn from, where we can compute it.
        unbiased: loss of `shares` after the responses were turned back, by their public matrix.
        both: whether an epsilon and stochastic t-closeness were both claimed as proved.
    """

    qi: float
    pairs: float
    local: float
    shares: float
    classes: int
    ratio: float
    emd: float
    drawn: float | None
    unbiased: float | None
    sse: float
    both: bool
    pairs_sd: float
    local_sd: float
    shares_sd: float
    runs: int


Key = tuple[str, str, int, float]
"""Case, method, k and t."""


def sentences(cases: Sequence[Case], points: Mapping[Key, Point], k: int) -> list[Sentence]:
    """The statements of sections 1, 4 and 8 that can be tested on people."""
    expected = (
        "“Being a generalization of t-closeness, we can expect stochastic t-closeness to allow "
        "better data utility”"
    )

    def at(case: Case, method: str, t: float) -> Point:
        return points[case.title, method, k, t]

    def every(case: Case, told: Callable[[float], str]) -> str:
        return f"{case.secret}: " + ", ".join(f"{told(t)} at t={t:g}" for t in TS)

    def each(methods: Sequence[str], told: Callable[[Point], str]) -> str:
        return "; ".join(
            f"{m}, " + every(c, lambda t, c=c, m=m: told(at(c, m, t)))
            for c in cases
            for m in methods
            if told(at(c, m, TS[0]))
        )

    moved = "of the quasi-identifiers, which plain t-closeness has to move further"
    special = "of all releases that there can be: one whose draws are certain is stochastic too"
    return [
        _less(cases, points, k=k, name="pairs", quote=expected),
        _less(cases, points, k=k, name="local", quote=expected),
        _less(cases, points, k=k, name="qi", quote=expected, reading=moved),
        Sentence(
            expected,
            "every release by bucketization, and by Mondrian by ratio, is stochastically t-close "
            "by Definition 3; so the best of the stochastic ones cannot lose more",
            {c.secret: all(at(c, m, t).ratio <= t for m in CLOSE for t in TS) for c in cases},
            each(CLOSE, lambda p: in_words(p.ratio)),
            reading=special,
        ),
        Sentence(
            "“devising a construction to reach stochastic t-closeness (other than the one based on "
            "differential privacy)”",
            "invariant PRAM reaches it: at every t, the distributions that the values of the "
            "classes were drawn from, by its matrix, lie within t of the table's",
            {c.secret: all((at(c, m, t).drawn or 0) <= t for m in (PRAM, OWN) for t in TS)
             for c in cases},
            each((PRAM, OWN), lambda p: show(p.drawn or 0)),
        ),
        Sentence(
            "“The specific distance used … has a significant impact on the kind of privacy "
            "guarantees offered”",
            "at some t, a class within the largest EMD that the ratio allows has a value more than "
            "2t times as often, or as rarely, as the whole table",
            {c.secret: any(at(c, EARTH, t).ratio > 2 * t for t in TS) for c in cases},
            each((EARTH,), lambda p: in_words(p.ratio)),
        ),
        Sentence(
            "“k-anonymity for the quasi-identifiers combined with ε-differential privacy for the "
            "confidential attributes yields stochastic t-closeness”",
            "kanon-dp at every t, nominal columns: the distributions that the values of the "
            "classes were drawn from, by the matrix of the responses, lie within t of the table's",
            {c.secret: all((at(c, NOISE, t).drawn or 0) <= t for t in TS)
             for c in cases if c.kind == "nominal"},
            each((NOISE,), lambda p: "" if p.drawn is None else show(p.drawn)),
        ),
        Sentence(
            "“it provides a way of generating an … data set that satisfies both "
            "(stochastic) t-closeness and differential privacy”",
            "every release of kanon-dp has both as proved claims",
            {c.secret: all(at(c, NOISE, t).both for t in TS) for c in cases},
            f"{len(cases) * len(TS)} values of t and columns",
        ),
        Sentence(
            "“Attaining standard t-closeness from ε-differential privacy is unfeasible”",
            "at every t, the values that were drawn break t-closeness by ratio in some class",
            {c.secret: all(at(c, m, t).ratio > t for m in (NOISE, PRAM) for t in TS)
             for c in cases},
            each((NOISE, PRAM), lambda p: in_words(p.ratio)),
        ),
        Sentence(
            "“t-closeness is not attainable if there are confidential attribute values with "
            "multiplicity less than the number of equivalence classes. … we work with a bucketized "
            "version”",
            "at every t, Mondrian on raw values has at most as many classes as the rarest value "
            "has people, and bucketization has more than that where the rarest is below 100",
            {
                c.secret: all(
                    at(c, RATIO, t).classes <= c.rarest
                    and (c.rarest >= 100 or at(c, BUCKETS, t).classes > c.rarest)
                    for t in TS
                )
                for c in cases
            },
            "; ".join(
                f"{c.secret}, rarest {c.rarest:,}: " + every(
                    c, lambda t, c=c: f"{at(c, BUCKETS, t).classes:,} against "
                    f"{at(c, RATIO, t).classes:,}"
                ).partition(": ")[2]
                for c in cases
            ),
        ),
    ]  # fmt: skip


def _less(
    cases: Sequence[Case],
    points: Mapping[Key, Point],
    *,
    k: int,
    name: str,
    quote: str,
    reading: str = "",
) -> Sentence:
    """Whether the best stochastic way loses less than the best plain one, at every t."""
    outcome, numbers = {}, []
    for case in cases:
        best = [
            [
                min((getattr(points[case.title, m, k, t], name), m) for m in methods)
                for methods in (DRAWN, CLOSE)
            ]
            for t in TS
        ]
        outcome[case.secret] = all(one[0] < other[0] for one, other in best)
        told = [
            f"{show(best[i][0][0])} ({best[i][0][1]}) against {show(best[i][1][0])} "
            f"({best[i][1][1]}) at t={TS[i]:g}"
            for i in (0, TS.index(3.0), len(TS) - 1)
        ]
        less = sum(one[0] < other[0] for one, other in best)
        numbers.append(f"{case.secret}: less at {less} of {len(TS)} t; {', '.join(told)}")
    return Sentence(
        quote,
        "the best of kanon-dp and pram loses less than the best of bucketization and Mondrian by "
        f"ratio, at every t: {MEASURES[name]}",
        outcome,
        "; ".join(numbers),
        reading=reading,
    )


def in_words(value: float) -> str:
    """A ratio that may be infinite."""
    return "∞" if math.isinf(value) else show(value)

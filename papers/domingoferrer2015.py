"""Domingo-Ferrer and Soria-Comas (2015): the example of Figure 2, Table 1, the formula for t.

Buckets and classes by the library's functions, the formula against a maximum found by brute
force, and what closeness costs on a table of people. Nothing here is random.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import Line, Panel, Sentence, Study, show

import shoal
from shoal.core import figure
from shoal.metrics.information_loss import sse, sse_over_sst
from shoal.partition import bucketization, class_sizes, count_bounds, rank_buckets
from shoal.privacy_models import t_from_epsilon

TABLE = Path(__file__).stem
TS = ("1", "1.1", "1.5", "2", "3", "5")
COLOURS = ("black", "purple", "blue", "green", "orange", "red")
WITHOUT = "MDAV"
"""Classes that are formed without regard to the confidential column."""
SETTINGS: tuple[tuple[str, int | None], ...] = (
    *((t, None) for t in TS),
    *((t, 2) for t in TS if int(Decimal(t)) + 1 > 2),
    (WITHOUT, None),
)
"""t, and the number of buckets where it is not floor(t) + 1."""
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
LARGEST = 30
"""Tables of up to so many records are tried in the formula's grid."""


@dataclass(frozen=True)
class Point:
    """One release.

    Attributes:
        loss: SSE / SST, a mean over the quasi-identifiers.
        b: the number of buckets that was asked for, if one was.
        apart: largest ratio of a bucket's shares in two classes.
    """

    k: int
    t: str
    b: int | None
    buckets: int
    classes: int
    smallest: int
    achieved: Fraction
    sse: float
    loss: float
    apart: Fraction


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    if asked.sample:
        study = common.shipped(["age", "hours", "income", "tax"], rows=2_000)
    else:
        columns = ["TAXINC", "POTHVAL", "FEDTAX", "FICA"]
        study = common.reference("census", "Census", columns)
    keys, secrets = list(study.bounds)[:2], list(study.bounds)[2:]
    tables = {
        secret: [
            released(study, keys, secret, k=k, t=t, b=b) for k in asked.ks for t, b in SETTINGS
        ]
        for secret in secrets
    }
    write_points(asked.out / f"{TABLE}.csv", tables)
    draw_loss(asked.out / f"{TABLE}-loss.svg", study, tables)
    draw_formula(asked.out / f"{TABLE}-formula.svg")
    found = [*construction(), *formula(), *on_data(tables)]
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    page = text(study, keys, tables, found)
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def released(study: Study, keys: list[str], secret: str, *, k: int, t: str, b: int | None) -> Point:
    """Release two quasi-identifiers and a confidential column; and look at what came out."""
    role = dict.fromkeys(keys, "quasi-identifier") | {secret: "confidential"}
    protect: dict[str, Any] = {"method": "mdav", "k": k}
    if t != WITHOUT:
        protect = {"method": "bucketization", "k": k, "t": Decimal(t)} | (
            {} if b is None else {"b": b}
        )
    policy = {
        "version": 1,
        "columns": {name: {"role": role[name], "kind": "numeric"} for name in role},
        "protect": protect,
    }
    frame = study.frame.select(*role)
    data = shoal.protect(frame, policy, keep_order=True).data
    before, after = (f.select(keys).to_numpy().astype(float) for f in (frame, data))
    if t == WITHOUT:
        # The confidential column is as it was; two buckets show how close it happens to be.
        bucket = rank_buckets(frame[secret].to_numpy(), 2)
        data = data.with_columns(pl.Series(secret, bucket))
    shares = class_shares(data, keys, secret)
    whole = [Fraction(count, data.height) for _, count in sorted(Counter(data[secret]).items())]
    sizes = Counter(data.select(keys).rows()).values()
    return Point(
        k=k,
        t=t,
        b=b,
        buckets=len(whole),
        classes=len(shares),
        smallest=min(sizes),
        achieved=max(ratio(own, p) for row in shares for own, p in zip(row, whole, strict=True)),
        sse=sse(before, after),
        loss=float(np.mean([sse_over_sst(before[:, j], after[:, j]) for j in range(len(keys))])),
        apart=max(ratio(max(column), min(column)) for column in zip(*shares, strict=True)),
    )


def class_shares(data: pl.DataFrame, keys: list[str], secret: str) -> list[list[Fraction]]:
    """Share of each bucket in each class, buckets in the order of their texts."""
    names = sorted(set(data[secret]))
    inside: dict[tuple[float, ...], Counter[str]] = {}
    for key, value in zip(data.select(keys).rows(), data[secret], strict=True):
        inside.setdefault(key, Counter())[value] += 1
    return [[Fraction(held[name], held.total()) for name in names] for held in inside.values()]


def ratio(one: Fraction, other: Fraction) -> Fraction | float:
    """The larger share over the smaller."""
    low, high = sorted((one, other))
    return high / low if low else math.inf


# The construction of section 6.


def construction() -> list[Sentence]:
    """Sentences on buckets and classes."""
    example = bucketization(
        np.arange(12.0)[:, None], rank_buckets(np.arange(12), 3), 4, Fraction(3, 2)
    )
    rows = [tuple(row) for row in example.counts.tolist()]
    low, high = count_bounds(4, [4, 4, 4], Fraction(3, 2))
    tried = list(_caps())
    over = [case for case in tried if case[0] > case[2]]
    floors = [case for case in tried if case[1] > case[2]]
    reached = {t: _table_1(t) for t in range(2, 6)}
    emphasis = {t: _most_buckets(t) for t in range(2, 11)}
    least = {t: _least_size(t) for t in range(1, 11)}
    return [
        Sentence(
            "“Fig. 2 shows a partition of the data set in equivalence classes that satisfies "
            "1.5-closeness”",
            "12 records on a line, three buckets by rank: our construction has three classes of "
            "four, at distance 3/2 exactly, that emphasise one bucket each",
            common.once(
                sorted(rows) == sorted(set(permutations((2, 1, 1)))) and example.achieved == 1.5
            ),
            f"counts by class {rows}; distance {example.achieved}",
        ),
        Sentence(
            "“Each of the equivalence classes in the partition (E₁, E₂, E₃) takes either one or "
            "two points from each bucket”",
            "bounds of the counts for e = 4, p = 1/3, t = 1.5",
            common.once(low == [1, 1, 1] and high == [2, 2, 2]),
            f"from {low[0]} to {high[0]}",
        ),
        Sentence(
            "The necessary condition “bᵢ ≥ e for all i”, e being the number of classes",
            "all tables of two buckets of up to 8 records, k = 2 and 3, t = 1, 1.5, 2 and 4, all "
            "divisions into classes of any sizes",
            common.once(all(best <= least_bucket for best, _, least_bucket in _divisions())),
            _divided(),
        ),
        Sentence(
            "“the optimal bucketization consists of t + 1 buckets of size N/(t+1)”: the largest "
            "number with which a class can emphasise one bucket",
            "t = 2 to 10: with b equal buckets, all but one at 1/(tb), the last stays within t/b "
            "if and only if b ≤ t + 1",
            common.once(all(emphasis[t] == t + 1 for t in emphasis)),
            "; ".join(f"t = {t}: b = {emphasis[t]}" for t in (2, 3, 5, 10)),
        ),
        Sentence(
            "“it must be k ≥ t + 1”",
            "t = 1 to 10, t + 1 buckets of 1,000: the least size for which a class can be t-close",
            common.once(all(least[t] == t + 1 for t in least)),
            "; ".join(f"t = {t}: {least[t]}" for t in (1, 2, 5, 10)),
        ),
        Sentence(
            "Table 1: class Eᵢ has mass t/(t+1) in bucket Bᵢ and 1/(t(t+1)) in each other",
            "t = 2 to 5, N = t(t+1)² records whose quasi-identifier is the bucket, k = t(t+1): our "
            "classes have these masses",
            {f"t = {t}": met for t, (met, _) in reached.items()},
            "; ".join(f"t = {t}: {counts}" for t, (_, counts) in list(reached.items())[:2]),
        ),
        Sentence(
            "Our copy reads “at most ⌈eᵢpᵢt⌉ records must have Bᵢ” (a floor may be lost in it)",
            "e up to 60, b up to 6 equal buckets, t = 1, 1.05, 1.1, ..., 5: so many of e records "
            "are within t of p, where there are so many",
            common.once(not over),
            f"above t in {len(over):,} of {len(tried):,} cases, by up to a factor of "
            f"{show(max(float(case[0] / case[2]) for case in tried))}; e = 5, p = 1/3, t = 2: 4 "
            f"records are 2.4 times the share. With ⌊ept⌋, our cap, above t in {len(floors)}",
        ),
    ]


def _caps() -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """Ratios to p of a cap rounded up, and rounded down, beside t."""
    for e, b, step in product(range(1, 61), range(2, 7), range(81)):
        t = 1 + Fraction(step, 20)
        cap = Fraction(e, b) * t
        if math.ceil(cap) <= e:
            yield Fraction(math.ceil(cap) * b, e), Fraction(math.floor(cap) * b, e), t


def _divisions() -> Iterator[tuple[int, int, int]]:
    """The most classes of two buckets by trying all; by our search; and the smaller bucket."""
    for one, two, k, t in product(range(1, 9), range(1, 9), (2, 3), ("1", "1.5", "2", "4")):
        if one + two >= k:
            ours = class_sizes([one, two], k, Fraction(t)).number
            yield _most_classes(one, two, k, Fraction(t)), ours, min(one, two)


def _most_classes(one: int, two: int, k: int, t: Fraction) -> int:
    n = one + two

    def close(x: int, y: int) -> bool:
        ratios = (Fraction(x * n, (x + y) * one), Fraction(y * n, (x + y) * two))
        return all(1 / t <= share <= t for share in ratios)

    cells = list(product(range(one + 1), range(two + 1)))
    good = [(x, y) for x, y in cells if x + y >= k and close(x, y)]
    best = {(0, 0): 0}
    for x, y in cells:
        for a, b in good:
            if (x - a, y - b) in best:
                best[x, y] = max(best.get((x, y), 0), best[x - a, y - b] + 1)
    return best[one, two]


def _divided() -> str:
    cases = list(_divisions())
    total, ours = sum(best for best, _, _ in cases), sum(own for _, own, _ in cases)
    return (
        f"{len(cases):,} tables. Our search, with two sizes of classes at most, finds {ours:,} of "
        f"the {total:,} classes that there can be"
    )


def _most_buckets(t: int) -> int:
    return max(b for b in range(1, 50) if 1 - Fraction(b - 1, t * b) <= Fraction(t, b))


def _least_size(t: int) -> int:
    totals = [1000] * (t + 1)
    for e in range(1, 100):
        low, high = count_bounds(e, totals, t)
        if sum(low) <= e <= sum(high) and all(a <= b for a, b in zip(low, high, strict=True)):
            return e
    return 0


def _table_1(t: int) -> tuple[bool, str]:
    """Whether classes of t(t+1) records have the masses of Table 1; and their counts."""
    bucket = np.repeat(np.arange(t + 1), t * (t + 1))
    found = bucketization(bucket[:, None].astype(float), bucket, t * (t + 1), t)
    counts = sorted(map(tuple, found.counts.tolist()))
    wanted = sorted(set(permutations((t * t, *[1] * t))))
    return counts == wanted, " ".join(map(str, counts))


# The formula of Proposition 1.


def attained(n: int, size: int, epsilon: float) -> float:
    """The largest ratio of shares, either way, that record-wise epsilon allows.

    For an output, record i has probability p_i, and no two differ by more than exp(epsilon). The
    ratio of the class's mean to the table's is a quotient of linear functions, largest and
    smallest in a corner: each p_i is q or q exp(epsilon), and q may be as small as it takes. By
    symmetry only their numbers count, in the class and outside.
    """
    x = math.exp(epsilon)
    inside = np.arange(size + 1)[:, None]
    outside = np.arange(n - size + 1)[None, :]
    own = (size + inside * (x - 1)) / size
    whole = (n + (inside + outside) * (x - 1)) / n
    return float(max((own / whole).max(), (whole / own).max()))


def stated(n: int, size: int, epsilon: float) -> float:
    """The formula as our copy of Proposition 1 has it, with N - |E| - 1."""
    return size / n * (1 + (n - size - 1) / size * math.exp(epsilon))


def first_term(n: int, size: int, epsilon: float) -> float:
    """The other term of the maximum in the proof."""
    return n / size / (1 + (n - size) / size * math.exp(-epsilon))


def t_of(n: int, size: int, epsilon: float) -> float:
    """The formula for one class, with N - |E|."""
    return size / n + (1 - size / n) * math.exp(epsilon)


def formula() -> list[Sentence]:
    """Sentences on Proposition 1."""
    grid = [(n, e, x) for n in range(2, LARGEST + 1) for e in range(1, n + 1) for x in EPSILONS]
    most = {case: attained(*case) for case in grid}
    off = max(abs(t_of(*case) / most[case] - 1) for case in grid)
    # The function takes all classes, and its t is that of the smallest.
    pairs = [(n, e, x) for n, e, x in grid if 2 * e <= n]
    function = max(abs(t_from_epsilon(x, [e, n - e]) / t_of(n, e, x) - 1) for n, e, x in pairs)
    exceeded = [case for case in grid if most[case] > stated(*case) * (1 + 1e-12)]
    below = [case for case in grid if stated(*case) < 1]
    named = (10, 3, 1.0)
    second = min(t_of(*case) / first_term(*case) for case in grid)
    return [
        Sentence(
            "Proposition 1, as our copy reads: t = max e/N (1 + (N − e − 1)/e exp(ε)) over the "
            "sizes e of classes",
            f"N = 2 to {LARGEST}, all e up to N, ε = 0.1, 0.5, 1, 2, 3: no channel that is private "
            "record by record exceeds it",
            common.once(not exceeded),
            f"exceeded in {len(exceeded):,} of {len(grid):,} cases; below 1, which no t can be, in "
            f"{len(below):,}; N = 10, e = 3, ε = 1: {stated(*named):.4f} against "
            f"{most[named]:.4f}",
        ),
        Sentence(
            "The same with N − e, which the proof derives in its inequality (3)",
            "equal to the largest ratio, up to rounding, on the same grid; `t_from_epsilon` agrees",
            common.once(off < 1e-12 and function < 1e-12),
            f"largest relative difference {off:.1g} (function: {function:.1g}); N = 10, e = 3, "
            f"ε = 1: {t_of(*named):.4f}",
        ),
        Sentence(
            "“It can be seen that the second term is always greater than the first one”",
            "second / first at least 1 on the grid, with N − e; equal where the class is the table",
            common.once(second >= 1 - 1e-12),
            f"least quotient {second:.6g}",
        ),
    ]


# What closeness costs.


def on_data(tables: dict[str, list[Point]]) -> list[Sentence]:
    """Sentences on loss and on the intruder's view."""
    means = {
        f"{secret} with {words}": _losses(points, two=two)
        for secret, points in tables.items()
        for words, two in (("two buckets", True), ("floor(t) + 1 buckets", False))
    }
    views = [
        (p.apart, Fraction(p.t) ** 2)
        for points in tables.values()
        for p in points
        if p.t not in {WITHOUT, "1"}
    ]
    tightest = max(views, key=lambda view: view[0] / view[1])
    return [
        Sentence(
            "“Using up the allowed distance between the confidential attribute distributions "
            "enables forming equivalence classes that are more homogeneous, and hence decreases "
            "information loss”",
            "SSE / SST of the quasi-identifiers, a mean over k, falls with every step of t",
            {case: all(b < a for a, b in pairwise(row)) for case, row in means.items()},
            "; ".join(
                f"{case}: " + ", ".join(f"{show(v)} (t={t})" for v, t in zip(row, TS, strict=True))
                for case, row in means.items()
            ),
        ),
        Sentence(
            "Proposition 3, case (iv): two posterior views “differ from each other by a factor not "
            "greater than exp(ε)” for exp(ε/2)-closeness, given one public prior",
            "in every release with t above 1, a bucket's shares in any two classes differ by at "
            "most t²",
            common.once(all(apart <= bound for apart, bound in views)),
            f"{len(views):,} releases; nearest to its bound: {figure(tightest[0])} of "
            f"{figure(tightest[1])}",
        ),
    ]


def _losses(points: list[Point], *, two: bool) -> list[float]:
    """Mean loss over k for each t, with two buckets or with floor(t) + 1."""

    def chosen(p: Point) -> bool:
        return p.b == 2 or (p.b is None and int(Decimal(p.t)) == 1) if two else p.b is None

    close = [p for p in points if p.t != WITHOUT]
    return [float(np.mean([p.loss for p in close if p.t == t and chosen(p)])) for t in TS]


def write_points(path: Path, tables: dict[str, list[Point]]) -> None:
    """Write every release as a row."""
    header = ["confidential", "k", "t", "buckets", "classes", "smallest", "achieved", "sse"]
    rows = [
        [s, p.k, p.t, p.buckets, p.classes, p.smallest, float(p.achieved), p.sse, p.loss]
        for s, points in tables.items()
        for p in points
    ]
    common.write_rows(path, [*header, "sse_over_sst"], rows)


def draw_loss(path: Path, study: Study, tables: dict[str, list[Point]]) -> None:
    """Loss of the quasi-identifiers above, number of classes below."""
    panels = []
    for name, what in (("loss", "mean SSE / SST"), ("classes", "classes")):
        for secret, points in tables.items():
            lines = [
                Line(
                    label=t if t == WITHOUT else f"t = {t}",
                    points=[(p.k, getattr(p, name)) for p in points if p.t == t and p.b is None],
                    colour=colour,
                    dash="7 4" if t == WITHOUT else "",
                )
                for t, colour in zip((*TS, WITHOUT), (*COLOURS, "grey"), strict=True)
            ]
            panels.append(Panel(f"{study.name}, confidential: {secret}", lines, what))
    common.write_chart(path, "What t-closeness costs", panels)


def draw_formula(path: Path) -> None:
    """The formula in both readings, and what is attained."""
    n = 40
    panels = []
    for epsilon in (1.0, 0.1):
        sizes = range(1, n)
        lines = [
            Line("attained", [(e, attained(n, e, epsilon)) for e in sizes], "black", "2 3", True),
            Line("with N − |E|", [(e, t_of(n, e, epsilon)) for e in sizes], "green"),
            Line("with N − |E| − 1", [(e, stated(n, e, epsilon)) for e in sizes], "red", "7 4"),
        ]
        panels.append(Panel(f"N = {n}, epsilon {epsilon:g}", lines, "t", "|E|"))
    common.write_chart(path, "t of stochastic t-closeness against the size of the class", panels)


def text(
    study: Study, keys: list[str], tables: dict[str, list[Point]], found: list[Sentence]
) -> str:
    """The page."""
    n = study.frame.height
    ks = sorted({p.k for points in tables.values() for p in points})
    shown = [k for k in (2, 5, 10, 30, 100) if k in ks]
    rows = [
        [secret, str(k), *_cells(points, k, *setting)]
        for secret, points in tables.items()
        for k in shown
        for setting in SETTINGS
    ]
    head = ["confidential", "k", "t", "buckets", "classes", "achieved", "SSE / SST"]
    table = common.grid_table(head, rows)
    return f"""# Buckets and closeness: Domingo-Ferrer and Soria-Comas 2015{study.note}

J. Domingo-Ferrer and J. Soria-Comas, “From t-closeness to differential privacy and vice versa in
data anonymization”, Knowledge-Based Systems 74 (2015). The example of Figure 2, Table 1, the
formula of Proposition 1, and the construction of section 6 on {study.name} (quasi-identifiers
{" and ".join(keys)}, confidential {" or ".join(tables)}; {n:,} records; {len(ks)} values of k). The
paper has no experiment on data; this one is ours. This page and its numbers are written by
`papers/{TABLE}.py`, and nothing in it is random.

![SSE / SST and number of classes against k, for several t]({TABLE}-loss.svg)

![t against the size of the class, attained, and by both readings]({TABLE}-formula.svg)

[All points]({TABLE}.csv).

## The paper's sentences

{common.tally(found)} Our copy is extracted text, in which marks such as floor, ceiling and indices
may be damaged; “our copy reads” says no more than that.

{common.sentence_table(found)}

## Readings

**The cap.** For whole numbers c, 1/t ≤ (c/e)/p ≤ t is ⌈ep/t⌉ ≤ c ≤ ⌊ept⌋. Our copy reads ⌈ept⌉ in
both conditions. As a cap that is too high, and as a least number it exceeds ⌊ept⌋ unless ept is
whole. Shoal uses the first form, in whole numbers and fractions.

**The formula.** The proof sums its inequality over the N − |E| records outside the class; in our
copy the statement and the last line have N − |E| − 1. With N − |E| the formula is attained, by a
rare output that is exp(ε) times as likely outside the class as inside. The premise is privacy of
each record's own draw, Pr(Z(c) ∈ B) ≤ exp(ε) Pr(Z(c') ∈ B), not of the table as a whole.

**Proposition 3.** It speaks of an intruder's view and not of the release. It assumes that the prior
is one public distribution, the same for both tables, and that all that is seen of a person is a
draw from the distribution of the class. If each table's own distribution is the prior instead, one
changed record moves the share of its bucket of b records by a factor of b/(b − 1), and two views
may differ by t² b/(b − 1). Shoal states the epsilon in words, among what is not claimed.

**Number of classes.** The paper has classes of sizes as equal as may be. Where N divides by nothing
convenient that can cost most of them: 1,003 records with two buckets, t = 1.05 and k = 3 have 45
classes of 22 or 23, but 245 classes of 4 beside one of 23. `class_sizes` looks for both.

## What closeness costs on {study.name}

Classes by `bucketization`, with floor(t) + 1 buckets but no more than k, and with two, against
`mdav` at the same k. That does not look at the confidential column; “achieved” is about two buckets
for it, and “inf” where a class lacks one. SSE / SST is a mean over the quasi-identifiers. What is
lost in the confidential column, where a bucket stands for the value, is not in these figures: more
buckets lose less there.

A class holds every bucket. Where k is hardly larger than the number of buckets, there is nothing
left to choose by nearness, and a larger t, which brings more buckets, costs more than it gives. The
paper's own classes have at least t(t + 1) records: t² of the bucket that they emphasise, and one of
each other.

{table}
"""


def _cells(points: list[Point], k: int, t: str, b: int | None) -> list[str]:
    (point,) = (p for p in points if (p.k, p.t, p.b) == (k, t, b))
    achieved = "inf" if math.isinf(point.achieved) else figure(point.achieved)
    return [t, str(point.buckets), f"{point.classes:,}", achieved, show(point.loss)]


if __name__ == "__main__":
    main()

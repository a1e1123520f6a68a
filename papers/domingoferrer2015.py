"""Domingo-Ferrer and Soria-Comas (2015): the example of Figure 2, Table 1, the formula for t.

Buckets and classes by the library's functions, the formula against a maximum found by brute
force, and what closeness costs on a table of people. Nothing here is random.
"""

import csv
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import _common as common
import _plots
import numpy as np
import polars as pl
from _bucket_sentences import EMPHASISED, construction, figures, halves
from _closeness import COVERED
from _closeness_sentences import (
    attained,
    converse,
    formula,
    lying,
    neighbours,
    stated,
    t_of,
    views,
)
from _common import Floats, Line, Panel, Sentence, Study, once, show
from _plots import Axes, Curve

import shoal
from shoal.core import figure
from shoal.metrics.information_loss import sse, sse_over_sst
from shoal.partition import rank_buckets
from shoal.privacy_models import epsilon_for_t, epsilon_from_t, stochastic_t

TABLE = Path(__file__).stem
SECTION_8 = f"{TABLE}-pram"
KS = common.KS[::2]
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
    ks = KS if asked.ks == common.KS else asked.ks
    keys, secrets = list(study.bounds)[:2], list(study.bounds)[2:]
    tables = {
        secret: [released(study, keys, secret, k=k, t=t, b=b) for k in ks for t, b in SETTINGS]
        for secret in secrets
    }
    write_points(asked.out / f"{TABLE}.csv", tables)
    draw_loss(asked.out / f"{TABLE}-loss.svg", study, tables)
    draw_formula(asked.out / f"{TABLE}-formula.svg")
    draw_figures(asked.out / f"{TABLE}-fig34.svg")
    draw_open(asked.out / f"{TABLE}-open.svg")
    found = [
        *formula(),
        *views(),
        *figures(),
        *construction(),
        *on_data(tables, homogeneity(study, secrets)),
    ]
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    page = text(study, keys, tables, found, of_section_8(asked.out))
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


# What closeness costs.


def homogeneity(study: Study, secrets: list[str]) -> dict[str, list[float]]:
    """SSE / SST of the bucket means of each confidential column, for two buckets to ten."""
    found = {}
    for secret in secrets:
        x = study.frame[secret].to_numpy().astype(float)
        found[secret] = []
        for b in range(2, 11):
            bucket = rank_buckets(x, b)
            means = np.bincount(bucket, x) / np.bincount(bucket)
            found[secret].append(sse_over_sst(x, means[bucket]))
    return found


def of_section_8(folder: Path) -> list[Sentence]:
    """The verdicts of the other page, if it was written; the paper is counted as a whole."""
    path = folder / f"{SECTION_8}-sentences.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Sentence(
                row["sentence"],
                row["test"],
                {} if row["verdict"] == "cannot be tested" else once(row["verdict"] == "holds"),
                row["numbers"],
                row["reading"],
            )
            for row in csv.DictReader(file)
        ]


def on_data(tables: dict[str, list[Point]], inside: dict[str, list[float]]) -> list[Sentence]:
    """Sentences on loss and on the intruder's view."""
    means = {
        two: {secret: _losses(points, two=two) for secret, points in tables.items()}
        for two in (True, False)
    }
    seen = [
        (p.apart, Fraction(p.t) ** 2)
        for points in tables.values()
        for p in points
        if p.t not in {WITHOUT, "1"}
    ]
    tightest = max(seen, key=lambda view: view[0] / view[1])
    quote = (
        "“Using up the allowed distance between the confidential attribute distributions enables "
        "forming equivalence classes that are more homogeneous, and hence decreases information "
        "loss”"
    )
    return [
        Sentence(
            "“the smaller the buckets, the more homogeneous they can be”",
            "SSE / SST of bucket means falls from each number of buckets to the next, 2 to 10",
            {secret: all(b < a for a, b in pairwise(row)) for secret, row in inside.items()},
            "; ".join(
                f"{secret}: {show(row[0])} with 2, {show(row[2])} with 4, {show(row[-1])} with 10"
                for secret, row in inside.items()
            ),
        ),
        *(
            Sentence(
                quote,
                "SSE / SST of the quasi-identifiers, a mean over k, falls with every step of t",
                {case: all(b < a for a, b in pairwise(row)) for case, row in means[two].items()},
                "; ".join(
                    f"{case}: "
                    + ", ".join(f"{show(v)} (t={t})" for v, t in zip(row, TS, strict=True))
                    for case, row in means[two].items()
                ),
                reading=reading,
            )
            for two, reading in ((False, ""), (True, "with the same two buckets at every t"))
        ),
        Sentence(
            "Proposition 3, case (iv): two posterior views “differ from each other by a factor not "
            "greater than exp(ε)” for exp(ε/2)-closeness, given one public prior",
            "in every release with t above 1, a bucket's shares in any two classes differ by at "
            "most t²",
            once(all(apart <= bound for apart, bound in seen)),
            f"{len(seen):,} releases; nearest to its bound: {figure(tightest[0])} of "
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
    for epsilon in (1.0, 0.5):
        sizes = range(1, n)
        lines = [
            Line("attained", [(e, attained(n, e, epsilon)) for e in sizes], "black", "2 3", True),
            Line("with N − |E|", [(e, t_of(n, e, epsilon)) for e in sizes], "green"),
            Line("with N − |E| − 1", [(e, stated(n, e, epsilon)) for e in sizes], "red", "7 4"),
        ]
        panels.append(Panel(f"N = {n}, epsilon {epsilon:g}", lines, "t", "|E|"))
    common.write_chart(path, "t of stochastic t-closeness against the size of the class", panels)


def draw_figures(path: Path) -> None:
    """Fig. 3 and both rows of Fig. 4: a table and a class of it."""
    thirds, halved = np.full(3, 1 / 3), halves(EMPHASISED)
    drawn = (
        ("Fig. 3: 2-closeness", 3 * thirds, 3 * EMPHASISED, "density"),
        ("Fig. 4, three buckets: 2-closeness", thirds, EMPHASISED, "probability"),
        ("Fig. 4, two buckets: 1-closeness", np.full(2, 1 / 2), halved, "probability"),
    )
    panels = []
    for title, whole, own, what in drawn:
        curves = [
            Curve(label, _steps(values), colour, mark="", dash=dash)
            for label, values, colour, dash in (
                ("the whole table", whole, "black", ""),
                ("an equivalence class", own, "red", "7 4"),
            )
        ]
        panels.append(Axes(title, curves, "confidential attribute", what))
    _plots.write(path, "A class at distance 2, in three buckets and in two", panels)


def _steps(values: Floats) -> list[tuple[float, float]]:
    ends = np.linspace(0, 1, len(values) + 1)
    return [(x, float(y)) for a, b, y in zip(ends, ends[1:], values, strict=False) for x in (a, b)]


def draw_open(path: Path) -> None:
    """Epsilon against t: of two neighbouring tables, and of every table."""
    lies = np.geomspace(1e-8, 0.4, 40)
    curves = []
    for n, colour in ((4, "red"), (10, "orange"), (100, "purple")):
        _, after = neighbours(n)
        points = [(stochastic_t(after, lying(q)), math.log((1 - q) / q)) for q in lies]
        curves.append(Curve(f"two neighbours, classes of {n}", points, colour, mark=""))
    marks = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6)
    ts = np.linspace(1.0, 1.6, 61)
    every = [(t, epsilon_for_t(t, [4, 4])) for t in ts]
    view = [(t, epsilon_from_t(t)) for t in ts]
    curves += [
        Curve("every table, two equal classes", every, "black", mark=""),
        Curve("an intruder's view, 2 ln t", view, "grey", mark="", dash="7 4"),
    ]
    axes = Axes(
        "What stochastic t-closeness says about epsilon", curves, "t", "epsilon", x_marks=marks
    )
    _plots.write(path, "Epsilon against t", [axes], across=1)


def text(
    study: Study,
    keys: list[str],
    tables: dict[str, list[Point]],
    found: list[Sentence],
    others: list[Sentence],
) -> str:
    """The page."""
    n = study.frame.height
    ks = sorted({p.k for points in tables.values() for p in points})
    shown = [k for k in (2, 6, 12, 30, 100) if k in ks]
    rows = [
        [secret, str(k), *_cells(points, k, *setting)]
        for secret, points in tables.items()
        for k in shown
        for setting in SETTINGS
    ]
    head = ["confidential", "k", "t", "buckets", "classes", "achieved", "SSE / SST"]
    table = common.grid_table(head, rows)
    whole = f"The whole paper: {common.tally([*found, *others])}" if others else ""
    off, tried = converse()
    return f"""# Buckets and closeness: Domingo-Ferrer and Soria-Comas 2015{study.note}

J. Domingo-Ferrer and J. Soria-Comas, “From t-closeness to differential privacy and vice versa in
data anonymization”, Knowledge-Based Systems 74 (2015). Its examples, figures and propositions, and
the construction of section 6 on {study.name} (quasi-identifiers
{" and ".join(keys)}, confidential {" or ".join(tables)}; {n:,} records; {len(ks)} values of k;
[where it can be had](data.md)). The paper has no experiment on data; this one is ours. What it
leaves for later (section 8) has [a page of its own]({SECTION_8}.md). This page and its numbers are
written by `papers/{TABLE}.py`, and nothing in it is random but by a seed.

{common.list_methods(TABLE)}

![Fig. 3 and Fig. 4 of the paper]({TABLE}-fig34.svg)

![SSE / SST and number of classes against k, for several t]({TABLE}-loss.svg)

![t against the size of the class, attained, and by both readings]({TABLE}-formula.svg)

[All points]({TABLE}.csv).

## The paper's sentences

{whole} This page: {common.tally(found)} Our copy is extracted text, in which marks such as floor,
ceiling and indices may be damaged. A sentence with such a mark is read as its argument needs it,
and the reading is stated: a lost mark is not a failure of the paper.

{common.sentence_table(found)}

## Does stochastic t-closeness yield ε-differential privacy?

The paper leaves the question open. The answer depends on whether it is asked of one table or of
every table; proofs stand in `shoal.privacy_models.stochastic_t_closeness`.

**Of one table: no.** Two classes of n records, half x and half y; then one x becomes y. Under any
random function the first table is stochastically 1-close, and the second t-close with
t = (n − 1)/(n − 2). Let the function tell the truth but for a probability q: an output is (1 − q)/q
times as likely from one table as from the other. That has no bound as q falls to 0, while t stays:
no function of t bounds ε, though both neighbours are t-close. Nor is it 2 ln t: with n = 2 and
q = 1/4 the tables are 1- and 1.5-close, and ε = ln 3 = 1.1 exceeds 2 ln 1.5 = 0.81.

**Of every table: yes, and it is the same thing.** Fix the classes, and let a random function be
stochastically t-close for all tables with these classes. Give the records of a class E the value c
and all others c′. With a = |E|/N closeness says a p + (1 − a) p′ ≤ t p for the probabilities of any
output; so p′ ≤ p (t − a)/(1 − a), and the function is ε-differentially private record by record
with ε = ln((t − a)/(1 − a)), least for the smallest class. That is Proposition 1 turned round: the
two are equivalent. On {tried} random channels, the worst t of all such tables gives back the ε of
the channel up to a relative {off:.0e}.

**For an intruder's view: as in Proposition 3.** Its proof uses no more than the ratio of two
distributions, so stochastic exp(ε/2)-closeness of both tables gives ε for the view, under the same
assumptions. It is not differential privacy of the release.

![epsilon against t, for two neighbouring tables and for every table]({TABLE}-open.svg)

## Readings

**The cap.** For whole numbers c, 1/t ≤ (c/e)/p ≤ t is ⌈ep/t⌉ ≤ c ≤ ⌊ept⌋. Our copy reads ⌈ept⌉ in
both conditions. Shoal uses the first form, in whole numbers and fractions.

**The formula.** The proof sums its inequality over the N − |E| records outside the class; in our
copy the statement and the last line have N − |E| − 1. With N − |E| the formula is attained, by a
rare output that is exp(ε) times as likely outside the class as inside. The premise is privacy of
each record's own draw, Pr(Z(c) ∈ B) ≤ exp(ε) Pr(Z(c') ∈ B), not of the table as a whole.

**Proposition 3.** It speaks of an intruder's view and not of the release. It assumes that the prior
is one public distribution, the same for both tables, and that all that is seen of a person is a
draw from the distribution of the class. If each table's own distribution is the prior instead, one
changed record moves the share of its bucket of b records by a factor of b/(b − 1), and two views
may differ by t² b/(b − 1). Shoal states the epsilon in words, among what is not claimed.

**Number of classes.** The paper has classes of sizes as equal as may be, and so has `bucketization`
with `l`. Where N divides by nothing convenient that can cost most of them: 1,003 records with two
buckets, t = 1.05 and k = 3 have 45 classes of 22 or 23, but 245 classes of 4 beside one of 23.
Without `l`, `class_sizes` looks for both.

## In the paper and in Shoal

{common.coverage_table(COVERED)}

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

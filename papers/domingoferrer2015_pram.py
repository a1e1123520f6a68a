"""The future work of Domingo-Ferrer and Soria-Comas (2015): stochastic against plain t-closeness.

Section 8 of the paper asks for a construction that reaches stochastic t-closeness other than by
differential privacy, for a comparison of its utility with plain t-closeness, and for one of the
paper's distance with the earth mover's distance. Here: invariant PRAM, randomised response or
noise, the paper's own bucketization, and Mondrian steered by either distance, at the same t.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

import _common as common
import _plots
import numpy as np
import polars as pl
from _closeness import (
    Case,
    Ints,
    apart,
    emd_for,
    emd_of,
    labels,
    local_error,
    quasi_identifier_loss,
    table,
)
from _common import Floats, Line, Panel, Sentence, show
from _plots import Axes, Curve
from _stochastic_sentences import (
    BUCKETS,
    DRAWN,
    EARTH,
    MEASURES,
    NOISE,
    OWN,
    PLAIN,
    PRAM,
    RATIO,
    STYLE,
    TS,
    WAYS,
    Key,
    Point,
    in_words,
    sentences,
)

import shoal
from shoal.core import DifferentialPrivacy, Release, Status, StochasticTCloseness
from shoal.mechanism.randomised_response import posterior, response_matrix
from shoal.privacy_models import stochastic_t

PAGE = "domingoferrer2015-pram"
PROGRAM = Path(__file__).stem
KS = (10,)


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    ks = KS if asked.ks == common.KS else asked.ks
    repeats = asked.runs or 3
    cases = shipped() if asked.sample else adult()
    study = Studies(cases, repeats)
    points = {key: study.point(*key) for key in keys(cases, ks)}
    write_points(asked.out / f"{PAGE}.csv", points)
    k = ks[len(ks) // 2]
    for name in ("pairs", "local", "qi"):
        draw(asked.out / f"{PAGE}-{name}.svg", name, cases, points, k)
    found = sentences(cases, points, k)
    common.write_sentences(asked.out / f"{PAGE}-sentences.csv", found)
    page = text(cases, study.claims, points, found, k=k, ks=ks, repeats=repeats)
    (asked.out / f"{PAGE}.md").write_text(page, encoding="utf-8")


def keys(cases: Sequence[Case], ks: Sequence[int]) -> list[Key]:
    """All points: the methods at every k and t, and k-anonymity alone at every k."""
    every = [(c.title, m, k, t) for c in cases for m in STYLE if m != PLAIN for k in ks for t in TS]
    return [*((c.title, PLAIN, k, math.inf) for c in cases for k in ks), *every]


def adult() -> list[Case]:
    """Adult: occupation has 14 categories, the rarest with 9 people; income has two."""
    people = pl.read_csv(common.DATA / "adult.csv")
    grades = people.unique("education").sort("education-num")["education"].to_list()
    hours, ages = (20, 35, 40, 50), (20, 30, 40, 50, 60, 70)
    bands = {"age": ages, "hours-per-week": hours}
    found = []
    for name in ("occupation", "income", "education"):
        frame = people.select(*bands, "sex", name)
        ranked = name == "education"
        levels = grades if ranked else sorted(frame[name].unique())
        kind = "ordinal" if ranked else "nominal"
        found.append(Case("Adult", frame, bands, name, levels, kind))
    return found


def shipped() -> list[Case]:
    """Adults among the invented people of the package."""
    bands = {"age": (20, 30, 40, 50, 60, 70), "hours": (10, 20, 35, 40, 50)}
    grades = ["none", "primary", "secondary", "tertiary"]
    found = []
    for name in ("condition", "education"):
        people = shoal.sample.load().filter(pl.col("age") >= 18)
        frame = people.select(*bands, "sex", name).drop_nulls().head(2_000)
        ranked = name == "education"
        levels = grades if ranked else sorted(frame[name].unique())
        kind = "ordinal" if ranked else "nominal"
        found.append(Case(common.SAMPLE, frame, bands, name, levels, kind))
    return found


@cache
def first_stage(method: str, case: Case, t: float) -> float:
    """The epsilon of the responses at a t: ln t, which any classes allow.

    `OWN` has the largest epsilon of the responses at which both stages of PRAM together, by their
    own matrix, cost a record no more than that; it is found by halving.
    """
    if method != OWN:
        return math.log(t)
    low, high = math.log(t), 30.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        R = two_stages(case, middle)
        cost = math.log(float((R.max(axis=0) / R.min(axis=0)).max()))
        low, high = (middle, high) if cost <= math.log(t) else (low, middle)
    return math.floor(1e4 * low) / 10_000


def two_stages(case: Case, price: float) -> Floats:
    """The matrix of invariant PRAM; values that nobody has left out."""
    counts = case.totals
    P = response_matrix(len(case.levels), price)
    return (P @ posterior(P, counts / counts.sum()))[:, counts > 0]


class Studies:
    """Every release is made here, through the public interface; its claims are kept."""

    def __init__(self, cases: Sequence[Case], repeats: int) -> None:
        self.cases = {case.title: case for case in cases}
        self.repeats = repeats
        self.claims: dict[str, tuple[str, ...]] = {}
        self._plain: dict[tuple[str, int], Ints] = {}

    def point(self, title: str, method: str, k: int, t: float) -> Point:
        """Losses of a method; those that draw nothing are run once."""
        case = self.cases[title]
        if (title, k) not in self._plain:
            self._plain[title, k] = labels(self._released(case, PLAIN, k, t).data, case.keys)
        alike = self._plain[title, k]
        runs = self.repeats if method in DRAWN else 1
        found = [self._losses(case, method, k, t, alike) for _ in range(runs)]
        mean = {name: float(np.mean([loss[name] for loss in found])) for name in found[0]}
        spread = {
            f"{name}_sd": float(np.std([loss[name] for loss in found], ddof=1)) if runs > 1 else 0.0
            for name in ("pairs", "local", "shares")
        }
        drawn, unbiased = (
            None if math.isnan(mean.pop(name)) else float(np.mean([loss[name] for loss in found]))
            for name in ("drawn", "unbiased")
        )
        classes, both = round(mean.pop("classes")), mean.pop("both") == 1
        counted = {"classes": classes, "both": both, "drawn": drawn, "unbiased": unbiased}
        return Point(**mean, **spread, **counted, runs=runs)

    def _released(self, case: Case, method: str, k: int, t: float) -> Release:
        exact = Decimal(str(t))
        if method == OWN:
            price = Decimal(str(first_stage(method, case, t)))
            rules = case.policy(k, None, method=PRAM, epsilon=price)
        elif method in {NOISE, PRAM, BUCKETS}:
            rules = case.policy(k, None, method=method, t=exact)
        elif method == PLAIN:
            rules = case.policy(k, None, method="mdav")
        else:
            asked = {"t": exact, "distance": "ratio"}
            if method == EARTH:
                asked = {"t": emd_for(t), "distance": case.ground}
            rules = case.policy(k, asked, method="mondrian", output="centroids")
        release = shoal.protect(case.frame, rules, keep_order=True)
        if case is next(iter(self.cases.values())) and method != OWN:
            self.claims[method] = tuple(f"{c.status}: {c.guarantee}" for c in release.claims)
        return release

    def _losses(self, case: Case, method: str, k: int, t: float, alike: Ints) -> dict[str, float]:
        release = self._released(case, method, k, t)
        data, width = release.data, len(case.levels)
        truth = case.codes(case.frame)
        seen, meaning = case.shown(data)
        classes = labels(data, case.keys)
        own = table(classes, seen, len(meaning))
        held, shown = table(classes, truth, width), own @ meaning
        drawn = unbiased = math.nan
        if method in {PRAM, OWN}:
            drawn = stochastic_t(held, two_stages(case, first_stage(method, case, t)))
        elif method == NOISE and case.kind == "nominal":
            P = response_matrix(width, first_stage(method, case, t))
            drawn = stochastic_t(held, P)
            back = np.linalg.solve(P.T, np.bincount(seen, minlength=width) / seen.size)
            unbiased = apart(np.bincount(truth, minlength=width) / truth.size, back)
        before, after = case.cells(case.frame), case.cells(data)
        number = 1 + int(max(before.max(), after.max()))
        people = table(before, truth, width, number), table(after, seen, len(meaning), number)
        qi, sse = quasi_identifier_loss(case, data)
        proved = {type(c.guarantee) for c in release.claims if c.status is Status.PROVED}
        return {
            "qi": qi,
            "sse": sse,
            "pairs": apart(people[0] / truth.size, people[1] @ meaning / truth.size),
            "local": local_error(alike, truth, classes, shown),
            # Buckets have the table's shares but for what floats are off by.
            "shares": round(apart(*((c.sum(axis=0) / truth.size) for c in (held, shown))), 12),
            "classes": float(len(own)),
            "ratio": stochastic_t(own, np.eye(len(meaning))),
            "emd": emd_of(shown, ordered=case.kind == "ordinal"),
            "drawn": drawn,
            "unbiased": unbiased,
            "both": float({DifferentialPrivacy, StochasticTCloseness} <= proved),
        }


def write_points(path: Path, points: Mapping[Key, Point]) -> None:
    """Every point of every case."""
    fields = ["classes", "sse", *MEASURES, "unbiased", "ratio", "emd", "drawn"]
    fields += ["pairs_sd", "local_sd", "shares_sd", "runs"]
    rows = []
    for (title, method, k, t), point in points.items():
        cells = ["" if (v := getattr(point, name)) is None else v for name in fields]
        rows.append([title, method, k, "" if math.isinf(t) else t, *cells])
    common.write_rows(path, ["case", "method", "k", "t", *fields], rows)


def draw(path: Path, name: str, cases: Sequence[Case], points: Mapping[Key, Point], k: int) -> None:
    """One measure against t, a panel for each case; quasi-identifiers on a logarithmic scale."""
    panels = []
    for case in cases:
        lines = []
        for method, (colour, dash) in STYLE.items():
            ends = TS if method != PLAIN else (TS[0], TS[-1])
            at = [t if method != PLAIN else math.inf for t in ends]
            curve = [
                (t, getattr(points[case.title, method, k, key], name))
                for t, key in zip(ends, at, strict=True)
            ]
            lines.append(Line(method, curve, colour, dash, mark=not dash))
        panels.append(Panel(case.title, lines, "SSE / SST" if name == "qi" else "loss", "t"))
    title = f"Loss of {MEASURES[name]} against t, k = {k}"
    if name == "qi":
        common.write_chart(path, title, panels)
        return
    axes = [
        Axes(
            panel.title,
            [Curve(li.label, li.points, li.colour, "circle" if li.mark else "", li.dash)
             for li in panel.lines],
            panel.x_label,
            panel.y_label,
        )
        for panel in panels
    ]  # fmt: skip
    _plots.write(path, title, axes)


def text(
    cases: Sequence[Case],
    claims: Mapping[str, tuple[str, ...]],
    points: Mapping[Key, Point],
    found: list[Sentence],
    *,
    k: int,
    ks: Sequence[int],
    repeats: int,
) -> str:
    """The page."""
    first = cases[0]
    n, named = first.frame.height, ", ".join(first.keys)
    sizes = ", ".join(map(str, ks))
    times = f"{repeats} times" if repeats > 1 else "once"
    note = f", on {first.name}" if first.name == common.SAMPLE else ""
    tables = []
    for case in cases:
        rows = []
        for t in (1.5, 3.0, 8.0):
            for method in WAYS:
                p = points[case.title, method, k, t]
                extra = f" ({show(p.unbiased)} turned back)" if p.unbiased is not None else ""
                rows.append([
                    f"{t:g}", method, f"{p.classes:,}", show(p.qi), show(p.pairs),
                    show(p.local), show(p.shares) + extra, in_words(p.ratio), show(p.emd),
                ])  # fmt: skip
        p = points[case.title, PLAIN, k, math.inf]
        rows.append(["none", PLAIN, f"{p.classes:,}", show(p.qi), show(p.pairs),
                     show(p.local), show(p.shares), in_words(p.ratio), show(p.emd)])  # fmt: skip
        head = ["t", "method", "classes", "quasi-identifiers", "pairs", "classes' values"]
        head += ["table's values", "ratio reached", "EMD reached"]
        about = f"{len(case.levels)} categories, {case.kind}, EMD {case.ground}"
        about += f"; the rarest value has {case.rarest:,} of {case.frame.height:,} people"
        tables.append(
            f"### {case.secret.capitalize()}\n\n{about}.\n\n{common.grid_table(head, rows)}"
        )
    prices = common.grid_table(
        ["t", "EMD", "ε of a record", *(f"ε of “{OWN}”, {case.secret}" for case in cases)],
        [
            [
                f"{t:g}",
                show(float(emd_for(t))),
                show(math.log(t)),
                *(show(first_stage(OWN, case, t)) for case in cases),
            ]
            for t in TS
        ],
    )
    return f"""# Stochastic t-closeness by PRAM: Domingo-Ferrer and Soria-Comas 2015{note}

J. Domingo-Ferrer and J. Soria-Comas, “From t-closeness to differential privacy and vice versa in
data anonymization”, Knowledge-Based Systems 74 (2015). Section 8, future work. The paper has no
figure for it; the comparison is ours, on {first.name} ({n:,} records; quasi-identifiers {named};
[where it can be had](data.md)), at k = {sizes}; plots and sentences are for k = {k}. Methods that
draw are run {times} and averaged. This page and its numbers are written by
`papers/{PROGRAM}.py`; noise has no seed, so another run differs by chance. The rest of the paper,
its tally as a whole, and the table of what is where are on
[the paper's first page](domingoferrer2015.md).

{common.list_methods("domingoferrer2015")}

![Loss of people by bands and value against t]({PAGE}-pairs.svg)

![Loss of values in the classes of k-anonymity against t]({PAGE}-local.svg)

![Loss of quasi-identifiers against t]({PAGE}-qi.svg)

[All points]({PAGE}.csv), with standard deviations over runs.

## What is compared

Six ways to a t, all with classes of at least k records whose quasi-identifiers are released as
centroids. Two are plain t-closeness by the paper's Definition 4:

- *bucketization*: the paper's own construction (section 6). A bucket stands for the value, and a
  class holds every bucket in nearly its share. A bucket is read here as its values in their shares
  of the whole table, which t-closeness takes to be public.
- *Mondrian by ratio*: Mondrian steered by the same distance on raw values, which stay as they are.

One has another distance:

- *Mondrian by EMD*: steered by the earth mover's distance, at (t - 1) / (t + 1), the largest
  EMD with equal distances that closeness by ratio allows; the ordered one is not above it. So
  whatever is close by ratio is close by EMD, and not the other way round.

Three are stochastic, with groups by MDAV that follow k alone:

- *kanon-dp*: each value by randomised response, or with Laplace noise on its rank, at the ε that
  gives stochastic t-closeness by Proposition 1, ln t.
- *pram*: the same groups and the same ε, by invariant PRAM.
- *pram, own price*: the same with a larger ε. The second stage of PRAM hides more than the
  first alone; this is the largest ε of the first stage at which the two together, by their
  matrix, cost a record ln t. Shoal does not claim this: its accounting counts the first stage.

{prices}

Four losses. *Pairs*: total variation between the original and the released table, people counted
by public bands of the quasi-identifiers and by value. *Classes' values*: for each person, total
variation between the true values in the person's class of plain k-anonymity and the released
values in the person's released class, averaged. *Table's values*: total variation between the
values of both tables. *Quasi-identifiers*: mean of SSE / SST of the numbers, and of the share of
changed categories. All are 0 for the original table.

## What it shows

{reading(cases, points, k)}

{against(cases, points, k)}

Why. For closeness by ratio every class must hold every value, the rarest too, in nearly its share;
so a rare value alone can force all people into few classes, and this is what the paper's buckets
are for: with them a class needs every bucket and not every value, and most of the classes of
k-anonymity stay. What they cost is seen within the bucket. Where t + 1 buckets come near k, as at t
= 5 and 8, little is left to choose by nearness, and a larger t costs more: the paper's own classes
have t(t + 1) records or more. EMD moves little earth for a rare value, and lets classes lack it: ∞
in the tables means that some class has none of a value that the table has. So EMD costs less
because it promises less, and what it promises says nothing about rare values. The stochastic
methods leave the classes of k-anonymity alone and put all the loss on the confidential values:
people can still be counted by quasi-identifiers, and the values within a class are blurred towards
those of the table (pram) or towards equal shares (kanon-dp). Responses can be turned back by their
public matrix, which repairs the shares of the whole table and leaves single rows as they are; pram
needs no such step.

## The paper's sentences

{common.tally(found)} Thresholds are ours. A question that the paper leaves for later, such as which
distance is better, is not a statement and has no verdict: the numbers of this page answer it.

{common.sentence_table(found)}

## Numbers

{(chr(10) * 2).join(tables)}

## What is claimed

For the first column and the last t:

{_claim_table(claims)}

Plain t-closeness is a property of the released table, which anybody can compute. Stochastic
t-closeness is one of the distribution that the values were drawn from; the table is one draw, and
the column *ratio reached* is no test of it. For `pram` it rests on the shares of the whole table
being public, as t-closeness takes them to be anyway; `kanon-dp` needs no such word, and has a
proved ε for each record's confidential value."""


def reading(cases: Sequence[Case], points: Mapping[Key, Point], k: int) -> str:
    """What the numbers say, in plain words, case by case."""
    lines = []
    for case in cases:
        best = {
            name: {
                t: min(WAYS, key=lambda m, t=t: getattr(points[case.title, m, k, t], name))
                for t in TS
            }
            for name in ("pairs", "local")
        }
        p = {m: points[case.title, m, k, 3.0] for m in WAYS}
        plain = points[case.title, PLAIN, k, math.inf]
        ratio, earth, own = p[RATIO], p[EARTH], p[BUCKETS]
        lines.append(
            f"- **{case.secret}**, t = 3. k-anonymity alone has {plain.classes:,} classes, and "
            f"quasi-identifiers lose {show(plain.qi)}. Bucketization has {own.classes:,} "
            f"({show(own.qi)}), Mondrian by ratio {ratio.classes:,} ({show(ratio.qi)}), by EMD "
            f"{earth.classes:,} ({show(earth.qi)}), and the ratio that it reaches is "
            f"{in_words(earth.ratio)}. Pairs lose {show(p[NOISE].pairs)} by kanon-dp, "
            f"{show(p[PRAM].pairs)} by pram, {show(p[OWN].pairs)} by pram at its own price, "
            f"{show(own.pairs)} by bucketization, {show(ratio.pairs)} by ratio and "
            f"{show(earth.pairs)} by EMD. Over all t, the least loss of pairs has "
            f"{_by_t(best['pairs'])}; of classes' values, {_by_t(best['local'])}."
        )
    return "\n".join(lines)


def against(cases: Sequence[Case], points: Mapping[Key, Point], k: int) -> str:
    """In how many cases the best stochastic way loses less than the paper's own construction."""
    told = []
    for name, words in (
        ("qi", "quasi-identifiers"),
        ("pairs", "pairs"),
        ("local", "classes' values"),
    ):
        less = sum(
            min(getattr(points[c.title, m, k, t], name) for m in DRAWN)
            < getattr(points[c.title, BUCKETS, k, t], name)
            for c in cases
            for t in TS
        )
        told.append(f"of {words} in {less}")
    return (
        f"Against the paper's own construction, in {len(cases) * len(TS)} columns and values of t, "
        f"the best of the stochastic ways loses less {', '.join(told[:-1])} and {told[-1]}."
    )


def _by_t(best: Mapping[float, str]) -> str:
    """Which method is best for which t, runs of the same put together."""
    parts: list[tuple[str, list[float]]] = []
    for t, method in best.items():
        if parts and parts[-1][0] == method:
            parts[-1][1].append(t)
        else:
            parts.append((method, [t]))
    return ", ".join(
        f"{method} for t = {ts[0]:g}" + (f" to {ts[-1]:g}" if len(ts) > 1 else "")
        for method, ts in parts
    )


def _claim_table(claims: Mapping[str, tuple[str, ...]]) -> str:
    rows = [[name, "<br>".join(said)] for name, said in claims.items()]
    return common.grid_table(["method", "claims in the manifest of the last run"], rows)


if __name__ == "__main__":
    main()

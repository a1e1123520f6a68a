"""The future work of Domingo-Ferrer and Soria-Comas (2015): stochastic against plain t-closeness.

Section 8 of the paper asks for a construction that reaches stochastic t-closeness other than by
differential privacy, for a comparison of its utility with plain t-closeness, and for one of the
paper's distance with the earth mover's distance. Here: invariant PRAM, randomised response or
noise, and Mondrian steered by either distance, at the same t.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import _common as common
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
    ratio_of,
    table,
)
from _common import Floats, Line, Panel, Sentence, show

import shoal
from shoal.mechanism.randomised_response import posterior, response_matrix
from shoal.privacy_models import epsilon_for_t

PAGE = "domingoferrer2015-pram"
PROGRAM = Path(__file__).stem
TS = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
KS = (10,)
NOISE, PRAM, OWN = "kanon-dp", "pram", "pram, own price"
RATIO, EARTH, PLAIN = "t-closeness by ratio", "t-closeness by EMD", "k-anonymity alone"
DRAWN = (NOISE, PRAM, OWN)
FOUR = (NOISE, PRAM, OWN, RATIO, EARTH)
STYLE = {
    NOISE: ("red", ""),
    PRAM: ("blue", ""),
    OWN: ("purple", ""),
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
        ratio: largest ratio of shares between a class of the release and the whole, either way.
        emd: largest earth mover's distance between them.
        drawn: the same ratio for the distribution that was drawn from, where we can compute it.
        unbiased: loss of `shares` after the responses were turned back, by their public matrix.
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
    pairs_sd: float
    local_sd: float
    shares_sd: float
    runs: int


Key = tuple[str, str, int, float]
"""Case, method, k and t."""


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    ks = KS if asked.ks == common.KS else asked.ks
    repeats = asked.runs or 5
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
        frame = people.select(*bands, "sex", name).drop_nulls().head(4_000)
        ranked = name == "education"
        levels = grades if ranked else sorted(frame[name].unique())
        kind = "ordinal" if ranked else "nominal"
        found.append(Case(common.SAMPLE, frame, bands, name, levels, kind))
    return found


def epsilon_at(t: float, k: int, n: int) -> Decimal:
    """The epsilon at which classes of k or more of n rows are stochastically t-close."""
    return Decimal(math.floor(1e4 * epsilon_for_t(t, [k, n - k]))) / 10_000


def first_stage(method: str, case: Case, t: float, k: int) -> Decimal:
    """The epsilon that a method is run with at a t.

    `OWN` has the largest epsilon of the responses at which both stages of PRAM together, by their
    own matrix, cost a record no more than t allows; it is found by halving.
    """
    price = epsilon_at(t, k, case.frame.height)
    if method != OWN:
        return price
    low, high = float(price), 30.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        R = two_stages(case, middle)
        cost = math.log(float((R.max(axis=0) / R.min(axis=0)).max()))
        low, high = (middle, high) if cost <= price else (low, middle)
    return Decimal(math.floor(1e4 * low)) / 10_000


def two_stages(case: Case, price: float) -> Floats:
    """The matrix of invariant PRAM; values that nobody has left out."""
    counts = np.bincount(case.codes(case.frame), minlength=len(case.levels))
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
            self._plain[title, k] = labels(self._released(case, PLAIN, k, t), case.keys)
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
        classes = round(mean.pop("classes"))
        return Point(**mean, **spread, classes=classes, drawn=drawn, unbiased=unbiased, runs=runs)

    def _released(self, case: Case, method: str, k: int, t: float) -> pl.DataFrame:
        if method in DRAWN:
            price = first_stage(method, case, t, k)
            name = NOISE if method == NOISE else PRAM
            rules = case.policy(k, None, method=name, epsilon=price, partition="mondrian")
        else:
            wanted = {
                PLAIN: None,
                RATIO: {"t": Decimal(str(t)), "distance": "ratio"},
                EARTH: {"t": emd_for(t), "distance": case.ground} if method == EARTH else None,
            }[method]
            rules = case.policy(k, wanted, method="mondrian", output="centroids")
        release = shoal.protect(case.frame, rules, keep_order=True)
        if case is next(iter(self.cases.values())) and method != OWN:
            self.claims[method] = tuple(f"{c.status}: {c.guarantee}" for c in release.claims)
        return release.data

    def _losses(self, case: Case, method: str, k: int, t: float, alike: Ints) -> dict[str, float]:
        data = self._released(case, method, k, t)
        width = len(case.levels)
        truth, seen = case.codes(case.frame), case.codes(data)
        classes = labels(data, case.keys)
        inside = table(classes, seen, width)
        drawn = unbiased = math.nan
        if method in {PRAM, OWN}:
            R = two_stages(case, float(first_stage(method, case, t, k)))
            drawn = ratio_of(table(classes, truth, width) @ R)
        elif method == NOISE and case.kind == "nominal":
            P = response_matrix(width, float(first_stage(method, case, t, k)))
            drawn = ratio_of(table(classes, truth, width) @ P)
            back = np.linalg.solve(P.T, np.bincount(seen, minlength=width) / seen.size)
            unbiased = apart(np.bincount(truth, minlength=width) / truth.size, back)
        pairs = [
            np.bincount(case.cells(frame) * width + codes) / truth.size
            for frame, codes in ((case.frame, truth), (data, seen))
        ]
        longest = max(map(len, pairs))
        qi, sse = quasi_identifier_loss(case, data)
        return {
            "qi": qi,
            "sse": sse,
            "pairs": apart(*(np.pad(p, (0, longest - len(p))) for p in pairs)),
            "local": local_error(alike, truth, classes, inside),
            "shares": apart(*(np.bincount(c, minlength=width) / c.size for c in (truth, seen))),
            "classes": float(len(inside)),
            "ratio": ratio_of(inside),
            "emd": emd_of(inside, ordered=case.kind == "ordinal"),
            "drawn": drawn,
            "unbiased": unbiased,
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
    """One measure against t, a panel for each case."""
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
        panels.append(Panel(case.title, lines, f"loss: {name}", "t"))
    common.write_chart(path, f"Loss of {MEASURES[name]} against t, k = {k}", panels)


def sentences(cases: Sequence[Case], points: Mapping[Key, Point], k: int) -> list[Sentence]:
    """The questions of Section 8 and the statements that they rest on, tested."""
    expected = "“we can expect stochastic t-closeness to allow better data utility”"
    asked = (
        "“devising a construction to reach stochastic t-closeness (other than the one based on "
        "differential privacy)”"
    )
    found = [
        _less(cases, points, k=k, name=name, methods=methods, quote=quote)
        for quote, methods, names in (
            (expected, (PRAM, RATIO), MEASURES),
            (expected, (PRAM, EARTH), ("pairs", "local", "qi")),
            (expected, (OWN, RATIO), ("pairs", "local")),
            (asked, (PRAM, NOISE), ("pairs", "local", "shares")),
        )
        for name in names
    ]

    def at(case: Case, method: str, t: float) -> Point:
        return points[case.title, method, k, t]

    def every(case: Case, told: Callable[[float], str]) -> str:
        return f"{case.secret}: " + ", ".join(f"{told(t)} at t={t:g}" for t in TS)

    distances = (
        "“compare in terms of privacy and utility the impact of the distance between distributions "
        "proposed in the article and the earth mover's distance”"
    )
    return [
        *found,
        Sentence(
            distances,
            "utility: at every t, EMD at the largest value that the ratio allows leaves more "
            "classes",
            {
                c.secret: all(at(c, EARTH, t).classes > at(c, RATIO, t).classes for t in TS)
                for c in cases
            },
            "; ".join(
                every(
                    c, lambda t, c=c: f"{at(c, EARTH, t).classes} against {at(c, RATIO, t).classes}"
                )
                for c in cases
            ),
        ),
        Sentence(
            distances,
            "privacy: at every t, a class that EMD allowed has some value more than t times as "
            "often, or as rarely, as the whole table",
            {c.secret: all(at(c, EARTH, t).ratio > t for t in TS) for c in cases},
            "; ".join(every(c, lambda t, c=c: _ratio(at(c, EARTH, t).ratio)) for c in cases),
        ),
        Sentence(
            "Proposition 1: k-anonymity with record-wise ε yields stochastic t-closeness",
            "the distributions that the values of every class were drawn from, computed from the "
            "matrices, lie within ratio t of the table's",
            {
                c.secret: all(
                    (drawn := at(c, m, t).drawn) is None or drawn <= t for m in DRAWN for t in TS
                )
                for c in cases
            },
            "; ".join(
                f"{m}, " + every(c, lambda t, c=c, m=m: show(at(c, m, t).drawn or 0))
                for c in cases
                for m in DRAWN
                if at(c, m, TS[0]).drawn is not None
            ),
        ),
        Sentence(
            "“Attaining standard t-closeness from ε-differential privacy is unfeasible”",
            "at every t, the values that were drawn break t-closeness by ratio in some class",
            {
                c.secret: all(at(c, m, t).ratio > t for m in (NOISE, PRAM) for t in TS)
                for c in cases
            },
            "; ".join(
                f"{m}, " + every(c, lambda t, c=c, m=m: _ratio(at(c, m, t).ratio))
                for c in cases
                for m in (NOISE, PRAM)
            ),
        ),
    ]


def _less(
    cases: Sequence[Case],
    points: Mapping[Key, Point],
    *,
    k: int,
    name: str,
    methods: tuple[str, str],
    quote: str,
) -> Sentence:
    """Whether one method loses less than another at every t, case by case."""
    outcome, numbers = {}, []
    for case in cases:
        pairs = [[getattr(points[case.title, m, k, t], name) for m in methods] for t in TS]
        outcome[case.secret] = all(one < other for one, other in pairs)
        told = [
            f"{show(pairs[i][0])} against {show(pairs[i][1])} at t={TS[i]:g}"
            for i in (0, TS.index(3.0), len(TS) - 1)
        ]
        less = sum(one < other for one, other in pairs)
        numbers.append(f"{case.secret}: less at {less} of {len(TS)} t; {', '.join(told)}")
    one, other = methods
    return Sentence(
        quote,
        f"{one} loses less than {other} at every t: {MEASURES[name]}",
        outcome,
        "; ".join(numbers),
    )


def _ratio(value: float) -> str:
    return "∞" if math.isinf(value) else show(value)


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
    note = f", on {first.name}" if first.name == common.SAMPLE else ""
    tables = []
    for case in cases:
        rows = []
        for t in (1.5, 3.0, 8.0):
            for method in FOUR:
                p = points[case.title, method, k, t]
                extra = f" ({show(p.unbiased)} turned back)" if p.unbiased is not None else ""
                rows.append([
                    f"{t:g}", method, f"{p.classes:,}", show(p.qi), show(p.pairs),
                    show(p.local), show(p.shares) + extra, _ratio(p.ratio), show(p.emd),
                ])  # fmt: skip
        p = points[case.title, PLAIN, k, math.inf]
        rows.append(["none", PLAIN, f"{p.classes:,}", show(p.qi), show(p.pairs),
                     show(p.local), show(p.shares), _ratio(p.ratio), show(p.emd)])  # fmt: skip
        head = ["t", "method", "classes", "quasi-identifiers", "pairs", "classes' values"]
        head += ["table's values", "ratio reached", "EMD reached"]
        about = f"{len(case.levels)} categories, {case.kind}, EMD {case.ground}"
        rarest = int(case.frame[case.secret].value_counts()["count"].min())
        about += f"; the rarest value has {rarest:,} of {case.frame.height:,} people"
        tables.append(
            f"### {case.secret.capitalize()}\n\n{about}.\n\n{common.grid_table(head, rows)}"
        )
    prices = common.grid_table(
        ["t", "EMD", "ε of a record", *(f"ε of “{OWN}”, {case.secret}" for case in cases)],
        [
            [
                f"{t:g}",
                show(float(emd_for(t))),
                show(float(epsilon_at(t, k, n))),
                *(show(float(first_stage(OWN, case, t, k))) for case in cases),
            ]
            for t in TS
        ],
    )
    return f"""# Stochastic t-closeness by PRAM: Domingo-Ferrer and Soria-Comas 2015{note}

J. Domingo-Ferrer and J. Soria-Comas, “From t-closeness to differential privacy and vice versa in
data anonymization”, Knowledge-Based Systems 74 (2015). Section 8, future work. The paper has no
figure for it; the comparison is ours, on {first.name} ({n:,} records; quasi-identifiers {named}),
at k = {sizes}; plots and sentences are for k = {k}. Methods that draw are run {repeats} times and
averaged. This page and its numbers are written by `papers/{PROGRAM}.py`; noise has no seed, so
that another run differs by chance.

![Loss of people by bands and value against t]({PAGE}-pairs.svg)

![Loss of values in the classes of k-anonymity against t]({PAGE}-local.svg)

![Loss of quasi-identifiers against t]({PAGE}-qi.svg)

[All points]({PAGE}.csv), with standard deviations over runs.

## What is compared

Five ways to a t, all with classes of at least k records by Mondrian, released as centroids:

- *t-closeness by ratio*: Mondrian steered by the paper's Definition 4. Values stay as they are.
- *t-closeness by EMD*: the same, steered by the earth mover's distance, at (t - 1) / (t + 1).
  That is the largest EMD with equal distances that closeness by ratio allows; the ordered one
  is not above it. So whatever is close by ratio is close by EMD, and not the other way round.
- *kanon-dp*: groups by k alone; each value by randomised response, or with Laplace noise on its
  rank, at the ε that gives stochastic t-closeness by Proposition 1.
- *pram*: the same groups and the same ε, by invariant PRAM.
- *pram, own price*: the same with a larger ε. The second stage of PRAM hides more than the
  first alone; this is the largest ε of the first stage at which the two together, by their
  matrix, cost a record what Proposition 1 asks for. Shoal does not claim this: its
  accounting counts the first stage.

{prices}

Four losses. *Pairs*: total variation between the original and the released table, people counted
by public bands of the quasi-identifiers and by value. *Classes' values*: for each person, total
variation between the true values in the person's class of plain k-anonymity and the released
values in the person's released class, averaged. *Table's values*: total variation between the
values of both tables. *Quasi-identifiers*: mean of SSE / SST of the numbers, and of the share of
changed categories. All are 0 for the original table.

## What it shows

{reading(cases, points, k)}

Why. For closeness by ratio every class must hold every value, the rarest too, in nearly its
share; so a rare value alone can force all people into few classes. EMD moves little earth for a
rare value, and lets classes lack it: ∞ in the tables means that some class has none of a value
that the table has. So EMD costs less because it promises less, and what it promises says nothing
about rare values. The stochastic methods leave the classes of k-anonymity alone and put all the
loss on the confidential values: people can still be counted by quasi-identifiers, and the values
within a class are blurred towards those of the table (pram) or towards equal shares (kanon-dp).
Responses can be turned back by their public matrix, which repairs the shares of the whole table
and leaves single rows as they are; pram needs no such step.

## The paper's sentences

{common.tally(found)} Thresholds are ours.

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
                t: min(FOUR, key=lambda m, t=t: getattr(points[case.title, m, k, t], name))
                for t in TS
            }
            for name in ("pairs", "local")
        }
        p = {m: points[case.title, m, k, 3.0] for m in FOUR}
        plain = points[case.title, PLAIN, k, math.inf]
        ratio, earth = p[RATIO], p[EARTH]
        lines.append(
            f"- **{case.secret}**, t = 3. By ratio {ratio.classes:,} of {plain.classes:,} classes "
            f"are left, and quasi-identifiers lose {show(ratio.qi)} instead of {show(plain.qi)}. "
            f"By EMD {earth.classes:,} are left ({show(earth.qi)}), and the ratio that they reach "
            f"is {_ratio(earth.ratio)}. Pairs lose {show(p[NOISE].pairs)} by kanon-dp, "
            f"{show(p[PRAM].pairs)} by pram, {show(p[OWN].pairs)} by pram at its own price, "
            f"{show(ratio.pairs)} by ratio and {show(earth.pairs)} by EMD. Over all t, the least "
            f"loss of pairs has {_by_t(best['pairs'])}; of classes' values, {_by_t(best['local'])}."
        )
    return "\n".join(lines)


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

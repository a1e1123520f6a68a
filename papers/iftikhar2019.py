"""Figures 4, 5 and 6 of Iftikhar, Wang and Lin (2019).

IL1s against k: MDAV and insensitive microaggregation (I-MDAV) without noise; then stable
microaggregation (S-MDAV), I-MDAV and plain noise.
"""

from math import ceil, sqrt
from pathlib import Path

import _common as common
from _common import Key, Line, Loss, Panel, Runs, Sentence, Study, show

EPSILONS = ("0.01", "0.1", "1", "10")
TABLE = Path(__file__).stem
MDAV, STABLE, INSENSITIVE, PLAIN = "MDAV", "S-MDAV", "I-MDAV", "plain noise"
FREE = ", not clamped"
ORDERS = ("reference", "lexicographic", "hilbert")
STYLE = {STABLE: "green", INSENSITIVE: "red", PLAIN: "black"}


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    if asked.sample:
        studies = [common.shipped(["age", "hours", "income", "tax"], rows=2_000)]
    else:
        revenue = ["RESREVENUE", "RESSALES", "TOTREVENUE", "TOTSALES"]
        studies = [
            common.reference("census", "Census", ["FEDTAX", "FICA", "INTVAL", "POTHVAL"]),
            common.reference("eia", "EIA", revenue),
        ]
    repeats = asked.runs or 3
    runs = {study.name: Runs(study) for study in studies}
    tables = {name: measured(some, asked.ks, repeats) for name, some in runs.items()}
    common.write_losses(asked.out / f"{TABLE}.csv", tables)
    plots = draw(asked.out, studies, tables, asked.ks)
    found = [s for study in studies for s in sentences(study, tables[study.name], asked.ks)]
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    page = text(
        studies,
        claims=runs[studies[0].name].claims,
        tables=tables,
        found=found,
        plots=plots,
        ks=asked.ks,
        repeats=repeats,
    )
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def measured(runs: Runs, ks: tuple[int, ...], repeats: int) -> dict[Key, Loss]:
    """All points, by the epsilon of the whole table.

    Every column is noised for epsilon / m, in all three methods alike. Where a reader takes
    epsilon to be a column's, the same points belong to m epsilon: so both are run.
    """
    points: dict[Key, Loss] = {}
    for k in ks:
        points[MDAV, "", k] = runs.loss(1, method="mdav", k=k)
        for order in ORDERS:
            points[_ordered(order), "", k] = runs.loss(1, method="insensitive", order=order, k=k)
    m = len(runs.study.bounds)
    for eps in sorted({*EPSILONS, *(times(eps, m) for eps in EPSILONS)}, key=float):
        whole = common.epsilon(eps)
        points[PLAIN, eps, None] = runs.loss(repeats, method="laplace", epsilon=whole)
        for k in ks:
            points[STABLE, eps, k] = runs.loss(
                repeats, method="stable-laplace", epsilon=whole / m, k=k, scale="from-data"
            )
            points[INSENSITIVE, eps, k] = runs.loss(
                repeats, method="insensitive-laplace", epsilon=whole, k=k
            )
    for eps in EPSILONS:
        points[f"{PLAIN}{FREE}", eps, None] = unclamped(runs.study, eps, None, repeats, "laplace")
        for k in ks:
            for name, method in ((STABLE, "stable-laplace"), (INSENSITIVE, "insensitive-laplace")):
                points[f"{name}{FREE}", eps, k] = unclamped(runs.study, eps, k, repeats, method)
    return points


def unclamped(study: Study, eps: str, k: int | None, repeats: int, method: str) -> Loss:
    """The same noise with room for it, so that nothing is cut off at the bounds.

    Both grouping methods then scale columns by the data, which a wider box does not change.
    """
    n, m = study.frame.height, len(study.bounds)
    touched = 1.0 if k is None else (2 if method == "stable-laplace" else n // k) / k
    room = ceil(25 * touched * m / float(eps)) + 1  # noise beyond 25 scales: once in 10^10 draws
    whole = common.epsilon(eps) * (2 * room + 1)
    more = {} if k is None else {"k": k, "scale": "from-data"}
    if method == "stable-laplace":
        whole /= m  # its epsilon is each column's
    return Runs(study.wide(room)).loss(repeats, method=method, epsilon=whole, **more)


def times(eps: str, m: int) -> str:
    """Epsilon for the table where each of m columns has the epsilon given."""
    return f"{common.epsilon(eps) * m:f}"


def _ordered(order: str) -> str:
    return f"I-MDAV, {order} order"


def draw(
    out: Path, studies: list[Study], tables: dict[str, dict[Key, Loss]], ks: tuple[int, ...]
) -> list[tuple[str, str]]:
    """Figures 4, 5 and 6; returns the files with their captions."""
    colours = dict(zip(ORDERS, ("red", "orange", "purple"), strict=True))
    panels = []
    for study in studies:
        points = tables[study.name]
        lines = [Line(MDAV, [(k, points[MDAV, "", k].il1s) for k in ks], "blue")]
        lines += [
            Line(name, [(k, points[name, "", k].il1s) for k in ks], colours[order])
            for order in ORDERS
            for name in [_ordered(order)]
        ]
        panels.append(Panel(f"{study.name}, no noise", lines, "IL1s"))
    plots = [(f"{TABLE}-fig4.svg", "IL1s against k without noise")]
    common.write_chart(out / plots[0][0], plots[0][1], panels)
    for number, study in enumerate(studies, 5):
        points = tables[study.name]
        for clamped, tail, words in (("", "", "clamped"), (FREE, "-free", "not clamped")):
            panels = []
            for eps in EPSILONS:
                lines = [
                    Line(
                        m, [(k, points[m + clamped, eps, k].il1s) for k in ks], STYLE[m], mark=True
                    )
                    for m in (STABLE, INSENSITIVE)
                ]
                plain = points[PLAIN + clamped, eps, None].il1s
                lines.append(common.level(PLAIN, plain, ks, STYLE[PLAIN], "7 4"))
                panels.append(Panel(f"{study.name}, epsilon {eps}, {words}", lines, "IL1s"))
            caption = f"IL1s against k with noise, {study.name}, values {words}"
            plots.append((f"{TABLE}-fig{number}{tail}.svg", caption))
            common.write_chart(out / plots[-1][0], caption, panels)
    return plots


def sentences(study: Study, points: dict[Key, Loss], ks: tuple[int, ...]) -> list[Sentence]:
    """The paper's sentences on the three figures, tested on one table."""
    grouped = {k: points[MDAV, "", k].il1s for k in ks}
    ratios = {o: [grouped[k] / points[_ordered(o), "", k].il1s for k in ks] for o in ORDERS}
    found = [
        Sentence(
            f"{study.name}: “the information loss of microaggregated datasets is less with MDAV "
            "as compared to I-MDAV”",
            "less at every k, for each order of I-MDAV",
            {f"order {o}": max(ratios[o]) < 1 for o in ORDERS},
            "; ".join(
                f"{o}: {show(min(ratios[o]))} to {show(max(ratios[o]))} times" for o in ORDERS
            ),
        )
    ]
    for tail, words in (("", "values clamped"), (FREE, "values not clamped")):
        found.append(_roots(study, points, ks, tail, words))
        found.append(_lowest(study, points, ks, tail, words))
        found.append(_at_two(study, points, tail, words))
    shares = {eps: [1 - grouped[k] / points[STABLE, eps, k].il1s for k in ks] for eps in EPSILONS}
    found.append(
        Sentence(
            f"{study.name}: “errors caused by random noise [...] dominate” those of "
            "microaggregation",
            "at every k, without the noise more than half of S-MDAV's IL1s is gone (values "
            "clamped)",
            {f"ε = {eps}": min(shares[eps]) > 0.5 for eps in EPSILONS},
            "share of the noise: "
            + "; ".join(
                f"ε = {eps}: {show(100 * min(shares[eps]))}% to {show(100 * max(shares[eps]))}%"
                for eps in EPSILONS
            ),
        )
    )
    return found


def _roots(
    study: Study, points: dict[Key, Loss], ks: tuple[int, ...], tail: str, words: str
) -> Sentence:
    root = sqrt(study.frame.height)
    starts = {eps: crossing(points, eps, ks, tail) for eps in EPSILONS}
    near = {
        f"ε = {eps}": start is not None and 0.8 * root <= start <= 1.25 * root
        for eps, start in starts.items()
    }
    return Sentence(
        f"{study.name}: “for every value of ε, I-MDAV is only able to achieve” less noise than "
        "plain noise “if k ≥ √n”",
        "the smallest k from which I-MDAV stays below plain noise lies between 0.8 and 1.25 times "
        f"√n = {root:.0f}; {words}",
        near if ks[0] < 0.8 * root and 1.25 * root < ks[-1] else {},
        "; ".join(
            f"ε = {eps}: " + (f"from k={start}" if start else f"not up to k={ks[-1]}")
            for eps, start in starts.items()
        ),
    )


def _lowest(
    study: Study, points: dict[Key, Loss], ks: tuple[int, ...], tail: str, words: str
) -> Sentence:
    outcome, numbers = {}, []
    tried = sum(k > 2 for k in ks)
    for eps in EPSILONS:
        own = {k: points[STABLE + tail, eps, k].il1s for k in ks}
        plain = points[PLAIN + tail, eps, None].il1s
        other = {k: points[INSENSITIVE + tail, eps, k].il1s for k in ks}
        lost = [k for k in ks if k > 2 and own[k] >= min(plain, other[k])]
        outcome[f"ε = {eps}"] = not lost
        last = ks[-1]
        numbers.append(
            f"ε = {eps}: lowest at {tried - len(lost)} of {tried} k"
            + (f", not at {_list(lost)}" if lost else "")
            + f"; at k={last} {show(own[last])}, {show(other[last])}, {show(plain)}"
        )
    return Sentence(
        f"{study.name}: “S-MDAV leads to less information loss for every value of ε as compared "
        "to I-MDAV and ε-DP”",
        f"below both at every k above 2, all three with ε / m a column; {words}",
        outcome,
        "; ".join(numbers) + " (S-MDAV, I-MDAV, plain noise)",
    )


def _at_two(study: Study, points: dict[Key, Loss], tail: str, words: str) -> Sentence:
    pairs = {
        eps: (points[PLAIN + tail, eps, None], points[STABLE + tail, eps, 2])
        for eps in EPSILONS
        if (STABLE + tail, eps, 2) in points
    }
    return Sentence(
        f"{study.name}: “when k ≥ 2, the addition of noise can always be reduced in comparison "
        "with directly applying” the mechanism",
        f"S-MDAV at k = 2 at least 5% below plain noise; {words}",
        {f"ε = {eps}": own.il1s < 0.95 * plain.il1s for eps, (plain, own) in pairs.items()},
        "; ".join(
            f"ε = {eps}: {show(own.il1s)} against {show(plain.il1s)}"
            for eps, (plain, own) in pairs.items()
        )
        + ". By the formula the scales are equal: 2Δ/(kε) = Δ/ε",
    )


def crossing(points: dict[Key, Loss], eps: str, ks: tuple[int, ...], tail: str) -> int | None:
    """The smallest k from which I-MDAV stays below plain noise."""
    plain = points[PLAIN + tail, eps, None].il1s
    below = [points[INSENSITIVE + tail, eps, k].il1s < plain for k in ks]
    if not below[-1]:
        return None
    start = len(ks) - 1
    while start > 0 and below[start - 1]:
        start -= 1
    return ks[start]


def _list(ks: list[int]) -> str:
    return "k=" + (", ".join(map(str, ks)) if len(ks) <= 6 else f"{ks[0]} to {ks[-1]}")


def text(
    studies: list[Study],
    *,
    claims: dict[str, tuple[str, ...]],
    tables: dict[str, dict[Key, Loss]],
    found: list[Sentence],
    plots: list[tuple[str, str]],
    ks: tuple[int, ...],
    repeats: int,
) -> str:
    """The page."""
    about = " and ".join(
        f"{s.name} ({', '.join(s.bounds)}; {s.frame.height:,} records)" for s in studies
    )
    values = len(ks)
    figures = "\n\n".join(f"![{caption}]({name})" for name, caption in plots)
    last = ks[-1]
    readings, floors = [], []
    for study in studies:
        points, m, n = tables[study.name], len(study.bounds), study.frame.height
        for eps in EPSILONS:
            more = times(eps, m)
            readings.append([
                study.name,
                eps,
                _margin(points, (eps, eps), ks),
                _margin(points, (more, more), ks),
                _margin(points, (more, eps), ks),
            ])  # fmt: skip
            least = common.floor(float(eps), n)
            best = min((points[STABLE, eps, k] for k in ks), key=lambda loss: loss.least_share)
            plain = points[PLAIN, eps, None].kept()
            below = "yes" if best.below(least) else "no"
            floors.append([study.name, eps, show(least), best.kept(), plain, below])
    by_reading = common.grid_table(
        ["table", "ε", "all: ε for the table", "all: ε for each column",
         "S-MDAV each column, others the table"],
        readings,
    )  # fmt: skip
    by_floor = common.grid_table(
        ["table", "ε", "floor", "S-MDAV", "plain noise", "S-MDAV below the floor"], floors
    )
    return f"""# Stable microaggregation and noise: Iftikhar et al. 2019{studies[0].note}

M. Iftikhar, Q. Wang and Y. Lin, “Publishing differentially private datasets via stable
microaggregation”, EDBT (2019). Figures 4, 5 and 6, on {about}, mean of {repeats} runs at each of
{values} values of k. {studies[0].origin} This page and its numbers are written by
`papers/{TABLE}.py`; noise has no seed, so that another run differs by chance.

{figures}

[All points]({TABLE}.csv), with standard deviations over runs.

## The paper's sentences

{common.tally(found)} Thresholds are ours where the paper has none.

{common.sentence_table(found)}

Values were clamped to the bounds, as the other two papers do and Shoal always does, and not
clamped. The paper does not say which it did. Clamped, all losses meet at a ceiling for small ε,
and which is lowest is chance there. Not clamped, the expected error of the noise alone is
proportional to its scale: Δ/ε for plain noise, g/k times that for I-MDAV with g = n/k groups, 2/k
times that for S-MDAV. So the crossing follows from the scales, up to chance and the error of
grouping; and at k = 2 S-MDAV has the noise of plain noise, with the error of grouping on top, so
that nothing can be won at k = 2. (For the runs without clamping the policy states a box with room
for the noise, and an epsilon larger in proportion, which leaves the scale of the noise as it is;
I-MDAV's order is then taken on columns scaled by the data.)

## Which epsilon

The paper does not say whether Δ is a column's width or the sum over columns. We ran all three
methods at the epsilon of the whole table, ε/m a column, as the other two papers count it; this is
what the figures show. If ε is meant for each column, the same curves belong to other labels. And
if S-MDAV takes ε for each column while the others divide it, S-MDAV gains a factor of m that is
not the method's. The table has IL1s of S-MDAV at k={last} over the lower of I-MDAV and plain
noise, and at how many k S-MDAV is lowest.

{by_reading}

## What was claimed, and what we ran

Definition 3.1 asks that at most two pairs of groups differ, in one record each; Algorithm 1
attains this by taking both neighbouring tables and grouping the second after the first. Given
that, the noise suffices, and Shoal states the claim as *conditional* on it. A release has one
table. Run on one table, Algorithm 1 forms the groups of MDAV, and the groups of MDAV on a
neighbour can be others throughout; `stable-laplace` has a pair of tables that shows it, and
states *refuted* for that reading. What we ran is MDAV on the table with noise of the paper's
scale; the paper's figures have one table each, and we take them to show the same. IL1s needs rows
that correspond: all releases are row-aligned.

{common.claim_table(claims)}

I-MDAV is `insensitive` and `insensitive-laplace`, in the figures with noise by the order
`reference`, which sorts by distance to the corner (0, ..., 0) of the public box. The exact total
order of the papers (Soria-Comas et al. 2014) is not in our copies; Figure 4 has all three orders
that Shoal offers. In its public order (`canonical`) I-MDAV's claim is proved; row-aligned, as
here, it is refuted. MDAV standardises columns by the data, with noise and without.

## The floor

A row-aligned release that is epsilon-private for the original records in every column, by a
method that treats all rows alike, loses in each column at least {common.FLOOR} of SST
([why](sanchez2014.md#the-floor)). It is a statement on squared errors, so that it has no line in
figures of IL1s. Here is SSE / SST of the column that kept most, with its standard error, ε being
the table's; for S-MDAV at its best k. Below the floor means by more than three standard errors.

{by_floor}

Where S-MDAV lies above the floor, the floor decides nothing, and the pair of tables does.
"""


def _margin(points: dict[Key, Loss], eps: tuple[str, str], ks: tuple[int, ...]) -> str:
    """How S-MDAV at one epsilon stands against the others at another."""
    own, other = eps
    rival = {k: min(points[PLAIN, other, None].il1s, points[INSENSITIVE, other, k].il1s)
             for k in ks}  # fmt: skip
    ratios = {k: points[STABLE, own, k].il1s / rival[k] for k in ks}
    lowest = sum(ratio < 1 for ratio in ratios.values())
    return f"{show(ratios[ks[-1]])}; {lowest} of {len(ks)}"


if __name__ == "__main__":
    main()

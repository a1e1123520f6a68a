"""Figures 2, 4, 5 and 6 of Iftikhar, Wang and Lin (2019).

What one changed record changes in the groups of MDAV, insensitive microaggregation (I-MDAV) and
stable microaggregation (S-MDAV). Then IL1s against k: MDAV and I-MDAV without noise; S-MDAV, I-MDAV
and plain noise.
"""

from math import sqrt
from pathlib import Path

import _common as common
import _stability as stability
import numpy as np
from _common import Floats, Key, Line, Loss, Panel, Runs, Study, show
from _stability import INSENSITIVE, MDAV, STABLE
from _stable_said import (
    COVERAGE,
    EPSILONS,
    FREE,
    PLAIN,
    PUBLISHED,
    Measured,
    ordered,
    sentences,
    times,
)

import shoal
from shoal.core import Partition
from shoal.partition import insensitive, mdav

TABLE = Path(__file__).stem
ORDERS = (PUBLISHED, "reference", "lexicographic", "hilbert")
STYLE = {STABLE: "green", INSENSITIVE: "red", PLAIN: "black"}
CHANGES = {"Census": 60, "EIA": 16}
"""One-record changes at each k."""


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
    ks = {s.name: asked.ks if asked.ks != common.KS else sizes(s.frame.height) for s in studies}
    runs = {study.name: Runs(study) for study in studies}
    tables = {name: measured(some, ks[name], repeats) for name, some in runs.items()}
    common.write_losses(asked.out / f"{TABLE}.csv", tables)
    at = tuple(k for k in stability.KS if k <= max(asked.ks))
    changes = [c for s in studies for c in stability.changed(s, at, CHANGES.get(s.name, 6))]
    common.write_rows(
        asked.out / f"{TABLE}-changes.csv", stability.HEADER, [change.row for change in changes]
    )
    stability.draw(asked.out / f"{TABLE}-fig2.svg", studies, changes, at)
    plots = draw(asked.out, studies, tables, ks)
    known = [Measured(s, tables[s.name], ks[s.name], scales(s)) for s in studies]
    found = sentences(known, changes, at)
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    page = text(
        studies,
        claims=runs[studies[0].name].claims,
        tables=tables,
        said=(common.tally(found), common.sentence_table(found)),
        changes=(stability.table(studies, changes, at), stability.medians(studies, changes, at)),
        plots=plots,
        ks=ks,
        repeats=repeats,
    )
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def sizes(n: int) -> tuple[int, ...]:
    """Values of k from the paper's 2 to 100, closer to each other around the root of n."""
    near = {round(share * sqrt(n)) for share in (0.8, 0.9, 1, 1.1, 1.25)}
    return tuple(sorted({2, 3, 4, 6, 10, 17, 25, 50, 75, 100} | near))


def measured(runs: Runs, ks: tuple[int, ...], repeats: int) -> dict[Key, Loss]:
    """All points, by the epsilon of the whole table.

    Every column is noised for epsilon / m, in all three methods alike. Where a reader takes
    epsilon to be a column's, the same points belong to m epsilon: so both are there.

    Clamped, at the four epsilons, they are releases. The others are the same groups with noise of
    the scale that the accounting of the releases has, drawn by Shoal in a box that has room for
    it, and divided by epsilon; cut off at the bounds or not.
    """
    points: dict[Key, Loss] = {}
    for k in ks:
        points[MDAV, "", k] = runs.loss(1, method="mdav", k=k)
        for order in ORDERS:
            points[ordered(order), "", k] = runs.loss(1, method="insensitive", order=order, k=k)
    m = len(runs.study.bounds)
    for eps in EPSILONS:
        whole = common.epsilon(eps)
        points[PLAIN, eps, None] = runs.loss(repeats, method="laplace", epsilon=whole)
        for k in ks:
            points[STABLE, eps, k] = runs.loss(
                repeats, method="stable-laplace", epsilon=whole / m, k=k, scale="from-data"
            )
            points[INSENSITIVE, eps, k] = runs.loss(
                repeats, method="insensitive-laplace", epsilon=whole, k=k, order=PUBLISHED
            )
    low, high = (np.array([pair[at] for pair in runs.study.bounds.values()]) for at in (0, 1))
    for name, k in ((PLAIN, None), *((name, k) for name in (STABLE, INSENSITIVE) for k in ks)):
        groups = None if k is None else grouped(runs.study, name, k)
        drawn = [unclamped(runs, name, groups) for _ in range(repeats)]
        for eps in EPSILONS:
            for share in (eps, times(eps, m)):
                made = [exact + noise / float(share) for exact, noise in drawn]
                points[name + FREE, share, k] = runs.losses(made)
                if share != eps:
                    points[name, share, k] = runs.losses(np.clip(Y, low, high) for Y in made)
    return points


def grouped(study: Study, name: str, k: int) -> Partition:
    """The groups of the releases."""
    X = study.matrix
    if name == STABLE:
        return mdav((X - X.mean(axis=0)) / X.std(axis=0), k)
    low, high = (np.array([pair[at] for pair in study.bounds.values()]) for at in (0, 1))
    return insensitive((X - low) / (high - low), k, order=PUBLISHED)


def unclamped(runs: Runs, name: str, groups: Partition | None) -> tuple[Floats, Floats]:
    """Every record's centroid and the noise on it at epsilon 1, ε / m a column, not cut off."""
    study, X = runs.study, runs.study.matrix
    m = X.shape[1]
    room = 25 * m + 1  # noise beyond 25 scales: once in 10^10 draws
    wide = Runs(study.wide(room), rng=runs.rng)
    noise = wide.released(method="laplace", epsilon=common.epsilon(2 * room + 1)) - X
    if groups is None:
        return X, noise
    means = np.column_stack([np.bincount(groups.labels, x) for x in X.T]) / groups.sizes[:, None]
    touched = 2 if name == STABLE else len(groups)
    mine = noise[: len(groups)] * (touched / groups.sizes)[:, None]
    return means[groups.labels], mine[groups.labels]


def scales(study: Study) -> dict[tuple[str, int | None, int], float]:
    """Scale of the noise on a mean of the first column, ε = 1 a column, by the accounting.

    By method, k and number of records: in widths Δ.
    """
    n, m = study.frame.height, len(study.bounds)
    found = {}
    for count in (n, n // 2):
        frame = study.frame.head(count)
        for method, k in (("laplace", None), *((name, k) for k in (2, 3, 10, 30, 100)
                          for name in ("stable-laplace", "insensitive-laplace"))):  # fmt: skip
            one = 1 if method == "stable-laplace" else m
            more = {} if k is None else {"k": k}
            policy = study.policy(method=method, epsilon=one, **more)
            loss = shoal.protect(frame, policy).privacy_losses[0]
            found[method, k, count] = float(loss.scale / (k or 1) / 2**20)
    return found


def draw(
    out: Path,
    studies: list[Study],
    tables: dict[str, dict[Key, Loss]],
    sizes: dict[str, tuple[int, ...]],
) -> list[tuple[str, str]]:
    """Figures 4, 5 and 6; returns the files with their captions."""
    colours = dict(zip(ORDERS, ("red", "orange", "purple", "grey"), strict=True))
    panels = []
    for study in studies:
        points, ks = tables[study.name], sizes[study.name]
        lines = [Line(MDAV, [(k, points[MDAV, "", k].il1s) for k in ks], "blue", mark=True)]
        for order, colour in colours.items():
            curve = [(k, points[ordered(order), "", k].il1s) for k in ks]
            lines.append(Line(ordered(order), curve, colour, mark=True))
        panels.append(Panel(f"{study.name}, no noise", lines, "IL1s"))
    plots = [(f"{TABLE}-fig4.svg", "IL1s against k without noise")]
    common.write_chart(out / plots[0][0], plots[0][1], panels)
    for number, study in enumerate(studies, 5):
        panels = [
            Panel(
                f"{study.name}, epsilon {eps}, {words}",
                _curves(study, tables, sizes, eps, tail),
                "IL1s",
            )
            for eps in EPSILONS
            for tail, words in ((FREE, "not clamped"), ("", "clamped"))
        ]
        caption = f"IL1s against k with noise on {study.name}"
        plots.append((f"{TABLE}-fig{number}.svg", caption))
        common.write_chart(out / plots[-1][0], caption, panels)
    return plots


def _curves(
    study: Study,
    tables: dict[str, dict[Key, Loss]],
    sizes: dict[str, tuple[int, ...]],
    eps: str,
    tail: str,
) -> list[Line]:
    points, ks, lines = tables[study.name], sizes[study.name], []
    for share, words, dash in (
        (eps, "ε for the table", ""),
        (times(eps, len(study.bounds)), "ε for each column", "6 4"),
    ):
        for name in (STABLE, INSENSITIVE):
            curve = [(k, points[name + tail, share, k].il1s) for k in ks]
            lines.append(Line(f"{name}, {words}", curve, STYLE[name], dash, mark=not dash))
        plain = points[PLAIN + tail, share, None].il1s
        lines.append(common.level(f"{PLAIN}, {words}", plain, ks, STYLE[PLAIN], dash))
    return lines


def text(
    studies: list[Study],
    *,
    claims: dict[str, tuple[str, ...]],
    tables: dict[str, dict[Key, Loss]],
    said: tuple[str, str],
    changes: tuple[str, str],
    plots: list[tuple[str, str]],
    ks: dict[str, tuple[int, ...]],
    repeats: int,
) -> str:
    """The page."""
    about = " and ".join(
        f"{s.name} ({', '.join(s.bounds)}; {s.frame.height:,} records)" for s in studies
    )
    values = len(ks[studies[0].name])
    figures = "\n\n".join(f"![{caption}]({name})" for name, caption in plots)
    tally, table = said
    return f"""# Stable microaggregation and noise: Iftikhar et al. 2019{studies[0].note}

M. Iftikhar, Q. Wang and Y. Lin, “Publishing differentially private datasets via stable
microaggregation”, EDBT (2019). Figures 2, 4, 5 and 6, on {about}, mean of {repeats} runs at each of
{values} values of k. {studies[0].origin} This page and its numbers are written by
`papers/{TABLE}.py`; noise has no seed, so another run differs by chance.
[Where to get the tables](data.md).

{common.list_methods(TABLE)}

## The paper's sentences

{tally} A sentence about both tables is one sentence; so is one whose curves were drawn with
values clamped and not clamped, or with ε for the table and for each column: those are cases and
readings of it. Thresholds are ours where the paper has none; they were fixed before the runs,
but for the readings that [the index](index.md#how-far-to-trust-the-verdicts) names.

{table}

## What one changed record changes

Definition 3.1 is the paper's central notion, and Figure 2 its reason: one record is changed, and
all groups of MDAV are others. Here it is measured. One record at a time takes the values of
another record, or a place drawn at random in the public box. MDAV groups each of the two tables
by itself; so does I-MDAV; S-MDAV is Algorithm 1, which takes both tables and groups the second
after the first. Columns are scaled by the standard deviations of the first table, for I-MDAV by
the public bounds, so no group changes because of the scale. Centroids are matched so that they
move least.

![Groups that differ after one change, and records in them, against k]({TABLE}-fig2.svg)

{changes[0]}

At the median MDAV changes {changes[1]}. I-MDAV changes many groups too, each by one record.
Algorithm 1 never changes more than two, by one record each. So the paper's analysis of all three is
right. A release has one table, though, and no pair: S-MDAV on one table is MDAV, and the rows of
MDAV are what a neighbour then sees. [All changes]({TABLE}-changes.csv).

## The figures

{figures}

[All points]({TABLE}.csv), with standard deviations over runs.

The paper does not say whether noisy values were clamped to the bounds. It adds noise and says no
more, so *not clamped* is the plain reading here; the other two papers clamp, and Shoal always does.
Clamped, all losses meet at a ceiling for small ε, and which is lowest is chance there. Not clamped,
the expected error of the noise alone is proportional to its scale: Δ/ε for plain noise, g/k times
that for I-MDAV with g = n/k groups, 2/k times that for S-MDAV. So the crossing follows from the
scales, up to chance and the error of grouping; and at k = 2 S-MDAV has the noise of plain noise.
Clamped with ε for the table, the points are releases; all others are the same groups with noise of
the scale in the releases' accounting, which Shoal drew in a box with room for it, divided by ε.

## Which epsilon

The paper does not say whether ε is for the whole table or for each column. Figures 5 and 6 have
both side by side: the whole table with ε/m a column, as the other two papers count it, and each
column with ε. If S-MDAV takes ε for each column while the others divide it, S-MDAV gains a factor
of m that is not the method's. The table has IL1s of S-MDAV at the largest k over the lower of
I-MDAV and plain noise, and at how many k S-MDAV is lowest; values are not clamped.

{_readings(studies, tables, ks)}

## In the paper, in Shoal

{common.coverage_table(COVERAGE)}

## What was claimed, and what we ran

Definition 3.1 asks that at most two pairs of groups differ, in one record each; Algorithm 1
attains this by taking both neighbouring tables and grouping the second after the first. Given
that, the noise suffices, and Shoal states the claim as *conditional* on it. A release has one
table. Run on one table, Algorithm 1 forms the groups of MDAV, and the groups of MDAV on a
neighbour are others to a large part, as measured above; `stable-laplace` has a pair of tables
that shows it, and states *refuted* for that reading. What we ran is MDAV on the table with noise
of the paper's scale; the paper's figures have one table each, and we take them to show the same.
IL1s needs rows that correspond: all releases are row-aligned.

{common.claim_table(claims)}

I-MDAV is `insensitive` and `insensitive-laplace` with `order = "corners"`: the k records nearest
to one corner of the public box, then the k of the others nearest to the corner farthest from it,
and so on. This is section 4.3 of Soria-Comas et al. (2014) as a public program has it; the
article itself is not among our copies. Figure 4 has the other orders that Shoal offers beside it.
In its public order (`canonical`) I-MDAV's claim is proved; row-aligned, as here, it is refuted.
MDAV standardises columns by the data, with noise and without.

## The floor

A row-aligned release that is epsilon-private for the original records in every column, by a
method that treats all rows alike, loses in each column at least {common.FLOOR} of SST
([why](sanchez2014.md#the-floor)). It is a statement on squared errors, so it has no line in
figures of IL1s. Here is SSE / SST of the column that kept most, with its standard error, ε being
the table's, values clamped; for S-MDAV at its best k. Below the floor means by more than three
standard errors.

{_floors(studies, tables, ks)}

Where S-MDAV lies above the floor, the floor decides nothing, and the pair of tables does.
"""


def _readings(
    studies: list[Study], tables: dict[str, dict[Key, Loss]], ks: dict[str, tuple[int, ...]]
) -> str:
    rows = []
    for study in studies:
        points, sizes = tables[study.name], ks[study.name]
        for eps in EPSILONS:
            more = times(eps, len(study.bounds))
            pairs = ((eps, eps), (more, more), (more, eps))
            rows.append([study.name, eps, *(_margin(points, pair, sizes) for pair in pairs)])
    header = ["table", "ε", "all: ε for the table", "all: ε for each column",
              "S-MDAV each column, others the table"]  # fmt: skip
    return common.grid_table(header, rows)


def _margin(points: dict[Key, Loss], eps: tuple[str, str], ks: tuple[int, ...]) -> str:
    """How S-MDAV at one epsilon stands against the others at another."""
    own, other = eps
    plain = points[PLAIN + FREE, other, None].il1s
    rival = {k: min(plain, points[INSENSITIVE + FREE, other, k].il1s) for k in ks}
    ratios = {k: points[STABLE + FREE, own, k].il1s / rival[k] for k in ks}
    lowest = sum(ratio < 1 for ratio in ratios.values())
    return f"{show(ratios[ks[-1]])}; {lowest} of {len(ks)}"


def _floors(
    studies: list[Study], tables: dict[str, dict[Key, Loss]], ks: dict[str, tuple[int, ...]]
) -> str:
    rows = []
    for study in studies:
        points = tables[study.name]
        for eps in EPSILONS:
            least = common.floor(float(eps), study.frame.height)
            best = min(
                (points[STABLE, eps, k] for k in ks[study.name]), key=lambda loss: loss.least_share
            )
            plain = points[PLAIN, eps, None].kept()
            below = "yes" if best.below(least) else "no"
            rows.append([study.name, eps, show(least), best.kept(), plain, below])
    header = ["table", "ε", "floor", "S-MDAV", "plain noise", "S-MDAV below the floor"]
    return common.grid_table(header, rows)


if __name__ == "__main__":
    main()

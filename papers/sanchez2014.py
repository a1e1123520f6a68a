"""Figure 1 of Sánchez, Domingo-Ferrer and Martínez (2014), and the histogram they wanted beside it.

SSE, divided by the number m of columns, against k: individual ranking with Laplace noise on the
block means, plain Laplace noise, plain individual ranking.
"""

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import Floats, Key, Line, Loss, Panel, Runs, Sentence, Study, show

import shoal

EPSILONS = ("0.1", "1", "10")
COLOUR = {"0.1": "red", "1": "blue", "10": "green"}
TABLE = Path(__file__).stem
QUERIES = 500


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    if asked.sample:
        study = common.shipped(["age", "hours"], rows=10_000)
    else:
        study = common.reference("adult", "Adult", ["age", "hours-per-week"])
    repeats = asked.runs or 5
    runs = Runs(study)
    points = measured(runs, asked.ks, repeats)
    common.write_losses(asked.out / f"{TABLE}.csv", {study.name: points})
    draw(asked.out / f"{TABLE}-sse.svg", study, points, asked.ks)
    found = sentences(points, asked.ks)
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    beside = compared(runs, asked.ks[-1], repeats)
    common.write_rows(asked.out / f"{TABLE}-histogram.csv", HISTOGRAM, beside)
    page = text(
        study,
        claims=runs.claims,
        points=points,
        found=found,
        beside=beside,
        ks=asked.ks,
        repeats=repeats,
    )
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def measured(runs: Runs, ks: tuple[int, ...], repeats: int) -> dict[Key, Loss]:
    """All points of the figure."""
    points: dict[Key, Loss] = {}
    for eps in EPSILONS:
        stated = common.epsilon(eps)
        points["plain Laplace", eps, None] = runs.loss(repeats, method="laplace", epsilon=stated)
        for k in ks:
            points["IR + Laplace", eps, k] = runs.loss(
                repeats, method="ir-laplace", epsilon=stated, k=k
            )
    for k in ks:
        points["plain IR", "", k] = runs.loss(1, method="individual-ranking", k=k)
    return points


def draw(path: Path, study: Study, points: dict[Key, Loss], ks: tuple[int, ...]) -> None:
    """Figure 1, with the floor."""
    X = study.matrix
    m, n = X.shape[1], len(X)
    total = float(((X - X.mean(axis=0)) ** 2).sum())
    lines = []
    for eps in EPSILONS:
        curve = [(k, points["IR + Laplace", eps, k].sse / m) for k in ks]
        lines.append(Line(f"IR + Laplace, epsilon {eps}", curve, COLOUR[eps], mark=True))
        plain = points["plain Laplace", eps, None].sse / m
        lines.append(common.level(f"plain Laplace, epsilon {eps}", plain, ks, COLOUR[eps], "7 4"))
        least = common.floor(float(eps), n)
        if least > 1e-6:
            value = least * total / m
            lines.append(common.level(f"floor, epsilon {eps}", value, ks, COLOUR[eps], "2 3"))
    ranked = [(k, points["plain IR", "", k].sse / m) for k in ks]
    lines.append(Line("plain individual ranking", ranked, "black", "10 3 2 3"))
    panel = Panel(f"{study.name}, {', '.join(study.bounds)}", lines, "SSE / m")
    common.write_chart(path, f"SSE against k on {study.name}", [panel])


def sentences(points: dict[Key, Loss], ks: tuple[int, ...]) -> list[Sentence]:
    """The paper's sentences on Figure 1, tested."""
    last, m = ks[-1], points["plain IR", "", ks[0]].columns
    ranked = {k: points["plain IR", "", k].sse / m for k in ks}
    plain = {eps: points["plain Laplace", eps, None].sse / m for eps in EPSILONS}
    noisy = {(eps, k): points["IR + Laplace", eps, k].sse / m for eps in EPSILONS for k in ks}
    most = max(ranked.values())
    steps = [(a, b) for a in ks for b in ks if b >= 1.5 * a]
    ratio, same = noisy["0.1", last] / plain["1"], noisy["0.1", last] / plain["10"]
    near = noisy["10", last] / ranked[last]
    return [
        Sentence(
            "Plain individual ranking “causes an information loss that grows with k”",
            "SSE at the largest k above SSE at the smallest, and no fall between neighbouring k "
            "of more than a tenth of the last value",
            common.once(
                ranked[last] > ranked[ks[0]]
                and all(ranked[a] - ranked[b] <= 0.1 * ranked[last] for a, b in pairwise(ks))
            ),
            f"SSE/m {show(ranked[ks[0]])} at k={ks[0]}, {show(ranked[last])} at k={last}",
        ),
        Sentence(
            "It is “negligible in comparison with the information loss caused by Laplace noise "
            "addition for most values of ε”",
            "at every k below 1% of plain Laplace's",
            {f"ε = {eps}": most < 0.01 * plain[eps] for eps in EPSILONS},
            "; ".join(
                f"ε = {eps}: at most {show(100 * most / plain[eps])}% of {show(plain[eps])}"
                for eps in EPSILONS
            ),
        ),
        Sentence(
            "“already for k > 1, our approach significantly reduces the noise required”",
            f"SSE at k={ks[0]} at least a tenth below plain Laplace's",
            {f"ε = {eps}": noisy[eps, ks[0]] <= 0.9 * plain[eps] for eps in EPSILONS},
            "; ".join(
                f"ε = {eps}: {show(noisy[eps, ks[0]])} against {show(plain[eps])}, "
                f"{show(100 * (1 - noisy[eps, ks[0]] / plain[eps]))}% less"
                for eps in EPSILONS
            )
            + ". The noise itself has half the scale for every ε; where bounds cut it off, SSE "
            "hardly shows it",
        ),
        Sentence(
            "For ε = 0.1, “for k = 100 the reduction of information loss almost equals that of "
            "1.0-differential privacy with plain Laplacian noise”",
            f"SSE of IR + Laplace at ε = 0.1, k={last} at or below plain Laplace's at ε = 1",
            common.once(ratio <= 1),
            f"{show(noisy['0.1', last])} against {show(plain['1'])} (ratio {show(ratio)}). It "
            f"meets plain Laplace at ε = 10: {show(plain['10'])} (ratio {show(same)}), as the "
            "scales of section 5 say for k = 100: m Δ / (k ε) is m Δ / 10 in both",
        ),
        Sentence(
            "For ε = 10 and larger k, “SSE stays more constant and almost as low as the SSE "
            "achieved by the individual ranking alone”",
            f"at k={last} within a factor of 2 of plain individual ranking",
            common.once(near <= 2),
            f"{show(noisy['10', last])} against {show(ranked[last])}: factor {show(near)}; at "
            f"k={ks[0]} factor {show(noisy['10', ks[0]] / max(ranked[ks[0]], 1e-12))}",
        ),
        Sentence(
            "“for ε = 1.0, a more linear decrease is achieved as the k values grow”",
            "SSE at ε = 1 falls whenever k grows by half or more",
            common.once(all(noisy["1", a] > noisy["1", b] for a, b in steps)),
            f"{show(noisy['1', ks[0]])} at k={ks[0]}, {show(noisy['1', last])} at k={last}; falls "
            f"in {sum(noisy['1', a] > noisy['1', b] for a, b in steps)} of {len(steps)} pairs of k",
        ),
    ]


# The comparison that the paper leaves for later: histogram releases, by what all releases have in
# common. Rows of a histogram are nobody's, so that loss is measured without looking at rows.

HISTOGRAM = ("release", "epsilon", "rank_sse_over_sst", "count_half", "count_fifth", "status")


def compared(runs: Runs, k: int, repeats: int) -> list[tuple[Any, ...]]:
    """Losses that need no correspondence of rows, mean over runs."""
    study = runs.study
    X = study.matrix
    rng = np.random.default_rng(common.SEED)
    workloads = [boxes(X, share, rng) for share in (0.5, 0.2)]
    large = max(2, min(1000, len(X) // 10))
    releases = {
        "plain Laplace": ("laplace", "row-aligned", {}),
        f"IR + Laplace, k={k}, table": ("ir-laplace", "row-aligned", {"k": k}),
        f"IR + Laplace, k={k}, column-shuffled": ("ir-laplace", "column-shuffled", {"k": k}),
        f"INS, k={large}": ("insensitive-laplace", "canonical", {"k": large}),
    }
    rows: list[tuple[Any, ...]] = []
    for eps in EPSILONS:
        for label, (method, form, more) in releases.items():
            policy = study.policy(
                method=method, epsilon=common.epsilon(eps), release_form=form, **more
            )
            made = [shoal.protect(study.frame, policy) for _ in range(repeats)]
            status = str(made[0].claims[0].status)
            tables = [np.asarray(release.data.to_numpy(), dtype=float) for release in made]
            rows.append((label, eps, *summary(X, tables, workloads), status))
        side = cells(len(X), float(eps))
        tables = [noisy_grid(study, Decimal(eps), side, rng) for _ in range(repeats)]
        label = f"noisy grid, {side} x {side} cells"
        rows.append((label, eps, *summary(X, tables, workloads), "proved (below)"))
    return rows


def cells(n: int, eps: float) -> int:
    """Cells a side: sqrt(n (epsilon / 2) / 10), the rule of Li, Yang and Qardaji (2013).

    Their epsilon is for a record that is there or not; changing one costs twice that.
    """
    return max(2, round((n * eps / 2 / 10) ** 0.5))


def noisy_grid(study: Study, eps: Decimal, side: int, rng: np.random.Generator) -> Floats:
    """Records drawn from noisy counts of equal cells of the public box.

    The noise is had through the public interface: the counts are the one column of a table
    whose rows are cells, and `laplace` adds noise of scale width / epsilon' to each. With
    bounds of -2^15 and 2^15 the width is 2^16, the counts lie exactly on the grid of 2^20 steps,
    and epsilon' = 2^16 epsilon / 2 makes the scale 2 / epsilon. Changing one record of the
    people moves at most two counts, by one each, so that the counts cost epsilon (change-one
    neighbours, n public). What follows is post-processing: the nearest counts that are not
    negative and add up to n, rounded, and records spread evenly over their cells.
    """
    X = study.matrix
    low, high = (np.array([pair[at] for pair in study.bounds.values()]) for at in (0, 1))
    width = (high - low) / side
    places = np.clip(((X - low) // width).astype(int), 0, side - 1)
    shape = (side,) * X.shape[1]
    flat = np.ravel_multi_index(tuple(places.T), shape)
    counts = np.bincount(flat, minlength=side ** X.shape[1])
    reach = 2**15
    if len(X) > reach:
        raise ValueError(f"Counts of {len(X)} records do not fit in bounds of {reach}.")
    policy = {
        "version": 1,
        "columns": {
            "count": {"role": "confidential", "kind": "numeric", "bounds": [-reach, reach]}
        },
        "protect": {"method": "laplace", "epsilon": eps * reach},
    }
    release = shoal.protect(pl.DataFrame({"count": counts}), policy, keep_order=True)
    noisy = release.data["count"].to_numpy()
    kept = rounded(nearest(noisy, len(X)), len(X))
    corner = np.column_stack(np.unravel_index(np.repeat(np.arange(kept.size), kept), shape))
    return low + (corner + rng.random(corner.shape)) * width


def nearest(values: Floats, total: float) -> Floats:
    """The nearest point, in squares, with no negative part and this total."""
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    cut = over[np.flatnonzero(ordered > over)[-1]]
    return np.maximum(values - cut, 0.0)


def rounded(values: Floats, total: int) -> Any:
    """Whole numbers with this total, by largest remainders."""
    whole = np.floor(values).astype(int)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - values, kind="stable")[:missing]] += 1
    return whole


def boxes(X: Floats, share: float, rng: np.random.Generator) -> Any:
    """Random ranges that span a share of each column's range, as low and high corners."""
    least, most = X.min(axis=0), X.max(axis=0)
    span = share * (most - least)
    low = least + rng.random((QUERIES, X.shape[1])) * (most - least - span)
    return low, low + span


def answers(records: Floats, ranges: Any) -> Floats:
    """How many records lie in each range."""
    low, high = ranges
    return np.array([
        ((records >= a) & (records <= b)).all(axis=1).sum() for a, b in zip(low, high, strict=True)
    ])  # fmt: skip


def summary(X: Floats, tables: list[Floats], workloads: list[Any]) -> tuple[float, ...]:
    """Rank-matched SSE / SST (mean over columns), then median relative errors of the counts."""
    ordered = np.sort(X, axis=0)
    spread = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    ranks = [
        float((((ordered - np.sort(Y, axis=0)) ** 2).sum(axis=0) / spread).mean()) for Y in tables
    ]
    found = [float(np.mean(ranks))]
    for ranges in workloads:
        truth = answers(X, ranges)
        asked = truth > 0
        errors = [
            float(np.median(np.abs(answers(Y, ranges) - truth)[asked] / truth[asked]))
            for Y in tables
        ]
        found.append(float(np.mean(errors)))
    return tuple(found)


def text(
    study: Study,
    *,
    claims: dict[str, tuple[str, ...]],
    points: dict[Key, Loss],
    found: list[Sentence],
    beside: list[tuple[Any, ...]],
    ks: tuple[int, ...],
    repeats: int,
) -> str:
    """The page."""
    n, last, columns = study.frame.height, ks[-1], ", ".join(study.bounds)
    rows = []
    for eps in EPSILONS:
        least = common.floor(float(eps), n)
        below = [k for k in ks if points["IR + Laplace", eps, k].below(least)]
        rows.append([
            eps,
            show(least),
            points["plain Laplace", eps, None].kept(),
            points["IR + Laplace", eps, last].kept(),
            f"from k={below[0]}" if below else "nowhere",
        ])  # fmt: skip
    floors = common.grid_table(
        [
            "epsilon",
            "floor",
            "plain Laplace",
            f"IR + Laplace, k={last}",
            "IR + Laplace below the floor",
        ],
        rows,
    )
    histogram = common.grid_table(
        ["epsilon", "release", "rank SSE/SST", "COUNT, halves", "COUNT, fifths", "claim"],
        [[row[1], row[0], *(show(value) for value in row[2:5]), row[5]] for row in beside],
    )
    return f"""# Individual ranking and noise: Sánchez et al. 2014{study.note}

D. Sánchez, J. Domingo-Ferrer and S. Martínez, “Improving the utility of differential privacy via
univariate microaggregation”, Privacy in Statistical Databases (2014). Figure 1, on {study.name}
({columns}; {n:,} records), mean of {repeats} runs at each of {len(ks)} values of k.
{study.origin} This page and its numbers are written by `papers/{TABLE}.py`; noise has no seed, so
that another run differs by chance.

![SSE divided by m against k, logarithmic, for epsilon 0.1, 1 and 10]({TABLE}-sse.svg)

[All points]({TABLE}.csv), with standard deviations over runs.

## The paper's sentences

{common.tally(found)} Thresholds are ours where the paper has words such as “almost”.

{common.sentence_table(found)}

## What was claimed, and what we ran

The paper shows (Lemma 1) that the sorted block means of a column move by at most Δ/k in all when
one record changes. We agree, and prove it again beside the code. Lemma 4 then says that the table
has the price of its columns together. That holds for the noisy block means as lists, one for each
column, with nothing that says which row has which block: release form `column-shuffled`. For the
table it does not hold, because a table also shows which records share a block, and that part
carries no noise; `ir-laplace` has a pair of tables that shows it. SSE compares row i with row i,
so the figure can only be drawn for the table: this is what the paper plots, and what we ran. Read
the curves as the loss of the published method, not as the price of epsilon.

{common.claim_table(claims)}

“Proved” is said of the bounds as stated, taken as public.

## The floor

A row-aligned release that is epsilon-private for the original records in every column, by a
method that treats all rows alike, loses in each column at least

{common.FLOOR} of SST, in expectation.

The reason: exchanging two rows changes two records, so that the tables with row i's and row j's
values exchanged look alike up to 2ε, for every pair of rows, and the squared differences of all
pairs add up to n SST. The proof is ours and unreviewed. Dotted lines show the floor; for ε = 10
it is too small to draw. Where a curve lies below its floor, the release is not ε-private for the
original records as a row-aligned table. Nothing follows for the lists of block means, for which
ε is proved. The table has SSE / SST of the column that kept most, with its standard error; below
the floor means by more than three of these.

{floors}

## Histograms beside it

The paper plans to compare with histogram releases. Their rows are nobody's, so that SSE row by
row does not exist for them; two measures that need no rows do. *Rank SSE/SST* compares the sorted
columns (mean over columns); 1 is as bad as publishing the mean. *COUNT* is the median relative
error of {QUERIES} counting queries over ranges that span half, or a fifth, of each column's
range, where the true answer is not 0. Mean of {repeats} runs.

{histogram}

The noisy grid counts records in equal cells of the public box, adds discrete Laplace noise of
scale 2/ε to the counts (changing one record moves two counts by one, so that this costs ε; n is
public), takes the nearest counts that are not negative and add up to n, and spreads records
evenly over their cells. Cells a side: √(n (ε/2) / 10), after Li, Yang and Qardaji (2013), with
half of ε because one record changed is one gone and one come. `column-shuffled` says nothing about
how columns go together, so its COUNT errors are those of independent columns. Private trees will
join this table once Shoal has them. [The table as CSV]({TABLE}-histogram.csv).
"""


if __name__ == "__main__":
    main()

"""Figure 1 of Sánchez, Domingo-Ferrer and Martínez (2014), and the comparison that they plan.

SSE, divided by the number m of columns, against k: individual ranking with Laplace noise on the
block means, plain Laplace noise, plain individual ranking. Then releases without rows to compare,
another table, and nominal columns.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _beside as beside
import _categories as categories
import _common as common
from _common import Key, Line, Loss, Panel, Runs, Sentence, Study, show
from _ranking import COVERAGE, EPSILONS, Facts, figure_sentences, text_sentences

COLOUR = {"0.1": "red", "1": "blue", "10": "green"}
TABLE = Path(__file__).stem
KS = (2, 3, 4, 6, 8, 11, 15, 20, 30, 40, 50, 60, 80, 100)
"""Group sizes between the paper's 2 and 100."""

Nominal = dict[tuple[str, str, int | None], categories.Loss]


def main() -> None:
    """Run, and write the page, the tables and the plots."""
    asked = common.options(__doc__)
    ks = KS if asked.ks == common.KS else asked.ks
    if asked.sample:
        studies = [common.shipped(["age", "hours"], rows=2_000)]
        nominal = categories.shipped()
    else:
        columns = ["FEDTAX", "FICA", "INTVAL", "POTHVAL"]
        studies = [
            common.reference("adult", "Adult", ["age", "hours-per-week"]),
            common.reference("census", "Census", columns),
        ]
        nominal = categories.adult()
    repeats = asked.runs or 5
    runs = [Runs(study) for study in studies]
    tables = {some.study.name: measured(some, ks, repeats) for some in runs}
    if ks == KS:
        # Individual ranking alone is asked at every k.
        tables[studies[0].name] |= ranked(runs[0], range(ks[0], ks[-1] + 1))
    common.write_losses(asked.out / f"{TABLE}.csv", tables)
    for study in studies:
        draw(asked.out / f"{TABLE}-{_file(study)}.svg", study, tables[study.name], ks)
    facts = Facts(studies[0], ks, repeats)
    found = figure_sentences(tables[studies[0].name], ks, facts) + text_sentences(facts)
    common.write_sentences(asked.out / f"{TABLE}-sentences.csv", found)
    rows = [row for s in studies for row in beside.compared(s, ks[-1], EPSILONS, 2 * repeats)]
    common.write_rows(asked.out / f"{TABLE}-beside.csv", beside.HEADER, rows)
    sizes = tuple(k for k in categories.KS if k <= ks[-1])
    losses = categories.measured(*nominal, sizes, EPSILONS, min(repeats, 2))
    draw_nominal(asked.out / f"{TABLE}-nominal.svg", losses, sizes)
    header = ("order", "epsilon", "k", "sse_of_path_lengths", "variation", "status")
    points = [(*key, v.sse, v.variation, v.status) for key, v in losses.items()]
    common.write_rows(asked.out / f"{TABLE}-nominal.csv", header, points)
    page = text(
        studies,
        claims=runs[0].claims,
        tables=tables,
        found=found,
        rows=rows,
        nominal=(losses, sizes, list(nominal[1]), nominal[0].height),
        ks=ks,
        repeats=repeats,
    )
    (asked.out / f"{TABLE}.md").write_text(page, encoding="utf-8")


def _file(study: Study) -> str:
    return "sse" if study.name in {"Adult", common.SAMPLE} else f"sse-{study.name.lower()}"


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
    return points | ranked(runs, ks)


def ranked(runs: Runs, ks: Sequence[int]) -> dict[Key, Loss]:
    """Individual ranking alone."""
    return {("plain IR", "", k): runs.loss(1, method="individual-ranking", k=k) for k in ks}


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
    alone = [(k, loss.sse / m) for (name, _, k), loss in points.items() if name == "plain IR" and k]
    lines.append(Line("plain individual ranking", sorted(alone), "black", "10 3 2 3"))
    panel = Panel(f"{study.name}, {', '.join(study.bounds)}", lines, "SSE / m")
    common.write_chart(path, f"SSE against k on {study.name}", [panel])


def draw_nominal(path: Path, losses: Nominal, ks: tuple[int, ...]) -> None:
    """SSE of path lengths against k, a panel for each epsilon."""
    styles = {categories.ALPHABET: "red", categories.WALK: "blue", categories.MARGINAL: "green"}
    panels = []
    for eps in EPSILONS:
        lines = [
            Line(order, [(k, losses[order, eps, k].sse) for k in ks], colour, mark=True)
            for order, colour in styles.items()
        ]
        ranked = [(k, losses[categories.RANKED, "", k].sse) for k in ks]
        lines.append(Line(categories.RANKED, ranked, "black", "10 3 2 3"))
        plain = losses[categories.PLAIN, eps, None].sse
        lines.append(common.level(categories.PLAIN, plain, ks, "grey", "7 4"))
        panels.append(Panel(f"epsilon {eps}", lines, "SSE of path lengths / m"))
    common.write_chart(path, "SSE of path lengths against k", panels)


def text(
    studies: Sequence[Study],
    *,
    claims: dict[str, tuple[str, ...]],
    tables: dict[str, dict[Key, Loss]],
    found: list[Sentence],
    rows: list[tuple[Any, ...]],
    nominal: tuple[Nominal, tuple[int, ...], list[str], int],
    ks: tuple[int, ...],
    repeats: int,
) -> str:
    """The page."""
    study = studies[0]
    about = " and ".join(
        f"{s.name} ({', '.join(s.bounds)}; {s.frame.height:,} records)" for s in studies
    )
    figures = "\n\n".join(
        f"![SSE divided by m against k on {s.name}, logarithmic, for epsilon 0.1, 1 and 10]"
        f"({TABLE}-{_file(s)}.svg)"
        for s in studies
    )
    return f"""# Individual ranking and noise: Sánchez et al. 2014{study.note}

D. Sánchez, J. Domingo-Ferrer and S. Martínez, “Improving the utility of differential privacy via
univariate microaggregation”, Privacy in Statistical Databases (2014). Figure 1, on {about}, mean of
{repeats} runs at each of {len(ks)} values of k. The paper has Adult; it plans other tables.
{study.origin} This page and its numbers are written by `papers/{TABLE}.py`; noise has no seed, so
another run differs by chance. [Where to get the tables](data.md).

{common.list_methods(TABLE)}

{figures}

[All points]({TABLE}.csv), with standard deviations over runs.

## The paper's sentences

{common.tally(found)} All are tested on {study.name}. Thresholds are ours where the paper has words
such as “almost”; they were fixed before the runs,
but for the readings that [the index](index.md#how-far-to-trust-the-verdicts) names.

{common.sentence_table(found)}

## In the paper, in Shoal

{common.coverage_table(COVERAGE)}

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

The reason: exchanging two rows changes two records, so the tables with row i's and row j's
values exchanged look alike up to 2ε, for every pair of rows, and the squared differences of all
pairs add up to n SST. The proof is ours and unreviewed. Dotted lines show the floor; for ε = 10
it is too small to draw. Where a curve lies below its floor, the release is not ε-private for the
original records as a row-aligned table. Nothing follows for the lists of block means, for which
ε is proved. The table has SSE / SST of the column that kept most, with its standard error; below
the floor means by more than three of these.

{_floors(studies, tables, ks)}

## The comparison that the paper plans

The paper plans to compare with histogram releases, “even if that means restricting the utility to
specific tasks (e.g. counting queries)”. Their rows are nobody's, so SSE row by row does not exist
for them; two measures that need no rows do. *Rank SSE/SST* compares the sorted columns (mean over
columns); 1 is as bad as publishing the mean. *COUNT* is the median relative error of
{beside.QUERIES} counting queries over ranges that span half, or a fifth, of each column's range,
where the true answer is not 0. Mean of {2 * repeats} runs.

{_beside(rows)}

`lists` is the release form `column-shuffled`: it says nothing about how columns go together, so its
COUNT errors are those of independent columns. INS is insensitive microaggregation. The trees
and the drawn tables are Shoal's methods `dp-quadtree`, `dp-kdtree`, `privtree`, `copula`, `maxent`
and `auto` as they come, with epsilon and no other parameter. The noisy grid counts records in equal
cells of the public box, adds discrete Laplace noise of scale 2/ε to the counts (changing one record
moves two counts by one, so this costs ε; n is public), takes the nearest counts that are not
negative and add up to n, and spreads records evenly over their cells. Cells a side:
√(n (ε/2) / 10), after Li, Yang and Qardaji (2013), with half of ε because one record changed is one
gone and one come.
[The table as CSV]({TABLE}-beside.csv).

## Categories

{_categories(nominal)}
"""


def _floors(
    studies: Sequence[Study], tables: dict[str, dict[Key, Loss]], ks: tuple[int, ...]
) -> str:
    rows = []
    for study in studies:
        points = tables[study.name]
        for eps in EPSILONS:
            least = common.floor(float(eps), study.frame.height)
            below = [k for k in ks if points["IR + Laplace", eps, k].below(least)]
            rows.append([
                study.name, eps, show(least), points["plain Laplace", eps, None].kept(),
                points["IR + Laplace", eps, ks[-1]].kept(),
                "at k=" + ", ".join(map(str, below)) if below else "nowhere",
            ])  # fmt: skip
    header = ["table", "epsilon", "floor", "plain Laplace", f"IR + Laplace, k={ks[-1]}",
              "IR + Laplace below the floor"]  # fmt: skip
    return common.grid_table(header, rows)


def _beside(rows: list[tuple[Any, ...]]) -> str:
    header = ["table", "epsilon", "release", "rank SSE/SST", "COUNT, halves", "COUNT, fifths",
              "claim"]  # fmt: skip
    shown = [[r[0], r[2], r[1], *(show(value) for value in r[3:6]), r[6]] for r in rows]
    return common.grid_table(header, shown)


def _categories(nominal: tuple[Nominal, tuple[int, ...], list[str], int]) -> str:
    losses, sizes, columns, n = nominal
    orders = (categories.ALPHABET, categories.WALK, categories.MARGINAL)
    rows = []
    for eps in EPSILONS:
        for name, k in ((categories.PLAIN, None), *((o, k) for o in orders for k in sizes[-2:])):
            loss = losses[name, eps, k]
            where = "every cell" if k is None else f"k={k}"
            rows.append([eps, name, where, show(loss.sse), show(100 * loss.variation) + "%",
                         loss.status])  # fmt: skip
    header = ["epsilon", "order", "groups", "SSE of path lengths / m", "shares off by", "claim"]
    best = {
        (eps, k): min(orders, key=lambda order: losses[order, eps, k].sse)
        for eps in EPSILONS
        for k in sizes
    }
    wins = {order: sum(name == order for name in best.values()) for order in orders}
    return f"""“Categorical attributes take values from a finite set of, usually, non-ordinal
categories. Hence, appropriate operators to compare, sort, microaggregate and randomize the outputs
should be defined”: here they are, on {" and ".join(columns)} ({n:,} records). Categories are
*compared* by path length in a hierarchy that the policy states. They are *sorted* by semantic
marginality, the sum of a category's path lengths to all others, from the most central one
(`nominal_order = "marginality"`), or in the order in which the policy declares them. They are
*microaggregated* as places in that order, and the mean place is *randomised* as a number. The order
is public: it follows from the hierarchy and not from the table. So Lemma 1 applies to the column of
places, and the lists of noisy categories have the claim of the numbers (the proof is beside the
code). Marginality with the counts of the table, as it was published for k-anonymity, is read off
the data; `ir-laplace` does not use it.

![SSE of path lengths against k, for epsilon 0.1, 1 and 10]({TABLE}-nominal.svg)

SSE is the paper's, with path length as the distance, row by row. *Shares off by* is the total
variation between the shares of the categories before and after, mean over columns. Mean of at most
two runs; the claim is that of the lists, for plain noise that of the table.

{common.grid_table(header, rows)}

The order with the least SSE: {"; ".join(f"{name} in {count}" for name, count in wins.items())} of
{len(best)} pairs of ε and k. Equally marginal categories can lie far apart in the hierarchy, and a
noisy place then takes one for the other; an order along the hierarchy keeps relatives together.
Both are public, and both have the proof. [All points as CSV]({TABLE}-nominal.csv)."""


if __name__ == "__main__":
    main()

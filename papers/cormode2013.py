"""Figures 1 to 6 of Cormode, Procopiuc, Shen, Srivastava and Yu (2013).

Trees of boxes with counts under k-anonymity, l-diversity, a rule after t-closeness and differential
privacy: what they tell about groups (COUNT queries) and about persons (naive Bayes), each by itself
and all in one plot, with our own methods; then over height and size of the table.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _common as common
import _plots as plots
from _attacked import FEW, HEADER, QUERIES, Asked, Mark, cells, marks
from _common import DATA, PAGES
from _plots import Axes, Curve
from _said import Evidence, sentences
from _trees import (
    CHOICES,
    FIGURES,
    HALTED,
    KD,
    OWN,
    OWN_K,
    QUAD,
    RUNS,
    K,
    L,
    Study,
    Tree,
    adult,
    census,
    figure,
    made,
    sample,
)

TABLE = Path(__file__).stem
ORDERED, EQUAL = HALTED["ordered"], HALTED["equal"]
STYLE: dict[str, tuple[str, str, str]] = {
    K: ("blue", "circle", ""),
    L: ("orange", "square", ""),
    ORDERED: ("green", "diamond", ""),
    EQUAL: ("green", "diamond", "4 3"),
    KD: ("red", "triangle", ""),
    QUAD: ("purple", "triangle", ""),
}
SPARE = (("black", "circle"), ("grey", "square"), ("black", "triangle"), ("grey", "diamond"))
"""For our own methods, in turn; dashed."""
ERROR = "median relative error, %"
INCREASE = "increase in accuracy, %"


@dataclass(frozen=True)
class Measured:
    """A table with every tree and mark."""

    study: Study
    trees: Sequence[Tree]
    marks: Sequence[Mark]

    def of(self, number: int, model: str) -> list[Mark]:
        """The marks of a curve."""
        return [mark for mark in self.marks if (mark.figure, mark.model) == (number, model)]


def main() -> None:
    """Make and measure the releases of all figures, and write plots, tables and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", action="store_true", help="use the shipped sample alone")
    parser.add_argument("--rows", type=int, default=100_000, help="of each table at most")
    parser.add_argument("--runs", type=int, default=RUNS, help="of a release with noise")
    parser.add_argument("--cache", type=Path, help="folder for the releases as Parquet files")
    parser.add_argument("--out", type=Path, help="folder for the page, plots and tables")
    asked = parser.parse_args()
    use_sample = asked.sample or not (DATA / "adult.csv").is_file()
    out = asked.out or (PAGES / "sample" if use_sample else PAGES)
    out.mkdir(parents=True, exist_ok=True)
    tables = [
        measured(study, asked.runs, asked.cache)
        for study in (sample(asked.rows) if use_sample else adult(), census(rows=asked.rows))
    ]
    rows = [cells(table.study.name, mark) for table in tables for mark in table.marks]
    common.write_rows(out / f"{TABLE}.csv", HEADER, rows)
    header = ["table", "figure", "model", "parameter", "percent", "run", "boxes", *FIGURES]
    listed = [_cells(table.study, tree) for table in tables for tree in table.trees]
    common.write_rows(out / f"{TABLE}-releases.csv", header, listed)
    draw(out, tables)
    found = sentences([_evidence(table) for table in tables])
    common.write_sentences(out / f"{TABLE}-sentences.csv", found)
    (out / f"{TABLE}.md").write_text(page(tables, found, asked.runs), encoding="utf-8")


def measured(study: Study, runs: int, cache: Path | None) -> Measured:
    """Make and measure everything about a table."""
    points = [point for number in range(1, 7) for point in figure(study, number, runs=runs)]
    trees = list(made(study, points, cache=cache))
    return Measured(study, trees, marks(study, trees))


def _evidence(table: Measured) -> Evidence:
    beyond = {
        distance: tree.achieved[f"t ({distance})"]
        for distance, model in HALTED.items()
        for tree in table.trees
        if tree.point.model == model and tree.point.parameter == "t = 0.35"
    }
    asked = Asked.of(table.study)
    shares = {axes: asked.selectivity(axes) for axes in range(2, asked.places.shape[1] + 1)}
    return Evidence(table.study, table.marks, shares, beyond)


def _cells(study: Study, tree: Tree) -> list[Any]:
    point = tree.point
    figures = [tree.achieved.get(name, "") for name in FIGURES]
    named = [study.name, point.figure, point.model, point.parameter, point.percent, point.run]
    return [*named, len(tree.boxes), *figures]


# The plots.


def draw(out: Path, tables: Sequence[Measured]) -> None:
    """Write the six figures."""
    single = {
        1: ("k", [K], True, "Impact of k on k-anonymity"),
        2: ("l", [L], False, "Impact of l on l-diversity"),
        3: ("t", [ORDERED, EQUAL], False, "Impact of t, nodes beyond it are not cut"),
        4: ("epsilon", [KD, QUAD], True, "Impact of epsilon on private trees"),
    }
    for number, (name, models, log, title) in single.items():
        panels = []
        for utility in (True, False):
            for table in tables:
                curves = [_over(table, number, model, utility=utility) for model in models]
                if not utility:
                    curves.append(_frequent(table, [x for x, _ in curves[0].points]))
                stops = sorted({x for curve in curves for x, _ in curve.points}) if log else ()
                words = ERROR if utility else INCREASE
                panels.append(Axes(table.study.name, curves, name, words, log, stops))
        plots.write(out / f"{TABLE}-fig{number}.svg", f"Figure {number}: {title}", panels)
    write_five(out / f"{TABLE}-fig5.svg", tables)
    write_six(out / f"{TABLE}-fig6.svg", tables)


def _over(table: Measured, number: int, model: str, *, utility: bool) -> Curve:
    rho = table.study.rho
    found = table.of(number, model)
    colour, mark, dash = STYLE[model]
    if utility:
        points = [(m.value, 100 * m.error) for m in found]
        spread = [200 * m.error_se for m in found]
    else:
        points = [(m.value, m.increase(rho)) for m in found]
        spread = [200 * m.accuracy_se / rho for m in found]
    return Curve(model, points, colour, mark, dash, spread if any(spread) else ())


def _frequent(table: Measured, xs: Sequence[float]) -> Curve:
    level = 100 * (table.study.frequent / table.study.rho - 1)
    return Curve("most frequent value", [(min(xs), level), (max(xs), level)], "black", "", "1 3")


def write_five(path: Path, tables: Sequence[Measured]) -> None:
    """All models and our own methods: privacy against utility."""
    panels = []
    for table in tables:
        curves = []
        for number, model in ((1, K), (2, L), (3, ORDERED), (3, EQUAL), (4, KD), (4, QUAD)):
            curves.append(_trade(table, table.of(number, model), model, STYLE[model]))
        for place, method in enumerate(OWN):
            colour, mark = SPARE[place % len(SPARE)]
            curves.append(_trade(table, table.of(5, method), method, (colour, mark, "5 3")))
        curves.append(_frequent(table, [x for curve in curves for x, _ in curve.points]))
        panels.append(Axes(table.study.name, curves, ERROR, INCREASE, x_log=True))
    title = "Figure 5: empirical privacy breach against empirical utility"
    plots.write(path, title, panels, across=1)


def _trade(
    table: Measured, found: Sequence[Mark], label: str, style: tuple[str, str, str]
) -> Curve:
    rho = table.study.rho
    colour, mark, dash = style
    points = [(100 * max(m.error, 1e-4), m.increase(rho)) for m in found]
    texts = {}
    if label == KD:
        texts = {i: f"ε = {m.value:g}" for i, m in enumerate(found) if m.value in {0.05, 0.1, 1}}
    if label == L:
        texts = {i: m.parameter for i, m in enumerate(found) if m.value in {2, 3, 4}}
    if label == K:
        texts = {0: found[0].parameter, len(found) - 1: found[-1].parameter}
    return Curve(label, points, colour, mark, dash, texts=texts)


def write_six(path: Path, tables: Sequence[Measured]) -> None:
    """Over height, and over the size of the table."""
    panels = []
    for height in (True, False):
        for table in tables:
            curves = []
            for model in (K, KD, QUAD):
                some = [m for m in table.of(6, model) if ("height" in m.parameter) is height]
                curve = _trade(table, some, model, STYLE[model])
                unit = "" if height else "%"
                ends = {0: f"{some[0].value:g}{unit}", len(some) - 1: f"{some[-1].value:g}{unit}"}
                curves.append(replace(curve, texts=ends))
            what = "height 2 to 14" if height else "10% to 100% of the rows"
            panels.append(Axes(f"{table.study.name}, {what}", curves, ERROR, INCREASE, x_log=True))
    plots.write(path, "Figure 6: height and size, k = 8 and epsilon 1", panels)


# The page.


def page(tables: Sequence[Measured], found: Sequence[common.Sentence], runs: int) -> str:
    """Explain the figures, and list the sentences and the releases."""
    first, second = (table.study for table in tables)
    note = f", on {first.name}" if first.shipped else ""
    evidence = _evidence(tables[0])
    shares = ", ".join(f"{axes}: {100 * s:.1f}%" for axes, s in evidence.selectivity.items())
    rows = [_row(table.study, mark) for table in tables for mark in table.marks]
    header = ["table", "figure", "model", "parameter", "boxes", "error", f"error, {FEW} columns"]
    listed = common.grid_table([*header, "accuracy", "increase"], rows)
    held = common.grid_table(
        ["model", "parameter", "boxes", *FIGURES],
        [_held(tree) for tree in tables[0].trees if tree.achieved and tree.point.figure <= 3],
    )
    return f"""\
# Empirical privacy and utility: Cormode et al. 2013{note}

G. Cormode, C. M. Procopiuc, E. Shen, D. Srivastava and T. Yu, “Empirical privacy and empirical
utility of anonymized data”, ICDE Workshops (2013), pp. 77-82, compare models by what a tree of
boxes with counts tells about groups and about persons. Here are its Figures 1 to 6, each release
made through `shoal.protect` with a policy of its own.
This page and its numbers are written by `papers/{TABLE}.py`; noise
has no seed, so that another run differs by chance. Releases with noise are made {runs} times, and
means are shown with standard errors; the others are deterministic and made once.

Tables: {_about(first)}; {_about(second)}.{_instead(second)}

## How to read the figures

**Utility** is the median relative error of {QUERIES:,} COUNT queries with a true answer above zero.
A query covers half of the domain of every column, the confidential one included: half of its
categories, next to one another in a fixed order, or half of its whole numbers. A box that a query
cuts counts by the share of it that lies inside. An error of 0 is best; answering 0 to everything
has 100%.

**Privacy** is the accuracy of a naive Bayes classifier that somebody learns from the boxes alone
and puts to the people in the table: each count is spread evenly over its box, negative counts are
taken as 0, and nothing is smoothed. What is drawn is the increase over a baseline rho, accuracy /
rho - 1; lower is better for the people.
{_baseline(first)}
It is the accuracy of one attacker. A release with a small one may still tell all to another, and
only a claim bounds that. The classifier would also guess people well who are not in the table: a
table from which occupations can be learnt is what utility is. The metrics are
`shoal.metrics.count_queries` and `shoal.metrics.attacks.naive_bayes`; on tables of your own,
`shoal.evaluate` takes both.

**The workload is not the paper's.** It has a median selectivity of “about 13%” on Adult. Half
ranges of so many columns, drawn for each query, ask on {first.name} for (median): {shares}. So
the paper's queries cannot restrict all columns by half as ours do; it does not say more about
them. The table of releases has the error for queries on {FEW} columns too.

## One model at a time: Figures 1 to 4

![Figure 1: error and increase in accuracy over k]({TABLE}-fig1.svg)

![Figure 2: error and increase in accuracy over l]({TABLE}-fig2.svg)

![Figure 3: error and increase in accuracy over t, by two distances]({TABLE}-fig3.svg)

![Figure 4: error and increase in accuracy over epsilon]({TABLE}-fig4.svg)

Bars are two standard errors either way. The dotted line is what guessing the most frequent value
reaches.

## All models in one plot: Figure 5

![Figure 5: increase in accuracy against error, all models]({TABLE}-fig5.svg)

Good utility is on the left, and what protects more is further down: a curve that runs nearer to
the lower left corner gives more of one for the same of the other. Solid curves and the dashed
green one are trees; dashed black and grey ones are our own methods that release rows. Of those,
`mdav` groups the quasi-identifiers and leaves the confidential column as it is; `kanon-dp` and
`pram` (k = {OWN_K}) draw each confidential value anew, with epsilon from 0.5 to 10;
`bucketization` (k = {OWN_K}) releases ranges of the confidential column, with t from 1.1 to 7.
Their rows are read as boxes: equal rows are one box, and a set of values counts for each of them
in equal parts.
`bucketization` goes to and fro, because the number of buckets is floor(t) + 1 and queries for half
of the values fit some cuts and not others.

Claims behind the curves differ: the private trees protect every column, `kanon-dp` the
confidential one given the rest, and k-anonymity nothing of the kind. [Which claim means
what](../explanation/differential-privacy.md).

## Height and size of the table: Figure 6

![Figure 6: the same over height, and over the size of the table]({TABLE}-fig6.svg)

k = 8 and epsilon 1. Above, trees are cut at most 2, 4, ..., 14 times; below, 10%, 20%, ..., 100%
of the rows are used, drawn without replacement, and queries and guesses are about these rows.
Figures stand at both ends of a curve.

## The paper's sentences

{common.tally(found)} Thresholds are ours where the paper has words such as “about”, and are stated.
{_left_out(second)}

{common.sentence_table(found)}

{_differs(first)}## What the paper leaves open

{CHOICES}
## The rule for t-closeness

“When building the tree, nodes having EMD (compared to root) larger than the threshold t will not
be split further.” So a node beyond t may come to be, and it stays.
{_beyond(evidence)}It is the parameter
`halt_beyond` of [`mondrian`](../methods.md#mondrian), and no claim comes with it; t-closeness that
a policy requires is another thing, and kept by every box.

## What the deterministic trees achieve

On {first.name}. k is the smallest number of records in a box, l the reciprocal of the largest
share of one value in a box, t the largest distance between a box and the table. [The same for
every release]({TABLE}-releases.csv); where counts are noisy the true ones are not known, and
nothing is said.

{held}

## Every mark

Errors and accuracy in percent, ± one standard error; the increase is over the baseline of the
table. [The same as a table for programs]({TABLE}.csv).

{listed}
"""


def _about(study: Study) -> str:
    quasi = [name for name in study.columns if name != study.confidential]
    return (
        f"{study.name} ({study.frame.height:,} rows, {study.confidential} confidential, "
        f"quasi-identifiers {', '.join(quasi)})"
    )


def _instead(study: Study) -> str:
    if not study.shipped:
        return ""
    return (
        " The latter stands where the paper has an extract of IPUMS USA; it is invented, and its "
        "numbers say nothing about the paper's. Name your own extract by `SHOAL_IPUMS` (a CSV "
        "file with AGE, HCOVANY, EDUC, OCC1990 and INCWAGE), and it takes the sample's place."
    )


def _baseline(study: Study) -> str:
    if study.stated is None:
        return "The baseline is the share of the most frequent value.\n"
    return (
        f"The paper defines rho as the accuracy of always predicting the most frequent value, and "
        f"states {100 * study.rho:.0f}%. On {study.name} that value has "
        f"{100 * study.frequent:.1f}% of the rows. The paper's own floor, “about 20%” for the root "
        f"alone, agrees with {100 * study.frequent:.1f} / {100 * study.rho:.0f} = "
        f"{study.frequent / study.rho:.2f}, and not with a baseline of that share, whose floor is "
        f"0. So we take {100 * study.rho:.0f}% for the figures, so that they can be held beside "
        f"the paper's, and say what comes of the other. Where the table is our sample, rho is the "
        f"share.\n"
    )


def _left_out(second: Study) -> str:
    if not second.shipped:
        return ""
    return (
        "Sentences with a number for the paper's Census table are left out, since that table is "
        "not here; where a sentence is about both tables, the sample is a case of its own."
    )


def _differs(study: Study) -> str:
    if study.shipped:
        return ""
    return """\
## Where we differ, and what may be behind it

We do not have the authors' programs, so these are guesses.

- The private trees do better here than in the paper: no error near 100% at ε = 0.01, no
  deterministic tree that beats ε = 1, and no advantage of t-closeness below 10%. Ours spend
  epsilon by level and
  then make counts consistent and not negative, with n public, and lower their height as epsilon
  falls. An error of 100% is what answering 0 has, and one box for all stays below it. That
  predictions at ε = 0.01 are no better than the baseline holds up to chance: single runs spread
  widely.
- Below 10% the paper's rule for t hardly stops a cut on Adult (by `ordered`), so that the trees are
  nearly those of k = 8, and cannot be told from them.
- Naive Bayes guesses well from few boxes: at k = 1024 it reaches more than twice the baseline,
  where the paper has one and a half times.
- Which trees the paper grew, whether kd-trees or quadtrees, and which heights, is not said.

"""


def _beyond(evidence: Evidence) -> str:
    """Say how far boxes are from the table where nodes were halted beyond 0.35."""
    found = evidence.beyond
    said = " and ".join(f"{value:.2f} by `{distance}`" for distance, value in found.items())
    return f"Here, at t = 0.35, boxes reach {said}. "


def _held(tree: Tree) -> list[str]:
    figures = [_figure(tree.achieved[name]) for name in FIGURES]
    return [tree.point.model, tree.point.parameter, f"{len(tree.boxes):,}", *figures]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:.3f}"


def _row(study: Study, mark: Mark) -> list[str]:
    text = mark.parameter
    if mark.percent < 100:
        text += f", {mark.percent}% of the rows"
    return [
        study.name,
        str(mark.figure),
        mark.model,
        text,
        f"{mark.boxes:,.0f}",
        _percent(mark.error, mark.error_se),
        _percent(mark.few, mark.few_se),
        _percent(mark.accuracy, mark.accuracy_se),
        f"{mark.increase(study.rho):+.0f}%",
    ]


def _percent(value: float, error: float) -> str:
    text = f"{100 * value:.1f}"
    return text if not error or math.isnan(error) else f"{text} ± {100 * error:.1f}"


if __name__ == "__main__":
    main()

"""What the programs share: the tables, the runs, charts as SVG text, and the pages.

The programs use the public interface alone: `shoal.protect` with a policy, and the measures. The
noise is the real one, so that two runs differ by chance; pages give the spread over runs.

Loss is measured row by row, so that rows must correspond: every release is row-aligned. Rows are
shuffled before each run and put back after it. The method and the shuffle together treat all
rows alike, equal ones too, which is what the floor (`floor`) asks of a method.
"""

import argparse
import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _plots import Axes, Curve, write
from numpy.typing import NDArray

import shoal
from shoal.methods.papers import find_paper
from shoal.metrics.information_loss import il1s, sae, sse, sse_over_sst

Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
PAGES = ROOT / "docs" / "papers"
SEED = 20140917
"""Of the shuffles, the queries and the places within cells; the noise has no seed."""

SAMPLE = "the shipped sample"
KS = (
    *(2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 23, 26, 28, 30, 31, 32, 33, 34, 36, 40, 45, 50),
    *(54, 58, 60, 62, 64, 66, 70, 77, 85, 92, 100),
)


@dataclass(frozen=True)
class Study:
    """A table of numbers with the bounds that its policy states.

    Attributes:
        origin: one sentence on where bounds come from.
    """

    name: str
    frame: pl.DataFrame
    bounds: Mapping[str, tuple[float, float]]
    origin: str

    @property
    def note(self) -> str:
        """What a page's title says of a table that is not the paper's."""
        return f", on {self.name}" if self.name == SAMPLE else ""

    @property
    def matrix(self) -> Floats:
        """Records by columns."""
        return np.asarray(self.frame.to_numpy(), dtype=np.float64)

    def policy(self, **protect: Any) -> dict[str, Any]:
        """The policy that protects every column as stated."""
        columns = {
            name: {
                "role": "quasi-identifier",
                "kind": "numeric",
                "bounds": list(bounds),
                "keep_missing": False,  # the papers' tables are whole
            }
            for name, bounds in self.bounds.items()
        }
        return {"version": 1, "columns": columns, "protect": protect}

    def wide(self, factor: int) -> "Study":
        """The same table in a box that has room for noise: factor more widths on both sides.

        With an epsilon 2 factor + 1 times as large, noise has the scale that it had, and is
        no longer cut off at the bounds.
        """
        bounds = {
            name: (low - factor * (high - low), high + factor * (high - low))
            for name, (low, high) in self.bounds.items()
        }
        return Study(self.name, self.frame, bounds, self.origin)

    def only(self, name: str) -> "Study":
        """The same people, one column."""
        return Study(self.name, self.frame.select(name), {name: self.bounds[name]}, self.origin)


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    sample: bool
    ks: tuple[int, ...]
    runs: int | None
    out: Path


def options(about: str) -> Options:
    """Read the command line; without the reference tables, it is the sample's turn."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--sample", action="store_true", help="use the shipped sample")
    parser.add_argument("--ks", type=int, nargs="+", default=KS, help="group sizes")
    parser.add_argument("--runs", type=int, help="runs that are averaged; the paper's by default")
    parser.add_argument("--out", type=Path, help="folder for pages, tables and plots")
    given = parser.parse_args()
    sample = given.sample or not DATA.is_dir()
    out = given.out or (PAGES / "sample" if sample else PAGES)
    out.mkdir(parents=True, exist_ok=True)
    return Options(sample, tuple(sorted(given.ks)), given.runs, out)


def reference(name: str, title: str, columns: Sequence[str]) -> Study:
    """A reference table; bounds are [0, 1.5 max], as all three papers have them."""
    frame = pl.read_csv(DATA / f"{name}.csv").select(columns)
    bounds = {column: (0.0, 1.5 * float(frame[column].max())) for column in columns}
    origin = (
        "Bounds are [0, 1.5 max], as in the paper. They were read off the table and are taken as "
        "public here; a release of your own needs bounds that were public before."
    )
    return Study(title, frame, bounds, origin)


def shipped(columns: Sequence[str], rows: int) -> Study:
    """Adults among the invented people of the package, with the bounds of their policy."""
    people = shoal.sample.load().filter(pl.col("age") >= 18).select(columns).drop_nulls().head(rows)
    stated = {"age": (0, 110), "hours": (0, 80), "income": (0, 500_000), "tax": (0, 500_000)}
    bounds = {column: stated[column] for column in columns}
    origin = "Bounds are those of the sample's policy, and public."
    return Study(SAMPLE, people, bounds, origin)


def epsilon(value: float | Decimal | str) -> Decimal:
    """Write a budget as policies hold it: exactly."""
    return Decimal(str(value))


@dataclass
class Runs:
    """Runs of one table: every release is made here, and its claims are kept for the page."""

    study: Study
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    def released(self, **protect: Any) -> Floats:
        """A row-aligned release; row i of it is about record i."""
        order = self.rng.permutation(self.study.frame.height)
        policy = self.study.policy(**protect)
        release = shoal.protect(self.study.frame[order], policy, keep_order=True)
        self.claims[protect["method"]] = _claimed(release)
        released = np.empty_like(self.study.matrix)
        released[order] = release.data.to_numpy()
        return released

    def loss(self, runs: int, **protect: Any) -> "Loss":
        """Losses of so many releases."""
        return self.losses(self.released(**protect) for _ in range(runs))

    def losses(self, tables: Iterable[Floats]) -> "Loss":
        """Losses of given releases."""
        X = self.study.matrix
        m = X.shape[1]
        found = []
        for Y in tables:
            shares = [sse_over_sst(X[:, j], Y[:, j]) for j in range(m)]
            found.append([sse(X, Y), sae(X, Y), il1s(X, Y), *shares])
        F = np.array(found)
        spread = F.std(axis=0, ddof=1) if len(F) > 1 else np.zeros(F.shape[1])
        mean = F.mean(axis=0)
        return Loss(
            sse=mean[0],
            sse_sd=spread[0],
            sae=mean[1],
            sae_sd=spread[1],
            il1s=mean[2],
            il1s_sd=spread[2],
            share=float(mean[3:].sum()),
            least_share=float(mean[3:].min()),
            least_error=float(spread[3:][mean[3:].argmin()] / math.sqrt(len(F))),
            least_column=list(self.study.bounds)[int(mean[3:].argmin())],
            columns=m,
            runs=len(F),
        )


def _claimed(release: Any) -> tuple[str, ...]:
    return tuple(f"{claim.status}: {claim.guarantee}" for claim in release.claims)


@dataclass(frozen=True)
class Loss:
    """Mean losses over runs, and their standard deviations.

    Attributes:
        share: SSE / SST, summed over columns, a mean over runs.
        least_share: SSE / SST of the column that kept most, a mean over runs.
        least_error: its standard error.
    """

    sse: float
    sse_sd: float
    sae: float
    sae_sd: float
    il1s: float
    il1s_sd: float
    share: float
    least_share: float
    least_error: float
    least_column: str
    columns: int
    runs: int

    def below(self, least: float) -> bool:
        """Whether a column lies below a floor by more than three standard errors."""
        return self.least_share + 3 * self.least_error < least

    def kept(self) -> str:
        """SSE / SST of the column that kept most, for a page."""
        return f"{show(self.least_share)} ± {show(self.least_error)} ({self.least_column})"


def above(one: Loss, other: Loss, name: str) -> bool:
    """Whether one loss is above another by more than three standard errors of the difference."""
    spread = math.hypot(getattr(one, f"{name}_sd"), getattr(other, f"{name}_sd"))
    gap = getattr(one, name) - getattr(other, name)
    return bool(gap > 3 * spread / math.sqrt(min(one.runs, other.runs)))


Key = tuple[str, str, int | None]
"""A point of a figure: method, epsilon (or empty), k (or none)."""


def floor(eps: float, n: int) -> float:
    """Least SSE / SST of a column that an epsilon-private, row-aligned method can have.

        E SSE / SST >= max( 2 e^(2 eps) / (1 + e^(2 eps))^2 * n / (n - 1),  e^(-2 eps) )

    for any fixed table of n rows (change-one neighbours) and any method that treats all rows
    alike and has every column to protect. Proof, in short: exchanging two rows changes two
    records, so that no test tells the two tables apart better than 2 epsilon allows; row i's
    value is then confused with row j's, for every pair, and the squared differences of all
    pairs add up to n SST. Ours, unreviewed.

    >>> round(floor(1, 30162), 3)
    0.21
    """
    odds = math.exp(2 * eps)
    return max(2 * odds / (1 + odds) ** 2 * n / (n - 1), 1 / odds)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, what is tested for it, and how that came out.

    A sentence may have several rows: several tests, or one test under several readings. It is
    counted once (`standing`).

    Attributes:
        quote: the paper's words; rows with the same words are one sentence.
        test: the assertion, with every threshold of ours.
        outcome: case by case, most often epsilon by epsilon; no case if it cannot be tested.
        numbers: what it rests on; why it cannot be tested.
        reading: how the sentence is read here, if not in the plainest way.
        beside: on a table that stands for one of the paper's, beside a row on the paper's own: it
            is shown, and does not count.
    """

    quote: str
    test: str
    outcome: Mapping[str, bool]
    numbers: str
    reading: str = ""
    beside: bool = False

    @property
    def holds(self) -> bool:
        """Whether it holds in every case."""
        return bool(self.outcome) and all(self.outcome.values())

    @property
    def asked(self) -> str:
        """The test, after the reading that it belongs to."""
        return f"*Read as: {self.reading}.* {self.test}" if self.reading else self.test

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.outcome:
            return "cannot be tested"
        if self.holds:
            return "holds"
        some = [case for case, held in self.outcome.items() if held]
        return f"holds for {', '.join(some)} only" if some else "does not hold"


STANDINGS = ("hold", "hold under a stated reading", "do not hold", "cannot be tested")


def standing(rows: Sequence[Sentence]) -> str:
    """Where one sentence stands: one of `STANDINGS`.

    It holds if every test of its plainest reading holds in every case; else it holds under a
    stated reading if every test of one such reading does.
    """
    tested = [row for row in rows if row.outcome and not row.beside]
    if not tested:
        return STANDINGS[3]
    readings = {row.reading: True for row in tested}
    for row in tested:
        readings[row.reading] &= row.holds
    if readings.pop("", False):
        return STANDINGS[0]
    return STANDINGS[1] if any(readings.values()) else STANDINGS[2]


def standings(sentences: Sequence[Sentence]) -> dict[str, int]:
    """How many sentences stand where."""
    by_quote: dict[str, list[Sentence]] = {}
    for row in sentences:
        by_quote.setdefault(row.quote, []).append(row)
    where = [standing(rows) for rows in by_quote.values()]
    return {name: where.count(name) for name in STANDINGS}


def once(outcome: bool) -> dict[str, bool]:  # noqa: FBT001 (a truth value is the point)
    """The outcome of a sentence with one case."""
    return {"": bool(outcome)}


FLOOR = "`max( 2e^(2ε) / (1 + e^(2ε))² · n/(n-1), e^(-2ε) )`"
"""The floor as pages have it."""


def show(value: float) -> str:
    """Three significant digits, without an exponent where it stays readable."""
    if value == 0 or 0.001 <= abs(value) < 100_000:
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file; numbers with six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])


def write_losses(path: Path, tables: Mapping[str, Mapping[Key, Loss]]) -> None:
    """Write every point of every table."""
    header = ["table", "method", "epsilon", "k", "sse", "sse_sd", "sae", "sae_sd", "il1s"]
    header += ["il1s_sd", "least_sse_over_sst", "least_column"]
    rows = []
    for table, points in tables.items():
        for key, loss in points.items():
            named = [table, *("" if part is None else part for part in key)]
            pairs = [loss.sse, loss.sse_sd, loss.sae, loss.sae_sd, loss.il1s, loss.il1s_sd]
            rows.append([*named, *pairs, loss.least_share, loss.least_column])
    write_rows(path, header, rows)


def grid_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def tally(sentences: Sequence[Sentence]) -> str:
    """How many of the sentences hold, each counted once."""
    counts = standings(sentences)
    listed = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return f"Sentences: {sum(counts.values())}. {listed[0].upper()}{listed[1:]}."


def sentence_table(sentences: Sequence[Sentence]) -> str:
    """The sentences with their verdicts, as a page shows them."""
    rows = [[s.quote, s.asked, f"**{s.verdict}**", s.numbers] for s in sentences]
    return grid_table(["the paper", "what we test", "in our runs", "our numbers"], rows)


def write_sentences(path: Path, sentences: Sequence[Sentence]) -> None:
    """Write the verdicts as a table for programs."""
    rows = [
        [s.quote, s.asked, s.verdict, s.numbers, s.reading, "yes" if s.beside else ""]
        for s in sentences
    ]
    write_rows(path, ["sentence", "test", "verdict", "numbers", "reading", "beside"], rows)


def list_methods(key: str) -> str:
    """Shoal's methods for a paper, with links to their pages."""
    linked = [f"[`{name}`](../reference/methods/{name}.md)" for name in find_paper(key).names]
    return f"Methods: {', '.join(linked)}."


def coverage_table(rows: Sequence[tuple[str, str, str]]) -> str:
    """What the paper has, what Shoal has for it, and where; no cell is empty."""
    if not all(cell.strip() for row in rows for cell in row):
        message = "every line of the paper's table needs its place in Shoal"
        raise ValueError(message)
    return grid_table(["in the paper", "in Shoal", "where"], rows)


def claim_table(claims: Mapping[str, Sequence[str]]) -> str:
    """What the manifests of the runs say, method by method."""
    rows = [[f"`{method}`", "<br>".join(_short(claims[method])) or "no claim"] for method in claims]
    return grid_table(["method, row-aligned", "claims in the manifest of the last run"], rows)


def _short(claims: Sequence[str]) -> list[str]:
    return [claim if len(claim) < 160 else claim[:157] + "..." for claim in claims]


# Charts against k, whose other axis is logarithmic.


@dataclass(frozen=True)
class Line:
    """A curve, or a level if it has no k."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""
    mark: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: Sequence[Line]
    y_label: str
    x_label: str = "k"


def level(label: str, value: float, ks: Sequence[int], colour: str, dash: str) -> Line:
    """A horizontal line."""
    return Line(label, [(ks[0], value), (ks[-1], value)], colour, dash)


def write_chart(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Write panels side by side, two in a row, with one legend below; y axes are logarithmic."""
    axes = [
        Axes(
            panel.title,
            [
                Curve(line.label, line.points, line.colour, "circle" * line.mark, line.dash)
                for line in panel.lines
            ],
            panel.x_label,
            panel.y_label,
            y_log=True,
        )
        for panel in panels
    ]
    write(path, title, axes, across=min(2, len(panels)))

"""Figures of `tables.py` on file, and the plots and tables that are made of them.

docs/tables/figures.csv has the figures of all cases; `publish` draws docs/tables/*.svg and
fills in what stands between `<!-- figures: NAME -->` and `<!-- end -->` in
docs/research/tables.md and in RESULTS.md, so no figure there was typed.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from math import isnan
from pathlib import Path

from _charts import Curve, Panel, chart

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tables"
FILE = "figures.csv"
PAGE = ROOT / "docs" / "research" / "tables.md"
PAGES = (PAGE, ROOT / "bench" / "RESULTS.md")

COUNTS = ("counts", "triples")
COLUMNS = {
    "counts": "counts",
    "triples": "triples",
    "pairs": "pairs",
    "ranks": "ranks",
    "w2": "W2",
    "accuracy": "accuracy",
    "seconds": "CPU s",
}
LOOKS = {
    "bootstrap": ("#999999", "2 3"),
    "Laplace": ("#555555", ""),
    "INS": ("#8a5a00", "5 4"),
    "ir-laplace, one list a column": ("#8a5a00", ""),
    "noisy grid": ("#6a3d9a", "5 4"),
    "noisy histogram": ("#6a3d9a", ""),
    "MST": ("#2a9d8f", ""),
    "AIM": ("#0b4ea2", ""),
    "SWIFT": ("#0b4ea2", "5 4"),
    "privtree": ("#c1272d", "5 4"),
    "auto, native": ("#c1272d", "2 3"),
    "auto": ("#c1272d", ""),
}
"""Who is plotted, the last on top: colour and dashes. Everybody is in the tables."""
OURS = ("auto", "auto, native")
EQUAL = ("epsilon", "epsilon, columns apart")
"""Promises that are those of ours: pure, for a changed record."""

WANTED = {
    ("adult-2", "ranks"): (0.13, 0.006, 0.001),
    ("adult-2", "counts"): (0.07, 0.02, 0.006),
    ("adult-5", "counts"): (0.15, 0.036, 0.014),
    ("adult-8", "triples"): (0.09, 0.026, 0.008),
}
"""Of `auto` at epsilon 0.1, 1 and 10, at most."""


@dataclass(frozen=True)
class Figure:
    """One mean with its standard error."""

    epsilon: str
    who: str
    family: str
    promise: str
    measure: str
    mean: float
    error: float
    runs: int
    note: str = ""


Figures = Sequence[Figure]


def write(case: str, figures: Figures, folder: Path = FOLDER) -> None:
    """Put a case's figures on file, in place of what it had."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for line in _lines(folder) if line["case"] != case]
    lines += [
        {"case": case} | {name: _text(value) for name, value in asdict(figure).items()}
        for figure in figures
    ]
    with (folder / FILE).open("w", encoding="utf-8", newline="") as file:
        names = ["case", *(field.name for field in fields(Figure))]
        out = csv.DictWriter(file, names, lineterminator="\n")
        out.writeheader()
        out.writerows(lines)


def read(case: str, folder: Path = FOLDER) -> list[Figure]:
    """A case's figures, none if it was not run."""
    return [
        Figure(
            **{name: text for name, text in line.items() if name != "case"}  # type: ignore[arg-type]
            | {"mean": float(line["mean"]), "error": float(line["error"])}
            | {"runs": int(line["runs"])}
        )
        for line in _lines(folder)
        if line["case"] == case
    ]


def _lines(folder: Path) -> list[dict[str, str]]:
    """All figures on file."""
    if not (folder / FILE).is_file():
        return []
    with (folder / FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _text(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def publish(names: Iterable[str], folder: Path = FOLDER, pages: Iterable[Path] = PAGES) -> None:
    """Draw the plots and fill in the pages."""
    found = {name: figures for name in names if (figures := read(name, folder))}
    plots = {
        "counts": ("Median relative error of counts", _count_measure),
        "pairs": ("Distance of two-way tables", lambda _figures: "pairs"),
        "seconds": ("CPU seconds of a run", lambda _figures: "seconds"),
    }
    for name, (title, measure) in plots.items():
        panels = _panels(found, measure)
        if panels:
            chart(folder / f"{name}.svg", title, panels)
    blocks = {name: _table(figures) for name, figures in found.items()}
    blocks |= {"wanted": _wanted(found), "losses": _losses(found), "speed": _speed(found)}
    for page in pages:
        page.write_text(_filled(page.read_text(encoding="utf-8"), blocks), encoding="utf-8")


def _filled(page: str, blocks: dict[str, list[str]]) -> str:
    def fill(match: re.Match[str]) -> str:
        lines = blocks.get(match[1], ["Not run."])
        return "\n".join([f"<!-- figures: {match[1]} -->", "", *lines, "", "<!-- end -->"])

    return re.sub(r"<!-- figures: (\S+) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


def _count_measure(figures: Figures) -> str:
    return "counts" if any(figure.measure == "counts" for figure in figures) else "triples"


def _panels(found: dict[str, list[Figure]], measure: Callable[[Figures], str]) -> list[Panel]:
    """One panel per case: its metric over epsilon."""
    panels = []
    for case, figures in found.items():
        wanted = measure(figures)
        curves = []
        for who, (colour, dash) in LOOKS.items():
            points = [
                (float(figure.epsilon), figure.mean)
                for figure in figures
                if figure.who == who and figure.measure == wanted and figure.mean > 0
            ]
            if points:
                curves.append(Curve(who, points, colour, dash))
        label = f"{case}, {wanted}" if wanted in COUNTS else case
        panels.append(Panel(label, curves))
    return panels


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    text = f"{figure.mean:.3g}"
    return text if isnan(figure.error) or not figure.error else f"{text} ± {figure.error:.1g}"


def _table(figures: Figures) -> list[str]:
    """Markdown: a line for each contender and epsilon."""
    measures = [name for name in COLUMNS if any(figure.measure == name for figure in figures)]
    lines = [
        "| epsilon | who | promise | runs | "
        + " | ".join(COLUMNS[name] for name in measures)
        + " |",
        "|---" * (len(measures) + 4) + "|",
    ]
    for epsilon in sorted({figure.epsilon for figure in figures}, key=lambda e: float(e or 0)):
        here = [figure for figure in figures if figure.epsilon == epsilon]
        for who in dict.fromkeys(figure.who for figure in here):
            mine = {figure.measure: figure for figure in here if figure.who == who}
            first = next(iter(mine.values()))
            cells = [_cell(mine.get(name)) for name in measures]
            name = f"**{who}**" if who == "auto" else who
            label = f"{name} ({first.note})" if first.note else name
            lines.append(
                f"| {epsilon} | {label} | {first.promise} | {first.runs or ''} | "
                + " | ".join(cells)
                + " |"
            )
    return lines


def _find(figures: Figures, who: str, epsilon: str, measure: str) -> Figure | None:
    for figure in figures:
        if (figure.who, figure.epsilon, figure.measure) == (who, epsilon, measure):
            return figure
    return None


def _wanted(found: dict[str, list[Figure]]) -> list[str]:
    lines = ["| table | measure | epsilon | wanted | found | met |", "|---|---|---|---|---|---|"]
    targets = [
        (case, measure, "auto", epsilon, most)
        for (case, measure), bounds in WANTED.items()
        for epsilon, most in zip(("0.1", "1", "10"), bounds, strict=True)
    ]
    targets += [("census-4", "w2", "copula", "1", 0.55), ("census-4", "w2", "copula", "10", 0.15)]
    targets += [("adult-12", "seconds", "auto", epsilon, 15) for epsilon in ("0.1", "1", "10")]
    for case, measure, who, epsilon, most in targets:
        figure = _find(found.get(case, []), who, epsilon, measure)
        if figure is not None:
            met = "yes" if figure.mean <= most else "no"
            line = (f"{case}, {who}", COLUMNS[measure], epsilon, str(most), _cell(figure), met)
            lines.append("| " + " | ".join(line) + " |")
    return lines


def _losses(found: dict[str, list[Figure]]) -> list[str]:
    """Where somebody with the same promise is nearer than `auto` by two standard errors.

    Rivals have the promise of "auto, native".

    A single run has no standard error; twice that of `auto` then stands for both.
    """
    lines = ["| table | epsilon | measure | auto | nearer |", "|---|---|---|---|---|"]
    for case, figures in found.items():
        for figure in figures:
            if figure.who not in OURS or figure.measure not in COLUMNS:
                continue
            sign = -1 if figure.measure == "accuracy" else 1
            better = []
            for other in figures:
                if (other.epsilon, other.measure) != (figure.epsilon, figure.measure):
                    continue
                same = EQUAL if figure.promise in EQUAL else (figure.promise,)
                if other.promise not in same or other.who in OURS or figure.measure == "seconds":
                    continue
                spread = figure.error * 2 if isnan(other.error) else other.error
                if sign * (figure.mean - other.mean) > 2 * (figure.error**2 + spread**2) ** 0.5:
                    better.append((sign * other.mean, f"{other.who} {_cell(other)}"))
            if better:
                who = ", ".join(text for _, text in sorted(better))
                name = COLUMNS[figure.measure]
                cells = (case, figure.epsilon, name, f"{figure.who} {_cell(figure)}", who)
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def _speed(found: dict[str, list[Figure]]) -> list[str]:
    """How many times the CPU seconds of ours the rivals took, with compiling and without."""
    lines = [
        "| table | epsilon | auto, CPU s | rival | CPU s | of which not compiling | times |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, figures in found.items():
        for other in figures:
            mine = _find(figures, "auto, native", other.epsilon, "seconds")
            bare = _find(figures, other.who, other.epsilon, "compiled")
            if other.family != "rival" or other.measure != "seconds" or not mine or not bare:
                continue
            times = f"{other.mean / mine.mean:.0f} ({bare.mean / mine.mean:.0f})"
            cells = (case, other.epsilon, f"{mine.mean:.2f}", other.who, f"{other.mean:.0f}")
            lines.append("| " + " | ".join((*cells, f"{bare.mean:.0f}", times)) + " |")
    return lines

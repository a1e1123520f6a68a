"""Curves over two axes that are linear or logarithmic, as SVG, by Matplotlib.

Words are drawn as shapes, so every renderer shows the same picture, whatever fonts it has; the same
curves give the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes as Frame
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

COLOURS = {
    "blue": "#0072b2",
    "red": "#d55e00",
    "green": "#009e73",
    "purple": "#aa4499",
    "orange": "#e69f00",
    "grey": "#777777",
    "black": "#222222",
}
_MARKS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "": ""}
_LEGEND, _ROW = 3.1, 0.26
"""Inches of a legend's column, and of its row."""


@dataclass(frozen=True)
class Curve:
    """Points that belong together.

    Attributes:
        mark: circle, square, triangle, diamond, or empty for none.
        dash: lengths of strokes and gaps, or empty for a solid line.
        spread: half the height of a bar at each point.
        texts: words beside a point, by its number.
    """

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    mark: str = "circle"
    dash: str = ""
    spread: Sequence[float] = ()
    texts: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Axes:
    """One pair of axes with its curves. Marks on the axis below may be stated."""

    title: str
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    x_log: bool = False
    x_marks: Sequence[float] = ()
    y_log: bool = False


def write(path: Path, title: str, panels: Sequence[Axes], *, across: int = 2) -> None:
    """Write panels, so many side by side, with one legend below; one alone is wide."""
    wide, tall = (4.6, 3.4) if across > 1 else (7.8, 4.4)
    down = -(-len(panels) // across)
    names = list({curve.label: curve for panel in panels for curve in panel.curves}.values())
    width = across * wide
    fit = max(1, int(width // _LEGEND))
    below = 0.15 + _ROW * -(-len(names) // fit)
    with mpl.rc_context({"svg.hashsalt": "shoal", "font.size": 9}):
        figure = Figure(figsize=(width, down * tall + below), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for place, panel in zip(grid.flat, panels, strict=False):
            _panel(place, panel)
        for spare in grid.flat[len(panels) :]:
            spare.set_visible(False)
        handles = [_drawn(grid.flat[0], curve, empty=True) for curve in names]
        figure.legend(handles, [c.label for c in names], loc="outside lower left", ncols=fit,
                      frameon=False)  # fmt: skip
        figure.savefig(path, format="svg", metadata={"Title": title, "Date": None})
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def _panel(place: Frame, panel: Axes) -> None:
    place.set_title(panel.title, loc="left", fontsize=9, fontweight="bold")
    place.set(xlabel=panel.x_label, ylabel=panel.y_label)
    place.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    place.set_axisbelow(True)
    for curve in panel.curves:
        _drawn(place, curve, positive=panel.y_log)
    ys = [y for curve in panel.curves for _, y in curve.points if y > 0 or not panel.y_log]
    xs = [x for curve in panel.curves for x, _ in curve.points]
    if panel.y_log:
        _logarithmic(place.yaxis, min(ys), max(ys))
    else:
        place.axhline(0, color="#888888", linewidth=0.8)
    if panel.x_log:
        _logarithmic(place.xaxis, min(xs), max(xs), panel.x_marks)
    elif panel.x_marks:
        place.set_xticks(list(panel.x_marks))


def _drawn(place: Frame, curve: Curve, *, empty: bool = False, positive: bool = False) -> object:
    """Draw a curve, or nothing but its entry in a legend."""
    points = [] if empty else [(x, y) for x, y in curve.points if y > 0 or not positive]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    dash = "-" if not curve.dash else (0, tuple(float(part) / 1.6 for part in curve.dash.split()))
    colour = COLOURS[curve.colour]
    if curve.spread and points:
        place.errorbar(xs, ys, yerr=list(curve.spread), fmt="none", ecolor=colour, elinewidth=0.9)
    (line,) = place.plot(
        xs, ys, color=colour, linewidth=1.4, linestyle=dash, marker=_MARKS[curve.mark], markersize=4
    )
    for number, text in ({} if empty else curve.texts).items():
        place.annotate(text, curve.points[number], (4, 4), textcoords="offset points",
                       fontsize=7, color=colour)  # fmt: skip
    return line


def _logarithmic(axis: Axis, low: float, high: float, marks: Sequence[float] = ()) -> None:
    """Mark a logarithmic axis at round numbers, at least two of them."""
    axis._set_axes_scale("log")  # type: ignore[attr-defined]  # noqa: SLF001 (either axis)
    axis.set_major_locator(FixedLocator(list(marks) or _round_numbers(low, high)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _shown(value)))
    axis.set_minor_locator(NullLocator())


def _round_numbers(low: float, high: float) -> list[float]:
    """Powers of ten; below two decades also their twofold and fivefold, and so on."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for factors in (
        (1.0,),
        (1, 3),
        (1, 2, 5),
        (1, 1.5, 2, 3, 5, 7),
        [1 + n / 10 for n in range(90)],
    ):
        found = [f * 10.0**e for e in decades for f in factors if low <= f * 10.0**e <= high]
        if len(found) >= 4:
            break
    spread, apart = math.log(high / low), []
    for mark in found:  # at least a twelfth of the axis between two
        if not apart or 12 * math.log(mark / apart[-1]) >= spread:
            apart.append(mark)
    return apart


def _shown(value: float) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    if -3 <= exponent <= 3:
        return f"{value:.4g}"
    return f"{round(value / 10.0**exponent, 3):g}e{exponent}"

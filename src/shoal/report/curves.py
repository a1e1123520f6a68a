"""Draw a figure of a paper that was repeated on another table: its loss against k."""

from collections.abc import Mapping
from math import ceil, floor, isfinite, log10
from typing import Any

from shoal.errors import count_noun
from shoal.report.phrases import number
from shoal.report.shapes import (
    Drawing,
    draw_line,
    draw_path,
    draw_rect,
    draw_svg,
    draw_text,
    join_pictures,
    shorten,
)

CURVES = (640, 360)
_CURVE_COLOURS = ("#1f5f80", "#d55e00", "#009e73", "#aa4499", "#7a6000", "#4a5666")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
"""Of curves with the same name and another epsilon."""


def draw_curves(facts: Mapping[str, Any]) -> Drawing:
    """Draw a repeated figure of a paper: its loss against k, both logarithmic.

    A release without k is a level. Where the horizontal axis is not k, it is linear.
    """
    logarithmic = facts["x"] == "k"
    known = [p for p in facts["points"] if isfinite(p["y"]) and (p["y"] > 0 or not logarithmic)]
    xs = [p["x"] for p in known if p["x"] is not None] or [1.0]
    ys = [p["y"] for p in known] or [1.0]
    left, right, top, bottom = 66.0, CURVES[0] - 190.0, 30.0, CURVES[1] - 44.0

    def place(value: float, ends: tuple[float, float], start: float, end: float) -> float:
        low, high = (log10(v) if logarithmic else v for v in ends)
        at = log10(value) if logarithmic else value
        return start + (end - start) * ((at - low) / (high - low) if high > low else 0.5)

    across, up = (min(xs), max(xs)), (min(ys), max(ys))
    title = f"{facts['figure']}, {facts['paper']}; {facts['rows']:,} rows"
    parts = [
        draw_text(6, 14, title, bold=True),
        draw_line(left, top, left, bottom),
        draw_line(left, bottom, right, bottom),
        draw_text((left + right) / 2, bottom + 34, facts["x"], anchor="middle"),
        draw_text(14, (top + bottom) / 2, facts["y"], anchor="middle", turn=True),
    ]
    for value in _ticks(across, logarithmic=logarithmic):
        x = place(value, across, left, right)
        parts.append(draw_line(x, top, x, bottom, width=0.6, faint=True))
        parts.append(draw_text(x, bottom + 15, number(value), anchor="middle", soft=True, size=10))
    for value in _ticks(up, logarithmic=logarithmic):
        y = place(value, up, bottom, top)
        parts.append(draw_line(left, y, right, y, width=0.6, faint=True))
        parts.append(draw_text(left - 4, y + 4, f"{value:.3g}", anchor="end", soft=True, size=10))
    names = list(dict.fromkeys(p["curve"] for p in known))
    epsilons = list(dict.fromkeys(p["epsilon"] for p in known if p["epsilon"]))
    by_k = facts["x"] == "k"
    series = dict.fromkeys((p["curve"], p["epsilon"] if by_k else "") for p in known)
    for row, (name, epsilon) in enumerate(series):
        colour = _CURVE_COLOURS[names.index(name) % len(_CURVE_COLOURS)]
        dash = _DASHES[epsilons.index(epsilon) % len(_DASHES)] if epsilon else ""
        drawn = [
            (x, p["y"])
            for p in known
            if p["curve"] == name and (p["epsilon"] == epsilon or not by_k)
            for x in (across if p["x"] is None else (p["x"],))
        ]
        ends = [
            (place(x, across, left, right), place(y, up, bottom, top)) for x, y in sorted(drawn)
        ]
        parts.append(draw_path(ends, colour, dash))
        parts += [draw_rect("p-curve", colour, (x - 2, y - 2, 4, 4)) for x, y in ends]
        y = top + 10 + 16 * row
        parts.append(draw_path([(right + 10, y), (right + 34, y)], colour, dash))
        label = f"{name}{epsilon and f', epsilon {epsilon}'}"
        parts.append(draw_text(right + 40, y + 4, shorten(label, 30), size=10))
    words = f"{title}: {facts['y']} against {facts['x']} of {count_noun(len(series), 'curve')}."
    return join_pictures([(draw_svg(*CURVES, parts, words), *CURVES)])


def _ticks(ends: tuple[float, float], *, logarithmic: bool) -> list[float]:
    """List about five round values between two."""
    low, high = ends
    if not logarithmic:
        step = 10.0 ** floor(log10((high - low) or 1.0))
        step *= next((s for s in (0.2, 0.5, 1) if (high - low) / (s * step) <= 6), 1)
        return [step * i for i in range(ceil(low / step), floor(high / step) + 1)]
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    wanted = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [m * 10.0**d for d in decades for m in wanted if low <= m * 10.0**d <= high]
